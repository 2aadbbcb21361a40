//! Operators that have no call syntax: arithmetic, comparison, LIKE.

mod arithmetic;
mod comparison;
mod datetime;
mod like;

pub use arithmetic::{arithmetic, arithmetic_error, negate};
pub use comparison::{ComparisonOp, comparison, comparison_type};
pub(super) use datetime::epoch_millis;
pub use datetime::interval_between;
pub use like::like;
