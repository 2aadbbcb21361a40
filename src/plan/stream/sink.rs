//! The end of a plan: what a sink takes decides whether `-U` is made at all, and whether rows of one sink key must be put in order
//! before it.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::Expr;

use crate::changelog::{ChangelogMode, RowKind};
use crate::error::{Error, FlinkClass, Result};
use crate::options::{REQUIRE_ON_CONFLICT, SessionConfig, Switch, UPSERT_MATERIALIZE};
use crate::plan::explain::{self, visible_name};
use crate::plan::graph::{OperatorSpec, SinkSpec, holds_key};

use super::changelog::{UpdateKind, UpdateKindInference};
use super::keys::NOT_NULL_GUARD;
use super::node::PlanNode;

impl UpdateKindInference {
    /// Puts a sink on a plan and decides what flows to it.
    ///
    /// # Errors
    /// The sink does not take what the query makes.
    pub(super) fn sink(&self, input: &PlanNode, spec: SinkSpec, config: &SessionConfig) -> Result<PlanNode> {
        let requested = if input.has_updates() {
            input.mode.union(ChangelogMode::of(&[RowKind::UpdateBefore]))
        } else {
            input.mode
        };
        let accepted = spec.sink.changelog_mode(requested);
        refuse_kinds(input, &spec, accepted)?;
        let input = if spec.sink.finds_rows_by_value() {
            self.exact(input)?
        } else if !input.has_updates() || accepted.contains(RowKind::UpdateBefore) {
            self.with_update_before(input)?
        } else {
            self.upserts(input, &spec, config)?
        };
        let schema = Arc::clone(&input.schema);
        let mut node = PlanNode::new(OperatorSpec::Sink(spec), vec![input], schema);
        node.mode = ChangelogMode::of(&[]);
        Ok(node)
    }

    /// Decides what flows to a sink that takes updates without `-U`.
    fn upserts(&self, input: &PlanNode, spec: &SinkSpec, config: &SessionConfig) -> Result<PlanNode> {
        let mut key = spec.keys.clone();
        key.sort_unstable();
        let materialize = config.get(&UPSERT_MATERIALIZE)?;
        if !key.is_empty() && materialize == Switch::Auto && !holds_key(&input.unique_keys, &key) {
            if config.get(&REQUIRE_ON_CONFLICT)? {
                return Err(on_conflict(input, spec));
            }
            return self.materialized(input, spec);
        }
        if !key.is_empty() && materialize == Switch::Force {
            return self.materialized(input, spec);
        }
        let wanted = if others_take_null(input, &key) { UpdateKind::OnlyKey } else { UpdateKind::OnlyAfter };
        if input.unique_keys.contains(&key)
            && let Some(input) = self.satisfy(input, wanted)?
        {
            return Ok(input);
        }
        if key.is_empty() || materialize == Switch::None {
            let input = self.with_update_before(input)?;
            let schema = Arc::clone(&input.schema);
            return Ok(PlanNode::new(OperatorSpec::DropUpdateBefore, vec![input], schema));
        }
        // Where a filter or a wider key may let a version go without its successor, that -U must delete: Flink leaves it to the
        // connector, here the rows are put in order.
        self.materialized(input, spec)
    }

    /// Keeps the rows of each sink key, so that an earlier one comes back when the last goes.
    fn materialized(&self, input: &PlanNode, spec: &SinkSpec) -> Result<PlanNode> {
        let input = self.exact(input)?;
        let schema = Arc::clone(&input.schema);
        let materialize = OperatorSpec::SinkUpsertMaterialize { keys: spec.keys.clone() };
        Ok(PlanNode::new(materialize, vec![input], schema))
    }
}

/// Makes Flink's error for kinds that a sink does not take; it names the operator that makes them.
fn refuse_kinds(input: &PlanNode, spec: &SinkSpec, accepted: ChangelogMode) -> Result<()> {
    let names = [(RowKind::Insert, "insert"), (RowKind::UpdateAfter, "update"), (RowKind::Delete, "delete")];
    let left_over = |mode: ChangelogMode| {
        let kinds = names.iter().filter(|(kind, _)| mode.contains(*kind) && !accepted.contains(*kind));
        kinds.map(|(_, name)| *name).collect::<Vec<_>>()
    };
    if left_over(input.mode).is_empty() {
        return Ok(());
    }
    let mut node = input;
    while passes_kinds_on(&node.spec)
        && let Some(source) = node.inputs.iter().find(|input| !left_over(input.mode).is_empty())
    {
        node = source;
    }
    Err(Error::validation(format!(
        "Table sink '{}' doesn't support consuming {} changes which is produced by node {}",
        spec.name,
        left_over(node.mode).join(" and "),
        explain::plan_node_text(&node.spec, node.inputs.iter().map(|input| &input.schema), &node.schema),
    ))
    .class(FlinkClass::TABLE)
    .hint("Write to a table that takes changes, or run the query in batch: SET 'execution.runtime-mode' = 'batch'."))
}

/// Returns whether all columns but the key's take NULL, as they are in a deleted row of which only the key is known. A column that
/// is guarded against NULL does not.
fn others_take_null(input: &PlanNode, key: &[usize]) -> bool {
    let OperatorSpec::Calc { projection: Some(projection), .. } = &input.spec else { return true };
    let is_guard =
        |part: &Expr| Ok(matches!(part, Expr::ScalarFunction(call) if call.name() == NOT_NULL_GUARD));
    let columns = projection.iter().enumerate();
    // The closure never fails.
    columns
        .filter(|(column, _)| !key.contains(column))
        .all(|(_, expr)| !expr.exists(is_guard).unwrap_or(true))
}

/// Returns whether an operator only hands on the kinds that it gets.
fn passes_kinds_on(spec: &OperatorSpec) -> bool {
    matches!(
        spec,
        OperatorSpec::Calc { .. }
            | OperatorSpec::Union
            | OperatorSpec::Expand { .. }
            | OperatorSpec::Unnest { .. }
            | OperatorSpec::DropUpdateBefore
    )
}

/// Makes Flink's error for a query whose key is not the sink's.
fn on_conflict(input: &PlanNode, spec: &SinkSpec) -> Error {
    let names = |columns: &[usize]| {
        let names = columns.iter().map(|column| visible_name(input.schema.field(*column).name()));
        names.collect::<Vec<_>>().join(", ")
    };
    let query_key = input.unique_keys.first().map_or_else(String::new, |key| format!("[{}]", names(key)));
    Error::validation(format!(
        "The query has an upsert key that differs from the primary key of the sink table '{}'. Primary key: [{}], upsert key: {query_key}. This can lead to non-deterministic results when multiple records with different upsert keys map to the same primary key. Please specify an ON CONFLICT clause to define how conflicts should be handled: ON CONFLICT DO DEDUPLICATE (update to the latest record, state intensive, since we need to keep the entire history), or ON CONFLICT DO ERROR (fail on conflict), or ON CONFLICT DO NOTHING (keep first record).",
        spec.name,
        names(&spec.keys),
    ))
    .hint("SET 'table.exec.sink.require-on-conflict' = 'false' keeps the history without the clause.")
}
