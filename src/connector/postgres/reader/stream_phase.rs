//! Reads the changes of a slot and hands on those that the snapshots do not hold.
//!
//! Rows go out as soon as there are enough of them, also in the middle of a transaction, but a boundary, and so a checkpoint, only
//! follows a commit: every state that is checkpointed is one that the database had. Only a transaction beyond all measure has boundaries
//! inside, known by the position of its commit and the number of its changes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_postgres::Client;

use super::NOTHING;
use super::followed::check_followed;
use super::identity::check_identity;
use super::looks::{LOOKS, answered, look_at_slot, look_at_tables};
use super::position::StreamPosition;
use super::preparation::Prepared;
use super::producer::Producer;
use super::read_plan::ReadPlan;
use super::table_routes::{Defined, Earlier, TableRoutes, Unfit};
use super::transaction::OpenTransaction;
use crate::connector::postgres::change_decoder::{ChangeDecoder, Transaction};
use crate::connector::postgres::connection::ReplicationSession;
use crate::connector::postgres::mutation::Rule;
use crate::connector::postgres::options::TruncatePolicy;
use crate::connector::postgres::pg_types::PgTypes;
use crate::connector::postgres::pgoutput::{Lsn, Message, OldTuple, Parser, Relation, Tuple};
use crate::connector::postgres::slot::{HeldSlot, inspect_slot};
use crate::connector::postgres::snapshot::{Coverage, all_ended_by, next_transaction, widen};
use crate::connector::postgres::table::PgTable;
use crate::connector::postgres::wal_stream::{PgWalStream, WalMessage, WalStream};
use crate::error::{Error, Result};

/// Rows go out when they took so many bytes in the stream, even if more are there to be read.
const FLUSH_BYTES: usize = 1 << 20;

/// A transaction of more bytes has boundaries inside.
const TRANSACTION_BYTES_MAX: usize = 64 << 20;

/// How often a position goes out that nothing but time has moved.
const IDLE_BOUNDARIES: Duration = Duration::from_millis(500);

/// How often the server is asked while tables are still compared with their snapshots.
const LOOKS_UNTIL_PURE: Duration = Duration::from_millis(500);

/// How long the server may take to notice that a stream was ended, and how often it is asked.
const END_WAIT: Duration = Duration::from_secs(10);
const END_LOOKS: Duration = Duration::from_millis(20);

/// After how long a connection has lasted on which nothing comes.
const LASTING: Duration = Duration::from_secs(60);

/// How long it may take to look a table up that is described anew, for which the server may have to look at all of them.
const LOOK_UP_WAIT: Duration = Duration::from_secs(60);

/// Reads changes on one connection.
pub(super) struct StreamPhase<'a> {
    producer: &'a mut Producer,
    plan: Arc<ReadPlan>,
    stream: PgWalStream,
    /// For questions beside the stream.
    client: Client,
    parser: Parser,
    /// By declared table.
    decoders: Vec<ChangeDecoder>,
    routes: TableRoutes,
    /// The tables that were there when reading was prepared, by declared table.
    tables: Vec<Vec<PgTable>>,
    types: PgTypes,
    /// Behind what has been read, of which the last part may not have gone out.
    position: StreamPosition,
    transaction: Option<OpenTransaction>,
    /// The bytes of the open transaction that went out behind the last boundary.
    open_bytes: usize,
    /// How far the server's log was written when the stream was opened.
    opened_at: Lsn,
    /// Near which the numbers of transactions are.
    xid_near: u64,
    /// Until the connection has shown that it is good for something.
    trial: Option<Trial>,
    /// When the stream has passed this, every change counts.
    pure_behind: Option<Lsn>,
    next_look: Instant,
    next_tables_look: Instant,
    /// Whether a table has come that is to be read from its beginning.
    is_to_read: bool,
    last_boundary: Instant,
    /// Whether something has been read or decided since.
    needs_boundary: bool,
    /// When the last transaction was committed, if there may be more to read.
    commit_time: Option<i64>,
}

/// A new connection. That it can be made says little: what has ended the one before may end it as soon.
#[derive(Debug)]
struct Trial {
    from: StreamPosition,
    since: Instant,
}

impl Trial {
    /// Returns whether reading has come on, or the connection has lasted.
    fn is_stood(&self, position: &StreamPosition, now: Instant) -> bool {
        position.lsn != self.from.lsn || position.within != self.from.within || now >= self.since + LASTING
    }
}

impl<'a> StreamPhase<'a> {
    /// Starts the stream where the producer is.
    ///
    /// # Errors
    /// The slot is not there or in use, or it is another server's.
    pub(super) async fn start(
        producer: &'a mut Producer,
        prepared: Prepared,
        held: Option<HeldSlot>,
    ) -> Result<StreamPhase<'a>> {
        let plan = Arc::clone(&producer.plan);
        let Some(mut position) = producer.position.stream.clone() else {
            return Err(Error::internal("changes are to be read without a slot"));
        };
        let (stream, opened_at) = match held {
            // Its position is the server's own.
            Some(held) => (held.start().await?, position.lsn),
            None => {
                let publication = &plan.stream.publication;
                let mut session =
                    ReplicationSession::open(&plan.server, &plan.slot, publication, position.lsn).await?;
                check_identity(&plan, &mut position, &mut session).await?;
                let written = session.identity().flushed;
                (PgWalStream::of_session(session, &plan.slot).await?, written)
            }
        };
        let Prepared { client, tables, types, .. } = prepared;
        let earlier = Earlier::read(&plan.server, &client, &plan.stream.publication).await?;
        let routes = TableRoutes::new(Arc::clone(&plan), tables.clone(), &producer.position, earlier);
        let database = &plan.server.settings().database;
        let decoders =
            plan.tables.iter().map(|table| ChangeDecoder::new(table.shape.clone(), database)).collect();
        let now = Instant::now();
        producer.status.streaming();
        producer.opens_at(opened_at);
        Ok(StreamPhase {
            opened_at,
            // The stream's transactions lie before it, by less than half of what their numbers tell apart.
            xid_near: next_transaction(&plan.server, &client).await?,
            trial: Some(Trial { from: position.clone(), since: now }),
            producer,
            plan,
            stream,
            client,
            parser: Parser::default(),
            decoders,
            routes,
            tables,
            types,
            position,
            transaction: None,
            open_bytes: 0,
            pure_behind: None,
            next_look: now,
            next_tables_look: now,
            is_to_read: false,
            last_boundary: now,
            needs_boundary: false,
            commit_time: None,
        })
    }

    /// Reads until a table is to be read from its beginning, the connection is lost, or it fails for good.
    pub(super) async fn run(mut self) -> Result<()> {
        loop {
            if self.is_to_read && self.transaction.is_none() {
                return self.end().await;
            }
            // What is there already is taken without waiting; when nothing is, what has been read goes out.
            let message = match self.stream.try_next()? {
                Some(message) => message,
                None => match self.wait().await? {
                    Some(message) => message,
                    None => continue,
                },
            };
            self.producer.heard();
            self.take(message).await?;
            if self.trial.as_ref().is_some_and(|trial| trial.is_stood(&self.position, Instant::now())) {
                self.trial = None;
                self.producer.connected();
            }
        }
    }

    /// Ends the stream between two transactions, so that it can be opened again.
    async fn end(mut self) -> Result<()> {
        self.commit_time = None;
        self.flush(true).await?;
        let StreamPhase { plan, client, stream, .. } = self;
        drop(stream);
        let is_free = async {
            while inspect_slot(&plan.server, &client, &plan.slot)
                .await?
                .is_some_and(|slot| slot.active_pid.is_some())
            {
                sleep(END_LOOKS).await;
            }
            Ok::<_, Error>(())
        };
        // If it is not free by then, whoever opens it says so.
        timeout(END_WAIT, is_free).await.unwrap_or(Ok(()))
    }

    /// Sends what has been read, and waits for more or for something else to do.
    async fn wait(&mut self) -> Result<Option<WalMessage>> {
        if self.transaction.is_none() {
            self.commit_time = None;
            self.flush(true).await?;
        }
        let wake = match self.needs_boundary {
            true => self.next_look.min(self.last_boundary + IDLE_BOUNDARIES),
            false => self.next_look,
        };
        tokio::select! {
            message = self.stream.next() => return message.map(Some),
            changed = self.producer.released.changed() => {
                if changed.is_err() {
                    return Err(Error::interrupted("the job does not read any more"));
                }
            }
            () = sleep_until(wake) => {}
        }
        self.attend().await?;
        Ok(None)
    }

    /// Does what is due beside reading, also where there is no end of what is to be read.
    async fn attend(&mut self) -> Result<()> {
        let released = *self.producer.released.borrow_and_update();
        self.stream.ack(released);
        if self.next_look <= Instant::now() {
            let plan = Arc::clone(&self.plan);
            return answered(&plan, self.look()).await;
        }
        Ok(())
    }

    async fn take(&mut self, message: WalMessage) -> Result<()> {
        match message {
            WalMessage::Begin { final_lsn, commit_time_us, xid } => {
                let xid = widen(xid, self.xid_near);
                self.xid_near = self.xid_near.max(xid);
                self.transaction = Some(OpenTransaction::new(xid, commit_time_us, final_lsn, &self.position));
            }
            WalMessage::Commit { end_lsn, .. } => self.commit(end_lsn).await?,
            WalMessage::Data(bytes) => self.data(&bytes).await?,
            WalMessage::KeepAlive { wal_end } if self.transaction.is_none() => {
                // Nothing that would be sent lies before: an idle table does not hold the log back.
                self.position.lsn = self.position.lsn.max(wal_end);
            }
            WalMessage::KeepAlive { .. } | WalMessage::Logical { .. } => {}
        }
        Ok(())
    }

    async fn commit(&mut self, end: Lsn) -> Result<()> {
        if let Some(transaction) = self.transaction.take()
            && !transaction.is_read()
        {
            self.position.lsn = self.position.lsn.max(end);
            self.position.within = None;
            self.commit_time = Some(transaction.commit_time);
            self.open_bytes = 0;
        }
        if self.byte_size() >= FLUSH_BYTES {
            self.flush(true).await?;
            self.attend().await?;
        }
        Ok(())
    }

    /// Takes a message about tables or rows.
    async fn data(&mut self, bytes: &[u8]) -> Result<()> {
        match self.parser.parse(bytes)? {
            Message::Relation { relation, .. } => self.define(&relation).await?,
            Message::Insert { oid, new, .. } => self.insert(oid, new)?,
            Message::Update { oid, old, new, .. } => self.update(oid, old, new)?,
            Message::Delete { oid, old, .. } => self.delete(oid, old)?,
            Message::Truncate { oids, .. } => self.truncate(&oids).await?,
            Message::Type { .. } | Message::Origin { .. } | Message::Logical { .. } => {}
            other => {
                return Err(Error::internal(format!("a message that was not asked for: {other:?}")));
            }
        }
        if self.byte_size() >= FLUSH_BYTES {
            // What rows lack counts as what it is now, and no longer as what was expected.
            self.resolve().await?;
            self.open_bytes += self.byte_size();
            let is_beyond_measure = self.open_bytes >= TRANSACTION_BYTES_MAX;
            self.flush(is_beyond_measure).await?;
        }
        Ok(())
    }

    async fn define(&mut self, relation: &Relation<'_>) -> Result<()> {
        if self.decoders.iter().any(|decoder| decoder.lacks_values_of(relation.oid)) {
            self.resolve().await?;
        }
        let plan = Arc::clone(&self.plan);
        if self.routes.may_be_read(relation) || self.routes.has_other_name(relation) {
            self.needs_boundary |= answered(&plan, check_followed(self.producer, &self.client)).await?;
        }
        let unfit = match self.transaction.as_ref().map(|transaction| transaction.commit) {
            Some(commit) if self.producer.leaves_out(commit) => Unfit::LeftOut,
            Some(commit) if commit < self.opened_at => Unfit::Before,
            _ => Unfit::Now,
        };
        let position = &mut self.producer.position;
        let (decoders, types) = (&mut self.decoders, &mut self.types);
        let defined = self.routes.define(relation, decoders, types, &self.client, position, unfit);
        let defined = plan.server.in_time("looking at its tables", LOOK_UP_WAIT, defined).await?;
        self.take_defined(defined);
        Ok(())
    }

    fn take_defined(&mut self, defined: Defined) {
        self.is_to_read |= defined.is_to_be_read;
        for (declared, table) in defined.found {
            self.tables[declared].push(table);
        }
        for notice in defined.notices {
            self.producer.warn(&notice);
        }
    }

    /// Returns the transaction, if the change that has come in it is new.
    #[inline]
    fn new_change(&mut self) -> Result<Option<(u64, Transaction)>> {
        let Some(open) = &mut self.transaction else { return Err(outside()) };
        let transaction = Transaction { xid: open.xid, commit_time: open.commit_time };
        Ok(open.is_new().then_some((open.xid, transaction)))
    }

    #[inline]
    fn insert(&mut self, oid: u32, new: Tuple<'_>) -> Result<()> {
        let Some((xid, transaction)) = self.new_change()? else { return Ok(()) };
        for route in self.routes.taking(oid) {
            let decoder = &mut self.decoders[route.declared];
            if route.counts_new(decoder, xid, &new)? {
                decoder.insert(oid, new, transaction)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn update(&mut self, oid: u32, old: Option<OldTuple<'_>>, new: Tuple<'_>) -> Result<()> {
        let Some((xid, transaction)) = self.new_change()? else { return Ok(()) };
        for route in self.routes.taking(oid) {
            let decoder = &mut self.decoders[route.declared];
            let emits = route.counts(decoder, xid, old.as_ref(), &new)?;
            decoder.update(oid, old, new, emits, transaction)?;
        }
        Ok(())
    }

    #[inline]
    fn delete(&mut self, oid: u32, old: OldTuple<'_>) -> Result<()> {
        let Some((xid, transaction)) = self.new_change()? else { return Ok(()) };
        for route in self.routes.taking(oid) {
            let decoder = &mut self.decoders[route.declared];
            if route.counts_old(decoder, xid, &old)? {
                decoder.delete(oid, old, transaction)?;
            }
        }
        Ok(())
    }

    /// Takes a TRUNCATE as the tables' options say, unless what was read of a table is from after it.
    async fn truncate(&mut self, oids: &[u32]) -> Result<()> {
        let Some((xid, _)) = self.new_change()? else { return Ok(()) };
        let is_passed = self.transaction.is_some_and(|open| self.producer.leaves_out(open.commit));
        let mut cleared = BTreeSet::new();
        for oid in oids {
            for route in self.routes.of(*oid) {
                let coverage = route.coverage(xid)?;
                if coverage == Coverage::Everything {
                    continue;
                }
                match self.plan.tables[route.declared].settings.truncate {
                    TruncatePolicy::Ignore => {
                        self.producer.warn(&format!(
                            "Table {} was truncated: what was written of it stays, because 'lakehead.postgres.truncate' = 'ignore'",
                            route.label()
                        ));
                    }
                    TruncatePolicy::Delete if coverage == Coverage::Nothing => {
                        cleared.insert(route.declared);
                    }
                    TruncatePolicy::Fail if is_passed => {
                        self.producer.warn(&format!(
                            "Table {} was truncated: what was written of it before stays, because 'lakehead.job.resume' = 'skip'",
                            route.label()
                        ));
                    }
                    TruncatePolicy::Delete => return Err(truncated_while_read(&route.label())),
                    TruncatePolicy::Fail => return Err(truncated(&route.label())),
                }
            }
        }
        if cleared.is_empty() { Ok(()) } else { self.clear(&cleared).await }
    }

    /// Sends the rows that came before declared tables were emptied, and then that they were.
    async fn clear(&mut self, cleared: &BTreeSet<usize>) -> Result<()> {
        for declared in cleared {
            self.decoders[*declared].leave_out_unresolved();
        }
        self.open_bytes += self.byte_size();
        self.send_rows().await?;
        for declared in cleared {
            self.producer.output.cleared(*declared).await?;
        }
        // From here on the position has the change: a connection that is made anew does not bring it again.
        self.settle(false).await
    }

    fn byte_size(&self) -> usize {
        self.decoders.iter().map(ChangeDecoder::byte_size).sum()
    }

    /// Reads what rows lack.
    async fn resolve(&mut self) -> Result<()> {
        for decoder in self.decoders.iter_mut().filter(|decoder| decoder.unresolved_count() > 0) {
            decoder.resolve(&mut self.client, &self.plan.server).await?;
        }
        Ok(())
    }

    /// Hands on what has been read, and says that it is whole if it is to be said and is so, or has become too much to wait for that.
    async fn flush(&mut self, is_boundary: bool) -> Result<()> {
        self.send_rows().await?;
        self.settle(is_boundary).await
    }

    /// Hands on the rows that have been read.
    async fn send_rows(&mut self) -> Result<()> {
        // First all questions, which may fail for a time: rows that went out cannot be taken back.
        self.resolve().await?;
        for (declared, decoder) in self.decoders.iter_mut().enumerate() {
            if let Some(rows) = decoder.finish()? {
                self.producer.output.rows(declared, rows).await?;
            }
        }
        Ok(())
    }

    /// Moves the position behind what went out.
    async fn settle(&mut self, is_boundary: bool) -> Result<()> {
        if let Some(transaction) = &self.transaction
            && !transaction.is_read()
        {
            self.position.within = Some(transaction.within());
        }
        if self.pure_behind.is_some_and(|behind| self.position.lsn >= behind) {
            self.pure_behind = None;
            self.routes.purify(&mut self.producer.position);
            self.needs_boundary = true;
        }
        if self.producer.position.stream.as_ref() != Some(&self.position) {
            self.producer.position.stream = Some(self.position.clone());
            self.needs_boundary = true;
        }
        // Where only time has passed, once in a while is enough.
        let is_soon =
            !self.producer.output.has_open_rows() && self.last_boundary + IDLE_BOUNDARIES > Instant::now();
        if is_boundary && self.needs_boundary && !is_soon {
            self.open_bytes = 0;
            self.needs_boundary = false;
            self.last_boundary = Instant::now();
            self.producer.output.boundary(&self.producer.position).await?;
            self.producer.status.read(self.position.lsn, self.commit_time);
        }
        if !self.plan.context.is_insert || Rule::Acknowledgement.is_off() {
            // Nobody starts a query again.
            self.stream.ack(self.position.lsn);
        }
        Ok(())
    }

    /// Asks the server what the stream does not tell.
    async fn look(&mut self) -> Result<()> {
        let (now, is_pure) = (Instant::now(), self.routes.are_pure());
        self.next_look = now + if is_pure { LOOKS } else { LOOKS_UNTIL_PURE };
        if !is_pure && self.pure_behind.is_none() {
            self.pure_behind = match self.routes.xid_max() {
                Some(xid) => all_ended_by(&self.plan.server, &self.client, xid).await?,
                None => Some(NOTHING),
            };
        }
        if self.next_tables_look <= now {
            self.next_tables_look = now + LOOKS;
            self.needs_boundary |= look_at_tables(self.producer, &self.client, &self.tables).await?;
            let newcomers = self.routes.look_for_newcomers(&self.client, &self.producer.position).await?;
            self.take_defined(newcomers);
        }
        look_at_slot(self.producer, &self.client).await
    }
}

#[cold]
fn truncated(label: &str) -> Error {
    Error::rejected(format!("table {label} was truncated")).hint(
        "To go on, start the job again: with SET 'lakehead.job.resume' = 'resnapshot' it reads the tables anew and replaces what it has written, with SET 'lakehead.job.resume' = 'skip' what was written of the table before stays. For the next time, 'lakehead.postgres.truncate' = 'delete' takes the rows of a table with a primary key away, and 'ignore' keeps them.",
    )
}

#[cold]
fn truncated_while_read(label: &str) -> Error {
    Error::rejected(format!(
        "table {label} was truncated while it was read: a part of what was read is from before, and another from after"
    ))
    .hint("SET 'lakehead.job.resume' = 'resnapshot' and start the job again: the table is read anew, and what was written is replaced.")
}

#[cold]
fn outside() -> Error {
    Error::data("the stream has a change outside of any transaction")
        .hint("The server speaks a protocol that is not known, or the connection has damaged it.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connector::postgres::reader::position::WithinTransaction;

    #[test]
    fn a_connection_has_stood_its_trial_when_reading_has_come_on_or_a_minute_has_passed() {
        let from = StreamPosition {
            system: "7".to_owned(),
            timeline: 1,
            slot: "s".to_owned(),
            lsn: Lsn(100),
            within: None,
        };
        let since = Instant::now();
        let trial = Trial { from: from.clone(), since };
        // A server that lets us in, says that it is there, and fails again.
        assert!(!trial.is_stood(&from, since + Duration::from_secs(1)));
        assert!(trial.is_stood(&from, since + Duration::from_secs(60)));
        assert!(trial.is_stood(&StreamPosition { lsn: Lsn(101), ..from.clone() }, since));
        let within = Some(WithinTransaction { commit: Lsn(120), changes: 1 });
        assert!(trial.is_stood(&StreamPosition { within, ..from }, since));
    }
}
