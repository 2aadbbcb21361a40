//! What a scan knows of one data file, attached to DataFusion's `PartitionedFile`.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::ScalarValue;
use iceberg::spec::{DataFileFormat, Literal, TableMetadata, Transform};

use super::columns::ReadColumn;
use super::live_files::LiveFile;
use crate::connector::iceberg::literal_value::scalar;
use crate::connector::iceberg::manifest::{FileRole, ReadContext, TableFile};
use crate::error::Result;

/// A data file of a scan.
#[derive(Debug)]
pub(super) struct ScanFile {
    /// Its location.
    pub(super) location: Arc<str>,
    /// The file with its deletes.
    pub(super) live: LiveFile,
    /// Values that its partition gives to columns, by field id.
    pub(super) constants: Arc<HashMap<i32, ScalarValue>>,
}

impl ScanFile {
    /// Takes a data file into a scan.
    ///
    /// # Errors
    /// Its format is not read, or the metadata does not fit it.
    pub(super) fn new(
        live: LiveFile,
        metadata: &TableMetadata,
        columns: &[ReadColumn],
        context: &ReadContext,
    ) -> Result<ScanFile> {
        let file = &live.data.file;
        check_format(&live.data, context)?;
        let constants = partition_constants(&live.data, metadata, columns)
            .map_err(|error| context.damaged(FileRole::DataFile, file.file_path(), error))?;
        Ok(ScanFile { location: file.file_path().into(), constants: Arc::new(constants), live })
    }
}

/// Fails where a data file is no Parquet file.
///
/// # Errors
/// It is in ORC or Avro.
pub(super) fn check_format(file: &TableFile, context: &ReadContext) -> Result<()> {
    let format = file.file.file_format();
    if format == DataFileFormat::Parquet {
        return Ok(());
    }
    Err(context.unsupported(
        FileRole::DataFile,
        file.file.file_path(),
        &format!("is in format {format}, and only Parquet is read"),
        "Let the engine that writes the table write Parquet ('write.format.default'='parquet') and rewrite its data files.",
    ))
}

/// Returns the values that a file's partition gives to columns: those of identity transforms.
///
/// # Errors
/// A value does not fit its column.
pub(super) fn partition_constants(
    file: &TableFile,
    metadata: &TableMetadata,
    columns: &[ReadColumn],
) -> Result<HashMap<i32, ScalarValue>> {
    let mut constants = HashMap::new();
    let Some(spec) = metadata.partition_spec_by_id(file.spec_id) else { return Ok(constants) };
    for (field, value) in spec.fields().iter().zip(file.file.partition().iter()) {
        if field.transform != Transform::Identity {
            continue;
        }
        let Some(column) = columns.iter().rfind(|column| column.id == field.source_id) else { continue };
        let target = column.field.data_type();
        let value = match value.and_then(Literal::as_primitive_literal) {
            Some(literal) => scalar(&literal, &column.iceberg, target)?,
            None => ScalarValue::try_new_null(target)?,
        };
        constants.insert(column.id, value);
    }
    Ok(constants)
}
