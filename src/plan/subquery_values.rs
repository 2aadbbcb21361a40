//! IN and EXISTS as values. DataFusion turns them into semi joins where they filter, but such a join knows only found and not
//! found: under OR or NOT, or in a select list, `x IN (…)` may also be unknown. There they become aggregates.

use std::cell::Cell;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema, Spans};
use datafusion::error::Result as DataFusionResult;
use datafusion::functions_aggregate::min_max::max_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, Exists, InSubquery};
use datafusion::logical_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Aggregate, Expr, Filter, LogicalPlan, Subquery, binary_expr, lit, when};
use datafusion::logical_expr::{Operator, not};
use datafusion::scalar::ScalarValue;

use crate::error::{Error, FlinkClass, Result};

/// The number of the next aggregate. Its column's name is unlike those of the binder, which end with a number.
type NextNumber = Cell<usize>;

/// Replaces IN and EXISTS, wherever they are not a whole condition of a filter, by aggregates.
pub(super) fn subqueries_as_values(plan: LogicalPlan) -> Result<LogicalPlan> {
    let next = NextNumber::default();
    Ok(plan.transform_up_with_subqueries(|node| rewrite_node(node, &next))?.data)
}

/// Refuses a plan in which a subquery is left that no rule could turn into a join.
pub(super) fn refuse_subqueries(plan: &LogicalPlan) -> Result<()> {
    let mut is_left = false;
    plan.apply(|node| {
        node.apply_expressions(|expr| {
            is_left |= expr.exists(|part| {
                Ok(matches!(part, Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_)))
            })?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    if !is_left {
        return Ok(());
    }
    Err(Error::unsupported("A subquery of this form is not supported yet")
        .class(FlinkClass::TABLE)
        .hint("Write it as a join; LIMIT and set operations in a correlated subquery are not supported."))
}

fn rewrite_node(node: LogicalPlan, next: &NextNumber) -> DataFusionResult<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Filter(filter) => {
            let schema = Arc::clone(filter.input.schema());
            let mut conditions = Vec::new();
            for condition in split_conjunction_owned(filter.predicate) {
                let condition = without_not(condition);
                let is_join = is_join(&condition);
                let rewritten =
                    if is_join { condition } else { as_value(condition, &schema, true, next)?.data };
                conditions.push(rewritten);
            }
            let predicate = conjunction(conditions).unwrap_or(lit(true));
            Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?)))
        }
        LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) => {
            let schema = Arc::clone(node.inputs()[0].schema());
            let rewritten = node.map_expressions(|expr| as_value(expr, &schema, false, next))?;
            rewritten.transform_data(|node| Ok(Transformed::yes(node.recompute_schema()?)))
        }
        LogicalPlan::Join(join) => {
            for condition in join.filter.iter().flat_map(split_conjunction) {
                let holds_in = condition.exists(|part| Ok(matches!(part, Expr::InSubquery(_))))?;
                if holds_in && !is_join(condition) {
                    let what = "IN with a subquery under OR or NOT in the condition of a join";
                    return Err(Error::unsupported(format!("{what} is not supported yet"))
                        .class(FlinkClass::TABLE)
                        .hint("Move it to WHERE.")
                        .into());
                }
            }
            Ok(Transformed::no(LogicalPlan::Join(join)))
        }
        node => Ok(Transformed::no(node)),
    }
}

/// Turns `NOT (x IN …)` into `x NOT IN …`.
fn without_not(condition: Expr) -> Expr {
    match condition {
        Expr::Not(inner) => match *inner {
            Expr::InSubquery(test) => Expr::InSubquery(InSubquery { negated: !test.negated, ..test }),
            Expr::Exists(test) => Expr::Exists(Exists { negated: !test.negated, ..test }),
            other => not(other),
        },
        other => other,
    }
}

/// Returns whether a condition of a filter becomes a semi or an anti join that answers it exactly. A correlated NOT IN does not.
fn is_join(condition: &Expr) -> bool {
    match condition {
        Expr::Exists(_) => true,
        Expr::InSubquery(test) => !test.negated || test.subquery.outer_ref_columns.is_empty(),
        _ => false,
    }
}

/// Replaces the tests inside an expression. In a filter EXISTS may stay: it is never unknown.
fn as_value(
    expr: Expr,
    schema: &DFSchema,
    in_filter: bool,
    next: &NextNumber,
) -> DataFusionResult<Transformed<Expr>> {
    expr.transform_up(|expr| match expr {
        Expr::InSubquery(test) => Ok(Transformed::yes(in_value(test, schema, next)?)),
        Expr::Exists(test) if !in_filter => {
            let found = has_rows(test.subquery.subquery.as_ref().clone(), next)?;
            Ok(Transformed::yes(if test.negated { not(found) } else { found }))
        }
        expr => Ok(Transformed::no(expr)),
    })
}

/// `x IN (SELECT y …)`: true if some y is equal; otherwise unknown if x is compared with anything while it is NULL, or if some y
/// is NULL; otherwise false.
fn in_value(test: InSubquery, schema: &DFSchema, next: &NextNumber) -> DataFusionResult<Expr> {
    let InSubquery { expr, subquery, negated } = test;
    let rows = subquery.subquery.as_ref().clone();
    let (qualifier, field) = rows.schema().qualified_field(0);
    let value = Expr::Column(Column::from((qualifier, field)));
    let value_is_nullable = field.is_nullable();
    let operand_is_nullable = !matches!(expr.as_ref(), Expr::Column(column)
        if schema.field_from_column(column).is_ok_and(|field| !field.is_nullable()));
    let operand = as_outer(expr.as_ref().clone(), schema)?;
    let equal = binary_expr(value.clone(), Operator::Eq, operand);
    let found = has_rows(filtered(rows.clone(), equal)?, next)?;
    let mut unknown = Vec::new();
    if value_is_nullable {
        unknown.push(has_rows(filtered(rows.clone(), value.is_null())?, next)?);
    }
    if operand_is_nullable {
        unknown.push(expr.is_null().and(has_rows(rows, next)?));
    }
    let value = match unknown.into_iter().reduce(Expr::or) {
        None => found,
        Some(unknown) => {
            when(found, lit(true)).when(unknown, lit(ScalarValue::Boolean(None))).otherwise(lit(false))?
        }
    };
    Ok(if negated { not(value) } else { value })
}

/// Turns columns of the query around a subquery into references from inside of it.
fn as_outer(expr: Expr, schema: &DFSchema) -> DataFusionResult<Expr> {
    let outer = expr.transform_up(|expr| match expr {
        Expr::Column(column) => {
            let field = Arc::clone(schema.field_from_column(&column)?);
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        Expr::OuterReferenceColumn(..) | Expr::ScalarSubquery(_) => Err(Error::unsupported(
            "IN over a column of the query around it, in place of a value, is not supported yet",
        )
        .class(FlinkClass::TABLE)
        .into()),
        expr => Ok(Transformed::no(expr)),
    })?;
    Ok(outer.data)
}

fn filtered(rows: LogicalPlan, condition: Expr) -> DataFusionResult<LogicalPlan> {
    Ok(LogicalPlan::Filter(Filter::try_new(condition, Arc::new(rows))?))
}

/// `(SELECT MAX(1) FROM rows) IS NOT NULL`. A COUNT would say the same, but DataFusion marks the groups that a correlated COUNT
/// does not find with a column of one name, so that a query can have no two of them.
fn has_rows(rows: LogicalPlan, next: &NextNumber) -> DataFusionResult<Expr> {
    let outer_ref_columns = rows.all_out_ref_exprs();
    let one = AggregateFunction::new_udf(max_udaf(), vec![lit(1_i64)], false, None, Vec::new(), None);
    let number = next.replace(next.get() + 1);
    let one = Expr::AggregateFunction(one).alias(format!("#{number}:found"));
    let one = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(rows), Vec::new(), vec![one])?);
    let subquery = Subquery { subquery: Arc::new(one), outer_ref_columns, spans: Spans::new() };
    Ok(Expr::ScalarSubquery(subquery).is_not_null())
}
