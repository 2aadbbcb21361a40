//! Which entries of a table's manifests a snapshot takes away: those that the change names, and the delete files that then apply to
//! nothing any more.

use std::collections::{BTreeSet, HashSet};

use iceberg::spec::{DataContentType, ManifestContentType, ManifestEntry, ManifestFile};

use super::FileRemoval;
use crate::connector::iceberg::manifest::{PartitionKey, referenced_data_file};

/// Decides about entries. Data manifests come before those of deletes: what a delete file applies to is known by then.
#[derive(Debug)]
pub(super) struct RemovalFilter {
    removal: FileRemoval,
    missing: BTreeSet<String>,
    removed_data: HashSet<String>,
    removed_sequence_number_min: i64,
    live_sequence_number_min: i64,
}

impl RemovalFilter {
    /// `rewritten_at` is the sequence number of data files that come, if it is an older one.
    pub(super) fn new(removal: FileRemoval, rewritten_at: Option<i64>) -> RemovalFilter {
        let missing = match &removal {
            FileRemoval::Paths(paths) => paths.clone(),
            _ => BTreeSet::new(),
        };
        RemovalFilter {
            removal,
            missing,
            removed_data: HashSet::new(),
            removed_sequence_number_min: i64::MAX,
            live_sequence_number_min: rewritten_at.unwrap_or(i64::MAX),
        }
    }

    /// Notes that a data manifest stays, with what is live in it.
    pub(super) fn note_live(&mut self, manifest: &ManifestFile) {
        if manifest.content == ManifestContentType::Data {
            self.live_sequence_number_min = self.live_sequence_number_min.min(manifest.min_sequence_number);
        }
    }

    /// Returns whether a manifest has to be read.
    pub(super) fn may_take_from(&self, manifest: &ManifestFile) -> bool {
        if !manifest.has_added_files() && !manifest.has_existing_files() {
            return false;
        }
        let named = match &self.removal {
            FileRemoval::Nothing => return false,
            FileRemoval::Everything => true,
            FileRemoval::Partitions(partitions) => {
                partitions.iter().any(|partition| partition.spec_id() == manifest.partition_spec_id)
            }
            FileRemoval::Paths(_) => !self.missing.is_empty(),
        };
        named || (manifest.content == ManifestContentType::Deletes && self.may_be_useless(manifest))
    }

    fn may_be_useless(&self, manifest: &ManifestFile) -> bool {
        let applies_to_removed = manifest.sequence_number >= self.removed_sequence_number_min;
        (!self.removed_data.is_empty() && applies_to_removed)
            || manifest.min_sequence_number < self.live_sequence_number_min
    }

    /// Decides about a live entry.
    pub(super) fn takes(&mut self, spec_id: i32, entry: &ManifestEntry) -> bool {
        let file = &entry.data_file;
        let is_named = match &self.removal {
            FileRemoval::Nothing => false,
            FileRemoval::Everything => true,
            FileRemoval::Partitions(partitions) => {
                partitions.contains(&PartitionKey::of(spec_id, file.partition()))
            }
            FileRemoval::Paths(paths) => {
                self.missing.remove(file.file_path());
                paths.contains(file.file_path())
            }
        };
        let sequence_number = entry.sequence_number.unwrap_or_default();
        if file.content_type() != DataContentType::Data {
            return is_named || self.applies_to_nothing(entry, sequence_number);
        }
        if is_named {
            self.removed_data.insert(file.file_path().to_owned());
            self.removed_sequence_number_min = self.removed_sequence_number_min.min(sequence_number);
        } else {
            self.live_sequence_number_min = self.live_sequence_number_min.min(sequence_number);
        }
        is_named
    }

    /// A delete file applies to nothing if the only data file that it is about goes, or if it is older than all that stays.
    fn applies_to_nothing(&self, entry: &ManifestEntry, sequence_number: i64) -> bool {
        let is_about_removed =
            referenced_data_file(&entry.data_file).is_some_and(|path| self.removed_data.contains(&path));
        is_about_removed || sequence_number < self.live_sequence_number_min
    }

    /// Returns a file that was to be removed and was not found.
    pub(super) fn missing(&self) -> Option<&str> {
        self.missing.first().map(String::as_str)
    }
}
