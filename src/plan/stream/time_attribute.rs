//! Which columns are times that Flink gives a meaning of their own. Types do not say it yet, so it is looked for in the plan: a
//! time attribute is one as long as its column is only passed on, and no longer behind a join, an aggregate or a function.

use datafusion::common::Column;
use datafusion::logical_expr::{BinaryExpr, Expr, Join, LogicalPlan, Operator};

use super::lower::not_supported;
use crate::error::Error;
use crate::plan::batch::source_table;

/// Returns whether an expression over a plan's columns is PROCTIME().
pub(super) fn is_processing_time(expr: &Expr, input: &LogicalPlan) -> bool {
    match expr {
        Expr::ScalarFunction(call) => call.name() == "PROCTIME",
        Expr::Alias(alias) => is_processing_time(&alias.expr, input),
        Expr::Column(column) => {
            below(column, input).is_some_and(|(expr, input)| is_processing_time(&expr, input))
        }
        _ => false,
    }
}

/// Returns whether an expression over a plan's columns is a column that a table has a watermark for.
pub(super) fn is_event_time(expr: &Expr, input: &LogicalPlan) -> bool {
    match (expr, input) {
        (Expr::Alias(alias), _) => is_event_time(&alias.expr, input),
        (Expr::Column(column), LogicalPlan::TableScan(scan)) => source_table(scan).is_some_and(|table| {
            let watermark = table.definition.schema.watermark.as_ref();
            watermark.is_some_and(|watermark| watermark.column.as_slice() == [column.name.as_str()])
        }),
        (Expr::Column(column), _) => {
            below(column, input).is_some_and(|(expr, input)| is_event_time(&expr, input))
        }
        _ => false,
    }
}

/// Returns whether a condition of a join bounds the event time of one side by that of the other.
pub(super) fn bounds_event_time(condition: &Expr, join: &Join) -> bool {
    let is_comparison = match condition {
        Expr::Between(_) => true,
        Expr::BinaryExpr(BinaryExpr { op, .. }) => {
            matches!(op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
        }
        _ => false,
    };
    let columns = condition.column_refs();
    let is_of = |input: &LogicalPlan| {
        columns.iter().any(|column| {
            input.schema().has_column(column) && is_event_time(&Expr::Column((*column).clone()), input)
        })
    };
    is_comparison && is_of(&join.left) && is_of(&join.right)
}

/// Makes the error of an operator that waits for watermarks, with the way to the one that does not.
pub(super) fn needs_event_time(what: &str) -> Error {
    not_supported(what).hint(
        "It would end with the watermark. To compare all rows, read from a subquery that takes the time's meaning off: SELECT ts + INTERVAL '0' SECOND AS ts.",
    )
}

/// Returns what a column is below a plan that passes columns on, and over which input.
fn below<'a>(column: &Column, input: &'a LogicalPlan) -> Option<(Expr, &'a LogicalPlan)> {
    match input {
        LogicalPlan::Projection(projection) => {
            let at = projection.schema.maybe_index_of_column(column)?;
            Some((projection.expr[at].clone(), &projection.input))
        }
        LogicalPlan::Filter(filter) => Some((Expr::Column(column.clone()), &filter.input)),
        LogicalPlan::SubqueryAlias(alias) => {
            let at = alias.schema.maybe_index_of_column(column)?;
            Some((Expr::Column(alias.input.schema().columns().swap_remove(at)), &alias.input))
        }
        _ => None,
    }
}
