//! GROUP BY: which expressions are groups, which calls are aggregates, and what may stand beside them.
//!
//! The input of an aggregation is a projection of the groups and of the aggregates' arguments; above it stands a projection
//! that computes the rest of the select list.

use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet, LogicalPlan, Projection};
use sqlparser::ast;

use super::call::literal_value;
use super::call_search::holds_call;
use super::select::{BoundSelect, item_name};
use super::{Binder, BoundExpr, Relation, Scope, ScopeColumn};
use crate::error::{Error, FlinkClass, Result};
use crate::function::{self, Argument};
use crate::plan::explain::visible_name;
use crate::schema::DataType;

/// CUBE has two to the power of its columns sets.
const CUBE_PARTS_MAX: usize = 12;

/// The groups of the SELECT that is being bound, and the aggregates found so far.
#[derive(Debug, Clone)]
pub(crate) struct Grouping {
    /// What names mean below the aggregation.
    input: Scope,
    /// Each group: its expression over the input, and the column that carries it above.
    pub(super) groups: Vec<(Expr, BoundExpr)>,
    /// With several grouping sets: positions of the groups, in the order of their first appearance in the sets.
    pub(super) set_order: Option<Vec<usize>>,
    /// Kinds of syntax that a group has; anything else cannot be one.
    kinds: Vec<Discriminant<ast::Expr>>,
    /// The aggregates: the call over the input, and the column that carries its raw result.
    aggregates: Vec<(AggregateFunction, Column)>,
    /// Whether every group has rows; the one group of an aggregation without GROUP BY may have none.
    is_filled: bool,
}

/// GROUP BY as a list of expressions and, where there are several, the sets of their positions.
#[derive(Debug, Default)]
pub(super) struct GroupClause<'e> {
    expressions: Vec<&'e ast::Expr>,
    sets: Option<Vec<Vec<usize>>>,
}

impl Binder<'_> {
    /// Returns the groups, and whether the SELECT is an aggregation at all.
    pub(super) fn group_expressions<'e>(
        &self,
        select: &'e ast::Select,
        order_by: &'e [ast::OrderByExpr],
    ) -> Result<(GroupClause<'e>, bool)> {
        let clause = match &select.group_by {
            ast::GroupByExpr::All(_) => return Err(self.unsupported(select, "GROUP BY ALL")),
            ast::GroupByExpr::Expressions(_, modifiers) if !modifiers.is_empty() => {
                return Err(self.unsupported(select, "this form of GROUP BY"));
            }
            ast::GroupByExpr::Expressions(expressions, _) => {
                let is_wide =
                    |part: &ast::Expr| matches!(part, ast::Expr::Cube(parts) if parts.len() > CUBE_PARTS_MAX);
                if let Some(cube) = expressions.iter().find(|part| is_wide(part)) {
                    let what = format!("CUBE of more than {CUBE_PARTS_MAX} columns");
                    return Err(self.unsupported(cube, &what));
                }
                let clause = GroupClause::of(expressions);
                // DataFusion makes one set of equal ones and counts its rows twice.
                if clause.repeats_a_set() && !self.is_streaming {
                    return Err(
                        self.unsupported(&expressions[0], "a grouping set that is there twice in batch mode")
                    );
                }
                clause
            }
        };
        let in_list = select.qualify.iter().any(|condition| self.holds_aggregate(condition))
            || select.projection.iter().any(|item| match item {
                ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => {
                    self.holds_aggregate(expr)
                }
                _ => false,
            });
        let is_grouped = !clause.expressions.is_empty()
            || clause.sets.is_some()
            || in_list
            || select.having.is_some()
            || order_by.iter().any(|order| self.holds_aggregate(&order.expr));
        Ok((clause, is_grouped))
    }

    /// Returns whether an expression holds an aggregate call of its own query.
    pub(super) fn holds_aggregate(&self, node: &ast::Expr) -> bool {
        holds_call(node, |call| call.over.is_none() && function::is_aggregate(&call.name.to_string()))
    }

    /// Binds a SELECT with groups or aggregates.
    pub(super) fn bind_grouped_select(
        &mut self,
        select: &ast::Select,
        relation: Relation,
        clause: &GroupClause<'_>,
        order_by: &[ast::OrderByExpr],
        distinct: bool,
    ) -> Result<BoundSelect> {
        let nullable = clause.sets.is_some();
        let mut groups = Vec::with_capacity(clause.expressions.len());
        let mut kinds = Vec::new();
        for node in &clause.expressions {
            let node = self.group_source(node, select, &relation.scope);
            if self.holds_aggregate(node) {
                return Err(self.invalid(node, "Aggregate expression is illegal in GROUP BY clause"));
            }
            let bound = self.bind_expr(node, &relation.scope)?;
            let column = self.unique_column(&item_name(node).unwrap_or_else(|| "group".to_owned()));
            let data_type = bound.data_type.clone();
            let data_type = if nullable { data_type.with_nullable(true) } else { data_type };
            groups.push((bound.expr, BoundExpr::new(Expr::Column(column), data_type)));
            kinds.push(kind_of(node));
        }
        let is_filled = !groups.is_empty() && clause.sets.is_none();
        let input = relation.scope.clone();
        let set_order = clause.set_order();
        self.grouping = Some(Grouping { input, groups, set_order, kinds, aggregates: Vec::new(), is_filled });
        self.allow_windows(select)?;
        let items = self.bind_items(&select.projection, &relation.scope)?;
        let qualify = self.bind_qualify(select, &relation.scope)?;
        self.bind_sorting_windows(order_by, &relation.scope)?;
        // Aggregates that only ORDER BY has must be known before the plan is built; the sort binds them again by equality.
        for order in order_by {
            if self.holds_aggregate(&order.expr) {
                self.bind_expr(&order.expr, &relation.scope)?;
            }
        }
        let windows = self.windows.take().unwrap_or_default();
        let having = match &select.having {
            Some(node) => Some((node, self.bind_expr(node, &relation.scope)?)),
            None => None,
        };
        let grouping =
            self.grouping.take().ok_or_else(|| Error::internal("the groups of a SELECT were lost"))?;
        let mut plan = self.aggregate_plan(relation.plan, &grouping, clause)?;
        if let Some((node, condition)) = having {
            plan = self.having(plan, node, condition)?;
        }
        let input = self.window_plan(plan, &windows, qualify)?;
        let (grouping, windows) = (Some(grouping), Some(windows));
        Ok(BoundSelect { input, scope: relation.scope, items, distinct, grouping, windows })
    }

    /// Returns what a group stands for: a number or an alias means an item of the list (Flink refuses both).
    fn group_source<'e>(&self, node: &'e ast::Expr, select: &'e ast::Select, scope: &Scope) -> &'e ast::Expr {
        // Flink differs: it takes neither ordinals nor aliases in GROUP BY; where they are the only reading, we do.
        let item = |position: usize| match select.projection.get(position) {
            Some(ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. }) => {
                Some(expr)
            }
            _ => None,
        };
        let source = match node {
            ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Number(digits, _), .. }) => {
                digits.parse::<usize>().ok().and_then(|ordinal| item(ordinal.wrapping_sub(1)))
            }
            ast::Expr::Identifier(ident)
                if matches!(
                    scope.resolve(std::slice::from_ref(&ident.value)),
                    super::scope::Resolution::NotFound
                ) =>
            {
                select.projection.iter().find_map(|item| match item {
                    ast::SelectItem::ExprWithAlias { expr, alias } if alias.value == ident.value => {
                        Some(expr)
                    }
                    _ => None,
                })
            }
            _ => None,
        };
        source.unwrap_or(node)
    }

    /// Returns the group's column if the expression is one of the groups.
    pub(super) fn bind_grouped(&mut self, node: &ast::Expr) -> Result<Option<BoundExpr>> {
        let Some(grouping) = &self.grouping else { return Ok(None) };
        if !grouping.kinds.contains(&kind_of(node)) {
            return Ok(None);
        }
        // A group's expression means what it means below the aggregation, so it is bound there and compared.
        let Some(grouping) = self.grouping.take() else { return Ok(None) };
        let windows = self.windows.take();
        let bound = self.bind_expr(node, &grouping.input);
        self.windows = windows;
        let found = bound.ok().and_then(|bound| {
            grouping.groups.iter().find(|(expr, _)| *expr == bound.expr).map(|(_, column)| column.clone())
        });
        self.grouping = Some(grouping);
        Ok(found)
    }

    /// Returns, inside an aggregation, the group that a column is; `Some(None)` if it is none.
    pub(super) fn grouped_column(&self, column: &ScopeColumn) -> Option<Option<BoundExpr>> {
        let grouping = self.grouping.as_ref()?;
        let expr = Expr::Column(column.column.clone());
        Some(grouping.groups.iter().find(|(group, _)| *group == expr).map(|(_, column)| column.clone()))
    }

    /// Binds an aggregate call: registers it and stands for its result.
    pub(super) fn bind_aggregate_call(
        &mut self,
        node: &ast::Expr,
        name: &str,
        call: &ast::Function,
        _scope: &Scope,
    ) -> Result<BoundExpr> {
        let Some(grouping) = self.grouping.take() else {
            return Err(self.invalid(node, "Aggregate expressions cannot be nested"));
        };
        let windows = self.windows.take();
        let bound = self.bind_aggregate_parts(node, name, call, &grouping);
        (self.grouping, self.windows) = (Some(grouping), windows);
        let (aggregate, data_type) = bound?;
        let column = self.unique_column(name);
        let Some(grouping) = &mut self.grouping else {
            return Err(Error::internal("the groups of a SELECT were lost"));
        };
        let known = grouping
            .aggregates
            .iter()
            .find(|(known, _)| *known == aggregate)
            .map(|(_, column)| column.clone());
        let column = known.unwrap_or_else(|| {
            grouping.aggregates.push((aggregate, column.clone()));
            column
        });
        Ok(BoundExpr::new(Expr::Column(column), data_type))
    }

    /// Binds arguments, DISTINCT and FILTER of an aggregate over the aggregation's input.
    fn bind_aggregate_parts(
        &mut self,
        node: &ast::Expr,
        name: &str,
        call: &ast::Function,
        grouping: &Grouping,
    ) -> Result<(AggregateFunction, DataType)> {
        let input = &grouping.input;
        let ast::FunctionArguments::List(list) = &call.args else {
            return Err(self.unsupported(node, &format!("{name} without brackets")));
        };
        if !call.within_group.is_empty() || !list.clauses.is_empty() || call.null_treatment.is_some() {
            return Err(self.unsupported(node, &format!("this form of {name}")));
        }
        let distinct = matches!(list.duplicate_treatment, Some(ast::DuplicateTreatment::Distinct));
        let mut arguments = Vec::with_capacity(list.args.len());
        for argument in &list.args {
            match argument {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard) => {}
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(argument)) => {
                    arguments.push(self.bind_expr(argument, input)?);
                }
                _ => return Err(self.unsupported(node, "a named argument")),
            }
        }
        let described: Vec<Argument<'_>> = arguments
            .iter()
            .map(|argument| Argument {
                data_type: &argument.data_type,
                literal: literal_value(&argument.expr),
            })
            .collect();
        let bound = function::aggregate(name, &described, distinct)
            .ok_or_else(|| Error::internal(format!("{name} is no aggregate")))?
            .map_err(|error| error.at(self.span(node)))?;
        // A group has rows, so that only NULLs among them make its result NULL.
        let is_filled =
            grouping.is_filled && call.filter.is_none() && !name.to_ascii_uppercase().ends_with("_SAMP");
        let is_null_free = is_filled && arguments.iter().all(|argument| !argument.data_type.nullable);
        let filter = match &call.filter {
            Some(condition) => {
                let bound = self.bind_expr(condition, input)?;
                let condition =
                    self.condition(condition, bound, "FILTER expression must be a condition")?.expr;
                // DataFusion's COUNT looks at the bits of the condition only, which may be set where it is NULL.
                Some(Box::new(Expr::IsTrue(Box::new(condition))))
            }
            None => None,
        };
        let mut cast: Vec<Expr> = arguments
            .into_iter()
            .zip(&bound.arguments)
            .map(|(argument, target)| self.cast_to(argument, target).expr)
            .collect();
        if cast.is_empty() {
            cast.push(datafusion::logical_expr::lit(1_i64));
        }
        let call =
            AggregateFunction::new_udf(bound.accumulator, cast, bound.distinct, filter, Vec::new(), None);
        let nullable = bound.result.nullable && !is_null_free;
        Ok((call, bound.result.with_nullable(nullable)))
    }

    /// Builds the projection and the aggregation.
    fn aggregate_plan(
        &mut self,
        input: LogicalPlan,
        grouping: &Grouping,
        clause: &GroupClause<'_>,
    ) -> Result<LogicalPlan> {
        let mut projected: Vec<Expr> = Vec::new();
        // What is aggregated several times is one column.
        let mut columns: HashMap<Expr, Expr> = HashMap::new();
        let mut group_columns = Vec::with_capacity(grouping.groups.len());
        for (expr, column) in &grouping.groups {
            let Expr::Column(column) = &column.expr else { continue };
            projected.push(expr.clone().alias(column.name()));
            group_columns.push(Expr::Column(column.clone()));
            // Grouping sets make their columns NULL, which aggregates do not see.
            if clause.sets.is_none() {
                columns.insert(expr.clone(), Expr::Column(column.clone()));
            }
        }
        let mut calls = Vec::with_capacity(grouping.aggregates.len());
        for (aggregate, column) in &grouping.aggregates {
            let mut aggregate = aggregate.clone();
            let arguments = aggregate.params.args.iter_mut().chain(aggregate.params.filter.as_deref_mut());
            for argument in arguments.filter(|argument| !matches!(argument, Expr::Literal(..))) {
                let known = columns.get(argument).filter(|_| !argument.is_volatile());
                *argument = match known {
                    Some(known) => known.clone(),
                    None => {
                        let unique = self.unique_column(argument_name(argument));
                        projected.push(argument.clone().alias(unique.name()));
                        columns.insert(argument.clone(), Expr::Column(unique.clone()));
                        Expr::Column(unique)
                    }
                };
            }
            calls.push(Expr::AggregateFunction(aggregate).alias(column.name()));
        }
        if group_columns.is_empty() && calls.is_empty() {
            // HAVING alone makes one group of all rows; DataFusion's node needs something to compute.
            let rows = function::aggregate("COUNT", &[], false)
                .ok_or_else(|| Error::internal("COUNT is missing"))??;
            let argument = vec![datafusion::logical_expr::lit(1_i64)];
            let call = AggregateFunction::new_udf(rows.accumulator, argument, false, None, Vec::new(), None);
            calls.push(Expr::AggregateFunction(call).alias(self.unique_column("rows").name()));
        }
        let input = LogicalPlan::Projection(Projection::try_new(projected, Arc::new(input))?);
        let groups = match &clause.sets {
            None => group_columns,
            Some(sets) => {
                let sets = sets
                    .iter()
                    .map(|set| set.iter().map(|at| group_columns[*at].clone()).collect())
                    .collect();
                vec![Expr::GroupingSet(GroupingSet::GroupingSets(sets))]
            }
        };
        Ok(LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input), groups, calls)?))
    }

    /// Binds something that stands above an aggregation whose plan exists already (ORDER BY).
    pub(super) fn with_grouping<T>(
        &mut self,
        grouping: Option<Grouping>,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let before = std::mem::replace(&mut self.grouping, grouping.clone());
        let bound = bind(self);
        let after = std::mem::replace(&mut self.grouping, before);
        match (grouping, after) {
            (Some(before), Some(after)) if before.aggregates.len() != after.aggregates.len() => {
                Err(Error::internal("an aggregate was found after its plan was built")
                    .class(FlinkClass::TABLE))
            }
            _ => bound,
        }
    }
}

impl<'e> GroupClause<'e> {
    /// Reads GROUP BY; ROLLUP, CUBE and GROUPING SETS become sets.
    fn of(expressions: &'e [ast::Expr]) -> GroupClause<'e> {
        let mut clause = GroupClause::default();
        // Several grouping sets beside each other multiply: the standard says so.
        let mut product: Option<Vec<Vec<usize>>> = None;
        for expression in expressions {
            let sets: Vec<Vec<&'e ast::Expr>> = match expression {
                ast::Expr::Rollup(parts) => {
                    (0..=parts.len()).rev().map(|length| parts[..length].iter().flatten().collect()).collect()
                }
                ast::Expr::Cube(parts) => (0..1_usize << parts.len())
                    .rev()
                    .map(|mask| {
                        let chosen = parts
                            .iter()
                            .enumerate()
                            .filter(|(at, _)| mask >> (parts.len() - 1 - at) & 1 == 1);
                        chosen.flat_map(|(_, part)| part).collect()
                    })
                    .collect(),
                ast::Expr::GroupingSets(sets) => sets.iter().map(|set| set.iter().collect()).collect(),
                ast::Expr::Tuple(parts) => {
                    parts.iter().for_each(|part| {
                        clause.position(part);
                    });
                    continue;
                }
                plain => {
                    clause.position(plain);
                    continue;
                }
            };
            let sets: Vec<Vec<usize>> = sets
                .into_iter()
                .map(|set| set.into_iter().map(|expr| clause.position(expr)).collect())
                .collect();
            product = Some(match product {
                None => sets,
                Some(before) => before
                    .iter()
                    .flat_map(|left| {
                        sets.iter().map(move |right| left.iter().chain(right).copied().collect())
                    })
                    .collect(),
            });
        }
        if let Some(mut sets) = product {
            // Plain expressions beside the sets belong to every one of them.
            let plain: Vec<usize> = expressions
                .iter()
                .filter(|e| {
                    !matches!(e, ast::Expr::Rollup(_) | ast::Expr::Cube(_) | ast::Expr::GroupingSets(_))
                })
                .map(|expr| clause.position(expr))
                .collect();
            for set in &mut sets {
                let missing: Vec<usize> = plain.iter().filter(|at| !set.contains(at)).copied().collect();
                set.splice(0..0, missing);
            }
            clause.sets = Some(sets);
        }
        clause
    }

    /// Returns whether two sets have the same groups.
    fn repeats_a_set(&self) -> bool {
        let mut seen: Vec<Vec<usize>> = Vec::new();
        self.sets.iter().flatten().any(|set| {
            let mut groups = set.clone();
            groups.sort_unstable();
            groups.dedup();
            let is_known = seen.contains(&groups);
            seen.push(groups);
            is_known
        })
    }

    /// Returns the positions in the order in which the sets name them first.
    fn set_order(&self) -> Option<Vec<usize>> {
        let mut order = Vec::new();
        for position in self.sets.as_ref()?.iter().flatten() {
            if !order.contains(position) {
                order.push(*position);
            }
        }
        Some(order)
    }

    /// Returns the position of an expression, adding it where it is new.
    fn position(&mut self, expression: &'e ast::Expr) -> usize {
        let expression = match expression {
            ast::Expr::Nested(inner) => inner,
            other => other,
        };
        self.expressions.iter().position(|known| *known == expression).unwrap_or_else(|| {
            self.expressions.push(expression);
            self.expressions.len() - 1
        })
    }
}

/// Returns what plans call the column of an argument.
fn argument_name(argument: &Expr) -> &str {
    match argument {
        Expr::Column(column) => visible_name(&column.name),
        _ => "argument",
    }
}

/// Returns the kind of syntax; a qualified and an unqualified name are the same kind.
fn kind_of(node: &ast::Expr) -> Discriminant<ast::Expr> {
    match node {
        ast::Expr::CompoundIdentifier(_) => discriminant(&ast::Expr::Identifier(ast::Ident::new(""))),
        ast::Expr::Nested(inner) => kind_of(inner),
        other => discriminant(other),
    }
}
