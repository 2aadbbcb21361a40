//! What the owner of a database does to tables as a whole while a job reads them: they are followed, or it is said what is lost.

use super::pipeline::{Pipeline, describe, failure, stop};
use crate::support::proxy::Proxy;
use crate::support::running::Running;
use crate::support::waiting::wait_until;

const COLUMNS: &str = "id BIGINT, n INT, PRIMARY KEY (id) NOT ENFORCED";

/// Returns the statement that makes a table.
fn table(name: &str) -> String {
    format!("CREATE TABLE {name} (id bigint PRIMARY KEY, n int); ALTER TABLE {name} REPLICA IDENTITY FULL")
}

/// Returns statements that read all users and count each row, so that one that is read twice counts twice.
fn counted(pipeline: &Pipeline, options: &[(&str, &str)]) -> String {
    let usual = [("table-name", "user_[0-9]+")];
    let options: Vec<(&str, &str)> = usual.into_iter().chain(options.iter().copied()).collect();
    format!(
        "{}{}CREATE TABLE IF NOT EXISTS lake.db.users (n INT, c BIGINT, PRIMARY KEY (n) NOT ENFORCED);
INSERT INTO lake.db.users SELECT n, COUNT(*) FROM users GROUP BY n;\n",
        pipeline.source("users", COLUMNS, &options),
        pipeline.lake()
    )
}

/// Starts a job that reads all users, of which there is the first one.
fn start_counted(options: &[(&str, &str)], publication: &str) -> Option<(Pipeline, Running)> {
    let pipeline = Pipeline::create()?;
    pipeline.postgres.run(&table("user_1"));
    pipeline.postgres.run("INSERT INTO user_1 VALUES (1, 1)");
    if !publication.is_empty() {
        pipeline.postgres.run(&format!("CREATE PUBLICATION dbz_publication {publication}"));
    }
    let mut running = pipeline.start(&counted(&pipeline, options));
    pipeline.wait_table(&mut running, "users", "n, c", "1|1");
    Some((pipeline, running))
}

/// Starts a mirror of a table with one row.
fn start_mirror(publication: &str) -> Option<(Pipeline, Running)> {
    let pipeline = Pipeline::create()?;
    pipeline.postgres.run(&table("t"));
    pipeline.postgres.run("INSERT INTO t VALUES (1, 1)");
    if !publication.is_empty() {
        pipeline.postgres.run(&format!("CREATE PUBLICATION dbz_publication {publication}"));
    }
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &[]));
    pipeline.wait_table(&mut running, "t", "id, n", "1|1");
    // The first look at the server is over when there is a checkpoint of what it has shown.
    pipeline.postgres.run("INSERT INTO t VALUES (2, 2)");
    pipeline.wait_table(&mut running, "t", "id, n", "1|1\n2|2");
    Some((pipeline, running))
}

/// Checks that a job has failed with the ways on.
#[track_caller]
fn assert_lost(running: &mut Running, part: &str) {
    let said = failure(running);
    assert!(said.contains(part) && said.contains("'resnapshot'") && said.contains("'skip'"), "{said}");
}

#[test]
fn a_table_that_is_dropped_and_made_again_fails_the_job() {
    for publication in ["", "FOR ALL TABLES"] {
        for is_down in [false, true] {
            let Some((pipeline, mut running)) = start_mirror(publication) else { return };
            if is_down {
                stop(&mut running);
            }
            pipeline.postgres.run("DROP TABLE t");
            pipeline.postgres.run(&table("t"));
            pipeline.postgres.run("INSERT INTO t VALUES (3, 3)");
            if is_down {
                running = pipeline.start(&pipeline.mirror("t", COLUMNS, &[]));
            }
            assert_lost(&mut running, "table public.t is another one than the job has read");
            let again = "SET 'lakehead.job.resume' = 'resnapshot';\n";
            let mut running = pipeline.start(&format!("{again}{}", pipeline.mirror("t", COLUMNS, &[])));
            pipeline.wait_table(&mut running, "t", "id, n", "3|3");
        }
    }
}

#[test]
fn a_table_whose_name_another_one_takes_fails_the_job() {
    let Some((pipeline, mut running)) = start_mirror("FOR ALL TABLES") else { return };
    pipeline.postgres.run(&table("t_new"));
    pipeline.postgres.run("INSERT INTO t_new VALUES (7, 7)");
    pipeline.postgres.run("ALTER TABLE t RENAME TO t_old; ALTER TABLE t_new RENAME TO t");
    assert_lost(&mut running, "table public.t is another one than the job has read");
}

#[test]
fn a_table_that_is_dropped_stays_in_the_lake_and_is_told_once() {
    let Some((pipeline, mut running)) = start_counted(&[], "") else { return };
    stop(&mut running);
    pipeline.postgres.run(&table("user_2"));
    let mut running = pipeline.start(&counted(&pipeline, &[]));
    running.wait_err("user_2");
    pipeline.postgres.run("INSERT INTO user_2 VALUES (2, 2)");
    pipeline.wait_table(&mut running, "users", "n, c", "1|1\n2|1");
    pipeline.postgres.run("DROP TABLE user_1");
    running.wait_err("public.user_1 was dropped: what was written of it stays");
    pipeline.postgres.run("INSERT INTO user_2 VALUES (3, 3)");
    pipeline.wait_table(&mut running, "users", "n, c", "1|1\n2|1\n3|1");
    stop(&mut running);
    let mut running = pipeline.start(&counted(&pipeline, &[]));
    pipeline.postgres.run("INSERT INTO user_2 VALUES (4, 4)");
    pipeline.wait_table(&mut running, "users", "n, c", "1|1\n2|1\n3|1\n4|1");
    assert!(!running.shown().contains("was dropped"), "it was told before");
}

#[test]
fn a_table_that_is_renamed_into_the_pattern_is_read_from_its_beginning_or_said_not_to_be() {
    for reads_new in ["false", "true"] {
        let options = [("scan.newly-added-table.enabled", reads_new)];
        let Some((pipeline, mut running)) = start_counted(&options, "FOR ALL TABLES") else { return };
        // Its changes come, and count for nobody.
        pipeline.postgres.run(&table("staging"));
        pipeline.postgres.run("INSERT INTO staging VALUES (2, 2), (3, 3)");
        pipeline.postgres.run("INSERT INTO user_1 VALUES (4, 4)");
        pipeline.wait_table(&mut running, "users", "n, c", "1|1\n4|1");
        pipeline.postgres.run("ALTER TABLE staging RENAME TO user_2");
        pipeline.postgres.run("INSERT INTO user_2 VALUES (5, 5)");
        if reads_new == "true" {
            pipeline.wait_table(&mut running, "users", "n, c", "1|1\n2|1\n3|1\n4|1\n5|1");
        } else {
            pipeline.wait_table(&mut running, "users", "n, c", "1|1\n4|1\n5|1");
            let warned = running.wait_err("its changes are read from here on");
            assert!(warned.contains("public.user_2") && warned.contains("resnapshot"), "{warned}");
        }
        pipeline.postgres.run("UPDATE user_2 SET n = 6 WHERE id = 5; INSERT INTO user_1 VALUES (7, 7)");
        let before = if reads_new == "true" { "1|1\n2|1\n3|1\n4|1\n" } else { "1|1\n4|1\n" };
        pipeline.wait_table(&mut running, "users", "n, c", &format!("{before}6|1\n7|1"));
        assert!(!running.shown().contains("It is tried again"), "{}", running.shown());
    }
}

#[test]
fn a_table_that_comes_under_a_name_that_is_read_and_does_not_change_is_read_or_said_not_to_be() {
    for (reads_new, publication) in [("true", "FOR ALL TABLES"), ("false", "FOR ALL TABLES"), ("true", "")] {
        let Some(pipeline) = Pipeline::create() else { return };
        pipeline.postgres.run(&table("user_1"));
        pipeline.postgres.run("INSERT INTO user_1 VALUES (1, 1)");
        pipeline.postgres.run(&table("other"));
        pipeline.postgres.run("INSERT INTO other VALUES (2, 2)");
        if !publication.is_empty() {
            pipeline.postgres.run(&format!("CREATE PUBLICATION dbz_publication {publication}"));
        }
        let statements = counted(&pipeline, &[("scan.newly-added-table.enabled", reads_new)]);
        let mut running = pipeline.start(&statements);
        pipeline.wait_table(&mut running, "users", "n, c", "1|1");
        pipeline.postgres.run("INSERT INTO user_1 VALUES (3, 3)");
        pipeline.wait_table(&mut running, "users", "n, c", "1|1\n3|1");
        pipeline.postgres.run("ALTER TABLE other RENAME TO user_2");
        if (reads_new, publication) == ("true", "FOR ALL TABLES") {
            pipeline.wait_table(&mut running, "users", "n, c", "1|1\n2|1\n3|1");
        } else {
            let warned = running.wait_err("start the job again to read it");
            assert!(warned.contains("Table public.user_2 matches"), "{warned}");
        }
    }
}

#[test]
fn a_table_that_is_renamed_within_the_pattern_is_followed_unless_rows_tell_their_table() {
    let Some((pipeline, mut running)) = start_counted(&[], "") else { return };
    pipeline.postgres.run("ALTER TABLE user_1 RENAME TO user_9");
    pipeline.postgres.run("INSERT INTO user_9 VALUES (2, 2); UPDATE user_9 SET n = 3 WHERE id = 1");
    pipeline.wait_table(&mut running, "users", "n, c", "2|1\n3|1");
    stop(&mut running);
    pipeline.postgres.run("ALTER TABLE user_9 RENAME TO user_8; INSERT INTO user_8 VALUES (4, 4)");
    let mut running = pipeline.start(&counted(&pipeline, &[]));
    pipeline.wait_table(&mut running, "users", "n, c", "2|1\n3|1\n4|1");
    let shown = running.shown();
    assert!(!shown.contains("[WARNING]"), "{shown}");
    drop(running);

    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(&table("user_1"));
    pipeline.postgres.run("INSERT INTO user_1 VALUES (1, 1)");
    let shards = "table_name STRING METADATA, id BIGINT, n INT, PRIMARY KEY (id) NOT ENFORCED";
    let columns = "table_name STRING, id BIGINT, n INT, PRIMARY KEY (table_name, id) NOT ENFORCED";
    let statements = format!(
        "{}{}CREATE TABLE lake.db.users ({columns});\nINSERT INTO lake.db.users SELECT * FROM users;\n",
        pipeline.source("users", shards, &[("table-name", "user_[0-9]+")]),
        pipeline.lake()
    );
    let mut running = pipeline.start(&statements);
    pipeline.wait_table(&mut running, "users", "table_name, id, n", "user_1|1|1");
    pipeline.postgres.run("UPDATE user_1 SET n = 2");
    pipeline.wait_table(&mut running, "users", "table_name, id, n", "user_1|1|2");
    pipeline.postgres.run("ALTER TABLE user_1 RENAME TO user_9");
    pipeline.postgres.run("DELETE FROM user_9");
    assert_lost(&mut running, "has the earlier name in 'table_name'");
}

#[test]
fn a_table_that_is_renamed_away_is_read_no_more_and_fails_the_job_if_it_comes_back() {
    let Some((pipeline, mut running)) = start_counted(&[], "") else { return };
    pipeline.postgres.run(&table("user_2"));
    pipeline.postgres.run("ALTER PUBLICATION dbz_publication ADD TABLE user_2");
    pipeline.postgres.run("INSERT INTO user_2 VALUES (2, 2)");
    pipeline.wait_table(&mut running, "users", "n, c", "1|1\n2|1");
    pipeline.postgres.run("ALTER TABLE user_1 RENAME TO archived");
    running.wait_err("Table public.user_1 is public.archived now");
    pipeline.postgres.run("INSERT INTO archived VALUES (3, 3)");
    pipeline.postgres.run("INSERT INTO user_2 VALUES (4, 4)");
    pipeline.wait_table(&mut running, "users", "n, c", "1|1\n2|1\n4|1");
    pipeline.postgres.run("ALTER TABLE archived RENAME TO user_1");
    assert_lost(&mut running, "table public.user_1 had a name that is not read for a while");
    // Who is told to go on without it does.
    let skip = "SET 'lakehead.job.resume' = 'skip';\n";
    let mut running = pipeline.start(&format!("{skip}{}", counted(&pipeline, &[])));
    running.wait_err("The job goes on from now without");
    pipeline.postgres.run("INSERT INTO user_1 VALUES (5, 5)");
    pipeline.wait_table(&mut running, "users", "n, c", "1|1\n2|1\n4|1\n5|1");
}

/// Starts a job that reads a partitioned table with one partition.
fn start_partitioned() -> Option<(Pipeline, Running, String)> {
    let pipeline = Pipeline::create()?;
    pipeline.postgres.run("CREATE TABLE t (id bigint, n int, PRIMARY KEY (id)) PARTITION BY RANGE (id)");
    pipeline.postgres.run("CREATE TABLE t_0 PARTITION OF t FOR VALUES FROM (0) TO (10)");
    pipeline.postgres.run("ALTER TABLE t REPLICA IDENTITY FULL; ALTER TABLE t_0 REPLICA IDENTITY FULL");
    pipeline.postgres.run("INSERT INTO t VALUES (0, 0)");
    let statements = pipeline.mirror("t", COLUMNS, &[("scan.include-partitioned-tables.enabled", "true")]);
    let mut running = pipeline.start(&statements);
    pipeline.wait_table(&mut running, "t", "id, n", "0|0");
    pipeline.postgres.run("INSERT INTO t VALUES (1, 1)");
    pipeline.wait_table(&mut running, "t", "id, n", "0|0\n1|1");
    Some((pipeline, running, statements))
}

/// Makes a table and attaches it.
fn attach(pipeline: &Pipeline, number: u32, fill: &str) {
    pipeline.postgres.run(&table(&format!("t_{number}")));
    pipeline.postgres.run(fill);
    let (from, to) = (number * 10, number * 10 + 10);
    pipeline
        .postgres
        .run(&format!("ALTER TABLE t ATTACH PARTITION t_{number} FOR VALUES FROM ({from}) TO ({to})"));
}

#[test]
fn a_partition_that_is_attached_with_rows_fails_the_job_and_an_empty_one_does_not() {
    for is_down in [false, true] {
        let Some((pipeline, mut running, statements)) = start_partitioned() else { return };
        pipeline.postgres.run("CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (10) TO (20); ALTER TABLE t_1 REPLICA IDENTITY FULL");
        attach(&pipeline, 2, "SELECT 1");
        pipeline.postgres.run("INSERT INTO t VALUES (10, 1), (20, 2)");
        pipeline.wait_table(&mut running, "t", "id, n", "0|0\n1|1\n10|1\n20|2");
        if is_down {
            stop(&mut running);
        }
        attach(&pipeline, 3, "INSERT INTO t_3 VALUES (30, 3)");
        if is_down {
            running = pipeline.start(&statements);
        }
        assert_lost(
            &mut running,
            "partition public.t_3 had rows already when it was attached to table public.t",
        );
        let again = "SET 'lakehead.job.resume' = 'resnapshot';\n";
        let mut running = pipeline.start(&format!("{again}{statements}"));
        pipeline.wait_table(&mut running, "t", "id, n", "0|0\n1|1\n10|1\n20|2\n30|3");
    }
}

#[test]
fn a_partition_that_is_detached_or_dropped_stays_in_the_lake_and_is_told() {
    let Some((pipeline, mut running, _)) = start_partitioned() else { return };
    pipeline.postgres.run("CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (10) TO (20)");
    pipeline.postgres.run("ALTER TABLE t DETACH PARTITION t_0");
    let warned = running.wait_err("Table public.t has lost 1 of its partitions (public.t_0)");
    assert!(warned.contains("resnapshot"), "{warned}");
    pipeline.postgres.run("INSERT INTO t VALUES (10, 1)");
    pipeline.wait_table(&mut running, "t", "id, n", "0|0\n1|1\n10|1");
    pipeline.postgres.run("DROP TABLE t_1");
    running.wait_err("Table public.t has lost 1 of its partitions: what was written");
}

#[test]
fn a_table_that_was_not_published_for_a_while_fails_the_job() {
    for is_down in [false, true] {
        let Some((pipeline, mut running)) = start_mirror("") else { return };
        if is_down {
            stop(&mut running);
        }
        // Between two looks, or while nobody looks.
        pipeline.postgres.run("ALTER PUBLICATION dbz_publication DROP TABLE t; INSERT INTO t VALUES (3, 3); ALTER PUBLICATION dbz_publication ADD TABLE t");
        if is_down {
            running = pipeline.start(&pipeline.mirror("t", COLUMNS, &[]));
        }
        assert_lost(&mut running, "publication dbz_publication did not have table public.t for a while");
    }
    let Some((pipeline, mut running)) = start_mirror("FOR ALL TABLES") else { return };
    stop(&mut running);
    pipeline
        .postgres
        .run("DROP PUBLICATION dbz_publication; CREATE PUBLICATION dbz_publication FOR ALL TABLES");
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &[]));
    assert_lost(&mut running, "or was made again");
}

#[test]
fn what_is_lost_while_tables_are_read_first_fails_the_job_at_once() {
    let Some(mut pipeline) = Pipeline::create() else { return };
    let proxy = Proxy::start(pipeline.database().server().port());
    pipeline.through(&proxy);
    pipeline.postgres.run(
        "CREATE TABLE t (id bigint PRIMARY KEY, n int, note text); ALTER TABLE t REPLICA IDENTITY FULL;
         INSERT INTO t SELECT i, i, repeat('x', 1000) FROM generate_series(1, 100000) i; ANALYZE t",
    );
    let columns = "id BIGINT, n INT, note STRING, PRIMARY KEY (id) NOT ENFORCED";
    proxy.slow_down(200_000);
    let mut running = pipeline.start(&pipeline.mirror("t", columns, &[]));
    pipeline.postgres.wait(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'COPY%'",
        |count| count != "0",
    );
    // What the slot holds back is shown meanwhile.
    wait_until("DESCRIBE JOB shows what the slot holds back", || {
        let described = describe(&mut running);
        if described.contains("snapshot (") || described.contains("retained bytes") {
            Ok(())
        } else {
            Err(described)
        }
    });
    pipeline.postgres.run("ALTER PUBLICATION dbz_publication DROP TABLE t");
    // All of it would take minutes.
    let said = failure(&mut running);
    assert!(said.contains("publication dbz_publication does not have all tables any more"), "{said}");
}

#[test]
fn a_job_is_stopped_soon_while_its_server_is_away_within_a_transaction() {
    let Some(mut pipeline) = Pipeline::create() else { return };
    let proxy = Proxy::start(pipeline.database().server().port());
    pipeline.through(&proxy);
    pipeline
        .postgres
        .run("CREATE TABLE t (id bigint PRIMARY KEY, note text); ALTER TABLE t REPLICA IDENTITY FULL");
    pipeline.postgres.run("INSERT INTO t VALUES (0, 'a')");
    let mirror = pipeline.mirror("t", "id BIGINT, note STRING, PRIMARY KEY (id) NOT ENFORCED", &[]);
    let mut running = pipeline.start(&mirror);
    pipeline.wait_table(&mut running, "t", "id, note", "0|a");
    let rows_read = |running: &mut Running| -> u64 {
        let described = describe(running);
        let line = described.lines().find(|line| line.contains("Source")).unwrap_or_default();
        line.split('|').filter_map(|cell| cell.trim().parse::<u64>().ok()).max().unwrap_or_default()
    };
    let before = rows_read(&mut running);
    proxy.slow_down(1_000_000);
    pipeline.postgres.run("INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 6000) i");
    wait_until("a part of the transaction is read", || {
        let read = rows_read(&mut running);
        if read > before + 500 { Ok(()) } else { Err(format!("{read} rows\n{}", running.shown())) }
    });
    proxy.stall();
    let id = running.job_id();
    running.write(&format!("STOP JOB '{id}';\n"));
    let ended = running.end();
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("it ends at its last checkpoint"), "{}", ended.stderr);
    assert_eq!(pipeline.ask("SELECT id, note FROM lake.db.t").trim_end(), "0|a");
    proxy.calm();
    proxy.cut();
    let mut running = pipeline.start(&mirror);
    pipeline.wait(&mut running, "SELECT COUNT(*) FROM lake.db.t", "6001");
}
