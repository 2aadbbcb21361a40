//! Rows by what they hold. A row that is taken back is found at once, also where very many share its order key, as all do in a
//! LIMIT without an order.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use xxhash_rust::xxh3::xxh3_64;

/// Row numbers by the hash of the rows' bytes.
#[derive(Debug, Default)]
pub(super) struct RowLookup {
    /// The row that came last of those with a hash; from it the next leads to the first.
    last: HashMap<u64, u32, BuildHasherDefault<HashOfHash>>,
    /// By row number: the row with the same hash that came next.
    next: Vec<u32>,
}

/// What is hashed is a hash.
#[derive(Debug, Default)]
struct HashOfHash(u64);

impl Hasher for HashOfHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64(bytes);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl RowLookup {
    /// Adds a row, behind those that are equal to it.
    pub(super) fn insert(&mut self, row: &[u8], number: u32) {
        if self.next.len() <= number as usize {
            self.next.resize(number as usize + 1, 0);
        }
        let first = match self.last.insert(xxh3_64(row), number) {
            Some(last) => std::mem::replace(&mut self.next[last as usize], number),
            None => number,
        };
        self.next[number as usize] = first;
    }

    /// Takes the first row out that is equal to one.
    pub(super) fn take(&mut self, row: &[u8], is_equal: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = xxh3_64(row);
        let last = *self.last.get(&hash)?;
        let mut before = last;
        loop {
            let number = self.next[before as usize];
            if is_equal(number) {
                self.next[before as usize] = self.next[number as usize];
                if number == before {
                    self.last.remove(&hash);
                } else if number == last {
                    self.last.insert(hash, before);
                }
                return Some(number);
            }
            if number == last {
                return None;
            }
            before = number;
        }
    }

    /// Returns how many bytes are allocated.
    pub(super) fn bytes(&self) -> usize {
        // The map has a byte of its own per entry, and is never more than seven eighths full.
        self.last.capacity() * 8 / 7 * (size_of::<(u64, u32)>() + 1) + self.next.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::Random;
    use super::*;

    #[test]
    fn equal_rows_are_taken_in_the_order_in_which_they_came() {
        let mut random = Random::new(4);
        let (mut lookup, mut model) = (RowLookup::default(), Vec::<(u8, u32)>::new());
        for number in 0..2_000 {
            let row = random.below(5) as u8;
            if random.chance(55) {
                lookup.insert(&[row], number);
                model.push((row, number));
            } else {
                let expected = model.iter().position(|(other, _)| *other == row).map(|at| model.remove(at).1);
                assert_eq!(lookup.take(&[row], |_| true), expected);
            }
        }
    }

    #[test]
    fn of_rows_with_one_hash_only_the_equal_one_is_taken() {
        let mut lookup = RowLookup::default();
        (0..3).for_each(|number| lookup.insert(b"x", number));
        assert_eq!(lookup.take(b"x", |number| number == 2), Some(2));
        assert_eq!(lookup.take(b"x", |number| number == 2), None);
        assert_eq!(lookup.take(b"x", |number| number == 1), Some(1));
        lookup.insert(b"x", 3);
        assert_eq!([lookup.take(b"x", |_| true), lookup.take(b"x", |_| true)], [Some(0), Some(3)]);
        assert_eq!(lookup.take(b"x", |_| true), None);
    }
}
