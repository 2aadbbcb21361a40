//! Connections: encrypted or not, cut, silent, slow, and held up by what comes behind them; and how the server is told what it may
//! forget.

use std::io::Read;
use std::time::Duration;

use super::pipeline::{Pipeline, describe, status_of, wait_checkpointed};
use crate::support::postgres::Lsn;
use crate::support::proxy::Proxy;
use crate::support::run::Lakehead;
use crate::support::waiting::wait_until;

const COLUMNS: &str = "id BIGINT, n INT, PRIMARY KEY (id) NOT ENFORCED";
const CREATE: &str = "CREATE TABLE t (id bigint PRIMARY KEY, n int); ALTER TABLE t REPLICA IDENTITY FULL;
  INSERT INTO t VALUES (1, 1), (2, 2)";

#[test]
fn an_idle_database_does_not_hold_what_others_write() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(CREATE);
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &[]));
    pipeline.wait_table(&mut running, "t", "id, n", "1|1\n2|2");
    let before = pipeline.postgres.lsn();
    let other = pipeline.database().server().create_database("");
    other.connect().run(
        "CREATE TABLE filler AS SELECT repeat(md5(i::text), 32) AS text FROM generate_series(1, 50000) i",
    );
    pipeline.postgres.wait_acknowledged(pipeline.slot());
    wait_until("the server may forget it", || {
        pipeline.postgres.run("CHECKPOINT");
        let slot = pipeline.slot();
        let restart = pipeline
            .postgres
            .value(&format!("SELECT restart_lsn FROM pg_replication_slots WHERE slot_name = '{slot}'"));
        if Lsn::parse(&restart) > Some(before) { Ok(()) } else { Err(restart) }
    });
}

#[test]
fn nothing_is_acknowledged_before_a_checkpoint_holds_it() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(CREATE);
    let statements = format!(
        "SET 'execution.checkpointing.interval' = '1 h';
{}CREATE TABLE shown (id BIGINT, n INT) WITH ('connector' = 'print');
INSERT INTO shown SELECT * FROM t;\n",
        pipeline.source("t", COLUMNS, &[])
    );
    let mut running = pipeline.start(&statements);
    running.wait_out("+I[2, 2]");
    let (slot, first) = (pipeline.slot(), pipeline.postgres.lsn());
    pipeline.postgres.run("INSERT INTO t SELECT i, i FROM generate_series(3, 3000) i");
    running.wait_out("+I[3000, 3000]");
    // It has come all the way, but nobody could go on from it.
    assert!(pipeline.postgres.confirmed(slot).unwrap() <= first);
    let id = running.job_id();
    running.write(&format!("STOP JOB '{id}' WITH SAVEPOINT;\n"));
    running.wait_out("savepoint path");
    running.end();
    assert!(pipeline.postgres.confirmed(slot).unwrap() <= pipeline.postgres.lsn());
}

#[test]
fn a_job_is_described_with_its_snapshot_its_position_and_its_lag() {
    let Some(mut pipeline) = Pipeline::create() else { return };
    let proxy = Proxy::start(pipeline.database().server().port());
    pipeline.through(&proxy);
    pipeline.postgres.run(
        "CREATE TABLE t (id bigint PRIMARY KEY, n int); ALTER TABLE t REPLICA IDENTITY FULL;
         INSERT INTO t SELECT i, i FROM generate_series(1, 50000) i; ANALYZE t",
    );
    // Slow enough to be seen.
    proxy.slow_down(400_000);
    let options =
        [("scan.incremental.snapshot.enabled", "true"), ("scan.incremental.snapshot.chunk.size", "1000")];
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &options));
    wait_until("the chunks of the snapshot are counted", || {
        let described = describe(&mut running);
        let total = described.find(" chunks").map(|end| &described[..end]);
        let total = total.and_then(|text| text.rsplit(' ').next()?.parse::<u32>().ok());
        if total.is_some_and(|total| total >= 2) { Ok(()) } else { Err(described) }
    });
    proxy.calm();
    pipeline.wait(&mut running, "SELECT COUNT(*) FROM lake.db.t", "50000");
    pipeline.postgres.run("UPDATE t SET n = 0");
    let end = pipeline.postgres.lsn();
    wait_checkpointed(&mut running, end);
    let described = describe(&mut running);
    for name in ["slot", "lsn", "checkpointed lsn", "lag bytes", "lag ms", "retained bytes"] {
        assert!(status_of(&described, name).is_some(), "{name} in {described}");
    }
    assert!(described.contains("streaming"), "{described}");
    assert_eq!(pipeline.ask("SELECT SUM(n) FROM lake.db.t"), "0");
}

#[test]
fn a_stream_that_says_nothing_any_more_is_opened_anew() {
    let Some(mut pipeline) = Pipeline::create() else { return };
    let proxy = Proxy::start(pipeline.database().server().port());
    pipeline.through(&proxy);
    pipeline.postgres.run(CREATE);
    pipeline.postgres.run(&format!("ALTER DATABASE {} SET wal_sender_timeout = '2s'", pipeline.slot()));
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &[]));
    pipeline.wait_table(&mut running, "t", "id, n", "1|1\n2|2");
    proxy.stall();
    let attempts = proxy.attempt_count();
    pipeline.postgres.run("UPDATE t SET n = 3 WHERE id = 2");
    wait_until("the job connects anew", || {
        let now = proxy.attempt_count();
        if now > attempts { Ok(()) } else { Err(running.shown()) }
    });
    proxy.calm();
    pipeline.wait_table(&mut running, "t", "id, n", "1|1\n2|3");
}

#[test]
fn a_stream_stays_open_while_nobody_takes_its_rows() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(&format!("ALTER DATABASE {} SET wal_sender_timeout = '2s'", pipeline.slot()));
    pipeline
        .postgres
        .run("CREATE TABLE t (id bigint PRIMARY KEY, n int); ALTER TABLE t REPLICA IDENTITY FULL");
    let statements = format!(
        "{}CREATE TABLE shown (id BIGINT, n INT) WITH ('connector' = 'print');\nINSERT INTO shown SELECT * FROM t;\n",
        pipeline.source("t", COLUMNS, &[])
    );
    // Nobody reads what it prints, so that the pipe is full soon and everything before it waits.
    let lakehead = Lakehead::new();
    let mut child = lakehead.spawn();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, statements.as_bytes()).unwrap();
    let sender = format!(
        "SELECT active_pid FROM pg_replication_slots WHERE slot_name = '{}' AND active",
        pipeline.slot()
    );
    pipeline.postgres.wait(&sender, |pid| !pid.is_empty());
    // The walsender that reads the slot to make it is another one than that which streams.
    pipeline.postgres.wait(
        "SELECT count(*) FROM pg_stat_replication r JOIN pg_replication_slots s ON s.active_pid = r.pid WHERE r.state = 'streaming' AND s.database = current_database()",
        |count| count == "1",
    );
    let pid = pipeline.postgres.value(&sender);
    pipeline.postgres.run("INSERT INTO t SELECT i, i FROM generate_series(1, 200000) i");
    let since = pipeline.postgres.value("SELECT clock_timestamp()");
    // Three times as long as the server waits for a sign of life.
    pipeline
        .postgres
        .wait_true(&format!("SELECT clock_timestamp() > timestamptz '{since}' + interval '7 seconds'"));
    assert_eq!(pipeline.postgres.value(&sender), pid, "the server has not given up the connection");
    let mut stdout = child.stdout.take().unwrap();
    let (mut text, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    let last = b"+I[200000, 200000]";
    while !text.windows(last.len()).any(|window| window == last) {
        let length = stdout.read(&mut buffer).unwrap();
        assert_ne!(length, 0, "the job has ended");
        let keep = text.len().saturating_sub(last.len());
        text.drain(..keep);
        text.extend_from_slice(&buffer[..length]);
    }
    assert_eq!(pipeline.postgres.value(&sender), pid);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_server_that_is_away_is_said_to_be_once() {
    let Some(mut pipeline) = Pipeline::create() else { return };
    let proxy = Proxy::start(pipeline.database().server().port());
    pipeline.through(&proxy);
    pipeline.postgres.run(CREATE);
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &[]));
    pipeline.wait_table(&mut running, "t", "id, n", "1|1\n2|2");
    let attempts = proxy.attempt_count();
    proxy.refuse();
    pipeline.postgres.run("UPDATE t SET n = 3 WHERE id = 2");
    wait_until("the job has tried several times", || {
        let now = proxy.attempt_count();
        if now >= attempts + 3 { Ok(()) } else { Err(running.shown()) }
    });
    proxy.calm();
    pipeline.wait_table(&mut running, "t", "id, n", "1|1\n2|3");
    pipeline.postgres.wait_acknowledged(pipeline.slot());
    let shown = running.shown();
    assert_eq!(shown.matches("[WARNING]").count(), 1, "{shown}");
    assert_eq!(shown.matches("goes on after").count(), 1, "{shown}");
}

#[test]
fn connections_that_are_cut_at_any_moment_lose_nothing() {
    let Some(mut pipeline) = Pipeline::create() else { return };
    let proxy = Proxy::start(pipeline.database().server().port());
    pipeline.through(&proxy);
    pipeline.postgres.run(
        "CREATE TABLE t (id bigint PRIMARY KEY, n int); ALTER TABLE t REPLICA IDENTITY FULL;
        INSERT INTO t SELECT i, 0 FROM generate_series(1, 20000) i; ANALYZE t",
    );
    let options = [
        ("scan.incremental.snapshot.enabled", "true"),
        ("scan.incremental.snapshot.chunk.size", "500"),
        ("connect.max-retries", "20"),
    ];
    proxy.slow_down(100_000);
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &options));
    let slots = "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()";
    pipeline.postgres.wait(slots, |count| count == "1");
    let mut cuts = 0;
    // A cut after each few connections, through the snapshot and then in the stream. The job waits longer after each that follows another.
    while pipeline.ask("SELECT COUNT(*) FROM lake.db.t") != "20000" && cuts < 6 {
        let attempts = proxy.attempt_count();
        wait_until("the job connects", || {
            let is_done = pipeline.ask("SELECT COUNT(*) FROM lake.db.t") == "20000";
            let is_new = proxy.attempt_count() > attempts && proxy.open_count() > 0;
            if is_new || is_done || cuts == 0 { Ok(()) } else { Err(running.shown()) }
        });
        pipeline.postgres.run("UPDATE t SET n = n + 1 WHERE id % 100 = 0");
        proxy.cut();
        cuts += 1;
    }
    proxy.calm();
    pipeline.postgres.run("DELETE FROM t WHERE id % 100 = 1; UPDATE t SET n = n + 1 WHERE id % 100 = 2");
    let expected = pipeline.postgres.lines("SELECT count(*), sum(n), sum(id) FROM t");
    wait_until(format!("the lake says {expected}"), || {
        let answer = pipeline.ask("SELECT COUNT(*), SUM(n), SUM(id) FROM lake.db.t");
        if answer == expected { Ok(()) } else { Err(format!("{answer}\n{}", running.shown())) }
    });
}

#[test]
fn connections_are_encrypted_as_they_are_told_to_be() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(CREATE);
    let authority = pipeline.database().server().authority();
    let encrypted = "SELECT bool_and(ssl)::text FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name ILIKE '%lakehead%' AND datname = current_database()";
    for (mode, root, is_encrypted) in [
        ("disable", None, "false"),
        ("require", None, "true"),
        ("verify-ca", Some(authority.as_str()), "true"),
        ("verify-full", Some(authority.as_str()), "true"),
    ] {
        let slot = format!("{}_{}", pipeline.slot(), mode.replace('-', "_"));
        let mut options = vec![("slot.name", slot.as_str()), ("debezium.database.sslmode", mode)];
        options.extend(root.map(|root| ("debezium.database.sslrootcert", root)));
        let settings = format!("SET 'pipeline.name' = '{slot}';\nSET 'lakehead.job.resume' = 'none';\n");
        let mut running = pipeline.start(&(settings + &pipeline.mirror("t", COLUMNS, &options)));
        let rows = pipeline.postgres.lines("SELECT id, n FROM t ORDER BY id");
        pipeline.wait_table(&mut running, "t", "id, n", &rows);
        pipeline.postgres.wait(encrypted, |value| value == is_encrypted);
        running.kill();
        pipeline.postgres.wait(encrypted, str::is_empty);
    }
    // Nobody that is known has signed the certificate.
    let options = [("debezium.database.sslmode", "verify-full"), ("connect.max-retries", "0")];
    let said = pipeline.fail(&pipeline.mirror("t", COLUMNS, &options));
    assert!(said.to_lowercase().contains("certificate"), "{said}");
}

#[test]
fn a_slow_connection_is_no_reason_to_fail() {
    let Some(mut pipeline) = Pipeline::create() else { return };
    let proxy = Proxy::start(pipeline.database().server().port());
    pipeline.through(&proxy);
    proxy.delay(Duration::from_millis(60));
    pipeline.postgres.run(CREATE);
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &[]));
    pipeline.wait_table(&mut running, "t", "id, n", "1|1\n2|2");
    pipeline.postgres.run("UPDATE t SET n = 3 WHERE id = 2");
    pipeline.wait_table(&mut running, "t", "id, n", "1|1\n2|3");
}
