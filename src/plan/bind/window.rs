//! Window functions: each call with OVER becomes a column of a window node that stands below the select list, above groups and
//! HAVING. Partitions and orders are plain columns there; what is computed is projected first, so that a Top-N is recognised.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{
    Expr, Filter, LogicalPlan, Projection, SortExpr, Window, WindowFrame, WindowFrameBound, WindowFrameUnits,
    WindowFunctionDefinition,
};
use sqlparser::ast;

use super::call_search::holds_call;
use super::{Binder, BoundExpr, Scope};
use crate::error::{Error, FlinkClass, Result};
use crate::function::RankingFunction;
use crate::schema::TypeRoot;

/// The window functions of the SELECT that is being bound.
#[derive(Debug, Clone, Default)]
pub(crate) struct Windows {
    /// WINDOW name AS (…).
    named: Vec<(String, ast::WindowSpec)>,
    /// The calls so far, and the column that carries each result.
    calls: Vec<(WindowFunction, Column)>,
}

/// The partitions of a window and their order.
type WindowKeys = (Vec<Expr>, Vec<SortExpr>);

impl Binder<'_> {
    /// Lets window functions stand in what is bound from now on.
    pub(super) fn allow_windows(&mut self, select: &ast::Select) -> Result<()> {
        let mut named: Vec<(String, ast::WindowSpec)> = Vec::with_capacity(select.named_window.len());
        for ast::NamedWindowDefinition(name, definition) in &select.named_window {
            let ast::NamedWindowExpr::WindowSpec(spec) = definition else {
                return Err(self.unsupported(select, "a window that is only another name of one"));
            };
            if named.iter().any(|(known, _)| *known == name.value) {
                return Err(Error::validation("Duplicate window names not allowed")
                    .class(FlinkClass::SQL_VALIDATOR)
                    .at(self.positions.span(name.span)));
            }
            named.push((name.value.clone(), spec.clone()));
        }
        self.windows = Some(Windows { named, calls: Vec::new() });
        Ok(())
    }

    /// Binds a call with OVER: registers it and stands for its result.
    pub(super) fn bind_window_call(
        &mut self,
        node: &ast::Expr,
        name: &str,
        call: &ast::Function,
        window: &ast::WindowType,
        scope: &Scope,
    ) -> Result<BoundExpr> {
        let function = self.ranking_function(node, name, call)?;
        // Within a window function no other may stand.
        let Some(mut windows) = self.windows.take() else {
            return Err(self
                .invalid(node, "Windowed aggregate expression is illegal here")
                .hint("Window functions stand in the select list, in QUALIFY and in ORDER BY."));
        };
        let bound = self.window_keys(node, function, window, &windows, scope);
        let found = bound.map(|(partition_by, order_by)| {
            let call = window_function(function, partition_by, order_by);
            let known = windows.calls.iter().find(|(known, _)| *known == call);
            known.map(|(_, column)| column.clone()).unwrap_or_else(|| {
                let column = self.unique_column(function.name());
                windows.calls.push((call, column.clone()));
                column
            })
        });
        self.windows = Some(windows);
        Ok(BoundExpr::new(Expr::Column(found?), TypeRoot::BigInt.not_null()))
    }

    /// Returns the function of a call, if it is one that is built.
    fn ranking_function(
        &self,
        node: &ast::Expr,
        name: &str,
        call: &ast::Function,
    ) -> Result<RankingFunction> {
        let name = name.to_ascii_uppercase();
        let has_arguments = !matches!(&call.args, ast::FunctionArguments::List(list) if list.args.is_empty());
        match RankingFunction::find(&name) {
            Some(_) if has_arguments => {
                let message =
                    format!("Invalid number of arguments to function '{name}'. Was expecting 0 arguments");
                Err(self.invalid(node, message))
            }
            Some(RankingFunction::RowNumber) => Ok(RankingFunction::RowNumber),
            Some(_) if self.is_streaming => {
                Err(Error::unsupported(format!("{name}() on streaming table is not supported currently"))
                    .class(FlinkClass::TABLE)
                    .at(self.span(node))
                    .hint("ROW_NUMBER() is, with a condition such as rn <= 10 around it."))
            }
            Some(function) => Ok(function),
            None if self.is_streaming => {
                Err(Error::unsupported("OVER aggregates in streaming mode are not supported yet")
                    .class(FlinkClass::TABLE)
                    .at(self.span(node))
                    .hint("SET 'execution.runtime-mode' = 'batch' has ROW_NUMBER, RANK and DENSE_RANK."))
            }
            None => Err(Error::unsupported(format!("{name} with OVER is not supported yet"))
                .class(FlinkClass::TABLE)
                .at(self.span(node))
                .hint("ROW_NUMBER, RANK and DENSE_RANK are.")),
        }
    }

    /// Binds PARTITION BY and ORDER BY of a window.
    fn window_keys(
        &mut self,
        node: &ast::Expr,
        function: RankingFunction,
        window: &ast::WindowType,
        windows: &Windows,
        scope: &Scope,
    ) -> Result<WindowKeys> {
        let (mut partition_nodes, mut order_nodes) = (Vec::new(), Vec::new());
        let mut has_frame = false;
        let mut add = |spec: &ast::WindowSpec| {
            partition_nodes.extend(spec.partition_by.iter().cloned());
            order_nodes.extend(spec.order_by.iter().cloned());
            has_frame |= spec.window_frame.is_some();
        };
        let mut next = match window {
            ast::WindowType::NamedWindow(name) => Some(name.clone()),
            ast::WindowType::WindowSpec(spec) => {
                add(spec);
                spec.window_name.clone()
            }
        };
        // A named window may build upon one that was named before it.
        let mut left = windows.named.len();
        while let Some(name) = next {
            let found = windows.named[..left].iter().rposition(|(known, _)| *known == name.value);
            left = found.ok_or_else(|| {
                Error::validation(format!("Window '{}' not found", name.value))
                    .class(FlinkClass::SQL_VALIDATOR)
                    .at(self.positions.span(name.span))
            })?;
            let spec = &windows.named[left].1;
            add(spec);
            next = spec.window_name.clone();
        }
        if has_frame {
            return Err(
                self.invalid(node, "ROW/RANGE not allowed with RANK, DENSE_RANK or ROW_NUMBER functions")
            );
        }
        if order_nodes.is_empty() && function != RankingFunction::RowNumber {
            let message = "RANK or DENSE_RANK functions require ORDER BY clause in window specification";
            return Err(self.invalid(node, message));
        }
        let mut partition = Vec::with_capacity(partition_nodes.len());
        for key in &partition_nodes {
            partition.push(self.bind_expr(key, scope)?.expr);
        }
        let mut order = Vec::with_capacity(order_nodes.len());
        for key in &order_nodes {
            let bound = self.bind_expr(&key.expr, scope)?;
            order.push(super::query::sort_expr(bound.expr, &key.options));
        }
        Ok((partition, order))
    }

    /// Binds QUALIFY, in which names of the select list stand for its expressions.
    pub(super) fn bind_qualify(&mut self, select: &ast::Select, scope: &Scope) -> Result<Option<Expr>> {
        let Some(node) = &select.qualify else { return Ok(None) };
        let mut condition = node.clone();
        let mut aliases = Aliases { items: &select.projection, depth: 0 };
        // The visitor never breaks off.
        let _ = ast::VisitMut::visit(&mut condition, &mut aliases);
        if !holds_window(&condition) {
            let message = format!("QUALIFY expression '{node}' must contain a window function");
            return Err(self.invalid(node, message));
        }
        let bound = self.bind_expr(&condition, scope)?;
        Ok(Some(self.condition(node, bound, "QUALIFY clause must be a condition")?.expr))
    }

    /// Puts window functions, and the condition of QUALIFY, on a plan.
    pub(super) fn window_plan(
        &mut self,
        input: LogicalPlan,
        windows: &Windows,
        qualify: Option<Expr>,
    ) -> Result<LogicalPlan> {
        let mut calls = windows.calls.clone();
        let mut plan = self.project_keys(input, &mut calls)?;
        // Functions of one window share a node and its sort.
        while let Some((first, _)) = calls.first() {
            let keys = (first.params.partition_by.clone(), first.params.order_by.clone());
            let is_same =
                |call: &WindowFunction| call.params.partition_by == keys.0 && call.params.order_by == keys.1;
            let (same, others): (Vec<_>, Vec<_>) = calls.into_iter().partition(|(call, _)| is_same(call));
            let exprs = same.into_iter().map(|(call, column)| Expr::from(call).alias(column.name)).collect();
            plan = LogicalPlan::Window(Window::try_new(exprs, Arc::new(plan))?);
            calls = others;
        }
        match qualify {
            Some(condition) => Ok(LogicalPlan::Filter(Filter::try_new(condition, Arc::new(plan))?)),
            None => Ok(plan),
        }
    }

    /// Makes columns of computed keys, in a projection that passes on all others.
    fn project_keys(
        &self,
        input: LogicalPlan,
        calls: &mut [(WindowFunction, Column)],
    ) -> Result<LogicalPlan> {
        let mut computed: Vec<(Expr, Column)> = Vec::new();
        for (call, _) in calls {
            let orders = call.params.order_by.iter_mut().map(|order| &mut order.expr);
            for key in call.params.partition_by.iter_mut().chain(orders) {
                if matches!(key, Expr::Column(_)) {
                    continue;
                }
                let known = computed.iter().find(|(expr, _)| expr == key).map(|(_, column)| column.clone());
                let column = known.unwrap_or_else(|| {
                    let column = self.unique_column("key");
                    computed.push((key.clone(), column.clone()));
                    column
                });
                *key = Expr::Column(column);
            }
        }
        if computed.is_empty() {
            return Ok(input);
        }
        let mut exprs: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
        exprs.extend(computed.into_iter().map(|(expr, column)| expr.alias(column.name)));
        Ok(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input))?))
    }
}

/// Makes a call of a ranking function.
fn window_function(
    function: RankingFunction,
    partition_by: Vec<Expr>,
    order_by: Vec<SortExpr>,
) -> WindowFunction {
    let window_frame = WindowFrame::new_bounds(
        WindowFrameUnits::Rows,
        WindowFrameBound::Preceding(datafusion::common::ScalarValue::UInt64(None)),
        WindowFrameBound::CurrentRow,
    );
    WindowFunction {
        fun: WindowFunctionDefinition::WindowUDF(function.window_function()),
        params: WindowFunctionParams {
            args: Vec::new(),
            partition_by,
            order_by,
            window_frame,
            filter: None,
            null_treatment: None,
            distinct: false,
        },
    }
}

/// Returns whether an expression holds a window function of its own query.
pub(super) fn holds_window(node: &ast::Expr) -> bool {
    holds_call(node, |call| call.over.is_some())
}

/// Replaces names of the select list by its expressions, outside of subqueries.
struct Aliases<'a> {
    items: &'a [ast::SelectItem],
    depth: usize,
}

impl ast::VisitorMut for Aliases<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut ast::Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut ast::Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::Identifier(name) = expr
            && self.depth == 0
        {
            let source = self.items.iter().find_map(|item| match item {
                ast::SelectItem::ExprWithAlias { expr, alias } if alias.value == name.value => Some(expr),
                _ => None,
            });
            if let Some(source) = source {
                *expr = ast::Expr::Nested(Box::new(source.clone()));
            }
        }
        ControlFlow::Continue(())
    }
}
