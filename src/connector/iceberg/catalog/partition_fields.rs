//! Partition fields as PARTITIONED BY says them: a column alone, or in a transform such as `bucket(16, id)` or `days(ts)`.

use iceberg::spec::{PartitionSpec, Schema, Transform, UnboundPartitionSpec};

use crate::catalog::partition_column;
use crate::connector::iceberg::error::from_iceberg;
use crate::connector::iceberg::type_mapping::to_flink;
use crate::error::{Error, FlinkClass, Result};

/// Returns the fields of a spec as text. A field that was dropped from a table of format version 1 is not shown.
pub(super) fn partition_texts(spec: &PartitionSpec, schema: &Schema) -> Vec<String> {
    let text = |transform: Transform, column: &str| match transform {
        Transform::Identity => Some(column.to_owned()),
        Transform::Bucket(count) => Some(format!("bucket({count}, {column})")),
        Transform::Truncate(width) => Some(format!("truncate({width}, {column})")),
        Transform::Year => Some(format!("years({column})")),
        Transform::Month => Some(format!("months({column})")),
        Transform::Day => Some(format!("days({column})")),
        Transform::Hour => Some(format!("hours({column})")),
        Transform::Unknown => Some(format!("unknown({column})")),
        Transform::Void => None,
    };
    let fields = spec.fields().iter();
    fields.filter_map(|field| text(field.transform, schema.name_by_field_id(field.source_id)?)).collect()
}

/// Makes the spec of a new table.
///
/// # Errors
/// A transform is not known or does not fit the type of its column.
pub(super) fn partition_spec(keys: &[String], schema: &Schema) -> Result<UnboundPartitionSpec> {
    let mut spec = PartitionSpec::builder(schema.clone());
    let mut names: Vec<String> = Vec::with_capacity(keys.len());
    for key in keys {
        let (transform, column) = parse(key)?;
        let field = schema.field_by_name(column).ok_or_else(|| {
            Error::validation(format!("Partition column '{column}' not defined in the table schema"))
        })?;
        if transform.result_type(&field.field_type).is_err() {
            return Err(Error::validation(format!(
                "column '{column}' of type {} cannot partition a table by {key}",
                to_flink(&field.field_type, false).summary()
            ))
            .hint(types_of(transform)));
        }
        let name = field_name(transform, column, &|name| {
            schema.field_by_name(name).is_some() || names.iter().any(|taken| taken == name)
        });
        spec = spec.add_partition_field(column, &name, transform).map_err(|error| {
            Error::validation(format!(
                "{key} says nothing new of column '{column}', which partitions the table already"
            ))
            .hint("Of years, months, days and hours of one column the finest is enough.")
            .caused_by(error)
        })?;
        names.push(name);
    }
    Ok(spec.build().map_err(from_iceberg)?.into_unbound())
}

/// Reads a partition field: the transform and the column.
fn parse(key: &str) -> Result<(Transform, &str)> {
    let column = partition_column(key);
    if column == key {
        return Ok((Transform::Identity, column));
    }
    let (transform, arguments) = key.split_once('(').unwrap_or((key, ""));
    let parameter = || -> Result<u32> {
        let text = arguments.split_once(", ").map_or("", |(parameter, _)| parameter);
        match text.parse() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(Error::validation(format!("{transform} takes a number above 0, not '{text}': {key}"))
                .class(FlinkClass::ILLEGAL_ARGUMENT)),
        }
    };
    let transform = match transform {
        "bucket" => Transform::Bucket(parameter()?),
        "truncate" => Transform::Truncate(parameter()?),
        "years" => Transform::Year,
        "months" => Transform::Month,
        "days" => Transform::Day,
        "hours" => Transform::Hour,
        other => {
            return Err(Error::unsupported(format!("'{other}' is no partition transform: {key}")).hint(
                "Transforms are bucket(n, c), truncate(n, c), years(c), months(c), days(c) and hours(c).",
            ));
        }
    };
    Ok((transform, column))
}

/// Names a partition field as Iceberg does; where the name is taken, the parameter comes behind it.
fn field_name(transform: Transform, column: &str, is_taken: &dyn Fn(&str) -> bool) -> String {
    let (name, parameter) = match transform {
        Transform::Bucket(count) => (format!("{column}_bucket"), Some(count)),
        Transform::Truncate(width) => (format!("{column}_trunc"), Some(width)),
        Transform::Year => (format!("{column}_year"), None),
        Transform::Month => (format!("{column}_month"), None),
        Transform::Day => (format!("{column}_day"), None),
        Transform::Hour => (format!("{column}_hour"), None),
        Transform::Identity | Transform::Void | Transform::Unknown => (column.to_owned(), None),
    };
    match parameter {
        Some(parameter) if is_taken(&name) => format!("{name}_{parameter}"),
        _ => name,
    }
}

/// Says which types a transform takes.
fn types_of(transform: Transform) -> &'static str {
    match transform {
        Transform::Bucket(_) => "bucket takes whole numbers, decimals, dates, times, texts and bytes.",
        Transform::Truncate(_) => "truncate takes whole numbers, decimals, texts and bytes.",
        Transform::Year | Transform::Month | Transform::Day => {
            "years, months and days take DATE, TIMESTAMP and TIMESTAMP_LTZ."
        }
        Transform::Hour => "hours takes TIMESTAMP and TIMESTAMP_LTZ.",
        Transform::Identity | Transform::Void | Transform::Unknown => {
            "A column that partitions a table has a type without parts."
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use iceberg::spec::{ListType, NestedField, PrimitiveType, Type};

    use super::*;

    fn schema() -> Schema {
        let primitive =
            |id, name: &str, kind| Arc::new(NestedField::optional(id, name, Type::Primitive(kind)));
        let element = NestedField::list_element(9, Type::Primitive(PrimitiveType::Int), false);
        let list = Type::List(ListType { element_field: Arc::new(element) });
        Schema::builder()
            .with_fields([
                primitive(1, "id", PrimitiveType::Long),
                primitive(2, "s", PrimitiveType::String),
                primitive(3, "ts", PrimitiveType::Timestamp),
                primitive(4, "d", PrimitiveType::Double),
                primitive(5, "s_trunc", PrimitiveType::Int),
                Arc::new(NestedField::optional(6, "l", list)),
            ])
            .build()
            .unwrap()
    }

    fn keys(keys: &[&str]) -> Vec<String> {
        keys.iter().map(|key| (*key).to_owned()).collect()
    }

    #[test]
    fn every_transform_comes_back_as_it_was_written() {
        let written = keys(&["s", "bucket(16, id)", "bucket(4, id)", "truncate(3, s)", "hours(ts)"]);
        let spec = partition_spec(&written, &schema()).unwrap();
        let names: Vec<&str> = spec.fields().iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["s", "id_bucket", "id_bucket_4", "s_trunc_3", "ts_hour"]);
        assert_eq!(partition_texts(&spec.bind(schema()).unwrap(), &schema()), written);
        for key in ["years(ts)", "months(ts)", "days(ts)"] {
            let spec = partition_spec(&keys(&[key]), &schema()).unwrap();
            assert_eq!(partition_texts(&spec.bind(schema()).unwrap(), &schema()), [key]);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        let refusal = |key: &str| partition_spec(&keys(&[key]), &schema()).unwrap_err();
        let error = refusal("bucket(4, d)");
        assert_eq!(error.message(), "column 'd' of type DOUBLE cannot partition a table by bucket(4, d)");
        assert!(error.hint_text().is_some());
        assert!(refusal("days(s)").hint_text().unwrap().starts_with("years, months and days take"));
        assert!(refusal("l").message().contains("of type ARRAY<"));
        assert_eq!(
            refusal("bucket(0, id)").message(),
            "bucket takes a number above 0, not '0': bucket(0, id)"
        );
        assert!(refusal("nope").message().contains("'nope' not defined"));
        let twice = partition_spec(&keys(&["days(ts)", "hours(ts)"]), &schema());
        assert!(twice.unwrap_err().message().contains("says nothing new of column"));
    }
}
