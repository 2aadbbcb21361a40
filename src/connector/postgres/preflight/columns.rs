//! Whether the tables have the columns that are declared.

use tokio_postgres::Client;

use super::DeclaredTable;
use super::server_state::ServerState;
use crate::connector::postgres::connection::PgServer;
use crate::connector::postgres::table::{PgTable, quoted};
use crate::error::{Error, Result};
use crate::options::nearest;

/// A declared column that a table lacks.
struct Missing<'a> {
    declared: &'a str,
    table: &'a PgTable,
    column: &'a str,
}

/// Fails if a declared column is not there. `publication` names what changes come by, if any do.
pub(super) async fn check(
    server: &PgServer,
    client: &Client,
    declared: &[DeclaredTable<'_>],
    state: &ServerState,
    publication: Option<&String>,
) -> Result<()> {
    let missing = missing(declared);
    let Some(first) = missing.first() else { return Ok(()) };
    let named = missing.iter().map(|missing| {
        format!(
            "table {} has no column '{}', which '{}' declares",
            missing.table.label(),
            missing.column,
            missing.declared
        )
    });
    let message = format!("Postgres '{}': {}", server.name(), named.collect::<Vec<_>>().join("; "));
    let error = Error::validation(message);
    if let Some(kind) = generated_kind(server, client, first).await? {
        let stored = kind == "s" && state.publishes_generated_columns();
        return Err(error.hint(match publication {
            Some(publication) if stored => format!(
                "The column is generated, and publication {publication} leaves those out. Run as its owner: ALTER PUBLICATION {} SET (publish_generated_columns = stored);",
                quoted(publication)
            ),
            _ => format!(
                "The column is generated, and changes do not have it. Declare '{}' as a computed column: `{}` AS <expression>.",
                first.column, first.column
            ),
        }));
    }
    let names = first.table.columns.iter().map(|column| column.name.as_str());
    Err(error.hint(match nearest(first.column, names) {
        Some(near) => format!("Did you mean '{near}'? Columns are found by their names, and capitals count."),
        None => "Columns are found by their names, and capitals count.".to_owned(),
    }))
}

fn missing<'a>(declared: &'a [DeclaredTable<'a>]) -> Vec<Missing<'a>> {
    let mut missing = Vec::new();
    for declared in declared {
        for table in declared.tables {
            let lacks = |column: &&str| table.columns.iter().all(|there| there.name != **column);
            let columns = declared.shape.physical.iter().map(|column| column.name.as_str());
            missing.extend(columns.filter(lacks).map(|column| Missing {
                declared: &declared.shape.table,
                table,
                column,
            }));
        }
    }
    missing
}

/// Returns how the column is generated, if it is there and is.
async fn generated_kind(server: &PgServer, client: &Client, missing: &Missing<'_>) -> Result<Option<String>> {
    let query = "SELECT attgenerated::text FROM pg_attribute WHERE attrelid = $1 AND attname = $2::text::name AND attgenerated <> ''";
    let failed = |error| server.sql_error("reading the descriptions of its tables", error);
    let row = client.query_opt(query, &[&missing.table.oid, &missing.column]).await.map_err(failed)?;
    row.map(|row| row.try_get(0)).transpose().map_err(failed)
}
