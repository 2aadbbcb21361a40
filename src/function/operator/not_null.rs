//! The guard before a sink: a NULL on its way into a NOT NULL column fails the job.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;

use super::super::call::{Operator, operator};
use super::super::operand::Operand;
use super::super::{Call, EvalContext};
use crate::error::{Error, FlinkClass, Result};
use crate::schema::{DataType, TypeRoot};

static NOT_NULL: Operator = Operator { name: "NOT NULL", invoke: guard };

/// Builds an expression that passes values on and fails at a NULL; `column` is what the error names.
pub fn not_null(expr: Expr, data_type: &DataType, column: &str, context: &Arc<EvalContext>) -> Expr {
    let name = Expr::Literal(ScalarValue::Utf8(Some(column.to_owned())), None);
    let types = vec![data_type.clone(), TypeRoot::STRING.not_null()];
    operator(&NOT_NULL, vec![expr, name], types, data_type.clone(), context)
}

fn guard(call: &Call<'_>, operands: &[Operand]) -> Result<ArrayRef> {
    let column = operands[0].to_column(call.row_count)?;
    if column.logical_null_count() == 0 {
        return Ok(column);
    }
    let name = operands.get(1).and_then(Operand::constant_text).unwrap_or_default();
    Err(Error::data(format!(
        "Column '{name}' is NOT NULL, however, a null value is being written into it. You can set job configuration \
         'table.exec.sink.not-null-enforcer'='DROP' to suppress this exception and drop such records silently."
    ))
    .class(FlinkClass::ENFORCER))
}
