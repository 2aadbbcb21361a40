//! The properties of Iceberg tables, and what is told of keys and values that are none.
//!
//! Any key may be a property: engines have their own. So one that nobody knows is kept without a word, but for one that is a known one
//! with a typing error, which would silently do nothing.

use super::options::table_options;
use crate::error::{Error, FlinkClass, REDACTED, Result, redact_value};
use crate::options::{OptionValue, nearest, nearest_within};

/// The properties that Iceberg's documentation and the engines that write tables have.
const KNOWN: &[&str] = &[
    "commit.manifest-merge.enabled",
    "commit.manifest.min-count-to-merge",
    "commit.manifest.target-size-bytes",
    "commit.retry.max-wait-ms",
    "commit.retry.min-wait-ms",
    "commit.retry.num-retries",
    "commit.retry.total-timeout-ms",
    "commit.status-check.max-wait-ms",
    "commit.status-check.min-wait-ms",
    "commit.status-check.num-retries",
    "commit.status-check.total-timeout-ms",
    "compatibility.snapshot-id-inheritance.enabled",
    "encryption.data-key-length",
    "encryption.key-id",
    "engine.hive.enabled",
    "engine.hive.lock-enabled",
    "gc.enabled",
    "history.expire.max-ref-age-ms",
    "history.expire.max-snapshot-age-ms",
    "history.expire.min-snapshots-to-keep",
    "read.data-planning-mode",
    "read.delete-planning-mode",
    "read.orc.vectorization.batch-size",
    "read.orc.vectorization.enabled",
    "read.parquet.vectorization.batch-size",
    "read.parquet.vectorization.enabled",
    "read.split.adaptive-size.enabled",
    "read.split.metadata-target-size",
    "read.split.open-file-cost",
    "read.split.planning-lookback",
    "read.split.target-size",
    "schema.name-mapping.default",
    "write.avro.compression-codec",
    "write.avro.compression-level",
    "write.data.path",
    "write.delete.avro.compression-codec",
    "write.delete.avro.compression-level",
    "write.delete.distribution-mode",
    "write.delete.format.default",
    "write.delete.granularity",
    "write.delete.isolation-level",
    "write.delete.mode",
    "write.delete.orc.block-size-bytes",
    "write.delete.orc.compression-codec",
    "write.delete.orc.compression-strategy",
    "write.delete.orc.stripe-size-bytes",
    "write.delete.orc.vectorized-write-batch-size",
    "write.delete.parquet.compression-codec",
    "write.delete.parquet.compression-level",
    "write.delete.parquet.dict-size-bytes",
    "write.delete.parquet.page-row-limit",
    "write.delete.parquet.page-size-bytes",
    "write.delete.parquet.page-version",
    "write.delete.parquet.row-group-check-max-record-count",
    "write.delete.parquet.row-group-check-min-record-count",
    "write.delete.parquet.row-group-size-bytes",
    "write.delete.target-file-size-bytes",
    "write.distribution-mode",
    "write.folder-storage.path",
    "write.format.default",
    "write.location-provider.impl",
    "write.manifest-lists.enabled",
    "write.merge.distribution-mode",
    "write.merge.isolation-level",
    "write.merge.mode",
    "write.metadata.compression-codec",
    "write.metadata.delete-after-commit.enabled",
    "write.metadata.metrics.default",
    "write.metadata.metrics.max-inferred-column-defaults",
    "write.metadata.path",
    "write.metadata.previous-versions-max",
    "write.object-storage.enabled",
    "write.object-storage.partitioned-paths",
    "write.object-storage.path",
    "write.orc.block-size-bytes",
    "write.orc.bloom.filter.columns",
    "write.orc.bloom.filter.fpp",
    "write.orc.compression-codec",
    "write.orc.compression-strategy",
    "write.orc.stripe-size-bytes",
    "write.orc.vectorized-write-batch-size",
    "write.parquet.bloom-filter-max-bytes",
    "write.parquet.compression-codec",
    "write.parquet.compression-level",
    "write.parquet.dict-size-bytes",
    "write.parquet.page-row-limit",
    "write.parquet.page-size-bytes",
    "write.parquet.page-version",
    "write.parquet.row-group-check-max-record-count",
    "write.parquet.row-group-check-min-record-count",
    "write.parquet.row-group-size-bytes",
    "write.spark.accept-any-schema",
    "write.spark.advisory-partition-size-bytes",
    "write.spark.fanout.enabled",
    "write.summary.partition-limit",
    "write.target-file-size-bytes",
    "write.update.distribution-mode",
    "write.update.isolation-level",
    "write.update.mode",
    "write.upsert.enabled",
    "write.wap.enabled",
];

/// Keys that a statement may set beside the options of tables.
const SETTABLE: &[&str] = &["format-version", "current-snapshot-id", "cherry-pick-snapshot-id"];

/// What stands before the name of a column in keys that have one.
const OF_COLUMN: &str = ".column.";

/// With how many typing errors a property is taken for another. Long keys differ by little.
const TYPING_ERRORS: usize = 2;

/// Checks a key and a value that become a property of a table.
///
/// # Errors
/// The key is nearly a known one, the value is a secret, or it is neither true nor false where it must be.
pub(super) fn check_property(key: &str, value: &str) -> Result<()> {
    if redact_value(key, value) == REDACTED {
        return Err(Error::validation(format!(
            "option '{key}' would be kept in clear in the table's metadata"
        ))
        .class(FlinkClass::ILLEGAL_ARGUMENT)
        .hint("Options of an Iceberg table are its properties. Leave it out; behind LIKE write (EXCLUDING OPTIONS)."));
    }
    if let Some(near) = meant(key) {
        return Err(Error::validation(format!("Iceberg tables have no option '{key}'"))
            .hint(format!("Did you mean '{near}'?")));
    }
    check_flag(key, value)
}

/// Checks a value that must be true or false. Java takes every other word for false.
///
/// # Errors
/// It is neither.
pub(super) fn check_flag(key: &str, value: &str) -> Result<()> {
    let is_flag = KNOWN.contains(&key) && key.ends_with("enabled")
        || ["write.object-storage.partitioned-paths", "write.spark.accept-any-schema"].contains(&key)
        || key.starts_with("write.parquet.bloom-filter-enabled.column.");
    if !is_flag {
        return Ok(());
    }
    bool::parse(value).map(drop).map_err(|error| {
        error.hint(format!("This is the value of option '{key}', which takes true or false."))
    })
}

/// Returns the option or property that was meant by a key that is none.
fn meant(key: &str) -> Option<&'static str> {
    let plain = key.to_ascii_lowercase().replace('_', "-");
    if key.contains('.') {
        let is_known = KNOWN.contains(&key) || key.contains(OF_COLUMN);
        return (!is_known).then(|| nearest_within(TYPING_ERRORS, &plain, KNOWN.iter().copied())).flatten();
    }
    let known = || table_options().iter().map(|option| option.key()).chain(SETTABLE.iter().copied());
    if known().any(|known| known == key) {
        return None;
    }
    // Short words are likely to be somebody's own.
    nearest(&plain, known()).filter(|near| near.contains('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_nearly_a_known_one_is_refused() {
        for (key, meant) in [
            ("write.upsert.enable", "write.upsert.enabled"),
            ("write.upsert-enabled", "write.upsert.enabled"),
            ("write.parqet.compression_codec", "write.parquet.compression-codec"),
            ("upsert-enable", "upsert-enabled"),
            ("format-verison", "format-version"),
        ] {
            let error = check_property(key, "1").unwrap_err();
            assert_eq!(error.message(), format!("Iceberg tables have no option '{key}'"));
            assert_eq!(error.hint_text(), Some(format!("Did you mean '{meant}'?").as_str()));
        }
        for key in KNOWN.iter().copied().chain([
            "owner",
            "a.b",
            "write.parquet.stats-enabled.column.a",
            "write.metadata.metrics.column.a",
            "my.write.mode",
            "dbt-version",
        ]) {
            assert!(check_property(key, "true").is_ok(), "{key}");
        }
    }

    #[test]
    fn a_flag_is_true_or_false() {
        for (key, value) in [
            ("write.upsert.enabled", "yes"),
            ("gc.enabled", "0"),
            ("write.metadata.delete-after-commit.enabled", ""),
        ] {
            let error = check_property(key, value).unwrap_err();
            assert!(error.message().starts_with("Unrecognized option for boolean"), "{error}");
            assert!(error.hint_text().unwrap().contains(key));
        }
        assert!(check_property("gc.enabled", "FALSE").is_ok());
        assert!(check_property("mine.enabled", "perhaps").is_ok());
    }

    #[test]
    fn a_secret_is_refused_by_key_and_by_value() {
        for (key, value) in [("aws.secret", "x"), ("uri", "jdbc:postgresql://u:pw@h/d")] {
            let error = check_property(key, value).unwrap_err();
            assert_eq!(
                error.message(),
                format!("option '{key}' would be kept in clear in the table's metadata")
            );
        }
    }
}
