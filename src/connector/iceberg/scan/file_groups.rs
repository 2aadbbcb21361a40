//! Deals the bytes of a scan's files out to partitions: each gets about the same share, as neighbouring files or row groups of them.

use datafusion::datasource::listing::{FileRange, PartitionedFile};
use datafusion::datasource::physical_plan::FileGroup;

/// Files below this size are not divided.
const DIVIDED_BYTES_MIN: u64 = 4 << 20;

/// Deals files out. `row_groups` tells where the row groups of a file begin, if that is known.
pub(super) fn deal(
    files: Vec<PartitionedFile>,
    row_groups: impl Fn(&PartitionedFile) -> Option<Vec<i64>>,
    partitions: usize,
) -> Vec<FileGroup> {
    if partitions <= 1 || files.is_empty() {
        return vec![FileGroup::new(files)];
    }
    let total: u64 = files.iter().map(|file| file.object_meta.size.max(1)).sum();
    let share = total.div_ceil(partitions as u64).max(1);
    let mut groups: Vec<Vec<PartitionedFile>> = vec![Vec::new(); partitions];
    let mut before = 0_u64;
    for file in files {
        let size = file.object_meta.size.max(1);
        for (start, end) in pieces(size, row_groups(&file)) {
            // The middle of a piece says whose it is.
            let group = usize::try_from((before + start + (end - start) / 2) / share).unwrap_or_default();
            add(&mut groups[group.min(partitions - 1)], &file, start, end, size);
        }
        before += size;
    }
    groups.into_iter().filter(|group| !group.is_empty()).map(FileGroup::new).collect()
}

/// Returns the parts into which a file may be divided.
fn pieces(size: u64, row_groups: Option<Vec<i64>>) -> Vec<(u64, u64)> {
    if size < DIVIDED_BYTES_MIN {
        return vec![(0, size)];
    }
    let mut cuts = vec![0];
    match row_groups {
        Some(offsets) => cuts.extend(
            offsets.iter().skip(1).filter_map(|offset| u64::try_from(*offset).ok()).filter(|cut| *cut < size),
        ),
        None => cuts.extend((1..size / DIVIDED_BYTES_MIN).map(|part| part * DIVIDED_BYTES_MIN)),
    }
    cuts.sort_unstable();
    cuts.dedup();
    let ends = cuts.iter().skip(1).copied().chain([size]);
    cuts.iter().copied().zip(ends).collect()
}

/// Adds a part of a file to a group, together with the part before it.
fn add(group: &mut Vec<PartitionedFile>, file: &PartitionedFile, start: u64, end: u64, size: u64) {
    let (from, to) = (start.cast_signed(), end.cast_signed());
    if let Some(last) = group.last_mut()
        && last.object_meta.location == file.object_meta.location
        && let Some(range) = &mut last.range
        && range.end == from
    {
        range.end = to;
        if range.start == 0 && end == size {
            last.range = None;
        }
        return;
    }
    let mut part = file.clone();
    part.range = (start != 0 || end != size).then_some(FileRange { start: from, end: to });
    group.push(part);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEGABYTE: u64 = 1 << 20;

    fn dealt(sizes: &[u64], row_groups: Option<&[i64]>, partitions: usize) -> Vec<Vec<(String, u64, u64)>> {
        let files =
            sizes.iter().enumerate().map(|(place, size)| PartitionedFile::new(format!("f{place}"), *size));
        let groups = deal(files.collect(), |_| row_groups.map(<[i64]>::to_vec), partitions);
        let part = |file: &PartitionedFile| {
            let (start, end) = file.range();
            (file.path().to_string(), start / MEGABYTE, end / MEGABYTE)
        };
        groups.iter().map(|group| group.iter().map(part).collect()).collect()
    }

    fn whole(name: &str, size: u64) -> (String, u64, u64) {
        (name.to_owned(), 0, size)
    }

    #[test]
    fn one_partition_takes_the_files_in_their_order() {
        let groups = dealt(&[3 * MEGABYTE, 90 * MEGABYTE], None, 1);
        assert_eq!(groups, [[whole("f0", 3), whole("f1", 90)]]);
        assert_eq!(dealt(&[], None, 1), [[]; 1]);
    }

    #[test]
    fn large_files_are_divided_at_row_groups() {
        let offsets: Vec<i64> = [0, 40, 80].iter().map(|offset| offset * MEGABYTE as i64).collect();
        let groups = dealt(&[100 * MEGABYTE], Some(&offsets), 2);
        assert_eq!(groups, [[("f0".to_owned(), 0, 40)], [("f0".to_owned(), 40, 100)]]);
        let groups = dealt(&[100 * MEGABYTE], Some(&offsets[..1]), 2);
        assert_eq!(groups.concat(), [whole("f0", 100)]);
    }

    #[test]
    fn small_files_stay_whole_and_shares_are_about_equal() {
        let groups = dealt(&[MEGABYTE; 9], None, 2);
        assert_eq!(groups.len(), 2);
        assert!(groups.iter().all(|group| group.len() >= 4), "{groups:?}");
    }

    #[test]
    fn files_without_known_row_groups_are_divided_by_bytes() {
        let groups = dealt(&[64 * MEGABYTE], None, 4);
        assert_eq!(groups.len(), 4);
        assert_eq!(groups[0], [("f0".to_owned(), 0, 16)]);
        assert_eq!(groups[3], [("f0".to_owned(), 48, 64)]);
    }
}
