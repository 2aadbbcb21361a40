//! Files of a table as a checkpoint keeps them.
//!
//! The form is our own: it needs no schema to be read again, which may have changed, and does not depend on the crate's.

use std::collections::HashMap;
use std::hash::Hash;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use iceberg::spec::{
    DataContentType, DataFileBuilder, DataFileFormat, Datum, Literal, PrimitiveLiteral, PrimitiveType, Struct,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::connector::iceberg::error::from_iceberg;
use crate::connector::iceberg::manifest::TableFile;
use crate::error::{Error, ErrorKind, Result};

/// A data file or a file of position deletes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct FileRecord {
    path: String,
    spec: i32,
    partition: Vec<Option<ValueRecord>>,
    deletes: bool,
    rows: u64,
    bytes: u64,
    column_sizes: Vec<(i32, u64)>,
    values: Vec<(i32, u64)>,
    nulls: Vec<(i32, u64)>,
    nans: Vec<(i32, u64)>,
    lower: Vec<(i32, BoundRecord)>,
    upper: Vec<(i32, BoundRecord)>,
    splits: Vec<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    order: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    referenced: Option<String>,
}

/// A value of a partition. Dates and times are the numbers that they are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ValueRecord {
    Boolean(bool),
    Int(i32),
    Long(i64),
    /// The bits.
    Float(u32),
    /// The bits.
    Double(u64),
    String(String),
    /// In Base64.
    Binary(String),
    /// The unscaled value.
    Decimal(String),
    Uuid(Uuid),
}

/// A bound: its type, and its bytes in Base64.
type BoundRecord = (PrimitiveType, String);

impl FileRecord {
    /// Describes a file.
    ///
    /// # Errors
    /// It is of a kind that we do not write.
    pub(super) fn new(of: &TableFile) -> Result<FileRecord> {
        let file = &of.file;
        let foreign = || Error::internal(format!("file '{}' cannot be in a checkpoint", file.file_path()));
        let deletes = match file.content_type() {
            DataContentType::Data => false,
            DataContentType::PositionDeletes if file.content_offset().is_none() => true,
            _ => return Err(foreign()),
        };
        if file.file_format() != DataFileFormat::Parquet {
            return Err(foreign());
        }
        let value = |value: Option<&Literal>| match value {
            None => Ok(None),
            Some(Literal::Primitive(value)) => ValueRecord::new(value).map(Some).ok_or_else(foreign),
            Some(_) => Err(foreign()),
        };
        Ok(FileRecord {
            path: file.file_path().to_owned(),
            spec: of.spec_id,
            partition: file.partition().iter().map(value).collect::<Result<_>>()?,
            deletes,
            rows: file.record_count(),
            bytes: file.file_size_in_bytes(),
            column_sizes: sorted(file.column_sizes()),
            values: sorted(file.value_counts()),
            nulls: sorted(file.null_value_counts()),
            nans: sorted(file.nan_value_counts()),
            lower: bounds(file.lower_bounds())?,
            upper: bounds(file.upper_bounds())?,
            splits: file.split_offsets().unwrap_or_default().to_vec(),
            order: file.sort_order_id(),
            referenced: file.referenced_data_file(),
        })
    }

    /// Returns where the file is.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the file.
    ///
    /// # Errors
    /// The record is damaged.
    pub(super) fn to_file(&self) -> Result<TableFile> {
        let value = |value: &Option<ValueRecord>| value.as_ref().map(ValueRecord::literal).transpose();
        let partition = self.partition.iter().map(value).collect::<Result<Vec<_>>>()?;
        let mut file = DataFileBuilder::default();
        file.content(if self.deletes { DataContentType::PositionDeletes } else { DataContentType::Data })
            .file_path(self.path.clone())
            .file_format(DataFileFormat::Parquet)
            .partition(Struct::from_iter(partition))
            .partition_spec_id(self.spec)
            .record_count(self.rows)
            .file_size_in_bytes(self.bytes)
            .column_sizes(self.column_sizes.iter().copied().collect())
            .value_counts(self.values.iter().copied().collect())
            .null_value_counts(self.nulls.iter().copied().collect())
            .nan_value_counts(self.nans.iter().copied().collect())
            .lower_bounds(datums(&self.lower)?)
            .upper_bounds(datums(&self.upper)?)
            .split_offsets(Some(self.splits.clone()))
            .referenced_data_file(self.referenced.clone());
        if let Some(order) = self.order {
            file.sort_order_id(order);
        }
        let file = file.build().map_err(|error| damaged().caused_by(error))?;
        Ok(TableFile { spec_id: self.spec, file })
    }
}

impl ValueRecord {
    fn new(value: &PrimitiveLiteral) -> Option<ValueRecord> {
        Some(match value {
            PrimitiveLiteral::Boolean(value) => ValueRecord::Boolean(*value),
            PrimitiveLiteral::Int(value) => ValueRecord::Int(*value),
            PrimitiveLiteral::Long(value) => ValueRecord::Long(*value),
            PrimitiveLiteral::Float(value) => ValueRecord::Float(value.to_bits()),
            PrimitiveLiteral::Double(value) => ValueRecord::Double(value.to_bits()),
            PrimitiveLiteral::String(value) => ValueRecord::String(value.clone()),
            PrimitiveLiteral::Binary(value) => ValueRecord::Binary(STANDARD.encode(value)),
            PrimitiveLiteral::Int128(value) => ValueRecord::Decimal(value.to_string()),
            PrimitiveLiteral::UInt128(value) => ValueRecord::Uuid(Uuid::from_u128(*value)),
            PrimitiveLiteral::AboveMax | PrimitiveLiteral::BelowMin => return None,
        })
    }

    fn literal(&self) -> Result<Literal> {
        Ok(match self {
            ValueRecord::Boolean(value) => Literal::bool(*value),
            ValueRecord::Int(value) => Literal::int(*value),
            ValueRecord::Long(value) => Literal::long(*value),
            ValueRecord::Float(bits) => Literal::float(f32::from_bits(*bits)),
            ValueRecord::Double(bits) => Literal::double(f64::from_bits(*bits)),
            ValueRecord::String(value) => Literal::string(value),
            ValueRecord::Binary(text) => {
                Literal::binary(STANDARD.decode(text).map_err(|error| damaged().caused_by(error))?)
            }
            ValueRecord::Decimal(text) => {
                Literal::decimal(text.parse().map_err(|error| damaged().caused_by(error))?)
            }
            ValueRecord::Uuid(value) => Literal::uuid(*value),
        })
    }
}

fn damaged() -> Error {
    Error::new(ErrorKind::State, "the files of a checkpoint cannot be read")
}

/// Returns the entries of a map in order, so that equal files have equal records.
fn sorted<V: Clone>(map: &HashMap<i32, V>) -> Vec<(i32, V)>
where
    i32: Hash,
{
    let mut entries: Vec<(i32, V)> = map.iter().map(|(id, value)| (*id, value.clone())).collect();
    entries.sort_unstable_by_key(|(id, _)| *id);
    entries
}

fn bounds(map: &HashMap<i32, Datum>) -> Result<Vec<(i32, BoundRecord)>> {
    let record = |(id, bound): (i32, Datum)| {
        let bytes = bound.to_bytes().map_err(from_iceberg)?;
        Ok((id, (bound.data_type().clone(), STANDARD.encode(bytes))))
    };
    sorted(map).into_iter().map(record).collect()
}

fn datums(records: &[(i32, BoundRecord)]) -> Result<HashMap<i32, Datum>> {
    let datum = |(id, (data_type, text)): &(i32, BoundRecord)| {
        let bytes = STANDARD.decode(text).map_err(|error| damaged().caused_by(error))?;
        let datum = Datum::try_from_bytes(&bytes, data_type.clone());
        Ok((*id, datum.map_err(|error| damaged().caused_by(error))?))
    };
    records.iter().map(datum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_comes_back_as_it_was() {
        let decimal = PrimitiveType::Decimal { precision: 38, scale: 2 };
        let bounds: HashMap<i32, Datum> = [
            (1, Datum::bool(true)),
            (2, Datum::long(-7)),
            (3, Datum::double(-0.0)),
            (4, Datum::string("äö")),
            (5, Datum::binary([0, 255])),
            (6, Datum::try_from_bytes(&(-10_i128.pow(37)).to_be_bytes(), decimal).unwrap()),
            (7, Datum::uuid(Uuid::from_u128(7))),
            (8, Datum::date(-1)),
            (9, Datum::timestamptz_nanos(-1)),
        ]
        .into();
        let partition = [
            Some(Literal::bool(false)),
            Some(Literal::int(-1)),
            Some(Literal::long(i64::MIN)),
            Some(Literal::float(-0.0)),
            Some(Literal::double(f64::INFINITY)),
            Some(Literal::string("a=b")),
            Some(Literal::binary(vec![0, 255])),
            Some(Literal::decimal(-10_i128.pow(37))),
            Some(Literal::uuid(Uuid::from_u128(u128::MAX))),
            None,
        ];
        let mut file = DataFileBuilder::default();
        file.content(DataContentType::PositionDeletes)
            .file_path("file:/t/data/x.parquet".to_owned())
            .file_format(DataFileFormat::Parquet)
            .partition(Struct::from_iter(partition))
            .partition_spec_id(3)
            .record_count(5)
            .file_size_in_bytes(99)
            .column_sizes([(1, 10)].into())
            .value_counts([(1, 5)].into())
            .null_value_counts([(1, 2)].into())
            .nan_value_counts([(3, 1)].into())
            .lower_bounds(bounds.clone())
            .upper_bounds(bounds)
            .split_offsets(Some(vec![4, 50]))
            .sort_order_id(2)
            .referenced_data_file(Some("file:/t/data/y.parquet".to_owned()));
        let file = TableFile { spec_id: 3, file: file.build().unwrap() };
        let text = serde_json::to_string(&FileRecord::new(&file).unwrap()).unwrap();
        let record: FileRecord = serde_json::from_str(&text).unwrap();
        assert_eq!(record.to_file().unwrap(), file, "{text}");
    }
}
