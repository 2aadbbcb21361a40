//! Which rows a commit has to delete beyond those that were looked up for it: rows that others have added or moved since.
//!
//! A commit comes after everything that is in the table when it lands, so its keys replace the rows of others' commits, too. Only data
//! files that came after the lookup can hold such rows, and where there are none nothing is read. Files of our own that landed since
//! are among them if there are any; their rows of these keys are deleted already, and deleting a row twice does no harm.
//!
//! Without a key a row goes instead of each that is not where it was looked up: others have moved it with its file, or have taken it
//! away for themselves. It is one of the files that came, or else any equal row that nobody takes yet, if there is one.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use futures::TryStreamExt;

use super::index_sync::{has_deletes, row_number, wanted_keys};
use super::indexed_files::IndexedFiles;
use super::known_snapshot::Newer;
use super::replaced_rows::{Lookup, ReplacedRow, ReplacedRows};
use super::row_identity::{RowIdentity, row_hash_of};
use crate::connector::iceberg::manifest::TableFile;
use crate::connector::iceberg::scan::{FileDeletes, LiveFile, live_files, read_keys};
use crate::connector::iceberg::snapshot_history::head;
use crate::connector::iceberg::table::IcebergTable;
use crate::connector::iceberg::write::position_delete_writer::DeletedRows;
use crate::error::Result;
use crate::state::{ABSENT, KeyIndex};

/// A committable that replaces rows.
#[derive(Debug, Clone)]
pub(in crate::connector::iceberg::write) struct PreparedUpsert {
    /// Where the rows were looked up.
    pub(in crate::connector::iceberg::write) lookup: Lookup,
    /// New rows.
    pub(in crate::connector::iceberg::write) data: Vec<TableFile>,
    /// Deletes of the rows that were found.
    pub(in crate::connector::iceberg::write) deletes: Vec<TableFile>,
}

/// What a commit does to a table as it is now.
#[derive(Debug, Default)]
pub(in crate::connector::iceberg::write) struct Resolution {
    /// The prepared files of deletes, without those whose data file has gone.
    pub(in crate::connector::iceberg::write) deletes: Vec<TableFile>,
    /// Rows that are to be deleted beyond them.
    pub(in crate::connector::iceberg::write) more: Vec<DeletedRows>,
}

/// Resolves the deletes of committables, again for every attempt.
#[derive(Debug)]
pub(in crate::connector::iceberg::write) struct DeleteResolver<'a> {
    identity: &'a RowIdentity,
    prepared: Vec<&'a PreparedUpsert>,
    branch: Option<&'a str>,
    /// Rows that later commits take away one by one.
    reserved: HashSet<(i64, u32)>,
    /// Per committable its keys, once they were needed.
    keys: Vec<Option<KeyIndex>>,
    /// Per committable and file the rows that were found. A file never changes.
    found: HashMap<(usize, String), Vec<u64>>,
}

impl<'a> DeleteResolver<'a> {
    /// Makes a resolver for what is committed together; `later` are those that will be committed after it.
    pub(in crate::connector::iceberg::write) fn new(
        identity: &'a RowIdentity,
        prepared: Vec<&'a PreparedUpsert>,
        later: impl Iterator<Item = &'a PreparedUpsert>,
        branch: Option<&'a str>,
    ) -> DeleteResolver<'a> {
        let keys = prepared.iter().map(|_| None).collect();
        let reserved = prepared.iter().copied().chain(later).flat_map(single_rows).collect();
        DeleteResolver { identity, prepared, branch, reserved, keys, found: HashMap::new() }
    }

    /// Resolves the deletes for a table.
    ///
    /// # Errors
    /// The table cannot be read.
    pub(in crate::connector::iceberg::write) async fn resolve(
        &mut self,
        table: &IcebergTable,
    ) -> Result<Resolution> {
        let metadata = table.metadata();
        let head = head(metadata, self.branch);
        let head_id = head.map(|head| head.snapshot_id());
        let all = self.prepared.iter().flat_map(|prepared| &prepared.deletes).cloned().collect();
        if self.prepared.iter().all(|prepared| prepared.lookup.base.id == head_id) {
            return Ok(Resolution { deletes: all, more: Vec::new() });
        }
        let live = match head_id {
            Some(id) => live_files(table, Some(id)).await?,
            None => Vec::new(),
        };
        let own = self.prepared.iter().flat_map(|prepared| &prepared.data);
        let present: HashSet<i64> = live
            .iter()
            .map(|file| file.data.file.file_path())
            .chain(own.map(|file| file.file.file_path()))
            .map(IndexedFiles::hash_of)
            .collect();
        let is_needed = |delete: &TableFile| match delete.file.referenced_data_file() {
            Some(path) => present.contains(&IndexedFiles::hash_of(&path)),
            None => true,
        };
        let mut more: BTreeMap<String, (Arc<TableFile>, Vec<u64>)> = BTreeMap::new();
        let mut taken = self.reserved.clone();
        for at in 0..self.prepared.len() {
            let base = self.prepared[at].lookup.base;
            let since = match base.newer(metadata, head) {
                Newer::Rewound => -1,
                Newer::Snapshots(_) | Newer::Expired => base.sequence_number,
            };
            let found = match self.identity.is_key() {
                true => {
                    let new = live.iter().filter(|file| file.file_sequence_number > since);
                    self.rows_of_keys(table, at, new.cloned().collect()).await?
                }
                false => self.moved_rows(table, at, &live, since, &present, &mut taken).await?,
            };
            for (file, rows) in found {
                let path = file.file.file_path().to_owned();
                more.entry(path).or_insert_with(|| (file, Vec::new())).1.extend(rows);
            }
        }
        let more = more.into_iter().map(|(path, (file, positions))| deleted_rows(path, &file, positions));
        let deletes = self.prepared.iter().flat_map(|prepared| &prepared.deletes);
        Ok(Resolution {
            deletes: deletes.filter(|delete| is_needed(delete)).cloned().collect(),
            more: more.collect(),
        })
    }

    /// Finds the rows of a committable's keys in files.
    async fn rows_of_keys(
        &mut self,
        table: &IcebergTable,
        at: usize,
        files: Vec<LiveFile>,
    ) -> Result<Vec<(Arc<TableFile>, Vec<u64>)>> {
        let path = |file: &LiveFile| (at, file.data.file.file_path().to_owned());
        let unread: Vec<LiveFile> =
            files.iter().filter(|file| !self.found.contains_key(&path(file))).cloned().collect();
        if !unread.is_empty() {
            if self.keys[at].is_none() {
                self.keys[at] = Some(keys_of(table, self.identity, self.prepared[at]).await?);
            }
            let Some(keys) = &self.keys[at] else { return Ok(Vec::new()) };
            let mut rows_by_file: Vec<Vec<u64>> = vec![Vec::new(); unread.len()];
            if keys.slot_count() > 0 {
                let all: Vec<u32> = (0..keys.slot_count() as u32).collect();
                let wanted = wanted_keys(table, self.identity, keys.columns(&all)?)?;
                let mut read = read_keys(table, unread.as_slice().into(), &self.identity.ids(), Some(wanted));
                let mut slots = Vec::new();
                while let Some(rows) = read.try_next().await? {
                    let found = self.identity.of_read(rows.keys.columns(), rows.keys.num_rows())?;
                    keys.find(&found.keys, &found.hashes, &mut slots)?;
                    let hits = slots.iter().zip(rows.positions.values()).filter(|(slot, _)| **slot != ABSENT);
                    rows_by_file[rows.file].extend(hits.map(|(_, position)| *position as u64));
                }
            }
            for (file, rows) in unread.iter().zip(rows_by_file) {
                self.found.insert(path(file), rows);
            }
        }
        let found = files.into_iter().filter_map(|file| {
            let rows = self.found.get(&path(&file)).filter(|rows| !rows.is_empty())?;
            Some((file.data, rows.clone()))
        });
        Ok(found.collect())
    }

    /// Finds rows equal to those that a committable takes away and that are gone by now, one for each.
    async fn moved_rows(
        &self,
        table: &IcebergTable,
        at: usize,
        live: &[LiveFile],
        since: i64,
        present: &HashSet<i64>,
        taken: &mut HashSet<(i64, u32)>,
    ) -> Result<Vec<(Arc<TableFile>, Vec<u64>)>> {
        let mut missing: HashMap<i128, usize> = HashMap::new();
        let moved = self.prepared[at].lookup.replaced.rows_outside(present);
        let deleted = self.rows_deleted_since(table, at, live, since).await?;
        for row in moved.iter().chain(&deleted) {
            *missing.entry(row.hash).or_default() += 1;
        }
        // What was moved is in the files that came, and only a row that another has taken away is to be looked for in all.
        let (new, old): (Vec<LiveFile>, Vec<LiveFile>) =
            live.iter().cloned().partition(|file| file.file_sequence_number > since);
        let mut found = Vec::new();
        for files in [new, old] {
            if missing.values().any(|count| *count > 0) {
                found.extend(self.equal_rows(table, files, &mut missing, taken).await?);
            }
        }
        let lost: usize = missing.values().sum();
        if lost > 0 {
            tracing::warn!(table = %table.ident(), rows = lost, "rows that a commit takes away are gone already");
        }
        Ok(found)
    }

    /// Returns the rows that a committable takes away, and that others have deleted since from files that are still there.
    async fn rows_deleted_since(
        &self,
        table: &IcebergTable,
        at: usize,
        live: &[LiveFile],
        since: i64,
    ) -> Result<Vec<ReplacedRow>> {
        let ReplacedRows::Rows(replaced) = &self.prepared[at].lookup.replaced else { return Ok(Vec::new()) };
        let wanted: HashSet<i64> = replaced.iter().map(|row| row.file).collect();
        let is_touched =
            |file: &&LiveFile| wanted.contains(&hash_of(file)) && has_deletes(file, &|number| number > since);
        let touched: Vec<LiveFile> = live.iter().filter(is_touched).cloned().collect();
        if touched.is_empty() {
            return Ok(Vec::new());
        }
        let hashes: Vec<i64> = touched.iter().map(hash_of).collect();
        let among: HashSet<i64> = hashes.iter().copied().collect();
        let of_touched = replaced.iter().filter(|row| among.contains(&row.file));
        let mut gone: HashMap<(i64, u32), ReplacedRow> =
            of_touched.map(|row| ((row.file, row.row), *row)).collect();
        let mut read = read_keys(table, touched.into(), &self.identity.ids(), None);
        while let Some(rows) = read.try_next().await? {
            for position in rows.positions.values() {
                gone.remove(&(hashes[rows.file], row_number(*position)?));
            }
        }
        Ok(gone.into_values().collect())
    }

    /// Takes rows of files that are equal to missing ones, as many as are missing.
    async fn equal_rows(
        &self,
        table: &IcebergTable,
        files: Vec<LiveFile>,
        missing: &mut HashMap<i128, usize>,
        taken: &mut HashSet<(i64, u32)>,
    ) -> Result<Vec<(Arc<TableFile>, Vec<u64>)>> {
        let mut found: Vec<Vec<u64>> = vec![Vec::new(); files.len()];
        let hashes: Vec<i64> = files.iter().map(hash_of).collect();
        let mut read = read_keys(table, files.as_slice().into(), &self.identity.ids(), None);
        while let Some(rows) = read.try_next().await? {
            let identified = self.identity.of_read(rows.keys.columns(), rows.keys.num_rows())?;
            for (row, position) in rows.positions.values().iter().enumerate() {
                let Some(count) = missing.get_mut(&row_hash_of(&identified, row)).filter(|count| **count > 0)
                else {
                    continue;
                };
                if taken.insert((hashes[rows.file], row_number(*position)?)) {
                    *count -= 1;
                    found[rows.file].push(*position as u64);
                }
            }
        }
        Ok(files.into_iter().map(|file| file.data).zip(found).filter(|(_, rows)| !rows.is_empty()).collect())
    }
}

/// Returns the hash by which a file is known.
fn hash_of(file: &LiveFile) -> i64 {
    IndexedFiles::hash_of(file.data.file.file_path())
}

/// Returns the rows that a committable takes away one by one.
fn single_rows(prepared: &PreparedUpsert) -> Vec<(i64, u32)> {
    match &prepared.lookup.replaced {
        ReplacedRows::Rows(rows) => rows.iter().map(|row| (row.file, row.row)).collect(),
        ReplacedRows::Keys(_) => Vec::new(),
    }
}

/// Returns all keys that a committable touches: those that are gone, and those of its own rows.
async fn keys_of(
    table: &IcebergTable,
    identity: &RowIdentity,
    prepared: &PreparedUpsert,
) -> Result<KeyIndex> {
    let mut index = KeyIndex::new(&identity.key_types())?;
    let mut slots = Vec::new();
    if let ReplacedRows::Keys(keys) = &prepared.lookup.replaced {
        let found = identity.of_read(keys.columns(), keys.num_rows())?;
        index.intern(&found.keys, &found.hashes, &mut slots)?;
    }
    let own = prepared.data.iter().map(|file| LiveFile {
        data: Arc::new(file.clone()),
        data_sequence_number: 0,
        file_sequence_number: 0,
        snapshot_id: 0,
        deletes: FileDeletes::default(),
    });
    let mut read = read_keys(table, own.collect(), &identity.ids(), None);
    while let Some(rows) = read.try_next().await? {
        let found = identity.of_read(rows.keys.columns(), rows.keys.num_rows())?;
        index.intern(&found.keys, &found.hashes, &mut slots)?;
    }
    Ok(index)
}

fn deleted_rows(path: String, file: &TableFile, mut positions: Vec<u64>) -> DeletedRows {
    positions.sort_unstable();
    positions.dedup();
    DeletedRows { path, spec_id: file.spec_id, partition: file.file.partition().clone(), positions }
}
