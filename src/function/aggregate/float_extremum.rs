//! MIN and MAX of FLOAT and DOUBLE: DataFusion's, but for groups. Its accumulator of many groups begins with the largest finite number
//! and compares with `<`, so that Infinity would become that number and NaN, the largest of all in Flink, would depend on the order.

use std::any::Any;
use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, FieldRef};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature};

/// MIN or MAX of floats.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct FloatExtremum(Arc<AggregateUDF>);

impl FloatExtremum {
    /// Wraps DataFusion's function.
    pub(super) fn new(function: &Arc<AggregateUDF>) -> FloatExtremum {
        FloatExtremum(Arc::clone(function))
    }
}

impl AggregateUDFImpl for FloatExtremum {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, arguments: &[ArrowType]) -> DataFusionResult<ArrowType> {
        self.0.return_type(arguments)
    }

    fn coerce_types(&self, arguments: &[ArrowType]) -> DataFusionResult<Vec<ArrowType>> {
        self.0.coerce_types(arguments)
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> DataFusionResult<Box<dyn Accumulator>> {
        self.0.accumulator(arguments)
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> DataFusionResult<Vec<FieldRef>> {
        self.0.state_fields(arguments)
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        false
    }
}
