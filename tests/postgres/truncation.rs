//! TRUNCATE as deletes of all rows: what queries say of the tables is at each moment what Postgres says.

use super::pipeline::{Pipeline, failure, wait_checkpointed};
use crate::support::proxy::Proxy;
use crate::support::running::Running;
use crate::support::waiting::wait_until;

const DELETE: (&str, &str) = ("lakehead.postgres.truncate", "delete");

const COLUMNS: &str = "id BIGINT, n INT, PRIMARY KEY (id) NOT ENFORCED";

/// What a query answers that finds no row.
const EMPTY: &str = "empty";

/// Two tables, one of which refers to the other and has large values that are stored apart from their rows.
const CREATE: &str = "
CREATE FUNCTION large(seed text) RETURNS text LANGUAGE sql AS
  $$ SELECT string_agg(md5(seed || i), '') FROM generate_series(1, 625) i $$;
CREATE TABLE customers (id serial PRIMARY KEY, city text NOT NULL);
CREATE TABLE orders (id bigserial PRIMARY KEY, customer_id int NOT NULL REFERENCES customers, amount int NOT NULL, note text);
ALTER TABLE orders ALTER note SET STORAGE EXTERNAL;
INSERT INTO customers (city) SELECT 'city ' || i % 5 FROM generate_series(1, 50) i;
INSERT INTO orders (customer_id, amount) SELECT 1 + i % 50, i FROM generate_series(1, 3000) i;
";

const INSERT: &str = "
CREATE TABLE lake.db.orders (id BIGINT, amount INT, note STRING, PRIMARY KEY (id) NOT ENFORCED);
CREATE TABLE lake.db.revenue (city STRING, orders BIGINT, revenue BIGINT, PRIMARY KEY (city) NOT ENFORCED);
CREATE TABLE lake.db.totals (one INT, orders BIGINT, customers BIGINT, PRIMARY KEY (one) NOT ENFORCED);
EXECUTE STATEMENT SET BEGIN
INSERT INTO lake.db.orders SELECT id, amount, note FROM orders;
INSERT INTO lake.db.revenue
SELECT c.city, COUNT(*), SUM(CAST(o.amount AS BIGINT)) FROM orders AS o JOIN customers AS c ON o.customer_id = c.id GROUP BY c.city;
INSERT INTO lake.db.totals
SELECT 1, COUNT(customer_id), COUNT(city) FROM
  (SELECT customer_id, CAST(NULL AS STRING) AS city FROM orders WHERE amount > 5
   UNION ALL SELECT CAST(NULL AS INT), city FROM customers);
END;
";

/// What the tables of the lake are to say, and the same of Postgres.
const ORACLES: [(&str, &str); 3] = [
    (
        "SELECT id, amount, note FROM lake.db.orders ORDER BY id",
        "SELECT id, amount, note FROM orders ORDER BY id",
    ),
    (
        "SELECT city, orders, revenue FROM lake.db.revenue ORDER BY city",
        "SELECT c.city, count(*), sum(o.amount) FROM orders o JOIN customers c ON o.customer_id = c.id GROUP BY c.city ORDER BY c.city COLLATE \"C\"",
    ),
    (
        "SELECT orders, customers FROM lake.db.totals",
        // A stream that has no rows any more has no total.
        "SELECT o, c FROM (SELECT count(*) AS o FROM orders WHERE amount > 5) o, (SELECT count(*) AS c FROM customers) c WHERE o + c > 0",
    ),
];

/// Returns the statements of the job from both tables.
fn statements(pipeline: &Pipeline, mode: &str) -> String {
    let options = [DELETE, ("changelog-mode", mode)];
    let orders = "id BIGINT, customer_id INT, amount INT, note STRING, PRIMARY KEY (id) NOT ENFORCED";
    let customers = "id INT, city STRING, PRIMARY KEY (id) NOT ENFORCED";
    format!(
        "{}{}{}{INSERT}",
        pipeline.source("orders", orders, &options),
        pipeline.source("customers", customers, &options),
        pipeline.lake()
    )
    .replace("CREATE TABLE lake", "CREATE TABLE IF NOT EXISTS lake")
}

/// Waits until the lake says what Postgres says.
#[track_caller]
fn wait_equal(pipeline: &Pipeline, running: &mut Running) {
    for (lake, oracle) in ORACLES {
        let expected = pipeline.postgres.lines(oracle);
        pipeline.wait(running, lake, if expected.is_empty() { EMPTY } else { &expected });
    }
}

/// Changes that begin with the tables as they are created, each a transaction or several.
const CHANGES: [&str; 12] = [
    "TRUNCATE orders",
    "INSERT INTO orders SELECT i, 1 + i % 50, i, large(i::text) FROM generate_series(1, 20) i",
    // One row comes again as it was, and one as another.
    "BEGIN; INSERT INTO orders VALUES (777, 7, 7, 'early'); TRUNCATE orders; INSERT INTO orders VALUES (8, 9, 8, large('8')), (9, 3, 9, 'c'); COMMIT",
    // Large values that an update leaves out are of rows that are gone now.
    "BEGIN; UPDATE orders SET amount = amount + 1; TRUNCATE orders; INSERT INTO orders VALUES (8, 9, 10, 'again'), (9, 9, 11, large('9')); COMMIT",
    "UPDATE orders SET amount = 50; TRUNCATE orders; INSERT INTO orders VALUES (9, 9, 12, large('x')); UPDATE orders SET amount = 13",
    "TRUNCATE orders, customers",
    "BEGIN; INSERT INTO customers SELECT i, 'city ' || i % 3 FROM generate_series(1, 9) i; INSERT INTO orders SELECT i, i, i, 'n' FROM generate_series(1, 9) i; COMMIT",
    "TRUNCATE customers RESTART IDENTITY CASCADE",
    "BEGIN; INSERT INTO customers (city) VALUES ('a'), ('b'); INSERT INTO orders (customer_id, amount) VALUES (1, 6), (2, 7); COMMIT",
    "BEGIN; SAVEPOINT s; TRUNCATE customers CASCADE; ROLLBACK TO s; UPDATE orders SET amount = amount + 1; COMMIT",
    "BEGIN; TRUNCATE orders; ROLLBACK; DELETE FROM orders WHERE amount = 8",
    "BEGIN; TRUNCATE orders; INSERT INTO orders VALUES (1, 1, 20, 'x'); TRUNCATE orders; TRUNCATE orders; INSERT INTO orders VALUES (1, 1, 21, 'y'); COMMIT",
];

#[test]
fn a_truncate_takes_all_rows_away_at_its_place() {
    for mode in ["upsert", "all"] {
        let Some(pipeline) = Pipeline::create() else { return };
        pipeline.postgres.run(CREATE);
        if mode == "all" {
            pipeline
                .postgres
                .run("ALTER TABLE orders REPLICA IDENTITY FULL; ALTER TABLE customers REPLICA IDENTITY FULL");
        }
        let mut running = pipeline.start(&statements(&pipeline, mode));
        wait_equal(&pipeline, &mut running);
        for change in CHANGES {
            pipeline.postgres.run(change);
            wait_equal(&pipeline, &mut running);
        }
    }
}

#[test]
fn truncates_that_are_read_together_and_across_kills_count_once() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(CREATE);
    let statements = statements(&pipeline, "upsert");
    let mut running = pipeline.start(&statements);
    wait_equal(&pipeline, &mut running);
    for round in 0..3 {
        for change in CHANGES {
            pipeline.postgres.run(change);
        }
        if round == 1 {
            // Somewhere among them.
            running.kill();
            running = pipeline.start(&statements);
        }
        pipeline.postgres.run("TRUNCATE customers RESTART IDENTITY CASCADE; INSERT INTO customers SELECT i, 'c' FROM generate_series(1, 50) i");
    }
    wait_equal(&pipeline, &mut running);
    // Right behind one: what goes on knows that nothing is left.
    pipeline.postgres.run("TRUNCATE orders, customers");
    wait_equal(&pipeline, &mut running);
    wait_checkpointed(&mut running, pipeline.postgres.lsn());
    running.kill();
    pipeline.postgres.run("INSERT INTO customers VALUES (1, 'z'); INSERT INTO orders VALUES (1, 1, 1, 'n'); UPDATE orders SET amount = 30");
    running = pipeline.start(&statements);
    wait_equal(&pipeline, &mut running);
}

#[test]
fn a_truncate_of_more_than_a_checkpoint_waits_for_is_read_in_parts() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run("CREATE TABLE t (id bigint PRIMARY KEY, n int); INSERT INTO t SELECT i, 0 FROM generate_series(1, 100000) i");
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &[DELETE, ("changelog-mode", "upsert")]));
    let lake = "SELECT COUNT(*), SUM(CAST(n AS BIGINT)) FROM lake.db.t";
    pipeline.wait(&mut running, lake, "100000|0");
    pipeline.postgres.run(
        "BEGIN; UPDATE t SET n = 1; TRUNCATE t; INSERT INTO t SELECT i, 2 FROM generate_series(50001, 200000) i; UPDATE t SET n = 3; COMMIT",
    );
    pipeline.wait(&mut running, lake, "150000|450000");
    running.kill();
    pipeline.postgres.run("TRUNCATE t; INSERT INTO t SELECT i, 5 FROM generate_series(1, 10) i");
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &[DELETE, ("changelog-mode", "upsert")]));
    pipeline.wait(&mut running, lake, "10|50");
}

#[test]
fn a_truncate_that_the_snapshot_has_seen_is_not_repeated() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run("CREATE TABLE t (id bigint PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1), (2, 2); CREATE PUBLICATION dbz_publication FOR TABLE t");
    // What is in the stream before the table is read.
    pipeline
        .postgres
        .run(&format!("SELECT pg_create_logical_replication_slot('{}', 'pgoutput')", pipeline.slot()));
    pipeline.postgres.run("INSERT INTO t VALUES (3, 3); TRUNCATE t; INSERT INTO t VALUES (1, 4), (5, 5)");
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &[DELETE, ("changelog-mode", "upsert")]));
    pipeline.wait_table(&mut running, "t", "id, n", "1|4\n5|5");
    pipeline.postgres.run("INSERT INTO t VALUES (6, 6)");
    pipeline.wait_table(&mut running, "t", "id, n", "1|4\n5|5\n6|6");
    pipeline.postgres.run("TRUNCATE t");
    pipeline.wait_table(&mut running, "t", "id, n", EMPTY);
}

#[test]
fn a_truncate_while_a_table_of_one_chunk_is_read_counts_or_was_seen() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run("CREATE TABLE t (id bigint PRIMARY KEY, n int); INSERT INTO t SELECT i, 0 FROM generate_series(1, 100) i");
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &[DELETE, ("changelog-mode", "upsert")]));
    let slots = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = current_database()";
    pipeline.postgres.wait(slots, |count| count == "1");
    for round in 1..=20 {
        pipeline.postgres.run(&format!(
            "TRUNCATE t; INSERT INTO t SELECT i, {round} FROM generate_series(50, 60 + {round}) i"
        ));
    }
    let lake = "SELECT id, n FROM lake.db.t ORDER BY id";
    pipeline.wait(&mut running, lake, &pipeline.postgres.lines("SELECT id, n FROM t ORDER BY id"));
}

#[test]
fn a_truncate_between_two_chunks_is_said() {
    let Some(mut pipeline) = Pipeline::create() else { return };
    let proxy = Proxy::start(pipeline.database().server().port());
    pipeline.through(&proxy);
    pipeline.postgres.run("CREATE TABLE t (id bigint PRIMARY KEY, n int); INSERT INTO t SELECT i, 0 FROM generate_series(1, 50000) i; ANALYZE t");
    // Slow enough that most chunks are still to be read when the first ones are in a checkpoint.
    proxy.slow_down(50_000);
    let options = [DELETE, ("changelog-mode", "upsert"), ("scan.incremental.snapshot.chunk.size", "1000")];
    let mirror = pipeline.mirror("t", COLUMNS, &options);
    let mut running = pipeline.start(&mirror);
    wait_until("the first chunks are in the lake", || {
        let count = pipeline.ask("SELECT COUNT(*) FROM lake.db.t");
        if count.parse::<u32>().is_ok_and(|count| count > 0) { Ok(()) } else { Err(running.shown()) }
    });
    // The server lets nobody truncate what is being read; but a job may be gone for a while.
    running.kill();
    pipeline.postgres.run("TRUNCATE t; INSERT INTO t SELECT i, 1 FROM generate_series(40001, 60000) i");
    proxy.calm();
    let mut running = pipeline.start(&mirror);
    let said = failure(&mut running);
    let expected = "table public.t was truncated while it was read";
    assert!(said.contains(expected) && said.contains("'resnapshot'"), "{said}");
    let mut running = pipeline.start(&format!("SET 'lakehead.job.resume' = 'resnapshot';\n{mirror}"));
    pipeline.wait(&mut running, "SELECT COUNT(*), SUM(n) FROM lake.db.t", "20000|20000");
}

#[test]
fn truncates_count_once_although_connections_are_cut() {
    let Some(mut pipeline) = Pipeline::create() else { return };
    let proxy = Proxy::start(pipeline.database().server().port());
    pipeline.through(&proxy);
    pipeline.postgres.run("CREATE TABLE t (id bigint PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0)");
    let options = [DELETE, ("changelog-mode", "upsert"), ("connect.max-retries", "20")];
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &options));
    pipeline.wait_table(&mut running, "t", "id, n", "1|0");
    proxy.slow_down(1_000_000);
    for round in 1..=4 {
        let attempts = proxy.attempt_count();
        pipeline.postgres.run(&format!(
            "BEGIN; UPDATE t SET n = n - 1; TRUNCATE t; INSERT INTO t SELECT i, {round} FROM generate_series({round}, 20000) i;
             TRUNCATE t; INSERT INTO t SELECT i, {round} FROM generate_series(1, 15000) i; COMMIT"
        ));
        // Somewhere in it, when the last cut is over.
        proxy.cut();
        wait_until("the job connects anew", || {
            let is_new = proxy.attempt_count() > attempts && proxy.open_count() > 0;
            if is_new { Ok(()) } else { Err(running.shown()) }
        });
    }
    proxy.calm();
    wait_until("the lake has what the last transaction left", || {
        let answer = pipeline.ask("SELECT COUNT(*), SUM(n), SUM(id) FROM lake.db.t");
        if answer == "15000|60000|112507500" { Ok(()) } else { Err(format!("{answer}\n{}", running.shown())) }
    });
}

#[test]
fn exploring_shows_the_rows_that_a_truncate_takes_away() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline
        .postgres
        .run("CREATE TABLE t (id bigint PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1), (2, 2)");
    let options = [DELETE, ("changelog-mode", "upsert")];
    let query = format!("{}SELECT * FROM t;\n", pipeline.source("t", COLUMNS, &options));
    let mut running = pipeline.start(&query);
    running.wait_out("|                    2 |");
    pipeline.postgres.run("BEGIN; TRUNCATE t; INSERT INTO t VALUES (2, 2), (3, 3); COMMIT");
    let shown = running.wait_out("|                    3 |");
    let kinds: Vec<&str> = shown.lines().filter_map(|line| line.strip_prefix("| ")?.get(..2)).collect();
    let kinds: Vec<&str> = kinds.into_iter().filter(|kind| *kind != "op").collect();
    assert_eq!(kinds, ["+I", "+I", "-D", "-D", "+I", "+I"], "{shown}");
    running.signal("INT");
    assert!(!running.end().stdout.contains("[ERROR]"));
}

#[test]
fn rows_that_nobody_could_take_back_are_refused() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(
        "CREATE TABLE t (id bigint PRIMARY KEY, n int); ALTER TABLE t REPLICA IDENTITY FULL;
         CREATE TABLE shard_1 (id bigint PRIMARY KEY, n int); CREATE TABLE shard_2 (id bigint PRIMARY KEY, n int)",
    );
    let said = pipeline.fail(&pipeline.mirror("t", "id BIGINT, n INT", &[DELETE]));
    assert!(said.contains("'lakehead.postgres.truncate' = 'delete' needs a primary key"), "{said}");
    assert!(said.contains("PRIMARY KEY (…) NOT ENFORCED"), "{said}");

    let upsert = ("changelog-mode", "upsert");
    let shards = pipeline.mirror("t", COLUMNS, &[DELETE, upsert, ("table-name", "shard_.*")]);
    let said = pipeline.fail(&shards);
    for part in ["'lakehead.postgres.truncate' = 'delete'", "public.shard_1", "public.shard_2", "UNION ALL"] {
        assert!(said.contains(part), "{part} in\n{said}");
    }
    let slots = "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()";
    assert_eq!(pipeline.postgres.value(slots), "0", "what is refused leaves nothing behind");

    // One is enough, until another comes.
    pipeline.postgres.run("DROP TABLE shard_2; INSERT INTO shard_1 VALUES (1, 1)");
    let mut running = pipeline.start(&format!("SET 'lakehead.job.resume' = 'none';\n{shards}"));
    pipeline.wait_table(&mut running, "t", "id, n", "1|1");
    pipeline.postgres.run("TRUNCATE shard_1; INSERT INTO shard_1 VALUES (2, 2)");
    pipeline.wait_table(&mut running, "t", "id, n", "2|2");
    pipeline.postgres.run("CREATE TABLE shard_2 (id bigint PRIMARY KEY, n int); ALTER PUBLICATION dbz_publication ADD TABLE shard_2");
    pipeline.postgres.run("INSERT INTO shard_2 VALUES (3, 3)");
    let said = failure(&mut running);
    assert!(said.contains("public.shard_2") && said.contains("UNION ALL"), "{said}");
}

#[test]
fn a_job_that_has_not_remembered_rows_does_not_begin_to_half_way() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline
        .postgres
        .run("CREATE TABLE t (id bigint PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1), (2, 2)");
    let upsert = ("changelog-mode", "upsert");
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &[upsert]));
    pipeline.wait_table(&mut running, "t", "id, n", "1|1\n2|2");
    pipeline.postgres.run("TRUNCATE t; INSERT INTO t VALUES (3, 3)");
    let said = failure(&mut running);
    assert!(said.contains("table public.t was truncated") && said.contains("'delete'"), "{said}");

    let deletes = pipeline.mirror("t", COLUMNS, &[upsert, DELETE]);
    let said = pipeline.fail(&deletes);
    assert!(said.contains("must know all of them") && said.contains("'resnapshot'"), "{said}");
    let mut running = pipeline.start(&format!("SET 'lakehead.job.resume' = 'resnapshot';\n{deletes}"));
    pipeline.wait_table(&mut running, "t", "id, n", "3|3");
    pipeline.postgres.run("TRUNCATE t; INSERT INTO t VALUES (4, 4)");
    pipeline.wait_table(&mut running, "t", "id, n", "4|4");
}

#[test]
fn a_partitioned_table_is_truncated_as_one() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(
        "CREATE TABLE t (id bigint, n int, PRIMARY KEY (id)) PARTITION BY RANGE (id);
         CREATE TABLE t_low PARTITION OF t FOR VALUES FROM (0) TO (100);
         CREATE TABLE t_high PARTITION OF t FOR VALUES FROM (100) TO (1000); INSERT INTO t VALUES (1, 1), (101, 2)",
    );
    let options = [DELETE, ("changelog-mode", "upsert"), ("scan.include-partitioned-tables.enabled", "true")];
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &options));
    pipeline.wait_table(&mut running, "t", "id, n", "1|1\n101|2");
    pipeline.postgres.run("TRUNCATE t; INSERT INTO t VALUES (2, 2), (101, 3)");
    pipeline.wait_table(&mut running, "t", "id, n", "2|2\n101|3");
}
