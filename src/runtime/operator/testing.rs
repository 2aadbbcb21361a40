//! Operators in tests: changelogs as text, workers that restart, random changelogs, and the rules that every operator keeps.
//!
//! A line is `+I 1 ann NULL`: a kind and the values, with `''` for the empty text. Lines of a further input begin with its number:
//! `1: -D 7`. The values of a line hold no blanks.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray, UInt32Array};
use arrow::compute::{CastOptions, cast_with_options, concat_batches};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::{EpochEnd, NO_WATERMARK, Operator, Output};
use crate::changelog::{ChangelogBatch, RowKind};
use crate::state::{StateTable, hash_rows, key_group, owner};

/// Rows with how often they are there.
pub(crate) type Multiset = BTreeMap<String, i64>;

/// Makes a schema of nullable columns.
pub(crate) fn schema(columns: &[(&str, DataType)]) -> SchemaRef {
    let fields = columns.iter().map(|(name, data_type)| Field::new(*name, data_type.clone(), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Takes a line apart: input, kind, values.
pub(crate) fn parse(line: &str) -> (usize, RowKind, Vec<&str>) {
    let mut words = line.split_whitespace();
    let mut word = words.next().expect("a line has a kind");
    let mut input = 0;
    if let Some(number) = word.strip_suffix(':') {
        input = number.parse().expect("the number of an input");
        word = words.next().expect("a line has a kind");
    }
    let kinds = [RowKind::Insert, RowKind::UpdateBefore, RowKind::UpdateAfter, RowKind::Delete];
    let kind = kinds.into_iter().find(|kind| kind.short_string() == word).expect(line);
    (input, kind, words.collect())
}

/// Makes a batch of lines; the number of an input is passed over.
pub(crate) fn batch<S: AsRef<str>>(schema: &SchemaRef, lines: &[S]) -> ChangelogBatch {
    let lines: Vec<_> = lines.iter().map(|line| parse(line.as_ref())).collect();
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let columns = schema.fields().iter().enumerate().map(|(column, field)| {
        let texts: StringArray = lines
            .iter()
            .map(|(_, _, values)| match values[column] {
                "NULL" => None,
                "''" => Some(""),
                value => Some(value),
            })
            .collect();
        cast_with_options(&(Arc::new(texts) as ArrayRef), field.data_type(), &options).expect("a value")
    });
    let columns: Vec<ArrayRef> = columns.collect();
    let count = RecordBatchOptions::new().with_row_count(Some(lines.len()));
    let rows = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &count).expect("columns");
    ChangelogBatch::with_kinds(rows, lines.iter().map(|(_, kind, _)| *kind))
}

/// Shows the rows of a batch as lines.
pub(crate) fn lines(batch: &ChangelogBatch) -> Vec<String> {
    let shown = show(batch.rows());
    (0..batch.row_count()).map(|row| format!("{} {}", batch.kind(row), shown[row])).collect()
}

/// Shows rows without kinds.
pub(crate) fn show(rows: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<_> = rows
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column.as_ref(), &options).expect("a column that can be shown"))
        .collect();
    let cell = |column: &ArrayFormatter<'_>, row: usize| match column.value(row).to_string() {
        text if text.is_empty() => "''".to_owned(),
        text => text.replace(' ', ""),
    };
    (0..rows.num_rows())
        .map(|row| columns.iter().map(|column| cell(column, row)).collect::<Vec<_>>().join(" "))
        .collect()
}

/// Adds up a changelog of one stream.
///
/// # Panics
/// If a row is taken back that is not there.
pub(crate) fn fold<S: AsRef<str>>(lines: &[S]) -> Multiset {
    let mut rows = Multiset::new();
    for line in lines {
        let (_, kind, values) = parse(line.as_ref());
        let row = values.join(" ");
        let count = rows.entry(row.clone()).or_default();
        *count += if kind.is_retraction() { -1 } else { 1 };
        assert!(*count >= 0, "{} takes back what is not there", line.as_ref());
        if *count == 0 {
            rows.remove(&row);
        }
    }
    rows
}

/// Adds up a changelog of upserts by key: what came last for each key.
pub(crate) fn fold_upserts<S: AsRef<str>>(lines: &[S], keys: &[usize]) -> BTreeMap<String, String> {
    let mut rows = BTreeMap::new();
    for line in lines {
        let (_, kind, values) = parse(line.as_ref());
        let key = keys.iter().map(|key| values[*key]).collect::<Vec<_>>().join(" ");
        match kind {
            RowKind::UpdateBefore => {}
            RowKind::Delete => drop(rows.remove(&key)),
            _ => drop(rows.insert(key, values.join(" "))),
        }
    }
    rows
}

/// Returns lines that take back all that is alive after a changelog, input by input.
pub(crate) fn retractions<S: AsRef<str>>(changelog: &[S]) -> Vec<String> {
    let inputs: Vec<usize> = changelog.iter().map(|line| parse(line.as_ref()).0).collect();
    let mut taken = Vec::new();
    for input in 0..=inputs.iter().copied().max().unwrap_or(0) {
        let lines: Vec<&S> =
            changelog.iter().zip(&inputs).filter(|(_, of)| **of == input).map(|(line, _)| line).collect();
        for (row, count) in fold(&lines) {
            taken.extend((0..count).map(|_| format!("{input}: -D {row}")));
        }
    }
    taken
}

/// An input of the operator under test: its columns, and those that say which worker gets a row.
#[derive(Clone)]
pub(crate) struct TestInput {
    schema: SchemaRef,
    distribution: Vec<usize>,
}

impl TestInput {
    /// Describes an input; without columns of distribution the first worker gets all.
    pub(crate) fn new(schema: &SchemaRef, distribution: &[usize]) -> TestInput {
        TestInput { schema: Arc::clone(schema), distribution: distribution.to_vec() }
    }
}

/// Makes one more operator of the kind under test.
type Make<'a> = Box<dyn Fn() -> Box<dyn Operator> + 'a>;

/// An operator on one or more workers, with a checkpoint to which changes are added.
pub(crate) struct Harness<'a> {
    make: Make<'a>,
    workers: Vec<Box<dyn Operator>>,
    inputs: Vec<TestInput>,
    epoch: u64,
    saved: Vec<SavedTable>,
}

/// A table in a checkpoint: rows and their key groups, by the primary key as text.
struct SavedTable {
    table: StateTable,
    rows: BTreeMap<String, (RecordBatch, u8)>,
}

impl<'a> Harness<'a> {
    /// Starts on one worker.
    pub(crate) fn new<O: Operator + 'static>(make: impl Fn() -> O + 'a, inputs: &[TestInput]) -> Harness<'a> {
        let make: Make<'a> = Box::new(move || Box::new(make()));
        let workers = vec![make()];
        let tables = workers[0].state_tables().into_iter();
        let saved = tables.map(|table| SavedTable { table, rows: BTreeMap::new() }).collect();
        Harness { make, workers, inputs: inputs.to_vec(), epoch: 0, saved }
    }

    /// Runs one epoch of these lines and returns what comes out.
    pub(crate) fn epoch<S: AsRef<str>>(&mut self, lines: &[S]) -> Vec<String> {
        let mut outputs: Vec<Output> = self.workers.iter().map(|_| Output::default()).collect();
        for lines in lines.chunk_by(|a, b| parse(a.as_ref()).0 == parse(b.as_ref()).0) {
            let input = parse(lines[0].as_ref()).0;
            let batch = batch(&self.inputs[input].schema, lines);
            let groups = self.groups(input, batch.rows());
            for (worker, output) in outputs.iter_mut().enumerate() {
                let rows = (0..lines.len()).filter(|row| owner(groups[*row], self.workers.len()) == worker);
                let rows = UInt32Array::from_iter_values(rows.map(|row| row as u32));
                if !rows.is_empty() {
                    let batch = batch.take(&rows).expect("positions");
                    self.workers[worker].process(input, batch, output).expect("rows are taken");
                }
            }
        }
        self.epoch += 1;
        let end = EpochEnd { number: self.epoch, time_ms: 0, watermark: NO_WATERMARK, is_last: false };
        let mut shown = Vec::new();
        for (worker, output) in self.workers.iter_mut().zip(&mut outputs) {
            worker.end_epoch(&end, output).expect("the epoch ends");
            output.drain().for_each(|batch| shown.extend(self::lines(&batch)));
        }
        shown
    }

    /// Takes back all rows so far.
    pub(crate) fn clear(&mut self) {
        self.workers.iter_mut().for_each(|worker| worker.clear().expect("rows are taken back"));
    }

    /// Runs one epoch for every line.
    pub(crate) fn per_record<S: AsRef<str>>(&mut self, lines: &[S]) -> Vec<String> {
        self.in_epochs(lines, 1)
    }

    /// Runs epochs of so many lines.
    pub(crate) fn in_epochs<S: AsRef<str>>(&mut self, lines: &[S], size: usize) -> Vec<String> {
        lines.chunks(size).flat_map(|lines| self.epoch(lines)).collect()
    }

    /// Adds what has changed to the checkpoint.
    pub(crate) fn checkpoint(&mut self) {
        for worker in &mut self.workers {
            let changes = worker.take_changes().expect("changes are taken");
            assert_eq!(changes.len(), self.saved.len(), "one entry per table");
            for (saved, changes) in self.saved.iter_mut().zip(changes) {
                let keys = show(&changes.deletes);
                assert_eq!(keys.len(), changes.delete_groups.len(), "one group per key");
                keys.iter().for_each(|key| drop(saved.rows.remove(key)));
                let key_columns: Vec<usize> = (0..saved.table.key_count).collect();
                let keys = show(&changes.upserts.project(&key_columns).expect("the key's columns"));
                assert_eq!(keys.len(), changes.upsert_groups.len(), "one group per row");
                assert_eq!(
                    changes.upserts.schema(),
                    saved.table.schema,
                    "the rows of a table are as described"
                );
                for (row, key) in keys.into_iter().enumerate() {
                    saved.rows.insert(key, (changes.upserts.slice(row, 1), changes.upsert_groups[row]));
                }
            }
        }
    }

    /// Takes a checkpoint and goes on from it with other operators on so many workers.
    pub(crate) fn restart(&mut self, workers: usize) {
        self.checkpoint();
        self.workers = (0..workers).map(|_| (self.make)()).collect();
        for (table, saved) in self.saved.iter().enumerate() {
            for (number, worker) in self.workers.iter_mut().enumerate() {
                let rows = saved.rows.values().filter(|(_, group)| owner(*group, workers) == number);
                let rows: Vec<&RecordBatch> = rows.map(|(row, _)| row).rev().collect();
                // Two calls, since a worker loads more than one file.
                for rows in rows.chunks(rows.len().div_ceil(2).max(1)) {
                    let rows = concat_batches(&saved.table.schema, rows.iter().copied()).expect("rows");
                    worker.load(table, &rows).expect("rows are loaded");
                }
            }
        }
        self.workers.iter_mut().for_each(|worker| worker.finish_load().expect("what was saved is whole"));
    }

    /// Returns the rows of a table in the checkpoint.
    pub(crate) fn saved(&self, table: usize) -> Vec<String> {
        self.saved[table].rows.values().flat_map(|(row, _)| show(row)).collect()
    }

    /// Returns how many bytes the operators hold.
    pub(crate) fn state_bytes(&self) -> usize {
        self.workers.iter().map(|worker| worker.state_bytes()).sum()
    }

    fn groups(&self, input: usize, rows: &RecordBatch) -> Vec<u8> {
        let columns: Vec<ArrayRef> =
            self.inputs[input].distribution.iter().map(|column| Arc::clone(rows.column(*column))).collect();
        let mut hashes = Vec::new();
        hash_rows(&columns, rows.num_rows(), &mut hashes).expect("keys");
        hashes.into_iter().map(key_group).collect()
    }
}

/// Checks what comes out for each line by itself, in order and with its kinds.
///
/// # Panics
/// If something else comes out.
pub(crate) fn check<O: Operator + 'static>(
    make: impl Fn() -> O,
    inputs: &[TestInput],
    lines: &[&str],
    expected: &[&str],
) {
    assert_eq!(Harness::new(make, inputs).per_record(lines), expected);
}

/// Checks the rules that hold for every operator: epochs of any size add up to what single rows add up to; a restart from a
/// checkpoint, with any number of workers, changes nothing; and when all is taken back, nothing is left. Returns the sum.
///
/// # Panics
/// If a rule is broken.
pub(crate) fn check_rules<O: Operator + 'static>(
    make: impl Fn() -> O,
    inputs: &[TestInput],
    lines: &[String],
    random: &mut Random,
) -> Multiset {
    let expected = fold(&Harness::new(&make, inputs).per_record(lines));
    let mut epochs = Harness::new(&make, inputs);
    let mut restarted = Harness::new(&make, inputs);
    let (mut of_epochs, mut of_restarted) = (Vec::new(), Vec::new());
    for part in random.split(lines) {
        of_epochs.extend(epochs.epoch(part));
        of_restarted.extend(restarted.epoch(part));
        if random.chance(30) {
            restarted.restart(1 + random.below(3));
        } else if random.chance(30) {
            restarted.checkpoint();
        }
    }
    assert_eq!(fold(&of_epochs), expected, "epochs of other sizes, over {lines:#?}");
    assert_eq!(fold(&of_restarted), expected, "restarts, over {lines:#?}");
    for part in random.split(&retractions(lines)) {
        of_restarted.extend(restarted.epoch(part));
    }
    assert_eq!(fold(&of_restarted), Multiset::new(), "all is taken back, over {lines:#?}");
    restarted.checkpoint();
    for table in 0..restarted.saved.len() {
        assert_eq!(restarted.saved(table), [""; 0], "{} is empty", restarted.saved[table].table.name);
    }
    expected
}

/// Numbers that look random and are the same in every run.
pub(crate) struct Random(u64);

impl Random {
    /// Starts from a seed.
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns a number below a bound.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((value ^ (value >> 31)) % bound as u64) as usize
    }

    /// Returns true in so many of a hundred cases.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Cuts lines into epochs, small and large.
    pub(crate) fn split<'l, S>(&mut self, lines: &'l [S]) -> Vec<&'l [S]> {
        let mut rest = lines;
        let mut parts = Vec::new();
        while !rest.is_empty() {
            let most = [1, 3, 20, 100][self.below(4)];
            let (part, others) = rest.split_at((1 + self.below(most)).min(rest.len()));
            parts.push(part);
            rest = others;
        }
        parts
    }

    /// Returns a value of a small set, so that equal ones are common; NULL now and then.
    pub(crate) fn value(&mut self, data_type: &DataType) -> String {
        if self.chance(12) {
            return "NULL".to_owned();
        }
        match data_type {
            DataType::Utf8 => ["a", "b", "c", "''", "ab"][self.below(5)].to_owned(),
            DataType::Float32 | DataType::Float64 => {
                ["0.0", "-0.0", "1.5", "-2.0", "NaN", "inf"][self.below(6)].to_owned()
            }
            DataType::Boolean => ["true", "false"][self.below(2)].to_owned(),
            _ => self.below(6).to_string(),
        }
    }

    /// Makes a valid changelog: it takes back only what is there. No two live rows share the unique key, if there is one; without,
    /// equal rows are common.
    pub(crate) fn changelog(&mut self, schema: &SchemaRef, unique_key: &[usize], len: usize) -> Vec<String> {
        let mut live: Vec<Vec<String>> = Vec::new();
        let mut lines = Vec::new();
        while lines.len() < len {
            let choice = self.below(100);
            if live.is_empty() || choice < 50 {
                let row = self.row(schema);
                if is_new(&live, unique_key, &row) {
                    lines.push(format!("+I {}", row.join(" ")));
                    live.push(row);
                }
            } else if choice < 72 {
                let row = live.swap_remove(self.below(live.len()));
                lines.push(format!("-D {}", row.join(" ")));
            } else {
                let at = self.below(live.len());
                let before = live.swap_remove(at);
                let mut after = self.row(schema);
                unique_key.iter().for_each(|column| after[*column].clone_from(&before[*column]));
                lines.push(format!("-U {}", before.join(" ")));
                lines.push(format!("+U {}", after.join(" ")));
                live.push(after);
            }
        }
        lines
    }

    /// Makes rows that are only added.
    pub(crate) fn inserts(&mut self, schema: &SchemaRef, len: usize) -> Vec<String> {
        (0..len).map(|_| format!("+I {}", self.row(schema).join(" "))).collect()
    }

    /// Mixes the changelogs of several inputs; each keeps its order.
    pub(crate) fn merge(&mut self, inputs: &[Vec<String>]) -> Vec<String> {
        let mut next = vec![0; inputs.len()];
        let mut lines = Vec::new();
        loop {
            let open: Vec<usize> =
                (0..inputs.len()).filter(|input| next[*input] < inputs[*input].len()).collect();
            if open.is_empty() {
                return lines;
            }
            let input = open[self.below(open.len())];
            lines.push(format!("{input}: {}", inputs[input][next[input]]));
            next[input] += 1;
        }
    }

    fn row(&mut self, schema: &SchemaRef) -> Vec<String> {
        schema.fields().iter().map(|field| self.value(field.data_type())).collect()
    }
}

/// Returns whether no live row has the key of this one.
fn is_new(live: &[Vec<String>], unique_key: &[usize], row: &[String]) -> bool {
    let is_same = |other: &Vec<String>| unique_key.iter().all(|column| other[*column] == row[*column]);
    unique_key.is_empty() || !live.iter().any(is_same)
}

mod tests {
    use super::*;
    use DataType::{Int32, Utf8};

    #[test]
    fn lines_become_batches_and_batches_lines() {
        let schema = schema(&[("id", Int32), ("name", Utf8)]);
        let text = ["+I 1 ann", "-U 1 ''", "+U NULL NULL", "-D 2 x"];
        assert_eq!(lines(&batch(&schema, &text)), text);
        assert_eq!(
            fold(&["+I 1", "+I 1", "-D 1", "+I 2"]),
            Multiset::from([("1".into(), 1), ("2".into(), 1)])
        );
        assert_eq!(retractions(&["+I 1", "1: +I 2", "1: +U 2"]), ["0: -D 1", "1: -D 2", "1: -D 2"]);
    }

    #[test]
    fn random_changelogs_are_valid() {
        let schema = schema(&[("id", Int32), ("name", Utf8)]);
        let mut random = Random::new(7);
        let unique = fold(&random.changelog(&schema, &[0], 300));
        assert!(unique.values().all(|count| *count == 1) && unique.len() < 8, "{unique:?}");
        let lines = random.changelog(&schema, &[], 300);
        let merged = random.merge(&[lines.clone(), lines.clone()]);
        assert_eq!(random.split(&merged).concat(), merged);
        fold(&lines);
    }
}
