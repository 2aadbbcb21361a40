//! Columns that changed after files were written.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryArray, Int32Array, Int64Array, ListArray, MapArray, RecordBatch,
    StringArray, StructArray, Time64MicrosecondArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType as ArrowType, Field, Schema as ArrowSchema, TimeUnit};
use datafusion::prelude::{col, lit};
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::spec::{
    FormatVersion, ListType, Literal, MapType, NestedField, PrimitiveType, Schema, Struct, StructType,
    Transform, Type, UnboundPartitionSpec,
};

use super::test_table::{DataOptions, TestTable, schema};

fn optional(id: i32, name: &str, column: PrimitiveType) -> NestedField {
    NestedField::optional(id, name, Type::Primitive(column))
}

#[tokio::test]
async fn columns_are_found_by_id_through_rename_move_drop_and_promotion() {
    let decimal = |precision| PrimitiveType::Decimal { precision, scale: 2 };
    let mut table = TestTable::new(
        FormatVersion::V2,
        schema(&[
            ("a", PrimitiveType::Int),
            ("b", PrimitiveType::String),
            ("c", PrimitiveType::Float),
            ("d", decimal(5)),
            ("e", PrimitiveType::Long),
        ]),
    );
    table.append("1|x|1.5|3.25|9\nNULL|NULL|NaN|NULL|8").await;
    table.evolve(vec![
        optional(2, "a", PrimitiveType::String),
        optional(3, "c", PrimitiveType::Double),
        optional(4, "d", decimal(9)),
        optional(1, "b", PrimitiveType::Long),
        // Another column of an old name.
        optional(6, "e", PrimitiveType::String),
    ]);
    table.append("y|2.5|1234567.25|5000000000|new").await;
    let expected = ["NULL|NaN|NULL|NULL|NULL", "x|1.5|3.25|1|NULL", "y|2.5|1234567.25|5000000000|new"];
    assert_eq!(table.rows().await, expected);
    assert_eq!(table.rows_where(col("b").eq(lit(1_i64))).await, [expected[1]]);
    assert_eq!(table.rows_where(col("e").is_null()).await, expected[..2]);
    assert_eq!(table.rows_where(col("a").eq(lit("x"))).await, [expected[1]]);
    assert_eq!(table.rows_where(col("e").eq(lit("new"))).await, [expected[2]]);
}

/// Bytes become text and text bytes, under each other's names.
#[tokio::test]
async fn a_binary_column_may_have_the_name_that_a_text_column_has_in_a_file() {
    let columns = [("a", PrimitiveType::Binary), ("b", PrimitiveType::String)];
    let mut table = TestTable::new(FormatVersion::V2, schema(&columns));
    let bytes: ArrayRef = Arc::new(arrow::array::LargeBinaryArray::from(vec![&[0xFF_u8, 0xFE][..]]));
    let text: ArrayRef = Arc::new(StringArray::from(vec!["text"]));
    let arrow = Arc::new(schema_to_arrow_schema(table.metadata().current_schema()).unwrap());
    let file =
        table.data_of(&RecordBatch::try_new(arrow, vec![bytes, text]).unwrap(), &DataOptions::default());
    table.commit(vec![file], Vec::new()).await;
    table.evolve(vec![optional(2, "a", PrimitiveType::String), optional(1, "b", PrimitiveType::Binary)]);
    assert_eq!(table.rows().await, ["text|fffe"]);
}

#[tokio::test]
async fn rows_from_before_a_column_have_its_initial_default() {
    let mut table = TestTable::new(FormatVersion::V3, schema(&[("id", PrimitiveType::Int)]));
    table.append("1").await;
    let with_default = |id, name: &str, column, default, required| {
        NestedField::new(id, name, Type::Primitive(column), required).with_initial_default(default)
    };
    table.evolve(vec![
        optional(1, "id", PrimitiveType::Int),
        with_default(2, "n", PrimitiveType::Long, Literal::long(7), true),
        with_default(3, "s", PrimitiveType::String, Literal::string("none"), false),
        with_default(4, "t", PrimitiveType::Time, Literal::time(1_500_000), false),
    ]);
    table.append("2|8|NULL|00:00:02").await;
    assert_eq!(table.rows().await, ["1|7|none|00:00:01.500", "2|8|NULL|00:00:02"]);
    assert_eq!(table.rows_where(col("n").eq(lit(7_i64))).await, ["1|7|none|00:00:01.500"]);
    assert_eq!(table.rows_where(col("s").is_null()).await, ["2|8|NULL|00:00:02"]);
}

#[tokio::test]
async fn a_required_column_without_default_must_be_in_the_file() {
    let mut table = TestTable::new(FormatVersion::V2, schema(&[("id", PrimitiveType::Int)]));
    let file = table.append("1").await;
    table.evolve(vec![
        optional(1, "id", PrimitiveType::Int),
        NestedField::required(2, "n", Type::Primitive(PrimitiveType::Int)),
    ]);
    let error = table.frame(1).collect().await.unwrap_err();
    let error = crate::error::Error::from(error);
    assert!(error.message().contains(file.file.file_path()), "{error}");
}

#[tokio::test]
async fn columns_of_identity_partitions_need_not_be_in_the_file() {
    let spec = UnboundPartitionSpec::builder()
        .add_partition_field(2, "region", Transform::Identity)
        .unwrap()
        .add_partition_field(3, "day", Transform::Identity)
        .unwrap()
        .build();
    let columns =
        [("id", PrimitiveType::Int), ("region", PrimitiveType::String), ("day", PrimitiveType::Date)];
    let mut table = TestTable::partitioned(FormatVersion::V2, schema(&columns), spec);
    let options = |region: Option<&str>, day| DataOptions {
        without: vec!["region", "day"],
        ..DataOptions::partition(vec![region.map(Literal::string), Some(Literal::date(day))])
    };
    table.append_with("1|-|2020-01-01", &options(Some("eu"), 18_262)).await;
    table.append_with("2|-|2020-01-01", &options(None, 18_263)).await;
    assert_eq!(table.rows().await, ["1|eu|2020-01-01", "2|NULL|2020-01-02"]);
    assert_eq!(table.rows_where(col("region").eq(lit("eu"))).await, ["1|eu|2020-01-01"]);
    assert_eq!(table.rows_where(col("region").is_null()).await, ["2|NULL|2020-01-02"]);
    assert_eq!(table.frame(1).count().await.unwrap(), 2);
}

#[tokio::test]
async fn files_without_ids_are_read_by_the_name_mapping() {
    let columns = [("id", PrimitiveType::Int), ("name", PrimitiveType::String), ("x", PrimitiveType::Int)];
    let mut table = TestTable::new(FormatVersion::V2, schema(&columns));
    let without_ids = DataOptions { ids: false, ..DataOptions::default() };
    table.append_with("1|a|5\n2|b|6", &without_ids).await;
    // By their place as long as there is no mapping.
    assert_eq!(table.rows().await, ["1|a|5", "2|b|6"]);
    let mapping = r#"[{"field-id": 2, "names": ["id", "title"]}, {"field-id": 1, "names": ["x"]}]"#;
    table.change(|builder| {
        builder
            .set_properties(HashMap::from([("schema.name-mapping.default".to_owned(), mapping.to_owned())]))
    });
    table.evolve(vec![
        optional(1, "id", PrimitiveType::Int),
        optional(2, "name", PrimitiveType::Int),
        optional(3, "x", PrimitiveType::Int),
    ]);
    assert_eq!(table.rows().await, ["5|1|NULL", "6|2|NULL"]);
}

#[tokio::test]
async fn a_file_without_ids_is_mapped_where_its_columns_look_like_the_tables() {
    let columns = [("a", PrimitiveType::Int), ("b", PrimitiveType::Int)];
    let mut table = TestTable::new(FormatVersion::V2, schema(&columns));
    table.append_with("1|2\n3|4", &DataOptions { ids: false, ..DataOptions::default() }).await;
    let mapping = r#"[{"field-id": 2, "names": ["a"]}, {"field-id": 1, "names": ["b"]}]"#;
    table.change(|builder| {
        builder
            .set_properties(HashMap::from([("schema.name-mapping.default".to_owned(), mapping.to_owned())]))
    });
    assert_eq!(table.rows().await, ["2|1", "4|3"]);
}

#[tokio::test]
async fn times_uuids_and_fixed_bytes_have_flinks_forms() {
    let columns = [
        ("t", PrimitiveType::Time),
        ("u", PrimitiveType::Uuid),
        ("f", PrimitiveType::Fixed(2)),
        ("z", PrimitiveType::Timestamptz),
    ];
    let mut table = TestTable::new(FormatVersion::V2, schema(&columns));
    let arrow = Arc::new(schema_to_arrow_schema(table.metadata().current_schema()).unwrap());
    let fixed = |bytes: &[u8]| -> ArrayRef {
        Arc::new(FixedSizeBinaryArray::try_from_iter(std::iter::once(bytes)).unwrap())
    };
    let zoned = arrow::array::TimestampMicrosecondArray::from(vec![1_000_001]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Time64MicrosecondArray::from(vec![1_234_567])),
        fixed(&[7; 16]),
        fixed(&[1, 2]),
        Arc::new(zoned.with_data_type(arrow.field(3).data_type().clone())),
    ];
    let file = table.data_of(&RecordBatch::try_new(arrow, columns).unwrap(), &DataOptions::default());
    table.commit(vec![file], Vec::new()).await;
    let batches = table.frame(1).collect().await.unwrap();
    let types: Vec<ArrowType> =
        batches[0].schema().fields().iter().map(|field| field.data_type().clone()).collect();
    let utc = ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    assert_eq!(types, [ArrowType::Time32(TimeUnit::Millisecond), ArrowType::Binary, ArrowType::Binary, utc]);
    assert_eq!(
        super::test_table::lines(&batches),
        [format!("00:00:01.234|{}|0102|1970-01-01T00:00:01.000001Z", "07".repeat(16))]
    );
}

fn nested_schema() -> Schema {
    let field = |id, name: &str, column| Arc::new(optional(id, name, column));
    let point = StructType::new(vec![field(5, "x", PrimitiveType::Int), field(6, "y", PrimitiveType::Int)]);
    let element = NestedField::list_element(7, Type::Primitive(PrimitiveType::Int), false);
    let list = ListType { element_field: Arc::new(element) };
    let value = StructType::new(vec![field(10, "v", PrimitiveType::String)]);
    let map = MapType {
        key_field: Arc::new(NestedField::map_key_element(8, Type::Primitive(PrimitiveType::String))),
        value_field: Arc::new(NestedField::map_value_element(9, Type::Struct(value), false)),
    };
    Schema::builder()
        .with_fields([
            field(1, "id", PrimitiveType::Int),
            Arc::new(NestedField::optional(2, "p", Type::Struct(point))),
            Arc::new(NestedField::optional(3, "l", Type::List(list))),
            Arc::new(NestedField::optional(4, "m", Type::Map(map))),
        ])
        .build()
        .unwrap()
}

/// One row of everything, and one of NULLs.
fn nested_batch(arrow: &Arc<ArrowSchema>) -> RecordBatch {
    let fields = |data_type: &ArrowType| match data_type {
        ArrowType::Struct(fields) => fields.clone(),
        other => panic!("{other}"),
    };
    let nulls = arrow::buffer::NullBuffer::from(vec![true, false]);
    let point: Vec<ArrayRef> =
        vec![Arc::new(Int32Array::from(vec![1, 0])), Arc::new(Int32Array::from(vec![2, 0]))];
    let point = StructArray::new(fields(arrow.field(1).data_type()), point, Some(nulls.clone()));
    let ArrowType::List(element) = arrow.field(2).data_type() else { panic!() };
    let list = ListArray::new(
        Arc::clone(element),
        OffsetBuffer::from_lengths([2, 0]),
        Arc::new(Int32Array::from(vec![Some(3), None])),
        Some(nulls.clone()),
    );
    let ArrowType::Map(entries, _) = arrow.field(3).data_type() else { panic!() };
    let rows = fields(entries.data_type());
    let value: ArrayRef = Arc::new(StringArray::from(vec!["w"]));
    let value = StructArray::new(fields(rows[1].data_type()), vec![value], None);
    let key: ArrayRef = Arc::new(StringArray::from(vec!["k"]));
    let rows = StructArray::new(rows, vec![key, Arc::new(value)], None);
    let map =
        MapArray::new(Arc::clone(entries), OffsetBuffer::from_lengths([1, 0]), rows, Some(nulls), false);
    let ids: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    RecordBatch::try_new(Arc::clone(arrow), vec![ids, Arc::new(point), Arc::new(list), Arc::new(map)])
        .unwrap()
}

#[tokio::test]
async fn fields_below_columns_are_found_by_id_too() {
    let mut table = TestTable::new(FormatVersion::V3, nested_schema());
    let arrow = Arc::new(schema_to_arrow_schema(table.metadata().current_schema()).unwrap());
    let file = table.data_of(&nested_batch(&arrow), &DataOptions::default());
    table.commit(vec![file], Vec::new()).await;
    let before = ["1|{x: 1, y: 2}|[3, NULL]|{k: {v: w}}", "2|NULL|NULL|NULL"];
    assert_eq!(table.rows().await, before);

    let long = |id, name: &str| Arc::new(optional(id, name, PrimitiveType::Long));
    let late = optional(11, "z", PrimitiveType::String).with_initial_default(Literal::string("zzz"));
    let point = StructType::new(vec![long(6, "a"), Arc::new(late), long(12, "y")]);
    let element = NestedField::list_element(7, Type::Primitive(PrimitiveType::Long), false);
    let value = StructType::new(vec![
        Arc::new(optional(13, "n", PrimitiveType::Int)),
        Arc::new(optional(10, "renamed", PrimitiveType::String)),
    ]);
    let map = MapType {
        key_field: Arc::new(NestedField::map_key_element(8, Type::Primitive(PrimitiveType::String))),
        value_field: Arc::new(NestedField::map_value_element(9, Type::Struct(value), false)),
    };
    table.evolve(vec![
        optional(1, "id", PrimitiveType::Int),
        NestedField::optional(4, "m", Type::Map(map)),
        NestedField::optional(3, "l", Type::List(ListType { element_field: Arc::new(element) })),
        NestedField::optional(2, "p", Type::Struct(point)),
    ]);
    let after = ["1|{k: {n: NULL, renamed: w}}|[3, NULL]|{a: 2, z: zzz, y: NULL}", "2|NULL|NULL|NULL"];
    assert_eq!(table.rows().await, after);
    let point = table.frame(1).select_columns(&["p"]).unwrap().collect().await.unwrap();
    let column = point[0].column(0).as_struct().column(0);
    assert_eq!(column.as_primitive::<arrow::datatypes::Int64Type>(), &Int64Array::from(vec![Some(2), None]));
}

#[tokio::test]
async fn nested_columns_without_ids_are_mapped_by_name() {
    let mut table = TestTable::new(FormatVersion::V2, nested_schema());
    let arrow = without_ids(&schema_to_arrow_schema(table.metadata().current_schema()).unwrap());
    let mut batch = nested_batch(&arrow);
    // A renamed list element: the mapping does not go by its name.
    let ArrowType::List(element) = batch.column(2).data_type() else { panic!() };
    let renamed = Arc::new(element.as_ref().clone().with_name("array"));
    let list = batch.column(2).as_list::<i32>();
    let list = ListArray::new(
        Arc::clone(&renamed),
        list.offsets().clone(),
        Arc::clone(list.values()),
        list.nulls().cloned(),
    );
    let mut fields: Vec<Arc<Field>> = arrow.fields().iter().map(Arc::clone).collect();
    fields[2] = Arc::new(Field::new("l", list.data_type().clone(), true));
    let mut columns = batch.columns().to_vec();
    columns[2] = Arc::new(list);
    batch = RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), columns).unwrap();
    let file = table.data_of(&batch, &DataOptions::default());
    table.commit(vec![file], Vec::new()).await;
    let expected = ["1|{x: 1, y: 2}|[3, NULL]|{k: {v: w}}", "2|NULL|NULL|NULL"];
    assert_eq!(table.rows().await, expected, "by place and, below, by name");
    let mapping = r#"[
        {"field-id": 1, "names": ["id"]},
        {"field-id": 2, "names": ["p"], "fields": [{"field-id": 6, "names": ["x"]}, {"field-id": 5, "names": ["y"]}]},
        {"field-id": 3, "names": ["l"], "fields": [{"field-id": 7, "names": ["element"]}]},
        {"field-id": 4, "names": ["m"], "fields": [
            {"field-id": 8, "names": ["key"]},
            {"field-id": 9, "names": ["value"], "fields": [{"field-id": 10, "names": ["v"]}]}]}
    ]"#;
    table.change(|builder| {
        builder
            .set_properties(HashMap::from([("schema.name-mapping.default".to_owned(), mapping.to_owned())]))
    });
    assert_eq!(table.rows().await, ["1|{x: 2, y: 1}|[3, NULL]|{k: {v: w}}", "2|NULL|NULL|NULL"]);
}

/// Drops the ids of all fields.
fn without_ids(schema: &ArrowSchema) -> Arc<ArrowSchema> {
    fn field(old: &Field) -> Field {
        let below = |fields: &arrow::datatypes::Fields| {
            fields.iter().map(|child| Arc::new(field(child))).collect::<arrow::datatypes::Fields>()
        };
        let data_type = match old.data_type() {
            ArrowType::Struct(fields) => ArrowType::Struct(below(fields)),
            ArrowType::List(element) => ArrowType::List(Arc::new(field(element))),
            ArrowType::Map(entries, sorted) => ArrowType::Map(Arc::new(field(entries)), *sorted),
            other => other.clone(),
        };
        Field::new(old.name(), data_type, old.is_nullable())
    }
    Arc::new(ArrowSchema::new(schema.fields().iter().map(|old| field(old)).collect::<Vec<_>>()))
}

#[tokio::test]
async fn a_partition_value_of_a_promoted_column_is_promoted() {
    let spec =
        UnboundPartitionSpec::builder().add_partition_field(1, "id", Transform::Identity).unwrap().build();
    let columns = [("id", PrimitiveType::Int), ("n", PrimitiveType::Int)];
    let mut table = TestTable::partitioned(FormatVersion::V2, schema(&columns), spec);
    let options = DataOptions {
        without: vec!["id"],
        partition: Struct::from_iter([Some(Literal::int(3))]),
        ..DataOptions::default()
    };
    table.append_with("3|1", &options).await;
    table.evolve(vec![optional(1, "id", PrimitiveType::Long), optional(2, "n", PrimitiveType::Int)]);
    assert_eq!(table.rows().await, ["3|1"]);
    assert_eq!(table.rows_where(col("id").eq(lit(3_i64))).await, ["3|1"]);
    assert_eq!(table.rows_where(col("id").eq(lit(4_i64))).await, Vec::<String>::new());
}
