//! Expressions over a file's columns: a conversion, and a veil over columns whose statistics must not be believed.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType as ArrowType, Schema};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;

use super::conversion::Conversion;

/// A column of a file as the wanted column.
#[derive(Debug)]
pub(in crate::connector::iceberg::scan) struct ConvertExpr {
    column: Arc<dyn PhysicalExpr>,
    conversion: Arc<Conversion>,
}

impl ConvertExpr {
    pub(in crate::connector::iceberg::scan) fn new(
        column: Arc<dyn PhysicalExpr>,
        conversion: Arc<Conversion>,
    ) -> ConvertExpr {
        ConvertExpr { column, conversion }
    }
}

impl PartialEq for ConvertExpr {
    fn eq(&self, other: &ConvertExpr) -> bool {
        self.column.eq(&other.column) && self.conversion == other.conversion
    }
}

impl Eq for ConvertExpr {}

impl Hash for ConvertExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.column.hash(state);
        self.conversion.target.hash(state);
    }
}

impl fmt::Display for ConvertExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as {}", self.column, self.conversion.target.data_type())
    }
}

impl PhysicalExpr for ConvertExpr {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn data_type(&self, _: &Schema) -> DataFusionResult<ArrowType> {
        Ok(self.conversion.target.data_type().clone())
    }

    fn nullable(&self, schema: &Schema) -> DataFusionResult<bool> {
        self.column.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> DataFusionResult<ColumnarValue> {
        let column = self.column.evaluate(batch)?.into_array(batch.num_rows())?;
        Ok(ColumnarValue::Array(self.conversion.apply(&column)?))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.column]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> DataFusionResult<Arc<dyn PhysicalExpr>> {
        let column = children.pop().unwrap_or_else(|| Arc::clone(&self.column));
        Ok(Arc::new(ConvertExpr { column, conversion: Arc::clone(&self.conversion) }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A FLOAT or DOUBLE column that no statistics are looked up for. The bounds in a file leave NaN out, but NaN counts as the greatest
/// value wherever DataFusion compares by Arrow's total order (ORDER BY with LIMIT, keys of joins, IN); and a bound of 0 may stand for
/// -0. With the veil, what prunes by statistics does not see a column here.
#[derive(Debug, Eq)]
pub(in crate::connector::iceberg::scan) struct VeiledColumn(Arc<dyn PhysicalExpr>);

impl Hash for VeiledColumn {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl PartialEq for VeiledColumn {
    fn eq(&self, other: &VeiledColumn) -> bool {
        self.0.eq(&other.0)
    }
}

impl VeiledColumn {
    pub(in crate::connector::iceberg::scan) fn new(column: Arc<dyn PhysicalExpr>) -> VeiledColumn {
        VeiledColumn(column)
    }
}

impl fmt::Display for VeiledColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PhysicalExpr for VeiledColumn {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn data_type(&self, schema: &Schema) -> DataFusionResult<ArrowType> {
        self.0.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> DataFusionResult<bool> {
        self.0.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> DataFusionResult<ColumnarValue> {
        self.0.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.0]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> DataFusionResult<Arc<dyn PhysicalExpr>> {
        Ok(children.pop().map_or_else(|| self as _, |column| Arc::new(VeiledColumn(column)) as _))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_sql(f)
    }
}
