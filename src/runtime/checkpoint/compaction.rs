//! Merges segments into one: which, and how.
//!
//! The oldest segment, the base, holds whole tables; those after it are deltas. When the deltas have become as large as the base,
//! all become a new base, so a row is rewritten once for each time that state has been written anew, and files are at most about
//! twice as large as state. Beside little state a few megabytes of deltas are left all the same: they are read in a moment, and to
//! merge them after every other checkpoint takes longer. Between, small deltas are merged among themselves, so that a restore reads
//! few files.

use std::path::Path;

use super::disk::Disk;
use super::manifest::{OperatorState, SegmentEntry};
use super::merge::{MergedTable, TableMerge, key_schema};
use super::segment::Segment;
use super::segment_writer::{BlockBuilder, RowsOf, SegmentWriter};
use crate::error::Result;
use crate::state::GROUP_COUNT;

/// How many segments a checkpoint has before deltas are merged.
const SEGMENTS_MAX: usize = 16;

/// Returns the first of the segments (oldest first) that are to be merged with all that come after it, if that is worth it. Deltas of
/// less than `delta_bytes_min` bytes are left beside the base.
pub(super) fn merge_start(segments: &[SegmentEntry], delta_bytes_min: u64) -> Option<usize> {
    let younger = |at: usize| segments[at + 1..].iter().map(|segment| segment.bytes).sum::<u64>();
    if segments.len() > 1 && segments[0].bytes.max(delta_bytes_min) <= younger(0) {
        return Some(0);
    }
    if segments.len() <= SEGMENTS_MAX {
        return None;
    }
    // No delta is merged with much smaller ones, so that large ones are seldom rewritten.
    (1..segments.len() - 1)
        .find(|at| segments[*at].bytes <= younger(*at))
        .or_else(|| segments.len().checked_sub(2))
}

/// Merges segments (oldest first) into a new file; returns what a manifest says of it. Rows of tables that no operator has any
/// more are left out; with `is_base`, deleted keys too.
pub(super) fn merge_segments(
    disk: &Disk,
    segments: &[Segment],
    operators: &[OperatorState],
    (folder, file): (&Path, String),
    is_base: bool,
) -> Result<SegmentEntry> {
    let first = segments.first().map_or(0, |segment| segment.entry().first);
    let last = segments.last().map_or(0, |segment| segment.entry().last);
    let mut writer = SegmentWriter::create(disk, &folder.join(&file), last)?;
    for operator in operators {
        for table in &operator.tables {
            let merged = MergedTable {
                operator: &operator.uid,
                name: &table.name,
                schema: &table.schema,
                key_count: table.key_count,
                since: table.since,
            };
            writer.begin_table(&operator.uid, &table.name);
            merge_table(segments, merged, is_base, &mut writer)?;
        }
    }
    let (bytes, crc) = writer.finish()?;
    Ok(SegmentEntry { file, bytes, crc, first, last, is_base })
}

fn merge_table(
    segments: &[Segment],
    table: MergedTable<'_>,
    is_base: bool,
    writer: &mut SegmentWriter,
) -> Result<()> {
    let mut merge = TableMerge::new(segments, table, !is_base)?;
    let mut upserts = BlockBuilder::new(RowsOf::Upserts, table.schema);
    let mut deletes = BlockBuilder::new(RowsOf::Deletes, &key_schema(table.schema, table.key_count));
    for group in 0..GROUP_COUNT as u8 {
        let rows = merge.group(group)?;
        for batch in rows.upserts {
            upserts.push(batch, group, writer)?;
        }
        for batch in rows.deletes {
            deletes.push(batch, group, writer)?;
        }
    }
    upserts.flush(writer)?;
    deletes.flush(writer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(bytes: &[u64]) -> Option<usize> {
        let segment = |(number, bytes): (usize, &u64)| SegmentEntry {
            file: String::new(),
            bytes: *bytes,
            crc: 0,
            first: number as u64,
            last: number as u64,
            is_base: number == 0,
        };
        merge_start(&bytes.iter().enumerate().map(segment).collect::<Vec<_>>(), 4)
    }

    #[test]
    fn deltas_as_large_as_the_base_make_a_new_one() {
        assert_eq!(start(&[]), None);
        assert_eq!(start(&[5]), None);
        assert_eq!(start(&[5, 4]), None);
        assert_eq!(start(&[5, 4, 1]), Some(0));
    }

    #[test]
    fn few_bytes_are_left_beside_a_small_base() {
        assert_eq!(start(&[1, 2, 1]), None);
        assert_eq!(start(&[1, 2, 2]), Some(0));
        assert_eq!(start(&[0; SEGMENTS_MAX + 1]), Some(1));
    }

    #[test]
    fn many_small_deltas_become_one() {
        let mut bytes = vec![1_000_000];
        bytes.extend([10; 15]);
        assert_eq!(start(&bytes), None);
        bytes.push(10);
        assert_eq!(start(&bytes), Some(1));
        bytes[1] = 500;
        assert_eq!(start(&bytes), Some(2));
    }

    #[test]
    fn the_number_of_segments_stays_small_and_little_is_rewritten() {
        let mut bytes = vec![1 << 40];
        let mut written = 0;
        for _ in 0..100_000 {
            bytes.push(100);
            if let Some(at) = start(&bytes) {
                let merged = bytes.drain(at..).sum();
                bytes.push(merged);
                written += merged;
            }
            assert!(bytes.len() <= SEGMENTS_MAX + 1);
        }
        assert!(written < 20 * 100 * 100_000, "{written}");
    }
}
