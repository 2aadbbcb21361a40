//! How many bytes rows take in memory.

use arrow::array::{Array, ArrayRef, RecordBatch};

/// Returns how many bytes of buffers rows take: those of a slice are counted by its length, whatever it was cut from.
pub(super) fn row_bytes(rows: &RecordBatch) -> usize {
    let column = |column: &ArrayRef| {
        column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_buffer_memory_size())
    };
    rows.columns().iter().map(column).sum()
}
