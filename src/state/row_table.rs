//! How whole rows lie in a table of state: the keys first, then the sequence number if there is one, then the other columns.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType as ArrowType, Field, Int64Type, Schema, SchemaRef};

use super::{StateTable, hash_rows, key_group, stable_names};
use crate::error::{Error, Result};

/// A table that holds rows of an input.
#[derive(Debug)]
pub(crate) struct RowTable {
    table: StateTable,
    keys: Vec<usize>,
    others: Vec<usize>,
    is_sequenced: bool,
}

impl RowTable {
    /// Describes a table of rows under keys (positions in the input), which a sequence number may tell apart.
    pub(crate) fn new(name: &'static str, input: &SchemaRef, keys: &[usize], is_sequenced: bool) -> RowTable {
        let others: Vec<usize> = (0..input.fields().len()).filter(|column| !keys.contains(column)).collect();
        let mut fields: Vec<Field> = keys
            .iter()
            .chain(&others)
            .map(|column| input.field(*column).as_ref().clone().with_nullable(true))
            .collect();
        if is_sequenced {
            fields.insert(keys.len(), Field::new("seq", ArrowType::Int64, false));
        }
        let names = stable_names(fields.iter().map(|field| field.name().as_str()));
        let fields: Vec<Field> =
            fields.iter().zip(names).map(|(field, name)| field.clone().with_name(name)).collect();
        let key_count = keys.len() + usize::from(is_sequenced);
        let table = StateTable { name, schema: Arc::new(Schema::new(fields)), key_count, derived_from: None };
        RowTable { table, keys: keys.to_vec(), others, is_sequenced }
    }

    /// Returns the description.
    pub(crate) fn state_table(&self) -> StateTable {
        self.table.clone()
    }

    /// Returns the key columns of an input's columns.
    pub(crate) fn key_columns(&self, columns: &[ArrayRef]) -> Vec<ArrayRef> {
        self.keys.iter().map(|column| Arc::clone(&columns[*column])).collect()
    }

    /// Returns the key group of every row of an input's columns.
    ///
    /// # Errors
    /// A key column cannot be hashed.
    pub(crate) fn groups(&self, keys: &[ArrayRef], row_count: usize) -> Result<Vec<u8>> {
        let mut hashes = Vec::new();
        hash_rows(keys, row_count, &mut hashes)?;
        Ok(hashes.into_iter().map(key_group).collect())
    }

    /// Lays an input's columns out as rows of the table.
    ///
    /// # Errors
    /// The columns have other types.
    pub(crate) fn rows(
        &self,
        columns: &[ArrayRef],
        sequences: Vec<i64>,
        count: usize,
    ) -> Result<RecordBatch> {
        let mut laid = self.key_columns(columns);
        if self.is_sequenced {
            laid.push(Arc::new(Int64Array::from(sequences)));
        }
        laid.extend(self.others.iter().map(|column| Arc::clone(&columns[*column])));
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.table.schema), laid, &options)?)
    }

    /// Lays keys out as keys of the table.
    ///
    /// # Errors
    /// The columns have other types.
    pub(crate) fn keys(
        &self,
        mut keys: Vec<ArrayRef>,
        sequences: Vec<i64>,
        count: usize,
    ) -> Result<RecordBatch> {
        if self.is_sequenced {
            keys.push(Arc::new(Int64Array::from(sequences)));
        }
        let schema = self.table.schema.project(&(0..self.table.key_count).collect::<Vec<_>>())?;
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(RecordBatch::try_new_with_options(Arc::new(schema), keys, &options)?)
    }

    /// Returns the input's columns, and the sequence numbers, of rows of the table.
    ///
    /// # Errors
    /// The table has other columns.
    pub(crate) fn columns<'a>(&self, rows: &'a RecordBatch) -> Result<(Vec<ArrayRef>, &'a [i64])> {
        let is_sequenced = usize::from(self.is_sequenced);
        if rows.num_columns() != self.keys.len() + self.others.len() + is_sequenced {
            return Err(Error::internal(format!("table {} was saved with other columns", self.table.name)));
        }
        let mut columns: Vec<Option<ArrayRef>> = vec![None; self.keys.len() + self.others.len()];
        for (at, column) in self.keys.iter().enumerate() {
            columns[*column] = Some(Arc::clone(rows.column(at)));
        }
        for (at, column) in self.others.iter().enumerate() {
            columns[*column] = Some(Arc::clone(rows.column(self.keys.len() + is_sequenced + at)));
        }
        let sequences = match self.is_sequenced {
            true => rows.column(self.keys.len()).as_primitive::<Int64Type>().values().as_ref(),
            false => &[],
        };
        Ok((columns.into_iter().flatten().collect(), sequences))
    }
}
