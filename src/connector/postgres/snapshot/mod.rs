//! What tables hold before their changes are streamed: read in pieces, each of which knows what its snapshot saw. A change of the
//! stream counts exactly if the piece that its row belongs to did not see its transaction.

mod barrier;
mod chunk_key;
mod hand_over;
mod key_chunks;
mod key_value;
mod keyed_snapshot;
mod page_ranges;
mod session;
mod snapshot_reader;
mod table_reading;
mod table_snapshot;
mod visibility;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub(super) use barrier::{all_ended_by, next_transaction, wait_for_begun_transactions};
pub(super) use snapshot_reader::{SnapshotPiece, SnapshotProgress, SnapshotReader, SnapshotTable};
pub(super) use table_snapshot::{Coverage, TableSnapshot};
pub(super) use visibility::{SnapshotXids, widen};
