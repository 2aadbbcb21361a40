//! Casts among dates, times and timestamps. Instants are read and written in the session's zone.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{Date32Type, Time32MillisecondType};

use super::super::EvalContext;
use super::super::datetime::{
    WallTime, out_of_range, precision_of, ticks, ticks_per_second, timestamp_array, to_ticks, zone_of,
};
use crate::error::{Error, Result};
use crate::schema::calendar::SECONDS_PER_DAY;
use crate::schema::{DataType, TypeRoot};

/// Casts a column of dates, times or timestamps.
pub(super) fn cast(
    array: &ArrayRef,
    from: &DataType,
    to: &DataType,
    try_cast: bool,
    context: &EvalContext,
) -> Result<ArrayRef> {
    let mismatch = || Error::internal(format!("a cast of {from} got {}", array.data_type()));
    match &from.root {
        TypeRoot::Date => {
            let days: &PrimitiveArray<Date32Type> = array.as_primitive_opt().ok_or_else(mismatch)?;
            let walls = |row| WallTime { seconds: i64::from(days.value(row)) * SECONDS_PER_DAY, nanos: 0 };
            write(array, walls, from, to, try_cast, context)
        }
        TypeRoot::Time(_) => {
            let millis: &PrimitiveArray<Time32MillisecondType> =
                array.as_primitive_opt().ok_or_else(mismatch)?;
            let walls = |row| {
                let millis = i64::from(millis.value(row));
                WallTime { seconds: millis.div_euclid(1000), nanos: millis.rem_euclid(1000) * 1_000_000 }
            };
            write(array, walls, from, to, try_cast, context)
        }
        root => {
            let (values, per_second) = (ticks(array.as_ref())?, ticks_per_second(precision_of(root)));
            // Between two types of one kind the wall does not matter, and UTC is cheapest.
            let is_same_kind = std::mem::discriminant(root) == std::mem::discriminant(&to.root);
            let zone = if is_same_kind { chrono_tz::Tz::UTC } else { zone_of(root, context.zone) };
            write(array, |row| WallTime::of_ticks(values[row], per_second, zone), from, to, try_cast, context)
        }
    }
}

/// Writes times on the wall as the target type.
fn write(
    array: &ArrayRef,
    walls: impl Fn(usize) -> WallTime,
    from: &DataType,
    to: &DataType,
    try_cast: bool,
    context: &EvalContext,
) -> Result<ArrayRef> {
    let nulls = array.nulls().cloned();
    let rows = 0..array.len();
    match &to.root {
        TypeRoot::Date => {
            let days = rows.map(|row| walls(row).days() as i32).collect::<Vec<i32>>();
            Ok(Arc::new(PrimitiveArray::<Date32Type>::try_new(days.into(), nulls)?))
        }
        TypeRoot::Time(precision) => {
            let step = 10_i64.pow(3 - u32::from(*precision.min(&3)));
            let millis = rows
                .map(|row| {
                    let wall = walls(row);
                    let millis = wall.second_of_day() * 1000 + wall.nanos / 1_000_000;
                    (millis - millis % step) as i32
                })
                .collect::<Vec<i32>>();
            Ok(Arc::new(PrimitiveArray::<Time32MillisecondType>::try_new(millis.into(), nulls)?))
        }
        root @ (TypeRoot::Timestamp(precision) | TypeRoot::TimestampLtz(precision)) => {
            let is_same_kind = std::mem::discriminant(&from.root) == std::mem::discriminant(root);
            let zone = if is_same_kind { chrono_tz::Tz::UTC } else { zone_of(root, context.zone) };
            let mut values = Vec::with_capacity(array.len());
            let mut valid = Vec::with_capacity(array.len());
            for row in rows {
                if array.is_null(row) {
                    values.push(0);
                    valid.push(false);
                    continue;
                }
                let wall = walls(row);
                let ticks = to_ticks(wall.instant(zone), wall.nanos, *precision);
                if ticks.is_none() && !try_cast {
                    return Err(out_of_range(to));
                }
                valid.push(ticks.is_some());
                values.push(ticks.unwrap_or_default());
            }
            timestamp_array(values, Some(NullBuffer::from(valid)).filter(|nulls| nulls.null_count() > 0), to)
        }
        _ => Err(Error::internal(format!("a cast of {from} was asked for {to}"))),
    }
}
