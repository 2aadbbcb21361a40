//! Commits that meet others, whose answers are lost, or whose files cannot be written: each snapshot is there once or not at all.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use iceberg::spec::FormatVersion;
use iceberg::{Catalog, TableIdent, TableUpdate};

use super::marker::{CommitMarker, committed_snapshot, forget, is_committed, lineage_of};
use super::testing::{Fault, TestCatalog, append, commit, committed, metadata_files, paths};
use super::{MetadataChange, SnapshotChange, SnapshotPlan, commit_snapshot, commit_updates};
use crate::connector::iceberg::table::IcebergTable;
use crate::connector::testing::block_on;
use crate::error::{Error, ErrorKind, FlinkClass, Result};

async fn table(catalog: &std::sync::Arc<TestCatalog>) -> IcebergTable {
    let table = catalog.table(FormatVersion::V2, false).await;
    committed(&table, append(&[("before", 1)])).await
}

/// How many manifests and lists are in the folder.
fn avro_files(table: &IcebergTable) -> usize {
    metadata_files(table, ".avro").len()
}

#[test]
fn a_conflict_is_planned_anew_and_what_it_wrote_is_removed() {
    block_on(async {
        let catalog = TestCatalog::new();
        let table = table(&catalog).await;
        catalog.next_commits(&[Fault::Conflicts, Fault::Conflicts]);
        let mut plans = 0;
        let mut plan = |seen: &IcebergTable| {
            plans += 1;
            assert_eq!(seen.metadata().snapshots().len(), 1);
            Ok(Some(append(&[("a", 1)])))
        };
        let table = commit_snapshot(&table, &mut plan).await.unwrap();
        assert_eq!(plans, 3);
        assert_eq!(paths(&table).await, ["a", "before"]);
        assert_eq!(avro_files(&table), 4);
    });
}

#[test]
fn an_answer_that_was_lost_leaves_one_snapshot() {
    block_on(async {
        for faults in [
            vec![Fault::LosesAnswer],
            vec![Fault::LosesRequest],
            vec![Fault::LandsLate],
            vec![Fault::LosesRequest, Fault::LandsLate, Fault::LosesRequest],
            vec![Fault::Conflicts, Fault::LosesAnswer],
            vec![Fault::LandsLate, Fault::LosesRequest, Fault::Conflicts],
        ] {
            let catalog = TestCatalog::new();
            let table = table(&catalog).await;
            catalog.next_commits(&faults);
            let table = committed(&table, append(&[("a", 1)])).await;
            assert_eq!(paths(&table).await, ["a", "before"], "{faults:?}");
            assert_eq!(table.metadata().snapshots().len(), 2, "{faults:?}");
            assert_eq!(avro_files(&table), 4, "{faults:?}: files of attempts in vain are gone");
        }
    });
}

#[test]
fn a_catalog_that_comes_back_is_asked_whether_the_commit_has_landed() {
    block_on(async {
        for fault in [Fault::LosesAnswer, Fault::LosesRequest] {
            let catalog = TestCatalog::new();
            let table = table(&catalog).await;
            catalog.next_commits(&[fault]);
            let mut is_first = true;
            let mut plan = |_: &IcebergTable| {
                // The loads after the first commit fail.
                if std::mem::take(&mut is_first) {
                    catalog.failing_loads.store(5, Ordering::Relaxed);
                }
                Ok(Some(append(&[("a", 1)])))
            };
            let table = commit_snapshot(&table, &mut plan).await.unwrap();
            assert_eq!(paths(&table).await, ["a", "before"]);
            assert_eq!(table.metadata().snapshots().len(), 2);
        }
    });
}

#[test]
fn an_unknown_outcome_is_said_and_the_marker_settles_it() {
    block_on(async {
        for (fault, snapshots) in [(Fault::LosesAnswer, 2), (Fault::LosesRequest, 1)] {
            let catalog = TestCatalog::new();
            let few = [("commit.retry.num-retries", "2"), ("commit.retry.min-wait-ms", "1")];
            let table = catalog.table_with(FormatVersion::V2, false, &few).await;
            let table = committed(&table, append(&[("before", 1)])).await;
            catalog.next_commits(&[fault]);
            let mut plan = |table: &IcebergTable| {
                if is_committed(table.metadata(), "run", 7, "id-1") {
                    return Ok(None);
                }
                catalog.failing_loads.store(usize::MAX, Ordering::Relaxed);
                let mut change = append(&[("a", 1)]);
                marker(7, &["id-1"]).mark(table.metadata(), &mut change)?;
                Ok(Some(change))
            };
            let error = commit_snapshot(&table, &mut plan).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            assert_eq!(error.flink_class(), FlinkClass::ICEBERG_COMMIT_STATE_UNKNOWN);
            assert!(error.message().starts_with("it is unknown whether the commit of snapshot "), "{error}");
            assert!(error.message().contains("table 'db.t'"), "{error}");
            assert_eq!(avro_files(&table), 4, "nothing is removed");

            catalog.failing_loads.store(0, Ordering::Relaxed);
            assert_eq!(table.reload().await.unwrap().metadata().snapshots().len(), snapshots);
            let mut again = |table: &IcebergTable| {
                let is_there = is_committed(table.metadata(), "run", 7, "id-1");
                Ok((!is_there).then(|| append(&[("a", 1)])))
            };
            let table = commit_snapshot(&table, &mut again).await.unwrap();
            assert_eq!(paths(&table).await, ["a", "before"]);
            assert_eq!(table.metadata().snapshots().len(), 2);
        }
    });
}

#[test]
fn a_failure_after_an_attempt_that_may_still_land_says_that_nobody_knows() {
    block_on(async {
        for (fault, is_unknown) in [(Fault::LosesRequest, true), (Fault::Conflicts, false)] {
            let catalog = TestCatalog::new();
            let table = table(&catalog).await;
            catalog.next_commits(&[fault]);
            let mut is_first = true;
            let mut plan = |_: &IcebergTable| match std::mem::take(&mut is_first) {
                true => Ok(Some(append(&[("a", 1)]))),
                false => Err(Error::unavailable("the store is gone")),
            };
            let error = commit_snapshot(&table, &mut plan).await.unwrap_err();
            assert_eq!(error.message(), "the store is gone");
            assert_eq!(error.flink_class() == FlinkClass::ICEBERG_COMMIT_STATE_UNKNOWN, is_unknown);
        }
    });
}

/// Counts how often it hears that it was beaten.
struct Counting {
    plans: usize,
    beaten: usize,
}

#[async_trait]
impl SnapshotPlan for Counting {
    async fn plan(&mut self, _: &IcebergTable) -> Result<Option<SnapshotChange>> {
        self.plans += 1;
        Ok(Some(append(&[("a", 1)])))
    }

    fn beaten(&mut self) {
        self.beaten += 1;
    }
}

#[test]
fn a_plan_hears_of_attempts_that_will_never_land_and_of_no_others() {
    block_on(async {
        let catalog = TestCatalog::new();
        let table = table(&catalog).await;
        catalog.next_commits(&[Fault::Conflicts, Fault::LosesRequest, Fault::Conflicts]);
        let mut plan = Counting { plans: 0, beaten: 0 };
        commit_snapshot(&table, &mut plan).await.unwrap();
        assert_eq!((plan.plans, plan.beaten), (4, 2));
    });
}

#[test]
fn a_refusal_is_not_tried_again_unless_the_table_has_changed() {
    block_on(async {
        let catalog = TestCatalog::new();
        let table = table(&catalog).await;
        catalog.next_commits(&[Fault::Fails]);
        let error = commit(&table, append(&[("a", 1)])).await.unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Rejected, "no permission"));
        assert_eq!(avro_files(&table), 2);

        // A commit to a branch takes the sequence number that was planned with.
        let mut racing = Racing { has_raced: false };
        let table = commit_snapshot(&table, &mut racing).await.unwrap();
        assert_eq!(paths(&table).await, ["a", "before"]);
        assert_eq!(table.metadata().last_sequence_number(), 3);
    });
}

/// Sees another writer commit to a branch after it has looked at the table.
struct Racing {
    has_raced: bool,
}

#[async_trait]
impl SnapshotPlan for Racing {
    async fn plan(&mut self, table: &IcebergTable) -> Result<Option<SnapshotChange>> {
        if !std::mem::replace(&mut self.has_raced, true) {
            let change = SnapshotChange { branch: Some("dev".to_owned()), ..append(&[("b", 1)]) };
            committed(table, change).await;
        }
        Ok(Some(append(&[("a", 1)])))
    }
}

#[test]
fn attempts_end_with_the_retries_of_the_table() {
    block_on(async {
        let catalog = TestCatalog::new();
        let few = [("commit.retry.num-retries", "2"), ("commit.retry.min-wait-ms", "1")];
        let table = catalog.table_with(FormatVersion::V2, false, &few).await;
        catalog.next_commits(&[Fault::Conflicts; 3]);
        let error = commit(&table, append(&[("a", 1)])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert_eq!(
            error.message(),
            "table 'db.t' could not be committed to in 3 attempts: another was first"
        );
        assert!(error.hint_text().unwrap().contains("commit.retry.num-retries"));
        assert_eq!(avro_files(&table), 0);

        let wrong = [("commit.retry.num-retries", "many")];
        let table = TestCatalog::new().table_with(FormatVersion::V2, false, &wrong).await;
        let error = commit(&table, append(&[("a", 1)])).await.unwrap_err();
        assert_eq!(
            error.message(),
            "table property 'commit.retry.num-retries' is 'many', which is no number"
        );
    });
}

#[test]
fn a_commit_that_may_still_land_leaves_its_files() {
    block_on(async {
        let catalog = TestCatalog::new();
        let few = [("commit.retry.num-retries", "1"), ("commit.retry.min-wait-ms", "1")];
        let table = catalog.table_with(FormatVersion::V2, false, &few).await;
        catalog.next_commits(&[Fault::LosesRequest, Fault::LandsLate]);
        let error = commit(&table, append(&[("a", 1)])).await.unwrap_err();
        assert!(error.hint_text().unwrap().contains("may still land"));
        assert_eq!(avro_files(&table), 4);
    });
}

#[test]
fn a_table_that_was_dropped_or_replaced_is_named() {
    block_on(async {
        let catalog = TestCatalog::new();
        let old = table(&catalog).await;
        let uuid = old.metadata().uuid();
        catalog.drop_it(&old);
        let error = commit(&old, append(&[("a", 1)])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(
            error.message(),
            format!("table 'db.t' (uuid {uuid}) was dropped or renamed while it was written")
        );

        let new = catalog.table(FormatVersion::V2, false).await;
        let error = commit(&old, append(&[("a", 1)])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Rejected);
        let now = new.metadata().uuid();
        assert!(
            error.message().contains(&uuid.to_string()) && error.message().contains(&now.to_string()),
            "{error}"
        );
        assert!(new.reload().await.unwrap().metadata().current_snapshot().is_none());

        // Dropped between the plan and the commit.
        let mut plan = |table: &IcebergTable| {
            catalog.drop_it(table);
            Ok(Some(append(&[("a", 1)])))
        };
        let error = commit_snapshot(&new, &mut plan).await.unwrap_err();
        assert_eq!(
            error.message(),
            format!("table 'db.t' (uuid {now}) was dropped or renamed while it was written")
        );
    });
}

#[test]
fn a_table_that_was_renamed_is_named_as_it_is_called_now() {
    block_on(async {
        let catalog = TestCatalog::new();
        let old = table(&catalog).await;
        let to = TableIdent::new(old.ident().namespace().clone(), "t2".to_owned());
        catalog.rename_table(old.ident(), &to).await.unwrap();
        let error = commit(&old, append(&[("a", 1)])).await.unwrap_err();
        let uuid = old.metadata().uuid();
        assert_eq!(
            error.message(),
            format!("table 'db.t' (uuid {uuid}) was renamed to 'db.t2' while it was written")
        );
        assert!(error.hint_text().unwrap().contains("the name that it has now"));
    });
}

#[test]
fn changes_of_metadata_survive_conflicts_and_lost_answers() {
    block_on(async {
        for faults in [vec![], vec![Fault::Conflicts], vec![Fault::LosesAnswer], vec![Fault::LosesRequest]] {
            let catalog = TestCatalog::new();
            let table = table(&catalog).await;
            catalog.next_commits(&faults);
            let mut plans = 0;
            let mut plan = |_: &IcebergTable| {
                plans += 1;
                let updates = [("k".to_owned(), "v".to_owned())].into();
                let updates = vec![TableUpdate::SetProperties { updates }];
                Ok(Some(MetadataChange { updates, ..MetadataChange::default() }))
            };
            let table = commit_updates(&table, &mut plan).await.unwrap();
            assert_eq!(table.metadata().properties()["k"], "v");
            let landed_at_once = faults.is_empty() || faults == [Fault::LosesAnswer];
            assert_eq!(plans, if landed_at_once { 1 } else { 2 }, "{faults:?}");
            assert_eq!(catalog.commits.load(Ordering::Relaxed), 2, "{faults:?}");
            let none = commit_updates(&table, &mut |_: &IcebergTable| Ok(None)).await.unwrap();
            assert_eq!(none.table().metadata_location(), table.table().metadata_location());
        }
    });
}

fn marker(checkpoint: u64, ids: &[&str]) -> CommitMarker {
    CommitMarker {
        lineage: "run".to_owned(),
        checkpoint,
        commit_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        job_id: "job".to_owned(),
        operator_id: "sink".to_owned(),
        source_position: Some("{\"orders\":42}".to_owned()),
        keeps_property: true,
        flink_checkpoint: checkpoint as i64,
    }
}

async fn marked(table: &IcebergTable, marker: &CommitMarker, path: &str) -> IcebergTable {
    let mut plan = |table: &IcebergTable| {
        let mut change = append(&[(path, 1)]);
        marker.mark(table.metadata(), &mut change)?;
        Ok(Some(change))
    };
    commit_snapshot(table, &mut plan).await.unwrap()
}

#[test]
fn a_marker_stands_in_the_snapshot_and_in_the_table() {
    block_on(async {
        let catalog = TestCatalog::new();
        let table = table(&catalog).await;
        let table = marked(&table, &marker(3, &["a", "b"]), "f1").await;
        let snapshot = table.metadata().current_snapshot().unwrap();
        let said: BTreeMap<&str, &str> = snapshot
            .summary()
            .additional_properties
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .filter(|(key, _)| key.starts_with("lakehead.") || key.starts_with("flink."))
            .collect();
        let expected = [
            ("flink.job-id", "job"),
            ("flink.max-committed-checkpoint-id", "3"),
            ("flink.operator-id", "sink"),
            ("lakehead.checkpoint", "3"),
            ("lakehead.commit-ids", "a,b"),
            ("lakehead.lineage", "run"),
            ("lakehead.source-position", "{\"orders\":42}"),
        ];
        assert_eq!(said, expected.into());
        assert_eq!(table.metadata().properties()["lakehead.committed.run"], "3 a,b");

        // More of the same checkpoint joins it, a later one replaces it.
        let table = marked(&table, &marker(3, &["c"]), "f2").await;
        assert_eq!(table.metadata().properties()["lakehead.committed.run"], "3 a,b,c");
        let table = marked(&table, &marker(4, &["d"]), "f3").await;
        assert_eq!(table.metadata().properties()["lakehead.committed.run"], "4 d");
        let metadata = table.metadata();
        for (id, is_there) in [("a", true), ("b", true), ("c", true), ("d", true), ("e", false), ("", false)]
        {
            assert_eq!(is_committed(metadata, "run", 3, id), is_there, "{id}");
        }
        assert!(!is_committed(metadata, "other", 3, "a"));
        assert_eq!(committed_snapshot(metadata, "run", "d"), metadata.current_snapshot_id());

        let table = forget(&table, "run").await.unwrap();
        assert!(!table.metadata().properties().contains_key("lakehead.committed.run"));
        let commits = catalog.commits.load(Ordering::Relaxed);
        forget(&table, "run").await.unwrap();
        assert_eq!(catalog.commits.load(Ordering::Relaxed), commits);
    });
}

#[test]
fn where_history_has_expired_a_later_checkpoint_tells_of_earlier_ones() {
    block_on(async {
        let table = table(&TestCatalog::new()).await;
        let table = marked(&table, &marker(3, &["a"]), "f1").await;
        let table = marked(&table, &marker(4, &["b"]), "f2").await;
        assert!(!is_committed(table.metadata(), "run", 2, "never"), "nothing has expired");
        let ids = |table: &IcebergTable| -> Vec<i64> {
            let current = table.metadata().current_snapshot_id();
            let snapshots = table.metadata().snapshots().map(|snapshot| snapshot.snapshot_id());
            snapshots.filter(|id| Some(*id) != current).collect()
        };
        let mut expire = |table: &IcebergTable| {
            let update = TableUpdate::RemoveSnapshots { snapshot_ids: ids(table) };
            Ok(Some(MetadataChange { updates: vec![update], ..MetadataChange::default() }))
        };
        let table = commit_updates(&table, &mut expire).await.unwrap();
        assert_eq!(table.metadata().snapshots().len(), 1);
        let metadata = table.metadata();
        assert!(is_committed(metadata, "run", 3, "a"));
        assert!(is_committed(metadata, "run", 4, "b"));
        assert!(!is_committed(metadata, "run", 4, "c"), "the same checkpoint names its own");
        assert!(!is_committed(metadata, "run", 5, "d"));
    });
}

#[test]
fn long_positions_stay_out_of_the_summary_and_ids_must_fit_a_list() {
    block_on(async {
        let table = table(&TestCatalog::new()).await;
        let long = CommitMarker { source_position: Some("x".repeat(4097)), ..marker(1, &["a"]) };
        let table = marked(&table, &long, "f1").await;
        let snapshot = table.metadata().current_snapshot().unwrap();
        assert!(!snapshot.summary().additional_properties.contains_key("lakehead.source-position"));
        for id in ["a,b", "a b", ""] {
            let error = marker(1, &[id]).mark(table.metadata(), &mut SnapshotChange::default()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Internal);
        }
    });
}

#[test]
fn different_sinks_have_different_lineages() {
    assert_eq!(lineage_of("0f3a/sink-1"), "0f3a~2fsink-1");
    let ids = ["a/b", "a~2fb", "a b", "a.b", "a"];
    let lineages: std::collections::BTreeSet<String> = ids.iter().map(|id| lineage_of(id)).collect();
    assert_eq!(lineages.len(), ids.len());
}
