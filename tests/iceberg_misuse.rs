//! What must not be taken for something else in Iceberg catalogs: partitions that are none, options with typing errors, secrets, and tables
//! that are damaged.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::support::session::Conversation;

/// A session with the catalogs `h` of folders and `j` in a database, both with the database `db`, and what they lie in.
struct Place {
    folder: TempDir,
    session: Conversation,
}

impl Place {
    fn new() -> Place {
        let folder = TempDir::new().unwrap();
        let mut session = Conversation::new();
        let place = folder.path().display();
        session.expect(&[
            (&format!("CREATE CATALOG h WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = '{place}/h')"), "ok"),
            (&format!("CREATE CATALOG j WITH ('type' = 'iceberg', 'catalog-type' = 'jdbc', 'uri' = 'jdbc:sqlite:{place}/j.db', 'warehouse' = '{place}/j')"), "ok"),
            ("CREATE DATABASE h.db", "ok"),
            ("CREATE DATABASE j.db", "ok"),
            ("SET 'execution.runtime-mode' = 'batch'", "ok"),
        ]);
        Place { folder, session }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn expect(&mut self, script: &[(&str, &str)]) {
        self.session.expect(script);
    }

    /// Returns the metadata files of a table of catalog `j`.
    fn metadata_files(&self, table: &str) -> Vec<std::path::PathBuf> {
        let entries = fs::read_dir(self.path().join("j/db").join(table).join("metadata")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.to_string_lossy().ends_with(".metadata.json")).collect()
    }
}

#[test]
fn partition_names_columns_whose_value_is_a_partition() {
    let mut place = Place::new();
    let files = place.path().join("files").display().to_string();
    place.expect(&[
        ("CREATE TABLE h.db.t (a INT, b STRING)", "ok"),
        ("CREATE TABLE h.db.k (a INT, b STRING, c STRING) PARTITIONED BY (bucket(1, a), b)", "ok"),
        (&format!("CREATE TABLE f (a INT, b STRING) PARTITIONED BY (b) WITH ('connector' = 'filesystem', 'path' = '{files}', 'format' = 'csv')"), "ok"),
        ("INSERT INTO h.db.t VALUES (1, 'x'), (2, 'y')", "job"),
        ("INSERT OVERWRITE h.db.t PARTITION (a = 1) VALUES ('z')", "ValidationException: Static partition column 'a' should be in the partition keys list [] for table 'h.db.t'."),
        ("INSERT INTO h.db.t PARTITION (b = 'x') VALUES (1)", "ValidationException: Static partition column 'b' should be in the partition keys list [] for table 'h.db.t'."),
        ("INSERT OVERWRITE h.db.k PARTITION (a = 1) VALUES ('z', 'c')", "ValidationException: Static partition column 'a' should be in the partition keys list [bucket(1, a), b] for table 'h.db.k'."),
        ("INSERT OVERWRITE h.db.k PARTITION (c = 'c') VALUES (1, 'b')", "ValidationException: Static partition column 'c' should be in the partition keys list [bucket(1, a), b] for table 'h.db.k'."),
        ("INSERT OVERWRITE f PARTITION (a = 1) VALUES ('z')", "ValidationException: Static partition column 'a' should be in the partition keys list [b] for table 'default_catalog.default_database.f'."),
        ("INSERT INTO h.db.k PARTITION (b = 'x', b = 'y') VALUES (1, 'c')", "SqlValidatorException: Target column 'b' is assigned more than once"),
        ("INSERT INTO h.db.k PARTITION (b = 'x') VALUES (1, 'c')", "job"),
        ("INSERT OVERWRITE h.db.k PARTITION (b = 'x') VALUES (2, 'd')", "job"),
        ("SELECT * FROM h.db.k", "2|x|d"),
        ("SELECT * FROM h.db.t ORDER BY a", "1|x\n2|y"),
    ]);
}

#[test]
fn a_definition_elsewhere_names_partitions_that_the_table_has() {
    let mut place = Place::new();
    let folder = place.path().join("h").display().to_string();
    let with = format!(
        "WITH ('connector' = 'iceberg', 'catalog-name' = 'h', 'catalog-type' = 'hadoop', 'warehouse' = '{folder}', 'catalog-database' = 'db', 'catalog-table' = 't'"
    );
    place.expect(&[
        ("CREATE TABLE h.db.t (a INT, b STRING)", "ok"),
        ("INSERT INTO h.db.t VALUES (1, 'x'), (2, 'y')", "job"),
        (&format!("CREATE TABLE r (a INT, b STRING) PARTITIONED BY (b) {with})"), "ok"),
        ("INSERT OVERWRITE r PARTITION (b = 'x') VALUES (3)", "ValidationException: table 'default_catalog.default_database.r' is declared PARTITIONED BY (b), but the Iceberg table is partitioned by []"),
        (&format!("CREATE TABLE s (a INT, b STRING) {with}, 'catalog-databse' = 'x')"), "ok"),
        ("SELECT * FROM s", "ValidationException: table 'default_catalog.default_database.s' has no option 'catalog-databse'"),
        ("SELECT * FROM h.db.t ORDER BY a", "1|x\n2|y"),
    ]);
}

#[test]
fn options_with_typing_errors_and_of_the_wrong_kind_are_refused() {
    let mut place = Place::new();
    let near = "ValidationException: Iceberg tables have no option 'write.upsert.enable'";
    let folder = place.path().display().to_string();
    place.expect(&[
        ("CREATE TABLE h.db.k (a INT NOT NULL, b STRING, PRIMARY KEY (a) NOT ENFORCED)", "ok"),
        ("INSERT INTO h.db.k /*+ OPTIONS('upsert-enable' = 'true') */ VALUES (1, 'x')", "ValidationException: table 'h.db.k' has no option 'upsert-enable'"),
        ("INSERT INTO h.db.k /*+ OPTIONS('write.upsert.enable' = 'true') */ VALUES (1, 'x')", near),
        ("INSERT INTO h.db.k /*+ OPTIONS('write.upsert.enabled' = 'yes') */ VALUES (1, 'x')", "IllegalArgumentException: Unrecognized option for boolean: yes. Expected either true or false(case insensitive)"),
        ("INSERT INTO h.db.k /*+ OPTIONS('snapshot-id' = '1') */ VALUES (1, 'x')", "IllegalArgumentException: option 'snapshot-id' is for reading: 'h.db.k' is written here"),
        ("INSERT INTO h.db.k /*+ OPTIONS('limit' = '1') */ VALUES (1, 'x')", "IllegalArgumentException: option 'limit' is for reading: 'h.db.k' is written here"),
        ("INSERT INTO h.db.k /*+ OPTIONS('upsert-enabled' = 'true') */ VALUES (1, 'x')", "job"),
        ("ALTER TABLE h.db.k SET ('write.upsert.enable' = 'true')", near),
        ("ALTER TABLE h.db.k SET ('write.upsert.enabled' = 'yes')", "IllegalArgumentException: Unrecognized option for boolean: yes. Expected either true or false(case insensitive)"),
        ("CREATE TABLE h.db.x (a INT) WITH ('write.upsert.enable' = 'true')", near),
        ("ALTER TABLE h.db.k SET ('my.own' = 'true', 'write.upsert.enabled' = 'true')", "ok"),
        (&format!("CREATE CATALOG c WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = '{folder}/c', 'default-databse' = 'x')"), "ValidationException: catalog 'c' has no option 'default-databse'"),
    ]);
}

#[test]
fn secrets_do_not_become_properties() {
    let mut place = Place::new();
    let refusal = |key: &str| {
        format!("IllegalArgumentException: option '{key}' would be kept in clear in the table's metadata")
    };
    place.expect(&[
        ("CREATE TABLE h.db.t (a INT)", "ok"),
        ("ALTER TABLE h.db.t SET ('aws.secret' = 'hidden')", &refusal("aws.secret")),
        ("ALTER TABLE h.db.t SET ('uri' = 'jdbc:postgresql://u:hidden@h/d')", &refusal("uri")),
        ("CREATE TABLE h.db.u (a INT) WITH ('uri' = 'jdbc:postgresql://u:hidden@h/d')", &refusal("uri")),
        ("SHOW TABLES FROM h.db", "t"),
    ]);
    assert!(!place.path().join("h/db/t/metadata/v2.metadata.json").exists());
}

#[test]
fn what_cannot_be_stored_is_refused_before_it_is_there() {
    let mut place = Place::new();
    let file = place.path().join("file").display().to_string();
    fs::write(&file, "").unwrap();
    place.expect(&[
        ("CREATE TABLE h.db.t (a INT, r ROW<>)", "IllegalArgumentException: column 'r' cannot be stored: no file can hold a ROW without fields"),
        ("CREATE TABLE h.db.t (a INT, r ARRAY<ROW<>>)", "IllegalArgumentException: column 'r' cannot be stored: no file can hold a ROW without fields"),
        (&format!("CREATE CATALOG c WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = '{file}')"), &format!("IllegalArgumentException: warehouse '{file}' of catalog 'c' is a file")),
        (&format!("CREATE CATALOG c WITH ('type' = 'iceberg', 'catalog-type' = 'jdbc', 'uri' = 'jdbc:sqlite::memory:', 'warehouse' = '{file}')"), &format!("IllegalArgumentException: warehouse '{file}' of catalog 'c' is a file")),
    ]);
}

#[test]
fn a_damaged_table_is_named_and_can_be_dropped() {
    for catalog in ["h", "j"] {
        let mut place = Place::new();
        let script = |text: &str| text.replace("{c}", catalog);
        for table in ["t", "u", "v"] {
            place.expect(&[(&format!("CREATE TABLE {catalog}.db.{table} (a INT)"), "ok")]);
        }
        let file = |table: &str| match catalog {
            "h" => place.path().join(format!("h/db/{table}/metadata/v1.metadata.json")),
            _ => place.metadata_files(table).remove(0),
        };
        fs::remove_file(file("t")).unwrap();
        fs::write(file("v"), "{").unwrap();
        let answer = place.session.answer(&script("SELECT * FROM {c}.db.t"));
        assert!(answer.contains(&script("table '{c}.db.t' cannot be loaded: ")), "{answer}");
        let answer = place.session.answer(&script("DESCRIBE {c}.db.v"));
        assert!(answer.contains(&script("table '{c}.db.v' cannot be loaded: metadata file ")), "{answer}");
        place.expect(&[
            (&script("DROP TABLE {c}.db.t"), "ok"),
            (&script("DROP TABLE IF EXISTS {c}.db.t"), "ok"),
            (&script("SHOW TABLES FROM {c}.db"), "u\nv"),
            (&script("DROP DATABASE {c}.db CASCADE"), "ok"),
            (&script("SHOW DATABASES FROM {c}"), "empty"),
        ]);
    }
}

#[test]
fn a_table_of_another_iceberg_keeps_its_database_whole() {
    let mut place = Place::new();
    place.expect(&[("CREATE TABLE j.db.a (a INT)", "ok"), ("CREATE TABLE j.db.b (a INT)", "ok")]);
    let file = place.metadata_files("b").remove(0);
    let metadata = fs::read_to_string(&file).unwrap().replace("\"type\":\"int\"", "\"type\":\"variant\"");
    fs::write(&file, metadata).unwrap();
    for statement in ["DROP DATABASE j.db CASCADE", "DROP TABLE j.db.b"] {
        let answer = place.session.answer(statement);
        assert!(answer.contains("the type 'variant' of column 'a' is not supported"), "{answer}");
    }
    place.expect(&[("SHOW TABLES FROM j.db", "a\nb"), ("SELECT * FROM j.db.a", "empty")]);
}

#[test]
fn a_delete_finds_its_row_where_the_key_is_a_time_that_iceberg_keeps_finer() {
    let mut place = Place::new();
    let source = |name: &str, rows: &str| {
        format!(
            "CREATE TEMPORARY TABLE {name} (k TIMESTAMP(3), l TIMESTAMP_LTZ(3), v INT, PRIMARY KEY (k, l) NOT ENFORCED) WITH ('connector' = 'values', 'changelog-mode' = 'I,UA,D', 'rows' = '{rows}')"
        )
    };
    let first = r#"[["+I", "2020-01-01 00:00:00.001", "2020-01-01 00:00:00.001Z", 1], ["+I", "2020-01-01 00:00:00.002", "2020-01-01 00:00:00.001Z", 2]]"#;
    let second = r#"[["-D", "2020-01-01 00:00:00.001", "2020-01-01 00:00:00.001Z", 1], ["+U", "2020-01-01 00:00:00.002", "2020-01-01 00:00:00.001Z", 3]]"#;
    place.expect(&[
        ("CREATE TABLE h.db.t (k TIMESTAMP(3), l TIMESTAMP_LTZ(3), v INT, PRIMARY KEY (k, l) NOT ENFORCED)", "ok"),
        (&source("a", first), "ok"),
        (&source("b", second), "ok"),
        ("SET 'execution.runtime-mode' = 'streaming'", "ok"),
        ("SET 'table.dml-sync' = 'true'", "ok"),
        ("INSERT INTO h.db.t SELECT * FROM a", "job"),
        ("INSERT INTO h.db.t SELECT * FROM b", "job"),
        ("SET 'execution.runtime-mode' = 'batch'", "ok"),
        ("SELECT v FROM h.db.t", "3"),
    ]);
}
