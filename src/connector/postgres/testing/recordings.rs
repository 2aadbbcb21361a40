//! Recordings of streams, types without a server, and cells as PostgreSQL writes them.

use std::fs;
use std::path::PathBuf;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, TimestampMicrosecondType, TimestampMillisecondType,
};
use chrono_tz::Tz;
use serde_json::Value;
use tokio_postgres::types::{Kind, Type};

use crate::connector::postgres::options::Unrepresentable;
use crate::connector::postgres::pg_types::{PgType, PgTypes, TypeKind};
use crate::connector::postgres::pgoutput::Lsn;
use crate::connector::postgres::row_shape::{Changes, Metadata, RowShape};
use crate::schema::{Column, DataType, TypeRoot, push_date, push_decimal, push_timestamp};

/// What a server sent, and what came of it.
pub(in crate::connector::postgres) struct Recording {
    pub(in crate::connector::postgres) name: String,
    bytes: Vec<u8>,
    pub(in crate::connector::postgres) expected: Value,
}

impl Recording {
    pub(in crate::connector::postgres) fn folder() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/postgres/pgoutput")
    }

    pub(in crate::connector::postgres) fn read(name: &str) -> Recording {
        let path = Recording::folder().join(format!("{name}.bin"));
        let expected = fs::read_to_string(path.with_extension("expect.json")).unwrap();
        Recording {
            name: name.to_owned(),
            bytes: fs::read(path).unwrap(),
            expected: serde_json::from_str(&expected).unwrap(),
        }
    }

    /// Returns all of them, by name.
    pub(in crate::connector::postgres) fn all() -> Vec<Recording> {
        let files = fs::read_dir(Recording::folder()).unwrap().map(|entry| entry.unwrap().path());
        let mut names: Vec<String> = files
            .filter(|path| path.extension().is_some_and(|extension| extension == "bin"))
            .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        names.sort();
        assert!(names.len() >= 17, "{names:?}");
        names.iter().map(|name| Recording::read(name)).collect()
    }

    /// Returns the messages, each with the position where it was sent from.
    pub(in crate::connector::postgres) fn messages(&self) -> Vec<(Lsn, &[u8])> {
        let mut rest = &self.bytes[..];
        let mut messages = Vec::new();
        while let Some((length, behind)) = rest.split_first_chunk() {
            let (payload, behind) = behind.split_at(u32::from_be_bytes(*length) as usize);
            let (header, message) = payload.split_at(25);
            messages.push((Lsn(u64::from_be_bytes(header[1..9].try_into().unwrap())), message));
            rest = behind;
        }
        messages
    }

    /// Returns whether aborts in its streams carry position and time.
    pub(in crate::connector::postgres) fn is_parallel(&self) -> bool {
        self.expected["options"].as_str().unwrap().contains("streaming 'parallel'")
    }
}

/// Returns the types that every server has.
pub(in crate::connector::postgres) fn built_in_types() -> PgTypes {
    let mut types = PgTypes::default();
    for known in (16..10_000).filter_map(Type::from_oid) {
        let kind = match known.kind() {
            Kind::Array(element) => TypeKind::Array { element: element.oid(), delimiter: b',' },
            Kind::Range(_) | Kind::Multirange(_) => TypeKind::Range,
            _ => TypeKind::Base,
        };
        // Those whose cast to text is a function, and writes something else than their output does.
        let has_text_cast =
            [Type::BOOL, Type::BPCHAR, Type::CHAR, Type::INET, Type::NAME, Type::XML].contains(&known);
        let found =
            PgType { schema: "pg_catalog".to_owned(), name: known.name().to_owned(), kind, has_text_cast };
        types.insert(known.oid(), found);
    }
    types
}

/// Returns the shape of rows of the given columns; those whose types are not null are the key.
pub(in crate::connector::postgres) fn shape(
    columns: &[(&str, TypeRoot)],
    key: &[usize],
    changes: Changes,
) -> RowShape {
    let physical =
        columns.iter().map(|(name, root)| Column::physical(*name, root.clone().nullable())).collect();
    RowShape {
        table: "c.d.declared".to_owned(),
        physical,
        key: key.to_vec(),
        metadata: Vec::new(),
        changes,
        wants_update_before: changes == Changes::All,
        unrepresentable: Unrepresentable::Fail,
    }
}

/// Returns the shape with all metadata behind the columns.
pub(in crate::connector::postgres) fn with_metadata(mut shape: RowShape) -> RowShape {
    shape.metadata = Metadata::ALL.to_vec();
    shape
}

/// Returns the cells of a column as PostgreSQL writes their values, with datestyle ISO, in UTC.
pub(in crate::connector::postgres) fn pg_texts(
    data_type: &DataType,
    column: &ArrayRef,
) -> Vec<Option<String>> {
    (0..column.len()).map(|row| column.is_valid(row).then(|| pg_text(&data_type.root, column, row))).collect()
}

fn pg_text(root: &TypeRoot, column: &ArrayRef, row: usize) -> String {
    let mut text = String::new();
    match root {
        TypeRoot::Char(_) | TypeRoot::Varchar(_) => text.push_str(column.as_string::<i32>().value(row)),
        TypeRoot::Boolean => text.push_str(if column.as_boolean().value(row) { "t" } else { "f" }),
        TypeRoot::Binary(_) | TypeRoot::Varbinary(_) => {
            text.push_str("\\x");
            column
                .as_binary::<i32>()
                .value(row)
                .iter()
                .for_each(|byte| text.push_str(&format!("{byte:02x}")));
        }
        TypeRoot::SmallInt => text = column.as_primitive::<Int16Type>().value(row).to_string(),
        TypeRoot::Int => text = column.as_primitive::<Int32Type>().value(row).to_string(),
        TypeRoot::BigInt => text = column.as_primitive::<Int64Type>().value(row).to_string(),
        TypeRoot::Float => {
            text = pg_float(&format!("{:e}", column.as_primitive::<Float32Type>().value(row)), 6);
        }
        TypeRoot::Double => {
            text = pg_float(&format!("{:e}", column.as_primitive::<Float64Type>().value(row)), 15);
        }
        TypeRoot::Decimal(_, scale) => {
            push_decimal(column.as_primitive::<Decimal128Type>().value(row), *scale, &mut text);
        }
        TypeRoot::Date => push_date(i64::from(column.as_primitive::<Date32Type>().value(row)), &mut text),
        TypeRoot::Time(_) => {
            let millis = i64::from(column.as_primitive::<Time32MillisecondType>().value(row));
            push_timestamp(millis, 1_000, 3, Tz::UTC, &mut text);
            text = text.split_once(' ').unwrap().1.to_owned();
        }
        TypeRoot::Timestamp(precision) | TypeRoot::TimestampLtz(precision) => {
            let (ticks, per_second) = if *precision > 3 {
                (column.as_primitive::<TimestampMicrosecondType>().value(row), 1_000_000)
            } else {
                (column.as_primitive::<TimestampMillisecondType>().value(row), 1_000)
            };
            push_timestamp(ticks, per_second, *precision, Tz::UTC, &mut text);
        }
        TypeRoot::Array(item) => {
            let items = pg_texts(item, &column.as_list::<i32>().value(row));
            return format!(
                "{{{}}}",
                items.iter().map(|item| pg_item(item, &item_root(root))).collect::<Vec<_>>().join(",")
            );
        }
        TypeRoot::Map(key, value) => {
            let entries = column.as_map().value(row);
            let texts = pg_texts(key, entries.column(0)).into_iter().zip(pg_texts(value, entries.column(1)));
            let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
            let entry = |(key, value): (Option<String>, Option<String>)| {
                let value = value.map_or_else(|| "NULL".to_owned(), |value| quoted(&value));
                format!("{}=>{value}", quoted(&key.unwrap()))
            };
            return texts.map(entry).collect::<Vec<_>>().join(", ");
        }
        _ => panic!("cells of type {root:?} are not printed"),
    }
    match root {
        TypeRoot::Date | TypeRoot::Timestamp(_) | TypeRoot::TimestampLtz(_) | TypeRoot::Time(_) => {
            pg_temporal(text, root)
        }
        _ => text,
    }
}

fn item_root(root: &TypeRoot) -> TypeRoot {
    match root {
        TypeRoot::Array(item) => item.root.clone(),
        _ => TypeRoot::Null,
    }
}

/// Writes an element of an array, quoted where need be.
fn pg_item(item: &Option<String>, root: &TypeRoot) -> String {
    let Some(text) = item else { return "NULL".to_owned() };
    let needs_quotes = text.is_empty()
        || text.eq_ignore_ascii_case("null")
        || text.contains(|c: char| c.is_whitespace() || "{},\"\\".contains(c));
    if needs_quotes && !matches!(root, TypeRoot::Array(_)) {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        text.clone()
    }
}

/// Lays out the shortest digits of a float, `-d.ddde-n`, as PostgreSQL does: without exponent up to so many digits.
fn pg_float(shortest: &str, digits_max: i32) -> String {
    let Some((digits, exponent)) = shortest.split_once('e') else {
        return shortest.replace("inf", "Infinity");
    };
    let exponent: i32 = exponent.parse().unwrap();
    if !(-4..digits_max).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let digits = digits.replace('.', "");
    let text = if exponent < 0 {
        format!("0.{}{digits}", "0".repeat((-exponent - 1) as usize))
    } else {
        let padded = format!("{digits:0<width$}", width = exponent as usize + 1);
        let (whole, fraction) = padded.split_at(exponent as usize + 1);
        if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
    };
    format!("{sign}{text}")
}

/// Takes zeros off a fraction, and turns a year that is not positive into one before Christ.
fn pg_temporal(text: String, root: &TypeRoot) -> String {
    let mut text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text };
    let mut era = "";
    if !matches!(root, TypeRoot::Time(_)) {
        let (sign, rest) = text.strip_prefix('-').map_or((1, text.as_str()), |rest| (-1, rest));
        let (year, rest) = rest.split_once('-').unwrap();
        let year = sign * year.parse::<i64>().unwrap();
        era = if year < 1 { " BC" } else { "" };
        text = format!("{:04}-{rest}", if year < 1 { 1 - year } else { year });
    }
    let zone = if matches!(root, TypeRoot::TimestampLtz(_)) { "+00" } else { "" };
    format!("{text}{zone}{era}")
}
