//! Byte strings by number, in one piece of memory. Space of strings that have gone is taken back when it is more than what is in
//! use, so that no string is moved more than once per string that goes. Strings that all have one length need no note of where
//! they lie, and have no space to take back: their numbers are given again.

/// Byte strings of any length, or all of one.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    /// The strings, if all have one length.
    fixed: Option<FixedStrings>,
    bytes: Vec<u8>,
    /// Start and length by number.
    spans: Vec<(usize, u32)>,
    dead: usize,
}

impl Arena {
    /// Makes an arena for strings of this length, or of any if there is none.
    pub(crate) fn new(width: Option<usize>) -> Arena {
        let fixed = width.map(|width| FixedStrings { width, pages: Vec::new() });
        Arena { fixed, ..Arena::default() }
    }

    /// Returns a string; it must have been set.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> &[u8] {
        if let Some(fixed) = &self.fixed {
            return fixed.get(at);
        }
        let (start, len) = self.spans[at];
        &self.bytes[start..start + len as usize]
    }

    /// Sets a string where there is none.
    pub(crate) fn set(&mut self, at: usize, value: &[u8]) {
        if let Some(fixed) = &mut self.fixed {
            fixed.set(at, value);
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
        if self.fixed.is_some() {
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
        self.fixed.as_ref().map_or(0, FixedStrings::allocated)
            + self.bytes.capacity()
            + self.spans.capacity() * size_of::<(usize, u32)>()
    }
}

/// How many strings of one length lie in a page.
const PAGE: usize = 1 << 12;

/// Strings of one length, in pages, which are not moved when there are more.
#[derive(Debug)]
struct FixedStrings {
    width: usize,
    /// Only the first is smaller than the others.
    pages: Vec<Vec<u8>>,
}

impl FixedStrings {
    #[inline]
    fn get(&self, at: usize) -> &[u8] {
        let start = at % PAGE * self.width;
        &self.pages[at / PAGE][start..start + self.width]
    }

    fn set(&mut self, at: usize, value: &[u8]) {
        let (page, start) = (at / PAGE, at % PAGE * self.width);
        while self.pages.len() <= page {
            let bytes = if self.pages.is_empty() { 0 } else { PAGE * self.width };
            self.pages.push(Vec::with_capacity(bytes));
        }
        let page = &mut self.pages[page];
        if page.len() < start + self.width {
            page.resize(start + self.width, 0);
        }
        page[start..start + self.width].copy_from_slice(value);
    }

    fn allocated(&self) -> usize {
        self.pages.iter().map(Vec::capacity).sum::<usize>() + self.pages.capacity() * size_of::<Vec<u8>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_one_length_are_found_by_number_and_give_way_to_others() {
        let mut arena = Arena::new(Some(3));
        arena.set(0, b"abc");
        arena.set(PAGE + 1, b"xyz");
        arena.clear(0);
        arena.set(0, b"def");
        assert_eq!((arena.get(0), arena.get(PAGE + 1)), (&b"def"[..], &b"xyz"[..]));
        assert!(arena.allocated() < 4 * PAGE);
    }
}
