//! The clock: one instant per query in batch, one per batch of rows in streams.

use arrow::array::ArrayRef;
use arrow::datatypes::{Date32Type, Time32MillisecondType, TimestampMillisecondType};
use chrono::Utc;

use super::super::datetime::WallTime;
use super::super::definition::Definition;
use super::super::operand::map_values;
use super::super::typing::typed;
use super::super::{Argument, Call, Determinism, Inferred};
use crate::error::Result;
use crate::schema::TypeRoot;

/// Declares what tells the time.
macro_rules! clocks {
    ($($symbol:ident, $name:literal, $form:literal, $determinism:ident, $doc:literal, $root:expr, $invoke:expr;)*) => {
        $(pub(super) static $symbol: Definition = Definition {
            name: $name,
            doc: $doc,
            signatures: &[$form],
            determinism: Determinism::$determinism,
            infer: |arguments| no_arguments(arguments, $root),
            invoke: |call, _| $invoke(call),
            ..Definition::DEFAULT
        };)*
    };
}

clocks! {
    CURRENT_TIMESTAMP, "CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP", QueryConstant, "Returns the current instant.", TypeRoot::TimestampLtz(3), instant;
    NOW, "NOW", "NOW()", QueryConstant, "Returns the current instant.", TypeRoot::TimestampLtz(3), instant;
    CURRENT_ROW_TIMESTAMP, "CURRENT_ROW_TIMESTAMP", "CURRENT_ROW_TIMESTAMP()", Volatile, "Returns the instant at which the row is computed.", TypeRoot::TimestampLtz(3), instant_of_row;
    PROCTIME, "PROCTIME", "PROCTIME()", Volatile, "Returns the instant at which the row is computed, as a time attribute.", TypeRoot::TimestampLtz(3), instant_of_row;
    LOCALTIMESTAMP, "LOCALTIMESTAMP", "LOCALTIMESTAMP", QueryConstant, "Returns the current time on the wall in the session's zone.", TypeRoot::Timestamp(3), wall_timestamp;
    CURRENT_DATE, "CURRENT_DATE", "CURRENT_DATE", QueryConstant, "Returns the current date in the session's zone.", TypeRoot::Date, date;
    CURRENT_TIME, "CURRENT_TIME", "CURRENT_TIME", QueryConstant, "Returns the current time of day in the session's zone.", TypeRoot::Time(0), time;
    LOCALTIME, "LOCALTIME", "LOCALTIME", QueryConstant, "Returns the current time of day in the session's zone.", TypeRoot::Time(0), time;
}

fn no_arguments(arguments: &[Argument<'_>], root: TypeRoot) -> Option<Inferred> {
    typed(arguments, &[], root)
}

/// Returns the time on the wall in the session's zone.
fn wall(call: &Call<'_>) -> WallTime {
    WallTime::of_ticks(call.context.now().timestamp_millis(), 1000, call.context.zone)
}

fn instant(call: &Call<'_>) -> Result<ArrayRef> {
    millis(call, call.context.now().timestamp_millis())
}

fn instant_of_row(call: &Call<'_>) -> Result<ArrayRef> {
    millis(call, Utc::now().timestamp_millis())
}

fn wall_timestamp(call: &Call<'_>) -> Result<ArrayRef> {
    let wall = wall(call);
    millis(call, wall.seconds * 1000 + wall.nanos / 1_000_000)
}

fn millis(call: &Call<'_>, millis: i64) -> Result<ArrayRef> {
    map_values::<TimestampMillisecondType>(call, &[], |_| millis)
}

fn date(call: &Call<'_>) -> Result<ArrayRef> {
    let days = wall(call).days() as i32;
    map_values::<Date32Type>(call, &[], |_| days)
}

fn time(call: &Call<'_>) -> Result<ArrayRef> {
    let millis = wall(call).second_of_day() as i32 * 1000;
    map_values::<Time32MillisecondType>(call, &[], |_| millis)
}
