//! Calcs: filters and projections, fused where that computes nothing twice. A projection that only renames leaves no calc behind.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef};
use datafusion::logical_expr::{Expr, ExprSchemable};

use super::keys::same_value;
use super::node::PlanNode;
use crate::error::Result;
use crate::plan::graph::{OperatorSpec, TopNSpec};

/// Filters and projects a node; `schema` has the columns of the projection.
pub(super) fn calc(
    input: PlanNode,
    condition: Option<Expr>,
    projection: Option<Vec<Expr>>,
    schema: &DFSchemaRef,
) -> Result<PlanNode> {
    let projection = projection.filter(|exprs| !is_identity(exprs, &input.schema));
    match (&input.spec, &condition, &projection) {
        (_, None, None) => Ok(PlanNode { schema: Arc::clone(schema), ..input }),
        (OperatorSpec::Calc { .. }, ..) => fused(input, condition, projection, schema),
        (OperatorSpec::TopN(top), _, Some(exprs))
            if top.with_rank && !reads_last(condition.iter().chain(exprs), &input.schema)? =>
        {
            let top = top.clone();
            new_calc(without_rank(input, top)?, condition, projection, schema)
        }
        _ => new_calc(input, condition, projection, schema),
    }
}

/// Makes a calc that keeps the first columns only.
pub(super) fn keep_columns(input: PlanNode, count: usize) -> Result<PlanNode> {
    if input.column_count() == count {
        return Ok(input);
    }
    let kept: Vec<Expr> = input.schema.columns().into_iter().take(count).map(Expr::Column).collect();
    let schema = first_columns(&input.schema, count)?;
    let mode = input.mode;
    let mut node = calc(input, None, Some(kept), &schema)?;
    node.mode = mode;
    Ok(node)
}

/// Makes a column of each expression: those that are columns stay where they are, the others are appended.
pub(super) struct ColumnMaker {
    made: usize,
}

impl ColumnMaker {
    /// Starts numbering.
    pub(super) fn new() -> ColumnMaker {
        ColumnMaker { made: 0 }
    }

    /// Returns a name that no column has: the binder's end with `#` and a number.
    pub(super) fn name(&mut self) -> String {
        self.made += 1;
        format!("$f{}", self.made)
    }

    /// Returns the node, with a calc where something has to be computed, and the position of each expression.
    pub(super) fn columns(&mut self, input: PlanNode, exprs: &[Expr]) -> Result<(PlanNode, Vec<usize>)> {
        let mut positions = Vec::with_capacity(exprs.len());
        let mut added: Vec<Expr> = Vec::new();
        for expr in exprs {
            let expr = expr.clone().unalias();
            let position = match &expr {
                Expr::Column(column) => input.schema.index_of_column(column)?,
                expr => {
                    let known = added.iter().position(|other| other == expr);
                    input.column_count()
                        + known.unwrap_or_else(|| {
                            added.push(expr.clone());
                            added.len() - 1
                        })
                }
            };
            positions.push(position);
        }
        if added.is_empty() {
            return Ok((input, positions));
        }
        let mut projection: Vec<Expr> = input.schema.columns().into_iter().map(Expr::Column).collect();
        projection.extend(added.into_iter().map(|expr| expr.alias(self.name())));
        Ok((project(input, projection)?, positions))
    }
}

/// Projects a node; the columns are those that the expressions name.
pub(super) fn project(input: PlanNode, projection: Vec<Expr>) -> Result<PlanNode> {
    let fields = projection.iter().map(|expr| expr.to_field(&input.schema)).collect::<Result<_, _>>()?;
    let schema = DFSchema::new_with_metadata(fields, HashMap::new())?;
    calc(input, None, Some(projection), &schema.into())
}

/// Makes a calc of its own.
fn new_calc(
    input: PlanNode,
    condition: Option<Expr>,
    projection: Option<Vec<Expr>>,
    schema: &DFSchemaRef,
) -> Result<PlanNode> {
    Ok(PlanNode::new(OperatorSpec::Calc { condition, projection }, vec![input], Arc::clone(schema)))
}

/// Puts a calc on a calc: as one where no expression would be computed twice or behind a filter that guards it.
fn fused(
    mut input: PlanNode,
    condition: Option<Expr>,
    projection: Option<Vec<Expr>>,
    schema: &DFSchemaRef,
) -> Result<PlanNode> {
    let OperatorSpec::Calc { condition: inner_condition, projection: inner } = &input.spec else {
        return new_calc(input, condition, projection, schema);
    };
    // Without a projection the columns are those below, and may have other names there.
    let inner = &inner.clone().unwrap_or_else(|| columns(&input.inputs[0].schema));
    let outer = projection.clone().unwrap_or_else(|| columns(&input.schema));
    if !is_inlined_once(inner, &input.schema, condition.as_ref(), &outer)? {
        return new_calc(input, condition, projection, schema);
    }
    let inline = |expr: Expr| -> Result<Expr> {
        let inlined = expr.transform_up(|part| match &part {
            Expr::Column(column) => {
                Ok(Transformed::yes(inner[input.schema.index_of_column(column)?].clone().unalias()))
            }
            _ => Ok(Transformed::no(part)),
        })?;
        Ok(inlined.data)
    };
    let condition = condition.map(inline).transpose()?;
    let condition = inner_condition.iter().cloned().chain(condition).reduce(Expr::and);
    let projection = outer.into_iter().map(inline).collect::<Result<Vec<_>>>()?;
    calc(input.inputs.remove(0), condition, Some(projection), schema)
}

/// Returns whether what the inner projection computes would be computed at most once, and not in a condition.
fn is_inlined_once(
    inner: &[Expr],
    schema: &DFSchema,
    condition: Option<&Expr>,
    outer: &[Expr],
) -> Result<bool> {
    let mut uses = vec![0_usize; inner.len()];
    for (expr, weight) in
        condition.map(|expr| (expr, 2)).into_iter().chain(outer.iter().map(|expr| (expr, 1)))
    {
        expr.apply(|part| {
            if let Expr::Column(column) = part {
                uses[schema.index_of_column(column)?] += weight;
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    let is_cheap = |expr: &Expr| matches!(expr.clone().unalias(), Expr::Column(_) | Expr::Literal(..));
    Ok(inner.iter().zip(uses).all(|(expr, uses)| uses <= 1 || is_cheap(expr)))
}

/// Returns whether a projection is its input, but for names.
fn is_identity(projection: &[Expr], input: &DFSchema) -> bool {
    let is_column = |expr: &Expr| matches!(expr.clone().unalias(), Expr::Column(_));
    projection.len() == input.fields().len()
        && projection
            .iter()
            .enumerate()
            .all(|(at, expr)| is_column(expr) && same_value(expr, input) == Some(at))
}

/// Returns all columns as expressions.
fn columns(schema: &DFSchema) -> Vec<Expr> {
    schema.columns().into_iter().map(Expr::Column).collect()
}

/// Returns whether an expression reads the last column.
fn reads_last<'e>(exprs: impl IntoIterator<Item = &'e Expr>, schema: &DFSchema) -> Result<bool> {
    let last = last_column(schema);
    for expr in exprs {
        if expr.exists(|part| Ok(matches!(part, Expr::Column(column) if *column == last)))? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn last_column(schema: &DFSchema) -> Column {
    schema.columns().pop().unwrap_or_else(|| Column::new_unqualified(""))
}

/// Takes the rank out of a Top-N: nobody reads it.
fn without_rank(mut input: PlanNode, mut top: TopNSpec) -> Result<PlanNode> {
    top.with_rank = false;
    let inner = input.inputs.remove(0);
    let schema = first_columns(&input.schema, inner.column_count())?;
    Ok(PlanNode::new(OperatorSpec::TopN(top), vec![inner], schema))
}

/// Returns the schema of the first columns.
pub(super) fn first_columns(schema: &DFSchema, count: usize) -> Result<DFSchemaRef> {
    let fields = schema.iter().take(count);
    let fields = fields.map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field))).collect();
    Ok(DFSchema::new_with_metadata(fields, HashMap::new())?.into())
}
