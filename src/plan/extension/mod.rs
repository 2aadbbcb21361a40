//! Operators that DataFusion's logical plan has no node for. The streaming planner lowers them to operators of ours; a batch
//! query replaces them by nodes that DataFusion has, or runs them itself.

mod set_operation;
mod unnest;
mod unnest_exec;

pub(crate) use set_operation::{SetOperation, lower_set_operations};
pub(crate) use unnest::Unnest;
pub(crate) use unnest_exec::UnnestPlanner;
