//! EXPLAIN: the plan as bound and as optimised, with Flink's headers and node names. Attributes are our own.

use std::fmt::Write;

use datafusion::logical_expr::{Expr, JoinType, LogicalPlan};

use super::batch::source_table;

/// A section of EXPLAIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
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
    /// What the sink's node says of row kinds, if it was asked for.
    pub(crate) changelog_mode: Option<String>,
}

/// Prints a tree as Flink does: the last child behind `+- `, others behind `:- `.
pub(crate) fn tree(explained: &ExplainedPlan<'_>, section: Section) -> String {
    let mut out = String::new();
    let mode = explained.changelog_mode.as_ref().filter(|_| section == Section::Physical);
    let suffix = mode.map_or(String::new(), |mode| format!(", changelogMode={mode}"));
    match explained.sink {
        Some(sink) => {
            let name = if section == Section::Logical { "LogicalSink" } else { "Sink" };
            let _ = writeln!(
                out,
                "{name}(table=[{sink}]{})",
                if suffix.is_empty() { String::new() } else { ", changelogMode=[NONE]".to_owned() }
            );
            node(&mut out, explained.plan, section, "+- ", "   ", &suffix);
        }
        None => node(&mut out, explained.plan, section, "", "", &suffix),
    }
    out
}

/// Prints a node and its children.
fn node(out: &mut String, plan: &LogicalPlan, section: Section, first: &str, rest: &str, suffix: &str) {
    if let LogicalPlan::SubqueryAlias(alias) = plan {
        return node(out, &alias.input, section, first, rest, suffix);
    }
    let (name, attributes) = describe(plan, section);
    let _ = writeln!(out, "{first}{name}({attributes}{suffix})");
    let inputs = plan.inputs();
    for (position, input) in inputs.iter().enumerate() {
        let is_last = position + 1 == inputs.len();
        let (mark, line) = if is_last { ("+- ", "   ") } else { (":- ", ":  ") };
        node(out, input, section, &format!("{rest}{mark}"), &format!("{rest}{line}"), suffix);
    }
}

/// Returns a node's name and attributes.
fn describe(plan: &LogicalPlan, section: Section) -> (&'static str, String) {
    let pick = |logical: &'static str, physical: &'static str| {
        if section == Section::Logical { logical } else { physical }
    };
    match plan {
        LogicalPlan::Projection(projection) => {
            (pick("LogicalProject", "Calc"), format!("select=[{}]", expressions(&projection.expr)))
        }
        LogicalPlan::Filter(filter) => {
            (pick("LogicalFilter", "Calc"), format!("where=[{}]", visible(&filter.predicate.to_string())))
        }
        LogicalPlan::TableScan(scan) => {
            let table = source_table(scan);
            let name =
                table.as_ref().map_or(scan.table_name.to_string(), |table| table.name.replace('.', ", "));
            let fields = visible(&scan.projected_schema.field_names().join(", "));
            let fields: Vec<&str> =
                fields.split(", ").map(|field| field.rsplit('.').next().unwrap_or(field)).collect();
            (
                pick("LogicalTableScan", "TableSourceScan"),
                format!("table=[[{name}]], fields=[{}]", fields.join(", ")),
            )
        }
        LogicalPlan::Aggregate(aggregate) => {
            let groups = expressions(&aggregate.group_expr);
            let group = if groups.is_empty() { String::new() } else { format!("groupBy=[{groups}], ") };
            let name = pick("LogicalAggregate", "HashAggregate");
            (name, format!("{group}select=[{}]", expressions(&aggregate.aggr_expr)))
        }
        LogicalPlan::Join(join) => {
            let on = join.on.iter().map(|(left, right)| format!("{left} = {right}"));
            let filter = join.filter.iter().map(ToString::to_string);
            let condition = visible(&on.chain(filter).collect::<Vec<_>>().join(" AND "));
            let kind = match join.join_type {
                JoinType::Inner => "InnerJoin",
                JoinType::Left => "LeftOuterJoin",
                JoinType::Right => "RightOuterJoin",
                JoinType::Full => "FullOuterJoin",
                JoinType::LeftSemi | JoinType::RightSemi => "LeftSemiJoin",
                JoinType::LeftAnti | JoinType::RightAnti => "LeftAntiJoin",
                JoinType::LeftMark | JoinType::RightMark => "MarkJoin",
            };
            (pick("LogicalJoin", "HashJoin"), format!("joinType=[{kind}], where=[{condition}]"))
        }
        LogicalPlan::Sort(sort) => {
            let keys: Vec<String> = sort.expr.iter().map(|key| visible(&key.to_string())).collect();
            (pick("LogicalSort", "Sort"), format!("orderBy=[{}]", keys.join(", ")))
        }
        LogicalPlan::Limit(limit) => {
            let number = |expr: &Option<Box<Expr>>, none: &str| {
                expr.as_ref().map_or(none.to_owned(), ToString::to_string)
            };
            (
                pick("LogicalSort", "Limit"),
                format!(
                    "offset=[{}], fetch=[{}]",
                    number(&limit.skip, "0"),
                    number(&limit.fetch, "unlimited")
                ),
            )
        }
        LogicalPlan::Union(_) => (pick("LogicalUnion", "Union"), "all=[true]".to_owned()),
        LogicalPlan::Distinct(_) => (pick("LogicalAggregate", "HashAggregate"), "distinct=[true]".to_owned()),
        LogicalPlan::Values(values) => {
            (pick("LogicalValues", "Values"), format!("tuples=[{} rows]", values.values.len()))
        }
        LogicalPlan::EmptyRelation(empty) => {
            (pick("LogicalValues", "Values"), format!("tuples=[{} rows]", usize::from(empty.produce_one_row)))
        }
        other => ("Node", visible(&other.display().to_string())),
    }
}

/// Prints a list of expressions.
fn expressions(expressions: &[Expr]) -> String {
    let texts: Vec<String> = expressions.iter().map(|expr| visible(&expr.to_string())).collect();
    texts.join(", ")
}

/// Takes the numbers off unique column names: `amount#12` is `amount` to the user. Scans' qualifiers go with them.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(hash) = rest.find('#') {
        let behind = &rest[hash + 1..];
        let digits = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
        out.push_str(&rest[..hash]);
        if digits == 0 {
            out.push('#');
        } else if behind[digits..].starts_with('.') {
            // A qualifier `orders#3.` names a scan; the column's own name is enough.
            let word =
                out.rfind(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).map_or(0, |at| at + 1);
            out.truncate(word);
            rest = &behind[digits + 1..];
            continue;
        }
        rest = &behind[digits..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn unique_numbers_and_scan_qualifiers_are_not_shown() {
        assert_eq!(visible("orders#3.id AS id#7 + #x"), "id AS id + #x");
    }
}
