//! Bytes to rows and back. To add a format, write its file and add one line to `FORMAT_FACTORIES`.

mod column;
mod csv;
mod debezium_json;
mod json;
mod lines;
mod raw;
mod scan;
#[cfg(test)]
pub(crate) mod testing;
mod text;

pub(crate) use column::{ColumnBuilder, Values as ColumnValues};
use lines::lines;
pub use scan::Dialect;
pub(crate) use scan::RecordCutter;
pub(crate) use text::{
    DecimalText, ScalarWriter, TextParser, TextStyle, TimestampStandard, parse_decimal, parse_f64, parse_i64,
    write_decimal,
};

use std::fmt;

use arrow::array::RecordBatch;

use crate::changelog::{ChangelogBatch, ChangelogMode};
use crate::error::{Error, Result};
use crate::options::{ConfigOption, OptionDef, OptionValue, TableOptions, nearest};
use crate::schema::{Column, DataType};

/// Every format, in the order of the reference.
pub static FORMAT_FACTORIES: &[&dyn FormatFactory] =
    &[&json::Json, &csv::Csv, &raw::Raw, &debezium_json::DebeziumJson];

/// Formats that tutorials name and that are not here.
pub(crate) const NOT_BUILT: &[&str] = &[
    "avro",
    "avro-confluent",
    "canal-json",
    "debezium-avro-confluent",
    "json-confluent",
    "maxwell-json",
    "ogg-json",
    "orc",
    "parquet",
    "protobuf",
];

/// Returns the format that an identifier names; `interface` is what Flink's message says it should implement.
///
/// # Errors
/// There is none; Flink's text with all identifiers, and the nearest one as a hint.
pub fn format_factory(identifier: &str, interface: &str) -> Result<&'static dyn FormatFactory> {
    FORMAT_FACTORIES.iter().copied().find(|factory| factory.identifier() == identifier).ok_or_else(|| {
        let mut available: Vec<&str> = FORMAT_FACTORIES.iter().map(|factory| factory.identifier()).collect();
        available.sort_unstable();
        let error = Error::validation(format!(
            "Could not find any factory for identifier '{identifier}' that implements 'org.apache.flink.table.factories.{interface}' in the classpath.\n\nAvailable factory identifiers are:\n\n{}",
            available.join("\n")
        ));
        if NOT_BUILT.contains(&identifier) {
            return error.hint(format!("Format '{identifier}' is not supported yet."));
        }
        match nearest(identifier, available.iter().copied()) {
            Some(near) => error.hint(format!("Did you mean '{near}'?")),
            None => error,
        }
    })
}

/// What a format knows of the table.
#[derive(Debug)]
pub struct FormatContext<'a> {
    /// Physical columns that the format sees, in order.
    pub columns: &'a [Column],
    /// The table's options; a format reads its own with `prefix` in front.
    pub options: &'a TableOptions,
    /// What stands before each of its keys: `csv.` or `value.csv.`.
    pub prefix: &'a str,
    /// The session time zone, for TIMESTAMP_LTZ in texts.
    pub zone: chrono_tz::Tz,
}

impl FormatContext<'_> {
    /// Returns the value of one of the format's options, whose key gets this table's prefix.
    ///
    /// # Errors
    /// The value does not parse.
    pub fn get_optional<T: OptionValue>(&self, option: &ConfigOption<T>) -> Result<Option<T>> {
        let name = option.key().split_once('.').map_or(option.key(), |(_, name)| name);
        let key = format!("{}{name}", self.prefix);
        if key == option.key() {
            return self.options.get_optional(option);
        }
        self.options.declare_key(&key);
        let parse = |text| {
            T::parse(text).map_err(|error| {
                error.hint(format!("This is the value of option '{key}', which takes {}.", T::describe()))
            })
        };
        self.options.raw(&key).or(option.default_text()).map(parse).transpose()
    }

    /// Returns the value of one of the format's options that has a default.
    ///
    /// # Errors
    /// The value does not parse.
    pub fn get<T: OptionValue>(&self, option: &ConfigOption<T>) -> Result<T> {
        self.get_optional(option)?
            .ok_or_else(|| Error::internal(format!("option '{}' has no default", option.key())))
    }
}

/// Makes decoders and encoders of one format.
pub trait FormatFactory: Sync {
    /// Returns the value of option `format`.
    fn identifier(&self) -> &'static str;

    /// Returns one sentence on what the format is for.
    fn doc(&self) -> &'static str;

    /// Returns its options, keys with the format's own prefix (`csv.field-delimiter`).
    fn options(&self) -> &'static [&'static dyn OptionDef];

    /// Makes the reading side.
    ///
    /// # Errors
    /// An option does not fit, or a column's type cannot be read.
    fn decoding(&self, ctx: &FormatContext<'_>) -> Result<Box<dyn DecodingFormat>>;

    /// Makes the writing side.
    ///
    /// # Errors
    /// An option does not fit, or a column's type cannot be written.
    fn encoding(&self, ctx: &FormatContext<'_>) -> Result<Box<dyn EncodingFormat>>;
}

/// A column that shows something about a record instead of a value in it; formats and connectors offer them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataColumn {
    /// The key that `METADATA FROM` names.
    pub key: &'static str,
    /// The type of its values.
    pub data_type: DataType,
    /// Whether it tells of the change that has brought a row and not of the row: where a row is taken back, it has another value than
    /// where the row was given.
    pub is_of_change: bool,
}

/// How a stream of bytes is cut into frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// After line breaks; where the dialect has quotes, line breaks within a quoted field do not count.
    Lines(Dialect),
    /// A file is one frame.
    Whole,
}

/// The reading side of a format, set up for a table.
pub trait DecodingFormat: Send + Sync + fmt::Debug {
    /// Returns the row kinds that records can have.
    fn changelog_mode(&self) -> ChangelogMode {
        ChangelogMode::INSERT_ONLY
    }

    /// Returns how a file is cut.
    fn framing(&self) -> Framing;

    /// Returns what can be read of a record beside its columns.
    fn metadata_columns(&self) -> Vec<MetadataColumn> {
        Vec::new()
    }

    /// Makes a decoder of the columns at the given positions, in that order, with metadata columns of the given keys behind them.
    fn decoder(&self, projection: &[usize], metadata: &[&str]) -> Box<dyn RecordDecoder>;
}

/// Where a frame's bytes come from, so that an error can name file, line and field.
#[derive(Clone, Copy)]
pub struct FrameOrigin<'a> {
    /// The file or topic.
    pub name: &'a str,
    /// Offset of the frame's first byte.
    pub offset: u64,
    /// Counts the lines before the frame. Called for errors only, since it may read the file again; None where there are no
    /// lines, as in a topic.
    pub lines_before: &'a dyn Fn() -> Option<u64>,
}

impl FrameOrigin<'_> {
    /// Returns the place of a record for a hint: file and line, or topic and offset.
    pub(crate) fn place(&self, data: &[u8], record: usize) -> String {
        let record = record.min(data.len());
        match (self.lines_before)() {
            Some(lines) => {
                let line = lines + memchr::memchr_iter(b'\n', &data[..record]).count() as u64 + 1;
                format!("{}, line {line}", self.name)
            }
            None => format!("{}, offset {}", self.name, self.offset + record as u64),
        }
    }
}

impl fmt::Debug for FrameOrigin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameOrigin")
            .field("name", &self.name)
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}

/// Decodes bytes; each worker has its own.
pub trait RecordDecoder: Send {
    /// Decodes a frame of whole records. A record that is wrong fails the frame, or is skipped where the options say so;
    /// either way no part of it is left in the columns.
    ///
    /// # Errors
    /// A record is malformed. The message has Flink's words, the hint names the place.
    fn decode(&mut self, data: &[u8], origin: FrameOrigin<'_>) -> Result<ChangelogBatch>;

    /// Tells the decoder that nobody reads `-U`: it may leave them out, unread where that is faster, and need not.
    fn ignore_update_before(&mut self) {}
}

/// The writing side of a format, set up for a table.
pub trait EncodingFormat: Send + Sync + fmt::Debug {
    /// Returns the row kinds that can be written.
    fn changelog_mode(&self) -> ChangelogMode {
        ChangelogMode::INSERT_ONLY
    }

    /// Returns the ending of file names, without a dot.
    fn file_extension(&self) -> &'static str;

    /// Makes an encoder.
    fn encoder(&self) -> Box<dyn RecordEncoder>;
}

/// Encodes rows.
pub trait RecordEncoder: Send {
    /// Appends the records to `out`, each with its separator. The rows have no other kinds than the format's changelog mode.
    ///
    /// # Errors
    /// A value cannot be written.
    fn encode(&mut self, rows: &ChangelogBatch, out: &mut Vec<u8>) -> Result<()>;
}

/// Returns the rows of a batch for a format whose records cannot say that a row changes another.
fn inserts_only(batch: &ChangelogBatch) -> Result<&RecordBatch> {
    match batch.kind_bytes() {
        None => Ok(batch.rows()),
        Some(_) => Err(Error::internal("a format of inserted rows was given rows that change others")),
    }
}
