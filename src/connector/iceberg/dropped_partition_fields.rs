//! Metadata of tables of format 1 from which a partition field was dropped: it stays in the spec under its old name, as `void`. The crate
//! reads such metadata, but refuses every change of it, as it allows a field that is named like a column only if it is `identity`. So
//! the field has another name while metadata is changed.

use iceberg::spec::{TableMetadata, TableMetadataBuildResult, TableMetadataBuilder, Transform};
use serde_json::Value;

/// What stands before the name of a dropped field meanwhile. No column is called so.
const HIDDEN: &str = "\u{1}dropped ";

/// Begins to change metadata, whose file is told if it is to be noted in the log.
///
/// # Errors
/// The metadata has no JSON form, which the crate rules out for metadata that it has read.
pub(super) fn metadata_builder(
    metadata: &TableMetadata,
    location: Option<String>,
) -> iceberg::Result<TableMetadataBuilder> {
    let schema = metadata.current_schema();
    let is_refused = metadata
        .default_partition_spec()
        .fields()
        .iter()
        .any(|field| field.transform == Transform::Void && schema.field_by_name(&field.name).is_some());
    let metadata = match is_refused {
        true => renamed(metadata, |name| Some(format!("{HIDDEN}{name}")))?,
        false => metadata.clone(),
    };
    Ok(metadata.into_builder(location))
}

/// Ends a change that `metadata_builder` has begun.
///
/// # Errors
/// The parts of the metadata do not fit each other.
pub(super) fn build_metadata(builder: TableMetadataBuilder) -> iceberg::Result<TableMetadataBuildResult> {
    let mut built = builder.build()?;
    let is_hidden = built
        .metadata
        .partition_specs_iter()
        .any(|spec| spec.fields().iter().any(|field| field.name.starts_with(HIDDEN)));
    if is_hidden {
        built.metadata = renamed(&built.metadata, |name| name.strip_prefix(HIDDEN).map(str::to_owned))?;
    }
    Ok(built)
}

/// Renames the dropped fields of all specs, where `rename` has another name for them.
fn renamed(
    metadata: &TableMetadata,
    rename: impl Fn(&str) -> Option<String>,
) -> iceberg::Result<TableMetadata> {
    let mut json = serde_json::to_value(metadata)?;
    let specs = json.get_mut("partition-specs").and_then(Value::as_array_mut).into_iter().flatten();
    for spec in specs {
        let fields = spec.get_mut("fields").and_then(Value::as_array_mut).into_iter().flatten();
        for field in fields.filter(|field| field.get("transform").is_some_and(|of| of == "void")) {
            let name = field.get("name").and_then(Value::as_str).and_then(&rename);
            if let Some(name) = name {
                field["name"] = Value::from(name);
            }
        }
    }
    Ok(serde_json::from_value(json)?)
}
