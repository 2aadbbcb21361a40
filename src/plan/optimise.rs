//! Which of DataFusion's optimiser rules run. The list is explicit: a rule that coerces types, or that assumes more of a
//! stream than holds, must never slip in with a new version.

use std::sync::Arc;

use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::common_subexpr_eliminate::CommonSubexprEliminate;
use datafusion::optimizer::decorrelate_predicate_subquery::DecorrelatePredicateSubquery;
use datafusion::optimizer::eliminate_cross_join::EliminateCrossJoin;
use datafusion::optimizer::eliminate_duplicated_expr::EliminateDuplicatedExpr;
use datafusion::optimizer::eliminate_filter::EliminateFilter;
use datafusion::optimizer::eliminate_group_by_constant::EliminateGroupByConstant;
use datafusion::optimizer::eliminate_join::EliminateJoin;
use datafusion::optimizer::eliminate_limit::EliminateLimit;
use datafusion::optimizer::eliminate_outer_join::EliminateOuterJoin;
use datafusion::optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::optimizer::optimize_unions::OptimizeUnions;
use datafusion::optimizer::propagate_empty_relation::PropagateEmptyRelation;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::push_down_limit::PushDownLimit;
use datafusion::optimizer::replace_distinct_aggregate::ReplaceDistinctWithAggregate;
use datafusion::optimizer::scalar_subquery_to_join::ScalarSubqueryToJoin;
use datafusion::optimizer::simplify_expressions::SimplifyExpressions;
use datafusion::optimizer::{Optimizer, OptimizerContext, OptimizerRule};

use super::subquery_values::{refuse_subqueries, subqueries_as_values};
use crate::error::Result;

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// Optimises a query that is answered once. `FilterNullJoinKeys` must not be among the rules: it takes away the very NULLs that
/// make NOT IN unknown.
pub(crate) fn optimise_batch(plan: LogicalPlan) -> Result<LogicalPlan> {
    let rules: Vec<Rule> = vec![
        Arc::new(OptimizeUnions::new()),
        Arc::new(SimplifyExpressions::new()),
        Arc::new(ReplaceDistinctWithAggregate::new()),
        Arc::new(EliminateJoin::new()),
        Arc::new(DecorrelatePredicateSubquery::new()),
        Arc::new(ScalarSubqueryToJoin::new()),
        Arc::new(ExtractEquijoinPredicate::new()),
        Arc::new(EliminateDuplicatedExpr::new()),
        Arc::new(EliminateFilter::new()),
        Arc::new(EliminateCrossJoin::new()),
        Arc::new(EliminateLimit::new()),
        Arc::new(PropagateEmptyRelation::new()),
        Arc::new(EliminateOuterJoin::new()),
        Arc::new(PushDownLimit::new()),
        Arc::new(PushDownFilter::new()),
        Arc::new(EliminateGroupByConstant::new()),
        Arc::new(CommonSubexprEliminate::new()),
        Arc::new(OptimizeProjections::new()),
    ];
    let plan = optimise(subqueries_as_values(plan)?, rules)?;
    refuse_subqueries(&plan)?;
    Ok(plan)
}

/// Optimises a query that runs as a stream of changes. LIMIT is not pushed down: below it every row counts.
pub(crate) fn optimise_streaming(plan: LogicalPlan) -> Result<LogicalPlan> {
    let rules: Vec<Rule> = vec![
        Arc::new(OptimizeUnions::new()),
        Arc::new(SimplifyExpressions::new()),
        Arc::new(EliminateDuplicatedExpr::new()),
        Arc::new(EliminateFilter::new()),
        Arc::new(PropagateEmptyRelation::new()),
        Arc::new(PushDownFilter::new()),
        Arc::new(CommonSubexprEliminate::new()),
        Arc::new(OptimizeProjections::new()),
    ];
    optimise(plan, rules)
}

/// Runs rules until nothing changes.
fn optimise(plan: LogicalPlan, rules: Vec<Rule>) -> Result<LogicalPlan> {
    let context = OptimizerContext::new().with_skip_failing_rules(false);
    Ok(Optimizer::with_rules(rules).optimize(plan, &context, |_, _| {})?)
}
