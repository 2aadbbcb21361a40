//! Byte strings by number, in one piece of memory. Space of strings that have gone is taken back when it is more than what is in
//! use, so that no string is moved more than once per string that goes. Strings that all have one length need no note of where
//! they lie, and have no space to take back: their numbers are given again.

/// Byte strings of any length, or all of one.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    /// The length of all strings, if it is one.
    width: Option<usize>,
    bytes: Vec<u8>,
    /// Start and length by number.
    spans: Vec<(usize, u32)>,
    dead: usize,
}

impl Arena {
    /// Makes an arena for strings of this length, or of any if there is none.
    pub(crate) fn new(width: Option<usize>) -> Arena {
        Arena { width, ..Arena::default() }
    }

    /// Returns a string; it must have been set.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> &[u8] {
        if let Some(width) = self.width {
            return &self.bytes[at * width..(at + 1) * width];
        }
        let (start, len) = self.spans[at];
        &self.bytes[start..start + len as usize]
    }

    /// Sets a string where there is none.
    pub(crate) fn set(&mut self, at: usize, value: &[u8]) {
        if let Some(width) = self.width {
            if self.bytes.len() < (at + 1) * width {
                self.bytes.resize((at + 1) * width, 0);
            }
            self.bytes[at * width..(at + 1) * width].copy_from_slice(value);
            return;
        }
        if self.spans.len() <= at {
            self.spans.resize(at + 1, (0, 0));
        }
        self.spans[at] = (self.bytes.len(), value.len() as u32);
        self.bytes.extend_from_slice(value);
    }

    /// Removes a string.
    pub(crate) fn clear(&mut self, at: usize) {
        if self.width.is_some() {
            return;
        }
        self.dead += self.spans[at].1 as usize;
        self.spans[at] = (0, 0);
        if self.dead > self.bytes.len() / 2 && self.dead > 1 << 12 {
            let mut kept = Vec::with_capacity(self.bytes.len() - self.dead);
            for (start, len) in &mut self.spans {
                let value = &self.bytes[*start..*start + *len as usize];
                *start = kept.len();
                kept.extend_from_slice(value);
            }
            self.bytes = kept;
            self.dead = 0;
        }
    }

    /// Returns how many bytes are allocated.
    pub(crate) fn allocated(&self) -> usize {
        self.bytes.capacity() + self.spans.capacity() * size_of::<(usize, u32)>()
    }
}
