//! Comparisons of doubles by IEEE's rules, as the functions that the binder makes of them look to a scan.

use std::any::Any;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::{DataType as ArrowType, Float64Type};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::connector::iceberg::scan) enum Comparison {
    Eq,
    NotEq,
    Lt,
    LtEq,
    Gt,
    GtEq,
}

impl Comparison {
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Comparison::Eq => left == right,
            Comparison::NotEq => left != right,
            Comparison::Lt => left < right,
            Comparison::LtEq => left <= right,
            Comparison::Gt => left > right,
            Comparison::GtEq => left >= right,
        }
    }
}

/// Builds a comparison of two doubles.
pub(in crate::connector::iceberg::scan) fn compare(comparison: Comparison, left: Expr, right: Expr) -> Expr {
    let function = Ieee { comparison, signature: Signature::any(2, Volatility::Immutable) };
    ScalarUDF::new_from_impl(function).call(vec![left, right])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Ieee {
    comparison: Comparison,
    signature: Signature,
}

impl ScalarUDFImpl for Ieee {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> &str {
        match self.comparison {
            Comparison::Eq => "=",
            Comparison::NotEq => "<>",
            Comparison::Lt => "<",
            Comparison::LtEq => "<=",
            Comparison::Gt => ">",
            Comparison::GtEq => ">=",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays: Vec<ArrayRef> =
            args.args.iter().map(|value| value.to_array(args.number_rows)).collect::<Result<_>>()?;
        let (left, right) =
            (arrays[0].as_primitive::<Float64Type>(), arrays[1].as_primitive::<Float64Type>());
        let holds = |(left, right): (Option<f64>, Option<f64>)| Some(self.comparison.holds(left?, right?));
        Ok(ColumnarValue::Array(Arc::new(left.iter().zip(right.iter()).map(holds).collect::<BooleanArray>())))
    }
}
