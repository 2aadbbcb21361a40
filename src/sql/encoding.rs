//! How the parser holds forms of Flink for which sqlparser's tree has no node, and how a reader gets them back.
//!
//! Everything else is held by the node of its name. What a reader may rely on besides:
//!
//! * `JOIN` and `INNER JOIN` are `JoinOperator::Inner`; outer joins are the `…Outer` operators; `a, b` are two entries of FROM.
//! * `TABLE t` as a query is `SELECT * FROM t`; `FROM f(…)`, `TABLE(f(…))` and `LATERAL TABLE(f(…))` are all
//!   `TableFactor::Function`, the last one with `lateral`.
//! * `CEIL(x)`, `SUBSTRING(a, b)`, `TRIM(x)` and `OVERLAY` in their comma form are plain functions; only the forms with words
//!   (`TO`, `FROM`, `FOR`, `PLACING`) are the nodes `Ceil`, `Floor`, `Substring`, `Trim`, `Overlay`.
//! * `LIMIT ALL` is no limit. A row of VALUES without brackets has one value. `ROW(…)` as a row of VALUES is its list.
//! * Units are singular: `INTERVAL '2' DAYS` has `DateTimeField::Day`.
//! * `U&'…'` and adjacent texts on several lines are one `SingleQuotedString`.
//! * A path such as `t.r.f` is a `CompoundIdentifier`; with a subscript or behind any other expression it is a
//!   `CompoundFieldAccess` whose root holds the names before it, and whose fields are `AccessExpr::Dot(Identifier)`.
//! * `(a)` is `Nested`, `(a, b)` and `()` are `Tuple`, `ROW(a, b)` is the function `ROW`.

use sqlparser::ast::{self, Expr, FunctionArguments, Ident, MapEntry, UnaryOperator, Value};

use super::parser::parse_cast_type;
use crate::error::{Error, Result};
use crate::schema::DataType;

/// The prefix of a lower bound of BETWEEN SYMMETRIC.
const SYMMETRIC: &str = "SYMMETRIC";
/// The prefix of a table as an argument.
const TABLE: &str = "TABLE";
/// The prefix of a model as an argument.
const MODEL: &str = "MODEL";
/// The prefix of what a JSON function gives instead.
const DEFAULT: &str = "DEFAULT";
/// The name of the literal UNKNOWN, a function without brackets.
pub(super) const UNKNOWN: &str = "UNKNOWN";
/// The type of literals with a local time zone.
const TIMESTAMP_LTZ: &str = "TIMESTAMP_LTZ";

/// Holds a type in sqlparser's tree: as a custom type whose name is the text of SHOW CREATE TABLE.
pub(super) fn encode_type(data_type: &DataType) -> ast::DataType {
    custom(data_type.serialized())
}

/// Returns the type of a CAST, TRY_CAST or RETURNING.
pub fn cast_type(data_type: &ast::DataType) -> Result<DataType> {
    match custom_name(data_type) {
        Some(text) => parse_cast_type(text),
        None => Err(Error::internal(format!("type {data_type} was not made by the parser"))),
    }
}

/// Returns the text of a type as the parser encoded it.
pub(super) fn type_text(data_type: &ast::DataType) -> String {
    custom_name(data_type).map_or_else(|| data_type.to_string(), str::to_owned)
}

fn custom(name: impl Into<String>) -> ast::DataType {
    ast::DataType::Custom(ast::ObjectName::from(vec![Ident::new(name)]), Vec::new())
}

fn custom_name(data_type: &ast::DataType) -> Option<&str> {
    match data_type {
        ast::DataType::Custom(name, modifiers) if modifiers.is_empty() => match name.0.as_slice() {
            [part] => part.as_ident().map(|ident| ident.value.as_str()),
            _ => None,
        },
        _ => None,
    }
}

/// What kind of point in time a literal such as `DATE '2026-01-02'` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is what its name says")]
pub enum TimeLiteral {
    Date,
    Time,
    Timestamp,
    TimestampLtz,
}

impl TimeLiteral {
    /// Returns the words in front of the text.
    pub fn keywords(self) -> &'static str {
        match self {
            TimeLiteral::Date => "DATE",
            TimeLiteral::Time => "TIME",
            TimeLiteral::Timestamp => "TIMESTAMP",
            TimeLiteral::TimestampLtz => "TIMESTAMP WITH LOCAL TIME ZONE",
        }
    }

    /// Returns the type that holds it in `TypedString`.
    pub(super) fn encode(self) -> ast::DataType {
        match self {
            TimeLiteral::Date => ast::DataType::Date,
            TimeLiteral::Time => ast::DataType::Time(None, ast::TimezoneInfo::None),
            TimeLiteral::Timestamp => ast::DataType::Timestamp(None, ast::TimezoneInfo::None),
            TimeLiteral::TimestampLtz => custom(TIMESTAMP_LTZ),
        }
    }
}

/// Returns kind and text of a literal such as `TIMESTAMP '2026-01-02 03:04:05'`.
pub fn time_literal(typed: &ast::TypedString) -> Option<(TimeLiteral, &str)> {
    let kind = match &typed.data_type {
        ast::DataType::Date => TimeLiteral::Date,
        ast::DataType::Time(None, _) => TimeLiteral::Time,
        ast::DataType::Timestamp(None, _) => TimeLiteral::Timestamp,
        other if custom_name(other) == Some(TIMESTAMP_LTZ) => TimeLiteral::TimestampLtz,
        _ => return None,
    };
    Some((kind, text_value(&typed.value.value)?))
}

/// Returns what a text literal says.
pub fn text_value(value: &Value) -> Option<&str> {
    match value {
        Value::SingleQuotedString(text) => Some(text),
        _ => None,
    }
}

/// Returns whether an interval literal has a minus before its text, and the text.
pub fn interval_text(interval: &ast::Interval) -> Option<(bool, &str)> {
    let (negative, value) = match &*interval.value {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => (true, &**expr),
        other => (false, other),
    };
    match value {
        Expr::Value(value) => Some((negative, text_value(&value.value)?)),
        _ => None,
    }
}

/// Returns the entries of `MAP['k', 1, …]`.
pub fn map_entries(expr: &Expr) -> Option<&[MapEntry]> {
    match expr {
        Expr::Map(map) => Some(&map.entries),
        _ => None,
    }
}

/// Returns the fields of `ROW(a, b)` or `(a, b)`.
pub fn row_fields(expr: &Expr) -> Option<Vec<&Expr>> {
    match expr {
        Expr::Tuple(fields) => Some(fields.iter().collect()),
        Expr::Function(function) if is_bare_name(function, "ROW") => match &function.args {
            FunctionArguments::List(list) => list
                .args
                .iter()
                .map(|argument| match argument {
                    ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => Some(expr),
                    _ => None,
                })
                .collect(),
            _ => None,
        },
        _ => None,
    }
}

/// Returns whether a function's name is one bare word.
fn is_bare_name(function: &ast::Function, name: &str) -> bool {
    bare_name(function).is_some_and(|word| word.eq_ignore_ascii_case(name))
}

/// Returns a function's name if it is one word without back-ticks.
pub(super) fn bare_name(function: &ast::Function) -> Option<&str> {
    match function.name.0.as_slice() {
        [part] => {
            part.as_ident().filter(|ident| ident.quote_style.is_none()).map(|ident| ident.value.as_str())
        }
        _ => None,
    }
}

/// Returns whether this is the literal UNKNOWN, the BOOLEAN that is NULL.
pub fn is_unknown(expr: &Expr) -> bool {
    matches!(expr, Expr::Function(function) if is_bare_name(function, UNKNOWN) && matches!(function.args, FunctionArguments::None))
}

/// Marks the lower bound of BETWEEN SYMMETRIC.
pub(super) fn encode_symmetric(low: Expr) -> Expr {
    prefixed(SYMMETRIC, low)
}

/// Returns the lower bound without its mark if it is that of BETWEEN SYMMETRIC.
pub fn symmetric_low(low: &Expr) -> Option<&Expr> {
    prefix_of(low, SYMMETRIC)
}

fn prefixed(prefix: &str, value: Expr) -> Expr {
    Expr::Prefixed { prefix: Ident::new(prefix), value: Box::new(value) }
}

fn prefix_of<'a>(expr: &'a Expr, prefix: &str) -> Option<&'a Expr> {
    match expr {
        Expr::Prefixed { prefix: found, value } if found.value == prefix => Some(value),
        _ => None,
    }
}

/// A table, model or query that is an argument of a function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RelationArgument<'a> {
    /// `TABLE t`: the parts of the name.
    Table(&'a [Ident]),
    /// `TABLE (query)`.
    Query(&'a ast::Query),
    /// `MODEL m`.
    Model(&'a [Ident]),
}

/// Holds `TABLE t` or `TABLE (query)` as an argument.
pub(super) fn encode_table_argument(value: Expr) -> Expr {
    prefixed(TABLE, value)
}

/// Holds `MODEL m` as an argument.
pub(super) fn encode_model_argument(value: Expr) -> Expr {
    prefixed(MODEL, value)
}

/// Returns the table, query or model of an argument.
pub fn relation_argument(expr: &Expr) -> Option<RelationArgument<'_>> {
    if let Some(value) = prefix_of(expr, TABLE) {
        return match value {
            Expr::CompoundIdentifier(parts) => Some(RelationArgument::Table(parts)),
            Expr::Subquery(query) => Some(RelationArgument::Query(query)),
            _ => None,
        };
    }
    match prefix_of(expr, MODEL)? {
        Expr::CompoundIdentifier(parts) => Some(RelationArgument::Model(parts)),
        _ => None,
    }
}

/// What `IS JSON` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "Flink's words")]
pub enum JsonKind {
    Value,
    Object,
    Array,
    Scalar,
}

/// The names of the functions that hold `IS [NOT] JSON …`: with blanks and without back-ticks, which no other function has.
static IS_JSON: [(&str, JsonKind, bool); 8] = [
    ("IS JSON VALUE", JsonKind::Value, false),
    ("IS JSON OBJECT", JsonKind::Object, false),
    ("IS JSON ARRAY", JsonKind::Array, false),
    ("IS JSON SCALAR", JsonKind::Scalar, false),
    ("IS NOT JSON VALUE", JsonKind::Value, true),
    ("IS NOT JSON OBJECT", JsonKind::Object, true),
    ("IS NOT JSON ARRAY", JsonKind::Array, true),
    ("IS NOT JSON SCALAR", JsonKind::Scalar, true),
];

/// Holds `expr IS [NOT] JSON kind`.
pub(super) fn encode_is_json(expr: Expr, kind: JsonKind, negated: bool) -> Expr {
    let name = IS_JSON
        .iter()
        .find(|entry| (entry.1, entry.2) == (kind, negated))
        .map_or("IS JSON VALUE", |entry| entry.0);
    let argument = ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr));
    Expr::Function(function(vec![Ident::new(name)], argument_list(vec![argument])))
}

/// Returns operand, kind and negation of `expr IS [NOT] JSON kind`.
pub fn is_json(function: &ast::Function) -> Option<(&Expr, JsonKind, bool)> {
    let name = bare_name(function)?;
    let (_, kind, negated) = IS_JSON.iter().find(|entry| entry.0 == name)?;
    match &function.args {
        FunctionArguments::List(list) => match list.args.as_slice() {
            [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr))] => Some((expr, *kind, *negated)),
            _ => None,
        },
        _ => None,
    }
}

/// The clauses of a JSON function that are held as named arguments, and the words behind their value.
pub(super) static JSON_CLAUSES: [&str; 3] = ["WRAPPER", "ON EMPTY", "ON ERROR"];

/// Holds a clause of a JSON function: `NULL ON EMPTY`, `DEFAULT e ON ERROR`, `WITH CONDITIONAL ARRAY WRAPPER`.
pub(super) fn encode_json_clause(clause: &str, behavior: Expr) -> ast::FunctionArg {
    ast::FunctionArg::Named {
        name: Ident::new(clause),
        arg: ast::FunctionArgExpr::Expr(behavior),
        operator: ast::FunctionArgOperator::Colon,
    }
}

/// Holds `DEFAULT e` of such a clause.
pub(super) fn encode_json_default(value: Expr) -> Expr {
    prefixed(DEFAULT, value)
}

/// What a clause of a JSON function says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum JsonBehavior<'a> {
    /// Words: `NULL`, `ERROR`, `TRUE`, `FALSE`, `UNKNOWN`, `EMPTY ARRAY`, `EMPTY OBJECT`, `WITHOUT ARRAY`,
    /// `WITH CONDITIONAL ARRAY`, `WITH UNCONDITIONAL ARRAY`.
    Words(&'a str),
    /// `DEFAULT e`.
    Default(&'a Expr),
}

/// Returns what a JSON function says for the clause `WRAPPER`, `ON EMPTY` or `ON ERROR`; its other arguments are unnamed.
pub fn json_clause<'a>(function: &'a ast::Function, clause: &str) -> Option<JsonBehavior<'a>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    list.args.iter().find_map(|argument| match argument {
        ast::FunctionArg::Named {
            name,
            arg: ast::FunctionArgExpr::Expr(behavior),
            operator: ast::FunctionArgOperator::Colon,
        } if name.value == clause => match behavior {
            Expr::Identifier(words) => Some(JsonBehavior::Words(&words.value)),
            other => prefix_of(other, DEFAULT).map(JsonBehavior::Default),
        },
        _ => None,
    })
}

/// Makes a call of a function with nothing but arguments.
pub(super) fn function(name: Vec<Ident>, args: FunctionArguments) -> ast::Function {
    ast::Function {
        name: ast::ObjectName::from(name),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args,
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }
}

/// Makes a list of arguments without clauses.
pub(super) fn argument_list(args: Vec<ast::FunctionArg>) -> FunctionArguments {
    FunctionArguments::List(ast::FunctionArgumentList {
        duplicate_treatment: None,
        args,
        clauses: Vec::new(),
    })
}
