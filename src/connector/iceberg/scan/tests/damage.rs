//! Files that are missing, damaged, or of a kind that is not read: each error names the file and the snapshot.

use std::fs;

use iceberg::spec::{DataContentType, DataFileBuilder, DataFileFormat, FormatVersion, PrimitiveType};

use super::test_table::{DataOptions, TestTable, schema};
use crate::connector::iceberg::manifest::TableFile;
use crate::error::{Error, ErrorKind};

fn people(version: FormatVersion) -> TestTable {
    TestTable::new(version, schema(&[("id", PrimitiveType::Long), ("name", PrimitiveType::String)]))
}

/// Reads the table and returns the error.
async fn error(table: &TestTable) -> Error {
    Error::from(table.frame(2).collect().await.unwrap_err())
}

/// Checks that the error of a read is of a kind and names a file, the snapshot, and what is wrong.
async fn check(table: &TestTable, kind: ErrorKind, path: &str, end: &str) {
    let error = error(table).await;
    let snapshot = table.metadata().current_snapshot_id().unwrap();
    let expected = format!("'{path}' of snapshot {snapshot} of Iceberg table 'db.t' {end}");
    assert!(error.message().ends_with(&expected), "{error} does not end with {expected}");
    assert_eq!(error.kind(), kind, "{error}");
    if end == "is missing" || end == "is damaged" {
        assert!(error.hint_text().unwrap().contains(" FROM `db`.`t$snapshots` "), "{error:?}");
    }
}

/// Overwrites the middle of a file, so that its beginning and its end still look right.
fn scramble(path: &str) {
    let mut bytes = fs::read(path).unwrap();
    let (start, end) = (bytes.len() / 10 + 4, bytes.len() / 2);
    bytes[start..end].fill(0xA5);
    fs::write(path, bytes).unwrap();
}

fn path(file: &TableFile) -> String {
    file.file.file_path().to_owned()
}

#[tokio::test]
async fn metadata_that_is_missing_or_damaged_is_named() {
    let mut table = people(FormatVersion::V2);
    table.append("1|a").await;
    let list = table.metadata().current_snapshot().unwrap().manifest_list().to_owned();
    let saved = fs::read(&list).unwrap();
    let manifest = table.path("metadata/m2.avro");
    fs::write(&manifest, b"no manifest").unwrap();
    check(&table, ErrorKind::Data, manifest.to_str().unwrap(), "is damaged").await;
    fs::remove_file(&manifest).unwrap();
    check(&table, ErrorKind::NotFound, manifest.to_str().unwrap(), "is missing").await;
    fs::write(&list, &saved[..saved.len() / 2]).unwrap();
    check(&table, ErrorKind::Data, &list, "is damaged").await;
    fs::remove_file(&list).unwrap();
    check(&table, ErrorKind::NotFound, &list, "is missing").await;
}

#[tokio::test]
async fn a_data_file_that_is_missing_or_damaged_is_named() {
    let mut table = people(FormatVersion::V2);
    table.append("1|a").await;
    let lines: String = (0..20_000).map(|id| format!("{id}|name of {id}\n")).collect();
    let file = table.append(&lines).await;
    scramble(&path(&file));
    check(&table, ErrorKind::Data, &path(&file), "is damaged").await;
    let mut other = people(FormatVersion::V2);
    let file = other.append("1|a").await;
    fs::write(path(&file), vec![0; 300]).unwrap();
    check(&other, ErrorKind::Data, &path(&file), "is damaged").await;
    fs::remove_file(path(&file)).unwrap();
    check(&other, ErrorKind::NotFound, &path(&file), "is missing").await;
}

#[tokio::test]
async fn position_deletes_that_are_missing_or_damaged_are_named() {
    let mut table = people(FormatVersion::V2);
    let file = table.append("1|a\n2|b").await;
    let deletes = table.position_deletes(&[(&file, &[0])], false);
    table.commit(Vec::new(), vec![deletes.clone()]).await;
    fs::write(path(&deletes), b"no Parquet").unwrap();
    check(&table, ErrorKind::Data, &path(&deletes), "is damaged").await;
    fs::remove_file(path(&deletes)).unwrap();
    check(&table, ErrorKind::NotFound, &path(&deletes), "is missing").await;
}

#[tokio::test]
async fn a_damaged_deletion_vector_is_named() {
    let mut table = people(FormatVersion::V3);
    let file = table.append("1|a\n2|b").await;
    let vector = table.deletion_vector(&file, &[0]);
    table.commit(Vec::new(), vec![vector.clone()]).await;
    let mut bytes = fs::read(path(&vector)).unwrap();
    let last = bytes.len() - 6;
    bytes[last] ^= 1;
    fs::write(path(&vector), &bytes).unwrap();
    check(&table, ErrorKind::Data, &path(&vector), "is damaged").await;
    fs::write(path(&vector), &bytes[..10]).unwrap();
    let error = error(&table).await;
    assert!(error.message().contains(&path(&vector)), "{error}");
    fs::remove_file(path(&vector)).unwrap();
    check(&table, ErrorKind::NotFound, &path(&vector), "is missing").await;
}

#[tokio::test]
async fn equality_deletes_that_are_missing_or_damaged_are_named() {
    let mut table = people(FormatVersion::V2);
    table.append("1|a\n2|b").await;
    let deletes = table.equality_deletes(&["id"], "2", None);
    table.commit(Vec::new(), vec![deletes.clone()]).await;
    let saved = fs::read(path(&deletes)).unwrap();
    fs::write(path(&deletes), vec![7; saved.len()]).unwrap();
    check(&table, ErrorKind::Data, &path(&deletes), "is damaged").await;
    fs::remove_file(path(&deletes)).unwrap();
    check(&table, ErrorKind::NotFound, &path(&deletes), "is missing").await;
}

#[tokio::test]
async fn files_that_are_not_parquet_are_refused_by_name() {
    for (format, name) in [(DataFileFormat::Orc, "orc"), (DataFileFormat::Avro, "avro")] {
        let mut table = people(FormatVersion::V2);
        let mut file = DataFileBuilder::default();
        file.content(DataContentType::Data)
            .file_path(format!("/data/file.{name}"))
            .file_format(format)
            .file_size_in_bytes(100)
            .record_count(1);
        let file = TableFile { spec_id: 0, file: file.build().unwrap() };
        table.commit(vec![file], Vec::new()).await;
        let end = format!("is in format {name}, and only Parquet is read");
        check(&table, ErrorKind::Unsupported, &format!("/data/file.{name}"), &end).await;
    }
}

#[tokio::test]
async fn a_failing_condition_is_not_blamed_on_the_file() {
    use datafusion::prelude::{cast, col, lit};
    let mut table = people(FormatVersion::V2);
    table.append_with("1|a\n2|b", &DataOptions::default()).await;
    let condition = cast(col("name"), arrow::datatypes::DataType::Int32).eq(lit(1));
    let frame = table.frame(1).filter(condition).unwrap();
    let error = Error::from(frame.collect().await.unwrap_err());
    assert!(!error.message().contains("data file"), "{error}");
}

#[tokio::test]
async fn equality_deletes_that_compare_no_columns_are_damaged() {
    let mut table = people(FormatVersion::V2);
    table.append("1|a").await;
    let deletes = table.equality_deletes(&["id"], "1", None);
    let mut file = DataFileBuilder::default();
    file.content(DataContentType::EqualityDeletes)
        .file_path(path(&deletes))
        .file_format(DataFileFormat::Parquet)
        .partition(iceberg::spec::Struct::empty())
        .file_size_in_bytes(deletes.file.file_size_in_bytes())
        .record_count(1);
    let nameless = TableFile { spec_id: 0, file: file.build().unwrap() };
    table.commit(Vec::new(), vec![nameless]).await;
    check(&table, ErrorKind::Data, &path(&deletes), "is damaged").await;
}
