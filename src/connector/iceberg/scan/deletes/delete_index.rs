//! Which delete files apply to which data files.
//!
//! A deletion vector belongs to one data file and stands for all its deleted positions, so position deletes beside it are not
//! looked at. Position deletes apply to files of their own partition that are not newer; most name the one file they are for.
//! Equality deletes apply to strictly older files of their partition, or of the whole table where their spec has no partitions.
//! Those with the same columns and scope form a group: a row is looked up once in it, however many files it has.

use std::collections::HashMap;
use std::sync::Arc;

use iceberg::spec::{DataContentType, DataFileFormat, Datum, PrimitiveLiteral, PrimitiveType};

use crate::connector::iceberg::manifest::{FileRole, ManifestedFile, PartitionKey, ReadContext, TableFile};
use crate::error::Result;

/// A file of deletes.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::connector::iceberg) struct DeleteFile {
    /// The file.
    pub(in crate::connector::iceberg) file: Arc<TableFile>,
    /// Its data sequence number.
    pub(in crate::connector::iceberg) sequence_number: i64,
}

/// Equality deletes over the same columns with the same scope, oldest first.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::connector::iceberg) struct EqualityGroup {
    /// Field ids of the columns, ascending.
    pub(in crate::connector::iceberg) field_ids: Vec<i32>,
    /// The files.
    pub(in crate::connector::iceberg) files: Vec<Arc<DeleteFile>>,
}

/// The deletes that apply to one data file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::connector::iceberg) struct FileDeletes {
    /// Its deletion vector.
    pub(in crate::connector::iceberg) vector: Option<Arc<DeleteFile>>,
    /// Position deletes; none if there is a vector.
    pub(in crate::connector::iceberg) positions: Vec<Arc<DeleteFile>>,
    /// Groups in which at least one file is newer.
    pub(in crate::connector::iceberg) equality: Vec<Arc<EqualityGroup>>,
}

impl FileDeletes {
    /// Returns whether nothing was deleted.
    pub(in crate::connector::iceberg) fn is_empty(&self) -> bool {
        !self.has_positions() && self.equality.is_empty()
    }

    /// Returns whether rows are deleted by their position.
    pub(in crate::connector::iceberg) fn has_positions(&self) -> bool {
        self.vector.is_some() || !self.positions.is_empty()
    }
}

/// All delete files of a snapshot.
#[derive(Debug, Default)]
pub(in crate::connector::iceberg::scan) struct DeleteIndex {
    vectors: HashMap<String, Arc<DeleteFile>>,
    by_file: HashMap<String, Vec<Arc<DeleteFile>>>,
    by_partition: HashMap<PartitionKey, Vec<Arc<DeleteFile>>>,
    equality: HashMap<PartitionKey, Vec<Arc<EqualityGroup>>>,
    equality_of_table: Vec<Arc<EqualityGroup>>,
}

/// The partition that equality deletes are for, unless they are for the whole table, and the columns that they compare.
type EqualityScope = (Option<PartitionKey>, Vec<i32>);

impl DeleteIndex {
    /// Sorts delete files by what they apply to. `is_unpartitioned` tells it of a spec.
    ///
    /// # Errors
    /// Equality deletes have no columns.
    pub(in crate::connector::iceberg::scan) fn build<'a>(
        deletes: impl Iterator<Item = &'a ManifestedFile>,
        is_unpartitioned: impl Fn(i32) -> bool,
        context: &ReadContext,
    ) -> Result<DeleteIndex> {
        let mut index = DeleteIndex::default();
        let mut equality: HashMap<EqualityScope, Vec<Arc<DeleteFile>>> = HashMap::new();
        for listed in deletes {
            let file = &listed.file.file;
            let delete = Arc::new(DeleteFile {
                file: Arc::clone(&listed.file),
                sequence_number: listed.data_sequence_number,
            });
            let partition = || listed.file.partition_key();
            if file.content_type() == DataContentType::EqualityDeletes {
                let mut ids = file.equality_ids().unwrap_or_default();
                if ids.is_empty() {
                    // A key of no columns would be that of all rows.
                    let why = "its manifest does not say which columns it compares";
                    return Err(context.damaged(FileRole::EqualityDeletes, file.file_path(), why));
                }
                ids.sort_unstable();
                let scope = (!is_unpartitioned(listed.file.spec_id)).then(partition);
                equality.entry((scope, ids)).or_default().push(delete);
            } else if let Some(path) = listed.file.referenced_data_file() {
                if file.file_format() == DataFileFormat::Puffin {
                    index.add_vector(path, delete);
                } else {
                    index.by_file.entry(path).or_default().push(delete);
                }
            } else {
                index.by_partition.entry(partition()).or_default().push(delete);
            }
        }
        for ((scope, field_ids), mut files) in equality {
            files.sort_by_key(|delete| delete.sequence_number);
            let group = Arc::new(EqualityGroup { field_ids, files });
            match scope {
                Some(partition) => index.equality.entry(partition).or_default().push(group),
                None => index.equality_of_table.push(group),
            }
        }
        Ok(index)
    }

    /// Adds a deletion vector; of several the newest counts.
    fn add_vector(&mut self, path: String, delete: Arc<DeleteFile>) {
        let known = self.vectors.get(&path);
        if known.is_none_or(|known| known.sequence_number < delete.sequence_number) {
            self.vectors.insert(path, delete);
        }
    }

    /// Returns what applies to a data file.
    pub(in crate::connector::iceberg::scan) fn deletes_of(&self, listed: &ManifestedFile) -> FileDeletes {
        let (file, sequence_number) = (&listed.file.file, listed.data_sequence_number);
        let is_newer = |delete: &&Arc<DeleteFile>| delete.sequence_number >= sequence_number;
        let vector = self.vectors.get(file.file_path()).filter(is_newer).map(Arc::clone);
        let needs_partition = !self.by_partition.is_empty() || !self.equality.is_empty();
        let partition = needs_partition.then(|| listed.file.partition_key());
        let mut positions = Vec::new();
        if vector.is_none() {
            positions
                .extend(self.by_file.get(file.file_path()).into_iter().flatten().filter(is_newer).cloned());
            let shared = partition.as_ref().and_then(|partition| self.by_partition.get(partition));
            let may_name = |delete: &&Arc<DeleteFile>| delete.file.may_name(file.file_path());
            positions.extend(shared.into_iter().flatten().filter(is_newer).filter(may_name).cloned());
        }
        let of_partition = partition.as_ref().and_then(|partition| self.equality.get(partition));
        let groups = of_partition.into_iter().flatten().chain(&self.equality_of_table);
        let equality = groups.filter(|group| group_may_apply(group, listed)).map(Arc::clone).collect();
        FileDeletes { vector, positions, equality }
    }
}

/// Returns whether some file of the group is newer and may have a key of the data file.
fn group_may_apply(group: &EqualityGroup, listed: &ManifestedFile) -> bool {
    let newer =
        group.files.iter().rev().take_while(|delete| delete.sequence_number > listed.data_sequence_number);
    newer.into_iter().any(|delete| keys_may_meet(&group.field_ids, &delete.file, &listed.file))
}

/// Returns whether the bounds of all key columns overlap, as far as they are known.
fn keys_may_meet(field_ids: &[i32], delete: &TableFile, data: &TableFile) -> bool {
    let (delete, data) = (&delete.file, &data.file);
    field_ids.iter().all(|id| {
        // NULL equals NULL here, and no bound tells of it.
        let may_be_null = |counts: &HashMap<i32, u64>| counts.get(id).is_none_or(|count| *count > 0);
        if may_be_null(delete.null_value_counts()) && may_be_null(data.null_value_counts()) {
            return true;
        }
        let below = |lower: Option<&Datum>, upper: Option<&Datum>| match (lower, upper) {
            (Some(lower), Some(upper)) if is_one_type(lower, upper) => {
                is_not_above(lower.literal(), upper.literal())
            }
            _ => true,
        };
        below(delete.lower_bounds().get(id), data.upper_bounds().get(id))
            && below(data.lower_bounds().get(id), delete.upper_bounds().get(id))
    })
}

/// Returns whether two bounds are in the same terms. A column may have become wider between the two files; a date that has become a
/// timestamp counts in other units.
fn is_one_type(left: &Datum, right: &Datum) -> bool {
    use PrimitiveType as P;
    let widened = matches!((left.data_type(), right.data_type()), (P::Int, P::Long) | (P::Long, P::Int));
    widened || left.data_type() == right.data_type()
}

/// Returns whether one bound is known to be no greater than another; true where the two cannot be compared.
fn is_not_above(lower: &PrimitiveLiteral, upper: &PrimitiveLiteral) -> bool {
    use PrimitiveLiteral as L;
    match (lower, upper) {
        (L::Int(lower), L::Int(upper)) => lower <= upper,
        (L::Long(lower), L::Long(upper)) => lower <= upper,
        (L::Int(lower), L::Long(upper)) => i64::from(*lower) <= *upper,
        (L::Long(lower), L::Int(upper)) => *lower <= i64::from(*upper),
        (L::String(lower), L::String(upper)) => lower <= upper,
        (L::Binary(lower), L::Binary(upper)) => lower <= upper,
        _ => true,
    }
}
