//! What a job hands over at a checkpoint.
//!
//! State is what has changed since the last call, not the whole: `CheckpointStore` knows what came before.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use arrow::datatypes::FieldRef;

use crate::connector::{CheckpointId, Committable, SourcePosition};
use crate::error::{Error, Result};
use crate::state::{StateChanges, StateTable};

/// A cut through a job: state, positions of sources and what sinks have prepared.
#[derive(Debug, Default)]
pub(crate) struct CheckpointData {
    /// The number that `CheckpointStore::next_number` gave.
    pub(crate) number: CheckpointId,
    /// When the cut was made, in milliseconds since 1970.
    pub(crate) time_ms: i64,
    /// What has changed in each operator that keeps state. All of them, also where nothing has changed.
    pub(crate) operators: Vec<OperatorChanges>,
    /// How far each source had read at the cut, by the uid of its node.
    pub(crate) sources: BTreeMap<String, SourcePosition>,
    /// What each sink's writers have prepared, by the uid of its node.
    pub(crate) committables: BTreeMap<String, Vec<Committable>>,
    /// Whatever else the job wants to find again.
    pub(crate) extra: BTreeMap<String, String>,
}

/// What has changed in the state of an operator.
#[derive(Debug)]
pub(crate) struct OperatorChanges {
    /// The uid of its node.
    pub(crate) uid: String,
    /// What it is, for errors: the name in EXPLAIN.
    pub(crate) kind: String,
    /// Its tables, as `Operator::state_tables` describes them.
    pub(crate) tables: Vec<StateTable>,
    /// What `Operator::take_changes` of each worker returned: per worker one entry per table.
    pub(crate) workers: Vec<Vec<StateChanges>>,
}

impl OperatorChanges {
    /// Returns whether there are any changes.
    pub(super) fn has_rows(&self) -> bool {
        let mut changes = self.workers.iter().flatten();
        changes.any(|changes| changes.upserts.num_rows() + changes.deletes.num_rows() > 0)
    }

    /// Checks that changes have the columns of their tables.
    ///
    /// # Errors
    /// They have not, so that nobody could read them back.
    pub(super) fn check(&self) -> Result<()> {
        let wrong = |what: String| Error::internal(format!("{} '{}' has {what}", self.kind, self.uid));
        for tables in &self.workers {
            if tables.len() != self.tables.len() {
                let (found, expected) = (tables.len(), self.tables.len());
                return Err(wrong(format!("changes of {found} tables, but {expected} tables")));
            }
            for (changes, table) in tables.iter().zip(&self.tables) {
                if !fits(changes, table) {
                    return Err(wrong(format!("changes that do not fit its table '{}'", table.name)));
                }
            }
        }
        Ok(())
    }
}

fn fits(changes: &StateChanges, table: &StateTable) -> bool {
    let columns = table.schema.fields();
    let Some(key) = columns.get(..table.key_count) else { return false };
    rows_fit(&changes.upserts, &changes.upsert_groups, columns)
        && (changes.deletes.num_rows() == 0 || rows_fit(&changes.deletes, &changes.delete_groups, key))
}

fn rows_fit(rows: &RecordBatch, groups: &[u8], columns: &[FieldRef]) -> bool {
    rows.num_rows() == groups.len()
        && rows.num_columns() == columns.len()
        && rows.columns().iter().zip(columns).all(|(column, field)| {
            column.data_type() == field.data_type()
                && (field.is_nullable() || column.logical_null_count() == 0)
        })
}
