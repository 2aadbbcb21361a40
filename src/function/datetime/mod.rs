//! Timestamps as kernels see them: ticks of a unit that the precision decides, local seconds, fields, Java patterns.

mod parse;
mod pattern;
mod unit;

pub(super) use parse::{Malformed, parse_date, parse_time, parse_timestamp};
pub(super) use pattern::Pattern;
pub(super) use unit::{TimeUnit, ceil_date, ceil_timestamp, floor_date, floor_timestamp, months_between};

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, TimestampNanosecondArray,
};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::datatypes::{
    DataType as ArrowType, TimeUnit as ArrowUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType,
};
use chrono_tz::Tz;

use crate::error::{Error, Result};
use crate::schema::calendar::{SECONDS_PER_DAY, offset_at, offset_of_local};
use crate::schema::{DataType, TypeRoot, timestamp_unit};

/// Returns how many ticks a second has in the Arrow form of a timestamp type.
pub(super) fn ticks_per_second(precision: u8) -> i64 {
    match timestamp_unit(precision) {
        ArrowUnit::Second => 1,
        ArrowUnit::Millisecond => 1000,
        ArrowUnit::Microsecond => 1_000_000,
        ArrowUnit::Nanosecond => 1_000_000_000,
    }
}

/// Returns the ticks of a timestamp array of any unit.
///
/// # Errors
/// The array holds no timestamps, which is a bug of the binder.
pub(super) fn ticks(array: &dyn Array) -> Result<&[i64]> {
    fn of<T: ArrowPrimitiveType<Native = i64>>(array: &dyn Array) -> Option<&[i64]> {
        let array: &PrimitiveArray<T> = array.as_primitive_opt()?;
        Some(array.values().as_ref())
    }
    let values = match array.data_type() {
        ArrowType::Timestamp(ArrowUnit::Millisecond, _) => of::<TimestampMillisecondType>(array),
        ArrowType::Timestamp(ArrowUnit::Microsecond, _) => of::<TimestampMicrosecondType>(array),
        ArrowType::Timestamp(ArrowUnit::Nanosecond, _) => of::<TimestampNanosecondType>(array),
        _ => None,
    };
    values.ok_or_else(|| Error::internal(format!("a kernel for timestamps got {}", array.data_type())))
}

/// Builds the column of a timestamp type from ticks.
///
/// # Errors
/// The type is no timestamp, which is a bug of the caller.
pub(super) fn timestamp_array(
    ticks: Vec<i64>,
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> Result<ArrayRef> {
    let arrow = data_type.to_arrow();
    let ArrowType::Timestamp(unit, zone) = &arrow else {
        return Err(Error::internal(format!("{data_type} is no timestamp")));
    };
    let values = ScalarBuffer::from(ticks);
    Ok(match unit {
        ArrowUnit::Nanosecond => {
            Arc::new(TimestampNanosecondArray::try_new(values, nulls)?.with_timezone_opt(zone.clone()))
        }
        ArrowUnit::Microsecond => {
            Arc::new(TimestampMicrosecondArray::try_new(values, nulls)?.with_timezone_opt(zone.clone()))
        }
        _ => Arc::new(TimestampMillisecondArray::try_new(values, nulls)?.with_timezone_opt(zone.clone())),
    })
}

/// Returns the precision of a timestamp type, or of a date 0.
pub(super) fn precision_of(root: &TypeRoot) -> u8 {
    match root {
        TypeRoot::Time(precision) | TypeRoot::Timestamp(precision) | TypeRoot::TimestampLtz(precision) => {
            *precision
        }
        _ => 0,
    }
}

/// Returns ticks cut to the digits of a precision that its unit may exceed: TIMESTAMP(0) lies in milliseconds.
pub(super) fn truncate_ticks(ticks: i64, precision: u8) -> i64 {
    let digits_of_unit = match ticks_per_second(precision) {
        1000 => 3,
        1_000_000 => 6,
        _ => 9,
    };
    let step = 10_i64.pow(digits_of_unit - u32::from(precision.min(9)));
    ticks - ticks.rem_euclid(step)
}

/// Returns the ticks of a count of seconds and nanoseconds, cut to the precision; None outside the unit's range.
pub(super) fn to_ticks(seconds: i64, nanos: i64, precision: u8) -> Option<i64> {
    let per_second = ticks_per_second(precision);
    let ticks = seconds.checked_mul(per_second)?.checked_add(nanos / (1_000_000_000 / per_second))?;
    Some(truncate_ticks(ticks, precision))
}

/// The error for a value that the type's unit cannot hold.
pub(super) fn out_of_range(data_type: &DataType) -> Error {
    Error::data(format!("timestamp is out of the range of {data_type}"))
        .hint("Timestamps with more than 6 fraction digits reach from 1677 to 2262; use a smaller precision.")
}

/// A point in time on the wall: seconds since 1970-01-01 00:00 there, and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WallTime {
    pub(super) seconds: i64,
    pub(super) nanos: i64,
}

impl WallTime {
    /// Reads ticks as they stand on the wall of the zone; a TIMESTAMP is read with UTC.
    pub(super) fn of_ticks(ticks: i64, per_second: i64, zone: Tz) -> WallTime {
        let seconds = ticks.div_euclid(per_second);
        let nanos = ticks.rem_euclid(per_second) * (1_000_000_000 / per_second);
        WallTime { seconds: seconds + offset_at(zone, seconds), nanos }
    }

    /// Returns the days since 1970-01-01 on the wall.
    pub(super) fn days(self) -> i64 {
        self.seconds.div_euclid(SECONDS_PER_DAY)
    }

    /// Returns the seconds since midnight on the wall.
    pub(super) fn second_of_day(self) -> i64 {
        self.seconds.rem_euclid(SECONDS_PER_DAY)
    }

    /// Returns the seconds since the epoch of the instant at which a wall in the zone shows this.
    pub(super) fn instant(self, zone: Tz) -> i64 {
        self.seconds - offset_of_local(zone, self.seconds)
    }
}

/// Returns the zone in which a type's values are read: the session's for instants.
pub(super) fn zone_of(root: &TypeRoot, session: Tz) -> Tz {
    if matches!(root, TypeRoot::TimestampLtz(_)) { session } else { Tz::UTC }
}
