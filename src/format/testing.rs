//! What tests of formats share: formats set up from options, cells as text, and random tables.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use proptest::prelude::*;

use super::column::{ColumnBuilder, Values};
use super::{DecodingFormat, EncodingFormat, FormatContext, FormatFactory, FrameOrigin};
use crate::changelog::ChangelogBatch;
use crate::error::Result;
use crate::options::TableOptions;
use crate::schema::{Column, Field, TableSchema, TypeRoot};

/// Some columns with values.
#[derive(Debug, Clone)]
pub(crate) struct RandomTable {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: RecordBatch,
}

fn table_options(entries: &[(&str, &str)]) -> TableOptions {
    TableOptions::new(
        "test",
        entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
    )
}

pub(crate) fn decoding(
    format: &dyn FormatFactory,
    columns: &[Column],
    entries: &[(&str, &str)],
) -> Result<Box<dyn DecodingFormat>> {
    let prefix = format!("{}.", format.identifier());
    format.decoding(&FormatContext {
        columns,
        options: &table_options(entries),
        prefix: &prefix,
        zone: chrono_tz::Tz::UTC,
    })
}

pub(crate) fn encoding(
    format: &dyn FormatFactory,
    columns: &[Column],
    entries: &[(&str, &str)],
) -> Result<Box<dyn EncodingFormat>> {
    let prefix = format!("{}.", format.identifier());
    format.encoding(&FormatContext {
        columns,
        options: &table_options(entries),
        prefix: &prefix,
        zone: chrono_tz::Tz::UTC,
    })
}

/// Decodes one frame of a file in which ten lines stand before it.
pub(crate) fn decode(
    format: &dyn DecodingFormat,
    projection: &[usize],
    data: &[u8],
) -> Result<ChangelogBatch> {
    let origin = FrameOrigin { name: "data.csv", offset: 100, lines_before: &|| Some(10) };
    format.decoder(projection, &[]).decode(data, origin)
}

pub(crate) fn encode(format: &dyn EncodingFormat, rows: &RecordBatch) -> Result<String> {
    let mut out = Vec::new();
    format.encoder().encode(&ChangelogBatch::inserts(rows.clone()), &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

/// Returns each row as `a|b|NULL`; decimals are shown unscaled, so that no formatting of ours is trusted.
pub(crate) fn cells(batch: &ChangelogBatch) -> Vec<String> {
    let columns = batch.rows().columns();
    let row = |row: usize| columns.iter().map(|column| cell(column, row)).collect::<Vec<_>>().join("|");
    (0..batch.row_count()).map(row).collect()
}

fn cell(array: &ArrayRef, row: usize) -> String {
    use arrow::datatypes::DataType as Arrow;
    if array.is_null(row) {
        return "NULL".to_owned();
    }
    match array.data_type() {
        Arrow::Decimal128(..) => {
            array.as_primitive::<arrow::datatypes::Decimal128Type>().value(row).to_string()
        }
        Arrow::List(_) => {
            let items = array.as_list::<i32>().value(row);
            format!("[{}]", (0..items.len()).map(|at| cell(&items, at)).collect::<Vec<_>>().join(", "))
        }
        Arrow::Struct(_) => {
            let columns = array.as_struct().columns();
            format!("({})", columns.iter().map(|column| cell(column, row)).collect::<Vec<_>>().join(", "))
        }
        Arrow::Map(..) => {
            let entries = array.as_map().value(row);
            let (keys, values) = (entries.column(0), entries.column(1));
            let entry = |at: usize| format!("{}={}", cell(keys, at), cell(values, at));
            format!("{{{}}}", (0..keys.len()).map(entry).collect::<Vec<_>>().join(", "))
        }
        _ => arrow::util::display::array_value_to_string(array, row).unwrap(),
    }
}

/// Every type whose values are single texts.
pub(crate) fn scalar_types() -> Vec<TypeRoot> {
    vec![
        TypeRoot::STRING,
        TypeRoot::Boolean,
        TypeRoot::BYTES,
        TypeRoot::Decimal(20, 5),
        TypeRoot::TinyInt,
        TypeRoot::SmallInt,
        TypeRoot::Int,
        TypeRoot::BigInt,
        TypeRoot::Float,
        TypeRoot::Double,
        TypeRoot::Date,
        TypeRoot::Time(3),
        TypeRoot::Timestamp(3),
        TypeRoot::Timestamp(6),
        TypeRoot::Timestamp(9),
        TypeRoot::TimestampLtz(3),
    ]
}

/// Makes tables of up to six columns; `with_maps` adds types that only some formats write.
pub(crate) fn random_table(with_maps: bool) -> impl Strategy<Value = RandomTable> {
    let scalar = prop::sample::select(scalar_types()).prop_map(TypeRoot::nullable).boxed();
    let array = scalar.clone().prop_map(|element| TypeRoot::Array(Box::new(element)).nullable());
    let row = prop::collection::vec(scalar.clone(), 1..4).prop_map(|types| {
        let fields = types
            .into_iter()
            .enumerate()
            .map(|(number, data_type)| Field::new(format!("f{number}"), data_type));
        TypeRoot::Row(fields.collect()).nullable()
    });
    let map = scalar
        .clone()
        .prop_map(|value| TypeRoot::Map(Box::new(TypeRoot::STRING.not_null()), Box::new(value)).nullable());
    let data_type = if with_maps {
        prop_oneof![6 => scalar, 1 => array, 1 => row, 1 => map].boxed()
    } else {
        // In CSV no element may hold the element delimiter, and an array of one NULL looks like NULL.
        let simple = prop::sample::select(vec![
            TypeRoot::Int,
            TypeRoot::Date,
            TypeRoot::Double,
            TypeRoot::Decimal(9, 2),
        ]);
        let array = simple.prop_map(|element| TypeRoot::Array(Box::new(element.not_null())).nullable());
        prop_oneof![6 => scalar, 1 => array].boxed()
    };
    (prop::collection::vec(data_type, 2..7), 0_usize..20, any::<u64>()).prop_map(|(types, rows, seed)| {
        let columns: Vec<Column> = types
            .into_iter()
            .enumerate()
            .map(|(number, data_type)| Column::physical(format!("c{number}"), data_type))
            .collect();
        let mut seed = seed;
        let arrays = columns.iter().map(|column| {
            let mut builder = ColumnBuilder::new(&column.data_type);
            (0..rows).for_each(|_| push_random(&mut builder, &mut seed));
            builder.finish().unwrap()
        });
        let schema = TableSchema::of_columns(columns.clone()).to_arrow();
        let rows = RecordBatch::try_new(schema, arrays.collect()).unwrap();
        RandomTable { columns, rows }
    })
}

fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 20
}

fn push_random(column: &mut ColumnBuilder, seed: &mut u64) {
    if next(seed).is_multiple_of(8) && column.data_type().nullable {
        column.push_null();
        return;
    }
    let random = next(seed);
    let (data_type, values) = column.parts();
    let root = data_type.root.clone();
    match values {
        Values::Null => return column.push_null(),
        Values::Boolean(values) => values.append(random.is_multiple_of(2)),
        Values::Int8(values) => values.push(random as i8),
        Values::Int16(values) => values.push(random as i16),
        Values::Int32(values) => values.push(match root {
            TypeRoot::Date => (random % 2_000_000) as i32 - 700_000,
            TypeRoot::Time(_) => (random % 86_400_000) as i32,
            _ => random as i32,
        }),
        Values::Int64(values) => {
            values.push((random as i64 - (1 << 43)) * if root == TypeRoot::BigInt { 7 } else { 1 });
        }
        Values::Float32(values) => values.push(f32::from_bits(random as u32 & !(1 << 30))),
        Values::Float64(values) => values.push(f64::from_bits((random << 20) & !(1 << 62))),
        Values::Int128(values) => values.push(i128::from(random % 100_000_000) - 50_000_000),
        Values::Bytes(..) => {
            let alphabet = ['a', '"', ',', '\n', '\r', ' ', '\\', 'ä', '😀', '\t', '#', '\'', '0'];
            let text: String =
                (0..random % 30).map(|_| alphabet[next(seed) as usize % alphabet.len()]).collect();
            return column.push_bytes(text.as_bytes());
        }
        Values::List(ends, items) => {
            (0..random % 3 + 1).for_each(|_| push_random(items, seed));
            ends.push(items.len() as i32);
        }
        Values::Map(ends, keys, values) => {
            for number in 0..random % 4 {
                keys.push_bytes(format!("k{number}").as_bytes());
                push_random(values, seed);
            }
            ends.push(keys.len() as i32);
        }
        Values::Row(fields) => fields.iter_mut().for_each(|field| push_random(field, seed)),
    }
    column.mark_valid();
}
