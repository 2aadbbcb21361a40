//! What makes metadata unusable, found in its JSON: the crate's own errors name neither the column nor the type that it does not know,
//! or print a whole schema.

use std::collections::BTreeSet;

use iceberg::spec::{PrimitiveType, TableMetadata, Transform};
use serde_json::Value;

/// Why metadata that was not understood cannot be used.
#[derive(Debug, PartialEq)]
pub(super) enum Reason {
    /// A newer Iceberg has made it: it is in order, but not for us.
    Unsupported(String),
    /// It contradicts itself.
    Damaged(String),
}

/// Finds the reason; None if it is none of those that can be told better than the crate does.
pub(super) fn reason(metadata: &Value) -> Option<Reason> {
    let schemas = || list(metadata, "schemas").chain(metadata.get("schema"));
    let mut ids = BTreeSet::new();
    for schema in schemas() {
        if let Some(reason) = type_reason(schema, "", &mut ids) {
            return Some(Reason::Unsupported(reason));
        }
    }
    let of_specs = list(metadata, "partition-specs").flat_map(|spec| list(spec, "fields"));
    let partitions = of_specs.chain(list(metadata, "partition-spec")).map(|field| ("partition", field));
    let of_orders = list(metadata, "sort-orders").flat_map(|order| list(order, "fields"));
    let fields: Vec<(&str, &Value)> = partitions.chain(of_orders.map(|field| ("sort", field))).collect();
    let named = |kind: &str, field: &Value| {
        let column = field.get("source-id").and_then(Value::as_i64);
        let column = column.map(|id| match schemas().find_map(|schema| column_name(schema, id)) {
            Some(name) => format!("column '{name}'"),
            None => format!("column {id}"),
        });
        let column = column.unwrap_or_else(|| "no column".to_owned());
        match field.get("name").and_then(Value::as_str) {
            Some(name) => format!("{kind} field '{name}' of {column}"),
            None => format!("a {kind} field of {column}"),
        }
    };
    for (kind, field) in &fields {
        if let Some(transform) = field.get("transform").and_then(Value::as_str)
            && transform.parse::<Transform>().is_err()
        {
            let named = named(kind, field);
            return Some(Reason::Unsupported(format!(
                "the transform '{transform}' of {named} is not supported"
            )));
        }
    }
    let lost = fields.iter().find(|(_, field)| {
        field.get("source-id").and_then(Value::as_i64).is_some_and(|id| !ids.contains(&id))
    });
    if let Some((kind, field)) = lost {
        return Some(Reason::Damaged(format!("{}: no schema has that column", named(kind, field))));
    }
    let has_no_id = |(kind, field): &&(&str, &Value)| *kind == "partition" && field.get("field-id").is_none();
    if let Some((kind, field)) = fields.iter().find(has_no_id) {
        let named = named(kind, field);
        return Some(Reason::Unsupported(format!("{named} has no field id, as in old tables of version 1")));
    }
    missing_key(metadata).map(Reason::Damaged)
}

/// Keys that metadata of each format version must have; of several behind a bar one is enough.
const REQUIRED: [&[&str]; 3] = [
    &["location", "last-updated-ms", "last-column-id", "schema|schemas", "partition-spec|partition-specs"],
    &[
        "location",
        "table-uuid",
        "last-updated-ms",
        "last-column-id",
        "last-sequence-number",
        "schemas",
        "current-schema-id",
        "partition-specs",
        "default-spec-id",
        "last-partition-id",
        "sort-orders",
        "default-sort-order-id",
    ],
    &["next-row-id"],
];

/// Finds a key that the format's version requires, or a UUID that is none.
fn missing_key(metadata: &Value) -> Option<String> {
    let required: Vec<&str> = match metadata.get("format-version").and_then(Value::as_u64) {
        None => return Some("it has no 'format-version'".to_owned()),
        Some(1) => REQUIRED[0].to_vec(),
        Some(2) => REQUIRED[1].to_vec(),
        Some(_) => REQUIRED[1..].concat(),
    };
    let is_there = |keys: &&&str| keys.split('|').any(|key| metadata.get(key).is_some());
    if let Some(missing) = required.iter().find(|keys| !is_there(keys)) {
        return Some(format!("it has no '{}'", missing.replace('|', "' or '")));
    }
    let uuid = metadata.get("table-uuid").and_then(Value::as_str)?;
    uuid::Uuid::parse_str(uuid).is_err().then(|| format!("its 'table-uuid' is '{uuid}', which is no UUID"))
}

/// Finds a bucket or truncate without a width, which the crate takes and divides by.
pub(super) fn width_reason(metadata: &TableMetadata) -> Option<String> {
    let partitions = metadata.partition_specs_iter().flat_map(|spec| spec.fields().iter());
    let partitions = partitions.map(|field| (format!("partition field '{}'", field.name), field.transform));
    let orders = metadata.sort_orders_iter().flat_map(|order| order.fields.iter());
    let orders =
        orders.map(|field| (format!("the sort field of column {}", field.source_id), field.transform));
    let mut fields = partitions.chain(orders);
    fields.find(|(_, transform)| matches!(transform, Transform::Bucket(0) | Transform::Truncate(0))).map(
        |(field, transform)| format!("{field} has the transform '{transform}', whose number must be above 0"),
    )
}

/// Returns the entries of a list in an object; nothing if there is no list.
fn list<'a>(object: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    object.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// Finds a type that is not known in a structure, and collects the ids of its fields.
fn type_reason(structure: &Value, prefix: &str, ids: &mut BTreeSet<i64>) -> Option<String> {
    list(structure, "fields").find_map(|field| {
        ids.extend(field.get("id").and_then(Value::as_i64));
        let name = field.get("name").and_then(Value::as_str).unwrap_or("?");
        unknown_type(field.get("type")?, &format!("{prefix}{name}"), ids)
    })
}

fn unknown_type(of: &Value, column: &str, ids: &mut BTreeSet<i64>) -> Option<String> {
    if let Some(text) = of.as_str() {
        let known = serde_json::from_value::<PrimitiveType>(of.clone()).is_ok();
        return (!known).then(|| format!("the type '{text}' of column '{column}' is not supported"));
    }
    let parts = [("element", "element-id"), ("key", "key-id"), ("value", "value-id")];
    let within = parts.iter().find_map(|(part, id)| {
        ids.extend(of.get(id).and_then(Value::as_i64));
        unknown_type(of.get(part)?, &format!("{column}.{part}"), ids)
    });
    within.or_else(|| type_reason(of, &format!("{column}."), ids))
}

/// Returns the name of a column of the topmost level.
fn column_name(schema: &Value, id: i64) -> Option<&str> {
    let field = list(schema, "fields").find(|field| field.get("id").and_then(Value::as_i64) == Some(id))?;
    field.get("name")?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(field: &Value, partition: &Value) -> Value {
        json!({
            "format-version": 2, "location": "file:/t", "table-uuid": "fb072c92-a02b-11e9-ae9c-1bb7bc9eca94",
            "last-updated-ms": 0, "last-column-id": 2, "last-sequence-number": 0, "current-schema-id": 0,
            "default-spec-id": 0, "last-partition-id": 1000, "sort-orders": [], "default-sort-order-id": 0,
            "schemas": [{"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long"}, field]}],
            "partition-specs": [{"spec-id": 0, "fields": [partition]}],
        })
    }

    fn by_type(of: &Value) -> Option<Reason> {
        let field = json!({"id": 2, "name": "v", "type": of});
        reason(&with(
            &field,
            &json!({"source-id": 1, "field-id": 1000, "name": "p", "transform": "identity"}),
        ))
    }

    fn unsupported(text: &str) -> Option<Reason> {
        Some(Reason::Unsupported(text.to_owned()))
    }

    #[test]
    fn a_type_that_is_not_known_is_named_with_its_column() {
        for known in ["long", "timestamp_ns", "decimal(9, 2)", "fixed[3]", "uuid"] {
            assert_eq!(by_type(&json!(known)), None, "{known}");
        }
        for unknown in ["variant", "geometry", "unknown", "geography(srid:1)"] {
            let text = format!("the type '{unknown}' of column 'v' is not supported");
            assert_eq!(by_type(&json!(unknown)), unsupported(&text));
        }
        let list = json!({"type": "list", "element-id": 3, "element": {"type": "struct", "fields": [
            {"id": 4, "name": "x", "type": "variant"}]}});
        assert_eq!(
            by_type(&list),
            unsupported("the type 'variant' of column 'v.element.x' is not supported")
        );
    }

    #[test]
    fn a_transform_that_is_not_known_is_named_with_its_field_and_column() {
        let field = json!({"id": 2, "name": "v", "type": "int"});
        let by = |source: i64, transform: &str| {
            reason(&with(
                &field,
                &json!({"source-id": source, "field-id": 1000, "name": "p", "transform": transform}),
            ))
        };
        assert_eq!(by(2, "bucket[4]"), None);
        for transform in ["foo", "zorder[3]", "bucket[x]"] {
            let text =
                format!("the transform '{transform}' of partition field 'p' of column 'v' is not supported");
            assert_eq!(by(2, transform), unsupported(&text));
        }
        assert_eq!(
            by(77, "identity"),
            Some(Reason::Damaged("partition field 'p' of column 77: no schema has that column".to_owned()))
        );
    }

    #[test]
    fn a_key_that_the_version_requires_is_named() {
        let partition = json!({"source-id": 1, "field-id": 1000, "name": "p", "transform": "identity"});
        let whole = with(&json!({"id": 2, "name": "v", "type": "int"}), &partition);
        let damaged = |text: &str| Some(Reason::Damaged(text.to_owned()));
        for key in ["last-column-id", "table-uuid", "sort-orders", "format-version"] {
            let mut metadata = whole.clone();
            metadata.as_object_mut().unwrap().remove(key);
            assert_eq!(reason(&metadata), damaged(&format!("it has no '{key}'")));
        }
        let mut metadata = whole.clone();
        metadata["table-uuid"] = json!("x");
        assert_eq!(reason(&metadata), damaged("its 'table-uuid' is 'x', which is no UUID"));
        metadata = whole.clone();
        metadata["format-version"] = json!(3);
        assert_eq!(reason(&metadata), damaged("it has no 'next-row-id'"));
        let old =
            json!({"format-version": 1, "location": "file:/t", "last-updated-ms": 0, "last-column-id": 1});
        assert_eq!(reason(&old), damaged("it has no 'schema' or 'schemas'"));
        let numberless = json!({"source-id": 1, "name": "p", "transform": "identity"});
        let by_name = "partition field 'p' of column 'a' has no field id, as in old tables of version 1";
        assert_eq!(
            reason(&with(&json!({"id": 2, "name": "v", "type": "int"}), &numberless)),
            unsupported(by_name)
        );
    }
}
