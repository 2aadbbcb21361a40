//! Joins on one key become one operator: nothing is kept of what lies between them.
//!
//! The key of an optional input is not the shared one: in `a LEFT JOIN b ON a.id = b.id LEFT JOIN c ON b.id = c.id` it is NULL
//! where `b` has no row, whatever `c` has. And what `LEFT JOIN` adds must be an input by itself, for of two joined ones neither
//! may come alone.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{DFSchema, DFSchemaRef, TableReference};
use datafusion::logical_expr::Expr;

use super::calc::calc;
use super::node::PlanNode;
use crate::error::Result;
use crate::plan::graph::{JoinKind, JoinSpec, MULTI_JOIN_INPUTS_MAX, OperatorSpec};

/// Fewer inputs are left to the join of two.
const INPUTS_MIN: usize = 3;

/// Merges joins on one key, wherever they stand in a tree.
pub(super) fn merge_joins(node: PlanNode) -> Result<PlanNode> {
    Merged::new(node)?.into_node()
}

/// A tree below whose root all joins have been merged.
struct Merged {
    node: PlanNode,
    /// What its root joins, if it does.
    join: Option<SharedKeyJoin>,
}

/// A join of two or more inputs on one key.
#[derive(Clone)]
struct SharedKeyJoin {
    inputs: Vec<PlanNode>,
    is_optional: Vec<bool>,
    /// The key's columns in each input.
    keys: Vec<Vec<usize>>,
    /// For each column of the output, its position among all columns of the inputs.
    columns: Vec<usize>,
}

impl Merged {
    fn new(mut node: PlanNode) -> Result<Merged> {
        let inputs = std::mem::take(&mut node.inputs);
        let inputs = inputs.into_iter().map(Merged::new).collect::<Result<Vec<_>>>()?;
        let join = match (&node.spec, inputs.as_slice()) {
            (OperatorSpec::Join(join), [left, right]) if is_equality(join) => {
                Some(SharedKeyJoin::new(join, left, right))
            }
            (OperatorSpec::Calc { condition: None, projection: Some(projection) }, [input]) => {
                input.join.as_ref().and_then(|join| join.projected(projection, &input.node.schema))
            }
            _ => None,
        };
        let mut inputs = inputs.into_iter().map(Merged::into_node).collect::<Result<Vec<_>>>()?;
        let node = match (node.spec, inputs.pop()) {
            // A merged join may have got a calc of its own.
            (OperatorSpec::Calc { condition, projection }, Some(input)) => {
                calc(input, condition, projection, &node.schema)?
            }
            (spec, last) => {
                inputs.extend(last);
                PlanNode { spec, inputs, ..node }
            }
        };
        Ok(Merged { node, join })
    }

    fn into_node(self) -> Result<PlanNode> {
        match self.join {
            Some(join) if join.inputs.len() >= INPUTS_MIN => join.into_node(&self.node.schema),
            _ => Ok(self.node),
        }
    }

    /// Returns the tree as inputs with these columns of its output as the key: several if they join on it, else one.
    fn on(&self, key: &[usize]) -> SharedKeyJoin {
        self.join.as_ref().and_then(|join| join.on(key)).unwrap_or_else(|| self.alone(key))
    }

    /// Returns the tree as one input.
    fn alone(&self, key: &[usize]) -> SharedKeyJoin {
        SharedKeyJoin {
            inputs: vec![self.node.clone()],
            is_optional: vec![false],
            keys: vec![key.to_vec()],
            columns: (0..self.node.column_count()).collect(),
        }
    }
}

impl SharedKeyJoin {
    fn new(join: &JoinSpec, left: &Merged, right: &Merged) -> SharedKeyJoin {
        let left_key: Vec<usize> = join.keys.iter().map(|key| key.left).collect();
        let right_key: Vec<usize> = join.keys.iter().map(|key| key.right).collect();
        let is_optional = join.kind == JoinKind::Left;
        let mut first = left.on(&left_key);
        let mut second = if is_optional { right.alone(&right_key) } else { right.on(&right_key) };
        if first.inputs.len() + second.inputs.len() > MULTI_JOIN_INPUTS_MAX {
            (first, second) = (left.alone(&left_key), right.alone(&right_key));
        }
        let width: usize = first.inputs.iter().map(PlanNode::column_count).sum();
        first.inputs.append(&mut second.inputs);
        first.is_optional.extend(second.is_optional.iter().map(|of_second| is_optional || *of_second));
        first.keys.append(&mut second.keys);
        first.columns.extend(second.columns.iter().map(|column| column + width));
        first
    }

    /// Returns the join with its key in the order of these columns of its output; None if they are another key.
    fn on(&self, key: &[usize]) -> Option<SharedKeyJoin> {
        let parts = self.keys.first().map_or(0, Vec::len);
        let mut left: Vec<usize> = (0..parts).collect();
        let mut order = Vec::with_capacity(parts);
        for column in key {
            let column = self.columns[*column];
            let at = left.iter().position(|part| self.is_key(*part, column))?;
            order.push(left.remove(at));
        }
        let keys = self.keys.iter().map(|of_input| order.iter().map(|part| of_input[*part]).collect());
        left.is_empty().then(|| SharedKeyJoin { keys: keys.collect(), ..self.clone() })
    }

    /// Returns whether a column of all inputs' is a part of the key that no row lacks.
    fn is_key(&self, part: usize, column: usize) -> bool {
        let mut start = 0;
        self.inputs.iter().enumerate().any(|(number, input)| {
            let is_it = !self.is_optional[number] && start + self.keys[number][part] == column;
            start += input.column_count();
            is_it
        })
    }

    /// Returns the join with some of its columns; None if the projection computes something.
    fn projected(&self, projection: &[Expr], schema: &DFSchema) -> Option<SharedKeyJoin> {
        let column = |expr: &Expr| match expr.clone().unalias() {
            Expr::Column(column) => schema.maybe_index_of_column(&column).map(|at| self.columns[at]),
            _ => None,
        };
        let columns = projection.iter().map(column).collect::<Option<_>>()?;
        Some(SharedKeyJoin { columns, ..self.clone() })
    }

    /// Makes one operator, with a calc behind it where its columns are not those that are wanted.
    fn into_node(self, schema: &DFSchemaRef) -> Result<PlanNode> {
        let fields = self.inputs.iter().zip(&self.is_optional).flat_map(|(input, is_optional)| {
            input.schema.fields().iter().map(move |field| {
                let is_nullable = *is_optional || field.is_nullable();
                Arc::new(field.as_ref().clone().with_nullable(is_nullable))
            })
        });
        // Inputs may have come from selects of different names, which are not unique here.
        let qualified = fields
            .enumerate()
            .map(|(at, field)| (Some(TableReference::bare(at.to_string())), field))
            .collect();
        let all = DFSchema::new_with_metadata(qualified, HashMap::new())?;
        let names = all.columns();
        let projection = self.columns.iter().map(|column| Expr::Column(names[*column].clone())).collect();
        let spec = OperatorSpec::MultiJoin { keys: self.keys, is_optional: self.is_optional };
        calc(PlanNode::new(spec, self.inputs, all.into()), None, Some(projection), schema)
    }
}

/// Returns whether a join is one that can be merged: pairs are equal in a key, in which NULL equals nothing, and that is all.
fn is_equality(join: &JoinSpec) -> bool {
    matches!(join.kind, JoinKind::Inner | JoinKind::Left)
        && join.residual.is_none()
        && !join.keys.is_empty()
        && !join.keys.iter().any(|key| key.is_null_safe)
}
