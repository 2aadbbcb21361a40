//! What the owner of a table does to its columns while a job reads it under the columns that were declared.

use super::pipeline::{Pipeline, failure, stop};
use crate::support::running::Running;
use crate::support::waiting::wait_until;

const COLUMNS: &str = "id BIGINT, n INT, note STRING, PRIMARY KEY (id) NOT ENFORCED";

fn start() -> Option<(Pipeline, Running)> {
    let pipeline = Pipeline::create()?;
    pipeline.postgres.run(
        "CREATE TABLE t (id bigint PRIMARY KEY, n int, note text, unused int); ALTER TABLE t REPLICA IDENTITY FULL;
         INSERT INTO t VALUES (1, 1, 'a', 0)",
    );
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &[]));
    pipeline.wait_table(&mut running, "t", "id, n, note", "1|1|a");
    Some((pipeline, running))
}

#[test]
fn a_column_that_is_added_is_left_out_with_one_notice() {
    let Some((pipeline, mut running)) = start() else { return };
    pipeline.postgres.run("UPDATE t SET n = 3");
    pipeline.postgres.run("ALTER TABLE t ADD extra int DEFAULT 7; UPDATE t SET n = 2");
    pipeline
        .postgres
        .run("INSERT INTO t (id, n, note, extra) VALUES (2, 2, 'b', 8); UPDATE t SET extra = 9 WHERE id = 1");
    pipeline.wait_table(&mut running, "t", "id, n, note", "1|2|a\n2|2|b");
    running.wait_err("'extra'");
    let shown = running.shown();
    assert_eq!(shown.matches("extra").count(), 1, "{shown}");
}

#[test]
fn columns_that_nobody_has_declared_may_go_and_change() {
    let Some((pipeline, mut running)) = start() else { return };
    pipeline.postgres.run(
        "ALTER TABLE t DROP unused; UPDATE t SET n = 3; ALTER TABLE t ADD unused text; UPDATE t SET n = 4",
    );
    pipeline.wait_table(&mut running, "t", "id, n, note", "1|4|a");
}

#[test]
fn a_declared_column_that_is_dropped_or_renamed_fails_the_job_by_name() {
    for change in ["DROP note", "RENAME note TO remark"] {
        let Some((pipeline, mut running)) = start() else { return };
        pipeline.postgres.run(&format!("ALTER TABLE t {change}"));
        pipeline.postgres.run("UPDATE t SET n = 5");
        let said = failure(&mut running);
        assert!(said.contains("note") && said.replace('"', "").contains("public.t"), "{change}: {said}");
        // What came before is there, and nothing else.
        assert_eq!(pipeline.ask("SELECT id, n, note FROM lake.db.t"), "1|1|a");
    }
}

#[test]
fn a_job_gets_past_a_renamed_column_by_both_ways_on() {
    for (resume, expected) in [("resnapshot", "1|1|a\n2|2|b\n3|3|c"), ("skip", "1|1|a\n3|3|c")] {
        let Some((pipeline, mut running)) = start() else { return };
        stop(&mut running);
        pipeline.postgres.run("INSERT INTO t VALUES (2, 2, 'b', 0)");
        pipeline.postgres.run("ALTER TABLE t RENAME note TO remark; INSERT INTO t VALUES (3, 3, 'c', 0)");
        let renamed = pipeline.mirror("t", &COLUMNS.replace("note", "remark"), &[]);
        // As it was declared, and as the table is now, which the first of the changes does not fit.
        for (statements, lacking) in [(&pipeline.mirror("t", COLUMNS, &[]), "'note'"), (&renamed, "'remark'")]
        {
            let said = pipeline.fail(statements);
            for part in [lacking, "SET 'lakehead.job.resume' = 'resnapshot'", "'skip'"] {
                assert!(said.contains(part), "{part} in\n{said}");
            }
        }
        let mut running = pipeline.start(&format!("SET 'lakehead.job.resume' = '{resume}';\n{renamed}"));
        pipeline.wait_table(&mut running, "t", "id, n, note", expected);
        pipeline.postgres.run("INSERT INTO t VALUES (4, 4, 'd', 0); DELETE FROM t WHERE id = 1");
        let expected = format!("{}\n4|4|d", &expected["1|1|a\n".len()..]);
        pipeline.wait_table(&mut running, "t", "id, n, note", &expected);
    }
}

#[test]
fn a_declared_column_of_another_type_is_read_while_its_values_fit() {
    let Some((pipeline, mut running)) = start() else { return };
    pipeline.postgres.run("ALTER TABLE t ALTER n TYPE bigint; UPDATE t SET n = 6");
    pipeline.wait_table(&mut running, "t", "id, n, note", "1|6|a");
    pipeline.postgres.run("ALTER TABLE t ALTER n TYPE text USING n::text; UPDATE t SET n = '7'");
    pipeline.wait_table(&mut running, "t", "id, n, note", "1|7|a");
    pipeline.postgres.run("UPDATE t SET n = 'seven'");
    let said = failure(&mut running);
    for part in ["public.t", "'n'", "seven"] {
        assert!(
            said.replace('"', "").replace('`', "'").contains(part.trim_matches('\'')),
            "{part} in {said}"
        );
    }
}

#[test]
fn columns_change_in_the_midst_of_a_transaction() {
    let Some((pipeline, mut running)) = start() else { return };
    pipeline.postgres.run(
        "BEGIN; INSERT INTO t VALUES (2, 2, 'b', 1); ALTER TABLE t ADD extra int; INSERT INTO t VALUES (3, 3, 'c', 1, 1);
         ALTER TABLE t DROP unused; INSERT INTO t VALUES (4, 4, 'd', 1); UPDATE t SET n = n * 10; COMMIT",
    );
    pipeline.wait_table(&mut running, "t", "id, n, note", "1|10|a\n2|20|b\n3|30|c\n4|40|d");
}

#[test]
fn a_key_that_changes_behind_a_row_without_its_large_value_does_no_harm() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(
        "CREATE TABLE t (id bigint PRIMARY KEY, n int NOT NULL, note text); ALTER TABLE t ALTER note SET STORAGE EXTERNAL;
         INSERT INTO t VALUES (1, 1, repeat('large', 4000)), (2, 2, repeat('value', 4000))",
    );
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &[("changelog-mode", "upsert")]));
    let query = "SELECT id, n, CHAR_LENGTH(note) FROM lake.db.t ORDER BY id";
    pipeline.wait(&mut running, query, "1|1|20000\n2|2|20000");
    // In one transaction, so that all of it comes at once: the first row is to be found by what was the key at its time.
    pipeline.postgres.run(
        "BEGIN; UPDATE t SET n = 3 WHERE id = 1; ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id, n);
         INSERT INTO t VALUES (3, 3, 'small'); UPDATE t SET n = 4 WHERE id = 2; COMMIT",
    );
    pipeline.wait(&mut running, query, "1|3|20000\n2|4|20000\n3|3|5");
}

#[test]
fn a_table_that_goes_behind_a_row_without_its_large_value_does_no_harm() {
    let Some(pipeline) = Pipeline::create() else { return };
    let create = |table: &str| {
        format!(
            "CREATE TABLE {table} (id bigint PRIMARY KEY, n int, note text); ALTER TABLE {table} ALTER note SET STORAGE EXTERNAL;"
        )
    };
    pipeline.postgres.run(&format!(
        "{}{} CREATE PUBLICATION dbz_publication FOR ALL TABLES; INSERT INTO t_2024 VALUES (1, 1, repeat('large', 4000))",
        create("t_2024"),
        create("t_2025")
    ));
    let options = [("table-name", "t_.*"), ("changelog-mode", "upsert")];
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &options));
    pipeline.wait_table(&mut running, "t", "id, n, CHAR_LENGTH(note)", "1|1|20000");
    // Its last change is read when it is not there any more.
    pipeline.postgres.run(
        "BEGIN; UPDATE t_2024 SET n = 2; DROP TABLE t_2024; COMMIT; INSERT INTO t_2025 VALUES (2, 2, 'b')",
    );
    pipeline.wait_table(&mut running, "t", "id, n, CHAR_LENGTH(note)", "1|1|20000\n2|2|1");
}

#[test]
fn a_column_that_is_not_there_is_told_before_anything_is_made() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(
        "CREATE TABLE t (id bigint PRIMARY KEY, number int, note text); ALTER TABLE t REPLICA IDENTITY FULL",
    );
    let said = pipeline.fail(&pipeline.mirror("t", COLUMNS, &[]));
    assert!(said.replace(['"', '`', '\''], "").contains("public.t"), "{said}");
    let slots = "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()";
    assert_eq!(pipeline.postgres.value(slots), "0");
    assert_eq!(pipeline.postgres.value("SELECT count(*) FROM pg_publication"), "0");
}

#[test]
fn a_table_that_others_rewrite_while_it_is_read_first_is_read_whole() {
    let Some(mut pipeline) = Pipeline::create() else { return };
    let proxy = crate::support::proxy::Proxy::start(pipeline.database().server().port());
    pipeline.through(&proxy);
    pipeline.postgres.run(
        "CREATE TABLE t (id text PRIMARY KEY, n int); ALTER TABLE t REPLICA IDENTITY FULL;
         INSERT INTO t SELECT 'key ' || i, i FROM generate_series(1, 20000) i; ANALYZE t",
    );
    proxy.slow_down(200_000);
    let columns = "id STRING, n INT, PRIMARY KEY (id) NOT ENFORCED";
    let mut running = pipeline.start(&pipeline.mirror("t", columns, &[]));
    // Rows get other places while they are read; whoever reads by place must not be surprised.
    pipeline.postgres.wait(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'COPY%'",
        |count| count != "0",
    );
    pipeline.postgres.run("SET lock_timeout = '300ms'");
    let rewritten = pipeline.postgres.try_run("VACUUM FULL t");
    pipeline.postgres.run("UPDATE t SET n = n + 1 WHERE n % 2 = 0");
    proxy.calm();
    let expected = pipeline.postgres.lines("SELECT count(*), sum(n) FROM t");
    wait_until(format!("the lake says {expected}, VACUUM FULL: {rewritten:?}"), || {
        let answer = pipeline.ask("SELECT COUNT(*), SUM(n) FROM lake.db.t");
        if answer == expected { Ok(()) } else { Err(format!("{answer}\n{}", running.shown())) }
    });
}
