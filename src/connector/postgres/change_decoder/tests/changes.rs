//! What changes become in each mode, with each kind of old row.

use super::*;
use crate::connector::postgres::options::Unrepresentable;
use crate::connector::postgres::pgoutput::TupleValue;
use crate::connector::postgres::row_shape::Changes;
use crate::connector::postgres::testing::{shape, with_metadata};
use crate::schema::TypeRoot::{self, Int};

fn declared(changes: Changes) -> RowShape {
    shape(&[("id", Int), ("a", TypeRoot::STRING), ("b", Int)], &[0], changes)
}

/// Changes with whole old rows, one of them of a key.
fn full_changes() -> Vec<Vec<u8>> {
    vec![
        insert(&["1", "one", "10"]),
        update_from(b'O', &["1", "one", "10"], &["1", "one", NULL]),
        update_from(b'O', &["1", "one", NULL], &["2", "one", NULL]),
        delete(b'O', &["2", "one", NULL]),
    ]
}

/// The same with keys.
fn key_changes() -> Vec<Vec<u8>> {
    vec![
        insert(&["1", "one", "10"]),
        update(&["1", "one", NULL]),
        update_from(b'K', &["1", NULL, NULL], &["2", "one", NULL]),
        delete(b'K', &["2", NULL, NULL]),
    ]
}

#[test]
fn an_update_takes_back_the_row_before_and_a_changed_key_deletes_it() {
    let mut decoder = decoder(declared(Changes::All), ReplicaIdentity::Full);
    assert_eq!(
        decoded(&mut decoder, &full_changes()),
        [
            "+I 1 one 10",
            "-U 1 one 10",
            "+U 1 one <null>",
            "-D 1 one <null>",
            "+I 2 one <null>",
            "-D 2 one <null>"
        ]
    );
    assert_eq!(decoder.byte_size(), 0);
    assert!(decoder.finish().unwrap().is_none());
}

#[test]
fn rows_before_are_left_out_where_nobody_reads_them() {
    let mut shape = declared(Changes::All);
    shape.wants_update_before = false;
    let mut decoder = decoder(shape, ReplicaIdentity::Full);
    let expected =
        ["+I 1 one 10", "+U 1 one <null>", "-D 1 one <null>", "+I 2 one <null>", "-D 2 one <null>"];
    assert_eq!(decoded(&mut decoder, &full_changes()), expected);
}

#[test]
fn upserts_need_no_more_than_keys() {
    let mut decoder = decoder(declared(Changes::Upsert), ReplicaIdentity::Default);
    let expected =
        ["+I 1 one 10", "+U 1 one <null>", "-D 1 <null> <null>", "+I 2 one <null>", "-D 2 <null> <null>"];
    assert_eq!(decoded(&mut decoder, &key_changes()), expected);
}

#[test]
fn the_key_that_came_although_it_did_not_change_makes_no_delete() {
    // The server also sends the old key where it is kept outside of the row.
    let mut decoder = decoder(declared(Changes::Upsert), ReplicaIdentity::Default);
    let change = update_from(b'K', &["1", NULL, NULL], &["1", "uno", "1"]);
    assert_eq!(decoded(&mut decoder, &[change]), ["+U 1 uno 1"]);
}

#[test]
fn appended_rows_are_inserts_that_say_what_they_were() {
    let mut shape = with_metadata(declared(Changes::AppendOnly));
    shape.metadata.retain(|metadata| metadata.key() == "row_kind");
    shape.wants_update_before = true;
    let mut all = decoder(shape.clone(), ReplicaIdentity::Full);
    let found = decoded(&mut all, &full_changes());
    let kinds: Vec<&str> = found.iter().map(|row| row.rsplit(' ').next().unwrap()).collect();
    assert_eq!(kinds, ["+I", "-U", "+U", "-D", "+I", "-D"]);
    assert!(found.iter().all(|row| row.starts_with("+I ")), "{found:?}");
    shape.wants_update_before = false;
    let mut upserts = decoder(shape, ReplicaIdentity::Default);
    let found = decoded(&mut upserts, &key_changes());
    assert_eq!(found[1], "+I 1 one <null> +U");
    assert_eq!(found.last().unwrap(), "+I 2 <null> <null> -D");
}

#[test]
fn an_old_row_that_is_needed_and_not_sent_fails_in_flinks_words() {
    for change in [update(&["1", "one", "1"]), delete(b'K', &["1", NULL, NULL])] {
        let mut decoder = decoder(declared(Changes::All), ReplicaIdentity::Default);
        let error = apply(&mut decoder, &change, Emits::BOTH).unwrap_err();
        assert_eq!(
            error.message(),
            "The \"before\" field of UPDATE/DELETE message is null, please check the Postgres table has been set REPLICA IDENTITY to FULL level. You can update the setting by running the command in Postgres 'ALTER TABLE public.t REPLICA IDENTITY FULL'."
        );
        assert!(error.hint_text().unwrap().contains("'changelog-mode' = 'upsert'"));
    }
}

#[test]
fn a_side_that_the_snapshot_holds_is_not_emitted() {
    let old_only = Emits { old: true, new: false };
    let new_only = Emits { old: false, new: true };
    let neither = Emits { old: false, new: false };
    let key = update_from(b'O', &["1", "one", "1"], &["2", "one", "1"]);
    let row = update_from(b'O', &["1", "one", "1"], &["1", "one", "2"]);
    for (change, emits, expected) in [
        (&key, old_only, vec!["-D 1 one 1"]),
        (&key, new_only, vec!["+I 2 one 1"]),
        (&key, neither, vec![]),
        (&row, neither, vec![]),
        (&row, Emits::BOTH, vec!["-U 1 one 1", "+U 1 one 2"]),
    ] {
        let mut decoder = decoder(declared(Changes::All), ReplicaIdentity::Full);
        apply(&mut decoder, change, emits).unwrap();
        assert_eq!(decoder.finish().unwrap().map_or_else(Vec::new, |batch| rows(&batch)), expected);
    }
}

#[test]
fn a_row_that_moved_between_chunks_is_neither_doubled_nor_lost() {
    let change = update_from(b'O', &["1", "left", "1"], &["1", "right", "1"]);
    for (changes, wants_update_before) in
        [(Changes::All, true), (Changes::All, false), (Changes::Upsert, false)]
    {
        let mut shape = declared(changes);
        shape.wants_update_before = wants_update_before;
        // The snapshot has both versions, in whichever order: in the end it is the new one, as a bag and by its key.
        let mut both = decoder(shape.clone(), ReplicaIdentity::Full);
        apply(&mut both, &change, Emits { old: true, new: false }).unwrap();
        let found = rows(&both.finish().unwrap().unwrap());
        assert_eq!(found, ["-D 1 left 1", "-D 1 right 1", "+I 1 right 1"], "{changes:?}");
        // It has none: nothing can be taken back.
        let mut none = decoder(shape, ReplicaIdentity::Full);
        apply(&mut none, &change, Emits { old: false, new: true }).unwrap();
        assert_eq!(rows(&none.finish().unwrap().unwrap()), ["+I 1 right 1"], "{changes:?}");
    }
}

#[test]
fn a_key_that_changes_is_not_taken_back_as_half_a_row() {
    let mut shape = declared(Changes::All);
    shape.wants_update_before = false;
    // As after ALTER TABLE … REPLICA IDENTITY DEFAULT in the midst of the stream.
    let mut decoder = decoder(shape, ReplicaIdentity::Default);
    assert_eq!(decoded(&mut decoder, &[update(&["1", "one", "2"])]), ["+U 1 one 2"]);
    let change = update_from(b'K', &["1", NULL, NULL], &["2", "one", "2"]);
    let error = apply(&mut decoder, &change, Emits::BOTH).unwrap_err();
    assert!(error.message().starts_with("The \"before\" field of UPDATE/DELETE message is null"), "{error}");
}

#[test]
fn metadata_tells_where_and_when() {
    let mut decoder = decoder(with_metadata(declared(Changes::Upsert)), ReplicaIdentity::Default);
    assert_eq!(
        decoded(&mut decoder, &[insert(&["1", "one", "10"])]),
        ["+I 1 one 10 2024-05-31 16:08:37.123+00 app public t +I"]
    );
}

#[test]
fn the_text_of_a_key_is_there_for_the_look_at_the_snapshot() {
    let decoder = decoder(declared(Changes::Upsert), ReplicaIdentity::Default);
    let change = insert(&["17", NULL, "1"]);
    let Message::Insert { new, .. } = Parser::default().parse(&change).unwrap() else { panic!() };
    assert_eq!(decoder.key_text(OID, &new, "id"), Some(&b"17"[..]));
    assert_eq!(decoder.key_text(OID, &new, "a"), None);
    assert_eq!(decoder.key_text(OID, &new, "nothing"), None);
    assert_eq!(new.value(1), Some(TupleValue::Null));
}

#[test]
fn values_that_are_wrong_are_named_with_table_column_and_type() {
    let mut decoder = decoder(declared(Changes::Upsert), ReplicaIdentity::Default);
    let error = apply(&mut decoder, &insert(&["99999999999", "one", "1"]), Emits::BOTH).unwrap_err();
    assert_eq!(
        error.message(),
        "value '99999999999' of column 'id' in table public.t has type int4 and cannot be read as INT: it has too many digits"
    );
    assert!(error.hint_text().unwrap().contains("'lakehead.postgres.unrepresentable' = 'null'"));
}

#[test]
fn values_that_do_not_fit_are_null_where_that_is_wanted() {
    let mut shape = declared(Changes::Upsert);
    shape.unrepresentable = Unrepresentable::Null;
    let mut decoder = decoder(shape, ReplicaIdentity::Default);
    assert_eq!(decoded(&mut decoder, &[insert(&["1", "one", "99999999999"])]), ["+I 1 one <null>"]);
    assert!(apply(&mut decoder, &insert(&["1", "one", "many"]), Emits::BOTH).is_err(), "that is no number");
}

#[test]
fn rows_of_tables_that_were_not_described_or_have_other_columns_are_refused() {
    let mut decoder = ChangeDecoder::new(declared(Changes::Upsert), "app");
    let error = apply(&mut decoder, &insert(&["1", "one", "1"]), Emits::BOTH).unwrap_err();
    assert!(error.message().contains("16385"), "{error}");
    let mut decoder = super::decoder(declared(Changes::Upsert), ReplicaIdentity::Default);
    let error = apply(&mut decoder, &insert(&["1"]), Emits::BOTH).unwrap_err();
    assert_eq!(error.message(), "a row of table public.t has 1 columns, of which 3 were described");
}

#[test]
fn rows_without_columns_are_counted() {
    let mut decoder = decoder(shape(&[], &[], Changes::Upsert), ReplicaIdentity::Default);
    assert_eq!(decoded(&mut decoder, &[insert(&["1", "one", "1"]), insert(&["2", "two", "2"])]).len(), 2);
}
