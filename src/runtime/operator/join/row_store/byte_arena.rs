//! Byte strings of a column, one behind the other.

use arrow::buffer::{Buffer, OffsetBuffer};

use crate::error::{Error, Result};

/// Byte strings by row number.
#[derive(Debug, Default)]
pub(super) struct ByteArena {
    bytes: Vec<u8>,
    starts: Vec<u64>,
    lengths: Vec<u32>,
    dead: usize,
}

/// Dead bytes below which an arena is left alone.
const DEAD_MIN: usize = 1 << 14;

impl ByteArena {
    /// Returns a row's bytes.
    #[inline]
    pub(super) fn get(&self, at: usize) -> &[u8] {
        let start = self.starts[at] as usize;
        &self.bytes[start..start + self.lengths[at] as usize]
    }

    /// Makes room for this many rows.
    pub(super) fn reserve(&mut self, len: usize) {
        if self.starts.len() < len {
            self.starts.resize(len, 0);
            self.lengths.resize(len, 0);
        }
    }

    /// Writes a row, which holds nothing yet.
    pub(super) fn set(&mut self, at: usize, value: &[u8]) {
        self.starts[at] = self.bytes.len() as u64;
        self.lengths[at] = value.len() as u32;
        self.bytes.extend_from_slice(value);
    }

    /// Empties a row.
    pub(super) fn clear(&mut self, at: usize) {
        self.dead += self.lengths[at] as usize;
        self.lengths[at] = 0;
        if self.dead > DEAD_MIN && self.dead > self.bytes.len() / 2 {
            let mut kept = Vec::with_capacity(self.bytes.len() - self.dead);
            for (start, length) in self.starts.iter_mut().zip(&self.lengths) {
                let value = &self.bytes[*start as usize..*start as usize + *length as usize];
                *start = kept.len() as u64;
                kept.extend_from_slice(value);
            }
            self.bytes = kept;
            self.dead = 0;
        }
    }

    /// Returns the bytes of the given rows; what is not there is empty.
    ///
    /// # Errors
    /// They are longer than an Arrow column can be.
    pub(super) fn gather(&self, numbers: &[u32]) -> Result<(OffsetBuffer<i32>, Buffer)> {
        let length = |number: &u32| self.lengths.get(*number as usize).map_or(0, |length| *length as usize);
        let total: usize = numbers.iter().map(length).sum();
        if i32::try_from(total).is_err() {
            return Err(Error::data("the texts of one batch of joined rows are longer than 2 GiB")
                .hint("Join fewer long texts per key, or fetch them after the join."));
        }
        let mut bytes = Vec::with_capacity(total);
        for number in numbers {
            if length(number) > 0 {
                bytes.extend_from_slice(self.get(*number as usize));
            }
        }
        Ok((OffsetBuffer::from_lengths(numbers.iter().map(length)), Buffer::from_vec(bytes)))
    }

    /// Keeps these rows, in this order.
    pub(super) fn keep(&mut self, numbers: &[u32]) {
        let mut kept = ByteArena::default();
        kept.reserve(numbers.len());
        numbers.iter().enumerate().for_each(|(at, number)| kept.set(at, self.get(*number as usize)));
        *self = kept;
    }

    /// Returns how many bytes are allocated.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.capacity()
            + self.starts.capacity() * size_of::<u64>()
            + self.lengths.capacity() * size_of::<u32>()
    }
}
