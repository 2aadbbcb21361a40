//! A job that has changed goes on from what still fits, and says what does not.

use super::*;

fn claims(operators: Vec<OperatorClaim>) -> Claims {
    Claims { operators, ..Claims::default() }
}

fn claim(uid: &str, table: StateTable) -> OperatorClaim {
    OperatorClaim { uid: uid.to_owned(), kind: "Join".to_owned(), tables: vec![table] }
}

/// The table `groups` with a further column.
fn wider() -> StateTable {
    StateTable {
        name: "groups",
        schema: schema(&[("k", DataType::Int64), ("n", DataType::Int64), ("v", DataType::Utf8)]),
        key_count: 1,
        derived_from: None,
    }
}

fn wider_rows(restore: &Restore) -> Vec<(i64, Option<i64>, Option<String>)> {
    let mut rows = Vec::new();
    for batch in read(restore, "agg", &wider(), 2) {
        let (keys, n) =
            (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_primitive::<Int64Type>());
        for (row, value) in batch.column(2).as_string::<i32>().iter().enumerate() {
            rows.push((keys.value(row), n.iter().nth(row).unwrap(), value.map(str::to_owned)));
        }
    }
    rows.sort();
    rows
}

#[test]
fn rows_from_before_a_column_was_added_have_null_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), 1, 1);
    let before = [(1, Some("a".to_owned())), (2, Some("b".to_owned()))];
    let path = write(&mut store, vec![operator("agg", groups(), changes(&before, &[], 1))]).unwrap().path;
    let restore = Restore::open(&path).unwrap();
    restore.check(&claims(vec![claim("agg", wider())]), false).unwrap();
    assert_eq!(wider_rows(&restore), [(1, None, Some("a".to_owned())), (2, None, Some("b".to_owned()))]);

    store.continue_from(&restore).unwrap();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![2, 3])),
        Arc::new(Int64Array::from(vec![20, 30])),
        Arc::new(StringArray::from(vec!["b2", "c"])),
    ];
    let upserts = RecordBatch::try_new(wider().schema, columns).unwrap();
    let changes = split(&wider(), &upserts, &upserts.project(&[0]).unwrap().slice(0, 0), 1);
    let after = [
        (1, None, Some("a".to_owned())),
        (2, Some(20), Some("b2".to_owned())),
        (3, Some(30), Some("c".to_owned())),
    ];
    let path = write(&mut store, vec![operator("agg", wider(), changes)]).unwrap().path;
    assert_eq!(wider_rows(&Restore::open(&path).unwrap()), after);
    let saved = store.write_savepoint(folder.path()).unwrap().path;
    assert_eq!(wider_rows(&Restore::open(&saved).unwrap()), after);
}

#[test]
fn what_does_not_fit_is_refused_with_what_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), 1, 1);
    let rows = [(1, None)];
    let operators = vec![
        operator("agg", groups(), changes(&rows, &[], 1)),
        operator("gone", groups(), changes(&rows, &[], 1)),
    ];
    let number = store.next_number();
    let data = CheckpointData {
        number,
        operators,
        sources: BTreeMap::from([("orders".to_owned(), BTreeMap::new())]),
        committables: BTreeMap::from([
            ("files".to_owned(), vec![crate::connector::Committable(vec![1])]),
            ("idle".to_owned(), vec![]),
        ]),
        ..CheckpointData::default()
    };
    let path = store.write_checkpoint(data).unwrap().path;
    let restore = Restore::open(&path).unwrap();
    let error = restore.check(&claims(vec![claim("agg", groups())]), false).unwrap_err();
    assert_eq!(
        error.message(),
        format!(
            "the state in '{}' holds what nothing in the job claims:\n  Join 'gone'\n  \
             the position of source 'orders'\n  what sink 'files' has prepared",
            path.display()
        )
    );
    assert!(error.hint_text().unwrap().contains("'execution.state-recovery.ignore-unclaimed-state'"));
    restore.check(&claims(vec![claim("agg", groups())]), true).unwrap();

    let narrower = StateTable {
        name: "groups",
        schema: schema(&[("k", DataType::Int64), ("v", DataType::Int64)]),
        key_count: 1,
        derived_from: None,
    };
    let error = restore.check(&claims(vec![claim("agg", narrower)]), true).unwrap_err();
    assert_eq!(
        error.message(),
        format!(
            "the state in '{}' does not fit the job:\n  Join 'agg': column 'v' of table 'groups' was Utf8 and is Int64",
            path.display()
        )
    );
}

#[test]
fn an_operator_that_must_know_every_row_does_not_begin_behind_some() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), 1, 1);
    let position = BTreeMap::from([("lsn".to_owned(), "7".to_owned())]);
    let data = CheckpointData {
        number: store.next_number(),
        operators: vec![operator("rows", groups(), changes(&[], &[], 1))],
        sources: BTreeMap::from([("orders".to_owned(), position), ("begun".to_owned(), BTreeMap::new())]),
        ..CheckpointData::default()
    };
    let restore = Restore::open(&store.write_checkpoint(data).unwrap().path).unwrap();
    let check = |keeper: &str, source: &str| {
        let keepers = vec![(keeper.to_owned(), source.to_owned())];
        restore.check(&Claims { keepers, ..Claims::default() }, true)
    };
    check("rows", "orders").unwrap();
    // Nothing of these has been read.
    check("new", "begun").unwrap();
    check("new", "other").unwrap();
    let error = check("new", "orders").unwrap_err();
    let expected = "lacks the rows of source 'orders' that were read so far: 'new' must know all of them";
    assert!(error.message().contains(expected), "{error}");
    assert!(error.hint_text().unwrap().contains("'resnapshot'"));
}

#[test]
fn a_table_that_was_given_up_does_not_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), 1, 1);
    let rows = |key| vec![(key, None)];
    let both = vec![
        operator("agg", groups(), changes(&rows(1), &[], 1)),
        operator("x", groups(), changes(&rows(10), &[], 1)),
    ];
    write(&mut store, both).unwrap();
    let restore = Restore::open(&store.latest().unwrap()).unwrap();
    store.continue_from(&restore).unwrap();
    write(&mut store, vec![operator("agg", groups(), changes(&rows(2), &[], 1))]).unwrap();
    let restore = Restore::open(&store.latest().unwrap()).unwrap();
    assert_eq!(read_groups(&restore, "x", 1), Rows::new());
    store.continue_from(&restore).unwrap();
    let both = vec![
        operator("agg", groups(), changes(&[], &[], 1)),
        operator("x", groups(), changes(&rows(20), &[], 1)),
    ];
    write(&mut store, both).unwrap();
    let saved = store.write_savepoint(folder.path()).unwrap().path;
    for path in [store.latest().unwrap(), saved] {
        let restore = Restore::open(&path).unwrap();
        assert_eq!(read_groups(&restore, "x", 1), Rows::from([(20, None)]));
        assert_eq!(read_groups(&restore, "agg", 1), Rows::from([(1, None), (2, None)]));
    }
}

#[test]
fn a_table_that_stands_for_something_else_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), 1, 1);
    let of = |what: &str| StateTable { derived_from: Some(what.to_owned()), ..groups() };
    let rows = |key| changes(&[(key, None)], &[], 1);
    write(&mut store, vec![operator("agg", of("a"), rows(1))]).unwrap();
    let restore = Restore::open(&store.latest().unwrap()).unwrap();
    assert_eq!(read(&restore, "agg", &of("a"), 1).len(), 1);
    // The columns may have changed in any way.
    let narrower = StateTable { schema: schema(&[("x", DataType::Utf8)]), ..of("b") };
    for (table, fits) in [(of("a"), true), (of("b"), true), (narrower, true), (groups(), true)] {
        assert_eq!(restore.check(&claims(vec![claim("agg", table.clone())]), false).is_ok(), fits);
    }
    assert!(read(&restore, "agg", &of("b"), 1).is_empty());

    store.continue_from(&restore).unwrap();
    write(&mut store, vec![operator("agg", of("b"), rows(2))]).unwrap();
    let saved = store.write_savepoint(folder.path()).unwrap().path;
    for path in [store.latest().unwrap(), saved] {
        let restore = Restore::open(&path).unwrap();
        let batches = read(&restore, "agg", &of("b"), 1);
        let keys: Vec<i64> = batches
            .iter()
            .flat_map(|rows| rows.column(0).as_primitive::<Int64Type>().values().to_vec())
            .collect();
        assert_eq!(keys, [2]);
    }
}

#[test]
fn changes_that_do_not_fit_their_table_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), 1, 1);
    let error = write(&mut store, vec![operator("agg", wider(), changes(&[(1, None)], &[], 1))]).unwrap_err();
    assert_eq!(error.message(), "Join 'agg' has changes that do not fit its table 'groups'");
}

#[test]
fn a_checkpoint_keeps_positions_committables_and_extra_values() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), 0xabc << 100, 1);
    let number = store.next_number();
    let data = CheckpointData {
        number,
        time_ms: 1_700_000_000_123,
        operators: Vec::new(),
        sources: BTreeMap::from([("s".to_owned(), BTreeMap::from([("a.csv".to_owned(), "17".to_owned())]))]),
        committables: BTreeMap::from([("f".to_owned(), vec![crate::connector::Committable(vec![0, 200])])]),
        extra: BTreeMap::from([("values".to_owned(), "3".to_owned())]),
    };
    store.write_checkpoint(data).unwrap();
    let saved = store.write_savepoint(folder.path()).unwrap();
    assert!(saved.path.file_name().unwrap().to_str().unwrap().starts_with("savepoint-0000ab-"), "{saved:?}");
    for path in [store.latest().unwrap(), saved.path] {
        let is_savepoint = path.parent() == Some(folder.path());
        let restore = Restore::open(&path).unwrap();
        let manifest = restore.manifest();
        assert_eq!(
            (manifest.number, manifest.time_ms, manifest.job_name.as_str()),
            (1, 1_700_000_000_123, "job")
        );
        assert_eq!(manifest.sources["s"]["a.csv"], "17");
        // What a savepoint's sinks had prepared has been committed before it is written.
        let prepared = manifest.committables.get("f").map(|prepared| prepared[0].0.as_slice());
        assert_eq!(prepared, (!is_savepoint).then_some(&[0, 200][..]));
        assert_eq!(manifest.extra["values"], "3");
        assert!(manifest.segments.is_empty());
    }
}
