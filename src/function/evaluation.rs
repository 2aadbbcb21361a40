//! Evaluates bound calls in tests, as constants and as columns, which must agree.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::Schema;
use chrono_tz::Tz;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::{ColumnarValue, Expr, col};
use datafusion::physical_expr::create_physical_expr;

use super::{
    Argument, ArithmeticOp, ComparisonOp, EvalContext, arithmetic, call, cast_expr, comparison, find,
    signature_error,
};
use crate::error::{Error, Result};
use crate::schema::{DataType, TypeRoot, format_cell};

/// A value with its type.
#[derive(Debug, Clone)]
pub(super) struct Value {
    pub(super) data_type: DataType,
    pub(super) scalar: ScalarValue,
}

/// Berlin, at an instant in 2024.
pub(super) fn context() -> Arc<EvalContext> {
    let query_start = chrono::DateTime::from_timestamp(1_709_251_199, 999_000_000);
    Arc::new(EvalContext { zone: Tz::Europe__Berlin, query_start, database: "db".to_owned() })
}

pub(super) fn text(value: &str) -> Value {
    let length = value.chars().count() as u32;
    Value { data_type: TypeRoot::Char(length).not_null(), scalar: ScalarValue::from(value) }
}

pub(super) fn int(value: i32) -> Value {
    Value { data_type: TypeRoot::Int.not_null(), scalar: ScalarValue::Int32(Some(value)) }
}

pub(super) fn double(value: f64) -> Value {
    Value { data_type: TypeRoot::Double.not_null(), scalar: ScalarValue::Float64(Some(value)) }
}

pub(super) fn decimal(unscaled: i128, precision: u8, scale: u8) -> Value {
    Value {
        data_type: TypeRoot::Decimal(precision, scale).not_null(),
        scalar: ScalarValue::Decimal128(Some(unscaled), precision, scale as i8),
    }
}

pub(super) fn null(root: TypeRoot) -> Value {
    let data_type = root.nullable();
    Value { scalar: ScalarValue::try_from(&data_type.to_arrow()).unwrap(), data_type }
}

/// Casts a text, the way in which literals of dates and times are made here.
pub(super) fn from_text(value: &str, root: TypeRoot) -> Value {
    let data_type = root.not_null();
    let source = text(value);
    let array = source.scalar.to_array().unwrap();
    let cast = super::cast(&array, &source.data_type, &data_type, false, &context()).unwrap();
    Value { scalar: ScalarValue::try_from_array(&cast, 0).unwrap(), data_type }
}

/// Makes an array of values of one type.
pub(super) fn array(elements: &[Value]) -> Value {
    let element = &elements[0].data_type;
    let scalars: Vec<ScalarValue> = elements.iter().map(|element| element.scalar.clone()).collect();
    let list = ScalarValue::new_list(&scalars, &element.to_arrow(), true);
    let nullable = elements.iter().any(|element| element.data_type.nullable);
    let element = element.clone().with_nullable(nullable);
    Value { data_type: TypeRoot::Array(Box::new(element)).not_null(), scalar: ScalarValue::List(list) }
}

/// Evaluates what `build` makes of the arguments: once with literals, once with columns of three rows.
fn evaluate(arguments: &[Value], build: impl Fn(Vec<Expr>) -> Result<(Expr, DataType)>) -> Result<String> {
    let (constant, data_type) =
        build(arguments.iter().map(|argument| Expr::Literal(argument.scalar.clone(), None)).collect())?;
    let names: Vec<String> = (0..arguments.len()).map(|index| format!("c{index}")).collect();
    let (variable, _) = build(names.iter().map(col).collect())?;
    let fields = names.iter().zip(arguments).map(|(name, argument)| argument.data_type.to_field(name));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let columns: Vec<ArrayRef> =
        arguments.iter().map(|argument| argument.scalar.to_array_of_size(4).unwrap().slice(1, 3)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(3));
    let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options).unwrap();
    let schema = DFSchema::try_from(schema).unwrap();
    let run = |expr: &Expr| -> Result<ColumnarValue> {
        let physical = create_physical_expr(expr, &schema, &ExecutionProps::new())?;
        Ok(physical.evaluate(&batch)?)
    };
    let cell = |array: &ArrayRef, row: usize| {
        assert_eq!(array.data_type(), &data_type.to_arrow(), "the type that was promised");
        format_cell(&data_type, array.as_ref(), row, context().zone).unwrap_or("<NULL>".to_owned())
    };
    let single = cell(&run(&constant)?.into_array(1).unwrap(), 0);
    let column = run(&variable)?.into_array(3).unwrap();
    assert_eq!(column.len(), 3);
    for row in 0..3 {
        assert_eq!(cell(&column, row), single, "a column and a constant differ");
    }
    Ok(format!("{single} :: {}", data_type.summary()))
}

fn shown(result: Result<String>) -> String {
    result.unwrap_or_else(|error| format!("{}: {}", error.flink_class().name(), error.message()))
}

/// Calls a function and returns value and type, or the error.
pub(super) fn function(name: &str, arguments: &[Value]) -> String {
    let Some(function) = find(name) else { return format!("no function {name}") };
    shown(evaluate(arguments, |exprs| {
        let described: Vec<Argument<'_>> = arguments
            .iter()
            .map(|argument| Argument { data_type: &argument.data_type, literal: Some(&argument.scalar) })
            .collect();
        let types: Vec<DataType> = arguments.iter().map(|argument| argument.data_type.clone()).collect();
        let inferred = function.infer(&described).ok_or_else(|| signature_error(function, &types))?;
        let exprs = exprs
            .into_iter()
            .zip(types.iter().zip(&inferred.arguments))
            .enumerate()
            .map(|(index, (expr, (from, to)))| {
                // Units and the like must stay constants.
                let is_unit = matches!(name, "EXTRACT" | "TIMESTAMPADD" | "TIMESTAMPDIFF") && index == 0
                    || matches!(name, "FLOOR" | "CEIL") && index == 1;
                let expr = if is_unit { Expr::Literal(arguments[index].scalar.clone(), None) } else { expr };
                cast_expr(expr, from, to, false, &context())
            })
            .collect();
        Ok((call(function, exprs, &inferred, &context()), inferred.result))
    }))
}

pub(super) fn operation(op: ArithmeticOp, left: &Value, right: &Value) -> String {
    shown(evaluate(&[left.clone(), right.clone()], |exprs| {
        let [a, b] = <[Expr; 2]>::try_from(exprs).map_err(|_| Error::internal("two operands"))?;
        arithmetic(op, (a, &left.data_type), (b, &right.data_type), &context())
            .ok_or_else(|| super::arithmetic_error(op, &left.data_type, &right.data_type))
    }))
}

pub(super) fn compared(op: ComparisonOp, left: &Value, right: &Value) -> String {
    shown(evaluate(&[left.clone(), right.clone()], |exprs| {
        let [a, b] = <[Expr; 2]>::try_from(exprs).map_err(|_| Error::internal("two operands"))?;
        comparison(op, (a, &left.data_type), (b, &right.data_type), &context())
    }))
}

pub(super) fn converted(value: &Value, root: TypeRoot, try_cast: bool) -> String {
    let to = DataType { root, nullable: try_cast || value.data_type.nullable };
    shown(evaluate(std::slice::from_ref(value), |mut exprs| {
        super::cast_supported(&value.data_type, &to)?;
        let expr = exprs.pop().ok_or_else(|| Error::internal("one operand"))?;
        Ok((cast_expr(expr, &value.data_type, &to, try_cast, &context()), to.clone()))
    }))
}
