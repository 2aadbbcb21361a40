//! Deleted rows, by file and position, as files of position deletes.
//!
//! A delete file for each data file lets readers open no more than they need; but where a commit touches very many data files, it is
//! one for each partition.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType as ArrowType, Field, Int32Type, Schema as ArrowSchema};
use futures::StreamExt;
use futures::stream::FuturesOrdered;
use iceberg::spec::{
    DataContentType, DataFileBuilder, DataFileFormat, NestedField, PrimitiveType, Schema, SortOrder, Struct,
    Type,
};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use super::file_names::FileNames;
use super::metrics_config::MetricsConfig;
use super::parquet_file::ParquetFile;
use super::parquet_format::ParquetFormat;
use super::write_settings::WriteSettings;
use crate::connector::iceberg::commit::check_row_deletes;
use crate::connector::iceberg::error::from_iceberg;
use crate::connector::iceberg::manifest::{DELETE_FILE_PATH_ID, DELETE_FILE_POS_ID, PartitionKey, TableFile};
use crate::connector::iceberg::partition::partition_path;
use crate::connector::iceberg::table::IcebergTable;
use crate::error::{Error, Result};

/// With more data files than this in one commit, a delete file is for a partition.
const FILE_SCOPED_MAX: usize = 64;

/// How many rows are encoded at a time.
const ENCODED_ROWS: usize = 64 << 10;

/// How many files are written at a time.
const WRITTEN_AT_A_TIME: usize = 4;

/// The rows of one data file that are deleted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DeletedRows {
    /// The data file, as its entry in the manifest names it.
    pub(super) path: String,
    /// The data file's partition spec.
    pub(super) spec_id: i32,
    /// The data file's partition.
    pub(super) partition: Struct,
    /// Positions, ascending, each once.
    pub(super) positions: Vec<u64>,
}

/// Writes files of position deletes.
pub(super) struct PositionDeleteWriter {
    table: IcebergTable,
    settings: Arc<WriteSettings>,
    names: Arc<FileNames>,
    format: Arc<ParquetFormat>,
}

impl PositionDeleteWriter {
    /// Makes a writer.
    ///
    /// # Errors
    /// The table's format has no files of position deletes.
    pub(super) fn new(
        table: &IcebergTable,
        settings: Arc<WriteSettings>,
        names: Arc<FileNames>,
    ) -> Result<PositionDeleteWriter> {
        check_row_deletes(table.metadata(), table.ident())?;
        let format = Arc::new(format(&settings)?);
        Ok(PositionDeleteWriter { table: table.clone(), settings, names, format })
    }

    /// Writes all deletes of one commit, and adds the files, durable, to `written`: one for each data file, or one for each partition
    /// if there are many. No data file may be named twice.
    ///
    /// # Errors
    /// A file cannot be written. Those that could be are in `written`.
    pub(super) async fn write(&self, deleted: Vec<DeletedRows>, written: &mut Vec<TableFile>) -> Result<()> {
        let deleted: Vec<DeletedRows> =
            deleted.into_iter().filter(|deleted| !deleted.positions.is_empty()).collect();
        let mut groups: Vec<Vec<DeletedRows>> = Vec::new();
        if deleted.len() <= FILE_SCOPED_MAX {
            groups.extend(deleted.into_iter().map(|deleted| vec![deleted]));
        } else {
            let mut group_of: HashMap<PartitionKey, usize> = HashMap::new();
            for deleted in deleted {
                let partition = PartitionKey::of(deleted.spec_id, &deleted.partition);
                let group = *group_of.entry(partition).or_insert_with(|| {
                    groups.push(Vec::new());
                    groups.len() - 1
                });
                groups[group].push(deleted);
            }
        }
        let mut groups = groups.into_iter();
        let mut writing = FuturesOrdered::new();
        writing.extend(groups.by_ref().take(WRITTEN_AT_A_TIME).map(|group| self.write_file(group)));
        let mut failure = None;
        // Files that are being written while another fails are waited for: they are there in the end, and have to be known.
        while let Some(file) = writing.next().await {
            match file {
                Ok(file) => written.push(file),
                Err(error) => failure = failure.or(Some(error)),
            }
            if let (None, Some(group)) = (&failure, groups.next()) {
                writing.push_back(self.write_file(group));
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Writes deletes of one partition.
    async fn write_file(&self, mut deleted: Vec<DeletedRows>) -> Result<TableFile> {
        deleted.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let Some(first) = deleted.first() else {
            return Err(Error::internal("a delete file is written without deletes"));
        };
        let (spec_id, partition) = (first.spec_id, first.partition.clone());
        let referenced = (deleted.len() == 1).then(|| first.path.clone());
        let folder = self.folder(spec_id, &partition);
        let location = format!("{folder}/{}", self.names.next_delete_file());
        let files = self.table.files().clone();
        let mut file = ParquetFile::create(location, files, &self.format, ENCODED_ROWS);
        for deleted in &deleted {
            for positions in deleted.positions.chunks(ENCODED_ROWS) {
                file.write(self.rows(&deleted.path, positions)?).await?;
            }
        }
        let finished = file.finish().await?;
        let mut entry = DataFileBuilder::default();
        entry
            .content(DataContentType::PositionDeletes)
            .file_path(finished.location)
            .file_format(DataFileFormat::Parquet)
            .partition(partition)
            .partition_spec_id(spec_id)
            .file_size_in_bytes(finished.size)
            .referenced_data_file(referenced);
        finished.metrics.fill(&mut entry);
        let file =
            entry.build().map_err(|error| Error::internal("a delete file has no entry").caused_by(error))?;
        Ok(TableFile { spec_id, file })
    }

    /// Returns the folder of a partition's files. Where its spec cannot be read any more, it is that of all data: paths mean nothing.
    fn folder(&self, spec_id: i32, partition: &Struct) -> String {
        let metadata = self.table.metadata();
        let path = metadata.partition_spec_by_id(spec_id).and_then(|spec| {
            let partition_type = spec.partition_type(metadata.current_schema()).ok()?;
            Some(partition_path(spec, &partition_type, partition))
        });
        match path {
            Some(path) if !path.is_empty() => format!("{}/{path}", self.settings.data_folder),
            _ => self.settings.data_folder.clone(),
        }
    }

    fn rows(&self, path: &str, positions: &[u64]) -> Result<RecordBatch> {
        let keys = Int32Array::from_value(0, positions.len());
        let paths: ArrayRef = Arc::new(StringArray::from_iter_values([path]));
        let paths = DictionaryArray::<Int32Type>::try_new(keys, paths)?;
        let positions = Int64Array::from_iter_values(positions.iter().map(|position| *position as i64));
        let columns: Vec<ArrayRef> = vec![Arc::new(paths), Arc::new(positions)];
        Ok(RecordBatch::try_new(Arc::clone(self.format.arrow()), columns)?)
    }
}

/// Returns how files of position deletes look. Their bounds are whole: readers find by them which data files they are for.
fn format(settings: &WriteSettings) -> Result<ParquetFormat> {
    let required = |id, name: &str, of| Arc::new(NestedField::required(id, name, Type::Primitive(of)));
    let fields = [
        required(DELETE_FILE_PATH_ID, "file_path", PrimitiveType::String),
        required(DELETE_FILE_POS_ID, "pos", PrimitiveType::Long),
    ];
    let schema = Schema::builder().with_fields(fields).build().map_err(from_iceberg)?;
    let field = |id: i32, name: &str, data_type| {
        let id = (PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string());
        Field::new(name, data_type, false).with_metadata([id].into())
    };
    let path_type = ArrowType::Dictionary(Box::new(ArrowType::Int32), Box::new(ArrowType::Utf8));
    let arrow = ArrowSchema::new(vec![
        field(DELETE_FILE_PATH_ID, "file_path", path_type),
        field(DELETE_FILE_POS_ID, "pos", ArrowType::Int64),
    ]);
    ParquetFormat::new(
        &schema,
        Arc::new(arrow),
        &SortOrder::unsorted_order(),
        &settings.delete_parquet,
        &MetricsConfig::full(),
        &[],
        None,
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Making, Warehouse, id_and_name, read};
    use super::super::write_settings::Properties;
    use super::*;
    use crate::connector::iceberg::storage::testing::{Fault, Operation};
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;
    use iceberg::spec::{Datum, FormatVersion, Literal, Transform};
    use std::collections::BTreeMap;

    fn writer(warehouse: &Warehouse) -> Result<PositionDeleteWriter> {
        let metadata = warehouse.table.metadata();
        let properties = Properties::new(&BTreeMap::new(), metadata);
        let settings = WriteSettings::new(&properties, metadata).unwrap();
        let names = Arc::new(FileNames::new("job/sink", 0));
        PositionDeleteWriter::new(&warehouse.table, Arc::new(settings), names)
    }

    fn deleted(file: usize, partition: Option<i64>, positions: &[u64]) -> DeletedRows {
        let path = format!("file:/{}/data/{file:03}.parquet", "a-long-folder-name".repeat(5));
        let partition = Struct::from_iter(partition.map(|value| Some(Literal::long(value))));
        DeletedRows { path, spec_id: 0, partition, positions: positions.to_vec() }
    }

    /// Reads a file of deletes: paths and positions.
    fn content(file: &TableFile) -> Vec<(String, i64)> {
        let mut content = Vec::new();
        for batch in read(file.file.file_path()) {
            let paths = batch.column(0).as_string::<i32>().iter();
            let positions = batch.column(1).as_primitive::<Int64Type>().values();
            content
                .extend(paths.zip(positions).map(|(path, position)| (path.unwrap().to_owned(), *position)));
        }
        content
    }

    #[tokio::test]
    async fn deletes_of_few_files_are_a_file_for_each_with_whole_bounds() {
        let warehouse = Warehouse::new(id_and_name(), Making::default()).await;
        let given = vec![deleted(1, None, &[0, 7, 1_000_000]), deleted(0, None, &[3]), deleted(2, None, &[])];
        let mut files = Vec::new();
        writer(&warehouse).unwrap().write(given.clone(), &mut files).await.unwrap();
        assert_eq!(files.len(), 2);
        for (file, given) in files.iter().zip(&given) {
            let positions = given.positions.iter().map(|position| *position as i64);
            let expected: Vec<_> = positions.map(|position| (given.path.clone(), position)).collect();
            assert_eq!(content(file), expected);
            let file = &file.file;
            assert_eq!(file.content_type(), DataContentType::PositionDeletes);
            assert_eq!(file.referenced_data_file(), Some(given.path.clone()));
            assert_eq!(file.record_count(), given.positions.len() as u64);
            assert_eq!(file.lower_bounds()[&DELETE_FILE_PATH_ID], Datum::string(&given.path));
            assert_eq!(file.upper_bounds()[&DELETE_FILE_PATH_ID], Datum::string(&given.path));
            assert_eq!(file.lower_bounds()[&DELETE_FILE_POS_ID], Datum::long(given.positions[0] as i64));
            assert!(file.file_path().ends_with("-deletes.parquet"));
            assert_eq!(file.sort_order_id(), None);
        }
    }

    #[tokio::test]
    async fn deletes_of_many_files_are_a_file_for_each_partition_in_order() {
        let making = Making { partition: &[(1, "id", Transform::Identity)], ..Making::default() };
        let warehouse = Warehouse::new(id_and_name(), making).await;
        let given: Vec<_> = (0..80).rev().map(|at| deleted(at, Some(at as i64 % 2), &[1, 2])).collect();
        let mut files = Vec::new();
        writer(&warehouse).unwrap().write(given, &mut files).await.unwrap();
        assert_eq!(files.len(), 2);
        for file in &files {
            let content = content(file);
            assert_eq!(content.len(), 80);
            assert!(content.is_sorted());
            let (first, last) = (&content[0].0, &content[79].0);
            assert_eq!(file.file.referenced_data_file(), None);
            assert_eq!(file.file.lower_bounds()[&DELETE_FILE_PATH_ID], Datum::string(first));
            assert_eq!(file.file.upper_bounds()[&DELETE_FILE_PATH_ID], Datum::string(last));
            let Some(Literal::Primitive(iceberg::spec::PrimitiveLiteral::Long(id))) =
                &file.file.partition()[0]
            else {
                panic!("{:?}", file.file.partition());
            };
            assert!(file.file.file_path().contains(&format!("/data/id={id}/")), "{}", file.file.file_path());
        }
    }

    #[tokio::test]
    async fn files_that_were_written_before_one_failed_are_known() {
        let warehouse = Warehouse::new(id_and_name(), Making::default()).await;
        let given: Vec<_> = (0..20).map(|at| deleted(at, None, &[1])).collect();
        warehouse.faults.fail_when(Operation::Put, "-00006-deletes.parquet", Fault::NoSpace);
        let mut files = Vec::new();
        writer(&warehouse).unwrap().write(given, &mut files).await.unwrap_err();
        let mut known: Vec<_> =
            files.iter().map(|file| file.file.file_path().trim_start_matches("file:").to_owned()).collect();
        known.sort();
        let there: Vec<_> = warehouse.parquet_files().iter().map(|path| path.display().to_string()).collect();
        assert_eq!(known, there);
        assert!((5..20).contains(&known.len()), "{known:?}");
    }

    #[tokio::test]
    async fn formats_without_position_deletes_are_refused() {
        for (version, message) in [
            (FormatVersion::V1, "Cannot write delete files in a v1 table"),
            (
                FormatVersion::V3,
                "updates and deletes in table 'db.t' of format version 3 are not supported yet",
            ),
        ] {
            let making = Making { version: Some(version), ..Making::default() };
            let warehouse = Warehouse::new(id_and_name(), making).await;
            assert_eq!(writer(&warehouse).err().unwrap().message(), message);
        }
    }
}
