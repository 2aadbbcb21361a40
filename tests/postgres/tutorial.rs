//! The tutorial that keeps a lake table equal to a table of orders in Postgres, step by step: its source is a table of `postgres-cdc`
//! in the place of a pipeline.

use std::fs;

use serde_json::Value;

use super::pipeline::Pipeline;
use crate::support::run::Lakehead;
use crate::support::running::Running;

/// What the tutorial prepares in Postgres.
const PREPARE: &str = "
CREATE TABLE public.orders (
  id BIGINT PRIMARY KEY,
  customer_name VARCHAR(100) NOT NULL,
  amount NUMERIC(10, 2) NOT NULL,
  order_status VARCHAR(20) NOT NULL
);
ALTER TABLE public.orders REPLICA IDENTITY FULL;
INSERT INTO public.orders VALUES
  (101, 'Alice', 29.90, 'NEW'),
  (102, 'Bob', 5.00, 'NEW');
CREATE PUBLICATION cdc_orders FOR TABLE public.orders;
";

const COLUMNS: &str = "
  id BIGINT NOT NULL,
  customer_name STRING NOT NULL,
  amount DECIMAL(10, 2) NOT NULL,
  order_status STRING NOT NULL,
  PRIMARY KEY (id) NOT ENFORCED
";

/// What the tutorial's batch session says first.
const READER: &str = "
SET 'execution.runtime-mode' = 'batch';
SET 'sql-client.execution.result-mode' = 'tableau';
SET 'parallelism.default' = '1';
CREATE CATALOG lake WITH (
  'type'='iceberg',
  'catalog-type'='hadoop',  
  'warehouse'='file://{root}/warehouse',
  'cache-enabled'='false'
);
USE CATALOG lake;
";

const ORDERS: &str = "
SELECT id, customer_name, amount, order_status
FROM ods.orders
ORDER BY id;";

const SNAPSHOT: &str = "\
+-----+---------------+--------+--------------+
|  id | customer_name | amount | order_status |
+-----+---------------+--------+--------------+
| 101 |         Alice |  29.90 |          NEW |
| 102 |           Bob |   5.00 |          NEW |
+-----+---------------+--------+--------------+
2 rows in set";

const CHANGED: &str = "\
+-----+---------------+--------+--------------+
|  id | customer_name | amount | order_status |
+-----+---------------+--------+--------------+
| 101 |         Alice |  39.90 |          NEW |
| 103 |         Carol |  12.50 |          NEW |
+-----+---------------+--------+--------------+
2 rows in set";

const DESCRIBED: &str = "\
+---------------+----------------+-------+---------+--------+-----------+
|          name |           type |  null |     key | extras | watermark |
+---------------+----------------+-------+---------+--------+-----------+
|            id |         BIGINT | FALSE | PRI(id) |        |           |
| customer_name |         STRING | FALSE |         |        |           |
|        amount | DECIMAL(10, 2) | FALSE |         |        |           |
|  order_status |         STRING | FALSE |         |        |           |
|      quantity |            INT |  TRUE |         |        |           |
+---------------+----------------+-------+---------+--------+-----------+
5 rows in set";

const QUANTITIES: &str = "\
+-----+--------+----------+
|  id | amount | quantity |
+-----+--------+----------+
| 101 |  39.90 |        2 |
| 103 |  12.50 |        3 |
+-----+--------+----------+
2 rows in set";

/// The tutorial's table, its lake, and its session that reads.
struct Tutorial {
    pipeline: Pipeline,
}

impl Tutorial {
    fn prepare() -> Option<Tutorial> {
        let pipeline = Pipeline::create()?;
        pipeline.postgres.run(PREPARE);
        Some(Tutorial { pipeline })
    }

    /// Returns what the writing session says before its INSERT.
    fn declarations(&self) -> String {
        let options = [
            ("debezium.publication.name", "cdc_orders"),
            ("debezium.publication.autocreate.mode", "disabled"),
        ];
        format!(
            "{}CREATE CATALOG lake WITH ('type'='iceberg','catalog-type'='hadoop','warehouse'='file://{}/warehouse');
CREATE DATABASE IF NOT EXISTS lake.ods;
CREATE TABLE IF NOT EXISTS lake.ods.orders ({COLUMNS});\n",
            self.pipeline.source("orders", COLUMNS, &options),
            self.pipeline.root().display(),
        )
    }

    /// Starts the job that writes.
    fn start(&self) -> Running {
        let insert = "INSERT INTO lake.ods.orders SELECT * FROM orders;\n";
        self.pipeline.start(&(self.declarations() + insert))
    }

    /// Returns what a statement answers in a batch session of its own.
    fn answer(&self, statement: &str) -> String {
        let script = format!("{READER}{statement}").replace("{root}", self.pipeline.root().to_str().unwrap());
        let done = Lakehead::with(&["-D", "sql-client.display.print-time-cost=false"]).input(script).run();
        assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
        done.stdout.rsplit("[INFO] Execute statement succeeded.\n").next().unwrap().trim().to_owned()
    }

    /// Waits until the lake has rows as the test says.
    #[track_caller]
    fn wait(&self, running: &mut Running, columns: &str, expected: &str) {
        self.pipeline.wait(running, &format!("SELECT {columns} FROM lake.ods.orders ORDER BY id"), expected);
    }

    fn change_orders(&self) {
        self.pipeline.postgres.run(
            "UPDATE public.orders SET amount = 39.90 WHERE id = 101;
             DELETE FROM public.orders WHERE id = 102;
             INSERT INTO public.orders VALUES (103, 'Carol', 12.50, 'NEW');",
        );
    }

    fn slot(&self, columns: &str) -> String {
        let slot = self.pipeline.slot();
        format!("SELECT {columns} FROM pg_replication_slots WHERE slot_name = '{slot}'")
    }
}

#[test]
fn the_lake_follows_the_orders() {
    let Some(tutorial) = Tutorial::prepare() else { return };
    let pipeline = &tutorial.pipeline;
    let created = pipeline.start(&tutorial.declarations()).end();
    assert_eq!(created.code, 0, "{}{}", created.stdout, created.stderr);
    assert_eq!(tutorial.answer(ORDERS), "Empty set", "before the first commit");
    assert_eq!(pipeline.postgres.value(&tutorial.slot("count(*)")), "0", "only INSERT makes the slot");

    let mut running = tutorial.start();
    tutorial.wait(&mut running, "id, amount", "101|29.90\n102|5.00");
    assert_eq!(tutorial.answer(ORDERS), SNAPSHOT);
    assert_table_is_as_described(pipeline);

    let watched =
        "slot_name, active, restart_lsn IS NOT NULL, confirmed_flush_lsn IS NOT NULL, plugin, temporary";
    let slot = pipeline.slot();
    assert_eq!(pipeline.postgres.lines(&tutorial.slot(watched)), format!("{slot}|t|t|t|pgoutput|f"));
    let before = pipeline.postgres.confirmed(slot);
    tutorial.change_orders();
    tutorial.wait(&mut running, "id, amount", "101|39.90\n103|12.50");
    assert_eq!(tutorial.answer(ORDERS), CHANGED);
    pipeline.postgres.wait_acknowledged(slot);
    assert!(pipeline.postgres.confirmed(slot) > before);

    // The job ends; the slot stays and nobody holds it; the warehouse stays.
    let id = running.job_id();
    running.write(&format!("STOP JOB '{id}';\n"));
    assert_eq!(running.end().code, 0);
    pipeline.postgres.wait(&tutorial.slot("active"), |active| active == "f");
    pipeline.postgres.run(&format!("SELECT pg_drop_replication_slot('{slot}')"));
    assert_eq!(tutorial.answer(ORDERS), CHANGED);
    let publications = pipeline.postgres.lines("SELECT pubname FROM pg_publication");
    assert_eq!(publications, "cdc_orders", "none is made where that is disabled");
}

/// Checks the metadata that the first commit has left.
fn assert_table_is_as_described(pipeline: &Pipeline) {
    let folder = pipeline.root().join("warehouse/ods/orders/metadata");
    assert!(folder.join("version-hint.text").exists());
    let first: Value = serde_json::from_slice(&fs::read(folder.join("v1.metadata.json")).unwrap()).unwrap();
    assert_eq!(first["format-version"], 2);
    let schema = &first["schemas"][0];
    assert_eq!(schema["identifier-field-ids"], serde_json::json!([1]));
    let fields: Vec<String> = schema["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| {
            format!("{} {} {} {}", field["id"], field["name"], field["type"], field["required"])
                .replace('"', "")
                .replace(", ", ",")
        })
        .collect();
    assert_eq!(
        fields,
        [
            "1 id long true",
            "2 customer_name string true",
            "3 amount decimal(10,2) true",
            "4 order_status string true"
        ]
    );
    assert_eq!(first["partition-specs"][0]["fields"], serde_json::json!([]));
}

#[test]
fn a_killed_job_goes_on_without_a_row_twice() {
    let Some(tutorial) = Tutorial::prepare() else { return };
    let mut running = tutorial.start();
    tutorial.wait(&mut running, "id, amount", "101|29.90\n102|5.00");
    running.kill();
    tutorial.change_orders();
    let mut running = tutorial.start();
    tutorial.wait(&mut running, "id, amount", "101|39.90\n103|12.50");
    assert_eq!(tutorial.answer(ORDERS), CHANGED);
}

#[test]
fn a_column_is_added_between_a_savepoint_and_its_job() {
    let Some(tutorial) = Tutorial::prepare() else { return };
    let pipeline = &tutorial.pipeline;
    let mut running = tutorial.start();
    tutorial.wait(&mut running, "id, amount", "101|29.90\n102|5.00");
    tutorial.change_orders();
    tutorial.wait(&mut running, "id, amount", "101|39.90\n103|12.50");

    // The tutorial's pipeline would add the column by itself; a job of SQL goes on with it from a savepoint.
    pipeline.postgres.run("ALTER TABLE public.orders ADD COLUMN quantity INTEGER");
    let id = running.job_id();
    running.write(&format!("STOP JOB '{id}' WITH SAVEPOINT;\n"));
    running.wait_out("savepoint path");
    running.wait_out("1 row in set");
    let savepoints = pipeline.files("_metadata");
    let savepoint = savepoints.iter().find(|path| path.starts_with(pipeline.root().join("savepoints")));
    let savepoint = savepoint.unwrap().parent().unwrap().display().to_string();
    running.write(&format!(
        "ALTER TABLE orders ADD quantity INT;
ALTER TABLE lake.ods.orders ADD quantity INT;
SET 'execution.state-recovery.path' = '{savepoint}';
INSERT INTO lake.ods.orders SELECT * FROM orders;\n"
    ));
    pipeline.postgres.run(
        "UPDATE public.orders SET quantity = 2 WHERE id = 101;
         UPDATE public.orders SET quantity = 3 WHERE id = 103;",
    );
    tutorial.wait(&mut running, "id, amount, quantity", "101|39.90|2\n103|12.50|3");
    assert_eq!(tutorial.answer("DESCRIBE ods.orders;"), DESCRIBED);
    assert_eq!(tutorial.answer("SELECT id, amount, quantity FROM ods.orders ORDER BY id;"), QUANTITIES);
}
