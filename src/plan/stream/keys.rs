//! Which columns tell rows apart, derived from the sources' primary keys and from what operators do. Keys decide how a join keeps
//! its rows, whether `-U` is needed, and whether a sink's key is safe.

use datafusion::common::DFSchema;
use datafusion::logical_expr::Expr;

use super::node::PlanNode;
use crate::function::cast_target;
use crate::plan::graph::{JoinKind, JoinSpec, OperatorSpec, TopNSpec, holds_key};
use crate::plan::provider::SourceTable;
use crate::schema::{DataType as FlinkType, TypeRoot};

/// The function that fails at a NULL on its way into a NOT NULL column.
pub(super) const NOT_NULL_GUARD: &str = "NOT NULL";

/// More keys than this are not followed: joins multiply them.
const KEYS_MAX: usize = 8;

/// Returns the keys of a node's output.
pub(super) fn unique_keys(spec: &OperatorSpec, inputs: &[PlanNode], schema: &DFSchema) -> Vec<Vec<usize>> {
    let inherited = || inputs.first().map_or_else(Vec::new, |input| input.unique_keys.clone());
    let all_columns = || (0..schema.fields().len()).collect::<Vec<usize>>();
    let keys = match spec {
        OperatorSpec::Source { table, columns } => source_key(table, columns).into_iter().collect(),
        OperatorSpec::Values { rows } if rows.len() <= 1 => vec![Vec::new()],
        OperatorSpec::Calc { projection: Some(projection), .. } => projected(&inputs[0], projection),
        OperatorSpec::Expand { groups, .. } => {
            let id = schema.fields().len() - 1;
            let kept = |key: &Vec<usize>| key.iter().all(|column| !groups.contains(column));
            inherited()
                .into_iter()
                .filter(kept)
                .map(|mut key| {
                    key.push(id);
                    key
                })
                .collect()
        }
        OperatorSpec::GroupAggregate(aggregate) => vec![(0..aggregate.keys.len()).collect()],
        OperatorSpec::Join(join) => joined(join, &inputs[0], &inputs[1]),
        OperatorSpec::MultiJoin { keys, is_optional } => joined_on_one_key(keys, is_optional, inputs),
        OperatorSpec::TopN(top) => ranked(top, inherited(), schema.fields().len()),
        OperatorSpec::Deduplicate { keys, .. } => std::iter::once(keys.clone()).chain(inherited()).collect(),
        OperatorSpec::Limit { fetch: Some(1), .. } => vec![Vec::new()],
        OperatorSpec::ChangelogNormalize(normalize) => vec![normalize.keys.clone()],
        OperatorSpec::SetOperation { is_all: false, .. } => vec![all_columns()],
        OperatorSpec::Unnest { with_ordinality: true, .. } => {
            let ordinal = schema.fields().len() - 1;
            inherited().into_iter().map(|key| [key, vec![ordinal]].concat()).collect()
        }
        OperatorSpec::SinkUpsertMaterialize { keys } => vec![keys.clone()],
        OperatorSpec::Calc { projection: None, .. }
        | OperatorSpec::Limit { .. }
        | OperatorSpec::DropUpdateBefore
        | OperatorSpec::Sink(_)
        | OperatorSpec::Collect => inherited(),
        OperatorSpec::Values { .. }
        | OperatorSpec::Union
        | OperatorSpec::SetOperation { .. }
        | OperatorSpec::Unnest { .. } => Vec::new(),
    };
    minimal(keys)
}

/// Returns whether some unique key has all of these columns.
pub(super) fn key_holds(keys: &[Vec<usize>], columns: &[usize]) -> bool {
    keys.iter().any(|key| columns.iter().all(|column| key.contains(column)))
}

/// Returns the primary key of a table in a scan that reads all of it.
fn source_key(table: &SourceTable, columns: &[usize]) -> Option<Vec<usize>> {
    table.key_columns()?.iter().map(|key| columns.iter().position(|column| column == key)).collect()
}

/// Carries keys through a projection: each column of a key must go on, as it is or by a cast that loses nothing.
fn projected(input: &PlanNode, projection: &[Expr]) -> Vec<Vec<usize>> {
    let sources: Vec<Option<usize>> = projection.iter().map(|expr| same_value(expr, &input.schema)).collect();
    let mut keys = Vec::new();
    for key in &input.unique_keys {
        let mut variants = vec![Vec::new()];
        for column in key {
            let places = sources.iter().enumerate().filter(|(_, source)| **source == Some(*column));
            let places: Vec<usize> = places.map(|(place, _)| place).collect();
            variants = variants
                .iter()
                .flat_map(|variant: &Vec<usize>| {
                    places.iter().map(move |place| [variant.as_slice(), &[*place]].concat())
                })
                .take(KEYS_MAX)
                .collect();
        }
        keys.append(&mut variants);
    }
    keys
}

/// Returns the column whose values an expression passes on, each as another one.
pub(super) fn same_value(expr: &Expr, input: &DFSchema) -> Option<usize> {
    use arrow::datatypes::DataType;
    match expr {
        Expr::Column(column) => input.maybe_index_of_column(column),
        Expr::Alias(alias) => same_value(&alias.expr, input),
        Expr::Cast(cast) => {
            let column = same_value(&cast.expr, input)?;
            let from = input.field(column).data_type();
            let loses = match (from, &cast.data_type) {
                (DataType::Float32, DataType::Float64) => false,
                (from, DataType::Float32 | DataType::Float64) => {
                    from.primitive_width().is_none_or(|width| width > 4)
                }
                (from, to) if from.is_integer() && to.is_integer() => {
                    from.primitive_width() > to.primitive_width()
                }
                (from, DataType::Decimal128(..)) => from.is_floating(),
                _ => true,
            };
            (!loses).then_some(column)
        }
        // A cast to a finer time.
        Expr::ScalarFunction(call) if cast_target(call).is_some() => {
            let column = same_value(call.args.first()?, input)?;
            let from = FlinkType::from_arrow(input.field(column).data_type())?.root;
            let is_finer = match (from, &cast_target(call)?.root) {
                (TypeRoot::Timestamp(from), TypeRoot::Timestamp(to))
                | (TypeRoot::TimestampLtz(from), TypeRoot::TimestampLtz(to)) => from <= *to,
                _ => false,
            };
            is_finer.then_some(column)
        }
        // The guard of a NOT NULL column passes its first argument on.
        Expr::ScalarFunction(call) if call.name() == NOT_NULL_GUARD => same_value(call.args.first()?, input),
        _ => None,
    }
}

/// Returns the keys of a join.
fn joined(join: &JoinSpec, left: &PlanNode, right: &PlanNode) -> Vec<Vec<usize>> {
    let shift = left.column_count();
    if matches!(join.kind, JoinKind::Semi | JoinKind::Anti) {
        return left.unique_keys.clone();
    }
    let left_keys: Vec<usize> = join.keys.iter().map(|key| key.left).collect();
    let right_keys: Vec<usize> = join.keys.iter().map(|key| key.right).collect();
    let shifted = |key: &Vec<usize>| key.iter().map(|column| column + shift).collect::<Vec<usize>>();
    let mut keys = Vec::new();
    if holds_key(&right.unique_keys, &right_keys) && matches!(join.kind, JoinKind::Inner | JoinKind::Left) {
        keys.extend(left.unique_keys.iter().cloned());
    }
    if holds_key(&left.unique_keys, &left_keys) && matches!(join.kind, JoinKind::Inner | JoinKind::Right) {
        keys.extend(right.unique_keys.iter().map(shifted));
    }
    for left_key in &left.unique_keys {
        for right_key in &right.unique_keys {
            // Rows that miss either side could agree in NULLs, unless one side's key has none of its own.
            let is_told_apart = join.kind != JoinKind::Full
                || [(left, left_key), (right, right_key)]
                    .iter()
                    .any(|(side, key)| key.iter().any(|column| !side.schema.field(*column).is_nullable()));
            if is_told_apart {
                keys.push([left_key.clone(), shifted(right_key)].concat());
            }
        }
    }
    if join.kind == JoinKind::Inner {
        let equal: Vec<(usize, usize)> = join.keys.iter().map(|key| (key.left, key.right + shift)).collect();
        substitute(&mut keys, &equal);
    }
    keys
}

/// Returns the keys of a join of several inputs on one key. A row of an input that must be there has the join key, and so all
/// rows of inputs that have one for each.
fn joined_on_one_key(join_keys: &[Vec<usize>], is_optional: &[bool], inputs: &[PlanNode]) -> Vec<Vec<usize>> {
    let starts: Vec<usize> = inputs
        .iter()
        .scan(0, |start, input| Some(std::mem::replace(start, *start + input.column_count())))
        .collect();
    let shifted = |input: usize, key: &[usize]| key.iter().map(|at| at + starts[input]).collect::<Vec<_>>();
    let with = |keys: &[Vec<usize>], input: usize| {
        let own = inputs[input].unique_keys.iter().take(KEYS_MAX);
        own.flat_map(|own| keys.iter().map(move |key| [key.as_slice(), &shifted(input, own)].concat()))
            .take(KEYS_MAX)
            .collect::<Vec<_>>()
    };
    let (single, many): (Vec<usize>, Vec<usize>) =
        (0..inputs.len()).partition(|input| holds_key(&inputs[*input].unique_keys, &join_keys[*input]));
    let mut keys = many.iter().fold(vec![Vec::new()], |keys, input| with(&keys, *input));
    if many.iter().all(|input| is_optional[*input]) {
        let required = single.into_iter().filter(|input| !is_optional[*input]);
        keys = required.flat_map(|input| with(&keys, input)).collect();
    }
    let required: Vec<usize> = (0..inputs.len()).filter(|input| !is_optional[*input]).collect();
    let columns: Vec<Vec<usize>> = required.iter().map(|input| shifted(*input, &join_keys[*input])).collect();
    let equal: Vec<(usize, usize)> =
        columns.windows(2).flat_map(|pair| pair[0].iter().copied().zip(pair[1].iter().copied())).collect();
    substitute(&mut keys, &equal);
    keys
}

/// Adds keys with the other of two columns that have the same value.
fn substitute(keys: &mut Vec<Vec<usize>>, equal: &[(usize, usize)]) {
    for (left, right) in equal.iter().copied() {
        for key in keys.clone() {
            if keys.len() >= KEYS_MAX {
                return;
            }
            for (from, to) in [(left, right), (right, left)] {
                if key.contains(&from) && !key.contains(&to) {
                    keys.push(key.iter().map(|column| if *column == from { to } else { *column }).collect());
                }
            }
        }
    }
}

/// Returns the keys of a Top-N: those of its input, and the rank within the partition.
fn ranked(top: &TopNSpec, mut keys: Vec<Vec<usize>>, column_count: usize) -> Vec<Vec<usize>> {
    if top.first == top.last {
        keys.push(top.partition.clone());
    }
    if top.with_rank {
        keys.push([top.partition.as_slice(), &[column_count - 1]].concat());
    }
    keys
}

/// Sorts keys and drops those that hold another.
fn minimal(mut keys: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    for key in &mut keys {
        key.sort_unstable();
        key.dedup();
    }
    keys.sort_by(|left, right| left.len().cmp(&right.len()).then_with(|| left.cmp(right)));
    let mut kept: Vec<Vec<usize>> = Vec::new();
    for key in keys {
        if kept.len() < KEYS_MAX && !holds_key(&kept, &key) {
            kept.push(key);
        }
    }
    kept
}
