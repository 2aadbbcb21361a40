//! The rows that a view shows: a table that changes are applied to, or the last changes themselves.
//!
//! As in Flink there is no key: `+I` and `+U` add a row at the end, `-U` and `-D` take away the newest row that equals them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use chrono_tz::Tz;

use super::ViewMode;
use crate::changelog::{ChangelogBatch, RowKind};
use crate::session::ResultColumn;
use crate::shell::print::layout::NULL_TEXT;
use crate::shell::print::tableau::formatters;

// Limit: the changelog view keeps as many changes as Flink's.
const CHANGES_MAX: usize = 1_000;

/// Stands between the cells of a row.
const SEPARATOR: char = '\0';
/// Stands for NULL.
const NULL_MARK: &str = "\u{1}";

/// One row as text: the texts of its cells with separators between them.
pub(super) type RowText = Arc<str>;

/// Rows in the order of the screen.
#[derive(Debug)]
pub(super) struct Content {
    columns: Arc<Vec<ResultColumn>>,
    zone: Tz,
    rows: Rows,
}

/// What is kept.
#[derive(Debug)]
enum Rows {
    Table(Materialized),
    Changes(VecDeque<(RowKind, RowText)>),
}

impl Content {
    /// Creates empty content.
    pub(super) fn new(mode: ViewMode, columns: Arc<Vec<ResultColumn>>, rows_max: usize, zone: Tz) -> Content {
        let rows = match mode {
            ViewMode::Table => Rows::Table(Materialized::new(rows_max)),
            ViewMode::Changelog => Rows::Changes(VecDeque::new()),
        };
        Content { columns, zone, rows }
    }

    /// Applies the changes of a batch.
    pub(super) fn add(&mut self, batch: &ChangelogBatch) {
        let columns = Arc::clone(&self.columns);
        let formatters = formatters(&columns, batch.rows(), self.zone);
        let mut text = String::new();
        let mut cell = String::new();
        for row in 0..batch.row_count() {
            text.clear();
            for (index, formatter) in formatters.iter().enumerate() {
                if index > 0 {
                    text.push(SEPARATOR);
                }
                cell.clear();
                if formatter.write(row, &mut cell) {
                    // Line breaks and other control characters would tear the screen.
                    text.extend(cell.chars().map(|c| if c.is_control() { ' ' } else { c }));
                } else {
                    text.push_str(NULL_MARK);
                }
            }
            let kind = batch.kind(row);
            match &mut self.rows {
                Rows::Table(table) if kind.is_retraction() => table.remove(&text),
                Rows::Table(table) => table.add(&text),
                Rows::Changes(changes) => {
                    if changes.len() == CHANGES_MAX {
                        changes.pop_front();
                    }
                    changes.push_back((kind, RowText::from(text.as_str())));
                }
            }
        }
    }

    /// Returns the number of rows.
    pub(super) fn len(&self) -> usize {
        match &self.rows {
            Rows::Table(table) => table.live,
            Rows::Changes(changes) => changes.len(),
        }
    }

    /// Returns `count` rows from the given one on, with their kinds in the changelog view.
    pub(super) fn page(&self, first: usize, count: usize) -> Vec<(Option<RowKind>, RowText)> {
        match &self.rows {
            Rows::Table(table) => table
                .rows
                .iter()
                .flatten()
                .skip(first)
                .take(count)
                .map(|row| (None, Arc::clone(row)))
                .collect(),
            Rows::Changes(changes) => changes
                .iter()
                .skip(first)
                .take(count)
                .map(|(kind, row)| (Some(*kind), Arc::clone(row)))
                .collect(),
        }
    }
}

/// Returns the cells of a row.
pub(super) fn cells(row: &str) -> impl Iterator<Item = &str> {
    row.split(SEPARATOR).map(|cell| if cell == NULL_MARK { NULL_TEXT } else { cell })
}

/// The rows that are left after all changes so far, oldest first.
#[derive(Debug)]
struct Materialized {
    /// Rows by their number minus `first`; None where one was taken away.
    rows: VecDeque<Option<RowText>>,
    /// The number of the first entry of `rows`.
    first: u64,
    /// How many rows there are.
    live: usize,
    rows_max: usize,
    /// The numbers of all rows with a text, oldest first.
    numbers: HashMap<RowText, VecDeque<u64>>,
}

impl Materialized {
    fn new(rows_max: usize) -> Materialized {
        Materialized { rows: VecDeque::new(), first: 0, live: 0, rows_max, numbers: HashMap::new() }
    }

    /// Adds a row at the end; the oldest one goes if there are too many.
    fn add(&mut self, text: &str) {
        let row = match self.numbers.get_key_value(text) {
            Some((known, _)) => Arc::clone(known),
            None => RowText::from(text),
        };
        let number = self.first + self.rows.len() as u64;
        self.numbers.entry(Arc::clone(&row)).or_default().push_back(number);
        self.rows.push_back(Some(row));
        self.live += 1;
        while self.live > self.rows_max {
            self.drop_oldest();
        }
    }

    /// Takes the first entry away, which may be a row that is gone already.
    fn drop_oldest(&mut self) {
        let Some(entry) = self.rows.pop_front() else { return };
        self.first += 1;
        let Some(row) = entry else { return };
        self.live -= 1;
        if let Some(numbers) = self.numbers.get_mut(&row) {
            numbers.pop_front();
            if numbers.is_empty() {
                self.numbers.remove(&row);
            }
        }
    }

    /// Takes the newest row with a text away, if there is one.
    fn remove(&mut self, text: &str) {
        let Some(numbers) = self.numbers.get_mut(text) else { return };
        let newest = numbers.pop_back();
        if numbers.is_empty() {
            self.numbers.remove(text);
        }
        let Some(index) = newest.and_then(|number| usize::try_from(number - self.first).ok()) else { return };
        self.rows[index] = None;
        self.live -= 1;
        if self.rows.len() > 2 * self.live + 1_024 {
            self.compact();
        }
    }

    /// Closes the gaps, so that a table that is updated for ever stays as large as its rows.
    fn compact(&mut self) {
        self.rows.retain(Option::is_some);
        self.first = 0;
        self.numbers.values_mut().for_each(VecDeque::clear);
        for (number, row) in self.rows.iter().flatten().enumerate() {
            if let Some(numbers) = self.numbers.get_mut(row) {
                numbers.push_back(number as u64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(table: &Materialized) -> Vec<&str> {
        table.rows.iter().flatten().map(|row| &**row).collect()
    }

    #[test]
    fn an_update_moves_a_row_to_the_end_and_takes_the_newest_equal_one() {
        let mut table = Materialized::new(10);
        ["a", "b", "a"].iter().for_each(|row| table.add(row));
        table.remove("a");
        assert_eq!(texts(&table), ["a", "b"]);
        table.remove("nope");
        table.remove("a");
        table.add("a2");
        assert_eq!(texts(&table), ["b", "a2"]);
        assert_eq!(table.live, 2);
    }

    #[test]
    fn the_oldest_rows_go_when_there_are_too_many() {
        let mut table = Materialized::new(2);
        ["a", "b", "c"].iter().for_each(|row| table.add(row));
        assert_eq!(texts(&table), ["b", "c"]);
        table.remove("a");
        assert_eq!(table.live, 2);
    }

    #[test]
    fn a_table_that_is_updated_for_ever_stays_small() {
        let mut table = Materialized::new(100);
        table.add("first");
        for n in 0..10_000 {
            table.add(&n.to_string());
            table.remove(&n.to_string());
        }
        assert_eq!(texts(&table), ["first"]);
        assert!(table.rows.len() < 3_000);
        table.remove("first");
        assert_eq!(table.live, 0);
    }
}
