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

/// Flink differs: Iceberg's default is 100, at which a reader opens 100 files to plan a query.
const MIN_COUNT_DEFAULT: usize = 32;
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
