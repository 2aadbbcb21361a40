//! What was deleted: which delete files apply to which data files, and what they say.

mod delete_index;
mod equality_deletes;
mod live_rows;
mod position_deletes;

pub(in crate::connector::iceberg) use delete_index::FileDeletes;
pub(super) use delete_index::{DeleteIndex, EqualityGroup};
pub(super) use equality_deletes::{DeletedKeys, EqualityDeletes, key_columns, key_ids};
pub(super) use live_rows::{LONG_RUN, LiveRows, access_plan};
pub(super) use position_deletes::PositionDeletes;

/// How many delete files are read at the same time, of a data file or of a group.
const CONCURRENT_READS: usize = 8;
