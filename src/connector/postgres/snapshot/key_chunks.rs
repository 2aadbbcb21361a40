//! Cuts what is unread of a table into ranges of its key, one by one while they are read.
//!
//! Integers that lie close enough are cut into ranges of equal width, as in Flink. Other keys are asked for: which is the one so many
//! rows further? NaN and infinities are keys like others to that question.

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, SimpleQueryMessage};

use super::chunk_key::{ChunkKey, source};
use super::key_value::KeyType;
use super::keyed_snapshot::{KeyBound, KeyRange, KeyedSnapshot};
use crate::connector::postgres::connection::PgServer;
use crate::connector::postgres::settings::ChunkSettings;
use crate::connector::postgres::table::{PgTable, quoted};
use crate::error::{Error, Result};

/// About how many bytes a range holds where nobody has said how many rows it should: enough that the number of queries does not
/// count, few enough to be held until all have come.
const RANGE_BYTES: u64 = 8 << 20;

/// What a row takes besides its values.
const ROW_OVERHEAD: u64 = 24;

/// The ranges of a table that are still to be read.
#[derive(Debug)]
pub(super) struct KeyChunks {
    server: PgServer,
    table: PgTable,
    key: ChunkKey,
    /// The select list, which tells the width of a row.
    columns: String,
    settings: ChunkSettings,
    plan: Option<Plan>,
    /// Those that have not been begun, the next one last.
    unread: Vec<KeyRange>,
    cutting: Option<Cutting>,
}

/// How big ranges are.
#[derive(Debug, Clone, Copy)]
struct Plan {
    rows_in_table: u64,
    rows_per_range: u64,
    /// How many values wide; None if rows must be counted.
    step: Option<i128>,
}

/// A range of which parts are given out.
#[derive(Debug)]
struct Cutting {
    rest: KeyRange,
    by: Cut,
}

#[derive(Debug)]
enum Cut {
    /// Not at all.
    Nothing,
    /// From a value on at every so many, up to the last one that there is.
    Steps { next: i128, step: i128, last: i128 },
    /// Behind every so many rows.
    Rows(u64),
}

impl KeyChunks {
    pub(super) fn new(
        server: PgServer,
        table: PgTable,
        keyed: &KeyedSnapshot,
        columns: String,
        settings: ChunkSettings,
    ) -> KeyChunks {
        let key = ChunkKey { column: keyed.column().to_owned(), key_type: keyed.key_type() };
        let mut unread = keyed.unread();
        unread.reverse();
        KeyChunks { server, table, key, columns, settings, plan: None, unread, cutting: None }
    }

    pub(super) fn column(&self) -> &str {
        &self.key.column
    }

    /// Finds out how big ranges are, before the first one is asked for.
    ///
    /// # Errors
    /// The server cannot be asked, or the column may be NULL.
    pub(super) async fn prepare(&mut self, client: &Client) -> Result<()> {
        self.check_not_null(client).await?;
        self.plan = Some(self.plan(client).await?);
        Ok(())
    }

    /// Returns the next range. Nothing is lost if it fails or is dropped.
    ///
    /// # Errors
    /// The server cannot be asked.
    pub(super) async fn next(&mut self, client: &Client) -> Result<Option<KeyRange>> {
        if self.cutting.is_none() {
            let Some(range) = self.unread.last() else { return Ok(None) };
            let range = range.clone();
            let by = self.cut(client, &range).await?;
            self.cutting = Some(Cutting { rest: range, by });
            self.unread.pop();
        }
        let rows_bound = match &self.cutting {
            Some(Cutting { rest, by: Cut::Rows(rows) }) => self.bound_behind(client, rest, *rows).await?,
            _ => None,
        };
        let Some(mut cutting) = self.cutting.take() else { return Ok(None) };
        let bound = match &mut cutting.by {
            Cut::Nothing => None,
            Cut::Rows(_) => rows_bound,
            Cut::Steps { next, step, last } => {
                let value = (*next <= *last).then(|| next.to_string());
                *next += *step;
                value.map(|value| KeyBound::new(self.key.key_type, value)).transpose()?
            }
        };
        let Some(bound) = bound else { return Ok(Some(cutting.rest)) };
        let range = KeyRange { from: cutting.rest.from.replace(bound.clone()), below: Some(bound) };
        self.cutting = Some(cutting);
        Ok(Some(range))
    }

    /// Returns about how many ranges there are, those that were read before counted as well.
    pub(super) fn estimate(&self) -> u64 {
        self.plan.map_or(0, |plan| plan.rows_in_table.div_ceil(plan.rows_per_range).max(1))
    }

    /// A row without a key would be in no range.
    async fn check_not_null(&self, client: &Client) -> Result<()> {
        let query =
            "SELECT attnotnull FROM pg_attribute WHERE attrelid = $1 AND attname = $2 AND NOT attisdropped";
        let parameters: [(&(dyn ToSql + Sync), Type); 2] =
            [(&self.table.oid, Type::OID), (&self.key.column, Type::TEXT)];
        let row = client.query_typed_opt(query, &parameters).await.map_err(|error| self.failed(error))?;
        match row.map(|row| row.try_get(0)).transpose().map_err(|error| self.failed(error))? {
            Some(true) => Ok(()),
            _ => Err(Error::validation(format!(
                "table '{}' cannot be read in ranges of column '{}': it may be NULL",
                self.table.label(),
                self.key.column
            ))
            .hint("Leave 'scan.incremental.snapshot.chunk.key-column' away, or declare the column NOT NULL on the server.")),
        }
    }

    /// Decides how a range is cut.
    async fn cut(&mut self, client: &Client, range: &KeyRange) -> Result<Cut> {
        let Some(plan) = self.plan else { return Ok(Cut::Nothing) };
        if range.is_all() && plan.rows_in_table <= plan.rows_per_range {
            return Ok(Cut::Nothing);
        }
        let Some(step) = plan.step else { return Ok(Cut::Rows(plan.rows_per_range)) };
        Ok(match self.ends(client, range).await? {
            Some((first, last)) => Cut::Steps { next: first + step, step, last },
            None => Cut::Nothing,
        })
    }

    async fn plan(&self, client: &Client) -> Result<Plan> {
        let (rows_in_table, width) = self.planner_estimate(client).await?;
        let by_size = RANGE_BYTES / (width + ROW_OVERHEAD);
        let rows_per_range = self.settings.rows.unwrap_or(by_size).max(1);
        let mut plan = Plan { rows_in_table, rows_per_range, step: None };
        let is_integer = self.key.key_type == KeyType::Integer;
        if is_integer && let Some((first, last)) = self.ends(client, &KeyRange::ALL).await? {
            #[expect(clippy::cast_precision_loss, reason = "a rough measure")]
            let values_per_row = (last - first + 1) as f64 / rows_in_table.max(1) as f64;
            let (least, most) = self.settings.even_between;
            if (least..=most).contains(&values_per_row) {
                let step = i128::from(rows_per_range) * (last - first + 1) / i128::from(rows_in_table.max(1));
                plan.step = Some(step.max(1));
            }
        }
        Ok(plan)
    }

    /// Returns how many rows the table has and how wide they are, as the server's planner estimates it. It looks at the size that the
    /// table has now, whether or not anybody has ever counted, and goes through partitions.
    async fn planner_estimate(&self, client: &Client) -> Result<(u64, u64)> {
        let query = format!("EXPLAIN (FORMAT JSON) SELECT {} FROM {} t", self.columns, source(&self.table));
        let answer = client.simple_query(&query).await.map_err(|error| self.failed(error))?;
        let text = answer.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        let plan: Option<serde_json::Value> = text.and_then(|text| serde_json::from_str(text).ok());
        let number = |name: &str| {
            let number = plan.as_ref()?.pointer(&format!("/0/Plan/{name}"))?;
            // Huge numbers are written with an exponent.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rough measure")]
            number.as_u64().or_else(|| number.as_f64().map(|number| number as u64))
        };
        match (number("Plan Rows"), number("Plan Width")) {
            (Some(rows), Some(width)) => Ok((rows, width)),
            _ => Err(Error::data(format!(
                "Postgres '{}': EXPLAIN does not say how many rows table {} has",
                self.server.name(),
                self.table.label()
            ))),
        }
    }

    /// Returns the first and the last integer of a range; None if it has none.
    async fn ends(&self, client: &Client, range: &KeyRange) -> Result<Option<(i128, i128)>> {
        let key = quoted(&self.key.column);
        let query = format!(
            "SELECT min({key})::int8, max({key})::int8 FROM {}{}",
            source(&self.table),
            range
                .condition(&self.key.column)
                .map(|condition| format!(" WHERE {condition}"))
                .unwrap_or_default()
        );
        let row = client.query_typed_one(&query, &[]).await.map_err(|error| self.failed(error))?;
        let end = |position| row.try_get::<_, Option<i64>>(position).map_err(|error| self.failed(error));
        Ok(end(0)?.zip(end(1)?).map(|(first, last)| (i128::from(first), i128::from(last))))
    }

    /// Returns the key of a range so many rows behind its first one; None if it has no more than that.
    async fn bound_behind(&self, client: &Client, range: &KeyRange, rows: u64) -> Result<Option<KeyBound>> {
        // With the table's name, as the result's column has the same one and another order.
        let key = format!("t.{}", quoted(&self.key.column));
        // Above the lower bound, not from it on: it may be the key of many rows, and the next one must be another.
        let from = range.from.as_ref().map(|from| format!("{key} > {}", from.sql()));
        let below = range.below.as_ref().map(|below| format!("{key} < {}", below.sql()));
        let conditions: Vec<String> = from.into_iter().chain(below).collect();
        let query = format!(
            "SELECT {key}::text FROM {} t{}{} ORDER BY {key} OFFSET {rows} LIMIT 1",
            source(&self.table),
            if conditions.is_empty() { "" } else { " WHERE " },
            conditions.join(" AND ")
        );
        let row = client.query_typed_opt(&query, &[]).await.map_err(|error| self.failed(error))?;
        let text: Option<String> =
            row.map(|row| row.try_get(0)).transpose().map_err(|error| self.failed(error))?;
        text.map(|text| KeyBound::new(self.key.key_type, text)).transpose()
    }

    fn failed(&self, error: tokio_postgres::Error) -> Error {
        self.server.sql_error(&format!("cutting table {} into ranges of its key", self.table.label()), error)
    }
}
