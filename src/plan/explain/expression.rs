//! Expressions in plans, written as a user would: operators between their operands, constants as literals, columns by the
//! names that the user knows.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Case, Expr, GroupingSet};

use crate::function::cast_target;
use crate::schema::DataType;

/// Returns what the user called a plan's column: `amount#12` is `amount`.
pub(in crate::plan) fn visible_name(unique: &str) -> &str {
    match unique.rsplit_once('#') {
        Some((name, number)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
            name
        }
        _ => unique,
    }
}

/// Writes a list of expressions.
pub(super) fn list<'e>(expressions: impl IntoIterator<Item = &'e Expr>) -> String {
    expressions.into_iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Writes an expression.
pub(super) fn text(expr: &Expr) -> String {
    match expr {
        Expr::Column(column) | Expr::OuterReferenceColumn(_, column) => visible_name(&column.name).to_owned(),
        Expr::Literal(value, _) => literal(value),
        Expr::Alias(alias) => {
            let (inner, name) = (text(&alias.expr), visible_name(&alias.name));
            if inner == name { inner } else { format!("{inner} AS {name}") }
        }
        Expr::BinaryExpr(binary) => {
            format!("{} {} {}", operand(&binary.left), binary.op, operand(&binary.right))
        }
        Expr::Not(inner) => format!("NOT {}", operand(inner)),
        Expr::Negative(inner) => negated(inner),
        Expr::IsNull(inner) => format!("{} IS NULL", operand(inner)),
        Expr::IsNotNull(inner) => format!("{} IS NOT NULL", operand(inner)),
        Expr::IsTrue(inner) => format!("{} IS TRUE", operand(inner)),
        Expr::IsFalse(inner) => format!("{} IS FALSE", operand(inner)),
        Expr::IsUnknown(inner) => format!("{} IS UNKNOWN", operand(inner)),
        Expr::Cast(cast) => match DataType::from_arrow(&cast.data_type) {
            Some(target) => format!("CAST({} AS {target})", text(&cast.expr)),
            None => text(&cast.expr),
        },
        Expr::Case(case) => case_text(case),
        Expr::InList(list_of) => {
            let not = if list_of.negated { "NOT " } else { "" };
            format!("{} {not}IN ({})", operand(&list_of.expr), list(&list_of.list))
        }
        Expr::ScalarFunction(call) => function_text(call),
        Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => {
            let sets = sets.iter().map(|set| format!("({})", list(set))).collect::<Vec<_>>();
            format!("GROUPING SETS ({})", sets.join(", "))
        }
        Expr::AggregateFunction(call) => {
            let distinct = if call.params.distinct { "DISTINCT " } else { "" };
            let counts_rows = matches!(call.params.args.as_slice(), [Expr::Literal(..)]);
            let arguments = if counts_rows { "*".to_owned() } else { list(&call.params.args) };
            let filter = call
                .params
                .filter
                .as_ref()
                .map_or(String::new(), |filter| format!(" FILTER (WHERE {})", text(filter)));
            format!("{}({distinct}{arguments}){filter}", call.func.name().to_uppercase())
        }
        other => other.to_string().split('#').next().unwrap_or_default().to_owned(),
    }
}

/// Writes a call; an operator's kernel stands between its operands.
fn function_text(call: &ScalarFunction) -> String {
    let name = call.name();
    match call.args.as_slice() {
        [left, right] if let Some(symbol) = infix(name) => {
            format!("{} {symbol} {}", operand(left), operand(right))
        }
        [value] if name == "negate" => negated(value),
        // The guard's second argument is the column's name, which only its error shows.
        [value, _] if name == "NOT NULL" => text(value),
        [value] if let Some(target) = cast_target(call) => format!("{name}({} AS {target})", text(value)),
        arguments => format!("{name}({})", list(arguments)),
    }
}

/// Writes the negative of an operand; two signs side by side would begin a comment.
fn negated(value: &Expr) -> String {
    let operand = operand(value);
    if operand.starts_with('-') { format!("-({operand})") } else { format!("-{operand}") }
}

/// Returns what stands between two operands: the kernels of one operator differ by a word before its sign or behind it.
fn infix(name: &str) -> Option<&str> {
    let is_sign = |word: &&str| word.starts_with(|c: char| !c.is_alphabetic());
    let is_words = name.starts_with("IS ") || name.contains("LIKE");
    if is_words { Some(name) } else { name.split(' ').find(is_sign) }
}

/// Writes an operand: in brackets where it has an operator of its own.
fn operand(expr: &Expr) -> String {
    let is_compound = match expr {
        Expr::BinaryExpr(_) | Expr::Not(_) | Expr::InList(_) => true,
        Expr::ScalarFunction(call) => call.args.len() == 2 && infix(call.name()).is_some(),
        _ => false,
    };
    if is_compound { format!("({})", text(expr)) } else { text(expr) }
}

/// Writes a CASE expression.
fn case_text(case: &Case) -> String {
    let mut out = String::from("CASE");
    for (when, then) in &case.when_then_expr {
        out.push_str(&format!(" WHEN {} THEN {}", text(when), text(then)));
    }
    if let Some(otherwise) = &case.else_expr {
        out.push_str(&format!(" ELSE {}", text(otherwise)));
    }
    out.push_str(" END");
    out
}

/// Writes a constant.
fn literal(value: &ScalarValue) -> String {
    match value {
        value if value.is_null() => "NULL".to_owned(),
        ScalarValue::Utf8(Some(text)) => format!("'{}'", text.replace('\'', "''")),
        ScalarValue::Boolean(Some(value)) => value.to_string().to_uppercase(),
        ScalarValue::Decimal128(Some(unscaled), _, scale) => {
            let digits = format!("{:0>1$}", unscaled.unsigned_abs(), usize::from(scale.unsigned_abs()) + 1);
            let (whole, fraction) = digits.split_at(digits.len() - usize::from(scale.unsigned_abs()));
            let sign = if *unscaled < 0 { "-" } else { "" };
            if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::DataType as ArrowType;
    use datafusion::logical_expr::{cast, col, lit};

    #[test]
    fn expressions_read_as_sql() {
        let expr =
            (col("a#1") + lit(1)).gt(lit(ScalarValue::Decimal128(Some(-5), 3, 2))).and(col("b#2").is_null());
        assert_eq!(text(&expr), "((a + 1) > -0.05) AND b IS NULL");
        assert_eq!(text(&col("x#3").alias("x#4")), "x");
        assert_eq!(text(&lit("it's").alias("y#5")), "'it''s' AS y");
        assert_eq!(visible_name("a#b"), "a#b");
        let sets =
            GroupingSet::GroupingSets(vec![vec![col("a#1"), col("b#2")], vec![col("a#1")], Vec::new()]);
        assert_eq!(text(&Expr::GroupingSet(sets)), "GROUPING SETS ((a, b), (a), ())");
        assert_eq!(text(&Expr::Negative(Box::new(Expr::Negative(Box::new(col("a#1")))))), "-(-a)");
        assert_eq!(text(&cast(col("a#1"), ArrowType::Int64)), "CAST(a AS BIGINT)");
    }
}
