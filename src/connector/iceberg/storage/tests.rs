//! Tests of the store of local files: names, folders, wholeness, and who else reads and writes there.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::buffered::BufWriter;
use object_store::{ObjectStore, ObjectStoreExt, WriteMultipart};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;

use super::FileStore;
use super::testing::{FailingStore, Fault, Operation};
use crate::connector::iceberg::error::from_iceberg;
use crate::error::ErrorKind;

/// Names that something on the way might take apart, decode or encode.
const NAMES: [&str; 12] = [
    "a b",
    "a%20b",
    "%",
    "day=2026-11-30 10%3A00",
    "a:b",
    "ä漢😀",
    "a#b",
    "a?b&c",
    "[a]{b}",
    "a\\b",
    "~`^|<>\"*'",
    "+",
];

fn folder() -> (TempDir, String) {
    let folder = TempDir::new().unwrap();
    let location = format!("file:{}", folder.path().display());
    (folder, location)
}

/// Returns the names in a folder, hidden ones too.
fn names(folder: &std::path::Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn names_are_the_same_for_all_who_read_and_write() {
    let (folder, location) = folder();
    let files = FileStore::local();
    let io = files.file_io();
    for name in NAMES {
        let file = format!("{location}/{name}/{name}");
        let on_disk = folder.path().join(name).join(name);
        files.write(&file, Bytes::from(name)).await.unwrap();
        assert_eq!(std::fs::read_to_string(&on_disk).unwrap(), name);
        assert_eq!(files.read(&file).await.unwrap(), name);
        assert_eq!(files.size(&file).await.unwrap(), Some(name.len() as u64));
        // The crate.
        assert_eq!(io.new_input(&file).unwrap().read().await.unwrap(), name);
        let part = io.new_input(&file).unwrap().reader().await.unwrap().read(0..1).await.unwrap();
        assert_eq!(part, name.as_bytes()[..1]);
        let mut writer = io.new_output(&file).unwrap().writer().await.unwrap();
        writer.write(Bytes::from_static(b"new")).await.unwrap();
        assert_eq!(std::fs::read_to_string(&on_disk).unwrap(), name);
        writer.close().await.unwrap();
        assert_eq!(std::fs::read_to_string(&on_disk).unwrap(), "new");
        // Object stores, as DataFusion uses them.
        let (store, path) = files.resolve(&file).unwrap();
        assert_eq!(store.get_range(&path, 0..2).await.unwrap(), "ne");
        let listed: Vec<_> = store
            .list(Some(&files.resolve(&format!("{location}/{name}")).unwrap().1))
            .try_collect()
            .await
            .unwrap();
        assert_eq!(listed.iter().map(|file| &file.location).collect::<Vec<_>>(), [&path]);
    }
    let entries = files.list(&location).await.unwrap();
    let mut expected = NAMES.map(str::to_owned);
    expected.sort();
    assert!(entries.iter().all(super::file_store::FolderEntry::is_folder));
    assert_eq!(entries.into_iter().map(|entry| entry.name).collect::<Vec<_>>(), expected);
    for name in NAMES {
        files.delete(&format!("{location}/{name}/{name}")).await.unwrap();
        assert!(files.remove_empty_folder(&format!("{location}/{name}")).await.unwrap());
    }
    assert!(names(folder.path()).is_empty());
}

#[tokio::test]
async fn a_file_is_created_once() {
    let (folder, location) = folder();
    let files = FileStore::local();
    let file = format!("{location}/new/f");
    assert!(files.create(&file, Bytes::from_static(b"1")).await.unwrap());
    assert!(!files.create(&file, Bytes::from_static(b"2")).await.unwrap());
    assert!(!files.create_in_folder(&file, Bytes::from_static(b"3")).await.unwrap());
    assert_eq!(files.read(&file).await.unwrap(), "1");
    assert_eq!(names(&folder.path().join("new")), ["f"]);
    // Nothing brings a folder back that is gone.
    let gone = format!("{location}/gone/f");
    for error in [
        files.create_in_folder(&gone, Bytes::new()).await.unwrap_err(),
        files.write_into_folder(&gone, Bytes::new()).await.unwrap_err(),
        files.read(&gone).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.message().contains(&gone), "{error}");
    }
    assert_eq!(names(folder.path()), ["new"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_who_create_a_file_one_has() {
    let (folder, location) = folder();
    let creations = (0..16).map(|writer: u32| {
        let (files, file) = (FileStore::local(), format!("{location}/f"));
        tokio::spawn(async move {
            (files.create(&file, Bytes::from(vec![b'a'; 10_000 + writer as usize])).await.unwrap(), writer)
        })
    });
    let mut winners = Vec::new();
    for creation in creations.collect::<Vec<_>>() {
        let (created, writer) = creation.await.unwrap();
        winners.extend(created.then_some(writer));
    }
    let [winner] = winners[..] else { panic!("{winners:?}") };
    assert_eq!(std::fs::metadata(folder.path().join("f")).unwrap().len(), u64::from(10_000 + winner));
    assert_eq!(names(folder.path()), ["f"]);
}

#[tokio::test]
async fn a_large_file_is_there_when_it_is_complete() {
    let (folder, location) = folder();
    let files = FileStore::local();
    let (store, path) = files.resolve(&format!("{location}/part=1/f#1")).unwrap();
    let mut upload = WriteMultipart::new_with_chunk_size(store.put_multipart(&path).await.unwrap(), 1000);
    upload.write(&[1; 10_500]);
    upload.wait_for_capacity(0).await.unwrap();
    let visible = |folder: PathBuf| names(&folder).into_iter().filter(|name| !name.starts_with('.')).count();
    assert_eq!(visible(folder.path().join("part=1")), 0);
    upload.finish().await.unwrap();
    assert_eq!(names(&folder.path().join("part=1")), ["f#1"]);
    assert_eq!(std::fs::read(folder.path().join("part=1/f#1")).unwrap(), [1; 10_500]);
    // Given up, it leaves nothing.
    let (store, path) = files.resolve(&format!("{location}/part=1/g")).unwrap();
    let mut upload = store.put_multipart(&path).await.unwrap();
    upload.put_part(vec![1; 10].into()).await.unwrap();
    upload.abort().await.unwrap();
    let mut dropped = BufWriter::with_capacity(Arc::clone(&store), path, 10);
    dropped.write_all(&[1; 100]).await.unwrap();
    drop(dropped);
    // A thread of its own removes what was written.
    while names(&folder.path().join("part=1")) != ["f#1"] {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn checksums_of_hadoop_go_with_their_files() {
    let (folder, location) = folder();
    let files = FileStore::local();
    let checksum = folder.path().join(".f.crc");
    let file = format!("{location}/f");
    for how in 0..3 {
        std::fs::write(&checksum, "crc").unwrap();
        match how {
            0 => files.write(&file, Bytes::from_static(b"1")).await.unwrap(),
            1 => files.write_into_folder(&file, Bytes::from_static(b"2")).await.unwrap(),
            _ => files.delete(&file).await.unwrap(),
        }
        assert!(!checksum.exists(), "{how}");
    }
    files.delete(&file).await.unwrap();
}

#[tokio::test]
async fn folders_are_made_found_and_removed_at_once() {
    let (folder, location) = folder();
    let files = FileStore::local();
    let inner = format!("{location}/a/b");
    files.create_folder(&inner).await.unwrap();
    files.create_folder(&inner).await.unwrap();
    assert!(files.folder_exists(&inner).await.unwrap());
    assert!(!files.exists(&inner).await.unwrap());
    let file = format!("{inner}/f");
    files.write(&file, Bytes::new()).await.unwrap();
    assert!(files.exists(&file).await.unwrap());
    for none in [&file, &format!("{file}/below"), &format!("{location}/none")] {
        assert!(!files.folder_exists(none).await.unwrap(), "{none}");
    }
    assert!(files.list(&format!("{location}/none")).await.unwrap().is_empty());
    assert!(files.create_folder(&file).await.is_err());
    assert!(!files.remove_empty_folder(&inner).await.unwrap());
    std::fs::create_dir_all(folder.path().join("a/x/y/z")).unwrap();
    files.remove_empty_folders(&format!("{location}/a")).await.unwrap();
    assert_eq!(names(&folder.path().join("a")), ["b"]);
    files.remove_folder(&format!("{location}/a")).await.unwrap();
    files.remove_folder(&format!("{location}/a")).await.unwrap();
    assert!(files.remove_empty_folder(&format!("{location}/a")).await.unwrap());
    assert!(names(folder.path()).is_empty());
}

#[tokio::test]
async fn a_failing_store_fails_as_it_is_told() {
    let (folder, location) = folder();
    let faults = FailingStore::new();
    let files = faults.files();
    let file = format!("{location}/f");
    faults.fail_at(2, Fault::NoSpace);
    files.write(&file, Bytes::from_static(b"1")).await.unwrap();
    let error = files.write(&file, Bytes::from_static(b"2")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains(&file) && error.hint_text().is_some(), "{error}");
    assert_eq!(files.read(&file).await.unwrap(), "1");
    let done: Vec<Operation> = faults.log().into_iter().map(|(operation, _)| operation).collect();
    assert_eq!(done, [Operation::Put, Operation::Put, Operation::Get]);
    faults.fail_when(Operation::Put, "f", Fault::AnswerLost);
    assert!(files.write(&file, Bytes::from_static(b"3")).await.is_err());
    assert_eq!(files.read(&file).await.unwrap(), "3");
    faults.fail_always(Operation::Get, "", Fault::PermissionDenied);
    let error = from_iceberg(files.file_io().new_input(&file).unwrap().read().await.unwrap_err());
    assert_eq!(error.kind(), ErrorKind::Rejected);
    assert_eq!(files.size(&file).await.unwrap_err().kind(), ErrorKind::Rejected);
    assert!(faults.is_armed());
    faults.heal();
    assert_eq!(files.size(&file).await.unwrap(), Some(1));
    // A large file fails in a part, or when it is completed.
    for operation in [Operation::Part, Operation::Put] {
        faults.fail_when(operation, "large", Fault::NoSpace);
        let (store, path) = files.resolve(&format!("{location}/large")).unwrap();
        let mut writer = BufWriter::with_capacity(store, path, 10);
        let written = async {
            writer.write_all(&[0; 1000]).await?;
            writer.shutdown().await
        };
        assert!(written.await.is_err());
        drop(writer);
        assert!(!faults.is_armed());
    }
    while names(folder.path()) != ["f"] {
        tokio::task::yield_now().await;
    }
}
