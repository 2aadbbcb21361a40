//! EXPLAIN: the plan as bound and as optimised, with Flink's headers and node names. Attributes are our own.

mod cost;
mod expression;
mod graph;
mod json;
mod operator;
mod sections;
mod state;

pub(crate) use operator::state_meaning;

pub(in crate::plan) use expression::visible_name;
pub(in crate::plan) use operator::plan_node_text;
pub(in crate::plan) use sections::{batch_sections, streaming_sections};

use std::collections::HashMap;
use std::fmt::Write;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::{Expr, Join, JoinType, LogicalPlan, Sort, TableScan};

use super::batch::source_table;
use crate::error::Result;

/// A section of EXPLAIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    /// The plan as the query was written.
    Logical,
    /// The plan as it will run.
    Physical,
}

/// A plan below a sink, or alone.
pub(crate) struct ExplainedPlan<'a> {
    /// The plan.
    pub(crate) plan: &'a LogicalPlan,
    /// The table that takes its rows.
    pub(crate) sink: Option<&'a str>,
}

/// What sources say of their scans, by the text of the scan.
#[derive(Default)]
struct ScanSummaries(HashMap<String, String>);

impl ScanSummaries {
    /// Asks the sources below a plan.
    ///
    /// # Errors
    /// What a source must look up for it cannot be read.
    async fn of(plan: &LogicalPlan) -> Result<ScanSummaries> {
        let mut scans: Vec<TableScan> = Vec::new();
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node {
                scans.push(scan.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        let mut summaries = HashMap::new();
        for scan in scans {
            let Some(table) = source_table(&scan) else { continue };
            if let Some(summary) = table.source.scan_summary(&scan.filters).await? {
                summaries.insert(scan_text(scan), summary);
            }
        }
        Ok(ScanSummaries(summaries))
    }

    fn get(&self, scan: &TableScan) -> Option<&str> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&scan_text(scan.clone())).map(String::as_str)
    }
}

fn scan_text(scan: TableScan) -> String {
    LogicalPlan::TableScan(scan).display().to_string()
}

/// Prints a tree as Flink does: the last child behind `+- `, others behind `:- `.
fn tree(explained: &ExplainedPlan<'_>, section: Section, scans: &ScanSummaries) -> String {
    let mut out = String::new();
    match explained.sink {
        Some(sink) => {
            let name = if section == Section::Logical { "LogicalSink" } else { "Sink" };
            let _ = writeln!(out, "{name}(table=[{sink}])");
            node(&mut out, explained.plan, section, scans, ("+- ", "   "));
        }
        None => node(&mut out, explained.plan, section, scans, ("", "")),
    }
    out
}

/// Prints a node and its children. A filter below a projection is part of the same calc, as it will run.
fn node(
    out: &mut String,
    plan: &LogicalPlan,
    section: Section,
    scans: &ScanSummaries,
    (first, rest): (&str, &str),
) {
    let (name, attributes, inputs) = match plan {
        LogicalPlan::SubqueryAlias(alias) => {
            return node(out, &alias.input, section, scans, (first, rest));
        }
        LogicalPlan::Projection(projection) if section == Section::Physical => {
            match projection.input.as_ref() {
                LogicalPlan::Filter(filter) => {
                    let (select, condition) =
                        (expression::list(&projection.expr), expression::text(&filter.predicate));
                    ("Calc", format!("select=[{select}], where=[{condition}]"), vec![filter.input.as_ref()])
                }
                input => ("Calc", format!("select=[{}]", expression::list(&projection.expr)), vec![input]),
            }
        }
        plan => {
            let (name, attributes) = describe(plan, section, scans);
            (name, attributes, plan.inputs())
        }
    };
    let _ = writeln!(out, "{first}{name}({attributes})");
    for (position, input) in inputs.iter().enumerate() {
        let is_last = position + 1 == inputs.len();
        let (mark, line) = if is_last { ("+- ", "   ") } else { (":- ", ":  ") };
        node(out, input, section, scans, (&format!("{rest}{mark}"), &format!("{rest}{line}")));
    }
}

/// Returns a node's name and attributes.
fn describe(plan: &LogicalPlan, section: Section, scans: &ScanSummaries) -> (&'static str, String) {
    let pick = |logical: &'static str, physical: &'static str| {
        if section == Section::Logical { logical } else { physical }
    };
    match plan {
        LogicalPlan::Projection(projection) => {
            ("LogicalProject", format!("select=[{}]", expression::list(&projection.expr)))
        }
        LogicalPlan::Filter(filter) => {
            (pick("LogicalFilter", "Calc"), format!("where=[{}]", expression::text(&filter.predicate)))
        }
        LogicalPlan::TableScan(scan) => {
            let table = source_table(scan);
            let name =
                table.as_ref().map_or(scan.table_name.to_string(), |table| table.name.replace('.', ", "));
            let fields: Vec<&str> =
                scan.projected_schema.fields().iter().map(|field| visible_name(field.name())).collect();
            let fields = fields.join(", ");
            let summary = scans.get(scan).map_or(String::new(), |summary| format!(", {summary}"));
            (
                pick("LogicalTableScan", "TableSourceScan"),
                format!("table=[[{name}]], fields=[{fields}]{summary}"),
            )
        }
        LogicalPlan::Aggregate(aggregate) => {
            let groups = expression::list(&aggregate.group_expr);
            let group = if groups.is_empty() { String::new() } else { format!("groupBy=[{groups}], ") };
            let select = expression::list(&aggregate.aggr_expr);
            (pick("LogicalAggregate", "HashAggregate"), format!("{group}select=[{select}]"))
        }
        LogicalPlan::Join(join) => (pick("LogicalJoin", "HashJoin"), join_attributes(join)),
        LogicalPlan::Sort(sort) => {
            let fetch = sort.fetch.map_or(String::new(), |fetch| format!(", fetch=[{fetch}]"));
            let name = if sort.fetch.is_some() { "SortLimit" } else { "Sort" };
            (pick("LogicalSort", name), format!("orderBy=[{}]{fetch}", sort_keys(sort)))
        }
        LogicalPlan::Limit(limit) => {
            let number = |expr: &Option<Box<Expr>>, none: &str| {
                expr.as_ref().map_or(none.to_owned(), |expr| expression::text(expr))
            };
            let (offset, fetch) = (number(&limit.skip, "0"), number(&limit.fetch, "unlimited"));
            (pick("LogicalSort", "Limit"), format!("offset=[{offset}], fetch=[{fetch}]"))
        }
        LogicalPlan::Union(_) => (pick("LogicalUnion", "Union"), "all=[true]".to_owned()),
        LogicalPlan::Distinct(_) => (pick("LogicalAggregate", "HashAggregate"), "distinct=[true]".to_owned()),
        LogicalPlan::Values(values) => {
            (pick("LogicalValues", "Values"), format!("tuples=[{} rows]", values.values.len()))
        }
        LogicalPlan::EmptyRelation(empty) => {
            let rows = usize::from(empty.produce_one_row);
            (pick("LogicalValues", "Values"), format!("tuples=[{rows} rows]"))
        }
        other => ("Node", other.display().to_string()),
    }
}

/// Returns the attributes of a join.
fn join_attributes(join: &Join) -> String {
    let keys = join
        .on
        .iter()
        .map(|(left, right)| format!("{} = {}", expression::text(left), expression::text(right)));
    let condition = keys.chain(join.filter.iter().map(expression::text)).collect::<Vec<_>>().join(" AND ");
    let kind = match join.join_type {
        JoinType::Inner => "InnerJoin",
        JoinType::Left => "LeftOuterJoin",
        JoinType::Right => "RightOuterJoin",
        JoinType::Full => "FullOuterJoin",
        JoinType::LeftSemi | JoinType::RightSemi => "LeftSemiJoin",
        JoinType::LeftAnti | JoinType::RightAnti => "LeftAntiJoin",
        JoinType::LeftMark | JoinType::RightMark => "MarkJoin",
    };
    format!("joinType=[{kind}], where=[{condition}]")
}

/// Returns the keys of a sort.
fn sort_keys(sort: &Sort) -> String {
    let keys = sort.expr.iter().map(|key| {
        let direction = if key.asc { "ASC" } else { "DESC" };
        // Only an order of NULLs that is not Flink's own is worth a word.
        let nulls = match (key.asc, key.nulls_first) {
            (true, false) => " NULLS LAST",
            (false, true) => " NULLS FIRST",
            _ => "",
        };
        format!("{} {direction}{nulls}", expression::text(&key.expr))
    });
    keys.collect::<Vec<_>>().join(", ")
}
