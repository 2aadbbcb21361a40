//! Flink's types from text: every spelling of the dialect, and the texts of SHOW CREATE TABLE.

use sqlparser::tokenizer::Token;

use super::cursor::Parser;
use crate::error::{Error, FlinkClass, Result};
use crate::schema::{DataType, Field, IntervalKind, IntervalQualifier, LENGTH_MAX, TypeRoot};

/// Parses the text of a type, such as `ARRAY<INT NOT NULL>`.
pub fn parse_data_type(text: &str) -> Result<DataType> {
    let mut parser = Parser::new(text)?;
    let data_type = parser.data_type()?;
    parser.finish()?;
    Ok(data_type)
}

/// Parses the text of a type that a CAST may have, which intervals are too.
pub(in super::super) fn parse_cast_type(text: &str) -> Result<DataType> {
    let mut parser = Parser::new(text)?;
    let data_type = parser.cast_type()?;
    parser.finish()?;
    Ok(data_type)
}

/// The precision of a second that a type without one has, and the largest.
const PRECISION_DEFAULT: u8 = 6;
const PRECISION_MAX: u8 = 9;

impl Parser<'_> {
    /// Takes a type with its nullability. INTERVAL is none here: no column can have it.
    pub(super) fn data_type(&mut self) -> Result<DataType> {
        self.nested(|parser| {
            if parser.at("INTERVAL") {
                parser.expecting("a type");
                return Err(parser.unexpected());
            }
            parser.any_type()
        })
    }

    /// Takes a type of CAST, which may be an interval.
    pub(super) fn cast_type(&mut self) -> Result<DataType> {
        self.nested(Self::any_type)
    }

    fn any_type(&mut self) -> Result<DataType> {
        let root = self.type_root()?;
        let mut data_type = self.nullability(root)?;
        // `INT ARRAY` and `INT MULTISET`: the element's own nullability stands in front of the word.
        while let Some(collection) = self.accept_any(&["ARRAY", "MULTISET"]) {
            let element = Box::new(data_type);
            let root = if collection == 0 { TypeRoot::Array(element) } else { TypeRoot::Multiset(element) };
            data_type = self.nullability(root)?;
        }
        Ok(data_type)
    }

    /// Takes NULL or NOT NULL behind a type.
    fn nullability(&mut self, root: TypeRoot) -> Result<DataType> {
        if self.at_all(&["NOT", "NULL"]) {
            self.expect_all(&["NOT", "NULL"])?;
            return Ok(root.not_null());
        }
        if self.at("NULL") {
            self.advance();
        }
        Ok(root.nullable())
    }

    fn type_root(&mut self) -> Result<TypeRoot> {
        let Some(Token::Word(word)) = self.peek() else {
            self.expecting("a type");
            return Err(self.unexpected());
        };
        let name = word.value.clone();
        if word.quote_style.is_some() {
            return self.unknown_type(&name);
        }
        let keyword = name.to_ascii_uppercase();
        let root = match keyword.as_str() {
            "BOOLEAN" => TypeRoot::Boolean,
            "TINYINT" => TypeRoot::TinyInt,
            "SMALLINT" => TypeRoot::SmallInt,
            "INT" | "INTEGER" => TypeRoot::Int,
            "BIGINT" => TypeRoot::BigInt,
            "FLOAT" | "REAL" => TypeRoot::Float,
            "DATE" => TypeRoot::Date,
            "STRING" => TypeRoot::STRING,
            "BYTES" => TypeRoot::BYTES,
            "DOUBLE" => {
                self.advance();
                self.accept("PRECISION");
                return Ok(TypeRoot::Double);
            }
            "CHAR" | "CHARACTER" | "VARCHAR" | "BINARY" | "VARBINARY" => return self.string_type(&keyword),
            "DECIMAL" | "DEC" | "NUMERIC" => return self.decimal_type(),
            "TIME" | "TIMESTAMP" | "TIMESTAMP_LTZ" => return self.time_type(&keyword),
            "INTERVAL" => return self.interval_type(),
            "ARRAY" | "MULTISET" | "MAP" if self.peek_at(1) == Some(&Token::Lt) => {
                return self.collection_type(&keyword);
            }
            "ROW" => return self.row_type(),
            "VARIANT" | "BITMAP" | "RAW" | "STRUCTURED" | "DESCRIPTOR" => {
                return self.unsupported_type(&keyword);
            }
            _ => return self.unknown_type(&name),
        };
        self.advance();
        Ok(root)
    }

    /// Takes CHAR, VARCHAR, BINARY, VARBINARY with their length.
    fn string_type(&mut self, keyword: &str) -> Result<TypeRoot> {
        self.advance();
        let varying = keyword.starts_with("VAR") || self.accept("VARYING");
        let mut length = 1;
        if self.accept_sign(&Token::LParen) {
            let span = self.span();
            length = self.unsigned()?;
            if length > LENGTH_MAX {
                return Err(
                    Error::validation(format!("length {length} of a type is above {LENGTH_MAX}")).at(span)
                );
            }
            self.expect_sign(&Token::RParen)?;
        }
        Ok(match (keyword.contains("CHAR"), varying) {
            (true, false) => TypeRoot::Char(length),
            (true, true) => TypeRoot::Varchar(length),
            (false, false) => TypeRoot::Binary(length),
            (false, true) => TypeRoot::Varbinary(length),
        })
    }

    fn decimal_type(&mut self) -> Result<TypeRoot> {
        self.advance();
        let (mut precision, mut scale) = (10, 0);
        if self.accept_sign(&Token::LParen) {
            precision = self.unsigned()?;
            if self.accept_sign(&Token::Comma) {
                scale = self.unsigned()?;
            }
            self.expect_sign(&Token::RParen)?;
        }
        Ok(TypeRoot::Decimal(precision, scale))
    }

    /// Takes TIME, TIMESTAMP, TIMESTAMP_LTZ with precision and zone.
    fn time_type(&mut self, keyword: &str) -> Result<TypeRoot> {
        let span = self.span();
        self.advance();
        let precision = self.precision()?;
        match keyword {
            "TIME" => {
                if self.at_all(&["WITHOUT", "TIME"]) {
                    self.expect_all(&["WITHOUT", "TIME", "ZONE"])?;
                }
                Ok(TypeRoot::Time(precision.unwrap_or(0)))
            }
            "TIMESTAMP_LTZ" => Ok(TypeRoot::TimestampLtz(precision.unwrap_or(PRECISION_DEFAULT))),
            _ => {
                let precision = precision.unwrap_or(PRECISION_DEFAULT);
                if self.at_all(&["WITHOUT", "TIME"]) {
                    self.expect_all(&["WITHOUT", "TIME", "ZONE"])?;
                } else if self.at_all(&["WITH", "LOCAL"]) {
                    self.expect_all(&["WITH", "LOCAL", "TIME", "ZONE"])?;
                    return Ok(TypeRoot::TimestampLtz(precision));
                } else if self.at_all(&["WITH", "TIME"]) {
                    self.expect_all(&["WITH", "TIME", "ZONE"])?;
                    return Err(Error::unsupported("type TIMESTAMP WITH TIME ZONE cannot be computed with")
                        .at(self.span_from(span))
                        .hint("Use TIMESTAMP_LTZ, an instant that is shown in the session's time zone."));
                }
                Ok(TypeRoot::Timestamp(precision))
            }
        }
    }

    /// Takes `(p)`; what is finer than a nanosecond counts as a nanosecond.
    fn precision(&mut self) -> Result<Option<u8>> {
        if !self.accept_sign(&Token::LParen) {
            return Ok(None);
        }
        let precision: u64 = self.unsigned()?;
        self.expect_sign(&Token::RParen)?;
        Ok(Some(u8::try_from(precision).unwrap_or(PRECISION_MAX).min(PRECISION_MAX)))
    }

    /// Takes `<T>` behind ARRAY and MULTISET, `<K, V>` behind MAP.
    fn collection_type(&mut self, keyword: &str) -> Result<TypeRoot> {
        self.advance();
        self.expect_sign(&Token::Lt)?;
        let first = Box::new(self.data_type()?);
        let root = match keyword {
            "ARRAY" => TypeRoot::Array(first),
            "MULTISET" => TypeRoot::Multiset(first),
            _ => {
                self.expect_sign(&Token::Comma)?;
                TypeRoot::Map(first, Box::new(self.data_type()?))
            }
        };
        self.expect_sign(&Token::Gt)?;
        Ok(root)
    }

    /// Takes `ROW<name type ['comment'], …>` or the same in round brackets.
    fn row_type(&mut self) -> Result<TypeRoot> {
        self.advance();
        if self.accept_sign(&Token::Neq) {
            return Ok(TypeRoot::Row(Vec::new()));
        }
        let close = if self.accept_sign(&Token::Lt) {
            Token::Gt
        } else {
            self.expect_sign(&Token::LParen)?;
            Token::RParen
        };
        if self.accept_sign(&close) {
            return Ok(TypeRoot::Row(Vec::new()));
        }
        let fields = self.list(|parser| {
            let name = parser.any_word()?.value;
            let data_type = parser.data_type()?;
            let comment = if parser.at_text() { Some(parser.text()?.value) } else { None };
            Ok(Field { name, data_type, comment })
        })?;
        self.expect_sign(&close)?;
        Ok(TypeRoot::Row(fields))
    }

    fn interval_type(&mut self) -> Result<TypeRoot> {
        use IntervalQualifier as Q;
        self.advance();
        let units = ["YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"];
        let first = self.expect_any(&units)?;
        let (mut leading, mut fraction) = (None, None);
        if self.accept_sign(&Token::LParen) {
            leading = Some(self.unsigned()?);
            if first == 5 && self.accept_sign(&Token::Comma) {
                fraction = Some(self.unsigned()?);
            }
            self.expect_sign(&Token::RParen)?;
        }
        // The only precision of a SECOND type is that of its fraction.
        if first == 5 && fraction.is_none() {
            fraction = leading.take();
        }
        let last = if self.accept("TO") { Some(self.expect_any(&units)?) } else { None };
        if last == Some(5) && self.accept_sign(&Token::LParen) {
            fraction = Some(self.unsigned()?);
            self.expect_sign(&Token::RParen)?;
        }
        let qualifier = match (first, last) {
            (0, None) => Q::Year,
            (0, Some(1)) => Q::YearToMonth,
            (1, None) => Q::Month,
            (2, None) => Q::Day,
            (2, Some(3)) => Q::DayToHour,
            (2, Some(4)) => Q::DayToMinute,
            (2, Some(5)) => Q::DayToSecond,
            (3, None) => Q::Hour,
            (3, Some(4)) => Q::HourToMinute,
            (3, Some(5)) => Q::HourToSecond,
            (4, None) => Q::Minute,
            (4, Some(5)) => Q::MinuteToSecond,
            (5, None) => Q::Second,
            _ => return Err(self.unexpected_at(self.index() - 1)),
        };
        // Only the types that start with years or days say how long the first number may be.
        let leading = if matches!(first, 0 | 2) { leading.unwrap_or(2) } else { 2 };
        let kind = IntervalKind { qualifier, leading, fraction: fraction.unwrap_or(PRECISION_DEFAULT) };
        Ok(if first < 2 { TypeRoot::IntervalYearMonth(kind) } else { TypeRoot::IntervalDayTime(kind) })
    }

    fn unsupported_type(&mut self, keyword: &str) -> Result<TypeRoot> {
        Err(Error::unsupported(format!("type {keyword} is not supported"))
            .at(self.span())
            .hint("Use ROW, MAP, ARRAY, STRING or BYTES."))
    }

    /// Refuses a word that names no type, as Flink's validator does.
    fn unknown_type(&mut self, name: &str) -> Result<TypeRoot> {
        let hint = match name.to_ascii_uppercase().as_str() {
            "NUMBER" => "Use DECIMAL(p, s), or an integer type.",
            "TEXT" | "VARCHAR2" | "NVARCHAR" | "CLOB" | "UUID" | "JSON" | "JSONB" => "Use STRING.",
            "LONG" | "INT8" | "UINT64" | "BIGSERIAL" => "Use BIGINT.",
            "SHORT" | "INT2" => "Use SMALLINT.",
            "INT4" | "INT32" | "SERIAL" | "MEDIUMINT" => "Use INT.",
            "BYTE" => "Use TINYINT.",
            "BOOL" => "Use BOOLEAN.",
            "DATETIME" => "Use TIMESTAMP.",
            "TIMESTAMPTZ" => "Use TIMESTAMP_LTZ.",
            "BLOB" | "BYTEA" => "Use BYTES.",
            "STRUCT" => "Use ROW<name type, …>.",
            "FLOAT4" => "Use FLOAT.",
            "FLOAT8" => "Use DOUBLE.",
            _ => {
                "Types are BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL, CHAR, VARCHAR, STRING, BINARY, \
                  VARBINARY, BYTES, DATE, TIME, TIMESTAMP, TIMESTAMP_LTZ, ARRAY, MAP, MULTISET and ROW."
            }
        };
        Err(Error::validation(format!("Unknown identifier '{name}'"))
            .class(FlinkClass::SQL_VALIDATOR)
            .at(self.span())
            .hint(hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_gives_the_type_that_describe_prints() {
        for (text, summary) in [
            ("int", "INT"),
            ("INTEGER NOT NULL", "INT NOT NULL"),
            ("NUMERIC", "DECIMAL(10, 0)"),
            ("DEC(20)", "DECIMAL(20, 0)"),
            ("DECIMAL(39, 1)", "DECIMAL(39, 1)"),
            ("DOUBLE PRECISION", "DOUBLE"),
            ("REAL", "FLOAT"),
            ("CHAR", "CHAR(1)"),
            ("CHARACTER VARYING(7)", "VARCHAR(7)"),
            ("VARCHAR(2147483647)", "STRING"),
            ("BINARY VARYING(3)", "VARBINARY(3)"),
            ("TIME", "TIME(0)"),
            ("TIME(3) WITHOUT TIME ZONE", "TIME(3)"),
            ("TIMESTAMP(10)", "TIMESTAMP(9)"),
            ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ(3)"),
            ("TIMESTAMP WITHOUT TIME ZONE", "TIMESTAMP(6)"),
            ("ARRAY<ARRAY<INT NOT NULL>>", "ARRAY<ARRAY<INT NOT NULL>>"),
            ("INT ARRAY", "ARRAY<INT>"),
            ("INT NOT NULL ARRAY NOT NULL MULTISET", "MULTISET<ARRAY<INT NOT NULL> NOT NULL>"),
            (
                "MAP<STRING, ROW<a INT 'note', `b c` STRING NOT NULL>>",
                "MAP<STRING, ROW<`a` INT '...', `b c` STRING NOT NULL>>",
            ),
            ("ROW(x INT, y ROW(z DATE))", "ROW<`x` INT, `y` ROW<`z` DATE>>"),
        ] {
            assert_eq!(parse_data_type(text).unwrap().summary(), summary, "{text}");
            let parsed = parse_data_type(text).unwrap();
            assert_eq!(parse_data_type(&parsed.serialized()).unwrap(), parsed, "{text}");
        }
    }

    #[test]
    fn intervals_are_types_of_casts_only() {
        let error = parse_data_type("INTERVAL DAY TO SECOND(3)").unwrap_err();
        assert_eq!(error.message(), "Incorrect syntax near the keyword 'INTERVAL' at line 1, column 1.");
        for text in [
            "INTERVAL YEAR(4) TO MONTH",
            "INTERVAL DAY(3) TO SECOND(3)",
            "INTERVAL SECOND(3)",
            "INTERVAL MONTH",
        ] {
            let mut parser = Parser::new(text).unwrap();
            assert_eq!(parser.cast_type().unwrap().to_string(), text);
        }
    }

    #[test]
    fn unknown_types_are_the_validators_matter() {
        let error = parse_data_type("NUMBER").unwrap_err();
        assert_eq!(error.message(), "Unknown identifier 'NUMBER'");
        assert_eq!(error.flink_class(), FlinkClass::SQL_VALIDATOR);
        assert!(parse_data_type("VARIANT").is_err());
        assert!(parse_data_type("INT INT").is_err());
    }
}
