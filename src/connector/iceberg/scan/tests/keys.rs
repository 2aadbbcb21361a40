//! Keys with the positions of their rows.

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch, StringArray};
use futures::TryStreamExt;
use iceberg::spec::{FormatVersion, NestedField, PrimitiveType, Type};
use parquet::file::properties::WriterProperties;

use super::test_table::{DataOptions, TestTable, schema};
use crate::connector::iceberg::scan::key_reader::KeyRows;
use crate::connector::iceberg::scan::{live_files, read_keys};

fn table(version: FormatVersion) -> TestTable {
    let columns =
        [("id", PrimitiveType::Long), ("name", PrimitiveType::String), ("part", PrimitiveType::Int)];
    TestTable::new(version, schema(&columns))
}

fn options() -> DataOptions {
    let properties =
        WriterProperties::builder().set_max_row_group_row_count(Some(3)).set_bloom_filter_enabled(true);
    DataOptions { properties, ..DataOptions::default() }
}

async fn read(table: &TestTable, ids: &[i32], wanted: Option<RecordBatch>) -> Vec<KeyRows> {
    let table = table.table();
    let files: Arc<[_]> = live_files(&table, None).await.unwrap().into();
    let mut rows: Vec<KeyRows> = read_keys(&table, files, ids, wanted).try_collect().await.unwrap();
    rows.sort_by_key(|rows| (rows.file, rows.positions.value(0)));
    rows
}

fn lines(rows: &[KeyRows]) -> Vec<String> {
    let mut lines = Vec::new();
    for rows in rows {
        let keys = super::test_table::lines(std::slice::from_ref(&rows.keys));
        lines.extend(
            rows.positions.values().iter().zip(keys).map(|(at, key)| format!("{}:{at} {key}", rows.file)),
        );
    }
    lines
}

#[tokio::test]
async fn deleted_rows_are_left_out_and_others_keep_their_positions() {
    let mut table = table(FormatVersion::V2);
    let first = table.append_with("1|a|0\n2|b|0\n3|c|0\n4|d|0\n5|e|0\nNULL|f|0\n7|g|0", &options()).await;
    table.append("8|h|1").await;
    let positions = table.position_deletes(&[(&first, &[1, 3, 4, 5])], true);
    let keys = table.equality_deletes(&["name"], "a\nh", None);
    table.commit(Vec::new(), vec![positions, keys]).await;
    assert_eq!(lines(&read(&table, &[1, 2], None).await), ["0:2 3|c", "0:6 7|g"]);
    assert_eq!(lines(&read(&table, &[3, 1], None).await), ["0:2 0|3", "0:6 0|7"]);
}

#[tokio::test]
async fn rows_left_by_a_deletion_vector_keep_their_positions() {
    let mut table = table(FormatVersion::V3);
    let first = table.append_with("1|a|0\n2|b|0\n3|c|0\n4|d|0", &options()).await;
    let vector = table.deletion_vector(&first, &[0, 1, 2]);
    table.commit(Vec::new(), vec![vector]).await;
    assert_eq!(lines(&read(&table, &[1], None).await), ["0:3 4"]);
}

#[tokio::test]
async fn row_groups_without_a_wanted_key_are_passed_over() {
    let mut table = table(FormatVersion::V2);
    table.append_with("1|a|0\n3|b|0\n5|c|0\n10|a|0\n12|b|0\n14|c|0", &options()).await;
    table.append_with("100|a|0", &options()).await;
    let wanted =
        |ids: Vec<i64>| RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(ids)) as _)]).unwrap();
    let ids = |ids: Vec<i64>| {
        let (table, wanted) = (&table, wanted(ids));
        async move { lines(&read(table, &[1], Some(wanted)).await) }
    };
    assert_eq!(ids(vec![12]).await, ["0:3 10", "0:4 12", "0:5 14"]);
    // Between the bounds, but not in the filter.
    assert_eq!(ids(vec![11, 4]).await, Vec::<String>::new());
    assert_eq!(ids(vec![7, 200]).await, Vec::<String>::new());
    assert_eq!(ids(vec![100, 5]).await, ["0:0 1", "0:1 3", "0:2 5", "1:0 100"]);
    let names = Arc::new(StringArray::from(vec!["b"])) as _;
    let both =
        RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(vec![14])) as _), ("name", names)]);
    assert_eq!(lines(&read(&table, &[1, 2], Some(both.unwrap())).await).len(), 3, "filters know no pairs");
}

#[tokio::test]
async fn keys_of_renamed_and_widened_columns_are_those_of_the_current_schema() {
    let mut table = table(FormatVersion::V2);
    table.append("1|a|7").await;
    table.evolve(vec![
        NestedField::optional(3, "region", Type::Primitive(PrimitiveType::Long)),
        NestedField::optional(1, "number", Type::Primitive(PrimitiveType::Long)),
        NestedField::optional(4, "late", Type::Primitive(PrimitiveType::String)),
    ]);
    let rows = read(&table, &[3, 4, 1], None).await;
    assert_eq!(lines(&rows), ["0:0 7|NULL|1"]);
    let names: Vec<_> = rows[0].keys.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["region", "late", "number"]);
    let region = Arc::new(Int64Array::from(vec![7])) as _;
    let wanted = RecordBatch::try_from_iter([("region", region)]).unwrap();
    assert_eq!(lines(&read(&table, &[3], Some(wanted)).await), ["0:0 7"]);
}

#[tokio::test]
async fn a_missing_file_ends_the_keys_with_its_name() {
    let mut table = table(FormatVersion::V2);
    table.append("1|a|7").await;
    let file = table.append("2|b|7").await;
    std::fs::remove_file(file.file.file_path()).unwrap();
    let loaded = table.table();
    let files: Arc<[_]> = live_files(&loaded, None).await.unwrap().into();
    let rows = read_keys(&loaded, files, &[1], None);
    let error = rows.try_collect::<Vec<_>>().await.unwrap_err();
    assert!(error.message().contains(file.file.file_path()), "{error}");
    assert!(error.message().ends_with("is missing"), "{error}");
}
