//! What the last object looked like. Records of a stream mostly differ in nothing but their values, so that the text between the
//! values, keys and braces included, need not be parsed again: one comparison per field says whether it is the same.

// Limit: objects with more keys are always parsed key by key.
const STEPS_MAX: usize = 1_024;

/// So many objects in a row that look otherwise end the guessing for a while.
const MISSES_MAX: u32 = 8;

/// For so many objects.
const REST: u32 = 200;

/// The texts between the values of an object.
#[derive(Debug, Default)]
pub(in crate::format) struct Shape {
    /// What stands in front of each value, one behind the other, and then what stands behind the last one.
    text: Vec<u8>,
    steps: Vec<Step>,
    /// What stands behind the last value.
    tail: Piece,
    /// How many steps have a column.
    column_count: usize,
    is_usable: bool,
}

/// One field of an object.
#[derive(Debug, Clone, Copy)]
pub(in crate::format) struct Step {
    /// What stands in front of the value.
    pub(in crate::format) lead: Piece,
    /// The position of the column that takes the value; None if it is skipped.
    pub(in crate::format) column: Option<u32>,
}

/// A piece of a shape's text.
#[derive(Debug, Default, Clone, Copy)]
pub(in crate::format) struct Piece {
    start: u32,
    end: u32,
    /// Up to 16 of its bytes as a number, and which bytes of 16 they are: so it is compared without a loop.
    head: u128,
    mask: u128,
}

/// The shape that is expected, the one that is being learnt, and whether guessing pays.
#[derive(Debug, Default)]
pub(in crate::format) struct ShapeGuess {
    expected: Shape,
    draft: Shape,
    misses: u32,
    /// How many objects are still to pass before the next guess.
    rest: u32,
}

impl Shape {
    pub(in crate::format) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns how many columns get a value.
    #[inline]
    pub(in crate::format) fn column_count(&self) -> usize {
        self.column_count
    }

    /// Returns what stands behind the last value.
    #[inline]
    pub(in crate::format) fn tail(&self) -> &Piece {
        &self.tail
    }

    /// Returns where a piece ends if it stands at an offset of a text.
    #[inline]
    pub(in crate::format) fn pass(&self, piece: &Piece, text: &[u8], at: usize) -> Option<usize> {
        let rest = text.get(at..)?;
        let (start, end) = (piece.start as usize, piece.end as usize);
        let is_there = match rest.first_chunk() {
            Some(next) if end - start <= size_of::<u128>() => {
                u128::from_le_bytes(*next) & piece.mask == piece.head
            }
            _ => rest.starts_with(&self.text[start..end]),
        };
        is_there.then_some(at + end - start)
    }

    /// Adds a piece.
    fn push(&mut self, text: &[u8]) -> Piece {
        let start = self.text.len() as u32;
        self.text.extend_from_slice(text);
        let mut head = [0; size_of::<u128>()];
        let mut mask = [0; size_of::<u128>()];
        for ((byte, head), mask) in text.iter().zip(&mut head).zip(&mut mask) {
            (*head, *mask) = (*byte, u8::MAX);
        }
        let (head, mask) = (u128::from_le_bytes(head), u128::from_le_bytes(mask));
        Piece { start, end: self.text.len() as u32, head, mask }
    }
}

impl ShapeGuess {
    /// Returns the expected shape, if a guess is worth its time.
    #[inline]
    pub(in crate::format) fn expected(&mut self) -> Option<&Shape> {
        if self.rest > 0 {
            self.rest -= 1;
            return None;
        }
        self.expected.is_usable.then_some(&self.expected)
    }

    /// Returns the shape that was expected last.
    #[inline]
    pub(in crate::format) fn shape(&self) -> &Shape {
        &self.expected
    }

    /// Notes that the object looked as expected.
    #[inline]
    pub(in crate::format) fn hit(&mut self) {
        self.misses = 0;
    }

    /// Notes that it did not.
    pub(in crate::format) fn miss(&mut self) {
        self.misses += 1;
        if self.misses == MISSES_MAX {
            self.misses = 0;
            self.rest = REST;
        }
    }

    /// Starts to learn from an object.
    pub(in crate::format) fn begin(&mut self) {
        self.draft.text.clear();
        self.draft.steps.clear();
        // What is learnt is of use only if the next object is guessed.
        self.draft.is_usable = self.rest == 0;
    }

    /// Learns the text in front of a value, and which column takes it.
    #[inline]
    pub(in crate::format) fn learn(&mut self, lead: &[u8], column: Option<usize>) {
        if !self.draft.is_usable {
            return;
        }
        let lead = self.draft.push(lead);
        self.draft.steps.push(Step { lead, column: column.map(|at| at as u32) });
        self.draft.is_usable = self.draft.steps.len() <= STEPS_MAX;
    }

    /// Says that the object does not fit a shape: a field comes twice.
    pub(in crate::format) fn give_up(&mut self) {
        self.draft.is_usable = false;
    }

    /// Expects the next object to look like the one just learnt, which ends with the given text.
    pub(in crate::format) fn finish(&mut self, tail: &[u8]) {
        if self.draft.is_usable {
            self.draft.tail = self.draft.push(tail);
            self.draft.column_count = self.draft.steps.iter().filter(|step| step.column.is_some()).count();
            std::mem::swap(&mut self.expected, &mut self.draft);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_passed_where_it_stands_whatever_its_length() {
        for len in 0..40 {
            let piece: Vec<u8> = (0..len).map(|at| b'a' + at % 26).collect();
            let mut guess = ShapeGuess::default();
            guess.begin();
            guess.learn(&piece, None);
            guess.finish(&piece);
            let shape = guess.shape();
            for behind in ["", "x", "a text that is longer than a piece"] {
                let text = [b"..", &*piece, behind.as_bytes()].concat();
                for piece in [shape.steps()[0].lead, *shape.tail()] {
                    assert_eq!(shape.pass(&piece, &text, 2), Some(2 + usize::from(len)));
                    for at in 2..2 + usize::from(len) {
                        let mut other = text.clone();
                        other[at] = b'?';
                        assert_eq!(shape.pass(&piece, &other, 2), None);
                        assert_eq!(shape.pass(&piece, &text[..at], 2), None);
                    }
                }
            }
        }
    }
}
