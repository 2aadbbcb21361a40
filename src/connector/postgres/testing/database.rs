//! A database for a test on the server that `LAKEHEAD_POSTGRES` names (`scripts/postgres.sh`), with roles of its own.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::Duration;

use futures::FutureExt;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, NoTls};
use uuid::Uuid;

use crate::connector::postgres::connection::PgServer;
use crate::connector::postgres::settings::{Password, ServerSettings};
use crate::connector::postgres_tls::{TlsMode, TlsSettings};

/// An empty database. Its name is that of slots and roles of the test, too.
pub(in crate::connector::postgres) struct TestDatabase {
    pub(in crate::connector::postgres) name: String,
    pub(in crate::connector::postgres) server: PgServer,
    /// A connection of the superuser.
    pub(in crate::connector::postgres) client: Client,
    config: Config,
}

impl TestDatabase {
    /// Runs a test with a database, if there is a server.
    pub(in crate::connector::postgres) async fn with(test: impl AsyncFnOnce(&TestDatabase)) {
        TestDatabase::with_options("", test).await;
    }

    /// Runs a test with a database that is made with options.
    pub(in crate::connector::postgres) async fn with_options(
        options: &str,
        test: impl AsyncFnOnce(&TestDatabase),
    ) {
        let Ok(url) = std::env::var("LAKEHEAD_POSTGRES") else {
            eprintln!("skipped: LAKEHEAD_POSTGRES is not set");
            return;
        };
        let name = format!("test_{}", &Uuid::new_v4().simple().to_string()[..16]);
        let mut config: Config = url.parse().unwrap();
        config.ssl_mode(tokio_postgres::config::SslMode::Disable);
        let admin = connect(&config).await;
        admin.batch_execute(&format!("CREATE DATABASE {name} {options}")).await.unwrap();
        let Some(Host::Tcp(host)) = config.get_hosts().first() else { panic!("{url} has no host") };
        let settings = ServerSettings {
            host: host.clone(),
            port: config.get_ports()[0],
            user: config.get_user().unwrap().to_owned(),
            password: Password::new(String::from_utf8(config.get_password().unwrap().to_vec()).unwrap()),
            database: name.clone(),
            tls: TlsSettings { mode: TlsMode::Disable, root_certificate: None },
            connect_timeout: Duration::from_secs(20),
            connect_retries: 0,
        };
        config.dbname(&name);
        let client = connect(&config).await;
        let database = TestDatabase { name: name.clone(), server: PgServer::new(settings), client, config };
        let done = AssertUnwindSafe(test(&database)).catch_unwind().await;
        drop(database);
        // Even if it fails: its slots would keep the server's log.
        remove(&admin, &name).await;
        if let Err(panic) = done {
            resume_unwind(panic);
        }
    }

    /// Returns another connection of the superuser, as any other program has one.
    pub(in crate::connector::postgres) async fn connect(&self) -> Client {
        connect(&self.config).await
    }

    pub(in crate::connector::postgres) async fn run(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// Returns the first column of the first row as text; empty if there is none.
    pub(in crate::connector::postgres) async fn value(&self, query: &str) -> String {
        let rows = self.client.query(&format!("SELECT ({query})::text"), &[]).await;
        let rows = rows.unwrap_or_else(|error| panic!("{query}: {error:?}"));
        rows[0].get::<_, Option<String>>(0).unwrap_or_default()
    }

    /// Returns the server's version as a number: 15.3 is 150003.
    pub(in crate::connector::postgres) async fn version(&self) -> u32 {
        self.value("current_setting('server_version_num')").await.parse().unwrap()
    }

    /// Waits until a query has an answer.
    pub(in crate::connector::postgres) async fn wait_for(&self, query: &str, expected: &str) {
        for _ in 0..1000 {
            if self.value(query).await == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{query} is not {expected} but {}", self.value(query).await);
    }

    /// Returns the server's settings with some of them changed.
    pub(in crate::connector::postgres) fn settings(
        &self,
        change: impl FnOnce(&mut ServerSettings),
    ) -> ServerSettings {
        let mut settings = self.server.settings().clone();
        change(&mut settings);
        settings
    }

    /// Makes a role that may log in, and returns the server as it sees it.
    pub(in crate::connector::postgres) async fn role(&self, attributes: &str, password: &str) -> PgServer {
        let role = format!("{}_{}", self.name, &Uuid::new_v4().simple().to_string()[..8]);
        self.run(&format!(
            "CREATE ROLE {role} LOGIN {attributes} PASSWORD '{}'",
            password.replace('\'', "''")
        ))
        .await;
        PgServer::new(self.settings(|settings| {
            settings.user = role;
            settings.password = Password::new(password);
        }))
    }
}

/// Removes a database with its slots and the roles of its test.
async fn remove(admin: &Client, name: &str) {
    let slots = format!("pg_replication_slots WHERE database = '{name}'");
    let statements = [
        format!("SELECT pg_terminate_backend(active_pid) FROM {slots} AND active"),
        format!("SELECT pg_drop_replication_slot(slot_name) FROM {slots} AND NOT active"),
        format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"),
    ];
    // A slot is free only when its reader has noticed that it is ended.
    while {
        let mut failed = false;
        for statement in &statements {
            failed |= admin.batch_execute(statement).await.is_err();
        }
        failed
    } {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let roles = format!("SELECT quote_ident(rolname) FROM pg_roles WHERE rolname LIKE '{name}%'");
    for role in admin.query(&roles, &[]).await.unwrap() {
        let role: String = role.get(0);
        admin.batch_execute(&format!("DROP ROLE {role}")).await.unwrap();
    }
}

async fn connect(config: &Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
