//! Manifests that the crate refuses, or misreads, although they are well-formed.
//!
//! In format 1 a partition field that was dropped stays as a field `void` under its old name, and the crate takes that name only from
//! `identity`. What a manifest says of transforms is not used here (the table's metadata says it too), so such fields are read as
//! `identity`. And a partition field may have any name, which Avro allows no field: Java and Python write another in the schema of the
//! rows, and the crate looks for the name in the spec: it finds nothing, and the partition of every file is NULL to it.

use serde_json::Value;

use crate::connector::iceberg::partition::avro_name;

/// What an Avro file begins with.
const MAGIC: &[u8] = b"Obj\x01";

/// The entry of the header that tells the partition fields.
const PARTITION_SPEC: &[u8] = b"partition-spec";

/// The entry of the header that tells what rows are.
const SCHEMA: &[u8] = b"avro.schema";

/// The id of the field with the partition, in the schema of rows.
const PARTITION_ID: i64 = 102;

/// Returns a manifest whose header the crate can read; None if nothing in it is in the way, or if it is no Avro file.
pub(super) fn with_plain_header(bytes: &[u8]) -> Option<Vec<u8>> {
    with_header(bytes, |key, value| match key {
        PARTITION_SPEC => plain_fields(value),
        SCHEMA => plain_partition(value),
        _ => {}
    })
}

/// Returns an Avro file with another header; `change` gets the entries that are JSON. None if it changes nothing.
fn with_header(bytes: &[u8], change: impl Fn(&[u8], &mut Value)) -> Option<Vec<u8>> {
    let mut rest = bytes.strip_prefix(MAGIC)?;
    let mut entries: Vec<(&[u8], Vec<u8>)> = Vec::new();
    let mut is_changed = false;
    loop {
        let mut count = take_long(&mut rest)?;
        if count == 0 {
            break;
        }
        if count < 0 {
            // The block's size in bytes stands behind a negative count.
            take_long(&mut rest)?;
            count = -count;
        }
        for _ in 0..count {
            let (key, value) = (take_bytes(&mut rest)?, take_bytes(&mut rest)?);
            let changed = changed_json(value, |json| change(key, json));
            is_changed |= changed.is_some();
            entries.push((key, changed.unwrap_or_else(|| value.to_vec())));
        }
    }
    if !is_changed {
        return None;
    }
    let mut out = MAGIC.to_vec();
    put_long(&mut out, i64::try_from(entries.len()).ok()?);
    for (key, value) in entries {
        put_bytes(&mut out, key)?;
        put_bytes(&mut out, &value)?;
    }
    put_long(&mut out, 0);
    out.extend_from_slice(rest);
    Some(out)
}

/// Returns a JSON value as `change` leaves it; None if it changes nothing.
fn changed_json(json: &[u8], change: impl Fn(&mut Value)) -> Option<Vec<u8>> {
    let before: Value = serde_json::from_slice(json).ok()?;
    let mut after = before.clone();
    change(&mut after);
    (after != before).then(|| serde_json::to_vec(&after).ok()).flatten()
}

/// Makes the fields of a spec plain.
fn plain_fields(spec: &mut Value) {
    for field in spec.as_array_mut().into_iter().flatten() {
        if field.get("transform").is_some_and(|transform| transform == "void") {
            field["transform"] = Value::from("identity");
        }
        give_plain_name(field);
    }
}

/// Makes the names of the partition's fields plain, wherever in a schema it stands.
fn plain_partition(schema: &mut Value) {
    match schema {
        Value::Object(entries) => {
            if entries.get("field-id").and_then(Value::as_i64) == Some(PARTITION_ID) {
                let fields = entries.get_mut("type").and_then(|partition| partition.get_mut("fields"));
                fields.and_then(Value::as_array_mut).into_iter().flatten().for_each(give_plain_name);
            }
            entries.values_mut().for_each(plain_partition);
        }
        Value::Array(items) => items.iter_mut().for_each(plain_partition),
        _ => {}
    }
}

fn give_plain_name(field: &mut Value) {
    if let Some(name) = field.get("name").and_then(Value::as_str) {
        field["name"] = Value::from(avro_name(name).into_owned());
    }
}

/// Takes a number in Avro's variable length.
fn take_long(rest: &mut &[u8]) -> Option<i64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        number |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed());
        }
    }
    None
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_long(rest)?).ok()?;
    let (bytes, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(bytes)
}

fn put_long(out: &mut Vec<u8>, number: i64) {
    let mut number = ((number << 1) ^ (number >> 63)).cast_unsigned();
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) -> Option<()> {
    put_long(out, i64::try_from(bytes.len()).ok()?);
    out.extend_from_slice(bytes);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connector::iceberg::manifest::testing::manifests;

    fn file(spec: &str) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put_long(&mut out, -1);
        put_long(&mut out, 99);
        for (key, value) in [(&b"schema"[..], &b"{}"[..]), (PARTITION_SPEC, spec.as_bytes())] {
            if key != b"schema" {
                put_long(&mut out, 1);
            }
            put_bytes(&mut out, key).unwrap();
            put_bytes(&mut out, value).unwrap();
        }
        put_long(&mut out, 0);
        out.extend_from_slice(b"sync and rows");
        out
    }

    #[test]
    fn only_void_fields_are_changed() {
        let fields = |transform: &str| {
            format!(r#"[{{"name":"a","transform":"{transform}"}},{{"name":"b","transform":"bucket[3]"}}]"#)
        };
        let changed = with_plain_header(&file(&fields("void"))).unwrap();
        let text = String::from_utf8_lossy(&changed).into_owned();
        assert!(text.contains(&fields("identity")) && text.ends_with("sync and rows"), "{text}");
        let named = |name: &str| format!(r#"[{{"name":"{name}","transform":"day"}}]"#);
        let changed = with_plain_header(&file(&named("a b"))).unwrap();
        assert!(String::from_utf8_lossy(&changed).contains(&named("a_x20b")));
        assert_eq!(with_plain_header(&file(&fields("day"))), None);
        assert_eq!(with_plain_header(b"Obj\x01\x02"), None);
        assert_eq!(with_plain_header(b"no Avro"), None);
    }

    #[test]
    fn a_manifest_with_a_dropped_field_is_read() {
        let mut changed = 0;
        for bytes in manifests("v1") {
            if let Some(bytes) = with_plain_header(&bytes) {
                changed += 1;
                iceberg::spec::Manifest::parse_avro(&bytes).unwrap();
            }
        }
        assert!(changed > 0);
    }

    #[test]
    fn a_partition_field_whose_name_avro_does_not_take_has_its_values() {
        let bytes = manifests("identity").remove(0);
        // As PyIceberg and Java write it: the spec has the name, and the schema of rows what it makes of it.
        let renamed = with_header(&bytes, |key, value| match key {
            PARTITION_SPEC => value[0]["name"] = "p x".into(),
            SCHEMA => rename_first(value),
            _ => {}
        });
        let renamed = renamed.unwrap();
        let partitions = |bytes: &[u8]| -> Vec<iceberg::spec::Struct> {
            let manifest = iceberg::spec::Manifest::parse_avro(bytes).unwrap();
            manifest.entries().iter().map(|entry| entry.data_file().partition().clone()).collect()
        };
        let expected = partitions(&bytes);
        assert!(expected.iter().any(|partition| partition[0].is_some()), "{expected:?}");
        assert_eq!(partitions(&with_plain_header(&renamed).unwrap()), expected);
        assert!(
            partitions(&renamed).iter().all(|partition| partition[0].is_none()),
            "the crate reads them now"
        );
    }

    fn rename_first(schema: &mut Value) {
        match schema {
            Value::Object(entries) => {
                if entries.get("field-id").and_then(Value::as_i64) == Some(PARTITION_ID) {
                    entries["type"]["fields"][0]["name"] = "p_x20x".into();
                }
                entries.values_mut().for_each(rename_first);
            }
            Value::Array(items) => items.iter_mut().for_each(rename_first),
            _ => {}
        }
    }

    #[test]
    fn numbers_are_read_as_written() {
        for number in [0, 1, -1, 63, 64, -65, 8191, i64::MAX, i64::MIN] {
            let mut bytes = Vec::new();
            put_long(&mut bytes, number);
            assert_eq!(take_long(&mut bytes.as_slice()), Some(number));
        }
    }
}
