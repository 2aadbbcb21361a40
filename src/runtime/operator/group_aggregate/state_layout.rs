//! How the operator's state lies in tables: one row per group, then for every shared table one row per value or element, each
//! under its group's keys.

use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};

use super::call::{Aggregate, Call};
use super::tables::Tables;
use crate::error::{Error, Result};
use crate::state::{StateTable, stable_names};

/// The names of the tables of counted values.
const COUNTS: [&str; 16] = [
    "values",
    "values_2",
    "values_3",
    "values_4",
    "values_5",
    "values_6",
    "values_7",
    "values_8",
    "values_9",
    "values_10",
    "values_11",
    "values_12",
    "values_13",
    "values_14",
    "values_15",
    "values_16",
];

/// The names of the tables of values in order.
const ARRIVALS: [&str; 16] = [
    "arrivals",
    "arrivals_2",
    "arrivals_3",
    "arrivals_4",
    "arrivals_5",
    "arrivals_6",
    "arrivals_7",
    "arrivals_8",
    "arrivals_9",
    "arrivals_10",
    "arrivals_11",
    "arrivals_12",
    "arrivals_13",
    "arrivals_14",
    "arrivals_15",
    "arrivals_16",
];

/// Describes the tables: groups, counted values, values in order.
///
/// # Errors
/// There are more than there are names for.
pub(super) fn state_tables(
    keys: &[usize],
    calls: &[Call],
    tables: &Tables,
    input: &SchemaRef,
    output: &SchemaRef,
) -> Result<Vec<StateTable>> {
    let key_count = keys.len();
    let names = stable_names(output.fields().iter().map(|field| field.name().as_str()));
    let key_fields: Vec<(String, ArrowType)> = names
        .iter()
        .zip(keys)
        .map(|(name, key)| (name.clone(), input.field(*key).data_type().clone()))
        .collect();
    let table = |name: &'static str, own: Vec<(String, ArrowType)>, own_key_count: usize| {
        let fields: Vec<(String, ArrowType)> = key_fields.iter().cloned().chain(own).collect();
        let names = stable_names(fields.iter().map(|(name, _)| name.as_str()));
        let fields =
            names.into_iter().zip(fields).map(|(name, (_, data_type))| Field::new(name, data_type, true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        StateTable { name, schema, key_count: key_count + own_key_count, derived_from: None }
    };
    let mut of_groups = vec![("rows".to_owned(), ArrowType::Int64)];
    for (call, name) in calls.iter().zip(&names[key_count..]) {
        if let Aggregate::Own(accumulator) = &call.aggregate {
            let fields = accumulator.state_fields().into_iter();
            of_groups.extend(fields.map(|(field, data_type)| (format!("{name}.{field}"), data_type)));
        }
    }
    let mut described = vec![table("groups", of_groups, 0)];
    for (number, shared) in tables.counts.iter().enumerate() {
        let value = ("value".to_owned(), input.field(shared.argument).data_type().clone());
        let own = vec![value, ("value_count".to_owned(), ArrowType::Int64)];
        described.push(table(COUNTS.get(number).ok_or_else(too_many)?, own, 1));
    }
    for (number, shared) in tables.arrivals.iter().enumerate() {
        let value = ("value".to_owned(), input.field(shared.argument).data_type().clone());
        let own = vec![("seq".to_owned(), ArrowType::Int64), value];
        described.push(table(ARRIVALS.get(number).ok_or_else(too_many)?, own, 1));
    }
    Ok(described)
}

fn too_many() -> Error {
    Error::unsupported(
        "more than 16 columns with DISTINCT or ordered aggregates in one GROUP BY are not supported yet in \
         streaming mode",
    )
    .hint("Join two queries, each with some of the aggregates.")
}
