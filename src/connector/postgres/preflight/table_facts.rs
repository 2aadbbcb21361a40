//! What decides whether a table can be read and followed, beyond its description.

use std::collections::HashMap;

use tokio_postgres::Client;

use super::DeclaredTable;
use crate::connector::postgres::connection::PgServer;
use crate::connector::postgres::pgoutput::ReplicaIdentity;
use crate::connector::postgres::table::quoted;
use crate::error::Result;

/// Facts of all tables that a job reads.
#[derive(Debug)]
pub(super) struct TableFacts {
    tables: Vec<TableFact>,
    /// What the log has: tables themselves, and the partitions of partitioned ones, by the table that is read.
    logged: HashMap<u32, Vec<LoggedTable>>,
}

/// What the role may do with a table that is read.
#[derive(Debug)]
pub(super) struct TableFact {
    pub(super) oid: u32,
    /// `schema.table`, for messages and for SQL.
    pub(super) label: String,
    pub(super) sql: String,
    pub(super) schema: String,
    pub(super) may_use_schema: bool,
    pub(super) may_select: bool,
    /// Whether policies choose the rows that the role sees.
    pub(super) hides_rows: bool,
    /// Whether the role owns it.
    pub(super) is_owned: bool,
    /// Whether it has columns that are generated.
    pub(super) has_generated: bool,
}

/// A table that has rows of its own, as the log has them.
#[derive(Debug)]
pub(super) struct LoggedTable {
    pub(super) label: String,
    pub(super) sql: String,
    pub(super) identity: ReplicaIdentity,
    /// The columns that the identity has; of a full one, none.
    pub(super) identity_columns: Vec<String>,
    /// Whether its changes are in the log at all.
    pub(super) is_logged: bool,
}

const FACTS: &str = "SELECT c.oid, n.nspname::text, c.relname::text, has_schema_privilege(n.oid, 'USAGE'), \
     has_table_privilege(c.oid, 'SELECT'), row_security_active(c.oid), pg_has_role(c.relowner, 'USAGE'), \
     EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated <> '') \
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = ANY($1) ORDER BY 2, 3";

/// A key that is checked only at commit identifies no row.
const LOGGED: &str = "SELECT r.oid, n.nspname::text, c.relname::text, c.relreplident::text, c.relpersistence = 'p', \
     coalesce((SELECT array_agg(a.attname::text ORDER BY k.place) FROM pg_index i \
     CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY k (attnum, place) \
     JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum \
     WHERE i.indrelid = c.oid AND k.place <= i.indnkeyatts \
     AND (c.relreplident = 'd' AND i.indisprimary AND i.indimmediate OR c.relreplident = 'i' AND i.indisreplident)), '{}') \
     FROM pg_class r CROSS JOIN LATERAL (SELECT r.oid AS leaf WHERE r.relkind <> 'p' \
     UNION ALL SELECT t.relid::oid FROM pg_partition_tree(r.oid) t WHERE r.relkind = 'p' AND t.isleaf AND t.relid <> r.oid) l \
     JOIN pg_class c ON c.oid = l.leaf JOIN pg_namespace n ON n.oid = c.relnamespace WHERE r.oid = ANY($1) ORDER BY 2, 3";

impl TableFacts {
    pub(super) async fn read(
        server: &PgServer,
        client: &Client,
        declared: &[DeclaredTable<'_>],
    ) -> Result<TableFacts> {
        let failed = |error| server.sql_error("reading what the role may do", error);
        let oids: Vec<u32> =
            declared.iter().flat_map(|declared| declared.tables).map(|table| table.oid).collect();
        let rows = client.query(FACTS, &[&oids]).await.map_err(failed)?;
        let tables = rows.iter().map(|row| {
            let (schema, name): (String, String) = (row.try_get(1)?, row.try_get(2)?);
            Ok(TableFact {
                oid: row.try_get(0)?,
                label: format!("{schema}.{name}"),
                sql: format!("{}.{}", quoted(&schema), quoted(&name)),
                schema,
                may_use_schema: row.try_get(3)?,
                may_select: row.try_get(4)?,
                hides_rows: row.try_get(5)?,
                is_owned: row.try_get(6)?,
                has_generated: row.try_get(7)?,
            })
        });
        let tables = tables.collect::<Result<_, tokio_postgres::Error>>().map_err(failed)?;
        let rows = client.query(LOGGED, &[&oids]).await.map_err(failed)?;
        let mut logged: HashMap<u32, Vec<LoggedTable>> = HashMap::new();
        for row in &rows {
            let read = || -> Result<(u32, LoggedTable), tokio_postgres::Error> {
                let (schema, name): (&str, &str) = (row.try_get(1)?, row.try_get(2)?);
                let table = LoggedTable {
                    label: format!("{schema}.{name}"),
                    sql: format!("{}.{}", quoted(schema), quoted(name)),
                    identity: ReplicaIdentity::of_letter(row.try_get(3)?),
                    is_logged: row.try_get(4)?,
                    identity_columns: row.try_get(5)?,
                };
                Ok((row.try_get(0)?, table))
            };
            let (oid, table) = read().map_err(failed)?;
            logged.entry(oid).or_default().push(table);
        }
        Ok(TableFacts { tables, logged })
    }

    pub(super) fn tables(&self) -> &[TableFact] {
        &self.tables
    }

    pub(super) fn of(&self, oid: u32) -> Option<&TableFact> {
        self.tables.iter().find(|table| table.oid == oid)
    }

    /// Returns what the log has of a table that is read.
    pub(super) fn logged(&self, oid: u32) -> &[LoggedTable] {
        self.logged.get(&oid).map(Vec::as_slice).unwrap_or_default()
    }
}
