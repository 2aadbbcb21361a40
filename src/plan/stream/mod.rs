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
mod node;
mod rank;
mod sink;
#[cfg(test)]
mod tests;

use datafusion::logical_expr::LogicalPlan;

use assembly::Assembly;
use changelog::{UpdateKind, UpdateKindInference};
use lower::Lowering;
use node::PlanNode;

use super::graph::{JobGraph, OperatorSpec, SinkSpec};
use super::insert::BoundInsert;
use super::optimise::optimise_streaming;
use crate::error::Result;
use crate::options::{CDC_EVENTS_DUPLICATE, SessionConfig};

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
    let node = tree(plan)?;
    let node = match consumer {
        QueryConsumer::User => inference.with_update_before(&node)?,
        QueryConsumer::Explain => match inference.satisfy(&node, UpdateKind::OnlyAfter)? {
            Some(node) => node,
            None => inference.with_update_before(&node)?,
        },
    };
    let (schema, mode) = (node.schema.clone(), node.mode);
    let mut root = PlanNode::new(OperatorSpec::Collect, vec![node], schema);
    root.mode = mode;
    Assembly::graph(vec![root])
}

/// Plans the INSERTs of one job.
///
/// # Errors
/// A plan holds what is not built yet, or a sink does not take what its query makes.
pub(super) fn insert_graph(inserts: &[&BoundInsert], config: &SessionConfig) -> Result<JobGraph> {
    let inference = inference(config)?;
    let mut roots = Vec::with_capacity(inserts.len());
    for insert in inserts {
        let spec = SinkSpec {
            name: insert.table.identifier.to_string(),
            sink: insert.sink.clone(),
            keys: insert.key_positions(),
            overwrite: insert.overwrite,
        };
        let node = tree(&insert.plan)?;
        roots.push(inference.sink(&node, spec, config).map_err(|error| error.at(insert.place))?);
    }
    Assembly::graph(roots)
}

/// Optimises and lowers a plan.
fn tree(plan: &LogicalPlan) -> Result<PlanNode> {
    Lowering::new().node(&optimise_streaming(plan.clone())?)
}

/// Reads what the configuration says of changes.
fn inference(config: &SessionConfig) -> Result<UpdateKindInference> {
    Ok(UpdateKindInference { events_duplicate: config.get(&CDC_EVENTS_DUPLICATE)? })
}
