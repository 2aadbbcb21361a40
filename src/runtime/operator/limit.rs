//! LIMIT without ORDER BY over rows that are only added: the first ones to arrive.

use super::{Operator, Output};
use crate::changelog::ChangelogBatch;
use crate::error::Result;

/// Lets the first rows through, and then asks for no more.
pub(crate) struct Limit {
    skip: usize,
    left: Option<usize>,
}

impl Limit {
    /// Creates the operator.
    pub(crate) fn new(skip: usize, fetch: Option<usize>) -> Limit {
        Limit { skip, left: fetch }
    }
}

impl Operator for Limit {
    fn process(&mut self, _input: usize, batch: ChangelogBatch, output: &mut Output) -> Result<()> {
        let skipped = self.skip.min(batch.row_count());
        self.skip -= skipped;
        let mut kept = batch.row_count() - skipped;
        if let Some(left) = &mut self.left {
            kept = kept.min(*left);
            *left -= kept;
        }
        output.push(batch.slice(skipped, kept));
        Ok(())
    }

    fn is_exhausted(&self) -> bool {
        self.left == Some(0)
    }
}
