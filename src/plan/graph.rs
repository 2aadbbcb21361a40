//! The graph of a streaming job, as data: nothing here runs. EXPLAIN prints it, the runtime builds operators from it.

use datafusion::common::DFSchemaRef;
use datafusion::logical_expr::Expr;

use super::provider::SourceTable;

/// A node with its inputs.
#[derive(Debug, Clone)]
pub(crate) enum StreamNode {
    /// Reads columns of a table.
    Source {
        /// The table.
        table: Box<SourceTable>,
        /// Positions in the table's read schema; physical columns before metadata.
        columns: Vec<usize>,
    },
    /// Constant rows.
    Values {
        /// One list of constant expressions per row.
        rows: Vec<Vec<Expr>>,
        /// The columns.
        schema: DFSchemaRef,
    },
    /// Keeps rows and computes columns.
    Calc {
        /// Where rows come from.
        input: Box<StreamNode>,
        /// The input's columns.
        input_schema: DFSchemaRef,
        /// What rows must fulfil.
        condition: Option<Expr>,
        /// The output columns; None passes all on.
        projection: Option<Vec<Expr>>,
        /// The output's columns.
        schema: DFSchemaRef,
    },
    /// All rows of all inputs.
    Union {
        /// The inputs, of equal types.
        inputs: Vec<StreamNode>,
    },
    /// The first rows to arrive.
    Limit {
        /// Where rows come from.
        input: Box<StreamNode>,
        /// How many are left out.
        skip: usize,
        /// How many are kept.
        fetch: Option<usize>,
    },
}
