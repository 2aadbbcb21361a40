//! `$partitions`: how many rows and files each partition of a snapshot has. A table without partitions has one row, without them.

use std::collections::HashMap;

use iceberg::spec::{DataContentType, DataFile, Literal, ManifestStatus, TableMetadata};

use super::super::manifest::widened;
use super::super::partition::{partition_columns, partition_values, spec_of};
use super::cell::Cell;
use super::files::FileCells;
use super::schema::{INSTANT, optional, partition_row, required};
use super::table_reader::TableReader;
use crate::error::Result;
use crate::schema::{Column, TypeRoot};

/// Returns the columns.
///
/// # Errors
/// The table's partitioning cannot be understood.
pub(super) fn columns(metadata: &TableMetadata) -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    if let Some(row) = partition_row(&partition_columns(metadata)?) {
        columns.push(required("partition", row));
        columns.push(required("spec_id", TypeRoot::Int));
    }
    columns.extend([
        required("record_count", TypeRoot::BigInt),
        required("file_count", TypeRoot::Int),
        required("total_data_file_size_in_bytes", TypeRoot::BigInt),
        required("position_delete_record_count", TypeRoot::BigInt),
        required("position_delete_file_count", TypeRoot::Int),
        required("equality_delete_record_count", TypeRoot::BigInt),
        required("equality_delete_file_count", TypeRoot::Int),
        optional("last_updated_at", INSTANT),
        optional("last_updated_snapshot_id", TypeRoot::BigInt),
    ]);
    Ok(columns)
}

/// What a partition holds.
#[derive(Default)]
struct Partition {
    cells: Vec<Cell>,
    spec_id: i32,
    /// Records and files by kind of content.
    records: [u64; 3],
    files: [i32; 3],
    data_bytes: u64,
    /// Time and number of the snapshot that changed it last.
    last_updated: Option<(i64, i64)>,
}

impl Partition {
    fn add(&mut self, file: &DataFile, spec_id: i32, snapshot: Option<(i64, i64)>) {
        if let Some((time, _)) = snapshot
            && self.last_updated.is_none_or(|(last, _)| time > last)
        {
            self.last_updated = snapshot;
            self.spec_id = spec_id;
        }
        let kind = file.content_type() as usize;
        self.records[kind] += file.record_count();
        self.files[kind] += 1;
        if file.content_type() == DataContentType::Data {
            self.data_bytes += file.file_size_in_bytes();
        }
    }

    fn into_row(self, is_partitioned: bool) -> Vec<Cell> {
        let mut row = Vec::new();
        if is_partitioned {
            row.push(Cell::Row(self.cells));
            row.push(Cell::Int(self.spec_id));
        }
        row.extend([
            Cell::count(self.records[DataContentType::Data as usize]),
            Cell::Int(self.files[DataContentType::Data as usize]),
            Cell::count(self.data_bytes),
            Cell::count(self.records[DataContentType::PositionDeletes as usize]),
            Cell::Int(self.files[DataContentType::PositionDeletes as usize]),
            Cell::count(self.records[DataContentType::EqualityDeletes as usize]),
            Cell::Int(self.files[DataContentType::EqualityDeletes as usize]),
            Cell::optional(self.last_updated, |(time, _)| Cell::instant(time)),
            Cell::optional(self.last_updated, |(_, id)| Cell::Long(id)),
        ]);
        row
    }
}

/// Returns the rows, in the order in which the manifests name the partitions.
pub(super) async fn rows(reader: &TableReader<'_>, snapshot: Option<i64>) -> Result<Vec<Vec<Cell>>> {
    let metadata = reader.metadata();
    let Some(snapshot) = snapshot.and_then(|id| metadata.snapshot_by_id(id)) else { return Ok(Vec::new()) };
    let cells = FileCells::of(metadata, reader.name)?;
    let columns = cells.partition_columns();
    let mut places: HashMap<Vec<Option<Literal>>, usize> = HashMap::new();
    let mut partitions: Vec<Partition> = Vec::new();
    let manifests = reader.manifests(snapshot).await?;
    let read = reader.files(&manifests).await?;
    for listed in read.iter().flat_map(|listed| listed.iter()) {
        if listed.status == ManifestStatus::Deleted {
            continue;
        }
        let file = listed.file.as_ref();
        let spec = spec_of(metadata, file.spec_id, reader.name)?;
        let values = partition_values(columns, spec, file.file.partition());
        // Wide values: what was written before and after a column took a wider type lies in one partition.
        let key: Vec<Option<Literal>> = values.map(|value| value.map(widened)).collect();
        let place = match places.get(&key) {
            Some(place) => *place,
            None => {
                let (cells, spec_id) = (cells.partition(file)?, file.spec_id);
                partitions.push(Partition { cells, spec_id, ..Partition::default() });
                places.insert(key, partitions.len() - 1);
                partitions.len() - 1
            }
        };
        let added_by = metadata.snapshot_by_id(listed.snapshot_id);
        let added_by = added_by.map(|snapshot| (snapshot.timestamp_ms(), snapshot.snapshot_id()));
        partitions[place].add(&file.file, file.spec_id, added_by);
    }
    Ok(partitions.into_iter().map(|partition| partition.into_row(!columns.is_empty())).collect())
}
