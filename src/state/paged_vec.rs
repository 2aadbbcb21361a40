//! A vector in pages: what is there is never moved when it grows, and there is room for one page more at most. A vector of Rust has up
//! to twice the memory that it needs, and three times while it grows.

use std::ops::{Index, IndexMut};

/// The number of values of a page.
const PAGE: usize = 1 << 13;

/// Values by number.
#[derive(Debug)]
pub(crate) struct PagedVec<T> {
    /// All are full but the last.
    pages: Vec<Vec<T>>,
}

impl<T> Default for PagedVec<T> {
    fn default() -> Self {
        PagedVec { pages: Vec::new() }
    }
}

impl<T: Copy> PagedVec<T> {
    /// Returns how many values there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.pages.last().map_or(0, |last| (self.pages.len() - 1) * PAGE + last.len())
    }

    /// Returns whether there is no value.
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Returns a value if it is there.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<T> {
        self.pages.get(at / PAGE)?.get(at % PAGE).copied()
    }

    /// Adds a value.
    pub(crate) fn push(&mut self, value: T) {
        let len = self.len();
        self.grow(len + 1, value);
    }

    /// Adds values until there are so many.
    pub(crate) fn grow(&mut self, len: usize, value: T) {
        let mut missing = len.saturating_sub(self.len());
        while missing > 0 {
            if self.pages.last().is_none_or(|last| last.len() == PAGE) {
                // Only the first page begins small.
                self.pages.push(if self.pages.is_empty() { Vec::new() } else { Vec::with_capacity(PAGE) });
            }
            let Some(last) = self.pages.last_mut() else { return };
            let more = missing.min(PAGE - last.len());
            last.resize(last.len() + more, value);
            missing -= more;
        }
    }

    /// Returns the values with these numbers, in this order.
    pub(crate) fn permuted(&self, numbers: &[u32]) -> PagedVec<T> {
        numbers.iter().map(|number| self[*number as usize]).collect()
    }

    /// Returns the values in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.pages.iter().flatten().copied()
    }

    /// Returns how many bytes are allocated.
    pub(crate) fn bytes(&self) -> usize {
        self.pages.iter().map(Vec::capacity).sum::<usize>() * size_of::<T>()
            + self.pages.capacity() * size_of::<Vec<T>>()
    }
}

impl<T: Copy> FromIterator<T> for PagedVec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut paged = PagedVec::default();
        values.into_iter().for_each(|value| paged.push(value));
        paged
    }
}

impl<T> Index<usize> for PagedVec<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        &self.pages[at / PAGE][at % PAGE]
    }
}

impl<T> IndexMut<usize> for PagedVec<T> {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.pages[at / PAGE][at % PAGE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_number_across_pages() {
        let mut paged: PagedVec<u32> = (0..3).collect();
        assert!(paged.bytes() < PAGE, "a small one has a small page");
        paged.grow(2, 9);
        assert_eq!(paged.len(), 3);
        paged.grow(2 * PAGE + 5, 7);
        paged[2 * PAGE] = 1;
        paged.push(8);
        assert_eq!((paged[2], paged[3], paged[2 * PAGE]), (2, 7, 1));
        assert_eq!(
            (paged.len(), paged.get(2 * PAGE + 5), paged.get(2 * PAGE + 6)),
            (2 * PAGE + 6, Some(8), None)
        );
        let model: Vec<u32> = paged.iter().collect();
        assert_eq!(model.len(), paged.len());
        let picked = paged.permuted(&[2, 2 * PAGE as u32, 0]);
        assert_eq!(picked.iter().collect::<Vec<_>>(), [2, 1, 0]);
        assert!(paged.bytes() < 3 * PAGE * 4 + 200);
        assert!(PagedVec::<u32>::default().is_empty());
    }
}
