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
    is_usable: bool,
}

/// One field of an object.
#[derive(Debug, Clone, Copy)]
pub(in crate::format) struct Step {
    /// Where the text in front of the value begins and ends.
    start: u32,
    end: u32,
    /// The position of the column that takes the value; None if it is skipped.
    pub(in crate::format) column: Option<u32>,
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

    /// Returns the text in front of a step's value.
    #[inline]
    pub(in crate::format) fn lead(&self, step: Step) -> &[u8] {
        &self.text[step.start as usize..step.end as usize]
    }

    /// Returns the text behind the last value.
    #[inline]
    pub(in crate::format) fn tail(&self) -> &[u8] {
        &self.text[self.steps.last().map_or(0, |step| step.end as usize)..]
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
        let start = self.draft.text.len() as u32;
        self.draft.text.extend_from_slice(lead);
        let end = self.draft.text.len() as u32;
        self.draft.steps.push(Step { start, end, column: column.map(|at| at as u32) });
        self.draft.is_usable = self.draft.steps.len() <= STEPS_MAX;
    }

    /// Says that the object does not fit a shape: a field comes twice.
    pub(in crate::format) fn give_up(&mut self) {
        self.draft.is_usable = false;
    }

    /// Expects the next object to look like the one just learnt, which ends with the given text.
    pub(in crate::format) fn finish(&mut self, tail: &[u8]) {
        if self.draft.is_usable {
            self.draft.text.extend_from_slice(tail);
            std::mem::swap(&mut self.expected, &mut self.draft);
        }
    }
}
