//! Cuts a table into ranges of pages. Rows move between pages, so all ranges of a table are read under one snapshot.

use tokio_postgres::Client;
use tokio_postgres::types::Type;

use crate::connector::postgres::connection::PgServer;
use crate::connector::postgres::table::PgTable;
use crate::error::Result;

/// How many pages a query reads: 16 MB as servers are built usually.
const PAGES_PER_RANGE: u64 = 2048;

/// Pages from one to below another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageRange {
    from: u64,
    /// None: to the end, however far the table has grown since it was cut.
    below: Option<u64>,
}

impl PageRange {
    const ALL: PageRange = PageRange { from: 0, below: None };

    /// Returns the condition that a row is in the range; None if every row is.
    pub(super) fn condition(&self) -> Option<String> {
        let from = (self.from > 0).then(|| format!("ctid >= '({},0)'", self.from));
        let below = self.below.map(|below| format!("ctid < '({below},0)'"));
        let conditions: Vec<String> = from.into_iter().chain(below).collect();
        (!conditions.is_empty()).then(|| conditions.join(" AND "))
    }
}

/// Cuts a table by the size that it has now. Of a partitioned table a range is those pages of each partition: one that is read
/// through its parent needs no right of its own.
///
/// # Errors
/// The server cannot be asked.
pub(super) async fn page_ranges(
    server: &PgServer,
    client: &Client,
    table: &PgTable,
) -> Result<Vec<PageRange>> {
    // Rows that are not in a heap, those of foreign tables among them, have no page to be found by.
    let query = "SELECT sum(pages)::bigint, max(pages)::bigint, bool_and(is_heap) FROM ( \
        SELECT pg_relation_size(c.oid) / current_setting('block_size')::bigint AS pages, coalesce(am.amname = 'heap', false) AS is_heap \
        FROM pg_class c LEFT JOIN pg_am am ON am.oid = c.relam \
        WHERE c.relkind <> 'p' AND (c.oid = $1 OR c.oid IN (SELECT relid FROM pg_partition_tree($1::regclass)))) AS parts";
    let failed = |error| server.sql_error(&format!("asking for the size of table {}", table.label()), error);
    let row = client.query_typed_one(query, &[(&table.oid, Type::OID)]).await.map_err(failed)?;
    let number = |position| row.try_get::<_, Option<i64>>(position).map_err(failed);
    let (all, longest) = (number(0)?.unwrap_or(0), number(1)?.unwrap_or(0));
    let is_heap = row.try_get::<_, Option<bool>>(2).map_err(failed)?.unwrap_or(false);
    if !is_heap {
        return Ok(vec![PageRange::ALL]);
    }
    Ok(cut(all.unsigned_abs(), longest.unsigned_abs()))
}

/// Cuts parts that have so many pages together, and the longest so many.
fn cut(all: u64, longest: u64) -> Vec<PageRange> {
    let count = all.div_ceil(PAGES_PER_RANGE).max(1);
    let step = longest.div_ceil(count).max(1);
    let mut ranges: Vec<PageRange> = (0..longest.max(1))
        .step_by(usize::try_from(step).unwrap_or(usize::MAX))
        .map(|from| PageRange { from, below: Some(from + step) })
        .collect();
    if let Some(last) = ranges.last_mut() {
        last.below = None;
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions(all: u64, longest: u64) -> Vec<String> {
        cut(all, longest).iter().map(|range| range.condition().unwrap_or_else(|| "all".to_owned())).collect()
    }

    #[test]
    fn a_small_table_is_read_at_once() {
        assert_eq!(conditions(0, 0), ["all"]);
        assert_eq!(conditions(2048, 2048), ["all"]);
    }

    #[test]
    fn the_last_range_is_open_for_what_the_table_has_grown() {
        assert_eq!(
            conditions(5000, 5000),
            ["ctid < '(1667,0)'", "ctid >= '(1667,0)' AND ctid < '(3334,0)'", "ctid >= '(3334,0)'"]
        );
    }

    #[test]
    fn a_range_of_a_partitioned_table_is_the_same_pages_of_each_partition() {
        assert_eq!(conditions(4096, 1000), ["ctid < '(500,0)'", "ctid >= '(500,0)'"]);
    }
}
