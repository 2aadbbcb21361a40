//! Writes rows that change: at a checkpoint the net effect of the rows becomes data files and position deletes.
//!
//! Nothing is written before the checkpoint, so a row that is replaced within one never reaches a file, and no commit deletes what it
//! adds. The index is brought to the table's current snapshot first, and then holds the new rows, too: they are in the next snapshot,
//! or the job goes on from an earlier checkpoint and an earlier index.
//!
//! A writer that goes on from nothing looks up its first keys in the table's files and knows no others; only if there is a second
//! checkpoint it reads all. So a batch job, which has one, costs what its keys cost.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;

use super::image_order::{ImageOrder, sorted_by_key};
use super::index_sync::{IndexSync, Ownership};
use super::indexed_files::IndexedFiles;
use super::key_positions::{KeyPositions, RowPosition};
use super::net_effect::{Images, NetChange, NetEffect};
use super::replaced_rows::{Lookup, ReplacedRow, ReplacedRows};
use super::row_identity::{Identified, RowIdentity, row_hash_of};
use super::synced_groups::SyncedGroups;
use crate::changelog::ChangelogBatch;
use crate::connector::iceberg::commit::{lineage_of, reload_same};
use crate::connector::iceberg::manifest::TableFile;
use crate::connector::iceberg::table::IcebergTable;
use crate::connector::iceberg::write::data_file_writer::{DataFileWriter, RowTraits, WrittenRow};
use crate::connector::iceberg::write::file_names::FileNames;
use crate::connector::iceberg::write::file_schema::WrittenColumns;
use crate::connector::iceberg::write::iceberg_committer::discard_files;
use crate::connector::iceberg::write::position_delete_writer::{DeletedRows, PositionDeleteWriter};
use crate::connector::iceberg::write::prepared_files::{PreparedFiles, Replaced};
use crate::connector::iceberg::write::write_options::WriteOptions;
use crate::connector::iceberg::write::write_settings::WriteSettings;
use crate::connector::{CheckpointId, Committable, SinkWriter, WriterContext};
use crate::error::{Error, Result};
use crate::state::{StateChanges, StateTable};

/// How many bytes of rows wait in memory for a checkpoint, with all writers of a table together; more go to temporary files.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// The order of the tables of state.
const POSITIONS: usize = 0;
const SNAPSHOTS: usize = 1;

/// Writes upserts and retractions.
pub(in crate::connector::iceberg::write) struct UpsertWriter {
    table: IcebergTable,
    columns: WrittenColumns,
    /// The columns, all of which take NULL.
    rows: SchemaRef,
    options: WriteOptions,
    names: Arc<FileNames>,
    lineage: String,
    identity: Arc<RowIdentity>,
    index: KeyPositions,
    net: NetEffect,
    sync: IndexSync,
    synced: SyncedGroups,
    ownership: Ownership,
    /// Whether a checkpoint was prepared, by this writer or before.
    has_prepared: bool,
    /// Whether the next files take the place of all that the table holds.
    replaces_content: bool,
    slots: Vec<u32>,
}

/// What is ready to be committed.
#[derive(Default)]
struct Prepared {
    data: Vec<TableFile>,
    deletes: Vec<TableFile>,
}

impl UpsertWriter {
    /// Opens a writer.
    ///
    /// # Errors
    /// A column cannot be part of a key.
    pub(in crate::connector::iceberg::write) fn new(
        table: IcebergTable,
        columns: WrittenColumns,
        options: WriteOptions,
        identity: Arc<RowIdentity>,
        ctx: &WriterContext,
    ) -> Result<UpsertWriter> {
        let ownership = Ownership { writer: ctx.writer, writer_count: ctx.writer_count };
        let lineage = lineage_of(&ctx.sink_id);
        let fields = columns.rows().fields().iter();
        let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
        let rows: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let waiting_bytes = WAITING_BYTES_MAX / ctx.writer_count.max(1);
        let net = match identity.is_key() {
            true => NetEffect::of_keys(Arc::clone(&rows), waiting_bytes),
            false => NetEffect::of_rows(Arc::clone(&rows), waiting_bytes),
        };
        let branch = options.branch.clone();
        let is_exact = !identity.is_key();
        let sync = IndexSync::new(table.metadata(), lineage.clone(), ownership.clone(), branch, is_exact);
        Ok(UpsertWriter {
            table,
            names: Arc::new(FileNames::new(&ctx.sink_id, ctx.writer)),
            index: KeyPositions::new(Arc::clone(&identity))?,
            sync,
            synced: SyncedGroups::default(),
            columns,
            rows,
            options,
            lineage,
            identity,
            net,
            ownership,
            has_prepared: false,
            replaces_content: ctx.replaces_content,
            slots: Vec::new(),
        })
    }

    /// Writes the files of a checkpoint; those that are written are in `prepared` also if it fails.
    async fn prepare(
        &mut self,
        table: &IcebergTable,
        checkpoint: CheckpointId,
        prepared: &mut Prepared,
    ) -> Result<PreparedFiles> {
        let metadata = table.metadata();
        let settings = WriteSettings::new(&self.options.properties(metadata), metadata)?;
        let settings = Arc::new(settings.of_one_in(self.ownership.writer_count));
        let order = ImageOrder::of(metadata, &self.columns);
        let change = self.net.take();
        let traits = RowTraits {
            bloom_columns: match self.identity.is_key() {
                true => self.identity.names().map(str::to_owned).collect(),
                false => Vec::new(),
            },
            rows_max: change.images.iter().map(|images| images.slots.len() as u64).max(),
            sort_order_id: order.as_ref().map(|order| order.id),
        };
        let names = &self.names;
        let mut data =
            DataFileWriter::new(table, &self.columns, Arc::clone(&settings), Arc::clone(names), traits)?;
        let deletes = PositionDeleteWriter::new(table, settings, Arc::clone(names))?;
        let wanted = (!self.has_prepared).then_some(change.touched.as_slice());
        self.sync.begin(checkpoint);
        let (base, replaced_content) = match std::mem::take(&mut self.replaces_content) {
            true => (self.sync.begin_empty(metadata), Replaced::Everything),
            false => {
                let base = self.sync.bring(table, &mut self.index, &self.identity, wanted).await?;
                (base, Replaced::Nothing)
            }
        };
        self.has_prepared = true;
        let (deleted, replaced) = self.take_replaced(&change)?;
        deletes.write(deleted, &mut prepared.deletes).await?;
        self.write_images(&change, order.as_ref(), &mut data, prepared).await?;
        self.index.settle(&change.touched);
        self.index.purge(self.sync.take_reread());
        let files: Vec<TableFile> = prepared.data.iter().chain(&prepared.deletes).cloned().collect();
        let (uuid, lookup) = (metadata.uuid(), Lookup { base, replaced });
        let files = PreparedFiles::new(&self.lineage, uuid, checkpoint, replaced_content, &files)?
            .with_lookup(&lookup)?;
        let written = prepared.data.iter().map(|file| IndexedFiles::hash_of(file.file.file_path()));
        let retracted = lookup.replaced.places().collect();
        self.sync.prepared(files.id.clone(), checkpoint, written.collect(), retracted);
        Ok(files)
    }

    /// Takes the rows that are replaced out of the index.
    fn take_replaced(&mut self, change: &NetChange) -> Result<(Vec<DeletedRows>, ReplacedRows)> {
        let mut positions = Vec::new();
        let replaced = if self.identity.is_key() {
            change.touched.iter().for_each(|slot| self.index.take(*slot, &mut positions));
            ReplacedRows::of_keys(&self.identity, self.index.keys(&change.deleted)?)?
        } else {
            ReplacedRows::Rows(self.take_retracted(change, &mut positions)?)
        };
        // As one number a position is compared without a branch.
        positions.sort_unstable_by_key(|position| u64::from(position.file) << 32 | u64::from(position.row));
        let mut deleted: Vec<DeletedRows> = Vec::new();
        for of_file in positions.chunk_by(|a, b| a.file == b.file) {
            let file = of_file.first().and_then(|position| self.index.files.location(position.file));
            let file = file.ok_or_else(|| Error::internal("a row is in a file that is not in the table"))?;
            deleted.push(DeletedRows {
                path: file.path.clone(),
                spec_id: file.spec_id,
                partition: file.partition.clone(),
                positions: of_file.iter().map(|position| u64::from(position.row)).collect(),
            });
        }
        Ok((deleted, replaced))
    }

    /// Takes rows without a key out of the index, as many of each as were retracted.
    fn take_retracted(
        &mut self,
        change: &NetChange,
        positions: &mut Vec<RowPosition>,
    ) -> Result<Vec<ReplacedRow>> {
        let slots: Vec<u32> = change.retractions.iter().map(|(slot, _)| *slot).collect();
        let hashes = Identified { keys: self.index.keys(&slots)?, hashes: Vec::new(), groups: None };
        let mut replaced = Vec::new();
        let mut missing = 0;
        for (at, (slot, count)) in change.retractions.iter().enumerate() {
            let first = positions.len();
            self.index.take_some(*slot, *count, positions);
            let hash = row_hash_of(&hashes, at);
            let row = |position: &RowPosition| ReplacedRow {
                hash,
                file: self.index.files.hash(position.file),
                row: position.row,
            };
            replaced.extend(positions[first..].iter().map(row));
            missing += *count as usize - (positions.len() - first);
        }
        if missing > 0 {
            let table = self.table.ident();
            tracing::warn!(%table, rows = missing, "rows that are taken back are not in the table: others have deleted them");
        }
        Ok(replaced)
    }

    /// Writes the new rows and puts them into the index.
    async fn write_images(
        &mut self,
        change: &NetChange,
        order: Option<&ImageOrder>,
        data: &mut DataFileWriter,
        prepared: &mut Prepared,
    ) -> Result<()> {
        for images in &change.images {
            let rows = change.rows_of(images).await?;
            let mut places: Vec<WrittenRow> = Vec::with_capacity(images.slots.len());
            let written = match order {
                Some(order) => {
                    // The columns of the order are not at hand as those of the key are.
                    let numbers = images.numbers(&as_they_came(images));
                    let all =
                        concat_batches(&self.rows, &rows.pieces(&numbers).collect::<Result<Vec<_>>>()?)?;
                    let sorted = order.sorted(all.columns())?;
                    places.extend(data.write_placed(&take_record_batch(&all, &sorted)?).await?);
                    sorted.values().to_vec()
                }
                None => {
                    let sorted = self.sorted_by_key(images)?;
                    for piece in rows.pieces(&images.numbers(&sorted)) {
                        places.extend(data.write_placed(&piece?).await?);
                    }
                    sorted
                }
            };
            // Every part is sorted for itself, so it has files of its own.
            let files = data.finish().await?;
            let numbers: Vec<u32> = files.iter().map(|file| self.index.files.add(file)).collect();
            prepared.data.extend(files);
            let mut positions = vec![RowPosition { file: 0, row: 0 }; places.len()];
            for (at, place) in written.iter().zip(places) {
                positions[*at as usize] =
                    RowPosition { file: numbers[place.file as usize], row: place.position };
            }
            for (slot, position) in images.slots.iter().zip(positions) {
                self.index.add(*slot, position);
            }
        }
        Ok(())
    }

    /// Returns the order of new rows by their keys, if they have some: positions in `images.slots`.
    fn sorted_by_key(&self, images: &Images) -> Result<Vec<u32>> {
        let sorted = match self.identity.is_key() {
            true => sorted_by_key(&self.index.keys(&images.slots)?)?,
            false => None,
        };
        Ok(sorted.map_or_else(|| as_they_came(images), |sorted| sorted.values().to_vec()))
    }
}

fn as_they_came(images: &Images) -> Vec<u32> {
    (0..images.slots.len() as u32).collect()
}

#[async_trait]
impl SinkWriter for UpsertWriter {
    async fn write(&mut self, batch: ChangelogBatch) -> Result<()> {
        let columns = batch.rows().columns().to_vec();
        let identified = self.identity.of_written(&columns, batch.row_count())?;
        self.index.intern(&identified, &mut self.slots)?;
        // A deleted row may hold its key alone, whatever the other columns take.
        let rows = RecordBatch::try_new(Arc::clone(&self.rows), columns)?;
        self.net.add(&self.slots, self.index.slot_count(), batch.with_rows(rows))?;
        self.net.make_room().await
    }

    async fn prepare_commit(&mut self, checkpoint: CheckpointId) -> Result<Vec<Committable>> {
        if self.net.is_empty() && !self.replaces_content {
            return Ok(Vec::new());
        }
        let table = reload_same(&self.table).await?;
        let mut prepared = Prepared::default();
        let files = match self.prepare(&table, checkpoint, &mut prepared).await {
            Ok(files) => files,
            Err(error) => {
                discard_files(&table, &prepared.data).await;
                discard_files(&table, &prepared.deletes).await;
                return Err(error);
            }
        };
        self.table = table;
        Ok(vec![files.to_committable()?])
    }

    fn take_changes(&mut self) -> Result<Vec<StateChanges>> {
        let positions = self.index.take_changes()?;
        let snapshots = self.synced.take_changes(&self.ownership, self.sync.synced())?;
        Ok(vec![positions, snapshots])
    }

    fn load(&mut self, table: usize, rows: &RecordBatch) -> Result<()> {
        match table {
            POSITIONS => self.index.load(rows)?,
            SNAPSHOTS => self.synced.load(rows)?,
            _ => return Err(Error::internal("a sink of upserts has two tables of state")),
        }
        if let Some(restored) = self.synced.restored(&self.ownership) {
            self.sync.restore(restored);
            self.has_prepared = self.synced.has_prepared();
            self.replaces_content &= !self.has_prepared;
        }
        Ok(())
    }

    fn state_bytes(&self) -> usize {
        self.index.bytes() + self.net.bytes()
    }
}

/// Describes what a writer remembers between checkpoints.
pub(in crate::connector::iceberg::write) fn state_tables(identity: &RowIdentity) -> Vec<StateTable> {
    vec![KeyPositions::state_table(identity), SyncedGroups::state_table(identity)]
}
