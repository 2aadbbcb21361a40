//! Streaming plans: DataFusion's optimised logical plan becomes a tree of our operators, each decides what its inputs must show of
//! updates, and the trees of a job become one graph.
//!
//! `lower` knows what operators there are, `changelog` which kinds of rows flow between them, `assembly` where they run.

mod aggregate;
mod assembly;
mod calc;
mod changelog;
mod join;
mod keys;
mod lower;
mod multi_join;
mod node;
mod rank;
mod sink;
mod time_attribute;

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{DFSchema, TableReference};
use datafusion::logical_expr::LogicalPlan;

use assembly::Assembly;
use changelog::{UpdateKind, UpdateKindInference};
use keys::same_value;
use lower::Lowering;
use multi_join::merge_joins;
use node::PlanNode;

use super::graph::{JobGraph, OperatorSpec, SinkSpec};
use super::insert::BoundInsert;
use super::optimise::optimise_streaming;
use crate::error::Result;
use crate::options::{AGG_PHASE_STRATEGY, CDC_EVENTS_DUPLICATE, MULTI_JOIN, SessionConfig};

/// Who takes the rows of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueryConsumer {
    /// The user, who sees every change.
    User,
    /// Nobody: the query is explained. As in Flink no `-U` is shown that nothing needs.
    Explain,
}

/// Plans a query that is shown.
///
/// # Errors
/// The plan holds what is not built yet.
pub(super) fn query_graph(
    plan: &LogicalPlan,
    consumer: QueryConsumer,
    config: &SessionConfig,
) -> Result<JobGraph> {
    let inference = inference(config)?;
    let node = tree(plan, config)?;
    let node = match consumer {
        QueryConsumer::User => inference.with_update_before(&node)?,
        QueryConsumer::Explain => match inference.satisfy(&node, UpdateKind::OnlyKey)? {
            Some(node) => node,
            None => inference.with_update_before(&node)?,
        },
    };
    let (schema, mode) = (Arc::clone(&node.schema), node.mode);
    let mut root = PlanNode::new(OperatorSpec::Collect, vec![node], schema);
    root.mode = mode;
    Assembly::graph(vec![root])
}

/// Plans the INSERTs of one job.
///
/// # Errors
/// A plan holds what is not built yet, or a sink does not take what its query makes.
pub(super) fn insert_graph(inserts: &[&BoundInsert]) -> Result<JobGraph> {
    let mut roots = Vec::with_capacity(inserts.len());
    for insert in inserts {
        let config = &insert.table.config;
        let spec = SinkSpec {
            name: insert.table.identifier.to_string(),
            sink: Arc::clone(&insert.sink),
            keys: insert.key_positions(),
            overwrite: insert.overwrite,
        };
        let node = under_query_names(tree(&insert.plan, config)?, &insert.query_names)?;
        roots.push(inference(config)?.sink(&node, spec, config).map_err(|error| error.at(insert.place))?);
    }
    Assembly::graph(roots)
}

/// Gives columns that a sink takes as they are the names that the query has for them, as Flink shows them.
fn under_query_names(node: PlanNode, names: &[Option<String>]) -> Result<PlanNode> {
    let is_passed_on = |column: usize| match &node.spec {
        OperatorSpec::Calc { projection: Some(projection), .. } => {
            same_value(&projection[column], &node.inputs[0].schema).is_some()
        }
        _ => true,
    };
    let fields =
        node.schema.fields().iter().zip(names).enumerate().map(|(column, (field, name))| match name {
            Some(name) if is_passed_on(column) => field.as_ref().clone().with_name(name).into(),
            _ => Arc::clone(field),
        });
    // Nothing reads these columns by name; their qualifiers only keep equal ones apart.
    let fields =
        fields.enumerate().map(|(column, field)| (Some(TableReference::bare(column.to_string())), field));
    let schema = DFSchema::new_with_metadata(fields.collect(), HashMap::new())?.into();
    Ok(PlanNode { schema, ..node })
}

/// Optimises and lowers a plan.
fn tree(plan: &LogicalPlan, config: &SessionConfig) -> Result<PlanNode> {
    let node = Lowering::new(config.get(&AGG_PHASE_STRATEGY)?).node(&optimise_streaming(plan.clone())?)?;
    if config.get(&MULTI_JOIN)? { merge_joins(node) } else { Ok(node) }
}

/// Reads what the configuration says of changes.
fn inference(config: &SessionConfig) -> Result<UpdateKindInference> {
    Ok(UpdateKindInference { events_duplicate: config.get(&CDC_EVENTS_DUPLICATE)? })
}
