//! The first rows of each partition in an order, kept up to date.
//!
//! Rows lie in one store; a partition is a ranking of their numbers. Where the input only adds or moves rows forward, nothing
//! beyond the last rank can ever count, so a row that does not come before it is turned away by one comparison of two numbers.

mod difference;
mod ranking;
mod row_lookup;

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::buffer::Buffer;
use arrow::compute::{SortOptions, take_record_batch};
use arrow::datatypes::{DataType as ArrowType, SchemaRef};
use arrow::row::Rows as EncodedRows;

use self::difference::{Changes, Comparison, Pairing, Rows};
use self::ranking::{Prefix, Ranked, Ranking, prefix};
use self::row_lookup::RowLookup;
use super::{EpochEnd, Operator, Output};
use crate::changelog::{ChangelogBatch, RowKind};
use crate::error::{Error, Result};
use crate::plan::{TopNSpec, TopNStrategy};
use crate::state::{Arena, KeyIndex, RowCodec, SequencedRows, StateChanges, StateTable, hash_rows};

/// The number of changes from which on they are emitted, before those of the next partition are looked for.
const BATCH_ROWS: usize = 4096;

/// Keeps the rows between two ranks of every partition.
pub(crate) struct TopN {
    spec: TopNSpec,
    /// How many rows a partition's result is made of: the last rank.
    limit: usize,
    comparison: Comparison,
    schema: SchemaRef,
    partitions: KeyIndex,
    /// By partition, as the next three.
    rankings: Vec<Ranking>,
    /// The first bytes of the order key that a row must not exceed to be ranked; the largest number while there is room.
    thresholds: Vec<Prefix>,
    /// Whether the epoch has touched the partition.
    is_touched: Vec<bool>,
    ranked: RankedRows,
    ranking_bytes: usize,
    epoch: Epoch,
    hashes: Vec<u64>,
    slots: Vec<u32>,
}

/// Rows with what they are ordered and told apart by.
struct RankedRows {
    rows: SequencedRows,
    order: Vec<usize>,
    order_codec: RowCodec,
    /// The order keys that are longer than a prefix may be.
    order_keys: Option<Arena>,
    /// What tells rows apart whose newer versions replace the older; empty if nothing does.
    unique: Vec<usize>,
    unique_codec: RowCodec,
    unique_keys: Arena,
    /// Where rows can be taken back.
    lookup: Option<RowLookup>,
}

/// What the current epoch has done.
#[derive(Default)]
struct Epoch {
    row_count: usize,
    /// Partitions whose result may have changed, with the end of their part of `before`.
    touched: Vec<(u32, usize)>,
    /// The results at the start of the epoch.
    before: Vec<Ranked>,
    /// Rows that have gone, but may have to be taken back.
    retired: Vec<u32>,
    /// Partitions that have been empty.
    emptied: Vec<u32>,
}

/// The keys of a batch's rows.
struct BatchKeys {
    order: EncodedRows,
    rows: EncodedRows,
    unique: EncodedRows,
}

impl TopN {
    /// Makes the operator over an input's columns.
    ///
    /// # Errors
    /// A column cannot be a key, an order or be stored.
    pub(crate) fn new(spec: &TopNSpec, input: &SchemaRef, output: &SchemaRef) -> Result<TopN> {
        let is_fast = spec.strategy != TopNStrategy::Retract;
        let skip = usize::try_from(spec.first.saturating_sub(1)).unwrap_or(usize::MAX);
        let limit = usize::try_from(spec.last).unwrap_or(usize::MAX);
        let comparison = Comparison {
            // Rows that are left out at the front come and go by place; a consumer that knows rows by key cannot follow that.
            is_positional: spec.with_rank
                || (skip > 0 && spec.emits_update_before)
                || (limit == 1 && is_fast),
            skip,
            is_exact: false,
            emits_update_before: spec.emits_update_before,
            pairing: match spec.strategy {
                TopNStrategy::AppendFast => Pairing::Nothing,
                TopNStrategy::UpdateFast(_) => Pairing::Versions,
                TopNStrategy::Retract => Pairing::EqualRows,
            },
        };
        let partition_types: Vec<ArrowType> =
            spec.partition.iter().map(|column| input.field(*column).data_type().clone()).collect();
        Ok(TopN {
            spec: spec.clone(),
            limit,
            comparison,
            schema: Arc::clone(output),
            partitions: KeyIndex::new(&partition_types)?,
            rankings: Vec::new(),
            thresholds: Vec::new(),
            is_touched: Vec::new(),
            ranked: RankedRows::new(spec, input)?,
            ranking_bytes: 0,
            epoch: Epoch::default(),
            hashes: Vec::new(),
            slots: Vec::new(),
        })
    }

    /// Finds the partitions of rows, adding new ones.
    fn find_partitions(&mut self, columns: &[ArrayRef], row_count: usize) -> Result<()> {
        let keys: Vec<ArrayRef> =
            self.spec.partition.iter().map(|column| Arc::clone(&columns[*column])).collect();
        hash_rows(&keys, row_count, &mut self.hashes)?;
        self.partitions.intern(&keys, &self.hashes, &mut self.slots)?;
        let count = self.partitions.slot_count();
        if self.rankings.len() < count {
            self.rankings.resize_with(count, Ranking::default);
            self.thresholds.resize(count, [u64::MAX; 2]);
            self.is_touched.resize(count, false);
        }
        Ok(())
    }

    /// Returns the rows that may be ranked, where it is only the first rows of a partition that count.
    fn candidates(&self, order: &EncodedRows) -> Vec<u32> {
        let thresholds = self.slots.iter().map(|slot| self.thresholds[*slot as usize]);
        let rows = order.iter().zip(thresholds).enumerate();
        rows.filter(|(_, (key, threshold))| prefix(key.data()) <= *threshold)
            .map(|(row, _)| row as u32)
            .collect()
    }

    /// Remembers a partition's result before the epoch changes it.
    fn touch(&mut self, slot: u32) {
        if !std::mem::replace(&mut self.is_touched[slot as usize], true) {
            self.rankings[slot as usize].copy_first(self.limit, &mut self.epoch.before);
            self.epoch.touched.push((slot, self.epoch.before.len()));
        }
    }

    /// Ranks a row behind those that are not after it in the order.
    fn add(&mut self, slot: u32, keys: &BatchKeys, row: usize) {
        let order = keys.order.row(row);
        let order = (prefix(order.data()), order.data());
        let ranking = &self.rankings[slot as usize];
        let place = ranking.first_not(|other| self.ranked.order_to(other, order).is_le());
        let is_within = ranking.is_within(place, self.limit);
        if !is_within && self.spec.strategy != TopNStrategy::Retract {
            return;
        }
        if is_within {
            self.touch(slot);
        }
        let row = Ranked { prefix: order.0, number: self.ranked.insert(keys, row) };
        let count_max = self.count_max();
        self.change_ranking(slot, |ranking| ranking.insert(place, row, count_max));
        if self.spec.strategy != TopNStrategy::Retract {
            self.cut(slot);
        }
    }

    /// Returns how many rows a ranking ever has.
    fn count_max(&self) -> usize {
        match self.spec.strategy {
            TopNStrategy::Retract => usize::MAX,
            // One too many, for a moment.
            _ => self.limit.saturating_add(1),
        }
    }

    /// Changes a ranking and accounts for its memory.
    fn change_ranking<T>(&mut self, slot: u32, change: impl FnOnce(&mut Ranking) -> T) -> T {
        let ranking = &mut self.rankings[slot as usize];
        self.ranking_bytes -= ranking.bytes();
        let result = change(ranking);
        self.ranking_bytes += ranking.bytes();
        result
    }

    /// Takes out what has fallen behind the last rank, and notes what a row must exceed from now on.
    fn cut(&mut self, slot: u32) {
        let count = self.rankings[slot as usize].len();
        if count > self.limit {
            let evicted = self.change_ranking(slot, Ranking::pop);
            self.epoch.retired.extend(evicted.map(|row| row.number));
        }
        if count >= self.limit
            && let Some(last) = self.rankings[slot as usize].last()
        {
            self.thresholds[slot as usize] = last.prefix;
        }
    }

    /// Replaces an earlier version of a row; returns false if there is none among the ranked.
    fn update(&mut self, slot: u32, keys: &BatchKeys, row: usize) -> bool {
        let ranking = &self.rankings[slot as usize];
        let unique = keys.unique.row(row);
        let found = ranking.places().find(|(_, other)| self.ranked.unique_key(other.number) == unique.data());
        let Some((place, older)) = found else { return false };
        let order = keys.order.row(row);
        self.touch(slot);
        self.epoch.retired.push(older.number);
        if self.ranked.order_to(&older, (prefix(order.data()), order.data())).is_eq() {
            let number = self.ranked.insert_in_place_of(older.number, keys, row);
            self.rankings[slot as usize].replace(place, Ranked { number, ..older });
        } else {
            self.change_ranking(slot, |ranking| ranking.remove(place));
            self.add(slot, keys, row);
        }
        true
    }

    /// Takes a row out; the first of equal ones. Nothing happens if there is none.
    fn remove(&mut self, slot: u32, keys: &BatchKeys, row: usize) {
        if let Some(number) = self.ranked.take(keys, row) {
            let ranking = &self.rankings[slot as usize];
            let row = Ranked { prefix: prefix(keys.order.row(row).data()), number };
            let place = ranking.first_not(|other| self.ranked.order(*other, row).is_lt());
            if ranking.is_within(place, self.limit) {
                self.touch(slot);
            }
            self.change_ranking(slot, |ranking| ranking.remove(place));
            self.epoch.retired.push(number);
        }
        if self.rankings[slot as usize].is_empty() {
            self.epoch.emptied.push(slot);
        }
    }

    /// Compares the results of the touched partitions with what they were, and tells the difference.
    fn emit_changes(&mut self, output: &mut Output) -> Result<()> {
        let comparison = Comparison { is_exact: self.epoch.row_count == 1, ..self.comparison };
        let mut changes = Changes::new();
        let mut now = Vec::new();
        let mut start = 0;
        for (slot, end) in std::mem::take(&mut self.epoch.touched) {
            self.is_touched[slot as usize] = false;
            now.clear();
            self.rankings[slot as usize].copy_first(self.limit, &mut now);
            comparison.compare(&self.ranked, &self.epoch.before[start..end], &now, &mut changes);
            start = end;
            if changes.len() >= BATCH_ROWS {
                self.emit(&changes, output)?;
                changes.clear();
            }
        }
        self.epoch.before.clear();
        self.emit(&changes, output)
    }

    fn emit(&self, changes: &Changes, output: &mut Output) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let numbers: Vec<u32> = changes.iter().map(|(_, number, _)| *number).collect();
        let mut columns = self.ranked.rows.columns(&numbers)?;
        if self.spec.with_rank {
            columns.push(Arc::new(Int64Array::from_iter_values(
                changes.iter().map(|(_, _, rank)| *rank as i64),
            )));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(changes.len()));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        let kinds = changes.iter().map(|(kind, ..)| *kind as u8).collect::<Vec<u8>>();
        output.push(ChangelogBatch::with_kind_bytes(rows, Some(Buffer::from_vec(kinds))));
        Ok(())
    }
}

impl Epoch {
    fn bytes(&self) -> usize {
        let numbers = self.retired.capacity() + self.emptied.capacity();
        numbers * size_of::<u32>()
            + self.before.capacity() * size_of::<Ranked>()
            + self.touched.capacity() * size_of::<(u32, usize)>()
    }
}

impl RankedRows {
    fn new(spec: &TopNSpec, input: &SchemaRef) -> Result<RankedRows> {
        let of = |column: usize| input.field(column).data_type().clone();
        let order_types = spec.order.iter().map(|key| {
            (of(key.column), SortOptions { descending: !key.is_ascending, nulls_first: key.nulls_first })
        });
        let unique = match &spec.strategy {
            TopNStrategy::UpdateFast(unique) => unique.clone(),
            _ => Vec::new(),
        };
        let order_codec = RowCodec::new(order_types)?;
        let is_prefix_all = order_codec.row_width().is_some_and(|width| width <= size_of::<Prefix>());
        let unique_types = unique.iter().map(|column| (of(*column), SortOptions::default()));
        Ok(RankedRows {
            rows: SequencedRows::new("rows", input, &spec.partition)?,
            order: spec.order.iter().map(|key| key.column).collect(),
            order_codec,
            order_keys: (!is_prefix_all).then(Arena::default),
            unique_codec: RowCodec::new(unique_types)?,
            unique,
            unique_keys: Arena::default(),
            lookup: (spec.strategy == TopNStrategy::Retract).then(RowLookup::default),
        })
    }

    fn encode_order(&self, columns: &[ArrayRef], row_count: usize) -> Result<EncodedRows> {
        let columns: Vec<ArrayRef> = self.order.iter().map(|column| Arc::clone(&columns[*column])).collect();
        self.order_codec.encode(&columns, row_count)
    }

    fn encode(&self, columns: &[ArrayRef], count: usize) -> Result<BatchKeys> {
        let unique: Vec<ArrayRef> = self.unique.iter().map(|column| Arc::clone(&columns[*column])).collect();
        Ok(BatchKeys {
            order: self.encode_order(columns, count)?,
            rows: self.rows.encode(columns, count)?,
            unique: self.unique_codec.encode(&unique, count)?,
        })
    }

    /// Compares a row with an order key and its prefix.
    #[inline]
    fn order_to(&self, row: &Ranked, (prefix, key): (Prefix, &[u8])) -> Ordering {
        row.prefix.cmp(&prefix).then_with(|| match &self.order_keys {
            None => Ordering::Equal,
            Some(keys) => keys.get(row.number as usize).cmp(key),
        })
    }

    fn unique_key(&self, number: u32) -> &[u8] {
        self.unique_keys.get(number as usize)
    }

    fn insert(&mut self, keys: &BatchKeys, row: usize) -> u32 {
        let number = self.rows.insert(keys.rows.row(row).data());
        self.set_keys(number, keys, row);
        self.fill_lookup(std::iter::once(number));
        number
    }

    fn insert_in_place_of(&mut self, other: u32, keys: &BatchKeys, row: usize) -> u32 {
        let number = self.rows.insert_in_place_of(other, keys.rows.row(row).data());
        self.set_keys(number, keys, row);
        number
    }

    /// Finds the first row that is equal to one of a batch; it is found no more.
    fn take(&mut self, keys: &BatchKeys, row: usize) -> Option<u32> {
        let bytes = keys.rows.row(row);
        let rows = &self.rows;
        self.lookup.as_mut()?.take(bytes.data(), |number| rows.get(number) == bytes.data())
    }

    /// Makes rows found, in their order.
    fn fill_lookup(&mut self, numbers: impl Iterator<Item = u32>) {
        if let Some(lookup) = &mut self.lookup {
            numbers.for_each(|number| lookup.insert(self.rows.get(number), number));
        }
    }

    fn set_keys(&mut self, number: u32, keys: &BatchKeys, row: usize) {
        if let Some(order_keys) = &mut self.order_keys {
            order_keys.set(number as usize, keys.order.row(row).data());
        }
        if !self.unique.is_empty() {
            self.unique_keys.set(number as usize, keys.unique.row(row).data());
        }
    }

    fn remove(&mut self, number: u32) {
        if let Some(order_keys) = &mut self.order_keys {
            order_keys.clear(number as usize);
        }
        if !self.unique.is_empty() {
            self.unique_keys.clear(number as usize);
        }
        self.rows.remove(number);
    }
}

impl Rows for RankedRows {
    fn order(&self, a: Ranked, b: Ranked) -> Ordering {
        let key = self.order_keys.as_ref().map_or(&[][..], |keys| keys.get(b.number as usize));
        let sequence = |row: Ranked| self.rows.sequence(row.number);
        self.order_to(&a, (b.prefix, key)).then_with(|| sequence(a).cmp(&sequence(b)))
    }

    fn row(&self, number: u32) -> &[u8] {
        self.rows.get(number)
    }

    fn is_update(&self, before: u32, now: u32) -> bool {
        !self.unique.is_empty() && self.unique_key(before) == self.unique_key(now)
    }
}

impl Operator for TopN {
    fn process(&mut self, _input: usize, batch: ChangelogBatch, _output: &mut Output) -> Result<()> {
        if self.limit == 0 {
            return Ok(());
        }
        self.epoch.row_count += batch.row_count();
        self.find_partitions(batch.rows().columns(), batch.row_count())?;
        if self.spec.strategy == TopNStrategy::Retract {
            let keys = self.ranked.encode(batch.rows().columns(), batch.row_count())?;
            for row in 0..batch.row_count() {
                match batch.kind(row).is_retraction() {
                    true => self.remove(self.slots[row], &keys, row),
                    false => self.add(self.slots[row], &keys, row),
                }
            }
            return Ok(());
        }
        let order = self.ranked.encode_order(batch.rows().columns(), batch.row_count())?;
        let mut candidates = self.candidates(&order);
        if let Some(kinds) = batch.kind_bytes() {
            if kinds.contains(&(RowKind::Delete as u8)) {
                return Err(Error::internal("a Top-N that keeps only the first rows has got a delete"));
            }
            candidates.retain(|row| kinds[*row as usize] & 1 == 0);
        }
        let kept = take_record_batch(batch.rows(), &UInt32Array::from(candidates.clone()))?;
        let keys = self.ranked.encode(kept.columns(), kept.num_rows())?;
        for (row, candidate) in candidates.iter().enumerate() {
            let slot = self.slots[*candidate as usize];
            if self.ranked.unique.is_empty() || !self.update(slot, &keys, row) {
                self.add(slot, &keys, row);
            }
        }
        Ok(())
    }

    fn end_epoch(&mut self, _epoch: &EpochEnd, output: &mut Output) -> Result<()> {
        self.emit_changes(output)?;
        for number in std::mem::take(&mut self.epoch.retired) {
            self.ranked.remove(number);
        }
        let mut emptied = std::mem::take(&mut self.epoch.emptied);
        emptied.sort_unstable();
        emptied.dedup();
        for slot in emptied {
            if self.rankings[slot as usize].is_empty() {
                self.partitions.remove(slot);
            }
        }
        self.epoch.row_count = 0;
        Ok(())
    }

    fn state_tables(&self) -> Vec<StateTable> {
        vec![self.ranked.rows.state_table()]
    }

    fn take_changes(&mut self) -> Result<Vec<StateChanges>> {
        Ok(vec![self.ranked.rows.take_changes()?])
    }

    fn load(&mut self, _table: usize, rows: &RecordBatch) -> Result<()> {
        let (columns, numbers) = self.ranked.rows.load(rows)?;
        self.find_partitions(&columns, rows.num_rows())?;
        let keys = self.ranked.encode(&columns, rows.num_rows())?;
        for (row, number) in numbers.into_iter().enumerate() {
            self.ranked.set_keys(number, &keys, row);
            let slot = self.slots[row];
            let row = Ranked { prefix: prefix(keys.order.row(row).data()), number };
            let place =
                self.rankings[slot as usize].first_not(|other| self.ranked.order(*other, row).is_lt());
            self.change_ranking(slot, |ranking| ranking.insert(place, row, usize::MAX));
        }
        Ok(())
    }

    fn finish_load(&mut self) -> Result<()> {
        if self.spec.strategy != TopNStrategy::Retract {
            (0..self.rankings.len() as u32).for_each(|slot| self.cut(slot));
        }
        // Equal rows have been loaded in any order, but are taken back in the order in which they came.
        self.ranked.fill_lookup(self.rankings.iter().flat_map(Ranking::iter).map(|row| row.number));
        Ok(())
    }

    fn state_bytes(&self) -> usize {
        let ranked = &self.ranked;
        let by_partition = self.rankings.capacity() * size_of::<Ranking>()
            + self.thresholds.capacity() * size_of::<Prefix>()
            + self.is_touched.capacity();
        ranked.rows.bytes()
            + ranked.order_keys.as_ref().map_or(0, Arena::allocated)
            + ranked.unique_keys.allocated()
            + ranked.lookup.as_ref().map_or(0, RowLookup::bytes)
            + self.epoch.bytes()
            + self.partitions.bytes()
            + self.ranking_bytes
            + by_partition
            + self.hashes.capacity() * size_of::<u64>()
            + self.slots.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests;
