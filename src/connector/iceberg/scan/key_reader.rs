//! Keys of data files with the positions of their rows: what the sink's index is built from, and resolved by after others have
//! written.

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch};
use futures::stream::{self, BoxStream};

use super::live_files::LiveFile;
use crate::connector::iceberg::table::IcebergTable;
use crate::error::{Error, Result};

/// Rows of one data file.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::connector::iceberg) struct KeyRows {
    /// The place of the file among those asked for.
    pub(in crate::connector::iceberg) file: usize,
    /// The key columns, in the order asked for, in the Arrow types of Flink's types, named as in the table's current schema.
    pub(in crate::connector::iceberg) keys: RecordBatch,
    /// Where each row lies in its file, from 0; ascending within a batch.
    pub(in crate::connector::iceberg) positions: Int64Array,
}

/// What of the files is wanted.
#[derive(Debug, Clone, Default)]
pub(in crate::connector::iceberg) struct KeyReadOptions {
    /// The keys that are looked for: columns as in `KeyRows::keys`. Files and row groups that hold none of them are passed over by
    /// their bounds and bloom filters; of the others all rows come. None: everything is wanted.
    pub(in crate::connector::iceberg) wanted: Option<RecordBatch>,
    /// How many files are read at the same time; 0 means as many as there are cores.
    pub(in crate::connector::iceberg) concurrency: usize,
}

/// Reads the key columns (field ids of the table's current schema) of data files, without the rows that are deleted. Batches of
/// one file come in the order of its rows, those of different files in any order.
///
/// # Errors
/// The stream ends with an error if a file is missing or damaged.
pub(in crate::connector::iceberg) fn read_keys(
    _table: &IcebergTable,
    _files: Arc<[LiveFile]>,
    _key_field_ids: &[i32],
    _options: KeyReadOptions,
) -> BoxStream<'static, Result<KeyRows>> {
    let unfinished = Err(Error::unsupported("keys of Iceberg tables cannot be read yet"));
    Box::pin(stream::iter([unfinished]))
}
