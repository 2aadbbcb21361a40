//! Slots and publications: which are made, shared, left and refused, and what happens to a job whose slot is lost.

use super::pipeline::{ABSENT, Pipeline, advised, failure, stop};
use crate::support::postgres::{Lsn, PostgresServer, Shutdown};
use crate::support::waiting::wait_until;

const COLUMNS: &str = "id BIGINT, n INT, PRIMARY KEY (id) NOT ENFORCED";
const CREATE: &str = "CREATE TABLE t (id bigint PRIMARY KEY, n int); ALTER TABLE t REPLICA IDENTITY FULL;
  INSERT INTO t VALUES (1, 1), (2, 2)";

/// The slots of the test's database, with something of each.
fn slots(pipeline: &Pipeline, columns: &str) -> String {
    pipeline.postgres.lines(&format!(
        "SELECT {columns} FROM pg_replication_slots WHERE database = current_database() ORDER BY slot_name"
    ))
}

#[test]
fn statements_that_read_nothing_connect_to_nobody() {
    let Some(pipeline) = Pipeline::create() else { return };
    let nowhere = [("hostname", "nowhere.invalid"), ("password", "unknown")];
    let statements = format!(
        "{}{}CREATE TABLE lake.db.t ({COLUMNS});
DESCRIBE t;
SHOW CREATE TABLE t;
EXPLAIN INSERT INTO lake.db.t SELECT * FROM t;\n",
        pipeline.source("t", COLUMNS, &nowhere),
        pipeline.lake()
    );
    let ran = pipeline.run(&statements).ok();
    assert!(ran.stdout.contains("BIGINT") && ran.stdout.contains("Sink"), "{}", ran.stdout);
}

#[test]
fn a_slot_is_named_after_its_job_unless_it_has_a_name() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(CREATE);
    // Slots are the server's, so the job has a name that no other test's has.
    let name = pipeline.slot();
    let statements = format!(
        "SET 'pipeline.name' = '{name}';\n{}",
        pipeline.mirror("t", COLUMNS, &[("slot.name", ABSENT)])
    );
    let mut running = pipeline.start(&statements);
    pipeline.wait_table(&mut running, "t", "id, n", "1|1\n2|2");
    let slot = format!("lakehead_{name}");
    assert_eq!(slots(&pipeline, "slot_name, temporary"), format!("{slot}|f"));
    assert!(running.shown().contains(&slot), "it is said at the start:\n{}", running.shown());
}

#[test]
fn exploring_takes_a_slot_that_goes_with_the_query() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(CREATE);
    let mut running = pipeline.start(&format!("{}SELECT * FROM t;\n", pipeline.source("t", COLUMNS, &[])));
    running.wait_out("| +I |");
    pipeline.postgres.run("UPDATE t SET n = 7 WHERE id = 2; INSERT INTO t VALUES (3, 3)");
    let shown = running.wait_out("|                    3 |");
    assert!(shown.contains("| -U |") && shown.contains("| +U |"), "{shown}");
    // The slot for the stream is no one's that an INSERT could go on with.
    assert_eq!(slots(&pipeline, "temporary, slot_name <> current_database()"), "t|t");
    running.signal("INT");
    let ended = running.end();
    assert!(!ended.stdout.contains("[ERROR]"), "{}", ended.stdout);
    pipeline
        .postgres
        .wait("SELECT count(*) FROM pg_replication_slots WHERE database = current_database()", |count| {
            count == "0"
        });
}

#[test]
fn a_snapshot_alone_takes_no_slot_and_ends() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run("CREATE TABLE t (id bigint PRIMARY KEY, n int); INSERT INTO t SELECT i, i % 7 FROM generate_series(1, 5000) i");
    let options = [("scan.startup.mode", "snapshot")];
    let ran = pipeline.run(&pipeline.mirror("t", COLUMNS, &options)).ok();
    assert_eq!(pipeline.ask("SELECT COUNT(*), SUM(n) FROM lake.db.t"), "5000|14997", "{}", ran.stdout);
    // In batch mode, too.
    let batch = format!(
        "SET 'execution.runtime-mode' = 'batch';\n{}SELECT COUNT(*) AS c, SUM(n) AS s FROM t;\n",
        pipeline.source("t", COLUMNS, &options)
    );
    let ran = pipeline.run(&batch).ok();
    assert!(ran.stdout.contains("| 5000 | 14997 |"), "{}", ran.stdout);
    assert_eq!(slots(&pipeline, "slot_name"), "");
    assert_eq!(pipeline.postgres.value("SELECT count(*) FROM pg_publication"), "0");
    // A table that goes on for ever is none of a batch query.
    let batch = batch.replace(", 'scan.startup.mode' = 'snapshot'", "");
    let refused = pipeline.run(&batch);
    assert_eq!(refused.code, 1);
    assert!(refused.stdout.contains("The table source is unbounded"), "{}", refused.stdout);
    let way_out = "/*+ OPTIONS('scan.startup.mode' = 'snapshot') */";
    assert!(refused.stdout.contains(way_out), "{}", refused.stdout);
    let ran = pipeline.run(&batch.replace("FROM t;", &format!("FROM t {way_out};"))).ok();
    assert!(ran.stdout.contains("| 5000 | 14997 |"), "{}", ran.stdout);
}

#[test]
fn all_tables_of_a_job_share_one_slot() {
    // The job's own is the only one that the server has.
    let Some(server) = PostgresServer::start(&["max_replication_slots=1"]) else { return };
    let pipeline = Pipeline::on(&server, "");
    pipeline.postgres.run(
        "CREATE TABLE a (id bigint PRIMARY KEY, n int); CREATE TABLE b (id bigint PRIMARY KEY, n int);
         ALTER TABLE a REPLICA IDENTITY FULL; ALTER TABLE b REPLICA IDENTITY FULL;
         INSERT INTO a SELECT i, 0 FROM generate_series(1, 3000) i; INSERT INTO b SELECT i, 0 FROM generate_series(1, 3000) i",
    );
    let options =
        [("scan.incremental.snapshot.enabled", "true"), ("scan.incremental.snapshot.chunk.size", "500")];
    let statements = format!(
        "{}{}{}CREATE TABLE lake.db.a ({COLUMNS}); CREATE TABLE lake.db.b ({COLUMNS});
EXECUTE STATEMENT SET BEGIN INSERT INTO lake.db.a SELECT * FROM a; INSERT INTO lake.db.b SELECT * FROM b; END;\n",
        pipeline.source("a", COLUMNS, &options),
        pipeline.source("b", COLUMNS, &options),
        pipeline.lake()
    );
    let mut running = pipeline.start(&statements);
    let both = "SELECT (SELECT SUM(n) FROM lake.db.a) AS a, (SELECT SUM(n) FROM lake.db.b) AS b";
    pipeline.wait(&mut running, both, "0|0");
    // Every snapshot of the lake has both tables at one commit: their sums are always equal there at the end of a checkpoint.
    for _ in 0..20 {
        pipeline.postgres.run(
            "BEGIN; UPDATE a SET n = n + 1 WHERE id <= 10; UPDATE b SET n = n + 1 WHERE id <= 10; COMMIT",
        );
    }
    pipeline.wait(&mut running, both, "200|200");
    assert_eq!(
        slots(&pipeline, "slot_name, active AND confirmed_flush_lsn IS NOT NULL"),
        format!("{}|t", pipeline.slot())
    );
}

#[test]
fn tables_that_share_a_slot_agree_about_its_stream() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(CREATE);
    pipeline
        .postgres
        .run("CREATE TABLE u (id bigint PRIMARY KEY, n int); ALTER TABLE u REPLICA IDENTITY FULL");
    let statements = format!(
        "{}{}{}CREATE TABLE lake.db.t ({COLUMNS}); CREATE TABLE lake.db.u ({COLUMNS});
EXECUTE STATEMENT SET BEGIN INSERT INTO lake.db.t SELECT * FROM t; INSERT INTO lake.db.u SELECT * FROM u; END;\n",
        pipeline.source("t", COLUMNS, &[("debezium.publication.name", "one")]),
        pipeline.source("u", COLUMNS, &[("debezium.publication.name", "two")]),
        pipeline.lake()
    );
    let said = pipeline.fail(&statements);
    for part in [
        "default_catalog.default_database.t",
        "default_catalog.default_database.u",
        "debezium.publication.name",
    ] {
        assert!(said.replace('`', "").contains(part), "{part} in\n{said}");
    }
    assert_eq!(slots(&pipeline, "slot_name"), "");
}

#[test]
fn another_job_on_a_slot_is_refused() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(CREATE);
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &[]));
    pipeline.wait_table(&mut running, "t", "id, n", "1|1\n2|2");
    let other = format!(
        "SET 'pipeline.name' = 'other';\n{}CREATE TABLE more WITH ('connector' = 'blackhole') LIKE t (EXCLUDING ALL);\nINSERT INTO more SELECT * FROM t;\n",
        pipeline.source("t", COLUMNS, &[])
    );
    let said = pipeline.fail(&other);
    assert!(said.contains(pipeline.slot()), "{said}");
    // In the same session, too.
    running.write("CREATE TABLE more WITH ('connector' = 'blackhole') LIKE t (EXCLUDING ALL);\nSET 'pipeline.name' = 'other';\nINSERT INTO more SELECT * FROM t;\n");
    wait_until("the second job of the session is refused", || {
        let shown = running.shown();
        let said = format!("replication slot {} is read by job 'cdc' already", pipeline.slot());
        if shown.contains(&said) && shown.contains("statement set") { Ok(()) } else { Err(shown) }
    });
    pipeline.postgres.run("UPDATE t SET n = 5 WHERE id = 1");
    wait_until("the first job goes on", || {
        let answer = pipeline.ask("SELECT id, n FROM lake.db.t ORDER BY id");
        if answer == "1|5\n2|2" { Ok(()) } else { Err(answer) }
    });
}

#[test]
fn a_slot_that_seems_to_be_in_use_is_waited_for() {
    let Some(mut pipeline) = Pipeline::create() else { return };
    let proxy = crate::support::proxy::Proxy::start(pipeline.database().server().port());
    pipeline.through(&proxy);
    pipeline.postgres.run(CREATE);
    let mirror = pipeline.mirror("t", COLUMNS, &[]);
    let mut running = pipeline.start(&mirror);
    pipeline.wait_table(&mut running, "t", "id, n", "1|1\n2|2");
    // The server does not learn that its client has been killed.
    proxy.hide_ends();
    running.kill();
    assert_eq!(slots(&pipeline, "active AND confirmed_flush_lsn IS NOT NULL"), "t");
    pipeline.postgres.run("UPDATE t SET n = 3 WHERE id = 2");
    let mut running = pipeline.start(&mirror);
    wait_until("the job says that the slot is in use", || {
        let shown = running.shown();
        let is_said = shown.contains("is read by process") || shown.contains("is active for PID");
        if is_said { Ok(()) } else { Err(shown) }
    });
    proxy.calm();
    wait_until("the job goes on", || {
        let answer = pipeline.ask("SELECT id, n FROM lake.db.t ORDER BY id");
        if answer == "1|1\n2|3" { Ok(()) } else { Err(format!("{answer}\n{}", running.shown())) }
    });
}

/// Checks that a job says that its slot is lost, and that both ways on are as it says.
fn check_ways_on(pipeline: &Pipeline, lost: &str) {
    let mirror = pipeline.mirror("t", COLUMNS, &[]);
    let said = pipeline.fail(&mirror);
    for part in [lost, pipeline.slot(), "SET 'lakehead.job.resume' = 'resnapshot'", "'skip'"] {
        assert!(said.contains(part), "{part} in\n{said}");
    }
    // It is not tried again and again.
    assert!(!said.to_lowercase().contains("retrying"), "{said}");
    let before = pipeline.ask("SELECT COUNT(*) FROM lake.db.`t$snapshots`").parse::<u32>().unwrap();
    let again = format!("SET 'lakehead.job.resume' = 'resnapshot';\n{mirror}");
    let mut running = pipeline.start(&again);
    let rows = pipeline.postgres.lines("SELECT id, n FROM t ORDER BY id");
    pipeline.wait_table(&mut running, "t", "id, n", &rows);
    // Old rows, which nobody has said to be deleted, go in the snapshot that brings the new ones.
    let counts = pipeline.ask(
        "SELECT summary['total-records'], summary['operation'] FROM lake.db.`t$snapshots` ORDER BY committed_at",
    );
    let after = pipeline.ask("SELECT COUNT(*) FROM lake.db.`t$snapshots`").parse::<u32>().unwrap();
    assert_eq!(after, before + 1, "{counts}");
    pipeline.postgres.run("INSERT INTO t VALUES (77, 77)");
    pipeline.wait(&mut running, "SELECT n FROM lake.db.t WHERE id = 77", "77");
}

/// Starts a job, ends it in order, and changes rows meanwhile.
fn stopped(pipeline: &Pipeline) {
    pipeline.postgres.run(CREATE);
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &[]));
    pipeline.wait_table(&mut running, "t", "id, n", "1|1\n2|2");
    stop(&mut running);
    pipeline.postgres.run("DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (3, 3)");
}

#[test]
fn a_slot_that_was_dropped_fails_the_job_and_a_new_snapshot_replaces_its_table() {
    let Some(pipeline) = Pipeline::create() else { return };
    stopped(&pipeline);
    let slot = pipeline.slot();
    pipeline.postgres.wait(
        &format!("SELECT count(*) FROM pg_replication_slots WHERE slot_name = '{slot}' AND active"),
        |count| count == "0",
    );
    pipeline.postgres.run(&format!("SELECT pg_drop_replication_slot('{slot}')"));
    check_ways_on(&pipeline, "does not exist");
}

#[test]
fn a_slot_whose_log_was_removed_fails_the_job_and_a_new_snapshot_replaces_its_table() {
    let Some(server) = PostgresServer::start(&["max_slot_wal_keep_size=1MB", "max_wal_size=32MB"]) else {
        return;
    };
    let pipeline = Pipeline::on(&server, "");
    stopped(&pipeline);
    wait_until("the slot is lost", || {
        pipeline.postgres.run(
            "CREATE TABLE IF NOT EXISTS filler (text text);
             INSERT INTO filler SELECT repeat(md5(i::text), 32) FROM generate_series(1, 30000) i;
             SELECT pg_switch_wal();",
        );
        pipeline.postgres.run("CHECKPOINT");
        let status = slots(&pipeline, "wal_status");
        if status == "lost" { Ok(()) } else { Err(status) }
    });
    check_ways_on(&pipeline, "lost");
}

#[test]
fn a_slot_that_was_moved_beyond_the_checkpoint_fails_the_job() {
    let Some(pipeline) = Pipeline::create() else { return };
    stopped(&pipeline);
    let slot = pipeline.slot();
    pipeline.postgres.wait(
        &format!("SELECT count(*) FROM pg_replication_slots WHERE slot_name = '{slot}' AND active"),
        |count| count == "0",
    );
    pipeline
        .postgres
        .run(&format!("SELECT pg_replication_slot_advance('{slot}', pg_current_wal_insert_lsn())"));
    let said = pipeline.fail(&pipeline.mirror("t", COLUMNS, &[]));
    for part in [slot, "SET 'lakehead.job.resume' = 'resnapshot'", "'skip'"] {
        assert!(said.contains(part), "{part} in\n{said}");
    }
    // What the slot has passed is lost where that is wanted; the rest comes.
    let skip = format!("SET 'lakehead.job.resume' = 'skip';\n{}", pipeline.mirror("t", COLUMNS, &[]));
    let mut running = pipeline.start(&skip);
    wait_until("the slot is read", || {
        let active = slots(&pipeline, "active AND confirmed_flush_lsn IS NOT NULL");
        if active == "t" { Ok(()) } else { Err(format!("{active}\n{}", running.shown())) }
    });
    pipeline.postgres.run("INSERT INTO t VALUES (4, 4)");
    pipeline.wait_table(&mut running, "t", "id, n", "1|1\n2|2\n4|4");
}

#[test]
fn another_server_in_the_place_of_the_first_is_refused() {
    let Some(server) = PostgresServer::start(&[]) else { return };
    let other = PostgresServer::start(&[]).unwrap();
    let proxy = crate::support::proxy::Proxy::start(server.port());
    let mut pipeline = Pipeline::on(&server, "");
    pipeline.through(&proxy);
    // Both know the same user.
    for server in [&server, &other] {
        server.connect("postgres").run("CREATE ROLE mover LOGIN SUPERUSER PASSWORD 'mover'");
    }
    pipeline.connect_as("mover", "mover");
    stopped(&pipeline);
    // It has a database, a table and a slot of these names, but its log is another one.
    let name = pipeline.slot();
    other.connect("postgres").run(&format!("CREATE DATABASE {name}"));
    let connection = other.connect(name);
    connection.run(CREATE);
    connection.run("CREATE PUBLICATION dbz_publication FOR TABLE t");
    connection.run(&format!("SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')"));
    proxy.redirect(other.port());
    let said = pipeline.fail(&pipeline.mirror("t", COLUMNS, &[]));
    for part in ["system", "SET 'lakehead.job.resume' = 'resnapshot'"] {
        assert!(said.contains(part), "{part} in\n{said}");
    }
}

#[test]
fn a_standby_that_is_promoted_is_gone_on_with() {
    let Some(server) = PostgresServer::start(&[]) else { return };
    let proxy = crate::support::proxy::Proxy::start(server.port());
    let mut pipeline = Pipeline::on(&server, "");
    pipeline.through(&proxy);
    pipeline.postgres.run(CREATE);
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &[]));
    pipeline.wait_table(&mut running, "t", "id, n", "1|1\n2|2");
    server.down(Shutdown::Fast);
    server.make_standby();
    server.up();
    let attempts = proxy.attempt_count();
    wait_until("the job has met the standby, and tries again", || {
        let shown = running.shown();
        assert!(!shown.contains("[ERROR]"), "{shown}");
        if proxy.attempt_count() >= attempts + 2 { Ok(()) } else { Err(shown) }
    });
    server.promote();
    pipeline.reconnect();
    pipeline.postgres.wait_true("SELECT timeline_id = 2 FROM pg_control_checkpoint()");
    pipeline.postgres.run("INSERT INTO t VALUES (3, 3)");
    pipeline.wait_table(&mut running, "t", "id, n", "1|1\n2|2\n3|3");
    pipeline.postgres.wait_acknowledged(pipeline.slot());
    stop(&mut running);
    // The position is one of the new line now.
    pipeline.postgres.run("INSERT INTO t VALUES (4, 4)");
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &[]));
    pipeline.wait_table(&mut running, "t", "id, n", "1|1\n2|2\n3|3\n4|4");
}

#[test]
fn a_standby_that_has_not_got_as_far_as_the_job_is_refused() {
    let Some(server) = PostgresServer::start(&[]) else { return };
    let mut pipeline = Pipeline::on(&server, "");
    stopped(&pipeline);
    server.down(Shutdown::Fast);
    server.keep_copy();
    server.up();
    pipeline.reconnect();
    let mirror = pipeline.mirror("t", COLUMNS, &[]);
    let mut running = pipeline.start(&mirror);
    pipeline.wait_table(&mut running, "t", "id, n", "2|2\n3|3");
    pipeline.postgres.run("INSERT INTO t VALUES (4, 4)");
    pipeline.wait_table(&mut running, "t", "id, n", "2|2\n3|3\n4|4");
    stop(&mut running);
    server.down(Shutdown::Immediate);
    server.fall_back();
    server.make_standby();
    server.up();
    server.promote();
    pipeline.reconnect();
    // Its log is longer than what the job has read, and another.
    pipeline.postgres.run("INSERT INTO t VALUES (5, 5)");
    pipeline.postgres.run("CREATE TABLE filler AS SELECT repeat('x', 1000) FROM generate_series(1, 20000)");
    let said = pipeline.fail(&mirror);
    for part in ["timeline", "SET 'lakehead.job.resume' = 'resnapshot'", "'skip'"] {
        assert!(said.contains(part), "{part} in\n{said}");
    }
    // One of the ways on.
    let mut running = pipeline.start(&format!("SET 'lakehead.job.resume' = 'resnapshot';\n{mirror}"));
    pipeline.wait_table(&mut running, "t", "id, n", "2|2\n3|3\n5|5");
}

#[test]
fn a_job_that_starts_anew_into_a_table_with_rows_is_told_so() {
    let Some(pipeline) = Pipeline::create() else { return };
    stopped(&pipeline);
    let anew = format!("SET 'lakehead.job.resume' = 'none';\n{}", pipeline.mirror("t", COLUMNS, &[]));
    let mut running = pipeline.start(&anew);
    let shown = wait_until("a warning names both ways", || {
        let shown = running.shown();
        let names_other = shown.contains("'latest'") || shown.contains("'skip'");
        if shown.contains("[WARNING]") && names_other { Ok(shown) } else { Err(shown) }
    });
    assert!(shown.contains("lake.db.t") && shown.contains("'resnapshot'"), "{shown}");
}

#[test]
fn a_slot_stays_when_the_job_ends_unless_it_is_to_go() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(CREATE);
    for (drops, left) in [("false", "1"), ("true", "0")] {
        let slot = format!("{}_{drops}", pipeline.slot());
        let options = [("slot.name", slot.as_str()), ("debezium.slot.drop.on.stop", drops)];
        let statements =
            format!("SET 'pipeline.name' = '{drops}';\n{}", pipeline.mirror("t", COLUMNS, &options));
        let mut running = pipeline.start(&statements);
        pipeline.wait_table(&mut running, "t", "id, n", "1|1\n2|2");
        stop(&mut running);
        let count =
            format!("SELECT count(*) FROM pg_replication_slots WHERE slot_name = '{slot}' AND NOT active");
        pipeline.postgres.wait(&count, |count| count == left);
    }
}

#[test]
fn a_publication_is_extended_only_if_it_is_ours() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(CREATE);
    pipeline.postgres.run("CREATE TABLE other (id int PRIMARY KEY)");
    let tables = "SELECT string_agg(tablename, ',' ORDER BY tablename) FROM pg_publication_tables WHERE pubname = '{}'";
    // Another's publication without the table: the exact statement, and nothing is changed.
    pipeline.postgres.run("CREATE PUBLICATION theirs FOR TABLE other");
    let theirs = pipeline.mirror("t", COLUMNS, &[("debezium.publication.name", "theirs")]);
    let said = pipeline.fail(&theirs);
    let statements = advised(&said, "ALTER PUBLICATION");
    assert_eq!(statements.len(), 1, "{said}");
    assert_eq!(pipeline.postgres.value(&tables.replace("{}", "theirs")), "other");
    assert_eq!(slots(&pipeline, "slot_name"), "");
    pipeline.postgres.run(&statements[0]);
    assert_eq!(pipeline.postgres.value(&tables.replace("{}", "theirs")), "other,t", "nothing is clobbered");
    let mut running = pipeline.start(&theirs);
    pipeline.wait_table(&mut running, "t", "id, n", "1|1\n2|2");
    drop(running);

    // Our own is made, and extended by what is missing only.
    let ours = |table: &str, slot: &str| {
        let slot = format!("{}_{slot}", pipeline.slot());
        let settings = format!("SET 'lakehead.job.resume' = 'none';\nSET 'pipeline.name' = '{slot}';\n");
        settings + &pipeline.mirror(table, COLUMNS, &[("slot.name", &slot)])
    };
    pipeline.postgres.run("CREATE TABLE more (id bigint PRIMARY KEY, n int); ALTER TABLE more REPLICA IDENTITY FULL; INSERT INTO more VALUES (9, 9)");
    let published = tables.replace("{}", "dbz_publication");
    let mut first = pipeline.start(&ours("t", "first"));
    wait_until("the publication is made", || {
        let found = pipeline.postgres.value(&published);
        if found == "t" { Ok(()) } else { Err(format!("{found}\n{}", first.shown())) }
    });
    pipeline.postgres.run("ALTER PUBLICATION dbz_publication ADD TABLE other");
    let mut second = pipeline.start(&ours("more", "second"));
    pipeline.wait_table(&mut second, "more", "id, n", "9|9");
    assert_eq!(pipeline.postgres.value(&published), "more,other,t");
}

#[test]
fn a_missing_publication_is_told_where_none_may_be_made() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(CREATE);
    let options = [("debezium.publication.autocreate.mode", "disabled")];
    let said = pipeline.fail(&pipeline.mirror("t", COLUMNS, &options));
    assert!(
        said.contains("Publication autocreation is disabled, please create one and restart the connector."),
        "{said}"
    );
    let statements = advised(&said, "CREATE PUBLICATION");
    assert_eq!(statements.len(), 1, "{said}");
    pipeline.postgres.run(&statements[0]);
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &options));
    pipeline.wait_table(&mut running, "t", "id, n", "1|1\n2|2");
}

#[test]
fn a_publication_that_leaves_changes_out_is_refused() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(CREATE);
    let filters = pipeline.database().server().version() >= 15;
    let mut publications = vec![("FOR TABLE t WITH (publish = 'insert, update')", "delete")];
    if filters {
        publications.push(("FOR TABLE t WHERE (n > 1)", "row filter"));
        publications.push(("FOR TABLE t (id)", "column"));
    }
    for (number, (clause, word)) in publications.into_iter().enumerate() {
        let name = format!("partial_{number}");
        pipeline.postgres.run(&format!("CREATE PUBLICATION {name} {clause}"));
        let said = pipeline.fail(&pipeline.mirror("t", COLUMNS, &[("debezium.publication.name", &name)]));
        assert!(said.contains(&name) && said.to_lowercase().contains(word), "{clause}: {said}");
        assert_eq!(slots(&pipeline, "slot_name"), "");
    }
}

#[test]
fn tables_without_identity_are_never_published_for_updates() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run("CREATE TABLE t (id bigint, n int); INSERT INTO t VALUES (1, 1)");
    let said = pipeline.fail(&pipeline.mirror("t", "id BIGINT, n INT", &[]));
    assert!(advised(&said, "ALTER TABLE")[0].contains("REPLICA IDENTITY FULL"), "{said}");
    // Its owner may still change it.
    pipeline.postgres.run("UPDATE t SET n = 2; DELETE FROM t");
}

#[test]
fn a_server_without_logical_log_is_told_what_to_set() {
    let Some(server) = PostgresServer::start(&["wal_level=replica"]) else { return };
    let pipeline = Pipeline::on(&server, "");
    pipeline.postgres.run(CREATE);
    let said = pipeline.fail(&pipeline.mirror("t", COLUMNS, &[]));
    let statements = advised(&said, "ALTER SYSTEM SET wal_level");
    assert_eq!(statements.len(), 1, "{said}");
    pipeline.postgres.run(&statements[0]);
    // The command line goes before what is set, so the server has to be another one to show that it helps.
    assert!(statements[0].ends_with("logical") || statements[0].ends_with("'logical'"), "{said}");
    assert_eq!(pipeline.postgres.value("SELECT count(*) FROM pg_publication"), "0");
}

#[test]
fn a_server_without_free_slots_is_told_what_to_set() {
    let Some(server) = PostgresServer::start(&["max_replication_slots=1"]) else { return };
    let pipeline = Pipeline::on(&server, "");
    pipeline.postgres.run(CREATE);
    pipeline.postgres.run("SELECT pg_create_logical_replication_slot('taken', 'pgoutput')");
    let said = pipeline.fail(&pipeline.mirror("t", COLUMNS, &[]));
    assert!(said.contains("max_replication_slots"), "{said}");
    assert_eq!(pipeline.postgres.value("SELECT count(*) FROM pg_publication"), "0", "nothing was touched");
}

#[test]
fn a_slot_of_another_plugin_or_database_is_refused() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(CREATE);
    let slot = format!("{}_other", pipeline.slot());
    pipeline.postgres.run(&format!("SELECT pg_create_logical_replication_slot('{slot}', 'test_decoding')"));
    let said = pipeline.fail(&pipeline.mirror("t", COLUMNS, &[("slot.name", &slot)]));
    assert!(said.contains(&slot) && said.contains("test_decoding"), "{said}");

    let elsewhere = pipeline.database().server().create_database("");
    let slot = elsewhere.name().to_owned();
    elsewhere.connect().run(&format!("SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')"));
    let said = pipeline.fail(&pipeline.mirror("t", COLUMNS, &[("slot.name", &slot)]));
    assert!(said.matches(slot.as_str()).count() >= 2, "slot and database are named: {said}");
}

#[test]
fn a_job_may_begin_where_the_log_is_now_or_where_its_slot_is() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(CREATE);
    let slot = format!("{}_committed", pipeline.slot());
    pipeline.postgres.run("CREATE PUBLICATION dbz_publication FOR TABLE t");
    pipeline.postgres.run(&format!("SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')"));
    pipeline.postgres.run("INSERT INTO t VALUES (3, 3)");
    let options = [("slot.name", slot.as_str()), ("scan.startup.mode", "committed-offset")];
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &options));
    pipeline.wait_table(&mut running, "t", "id, n", "3|3");
    drop(running);

    let latest = [("scan.startup.mode", "latest-offset")];
    let anew = format!("SET 'pipeline.name' = 'latest';\n{}", pipeline.mirror("t", COLUMNS, &latest));
    let mut running = pipeline.start(&anew);
    wait_until("the slot is read", || {
        let active = slots(&pipeline, "slot_name, active AND confirmed_flush_lsn IS NOT NULL");
        if active.contains(&format!("{}|t", pipeline.slot())) {
            Ok(())
        } else {
            Err(format!("{active}\n{}", running.shown()))
        }
    });
    pipeline.postgres.run("INSERT INTO t VALUES (4, 4)");
    pipeline.wait_table(&mut running, "t", "id, n", "3|3\n4|4");
}

#[test]
fn log_that_is_held_is_warned_of_before_it_is_too_much() {
    let Some(server) = PostgresServer::start(&["max_slot_wal_keep_size=128MB", "max_wal_size=64MB"]) else {
        return;
    };
    let pipeline = Pipeline::on(&server, "");
    pipeline.postgres.run(CREATE);
    // Nothing is acknowledged without checkpoints.
    let never =
        format!("SET 'execution.checkpointing.interval' = '1 h';\n{}", pipeline.mirror("t", COLUMNS, &[]));
    let mut running = pipeline.start(&never);
    wait_until("the slot is read", || {
        let active = slots(&pipeline, "active AND confirmed_flush_lsn IS NOT NULL");
        if active == "t" { Ok(()) } else { Err(format!("{active}\n{}", running.shown())) }
    });
    let before = Lsn::parse(&slots(&pipeline, "confirmed_flush_lsn"));
    let fill = "INSERT INTO filler SELECT repeat(md5(i::text), 32) FROM generate_series(1, 70000) i";
    pipeline.postgres.run(&format!("CREATE TABLE filler (text text); {fill}"));
    let mut is_warned = |percent: &str| {
        wait_until(format!("it is warned at {percent}"), || {
            let shown = running.shown();
            if shown.contains(percent) && shown.contains("max_slot_wal_keep_size") {
                Ok(())
            } else {
                Err(shown)
            }
        });
    };
    is_warned("50 %");
    // The server keeps up to a segment more than it is told: both together are above 80 % of that, too, and below what it is told.
    pipeline.postgres.run(&fill.replace("70000", "44000"));
    is_warned("80 %");
    assert_eq!(Lsn::parse(&slots(&pipeline, "confirmed_flush_lsn")), before, "nothing is acknowledged");
}

#[test]
fn a_server_that_starts_again_is_met_again_and_acknowledged_to() {
    let Some(server) = PostgresServer::start(&[]) else { return };
    let mut pipeline = Pipeline::on(&server, "");
    pipeline.postgres.run(CREATE);
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &[]));
    pipeline.wait_table(&mut running, "t", "id, n", "1|1\n2|2");
    let mut expected = "1|1\n2|2".to_owned();
    for (number, how) in [Shutdown::Fast, Shutdown::Immediate].into_iter().enumerate() {
        server.down(how);
        wait_until("the job says that the server is away", || {
            let shown = running.shown();
            if shown.matches("[WARNING]").count() > number { Ok(()) } else { Err(shown) }
        });
        server.up();
        pipeline.reconnect();
        pipeline.postgres.run(&format!("INSERT INTO t VALUES ({0}, {0})", 10 + number));
        expected += &format!("\n{0}|{0}", 10 + number);
        pipeline.wait_table(&mut running, "t", "id, n", &expected);
        pipeline.postgres.wait_acknowledged(pipeline.slot());
    }
    let shown = running.shown();
    assert_eq!(shown.matches("[WARNING]").count(), 2, "one line when it goes away: {shown}");
    assert_eq!(shown.matches("goes on after").count(), 2, "and one when it is there again: {shown}");
}

#[test]
fn a_failed_start_says_so_soon() {
    let Some(pipeline) = Pipeline::create() else { return };
    let options = [("port", "1"), ("connect.max-retries", "1"), ("connect.timeout", "2 s")];
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &options));
    let said = failure(&mut running);
    assert!(said.contains("localhost:1/"), "{said}");
}
