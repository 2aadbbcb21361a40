//! What a snapshot's summary says: what came and went, and what the table holds then, under the keys that Iceberg's own writers use.

use std::collections::{BTreeMap, HashMap, HashSet};

use iceberg::spec::{DataContentType, DataFile, DataFileFormat, Summary};

use crate::connector::iceberg::manifest::PartitionKey;

/// Counters of the table, with those that add to them and take from them.
const TOTALS: &[(&str, &str, &str)] = &[
    ("total-data-files", "added-data-files", "deleted-data-files"),
    ("total-delete-files", "added-delete-files", "removed-delete-files"),
    ("total-records", "added-records", "deleted-records"),
    ("total-files-size", "added-files-size", "removed-files-size"),
    ("total-position-deletes", "added-position-deletes", "removed-position-deletes"),
    ("total-equality-deletes", "added-equality-deletes", "removed-equality-deletes"),
];

/// Counts what a snapshot changes.
#[derive(Debug, Default)]
pub(super) struct SummaryCounts {
    counts: BTreeMap<&'static str, u64>,
    partitions: HashSet<PartitionKey>,
}

impl SummaryCounts {
    /// Counts a file that comes.
    pub(super) fn add(&mut self, spec_id: i32, file: &DataFile) {
        self.partitions.insert(PartitionKey::of(spec_id, file.partition()));
        self.count("added-files-size", content_size(file));
        let records = file.record_count();
        match file.content_type() {
            DataContentType::Data => {
                self.count("added-data-files", 1);
                self.count("added-records", records);
                return;
            }
            DataContentType::PositionDeletes if is_deletion_vector(file) => self.count("added-dvs", 1),
            DataContentType::PositionDeletes => self.count("added-position-delete-files", 1),
            DataContentType::EqualityDeletes => {
                self.count("added-equality-delete-files", 1);
                self.count("added-equality-deletes", records);
            }
        }
        self.count("added-delete-files", 1);
        if file.content_type() == DataContentType::PositionDeletes {
            self.count("added-position-deletes", records);
        }
    }

    /// Counts a file that goes.
    pub(super) fn remove(&mut self, spec_id: i32, file: &DataFile) {
        self.partitions.insert(PartitionKey::of(spec_id, file.partition()));
        self.count("removed-files-size", content_size(file));
        let records = file.record_count();
        match file.content_type() {
            DataContentType::Data => {
                self.count("deleted-data-files", 1);
                self.count("deleted-records", records);
                return;
            }
            DataContentType::PositionDeletes if is_deletion_vector(file) => self.count("removed-dvs", 1),
            DataContentType::PositionDeletes => self.count("removed-position-delete-files", 1),
            DataContentType::EqualityDeletes => {
                self.count("removed-equality-delete-files", 1);
                self.count("removed-equality-deletes", records);
            }
        }
        self.count("removed-delete-files", 1);
        if file.content_type() == DataContentType::PositionDeletes {
            self.count("removed-position-deletes", records);
        }
    }

    /// Sets how many manifests are new, are those of the snapshot before, and were replaced.
    pub(super) fn set_manifests(&mut self, created: usize, kept: usize, replaced: usize) {
        self.counts.insert("manifests-created", created as u64);
        self.counts.insert("manifests-kept", kept as u64);
        self.counts.insert("manifests-replaced", replaced as u64);
    }

    /// Returns whether a counter is above zero.
    pub(super) fn has(&self, key: &str) -> bool {
        self.counts.get(key).is_some_and(|count| *count > 0)
    }

    /// Writes the summary. `own` is what the writer says; it cannot replace counters. Without a total in the summary before, as some
    /// engine left it, there is none in this one.
    pub(super) fn build(
        &self,
        before: Option<&Summary>,
        own: BTreeMap<String, String>,
    ) -> HashMap<String, String> {
        let mut summary: HashMap<String, String> = own.into_iter().collect();
        // The operation stands beside these in the same JSON object.
        summary.remove("operation");
        summary.insert("engine-name".to_owned(), "lakehead".to_owned());
        summary.insert("engine-version".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        summary.insert("changed-partition-count".to_owned(), self.partitions.len().to_string());
        let always = |key: &str| key.starts_with("manifests-");
        for (key, count) in self.counts.iter().filter(|(key, count)| **count > 0 || always(key)) {
            summary.insert((*key).to_owned(), count.to_string());
        }
        for (total, added, removed) in TOTALS {
            let base = match before {
                None => Some(0),
                Some(before) => before.additional_properties.get(*total).and_then(|text| text.parse().ok()),
            };
            let change = |key| self.counts.get(key).copied().unwrap_or(0);
            let after = base.and_then(|base: u64| (base + change(*added)).checked_sub(change(*removed)));
            match after {
                Some(after) => summary.insert((*total).to_owned(), after.to_string()),
                None => summary.remove(*total),
            };
        }
        summary
    }

    fn count(&mut self, key: &'static str, by: u64) {
        *self.counts.entry(key).or_default() += by;
    }
}

fn is_deletion_vector(file: &DataFile) -> bool {
    file.file_format() == DataFileFormat::Puffin
}

/// Returns the bytes that an entry stands for: of a deletion vector, its part of the file.
fn content_size(file: &DataFile) -> u64 {
    let part = if is_deletion_vector(file) { file.content_size_in_bytes() } else { None };
    part.and_then(|size| u64::try_from(size).ok()).unwrap_or_else(|| file.file_size_in_bytes())
}
