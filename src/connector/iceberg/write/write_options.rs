//! What a statement says of how a table is written: the options of WITH and of hints. They stand over the table's properties.

use std::collections::BTreeMap;
use std::time::Duration;

use iceberg::spec::TableMetadata;

use super::write_settings::Properties;
use crate::connector::FactoryContext;
use crate::connector::iceberg::known_properties::check_property;
use crate::connector::iceberg::read_options::{check_names, refuse_in_write};
use crate::error::Result;
use crate::options::{ConfigOption, EnumValue, OptionDef, RUNTIME_MODE, RuntimeMode};

const WRITE_FORMAT: ConfigOption<String> =
    ConfigOption::optional("write-format", "The format of data files; only parquet is known.");
const TARGET_FILE_SIZE: ConfigOption<u64> =
    ConfigOption::optional("target-file-size-bytes", "From which size on a data file is ended.");
const UPSERT_ENABLED: ConfigOption<bool> = ConfigOption::optional(
    "upsert-enabled",
    "Whether rows replace those of the same key, also where the query only inserts.",
);
const OVERWRITE_ENABLED: ConfigOption<bool> = ConfigOption::with_default(
    "overwrite-enabled",
    "false",
    "Whether an INSERT in batch mode replaces what is there, as INSERT OVERWRITE does.",
);
const DISTRIBUTION_MODE: ConfigOption<DistributionMode> = ConfigOption::optional(
    "distribution-mode",
    "How rows come to writers: hash brings those of one partition together, and so does range.",
);
const COMPRESSION_CODEC: ConfigOption<String> = ConfigOption::optional(
    "compression-codec",
    "The codec of data files: zstd, gzip, snappy, lz4 or uncompressed.",
);
const COMPRESSION_LEVEL: ConfigOption<String> =
    ConfigOption::optional("compression-level", "The level of that codec, if it has levels.");
const COMPRESSION_STRATEGY: ConfigOption<String> =
    ConfigOption::optional("compression-strategy", "Tunes ORC files, which are not written.");
const WRITE_PARALLELISM: ConfigOption<u32> = ConfigOption::optional(
    "write-parallelism",
    "How many writers the sink has; 1 is kept, otherwise there are as many as workers.",
);
const TABLE_REFRESH_INTERVAL: ConfigOption<Duration> = ConfigOption::optional(
    "table-refresh-interval",
    "How often writers look at the table; they do whenever they start, and every commit does.",
);
const UID_SUFFIX: ConfigOption<String> =
    ConfigOption::optional("uid-suffix", "Names operators of Flink that are not there.");
const RANGE_STATISTICS: ConfigOption<String> = ConfigOption::optional(
    "range-distribution-statistics-type",
    "Tunes the distribution by range, which is one by hash.",
);
const RANGE_WEIGHT: ConfigOption<f64> = ConfigOption::optional(
    "range-distribution-sort-key-base-weight",
    "Tunes the distribution by range, which is one by hash.",
);
const CHANGES_WITHOUT_KEY: ConfigOption<ChangesWithoutKey> = ConfigOption::with_default(
    "lakehead.iceberg.changelog-without-key",
    "mirror",
    "What to do with updates and deletes of a table without key: mirror takes rows away that are equal, append writes every row, as Flink does.",
);

/// The options of writing. `branch` is one of reading too, and stands there.
pub(in crate::connector::iceberg) const WRITE_OPTIONS: &[&dyn OptionDef] = &[
    &WRITE_FORMAT,
    &TARGET_FILE_SIZE,
    &UPSERT_ENABLED,
    &OVERWRITE_ENABLED,
    &DISTRIBUTION_MODE,
    &COMPRESSION_CODEC,
    &COMPRESSION_LEVEL,
    &COMPRESSION_STRATEGY,
    &WRITE_PARALLELISM,
    &TABLE_REFRESH_INTERVAL,
    &UID_SUFFIX,
    &RANGE_STATISTICS,
    &RANGE_WEIGHT,
    &CHANGES_WITHOUT_KEY,
];

/// Options that are checked but change nothing.
const ACCEPTED: &[&dyn OptionDef] =
    &[&COMPRESSION_STRATEGY, &TABLE_REFRESH_INTERVAL, &UID_SUFFIX, &RANGE_STATISTICS, &RANGE_WEIGHT];

/// The options that are properties of the table under other names.
const PROPERTY_OF: &[(&dyn OptionDef, &str)] = &[
    (&WRITE_FORMAT, "write.format.default"),
    (&TARGET_FILE_SIZE, "write.target-file-size-bytes"),
    (&UPSERT_ENABLED, "write.upsert.enabled"),
    (&DISTRIBUTION_MODE, "write.distribution-mode"),
    (&COMPRESSION_CODEC, "write.parquet.compression-codec"),
    (&COMPRESSION_LEVEL, "write.parquet.compression-level"),
];

const UPSERT_PROPERTY: &str = "write.upsert.enabled";
const DISTRIBUTION_PROPERTY: &str = "write.distribution-mode";
const PROPERTY_PREFIX: &str = "write.";
const BRANCH: &str = "branch";

/// How rows come to writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DistributionMode {
    /// Any writer takes any row.
    None,
    /// Rows of one partition meet.
    Hash,
    /// As by hash: no writer needs rows in order.
    Range,
}

impl EnumValue for DistributionMode {
    const CLASS: &'static str = "org.apache.iceberg.DistributionMode";
    const VALUES: &'static [(&'static str, Self)] = &[
        ("none", DistributionMode::None),
        ("hash", DistributionMode::Hash),
        ("range", DistributionMode::Range),
    ];
}

/// What becomes of updates and deletes where there is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangesWithoutKey {
    /// A retraction takes one equal row away.
    Mirror,
    /// Every row is written, whatever its kind.
    Append,
}

impl EnumValue for ChangesWithoutKey {
    const CLASS: &'static str = "lakehead.iceberg.ChangelogWithoutKey";
    const VALUES: &'static [(&'static str, Self)] =
        &[("mirror", ChangesWithoutKey::Mirror), ("append", ChangesWithoutKey::Append)];
}

/// What a statement says.
#[derive(Debug, Clone)]
pub(super) struct WriteOptions {
    /// Properties that stand over those of the table.
    given: BTreeMap<String, String>,
    /// Whether rows replace those of the same key, whatever their kind.
    pub(super) is_upsert: bool,
    /// Whether the rows replace what is there.
    pub(super) is_overwrite: bool,
    /// How rows come to writers.
    pub(super) distribution: DistributionMode,
    /// Whether one writer takes all rows.
    pub(super) has_single_writer: bool,
    /// The branch to write to; None for the main one.
    pub(super) branch: Option<String>,
    /// What becomes of updates and deletes where there is no key.
    pub(super) changes_without_key: ChangesWithoutKey,
    /// Whether the statement is executed in batch mode.
    pub(super) is_batch: bool,
}

impl WriteOptions {
    /// Reads the options of a statement that writes a table.
    ///
    /// # Errors
    /// A value does not parse.
    pub(super) fn new(ctx: &FactoryContext<'_>, metadata: &TableMetadata) -> Result<WriteOptions> {
        check_names(ctx)?;
        // The definition of a table of another catalog names that catalog, and cannot be told from a hint.
        let is_hint =
            |key: &str| ctx.options.raw("catalog-name").is_none() && !metadata.properties().contains_key(key);
        refuse_in_write(ctx, &is_hint)?;
        ctx.accept(ACCEPTED)?;
        let mut given = BTreeMap::new();
        // A hint may name a property itself.
        for key in ctx.options.keys().filter(|key| key.starts_with(PROPERTY_PREFIX)) {
            if let Some(value) = ctx
                .options
                .raw(key)
                .filter(|value| metadata.properties().get(key).map(String::as_str) != Some(*value))
            {
                check_property(key, value)?;
                given.insert(key.to_owned(), value.to_owned());
            }
        }
        for (option, property) in PROPERTY_OF {
            if let Some(value) = ctx.options.raw(option.key()) {
                option.check(value)?;
                given.insert((*property).to_owned(), value.to_owned());
            }
        }
        let properties = Properties::new(&given, metadata);
        let distribution = properties.get(DISTRIBUTION_PROPERTY);
        let distribution =
            distribution.map_or(Ok(DistributionMode::Hash), |text| DISTRIBUTION_MODE.parse(text))?;
        Ok(WriteOptions {
            is_upsert: properties.flag(UPSERT_PROPERTY),
            is_overwrite: ctx.options.get(&OVERWRITE_ENABLED)?,
            distribution,
            has_single_writer: ctx.options.get_optional(&WRITE_PARALLELISM)? == Some(1),
            branch: ctx.options.raw(BRANCH).map(str::to_owned),
            changes_without_key: ctx.options.get(&CHANGES_WITHOUT_KEY)?,
            is_batch: ctx.config.get(&RUNTIME_MODE)? == RuntimeMode::Batch,
            given,
        })
    }

    /// Returns the properties of a table with those of the statement over them.
    pub(super) fn properties(&self, metadata: &TableMetadata) -> Properties {
        Properties::new(&self.given, metadata)
    }
}
