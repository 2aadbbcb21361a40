//! What manifests tell DataFusion of rows and columns: exact numbers answer COUNT, MIN and MAX without reading a file.
//!
//! Exact are counts of rows and NULLs, and the bounds of columns whose bounds are never cut, in files that nothing was deleted from.
//! Bounds of texts may be cut, those of FLOAT and DOUBLE leave out NaN, which is Flink's greatest value, and the sign of 0.

use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use iceberg::spec::{Datum, PrimitiveType, Type};

use super::super::columns::ReadColumn;
use super::super::live_files::LiveFile;
use crate::connector::iceberg::literal_value::scalar;

/// Describes one data file, for ruling it out by conditions that become known while the query runs: deletes do not matter for that.
pub(in crate::connector::iceberg::scan) fn of_file(
    live: &LiveFile,
    columns: &[ReadColumn],
    wanted: &[bool],
) -> Statistics {
    let file = &live.data.file;
    let of_column = |(column, wanted): (&ReadColumn, &bool)| {
        let (Type::Primitive(primitive), true) = (&column.iceberg, *wanted) else {
            return ColumnStatistics::new_unknown();
        };
        let bound = |datum: Option<&Datum>| datum.and_then(|datum| bound(datum, column, primitive));
        let (lower, upper) =
            (bound(file.lower_bounds().get(&column.id)), bound(file.upper_bounds().get(&column.id)));
        // Equal bounds would be taken for the value of all rows; of a text they may be its beginning.
        let is_cut = matches!(primitive, PrimitiveType::String) && lower == upper;
        let is_told = !is_cut && !is_everything(lower.as_ref(), upper.as_ref());
        let exact = |value: Option<ScalarValue>| match value {
            Some(value) if is_told => Precision::Exact(value),
            _ => Precision::Absent,
        };
        ColumnStatistics {
            null_count: nulls(live, column.id),
            min_value: exact(lower),
            max_value: exact(upper),
            ..ColumnStatistics::new_unknown()
        }
    };
    Statistics {
        num_rows: Precision::Exact(count(file.record_count())),
        total_byte_size: Precision::Absent,
        column_statistics: columns.iter().zip(wanted).map(of_column).collect(),
    }
}

/// Describes all rows of a scan.
pub(in crate::connector::iceberg::scan) fn of_scan(
    files: &[LiveFile],
    columns: &[ReadColumn],
    wanted: &[bool],
) -> Statistics {
    let is_whole = files.iter().all(|live| live.deletes.is_empty());
    let of_column = |(column, wanted): (&ReadColumn, &bool)| match (&column.iceberg, *wanted) {
        (Type::Primitive(primitive), true) => {
            let exact = column_of_scan(files, column, primitive);
            if is_whole { exact } else { exact.to_inexact() }
        }
        _ => ColumnStatistics::new_unknown(),
    };
    Statistics {
        num_rows: rows_of_scan(files),
        total_byte_size: Precision::Absent,
        column_statistics: columns.iter().zip(wanted).map(of_column).collect(),
    }
}

/// Counts rows. Deletion vectors say how many they delete; other deletes may name a row twice, or none, or rows of several files. An
/// estimate is never 0: that would be taken for the knowledge that there are none.
fn rows_of_scan(files: &[LiveFile]) -> Precision<usize> {
    let (mut rows, mut is_exact) = (0_u64, true);
    for live in files {
        let deletes = &live.deletes;
        let deleted: u64 = match &deletes.vector {
            Some(vector) => vector.file.file.record_count(),
            None => {
                is_exact &= deletes.positions.is_empty();
                let own =
                    deletes.positions.iter().filter(|delete| delete.file.referenced_data_file().is_some());
                own.map(|delete| delete.file.file.record_count()).sum()
            }
        };
        is_exact &= deletes.equality.is_empty();
        rows += live.data.file.record_count().saturating_sub(deleted);
    }
    if is_exact { Precision::Exact(count(rows)) } else { Precision::Inexact(count(rows.max(1))) }
}

fn column_of_scan(files: &[LiveFile], column: &ReadColumn, primitive: &PrimitiveType) -> ColumnStatistics {
    let mut null_count = Precision::Exact(0);
    let (mut lower, mut upper) = (Some(None), Some(None));
    for live in files {
        let file = &live.data.file;
        let nulls = nulls(live, column.id);
        null_count = null_count.add(&nulls);
        // A file of NULLs alone has no bounds and needs none.
        if nulls.get_value() == Some(&count(file.record_count())) {
            continue;
        }
        let bound = |datum: Option<&Datum>| datum.and_then(|datum| bound(datum, column, primitive));
        lower = extreme(lower, bound(file.lower_bounds().get(&column.id)), |new, old| new < old);
        upper = extreme(upper, bound(file.upper_bounds().get(&column.id)), |new, old| new > old);
    }
    let (lower, upper) = (lower.flatten(), upper.flatten());
    let (is_exact, is_told) = (is_never_cut(primitive), !is_everything(lower.as_ref(), upper.as_ref()));
    let precise = |value: Option<ScalarValue>| match value.filter(|_| is_told) {
        Some(value) if is_exact => Precision::Exact(value),
        Some(value) => Precision::Inexact(value),
        None => Precision::Absent,
    };
    ColumnStatistics {
        null_count,
        min_value: precise(lower),
        max_value: precise(upper),
        ..ColumnStatistics::new_unknown()
    }
}

/// Goes on with the lesser or greater bound. The outer None: a file has no bound, so that nothing is known.
fn extreme(
    known: Option<Option<ScalarValue>>,
    bound: Option<ScalarValue>,
    is_better: fn(&ScalarValue, &ScalarValue) -> bool,
) -> Option<Option<ScalarValue>> {
    let (known, bound) = (known?, bound?);
    Some(match known {
        Some(known) if !is_better(&bound, &known) => Some(known),
        _ => Some(bound),
    })
}

/// Returns a bound as a value of the column that is read.
fn bound(datum: &Datum, column: &ReadColumn, primitive: &PrimitiveType) -> Option<ScalarValue> {
    match primitive {
        PrimitiveType::Float
        | PrimitiveType::Double
        | PrimitiveType::Uuid
        | PrimitiveType::Fixed(_)
        | PrimitiveType::Binary => None,
        _ => scalar(datum.literal(), &column.iceberg, column.field.data_type()).ok(),
    }
}

/// Returns whether there is no BIGINT outside the bounds. They say nothing then, and DataFusion's number of the values between them is one
/// more than it can count.
fn is_everything(lower: Option<&ScalarValue>, upper: Option<&ScalarValue>) -> bool {
    lower == Some(&ScalarValue::Int64(Some(i64::MIN))) && upper == Some(&ScalarValue::Int64(Some(i64::MAX)))
}

fn is_never_cut(primitive: &PrimitiveType) -> bool {
    !matches!(primitive, PrimitiveType::String)
}

fn nulls(live: &LiveFile, id: i32) -> Precision<usize> {
    match live.data.file.null_value_counts().get(&id) {
        Some(nulls) => Precision::Exact(count(*nulls)),
        None => Precision::Absent,
    }
}

fn count(rows: u64) -> usize {
    usize::try_from(rows).unwrap_or(usize::MAX)
}
