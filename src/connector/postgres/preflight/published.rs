//! Whether the publication has all changes of all tables, and what is to be done if it does not. A publication of somebody else is
//! never changed: others may read it.

use tokio_postgres::Client;

use super::DeclaredTable;
use super::problems::Problems;
use super::server_state::ServerState;
use super::table_facts::TableFacts;
use crate::connector::postgres::connection::PgServer;
use crate::connector::postgres::options::TruncatePolicy;
use crate::connector::postgres::pgoutput::ReplicaIdentity;
use crate::connector::postgres::publication::{
    Publication, PublicationStep, add_statement, create_statements, inspect_publication,
};
use crate::connector::postgres::settings::{Autocreate, StreamSettings};
use crate::connector::postgres::slot::WAYS_ON;
use crate::connector::postgres::table::{PgTable, quoted};
use crate::error::{Error, ErrorKind, Result};

/// Fails if the publication does not fit and must be changed by the user; returns what we are to do otherwise.
pub(super) async fn check(
    server: &PgServer,
    client: &Client,
    state: &ServerState,
    stream: &StreamSettings,
    declared: &[DeclaredTable<'_>],
    facts: &TableFacts,
) -> Result<PublicationStep> {
    let name = &stream.publication;
    let tables = tables_of(declared);
    let publication = inspect_publication(server, client, name).await?;
    check_followed(server, name, publication.as_ref(), declared)?;
    let Some(publication) = publication else {
        check_generated(server, state, name, false, &tables, facts)?;
        return create(server, state, stream, &tables, facts);
    };
    check_operations(server, &publication, declared)?;
    check_partitions(server, &publication, &tables)?;
    let lacking: Vec<&PgTable> =
        tables.iter().filter(|table| publication.table(table.oid).is_none()).copied().collect();
    if !lacking.is_empty() {
        check_generated(server, state, name, publication.generated_columns, &lacking, facts)?;
        return add(server, stream, &publication, &lacking, facts);
    }
    check_filters(server, &publication, declared)?;
    Ok(PublicationStep::Ready)
}

/// Fails if the publication does not have what it had when a job began to read.
pub(super) async fn check_kept(
    server: &PgServer,
    client: &Client,
    name: &str,
    declared: &[DeclaredTable<'_>],
) -> Result<()> {
    let publication = inspect_publication(server, client, name).await?;
    // A table that is dropped has no changes, and takes nothing with it that would be missing.
    let oids: Vec<u32> = tables_of(declared).iter().map(|table| table.oid).collect();
    let rows = client.query("SELECT oid FROM pg_class WHERE oid = ANY($1)", &[&oids]).await;
    let failed = |error| server.sql_error("looking for its tables", error);
    let there = rows.map_err(failed)?.iter().map(|row| row.try_get(0)).collect::<Result<Vec<u32>, _>>();
    let there = there.map_err(failed)?;
    let followed: Vec<DeclaredTable<'_>> =
        declared.iter().map(|declared| DeclaredTable { followed: &there, ..*declared }).collect();
    check_followed(server, name, publication.as_ref(), &followed)?;
    let Some(publication) = publication else { return Ok(()) };
    check_operations(server, &publication, declared)?;
    check_partitions(server, &publication, &tables_of(declared))?;
    check_filters(server, &publication, declared)
}

/// Returns all tables once, in order.
fn tables_of<'a>(declared: &[DeclaredTable<'a>]) -> Vec<&'a PgTable> {
    let mut tables: Vec<&PgTable> = declared.iter().flat_map(|declared| declared.tables).collect();
    tables.sort_by_key(|table| (&table.schema, &table.name));
    tables.dedup_by_key(|table| table.oid);
    tables
}

/// Fails if changes that a job has followed do not come any more. That they come again would not bring back those that did not.
fn check_followed(
    server: &PgServer,
    name: &str,
    publication: Option<&Publication>,
    declared: &[DeclaredTable<'_>],
) -> Result<()> {
    let is_published = |oid| publication.is_some_and(|publication| publication.table(oid).is_some());
    // Whether partitions have changes under their own name is looked at apart.
    let is_renamed = |table: &PgTable| {
        publication.is_some_and(|publication| {
            publication.partitions_under_roots.contains(&table.oid)
                || table.is_partitioned && !publication.via_root
        })
    };
    let mut lost = tables_of(declared);
    lost.retain(|table| {
        declared.iter().any(|declared| declared.followed.contains(&table.oid))
            && !is_published(table.oid)
            && !is_renamed(table)
    });
    if lost.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = lost.iter().map(|table| table.label()).collect();
    let (what, statement) = match publication {
        None => {
            ("does not exist any more", create_statements(name, Autocreate::Filtered, &lost).swap_remove(0))
        }
        Some(_) => ("does not have all tables any more", add_statement(name, &lost)),
    };
    Err(Error::new(
        ErrorKind::Rejected,
        format!(
            "Postgres '{}': publication {name} {what}: changes of {} since the job's last checkpoint may be lost",
            server.name(),
            named.join(", ")
        ),
    )
    .hint(format!("Run as the tables' owner: {statement} {WAYS_ON}")))
}

/// Returns what makes the publication, if that is our business and the role may.
fn create(
    server: &PgServer,
    state: &ServerState,
    stream: &StreamSettings,
    tables: &[&PgTable],
    facts: &TableFacts,
) -> Result<PublicationStep> {
    let name = &stream.publication;
    let statements = create_statements(name, stream.autocreate, tables);
    let foreign = tables.iter().find(|table| facts.of(table.oid).is_some_and(|table| !table.is_owned));
    let user = &server.settings().user;
    let reason = match stream.autocreate {
        // One without tables would hide every change.
        Autocreate::Disabled => {
            ". Publication autocreation is disabled, please create one and restart the connector.".to_owned()
        }
        Autocreate::NoTables => String::new(),
        Autocreate::AllTables if !state.is_superuser => {
            format!(", and user '{user}', which is no superuser, may not make one of all tables")
        }
        Autocreate::Filtered if !state.may_create => {
            format!(", and user '{user}' may make none in the database")
        }
        Autocreate::Filtered if foreign.is_some() => {
            let table = foreign.map(|table| table.label()).unwrap_or_default();
            format!(", and user '{user}' may make none, since it does not own table {table}")
        }
        Autocreate::AllTables | Autocreate::Filtered => return Ok(PublicationStep::Run(statements)),
    };
    // What the user makes is the user's, and has not our mark.
    let statement = match stream.autocreate {
        Autocreate::AllTables => &statements[0],
        _ => &create_statements(name, Autocreate::Filtered, tables)[0],
    };
    Err(Error::new(
        ErrorKind::Rejected,
        format!("Postgres '{}': publication {name} does not exist{reason}", server.name()),
    )
    .hint(format!("Run as the tables' owner: {statement}")))
}

/// Returns what adds tables to the publication, if it is ours and the role may.
fn add(
    server: &PgServer,
    stream: &StreamSettings,
    publication: &Publication,
    lacking: &[&PgTable],
    facts: &TableFacts,
) -> Result<PublicationStep> {
    let statement = add_statement(&publication.name, lacking);
    let owns_tables = lacking.iter().all(|table| facts.of(table.oid).is_some_and(|table| table.is_owned));
    let may = publication.is_ours && publication.is_owned && owns_tables;
    if may && stream.autocreate == Autocreate::Filtered {
        return Ok(PublicationStep::Run(vec![statement]));
    }
    let named: Vec<String> = lacking.iter().map(|table| table.label()).collect();
    let whose = if publication.is_ours { "" } else { ", which is not ours to change," };
    Err(Error::new(
        ErrorKind::Rejected,
        format!(
            "Postgres '{}': publication {}{whose} does not have {}",
            server.name(),
            publication.name,
            named.join(", ")
        ),
    )
    .hint(format!("Run as the owner of both: {statement}")))
}

/// Fails if a kind of change is left out.
fn check_operations(
    server: &PgServer,
    publication: &Publication,
    declared: &[DeclaredTable<'_>],
) -> Result<()> {
    let ignores_truncate = declared.iter().all(|table| table.truncate == TruncatePolicy::Ignore);
    let left_out: Vec<&str> = [
        ("insert", publication.inserts),
        ("update", publication.updates),
        ("delete", publication.deletes),
        ("truncate", publication.truncates || ignores_truncate),
    ]
    .into_iter()
    .filter(|(_, has)| !has)
    .map(|(operation, _)| operation)
    .collect();
    if left_out.is_empty() {
        return Ok(());
    }
    let or_else = if left_out == ["truncate"] {
        " or set 'lakehead.postgres.truncate' = 'ignore', and rows that are truncated stay."
    } else {
        ""
    };
    Err(Error::new(
        ErrorKind::Rejected,
        format!(
            "Postgres '{}': publication {} leaves out {}",
            server.name(),
            publication.name,
            left_out.join(", ")
        ),
    )
    .hint(format!(
        "Run as its owner: ALTER PUBLICATION {} SET (publish = 'insert, update, delete, truncate');{or_else}",
        quoted(&publication.name)
    )))
}

/// Fails if changes of partitions come under another name than that of the table that is read.
fn check_partitions(server: &PgServer, publication: &Publication, tables: &[&PgTable]) -> Result<()> {
    let name = quoted(&publication.name);
    let mut problems = Problems::default();
    for table in tables.iter().filter(|table| table.is_partitioned && !publication.via_root) {
        problems.add(
            format!(
                "publication {} has changes of table {} under the names of its partitions",
                publication.name,
                table.label()
            ),
            format!("ALTER PUBLICATION {name} SET (publish_via_partition_root = true);"),
        );
    }
    problems.finish(server, "", "Run as its owner", "")?;
    let mut problems = Problems::default();
    for table in tables.iter().filter(|table| publication.partitions_under_roots.contains(&table.oid)) {
        problems.add(
            format!(
                "publication {} has changes of partition {} under the name of the table above it",
                publication.name,
                table.label()
            ),
            format!("ALTER PUBLICATION {name} SET (publish_via_partition_root = false);"),
        );
    }
    problems.finish(
        server,
        "",
        "Read that table, with 'scan.include-partitioned-tables.enabled' = 'true'; or run as its owner",
        "",
    )
}

/// Fails if rows or columns that are read do not come: what is in the table and what changes in it would differ.
fn check_filters(server: &PgServer, publication: &Publication, declared: &[DeclaredTable<'_>]) -> Result<()> {
    let mut problems = Problems::default();
    for declared in declared {
        for table in declared.tables {
            let Some(published) = publication.table(table.oid) else { continue };
            let again = format!(
                "BEGIN; ALTER PUBLICATION {name} DROP TABLE {table}; ALTER PUBLICATION {name} ADD TABLE {table}; COMMIT;",
                name = quoted(&publication.name),
                table = table.own_rows()
            );
            if let Some(filter) = &published.row_filter {
                problems.add(format!("table {} with the row filter {filter}", table.label()), again.clone());
            }
            let columns = declared.shape.physical.iter().map(|column| &column.name).chain(declared.key);
            let mut lacking: Vec<&str> =
                columns.filter(|column| !published.columns.contains(column)).map(String::as_str).collect();
            lacking.dedup();
            if !lacking.is_empty() {
                problems.add(format!("table {} without column {}", table.label(), lacking.join(", ")), again);
            }
        }
    }
    problems.finish(
        server,
        &format!("publication {} has ", publication.name),
        "Run as its owner",
        " Or make a publication of your own, and name it in 'debezium.publication.name'.",
    )
}

/// Fails if publishing a table would make the server refuse its updates: those of a full identity with generated columns that are not
/// published.
fn check_generated(
    server: &PgServer,
    state: &ServerState,
    name: &str,
    publishes_generated: bool,
    tables: &[&PgTable],
    facts: &TableFacts,
) -> Result<()> {
    if !state.publishes_generated_columns() || publishes_generated {
        return Ok(());
    }
    let mut problems = Problems::default();
    for table in tables {
        let is_full = facts.logged(table.oid).iter().any(|table| table.identity == ReplicaIdentity::Full);
        if is_full && facts.of(table.oid).is_some_and(|table| table.has_generated) {
            problems.add(
                format!("table {}", table.label()),
                format!(
                    "CREATE PUBLICATION {} FOR TABLE {} WITH (publish_generated_columns = stored);",
                    quoted(name),
                    tables.iter().map(|table| table.own_rows()).collect::<Vec<_>>().join(", ")
                ),
            );
        }
    }
    problems.finish(
        server,
        &format!("publication {name} would make the server refuse updates, since REPLICA IDENTITY FULL needs generated columns to be published: "),
        "Run as the tables' owner",
        "",
    )
}
