//! GROUP BY, DISTINCT and grouping sets.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::DataType as ArrowType;
use datafusion::common::{DFSchema, TableReference};
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, GroupingSet, LogicalPlan, expr};

use super::calc::project;
use super::lower::{Lowering, not_supported};
use super::node::PlanNode;
use crate::error::{Error, Result};
use crate::function::describe_aggregate;
use crate::plan::graph::{AggregateCall, ExpandId, GroupAggregateSpec, OperatorSpec};

impl Lowering {
    /// Lowers GROUP BY.
    pub(super) fn aggregate(&mut self, aggregate: &Aggregate) -> Result<PlanNode> {
        let input = self.node(&aggregate.input)?;
        let calls: Vec<&expr::AggregateFunction> =
            aggregate.aggr_expr.iter().map(call_of).collect::<Result<_>>()?;
        let (input, keys) = match aggregate.group_expr.as_slice() {
            [Expr::GroupingSet(sets)] => {
                let (input, key_count) = self.expand(input, sets, aggregate, &calls)?;
                (input, (0..key_count).collect())
            }
            groups => self.columns.columns(input, groups)?,
        };
        self.group(input, keys, &calls, aggregate)
    }

    /// Lowers DISTINCT: groups without aggregates.
    pub(super) fn distinct(&mut self, input: &LogicalPlan) -> Result<PlanNode> {
        let input = self.node(input)?;
        let schema = Arc::clone(&input.schema);
        let keys = (0..input.column_count()).collect();
        Ok(PlanNode::new(self.grouped(keys, Vec::new(), &input), vec![input], schema))
    }

    /// Groups a node.
    fn group(
        &mut self,
        mut input: PlanNode,
        keys: Vec<usize>,
        calls: &[&expr::AggregateFunction],
        aggregate: &Aggregate,
    ) -> Result<PlanNode> {
        let mut described = Vec::with_capacity(calls.len());
        for call in calls {
            let description = describe_aggregate(call, aggregate.input.schema())?;
            let mut arguments = Vec::new();
            if description.argument_type.is_some() {
                (input, arguments) = self.columns.columns(input, &call.params.args)?;
            }
            let mut filter = None;
            if let Some(condition) = &call.params.filter {
                let condition = known_truth(condition, &input.schema)?;
                let (with_filter, position) = self.columns.columns(input, &[condition])?;
                input = with_filter;
                filter = position.first().copied();
            }
            described.push(AggregateCall {
                function: description.function,
                arguments,
                argument_type: description.argument_type,
                filter,
                is_distinct: call.params.distinct,
                result_type: description.result_type,
            });
        }
        let spec = self.grouped(keys, described, &input);
        Ok(PlanNode::new(spec, vec![input], Arc::clone(&aggregate.schema)))
    }

    /// Makes the specification of an aggregation; whether it shows `-U` is decided later.
    fn grouped(&self, keys: Vec<usize>, calls: Vec<AggregateCall>, input: &PlanNode) -> OperatorSpec {
        OperatorSpec::GroupAggregate(GroupAggregateSpec {
            keys,
            calls,
            input_retracts: !input.is_insert_only(),
            emits_update_before: true,
            phase_strategy: self.phase_strategy,
        })
    }

    /// Makes one row per grouping set. Groups are columns of their own here: an aggregate of the same column sees its values in
    /// every set. Returns how many keys stand in front, the set's number being the last of them.
    fn expand(
        &mut self,
        input: PlanNode,
        sets: &GroupingSet,
        aggregate: &Aggregate,
        calls: &[&expr::AggregateFunction],
    ) -> Result<(PlanNode, usize)> {
        let GroupingSet::GroupingSets(sets) = sets else {
            return Err(Error::internal("ROLLUP and CUBE were not written as grouping sets"));
        };
        let mut groups: Vec<&Expr> = Vec::new();
        for group in sets.iter().flatten() {
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        let count = groups.len();
        let kept: Vec<Vec<usize>> =
            sets.iter().map(|set| (0..count).filter(|at| set.contains(groups[*at])).collect()).collect();
        let id_type = aggregate.schema.field(count).data_type().clone();
        let ids = set_ids(&kept, count, &id_type)?;
        let grouped: Vec<Expr> =
            groups.iter().map(|group| (*group).clone().unalias().alias(self.columns.name())).collect();
        // The number of the set stands behind the groups so that both are the keys; what aggregates read comes last, under the
        // names that it has below.
        let mut projection = grouped;
        projection.extend(read_by(calls).map(|column| Expr::Column(column.clone())));
        let input = project(input, projection)?;
        let fields = input.schema.iter().enumerate().map(|(at, (qualifier, field))| {
            let field = if at < count {
                field.as_ref().clone().with_nullable(true).into()
            } else {
                Arc::clone(field)
            };
            (qualifier.cloned(), field)
        });
        let id = arrow::datatypes::Field::new(self.columns.name(), id_type, false);
        let fields: Vec<_> = fields.chain([(None::<TableReference>, id.into())]).collect();
        let id_position = fields.len() - 1;
        let schema = DFSchema::new_with_metadata(fields, HashMap::new())?;
        let spec = OperatorSpec::Expand { sets: kept, groups: (0..count).collect(), ids };
        let node = PlanNode::new(spec, vec![input], schema.into());
        // Bring the number next to the groups.
        let columns = node.schema.columns();
        let order = (0..count).chain([id_position]).chain(count..id_position);
        let projection = order.map(|at| Expr::Column(columns[at].clone())).collect();
        Ok((project(node, projection)?, count + 1))
    }
}

/// Returns the call in an aggregate expression.
fn call_of(expr: &Expr) -> Result<&expr::AggregateFunction> {
    match expr {
        Expr::Alias(alias) => call_of(&alias.expr),
        Expr::AggregateFunction(call) if call.params.order_by.is_empty() => Ok(call),
        _ => Err(not_supported("this aggregate")),
    }
}

/// Returns the columns that calls read, each once.
fn read_by<'a>(
    calls: &'a [&expr::AggregateFunction],
) -> impl Iterator<Item = &'a datafusion::common::Column> {
    let mut columns = Vec::new();
    for call in calls {
        for expr in call.params.args.iter().chain(call.params.filter.as_deref()) {
            for column in expr.column_refs() {
                if !columns.contains(&column) {
                    columns.push(column);
                }
            }
        }
    }
    columns.into_iter()
}

/// Makes a condition that is never unknown.
fn known_truth(condition: &Expr, schema: &DFSchema) -> Result<Expr> {
    let is_known = !condition.nullable(schema)?;
    Ok(if is_known { condition.clone() } else { Expr::IsTrue(Box::new(condition.clone())) })
}

/// Returns the numbers of grouping sets as DataFusion has them: a bit per group, set where the group is left out, the last group
/// in the lowest bit. A set that is there twice counts on above these bits.
fn set_ids(sets: &[Vec<usize>], count: usize, id_type: &ArrowType) -> Result<Vec<ExpandId>> {
    let capacity = id_type.primitive_width().map_or(0, |bytes| bytes * 8);
    let mut ids: Vec<ExpandId> = Vec::with_capacity(sets.len());
    for set in sets {
        let left_out = (0..count).filter(|group| !set.contains(group));
        let bits = left_out.fold(0, |bits, group| bits | 1 << (count - 1 - group));
        let mask: ExpandId = (1 << count) - 1;
        let earlier = ids.iter().filter(|id| **id & mask == bits).count() as ExpandId;
        if earlier >= 1 << capacity.saturating_sub(count).min(63) {
            return Err(not_supported("the same grouping set so many times"));
        }
        ids.push(bits | earlier << count);
    }
    Ok(ids)
}
