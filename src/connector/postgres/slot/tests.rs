//! Slots of a real server: made, waited for, looked at, lost and dropped.

use std::time::Duration;

use super::*;
use crate::connector::postgres::connection::PgServer;
use crate::connector::postgres::pgoutput::Lsn;
use crate::connector::postgres::testing::{Relay, TestDatabase, server_settings};
use crate::connector::postgres::wal_stream::PgWalStream;
use crate::error::{Error, ErrorKind};

fn new_slot(name: &str, temporary: bool) -> NewSlot<'_> {
    NewSlot { name, publication: "p", temporary, failover: false, wait_max: Duration::from_secs(60) }
}

async fn state(database: &TestDatabase, name: &str) -> Option<SlotState> {
    inspect_slot(&database.server, &database.client, name).await.unwrap()
}

fn refused(result: crate::error::Result<()>) -> Error {
    result.expect_err("it is refused")
}

#[tokio::test]
async fn a_slot_is_made_found_and_dropped() {
    TestDatabase::with(async |database| {
        let name = &database.name;
        assert_eq!(state(database, name).await, None);
        let held = create_slot(&database.server, &new_slot(name, false)).await.unwrap();
        let found = state(database, name).await.unwrap();
        assert_eq!(found.plugin.as_deref(), Some("pgoutput"));
        assert_eq!((found.temporary, found.active_pid), (false, None));
        assert_eq!(found.confirmed_flush, Some(held.consistent_point()));
        assert_eq!(found.wal_status, Some(WalStatus::Reserved));
        assert!(found.restart_lsn.is_some() && found.retained_bytes.is_some());
        found.check_usable(&database.server).unwrap();
        drop(held);
        drop_slot(&database.server, &database.client, name).await.unwrap();
        drop_slot(&database.server, &database.client, name).await.unwrap();
        assert_eq!(state(database, name).await, None);
    })
    .await;
}

#[tokio::test]
async fn a_slot_that_somebody_else_has_just_made_is_refused_with_what_to_do() {
    TestDatabase::with(async |database| {
        let name = &database.name;
        let held = create_slot(&database.server, &new_slot(name, false)).await.unwrap();
        let error = create_slot(&database.server, &new_slot(name, false)).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Rejected);
        assert!(error.message().ends_with("already exists"), "{error}");
        assert!(error.hint_text().unwrap().contains("give each job its own 'slot.name'"), "{error}");
        drop(held);
    })
    .await;
}

#[tokio::test]
async fn a_name_that_begins_with_a_digit_is_taken() {
    TestDatabase::with(async |database| {
        let name = format!("1_{}", database.name);
        database.run("CREATE PUBLICATION p").await;
        let held = create_slot(&database.server, &new_slot(&name, false)).await.unwrap();
        held.start().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_temporary_slot_goes_with_its_session() {
    TestDatabase::with(async |database| {
        let name = &database.name;
        database.run("CREATE PUBLICATION p").await;
        let held = create_slot(&database.server, &new_slot(name, true)).await.unwrap();
        assert!(state(database, name).await.unwrap().temporary);
        drop(held.start().await.unwrap());
        database
            .wait_for(&format!("SELECT count(*) FROM pg_replication_slots WHERE slot_name = '{name}'"), "0")
            .await;
        // Also without having read it.
        drop(create_slot(&database.server, &new_slot(name, true)).await.unwrap());
        database
            .wait_for(&format!("SELECT count(*) FROM pg_replication_slots WHERE slot_name = '{name}'"), "0")
            .await;
    })
    .await;
}

#[tokio::test]
async fn who_holds_up_a_slot_is_named_and_nothing_is_left_behind() {
    TestDatabase::with(async |database| {
        let name = &database.name;
        let writer = database.server.connect().await.unwrap();
        writer.batch_execute("BEGIN; SELECT pg_current_xact_id()").await.unwrap();
        let pid: i32 = writer.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        let slot = NewSlot { wait_max: Duration::from_millis(300), ..new_slot(name, false) };
        let error = create_slot(&database.server, &slot).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(
            error.message().contains(&format!("making replication slot {name}: waited 0 s for the transaction of process {pid} to end")),
            "{error}"
        );
        assert!(error.hint_text().unwrap().ends_with(&format!("SELECT pg_terminate_backend({pid});")));
        let slots = format!("SELECT count(*) FROM pg_replication_slots WHERE slot_name = '{name}'");
        // Neither when the transaction goes on, nor when it ends.
        database.wait_for("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'walsender'", "0").await;
        writer.batch_execute("COMMIT").await.unwrap();
        assert_eq!(database.value(&slots).await, "0");

        // A caller that goes away while it waits.
        writer.batch_execute("BEGIN; SELECT pg_current_xact_id()").await.unwrap();
        let slot = new_slot(name, false);
        let making = create_slot(&database.server, &slot);
        assert!(tokio::time::timeout(Duration::from_millis(300), making).await.is_err());
        database.wait_for("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'walsender'", "0").await;
        writer.batch_execute("COMMIT").await.unwrap();
        assert_eq!(database.value(&slots).await, "0");
    })
    .await;
}

#[tokio::test]
async fn a_slot_is_not_waited_for_on_a_connection_that_passes_nothing_on() {
    TestDatabase::with(async |database| {
        let relay = Relay::start(database.server.settings().port).await;
        let server = relay.server(database);
        let writer = database.server.connect().await.unwrap();
        writer.batch_execute("BEGIN; SELECT pg_current_xact_id()").await.unwrap();
        let slot = NewSlot { wait_max: Duration::from_secs(600), ..new_slot(&database.name, false) };
        let stalling = async {
            let waiting = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CREATE_REPLICATION_SLOT%' AND datname = current_database()";
            database.wait_for(waiting, "1").await;
            relay.stall();
        };
        let (made, ()) = tokio::join!(create_slot(&server, &slot), stalling);
        let error = made.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().ends_with("no answer in 1 s"), "{error}");
        writer.batch_execute("ROLLBACK").await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_slot_that_is_read_is_active_until_its_reader_goes() {
    TestDatabase::with(async |database| {
        let name = &database.name;
        database.run("CREATE PUBLICATION p").await;
        let stream =
            create_slot(&database.server, &new_slot(name, false)).await.unwrap().start().await.unwrap();
        let found = state(database, name).await.unwrap();
        let pid = found.active_pid.unwrap();
        let error = refused(found.check_usable(&database.server));
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert_eq!(
            error.message(),
            format!("Postgres '{}': replication slot {name} is active for PID {pid}", database.server.name())
        );
        let second = PgWalStream::start(&database.server, name, "p", Lsn(0)).await.err().unwrap();
        assert_eq!(second.kind(), ErrorKind::Unavailable);
        assert!(second.message().contains("is active for PID"), "{second}");
        drop(stream);
        let busy = format!("SELECT count(*) FROM pg_replication_slots WHERE slot_name = '{name}' AND active");
        database.wait_for(&busy, "0").await;
        PgWalStream::start(&database.server, name, "p", Lsn(0)).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_slot_of_another_plugin_kind_or_database_is_refused() {
    TestDatabase::with(async |database| {
        let name = &database.name;
        database
            .run(&format!(
                "SELECT pg_create_logical_replication_slot('{name}', 'test_decoding'); SELECT pg_create_physical_replication_slot('{name}_p')"
            ))
            .await;
        let server = &database.server;
        let plugin = refused(state(database, name).await.unwrap().check_usable(server));
        assert_eq!(
            plugin.message(),
            format!("Postgres '{}': replication slot {name} was made for plugin 'test_decoding', and only pgoutput is read", server.name())
        );
        assert!(plugin.hint_text().unwrap().ends_with(&format!("SELECT pg_drop_replication_slot('{name}');")));
        let kind = refused(state(database, &format!("{name}_p")).await.unwrap().check_usable(server));
        assert!(kind.message().ends_with("is a physical one"), "{kind}");
        database.run(&format!("SELECT pg_drop_replication_slot('{name}_p'); SELECT pg_drop_replication_slot('{name}'); SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')")).await;
        let elsewhere = PgServer::new(
            database.settings(|settings| settings.database = "postgres".to_owned()),
        );
        let client = elsewhere.connect().await.unwrap();
        let found = inspect_slot(&elsewhere, &client, name).await.unwrap().unwrap();
        let error = refused(found.check_usable(&elsewhere));
        assert!(error.message().ends_with(&format!("belongs to database '{name}'")), "{error}");
        assert_eq!(error.kind(), ErrorKind::Rejected);
    })
    .await;
}

#[tokio::test]
async fn a_slot_that_went_on_without_the_job_is_refused() {
    TestDatabase::with(async |database| {
        let name = &database.name;
        let held = create_slot(&database.server, &new_slot(name, false)).await.unwrap();
        let point = held.consistent_point();
        drop(held);
        database.run("CREATE TABLE t (a int); INSERT INTO t VALUES (1)").await;
        database.run(&format!("SELECT pg_replication_slot_advance('{name}', pg_current_wal_lsn())")).await;
        let found = state(database, name).await.unwrap();
        let confirmed = found.confirmed_flush.unwrap();
        found.check_not_ahead_of(&database.server, confirmed).unwrap();
        let error = refused(found.check_not_ahead_of(&database.server, point));
        assert_eq!(error.kind(), ErrorKind::Rejected);
        assert_eq!(
            error.message(),
            format!(
                "Postgres '{}': replication slot {name} has gone on to {confirmed}, behind the job's position {point}: the changes between them are not sent again",
                database.server.name()
            )
        );
        for way in ["SET 'lakehead.job.resume' = 'resnapshot'", "SET 'lakehead.job.resume' = 'skip'"] {
            assert!(error.hint_text().unwrap().contains(way));
            assert!(SlotState::missing(&database.server, name).hint_text().unwrap().contains(way));
        }
    })
    .await;
}

#[test]
fn a_slot_whose_log_is_gone_is_lost_and_both_ways_on_are_told() {
    let server = PgServer::new(server_settings());
    let lost = SlotState {
        name: "s".to_owned(),
        plugin: Some("pgoutput".to_owned()),
        database: Some("d".to_owned()),
        temporary: false,
        active_pid: None,
        restart_lsn: None,
        confirmed_flush: Some(Lsn(0x0150_1190)),
        wal_status: Some(WalStatus::Lost),
        safe_wal_size: None,
        retained_bytes: None,
    };
    let error = refused(lost.check_usable(&server));
    assert_eq!(error.kind(), ErrorKind::Rejected);
    assert_eq!(
        error.message(),
        "Postgres 'h:5432/d': replication slot s is lost: the server has removed the log that it needs, so changes since 0/1501190 are gone"
    );
    let hint = error.hint_text().unwrap();
    for part in ["SELECT pg_drop_replication_slot('s');", "max_slot_wal_keep_size", "'resnapshot'", "'skip'"]
    {
        assert!(hint.contains(part), "{hint}");
    }
}
