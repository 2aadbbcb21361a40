//! How many bytes rows take in memory, and how many rows are copied at a time.

use arrow::array::{Array, ArrayRef, RecordBatch};

/// The rows of a piece: so few that what was copied is still in the processor's cache when it is used.
const PIECE_ROWS: usize = 1 << 13;

/// About how many bytes a piece has at most: large values come in fewer rows.
const PIECE_BYTES: usize = 4 << 20;

/// Returns how many bytes of buffers rows take: those of a slice are counted by its length, whatever it was cut from.
pub(super) fn row_bytes(rows: &RecordBatch) -> usize {
    rows.columns().iter().map(column_bytes).sum()
}

/// Returns the same of a column.
pub(super) fn column_bytes(column: &ArrayRef) -> usize {
    column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_buffer_memory_size())
}

/// Returns how many rows are copied or read at a time, where so many rows have so many bytes.
pub(super) fn piece_rows(bytes: usize, row_count: usize) -> usize {
    (PIECE_BYTES / (bytes / row_count.max(1)).max(1)).clamp(1, PIECE_ROWS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_rows_come_in_small_pieces() {
        assert_eq!(piece_rows(0, 0), PIECE_ROWS);
        assert_eq!(piece_rows(100 * 1_000, 1_000), PIECE_ROWS);
        assert_eq!(piece_rows(20_480 * 1_000, 1_000), 204);
        assert_eq!(piece_rows(1 << 30, 1), 1);
    }
}
