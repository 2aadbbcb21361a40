//! The functions with a call syntax, by group.

use super::ScalarFunction;

/// Every scalar function with a call syntax, in the order of the reference.
pub static FUNCTIONS: &[&dyn ScalarFunction] = &[];
