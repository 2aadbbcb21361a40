//! An operator of a job as Flink's EXPLAIN writes it: its name, and its attributes in brackets. Errors that name an operator write
//! it in the same way.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, DFSchemaRef};
use datafusion::logical_expr::Expr;

use super::expression::{self, visible_name};
use crate::plan::graph::{
    AggregateCall, GroupAggregateSpec, JoinKind, JoinSpec, JoinUniqueness, OperatorSpec, SortKey, TopNSpec,
    TopNStrategy,
};
use crate::plan::provider::SourceTable;

/// Rows of constants that are written out; more are counted.
const ROWS_SHOWN: usize = 5;

/// What EXPLAIN says of an operator.
pub(super) struct OperatorText {
    /// The name.
    pub(super) name: &'static str,
    /// The attributes, without brackets around them.
    pub(super) attributes: Vec<String>,
}

/// Writes an operator with its attributes.
pub(in crate::plan) fn plan_node_text<'s>(
    spec: &OperatorSpec,
    inputs: impl Iterator<Item = &'s DFSchemaRef>,
    schema: &DFSchema,
) -> String {
    let inputs: Vec<&DFSchema> = inputs.map(AsRef::as_ref).collect();
    let text = describe(spec, &inputs, schema);
    format!("{}({})", text.name, text.attributes.join(", "))
}

/// Describes an operator.
pub(super) fn describe(spec: &OperatorSpec, inputs: &[&DFSchema], schema: &DFSchema) -> OperatorText {
    let input = inputs.first().copied().unwrap_or(schema);
    let text = |name: &'static str, attributes: Vec<String>| OperatorText { name, attributes };
    match spec {
        OperatorSpec::Source { table, columns } => text("TableSourceScan", source(table, columns, schema)),
        OperatorSpec::Values { rows } => text("Values", vec![format!("tuples=[{}]", tuples(rows))]),
        OperatorSpec::Calc { condition, projection } => {
            text("Calc", calc(condition.as_ref(), projection.as_deref(), schema))
        }
        OperatorSpec::Union => {
            text("Union", vec!["all=[true]".to_owned(), attribute("union", names(schema))])
        }
        OperatorSpec::Expand { sets, groups, ids } => {
            text("Expand", vec![format!("projects=[{}]", projects(sets, groups, ids, input))])
        }
        OperatorSpec::GroupAggregate(aggregate) => text("GroupAggregate", group(aggregate, input, schema)),
        OperatorSpec::Join(join) => text("Join", joined(join, inputs, schema)),
        OperatorSpec::MultiJoin { keys, is_optional } => {
            text("MultiJoin", joined_on_one_key(keys, is_optional, inputs, schema))
        }
        OperatorSpec::TopN(top) => {
            let is_rank = top.with_rank || !top.partition.is_empty();
            let (name, attributes) = if is_rank {
                let select = attribute("select", names(schema));
                ("Rank", rank(top, input).into_iter().chain([select]).collect())
            } else {
                ("SortLimit", sort_limit(top, input))
            };
            text(name, attributes)
        }
        OperatorSpec::Deduplicate { keys, keeps_last } => {
            let row = if *keeps_last { "LastRow" } else { "FirstRow" };
            text("Deduplicate", vec![format!("keep=[{row}]"), attribute("key", columns(keys, input))])
        }
        OperatorSpec::Limit { skip, fetch } => {
            let fetch = fetch.map_or_else(|| "unlimited".to_owned(), |fetch| fetch.to_string());
            text("Limit", vec![format!("offset=[{skip}]"), format!("fetch=[{fetch}]")])
        }
        OperatorSpec::ChangelogNormalize(normalize) => {
            let key = attribute("key", columns(&normalize.keys, input));
            let condition = normalize
                .condition
                .iter()
                .map(|condition| attribute("condition", expression::text(condition)));
            text("ChangelogNormalize", std::iter::once(key).chain(condition).collect())
        }
        OperatorSpec::DropUpdateBefore => text("DropUpdateBefore", Vec::new()),
        OperatorSpec::SetOperation { is_intersect, is_all } => text(
            set_operation(*is_intersect),
            vec![format!("all=[{is_all}]"), attribute("select", names(schema))],
        ),
        OperatorSpec::Unnest { column, is_outer, with_ordinality } => {
            let column = columns(&[*column], input);
            text("Correlate", correlate(&column, *is_outer, *with_ordinality, schema))
        }
        OperatorSpec::SinkUpsertMaterialize { keys } => {
            text("SinkUpsertMaterialize", vec![attribute("key", columns(keys, input))])
        }
        OperatorSpec::Sink(sink) => {
            text("Sink", vec![format!("table=[{}]", sink.name), attribute("fields", names(schema))])
        }
        OperatorSpec::Collect => text("Collect", Vec::new()),
    }
}

/// Writes `name=[value]`.
fn attribute(name: &str, value: String) -> String {
    format!("{name}=[{value}]")
}

/// Writes the names of columns; a name that was there before gets a number, as in Flink.
pub(super) fn unique_names(schema: &DFSchema) -> Vec<String> {
    let mut unique: Vec<String> = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        let name = visible_name(field.name());
        let mut candidate = name.to_owned();
        let mut number = 0;
        while unique.contains(&candidate) {
            candidate = format!("{name}{number}");
            number += 1;
        }
        unique.push(candidate);
    }
    unique
}

fn names(schema: &DFSchema) -> String {
    unique_names(schema).join(", ")
}

/// Writes chosen columns.
pub(super) fn columns(positions: &[usize], schema: &DFSchema) -> String {
    let names = unique_names(schema);
    positions.iter().map(|position| names[*position].as_str()).collect::<Vec<_>>().join(", ")
}

fn source(table: &SourceTable, columns: &[usize], schema: &DFSchema) -> Vec<String> {
    let name = table.name.replace('.', ", ");
    let is_whole = columns.len() == table.read_schema().fields().len();
    let project =
        if is_whole { String::new() } else { format!(", project=[{}], metadata=[]", names(schema)) };
    vec![format!("table=[[{name}{project}]]"), attribute("fields", names(schema))]
}

fn tuples(rows: &[Vec<Expr>]) -> String {
    // A row without columns is written as Flink writes the one row that a SELECT without FROM has.
    let row = |row: &Vec<Expr>| if row.is_empty() { "0".to_owned() } else { expression::list(row) };
    let shown = rows.iter().take(ROWS_SHOWN).map(|values| format!("{{ {} }}", row(values)));
    let shown = shown.collect::<Vec<_>>().join(", ");
    let more = rows.len().saturating_sub(ROWS_SHOWN);
    if more == 0 { format!("[{shown}]") } else { format!("[{shown}, … {more} more]") }
}

fn calc(condition: Option<&Expr>, projection: Option<&[Expr]>, schema: &DFSchema) -> Vec<String> {
    let select = match projection {
        None => names(schema),
        Some(exprs) => {
            let exprs = exprs.iter().zip(schema.fields()).map(|(expr, field)| {
                let text = expression::text(&expr.clone().unalias());
                let name = visible_name(field.name());
                if text == name { text } else { format!("{text} AS {name}") }
            });
            exprs.collect::<Vec<_>>().join(", ")
        }
    };
    let condition = condition.map(|condition| attribute("where", expression::text(condition)));
    std::iter::once(attribute("select", select)).chain(condition).collect()
}

fn correlate(column: &str, is_outer: bool, with_ordinality: bool, schema: &DFSchema) -> Vec<String> {
    let call = if with_ordinality { "UNNEST WITH ORDINALITY" } else { "UNNEST" };
    let kind = if is_outer { "LEFT" } else { "INNER" };
    vec![
        format!("invocation=[{call}({column})]"),
        format!("joinType=[{kind}]"),
        attribute("select", names(schema)),
    ]
}

fn projects(sets: &[Vec<usize>], groups: &[usize], ids: &[u64], input: &DFSchema) -> String {
    let names = unique_names(input);
    let project = |(set, id): (&Vec<usize>, &u64)| {
        let columns = names.iter().enumerate().map(|(at, name)| {
            let is_left_out = groups.contains(&at) && !set.contains(&at);
            if is_left_out { format!("null AS {name}") } else { name.clone() }
        });
        format!("{{{}, {id} AS $e}}", columns.collect::<Vec<_>>().join(", "))
    };
    sets.iter().zip(ids).map(project).collect::<Vec<_>>().join(", ")
}

fn group(aggregate: &GroupAggregateSpec, input: &DFSchema, schema: &DFSchema) -> Vec<String> {
    let keys = columns(&aggregate.keys, input);
    let results = &schema.fields()[aggregate.keys.len()..];
    let calls = aggregate.calls.iter().zip(results).map(|(call, field)| {
        format!("{} AS {}", call_text(call, aggregate.input_retracts, input), visible_name(field.name()))
    });
    let select = aggregate.keys.iter().map(|key| columns(&[*key], input)).chain(calls);
    let select = attribute("select", select.collect::<Vec<_>>().join(", "));
    if keys.is_empty() { vec![select] } else { vec![attribute("groupBy", keys), select] }
}

/// Returns what an operator's state is made for, besides its columns: another operator of the same columns would take it for its own,
/// and go on from rows that were left out, or that it would have left out. None where the columns say all.
pub(crate) fn state_meaning(spec: &OperatorSpec, inputs: &[&DFSchema]) -> Option<String> {
    let input = *inputs.first()?;
    let attributes = match spec {
        OperatorSpec::GroupAggregate(aggregate) if !aggregate.calls.is_empty() => {
            aggregate.calls.iter().map(|call| call_text(call, false, input)).collect()
        }
        OperatorSpec::Join(join) => {
            let residual =
                join.residual.iter().map(|residual| attribute("where", expression::text(residual)));
            std::iter::once(attribute("joinType", join_type(join.kind).to_owned())).chain(residual).collect()
        }
        OperatorSpec::MultiJoin { is_optional, .. } => vec![attribute("joinTypes", join_types(is_optional))],
        OperatorSpec::TopN(top) => rank(top, input),
        OperatorSpec::Deduplicate { .. }
        | OperatorSpec::Limit { .. }
        | OperatorSpec::ChangelogNormalize(_) => describe(spec, inputs, input).attributes,
        OperatorSpec::SetOperation { is_intersect, is_all } => {
            vec![set_operation(*is_intersect).to_owned(), format!("all=[{is_all}]")]
        }
        _ => return None,
    };
    Some(attributes.join(", "))
}

/// Writes a call; over an input that takes rows back, Flink's names end with `_RETRACT`.
fn call_text(call: &AggregateCall, input_retracts: bool, input: &DFSchema) -> String {
    let name = call.function.name();
    let retract = if input_retracts { "_RETRACT" } else { "" };
    let distinct = if call.is_distinct { "DISTINCT " } else { "" };
    let arguments = if call.arguments.is_empty() { "*".to_owned() } else { columns(&call.arguments, input) };
    let filter =
        call.filter.map_or_else(String::new, |filter| format!(" FILTER {}", columns(&[filter], input)));
    format!("{name}{retract}({distinct}{arguments}){filter}")
}

fn joined_on_one_key(
    keys: &[Vec<usize>],
    is_optional: &[bool],
    inputs: &[&DFSchema],
    schema: &DFSchema,
) -> Vec<String> {
    let all = unique_names(schema);
    let mut start = 0;
    let mut key_names = Vec::with_capacity(keys.len());
    for (key, input) in keys.iter().zip(inputs) {
        key_names.push(key.iter().map(|column| all[start + column].as_str()).collect::<Vec<_>>());
        start += input.fields().len();
    }
    let (first, others) = key_names.split_at(1);
    let condition = |other: &Vec<&str>| {
        let equalities = first[0].iter().zip(other).map(|(left, right)| format!("{left} = {right}"));
        equalities.collect::<Vec<_>>().join(" AND ")
    };
    vec![
        attribute("commonJoinKey", first[0].join(", ")),
        attribute("joinTypes", join_types(is_optional)),
        attribute("joinConditions", others.iter().map(condition).collect::<Vec<_>>().join(", ")),
        attribute("select", names(schema)),
    ]
}

fn joined(join: &JoinSpec, inputs: &[&DFSchema], schema: &DFSchema) -> Vec<String> {
    let pair = unique_names(&join.pair_schema);
    let shift = inputs.first().map_or(0, |left| left.fields().len());
    let keys = join.keys.iter().map(|key| {
        let operator = if key.is_null_safe { "IS NOT DISTINCT FROM" } else { "=" };
        format!("{} {operator} {}", pair[key.left], pair[key.right + shift])
    });
    let residual = join.residual.iter().map(|residual| renamed_text(residual, &join.pair_schema, &pair));
    let conditions = keys.chain(residual).collect::<Vec<_>>();
    let condition = if conditions.is_empty() { "true".to_owned() } else { conditions.join(" AND ") };
    let side = |uniqueness: &JoinUniqueness| match uniqueness {
        JoinUniqueness::JoinKey => "JoinKeyContainsUniqueKey",
        JoinUniqueness::Key(_) => "HasUniqueKey",
        JoinUniqueness::None => "NoUniqueKey",
    };
    vec![
        attribute("joinType", join_type(join.kind).to_owned()),
        attribute("where", condition),
        attribute("select", names(schema)),
        format!("leftInputSpec=[{}]", side(&join.sides[0].uniqueness)),
        format!("rightInputSpec=[{}]", side(&join.sides[1].uniqueness)),
    ]
}

fn join_type(kind: JoinKind) -> &'static str {
    match kind {
        JoinKind::Inner => "InnerJoin",
        JoinKind::Left => "LeftOuterJoin",
        JoinKind::Right => "RightOuterJoin",
        JoinKind::Full => "FullOuterJoin",
        JoinKind::Semi => "LeftSemiJoin",
        JoinKind::Anti => "LeftAntiJoin",
    }
}

fn join_types(is_optional: &[bool]) -> String {
    let kinds = is_optional[1..].iter().map(|is_optional| if *is_optional { "LEFT" } else { "INNER" });
    kinds.collect::<Vec<_>>().join(", ")
}

fn set_operation(is_intersect: bool) -> &'static str {
    if is_intersect { "Intersect" } else { "Minus" }
}

/// Writes an expression under other names of its columns.
fn renamed_text(expr: &Expr, schema: &DFSchema, names: &[String]) -> String {
    let renamed = expr.clone().transform_up(|part| match &part {
        Expr::Column(column) => match schema.maybe_index_of_column(column) {
            Some(at) => Ok(Transformed::yes(Expr::Column(Column::new_unqualified(&names[at])))),
            None => Ok(Transformed::no(part)),
        },
        _ => Ok(Transformed::no(part)),
    });
    // The closure never fails.
    renamed.map_or_else(|_| expression::text(expr), |renamed| expression::text(&renamed.data))
}

fn strategy(strategy: &TopNStrategy, input: &DFSchema) -> String {
    match strategy {
        TopNStrategy::AppendFast => "strategy=[AppendFastStrategy]".to_owned(),
        TopNStrategy::UpdateFast(key) => {
            format!("strategy=[UpdateFastStrategy[primaryKeys: [{}]]]", columns(key, input))
        }
        TopNStrategy::Retract => "strategy=[RetractStrategy]".to_owned(),
    }
}

fn rank(top: &TopNSpec, input: &DFSchema) -> Vec<String> {
    vec![
        strategy(&top.strategy, input),
        "rankType=[ROW_NUMBER]".to_owned(),
        format!("rankRange=[rankStart={}, rankEnd={}]", top.first, top.last),
        attribute("partitionBy", columns(&top.partition, input)),
        attribute("orderBy", order(&top.order, input)),
    ]
}

fn sort_limit(top: &TopNSpec, input: &DFSchema) -> Vec<String> {
    vec![
        attribute("orderBy", order(&top.order, input)),
        format!("offset=[{}]", top.first - 1),
        format!("fetch=[{}]", top.last + 1 - top.first),
        strategy(&top.strategy, input),
    ]
}

/// Writes an order; only an order of NULLs that is not Flink's own is worth a word.
fn order(keys: &[SortKey], input: &DFSchema) -> String {
    let keys = keys.iter().map(|key| {
        let direction = if key.is_ascending { "ASC" } else { "DESC" };
        let nulls = match (key.is_ascending, key.nulls_first) {
            (true, false) => " NULLS LAST",
            (false, true) => " NULLS FIRST",
            _ => "",
        };
        format!("{} {direction}{nulls}", columns(&[key.column], input))
    });
    keys.collect::<Vec<_>>().join(", ")
}
