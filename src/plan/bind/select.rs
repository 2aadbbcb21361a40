//! SELECT … FROM … WHERE … GROUP BY … HAVING, and the names of its columns.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::logical_expr::{Distinct, Expr, Filter, LogicalPlan, Projection};
use sqlparser::ast::{self, Spanned};

use super::expression::column_expr;
use super::window::holds_window;
use super::{Binder, BoundExpr, BoundQuery, OutputColumn, Scope};
use crate::error::Result;
use crate::plan::expand::{quoted, quoted_path};
use crate::plan::tables::name_parts;
use crate::schema::TypeRoot;

/// A SELECT before its ORDER BY: what is selected, and what the columns to sort by may be made of.
pub(super) struct BoundSelect {
    /// The plan below the projection.
    pub(super) input: LogicalPlan,
    /// The columns that names stand for there.
    pub(super) scope: Scope,
    /// The selected expressions with their names.
    pub(super) items: Vec<(String, BoundExpr)>,
    /// DISTINCT.
    pub(super) distinct: bool,
    /// Groups and aggregates, for ORDER BY.
    pub(super) grouping: Option<super::aggregate::Grouping>,
    /// Window functions, for ORDER BY.
    pub(super) windows: Option<super::window::Windows>,
}

impl Binder<'_> {
    /// Binds a SELECT; `order_by` is bound here too, because it may hold aggregates of its own.
    pub(super) fn bind_select(
        &mut self,
        select: &ast::Select,
        order_by: &[ast::OrderByExpr],
    ) -> Result<BoundSelect> {
        self.refuse_clauses(select)?;
        let (outer_grouping, outer_windows) = (self.grouping.take(), self.windows.take());
        let bound = self.bind_select_body(select, order_by);
        (self.grouping, self.windows) = (outer_grouping, outer_windows);
        bound
    }

    /// Binds FROM, WHERE, GROUP BY and the list.
    fn bind_select_body(
        &mut self,
        select: &ast::Select,
        order_by: &[ast::OrderByExpr],
    ) -> Result<BoundSelect> {
        let mut relation = self.bind_from(&select.from)?;
        if let Some(condition) = &select.selection {
            if self.holds_aggregate(condition) {
                return Err(self.invalid(condition, "Aggregate expression is illegal in WHERE clause"));
            }
            if holds_window(condition) {
                let message = "Windowed aggregate expression is illegal in WHERE clause";
                return Err(self.invalid(condition, message).hint("Filter by it in QUALIFY."));
            }
            let bound = self.bind_expr(condition, &relation.scope)?;
            let bound = self.condition(condition, bound, "WHERE clause must be a condition")?;
            relation.plan = LogicalPlan::Filter(Filter::try_new(bound.expr, Arc::new(relation.plan))?);
        }
        let distinct = matches!(select.distinct, Some(ast::Distinct::Distinct));
        let (groups, is_grouped) = self.group_expressions(select, order_by)?;
        if is_grouped {
            return self.bind_grouped_select(select, relation, &groups, order_by, distinct);
        }
        self.allow_windows(select)?;
        let items = self.bind_items(&select.projection, &relation.scope)?;
        let qualify = self.bind_qualify(select, &relation.scope)?;
        self.bind_sorting_windows(order_by, &relation.scope)?;
        let windows = self.windows.take().unwrap_or_default();
        let input = self.window_plan(relation.plan, &windows, qualify)?;
        let windows = Some(windows);
        Ok(BoundSelect { input, scope: relation.scope, items, distinct, grouping: None, windows })
    }

    /// Registers window functions that only ORDER BY has: they must be known before the plan is built; the sort binds them again
    /// by equality.
    pub(super) fn bind_sorting_windows(
        &mut self,
        order_by: &[ast::OrderByExpr],
        scope: &Scope,
    ) -> Result<()> {
        for order in order_by {
            if holds_window(&order.expr) {
                self.bind_expr(&order.expr, scope)?;
            }
        }
        Ok(())
    }

    /// Binds the select list: stars expanded, names given.
    pub(super) fn bind_items(
        &mut self,
        items: &[ast::SelectItem],
        scope: &Scope,
    ) -> Result<Vec<(String, BoundExpr)>> {
        let mut bound = Vec::with_capacity(items.len());
        for item in items {
            match item {
                ast::SelectItem::UnnamedExpr(expr) => {
                    let name = item_name(expr).unwrap_or_else(|| format!("EXPR${}", bound.len()));
                    bound.push((name, self.bind_expr(expr, scope)?));
                }
                ast::SelectItem::ExprWithAlias { expr, alias } => {
                    self.note(alias.span, || quoted(&alias.value));
                    bound.push((alias.value.clone(), self.bind_expr(expr, scope)?));
                }
                ast::SelectItem::Wildcard(_) => {
                    if scope.columns.is_empty() {
                        return Err(self.invalid(item, "SELECT * requires a FROM clause"));
                    }
                    self.bind_star(item, scope.star(), &mut bound)?;
                }
                ast::SelectItem::QualifiedWildcard(
                    ast::SelectItemQualifiedWildcardKind::ObjectName(name),
                    _,
                ) => {
                    let relation = name_parts(name);
                    let before = bound.len();
                    self.bind_star(item, scope.relation_star(&relation), &mut bound)?;
                    if bound.len() == before {
                        return Err(self.invalid(item, format!("Table '{}' not found", relation.join("."))));
                    }
                }
                ast::SelectItem::QualifiedWildcard(..) => return Err(self.unsupported(item, "this star")),
            }
        }
        Ok(bound)
    }

    /// Expands a star; with groups each column must be one of them.
    fn bind_star<'s>(
        &mut self,
        item: &ast::SelectItem,
        columns: impl Iterator<Item = &'s super::ScopeColumn>,
        bound: &mut Vec<(String, BoundExpr)>,
    ) -> Result<()> {
        let mut texts = Vec::new();
        for column in columns {
            texts.push(quoted_path(column.relation.last().into_iter().chain([&column.name])));
            let expr = match self.grouped_column(column) {
                Some(Some(grouped)) => grouped,
                Some(None) => {
                    return Err(
                        self.invalid(item, format!("Expression '{}' is not being grouped", column.name))
                    );
                }
                None => column_expr(column),
            };
            bound.push((column.name.clone(), expr));
        }
        self.note(item.span(), || texts.join(", "));
        Ok(())
    }

    /// Refuses what SELECT may hold in other dialects, or what comes later.
    fn refuse_clauses(&self, select: &ast::Select) -> Result<()> {
        let refused = [
            (select.top.is_some(), "TOP"),
            (select.into.is_some(), "SELECT INTO"),
            (!select.lateral_views.is_empty(), "LATERAL VIEW"),
            (select.prewhere.is_some(), "PREWHERE"),
            (!select.cluster_by.is_empty(), "CLUSTER BY"),
            (!select.distribute_by.is_empty(), "DISTRIBUTE BY"),
            (!select.sort_by.is_empty(), "SORT BY"),
            (!select.connect_by.is_empty(), "CONNECT BY"),
            (matches!(select.distinct, Some(ast::Distinct::On(_))), "DISTINCT ON"),
        ];
        match refused.iter().find(|(present, _)| *present) {
            Some((_, what)) => Err(self.unsupported(select, what)),
            None => Ok(()),
        }
    }

    /// Puts the projection of a SELECT, and DISTINCT, on its plan.
    pub(super) fn finish_select(&mut self, select: BoundSelect) -> Result<BoundQuery> {
        let (plan, columns) = self.project(select.input, select.items)?;
        let plan = if select.distinct { LogicalPlan::Distinct(Distinct::All(Arc::new(plan))) } else { plan };
        Ok(BoundQuery { plan, columns })
    }

    /// Projects named expressions; a name that was there before gets a number behind it, as Calcite does.
    pub(super) fn project(
        &mut self,
        input: LogicalPlan,
        items: Vec<(String, BoundExpr)>,
    ) -> Result<(LogicalPlan, Vec<OutputColumn>)> {
        let mut names = HashSet::with_capacity(items.len());
        let mut exprs = Vec::with_capacity(items.len());
        let mut columns = Vec::with_capacity(items.len());
        for (name, bound) in items {
            let name = distinct_name(name, &mut names);
            let column = self.unique_column(&name);
            exprs.push(bound.expr.alias(column.name()));
            columns.push(OutputColumn { name, data_type: bound.data_type, column });
        }
        let plan = LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input))?);
        Ok((plan, columns))
    }

    /// Filters by HAVING.
    pub(super) fn having(
        &mut self,
        plan: LogicalPlan,
        node: &ast::Expr,
        condition: BoundExpr,
    ) -> Result<LogicalPlan> {
        if !matches!(condition.data_type.root, TypeRoot::Boolean | TypeRoot::Null) {
            return Err(self.invalid(node, "HAVING clause must be a condition"));
        }
        let condition = self.condition(node, condition, "HAVING clause must be a condition")?;
        Ok(LogicalPlan::Filter(Filter::try_new(condition.expr, Arc::new(plan))?))
    }
}

/// Returns the name that an expression has by itself: a column's or a field's.
pub(super) fn item_name(expr: &ast::Expr) -> Option<String> {
    match expr {
        ast::Expr::Identifier(ident) => Some(ident.value.clone()).filter(|_| !is_niladic(ident)),
        ast::Expr::CompoundIdentifier(idents) => idents.last().map(|ident| ident.value.clone()),
        ast::Expr::CompoundFieldAccess { access_chain, .. } => match access_chain.last() {
            Some(ast::AccessExpr::Dot(ast::Expr::Identifier(ident))) => Some(ident.value.clone()),
            _ => None,
        },
        ast::Expr::Nested(inner) => item_name(inner),
        _ => None,
    }
}

/// Returns whether a bare word is a call without brackets.
fn is_niladic(ident: &ast::Ident) -> bool {
    ident.quote_style.is_none()
        && crate::function::find(&ident.value)
            .is_some_and(|function| function.signatures().iter().any(|s| !s.contains('(')))
}

/// Returns the name, or the name with the first number behind it that is free.
fn distinct_name(name: String, names: &mut HashSet<String>) -> String {
    if names.insert(name.clone()) {
        return name;
    }
    let mut number = 0;
    loop {
        let candidate = format!("{name}{number}");
        if names.insert(candidate.clone()) {
            return candidate;
        }
        number += 1;
    }
}

/// Makes the expression of a plan column under its own name, for projections that pass it on.
pub(super) fn passed_on(column: &OutputColumn) -> Expr {
    Expr::Column(column.column.clone())
}
