//! INTERSECT and EXCEPT, with ALL or without. DataFusion has no node for them and turns ALL into a join that counts wrong: two
//! equal rows on the left would stay two whatever the right has.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchemaRef, JoinType, NullEquality, plan_err};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Distinct, Expr, Extension, Join, JoinConstraint, LogicalPlan, Projection, UserDefinedLogicalNodeCore,
    Window,
};

use crate::error::Result;
use crate::function::RankingFunction;

/// The column that numbers equal rows while ALL is computed.
const NUMBER: &str = "$number";

/// Rows of the left input that are, or are not, in the right one. Both have the same columns; NULL equals NULL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SetOperation {
    /// INTERSECT, or else EXCEPT.
    pub(crate) is_intersect: bool,
    /// ALL: rows count as often as they are there.
    pub(crate) is_all: bool,
    /// The left input.
    pub(crate) left: Arc<LogicalPlan>,
    /// The right input, with columns of the same names.
    pub(crate) right: Arc<LogicalPlan>,
}

impl SetOperation {
    /// Makes a plan of the operation.
    pub(crate) fn into_plan(self) -> LogicalPlan {
        LogicalPlan::Extension(Extension { node: Arc::new(self) })
    }

    /// Makes a plan of nodes that DataFusion runs: a semi or anti join on all columns, over distinct rows or over numbered ones.
    fn lower(&self) -> DataFusionResult<LogicalPlan> {
        let columns = self.left.schema().columns();
        let (left, right) = if self.is_all {
            (numbered(&self.left)?, numbered(&self.right)?)
        } else {
            (LogicalPlan::Distinct(Distinct::All(Arc::clone(&self.left))), self.right.as_ref().clone())
        };
        let keys = left.schema().columns();
        let right_keys: Vec<Column> =
            keys.iter().map(|column| Column::new_unqualified(format!("{}$right", column.name))).collect();
        let renamed = right.schema().columns().into_iter().zip(&right_keys);
        let renamed = renamed.map(|(column, key)| Expr::Column(column).alias(&key.name)).collect();
        let right = LogicalPlan::Projection(Projection::try_new(renamed, Arc::new(right))?);
        let on = keys.into_iter().zip(right_keys);
        let join = LogicalPlan::Join(Join::try_new(
            Arc::new(left),
            Arc::new(right),
            on.map(|(left, right)| (Expr::Column(left), Expr::Column(right))).collect(),
            None,
            if self.is_intersect { JoinType::LeftSemi } else { JoinType::LeftAnti },
            JoinConstraint::On,
            NullEquality::NullEqualsNull,
            false,
        )?);
        if !self.is_all {
            return Ok(join);
        }
        let shown = columns.into_iter().map(Expr::Column).collect();
        Ok(LogicalPlan::Projection(Projection::try_new(shown, Arc::new(join))?))
    }
}

/// Numbers equal rows: the first of each has 1.
fn numbered(input: &Arc<LogicalPlan>) -> DataFusionResult<LogicalPlan> {
    let mut call = WindowFunction::new(RankingFunction::RowNumber.window_function(), Vec::new());
    call.params.partition_by = input.schema().columns().into_iter().map(Expr::Column).collect();
    let number = Expr::from(call).alias(NUMBER);
    Ok(LogicalPlan::Window(Window::try_new(vec![number], Arc::clone(input))?))
}

/// Replaces all set operations of a plan by nodes that DataFusion runs.
pub(crate) fn lower_set_operations(plan: LogicalPlan) -> Result<LogicalPlan> {
    let lowered = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Extension(extension) = &node else { return Ok(Transformed::no(node)) };
        match extension.node.as_any().downcast_ref::<SetOperation>() {
            Some(operation) => Ok(Transformed::yes(operation.lower()?)),
            None => Ok(Transformed::no(node)),
        }
    })?;
    Ok(lowered.data)
}

impl PartialOrd for SetOperation {
    fn partial_cmp(&self, other: &SetOperation) -> Option<Ordering> {
        let key = |node: &SetOperation| (node.is_intersect, node.is_all);
        let inputs = |node: &SetOperation| (Arc::clone(&node.left), Arc::clone(&node.right));
        match key(self).cmp(&key(other)) {
            Ordering::Equal => inputs(self).partial_cmp(&inputs(other)),
            ordering => Some(ordering),
        }
    }
}

impl UserDefinedLogicalNodeCore for SetOperation {
    fn name(&self) -> &str {
        if self.is_intersect { "Intersect" } else { "Minus" }
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.left, &self.right]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.left.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    /// A condition on the result holds for a row as well as for the rows that are equal to it, so it may go to both inputs.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        HashSet::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: all=[{}]", UserDefinedLogicalNodeCore::name(self), self.is_all)
    }

    fn with_exprs_and_inputs(
        &self,
        _: Vec<Expr>,
        inputs: Vec<LogicalPlan>,
    ) -> DataFusionResult<SetOperation> {
        let Ok([left, right]) = <[LogicalPlan; 2]>::try_from(inputs) else {
            return plan_err!("a set operation has two inputs");
        };
        Ok(SetOperation { left: Arc::new(left), right: Arc::new(right), ..self.clone() })
    }

    /// Rows are equal if all their columns are, whichever of them are asked for.
    fn necessary_children_exprs(&self, _: &[usize]) -> Option<Vec<Vec<usize>>> {
        let all = |input: &LogicalPlan| (0..input.schema().fields().len()).collect();
        Some(vec![all(&self.left), all(&self.right)])
    }
}
