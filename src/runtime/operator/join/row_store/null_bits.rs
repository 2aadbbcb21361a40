//! Which rows of a column are NULL.

use arrow::buffer::{BooleanBuffer, NullBuffer};

use super::super::ABSENT;

/// Which rows are NULL; without memory until one is.
#[derive(Debug, Default)]
pub(super) struct NullBits {
    words: Vec<u64>,
}

impl NullBits {
    /// Returns whether a row is NULL.
    #[inline]
    pub(super) fn is_null(&self, number: usize) -> bool {
        self.words.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Sets rows as those of a batch are.
    pub(super) fn write(&mut self, numbers: &[u32], nulls: Option<&NullBuffer>, rows: &[u32]) {
        if self.words.is_empty() && nulls.is_none() {
            return;
        }
        for (number, row) in numbers.iter().zip(rows) {
            let (word, bit) = (*number as usize / 64, 1 << (number % 64));
            let is_null = nulls.is_some_and(|nulls| nulls.is_null(*row as usize));
            if is_null {
                if self.words.len() <= word {
                    self.words.resize(word + 1, 0);
                }
                self.words[word] |= bit;
            } else if let Some(word) = self.words.get_mut(word) {
                *word &= !bit;
            }
        }
    }

    /// Returns which of the given rows are not NULL; None if all are. `ABSENT` is NULL.
    pub(super) fn gather(&self, numbers: &[u32]) -> Option<NullBuffer> {
        if self.words.is_empty() && !numbers.contains(&ABSENT) {
            return None;
        }
        let is_valid = |at: usize| numbers[at] != ABSENT && !self.is_null(numbers[at] as usize);
        let nulls = NullBuffer::new(BooleanBuffer::collect_bool(numbers.len(), is_valid));
        (nulls.null_count() > 0).then_some(nulls)
    }

    /// Keeps these rows, in this order.
    pub(super) fn keep(&mut self, numbers: &[u32]) {
        if self.words.is_empty() {
            return;
        }
        let mut words = vec![0_u64; numbers.len().div_ceil(64)];
        for (at, number) in numbers.iter().enumerate() {
            words[at / 64] |= u64::from(self.is_null(*number as usize)) << (at % 64);
        }
        self.words = words;
    }

    /// Returns how many bytes are allocated.
    pub(super) fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }
}
