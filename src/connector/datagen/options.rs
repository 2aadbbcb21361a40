//! What the options say of each field, nested fields included: `fields.a.kind`, `fields.row.f.min`, `fields.array.element.max`.

use std::time::Duration;

use crate::error::{Error, FlinkClass, Result};
use crate::format::{DecimalText, parse_decimal};
use crate::options::{OptionValue, TableOptions};
use crate::schema::{DataType, LENGTH_MAX, TypeRoot};

/// The shapes of keys; `#` stands for a field, or a path of fields.
pub(super) const KEY_PATTERNS: &[&str] = &[
    "fields.#.kind",
    "fields.#.min",
    "fields.#.max",
    "fields.#.max-past",
    "fields.#.length",
    "fields.#.var-len",
    "fields.#.start",
    "fields.#.end",
    "fields.#.null-rate",
];

/// Length of texts and bytes whose type sets none.
const TEXT_LENGTH: u64 = 100;
/// Number of elements of arrays, maps and multisets.
const COLLECTION_LENGTH: u64 = 3;

/// About how many bytes a number or a point in time has.
const SHORT_VALUE_BYTES: usize = 8;

/// How the values of a field are made.
#[derive(Debug, Clone)]
pub(super) enum FieldSpec {
    /// One after the other.
    Sequence { start: i64, end: i64 },
    /// Drawn.
    Random { null_rate: f64, values: RandomSpec },
}

/// What random values look like.
#[derive(Debug, Clone)]
pub(super) enum RandomSpec {
    /// Always NULL.
    Null,
    Boolean,
    /// Whole numbers, both ends included.
    Integer {
        min: i64,
        max: i64,
    },
    Float {
        min: f64,
        max: f64,
    },
    /// Unscaled decimals, both ends included.
    Decimal {
        min: i128,
        max: i128,
    },
    /// Hexadecimal digits or bytes.
    Text {
        length: usize,
        varies: bool,
    },
    /// Today's date or the time now.
    Now,
    /// Now, or up to that long ago.
    Past {
        max_past: Duration,
    },
    /// Elements; for maps a key and a value each.
    Collection {
        length: usize,
        parts: Vec<FieldSpec>,
    },
    Row(Vec<FieldSpec>),
}

impl FieldSpec {
    /// Reads the options of a field.
    ///
    /// # Errors
    /// A value does not fit, or the type cannot be made.
    pub(super) fn read(options: &TableOptions, name: &str, data_type: &DataType) -> Result<FieldSpec> {
        let keys = FieldOptions { options, name };
        match keys.raw("kind").unwrap_or("random") {
            "random" => keys.random(data_type),
            "sequence" => keys.sequence(data_type),
            other => Err(Error::validation(format!("Unsupported generator kind: {other}"))
                .hint(format!("Option 'fields.{name}.kind' takes random or sequence."))),
        }
    }

    /// Returns about how many bytes a row of these fields has.
    pub(super) fn row_bytes<'a>(fields: impl IntoIterator<Item = &'a FieldSpec>) -> usize {
        fields.into_iter().map(FieldSpec::value_bytes).fold(0, usize::saturating_add)
    }

    /// Returns about how many bytes a value has, on an average of what may be NULL.
    fn value_bytes(&self) -> usize {
        let FieldSpec::Random { null_rate, values } = self else { return SHORT_VALUE_BYTES };
        let bytes = match values {
            RandomSpec::Text { length, .. } => *length,
            RandomSpec::Collection { length, parts } => length.saturating_mul(FieldSpec::row_bytes(parts)),
            RandomSpec::Row(fields) => FieldSpec::row_bytes(fields),
            _ => SHORT_VALUE_BYTES,
        };
        (bytes as f64 * (1.0 - null_rate)) as usize
    }

    /// Returns how many values a sequence has.
    pub(super) fn sequence_length(&self) -> Option<u64> {
        match self {
            FieldSpec::Sequence { start, end } => {
                let length = i128::from(*end) - i128::from(*start) + 1;
                Some(u64::try_from(length.max(0)).unwrap_or(u64::MAX))
            }
            FieldSpec::Random { .. } => None,
        }
    }
}

/// The options of one field.
struct FieldOptions<'a> {
    options: &'a TableOptions,
    name: &'a str,
}

impl FieldOptions<'_> {
    fn key(&self, part: &str) -> String {
        format!("fields.{}.{part}", self.name)
    }

    fn raw(&self, part: &str) -> Option<&str> {
        let key = self.key(part);
        self.options.declare_key(&key);
        self.options.raw(&key)
    }

    fn get<T: OptionValue>(&self, part: &str) -> Result<Option<T>> {
        let parse = |text| {
            T::parse(text).map_err(|error| {
                error.hint(format!(
                    "This is the value of option '{}', which takes {}.",
                    self.key(part),
                    T::describe()
                ))
            })
        };
        self.raw(part).map(parse).transpose()
    }

    fn sequence(&self, data_type: &DataType) -> Result<FieldSpec> {
        let bound = |part: &str| {
            self.get::<i64>(part)?.ok_or_else(|| {
                Error::validation(format!(
                    "Could not find required property '{}' for sequence generator.",
                    self.key(part)
                ))
            })
        };
        let (start, end) = (bound("start")?, bound("end")?);
        let root = &data_type.root;
        let is_made = root.is_integer()
            || root.is_approximate()
            || root.is_character()
            || matches!(root, TypeRoot::Decimal(..));
        if !is_made {
            return Err(unsupported(data_type));
        }
        if let Some((min, max)) = integer_range(root)
            && let Some((part, value)) =
                [("start", start), ("end", end)].into_iter().find(|(_, value)| !(min..=max).contains(value))
        {
            return Err(self.not_a_number(part, &value.to_string(), data_type));
        }
        Ok(FieldSpec::Sequence { start, end })
    }

    fn random(&self, data_type: &DataType) -> Result<FieldSpec> {
        let values = self.random_values(data_type)?;
        let null_rate = self.get::<f64>("null-rate")?.unwrap_or(0.0);
        if !(0.0..=1.0).contains(&null_rate) {
            return Err(Error::validation(format!(
                "option '{}' must be between 0 and 1",
                self.key("null-rate")
            )));
        }
        Ok(FieldSpec::Random { null_rate, values })
    }

    fn random_values(&self, data_type: &DataType) -> Result<RandomSpec> {
        let root = &data_type.root;
        if let Some((least, most)) = integer_range(root) {
            let bound = |part: &str, default: i64| {
                let value = self.get::<i64>(part)?.unwrap_or(default);
                if (least..=most).contains(&value) {
                    Ok(value)
                } else {
                    Err(self.not_a_number(part, &value.to_string(), data_type))
                }
            };
            let (min, max) = (bound("min", least)?, bound("max", most)?);
            self.check_order(min <= max)?;
            return Ok(RandomSpec::Integer { min, max });
        }
        Ok(match root {
            TypeRoot::Null => RandomSpec::Null,
            TypeRoot::Boolean => RandomSpec::Boolean,
            TypeRoot::Float | TypeRoot::Double => {
                let most = if *root == TypeRoot::Float { f64::from(f32::MAX) } else { f64::MAX };
                let (min, max) = (self.get("min")?.unwrap_or(-most), self.get("max")?.unwrap_or(most));
                self.check_order(min <= max)?;
                RandomSpec::Float { min, max }
            }
            TypeRoot::Decimal(precision, scale) => self.random_decimal(*precision, *scale, data_type)?,
            TypeRoot::Char(length) | TypeRoot::Binary(length) => self.fixed_length(*length)?,
            TypeRoot::Varchar(length) | TypeRoot::Varbinary(length) => self.variable_length(*length)?,
            TypeRoot::Date | TypeRoot::Time(_) => RandomSpec::Now,
            TypeRoot::Timestamp(_) | TypeRoot::TimestampLtz(_) => {
                RandomSpec::Past { max_past: self.get("max-past")?.unwrap_or_default() }
            }
            TypeRoot::IntervalYearMonth(_) => RandomSpec::Integer { min: 0, max: 120_000 },
            TypeRoot::IntervalDayTime(_) => RandomSpec::Integer { min: 0, max: i64::from(i32::MAX) },
            TypeRoot::Array(element) => self.collection(&[("element", element)])?,
            TypeRoot::Multiset(element) => self.collection(&[("element", element)])?,
            TypeRoot::Map(key, value) => self.collection(&[("key", key), ("value", value)])?,
            TypeRoot::Row(fields) => {
                let nested = fields.iter().map(|field| self.nested(&field.name, &field.data_type));
                RandomSpec::Row(nested.collect::<Result<_>>()?)
            }
            _ => return Err(unsupported(data_type)),
        })
    }

    fn random_decimal(&self, precision: u8, scale: u8, data_type: &DataType) -> Result<RandomSpec> {
        let most = 10_i128.pow(u32::from(precision.min(38))) - 1;
        let bound = |part: &str, default: i128| match self.raw(part) {
            None => Ok(default),
            Some(text) => match parse_decimal(text.trim().as_bytes(), precision, scale) {
                DecimalText::Value(value) => Ok(value),
                _ => Err(self.not_a_number(part, text, data_type)),
            },
        };
        let (min, max) = (bound("min", -most)?, bound("max", most)?);
        self.check_order(min <= max)?;
        Ok(RandomSpec::Decimal { min, max })
    }

    fn fixed_length(&self, length: u32) -> Result<RandomSpec> {
        let name = self.name;
        if self.raw("length").is_some() {
            return Err(Error::validation(format!(
                "Custom length for fixed-length type (CHAR/BINARY) field '{name}' is not supported."
            )));
        }
        if self.get::<bool>("var-len")? == Some(true) {
            return Err(Error::validation(format!(
                "Only supports specifying 'fields.#.var-len' option for variable-length types (VARCHAR/STRING/VARBINARY/BYTES). The type of field '{name}' is not within this range."
            )));
        }
        Ok(RandomSpec::Text { length: length as usize, varies: false })
    }

    fn variable_length(&self, declared: u32) -> Result<RandomSpec> {
        let length = match self.get::<u64>("length")? {
            Some(length) if length > u64::from(declared) => {
                return Err(Error::validation(format!(
                    "Custom length '{length}' for variable-length type (VARCHAR/STRING/VARBINARY/BYTES) field '{}' should be shorter than '{declared}' defined in the schema.",
                    self.name
                )));
            }
            Some(length) => length,
            None if declared == LENGTH_MAX => TEXT_LENGTH,
            None => u64::from(declared),
        };
        Ok(RandomSpec::Text { length: length as usize, varies: self.get("var-len")?.unwrap_or(false) })
    }

    fn collection(&self, parts: &[(&str, &DataType)]) -> Result<RandomSpec> {
        let length = self.get::<u64>("length")?.unwrap_or(COLLECTION_LENGTH);
        let parts = parts.iter().map(|(name, data_type)| self.nested(name, data_type));
        Ok(RandomSpec::Collection { length: length as usize, parts: parts.collect::<Result<_>>()? })
    }

    fn nested(&self, part: &str, data_type: &DataType) -> Result<FieldSpec> {
        FieldSpec::read(self.options, &format!("{}.{part}", self.name), data_type)
    }

    fn check_order(&self, is_ordered: bool) -> Result<()> {
        if is_ordered {
            return Ok(());
        }
        Err(Error::validation(format!(
            "option '{}' must not be greater than '{}'",
            self.key("min"),
            self.key("max")
        )))
    }

    fn not_a_number(&self, part: &str, text: &str, data_type: &DataType) -> Error {
        Error::validation(format!("For input string: \"{text}\"")).class(FlinkClass::NUMBER_FORMAT).hint(
            format!(
                "This is the value of option '{}', which takes a value of type {data_type}.",
                self.key(part)
            ),
        )
    }
}

fn unsupported(data_type: &DataType) -> Error {
    Error::validation(format!("Unsupported type: {data_type}"))
}

/// Returns the ends of a whole-number type.
fn integer_range(root: &TypeRoot) -> Option<(i64, i64)> {
    match root {
        TypeRoot::TinyInt => Some((i64::from(i8::MIN), i64::from(i8::MAX))),
        TypeRoot::SmallInt => Some((i64::from(i16::MIN), i64::from(i16::MAX))),
        TypeRoot::Int => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
        TypeRoot::BigInt => Some((i64::MIN, i64::MAX)),
        _ => None,
    }
}
