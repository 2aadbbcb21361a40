//! Builds the small answers of SHOW and DESCRIBE.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray};
use arrow::datatypes::Schema;

use super::{ResultColumn, ResultTable, StatementResult};
use crate::error::Result;
use crate::schema::TypeRoot;

/// A column of an answer with its values.
pub(super) struct AnswerColumn {
    name: String,
    root: TypeRoot,
    values: ArrayRef,
}

impl AnswerColumn {
    /// Texts, some of which may be NULL.
    pub(super) fn texts<T: AsRef<str>>(
        name: &str,
        values: impl IntoIterator<Item = Option<T>>,
    ) -> AnswerColumn {
        let values = values.into_iter().collect::<StringArray>();
        AnswerColumn { name: name.to_owned(), root: TypeRoot::STRING, values: Arc::new(values) }
    }

    /// Booleans.
    pub(super) fn booleans(name: &str, values: impl IntoIterator<Item = bool>) -> AnswerColumn {
        let values = values.into_iter().map(Some).collect::<BooleanArray>();
        AnswerColumn { name: name.to_owned(), root: TypeRoot::Boolean, values: Arc::new(values) }
    }

    /// Whole numbers, some of which may be NULL.
    pub(super) fn numbers(name: &str, values: impl IntoIterator<Item = Option<u64>>) -> AnswerColumn {
        let signed = |number| i64::try_from(number).unwrap_or(i64::MAX);
        let values = values.into_iter().map(|value| value.map(signed)).collect::<Int64Array>();
        AnswerColumn { name: name.to_owned(), root: TypeRoot::BigInt, values: Arc::new(values) }
    }

    /// Instants with milliseconds, some of which may be NULL.
    pub(super) fn optional_instants(
        name: &str,
        values: impl IntoIterator<Item = Option<i64>>,
    ) -> AnswerColumn {
        let values = values.into_iter().collect::<TimestampMillisecondArray>().with_timezone("UTC");
        AnswerColumn { name: name.to_owned(), root: TypeRoot::TimestampLtz(3), values: Arc::new(values) }
    }
}

/// Makes an answer of columns of equal length.
pub(super) fn answer(columns: Vec<AnswerColumn>) -> Result<StatementResult> {
    let result_columns: Vec<ResultColumn> = columns
        .iter()
        .map(|column| ResultColumn { name: column.name.clone(), data_type: column.root.clone().nullable() })
        .collect();
    let fields: Vec<_> =
        result_columns.iter().map(|column| column.data_type.to_field(&column.name)).collect();
    let arrays = columns.into_iter().map(|column| column.values).collect();
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?;
    Ok(StatementResult::Table(ResultTable { columns: Arc::new(result_columns), rows }))
}

/// Makes an answer of one column of texts.
pub(super) fn text_table<T: AsRef<str>>(
    name: &str,
    values: impl IntoIterator<Item = T>,
) -> Result<StatementResult> {
    answer(vec![AnswerColumn::texts(name, values.into_iter().map(Some))])
}

/// Makes an answer of `info name` and `info value`.
pub(super) fn info(rows: Vec<(String, String)>) -> Result<StatementResult> {
    let (names, values): (Vec<String>, Vec<String>) = rows.into_iter().unzip();
    answer(vec![
        AnswerColumn::texts("info name", names.into_iter().map(Some)),
        AnswerColumn::texts("info value", values.into_iter().map(Some)),
    ])
}
