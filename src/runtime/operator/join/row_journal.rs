//! What a checkpoint has to write of rows that are found by number.
//!
//! Every row has an identity of its own that no later row gets, so that a number may be given again at once: what the checkpoint
//! knew under it is deleted by its identity. Identities grow with arrival and survive a restore. Their lowest bits are the key
//! group, so that rows of two workers, each of which counts for itself, never have the same.

use crate::state::{GROUP_COUNT, PagedVec};

/// Remembers which rows have changed and which have gone.
#[derive(Debug, Default)]
pub(super) struct RowJournal {
    ids: PagedVec<i64>,
    flags: PagedVec<u8>,
    /// Numbers with `LISTED`.
    changed: PagedVec<u32>,
    /// Identities of rows that the last checkpoint has and that are no more.
    deleted: Vec<i64>,
    /// How many rows there have been.
    arrived: i64,
}

/// The row differs from what the last checkpoint has.
const CHANGED: u8 = 1;
/// The last checkpoint has the row.
const SAVED: u8 = 2;
/// The number stands in `changed`, maybe for a row that has gone.
const LISTED: u8 = 4;

impl RowJournal {
    /// Notes a new row.
    #[inline]
    pub(super) fn add(&mut self, number: u32, group: u8) {
        self.put(number, self.arrived * GROUP_COUNT as i64 + i64::from(group));
        self.arrived += 1;
        self.change(number);
    }

    /// Notes a row that comes from a checkpoint.
    pub(super) fn load(&mut self, number: u32, id: i64) {
        self.put(number, id);
        self.flags[number as usize] |= SAVED;
        self.arrived = self.arrived.max(id / GROUP_COUNT as i64 + 1);
    }

    /// Notes that a row is not what it was.
    #[inline]
    pub(super) fn change(&mut self, number: u32) {
        let flags = &mut self.flags[number as usize];
        if *flags & LISTED == 0 {
            self.changed.push(number);
        }
        *flags |= CHANGED | LISTED;
    }

    /// Notes that a row has gone; its number is free.
    #[inline]
    pub(super) fn remove(&mut self, number: u32) {
        let at = number as usize;
        if self.flags[at] & SAVED != 0 {
            self.deleted.push(self.ids[at]);
        }
        self.flags[at] &= LISTED;
    }

    /// Takes out the numbers of rows to write, and the identities of those to delete.
    pub(super) fn take(&mut self) -> (Vec<u32>, Vec<i64>) {
        let mut changed: Vec<u32> = std::mem::take(&mut self.changed).iter().collect();
        changed.retain(|number| {
            let flags = &mut self.flags[*number as usize];
            let is_changed = *flags & CHANGED != 0;
            *flags = if is_changed { SAVED } else { *flags & SAVED };
            is_changed
        });
        (changed, std::mem::take(&mut self.deleted))
    }

    /// Keeps these rows, which get the numbers from 0 on in this order.
    pub(super) fn keep(&mut self, numbers: &[u32]) {
        self.ids = self.ids.permuted(numbers);
        self.flags = self.flags.permuted(numbers);
        let is_listed = |number: &u32| self.flags[*number as usize] & LISTED != 0;
        self.changed = (0..numbers.len() as u32).filter(is_listed).collect();
    }

    /// Returns the identity of a row.
    pub(super) fn id(&self, number: u32) -> i64 {
        self.ids[number as usize]
    }

    /// Returns the key group of an identity.
    pub(super) fn group(id: i64) -> u8 {
        (id % GROUP_COUNT as i64) as u8
    }

    /// Returns how many bytes are allocated.
    pub(super) fn bytes(&self) -> usize {
        self.ids.bytes()
            + self.flags.bytes()
            + self.changed.bytes()
            + self.deleted.capacity() * size_of::<i64>()
    }

    fn put(&mut self, number: u32, id: i64) {
        let at = number as usize;
        self.ids.grow(at + 1, 0);
        self.flags.grow(at + 1, 0);
        self.ids[at] = id;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_given_again_deletes_what_was_saved_under_it() {
        let mut journal = RowJournal::default();
        journal.add(0, 3);
        assert_eq!(journal.take(), (vec![0], vec![]));
        journal.remove(0);
        journal.add(0, 5);
        assert_eq!(journal.id(0), 128 + 5);
        assert_eq!(journal.take(), (vec![0], vec![3]));
        journal.remove(0);
        assert_eq!(journal.take(), (vec![], vec![128 + 5]));
        assert_eq!(RowJournal::group(128 + 5), 5);
    }

    #[test]
    fn rows_that_come_and_go_without_a_checkpoint_leave_nothing() {
        let mut journal = RowJournal::default();
        for _ in 0..1000 {
            journal.add(0, 0);
            journal.remove(0);
        }
        assert_eq!(journal.changed.len(), 1);
        assert_eq!(journal.take(), (vec![], vec![]));
    }

    #[test]
    fn identities_go_on_above_what_was_loaded() {
        let mut journal = RowJournal::default();
        journal.load(0, 41 * 128 + 1);
        journal.load(1, 7 * 128 + 1);
        journal.add(2, 1);
        assert_eq!(journal.id(2), 42 * 128 + 1);
        assert_eq!(journal.take(), (vec![2], vec![]));
    }
}
