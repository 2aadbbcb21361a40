//! FLOOR and CEIL of dates and timestamps to a unit, which arrives as a constant text.

use arrow::array::ArrayRef;
use arrow::datatypes::{Date32Type, Time32MillisecondType};

use super::super::datetime::{
    TimeUnit, ceil_date, ceil_timestamp, floor_date, floor_timestamp, precision_of, ticks, ticks_per_second,
    timestamp_array, zone_of,
};
use super::super::operand::{Operand, map_values, validity};
use super::super::typing::{Parameter, typed};
use super::super::{Argument, Call, Inferred};
use crate::error::{Error, Result};
use crate::schema::TypeRoot;
use crate::schema::calendar::{MILLIS_PER_DAY, offset_at};

/// Returns the unit that a constant argument names.
pub(super) fn unit_of(argument: Option<&Argument<'_>>) -> Option<TimeUnit> {
    TimeUnit::parse(argument?.literal?.try_as_str()??)
}

/// Returns the unit that a constant operand names.
pub(super) fn constant_unit(operand: &Operand) -> Result<TimeUnit> {
    operand
        .constant_text()
        .and_then(TimeUnit::parse)
        .ok_or_else(|| Error::internal("the unit of time is no constant"))
}

pub(super) fn infer(arguments: &[Argument<'_>]) -> Option<Inferred> {
    let inferred = typed(arguments, &[Parameter::Datetime, Parameter::Text], TypeRoot::Date)?;
    let unit = unit_of(arguments.get(1))?;
    if unit.months().is_none() && unit.millis().is_none() {
        return None;
    }
    let root = inferred.arguments[0].root.clone();
    Some(inferred.returning(root))
}

pub(super) fn invoke(call: &Call<'_>, operands: &[Operand], is_ceil: bool) -> Result<ArrayRef> {
    let unit = constant_unit(&operands[1])?;
    match &call.result.root {
        TypeRoot::Date => {
            let days = operands[0].values::<Date32Type>()?;
            let round = if is_ceil { ceil_date } else { floor_date };
            map_values::<Date32Type>(call, operands, |row| round(unit, i64::from(days.get(row))) as i32)
        }
        TypeRoot::Time(_) => {
            let millis = operands[0].values::<Time32MillisecondType>()?;
            let step = unit.millis().unwrap_or(MILLIS_PER_DAY);
            map_values::<Time32MillisecondType>(call, operands, |row| {
                let millis = i64::from(millis.get(row));
                let floor = millis - millis.rem_euclid(step);
                let rounded = if is_ceil && floor < millis { floor + step } else { floor };
                rounded.rem_euclid(MILLIS_PER_DAY) as i32
            })
        }
        root => {
            let zone = zone_of(root, call.context.zone);
            let per_milli = ticks_per_second(precision_of(root)) / 1000;
            let values = ticks(operands[0].array().as_ref())?;
            let round = if is_ceil { ceil_timestamp } else { floor_timestamp };
            let rounded = (0..call.row_count).map(|row| {
                let millis = values[operands[0].index(row)].div_euclid(per_milli);
                // The offset is that of the value, also where the rounded time lies behind a change of the clock; as Flink.
                let offset = offset_at(zone, millis.div_euclid(1000)) * 1000;
                round(unit, millis + offset).wrapping_sub(offset).wrapping_mul(per_milli)
            });
            timestamp_array(rounded.collect(), validity(operands, call.row_count), call.result)
        }
    }
}
