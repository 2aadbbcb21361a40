//! Accumulators: what an aggregate function keeps in columns by group. Those that keep more per group than fits in columns read
//! `ValueCounts` or `Arrivals` instead.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType as ArrowType;

use super::rows::Rows;
use crate::error::Result;

/// The state of one call for all groups, by slot.
pub(super) trait Accumulator: Send {
    /// Makes room for slots; new ones are empty.
    fn grow(&mut self, slot_count: usize);

    /// Adds and takes back rows. `values` is the argument, if there is one.
    ///
    /// # Errors
    /// The argument has another type.
    fn update(&mut self, values: Option<&ArrayRef>, rows: &Rows<'_>) -> Result<()>;

    /// Returns the results of groups.
    ///
    /// # Errors
    /// The column cannot be built.
    fn results(&self, slots: &[u32]) -> Result<ArrayRef>;

    /// Empties a group.
    fn clear(&mut self, slot: u32);

    /// Returns the names and types of the columns that a checkpoint keeps.
    fn state_fields(&self) -> Vec<(String, ArrowType)>;

    /// Returns the columns of `state_fields` for groups.
    ///
    /// # Errors
    /// A column cannot be built.
    fn states(&self, slots: &[u32]) -> Result<Vec<ArrayRef>>;

    /// Adds what `states` returned to groups, which are empty where the state is put back. NULL stands for an empty group. What
    /// depends on the order of rows can only be put back.
    ///
    /// # Errors
    /// The columns are others.
    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()>;

    /// Returns how many bytes are allocated.
    fn bytes(&self) -> usize;
}
