//! Every type that state can have comes back, as a value and as a key.

use arrow::array::{
    Array, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DurationMillisecondArray,
    FixedSizeBinaryArray, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int32Builder,
    IntervalYearMonthArray, ListBuilder, MapBuilder, NullArray, RecordBatchOptions, StringBuilder,
    StructArray, Time32MillisecondArray, TimestampMicrosecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray, UInt64Array, new_empty_array,
};
use arrow::compute::{concat_batches, interleave, take};

use super::*;

/// Returns a column of each type, with a NULL at the second place and three values.
fn columns() -> Vec<ArrayRef> {
    let mut list = ListBuilder::new(StringBuilder::new());
    list.append_value([Some("a"), None]);
    list.append_null();
    list.append_value([] as [Option<&str>; 0]);
    list.append_value([Some("b")]);
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    map.keys().append_value("x");
    map.values().append_null();
    map.append(true).unwrap();
    map.append(false).unwrap();
    map.append(true).unwrap();
    map.keys().append_value("y");
    map.values().append_value(7);
    map.append(true).unwrap();
    let list: ArrayRef = Arc::new(list.finish());
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("ä"), None, Some(""), Some("long text")]));
    let row = StructArray::try_new(
        vec![
            Arc::new(Field::new("l", list.data_type().clone(), true)),
            Arc::new(Field::new("t", DataType::Utf8, true)),
        ]
        .into(),
        vec![Arc::clone(&list), Arc::clone(&texts)],
        Some(vec![true, false, true, true].into()),
    )
    .unwrap();
    let number = [Some(1), None, Some(-2), Some(3)];
    vec![
        Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true)])),
        Arc::new(Int8Array::from(vec![Some(1), None, Some(i8::MIN), Some(3)])),
        Arc::new(Int16Array::from(vec![Some(1), None, Some(i16::MIN), Some(3)])),
        Arc::new(Int32Array::from(vec![Some(1), None, Some(i32::MIN), Some(3)])),
        Arc::new(Int64Array::from(vec![Some(1), None, Some(i64::MIN), Some(3)])),
        Arc::new(UInt64Array::from(vec![Some(1), None, Some(u64::MAX), Some(3)])),
        Arc::new(Float32Array::from(vec![Some(1.5), None, Some(f32::NAN), Some(-0.0)])),
        Arc::new(Float64Array::from(vec![Some(1.5), None, Some(f64::INFINITY), Some(-0.0)])),
        Arc::new(
            Decimal128Array::from(vec![Some(1), None, Some(-99), Some(i128::MAX / 7)])
                .with_precision_and_scale(38, 18)
                .unwrap(),
        ),
        texts,
        Arc::new(BinaryArray::from_opt_vec(vec![Some(&[0, 255]), None, Some(&[]), Some(b"x")])),
        Arc::new(
            FixedSizeBinaryArray::try_from_sparse_iter_with_size(
                [Some([1, 2]), None, Some([0, 0]), Some([255, 1])].into_iter(),
                2,
            )
            .unwrap(),
        ),
        Arc::new(Date32Array::from(number.to_vec())),
        Arc::new(Time32MillisecondArray::from(vec![Some(1), None, Some(0), Some(86_399_999)])),
        Arc::new(TimestampMillisecondArray::from(number.map(|n| n.map(i64::from)).to_vec())),
        Arc::new(TimestampMicrosecondArray::from(number.map(|n| n.map(i64::from)).to_vec())),
        Arc::new(TimestampNanosecondArray::from(number.map(|n| n.map(i64::from)).to_vec())),
        Arc::new(
            TimestampMillisecondArray::from(number.map(|n| n.map(i64::from)).to_vec()).with_timezone("UTC"),
        ),
        Arc::new(IntervalYearMonthArray::from(number.to_vec())),
        Arc::new(DurationMillisecondArray::from(number.map(|n| n.map(i64::from)).to_vec())),
        list,
        Arc::new(map.finish()),
        Arc::new(row),
    ]
}

fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).unwrap()
}

/// Writes a table over two checkpoints; returns its rows after a restore from the second and from a savepoint.
fn write_twice(
    table: &StateTable,
    first: (&RecordBatch, &RecordBatch),
    second: (&RecordBatch, &RecordBatch),
) -> [RecordBatch; 2] {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), 1, 1);
    for (upserts, deletes) in [first, second] {
        write(&mut store, vec![operator("x", table.clone(), split(table, upserts, deletes, 2))]).unwrap();
    }
    let saved = store.write_savepoint(folder.path()).unwrap().path;
    [store.latest().unwrap(), saved].map(|path| {
        let batches = read(&Restore::open(&path).unwrap(), "x", table, 2);
        concat_batches(&table.schema, &batches).unwrap()
    })
}

#[test]
fn every_type_comes_back_as_a_value() {
    let mut columns = columns();
    columns.push(Arc::new(NullArray::new(4)));
    columns.insert(0, Arc::new(Int64Array::from(vec![10, 11, 12, 13])));
    let fields = columns.iter().enumerate();
    let fields = fields.map(|(at, column)| Field::new(format!("c{at}"), column.data_type().clone(), true));
    let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let table = StateTable { name: "t", schema: Arc::clone(&schema), key_count: 1, derived_from: None };
    let rows = batch(&schema, columns, 4);
    let no_keys = rows.project(&[0]).unwrap().slice(0, 0);
    for restored in write_twice(&table, (&rows, &no_keys), (&rows.slice(1, 2), &no_keys)) {
        let order = arrow::compute::sort_to_indices(restored.column(0), None, None).unwrap();
        for (restored, written) in restored.columns().iter().zip(rows.columns()) {
            assert_eq!(&take(restored, &order, None).unwrap(), written);
        }
    }
}

#[test]
fn every_type_that_can_be_compared_comes_back_as_a_key() {
    for column in columns() {
        if matches!(column.data_type(), DataType::Map(..)) {
            continue;
        }
        let schema = schema(&[("k", column.data_type().clone()), ("v", DataType::Int64)]);
        let table = StateTable { name: "t", schema: Arc::clone(&schema), key_count: 1, derived_from: None };
        let is_boolean = column.data_type() == &DataType::Boolean;
        let keys = if is_boolean { column.slice(0, 3) } else { column };
        let count = keys.len();
        let old: ArrayRef = Arc::new(Int64Array::from_iter_values(0..count as i64));
        let new: ArrayRef = Arc::new(Int64Array::from(vec![70]));
        let all = batch(&schema, vec![Arc::clone(&keys), old], count);
        let changed = batch(&schema, vec![keys.slice(1, 1), new], 1);
        let gone = all.project(&[0]).unwrap().slice(2, 1);
        let restored = write_twice(&table, (&all, &gone.slice(0, 0)), (&changed, &gone));
        for restored in restored {
            let values = restored.column(1).as_primitive::<Int64Type>();
            let order = arrow::compute::sort_to_indices(values, None, None).unwrap();
            let expected: &[i64] = if is_boolean { &[0, 70] } else { &[0, 3, 70] };
            assert_eq!(take(values, &order, None).unwrap().as_primitive::<Int64Type>().values(), expected);
            let places = if is_boolean { vec![(0, 0), (0, 1)] } else { vec![(0, 0), (0, 3), (0, 1)] };
            let expected = interleave(&[keys.as_ref()], &places).unwrap();
            assert_eq!(take(restored.column(0), &order, None).unwrap().to_data(), expected.to_data());
        }
    }
}

#[test]
fn every_nan_is_the_same_key() {
    let schema = schema(&[("k", DataType::Float64), ("v", DataType::Int64)]);
    let table = StateTable { name: "t", schema: Arc::clone(&schema), key_count: 1, derived_from: None };
    let row = |key: f64| {
        let columns: Vec<ArrayRef> =
            vec![Arc::new(Float64Array::from(vec![key])), Arc::new(Int64Array::from(vec![1]))];
        batch(&schema, columns, 1)
    };
    let (nan, other) = (row(f64::NAN), row(-f64::NAN));
    let none = nan.slice(0, 0);
    let no_keys = none.project(&[0]).unwrap();
    let restored = write_twice(&table, (&nan, &no_keys), (&none, &other.project(&[0]).unwrap()));
    assert!(restored.iter().all(|rows| rows.num_rows() == 0));
}

#[test]
fn a_table_of_one_row_needs_no_key_and_one_without_columns_no_values() {
    for columns in [&[("n", DataType::Int64)][..], &[]] {
        let schema = schema(columns);
        let table =
            StateTable { name: "total", schema: Arc::clone(&schema), key_count: 0, derived_from: None };
        let row = |n: i64| {
            let column: ArrayRef = Arc::new(Int64Array::from(vec![n]));
            batch(&schema, columns.iter().map(|_| Arc::clone(&column)).collect(), 1)
        };
        let key = batch(&Arc::new(Schema::empty()), vec![], 1);
        let none = batch(&schema, columns.iter().map(|(_, kind)| new_empty_array(kind)).collect(), 0);
        let no_key = batch(&Arc::new(Schema::empty()), vec![], 0);
        for restored in write_twice(&table, (&row(1), &no_key), (&row(2), &no_key)) {
            assert_eq!(restored, row(2));
        }
        for restored in write_twice(&table, (&row(1), &no_key), (&row(2), &key)) {
            assert_eq!(restored, row(2), "what was deleted and written again is there");
        }
        for restored in write_twice(&table, (&row(1), &no_key), (&none, &key)) {
            assert_eq!(restored.num_rows(), 0);
        }
        for restored in write_twice(&table, (&none, &no_key), (&none, &no_key)) {
            assert_eq!(restored.num_rows(), 0);
        }
    }
}
