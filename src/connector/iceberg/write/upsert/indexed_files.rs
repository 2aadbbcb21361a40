//! The data files that an index points into, by number.
//!
//! A file that has left the table, or whose rows others have deleted, is dead: what points into it means nothing any more, and is
//! dropped when its key is touched, or when too much of the index is of that kind. So nothing has to be searched for when a file goes.
//! In a checkpoint a file is known by the hash of its path, since each writer has numbers of its own and the next run may have other
//! writers.
//!
//! A number is given to another file once its own is dead and nothing points into it: only as many are in use as files are live, and
//! files that are not yet forgotten.

use std::collections::HashMap;

use iceberg::spec::{Literal, PrimitiveLiteral, Struct};
use xxhash_rust::xxh3::xxh3_64;

use crate::connector::iceberg::manifest::TableFile;

/// Files by number.
#[derive(Debug, Default)]
pub(super) struct IndexedFiles {
    files: Vec<IndexedFile>,
    /// Numbers that no file has.
    free: Vec<u32>,
    /// The live files by the hash of their path.
    by_hash: HashMap<i64, u32>,
    live_positions: usize,
    dead_positions: usize,
    /// What the locations take.
    location_bytes: usize,
}

/// A file.
#[derive(Debug)]
struct IndexedFile {
    hash: i64,
    /// None until a file that a checkpoint names has been found in the table, and once it is dead.
    location: Option<FileLocation>,
    /// How many positions point into it.
    positions: usize,
    is_live: bool,
}

/// Where a data file is: what a delete of its rows has to say.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FileLocation {
    /// Its path.
    pub(super) path: String,
    /// Its partition spec.
    pub(super) spec_id: i32,
    /// Its partition.
    pub(super) partition: Struct,
}

impl FileLocation {
    /// Returns where a file of a table is.
    pub(super) fn of(file: &TableFile) -> FileLocation {
        FileLocation {
            path: file.file.file_path().to_owned(),
            spec_id: file.spec_id,
            partition: file.file.partition().clone(),
        }
    }

    fn bytes(&self) -> usize {
        let value = |value: &Option<Literal>| match value {
            Some(Literal::Primitive(PrimitiveLiteral::String(text))) => text.capacity(),
            Some(Literal::Primitive(PrimitiveLiteral::Binary(bytes))) => bytes.capacity(),
            _ => 0,
        };
        let fields = self.partition.fields();
        self.path.capacity() + size_of_val(fields) + fields.iter().map(value).sum::<usize>()
    }
}

impl IndexedFiles {
    /// Returns the hash by which a checkpoint knows a file.
    pub(super) fn hash_of(path: &str) -> i64 {
        xxh3_64(path.as_bytes()) as i64
    }

    /// Adds a file, which takes the place of an earlier one of the same path.
    pub(super) fn add(&mut self, file: &TableFile) -> u32 {
        let location = FileLocation::of(file);
        let hash = IndexedFiles::hash_of(&location.path);
        if let Some(earlier) = self.by_hash.get(&hash) {
            self.kill(*earlier);
        }
        self.push(hash, Some(location))
    }

    /// Returns the number of a file that a checkpoint names.
    pub(super) fn restore(&mut self, hash: i64) -> u32 {
        match self.by_hash.get(&hash) {
            Some(known) => *known,
            None => self.push(hash, None),
        }
    }

    fn push(&mut self, hash: i64, location: Option<FileLocation>) -> u32 {
        self.location_bytes += location.as_ref().map_or(0, FileLocation::bytes);
        let file = IndexedFile { hash, location, positions: 0, is_live: true };
        let number = match self.free.pop() {
            Some(number) => {
                self.files[number as usize] = file;
                number
            }
            None => {
                self.files.push(file);
                self.files.len() as u32 - 1
            }
        };
        self.by_hash.insert(hash, number);
        number
    }

    /// Returns the number of a live file by its path.
    pub(super) fn number_of(&self, path: &str) -> Option<u32> {
        self.by_hash.get(&IndexedFiles::hash_of(path)).copied()
    }

    /// Says where a file is.
    pub(super) fn locate(&mut self, number: u32, file: &TableFile) {
        let known = &mut self.files[number as usize];
        if known.location.is_none() {
            let location = FileLocation::of(file);
            self.location_bytes += location.bytes();
            known.location = Some(location);
        }
    }

    /// Returns whether files are live of which nobody has said where they are.
    pub(super) fn has_unlocated(&self) -> bool {
        self.by_hash.values().any(|number| self.files[*number as usize].location.is_none())
    }

    /// Returns where a file is.
    pub(super) fn location(&self, number: u32) -> Option<&FileLocation> {
        self.files[number as usize].location.as_ref()
    }

    /// Returns the hash of a file's path.
    pub(super) fn hash(&self, number: u32) -> i64 {
        self.files[number as usize].hash
    }

    /// Returns whether what points into a file means anything.
    #[inline]
    pub(super) fn is_live(&self, number: u32) -> bool {
        self.files[number as usize].is_live
    }

    /// Returns the numbers of the live files.
    pub(super) fn live(&self) -> Vec<u32> {
        let mut live: Vec<u32> = self.by_hash.values().copied().collect();
        live.sort_unstable();
        live
    }

    /// Lets nothing that points into a file mean anything any more.
    pub(super) fn kill(&mut self, number: u32) {
        let file = &mut self.files[number as usize];
        if std::mem::take(&mut file.is_live) {
            self.live_positions -= file.positions;
            self.dead_positions += file.positions;
            self.location_bytes -= file.location.take().as_ref().map_or(0, FileLocation::bytes);
            self.by_hash.remove(&file.hash);
            if file.positions == 0 {
                self.free.push(number);
            }
        }
    }

    /// Counts a position that points into a live file from now on.
    #[inline]
    pub(super) fn count(&mut self, number: u32) {
        self.files[number as usize].positions += 1;
        self.live_positions += 1;
    }

    /// Counts a position that does not point into a file any more.
    #[inline]
    pub(super) fn uncount(&mut self, number: u32) {
        let file = &mut self.files[number as usize];
        file.positions -= 1;
        if file.is_live {
            self.live_positions -= 1;
            return;
        }
        self.dead_positions -= 1;
        if file.positions == 0 {
            self.free.push(number);
        }
    }

    /// Returns how many positions point into live files.
    #[cfg(test)]
    pub(super) fn live_positions(&self) -> usize {
        self.live_positions
    }

    /// Returns whether most positions mean nothing.
    pub(super) fn is_mostly_dead(&self) -> bool {
        // A few are not worth the search.
        self.dead_positions > self.live_positions.max(1 << 12)
    }

    /// Returns how many bytes are allocated.
    pub(super) fn bytes(&self) -> usize {
        let entry = size_of::<(i64, u32)>() + 1;
        self.files.capacity() * size_of::<IndexedFile>()
            + self.free.capacity() * size_of::<u32>()
            + self.by_hash.capacity() * entry
            + self.location_bytes
    }
}
