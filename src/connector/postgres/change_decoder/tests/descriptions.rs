//! Tables that change while they are read.

use super::*;
use crate::connector::postgres::row_shape::Changes;
use crate::connector::postgres::testing::shape;
use crate::error::ErrorKind;
use crate::schema::TypeRoot::{self, Int};

fn declared() -> RowShape {
    shape(&[("id", Int), ("b", Int)], &[0], Changes::All)
}

fn described(decoder: &mut ChangeDecoder, columns: Described<'_>) -> Result<Vec<String>> {
    describe(decoder, ReplicaIdentity::Full, columns, &built_in_types())
}

#[test]
fn columns_are_found_by_name_wherever_they_stand() {
    let mut decoder = ChangeDecoder::new(declared(), "app");
    described(&mut decoder, &[("b", 23, false), ("other", 25, false), ("id", 23, true)]).unwrap();
    assert_eq!(decoded(&mut decoder, &[insert(&["10", "x", "1"])]), ["+I 1 10"]);
    described(&mut decoder, &[("id", 23, true), ("b", 23, false)]).unwrap();
    assert_eq!(decoded(&mut decoder, &[insert(&["2", "20"])]), ["+I 2 20"]);
}

#[test]
fn a_new_column_is_told_once() {
    let mut decoder = ChangeDecoder::new(declared(), "app");
    let before = [("id", 23, true), ("b", 23, false), ("unread", 25, false)];
    assert!(described(&mut decoder, &before).unwrap().is_empty(), "what was there before is no news");
    let after = [("id", 23, true), ("b", 23, false), ("unread", 25, false), ("c", 25, false)];
    assert_eq!(
        described(&mut decoder, &after).unwrap(),
        ["column 'c' of table public.t is new and c.d.declared does not declare it: it is not read"]
    );
    assert!(described(&mut decoder, &after).unwrap().is_empty());
}

#[test]
fn a_column_that_came_before_the_first_change_is_told() {
    let mut decoder = ChangeDecoder::new(declared(), "app");
    let at_start = [("id", 23, true), ("b", 23, false), ("unread", 25, false)];
    let now = [("id", 23, true), ("b", 23, false), ("unread", 25, false), ("c", 25, false)];
    let mut since =
        || describe_since(&mut decoder, ReplicaIdentity::Full, &at_start, &now, &built_in_types()).unwrap();
    assert_eq!(
        since(),
        ["column 'c' of table public.t is new and c.d.declared does not declare it: it is not read"]
    );
    assert!(since().is_empty());
}

#[test]
fn a_column_that_was_dropped_or_renamed_fails_by_name() {
    let mut decoder = ChangeDecoder::new(declared(), "app");
    described(&mut decoder, &[("id", 23, true), ("b", 23, false)]).unwrap();
    let error = described(&mut decoder, &[("id", 23, true), ("bb", 23, false)]).unwrap_err();
    assert_eq!(error.message(), "table public.t of the server lacks columns that c.d.declared declares: 'b'");
    assert!(error.hint_text().unwrap().contains("It has: id, bb."), "{:?}", error.hint_text());
    assert_eq!(error.kind(), ErrorKind::Validation);
}

#[test]
fn a_column_of_another_type_is_read_while_its_values_are_such() {
    let mut decoder = ChangeDecoder::new(declared(), "app");
    described(&mut decoder, &[("id", 23, true), ("b", 23, false)]).unwrap();
    let notices = described(&mut decoder, &[("id", 23, true), ("b", 25, false)]).unwrap();
    assert_eq!(
        notices,
        [
            "column 'b' of table public.t was int4 and is text now: it is read as INT while its values are such. Rows that were written before keep their old form, also where joins and groups match them with new ones: to read all of them anew, SET 'lakehead.job.resume' = 'resnapshot' and start the job again"
        ]
    );
    assert_eq!(decoded(&mut decoder, &[insert(&["1", "10"])]), ["+I 1 10"]);
    let error = apply(&mut decoder, &insert(&["1", "n10"]), Emits::BOTH).unwrap_err();
    assert_eq!(
        error.message(),
        "value 'n10' of column 'b' in table public.t has type text and cannot be read as INT: it is no whole number"
    );
}

#[test]
fn types_that_never_fit_are_named_with_what_to_declare() {
    let columns = [("id", TypeRoot::Boolean), ("b", TypeRoot::Date), ("c", Int)];
    let mut decoder = ChangeDecoder::new(shape(&columns, &[0], Changes::All), "app");
    let error =
        described(&mut decoder, &[("id", 20, true), ("b", 1007, false), ("c", 3802, false)]).unwrap_err();
    assert_eq!(
        error.message(),
        "columns of table public.t cannot be read as c.d.declared declares them: 'id' has type int8 and is declared as BOOLEAN; 'b' has type int4[] and is declared as DATE; 'c' has type jsonb and is declared as INT"
    );
    assert_eq!(error.hint_text(), Some("Declare 'id' as BIGINT, 'b' as ARRAY<INT>, 'c' as STRING."));
}

#[test]
fn upserts_are_refused_where_the_server_tells_rows_apart_in_another_way() {
    let mut decoder = ChangeDecoder::new(shape(&[("id", Int), ("b", Int)], &[0], Changes::Upsert), "app");
    let types = built_in_types();
    let by_index = [("id", 23, false), ("b", 23, true)];
    let error = describe(&mut decoder, ReplicaIdentity::Index, &by_index, &types).unwrap_err();
    assert_eq!(
        error.message(),
        "the server tells rows of table public.t apart by (b), which lacks columns of the primary key that c.d.declared declares: id"
    );
    assert!(error.hint_text().unwrap().contains("ALTER TABLE \"public\".\"t\" REPLICA IDENTITY FULL"));
    describe(&mut decoder, ReplicaIdentity::Full, &by_index, &types).unwrap();
    // Nothing tells them apart: rows only come.
    describe(&mut decoder, ReplicaIdentity::Nothing, &[("id", 23, false), ("b", 23, false)], &types).unwrap();
}
