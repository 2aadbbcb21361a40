//! Literals: numbers, texts, bytes, points in time, intervals.

use sqlparser::ast::{self, DateTimeField, Expr, UnaryOperator, Value};
use sqlparser::tokenizer::{Span as TokenSpan, Token};

use super::super::encoding::TimeLiteral;
use super::cursor::Parser;
use crate::error::{Error, Result};

/// The units of EXTRACT, CEIL, FLOOR and intervals, with the plural that intervals may have.
static UNITS: [(&str, &str, DateTimeField); 20] = [
    ("YEAR", "YEARS", DateTimeField::Year),
    ("QUARTER", "QUARTERS", DateTimeField::Quarter),
    ("MONTH", "MONTHS", DateTimeField::Month),
    ("WEEK", "WEEKS", DateTimeField::Week(None)),
    ("DAY", "DAYS", DateTimeField::Day),
    ("HOUR", "HOURS", DateTimeField::Hour),
    ("MINUTE", "MINUTES", DateTimeField::Minute),
    ("SECOND", "SECONDS", DateTimeField::Second),
    ("DOW", "", DateTimeField::Dow),
    ("DOY", "", DateTimeField::Doy),
    ("ISODOW", "", DateTimeField::Isodow),
    ("ISOYEAR", "", DateTimeField::Isoyear),
    ("EPOCH", "", DateTimeField::Epoch),
    ("DECADE", "", DateTimeField::Decade),
    ("CENTURY", "", DateTimeField::Century),
    ("MILLENNIUM", "", DateTimeField::Millennium),
    ("MILLISECOND", "", DateTimeField::Millisecond),
    ("MICROSECOND", "", DateTimeField::Microsecond),
    ("NANOSECOND", "", DateTimeField::Nanosecond),
    ("TIMEZONE", "", DateTimeField::Timezone),
];

/// How many of the units an interval can have.
const INTERVAL_UNITS: usize = 8;

impl Parser<'_> {
    /// Takes a literal.
    pub(super) fn literal(&mut self) -> Result<Expr> {
        let location = self.location();
        let value = match self.peek() {
            Some(Token::Number(digits, false)) => Value::Number(digits.clone(), false),
            Some(Token::SingleQuotedString(_) | Token::UnicodeStringLiteral(_)) => {
                return self.text_literal();
            }
            Some(Token::HexStringLiteral(digits)) => {
                if digits.len() % 2 == 1 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                    return Err(Error::syntax("Binary literal string must contain an even number of hexits")
                        .at(self.span())
                        .hint("A binary literal is X'0aff'."));
                }
                Value::HexStringLiteral(digits.clone())
            }
            Some(Token::Placeholder(_) | Token::Question) => {
                return Err(Error::unsupported("parameters are not supported").at(self.span()));
            }
            _ if self.at("NULL") => Value::Null,
            _ if self.at("TRUE") => Value::Boolean(true),
            _ if self.at("FALSE") => Value::Boolean(false),
            _ if self.at_time_literal() => return self.time_literal(),
            _ => {
                self.expecting("an expression");
                return Err(self.unexpected());
            }
        };
        self.advance();
        Ok(Expr::Value(value.with_span(location)))
    }

    /// Takes a text; texts on lines of their own continue it.
    fn text_literal(&mut self) -> Result<Expr> {
        let start = self.location();
        let mut value = self.text()?.value;
        let mut end = start;
        while self.at_text() && self.location().start.line > end.end.line {
            end = self.location();
            value.push_str(&self.text()?.value);
        }
        Ok(Expr::Value(Value::SingleQuotedString(value).with_span(TokenSpan::new(start.start, end.end))))
    }

    /// Returns whether a word such as DATE is the start of a literal and no name.
    pub(super) fn at_time_literal(&self) -> bool {
        let is_text = |ahead| matches!(self.peek_at(ahead), Some(Token::SingleQuotedString(_)));
        let words = ["WITH", "LOCAL", "TIME", "ZONE"];
        self.at_any(&["DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"])
            && (is_text(1)
                || self.at("TIMESTAMP") && (1..5).all(|ahead| self.at_ahead(ahead, words[ahead - 1])))
    }

    fn time_literal(&mut self) -> Result<Expr> {
        let kind = match self.expect_any(&["DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"])? {
            0 => TimeLiteral::Date,
            1 => TimeLiteral::Time,
            2 if self.at("WITH") => {
                self.expect_all(&["WITH", "LOCAL", "TIME", "ZONE"])?;
                TimeLiteral::TimestampLtz
            }
            2 => TimeLiteral::Timestamp,
            _ => TimeLiteral::TimestampLtz,
        };
        let location = self.location();
        let value = Value::SingleQuotedString(self.text()?.value).with_span(location);
        Ok(Expr::TypedString(ast::TypedString { data_type: kind.encode(), value, uses_odbc_syntax: false }))
    }

    /// Returns whether INTERVAL is the start of a literal and no name.
    pub(super) fn at_interval(&self) -> bool {
        match self.peek_at(1) {
            Some(Token::SingleQuotedString(_)) => true,
            Some(Token::Plus | Token::Minus) => matches!(self.peek_at(2), Some(Token::SingleQuotedString(_))),
            Some(Token::Number(..)) => true,
            _ => false,
        }
    }

    /// Takes `INTERVAL [+|-] 'text' unit[(p)] [TO unit[(p)]]`.
    pub(super) fn interval(&mut self) -> Result<Expr> {
        self.expect("INTERVAL")?;
        let negative = self.at_sign(&Token::Minus);
        if negative || self.at_sign(&Token::Plus) {
            self.advance();
        }
        if !self.at_text() {
            self.expecting("a text in single quotes");
            return Err(self.unexpected());
        }
        let text = self.text_literal()?;
        let value =
            if negative { Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(text) } } else { text };
        self.interval_qualifier(value)
    }

    /// Returns whether a unit of time is next.
    pub(super) fn at_unit(&self) -> bool {
        UNITS[..INTERVAL_UNITS].iter().any(|(word, _, _)| self.at(word))
    }

    /// Takes `unit[(p)] [TO unit[(p)]]` behind a text or a difference.
    pub(super) fn interval_qualifier(&mut self, value: Expr) -> Result<Expr> {
        let leading_field = self.unit(true)?;
        let (mut leading_precision, mut fractional_seconds_precision) = (None, None);
        if self.accept_sign(&Token::LParen) {
            leading_precision = Some(self.unsigned()?);
            if leading_field == DateTimeField::Second && self.accept_sign(&Token::Comma) {
                fractional_seconds_precision = Some(self.unsigned()?);
            }
            self.expect_sign(&Token::RParen)?;
        }
        let mut last_field = None;
        if self.at("TO") {
            let ranged = matches!(
                leading_field,
                DateTimeField::Year | DateTimeField::Day | DateTimeField::Hour | DateTimeField::Minute
            );
            if !ranged {
                return Err(self.unexpected());
            }
            self.advance();
            let index = self.index();
            let last = self.unit(false)?;
            let follows = match leading_field {
                DateTimeField::Year => last == DateTimeField::Month,
                DateTimeField::Day => {
                    matches!(last, DateTimeField::Hour | DateTimeField::Minute | DateTimeField::Second)
                }
                DateTimeField::Hour => matches!(last, DateTimeField::Minute | DateTimeField::Second),
                _ => last == DateTimeField::Second,
            };
            if !follows {
                return Err(self.unexpected_at(index));
            }
            if last == DateTimeField::Second && self.accept_sign(&Token::LParen) {
                fractional_seconds_precision = Some(self.unsigned()?);
                self.expect_sign(&Token::RParen)?;
            }
            last_field = Some(last);
        }
        Ok(Expr::Interval(ast::Interval {
            value: Box::new(value),
            leading_field: Some(leading_field),
            leading_precision,
            last_field,
            fractional_seconds_precision,
        }))
    }

    /// Takes the unit of an interval.
    fn unit(&mut self, plural: bool) -> Result<DateTimeField> {
        let unit = UNITS[..INTERVAL_UNITS]
            .iter()
            .find(|(singular, several, _)| self.at(singular) || plural && self.at(several));
        let Some((_, _, field)) = unit else {
            self.expecting("a unit of time");
            return Err(self.unexpected());
        };
        self.advance();
        Ok(field.clone())
    }

    /// Takes the unit of EXTRACT, CEIL or FLOOR.
    pub(super) fn time_field(&mut self) -> Result<DateTimeField> {
        let Some((_, _, field)) = UNITS.iter().find(|(name, _, _)| self.at(name)) else {
            self.expecting("a unit of time");
            return Err(self.unexpected());
        };
        self.advance();
        Ok(field.clone())
    }
}

/// Returns the word of a unit that the parser made.
pub(in super::super) fn unit_word(field: &DateTimeField) -> &'static str {
    UNITS.iter().find(|(_, _, known)| known == field).map_or("SECOND", |(word, _, _)| word)
}

#[cfg(test)]
mod tests {
    use super::super::super::encoding::{interval_text, text_value, time_literal};
    use super::*;

    fn parse(text: &str) -> Result<Expr> {
        Ok(crate::sql::parse_expression(text)?.body)
    }

    #[test]
    fn points_in_time() {
        for (text, kind) in [
            ("DATE '2026-01-02'", TimeLiteral::Date),
            ("time '03:04:05'", TimeLiteral::Time),
            ("TIMESTAMP '2026-01-02 03:04:05.678'", TimeLiteral::Timestamp),
            ("TIMESTAMP WITH LOCAL TIME ZONE '2026-01-02 03:04:05'", TimeLiteral::TimestampLtz),
        ] {
            let Expr::TypedString(typed) = parse(text).unwrap() else { panic!("{text}") };
            assert_eq!(time_literal(&typed).unwrap().0, kind);
        }
    }

    #[test]
    fn intervals_have_calcites_qualifiers() {
        for text in [
            "INTERVAL '1-2' YEAR TO MONTH",
            "INTERVAL '1 02:03:04.5' DAY(3) TO SECOND(3)",
            "INTERVAL '100' DAY(3)",
            "INTERVAL '1' SECONDS",
            "INTERVAL '1.5' SECOND(2, 3)",
            "INTERVAL '1' WEEK",
        ] {
            assert!(matches!(parse(text).unwrap(), Expr::Interval(_)), "{text}");
        }
        let Expr::Interval(interval) = parse("INTERVAL -'1' DAY").unwrap() else { panic!("no interval") };
        assert_eq!(interval_text(&interval), Some((true, "1")));
        for text in
            ["INTERVAL '1' MONTH TO DAY", "INTERVAL '1' DAY TO YEAR", "INTERVAL 1 DAY", "INTERVAL '1'"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn texts_on_several_lines_are_one() {
        let Expr::Value(value) = parse("'a'\n'b''c'").unwrap() else { panic!("no value") };
        assert_eq!(text_value(&value.value), Some("ab'c"));
        assert!(parse("'a' 'b'").is_err());
        assert!(parse("X'0af'").is_err());
    }
}
