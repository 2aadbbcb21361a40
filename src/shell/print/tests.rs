//! Whole tables against what Flink 2.3 printed.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringArray,
};
use chrono_tz::Tz;

use super::*;
use crate::changelog::RowKind;
use crate::schema::TypeRoot;

const SETTINGS: PrintSettings = PrintSettings { max_column_width: 30, zone: Tz::UTC };

type Column = (&'static str, TypeRoot, ArrayRef);

fn table(columns: Vec<Column>) -> (Arc<Vec<ResultColumn>>, RecordBatch) {
    let result: Vec<ResultColumn> = columns
        .iter()
        .map(|(name, root, _)| ResultColumn { name: (*name).to_owned(), data_type: root.clone().nullable() })
        .collect();
    let rows = RecordBatch::try_from_iter(columns.into_iter().map(|(name, _, array)| (name, array))).unwrap();
    (Arc::new(result), rows)
}

fn ints(values: impl Into<Int32Array>) -> ArrayRef {
    Arc::new(values.into())
}

fn texts(values: Vec<Option<&str>>) -> ArrayRef {
    Arc::new(StringArray::from(values))
}

fn batch(format: OutputFormat, columns: Vec<Column>) -> String {
    let (columns, rows) = table(columns);
    print(format, &columns, false, vec![ChangelogBatch::inserts(rows)])
}

fn streaming(format: OutputFormat, columns: Vec<Column>, kinds: &[RowKind]) -> String {
    let (columns, rows) = table(columns);
    print(format, &columns, true, vec![ChangelogBatch::with_kinds(rows, kinds.iter().copied())])
}

fn print(
    format: OutputFormat,
    columns: &Arc<Vec<ResultColumn>>,
    is_streaming: bool,
    batches: Vec<ChangelogBatch>,
) -> String {
    let mut out = String::new();
    let mut printer = query_printer(format, columns, is_streaming, SETTINGS);
    printer.begin(&mut out);
    batches.into_iter().for_each(|batch| printer.rows(batch, &mut out).unwrap());
    printer.finish(&mut out);
    out
}

fn names_and_counts() -> Vec<Column> {
    vec![
        ("name", TypeRoot::STRING, texts(vec![Some("Bob"), Some("Bob"), None])),
        ("n", TypeRoot::BigInt, Arc::new(Int64Array::from(vec![1, 1, 2]))),
    ]
}

const UPDATE: &[RowKind] = &[RowKind::Insert, RowKind::UpdateBefore, RowKind::UpdateAfter];

#[test]
fn batch_widths_come_from_content() {
    let printed = batch(
        OutputFormat::Tableau,
        vec![
            ("id", TypeRoot::Int, ints(vec![1, 22, 333])),
            ("name", TypeRoot::STRING, texts(vec![Some("one"), Some("twenty-two"), None])),
        ],
    );
    assert_eq!(
        printed,
        "+-----+------------+\n\
         |  id |       name |\n\
         +-----+------------+\n\
         |   1 |        one |\n\
         |  22 | twenty-two |\n\
         | 333 |     <NULL> |\n\
         +-----+------------+\n"
    );
}

#[test]
fn wide_characters_and_line_breaks_are_printed_as_flink_does() {
    let printed = batch(
        OutputFormat::Tableau,
        vec![
            ("wide", TypeRoot::STRING, texts(vec![Some("日本語")])),
            ("accent", TypeRoot::STRING, texts(vec![Some("naïve")])),
            ("emoji", TypeRoot::STRING, texts(vec![Some("🚀")])),
            ("a", TypeRoot::STRING, texts(vec![Some("two\nlines")])),
        ],
    );
    assert_eq!(
        printed,
        "+--------+--------+-------+-----------+\n\
         |   wide | accent | emoji |         a |\n\
         +--------+--------+-------+-----------+\n\
         | 日本語 |  naïve |   🚀 | two\nlines |\n\
         +--------+--------+-------+-----------+\n"
    );
}

#[test]
fn a_batch_query_cuts_cells_and_headers_and_show_does_not() {
    let name = "a_column_name_that_is_longer_than_thirty_characters";
    let column = || vec![(name, TypeRoot::STRING, texts(vec![Some("x")]))];
    assert_eq!(
        batch(OutputFormat::Tableau, column()),
        "+--------------------------------+\n\
         | a_column_name_that_is_longe... |\n\
         +--------------------------------+\n\
         |                              x |\n\
         +--------------------------------+\n"
    );
    let (columns, rows) = table(column());
    let mut out = String::new();
    print_table(OutputFormat::Tableau, &ResultTable { columns, rows }, Tz::UTC, &mut out).unwrap();
    assert!(out.contains(&format!("| {name} |")));
}

#[test]
fn show_prints_null_as_nothing_and_nothing_without_rows() {
    let (columns, rows) = table(vec![("key", TypeRoot::STRING, texts(vec![None]))]);
    let mut out = String::new();
    let shown = ResultTable { columns, rows };
    print_table(OutputFormat::Tableau, &shown, Tz::UTC, &mut out).unwrap();
    assert_eq!(out, "+-----+\n| key |\n+-----+\n|     |\n+-----+\n");
    out.clear();
    print_table(
        OutputFormat::Tableau,
        &ResultTable { rows: shown.rows.slice(0, 0), ..shown },
        Tz::UTC,
        &mut out,
    )
    .unwrap();
    assert_eq!(out, "");
}

#[test]
fn streaming_widths_come_from_types() {
    let printed = streaming(OutputFormat::Tableau, names_and_counts(), UPDATE);
    assert_eq!(
        printed,
        "+----+--------------------------------+----------------------+\n\
         | op |                           name |                    n |\n\
         +----+--------------------------------+----------------------+\n\
         | +I |                            Bob |                    1 |\n\
         | -U |                            Bob |                    1 |\n\
         | +U |                         <NULL> |                    2 |\n\
         +----+--------------------------------+----------------------+\n"
    );
}

#[test]
fn a_stream_without_rows_has_no_closing_line() {
    let printed = streaming(OutputFormat::Tableau, vec![("id", TypeRoot::Int, ints(Vec::<i32>::new()))], &[]);
    assert_eq!(printed, "+----+-------------+\n| op |          id |\n+----+-------------+\n");
}

#[test]
fn csv_has_a_header_and_the_kind_as_its_first_field() {
    assert_eq!(
        streaming(OutputFormat::Csv, names_and_counts(), UPDATE),
        "op,name,n\n+I,Bob,1\n-U,Bob,1\n+U,,2\n"
    );
    assert_eq!(batch(OutputFormat::Csv, names_and_counts()), "name,n\nBob,1\nBob,1\n,2\n");
}

#[test]
fn json_keeps_numbers_booleans_and_null() {
    let columns = || {
        let decimal = Decimal128Array::from(vec![12_345_i128]).with_precision_and_scale(5, 3).unwrap();
        vec![
            ("b", TypeRoot::Boolean, Arc::new(BooleanArray::from(vec![true])) as ArrayRef),
            ("d", TypeRoot::Decimal(5, 3), Arc::new(decimal) as ArrayRef),
            ("s", TypeRoot::STRING, texts(vec![Some("a\"b")])),
            ("n", TypeRoot::Int, ints(vec![None])),
        ]
    };
    let object = r#"{"b":true,"d":12.345,"s":"a\"b","n":null}"#;
    assert_eq!(batch(OutputFormat::Jsonl, columns()), format!("{object}\n"));
    assert_eq!(batch(OutputFormat::Json, columns()), format!("[\n {object}\n]\n"));
    let changes = streaming(OutputFormat::Jsonl, names_and_counts(), UPDATE);
    assert_eq!(changes.lines().nth(1), Some(r#"{"op":"-U","name":"Bob","n":1}"#));
    let parsed: serde_json::Value =
        serde_json::from_str(&batch(OutputFormat::Json, names_and_counts())).unwrap();
    assert_eq!(parsed[2]["name"], serde_json::Value::Null);
    assert_eq!(batch(OutputFormat::Json, vec![("id", TypeRoot::Int, ints(Vec::<i32>::new()))]), "[]\n");
}

#[test]
fn markdown_and_boxes_are_drawn() {
    assert_eq!(
        batch(OutputFormat::Markdown, vec![("a", TypeRoot::STRING, texts(vec![Some("x|y")]))]),
        "| a    |\n|------|\n| x\\|y |\n"
    );
    let boxed = batch(OutputFormat::Box, names_and_counts());
    assert!(boxed.starts_with('┌') && boxed.contains("Bob"), "{boxed}");
    let text = "x".repeat(80) + "|\ny";
    let column = ("a|b", TypeRoot::STRING, texts(vec![Some(&text)]));
    let changes = streaming(OutputFormat::Markdown, vec![column], &[RowKind::Delete]);
    let expected = format!("| op | a\\|b |\n|----|---|\n| -D | {}\\|<br>y |\n", "x".repeat(80));
    assert_eq!(changes, expected, "nothing is cut");
}
