//! Leaves out `-U`, for consumers that know a row by its key.

use arrow::array::UInt32Array;

use super::{Operator, Output};
use crate::changelog::{ChangelogBatch, RowKind};
use crate::error::Result;

/// Passes on everything but `-U`.
pub(crate) struct DropUpdateBefore;

impl Operator for DropUpdateBefore {
    fn process(&mut self, _input: usize, batch: ChangelogBatch, output: &mut Output) -> Result<()> {
        let before = RowKind::UpdateBefore as u8;
        match batch.kind_bytes() {
            Some(kinds) if kinds.contains(&before) => {
                let kept = (0..kinds.len()).filter(|row| kinds[*row] != before).map(|row| row as u32);
                let kept = UInt32Array::from_iter_values(kept);
                output.push(batch.take(&kept)?);
            }
            _ => output.push(batch),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{TestInput, check, schema};
    use super::*;
    use arrow::datatypes::DataType::Int32;

    #[test]
    fn only_the_earlier_versions_are_left_out() {
        let input = [TestInput::new(&schema(&[("id", Int32)]), &[])];
        check(|| DropUpdateBefore, &input, &["+I 1", "-U 1", "+U 2", "-D 2"], &["+I 1", "+U 2", "-D 2"]);
    }
}
