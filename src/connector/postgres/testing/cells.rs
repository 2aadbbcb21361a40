//! Rows of a batch as texts.

use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::changelog::ChangelogBatch;

/// Returns the cells of each row, with a text for NULL.
pub(in crate::connector::postgres) fn cells(batch: &ChangelogBatch, null: &str) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null(null);
    let columns: Vec<ArrayFormatter<'_>> = batch
        .rows()
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column.as_ref(), &options).unwrap())
        .collect();
    (0..batch.row_count())
        .map(|row| columns.iter().map(|column| column.value(row).to_string()).collect())
        .collect()
}
