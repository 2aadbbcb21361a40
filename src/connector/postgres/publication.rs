//! Publications: which changes a stream has. One that is there belongs to whoever made it; only one that bears our mark is extended,
//! and only by tables that it lacks.

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::connection::PgServer;
use super::settings::Autocreate;
use super::table::{PgTable, quoted};
use crate::error::{Error, Result};

/// The comment on a publication that we made.
const MARK: &str = "made by lakehead; tables are added to it as jobs need them";

/// A publication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Publication {
    pub(super) name: String,
    /// Whether it has all tables of the database, also those that are still to come.
    pub(super) all_tables: bool,
    pub(super) inserts: bool,
    pub(super) updates: bool,
    pub(super) deletes: bool,
    pub(super) truncates: bool,
    /// Whether changes of partitions are those of the table above them.
    pub(super) via_root: bool,
    /// Whether generated columns that are stored come as well.
    pub(super) generated_columns: bool,
    /// Whether it bears our mark.
    pub(super) is_ours: bool,
    /// Whether the role owns it.
    pub(super) is_owned: bool,
    /// What it has, as `pg_publication_tables` shows it.
    pub(super) tables: Vec<PublishedTable>,
    /// Partitions whose changes are those of a table above them.
    pub(super) partitions_under_roots: Vec<u32>,
}

/// A table of a publication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PublishedTable {
    pub(super) oid: u32,
    /// The columns that are published.
    pub(super) columns: Vec<String>,
    /// Which rows are published; all if None.
    pub(super) row_filter: Option<String>,
}

/// What must be done before the slot is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PublicationStep {
    /// Nothing.
    Ready,
    /// To run these, in one transaction.
    Run(Vec<String>),
}

impl Publication {
    pub(super) fn table(&self, oid: u32) -> Option<&PublishedTable> {
        self.tables.iter().find(|table| table.oid == oid)
    }
}

/// Looks at a publication; None if there is none of that name.
///
/// # Errors
/// The server cannot be asked.
pub(super) async fn inspect_publication(
    server: &PgServer,
    client: &Client,
    name: &str,
) -> Result<Option<Publication>> {
    const PUBLICATION: &str = "SELECT p.puballtables, p.pubinsert, p.pubupdate, p.pubdelete, p.pubtruncate, p.pubviaroot, \
         coalesce(obj_description(p.oid, 'pg_publication'), ''), to_jsonb(p) ->> 'pubgencols' = 's', pg_has_role(p.pubowner, 'USAGE'), \
         coalesce((SELECT array_agg(l.relid::oid) FROM pg_publication_tables t JOIN pg_namespace n ON n.nspname = t.schemaname \
         JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename AND c.relkind = 'p' \
         CROSS JOIN LATERAL pg_partition_tree(c.oid) l WHERE t.pubname = p.pubname AND l.relid <> c.oid), '{}') FROM pg_publication p WHERE p.pubname = $1::text::name";
    // Columns and filters came with version 15; before, JSON has none of them.
    const TABLES: &str = "SELECT c.oid, \
         coalesce((SELECT array_agg(value) FROM jsonb_array_elements_text(to_jsonb(t) -> 'attnames') value), \
         (SELECT array_agg(a.attname::text) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)), \
         to_jsonb(t) ->> 'rowfilter' \
         FROM pg_publication_tables t JOIN pg_namespace n ON n.nspname = t.schemaname \
         JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename WHERE t.pubname = $1::text::name";
    let failed = |error| server.sql_error(&format!("looking at publication {name}"), error);
    let Some(row) = client.query_opt(PUBLICATION, &[&name]).await.map_err(failed)? else { return Ok(None) };
    let tables = client.query(TABLES, &[&name]).await.map_err(failed)?;
    let tables = tables.iter().map(|row| {
        Ok(PublishedTable {
            oid: row.try_get(0)?,
            columns: row.try_get::<_, Option<_>>(1)?.unwrap_or_default(),
            row_filter: row.try_get(2)?,
        })
    });
    let tables = tables.collect::<Result<_, tokio_postgres::Error>>().map_err(failed)?;
    let read = || -> Result<Publication, tokio_postgres::Error> {
        let comment: String = row.try_get(6)?;
        Ok(Publication {
            name: name.to_owned(),
            all_tables: row.try_get(0)?,
            inserts: row.try_get(1)?,
            updates: row.try_get(2)?,
            deletes: row.try_get(3)?,
            truncates: row.try_get(4)?,
            via_root: row.try_get(5)?,
            is_ours: comment == MARK,
            generated_columns: row.try_get::<_, Option<bool>>(7)?.unwrap_or_default(),
            is_owned: row.try_get(8)?,
            partitions_under_roots: row.try_get(9)?,
            tables,
        })
    };
    read().map(Some).map_err(failed)
}

/// Returns what makes a publication of tables, as we make it: with our mark.
pub(super) fn create_statements(name: &str, autocreate: Autocreate, tables: &[&PgTable]) -> Vec<String> {
    let via_root = tables.iter().any(|table| table.is_partitioned);
    let with = if via_root { " WITH (publish_via_partition_root = true)" } else { "" };
    let what = match autocreate {
        Autocreate::AllTables => " FOR ALL TABLES".to_owned(),
        Autocreate::NoTables => String::new(),
        Autocreate::Disabled | Autocreate::Filtered => format!(" FOR TABLE {}", list(tables)),
    };
    vec![
        format!("CREATE PUBLICATION {}{what}{with};", quoted(name)),
        format!("COMMENT ON PUBLICATION {} IS '{MARK}';", quoted(name)),
    ]
}

/// Returns what adds tables to a publication.
pub(super) fn add_statement(name: &str, tables: &[&PgTable]) -> String {
    format!("ALTER PUBLICATION {} ADD TABLE {};", quoted(name), list(tables))
}

fn list(tables: &[&PgTable]) -> String {
    tables.iter().map(|table| table.own_rows()).collect::<Vec<_>>().join(", ")
}

/// Does what must be done before the slot is made.
///
/// # Errors
/// The server refuses.
pub(super) async fn prepare_publication(
    server: &PgServer,
    client: &Client,
    name: &str,
    step: &PublicationStep,
) -> Result<()> {
    let PublicationStep::Run(statements) = step else { return Ok(()) };
    let sql = format!("BEGIN; {} COMMIT;", statements.join(" "));
    match client.batch_execute(&sql).await {
        Ok(()) => Ok(()),
        Err(error) => {
            // The connection is left outside of the transaction that failed.
            drop(client.batch_execute("ROLLBACK").await);
            let is_there = error.code().is_some_and(|code| MADE_MEANWHILE.contains(code));
            let failed = server.sql_error(&format!("preparing publication {name}"), error);
            if !is_there {
                return Err(failed);
            }
            // Whoever looks again finds it.
            Err(Error::unavailable(failed.message().to_owned()).caused_by(failed))
        }
    }
}

/// What the server says when somebody else has just made the publication, or added the table.
const MADE_MEANWHILE: [SqlState; 2] = [SqlState::UNIQUE_VIOLATION, SqlState::DUPLICATE_OBJECT];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connector::postgres::testing::TestDatabase;
    use crate::error::ErrorKind;

    #[tokio::test]
    async fn a_publication_that_another_job_has_made_meanwhile_is_looked_at_again() {
        TestDatabase::with(async |database| {
            database.run("CREATE TABLE t (id int PRIMARY KEY)").await;
            let create = PublicationStep::Run(create_statements("p", Autocreate::AllTables, &[]));
            prepare_publication(&database.server, &database.client, "p", &create).await.unwrap();
            let add = PublicationStep::Run(vec!["ALTER PUBLICATION q ADD TABLE public.t;".to_owned()]);
            database.run("CREATE PUBLICATION q FOR TABLE t").await;
            for (name, step) in [("p", &create), ("q", &add)] {
                let again = prepare_publication(&database.server, &database.client, name, step).await;
                let error = again.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            }
            // While the other one has not finished.
            let other = database.connect().await;
            other.batch_execute("BEGIN; CREATE PUBLICATION r").await.unwrap();
            let create = PublicationStep::Run(create_statements("r", Autocreate::NoTables, &[]));
            let client = database.connect().await;
            let making = prepare_publication(&database.server, &client, "r", &create);
            let ending = async {
                let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid' AND pid IN \
                     (SELECT pid FROM pg_stat_activity WHERE datname = current_database())";
                database.wait_for(waiting, "1").await;
                other.batch_execute("COMMIT").await.unwrap();
            };
            let (made, ()) = tokio::join!(making, ending);
            assert_eq!(made.unwrap_err().kind(), ErrorKind::Unavailable);
        })
        .await;
    }
}
