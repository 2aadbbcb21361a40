//! Joins: equal columns become keys, everything else stays a condition on pairs.

use std::sync::Arc;

use datafusion::common::{DFSchema, JoinType, NullEquality};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Join, Operator};

use super::calc::calc;
use super::lower::{Lowering, not_supported};
use super::node::PlanNode;
use super::time_attribute::{bounds_event_time, needs_event_time};
use crate::error::Result;
use crate::plan::graph::{JoinKey, JoinKind, JoinSide, JoinSpec, OperatorSpec};

/// An equality between a value of the left side and one of the right.
struct Equality {
    left: Expr,
    right: Expr,
    is_null_safe: bool,
}

impl Lowering {
    /// Lowers a join.
    pub(super) fn join(&mut self, join: &Join) -> Result<PlanNode> {
        let (left, right) = (self.node(&join.left)?, self.node(&join.right)?);
        let (kind, is_turned) = match join.join_type {
            JoinType::Inner => (JoinKind::Inner, false),
            JoinType::Left => (JoinKind::Left, false),
            JoinType::Right => (JoinKind::Right, false),
            JoinType::Full => (JoinKind::Full, false),
            JoinType::LeftSemi => (JoinKind::Semi, false),
            JoinType::LeftAnti => (JoinKind::Anti, false),
            JoinType::RightSemi => (JoinKind::Semi, true),
            JoinType::RightAnti => (JoinKind::Anti, true),
            JoinType::LeftMark | JoinType::RightMark => {
                return Err(not_supported("IN or EXISTS below OR or NOT"));
            }
        };
        let (mut equalities, residual) = equalities(join)?;
        let (left, right) = if is_turned { (right, left) } else { (left, right) };
        if is_turned {
            for equality in &mut equalities {
                std::mem::swap(&mut equality.left, &mut equality.right);
            }
        }
        let output = match kind {
            JoinKind::Semi | JoinKind::Anti => left.schema.columns(),
            _ => join.schema.columns(),
        };
        let left_exprs: Vec<Expr> = equalities.iter().map(|equality| equality.left.clone()).collect();
        let right_exprs: Vec<Expr> = equalities.iter().map(|equality| equality.right.clone()).collect();
        let (left, left_keys) = self.columns.columns(left, &left_exprs)?;
        let (right, right_keys) = self.columns.columns(right, &right_exprs)?;
        let keys: Vec<JoinKey> = equalities
            .iter()
            .zip(left_keys.iter().zip(&right_keys))
            .map(|(equality, (left, right))| JoinKey {
                left: *left,
                right: *right,
                is_null_safe: equality.is_null_safe,
            })
            .collect();
        let sides =
            [JoinSide::of(&left.unique_keys, &left_keys), JoinSide::of(&right.unique_keys, &right_keys)];
        let pair_schema = pair_schema(&left.schema, &right.schema, kind)?;
        let schema = match kind {
            JoinKind::Semi | JoinKind::Anti => Arc::clone(&left.schema),
            _ => pair_schema.clone().into(),
        };
        let spec = JoinSpec {
            kind,
            keys,
            residual,
            pair_schema: pair_schema.into(),
            is_null_aware: join.null_aware,
            sides,
        };
        let node = PlanNode::new(OperatorSpec::Join(spec), vec![left, right], schema);
        // Columns that were made for keys go again, and the plan's schema knows best what may be NULL.
        let projection = output.into_iter().map(Expr::Column).collect();
        calc(node, None, Some(projection), &join.schema)
    }
}

/// Takes the equalities out of a join's conditions; the rest remains.
fn equalities(join: &Join) -> Result<(Vec<Equality>, Option<Expr>)> {
    let is_null_safe = join.null_equality == NullEquality::NullEqualsNull;
    let mut equalities: Vec<Equality> = join
        .on
        .iter()
        .map(|(left, right)| Equality { left: left.clone(), right: right.clone(), is_null_safe })
        .collect();
    let (left, right) = (join.left.schema(), join.right.schema());
    let mut others = Vec::new();
    for condition in join.filter.clone().map_or_else(Vec::new, split_conjunction_owned) {
        // NOT IN that minds NULLs has one key only.
        match equality(&condition, left, right)? {
            Some(equality) if !join.null_aware || equalities.is_empty() => equalities.push(equality),
            _ if is_true(&condition) => {}
            _ if bounds_event_time(&condition, join) => return Err(needs_event_time("an interval join")),
            _ => others.push(condition),
        }
    }
    Ok((equalities, conjunction(others)))
}

/// Returns a condition as an equality of both sides.
fn equality(condition: &Expr, left: &DFSchema, right: &DFSchema) -> Result<Option<Equality>> {
    let Expr::BinaryExpr(BinaryExpr { left: first, op, right: second }) = condition else { return Ok(None) };
    let is_null_safe = match op {
        Operator::Eq => false,
        Operator::IsNotDistinctFrom => true,
        _ => return Ok(None),
    };
    let of = |expr: &Expr, schema: &DFSchema| {
        let columns = expr.column_refs();
        !columns.is_empty() && columns.iter().all(|column| schema.has_column(column))
    };
    let (left_value, right_value) = if of(first, left) && of(second, right) {
        (first, second)
    } else if of(first, right) && of(second, left) {
        (second, first)
    } else {
        return Ok(None);
    };
    if left_value.get_type(left)? != right_value.get_type(right)? {
        return Ok(None);
    }
    let (left, right) = (left_value.as_ref().clone(), right_value.as_ref().clone());
    Ok(Some(Equality { left, right, is_null_safe }))
}

/// Returns whether a condition is the constant TRUE.
fn is_true(condition: &Expr) -> bool {
    *condition == datafusion::logical_expr::lit(true)
}

/// Returns the columns of a pair. Those of a side that may be missing may be NULL.
fn pair_schema(left: &DFSchema, right: &DFSchema, kind: JoinKind) -> Result<DFSchema> {
    let (left_optional, right_optional) = match kind {
        JoinKind::Left => (false, true),
        JoinKind::Right => (true, false),
        JoinKind::Full => (true, true),
        JoinKind::Inner | JoinKind::Semi | JoinKind::Anti => (false, false),
    };
    let fields = |schema: &DFSchema, is_optional: bool| {
        let fields = schema.iter().map(move |(qualifier, field)| {
            let nullable = is_optional || field.is_nullable();
            (qualifier.cloned(), field.as_ref().clone().with_nullable(nullable).into())
        });
        fields.collect::<Vec<_>>()
    };
    let fields = [fields(left, left_optional), fields(right, right_optional)].concat();
    Ok(DFSchema::new_with_metadata(fields, std::collections::HashMap::new())?)
}
