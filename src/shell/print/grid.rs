//! Finished tables drawn by comfy-table: box characters or Markdown. Streams use the tableau's layout with other rulings.

use std::fmt::Write;
use std::sync::Arc;

use chrono_tz::Tz;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

use super::ResultPrinter;
use super::markdown::escaped;
use super::tableau::formatters;
use crate::changelog::ChangelogBatch;
use crate::error::Result;
use crate::schema::{DataType, TypeRoot};
use crate::session::ResultColumn;

/// Collects rows and draws them at the end.
pub(super) struct Grid {
    columns: Arc<Vec<ResultColumn>>,
    table: Table,
    null_text: &'static str,
    is_markdown: bool,
    zone: Tz,
}

impl Grid {
    /// Creates a table drawn with box characters.
    pub(super) fn boxed(columns: Arc<Vec<ResultColumn>>, null_text: &'static str, zone: Tz) -> Grid {
        Grid::new(presets::UTF8_FULL_CONDENSED, false, columns, null_text, zone)
    }

    /// Creates a Markdown table.
    pub(super) fn markdown(columns: Arc<Vec<ResultColumn>>, null_text: &'static str, zone: Tz) -> Grid {
        Grid::new(presets::ASCII_MARKDOWN, true, columns, null_text, zone)
    }

    /// Creates a table with a header in the given style.
    fn new(
        preset: &str,
        is_markdown: bool,
        columns: Arc<Vec<ResultColumn>>,
        null_text: &'static str,
        zone: Tz,
    ) -> Grid {
        let mut table = Table::new();
        table.load_preset(preset).set_content_arrangement(ContentArrangement::Disabled);
        let mut grid = Grid { columns: Arc::clone(&columns), table, null_text, is_markdown, zone };
        let header: Vec<Cell> = columns.iter().map(|c| grid.cell(&c.name, &c.data_type)).collect();
        grid.table.set_header(header);
        grid
    }

    /// Makes a cell; numbers are right-aligned.
    fn cell(&self, text: &str, data_type: &DataType) -> Cell {
        let cell = if self.is_markdown { Cell::new(escaped(text)) } else { Cell::new(text) };
        let is_number = data_type.root.is_numeric() || matches!(data_type.root, TypeRoot::Null);
        cell.set_alignment(if is_number { CellAlignment::Right } else { CellAlignment::Left })
    }
}

impl ResultPrinter for Grid {
    fn begin(&mut self, _out: &mut String) {}

    fn rows(&mut self, batch: ChangelogBatch, _out: &mut String) -> Result<()> {
        let columns = Arc::clone(&self.columns);
        let formatters = formatters(&columns, batch.rows(), self.zone);
        let mut text = String::new();
        for row in 0..batch.row_count() {
            let mut cells = Vec::with_capacity(columns.len());
            for (formatter, column) in formatters.iter().zip(columns.iter()) {
                text.clear();
                let shown = if formatter.write(row, &mut text) { text.as_str() } else { self.null_text };
                cells.push(self.cell(shown, &column.data_type));
            }
            self.table.add_row(cells);
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut String) {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{}", self.table);
    }
}
