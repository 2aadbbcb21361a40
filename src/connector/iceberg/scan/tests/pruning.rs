//! What conditions rule out, and that nothing is lost by it.

use arrow::array::RecordBatch;
use arrow::datatypes::DataType as ArrowType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use datafusion::prelude::{col, lit};
use iceberg::spec::{
    FormatVersion, Literal, NestedField, PrimitiveType, Transform, Type, UnboundPartitionSpec,
};
use parquet::file::properties::WriterProperties;

use super::ieee::{self, Comparison};
use super::test_table::{DataOptions, TestTable, lines, schema};
use crate::error::Result;

/// Returns how many files a condition leaves.
async fn files(table: &TestTable, condition: Expr) -> usize {
    table.provider().plan(&[condition]).await.unwrap().files.len()
}

fn text(value: &str) -> Expr {
    lit(value)
}

#[tokio::test]
async fn files_are_ruled_out_by_the_bounds_of_columns() {
    let columns = [("id", PrimitiveType::Int), ("s", PrimitiveType::String), ("d", PrimitiveType::Date)];
    let mut table = TestTable::new(FormatVersion::V2, schema(&columns));
    table.append("1|apple|2020-01-01\n5|banana|2020-01-31\nNULL|NULL|2020-01-15").await;
    table.append("10|cherry|2021-01-01\n20|a text of more than sixteen letters|2021-01-31").await;
    table.append("NULL|NULL|NULL").await;
    for (condition, left) in [
        (col("id").gt(lit(5)), 1),
        (col("id").lt_eq(lit(5)), 1),
        (col("id").eq(lit(7)), 0),
        (col("id").in_list(vec![lit(5), lit(20)], false), 2),
        (col("id").is_null(), 2),
        (col("id").is_not_null(), 2),
        (col("id").not_eq(lit(1)), 2),
        (col("s").eq(text("banana")), 2),
        (col("s").gt(text("d")), 0),
        (col("s").eq(text("a text of more than sixteen letterz")), 1),
        (col("s").lt(text("a")), 0),
        (col("d").gt_eq(lit(ScalarValue::Date32(Some(18_600)))), 1),
        (col("id").gt(lit(5)).or(col("s").eq(text("apple"))), 2),
        (col("id").gt(lit(5)).and(col("s").eq(text("zebra"))), 0),
    ] {
        assert_eq!(files(&table, condition.clone()).await, left, "{condition}");
    }
    assert_eq!(table.rows_where(col("id").in_list(vec![lit(5), lit(20)], false)).await.len(), 2);
}

#[tokio::test]
async fn nan_and_the_two_zeros_are_not_lost() {
    let mut table = TestTable::new(FormatVersion::V2, schema(&[("x", PrimitiveType::Double)]));
    table.append("NaN\n1.0\nNULL").await;
    table.append("-0.0").await;
    table.append("0.0").await;
    table.append("NaN").await;
    table.append("inf\n-inf").await;
    let x = |comparison, value: f64| ieee::compare(comparison, col("x"), lit(value));
    for (condition, left, rows) in [
        (x(Comparison::Gt, 2.0), 2, vec!["inf"]),
        (x(Comparison::Lt, 2.0), 5, vec!["-0.0", "-inf", "0.0", "1.0"]),
        (x(Comparison::Eq, 0.0), 4, vec!["-0.0", "0.0"]),
        (x(Comparison::Eq, -0.0), 4, vec!["-0.0", "0.0"]),
        (x(Comparison::GtEq, 0.0), 5, vec!["-0.0", "0.0", "1.0", "inf"]),
        (x(Comparison::LtEq, -0.0), 4, vec!["-0.0", "-inf", "0.0"]),
        (x(Comparison::Gt, 0.0), 3, vec!["1.0", "inf"]),
        (x(Comparison::Lt, 0.0), 2, vec!["-inf"]),
        (x(Comparison::NotEq, 1.0), 5, vec!["-0.0", "-inf", "0.0", "NaN", "NaN", "inf"]),
        (x(Comparison::Eq, f64::NAN), 0, vec![]),
    ] {
        assert_eq!(files(&table, condition.clone()).await, left, "{condition}");
        assert_eq!(table.rows_where(condition.clone()).await, rows, "{condition}");
    }
}

/// The greatest values come from a file whose bounds are the lowest, because bounds leave NaN out.
#[tokio::test]
async fn the_first_rows_of_an_order_are_found_although_bounds_leave_nan_out() {
    let mut table = TestTable::new(FormatVersion::V2, schema(&[("x", PrimitiveType::Double)]));
    let one_row_each = DataOptions {
        properties: WriterProperties::builder().set_max_row_group_row_count(Some(1)),
        ..DataOptions::default()
    };
    table.append_with("100.0\n200.0\n300.0", &one_row_each).await;
    table.append_with("1.0\nNaN\n2.0\n0.0\n-0.0", &one_row_each).await;
    let first = |ascending| {
        let table = &table;
        async move {
            let frame = table.frame(1).sort(vec![col("x").sort(ascending, false)]).unwrap();
            lines(&frame.limit(0, Some(2)).unwrap().collect().await.unwrap())
        }
    };
    assert_eq!(first(false).await, ["NaN", "300.0"]);
    assert_eq!(first(true).await, ["-0.0", "0.0"]);
}

#[tokio::test]
async fn files_are_ruled_out_by_their_partition_through_its_transform() {
    let columns = [
        ("id", PrimitiveType::Long),
        ("s", PrimitiveType::String),
        ("ts", PrimitiveType::Timestamp),
        ("d", PrimitiveType::Date),
    ];
    let by = |id, transform| {
        UnboundPartitionSpec::builder().add_partition_field(id, "p", transform).unwrap().build()
    };
    let micros = |seconds: i64| lit(ScalarValue::TimestampMicrosecond(Some(seconds * 1_000_000), None));
    let day = 86_400;
    let date = |days| lit(ScalarValue::Date32(Some(days)));
    // Bounds are left out of the files, so that only partitions can rule them out.
    for (id, transform, partition, hit, miss) in [
        (1, Transform::Bucket(8), Literal::int(3), col("id").eq(lit(34_i64)), col("id").eq(lit(35_i64))),
        (1, Transform::Truncate(10), Literal::long(30), col("id").lt(lit(31_i64)), col("id").gt(lit(40_i64))),
        (2, Transform::Identity, Literal::string("b"), col("s").gt(text("a")), col("s").lt(text("b"))),
        (
            2,
            Transform::Truncate(2),
            Literal::string("be"),
            col("s").eq(text("bee")),
            col("s").eq(text("bat")),
        ),
        (
            3,
            Transform::Day,
            Literal::int(2),
            col("ts").lt(micros(3 * day)),
            col("ts").lt(micros(2 * day - 1)),
        ),
        (3, Transform::Hour, Literal::int(25), col("ts").gt(micros(day)), col("ts").gt(micros(2 * day))),
        (3, Transform::Month, Literal::int(1), col("ts").eq(micros(32 * day)), col("ts").eq(micros(0))),
        (4, Transform::Year, Literal::int(50), col("d").gt(date(18_262)), col("d").lt(date(18_261))),
    ] {
        let mut table = TestTable::partitioned(FormatVersion::V2, schema(&columns), by(id, transform));
        let mut file = table
            .data("34|bee|1970-01-03 00:00:00|2020-06-01", &DataOptions::partition(vec![Some(partition)]));
        file = without_bounds(&file);
        table.commit(vec![file], Vec::new()).await;
        assert_eq!(files(&table, hit.clone()).await, 1, "{transform}: {hit}");
        assert_eq!(files(&table, miss.clone()).await, 0, "{transform}: {miss}");
        let null =
            Expr::IsNull(Box::new(hit.column_refs().into_iter().next().cloned().map(Expr::Column).unwrap()));
        assert_eq!(files(&table, null).await, 0, "{transform}");
    }
}

/// Drops what a manifest knows of columns.
fn without_bounds(
    file: &crate::connector::iceberg::manifest::TableFile,
) -> crate::connector::iceberg::manifest::TableFile {
    let old = &file.file;
    let mut file_without = iceberg::spec::DataFileBuilder::default();
    file_without
        .content(old.content_type())
        .file_path(old.file_path().to_owned())
        .file_format(old.file_format())
        .file_size_in_bytes(old.file_size_in_bytes())
        .record_count(old.record_count())
        .partition(old.partition().clone())
        .partition_spec_id(file.spec_id);
    crate::connector::iceberg::manifest::TableFile {
        spec_id: file.spec_id,
        file: file_without.build().unwrap(),
    }
}

#[tokio::test]
async fn each_file_is_judged_by_its_own_spec_and_manifests_are_not_read_in_vain() {
    let columns = [("id", PrimitiveType::Long), ("s", PrimitiveType::String)];
    let mut table = TestTable::new(FormatVersion::V2, schema(&columns));
    table.append("1|a\n2|b").await;
    let by_s =
        UnboundPartitionSpec::builder().add_partition_field(2, "s", Transform::Identity).unwrap().build();
    table.change(|builder| builder.add_default_partition_spec(by_s));
    table.append_with("3|b", &DataOptions::partition(vec![Some(Literal::string("b"))])).await;
    let in_c = table.append_with("4|c", &DataOptions::partition(vec![Some(Literal::string("c"))])).await;
    assert_eq!(files(&table, col("s").eq(text("b"))).await, 2);
    assert_eq!(table.rows_where(col("s").eq(text("b"))).await, ["2|b", "3|b"]);
    // The last manifest lists only partition c: without it the query works.
    std::fs::remove_file(table.path("metadata/m6.avro")).unwrap();
    assert_eq!(table.rows_where(col("s").eq(text("b"))).await, ["2|b", "3|b"]);
    let planned = table.provider().plan(&[col("s").eq(text("b"))]).await.unwrap();
    assert_eq!((planned.files.len(), planned.files_total), (2, 3));
    assert!(table.frame(1).collect().await.is_err(), "{}", in_c.file.file_path());
}

async fn plan_text(table: &TestTable, condition: Option<Expr>, column: &str) -> String {
    let mut frame = table.frame(1);
    if let Some(condition) = condition {
        frame = frame.filter(condition).unwrap();
    }
    let plan = frame.select_columns(&[column]).unwrap().create_physical_plan().await.unwrap();
    displayable(plan.as_ref()).indent(false).to_string()
}

/// Runs an aggregation and returns its row, and whether it was answered without a scan.
async fn aggregated(table: &TestTable, calls: Vec<Expr>) -> Result<(String, bool)> {
    let frame = table.frame(1).aggregate(Vec::new(), calls)?;
    let task = std::sync::Arc::new(frame.task_ctx());
    let plan = frame.create_physical_plan().await?;
    let is_scan = |plan: &std::sync::Arc<dyn ExecutionPlan>| {
        displayable(plan.as_ref()).indent(false).to_string().contains("DataSourceExec")
    };
    let scans = is_scan(&plan);
    let batches: Vec<RecordBatch> = datafusion::physical_plan::collect(plan, task).await?;
    Ok((lines(&batches).join(";"), !scans))
}

#[tokio::test]
async fn exact_numbers_are_answered_from_metadata() {
    use datafusion::functions_aggregate::expr_fn::{count, max, min};
    let columns = [
        ("id", PrimitiveType::Int),
        ("s", PrimitiveType::String),
        ("x", PrimitiveType::Double),
        ("d", PrimitiveType::Date),
    ];
    let mut table = TestTable::new(FormatVersion::V2, schema(&columns));
    table.append("1|a|1.5|2020-01-01\n7|b|NaN|NULL").await;
    let second = table.append("NULL|c|2.5|NULL").await;
    let star = || count(lit(1_i64));
    let all = vec![star(), count(col("id")), min(col("id")), max(col("id")), min(col("d")), max(col("d"))];
    let expected = "3|2|1|7|2020-01-01|2020-01-01".to_owned();
    assert_eq!(aggregated(&table, all.clone()).await.unwrap(), (expected.clone(), true));
    // Texts may be cut, and NaN is the greatest double.
    let scanned = vec![max(col("s"))];
    assert_eq!(aggregated(&table, scanned).await.unwrap(), ("c".to_owned(), false));
    let scanned = vec![max(col("x"))];
    assert_eq!(aggregated(&table, scanned).await.unwrap(), ("NaN".to_owned(), false));
    // What was deleted may have been the greatest.
    let deletes = table.position_deletes(&[(&second, &[0])], true);
    table.commit(Vec::new(), vec![deletes]).await;
    assert_eq!(aggregated(&table, vec![star()]).await.unwrap(), ("2".to_owned(), false));
    let expected = "2|2|1|7|2020-01-01|2020-01-01".to_owned();
    assert_eq!(aggregated(&table, all).await.unwrap(), (expected, false));
}

#[tokio::test]
async fn deletion_vectors_leave_counts_exact() {
    use datafusion::functions_aggregate::expr_fn::{count, max};
    let mut table = TestTable::new(FormatVersion::V3, schema(&[("id", PrimitiveType::Int)]));
    let file = table.append("1\n2\n3").await;
    let vector = table.deletion_vector(&file, &[2]);
    table.commit(Vec::new(), vec![vector]).await;
    assert_eq!(aggregated(&table, vec![count(lit(1_i64))]).await.unwrap(), ("2".to_owned(), true));
    assert_eq!(aggregated(&table, vec![max(col("id"))]).await.unwrap(), ("2".to_owned(), false));
}

#[tokio::test]
async fn a_column_added_later_has_no_exact_bounds() {
    use datafusion::functions_aggregate::expr_fn::{count, max};
    let mut table = TestTable::new(FormatVersion::V2, schema(&[("id", PrimitiveType::Int)]));
    table.append("1\n2").await;
    let optional = |id, name: &str| NestedField::optional(id, name, Type::Primitive(PrimitiveType::Int));
    table.evolve(vec![optional(1, "id"), optional(2, "n")]);
    table.append("3|5").await;
    let calls = vec![count(col("n")), max(col("n"))];
    assert_eq!(aggregated(&table, calls).await.unwrap(), ("1|5".to_owned(), false));
    assert_eq!(aggregated(&table, vec![max(col("id"))]).await.unwrap(), ("3".to_owned(), true));
}

#[tokio::test]
async fn the_reader_takes_conditions_that_cannot_fail() {
    let columns = [("id", PrimitiveType::Int), ("x", PrimitiveType::Double), ("s", PrimitiveType::String)];
    let mut table = TestTable::new(FormatVersion::V2, schema(&columns));
    table.append("1|1.5|7\n2|NaN|8").await;
    let plan = plan_text(&table, Some(col("id").gt_eq(lit(2))), "id").await;
    assert!(!plan.contains("FilterExec") && plan.contains("predicate="), "{plan}");
    // What all rows fulfil is not worth the reader's time, but may rule out files all the same.
    let plan = plan_text(&table, Some(col("id").gt_eq(lit(1))), "id").await;
    assert!(plan.contains("FilterExec") && plan.contains("predicate="), "{plan}");
    let ieee = ieee::compare(Comparison::Gt, col("x"), lit(1.0));
    let plan = plan_text(&table, Some(ieee), "id").await;
    assert!(!plan.contains("FilterExec") && plan.contains("inf"), "{plan}");
    let fallible = datafusion::prelude::cast(col("s"), ArrowType::Int32).eq(lit(7));
    let plan = plan_text(&table, Some(fallible.and(col("id").gt(lit(0)))), "id").await;
    assert!(plan.contains("FilterExec") && plan.contains("predicate="), "{plan}");
}

#[tokio::test]
async fn a_limit_counts_rows_that_are_left() {
    let mut table = TestTable::new(FormatVersion::V2, schema(&[("id", PrimitiveType::Int)]));
    let one_row_each = DataOptions {
        properties: WriterProperties::builder().set_max_row_group_row_count(Some(2)),
        ..DataOptions::default()
    };
    let file = table.append_with("1\n2\n3\n4\n5\n6\n7\n8", &one_row_each).await;
    let deletes = table.position_deletes(&[(&file, &[0, 2, 3, 5])], true);
    table.commit(Vec::new(), vec![deletes]).await;
    let keys = table.equality_deletes(&["id"], "2", None);
    table.commit(Vec::new(), vec![keys]).await;
    for (limit, rows) in [(1, vec!["5"]), (2, vec!["5", "7"]), (9, vec!["5", "7", "8"])] {
        let frame = table.frame(1).filter(col("id").gt(lit(0))).unwrap().limit(0, Some(limit)).unwrap();
        assert_eq!(lines(&frame.collect().await.unwrap()), rows);
        let frame = table.frame(1).limit(0, Some(limit)).unwrap();
        assert_eq!(lines(&frame.collect().await.unwrap()), rows);
    }
}
