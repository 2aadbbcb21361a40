//! The options that say what of a table is read: in WITH, in the hint OPTIONS, and some of them in SET as `connector.iceberg.…`.
//!
//! Keys that Flink does not know it takes without a word, since every key may be a property of the table. So do we, but for a key that
//! is a known one with a typing error: `snapshotid` would silently read the table of today.

use std::time::Duration;

use crate::connector::FactoryContext;
use crate::error::{Error, FlinkClass, Result};
use crate::options::{ConfigOption, OptionDef, OptionValue, RUNTIME_MODE, RuntimeMode, nearest};

const SNAPSHOT_ID: ConfigOption<i64> =
    ConfigOption::optional("snapshot-id", "Reads the table as this snapshot left it.");
const AS_OF_TIMESTAMP: ConfigOption<i64> = ConfigOption::optional(
    "as-of-timestamp",
    "Reads the table as it was at this time, in milliseconds since 1970 (UTC).",
);
const BRANCH: ConfigOption<String> =
    ConfigOption::optional("branch", "The branch that is read or written; 'main' without it.");
const TAG: ConfigOption<String> =
    ConfigOption::optional("tag", "Reads the table as the tag keeps it; the name of a branch is taken, too.");
const START_SNAPSHOT_ID: ConfigOption<i64> =
    ConfigOption::optional("start-snapshot-id", "Reads only rows that were appended behind this snapshot.");
const END_SNAPSHOT_ID: ConfigOption<i64> = ConfigOption::optional(
    "end-snapshot-id",
    "Reads only rows that were appended up to this snapshot; with 'start-snapshot-id' both bound a range.",
);
const START_TAG: ConfigOption<String> =
    ConfigOption::optional("start-tag", "As 'start-snapshot-id', with the snapshot of a tag.");
const END_TAG: ConfigOption<String> =
    ConfigOption::optional("end-tag", "As 'end-snapshot-id', with the snapshot of a tag.");
const LIMIT: ConfigOption<i64> =
    ConfigOption::with_default("limit", "-1", "Reads at most so many rows; -1 reads all.");
const STREAMING: ConfigOption<bool> = ConfigOption::with_default(
    "streaming",
    "false",
    "Whether the table is read continuously, which is not supported yet.",
);
const STARTING_STRATEGY: ConfigOption<StartingStrategy> = ConfigOption::with_default(
    "starting-strategy",
    "INCREMENTAL_FROM_LATEST_SNAPSHOT",
    "Where a continuous read begins; without effect on a bounded one.",
);
const START_SNAPSHOT_TIMESTAMP: ConfigOption<i64> = ConfigOption::optional(
    "start-snapshot-timestamp",
    "Where a continuous read begins, in milliseconds; without effect on a bounded one.",
);
const MONITOR_INTERVAL: ConfigOption<Duration> = ConfigOption::with_default(
    "monitor-interval",
    "60s",
    "How often a continuous read looks for snapshots; without effect on a bounded one.",
);
const MAX_PLANNING_SNAPSHOT_COUNT: ConfigOption<i32> = ConfigOption::with_default(
    "max-planning-snapshot-count",
    "2147483647",
    "How many snapshots a continuous read takes at once; without effect on a bounded one.",
);
const MAX_ALLOWED_PLANNING_FAILURES: ConfigOption<i32> = ConfigOption::with_default(
    "max-allowed-planning-failures",
    "3",
    "How often a continuous read looks again; without effect on a bounded one.",
);
const WATERMARK_COLUMN: ConfigOption<String> = ConfigOption::optional(
    "watermark-column",
    "The column that a continuous read makes watermarks of; without effect on a bounded one.",
);
const WATERMARK_COLUMN_TIME_UNIT: ConfigOption<String> = ConfigOption::with_default(
    "watermark-column-time-unit",
    "MICROSECONDS",
    "The unit of 'watermark-column'; without effect on a bounded one.",
);
const CASE_SENSITIVE: ConfigOption<bool> = ConfigOption::with_default(
    "case-sensitive",
    "false",
    "Accepted without effect: the columns of a query are found by SQL's rules.",
);
const SPLIT_SIZE: ConfigOption<i64> = ConfigOption::optional(
    "split-size",
    "Accepted without effect: files are spread over the cores by their size.",
);
const SPLIT_LOOKBACK: ConfigOption<i32> = ConfigOption::optional(
    "split-lookback",
    "Accepted without effect: files are spread over the cores by their size.",
);
const SPLIT_FILE_OPEN_COST: ConfigOption<i64> = ConfigOption::optional(
    "split-file-open-cost",
    "Accepted without effect: files are spread over the cores by their size.",
);
const INCLUDE_COLUMN_STATS: ConfigOption<bool> = ConfigOption::with_default(
    "include-column-stats",
    "false",
    "Accepted without effect: statistics are always read.",
);

/// The options of reading.
pub(super) const READ_OPTIONS: &[&dyn OptionDef] = &[
    &SNAPSHOT_ID,
    &AS_OF_TIMESTAMP,
    &BRANCH,
    &TAG,
    &START_SNAPSHOT_ID,
    &END_SNAPSHOT_ID,
    &START_TAG,
    &END_TAG,
    &LIMIT,
    &STREAMING,
    &STARTING_STRATEGY,
    &START_SNAPSHOT_TIMESTAMP,
    &MONITOR_INTERVAL,
    &MAX_PLANNING_SNAPSHOT_COUNT,
    &MAX_ALLOWED_PLANNING_FAILURES,
    &WATERMARK_COLUMN,
    &WATERMARK_COLUMN_TIME_UNIT,
    &CASE_SENSITIVE,
    &SPLIT_SIZE,
    &SPLIT_LOOKBACK,
    &SPLIT_FILE_OPEN_COST,
    &INCLUDE_COLUMN_STATS,
];

/// The options that a session may set for all its tables.
const SESSION_READ_OPTIONS: &[&dyn OptionDef] = &[
    &LIMIT,
    &STREAMING,
    &STARTING_STRATEGY,
    &MONITOR_INTERVAL,
    &MAX_PLANNING_SNAPSHOT_COUNT,
    &MAX_ALLOWED_PLANNING_FAILURES,
    &WATERMARK_COLUMN,
    &WATERMARK_COLUMN_TIME_UNIT,
    &CASE_SENSITIVE,
    &SPLIT_SIZE,
    &SPLIT_LOOKBACK,
    &SPLIT_FILE_OPEN_COST,
    &INCLUDE_COLUMN_STATS,
];

/// What stands before an option in SET.
const SESSION_PREFIX: &str = "connector.iceberg.";

/// The option that takes the time of FOR SYSTEM_TIME AS OF.
pub(super) const TIME_OPTION: &str = "as-of-timestamp";

/// Where a continuous read begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StartingStrategy;

impl StartingStrategy {
    const NAMES: &[&str] = &[
        "TABLE_SCAN_THEN_INCREMENTAL",
        "INCREMENTAL_FROM_LATEST_SNAPSHOT",
        "INCREMENTAL_FROM_LATEST_SNAPSHOT_EXCLUSIVE",
        "INCREMENTAL_FROM_EARLIEST_SNAPSHOT",
        "INCREMENTAL_FROM_SNAPSHOT_ID",
        "INCREMENTAL_FROM_SNAPSHOT_TIMESTAMP",
    ];
}

impl OptionValue for StartingStrategy {
    fn parse(text: &str) -> Result<Self> {
        if StartingStrategy::NAMES.contains(&text) {
            return Ok(StartingStrategy);
        }
        Err(Error::validation(format!(
            "No enum constant org.apache.iceberg.flink.source.StreamingStartingStrategy.{text}"
        ))
        .class(FlinkClass::ILLEGAL_ARGUMENT))
    }

    fn describe() -> String {
        format!("one of {}", StartingStrategy::NAMES.join(", "))
    }

    fn known_values() -> Vec<&'static str> {
        StartingStrategy::NAMES.to_vec()
    }
}

/// One end of a range of snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RangeEnd {
    /// A snapshot.
    Snapshot(i64),
    /// The snapshot of a tag.
    Tag(String),
}

/// What the options say of reading a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ReadOptions {
    /// `snapshot-id`.
    pub(super) snapshot_id: Option<i64>,
    /// `as-of-timestamp`, or FOR SYSTEM_TIME AS OF.
    pub(super) as_of_timestamp: Option<i64>,
    /// `branch`.
    pub(super) branch: Option<String>,
    /// `tag`.
    pub(super) tag: Option<String>,
    /// Behind which snapshot a range begins.
    pub(super) start: Option<RangeEnd>,
    /// With which snapshot a range ends.
    pub(super) end: Option<RangeEnd>,
    /// `limit`.
    pub(super) limit: Option<usize>,
    /// `streaming`, which in batch mode is refused by the planner.
    pub(super) is_streaming: bool,
}

impl ReadOptions {
    /// Reads and checks the options.
    ///
    /// # Errors
    /// A value does not parse, two options exclude each other, or a continuous read is asked for, which there is not yet.
    pub(super) fn parse(ctx: &FactoryContext<'_>) -> Result<ReadOptions> {
        check_names(ctx)?;
        ctx.accept(READ_OPTIONS)?;
        for option in SESSION_READ_OPTIONS {
            if let Some(text) = ctx.config.raw(&session_key(option.key())) {
                option.check(text)?;
            }
        }
        let options = ctx.options;
        let end = |snapshot: &ConfigOption<i64>, tag: &ConfigOption<String>, what: &str| match (
            options.get_optional(snapshot)?,
            options.get_optional(tag)?,
        ) {
            (Some(_), Some(_)) => {
                Err(illegal(format!("{what}_SNAPSHOT_ID and {what}_TAG cannot both be set.")))
            }
            (Some(id), None) => Ok(Some(RangeEnd::Snapshot(id))),
            (None, tag) => Ok(tag.map(RangeEnd::Tag)),
        };
        let read = ReadOptions {
            snapshot_id: options.get_optional(&SNAPSHOT_ID)?,
            as_of_timestamp: options.get_optional(&AS_OF_TIMESTAMP)?,
            branch: options.get_optional(&BRANCH)?,
            tag: options.get_optional(&TAG)?,
            start: end(&START_SNAPSHOT_ID, &START_TAG, "START")?,
            end: end(&END_SNAPSHOT_ID, &END_TAG, "END")?,
            limit: value(ctx, &LIMIT)?.and_then(|limit| usize::try_from(limit).ok()),
            is_streaming: value(ctx, &STREAMING)?.unwrap_or(false),
        };
        if read.is_streaming && ctx.config.get(&RUNTIME_MODE)? == RuntimeMode::Streaming {
            return Err(not_continuously(ctx.table));
        }
        Ok(read)
    }

    /// Returns whether rows of a range of snapshots are read.
    pub(super) fn is_range(&self) -> bool {
        self.start.is_some() || self.end.is_some()
    }
}

/// Makes the error for a continuous read.
pub(super) fn not_continuously(table: &str) -> Error {
    Error::unsupported(format!("table '{table}' cannot be read continuously: 'streaming' = 'true' is not supported yet"))
        .hint("Leave 'streaming' out: the table's present rows are read, in streaming mode too, and the read ends by itself.")
}

/// Makes an error that Iceberg reports as a wrong argument.
pub(super) fn illegal(message: impl Into<String>) -> Error {
    Error::validation(message).class(FlinkClass::ILLEGAL_ARGUMENT)
}

/// Returns the key of an option in SET.
fn session_key(key: &str) -> String {
    format!("{SESSION_PREFIX}{key}")
}

/// Returns an option's value: the table's or the hint's, or else the session's.
fn value<T: OptionValue>(ctx: &FactoryContext<'_>, option: &ConfigOption<T>) -> Result<Option<T>> {
    match ctx.options.raw(option.key()) {
        Some(text) => option.parse(text).map(Some),
        None => ctx.config.raw(&session_key(option.key())).map(|text| option.parse(text)).transpose(),
    }
}

/// The options that choose what is read: they mean nothing where rows are written.
const CHOICES: &[&dyn OptionDef] =
    &[&SNAPSHOT_ID, &AS_OF_TIMESTAMP, &TAG, &START_SNAPSHOT_ID, &END_SNAPSHOT_ID, &START_TAG, &END_TAG];

/// Refuses options of reading where rows are written. Those that choose no rows may stand in the definition of a table that is read and
/// written, and are refused only in a hint.
///
/// # Errors
/// Names the option.
pub(super) fn refuse_in_write(ctx: &FactoryContext<'_>, is_hint: &dyn Fn(&str) -> bool) -> Result<()> {
    let is_choice = |key: &str| CHOICES.iter().any(|option| option.key() == key);
    let is_wrong = |key: &str| key != BRANCH.key() && (is_choice(key) || is_hint(key));
    let known = READ_OPTIONS.iter().map(|option| option.key());
    match known.filter(|key| is_wrong(key)).find(|key| ctx.options.keys().any(|given| given == *key)) {
        Some(key) => Err(illegal(format!("option '{key}' is for reading: '{}' is written here", ctx.table))
            .hint("Leave it out. What an INSERT reads stands behind SELECT … FROM, with hints of its own.")),
        None => Ok(()),
    }
}

/// Refuses keys that are nearly those of options. Properties of tables, which may be anything, have a dot.
///
/// # Errors
/// Names the option that was meant.
pub(super) fn check_names(ctx: &FactoryContext<'_>) -> Result<()> {
    let known = || super::options::table_options().iter().map(|option| option.key());
    for key in ctx.options.keys().filter(|key| !key.contains('.')) {
        if known().any(|known| known == key) {
            continue;
        }
        let plain = key.replace('_', "-");
        if let Some(near) = nearest(&plain, known()).filter(|near| near.contains('-')) {
            return Err(Error::validation(format!("table '{}' has no option '{key}'", ctx.table))
                .hint(format!("Did you mean '{near}'?")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connector::testing::Table;

    fn parse(entries: &[(&str, &str)]) -> Result<ReadOptions> {
        ReadOptions::parse(&Table::new("iceberg", Vec::new(), entries).context())
    }

    fn parse_with(entries: &[(&str, &str)], config: &[(&str, &str)]) -> Result<ReadOptions> {
        let mut table = Table::new("iceberg", Vec::new(), entries);
        for (key, value) in config {
            table.config.set(*key, *value);
        }
        ReadOptions::parse(&table.context())
    }

    #[test]
    fn options_are_read() {
        let read = parse(&[("snapshot-id", "7"), ("branch", "b"), ("limit", "3"), ("split-size", "1000")]);
        let expected = ReadOptions {
            snapshot_id: Some(7),
            branch: Some("b".to_owned()),
            limit: Some(3),
            ..ReadOptions::default()
        };
        assert_eq!(read.unwrap(), expected);
        let range = parse(&[("start-snapshot-id", "1"), ("end-tag", "t")]).unwrap();
        assert_eq!(range.start, Some(RangeEnd::Snapshot(1)));
        assert_eq!(range.end, Some(RangeEnd::Tag("t".to_owned())));
        assert!(range.is_range());
    }

    #[test]
    fn wrong_values_have_the_texts_of_iceberg() {
        for (key, text, message, class) in [
            ("snapshot-id", "x", "For input string: \"x\"", FlinkClass::NUMBER_FORMAT),
            (
                "starting-strategy",
                "nope",
                "No enum constant org.apache.iceberg.flink.source.StreamingStartingStrategy.nope",
                FlinkClass::ILLEGAL_ARGUMENT,
            ),
        ] {
            let error = parse(&[(key, text)]).unwrap_err();
            assert_eq!((error.message(), error.flink_class()), (message, class));
        }
        let both = parse(&[("start-snapshot-id", "1"), ("start-tag", "t")]).unwrap_err();
        assert_eq!(both.message(), "START_SNAPSHOT_ID and START_TAG cannot both be set.");
    }

    #[test]
    fn a_continuous_read_is_refused_in_streaming_mode_and_left_to_the_planner_in_batch_mode() {
        let error = parse(&[("streaming", "true")]).unwrap_err();
        assert!(error.message().contains("is not supported yet"), "{error}");
        assert!(error.hint_text().unwrap().contains("Leave 'streaming' out"));
        let batch = ("execution.runtime-mode", "batch");
        assert!(parse_with(&[("streaming", "true")], &[batch]).unwrap().is_streaming);
        let wrong = parse(&[("streaming", "true"), ("starting-strategy", "nope")]).unwrap_err();
        assert!(wrong.message().starts_with("No enum constant"), "{wrong}");
    }

    #[test]
    fn the_session_gives_what_the_table_does_not() {
        let session = [("connector.iceberg.limit", "5"), ("connector.iceberg.snapshot-id", "5")];
        let read = parse_with(&[], &session).unwrap();
        assert_eq!((read.limit, read.snapshot_id), (Some(5), None), "a snapshot is chosen per table only");
        assert_eq!(parse_with(&[("limit", "2")], &session).unwrap().limit, Some(2));
        let error = parse_with(&[], &[("connector.iceberg.split-size", "big")]).unwrap_err();
        assert_eq!(error.message(), "For input string: \"big\"");
    }

    #[test]
    fn an_unknown_key_is_taken_unless_it_is_a_typing_error() {
        assert!(parse(&[("nope", "true"), ("write.format.default", "orc"), ("owner", "me")]).is_ok());
        for (key, meant) in [("snapshot_id", "snapshot-id"), ("as-of-timestmp", "as-of-timestamp")] {
            let error = parse(&[(key, "1")]).unwrap_err();
            assert_eq!(
                error.message(),
                format!("table 'default_catalog.default_database.t' has no option '{key}'")
            );
            assert_eq!(error.hint_text(), Some(format!("Did you mean '{meant}'?").as_str()));
        }
    }
}
