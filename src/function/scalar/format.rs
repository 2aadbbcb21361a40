//! Dates and timestamps to text and back, by Java patterns.

use arrow::array::ArrayRef;
use arrow::datatypes::{Date32Type, Int32Type, Int64Type};
use chrono_tz::Tz;

use super::super::datetime::{
    Pattern, WallTime, parse_date, parse_timestamp, precision_of, ticks, ticks_per_second, timestamp_array,
    zone_of,
};
use super::super::definition::Definition;
use super::super::operand::{Operand, map_text, try_map_values};
use super::super::typing::{Parameter, typed};
use super::super::{Argument, Call, Determinism, Inferred};
use crate::error::Result;
use crate::schema::TypeRoot;
use crate::schema::calendar::offset_at;

/// The pattern where none is given.
const DEFAULT_PATTERN: &str = "yyyy-MM-dd HH:mm:ss";

pub(super) static DATE_FORMAT: Definition = Definition {
    name: "DATE_FORMAT",
    doc: "Writes a timestamp, or a text that is one, by a Java pattern.",
    signatures: &["DATE_FORMAT(<TIMESTAMP>, <CHARACTER>)", "DATE_FORMAT(<CHARACTER>, <CHARACTER>)"],
    examples: &[
        (
            "DATE_FORMAT(TIMESTAMP '2024-02-29 23:59:59.999', 'yyyy-MM-dd HH:mm:ss.SSS')",
            "2024-02-29 23:59:59.999",
        ),
        ("DATE_FORMAT('2024-03-10 01:30:00', 'yyyyMMdd')", "20240310"),
    ],
    infer: |arguments| {
        typed(arguments, &[Parameter::Text, Parameter::Text], TypeRoot::STRING).or_else(|| {
            let inferred = typed(arguments, &[Parameter::Datetime, Parameter::Text], TypeRoot::STRING)?;
            let is_timestamp =
                matches!(inferred.arguments[0].root, TypeRoot::Timestamp(_) | TypeRoot::TimestampLtz(_));
            is_timestamp.then_some(inferred)
        })
    },
    invoke: date_format,
    ..Definition::DEFAULT
};

pub(super) static TO_DATE: Definition = Definition {
    name: "TO_DATE",
    doc: "Reads a date by a Java pattern; NULL where the text is none.",
    signatures: &["TO_DATE(<CHARACTER>)", "TO_DATE(<CHARACTER>, <CHARACTER>)"],
    examples: &[("TO_DATE('2024-2-3')", "2024-02-03"), ("TO_DATE('2024-02-30')", "<NULL>")],
    infer: |arguments| texts(arguments, 1, 2, TypeRoot::Date),
    invoke: |call, operands| {
        let values = operands[0].texts()?;
        let mut pattern = operands.get(1).map(PatternSource::new).transpose()?;
        try_map_values::<Date32Type>(call, operands, |row| {
            let text = values.get(row);
            let days = match &mut pattern {
                None => parse_date(text),
                Some(pattern) => pattern.get(row)?.parse(text).map(WallTime::days),
            };
            Ok(days.map(|days| days as i32))
        })
    },
    ..Definition::DEFAULT
};

pub(super) static TO_TIMESTAMP: Definition = Definition {
    name: "TO_TIMESTAMP",
    doc: "Reads a timestamp by a Java pattern; NULL where the text is none.",
    signatures: &["TO_TIMESTAMP(<CHARACTER>)", "TO_TIMESTAMP(<CHARACTER>, <CHARACTER>)"],
    examples: &[
        ("TO_TIMESTAMP('2024-02-29 12:00:00.123456')", "2024-02-29 12:00:00.123"),
        ("TO_TIMESTAMP('01/02/2024', 'dd/MM/yyyy')", "2024-02-01 00:00:00.000"),
        ("TO_TIMESTAMP('bad')", "<NULL>"),
    ],
    infer: |arguments| texts(arguments, 1, 2, TypeRoot::Timestamp(3)),
    invoke: |call, operands| read_timestamps(call, operands, Tz::UTC),
    ..Definition::DEFAULT
};

pub(super) static TO_TIMESTAMP_LTZ: Definition = Definition {
    name: "TO_TIMESTAMP_LTZ",
    doc: "Makes an instant of a count since 1970 with 0 to 9 fraction digits, or of a text by a Java pattern in a zone.",
    signatures: &[
        "TO_TIMESTAMP_LTZ(<NUMERIC>)",
        "TO_TIMESTAMP_LTZ(<NUMERIC>, <INTEGER>)",
        "TO_TIMESTAMP_LTZ(<CHARACTER>)",
        "TO_TIMESTAMP_LTZ(<CHARACTER>, <CHARACTER>)",
        "TO_TIMESTAMP_LTZ(<CHARACTER>, <CHARACTER>, <CHARACTER>)",
    ],
    examples: &[("TO_TIMESTAMP_LTZ('bad')", "<NULL>")],
    infer: |arguments| {
        let root = TypeRoot::TimestampLtz(3);
        const INTEGER: [Parameter; 2] = [Parameter::BigInt, Parameter::Int];
        const DOUBLE: [Parameter; 2] = [Parameter::Double, Parameter::Int];
        let count = arguments.len().max(1);
        texts(arguments, 1, 3, root.clone())
            .or_else(|| typed(arguments, INTEGER.get(..count)?, root.clone()).map(Inferred::or_null))
            .or_else(|| typed(arguments, DOUBLE.get(..count)?, root).map(Inferred::or_null))
    },
    invoke: to_timestamp_ltz,
    ..Definition::DEFAULT
};

pub(super) static FROM_UNIXTIME: Definition = Definition {
    name: "FROM_UNIXTIME",
    doc: "Writes seconds since 1970 as they stand on the wall in the session's zone.",
    signatures: &["FROM_UNIXTIME(<INTEGER>)", "FROM_UNIXTIME(<INTEGER>, <CHARACTER>)"],
    examples: &[("FROM_UNIXTIME(0, 'yyyy')", "1970")],
    infer: |arguments| {
        const PARAMETERS: [Parameter; 2] = [Parameter::BigInt, Parameter::Text];
        typed(arguments, PARAMETERS.get(..arguments.len().max(1))?, TypeRoot::STRING).map(Inferred::or_null)
    },
    invoke: |call, operands| {
        let seconds = operands[0].values::<Int64Type>()?;
        let mut pattern = PatternSource::or_default(operands.get(1))?;
        let zone = call.context.zone;
        map_text(call, operands, |row, out| {
            let wall = WallTime::of_ticks(seconds.get(row), 1, zone);
            let offset = offset_at(zone, seconds.get(row));
            pattern.get(row)?.format(wall, Some((zone.name(), offset)), out)?;
            Ok(true)
        })
    },
    ..Definition::DEFAULT
};

pub(super) static UNIX_TIMESTAMP: Definition = Definition {
    name: "UNIX_TIMESTAMP",
    doc: "Returns the seconds since 1970 now, or of a text by a Java pattern in the session's zone.",
    signatures: &[
        "UNIX_TIMESTAMP()",
        "UNIX_TIMESTAMP(<CHARACTER>)",
        "UNIX_TIMESTAMP(<CHARACTER>, <CHARACTER>)",
    ],
    examples: &[("UNIX_TIMESTAMP('bad')", "-9223372036854775808")],
    determinism: Determinism::QueryConstant,
    infer: |arguments| {
        const PARAMETERS: [Parameter; 2] = [Parameter::Text; 2];
        typed(arguments, PARAMETERS.get(..arguments.len())?, TypeRoot::BigInt)
    },
    invoke: unix_timestamp,
    ..Definition::DEFAULT
};

pub(super) static CONVERT_TZ: Definition = Definition {
    name: "CONVERT_TZ",
    doc: "Moves a text `yyyy-MM-dd HH:mm:ss` from one zone to another.",
    signatures: &["CONVERT_TZ(<CHARACTER>, <CHARACTER>, <CHARACTER>)"],
    examples: &[("CONVERT_TZ('1970-01-01 00:00:00', 'UTC', 'America/Los_Angeles')", "1969-12-31 16:00:00")],
    infer: |arguments| texts(arguments, 3, 3, TypeRoot::STRING),
    invoke: |call, operands| {
        let (values, from, to) = (operands[0].texts()?, operands[1].texts()?, operands[2].texts()?);
        let pattern = Pattern::compile(DEFAULT_PATTERN)?;
        map_text(call, operands, |row, out| {
            let Some(wall) = pattern.parse(values.get(row)) else { return Ok(false) };
            let instant = wall.instant(zone_named(from.get(row)));
            pattern.format(WallTime::of_ticks(instant, 1, zone_named(to.get(row))), None, out)?;
            Ok(true)
        })
    },
    ..Definition::DEFAULT
};

/// Types a call with `least` to `most` texts whose result may be NULL.
fn texts(arguments: &[Argument<'_>], least: usize, most: usize, result: TypeRoot) -> Option<Inferred> {
    if !(least..=most).contains(&arguments.len()) {
        return None;
    }
    typed(arguments, &vec![Parameter::Text; arguments.len()], result).map(Inferred::or_null)
}

/// Java takes GMT for a zone that it does not know.
fn zone_named(name: &str) -> Tz {
    name.parse().unwrap_or(Tz::UTC)
}

/// The patterns of an operand; each is compiled once as long as it does not change from row to row.
struct PatternSource<'a> {
    operand: Option<&'a Operand>,
    compiled: Option<(&'a str, Pattern)>,
}

impl<'a> PatternSource<'a> {
    fn new(operand: &'a Operand) -> Result<PatternSource<'a>> {
        let compiled = match operand.constant_text() {
            Some(text) => Some((text, Pattern::compile(text)?)),
            None => None,
        };
        Ok(PatternSource { operand: Some(operand), compiled })
    }

    fn or_default(operand: Option<&'a Operand>) -> Result<PatternSource<'a>> {
        match operand {
            Some(operand) => PatternSource::new(operand),
            None => Ok(PatternSource {
                operand: None,
                compiled: Some((DEFAULT_PATTERN, Pattern::compile(DEFAULT_PATTERN)?)),
            }),
        }
    }

    fn get(&mut self, row: usize) -> Result<&Pattern> {
        let wanted = match self.operand {
            Some(operand) => operand.texts()?.get(row),
            None => DEFAULT_PATTERN,
        };
        if self.compiled.as_ref().is_none_or(|(text, _)| *text != wanted) {
            self.compiled = Some((wanted, Pattern::compile(wanted)?));
        }
        match &self.compiled {
            Some((_, pattern)) => Ok(pattern),
            None => Err(crate::error::Error::internal("a pattern was not compiled")),
        }
    }
}

fn date_format(call: &Call<'_>, operands: &[Operand]) -> Result<ArrayRef> {
    let mut pattern = PatternSource::new(&operands[1])?;
    let root = &call.arguments[0].root;
    if root.is_character() {
        let values = operands[0].texts()?;
        return map_text(call, operands, |row, out| {
            let Ok(wall) = parse_timestamp(values.get(row)) else { return Ok(false) };
            pattern.get(row)?.format(wall, None, out)?;
            Ok(true)
        });
    }
    let zone = zone_of(root, call.context.zone);
    let is_instant = matches!(root, TypeRoot::TimestampLtz(_));
    let per_second = ticks_per_second(precision_of(root));
    let values = ticks(operands[0].array().as_ref())?;
    map_text(call, operands, |row, out| {
        let value = values[operands[0].index(row)];
        let offset = is_instant.then(|| (zone.name(), offset_at(zone, value.div_euclid(per_second))));
        pattern.get(row)?.format(WallTime::of_ticks(value, per_second, zone), offset, out)?;
        Ok(true)
    })
}

/// Reads timestamps with milliseconds; the zone is that of the wall.
fn read_timestamps(call: &Call<'_>, operands: &[Operand], zone: Tz) -> Result<ArrayRef> {
    let values = operands[0].texts()?;
    let mut pattern = operands.get(1).map(PatternSource::new).transpose()?;
    let zones = operands.get(2).map(Operand::texts).transpose()?;
    let inner = Call { result: &TypeRoot::BigInt.nullable(), ..*call };
    let millis = try_map_values::<Int64Type>(&inner, operands, |row| {
        let text = values.get(row);
        let wall = match &mut pattern {
            None => parse_timestamp(text).ok(),
            Some(pattern) => pattern.get(row)?.parse(text),
        };
        let zone = zones.map_or(zone, |zones| zone_named(zones.get(row)));
        Ok(wall.and_then(|wall| wall.instant(zone).checked_mul(1000)?.checked_add(wall.nanos / 1_000_000)))
    })?;
    as_timestamps(call, &millis)
}

/// Gives milliseconds the type of the result.
fn as_timestamps(call: &Call<'_>, millis: &ArrayRef) -> Result<ArrayRef> {
    let operand = Operand::column(std::sync::Arc::clone(millis));
    let values = operand.values::<Int64Type>()?;
    timestamp_array(
        (0..millis.len()).map(|row| values.get(row)).collect(),
        millis.nulls().cloned(),
        call.result,
    )
}

fn to_timestamp_ltz(call: &Call<'_>, operands: &[Operand]) -> Result<ArrayRef> {
    let root = &call.arguments[0].root;
    if root.is_character() {
        return read_timestamps(call, operands, call.context.zone);
    }
    let digits = operands.get(1).map(Operand::values::<Int32Type>).transpose()?;
    let digits = |row| digits.map_or(3, |digits| digits.get(row));
    let inner = Call { result: &TypeRoot::BigInt.nullable(), ..*call };
    let millis = if *root == TypeRoot::BigInt {
        let values = operands[0].values::<Int64Type>()?;
        try_map_values::<Int64Type>(&inner, operands, |row| {
            Ok(match digits(row) {
                digits @ 0..=3 => values.get(row).checked_mul(10_i64.pow(3 - digits as u32)),
                digits @ 4..=9 => Some(values.get(row).div_euclid(10_i64.pow(digits as u32 - 3))),
                _ => None,
            })
        })?
    } else {
        let values = operands[0].values::<arrow::datatypes::Float64Type>()?;
        try_map_values::<Int64Type>(&inner, operands, |row| {
            let digits = digits(row);
            let millis = values.get(row) * 10_f64.powi(3 - digits);
            Ok((millis.is_finite() && (0..=9).contains(&digits)).then_some(millis as i64))
        })?
    };
    as_timestamps(call, &millis)
}

fn unix_timestamp(call: &Call<'_>, operands: &[Operand]) -> Result<ArrayRef> {
    let now = call.context.now().timestamp();
    let Some(first) = operands.first() else {
        return try_map_values::<Int64Type>(call, operands, |_| Ok(Some(now)));
    };
    let values = first.texts()?;
    let mut pattern = PatternSource::or_default(operands.get(1))?;
    try_map_values::<Int64Type>(call, operands, |row| {
        let wall = pattern.get(row)?.parse(values.get(row));
        Ok(Some(wall.map_or(i64::MIN, |wall| wall.instant(call.context.zone))))
    })
}
