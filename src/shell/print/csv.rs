//! Rows as CSV after RFC 4180. An empty text is written as `""`, because an empty field is NULL.

use std::sync::Arc;

use chrono_tz::Tz;

use super::ResultPrinter;
use super::tableau::formatters;
use crate::changelog::ChangelogBatch;
use crate::error::Result;
use crate::session::ResultColumn;

/// Prints a header line and one line per row.
#[derive(Debug)]
pub(super) struct Csv {
    columns: Arc<Vec<ResultColumn>>,
    with_kind: bool,
    zone: Tz,
    cell: String,
}

impl Csv {
    /// Creates the printer; with row kinds, their field `op` comes first.
    pub(super) fn new(columns: Arc<Vec<ResultColumn>>, with_kind: bool, zone: Tz) -> Csv {
        Csv { columns, with_kind, zone, cell: String::new() }
    }
}

impl ResultPrinter for Csv {
    fn begin(&mut self, out: &mut String) {
        let kind = self.with_kind.then_some("op");
        for (index, name) in kind.into_iter().chain(self.columns.iter().map(|c| c.name.as_str())).enumerate()
        {
            if index > 0 {
                out.push(',');
            }
            push_field(name, out);
        }
        out.push('\n');
    }

    fn rows(&mut self, batch: ChangelogBatch, out: &mut String) -> Result<()> {
        let formatters = formatters(&self.columns, batch.rows(), self.zone);
        for row in 0..batch.row_count() {
            if self.with_kind {
                out.push_str(batch.kind(row).short_string());
            }
            for (index, formatter) in formatters.iter().enumerate() {
                if index > 0 || self.with_kind {
                    out.push(',');
                }
                self.cell.clear();
                if formatter.write(row, &mut self.cell) {
                    push_field(&self.cell, out);
                }
            }
            out.push('\n');
        }
        Ok(())
    }

    fn finish(&mut self, _out: &mut String) {}
}

/// Appends a field, in quotes where it needs them.
fn push_field(text: &str, out: &mut String) {
    if !text.is_empty()
        && memchr::memchr3(b',', b'"', b'\n', text.as_bytes()).is_none()
        && !text.contains('\r')
    {
        out.push_str(text);
        return;
    }
    out.push('"');
    for (index, piece) in text.split('"').enumerate() {
        if index > 0 {
            out.push_str("\"\"");
        }
        out.push_str(piece);
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_only_where_needed() {
        let field = |text: &str| {
            let mut out = String::new();
            push_field(text, &mut out);
            out
        };
        assert_eq!(field("plain text"), "plain text");
        assert_eq!(field("a,b"), "\"a,b\"");
        assert_eq!(field("say \"hi\"\n"), "\"say \"\"hi\"\"\n\"");
        assert_eq!(field(""), "\"\"");
    }
}
