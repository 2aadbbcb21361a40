//! One session: configuration, catalogs, and what statements do with them.

mod result;

pub use result::{JobId, QueryResult, ResultColumn, ResultTable, StatementResult};
