//! Which declared tables read a table of the server, and whether a change of it counts for them.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use tokio_postgres::Client;

use super::position::{ReaderPosition, TableKey};
use super::preparation::{comes_later, is_former_partition, with_ways_on};
use super::read_plan::ReadPlan;
use crate::connector::postgres::change_decoder::{ChangeDecoder, Emits};
use crate::connector::postgres::connection::PgServer;
use crate::connector::postgres::mutation::Rule;
use crate::connector::postgres::pg_types::PgTypes;
use crate::connector::postgres::pgoutput::{OldTuple, Relation, Tuple};
use crate::connector::postgres::preflight::check_truncates_one;
use crate::connector::postgres::slot::WAYS_PAST_A_CHANGE;
use crate::connector::postgres::snapshot::{Coverage, TableSnapshot};
use crate::connector::postgres::table::PgTable;
use crate::connector::postgres::tables::{GeneratedColumns, find_tables, list_tables};
use crate::error::{Error, ErrorKind, Result};

/// A table of the server, as one declared table reads it.
#[derive(Debug)]
pub(super) struct Route {
    /// The declared table's number.
    pub(super) declared: usize,
    pub(super) key: TableKey,
    table: PgTable,
    /// What of it has been read; None once every change counts.
    snapshot: Option<TableSnapshot>,
    /// Whether its changes are left out, because they were made before it fitted the declared table.
    is_left_out: bool,
}

/// What becomes of a description that does not fit a declared table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfit {
    /// The table is so now: the job fails.
    Now,
    /// The table was so when changes were made that are still to be read: the job fails.
    Before,
    /// The same, and the user has said that the job is to go on without these changes.
    LeftOut,
}

/// The routes of all tables, by their numbers.
#[derive(Debug)]
pub(super) struct TableRoutes {
    plan: Arc<ReadPlan>,
    /// None for tables that nobody reads.
    routes: HashMap<u32, Vec<Route>>,
    earlier: Earlier,
    /// Tables whose changes do not count before what they hold is read.
    unread: BTreeSet<u32>,
}

/// What was there when the stream was opened: a table that was not, and was published from its beginning, has all that it holds in the
/// stream.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// Whether the publication has all tables, also those that are still to come.
    publishes_all: bool,
    /// The tables of the database.
    tables: HashSet<u32>,
}

/// What has come of a description.
#[derive(Debug, Default)]
pub(super) struct Defined {
    /// What the user should know.
    pub(super) notices: Vec<String>,
    /// Tables that were found, with the number of the declared table that reads them.
    pub(super) found: Vec<(usize, PgTable)>,
    /// Whether a table is to be read from its beginning.
    pub(super) is_to_be_read: bool,
}

impl Earlier {
    /// Looks at the tables and at the publication.
    ///
    /// # Errors
    /// The server cannot be asked.
    pub(super) async fn read(server: &PgServer, client: &Client, publication: &str) -> Result<Earlier> {
        const TABLES: &str = "SELECT EXISTS (SELECT FROM pg_publication WHERE pubname = $1::text::name AND puballtables), \
             ARRAY(SELECT oid FROM pg_class WHERE relkind IN ('r', 'p') AND oid >= 16384)";
        let failed = |error| server.sql_error("listing its tables", error);
        let row = client.query_one(TABLES, &[&publication]).await.map_err(failed)?;
        let tables: Vec<u32> = row.try_get(1).map_err(failed)?;
        Ok(Earlier { publishes_all: row.try_get(0).map_err(failed)?, tables: tables.into_iter().collect() })
    }
}

impl TableRoutes {
    /// Knows the tables that were there when reading was prepared.
    pub(super) fn new(
        plan: Arc<ReadPlan>,
        tables: Vec<Vec<PgTable>>,
        position: &ReaderPosition,
        earlier: Earlier,
    ) -> TableRoutes {
        let mut routes: HashMap<u32, Vec<Route>> = HashMap::new();
        for (declared, tables) in tables.into_iter().enumerate() {
            for table in tables {
                let key = TableKey { oid: table.oid, reader: plan.tables[declared].name.clone() };
                let snapshot = position.tables.get(&key).filter(|state| **state != TableSnapshot::Pure);
                let snapshot = snapshot.cloned();
                routes.entry(table.oid).or_default().push(Route {
                    declared,
                    key,
                    table,
                    snapshot,
                    is_left_out: false,
                });
            }
        }
        TableRoutes { plan, routes, earlier, unread: BTreeSet::new() }
    }

    /// Returns who reads a table.
    pub(super) fn of(&self, oid: u32) -> &[Route] {
        self.routes.get(&oid).map_or(&[], Vec::as_slice)
    }

    /// Returns who takes the changes of a table as it is described now.
    pub(super) fn taking(&self, oid: u32) -> impl Iterator<Item = &Route> {
        self.of(oid).iter().filter(|route| !route.is_left_out)
    }

    /// Returns whether a description is that of a table that nobody reads so far, although its name is one that is read.
    pub(super) fn may_be_read(&self, relation: &Relation<'_>) -> bool {
        let mut declared = self.plan.tables.iter();
        self.of(relation.oid).is_empty()
            && !self.unread.contains(&relation.oid)
            && declared.any(|read| read.settings.selection.matches(relation.schema, relation.table))
    }

    /// Returns whether a table that is read has another name than it had.
    pub(super) fn has_other_name(&self, relation: &Relation<'_>) -> bool {
        self.of(relation.oid).iter().any(|route| !route.is_named(relation))
    }

    /// Takes the description of a table, for all who read it. A table that was not there before, or had another name, is looked up; it
    /// must be known what has become of those that are followed.
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
        unfit: Unfit,
    ) -> Result<Defined> {
        let mut defined = Defined::default();
        if self.may_be_read(relation) {
            defined = self.find(relation, client, position).await?;
        }
        self.rename(relation, position);
        let unknown = types.unknown(relation.columns.iter().map(|column| column.type_oid));
        if !unknown.is_empty() {
            let failed = |error| self.plan.server.sql_error("reading its types", error);
            types.add(client, &unknown).await.map_err(failed)?;
        }
        for route in self.routes.get_mut(&relation.oid).into_iter().flatten() {
            let told = decoders[route.declared].define(relation, &route.table, types);
            let is_unfit = told.as_ref().is_err_and(|error| error.kind() == ErrorKind::Validation);
            route.is_left_out = is_unfit && unfit == Unfit::LeftOut;
            match told {
                Ok(notices) => defined.notices.extend(notices),
                Err(error) if route.is_left_out => defined.notices.push(left_out(route, &error)),
                Err(error) if is_unfit => return Err(unfit_description(route, &error, unfit)),
                Err(error) => return Err(error),
            }
        }
        Ok(defined)
    }

    /// Follows the name of a table. One whose name is not read is read no more if the server shows it so as well: otherwise it is an
    /// earlier name, from before the job knew the table.
    fn rename(&mut self, relation: &Relation<'_>, position: &ReaderPosition) {
        // Also one that nobody reads is known by now.
        let routes = self.routes.entry(relation.oid).or_default();
        let is_gone = position.followed.get(&relation.oid).is_some_and(|table| !table.is_there());
        let plan = &self.plan;
        routes.retain_mut(|route| {
            let selection = &plan.tables[route.declared].settings.selection;
            let matches = selection.matches(relation.schema, relation.table);
            if matches && !route.is_named(relation) {
                relation.schema.clone_into(&mut route.table.schema);
                relation.table.clone_into(&mut route.table.name);
            }
            matches || !is_gone
        });
    }

    /// Looks a table up that somebody may read. If what it holds is not in the stream, it is to be read, or the user is told.
    async fn find(
        &mut self,
        relation: &Relation<'_>,
        client: &Client,
        position: &mut ReaderPosition,
    ) -> Result<Defined> {
        let plan = Arc::clone(&self.plan);
        let (mut found, mut defined) = (Vec::new(), Defined::default());
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
                found.push(Route { declared, key, table, snapshot: None, is_left_out: false });
            }
        }
        let is_new = self.is_new(relation.oid);
        let is_begun = |route: &Route| {
            let reader = &route.key.reader;
            !is_new
                && !position.tables.contains_key(&route.key)
                && !is_former_partition(position, reader, relation.oid)
        };
        if found.iter().any(|route| is_begun(route) && self.reads_newcomers(route.declared)) {
            self.unread.insert(relation.oid);
            defined.is_to_be_read = true;
            return Ok(defined);
        }
        let begun = found.iter().filter(|route| is_begun(route));
        defined.notices = begun.map(|route| comes_later(&route.label(), &route.key.reader)).collect();
        for route in &mut found {
            let state = position.tables.entry(route.key.clone()).or_insert(TableSnapshot::Pure);
            route.snapshot = Some(state.clone()).filter(|state| *state != TableSnapshot::Pure);
            defined.found.push((route.declared, route.table.clone()));
        }
        self.routes.insert(relation.oid, found);
        Ok(defined)
    }

    /// Returns whether all that a table holds is in the stream, of which nothing has been passed over.
    fn is_new(&self, oid: u32) -> bool {
        self.earlier.publishes_all && !self.earlier.tables.contains(&oid) && !self.routes.contains_key(&oid)
    }

    /// Returns whether tables that a declared table matches only now are read from their beginning. A query has nothing to go on from
    /// when that is done.
    fn reads_newcomers(&self, declared: usize) -> bool {
        self.plan.context.is_insert && self.plan.tables[declared].settings.reads_new_tables
    }

    /// Looks for tables that have come to be matched and of which no change has come so far, that would tell of them.
    ///
    /// # Errors
    /// The server cannot be asked.
    pub(super) async fn look_for_newcomers(
        &self,
        client: &Client,
        position: &ReaderPosition,
    ) -> Result<Defined> {
        let mut defined = Defined::default();
        let selections = self.plan.tables.iter().map(|read| &read.settings.selection);
        let listed = list_tables(&self.plan.server, client, selections).await?;
        for (declared, (read, tables)) in self.plan.tables.iter().zip(listed).enumerate() {
            for (oid, label) in tables {
                let is_known = position.tables.contains_key(&TableKey { oid, reader: read.name.clone() })
                    || self.unread.contains(&oid)
                    || is_former_partition(position, &read.name, oid);
                if is_known || self.is_new(oid) {
                    continue;
                }
                if self.earlier.publishes_all && self.reads_newcomers(declared) {
                    defined.is_to_be_read = true;
                    continue;
                }
                defined.notices.push(not_read_yet(&label, &read.name, self.earlier.publishes_all));
            }
        }
        Ok(defined)
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

/// Says that a table does not fit, and how the job goes on.
fn unfit_description(route: &Route, error: &Error, unfit: Unfit) -> Error {
    if unfit == Unfit::Now {
        return with_ways_on(error);
    }
    Error::validation(format!(
        "changes of table {} are still to be read that were made when it did not fit its declaration: {}",
        route.label(),
        error.message()
    ))
    .hint(format!("It fits now: it was changed behind the job's position. {WAYS_PAST_A_CHANGE}"))
}

/// Says which changes are left out.
fn left_out(route: &Route, error: &Error) -> String {
    format!(
        "Changes of table {} that were made when it did not fit its declaration are left out, because 'lakehead.job.resume' = 'skip': {}",
        route.label(),
        error.message()
    )
}

/// Says that a table has come that is not read.
fn not_read_yet(table: &str, reader: &str, is_published: bool) -> String {
    let what = if is_published { "what it holds already is not read" } else { "it is not read yet" };
    format!(
        "Table {table} matches '{reader}' now, and {what}: start the job again to read it, with 'scan.newly-added-table.enabled' = 'true' from its beginning"
    )
}

impl Route {
    fn is_named(&self, relation: &Relation<'_>) -> bool {
        self.table.schema == relation.schema && self.table.name == relation.table
    }

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
