//! Tables that Flink and Spark wrote: we read what they read. `tests/iceberg/fixtures/README.md` tells of each.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type,
    Time32MillisecondType, TimeUnit, TimestampMicrosecondType, TimestampNanosecondType,
};
use chrono::{DateTime, NaiveTime};
use datafusion::catalog::TableProvider;
use datafusion::prelude::{SessionConfig, SessionContext};
use iceberg::spec::{PrimitiveType, SchemaRef, Type};
use iceberg::{Catalog, TableIdent};

use super::moved_files::moved_files;
use crate::connector::iceberg::catalog::HadoopCatalog;
use crate::connector::iceberg::read_target::ReadTarget;
use crate::connector::iceberg::scan::ScanTarget;
use crate::connector::iceberg::scan::provider::IcebergTableProvider;
use crate::connector::iceberg::table::IcebergTable;
use crate::connector::iceberg::type_mapping::to_flink;
use crate::error::{Error, ErrorKind, Result};

/// Where the fixtures' metadata says that they lie.
const WAREHOUSE: &str = "/tmp/lakehead-fixtures";

/// Tables with files that are not Parquet.
const REFUSED: [&str; 4] = ["avro", "avro_deletes", "mixed_formats", "orc"];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/iceberg/fixtures")
}

async fn load(engine: &str, name: &str) -> Arc<IcebergTable> {
    let files = moved_files(WAREHOUSE, &fixtures());
    let catalog = Arc::new(HadoopCatalog::new(&format!("file://{WAREHOUSE}"), files).unwrap());
    let table = catalog.load_table(&TableIdent::from_strs([engine, name]).unwrap()).await.unwrap();
    Arc::new(IcebergTable::new(catalog, table))
}

/// Reads a table and returns its rows in the form of the fixtures, sorted.
async fn rows(table: &Arc<IcebergTable>, target: ScanTarget, partitions: usize) -> Result<Vec<String>> {
    let schema = Arc::clone(&target.schema);
    let fields = schema.as_struct().fields();
    let declared = fields
        .iter()
        .map(|field| to_flink(&field.field_type, field.required).to_field(&field.name))
        .collect();
    let provider: Arc<dyn TableProvider> =
        Arc::new(IcebergTableProvider::new(Arc::clone(table), target, declared)?);
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(partitions));
    let batches = context.read_table(provider)?.collect().await?;
    let mut lines: Vec<String> = batches.iter().flat_map(|batch| batch_lines(batch, &schema)).collect();
    lines.sort();
    Ok(lines)
}

fn batch_lines(batch: &RecordBatch, schema: &SchemaRef) -> Vec<String> {
    let line = |row: usize| {
        let cells = schema.as_struct().fields().iter().zip(batch.columns()).map(|(field, column)| {
            if column.is_null(row) {
                return "\\N".to_owned();
            }
            match field.field_type.as_ref() {
                Type::Primitive(primitive) => escaped(&scalar(primitive, column, row)),
                nested => json(nested, column, row),
            }
        });
        cells.collect::<Vec<_>>().join("\t")
    };
    (0..batch.num_rows()).map(line).collect()
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}

/// Writes a value that is neither NULL nor nested.
fn scalar(primitive: &PrimitiveType, column: &dyn Array, row: usize) -> String {
    let micros = |micros: i64| DateTime::from_timestamp_micros(micros).unwrap().naive_utc();
    match column.data_type() {
        ArrowType::Boolean => column.as_boolean().value(row).to_string(),
        ArrowType::Int32 => column.as_primitive::<Int32Type>().value(row).to_string(),
        ArrowType::Int64 => column.as_primitive::<Int64Type>().value(row).to_string(),
        ArrowType::Float32 => format!("{:?}", column.as_primitive::<Float32Type>().value(row)),
        ArrowType::Float64 => format!("{:?}", column.as_primitive::<Float64Type>().value(row)),
        ArrowType::Decimal128(..) => column.as_primitive::<Decimal128Type>().value_as_string(row),
        ArrowType::Date32 => {
            column.as_primitive::<Date32Type>().value_as_date(row).unwrap().format("%Y-%m-%d").to_string()
        }
        ArrowType::Time32(_) => {
            let millis = column.as_primitive::<Time32MillisecondType>().value(row) as u32;
            let time =
                NaiveTime::from_num_seconds_from_midnight_opt(millis / 1000, millis % 1000 * 1_000_000);
            time.unwrap().format("%H:%M:%S%.6f").to_string()
        }
        ArrowType::Timestamp(TimeUnit::Microsecond, zone) => {
            let time = micros(column.as_primitive::<TimestampMicrosecondType>().value(row));
            let zone = if zone.is_some() { "Z" } else { "" };
            format!("{}{zone}", time.format("%Y-%m-%dT%H:%M:%S%.6f"))
        }
        ArrowType::Timestamp(TimeUnit::Nanosecond, zone) => {
            let time =
                DateTime::from_timestamp_nanos(column.as_primitive::<TimestampNanosecondType>().value(row));
            let zone = if zone.is_some() { "Z" } else { "" };
            format!("{}{zone}", time.naive_utc().format("%Y-%m-%dT%H:%M:%S%.9f"))
        }
        ArrowType::Utf8 => column.as_string::<i32>().value(row).to_owned(),
        ArrowType::Binary => {
            let bytes = column.as_binary::<i32>().value(row);
            if *primitive == PrimitiveType::Uuid {
                return uuid::Uuid::from_slice(bytes).unwrap().to_string();
            }
            bytes.iter().fold(String::new(), |mut text, byte| {
                write!(text, "{byte:02x}").unwrap();
                text
            })
        }
        other => panic!("{other}"),
    }
}

/// Writes a value within a nested one, or the nested one itself, as JSON.
fn json(iceberg: &Type, column: &dyn Array, row: usize) -> String {
    if column.is_null(row) {
        return "null".to_owned();
    }
    let quoted = |text: &str| serde_json::to_string(text).unwrap();
    match iceberg {
        Type::Primitive(primitive) => {
            let text = scalar(primitive, column, row);
            let is_bare =
                matches!(primitive, PrimitiveType::Boolean | PrimitiveType::Int | PrimitiveType::Long);
            if is_bare { text } else { quoted(&text) }
        }
        Type::Struct(fields) => {
            let values = column.as_struct();
            let field = |(field, column): (&Arc<iceberg::spec::NestedField>, &Arc<dyn Array>)| {
                format!("{}:{}", quoted(&field.name), json(&field.field_type, column, row))
            };
            let fields: Vec<String> = fields.fields().iter().zip(values.columns()).map(field).collect();
            format!("{{{}}}", fields.join(","))
        }
        Type::List(list) => {
            let values = column.as_list::<i32>().value(row);
            let element = |at| json(&list.element_field.field_type, &values, at);
            format!("[{}]", (0..values.len()).map(element).collect::<Vec<_>>().join(","))
        }
        Type::Map(map) => {
            let entries = column.as_map().value(row);
            let pair = |at| {
                let key = json(&map.key_field.field_type, entries.column(0), at);
                format!("[{key},{}]", json(&map.value_field.field_type, entries.column(1), at))
            };
            let mut pairs: Vec<String> = (0..entries.len()).map(pair).collect();
            pairs.sort();
            format!("[{}]", pairs.join(","))
        }
    }
}

/// Returns the files `expect*.tsv` of a table, by what stands between.
fn expectations(folder: &Path) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if let Some(what) = name.strip_prefix("expect").and_then(|name| name.strip_suffix("tsv")) {
            let mut lines: Vec<String> =
                fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
            lines.sort();
            found.insert(what.trim_matches('.').to_owned(), lines);
        }
    }
    found
}

/// Chooses what a file of expectations is about; None for what is not read.
fn target(table: &IcebergTable, what: &str) -> Option<ScanTarget> {
    let metadata = table.metadata();
    if what.is_empty() {
        return Some(ScanTarget::current(table));
    }
    if what == "lineage" {
        return None;
    }
    let snapshot = match what.strip_prefix("snapshot-") {
        Some(number) => {
            let number: i64 = number.parse().unwrap();
            metadata.snapshots().find(|snapshot| snapshot.sequence_number() == number).unwrap()
        }
        None => metadata.snapshot_for_ref(what).unwrap(),
    };
    let schema = snapshot.schema(metadata).unwrap();
    Some(ScanTarget { rows: ReadTarget::Snapshot(snapshot.snapshot_id()), schema })
}

/// Reads each of an engine's tables and all that is expected of it. Returns what the README says of each: "equal", or the refusal.
async fn check(engine: &str) -> BTreeMap<String, String> {
    let mut said = BTreeMap::new();
    let mut wrong = Vec::new();
    for entry in fs::read_dir(fixtures().join(engine)).unwrap() {
        let name = entry.unwrap().file_name().to_str().unwrap().to_owned();
        let table = load(engine, &name).await;
        said.insert(name.clone(), "equal".to_owned());
        for (what, expected) in expectations(&fixtures().join(engine).join(&name)) {
            let Some(target) = target(&table, &what) else { continue };
            let read = rows(&table, target.clone(), 1).await;
            if REFUSED.contains(&name.as_str()) && what.is_empty() {
                let error = read.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
                assert!(error.message().contains(&format!("/{engine}/{name}/data/")), "{error}");
                said.insert(name.clone(), "refused by name".to_owned());
                continue;
            }
            match read {
                Ok(read) if read == expected => {
                    assert_eq!(rows(&table, target, 3).await.unwrap(), read, "{engine}.{name} {what}");
                }
                Ok(read) => wrong.push(format!("{engine}.{name} {what}:\n{read:#?}\nnot\n{expected:#?}")),
                Err(error) => wrong.push(format!("{engine}.{name} {what}: {}", causes(&error))),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    said
}

/// Writes the README's table of what we read: a line for each line of the fixtures' own tables.
fn readme_table(said: &BTreeMap<&str, BTreeMap<String, String>>) -> String {
    let mut text = String::from("| written by | a table with … | Lakehead |\n|---|---|---|\n");
    let told = fs::read_to_string(fixtures().join("README.md")).unwrap();
    let (_, told) = told.split_once("\n## Tables\n").unwrap();
    let (told, _) = told.split_once("\n## ").unwrap();
    let mut engine = "";
    let mut named = 0;
    for line in told.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")) {
        let (names, what) = line.split_once(" | ").unwrap();
        if what == "what" {
            engine = names;
            continue;
        }
        let of_engine = &said[engine.to_lowercase().as_str()];
        let mut answers: Vec<&str> =
            names.split(", ").map(|name| of_engine[name.trim_matches('`')].as_str()).collect();
        named += answers.len();
        answers.dedup();
        assert_eq!(
            answers.len(),
            1,
            "one line tells of tables that are read and of such that are not: {names}"
        );
        text.push_str(&format!("| {engine} | {what} | {} |\n", answers[0]));
    }
    assert_eq!(
        named,
        said.values().map(BTreeMap::len).sum::<usize>(),
        "the fixtures' README names each table"
    );
    text
}

fn causes(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[tokio::test]
async fn tables_that_flink_and_spark_wrote_are_read_as_they_read_them() {
    const START: &str = "<!-- generated: iceberg writers -->\n";
    let said = BTreeMap::from([("flink", check("flink").await), ("spark", check("spark").await)]);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let from = readme.find(START).unwrap() + START.len();
    let to = from + readme[from..].find("<!-- end -->").unwrap();
    let expected = format!("{}{}{}", &readme[..from], readme_table(&said), &readme[to..]);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, expected).unwrap();
        return;
    }
    assert!(
        readme == expected,
        "the README's table of Iceberg writers is old: run BLESS=1 cargo test other_engines"
    );
}
