//! What operators remember: rows under keys, in columns, found by hash.
//!
//! Every operator's state is a few tables. A table has a primary key, and every row belongs to a key group, so that a checkpoint
//! can be restored by another number of workers: what a checkpoint keeps of a table is its rows by key group, and the keys that
//! have gone. How an operator lays the rows out in memory is its own business.

mod arena;
mod hash;
mod key_index;
mod keyed_rows;
mod paged_vec;
mod row_store;
mod row_table;
mod sequenced_rows;
mod slot_tracker;

pub(crate) use arena::Arena;
pub(crate) use hash::{GROUP_COUNT, hash_rows, hash_word, key_group, owner};
pub(crate) use key_index::{
    ABSENT, KeyIndex, compare_narrow, is_narrow, narrow_array, narrow_values, one_nan,
};
pub(crate) use keyed_rows::{KeyedRows, RowChange};
pub(crate) use paged_vec::PagedVec;
pub(crate) use row_store::RowCodec;
pub(crate) use row_table::RowTable;
pub(crate) use sequenced_rows::SequencedRows;
pub(crate) use slot_tracker::SlotTracker;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

/// Describes a table of state.
///
/// Column names are part of what a checkpoint keeps: a restored table is matched by them, so they must not hold numbers that
/// another planning of the same query would choose differently (`stable_names` takes `#12` off).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateTable {
    /// The name, unique within the operator.
    pub name: &'static str,
    /// The columns, those of the primary key first.
    pub schema: SchemaRef,
    /// How many columns the primary key has; none for a table of one row.
    pub key_count: usize,
    /// What the rows stand for, if the operator can find all of them again elsewhere. Where a checkpoint's table stands for something
    /// else, nothing of it is read, and the table begins anew.
    pub derived_from: Option<String>,
}

/// What has changed in a table. A key that is in both parts has been deleted first and then written.
#[derive(Debug, Clone)]
pub struct StateChanges {
    /// Rows as they are now: new and changed ones.
    pub upserts: RecordBatch,
    /// The key group of each.
    pub upsert_groups: Vec<u8>,
    /// The keys that have gone: the primary key's columns.
    pub deletes: RecordBatch,
    /// The key group of each.
    pub delete_groups: Vec<u8>,
}

/// Returns column names for a state schema: what the user calls them, made unique by their place where two are equal.
pub(crate) fn stable_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut taken: Vec<String> = Vec::new();
    for name in names {
        let visible = match name.rsplit_once('#') {
            Some((visible, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => {
                visible
            }
            _ => name,
        };
        let mut unique = visible.to_owned();
        let mut copies = 0;
        while taken.contains(&unique) {
            copies += 1;
            unique = format!("{visible}~{copies}");
        }
        taken.push(unique);
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_the_numbers_of_the_plan_and_stay_unique() {
        assert_eq!(stable_names(["a#1", "b", "a#7", "x#y", "a~1"]), ["a", "b", "a~1", "x#y", "a~1~1"]);
    }
}
