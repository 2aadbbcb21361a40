//! Statement to plan. Names are resolved against the catalogs and everything gets its Flink type; no data is read.

use crate::catalog::CatalogManager;
use crate::error::{Error, Result};
use crate::options::SessionConfig;
use crate::schema::{Column, DataType};
use crate::sql;

/// An expression over a table's columns, bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundExpressionText {
    /// Flink's expanded text: every identifier in back-ticks.
    pub text: String,
    /// The type.
    pub data_type: DataType,
}

/// A view's query, bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundViewQuery {
    /// The query with every name in full and in back-ticks, `FROM` on a line of its own.
    pub expanded_query: String,
    /// Names and types of the columns.
    pub columns: Vec<(String, DataType)>,
}

/// Binds the expression of a computed column or a watermark.
///
/// # Errors
/// It names an unknown column or function, or its types do not fit.
pub fn bind_column_expression(
    _expression: &sql::Expression,
    _columns: &[Column],
    _config: &SessionConfig,
) -> Result<BoundExpressionText> {
    Err(Error::unsupported("expressions in table definitions are not supported yet"))
}

/// Binds the query of a view.
///
/// # Errors
/// It names an unknown table, column or function, or its types do not fit.
#[allow(clippy::unused_async, reason = "binding looks names up in catalogs, which may wait")]
pub async fn bind_view(
    _query: &sql::Query,
    _catalogs: &CatalogManager,
    _config: &SessionConfig,
) -> Result<BoundViewQuery> {
    Err(Error::unsupported("queries are not supported yet"))
}
