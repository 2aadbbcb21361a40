//! Metadata tables of a table that was partitioned anew, deleted from and tagged.

use std::collections::HashMap;

use chrono_tz::Tz;
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, Datum, Literal, NestedField, PrimitiveType,
    Schema, SnapshotReference, SnapshotRetention, Struct, StructType, Transform, Type, UnboundPartitionSpec,
};
use iceberg::{NamespaceIdent, TableCreation, TableUpdate};
use tempfile::TempDir;

use super::*;
use crate::connector::iceberg::catalog::{CommitCatalog, HadoopCatalog};
use crate::connector::iceberg::commit::{MetadataChange, SnapshotChange, commit_snapshot, commit_updates};
use crate::connector::iceberg::manifest::TableFile;
use crate::connector::iceberg::partitions::list_partitions;
use crate::connector::iceberg::storage::FileStore;
use crate::connector::testing::{Table, read_all};
use crate::connector::{Frame, Projection, SourceEvent};
use crate::error::FlinkClass;
use crate::schema::{TypeRoot, format_cell};

/// The day 2026-01-03 and its last microsecond.
const DAY: i32 = 20_456;

struct TestTable {
    folder: TempDir,
    table: IcebergTable,
}

impl TestTable {
    /// Makes a table `db.t`.
    async fn new(spec: UnboundPartitionSpec) -> TestTable {
        let folder = tempfile::tempdir().unwrap();
        let warehouse = folder.path().to_str().unwrap();
        let catalog: Arc<dyn CommitCatalog> =
            Arc::new(HadoopCatalog::new(warehouse, FileStore::local()).unwrap());
        let namespace = NamespaceIdent::new("db".to_owned());
        catalog.create_namespace(&namespace, HashMap::new()).await.unwrap();
        let creation =
            TableCreation::builder().name("t".to_owned()).schema(schema()).partition_spec(spec).build();
        let created = catalog.create_table(&namespace, creation).await.unwrap();
        TestTable { folder, table: IcebergTable::new(catalog, created) }
    }

    async fn partitioned() -> TestTable {
        let spec = UnboundPartitionSpec::builder();
        let spec = spec.add_partition_field(2, "d", Transform::Identity).unwrap();
        TestTable::new(spec.add_partition_field(3, "ts_day", Transform::Day).unwrap().build()).await
    }

    async fn commit(&mut self, data: Vec<DataFile>, deletes: Vec<DataFile>) -> i64 {
        let files =
            |files: Vec<DataFile>| files.into_iter().map(|file| TableFile { spec_id: 0, file }).collect();
        let change =
            SnapshotChange { data: files(data), deletes: files(deletes), ..SnapshotChange::default() };
        let mut plan = |_: &IcebergTable| Ok(Some(change.clone()));
        self.table = commit_snapshot(&self.table, &mut plan).await.unwrap();
        self.table.metadata().current_snapshot_id().unwrap()
    }

    /// Commits three rows in two partitions, then a row and a delete.
    async fn filled() -> (TestTable, i64, i64) {
        let mut table = TestTable::partitioned().await;
        let first = vec![
            data("a.parquet", 2, partition(Some("x"), Some(DAY))),
            data("b.parquet", 1, partition(None, None)),
        ];
        let first = table.commit(first, Vec::new()).await;
        let delete = file("a-deletes.parquet", 1, partition(Some("x"), Some(DAY)))
            .content(DataContentType::PositionDeletes)
            .referenced_data_file(Some("a.parquet".to_owned()))
            .build();
        let added = data("c.parquet", 1, partition(Some("x"), Some(DAY)));
        let second = table.commit(vec![added], vec![delete.unwrap()]).await;
        (table, first, second)
    }

    /// Returns the definition of a metadata table.
    fn describe(&self, kind: &str) -> CatalogTable {
        let name = MetadataName::parse(&format!("t${kind}")).unwrap().unwrap();
        assert_eq!(name.table, "t");
        MetadataTable::describe(self.table.clone(), name.kind).unwrap()
    }

    /// Makes the source of a metadata table and its columns.
    fn source(
        &self,
        kind: &str,
        options: &[(&str, &str)],
    ) -> Result<(Arc<dyn DynamicTableSource>, TableSchema)> {
        let definition = self.describe(kind);
        let handle = definition.handle.get::<MetadataTable>().unwrap();
        let table = Table::new("iceberg", Vec::new(), options);
        Ok((handle.create_source(&table.context())?, definition.schema))
    }

    /// Returns the given columns of all rows, cells between bars.
    async fn rows(&self, kind: &str, columns: &[&str], options: &[(&str, &str)]) -> Vec<String> {
        let (source, schema) = self.source(kind, options).unwrap();
        let position = |name: &&str| schema.columns.iter().position(|column| column.name == *name).unwrap();
        let projection = Projection::of_columns(&columns.iter().map(position).collect::<Vec<_>>());
        let mut reader = source.open(&projection, None).unwrap();
        let mut lines = Vec::new();
        for frame in read_all(&mut *reader).await.unwrap() {
            let Frame::Rows(batch) = frame else { panic!("no rows") };
            for row in 0..batch.row_count() {
                let cell = |(at, array): (usize, &arrow::array::ArrayRef)| {
                    let data_type = &schema.columns[projection.physical[at]].data_type;
                    format_cell(data_type, array, row, Tz::UTC).unwrap_or_else(|| "NULL".to_owned())
                };
                lines.push(batch.rows().columns().iter().enumerate().map(cell).collect::<Vec<_>>().join("|"));
            }
        }
        lines
    }
}

fn schema() -> Schema {
    let primitive =
        |id, name, data_type| Arc::new(NestedField::optional(id, name, Type::Primitive(data_type)));
    let nested = StructType::new(vec![primitive(5, "a", PrimitiveType::Int)]);
    let fields = vec![
        Arc::new(NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long))),
        primitive(2, "d", PrimitiveType::String),
        primitive(3, "ts", PrimitiveType::Timestamp),
        Arc::new(NestedField::optional(4, "r", Type::Struct(nested))),
    ];
    Schema::builder().with_fields(fields).build().unwrap()
}

fn partition(d: Option<&str>, day: Option<i32>) -> Struct {
    Struct::from_iter([d.map(Literal::string), day.map(Literal::date)])
}

fn file(path: &str, records: u64, partition: Struct) -> DataFileBuilder {
    let mut builder = DataFileBuilder::default();
    builder
        .content(DataContentType::Data)
        .file_path(path.to_owned())
        .file_format(DataFileFormat::Parquet)
        .partition(partition)
        .record_count(records)
        .file_size_in_bytes(100);
    builder
}

fn data(path: &str, records: u64, partition: Struct) -> DataFile {
    file(path, records, partition)
        .value_counts(HashMap::from([(1, records), (2, records)]))
        .lower_bounds(HashMap::from([(1, Datum::long(1)), (2, Datum::string("x"))]))
        .upper_bounds(HashMap::from([(1, Datum::long(9))]))
        .split_offsets(Some(vec![4]))
        .build()
        .unwrap()
}

#[test]
fn names_are_taken_apart_in_any_case() {
    let parse = |name| MetadataName::parse(name).unwrap().map(|name| (name.table, name.kind));
    assert_eq!(parse("orders"), None);
    assert_eq!(parse("orders$snapshots"), Some(("orders".to_owned(), MetadataTableType::Snapshots)));
    assert_eq!(parse("orders$All_Files"), Some(("orders".to_owned(), MetadataTableType::AllFiles)));
    for name in ["a$nope", "a$files$files", "a$"] {
        let error = MetadataName::parse(name).unwrap_err();
        assert_eq!(error.message(), format!("Illegal table name:{name}"));
        assert_eq!(error.flink_class(), FlinkClass::ILLEGAL_ARGUMENT);
        assert!(error.hint_text().unwrap().contains("$snapshots, $history"));
    }
}

#[tokio::test]
async fn every_metadata_table_but_one_has_columns_and_rows_of_them() {
    let (table, ..) = TestTable::filled().await;
    for (name, kind) in MetadataTableType::NAMES {
        if *kind == MetadataTableType::PositionDeletes {
            let error = MetadataTable::describe(table.table.clone(), *kind).unwrap_err();
            assert_eq!(error.message(), "metadata table 't$position_deletes' is not supported yet");
            continue;
        }
        let columns: Vec<String> =
            table.describe(name).schema.columns.into_iter().map(|column| column.name).collect();
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        assert!(!table.rows(name, &columns, &[]).await.is_empty(), "{name}");
    }
}

#[tokio::test]
async fn snapshots_and_history_are_in_their_order() {
    let (table, first, second) = TestTable::filled().await;
    assert_eq!(
        table.rows("snapshots", &["snapshot_id", "parent_id", "operation"], &[]).await,
        [format!("{first}|NULL|append"), format!("{second}|{first}|overwrite")]
    );
    let summaries = table.rows("snapshots", &["summary"], &[]).await;
    assert!(summaries[1].contains("total-records=4"), "{summaries:?}");
    assert_eq!(
        table.rows("history", &["snapshot_id", "parent_id", "is_current_ancestor"], &[]).await,
        [format!("{first}|NULL|TRUE"), format!("{second}|{first}|TRUE")]
    );
    let log =
        table.rows("metadata_log_entries", &["latest_snapshot_id", "latest_sequence_number"], &[]).await;
    assert_eq!(log, ["NULL|NULL".to_owned(), format!("{first}|1"), format!("{second}|2")]);
}

#[tokio::test]
async fn branches_and_tags_are_listed_by_name() {
    let (mut table, first, second) = TestTable::filled().await;
    let reference =
        SnapshotReference::new(first, SnapshotRetention::Tag { max_ref_age_ms: Some(86_400_000) });
    let mut plan = |_: &IcebergTable| {
        let update =
            TableUpdate::SetSnapshotRef { ref_name: "first".to_owned(), reference: reference.clone() };
        Ok(Some(MetadataChange { requirements: Vec::new(), updates: vec![update] }))
    };
    table.table = commit_updates(&table.table, &mut plan).await.unwrap();
    assert_eq!(
        table
            .rows(
                "refs",
                &["name", "type", "snapshot_id", "max_reference_age_in_ms", "min_snapshots_to_keep"],
                &[]
            )
            .await,
        [format!("first|TAG|{first}|86400000|NULL"), format!("main|BRANCH|{second}|NULL|NULL")]
    );
    let files = table.rows("files", &["file_path"], &[("tag", "first")]).await;
    assert_eq!(files, ["a.parquet", "b.parquet"]);
}

#[tokio::test]
async fn files_are_those_of_the_chosen_snapshot() {
    let (table, first, _) = TestTable::filled().await;
    let columns = ["content", "file_path", "file_format", "spec_id", "partition", "record_count"];
    let mut files = table.rows("files", &columns, &[]).await;
    files.sort();
    assert_eq!(
        files,
        [
            "0|a.parquet|PARQUET|0|(x, 2026-01-03)|2",
            "0|b.parquet|PARQUET|0|(NULL, NULL)|1",
            "0|c.parquet|PARQUET|0|(x, 2026-01-03)|1",
            "1|a-deletes.parquet|PARQUET|0|(x, 2026-01-03)|1",
        ]
    );
    let at_first = [("snapshot-id", first.to_string())];
    let at_first: Vec<(&str, &str)> = at_first.iter().map(|(key, value)| (*key, value.as_str())).collect();
    assert_eq!(table.rows("files", &["file_path"], &at_first).await, ["a.parquet", "b.parquet"]);
    assert_eq!(table.rows("data_files", &["file_path"], &[]).await.len(), 3);
    assert_eq!(
        table.rows("delete_files", &["file_path", "referenced_data_file"], &[]).await,
        ["a-deletes.parquet|a.parquet"]
    );
    assert_eq!(table.rows("all_files", &["file_path"], &[]).await.len(), 4, "each once");
    assert_eq!(table.rows("entries", &["status", "sequence_number"], &at_first).await, ["1|1", "1|1"]);
    assert_eq!(table.rows("files", &["file_path"], &[("limit", "1")]).await.len(), 1);
}

#[tokio::test]
async fn metrics_are_shown_raw_and_by_column() {
    let (table, first, _) = TestTable::filled().await;
    let first = first.to_string();
    let columns = ["value_counts", "null_value_counts", "lower_bounds", "split_offsets", "readable_metrics"];
    let rows = table.rows("files", &columns, &[("snapshot-id", &first), ("limit", "1")]).await;
    let no = "NULL";
    assert_eq!(
        rows,
        [format!(
            "{{1=2, 2=2}}|NULL|{{1=x'0100000000000000', 2=x'78'}}|[4]|\
             (({no}, 2, {no}, {no}, x, {no}), ({no}, 2, {no}, {no}, 1, 9), \
             ({no}, {no}, {no}, {no}, {no}, {no}), ({no}, {no}, {no}, {no}, {no}, {no}))"
        )]
    );
    let files = table.describe("files");
    let metrics = &files.schema.column("readable_metrics").unwrap().data_type.root;
    let TypeRoot::Row(fields) = metrics else { panic!("no row") };
    let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(
        names,
        ["d", "id", "r.a", "ts"],
        "the columns that are not nested themselves, by their full names"
    );
}

#[tokio::test]
async fn manifests_have_counts_by_content_and_bounds_as_people_write_them() {
    let (table, first, second) = TestTable::filled().await;
    let columns = [
        "content",
        "added_snapshot_id",
        "added_data_files_count",
        "added_delete_files_count",
        "partition_summaries",
    ];
    let mut manifests = table.rows("manifests", &columns, &[]).await;
    manifests.sort();
    let bounds = "[(FALSE, FALSE, x, x), (FALSE, FALSE, 2026-01-03, 2026-01-03)]";
    let mut expected = [
        format!("0|{first}|2|0|[(TRUE, FALSE, x, x), (TRUE, FALSE, 2026-01-03, 2026-01-03)]"),
        format!("0|{second}|1|0|{bounds}"),
        format!("1|{second}|0|1|{bounds}"),
    ];
    expected.sort();
    assert_eq!(manifests, expected);
    let mut all = table.rows("all_manifests", &["reference_snapshot_id"], &[]).await;
    all.sort();
    let mut expected = vec![first.to_string(), second.to_string(), second.to_string(), second.to_string()];
    expected.sort();
    assert_eq!(all, expected);
}

#[tokio::test]
async fn partitions_count_what_they_hold() {
    let (table, first, second) = TestTable::filled().await;
    let columns = [
        "partition",
        "spec_id",
        "record_count",
        "file_count",
        "total_data_file_size_in_bytes",
        "position_delete_record_count",
        "position_delete_file_count",
        "last_updated_snapshot_id",
    ];
    let mut partitions = table.rows("partitions", &columns, &[]).await;
    partitions.sort();
    assert_eq!(
        partitions,
        [format!("(NULL, NULL)|0|1|1|100|0|0|{first}"), format!("(x, 2026-01-03)|0|3|2|200|1|1|{second}"),]
    );
}

#[tokio::test]
async fn a_table_without_partitions_shows_none() {
    let mut table = TestTable::new(UnboundPartitionSpec::builder().build()).await;
    let names = |kind: &str| -> Vec<String> {
        table.describe(kind).schema.columns.into_iter().map(|column| column.name).collect()
    };
    assert!(!names("files").contains(&"partition".to_owned()));
    assert_eq!(names("partitions")[0], "record_count");
    assert!(table.rows("partitions", &["record_count"], &[]).await.is_empty());
    assert!(table.rows("files", &["file_path"], &[]).await.is_empty());
    table.commit(vec![data("a", 2, Struct::empty()), data("b", 3, Struct::empty())], Vec::new()).await;
    assert_eq!(table.rows("partitions", &["record_count", "file_count"], &[]).await, ["5|2"]);
    assert_eq!(table.rows("manifests", &["partition_summaries"], &[]).await, ["[]"]);
}

#[tokio::test]
async fn a_partition_from_before_its_column_was_widened_is_the_same_partition() {
    let spec = UnboundPartitionSpec::builder().add_partition_field(5, "a", Transform::Identity).unwrap();
    let mut table = TestTable::new(spec.build()).await;
    table.commit(vec![data("narrow", 1, Struct::from_iter([Some(Literal::int(7))]))], Vec::new()).await;
    let wide = Type::Primitive(PrimitiveType::Long);
    let nested = StructType::new(vec![Arc::new(NestedField::optional(5, "a", wide))]);
    let mut fields: Vec<_> = schema().as_struct().fields().to_vec();
    fields[3] = Arc::new(NestedField::optional(4, "r", Type::Struct(nested)));
    let schema = Schema::builder().with_fields(fields).build().unwrap();
    let mut widen = |_: &IcebergTable| {
        let schema = schema.clone();
        let updates =
            vec![TableUpdate::AddSchema { schema }, TableUpdate::SetCurrentSchema { schema_id: -1 }];
        Ok(Some(MetadataChange { updates, ..MetadataChange::default() }))
    };
    table.table = commit_updates(&table.table, &mut widen).await.unwrap();
    table.commit(vec![data("wide", 1, Struct::from_iter([Some(Literal::long(7))]))], Vec::new()).await;
    assert_eq!(table.rows("partitions", &["partition", "file_count"], &[]).await, ["(7)|2"]);
    let names = list_partitions(&table.table).await.unwrap();
    assert_eq!(names, [vec![("a".to_owned(), "7".to_owned())]]);
}

#[tokio::test]
async fn options_that_do_not_fit_are_refused() {
    let (table, ..) = TestTable::filled().await;
    let error = |kind: &str, options: &[(&str, &str)]| table.source(kind, options).unwrap_err();
    assert_eq!(error("files", &[("snapshot-id", "1")]).message(), "Cannot find snapshot with ID 1");
    let all = error("all_files", &[("branch", "main")]);
    assert_eq!(all.message(), "Cannot select snapshot in table: ALL_FILES");
    assert_eq!(all.flink_class(), FlinkClass::UNSUPPORTED_OPERATION);
    assert!(error("files", &[("start-snapshot-id", "1")]).message().contains("no rows of a range"));
    let batch = [("streaming", "true")];
    assert!(error("files", &batch).message().contains("cannot be read continuously"));
}

#[tokio::test]
async fn a_restored_job_sees_all_rows_or_none() {
    let (table, ..) = TestTable::filled().await;
    let (source, _) = table.source("snapshots", &[]).unwrap();
    let projection = Projection::of_columns(&[1]);
    let mut reader = source.open(&projection, None).unwrap();
    let before = reader.position();
    let SourceEvent::Frame(Frame::Rows(rows)) = reader.next().await.unwrap() else { panic!("no rows") };
    assert_eq!((rows.row_count(), rows.rows().num_columns()), (2, 1));
    let mut again = source.open(&projection, Some(&before)).unwrap();
    assert!(matches!(again.next().await.unwrap(), SourceEvent::Frame(_)));
    let mut behind = source.open(&projection, Some(&reader.position())).unwrap();
    assert!(matches!(behind.next().await.unwrap(), SourceEvent::EndOfInput));
}

#[tokio::test]
async fn a_damaged_manifest_is_named() {
    let (table, ..) = TestTable::filled().await;
    let list = table.table.metadata().current_snapshot().unwrap().manifest_list().to_owned();
    std::fs::write(list.trim_start_matches("file:"), b"nonsense").unwrap();
    let (source, _) = table.source("files", &[]).unwrap();
    let mut reader = source.open(&Projection::of_columns(&[0]), None).unwrap();
    let error = reader.next().await.unwrap_err();
    assert!(error.message().contains(&list), "{error}");
    assert!(table.folder.path().exists());
}

#[tokio::test]
async fn nothing_can_be_written_to_a_metadata_table() {
    let (table, ..) = TestTable::filled().await;
    let handle = table.describe("snapshots").handle.get::<MetadataTable>().unwrap();
    let error = handle.not_written("c.db.t$snapshots");
    assert_eq!(error.message(), "metadata table 'c.db.t$snapshots' cannot be written");
}
