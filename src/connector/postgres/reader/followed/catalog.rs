//! What the server's catalog says of tables, found by their numbers.

use std::collections::BTreeMap;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Row};

use super::{FollowedTable, Presence};
use crate::connector::postgres::connection::PgServer;
use crate::connector::postgres::reader::read_plan::DeclaredRead;
use crate::connector::postgres::table::quoted;
use crate::error::Result;

/// A table as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeenTable {
    pub(super) schema: String,
    pub(super) name: String,
    /// The entries of the publication that let its changes come: for the table, for one above it, for their schemas, or for all tables.
    pub(super) entries: Vec<u32>,
    /// In order of their numbers.
    pub(super) partitions: Vec<u32>,
}

impl SeenTable {
    pub(super) fn label(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    pub(super) fn is_read_by(&self, reader: &DeclaredRead) -> bool {
        reader.settings.selection.matches(&self.schema, &self.name)
    }

    pub(super) fn followed(&self) -> FollowedTable {
        FollowedTable {
            schema: self.schema.clone(),
            name: self.name.clone(),
            presence: Presence::There,
            entries: self.entries.clone(),
            partitions: self.partitions.clone(),
            former_partitions: Vec::new(),
        }
    }
}

/// A table that has a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NamedTable {
    pub(super) oid: u32,
    pub(super) schema: String,
    pub(super) name: String,
}

/// Looks tables up. Those that are not there any more are left out.
///
/// # Errors
/// The server cannot be asked.
pub(super) async fn look_up(
    server: &PgServer,
    client: &Client,
    publication: &str,
    oids: &[u32],
) -> Result<BTreeMap<u32, SeenTable>> {
    let failed = |error| server.sql_error("looking at its tables again", error);
    // Schemas can be published from version 15 on.
    let knows_schemas = "SELECT to_regclass('pg_catalog.pg_publication_namespace') IS NOT NULL";
    let row = client.query_one(knows_schemas, &[]).await.map_err(failed)?;
    let of_schemas = match row.try_get(0).map_err(failed)? {
        true => {
            "UNION ALL SELECT e.oid FROM pg_publication_namespace e JOIN pg_class o ON o.relnamespace = e.pnnspid \
             WHERE e.pnpubid = p.oid AND (o.oid = c.oid OR o.oid IN (SELECT relid FROM pg_partition_ancestors(c.oid)))"
        }
        false => "",
    };
    let query = format!(
        "SELECT c.oid, n.nspname::text, c.relname::text, \
         ARRAY(SELECT p.oid WHERE p.puballtables \
         UNION ALL SELECT e.oid FROM pg_publication_rel e WHERE e.prpubid = p.oid \
         AND (e.prrelid = c.oid OR e.prrelid IN (SELECT relid FROM pg_partition_ancestors(c.oid))) {of_schemas}), \
         CASE WHEN c.relkind = 'p' THEN ARRAY(SELECT t.relid::oid FROM pg_partition_tree(c.oid) t WHERE t.isleaf ORDER BY 1) ELSE '{{}}' END \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_publication p ON p.pubname = $1::text::name \
         WHERE c.oid = ANY($2) AND c.relkind IN ('r', 'p')"
    );
    let rows = client.query(&query, &[&publication, &oids]).await.map_err(failed)?;
    let seen = rows.iter().map(|row| {
        let table = SeenTable {
            schema: row.try_get(1)?,
            name: row.try_get(2)?,
            entries: row.try_get(3)?,
            partitions: row.try_get(4)?,
        };
        Ok((row.try_get(0)?, table))
    });
    seen.collect::<Result<_, tokio_postgres::Error>>().map_err(failed)
}

/// Returns the tables that have one of some names and are not the ones that had it.
///
/// # Errors
/// The server cannot be asked.
pub(super) async fn named(
    server: &PgServer,
    client: &Client,
    names: &[(u32, String, String)],
) -> Result<Vec<NamedTable>> {
    const QUERY: &str = "SELECT c.oid, n.nspname::text, c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         JOIN unnest($1::oid[], $2::text[], $3::text[]) w (oid, schema, name) ON n.nspname = w.schema AND c.relname = w.name \
         WHERE c.oid <> w.oid AND c.relkind IN ('r', 'p')";
    let failed = |error| server.sql_error("looking for tables of the same names", error);
    let oids: Vec<u32> = names.iter().map(|(oid, ..)| *oid).collect();
    let schemas: Vec<&str> = names.iter().map(|(_, schema, _)| schema.as_str()).collect();
    let tables: Vec<&str> = names.iter().map(|(.., name)| name.as_str()).collect();
    let rows = client.query(QUERY, &[&oids, &schemas, &tables]).await.map_err(failed)?;
    let named = rows
        .iter()
        .map(|row| Ok(NamedTable { oid: row.try_get(0)?, schema: row.try_get(1)?, name: row.try_get(2)? }));
    named.collect::<Result<_, tokio_postgres::Error>>().map_err(failed)
}

/// Returns those of some tables that are still there, with the names that messages have for them.
///
/// # Errors
/// The server cannot be asked.
pub(super) async fn labels_of(
    server: &PgServer,
    client: &Client,
    oids: &[u32],
) -> Result<Vec<(u32, String)>> {
    const QUERY: &str = "SELECT c.oid, n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.oid = ANY($1) ORDER BY 2";
    let failed = |error| server.sql_error("looking at partitions", error);
    let rows = client.query(QUERY, &[&oids]).await.map_err(failed)?;
    let label = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?));
    rows.iter().map(label).collect::<Result<_, tokio_postgres::Error>>().map_err(failed)
}

/// Returns the label of a partition that a table has got, and whether it had rows before it was one, of which no change tells. The latter
/// is None if the role may not look; all is None if the partition has gone again.
///
/// Rows that are older than the youngest link between partition and table were there before. They are the first ones in the file, so a few
/// pages are enough; what is read is little also where all rows are younger.
///
/// # Errors
/// The server cannot be asked.
pub(super) async fn had_rows(
    server: &PgServer,
    client: &Client,
    partition: u32,
    table: u32,
) -> Result<Option<(String, Option<bool>)>> {
    const LINK: &str = "SELECT n.nspname::text, c.relname::text, i.xmin::text, i.cmin::text::int8, \
         i.xmin = (SELECT a.xmin FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tableoid') \
         OR c.relkind <> 'r' OR pg_relation_size(c.oid) = 0 \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace CROSS JOIN LATERAL pg_partition_ancestors(c.oid) a \
         JOIN pg_inherits i ON i.inhrelid = a.relid WHERE c.oid = $1 \
         AND a.relid NOT IN (SELECT relid FROM pg_partition_ancestors($2::oid)) ORDER BY age(i.xmin), i.cmin::text::int8 DESC LIMIT 1";
    let failed = |error| server.sql_error("looking at partitions", error);
    let Some(row) = client.query_opt(LINK, &[&partition, &table]).await.map_err(failed)? else {
        return Ok(None);
    };
    let read = || -> Result<(String, String, String, i64, bool), tokio_postgres::Error> {
        Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?, row.try_get(4)?))
    };
    let (schema, name, xid, command, is_born_empty) = read().map_err(failed)?;
    let older = format!(
        "SELECT EXISTS (SELECT FROM ONLY {}.{} r WHERE r.ctid = ANY(ARRAY(SELECT format('(%s,%s)', page, line)::tid \
         FROM generate_series(0, 7) page, generate_series(1, 300) line)) \
         AND (age(r.xmin) > age($1::text::xid) OR r.xmin = $1::text::xid AND r.cmin::text::int8 < $2))",
        quoted(&schema),
        quoted(&name)
    );
    let label = format!("{schema}.{name}");
    match client.query_one(&older, &[&xid, &command]).await {
        Ok(row) => Ok(Some((label, Some(row.try_get(0).map_err(failed)?)))),
        // The right to read the table is enough to read its partitions with it, but not by themselves.
        Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            Ok(Some((label, is_born_empty.then_some(false))))
        }
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}
