//! Flink's functions: how each types its result and computes it over Arrow columns.
//!
//! A function is a unit struct that implements `ScalarFunction` and one line in `FUNCTIONS`. The binder asks `infer` for the
//! types, casts the arguments as it says, and wraps the function into a DataFusion expression; nothing is coerced afterwards.

mod context;

pub use context::EvalContext;

use arrow::array::ArrayRef;
use datafusion::common::ScalarValue;

use crate::error::Result;
use crate::schema::DataType;

/// Every scalar function with a call syntax, in the order of the reference.
pub static FUNCTIONS: &[&dyn ScalarFunction] = &[];

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

    /// Computes the column. All arguments have `row_count` rows and the types that `infer` asked for.
    ///
    /// # Errors
    /// A value is out of the function's domain and Flink fails there too.
    fn invoke(&self, call: &Call<'_>, arguments: &[ArrayRef]) -> Result<ArrayRef>;
}
