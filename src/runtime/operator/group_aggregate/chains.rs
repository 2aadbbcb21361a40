//! Lists of items by slot, doubly linked, so that an item leaves its list in one step wherever it stands.

use crate::state::ABSENT;

/// The link of an item that is in no list.
const LOOSE: u32 = ABSENT - 1;

/// The lists.
#[derive(Debug, Default)]
pub(super) struct Chains {
    /// The first and the last item of each slot.
    ends: Vec<[u32; 2]>,
    /// The items before and behind each item.
    links: Vec<[u32; 2]>,
}

impl Chains {
    /// Makes room for slots.
    pub(super) fn grow(&mut self, slot_count: usize) {
        if self.ends.len() < slot_count {
            self.ends.resize(slot_count, [ABSENT; 2]);
        }
    }

    /// Returns the first item of a slot, or `ABSENT`.
    pub(super) fn first(&self, slot: u32) -> u32 {
        self.ends[slot as usize][0]
    }

    /// Returns the last item of a slot, or `ABSENT`.
    pub(super) fn last(&self, slot: u32) -> u32 {
        self.ends[slot as usize][1]
    }

    /// Returns whether an item is in a list.
    pub(super) fn contains(&self, item: u32) -> bool {
        self.links.get(item as usize).is_some_and(|links| links[0] != LOOSE)
    }

    /// Puts an item at the end of a slot's list.
    pub(super) fn push(&mut self, slot: u32, item: u32) {
        if self.links.len() <= item as usize {
            self.links.resize(item as usize + 1, [LOOSE; 2]);
        }
        let ends = &mut self.ends[slot as usize];
        let last = ends[1];
        self.links[item as usize] = [last, ABSENT];
        ends[1] = item;
        if last == ABSENT {
            ends[0] = item;
        } else {
            self.links[last as usize][1] = item;
        }
    }

    /// Takes an item out of its slot's list.
    pub(super) fn remove(&mut self, slot: u32, item: u32) {
        let [before, behind] = std::mem::replace(&mut self.links[item as usize], [LOOSE; 2]);
        let ends = &mut self.ends[slot as usize];
        if before == ABSENT {
            ends[0] = behind;
        } else {
            self.links[before as usize][1] = behind;
        }
        if behind == ABSENT {
            ends[1] = before;
        } else {
            self.links[behind as usize][0] = before;
        }
    }

    /// Returns the items of a slot in order.
    pub(super) fn iter(&self, slot: u32) -> impl Iterator<Item = u32> + '_ {
        let first = self.first(slot);
        std::iter::successors((first != ABSENT).then_some(first), |item| {
            let behind = self.links[*item as usize][1];
            (behind != ABSENT).then_some(behind)
        })
    }

    /// Returns how many bytes are allocated.
    pub(super) fn bytes(&self) -> usize {
        (self.ends.capacity() + self.links.capacity()) * size_of::<[u32; 2]>()
    }
}
