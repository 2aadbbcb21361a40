//! Every key that SET knows, declared once; completion, SET ALL and the README's reference come from the list.
//!
//! Unknown keys are accepted, as Flink does. An option that says "without effect" is there so that scripts which set it run.

use std::time::Duration;

use super::{ConfigOption, EnumValue, MemorySize, OptionDef};

/// Declares options as constants and lists them.
macro_rules! session_options {
    (@new optional, $key:literal, $doc:literal) => { ConfigOption::optional($key, $doc) };
    (@new default $default:literal, $key:literal, $doc:literal) => { ConfigOption::with_default($key, $default, $doc) };
    ($(
        $name:ident: $value:ty = $key:literal, $kind:ident $($default:literal)? $(old $($old:literal),+)?;
        $doc:literal
    )*) => {
        $(
            #[doc = concat!("`", $key, "`: ", $doc)]
            pub const $name: ConfigOption<$value> =
                session_options!(@new $kind $($default)?, $key, $doc)$(.old_keys(&[$($old),+]))?;
        )*

        /// Every session option, in the order of the reference.
        pub static SESSION_OPTIONS: &[&dyn OptionDef] = &[$(&$name),*];
    };
}

/// Declares an option's values as an enum with Flink's words.
macro_rules! option_values {
    ($(
        $(#[$doc:meta])*
        $name:ident = $class:literal { $($variant:ident = $text:literal),* }
    )*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs, reason = "Flink's words")]
        pub enum $name {
            $($variant),*
        }

        impl EnumValue for $name {
            const CLASS: &'static str = concat!("class ", $class);
            const VALUES: &'static [(&'static str, Self)] = &[$(($text, $name::$variant)),*];
        }
    )*};
}

option_values! {
    /// Values of `execution.runtime-mode`.
    RuntimeMode = "org.apache.flink.api.common.RuntimeExecutionMode" {
        Streaming = "STREAMING", Batch = "BATCH", Automatic = "AUTOMATIC"
    }
    /// Values of `execution.checkpointing.mode`.
    CheckpointingMode = "org.apache.flink.core.execution.CheckpointingMode" {
        ExactlyOnce = "EXACTLY_ONCE", AtLeastOnce = "AT_LEAST_ONCE"
    }
    /// Values of `execution.checkpointing.externalized-checkpoint-retention`.
    CheckpointRetention = "org.apache.flink.configuration.ExternalizedCheckpointRetention" {
        DeleteOnCancellation = "DELETE_ON_CANCELLATION", RetainOnCancellation = "RETAIN_ON_CANCELLATION",
        NoExternalizedCheckpoints = "NO_EXTERNALIZED_CHECKPOINTS"
    }
    /// Values of `execution.state-recovery.claim-mode`.
    ClaimMode = "org.apache.flink.core.execution.RecoveryClaimMode" {
        Claim = "CLAIM", NoClaim = "NO_CLAIM", Legacy = "LEGACY"
    }
    /// Values of `table.exec.sink.not-null-enforcer`.
    NotNullEnforcer = "org.apache.flink.table.api.config.ExecutionConfigOptions$NotNullEnforcer" {
        Error = "ERROR", Drop = "DROP"
    }
    /// Values of `table.exec.sink.type-length-enforcer`.
    TypeLengthEnforcer = "org.apache.flink.table.api.config.ExecutionConfigOptions$TypeLengthEnforcer" {
        Ignore = "IGNORE", TrimPad = "TRIM_PAD", Error = "ERROR"
    }
    /// Values of options that are off, on, or left to the planner.
    Switch = "org.apache.flink.table.api.config.ExecutionConfigOptions$UpsertMaterialize" {
        None = "NONE", Auto = "AUTO", Force = "FORCE"
    }
    /// Values of `table.optimizer.agg-phase-strategy`.
    AggregatePhaseStrategy = "org.apache.flink.table.planner.utils.AggregatePhaseStrategy" {
        Auto = "AUTO", OnePhase = "ONE_PHASE", TwoPhase = "TWO_PHASE"
    }
    /// Values of `lakehead.job.resume`.
    JobResume = "dev.lakehead.JobResume" {
        None = "NONE", Latest = "LATEST", Resnapshot = "RESNAPSHOT", Skip = "SKIP"
    }
    /// Values of `sql-client.execution.result-mode`.
    ResultMode = "org.apache.flink.table.client.config.ResultMode" {
        Table = "TABLE", Changelog = "CHANGELOG", Tableau = "TABLEAU"
    }
}

impl JobResume {
    /// Returns whether a job goes on from the newest checkpoint of its name.
    pub fn goes_on(self) -> bool {
        matches!(self, JobResume::Latest | JobResume::Skip)
    }
}

session_options! {
    // Mode and parallelism.
    RUNTIME_MODE: RuntimeMode = "execution.runtime-mode", default "STREAMING" old "execution.type";
        "Streaming shows changes as they come, batch answers once."
    PARALLELISM_DEFAULT: i32 = "parallelism.default", default "1" old "execution.parallelism";
        "How many workers an operator has where nothing else says so."
    TABLE_DEFAULT_PARALLELISM: i32 = "table.exec.resource.default-parallelism", default "-1";
        "How many workers an operator of a SQL job has; -1 takes 'parallelism.default'."
    PIPELINE_MAX_PARALLELISM: i32 = "pipeline.max-parallelism", default "-1" old "execution.max-parallelism";
        "Accepted without effect: the number of key groups is fixed."
    PIPELINE_NAME: String = "pipeline.name", optional;
        "The name of the next jobs; without it, it is made from their targets."
    AUTO_WATERMARK_INTERVAL: Duration = "pipeline.auto-watermark-interval", default "200 ms" old "execution.periodic-watermarks-interval";
        "How often watermarks are sent; 0 sends one with every record."
    PIPELINE_OBJECT_REUSE: bool = "pipeline.object-reuse", default "false";
        "Accepted without effect: it concerns the JVM."
    PIPELINE_OPERATOR_CHAINING_ENABLED: bool = "pipeline.operator-chaining.enabled", default "true" old "pipeline.operator-chaining";
        "Accepted without effect: it concerns the JVM."
    PIPELINE_GENERIC_TYPES: bool = "pipeline.generic-types", default "true";
        "Accepted without effect: it concerns the JVM."
    PIPELINE_JARS: Vec<String> = "pipeline.jars", optional;
        "Accepted without effect: connectors are built in."
    PIPELINE_CLASSPATHS: Vec<String> = "pipeline.classpaths", optional;
        "Accepted without effect: connectors are built in."
    PIPELINE_CLOSURE_CLEANER_LEVEL: String = "pipeline.closure-cleaner-level", default "RECURSIVE";
        "Accepted without effect: it concerns the JVM."
    EXECUTION_TARGET: String = "execution.target", optional;
        "Where jobs run; always this process, other targets are not supported yet."
    EXECUTION_ATTACHED: bool = "execution.attached", default "false";
        "Accepted without effect: jobs belong to this process."
    EXECUTION_SHUTDOWN_ON_ATTACHED_EXIT: bool = "execution.shutdown-on-attached-exit", default "false";
        "Accepted without effect: jobs belong to this process."
    REST_ADDRESS: String = "rest.address", optional old "jobmanager.rpc.address";
        "Accepted without effect: remote clusters are not supported yet."
    REST_PORT: i32 = "rest.port", default "8081";
        "Accepted without effect: remote clusters are not supported yet."
    EXECUTION_BUFFER_TIMEOUT_INTERVAL: Duration = "execution.buffer-timeout.interval", default "100 ms" old "execution.buffer-timeout";
        "Accepted without effect: rows go on when an epoch ends."
    EXECUTION_BATCH_SHUFFLE_MODE: String = "execution.batch-shuffle-mode", default "ALL_EXCHANGES_BLOCKING";
        "Accepted without effect: batch queries run in one process."
    TASK_SLOTS: i32 = "taskmanager.numberOfTaskSlots", default "1";
        "Accepted without effect: there is one process with all cores."

    // Checkpoints.
    CHECKPOINTING_INTERVAL: Duration = "execution.checkpointing.interval", optional;
        "How often jobs are checkpointed; not at all without it."
    CHECKPOINTING_INTERVAL_DURING_BACKLOG: Duration = "execution.checkpointing.interval-during-backlog", optional;
        "How often jobs are checkpointed while a source catches up; 0 is not at all."
    CHECKPOINTING_MODE: CheckpointingMode = "execution.checkpointing.mode", default "EXACTLY_ONCE";
        "What a restart may repeat."
    CHECKPOINTING_TIMEOUT: Duration = "execution.checkpointing.timeout", default "10 min";
        "After this time a checkpoint is given up."
    CHECKPOINTING_MIN_PAUSE: Duration = "execution.checkpointing.min-pause", default "0 ms";
        "The least time between the end of a checkpoint and the start of the next."
    CHECKPOINTING_MAX_CONCURRENT: i32 = "execution.checkpointing.max-concurrent-checkpoints", default "1";
        "Accepted without effect: there is one checkpoint at a time."
    CHECKPOINTING_TOLERABLE_FAILED: i32 = "execution.checkpointing.tolerable-failed-checkpoints", default "0";
        "How many checkpoints may fail in a row before the job does."
    CHECKPOINTING_NUM_RETAINED: i32 = "execution.checkpointing.num-retained", default "1" old "state.checkpoints.num-retained";
        "How many completed checkpoints are kept."
    CHECKPOINTING_RETENTION: CheckpointRetention = "execution.checkpointing.externalized-checkpoint-retention", default "RETAIN_ON_CANCELLATION";
        "What becomes of the last checkpoint when a job is cancelled."
    CHECKPOINTING_DIR: String = "execution.checkpointing.dir", optional old "state.checkpoints.dir", "state.backend.fs.checkpointdir";
        "Where checkpoints are written."
    SAVEPOINT_DIR: String = "execution.checkpointing.savepoint-dir", optional old "state.savepoints.dir", "savepoints.state.backend.fs.dir";
        "Where savepoints are written."
    CHECKPOINTING_STORAGE: String = "execution.checkpointing.storage", default "jobmanager" old "state.checkpoint-storage";
        "Accepted without effect: checkpoints are files."
    CHECKPOINTING_INCREMENTAL: bool = "execution.checkpointing.incremental", default "false" old "state.backend.incremental";
        "Accepted without effect: checkpoints hold what has changed."
    CHECKPOINTING_UNALIGNED: bool = "execution.checkpointing.unaligned.enabled", default "false" old "execution.checkpointing.unaligned";
        "Accepted without effect: checkpoints lie between epochs."
    RECOVERY_PATH: String = "execution.state-recovery.path", optional old "execution.savepoint.path";
        "Every following job starts from this savepoint or checkpoint, until RESET."
    RECOVERY_IGNORE_UNCLAIMED: bool = "execution.state-recovery.ignore-unclaimed-state", default "false" old "execution.savepoint.ignore-unclaimed-state";
        "Whether a job may start from a savepoint that holds state of operators which are gone."
    RECOVERY_CLAIM_MODE: ClaimMode = "execution.state-recovery.claim-mode", default "NO_CLAIM" old "execution.savepoint-restore-mode";
        "Who owns the savepoint that a job starts from."

    // State.
    STATE_BACKEND_TYPE: String = "state.backend.type", default "hashmap" old "state.backend";
        "Accepted without effect: there is one state store."
    STATE_TTL: Duration = "table.exec.state.ttl", default "0 ms" old "execution.min-idle-state-retention", "table.exec.state.min-retention";
        "How long the state of a key is kept after its last change; checked, but state does not expire yet."

    // Restarts.
    RESTART_STRATEGY_TYPE: String = "restart-strategy.type", optional old "restart-strategy";
        "How a failed job is restarted: none, fixed-delay, failure-rate or exponential-delay."
    RESTART_FIXED_ATTEMPTS: i32 = "restart-strategy.fixed-delay.attempts", default "1";
        "How often a job is restarted."
    RESTART_FIXED_DELAY: Duration = "restart-strategy.fixed-delay.delay", default "1 s";
        "How long a restart waits."
    RESTART_RATE_MAX_FAILURES: i32 = "restart-strategy.failure-rate.max-failures-per-interval", default "1";
        "How many failures within the interval are met with a restart."
    RESTART_RATE_INTERVAL: Duration = "restart-strategy.failure-rate.failure-rate-interval", default "1 min";
        "The interval in which failures are counted."
    RESTART_RATE_DELAY: Duration = "restart-strategy.failure-rate.delay", default "1 s";
        "How long a restart waits."
    RESTART_BACKOFF_INITIAL: Duration = "restart-strategy.exponential-delay.initial-backoff", default "1 s";
        "How long the first restart waits."
    RESTART_BACKOFF_MAX: Duration = "restart-strategy.exponential-delay.max-backoff", default "1 min";
        "The longest that a restart waits."
    RESTART_BACKOFF_MULTIPLIER: f64 = "restart-strategy.exponential-delay.backoff-multiplier", default "1.5";
        "What the wait is multiplied by after each failure."
    RESTART_BACKOFF_RESET: Duration = "restart-strategy.exponential-delay.reset-backoff-threshold", default "1 h";
        "After this time without a failure the wait starts over."
    RESTART_BACKOFF_JITTER: f64 = "restart-strategy.exponential-delay.jitter-factor", default "0.1";
        "By which part of itself the wait is varied at random."
    RESTART_BACKOFF_ATTEMPTS: String = "restart-strategy.exponential-delay.attempts-before-reset-backoff", default "infinite";
        "How often a job is restarted before it fails for good."

    // Our own.
    JOB_RESUME: JobResume = "lakehead.job.resume", default "NONE";
        "What a job starts from: NONE starts anew, LATEST goes on from the newest checkpoint of the job of that name. Where its source has lost what comes next, RESNAPSHOT reads the tables anew and replaces what was written, and SKIP goes on without what is lost."
    STATE_MEMORY_BUDGET: MemorySize = "lakehead.state.memory-budget", optional;
        "The most memory that the state of a job takes before the job fails; half of the machine's without it."
    STATE_DELTA_BYTES: MemorySize = "lakehead.state.delta-size", default "32 mb";
        "How many bytes of changes a checkpoint keeps beside the last copy of the whole state before they are merged into a new one; where the state is larger, as many as it has."
    EPOCH_ROWS: i64 = "lakehead.epoch.max-rows", default "262144";
        "The most rows that are worked on in one go, for sources that know their rows (files go by 8 MB); keys that change several times within are written once."

    // Tables.
    TABLE_LOCAL_TIME_ZONE: String = "table.local-time-zone", default "default";
        "The time zone of TIMESTAMP_LTZ texts and of CURRENT_* functions: a TZDB name or GMT+08:00; 'default' is the system's."
    DML_SYNC: bool = "table.dml-sync", default "false";
        "Whether INSERT waits until its job has finished."
    DYNAMIC_TABLE_OPTIONS: bool = "table.dynamic-table-options.enabled", default "true";
        "Whether OPTIONS hints are allowed."
    SQL_DIALECT: String = "table.sql-dialect", default "default";
        "The dialect; there is only 'default'."
    MAX_COLUMN_WIDTH: i32 = "table.display.max-column-width", default "30" old "sql-client.display.max_column_width";
        "The widest that a column of variable length is shown in a tableau."
    COLUMN_EXPANSION_STRATEGY: Vec<String> = "table.column-expansion-strategy", default "";
        "Which metadata columns SELECT * leaves out."
    SOURCE_IDLE_TIMEOUT: Duration = "table.exec.source.idle-timeout", default "0 ms";
        "After this time without rows a source no longer holds watermarks back; 0 is never."
    CDC_EVENTS_DUPLICATE: bool = "table.exec.source.cdc-events-duplicate", default "false";
        "Whether change sources may repeat events, so that they must be brought in order by primary key."
    NOT_NULL_ENFORCER: NotNullEnforcer = "table.exec.sink.not-null-enforcer", default "ERROR";
        "What becomes of a NULL for a NOT NULL column."
    TYPE_LENGTH_ENFORCER: TypeLengthEnforcer = "table.exec.sink.type-length-enforcer", default "IGNORE";
        "What becomes of texts and bytes that are longer or shorter than their type."
    NESTED_CONSTRAINT_ENFORCER: String = "table.exec.sink.nested-constraint-enforcer", default "IGNORE";
        "Accepted without effect: nested constraints are not enforced."
    UPSERT_MATERIALIZE: Switch = "table.exec.sink.upsert-materialize", default "AUTO";
        "Whether changes are put in order before an upsert sink."
    SINK_KEYED_SHUFFLE: Switch = "table.exec.sink.keyed-shuffle", default "AUTO";
        "Accepted without effect: rows of one key always go to one writer."
    REQUIRE_ON_CONFLICT: bool = "table.exec.sink.require-on-conflict", default "false";
        "Whether an INSERT whose query does not keep the sink's key must say ON CONFLICT. Flink 2.3 has true here."
    ROWTIME_INSERTER: String = "table.exec.sink.rowtime-inserter", default "ENABLED";
        "Whether the row time is written as the record's time stamp."
    MINI_BATCH_ENABLED: bool = "table.exec.mini-batch.enabled", default "false";
        "Whether changes are collected before they are worked on."
    MINI_BATCH_ALLOW_LATENCY: Duration = "table.exec.mini-batch.allow-latency", default "0 ms";
        "How long changes may be collected."
    MINI_BATCH_SIZE: i64 = "table.exec.mini-batch.size", default "-1";
        "How many rows may be collected."
    AGG_PHASE_STRATEGY: AggregatePhaseStrategy = "table.optimizer.agg-phase-strategy", default "AUTO";
        "Whether workers aggregate rows that are never taken back before they hand them over: where it makes them fewer (AUTO), always (TWO_PHASE) or never (ONE_PHASE)."
    DISTINCT_AGG_SPLIT: bool = "table.optimizer.distinct-agg.split.enabled", default "false";
        "Accepted without effect: distinct aggregates are not split."
    DISTINCT_AGG_BUCKETS: i32 = "table.optimizer.distinct-agg.split.bucket-num", default "1024";
        "Accepted without effect: distinct aggregates are not split."
    EMIT_EARLY_FIRE: bool = "table.exec.emit.early-fire.enabled", default "false";
        "Whether group windows emit before they are complete."
    EMIT_EARLY_FIRE_DELAY: Duration = "table.exec.emit.early-fire.delay", optional;
        "How often group windows emit before they are complete."
    EMIT_LATE_FIRE: bool = "table.exec.emit.late-fire.enabled", default "false";
        "Whether group windows emit again for late rows."
    EMIT_LATE_FIRE_DELAY: Duration = "table.exec.emit.late-fire.delay", optional;
        "How often group windows emit for late rows."
    EMIT_ALLOW_LATENESS: Duration = "table.exec.emit.allow-lateness", optional;
        "How long group windows are kept for late rows."
    INTERVAL_JOIN_CLEANUP: Duration = "table.exec.interval-join.min-cleanup-interval", default "0 ms";
        "Accepted without effect: rows are dropped when they can no longer match."
    DEDUPLICATE_SENSITIVE: bool = "table.exec.deduplicate.insert-update-after-sensitive-enabled", default "true" old "table.exec.deduplicate.insert-and-updateafter-sensitive.enabled";
        "Whether the first row of a deduplication is an insert."
    TOPN_CACHE_SIZE: i64 = "table.exec.rank.topn-cache-size", default "10000" old "table.exec.topn-cache-size";
        "Accepted without effect: state is kept in memory."
    ASYNC_LOOKUP_CAPACITY: i32 = "table.exec.async-lookup.buffer-capacity", default "100";
        "How many look-ups of a join may be under way."
    ASYNC_LOOKUP_TIMEOUT: Duration = "table.exec.async-lookup.timeout", default "3 min";
        "After this time a look-up fails."
    ASYNC_LOOKUP_OUTPUT_MODE: String = "table.exec.async-lookup.output-mode", default "ORDERED";
        "Whether look-ups may overtake one another: ORDERED or ALLOW_UNORDERED."
    ASYNC_LOOKUP_KEY_ORDERED: bool = "table.exec.async-lookup.key-ordered-enabled", default "false";
        "Whether look-ups of one key keep their order."
    SORT_DEFAULT_LIMIT: i64 = "table.exec.sort.default-limit", default "-1";
        "How many rows a batch ORDER BY without LIMIT gives; -1 is all."
    LEGACY_CAST: String = "table.exec.legacy-cast-behaviour", default "DISABLED";
        "ENABLED: a CAST that fails gives NULL."
    LEGACY_BYTES_TO_STRING_CAST: bool = "table.exec.legacy-bytes-to-string-cast", default "false";
        "Accepted without effect: bytes that are no UTF-8 fail a CAST."
    JOIN_REORDER: bool = "table.optimizer.join-reorder-enabled", default "false";
        "Accepted without effect: joins run as written."
    JOIN_BROADCAST_THRESHOLD: i64 = "table.optimizer.join.broadcast-threshold", default "1048576";
        "Accepted without effect: the batch planner decides by size."
    MULTI_JOIN: bool = "table.optimizer.multi-join.enabled", default "false";
        "Whether streaming joins of three or more inputs on one key run as one operator, which keeps no rows in between."
    DELTA_JOIN_STRATEGY: String = "table.optimizer.delta-join.strategy", default "AUTO";
        "Accepted without effect: joins keep their state."
    NON_DETERMINISTIC_UPDATE: String = "table.optimizer.non-deterministic-update.strategy", default "IGNORE";
        "Accepted without effect: non-deterministic updates are not looked for."
    DYNAMIC_FILTERING: bool = "table.optimizer.dynamic-filtering.enabled", default "true";
        "Accepted without effect: batch joins filter their scans."
    BUILTIN_CATALOG_NAME: String = "table.builtin-catalog-name", default "default_catalog";
        "The catalog that is there from the start; read when a session starts."
    BUILTIN_DATABASE_NAME: String = "table.builtin-database-name", default "default_database";
        "The database that is there from the start; read when a session starts."
    CATALOG_STORE_KIND: String = "table.catalog-store.kind", default "generic_in_memory";
        "Where definitions of catalogs are kept: generic_in_memory or file; read when a session starts."
    CATALOG_STORE_PATH: String = "table.catalog-store.file.path", optional;
        "The directory for 'table.catalog-store.kind' = 'file'."
    RTAS_CTAS_ATOMICITY: bool = "table.rtas-ctas.atomicity-enabled", default "false";
        "Accepted without effect: the table is created before it is filled."
    ICEBERG_INFER_SOURCE_PARALLELISM: bool = "table.exec.iceberg.infer-source-parallelism", default "true";
        "Accepted without effect: a scan has one partition per core."
    ICEBERG_INFER_SOURCE_PARALLELISM_MAX: i32 = "table.exec.iceberg.infer-source-parallelism.max", default "100";
        "Accepted without effect: a scan has one partition per core."
    ICEBERG_EXPOSE_SPLIT_LOCALITY: bool = "table.exec.iceberg.expose-split-locality-info", optional;
        "Accepted without effect: there is one process."
    ICEBERG_FETCH_BATCH_RECORD_COUNT: i32 = "table.exec.iceberg.fetch-batch-record-count", default "2048";
        "Accepted without effect: batches have the size that the engine chooses."
    ICEBERG_WORKER_POOL_SIZE: i32 = "table.exec.iceberg.worker-pool-size", optional;
        "Accepted without effect: manifests are read by all cores."
    ICEBERG_USE_FLIP27_SOURCE: bool = "table.exec.iceberg.use-flip27-source", default "true";
        "Accepted without effect: there is one Iceberg source."
    ICEBERG_USE_V2_SINK: bool = "table.exec.iceberg.use-v2-sink", default "false";
        "Accepted without effect: there is one Iceberg sink."
    FRESHNESS_THRESHOLD: Duration = "materialized-table.refresh-mode.freshness-threshold", default "30 min";
        "Accepted without effect: materialized tables are not supported."
    FRESHNESS_CONTINUOUS: Duration = "materialized-table.default-freshness.continuous", default "3 min";
        "Accepted without effect: materialized tables are not supported."
    FRESHNESS_FULL: Duration = "materialized-table.default-freshness.full", default "1 h";
        "Accepted without effect: materialized tables are not supported."
    TABLE_PLANNER: String = "table.planner", default "blink" old "execution.planner";
        "Accepted without effect: there is one planner."

    // The client.
    RESULT_MODE: ResultMode = "sql-client.execution.result-mode", default "TABLE" old "execution.result-mode";
        "How a query's rows are shown: paged (TABLE, CHANGELOG) or printed (TABLEAU)."
    MAX_TABLE_RESULT_ROWS: i64 = "sql-client.execution.max-table-result.rows", default "1000000" old "execution.max-table-result-rows";
        "How many rows TABLE mode keeps."
    VERBOSE: bool = "sql-client.verbose", default "false";
        "Whether errors show all their causes."
    PRINT_TIME_COST: bool = "sql-client.display.print-time-cost", default "true";
        "Whether the time that a query took is shown below its rows."
    COLOR_SCHEMA: String = "sql-client.display.color-schema", default "DEFAULT";
        "The colours of the statement that is being typed."
    SHOW_LINE_NUMBERS: bool = "sql-client.display.show-line-numbers", default "false";
        "Whether the prompt of further lines shows their number."
    OLD_MAX_COLUMN_WIDTH: i32 = "sql-client.display.max-column-width", default "30";
        "Accepted without effect, as in Flink 2.3: see 'table.display.max-column-width'."
    CLIENT_TIMEOUT: Duration = "client.timeout", default "60 s";
        "How long the client waits for a gateway."

    // The gateway.
    GATEWAY_ADDRESS: String = "sql-gateway.endpoint.rest.address", optional;
        "The address that clients reach the gateway at."
    GATEWAY_PORT: i32 = "sql-gateway.endpoint.rest.port", default "8083";
        "The port of the gateway."
    GATEWAY_BIND_ADDRESS: String = "sql-gateway.endpoint.rest.bind-address", optional;
        "The address that the gateway listens on."
    GATEWAY_BIND_PORT: String = "sql-gateway.endpoint.rest.bind-port", optional;
        "The port or ports that the gateway listens on."
    GATEWAY_ENDPOINT_TYPE: String = "sql-gateway.endpoint.type", default "rest";
        "The kind of endpoint; there is only 'rest'."
    GATEWAY_SESSION_IDLE_TIMEOUT: Duration = "sql-gateway.session.idle-timeout", default "10 min";
        "After this time without a request a session is closed."
    GATEWAY_SESSION_CHECK_INTERVAL: Duration = "sql-gateway.session.check-interval", default "1 min";
        "How often idle sessions are looked for."
    GATEWAY_SESSION_MAX_NUM: i32 = "sql-gateway.session.max-num", default "1000000";
        "How many sessions there may be."
    GATEWAY_WORKERS_MAX: i32 = "sql-gateway.worker.threads.max", default "500";
        "Accepted without effect: statements share the process's threads."
    GATEWAY_WORKERS_MIN: i32 = "sql-gateway.worker.threads.min", default "5";
        "Accepted without effect: statements share the process's threads."
}

/// Returns the option that a key names, also by an old name.
pub fn session_option(key: &str) -> Option<&'static dyn OptionDef> {
    let by_key = SESSION_OPTIONS.iter().find(|option| option.key() == key);
    by_key.or_else(|| SESSION_OPTIONS.iter().find(|option| option.old_keys().contains(&key))).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_option_is_documented_and_its_default_is_a_value() {
        let mut keys = BTreeSet::new();
        for option in SESSION_OPTIONS {
            assert!(option.doc().ends_with('.'), "{}", option.key());
            if let Some(default) = option.default_text() {
                option.check(default).unwrap();
            }
            for key in std::iter::once(&option.key()).chain(option.old_keys()) {
                assert!(keys.insert(*key), "{key} is declared twice");
            }
        }
    }

    #[test]
    fn an_old_name_finds_the_option_of_today() {
        assert_eq!(session_option("state.checkpoints.dir").unwrap().key(), "execution.checkpointing.dir");
        assert!(session_option("no.such.key").is_none());
    }
}
