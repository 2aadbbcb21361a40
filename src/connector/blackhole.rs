//! `blackhole`: swallows every row, for measuring what comes before it. With checksums it can be seen that what came was right.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::{
    CheckpointId, Committable, Committer, DynamicTableSink, FactoryContext, NoCommitter, OperatorStatus,
    SinkWriter, TableFactory, WriterContext,
};
use crate::changelog::{ChangelogBatch, ChangelogMode};
use crate::error::Result;
use crate::options::{ConfigOption, OptionDef};
use crate::state::hash_rows;

const PROPERTY_VERSION: ConfigOption<i32> =
    ConfigOption::optional("property-version", "A version that older scripts give; it changes nothing.");
const CHECKSUMS: ConfigOption<bool> = ConfigOption::with_default(
    "lakehead.checksums",
    "false",
    "Whether DESCRIBE JOB shows how many rows there are and a checksum of each column.",
);

/// The connector `blackhole`.
pub(crate) struct Blackhole;

impl TableFactory for Blackhole {
    fn identifier(&self) -> &'static str {
        "blackhole"
    }

    fn doc(&self) -> &'static str {
        "Swallows every row."
    }

    fn options(&self) -> &'static [&'static dyn OptionDef] {
        &[&CHECKSUMS, &PROPERTY_VERSION]
    }

    fn create_sink(&self, ctx: &FactoryContext<'_>) -> Result<Arc<dyn DynamicTableSink>> {
        ctx.require(self)?;
        let names = ctx.schema.sink_columns().map(|column| column.name.clone()).collect();
        let checksums = ctx.options.get(&CHECKSUMS)?.then(|| Arc::new(Checksums::new(names)));
        ctx.accept(&[&PROPERTY_VERSION])?;
        ctx.options.reject_unknown()?;
        Ok(Arc::new(BlackholeSink { checksums }))
    }
}

#[derive(Debug)]
struct BlackholeSink {
    /// One for all writers.
    checksums: Option<Arc<Checksums>>,
}

/// Sums of the hashes of values: rows that are taken back are subtracted, so that equal tables have equal sums whatever the changes
/// were that led to them, and in whichever order and by whichever writers they were taken.
#[derive(Debug)]
struct Checksums {
    names: Vec<String>,
    sums: Mutex<Sums>,
}

#[derive(Debug)]
struct Sums {
    row_count: i64,
    columns: Vec<u64>,
}

impl Checksums {
    fn new(names: Vec<String>) -> Checksums {
        let columns = vec![0; names.len()];
        Checksums { names, sums: Mutex::new(Sums { row_count: 0, columns }) }
    }

    /// Begins anew: the job starts, or starts again from a checkpoint, which does not hold the sums.
    fn reset(&self) {
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        *sums = Sums { row_count: 0, columns: vec![0; self.names.len()] };
    }

    /// Adds a batch; `hashes` is scratch.
    fn add(&self, batch: &ChangelogBatch, hashes: &mut Vec<u64>) -> Result<()> {
        let sign = |row: usize| if batch.kind(row).is_retraction() { -1 } else { 1 };
        let signs: Option<Vec<i64>> = batch.kind_bytes().map(|_| (0..batch.row_count()).map(sign).collect());
        let mut added = Vec::with_capacity(self.names.len());
        for column in batch.rows().columns() {
            hash_rows(std::slice::from_ref(column), batch.row_count(), hashes)?;
            added.push(match &signs {
                None => hashes.iter().fold(0, |sum: u64, hash| sum.wrapping_add(*hash)),
                Some(signs) => hashes.iter().zip(signs).fold(0, |sum: u64, (hash, sign)| {
                    sum.wrapping_add(hash.wrapping_mul(sign.cast_unsigned()))
                }),
            });
        }
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        sums.row_count += signs.map_or(batch.row_count() as i64, |signs| signs.iter().sum());
        for (sum, added) in sums.columns.iter_mut().zip(added) {
            *sum = sum.wrapping_add(added);
        }
        Ok(())
    }

    /// Returns what is shown: the number of rows, and the sums by the names of columns.
    fn values(&self) -> Vec<(String, String)> {
        let sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let of_columns = self.names.iter().zip(&sums.columns);
        std::iter::once(("rows".to_owned(), sums.row_count.to_string()))
            .chain(of_columns.map(|(name, sum)| (name.clone(), format!("{sum:016x}"))))
            .collect()
    }
}

#[async_trait]
impl DynamicTableSink for BlackholeSink {
    fn summary(&self) -> String {
        "BlackHole".to_owned()
    }

    fn changelog_mode(&self, requested: ChangelogMode) -> ChangelogMode {
        requested
    }

    async fn open_writer(&self, ctx: WriterContext) -> Result<Box<dyn SinkWriter>> {
        let Some(checksums) = &self.checksums else { return Ok(Box::new(BlackholeWriter { sums: None })) };
        checksums.reset();
        Ok(Box::new(BlackholeWriter {
            sums: Some(Summing { checksums: Arc::clone(checksums), status: ctx.status, hashes: Vec::new() }),
        }))
    }

    async fn open_committer(&self, _ctx: WriterContext) -> Result<Box<dyn Committer>> {
        Ok(Box::new(NoCommitter))
    }
}

#[derive(Debug)]
struct BlackholeWriter {
    sums: Option<Summing>,
}

#[derive(Debug)]
struct Summing {
    checksums: Arc<Checksums>,
    status: OperatorStatus,
    hashes: Vec<u64>,
}

#[async_trait]
impl SinkWriter for BlackholeWriter {
    async fn write(&mut self, batch: ChangelogBatch) -> Result<()> {
        if let Some(Summing { checksums, status, hashes }) = &mut self.sums {
            checksums.add(&batch, hashes)?;
            status.set(checksums.values());
        }
        Ok(())
    }

    async fn prepare_commit(&mut self, _checkpoint: CheckpointId) -> Result<Vec<Committable>> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int32Array, RecordBatch, StringArray};

    use super::*;
    use crate::changelog::RowKind::{self, Delete, Insert, UpdateAfter, UpdateBefore};

    fn sums_of(batches: &[&[(RowKind, i32, Option<&str>)]]) -> Vec<(String, String)> {
        let checksums = Checksums::new(vec!["id".to_owned(), "name".to_owned()]);
        for rows in batches {
            let ids: Int32Array = rows.iter().map(|row| Some(row.1)).collect();
            let names: StringArray = rows.iter().map(|row| row.2).collect();
            let columns = [("id", Arc::new(ids) as _), ("name", Arc::new(names) as _)];
            let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(n, c)| (n, c, true))).unwrap();
            let batch = ChangelogBatch::with_kinds(batch, rows.iter().map(|row| row.0));
            checksums.add(&batch, &mut Vec::new()).unwrap();
        }
        checksums.values()
    }

    #[test]
    fn equal_tables_have_equal_sums_whatever_led_to_them() {
        let plain = sums_of(&[&[(Insert, 1, Some("a")), (Insert, 2, None), (Insert, 3, Some("c"))]]);
        assert_eq!(plain[0], ("rows".to_owned(), "3".to_owned()));
        let changed = sums_of(&[
            &[(Insert, 3, Some("x")), (Insert, 4, Some("d")), (Insert, 2, None)],
            &[(UpdateBefore, 3, Some("x")), (UpdateAfter, 3, Some("c")), (Delete, 4, Some("d"))],
            &[(Insert, 1, Some("a"))],
        ]);
        assert_eq!(changed, plain);
        let other = sums_of(&[&[(Insert, 1, Some("c")), (Insert, 2, None), (Insert, 3, Some("b"))]]);
        assert_eq!(other[1], plain[1]);
        assert_ne!(other[2], plain[2]);
    }
}
