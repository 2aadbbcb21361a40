//! The sections of EXPLAIN with Flink's headers, and those that its details add.

use super::graph::{GraphDetails, graph_text};
use super::json::json_text;
use super::state::state_text;
use super::{ExplainedPlan, ScanSummaries, Section, tree};
use crate::changelog::ChangelogMode;
use crate::error::{Error, FlinkClass, Result};
use crate::plan::graph::JobGraph;
use crate::plan::optimise::optimise_batch;
use crate::sql::ExplainDetail;

/// Explains a streaming job: the plans as bound, and its graph.
///
/// # Errors
/// Never; both forms of EXPLAIN are called alike.
pub(in crate::plan) fn streaming_sections(
    plans: &[ExplainedPlan<'_>],
    graph: &JobGraph,
    details: &[ExplainDetail],
) -> Result<String> {
    let physical = GraphDetails {
        changelog_mode: details.contains(&ExplainDetail::ChangelogMode),
        cost: details.contains(&ExplainDetail::EstimatedCost),
        reuse: false,
    };
    let execution = GraphDetails { reuse: true, ..GraphDetails::default() };
    let mut text = sections(plans, &graph_text(graph, physical), &graph_text(graph, execution), details);
    if details.contains(&ExplainDetail::PlanAdvice) {
        text.push_str(&format!("\n== State ==\n{}", state_text(graph)));
    }
    if details.contains(&ExplainDetail::JsonExecutionPlan) {
        text.push_str(&format!("\n== Physical Execution Plan ==\n{}", json_text(graph)));
    }
    Ok(text)
}

/// Explains queries that are answered once: the plans as bound and as optimised.
///
/// # Errors
/// A plan cannot be optimised, a detail is asked for that only streaming jobs have, or what is said of a scan cannot be looked up.
pub(in crate::plan) async fn batch_sections(
    plans: &[ExplainedPlan<'_>],
    details: &[ExplainDetail],
) -> Result<String> {
    let is_unsupported = |detail: &ExplainDetail| {
        matches!(detail, ExplainDetail::EstimatedCost | ExplainDetail::JsonExecutionPlan)
    };
    if details.iter().any(is_unsupported) {
        return Err(Error::unsupported(
            "EXPLAIN ESTIMATED_COST and JSON_EXECUTION_PLAN in batch mode are not supported yet",
        )
        .class(FlinkClass::TABLE)
        .hint("EXPLAIN, EXPLAIN CHANGELOG_MODE and EXPLAIN PLAN_ADVICE are."));
    }
    let mut optimised = String::new();
    for explained in plans {
        let plan = optimise_batch(explained.plan.clone())?;
        if !optimised.is_empty() {
            optimised.push('\n');
        }
        let scans = ScanSummaries::of(&plan).await?;
        let explained = ExplainedPlan { plan: &plan, sink: explained.sink };
        optimised.push_str(&tree(&explained, Section::Physical, &scans));
    }
    let physical = if details.contains(&ExplainDetail::ChangelogMode) {
        with_inserts_only(&optimised)
    } else {
        optimised.clone()
    };
    Ok(sections(plans, &physical, &optimised, details))
}

/// Puts the three sections together that are always there.
fn sections(
    plans: &[ExplainedPlan<'_>],
    physical: &str,
    execution: &str,
    details: &[ExplainDetail],
) -> String {
    let logical: Vec<String> =
        plans.iter().map(|plan| tree(plan, Section::Logical, &ScanSummaries::default())).collect();
    let logical = logical.join("\n");
    let (advice, with_advice) = if details.contains(&ExplainDetail::PlanAdvice) {
        ("\nNo available advice...\n", " With Advice")
    } else {
        ("", "")
    };
    format!(
        "== Abstract Syntax Tree ==\n{logical}\n== Optimized Physical Plan{with_advice} ==\n{physical}{advice}\n== Optimized Execution Plan ==\n{execution}"
    )
}

/// Says of every operator of a batch plan that it only inserts; a sink makes nothing.
fn with_inserts_only(tree: &str) -> String {
    let lines = tree.lines().map(|line| match line.strip_suffix(')') {
        Some(open) if line.starts_with("Sink(") => format!("{open}, changelogMode=[NONE])\n"),
        Some(open) => format!("{open}, changelogMode={})\n", ChangelogMode::INSERT_ONLY),
        None => format!("{line}\n"),
    });
    lines.collect()
}
