//! Which partition every row belongs to.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StructArray, make_array};
use arrow::buffer::NullBuffer;
use iceberg::spec::{PartitionSpec, PrimitiveType, Schema, Struct, StructType, Transform, Type};

use crate::connector::iceberg::error::from_iceberg;
use crate::connector::iceberg::partition::{literal_at, partition_path, transform_column};
use crate::error::{Error, Result};
use crate::state::{KeyIndex, hash_rows};

/// Numbers the partitions of rows.
#[derive(Debug)]
pub(super) struct PartitionSplitter {
    spec: PartitionSpec,
    partition_type: StructType,
    fields: Vec<SplitField>,
    index: KeyIndex,
    partitions: Vec<Partition>,
    hashes: Vec<u64>,
    numbers: Vec<u32>,
}

/// A partition that has been met.
#[derive(Debug, Clone)]
pub(super) struct Partition {
    /// Its values.
    pub(super) values: Struct,
    /// Its folder, relative to that of the table's data.
    pub(super) path: String,
}

#[derive(Debug)]
struct SplitField {
    transform: Transform,
    result: PrimitiveType,
    /// Where the source column is: its place at each level of structs.
    source: Vec<usize>,
}

impl PartitionSplitter {
    /// Makes a splitter of rows of a schema.
    ///
    /// # Errors
    /// A source column is gone, or a transform does not fit it.
    pub(super) fn new(spec: &PartitionSpec, schema: &Schema) -> Result<PartitionSplitter> {
        let partition_type = spec.partition_type(schema).map_err(from_iceberg)?;
        let mut fields = Vec::new();
        let mut types = Vec::new();
        for (field, typed) in spec.fields().iter().zip(partition_type.fields()) {
            let source = path_to(schema.as_struct(), field.source_id).ok_or_else(|| {
                Error::validation(format!("the source column of partition field '{}' is gone", field.name))
                    .hint("Take the field out of the table's partition spec, with the engine that dropped the column.")
            })?;
            let Type::Primitive(result) = typed.field_type.as_ref() else {
                return Err(Error::unsupported(format!("partition field '{}' is nested", field.name))
                    .hint("Partition the table by columns of primitive types."));
            };
            types.push(iceberg::arrow::type_to_arrow_type(&typed.field_type).map_err(from_iceberg)?);
            fields.push(SplitField { transform: field.transform, result: result.clone(), source });
        }
        Ok(PartitionSplitter {
            spec: spec.clone(),
            partition_type,
            fields,
            index: KeyIndex::new(&types)?,
            partitions: Vec::new(),
            hashes: Vec::new(),
            numbers: Vec::new(),
        })
    }

    /// Returns the number of every row's partition.
    ///
    /// # Errors
    /// A transform fails.
    pub(super) fn split(&mut self, rows: &RecordBatch) -> Result<&[u32]> {
        let column =
            |field: &SplitField| transform_column(field.transform, &source_column(rows, &field.source)?);
        let columns: Vec<ArrayRef> = self.fields.iter().map(column).collect::<Result<_>>()?;
        hash_rows(&columns, rows.num_rows(), &mut self.hashes)?;
        self.index.intern(&columns, &self.hashes, &mut self.numbers)?;
        if self.index.slot_count() > self.partitions.len() {
            for row in 0..self.numbers.len() {
                // New slots are numbered in the order of the rows that bring them.
                if self.numbers[row] as usize == self.partitions.len() {
                    let partition = self.partition_of(&columns, row)?;
                    self.partitions.push(partition);
                }
            }
        }
        Ok(&self.numbers)
    }

    /// Returns a partition by number.
    pub(super) fn partition(&self, number: u32) -> &Partition {
        &self.partitions[number as usize]
    }

    /// Returns how many partitions have been met.
    pub(super) fn partition_count(&self) -> usize {
        self.partitions.len()
    }

    fn partition_of(&self, columns: &[ArrayRef], row: usize) -> Result<Partition> {
        let values = columns.iter().zip(&self.fields);
        let values = values.map(|(column, field)| literal_at(column, row, &field.result));
        let values: Struct = values.collect::<Result<Vec<_>>>()?.into_iter().collect();
        let path = partition_path(&self.spec, &self.partition_type, &values);
        Ok(Partition { values, path })
    }
}

/// Returns where a field is: its place at each level of structs.
pub(super) fn path_to(fields: &StructType, id: i32) -> Option<Vec<usize>> {
    fields.fields().iter().enumerate().find_map(|(at, field)| {
        if field.id == id {
            return Some(vec![at]);
        }
        let Type::Struct(nested) = field.field_type.as_ref() else { return None };
        let mut path = path_to(nested, id)?;
        path.insert(0, at);
        Some(path)
    })
}

/// Returns the column at a path; NULL where a struct on the way is.
pub(super) fn source_column(rows: &RecordBatch, path: &[usize]) -> Result<ArrayRef> {
    let missing = || Error::internal("a column that the partition spec needs is not among the rows");
    let (first, rest) = path.split_first().ok_or_else(missing)?;
    let mut column = ArrayRef::clone(rows.columns().get(*first).ok_or_else(missing)?);
    for at in rest {
        let parent: &StructArray = column.as_struct_opt().ok_or_else(missing)?;
        let child = ArrayRef::clone(parent.columns().get(*at).ok_or_else(missing)?);
        let nulls = NullBuffer::union(parent.nulls(), child.nulls());
        column = make_array(child.to_data().into_builder().nulls(nulls).build()?);
    }
    Ok(column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Float64Array, Int32Array, StringArray};
    use iceberg::spec::{Literal, NestedField};
    use std::sync::Arc;

    fn schema() -> Arc<Schema> {
        let nested = StructType::new(vec![Arc::new(NestedField::optional(
            4,
            "x",
            Type::Primitive(PrimitiveType::Int),
        ))]);
        let fields = [
            NestedField::optional(1, "i", Type::Primitive(PrimitiveType::Int)),
            NestedField::optional(2, "f", Type::Primitive(PrimitiveType::Double)),
            NestedField::optional(3, "s", Type::Struct(nested)),
            NestedField::optional(5, "t", Type::Primitive(PrimitiveType::String)),
        ];
        Arc::new(Schema::builder().with_fields(fields.map(Arc::new)).build().unwrap())
    }

    fn rows() -> RecordBatch {
        let arrow = Arc::new(iceberg::arrow::schema_to_arrow_schema(&schema()).unwrap());
        let arrow::datatypes::DataType::Struct(nested) = arrow.field(2).data_type() else { unreachable!() };
        let x: ArrayRef = Arc::new(Int32Array::from(vec![7, 7, 7, 7]));
        let nulls = NullBuffer::from(vec![true, false, true, true]);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from(vec![Some(1), Some(1), None, Some(1)])),
            Arc::new(Float64Array::from(vec![f64::NAN, -f64::NAN, 0.0, -0.0])),
            Arc::new(StructArray::new(nested.clone(), vec![x], Some(nulls))),
            Arc::new(StringArray::from(vec!["ab", "ac", "b", ""])),
        ];
        RecordBatch::try_new(arrow, columns).unwrap()
    }

    fn split(fields: &[(&str, Transform)]) -> (Vec<u32>, Vec<String>) {
        let schema = schema();
        let mut spec = PartitionSpec::builder(Arc::clone(&schema));
        for (at, (name, transform)) in fields.iter().enumerate() {
            spec = spec.add_partition_field(name, format!("p{at}"), *transform).unwrap();
        }
        let mut splitter = PartitionSplitter::new(&spec.build().unwrap(), &schema).unwrap();
        let first = splitter.split(&rows()).unwrap().to_vec();
        assert_eq!(splitter.split(&rows()).unwrap(), first, "numbers stay");
        let count = first.iter().max().map_or(0, |max| max + 1);
        (first, (0..count).map(|number| splitter.partition(number).path.clone()).collect())
    }

    #[test]
    fn rows_of_equal_values_share_a_partition() {
        let (numbers, paths) = split(&[("i", Transform::Identity), ("t", Transform::Truncate(1))]);
        assert_eq!(numbers, [0, 0, 1, 2]);
        assert_eq!(paths, ["p0=1/p1=a", "p0=null/p1=b", "p0=1/p1="]);
    }

    #[test]
    fn every_nan_is_one_value_and_the_zeros_are_two() {
        let (numbers, paths) = split(&[("f", Transform::Identity)]);
        assert_eq!(numbers, [0, 0, 1, 2]);
        assert_eq!(paths[1..], ["p0=0.0", "p0=-0.0"]);
    }

    #[test]
    fn a_nested_source_is_null_where_its_parent_is() {
        let (numbers, paths) = split(&[("s.x", Transform::Identity)]);
        assert_eq!(numbers, [0, 1, 0, 0]);
        assert_eq!(paths, ["p0=7", "p0=null"]);
    }

    #[test]
    fn values_are_the_crates_literals() {
        let schema = schema();
        let spec = PartitionSpec::builder(Arc::clone(&schema));
        let spec = spec.add_partition_field("i", "i_bucket", Transform::Bucket(4)).unwrap().build().unwrap();
        let mut splitter = PartitionSplitter::new(&spec, &schema).unwrap();
        splitter.split(&rows()).unwrap();
        let values = &splitter.partition(0).values;
        assert!(matches!(values[0], Some(Literal::Primitive(_))), "{values:?}");
        assert_eq!(splitter.partition(1).values[0], None);
    }
}
