//! Statements executed in a session without a shell: what is expected of them is what Flink 2.3 answered, cells between bars.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono_tz::Tz;
use futures::{FutureExt, StreamExt};

use super::{OutputPort, OutputStream, Session, SessionSettings, StatementResult};
use crate::schema::format_cell;
use crate::sql::parse_statement;

#[derive(Debug)]
struct Nowhere;

impl OutputPort for Nowhere {
    fn print(&self, _: OutputStream, _: &str) {}
}

/// A session that answers with text.
struct TestSession(Session);

impl TestSession {
    fn new() -> TestSession {
        TestSession::with(&[])
    }

    fn with(defaults: &[(&str, &str)]) -> TestSession {
        let defaults: BTreeMap<String, String> =
            defaults.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let settings = SessionSettings { defaults, output: Arc::new(Nowhere), session_id: "test".to_owned() };
        TestSession(Session::new(settings).unwrap())
    }

    /// Runs a statement and returns `ok`, `note: …`, the last part of the error's class and its message, or the rows.
    async fn run(&mut self, text: &str) -> String {
        let result = match parse_statement(text) {
            Ok(statement) => self.0.execute(&statement, text).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(StatementResult::Table(table)) => {
                let mut lines = Vec::new();
                for row in 0..table.rows.num_rows() {
                    let cells = table.columns.iter().zip(table.rows.columns());
                    let cells =
                        cells.map(|(column, array)| format_cell(&column.data_type, array, row, Tz::UTC));
                    lines.push(cells.map(Option::unwrap_or_default).collect::<Vec<_>>().join("|"));
                }
                if lines.is_empty() { "empty".to_owned() } else { lines.join("\n") }
            }
            Ok(StatementResult::Done) => "ok".to_owned(),
            Ok(StatementResult::DoneWithNote(note)) => format!("note: {note}"),
            Ok(other) => format!("{other:?}"),
            Err(error) => {
                let class = error.flink_class().name().rsplit('.').next().unwrap();
                format!("{class}: {}", error.message())
            }
        }
    }

    /// Runs statements one after the other and compares each answer.
    async fn expect(&mut self, cases: &[(&str, &str)]) {
        for (text, expected) in cases {
            let actual = self.run(text).await;
            assert_eq!(actual.trim_end(), expected.trim_end(), "{text}");
        }
    }
}

const ORDERS: &str = "CREATE TABLE orders (
  order_id BIGINT NOT NULL COMMENT 'the key',
  price DECIMAL(10, 2),
  ts TIMESTAMP(3),
  total AS price * 2,
  note STRING,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND,
  PRIMARY KEY (order_id) NOT ENFORCED
) COMMENT 'some orders' WITH ('connector' = 'datagen', 'number-of-rows' = '5')";

#[tokio::test]
async fn catalogs_and_databases() {
    let mut session = TestSession::new();
    session
        .expect(&[
            ("CREATE CATALOG c WITH ('type' = 'generic_in_memory', 'default-database' = 'd0')", "ok"),
            ("CREATE CATALOG c WITH ('type' = 'generic_in_memory')", "CatalogException: Catalog c already exists."),
            ("SHOW CATALOGS LIKE '_'", "c"),
            ("DESCRIBE CATALOG EXTENDED c", "name|c\ntype|generic_in_memory\ncomment|\noption:default-database|d0"),
            ("ALTER CATALOG c COMMENT 'it''s'", "ok"),
            ("ALTER CATALOG c SET ('secret' = 'x')", "ValidationException: Unsupported options found for 'generic_in_memory'.\n\nUnsupported options:\n\nsecret\n\nSupported options:\n\ndefault-database"),
            (
                "SHOW CREATE CATALOG c",
                "CREATE CATALOG `c`\nCOMMENT 'it''s'\nWITH (\n  'default-database' = 'd0',\n  'type' = 'generic_in_memory'\n)\n",
            ),
            ("ALTER CATALOG c RESET ('type')", "ValidationException: ALTER CATALOG RESET does not support changing 'type'"),
            ("USE CATALOG c", "ok"),
            ("SHOW CURRENT DATABASE", "d0"),
            ("CREATE DATABASE d1 COMMENT 'first' WITH ('k' = 'v')", "ok"),
            ("CREATE DATABASE d1", "DatabaseAlreadyExistException: Database d1 already exists in Catalog c."),
            ("SHOW DATABASES", "d0\nd1"),
            ("CREATE TABLE d1.t (a INT)", "ok"),
            ("SHOW TABLES FROM c.d1", "t"),
            ("SHOW TABLES FROM nope", "ValidationException: Database 'c'.'nope' doesn't exist."),
            ("DROP DATABASE d1", "DatabaseNotEmptyException: Database d1 in catalog c is not empty."),
            ("DROP DATABASE d1 CASCADE", "ok"),
            ("DROP DATABASE d1", "DatabaseNotExistException: Database d1 does not exist in Catalog c."),
            ("USE nope", "CatalogException: A database with name [nope] does not exist in the catalog: [c]."),
            ("USE CATALOG nope", "CatalogException: A catalog with name [nope] does not exist."),
            ("DROP CATALOG c", "CatalogException: Cannot drop a catalog which is currently in use."),
            ("USE default_catalog.default_database", "ok"),
            ("DROP CATALOG c", "ok"),
            ("DROP CATALOG c", "CatalogException: Catalog c does not exist."),
            ("DROP CATALOG IF EXISTS c", "ok"),
        ])
        .await;
}

#[tokio::test]
async fn a_table_is_created_and_described() {
    let mut session = TestSession::new();
    session
        .expect(&[
            (ORDERS, "ok"),
            (
                "DESCRIBE orders",
                "order_id|BIGINT|FALSE|PRI(order_id)|||the key
price|DECIMAL(10, 2)|TRUE||||
ts|TIMESTAMP(3) *ROWTIME*|TRUE|||`ts` - INTERVAL '5' SECOND|
total|DECIMAL(21, 2)|TRUE||AS `price` * 2||
note|STRING|TRUE||||",
            ),
            (
                "SHOW COLUMNS FROM orders LIKE '%o%l'",
                "total|DECIMAL(21, 2)|TRUE||AS `price` * 2||",
            ),
            (
                "SHOW CREATE TABLE orders",
                "CREATE TABLE `default_catalog`.`default_database`.`orders` (
  `order_id` BIGINT NOT NULL COMMENT 'the key',
  `price` DECIMAL(10, 2),
  `ts` TIMESTAMP(3),
  `total` AS `price` * 2,
  `note` VARCHAR(2147483647),
  WATERMARK FOR `ts` AS `ts` - INTERVAL '5' SECOND,
  CONSTRAINT `PK_order_id` PRIMARY KEY (`order_id`) NOT ENFORCED
)
COMMENT 'some orders'
WITH (
  'connector' = 'datagen',
  'number-of-rows' = '5'
)",
            ),
            (
                "CREATE TABLE orders (a INT)",
                "TableAlreadyExistException: Table (or view) default_database.orders already exists in Catalog default_catalog.",
            ),
        ])
        .await;
}

#[tokio::test]
async fn a_table_is_changed_and_dropped() {
    let mut session = TestSession::new();
    session
        .expect(&[
            (ORDERS, "ok"),
            ("ALTER TABLE orders MODIFY price DECIMAL(12, 3)", "ok"),
            (
                "SHOW COLUMNS FROM orders LIKE 'total'",
                "total|DECIMAL(23, 3)|TRUE||AS `price` * 2||",
            ),
            (
                "ALTER TABLE orders DROP price",
                "ValidationException: Failed to execute ALTER TABLE statement.\nThe column `price` is referenced by computed column `total`.",
            ),
            (
                "ALTER TABLE orders RENAME ts TO t",
                "ValidationException: Failed to execute ALTER TABLE statement.\nThe column `ts` is referenced by watermark expression.",
            ),
            ("ALTER TABLE orders DROP WATERMARK", "ok"),
            ("ALTER TABLE orders DROP (total, price)", "ok"),
            ("ALTER TABLE orders RENAME order_id TO id", "ok"),
            ("ALTER TABLE orders ADD (a INT FIRST, b AS id + 1 AFTER a)", "ok"),
            ("ALTER TABLE orders RESET ('number-of-rows')", "ok"),
            ("ALTER TABLE orders RENAME TO o", "ok"),
            (
                "SHOW CREATE TABLE o",
                "CREATE TABLE `default_catalog`.`default_database`.`o` (
  `a` INT,
  `b` AS `id` + 1,
  `id` BIGINT NOT NULL COMMENT 'the key',
  `ts` TIMESTAMP(3),
  `note` VARCHAR(2147483647),
  CONSTRAINT `PK_order_id` PRIMARY KEY (`id`) NOT ENFORCED
)
COMMENT 'some orders'
WITH (
  'connector' = 'datagen'
)",
            ),
            ("DROP TABLE o", "ok"),
            ("DROP TABLE o", "ValidationException: Table with identifier 'default_catalog.default_database.o' does not exist."),
            ("DROP TABLE IF EXISTS o", "ok"),
        ])
        .await;
}

#[tokio::test]
async fn wrong_definitions_have_flinks_words() {
    let mut session = TestSession::new();
    session
        .expect(&[
            ("CREATE TABLE x (id INT, id INT)", "ValidationException: A regular Column named 'id' already exists in the table."),
            (
                "CREATE TABLE x (id INT, PRIMARY KEY (nope) NOT ENFORCED)",
                "ValidationException: Primary key column 'nope' is not defined in the schema at line 1, column 38",
            ),
            (
                "CREATE TABLE x (id INT, WATERMARK FOR nope AS nope)",
                "ValidationException: The rowtime attribute field 'nope' is not defined in the table schema, at line 1, column 39\nAvailable fields: ['id']",
            ),
            (
                "CREATE TABLE x (id INT, WATERMARK FOR id AS id)",
                "ValidationException: Invalid data type of time field for watermark definition. The field must be of type TIMESTAMP(p) or TIMESTAMP_LTZ(p), the supported precision 'p' is from 0 to 3, but the time field type is INT",
            ),
            (
                "CREATE TABLE x (id INT PRIMARY KEY NOT ENFORCED, PRIMARY KEY (id) NOT ENFORCED)",
                "SqlValidateException: Duplicate primary key definition",
            ),
            (
                "CREATE TABLE x (id INT) PARTITIONED BY (day)",
                "ValidationException: Partition column 'day' not defined in the table schema. Available columns: ['id']",
            ),
            (
                "CREATE TABLE x (id INT) PARTITIONED BY (bucket(4, id))",
                "ValidationException: this catalog cannot partition tables by transforms",
            ),
            ("CREATE TABLE nope.d.x (id INT)", "ValidationException: Catalog nope does not exist."),
            ("CREATE TABLE nope.x (id INT)", "DatabaseNotExistException: Database nope does not exist in Catalog default_catalog."),
            (
                "ALTER TABLE nope SET ('a' = 'b')",
                "ValidationException: Table `default_catalog`.`default_database`.`nope` doesn't exist or is a temporary table.",
            ),
            ("ALTER TABLE IF EXISTS nope SET ('a' = 'b')", "ok"),
            ("SHOW TABLES", "empty"),
        ])
        .await;
}

#[tokio::test]
async fn every_kind_of_column_is_described() {
    let mut session = TestSession::new();
    session
        .expect(&[
            (
                "CREATE TABLE t (`user` BIGINT, m TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL, r ROW<a TIMESTAMP(3), b INT NOT NULL>, ptime AS PROCTIME(), WATERMARK FOR r.a AS r.a, CONSTRAINT k PRIMARY KEY (`user`) NOT ENFORCED)",
                "ok",
            ),
            (
                "DESCRIBE t",
                "user|BIGINT|FALSE|PRI(user)||
m|TIMESTAMP_LTZ(3)|TRUE||METADATA FROM 'timestamp' VIRTUAL|
r|ROW<`a` TIMESTAMP(3), `b` INT NOT NULL>|TRUE|||
ptime|TIMESTAMP_LTZ(3) *PROCTIME*|FALSE||AS PROCTIME()|",
            ),
            ("ALTER TABLE t DROP CONSTRAINT x", "ValidationException: Failed to execute ALTER TABLE statement.\nThe base table does not define a primary key constraint named 'x'. Available constraint name: ['k']."),
            ("ALTER TABLE t DROP CONSTRAINT k", "ok"),
            ("ALTER TABLE t ADD PRIMARY KEY (ptime) NOT ENFORCED", "ValidationException: Failed to execute ALTER TABLE statement.\nInvalid primary key 'PK_ptime'. Column 'ptime' is not a physical column."),
            ("ALTER TABLE t ADD WATERMARK FOR r.a AS r.a", "ValidationException: Failed to execute ALTER TABLE statement.\nThe base table has already defined the watermark strategy `r`.`a` AS `r`.`a`. You might want to drop it before adding a new one."),
            ("ALTER TABLE t ADD DISTRIBUTION BY HASH(`user`) INTO 4 BUCKETS", "ok"),
            ("ALTER TABLE t DROP `user`", "ValidationException: Failed to execute ALTER TABLE statement.\nThe column `user` is used as a distribution key."),
            ("ALTER TABLE t ADD PARTITION FIELD days(m)", "UnsupportedOperationException: ALTER TABLE ADD PARTITION FIELD is not supported for table 'default_catalog.default_database.t'"),
        ])
        .await;
}

#[tokio::test]
async fn like_copies_what_it_is_told() {
    let mut session = TestSession::new();
    session
        .expect(&[
            (ORDERS, "ok"),
            ("CREATE TEMPORARY TABLE o2 WITH ('number-of-rows' = '7') LIKE orders (EXCLUDING CONSTRAINTS)", "ok"),
            (
                "SHOW CREATE TABLE o2",
                "CREATE TEMPORARY TABLE `default_catalog`.`default_database`.`o2` (
  `order_id` BIGINT NOT NULL COMMENT 'the key',
  `price` DECIMAL(10, 2),
  `ts` TIMESTAMP(3),
  `total` AS `price` * 2,
  `note` VARCHAR(2147483647),
  WATERMARK FOR `ts` AS `ts` - INTERVAL '5' SECOND
)
WITH (
  'connector' = 'datagen',
  'number-of-rows' = '7'
)",
            ),
            (
                "CREATE TABLE x (total AS price * 3) LIKE orders",
                "ValidationException: A generated column named 'total' already exists in the base table. You might want to specify EXCLUDING GENERATED or OVERWRITING GENERATED.",
            ),
            ("CREATE TABLE x (total AS price * 3, extra INT) LIKE orders (EXCLUDING ALL OVERWRITING GENERATED)", "ok"),
            (
                "SHOW CREATE TABLE x",
                "CREATE TABLE `default_catalog`.`default_database`.`x` (
  `order_id` BIGINT NOT NULL COMMENT 'the key',
  `price` DECIMAL(10, 2),
  `ts` TIMESTAMP(3),
  `total` AS `price` * 3,
  `note` VARCHAR(2147483647),
  `extra` INT
)",
            ),
            (
                "CREATE TABLE y WITH ('connector' = 'x') LIKE orders (INCLUDING OPTIONS)",
                "ValidationException: There already exists an option ['connector' -> 'x']  in the base table. You might want to specify EXCLUDING OPTIONS or OVERWRITING OPTIONS.",
            ),
            ("CREATE TABLE y (note INT) LIKE orders", "ValidationException: A column named 'note' already exists in the base table."),
            (
                "CREATE TABLE y (PRIMARY KEY (note) NOT ENFORCED) LIKE orders",
                "ValidationException: The base table already has a primary key. You might want to specify EXCLUDING CONSTRAINTS.",
            ),
            (
                "CREATE TABLE y LIKE y",
                "ValidationException: Source table '`default_catalog`.`default_database`.`y`' of the LIKE clause not found in the catalog, at line 1, column 21",
            ),
        ])
        .await;
}

#[tokio::test]
async fn views_keep_their_query_in_full() {
    let mut session = TestSession::new();
    session
        .expect(&[
            ("CREATE VIEW v (a, b) COMMENT 'two columns' AS SELECT 1, 'x'", "ok"),
            ("SHOW VIEWS", "v"),
            ("DESCRIBE v", "a|INT|FALSE|||\nb|CHAR(1)|FALSE|||"),
            (
                "SHOW CREATE VIEW v",
                "CREATE VIEW `default_catalog`.`default_database`.`v` (\n  `a`,\n  `b`\n)\nCOMMENT 'two columns'\nAS SELECT 1, 'x'",
            ),
            (
                "SHOW CREATE TABLE v",
                "TableException: SHOW CREATE TABLE is only supported for tables, but `default_catalog`.`default_database`.`v` is a view. Please use SHOW CREATE VIEW instead.",
            ),
            ("CREATE VIEW w (a) AS SELECT 1, 2", "ValidationException: VIEW definition and input fields not match:\n\tDef fields: [a].\n\tInput fields: [EXPR$0, EXPR$1]."),
            ("CREATE TEMPORARY VIEW tv AS SELECT a + 1 AS a1 FROM v", "ok"),
            (
                "SHOW CREATE VIEW tv",
                "CREATE TEMPORARY VIEW `default_catalog`.`default_database`.`tv` (\n  `a1`\n)\nAS SELECT `v`.`a` + 1 AS `a1`\nFROM `default_catalog`.`default_database`.`v` AS `v`",
            ),
            ("CREATE VIEW w AS SELECT * FROM nope", "SqlValidatorException: Object 'nope' not found"),
            ("ALTER VIEW v AS SELECT a FROM v", "ValidationException: view 'default_catalog.default_database.v' would read from itself"),
            ("CREATE VIEW w AS SELECT a FROM v", "ok"),
            ("ALTER VIEW v AS SELECT a FROM w", "ok"),
            (
                "CREATE VIEW x AS SELECT a FROM w",
                "ValidationException: View 'default_catalog.default_database.w' refers to itself: default_catalog.default_database.w -> default_catalog.default_database.v -> default_catalog.default_database.w",
            ),
            ("ALTER VIEW v RENAME TO v2", "ok"),
            ("ALTER VIEW v2 AS SELECT 3 AS c", "ok"),
            ("DESCRIBE v2", "c|INT|FALSE|||"),
            ("DROP TABLE v2", "ValidationException: Table with identifier 'default_catalog.default_database.v2' does not exist."),
            ("DROP VIEW v2", "ok"),
            ("DROP VIEW v2", "ValidationException: View with identifier 'default_catalog.default_database.v2' does not exist."),
            ("DROP TEMPORARY VIEW tv", "ok"),
        ])
        .await;
}

#[tokio::test]
async fn options_are_set_listed_and_reset() {
    let mut session = TestSession::with(&[("parallelism.default", "2"), ("my.password", "p")]);
    session
        .expect(&[
            ("SET", "my.password|******\nparallelism.default|2"),
            ("SET 'parallelism.default' = 'abc'", "NumberFormatException: For input string: \"abc\""),
            ("SET parallelism.default = 4", "ok"),
            ("SET 'no.such.key' = 'v'", "ok"),
            ("SET", "my.password|******\nno.such.key|v\nparallelism.default|4"),
            ("RESET parallelism.default", "ok"),
            ("RESET 'never.set'", "ok"),
            ("RESET", "ok"),
            ("SET", "my.password|******\nparallelism.default|2"),
            (
                "SET execution.parallelism = 3",
                "note: The specified key 'execution.parallelism' is deprecated. Please use 'parallelism.default' instead.",
            ),
            ("SET", "my.password|******\nparallelism.default|3"),
        ])
        .await;
    let all = session.run("SET ALL").await;
    assert!(all.contains("\nparallelism.default|3|1|"), "{all}");
    assert!(all.contains("my.password|******||"), "{all}");
}

#[tokio::test]
async fn functions_modules_jars_and_jobs_are_listed() {
    let mut session = TestSession::new();
    session
        .expect(&[
            ("CREATE FUNCTION f AS 'com.example.Missing'", "ok"),
            ("CREATE FUNCTION f AS 'com.example.Missing'", "FunctionAlreadyExistException: Function default_database.f already exists in Catalog default_catalog."),
            ("CREATE TEMPORARY FUNCTION tf AS 'com.example.Missing'", "ClassNotFoundException: com.example.Missing"),
            ("SHOW USER FUNCTIONS", "f"),
            ("SHOW FUNCTIONS LIKE 'sub%'", "substr\nsubstring"),
            ("SHOW FUNCTIONS LIKE 'coun%'", "count"),
            ("CREATE TABLE d (x INT) WITH ('connector' = 'print', 'connector' = 'print')", "ValidationException: The option 'connector' is given twice."),
            ("DESCRIBE FUNCTION SUM", "is system function|true\nis temporary|false"),
            ("DESCRIBE FUNCTION nope", "ValidationException: Function with the identifier '`nope`' doesn't exist."),
            ("DROP FUNCTION f", "ok"),
            ("DROP FUNCTION f", "FunctionNotExistException: Function default_database.f does not exist in Catalog default_catalog."),
            ("DROP TEMPORARY SYSTEM FUNCTION sf", "ValidationException: Could not drop temporary system function. A function named 'sf' doesn't exist."),
            ("SHOW FULL MODULES", "core|TRUE"),
            ("UNLOAD MODULE core", "ok"),
            ("SHOW MODULES", "empty"),
            ("LOAD MODULE core", "ok"),
            ("REMOVE JAR '/nope.jar'", "FileNotFoundException: jar or artifact resource [/nope.jar] not found."),
            ("ADD JAR '/nope.jar'", "note: JAR '/nope.jar' is not needed and was not loaded: connectors, formats and catalogs are built in."),
            ("SHOW JARS", "/nope.jar"),
            ("SHOW JOBS", "empty"),
            ("STOP JOB 'nope'", "NumberFormatException: For input string: \"no\" under radix 16"),
            ("DESCRIBE JOB '00000000000000000000000000000000'", "SqlExecutionException: Described job 00000000000000000000000000000000 does not exist in the cluster."),
            ("SHOW PROCEDURES", "UnsupportedOperationException: listProcedures is not implemented for class org.apache.flink.table.catalog.GenericInMemoryCatalog."),
            ("CALL nope.proc(1)", "UnsupportedOperationException: getProcedure is not implemented for class org.apache.flink.table.catalog.GenericInMemoryCatalog."),
            ("SHOW MODELS", "empty"),
            ("CREATE MODEL m WITH ('a' = 'b')", "UnsupportedOperationException: CREATE MODEL is not supported"),
        ])
        .await;
}

#[tokio::test]
async fn a_statement_set_takes_inserts_only_and_stays_open() {
    let mut session = TestSession::new();
    session
        .expect(&[
            ("END", "SqlExecutionException: No Statement Set to submit. 'END' statement should be used after 'BEGIN STATEMENT SET'."),
            ("BEGIN STATEMENT SET", "ok"),
            ("SELECT 1", "SqlExecutionException: Only 'INSERT/CREATE TABLE AS' statement is allowed in Statement Set or use 'END' statement to submit Statement Set."),
            ("INSERT INTO nope SELECT 1", "ValidationException: Cannot find table '`default_catalog`.`default_database`.`nope`' in any of the catalogs [default_catalog], nor as a temporary table."),
            ("END", "ok"),
        ])
        .await;
}

#[tokio::test]
async fn the_start_is_checked() {
    let mut session =
        TestSession::with(&[("table.builtin-catalog-name", "c"), ("table.builtin-database-name", "d")]);
    session.expect(&[("SHOW CURRENT CATALOG", "c"), ("SHOW DATABASES", "d")]).await;
    for (key, value) in [("table.catalog-store.kind", "nope"), ("table.catalog-store.kind", "file")] {
        let defaults = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let settings = SessionSettings { defaults, output: Arc::new(Nowhere), session_id: "test".to_owned() };
        assert!(Session::new(settings).is_err(), "{value}");
    }
}

/// The gateway runs statements on any thread.
#[test]
fn executing_can_move_between_threads() {
    fn is_send<T: Send>(_: T) {}
    let settings =
        SessionSettings { defaults: BTreeMap::new(), output: Arc::new(Nowhere), session_id: String::new() };
    let mut session = Session::new(settings).unwrap();
    let statement = parse_statement("SHOW TABLES").unwrap();
    is_send(session.execute(&statement, "SHOW TABLES"));
}

#[tokio::test]
async fn a_batch_query_tells_how_much_it_has_read() {
    use futures::StreamExt;

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.csv"), "1\n2\n3\n").unwrap();
    let mut session = TestSession::with(&[("execution.runtime-mode", "batch")]);
    let path = folder.path().display();
    let create = format!(
        "CREATE TABLE t (id INT) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"
    );
    session.expect(&[(&create, "ok")]).await;
    let text = "SELECT COUNT(*) FROM t";
    let answer = session.0.execute(&parse_statement(text).unwrap(), text).await.unwrap();
    let StatementResult::Query(mut query) = answer else { panic!("no query") };
    let progress = query.progress.take().unwrap();
    assert_eq!(progress(), super::QueryProgress { rows: 0, bytes: 0, fraction: Some(0.0) });
    while query.stream.next().await.transpose().unwrap().is_some() {}
    assert_eq!(progress(), super::QueryProgress { rows: 3, bytes: 6, fraction: Some(1.0) });
}

/// Waits until something holds, and fails if it takes longer than anything of that kind.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(60), async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("not yet: {what}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_that_makes_billions_of_rows_is_cancelled_at_once() {
    let mut session = TestSession::with(&[("execution.runtime-mode", "batch")]);
    for table in ["a", "b"] {
        let options = "'connector' = 'datagen', 'number-of-rows' = '500000', 'rows-per-second' = '100000000'";
        let range = "'fields.k.min' = '1', 'fields.k.max' = '1'";
        let created = session.run(&format!("CREATE TABLE {table} (k INT) WITH ({options}, {range})")).await;
        assert_eq!(created, "ok");
    }
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let text = "SELECT COUNT(*) FROM a JOIN b ON a.k = b.k";
    let StatementResult::Query(mut query) =
        session.0.execute(&parse_statement(text).unwrap(), text).await.unwrap()
    else {
        panic!("'{text}' is no query");
    };
    assert!(query.stream.next().now_or_never().is_none());
    let read = query.progress.take().unwrap();
    // One side is in memory then, and the other one meets it.
    until("one side is read", || read().rows > 500_000).await;
    drop(query);
    until("the tasks of the query have ended", || tasks() <= before).await;
}

#[tokio::test]
async fn an_iceberg_catalog_says_what_of_a_definition_has_no_effect_yet() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = TestSession::new();
    let catalog = format!(
        "CREATE CATALOG ice WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = 'file://{}')",
        folder.path().display()
    );
    let no_connector = "note: 'connector' = 'datagen' has no effect: all tables of this catalog are Iceberg tables. CREATE TEMPORARY TABLE makes one of another connector.";
    let appended_only = "note: Rows of a table of format version 3 can only be added yet: jobs that change or delete rows need 'format-version' = '2'.";
    let leave_files =
        "UnsupportedOperationException: ALTER TABLE DROP PARTITION is not supported for table 'ice.db.p'";
    session
        .expect(&[
            (&catalog, "ok"),
            ("CREATE DATABASE ice.db", "ok"),
            ("USE ice.db", "ok"),
            ("CREATE TABLE d (id INT) WITH ('connector' = 'datagen')", no_connector),
            ("CREATE TEMPORARY TABLE t (id INT) WITH ('connector' = 'datagen')", "ok"),
            ("CREATE TABLE k (id INT, PRIMARY KEY (id) NOT ENFORCED)", "ok"),
            ("ALTER TABLE k SET ('format-version' = '3')", appended_only),
            ("ALTER TABLE k ADD (v INT)", "ok"),
            ("CREATE TABLE IF NOT EXISTS k (id INT) WITH ('connector' = 'datagen')", "ok"),
            ("CREATE TABLE a (id INT) WITH ('format-version' = '3')", "ok"),
            ("CREATE TABLE p (id INT, d INT) PARTITIONED BY (d)", "ok"),
            ("ALTER TABLE p DROP PARTITION (d = 1)", leave_files),
        ])
        .await;
    let text = "ALTER TABLE p DROP PARTITION (d = 1)";
    let refused = session.0.execute(&parse_statement(text).unwrap(), text).await.unwrap_err();
    assert!(refused.hint_text().unwrap().starts_with("Leave the files alone"), "{refused:?}");
}
