//! What rows and transactions may do, one case after the other, with a table of the lake that must say the same at the end.

use super::pipeline::{Pipeline, advised};

const COLUMNS: &str = "id BIGINT, n INT, note STRING, PRIMARY KEY (id) NOT ENFORCED";

/// Two large values and the way that they are stored: apart from their row, so that an update which leaves them alone does not say them.
const LARGE: &str = "
CREATE FUNCTION large(seed text) RETURNS text LANGUAGE sql AS
  $$ SELECT string_agg(md5(seed || i), '') FROM generate_series(1, 625) i $$;
CREATE TABLE t (id bigint PRIMARY KEY, n int, note text);
ALTER TABLE t ALTER note SET STORAGE EXTERNAL;
INSERT INTO t VALUES (1, 1, large('a')), (2, 2, large('b')), (3, 3, NULL);
";

const LARGE_ROWS: &str = "SELECT id, n, note FROM lake.db.t ORDER BY id";
const LARGE_ORACLE: &str = "SELECT id, n, note FROM t ORDER BY id";

/// Changes rows with large values in every way, and waits each time until the lake says the same.
fn change_large_values(pipeline: &Pipeline, changelog_mode: &str) {
    let mirror = pipeline.mirror("t", COLUMNS, &[("changelog-mode", changelog_mode)]);
    let mut running = pipeline.start(&mirror);
    let mut wait = || {
        let expected = pipeline.postgres.lines(LARGE_ORACLE);
        assert!(expected.len() > 20_000, "{expected}");
        pipeline.wait(&mut running, LARGE_ROWS, &expected);
    };
    wait();
    for change in [
        "UPDATE t SET n = n + 10",
        "UPDATE t SET note = large('c') WHERE id = 3",
        "UPDATE t SET id = 10 WHERE id = 1",
        "BEGIN; UPDATE t SET n = 7 WHERE id = 10; UPDATE t SET id = 11 WHERE id = 10; UPDATE t SET n = 8 WHERE id = 11; COMMIT",
        "BEGIN; UPDATE t SET n = 9 WHERE id = 2; DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (2, 1, large('d')); COMMIT",
        "UPDATE t SET note = note",
        "BEGIN; UPDATE t SET id = 20, n = 1 WHERE id = 11; DELETE FROM t WHERE id = 20; COMMIT",
        "UPDATE t SET note = NULL WHERE id = 2",
    ] {
        pipeline.postgres.run(change);
        wait();
    }
}

#[test]
fn large_values_that_an_update_leaves_out_stay_under_the_default_identity() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(LARGE);
    change_large_values(&pipeline, "upsert");
}

#[test]
fn large_values_that_an_update_leaves_out_stay_under_full_identity() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(LARGE);
    pipeline.postgres.run("ALTER TABLE t REPLICA IDENTITY FULL");
    change_large_values(&pipeline, "all");
}

#[test]
fn a_table_without_full_identity_is_refused_with_the_statement_to_run_and_taken_as_upserts() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline
        .postgres
        .run("CREATE TABLE t (id bigint PRIMARY KEY, n int, note text); INSERT INTO t VALUES (1, 1, 'a')");
    let said = pipeline.fail(&pipeline.mirror("t", COLUMNS, &[]));
    let statements = advised(&said, "ALTER TABLE");
    assert_eq!(statements.len(), 1, "{said}");
    assert!(statements[0].ends_with("REPLICA IDENTITY FULL"), "{said}");
    let slots = "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()";
    assert_eq!(pipeline.postgres.value(slots), "0", "what is refused leaves nothing behind");
    assert_eq!(pipeline.postgres.value("SELECT count(*) FROM pg_publication"), "0");

    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &[("changelog-mode", "upsert")]));
    pipeline.wait_table(&mut running, "t", "id, n, note", "1|1|a");
    pipeline.postgres.run("UPDATE t SET n = 2; INSERT INTO t VALUES (2, 2, 'b'); DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (3, 3, NULL)");
    pipeline.wait_table(&mut running, "t", "id, n, note", "1|2|a\n3|3|NULL");
    drop(running);

    pipeline.postgres.run(&statements[0]);
    let mut running = pipeline.start(&format!(
        "SET 'lakehead.job.resume' = 'none';\n{}",
        pipeline.mirror("t", COLUMNS, &[("slot.name", &format!("{}_all", pipeline.slot()))])
    ));
    pipeline.postgres.run("UPDATE t SET n = 4 WHERE id = 1");
    pipeline.wait_table(&mut running, "t", "id, n, note", "1|4|a\n3|3|NULL");
}

#[test]
fn a_key_has_what_its_last_change_of_a_transaction_says() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(
        "CREATE TABLE t (id bigint PRIMARY KEY, n int, note text); ALTER TABLE t REPLICA IDENTITY FULL;
         INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b')",
    );
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &[]));
    pipeline.wait_table(&mut running, "t", "id, n, note", "1|1|a\n2|2|b");
    let steps = [
        (
            "BEGIN; UPDATE t SET note = 'x' WHERE id = 1; UPDATE t SET note = 'a' WHERE id = 1; UPDATE t SET n = 9 WHERE id = 2; COMMIT",
            "1|1|a\n2|9|b",
        ),
        (
            "BEGIN; DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (1, 5, 'again'); COMMIT",
            "1|5|again\n2|9|b",
        ),
        (
            "BEGIN; INSERT INTO t VALUES (3, 3, 'c'); UPDATE t SET n = 4 WHERE id = 3; DELETE FROM t WHERE id = 3; DELETE FROM t WHERE id = 2; COMMIT",
            "1|5|again",
        ),
        (
            "BEGIN; UPDATE t SET id = 2 WHERE id = 1; UPDATE t SET id = 1 WHERE id = 2; INSERT INTO t VALUES (2, 6, 'b'); COMMIT",
            "1|5|again\n2|6|b",
        ),
        (
            "BEGIN; UPDATE t SET id = 3 WHERE id = 1; UPDATE t SET id = 1 WHERE id = 2; UPDATE t SET id = 2 WHERE id = 3; COMMIT",
            "1|6|b\n2|5|again",
        ),
        (
            "BEGIN; SAVEPOINT s; DELETE FROM t; ROLLBACK TO s; UPDATE t SET n = n + 1; COMMIT",
            "1|7|b\n2|6|again",
        ),
        ("BEGIN; DELETE FROM t; ROLLBACK; INSERT INTO t VALUES (4, 4, '')", "1|7|b\n2|6|again\n4|4|"),
    ];
    for (change, expected) in steps {
        pipeline.postgres.run(change);
        pipeline.wait_table(&mut running, "t", "id, n, note", expected);
    }
}

#[test]
fn rows_without_a_key_are_taken_away_one_at_a_time() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(
        "CREATE TABLE t (n int, note text); ALTER TABLE t REPLICA IDENTITY FULL;
         INSERT INTO t VALUES (1, 'a'), (1, 'a'), (1, 'a'), (2, NULL), (2, NULL)",
    );
    let mut running = pipeline.start(&pipeline.mirror("t", "n INT, note STRING", &[]));
    pipeline.wait_table(&mut running, "t", "n, note", "1|a\n1|a\n1|a\n2|NULL\n2|NULL");
    let one = "(SELECT ctid FROM t WHERE n = {n} LIMIT 1)";
    for (change, expected) in [
        // An update that changes nothing is an event of the stream, too.
        ("UPDATE t SET n = n", "1|a\n1|a\n1|a\n2|NULL\n2|NULL"),
        (&format!("DELETE FROM t WHERE ctid = {}", one.replace("{n}", "1")), "1|a\n1|a\n2|NULL\n2|NULL"),
        (&format!("UPDATE t SET n = 3 WHERE ctid = {}", one.replace("{n}", "2")), "1|a\n1|a\n2|NULL\n3|NULL"),
        ("DELETE FROM t WHERE n = 1", "2|NULL\n3|NULL"),
    ] {
        pipeline.postgres.run(change);
        pipeline.wait_table(&mut running, "t", "n, note", expected);
    }
}

#[test]
fn an_identity_of_another_index_tells_deletes_to_upserts() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(
        "CREATE TABLE t (id bigint PRIMARY KEY, code text NOT NULL UNIQUE, n int);
         ALTER TABLE t REPLICA IDENTITY USING INDEX t_code_key;
         INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)",
    );
    // The identity is the key of the declared table.
    let columns = "code STRING, n INT, PRIMARY KEY (code) NOT ENFORCED";
    let mut running = pipeline.start(&pipeline.mirror("t", columns, &[("changelog-mode", "upsert")]));
    pipeline.wait_table(&mut running, "t", "code, n", "a|1\nb|2");
    pipeline.postgres.run("UPDATE t SET n = 3 WHERE id = 1; UPDATE t SET code = 'c' WHERE id = 2");
    pipeline.wait_table(&mut running, "t", "code, n", "a|3\nc|2");
    pipeline.postgres.run("DELETE FROM t WHERE id = 1");
    pipeline.wait_table(&mut running, "t", "code, n", "c|2");
}

/// Starts a mirror of a table of two rows that says what TRUNCATE does.
fn truncated(truncate: Option<&str>) -> Option<(Pipeline, crate::support::running::Running)> {
    let pipeline = Pipeline::create()?;
    pipeline.postgres.run(
        "CREATE TABLE t (id bigint PRIMARY KEY, n int, note text); ALTER TABLE t REPLICA IDENTITY FULL;
         INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b')",
    );
    let options: Vec<(&str, &str)> =
        truncate.map(|policy| ("lakehead.postgres.truncate", policy)).into_iter().collect();
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &options));
    pipeline.wait_table(&mut running, "t", "id, n, note", "1|1|a\n2|2|b");
    pipeline.postgres.run("TRUNCATE t; INSERT INTO t VALUES (3, 3, 'c')");
    Some((pipeline, running))
}

#[test]
fn truncate_fails_the_job_by_name_unless_told_otherwise() {
    let Some((_pipeline, mut running)) = truncated(None) else { return };
    let said = super::pipeline::failure(&mut running);
    for part in ["truncate", "public.t", "lakehead.postgres.truncate", "'resnapshot'", "'skip'"] {
        assert!(said.replace('"', "").contains(part), "{part} in\n{said}");
    }
}

#[test]
fn a_job_gets_past_a_truncate_by_both_ways_on() {
    for (resume, expected) in [("resnapshot", "3|3|c"), ("skip", "1|1|a\n2|2|b\n3|3|c")] {
        let Some((pipeline, mut running)) = truncated(None) else { return };
        super::pipeline::failure(&mut running);
        let mirror = pipeline.mirror("t", COLUMNS, &[]);
        let mut running = pipeline.start(&format!("SET 'lakehead.job.resume' = '{resume}';\n{mirror}"));
        pipeline.wait_table(&mut running, "t", "id, n, note", expected);
        let shown = running.shown();
        assert_eq!(
            shown.contains("starts anew, as 'lakehead.job.resume' = 'resnapshot' asks for"),
            resume == "resnapshot"
        );
        // What comes later is not passed.
        pipeline.postgres.run("TRUNCATE t");
        super::pipeline::failure(&mut running);
    }
}

#[test]
fn truncate_may_be_ignored() {
    let Some((pipeline, mut running)) = truncated(Some("ignore")) else { return };
    pipeline.wait_table(&mut running, "t", "id, n, note", "1|1|a\n2|2|b\n3|3|c");
}

#[test]
fn transactions_that_share_positions_survive_kills_between_them() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run("CREATE TABLE t (n int, note text); ALTER TABLE t REPLICA IDENTITY FULL");
    let mirror = pipeline.mirror("t", "n INT, note STRING", &[]);
    for round in 0..5 {
        let mut running = pipeline.start(&mirror);
        // A row a transaction, as fast as they come: one's end is where the next begins.
        pipeline.postgres.run(&format!(
            "CREATE PROCEDURE fill_{round}() LANGUAGE plpgsql AS $$
             BEGIN FOR i IN 1..300 LOOP INSERT INTO t VALUES (i + 300 * {round}, 'n'); COMMIT; END LOOP; END $$;"
        ));
        pipeline.postgres.run(&format!("CALL fill_{round}()"));
        let at_least = 300 * round + 1;
        crate::support::waiting::wait_until("some of the rows are there", || {
            let count = pipeline.ask("SELECT COUNT(*) FROM lake.db.t");
            if count.parse::<u32>().is_ok_and(|count| count >= at_least) {
                Ok(())
            } else {
                Err(format!("{count}\n{}", running.shown()))
            }
        });
        running.kill();
    }
    let mut running = pipeline.start(&mirror);
    pipeline.wait(
        &mut running,
        "SELECT COUNT(*), COUNT(DISTINCT n), MIN(n), MAX(n) FROM lake.db.t",
        "1500|1500|1|1500",
    );
}
