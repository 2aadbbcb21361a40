//! The entries of a table of counted values: which value of which group is there how often.
//!
//! An entry whose count falls to 0 keeps its number until the batch ends, since later rows of the batch may mean it again; it
//! keeps it longer while a heap holds it, or while a checkpoint still has to say that it has gone.

use std::cmp::Ordering;

use super::chains::Chains;
use super::value_store::{SlotValue, ValueStore};
use crate::error::Result;
use crate::state::{ABSENT, KeyIndex, SlotTracker, hash_rows};

/// The count of a number without entry.
const FREE: i64 = -1;

/// Counted values.
#[derive(Debug)]
pub(super) struct Entries {
    /// The values.
    pub(super) values: ValueStore,
    index: KeyIndex,
    /// How often each is there; `FREE` for a number without entry.
    counts: Vec<i64>,
    /// Which heaps hold an entry.
    pins: Vec<u8>,
    /// The entries of each slot that have been live since the last `sweep`, and those that heaps hold.
    chains: Chains,
    /// How many live entries each slot has.
    live_counts: Vec<u32>,
    /// Entries that may have to go.
    idle: Vec<u32>,
    tracker: SlotTracker,
}

impl Entries {
    /// Makes a table without entries.
    ///
    /// # Errors
    /// There is no index for them.
    pub(super) fn new(values: ValueStore) -> Result<Entries> {
        Ok(Entries {
            values,
            index: SlotValue::index()?,
            counts: Vec::new(),
            pins: Vec::new(),
            chains: Chains::default(),
            live_counts: Vec::new(),
            idle: Vec::new(),
            tracker: SlotTracker::default(),
        })
    }

    /// Makes room for slots.
    pub(super) fn grow(&mut self, slot_count: usize) {
        self.chains.grow(slot_count);
        if self.live_counts.len() < slot_count {
            self.live_counts.resize(slot_count, 0);
        }
    }

    /// Finds the entry of each value; new ones have count 0.
    ///
    /// # Errors
    /// There are too many.
    pub(super) fn intern(&mut self, values: &[SlotValue]) -> Result<Vec<u32>> {
        let columns = [SlotValue::column(values)];
        let (mut hashes, mut entries) = (Vec::new(), Vec::new());
        hash_rows(&columns, values.len(), &mut hashes)?;
        self.index.intern(&columns, &hashes, &mut entries)?;
        self.counts.resize(self.index.slot_count(), FREE);
        self.pins.resize(self.index.slot_count(), 0);
        for (entry, value) in entries.iter().zip(values) {
            if self.counts[*entry as usize] == FREE {
                self.counts[*entry as usize] = 0;
                self.values.retain(*value);
                self.idle.push(*entry);
            }
        }
        Ok(entries)
    }

    /// Counts one more; returns whether it is the first.
    pub(super) fn add(&mut self, entry: u32, slot: u32) -> bool {
        self.tracker.change(entry);
        let count = &mut self.counts[entry as usize];
        *count += 1;
        if *count > 1 {
            return false;
        }
        self.revive(entry, slot);
        true
    }

    /// Counts one less; returns whether it was the last. What is not there is not taken back.
    pub(super) fn subtract(&mut self, entry: u32, slot: u32) -> bool {
        let count = &mut self.counts[entry as usize];
        if *count <= 0 {
            return false;
        }
        *count -= 1;
        let is_gone = *count == 0;
        self.tracker.change(entry);
        if is_gone {
            self.live_counts[slot as usize] -= 1;
            self.idle.push(entry);
        }
        is_gone
    }

    /// Puts a saved entry back.
    pub(super) fn load(&mut self, entry: u32, slot: u32, count: i64) {
        self.counts[entry as usize] = count;
        self.revive(entry, slot);
        self.tracker.load(entry);
    }

    /// Notes that an entry is there.
    fn revive(&mut self, entry: u32, slot: u32) {
        self.live_counts[slot as usize] += 1;
        if !self.chains.contains(entry) {
            self.chains.push(slot, entry);
        }
    }

    /// Takes all entries of a slot away.
    pub(super) fn clear(&mut self, slot: u32) {
        let mut entry = self.chains.first(slot);
        while entry != ABSENT {
            if self.counts[entry as usize] > 0 {
                self.counts[entry as usize] = 0;
                self.tracker.change(entry);
            }
            self.idle.push(entry);
            self.chains.remove(slot, entry);
            entry = self.chains.first(slot);
        }
        self.live_counts[slot as usize] = 0;
    }

    /// Forgets entries that are not there and that nobody holds.
    pub(super) fn sweep(&mut self) {
        for entry in std::mem::take(&mut self.idle) {
            if self.counts[entry as usize] == 0 && self.pins[entry as usize] == 0 {
                if self.chains.contains(entry) {
                    self.chains.remove(self.slot(entry), entry);
                }
                if self.tracker.release(entry) {
                    self.free(entry);
                }
            }
        }
        self.values.sweep();
    }

    /// Gives up the number of an entry.
    fn free(&mut self, entry: u32) {
        self.values.release(self.value(entry));
        self.counts[entry as usize] = FREE;
        self.index.remove(entry);
    }

    /// Takes what has changed since the last checkpoint: written entries, and values that have gone. `forget` comes afterwards.
    pub(super) fn take_changed(&mut self) -> (Vec<u32>, Vec<u32>) {
        let counts = &self.counts;
        let changed = self.tracker.take_changed(|entry| counts[entry as usize] > 0);
        (changed.upserts, changed.deletes)
    }

    /// Forgets entries whose going a checkpoint has noted.
    pub(super) fn forget(&mut self, entries: &[u32]) {
        for entry in entries {
            if self.pins[*entry as usize] == 0 {
                self.free(*entry);
            }
        }
        self.values.sweep();
    }

    /// Returns the group of an entry.
    pub(super) fn slot(&self, entry: u32) -> u32 {
        self.value(entry).slot()
    }

    /// Returns the value of an entry.
    pub(super) fn value(&self, entry: u32) -> SlotValue {
        SlotValue::from_key(self.index.wide_key(entry))
    }

    /// Returns how often an entry is there.
    pub(super) fn count(&self, entry: u32) -> i64 {
        self.counts[entry as usize]
    }

    /// Returns whether an entry is there at all.
    pub(super) fn is_live(&self, entry: u32) -> bool {
        self.counts[entry as usize] > 0
    }

    /// Returns the live entries of a slot.
    pub(super) fn live(&self, slot: u32) -> impl Iterator<Item = u32> + '_ {
        self.chains.iter(slot).filter(|entry| self.is_live(*entry))
    }

    /// Returns how many live entries a slot has.
    pub(super) fn live_count(&self, slot: u32) -> u32 {
        self.live_counts[slot as usize]
    }

    /// Compares the values of two entries.
    pub(super) fn compare(&self, left: u32, right: u32) -> Ordering {
        self.values.compare(self.value(left), self.value(right))
    }

    /// Returns whether a heap holds an entry.
    pub(super) fn is_pinned(&self, entry: u32, pin: u8) -> bool {
        self.pins[entry as usize] & pin != 0
    }

    /// Says that a heap holds an entry.
    pub(super) fn pin(&mut self, entry: u32, pin: u8) {
        self.pins[entry as usize] |= pin;
    }

    /// Says that a heap holds an entry no longer.
    pub(super) fn unpin(&mut self, entry: u32, pin: u8) {
        self.pins[entry as usize] &= !pin;
        self.idle.push(entry);
    }

    /// Returns how many bytes are allocated.
    pub(super) fn bytes(&self) -> usize {
        self.values.bytes()
            + self.index.bytes()
            + self.counts.capacity() * size_of::<i64>()
            + self.pins.capacity()
            + self.chains.bytes()
            + (self.live_counts.capacity() + self.idle.capacity()) * size_of::<u32>()
            + self.tracker.bytes()
    }
}
