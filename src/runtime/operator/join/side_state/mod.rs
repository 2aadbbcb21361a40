//! The rows of one input of a join: a chain per join key, in order of arrival.
//!
//! The keys themselves are in an index that all inputs share, so that one search finds a row's own chain and its partners. A row
//! is taken back by its content, not by its unique key alone: rows of one epoch may come from several workers, and then the
//! new version of a row can be here before the old one is taken back. Only an input that never says what it takes back (upserts)
//! replaces by key. Chains that are longer than `LONG` also have their rows in a hash table, so that taking rows back stays cheap
//! where one key has very many.

mod compaction;
mod saved;

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType as ArrowType, SchemaRef};
use hashbrown::HashTable;

use super::row_journal::RowJournal;
use super::row_store::{RowStore, RowsView};
use crate::changelog::{ChangelogMode, RowKind};
use crate::error::{Error, Result};
use crate::plan::{GraphNode, JoinSide, JoinUniqueness};
use crate::state::{ABSENT, PagedVec, StateTable, hash_rows, key_group};

/// The length up to which a chain is searched row by row.
const LONG: u32 = 16;

/// How the rows of an input are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lookup {
    /// Not at all: they are only ever added.
    Never,
    /// There is one per join key, or few.
    Chain,
    /// By a hash of their columns.
    Hash,
}

/// What a side has to know of its rows.
#[derive(Debug, Clone)]
pub(super) struct SideLayout {
    pub(super) lookup: Lookup,
    /// The columns that tell a row from others.
    pub(super) identity: Vec<usize>,
    /// The columns that it is looked for by.
    pub(super) hashed: Vec<usize>,
    /// Whether a new row takes the place of the one with the same identity.
    pub(super) replaces: bool,
    /// Whether equal rows are one row with a count.
    pub(super) counts_equal_rows: bool,
    /// Whether each row knows how many partners it has.
    pub(super) counts_associations: bool,
}

impl SideLayout {
    /// Chooses the layout of an input.
    pub(super) fn new(side: &JoinSide, input: &GraphNode) -> SideLayout {
        let mode = input.mode;
        let is_insert_only = side.is_insert_only || mode.is_subset_of(ChangelogMode::INSERT_ONLY);
        let is_upsert = mode.contains(RowKind::UpdateAfter) && !mode.contains(RowKind::UpdateBefore);
        let (lookup, unique_key) = match &side.uniqueness {
            _ if is_insert_only => (Lookup::Never, None),
            JoinUniqueness::JoinKey => (Lookup::Chain, Some(&[][..])),
            JoinUniqueness::Key(key) => (Lookup::Hash, Some(key.as_slice())),
            JoinUniqueness::None => (Lookup::Hash, None),
        };
        let replaced_by = unique_key.filter(|_| is_upsert);
        let all: Vec<usize> = (0..input.arrow_schema().fields().len()).collect();
        // The hash of a map would depend on how it is written.
        let is_map = |at: &usize| matches!(input.arrow_schema().field(*at).data_type(), ArrowType::Map(..));
        let without_maps = || all.iter().copied().filter(|at| !is_map(at)).collect();
        SideLayout {
            lookup,
            hashed: unique_key.map_or_else(without_maps, <[usize]>::to_vec),
            identity: replaced_by.map_or(all, <[usize]>::to_vec),
            replaces: replaced_by.is_some(),
            counts_equal_rows: lookup != Lookup::Never && unique_key.is_none(),
            counts_associations: false,
        }
    }
}

/// The rows of one input.
#[derive(Debug)]
pub(super) struct SideState {
    layout: SideLayout,
    table: StateTable,
    store: RowStore,
    /// By key slot.
    chains: Vec<Chain>,
    /// By row number, as all that follow; `prev` only where rows are taken back.
    next: PagedVec<u32>,
    prev: PagedVec<u32>,
    hashes: PagedVec<u32>,
    multiplicities: PagedVec<u32>,
    associations: PagedVec<u32>,
    free: Vec<u32>,
    /// The rows of long chains.
    index: HashTable<u32>,
    journal: RowJournal,
    row_count: usize,
    capacity: usize,
    /// Identity, number and key slot of what was loaded and is not linked yet.
    loaded: Vec<(i64, u32, u32)>,
}

/// The rows of one key.
#[derive(Debug, Clone, Copy)]
struct Chain {
    first: u32,
    last: u32,
    len: u32,
}

const EMPTY: Chain = Chain { first: ABSENT, last: ABSENT, len: 0 };

/// Rows that are about to be added or taken back.
pub(super) struct Arrivals {
    view: RowsView,
    /// The number under which each row has been written; `ABSENT` where it has not.
    numbers: Vec<u32>,
    /// The hash that each row is looked for by; empty where there is no need.
    hashes: Vec<u32>,
    /// The key group of each row.
    groups: Vec<u8>,
}

impl SideState {
    /// Makes an empty side.
    ///
    /// # Errors
    /// A column's type cannot be kept.
    pub(super) fn new(name: &'static str, schema: &SchemaRef, layout: SideLayout) -> Result<SideState> {
        let store = RowStore::new(schema.fields().iter().map(|field| field.data_type()))?;
        let table = StateTable {
            name,
            schema: saved::saved_schema(schema, &layout),
            key_count: 1,
            derived_from: None,
        };
        Ok(SideState {
            layout,
            table,
            store,
            chains: Vec::new(),
            next: PagedVec::default(),
            prev: PagedVec::default(),
            hashes: PagedVec::default(),
            multiplicities: PagedVec::default(),
            associations: PagedVec::default(),
            free: Vec::new(),
            index: HashTable::new(),
            journal: RowJournal::default(),
            row_count: 0,
            capacity: 0,
            loaded: Vec::new(),
        })
    }

    /// Makes room for this many key slots.
    pub(super) fn ensure_slots(&mut self, count: usize) {
        if self.chains.len() < count {
            self.chains.resize(count, EMPTY);
        }
    }

    /// Returns the first row of a key, or `ABSENT`.
    #[inline]
    pub(super) fn first(&self, slot: u32) -> u32 {
        self.chains[slot as usize].first
    }

    /// Returns whether a key has no row; so has the slot `ABSENT`.
    #[inline]
    pub(super) fn is_empty(&self, slot: u32) -> bool {
        self.chains.get(slot as usize).is_none_or(|chain| chain.len == 0)
    }

    /// Returns how many key slots there is room for.
    pub(super) fn slot_count(&self) -> usize {
        self.chains.len()
    }

    /// Returns how many different rows there are.
    pub(super) fn row_count(&self) -> usize {
        self.row_count
    }

    /// Adds the rows of a chain from one row on, each as often as it counts.
    #[inline]
    pub(super) fn walk(&self, first: u32, rows: &mut Vec<u32>) {
        let mut row = first;
        while row != ABSENT {
            for _ in 0..self.multiplicity(row) {
                rows.push(row);
            }
            row = self.next[row as usize];
        }
    }

    /// Returns how often a row is there.
    #[inline]
    fn multiplicity(&self, row: u32) -> u32 {
        if self.layout.counts_equal_rows { self.multiplicities[row as usize] } else { 1 }
    }

    /// Returns the columns.
    pub(super) fn store(&self) -> &RowStore {
        &self.store
    }

    /// Returns how many partners a row has; for sides that count them.
    #[inline]
    pub(super) fn associations(&self, row: u32) -> u32 {
        self.associations[row as usize]
    }

    /// Says how many partners a row has.
    #[inline]
    pub(super) fn set_associations(&mut self, row: u32, count: u32) {
        self.associations[row as usize] = count;
        self.journal.change(row);
    }

    /// Prepares rows of a batch: writes those that will be added.
    ///
    /// # Errors
    /// The columns have other types.
    pub(super) fn arrive(
        &mut self,
        columns: &[ArrayRef],
        row_count: usize,
        key_hashes: &[u64],
        is_added: impl Fn(usize) -> bool,
    ) -> Result<Arrivals> {
        let view = self.store.view(columns)?;
        let rows: Vec<u32> = (0..row_count as u32).filter(|row| is_added(*row as usize)).collect();
        let written = self.allocate(rows.len())?;
        self.store.write(&written, &view, &rows);
        let mut numbers = vec![ABSENT; row_count];
        for (row, number) in rows.iter().zip(written) {
            numbers[*row as usize] = number;
        }
        let hashes = self.row_hashes(columns, row_count)?;
        let groups = key_hashes.iter().map(|hash| key_group(*hash)).collect();
        Ok(Arrivals { view, numbers, hashes, groups })
    }

    fn row_hashes(&self, columns: &[ArrayRef], row_count: usize) -> Result<Vec<u32>> {
        if self.layout.lookup != Lookup::Hash {
            return Ok(Vec::new());
        }
        let columns: Vec<ArrayRef> = self.layout.hashed.iter().map(|at| Arc::clone(&columns[*at])).collect();
        let mut hashes = Vec::new();
        hash_rows(&columns, row_count, &mut hashes)?;
        Ok(hashes.into_iter().map(|hash| (hash >> 32) as u32).collect())
    }

    fn allocate(&mut self, count: usize) -> Result<Vec<u32>> {
        let reused = count.min(self.free.len());
        if self.capacity + count >= ABSENT as usize {
            return Err(Error::unsupported("more than 4 billion rows of one input in the state of a join")
                .hint("Filter or aggregate before the join, or run with more workers."));
        }
        let mut numbers = self.free.split_off(self.free.len() - reused);
        numbers.reverse();
        numbers.extend(self.capacity as u32..(self.capacity + count - reused) as u32);
        self.capacity += count - reused;
        self.next.grow(self.capacity, ABSENT);
        if self.layout.lookup != Lookup::Never {
            self.prev.grow(self.capacity, ABSENT);
        }
        if self.layout.lookup == Lookup::Hash {
            self.hashes.grow(self.capacity, 0);
        }
        if self.layout.counts_equal_rows {
            self.multiplicities.grow(self.capacity, 0);
        }
        if self.layout.counts_associations {
            self.associations.grow(self.capacity, 0);
        }
        Ok(numbers)
    }

    /// Adds a row under a key and returns its number.
    #[inline]
    pub(super) fn add(&mut self, slot: u32, arrivals: &Arrivals, row: usize) -> u32 {
        let number = arrivals.numbers[row];
        if self.layout.counts_equal_rows || self.layout.replaces {
            let before = self.locate(slot, arrivals, row);
            if before != ABSENT && self.layout.counts_equal_rows {
                self.multiplicities[before as usize] += 1;
                self.journal.change(before);
                self.release(number);
                return before;
            }
            if before != ABSENT {
                self.unlink(slot, before);
            }
        }
        if self.layout.lookup == Lookup::Hash {
            self.hashes[number as usize] = arrivals.hashes[row];
        }
        if self.layout.counts_equal_rows {
            self.multiplicities[number as usize] = 1;
        }
        self.journal.add(number, arrivals.groups[row]);
        self.link(slot, number);
        number
    }

    /// Takes a row of a key back. One that is not there leaves everything as it is.
    #[inline]
    pub(super) fn remove(&mut self, slot: u32, arrivals: &Arrivals, row: usize) {
        let number = self.locate(slot, arrivals, row);
        if number == ABSENT {
            return;
        }
        if self.layout.counts_equal_rows && self.multiplicities[number as usize] > 1 {
            self.multiplicities[number as usize] -= 1;
            self.journal.change(number);
            return;
        }
        self.unlink(slot, number);
    }

    fn locate(&self, slot: u32, arrivals: &Arrivals, row: usize) -> u32 {
        let equals =
            |number: u32| self.store.equals(number, &arrivals.view, row as u32, &self.layout.identity);
        let chain = self.chains[slot as usize];
        match self.layout.lookup {
            Lookup::Never => return ABSENT,
            Lookup::Hash if chain.len > LONG => {
                let hash = arrivals.hashes[row];
                let is_it = |number: &u32| self.hashes[*number as usize] == hash && equals(*number);
                return self.index.find(spread(hash), is_it).copied().unwrap_or(ABSENT);
            }
            _ => {}
        }
        let hash = arrivals.hashes.get(row);
        let mut number = chain.first;
        while number != ABSENT {
            if hash.is_none_or(|hash| self.hashes[number as usize] == *hash) && equals(number) {
                break;
            }
            number = self.next[number as usize];
        }
        number
    }

    fn link(&mut self, slot: u32, number: u32) {
        let chain = &mut self.chains[slot as usize];
        let last = chain.last;
        self.next[number as usize] = ABSENT;
        if last == ABSENT {
            chain.first = number;
        } else {
            self.next[last as usize] = number;
        }
        chain.last = number;
        chain.len += 1;
        self.row_count += 1;
        if self.layout.lookup != Lookup::Never {
            self.prev[number as usize] = last;
        }
        if self.layout.lookup == Lookup::Hash && chain.len > LONG {
            // A chain that becomes long enters the index as a whole.
            let mut row = if chain.len == LONG + 1 { chain.first } else { number };
            while row != ABSENT {
                let hashes = &self.hashes;
                self.index
                    .insert_unique(spread(hashes[row as usize]), row, |row| spread(hashes[*row as usize]));
                row = self.next[row as usize];
            }
        }
    }

    fn unlink(&mut self, slot: u32, number: u32) {
        let (prev, next) = (self.prev[number as usize], self.next[number as usize]);
        let chain = &mut self.chains[slot as usize];
        if self.layout.lookup == Lookup::Hash && chain.len > LONG {
            // A chain that is no longer long leaves the index as a whole.
            let stays_long = chain.len > LONG + 1;
            let mut row = if stays_long { number } else { chain.first };
            while row != ABSENT {
                if let Ok(entry) = self.index.find_entry(spread(self.hashes[row as usize]), |at| *at == row) {
                    entry.remove();
                }
                row = if stays_long { ABSENT } else { self.next[row as usize] };
            }
        }
        match prev {
            ABSENT => chain.first = next,
            prev => self.next[prev as usize] = next,
        }
        match next {
            ABSENT => chain.last = prev,
            next => self.prev[next as usize] = prev,
        }
        chain.len -= 1;
        self.row_count -= 1;
        self.journal.remove(number);
        self.release(number);
    }

    fn release(&mut self, number: u32) {
        self.store.clear(number);
        self.free.push(number);
    }

    /// Returns how many bytes are allocated.
    pub(super) fn bytes(&self) -> usize {
        let numbers = [&self.next, &self.prev, &self.hashes, &self.multiplicities, &self.associations];
        self.store.bytes()
            + self.chains.capacity() * size_of::<Chain>()
            + numbers.into_iter().map(PagedVec::bytes).sum::<usize>()
            + self.free.capacity() * size_of::<u32>()
            + self.index.allocation_size()
            + self.journal.bytes()
    }
}

/// Spreads 32 bits of a hash over the 64 that a table wants.
#[inline]
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
