//! Values of the server to columns of the declared types: from texts, as streams have them, and from the binary form that COPY sends
//! for types that are read so. Both give the same cells.

mod binary;
mod nested;
mod number;
mod reader;
mod source_type;
mod temporal;
mod text;

pub(super) use binary::Cells;
pub(super) use reader::ValueReader;
pub(super) use source_type::SourceType;

use crate::connector::postgres::options::UNREPRESENTABLE;
use crate::connector::postgres::table::quoted;
use crate::error::Error;
use crate::options::OptionDef;
use crate::schema::Column;

/// Why a value cannot be read, in words that follow "it".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is a value of its own type, which the declared type does not hold.
    Misfit(&'static str),
    /// It does not look like any value of the declared type.
    Malformed(&'static str),
}

/// A text of a database that does not know the encoding of its texts. Two such texts must not become one for the lack of characters.
const NOT_UTF8: Fault = Fault::Malformed("is not UTF-8");

/// Checks that a text is one to us, too. A server that knows its encoding converts, and has checked what it keeps.
#[inline]
fn check_utf8(text: &[u8]) -> Result<(), Fault> {
    simdutf8::basic::from_utf8(text).map(drop).map_err(|_| NOT_UTF8)
}

/// How many bytes of a value an error shows.
const SHOWN_BYTES: usize = 60;

impl Fault {
    /// Returns the error about a value of a column: `place` is the table of the server, `shown` the value.
    pub(super) fn to_error(self, place: &str, column: &Column, type_name: &str, shown: &[u8]) -> Error {
        let (Fault::Misfit(why) | Fault::Malformed(why)) = self;
        let head = &shown[..shown.len().min(SHOWN_BYTES)];
        let more = if head.len() < shown.len() { "…" } else { "" };
        let option = UNREPRESENTABLE.key();
        let (name, declared) = (&column.name, &column.data_type);
        let head = match self {
            NOT_UTF8 => head.escape_ascii().to_string(),
            _ => String::from_utf8_lossy(head).into_owned(),
        };
        let hint = match self {
            NOT_UTF8 => not_utf8_hint(place, name),
            Fault::Misfit(_) if declared.nullable => format!(
                "Declare the column as a type that holds it, STRING holds all, or set '{option}' = 'null' to read such values as NULL."
            ),
            _ => "Declare the column as a type that holds it; STRING holds all.".to_owned(),
        };
        Error::data(format!(
            "value '{head}{more}' of column '{name}' in table {place} has type {type_name} and cannot be read as {declared}: it {why}"
        ))
        .hint(hint)
    }
}

/// Returns what can be done about texts whose encoding the server does not know.
pub(super) fn not_utf8_hint(place: &str, column: &str) -> String {
    let column = quoted(column);
    format!(
        "The database does not know in which encoding its texts are (server_encoding is SQL_ASCII). Convert such values there, from LATIN1 with: UPDATE {place} SET {column} = convert_from(convert(convert_to({column}, 'SQL_ASCII'), 'LATIN1', 'UTF8'), 'SQL_ASCII') WHERE …; then start the job with 'lakehead.job.resume' = 'resnapshot', since the log has the old values, too. Or do not declare the column."
    )
}
