//! The reading side: one reader finds the frames of all files, decoders take them apart.

use std::sync::Arc;

use super::FileTable;
use super::decoder::{ColumnOrigin, FileDecoder, FileProperty, OutputColumn};
use super::listing;
use super::reader::{FRAME_BYTES, FileReader};
use crate::changelog::ChangelogMode;
use crate::connector::{
    Boundedness, DynamicTableSource, FrameDecoder, MetadataColumn, Projection, SourcePosition, SourceReader,
};
use crate::error::{Error, Result};
use crate::format::DecodingFormat;
use crate::schema::Column;

/// A table of files to read.
#[derive(Debug)]
pub(super) struct FilesystemSource {
    table: Arc<FileTable>,
    physical: Vec<Column>,
    in_file: Vec<Column>,
    format: Box<dyn DecodingFormat>,
    /// How long frames are; tests make them short.
    pub(super) frame_bytes: usize,
}

impl FilesystemSource {
    pub(super) fn new(
        table: FileTable,
        physical: Vec<Column>,
        in_file: Vec<Column>,
        format: Box<dyn DecodingFormat>,
    ) -> FilesystemSource {
        FilesystemSource { table: Arc::new(table), physical, in_file, format, frame_bytes: FRAME_BYTES }
    }
}

impl DynamicTableSource for FilesystemSource {
    fn summary(&self) -> String {
        "Filesystem".to_owned()
    }

    fn changelog_mode(&self) -> ChangelogMode {
        self.format.changelog_mode()
    }

    fn boundedness(&self) -> Boundedness {
        if self.table.monitor_interval.is_some() { Boundedness::Unbounded } else { Boundedness::Bounded }
    }

    fn metadata_columns(&self) -> Vec<MetadataColumn> {
        let properties = FileProperty::all().into_iter();
        // A row may be taken back in another file.
        let column = |(key, _, data_type)| MetadataColumn { key, data_type, is_of_change: true };
        let mut columns: Vec<MetadataColumn> = properties.map(column).collect();
        columns.extend(self.format.metadata_columns());
        columns
    }

    fn estimated_bytes(&self) -> Option<u64> {
        listing::list(&self.table).ok().map(|files| files.iter().map(|file| file.size).sum())
    }

    fn open(&self, _: &Projection, start: Option<&SourcePosition>) -> Result<Box<dyn SourceReader>> {
        let reader =
            FileReader::new(Arc::clone(&self.table), self.format.framing(), self.frame_bytes, start)?;
        Ok(Box::new(reader))
    }

    fn decoder(&self, projection: &Projection) -> Result<Box<dyn FrameDecoder>> {
        let mut in_file = Vec::new();
        let mut columns = Vec::new();
        for at in &projection.physical {
            let column = self
                .physical
                .get(*at)
                .ok_or_else(|| Error::internal(format!("there is no physical column {at}")))?;
            let key = self.table.partition_keys.iter().position(|key| key.name == column.name);
            let origin = match key {
                Some(key) => ColumnOrigin::Partition(key),
                None => {
                    in_file.extend(self.in_file.iter().position(|other| other.name == column.name));
                    ColumnOrigin::File(in_file.len() - 1)
                }
            };
            columns.push(OutputColumn {
                name: column.name.clone(),
                data_type: column.data_type.clone(),
                origin,
            });
        }
        let of_format = self.format.metadata_columns();
        let mut of_records = Vec::new();
        for wanted in &projection.metadata {
            let property = FileProperty::all().into_iter().find(|(key, ..)| key == wanted);
            let (key, data_type, origin) = match property {
                Some((key, property, data_type)) => (key, data_type, ColumnOrigin::Metadata(property)),
                None => {
                    let column =
                        of_format.iter().find(|column| column.key == wanted).cloned().ok_or_else(|| {
                            Error::internal(format!("there is no metadata column '{wanted}'"))
                        })?;
                    of_records.push(column.key);
                    let at = in_file.len() + of_records.len() - 1;
                    (column.key, column.data_type, ColumnOrigin::File(at))
                }
            };
            columns.push(OutputColumn { name: key.to_owned(), data_type, origin });
        }
        let records = self.format.decoder(&in_file, &of_records);
        Ok(Box::new(FileDecoder::new(Arc::clone(&self.table), records, columns)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::path::Path;

    use super::super::Filesystem;
    use super::*;
    use crate::connector::testing::{self, block_on, read_all};
    use crate::connector::{Frame, SourceEvent, TableFactory};
    use crate::format::testing::cells;
    use crate::schema::TypeRoot;
    use proptest::prelude::*;

    fn columns() -> Vec<Column> {
        vec![
            Column::physical("id", TypeRoot::Int.nullable()),
            Column::physical("name", TypeRoot::STRING.nullable()),
            Column::physical("day", TypeRoot::Date.nullable()),
        ]
    }

    fn table(path: &Path, partition_keys: &[&str], more: &[(&str, &str)]) -> testing::Table {
        let path = path.to_str().unwrap();
        let entries = [&[("path", path), ("format", "csv")], more].concat();
        let mut table = testing::Table::new("filesystem", columns(), &entries);
        table.partition_keys = partition_keys.iter().map(|key| (*key).to_owned()).collect();
        table
    }

    fn source(path: &Path, partition_keys: &[&str], more: &[(&str, &str)]) -> Arc<dyn DynamicTableSource> {
        Filesystem.create_source(&table(path, partition_keys, more).context()).unwrap()
    }

    fn decode(
        source: &dyn DynamicTableSource,
        frames: &[Frame],
        physical: &[usize],
        metadata: &[&str],
    ) -> Result<Vec<String>> {
        let metadata = metadata.iter().map(|key| (*key).to_owned()).collect();
        let mut decoder = source.decoder(&Projection { physical: physical.to_vec(), metadata })?;
        let mut rows = Vec::new();
        for frame in frames {
            rows.extend(decoder.decode(frame)?.iter().flat_map(cells));
        }
        Ok(rows)
    }

    fn rows(source: &dyn DynamicTableSource, physical: &[usize], metadata: &[&str]) -> Result<Vec<String>> {
        let mut reader = source.open(&Projection::default(), None)?;
        let frames = block_on(read_all(&mut *reader))?;
        decode(source, &frames, physical, metadata)
    }

    fn write(folder: &Path, name: &str, content: &[u8]) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    #[test]
    fn files_are_read_in_order_without_hidden_ones() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "b.csv", b"\xef\xbb\xbf2,b,2020-01-02");
        write(folder.path(), "a.csv", b"1,a,2020-01-01\n");
        write(folder.path(), "deep/c.csv", b"3,c,2020-01-03\n");
        write(folder.path(), "empty.csv", b"");
        write(folder.path(), "_SUCCESS", b"x");
        write(folder.path(), ".part-1.inprogress", b"x");
        let source = source(folder.path(), &[], &[]);
        assert_eq!(rows(&*source, &[0, 1], &[]).unwrap(), ["1|a", "2|b", "3|c"]);
        assert_eq!((source.boundedness(), source.estimated_bytes()), (Boundedness::Bounded, Some(47)));
        let filtered = self::source(folder.path(), &[], &[("source.path.regex-pattern", ".*/deep/.*")]);
        assert_eq!(rows(&*filtered, &[1], &[]).unwrap(), ["c"]);
        let single = self::source(&folder.path().join("a.csv"), &[], &[]);
        assert_eq!(rows(&*single, &[1], &[]).unwrap(), ["a"]);
    }

    #[test]
    fn compressed_files_are_read_by_their_ending() {
        let folder = tempfile::tempdir().unwrap();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"1,a,2020-01-01\n").unwrap();
        write(folder.path(), "1.csv.gz", &gzip.finish().unwrap());
        write(folder.path(), "2.csv.zst", &zstd::encode_all(&b"2,b,2020-01-01\nx,y,z\n"[..], 1).unwrap());
        let source = source(folder.path(), &[], &[]);
        assert_eq!(rows(&*source, &[1], &[]).unwrap(), ["a", "b", "y"]);
        let error = rows(&*source, &[0], &[]).unwrap_err();
        assert!(error.hint_text().unwrap().contains("2.csv.zst, line 2, column 1 ('id' INT)"), "{error:?}");
    }

    #[test]
    fn partition_and_metadata_columns_come_from_the_path() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "day=2020-01-01/a.csv", b"1,a\n2,b\n");
        write(folder.path(), "day=__DEFAULT_PARTITION__/b.csv", b"3,c\n");
        let source = source(folder.path(), &["day"], &[]);
        let metadata = ["file.name", "file.size"];
        assert_eq!(
            rows(&*source, &[2, 0], &metadata).unwrap(),
            ["2020-01-01|1|a.csv|8", "2020-01-01|2|a.csv|8", "NULL|3|b.csv|4"]
        );
        assert_eq!(rows(&*source, &[], &[]).unwrap().len(), 3);
        assert!(rows(&*source, &[], &["file.modification-time"]).unwrap()[0].starts_with("20"));
        write(folder.path(), "c.csv", b"3,c\n");
        let error = rows(&*source, &[0], &[]).unwrap_err();
        assert!(error.message().ends_with("has no value for partition column 'day'"));
    }

    #[test]
    fn what_does_not_exist_is_an_error_at_open() {
        let folder = tempfile::tempdir().unwrap();
        let source = source(&folder.path().join("nope"), &[], &[]);
        let error = source.open(&Projection::default(), None).err().unwrap();
        assert!(error.message().ends_with("nope does not exist"));
        assert_eq!(error.flink_class().name(), "java.io.FileNotFoundException");
    }

    #[test]
    fn options_are_checked() {
        let error = |entries: &[(&str, &str)]| {
            let table = testing::Table::new("filesystem", columns(), entries);
            Filesystem.create_source(&table.context()).unwrap_err().message().to_owned()
        };
        assert_eq!(
            error(&[("format", "csv")]),
            "One or more required options are missing.\n\nMissing required options are:\n\npath"
        );
        let wrong = error(&[("path", "x"), ("format", "csv"), ("csv.wrong", "1")]);
        assert!(wrong.starts_with(
            "Unsupported options found for 'filesystem'.\n\nUnsupported options:\n\ncsv.wrong\n"
        ));
        assert!(wrong.contains("\nconnector\n") && wrong.contains("\ncsv.allow-comments\n"));
        assert_eq!(
            error(&[("path", "x"), ("format", "nope")]),
            "Could not find any format factory for identifier 'nope' in the classpath."
        );
        assert!(
            error(&[("path", "x"), ("format", "csv"), ("source.path.regex-pattern", "(")])
                .contains("regular expression")
        );
        assert!(
            error(&[("path", "x"), ("format", "csv"), ("auto-compaction", "true")]).contains("not supported")
        );
    }

    #[test]
    fn new_files_are_found_as_they_arrive_and_positions_resume() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "b.csv", b"1,a,2020-01-01\n");
        let source = source(folder.path(), &[], &[("source.monitor-interval", "5 ms")]);
        assert_eq!(source.boundedness(), Boundedness::Unbounded);
        block_on(async {
            let mut reader = source.open(&Projection::default(), None).unwrap();
            let SourceEvent::Frame(first) = reader.next().await.unwrap() else { panic!("no frame") };
            assert_eq!(decode(&*source, &[first], &[0], &[]).unwrap(), ["1"]);
            write(folder.path(), "a.csv", b"2,a,2020-01-01\n");
            let SourceEvent::Frame(second) = reader.next().await.unwrap() else { panic!("no frame") };
            assert_eq!(decode(&*source, &[second], &[0], &[]).unwrap(), ["2"]);
            write(folder.path(), "c.csv", b"3,a,2020-01-01\n");
            let mut resumed = source.open(&Projection::default(), Some(&reader.position())).unwrap();
            let SourceEvent::Frame(third) = resumed.next().await.unwrap() else { panic!("no frame") };
            assert_eq!(decode(&*source, &[third], &[0], &[]).unwrap(), ["3"]);
        });
    }

    #[test]
    fn a_position_forgets_removed_files_and_misses_files_read_in_part() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "a.csv", b"1,a,2020-01-01\n");
        write(folder.path(), "b.csv", b"2,a,2020-01-01\n");
        let source = source(folder.path(), &[], &[("source.monitor-interval", "1 ms")]);
        block_on(async {
            let mut reader = source.open(&Projection::default(), None).unwrap();
            for _ in 0..2 {
                reader.next().await.unwrap();
            }
            assert_eq!(reader.position().len(), 2);
            fs::remove_file(folder.path().join("a.csv")).unwrap();
            write(folder.path(), "c.csv", b"3,a,2020-01-01\n");
            let SourceEvent::Frame(frame) = reader.next().await.unwrap() else { panic!("no frame") };
            assert_eq!(decode(&*source, &[frame], &[0], &[]).unwrap(), ["3"]);
            let position = reader.position();
            let names: Vec<&str> = position.keys().filter_map(|path| path.rsplit('/').next()).collect();
            assert_eq!(names, ["b.csv", "c.csv"]);
            for (name, at) in [("c.csv", "20"), ("x.csv", "3")] {
                let path = folder.path().join(name).display().to_string();
                let position = SourcePosition::from([(path.clone(), at.to_owned())]);
                let error = source.open(&Projection::default(), Some(&position)).err().unwrap();
                let expected = format!("file '{path}' was read up to offset {at} and is now gone or shorter");
                assert_eq!(error.message(), expected);
            }
        });
    }

    #[test]
    fn change_events_come_with_their_kinds_and_metadata() {
        let folder = tempfile::tempdir().unwrap();
        let event =
            r#"{"before":{"id":1,"name":"a"},"after":{"id":1,"name":"b"},"source":{"table":"t"},"op":"u"}"#;
        write(folder.path(), "day=2020-01-01/a.json", event.as_bytes());
        let path = folder.path().to_str().unwrap();
        let entries = [("path", path), ("format", "debezium-json")];
        let mut table = testing::Table::new("filesystem", columns(), &entries);
        table.partition_keys = vec!["day".to_owned()];
        let source = Filesystem.create_source(&table.context()).unwrap();
        assert_eq!(source.changelog_mode(), ChangelogMode::ALL);
        let keys = ["source.table", "file.name", "source.database"];
        assert_eq!(
            rows(&*source, &[2, 1], &keys).unwrap(),
            ["2020-01-01|a|t|a.json|NULL", "2020-01-01|b|t|a.json|NULL"]
        );
        let frames = block_on(async {
            read_all(&mut *source.open(&Projection::default(), None).unwrap()).await.unwrap()
        });
        let projection = Projection { physical: vec![0, 2], metadata: Vec::new() };
        let batch = source.decoder(&projection).unwrap().decode(&frames[0]).unwrap().remove(0);
        assert_eq!(batch.kind_bytes(), Some(&[1_u8, 2][..]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn where_frames_are_cut_and_resumed_never_changes_the_rows(
            names in prop::collection::vec("[a\", \n]{0,12}", 1..40),
            frame_bytes in 1_usize..200,
            stop in 0_usize..20,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let text: String = names
                .iter()
                .enumerate()
                .map(|(id, name)| format!("{id},\"{}\",2020-01-01\n", name.replace('"', "\"\"")))
                .collect();
            write(folder.path(), "a.csv", text.as_bytes());
            let table = table(folder.path(), &[], &[]);
            let file_table = FileTable::new(&table.context()).unwrap();
            let format = crate::format::testing::decoding(
                crate::format::format_factory("csv", "").unwrap(), &columns(), &[],
            ).unwrap();
            let mut source = FilesystemSource::new(file_table, columns(), columns(), format);
            source.frame_bytes = frame_bytes;
            let expected: Vec<String> = names.iter().enumerate().map(|(id, name)| format!("{id}|{name}")).collect();
            let frames = block_on(async {
                let mut reader = source.open(&Projection::default(), None).unwrap();
                let mut frames = Vec::new();
                for _ in 0..stop {
                    match reader.next().await.unwrap() {
                        SourceEvent::Frame(frame) => frames.push(frame),
                        _ => break,
                    }
                }
                let mut resumed = source.open(&Projection::default(), Some(&reader.position())).unwrap();
                frames.extend(read_all(&mut *resumed).await.unwrap());
                frames
            });
            prop_assert_eq!(decode(&source, &frames, &[0, 1], &[]).unwrap(), expected);
        }
    }
}
