//! Whether updates and deletes say enough of the earlier row.

use std::collections::BTreeSet;

use super::DeclaredTable;
use super::problems::{Problems, Report};
use super::table_facts::{LoggedTable, TableFacts};
use crate::connector::postgres::connection::PgServer;
use crate::connector::postgres::pgoutput::ReplicaIdentity;

/// Reports tables whose replica identity does not fit the declared mode, and those whose changes are not in the log.
pub(super) fn check(
    server: &PgServer,
    declared: &[DeclaredTable<'_>],
    facts: &TableFacts,
    report: &mut Report,
) {
    let mut unlogged = Problems::default();
    let mut without_old_rows = Problems::default();
    let mut without_key = Problems::default();
    for declared in declared {
        for logged in declared.tables.iter().flat_map(|table| facts.logged(table.oid)) {
            if !logged.is_logged {
                unlogged.add(
                    format!("table {} is unlogged", logged.label),
                    format!("ALTER TABLE {} SET LOGGED;", logged.sql),
                );
            }
            let full = format!("ALTER TABLE {} REPLICA IDENTITY FULL;", logged.sql);
            if declared.needs_old_rows() && logged.identity != ReplicaIdentity::Full {
                without_old_rows.add(format!("table {} has {}", logged.label, name(logged)), full);
            } else if let Some(lacking) = lacking_key(declared, logged) {
                without_key.add(format!("table {} has {}{lacking}", logged.label, name(logged)), full);
            }
        }
    }
    report.take(unlogged.finish(server, "changes are not in the log: ", "Run as the owner", ""));
    let has_keys = declared.iter().filter(|table| table.needs_old_rows()).all(|table| !table.key.is_empty());
    let upsert = " Or, where the primary key is enough, declare the table with 'changelog-mode' = 'upsert'.";
    report.take(without_old_rows.finish(
        server,
        "'changelog-mode' = 'all' needs the earlier version of each row: ",
        "Run as the owner",
        if has_keys { upsert } else { "" },
    ));
    report.take(without_key.finish(
        server,
        "updates and deletes would not say which row they mean: ",
        "Run as the owner",
        "",
    ));
}

/// Returns what an identity lacks for the declared key. Without any, the server even refuses updates of a table that is published.
fn lacking_key(declared: &DeclaredTable<'_>, logged: &LoggedTable) -> Option<String> {
    if logged.identity == ReplicaIdentity::Full {
        return None;
    }
    if logged.identity_columns.is_empty() {
        return Some(" and no key that it could use".to_owned());
    }
    let lacking: Vec<&str> = declared
        .key
        .iter()
        .filter(|column| !logged.identity_columns.contains(column))
        .map(String::as_str)
        .collect();
    let column = lacking.first()?;
    Some(format!(", which lacks column '{column}' of the declared primary key"))
}

fn name(logged: &LoggedTable) -> &'static str {
    match logged.identity {
        ReplicaIdentity::Default => "REPLICA IDENTITY DEFAULT",
        ReplicaIdentity::Nothing => "REPLICA IDENTITY NOTHING",
        ReplicaIdentity::Full => "REPLICA IDENTITY FULL",
        ReplicaIdentity::Index => "REPLICA IDENTITY USING INDEX",
    }
}

/// Returns what the user should know of keys: nobody checks that a declared one is unique.
pub(super) fn notes(declared: &[DeclaredTable<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    for declared in declared.iter().filter(|declared| !declared.key.is_empty()) {
        let wanted: BTreeSet<&str> = declared.key.iter().map(String::as_str).collect();
        let differs = declared.tables.iter().find(|table| {
            let key: BTreeSet<&str> = table.key.iter().map(|at| table.columns[*at].name.as_str()).collect();
            key != wanted
        });
        if let Some(table) = differs {
            notes.push(format!(
                "The declared primary key of '{}' is not that of table {}: rows with the same ({}) are taken for one",
                declared.shape.table,
                table.label(),
                declared.key.join(", ")
            ));
        }
    }
    notes
}
