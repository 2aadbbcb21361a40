//! The options that the client itself reads: `sql-client.*` and `table.display.*`.

use crate::error::Result;
use crate::options::{
    COLOR_SCHEMA, MAX_COLUMN_WIDTH, MAX_TABLE_RESULT_ROWS, PRINT_TIME_COST, RESULT_MODE, ResultMode,
    SHOW_LINE_NUMBERS, SessionConfig, VERBOSE,
};

/// Returns the result mode.
///
/// # Errors
/// The value is none of the three modes.
pub(crate) fn result_mode(config: &SessionConfig) -> Result<ResultMode> {
    config.get(&RESULT_MODE)
}

/// Returns how many rows table mode keeps, at least one.
///
/// # Errors
/// The value is no number.
pub(crate) fn max_table_result_rows(config: &SessionConfig) -> Result<usize> {
    Ok(usize::try_from(config.get(&MAX_TABLE_RESULT_ROWS)?).unwrap_or(1).max(1))
}

/// Returns whether errors are printed with all of their causes. A bad value counts as false: it is asked for while an error
/// is printed.
pub(crate) fn is_verbose(config: &SessionConfig) -> bool {
    config.get(&VERBOSE).unwrap_or(false)
}

/// Returns whether footers show the time.
///
/// # Errors
/// The value is neither true nor false.
pub(crate) fn prints_time_cost(config: &SessionConfig) -> Result<bool> {
    config.get(&PRINT_TIME_COST)
}

/// Returns the name of the colour scheme.
pub(crate) fn color_schema(config: &SessionConfig) -> String {
    config.get(&COLOR_SCHEMA).unwrap_or_default()
}

/// Returns whether continuation prompts show line numbers.
pub(crate) fn shows_line_numbers(config: &SessionConfig) -> bool {
    config.get(&SHOW_LINE_NUMBERS).unwrap_or(false)
}

/// Returns the widest that a column is printed, at least one.
///
/// # Errors
/// The value is no number.
pub(crate) fn max_column_width(config: &SessionConfig) -> Result<usize> {
    Ok(usize::try_from(config.get(&MAX_COLUMN_WIDTH)?).unwrap_or(1).max(1))
}
