//! Top-N: ROW_NUMBER with a condition on its number, and ORDER BY … LIMIT. The number itself is computed only where it is read.

use std::sync::Arc;

use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    BinaryExpr, Expr, Filter, LogicalPlan, Operator, Sort, SortExpr, Window, WindowFunctionDefinition, lit,
};

use super::calc::{calc, first_columns, keep_columns};
use super::keys::same_value;
use super::lower::{Lowering, not_supported};
use super::node::PlanNode;
use super::time_attribute::{is_event_time, is_processing_time, needs_event_time};
use crate::error::{Error, FlinkClass, Result};
use crate::function::{AggregateFunction, RankingFunction};
use crate::plan::graph::{OperatorSpec, SortKey, TopNSpec, TopNStrategy};

/// The ranks that a condition lets through, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RankRange {
    first: u64,
    last: Option<u64>,
}

impl Lowering {
    /// Lowers a condition on a row number; None if the filter stands on something else.
    pub(super) fn ranked(&mut self, filter: &Filter) -> Result<Option<PlanNode>> {
        let LogicalPlan::Window(window) = skip_aliases(&filter.input) else { return Ok(None) };
        let call = row_number(window)?;
        let rank = window.schema.columns().pop().unwrap_or_else(|| Column::new_unqualified(""));
        let mut range = RankRange { first: 1, last: None };
        let mut others = Vec::new();
        for condition in split_conjunction(&filter.predicate) {
            match rank_range(condition, &rank) {
                Some(narrower) => range = range.narrowed(narrower),
                None => others.push(condition.clone()),
            }
        }
        let Some(last) = range.last else { return Err(endless_rank()) };
        let condition = others.into_iter().reduce(Expr::and);
        if last < range.first {
            let none = OperatorSpec::Values { rows: Vec::new() };
            return Ok(Some(PlanNode::new(none, Vec::new(), Arc::clone(&window.schema))));
        }
        let input = self.node(&window.input)?;
        let count = input.column_count();
        let (input, partition) = self.columns.columns(input, &call.params.partition_by)?;
        let (input, order) = self.sort_keys(input, &call.params.order_by)?;
        if input.column_count() > count {
            return Err(not_supported("a window over what is computed in it"));
        }
        let is_single = range.first == last;
        let arrival = arrival_order(&call.params.order_by, &window.input);
        let first_or_last = arrival.filter(|_| is_single && last == 1 && input.is_insert_only());
        if is_single
            && last == 1
            && let [key] = call.params.order_by.as_slice()
            && key.asc
            && is_event_time(&key.expr, &window.input)
        {
            // The last row by event time is what Top-N keeps; the first is said once the watermark has passed it.
            return Err(needs_event_time("the first row by event time"));
        }
        let top = TopNSpec {
            partition,
            order,
            first: range.first,
            last,
            with_rank: !is_single,
            strategy: TopNStrategy::Retract,
            emits_update_before: true,
        };
        let schema =
            if is_single { first_columns(&window.schema, count)? } else { Arc::clone(&window.schema) };
        let spec = match first_or_last {
            Some(is_ascending) => {
                OperatorSpec::Deduplicate { keys: top.partition, keeps_last: !is_ascending }
            }
            None => OperatorSpec::TopN(top),
        };
        let mut node = PlanNode::new(spec, vec![input], schema);
        if is_single {
            // There is but one rank, so that it need not be kept.
            let mut projection: Vec<Expr> = node.schema.columns().into_iter().map(Expr::Column).collect();
            let rank_value = i64::try_from(last).unwrap_or(i64::MAX);
            projection.push(lit(rank_value).alias_qualified(rank.relation.clone(), rank.name()));
            node = calc(node, None, Some(projection), &window.schema)?;
        }
        match condition {
            Some(condition) => calc(node, Some(condition), None, &window.schema).map(Some),
            None => Ok(Some(node)),
        }
    }

    /// Lowers ORDER BY with LIMIT: the first rows of one partition.
    pub(super) fn sort_limit(&mut self, sort: &Sort, skip: usize, fetch: usize) -> Result<PlanNode> {
        if fetch == 0 {
            let none = OperatorSpec::Values { rows: Vec::new() };
            return Ok(PlanNode::new(none, Vec::new(), Arc::clone(sort.input.schema())));
        }
        let input = self.node(&sort.input)?;
        let count = input.column_count();
        let (input, order) = self.sort_keys(input, &sort.expr)?;
        let top = TopNSpec {
            partition: Vec::new(),
            order,
            first: skip as u64 + 1,
            last: (skip as u64).saturating_add(fetch as u64),
            with_rank: false,
            strategy: TopNStrategy::Retract,
            emits_update_before: true,
        };
        let schema = Arc::clone(&input.schema);
        keep_columns(PlanNode::new(OperatorSpec::TopN(top), vec![input], schema), count)
    }

    /// Makes columns of the keys of an order.
    fn sort_keys(&mut self, input: PlanNode, order: &[SortExpr]) -> Result<(PlanNode, Vec<SortKey>)> {
        let exprs: Vec<Expr> = order.iter().map(|key| key.expr.clone()).collect();
        let (input, columns) = self.columns.columns(input, &exprs)?;
        let keys = order.iter().zip(columns).map(|(key, column)| SortKey {
            column,
            is_ascending: key.asc,
            nulls_first: key.nulls_first,
        });
        Ok((input, keys.collect()))
    }
}

impl RankRange {
    /// Returns what both let through.
    fn narrowed(self, other: RankRange) -> RankRange {
        let last = match (self.last, other.last) {
            (Some(left), Some(right)) => Some(left.min(right)),
            (left, right) => left.or(right),
        };
        RankRange { first: self.first.max(other.first), last }
    }
}

/// Returns, if rows are ordered by processing time and so by their arrival, whether the first to arrive comes first.
fn arrival_order(order: &[SortExpr], input: &LogicalPlan) -> Option<bool> {
    match order {
        [key] if is_processing_time(&key.expr, input) => Some(key.asc),
        _ => None,
    }
}

/// Makes the error for a row number that nothing bounds.
pub(super) fn endless_rank() -> Error {
    not_supported("ROW_NUMBER without an upper bound on it")
        .hint("Put a condition such as rn <= 10 around it: SELECT * FROM (SELECT *, ROW_NUMBER() OVER (…) AS rn FROM t) WHERE rn <= 10.")
}

/// Returns the single row number of a window.
fn row_number(window: &Window) -> Result<&WindowFunction> {
    let [call] = window.window_expr.as_slice() else {
        return Err(not_supported("more than one window function in a query"));
    };
    let call = match call {
        Expr::Alias(alias) => alias.expr.as_ref(),
        other => other,
    };
    match call {
        Expr::WindowFunction(call) => match &call.fun {
            WindowFunctionDefinition::WindowUDF(function)
                if RankingFunction::of(function) == Some(RankingFunction::RowNumber) =>
            {
                Ok(call)
            }
            _ => Err(not_supported("this window function")),
        },
        _ => Err(not_supported("this window function")),
    }
}

/// Looks through aliases.
fn skip_aliases(plan: &LogicalPlan) -> &LogicalPlan {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => skip_aliases(&alias.input),
        other => other,
    }
}

/// Returns the ranks that a condition on the rank alone lets through.
fn rank_range(condition: &Expr, rank: &Column) -> Option<RankRange> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (is_rank(left, rank), is_rank(right, rank))
        {
            (true, false) => compared(*op, number(right)?),
            (false, true) => compared(op.swap()?, number(left)?),
            _ => None,
        },
        Expr::Between(between) if !between.negated && is_rank(&between.expr, rank) => {
            let (low, high) = (number(&between.low)?, number(&between.high)?);
            Some(compared(Operator::GtEq, low)?.narrowed(compared(Operator::LtEq, high)?))
        }
        _ => None,
    }
}

/// Returns the ranks on one side of a number.
fn compared(operator: Operator, number: i128) -> Option<RankRange> {
    let rank = |number: i128| u64::try_from(number.max(0)).unwrap_or(u64::MAX);
    let range = match operator {
        Operator::Eq => RankRange { first: rank(number).max(1), last: Some(rank(number)) },
        Operator::Lt => RankRange { first: 1, last: Some(rank(number - 1)) },
        Operator::LtEq => RankRange { first: 1, last: Some(rank(number)) },
        Operator::Gt => RankRange { first: rank(number + 1).max(1), last: None },
        Operator::GtEq => RankRange { first: rank(number).max(1), last: None },
        _ => return None,
    };
    Some(range)
}

/// Returns whether an expression is the rank, maybe in a wider type.
fn is_rank(expr: &Expr, rank: &Column) -> bool {
    match expr {
        Expr::Column(column) => column == rank,
        Expr::Cast(cast) => is_rank(&cast.expr, rank),
        _ => false,
    }
}

/// Returns a constant whole number.
fn number(expr: &Expr) -> Option<i128> {
    match expr {
        Expr::Literal(ScalarValue::Int8(Some(value)), _) => Some(i128::from(*value)),
        Expr::Literal(ScalarValue::Int16(Some(value)), _) => Some(i128::from(*value)),
        Expr::Literal(ScalarValue::Int32(Some(value)), _) => Some(i128::from(*value)),
        Expr::Literal(ScalarValue::Int64(Some(value)), _) => Some(i128::from(*value)),
        Expr::Literal(ScalarValue::Decimal128(Some(value), _, 0), _) => Some(*value),
        Expr::Cast(cast) => number(&cast.expr),
        _ => None,
    }
}

/// Returns the key by which a Top-N may replace rows in place: the rows have one that holds the partition, and whatever comes
/// later of a key stands further ahead in the order.
pub(super) fn update_fast_key(top: &TopNSpec, input: &PlanNode) -> Option<Vec<usize>> {
    let key = input.unique_keys.iter().find(|key| top.partition.iter().all(|column| key.contains(column)))?;
    let advances = |sort: &SortKey| match direction(input, sort.column) {
        Some(Direction::Constant) => true,
        Some(Direction::Rising) => !sort.is_ascending,
        Some(Direction::Falling) => sort.is_ascending,
        None => false,
    };
    (input.has_updates() && top.order.iter().all(advances)).then(|| key.clone())
}

/// How a column changes from one version of a row to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Constant,
    Rising,
    Falling,
}

/// Returns how a column changes, where it comes from an aggregation that only grows.
fn direction(node: &PlanNode, column: usize) -> Option<Direction> {
    match &node.spec {
        OperatorSpec::Calc { condition: None, projection } => {
            let source = match projection {
                Some(projection) => same_value(&projection[column], &node.inputs[0].schema)?,
                None => column,
            };
            direction(&node.inputs[0], source)
        }
        OperatorSpec::GroupAggregate(aggregate) if node.inputs[0].is_insert_only() => {
            let Some(call) = column.checked_sub(aggregate.keys.len()) else {
                return Some(Direction::Constant);
            };
            match aggregate.calls[call].function {
                AggregateFunction::Count | AggregateFunction::Max => Some(Direction::Rising),
                AggregateFunction::Min => Some(Direction::Falling),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Makes Flink's error for a sort that never ends.
pub(super) fn endless_sort() -> Error {
    Error::validation("Sort on a non-time-attribute field is not supported.")
        .class(FlinkClass::TABLE)
        .hint("Add LIMIT, or SET 'execution.runtime-mode' = 'batch'.")
}
