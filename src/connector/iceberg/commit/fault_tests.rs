//! Commits to a catalog of folders while the store below fails at each of its steps.

use std::sync::Arc;

use iceberg::spec::{FormatVersion, Struct};
use iceberg::{NamespaceIdent, TableCreation};
use tempfile::TempDir;

use super::testing::{append, committed, deletes_in, live_of, metadata_files, paths, schema};
use super::{CommitMarker, SnapshotChange, commit_snapshot, is_committed};
use crate::connector::iceberg::catalog::{CommitCatalog, HadoopCatalog};
use crate::connector::iceberg::storage::testing::{FailingStore, Fault, Operation};
use crate::connector::iceberg::table::IcebergTable;
use crate::connector::testing::block_on;
use crate::error::Result;

struct Warehouse {
    faults: FailingStore,
    table: IcebergTable,
    _folder: TempDir,
}

impl Warehouse {
    async fn new(properties: &[(&str, &str)]) -> Warehouse {
        let (folder, faults) = (TempDir::new().unwrap(), FailingStore::new());
        let location = format!("file:{}", folder.path().display());
        let catalog: Arc<dyn CommitCatalog> =
            Arc::new(HadoopCatalog::new(&location, faults.files()).unwrap());
        let creation = TableCreation::builder()
            .name("t".to_owned())
            .schema(schema())
            .properties(properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())))
            .format_version(FormatVersion::V2)
            .build();
        let namespace = NamespaceIdent::new("db".to_owned());
        let table = catalog.create_table(&namespace, creation).await.unwrap();
        Warehouse { faults, table: IcebergTable::new(catalog, table), _folder: folder }
    }
}

const QUICK: [(&str, &str); 4] = [
    ("commit.retry.num-retries", "3"),
    ("commit.retry.min-wait-ms", "1"),
    ("commit.retry.max-wait-ms", "1"),
    ("commit.manifest.min-count-to-merge", "2"),
];

/// Commits what the second checkpoint of a job has prepared, unless it has landed.
async fn commit_once(table: &IcebergTable) -> Result<IcebergTable> {
    let mut plan = |table: &IcebergTable| {
        if is_committed(table.metadata(), "run", 2, "id") {
            return Ok(None);
        }
        let deletes = vec![deletes_in(0, "a-deletes", Struct::empty(), 1, Some("a"))];
        let mut change = SnapshotChange { deletes, ..append(&[("c", 3)]) };
        let marker = CommitMarker {
            lineage: "run".to_owned(),
            checkpoint: 2,
            commit_ids: vec!["id".to_owned()],
            job_id: String::new(),
            operator_id: String::new(),
            source_position: None,
        };
        marker.mark(table.metadata(), &mut change)?;
        Ok(Some(change))
    };
    commit_snapshot(table, &mut plan).await
}

#[test]
fn a_store_that_fails_at_any_step_leaves_a_commit_whole_or_away() {
    block_on(async {
        for fault in [Fault::PermissionDenied, Fault::NoSpace, Fault::Unreachable, Fault::AnswerLost] {
            let mut failures = 0;
            for step in 1.. {
                let warehouse = Warehouse::new(&QUICK).await;
                let table = committed(&warehouse.table, append(&[("a", 1)])).await;
                let table = committed(&table, append(&[("b", 2)])).await;
                warehouse.faults.fail_at(step, fault);
                let outcome = commit_once(&table).await;
                let is_over = warehouse.faults.is_armed();
                warehouse.faults.heal();

                let seen = table.reload().await.unwrap();
                let all: Vec<String> = paths(&seen).await;
                let is_there = seen.metadata().snapshots().len() == 3;
                let expected: &[&str] = if is_there { &["a", "a-deletes", "b", "c"] } else { &["a", "b"] };
                assert_eq!(all, expected, "{fault:?} at step {step}");
                assert!(is_there || outcome.is_err(), "{fault:?} at step {step}");
                failures += usize::from(outcome.is_err());

                let table = commit_once(&seen).await.unwrap();
                assert_eq!(paths(&table).await, ["a", "a-deletes", "b", "c"], "{fault:?} at step {step}");
                assert_eq!(table.metadata().snapshots().len(), 3, "{fault:?} at step {step}");
                for snapshot in table.metadata().snapshots() {
                    live_of(&table, snapshot).await;
                }
                if is_over {
                    assert!(step > 6, "{step} steps");
                    break;
                }
            }
            assert!(failures > 2, "{fault:?} fails {failures} commits");
        }
    });
}

#[test]
fn files_that_cannot_be_written_or_read_are_named() {
    block_on(async {
        let warehouse = Warehouse::new(&QUICK).await;
        let table = committed(&warehouse.table, append(&[("a", 1)])).await;
        for (part, what) in [("-m0.avro", "m0.avro"), ("snap-", "snap-")] {
            warehouse.faults.fail_when(Operation::Put, part, Fault::NoSpace);
            let error = commit_once(&table).await.unwrap_err();
            assert!(error.message().starts_with("cannot write 'file:"), "{error}");
            assert!(error.message().contains(what), "{error}");
            assert!(error.hint_text().is_some());
            assert_eq!(metadata_files(&table, ".avro").len(), 2, "what was written is gone");
        }
        let snapshot = table.metadata().current_snapshot().unwrap().clone();
        let list = snapshot.manifest_list().strip_prefix("file:").unwrap().to_owned();
        let bytes = std::fs::read(&list).unwrap();
        for damaged in [None, Some(&b"no avro"[..]), Some(&bytes[..bytes.len() - 9])] {
            match damaged {
                None => std::fs::remove_file(&list).unwrap(),
                Some(damaged) => std::fs::write(&list, damaged).unwrap(),
            }
            let error = commit_once(&table).await.unwrap_err();
            let named = format!(
                "manifest list '{}' of snapshot {} of table 'db.t' cannot be read: ",
                snapshot.manifest_list(),
                snapshot.snapshot_id()
            );
            assert!(error.message().starts_with(&named), "{error}");
        }
    });
}

#[test]
fn many_commits_leave_a_bounded_number_of_metadata_files() {
    block_on(async {
        let bounded = [
            ("write.metadata.delete-after-commit.enabled", "true"),
            ("write.metadata.previous-versions-max", "20"),
        ];
        let warehouse = Warehouse::new(&bounded).await;
        let mut table = warehouse.table.clone();
        for n in 0..40 {
            table = committed(&table, append(&[(&format!("f{n}"), 1)])).await;
        }
        assert_eq!(metadata_files(&table, ".metadata.json").len(), 21);
        assert_eq!(paths(&table).await.len(), 40);
    });
}

#[test]
fn writers_in_one_warehouse_lose_nothing() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    runtime.block_on(async {
        let warehouse = Warehouse::new(&[("commit.retry.min-wait-ms", "5")]).await;
        let writers = (0..4).map(|writer| {
            let table = warehouse.table.clone();
            tokio::spawn(async move {
                for n in 0..5 {
                    committed(&table, append(&[(&format!("w{writer}-{n}"), 1)])).await;
                }
            })
        });
        for writer in writers.collect::<Vec<_>>() {
            writer.await.unwrap();
        }
        let table = warehouse.table.reload().await.unwrap();
        assert_eq!(paths(&table).await.len(), 20);
        assert_eq!(table.metadata().snapshots().len(), 20);
    });
}
