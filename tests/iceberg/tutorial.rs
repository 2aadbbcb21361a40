//! The tutorial that keeps a lake table equal to a table of orders: what its batch session sees while a job writes. The changes come
//! from files in Debezium's format.

use std::fs;
use std::path::Path;

use crate::support::run::Lakehead;

/// What the session that writes says first.
const WRITER: &str = "
SET 'table.dml-sync' = 'true';
SET 'execution.checkpointing.interval' = '1 s';
SET 'execution.checkpointing.dir' = '{root}/checkpoints';
CREATE CATALOG lake WITH ('type'='iceberg','catalog-type'='hadoop','warehouse'='file://{root}/warehouse','cache-enabled'='false');
CREATE DATABASE IF NOT EXISTS lake.ods;
CREATE TABLE IF NOT EXISTS lake.ods.orders (
  id BIGINT NOT NULL,
  customer_name STRING NOT NULL,
  amount DECIMAL(10, 2) NOT NULL,
  order_status STRING NOT NULL,
  PRIMARY KEY (id) NOT ENFORCED
);
";

/// What the tutorial's batch session says first.
const READER: &str = "
SET 'execution.runtime-mode' = 'batch';
SET 'sql-client.execution.result-mode' = 'tableau';
SET 'parallelism.default' = '1';
CREATE CATALOG lake WITH ('type'='iceberg','catalog-type'='hadoop','warehouse'='file://{root}/warehouse','cache-enabled'='false');
USE CATALOG lake;
";

const ORDERS: &str = "SELECT id, customer_name, amount, order_status FROM ods.orders ORDER BY id;";

const COLUMNS: &str = "id BIGINT, customer_name STRING, amount DECIMAL(10, 2), order_status STRING";

/// Runs statements after a prelude, and returns what they print, times left out.
fn run(root: &Path, prelude: &str, statements: &str) -> String {
    let script = format!("{prelude}{statements}").replace("{root}", root.to_str().unwrap());
    let done = Lakehead::with(&["-D", "sql-client.display.print-time-cost=false"]).input(script).run();
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    done.stdout
}

/// Returns what the last statement of the batch session answers.
fn answer(root: &Path, statement: &str) -> String {
    let printed = run(root, READER, statement);
    printed.rsplit("[INFO] Execute statement succeeded.\n").next().unwrap_or_default().trim().to_owned()
}

/// Lets a job apply changes to the table and ends it.
fn apply(root: &Path, columns: &str, changes: &str) {
    fs::write(root.join("changes.json"), changes).unwrap();
    let job = format!(
        "CREATE TABLE changes ({columns}, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = '{{root}}/changes.json', 'format' = 'debezium-json');
INSERT INTO lake.ods.orders SELECT * FROM changes;\n"
    );
    run(root, WRITER, &job);
}

#[test]
fn the_batch_session_of_the_tutorial_follows_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    run(root, WRITER, "");
    assert_eq!(answer(root, ORDERS), "Empty set", "before the first commit");

    let alice = r#"{"id":101,"customer_name":"Alice","amount":29.90,"order_status":"NEW"}"#;
    let cheaper = r#"{"id":101,"customer_name":"Alice","amount":39.90,"order_status":"NEW"}"#;
    let bob = r#"{"id":102,"customer_name":"Bob","amount":5.00,"order_status":"NEW"}"#;
    let carol = r#"{"id":103,"customer_name":"Carol","amount":12.50,"order_status":"NEW"}"#;
    let created = |row: &str| format!("{{\"before\":null,\"after\":{row},\"op\":\"c\"}}\n");
    let updated = |old: &str, new: &str| format!("{{\"before\":{old},\"after\":{new},\"op\":\"u\"}}\n");
    let deleted = |row: &str| format!("{{\"before\":{row},\"after\":null,\"op\":\"d\"}}\n");
    apply(root, COLUMNS, &(created(alice) + &created(bob)));
    assert_eq!(
        answer(root, ORDERS),
        "\
+-----+---------------+--------+--------------+
|  id | customer_name | amount | order_status |
+-----+---------------+--------+--------------+
| 101 |         Alice |  29.90 |          NEW |
| 102 |           Bob |   5.00 |          NEW |
+-----+---------------+--------+--------------+
2 rows in set"
    );

    apply(root, COLUMNS, &(updated(alice, cheaper) + &deleted(bob) + &created(carol)));
    assert_eq!(
        answer(root, ORDERS),
        "\
+-----+---------------+--------+--------------+
|  id | customer_name | amount | order_status |
+-----+---------------+--------+--------------+
| 101 |         Alice |  39.90 |          NEW |
| 103 |         Carol |  12.50 |          NEW |
+-----+---------------+--------+--------------+
2 rows in set"
    );

    run(root, WRITER, "ALTER TABLE lake.ods.orders ADD quantity INT;\n");
    let with =
        |row: &str, quantity: &str| format!("{},\"quantity\":{quantity}}}", row.strip_suffix('}').unwrap());
    let two = updated(&with(cheaper, "null"), &with(cheaper, "2"));
    let three = updated(&with(carol, "null"), &with(carol, "3"));
    apply(root, &format!("{COLUMNS}, quantity INT"), &(two + &three));
    assert_eq!(
        answer(root, "DESCRIBE ods.orders;"),
        "\
+---------------+----------------+-------+---------+--------+-----------+
|          name |           type |  null |     key | extras | watermark |
+---------------+----------------+-------+---------+--------+-----------+
|            id |         BIGINT | FALSE | PRI(id) |        |           |
| customer_name |         STRING | FALSE |         |        |           |
|        amount | DECIMAL(10, 2) | FALSE |         |        |           |
|  order_status |         STRING | FALSE |         |        |           |
|      quantity |            INT |  TRUE |         |        |           |
+---------------+----------------+-------+---------+--------+-----------+
5 rows in set"
    );
    assert_eq!(
        answer(root, "SELECT id, amount, quantity FROM ods.orders ORDER BY id;"),
        "\
+-----+--------+----------+
|  id | amount | quantity |
+-----+--------+----------+
| 101 |  39.90 |        2 |
| 103 |  12.50 |        3 |
+-----+--------+----------+
2 rows in set"
    );
}

#[test]
fn a_session_that_stays_open_reads_the_newest_snapshot_with_each_query() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let table = "
SET 'execution.runtime-mode' = 'batch';
SET 'table.dml-sync' = 'true';
SET 'sql-client.execution.result-mode' = 'tableau';
CREATE CATALOG writing WITH ('type'='iceberg','catalog-type'='hadoop','warehouse'='file://{root}/warehouse');
CREATE CATALOG reading WITH ('type'='iceberg','catalog-type'='hadoop','warehouse'='file://{root}/warehouse','cache-enabled'='false');
CREATE DATABASE writing.db;
CREATE TABLE writing.db.t (id INT);
";
    let statements = "SELECT COUNT(*) AS n FROM reading.db.t;
INSERT INTO writing.db.t VALUES (1), (2);
SELECT COUNT(*) AS n FROM reading.db.t;
INSERT INTO writing.db.t VALUES (3);
SELECT COUNT(*) AS n FROM reading.db.t;
";
    let printed = run(root, table, statements);
    let counts: Vec<&str> = printed
        .lines()
        .filter_map(|line| line.strip_prefix('|')?.strip_suffix('|'))
        .map(str::trim)
        .filter(|cell| *cell != "n")
        .collect();
    assert_eq!(counts, ["0", "2", "3"]);
}
