//! The tables that several calls of an operator may read, and how their rows are told to a checkpoint.

use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;

use super::arrivals::Arrivals;
use super::value_table::ValueTable;
use crate::error::{Error, Result};
use crate::plan::AggregateCall;

/// What several calls may read: tables over a column, filtered and counted.
#[derive(Debug)]
pub(super) struct Shared<T> {
    /// The column.
    pub(super) argument: usize,
    /// The FILTER.
    pub(super) filter: Option<usize>,
    /// For `Arrivals` the counts whose first and last values are those that count; for `ValueTable` nothing.
    pub(super) distinct: Option<usize>,
    keeps_nulls: bool,
    /// The table.
    pub(super) table: T,
}

/// The tables of an operator.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// Values that are counted, or have been seen.
    pub(super) counts: Vec<Shared<ValueTable>>,
    /// Values in order.
    pub(super) arrivals: Vec<Shared<Arrivals>>,
}

impl Tables {
    /// Returns the values of a column, made if they are not there yet. Where no row is taken back DISTINCT needs no counts.
    ///
    /// # Errors
    /// The values cannot be compared.
    pub(super) fn counts(
        &mut self,
        call: &AggregateCall,
        input: &SchemaRef,
        keeps_nulls: bool,
        is_counted: bool,
    ) -> Result<usize> {
        let argument = argument(call)?;
        let is_same = |shared: &Shared<ValueTable>| {
            (shared.argument, shared.filter, shared.keeps_nulls) == (argument, call.filter, keeps_nulls)
                && (shared.table.is_counted() || !is_counted)
        };
        if let Some(found) = self.counts.iter().position(is_same) {
            return Ok(found);
        }
        let table = ValueTable::new(input.field(argument).data_type(), keeps_nulls, is_counted)?;
        self.counts.push(Shared { argument, filter: call.filter, distinct: None, keeps_nulls, table });
        Ok(self.counts.len() - 1)
    }

    /// Returns the arrivals of a column, made if they are not there yet.
    ///
    /// # Errors
    /// The values cannot be compared.
    pub(super) fn arrivals(
        &mut self,
        call: &AggregateCall,
        input: &SchemaRef,
        distinct: Option<usize>,
        keeps_nulls: bool,
        retracts: bool,
    ) -> Result<usize> {
        let argument = argument(call)?;
        let is_same = |shared: &Shared<Arrivals>| {
            (shared.argument, shared.filter, shared.distinct, shared.keeps_nulls)
                == (argument, call.filter, distinct, keeps_nulls)
        };
        if let Some(found) = self.arrivals.iter().position(is_same) {
            return Ok(found);
        }
        let table = Arrivals::new(input.field(argument).data_type(), keeps_nulls, retracts)?;
        self.arrivals.push(Shared { argument, filter: call.filter, distinct, keeps_nulls, table });
        Ok(self.arrivals.len() - 1)
    }
}

/// Returns the only argument of a call.
///
/// # Errors
/// There are more.
pub(super) fn argument(call: &AggregateCall) -> Result<usize> {
    match call.arguments.as_slice() {
        [argument] => Ok(*argument),
        _ => Err(Error::unsupported(format!(
            "{:?} over {} arguments is not supported yet in streaming mode",
            call.function,
            call.arguments.len()
        ))
        .hint("Use one argument.")),
    }
}

/// Rows of a state table without the group keys, which come from the slots.
pub(super) struct Saved {
    /// The group of each.
    pub(super) slots: Vec<u32>,
    /// The other columns.
    pub(super) columns: Vec<ArrayRef>,
}
