//! Rows that change: the four row kinds, what kinds a node may produce, and batches that carry them.

mod batch;
mod mode;
mod row_kind;

pub use batch::ChangelogBatch;
pub use mode::ChangelogMode;
pub use row_kind::RowKind;
