//! Bytes to rows and back. To add a format, write its file and add one line to `FORMAT_FACTORIES`.

use std::fmt;

use arrow::array::RecordBatch;

use crate::changelog::{ChangelogBatch, ChangelogMode};
use crate::error::Result;
use crate::options::{OptionDef, TableOptions};
use crate::schema::Column;

/// Every format, in the order of the reference.
pub static FORMAT_FACTORIES: &[&dyn FormatFactory] = &[];

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

/// How a stream of bytes is cut into frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// After line breaks; where a quote character is given, line breaks between two quotes do not count.
    Lines {
        /// The quote character, one byte.
        quote: Option<u8>,
    },
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

    /// Makes a decoder of the columns at the given positions, in that order.
    fn decoder(&self, projection: &[usize]) -> Box<dyn RecordDecoder>;
}

/// Where a frame's bytes come from, so that an error can name file, line and field.
#[derive(Debug, Clone, Copy)]
pub struct FrameOrigin<'a> {
    /// The file or topic.
    pub name: &'a str,
    /// Offset of the frame's first byte.
    pub offset: u64,
}

/// Decodes bytes; each worker has its own.
pub trait RecordDecoder: Send {
    /// Decodes a frame of whole records. A record that is wrong fails the frame, or is skipped where the options say so;
    /// either way no part of it is left in the columns.
    ///
    /// # Errors
    /// A record is malformed. The message has Flink's words, the hint names the place.
    fn decode(&mut self, data: &[u8], origin: FrameOrigin<'_>) -> Result<ChangelogBatch>;
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
    /// Appends the records to `out`, each with its separator.
    ///
    /// # Errors
    /// A value cannot be written.
    fn encode(&mut self, rows: &RecordBatch, out: &mut Vec<u8>) -> Result<()>;
}
