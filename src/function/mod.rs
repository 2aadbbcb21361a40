//! Flink's functions: how each types its result and computes it over Arrow columns.
//!
//! A function is a value that implements `ScalarFunction` and one line in `FUNCTIONS`. The binder asks `infer` for the types,
//! casts the arguments as it says, and wraps the function into a DataFusion expression; nothing is coerced afterwards.

mod aggregate;
mod call;
mod cast;
mod context;
mod datetime;
mod decimal;
mod definition;
#[cfg(test)]
mod evaluation;
#[cfg(test)]
mod goldens;
mod missing;
mod operand;
mod operator;
mod ranking;
mod scalar;
mod typing;
mod unnest;

pub(crate) use aggregate::{
    AggregateFunction, DecimalSum, FloatSum, IntegerSum, Moments, RunningSum, describe_aggregate,
};
pub use aggregate::{BoundAggregate, aggregate, aggregate_names, aggregate_signatures, is_aggregate};
pub use call::call;
pub use cast::{cast, cast_expr, cast_supported, cast_target};
pub use context::EvalContext;
pub use missing::is_missing;
pub use operand::Operand;
pub use operator::{
    ComparisonOp, arithmetic, arithmetic_error, comparison, comparison_type, interval_between, like, negate,
    not_null,
};
pub(crate) use ranking::RankingFunction;
pub use typing::{
    ArithmeticOp, DAY_TIME, YEAR_MONTH, calcite_name, common_type, is_implicit_cast, no_match_error,
    numeric_result, signature_error, type_list_error,
};

pub(crate) use unnest::unnest;

use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;

use crate::error::Result;
use crate::schema::DataType;

pub use scalar::FUNCTIONS;

/// Finds a function by name or alias, in any case.
pub fn find(name: &str) -> Option<&'static dyn ScalarFunction> {
    FUNCTIONS.iter().copied().find(|function| {
        function.name().eq_ignore_ascii_case(name)
            || function.aliases().iter().any(|alias| alias.eq_ignore_ascii_case(name))
    })
}

/// What is known of an argument when a call is bound.
#[derive(Debug, Clone, Copy)]
pub struct Argument<'a> {
    /// Its type.
    pub data_type: &'a DataType,
    /// Its value, where it is a constant.
    pub literal: Option<&'a ScalarValue>,
}

/// The types of a call that fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inferred {
    /// What each argument is cast to before the call.
    pub arguments: Vec<DataType>,
    /// What the call returns.
    pub result: DataType,
}

/// How often a function must be evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Determinism {
    /// The same arguments give the same value: constants are folded.
    Deterministic,
    /// One value per query in batch, one per record in streams.
    QueryConstant,
    /// Another value each time.
    Volatile,
}

/// A bound call, as a kernel sees it.
#[derive(Debug)]
pub struct Call<'a> {
    /// Types of the arguments as they arrive.
    pub arguments: &'a [DataType],
    /// Type of the result.
    pub result: &'a DataType,
    /// Time zone and clock.
    pub context: &'a EvalContext,
    /// How many rows to produce.
    pub row_count: usize,
}

/// A function of values to a value.
pub trait ScalarFunction: Sync {
    /// Returns the name in capitals.
    fn name(&self) -> &'static str;

    /// Returns its other names.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns one sentence on what it computes.
    fn doc(&self) -> &'static str;

    /// Returns the forms that it takes as Flink's errors print them: `SUBSTRING(<CHARACTER>, <INTEGER>)`.
    fn signatures(&self) -> &'static [&'static str];

    /// Returns calls with the value that they print; tests run them.
    fn examples(&self) -> &'static [(&'static str, &'static str)];

    /// Returns how often it must be evaluated.
    fn determinism(&self) -> Determinism {
        Determinism::Deterministic
    }

    /// Types a call, or returns None where number or types of arguments do not fit.
    fn infer(&self, arguments: &[Argument<'_>]) -> Option<Inferred>;

    /// Returns another expression that computes the call, for functions that must not evaluate all their arguments.
    fn rewrite(&self, arguments: &[Expr], inferred: &Inferred, context: &Arc<EvalContext>) -> Option<Expr> {
        let _ = (arguments, inferred, context);
        None
    }

    /// Computes the column of `row_count` rows. The arguments have the types that `infer` asked for.
    ///
    /// # Errors
    /// A value is out of the function's domain and Flink fails there too.
    fn invoke(&self, call: &Call<'_>, arguments: &[Operand]) -> Result<ArrayRef>;
}
