//! A whole query: WITH, set operations, ORDER BY, LIMIT and OFFSET.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::logical_expr::{Distinct, Expr, Limit, LogicalPlan, Projection, Sort, SortExpr, lit};
use sqlparser::ast;

use super::select::{BoundSelect, passed_on};
use super::{Binder, BoundExpr, BoundQuery, OutputColumn};
use crate::error::{Error, FlinkClass, Result};

impl Binder<'_> {
    /// Binds a query.
    pub(crate) fn bind_query(&mut self, query: &ast::Query) -> Result<BoundQuery> {
        if !query.locks.is_empty() || query.for_clause.is_some() || !query.pipe_operators.is_empty() {
            return Err(self.unsupported(query, "this clause behind a query"));
        }
        self.query_depth += 1;
        let bound = self.bind_named_query(query);
        self.query_depth -= 1;
        bound
    }

    /// Binds WITH and what stands behind it.
    fn bind_named_query(&mut self, query: &ast::Query) -> Result<BoundQuery> {
        let Some(with) = &query.with else { return self.bind_query_body(query) };
        self.bind_with(with)?;
        let bound = self.bind_query_body(query);
        self.ctes.pop();
        bound
    }

    /// Binds the named queries of WITH, each visible to the next.
    fn bind_with(&mut self, with: &ast::With) -> Result<()> {
        if with.recursive {
            return Err(self.unsupported(with, "WITH RECURSIVE"));
        }
        self.ctes.push(HashMap::new());
        for cte in &with.cte_tables {
            let bound = self.bind_query(&cte.query).and_then(|mut query| {
                let names = &cte.alias.columns;
                if !names.is_empty() && names.len() != query.columns.len() {
                    return Err(self.invalid(
                        cte.query.as_ref(),
                        "Number of columns must match number of query columns",
                    ));
                }
                for (column, name) in query.columns.iter_mut().zip(names) {
                    column.name.clone_from(&name.name.value);
                }
                Ok(query)
            });
            match bound {
                Ok(query) => {
                    if let Some(names) = self.ctes.last_mut() {
                        names.insert(cte.alias.name.value.clone(), query);
                    }
                }
                Err(error) => {
                    self.ctes.pop();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Binds what stands behind WITH.
    fn bind_query_body(&mut self, query: &ast::Query) -> Result<BoundQuery> {
        let order_by: &[ast::OrderByExpr] = match &query.order_by {
            None => &[],
            Some(ast::OrderBy { kind: ast::OrderByKind::Expressions(expressions), .. }) => expressions,
            Some(_) => return Err(self.unsupported(query, "ORDER BY ALL")),
        };
        let limit = self.limits(query)?;
        if self.is_streaming && !order_by.is_empty() && limit.1.is_none() && self.query_depth == 1 {
            return Err(Error::validation("Sort on a non-time-attribute field is not supported.")
                .class(FlinkClass::TABLE)
                .at(self.span(&order_by[0].expr))
                .hint("Add LIMIT, or SET 'execution.runtime-mode' = 'batch'."));
        }
        match query.body.as_ref() {
            ast::SetExpr::Select(select) => {
                let select = self.bind_select(select, order_by)?;
                if order_by.is_empty() {
                    let BoundQuery { plan, columns } = self.finish_select(select)?;
                    return Ok(BoundQuery { plan: limited(plan, limit), columns });
                }
                self.sorted_select(select, order_by, limit)
            }
            body => {
                let bound = self.bind_set_expr(body)?;
                self.sorted_output(bound, order_by, limit)
            }
        }
    }

    /// Reads LIMIT, OFFSET and FETCH.
    fn limits(&self, query: &ast::Query) -> Result<Limits> {
        let mut skip = 0;
        let mut fetch = None;
        match &query.limit_clause {
            None => {}
            Some(ast::LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
                fetch = limit.as_ref().map(|limit| self.row_count(limit)).transpose()?;
                skip = offset.as_ref().map_or(Ok(0), |offset| self.row_count(&offset.value))?;
            }
            Some(clause) => return Err(self.unsupported(clause, "this form of LIMIT")),
        }
        if let Some(clause) = &query.fetch {
            if clause.with_ties || clause.percent {
                return Err(self.unsupported(clause, "FETCH … WITH TIES or PERCENT"));
            }
            fetch = Some(clause.quantity.as_ref().map_or(Ok(1), |quantity| self.row_count(quantity))?);
        }
        Ok((skip, fetch))
    }

    /// Reads a number of rows.
    fn row_count(&self, node: &ast::Expr) -> Result<i64> {
        match node {
            ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Number(digits, _), .. }) => digits
                .parse()
                .map_err(|error| self.invalid(node, "LIMIT and OFFSET need a whole number").caused_by(error)),
            _ => Err(self.invalid(node, "LIMIT and OFFSET need a number")),
        }
    }

    /// Sorts a SELECT: by its columns, or by expressions over its input that then ride along hidden.
    fn sorted_select(
        &mut self,
        select: BoundSelect,
        order_by: &[ast::OrderByExpr],
        limit: Limits,
    ) -> Result<BoundQuery> {
        let BoundSelect { input, scope, mut items, distinct, grouping, windows } = select;
        let shown = items.len();
        let mut keys: Vec<(usize, &ast::OrderByExpr)> = Vec::with_capacity(order_by.len());
        for order in order_by {
            let position = match self.output_position(
                &order.expr,
                items[..shown].iter().map(|(name, _)| name.as_str()),
                shown,
            )? {
                Some(position) => position,
                None => {
                    let windows_around = std::mem::replace(&mut self.windows, windows.clone());
                    let bound =
                        self.with_grouping(grouping.clone(), |binder| binder.bind_expr(&order.expr, &scope));
                    self.windows = windows_around;
                    let bound = bound?;
                    match items.iter().position(|(_, item)| item.expr == bound.expr) {
                        Some(position) => position,
                        None if distinct => {
                            return Err(self.invalid(
                                &order.expr,
                                format!("Expression '{}' is not in the select clause", order.expr),
                            ));
                        }
                        None => {
                            items.push(("sort".to_owned(), bound));
                            items.len() - 1
                        }
                    }
                }
            };
            keys.push((position, order));
        }
        let (plan, mut columns) = self.project(input, items)?;
        let plan = if distinct { LogicalPlan::Distinct(Distinct::All(Arc::new(plan))) } else { plan };
        let plan = self.sorted(plan, &columns, &keys, limit);
        if columns.len() == shown {
            return Ok(BoundQuery { plan, columns });
        }
        columns.truncate(shown);
        let plan = Projection::try_new(columns.iter().map(passed_on).collect(), Arc::new(plan))?;
        Ok(BoundQuery { plan: LogicalPlan::Projection(plan), columns })
    }

    /// Sorts the result of a set operation or VALUES by its columns.
    fn sorted_output(
        &mut self,
        bound: BoundQuery,
        order_by: &[ast::OrderByExpr],
        limit: Limits,
    ) -> Result<BoundQuery> {
        let mut keys = Vec::with_capacity(order_by.len());
        for order in order_by {
            let names = bound.columns.iter().map(|column| column.name.as_str());
            let position =
                self.output_position(&order.expr, names, bound.columns.len())?.ok_or_else(|| {
                    self.invalid(&order.expr, format!("Column '{}' not found in any table", order.expr))
                        .hint("Behind a set operation ORDER BY takes the names or numbers of its columns.")
                })?;
            keys.push((position, order));
        }
        let plan = self.sorted(bound.plan, &bound.columns, &keys, limit);
        Ok(BoundQuery { plan, columns: bound.columns })
    }

    /// Sorts and limits. A stream has no order of its own, so that in a subquery ORDER BY without LIMIT means nothing.
    fn sorted(
        &self,
        input: LogicalPlan,
        columns: &[OutputColumn],
        keys: &[(usize, &ast::OrderByExpr)],
        limit: Limits,
    ) -> LogicalPlan {
        let is_ignored = self.is_streaming && limit == (0, None);
        let plan = if keys.is_empty() || is_ignored { input } else { sort(input, columns, keys) };
        limited(plan, limit)
    }

    /// Returns which output column an ORDER BY expression names, by number or by name.
    fn output_position<'n>(
        &self,
        node: &ast::Expr,
        mut names: impl Iterator<Item = &'n str>,
        count: usize,
    ) -> Result<Option<usize>> {
        match node {
            ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Number(digits, _), .. }) => {
                let ordinal = digits.parse::<usize>().ok().filter(|ordinal| (1..=count).contains(ordinal));
                ordinal
                    .map(|ordinal| Some(ordinal - 1))
                    .ok_or_else(|| self.invalid(node, "Ordinal out of range"))
            }
            ast::Expr::Identifier(ident) => Ok(names.position(|name| name == ident.value)),
            _ => Ok(None),
        }
    }
}

/// Rows that are left out, and rows that are taken.
type Limits = (i64, Option<i64>);

/// Leaves out rows and takes some of those behind.
fn limited(input: LogicalPlan, (skip, fetch): Limits) -> LogicalPlan {
    if skip == 0 && fetch.is_none() {
        return input;
    }
    LogicalPlan::Limit(Limit {
        skip: (skip > 0).then(|| Box::new(lit(skip))),
        fetch: fetch.map(|fetch| Box::new(lit(fetch))),
        input: Arc::new(input),
    })
}

/// Makes a sort.
fn sort(input: LogicalPlan, columns: &[OutputColumn], keys: &[(usize, &ast::OrderByExpr)]) -> LogicalPlan {
    let expr = keys
        .iter()
        .map(|(position, order)| sort_expr(Expr::Column(columns[*position].column.clone()), &order.options))
        .collect();
    LogicalPlan::Sort(Sort { expr, input: Arc::new(input), fetch: None })
}

/// Makes a key of an order. Flink's NULLs are smallest: first in ascending, last in descending order.
pub(super) fn sort_expr(key: Expr, options: &ast::OrderByOptions) -> SortExpr {
    let ascending = options.asc.unwrap_or(true);
    SortExpr::new(key, ascending, options.nulls_first.unwrap_or(ascending))
}

/// Pairs output columns with their expressions.
pub(super) fn output_exprs(query: &BoundQuery) -> Vec<BoundExpr> {
    query
        .columns
        .iter()
        .map(|column| super::expression::plan_column(&column.column, &column.data_type))
        .collect()
}
