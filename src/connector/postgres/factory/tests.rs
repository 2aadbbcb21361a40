//! What definitions of tables say, and which are refused.

use super::*;
use crate::changelog::ChangelogMode as Kinds;
use crate::connector::postgres::options::{StartupMode, TruncatePolicy, Unrepresentable};
use crate::connector::postgres::row_shape::{Changes, Metadata};
use crate::connector::postgres::settings::Autocreate;
use crate::connector::postgres_tls::TlsMode;
use crate::connector::testing::Table;
use crate::connector::{Boundedness, Projection};
use crate::error::ErrorKind;
use crate::schema::{PrimaryKey, TypeRoot};

const REQUIRED: [(&str, &str); 6] = [
    ("hostname", "db.example.org"),
    ("username", "cdc"),
    ("password", "S3NT!nel"),
    ("database-name", "app"),
    ("schema-name", "public"),
    ("table-name", "orders"),
];

fn table(entries: &[(&str, &str)]) -> Table {
    let mut all = REQUIRED.to_vec();
    all.retain(|(key, _)| entries.iter().all(|(given, _)| given != key));
    all.extend(entries.iter().filter(|(_, value)| *value != "(none)"));
    let columns = vec![
        Column::physical("id", TypeRoot::BigInt.not_null()),
        Column::physical("n", TypeRoot::Int.nullable()),
    ];
    let mut table = Table::new("postgres-cdc", columns, &all);
    table.schema.primary_key = Some(PrimaryKey { name: "PK_id".to_owned(), columns: vec!["id".to_owned()] });
    table
}

fn read(entries: &[(&str, &str)]) -> Result<PostgresSource> {
    source(&table(entries).context())
}

fn refused(entries: &[(&str, &str)]) -> (String, String) {
    let error = read(entries).expect_err("it is refused");
    assert!(matches!(error.kind(), ErrorKind::Validation | ErrorKind::Unsupported), "{error}");
    assert!(!format!("{error:?}").contains("S3NT"), "{error:?}");
    (error.message().to_owned(), error.hint_text().unwrap_or_default().to_owned())
}

#[test]
fn the_defaults_are_flinks_but_for_the_slot_and_the_publication() {
    let source = read(&[]).unwrap();
    assert_eq!(source.server.name(), "db.example.org:5432/app");
    assert_eq!((source.server.tls.mode, source.server.connect_retries), (TlsMode::Prefer, 3));
    assert_eq!(source.server.connect_timeout.as_secs(), 30);
    let stream = &source.stream;
    assert_eq!((stream.slot.as_deref(), stream.publication.as_str()), (None, "dbz_publication"));
    assert_eq!((stream.autocreate, stream.startup), (Autocreate::Filtered, StartupMode::Initial));
    assert_eq!((stream.checkpoints_delay, stream.drops_slot_on_stop, stream.failover), (3, false, false));
    assert_eq!(source.settings.truncate, TruncatePolicy::Fail);
    assert_eq!(source.settings.unrepresentable, Unrepresentable::Fail);
    assert!(!source.settings.selection.includes_partitioned && !source.settings.reads_new_tables);
    assert_eq!(source.settings.chunks.even_between, (0.05, 1000.0));
    assert!(source.notes.is_empty(), "{:?}", source.notes);
    assert_eq!((source.summary().as_str(), source.boundedness()), ("PostgreSQL-CDC", Boundedness::Unbounded));
}

#[test]
fn all_that_is_missing_is_named() {
    let (message, _) = refused(&[("hostname", "(none)"), ("password", "(none)")]);
    assert_eq!(
        message,
        "One or more required options are missing.\n\nMissing required options are:\n\nhostname\npassword"
    );
    let (message, hint) = refused(&[("hostnam", "x")]);
    assert!(message.starts_with("Unsupported options found for 'postgres-cdc'."), "{message}");
    assert_eq!(hint, "Did you mean 'hostname'?");
}

#[test]
fn the_mode_decides_the_kinds_of_rows() {
    let kinds = |entries: &[(&str, &str)]| read(entries).unwrap().changelog_mode();
    assert_eq!(kinds(&[]), Kinds::ALL);
    assert_eq!(kinds(&[("changelog-mode", "upsert")]), Kinds::UPSERT);
    let appended = ("scan.read-changelog-as-append-only.enabled", "true");
    assert_eq!(kinds(&[appended]), Kinds::INSERT_ONLY);

    let projection = Projection { physical: vec![1, 0], metadata: vec!["row_kind".into(), "op_ts".into()] };
    let shape = |entries: &[(&str, &str)], wants| read(entries).unwrap().shape(&projection, wants).unwrap();
    let all = shape(&[], true);
    assert_eq!((all.changes, all.wants_update_before), (Changes::All, true));
    assert_eq!(all.physical.iter().map(|column| column.name.as_str()).collect::<Vec<_>>(), ["n", "id"]);
    assert_eq!(all.metadata, [Metadata::RowKind, Metadata::CommitTime]);
    let upsert = shape(&[("changelog-mode", "upsert")], true);
    assert_eq!((upsert.changes, upsert.wants_update_before), (Changes::Upsert, false));
    // Rows that are appended are all read, whoever asks.
    for (mode, has_old_rows) in [("all", true), ("upsert", false)] {
        let shape = shape(&[appended, ("changelog-mode", mode)], false);
        assert_eq!((shape.changes, shape.wants_update_before), (Changes::AppendOnly, has_old_rows));
    }
    let mut keyless = table(&[("changelog-mode", "upsert")]);
    keyless.schema.primary_key = None;
    let error = source(&keyless.context()).unwrap_err();
    assert_eq!(error.message(), "Primary key must be present when upsert mode is selected.");
}

#[test]
fn the_metadata_columns_are_flinks() {
    let columns = read(&[]).unwrap().metadata_columns();
    let shown: Vec<String> =
        columns.iter().map(|column| format!("{} {}", column.key, column.data_type.summary())).collect();
    assert_eq!(
        shown,
        [
            "op_ts TIMESTAMP_LTZ(3) NOT NULL",
            "database_name STRING NOT NULL",
            "schema_name STRING NOT NULL",
            "table_name STRING NOT NULL",
            "row_kind STRING NOT NULL"
        ]
    );
}

#[test]
fn the_startup_mode_is_one_of_four_and_a_snapshot_ends() {
    for (mode, boundedness) in [
        ("initial", Boundedness::Unbounded),
        ("latest-offset", Boundedness::Unbounded),
        ("committed-offset", Boundedness::Unbounded),
        ("SNAPSHOT", Boundedness::Bounded),
    ] {
        assert_eq!(read(&[("scan.startup.mode", mode)]).unwrap().boundedness(), boundedness, "{mode}");
    }
    let (message, _) = refused(&[("scan.startup.mode", "earliest-offset")]);
    assert_eq!(
        message,
        "Invalid value for option 'scan.startup.mode'. Supported values are [initial, snapshot, latest-offset, committed-offset], but was: earliest-offset"
    );
}

#[test]
fn what_is_passed_on_to_debezium_is_honoured_noted_or_refused() {
    let source = read(&[
        ("debezium.publication.name", "My Pub"),
        ("debezium.publication.autocreate.mode", "disabled"),
        ("debezium.slot.drop.on.stop", "true"),
        ("debezium.slot.failover", "true"),
        ("debezium.snapshot.mode", "initial_only"),
        ("debezium.database.sslmode", "verify-full"),
        ("debezium.database.sslrootcert", "/ca.pem"),
        ("jdbc.properties.sslmode", "verify-full"),
        ("jdbc.properties.loginTimeout", "7"),
        ("debezium.max.batch.size", "4096"),
        ("decoding.plugin.name", "wal2json"),
    ])
    .unwrap();
    let stream = &source.stream;
    assert_eq!((stream.publication.as_str(), stream.autocreate), ("My Pub", Autocreate::Disabled));
    assert!(stream.drops_slot_on_stop && stream.failover);
    assert_eq!(stream.startup, StartupMode::Snapshot);
    assert_eq!(source.server.tls.mode, TlsMode::VerifyFull);
    assert_eq!(source.server.tls.root_certificate, Some("/ca.pem".into()));
    assert_eq!(source.server.connect_timeout.as_secs(), 7);
    assert_eq!(
        source.notes,
        [
            "'debezium.max.batch.size' has no effect here",
            "'decoding.plugin.name' = 'wal2json': pgoutput is used, which is part of Postgres"
        ]
    );
    for (key, value, hint) in [
        ("debezium.heartbeat.action.query", "INSERT", "keep-alives"),
        ("debezium.unavailable.value.placeholder", "x", "no placeholder is ever written"),
        ("debezium.publication.nmae", "x", "Did you mean 'debezium.publication.name'?"),
        ("debezium.some.other.property", "x", "there is no Debezium here"),
        ("debezium.snapshot.mode", "always", "'lakehead.job.resume' = 'resnapshot'"),
        ("jdbc.properties.targetServerType", "primary", "there is no JDBC here"),
    ] {
        let (message, told) = refused(&[(key, value)]);
        assert!(message.contains(&format!("option '{key}'")), "{message}");
        assert!(told.contains(hint), "{told}");
    }
    let (message, _) =
        refused(&[("debezium.database.sslmode", "require"), ("jdbc.properties.sslmode", "disable")]);
    assert!(message.contains("contradict each other"), "{message}");
    let (message, _) = refused(&[("scan.startup.mode", "initial"), ("debezium.snapshot.mode", "no_data")]);
    assert!(message.contains("'scan.startup.mode' and 'debezium.snapshot.mode'"), "{message}");
}

#[test]
fn values_out_of_range_are_refused_in_flinks_words() {
    for (key, value, message) in [
        (
            "scan.incremental.snapshot.chunk.size",
            "1",
            "The value of option 'scan.incremental.snapshot.chunk.size' must larger than 1, but is 1",
        ),
        (
            "chunk-key.even-distribution.factor.upper-bound",
            "0.5",
            "The value of option 'chunk-key.even-distribution.factor.upper-bound' must larger than or equals 1.0, but is 0.5",
        ),
        (
            "split-key.even-distribution.factor.lower-bound",
            "1.5",
            "The value of option 'chunk-key.even-distribution.factor.lower-bound' must between 0.0 and 1.0 inclusively, but is 1.5",
        ),
        ("port", "70000", "option 'port' is no port: 70000"),
        ("hostname", "", "option 'hostname' is empty"),
        ("slot.name", "My-Slot", "option 'slot.name' is no name of a replication slot: 'My-Slot'"),
        ("debezium.slot.failover", "yes", "option 'debezium.slot.failover' cannot be 'yes'"),
    ] {
        assert_eq!(refused(&[(key, value)]).0, message);
    }
    let (message, _) = refused(&[("changelog-mode", "some")]);
    assert!(message.starts_with("Could not parse value for enum"), "{message}");
}

#[test]
fn the_first_option_that_differs_is_named() {
    let stream = |entries: &[(&str, &str)]| read(entries).unwrap().stream;
    let one = stream(&[("slot.name", "a")]);
    assert_eq!(one.first_difference(&stream(&[("slot.name", "a"), ("table-name", "x")])), None);
    for (key, value) in [
        ("slot.name", "b"),
        ("debezium.publication.name", "p"),
        ("debezium.publication.autocreate.mode", "disabled"),
        ("scan.startup.mode", "latest-offset"),
        ("scan.lsn-commit.checkpoints-num-delay", "0"),
        ("debezium.slot.drop.on.stop", "true"),
        ("debezium.slot.failover", "true"),
    ] {
        let mut entries = vec![(key, value)];
        if key != "slot.name" {
            entries.push(("slot.name", "a"));
        }
        assert_eq!(one.first_difference(&stream(&entries)), Some(key));
    }
}

#[test]
fn a_truncate_deletes_rows_that_have_a_key_and_change() {
    let delete = ("lakehead.postgres.truncate", "delete");
    let is_cleared = |entries: &[(&str, &str)]| read(entries).unwrap().may_be_cleared();
    assert!(is_cleared(&[delete]) && is_cleared(&[delete, ("changelog-mode", "upsert")]));
    assert!(!is_cleared(&[]) && !is_cleared(&[("lakehead.postgres.truncate", "ignore")]));
    assert!(!is_cleared(&[delete, ("scan.startup.mode", "snapshot")]), "nothing changes");
    let (message, _) = refused(&[delete, ("scan.read-changelog-as-append-only.enabled", "true")]);
    assert!(message.ends_with("contradicts 'scan.read-changelog-as-append-only.enabled'"), "{message}");
    let mut keyless = table(&[delete]);
    keyless.schema.primary_key = None;
    let error = source(&keyless.context()).unwrap_err();
    assert!(error.message().starts_with("'lakehead.postgres.truncate' = 'delete' needs a primary key"));
    assert!(error.hint_text().unwrap().contains("PRIMARY KEY"));
}

#[test]
fn no_text_of_a_source_has_the_password() {
    let source = read(&[]).unwrap();
    assert!(!format!("{source:?}").contains("S3NT"), "{source:?}");
}
