//! Which files a query need not read: its conditions as tests of columns, against partitions and the bounds of columns.

mod bounds;
mod condition;
mod projection;
mod pruning;
mod selectivity;
pub(super) mod statistics;

pub(super) use bounds::BoundValue;
pub(super) use condition::Condition;
pub(super) use pruning::Pruning;
pub(super) use selectivity::leave_most;
