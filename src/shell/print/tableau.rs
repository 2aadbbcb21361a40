//! Flink's tableau, and the same rows with other rulings: one border, the header, one border, then rows.
//!
//! A stream's widths come from types, because its first row is printed before the second is known. A finished table is kept
//! as Arrow columns and formatted twice: once to measure, once to print.

use std::sync::Arc;

use arrow::array::RecordBatch;
use chrono_tz::Tz;

use super::layout::{NULL_TEXT, display_width, push_blanks, push_cell, streaming_width};
use crate::changelog::{ChangelogBatch, RowKind};
use crate::schema::CellFormatter;
use crate::session::ResultColumn;

/// The header of the column with row kinds, and its width.
const KIND_HEADER: &str = "op";

/// Which characters draw the lines of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ruling {
    /// Left end, filling, crossing and right end of the line above the header.
    top: [&'static str; 4],
    /// The same for the line below the header.
    middle: [&'static str; 4],
    /// The same for the line below the last row.
    bottom: [&'static str; 4],
    /// What stands left of, between and right of cells.
    vertical: &'static str,
}

/// `+---+` and `|`.
pub(crate) const TABLEAU: Ruling = Ruling {
    top: ["+", "-", "+", "+"],
    middle: ["+", "-", "+", "+"],
    bottom: ["+", "-", "+", "+"],
    vertical: "|",
};
/// Box-drawing characters.
pub(crate) const BOX: Ruling = Ruling {
    top: ["┌", "─", "┬", "┐"],
    middle: ["├", "─", "┼", "┤"],
    bottom: ["└", "─", "┴", "┘"],
    vertical: "│",
};

/// Prints rows below a header with fixed widths.
#[derive(Debug)]
pub(crate) struct RowLayout {
    ruling: Ruling,
    columns: Arc<Vec<ResultColumn>>,
    widths: Vec<usize>,
    with_kind: bool,
    null_text: &'static str,
    zone: Tz,
    cell: String,
}

impl RowLayout {
    /// Creates the layout of a stream: widths by type, and a column of row kinds in front.
    pub(crate) fn streaming(
        ruling: Ruling,
        columns: Arc<Vec<ResultColumn>>,
        max_column_width: usize,
        zone: Tz,
    ) -> RowLayout {
        let widths =
            columns.iter().map(|c| streaming_width(&c.name, &c.data_type, max_column_width)).collect();
        RowLayout {
            ruling,
            columns,
            widths,
            with_kind: true,
            null_text: NULL_TEXT,
            zone,
            cell: String::new(),
        }
    }

    /// Creates the layout of a finished table: widths by content, capped if a cap is given.
    pub(crate) fn finished(
        columns: Arc<Vec<ResultColumn>>,
        batches: &[ChangelogBatch],
        max_column_width: Option<usize>,
        null_text: &'static str,
        zone: Tz,
    ) -> RowLayout {
        let cap = max_column_width.unwrap_or(usize::MAX);
        let mut cell = String::new();
        let mut widths: Vec<usize> = columns.iter().map(|column| display_width(&column.name)).collect();
        for batch in batches {
            for (width, (index, column)) in widths.iter_mut().zip(columns.iter().enumerate()) {
                let array = batch.rows().column(index);
                let formatter = CellFormatter::new(&column.data_type, array.as_ref(), zone);
                for row in 0..batch.row_count() {
                    cell.clear();
                    let text = if formatter.write(row, &mut cell) { cell.as_str() } else { null_text };
                    *width = (*width).max(display_width(text));
                }
            }
        }
        widths.iter_mut().for_each(|width| *width = (*width).min(cap));
        RowLayout { ruling: TABLEAU, columns, widths, with_kind: false, null_text, zone, cell }
    }

    /// Appends the line above the header, the header and the line below it.
    pub(crate) fn push_header(&self, out: &mut String) {
        self.push_line(self.ruling.top, out);
        out.push_str(self.ruling.vertical);
        if self.with_kind {
            self.push_padded(KIND_HEADER, KIND_HEADER.len(), out);
        }
        for (column, width) in self.columns.iter().zip(&self.widths) {
            self.push_padded(&column.name, *width, out);
        }
        out.push('\n');
        self.push_line(self.ruling.middle, out);
    }

    /// Appends the line below the last row.
    pub(crate) fn push_bottom(&self, out: &mut String) {
        self.push_line(self.ruling.bottom, out);
    }

    /// Appends all rows of a batch.
    pub(crate) fn push_rows(&mut self, batch: &ChangelogBatch, out: &mut String) {
        let columns = Arc::clone(&self.columns);
        let formatters = formatters(&columns, batch.rows(), self.zone);
        for row in 0..batch.row_count() {
            out.push_str(self.ruling.vertical);
            if self.with_kind {
                self.push_padded(batch.kind(row).short_string(), KIND_HEADER.len(), out);
            }
            for (formatter, width) in formatters.iter().zip(&self.widths) {
                self.cell.clear();
                let text = if formatter.write(row, &mut self.cell) { &self.cell } else { self.null_text };
                self.push_padded(text, *width, out);
            }
            out.push('\n');
        }
    }

    /// Appends one cell with the blanks around it and the line behind it.
    fn push_padded(&self, text: &str, width: usize, out: &mut String) {
        out.push(' ');
        push_cell(out, text, width);
        out.push(' ');
        out.push_str(self.ruling.vertical);
    }

    /// Appends a horizontal line.
    fn push_line(&self, [left, fill, crossing, right]: [&str; 4], out: &mut String) {
        out.push_str(left);
        let kind = self.with_kind.then_some(KIND_HEADER.len());
        for (index, width) in kind.iter().chain(&self.widths).enumerate() {
            if index > 0 {
                out.push_str(crossing);
            }
            (0..width + 2).for_each(|_| out.push_str(fill));
        }
        out.push_str(right);
        out.push('\n');
    }
}

/// Prepares the text of every column of a batch.
pub(crate) fn formatters<'a>(
    columns: &'a [ResultColumn],
    rows: &'a RecordBatch,
    zone: Tz,
) -> Vec<CellFormatter<'a>> {
    let pairs = columns.iter().zip(rows.columns());
    pairs.map(|(column, array)| CellFormatter::new(&column.data_type, array.as_ref(), zone)).collect()
}

/// Appends one line of the full-screen views: every cell right-aligned behind one blank, without lines between them.
pub(crate) fn push_screen_row<'a>(
    kind: Option<RowKind>,
    cells: impl Iterator<Item = (&'a str, usize)>,
    out: &mut String,
) {
    if let Some(kind) = kind {
        out.push(' ');
        out.push_str(kind.short_string());
    }
    for (text, width) in cells {
        out.push(' ');
        push_screen_cell(out, text, width);
    }
}

/// Appends a cell of a full-screen view; a text that is too wide ends with `~`.
pub(crate) fn push_screen_cell(out: &mut String, text: &str, width: usize) {
    let text_width = display_width(text);
    if text_width <= width {
        push_blanks(out, width - text_width);
        out.push_str(text);
    } else {
        let (kept, kept_width) = super::layout::prefix_within(text, width.saturating_sub(1));
        push_blanks(out, width.saturating_sub(1 + kept_width));
        out.push_str(kept);
        out.push('~');
    }
}
