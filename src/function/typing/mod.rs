//! The types of expressions: what fits where, what two types have in common, and how errors name types.

mod arithmetic;
mod common_type;
mod implicit;
mod parameter;
mod signature;

pub use arithmetic::{ArithmeticOp, DAY_TIME, YEAR_MONTH, numeric_result};
pub use common_type::common_type;
pub use implicit::is_implicit_cast;
pub(super) use parameter::{Parameter, typed, varchar_like};
pub(super) use signature::calcite_root;
pub use signature::{calcite_name, no_match_error, signature_error, type_list_error};
