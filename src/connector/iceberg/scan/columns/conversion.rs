//! From a file's columns to those that a read wants: promoted types, Flink's forms of times and bytes, and structs whose fields
//! were added, dropped, renamed or moved since.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, LargeListArray, ListArray, MapArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::can_cast_types;
use arrow::datatypes::{DataType as ArrowType, FieldRef};
use arrow::error::ArrowError;
use datafusion::common::ScalarValue;

use crate::connector::iceberg::type_mapping::arrow_type_name;
use crate::connector::iceberg::value_cast::cast_values;
use crate::error::Error;

/// How an array becomes one of the wanted type.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::connector::iceberg::scan) struct Conversion {
    /// The wanted field.
    pub(in crate::connector::iceberg::scan) target: FieldRef,
    /// What is done.
    pub(in crate::connector::iceberg::scan) step: Step,
}

/// One level of a conversion.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::connector::iceberg::scan) enum Step {
    /// The types are the same.
    Keep,
    /// A cast, which fails where a value does not fit.
    Cast,
    /// A struct of the wanted fields.
    Struct(Vec<StructField>),
    /// A list of converted elements.
    List(Box<Conversion>),
    /// A map of converted keys and values.
    Map(Box<Conversion>, Box<Conversion>),
}

/// Where the values of a struct's field come from.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::connector::iceberg::scan) enum StructField {
    /// From a field of the file's struct, by its position.
    Child(usize, Conversion),
    /// The same in all rows: the file knows nothing of the field.
    Constant(ScalarValue),
}

impl Conversion {
    /// Converts values without fields.
    ///
    /// # Errors
    /// Arrow has no such cast.
    pub(in crate::connector::iceberg::scan) fn of_value(
        file: &ArrowType,
        target: FieldRef,
    ) -> Result<Conversion, ArrowError> {
        let step = if file == target.data_type() {
            Step::Keep
        } else if can_cast_types(file, target.data_type()) {
            Step::Cast
        } else {
            return Err(ArrowError::CastError(format!(
                "column '{}' of type {} cannot be read as {}",
                target.name(),
                arrow_type_name(file),
                arrow_type_name(target.data_type())
            )));
        };
        Ok(Conversion { target, step })
    }

    /// Returns whether nothing is to be done.
    pub(in crate::connector::iceberg::scan) fn is_identity(&self) -> bool {
        self.step == Step::Keep
    }

    /// Converts an array of the file's type.
    ///
    /// # Errors
    /// A value does not fit, or a NULL stands where there must be none.
    pub(in crate::connector::iceberg::scan) fn apply(
        &self,
        array: &ArrayRef,
    ) -> Result<ArrayRef, ArrowError> {
        match &self.step {
            Step::Keep => Ok(Arc::clone(array)),
            Step::Cast => {
                cast_values(array, self.target.data_type()).map_err(|error| match array.data_type() {
                    ArrowType::Int32 => self.misfit(error),
                    _ => error,
                })
            }
            Step::Struct(fields) => self.apply_to_struct(fields, array),
            Step::List(element) => self.apply_to_list(element, array),
            Step::Map(key, value) => self.apply_to_map(key, value, array),
        }
    }

    /// Makes the error of a value that the wanted type cannot hold: that of the file can, so the file is sound.
    fn misfit(&self, error: ArrowError) -> ArrowError {
        let (name, target) = (self.target.name(), arrow_type_name(self.target.data_type()));
        let misfit = Error::data(format!("a value of column '{name}' is too large for {target}"))
            .hint("Declare the column with the type that it has in the Iceberg table.");
        ArrowError::ExternalError(Box::new(misfit.caused_by(error)))
    }

    fn apply_to_struct(&self, fields: &[StructField], array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        let (Some(array), ArrowType::Struct(targets)) = (array.as_struct_opt(), self.target.data_type())
        else {
            return Err(self.unexpected(array));
        };
        let column = |field: &StructField| match field {
            StructField::Child(index, conversion) => conversion.apply(array.column(*index)),
            StructField::Constant(value) => Ok(value.to_array_of_size(array.len())?),
        };
        let columns = fields.iter().map(column).collect::<Result<Vec<_>, ArrowError>>()?;
        let nulls = array.nulls().cloned();
        Ok(Arc::new(StructArray::try_new_with_length(targets.clone(), columns, nulls, array.len())?))
    }

    fn apply_to_list(&self, element: &Conversion, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        let ArrowType::List(target) = self.target.data_type() else { return Err(self.unexpected(array)) };
        let (offsets, values, nulls) = if let Some(list) = array.as_any().downcast_ref::<ListArray>() {
            (list.offsets().clone(), list.values(), list.nulls())
        } else if let Some(list) = array.as_any().downcast_ref::<LargeListArray>() {
            let lengths = list.offsets().lengths();
            if list.values().len() > i32::MAX as usize {
                return Err(ArrowError::OffsetOverflowError(list.values().len()));
            }
            (OffsetBuffer::from_lengths(lengths), list.values(), list.nulls())
        } else {
            return Err(self.unexpected(array));
        };
        let values = element.apply(values)?;
        Ok(Arc::new(ListArray::try_new(Arc::clone(target), offsets, values, nulls.cloned())?))
    }

    fn apply_to_map(
        &self,
        key: &Conversion,
        value: &Conversion,
        array: &ArrayRef,
    ) -> Result<ArrayRef, ArrowError> {
        let (Some(map), ArrowType::Map(entries, sorted)) = (array.as_map_opt(), self.target.data_type())
        else {
            return Err(self.unexpected(array));
        };
        let ArrowType::Struct(fields) = entries.data_type() else { return Err(self.unexpected(array)) };
        let columns = vec![key.apply(map.keys())?, value.apply(map.values())?];
        let rows = StructArray::try_new(fields.clone(), columns, None)?;
        let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
        Ok(Arc::new(MapArray::try_new(Arc::clone(entries), offsets, rows, nulls, *sorted)?))
    }

    fn unexpected(&self, array: &dyn Array) -> ArrowError {
        ArrowError::CastError(format!(
            "column '{}' of type {} cannot be read as {}",
            self.target.name(),
            arrow_type_name(array.data_type()),
            arrow_type_name(self.target.data_type())
        ))
    }
}
