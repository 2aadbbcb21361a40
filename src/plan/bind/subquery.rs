//! Subqueries in expressions: EXISTS, IN and scalar ones. They stay subquery expressions of DataFusion, whose rules turn them
//! into joins.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, ScalarValue, Spans};
use datafusion::logical_expr::expr::{AggregateFunction, Exists, InSubquery};
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Projection, Subquery};
use sqlparser::ast;

use super::predicate::in_type;
use super::query::output_exprs;
use super::{Binder, BoundExpr, BoundQuery, Scope};
use crate::error::{Error, FlinkClass, Result};
use crate::function::{self, Argument};
use crate::schema::{DataType, TypeRoot};

// Limit: the planner's time doubles with every subquery inside the expressions of another.
const SUBQUERY_DEPTH_MAX: usize = 10;

impl Binder<'_> {
    /// Binds a subquery expression.
    pub(super) fn bind_subquery_expr(&mut self, node: &ast::Expr, scope: &Scope) -> Result<BoundExpr> {
        match node {
            ast::Expr::Exists { subquery, negated } => {
                let query = self.bind_inner(subquery, scope)?;
                if has_one_row(&query.plan) {
                    let exists = Expr::Literal(ScalarValue::Boolean(Some(!negated)), None);
                    return Ok(BoundExpr::new(exists, TypeRoot::Boolean.not_null()));
                }
                self.refuse_hidden_aggregation(node, &query.plan)?;
                let exists = Exists { subquery: subquery_of(query.plan), negated: *negated };
                Ok(BoundExpr::new(Expr::Exists(exists), TypeRoot::Boolean.not_null()))
            }
            ast::Expr::InSubquery { expr, subquery, negated } => {
                self.bind_in_subquery(node, expr, subquery, *negated, scope)
            }
            ast::Expr::Subquery(subquery) => {
                let query = self.bind_inner(subquery, scope)?;
                let [column] = query.columns.as_slice() else {
                    return Err(self.invalid(node, "a subquery in place of a value must have one column"));
                };
                let data_type = column.data_type.clone().with_nullable(true);
                self.refuse_hidden_aggregation(node, below_one_row(&query.plan))?;
                let plan = self.single_value(query.plan, &column.column, &data_type)?;
                Ok(BoundExpr::new(Expr::ScalarSubquery(subquery_of(plan)), data_type))
            }
            other => Err(self.unsupported(other, "this subquery")),
        }
    }

    /// Binds `x IN (SELECT …)`.
    fn bind_in_subquery(
        &mut self,
        node: &ast::Expr,
        operand: &ast::Expr,
        subquery: &ast::Query,
        negated: bool,
        scope: &Scope,
    ) -> Result<BoundExpr> {
        if matches!(operand, ast::Expr::Tuple(_)) {
            return Err(self.unsupported(node, "IN with several columns"));
        }
        let operand = self.bind_expr(operand, scope)?;
        let query = self.bind_inner(subquery, scope)?;
        self.refuse_hidden_aggregation(node, &query.plan)?;
        let incompatible = || self.invalid(node, "Values passed to IN operator must have compatible types");
        let [column] = query.columns.as_slice() else { return Err(incompatible()) };
        let common =
            in_type(&[operand.data_type.clone(), column.data_type.clone()]).ok_or_else(incompatible)?;
        let nullable = operand.data_type.nullable || column.data_type.nullable;
        let operand = self.cast_to(operand, &common);
        let unique = self.unique_column(&column.name);
        let values: Vec<Expr> = output_exprs(&query)
            .into_iter()
            .map(|value| self.cast_to(value, &common).expr.alias(unique.name()))
            .collect();
        let plan = LogicalPlan::Projection(Projection::try_new(values, Arc::new(query.plan))?);
        let expr = InSubquery::new(Box::new(operand.expr), subquery_of(plan), negated);
        Ok(BoundExpr::new(Expr::InSubquery(expr), TypeRoot::Boolean.nullable().with_nullable(nullable)))
    }

    /// Refuses an aggregation without groups over rows that the query around chooses, where it does not stand on top of a query in place
    /// of a value: it has a row also where there are no rows, and the join that the query becomes would not know of it.
    fn refuse_hidden_aggregation(&self, node: &ast::Expr, plan: &LogicalPlan) -> Result<()> {
        let is_hidden = |node: &LogicalPlan| match node {
            LogicalPlan::Aggregate(aggregate) => {
                aggregate.group_expr.is_empty() && !node.all_out_ref_exprs().is_empty()
            }
            _ => false,
        };
        if !plan.exists(|node| Ok(is_hidden(node)))? {
            return Ok(());
        }
        let message = "a correlated subquery whose aggregation without GROUP BY is below something else (HAVING, EXISTS, IN, another query) is not supported yet";
        let hint = "Compare the aggregation itself, as in WHERE (SELECT COUNT(*) FROM t WHERE t.k = o.k) = 0, or join an aggregation with GROUP BY.";
        Err(Error::unsupported(message).class(FlinkClass::TABLE).at(self.span(node)).hint(hint))
    }

    /// Makes a plan of one row; more than one fails when the query runs, as the standard says.
    fn single_value(&self, plan: LogicalPlan, column: &Column, data_type: &DataType) -> Result<LogicalPlan> {
        if has_one_row(&plan) {
            return Ok(plan);
        }
        let argument = Argument { data_type, literal: None };
        let bound = function::aggregate("SINGLE_VALUE", &[argument], false)
            .ok_or_else(|| Error::internal("SINGLE_VALUE is missing"))??;
        let arguments = vec![Expr::Column(column.clone())];
        let call = AggregateFunction::new_udf(bound.accumulator, arguments, false, None, Vec::new(), None);
        let value = Expr::AggregateFunction(call).alias(self.unique("value"));
        Ok(LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(plan), Vec::new(), vec![value])?))
    }

    /// Binds a query inside an expression: names that it does not know are those of the query around it.
    fn bind_inner(&mut self, query: &ast::Query, scope: &Scope) -> Result<BoundQuery> {
        if self.outer.len() >= SUBQUERY_DEPTH_MAX {
            return Err(self
                .invalid(
                    query,
                    format!("subqueries are nested too deeply: more than {SUBQUERY_DEPTH_MAX} levels"),
                )
                .hint("Join the inner ones, or name them with WITH."));
        }
        let mut around = scope.clone();
        if self.grouping.is_some() {
            // Above an aggregation only its groups can be referred to.
            around.columns.retain_mut(|column| match self.grouped_column(column) {
                Some(Some(BoundExpr { expr: Expr::Column(group), data_type })) => {
                    (column.column, column.data_type) = (group, data_type);
                    true
                }
                _ => false,
            });
        }
        let (grouping, windows) = (self.grouping.take(), self.windows.take());
        self.outer.push(around);
        let bound = self.bind_query(query);
        self.outer.pop();
        (self.grouping, self.windows) = (grouping, windows);
        bound
    }
}

/// Returns whether a plan has exactly one row whatever its input: an aggregation without groups.
fn has_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => has_one_row(&projection.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        _ => false,
    }
}

/// Returns what is below the aggregation that gives a plan its one row; the plan itself if nothing does.
fn below_one_row(plan: &LogicalPlan) -> &LogicalPlan {
    let mut at = plan;
    while let LogicalPlan::Projection(projection) = at {
        at = &projection.input;
    }
    match at {
        LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => &aggregate.input,
        _ => plan,
    }
}

/// Wraps a plan as a subquery; the columns that it takes from outside are found in its expressions.
fn subquery_of(plan: LogicalPlan) -> Subquery {
    let outer_ref_columns = plan.all_out_ref_exprs();
    Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: Spans::new() }
}
