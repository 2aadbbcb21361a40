//! The stream of a real server: what comes, what is acknowledged, and what happens while nobody takes anything.

use super::*;
use crate::connector::postgres::pgoutput::{Message, Parser};
use crate::connector::postgres::slot::{NewSlot, create_slot, inspect_slot};
use crate::connector::postgres::testing::TestDatabase;
use crate::error::ErrorKind;

/// Makes a publication of everything and a slot, and starts to read it.
async fn started(database: &TestDatabase) -> PgWalStream {
    database.run("CREATE PUBLICATION \"P'1\" FOR ALL TABLES").await;
    let slot = NewSlot {
        name: &database.name,
        publication: "P'1",
        temporary: false,
        failover: false,
        wait_max: Duration::from_secs(60),
    };
    create_slot(&database.server, &slot).await.unwrap().start().await.unwrap()
}

/// Returns what comes up to the end of a transaction, word of the server left out.
async fn transaction(stream: &mut PgWalStream) -> Vec<WalMessage> {
    let mut messages = Vec::new();
    loop {
        let message = stream.next().await.unwrap();
        if matches!(message, WalMessage::KeepAlive { .. }) {
            continue;
        }
        let is_last = matches!(message, WalMessage::Commit { .. });
        messages.push(message);
        if is_last {
            return messages;
        }
    }
}

fn end_of(transaction: &[WalMessage]) -> Lsn {
    match transaction.last() {
        Some(WalMessage::Commit { end_lsn, .. }) => *end_lsn,
        other => panic!("{other:?}"),
    }
}

/// Counts the rows that were inserted.
fn inserts(messages: &[WalMessage]) -> usize {
    let mut parser = Parser::default();
    let is_insert = |message: &&WalMessage| match message {
        WalMessage::Data(bytes) => matches!(parser.parse(bytes).unwrap(), Message::Insert { .. }),
        _ => false,
    };
    messages.iter().filter(is_insert).count()
}

#[tokio::test]
async fn transactions_come_whole_in_the_order_of_their_commits() {
    TestDatabase::with(async |database| {
        database.run("CREATE TABLE t (a int)").await;
        let mut stream = started(database).await;
        let late = database.server.connect().await.unwrap();
        late.batch_execute("BEGIN; INSERT INTO public.t VALUES (1)").await.unwrap();
        let late_xid: String = late.query_one("SELECT pg_current_xact_id()::text", &[]).await.unwrap().get(0);
        database.run("INSERT INTO t VALUES (2), (3)").await;
        database.run("BEGIN; INSERT INTO t VALUES (9); ROLLBACK").await;
        late.batch_execute("COMMIT").await.unwrap();
        let first = transaction(&mut stream).await;
        let second = transaction(&mut stream).await;
        assert_eq!([inserts(&first), inserts(&second)], [2, 1]);
        let WalMessage::Begin { final_lsn, commit_time_us, xid } = second[0] else { panic!("{second:?}") };
        assert_eq!(xid.to_string(), late_xid);
        let Some(WalMessage::Commit { lsn, end_lsn }) = second.last() else { panic!("{second:?}") };
        assert!(final_lsn == *lsn && lsn < end_lsn && end_of(&first) <= *lsn);
        let now = database.value("SELECT (extract(epoch FROM now()) * 1000000)::int8").await;
        let age = now.parse::<i64>().unwrap() - commit_time_us;
        assert!((0..60_000_000).contains(&age), "{age}");
    })
    .await;
}

#[tokio::test]
async fn messages_of_the_log_come_inside_and_outside_of_transactions() {
    TestDatabase::with(async |database| {
        let mut stream = started(database).await;
        database
            .run("SELECT pg_logical_emit_message(false, 'x', 'a'); SELECT pg_logical_emit_message(true, 'x', 'b')")
            .await;
        let messages = transaction(&mut stream).await;
        let places: Vec<bool> = messages
            .iter()
            .filter_map(|message| match message {
                WalMessage::Logical { is_transactional, .. } => Some(*is_transactional),
                _ => None,
            })
            .collect();
        assert_eq!(places, [false, true]);
        assert!(matches!(messages[0], WalMessage::Logical { .. }) && matches!(messages[1], WalMessage::Begin { .. }));
    })
    .await;
}

#[tokio::test]
async fn a_stream_goes_on_behind_what_it_is_told_and_only_that_is_forgotten() {
    TestDatabase::with(async |database| {
        database.run("CREATE TABLE t (a int)").await;
        let mut stream = started(database).await;
        let made = inspect_slot(&database.server, &database.client, &database.name).await.unwrap().unwrap();
        for rows in ["(1)", "(1), (2)", "(1), (2), (3)"] {
            database.run(&format!("INSERT INTO t VALUES {rows}")).await;
        }
        let ends = [end_of(&transaction(&mut stream).await), end_of(&transaction(&mut stream).await)];
        drop(stream);
        let busy = format!(
            "SELECT count(*) FROM pg_replication_slots WHERE slot_name = '{}' AND active",
            database.name
        );
        database.wait_for(&busy, "0").await;
        let confirmed = format!(
            "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = '{}'",
            database.name
        );
        assert_eq!(database.value(&confirmed).await, made.confirmed_flush.unwrap().to_string());

        // From a position of ours, although the server has been told of none.
        let mut stream = PgWalStream::start(&database.server, &database.name, "P'1", ends[0]).await.unwrap();
        assert_eq!(inserts(&transaction(&mut stream).await), 2);
        assert_eq!(database.value(&confirmed).await, made.confirmed_flush.unwrap().to_string());
        stream.ack(ends[0]);
        database.wait_for(&confirmed, &ends[0].to_string()).await;
        // Going back has no effect.
        stream.ack(ends[1]);
        stream.ack(ends[0]);
        database.wait_for(&confirmed, &ends[1].to_string()).await;
    })
    .await;
}

#[tokio::test]
async fn an_idle_database_sends_word_by_which_its_slot_moves() {
    TestDatabase::with(async |database| {
        let mut stream = started(database).await;
        let start = match stream.next().await.unwrap() {
            WalMessage::KeepAlive { wal_end } => wal_end,
            other => panic!("{other:?}"),
        };
        // What other databases write; here, what is not published.
        database.run("CREATE UNLOGGED TABLE u (a int); SELECT pg_switch_wal()").await;
        let wal_end = loop {
            match stream.next().await.unwrap() {
                WalMessage::KeepAlive { wal_end } if wal_end > start => break wal_end,
                _ => {}
            }
        };
        stream.ack(wal_end);
        let moved = format!(
            "SELECT confirmed_flush_lsn >= '{wal_end}' FROM pg_replication_slots WHERE slot_name = '{}'",
            database.name
        );
        database.wait_for(&moved, "true").await;
    })
    .await;
}

#[tokio::test]
async fn a_reader_that_takes_nothing_is_not_cut_off() {
    TestDatabase::with(async |database| {
        database.run("CREATE TABLE t (a int, b text)").await;
        // Of the role, since that of the server is everybody's.
        let role = database.role("REPLICATION SUPERUSER", "x").await;
        database.run(&format!("ALTER ROLE {} SET wal_sender_timeout = '1s'", role.settings().user)).await;
        database.run("CREATE PUBLICATION p FOR ALL TABLES").await;
        let slot = NewSlot {
            name: &database.name,
            publication: "p",
            temporary: false,
            failover: false,
            wait_max: Duration::from_secs(60),
        };
        let mut stream = create_slot(&role, &slot).await.unwrap().start().await.unwrap();
        assert_eq!(stream.silence_max, Duration::from_millis(1500));
        database.run("INSERT INTO t SELECT i, repeat('x', 2000) FROM generate_series(1, 20000) i").await;
        tokio::time::sleep(Duration::from_millis(2500)).await;
        assert_eq!(inserts(&transaction(&mut stream).await), 20_000);
        // Nor is one to whom nobody sends anything.
        let silence = tokio::time::timeout(Duration::from_millis(2500), async {
            loop {
                assert!(matches!(stream.next().await.unwrap(), WalMessage::KeepAlive { .. }));
            }
        });
        assert!(silence.await.is_err());
    })
    .await;
}

#[tokio::test]
async fn a_server_that_falls_silent_is_given_up() {
    TestDatabase::with(async |database| {
        let mut stream = started(database).await;
        // As if its time-out were this short: it has nothing to say.
        stream.silence_max = Duration::from_millis(100);
        let error = loop {
            if let Err(error) = stream.next().await {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().ends_with("the server has been silent for 0.1 s"), "{error}");
        // The time that nobody waits does not count.
        assert_eq!(stream.waiting_since, None);
    })
    .await;
}

#[tokio::test]
async fn a_call_that_is_dropped_loses_nothing() {
    TestDatabase::with(async |database| {
        database.run("CREATE TABLE t (a int)").await;
        let mut stream = started(database).await;
        let mut messages = Vec::new();
        let writing = database.run("INSERT INTO t SELECT generate_series(1, 5000)");
        let reading = async {
            while !messages.iter().any(|message| matches!(message, WalMessage::Commit { .. })) {
                tokio::select! {
                    biased;
                    message = stream.next() => messages.push(message.unwrap()),
                    () = tokio::task::yield_now() => {}
                }
            }
        };
        tokio::join!(writing, reading);
        assert_eq!(inserts(&messages), 5000);
    })
    .await;
}

#[tokio::test]
async fn an_end_that_a_dropped_call_has_met_may_pass_by_itself() {
    TestDatabase::with(async |database| {
        let mut stream = started(database).await;
        // What the client says when the call that would have told the reason was dropped.
        let told = PgWireError::Internal("replication worker already joined".to_owned());
        let error = stream.taken(Some(Err(told))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.message().ends_with("the server has ended the stream"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn the_end_of_a_stream_tells_why() {
    TestDatabase::with(async |database| {
        let mut stream = started(database).await;
        let pid =
            format!("SELECT active_pid FROM pg_replication_slots WHERE slot_name = '{}'", database.name);
        let pid = database.value(&pid).await;
        database.run(&format!("SELECT pg_terminate_backend({pid})")).await;
        let error = loop {
            if let Err(error) = stream.next().await {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(
            error.message().contains(&format!("reading replication slot {}: ", database.name)),
            "{error}"
        );
        // A slot that is not there, and a publication that is not, are not worth a second attempt.
        drop(stream);
        let missing = PgWalStream::start(&database.server, "no_such_slot", "p", Lsn(0)).await.err().unwrap();
        assert_eq!(missing.kind(), ErrorKind::Rejected);
        assert!(missing.message().ends_with("replication slot \"no_such_slot\" does not exist"), "{missing}");
        if database.version().await >= 180_000 {
            // It goes on without a word.
            return;
        }
        database.run("CREATE TABLE t (a int); INSERT INTO t VALUES (1)").await;
        let mut stream = PgWalStream::start(&database.server, &database.name, "Nope", Lsn(0)).await.unwrap();
        let error = loop {
            if let Err(error) = stream.next().await {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::Rejected);
        assert!(error.message().contains("publication \"Nope\" does not exist"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn few_large_messages_wait_for_whoever_takes_them() {
    TestDatabase::with(async |database| {
        database.run("CREATE TABLE t (a text); ALTER TABLE t ALTER a SET STORAGE EXTERNAL").await;
        let mut stream = started(database).await;
        // Each is a transaction, of three messages.
        database.run("DO $$ BEGIN FOR i IN 1..250 LOOP INSERT INTO t VALUES (repeat('x', 200000)); COMMIT; END LOOP; END $$").await;
        let sender = format!(
            "SELECT wait_event FROM pg_stat_activity WHERE pid = (SELECT active_pid FROM pg_replication_slots WHERE slot_name = '{}')",
            database.name
        );
        // It cannot send any more, although it has not sent all: sockets hold some, and few are read ahead.
        database.wait_for(&sender, "WalSenderWriteData").await;
        let mut count = 0;
        while count < 250 {
            count += inserts(&transaction(&mut stream).await);
        }
    })
    .await;
}
