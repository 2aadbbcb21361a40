//! Commits of all kinds on real files: what a snapshot then holds, and what it says.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::Ordering;

use iceberg::TableUpdate;
use iceberg::spec::{FormatVersion, Operation, SnapshotReference, SnapshotRetention, Struct, Transform};

use super::testing::{
    TestCatalog, append, commit, committed, data_in, deletes_in, live, live_of, metadata_files, partition,
    paths, removing, summary,
};
use super::{FileRemoval, MetadataChange, SnapshotChange, commit_snapshot, commit_updates};
use crate::connector::iceberg::manifest::{ManifestReader, PartitionKey};
use crate::connector::iceberg::scan::live_files;
use crate::connector::iceberg::table::IcebergTable;
use crate::connector::testing::block_on;
use crate::error::ErrorKind;

fn operation(table: &IcebergTable) -> Operation {
    table.metadata().current_snapshot().unwrap().summary().operation.clone()
}

fn said(table: &IcebergTable, key: &str) -> Option<String> {
    summary(table.metadata().current_snapshot().unwrap(), key)
}

#[test]
fn appended_files_are_live_under_the_sequence_number_of_their_snapshot() {
    block_on(async {
        for version in [FormatVersion::V1, FormatVersion::V2, FormatVersion::V3] {
            let table = TestCatalog::new().table(version, false).await;
            let table = committed(&table, append(&[("a", 3)])).await;
            let table = committed(&table, append(&[("b", 4), ("c", 5)])).await;
            let numbers: Vec<i64> = live(&table).await.values().map(|live| live.sequence_number).collect();
            assert_eq!(numbers, if version == FormatVersion::V1 { [0, 0, 0] } else { [1, 2, 2] });
            assert_eq!(operation(&table), Operation::Append);
            assert_eq!(said(&table, "added-data-files").as_deref(), Some("2"));
            assert_eq!(said(&table, "added-records").as_deref(), Some("9"));
            assert_eq!(said(&table, "changed-partition-count").as_deref(), Some("1"));
            assert_eq!(said(&table, "engine-name").as_deref(), Some("lakehead"));
            assert_eq!(said(&table, "deleted-data-files"), None);
            let snapshot = table.metadata().current_snapshot().unwrap();
            assert_eq!(snapshot.schema_id(), Some(table.metadata().current_schema_id()));
        }
    });
}

#[test]
fn deletes_alone_are_a_delete_and_with_data_an_overwrite() {
    block_on(async {
        let table = TestCatalog::new().table(FormatVersion::V2, false).await;
        let table = committed(&table, append(&[("a", 3)])).await;
        let deletes = vec![deletes_in(0, "a-deletes", Struct::empty(), 1, Some("a"))];
        let change = SnapshotChange { deletes, ..SnapshotChange::default() };
        let table = committed(&table, change).await;
        assert_eq!(operation(&table), Operation::Delete);
        let deletes = vec![deletes_in(0, "a-deletes-2", Struct::empty(), 2, Some("a"))];
        let table = committed(&table, SnapshotChange { deletes, ..append(&[("b", 2)]) }).await;
        assert_eq!(operation(&table), Operation::Overwrite);
        assert_eq!(said(&table, "total-position-deletes").as_deref(), Some("3"));
        assert_eq!(said(&table, "added-position-delete-files").as_deref(), Some("1"));
        assert_eq!(paths(&table).await, ["a", "a-deletes", "a-deletes-2", "b"]);
    });
}

#[test]
fn a_removed_data_file_takes_the_deletes_along_that_are_about_it_alone() {
    block_on(async {
        let table = TestCatalog::new().table(FormatVersion::V2, false).await;
        let table = committed(&table, append(&[("a", 3), ("b", 3)])).await;
        let deletes = vec![
            deletes_in(0, "of-a", Struct::empty(), 1, Some("a")),
            deletes_in(0, "of-b", Struct::empty(), 1, Some("b")),
            deletes_in(0, "of-any", Struct::empty(), 1, None),
        ];
        let table = committed(&table, SnapshotChange { deletes, ..SnapshotChange::default() }).await;
        let change = SnapshotChange { removal: removing(&["a"]), ..append(&[("c", 1)]) };
        let table = committed(&table, change).await;
        assert_eq!(paths(&table).await, ["b", "c", "of-any", "of-b"]);
        assert_eq!(operation(&table), Operation::Overwrite);
        assert_eq!(said(&table, "deleted-data-files").as_deref(), Some("1"));
        assert_eq!(said(&table, "removed-position-delete-files").as_deref(), Some("1"));
        // What is older than all data that stays applies to none of it.
        let change = SnapshotChange { removal: removing(&["b"]), ..SnapshotChange::default() };
        let table = committed(&table, change).await;
        assert_eq!(paths(&table).await, ["c"]);
        assert_eq!(operation(&table), Operation::Delete);
    });
}

#[test]
fn partitions_and_whole_tables_are_replaced_in_one_snapshot() {
    block_on(async {
        for version in [FormatVersion::V1, FormatVersion::V2, FormatVersion::V3] {
            let table = TestCatalog::new().table(version, true).await;
            let files = |names: &[(&str, &str)]| SnapshotChange {
                data: names.iter().map(|(path, d)| data_in(0, path, partition(d), 2)).collect(),
                ..SnapshotChange::default()
            };
            let table = committed(&table, files(&[("x1", "x"), ("x2", "x"), ("y1", "y")])).await;
            let removal = FileRemoval::Partitions(HashSet::from([PartitionKey::of(0, &partition("x"))]));
            let table = committed(&table, SnapshotChange { removal, ..files(&[("x3", "x")]) }).await;
            assert_eq!(paths(&table).await, ["x3", "y1"]);
            assert_eq!(operation(&table), Operation::Overwrite);
            assert_eq!(said(&table, "changed-partition-count").as_deref(), Some("1"));
            let removal = FileRemoval::Everything;
            let table = committed(&table, SnapshotChange { removal, ..files(&[("z1", "z")]) }).await;
            assert_eq!(paths(&table).await, ["z1"]);
            let removal = FileRemoval::Everything;
            let table = committed(&table, SnapshotChange { removal, ..SnapshotChange::default() }).await;
            assert_eq!(paths(&table).await, [""; 0]);
            assert_eq!(operation(&table), Operation::Delete);
            // The snapshots before still hold what they held.
            let mut sizes = Vec::new();
            for snapshot in table.metadata().snapshots() {
                sizes.push(live_of(&table, snapshot).await.len());
            }
            sizes.sort_unstable();
            assert_eq!(sizes, [0, 1, 2, 3]);
        }
    });
}

#[test]
fn rewritten_files_keep_the_sequence_number_that_they_were_read_at() {
    block_on(async {
        let table = TestCatalog::new().table(FormatVersion::V2, false).await;
        let table = committed(&table, append(&[("a", 3), ("b", 3)])).await;
        let deletes = vec![deletes_in(0, "of-any", Struct::empty(), 1, None)];
        let table = committed(&table, SnapshotChange { deletes, ..SnapshotChange::default() }).await;
        let removal = removing(&["a", "b"]);
        let change = SnapshotChange { removal, rewritten_at: Some(1), ..append(&[("ab", 6)]) };
        let table = committed(&table, change).await;
        assert_eq!(operation(&table), Operation::Replace);
        let live = live(&table).await;
        assert_eq!(live["ab"].sequence_number, 1);
        assert_eq!(live["of-any"].sequence_number, 2);
    });
}

#[test]
fn a_file_that_is_gone_cannot_be_removed() {
    block_on(async {
        let table = TestCatalog::new().table(FormatVersion::V2, false).await;
        let table = committed(&table, append(&[("a", 3)])).await;
        let change = SnapshotChange { removal: removing(&["a", "zz"]), ..append(&[("b", 1)]) };
        let error = commit(&table, change).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let snapshot = table.metadata().current_snapshot_id().unwrap();
        assert_eq!(
            error.message(),
            format!("file 'zz' is no more in table 'db.t' (snapshot {snapshot}), and cannot be removed")
        );
        // What the attempt had written is gone too.
        assert_eq!(metadata_files(&table, ".avro").len(), 2);
    });
}

#[test]
fn formats_refuse_deletes_that_they_cannot_hold() {
    block_on(async {
        for (version, kind, message) in [
            (FormatVersion::V1, ErrorKind::Validation, "Cannot write delete files in a v1 table"),
            (
                FormatVersion::V3,
                ErrorKind::Unsupported,
                "updates and deletes in table 'db.t' of format version 3 are not supported yet",
            ),
        ] {
            let table = TestCatalog::new().table(version, false).await;
            let deletes = vec![deletes_in(0, "d", Struct::empty(), 1, None)];
            let change = SnapshotChange { deletes, ..append(&[("a", 1)]) };
            let error = commit(&table, change).await.unwrap_err();
            assert_eq!((error.kind(), error.message()), (kind, message));
            assert!(error.hint_text().is_some());
            assert!(table.reload().await.unwrap().metadata().current_snapshot().is_none());
        }
    });
}

#[test]
fn nothing_to_change_is_no_commit() {
    block_on(async {
        let catalog = TestCatalog::new();
        let table = catalog.table(FormatVersion::V2, true).await;
        let summary: BTreeMap<_, _> = [("note".to_owned(), "x".to_owned())].into();
        for removal in [
            FileRemoval::Nothing,
            FileRemoval::Everything,
            FileRemoval::Partitions(HashSet::from([PartitionKey::of(0, &partition("x"))])),
            removing(&[]),
        ] {
            let summary = summary.clone();
            let change = SnapshotChange { removal, summary, ..SnapshotChange::default() };
            committed(&table, change).await;
            assert_eq!(
                commit_snapshot(&table, &mut |_: &IcebergTable| Ok(None)).await.unwrap().metadata(),
                table.metadata()
            );
        }
        assert_eq!(catalog.commits.load(Ordering::Relaxed), 0);
    });
}

#[test]
fn properties_alone_make_no_snapshot_and_with_files_come_in_the_same_commit() {
    block_on(async {
        let catalog = TestCatalog::new();
        let table = catalog.table(FormatVersion::V2, false).await;
        let properties = || [("own".to_owned(), "1".to_owned())].into();
        let change = SnapshotChange { properties: properties(), ..SnapshotChange::default() };
        let table = committed(&table, change).await;
        assert!(table.metadata().current_snapshot().is_none());
        let change = SnapshotChange {
            removed_properties: vec!["own".to_owned()],
            properties: [("other".to_owned(), "2".to_owned())].into(),
            ..append(&[("a", 1)])
        };
        let table = committed(&table, change).await;
        assert_eq!(table.metadata().properties().get("own"), None);
        assert_eq!(table.metadata().properties()["other"], "2");
        assert_eq!(paths(&table).await, ["a"]);
        assert_eq!(catalog.commits.load(Ordering::Relaxed), 2);
        // What is so already is no change.
        let change = SnapshotChange {
            removed_properties: vec!["own".to_owned()],
            properties: [("other".to_owned(), "2".to_owned())].into(),
            ..SnapshotChange::default()
        };
        committed(&table, change).await;
        assert_eq!(catalog.commits.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn a_branch_begins_at_the_current_snapshot_and_keeps_its_retention() {
    block_on(async {
        let table = TestCatalog::new().table(FormatVersion::V2, false).await;
        let table = committed(&table, append(&[("a", 1)])).await;
        let main = table.metadata().current_snapshot_id();
        let on_branch =
            |files: &[(&str, u64)]| SnapshotChange { branch: Some("dev".to_owned()), ..append(files) };
        let table = committed(&table, on_branch(&[("b", 1)])).await;
        assert_eq!(table.metadata().current_snapshot_id(), main);
        let dev = table.metadata().snapshot_for_ref("dev").unwrap();
        assert_eq!(dev.parent_snapshot_id(), main);
        assert_eq!(live_of(&table, dev).await.into_keys().collect::<Vec<_>>(), ["a", "b"]);

        let retention = SnapshotRetention::branch(Some(7), Some(8), Some(9));
        let reference = SnapshotReference::new(dev.snapshot_id(), retention.clone());
        let mut keep = |_: &IcebergTable| {
            let update =
                TableUpdate::SetSnapshotRef { ref_name: "dev".to_owned(), reference: reference.clone() };
            Ok(Some(MetadataChange { updates: vec![update], ..MetadataChange::default() }))
        };
        let table = commit_updates(&table, &mut keep).await.unwrap();
        let table = committed(&table, append(&[("c", 1)])).await;
        let table = committed(&table, on_branch(&[("d", 1)])).await;
        let dev = table.metadata().snapshot_for_ref("dev").unwrap();
        assert_eq!(live_of(&table, dev).await.into_keys().collect::<Vec<_>>(), ["a", "b", "d"]);
        assert_eq!(paths(&table).await, ["a", "c"]);
        let json = serde_json::to_value(table.metadata()).unwrap();
        let kept: SnapshotReference = serde_json::from_value(json["refs"]["dev"].clone()).unwrap();
        assert_eq!(kept.retention, retention);
    });
}

#[test]
fn a_tag_is_no_branch() {
    block_on(async {
        let table = TestCatalog::new().table(FormatVersion::V2, false).await;
        let table = committed(&table, append(&[("a", 1)])).await;
        let id = table.metadata().current_snapshot_id().unwrap();
        let reference = SnapshotReference::new(id, SnapshotRetention::Tag { max_ref_age_ms: None });
        let mut tag = |_: &IcebergTable| {
            let update =
                TableUpdate::SetSnapshotRef { ref_name: "v1".to_owned(), reference: reference.clone() };
            Ok(Some(MetadataChange { updates: vec![update], ..MetadataChange::default() }))
        };
        let table = commit_updates(&table, &mut tag).await.unwrap();
        let change = SnapshotChange { branch: Some("v1".to_owned()), ..append(&[("b", 1)]) };
        let error = commit(&table, change).await.unwrap_err();
        assert!(error.message().contains("branch 'v1' of table 'db.t'"), "{error}");
    });
}

#[test]
fn snapshots_are_not_older_than_the_table() {
    block_on(async {
        let table = TestCatalog::new().table(FormatVersion::V2, false).await;
        let mut before = table.metadata().last_updated_ms();
        let mut table = table;
        for path in ["a", "b", "c"] {
            table = committed(&table, append(&[(path, 1)])).await;
            let now = table.metadata().current_snapshot().unwrap().timestamp_ms();
            assert!(now >= before);
            before = now;
        }
    });
}

#[test]
fn eight_writers_lose_nothing() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    runtime.block_on(async {
        let catalog = TestCatalog::new();
        let table = catalog.table(FormatVersion::V2, false).await;
        let writers = (0..8).map(|writer| {
            let table = table.clone();
            tokio::spawn(async move {
                for n in 0..5 {
                    committed(&table, append(&[(&format!("w{writer}-{n}"), 1)])).await;
                }
            })
        });
        for writer in writers.collect::<Vec<_>>() {
            writer.await.unwrap();
        }
        let table = table.reload().await.unwrap();
        assert_eq!(live(&table).await.len(), 40);
        assert_eq!(table.metadata().snapshots().len(), 40);
        assert_eq!(table.metadata().history().len(), 40);
        // What attempts in vain have written is gone: a list for each snapshot, a manifest for each file, and those merged.
        let lists = metadata_files(&table, ".avro").into_iter().filter(|name| name.starts_with("snap-"));
        assert_eq!(lists.count(), 40);
    });
}

#[test]
fn a_table_of_format_1_with_a_dropped_partition_field_goes_on_being_written() {
    block_on(async {
        let catalog = TestCatalog::new();
        let table = catalog.table(FormatVersion::V1, true).await;
        catalog.rewrite(&table, |json| {
            let void =
                serde_json::json!([{"name": "d", "transform": "void", "source-id": 2, "field-id": 1000}]);
            json["partition-specs"] = serde_json::json!([{"spec-id": 0, "fields": void}]);
            json["partition-spec"] = void;
        });
        let mut table = table.reload().await.unwrap();
        let add = |path: &str| SnapshotChange {
            data: vec![data_in(0, path, Struct::from_iter([None]), 1)],
            ..SnapshotChange::default()
        };
        for n in 0..25 {
            table = committed(&table, add(&format!("f{n:02}"))).await;
        }
        let reader = ManifestReader::new(&table, None);
        let manifests = reader.list(table.metadata().current_snapshot().unwrap()).await.unwrap();
        assert!(manifests.len() < 20, "{} manifests were merged", manifests.len());
        let removal = FileRemoval::Partitions([PartitionKey::of(0, &Struct::from_iter([None]))].into());
        let table = committed(&table, SnapshotChange { removal, ..add("g") }).await;
        let fields = table.metadata().default_partition_spec().fields();
        assert_eq!((fields[0].name.as_str(), fields[0].transform), ("d", Transform::Void));
        let files = live_files(&table, None).await.unwrap();
        assert_eq!(files.iter().map(|live| live.data.file.file_path()).collect::<Vec<_>>(), ["g"]);
        let mut all = 0;
        let mut count = |_: &str| {
            all += 1;
            Ok(())
        };
        reader.for_each_location(&manifests.iter().collect::<Vec<_>>(), &mut count).await.unwrap();
        assert_eq!(all, 25);
    });
}
