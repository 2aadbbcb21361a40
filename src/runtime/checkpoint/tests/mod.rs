//! Tests of checkpoints as a whole: what is written comes back, whatever happens on the way.

mod crash;
mod damage;
mod every_type;
mod evolution;
mod model;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};

use super::disk::Disk;
use super::*;
use crate::error::Result;
use crate::state::{StateChanges, StateTable, hash_rows, key_group, owner};

/// Workers share a restore, and a checkpoint is written by any thread.
const _: fn() = || {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Restore>();
    is_shared::<CheckpointStore>();
};

/// The rows of the table that most tests use: key → value.
type Rows = BTreeMap<i64, Option<String>>;

/// Rows that are written.
type Upserts = Vec<(i64, Option<String>)>;

fn schema(columns: &[(&str, DataType)]) -> SchemaRef {
    let fields = columns.iter().map(|(name, data_type)| Field::new(*name, data_type.clone(), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The table `groups`: k BIGINT, v STRING.
fn groups() -> StateTable {
    StateTable {
        name: "groups",
        schema: schema(&[("k", DataType::Int64), ("v", DataType::Utf8)]),
        key_count: 1,
        derived_from: None,
    }
}

/// Returns what the workers say of a table after some rows have been written and some keys deleted.
fn split(
    table: &StateTable,
    upserts: &RecordBatch,
    deletes: &RecordBatch,
    workers: usize,
) -> Vec<StateChanges> {
    let groups = |batch: &RecordBatch| {
        let mut hashes = Vec::new();
        hash_rows(&batch.columns()[..table.key_count], batch.num_rows(), &mut hashes).unwrap();
        hashes.into_iter().map(key_group).collect::<Vec<u8>>()
    };
    let (upsert_groups, delete_groups) = (groups(upserts), groups(deletes));
    let of = |batch: &RecordBatch, groups: &[u8], worker: usize| {
        let mine: arrow::array::BooleanArray =
            groups.iter().map(|group| Some(owner(*group, workers) == worker)).collect();
        let groups = groups.iter().copied().filter(|group| owner(*group, workers) == worker).collect();
        (arrow::compute::filter_record_batch(batch, &mine).unwrap(), groups)
    };
    (0..workers)
        .map(|worker| {
            let (upserts, upsert_groups) = of(upserts, &upsert_groups, worker);
            let (deletes, delete_groups) = of(deletes, &delete_groups, worker);
            StateChanges { upserts, upsert_groups, deletes, delete_groups }
        })
        .collect()
}

/// Returns changes of the table `groups`.
fn changes(upserts: &[(i64, Option<String>)], deletes: &[i64], workers: usize) -> Vec<StateChanges> {
    let table = groups();
    let keys: ArrayRef = Arc::new(upserts.iter().map(|(key, _)| Some(*key)).collect::<Int64Array>());
    let values: ArrayRef = Arc::new(upserts.iter().map(|(_, value)| value.clone()).collect::<StringArray>());
    let upserts = RecordBatch::try_new(Arc::clone(&table.schema), vec![keys, values]).unwrap();
    let deleted: ArrayRef = Arc::new(Int64Array::from(deletes.to_vec()));
    let deletes = RecordBatch::try_new(schema(&[("k", DataType::Int64)]), vec![deleted]).unwrap();
    split(&table, &upserts, &deletes, workers)
}

/// Returns an operator with one table.
fn operator(uid: &str, table: StateTable, changes: Vec<StateChanges>) -> OperatorChanges {
    OperatorChanges {
        uid: uid.to_owned(),
        kind: "Join".to_owned(),
        tables: vec![table],
        workers: changes.into_iter().map(|changes| vec![changes]).collect(),
    }
}

fn write(store: &mut CheckpointStore, operators: Vec<OperatorChanges>) -> Result<CheckpointSummary> {
    let number = store.next_number();
    write_as(store, number, operators)
}

fn write_as(
    store: &mut CheckpointStore,
    number: u64,
    operators: Vec<OperatorChanges>,
) -> Result<CheckpointSummary> {
    let time_ms = number as i64;
    store.write_checkpoint(CheckpointData { number, time_ms, operators, ..CheckpointData::default() })
}

fn open(folder: &Path, id: u128, retained: usize) -> CheckpointStore {
    open_on(Disk::dying_after(i64::MAX), folder, id, retained)
}

fn open_on(disk: Disk, folder: &Path, id: u128, retained: usize) -> CheckpointStore {
    CheckpointStore::open_on(disk, JobFolder::acquire(folder, "job", id).unwrap(), retained).unwrap()
}

/// Reads a table as several workers would.
fn read(restore: &Restore, uid: &str, table: &StateTable, workers: usize) -> Vec<RecordBatch> {
    let mut batches = Vec::new();
    for worker in 0..workers {
        let owns = |group| owner(group, workers) == worker;
        restore
            .read(uid, table, &owns, &mut |batch| {
                let mut hashes = Vec::new();
                hash_rows(&batch.columns()[..table.key_count], batch.num_rows(), &mut hashes)?;
                assert!(hashes.iter().all(|hash| owns(key_group(*hash))), "rows of another worker");
                batches.push(batch.clone());
                Ok(())
            })
            .unwrap();
    }
    batches
}

/// Reads the table `groups`; no key may come twice.
fn read_groups(restore: &Restore, uid: &str, workers: usize) -> Rows {
    let mut rows = Rows::new();
    for batch in read(restore, uid, &groups(), workers) {
        let keys = batch.column(0).as_primitive::<Int64Type>();
        let values = batch.column(1).as_string::<i32>();
        for (key, value) in keys.values().iter().zip(values) {
            assert!(rows.insert(*key, value.map(str::to_owned)).is_none(), "key {key} twice");
        }
    }
    rows
}

/// Returns all files below a folder; none if there is no such folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Checks that a job's folder holds nothing but its checkpoints and what they need.
fn assert_nothing_is_left_over(job: &Path) {
    let mut expected = std::collections::BTreeSet::new();
    for (_, folder) in job_folder::complete_checkpoints(job).unwrap() {
        expected.insert(folder.join("_metadata"));
        let manifest = Manifest::read(&folder).unwrap();
        expected.extend(manifest.segments.iter().map(|segment| job.join("shared").join(&segment.file)));
    }
    assert_eq!(files(job), expected.into_iter().collect::<Vec<_>>());
}
