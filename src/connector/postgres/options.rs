//! The options of `postgres-cdc`: Flink's names and defaults, and our own, which begin with `lakehead.`.

use std::time::Duration;

use crate::error::{Error, FlinkClass, Result};
use crate::options::{ConfigOption, EnumValue, OptionDef, OptionValue};

pub(super) const HOSTNAME: ConfigOption<String> =
    ConfigOption::required("hostname", "Name or address of the Postgres server.");
pub(super) const PORT: ConfigOption<u32> =
    ConfigOption::with_default("port", "5432", "The port that the server listens on.");
pub(super) const USERNAME: ConfigOption<String> =
    ConfigOption::required("username", "The role that reads: it needs REPLICATION and SELECT.");
pub(super) const PASSWORD: ConfigOption<String> = ConfigOption::required(
    "password",
    "Its password. `${env:NAME}` and `${file:/path}` keep it out of the definition.",
);
pub(super) const DATABASE_NAME: ConfigOption<String> =
    ConfigOption::required("database-name", "The database that is read.");
pub(super) const SCHEMA_NAME: ConfigOption<String> = ConfigOption::required(
    "schema-name",
    "The schema of the tables: a regular expression that matches its whole name.",
);
pub(super) const TABLE_NAME: ConfigOption<String> = ConfigOption::required(
    "table-name",
    "The tables: a regular expression that matches their whole names. Several tables become one.",
);
pub(super) const SLOT_NAME: ConfigOption<String> = ConfigOption::optional(
    "slot.name",
    "The replication slot, made if it is not there; `lakehead_<job>` by default. Tables with the same slot are read together.",
);
pub(super) const DECODING_PLUGIN_NAME: ConfigOption<DecodingPlugin> = ConfigOption::with_default(
    "decoding.plugin.name",
    "decoderbufs",
    "Accepted as Flink does, and pgoutput, which every server has, is used whatever it says.",
);
pub(super) const CHANGELOG_MODE: ConfigOption<ChangelogMode> = ConfigOption::with_default(
    "changelog-mode",
    "all",
    "Whether an update has its earlier version, for which the tables need REPLICA IDENTITY FULL, or is an upsert by key.",
);
pub(super) const SCAN_STARTUP_MODE: ConfigOption<StartupMode> = ConfigOption::with_default(
    "scan.startup.mode",
    "initial",
    "What a job that begins anew reads: the tables and then changes, only what changes from now on, what an existing slot has not handed out, or only the tables.",
);
pub(super) const SCAN_INCREMENTAL_SNAPSHOT_ENABLED: ConfigOption<bool> = ConfigOption::with_default(
    "scan.incremental.snapshot.enabled",
    "false",
    "Accepted without effect: tables are always read in parallel, in chunks and without locks that writers notice.",
);
pub(super) const CHUNK_SIZE: ConfigOption<u64> = ConfigOption::with_default(
    "scan.incremental.snapshot.chunk.size",
    "8096",
    "About how many rows of a table are read at once; larger chunks are chosen where the table is large.",
);
pub(super) const CHUNK_KEY_COLUMN: ConfigOption<String> = ConfigOption::optional(
    "scan.incremental.snapshot.chunk.key-column",
    "The column by whose values tables are cut into chunks; the first one of the primary key by default.",
);
pub(super) const LSN_COMMIT_DELAY: ConfigOption<u64> = ConfigOption::with_default(
    "scan.lsn-commit.checkpoints-num-delay",
    "3",
    "How many checkpoints behind the newest one the server may forget what it has sent, so that those can be restored.",
);
pub(super) const INCLUDE_PARTITIONED_TABLES: ConfigOption<bool> = ConfigOption::with_default(
    "scan.include-partitioned-tables.enabled",
    "false",
    "Whether partitioned tables are read as one, which needs a publication with publish_via_partition_root.",
);
pub(super) const READ_AS_APPEND_ONLY: ConfigOption<bool> = ConfigOption::with_default(
    "scan.read-changelog-as-append-only.enabled",
    "false",
    "Whether every change is a row of its own; the metadata column `row_kind` says what it was.",
);
pub(super) const NEWLY_ADDED_TABLES: ConfigOption<bool> = ConfigOption::with_default(
    "scan.newly-added-table.enabled",
    "false",
    "Whether a job that goes on reads tables that match only now from their beginning.",
);
pub(super) const HEARTBEAT_INTERVAL: ConfigOption<Duration> = ConfigOption::with_default(
    "heartbeat.interval.ms",
    "30 s",
    "Accepted without effect: the server's own keep-alives move the slot of an idle database.",
);
pub(super) const CONNECT_TIMEOUT: ConfigOption<Duration> = ConfigOption::with_default(
    "connect.timeout",
    "30 s",
    "How long the server may take to let the connector in.",
);
pub(super) const CONNECT_MAX_RETRIES: ConfigOption<u32> = ConfigOption::with_default(
    "connect.max-retries",
    "3",
    "How often a job that begins tries again before it fails; one that runs goes on trying.",
);
pub(super) const FETCH_SIZE: ConfigOption<u64> = ConfigOption::with_default(
    "scan.snapshot.fetch.size",
    "1024",
    "Accepted without effect: rows are copied in a stream.",
);
pub(super) const CONNECTION_POOL_SIZE: ConfigOption<u64> = ConfigOption::with_default(
    "connection.pool.size",
    "20",
    "Accepted without effect: each reader of a snapshot has one connection.",
);
pub(super) const CHUNK_META_GROUP_SIZE: ConfigOption<u64> = ConfigOption::with_default(
    "chunk-meta.group.size",
    "1000",
    "Accepted without effect: chunks are not sent between processes.",
);
pub(super) const DISTRIBUTION_FACTOR_UPPER: ConfigOption<f64> = ConfigOption::with_default(
    "chunk-key.even-distribution.factor.upper-bound",
    "1000.0",
    "Above how many keys per row the chunks of a table are found by queries instead of being cut evenly.",
)
.old_keys(&["split-key.even-distribution.factor.upper-bound"]);
pub(super) const DISTRIBUTION_FACTOR_LOWER: ConfigOption<f64> = ConfigOption::with_default(
    "chunk-key.even-distribution.factor.lower-bound",
    "0.05",
    "Below how many keys per row the chunks of a table are found by queries instead of being cut evenly.",
)
.old_keys(&["split-key.even-distribution.factor.lower-bound"]);
pub(super) const BACKFILL_SKIP: ConfigOption<bool> = ConfigOption::with_default(
    "scan.incremental.snapshot.backfill.skip",
    "false",
    "Accepted without effect: there is no back-fill to be skipped, and every change counts once.",
);
pub(super) const CLOSE_IDLE_READER: ConfigOption<bool> = ConfigOption::with_default(
    "scan.incremental.close-idle-reader.enabled",
    "false",
    "Accepted without effect: readers of a snapshot end with it.",
);
pub(super) const UNBOUNDED_CHUNK_FIRST: ConfigOption<bool> = ConfigOption::with_default(
    "scan.incremental.snapshot.unbounded-chunk-first.enabled",
    "false",
    "Accepted without effect: no chunk is held in memory as a whole if it is large.",
);
pub(super) const TABLE_ID_INCLUDE_DATABASE: ConfigOption<bool> = ConfigOption::with_default(
    "table-id.include-database",
    "false",
    "Accepted without effect: the metadata column `database_name` has the database.",
);
pub(super) const WALL_CLOCK_CONVERSION: ConfigOption<bool> = ConfigOption::with_default(
    "scan.pre-epoch-timestamp.wall-clock-conversion.enabled",
    "false",
    "Accepted without effect: a TIMESTAMP is always what the database shows.",
);
pub(super) const TRUNCATE: ConfigOption<TruncatePolicy> = ConfigOption::with_default(
    "lakehead.postgres.truncate",
    "fail",
    "What TRUNCATE of a table does: fail the job, nothing, or delete every row of it downstream; then the job remembers the rows, by the primary key. Postgres tells of no single partition that is truncated where a table is published through its root.",
);
pub(super) const UNREPRESENTABLE: ConfigOption<Unrepresentable> = ConfigOption::with_default(
    "lakehead.postgres.unrepresentable",
    "fail",
    "What becomes of a value that the declared type does not have, such as NaN or infinity: the job fails, or it is NULL.",
);

/// Every option with a fixed key, in the order of the reference.
pub(super) const OPTIONS: &[&dyn OptionDef] = &[
    &HOSTNAME,
    &PORT,
    &USERNAME,
    &PASSWORD,
    &DATABASE_NAME,
    &SCHEMA_NAME,
    &TABLE_NAME,
    &SLOT_NAME,
    &DECODING_PLUGIN_NAME,
    &CHANGELOG_MODE,
    &SCAN_STARTUP_MODE,
    &SCAN_INCREMENTAL_SNAPSHOT_ENABLED,
    &CHUNK_SIZE,
    &CHUNK_KEY_COLUMN,
    &LSN_COMMIT_DELAY,
    &INCLUDE_PARTITIONED_TABLES,
    &READ_AS_APPEND_ONLY,
    &NEWLY_ADDED_TABLES,
    &HEARTBEAT_INTERVAL,
    &CONNECT_TIMEOUT,
    &CONNECT_MAX_RETRIES,
    &FETCH_SIZE,
    &CONNECTION_POOL_SIZE,
    &CHUNK_META_GROUP_SIZE,
    &DISTRIBUTION_FACTOR_UPPER,
    &DISTRIBUTION_FACTOR_LOWER,
    &BACKFILL_SKIP,
    &CLOSE_IDLE_READER,
    &UNBOUNDED_CHUNK_FIRST,
    &TABLE_ID_INCLUDE_DATABASE,
    &WALL_CLOCK_CONVERSION,
    &TRUNCATE,
    &UNREPRESENTABLE,
];

/// Those that are read only so that their values are checked.
pub(super) const WITHOUT_EFFECT: &[&dyn OptionDef] = &[
    &SCAN_INCREMENTAL_SNAPSHOT_ENABLED,
    &HEARTBEAT_INTERVAL,
    &FETCH_SIZE,
    &CONNECTION_POOL_SIZE,
    &CHUNK_META_GROUP_SIZE,
    &BACKFILL_SKIP,
    &CLOSE_IDLE_READER,
    &UNBOUNDED_CHUNK_FIRST,
    &TABLE_ID_INCLUDE_DATABASE,
    &WALL_CLOCK_CONVERSION,
];

/// The shapes of keys that are not fixed.
pub(super) const KEY_PATTERNS: &[&str] = &["debezium.#", "jdbc.properties.#"];

/// A value of `decoding.plugin.name`. Whatever it is, pgoutput is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecodingPlugin {
    Pgoutput,
    /// One that is not part of Postgres.
    Other,
}

impl EnumValue for DecodingPlugin {
    const CLASS: &'static str = "io.debezium.connector.postgresql.PostgresConnectorConfig.LogicalDecoder";
    const VALUES: &'static [(&'static str, Self)] = &[
        ("pgoutput", DecodingPlugin::Pgoutput),
        ("decoderbufs", DecodingPlugin::Other),
        ("wal2json", DecodingPlugin::Other),
        ("wal2json_rds", DecodingPlugin::Other),
        ("wal2json_streaming", DecodingPlugin::Other),
        ("wal2json_rds_streaming", DecodingPlugin::Other),
    ];
}

/// A value of `changelog-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangelogMode {
    /// An update is `-U` and `+U`.
    All,
    /// An update is `+U`.
    Upsert,
}

impl EnumValue for ChangelogMode {
    const CLASS: &'static str = "class org.apache.flink.cdc.debezium.table.DebeziumChangelogMode";
    const VALUES: &'static [(&'static str, Self)] =
        &[("all", ChangelogMode::All), ("upsert", ChangelogMode::Upsert)];
}

/// What a job that begins anew reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartupMode {
    /// The tables, then what changes.
    Initial,
    /// What changes from now on.
    LatestOffset,
    /// What changed since the slot's confirmed position; the slot must be there.
    CommittedOffset,
    /// The tables, and no more.
    Snapshot,
}

impl StartupMode {
    const VALUES: [(&'static str, StartupMode); 4] = [
        ("initial", StartupMode::Initial),
        ("snapshot", StartupMode::Snapshot),
        ("latest-offset", StartupMode::LatestOffset),
        ("committed-offset", StartupMode::CommittedOffset),
    ];
}

impl OptionValue for StartupMode {
    fn parse(text: &str) -> Result<Self> {
        let wanted = text.to_lowercase();
        let known = Self::VALUES.iter().find(|(name, _)| *name == wanted);
        known.map(|(_, mode)| *mode).ok_or_else(|| {
            Error::validation(format!(
                "Invalid value for option '{}'. Supported values are [{}], but was: {text}",
                SCAN_STARTUP_MODE.key(),
                Self::known_values().join(", ")
            ))
            .class(FlinkClass::VALIDATION)
        })
    }

    fn describe() -> String {
        format!("one of {}", Self::known_values().join(", "))
    }

    fn known_values() -> Vec<&'static str> {
        Self::VALUES.iter().map(|(name, _)| *name).collect()
    }
}

/// What TRUNCATE of a table does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TruncatePolicy {
    /// The job fails: the rows cannot be taken back one by one.
    Fail,
    /// The rows stay downstream.
    Ignore,
    /// Every row of the table is deleted downstream.
    Delete,
}

impl EnumValue for TruncatePolicy {
    const CLASS: &'static str = "lakehead.postgres.Truncate";
    const VALUES: &'static [(&'static str, Self)] = &[
        ("fail", TruncatePolicy::Fail),
        ("ignore", TruncatePolicy::Ignore),
        ("delete", TruncatePolicy::Delete),
    ];
}

/// What becomes of a value that the declared type does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unrepresentable {
    /// The job fails.
    Fail,
    /// It is NULL.
    Null,
}

impl EnumValue for Unrepresentable {
    const CLASS: &'static str = "lakehead.postgres.Unrepresentable";
    const VALUES: &'static [(&'static str, Self)] =
        &[("fail", Unrepresentable::Fail), ("null", Unrepresentable::Null)];
}
