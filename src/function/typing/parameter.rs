//! What a parameter of a function takes, and what an argument is cast to for it.

use super::super::{Argument, Inferred};
use crate::schema::{DataType, TypeRoot};

/// A family of types that a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Parameter {
    /// Text, as it is.
    Text,
    /// An integer, cast to INT.
    Int,
    /// An integer, cast to BIGINT.
    BigInt,
    /// A number, cast to DOUBLE.
    Double,
    /// A number, as it is.
    Number,
    /// A truth value.
    Boolean,
    /// Bytes, as they are.
    Bytes,
    /// A date or a timestamp of either kind, as it is.
    Datetime,
    /// Anything.
    Any,
}

impl Parameter {
    /// Returns what an argument of the type is cast to, or None where the parameter does not take it.
    pub(in super::super) fn accept(self, argument: &DataType) -> Option<DataType> {
        let root = &argument.root;
        let is_null = *root == TypeRoot::Null;
        let accepted = match self {
            Parameter::Text if is_null => TypeRoot::STRING,
            Parameter::Text if root.is_character() => root.clone(),
            Parameter::Int if is_null || root.is_integer() => TypeRoot::Int,
            Parameter::BigInt if is_null || root.is_integer() => TypeRoot::BigInt,
            Parameter::Double if is_null || root.is_numeric() => TypeRoot::Double,
            Parameter::Number if is_null => TypeRoot::Int,
            Parameter::Number if root.is_numeric() => root.clone(),
            Parameter::Boolean if is_null || *root == TypeRoot::Boolean => TypeRoot::Boolean,
            Parameter::Bytes if is_null => TypeRoot::BYTES,
            Parameter::Bytes if root.is_binary() => root.clone(),
            Parameter::Datetime if root.is_datetime() => root.clone(),
            Parameter::Any => root.clone(),
            _ => return None,
        };
        Some(DataType { root: accepted, nullable: argument.nullable || is_null })
    }
}

/// Types a call with one argument per parameter. The result is nullable if an argument is.
pub(in super::super) fn typed(
    arguments: &[Argument<'_>],
    parameters: &[Parameter],
    result: TypeRoot,
) -> Option<Inferred> {
    if arguments.len() != parameters.len() {
        return None;
    }
    let types = arguments
        .iter()
        .zip(parameters)
        .map(|(argument, parameter)| parameter.accept(argument.data_type))
        .collect::<Option<Vec<DataType>>>()?;
    let nullable = types.iter().any(|data_type| data_type.nullable);
    Some(Inferred { arguments: types, result: DataType { root: result, nullable } })
}

impl Inferred {
    /// Makes the result nullable: the function returns NULL for some values.
    pub(in super::super) fn or_null(mut self) -> Inferred {
        self.result.nullable = true;
        self
    }

    /// Gives the result another type but the same nullability.
    pub(in super::super) fn returning(mut self, root: TypeRoot) -> Inferred {
        self.result.root = root;
        self
    }
}

/// Returns the VARCHAR that is as long as a text type.
pub(in super::super) fn varchar_like(root: &TypeRoot) -> TypeRoot {
    match root {
        TypeRoot::Char(length) | TypeRoot::Varchar(length) => TypeRoot::Varchar(*length),
        _ => TypeRoot::STRING,
    }
}
