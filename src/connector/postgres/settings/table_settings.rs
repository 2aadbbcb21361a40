//! What is up to each declared table, also of those that share a slot.

use super::TableSelection;
use crate::connector::postgres::options::{
    CHUNK_KEY_COLUMN, CHUNK_SIZE, DISTRIBUTION_FACTOR_LOWER, DISTRIBUTION_FACTOR_UPPER, NEWLY_ADDED_TABLES,
    TRUNCATE, TruncatePolicy, UNREPRESENTABLE, Unrepresentable,
};
use crate::error::{Error, FlinkClass, Result};
use crate::options::{OptionDef, TableOptions};

/// How tables are cut into chunks while they are read.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::connector::postgres) struct ChunkSettings {
    /// About how many rows a chunk has; as many as take some megabytes if nobody has said.
    pub(in crate::connector::postgres) rows: Option<u64>,
    /// The column whose values cut; the first one of the primary key if None.
    pub(in crate::connector::postgres) key_column: Option<String>,
    /// Keys per row between which keys are taken for evenly distributed.
    pub(in crate::connector::postgres) even_between: (f64, f64),
}

/// The settings of a declared table.
#[derive(Debug, Clone)]
pub(in crate::connector::postgres) struct TableSettings {
    pub(in crate::connector::postgres) selection: TableSelection,
    pub(in crate::connector::postgres) chunks: ChunkSettings,
    pub(in crate::connector::postgres) truncate: TruncatePolicy,
    pub(in crate::connector::postgres) unrepresentable: Unrepresentable,
    /// Whether a job that goes on reads tables that match only now from their beginning.
    pub(in crate::connector::postgres) reads_new_tables: bool,
}

impl TableSettings {
    /// Reads the settings.
    ///
    /// # Errors
    /// An option is wrong.
    pub(in crate::connector::postgres) fn read(options: &TableOptions) -> Result<TableSettings> {
        let rows = options.get(&CHUNK_SIZE)?;
        let lower = options.get(&DISTRIBUTION_FACTOR_LOWER)?;
        let upper = options.get(&DISTRIBUTION_FACTOR_UPPER)?;
        let refused = |text: String| Err(Error::validation(text).class(FlinkClass::ILLEGAL_STATE));
        if rows <= 1 {
            return refused(format!(
                "The value of option '{}' must larger than 1, but is {rows}",
                CHUNK_SIZE.key()
            ));
        }
        if upper.is_nan() || upper < 1.0 {
            return refused(format!(
                "The value of option '{}' must larger than or equals 1.0, but is {upper:?}",
                DISTRIBUTION_FACTOR_UPPER.key()
            ));
        }
        if !(0.0..=1.0).contains(&lower) {
            return refused(format!(
                "The value of option '{}' must between 0.0 and 1.0 inclusively, but is {lower:?}",
                DISTRIBUTION_FACTOR_LOWER.key()
            ));
        }
        Ok(TableSettings {
            selection: TableSelection::read(options)?,
            chunks: ChunkSettings {
                rows: options.raw(CHUNK_SIZE.key()).is_some().then_some(rows),
                key_column: options.get_optional(&CHUNK_KEY_COLUMN)?,
                even_between: (lower, upper),
            },
            truncate: options.get(&TRUNCATE)?,
            unrepresentable: options.get(&UNREPRESENTABLE)?,
            reads_new_tables: options.get(&NEWLY_ADDED_TABLES)?,
        })
    }
}
