//! Tests of the catalog on SQLite, and on Postgres if `LAKEHEAD_POSTGRES` names one (`scripts/postgres.sh`).

use std::sync::atomic::{AtomicU8, Ordering};

use tempfile::TempDir;
use uuid::Uuid;

use super::database::{Row, Statement};
use super::*;
use crate::connector::iceberg::catalog::testing::{append, commit_concurrently, creation, ident, set};
use crate::connector::iceberg::error::from_iceberg;
use crate::connector::iceberg::storage::testing::{FailingStore, Fault, Operation};

/// A place for a catalog: an empty database and an empty warehouse.
struct Place {
    folder: TempDir,
    uri: String,
}

impl Place {
    fn sqlite() -> Place {
        let folder = TempDir::new().unwrap();
        let uri = format!("jdbc:sqlite:{}/catalog.db", folder.path().display());
        Place { folder, uri }
    }

    /// Returns a place for each kind of database.
    async fn all() -> Vec<Place> {
        let mut places = vec![Place::sqlite()];
        match std::env::var("LAKEHEAD_POSTGRES") {
            Ok(server) => {
                let schema = format!("test_{}", Uuid::new_v4().simple());
                let database = DatabaseUrl::parse(&server, None, None, &[]).unwrap().open().await.unwrap();
                let create = Statement::new(format!("CREATE SCHEMA {schema}"), []);
                database.write(vec![create]).await.unwrap();
                let uri = format!("{server}?currentSchema={schema}");
                places.push(Place { folder: TempDir::new().unwrap(), uri });
            }
            Err(_) => eprintln!("skipped on Postgres: LAKEHEAD_POSTGRES is not set"),
        }
        places
    }

    fn options(&self) -> SqlCatalogOptions {
        SqlCatalogOptions {
            name: "ice".into(),
            uri: self.uri.clone(),
            warehouse: format!("file:{}/warehouse/", self.folder.path().display()),
            user: None,
            password: None,
            parameters: Vec::new(),
            schema_version: SchemaVersion::V0,
            make_tables: true,
            is_strict: false,
        }
    }

    async fn catalog(&self) -> SqlCatalog {
        SqlCatalog::open(self.options(), FileStore::local()).await.unwrap()
    }

    async fn catalog_with_table(&self, properties: &[(&str, &str)]) -> SqlCatalog {
        let catalog = self.catalog().await;
        catalog.make_table(ident().namespace(), creation("t", properties)).await.unwrap();
        catalog
    }

    async fn database(&self) -> Arc<dyn Database> {
        DatabaseUrl::parse(&self.uri, None, None, &[]).unwrap().open().await.unwrap()
    }

    async fn run(&self, sql: &str) {
        self.database().await.write(vec![Statement::new(sql, [])]).await.unwrap();
    }

    fn warehouse(&self) -> std::path::PathBuf {
        self.folder.path().join("warehouse")
    }

    /// Returns the metadata files of the table, by name.
    fn metadata_files(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.warehouse().join("db/t/metadata")) else {
            return Vec::new();
        };
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

async fn rows(database: &Arc<dyn Database>, sql: &str) -> Vec<Row> {
    database.read(Statement::new(sql, [])).await.unwrap()
}

#[tokio::test]
async fn a_table_is_created_loaded_and_committed() {
    for place in Place::all().await {
        let catalog = place.catalog_with_table(&[]).await;
        let error = catalog.make_table(ident().namespace(), creation("t", &[])).await.unwrap_err();
        assert_eq!((error.message(), error.kind()), ("Table already exists: db.t", ErrorKind::AlreadyExists));
        let first = catalog.load(&ident()).await.unwrap();
        let location = format!("file:{}/db/t", place.warehouse().display());
        assert_eq!(first.metadata().location(), location);
        let first_file = first.metadata_location().unwrap();
        assert!(first_file.starts_with(&format!("{location}/metadata/00000-")), "{first_file}");
        let second = catalog.commit_table(&ident(), Vec::new(), set("a", "1")).await.unwrap();
        let second_file = second.metadata_location().unwrap();
        assert!(second_file.starts_with(&format!("{location}/metadata/00001-")), "{second_file}");
        assert_eq!(second.metadata().metadata_log()[0].metadata_file, first_file);
        let found = rows(&place.database().await, "SELECT * FROM iceberg_tables").await;
        let expected = ["ice", "db", "t", second_file, first_file].map(|text| Some(text.to_owned()));
        assert_eq!(found, [expected.to_vec()]);
        // Another session sees it; another catalog in the same database does not.
        let table = place.catalog().await.load(&ident()).await.unwrap();
        assert_eq!(table.metadata().properties()["a"], "1");
        let other = SqlCatalogOptions { name: "other".into(), ..place.options() };
        let other = SqlCatalog::open(other, FileStore::local()).await.unwrap();
        assert_eq!(other.load(&ident()).await.unwrap_err().message(), "Table does not exist: db.t");
        // And a table that others have appended to goes on.
        let data = format!("{location}/data/f.parquet");
        let table = append(&catalog, &second, &data).await;
        assert_eq!(table.metadata().snapshots().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_writers_lose_no_commit() {
    for place in Place::all().await {
        let catalog = place.catalog_with_table(&[]).await;
        let mut writers = Vec::new();
        for _ in 0..8 {
            // Each has a connection of its own, as other processes do.
            writers.push(place.catalog().await);
        }
        commit_concurrently(writers).await;
        let table = catalog.load(&ident()).await.unwrap();
        assert_eq!(table.metadata().properties().len(), 40);
        assert!(table.metadata_location().unwrap().contains("/00040-"));
        // What lost has left nothing.
        assert_eq!(place.metadata_files().len(), 41);
    }
}

#[tokio::test]
async fn databases_of_java_and_python_are_opened_as_they_are() {
    let java = [
        "CREATE TABLE iceberg_tables(catalog_name VARCHAR(255) NOT NULL,table_namespace VARCHAR(255) NOT NULL,table_name VARCHAR(255) NOT NULL,metadata_location VARCHAR(1000),previous_metadata_location VARCHAR(1000),PRIMARY KEY (catalog_name, table_namespace, table_name))",
        "CREATE TABLE iceberg_namespace_properties(catalog_name VARCHAR(255) NOT NULL,namespace VARCHAR(255) NOT NULL,property_key VARCHAR(255),property_value VARCHAR(1000),PRIMARY KEY (catalog_name, namespace, property_key))",
    ];
    let python = [
        "CREATE TABLE iceberg_tables (\n\tcatalog_name VARCHAR(255) NOT NULL, \n\ttable_namespace VARCHAR(255) NOT NULL, \n\ttable_name VARCHAR(255) NOT NULL, \n\tmetadata_location VARCHAR(1000), \n\tprevious_metadata_location VARCHAR(1000), \n\tPRIMARY KEY (catalog_name, table_namespace, table_name)\n)",
        "CREATE TABLE iceberg_namespace_properties (\n\tcatalog_name VARCHAR(255) NOT NULL, \n\tnamespace VARCHAR(255) NOT NULL, \n\tproperty_key VARCHAR(255) NOT NULL, \n\tproperty_value VARCHAR(1000) NOT NULL, \n\tPRIMARY KEY (catalog_name, namespace, property_key)\n)",
    ];
    let newer_python = [
        python[0].replace("1000), \n\tPRIMARY", "1000), \n\ticeberg_type VARCHAR(5), \n\tPRIMARY"),
        python[1].to_owned(),
    ];
    let newer_python = [newer_python[0].as_str(), newer_python[1].as_str()];
    let (v0, v1) = (SchemaVersion::V0, SchemaVersion::V1);
    for (statements, version) in [(java, v0), (python, v0), (newer_python, v1)] {
        for place in Place::all().await {
            for statement in statements {
                place.run(statement).await;
            }
            place
                .run("INSERT INTO iceberg_namespace_properties VALUES ('ice', 'a.b', 'exists', 'true')")
                .await;
            let strict = SqlCatalogOptions { make_tables: false, ..place.options() };
            let catalog = SqlCatalog::open(strict, FileStore::local()).await.unwrap();
            assert_eq!(catalog.tables.version(), version);
            assert_eq!(catalog.namespaces(None).await.unwrap(), [NamespaceIdent::new("a".into())]);
            catalog.make_table(ident().namespace(), creation("t", &[])).await.unwrap();
            catalog.commit(&ident(), &[], set("a", "1")).await.unwrap();
            assert_eq!(catalog.namespaces(None).await.unwrap().len(), 2);
        }
    }
    let place = Place::sqlite();
    let strict = SqlCatalogOptions { make_tables: false, ..place.options() };
    let error = SqlCatalog::open(strict, FileStore::local()).await.unwrap_err();
    assert!(error.message().contains("'iceberg_tables'"), "{error}");
}

#[tokio::test]
async fn a_database_of_v0_becomes_v1_when_asked_and_stays_it() {
    for place in Place::all().await {
        place.catalog_with_table(&[]).await;
        let v1 = SqlCatalogOptions { schema_version: SchemaVersion::V1, ..place.options() };
        let catalog = SqlCatalog::open(v1, FileStore::local()).await.unwrap();
        assert_eq!(catalog.tables.version(), SchemaVersion::V1);
        assert_eq!(place.catalog().await.tables.version(), SchemaVersion::V1);
        // The type of older tables is unknown; a commit tells it.
        catalog.commit(&ident(), &[], set("a", "1")).await.unwrap();
        catalog.make_table(ident().namespace(), creation("u", &[])).await.unwrap();
        let types = "SELECT table_name, iceberg_type FROM iceberg_tables ORDER BY table_name";
        let typed = |name: &str| vec![Some(name.to_owned()), Some("TABLE".to_owned())];
        assert_eq!(rows(&place.database().await, types).await, [typed("t"), typed("u")]);
        // A view is no table, but has the name.
        place.run("UPDATE iceberg_tables SET iceberg_type = 'VIEW' WHERE table_name = 'u'").await;
        assert_eq!(catalog.tables_of(ident().namespace()).await.unwrap(), [ident()]);
        let view = TableIdent::new(ident().namespace().clone(), "u".into());
        assert_eq!(catalog.load(&view).await.unwrap_err().kind(), ErrorKind::NotFound);
        let error = catalog.make_table(ident().namespace(), creation("u", &[])).await.unwrap_err();
        assert_eq!(error.message(), "Table already exists: db.u");
        let error = catalog.rename(&ident(), &view).await.unwrap_err();
        assert_eq!(error.message(), "Table already exists: db.u");
    }
}

#[tokio::test]
async fn namespaces_have_properties_and_levels() {
    for place in Place::all().await {
        let catalog = place.catalog().await;
        let (db, inner) =
            (NamespaceIdent::new("db".into()), NamespaceIdent::from_strs(["db", "in_ner"]).unwrap());
        assert!(!catalog.has_namespace(&db).await.unwrap());
        catalog.make_namespace(&inner, HashMap::new()).await.unwrap();
        assert!(catalog.has_namespace(&db).await.unwrap());
        assert!(!catalog.has_namespace(&NamespaceIdent::from_strs(["db", "inXner"]).unwrap()).await.unwrap());
        assert_eq!(catalog.namespaces(Some(&db)).await.unwrap(), std::slice::from_ref(&inner));
        let error = catalog.make_namespace(&inner, HashMap::new()).await.unwrap_err();
        assert_eq!(error.message(), "Namespace already exists: db.in_ner");
        let properties = |pairs: &[(&str, &str)]| -> HashMap<String, String> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let elsewhere = format!("{}/elsewhere", place.folder.path().display());
        catalog
            .replace_properties(&inner, &properties(&[("a", "1"), ("location", &elsewhere)]))
            .await
            .unwrap();
        catalog
            .replace_properties(&inner, &properties(&[("b", "it's"), ("location", &elsewhere)]))
            .await
            .unwrap();
        let namespace = catalog.get_namespace(&inner).await.unwrap();
        assert_eq!(*namespace.properties(), properties(&[("b", "it's"), ("location", &elsewhere)]));
        // Its tables go where it says.
        let table = catalog.make_table(&inner, creation("t", &[])).await.unwrap();
        assert_eq!(table.metadata().location(), format!("{elsewhere}/t"));
        let error = catalog.remove_namespace(&inner).await.unwrap_err();
        assert_eq!(error.message(), "Namespace db.in_ner is not empty. 1 tables exist.");
        assert!(catalog.remove_namespace(&db).await.is_err());
        catalog.remove_table(table.identifier(), true).await.unwrap();
        catalog.remove_namespace(&inner).await.unwrap();
        let error = from_iceberg(catalog.drop_namespace(&inner).await.unwrap_err());
        assert_eq!(error.message(), "Namespace does not exist: db.in_ner");
        assert_eq!(catalog.namespaces(None).await.unwrap(), []);
    }
}

#[tokio::test]
async fn strict_mode_wants_the_namespace_first() {
    let place = Place::sqlite();
    let strict = SqlCatalogOptions { is_strict: true, ..place.options() };
    let catalog = SqlCatalog::open(strict, FileStore::local()).await.unwrap();
    let error = catalog.make_table(ident().namespace(), creation("t", &[])).await.unwrap_err();
    assert_eq!(error.message(), "Namespace does not exist: db");
    catalog.make_namespace(ident().namespace(), HashMap::new()).await.unwrap();
    catalog.make_table(ident().namespace(), creation("t", &[])).await.unwrap();
}

#[tokio::test]
async fn tables_are_renamed_dropped_and_purged() {
    for place in Place::all().await {
        let catalog = place.catalog_with_table(&[]).await;
        let renamed = TableIdent::from_strs(["db", "it's ä"]).unwrap();
        catalog.rename(&ident(), &renamed).await.unwrap();
        assert_eq!(
            catalog.rename(&ident(), &renamed).await.unwrap_err().message(),
            "Table does not exist: db.t"
        );
        let nowhere = TableIdent::from_strs(["nope", "t"]).unwrap();
        let error = catalog.rename(&renamed, &nowhere).await.unwrap_err();
        assert_eq!(error.message(), "Namespace does not exist: nope");
        assert_eq!(catalog.tables_of(ident().namespace()).await.unwrap(), std::slice::from_ref(&renamed));
        // Dropped, its files are still there, and can be a table again.
        let metadata = catalog.load(&renamed).await.unwrap().metadata_location().unwrap().to_owned();
        catalog.remove_table(&renamed, false).await.unwrap();
        assert_eq!(catalog.remove_table(&renamed, false).await.unwrap_err().kind(), ErrorKind::NotFound);
        let table = catalog.register(&ident(), metadata.clone()).await.unwrap();
        assert!(catalog.register(&ident(), metadata).await.is_err());
        let table =
            append(&catalog, &table, &format!("{}/data/p=1/f.parquet", table.metadata().location())).await;
        catalog.commit(table.identifier(), &[], set("a", "1")).await.unwrap();
        let foreign = place.warehouse().join("db/t/data/note.txt");
        std::fs::write(&foreign, "not the table's").unwrap();
        catalog.remove_table(&ident(), true).await.unwrap();
        let left = walk(&place.warehouse());
        assert_eq!(left, [foreign]);
    }
}

/// Returns the files below a folder.
fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(walk(&path)) } else { files.push(path) }
    }
    files
}

#[tokio::test]
async fn files_that_must_not_be_collected_stay() {
    let place = Place::sqlite();
    let catalog = place.catalog_with_table(&[("gc.enabled", "false")]).await;
    catalog.remove_table(&ident(), true).await.unwrap();
    assert_eq!(place.metadata_files().len(), 1);
    // Nor does a table that cannot be read hold on to its row.
    let catalog = place.catalog_with_table(&[]).await;
    std::fs::remove_dir_all(place.warehouse()).unwrap();
    assert_eq!(catalog.load(&ident()).await.unwrap_err().kind(), ErrorKind::NotFound);
    catalog.remove_table(&ident(), true).await.unwrap();
    assert!(!catalog.table_exists(&ident()).await.unwrap());
}

#[tokio::test]
async fn a_store_that_fails_leaves_nothing_half_visible() {
    let place = Place::sqlite();
    place.catalog_with_table(&[]).await;
    let faults = FailingStore::new();
    let catalog = SqlCatalog::open(place.options(), faults.files()).await.unwrap();
    for fault in [Fault::PermissionDenied, Fault::NoSpace, Fault::AnswerLost] {
        faults.fail_when(Operation::Put, "metadata.json", fault);
        let outcome = catalog.commit(&ident(), &[], set("a", "1")).await;
        assert!(matches!(outcome, Err(CommitError::Failed(_))), "{outcome:?}");
        faults.fail_when(Operation::Put, "metadata.json", fault);
        assert!(catalog.make_table(ident().namespace(), creation("u", &[])).await.is_err());
    }
    assert!(!faults.is_armed());
    assert_eq!(catalog.tables_of(ident().namespace()).await.unwrap(), [ident()]);
    assert!(catalog.load(&ident()).await.unwrap().metadata().properties().is_empty());
}

#[tokio::test]
async fn a_requirement_that_does_not_hold_is_a_conflict() {
    let place = Place::sqlite();
    let catalog = place.catalog_with_table(&[]).await;
    let other = TableRequirement::UuidMatch { uuid: Uuid::nil() };
    let outcome = catalog.commit_table(&ident(), vec![other], set("a", "1")).await;
    assert!(matches!(outcome, Err(CommitError::Conflict(_))));
    catalog.commit_table(&ident(), Vec::new(), Vec::new()).await.unwrap();
    assert_eq!(place.metadata_files().len(), 1);
    catalog.remove_table(&ident(), true).await.unwrap();
    let outcome = catalog.commit_table(&ident(), Vec::new(), set("a", "1")).await;
    assert!(matches!(outcome, Err(CommitError::Failed(error)) if error.kind() == ErrorKind::NotFound));
}

/// A database that loses an answer, before or after it has done what it was told, and lets others go between.
#[derive(Debug)]
struct LossyDatabase {
    inner: Arc<dyn Database>,
    others: SqlCatalog,
    mode: AtomicU8,
}

/// It was done.
const DONE: u8 = 1;
/// It was not done.
const NOT_DONE: u8 = 2;
/// It was done, and somebody else has committed since.
const DONE_AND_MORE: u8 = 3;
/// It was not done, and somebody else has committed instead.
const OTHERS_INSTEAD: u8 = 4;

#[async_trait]
impl Database for LossyDatabase {
    fn columns_query(&self) -> &'static str {
        self.inner.columns_query()
    }

    async fn read(&self, query: Statement) -> Result<Vec<Row>> {
        self.inner.read(query).await
    }

    async fn write(&self, statements: Vec<Statement>) -> Result<Vec<u64>, WriteError> {
        let mode = self.mode.swap(0, Ordering::SeqCst);
        if [0, DONE, DONE_AND_MORE].contains(&mode) {
            let counts = self.inner.write(statements).await?;
            if mode == 0 {
                return Ok(counts);
            }
        }
        if [DONE_AND_MORE, OTHERS_INSTEAD].contains(&mode) {
            self.others.commit(&ident(), &[], set("others", "1")).await.unwrap();
        }
        Err(WriteError::Unknown(Error::unavailable("the answer was lost")))
    }
}

#[tokio::test]
async fn a_lost_answer_of_the_database_is_found_out() {
    for place in Place::all().await {
        for (mode, outcome, files) in [
            (DONE, "landed", 2),
            // It may still land, so its metadata must stay.
            (NOT_DONE, "unknown", 3),
            (DONE_AND_MORE, "landed", 5),
            (OTHERS_INSTEAD, "conflict", 6),
        ] {
            let others = match place.catalog().await {
                catalog if catalog.table_exists(&ident()).await.unwrap() => catalog,
                _ => place.catalog_with_table(&[]).await,
            };
            let (inner, mode_now) = (place.database().await, AtomicU8::new(mode));
            let lossy = LossyDatabase { inner, others: others.clone(), mode: mode_now };
            let catalog = SqlCatalog { database: Arc::new(lossy), ..others };
            let found = match catalog.commit(&ident(), &[], set("ours", &mode.to_string())).await {
                Ok(_) => "landed",
                Err(CommitError::Conflict(_)) => "conflict",
                Err(CommitError::Unknown(_)) => "unknown",
                Err(CommitError::Failed(_)) => "failed",
            };
            assert_eq!((found, place.metadata_files().len()), (outcome, files), "mode {mode}");
        }
    }
}

#[tokio::test]
async fn databases_that_cannot_be_used_are_named() {
    let place = Place::sqlite();
    let open = |uri: String| {
        let options = SqlCatalogOptions { uri, ..place.options() };
        async { SqlCatalog::open(options, FileStore::local()).await.unwrap_err() }
    };
    let no_folder = format!("jdbc:sqlite:{}/nope/c.db", place.folder.path().display());
    let error = open(no_folder).await;
    assert!(error.kind() == ErrorKind::Rejected && error.message().contains("/nope/c.db"), "{error}");
    let garbage = place.folder.path().join("garbage.db");
    std::fs::write(&garbage, "this is no database at all, but long enough to be looked at ".repeat(20))
        .unwrap();
    let error = open(format!("jdbc:sqlite:{}", garbage.display())).await;
    assert!(error.kind() == ErrorKind::Data && error.message().contains("garbage.db"), "{error}");
    let error = open("jdbc:postgresql://127.0.0.1:1/d?user=u&password=hidden".into()).await;
    assert!(error.kind() == ErrorKind::Unavailable && error.message().contains("127.0.0.1:1/d"), "{error}");
    assert!(!format!("{error:?}").contains("hidden"));
    let options = SqlCatalogOptions { warehouse: String::new(), ..place.options() };
    let error = SqlCatalog::open(options, FileStore::local()).await.unwrap_err();
    assert_eq!(
        error.message(),
        "Cannot initialize JDBCCatalog because warehousePath must not be null or empty"
    );
}

#[tokio::test]
async fn a_database_that_must_not_be_written_any_more_is_a_definite_failure() {
    let place = Place::sqlite();
    let catalog = place.catalog_with_table(&[]).await;
    // An open connection may not write any more once its file is another's.
    let file = place.folder.path().join("catalog.db");
    std::fs::rename(&file, place.folder.path().join("moved.db")).unwrap();
    let Err(CommitError::Failed(error)) = catalog.commit(&ident(), &[], set("a", "1")).await else {
        panic!()
    };
    assert_eq!(error.kind(), ErrorKind::Rejected, "{error}");
    assert!(error.message().contains("catalog.db") && error.hint_text().is_some(), "{error}");
    assert_eq!(place.metadata_files().len(), 1);
}

#[tokio::test]
async fn a_lost_answer_is_final_where_nobody_else_can_give_it() {
    let place = Place::sqlite();
    let others = place.catalog_with_table(&[]).await;
    let lossy = LossyDatabase {
        inner: place.database().await,
        others: others.clone(),
        mode: AtomicU8::new(NOT_DONE),
    };
    let catalog = SqlCatalog { database: Arc::new(Final(lossy)), ..others };
    let outcome = catalog.commit(&ident(), &[], set("a", "1")).await;
    assert!(matches!(outcome, Err(CommitError::Failed(_))), "{outcome:?}");
    assert_eq!(place.metadata_files().len(), 1);
}

/// A database without a server.
#[derive(Debug)]
struct Final(LossyDatabase);

#[async_trait]
impl Database for Final {
    fn columns_query(&self) -> &'static str {
        self.0.columns_query()
    }

    fn answers_are_final(&self) -> bool {
        true
    }

    async fn read(&self, query: Statement) -> Result<Vec<Row>> {
        self.0.read(query).await
    }

    async fn write(&self, statements: Vec<Statement>) -> Result<Vec<u64>, WriteError> {
        self.0.write(statements).await
    }
}

#[tokio::test]
async fn a_busy_database_is_waited_for() {
    let place = Place::sqlite();
    let catalog = place.catalog_with_table(&[]).await;
    let blocker = rusqlite::Connection::open(place.folder.path().join("catalog.db")).unwrap();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let commit = tokio::spawn(async move { catalog.commit(&ident(), &[], set("a", "1")).await.map(drop) });
    // The metadata is written before the database is asked.
    while place.metadata_files().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert!(!commit.is_finished());
    blocker.execute_batch("COMMIT").unwrap();
    commit.await.unwrap().unwrap();
}

/// Returns the URL of the Postgres for tests and the file with its authority's certificate.
fn postgres() -> Option<(String, String)> {
    let found = std::env::var("LAKEHEAD_POSTGRES").ok().zip(std::env::var("LAKEHEAD_POSTGRES_CA").ok());
    if found.is_none() {
        eprintln!("skipped: LAKEHEAD_POSTGRES and LAKEHEAD_POSTGRES_CA are not set");
    }
    found
}

async fn connect(uri: &str, password: Option<&str>) -> Result<Vec<Row>> {
    let database = DatabaseUrl::parse(uri, None, password, &[])?.open().await?;
    database.read(Statement::new("SELECT ssl::text FROM pg_stat_ssl WHERE pid = pg_backend_pid()", [])).await
}

#[tokio::test]
async fn connections_to_postgres_are_encrypted_as_asked() {
    let Some((server, authority)) = postgres() else { return };
    let encrypted = |is: bool| vec![vec![Some(is.to_string())]];
    for (query, is_encrypted) in [
        ("".to_owned(), true),
        ("?sslmode=disable".to_owned(), false),
        ("?sslmode=require".to_owned(), true),
        (format!("?sslmode=verify-ca&sslrootcert={authority}"), true),
        (format!("?sslmode=verify-full&sslrootcert={authority}"), true),
    ] {
        let found = connect(&format!("{server}{query}"), None).await.unwrap();
        assert_eq!(found, encrypted(is_encrypted), "{query}");
    }
    // Its certificate is for localhost and signed by nobody that the system knows.
    let by_number = server.replace("localhost", "127.0.0.1");
    for uri in [
        format!("{by_number}?sslmode=verify-full&sslrootcert={authority}"),
        format!("{server}?sslmode=verify-full&sslrootcert=system"),
        format!("{server}?sslmode=verify-ca&sslrootcert=/nope"),
    ] {
        let error = connect(&uri, None).await.unwrap_err();
        assert!(error.message().contains("certificate"), "{error}");
    }
    connect(&format!("{by_number}?sslmode=verify-ca&sslrootcert={authority}"), None).await.unwrap();
}

#[tokio::test]
async fn what_postgres_refuses_is_told() {
    let Some((server, _)) = postgres() else { return };
    let error = connect(&server, Some("wrong")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Rejected, "{error}");
    assert!(
        error.message().contains("password authentication failed") && error.hint_text().is_some(),
        "{error}"
    );
    let error = connect(&server.replace("/postgres", "/nope"), None).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Rejected && error.message().contains("/nope"), "{error}");
}

#[tokio::test]
async fn a_lost_connection_is_made_anew() {
    let Some((server, _)) = postgres() else { return };
    let open = || async { DatabaseUrl::parse(&server, None, None, &[]).unwrap().open().await.unwrap() };
    let (ours, other) = (open().await, open().await);
    let own_process = rows(&ours, "SELECT pg_backend_pid()::text").await.remove(0).remove(0).unwrap();
    let end = format!("SELECT pg_terminate_backend({own_process}, 10000)::text");
    assert_eq!(rows(&other, &end).await, [[Some("true".to_owned())]]);
    let next_process = rows(&ours, "SELECT pg_backend_pid()::text").await.remove(0).remove(0).unwrap();
    assert_ne!(own_process, next_process);
}
