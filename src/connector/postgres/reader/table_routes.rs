//! Which declared tables read a table of the server, and whether a change of it counts for them.

use std::sync::Arc;

use hashbrown::HashMap;
use tokio_postgres::Client;

use super::position::{ReaderPosition, TableKey};
use super::read_plan::ReadPlan;
use crate::connector::postgres::change_decoder::{ChangeDecoder, Emits};
use crate::connector::postgres::mutation::Rule;
use crate::connector::postgres::pg_types::PgTypes;
use crate::connector::postgres::pgoutput::{OldTuple, Relation, Tuple};
use crate::connector::postgres::preflight::check_truncates_one;
use crate::connector::postgres::snapshot::{Coverage, TableSnapshot};
use crate::connector::postgres::table::PgTable;
use crate::connector::postgres::tables::{GeneratedColumns, find_tables};
use crate::error::Result;

/// A table of the server, as one declared table reads it.
#[derive(Debug)]
pub(super) struct Route {
    /// The declared table's number.
    pub(super) declared: usize,
    pub(super) key: TableKey,
    table: PgTable,
    /// What of it has been read; None once every change counts.
    snapshot: Option<TableSnapshot>,
}

/// The routes of all tables, by their numbers.
#[derive(Debug)]
pub(super) struct TableRoutes {
    plan: Arc<ReadPlan>,
    /// None for tables that nobody reads.
    routes: HashMap<u32, Vec<Route>>,
}

impl TableRoutes {
    /// Knows the tables that were there when reading was prepared.
    pub(super) fn new(
        plan: Arc<ReadPlan>,
        tables: Vec<Vec<PgTable>>,
        position: &ReaderPosition,
    ) -> TableRoutes {
        let mut routes: HashMap<u32, Vec<Route>> = HashMap::new();
        for (declared, tables) in tables.into_iter().enumerate() {
            for table in tables {
                let key = TableKey { oid: table.oid, reader: plan.tables[declared].name.clone() };
                let snapshot = position.tables.get(&key).filter(|state| **state != TableSnapshot::Pure);
                let snapshot = snapshot.cloned();
                routes.entry(table.oid).or_default().push(Route { declared, key, table, snapshot });
            }
        }
        TableRoutes { plan, routes }
    }

    /// Returns who reads a table.
    pub(super) fn of(&self, oid: u32) -> &[Route] {
        self.routes.get(&oid).map_or(&[], Vec::as_slice)
    }

    /// Takes the description of a table, for all who read it; returns what the user should know. A table that was not there before,
    /// or had another name, is looked up.
    ///
    /// # Errors
    /// It does not fit the declared table any more, or the server cannot be asked.
    pub(super) async fn define(
        &mut self,
        relation: &Relation<'_>,
        decoders: &mut [ChangeDecoder],
        types: &mut PgTypes,
        client: &Client,
        position: &mut ReaderPosition,
    ) -> Result<Vec<String>> {
        if !self.routes.contains_key(&relation.oid) {
            self.find(relation, client, position).await?;
        }
        let unknown = types.unknown(relation.columns.iter().map(|column| column.type_oid));
        if !unknown.is_empty() {
            let failed = |error| self.plan.server.sql_error("reading its types", error);
            types.add(client, &unknown).await.map_err(failed)?;
        }
        let mut notices = Vec::new();
        for route in self.of(relation.oid) {
            notices.extend(decoders[route.declared].define(relation, &route.table, types)?);
        }
        Ok(notices)
    }

    /// Looks a table up that somebody may read. What it holds is in the stream: it has been made since the others were looked at.
    async fn find(
        &mut self,
        relation: &Relation<'_>,
        client: &Client,
        position: &mut ReaderPosition,
    ) -> Result<()> {
        let plan = Arc::clone(&self.plan);
        let mut found = Vec::new();
        for (declared, read) in plan.tables.iter().enumerate() {
            let selection = &read.settings.selection;
            if !selection.matches(relation.schema, relation.table) {
                continue;
            }
            let generated = GeneratedColumns::PublishedBy(&plan.stream.publication);
            let tables = find_tables(&plan.server, client, selection, generated).await?;
            check_truncates_one(&plan.server, &read.shape.table, read.settings.truncate, &tables)?;
            if let Some(table) = tables.into_iter().find(|table| table.oid == relation.oid) {
                let key = TableKey { oid: table.oid, reader: read.name.clone() };
                position.tables.insert(key.clone(), TableSnapshot::Pure);
                found.push(Route { declared, key, table, snapshot: None });
            }
        }
        self.routes.insert(relation.oid, found);
        Ok(())
    }

    /// Returns whether every change of every table counts.
    pub(super) fn are_pure(&self) -> bool {
        self.routes.values().flatten().all(|route| route.snapshot.is_none())
    }

    /// Returns the transaction from which on every change counts.
    pub(super) fn xid_max(&self) -> Option<u64> {
        let snapshots = self.routes.values().flatten().filter_map(|route| route.snapshot.as_ref());
        snapshots.filter_map(TableSnapshot::xid_max).max()
    }

    /// Notes that the stream has passed whatever the snapshots may hold.
    pub(super) fn purify(&mut self, position: &mut ReaderPosition) {
        for route in self.routes.values_mut().flatten() {
            if route.snapshot.take().is_some() {
                position.tables.insert(route.key.clone(), TableSnapshot::Pure);
            }
        }
    }
}

impl Route {
    /// Returns the table as messages name it.
    pub(super) fn label(&self) -> String {
        self.table.label()
    }

    /// Returns how much of what was read is as a transaction left it that changed all of the table at once.
    ///
    /// # Errors
    /// The table has not been read wholly.
    pub(super) fn coverage(&self, xid: u64) -> Result<Coverage> {
        self.snapshot.as_ref().map_or(Ok(Coverage::Nothing), |snapshot| snapshot.covers_all(xid))
    }

    /// Returns whether a row that a transaction brings counts.
    ///
    /// # Errors
    /// Its key cannot be read.
    #[inline]
    pub(super) fn counts_new(&self, decoder: &ChangeDecoder, xid: u64, new: &Tuple<'_>) -> Result<bool> {
        match &self.snapshot {
            None => Ok(true),
            Some(_) if Rule::Visibility.is_off() => Ok(true),
            Some(snapshot) => Ok(!snapshot.covers(xid, self.key_text(decoder, new, snapshot))?),
        }
    }

    /// Returns whether a row that a transaction takes away counts.
    ///
    /// # Errors
    /// Its key cannot be read.
    #[inline]
    pub(super) fn counts_old(&self, decoder: &ChangeDecoder, xid: u64, old: &OldTuple<'_>) -> Result<bool> {
        let (OldTuple::Key(old) | OldTuple::Row(old)) = old;
        self.counts_new(decoder, xid, old)
    }

    /// Returns which sides of an update count. A row whose key stays has no old tuple, unless all of it is sent.
    ///
    /// # Errors
    /// A key cannot be read.
    #[inline]
    pub(super) fn counts(
        &self,
        decoder: &ChangeDecoder,
        xid: u64,
        old: Option<&OldTuple<'_>>,
        new: &Tuple<'_>,
    ) -> Result<Emits> {
        if self.snapshot.is_none() {
            return Ok(Emits::BOTH);
        }
        let counts_new = self.counts_new(decoder, xid, new)?;
        let counts_old = match old {
            Some(old) => self.counts_old(decoder, xid, old)?,
            None => counts_new,
        };
        Ok(Emits { old: counts_old, new: counts_new })
    }

    fn key_text<'t>(
        &self,
        decoder: &ChangeDecoder,
        row: &Tuple<'t>,
        snapshot: &TableSnapshot,
    ) -> Option<&'t [u8]> {
        decoder.key_text(self.key.oid, row, snapshot.key_column()?)
    }
}
