//! IN and EXISTS over a query as values of three kinds: true, false and unknown. DataFusion turns them into semi, anti and mark
//! joins, and a mark is never unknown; where the difference shows (below OR, IS and CASE, in a select list) they are counted.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, ScalarValue, Spans};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::{AggregateFunction, Case, Exists, InSubquery};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Aggregate, Expr, ExprSchemable, Filter, LogicalPlan, Operator, Projection, Subquery, binary_expr, lit,
};

use crate::error::{Error, Result};
use crate::function;

/// Replaces IN and EXISTS by counts wherever a join of DataFusion's would answer otherwise than SQL; with `without_marks` also
/// where it would be a mark join.
///
/// # Errors
/// The left side of an IN is itself a query.
pub(super) fn count_members(plan: LogicalPlan, without_marks: bool) -> Result<LogicalPlan> {
    let mut counter = Counter { made: 0, without_marks };
    let counted = plan.transform_up_with_subqueries(|node| {
        let expressions = node.expressions();
        let node = if expressions.iter().any(|expr| holds(expr, is_predicate)) {
            counter.node(node)?
        } else {
            Transformed::no(node)
        };
        node.transform_data(|node| counter.one_by_one(node))
    })?;
    Ok(counted.data)
}

/// Refuses queries in expressions that no rule has turned into a join.
///
/// # Errors
/// There is one.
pub(super) fn refuse_subqueries(plan: &LogicalPlan) -> Result<()> {
    let is_left = |expr: &Expr| is_scalar(expr) || is_predicate(expr);
    let left = plan.exists(|node| Ok(node.expressions().iter().any(|expr| holds(expr, is_left))))?;
    if left {
        return Err(Error::unsupported("this subquery is not supported yet")
            .class(crate::error::FlinkClass::TABLE)
            .hint(
                "Outside of EXISTS a subquery may compare with the query around it by '=' only, and without LIMIT.",
            ));
    }
    Ok(())
}

/// Returns whether an expression is IN or EXISTS over a query.
fn is_predicate(expr: &Expr) -> bool {
    matches!(expr, Expr::InSubquery(_) | Expr::Exists(_))
}

/// Returns whether an expression is a query in place of a value.
fn is_scalar(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarSubquery(_))
}

/// Returns whether a part of an expression is one of a kind.
fn holds(expr: &Expr, is_wanted: impl Fn(&Expr) -> bool) -> bool {
    // The closure never fails.
    expr.exists(|part| Ok(is_wanted(part))).unwrap_or(false)
}

/// Returns whether a condition is one that a semi or anti join answers: only true counts, so unknown is as good as false.
fn is_join(condition: &Expr) -> bool {
    match condition {
        Expr::Exists(_) => true,
        // An anti join that minds NULLs has room for one key, and a correlated query brings its own.
        Expr::InSubquery(member) => !member.negated || member.subquery.outer_ref_columns.is_empty(),
        Expr::Not(inner) => match inner.as_ref() {
            Expr::Exists(_) => true,
            Expr::InSubquery(member) => member.negated || member.subquery.outer_ref_columns.is_empty(),
            _ => false,
        },
        _ => false,
    }
}

/// Makes counts; each has a name of its own, so that no join of several is ambiguous.
struct Counter {
    made: usize,
    /// Whether no mark join may be left: the changelog engine has none.
    without_marks: bool,
}

impl Counter {
    /// Returns a name that no column has.
    fn name(&mut self) -> String {
        self.made += 1;
        format!("$subquery#{}", self.made)
    }

    /// Replaces IN and EXISTS in a node.
    fn node(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>, DataFusionError> {
        let mut schema = DFSchema::empty();
        node.inputs().into_iter().for_each(|input| schema.merge(input.schema()));
        let LogicalPlan::Filter(filter) = node else {
            return node.map_expressions(|expr| Ok(Transformed::yes(self.count(expr, &schema, false)?)));
        };
        let parts = split_conjunction_owned(filter.predicate)
            .into_iter()
            .map(
                |part| if is_join(&part) { Ok(part) } else { self.count(part, &schema, !self.without_marks) },
            )
            .collect::<Result<Vec<_>, _>>()?;
        let condition = conjunction(parts).unwrap_or_else(|| lit(true));
        Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(condition, filter.input)?)))
    }

    /// Gives each of several subqueries of a node a projection of its own below the node: DataFusion joins them to one input
    /// under names that two of them share.
    fn one_by_one(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>, DataFusionError> {
        let mut lifted = Vec::new();
        let mut lift = |expr: Expr| {
            expr.transform_up(|expr| {
                if !is_scalar(&expr) {
                    return Ok(Transformed::no(expr));
                }
                let name = self.name();
                lifted.push(expr.alias(&name));
                Ok(Transformed::yes(Expr::Column(Column::new_unqualified(name))))
            })
        };
        match &node {
            LogicalPlan::Filter(filter) => {
                let condition = lift(filter.predicate.clone())?.data;
                if lifted.len() < 2 {
                    return Ok(Transformed::no(node));
                }
                let shown = filter.input.schema().columns().into_iter().map(Expr::Column).collect();
                let input = with_columns(&filter.input, lifted)?;
                let filtered = LogicalPlan::Filter(Filter::try_new(condition, input)?);
                let projection = Projection::try_new(shown, Arc::new(filtered))?;
                Ok(Transformed::yes(LogicalPlan::Projection(projection)))
            }
            LogicalPlan::Projection(projection) => {
                let exprs = projection
                    .expr
                    .iter()
                    .map(|expr| Ok(lift(expr.clone())?.data))
                    .collect::<Result<Vec<_>, DataFusionError>>()?;
                if lifted.len() < 2 {
                    return Ok(Transformed::no(node));
                }
                let input = with_columns(&projection.input, lifted)?;
                Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(exprs, input)?)))
            }
            _ => Ok(Transformed::no(node)),
        }
    }

    /// Replaces IN and EXISTS in an expression over `schema`. With `with_marks` those that are never unknown stay: a mark answers
    /// them.
    fn count(&mut self, expr: Expr, schema: &DFSchema, with_marks: bool) -> Result<Expr, DataFusionError> {
        let counted = expr.transform_up(|expr| match expr {
            Expr::Exists(exists) if !with_marks => Ok(Transformed::yes(self.exists_value(exists)?)),
            Expr::InSubquery(member) => {
                let nullable = member.expr.nullable(schema)?
                    || member.subquery.subquery.schema().fields().iter().any(|field| field.is_nullable());
                if with_marks && !nullable {
                    return Ok(Transformed::no(Expr::InSubquery(member)));
                }
                Ok(Transformed::yes(self.member_value(member, schema, nullable)?))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok(counted.data)
    }

    /// Makes `COUNT(*) > 0` of EXISTS.
    fn exists_value(&mut self, exists: Exists) -> Result<Expr, DataFusionError> {
        let count = self.row_count(exists.subquery.subquery)?;
        Ok(if exists.negated { has_no_rows(count) } else { has_rows(count) })
    }

    /// Makes a CASE of IN: true if an equal row is there; false if there is no row at all; unknown if the value or a row is NULL.
    fn member_value(
        &mut self,
        member: InSubquery,
        schema: &DFSchema,
        nullable: bool,
    ) -> Result<Expr, DataFusionError> {
        let InSubquery { expr: value, subquery: Subquery { subquery: rows, .. }, negated } = member;
        let row = Expr::Column(rows.schema().columns()[0].clone());
        let equal = binary_expr(row.clone(), Operator::Eq, as_outer(value.as_ref().clone(), schema)?);
        let truth = |truth: Option<bool>| Box::new(Expr::Literal(ScalarValue::Boolean(truth), None));
        let matches = has_rows(self.row_count(filtered(&rows, equal)?)?);
        let mut cases = vec![(Box::new(matches), truth(Some(true)))];
        if nullable {
            let is_empty = has_no_rows(self.row_count(Arc::clone(&rows))?);
            cases.push((Box::new(is_empty), truth(Some(false))));
            let null_row = has_rows(self.row_count(filtered(&rows, row.is_null())?)?);
            cases.push((Box::new(value.is_null().or(null_row)), truth(None)));
        }
        let case = Expr::Case(Case::new(None, cases, Some(truth(Some(false)))));
        Ok(if negated { Expr::Not(Box::new(case)) } else { case })
    }

    /// Makes the subquery that counts the rows of another.
    fn row_count(&mut self, rows: Arc<LogicalPlan>) -> Result<Expr, DataFusionError> {
        let count = function::aggregate("COUNT", &[], false)
            .and_then(Result::ok)
            .ok_or_else(|| DataFusionError::Internal("COUNT is missing".to_owned()))?;
        let call =
            AggregateFunction::new_udf(count.accumulator, vec![lit(1_i64)], false, None, Vec::new(), None);
        let call = Expr::AggregateFunction(call).alias(self.name());
        let plan = LogicalPlan::Aggregate(Aggregate::try_new(rows, Vec::new(), vec![call])?);
        let outer_ref_columns = plan.all_out_ref_exprs();
        Ok(Expr::ScalarSubquery(Subquery {
            subquery: Arc::new(plan),
            outer_ref_columns,
            spans: Spans::new(),
        }))
    }
}

/// Returns whether a count is above 0. In a stream the count of nothing yet is NULL, because an aggregation has no row before its
/// input has one.
fn has_rows(count: Expr) -> Expr {
    Expr::IsTrue(Box::new(binary_expr(count, Operator::Gt, lit(0_i64))))
}

/// Returns whether a count is 0, or NULL.
fn has_no_rows(count: Expr) -> Expr {
    Expr::IsNotTrue(Box::new(binary_expr(count, Operator::Gt, lit(0_i64))))
}

/// Adds columns to a plan, each in a projection of its own.
fn with_columns(input: &Arc<LogicalPlan>, added: Vec<Expr>) -> Result<Arc<LogicalPlan>, DataFusionError> {
    added.into_iter().try_fold(Arc::clone(input), |input, expr| {
        let mut exprs: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
        exprs.push(expr);
        Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(exprs, input)?)))
    })
}

/// Filters the rows of a subquery.
fn filtered(rows: &Arc<LogicalPlan>, condition: Expr) -> Result<Arc<LogicalPlan>, DataFusionError> {
    Ok(Arc::new(LogicalPlan::Filter(Filter::try_new(condition, Arc::clone(rows))?)))
}

/// Makes the columns of an expression those of the query around it.
fn as_outer(value: Expr, schema: &DFSchema) -> Result<Expr, DataFusionError> {
    let outer = value.transform_up(|expr| match expr {
        Expr::Column(column) => {
            let field = Arc::clone(schema.qualified_field_from_column(&column)?.1);
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        Expr::OuterReferenceColumn(..) | Expr::ScalarSubquery(_) => {
            Err(Error::unsupported("IN with a subquery on its left side is not supported yet").into())
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(outer.data)
}
