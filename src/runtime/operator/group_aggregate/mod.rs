//! GROUP BY over rows that change.
//!
//! A batch is probed once: every row gets the slot of its group, and each aggregate then walks typed columns by slot. What a group
//! showed before an epoch is copied at its first touch, and at the end of the epoch compared with what it shows now, column by
//! column; only the difference leaves.

mod accumulator;
mod arrivals;
mod call;
mod chains;
mod count;
mod entries;
mod epoch_changes;
mod extreme;
mod extreme_tracker;
mod group_aggregate_operator;
mod kept_value;
mod local_group_aggregate;
mod masks;
mod moment;
mod rows;
mod seen_values;
mod state_layout;
mod tables;
#[cfg(test)]
mod tests;
mod value_counts;
mod value_store;
mod value_table;

pub(crate) use group_aggregate_operator::GroupAggregateOperator;
pub(crate) use local_group_aggregate::LocalGroupAggregate;
