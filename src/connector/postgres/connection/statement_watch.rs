//! Watches over statements that may take any time, such as the copy of a table. A peer that has vanished is the network's to notice; but
//! what stands between may keep a connection that passes nothing on. So when nothing has come for a while, the server is asked over
//! another connection what the session does: one that works is waited for as long as it takes.

use std::pin::pin;
use std::time::Duration;

use futures::FutureExt;
use tokio::time::timeout;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::PgServer;
use crate::error::{Error, Result};

/// After how much silence the server is asked, and asked again. Tests do not wait that long.
const SILENCE: Duration = if cfg!(test) { Duration::from_millis(200) } else { Duration::from_secs(20) };

/// How often in a row a session may be seen that has nothing to do, or the server not be reached, before the connection is given up: what
/// was sent last may still be on its way.
const IDLE_MAX: u32 = 2;

/// How often in a row one may be seen that waits for us to take what it sends. A single row may be so large that it takes minutes.
const SENDING_MAX: u32 = 9;

/// A session whose statements are watched over.
#[derive(Debug, Clone)]
pub(in crate::connector::postgres) struct StatementWatch {
    server: PgServer,
    /// The server's process.
    pid: i32,
}

/// What a session does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    /// It runs a statement, or the server does not tell.
    Working,
    /// It waits until the network takes what it has to send.
    Sending,
    /// It waits for a statement, or has gone.
    Idle,
}

impl StatementWatch {
    /// Watches over a session.
    ///
    /// # Errors
    /// The server cannot be asked.
    pub(in crate::connector::postgres) async fn of(
        server: &PgServer,
        client: &Client,
    ) -> Result<StatementWatch> {
        const DOING: &str = "asking for the process of a session";
        let row = server.answer(DOING, client.query_typed_one("SELECT pg_backend_pid()", &[])).await?;
        let pid = row.try_get(0).map_err(|error| server.sql_error(DOING, error))?;
        Ok(StatementWatch { server: server.clone(), pid })
    }

    /// Waits for what a statement of the session brings next.
    ///
    /// # Errors
    /// It does not come any more (unavailable).
    pub(in crate::connector::postgres) async fn wait<T>(
        &self,
        doing: &str,
        next: impl Future<Output = T>,
    ) -> Result<T> {
        let mut next = pin!(next);
        // Mostly it is there already, and a time-out for each row would cost more than the row.
        if let Some(came) = next.as_mut().now_or_never() {
            return Ok(came);
        }
        let mut idle = 0;
        let mut sending = 0;
        loop {
            if let Ok(came) = timeout(SILENCE, next.as_mut()).await {
                return Ok(came);
            }
            let seen = tokio::select! {
                biased;
                came = next.as_mut() => return Ok(came),
                seen = self.look() => seen,
            };
            (idle, sending) = match seen {
                Ok(Activity::Working) => (0, 0),
                Ok(Activity::Sending) => (0, sending + 1),
                Ok(Activity::Idle) => (idle + 1, 0),
                Err(error) if idle + 1 >= IDLE_MAX => return Err(error),
                Err(_) => (idle + 1, 0),
            };
            if idle >= IDLE_MAX || sending >= SENDING_MAX {
                return Err(Error::unavailable(format!(
                    "Postgres '{}': {doing}: nothing comes through the connection any more",
                    self.server.name()
                )));
            }
        }
    }

    /// Asks the server what the session does.
    async fn look(&self) -> Result<Activity> {
        const DOING: &str = "asking what a session does";
        let client = match self.server.connect().await {
            Ok(client) => client,
            // It is there, and has no room for a question.
            Err(error) if is_said_by_server(&error) => return Ok(Activity::Working),
            Err(error) => return Err(error),
        };
        let query = "SELECT state, wait_event FROM pg_stat_activity WHERE pid = $1";
        let row =
            self.server.answer(DOING, client.query_typed_opt(query, &[(&self.pid, Type::INT4)])).await?;
        let Some(row) = row else { return Ok(Activity::Idle) };
        let failed = |error| self.server.sql_error(DOING, error);
        let state: Option<&str> = row.try_get(0).map_err(failed)?;
        let waits_for: Option<&str> = row.try_get(1).map_err(failed)?;
        Ok(match (state, waits_for) {
            (Some("active"), Some("ClientWrite")) => Activity::Sending,
            (Some(state), _) if state.starts_with("idle") => Activity::Idle,
            _ => Activity::Working,
        })
    }
}

/// Returns whether the server itself has refused, and so has answered.
fn is_said_by_server(error: &Error) -> bool {
    let cause = std::error::Error::source(error);
    let cause = cause.and_then(|cause| cause.downcast_ref::<tokio_postgres::Error>());
    cause.is_some_and(|cause| cause.as_db_error().is_some())
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;
    use crate::connector::postgres::testing::{Relay, TestDatabase};
    use crate::error::ErrorKind;

    #[tokio::test]
    async fn a_statement_that_runs_long_is_waited_for() {
        TestDatabase::with(async |database| {
            let client = database.server.connect().await.unwrap();
            let watch = StatementWatch::of(&database.server, &client).await.unwrap();
            let statement = format!("SELECT pg_sleep({})", (SILENCE * 5).as_secs_f64());
            watch.wait("sleeping", client.batch_execute(&statement)).await.unwrap().unwrap();
        })
        .await;
    }

    #[tokio::test]
    async fn an_answer_that_has_got_lost_is_noticed() {
        TestDatabase::with(async |database| {
            let relay = Relay::start(database.server.settings().port).await;
            let server = relay.server(database);
            let client = server.connect().await.unwrap();
            let watch = StatementWatch::of(&server, &client).await.unwrap();
            // Other connections are as before.
            relay.stall_open_ones();
            let error = watch.wait("asking", client.batch_execute("SELECT 1")).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            assert!(
                error.message().ends_with("asking: nothing comes through the connection any more"),
                "{error}"
            );
            // None is made any more.
            relay.stall();
            let error = watch.wait("asking", client.batch_execute("SELECT 1")).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            assert!(error.message().contains("connecting took longer than"), "{error}");
        })
        .await;
    }

    #[tokio::test]
    async fn a_copy_whose_rows_do_not_come_any_more_is_noticed() {
        TestDatabase::with(async |database| {
            let relay = Relay::start(database.server.settings().port).await;
            let server = relay.server(database);
            let client = server.connect().await.unwrap();
            let watch = StatementWatch::of(&server, &client).await.unwrap();
            let query = "COPY (SELECT repeat('x', 1000) FROM generate_series(1, 100000)) TO STDOUT";
            let mut rows = pin!(client.copy_out(query).await.unwrap());
            watch.wait("copying", rows.next()).await.unwrap().unwrap().unwrap();
            relay.stall_open_ones();
            let error = loop {
                match watch.wait("copying", rows.next()).await {
                    Ok(row) => assert!(row.is_some(), "it has come to its end"),
                    Err(error) => break error,
                }
            };
            assert_eq!(error.kind(), ErrorKind::Unavailable);
        })
        .await;
    }
}
