//! Deletes of all kinds.

use datafusion::prelude::{col, lit};
use iceberg::spec::{
    FormatVersion, Literal, NestedField, PrimitiveType, Transform, Type, UnboundPartitionSpec,
};
use parquet::file::properties::WriterProperties;

use super::test_table::{DataOptions, TestTable, schema};

fn people(version: FormatVersion) -> TestTable {
    TestTable::new(version, schema(&[("id", PrimitiveType::Long), ("name", PrimitiveType::String)]))
}

fn small_row_groups() -> DataOptions {
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(2));
    DataOptions { properties, ..DataOptions::default() }
}

#[tokio::test]
async fn a_table_without_snapshot_has_no_rows() {
    let table = people(FormatVersion::V2);
    assert_eq!(table.rows().await, Vec::<String>::new());
    assert_eq!(table.frame(1).count().await.unwrap(), 0);
}

#[tokio::test]
async fn position_deletes_leave_out_rows_of_their_files() {
    let mut table = people(FormatVersion::V2);
    let lines = "1|a\n2|b\n3|c\n4|d\n5|e";
    let first = table.append_with(lines, &small_row_groups()).await;
    let second = table.append("6|f\n7|g").await;
    let scoped = table.position_deletes(&[(&first, &[0, 2, 3])], true);
    let shared = table.position_deletes(&[(&first, &[4]), (&second, &[1])], false);
    table.commit(Vec::new(), vec![scoped, shared]).await;
    assert_eq!(table.rows().await, ["2|b", "6|f"]);
    assert_eq!(table.frame(1).count().await.unwrap(), 2);
    assert_eq!(table.rows_where(col("id").gt(lit(2_i64))).await, ["6|f"]);
    assert_eq!(table.rows_where(col("name").eq(lit("a"))).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_file_of_which_all_rows_are_deleted_is_empty() {
    let mut table = people(FormatVersion::V2);
    let file = table.append_with("1|a\n2|b\n3|c", &small_row_groups()).await;
    let deletes = table.position_deletes(&[(&file, &[0, 1, 2])], true);
    table.commit(Vec::new(), vec![deletes]).await;
    assert_eq!(table.rows().await, Vec::<String>::new());
}

#[tokio::test]
async fn position_deletes_of_another_partition_do_not_apply() {
    let spec =
        UnboundPartitionSpec::builder().add_partition_field(2, "name", Transform::Identity).unwrap().build();
    let columns = schema(&[("id", PrimitiveType::Long), ("name", PrimitiveType::String)]);
    let mut table = TestTable::partitioned(FormatVersion::V2, columns, spec);
    let partition = |name: &str| DataOptions::partition(vec![Some(Literal::string(name))]);
    let a = table.append_with("1|a\n2|a", &partition("a")).await;
    let b = table.append_with("3|b\n4|b", &partition("b")).await;
    // Names a file of partition b, but lies in partition a.
    let stray = table.position_deletes(&[(&a, &[0]), (&b, &[0])], false);
    table.commit(Vec::new(), vec![stray]).await;
    assert_eq!(table.rows().await, ["2|a", "3|b", "4|b"]);
}

#[tokio::test]
async fn deletes_apply_to_partitions_from_before_their_column_was_widened() {
    let spec =
        UnboundPartitionSpec::builder().add_partition_field(2, "p", Transform::Identity).unwrap().build();
    let columns = schema(&[("id", PrimitiveType::Long), ("p", PrimitiveType::Int)]);
    let mut table = TestTable::partitioned(FormatVersion::V2, columns, spec);
    let partition = |value: Literal| DataOptions::partition(vec![Some(value)]);
    let narrow = table.append_with("1|5\n2|5\n3|5", &partition(Literal::int(5))).await;
    let long = |id, name| NestedField::optional(id, name, Type::Primitive(PrimitiveType::Long));
    table.evolve(vec![long(1, "id"), long(2, "p")]);
    let wide = table.append_with("4|5\n5|5", &partition(Literal::long(5))).await;
    // The first file says in which partition the deletes are.
    let positions = table.position_deletes(&[(&wide, &[0]), (&narrow, &[1])], false);
    let keys = table.equality_deletes(&["id"], "3", Some(&wide));
    table.commit(Vec::new(), vec![positions, keys]).await;
    assert_eq!(table.rows().await, ["1|5", "5|5"]);
}

#[tokio::test]
async fn older_position_deletes_do_not_apply_to_a_newer_file() {
    let mut table = people(FormatVersion::V2);
    let first = table.data("1|a\n2|b", &DataOptions::default());
    let deletes = table.position_deletes(&[(&first, &[0])], true);
    table.commit(Vec::new(), vec![deletes]).await;
    table.commit(vec![first], Vec::new()).await;
    assert_eq!(table.rows().await, ["1|a", "2|b"]);
}

#[tokio::test]
async fn a_deletion_vector_stands_for_all_positions() {
    let mut table = people(FormatVersion::V3);
    let file = table.append_with("1|a\n2|b\n3|c\n4|d\n5|e", &small_row_groups()).await;
    let vector = table.deletion_vector(&file, &[1, 4]);
    table.commit(Vec::new(), vec![vector]).await;
    assert_eq!(table.rows().await, ["1|a", "3|c", "4|d"]);
    assert_eq!(table.frame(1).count().await.unwrap(), 3);
    // Position deletes from before the upgrade to format 3, which the vector has taken in.
    let old = table.position_deletes(&[(&file, &[0])], true);
    table.commit(Vec::new(), vec![old]).await;
    assert_eq!(table.rows().await, ["1|a", "3|c", "4|d"]);
}

#[tokio::test]
async fn equality_deletes_apply_to_older_rows_only() {
    let mut table = people(FormatVersion::V2);
    table.append("1|a\n2|b\n3|c").await;
    let deletes = table.equality_deletes(&["id"], "2\n9", None);
    let again = table.data("2|B\n4|d", &DataOptions::default());
    table.commit(vec![again], vec![deletes]).await;
    assert_eq!(table.rows().await, ["1|a", "2|B", "3|c", "4|d"]);
    let deletes = table.equality_deletes(&["id"], "2\n3", None);
    table.commit(Vec::new(), vec![deletes]).await;
    assert_eq!(table.rows().await, ["1|a", "4|d"]);
    assert_eq!(table.frame(1).count().await.unwrap(), 2);
    assert_eq!(table.rows_where(col("name").not_eq(lit("a"))).await, ["4|d"]);
}

#[tokio::test]
async fn null_equals_null_in_equality_deletes() {
    let mut table = people(FormatVersion::V2);
    table.append("1|a\nNULL|b\nNULL|NULL\n3|NULL").await;
    let deletes = table.equality_deletes(&["id", "name"], "NULL|b\n1|NULL", None);
    table.commit(Vec::new(), vec![deletes]).await;
    assert_eq!(table.rows().await, ["1|a", "3|NULL", "NULL|NULL"]);
    let deletes = table.equality_deletes(&["name"], "NULL", None);
    table.commit(Vec::new(), vec![deletes]).await;
    assert_eq!(table.rows().await, ["1|a"]);
}

#[tokio::test]
async fn equality_deletes_tell_zeros_apart_and_find_nan() {
    let mut table = TestTable::new(FormatVersion::V2, schema(&[("x", PrimitiveType::Double)]));
    table.append("0.0\n-0.0\nNaN\n1.5").await;
    let deletes = table.equality_deletes(&["x"], "-0.0\nNaN", None);
    table.commit(Vec::new(), vec![deletes]).await;
    assert_eq!(table.rows().await, ["0.0", "1.5"]);
}

#[tokio::test]
async fn equality_deletes_of_a_partition_stay_in_it() {
    let spec =
        UnboundPartitionSpec::builder().add_partition_field(2, "name", Transform::Identity).unwrap().build();
    let columns = schema(&[("id", PrimitiveType::Long), ("name", PrimitiveType::String)]);
    let mut table = TestTable::partitioned(FormatVersion::V2, columns, spec);
    let partition = |name: &str| DataOptions::partition(vec![Some(Literal::string(name))]);
    let a = table.append_with("1|a\n2|a", &partition("a")).await;
    table.append_with("1|b\n2|b", &partition("b")).await;
    let deletes = table.equality_deletes(&["id"], "1", Some(&a));
    table.commit(Vec::new(), vec![deletes]).await;
    assert_eq!(table.rows().await, ["1|b", "2|a", "2|b"]);
}

#[tokio::test]
async fn all_kinds_of_deletes_meet_in_one_file() {
    let mut table = people(FormatVersion::V2);
    let file = table.append_with("1|a\n2|b\n3|c\n4|d\n5|e\n6|f", &small_row_groups()).await;
    let positions = table.position_deletes(&[(&file, &[0, 3])], true);
    let by_id = table.equality_deletes(&["id"], "2\n7", None);
    let by_name = table.equality_deletes(&["name"], "f\nx", None);
    table.commit(Vec::new(), vec![positions, by_id, by_name]).await;
    assert_eq!(table.rows().await, ["3|c", "5|e"]);
    let limited = table.frame(1).limit(0, Some(1)).unwrap().collect().await.unwrap();
    assert_eq!(limited.iter().map(arrow::array::RecordBatch::num_rows).sum::<usize>(), 1);
}

#[tokio::test]
async fn counts_of_deletes_are_no_knowledge_of_rows() {
    let mut table = people(FormatVersion::V2);
    let first = table.append("1|a\n2|b\n3|c").await;
    let second = table.append("4|d\n5|e\n6|f").await;
    // One file for two, as Spark writes them, and two that name the same row.
    let shared = table.position_deletes(&[(&first, &[0, 1]), (&second, &[0, 1])], false);
    let again = table.position_deletes(&[(&first, &[0, 1])], true);
    table.commit(Vec::new(), vec![shared, again]).await;
    let limited = table.frame(1).limit(0, Some(10)).unwrap();
    assert_eq!(limited.count().await.unwrap(), 2);
    assert_eq!(table.frame(1).count().await.unwrap(), 2);
}

#[tokio::test]
async fn keys_are_compared_as_iceberg_has_them_whatever_they_are_read_as() {
    let columns = schema(&[("id", PrimitiveType::Int), ("t", PrimitiveType::Time)]);
    let mut table = TestTable::new(FormatVersion::V2, columns);
    table.append("1|00:00:01.001000\n2|00:00:01.001500").await;
    let deletes = table.equality_deletes(&["t"], "00:00:01.001000", None);
    table.commit(Vec::new(), vec![deletes]).await;
    assert_eq!(table.rows().await.len(), 1);
    assert!(table.rows().await[0].starts_with("2|"));
}

#[tokio::test]
async fn deletes_apply_to_days_of_a_column_that_has_become_a_timestamp() {
    let columns = schema(&[("id", PrimitiveType::Int), ("d", PrimitiveType::Date)]);
    let mut table = TestTable::new(FormatVersion::V3, columns);
    table.append("1|2020-01-01\n2|2020-01-02").await;
    let field = |id, name, of| NestedField::optional(id, name, Type::Primitive(of));
    table.evolve(vec![field(1, "id", PrimitiveType::Int), field(2, "d", PrimitiveType::Timestamp)]);
    let deletes = table.equality_deletes(&["d"], "2020-01-02T00:00:00", None);
    table.commit(Vec::new(), vec![deletes]).await;
    assert_eq!(table.rows().await.len(), 1);
    assert!(table.rows().await[0].starts_with("1|2020-01-01"));
}
