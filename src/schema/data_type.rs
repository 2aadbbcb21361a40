//! Flink's SQL types, their texts, and their Arrow form.
//!
//! A `DataType` is a root and whether NULL is allowed. `Display` is the summary that DESCRIBE prints (without NOT NULL);
//! `serialized` is the text of SHOW CREATE TABLE, which parses again.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field as ArrowField, Fields, IntervalUnit, TimeUnit};

/// The length of STRING and BYTES, which are VARCHAR and VARBINARY of this length.
pub const LENGTH_MAX: u32 = i32::MAX as u32;

/// A type and whether its values may be NULL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DataType {
    /// What the values are.
    pub root: TypeRoot,
    /// Whether NULL is among them.
    pub nullable: bool,
}

/// What the values of a type are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TypeRoot {
    /// `CHAR(n)`; n counts code points. Arrow: Utf8.
    Char(u32),
    /// `VARCHAR(n)`, of which STRING is the longest. Arrow: Utf8.
    Varchar(u32),
    /// `BOOLEAN`.
    Boolean,
    /// `BINARY(n)`. Arrow: Binary.
    Binary(u32),
    /// `VARBINARY(n)`, of which BYTES is the longest. Arrow: Binary.
    Varbinary(u32),
    /// `DECIMAL(precision, scale)`. Arrow: Decimal128.
    Decimal(u8, u8),
    /// `TINYINT`.
    TinyInt,
    /// `SMALLINT`.
    SmallInt,
    /// `INT`.
    Int,
    /// `BIGINT`.
    BigInt,
    /// `FLOAT`.
    Float,
    /// `DOUBLE`.
    Double,
    /// `DATE`. Arrow: Date32.
    Date,
    /// `TIME(p)`; Flink keeps milliseconds whatever p says. Arrow: Time32(ms).
    Time(u8),
    /// `TIMESTAMP(p)`, without a zone. Arrow: ms up to p=3, µs up to 6, ns up to 9.
    Timestamp(u8),
    /// `TIMESTAMP_LTZ(p)`, an instant. Arrow: as TIMESTAMP, with zone UTC.
    TimestampLtz(u8),
    /// An interval of months. Arrow: Interval(YearMonth).
    IntervalYearMonth(IntervalKind),
    /// An interval of milliseconds. Arrow: Duration(ms).
    IntervalDayTime(IntervalKind),
    /// `ARRAY<T>`. Arrow: List with items named `item`.
    Array(Box<DataType>),
    /// `MAP<K, V>`. Arrow: Map.
    Map(Box<DataType>, Box<DataType>),
    /// `MULTISET<T>`: each element with its count. Arrow: Map of T to Int32.
    Multiset(Box<DataType>),
    /// `ROW<name type, …>`. Arrow: Struct.
    Row(Vec<Field>),
    /// The type of a bare NULL.
    Null,
}

/// The first and last unit of an interval and their precisions: what the type's text says; values do not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IntervalKind {
    /// The text between `INTERVAL` and the end, for example `DAY(2) TO SECOND(3)`.
    pub qualifier: IntervalQualifier,
    /// Precision of the leading unit (days or years).
    pub leading: u8,
    /// Precision of the fraction of seconds.
    pub fraction: u8,
}

/// Which units an interval type names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is what its name says")]
pub enum IntervalQualifier {
    Year,
    YearToMonth,
    Month,
    Day,
    DayToHour,
    DayToMinute,
    DayToSecond,
    Hour,
    HourToMinute,
    HourToSecond,
    Minute,
    MinuteToSecond,
    Second,
}

impl fmt::Display for IntervalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (leading, fraction) = (self.leading, self.fraction);
        match self.qualifier {
            IntervalQualifier::Year => write!(f, "YEAR({leading})"),
            IntervalQualifier::YearToMonth => write!(f, "YEAR({leading}) TO MONTH"),
            IntervalQualifier::Month => f.write_str("MONTH"),
            IntervalQualifier::Day => write!(f, "DAY({leading})"),
            IntervalQualifier::DayToHour => write!(f, "DAY({leading}) TO HOUR"),
            IntervalQualifier::DayToMinute => write!(f, "DAY({leading}) TO MINUTE"),
            IntervalQualifier::DayToSecond => write!(f, "DAY({leading}) TO SECOND({fraction})"),
            IntervalQualifier::Hour => f.write_str("HOUR"),
            IntervalQualifier::HourToMinute => f.write_str("HOUR TO MINUTE"),
            IntervalQualifier::HourToSecond => write!(f, "HOUR TO SECOND({fraction})"),
            IntervalQualifier::Minute => f.write_str("MINUTE"),
            IntervalQualifier::MinuteToSecond => write!(f, "MINUTE TO SECOND({fraction})"),
            IntervalQualifier::Second => write!(f, "SECOND({fraction})"),
        }
    }
}

/// A field of a ROW type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Field {
    /// The name.
    pub name: String,
    /// The type.
    pub data_type: DataType,
    /// The comment, printed in quotes behind the type.
    pub comment: Option<String>,
}

impl Field {
    /// Creates a field without a comment.
    pub fn new(name: impl Into<String>, data_type: DataType) -> Field {
        Field { name: name.into(), data_type, comment: None }
    }
}

impl TypeRoot {
    /// STRING.
    pub const STRING: TypeRoot = TypeRoot::Varchar(LENGTH_MAX);
    /// BYTES.
    pub const BYTES: TypeRoot = TypeRoot::Varbinary(LENGTH_MAX);

    /// Makes a nullable type.
    pub fn nullable(self) -> DataType {
        DataType { root: self, nullable: true }
    }

    /// Makes a NOT NULL type.
    pub fn not_null(self) -> DataType {
        DataType { root: self, nullable: false }
    }

    /// Returns whether this is CHAR or VARCHAR.
    pub fn is_character(&self) -> bool {
        matches!(self, TypeRoot::Char(_) | TypeRoot::Varchar(_))
    }

    /// Returns whether this is BINARY or VARBINARY.
    pub fn is_binary(&self) -> bool {
        matches!(self, TypeRoot::Binary(_) | TypeRoot::Varbinary(_))
    }

    /// Returns whether this is TINYINT, SMALLINT, INT or BIGINT.
    pub fn is_integer(&self) -> bool {
        matches!(self, TypeRoot::TinyInt | TypeRoot::SmallInt | TypeRoot::Int | TypeRoot::BigInt)
    }

    /// Returns whether this is FLOAT or DOUBLE.
    pub fn is_approximate(&self) -> bool {
        matches!(self, TypeRoot::Float | TypeRoot::Double)
    }

    /// Returns whether this is a number of any kind.
    pub fn is_numeric(&self) -> bool {
        self.is_integer() || self.is_approximate() || matches!(self, TypeRoot::Decimal(..))
    }

    /// Returns whether this is a date, a time or a timestamp.
    pub fn is_datetime(&self) -> bool {
        matches!(
            self,
            TypeRoot::Date | TypeRoot::Time(_) | TypeRoot::Timestamp(_) | TypeRoot::TimestampLtz(_)
        )
    }

    /// Returns whether this is an interval.
    pub fn is_interval(&self) -> bool {
        matches!(self, TypeRoot::IntervalYearMonth(_) | TypeRoot::IntervalDayTime(_))
    }

    /// Returns precision and scale that an exact number has as a decimal: INT counts as DECIMAL(10, 0).
    pub fn as_decimal(&self) -> Option<(u8, u8)> {
        match self {
            TypeRoot::TinyInt => Some((3, 0)),
            TypeRoot::SmallInt => Some((5, 0)),
            TypeRoot::Int => Some((10, 0)),
            TypeRoot::BigInt => Some((19, 0)),
            TypeRoot::Decimal(precision, scale) => Some((*precision, *scale)),
            _ => None,
        }
    }

    /// Returns Calcite's family name, as error texts show it: `<NUMERIC>`, `<CHARACTER>`.
    pub fn family(&self) -> &'static str {
        match self {
            TypeRoot::Char(_) | TypeRoot::Varchar(_) => "CHARACTER",
            TypeRoot::Boolean => "BOOLEAN",
            TypeRoot::Binary(_) | TypeRoot::Varbinary(_) => "BINARY",
            TypeRoot::Date => "DATE",
            TypeRoot::Time(_) => "TIME",
            TypeRoot::Timestamp(_) | TypeRoot::TimestampLtz(_) => "TIMESTAMP",
            TypeRoot::IntervalYearMonth(_) => "INTERVAL_YEAR_MONTH",
            TypeRoot::IntervalDayTime(_) => "INTERVAL_DAY_TIME",
            TypeRoot::Array(_) => "ARRAY",
            TypeRoot::Map(..) => "MAP",
            TypeRoot::Multiset(_) => "MULTISET",
            TypeRoot::Row(_) => "ROW",
            TypeRoot::Null => "NULL",
            _ => "NUMERIC",
        }
    }
}

impl DataType {
    /// Returns the same type with another nullability.
    #[must_use]
    pub fn with_nullable(mut self, nullable: bool) -> DataType {
        self.nullable = nullable;
        self
    }

    /// Returns the Arrow type that columns of this type have.
    pub fn to_arrow(&self) -> ArrowType {
        match &self.root {
            TypeRoot::Char(_) | TypeRoot::Varchar(_) => ArrowType::Utf8,
            TypeRoot::Boolean => ArrowType::Boolean,
            TypeRoot::Binary(_) | TypeRoot::Varbinary(_) => ArrowType::Binary,
            TypeRoot::Decimal(precision, scale) => ArrowType::Decimal128(*precision, *scale as i8),
            TypeRoot::TinyInt => ArrowType::Int8,
            TypeRoot::SmallInt => ArrowType::Int16,
            TypeRoot::Int => ArrowType::Int32,
            TypeRoot::BigInt => ArrowType::Int64,
            TypeRoot::Float => ArrowType::Float32,
            TypeRoot::Double => ArrowType::Float64,
            TypeRoot::Date => ArrowType::Date32,
            TypeRoot::Time(_) => ArrowType::Time32(TimeUnit::Millisecond),
            TypeRoot::Timestamp(precision) => ArrowType::Timestamp(timestamp_unit(*precision), None),
            TypeRoot::TimestampLtz(precision) => {
                ArrowType::Timestamp(timestamp_unit(*precision), Some("UTC".into()))
            }
            TypeRoot::IntervalYearMonth(_) => ArrowType::Interval(IntervalUnit::YearMonth),
            TypeRoot::IntervalDayTime(_) => ArrowType::Duration(TimeUnit::Millisecond),
            TypeRoot::Array(element) => ArrowType::List(Arc::new(element.to_field("item"))),
            TypeRoot::Map(key, value) => map_type(key, value),
            TypeRoot::Multiset(element) => map_type(element, &TypeRoot::Int.not_null()),
            TypeRoot::Row(fields) => ArrowType::Struct(
                fields.iter().map(|field| Arc::new(field.data_type.to_field(&field.name))).collect(),
            ),
            TypeRoot::Null => ArrowType::Null,
        }
    }

    /// Returns the widest type that lies in Arrow so: STRING for any text, and a MAP for a MULTISET. None if no type does.
    pub fn from_arrow(arrow: &ArrowType) -> Option<DataType> {
        let unit_precision = |unit: &TimeUnit| match unit {
            TimeUnit::Second | TimeUnit::Millisecond => 3,
            TimeUnit::Microsecond => 6,
            TimeUnit::Nanosecond => 9,
        };
        let interval = |qualifier, leading| IntervalKind { qualifier, leading, fraction: 3 };
        let root = match arrow {
            ArrowType::Utf8 => TypeRoot::STRING,
            ArrowType::Boolean => TypeRoot::Boolean,
            ArrowType::Binary => TypeRoot::BYTES,
            ArrowType::Decimal128(precision, scale) => {
                TypeRoot::Decimal(*precision, u8::try_from(*scale).ok()?)
            }
            ArrowType::Int8 => TypeRoot::TinyInt,
            ArrowType::Int16 => TypeRoot::SmallInt,
            ArrowType::Int32 => TypeRoot::Int,
            ArrowType::Int64 => TypeRoot::BigInt,
            ArrowType::Float32 => TypeRoot::Float,
            ArrowType::Float64 => TypeRoot::Double,
            ArrowType::Date32 => TypeRoot::Date,
            ArrowType::Time32(TimeUnit::Millisecond) => TypeRoot::Time(3),
            ArrowType::Timestamp(unit, None) => TypeRoot::Timestamp(unit_precision(unit)),
            ArrowType::Timestamp(unit, Some(_)) => TypeRoot::TimestampLtz(unit_precision(unit)),
            ArrowType::Interval(IntervalUnit::YearMonth) => {
                TypeRoot::IntervalYearMonth(interval(IntervalQualifier::YearToMonth, 4))
            }
            ArrowType::Duration(TimeUnit::Millisecond) => {
                TypeRoot::IntervalDayTime(interval(IntervalQualifier::DayToSecond, 9))
            }
            ArrowType::List(item) => TypeRoot::Array(Box::new(DataType::from_arrow(item.data_type())?)),
            ArrowType::Map(entries, _) => match entries.data_type() {
                ArrowType::Struct(fields) if fields.len() == 2 => TypeRoot::Map(
                    Box::new(DataType::from_arrow(fields[0].data_type())?),
                    Box::new(DataType::from_arrow(fields[1].data_type())?),
                ),
                _ => return None,
            },
            ArrowType::Struct(fields) => TypeRoot::Row(
                fields
                    .iter()
                    .map(|field| Some(Field::new(field.name(), DataType::from_arrow(field.data_type())?)))
                    .collect::<Option<_>>()?,
            ),
            ArrowType::Null => TypeRoot::Null,
            _ => return None,
        };
        Some(root.nullable())
    }

    /// Returns an Arrow field of this type. Nested fields are always nullable in Arrow: kernels may leave NULLs behind a NULL parent.
    pub fn to_field(&self, name: &str) -> ArrowField {
        ArrowField::new(name, self.to_arrow(), true)
    }

    /// Returns the text of SHOW CREATE TABLE, with NOT NULL.
    pub fn serialized(&self) -> String {
        let mut text = match &self.root {
            TypeRoot::Varchar(length) => format!("VARCHAR({length})"),
            TypeRoot::Varbinary(length) => format!("VARBINARY({length})"),
            TypeRoot::TimestampLtz(precision) => format!("TIMESTAMP({precision}) WITH LOCAL TIME ZONE"),
            TypeRoot::Array(element) => format!("ARRAY<{}>", element.serialized()),
            TypeRoot::Map(key, value) => format!("MAP<{}, {}>", key.serialized(), value.serialized()),
            TypeRoot::Multiset(element) => format!("MULTISET<{}>", element.serialized()),
            TypeRoot::Row(fields) => row_text(fields, DataType::serialized, |text| text.replace('\'', "''")),
            _ => self.to_string(),
        };
        if !self.nullable {
            text.push_str(" NOT NULL");
        }
        text
    }

    /// Returns the summary with NOT NULL behind it, as TYPEOF and error texts have it.
    pub fn summary(&self) -> String {
        if self.nullable { self.to_string() } else { format!("{self} NOT NULL") }
    }
}

/// The summary of DESCRIBE, without NOT NULL at the top.
impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.root {
            TypeRoot::Char(length) => write!(f, "CHAR({length})"),
            TypeRoot::Varchar(LENGTH_MAX) => f.write_str("STRING"),
            TypeRoot::Varchar(length) => write!(f, "VARCHAR({length})"),
            TypeRoot::Boolean => f.write_str("BOOLEAN"),
            TypeRoot::Binary(length) => write!(f, "BINARY({length})"),
            TypeRoot::Varbinary(LENGTH_MAX) => f.write_str("BYTES"),
            TypeRoot::Varbinary(length) => write!(f, "VARBINARY({length})"),
            TypeRoot::Decimal(precision, scale) => write!(f, "DECIMAL({precision}, {scale})"),
            TypeRoot::TinyInt => f.write_str("TINYINT"),
            TypeRoot::SmallInt => f.write_str("SMALLINT"),
            TypeRoot::Int => f.write_str("INT"),
            TypeRoot::BigInt => f.write_str("BIGINT"),
            TypeRoot::Float => f.write_str("FLOAT"),
            TypeRoot::Double => f.write_str("DOUBLE"),
            TypeRoot::Date => f.write_str("DATE"),
            TypeRoot::Time(precision) => write!(f, "TIME({precision})"),
            TypeRoot::Timestamp(precision) => write!(f, "TIMESTAMP({precision})"),
            TypeRoot::TimestampLtz(precision) => write!(f, "TIMESTAMP_LTZ({precision})"),
            TypeRoot::IntervalYearMonth(kind) | TypeRoot::IntervalDayTime(kind) => {
                write!(f, "INTERVAL {kind}")
            }
            TypeRoot::Array(element) => write!(f, "ARRAY<{}>", element.summary()),
            TypeRoot::Map(key, value) => write!(f, "MAP<{}, {}>", key.summary(), value.summary()),
            TypeRoot::Multiset(element) => write!(f, "MULTISET<{}>", element.summary()),
            TypeRoot::Row(fields) => f.write_str(&row_text(fields, DataType::summary, |_| "...".to_owned())),
            TypeRoot::Null => f.write_str("NULL"),
        }
    }
}

/// Prints a ROW type with the given texts for its fields' types and comments.
fn row_text(
    fields: &[Field],
    text: impl Fn(&DataType) -> String,
    comment: impl Fn(&str) -> String,
) -> String {
    let fields: Vec<String> = fields
        .iter()
        .map(|field| {
            let comment =
                field.comment.as_deref().map_or(String::new(), |text| format!(" '{}'", comment(text)));
            format!("`{}` {}{comment}", field.name.replace('`', "``"), text(&field.data_type))
        })
        .collect();
    format!("ROW<{}>", fields.join(", "))
}

/// Returns the coarsest Arrow unit that holds a fraction of `precision` digits.
pub fn timestamp_unit(precision: u8) -> TimeUnit {
    match precision {
        0..=3 => TimeUnit::Millisecond,
        4..=6 => TimeUnit::Microsecond,
        _ => TimeUnit::Nanosecond,
    }
}

/// Returns Arrow's map type with its conventional field names.
fn map_type(key: &DataType, value: &DataType) -> ArrowType {
    let entries = Fields::from(vec![ArrowField::new("key", key.to_arrow(), false), value.to_field("value")]);
    ArrowType::Map(Arc::new(ArrowField::new("entries", ArrowType::Struct(entries), false)), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_an_arrow_type_lies_in_arrow_as_that() {
        let nested = TypeRoot::Row(vec![
            Field::new("tags", TypeRoot::Array(Box::new(TypeRoot::Char(3).nullable())).nullable()),
            Field::new(
                "counts",
                TypeRoot::Multiset(Box::new(TypeRoot::Decimal(10, 2).nullable())).nullable(),
            ),
            Field::new("at", TypeRoot::TimestampLtz(3).nullable()),
            Field::new("time", TypeRoot::Time(0).nullable()),
        ]);
        let arrow = nested.nullable().to_arrow();
        let found = DataType::from_arrow(&arrow).unwrap();
        assert_eq!(found.to_arrow(), arrow);
        assert_eq!(
            found.to_string(),
            "ROW<`tags` ARRAY<STRING>, `counts` MAP<DECIMAL(10, 2), INT>, `at` TIMESTAMP_LTZ(3), `time` TIME(3)>"
        );
        assert_eq!(DataType::from_arrow(&ArrowType::UInt8), None);
    }

    #[test]
    fn texts_are_those_of_describe_and_of_show_create() {
        let row = TypeRoot::Row(vec![
            Field::new("a", TypeRoot::Int.not_null()),
            Field::new("b", TypeRoot::STRING.nullable()),
        ])
        .not_null();
        assert_eq!(row.to_string(), "ROW<`a` INT NOT NULL, `b` STRING>");
        assert_eq!(row.serialized(), "ROW<`a` INT NOT NULL, `b` VARCHAR(2147483647)> NOT NULL");
        assert_eq!(TypeRoot::TimestampLtz(3).nullable().to_string(), "TIMESTAMP_LTZ(3)");
        assert_eq!(TypeRoot::TimestampLtz(3).nullable().serialized(), "TIMESTAMP(3) WITH LOCAL TIME ZONE");
        assert_eq!(TypeRoot::Decimal(20, 0).nullable().to_string(), "DECIMAL(20, 0)");
    }
}
