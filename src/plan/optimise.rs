//! Which of DataFusion's optimiser rules run. The list is explicit: a rule that coerces types, or that assumes more of a
//! stream than holds, must never slip in with a new version.

use std::sync::Arc;

use datafusion::common::FunctionalDependencies;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, Projection};
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
use datafusion::optimizer::{ApplyOrder, Optimizer, OptimizerConfig, OptimizerContext, OptimizerRule};

use super::extension::lower_set_operations;
use super::membership::{count_members, refuse_subqueries};
use crate::error::Result;

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// Optimises a query that is answered once. `FilterNullJoinKeys` must not be among the rules: it takes away the very NULLs that
/// make NOT IN unknown. `SimplifyExpressions` comes behind the rules for subqueries: it doubles what stands in a CASE of booleans,
/// and two copies of one subquery cannot be joined.
pub(crate) fn optimise_batch(plan: LogicalPlan) -> Result<LogicalPlan> {
    let rules: Vec<Rule> = vec![
        Arc::new(ForgetMisplacedKeys),
        Arc::new(OptimizeUnions::new()),
        Arc::new(ReplaceDistinctWithAggregate::new()),
        Arc::new(EliminateJoin::new()),
        Arc::new(DecorrelatePredicateSubquery::new()),
        Arc::new(ScalarSubqueryToJoin::new()),
        Arc::new(SimplifyExpressions::new()),
        Arc::new(ExtractEquijoinPredicate::new()),
        Arc::new(EliminateDuplicatedExpr::new()),
        Arc::new(EliminateFilter::new()),
        Arc::new(EliminateCrossJoin::new()),
        Arc::new(EliminateLimit::new()),
        Arc::new(PropagateEmptyRelation::new()),
        Arc::new(EliminateOuterJoin::new()),
        Arc::new(PushDownLimit::new()),
        Arc::new(PushDownStableFilter(PushDownFilter::new())),
        Arc::new(DropConstantGroups(EliminateGroupByConstant::new())),
        Arc::new(CommonSubexprEliminate::new()),
        Arc::new(ForgetMisplacedKeys),
        Arc::new(OptimizeProjections::new()),
    ];
    let plan = lower_set_operations(plan)?;
    let plan = optimise(count_members(plan, false)?, rules)?;
    refuse_subqueries(&plan)?;
    Ok(plan)
}

/// Optimises a query that runs as a stream of changes: the rules of batch but for those that stop reading early (LIMIT is not
/// pushed down: below it every row counts), and without mark joins.
///
/// What the planner of streams gets, and may rely on:
/// * Subqueries are gone: semi and anti joins (`null_aware` for NOT IN), or left joins to an aggregation. A query in place of a
///   value is aggregated by SINGLE_VALUE unless it is an aggregation itself, and joined without a condition where it is not
///   correlated. An aggregation without groups has no row before its input has one, so the left join then yields NULL, as
///   Flink's does; the counts that IN and EXISTS become are compared so that NULL is as good as 0.
/// * Keys of joins (`Join::on`) may be expressions, not only columns. Inputs whose rows are only counted have no columns.
/// * A Top-N is `Filter` over `Window`, with nothing between them: conditions on the number and on other columns are in that one
///   filter, those on the partition alone went below the window. Partitions and orders of a window are columns of its input.
///   QUALIFY is the same.
/// * ORDER BY with LIMIT is `Limit` over `Sort`, with nothing between them; `Sort::fetch` is None.
/// * INTERSECT and EXCEPT, and UNNEST, are the nodes of `extension`.
pub(crate) fn optimise_streaming(plan: LogicalPlan) -> Result<LogicalPlan> {
    let rules: Vec<Rule> = vec![
        Arc::new(ForgetMisplacedKeys),
        Arc::new(OptimizeUnions::new()),
        Arc::new(ReplaceDistinctWithAggregate::new()),
        Arc::new(EliminateJoin::new()),
        Arc::new(DecorrelatePredicateSubquery::new()),
        Arc::new(ScalarSubqueryToJoin::new()),
        Arc::new(SimplifyExpressions::new()),
        Arc::new(ExtractEquijoinPredicate::new()),
        Arc::new(EliminateDuplicatedExpr::new()),
        Arc::new(EliminateFilter::new()),
        Arc::new(EliminateCrossJoin::new()),
        Arc::new(PropagateEmptyRelation::new()),
        Arc::new(EliminateOuterJoin::new()),
        Arc::new(PushDownStableFilter(PushDownFilter::new())),
        Arc::new(DropConstantGroups(EliminateGroupByConstant::new())),
        Arc::new(CommonSubexprEliminate::new()),
        Arc::new(ForgetMisplacedKeys),
        Arc::new(OptimizeProjections::new()),
    ];
    let plan = optimise(count_members(plan, true)?, rules)?;
    refuse_subqueries(&plan)?;
    filters_onto_windows(plan)
}

/// Puts filters directly on windows: `OptimizeProjections` leaves projections between them that only leave out columns. Such a
/// projection then stands below another one, which can do without it.
fn filters_onto_windows(plan: LogicalPlan) -> Result<LogicalPlan> {
    let selects_columns =
        |projection: &Projection| projection.expr.iter().all(|expr| matches!(expr, Expr::Column(_)));
    let moved = plan.transform_up(|node| match &node {
        LogicalPlan::Filter(filter) => {
            if let LogicalPlan::Projection(projection) = filter.input.as_ref()
                && let LogicalPlan::Window(_) = projection.input.as_ref()
                && selects_columns(projection)
            {
                let filter = Filter::try_new(filter.predicate.clone(), Arc::clone(&projection.input))?;
                let input = Arc::new(LogicalPlan::Filter(filter));
                let projection = Projection::try_new(projection.expr.clone(), input)?;
                return Ok(Transformed::yes(LogicalPlan::Projection(projection)));
            }
            Ok(Transformed::no(node))
        }
        LogicalPlan::Projection(outer) => {
            if let LogicalPlan::Projection(inner) = outer.input.as_ref()
                && selects_columns(inner)
            {
                let projection = Projection::try_new(outer.expr.clone(), Arc::clone(&inner.input))?;
                return Ok(Transformed::yes(LogicalPlan::Projection(projection)));
            }
            Ok(Transformed::no(node))
        }
        _ => Ok(Transformed::no(node)),
    })?;
    Ok(moved.data)
}

/// Forgets what projections say of keys: where they compute a column, DataFusion takes the columns behind it for those before them, and
/// would leave out groups and duplicates by the wrong ones. Other rules make the same projections anew, so it stands before each rule
/// that looks at keys.
#[derive(Debug)]
struct ForgetMisplacedKeys;

impl OptimizerRule for ForgetMisplacedKeys {
    fn name(&self) -> &str {
        "forget_misplaced_keys"
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> DataFusionResult<Transformed<LogicalPlan>> {
        let is_computed = |expr: &Expr| !matches!(expr.clone().unalias(), Expr::Column(_));
        let forgotten = plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Projection(projection) if projection.expr.iter().any(is_computed) => {
                let schema = projection.schema.as_ref().clone();
                let schema = schema.with_functional_dependencies(FunctionalDependencies::empty())?;
                let projection =
                    Projection::try_new_with_schema(projection.expr, projection.input, schema.into())?;
                Ok(Transformed::yes(LogicalPlan::Projection(projection)))
            }
            // What stands above has taken over what was said below.
            LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Projection(_) => Ok(Transformed::yes(node.recompute_schema()?)),
            node => Ok(Transformed::no(node)),
        })?;
        // Nothing has changed that would be worth another round.
        Ok(Transformed::no(forgotten.data))
    }
}

/// Drops constants among groups, but never the last group: GROUP BY a constant has no row over no input, and an aggregation
/// without groups has one.
#[derive(Debug)]
struct DropConstantGroups(EliminateGroupByConstant);

impl OptimizerRule for DropConstantGroups {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> DataFusionResult<Transformed<LogicalPlan>> {
        match &plan {
            LogicalPlan::Aggregate(aggregate)
                if aggregate.group_expr.iter().all(|group| group.column_refs().is_empty()) =>
            {
                Ok(Transformed::no(plan))
            }
            _ => self.0.rewrite(plan, config),
        }
    }
}

/// Pushes conditions down, but not those that differ from row to row for no reason of the row's: RAND() draws once per row that
/// the user sees, not once per row of a group or a partition.
#[derive(Debug)]
struct PushDownStableFilter(PushDownFilter);

impl OptimizerRule for PushDownStableFilter {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> DataFusionResult<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(filter) = &plan else { return self.0.rewrite(plan, config) };
        if !filter.predicate.is_volatile() {
            return self.0.rewrite(plan, config);
        }
        let parts = split_conjunction_owned(filter.predicate.clone());
        let (volatile, stable): (Vec<_>, Vec<_>) = parts.into_iter().partition(Expr::is_volatile);
        let (Some(volatile), Some(stable)) = (conjunction(volatile), conjunction(stable)) else {
            return Ok(Transformed::no(plan));
        };
        let stable = LogicalPlan::Filter(Filter::try_new(stable, Arc::clone(&filter.input))?);
        let pushed = self.0.rewrite(stable, config)?;
        if !pushed.transformed {
            return Ok(Transformed::no(plan));
        }
        let filter = Filter::try_new(volatile, Arc::new(pushed.data))?;
        Ok(Transformed::yes(LogicalPlan::Filter(filter)))
    }
}

/// Runs rules until nothing changes.
fn optimise(plan: LogicalPlan, rules: Vec<Rule>) -> Result<LogicalPlan> {
    let context = OptimizerContext::new().with_skip_failing_rules(false);
    Ok(Optimizer::with_rules(rules).optimize(plan, &context, |_, _| {})?)
}

#[cfg(test)]
mod tests {
    use datafusion::common::tree_node::TreeNodeRecursion;

    use super::super::bind::Binder;
    use super::super::tables::TableSet;
    use super::*;
    use crate::function::EvalContext;
    use crate::sql;

    /// Optimises a query as a stream.
    fn optimised(query: &str) -> Result<LogicalPlan> {
        let statement = format!(
            "WITH t AS (SELECT * FROM (VALUES (1, 'a', 2), (2, 'b', 3)) AS v (id, k, n)), \
             u AS (SELECT * FROM (VALUES (1, 'a', 2), (2, 'b', 3)) AS v (id, k, n)) {query}"
        );
        let Ok(sql::Statement::Query(query)) = sql::parse_statement(&statement) else { panic!("{query}") };
        let tables = TableSet::default();
        let context = EvalContext { zone: chrono_tz::Tz::UTC, query_start: None, database: String::new() };
        let mut binder = Binder::new(&tables, Arc::new(context), true, Arc::clone(&query.positions));
        optimise_streaming(binder.bind_query(&query.body)?.plan)
    }

    /// Returns the operators of a plan, each with its inputs in brackets; aliases are left out.
    fn shape(query: &str) -> String {
        fn write(plan: &LogicalPlan) -> String {
            let name = match plan {
                LogicalPlan::SubqueryAlias(alias) => return write(&alias.input),
                LogicalPlan::Values(_) => return "rows".to_owned(),
                LogicalPlan::Join(join) if join.null_aware => format!("NullAware{}", join.join_type),
                LogicalPlan::Join(join) => join.join_type.to_string(),
                LogicalPlan::Extension(extension) => extension.node.name().to_owned(),
                other => other.display().to_string().split([':', ' ']).next().unwrap_or_default().to_owned(),
            };
            let inputs: Vec<String> = plan.inputs().into_iter().map(write).collect();
            // Projections say nothing of the shape, unless one stands where the planner looks for something else.
            if name == "Projection" { inputs.join(", ") } else { format!("{name}({})", inputs.join(", ")) }
        }
        write(&optimised(query).unwrap())
    }

    /// Returns the first filter, limit or other operator of a kind, with the one below it.
    fn pair(query: &str, name: &str) -> (String, String) {
        let plan = optimised(query).unwrap();
        let mut found = None;
        plan.apply(|node| {
            if node.display().to_string().starts_with(name) {
                let below = node.inputs()[0].display().to_string();
                found = Some((node.display().to_string(), below));
                return Ok(TreeNodeRecursion::Stop);
            }
            Ok(TreeNodeRecursion::Continue)
        })
        .unwrap();
        found.unwrap_or_else(|| panic!("no {name} in\n{}", plan.display_indent()))
    }

    #[test]
    fn a_top_n_is_a_filter_over_a_window() {
        let ranked = "(SELECT *, ROW_NUMBER() OVER (PARTITION BY UPPER(k) ORDER BY n DESC) AS rn FROM t)";
        for query in [
            format!("SELECT id, rn FROM {ranked} WHERE rn <= 3 AND id > 0"),
            format!("SELECT r.id FROM {ranked} AS r JOIN u ON r.id = u.id WHERE rn <= 3 AND r.id > 0"),
            "SELECT id FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY n) <= 3 AND id > 0"
                .to_owned(),
        ] {
            let (filter, window) = pair(&query, "Filter");
            assert!(filter.contains("ROW_NUMBER#") && filter.contains("id#"), "{filter}");
            assert!(window.starts_with("WindowAggr"), "{window}");
        }
    }

    #[test]
    fn only_conditions_on_the_partition_go_below_a_window() {
        let query = "SELECT id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY n) AS rn FROM t) \
                     WHERE rn <= 3 AND k = 'a' AND n > 2";
        assert_eq!(shape(query), "Filter(WindowAggr(Filter(rows)))");
        let (top, _) = pair(query, "Filter");
        assert!(top.contains("ROW_NUMBER") && !top.contains("k#"), "{top}");
    }

    #[test]
    fn an_order_is_right_below_its_limit() {
        let query = "SELECT id FROM t ORDER BY n + 1 DESC LIMIT 3 OFFSET 1";
        let (limit, sort) = pair(query, "Limit");
        assert_eq!(limit, "Limit: skip=1, fetch=3");
        assert!(sort.starts_with("Sort: sort#") && !sort.contains("fetch"), "{sort}");
        assert_eq!(shape("SELECT id FROM (SELECT id FROM t ORDER BY n) AS s LIMIT 1"), "Limit(rows)");
        assert!(optimised("SELECT id FROM t ORDER BY n").is_err());
    }

    #[test]
    fn subqueries_become_joins_without_marks() {
        assert_eq!(shape("SELECT id FROM t WHERE n IN (SELECT n FROM u)"), "LeftSemi(rows, rows)");
        assert_eq!(
            shape("SELECT id FROM t WHERE n NOT IN (SELECT n FROM u)"),
            "NullAwareLeftAnti(rows, rows)"
        );
        assert_eq!(
            shape("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND u.n > t.n)"),
            "LeftSemi(rows, rows)"
        );
        assert_eq!(
            shape("SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.id = t.id)"),
            "LeftAnti(rows, rows)"
        );
        assert_eq!(
            shape("SELECT id FROM t WHERE id = 1 OR EXISTS (SELECT 1 FROM u WHERE u.id = t.id)"),
            "Filter(Left(rows, Aggregate(rows)))"
        );
        assert_eq!(shape("SELECT id, EXISTS (SELECT 1 FROM u) AS e FROM t"), "Left(rows, Aggregate(rows))");
    }

    #[test]
    fn a_query_in_place_of_a_value_is_one_value() {
        let (aggregate, _) = pair("SELECT id, (SELECT n FROM u) AS m FROM t", "Aggregate");
        assert!(aggregate.contains("SINGLE_VALUE("), "{aggregate}");
        let correlated = "SELECT id, (SELECT COUNT(*) FROM u WHERE u.k = t.k) AS c FROM t";
        assert_eq!(shape(correlated), "Left(rows, Aggregate(rows))");
        // A group that is a constant would be a column of the state for nothing.
        let (aggregate, _) = pair(correlated, "Aggregate");
        assert!(!aggregate.contains("always_true"), "{aggregate}");
    }

    #[test]
    fn only_columns_that_are_needed_go_into_unnest() {
        let query = "SELECT x, id FROM (SELECT *, ARRAY[id, n] AS a FROM t) AS s CROSS JOIN UNNEST(a) AS e (x) \
                     WHERE id > 1 AND x > 1";
        assert_eq!(shape(query), "Filter(Unnest(Filter(rows)))");
        let (unnest, input) = pair(query, "Unnest");
        assert!(unnest.starts_with("Unnest: column=[a#"), "{unnest}");
        assert_eq!(input.matches(" AS ").count(), 2, "{input}");
    }

    #[test]
    fn random_conditions_stay_above_groups_and_windows() {
        let query = "SELECT k FROM t GROUP BY k HAVING COUNT(*) > 1 AND RAND() < 0.5 AND k = 'a'";
        assert_eq!(shape(query), "Filter(Filter(Aggregate(Filter(rows))))");
        assert!(pair(query, "Filter").0.contains("RAND"));
        let query = "SELECT id FROM t QUALIFY ROW_NUMBER() OVER (ORDER BY n) <= 3 AND RAND() < 0.5";
        assert!(pair(query, "Filter").0.contains("RAND"));
    }

    #[test]
    fn set_operations_keep_their_node_and_all_columns() {
        let query = "SELECT id FROM (SELECT id, k FROM t INTERSECT ALL SELECT n, k FROM u) AS s WHERE id > 1";
        assert_eq!(shape(query), "Intersect(Filter(rows), Filter(rows))");
        let plan = optimised(query).unwrap();
        plan.apply(|node| {
            if let LogicalPlan::Extension(_) = node {
                assert!(node.inputs().iter().all(|input| input.schema().fields().len() == 2));
            }
            Ok(TreeNodeRecursion::Continue)
        })
        .unwrap();
        assert_eq!(shape("SELECT id FROM t EXCEPT SELECT n FROM u"), "Minus(rows, rows)");
    }
}
