//! Functions of doubles: powers, logarithms, angles; and the remainder.

use arrow::array::ArrayRef;
use arrow::datatypes::{Float64Type, Int64Type};

use super::super::definition::Definition;
use super::super::operand::{Operand, map_text, map_values};
use super::super::operator::arithmetic;
use super::super::typing::{ArithmeticOp, Parameter, numeric_result, typed};
use super::super::{Argument, Call, Inferred};
use crate::error::Result;
use crate::schema::TypeRoot;

/// Declares functions of one double.
macro_rules! functions_of_a_double {
    ($($symbol:ident, $name:literal, $doc:literal, $form:literal, $call:literal => $value:literal, $compute:expr;)*) => {
        $(pub(super) static $symbol: Definition = Definition {
            name: $name,
            doc: $doc,
            signatures: &[$form],
            examples: &[($call, $value)],
            infer: one_double,
            invoke: |call, operands| map_one(call, operands, $compute),
            ..Definition::DEFAULT
        };)*
    };
}

functions_of_a_double! {
    SQRT, "SQRT", "Returns the square root.", "SQRT(<NUMERIC>)", "SQRT(2)" => "1.4142135623730951", f64::sqrt;
    EXP, "EXP", "Returns e to the power.", "EXP(<NUMERIC>)", "EXP(1)" => "2.718281828459045", f64::exp;
    LN, "LN", "Returns the natural logarithm.", "LN(<NUMERIC>)", "LN(1)" => "0.0", f64::ln;
    LOG10, "LOG10", "Returns the logarithm to base 10.", "LOG10(<NUMERIC>)", "LOG10(100)" => "2.0", f64::log10;
    LOG2, "LOG2", "Returns the logarithm to base 2.", "LOG2(<NUMERIC>)", "LOG2(8)" => "3.0", |value| value.ln() / 2_f64.ln();
    SIN, "SIN", "Returns the sine.", "SIN(<NUMERIC>)", "SIN(0)" => "0.0", f64::sin;
    COS, "COS", "Returns the cosine.", "COS(<NUMERIC>)", "COS(0)" => "1.0", f64::cos;
    TAN, "TAN", "Returns the tangent.", "TAN(<NUMERIC>)", "TAN(0)" => "0.0", f64::tan;
    COT, "COT", "Returns the cotangent.", "COT(<NUMERIC>)", "COT(1)" => "0.6420926159343306", |value| 1.0 / value.tan();
    ASIN, "ASIN", "Returns the arc sine.", "ASIN(<NUMERIC>)", "ASIN(0)" => "0.0", f64::asin;
    ACOS, "ACOS", "Returns the arc cosine.", "ACOS(<NUMERIC>)", "ACOS(1)" => "0.0", f64::acos;
    ATAN, "ATAN", "Returns the arc tangent.", "ATAN(<NUMERIC>)", "ATAN(0)" => "0.0", f64::atan;
    SINH, "SINH", "Returns the hyperbolic sine.", "SINH(<NUMERIC>)", "SINH(0)" => "0.0", f64::sinh;
    COSH, "COSH", "Returns the hyperbolic cosine.", "COSH(<NUMERIC>)", "COSH(0)" => "1.0", f64::cosh;
    TANH, "TANH", "Returns the hyperbolic tangent.", "TANH(<NUMERIC>)", "TANH(0)" => "0.0", f64::tanh;
    DEGREES, "DEGREES", "Turns radians into degrees.", "DEGREES(<NUMERIC>)", "DEGREES(PI())" => "180.0", f64::to_degrees;
    RADIANS, "RADIANS", "Turns degrees into radians.", "RADIANS(<NUMERIC>)", "RADIANS(0)" => "0.0", f64::to_radians;
}

pub(super) static POWER: Definition = Definition {
    name: "POWER",
    doc: "Returns a number to a power.",
    signatures: &["POWER(<NUMERIC>, <NUMERIC>)"],
    examples: &[("POWER(2, 3)", "8.0"), ("POWER(2, -1)", "0.5")],
    infer: two_doubles,
    invoke: |call, operands| map_two(call, operands, f64::powf),
    ..Definition::DEFAULT
};

pub(super) static ATAN2: Definition = Definition {
    name: "ATAN2",
    doc: "Returns the angle of a point, whose second coordinate comes first.",
    signatures: &["ATAN2(<NUMERIC>, <NUMERIC>)"],
    examples: &[("ATAN2(1, 2)", "0.4636476090008061")],
    infer: two_doubles,
    invoke: |call, operands| map_two(call, operands, f64::atan2),
    ..Definition::DEFAULT
};

pub(super) static LOG: Definition = Definition {
    name: "LOG",
    doc: "Returns the natural logarithm, or that of the second number to the base that the first one is.",
    signatures: &["LOG(<NUMERIC>)", "LOG(<NUMERIC>, <NUMERIC>)"],
    examples: &[("LOG(100)", "4.605170185988092"), ("LOG(2, 8)", "3.0")],
    infer: |arguments| one_double(arguments).or_else(|| two_doubles(arguments)),
    invoke: |call, operands| match operands {
        [_] => map_one(call, operands, f64::ln),
        _ => map_two(call, operands, |base, value| value.ln() / base.ln()),
    },
    ..Definition::DEFAULT
};

pub(super) static PI: Definition = Definition {
    name: "PI",
    doc: "Returns the number pi.",
    signatures: &["PI()"],
    examples: &[("PI()", "3.141592653589793")],
    infer: |arguments| typed(arguments, &[], TypeRoot::Double),
    invoke: |call, operands| map_values::<Float64Type>(call, operands, |_| std::f64::consts::PI),
    ..Definition::DEFAULT
};

pub(super) static E: Definition = Definition {
    name: "E",
    doc: "Returns the number e.",
    signatures: &["E()"],
    examples: &[("E()", "2.718281828459045")],
    infer: |arguments| typed(arguments, &[], TypeRoot::Double),
    invoke: |call, operands| map_values::<Float64Type>(call, operands, |_| std::f64::consts::E),
    ..Definition::DEFAULT
};

pub(super) static MOD: Definition = Definition {
    name: "MOD",
    doc: "Returns the remainder of a division; it has the sign of the dividend.",
    signatures: &["MOD(<EXACT_NUMERIC>, <EXACT_NUMERIC>)"],
    examples: &[("MOD(-7, 3)", "-1"), ("MOD(7.5, 2)", "1.5")],
    infer: |arguments| {
        let inferred = typed(arguments, &[Parameter::Number, Parameter::Number], TypeRoot::Int)?;
        let [left, right] = inferred.arguments.as_slice() else { return None };
        let result = numeric_result(ArithmeticOp::Modulo, left, right)?;
        Some(Inferred { result, arguments: inferred.arguments })
    },
    rewrite: |arguments, inferred, context| {
        let ([left, right], [left_type, right_type]) = (arguments, inferred.arguments.as_slice()) else {
            return None;
        };
        let operation =
            arithmetic(ArithmeticOp::Modulo, (left.clone(), left_type), (right.clone(), right_type), context);
        operation.map(|(expr, _)| expr)
    },
    ..Definition::DEFAULT
};

pub(super) static BIN: Definition = Definition {
    name: "BIN",
    doc: "Returns an integer in binary digits; a negative one in 64 of them.",
    signatures: &["BIN(<INTEGER>)"],
    examples: &[("BIN(5)", "101")],
    infer: |arguments| typed(arguments, &[Parameter::BigInt], TypeRoot::STRING),
    invoke: |call, operands| {
        let values = operands[0].values::<Int64Type>()?;
        map_text(call, operands, |row, out| {
            out.push_str(&format!("{:b}", values.get(row)));
            Ok(true)
        })
    },
    ..Definition::DEFAULT
};

fn one_double(arguments: &[Argument<'_>]) -> Option<Inferred> {
    typed(arguments, &[Parameter::Double], TypeRoot::Double)
}

fn two_doubles(arguments: &[Argument<'_>]) -> Option<Inferred> {
    typed(arguments, &[Parameter::Double, Parameter::Double], TypeRoot::Double)
}

fn map_one(call: &Call<'_>, operands: &[Operand], compute: fn(f64) -> f64) -> Result<ArrayRef> {
    let values = operands[0].values::<Float64Type>()?;
    map_values::<Float64Type>(call, operands, |row| compute(values.get(row)))
}

fn map_two(call: &Call<'_>, operands: &[Operand], compute: fn(f64, f64) -> f64) -> Result<ArrayRef> {
    let (left, right) = (operands[0].values::<Float64Type>()?, operands[1].values::<Float64Type>()?);
    map_values::<Float64Type>(call, operands, |row| compute(left.get(row), right.get(row)))
}
