//! Whether it is known which rows a TRUNCATE takes away.

use crate::connector::postgres::connection::PgServer;
use crate::connector::postgres::options::TruncatePolicy;
use crate::connector::postgres::table::PgTable;
use crate::error::{Error, Result};

/// How many tables an error names.
const NAMED_MAX: usize = 5;

/// Fails if a declared table, of which a TRUNCATE is to delete the rows, reads several tables: once they are one, nobody knows which rows
/// the truncated one had.
///
/// # Errors
/// It does.
pub(in crate::connector::postgres) fn check_truncates_one(
    server: &PgServer,
    declared: &str,
    policy: TruncatePolicy,
    tables: &[PgTable],
) -> Result<()> {
    if policy != TruncatePolicy::Delete || tables.len() < 2 {
        return Ok(());
    }
    let mut named: Vec<String> = tables.iter().take(NAMED_MAX).map(PgTable::label).collect();
    if tables.len() > NAMED_MAX {
        named.push("…".to_owned());
    }
    Err(Error::validation(format!(
        "Postgres '{}': 'lakehead.postgres.truncate' = 'delete' needs a declared table that reads one table, and '{declared}' reads {}: {}",
        server.name(),
        tables.len(),
        named.join(", ")
    ))
    .hint("Declare each by itself, and put them together with UNION ALL; or set 'lakehead.postgres.truncate' = 'fail' or 'ignore'."))
}
