//! Names that Avro allows: manifests keep a partition as a record, whose fields are named like the fields of the spec, and those may
//! have any name.

use std::borrow::Cow;
use std::fmt::Write;

use iceberg::spec::PartitionSpec;
use serde_json::Value;

/// Returns the name in Avro of a partition field: what is neither a letter of ASCII, a digit nor `_` becomes `_x` and its code, as in
/// Java, which leaves letters of other alphabets as they are; not every reader takes those.
pub(in crate::connector::iceberg) fn avro_name(name: &str) -> Cow<'_, str> {
    let is_plain = |(at, character): (usize, char)| {
        character == '_' || character.is_ascii_alphabetic() || (at > 0 && character.is_ascii_digit())
    };
    if name.char_indices().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let mut plain = String::with_capacity(name.len() + 4);
    for (at, character) in name.char_indices() {
        if is_plain((at, character)) {
            plain.push(character);
        } else if character.is_ascii_digit() {
            plain.push('_');
            plain.push(character);
        } else {
            // Writing to a String cannot fail.
            let _ = write!(plain, "_x{:X}", u32::from(character));
        }
    }
    Cow::Owned(plain)
}

/// Returns a spec as manifests have it.
///
/// # Errors
/// The spec has no JSON form, which the crate rules out.
pub(in crate::connector::iceberg) fn avro_spec(spec: &PartitionSpec) -> iceberg::Result<PartitionSpec> {
    if spec.fields().iter().all(|field| avro_name(&field.name) == field.name) {
        return Ok(spec.clone());
    }
    let mut json = serde_json::to_value(spec)?;
    for field in json.get_mut("fields").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(name) = field.get("name").and_then(Value::as_str) {
            field["name"] = Value::from(avro_name(name).into_owned());
        }
    }
    Ok(serde_json::from_value(json)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_changed_as_java_does() {
        for (name, plain) in [
            ("day", "day"),
            ("_a1", "_a1"),
            ("a b", "a_x20b"),
            ("1x", "_1x"),
            ("a.b-c", "a_x2Eb_x2Dc"),
            ("ä日", "_xE4_x65E5"),
            ("%", "_x25"),
        ] {
            assert_eq!(avro_name(name), plain);
            assert_eq!(avro_name(plain), plain, "once is enough");
        }
    }
}
