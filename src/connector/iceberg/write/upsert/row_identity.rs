//! What tells rows of a table apart: the columns of its key, or all columns where it has none.
//!
//! Where there is no key, equal rows are one entry of the index with as many positions as there are rows. A row is then known by a
//! hash of 128 bits of its row encoding, in which every NaN is one value, as the exchange has it that brings equal rows together.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::buffer::ScalarBuffer;
use arrow::compute::{CastOptions, SortOptions, cast_with_options};
use arrow::datatypes::{DataType as ArrowType, Decimal128Type, FieldRef};
use iceberg::spec::Schema;
use xxhash_rust::xxh3::xxh3_128;

use crate::connector::iceberg::type_mapping::{self, arrow_type_name};
use crate::connector::iceberg::write::file_schema::WrittenColumns;
use crate::error::{Error, Result};
use crate::state::{RowCodec, hash_rows, key_group};

/// Tells rows apart.
#[derive(Debug)]
pub(in crate::connector::iceberg::write) struct RowIdentity {
    columns: Vec<IdentityColumn>,
    kind: IdentityKind,
}

/// A column of an identity.
#[derive(Debug)]
struct IdentityColumn {
    /// Its place among the columns that are written.
    at: usize,
    name: String,
    /// Its id in the table.
    id: i32,
    /// Its type in the table, as Arrow has Flink's types.
    data_type: ArrowType,
    /// Its type in the rows that are written, by whose values the exchange tells which writer they come to. What is nested in it takes
    /// NULL.
    written: ArrowType,
}

#[derive(Debug)]
enum IdentityKind {
    /// The key; `distribution` are the columns, among those of the key, by which rows come to writers.
    Key { distribution: Vec<usize> },
    /// All columns, by which rows come to writers, too.
    Row { codec: RowCodec },
}

/// Rows as an index knows them.
#[derive(Debug, Clone)]
pub(super) struct Identified {
    /// The columns of the index.
    pub(super) keys: Vec<ArrayRef>,
    /// The hash of each row for the index.
    pub(super) hashes: Vec<u64>,
    /// The key group of each row where it cannot be told from the columns of the index.
    pub(super) groups: Option<Vec<u8>>,
}

impl RowIdentity {
    /// Makes the identity of rows with a key: places among the written columns, of which those of `distribution` bring rows to
    /// writers. The columns have the types of the table's schema.
    ///
    /// # Errors
    /// Rows come to writers by other columns than those of the key, or a column is not written as the table has it.
    pub(in crate::connector::iceberg::write) fn of_key(
        written: &WrittenColumns,
        schema: &Schema,
        key: &[usize],
        distribution: &[usize],
    ) -> Result<RowIdentity> {
        let place = |column: &usize| key.iter().position(|other| other == column);
        let distribution = distribution.iter().map(place).collect::<Option<Vec<usize>>>();
        let distribution = distribution
            .ok_or_else(|| Error::internal("rows of one key may come to several writers of a table"))?;
        let columns = identity_columns(written, schema, key.iter().copied())?;
        Ok(RowIdentity { columns, kind: IdentityKind::Key { distribution } })
    }

    /// Makes the identity of rows without a key.
    ///
    /// # Errors
    /// A column's values cannot be compared, or it is not written as the table has it.
    pub(in crate::connector::iceberg::write) fn of_row(
        written: &WrittenColumns,
        schema: &Schema,
    ) -> Result<RowIdentity> {
        let columns = identity_columns(written, schema, 0..written.ids().len())?;
        let types = columns.iter().map(|column| (column.data_type.clone(), SortOptions::default()));
        let codec = RowCodec::new(types)?;
        Ok(RowIdentity { columns, kind: IdentityKind::Row { codec } })
    }

    /// Returns whether rows have a key.
    pub(super) fn is_key(&self) -> bool {
        matches!(self.kind, IdentityKind::Key { .. })
    }

    /// Returns the names of the columns.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    /// Returns the ids of the columns in the table.
    pub(super) fn ids(&self) -> Vec<i32> {
        self.columns.iter().map(|column| column.id).collect()
    }

    /// Describes all that says which row an index knows under which key, and which writer gets it: state that was made by another
    /// identity would be looked up in vain.
    pub(super) fn fingerprint(&self) -> String {
        let column = |column: &IdentityColumn| {
            let IdentityColumn { name, id, data_type, written, .. } = column;
            format!("{id} {name} {} as {written}", nullable(data_type))
        };
        let columns = self.columns.iter().map(column).collect::<Vec<_>>().join(", ");
        match &self.kind {
            IdentityKind::Key { distribution } => {
                let ids = distribution.iter().map(|column| self.columns[*column].id.to_string());
                format!("key ({columns}) by ({})", ids.collect::<Vec<_>>().join(", "))
            }
            IdentityKind::Row { .. } => format!("row ({columns})"),
        }
    }

    /// Returns the types of the columns of the index.
    pub(super) fn key_types(&self) -> Vec<ArrowType> {
        match &self.kind {
            IdentityKind::Key { .. } => self.columns.iter().map(|column| column.data_type.clone()).collect(),
            IdentityKind::Row { .. } => vec![ROW_HASH],
        }
    }

    /// Identifies rows that are to be written.
    ///
    /// # Errors
    /// A value of the key is NULL.
    pub(super) fn of_written(&self, columns: &[ArrayRef], row_count: usize) -> Result<Identified> {
        let own = |column: &IdentityColumn| {
            let values = &columns[column.at];
            if self.is_key() && values.logical_null_count() > 0 {
                let message =
                    format!("column '{}' is part of the table's key and is NULL in a row", column.name);
                return Err(Error::data(message)
                    .hint("Filter such rows out, or replace NULL by a value that is no other row's key."));
            }
            column.of(values)
        };
        let own = self.columns.iter().map(own).collect::<Result<_>>()?;
        let came_as = self.columns.iter().map(|column| Arc::clone(&columns[column.at])).collect();
        self.identify(own, came_as, row_count)
    }

    /// Identifies rows of which only the columns of the identity are there, as a table's files have them.
    ///
    /// # Errors
    /// A column has another type, and a value that the written column cannot have.
    pub(super) fn of_read(&self, columns: &[ArrayRef], row_count: usize) -> Result<Identified> {
        let own = self.columns.iter().zip(columns).map(|(column, values)| column.of(values));
        let own = own.collect::<Result<Vec<_>>>()?;
        let came_as = match &self.kind {
            // The groups of keys are asked for where they are needed.
            IdentityKind::Key { .. } => Vec::new(),
            IdentityKind::Row { .. } => {
                let columns = self.columns.iter().zip(&own);
                columns.map(|(column, values)| column.as_written(values)).collect::<Result<_>>()?
            }
        };
        self.identify(own, came_as, row_count)
    }

    /// Returns the key groups of keys, as the exchange tells them from what is written.
    ///
    /// # Errors
    /// A column cannot be hashed, or rows have no key.
    pub(super) fn groups(&self, keys: &[ArrayRef], row_count: usize) -> Result<Vec<u8>> {
        let IdentityKind::Key { distribution } = &self.kind else {
            return Err(Error::internal("the group of a row without a key is not told by its hash"));
        };
        let written = distribution.iter().map(|column| self.columns[*column].as_written(&keys[*column]));
        groups_of(&written.collect::<Result<Vec<_>>>()?, row_count)
    }

    /// Returns whether the key group of a row of the index is that of its hash there: rows come to writers by the whole key.
    pub(super) fn hash_is_of_group(&self) -> bool {
        match &self.kind {
            IdentityKind::Key { distribution } => {
                let is_written_so = |column: &IdentityColumn| column.written == column.data_type;
                distribution.iter().copied().eq(0..self.columns.len())
                    && self.columns.iter().all(is_written_so)
            }
            IdentityKind::Row { .. } => false,
        }
    }

    /// Identifies rows by their columns in the table's types. `came_as` is what the exchange tells the writer of rows without a key by.
    fn identify(
        &self,
        columns: Vec<ArrayRef>,
        came_as: Vec<ArrayRef>,
        row_count: usize,
    ) -> Result<Identified> {
        let mut hashes = Vec::new();
        match &self.kind {
            IdentityKind::Key { .. } => {
                hash_rows(&columns, row_count, &mut hashes)?;
                Ok(Identified { keys: columns, hashes, groups: None })
            }
            IdentityKind::Row { codec } => {
                let groups = groups_of(&came_as, row_count)?;
                let rows = codec.encode(&columns, row_count)?;
                let values: Vec<i128> = rows.iter().map(|row| xxh3_128(row.as_ref()) as i128).collect();
                hashes.extend(values.iter().map(|value| *value as u64));
                let keys: Vec<ArrayRef> = vec![Arc::new(row_hashes(values))];
                Ok(Identified { keys, hashes, groups: Some(groups) })
            }
        }
    }
}

/// Returns the key groups of rows, as the exchange tells them from columns that are written.
fn groups_of(written: &[ArrayRef], row_count: usize) -> Result<Vec<u8>> {
    let mut hashes = Vec::new();
    hash_rows(written, row_count, &mut hashes)?;
    Ok(hashes.into_iter().map(key_group).collect())
}

/// The type of row hashes in an index: the one that it keeps as 128 bits. They are no decimals.
const ROW_HASH: ArrowType = ArrowType::Decimal128(38, 0);

/// Makes a column of an index out of row hashes.
pub(super) fn row_hashes(values: Vec<i128>) -> PrimitiveArray<Decimal128Type> {
    PrimitiveArray::<Decimal128Type>::new(ScalarBuffer::from(values), None).with_data_type(ROW_HASH)
}

/// Returns the row hash of an identified row.
pub(super) fn row_hash_of(rows: &Identified, row: usize) -> i128 {
    rows.keys[0].as_primitive::<Decimal128Type>().value(row)
}

/// Returns the hash for an index of a row hash: a part of it.
pub(super) fn index_hash(row_hash: i128) -> u64 {
    row_hash as u64
}

impl IdentityColumn {
    /// Returns values in the type that the table had when the job was started: the job may write a narrower one, and another session
    /// may have made the table's wider.
    fn of(&self, values: &ArrayRef) -> Result<ArrayRef> {
        if *values.data_type() == self.data_type {
            return Ok(Arc::clone(values));
        }
        let options = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(values, &self.data_type, &options).map_err(|error| {
            let message = format!(
                "column '{}' has become {} in the table, and holds values that {} cannot have",
                self.name,
                arrow_type_name(values.data_type()),
                arrow_type_name(&self.data_type)
            );
            Error::rejected(message)
                .hint("Start the job again, so that it knows the new type.")
                .caused_by(error)
        })
    }

    /// Returns values of the table's type as the exchange has seen them. One that is never written as it is becomes NULL or another
    /// one: no row comes for it, so it may be in any group.
    fn as_written(&self, values: &ArrayRef) -> Result<ArrayRef> {
        if *values.data_type() == self.written {
            return Ok(Arc::clone(values));
        }
        Ok(cast_with_options(values, &self.written, &CastOptions::default())?)
    }
}

/// Returns a type in which all that is nested takes NULL, for values that do not fit it.
fn nullable(data_type: &ArrowType) -> ArrowType {
    let field = |field: &FieldRef| {
        Arc::new(field.as_ref().clone().with_data_type(nullable(field.data_type())).with_nullable(true))
    };
    match data_type {
        ArrowType::Struct(fields) => ArrowType::Struct(fields.iter().map(field).collect()),
        ArrowType::List(element) => ArrowType::List(field(element)),
        other => other.clone(),
    }
}

fn identity_columns(
    written: &WrittenColumns,
    schema: &Schema,
    columns: impl Iterator<Item = usize>,
) -> Result<Vec<IdentityColumn>> {
    let column = |at: usize| {
        let (field, id) = (written.rows().field(at), written.ids()[at]);
        let name = field.name().clone();
        let of_table = schema
            .field_by_id(id)
            .ok_or_else(|| Error::internal(format!("column '{name}' is not in the table's schema")))?;
        let data_type = type_mapping::to_flink(&of_table.field_type, of_table.required).to_arrow();
        Ok(IdentityColumn { at, name, id, data_type, written: nullable(field.data_type()) })
    };
    columns.map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        AsArray, Float32Array, Float64Array, Int8Array, Int32Array, Int64Array, StringArray, StructArray,
        TimestampMicrosecondArray, TimestampMillisecondArray,
    };
    use arrow::datatypes::{Field, Schema as ArrowSchema};
    use iceberg::spec::{NestedField, PrimitiveType, StructType, Type};

    fn schema() -> Schema {
        let field = |id, name, of| Arc::new(NestedField::optional(id, name, Type::Primitive(of)));
        let fields = [
            field(1, "id", PrimitiveType::Int),
            field(2, "name", PrimitiveType::String),
            field(3, "x", PrimitiveType::Double),
        ];
        Schema::builder().with_fields(fields).build().unwrap()
    }

    fn written() -> WrittenColumns {
        let fields = vec![
            Field::new("id", ArrowType::Int32, true),
            Field::new("name", ArrowType::Utf8, true),
            Field::new("x", ArrowType::Float64, true),
        ];
        WrittenColumns::resolve(Arc::new(ArrowSchema::new(fields)), &schema(), "t").unwrap()
    }

    fn columns() -> Vec<ArrayRef> {
        vec![
            Arc::new(Int32Array::from(vec![1, 2, 1, 1])),
            Arc::new(StringArray::from(vec![Some("a"), None, Some("a"), Some("a")])),
            Arc::new(Float64Array::from(vec![f64::NAN, 0.0, -f64::NAN, -0.0])),
        ]
    }

    #[test]
    fn a_key_groups_rows_as_the_exchange_does() {
        let identity = RowIdentity::of_key(&written(), &schema(), &[1, 0], &[0]).unwrap();
        assert_eq!(identity.names().collect::<Vec<_>>(), ["name", "id"]);
        assert_eq!(identity.ids(), [2, 1]);
        let keys: Vec<ArrayRef> = vec![columns()[1].slice(2, 2), columns()[0].slice(2, 2)];
        let mut exchange = Vec::new();
        hash_rows(&[Arc::clone(&keys[1])], 2, &mut exchange).unwrap();
        let exchange: Vec<u8> = exchange.into_iter().map(key_group).collect();
        assert_eq!(identity.groups(&keys, 2).unwrap(), exchange);
        assert!(identity.of_read(&keys, 2).unwrap().groups.is_none());
        assert!(RowIdentity::of_key(&written(), &schema(), &[1, 0], &[2]).is_err());
    }

    /// Returns the groups that the exchange tells from columns.
    fn exchanged(columns: &[ArrayRef]) -> Vec<u8> {
        let mut hashes = Vec::new();
        hash_rows(columns, columns[0].len(), &mut hashes).unwrap();
        hashes.into_iter().map(key_group).collect()
    }

    /// Columns that are written in narrower types than the table has: as they are written, and as the table's files have them.
    fn narrower() -> (WrittenColumns, Schema, [Vec<ArrayRef>; 2]) {
        let nested = |of| Type::Struct(StructType::new(vec![Arc::new(NestedField::required(5, "n", of))]));
        let of_table = [
            (1, "at", Type::Primitive(PrimitiveType::Timestamp)),
            (2, "x", Type::Primitive(PrimitiveType::Double)),
            (3, "id", Type::Primitive(PrimitiveType::Int)),
            (4, "row", nested(Type::Primitive(PrimitiveType::Int))),
        ];
        let of_table = of_table.map(|(id, name, of)| Arc::new(NestedField::optional(id, name, of)));
        let schema = Schema::builder().with_fields(of_table).build().unwrap();
        let row = |values: ArrayRef| -> ArrayRef {
            let field = Field::new("n", values.data_type().clone(), false);
            Arc::new(StructArray::new(vec![field].into(), vec![values], None))
        };
        let numbers = 0..40_i32;
        let millis = numbers.clone().map(|n| i64::from(n) * 1_000_003);
        let halves = numbers.clone().map(|n| n as f32 / 4.0);
        let written: Vec<ArrayRef> = vec![
            Arc::new(TimestampMillisecondArray::from_iter_values(millis.clone())),
            Arc::new(Float32Array::from_iter_values(halves.clone())),
            Arc::new(Int8Array::from_iter_values(numbers.clone().map(|n| n as i8))),
            row(Arc::new(Int8Array::from_iter_values(numbers.clone().map(|n| n as i8)))),
        ];
        let read: Vec<ArrayRef> = vec![
            Arc::new(TimestampMicrosecondArray::from_iter_values(millis.map(|at| at * 1000))),
            Arc::new(Float64Array::from_iter_values(halves.map(f64::from))),
            Arc::new(Int32Array::from_iter_values(numbers.clone())),
            row(Arc::new(Int32Array::from_iter_values(numbers))),
        ];
        let fields = ["at", "x", "id", "row"].into_iter().zip(&written);
        let fields: Vec<Field> =
            fields.map(|(name, column)| Field::new(name, column.data_type().clone(), true)).collect();
        let columns = WrittenColumns::resolve(Arc::new(ArrowSchema::new(fields)), &schema, "t").unwrap();
        (columns, schema, [written, read])
    }

    #[test]
    fn rows_belong_to_the_writer_to_which_the_exchange_brings_them_in_the_types_that_are_written() {
        let (columns, schema, [written, read]) = narrower();
        let identity = RowIdentity::of_key(&columns, &schema, &[0, 1, 2, 3], &[0, 1, 2, 3]).unwrap();
        assert!(!identity.hash_is_of_group());
        let [own, found] = [identity.of_written(&written, 40).unwrap(), identity.of_read(&read, 40).unwrap()];
        assert_eq!(own.hashes, found.hashes, "one key is one in both types");
        assert_eq!(identity.groups(&own.keys, 40).unwrap(), exchanged(&written));
        assert_ne!(exchanged(&read), exchanged(&written));
        let identity = RowIdentity::of_row(&columns, &schema).unwrap();
        let [own, found] = [identity.of_written(&written, 40).unwrap(), identity.of_read(&read, 40).unwrap()];
        assert_eq!(own.hashes, found.hashes);
        assert_eq!(own.groups, Some(exchanged(&written)));
        assert_eq!(found.groups, own.groups);
    }

    #[test]
    fn a_value_that_no_job_of_this_type_writes_may_be_in_any_group() {
        let (columns, schema, [_, read]) = narrower();
        let mut beyond = read.clone();
        beyond[0] = Arc::new(TimestampMicrosecondArray::from_iter_values(0..40));
        beyond[2] = Arc::new(Int32Array::from_iter_values(1000..1040));
        let field = Field::new("n", ArrowType::Int32, false);
        beyond[3] = Arc::new(StructArray::new(vec![field].into(), vec![Arc::clone(&beyond[2])], None));
        let identity = RowIdentity::of_row(&columns, &schema).unwrap();
        assert_eq!(identity.of_read(&beyond, 40).unwrap().groups.unwrap().len(), 40);
        let identity = RowIdentity::of_key(&columns, &schema, &[2, 3], &[2, 3]).unwrap();
        assert_eq!(identity.groups(&beyond[2..], 40).unwrap().len(), 40);
    }

    #[test]
    fn a_fingerprint_tells_the_columns_their_types_and_the_distribution() {
        let (columns, schema, _) = narrower();
        let of_key = |key: &[usize], distribution: &[usize]| {
            RowIdentity::of_key(&columns, &schema, key, distribution).unwrap().fingerprint()
        };
        assert_eq!(of_key(&[2], &[2]), "key (3 id Int32 as Int8) by (3)");
        let all =
            [of_key(&[2], &[2]), of_key(&[2, 1], &[2, 1]), of_key(&[2, 1], &[2]), of_key(&[2, 1], &[1])];
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 4);
        let of_row = RowIdentity::of_row(&columns, &schema).unwrap().fingerprint();
        assert!(of_row.starts_with("row (1 at Timestamp(µs) as Timestamp(ms), "), "{of_row}");
    }

    #[test]
    fn a_null_in_a_key_is_refused_by_name() {
        let identity = RowIdentity::of_key(&written(), &schema(), &[0, 1], &[0]).unwrap();
        let error = identity.of_written(&columns(), 4).unwrap_err();
        assert_eq!(error.message(), "column 'name' is part of the table's key and is NULL in a row");
    }

    #[test]
    fn equal_rows_are_one_and_come_to_one_writer() {
        let identity = RowIdentity::of_row(&written(), &schema()).unwrap();
        let found = identity.of_written(&columns(), 4).unwrap();
        let hashes = found.keys[0].as_primitive::<Decimal128Type>().values().to_vec();
        assert_eq!(hashes[0], hashes[2], "every NaN is one");
        assert!(hashes[0] != hashes[1] && hashes[0] != hashes[3]);
        assert_eq!(found.hashes[3], index_hash(hashes[3]));
        let mut exchange = Vec::new();
        hash_rows(&columns(), 4, &mut exchange).unwrap();
        let exchange: Vec<u8> = exchange.into_iter().map(key_group).collect();
        assert_eq!(found.groups, Some(exchange));
    }

    #[test]
    fn a_hash_of_a_row_never_changes() {
        let identity = RowIdentity::of_row(&written(), &schema()).unwrap();
        let found = identity.of_written(&columns(), 4).unwrap();
        let hash = found.keys[0].as_primitive::<Decimal128Type>().value(1) as u128;
        assert_eq!(
            format!("{hash:032x}"),
            "bac418697f56a3bc1c3dabbadd8a4d7f",
            "state would not find the rows that it knows"
        );
    }

    #[test]
    fn a_column_that_became_wider_is_read_as_long_as_its_values_fit() {
        let identity = RowIdentity::of_key(&written(), &schema(), &[0], &[0]).unwrap();
        let wide: ArrayRef = Arc::new(Int64Array::from(vec![5, 6]));
        assert_eq!(identity.of_read(&[wide], 2).unwrap().keys[0].data_type(), &ArrowType::Int32);
        let beyond: ArrayRef = Arc::new(Int64Array::from(vec![5, 1 << 40]));
        assert!(
            identity
                .of_read(&[beyond], 2)
                .unwrap_err()
                .message()
                .starts_with("column 'id' has become BIGINT")
        );
    }
}
