//! Where the rows of every key lie: the index by which an upsert finds what it replaces.
//!
//! Most keys have one row, whose file and position are 8 bytes beside the key; the others (others have appended to the table, or rows
//! have no key and are equal) are in a map. A position may be one too many, as deleting a row twice does no harm, but where rows have
//! no key each is one row that is there. A checkpoint keeps a row per key, the position by the hash of its file's path.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder, FixedSizeBinaryArray, Int64Array, RecordBatch,
    RecordBatchOptions, UInt8Array, UInt32Array,
};
use arrow::datatypes::{
    DataType as ArrowType, Decimal128Type, Field, Int64Type, Schema, SchemaRef, UInt8Type, UInt32Type,
};

use super::indexed_files::IndexedFiles;
use super::row_identity::{Identified, RowIdentity, index_hash, row_hashes};
use crate::error::{Error, ErrorKind, Result};
use crate::state::{
    ABSENT, KeyIndex, PagedVec, SlotTracker, StateChanges, StateTable, key_group, stable_names,
};

/// The name of the table of positions in a checkpoint.
const TABLE: &str = "positions";

/// The bytes of a position beyond the first in a checkpoint: the hash of the path and the row.
const PACKED: usize = 12;

/// A row of a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowPosition {
    /// The number of the file.
    pub(super) file: u32,
    /// The row, from 0.
    pub(super) row: u32,
}

/// The position of what has none.
const NOWHERE: RowPosition = RowPosition { file: ABSENT, row: ABSENT };

/// Keys and the positions of their rows.
#[derive(Debug)]
pub(super) struct KeyPositions {
    identity: Arc<RowIdentity>,
    index: KeyIndex,
    /// By slot: where the key's first row is.
    first: PagedVec<RowPosition>,
    /// By slot: where its other rows are.
    more: HashMap<u32, Vec<RowPosition>>,
    /// By slot: the key group, where rows have no key.
    groups: PagedVec<u8>,
    tracker: SlotTracker,
    table: StateTable,
    /// The files that positions are in.
    pub(super) files: IndexedFiles,
}

impl KeyPositions {
    /// Makes an empty index.
    ///
    /// # Errors
    /// A column of the key cannot be compared.
    pub(super) fn new(identity: Arc<RowIdentity>) -> Result<KeyPositions> {
        let index = KeyIndex::new(&identity.key_types())?;
        Ok(KeyPositions {
            table: KeyPositions::state_table(&identity),
            identity,
            index,
            first: PagedVec::default(),
            more: HashMap::new(),
            groups: PagedVec::default(),
            tracker: SlotTracker::default(),
            files: IndexedFiles::default(),
        })
    }

    /// Describes what a checkpoint keeps of the index.
    pub(super) fn state_table(identity: &RowIdentity) -> StateTable {
        let mut fields: Vec<Field> = if identity.is_key() {
            let columns = identity.names().zip(identity.key_types());
            columns.map(|(name, data_type)| Field::new(name, data_type, true)).collect()
        } else {
            vec![
                Field::new("row_hash", ArrowType::FixedSizeBinary(16), false),
                Field::new("key_group", ArrowType::UInt8, false),
            ]
        };
        let key_count = fields.len();
        fields.extend([
            Field::new("file", ArrowType::Int64, false),
            Field::new("row", ArrowType::UInt32, false),
            Field::new("more", ArrowType::Binary, true),
        ]);
        let names = stable_names(fields.iter().map(|field| field.name().as_str()));
        let fields = fields.into_iter().zip(names).map(|(field, name)| field.with_name(name));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        StateTable { name: TABLE, schema, key_count, derived_from: Some(identity.fingerprint()) }
    }

    /// Returns how many slots there have been.
    pub(super) fn slot_count(&self) -> usize {
        self.index.slot_count()
    }

    /// Finds the slot of every row's key, adding new ones. Slots to which no position is given must be given to `settle`.
    ///
    /// # Errors
    /// There are 4 billion keys.
    pub(super) fn intern(&mut self, rows: &Identified, slots: &mut Vec<u32>) -> Result<()> {
        self.index.intern(&rows.keys, &rows.hashes, slots)?;
        self.first.grow(self.index.slot_count(), NOWHERE);
        if let Some(groups) = &rows.groups {
            self.groups.grow(self.index.slot_count(), 0);
            for (slot, group) in slots.iter().zip(groups) {
                self.groups[*slot as usize] = *group;
            }
        }
        Ok(())
    }

    /// Finds the slot of every row's key, `ABSENT` where it is not there.
    ///
    /// # Errors
    /// The columns have other types.
    pub(super) fn find(&self, rows: &Identified, slots: &mut Vec<u32>) -> Result<()> {
        self.index.find(&rows.keys, &rows.hashes, slots)
    }

    /// Adds a position, in a live file, to a key.
    pub(super) fn add(&mut self, slot: u32, position: RowPosition) {
        self.tracker.change(slot);
        self.files.count(position.file);
        let first = &mut self.first[slot as usize];
        if *first == NOWHERE {
            *first = position;
        } else if !self.files.is_live(first.file) {
            self.files.uncount(first.file);
            *first = position;
        } else {
            self.more.entry(slot).or_default().push(position);
        }
    }

    /// Takes all positions of a key out, and hands over those that mean anything.
    pub(super) fn take(&mut self, slot: u32, positions: &mut Vec<RowPosition>) {
        let first = std::mem::replace(&mut self.first[slot as usize], NOWHERE);
        if first == NOWHERE {
            return;
        }
        self.tracker.change(slot);
        let more = if self.more.is_empty() { None } else { self.more.remove(&slot) };
        for position in std::iter::once(first).chain(more.into_iter().flatten()) {
            if self.files.is_live(position.file) {
                positions.push(position);
            }
            self.files.uncount(position.file);
        }
    }

    /// Takes so many positions of a key out, or as many as mean anything: those that came last.
    pub(super) fn take_some(&mut self, slot: u32, count: u32, positions: &mut Vec<RowPosition>) {
        let mut all = Vec::new();
        self.take(slot, &mut all);
        let kept = all.len().saturating_sub(count as usize);
        positions.extend(all.drain(kept..));
        all.into_iter().for_each(|position| self.add(slot, position));
    }

    /// Forgets the keys among these that have no row.
    pub(super) fn settle(&mut self, slots: &[u32]) {
        for slot in slots {
            if self.first[*slot as usize] == NOWHERE && self.tracker.release(*slot) {
                self.index.remove(*slot);
            }
        }
    }

    /// Drops positions that mean nothing, if they are the most or all of them have to go. No slot may be waiting for a position.
    ///
    /// All have to go where a file was read again under its own path: a checkpoint knows a file by its path alone, and what pointed
    /// into it before would point into it again after a restart.
    pub(super) fn purge(&mut self, all: bool) {
        if !all && !self.files.is_mostly_dead() {
            return;
        }
        let mut positions = Vec::new();
        for slot in 0..self.first.len() as u32 {
            let first = self.first[slot as usize];
            let is_whole = |position: &RowPosition| self.files.is_live(position.file);
            if first == NOWHERE
                || (is_whole(&first) && self.more.get(&slot).is_none_or(|more| more.iter().all(is_whole)))
            {
                continue;
            }
            self.take(slot, &mut positions);
            positions.drain(..).for_each(|position| self.add(slot, position));
            self.settle(&[slot]);
        }
    }

    /// Returns the keys of slots.
    ///
    /// # Errors
    /// Columns cannot be built.
    pub(super) fn keys(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        self.index.columns(slots)
    }

    /// Takes what has changed since the last call.
    ///
    /// # Errors
    /// Columns cannot be built.
    pub(super) fn take_changes(&mut self) -> Result<StateChanges> {
        let changed = self.tracker.take_changed(|slot| self.first[slot as usize] != NOWHERE);
        let upserts = &changed.upserts;
        let mut columns = self.state_keys(upserts)?;
        columns.extend(self.state_positions(upserts));
        let changes = StateChanges {
            upserts: batch(SchemaRef::clone(&self.table.schema), columns, upserts.len())?,
            upsert_groups: self.state_groups(upserts)?,
            deletes: batch(self.key_schema()?, self.state_keys(&changed.deletes)?, changed.deletes.len())?,
            delete_groups: self.state_groups(&changed.deletes)?,
        };
        changed.deletes.iter().for_each(|slot| self.index.remove(*slot));
        Ok(changes)
    }

    /// Puts rows of a checkpoint back.
    ///
    /// # Errors
    /// The rows do not fit.
    pub(super) fn load(&mut self, rows: &RecordBatch) -> Result<()> {
        let identified = self.identified(rows)?;
        let mut slots = Vec::new();
        self.intern(&identified, &mut slots)?;
        let [files, numbers, more] = rows.columns().last_chunk().ok_or_else(damaged)?;
        let files = files.as_primitive::<Int64Type>().values();
        let numbers = numbers.as_primitive::<UInt32Type>().values();
        let more: &BinaryArray = more.as_binary();
        for (row, slot) in slots.into_iter().enumerate() {
            self.put(slot, files[row], numbers[row]);
            let packed = if more.is_null(row) { &[] } else { more.value(row) };
            for packed in packed.chunks(PACKED) {
                let (file, row) = unpack(packed).ok_or_else(damaged)?;
                self.put(slot, file, row);
            }
            self.tracker.load(slot);
        }
        Ok(())
    }

    /// Returns how many bytes are allocated.
    pub(super) fn bytes(&self) -> usize {
        let more = self.more.capacity() * (size_of::<(u32, Vec<RowPosition>)>() + 1)
            + self.more.values().map(|more| more.capacity() * size_of::<RowPosition>()).sum::<usize>();
        self.index.bytes()
            + self.first.bytes()
            + self.groups.bytes()
            + self.tracker.bytes()
            + self.files.bytes()
            + more
    }

    fn put(&mut self, slot: u32, file: i64, row: u32) {
        let file = self.files.restore(file);
        self.add(slot, RowPosition { file, row });
    }

    /// Returns the columns of positions in a checkpoint: only those that mean anything. A key that has none keeps its first, in a file
    /// that has gone and is found to be gone again.
    fn state_positions(&self, slots: &[u32]) -> [ArrayRef; 3] {
        let (mut files, mut rows) = (Vec::with_capacity(slots.len()), Vec::with_capacity(slots.len()));
        let mut packed = BinaryBuilder::new();
        let mut bytes = Vec::new();
        for slot in slots {
            let first = self.first[*slot as usize];
            let more = if self.more.is_empty() { None } else { self.more.get(slot) };
            let mut positions = std::iter::once(&first)
                .chain(more.into_iter().flatten())
                .filter(|position| self.files.is_live(position.file));
            let first = positions.next().unwrap_or(&first);
            files.push(self.files.hash(first.file));
            rows.push(first.row);
            bytes.clear();
            for position in positions {
                bytes.extend_from_slice(&self.files.hash(position.file).to_le_bytes());
                bytes.extend_from_slice(&position.row.to_le_bytes());
            }
            packed.append_option((!bytes.is_empty()).then_some(&bytes));
        }
        [Arc::new(Int64Array::from(files)), Arc::new(UInt32Array::from(rows)), Arc::new(packed.finish())]
    }

    /// Returns the columns of keys in a checkpoint.
    fn state_keys(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        let keys = self.index.columns(slots)?;
        if self.identity.is_key() {
            return Ok(keys);
        }
        let hashes = keys[0].as_primitive::<Decimal128Type>().values().clone().into_inner();
        let groups = slots.iter().map(|slot| self.groups[*slot as usize]);
        Ok(vec![
            Arc::new(FixedSizeBinaryArray::try_new(16, hashes, None)?),
            Arc::new(UInt8Array::from_iter_values(groups)),
        ])
    }

    fn state_groups(&self, slots: &[u32]) -> Result<Vec<u8>> {
        if self.identity.hash_is_of_group() {
            return Ok(slots.iter().map(|slot| key_group(self.index.hash(*slot))).collect());
        }
        if self.identity.is_key() {
            return self.identity.groups(&self.index.columns(slots)?, slots.len());
        }
        Ok(slots.iter().map(|slot| self.groups[*slot as usize]).collect())
    }

    /// Reads the keys of rows of a checkpoint.
    fn identified(&self, rows: &RecordBatch) -> Result<Identified> {
        if rows.num_columns() != self.table.schema.fields().len() {
            return Err(damaged());
        }
        if self.identity.is_key() {
            return self.identity.of_read(&rows.columns()[..self.table.key_count], rows.num_rows());
        }
        let hashes = rows.column(0).as_fixed_size_binary_opt().ok_or_else(damaged)?;
        let hashes: Option<Vec<i128>> =
            hashes.iter().map(|bytes| Some(i128::from_le_bytes(bytes?.try_into().ok()?))).collect();
        let hashes = hashes.ok_or_else(damaged)?;
        let groups = rows.column(1).as_primitive_opt::<UInt8Type>().ok_or_else(damaged)?;
        Ok(Identified {
            hashes: hashes.iter().map(|hash| index_hash(*hash)).collect(),
            keys: vec![Arc::new(row_hashes(hashes))],
            groups: Some(groups.values().to_vec()),
        })
    }

    fn key_schema(&self) -> Result<SchemaRef> {
        Ok(Arc::new(self.table.schema.project(&(0..self.table.key_count).collect::<Vec<_>>())?))
    }
}

fn batch(schema: SchemaRef, columns: Vec<ArrayRef>, row_count: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(row_count));
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}

fn unpack(packed: &[u8]) -> Option<(i64, u32)> {
    let (file, row) = packed.split_first_chunk::<8>()?;
    Some((i64::from_le_bytes(*file), u32::from_le_bytes(row.try_into().ok()?)))
}

fn damaged() -> Error {
    Error::new(ErrorKind::State, "the positions of a sink's rows were saved with other columns")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connector::iceberg::manifest::TableFile;
    use crate::connector::iceberg::write::file_schema::WrittenColumns;
    use arrow::array::{Int32Array, StringArray};
    use iceberg::spec::{
        DataContentType, DataFileBuilder, DataFileFormat, NestedField, PrimitiveType,
        Schema as IcebergSchema, Struct, Type,
    };
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn identity(is_key: bool) -> Arc<RowIdentity> {
        let field = |id, name, of| Arc::new(NestedField::optional(id, name, Type::Primitive(of)));
        let fields = [field(1, "file", PrimitiveType::Int), field(2, "b", PrimitiveType::String)];
        let schema = IcebergSchema::builder().with_fields(fields).build().unwrap();
        let fields = vec![Field::new("file", ArrowType::Int32, true), Field::new("b", ArrowType::Utf8, true)];
        let written = WrittenColumns::resolve(Arc::new(Schema::new(fields)), &schema, "t").unwrap();
        let identity = match is_key {
            true => RowIdentity::of_key(&written, &schema, &[0, 1], &[0]),
            false => RowIdentity::of_row(&written, &schema),
        };
        Arc::new(identity.unwrap())
    }

    fn file(path: &str) -> TableFile {
        let file = DataFileBuilder::default()
            .content(DataContentType::Data)
            .file_path(path.to_owned())
            .file_format(DataFileFormat::Parquet)
            .partition(Struct::empty())
            .partition_spec_id(0)
            .record_count(10)
            .file_size_in_bytes(1)
            .build()
            .unwrap();
        TableFile { spec_id: 0, file }
    }

    fn slots(index: &mut KeyPositions, keys: &[i32]) -> Vec<u32> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from(keys.to_vec())),
            Arc::new(StringArray::from_iter_values(keys.iter().map(|key| format!("k{key}")))),
        ];
        let identified = index.identity.of_written(&columns, keys.len()).unwrap();
        let mut slots = Vec::new();
        index.intern(&identified, &mut slots).unwrap();
        slots
    }

    fn taken(index: &mut KeyPositions, key: i32) -> Vec<(String, u32)> {
        let slot = slots(index, &[key])[0];
        let mut positions = Vec::new();
        index.take(slot, &mut positions);
        let path = |file: u32| match index.files.location(file) {
            Some(file) => file.path.clone(),
            None => "?".to_owned(),
        };
        let found = positions.iter().map(|position| (path(position.file), position.row)).collect();
        index.settle(&[slot]);
        found
    }

    /// What a checkpoint would hold after changes.
    #[derive(Default)]
    struct Saved(BTreeMap<String, RecordBatch>);

    impl Saved {
        fn apply(&mut self, changes: &StateChanges, key_count: usize) {
            let key = |rows: &RecordBatch, row: usize| {
                let key = rows.project(&(0..key_count).collect::<Vec<_>>()).unwrap().slice(row, 1);
                format!("{:?}", key.columns())
            };
            for row in 0..changes.deletes.num_rows() {
                assert!(
                    self.0.remove(&key(&changes.deletes, row)).is_some(),
                    "a delete of what is not there"
                );
            }
            for row in 0..changes.upserts.num_rows() {
                self.0.insert(key(&changes.upserts, row), changes.upserts.slice(row, 1));
            }
            assert_eq!(changes.upserts.num_rows(), changes.upsert_groups.len());
            assert_eq!(changes.deletes.num_rows(), changes.delete_groups.len());
        }
    }

    #[test]
    fn positions_in_dead_files_are_not_given_out() {
        let mut index = KeyPositions::new(identity(true)).unwrap();
        let (a, b) = (index.files.add(&file("a")), index.files.add(&file("b")));
        let slot = slots(&mut index, &[7])[0];
        index.add(slot, RowPosition { file: a, row: 1 });
        index.add(slot, RowPosition { file: b, row: 2 });
        index.files.kill(a);
        assert_eq!(taken(&mut index, 7), [("b".to_owned(), 2)]);
        assert!(taken(&mut index, 7).is_empty());
        assert_eq!(index.files.live_positions(), 0);
        // A file whose rows others have deleted is read again: what points into it from before means nothing.
        index.add(slot, RowPosition { file: b, row: 2 });
        let again = index.files.add(&file("b"));
        assert!(!index.files.is_live(b) && index.files.is_live(again));
        assert_eq!(index.files.number_of("b"), Some(again));
    }

    #[test]
    fn a_rewrite_of_all_files_takes_no_more_room_than_before() {
        let mut index = KeyPositions::new(identity(true)).unwrap();
        let keys: Vec<i32> = (0..10_000).collect();
        let mut bytes = Vec::new();
        for round in 0..5 {
            index.files.live().into_iter().for_each(|before| index.files.kill(before));
            let file = index.files.add(&file(&format!("f{round}")));
            for slot in slots(&mut index, &keys) {
                index.add(slot, RowPosition { file, row: slot });
            }
            index.purge(false);
            bytes.push(index.bytes());
        }
        // The first round frees no file, and the second is the first to have a number to spare.
        assert!(index.more.is_empty() && bytes[2..].windows(2).all(|pair| pair[0] == pair[1]), "{bytes:?}");
        assert_eq!(index.files.live_positions(), 10_000);
    }

    #[test]
    fn a_file_is_counted_with_its_path_and_its_number_is_used_again() {
        let mut index = KeyPositions::new(identity(true)).unwrap();
        let before = index.bytes();
        let path = "p".repeat(10_000);
        let number = index.files.add(&file(&path));
        let slot = slots(&mut index, &[7])[0];
        index.add(slot, RowPosition { file: number, row: 1 });
        assert!(index.bytes() > before + path.len());
        index.files.kill(number);
        assert!(index.bytes() < before + path.len());
        assert_ne!(index.files.add(&file("other")), number, "a position points into it still");
        assert!(taken(&mut index, 7).is_empty());
        assert_eq!(index.files.add(&file("third")), number);
    }

    #[test]
    fn keys_whose_files_are_gone_are_purged() {
        let mut index = KeyPositions::new(identity(true)).unwrap();
        let (a, b) = (index.files.add(&file("a")), index.files.add(&file("b")));
        let keys: Vec<i32> = (0..20_000).collect();
        for slot in slots(&mut index, &keys) {
            index.add(slot, RowPosition { file: if slot < 9_000 { a } else { b }, row: slot });
            index.add(slot, RowPosition { file: a, row: 30_000 + slot });
        }
        index.take_changes().unwrap();
        index.files.kill(a);
        index.purge(false);
        assert!(index.more.is_empty());
        let changes = index.take_changes().unwrap();
        assert_eq!((changes.upserts.num_rows(), changes.deletes.num_rows()), (11_000, 9_000));
        assert!(slots(&mut index, &[100])[0] < 9_000, "its slot is free again");
    }

    #[test]
    fn what_pointed_into_a_file_before_it_was_read_again_does_not_come_back_with_a_restart() {
        let mut index = KeyPositions::new(identity(false)).unwrap();
        let mut saved = Saved::default();
        let before = index.files.add(&file("f"));
        let found = slots(&mut index, &[1, 2]);
        for (slot, row) in [(found[0], 3), (found[0], 5), (found[1], 4)] {
            index.add(slot, RowPosition { file: before, row });
        }
        saved.apply(&index.take_changes().unwrap(), index.table.key_count);
        // Others have deleted the rows 4 and 5.
        let again = index.files.add(&file("f"));
        index.add(found[0], RowPosition { file: again, row: 3 });
        index.purge(true);
        saved.apply(&index.take_changes().unwrap(), index.table.key_count);
        let mut restored = KeyPositions::new(identity(false)).unwrap();
        saved.0.values().for_each(|rows| restored.load(rows).unwrap());
        restored.files.locate(restored.files.number_of("f").unwrap(), &file("f"));
        assert_eq!(taken(&mut restored, 1), [("f".to_owned(), 3)]);
        assert!(taken(&mut restored, 2).is_empty());
    }

    #[test]
    fn state_is_restored_by_key_group() {
        for is_key in [true, false] {
            let mut index = KeyPositions::new(identity(is_key)).unwrap();
            let added = index.files.add(&file("a"));
            let keys: Vec<i32> = (0..50).collect();
            for slot in slots(&mut index, &keys) {
                index.add(slot, RowPosition { file: added, row: slot });
            }
            let changes = index.take_changes().unwrap();
            let mut exchange = Vec::new();
            let columns: Vec<ArrayRef> = vec![
                Arc::new(Int32Array::from(keys.clone())),
                Arc::new(StringArray::from_iter_values(keys.iter().map(|key| format!("k{key}")))),
            ];
            crate::state::hash_rows(&columns[..if is_key { 1 } else { 2 }], 50, &mut exchange).unwrap();
            let groups: Vec<u8> = exchange.into_iter().map(key_group).collect();
            assert_eq!(
                changes.upsert_groups, groups,
                "rows come back to the writer that the exchange chooses"
            );
            assert_eq!(changes.upserts.schema(), index.table.schema);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        /// Steps: add a position, take all of a key, take one, kill a file, purge, save, restore.
        #[test]
        fn an_index_is_a_multimap_also_after_a_restore(
            steps in prop::collection::vec((0_u8..8, 0_i32..12, 0_u32..4), 1..120),
            is_key: bool,
        ) {
            let mut index = KeyPositions::new(identity(is_key)).unwrap();
            let mut model: BTreeSet<(i32, String, u32)> = BTreeSet::new();
            let mut saved = Saved::default();
            let mut paths: Vec<String> = (0..4).map(|at| format!("p{at}")).collect();
            paths.iter().for_each(|path| { index.files.add(&file(path)); });
            for (at, (step, key, which)) in steps.into_iter().enumerate() {
                let path = paths[which as usize].clone();
                match step {
                    0..3 => {
                        let slot = slots(&mut index, &[key])[0];
                        let number = index.files.number_of(&path).unwrap();
                        index.add(slot, RowPosition { file: number, row: at as u32 });
                        model.insert((key, path, at as u32));
                    }
                    3 => {
                        let mut found = taken(&mut index, key);
                        found.sort();
                        let of_key = model.iter().filter(|(other, ..)| *other == key);
                        let expected: Vec<_> = of_key.map(|(_, path, row)| (path.clone(), *row)).collect();
                        prop_assert_eq!(found, expected);
                        model.retain(|(other, ..)| *other != key);
                    }
                    4 => {
                        let slot = slots(&mut index, &[key])[0];
                        let mut positions = Vec::new();
                        index.take_some(slot, 1, &mut positions);
                        index.settle(&[slot]);
                        let has_any = model.iter().any(|(other, ..)| *other == key);
                        prop_assert_eq!(positions.len(), usize::from(has_any));
                        for position in positions {
                            let path = index.files.location(position.file).unwrap().path.clone();
                            prop_assert!(model.remove(&(key, path, position.row)));
                        }
                    }
                    5 => {
                        index.files.kill(index.files.number_of(&path).unwrap());
                        paths[which as usize] = format!("q{at}");
                        index.files.add(&file(&paths[which as usize]));
                        model.retain(|(_, other, _)| *other != path);
                    }
                    6 => {
                        let changes = index.take_changes().unwrap();
                        saved.apply(&changes, index.table.key_count);
                    }
                    _ => {
                        let changes = index.take_changes().unwrap();
                        saved.apply(&changes, index.table.key_count);
                        let mut restored = KeyPositions::new(identity(is_key)).unwrap();
                        saved.0.values().for_each(|rows| restored.load(rows).unwrap());
                        index = restored;
                        // What is not in the table any more is found to be dead, the rest gets its place.
                        for number in index.files.live() {
                            let hash = index.files.hash(number);
                            match paths.iter().find(|path| IndexedFiles::hash_of(path) == hash) {
                                Some(path) => index.files.locate(number, &file(path)),
                                None => index.files.kill(number),
                            }
                        }
                        prop_assert!(!index.files.has_unlocated());
                        for path in &paths {
                            if index.files.number_of(path).is_none() {
                                index.files.add(&file(path));
                            }
                        }
                    }
                }
                prop_assert_eq!(index.files.live_positions(), model.len());
            }
        }
    }
}
