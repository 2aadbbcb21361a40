//! Copies, whole and in pieces, and beside the stream of the same rows.

mod databases;
mod same_cells;

use arrow::array::AsArray;
use arrow::datatypes::{Float32Type, Float64Type};

use super::*;
use crate::connector::postgres::options::Unrepresentable;
use crate::connector::postgres::pgoutput::ReplicaIdentity;
use crate::connector::postgres::row_shape::Changes;
use crate::connector::postgres::table::PgColumn;
use crate::connector::postgres::testing::{built_in_types, pg_texts, shape, with_metadata};
use crate::schema::DataType;
use crate::schema::TypeRoot::{self, BigInt, Double, Float, Int, Timestamp};

/// `public.t`, with columns of types by number.
fn table(columns: &[(&str, u32)]) -> PgTable {
    let column = |(name, type_oid): &(&str, u32)| PgColumn {
        name: (*name).to_owned(),
        type_oid: *type_oid,
        type_modifier: -1,
    };
    PgTable {
        oid: 16_385,
        schema: "public".to_owned(),
        name: "t".to_owned(),
        columns: columns.iter().map(column).collect(),
        key: vec![0],
        identity: ReplicaIdentity::Default,
        is_partitioned: false,
        row_estimate: None,
        pages: 0,
    }
}

fn plan(declared: &[(&str, TypeRoot)], columns: &[(&str, u32)]) -> CopyPlan {
    let shape = shape(declared, &[], Changes::All);
    CopyPlan::new(&shape, &table(columns), &built_in_types(), "app").unwrap()
}

/// Writes a copy of rows of values.
fn copy(rows: &[Vec<Option<Vec<u8>>>]) -> Vec<u8> {
    let mut bytes = [&SIGNATURE[..], &[0; 8]].concat();
    for row in rows {
        bytes.extend_from_slice(&(row.len() as i16).to_be_bytes());
        for value in row {
            match value {
                Some(value) => {
                    bytes.extend_from_slice(&(value.len() as i32).to_be_bytes());
                    bytes.extend_from_slice(value);
                }
                None => bytes.extend_from_slice(&(-1_i32).to_be_bytes()),
            }
        }
    }
    bytes.extend_from_slice(&(-1_i16).to_be_bytes());
    bytes
}

/// Rows of `(id int8, name text, n int4)`, every third with NULLs.
fn sample(count: i64) -> Vec<Vec<Option<Vec<u8>>>> {
    let row = |id: i64| {
        let is_null = id % 3 == 2;
        let name = (!is_null).then(|| format!("name {id}").into_bytes());
        let number = (!is_null).then(|| (id as i32 * 10).to_be_bytes().to_vec());
        vec![Some(id.to_be_bytes().to_vec()), name, number]
    };
    (0..count).map(row).collect()
}

const COLUMNS: [(&str, u32); 3] = [("id", 20), ("name", 25), ("n", 23)];

fn sample_plan() -> CopyPlan {
    plan(&[("id", BigInt), ("name", TypeRoot::STRING), ("n", BigInt)], &COLUMNS)
}

fn rows(batch: &ChangelogBatch) -> Vec<String> {
    let schema = batch.rows().schema();
    let columns: Vec<Vec<Option<String>>> = schema
        .fields()
        .iter()
        .zip(batch.rows().columns())
        .map(|(field, array)| pg_texts(&DataType::from_arrow(field.data_type()).unwrap(), array))
        .collect();
    let row =
        |row: usize| columns.iter().map(|column| column[row].as_deref().unwrap_or("-")).collect::<Vec<_>>();
    (0..batch.row_count()).map(|number| row(number).join("|")).collect()
}

/// Returns what a copy is in pieces of a length.
fn read(plan: &CopyPlan, copy: &[u8], piece: usize) -> Result<Vec<String>> {
    let mut decoder = CopyDecoder::new(plan);
    let mut found = Vec::new();
    for bytes in copy.chunks(piece) {
        decoder.push(&Bytes::copy_from_slice(bytes))?;
        if decoder.row_count() >= 700 {
            let expected = decoder.row_count();
            let batch = decoder.take()?;
            assert_eq!(batch.row_count(), expected);
            assert!(batch.kind_bytes().is_none());
            found.extend(rows(&batch));
        }
    }
    decoder.expect_end()?;
    found.extend(rows(&decoder.take()?));
    assert_eq!((decoder.row_count(), decoder.byte_size()), (0, 0));
    Ok(found)
}

#[test]
fn a_copy_may_be_cut_anywhere() {
    let copy = copy(&sample(2_000));
    let whole = read(&sample_plan(), &copy, copy.len()).unwrap();
    assert_eq!(whole.len(), 2_000);
    assert_eq!(whole[..3], ["0|name 0|0", "1|name 1|10", "2|-|-"]);
    for piece in [1, 2, 7, 19, 64, 4_096] {
        assert_eq!(read(&sample_plan(), &copy, piece).unwrap(), whole, "pieces of {piece} bytes");
    }
}

#[test]
fn copies_that_break_off_or_are_of_another_form_are_refused() {
    let plan = sample_plan();
    let good = copy(&sample(3));
    for end in 0..good.len() {
        let found = read(&plan, &good[..end], 16);
        assert!(found.is_err(), "cut at {end}: {found:?}");
    }
    let mut oids = good.clone();
    oids[12] = 1;
    let mut columns = good.clone();
    columns[20] = 2;
    for bad in [oids, columns, [&good[..], b"x"].concat(), b"id\tname\n1\tone\n2\ttwo\n".to_vec()] {
        let error = read(&plan, &bad, 50).unwrap_err();
        assert!(error.message().starts_with("the copy of table public.t cannot be read: "), "{error}");
    }
}

#[test]
fn types_without_a_form_that_is_read_are_selected_as_the_stream_writes_them() {
    let declared = [
        ("id", BigInt),
        ("m", TypeRoot::Decimal(19, 2)),
        ("a", TypeRoot::STRING),
        ("Odd \"Name", TypeRoot::STRING),
    ];
    let columns = [("Odd \"Name", 869), ("id", 20), ("a", 1007), ("unread", 25), ("m", 790)];
    assert_eq!(
        plan(&declared, &columns).select_list(),
        "t.\"id\"::\"pg_catalog\".\"int8\", t.\"m\"::\"pg_catalog\".\"money\"::pg_catalog.numeric, t.\"a\"::pg_catalog.text, \
         CASE WHEN t.\"Odd \"\"Name\" IS NOT NULL THEN pg_catalog.format('%s', t.\"Odd \"\"Name\") END"
    );
}

#[test]
fn rows_without_columns_are_counted() {
    let plan = plan(&[], &COLUMNS);
    assert_eq!(plan.select_list(), "");
    assert_eq!(read(&plan, &copy(&[vec![], vec![], vec![]]), 5).unwrap().len(), 3);
}

#[test]
fn rows_of_a_snapshot_have_no_time() {
    let shape = with_metadata(shape(&[("id", BigInt)], &[], Changes::AppendOnly));
    let plan = CopyPlan::new(&shape, &table(&COLUMNS), &built_in_types(), "app").unwrap();
    let found = read(&plan, &copy(&[vec![Some(7_i64.to_be_bytes().to_vec())]]), 100).unwrap();
    assert_eq!(found, ["7|1970-01-01 00:00:00+00|app|public|t|+I"]);
}

#[test]
fn a_value_that_does_not_fit_is_named_or_null() {
    let declared = [("id", BigInt), ("n", Int), ("at", Timestamp(6))];
    let columns = [("id", 20), ("n", 20), ("at", 1114)];
    let row = |number: i64, at: i64| {
        let value = |value: i64| Some(value.to_be_bytes().to_vec());
        vec![value(1), value(number), value(at)]
    };
    let read_with = |unrepresentable, number, at| {
        let mut shape = shape(&declared, &[], Changes::All);
        shape.unrepresentable = unrepresentable;
        let plan = CopyPlan::new(&shape, &table(&columns), &built_in_types(), "app").unwrap();
        read(&plan, &copy(&[row(1, 0), row(number, at)]), 1_000)
    };
    let too_large = i64::from(i32::MAX) + 1;
    let error = read_with(Unrepresentable::Fail, too_large, 0).unwrap_err();
    assert_eq!(
        error.message(),
        "value '2147483648' of column 'n' in table public.t has type int8 and cannot be read as INT: it has too many digits"
    );
    let error = read_with(Unrepresentable::Fail, 1, i64::MAX).unwrap_err();
    assert_eq!(
        error.message(),
        "value 'infinity' of column 'at' in table public.t has type timestamp and cannot be read as TIMESTAMP(6): it is infinite"
    );
    let found = read_with(Unrepresentable::Null, too_large, i64::MIN).unwrap();
    assert_eq!(found, ["1|1|2000-01-01 00:00:00", "1|-|-"]);
}

#[test]
fn not_a_number_has_one_form_whatever_computed_it() {
    let plan = plan(&[("f4", Float), ("f8", Double)], &[("f4", 700), ("f8", 701)]);
    // As a server sends 'Infinity' * 0 and 'Infinity' - 'Infinity'.
    let (f4, f8) = (0xffc0_0000_u32.to_be_bytes().to_vec(), 0xfff8_0000_0000_0000_u64.to_be_bytes().to_vec());
    let mut decoder = CopyDecoder::new(&plan);
    decoder.push(&Bytes::from(copy(&[vec![Some(f4), Some(f8)]]))).unwrap();
    let batch = decoder.take().unwrap();
    let columns = batch.rows().columns();
    let bits = (
        columns[0].as_primitive::<Float32Type>().value(0),
        columns[1].as_primitive::<Float64Type>().value(0),
    );
    assert_eq!((bits.0.to_bits(), bits.1.to_bits()), (f32::NAN.to_bits(), f64::NAN.to_bits()));
}

#[test]
fn what_is_missing_or_of_another_type_is_found_before_anything_is_copied() {
    let shape =
        shape(&[("id", BigInt), ("gone", BigInt), ("name", Int), ("also gone", Int)], &[], Changes::All);
    let error = CopyPlan::new(&shape, &table(&COLUMNS), &built_in_types(), "app").unwrap_err();
    assert_eq!(
        error.message(),
        "table public.t of the server lacks columns that c.d.declared declares: 'gone', 'also gone'"
    );
}
