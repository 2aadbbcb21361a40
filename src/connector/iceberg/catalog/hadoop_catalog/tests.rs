//! Tests of the catalog: its layout, what others may have left in it, and many writers at once.

use tempfile::TempDir;

use super::*;
use crate::connector::iceberg::catalog::testing::{append, commit_concurrently, creation, ident, set};
use crate::connector::iceberg::error::from_iceberg;
use crate::connector::iceberg::storage::testing::{FailingStore, Fault, Operation};

/// A warehouse with the table `db.t`.
struct Warehouse {
    folder: TempDir,
    catalog: HadoopCatalog,
    faults: FailingStore,
}

impl Warehouse {
    async fn new(properties: &[(&str, &str)]) -> Warehouse {
        let folder = TempDir::new().unwrap();
        let faults = FailingStore::new();
        let location = format!("file:{}", folder.path().display());
        let catalog = HadoopCatalog::new(&location, faults.files()).unwrap();
        catalog.make_table(ident().namespace(), creation("t", properties)).await.unwrap();
        Warehouse { folder, catalog, faults }
    }

    fn metadata(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("db/t/metadata").join(name)
    }

    /// Commits and returns the version.
    async fn commit(&self, key: &str, value: &str) -> Result<u64, CommitError> {
        let table = self.catalog.commit(&ident(), &[], set(key, value)).await?;
        let location = table.metadata_location().unwrap();
        Ok(version_of(location.rsplit('/').next().unwrap()).unwrap())
    }

    async fn version(&self) -> u64 {
        self.catalog.load(&ident()).await.unwrap().0.number
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path().join("db/t/metadata")).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

#[tokio::test]
async fn a_table_is_created_loaded_and_committed_in_the_layout_of_hadoop() {
    let warehouse = Warehouse::new(&[]).await;
    let location = format!("file:{}/db/t", warehouse.folder.path().display());
    assert_eq!(warehouse.commit("a", "1").await.unwrap(), 2);
    let (version, table) = warehouse.catalog.load(&ident()).await.unwrap();
    assert_eq!(version.location, format!("{location}/metadata/v2.metadata.json"));
    assert_eq!(table.metadata().location(), location);
    assert_eq!(
        table.metadata().metadata_log()[0].metadata_file,
        format!("{location}/metadata/v1.metadata.json")
    );
    assert_eq!(warehouse.names(), ["v1.metadata.json", "v2.metadata.json", "version-hint.text"]);
    assert_eq!(std::fs::read_to_string(warehouse.metadata("version-hint.text")).unwrap(), "2");
    // The crate reads through our store.
    let read = iceberg::spec::TableMetadata::read_from(table.file_io(), &version.location).await.unwrap();
    assert_eq!(&read, table.metadata());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_writers_lose_no_commit() {
    let warehouse = Warehouse::new(&[]).await;
    // Each has a catalog of its own, as other processes do.
    let catalog = || HadoopCatalog::new(&warehouse.catalog.warehouse, FileStore::local()).unwrap();
    commit_concurrently((0..8).map(|_| catalog()).collect()).await;
    let (version, table) = warehouse.catalog.load(&ident()).await.unwrap();
    assert_eq!((version.number, table.metadata().properties().len()), (41, 40));
}

#[tokio::test]
async fn a_hint_may_be_old_garbage_or_missing() {
    let warehouse = Warehouse::new(&[]).await;
    for version in 2..=11 {
        assert_eq!(warehouse.commit("v", &version.to_string()).await.unwrap(), version);
    }
    let hint = warehouse.metadata("version-hint.text");
    for text in ["3", "nonsense", "", "10\n", "-1"] {
        std::fs::write(&hint, text).unwrap();
        assert_eq!(warehouse.version().await, 11, "{text:?}");
    }
    std::fs::remove_file(&hint).unwrap();
    assert_eq!(warehouse.version().await, 11);
    // The version that an old hint tells may be gone.
    std::fs::write(&hint, "3").unwrap();
    std::fs::remove_file(warehouse.metadata("v3.metadata.json")).unwrap();
    assert_eq!(warehouse.version().await, 11);
    assert_eq!(warehouse.commit("v", "12").await.unwrap(), 12);
}

#[tokio::test]
async fn a_version_that_the_hint_tells_and_that_is_missing_is_an_error_and_no_older_table() {
    let warehouse = Warehouse::new(&[]).await;
    for version in 2..=5 {
        assert_eq!(warehouse.commit("v", &version.to_string()).await.unwrap(), version);
    }
    let refusal = async || warehouse.catalog.load(&ident()).await.unwrap_err();
    for hint in ["7", "18446744073709551615"] {
        std::fs::write(warehouse.metadata("version-hint.text"), hint).unwrap();
        let error = refusal().await;
        assert!(
            error.message().starts_with(&format!("Metadata file for version {hint} is missing")),
            "{error}"
        );
        assert!(error.message().contains(&format!("v{hint}.metadata.json")), "{error}");
        assert!(error.hint_text().unwrap().contains("write 5 into"), "{error:?}");
    }
    std::fs::write(warehouse.metadata("version-hint.text"), "5").unwrap();
    for version in 1..=5 {
        std::fs::remove_file(warehouse.metadata(&format!("v{version}.metadata.json"))).unwrap();
        assert!(version == 5 || warehouse.catalog.load(&ident()).await.is_ok());
    }
    // Nothing is built over what is left, and it still is a table: one that can be dropped.
    for hint in ["5", "nonsense"] {
        std::fs::write(warehouse.metadata("version-hint.text"), hint).unwrap();
        assert_eq!(refusal().await.kind(), ErrorKind::Data);
        let made = warehouse.catalog.make_table(ident().namespace(), creation("t", &[])).await;
        assert!(made.unwrap_err().message().contains("missing"));
        assert_eq!(warehouse.catalog.tables(ident().namespace()).await.unwrap(), [ident()]);
    }
    warehouse.catalog.purge_table(&ident()).await.unwrap();
    assert!(!warehouse.catalog.table_exists(&ident()).await.unwrap());
    warehouse.catalog.make_table(ident().namespace(), creation("t", &[])).await.unwrap();
}

#[tokio::test]
async fn a_writer_that_was_paused_brings_no_deleted_version_back() {
    let keep = [
        ("write.metadata.delete-after-commit.enabled", "true"),
        ("write.metadata.previous-versions-max", "2"),
    ];
    let warehouse = Warehouse::new(&keep).await;
    let (base, _) = warehouse.catalog.load(&ident()).await.unwrap();
    for version in 2..=9 {
        warehouse.commit("v", &version.to_string()).await.unwrap();
    }
    let catalog = &warehouse.catalog;
    let folder = catalog.table_folder(&ident()).unwrap();
    let versions = Versions::of(&catalog.files, &folder);
    let next = versions.named(2, Codec::Plain);
    let bytes = bytes::Bytes::from("{}");
    // Its base is gone: so is what others have committed behind it.
    let outcome = versions.publish(&ident(), &base, &next, &[7], bytes.clone()).await;
    assert!(matches!(outcome, Err(CommitError::Conflict(_))), "{outcome:?}");
    // It had looked before it was paused.
    let settle = async |snapshots: &[i64]| {
        assert!(catalog.files.create_in_folder(&next.location, bytes.clone()).await.unwrap());
        versions.settle(&ident(), &base, &next, snapshots).await
    };
    let outcome = settle(&[7]).await;
    assert!(matches!(outcome, Err(CommitError::Conflict(_))), "{outcome:?}");
    assert!(!warehouse.metadata("v2.metadata.json").exists());
    // A commit without a snapshot leaves nothing by which it could be told.
    let outcome = settle(&[]).await;
    assert!(matches!(outcome, Err(CommitError::Unknown(_))), "{outcome:?}");
    assert_eq!(warehouse.version().await, 9);
    // And what newer metadata names has landed.
    let named = versions.named(8, Codec::Plain);
    versions.settle(&ident(), &versions.named(7, Codec::Plain), &named, &[7]).await.unwrap();
    assert_eq!(std::fs::read_to_string(warehouse.metadata("version-hint.text")).unwrap(), "9");
}

#[tokio::test]
async fn what_landed_counts_although_its_hint_was_never_written() {
    let warehouse = Warehouse::new(&[]).await;
    warehouse.faults.fail_when(Operation::Put, "version-hint.text", Fault::NoSpace);
    assert_eq!(warehouse.commit("a", "1").await.unwrap(), 2);
    assert_eq!(std::fs::read_to_string(warehouse.metadata("version-hint.text")).unwrap(), "1");
    assert_eq!(warehouse.version().await, 2);
}

#[tokio::test]
async fn a_lost_answer_is_found_out() {
    let warehouse = Warehouse::new(&[]).await;
    warehouse.faults.fail_when(Operation::Put, "v2.metadata.json", Fault::AnswerLost);
    assert_eq!(warehouse.commit("a", "1").await.unwrap(), 2);
    // Nobody can tell while the file cannot be read either; before that it is looked for under two names that contain this one.
    warehouse.faults.fail_when(Operation::Put, "v3.metadata.json", Fault::AnswerLost);
    warehouse.faults.fail_nth(3, Operation::Get, "v3.metadata.json", Fault::Unreachable);
    let outcome = warehouse.commit("b", "1").await;
    assert!(matches!(outcome, Err(CommitError::Unknown(_))), "{outcome:?}");
    assert!(!warehouse.faults.is_armed());
    assert_eq!(warehouse.version().await, 3);
    // Somebody else took the version.
    let location = |number| warehouse.metadata(&format!("v{number}.metadata.json")).display().to_string();
    let version = |number| Version { number, location: location(number) };
    std::fs::write(warehouse.metadata("v4.metadata.json"), "{}").unwrap();
    let lost = Versions::of(&warehouse.catalog.files, &warehouse.catalog.table_folder(&ident()).unwrap())
        .publish(&ident(), &version(3), &version(4), &[], bytes::Bytes::from("[]"))
        .await;
    assert!(matches!(lost, Err(CommitError::Conflict(_))));
}

#[tokio::test]
async fn a_commit_that_failed_shows_nothing() {
    let warehouse = Warehouse::new(&[]).await;
    for (fault, text) in
        [(Fault::PermissionDenied, "permission"), (Fault::NoSpace, "storage"), (Fault::Unreachable, "")]
    {
        warehouse.faults.fail_when(Operation::Put, "v2.metadata.json", fault);
        let Err(CommitError::Failed(error)) = warehouse.commit("a", "1").await else { panic!("{fault:?}") };
        assert!(error.message().contains("v2.metadata.json"), "{error}");
        assert!(error.message().to_lowercase().contains(text), "{error}");
    }
    assert_eq!(warehouse.version().await, 1);
    assert_eq!(warehouse.names(), ["v1.metadata.json", "version-hint.text"]);
}

#[tokio::test]
async fn a_table_that_was_dropped_does_not_come_back_by_a_commit() {
    let warehouse = Warehouse::new(&[]).await;
    let versions = Versions::of(&warehouse.catalog.files, "/nowhere");
    let [base, next] = [1, 2].map(|number| versions.named(number, Codec::Plain));
    let lost = versions.publish(&ident(), &base, &next, &[], bytes::Bytes::from("{}")).await;
    assert!(matches!(lost, Err(CommitError::Failed(error)) if error.kind() == ErrorKind::NotFound));
    std::fs::remove_dir_all(warehouse.folder.path().join("db/t")).unwrap();
    let Err(CommitError::Failed(error)) = warehouse.commit("a", "1").await else { panic!() };
    assert_eq!(error.message(), "Table does not exist: db.t");
    assert_eq!(std::fs::read_dir(warehouse.folder.path().join("db")).unwrap().count(), 0);
}

#[tokio::test]
async fn old_metadata_files_go_if_the_table_wants_that() {
    let keep = [
        ("write.metadata.delete-after-commit.enabled", "true"),
        ("write.metadata.previous-versions-max", "2"),
    ];
    let warehouse = Warehouse::new(&keep).await;
    for version in 2..=5 {
        warehouse.commit("v", &version.to_string()).await.unwrap();
    }
    assert_eq!(
        warehouse.names(),
        ["v3.metadata.json", "v4.metadata.json", "v5.metadata.json", "version-hint.text"]
    );
    let (_, table) = warehouse.catalog.load(&ident()).await.unwrap();
    assert_eq!(table.metadata().metadata_log().len(), 2);
}

#[tokio::test]
async fn gzip_is_read_under_both_names_and_written_when_asked() {
    let warehouse = Warehouse::new(&[("write.metadata.compression-codec", "gzip")]).await;
    assert_eq!(warehouse.commit("a", "1").await.unwrap(), 2);
    assert_eq!(warehouse.names(), ["v1.metadata.json", "v2.gz.metadata.json", "version-hint.text"]);
    std::fs::rename(warehouse.metadata("v2.gz.metadata.json"), warehouse.metadata("v2.metadata.json.gz"))
        .unwrap();
    assert_eq!(warehouse.version().await, 2);
    // The codec of a version is what the version before says, so that no two writers take it under two names.
    assert_eq!(warehouse.commit("write.metadata.compression-codec", "none").await.unwrap(), 3);
    assert_eq!(warehouse.commit("a", "2").await.unwrap(), 4);
    assert!(
        warehouse.metadata("v3.gz.metadata.json").exists() && warehouse.metadata("v4.metadata.json").exists()
    );
    let Err(CommitError::Failed(error)) = warehouse.commit("write.metadata.compression-codec", "lzo").await
    else {
        panic!()
    };
    assert!(error.message().contains("'lzo'"));
}

#[tokio::test]
async fn damaged_metadata_is_named() {
    let warehouse = Warehouse::new(&[]).await;
    let file = warehouse.metadata("v1.metadata.json");
    let whole = std::fs::read_to_string(&file).unwrap();
    let other_version = whole.replace("\"format-version\":2", "\"format-version\":4");
    for (content, part) in [
        ("", "it is empty"),
        ("{", "cannot be used"),
        ("\u{1f}\u{8b}", "cannot be used"),
        (&whole[..whole.len() / 2], "cannot be used"),
        (&other_version, "has format version 4"),
    ] {
        std::fs::write(&file, content).unwrap();
        let error = warehouse.catalog.load(&ident()).await.unwrap_err();
        assert!(error.message().contains("v1.metadata.json") && error.message().contains(part), "{error}");
    }
    std::fs::write(&file, [0x1f, 0x8b, 8, 0]).unwrap();
    assert!(warehouse.catalog.load(&ident()).await.unwrap_err().message().contains("gzip"));
    std::fs::write(warehouse.metadata("version-hint.text"), "1").unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(warehouse.catalog.load(&ident()).await.unwrap_err().kind(), ErrorKind::Data);
}

#[tokio::test]
async fn metadata_of_another_iceberg_is_told_from_damaged_metadata() {
    let warehouse = Warehouse::new(&[]).await;
    let file = warehouse.metadata("v1.metadata.json");
    let whole = std::fs::read_to_string(&file).unwrap();
    let field = |transform: &str, source: u32| {
        let field = format!(
            "\"fields\":[{{\"source-id\":{source},\"field-id\":1000,\"name\":\"p\",\"transform\":\"{transform}\"}}]"
        );
        let spec = whole.find("\"partition-specs\"").unwrap();
        let (before, behind) = whole.split_at(spec);
        format!("{before}{}", behind.replacen("\"fields\":[]", &field, 1))
    };
    let variant = whole.replace("\"type\":\"long\"", "\"type\":\"variant\"");
    let version = whole.replace("\"format-version\":2", "\"format-version\":4");
    for (content, kind, part) in [
        (
            field("foo", 1),
            ErrorKind::Unsupported,
            "the transform 'foo' of partition field 'p' of column 'id'",
        ),
        (variant, ErrorKind::Unsupported, "the type 'variant' of column 'id' is not supported"),
        (version, ErrorKind::Unsupported, "has format version 4"),
        (
            field("identity", 77),
            ErrorKind::Data,
            "partition field 'p' of column 77: no schema has that column",
        ),
        (field("bucket[0]", 1), ErrorKind::Data, "partition field 'p' has the transform 'bucket[0]'"),
        (field("truncate[0]", 1), ErrorKind::Data, "partition field 'p' has the transform 'truncate[0]'"),
    ] {
        std::fs::write(&file, content).unwrap();
        let error = warehouse.catalog.load(&ident()).await.unwrap_err();
        assert!(error.kind() == kind && error.message().contains(part), "{error}");
        assert!(!error.message().contains("Schema {"), "{error}");
        let is_dropped = warehouse.catalog.purge_table(&ident()).await.is_ok();
        assert_eq!(is_dropped, kind == ErrorKind::Data, "{part}");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    }
}

#[tokio::test]
async fn a_requirement_that_does_not_hold_is_a_conflict() {
    let warehouse = Warehouse::new(&[]).await;
    let other = TableRequirement::UuidMatch { uuid: uuid::Uuid::nil() };
    let outcome = warehouse.catalog.commit_table(&ident(), vec![other], set("a", "1")).await;
    assert!(matches!(outcome, Err(CommitError::Conflict(_))));
    assert_eq!(warehouse.version().await, 1);
    // And what changes nothing is no commit.
    warehouse.catalog.commit_table(&ident(), Vec::new(), Vec::new()).await.unwrap();
    assert_eq!(warehouse.version().await, 1);
}

#[tokio::test]
async fn what_folders_cannot_do_is_refused_in_the_words_of_flink() {
    let warehouse = Warehouse::new(&[]).await;
    let catalog = &warehouse.catalog;
    let moved = TableUpdate::SetLocation { location: "/elsewhere".into() };
    let error = catalog.commit(&ident(), &[], vec![moved]).await.unwrap_err().into_error();
    assert_eq!(error.message(), "Hadoop path-based tables cannot be relocated");
    let error = warehouse.commit("write.metadata.path", "/x").await.unwrap_err().into_error();
    assert_eq!(error.message(), "Hadoop path-based tables cannot relocate metadata");
    let error = from_iceberg(catalog.rename_table(&ident(), &ident()).await.unwrap_err());
    assert_eq!((error.message(), error.kind()), ("Cannot rename Hadoop tables", ErrorKind::Unsupported));
    let namespace = NamespaceIdent::new("other".into());
    let comment = HashMap::from([("comment".into(), "x".into())]);
    let error = catalog.make_namespace(&namespace, comment.clone()).await.unwrap_err();
    assert_eq!(error.message(), "Cannot create namespace other: metadata is not supported");
    let error = from_iceberg(catalog.update_namespace(&namespace, comment).await.unwrap_err());
    assert_eq!(error.message(), "Cannot set namespace properties other : setProperties is not supported");
    let error = catalog.make_table(ident().namespace(), creation("t", &[])).await.unwrap_err();
    assert_eq!((error.message(), error.kind()), ("Table already exists: db.t", ErrorKind::AlreadyExists));
    let elsewhere = TableCreation { location: Some("/x".into()), ..creation("u", &[]) };
    let error = catalog.make_table(ident().namespace(), elsewhere).await.unwrap_err();
    assert!(
        error.message().starts_with("Cannot set a custom location for a path-based table. Expected file:")
    );
    for name in ["a/b", "..", ".t", ""] {
        assert_eq!(
            catalog.make_table(ident().namespace(), creation(name, &[])).await.unwrap_err().kind(),
            ErrorKind::Validation
        );
    }
}

#[tokio::test]
async fn databases_are_folders() {
    let folder = TempDir::new().unwrap();
    let warehouse = folder.path().join("warehouse");
    let catalog = HadoopCatalog::new(&format!("{}//", warehouse.display()), FileStore::local()).unwrap();
    let error = catalog.namespaces(None).await.unwrap_err();
    assert_eq!(error.message(), "Namespace does not exist: ");
    let (db, other) = (NamespaceIdent::new("db".into()), NamespaceIdent::new("k=v ä%20".into()));
    catalog.make_namespace(&other, HashMap::new()).await.unwrap();
    let error = catalog.make_namespace(&other, HashMap::new()).await.unwrap_err();
    assert_eq!(error.message(), "Namespace already exists: k=v ä%20");
    // CREATE TABLE makes the database.
    catalog.make_table(&db, creation("t", &[])).await.unwrap();
    std::fs::create_dir(warehouse.join("db/no table")).unwrap();
    std::fs::create_dir(warehouse.join(".hidden")).unwrap();
    std::fs::write(warehouse.join("file"), "").unwrap();
    assert_eq!(catalog.namespaces(None).await.unwrap(), [db.clone(), other.clone()]);
    assert_eq!(catalog.tables(&db).await.unwrap(), [TableIdent::new(db.clone(), "t".into())]);
    assert_eq!(catalog.tables(&other).await.unwrap(), []);
    assert!(catalog.tables(&NamespaceIdent::new("nope".into())).await.is_err());
    assert_eq!(catalog.remove_namespace(&db).await.unwrap_err().message(), "Namespace db is not empty.");
    catalog.remove_namespace(&other).await.unwrap();
    assert!(!catalog.namespace_exists(&other).await.unwrap());
    assert_eq!(catalog.namespaces(None).await.unwrap(), [db]);
}

#[tokio::test]
async fn dropping_removes_the_folder_or_only_what_makes_it_a_table() {
    let warehouse = Warehouse::new(&[]).await;
    let db = warehouse.folder.path().join("db");
    std::fs::create_dir(db.join("t/data")).unwrap();
    std::fs::write(db.join("t/data/f.parquet"), "").unwrap();
    warehouse.catalog.purge_table(&ident()).await.unwrap();
    assert_eq!(std::fs::read_dir(&db).unwrap().count(), 0);
    let error = from_iceberg(warehouse.catalog.drop_table(&ident()).await.unwrap_err());
    assert_eq!(error.message(), "Table does not exist: db.t");

    let kept = creation("t", &[("gc.enabled", "false")]);
    warehouse.catalog.make_table(ident().namespace(), kept).await.unwrap();
    std::fs::create_dir(db.join("t/data")).unwrap();
    std::fs::write(db.join("t/data/f.parquet"), "").unwrap();
    warehouse.catalog.purge_table(&ident()).await.unwrap();
    assert!(db.join("t/data/f.parquet").exists());
    assert!(!warehouse.catalog.table_exists(&ident()).await.unwrap());
    warehouse.catalog.make_table(ident().namespace(), creation("t", &[])).await.unwrap();
}

#[tokio::test]
async fn purging_finds_the_files_outside_of_the_folder() {
    let warehouse = Warehouse::new(&[]).await;
    let (_, table) = warehouse.catalog.load(&ident()).await.unwrap();
    let outside = warehouse.folder.path().join("elsewhere/f.parquet");
    let table = append(&warehouse.catalog, &table, &format!("file:{}", outside.display())).await;
    assert_eq!(table.metadata().snapshots().len(), 1);
    assert_eq!(warehouse.version().await, 2);
    assert!(outside.exists());
    warehouse.catalog.purge_table(&ident()).await.unwrap();
    assert!(!outside.exists());
    assert_eq!(std::fs::read_dir(warehouse.folder.path().join("db")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_table_whose_manifests_are_lost_can_be_dropped() {
    let warehouse = Warehouse::new(&[]).await;
    let (_, table) = warehouse.catalog.load(&ident()).await.unwrap();
    let data = warehouse.folder.path().join("db/t/data/f.parquet");
    append(&warehouse.catalog, &table, &data.display().to_string()).await;
    for name in warehouse.names().iter().filter(|name| name.ends_with(".avro")) {
        std::fs::write(warehouse.metadata(name), "damaged").unwrap();
    }
    warehouse.catalog.purge_table(&ident()).await.unwrap();
    assert!(!warehouse.catalog.table_exists(&ident()).await.unwrap());
    assert!(!data.exists());
}
