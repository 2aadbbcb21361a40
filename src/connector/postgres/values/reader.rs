//! The values of one column of a table of the server, as those of the column that is declared.

use super::Fault;
use super::binary::{BinaryForm, Cells, FaultAt};
use super::source_type::SourceType;
use super::text::TextForm;
use crate::connector::postgres::options::Unrepresentable;
use crate::format::ColumnBuilder;
use crate::schema::DataType;

/// Reads values of one type of the server as those of one declared type.
#[derive(Debug, Clone)]
pub(in crate::connector::postgres) struct ValueReader {
    text: TextForm,
    binary: Option<BinaryForm>,
    nulls_misfits: bool,
}

impl ValueReader {
    /// Makes a reader; None if values of the one type never are values of the other.
    pub(in crate::connector::postgres) fn new(
        source: &SourceType,
        declared: &DataType,
        unrepresentable: Unrepresentable,
    ) -> Option<ValueReader> {
        Some(ValueReader {
            text: TextForm::new(source, declared, unrepresentable)?,
            binary: BinaryForm::new(source, declared),
            nulls_misfits: unrepresentable == Unrepresentable::Null && declared.nullable,
        })
    }

    /// Returns the binary form that can be read; None if only texts can.
    pub(in crate::connector::postgres) fn binary(&self) -> Option<BinaryForm> {
        self.binary
    }

    /// Appends the value that a text stands for. After an error, part of it may be there.
    #[inline]
    pub(in crate::connector::postgres) fn push_text(
        &mut self,
        text: &[u8],
        column: &mut ColumnBuilder,
    ) -> Result<(), Fault> {
        let len = column.len();
        match self.text.push(text, column) {
            Ok(()) => Ok(()),
            Err(fault) => self.null_or(fault, len, column),
        }
    }

    /// Appends a value in binary form.
    pub(in crate::connector::postgres) fn push_binary(
        &self,
        value: &[u8],
        column: &mut ColumnBuilder,
    ) -> Result<(), Fault> {
        let Some(form) = self.binary else {
            return Err(Fault::Malformed("came in a binary form that is not read"));
        };
        let len = column.len();
        form.push(value, column).or_else(|fault| self.null_or(fault, len, column))
    }

    /// Appends a column of a block: all in binary form, or all as texts.
    pub(in crate::connector::postgres) fn push_block(
        &mut self,
        cells: Cells<'_>,
        is_binary: bool,
        column: &mut ColumnBuilder,
    ) -> Result<(), FaultAt> {
        if let Some(form) = self.binary.filter(|_| is_binary) {
            return form.push_all(cells, self.nulls_misfits, column);
        }
        for (row, value) in cells.values().enumerate() {
            match value {
                Some(text) => self.push_text(text, column).map_err(|fault| (row, fault))?,
                None => column.push_null(),
            }
        }
        Ok(())
    }

    /// Returns a value as an error shows it.
    pub(in crate::connector::postgres) fn shown(&self, value: &[u8], is_binary: bool) -> Vec<u8> {
        match self.binary.filter(|_| is_binary) {
            Some(form) => form.shown(value),
            None => value.to_vec(),
        }
    }

    /// Appends NULL in place of a value that does not fit, where that is wanted.
    #[cold]
    fn null_or(&self, fault: Fault, len: usize, column: &mut ColumnBuilder) -> Result<(), Fault> {
        if self.nulls_misfits && matches!(fault, Fault::Misfit(_)) {
            column.truncate(len);
            column.push_null();
            return Ok(());
        }
        Err(fault)
    }
}
