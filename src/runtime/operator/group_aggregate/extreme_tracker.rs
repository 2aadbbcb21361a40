//! The smallest or largest live value of each group, while values come and go.
//!
//! Only the extreme itself is known at first. When it goes, a small group is looked through; a large one gets a heap, once, which
//! from then on gives the next extreme in logarithmic time. Values stay in the heap when they go, so that one that comes back is
//! already there; they leave when they reach the top, or when most of the heap is such values.

use std::cmp::Ordering;

use hashbrown::HashMap;

use super::entries::Entries;
use crate::state::ABSENT;

/// The most values that are looked through again and again.
const SCAN_MAX: u32 = 32;

/// The extremes of one direction.
#[derive(Debug)]
pub(super) struct ExtremeTracker {
    is_max: bool,
    /// The mark of entries that are in a heap of this direction.
    pin: u8,
    /// The extreme of each slot, or `ABSENT`.
    best: Vec<u32>,
    heaps: HashMap<u32, Vec<u32>>,
    /// Slots whose extreme may have gone.
    lost: Vec<u32>,
}

impl ExtremeTracker {
    /// Tracks the largest values, or the smallest.
    pub(super) fn new(is_max: bool) -> ExtremeTracker {
        let pin = if is_max { 2 } else { 1 };
        ExtremeTracker { is_max, pin, best: Vec::new(), heaps: HashMap::new(), lost: Vec::new() }
    }

    /// Makes room for slots.
    pub(super) fn grow(&mut self, slot_count: usize) {
        if self.best.len() < slot_count {
            self.best.resize(slot_count, ABSENT);
        }
    }

    /// Returns the entry with a slot's extreme, or `ABSENT`.
    pub(super) fn best(&self, slot: u32) -> u32 {
        self.best[slot as usize]
    }

    /// Takes note of entries that have come or gone.
    pub(super) fn settle(&mut self, changed: &[u32], entries: &mut Entries) {
        for entry in changed {
            let slot = entries.slot(*entry);
            let best = self.best[slot as usize];
            if entries.is_live(*entry) {
                self.push(slot, *entry, entries);
                if best == ABSENT || self.is_better(entries, *entry, best) {
                    self.best[slot as usize] = *entry;
                }
            } else if best == *entry {
                self.lost.push(slot);
            }
        }
        while let Some(slot) = self.lost.pop() {
            let best = self.best[slot as usize];
            if best != ABSENT && !entries.is_live(best) {
                self.best[slot as usize] = self.next_best(slot, entries);
            }
        }
    }

    /// Forgets a slot, whose entries have gone.
    pub(super) fn clear(&mut self, slot: u32, entries: &mut Entries) {
        self.best[slot as usize] = ABSENT;
        if self.heaps.is_empty() {
            return;
        }
        for entry in self.heaps.remove(&slot).unwrap_or_default() {
            entries.unpin(entry, self.pin);
        }
    }

    /// Returns how many bytes are allocated.
    pub(super) fn bytes(&self) -> usize {
        let heaps: usize = self.heaps.values().map(Vec::capacity).sum();
        (self.best.capacity() + self.lost.capacity() + heaps) * size_of::<u32>()
            + self.heaps.allocation_size()
    }

    /// Returns whether the first entry comes before the second.
    fn is_better(&self, entries: &Entries, left: u32, right: u32) -> bool {
        let order = entries.compare(left, right);
        order == if self.is_max { Ordering::Greater } else { Ordering::Less }
    }

    /// Finds the extreme of a slot that has lost its own.
    fn next_best(&mut self, slot: u32, entries: &mut Entries) -> u32 {
        if let Some(mut heap) = self.heaps.remove(&slot) {
            while let Some(top) = heap.first().copied() {
                if entries.is_live(top) {
                    self.heaps.insert(slot, heap);
                    return top;
                }
                self.pop(&mut heap, entries);
                entries.unpin(top, self.pin);
            }
            return ABSENT;
        }
        let live = entries.live(slot);
        if entries.live_count(slot) <= SCAN_MAX {
            return live
                .reduce(|best, entry| if self.is_better(entries, entry, best) { entry } else { best })
                .unwrap_or(ABSENT);
        }
        let heap = live.collect();
        self.build(slot, heap, entries)
    }

    /// Makes a heap of entries and returns its top.
    fn build(&mut self, slot: u32, mut heap: Vec<u32>, entries: &mut Entries) -> u32 {
        heap.iter().for_each(|entry| entries.pin(*entry, self.pin));
        for at in (0..heap.len() / 2).rev() {
            self.sift_down(&mut heap, at, entries);
        }
        let top = heap.first().copied().unwrap_or(ABSENT);
        self.heaps.insert(slot, heap);
        top
    }

    /// Adds an entry to its slot's heap, if there is one.
    fn push(&mut self, slot: u32, entry: u32, entries: &mut Entries) {
        if self.heaps.is_empty() || entries.is_pinned(entry, self.pin) {
            return;
        }
        let Some(mut heap) = self.heaps.remove(&slot) else { return };
        if heap.len() > 2 * entries.live_count(slot) as usize + SCAN_MAX as usize {
            let (live, gone): (Vec<u32>, Vec<u32>) = heap.iter().partition(|entry| entries.is_live(**entry));
            gone.into_iter().for_each(|entry| entries.unpin(entry, self.pin));
            heap = live;
            heap.push(entry);
            self.build(slot, heap, entries);
            return;
        }
        entries.pin(entry, self.pin);
        heap.push(entry);
        let mut at = heap.len() - 1;
        while at > 0 && self.is_better(entries, heap[at], heap[(at - 1) / 2]) {
            heap.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
        self.heaps.insert(slot, heap);
    }

    /// Takes the top of a heap away.
    fn pop(&self, heap: &mut Vec<u32>, entries: &Entries) {
        heap.swap_remove(0);
        self.sift_down(heap, 0, entries);
    }

    /// Moves an entry down to its place in a heap.
    fn sift_down(&self, heap: &mut [u32], mut at: usize, entries: &Entries) {
        loop {
            let mut best = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < heap.len() && self.is_better(entries, heap[child], heap[best]) {
                    best = child;
                }
            }
            if best == at {
                return;
            }
            heap.swap(at, best);
            at = best;
        }
    }
}
