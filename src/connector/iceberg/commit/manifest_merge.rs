//! Which manifests of a table are written anew as one, so that a table that is committed to every few seconds stays quick to plan.
//!
//! Each commit leaves a small manifest or two. Once there are enough small ones, they become one; a larger one joins only if those
//! that are newer have grown to its size together. So sizes rise from the newest to the oldest, an entry is written again a number
//! of times that grows with the logarithm of the table's commits, and old manifests, which readers have cached, stay as they are.

use iceberg::spec::{ManifestContentType, ManifestFile, TableMetadata};

use super::retry_policy::number;
use crate::error::Result;

const ENABLED: &str = "commit.manifest-merge.enabled";
const MIN_COUNT: &str = "commit.manifest.min-count-to-merge";
const TARGET_BYTES: &str = "commit.manifest.target-size-bytes";

/// Flink differs: Iceberg's default is 100. To read a manifest costs as much as fifty of its entries, so a hundred small ones take
/// ten times as long to plan with as the same entries in two; merging five times as often costs a commit next to nothing more, as
/// most of a merge is to open the small ones.
const MIN_COUNT_DEFAULT: usize = 20;
const TARGET_BYTES_DEFAULT: u64 = 8 * 1024 * 1024;

/// When manifests are merged.
#[derive(Debug, Clone, Copy)]
pub(super) struct ManifestMerge {
    is_enabled: bool,
    min_count: usize,
    target_bytes: u64,
}

impl ManifestMerge {
    /// Reads the properties of a table.
    ///
    /// # Errors
    /// One of them is no number.
    pub(super) fn of(metadata: &TableMetadata) -> Result<ManifestMerge> {
        Ok(ManifestMerge {
            is_enabled: metadata
                .properties()
                .get(ENABLED)
                .is_none_or(|text| !text.eq_ignore_ascii_case("false")),
            min_count: number(metadata, MIN_COUNT, MIN_COUNT_DEFAULT)?.max(2),
            target_bytes: number(metadata, TARGET_BYTES, TARGET_BYTES_DEFAULT)?,
        })
    }

    /// Chooses among manifests, newest first, and returns the places of those that become one, group by group.
    pub(super) fn choose(&self, manifests: &[&ManifestFile]) -> Vec<Vec<usize>> {
        if !self.is_enabled {
            return Vec::new();
        }
        let mut kinds: Vec<(i32, ManifestContentType)> = Vec::new();
        for manifest in manifests {
            let kind = (manifest.partition_spec_id, manifest.content);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        let groups = kinds.into_iter().map(|(spec_id, content)| {
            let is_in =
                |at: &usize| manifests[*at].partition_spec_id == spec_id && manifests[*at].content == content;
            let mut places: Vec<usize> = (0..manifests.len()).filter(is_in).collect();
            places.sort_by_key(|at| std::cmp::Reverse(manifests[*at].sequence_number));
            self.choose_of_one_kind(&places, |at| size(manifests[at]))
        });
        groups.filter(|group| group.len() > 1).collect()
    }

    fn choose_of_one_kind(&self, places: &[usize], size: impl Fn(usize) -> u64) -> Vec<usize> {
        let small: Vec<usize> = places.iter().copied().filter(|at| size(*at) < self.target_bytes).collect();
        if small.len() < self.min_count {
            return Vec::new();
        }
        // Where sizes go up and down the rule may find few; there is an end to waiting.
        let taken_anyway = if small.len() >= 2 * self.min_count { self.min_count } else { 1 };
        let mut chosen = Vec::new();
        let mut bytes = 0;
        for at in small {
            let next = size(at);
            if chosen.len() >= taken_anyway && next > bytes {
                break;
            }
            if !chosen.is_empty() && bytes + next > self.target_bytes {
                return chosen;
            }
            bytes += next;
            chosen.push(at);
        }
        if chosen.len() < self.min_count { Vec::new() } else { chosen }
    }
}

fn size(manifest: &ManifestFile) -> u64 {
    u64::try_from(manifest.manifest_length).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(sequence_number: i64, length: i64, spec: i32, content: ManifestContentType) -> ManifestFile {
        ManifestFile {
            manifest_path: String::new(),
            manifest_length: length,
            partition_spec_id: spec,
            content,
            sequence_number,
            min_sequence_number: 1,
            added_snapshot_id: 1,
            added_files_count: Some(1),
            existing_files_count: Some(0),
            deleted_files_count: Some(0),
            added_rows_count: Some(1),
            existing_rows_count: Some(0),
            deleted_rows_count: Some(0),
            partitions: None,
            key_metadata: None,
            first_row_id: None,
        }
    }

    fn policy(min_count: usize, target_bytes: u64) -> ManifestMerge {
        ManifestMerge { is_enabled: true, min_count, target_bytes }
    }

    const NONE: [Vec<usize>; 0] = [];

    /// Chooses among manifests of one kind, given their sizes from the newest on.
    fn chosen(policy: ManifestMerge, sizes: &[i64]) -> Vec<Vec<usize>> {
        let data =
            |(nth, size): (usize, &i64)| manifest(100 - nth as i64, *size, 0, ManifestContentType::Data);
        let manifests: Vec<ManifestFile> = sizes.iter().enumerate().map(data).collect();
        policy.choose(&manifests.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_larger_manifest_joins_when_the_newer_ones_have_its_size_together() {
        assert_eq!(chosen(policy(3, 1000), &[10, 10]), NONE);
        assert_eq!(chosen(policy(3, 1000), &[10, 10, 10]), [vec![0, 1, 2]]);
        assert_eq!(chosen(policy(3, 1000), &[10, 10, 10, 31]), [vec![0, 1, 2]]);
        assert_eq!(chosen(policy(3, 1000), &[10, 10, 10, 30, 60]), [vec![0, 1, 2, 3, 4]]);
        assert_eq!(chosen(policy(3, 1000), &[10, 10, 60, 60]), NONE);
    }

    #[test]
    fn waiting_for_equal_sizes_has_an_end() {
        assert_eq!(chosen(policy(3, 1000), &[1, 10, 1, 10, 100]), NONE);
        assert_eq!(chosen(policy(3, 1000), &[1, 10, 1, 10, 100, 300]), [vec![0, 1, 2, 3]]);
    }

    #[test]
    fn no_merged_manifest_is_larger_than_the_target() {
        assert_eq!(chosen(policy(3, 100), &[40, 40, 40, 100, 5]), [vec![0, 1]]);
        assert_eq!(chosen(policy(3, 100), &[99, 99, 99]), NONE);
        assert_eq!(chosen(ManifestMerge { is_enabled: false, ..policy(2, 100) }, &[1; 9]), NONE);
    }

    #[test]
    fn kinds_are_merged_apart_and_from_the_newest_on() {
        use ManifestContentType::{Data, Deletes};
        let all = [
            manifest(1, 10, 0, Data),
            manifest(5, 10, 0, Deletes),
            manifest(3, 10, 0, Data),
            manifest(4, 10, 1, Data),
            manifest(6, 10, 0, Deletes),
        ];
        let groups = policy(2, 1000).choose(&all.iter().collect::<Vec<_>>());
        assert_eq!(groups, [vec![2, 0], vec![4, 1]]);
    }

    #[test]
    fn a_stream_of_commits_leaves_few_manifests_and_writes_each_entry_few_times() {
        let policy = policy(MIN_COUNT_DEFAULT, TARGET_BYTES_DEFAULT);
        let entry = 800;
        let (mut sizes, mut most, mut rewritten): (Vec<i64>, usize, i64) = (Vec::new(), 0, 0);
        let commits = 20_000;
        for _ in 0..commits {
            sizes.insert(0, entry);
            if let Some(group) = chosen(policy, &sizes).first() {
                let bytes: i64 = group.iter().map(|at| sizes[*at]).sum();
                rewritten += bytes;
                sizes.drain(..group.len());
                sizes.insert(0, bytes);
            }
            most = most.max(sizes.len());
        }
        assert!(most <= 31, "{most}");
        let times = rewritten as f64 / (commits * entry) as f64;
        assert!(times < 11.0, "{times}");
    }
}
