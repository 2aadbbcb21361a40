//! ROW_NUMBER, RANK and DENSE_RANK as window functions of DataFusion. Its own return unsigned numbers, Flink's return BIGINT.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::{DataType as ArrowType, Field as ArrowField, FieldRef};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl};

/// How rows of a partition are numbered in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RankingFunction {
    /// From 1, each row another number.
    RowNumber,
    /// Equal rows have the number of the first of them.
    Rank,
    /// Equal rows have one number, and no number is left out.
    DenseRank,
}

impl RankingFunction {
    /// Finds a function by its name, in any case.
    pub(crate) fn find(name: &str) -> Option<RankingFunction> {
        [RankingFunction::RowNumber, RankingFunction::Rank, RankingFunction::DenseRank]
            .into_iter()
            .find(|function| function.name().eq_ignore_ascii_case(name))
    }

    /// Returns which function a window function of a plan is.
    pub(crate) fn of(window: &WindowUDF) -> Option<RankingFunction> {
        window.inner().as_any().downcast_ref::<Ranking>().map(|ranking| ranking.function)
    }

    /// Returns the name in capitals.
    pub(crate) fn name(self) -> &'static str {
        match self {
            RankingFunction::RowNumber => "ROW_NUMBER",
            RankingFunction::Rank => "RANK",
            RankingFunction::DenseRank => "DENSE_RANK",
        }
    }

    /// Makes the window function; it returns BIGINT NOT NULL.
    pub(crate) fn window_function(self) -> Arc<WindowUDF> {
        let signature = Signature::nullary(Volatility::Immutable);
        Arc::new(WindowUDF::from(Ranking { function: self, signature }))
    }

    /// Numbers a partition of `row_count` rows, whose equal rows lie in `peers`.
    fn numbers(self, row_count: usize, peers: &[Range<usize>]) -> Int64Array {
        match self {
            RankingFunction::RowNumber => (1..=row_count as i64).collect(),
            RankingFunction::Rank => {
                let ranks =
                    peers.iter().flat_map(|rows| std::iter::repeat_n(rows.start as i64 + 1, rows.len()));
                Int64Array::from_iter_values(ranks)
            }
            RankingFunction::DenseRank => {
                let ranks = peers.iter().zip(1_i64..);
                let ranks = ranks.flat_map(|(rows, rank)| std::iter::repeat_n(rank, rows.len()));
                Int64Array::from_iter_values(ranks)
            }
        }
    }
}

/// A ranking function as DataFusion sees it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Ranking {
    function: RankingFunction,
    signature: Signature,
}

impl WindowUDFImpl for Ranking {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> &str {
        self.function.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn partition_evaluator(
        &self,
        _: PartitionEvaluatorArgs<'_>,
    ) -> DataFusionResult<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(Numbering(self.function)))
    }

    fn field(&self, arguments: WindowUDFFieldArgs<'_>) -> DataFusionResult<FieldRef> {
        Ok(Arc::new(ArrowField::new(arguments.name(), ArrowType::Int64, false)))
    }
}

/// Numbers the rows of whole partitions.
#[derive(Debug)]
struct Numbering(RankingFunction);

impl PartitionEvaluator for Numbering {
    fn evaluate_all(&mut self, _: &[ArrayRef], row_count: usize) -> DataFusionResult<ArrayRef> {
        Ok(Arc::new(self.0.numbers(row_count, &[])))
    }

    fn evaluate_all_with_rank(&self, row_count: usize, peers: &[Range<usize>]) -> DataFusionResult<ArrayRef> {
        Ok(Arc::new(self.0.numbers(row_count, peers)))
    }

    fn include_rank(&self) -> bool {
        self.0 != RankingFunction::RowNumber
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rows_share_a_rank_and_only_dense_ranks_have_no_gaps() {
        let peers = [0..1, 1..3, 3..4];
        let numbers = |name| RankingFunction::find(name).unwrap().numbers(4, &peers).values().to_vec();
        assert_eq!(numbers("row_number"), [1, 2, 3, 4]);
        assert_eq!(numbers("RANK"), [1, 2, 2, 4]);
        assert_eq!(numbers("Dense_Rank"), [1, 2, 2, 3]);
        assert!(RankingFunction::find("NTILE").is_none());
    }

    #[test]
    fn a_plans_function_is_recognised() {
        let rank = RankingFunction::Rank.window_function();
        assert_eq!(RankingFunction::of(&rank), Some(RankingFunction::Rank));
        assert_eq!(RankingFunction::of(&datafusion::functions_window::rank::rank_udwf()), None);
    }
}
