//! Constants: their types follow from how they are written.

use chrono::{NaiveDate, NaiveDateTime, NaiveTime, Timelike};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, lit};
use sqlparser::ast;

use super::{Binder, BoundExpr};
use crate::error::{Error, FlinkClass, Result};
use crate::function::{DAY_TIME, YEAR_MONTH};
use crate::schema::TypeRoot;
use crate::sql::encoding::{self, TimeLiteral};

/// Makes a NOT NULL constant.
pub(super) fn constant(value: ScalarValue, root: TypeRoot) -> BoundExpr {
    BoundExpr::new(Expr::Literal(value, None), root.not_null())
}

/// Makes a text constant: CHAR of its length.
pub(super) fn text(value: &str) -> BoundExpr {
    constant(ScalarValue::Utf8(Some(value.to_owned())), TypeRoot::Char(value.chars().count() as u32))
}

impl Binder<'_> {
    /// Binds a number, text, boolean, binary or NULL constant.
    pub(super) fn bind_value(&self, value: &ast::ValueWithSpan) -> Result<BoundExpr> {
        match &value.value {
            ast::Value::Number(digits, _) => self.bind_number(value, digits, false),
            ast::Value::SingleQuotedString(value) | ast::Value::UnicodeStringLiteral(value) => {
                Ok(text(value))
            }
            ast::Value::Boolean(value) => Ok(constant(ScalarValue::Boolean(Some(*value)), TypeRoot::Boolean)),
            ast::Value::Null => Ok(BoundExpr::new(lit(ScalarValue::Null), TypeRoot::Null.nullable())),
            ast::Value::HexStringLiteral(digits) => {
                let bytes = hex_bytes(digits).ok_or_else(|| {
                    self.invalid(value, "Binary literal string must contain an even number of hexits")
                })?;
                let length = bytes.len() as u32;
                Ok(constant(ScalarValue::Binary(Some(bytes)), TypeRoot::Binary(length)))
            }
            other => Err(self.unsupported(value, &format!("the literal {other}"))),
        }
    }

    /// Binds a number: INT or BIGINT where it fits, DECIMAL with a point, DOUBLE with an exponent.
    pub(super) fn bind_number(
        &self,
        node: &impl ast::Spanned,
        digits: &str,
        negative: bool,
    ) -> Result<BoundExpr> {
        let signed = if negative { format!("-{digits}") } else { digits.to_owned() };
        if digits.contains(['e', 'E']) {
            let value: f64 = signed.parse().map_err(|error| {
                self.invalid(node, format!("Numeric literal '{digits}' out of range")).caused_by(error)
            })?;
            return Ok(constant(ScalarValue::Float64(Some(value)), TypeRoot::Double));
        }
        if !digits.contains('.') {
            if let Ok(value) = signed.parse::<i32>() {
                return Ok(constant(ScalarValue::Int32(Some(value)), TypeRoot::Int));
            }
            if let Ok(value) = signed.parse::<i64>() {
                return Ok(constant(ScalarValue::Int64(Some(value)), TypeRoot::BigInt));
            }
        }
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let whole = whole.trim_start_matches('0');
        let scale = fraction.len();
        let precision = (whole.len() + scale).max(1);
        if precision > 38 {
            return Err(self.invalid(node, format!("Numeric literal '{digits}' out of range")));
        }
        let unscaled: i128 = format!("0{whole}{fraction}").parse().map_err(|error| {
            self.invalid(node, format!("Numeric literal '{digits}' out of range")).caused_by(error)
        })?;
        let unscaled = if negative { -unscaled } else { unscaled };
        let (precision, scale) = (precision as u8, scale as u8);
        Ok(constant(
            ScalarValue::Decimal128(Some(unscaled), precision, scale as i8),
            TypeRoot::Decimal(precision, scale),
        ))
    }

    /// Binds `DATE '…'`, `TIME '…'`, `TIMESTAMP '…'`; the precision is the number of digits written.
    pub(super) fn bind_typed_string(&self, node: &ast::TypedString) -> Result<BoundExpr> {
        let Some((kind, text)) = encoding::time_literal(node) else {
            return Err(self.unsupported(&node.value, &format!("a literal of type {}", node.data_type)));
        };
        let illegal = |format: &str| {
            self.invalid(
                &node.value,
                format!("Illegal {} literal '{text}': not in format '{format}'", kind.keywords()),
            )
            .class(FlinkClass::CALCITE)
        };
        match kind {
            TimeLiteral::Date => {
                let date = parse_date(text).ok_or_else(|| illegal("yyyy-MM-dd"))?;
                Ok(constant(ScalarValue::Date32(Some(days(date))), TypeRoot::Date))
            }
            TimeLiteral::Time => {
                let (time, precision) = parse_time(text).ok_or_else(|| illegal("HH:mm:ss"))?;
                let millis =
                    time.num_seconds_from_midnight() as i32 * 1000 + (time.nanosecond() / 1_000_000) as i32;
                Ok(constant(ScalarValue::Time32Millisecond(Some(millis)), TypeRoot::Time(precision)))
            }
            TimeLiteral::Timestamp => {
                let (timestamp, precision) =
                    parse_timestamp(text).ok_or_else(|| illegal("yyyy-MM-dd HH:mm:ss"))?;
                self.timestamp_constant(&node.value, timestamp, TypeRoot::Timestamp(precision))
            }
            TimeLiteral::TimestampLtz => {
                let (timestamp, precision) =
                    parse_timestamp(text).ok_or_else(|| illegal("yyyy-MM-dd HH:mm:ss"))?;
                let local = timestamp.and_local_timezone(self.context.zone).earliest();
                let instant = local.map_or(timestamp, |instant| instant.naive_utc());
                self.timestamp_constant(&node.value, instant, TypeRoot::TimestampLtz(precision))
            }
        }
    }

    /// Makes a timestamp constant in the unit of its precision.
    fn timestamp_constant(
        &self,
        node: &impl ast::Spanned,
        timestamp: NaiveDateTime,
        root: TypeRoot,
    ) -> Result<BoundExpr> {
        let utc = timestamp.and_utc();
        let (TypeRoot::Timestamp(precision) | TypeRoot::TimestampLtz(precision)) = root else {
            return Err(Error::internal("a timestamp literal of another type"));
        };
        let zone = matches!(root, TypeRoot::TimestampLtz(_)).then(|| "UTC".into());
        let value = match precision {
            0..=3 => ScalarValue::TimestampMillisecond(Some(utc.timestamp_millis()), zone),
            4..=6 => ScalarValue::TimestampMicrosecond(Some(utc.timestamp_micros()), zone),
            _ => {
                let nanos = utc.timestamp_nanos_opt().ok_or_else(|| {
                    self.invalid(
                        node,
                        "a timestamp with more than 6 fraction digits must lie between 1677 and 2262",
                    )
                })?;
                ScalarValue::TimestampNanosecond(Some(nanos), zone)
            }
        };
        Ok(constant(value, root))
    }

    /// Binds `INTERVAL '…' unit [TO unit]`. Whatever its units, the type is that of months or of seconds, as Flink's TYPEOF says.
    pub(super) fn bind_interval(&self, node: &ast::Interval) -> Result<BoundExpr> {
        let Some((negative, written)) = encoding::interval_text(node) else {
            return Err(self.invalid(node.value.as_ref(), "an interval needs a text in single quotes"));
        };
        let sign = if negative { -1 } else { 1 };
        let unit = |field: &ast::DateTimeField| field.to_string().to_ascii_uppercase();
        let Some(first) = node.leading_field.as_ref().map(unit) else {
            return Err(self.invalid(node.value.as_ref(), "an interval needs a unit such as DAY"));
        };
        let last = node.last_field.as_ref().map(unit);
        let leading = node.leading_precision.unwrap_or(2) as u8;
        let interval = IntervalText::parse(written, &first, last.as_deref(), leading).ok_or_else(|| {
            let qualifier = last.as_ref().map_or(first.clone(), |last| format!("{first} TO {last}"));
            self.invalid(
                node.value.as_ref(),
                format!("Illegal interval literal format '{written}' for INTERVAL {qualifier}"),
            )
        })?;
        Ok(match interval {
            IntervalText::Months(months) => constant(
                ScalarValue::IntervalYearMonth(Some(months * sign)),
                TypeRoot::IntervalYearMonth(YEAR_MONTH),
            ),
            IntervalText::Millis(millis) => constant(
                ScalarValue::DurationMillisecond(Some(millis * i64::from(sign))),
                TypeRoot::IntervalDayTime(DAY_TIME),
            ),
        })
    }
}

/// The value of an interval's text.
enum IntervalText {
    Months(i32),
    Millis(i64),
}

impl IntervalText {
    /// Parses the text of an interval with the given units.
    fn parse(text: &str, first: &str, last: Option<&str>, leading: u8) -> Option<IntervalText> {
        let text = text.trim();
        let (sign, digits) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let fits = |number: &str| {
            !number.is_empty()
                && number.len() <= usize::from(leading).max(2)
                && number.bytes().all(|b| b.is_ascii_digit())
        };
        let whole = |number: &str| number.parse::<i64>().ok();
        match (first, last) {
            ("YEAR", Some("MONTH")) => {
                let (years, months) = digits.split_once('-')?;
                let months = whole(months).filter(|months| *months < 12)?;
                i32::try_from(sign * (whole(years)? * 12 + months)).ok().map(IntervalText::Months)
            }
            ("YEAR" | "QUARTER" | "MONTH", None) => {
                let factor = match first {
                    "YEAR" => 12,
                    "QUARTER" => 3,
                    _ => 1,
                };
                fits(digits).then_some(())?;
                i32::try_from(sign * whole(digits)? * factor).ok().map(IntervalText::Months)
            }
            ("WEEK" | "DAY" | "HOUR" | "MINUTE", None) => {
                fits(digits).then_some(())?;
                Some(IntervalText::Millis(sign * whole(digits)? * unit_millis(first)?))
            }
            ("SECOND", None) => Some(IntervalText::Millis(sign * seconds_millis(digits)?)),
            (_, Some(last)) => {
                day_time_millis(digits, first, last).map(|millis| IntervalText::Millis(sign * millis))
            }
            _ => None,
        }
    }
}

/// Parses `1 02:03:04.5` for the units from `first` to `last`.
fn day_time_millis(text: &str, first: &str, last: &str) -> Option<i64> {
    const UNITS: [&str; 4] = ["DAY", "HOUR", "MINUTE", "SECOND"];
    let from = UNITS.iter().position(|unit| *unit == first)?;
    let to = UNITS.iter().position(|unit| *unit == last)?;
    let mut parts: Vec<&str> = Vec::new();
    let mut rest = text;
    if from == 0 {
        let (days, time) = text.split_once(' ')?;
        parts.push(days);
        rest = time.trim_start();
    }
    parts.extend(rest.split(':'));
    (parts.len() == to + 1 - from).then_some(())?;
    let mut millis = 0_i64;
    for (part, unit) in parts.iter().zip(&UNITS[from..=to]) {
        millis = millis.checked_add(match *unit {
            "SECOND" => seconds_millis(part)?,
            unit => part.parse::<i64>().ok()?.checked_mul(unit_millis(unit)?)?,
        })?;
    }
    Some(millis)
}

/// Returns the milliseconds of a unit.
fn unit_millis(unit: &str) -> Option<i64> {
    Some(match unit {
        "WEEK" => 7 * 86_400_000,
        "DAY" => 86_400_000,
        "HOUR" => 3_600_000,
        "MINUTE" => 60_000,
        _ => return None,
    })
}

/// Parses seconds with a fraction.
fn seconds_millis(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let valid = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    (valid(whole) && valid(fraction) && fraction.len() <= 9 && !whole.is_empty()).then_some(())?;
    let millis: i64 = format!("{fraction:0<3}")[..3].parse().ok()?;
    whole.parse::<i64>().ok()?.checked_mul(1000)?.checked_add(millis)
}

/// Parses `yyyy-MM-dd`.
fn parse_date(text: &str) -> Option<NaiveDate> {
    let mut parts = text.trim().split('-');
    let date = NaiveDate::from_ymd_opt(
        parts.next()?.parse().ok()?,
        parts.next()?.parse().ok()?,
        parts.next()?.parse().ok()?,
    )?;
    parts.next().is_none().then_some(date)
}

/// Parses `HH:mm:ss[.f]`; returns the number of fraction digits too.
fn parse_time(text: &str) -> Option<(NaiveTime, u8)> {
    let text = text.trim();
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = clock.split(':');
    let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nanos: u32 = format!("{fraction:0<9}").parse().ok()?;
    let time =
        NaiveTime::from_hms_nano_opt(hour.parse().ok()?, minute.parse().ok()?, second.parse().ok()?, nanos)?;
    Some((time, fraction.len() as u8))
}

/// Parses `yyyy-MM-dd HH:mm:ss[.f]`; returns the number of fraction digits too.
fn parse_timestamp(text: &str) -> Option<(NaiveDateTime, u8)> {
    let (date, time) = text.trim().split_once(' ')?;
    let (time, precision) = parse_time(time)?;
    Some((parse_date(date)?.and_time(time), precision))
}

/// Returns the days since 1970-01-01.
fn days(date: NaiveDate) -> i32 {
    date.signed_duration_since(NaiveDate::default()).num_days() as i32
}

/// Decodes hexadecimal digits.
fn hex_bytes(digits: &str) -> Option<Vec<u8>> {
    (digits.len().is_multiple_of(2) && digits.is_ascii()).then_some(())?;
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok()).collect()
}
