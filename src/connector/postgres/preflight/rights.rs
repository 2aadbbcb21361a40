//! What the role must be allowed.

use super::problems::Problems;
use super::server_state::ServerState;
use super::table_facts::TableFacts;
use crate::connector::postgres::connection::PgServer;
use crate::connector::postgres::table::quoted;
use crate::error::Result;

/// Fails if the role lacks a right to read tables or changes; all that it lacks are named.
pub(super) fn check(
    server: &PgServer,
    state: &ServerState,
    facts: &TableFacts,
    reads_changes: bool,
) -> Result<()> {
    let user = quoted(&server.settings().user);
    let mut missing = Problems::default();
    if reads_changes && !state.may_replicate {
        missing.add("the attribute REPLICATION", format!("ALTER ROLE {user} REPLICATION;"));
    }
    for table in facts.tables() {
        if !table.may_use_schema {
            missing.add(
                format!("USAGE of schema {}", table.schema),
                format!("GRANT USAGE ON SCHEMA {} TO {user};", quoted(&table.schema)),
            );
        }
        if !table.may_select {
            missing.add(
                format!("SELECT of table {}", table.label),
                format!("GRANT SELECT ON TABLE {} TO {user};", table.sql),
            );
        }
        if table.hides_rows {
            missing.add(
                format!("the attribute BYPASSRLS, without which policies hide rows of table {}", table.label),
                format!("ALTER ROLE {user} BYPASSRLS;"),
            );
        }
    }
    let what = format!("user '{}' lacks ", server.settings().user);
    missing.finish(server, &what, "Run as a superuser or as the owner", "")
}
