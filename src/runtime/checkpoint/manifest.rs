//! The manifest of a checkpoint, the file `_metadata`: what it consists of.
//!
//! It is JSON that a person can read, with a last line that holds the CRC of everything before. Numbers that JSON cannot hold
//! exactly are text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arrow::datatypes::SchemaRef;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};

use super::state_schema::{schema_from_json, schema_to_json};
use crate::connector::{CheckpointId, Committable, SourcePosition};
use crate::error::{Error, ErrorKind, Result};
use crate::state::GROUP_COUNT;

/// The version of the state format: of manifests, segments, and the hash that makes key groups. It grows when an older program
/// would misread what a newer one writes.
pub(super) const STATE_FORMAT: u32 = 1;

/// The name of a manifest's file.
pub(super) const METADATA: &str = "_metadata";

/// Its name while it is written.
pub(super) const METADATA_DRAFT: &str = "_metadata.tmp";

/// What a checkpoint consists of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Manifest {
    /// The version of Lakehead that wrote it.
    pub(crate) product_version: String,
    /// The job's name.
    pub(crate) job_name: String,
    /// The job's number.
    pub(crate) job_id: u128,
    /// The checkpoint's number within the job.
    pub(crate) number: CheckpointId,
    /// When the cut was made, in milliseconds since 1970.
    pub(crate) time_ms: i64,
    /// Whether this is a savepoint, whose segments lie beside the manifest.
    pub(crate) is_savepoint: bool,
    /// The state of each operator.
    pub(crate) operators: Vec<OperatorState>,
    /// Where the rows of state are, oldest first.
    pub(crate) segments: Vec<SegmentEntry>,
    /// How far each source had read, by uid.
    pub(crate) sources: BTreeMap<String, SourcePosition>,
    /// What each sink has prepared, by uid.
    pub(crate) committables: BTreeMap<String, Vec<Committable>>,
    /// What else the job keeps.
    pub(crate) extra: BTreeMap<String, String>,
}

/// The tables of an operator.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OperatorState {
    /// The uid of its node.
    pub(crate) uid: String,
    /// What it is.
    pub(crate) kind: String,
    /// Its tables.
    pub(crate) tables: Vec<TableState>,
}

/// A table of state.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableState {
    /// The name.
    pub(crate) name: String,
    /// The columns, those of the primary key first.
    pub(crate) schema: SchemaRef,
    /// How many columns the primary key has.
    pub(crate) key_count: usize,
    /// The first checkpoint that counts: what older segments hold under this name belonged to a table that was given up.
    pub(crate) since: CheckpointId,
    /// What the rows stand for, if they can be found again (see `StateTable`).
    pub(crate) derived_from: Option<String>,
}

/// A segment file that a checkpoint uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SegmentEntry {
    /// The file's name, in the folder of segments.
    pub(crate) file: String,
    /// Its length.
    pub(crate) bytes: u64,
    /// The CRC of the whole file.
    pub(crate) crc: u32,
    /// The first checkpoint whose changes it holds.
    pub(crate) first: CheckpointId,
    /// The last one.
    pub(crate) last: CheckpointId,
    /// Whether nothing comes before it, so that it holds rows only.
    pub(crate) is_base: bool,
}

/// The name of the folder of segments, beside the folders of checkpoints.
pub(super) const SHARED: &str = "shared";

/// Returns the error of a file that cannot be read.
pub(super) fn cannot_read(path: &Path, error: std::io::Error) -> Error {
    let message = format!("cannot read checkpoint file '{}': {error}", path.display());
    Error::new(ErrorKind::State, message).caused_by(error)
}

/// Returns the error of a file that is not what was written.
pub(super) fn damaged(path: &Path, what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::State, format!("checkpoint file '{}' is damaged: {what}", path.display()))
}

/// Returns the error of a file of a newer version.
pub(super) fn too_new(path: &Path, format: u32) -> Error {
    let message = format!(
        "checkpoint file '{}' has state format {format}, this version reads up to {STATE_FORMAT}",
        path.display()
    );
    Error::new(ErrorKind::State, message).hint("Use the version of Lakehead that wrote it, or a newer one.")
}

impl Manifest {
    /// Reads the manifest in a checkpoint's folder.
    ///
    /// # Errors
    /// The file is missing, damaged, or of a newer version.
    pub(super) fn read(folder: &Path) -> Result<Manifest> {
        let path = folder.join(METADATA);
        let bytes = std::fs::read(&path).map_err(|error| cannot_read(&path, error))?;
        Manifest::from_bytes(&bytes, &path)
    }

    /// Returns the folder of the segments of a checkpoint that lies in `folder`.
    pub(super) fn segment_folder(&self, folder: &Path) -> PathBuf {
        match (folder.file_name(), folder.parent()) {
            _ if self.is_savepoint => folder.to_owned(),
            (Some(_), Some(job)) => job.join(SHARED),
            _ => folder.join("..").join(SHARED),
        }
    }

    /// Returns what is known of a table.
    pub(crate) fn table(&self, operator: &str, table: &str) -> Option<&TableState> {
        let operator = self.operators.iter().find(|state| state.uid == operator)?;
        operator.tables.iter().find(|state| state.name == table)
    }

    /// Writes the text of the file.
    ///
    /// # Errors
    /// A table has a type that state cannot have.
    pub(super) fn to_text(&self) -> Result<String> {
        let operators = self.operators.iter().map(operator_to_json).collect::<Result<Vec<_>>>()?;
        let committables: BTreeMap<&String, Vec<String>> = self
            .committables
            .iter()
            .map(|(sink, committables)| {
                (sink, committables.iter().map(|one| BASE64.encode(&one.0)).collect())
            })
            .collect();
        let segments: Vec<Value> = self.segments.iter().map(segment_to_json).collect();
        let manifest = json!({
            "state_format": STATE_FORMAT,
            "product_version": self.product_version,
            "job_name": self.job_name,
            "job_id": format!("{:032x}", self.job_id),
            "checkpoint": self.number,
            "time_ms": self.time_ms,
            "is_savepoint": self.is_savepoint,
            "key_groups": GROUP_COUNT,
            "operators": operators,
            "segments": segments,
            "sources": self.sources,
            "committables": committables,
            "extra": self.extra,
        });
        let text = format!("{manifest:#}\n");
        let crc = crc_line(text.as_bytes());
        Ok(text + &crc)
    }

    /// Reads the bytes of a file; `path` is for errors.
    ///
    /// # Errors
    /// The file is damaged, or of a newer version.
    pub(super) fn from_bytes(bytes: &[u8], path: &Path) -> Result<Manifest> {
        let body = bytes
            .len()
            .checked_sub(CRC_LINE)
            .map(|length| &bytes[..length])
            .filter(|body| crc_line(body).as_bytes() == &bytes[body.len()..])
            .ok_or_else(|| damaged(path, "its content does not fit the checksum in its last line"))?;
        let json: Value = serde_json::from_slice(body).map_err(|error| damaged(path, error))?;
        let format = json["state_format"].as_u64().and_then(|format| u32::try_from(format).ok());
        match format {
            Some(format) if format > STATE_FORMAT => return Err(too_new(path, format)),
            Some(_) => {}
            None => return Err(damaged(path, "'state_format' is missing")),
        }
        Fields { json: &json, path }.manifest()
    }
}

/// How long the last line is.
const CRC_LINE: usize = "crc32 00000000\n".len();

fn crc_line(body: &[u8]) -> String {
    format!("crc32 {:08x}\n", crc32fast::hash(body))
}

fn operator_to_json(operator: &OperatorState) -> Result<Value> {
    let tables = operator
        .tables
        .iter()
        .map(|table| {
            let mut described = json!({
                "name": table.name,
                "since": table.since,
                "key_count": table.key_count,
                "columns": schema_to_json(&table.schema)?,
            });
            if let Some(derived_from) = &table.derived_from {
                described["derived_from"] = json!(derived_from);
            }
            Ok(described)
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(json!({ "uid": operator.uid, "kind": operator.kind, "tables": tables }))
}

fn segment_to_json(segment: &SegmentEntry) -> Value {
    json!({
        "file": segment.file,
        "kind": if segment.is_base { "base" } else { "delta" },
        "first": segment.first,
        "last": segment.last,
        "bytes": segment.bytes,
        "crc32": format!("{:08x}", segment.crc),
    })
}

/// Reads the fields of a JSON object, and says which one is wrong.
struct Fields<'a> {
    json: &'a Value,
    path: &'a Path,
}

impl<'a> Fields<'a> {
    fn wrong(&self, name: &str) -> Error {
        damaged(self.path, format!("'{name}' is missing or wrong"))
    }

    fn of(&self, json: &'a Value) -> Fields<'a> {
        Fields { json, path: self.path }
    }

    fn text(&self, name: &str) -> Result<String> {
        self.json[name].as_str().map(str::to_owned).ok_or_else(|| self.wrong(name))
    }

    fn number(&self, name: &str) -> Result<u64> {
        self.json[name].as_u64().ok_or_else(|| self.wrong(name))
    }

    fn list(&self, name: &str) -> Result<impl Iterator<Item = Fields<'a>>> {
        let list = self.json[name].as_array().ok_or_else(|| self.wrong(name))?;
        let path = self.path;
        Ok(list.iter().map(move |json| Fields { json, path }))
    }

    fn object(&self, name: &str) -> Result<&'a Map<String, Value>> {
        self.json[name].as_object().ok_or_else(|| self.wrong(name))
    }

    /// Reads an object whose values are texts.
    fn texts(&self, name: &str) -> Result<BTreeMap<String, String>> {
        let texts = self.object(name)?.iter();
        texts
            .map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect::<Option<_>>()
            .ok_or_else(|| self.wrong(name))
    }

    fn manifest(&self) -> Result<Manifest> {
        if self.number("key_groups")? != GROUP_COUNT as u64 {
            return Err(self.wrong("key_groups"));
        }
        let job_id = self.text("job_id")?;
        Ok(Manifest {
            product_version: self.text("product_version")?,
            job_name: self.text("job_name")?,
            job_id: u128::from_str_radix(&job_id, 16).map_err(|_| self.wrong("job_id"))?,
            number: self.number("checkpoint")?,
            time_ms: self.json["time_ms"].as_i64().ok_or_else(|| self.wrong("time_ms"))?,
            is_savepoint: self.json["is_savepoint"].as_bool().ok_or_else(|| self.wrong("is_savepoint"))?,
            operators: self.list("operators")?.map(|operator| operator.operator()).collect::<Result<_>>()?,
            segments: self.list("segments")?.map(|segment| segment.segment()).collect::<Result<_>>()?,
            sources: self.sources()?,
            committables: self.committables()?,
            extra: self.texts("extra")?,
        })
    }

    fn sources(&self) -> Result<BTreeMap<String, SourcePosition>> {
        let sources = self.object("sources")?;
        let of = self.of(&self.json["sources"]);
        sources.keys().map(|uid| Ok((uid.clone(), of.texts(uid)?))).collect()
    }

    fn committables(&self) -> Result<BTreeMap<String, Vec<Committable>>> {
        let wrong = || self.wrong("committables");
        let decode = |text: &Value| {
            let bytes = text.as_str().and_then(|text| BASE64.decode(text).ok());
            bytes.map(Committable).ok_or_else(wrong)
        };
        let sinks = self.object("committables")?.iter();
        sinks
            .map(|(uid, texts)| {
                let texts = texts.as_array().ok_or_else(wrong)?;
                Ok((uid.clone(), texts.iter().map(decode).collect::<Result<_>>()?))
            })
            .collect()
    }

    fn operator(&self) -> Result<OperatorState> {
        Ok(OperatorState {
            uid: self.text("uid")?,
            kind: self.text("kind")?,
            tables: self.list("tables")?.map(|table| table.table()).collect::<Result<_>>()?,
        })
    }

    fn table(&self) -> Result<TableState> {
        Ok(TableState {
            name: self.text("name")?,
            schema: schema_from_json(&self.json["columns"])
                .map_err(|error| damaged(self.path, error.message()))?,
            key_count: self.number("key_count")? as usize,
            since: self.number("since")?,
            derived_from: match &self.json["derived_from"] {
                Value::Null => None,
                _ => Some(self.text("derived_from")?),
            },
        })
    }

    fn segment(&self) -> Result<SegmentEntry> {
        let file = self.text("file")?;
        let is_name = Path::new(&file).file_name().is_some_and(|name| name == file.as_str());
        if !is_name {
            return Err(self.wrong("file"));
        }
        let crc = self.text("crc32")?;
        Ok(SegmentEntry {
            file,
            bytes: self.number("bytes")?,
            crc: u32::from_str_radix(&crc, 16).map_err(|_| self.wrong("crc32"))?,
            first: self.number("first")?,
            last: self.number("last")?,
            is_base: self.text("kind")? == "base",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{DataType, Field, Schema};
    use std::sync::Arc;

    fn manifest() -> Manifest {
        Manifest {
            product_version: "0.1.0".to_owned(),
            job_name: "insert \"x\" ü".to_owned(),
            job_id: u128::MAX - 5,
            number: 7,
            time_ms: -1,
            is_savepoint: false,
            operators: vec![OperatorState {
                uid: "agg".to_owned(),
                kind: "GroupAggregate".to_owned(),
                tables: vec![TableState {
                    name: "groups".to_owned(),
                    schema: Arc::new(Schema::new(vec![Field::new("k", DataType::Int64, false)])),
                    key_count: 1,
                    since: 2,
                    derived_from: Some("k BIGINT".to_owned()),
                }],
            }],
            segments: vec![SegmentEntry {
                file: "rows-2-7.seg".to_owned(),
                bytes: 1 << 40,
                crc: 0xff,
                first: 2,
                last: 7,
                is_base: true,
            }],
            sources: BTreeMap::from([(
                "src".to_owned(),
                BTreeMap::from([("f".to_owned(), "12".to_owned())]),
            )]),
            committables: BTreeMap::from([("sink".to_owned(), vec![Committable(vec![0, 255, 10])])]),
            extra: BTreeMap::from([("watermark".to_owned(), "5".to_owned())]),
        }
    }

    #[test]
    fn a_manifest_comes_back() {
        let text = manifest().to_text().unwrap();
        assert_eq!(Manifest::from_bytes(text.as_bytes(), Path::new("m")).unwrap(), manifest());
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let text = manifest().to_text().unwrap().into_bytes();
        for bit in 0..text.len() * 8 {
            let mut flipped = text.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let error = Manifest::from_bytes(&flipped, Path::new("/x/chk-7/_metadata")).unwrap_err();
            assert!(error.message().starts_with("checkpoint file '/x/chk-7/_metadata' is damaged"));
        }
    }

    #[test]
    fn a_version_from_the_future_is_refused() {
        let text = manifest().to_text().unwrap().replace("\"state_format\": 1", "\"state_format\": 2");
        let body = &text[..text.len() - CRC_LINE];
        let text = format!("{body}{}", crc_line(body.as_bytes()));
        let error = Manifest::from_bytes(text.as_bytes(), Path::new("m")).unwrap_err();
        assert_eq!(error.message(), "checkpoint file 'm' has state format 2, this version reads up to 1");
    }

    #[test]
    fn a_segment_cannot_lie_elsewhere() {
        for file in ["../x", "a/b", "/etc/x", "..", ""] {
            let mut wrong = manifest();
            wrong.segments[0].file = file.to_owned();
            let text = wrong.to_text().unwrap();
            assert!(Manifest::from_bytes(text.as_bytes(), Path::new("m")).is_err(), "{file}");
        }
    }
}
