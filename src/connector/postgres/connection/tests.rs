//! Connections to a real server: who is let in, what is encrypted, what sessions agree on, and what goes wrong.

use std::path::PathBuf;

use super::*;
use crate::connector::postgres::pgoutput::Lsn;
use crate::connector::postgres::settings::{Password, ServerSettings};
use crate::connector::postgres::testing::{Relay, TestDatabase, server_settings};
use crate::connector::postgres_tls::TlsMode;
use crate::error::{Error, ErrorKind};

async fn session(server: &PgServer) -> crate::error::Result<ReplicationSession> {
    ReplicationSession::open(server, "s", "p", Lsn(0)).await
}

/// Returns what both kinds of connection say; they say the same.
async fn refusals(server: &PgServer) -> [Error; 2] {
    let Err(sql) = server.connect().await else { panic!("a session for SQL") };
    let stream = session(server).await.err().expect("no session for changes");
    [sql, stream]
}

#[tokio::test]
async fn any_password_and_any_name_lets_in() {
    TestDatabase::with(async |database| {
        let password = "p@ss:/?#%é' \\\"$";
        let role = database.role("REPLICATION", password).await;
        let client = role.connect().await.unwrap();
        let user: String = client.query_one("SELECT current_user::text", &[]).await.unwrap().get(0);
        assert_eq!(user, role.settings().user);
        let identity = session(&role).await.unwrap().identity().clone();
        let expected = database.value("SELECT system_identifier FROM pg_control_system()").await;
        assert_eq!((identity.system_id, identity.timeline), (expected, 1));

        let [sql, stream] = refusals(&PgServer::new(ServerSettings {
            password: Password::new("wrong: S3NT"),
            ..role.settings().clone()
        }))
        .await;
        for error in [sql, stream] {
            assert_eq!(error.kind(), ErrorKind::Rejected);
            assert_eq!(
                error.message(),
                format!(
                    "Postgres '{}': connecting: password authentication failed for user \"{}\"",
                    role.name(),
                    role.settings().user
                )
            );
            assert!(error.hint_text().unwrap().contains("'password'"));
            let all = format!("{error:?} {:?}", role.settings());
            assert!(!all.contains("S3NT") && !all.contains("p@ss"), "{all}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_name_with_capitals_and_quotes_is_taken_as_it_is() {
    TestDatabase::with(async |database| {
        let role = format!("{}_Ü \"x\"", database.name);
        database
            .run(&format!("CREATE ROLE \"{}\" LOGIN REPLICATION PASSWORD 'x'", role.replace('"', "\"\"")))
            .await;
        let server = PgServer::new(database.settings(|settings| {
            settings.user = role;
            settings.password = Password::new("x");
        }));
        server.connect().await.unwrap();
        session(&server).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn who_may_not_connect_is_told_what_to_run() {
    TestDatabase::with(async |database| {
        let role = database.role("", "x").await;
        let [sql, stream] = [role.connect().await.err(), session(&role).await.err()];
        assert!(sql.is_none());
        let stream = stream.unwrap();
        assert_eq!(stream.kind(), ErrorKind::Rejected);
        let user = &role.settings().user;
        assert_eq!(
            stream.hint_text(),
            Some(format!("Run as a superuser: ALTER ROLE \"{user}\" REPLICATION;").as_str())
        );
        let name = &database.name;
        database
            .run(&format!("REVOKE CONNECT ON DATABASE {name} FROM PUBLIC; ALTER ROLE {user} REPLICATION"))
            .await;
        for error in refusals(&role).await {
            assert_eq!(
                (error.kind(), error.hint_text()),
                (
                    ErrorKind::Rejected,
                    Some(
                        format!("Run as its owner: GRANT CONNECT ON DATABASE \"{name}\" TO \"{user}\";")
                            .as_str()
                    )
                ),
                "{error}"
            );
        }
        let missing = PgServer::new(database.settings(|settings| settings.database = "no such".to_owned()));
        for error in refusals(&missing).await {
            assert_eq!(
                (error.kind(), error.hint_text()),
                (ErrorKind::Rejected, Some("Check 'database-name'."))
            );
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_not_there_may_come_back() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let settings = ServerSettings {
        host: "127.0.0.1".to_owned(),
        port,
        tls: crate::connector::postgres_tls::TlsSettings { mode: TlsMode::Prefer, root_certificate: None },
        connect_timeout: std::time::Duration::from_secs(5),
        ..server_settings()
    };
    for error in refusals(&PgServer::new(settings.clone())).await {
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(
            error.message().starts_with(&format!("Postgres '127.0.0.1:{port}/d': connecting: ")),
            "{error}"
        );
        assert!(error.hint_text().unwrap().contains("'hostname'"));
    }
    // One that never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let settings = ServerSettings {
        port: silent.local_addr().unwrap().port(),
        connect_timeout: std::time::Duration::from_millis(50),
        ..settings
    };
    for error in refusals(&PgServer::new(settings)).await {
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().ends_with("connecting took longer than 0.05 s"), "{error}");
    }
}

#[tokio::test]
async fn a_connection_is_encrypted_as_its_mode_says() {
    TestDatabase::with(async |database| {
        let Ok(authority) = std::env::var("LAKEHEAD_POSTGRES_CA") else { return };
        let server = |mode, root: Option<&str>, host: &str| {
            PgServer::new(database.settings(|settings| {
                settings.host = host.to_owned();
                settings.tls.mode = mode;
                settings.tls.root_certificate = root.map(PathBuf::from);
            }))
        };
        let known = Some(authority.as_str());
        // The certificate is made out for localhost.
        for (mode, root, host, encrypted) in [
            (TlsMode::Disable, None, "localhost", false),
            (TlsMode::Prefer, None, "127.0.0.1", true),
            (TlsMode::Require, None, "127.0.0.1", true),
            (TlsMode::VerifyCa, known, "127.0.0.1", true),
            (TlsMode::VerifyFull, known, "localhost", true),
        ] {
            let server = server(mode, root, host);
            let query = "SELECT ssl::text FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
            let client = server.connect().await.unwrap();
            let sql: String = client.query_one(query, &[]).await.unwrap().get(0);
            let rows = session(&server).await.unwrap().query("asking", query).await.unwrap();
            assert_eq!(
                [sql, text(&rows, 0).unwrap()],
                [encrypted.to_string(), encrypted.to_string()],
                "{mode:?}"
            );
        }
        let unknown = tempfile::NamedTempFile::new().unwrap();
        for (mode, root, host) in [
            // Signed by nobody that the system knows; another name.
            (TlsMode::VerifyCa, None, "localhost"),
            (TlsMode::VerifyFull, known, "127.0.0.1"),
        ] {
            for error in refusals(&server(mode, root, host)).await {
                assert_eq!(error.kind(), ErrorKind::Rejected, "{mode:?} {error}");
                assert!(error.message().to_lowercase().contains("certificate"), "{error}");
                assert!(error.hint_text().unwrap().contains("sslrootcert"), "{error}");
            }
        }
        for error in refusals(&server(TlsMode::VerifyFull, unknown.path().to_str(), "localhost")).await {
            assert!(error.message().to_lowercase().contains("certificate"), "{error}");
        }
    })
    .await;
}

#[tokio::test]
async fn sessions_write_values_alike_whatever_the_role_has_set() {
    TestDatabase::with(async |database| {
        let role = database.role("REPLICATION", "x").await;
        let user = &role.settings().user;
        for setting in [
            "datestyle = 'German'",
            "intervalstyle = 'sql_standard'",
            "timezone = 'Asia/Kathmandu'",
            "bytea_output = 'escape'",
            "extra_float_digits = -3",
            "search_path = 'nowhere'",
            "statement_timeout = '1ms'",
            "row_security = on",
        ] {
            database.run(&format!("ALTER ROLE {user} SET {setting}")).await;
        }
        let query = "SELECT concat_ws(' ', '2000-02-03'::date, interval '1 day 2 h', '2000-01-01 00:00Z'::timestamptz, '\\x01'::bytea, \
             0.1::float8 + 0.2::float8, current_setting('search_path'), current_setting('statement_timeout'), current_setting('row_security'))";
        let expected = "2000-02-03 P1DT2H 2000-01-01 00:00:00+00 \\x01 0.30000000000000004 pg_catalog 0 off";
        let client = role.connect().await.unwrap();
        let sql: String = client.query_one(query, &[]).await.unwrap().get(0);
        let rows = session(&role).await.unwrap().query("asking", query).await.unwrap();
        assert_eq!([sql.as_str(), text(&rows, 0).unwrap().as_str()], [expected, expected]);
    })
    .await;
}

#[tokio::test]
async fn a_question_that_nobody_answers_is_given_up() {
    TestDatabase::with(async |database| {
        let relay = Relay::start(database.server.settings().port).await;
        let server = relay.server(database);
        let client = server.connect().await.unwrap();
        let mut session = session(&server).await.unwrap();
        relay.stall();
        let error = server.answer("asking", client.query_one("SELECT 1", &[])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().ends_with("asking: no answer in 1 s"), "{error}");
        let error = session.query("asking", "SELECT 1").await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().ends_with("asking: no answer in 1 s"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn a_session_that_is_ended_by_the_server_is_unavailable() {
    TestDatabase::with(async |database| {
        let client = database.server.connect().await.unwrap();
        let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        let running = client.query("SELECT pg_sleep(60)", &[]);
        let ending = async {
            database
                .wait_for(&format!("SELECT state FROM pg_stat_activity WHERE pid = {pid}"), "active")
                .await;
            database.run(&format!("SELECT pg_terminate_backend({pid})")).await;
        };
        let (ended, ()) = tokio::join!(running, ending);
        let error = database.server.sql_error("sleeping", ended.unwrap_err());
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains(": sleeping: terminating connection"), "{error}");
        let error = client.query("SELECT 1", &[]).await.unwrap_err();
        assert_eq!(database.server.sql_error("asking", error).kind(), ErrorKind::Unavailable);

        let mut session = session(&database.server).await.unwrap();
        let pid = text(&session.query("asking", "SELECT pg_backend_pid()").await.unwrap(), 0).unwrap();
        database.run(&format!("SELECT pg_terminate_backend({pid})")).await;
        let error = session.query("asking", "SELECT 1").await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    })
    .await;
}

#[tokio::test]
async fn a_schema_that_may_not_be_used_is_told_with_its_grant() {
    TestDatabase::with(async |database| {
        database.run("CREATE SCHEMA \"My types\"; CREATE DOMAIN \"My types\".d AS int").await;
        let role = database.role("", "x").await;
        let client = role.connect().await.unwrap();
        let error = client.query("SELECT 1::\"My types\".d", &[]).await.unwrap_err();
        let error = role.sql_error("asking", error);
        let grant = format!("GRANT USAGE ON SCHEMA \"My types\" TO \"{}\";", role.settings().user);
        assert_eq!(error.hint_text(), Some(format!("Run as its owner: {grant}").as_str()));
        database.run(&grant).await;
        client.query("SELECT 1::\"My types\".d", &[]).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_does_not_come_in_time_is_unavailable() {
    TestDatabase::with(async |database| {
        let client = database.server.connect().await.unwrap();
        let asked = client.query("SELECT pg_sleep(60)", &[]);
        let limit = std::time::Duration::from_millis(50);
        let error = database.server.answer_within("asking", limit, asked).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().ends_with(": asking: no answer in 0.05 s"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn a_database_that_knows_no_encoding_sends_its_texts_as_they_are() {
    let encoding = "ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'";
    for (options, expected, encoding) in [("", "café", "UTF8"), (encoding, "caf\u{fffd}", "SQL_ASCII")] {
        TestDatabase::with_options(options, async |database| {
            let query = if encoding == "UTF8" { "SELECT E'caf\\u00e9'" } else { "SELECT E'caf\\xe9'" };
            let show = "SHOW client_encoding";
            let mut session = session(&database.server).await.unwrap();
            let sent = [session.query("asking", query).await, session.query("asking", show).await];
            assert_eq!(sent.map(|rows| text(&rows.unwrap(), 0).unwrap()), [expected, encoding]);
            let client = database.server.connect().await.unwrap();
            let shown: String = client.query_one(show, &[]).await.unwrap().get(0);
            assert_eq!(shown, encoding);
            let read = client.query_one(query, &[]).await.unwrap().try_get::<_, String>(0);
            let read = read.map_err(|error| database.server.sql_error("asking", error));
            match encoding {
                "UTF8" => assert_eq!(read.unwrap(), expected),
                // It came, and would come again.
                _ => assert_eq!(read.unwrap_err().kind(), ErrorKind::Rejected),
            }
        })
        .await;
    }
}
