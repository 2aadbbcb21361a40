//! DDL on Iceberg catalogs beyond what Flink's client was asked: what statements answer, and what they leave in the warehouse.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::session::Conversation;

/// A session with a catalog `ice` in a warehouse of its own, database `db` being the current one.
struct Warehouse {
    folder: TempDir,
    session: Conversation,
}

impl Warehouse {
    fn new() -> Warehouse {
        let folder = TempDir::new().unwrap();
        let mut session = Conversation::new();
        let place = folder.path().display();
        session.expect(&[
            (&format!("CREATE CATALOG ice WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = 'file://{place}')"), "ok"),
            ("USE CATALOG ice", "ok"),
            ("CREATE DATABASE db", "ok"),
            ("USE db", "ok"),
            ("SET 'execution.runtime-mode' = 'batch'", "ok"),
        ]);
        Warehouse { folder, session }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the newest metadata of a table of `db`, and which version it is.
    fn metadata(&self, table: &str) -> (u64, Value) {
        let folder = self.path().join("db").join(table).join("metadata");
        let version: u64 =
            fs::read_to_string(folder.join("version-hint.text")).unwrap().trim().parse().unwrap();
        let json = fs::read_to_string(folder.join(format!("v{version}.metadata.json"))).unwrap();
        (version, serde_json::from_str(&json).unwrap())
    }

    /// Returns id and name of each field of a table's schema.
    fn fields(&self, table: &str) -> Vec<String> {
        let (_, metadata) = self.metadata(table);
        let current = &metadata["current-schema-id"];
        let schemas = metadata["schemas"].as_array().unwrap();
        let schema = schemas.iter().find(|schema| schema["schema-id"] == *current).unwrap();
        let text = |field: &Value| format!("{} {}", field["id"], field["name"].as_str().unwrap());
        schema["fields"].as_array().unwrap().iter().map(text).collect()
    }
}

#[test]
fn columns_keep_their_ids_whatever_becomes_of_them() {
    let mut warehouse = Warehouse::new();
    warehouse.session.expect(&[
        ("CREATE TABLE t (id BIGINT, v INT, f FLOAT, p DECIMAL(10, 2), s STRING NOT NULL, PRIMARY KEY (id) NOT ENFORCED)", "ok"),
        ("ALTER TABLE t RENAME s TO v2", "ok"),
        ("ALTER TABLE t MODIFY (v BIGINT COMMENT 'wide' FIRST, f DOUBLE, p DECIMAL(38, 2), v2 STRING)", "ok"),
        ("ALTER TABLE t ADD (a INT AFTER id, b ROW<x INT, y STRING> FIRST, c INT)", "ok"),
        ("ALTER TABLE t DROP c", "ok"),
        ("ALTER TABLE t ADD c STRING", "ok"),
    ]);
    assert_eq!(warehouse.fields("t"), ["7 b", "2 v", "1 id", "6 a", "3 f", "4 p", "5 v2", "11 c"]);
    assert_eq!(warehouse.metadata("t").1["last-column-id"], 11);
    warehouse.session.expect(&[(
        "DESCRIBE t",
        "b|ROW<`x` INT, `y` STRING>|TRUE||||
v|BIGINT|TRUE||||wide
id|BIGINT|FALSE|PRI(id)|||
a|INT|TRUE||||
f|DOUBLE|TRUE||||
p|DECIMAL(38, 2)|TRUE||||
v2|STRING|TRUE||||
c|STRING|TRUE||||",
    )]);
}

#[test]
fn a_change_that_does_not_fit_stored_rows_changes_nothing() {
    let mut warehouse = Warehouse::new();
    warehouse.session.expect(&[
        ("CREATE TABLE t (id BIGINT, v BIGINT, d DOUBLE, l ARRAY<INT>, p STRING, ts TIMESTAMP(6), PRIMARY KEY (id) NOT ENFORCED) PARTITIONED BY (p, days(ts))", "ok"),
        ("ALTER TABLE t ADD (a INT, b INT NOT NULL)", "IllegalArgumentException: Incompatible change: cannot add required column without a default value: b"),
        ("ALTER TABLE t MODIFY v INT", "IllegalArgumentException: Cannot change column type: v: long -> int"),
        ("ALTER TABLE t MODIFY d FLOAT", "IllegalArgumentException: Cannot change column type: d: double -> float"),
        ("ALTER TABLE t MODIFY l ARRAY<BIGINT>", "IllegalArgumentException: Cannot change column type: l: list<int> -> list<long>"),
        ("ALTER TABLE t MODIFY l ARRAY<INT> COMMENT 'same'", "ok"),
        ("ALTER TABLE t MODIFY v BIGINT NOT NULL", "IllegalArgumentException: Cannot change column nullability: v: optional -> required"),
        ("ALTER TABLE t ADD ts9 TIMESTAMP(9)", "IllegalStateException: Invalid schema for v2:\n- Invalid type for ts9: timestamp_ns is not supported until v3"),
        ("ALTER TABLE t DROP ts", "ValidationException: Failed to execute ALTER TABLE statement.\nThe column `ts` is used as the partition keys."),
        ("ALTER TABLE t DROP p", "ValidationException: Failed to execute ALTER TABLE statement.\nThe column `p` is used as the partition keys."),
        ("ALTER TABLE t ADD WATERMARK FOR ts AS ts", "ValidationException: Invalid data type of time field for watermark definition. The field must be of type TIMESTAMP(p) or TIMESTAMP_LTZ(p), the supported precision 'p' is from 0 to 3, but the time field type is TIMESTAMP(6)"),
        ("ALTER TABLE t ADD DISTRIBUTION BY HASH(id) INTO 4 BUCKETS", "UnsupportedOperationException: Unsupported table change: AddDistribution."),
        ("ALTER TABLE t DROP PRIMARY KEY", "UnsupportedOperationException: Unsupported table change: DropConstraint."),
        ("ALTER TABLE t MODIFY PRIMARY KEY (v) NOT ENFORCED", "IllegalArgumentException: Cannot add field v as an identifier field: not a required field"),
    ]);
    // One change was well.
    assert_eq!(warehouse.metadata("t").0, 2);
}

#[test]
fn a_key_can_come_later() {
    let mut warehouse = Warehouse::new();
    warehouse.session.expect(&[
        ("CREATE TABLE t (a INT NOT NULL, b STRING NOT NULL, c DOUBLE NOT NULL)", "ok"),
        ("ALTER TABLE t ADD PRIMARY KEY (c) NOT ENFORCED", "IllegalArgumentException: Cannot add field c as an identifier field: must not be float or double field"),
        ("ALTER TABLE t ADD PRIMARY KEY (b, a) NOT ENFORCED", "ok"),
        ("ALTER TABLE t MODIFY PRIMARY KEY (a) NOT ENFORCED", "ok"),
        ("DESCRIBE t", "a|INT|FALSE|PRI(a)||\nb|STRING|FALSE|||\nc|DOUBLE|FALSE|||"),
    ]);
}

#[test]
fn options_are_properties_and_some_are_more() {
    let mut warehouse = Warehouse::new();
    warehouse.session.expect(&[
        ("CREATE TABLE t (id BIGINT) COMMENT 'it''s' WITH ('a' = '1', 'write.parquet.compression-codec' = 'snappy')", "ok"),
        ("ALTER TABLE t SET ('a' = '2', 'b' = '3', 'format-version' = '3')", "ok"),
        ("ALTER TABLE t SET ('a' = '2')", "ok"),
        ("ALTER TABLE t RESET ('b', 'nope')", "ok"),
        ("ALTER TABLE t SET ('format-version' = '2')", "IllegalArgumentException: Cannot downgrade v3 table to v2"),
        ("ALTER TABLE t SET ('format-version' = '4')", "IllegalArgumentException: Unsupported format version: v4 (supported: v3)"),
        ("ALTER TABLE t SET ('format-version' = 'x')", "NumberFormatException: For input string: \"x\""),
        ("ALTER TABLE t SET ('uuid' = 'x')", "IllegalArgumentException: property 'uuid' is kept by the table itself"),
        ("ALTER TABLE t RESET ('format-version')", "IllegalArgumentException: property 'format-version' is kept by the table itself"),
        ("ALTER TABLE t SET ('lakehead.committed.x' = '1')", "IllegalArgumentException: property 'lakehead.committed.x' is kept by the table itself"),
        ("ALTER TABLE t SET ('connector' = 'kafka')", "IllegalArgumentException: the connector of an Iceberg table cannot be changed"),
        ("ALTER TABLE t SET ('current-snapshot-id' = 'x')", "NumberFormatException: For input string: \"x\""),
        ("ALTER TABLE t SET ('current-snapshot-id' = '1', 'cherry-pick-snapshot-id' = '1')", "IllegalArgumentException: Cannot set the current snapshot ID and cherry-pick snapshot changes"),
    ]);
    let (version, metadata) = warehouse.metadata("t");
    // What changes nothing is not committed.
    assert_eq!((version, &metadata["format-version"]), (3, &Value::from(3)));
    assert_eq!(metadata["properties"]["comment"], "it's");
    warehouse.session.expect(&[(
        "SHOW CREATE TABLE t",
        "CREATE TABLE `ice`.`db`.`t` (
  `id` BIGINT
)
COMMENT 'it''s'
WITH (
  'a' = '2',
  'connector' = 'iceberg',
  'format-version' = '3',
  'write.metadata.delete-after-commit.enabled' = 'true',
  'write.metadata.previous-versions-max' = '20',
  'write.parquet.compression-codec' = 'snappy'
)",
    )]);
}

#[test]
fn what_a_table_cannot_have_is_refused_by_name() {
    let mut warehouse = Warehouse::new();
    warehouse.session.expect(&[
        ("CREATE TABLE t AS SELECT INTERVAL '1' YEAR AS i", "IllegalArgumentException: column 'i' cannot be stored: Iceberg has no type for INTERVAL MONTH NOT NULL"),
        ("CREATE OR REPLACE TABLE t AS SELECT 1 AS i", "UnsupportedOperationException: REPLACE TABLE is not supported for table 'ice.db.t'"),
        ("CREATE TABLE t (d DECIMAL(39, 1))", "IllegalArgumentException: column 'd' cannot be stored: Decimals with precision larger than 38 are not supported: 39"),
        ("CREATE TABLE t (r ROW<ts TIMESTAMP_LTZ(9)>)", "IllegalStateException: Invalid schema for v2:\n- Invalid type for r.ts: timestamptz_ns is not supported until v3"),
        ("CREATE TABLE t (id INT) DISTRIBUTED BY HASH(id) INTO 4 BUCKETS", "UnsupportedOperationException: Iceberg tables have no DISTRIBUTED BY"),
        ("CREATE TABLE t (id INT) WITH ('format-version' = '0')", "IllegalArgumentException: Unsupported format version: v0 (supported: v3)"),
        ("CREATE TABLE t (id INT) WITH ('format-version' = 'two')", "NumberFormatException: For input string: \"two\""),
        ("CREATE TABLE t (id INT) WITH ('current-schema' = '{}')", "IllegalArgumentException: property 'current-schema' is kept by the table itself"),
        ("CREATE TABLE t (id INT) WITH ('password' = 'x')", "IllegalArgumentException: option 'password' would be kept in clear in the table's metadata"),
        ("CREATE TABLE t (id DOUBLE) PARTITIONED BY (bucket(4, id))", "ValidationException: column 'id' of type DOUBLE cannot partition a table by bucket(4, id)"),
        (
            "CREATE TABLE t (ts TIMESTAMP(6)) PARTITIONED BY (years(ts), months(ts))",
            "ValidationException: months(ts) says nothing new of column 'ts', which partitions the table already",
        ),
        ("CREATE TABLE t (id INT) PARTITIONED BY (days(id))", "ValidationException: column 'id' of type INT cannot partition a table by days(id)"),
        ("CREATE TABLE t (id INT) PARTITIONED BY (bucket(0, id))", "IllegalArgumentException: bucket takes a number above 0, not '0': bucket(0, id)"),
        ("CREATE TABLE t (a ARRAY<INT> NOT NULL, PRIMARY KEY (a) NOT ENFORCED)", "IllegalArgumentException: Cannot add field a as an identifier field: not a primitive type field"),
        ("CREATE TABLE `t$files` (id INT)", "UnsupportedOperationException: 't$files' is a metadata table: it can only be read"),
        ("CREATE TABLE `t$x` (id INT)", "IllegalArgumentException: Illegal table name:t$x"),
        ("SHOW TABLES", "empty"),
    ]);
    assert_eq!(fs::read_dir(warehouse.path().join("db")).unwrap().count(), 0);
}

#[test]
fn hidden_partitions_are_made_shown_and_made_again() {
    let mut warehouse = Warehouse::new();
    let create = "CREATE TABLE `ice`.`db`.`t` (
  `id` BIGINT,
  `my s` VARCHAR(2147483647),
  `ts` TIMESTAMP(6),
  `d` DATE
)
PARTITIONED BY (`d`, bucket(16, `id`), truncate(4, `my s`), hours(`ts`))
WITH (
  'connector' = 'iceberg',
  'write.metadata.delete-after-commit.enabled' = 'true',
  'write.metadata.previous-versions-max' = '20',
  'write.parquet.compression-codec' = 'zstd'
)";
    let again = create.replace("`t` (", "`t2` (").replace("  'connector' = 'iceberg',\n", "");
    warehouse.session.expect(&[
        ("CREATE TABLE t (id BIGINT, `my s` STRING, ts TIMESTAMP(3), d DATE) PARTITIONED BY (d, BUCKET(16, id), truncate(4, `my s`), HOURS(ts))", "ok"),
        ("SHOW CREATE TABLE t", create),
        (&again, "ok"),
        ("SHOW CREATE TABLE t2", &create.replace("`t` (", "`t2` (")),
        ("CREATE TABLE t3 LIKE t", "ok"),
        ("SHOW CREATE TABLE t3", &create.replace("`t` (", "`t3` (")),
    ]);
    let (_, metadata) = warehouse.metadata("t3");
    let names: Vec<&str> = metadata["partition-specs"][0]["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| field["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["d", "id_bucket", "my s_trunc", "ts_hour"]);
}

#[test]
fn like_in_another_catalog_refers_to_the_table() {
    let mut warehouse = Warehouse::new();
    let place = warehouse.path().display().to_string();
    let reference = format!(
        "CREATE TABLE `default_catalog`.`default_database`.`r` (
  `id` INT NOT NULL,
  `ts` TIMESTAMP(6),
  `twice` AS `id` * 2,
  CONSTRAINT `PK_id` PRIMARY KEY (`id`) NOT ENFORCED
)
WITH (
  'catalog-database' = 'db',
  'catalog-name' = 'ice',
  'catalog-table' = 't',
  'catalog-type' = 'hadoop',
  'connector' = 'iceberg',
  'warehouse' = 'file://{place}',
  'write.metadata.delete-after-commit.enabled' = 'true',
  'write.metadata.previous-versions-max' = '20',
  'write.parquet.compression-codec' = 'zstd'
)"
    );
    warehouse.session.expect(&[
        ("CREATE TABLE t (id INT, ts TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED) COMMENT 'c'", "ok"),
        ("CREATE TABLE default_catalog.default_database.r (twice AS id * 2) LIKE t", "ok"),
        ("SHOW CREATE TABLE default_catalog.default_database.r", &reference),
        ("CREATE TEMPORARY TABLE r2 LIKE t (EXCLUDING CONSTRAINTS)", "ok"),
        ("DESCRIBE r2", "id|INT|FALSE|||\nts|TIMESTAMP(6)|TRUE|||"),
    ]);
}

#[test]
fn a_dropped_table_leaves_no_file() {
    let mut warehouse = Warehouse::new();
    warehouse.session.expect(&[
        ("CREATE TABLE t (id INT)", "ok"),
        ("CREATE TABLE u (id INT)", "ok"),
        ("DROP TABLE t", "ok"),
        (
            "DROP TABLE `u$files`",
            "UnsupportedOperationException: 'u$files' is a metadata table: it can only be read",
        ),
        ("SHOW TABLES", "u"),
        ("DROP TABLE t", "ValidationException: Table with identifier 'ice.db.t' does not exist."),
        ("USE CATALOG default_catalog", "ok"),
        ("DROP DATABASE ice.db", "NamespaceNotEmptyException: Namespace db is not empty."),
        ("DROP DATABASE ice.db CASCADE", "ok"),
        ("SHOW DATABASES FROM ice", "empty"),
    ]);
    assert_eq!(fs::read_dir(warehouse.path()).unwrap().count(), 0);
}

#[test]
fn each_statement_sees_what_others_have_changed() {
    let mut warehouse = Warehouse::new();
    let place = warehouse.path().display().to_string();
    let mut other = Conversation::new();
    warehouse.session.expect(&[("CREATE TABLE t (id INT)", "ok"), ("DESCRIBE t", "id|INT|TRUE|||")]);
    other.expect(&[
        (&format!("CREATE CATALOG c WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = '{place}', 'cache-enabled' = 'true')"), "ok"),
        ("ALTER TABLE c.db.t ADD b INT", "ok"),
        ("CREATE TABLE c.db.u (id INT)", "ok"),
    ]);
    warehouse.session.expect(&[("DESCRIBE t", "id|INT|TRUE|||\nb|INT|TRUE|||"), ("SHOW TABLES", "t\nu")]);
}

#[test]
fn a_missing_database_comes_with_its_first_table() {
    let mut warehouse = Warehouse::new();
    warehouse.session.expect(&[
        ("CREATE TABLE IF NOT EXISTS d2.t (id INT)", "ok"),
        ("CREATE TABLE IF NOT EXISTS d2.t (other INT)", "ok"),
        ("SHOW DATABASES", "d2\ndb"),
        ("DESCRIBE d2.t", "id|INT|TRUE|||"),
        ("ALTER TABLE d2.t RENAME TO t3", "UnsupportedOperationException: Cannot rename Hadoop tables"),
        ("CREATE VIEW v AS SELECT 1", "IllegalArgumentException: table should be resolved"),
        ("SHOW VIEWS", "empty"),
        ("CREATE TEMPORARY VIEW v AS SELECT 1 AS x", "ok"),
        ("SELECT * FROM v", "1"),
        ("SHOW TABLES", "v"),
    ]);
}

#[test]
fn wrong_options_of_a_catalog_are_refused_by_name() {
    let mut session = Conversation::new();
    let create = |options: &str| format!("CREATE CATALOG c WITH ('type' = 'iceberg', {options})");
    session.expect(&[
        (&create("'catalog-type' = 'hadoop', 'warehouse' = 's3://bucket/x'"), "UnsupportedOperationException: location 's3://bucket/x' cannot be used: scheme 's3' is not supported yet"),
        (&create("'catalog-type' = 'hadoop', 'warehouse' = 'file://host/x'"), "ValidationException: location 'file://host/x' names a host"),
        (&create("'catalog-type' = 'hadoop', 'warehouse' = 'file:warehouse'"), "ValidationException: location 'file:warehouse' is not absolute"),
        (&create("'catalog-impl' = 'org.apache.iceberg.nessie.NessieCatalog'"), "UnsupportedOperationException: Cannot create catalog c: 'org.apache.iceberg.nessie.NessieCatalog' is not supported yet"),
        (&create("'catalog-type' = 'Hive'"), "UnsupportedOperationException: Cannot create catalog c: 'Hive' is not supported yet"),
        (&create("'catalog-type' = 'hadoop', 'warehouse' = '/x', 'io-impl' = 'org.apache.iceberg.aws.s3.S3FileIO'"), "UnsupportedOperationException: 'io-impl' = 'org.apache.iceberg.aws.s3.S3FileIO' is not supported yet"),
        (&create("'catalog-type' = 'hadoop', 'warehouse' = '/x', 'cache-enabled' = 'perhaps'"), "IllegalArgumentException: Unrecognized option for boolean: perhaps. Expected either true or false(case insensitive)"),
        ("SHOW CATALOGS", "default_catalog"),
    ]);
}

#[test]
fn a_damaged_table_is_named_and_the_others_stay_usable() {
    let mut warehouse = Warehouse::new();
    warehouse.session.expect(&[("CREATE TABLE t (id INT)", "ok"), ("CREATE TABLE u (id INT)", "ok")]);
    fs::write(warehouse.path().join("db/t/metadata/v1.metadata.json"), "{").unwrap();
    let answer = warehouse.session.answer("DESCRIBE t");
    assert!(answer.contains("db/t/metadata/v1.metadata.json' cannot be used"), "{answer}");
    warehouse.session.expect(&[("SHOW TABLES", "t\nu"), ("DESCRIBE u", "id|INT|TRUE|||")]);
}

#[test]
fn a_catalog_in_a_database_keeps_what_folders_cannot() {
    let folder = TempDir::new().unwrap();
    let place = folder.path().display();
    let create = format!(
        "CREATE CATALOG ice WITH ('type' = 'iceberg', 'catalog-impl' = 'org.apache.iceberg.jdbc.JdbcCatalog', 'uri' = 'jdbc:sqlite:{place}/catalog.db', 'warehouse' = '{place}/warehouse', 'jdbc.schema-version' = 'v1')"
    );
    let mut session = Conversation::new();
    session.expect(&[
        (&create, "ok"),
        ("USE CATALOG ice", "ok"),
        ("SHOW DATABASES", "empty"),
        ("CREATE DATABASE db COMMENT 'ours' WITH ('k' = 'v')", "ok"),
        ("CREATE DATABASE db", "AlreadyExistsException: Namespace already exists: db"),
        ("CREATE DATABASE IF NOT EXISTS db", "ok"),
        ("ALTER DATABASE db SET ('k' = 'w', 'l' = 'x')", "ok"),
        ("DESCRIBE DATABASE EXTENDED db", "name|db\ncatalog|ice\ncomment|ours\noption:k|w\noption:l|x"),
        ("USE db", "ok"),
        (&format!("CREATE TABLE t (id INT) WITH ('location' = '{place}/elsewhere')"), "ok"),
        ("CREATE TABLE t (id INT)", "AlreadyExistsException: Table already exists: db.t"),
        ("ALTER TABLE t ADD v STRING", "ok"),
        ("ALTER TABLE t RENAME TO u", "ok"),
        ("SHOW TABLES", "u"),
        ("DESCRIBE u", "id|INT|TRUE|||\nv|STRING|TRUE|||"),
        (&format!("ALTER TABLE u SET ('location' = '{place}/again')"), "ok"),
        ("CREATE TABLE w (id INT)", "ok"),
        ("ALTER TABLE w RENAME TO u", "AlreadyExistsException: Table already exists: db.u"),
        ("DROP DATABASE db", "ValidationException: Cannot drop a database which is currently in use."),
        ("USE CATALOG default_catalog", "ok"),
        ("DROP DATABASE ice.db", "NamespaceNotEmptyException: Namespace db is not empty. 2 tables exist."),
    ]);
    // Another session finds what is there.
    let mut other = Conversation::new();
    let create =
        create.replace("'catalog-impl' = 'org.apache.iceberg.jdbc.JdbcCatalog'", "'catalog-type' = 'JDBC'");
    other.expect(&[
        (&create, "ok"),
        ("SHOW TABLES FROM ice.db", "u\nw"),
        ("DROP DATABASE ice.db CASCADE", "ok"),
        ("SHOW DATABASES FROM ice", "empty"),
    ]);
}

#[test]
fn databases_can_lie_below_a_namespace() {
    let folder = TempDir::new().unwrap();
    let place = folder.path().display();
    let options = format!(
        "'type' = 'iceberg', 'catalog-type' = 'jdbc', 'uri' = 'jdbc:sqlite:{place}/catalog.db', 'warehouse' = '{place}'"
    );
    let mut session = Conversation::new();
    session.expect(&[
        (
            &format!(
                "CREATE CATALOG below WITH ({options}, 'base-namespace' = 'a.b', 'default-database' = 'db')"
            ),
            "ok",
        ),
        ("CREATE DATABASE below.db", "ok"),
        ("CREATE TABLE below.db.t (id INT)", "ok"),
        ("SHOW DATABASES FROM below", "db"),
        ("USE CATALOG below", "ok"),
        ("SHOW CURRENT DATABASE", "db"),
        ("SHOW TABLES", "t"),
    ]);
}

#[test]
fn wrong_options_of_a_catalog_in_a_database_are_refused_by_name() {
    let mut session = Conversation::new();
    let create = |options: &str| {
        format!("CREATE CATALOG c WITH ('type' = 'iceberg', 'catalog-type' = 'jdbc', {options})")
    };
    session.expect(&[
        (&create("'warehouse' = '/w'"), "IllegalArgumentException: JDBC connection URI is required"),
        (&create("'uri' = 'jdbc:sqlite::memory:'"), "IllegalArgumentException: Cannot initialize JDBCCatalog because warehousePath must not be null or empty"),
        (&create("'uri' = 'jdbc:sqlite::memory:', 'warehouse' = '/w', 'jdbc.schema-version' = 'V2'"), "IllegalArgumentException: Could not parse value for enum org.apache.iceberg.jdbc.JdbcUtil.SchemaVersion. Expected one of: [[V0, V1]]"),
    ]);
}

#[test]
fn a_table_elsewhere_makes_its_iceberg_table_when_it_is_used() {
    let mut warehouse = Warehouse::new();
    let place = warehouse.path().display().to_string();
    let with = |more: &str| {
        format!(
            "WITH ('connector' = 'iceberg', 'catalog-name' = 'c', 'catalog-type' = 'hadoop', 'warehouse' = '{place}'{more})"
        )
    };
    warehouse.session.expect(&[
        ("USE CATALOG default_catalog", "ok"),
        (
            &format!(
                "CREATE TABLE t (id INT, v TINYINT, PRIMARY KEY (id) NOT ENFORCED) {}",
                with(", 'format-version' = '3', 'my.own' = 'x'")
            ),
            "ok",
        ),
        ("SHOW DATABASES FROM ice", "db"),
    ]);
    // It is made before the query fails or not.
    warehouse.session.answer("SELECT * FROM t");
    warehouse.session.expect(&[
        ("SHOW DATABASES FROM ice", "db\ndefault_database"),
        ("DESCRIBE ice.default_database.t", "id|INT|FALSE|PRI(id)||\nv|INT|TRUE|||"),
        (&format!("CREATE TABLE narrow (id INT) {}", with(", 'catalog-table' = 't'")), "ok"),
        (&format!("CREATE TABLE wrong (id INT, w INT) {}", with(", 'catalog-table' = 't'")), "ok"),
        ("SELECT * FROM wrong", "ValidationException: table 'default_catalog.default_database.wrong' does not fit 'default_database.t': there is no column 'w'"),
        (&format!("CREATE TABLE other (id STRING) {}", with(", 'catalog-table' = 't'")), "ok"),
        ("SELECT * FROM other", "ValidationException: table 'default_catalog.default_database.other' does not fit 'default_database.t': column 'id' is INT there, not STRING"),
        (&format!("CREATE TABLE computed (id INT, w AS id + 1) {}", with("")), "ok"),
        ("SELECT * FROM computed", "UnsupportedOperationException: Creating table with computed columns is not supported yet."),
        ("SHOW TABLES FROM ice.default_database", "t"),
        ("DROP TABLE t", "ok"),
        ("SHOW TABLES FROM ice.default_database", "t"),
    ]);
    let metadata = warehouse.path().join("default_database/t/metadata/v1.metadata.json");
    let metadata: Value = serde_json::from_str(&fs::read_to_string(metadata).unwrap()).unwrap();
    assert_eq!(metadata["format-version"], 3);
    let properties: Vec<&String> = metadata["properties"].as_object().unwrap().keys().collect();
    // Those of its catalog are no properties of the table.
    assert!(properties.iter().all(|key| key.starts_with("write.") || *key == "my.own"), "{properties:?}");
}

#[test]
fn create_table_as_fills_the_table_that_it_has_made() {
    let mut warehouse = Warehouse::new();
    warehouse.session.expect(&[
        ("CREATE TABLE t (PRIMARY KEY (n) NOT ENFORCED) PARTITIONED BY (bucket(2, n)) AS SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS v (n, k)", "job"),
        ("SELECT * FROM t ORDER BY n", "1|a\n2|b"),
        ("DESCRIBE t", "n|INT|FALSE|PRI(n)||\nk|STRING|FALSE|||"),
        ("CREATE TABLE t AS SELECT 1 AS x", "AlreadyExistsException: Table already exists: db.t"),
        ("CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS x", "ok"),
        ("SET 'execution.runtime-mode' = 'streaming'", "ok"),
        ("CREATE TABLE u AS SELECT k, n FROM (VALUES (1, 'a')) AS v (n, k)", "job"),
        ("SET 'execution.runtime-mode' = 'batch'", "ok"),
        ("SELECT * FROM u", "a|1"),
    ]);
    let answer = warehouse.session.answer("CREATE TABLE w AS SELECT CAST(k AS INT) AS n FROM t");
    assert!(answer.starts_with("NumberFormatException"), "{answer}");
    // As in Flink the table stays, and is empty.
    warehouse.session.expect(&[("SHOW TABLES", "t\nu\nw"), ("SELECT * FROM w", "empty")]);
}

#[test]
fn rows_written_before_a_change_are_read_with_it() {
    let mut warehouse = Warehouse::new();
    warehouse.session.expect(&[
        ("CREATE TABLE t (id INT, v INT, f FLOAT, d DECIMAL(4, 2), gone STRING)", "ok"),
        ("INSERT INTO t VALUES (1, 10, CAST(0.5 AS FLOAT), 1.25, 'x')", "job"),
        ("ALTER TABLE t RENAME v TO w", "ok"),
        ("ALTER TABLE t MODIFY (w BIGINT FIRST, f DOUBLE, d DECIMAL(20, 2))", "ok"),
        ("ALTER TABLE t DROP gone", "ok"),
        ("ALTER TABLE t ADD (gone INT AFTER id, v STRING)", "ok"),
        ("INSERT INTO t VALUES (5000000000, 2, 7, 0.25, 123456.75, 'y')", "job"),
        ("SELECT * FROM t ORDER BY id", "10|1|NULL|0.5|1.25|NULL\n5000000000|2|7|0.25|123456.75|y"),
    ]);
}

#[test]
fn changes_of_two_sessions_do_not_lose_each_other() {
    let mut warehouse = Warehouse::new();
    warehouse.session.expect(&[("CREATE TABLE t (id INT)", "ok")]);
    let place = warehouse.path().display().to_string();
    let sessions = ["a", "b"].map(|name| {
        let create = format!(
            "CREATE CATALOG ice WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = '{place}')"
        );
        std::thread::spawn(move || {
            let mut session = Conversation::new();
            session.expect(&[(&create, "ok")]);
            for number in 0..5 {
                session.expect(&[(&format!("ALTER TABLE ice.db.t ADD {name}{number} INT"), "ok")]);
            }
        })
    });
    for session in sessions {
        session.join().unwrap();
    }
    let fields = warehouse.fields("t");
    let ids: std::collections::BTreeSet<&str> =
        fields.iter().map(|field| field.split(' ').next().unwrap()).collect();
    assert_eq!((fields.len(), ids.len()), (11, 11), "{fields:?}");
    assert_eq!(warehouse.metadata("t").0, 11);
}

#[test]
fn partition_columns_may_have_any_name() {
    let mut warehouse = Warehouse::new();
    warehouse.session.expect(&[
        ("CREATE TABLE t (id INT, `a b` STRING, `1.ä` INT, `%` DATE) PARTITIONED BY (`a b`, bucket(4, `1.ä`), months(`%`))", "ok"),
        ("INSERT INTO t VALUES (1, 'x', 7, DATE '2026-01-01'), (2, 'y', 8, DATE '2026-02-01')", "job"),
        ("SELECT id, `a b`, `1.ä`, `%` FROM t ORDER BY id", "1|x|7|2026-01-01\n2|y|8|2026-02-01"),
        ("INSERT OVERWRITE t PARTITION (`a b` = 'y') SELECT 3, 8, DATE '2026-02-02'", "job"),
        ("SELECT id FROM t WHERE `a b` <> 'x'", "3"),
        ("SELECT COUNT(*) FROM `t$partitions`", "2"),
    ]);
}
