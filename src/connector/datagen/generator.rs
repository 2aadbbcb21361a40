//! Draws the values of a column, a whole column at a time.

use arrow::array::ArrayRef;
use chrono::{Datelike, TimeZone, Timelike, Utc};
use chrono_tz::Tz;
use rand::distr::{Distribution, Uniform};
use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};

use super::options::{FieldSpec, RandomSpec};
use crate::error::Result;
use crate::format::{ColumnBuilder, ColumnValues};
use crate::schema::{DataType, TypeRoot};

const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Makes the values of one column.
pub(super) struct ColumnGenerator {
    column: ColumnBuilder,
    spec: FieldSpec,
    draw: Draw,
}

/// What random values are drawn from.
struct Draw {
    random: SmallRng,
    scratch: Vec<u8>,
    zone: Tz,
    /// Nanoseconds since 1970, read once per frame.
    now: i128,
    /// The date and time of day in the session zone at that moment.
    today: i32,
    time_of_day: i32,
}

impl ColumnGenerator {
    pub(super) fn new(data_type: &DataType, spec: &FieldSpec, zone: Tz) -> ColumnGenerator {
        let draw = Draw {
            random: SmallRng::from_os_rng(),
            scratch: Vec::new(),
            zone,
            now: 0,
            today: 0,
            time_of_day: 0,
        };
        ColumnGenerator { column: ColumnBuilder::new(data_type), spec: spec.clone(), draw }
    }

    /// Makes `count` values, of which the first belongs to row number `first`.
    pub(super) fn generate(&mut self, first: u64, count: usize) -> Result<ArrayRef> {
        match &self.spec {
            FieldSpec::Sequence { start, .. } => {
                for row in 0..count as u64 {
                    self.draw.push_number(start.wrapping_add_unsigned(first + row), &mut self.column);
                }
            }
            FieldSpec::Random { null_rate, values } => {
                self.draw.read_clock();
                self.draw.push_many(*null_rate, values, count, &mut self.column);
            }
        }
        self.column.finish()
    }
}

impl Draw {
    fn read_clock(&mut self) {
        let now = Utc::now();
        self.now = i128::from(now.timestamp()) * 1_000_000_000 + i128::from(now.timestamp_subsec_nanos());
        let local = self.zone.from_utc_datetime(&now.naive_utc());
        self.today = local.num_days_from_ce() - 719_163;
        self.time_of_day =
            (local.num_seconds_from_midnight() * 1_000 + local.nanosecond() / 1_000_000 % 1_000) as i32;
    }

    /// Appends values; the commonest kinds have loops of their own.
    fn push_many(&mut self, null_rate: f64, spec: &RandomSpec, count: usize, column: &mut ColumnBuilder) {
        for _ in 0..count {
            if null_rate > 0.0 && self.random.random_bool(null_rate) {
                column.push_null();
            } else {
                self.push(spec, column);
            }
        }
    }

    fn push_field(&mut self, field: &FieldSpec, column: &mut ColumnBuilder) {
        match field {
            // A sequence within a row or collection begins anew for each of them.
            FieldSpec::Sequence { start, .. } => self.push_number(*start, column),
            FieldSpec::Random { null_rate, values } => self.push_many(*null_rate, values, 1, column),
        }
    }

    fn push(&mut self, spec: &RandomSpec, column: &mut ColumnBuilder) {
        match spec {
            RandomSpec::Null => column.push_null(),
            RandomSpec::Boolean => {
                if let ColumnValues::Boolean(values) = column.values() {
                    values.append(self.random.random());
                }
                column.mark_valid();
            }
            RandomSpec::Integer { min, max } => {
                let value = self.random.random_range(*min..=*max);
                self.push_number(value, column);
            }
            RandomSpec::Float { min, max } => {
                let value = self.draw_float(*min, *max);
                match column.values() {
                    ColumnValues::Float64(values) => values.push(value),
                    ColumnValues::Float32(values) => values.push(value as f32),
                    _ => {}
                }
                column.mark_valid();
            }
            RandomSpec::Decimal { min, max } => {
                let value = self.random.random_range(*min..=*max);
                if let ColumnValues::Int128(values) = column.values() {
                    values.push(value);
                }
                column.mark_valid();
            }
            RandomSpec::Text { length, varies } => self.push_text(*length, *varies, column),
            RandomSpec::Now => {
                let is_date = column.data_type().root == TypeRoot::Date;
                let value = if is_date { self.today } else { self.time_of_day };
                if let ColumnValues::Int32(values) = column.values() {
                    values.push(value);
                }
                column.mark_valid();
            }
            RandomSpec::Past { max_past } => self.push_past(max_past.as_millis() as u64, column),
            RandomSpec::Collection { length, parts } => self.push_collection(*length, parts, column),
            RandomSpec::Row(fields) => {
                if let ColumnValues::Row(columns) = column.values() {
                    for (field, column) in fields.iter().zip(columns) {
                        self.push_field(field, column);
                    }
                }
                column.mark_valid();
            }
        }
    }

    /// Appends a whole number to a column of any type that can hold one.
    fn push_number(&mut self, value: i64, column: &mut ColumnBuilder) {
        let (data_type, values) = column.parts();
        match values {
            ColumnValues::Int8(values) => values.push(value as i8),
            ColumnValues::Int16(values) => values.push(value as i16),
            ColumnValues::Int32(values) => values.push(value as i32),
            ColumnValues::Int64(values) => values.push(value),
            ColumnValues::Float32(values) => values.push(value as f32),
            ColumnValues::Float64(values) => values.push(value as f64),
            ColumnValues::Int128(values) => {
                let (precision, scale) = data_type.root.as_decimal().unwrap_or((38, 0));
                let scaled = i128::from(value).checked_mul(10_i128.pow(u32::from(scale)));
                match scaled.filter(|value| value.unsigned_abs() < 10_u128.pow(u32::from(precision))) {
                    Some(value) => values.push(value),
                    None => return column.push_null(),
                }
            }
            ColumnValues::Bytes(..) => {
                let mut text = std::mem::take(&mut self.scratch);
                text.clear();
                crate::format::write_decimal(i128::from(value), 0, true, &mut text);
                column.push_bytes(&text);
                self.scratch = text;
                return;
            }
            _ => return column.push_null(),
        }
        column.mark_valid();
    }

    /// Draws between two ends whose distance may be greater than a double holds.
    fn draw_float(&mut self, min: f64, max: f64) -> f64 {
        match Uniform::new_inclusive(min, max) {
            Ok(range) => range.sample(&mut self.random),
            Err(_) => {
                let share: f64 = self.random.random();
                min * (1.0 - share) + max * share
            }
        }
    }

    fn push_text(&mut self, length: usize, varies: bool, column: &mut ColumnBuilder) {
        let length = if varies && length > 0 { self.random.random_range(1..=length) } else { length };
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.clear();
        bytes.resize(length, 0);
        self.random.fill_bytes(&mut bytes);
        if column.data_type().root.is_character() {
            for byte in &mut bytes {
                *byte = HEX_DIGITS[usize::from(*byte & 15)];
            }
        }
        column.push_bytes(&bytes);
        self.scratch = bytes;
    }

    fn push_past(&mut self, max_past_millis: u64, column: &mut ColumnBuilder) {
        let past = if max_past_millis == 0 { 0 } else { self.random.random_range(0..=max_past_millis) };
        let instant = self.now - i128::from(past) * 1_000_000;
        let (data_type, values) = column.parts();
        let (precision, is_local) = match data_type.root {
            TypeRoot::Timestamp(precision) => (precision, true),
            TypeRoot::TimestampLtz(precision) => (precision, false),
            _ => (3, false),
        };
        let offset = if is_local { offset_nanos(self.zone, instant) } else { 0 };
        let step = 10_i128.pow(9 - u32::from(precision.min(9)));
        let nanos = (instant + offset).div_euclid(step) * step;
        let unit = match precision {
            0..=3 => 1_000_000,
            4..=6 => 1_000,
            _ => 1,
        };
        if let ColumnValues::Int64(values) = values {
            values.push((nanos / unit) as i64);
        }
        column.mark_valid();
    }

    fn push_collection(&mut self, length: usize, parts: &[FieldSpec], column: &mut ColumnBuilder) {
        let is_multiset = matches!(column.data_type().root, TypeRoot::Multiset(_));
        match (column.values(), parts) {
            (ColumnValues::List(ends, items), [element]) => {
                (0..length).for_each(|_| self.push_field(element, items));
                ends.push(i32::try_from(items.len()).unwrap_or(-1));
            }
            (ColumnValues::Map(ends, keys, counts), [element]) if is_multiset => {
                for _ in 0..length {
                    self.push_field(element, keys);
                    self.push_number(1, counts);
                }
                ends.push(i32::try_from(keys.len()).unwrap_or(-1));
            }
            (ColumnValues::Map(ends, keys, values), [key, value]) => {
                for _ in 0..length {
                    self.push_field(key, keys);
                    self.push_field(value, values);
                }
                ends.push(i32::try_from(keys.len()).unwrap_or(-1));
            }
            _ => return column.push_null(),
        }
        column.mark_valid();
    }
}

fn offset_nanos(zone: Tz, instant: i128) -> i128 {
    use chrono::Offset;
    let Some(utc) = chrono::DateTime::from_timestamp(instant.div_euclid(1_000_000_000) as i64, 0) else {
        return 0;
    };
    i128::from(zone.offset_from_utc_datetime(&utc.naive_utc()).fix().local_minus_utc()) * 1_000_000_000
}
