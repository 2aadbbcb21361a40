//! Puts a file's columns in place of the table's, for DataFusion's Parquet reader: by field id, converted where the types differ,
//! and as a constant where the file does not have them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, SchemaRef};
use arrow::error::ArrowError;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result as DataFusionResult;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion_physical_expr_adapter::{PhysicalExprAdapter, PhysicalExprAdapterFactory};
use iceberg::spec::NameMapping;

use super::conversion::{Conversion, Step};
use super::convert_expr::ConvertExpr;
use super::file_columns::{ColumnSource, FileColumns, missing_value};
use super::read_column::ReadColumn;
use crate::connector::iceberg::value_cast::cast_value;

/// What is known of one file before it is opened.
#[derive(Debug, Clone)]
pub(in crate::connector::iceberg::scan) struct ColumnAdapterFactory {
    /// The columns of the read, in the order of its schema.
    pub(in crate::connector::iceberg::scan) columns: Arc<[ReadColumn]>,
    /// Values that the file's partition gives to columns, by field id.
    pub(in crate::connector::iceberg::scan) constants: Arc<HashMap<i32, ScalarValue>>,
    /// The table's name mapping.
    pub(in crate::connector::iceberg::scan) mapping: Option<Arc<NameMapping>>,
}

impl PhysicalExprAdapterFactory for ColumnAdapterFactory {
    fn create(
        &self,
        logical: SchemaRef,
        physical: SchemaRef,
    ) -> DataFusionResult<Arc<dyn PhysicalExprAdapter>> {
        let file = FileColumns::new(physical.fields(), self.mapping.as_deref());
        Ok(Arc::new(ColumnAdapter { factory: self.clone(), logical, physical, file }))
    }
}

/// The columns of one file.
#[derive(Debug)]
struct ColumnAdapter {
    factory: ColumnAdapterFactory,
    logical: SchemaRef,
    physical: SchemaRef,
    file: FileColumns,
}

impl PhysicalExprAdapter for ColumnAdapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> DataFusionResult<Arc<dyn PhysicalExpr>> {
        // From below: what takes the place of a column holds a column itself, which must stay as it is.
        let rewritten = expr.transform_up(|node| match node.as_any().downcast_ref::<Column>() {
            Some(column) => Ok(Transformed::yes(self.column(column.name())?)),
            None => Ok(Transformed::no(node)),
        });
        rewritten.data()
    }
}

impl ColumnAdapter {
    fn column(&self, name: &str) -> DataFusionResult<Arc<dyn PhysicalExpr>> {
        let wanted = &self.factory.columns[self.logical.index_of(name)?];
        Ok(match self.file.source_of(wanted)? {
            ColumnSource::File(index, conversion) => {
                let column = Arc::new(Column::new(self.physical.field(index).name(), index));
                converted(column, self.physical.field(index).data_type(), conversion)
            }
            ColumnSource::Missing => {
                Arc::new(Literal::new(value_of_missing(wanted, &self.factory.constants)?))
            }
        })
    }
}

/// Returns what rows of a file have in a column that the file does not know: the value of its partition, or the default.
///
/// # Errors
/// The column must not be NULL and has neither.
pub(in crate::connector::iceberg::scan) fn value_of_missing(
    column: &ReadColumn,
    constants: &HashMap<i32, ScalarValue>,
) -> Result<ScalarValue, ArrowError> {
    match constants.get(&column.id) {
        // Of several columns of one field the most exact has made it.
        Some(value) => cast_value(value.clone(), column.field.data_type()),
        None => missing_value(column),
    }
}

/// Converts a column. Casts that keep every value and their order are DataFusion's, which looks through them for statistics.
fn converted(
    column: Arc<dyn PhysicalExpr>,
    file: &ArrowType,
    conversion: Conversion,
) -> Arc<dyn PhysicalExpr> {
    use ArrowType as T;
    match (&conversion.step, file, conversion.target.data_type()) {
        (Step::Keep, ..) => column,
        (Step::Cast, T::Int32, T::Int64) | (Step::Cast, T::Float32, T::Float64) => {
            Arc::new(CastExpr::new(column, conversion.target.data_type().clone(), None))
        }
        (Step::Cast, T::Decimal128(from, from_scale), T::Decimal128(to, to_scale))
            if from <= to && from_scale == to_scale =>
        {
            Arc::new(CastExpr::new(column, conversion.target.data_type().clone(), None))
        }
        _ => Arc::new(ConvertExpr::new(column, Arc::new(conversion))),
    }
}
