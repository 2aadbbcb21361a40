//! A Markdown table whose rows are printed as they come. Who reads it is a program or a renderer, so nothing is aligned, and nothing cut.

use std::sync::Arc;

use chrono_tz::Tz;

use super::ResultPrinter;
use super::tableau::formatters;
use crate::changelog::ChangelogBatch;
use crate::error::Result;
use crate::session::ResultColumn;

/// Prints a header and one line per row, which begins with its kind.
#[derive(Debug)]
pub(super) struct Markdown {
    columns: Arc<Vec<ResultColumn>>,
    null_text: &'static str,
    zone: Tz,
    cell: String,
}

impl Markdown {
    /// Creates the printer.
    pub(super) fn new(columns: Arc<Vec<ResultColumn>>, null_text: &'static str, zone: Tz) -> Markdown {
        Markdown { columns, null_text, zone, cell: String::new() }
    }
}

impl ResultPrinter for Markdown {
    fn begin(&mut self, out: &mut String) {
        out.push_str("| op |");
        for column in self.columns.iter() {
            push_cell(&column.name, out);
        }
        out.push_str("\n|----|");
        self.columns.iter().for_each(|_| out.push_str("---|"));
        out.push('\n');
    }

    fn rows(&mut self, batch: ChangelogBatch, out: &mut String) -> Result<()> {
        let formatters = formatters(&self.columns, batch.rows(), self.zone);
        for row in 0..batch.row_count() {
            out.push_str("| ");
            out.push_str(batch.kind(row).short_string());
            out.push_str(" |");
            for formatter in &formatters {
                self.cell.clear();
                let shown = if formatter.write(row, &mut self.cell) { &self.cell } else { self.null_text };
                push_cell(shown, out);
            }
            out.push('\n');
        }
        Ok(())
    }

    fn finish(&mut self, _out: &mut String) {}
}

fn push_cell(text: &str, out: &mut String) {
    out.push(' ');
    out.push_str(&escaped(text));
    out.push_str(" |");
}

/// Returns a text as it stands in a cell, which ends at a bar and at a line's end.
pub(super) fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', "<br>")
}
