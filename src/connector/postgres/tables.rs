//! Finding the tables that a selection means, and how the server describes them. The catalogs themselves are read: the views of
//! information_schema leave out what the role may not read, which must be named instead.

use std::collections::HashMap;

use tokio_postgres::{Client, Row};

use super::connection::PgServer;
use super::pgoutput::ReplicaIdentity;
use super::settings::TableSelection;
use super::table::{PgColumn, PgTable};
use crate::error::{Error, ErrorKind, Result};
use crate::options::nearest;

/// Tables that could be meant: ordinary and partitioned ones that are not the server's own. A partition has the table above it.
const CANDIDATES: &str = "SELECT c.oid, n.nspname::text, c.relname::text, c.relkind = 'p', c.relreplident::text, \
     coalesce((SELECT max(p.relid::oid) FROM pg_partition_ancestors(c.oid) p WHERE c.relispartition AND p.relid <> c.oid), 0::oid) \
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' \
     ORDER BY n.nspname::text COLLATE \"C\", c.relname::text COLLATE \"C\"";

/// How many rows and pages tables have; those of a partitioned one are in its partitions.
const SIZES: &str = "SELECT c.oid, \
     CASE WHEN c.relkind = 'p' THEN (SELECT CASE WHEN bool_and(l.reltuples >= 0) THEN sum(l.reltuples::float8) ELSE -1 END \
     FROM pg_partition_tree(c.oid) t JOIN pg_class l ON l.oid = t.relid WHERE t.isleaf) ELSE c.reltuples::float8 END, \
     CASE WHEN c.relkind = 'p' THEN 0 ELSE coalesce(pg_relation_size(c.oid), 0) / current_setting('block_size')::int8 END \
     FROM pg_class c WHERE c.oid = ANY($1)";

/// Columns in order. `$2` says which generated ones count.
const COLUMNS: &str = "SELECT a.attrelid, a.attname::text, a.atttypid, a.atttypmod FROM pg_attribute a \
     WHERE a.attrelid = ANY($1) AND a.attnum > 0 AND NOT a.attisdropped AND (a.attgenerated = '' OR a.attgenerated::text = ANY($2)) \
     ORDER BY a.attrelid, a.attnum";

/// Columns of primary keys, in the order of the key.
const KEYS: &str = "SELECT i.indrelid, a.attname::text FROM pg_index i \
     CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY k (attnum, place) \
     JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum \
     WHERE i.indrelid = ANY($1) AND i.indisprimary AND k.place <= i.indnkeyatts ORDER BY i.indrelid, k.place";

/// Which columns of tables come to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GeneratedColumns<'a> {
    /// All: nothing but SELECT reads them.
    Selected,
    /// Those that this publication has; none before version 18.
    PublishedBy(&'a str),
}

/// A table that could be meant.
struct Candidate {
    oid: u32,
    schema: String,
    name: String,
    is_partitioned: bool,
    identity: ReplicaIdentity,
    /// The table above it, however far, if it is a partition.
    root: Option<u32>,
}

/// Returns the tables that a selection means, sorted by schema and name.
///
/// # Errors
/// There is none; the server cannot be asked.
pub(super) async fn load_tables(
    server: &PgServer,
    client: &Client,
    selection: &TableSelection,
    generated: GeneratedColumns<'_>,
) -> Result<Vec<PgTable>> {
    let found = find_tables(server, client, selection, generated).await?;
    if found.is_empty() {
        return Err(none_found(server, client, selection).await?);
    }
    Ok(found)
}

/// Returns the tables that a selection means, which may be none.
///
/// # Errors
/// The server cannot be asked.
pub(super) async fn find_tables(
    server: &PgServer,
    client: &Client,
    selection: &TableSelection,
    generated: GeneratedColumns<'_>,
) -> Result<Vec<PgTable>> {
    let candidates = candidates(server, client).await?;
    describe(server, client, &chosen(&candidates, selection), generated).await
}

/// Returns the numbers and labels of the tables that selections mean, by selection.
///
/// # Errors
/// The server cannot be asked.
pub(super) async fn list_tables<'a>(
    server: &PgServer,
    client: &Client,
    selections: impl IntoIterator<Item = &'a TableSelection>,
) -> Result<Vec<Vec<(u32, String)>>> {
    let candidates = candidates(server, client).await?;
    let label = |table: &Candidate| (table.oid, format!("{}.{}", table.schema, table.name));
    let listed = |selection| chosen(&candidates, selection).into_iter().map(label).collect();
    Ok(selections.into_iter().map(listed).collect())
}

/// Chooses the tables that a selection means.
fn chosen<'a>(candidates: &'a [Candidate], selection: &TableSelection) -> Vec<&'a Candidate> {
    let mut chosen: Vec<&Candidate> = candidates
        .iter()
        .filter(|table| selection.matches(&table.schema, &table.name))
        .filter(|table| selection.includes_partitioned || !table.is_partitioned)
        .collect();
    // A partition's rows come with the table above it.
    let roots: Vec<u32> = chosen.iter().filter(|table| table.is_partitioned).map(|table| table.oid).collect();
    chosen.retain(|table| table.root.is_none_or(|root| !roots.contains(&root)));
    chosen
}

async fn candidates(server: &PgServer, client: &Client) -> Result<Vec<Candidate>> {
    let failed = |error| server.sql_error("listing its tables", error);
    let rows = client.query(CANDIDATES, &[]).await.map_err(failed)?;
    rows.iter()
        .map(|row| {
            let root: u32 = row.try_get(5)?;
            Ok(Candidate {
                oid: row.try_get(0)?,
                schema: row.try_get(1)?,
                name: row.try_get(2)?,
                is_partitioned: row.try_get(3)?,
                identity: ReplicaIdentity::of_letter(row.try_get(4)?),
                root: (root != 0).then_some(root),
            })
        })
        .collect::<Result<_, tokio_postgres::Error>>()
        .map_err(failed)
}

/// Reads what else there is to know of tables.
async fn describe(
    server: &PgServer,
    client: &Client,
    chosen: &[&Candidate],
    generated: GeneratedColumns<'_>,
) -> Result<Vec<PgTable>> {
    let failed = |error| server.sql_error("reading the descriptions of its tables", error);
    let oids: Vec<u32> = chosen.iter().map(|table| table.oid).collect();
    let kinds = generated_kinds(server, client, generated).await?;
    let sizes = client.query(SIZES, &[&oids]).await.map_err(failed)?;
    let columns = client.query(COLUMNS, &[&oids, &kinds]).await.map_err(failed)?;
    let keys = client.query(KEYS, &[&oids]).await.map_err(failed)?;
    let sizes = by_table(&sizes, |row| Ok((row.try_get::<_, f64>(1)?, row.try_get::<_, i64>(2)?)));
    let sizes = sizes.map_err(failed)?;
    let mut columns = by_table(&columns, |row| {
        Ok(PgColumn { name: row.try_get(1)?, type_oid: row.try_get(2)?, type_modifier: row.try_get(3)? })
    })
    .map_err(failed)?;
    let keys = by_table(&keys, |row| row.try_get::<_, String>(1)).map_err(failed)?;
    let described = chosen.iter().map(|table| {
        let columns = columns.remove(&table.oid).unwrap_or_default();
        let key = keys.get(&table.oid).map(Vec::as_slice).unwrap_or_default();
        let place = |name: &String| columns.iter().position(|column| column.name == *name);
        let (rows, pages) =
            sizes.get(&table.oid).and_then(|sizes| sizes.first()).copied().unwrap_or((-1.0, 0));
        PgTable {
            oid: table.oid,
            schema: table.schema.clone(),
            name: table.name.clone(),
            key: key.iter().map(place).collect::<Option<_>>().unwrap_or_default(),
            identity: table.identity,
            is_partitioned: table.is_partitioned,
            row_estimate: (rows >= 0.0).then_some(rows as u64),
            pages: u64::try_from(pages).unwrap_or_default(),
            columns,
        }
    });
    Ok(described.collect())
}

/// Groups rows by the table that their first column names.
fn by_table<T>(
    rows: &[Row],
    read: impl Fn(&Row) -> Result<T, tokio_postgres::Error>,
) -> Result<HashMap<u32, Vec<T>>, tokio_postgres::Error> {
    let mut tables: HashMap<u32, Vec<T>> = HashMap::new();
    for row in rows {
        tables.entry(row.try_get(0)?).or_default().push(read(row)?);
    }
    Ok(tables)
}

/// Returns the kinds of generated columns that count: `s` for those that are stored.
async fn generated_kinds(
    server: &PgServer,
    client: &Client,
    generated: GeneratedColumns<'_>,
) -> Result<Vec<String>> {
    let GeneratedColumns::PublishedBy(publication) = generated else {
        return Ok(vec!["s".to_owned(), "v".to_owned()]);
    };
    let failed = |error| server.sql_error(&format!("looking at publication {publication}"), error);
    // Read through JSON, since the column is not there before version 18.
    let query = "SELECT to_jsonb(p) ->> 'pubgencols' FROM pg_publication p WHERE p.pubname = $1::text::name";
    let row = client.query_opt(query, &[&publication]).await.map_err(failed)?;
    let published: Option<String> = row.map(|row| row.try_get(0)).transpose().map_err(failed)?.flatten();
    Ok(published.filter(|kind| kind == "s").into_iter().collect())
}

/// Says that no table is meant, and what may have been.
async fn none_found(server: &PgServer, client: &Client, selection: &TableSelection) -> Result<Error> {
    let candidates = candidates(server, client).await?;
    let error = Error::new(
        ErrorKind::NotFound,
        format!("Postgres '{}': no table matches {}", server.name(), selection.label()),
    );
    let partitioned =
        candidates.iter().find(|table| table.is_partitioned && selection.matches(&table.schema, &table.name));
    if let Some(table) = partitioned {
        return Ok(error.hint(format!(
            "Table {}.{} is partitioned. To read it as one table: 'scan.include-partitioned-tables.enabled' = 'true'; or name its partitions.",
            table.schema, table.name
        )));
    }
    let labels: Vec<String> =
        candidates.iter().map(|table| format!("{}.{}", table.schema, table.name)).collect();
    let wanted = selection.wanted();
    Ok(error.hint(match nearest(&wanted, labels.iter().map(String::as_str)) {
        Some(near) => format!(
            "Did you mean {near}? 'schema-name' and 'table-name' are regular expressions that match whole names, and capitals count."
        ),
        None if wanted.contains(',') => {
            "'schema-name' and 'table-name' are regular expressions: write 'a|b' for one of two names.".to_owned()
        }
        None => format!(
            "The database has {} tables. 'schema-name' and 'table-name' are regular expressions that match whole names, and capitals count.",
            labels.len()
        ),
    }))
}
