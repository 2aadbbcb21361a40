//! What tests of upserts share: a table `db.t (id INT, v STRING, p INT)` in a temporary folder, a sink that is driven as a job drives
//! it, with checkpoints that may fail and restarts, and another engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, RecordBatch, StringArray, UInt32Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type};
use futures::TryStreamExt;
use iceberg::spec::{
    FormatVersion, NestedField, NullOrder, PrimitiveType, Schema, SortDirection, SortField, SortOrder,
    Transform, Type, UnboundPartitionSpec,
};
use iceberg::{TableCreation, TableIdent};
use tempfile::TempDir;

use crate::changelog::{ChangelogBatch, ChangelogMode, RowKind};
use crate::connector::iceberg::catalog::{CommitCatalog, HadoopCatalog};
use crate::connector::iceberg::commit::{FileRemoval, SnapshotChange, commit_snapshot};
use crate::connector::iceberg::manifest::TableFile;
use crate::connector::iceberg::scan::{live_files, read_keys};
use crate::connector::iceberg::storage::FileStore;
use crate::connector::iceberg::table::IcebergTable;
use crate::connector::iceberg::write::data_file_writer::{DataFileWriter, RowTraits};
use crate::connector::iceberg::write::file_names::FileNames;
use crate::connector::iceberg::write::file_schema::WrittenColumns;
use crate::connector::iceberg::write::iceberg_sink::IcebergSink;
use crate::connector::iceberg::write::position_delete_writer::{DeletedRows, PositionDeleteWriter};
use crate::connector::iceberg::write::write_settings::{Properties, WriteSettings};
use crate::connector::testing::{Printed, Table as TestTable, completed_checkpoint};
use crate::connector::{Committable, Committer, DynamicTableSink, OperatorStatus, SinkWriter, WriterContext};
use crate::error::Result;
use crate::schema::{Column, PrimaryKey, TypeRoot};
use crate::state::{StateChanges, StateTable, hash_rows, key_group, owner};

/// A row of the table: id, v, p.
pub(super) type Row = (i32, Option<String>, i32);

pub(super) fn row(id: i32, v: &str, p: i32) -> Row {
    (id, Some(v.to_owned()), p)
}

/// A table in a warehouse of its own.
pub(super) struct Warehouse {
    folder: TempDir,
    pub(super) catalog: Arc<dyn CommitCatalog>,
}

/// How a table is made.
#[derive(Debug, Clone, Default)]
pub(super) struct Layout {
    pub(super) is_partitioned: bool,
    pub(super) is_sorted: bool,
    pub(super) version: Option<FormatVersion>,
}

pub(super) fn ident() -> TableIdent {
    TableIdent::from_strs(["db", "t"]).unwrap()
}

impl Warehouse {
    pub(super) async fn new(layout: &Layout) -> Warehouse {
        let folder = TempDir::new().unwrap();
        let location = format!("file:{}", folder.path().display());
        let catalog = Arc::new(HadoopCatalog::new(&location, FileStore::local()).unwrap());
        let field = |id, name, of| Arc::new(NestedField::optional(id, name, Type::Primitive(of)));
        let fields = [
            field(1, "id", PrimitiveType::Int),
            field(2, "v", PrimitiveType::String),
            field(3, "p", PrimitiveType::Int),
        ];
        let mut spec = UnboundPartitionSpec::builder().with_spec_id(0);
        if layout.is_partitioned {
            spec = spec.add_partition_field(3, "p", Transform::Identity).unwrap();
        }
        let mut order = SortOrder::builder();
        if layout.is_sorted {
            order.with_order_id(1).with_sort_field(
                SortField::builder()
                    .source_id(2)
                    .transform(Transform::Identity)
                    .direction(SortDirection::Descending)
                    .null_order(NullOrder::First)
                    .build(),
            );
        }
        let properties = [("commit.retry.min-wait-ms", "1"), ("write.target-file-size-bytes", "100000")];
        let creation = TableCreation::builder()
            .name("t".to_owned())
            .schema(Schema::builder().with_fields(fields).build().unwrap())
            .partition_spec(spec.build())
            .sort_order(order.build_unbound().unwrap())
            .properties(properties.map(|(key, value)| (key.to_owned(), value.to_owned())))
            .format_version(layout.version.unwrap_or(FormatVersion::V2))
            .build();
        let catalog: Arc<dyn CommitCatalog> = catalog;
        catalog.create_table(ident().namespace(), creation).await.unwrap();
        Warehouse { folder, catalog }
    }

    pub(super) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub(super) async fn table(&self) -> IcebergTable {
        let table = self.catalog.load_table(&ident()).await.unwrap();
        IcebergTable::new(Arc::clone(&self.catalog), table)
    }

    /// Returns the rows that the current snapshot shows, sorted.
    pub(super) async fn rows(&self) -> Vec<Row> {
        rows_at(&self.table().await, None).await
    }
}

/// Returns the rows that a snapshot shows, sorted.
pub(super) async fn rows_at(table: &IcebergTable, snapshot: Option<i64>) -> Vec<Row> {
    let mut rows: Vec<Row> = places_at(table, snapshot).await.into_iter().map(|(row, ..)| row).collect();
    rows.sort();
    rows
}

/// Returns rows with their files and positions.
async fn places_at(table: &IcebergTable, snapshot: Option<i64>) -> Vec<(Row, Arc<TableFile>, u64)> {
    let files = live_files(table, snapshot).await.unwrap();
    let data: Vec<Arc<TableFile>> = files.iter().map(|file| Arc::clone(&file.data)).collect();
    let read = read_keys(table, files.into(), &[1, 2, 3], None);
    let read: Vec<_> = read.try_collect().await.unwrap();
    let mut places = Vec::new();
    for rows in read {
        for (row, position) in rows_of(&rows.keys).into_iter().zip(rows.positions.values()) {
            places.push((row, Arc::clone(&data[rows.file]), *position as u64));
        }
    }
    places
}

fn rows_of(batch: &RecordBatch) -> Vec<Row> {
    let ids = batch.column(0).as_primitive::<Int32Type>();
    let partitions = cast(batch.column(2), &DataType::Int32).unwrap();
    let (values, partitions) = (batch.column(1).as_string::<i32>(), partitions.as_primitive::<Int32Type>());
    let value = |at| (!values.is_null(at)).then(|| values.value(at).to_owned());
    (0..batch.num_rows()).map(|at| (ids.value(at), value(at), partitions.value(at))).collect()
}

pub(super) fn batch_of<'a>(rows: impl Iterator<Item = &'a Row> + Clone) -> RecordBatch {
    let columns: [(&str, ArrayRef); 3] = [
        ("id", Arc::new(Int32Array::from_iter_values(rows.clone().map(|row| row.0)))),
        ("v", Arc::new(rows.clone().map(|row| row.1.clone()).collect::<StringArray>())),
        ("p", Arc::new(Int32Array::from_iter_values(rows.map(|row| row.2)))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
}

/// Makes the sink of a statement on a table as it is now.
pub(super) fn sink(table: &IcebergTable, is_keyed: bool, options: &[(&str, &str)]) -> Result<IcebergSink> {
    sink_by(table, if is_keyed { &["id"] } else { &[] }, options)
}

/// Makes the sink of a statement on a table as it is now, with a key of some columns.
pub(super) fn sink_by(table: &IcebergTable, key: &[&str], options: &[(&str, &str)]) -> Result<IcebergSink> {
    let column = |name: &str, of: TypeRoot| {
        Column::physical(name, if key.contains(&name) { of.not_null() } else { of.nullable() })
    };
    let columns =
        vec![column("id", TypeRoot::Int), column("v", TypeRoot::STRING), column("p", TypeRoot::Int)];
    let mut definition = TestTable::new("iceberg", columns, options);
    if !key.is_empty() {
        let columns = key.iter().map(|name| (*name).to_owned()).collect();
        definition.schema.primary_key = Some(PrimaryKey { name: "PK".to_owned(), columns });
    }
    IcebergSink::new(&Arc::new(table.clone()), &definition.context())
}

/// What a checkpoint holds of a sink.
#[derive(Clone, Default)]
pub(super) struct Saved {
    /// Per table, by key: the group and the row.
    tables: Vec<BTreeMap<String, (u8, RecordBatch)>>,
    /// What each table stands for.
    derived_from: Vec<Option<String>>,
    pub(super) committables: Vec<Committable>,
    pub(super) number: u64,
}

impl Saved {
    fn apply(&mut self, changes: Vec<StateChanges>, key_counts: &[usize]) {
        self.tables.resize(changes.len(), BTreeMap::new());
        for ((table, changes), key_count) in self.tables.iter_mut().zip(changes).zip(key_counts) {
            let key = |rows: &RecordBatch, at: usize| {
                let columns = (0..*key_count).collect::<Vec<_>>();
                format!("{:?}", rows.project(&columns).unwrap().slice(at, 1).columns())
            };
            for at in 0..changes.deletes.num_rows() {
                table.remove(&key(&changes.deletes, at));
            }
            for (at, group) in changes.upsert_groups.iter().enumerate() {
                table.insert(key(&changes.upserts, at), (*group, changes.upserts.slice(at, 1)));
            }
        }
    }

    /// Forgets the tables that stand for something else than those of a sink, as a job's checkpoints do.
    fn fit(&mut self, tables: &[StateTable]) {
        for (at, table) in tables.iter().enumerate() {
            if self.derived_from.get(at).is_some_and(|stored| *stored != table.derived_from) {
                self.tables[at].clear();
            }
        }
        self.derived_from = tables.iter().map(|table| table.derived_from.clone()).collect();
    }

    /// Returns how many rows a table has.
    pub(super) fn len(&self, table: usize) -> usize {
        self.tables.get(table).map_or(0, BTreeMap::len)
    }
}

/// A run of a job that writes the table.
pub(super) struct Job {
    sink: IcebergSink,
    mode: ChangelogMode,
    key: Vec<usize>,
    pub(super) writers: Vec<Box<dyn SinkWriter>>,
    committer: Box<dyn Committer>,
    /// The last checkpoint that was written.
    pub(super) saved: Saved,
    /// What was prepared for checkpoints that could not be written.
    uncommitted: Vec<Committable>,
    /// State that was handed over for them.
    unsaved: Vec<Vec<StateChanges>>,
    next_number: u64,
    pub(super) sink_id: String,
}

impl Job {
    /// Starts a run with a number of writers, from a checkpoint if one is given, which is committed first.
    pub(super) async fn start(
        warehouse: &Warehouse,
        is_keyed: bool,
        writer_count: usize,
        sink_id: &str,
        saved: Option<Saved>,
    ) -> Result<Job> {
        let sink = sink(&warehouse.table().await, is_keyed, &[])?;
        let mode = sink.changelog_mode(ChangelogMode::ALL);
        Job::start_sink(sink, mode, if is_keyed { vec![0] } else { Vec::new() }, writer_count, sink_id, saved)
            .await
    }

    /// Starts a run that reads its sources anew, and replaces what the table holds.
    pub(super) async fn start_anew(warehouse: &Warehouse, is_keyed: bool, sink_id: &str) -> Result<Job> {
        let mut job = Job::start(warehouse, is_keyed, 2, sink_id, None).await?;
        for (number, writer) in job.writers.iter_mut().enumerate() {
            let context = context(sink_id, number, 2, job.mode);
            *writer = job.sink.open_writer(WriterContext { replaces_content: true, ..context }).await?;
        }
        Ok(job)
    }

    pub(super) async fn start_sink(
        sink: IcebergSink,
        mode: ChangelogMode,
        key: Vec<usize>,
        writer_count: usize,
        sink_id: &str,
        mut saved: Option<Saved>,
    ) -> Result<Job> {
        let context = |writer| context(sink_id, writer, writer_count, mode);
        saved.iter_mut().for_each(|saved| saved.fit(&sink.state_tables(mode)));
        let mut committer = sink.open_committer(context(0)).await?;
        if let Some(saved) = &saved {
            let checkpoint = completed_checkpoint(saved.number);
            committer.commit_after_recovery(&checkpoint, &saved.committables).await?;
            committer.discard_unfinished(sink_id, &saved.committables).await?;
        }
        let mut writers = Vec::new();
        for number in 0..writer_count {
            let mut writer = sink.open_writer(context(number)).await?;
            for (table, rows) in saved.iter().flat_map(|saved| saved.tables.iter().enumerate()) {
                let owned = rows.values().filter(|(group, _)| owner(*group, writer_count) == number);
                for (_, rows) in owned {
                    writer.load(table, rows)?;
                }
            }
            writers.push(writer);
        }
        let next_number = saved.as_ref().map_or(1, |saved| saved.number + 1);
        Ok(Job {
            sink,
            mode,
            key,
            writers,
            committer,
            saved: saved.unwrap_or_default(),
            uncommitted: Vec::new(),
            unsaved: Vec::new(),
            next_number,
            sink_id: sink_id.to_owned(),
        })
    }

    /// Hands rows to the writers, as the exchange does.
    pub(super) async fn write(&mut self, rows: &[(RowKind, Row)]) -> Result<()> {
        let batch = batch_of(rows.iter().map(|(_, row)| row));
        let batch = ChangelogBatch::with_kinds(batch, rows.iter().map(|(kind, _)| *kind));
        let columns = self.sink.distribution(&self.key, self.mode);
        let columns: Vec<ArrayRef> =
            columns.iter().map(|column| Arc::clone(batch.rows().column(*column))).collect();
        let mut hashes = Vec::new();
        hash_rows(&columns, rows.len(), &mut hashes)?;
        let count = self.writers.len();
        for (number, writer) in self.writers.iter_mut().enumerate() {
            let own =
                (0..rows.len() as u32).filter(|at| owner(key_group(hashes[*at as usize]), count) == number);
            let own: UInt32Array = own.collect();
            if !own.is_empty() {
                writer.write(batch.take(&own)?).await?;
            }
        }
        Ok(())
    }

    /// Prepares a checkpoint that is then not written; what it holds comes with the next.
    pub(super) async fn prepare(&mut self) -> Result<()> {
        let number = self.next_number;
        self.next_number += 1;
        for writer in &mut self.writers {
            self.uncommitted.extend(writer.prepare_commit(number).await?);
            self.unsaved.push(writer.take_changes()?);
        }
        Ok(())
    }

    /// Writes what was prepared as a checkpoint, and does not commit it.
    pub(super) fn save(&mut self) {
        let tables = self.sink.state_tables(self.mode);
        let key_counts: Vec<usize> = tables.iter().map(|table| table.key_count).collect();
        for changes in self.unsaved.drain(..) {
            self.saved.apply(changes, &key_counts);
        }
        self.saved.fit(&tables);
        self.saved.committables.clone_from(&self.uncommitted);
        self.saved.number = self.next_number - 1;
    }

    /// Commits the checkpoint that was written.
    pub(super) async fn commit(&mut self) -> Result<()> {
        let checkpoint = completed_checkpoint(self.saved.number);
        self.committer.commit(&checkpoint, &std::mem::take(&mut self.uncommitted)).await
    }

    /// Makes a whole checkpoint.
    pub(super) async fn checkpoint(&mut self) -> Result<()> {
        self.prepare().await?;
        self.save();
        self.commit().await
    }

    /// Returns what the writers hold.
    pub(super) fn state_bytes(&self) -> usize {
        self.writers.iter().map(|writer| writer.state_bytes()).sum()
    }
}

fn context(sink_id: &str, writer: usize, writer_count: usize, mode: ChangelogMode) -> WriterContext {
    WriterContext {
        sink_id: Arc::from(sink_id),
        writer,
        writer_count,
        output: Arc::new(Printed::default()),
        overwrite: false,
        replaces_content: false,
        mode,
        status: OperatorStatus::default(),
    }
}

/// Another engine.
pub(super) struct OtherEngine<'a>(pub(super) &'a Warehouse);

impl OtherEngine<'_> {
    async fn write(&self, rows: &[Row]) -> Vec<TableFile> {
        let table = self.0.table().await;
        let metadata = table.metadata();
        let batch = batch_of(rows.iter());
        let columns = WrittenColumns::resolve(batch.schema(), metadata.current_schema(), "t").unwrap();
        let settings = WriteSettings::new(&Properties::new(&BTreeMap::new(), metadata), metadata).unwrap();
        let names = Arc::new(FileNames::new("other", 0));
        let traits = RowTraits::default();
        let mut writer = DataFileWriter::new(&table, &columns, Arc::new(settings), names, traits).unwrap();
        writer.write(&batch).await.unwrap();
        writer.finish().await.unwrap()
    }

    async fn commit(&self, change: SnapshotChange) {
        let table = self.0.table().await;
        commit_snapshot(&table, &mut |_: &IcebergTable| Ok(Some(change.clone()))).await.unwrap();
    }

    /// Adds rows.
    pub(super) async fn append(&self, rows: &[Row]) {
        let data = self.write(rows).await;
        self.commit(SnapshotChange { data, ..SnapshotChange::default() }).await;
    }

    /// Writes all files anew, as one for each partition; with the sequence number of the snapshot that was read, or its own.
    pub(super) async fn rewrite(&self, keeps_sequence_number: bool) {
        let table = self.0.table().await;
        let Some(snapshot) = table.metadata().current_snapshot() else { return };
        let paths: BTreeSet<String> = live_files(&table, None)
            .await
            .unwrap()
            .iter()
            .map(|file| file.data.file.file_path().to_owned())
            .collect();
        if paths.is_empty() {
            return;
        }
        let mut rows = rows_at(&table, None).await;
        rows.reverse();
        let data = if rows.is_empty() { Vec::new() } else { self.write(&rows).await };
        let rewritten_at = keeps_sequence_number.then(|| snapshot.sequence_number());
        let removal = FileRemoval::Paths(paths);
        self.commit(SnapshotChange { data, removal, rewritten_at, ..SnapshotChange::default() }).await;
    }

    /// Deletes rows by their positions.
    pub(super) async fn delete(&self, is_chosen: impl Fn(&Row) -> bool) {
        let mut places = places_at(&self.0.table().await, None).await;
        places.retain(|(row, ..)| is_chosen(row));
        self.delete_places(places).await;
    }

    /// Deletes one of several equal rows, the first or the last.
    pub(super) async fn delete_one(&self, row: &Row, is_last: bool) {
        let mut places = places_at(&self.0.table().await, None).await;
        places.retain(|(other, ..)| other == row);
        let chosen = if is_last { places.pop() } else { places.into_iter().next() };
        self.delete_places(chosen.into_iter().collect()).await;
    }

    async fn delete_places(&self, places: Vec<(Row, Arc<TableFile>, u64)>) {
        let table = self.0.table().await;
        let mut by_file: BTreeMap<String, (Arc<TableFile>, Vec<u64>)> = BTreeMap::new();
        for (_, file, position) in places {
            let path = file.file.file_path().to_owned();
            by_file.entry(path).or_insert_with(|| (file, Vec::new())).1.push(position);
        }
        let deleted = by_file.into_iter().map(|(path, (file, positions))| DeletedRows {
            path,
            spec_id: file.spec_id,
            partition: file.file.partition().clone(),
            positions,
        });
        let metadata = table.metadata();
        let settings = WriteSettings::new(&Properties::new(&BTreeMap::new(), metadata), metadata).unwrap();
        let names = Arc::new(FileNames::new("other", 0));
        let writer = PositionDeleteWriter::new(&table, Arc::new(settings), names).unwrap();
        let mut deletes = Vec::new();
        writer.write(deleted.collect(), &mut deletes).await.unwrap();
        if !deletes.is_empty() {
            self.commit(SnapshotChange { deletes, ..SnapshotChange::default() }).await;
        }
    }

    /// Sets the table back to an earlier snapshot.
    pub(super) async fn roll_back(&self, snapshot_id: i64) {
        use iceberg::TableUpdate;
        use iceberg::spec::{SnapshotReference, SnapshotRetention};
        let reference = SnapshotReference::new(snapshot_id, SnapshotRetention::branch(None, None, None));
        let update = TableUpdate::SetSnapshotRef { ref_name: "main".to_owned(), reference };
        self.0.catalog.commit_table(&ident(), Vec::new(), vec![update]).await.unwrap();
    }
}
