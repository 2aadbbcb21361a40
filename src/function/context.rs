//! What expressions may know of the session: its time zone, and for batch queries the instant at which they started.

use chrono::{DateTime, Utc};

/// Time zone and clock of a query.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EvalContext {
    /// The session time zone (`table.local-time-zone`).
    pub zone: chrono_tz::Tz,
    /// The start of the query, where the clock stands still (batch). None: read the clock for every batch of rows (streams).
    pub query_start: Option<DateTime<Utc>>,
    /// The current database, for CURRENT_DATABASE().
    pub database: String,
}

impl EvalContext {
    /// Returns the instant that CURRENT_TIMESTAMP stands for now.
    pub fn now(&self) -> DateTime<Utc> {
        self.query_start.unwrap_or_else(Utc::now)
    }
}
