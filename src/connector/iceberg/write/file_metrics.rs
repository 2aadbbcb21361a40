//! What a manifest says of a Parquet file: sizes, counts and bounds of its columns, taken from the file's own metadata.
//!
//! Bounds bound: a lower one is at most every value, an upper one at least, NaN is in neither. Shortened statistics of a row group
//! bound as well as whole ones; the crate drops those groups instead, and readers then lose rows.

use std::cmp::Ordering;
use std::collections::HashMap;

use iceberg::spec::{DataFileBuilder, Datum, NestedFieldRef, PrimitiveType, Schema, SortOrder, Type};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::statistics::Statistics;

use super::metrics_config::{MetricsConfig, MetricsMode};
use crate::connector::iceberg::error::from_iceberg;
use crate::error::{Error, Result};

/// A column of a Parquet file that holds values, with what is kept of it.
#[derive(Debug, Clone)]
pub(super) struct LeafColumn {
    /// The field id.
    pub(super) id: i32,
    /// The type.
    pub(super) data_type: PrimitiveType,
    /// Whether it is in a list or a map, and so has no bounds.
    pub(super) is_repeated: bool,
    /// How much is kept.
    pub(super) mode: MetricsMode,
}

/// Returns the columns of files with this schema, in the order in which Parquet has them.
pub(super) fn leaf_columns(schema: &Schema, order: &SortOrder, config: &MetricsConfig) -> Vec<LeafColumn> {
    let mut leaves = Vec::new();
    for field in schema.as_struct().fields() {
        collect(field, false, &mut leaves);
    }
    for (nth, leaf) in leaves.iter_mut().enumerate() {
        leaf.mode = config.mode(schema, order, leaf.id, nth);
    }
    leaves
}

fn collect(field: &NestedFieldRef, is_repeated: bool, leaves: &mut Vec<LeafColumn>) {
    match field.field_type.as_ref() {
        Type::Primitive(data_type) => {
            let (id, data_type) = (field.id, data_type.clone());
            leaves.push(LeafColumn { id, data_type, is_repeated, mode: MetricsMode::Nothing });
        }
        Type::Struct(fields) => fields.fields().iter().for_each(|field| collect(field, is_repeated, leaves)),
        Type::List(list) => collect(&list.element_field, true, leaves),
        Type::Map(map) => {
            collect(&map.key_field, true, leaves);
            collect(&map.value_field, true, leaves);
        }
    }
}

/// What is known of a file's columns.
#[derive(Debug, Default)]
pub(super) struct FileMetrics {
    record_count: u64,
    column_sizes: HashMap<i32, u64>,
    value_counts: HashMap<i32, u64>,
    null_value_counts: HashMap<i32, u64>,
    nan_value_counts: HashMap<i32, u64>,
    lower_bounds: HashMap<i32, Datum>,
    upper_bounds: HashMap<i32, Datum>,
    split_offsets: Vec<i64>,
}

impl FileMetrics {
    /// Reads what a file's metadata says. NaNs are counted by who has written the rows, by field id.
    ///
    /// # Errors
    /// A value is not of its column's type.
    pub(super) fn new(
        metadata: &ParquetMetaData,
        leaves: &[LeafColumn],
        nan_counts: &HashMap<i32, u64>,
    ) -> Result<FileMetrics> {
        let mut metrics = FileMetrics::default();
        for group in metadata.row_groups() {
            metrics.record_count += u64::try_from(group.num_rows()).unwrap_or_default();
            let start = group.columns().first().map(|first| {
                let data = first.data_page_offset();
                first.dictionary_page_offset().map_or(data, |dictionary| dictionary.min(data))
            });
            metrics.split_offsets.extend(start);
        }
        for (at, leaf) in leaves.iter().enumerate() {
            let chunks: Vec<&ColumnChunkMetaData> =
                metadata.row_groups().iter().filter_map(|group| group.columns().get(at)).collect();
            metrics.add_column(leaf, &chunks, nan_counts)?;
        }
        Ok(metrics)
    }

    /// Writes the figures into the entry of a file.
    pub(super) fn fill(self, file: &mut DataFileBuilder) {
        file.record_count(self.record_count)
            .column_sizes(self.column_sizes)
            .value_counts(self.value_counts)
            .null_value_counts(self.null_value_counts)
            .nan_value_counts(self.nan_value_counts)
            .lower_bounds(self.lower_bounds)
            .upper_bounds(self.upper_bounds)
            .split_offsets(Some(self.split_offsets));
    }

    fn add_column(
        &mut self,
        leaf: &LeafColumn,
        chunks: &[&ColumnChunkMetaData],
        nan_counts: &HashMap<i32, u64>,
    ) -> Result<()> {
        let size = chunks.iter().map(|chunk| chunk.compressed_size().unsigned_abs()).sum();
        self.column_sizes.insert(leaf.id, size);
        if leaf.mode == MetricsMode::Nothing {
            return Ok(());
        }
        let values = chunks.iter().map(|chunk| chunk.num_values().unsigned_abs()).sum();
        self.value_counts.insert(leaf.id, values);
        let nulls = chunks.iter().map(|chunk| chunk.statistics()?.null_count_opt());
        if let Some(nulls) = nulls.sum::<Option<u64>>() {
            self.null_value_counts.insert(leaf.id, nulls);
        }
        if let Some(count) = nan_counts.get(&leaf.id) {
            self.nan_value_counts.insert(leaf.id, *count);
        }
        let length = match leaf.mode {
            MetricsMode::Truncate(length) => Some(length),
            MetricsMode::Full => None,
            MetricsMode::Nothing | MetricsMode::Counts => return Ok(()),
        };
        if leaf.is_repeated {
            return Ok(());
        }
        if let Some((lower, upper)) = bounds(leaf, chunks)? {
            if let Some(lower) = lower.lower(&leaf.data_type, length) {
                self.lower_bounds.insert(leaf.id, lower.datum(&leaf.data_type)?);
            }
            if let Some(upper) = upper.upper(&leaf.data_type, length) {
                self.upper_bounds.insert(leaf.id, upper.datum(&leaf.data_type)?);
            }
        }
        Ok(())
    }
}

/// Returns the least lower and the greatest upper bound of a column's chunks; None if a chunk has values and does not say which.
fn bounds(leaf: &LeafColumn, chunks: &[&ColumnChunkMetaData]) -> Result<Option<(Bound, Bound)>> {
    let mut all: Option<(Bound, Bound)> = None;
    for chunk in chunks {
        let Some(statistics) = chunk.statistics() else { return Ok(None) };
        let Some((lower, upper)) = Bound::of(statistics, &leaf.data_type)? else {
            let is_empty = statistics.null_count_opt() == Some(chunk.num_values().unsigned_abs());
            // Of floats, NaN is what statistics leave out: such a chunk has no other value.
            if is_empty || matches!(leaf.data_type, PrimitiveType::Float | PrimitiveType::Double) {
                continue;
            }
            return Ok(None);
        };
        all = Some(match all {
            None => (lower, upper),
            Some((least, greatest)) => (
                if lower.compare(&least) == Ordering::Less { lower } else { least },
                if upper.compare(&greatest) == Ordering::Greater { upper } else { greatest },
            ),
        });
    }
    Ok(all)
}

/// A bound on the way from Parquet's statistics to a manifest.
#[derive(Debug, Clone, PartialEq)]
enum Bound {
    Boolean(bool),
    Integer(i64),
    Decimal(i128),
    Float(f32),
    Double(f64),
    Bytes(Vec<u8>),
}

impl Bound {
    /// Reads the least and the greatest value of a chunk; None if it does not say.
    fn of(statistics: &Statistics, data_type: &PrimitiveType) -> Result<Option<(Bound, Bound)>> {
        let is_decimal = matches!(data_type, PrimitiveType::Decimal { .. });
        let integer =
            |value: i64| if is_decimal { Bound::Decimal(i128::from(value)) } else { Bound::Integer(value) };
        let bytes = |value: &[u8]| match is_decimal {
            true => decimal_of(value).map(Bound::Decimal),
            false => Ok(Bound::Bytes(value.to_vec())),
        };
        let pair = match statistics {
            Statistics::Boolean(of) => {
                of.min_opt().zip(of.max_opt()).map(|(min, max)| (Bound::Boolean(*min), Bound::Boolean(*max)))
            }
            Statistics::Int32(of) => {
                let pair = of.min_opt().zip(of.max_opt());
                pair.map(|(min, max)| (integer(i64::from(*min)), integer(i64::from(*max))))
            }
            Statistics::Int64(of) => {
                of.min_opt().zip(of.max_opt()).map(|(min, max)| (integer(*min), integer(*max)))
            }
            Statistics::Float(of) => {
                of.min_opt().zip(of.max_opt()).map(|(min, max)| (Bound::Float(*min), Bound::Float(*max)))
            }
            Statistics::Double(of) => {
                of.min_opt().zip(of.max_opt()).map(|(min, max)| (Bound::Double(*min), Bound::Double(*max)))
            }
            Statistics::ByteArray(_) | Statistics::FixedLenByteArray(_) => {
                match statistics.min_bytes_opt().zip(statistics.max_bytes_opt()) {
                    Some((min, max)) => Some((bytes(min)?, bytes(max)?)),
                    None => None,
                }
            }
            Statistics::Int96(_) => None,
        };
        Ok(pair)
    }

    fn compare(&self, other: &Bound) -> Ordering {
        match (self, other) {
            (Bound::Boolean(a), Bound::Boolean(b)) => a.cmp(b),
            (Bound::Integer(a), Bound::Integer(b)) => a.cmp(b),
            (Bound::Decimal(a), Bound::Decimal(b)) => a.cmp(b),
            (Bound::Float(a), Bound::Float(b)) => a.total_cmp(b),
            (Bound::Double(a), Bound::Double(b)) => a.total_cmp(b),
            (Bound::Bytes(a), Bound::Bytes(b)) => a.cmp(b),
            _ => Ordering::Equal,
        }
    }

    /// Shortens a lower bound, which makes it smaller at most.
    fn lower(self, data_type: &PrimitiveType, length: Option<usize>) -> Option<Bound> {
        match self {
            // Whoever takes the zeros for different must find both within the bounds.
            Bound::Float(0.0) => Some(Bound::Float(-0.0)),
            Bound::Double(0.0) => Some(Bound::Double(-0.0)),
            Bound::Bytes(mut bytes) => {
                bytes.truncate(cut(&bytes, data_type, length)?);
                Some(Bound::Bytes(bytes))
            }
            bound => Some(bound),
        }
    }

    /// Shortens an upper bound and rounds it up; None if nothing of that length is greater.
    fn upper(self, data_type: &PrimitiveType, length: Option<usize>) -> Option<Bound> {
        match self {
            Bound::Float(0.0) => Some(Bound::Float(0.0)),
            Bound::Double(0.0) => Some(Bound::Double(0.0)),
            Bound::Bytes(bytes) => {
                let end = cut(&bytes, data_type, length)?;
                if end == bytes.len() {
                    return Some(Bound::Bytes(bytes));
                }
                let rounded = match data_type {
                    PrimitiveType::String => next_text(std::str::from_utf8(&bytes[..end]).ok()?),
                    _ => next_bytes(&bytes[..end]),
                };
                rounded.map(Bound::Bytes)
            }
            bound => Some(bound),
        }
    }

    fn datum(&self, data_type: &PrimitiveType) -> Result<Datum> {
        let bytes = match (self, data_type) {
            (Bound::Boolean(value), _) => vec![u8::from(*value)],
            (Bound::Integer(value), PrimitiveType::Int | PrimitiveType::Date) => {
                (*value as i32).to_le_bytes().to_vec()
            }
            (Bound::Integer(value), _) => value.to_le_bytes().to_vec(),
            (Bound::Decimal(value), _) => value.to_be_bytes().to_vec(),
            (Bound::Float(value), _) => value.to_le_bytes().to_vec(),
            (Bound::Double(value), _) => value.to_le_bytes().to_vec(),
            (Bound::Bytes(value), _) => value.clone(),
        };
        Datum::try_from_bytes(&bytes, data_type.clone()).map_err(from_iceberg)
    }
}

/// Reads a big-endian two's complement number.
fn decimal_of(bytes: &[u8]) -> Result<i128> {
    let (Some(first), true) = (bytes.first(), bytes.len() <= 16) else {
        return Err(Error::internal("a statistic of a decimal column is no decimal"));
    };
    let sign = if first & 0x80 == 0 { 0 } else { -1 };
    Ok(bytes.iter().fold(sign, |value, byte| value << 8 | i128::from(*byte)))
}

/// Returns how many bytes of a bound stay; None if it is no text but should be.
fn cut(bytes: &[u8], data_type: &PrimitiveType, length: Option<usize>) -> Option<usize> {
    match (data_type, length) {
        (PrimitiveType::String, Some(length)) => {
            let text = std::str::from_utf8(bytes).ok()?;
            Some(text.char_indices().nth(length).map_or(text.len(), |(end, _)| end))
        }
        (PrimitiveType::Binary | PrimitiveType::Fixed(_), Some(length)) => Some(bytes.len().min(length)),
        _ => Some(bytes.len()),
    }
}

/// Returns the least text greater than all that begin with this one: its last character that has a next one, raised.
fn next_text(text: &str) -> Option<Vec<u8>> {
    text.char_indices().rev().find_map(|(at, last)| {
        let next = match last {
            // Between these two are no characters.
            '\u{d7ff}' => '\u{e000}',
            last => char::from_u32(last as u32 + 1)?,
        };
        let mut raised = text[..at].to_owned();
        raised.push(next);
        Some(raised.into_bytes())
    })
}

/// Returns the least bytes greater than all that begin with these.
fn next_bytes(bytes: &[u8]) -> Option<Vec<u8>> {
    let last = bytes.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut raised = bytes[..=last].to_vec();
    raised[last] += 1;
    Some(raised)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Bound {
        Bound::Bytes(text.as_bytes().to_vec())
    }

    #[test]
    fn texts_are_cut_between_characters_and_rounded_up() {
        let upper = |value: &str, length| text(value).upper(&PrimitiveType::String, Some(length));
        let lower = |value: &str, length| text(value).lower(&PrimitiveType::String, Some(length));
        assert_eq!(lower("äöüx", 2), Some(text("äö")));
        assert_eq!(upper("äöüx", 2), Some(text("ä÷")));
        assert_eq!(upper("ab", 2), Some(text("ab")), "what is whole is not rounded");
        assert_eq!(upper("a\u{10ffff}b", 2), Some(text("b")));
        assert_eq!(upper("\u{10ffff}\u{10ffff}b", 2), None);
        assert_eq!(upper("\u{d7ff}b", 1), Some(text("\u{e000}")));
        assert_eq!(upper("\u{7f}b", 1), Some(text("\u{80}")), "the next character may be longer");
        assert_eq!(lower("", 1), Some(text("")));
    }

    #[test]
    fn bytes_are_cut_and_rounded_up() {
        let upper = |value: &[u8]| Bound::Bytes(value.to_vec()).upper(&PrimitiveType::Binary, Some(2));
        assert_eq!(upper(&[1, 255, 3]), Some(Bound::Bytes(vec![2])));
        assert_eq!(upper(&[255, 255, 0]), None);
        assert_eq!(upper(&[255, 255]), Some(Bound::Bytes(vec![255, 255])));
        let uuid = Bound::Bytes(vec![7; 16]);
        assert_eq!(uuid.clone().upper(&PrimitiveType::Uuid, Some(2)), Some(uuid));
    }

    #[test]
    fn decimals_of_any_length_keep_their_sign() {
        for value in [0, 1, -1, 127, -128, 128, 10_i128.pow(37), -10_i128.pow(37)] {
            assert_eq!(decimal_of(&value.to_be_bytes()).unwrap(), value);
        }
        assert_eq!(decimal_of(&[0xff, 0x7f]).unwrap(), -129);
        assert!(decimal_of(&[]).is_err());
    }

    #[test]
    fn bounds_at_zero_hold_both_zeros() {
        let lower = Bound::Double(0.0).lower(&PrimitiveType::Double, None).unwrap();
        assert!(matches!(lower, Bound::Double(zero) if zero.is_sign_negative()));
        let upper = Bound::Float(-0.0).upper(&PrimitiveType::Float, None).unwrap();
        assert!(matches!(upper, Bound::Float(zero) if zero.is_sign_positive()));
    }
}
