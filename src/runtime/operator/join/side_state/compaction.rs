//! Taking memory back: rows get new numbers, without gaps, where most numbers are free.

use hashbrown::HashTable;

use super::{ABSENT, SideState, spread};

/// The number of free rows that are not worth the work.
const FREE_MIN: usize = 4096;

impl SideState {
    /// Closes the gaps if more than half of the numbers are free. Numbers that were handed out before are no longer right.
    pub(in super::super) fn compact(&mut self) {
        if self.free.len() < FREE_MIN || self.free.len() <= self.capacity / 2 {
            return;
        }
        // Rows of a key come to lie side by side.
        let mut kept = Vec::with_capacity(self.row_count);
        let mut numbers = vec![ABSENT; self.capacity];
        for chain in &mut self.chains {
            let mut row = chain.first;
            while row != ABSENT {
                numbers[row as usize] = kept.len() as u32;
                kept.push(row);
                row = self.next[row as usize];
            }
            if chain.len > 0 {
                (chain.first, chain.last) = (numbers[chain.first as usize], numbers[chain.last as usize]);
            }
        }
        let renumbered = |row: u32| if row == ABSENT { ABSENT } else { numbers[row as usize] };
        for links in [&mut self.next, &mut self.prev].into_iter().filter(|links| !links.is_empty()) {
            *links = kept.iter().map(|row| renumbered(links[*row as usize])).collect();
        }
        let counts = [&mut self.hashes, &mut self.multiplicities, &mut self.associations];
        for counts in counts.into_iter().filter(|counts| !counts.is_empty()) {
            *counts = counts.permuted(&kept);
        }
        let mut index = HashTable::with_capacity(self.index.len());
        for row in self.index.iter().map(|row| numbers[*row as usize]) {
            let hash_of = |row: &u32| spread(self.hashes[*row as usize]);
            index.insert_unique(hash_of(&row), row, hash_of);
        }
        self.index = index;
        self.store.keep(&kept);
        self.journal.keep(&kept);
        self.free = Vec::new();
        self.capacity = kept.len();
    }
}
