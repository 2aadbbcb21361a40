//! `filesystem`: tables of files below a folder. Columns of PARTITIONED BY are folders named `key=value`, not file content.

mod commit;
mod decoder;
mod listing;
mod path;
mod reader;
mod sink;
mod source;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use regex::Regex;

use super::{DynamicTableSink, DynamicTableSource, FactoryContext, TableFactory};
use crate::error::{Error, Result};
use crate::format::{FORMAT_FACTORIES, FormatContext, FormatFactory, format_factory};
use crate::options::{ConfigOption, MemorySize, OptionDef, time_zone};
use crate::schema::{Column, ColumnKind};
use sink::FilesystemSink;
use source::FilesystemSource;

const PATH: ConfigOption<String> = ConfigOption::required(
    "path",
    "The folder with the table's files, or one file to read; 'file:' may stand in front.",
);
const FORMAT: ConfigOption<String> = ConfigOption::required("format", "The format of the files.");
const PARTITION_DEFAULT_NAME: ConfigOption<String> = ConfigOption::with_default(
    "partition.default-name",
    "__DEFAULT_PARTITION__",
    "The folder name of partition values that are NULL or empty.",
);
const MONITOR_INTERVAL: ConfigOption<Duration> = ConfigOption::optional(
    "source.monitor-interval",
    "How often to look for new files; without it the table is read once and ends.",
);
const PATH_PATTERN: ConfigOption<String> = ConfigOption::optional(
    "source.path.regex-pattern",
    "A regular expression that absolute paths of files must match.",
);
const REPORT_STATISTICS: ConfigOption<String> = ConfigOption::with_default(
    "source.report-statistics",
    "ALL",
    "Which statistics the planner gets: ALL or NONE.",
);
const ROLLING_FILE_SIZE: ConfigOption<MemorySize> = ConfigOption::with_default(
    "sink.rolling-policy.file-size",
    "128MB",
    "The size at which a new file is begun.",
);
const ROLLOVER_INTERVAL: ConfigOption<Duration> = ConfigOption::with_default(
    "sink.rolling-policy.rollover-interval",
    "30 min",
    "How long a file takes rows at most; every checkpoint ends it sooner.",
);
const ROLLING_CHECK_INTERVAL: ConfigOption<Duration> = ConfigOption::with_default(
    "sink.rolling-policy.check-interval",
    "1 min",
    "How often rolling by time is looked at; here whenever rows come.",
);
const INACTIVITY_INTERVAL: ConfigOption<Duration> = ConfigOption::with_default(
    "sink.rolling-policy.inactivity-interval",
    "30 min",
    "After how long without rows the next ones begin a new file.",
);
const AUTO_COMPACTION: ConfigOption<bool> = ConfigOption::with_default(
    "auto-compaction",
    "false",
    "Whether small files are merged; true is refused.",
);
const COMPACTION_FILE_SIZE: ConfigOption<MemorySize> =
    ConfigOption::optional("compaction.file-size", "The size that merged files should have.");
const COMMIT_TRIGGER: ConfigOption<String> = ConfigOption::with_default(
    "sink.partition-commit.trigger",
    "process-time",
    "What makes a partition complete; only process-time is known.",
);
const COMMIT_DELAY: ConfigOption<Duration> = ConfigOption::with_default(
    "sink.partition-commit.delay",
    "0 s",
    "How long after that a partition is committed.",
);
const COMMIT_WATERMARK_ZONE: ConfigOption<String> = ConfigOption::with_default(
    "sink.partition-commit.watermark-time-zone",
    "UTC",
    "The time zone of watermarks, for the trigger partition-time.",
);
const COMMIT_POLICY: ConfigOption<Vec<String>> = ConfigOption::optional(
    "sink.partition-commit.policy.kind",
    "What to do with a committed partition: success-file writes an empty file into it.",
);
const SUCCESS_FILE_NAME: ConfigOption<String> = ConfigOption::with_default(
    "sink.partition-commit.success-file.name",
    "_SUCCESS",
    "The name of that file.",
);
const SHUFFLE_BY_PARTITION: ConfigOption<bool> = ConfigOption::with_default(
    "sink.shuffle-by-partition.enable",
    "false",
    "Whether rows of one partition go to one writer.",
);
const SINK_PARALLELISM: ConfigOption<u32> = ConfigOption::optional(
    "sink.parallelism",
    "How many writers the sink has, by default as many as the query before it.",
);

/// Options that are checked but change nothing: what they tune is done otherwise here.
const ACCEPTED: &[&dyn OptionDef] = &[
    &REPORT_STATISTICS,
    &ROLLING_CHECK_INTERVAL,
    &COMPACTION_FILE_SIZE,
    &COMMIT_DELAY,
    &COMMIT_WATERMARK_ZONE,
    &SHUFFLE_BY_PARTITION,
    &SINK_PARALLELISM,
];

/// The connector `filesystem`.
pub(crate) struct Filesystem;

/// Where a table's files are and how they are told apart.
#[derive(Debug, Clone)]
struct FileTable {
    root: PathBuf,
    pattern: Option<Regex>,
    monitor_interval: Option<Duration>,
    partition_keys: Vec<Column>,
    default_partition: String,
    rolling: RollingPolicy,
    success_file: Option<String>,
    zone: chrono_tz::Tz,
}

/// When a file has taken enough rows.
#[derive(Debug, Clone, Copy)]
struct RollingPolicy {
    size: u64,
    rollover_interval: Duration,
    inactivity_interval: Duration,
}

impl TableFactory for Filesystem {
    fn identifier(&self) -> &'static str {
        "filesystem"
    }

    fn doc(&self) -> &'static str {
        "Files in a folder, read once or as they arrive, and written."
    }

    fn options(&self) -> &'static [&'static dyn OptionDef] {
        &[
            &PATH,
            &FORMAT,
            &PARTITION_DEFAULT_NAME,
            &MONITOR_INTERVAL,
            &PATH_PATTERN,
            &REPORT_STATISTICS,
            &ROLLING_FILE_SIZE,
            &ROLLOVER_INTERVAL,
            &ROLLING_CHECK_INTERVAL,
            &INACTIVITY_INTERVAL,
            &AUTO_COMPACTION,
            &COMPACTION_FILE_SIZE,
            &COMMIT_TRIGGER,
            &COMMIT_DELAY,
            &COMMIT_WATERMARK_ZONE,
            &COMMIT_POLICY,
            &SUCCESS_FILE_NAME,
            &SHUFFLE_BY_PARTITION,
            &SINK_PARALLELISM,
        ]
    }

    fn create_source(&self, ctx: &FactoryContext<'_>) -> Result<Arc<dyn DynamicTableSource>> {
        ctx.require(self)?;
        let factory = find_format(ctx)?;
        let table = FileTable::new(ctx)?;
        let columns = table.format_columns(ctx);
        let format = factory.decoding(&format_context(
            ctx,
            &format!("{}.", factory.identifier()),
            &columns,
            table.zone,
        ))?;
        ctx.options.reject_unknown()?;
        let physical = ctx.schema.physical_columns().cloned().collect();
        Ok(Arc::new(FilesystemSource::new(table, physical, columns, format)))
    }

    fn create_sink(&self, ctx: &FactoryContext<'_>) -> Result<Arc<dyn DynamicTableSink>> {
        ctx.require(self)?;
        let factory = find_format(ctx)?;
        let table = FileTable::new(ctx)?;
        let columns = table.format_columns(ctx);
        let format = factory.encoding(&format_context(
            ctx,
            &format!("{}.", factory.identifier()),
            &columns,
            table.zone,
        ))?;
        ctx.options.reject_unknown()?;
        let metadata =
            ctx.schema.sink_columns().find(|column| matches!(column.kind, ColumnKind::Metadata { .. }));
        if let Some(column) = metadata {
            return Err(Error::validation(format!(
                "Invalid metadata key '{}' in column '{}' of table '{}'. The table sink does not support writing metadata.",
                metadata_key(column),
                column.name,
                ctx.table
            ))
            .hint("Declare the column VIRTUAL: the metadata of files can only be read."));
        }
        Ok(Arc::new(FilesystemSink::new(table, ctx.schema.physical_columns().cloned().collect(), format)))
    }
}

impl FileTable {
    fn new(ctx: &FactoryContext<'_>) -> Result<FileTable> {
        let options = ctx.options;
        ctx.accept(ACCEPTED)?;
        let pattern = options.get_optional(&PATH_PATTERN)?.map(|text| anchored(&text)).transpose()?;
        if options.get(&AUTO_COMPACTION)? {
            return Err(Error::unsupported("option 'auto-compaction' = 'true' is not supported")
                .hint("Leave it out: files are as large as checkpoints and 'sink.rolling-policy.file-size' let them be."));
        }
        if options.get(&COMMIT_TRIGGER)? != "process-time" {
            return Err(Error::unsupported(
                "option 'sink.partition-commit.trigger' takes only 'process-time'",
            )
            .hint("Partitions become visible with the checkpoint that completes them."));
        }
        let success_file = options.get(&SUCCESS_FILE_NAME)?;
        let policies = options.get_optional(&COMMIT_POLICY)?.unwrap_or_default();
        let policies = policies.iter().flat_map(|text| text.split(',')).map(str::trim);
        let mut has_success_file = false;
        for policy in policies {
            if policy != "success-file" {
                return Err(Error::unsupported(format!(
                    "partition commit policy '{policy}' is not supported"
                ))
                .hint("Option 'sink.partition-commit.policy.kind' takes 'success-file'."));
            }
            has_success_file = true;
        }
        let keys = ctx.partition_keys.iter().map(|key| {
            ctx.schema.physical_columns().find(|column| column.name == *key).cloned().ok_or_else(|| {
                Error::validation(format!("Partition column '{key}' not defined in the table schema."))
            })
        });
        Ok(FileTable {
            root: path::local_path(&options.get(&PATH)?)?,
            pattern,
            monitor_interval: options.get_optional(&MONITOR_INTERVAL)?,
            partition_keys: keys.collect::<Result<_>>()?,
            default_partition: options.get(&PARTITION_DEFAULT_NAME)?,
            rolling: RollingPolicy {
                size: options.get(&ROLLING_FILE_SIZE)?.0,
                rollover_interval: options.get(&ROLLOVER_INTERVAL)?,
                inactivity_interval: options.get(&INACTIVITY_INTERVAL)?,
            },
            success_file: has_success_file.then_some(success_file),
            zone: time_zone(ctx.config)?,
        })
    }

    /// Returns the columns that are in the files: all but those of the folders.
    fn format_columns(&self, ctx: &FactoryContext<'_>) -> Vec<Column> {
        ctx.schema.physical_columns().filter(|column| !self.is_partition_key(&column.name)).cloned().collect()
    }

    fn is_partition_key(&self, name: &str) -> bool {
        self.partition_keys.iter().any(|key| key.name == name)
    }
}

/// Compiles a pattern that must match a whole path.
fn anchored(text: &str) -> Result<Regex> {
    Regex::new(&format!("^(?:{text})$")).map_err(|error| {
        Error::validation(format!("'{text}' is not a regular expression"))
            .hint(format!("This is the value of option '{}'.", PATH_PATTERN.key()))
            .caused_by(error)
    })
}

fn metadata_key(column: &Column) -> &str {
    match &column.kind {
        ColumnKind::Metadata { key: Some(key), .. } => key,
        _ => &column.name,
    }
}

fn find_format(ctx: &FactoryContext<'_>) -> Result<&'static dyn FormatFactory> {
    let identifier = ctx.options.get(&FORMAT)?;
    let factory = format_factory(&identifier, "DeserializationFormatFactory").map_err(|error| {
        let names: Vec<&str> = FORMAT_FACTORIES.iter().map(|factory| factory.identifier()).collect();
        let hint =
            error.hint_text().map_or_else(|| format!("There are: {}.", names.join(", ")), str::to_owned);
        Error::validation(format!(
            "Could not find any format factory for identifier '{identifier}' in the classpath."
        ))
        .hint(hint)
    })?;
    ctx.options.declare(factory.options());
    Ok(factory)
}

fn format_context<'a>(
    ctx: &'a FactoryContext<'_>,
    prefix: &'a str,
    columns: &'a [Column],
    zone: chrono_tz::Tz,
) -> FormatContext<'a> {
    FormatContext { columns, options: ctx.options, prefix, zone }
}
