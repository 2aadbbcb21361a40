//! Expressions: operators by Calcite's precedence. Operands are in `operand`.
//!
//! A chain of operators is a loop, not a recursion: only brackets, prefixes and subqueries nest.

use std::sync::Arc;

use sqlparser::ast::{self, BinaryOperator, Expr, UnaryOperator};
use sqlparser::tokenizer::Token;

use super::super::Expression;
use super::super::encoding::{JsonKind, encode_is_json, encode_symmetric};
use super::cursor::Parser;
use crate::error::Result;

/// Calcite's precedences; an operator that binds tighter has the higher number.
pub(super) mod precedence {
    pub(crate) const OR: u8 = 22;
    pub(crate) const AND: u8 = 24;
    pub(crate) const NOT: u8 = 26;
    pub(crate) const IS: u8 = 28;
    pub(crate) const COMPARISON: u8 = 30;
    pub(crate) const BETWEEN: u8 = 32;
    pub(crate) const SUM: u8 = 40;
    pub(crate) const PRODUCT: u8 = 60;
    pub(crate) const SIGN: u8 = 80;
}

use precedence::{AND, BETWEEN, COMPARISON, IS, NOT, OR, PRODUCT, SIGN, SUM};

/// An operator between or behind operands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Infix {
    Binary,
    Is,
    IsDistinct,
    In,
    Between,
    Like,
}

impl Parser<'_> {
    /// Takes an expression with what is needed to bind it.
    pub(super) fn spanned_expression(&mut self) -> Result<Expression> {
        let start = self.span();
        let body = self.expression()?;
        Ok(Expression { body, positions: Arc::clone(&self.positions), span: self.span_from(start) })
    }

    /// Takes an expression.
    pub(super) fn expression(&mut self) -> Result<Expr> {
        self.nested(|parser| parser.operators(0))
    }

    /// Takes operands and the operators between them that bind at least as tight as `least`.
    pub(super) fn operators(&mut self, least: u8) -> Result<Expr> {
        let mut left = self.prefix()?;
        while let Some((infix, precedence)) = self.peek_infix() {
            if precedence < least {
                break;
            }
            left = match infix {
                Infix::Binary => self.binary(left, precedence)?,
                Infix::Is => self.is(left)?,
                Infix::IsDistinct => self.is_distinct(left)?,
                Infix::In => self.in_list(left)?,
                Infix::Between => self.between(left)?,
                Infix::Like => self.like(left)?,
            };
        }
        Ok(left)
    }

    /// Takes NOT or a sign with its operand, or an operand.
    fn prefix(&mut self) -> Result<Expr> {
        let (op, precedence) = match self.peek() {
            Some(Token::Plus) => (UnaryOperator::Plus, SIGN),
            Some(Token::Minus) => (UnaryOperator::Minus, SIGN),
            _ if self.at("NOT") => (UnaryOperator::Not, NOT),
            _ => return self.operand(),
        };
        self.advance();
        let expr = self.nested(|parser| parser.operators(precedence))?;
        Ok(Expr::UnaryOp { op, expr: Box::new(expr) })
    }

    /// Returns the operator that is next and how tight it binds on its left.
    fn peek_infix(&self) -> Option<(Infix, u8)> {
        let word = match self.peek()? {
            Token::Plus | Token::Minus => return Some((Infix::Binary, SUM)),
            Token::Mul | Token::Div | Token::Mod | Token::StringConcat => {
                return Some((Infix::Binary, PRODUCT));
            }
            Token::Eq | Token::Neq | Token::Lt | Token::LtEq | Token::Gt | Token::GtEq => {
                return Some((Infix::Binary, COMPARISON));
            }
            Token::Word(word) if word.quote_style.is_none() && (2..=8).contains(&word.value.len()) => {
                &word.value
            }
            _ => return None,
        };
        let is = |keyword: &str| word.eq_ignore_ascii_case(keyword);
        if is("AND") {
            Some((Infix::Binary, AND))
        } else if is("OR") {
            Some((Infix::Binary, OR))
        } else if is("IS") {
            let negated = usize::from(self.at_ahead(1, "NOT"));
            let distinct = self.at_ahead(1 + negated, "DISTINCT");
            // Calcite binds IS DISTINCT FROM as tight as a sum, and IS NULL looser than a comparison.
            Some(if distinct { (Infix::IsDistinct, SUM) } else { (Infix::Is, IS) })
        } else if is("IN") {
            Some((Infix::In, BETWEEN))
        } else if is("BETWEEN") {
            Some((Infix::Between, BETWEEN))
        } else if is("LIKE") || is("ILIKE") || is("RLIKE") || is("SIMILAR") && self.at_ahead(1, "TO") {
            Some((Infix::Like, BETWEEN))
        } else if is("OVERLAPS") {
            Some((Infix::Binary, COMPARISON))
        } else if is("NOT") {
            let next = |keyword| self.at_ahead(1, keyword);
            if next("IN") {
                Some((Infix::In, BETWEEN))
            } else if next("BETWEEN") {
                Some((Infix::Between, BETWEEN))
            } else if next("LIKE") || next("ILIKE") || next("RLIKE") || next("SIMILAR") {
                Some((Infix::Like, BETWEEN))
            } else {
                None
            }
        } else {
            None
        }
    }

    fn binary(&mut self, left: Expr, precedence: u8) -> Result<Expr> {
        let op = match self.peek() {
            Some(Token::Plus) => BinaryOperator::Plus,
            Some(Token::Minus) => BinaryOperator::Minus,
            Some(Token::Mul) => BinaryOperator::Multiply,
            Some(Token::Div) => BinaryOperator::Divide,
            Some(Token::Mod) => BinaryOperator::Modulo,
            Some(Token::StringConcat) => BinaryOperator::StringConcat,
            Some(Token::Eq) => BinaryOperator::Eq,
            Some(Token::Neq) => BinaryOperator::NotEq,
            Some(Token::Lt) => BinaryOperator::Lt,
            Some(Token::LtEq) => BinaryOperator::LtEq,
            Some(Token::Gt) => BinaryOperator::Gt,
            Some(Token::GtEq) => BinaryOperator::GtEq,
            _ if self.at("AND") => BinaryOperator::And,
            _ if self.at("OR") => BinaryOperator::Or,
            _ => BinaryOperator::Overlaps,
        };
        self.advance();
        if precedence == COMPARISON
            && self.at_any(&["ANY", "SOME", "ALL"])
            && self.peek_at(1) == Some(&Token::LParen)
        {
            return self.quantified(left, op);
        }
        let right = self.operators(precedence + 1)?;
        Ok(Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) })
    }

    /// Takes `ANY|SOME|ALL (query or list)` behind a comparison.
    fn quantified(&mut self, left: Expr, compare_op: BinaryOperator) -> Result<Expr> {
        let all = self.at("ALL");
        let is_some = self.at("SOME");
        self.advance();
        self.expect_sign(&Token::LParen)?;
        let right = if self.at_query() {
            Expr::Subquery(Box::new(self.query()?))
        } else {
            let first = self.expression()?;
            match self.continue_query(first)? {
                Ok(query) => Expr::Subquery(Box::new(query)),
                Err(first) => Expr::Tuple(self.rest_of_list(first)?),
            }
        };
        self.expect_sign(&Token::RParen)?;
        let (left, right) = (Box::new(left), Box::new(right));
        Ok(if all {
            Expr::AllOp { left, compare_op, right }
        } else {
            Expr::AnyOp { left, compare_op, right, is_some }
        })
    }

    /// Takes `IS [NOT] …` behind an operand.
    fn is(&mut self, left: Expr) -> Result<Expr> {
        self.expect("IS")?;
        let negated = self.accept("NOT");
        if self.at("JSON") {
            self.advance();
            let kinds = [JsonKind::Value, JsonKind::Object, JsonKind::Array, JsonKind::Scalar];
            let kind = self.accept_any(&["VALUE", "OBJECT", "ARRAY", "SCALAR"]).unwrap_or(0);
            return Ok(encode_is_json(left, kinds[kind], negated));
        }
        let what = self.expect_any(&["NULL", "TRUE", "FALSE", "UNKNOWN"])?;
        let left = Box::new(left);
        Ok(match (what, negated) {
            (0, false) => Expr::IsNull(left),
            (0, true) => Expr::IsNotNull(left),
            (1, false) => Expr::IsTrue(left),
            (1, true) => Expr::IsNotTrue(left),
            (2, false) => Expr::IsFalse(left),
            (2, true) => Expr::IsNotFalse(left),
            (_, false) => Expr::IsUnknown(left),
            (_, true) => Expr::IsNotUnknown(left),
        })
    }

    fn is_distinct(&mut self, left: Expr) -> Result<Expr> {
        self.expect("IS")?;
        let negated = self.accept("NOT");
        self.expect_all(&["DISTINCT", "FROM"])?;
        let right = Box::new(self.operators(COMPARISON + 1)?);
        let left = Box::new(left);
        Ok(if negated { Expr::IsNotDistinctFrom(left, right) } else { Expr::IsDistinctFrom(left, right) })
    }

    fn in_list(&mut self, left: Expr) -> Result<Expr> {
        let negated = self.accept("NOT");
        self.expect("IN")?;
        self.expect_sign(&Token::LParen)?;
        let expr = Box::new(left);
        let result = if self.at_query() {
            Expr::InSubquery { expr, subquery: Box::new(self.query()?), negated }
        } else {
            // `IN ((SELECT 1) UNION (SELECT 2))` shows only behind its first query that it is one.
            let first = self.expression()?;
            match self.continue_query(first)? {
                Ok(query) => Expr::InSubquery { expr, subquery: Box::new(query), negated },
                Err(first) => Expr::InList { expr, list: self.rest_of_list(first)?, negated },
            }
        };
        self.expect_sign(&Token::RParen)?;
        Ok(result)
    }

    /// Takes the rest of a list whose first item is taken.
    pub(super) fn rest_of_list(&mut self, first: Expr) -> Result<Vec<Expr>> {
        let mut list = vec![first];
        while self.accept_sign(&Token::Comma) {
            list.push(self.expression()?);
        }
        Ok(list)
    }

    fn between(&mut self, left: Expr) -> Result<Expr> {
        let negated = self.accept("NOT");
        self.expect("BETWEEN")?;
        let symmetric = self.accept("SYMMETRIC");
        if !symmetric {
            self.accept("ASYMMETRIC");
        }
        // The lower bound ends at AND, whatever stands in it.
        let low = self.nested(|parser| parser.operators(AND + 1))?;
        self.expect("AND")?;
        let high = self.operators(BETWEEN + 1)?;
        let low = if symmetric { encode_symmetric(low) } else { low };
        Ok(Expr::Between { expr: Box::new(left), negated, low: Box::new(low), high: Box::new(high) })
    }

    fn like(&mut self, left: Expr) -> Result<Expr> {
        let negated = self.accept("NOT");
        let which = self.expect_any(&["LIKE", "ILIKE", "RLIKE", "SIMILAR"])?;
        if which == 3 {
            self.expect("TO")?;
        }
        let expr = Box::new(left);
        let pattern = Box::new(self.operators(BETWEEN + 1)?);
        if which == 2 {
            return Ok(Expr::RLike { negated, expr, pattern, regexp: false });
        }
        let escape_char = if self.accept("ESCAPE") {
            Some(ast::Value::SingleQuotedString(self.text()?.value))
        } else {
            None
        };
        Ok(match which {
            0 => Expr::Like { negated, any: false, expr, pattern, escape_char },
            1 => Expr::ILike { negated, any: false, expr, pattern, escape_char },
            _ => Expr::SimilarTo { negated, expr, pattern, escape_char },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows an expression with brackets around every operator.
    fn shape(text: &str) -> String {
        fn show(expr: &Expr) -> String {
            match expr {
                Expr::BinaryOp { left, op, right } => format!("({} {op} {})", show(left), show(right)),
                Expr::UnaryOp { op, expr } => format!("({op} {})", show(expr)),
                Expr::IsNull(expr) => format!("({} IS NULL)", show(expr)),
                Expr::IsDistinctFrom(left, right) => format!("({} IDF {})", show(left), show(right)),
                Expr::Between { expr, low, high, .. } => {
                    format!("({} BW {} {})", show(expr), show(low), show(high))
                }
                Expr::Like { expr, pattern, .. } => format!("({} LIKE {})", show(expr), show(pattern)),
                Expr::InList { expr, .. } => format!("({} IN)", show(expr)),
                Expr::Nested(expr) => format!("[{}]", show(expr)),
                other => other.to_string(),
            }
        }
        let mut parser = Parser::new(text).unwrap();
        let expr = parser.expression().unwrap();
        parser.finish().unwrap();
        show(&expr)
    }

    #[test]
    fn operators_bind_as_in_calcite() {
        for (text, expected) in [
            ("a + b * c - d", "((a + (b * c)) - d)"),
            ("a || b * c", "((a || b) * c)"),
            ("-a * b", "((- a) * b)"),
            ("NOT a = b AND c OR d", "(((NOT (a = b)) AND c) OR d)"),
            ("a = b IS NULL", "((a = b) IS NULL)"),
            ("a + 1 IS DISTINCT FROM b + 2 AND c", "(((a + 1) IDF (b + 2)) AND c)"),
            ("x BETWEEN 1 AND 2 AND y", "((x BW 1 2) AND y)"),
            ("a = b LIKE c", "(a = (b LIKE c))"),
            ("NOT a IN (1) AND b", "((NOT (a IN)) AND b)"),
            ("a < b = c", "((a < b) = c)"),
            ("(a OR b) AND c", "([(a OR b)] AND c)"),
            ("a % b != c", "((a % b) <> c)"),
        ] {
            assert_eq!(shape(text), expected, "{text}");
        }
    }

    #[test]
    fn what_flink_has_no_operator_for_is_refused_at_the_sign() {
        for text in ["a :: INT", "a AT TIME ZONE 'UTC'", "a -> b", "a ~ b", "a & b", "a <=> b"] {
            let mut parser = Parser::new(text).unwrap();
            parser.expression().unwrap();
            assert!(parser.finish().unwrap_err().message().ends_with("at line 1, column 3."), "{text}");
        }
    }
}
