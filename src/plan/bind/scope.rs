//! What names mean at a point of a query: the columns that are visible, and behind them those of the query around it.

use datafusion::common::Column;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::LogicalPlan;

use crate::schema::DataType;

/// A column that a name can stand for.
#[derive(Debug, Clone)]
pub(crate) struct ScopeColumn {
    /// The parts of the relation's name, or its alias; empty for a derived table without one.
    pub(crate) relation: Vec<String>,
    /// The column's name. Several columns may have the same one.
    pub(crate) name: String,
    /// The column in the plan, unique in the whole statement.
    pub(crate) column: Column,
    /// The type.
    pub(crate) data_type: DataType,
    /// Whether `*` and unqualified names leave it out: the second of two columns that USING merged.
    pub(crate) merged: bool,
}

/// The columns that a relation offers, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    /// The columns.
    pub(crate) columns: Vec<ScopeColumn>,
}

/// How a name was found.
pub(crate) enum Resolution<'a> {
    /// One column; the names behind it are fields of its ROW.
    Column(&'a ScopeColumn, usize),
    /// Several columns have the name.
    Ambiguous,
    /// The relation exists but has no such column.
    NoSuchColumn,
    /// No column and no relation has the name.
    NotFound,
}

impl Scope {
    /// Finds `column`, `relation.column`, `database.relation.column` …, each with fields of a ROW behind it.
    pub(crate) fn resolve(&self, parts: &[String]) -> Resolution<'_> {
        let mut relation_found = false;
        // A longer qualifier is the more exact reading: `t.r.f` is a field of column `r` of `t` before anything else.
        for qualifier_length in (0..parts.len()).rev() {
            let (qualifier, rest) = parts.split_at(qualifier_length);
            let in_relation = |column: &&ScopeColumn| {
                if qualifier.is_empty() { !column.merged } else { column.relation.ends_with(qualifier) }
            };
            relation_found |= !qualifier.is_empty() && self.columns.iter().any(|column| in_relation(&column));
            let mut found = self.columns.iter().filter(in_relation).filter(|column| column.name == rest[0]);
            if let Some(column) = found.next() {
                return if found.next().is_some() {
                    Resolution::Ambiguous
                } else {
                    Resolution::Column(column, qualifier_length + 1)
                };
            }
        }
        if relation_found { Resolution::NoSuchColumn } else { Resolution::NotFound }
    }

    /// Returns the columns that `*` stands for.
    pub(crate) fn star(&self) -> impl Iterator<Item = &ScopeColumn> {
        self.columns.iter().filter(|column| !column.merged)
    }

    /// Returns the columns of one relation.
    pub(crate) fn relation_star<'a>(
        &'a self,
        relation: &'a [String],
    ) -> impl Iterator<Item = &'a ScopeColumn> {
        self.columns.iter().filter(move |column| column.relation.ends_with(relation))
    }

    /// Returns the columns of both, as a join has them; each side's columns become nullable where its rows may be missing.
    pub(crate) fn join(mut self, right: Scope, left_nullable: bool, right_nullable: bool) -> Scope {
        let mark = |columns: &mut Vec<ScopeColumn>, nullable: bool| {
            columns.iter_mut().for_each(|column| column.data_type.nullable |= nullable);
        };
        mark(&mut self.columns, left_nullable);
        let mut right = right.columns;
        mark(&mut right, right_nullable);
        self.columns.append(&mut right);
        self
    }
}

/// A relation: its plan and what its columns are called.
#[derive(Debug, Clone)]
pub(crate) struct Relation {
    /// The plan.
    pub(crate) plan: LogicalPlan,
    /// Its columns.
    pub(crate) scope: Scope,
}

/// A column of a query's result.
#[derive(Debug, Clone)]
pub(crate) struct OutputColumn {
    /// The name that the user sees.
    pub(crate) name: String,
    /// The type.
    pub(crate) data_type: DataType,
    /// The column in the plan.
    pub(crate) column: Column,
}

/// A query with its plan.
#[derive(Debug, Clone)]
pub(crate) struct BoundQuery {
    /// The plan; its columns are `columns`, in order.
    pub(crate) plan: LogicalPlan,
    /// The result's columns.
    pub(crate) columns: Vec<OutputColumn>,
}

/// An expression with its Flink type.
#[derive(Debug, Clone)]
pub(crate) struct BoundExpr {
    /// The expression, typed exactly: nothing is coerced later.
    pub(crate) expr: Expr,
    /// The type.
    pub(crate) data_type: DataType,
}

impl BoundExpr {
    /// Pairs an expression with its type.
    pub(crate) fn new(expr: Expr, data_type: DataType) -> BoundExpr {
        BoundExpr { expr, data_type }
    }
}
