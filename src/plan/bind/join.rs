//! Joins: the relation of both sides, the condition, and the columns that USING and NATURAL merge.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNode;
use datafusion::common::{JoinType, NullEquality};
use datafusion::logical_expr::{Expr, Join, JoinConstraint, LogicalPlan, Projection};
use sqlparser::ast;

use super::expression::column_expr;
use super::predicate::always;
use super::{Binder, BoundExpr, Relation, Scope};
use crate::error::Result;
use crate::plan::tables::name_parts;

impl Binder<'_> {
    /// Binds a table with the joins behind it.
    pub(super) fn bind_joined(&mut self, entry: &ast::TableWithJoins) -> Result<Relation> {
        let first = self.bind_factor(&entry.relation)?;
        self.join_all(first, &entry.joins)
    }

    /// Binds an entry of FROM that may name columns of the entries in front of it.
    pub(super) fn bind_lateral(&mut self, left: Relation, entry: &ast::TableWithJoins) -> Result<Relation> {
        let first = match &entry.relation {
            factor @ ast::TableFactor::UNNEST { .. } => self.unnest(left, factor, false)?,
            factor => {
                let right = self.bind_factor(factor)?;
                self.cross_join(left, right)?
            }
        };
        self.join_all(first, &entry.joins)
    }

    /// Joins further tables to the first.
    fn join_all(&mut self, first: Relation, joins: &[ast::Join]) -> Result<Relation> {
        let mut bound = first;
        for join in joins {
            if let ast::TableFactor::UNNEST { .. } = &join.relation {
                bound = self.join_unnest(bound, join)?;
                continue;
            }
            let right = self.bind_factor(&join.relation)?;
            bound = match &join.join_operator {
                ast::JoinOperator::Join(constraint) | ast::JoinOperator::Inner(constraint) => {
                    self.join(bound, right, JoinType::Inner, constraint)?
                }
                ast::JoinOperator::Left(constraint) | ast::JoinOperator::LeftOuter(constraint) => {
                    self.join(bound, right, JoinType::Left, constraint)?
                }
                ast::JoinOperator::Right(constraint) | ast::JoinOperator::RightOuter(constraint) => {
                    self.join(bound, right, JoinType::Right, constraint)?
                }
                ast::JoinOperator::FullOuter(constraint) => {
                    self.join(bound, right, JoinType::Full, constraint)?
                }
                ast::JoinOperator::CrossJoin(_) => self.cross_join(bound, right)?,
                _ => return Err(self.unsupported(&join.relation, "this kind of join")),
            };
        }
        Ok(bound)
    }

    /// Joins two relations without a condition.
    pub(super) fn cross_join(&mut self, left: Relation, right: Relation) -> Result<Relation> {
        let plan = join_plan(left.plan, right.plan, JoinType::Inner, always())?;
        Ok(Relation { plan, scope: left.scope.join(right.scope, false, false) })
    }

    /// Joins two relations.
    fn join(
        &mut self,
        left: Relation,
        right: Relation,
        join_type: JoinType,
        constraint: &ast::JoinConstraint,
    ) -> Result<Relation> {
        let (left_nullable, right_nullable) = match join_type {
            JoinType::Left => (false, true),
            JoinType::Right => (true, false),
            JoinType::Full => (true, true),
            _ => (false, false),
        };
        let names: Vec<String> = match constraint {
            ast::JoinConstraint::On(condition) => {
                let scope = left.scope.clone().join(right.scope.clone(), false, false);
                let bound = self.bind_join_condition(condition, &scope)?;
                let condition = self.condition(condition, bound, "ON clause must be a condition")?;
                let plan = join_plan(left.plan, right.plan, join_type, condition.expr)?;
                return Ok(Relation {
                    plan,
                    scope: left.scope.join(right.scope, left_nullable, right_nullable),
                });
            }
            ast::JoinConstraint::Using(columns) => {
                columns.iter().map(|name| name_parts(name).join(".")).collect()
            }
            ast::JoinConstraint::Natural => {
                let in_right = |name: &str| right.scope.star().any(|column| column.name == name);
                left.scope.star().map(|column| column.name.clone()).filter(|name| in_right(name)).collect()
            }
            ast::JoinConstraint::None => Vec::new(),
        };
        let mut condition: Option<BoundExpr> = None;
        for name in &names {
            let parts = std::slice::from_ref(name);
            let (left, right) =
                (self.using_column(&left.scope, parts)?, self.using_column(&right.scope, parts)?);
            let node = ast::Expr::Identifier(ast::Ident::new(name.clone()));
            let equal = self.compare(&node, left, &ast::BinaryOperator::Eq, right)?;
            condition = Some(match condition {
                Some(all) => self.logical(&node, all, &ast::BinaryOperator::And, equal)?,
                None => equal,
            });
        }
        let plan =
            join_plan(left.plan, right.plan, join_type, condition.map_or_else(always, |bound| bound.expr))?;
        let left_names = left.scope.columns.len();
        let scope = left.scope.join(right.scope, left_nullable, right_nullable);
        self.merge_columns(plan, scope, left_names, &names, join_type)
    }

    /// Binds the condition of ON.
    pub(super) fn bind_join_condition(&mut self, condition: &ast::Expr, scope: &Scope) -> Result<BoundExpr> {
        let before = std::mem::replace(&mut self.in_join_condition, true);
        let bound = self.bind_expr(condition, scope);
        self.in_join_condition = before;
        let bound = bound?;
        if holds_subquery(&bound.expr) {
            return Err(self.unsupported(condition, "a subquery in ON"));
        }
        Ok(bound)
    }

    /// Finds a column of USING on one side.
    fn using_column(&self, scope: &Scope, name: &[String]) -> Result<BoundExpr> {
        match scope.resolve(name) {
            super::scope::Resolution::Column(column, _) => Ok(column_expr(column)),
            _ => Err(crate::error::Error::validation(format!(
                "Column '{}' not found in any table",
                name.join(".")
            ))
            .class(crate::error::FlinkClass::SQL_VALIDATOR)),
        }
    }

    /// Makes one column of each pair that USING or NATURAL names: it stands first, and is the one side's value or the other's.
    fn merge_columns(
        &mut self,
        plan: LogicalPlan,
        scope: Scope,
        left_count: usize,
        names: &[String],
        join_type: JoinType,
    ) -> Result<Relation> {
        let (mut left, mut right) = (scope.columns, Vec::new());
        right.extend(left.drain(left_count..));
        let mut exprs: Vec<Expr> =
            left.iter().chain(&right).map(|column| Expr::Column(column.column.clone())).collect();
        let mut merged = Vec::new();
        for name in names {
            let find = |column: &&mut super::ScopeColumn| !column.merged && column.name == *name;
            let (Some(from_left), Some(from_right)) =
                (left.iter_mut().find(find), right.iter_mut().find(find))
            else {
                continue;
            };
            (from_left.merged, from_right.merged) = (true, true);
            let (from_left, from_right) = (column_expr(from_left), column_expr(from_right));
            let value = match join_type {
                JoinType::Right => from_right,
                JoinType::Full => {
                    let node = ast::Expr::Identifier(ast::Ident::new(name.clone()));
                    self.bind_function("COALESCE", vec![from_left, from_right], &node)?
                }
                _ => from_left,
            };
            let unique = self.unique_column(name);
            exprs.push(value.expr.alias(unique.name()));
            merged.push(super::ScopeColumn {
                relation: Vec::new(),
                name: name.clone(),
                column: unique,
                data_type: value.data_type,
                merged: false,
            });
        }
        let plan = LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(plan))?);
        merged.append(&mut left);
        merged.append(&mut right);
        Ok(Relation { plan, scope: Scope { columns: merged } })
    }
}

/// Returns whether a query stands in an expression.
fn holds_subquery(expr: &Expr) -> bool {
    let is_subquery =
        |expr: &Expr| Ok(matches!(expr, Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_)));
    // The closure never fails.
    expr.exists(is_subquery).unwrap_or(false)
}

/// Makes a join; its equalities are found by the optimiser.
fn join_plan(
    left: LogicalPlan,
    right: LogicalPlan,
    join_type: JoinType,
    condition: Expr,
) -> Result<LogicalPlan> {
    let join = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        Vec::new(),
        Some(condition),
        join_type,
        JoinConstraint::On,
        NullEquality::NullEqualsNothing,
        false,
    )?;
    Ok(LogicalPlan::Join(join))
}
