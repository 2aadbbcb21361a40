//! What tests of commits share: a catalog in a temporary folder that fails as it is told, files that exist in manifests only, and what
//! a table holds by its manifests.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use iceberg::io::FileIO;
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, FormatVersion, Literal, ManifestContentType,
    ManifestFile, ManifestStatus, NestedField, PartitionSpec, PrimitiveType, Schema, SnapshotRef, Struct,
    TableMetadata, TableMetadataBuilder, Transform, Type, UnboundPartitionSpec,
};
use iceberg::table::Table;
use iceberg::{
    Catalog, Error as IcebergError, ErrorKind as IcebergKind, Namespace, NamespaceIdent,
    Result as IcebergResult, Runtime, TableCommit, TableCreation, TableIdent, TableRequirement, TableUpdate,
};
use tempfile::TempDir;

use super::{FileRemoval, SnapshotChange, commit_snapshot};
use crate::connector::iceberg::catalog::{CommitCatalog, CommitError};
use crate::connector::iceberg::dropped_partition_fields::{build_metadata, metadata_builder};
use crate::connector::iceberg::manifest::TableFile;
use crate::connector::iceberg::storage::FileStore;
use crate::connector::iceberg::table::IcebergTable;
use crate::error::{Error, Result};

/// What befalls the next commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It lands, and the answer is lost.
    LosesAnswer,
    /// It never arrives, and nobody knows.
    LosesRequest,
    /// It lands just before the commit after it, if it still can.
    LandsLate,
    /// Another commits first.
    Conflicts,
    /// It is refused.
    Fails,
}

/// Writes metadata files into a folder, and keeps the current metadata in memory.
#[derive(Debug)]
pub(super) struct TestCatalog {
    pub(super) folder: TempDir,
    files: FileStore,
    file_io: FileIO,
    tables: Mutex<HashMap<TableIdent, (String, TableMetadata)>>,
    faults: Mutex<VecDeque<Fault>>,
    late: Mutex<Vec<(Vec<TableRequirement>, Vec<TableUpdate>)>>,
    /// How many loads fail from now on.
    pub(super) failing_loads: AtomicUsize,
    pub(super) commits: AtomicUsize,
}

impl TestCatalog {
    pub(super) fn new() -> Arc<TestCatalog> {
        TestCatalog::with_io(FileStore::local().file_io())
    }

    pub(super) fn with_io(file_io: FileIO) -> Arc<TestCatalog> {
        Arc::new(TestCatalog {
            folder: tempfile::tempdir().unwrap(),
            files: FileStore::local(),
            file_io,
            tables: Mutex::default(),
            faults: Mutex::default(),
            late: Mutex::default(),
            failing_loads: AtomicUsize::new(0),
            commits: AtomicUsize::new(0),
        })
    }

    pub(super) fn next_commits(&self, faults: &[Fault]) {
        self.faults.lock().unwrap().extend(faults);
    }

    /// Changes the JSON form of a table's metadata, as another engine may have written it.
    pub(super) fn rewrite(&self, table: &IcebergTable, change: impl FnOnce(&mut serde_json::Value)) {
        let mut tables = self.tables.lock().unwrap();
        let (location, metadata) = tables.get_mut(table.ident()).unwrap();
        let mut json = serde_json::to_value(&*metadata).unwrap();
        change(&mut json);
        *metadata = serde_json::from_value(json).unwrap();
        *location = self.write(metadata);
    }

    /// Drops a table.
    pub(super) fn drop_it(&self, table: &IcebergTable) {
        self.tables.lock().unwrap().remove(table.ident());
    }

    /// Makes a table `db.t` partitioned by `d` or not at all.
    pub(super) async fn table(
        self: &Arc<Self>,
        version: FormatVersion,
        is_partitioned: bool,
    ) -> IcebergTable {
        let quick = [("commit.retry.min-wait-ms", "1"), ("commit.retry.max-wait-ms", "20")];
        self.table_with(version, is_partitioned, &quick).await
    }

    pub(super) async fn table_with(
        self: &Arc<Self>,
        version: FormatVersion,
        is_partitioned: bool,
        properties: &[(&str, &str)],
    ) -> IcebergTable {
        let location = self.folder.path().join("t").to_str().unwrap().to_owned();
        let spec = if is_partitioned { by_d() } else { PartitionSpec::unpartition_spec().into_unbound() };
        let creation = TableCreation::builder()
            .name("t".to_owned())
            .location(location)
            .schema(schema())
            .partition_spec(spec)
            .properties(properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())))
            .format_version(version)
            .build();
        let namespace = NamespaceIdent::new("db".to_owned());
        let table = self.create_table(&namespace, creation).await.unwrap();
        IcebergTable::new(Arc::clone(self) as Arc<dyn CommitCatalog>, table)
    }

    fn write(&self, metadata: &TableMetadata) -> String {
        let name = format!("{}/metadata/{}.metadata.json", metadata.location(), uuid::Uuid::new_v4());
        let json = serde_json::to_vec(metadata).unwrap();
        std::fs::create_dir_all(format!("{}/metadata", metadata.location())).unwrap();
        std::fs::write(&name, json).unwrap();
        name
    }

    fn as_table(
        &self,
        ident: &TableIdent,
        metadata: TableMetadata,
        location: String,
    ) -> IcebergResult<Table> {
        Table::builder()
            .identifier(ident.clone())
            .metadata(metadata)
            .metadata_location(location)
            .file_io(self.file_io.clone())
            .runtime(Runtime::try_current()?)
            .build()
    }

    fn current(&self, ident: &TableIdent) -> IcebergResult<(String, TableMetadata)> {
        let current = self.tables.lock().unwrap().get(ident).cloned();
        current.ok_or_else(|| IcebergError::new(IcebergKind::TableNotFound, "no such table"))
    }

    async fn apply(
        &self,
        ident: &TableIdent,
        requirements: &[TableRequirement],
        updates: Vec<TableUpdate>,
    ) -> Result<Table, CommitError> {
        let failed = |error: IcebergError| CommitError::Failed(Error::data(error.to_string()));
        let (base, metadata) = self.current(ident).map_err(failed)?;
        for requirement in requirements {
            let checked = requirement.check(Some(&metadata));
            checked.map_err(|error| CommitError::Conflict(Error::unavailable(error.to_string())))?;
        }
        let mut builder = metadata_builder(&metadata, Some(base.clone())).map_err(failed)?;
        for update in updates {
            builder = update.apply(builder).map_err(failed)?;
        }
        let metadata = build_metadata(builder).map_err(failed)?.metadata;
        let next = self.write(&metadata);
        // Others have their turn between reading and replacing.
        tokio::task::yield_now().await;
        let mut tables = self.tables.lock().unwrap();
        if tables.get(ident).map(|(location, _)| location) != Some(&base) {
            return Err(CommitError::Conflict(Error::unavailable("another was first")));
        }
        tables.insert(ident.clone(), (next.clone(), metadata.clone()));
        drop(tables);
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.as_table(ident, metadata, next).map_err(failed)
    }
}

#[async_trait]
impl CommitCatalog for TestCatalog {
    fn files(&self) -> &FileStore {
        &self.files
    }

    async fn commit_table(
        &self,
        ident: &TableIdent,
        requirements: Vec<TableRequirement>,
        updates: Vec<TableUpdate>,
    ) -> Result<Table, CommitError> {
        let late = std::mem::take(&mut *self.late.lock().unwrap());
        for (requirements, updates) in late {
            drop(self.apply(ident, &requirements, updates).await);
        }
        let fault = self.faults.lock().unwrap().pop_front();
        let lost = || CommitError::Unknown(Error::unavailable("the answer was lost"));
        match fault {
            None => self.apply(ident, &requirements, updates).await,
            Some(Fault::LosesAnswer) => {
                self.apply(ident, &requirements, updates).await?;
                Err(lost())
            }
            Some(Fault::LosesRequest) => Err(lost()),
            Some(Fault::LandsLate) => {
                self.late.lock().unwrap().push((requirements, updates));
                Err(lost())
            }
            Some(Fault::Conflicts) => Err(CommitError::Conflict(Error::unavailable("another was first"))),
            Some(Fault::Fails) => Err(CommitError::Failed(Error::rejected("no permission"))),
        }
    }
}

#[async_trait]
impl Catalog for TestCatalog {
    async fn list_namespaces(&self, _: Option<&NamespaceIdent>) -> IcebergResult<Vec<NamespaceIdent>> {
        unreachable!()
    }
    async fn create_namespace(
        &self,
        _: &NamespaceIdent,
        _: HashMap<String, String>,
    ) -> IcebergResult<Namespace> {
        unreachable!()
    }
    async fn get_namespace(&self, _: &NamespaceIdent) -> IcebergResult<Namespace> {
        unreachable!()
    }
    async fn namespace_exists(&self, _: &NamespaceIdent) -> IcebergResult<bool> {
        unreachable!()
    }
    async fn update_namespace(&self, _: &NamespaceIdent, _: HashMap<String, String>) -> IcebergResult<()> {
        unreachable!()
    }
    async fn drop_namespace(&self, _: &NamespaceIdent) -> IcebergResult<()> {
        unreachable!()
    }
    async fn list_tables(&self, _: &NamespaceIdent) -> IcebergResult<Vec<TableIdent>> {
        Ok(self.tables.lock().unwrap().keys().cloned().collect())
    }
    async fn create_table(
        &self,
        namespace: &NamespaceIdent,
        creation: TableCreation,
    ) -> IcebergResult<Table> {
        let ident = TableIdent::new(namespace.clone(), creation.name.clone());
        let metadata = TableMetadataBuilder::from_table_creation(creation)?.build()?.metadata;
        let location = self.write(&metadata);
        self.tables.lock().unwrap().insert(ident.clone(), (location.clone(), metadata.clone()));
        self.as_table(&ident, metadata, location)
    }
    async fn load_table(&self, ident: &TableIdent) -> IcebergResult<Table> {
        let fails = |left: usize| left.checked_sub(1);
        if self.failing_loads.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fails).is_ok() {
            return Err(IcebergError::new(IcebergKind::Unexpected, "catalog cannot be reached"));
        }
        let (location, metadata) = self.current(ident)?;
        self.as_table(ident, metadata, location)
    }
    async fn drop_table(&self, _: &TableIdent) -> IcebergResult<()> {
        unreachable!()
    }
    async fn purge_table(&self, _: &TableIdent) -> IcebergResult<()> {
        unreachable!()
    }
    async fn table_exists(&self, _: &TableIdent) -> IcebergResult<bool> {
        unreachable!()
    }
    async fn rename_table(&self, from: &TableIdent, to: &TableIdent) -> IcebergResult<()> {
        let mut tables = self.tables.lock().unwrap();
        let renamed = tables.remove(from).unwrap();
        tables.insert(to.clone(), renamed);
        Ok(())
    }
    async fn register_table(&self, _: &TableIdent, _: String) -> IcebergResult<Table> {
        unreachable!()
    }
    async fn update_table(&self, _: TableCommit) -> IcebergResult<Table> {
        unreachable!()
    }
}

pub(super) fn schema() -> Schema {
    let string = || Type::Primitive(PrimitiveType::String);
    let fields = vec![
        NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long)).into(),
        NestedField::optional(2, "d", string()).into(),
        NestedField::optional(3, "v", string()).into(),
    ];
    Schema::builder().with_fields(fields).build().unwrap()
}

fn by_d() -> UnboundPartitionSpec {
    UnboundPartitionSpec::builder().add_partition_field(2, "d", Transform::Identity).unwrap().build()
}

/// The partition of a value of `d`.
pub(super) fn partition(d: &str) -> Struct {
    Struct::from_iter([Some(Literal::string(d))])
}

fn file(content: DataContentType, path: &str, partition: Struct, records: u64) -> DataFileBuilder {
    let mut builder = DataFileBuilder::default();
    builder
        .content(content)
        .file_path(path.to_owned())
        .file_format(DataFileFormat::Parquet)
        .partition(partition)
        .record_count(records)
        .file_size_in_bytes(100 + records);
    builder
}

/// A data file of an unpartitioned spec.
pub(super) fn data(path: &str, records: u64) -> TableFile {
    data_in(0, path, Struct::empty(), records)
}

pub(super) fn data_in(spec_id: i32, path: &str, partition: Struct, records: u64) -> TableFile {
    TableFile { spec_id, file: file(DataContentType::Data, path, partition, records).build().unwrap() }
}

/// Commits a change that does not look at the table.
pub(super) async fn commit(table: &IcebergTable, change: SnapshotChange) -> Result<IcebergTable> {
    commit_snapshot(table, &mut |_: &IcebergTable| Ok(Some(change.clone()))).await
}

pub(super) async fn committed(table: &IcebergTable, change: SnapshotChange) -> IcebergTable {
    commit(table, change).await.unwrap()
}

/// A change that adds data files of an unpartitioned table, with so many rows.
pub(super) fn append(files: &[(&str, u64)]) -> SnapshotChange {
    let data = files.iter().map(|(path, records)| data(path, *records)).collect();
    SnapshotChange { data, ..SnapshotChange::default() }
}

pub(super) fn removing(paths: &[&str]) -> FileRemoval {
    FileRemoval::Paths(paths.iter().map(|path| (*path).to_owned()).collect())
}

/// A file of position deletes, of rows of one data file if it is named.
pub(super) fn deletes_in(
    spec_id: i32,
    path: &str,
    partition: Struct,
    records: u64,
    referenced: Option<&str>,
) -> TableFile {
    let mut builder = file(DataContentType::PositionDeletes, path, partition, records);
    builder.referenced_data_file(referenced.map(str::to_owned));
    TableFile { spec_id, file: builder.build().unwrap() }
}

/// A live file of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Live {
    pub(super) spec_id: i32,
    pub(super) sequence_number: i64,
    pub(super) first_row_id: Option<u64>,
    pub(super) file: DataFile,
}

pub(super) async fn manifests(table: &IcebergTable, snapshot: &SnapshotRef) -> Vec<ManifestFile> {
    table.table().manifest_list_reader(snapshot).load().await.unwrap().entries().to_vec()
}

/// Returns the live files of a snapshot by path, and checks that its manifests count right.
///
/// The metadata is read from its file: what the crate writes it must read as the same.
pub(super) async fn live_of(table: &IcebergTable, snapshot: &SnapshotRef) -> BTreeMap<String, Live> {
    let json = std::fs::read(local(table.table().metadata_location().unwrap())).unwrap();
    assert_eq!(&serde_json::from_slice::<TableMetadata>(&json).unwrap(), table.metadata());
    let mut found = BTreeMap::new();
    for manifest in manifests(table, snapshot).await {
        let loaded = manifest.load_manifest(table.file_io()).await.unwrap();
        let mut counts = [(0, 0); 3];
        let mut next_row_id = manifest.first_row_id;
        let mut sequence_number_min = i64::MAX;
        for entry in loaded.entries() {
            let (files, rows) = &mut counts[entry.status() as usize];
            (*files, *rows) = (*files + 1, *rows + entry.record_count());
            if entry.status() == ManifestStatus::Deleted {
                assert_eq!(entry.snapshot_id(), Some(manifest.added_snapshot_id), "removals are told once");
                continue;
            }
            let sequence_number = entry.sequence_number().unwrap();
            sequence_number_min = sequence_number_min.min(sequence_number);
            let file = entry.data_file().clone();
            let own = file.first_row_id().map(|id| id as u64);
            let first_row_id = own.or(next_row_id);
            if own.is_none() {
                next_row_id = next_row_id.map(|id| id + file.record_count());
            }
            let spec_id = manifest.partition_spec_id;
            let live = Live { spec_id, sequence_number, first_row_id, file };
            let again = found.insert(live.file.file_path().to_owned(), live);
            assert_eq!(again, None, "each file is live once");
        }
        let [existing, added, deleted] = counts;
        let counted = [
            (manifest.existing_files_count.unwrap(), manifest.existing_rows_count.unwrap()),
            (manifest.added_files_count.unwrap(), manifest.added_rows_count.unwrap()),
            (manifest.deleted_files_count.unwrap(), manifest.deleted_rows_count.unwrap()),
        ];
        assert_eq!([existing, added, deleted], counted);
        let is_alive = sequence_number_min != i64::MAX;
        assert!(!is_alive || manifest.min_sequence_number == sequence_number_min);
        let is_new = manifest.added_snapshot_id == snapshot.snapshot_id();
        assert!(is_alive || is_new, "manifests without live files are left out");
        assert_eq!(
            manifest.content == ManifestContentType::Data,
            loaded.entries().iter().all(|entry| { entry.content_type() == DataContentType::Data })
        );
    }
    check_totals(snapshot, &found);
    found
}

/// The live files of `main`.
pub(super) async fn live(table: &IcebergTable) -> BTreeMap<String, Live> {
    match table.metadata().current_snapshot() {
        Some(snapshot) => live_of(table, snapshot).await,
        None => BTreeMap::new(),
    }
}

/// The paths of the live files of `main`.
pub(super) async fn paths(table: &IcebergTable) -> Vec<String> {
    live(table).await.into_keys().collect()
}

fn check_totals(snapshot: &SnapshotRef, live: &BTreeMap<String, Live>) {
    let is_data = |live: &&Live| live.file.content_type() == DataContentType::Data;
    let files = |data: bool| live.values().filter(move |live| is_data(live) == data);
    let records = |data: bool| files(data).map(|live| live.file.record_count()).sum::<u64>();
    let bytes: u64 = live.values().map(|live| live.file.file_size_in_bytes()).sum();
    for (key, expected) in [
        ("total-data-files", files(true).count() as u64),
        ("total-delete-files", files(false).count() as u64),
        ("total-records", records(true)),
        ("total-position-deletes", records(false)),
        ("total-equality-deletes", 0),
        ("total-files-size", bytes),
    ] {
        assert_eq!(summary(snapshot, key), Some(expected.to_string()), "{key}");
    }
}

pub(super) fn summary(snapshot: &SnapshotRef, key: &str) -> Option<String> {
    snapshot.summary().additional_properties.get(key).cloned()
}

fn local(location: &str) -> &str {
    location.strip_prefix("file:").unwrap_or(location)
}

/// The files in the table's metadata folder, by ending of the name.
pub(super) fn metadata_files(table: &IcebergTable, ending: &str) -> Vec<String> {
    let folder = format!("{}/metadata", local(table.metadata().location()));
    let names =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(ending)).collect()
}
