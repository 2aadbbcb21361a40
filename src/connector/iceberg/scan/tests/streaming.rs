//! Reading file by file, as in streaming mode, and going on from positions; ranges of appends; limits.

use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::prelude::{SessionContext, col, lit};
use iceberg::spec::{FormatVersion, PrimitiveType};

use super::test_table::{TestTable, schema, sorted};
use crate::connector::iceberg::read_target::ReadTarget;
use crate::connector::iceberg::scan::provider::IcebergTableProvider;
use crate::connector::iceberg::scan::snapshot_reader::SnapshotReader;
use crate::connector::{Frame, SourceEvent, SourcePosition, SourceReader};
use crate::error::{Error, ErrorKind, Result};

fn people() -> TestTable {
    TestTable::new(FormatVersion::V2, schema(&[("id", PrimitiveType::Long), ("name", PrimitiveType::String)]))
}

/// Rows `first|n`, `first + 1|n`, …
fn lines(first: usize, count: usize) -> String {
    (first..first + count).map(|id| format!("{id}|n")).collect::<Vec<_>>().join("\n")
}

fn open(
    provider: &Arc<IcebergTableProvider>,
    columns: &[usize],
    start: Option<&SourcePosition>,
) -> SnapshotReader {
    SnapshotReader::new(provider, columns, None, start).unwrap()
}

async fn next(reader: &mut SnapshotReader) -> Result<Option<RecordBatch>> {
    match reader.next().await? {
        SourceEvent::Frame(Frame::Rows(rows)) => Ok(Some(rows.rows().clone())),
        SourceEvent::EndOfInput => Ok(None),
        event => panic!("{event:?} in the place of rows"),
    }
}

/// Reads to the end: the lines in their order.
async fn read(reader: &mut SnapshotReader) -> Vec<String> {
    let mut read = Vec::new();
    while let Some(rows) = next(reader).await.unwrap() {
        read.extend(in_order(&rows));
    }
    read
}

fn in_order(rows: &RecordBatch) -> Vec<String> {
    (0..rows.num_rows()).flat_map(|row| sorted(&[rows.slice(row, 1)])).collect()
}

#[tokio::test]
async fn files_come_in_the_order_of_their_commits_without_deleted_rows() {
    let mut table = people();
    let first = table.append("3|c\n1|a\n2|b").await;
    table.append("5|e\n4|d").await;
    let deletes = table.position_deletes(&[(&first, &[1])], true);
    table.commit(Vec::new(), vec![deletes]).await;
    let keys = table.equality_deletes(&["id"], "5", None);
    table.commit(Vec::new(), vec![keys]).await;
    let provider = table.provider();
    assert_eq!(read(&mut open(&provider, &[0, 1], None)).await, ["3|c", "2|b", "4|d"]);
    assert_eq!(read(&mut open(&provider, &[1], None)).await, ["c", "b", "d"], "only the columns asked for");
    let mut nothing = open(&provider, &[], None);
    let mut count = 0;
    while let Some(rows) = next(&mut nothing).await.unwrap() {
        count += rows.num_rows();
    }
    assert_eq!(count, 3, "rows without columns are rows");
}

#[tokio::test]
async fn a_job_goes_on_behind_every_frame_of_the_snapshot_that_it_began_with() {
    let mut table = people();
    let first = table.append(&lines(0, 20_000)).await;
    let deletes = table.position_deletes(&[(&first, &[7, 8_192, 19_999])], true);
    table.commit(Vec::new(), vec![deletes]).await;
    table.append(&lines(20_000, 10)).await;
    let whole = read(&mut open(&table.provider(), &[0], None)).await;
    assert_eq!(whole.len(), 20_007);
    // From here on the table is another one, and each frame is read by a reader of its own.
    let start = open(&table.provider(), &[0], None).position();
    let gone = table.position_deletes(&[(&first, &(0..20_000).collect::<Vec<u64>>())], true);
    table.commit(Vec::new(), vec![gone]).await;
    table.append("77|later").await;
    let (mut position, mut rows) = (start, Vec::new());
    loop {
        let mut reader = open(&table.provider(), &[0], Some(&position));
        let Some(batch) = next(&mut reader).await.unwrap() else { break };
        rows.extend(in_order(&batch));
        position = reader.position();
        drop(next(&mut reader).await.unwrap());
    }
    assert!(rows == whole, "read {} of {} rows", rows.len(), whole.len());
}

#[tokio::test]
async fn what_a_position_means_does_not_depend_on_the_columns() {
    let mut table = people();
    table.append(&lines(0, 10_000)).await;
    let provider = table.provider();
    let mut reader = open(&provider, &[0, 1], None);
    let read_first = next(&mut reader).await.unwrap().unwrap().num_rows();
    let rest = read(&mut open(&provider, &[1], Some(&reader.position()))).await;
    assert_eq!(rest.len(), 10_000 - read_first);
}

#[tokio::test]
async fn a_snapshot_that_has_expired_cannot_be_gone_on_with() {
    let mut table = people();
    table.append("1|a").await;
    let position = open(&table.provider(), &[0], None).position();
    table.append("2|b").await;
    table.change(|builder| Ok(builder.remove_snapshots(&[1000])));
    let error = SnapshotReader::new(&table.provider(), &[0], None, Some(&position)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::State);
    assert!(error.message().contains("it was within snapshot 1000, which has expired since"), "{error}");
    assert!(error.hint_text().is_some());
}

#[tokio::test]
async fn a_job_that_began_with_an_empty_table_has_nothing_more_to_read() {
    let mut table = people();
    let mut reader = open(&table.provider(), &[0], None);
    assert_eq!(next(&mut reader).await.unwrap(), None);
    let position = reader.position();
    table.append("1|a").await;
    assert_eq!(read(&mut open(&table.provider(), &[0], Some(&position))).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_position_that_is_none_is_refused() {
    let mut table = people();
    table.append("1|a").await;
    let refused = |entries: &[(&str, &str)]| -> Error {
        let position = entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        SnapshotReader::new(&table.provider(), &[0], None, Some(&position)).err().unwrap()
    };
    assert_eq!(refused(&[("file", "x")]).message(), "a position in an Iceberg table names no snapshot");
    assert_eq!(refused(&[("snapshot", "x")]).message(), "'x' is no snapshot");
    let rows = [("snapshot", "1000"), ("file", "x"), ("rows", "many")];
    assert_eq!(refused(&rows).message(), "'many' is no number of rows");
    let position = [("snapshot".to_owned(), "1000".to_owned()), ("file".to_owned(), "x".to_owned())].into();
    let error = next(&mut open(&table.provider(), &[0], Some(&position))).await.unwrap_err();
    assert!(error.message().contains("file 'x' is not in the snapshot"), "{error}");
}

#[tokio::test]
async fn a_limit_counts_rows_of_all_files_and_across_restarts() {
    let mut table = people();
    table.append("1|a\n2|b").await;
    table.append("3|c\n4|d").await;
    let provider = table.provider();
    let limited =
        |start: Option<&SourcePosition>| SnapshotReader::new(&provider, &[0], Some(3), start).unwrap();
    assert_eq!(read(&mut limited(None)).await, ["1", "2", "3"]);
    let mut reader = limited(None);
    next(&mut reader).await.unwrap();
    assert_eq!(read(&mut limited(Some(&reader.position()))).await, ["3"]);
}

#[tokio::test]
async fn a_limit_in_batch_mode_comes_before_conditions() {
    let mut table = people();
    table.append("1|a\n2|b").await;
    table.append("3|c\n4|d").await;
    let provider = Arc::new(table.provider().with_rows(ReadTarget::Snapshot(1001)).with_limit(Some(3)));
    let frame = SessionContext::new().read_table(provider).unwrap();
    assert_eq!(sorted(&frame.clone().collect().await.unwrap()), ["1|a", "2|b", "3|c"]);
    assert_eq!(frame.clone().count().await.unwrap(), 3);
    let filtered = frame.filter(col("id").gt(lit(2_i64))).unwrap();
    assert_eq!(sorted(&filtered.collect().await.unwrap()), ["3|c"]);
}

#[tokio::test]
async fn a_range_reads_what_was_appended_and_not_what_is_left() {
    let mut table = people();
    table.append("1|a").await;
    let second = table.append("2|b\n3|c").await;
    table.append("4|d").await;
    let deletes = table.position_deletes(&[(&second, &[0])], true);
    table.commit(Vec::new(), vec![deletes]).await;
    let range = |ids: &[i64]| {
        Arc::new(table.provider().with_rows(ReadTarget::Appends(ids.iter().copied().collect())))
    };
    let rows = |provider| async move {
        let frame = SessionContext::new().read_table(provider).unwrap();
        sorted(&frame.collect().await.unwrap())
    };
    assert_eq!(rows(range(&[1001, 1002])).await, ["2|b", "3|c", "4|d"]);
    assert_eq!(rows(range(&[1002])).await, ["4|d"]);
    assert_eq!(rows(range(&[])).await, Vec::<String>::new());
    let provider = range(&[1001, 1002]);
    let mut reader = open(&provider, &[0], None);
    next(&mut reader).await.unwrap();
    assert_eq!(read(&mut open(&table.provider(), &[0], Some(&reader.position()))).await, ["4"]);
}
