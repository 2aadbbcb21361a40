//! Commits to a catalog of folders while the store below fails at each of its steps.

use std::sync::Arc;

use iceberg::spec::{FormatVersion, Struct};
use iceberg::{NamespaceIdent, TableCreation};
use tempfile::TempDir;

use super::testing::{
    append, committed, deletes_in, live, live_of, manifests, metadata_files, paths, schema,
};
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

/// Commits what a checkpoint of a job has prepared, unless it has landed.
async fn commit_once(table: &IcebergTable, checkpoint: u64) -> Result<IcebergTable> {
    let id = format!("id-{checkpoint}");
    let mut plan = |table: &IcebergTable| {
        if is_committed(table.metadata(), "run", checkpoint, &id) {
            return Ok(None);
        }
        let path = format!("f{checkpoint:03}");
        let deletes = vec![deletes_in(0, &format!("{path}-deletes"), Struct::empty(), 1, Some(&path))];
        let mut change = SnapshotChange { deletes, ..append(&[(&path, 3)]) };
        let marker = CommitMarker {
            lineage: "run".to_owned(),
            checkpoint,
            commit_ids: vec![id.clone()],
            job_id: String::new(),
            operator_id: String::new(),
            source_position: None,
            keeps_property: true,
            flink_checkpoint: checkpoint as i64,
        };
        marker.mark(table.metadata(), &mut change)?;
        Ok(Some(change))
    };
    commit_snapshot(table, &mut plan).await
}

#[test]
fn a_store_that_fails_at_any_step_leaves_a_commit_whole_or_away() {
    block_on(async {
        for fault in [Fault::NoSpace, Fault::AnswerLost] {
            let warehouse = Warehouse::new(&QUICK).await;
            let mut table = committed(&warehouse.table, append(&[("a", 1)])).await;
            let mut expected = vec!["a".to_owned()];
            let mut failures = 0;
            for step in 1.. {
                warehouse.faults.fail_at(step, fault);
                let outcome = commit_once(&table, step as u64).await;
                let is_over = warehouse.faults.is_armed();
                warehouse.faults.heal();
                failures += usize::from(outcome.is_err());

                let seen = table.reload().await.unwrap();
                let is_there = seen.metadata().snapshots().len() > step;
                assert!(is_there || outcome.is_err(), "{fault:?} at step {step}");
                let file = format!("f{step:03}");
                let mut with_it = expected.clone();
                with_it.extend([file.clone(), format!("{file}-deletes")]);
                assert_eq!(
                    &paths(&seen).await,
                    if is_there { &with_it } else { &expected },
                    "{fault:?} at step {step}"
                );

                table = commit_once(&seen, step as u64).await.unwrap();
                assert_eq!(paths(&table).await, with_it, "{fault:?} at step {step}");
                assert_eq!(table.metadata().snapshots().len(), step + 1, "{fault:?} at step {step}");
                expected = with_it;
                if is_over {
                    assert!(step > 6, "{step} steps");
                    break;
                }
            }
            assert!(failures > 2, "{fault:?} fails {failures} commits");
            for snapshot in table.metadata().snapshots() {
                live_of(&table, snapshot).await;
            }
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
            let error = commit_once(&table, 1).await.unwrap_err();
            assert!(error.message().starts_with("cannot write 'file:"), "{error}");
            assert!(error.message().contains(what), "{error}");
            assert!(error.hint_text().is_some());
            assert_eq!(metadata_files(&table, ".avro").len(), 2, "what was written is gone");
        }
        let snapshot = Arc::clone(table.metadata().current_snapshot().unwrap());
        let list = snapshot.manifest_list().strip_prefix("file:").unwrap().to_owned();
        let bytes = std::fs::read(&list).unwrap();
        for damaged in [None, Some(&b"no avro"[..]), Some(&bytes[..bytes.len() - 9])] {
            let what = if damaged.is_some() { "is damaged" } else { "is missing" };
            match damaged {
                None => std::fs::remove_file(&list).unwrap(),
                Some(damaged) => std::fs::write(&list, damaged).unwrap(),
            }
            let error = commit_once(&table, 1).await.unwrap_err();
            let named = format!(
                "manifest list '{}' of snapshot {} of Iceberg table 'db.t' {what}",
                snapshot.manifest_list(),
                snapshot.snapshot_id()
            );
            assert_eq!(error.message(), named);
        }
    });
}

#[test]
fn many_commits_leave_a_bounded_number_of_manifests_and_metadata_files() {
    block_on(async {
        let bounded = [
            ("write.metadata.delete-after-commit.enabled", "true"),
            ("write.metadata.previous-versions-max", "20"),
            ("commit.manifest.min-count-to-merge", "5"),
        ];
        let warehouse = Warehouse::new(&bounded).await;
        let mut table = warehouse.table.clone();
        let (commits, mut most) = (60, 0);
        for n in 1..=commits {
            table = commit_once(&table, n).await.unwrap();
            most = most.max(manifests(&table, table.metadata().current_snapshot().unwrap()).await.len());
        }
        assert_eq!(metadata_files(&table, ".metadata.json").len(), 21);
        assert!(most <= 2 * (5 + 5), "{most}");
        let live = live(&table).await;
        assert_eq!(live.len() as u64, 2 * commits);
        assert!(live.iter().all(|(path, live)| live.sequence_number == path[1..4].parse::<i64>().unwrap()));
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
