//! A call of an aggregate function: where its rows come from and where its result is.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::{DataType as ArrowType, SchemaRef};

use super::accumulator::Accumulator;
use super::count::Count;
use super::extreme::extreme;
use super::kept_value::{Kept, KeptValue};
use super::moment::moment;
use super::rows::{Rows, Selection};
use super::tables::{Tables, argument};
use crate::error::{Error, Result};
use crate::plan::{AggregateCall, AggregateFunction, GroupAggregateSpec};

/// A call.
pub(super) struct Call {
    /// The column of the argument, if there is one.
    argument: Option<usize>,
    /// The column of the FILTER.
    pub(super) filter: Option<usize>,
    /// The counts that say which values are new, for DISTINCT.
    distinct: Option<usize>,
    /// Where the result comes from.
    pub(super) aggregate: Aggregate,
    result_type: ArrowType,
}

/// Where a result comes from. The numbers are places in `Tables`.
pub(super) enum Aggregate {
    /// The group's own count of rows.
    RowCount,
    /// Columns of the call's own.
    Own(Box<dyn Accumulator>),
    /// The smallest or the largest of counted values.
    Extreme { counts: usize, is_max: bool },
    /// All counted values.
    Collect { counts: usize, is_distinct: bool },
    /// The oldest value.
    First(usize),
    /// The newest value.
    Last(usize),
    /// The only value.
    Single(usize),
    /// All values as one text.
    ListAgg { arrivals: usize, separator: String },
    /// All values as an array.
    ArrayAgg(usize),
}

impl Call {
    /// Creates a call and the tables that it needs.
    ///
    /// # Errors
    /// The function does not take the argument.
    pub(super) fn new(
        call: &AggregateCall,
        spec: &GroupAggregateSpec,
        input: &SchemaRef,
        tables: &mut Tables,
    ) -> Result<Call> {
        use AggregateFunction as Function;
        // NULLs and equal values do not change the smallest and the largest.
        let is_distinct =
            call.is_distinct && !matches!(call.function, Function::Min | Function::Max | Function::Collect);
        let retracts = spec.input_retracts;
        let distinct = if is_distinct {
            Some(tables.counts(call, input, call.function == Function::ArrayAgg, retracts)?)
        } else {
            None
        };
        let mut arrivals = |keeps_nulls| tables.arrivals(call, input, distinct, keeps_nulls, retracts);
        let column = |argument: usize| input.field(argument).data_type();
        let aggregate = match &call.function {
            Function::Count if call.arguments.is_empty() && call.filter.is_none() => Aggregate::RowCount,
            Function::Count if call.arguments.len() <= 1 => Aggregate::Own(Box::new(Count::default())),
            Function::FirstValue if retracts => Aggregate::First(arrivals(false)?),
            Function::LastValue if retracts => Aggregate::Last(arrivals(false)?),
            Function::FirstValue => kept(Kept::First, column(argument(call)?))?,
            Function::LastValue => kept(Kept::Last, column(argument(call)?))?,
            Function::SingleValue => Aggregate::Single(arrivals(true)?),
            Function::ListAgg(separator) => {
                Aggregate::ListAgg { arrivals: arrivals(false)?, separator: separator.clone() }
            }
            Function::ArrayAgg => Aggregate::ArrayAgg(arrivals(true)?),
            Function::Collect => Aggregate::Collect {
                counts: tables.counts(call, input, false, true)?,
                is_distinct: call.is_distinct,
            },
            Function::Min => extreme_of(call, false, retracts, input, tables)?,
            Function::Max => extreme_of(call, true, retracts, input, tables)?,
            function => {
                let argument_type = call.argument_type.as_ref();
                let argument_type =
                    argument_type.ok_or_else(|| Error::internal("an aggregate of numbers has a type"))?;
                let column = column(argument(call)?);
                Aggregate::Own(moment(function, column, argument_type, &call.result_type)?)
            }
        };
        Ok(Call {
            argument: call.arguments.first().copied(),
            filter: call.filter,
            distinct,
            aggregate,
            result_type: call.result_type.to_arrow(),
        })
    }

    /// Adds and takes back rows of a batch: those of `rows`, or those by which a value came or went.
    ///
    /// # Errors
    /// The argument has another type.
    pub(super) fn update(&mut self, columns: &[ArrayRef], rows: &Rows<'_>, tables: &Tables) -> Result<()> {
        let Aggregate::Own(accumulator) = &mut self.aggregate else { return Ok(()) };
        let values = self.argument.map(|argument| &columns[argument]);
        match self.distinct {
            None => accumulator.update(values, rows),
            Some(counts) => {
                let selection = Selection::Listed(tables.counts[counts].table.transitions());
                accumulator.update(values, &Rows { selection, ..rows.clone() })
            }
        }
    }

    /// Returns the results of groups, whose row counts are given.
    ///
    /// # Errors
    /// The column cannot be built, or a group has two values where there may be one.
    pub(super) fn results(&self, slots: &[u32], row_counts: &[i64], tables: &Tables) -> Result<ArrayRef> {
        let arrivals = |number: &usize| &tables.arrivals[*number].table;
        match &self.aggregate {
            Aggregate::RowCount => Ok(Arc::new(Int64Array::from(row_counts.to_vec()))),
            Aggregate::Own(accumulator) => accumulator.results(slots),
            Aggregate::Extreme { counts, is_max } => {
                tables.counts[*counts].table.counts()?.extremes(*is_max, slots)
            }
            Aggregate::Collect { counts, is_distinct } => {
                tables.counts[*counts].table.counts()?.multisets(&self.result_type, *is_distinct, slots)
            }
            Aggregate::First(number) => arrivals(number).firsts(slots),
            Aggregate::Last(number) => arrivals(number).lasts(slots),
            Aggregate::Single(number) => arrivals(number).singles(slots),
            Aggregate::ListAgg { arrivals: number, separator } => arrivals(number).joined(separator, slots),
            Aggregate::ArrayAgg(number) => arrivals(number).arrays(&self.result_type, slots),
        }
    }
}

/// Chooses how MIN or MAX is kept.
fn extreme_of(
    call: &AggregateCall,
    is_max: bool,
    retracts: bool,
    input: &SchemaRef,
    tables: &mut Tables,
) -> Result<Aggregate> {
    if retracts {
        let counts = tables.counts(call, input, false, true)?;
        tables.counts[counts].table.track_extreme(is_max);
        return Ok(Aggregate::Extreme { counts, is_max });
    }
    let data_type = input.field(argument(call)?).data_type();
    match extreme(is_max, data_type) {
        Some(extreme) => Ok(Aggregate::Own(extreme)),
        None => kept(if is_max { Kept::Max } else { Kept::Min }, data_type),
    }
}

fn kept(kept: Kept, data_type: &ArrowType) -> Result<Aggregate> {
    Ok(Aggregate::Own(Box::new(KeptValue::new(kept, data_type)?)))
}
