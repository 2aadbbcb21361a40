//! What a table holds, for comparing a table of Postgres with its copy in a lake: how many rows, a checksum of each column, and the
//! rows that only one of both has.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use xxhash_rust::xxh3::xxh3_64;

/// How many rows of a difference are shown.
const SHOWN_MAX: usize = 8;

/// How much of a cell is shown.
const CELL_MAX: usize = 60;

/// The rows of a table as text, in no order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableContent {
    columns: Vec<String>,
    /// The sums of the hashes of the cells, and last that of whole rows, which sees cells that have changed places.
    checksums: Vec<u64>,
    rows: Vec<Vec<Option<String>>>,
}

impl TableContent {
    /// Takes rows.
    pub(crate) fn new(columns: &[&str], rows: Vec<Vec<Option<String>>>) -> TableContent {
        let mut checksums = vec![0_u64; columns.len() + 1];
        for row in &rows {
            assert_eq!(row.len(), columns.len(), "{row:?}");
            let mut whole = 0_u64;
            for (at, cell) in row.iter().enumerate() {
                let hash = cell.as_ref().map_or(1, |text| xxh3_64(text.as_bytes()));
                checksums[at] = checksums[at].wrapping_add(hash);
                whole = whole.rotate_left(7) ^ hash;
            }
            let last = columns.len();
            checksums[last] = checksums[last].wrapping_add(xxh3_64(&whole.to_le_bytes()));
        }
        TableContent { columns: columns.iter().map(|&name| name.to_owned()).collect(), checksums, rows }
    }

    /// Returns how many rows there are.
    pub(crate) fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Says how the copy differs from this table; nothing if it does not.
    pub(crate) fn difference(&self, copy: &TableContent) -> Option<String> {
        if self.rows.len() == copy.rows.len() && self.checksums == copy.checksums {
            return None;
        }
        let mut text = format!("{} rows instead of {}", copy.rows.len(), self.rows.len());
        let sums = self.checksums.iter().zip(&copy.checksums);
        let columns = self.columns.iter().map(String::as_str).chain(["whole rows"]);
        let differing: Vec<&str> =
            columns.zip(sums).filter(|(_, (a, b))| a != b).map(|(name, _)| name).collect();
        let _ = write!(text, ", checksums differ in {}", differing.join(", "));
        let mut counts: BTreeMap<&[Option<String>], i64> = BTreeMap::new();
        for row in &self.rows {
            *counts.entry(row).or_default() += 1;
        }
        for row in &copy.rows {
            *counts.entry(row).or_default() -= 1;
        }
        counts.retain(|_, count| *count != 0);
        for (row, count) in counts.iter().take(SHOWN_MAX) {
            let what = if *count > 0 { "missing" } else { "not of the source" };
            let _ = write!(text, "\n  {what} {} times: {}", count.abs(), shown(row));
        }
        if counts.len() > SHOWN_MAX {
            let _ = write!(text, "\n  … and {} more", counts.len() - SHOWN_MAX);
        }
        Some(text)
    }
}

/// Writes a row with the beginnings of its cells.
fn shown(row: &[Option<String>]) -> String {
    let cell = |cell: &Option<String>| match cell {
        None => "NULL".to_owned(),
        Some(text) if text.chars().count() > CELL_MAX => {
            format!("{}… ({} bytes)", text.chars().take(CELL_MAX).collect::<String>(), text.len())
        }
        Some(text) => text.clone(),
    };
    row.iter().map(cell).collect::<Vec<_>>().join(" | ")
}

#[test]
fn contents_that_differ_say_where() {
    let row = |id: &str, name: Option<&str>| vec![Some(id.to_owned()), name.map(str::to_owned)];
    let columns = ["id", "name"];
    let source = TableContent::new(&columns, vec![row("1", Some("a")), row("2", None), row("2", None)]);
    let reordered = TableContent::new(&columns, vec![row("2", None), row("1", Some("a")), row("2", None)]);
    assert_eq!(source.difference(&reordered), None);
    assert_eq!(reordered.row_count(), 3);
    let copy = TableContent::new(&columns, vec![row("1", Some("b")), row("2", None), row("2", None)]);
    let text = source.difference(&copy).unwrap();
    assert!(text.starts_with("3 rows instead of 3, checksums differ in name, whole rows"), "{text}");
    assert!(text.contains("missing 1 times: 1 | a") && text.contains("not of the source 1 times: 1 | b"));
    let swapped = TableContent::new(&columns, vec![row("2", Some("a")), row("1", None), row("2", None)]);
    let text = source.difference(&swapped).unwrap();
    assert!(text.starts_with("3 rows instead of 3, checksums differ in whole rows"), "{text}");
    let fewer = TableContent::new(&columns, vec![row("1", Some("a")), row("2", None)]);
    assert!(source.difference(&fewer).unwrap().contains("missing 1 times: 2 | NULL"));
}
