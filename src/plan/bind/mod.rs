//! From sqlparser's tree to a typed logical plan. Names, types, casts and signatures are Flink's; DataFusion's own analysis is
//! never run, so every expression leaves here with its exact type.
//!
//! Columns have names that are unique in the statement (`amount#12`), so that no plan is ever ambiguous; what the user calls
//! them lives in the scopes.

mod aggregate;
mod call;
mod call_search;
mod expression;
mod grouping;
mod join;
mod literal;
mod predicate;
mod query;
mod relation;
mod scope;
mod select;
mod set_operation;
mod subquery;
mod table_version;
mod unnest;
mod window;

pub(crate) use scope::{BoundExpr, BoundQuery, OutputColumn, Relation, Scope, ScopeColumn};

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use datafusion::common::Column;
use sqlparser::ast::Spanned;

use super::expand::Expansion;
use super::tables::TableSet;
use crate::error::{Error, FlinkClass, Result, Span};
use crate::function::EvalContext;
use crate::sql::Positions;

/// Binds one statement.
pub(crate) struct Binder<'a> {
    /// The tables and views that the statement names.
    tables: &'a TableSet,
    /// Time zone and clock.
    context: Arc<EvalContext>,
    /// Whether the session is in streaming mode.
    is_streaming: bool,
    /// The text that spans point into.
    positions: Arc<Positions>,
    /// Numbers columns.
    next_id: Rc<Cell<usize>>,
    /// Views around the current one, to find cycles.
    view_stack: Vec<String>,
    /// How many queries stand around the current one; a view's own counts.
    query_depth: usize,
    /// Named queries of WITH, innermost last.
    ctes: Vec<HashMap<String, BoundQuery>>,
    /// Scopes of the queries around a subquery, innermost last.
    outer: Vec<Scope>,
    /// Aggregate calls may stand here; set while a SELECT list with groups is bound.
    grouping: Option<aggregate::Grouping>,
    /// Window functions may stand here; set while a SELECT list is bound.
    windows: Option<window::Windows>,
    /// Whether a join condition is being bound: its equalities are keys, which compare by bits, so that NaN joins NaN.
    in_join_condition: bool,
    /// What names in the text stand for; None inside views, whose text is not the user's.
    expansion: Option<Expansion>,
}

impl<'a> Binder<'a> {
    /// Starts binding a statement whose text is in `positions`.
    pub(crate) fn new(
        tables: &'a TableSet,
        context: Arc<EvalContext>,
        is_streaming: bool,
        positions: Arc<Positions>,
    ) -> Self {
        Binder {
            tables,
            context,
            is_streaming,
            positions,
            next_id: Rc::new(Cell::new(0)),
            view_stack: Vec::new(),
            query_depth: 0,
            ctes: Vec::new(),
            outer: Vec::new(),
            grouping: None,
            windows: None,
            in_join_condition: false,
            expansion: Some(Expansion::default()),
        }
    }

    /// Binds a constant of a statement that is no query.
    pub(crate) fn bind_constant(&mut self, node: &sqlparser::ast::Expr) -> Result<BoundExpr> {
        self.bind_expr(node, &Scope::default())
    }

    /// Returns what expressions know of the session.
    pub(crate) fn context(&self) -> &Arc<EvalContext> {
        &self.context
    }

    /// Takes out what names in the text stand for.
    pub(crate) fn take_expansion(&mut self) -> Expansion {
        self.expansion.take().unwrap_or_default()
    }

    /// Notes what a piece of the text stands for.
    fn note(&mut self, span: sqlparser::tokenizer::Span, text: impl FnOnce() -> String) {
        if let Some(expansion) = &mut self.expansion {
            expansion.note(self.positions.span(span), text());
        }
    }

    /// Makes a column name that nothing else in the statement has.
    fn unique(&self, name: &str) -> String {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        format!("{name}#{id}")
    }

    /// Makes a plan column that nothing else in the statement has.
    fn unique_column(&self, name: &str) -> Column {
        Column::new_unqualified(self.unique(name))
    }

    /// Returns the place of a piece of the tree. Walks it: only for errors.
    fn span(&self, node: &impl Spanned) -> Span {
        self.positions.span(node.span())
    }

    /// Makes the error of Flink's validator at a piece of the tree.
    fn invalid(&self, node: &impl Spanned, message: impl Into<String>) -> Error {
        Error::validation(message).class(FlinkClass::SQL_VALIDATOR).at(self.span(node))
    }

    /// Makes the error of something that is not executed yet.
    fn unsupported(&self, node: &impl Spanned, what: &str) -> Error {
        Error::unsupported(format!("{what} is not supported yet"))
            .class(FlinkClass::TABLE)
            .at(self.span(node))
            .hint("The README lists what is supported.")
    }
}
