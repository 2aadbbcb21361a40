//! Fields of dates, times and timestamps: EXTRACT and its shorthands.

use arrow::array::ArrayRef;
use arrow::datatypes::{Date32Type, Int64Type, Time32MillisecondType};

use super::super::datetime::{TimeUnit, WallTime, precision_of, ticks, ticks_per_second, zone_of};
use super::super::definition::Definition;
use super::super::operand::{Operand, map_values};
use super::super::typing::{Parameter, typed};
use super::super::{Argument, Call, Inferred};
use super::floor_time::{constant_unit, unit_of};
use crate::error::Result;
use crate::schema::TypeRoot;
use crate::schema::calendar::SECONDS_PER_DAY;

pub(super) static EXTRACT: Definition = Definition {
    name: "EXTRACT",
    doc: "Returns a field of a date, time or timestamp.",
    signatures: &[
        "EXTRACT(<DATETIME_INTERVAL> FROM <DATETIME_INTERVAL>)",
        "EXTRACT(<DATETIME_INTERVAL> FROM <DATETIME>)",
    ],
    examples: &[
        ("EXTRACT(YEAR FROM TIMESTAMP '2024-02-29 23:59:59.999')", "2024"),
        ("EXTRACT(DOW FROM TIMESTAMP '2024-02-29 23:59:59.999')", "5"),
        ("EXTRACT(ISOYEAR FROM DATE '2024-12-30')", "2025"),
    ],
    infer: |arguments| {
        unit_of(arguments.first())?;
        typed(arguments, &[Parameter::Text, Parameter::Datetime], TypeRoot::BigInt)
    },
    invoke: |call, operands| extract(call, &operands[1], 1, constant_unit(&operands[0])?),
    ..Definition::DEFAULT
};

/// Declares the shorthands: `YEAR(d)` is `EXTRACT(YEAR FROM d)`.
macro_rules! shorthands {
    ($($symbol:ident, $name:literal, $form:literal, $unit:ident, $doc:literal, $call:literal => $value:literal;)*) => {
        $(pub(super) static $symbol: Definition = Definition {
            name: $name,
            doc: $doc,
            signatures: &[$form],
            examples: &[($call, $value)],
            infer: field,
            invoke: |call, operands| extract(call, &operands[0], 0, TimeUnit::$unit),
            ..Definition::DEFAULT
        };)*
    };
}

shorthands! {
    YEAR, "YEAR", "YEAR(<DATETIME>)", Year, "Returns the year.", "YEAR(DATE '2024-12-30')" => "2024";
    QUARTER, "QUARTER", "QUARTER(<DATETIME>)", Quarter, "Returns the quarter.", "QUARTER(DATE '2024-12-30')" => "4";
    MONTH, "MONTH", "MONTH(<DATETIME>)", Month, "Returns the month.", "MONTH(DATE '2024-12-30')" => "12";
    WEEK, "WEEK", "WEEK(<DATETIME>)", Week, "Returns the ISO week.", "WEEK(DATE '2024-12-30')" => "1";
    DAYOFYEAR, "DAYOFYEAR", "DAYOFYEAR(<DATETIME>)", DayOfYear, "Returns the day of the year.", "DAYOFYEAR(DATE '2024-12-30')" => "365";
    DAYOFMONTH, "DAYOFMONTH", "DAYOFMONTH(<DATETIME>)", Day, "Returns the day of the month.", "DAYOFMONTH(DATE '2024-12-30')" => "30";
    DAYOFWEEK, "DAYOFWEEK", "DAYOFWEEK(<DATETIME>)", DayOfWeek, "Returns the day of the week, 1 for Sunday.", "DAYOFWEEK(DATE '2024-12-30')" => "2";
    HOUR, "HOUR", "HOUR(<DATETIME>)", Hour, "Returns the hour.", "HOUR(TIMESTAMP '2024-12-30 13:14:15')" => "13";
    MINUTE, "MINUTE", "MINUTE(<DATETIME>)", Minute, "Returns the minute.", "MINUTE(TIMESTAMP '2024-12-30 13:14:15')" => "14";
    SECOND, "SECOND", "SECOND(<DATETIME>)", Second, "Returns the second.", "SECOND(TIMESTAMP '2024-12-30 13:14:15')" => "15";
}

fn field(arguments: &[Argument<'_>]) -> Option<Inferred> {
    typed(arguments, &[Parameter::Datetime], TypeRoot::BigInt)
}

/// Reads a field of the operand, whose type is that of the argument at `index`.
fn extract(call: &Call<'_>, operand: &Operand, index: usize, unit: TimeUnit) -> Result<ArrayRef> {
    let operands = std::slice::from_ref(operand);
    match &call.arguments[index].root {
        TypeRoot::Date => {
            let days = operand.values::<Date32Type>()?;
            let is_time =
                matches!(unit.millis(), Some(..=3_600_000)) || matches!(unit, TimeUnit::Microsecond);
            map_values::<Int64Type>(call, operands, |row| {
                let day = i64::from(days.get(row));
                // Flink reads the count of days as milliseconds here.
                let wall = if is_time {
                    WallTime { seconds: day.div_euclid(1000), nanos: day.rem_euclid(1000) * 1_000_000 }
                } else {
                    WallTime { seconds: day * SECONDS_PER_DAY, nanos: 0 }
                };
                unit.extract(wall)
            })
        }
        TypeRoot::Time(_) => {
            let millis = operand.values::<Time32MillisecondType>()?;
            map_values::<Int64Type>(call, operands, |row| {
                let millis = i64::from(millis.get(row));
                unit.extract(WallTime { seconds: millis / 1000, nanos: millis % 1000 * 1_000_000 })
            })
        }
        root => {
            // The epoch counts from one instant in every zone.
            let zone =
                if unit == TimeUnit::Epoch { chrono_tz::Tz::UTC } else { zone_of(root, call.context.zone) };
            let per_second = ticks_per_second(precision_of(root));
            let values = ticks(operand.array().as_ref())?;
            map_values::<Int64Type>(call, operands, |row| {
                unit.extract(WallTime::of_ticks(values[operand.index(row)], per_second, zone))
            })
        }
    }
}
