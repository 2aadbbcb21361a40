//! The task that reads, again and again until there is no more: a connection that is lost is made anew, and reading goes on where it was.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{debug, info};

use super::backoff::Backoff;
use super::output::Output;
use super::position::ReaderPosition;
use super::preparation::prepare;
use super::read_plan::ReadPlan;
use super::snapshot_phase::read_snapshots;
use super::status::Status;
use super::stream_phase::StreamPhase;
use crate::connector::postgres::pgoutput::Lsn;
use crate::connector::postgres::snapshot::TableSnapshot;
use crate::error::{Error, ErrorKind, Result};
use crate::options::JobResume;

/// How long a job that has failed waits for its slot to be dropped, which somebody may still seem to read.
const DROP_WAIT: Duration = Duration::from_secs(10);

/// Reads the tables of a plan.
pub(super) struct Producer {
    pub(super) plan: Arc<ReadPlan>,
    /// Behind what has gone out.
    pub(super) position: ReaderPosition,
    pub(super) output: Output,
    /// What the server may forget.
    pub(super) released: watch::Receiver<Lsn>,
    pub(super) status: Arc<Status>,
    backoff: Backoff,
    past: Past,
    /// Whether the position was given up, because what follows it is lost and the job is to go on without.
    pub(super) has_given_up_position: bool,
    /// Whether changes that were made before the job was started are left out if they do not fit the declared tables.
    leaves_out_unfit: bool,
    /// Up to where these are.
    left_out_until: Option<Lsn>,
    /// Whether the slot was made by this reader, and does not go with its session.
    pub(super) has_made_slot: bool,
    /// Whether all transactions have been waited for that had begun before the tables' changes were streamed.
    pub(super) has_waited: bool,
    /// Since when the server cannot be reached.
    lost_since: Option<Instant>,
    /// What the user has been told already.
    told: BTreeSet<String>,
}

/// Why reading has ended.
enum ReadEnd {
    /// There is no more.
    All,
    /// A table is to be read from its beginning before reading goes on.
    Newcomer,
}

/// What says that reading is possible, so that a failure may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Past {
    /// Nothing yet.
    Nothing,
    /// The job goes on from a checkpoint, and nothing has been read since.
    Checkpoint,
    /// It has read.
    Reading,
}

impl Producer {
    pub(super) fn new(
        plan: Arc<ReadPlan>,
        position: ReaderPosition,
        output: Output,
        released: watch::Receiver<Lsn>,
        status: Arc<Status>,
    ) -> Producer {
        Producer {
            past: if position.stream.is_some() { Past::Checkpoint } else { Past::Nothing },
            has_given_up_position: false,
            leaves_out_unfit: plan.context.resume == JobResume::Skip && position.stream.is_some(),
            left_out_until: None,
            has_made_slot: false,
            // Before anything of a table was kept.
            has_waited: position.stream.is_some(),
            plan,
            position,
            output,
            released,
            status,
            backoff: Backoff::new(),
            lost_since: None,
            told: BTreeSet::new(),
        }
    }

    /// Reads until there is no more, or it fails for good.
    pub(super) async fn run(mut self) -> Result<()> {
        let plan = Arc::clone(&self.plan);
        for note in &plan.notes {
            self.tell(note);
        }
        loop {
            match Box::pin(self.read()).await {
                // A table has come that is to be read from its beginning.
                Ok(ReadEnd::Newcomer) => {}
                Ok(ReadEnd::All) => return Ok(()),
                // The job has gone.
                Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
                Err(error) if self.may_try_again(&error) => self.wait(&error).await,
                Err(error) => {
                    let error = if self.has_never_read() { given_up(error) } else { error };
                    self.leave_slot(&error).await;
                    return Err(error);
                }
            }
        }
    }

    /// Reads on one connection, from the position on.
    async fn read(&mut self) -> Result<ReadEnd> {
        if !self.plan.context.is_insert {
            // Nothing has gone out, or it would not be tried again; and the slot has gone with its session.
            self.position = ReaderPosition::default();
        }
        let mut prepared = prepare(self).await?;
        read_snapshots(self, &prepared).await?;
        if self.plan.is_snapshot_only() {
            return Ok(ReadEnd::All);
        }
        let held = prepared.held.take();
        StreamPhase::start(self, prepared, held).await?.run().await?;
        Ok(ReadEnd::Newcomer)
    }

    /// Decides whether a failure may pass. Rows that went out and cannot be continued belong to a run of the job that must be started
    /// again; and a job that has never read anything says at once what is wrong.
    fn may_try_again(&self, error: &Error) -> bool {
        if error.kind() != ErrorKind::Unavailable || (self.output.has_open_rows() && !self.is_streaming()) {
            return false;
        }
        if self.has_never_read() {
            return self.backoff.count() < self.plan.server.settings().connect_retries;
        }
        self.plan.context.is_insert
    }

    /// Returns whether nothing says yet that reading has ever been possible.
    fn has_never_read(&self) -> bool {
        !self.output.has_begun() && self.past == Past::Nothing
    }

    /// Returns whether the job goes on from a checkpoint and has not been able to yet.
    pub(super) fn is_resuming(&self) -> bool {
        self.past == Past::Checkpoint
    }

    /// Returns whether what follows the position comes from the stream, which is the same again after a connection was lost.
    fn is_streaming(&self) -> bool {
        self.position.stream.is_some() && self.position.tables.values().all(TableSnapshot::is_complete)
    }

    /// Notes how far the server's log is written when the stream is opened.
    pub(super) fn opens_at(&mut self, written: Lsn) {
        if self.leaves_out_unfit {
            self.left_out_until.get_or_insert(written);
        }
    }

    /// Returns whether a change is left out if it does not fit, because the user has said to go on without.
    pub(super) fn leaves_out(&self, commit: Lsn) -> bool {
        self.left_out_until.is_some_and(|until| commit < until)
    }

    /// Drops the slot that was made for a job which has failed for good, if no checkpoint can name it: it would hold the server's log back
    /// for nobody. Where one may, the user decides.
    async fn leave_slot(&mut self, error: &Error) {
        // After a lost connection the job is started again, and the server does not answer.
        if !self.has_made_slot || error.kind() == ErrorKind::Unavailable || self.status.has_checkpoint() {
            return;
        }
        let plan = Arc::clone(&self.plan);
        let slot = format!("Replication slot {} of Postgres '{}'", plan.slot, plan.server.name());
        if !self.output.has_told_position()
            && let Ok(Ok(())) = timeout(DROP_WAIT, plan.drop_slot()).await
        {
            self.tell(&format!("{slot} is dropped again, as nothing was written of what it has"));
            return;
        }
        self.warn(&format!(
            "{slot} stays, and holds the server's log back. If the job is not to be started again: SELECT pg_drop_replication_slot('{}');",
            plan.slot
        ));
    }

    async fn wait(&mut self, error: &Error) {
        let wait = self.backoff.failed();
        self.status.disconnected();
        if self.lost_since.is_none() && !self.has_never_read() {
            self.lost_since = Some(Instant::now());
            let hint = error.hint_text().map(|hint| format!(" {hint}")).unwrap_or_default();
            let text = format!("{error}.{hint} It is tried again until it works.");
            info!(job = %self.plan.context.job, "{text}");
            self.plan.context.warn(&text);
        } else {
            debug!(job = %self.plan.context.job, %error, "still disconnected");
        }
        tokio::time::sleep(wait).await;
    }

    /// Notes that the server sends: it can be read.
    pub(super) fn heard(&mut self) {
        self.past = Past::Reading;
    }

    /// Notes that reading has come on, so that the next failure is another one.
    pub(super) fn connected(&mut self) {
        self.heard();
        self.backoff.succeeded();
        if let Some(since) = self.lost_since.take() {
            let text = format!(
                "Postgres '{}': reading goes on after {} s",
                self.plan.server.name(),
                since.elapsed().as_secs()
            );
            info!(job = %self.plan.context.job, "{text}");
            self.plan.context.tell(&text);
        }
    }

    /// Tells the user something, once.
    pub(super) fn tell(&mut self, text: &str) {
        if self.told.insert(text.to_owned()) {
            info!(job = %self.plan.context.job, "{text}");
            self.plan.context.tell(text);
        }
    }

    /// Tells the user what he might not expect, once.
    pub(super) fn warn(&mut self, text: &str) {
        if self.told.insert(text.to_owned()) {
            info!(job = %self.plan.context.job, "{text}");
            self.plan.context.warn(text);
        }
    }
}

/// Makes the failure of a job that has never read anything final: the job is not to be started again and again with a wrong address.
fn given_up(error: Error) -> Error {
    if error.kind() != ErrorKind::Unavailable {
        return error;
    }
    let mut given_up = Error::rejected(error.message().to_owned());
    if let Some(hint) = error.hint_text() {
        given_up = given_up.hint(hint.to_owned());
    }
    given_up.caused_by(error)
}
