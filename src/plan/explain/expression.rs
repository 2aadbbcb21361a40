//! Expressions in plans, written as a user would: operators between their operands, constants as literals, columns by the
//! names that the user knows.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Case, Expr};

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
        Expr::Negative(inner) => format!("-{}", operand(inner)),
        Expr::IsNull(inner) => format!("{} IS NULL", operand(inner)),
        Expr::IsNotNull(inner) => format!("{} IS NOT NULL", operand(inner)),
        Expr::IsTrue(inner) => format!("{} IS TRUE", operand(inner)),
        Expr::IsFalse(inner) => format!("{} IS FALSE", operand(inner)),
        Expr::IsUnknown(inner) => format!("{} IS UNKNOWN", operand(inner)),
        Expr::Cast(cast) => format!("CAST({})", text(&cast.expr)),
        Expr::Case(case) => case_text(case),
        Expr::InList(list_of) => {
            let not = if list_of.negated { "NOT " } else { "" };
            format!("{} {not}IN ({})", operand(&list_of.expr), list(&list_of.list))
        }
        Expr::ScalarFunction(call) => function_text(call.name(), &call.args),
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
fn function_text(name: &str, arguments: &[Expr]) -> String {
    let is_operator =
        !name.starts_with(|c: char| c.is_alphabetic()) || name.starts_with("IS ") || name.contains("LIKE");
    match arguments {
        [left, right] if is_operator => format!("{} {name} {}", operand(left), operand(right)),
        // The guard's second argument is the column's name, which only its error shows.
        [value, _] if name == "NOT NULL" => text(value),
        _ => format!("{name}({})", list(arguments)),
    }
}

/// Writes an operand: in brackets where it has an operator of its own.
fn operand(expr: &Expr) -> String {
    let is_compound = match expr {
        Expr::BinaryExpr(_) | Expr::Not(_) | Expr::InList(_) => true,
        Expr::ScalarFunction(call) => {
            call.args.len() == 2 && !call.name().starts_with(|c: char| c.is_alphabetic())
        }
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
    use datafusion::logical_expr::{col, lit};

    #[test]
    fn expressions_read_as_sql() {
        let expr =
            (col("a#1") + lit(1)).gt(lit(ScalarValue::Decimal128(Some(-5), 3, 2))).and(col("b#2").is_null());
        assert_eq!(text(&expr), "((a + 1) > -0.05) AND b IS NULL");
        assert_eq!(text(&col("x#3").alias("x#4")), "x");
        assert_eq!(text(&lit("it's").alias("y#5")), "'it''s' AS y");
        assert_eq!(visible_name("a#b"), "a#b");
    }
}
