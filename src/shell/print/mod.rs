//! Results as text: Flink's tableau and the other output formats, all over the same stream of batches.
//!
//! Printers only append to a buffer. Who writes the buffer, and where, is the console's business.

pub(crate) mod console;
mod csv;
mod grid;
mod json;
pub(crate) mod layout;
mod markdown;
pub(crate) mod messages;
pub(crate) mod tableau;

use std::sync::Arc;

use chrono_tz::Tz;
use clap::ValueEnum;

use crate::changelog::ChangelogBatch;
use crate::error::Result;
use crate::session::{ResultColumn, ResultTable};
use layout::NULL_TEXT;
use tableau::{BOX, RowLayout, Ruling, TABLEAU};

/// What rows look like on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum OutputFormat {
    /// Flink's tables; messages and rows both go to standard output.
    #[default]
    Tableau,
    /// Tables drawn with box characters.
    Box,
    /// Comma-separated values with a header line; NULL is an empty field.
    Csv,
    /// One JSON array of objects.
    Json,
    /// One JSON object per line.
    Jsonl,
    /// A Markdown table.
    Markdown,
}

/// Turns the batches of one result into text.
pub(crate) trait ResultPrinter {
    /// Appends what stands before the first row.
    fn begin(&mut self, out: &mut String);

    /// Appends rows, or keeps them until the end.
    ///
    /// # Errors
    /// A value cannot be written in this format.
    fn rows(&mut self, batch: ChangelogBatch, out: &mut String) -> Result<()>;

    /// Appends what stands behind the last row.
    fn finish(&mut self, out: &mut String);

    /// Appends what is needed after a query that was stopped.
    fn interrupt(&mut self, _out: &mut String) {}
}

/// What a printer must know of the session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PrintSettings {
    /// `table.display.max-column-width`.
    pub(crate) max_column_width: usize,
    /// The session time zone.
    pub(crate) zone: Tz,
}

/// Returns the printer of a query's result.
pub(crate) fn query_printer(
    format: OutputFormat,
    columns: &Arc<Vec<ResultColumn>>,
    is_streaming: bool,
    settings: PrintSettings,
) -> Box<dyn ResultPrinter> {
    let columns = Arc::clone(columns);
    let streaming = |ruling: Ruling| {
        let layout =
            RowLayout::streaming(ruling, Arc::clone(&columns), settings.max_column_width, settings.zone);
        Box::new(StreamingTable { layout, has_rows: false })
    };
    match format {
        OutputFormat::Tableau if is_streaming => streaming(TABLEAU),
        OutputFormat::Box if is_streaming => streaming(BOX),
        OutputFormat::Markdown if is_streaming => {
            Box::new(markdown::Markdown::new(columns, NULL_TEXT, settings.zone))
        }
        OutputFormat::Tableau => Box::new(FinishedTable {
            columns,
            cap: Some(settings.max_column_width),
            null_text: NULL_TEXT,
            zone: settings.zone,
            kept: Vec::new(),
        }),
        OutputFormat::Box => Box::new(grid::Grid::boxed(columns, NULL_TEXT, settings.zone)),
        OutputFormat::Markdown => Box::new(grid::Grid::markdown(columns, NULL_TEXT, settings.zone)),
        OutputFormat::Csv => Box::new(csv::Csv::new(columns, is_streaming, settings.zone)),
        OutputFormat::Json => Box::new(json::Json::array(columns, is_streaming, settings.zone)),
        OutputFormat::Jsonl => Box::new(json::Json::lines(columns, is_streaming, settings.zone)),
    }
}

/// Appends the rows of a small answer (SHOW, DESCRIBE, EXPLAIN): never capped, and NULL is blank.
///
/// # Errors
/// A value cannot be written in this format.
pub(crate) fn print_table(
    format: OutputFormat,
    table: &ResultTable,
    zone: Tz,
    out: &mut String,
) -> Result<()> {
    let columns = Arc::clone(&table.columns);
    let mut printer: Box<dyn ResultPrinter> = match format {
        OutputFormat::Tableau => {
            Box::new(FinishedTable { columns, cap: None, null_text: "", zone, kept: Vec::new() })
        }
        OutputFormat::Box => Box::new(grid::Grid::boxed(columns, "", zone)),
        OutputFormat::Markdown => Box::new(grid::Grid::markdown(columns, "", zone)),
        OutputFormat::Csv => Box::new(csv::Csv::new(columns, false, zone)),
        OutputFormat::Json => Box::new(json::Json::array(columns, false, zone)),
        OutputFormat::Jsonl => Box::new(json::Json::lines(columns, false, zone)),
    };
    printer.begin(out);
    printer.rows(ChangelogBatch::inserts(table.rows.clone()), out)?;
    printer.finish(out);
    Ok(())
}

/// A table whose rows are printed as they come.
#[derive(Debug)]
struct StreamingTable {
    layout: RowLayout,
    has_rows: bool,
}

impl ResultPrinter for StreamingTable {
    fn begin(&mut self, out: &mut String) {
        self.layout.push_header(out);
    }

    fn rows(&mut self, batch: ChangelogBatch, out: &mut String) -> Result<()> {
        self.has_rows |= batch.row_count() > 0;
        self.layout.push_rows(&batch, out);
        Ok(())
    }

    fn finish(&mut self, out: &mut String) {
        if self.has_rows {
            self.layout.push_bottom(out);
        }
    }
}

/// A table that is printed when all of its rows are known. Without rows nothing is printed but the footer.
#[derive(Debug)]
struct FinishedTable {
    columns: Arc<Vec<ResultColumn>>,
    cap: Option<usize>,
    null_text: &'static str,
    zone: Tz,
    kept: Vec<ChangelogBatch>,
}

impl ResultPrinter for FinishedTable {
    fn begin(&mut self, _out: &mut String) {}

    fn rows(&mut self, batch: ChangelogBatch, _out: &mut String) -> Result<()> {
        if batch.row_count() > 0 {
            self.kept.push(batch);
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut String) {
        if self.kept.is_empty() {
            return;
        }
        let columns = Arc::clone(&self.columns);
        let mut layout = RowLayout::finished(columns, &self.kept, self.cap, self.null_text, self.zone);
        layout.push_header(out);
        for batch in &self.kept {
            layout.push_rows(batch, out);
        }
        layout.push_bottom(out);
    }
}

#[cfg(test)]
mod tests;
