//! The seam to DataFusion: every bound call and operator is one `FlinkFunction`, whose types were settled by the binder.

use std::any::Any;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::DataType as ArrowType;
use datafusion::common::ScalarValue;
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::expr::ScalarFunction as ScalarFunctionExpr;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::operand::Operand;
use super::{Call, Determinism, EvalContext, Inferred, ScalarFunction};
use crate::error::{Error, Result};
use crate::schema::DataType;

/// The kernel behind an operator, CAST or LIKE: what has no call syntax of its own.
pub(super) struct Operator {
    /// What plans show.
    pub(super) name: &'static str,
    /// Computes the column.
    pub(super) invoke: fn(&Call<'_>, &[Operand]) -> Result<arrow::array::ArrayRef>,
}

/// What computes a `FlinkFunction`.
#[derive(Clone, Copy)]
enum Body {
    Function(&'static dyn ScalarFunction),
    Operator(&'static Operator),
}

/// A function or operator with settled types, as DataFusion sees it.
#[derive(Clone)]
struct FlinkFunction {
    body: Body,
    inferred: Inferred,
    context: Arc<EvalContext>,
    signature: Signature,
    result: ArrowType,
}

/// Builds a call. The arguments have the types that `inferred` asks for.
pub fn call(
    function: &'static dyn ScalarFunction,
    arguments: Vec<Expr>,
    inferred: &Inferred,
    context: &Arc<EvalContext>,
) -> Expr {
    match function.rewrite(&arguments, inferred, context) {
        Some(expr) => expr,
        None => build(Body::Function(function), arguments, inferred.clone(), context),
    }
}

/// Builds the call of an operator's kernel.
pub(super) fn operator(
    operator: &'static Operator,
    arguments: Vec<Expr>,
    types: Vec<DataType>,
    result: DataType,
    context: &Arc<EvalContext>,
) -> Expr {
    build(Body::Operator(operator), arguments, Inferred { arguments: types, result }, context)
}

fn build(body: Body, arguments: Vec<Expr>, inferred: Inferred, context: &Arc<EvalContext>) -> Expr {
    let volatility = match body.determinism() {
        Determinism::Deterministic => Volatility::Immutable,
        Determinism::QueryConstant if context.query_start.is_some() => Volatility::Immutable,
        Determinism::QueryConstant | Determinism::Volatile => Volatility::Volatile,
    };
    let signature = match arguments.len() {
        0 => Signature::nullary(volatility),
        count => Signature::any(count, volatility),
    };
    let result = inferred.result.to_arrow();
    let function = FlinkFunction { body, inferred, context: Arc::clone(context), signature, result };
    Expr::ScalarFunction(ScalarFunctionExpr::new_udf(Arc::new(ScalarUDF::new_from_impl(function)), arguments))
}

/// Returns the type of a call's result, if the function is one of ours.
pub(super) fn result_type(call: &ScalarFunctionExpr) -> Option<&DataType> {
    let function = call.func.inner().as_any().downcast_ref::<FlinkFunction>()?;
    Some(&function.inferred.result)
}

impl Body {
    fn name(&self) -> &'static str {
        match self {
            Body::Function(function) => function.name(),
            Body::Operator(operator) => operator.name,
        }
    }

    fn determinism(&self) -> Determinism {
        match self {
            Body::Function(function) => function.determinism(),
            Body::Operator(_) => Determinism::Deterministic,
        }
    }

    fn invoke(&self, call: &Call<'_>, operands: &[Operand]) -> Result<arrow::array::ArrayRef> {
        match self {
            Body::Function(function) => function.invoke(call, operands),
            Body::Operator(operator) => (operator.invoke)(call, operands),
        }
    }
}

impl std::fmt::Debug for FlinkFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlinkFunction")
            .field("name", &self.body.name())
            .field("inferred", &self.inferred)
            .finish()
    }
}

// Names are unique among functions and among operators, and the two kinds do not share one.
impl PartialEq for FlinkFunction {
    fn eq(&self, other: &FlinkFunction) -> bool {
        self.body.name() == other.body.name()
            && self.inferred == other.inferred
            && self.context == other.context
    }
}

impl Eq for FlinkFunction {}

impl Hash for FlinkFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.body.name().hash(state);
        self.inferred.result.hash(state);
        self.inferred.arguments.hash(state);
    }
}

impl ScalarUDFImpl for FlinkFunction {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> &str {
        self.body.name()
    }

    /// The result type is part of the name: casts of one column to two types must not share it.
    fn schema_name(&self, arguments: &[Expr]) -> DataFusionResult<String> {
        // A longer name is shortened to its hash: names of nested calls contain each other, and are asked for at every level.
        const NAME_BYTES_MAX: usize = 256;
        let arguments: Vec<String> =
            arguments.iter().map(|argument| argument.schema_name().to_string()).collect();
        let mut arguments = arguments.join(", ");
        if arguments.len() > NAME_BYTES_MAX {
            let mut hasher = DefaultHasher::new();
            arguments.hash(&mut hasher);
            arguments = format!("#{:016x}", hasher.finish());
        }
        Ok(format!("{}({arguments}): {}", self.body.name(), self.inferred.result))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> DataFusionResult<ArrowType> {
        Ok(self.result.clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let mut operands = Vec::with_capacity(arguments.args.len());
        for argument in arguments.args {
            operands.push(match argument {
                ColumnarValue::Array(array) => Operand::column(array),
                ColumnarValue::Scalar(value) => Operand::constant(value.to_array()?),
            });
        }
        let is_constant =
            operands.iter().all(Operand::is_constant) && self.body.determinism() != Determinism::Volatile;
        let row_count = if is_constant { 1 } else { arguments.number_rows };
        let call = Call {
            arguments: &self.inferred.arguments,
            result: &self.inferred.result,
            context: &self.context,
            row_count,
        };
        let array = self.body.invoke(&call, &operands)?;
        if array.data_type() != &self.result || array.len() != row_count {
            return Err(Error::internal(format!(
                "{} returned {} rows of {} instead of {row_count} of {}",
                self.body.name(),
                array.len(),
                array.data_type(),
                self.result
            ))
            .into());
        }
        if is_constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(ColumnarValue::Array(array))
    }
}
