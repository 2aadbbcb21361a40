//! `FOR SYSTEM_TIME AS OF` a constant: the table as it was then. As of a column it is a temporal join, which is not built yet.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::Schema;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::{ColumnarValue, Expr};
use datafusion::physical_expr::create_physical_expr;
use sqlparser::ast;

use super::Binder;
use crate::error::{Error, Result};
use crate::plan::tables::BoundTable;
use crate::schema::TypeRoot;

/// The precision of the times at which tables change.
const MILLISECONDS: u8 = 3;

impl Binder<'_> {
    /// Returns a table as of the time that an expression says.
    pub(super) fn as_of(&mut self, table: BoundTable, time: &ast::Expr) -> Result<BoundTable> {
        let names_column = ast::visit_expressions(time, |expr| match expr {
            ast::Expr::Identifier(_)
            | ast::Expr::CompoundIdentifier(_)
            | ast::Expr::CompoundFieldAccess { .. } => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        if names_column.is_break() {
            return Err(self.unsupported(time, "a temporal join (FOR SYSTEM_TIME AS OF a column)"));
        }
        let millis = self.instant(time)?;
        table.as_of(millis).map_err(|error| error.at(self.span(time)))
    }

    /// Makes the error for the time of something that is made of tables.
    pub(super) fn only_of_tables(&self, name: &ast::ObjectName, relation: &str) -> Error {
        Error::unsupported(format!("'{relation}' is no table: FOR SYSTEM_TIME AS OF cannot be applied to it"))
            .at(self.span(name))
            .hint("Write it behind the tables that the query reads.")
    }

    /// Evaluates a constant time, in milliseconds since 1970. One without a zone is in the session's.
    fn instant(&mut self, time: &ast::Expr) -> Result<i64> {
        let bound = self.bind_constant(time)?;
        if !matches!(bound.data_type.root, TypeRoot::Timestamp(_) | TypeRoot::TimestampLtz(_)) {
            let family = bound.data_type.root.family();
            let message =
                format!("The system time period specification expects Timestamp type but is '{family}'");
            return Err(self
                .invalid(time, message)
                .hint("Write TIMESTAMP '2026-01-31 12:00:00'; it is a time in the session's time zone."));
        }
        let instant = self.cast_to(bound, &TypeRoot::TimestampLtz(MILLISECONDS).nullable());
        match constant(&instant.expr) {
            Ok(ScalarValue::TimestampMillisecond(Some(millis), _)) => Ok(millis),
            Ok(_) => Err(self.invalid(time, "the time of FOR SYSTEM_TIME AS OF is NULL")),
            Err(error) => Err(Error::validation(format!(
                "Unsupported time travel expression: {time} for the expression can not be reduced to a constant by Flink."
            ))
            .at(self.span(time))
            .caused_by(error)),
        }
    }
}

/// Evaluates an expression without columns.
fn constant(expr: &Expr) -> Result<ScalarValue> {
    let physical = create_physical_expr(expr, &DFSchema::empty(), &ExecutionProps::new())?;
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)?;
    Ok(match physical.evaluate(&row)? {
        ColumnarValue::Scalar(value) => value,
        ColumnarValue::Array(values) => ScalarValue::try_from_array(&values, 0)?,
    })
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use chrono_tz::Tz;

    use super::*;
    use crate::function::EvalContext;
    use crate::plan::tables::TableSet;

    fn instant(text: &str) -> Result<i64> {
        let expression = crate::sql::parse_expression(text).unwrap();
        let tables = TableSet::default();
        let context = EvalContext {
            zone: Tz::Europe__Berlin,
            query_start: DateTime::from_timestamp(1_000, 0),
            database: String::new(),
        };
        Binder::new(&tables, Arc::new(context), false, Arc::clone(&expression.positions))
            .instant(&expression.body)
    }

    #[test]
    fn a_time_without_a_zone_is_in_the_sessions() {
        assert_eq!(instant("TIMESTAMP '1970-01-01 01:00:00.123456'").unwrap(), 123);
        assert_eq!(instant("TIMESTAMP '1970-07-01 00:00:00' + INTERVAL '1' HOUR").unwrap(), 181 * 86_400_000);
        assert_eq!(instant("CAST('1970-01-01 01:00:02' AS TIMESTAMP(0))").unwrap(), 2_000);
    }

    #[test]
    fn an_instant_is_one() {
        assert_eq!(instant("TO_TIMESTAMP_LTZ(4001, 3)").unwrap(), 4_001);
        assert_eq!(instant("CURRENT_TIMESTAMP - INTERVAL '1' SECOND").unwrap(), 999_000);
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for (text, message) in [
            (
                "DATE '2026-01-01'",
                "The system time period specification expects Timestamp type but is 'DATE'",
            ),
            ("CAST(NULL AS TIMESTAMP(3))", "the time of FOR SYSTEM_TIME AS OF is NULL"),
        ] {
            assert_eq!(instant(text).unwrap_err().message(), message);
        }
    }
}
