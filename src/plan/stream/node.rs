//! A streaming plan as a tree, before it becomes a graph: each node owns its inputs, so that rewriting is taking apart and
//! putting together. What follows from a node's inputs, its unique keys and the kinds of rows, is derived when it is made.

use datafusion::common::DFSchemaRef;

use super::changelog::produced_kinds;
use super::keys::unique_keys;
use crate::changelog::{ChangelogMode, RowKind};
use crate::plan::graph::OperatorSpec;

/// One operator with its inputs.
#[derive(Debug, Clone)]
pub(super) struct PlanNode {
    /// What it does.
    pub(super) spec: OperatorSpec,
    /// Where its rows come from.
    pub(super) inputs: Vec<PlanNode>,
    /// The output's columns.
    pub(super) schema: DFSchemaRef,
    /// Sets of columns that no two rows share; the empty set says that there is at most one row.
    pub(super) unique_keys: Vec<Vec<usize>>,
    /// Which kinds the output may have. Until `-U` has been decided on, an update stands here as `+U` alone.
    pub(super) mode: ChangelogMode,
}

impl PlanNode {
    /// Makes a node and derives its keys and kinds.
    pub(super) fn new(spec: OperatorSpec, inputs: Vec<PlanNode>, schema: DFSchemaRef) -> PlanNode {
        let unique_keys = unique_keys(&spec, &inputs, &schema);
        let mode = produced_kinds(&spec, &inputs);
        PlanNode { spec, inputs, schema, unique_keys, mode }
    }

    /// Returns whether rows may change after they have come.
    pub(super) fn has_updates(&self) -> bool {
        self.mode.contains(RowKind::UpdateAfter)
    }

    /// Returns whether rows only come.
    pub(super) fn is_insert_only(&self) -> bool {
        self.mode == ChangelogMode::INSERT_ONLY
    }

    /// Returns how many columns there are.
    pub(super) fn column_count(&self) -> usize {
        self.schema.fields().len()
    }
}
