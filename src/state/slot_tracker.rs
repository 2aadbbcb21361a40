//! What has happened to slots: since the last checkpoint, and within the epoch.
//!
//! A slot whose key has gone must not be given to another key while a checkpoint still has to say that the key has gone. So a
//! removed slot that an earlier checkpoint knows stays where it is until the next one has taken it.

use super::PagedVec;

/// Marks slots.
#[derive(Debug, Default)]
pub(crate) struct SlotTracker {
    flags: PagedVec<u8>,
    /// Slots with `LISTED`.
    changed: PagedVec<u32>,
    /// Slots with `TOUCHED`.
    touched: Vec<u32>,
}

/// The slot differs from what the last checkpoint has.
const CHANGED: u8 = 1;
/// The last checkpoint has the slot's key.
const SAVED: u8 = 2;
/// The epoch has touched the slot.
const TOUCHED: u8 = 4;
/// The slot stands in `changed`, where it stays when its key goes: a job without checkpoints never takes that list.
const LISTED: u8 = 8;

/// What a checkpoint has to write.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangedSlots {
    /// Slots whose rows are written.
    pub(crate) upserts: Vec<u32>,
    /// Slots whose keys are deleted; the owner frees them afterwards.
    pub(crate) deletes: Vec<u32>,
}

impl SlotTracker {
    /// Marks a slot as touched by the epoch and changed; returns whether it is the epoch's first touch.
    #[inline]
    pub(crate) fn touch(&mut self, slot: u32) -> bool {
        let flags = self.flags_mut(slot);
        let is_first = *flags & TOUCHED == 0;
        let is_listed = *flags & LISTED != 0;
        *flags |= TOUCHED | CHANGED | LISTED;
        if is_first {
            self.touched.push(slot);
        }
        if !is_listed {
            self.changed.push(slot);
        }
        is_first
    }

    /// Marks a slot as changed, whatever the epoch.
    #[inline]
    pub(crate) fn change(&mut self, slot: u32) {
        let flags = self.flags_mut(slot);
        let is_listed = *flags & LISTED != 0;
        *flags |= CHANGED | LISTED;
        if !is_listed {
            self.changed.push(slot);
        }
    }

    /// Marks a slot as loaded from a checkpoint.
    pub(crate) fn load(&mut self, slot: u32) {
        *self.flags_mut(slot) = SAVED;
    }

    /// Takes out the slots that the epoch has touched, in the order of their first touch.
    pub(crate) fn take_touched(&mut self) -> Vec<u32> {
        let touched = std::mem::take(&mut self.touched);
        for slot in &touched {
            self.flags[*slot as usize] &= !TOUCHED;
        }
        touched
    }

    /// Returns whether a slot whose key has gone may be freed at once: no checkpoint knows of it. If so, it is forgotten; if not,
    /// `take_changed` names it among the deletes.
    pub(crate) fn release(&mut self, slot: u32) -> bool {
        let flags = self.flags_mut(slot);
        if *flags & SAVED != 0 {
            self.change(slot);
            return false;
        }
        *flags &= LISTED;
        true
    }

    /// Takes out what has changed since the last call; `is_live` says whether a slot has a row. Deleted slots are forgotten.
    pub(crate) fn take_changed(&mut self, is_live: impl Fn(u32) -> bool) -> ChangedSlots {
        let mut taken = ChangedSlots::default();
        for slot in std::mem::take(&mut self.changed).iter() {
            let flags = &mut self.flags[slot as usize];
            *flags &= !LISTED;
            if *flags & CHANGED == 0 {
                continue;
            }
            *flags &= !CHANGED;
            if is_live(slot) {
                *flags |= SAVED;
                taken.upserts.push(slot);
            } else {
                if *flags & SAVED != 0 {
                    taken.deletes.push(slot);
                }
                *flags = 0;
            }
        }
        taken
    }

    /// Returns how many bytes are allocated.
    pub(crate) fn bytes(&self) -> usize {
        self.flags.bytes() + self.changed.bytes() + self.touched.capacity() * size_of::<u32>()
    }

    #[inline]
    fn flags_mut(&mut self, slot: u32) -> &mut u8 {
        let at = slot as usize;
        self.flags.grow(at + 1, 0);
        &mut self.flags[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_no_checkpoint_knows_leaves_no_trace() {
        let mut slots = SlotTracker::default();
        assert!(slots.touch(3));
        assert!(!slots.touch(3));
        assert_eq!(slots.take_touched(), [3]);
        assert!(slots.release(3));
        assert_eq!(slots.take_changed(|_| false), ChangedSlots::default());
    }

    #[test]
    fn a_saved_key_is_deleted_by_the_next_checkpoint() {
        let mut slots = SlotTracker::default();
        slots.touch(0);
        assert_eq!(slots.take_changed(|_| true), ChangedSlots { upserts: vec![0], deletes: vec![] });
        assert_eq!(slots.take_changed(|_| true), ChangedSlots::default());
        assert!(!slots.release(0));
        assert_eq!(slots.take_changed(|_| false), ChangedSlots { upserts: vec![], deletes: vec![0] });
        slots.load(1);
        assert!(!slots.release(1));
        slots.touch(1);
        assert_eq!(slots.take_changed(|_| true), ChangedSlots { upserts: vec![1], deletes: vec![] });
    }

    #[test]
    fn keys_that_come_and_go_take_no_room_without_checkpoints() {
        let mut slots = SlotTracker::default();
        for _ in 0..1_000 {
            slots.touch(0);
            slots.take_touched();
            slots.release(0);
        }
        assert_eq!(slots.changed.iter().collect::<Vec<_>>(), [0]);
        slots.touch(0);
        assert_eq!(slots.take_changed(|_| true).upserts, [0]);
    }

    #[test]
    fn a_slot_that_is_given_again_is_written_once() {
        let mut slots = SlotTracker::default();
        slots.touch(0);
        slots.take_touched();
        assert!(slots.release(0));
        slots.touch(0);
        assert_eq!(slots.take_changed(|_| true), ChangedSlots { upserts: vec![0], deletes: vec![] });
    }
}
