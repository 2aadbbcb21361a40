//! How a table is written: its properties, and over them what the statement says.

use std::collections::BTreeMap;
use std::str::FromStr;

use iceberg::spec::TableMetadata;

use super::metrics_config::MetricsConfig;
use super::parquet_settings::ParquetSettings;
use crate::error::{Error, Result};

const FORMAT: &str = "write.format.default";
const TARGET_FILE_SIZE: &str = "write.target-file-size-bytes";
const DATA_PATH: &str = "write.data.path";
const OLD_DATA_PATH: &str = "write.folder-storage.path";
const PARQUET_PREFIX: &str = "write.parquet.";
const DELETE_PARQUET_PREFIX: &str = "write.delete.parquet.";

/// The properties of a table, those of a statement first.
#[derive(Debug, Clone, Default)]
pub(super) struct Properties {
    entries: BTreeMap<String, String>,
}

impl Properties {
    /// Puts what a statement gives over the properties of a table.
    pub(super) fn new(given: &BTreeMap<String, String>, metadata: &TableMetadata) -> Properties {
        let of_table = metadata.properties().iter();
        let given = given.iter();
        let entries = of_table.chain(given).map(|(key, value)| (key.clone(), value.clone())).collect();
        Properties { entries }
    }

    #[cfg(test)]
    pub(super) fn of(entries: &[(&str, &str)]) -> Properties {
        let entries = entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Properties { entries }
    }

    /// Returns a property.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.entries.get(key).map(String::as_str)
    }

    /// Returns the properties whose keys begin so.
    pub(super) fn with_prefix(&self, prefix: &str) -> impl Iterator<Item = (&str, &str)> {
        let entries = self.entries.range(prefix.to_owned()..);
        let prefix = prefix.to_owned();
        let entries = entries.take_while(move |(key, _)| key.starts_with(&prefix));
        entries.map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Returns a number.
    ///
    /// # Errors
    /// It is none.
    pub(super) fn number<T: FromStr>(&self, key: &str, default: T) -> Result<T> {
        let Some(text) = self.get(key) else { return Ok(default) };
        text.trim().parse().map_err(|_| refused(key, text, "a number that is not negative"))
    }

    /// Returns whether something is switched on. As in Java, every word but `true` says that it is not.
    pub(super) fn flag(&self, key: &str) -> bool {
        self.get(key).is_some_and(|text| text.trim().eq_ignore_ascii_case("true"))
    }

    /// Returns the properties of data files as delete files have them: their own, else those of data files.
    fn of_deletes(&self) -> Properties {
        let own = |(key, value): (&str, &str)| {
            let rest = key.strip_prefix(DELETE_PARQUET_PREFIX).unwrap_or(key);
            (format!("{PARQUET_PREFIX}{rest}"), value.to_owned())
        };
        let mut entries = self.entries.clone();
        entries.extend(self.with_prefix(DELETE_PARQUET_PREFIX).map(own));
        Properties { entries }
    }
}

/// The error of a property's value.
pub(super) fn refused(key: &str, text: &str, takes: &str) -> Error {
    Error::validation(format!("'{text}' is no value of the table property '{key}'"))
        .hint(format!("It takes {takes}."))
}

/// How the files of a table are written.
#[derive(Debug, Clone)]
pub(super) struct WriteSettings {
    /// From which size on a data file is ended.
    pub(super) target_file_size: u64,
    /// The folder of data and delete files.
    pub(super) data_folder: String,
    /// How data files are encoded.
    pub(super) parquet: ParquetSettings,
    /// How delete files are encoded.
    pub(super) delete_parquet: ParquetSettings,
    /// Which figures of columns are kept.
    pub(super) metrics: MetricsConfig,
    /// With more bytes than this in open files and rows that wait, a writer ends its largest file early.
    pub(super) open_bytes_max: usize,
}

/// Limit: the same for all writers of a table together. Rows of very many partitions then make more and smaller files instead of
/// taking all memory.
const OPEN_BYTES_MAX: usize = 256 << 20;

impl WriteSettings {
    /// Reads the properties of a table.
    ///
    /// # Errors
    /// A value does not parse, or asks for what is not supported.
    pub(super) fn new(properties: &Properties, metadata: &TableMetadata) -> Result<WriteSettings> {
        if let Some(format) = properties.get(FORMAT).filter(|format| !format.eq_ignore_ascii_case("parquet"))
        {
            return Err(Error::unsupported(format!(
                "Iceberg data files cannot be written as '{format}', only as 'parquet'"
            ))
            .hint(format!(
                "Set 'write-format' = 'parquet' for this INSERT, or '{FORMAT}' = 'parquet' for the table."
            )));
        }
        let data_folder = properties.get(DATA_PATH).or(properties.get(OLD_DATA_PATH));
        let data_folder = match data_folder {
            Some(folder) => folder.trim_end_matches('/').to_owned(),
            None => format!("{}/data", metadata.location().trim_end_matches('/')),
        };
        let target_file_size: u64 = properties.number(TARGET_FILE_SIZE, 512 << 20)?;
        if target_file_size == 0 {
            return Err(refused(TARGET_FILE_SIZE, "0", "a number of bytes above 0"));
        }
        Ok(WriteSettings {
            target_file_size,
            data_folder,
            parquet: ParquetSettings::new(properties)?,
            delete_parquet: ParquetSettings::new(&properties.of_deletes())?,
            metrics: MetricsConfig::new(properties)?,
            open_bytes_max: OPEN_BYTES_MAX,
        })
    }

    /// Returns the settings of one of several writers, which share the memory for it.
    pub(super) fn of_one_in(mut self, writer_count: usize) -> WriteSettings {
        self.parquet.share(writer_count);
        self.delete_parquet.share(writer_count);
        self.open_bytes_max = OPEN_BYTES_MAX / writer_count.max(1);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_find_their_keys_and_no_others() {
        let properties = Properties::of(&[("a.", "0"), ("a.x", "1"), ("a.y", "2"), ("ab", "3")]);
        assert_eq!(
            properties.with_prefix("a.").collect::<Vec<_>>(),
            [("a.", "0"), ("a.x", "1"), ("a.y", "2")]
        );
    }

    #[test]
    fn numbers_and_flags_are_read_as_java_does() {
        let properties = Properties::of(&[("n", " 7 "), ("x", "seven"), ("t", "TRUE"), ("f", "yes")]);
        assert_eq!(properties.number("n", 1).unwrap(), 7);
        assert_eq!(properties.number("absent", 1).unwrap(), 1);
        let error = properties.number::<u64>("x", 1).unwrap_err();
        assert_eq!(error.message(), "'seven' is no value of the table property 'x'");
        assert!(properties.flag("t") && !properties.flag("f") && !properties.flag("absent"));
    }

    #[test]
    fn delete_files_are_written_as_data_files_unless_they_have_properties_of_their_own() {
        let properties = Properties::of(&[
            ("write.parquet.compression-codec", "gzip"),
            ("write.parquet.page-size-bytes", "9"),
            ("write.delete.parquet.compression-codec", "snappy"),
        ]);
        let deletes = properties.of_deletes();
        assert_eq!(deletes.get("write.parquet.compression-codec"), Some("snappy"));
        assert_eq!(deletes.get("write.parquet.page-size-bytes"), Some("9"));
    }
}
