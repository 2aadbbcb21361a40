//! UNNEST: a row per element of a collection in a column. DataFusion's node replaces the column, and it drops the rows of empty
//! arrays where LEFT JOIN keeps them.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::common::{Column, DFSchema, DFSchemaRef, plan_err};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};

use crate::error::Result;

/// The rows of an input, each once per element of its collection; the element's columns come behind the input's.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Unnest {
    /// Where the collections are.
    pub(crate) input: Arc<LogicalPlan>,
    /// The column that has them.
    pub(crate) column: Column,
    /// Whether rows whose collection is empty or NULL stay, with NULLs (LEFT JOIN).
    pub(crate) is_outer: bool,
    /// Whether the last column is the element's number, from 1.
    pub(crate) with_ordinality: bool,
    /// The columns that are added: the element's, then its number.
    pub(crate) added: Vec<FieldRef>,
    /// All columns.
    schema: DFSchemaRef,
}

impl Unnest {
    /// Adds the elements of a column to its rows.
    pub(crate) fn try_new(
        input: LogicalPlan,
        column: Column,
        is_outer: bool,
        with_ordinality: bool,
        added: Vec<FieldRef>,
    ) -> Result<Unnest> {
        let own = input.schema().iter().map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field)));
        let fields = own.chain(added.iter().map(|field| (None, Arc::clone(field)))).collect();
        let schema = DFSchema::new_with_metadata(fields, input.schema().metadata().clone())?;
        let (input, schema) = (Arc::new(input), Arc::new(schema));
        Ok(Unnest { input, column, is_outer, with_ordinality, added, schema })
    }

    /// Makes a plan of it.
    pub(crate) fn into_plan(self) -> LogicalPlan {
        LogicalPlan::Extension(Extension { node: Arc::new(self) })
    }

    /// Returns where the collections are among the columns of the input.
    pub(crate) fn position(&self) -> Result<usize> {
        Ok(self.input.schema().index_of_column(&self.column)?)
    }
}

impl PartialOrd for Unnest {
    fn partial_cmp(&self, other: &Unnest) -> Option<Ordering> {
        let key =
            |node: &Unnest| (node.column.clone(), node.is_outer, node.with_ordinality, node.added.clone());
        match key(self).cmp(&key(other)) {
            Ordering::Equal => self.input.partial_cmp(&other.input),
            ordering => Some(ordering),
        }
    }
}

impl UserDefinedLogicalNodeCore for Unnest {
    fn name(&self) -> &str {
        "Unnest"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![Expr::Column(self.column.clone())]
    }

    /// Conditions on the input's columns hold for all elements of a row or for none.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        self.added.iter().map(|field| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = if self.is_outer { "LEFT" } else { "INNER" };
        write!(f, "Unnest: column=[{}], joinType=[{join}]", self.column.name)
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> DataFusionResult<Unnest> {
        let (Ok([Expr::Column(column)]), Ok([input])) =
            (<[Expr; 1]>::try_from(exprs), <[LogicalPlan; 1]>::try_from(inputs))
        else {
            return plan_err!("UNNEST has one input, and one column of it");
        };
        Ok(Unnest::try_new(input, column, self.is_outer, self.with_ordinality, self.added.clone())?)
    }

    fn necessary_children_exprs(&self, output: &[usize]) -> Option<Vec<Vec<usize>>> {
        let width = self.input.schema().fields().len();
        let mut needed: Vec<usize> = output.iter().copied().filter(|column| *column < width).collect();
        needed.push(self.position().ok()?);
        needed.sort_unstable();
        needed.dedup();
        Some(vec![needed])
    }
}
