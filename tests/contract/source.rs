//! The contract of sources: whoever reads on from a position gets the rest, all of it and nothing twice, however often.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use lakehead::connector::{DynamicTableSource, Frame, Projection, SourceEvent, SourcePosition};

use super::Table;

/// Returns the rows of a frame as text.
fn decode(source: &Arc<dyn DynamicTableSource>, frame: &Frame) -> Vec<String> {
    let projection = Projection::of_columns(&[0, 1]);
    let mut rows = Vec::new();
    for batch in source.decoder(&projection).unwrap().decode(frame).unwrap() {
        let columns = batch.rows().columns();
        for row in 0..batch.row_count() {
            let cell = |column: usize| {
                arrow::util::display::array_value_to_string(columns[column].as_ref(), row).unwrap()
            };
            rows.push(format!("{} {} {}", batch.kind(row), cell(0), cell(1)));
        }
    }
    rows
}

/// Reads to the end and returns the rows, and after each frame how many rows there were and where the reader stood.
async fn read(
    source: &Arc<dyn DynamicTableSource>,
    start: Option<&SourcePosition>,
) -> (Vec<String>, Vec<(usize, SourcePosition)>) {
    let mut reader = source.open(&Projection::of_columns(&[0, 1]), start).unwrap();
    let (mut rows, mut positions) = (Vec::new(), vec![(0, reader.position())]);
    while let SourceEvent::Frame(frame) = reader.next().await.unwrap() {
        rows.extend(decode(source, &frame));
        positions.push((rows.len(), reader.position()));
    }
    (rows, positions)
}

/// Puts a source that ends through every position at which a job can be restored.
async fn check(table: &Table, row_count: usize, frames_min: usize) {
    let source = table.source();
    let (rows, positions) = read(&source, None).await;
    assert_eq!(rows.len(), row_count);
    assert!(positions.len() > frames_min, "only {} frames: the kit would test nothing", positions.len() - 1);
    for (count, position) in &positions {
        for _ in 0..2 {
            let (rest, _) = read(&table.source(), Some(position)).await;
            assert_eq!(rest, rows[*count..], "reading on behind {count} rows");
        }
    }
    check_restarts(table, &rows).await;
    check_checkpoints(table, &rows, &positions).await;
    check_dropped_calls(table, &rows).await;
}

/// A job may crash again and again, behind every frame, and after frames that no checkpoint has covered.
async fn check_restarts(table: &Table, rows: &[String]) {
    let mut read = Vec::new();
    let mut position = None;
    loop {
        let source = table.source();
        let mut reader = source.open(&Projection::of_columns(&[0, 1]), position.as_ref()).unwrap();
        let SourceEvent::Frame(frame) = reader.next().await.unwrap() else { break };
        let behind = reader.position();
        // What is read ahead and then lost comes again.
        let _ = reader.next().await.unwrap();
        read.extend(decode(&source, &frame));
        position = Some(behind);
    }
    assert_eq!(read, rows, "a job that crashes behind every frame reads everything once");
}

/// A checkpoint may be reported late, twice, or not at all.
async fn check_checkpoints(table: &Table, rows: &[String], positions: &[(usize, SourcePosition)]) {
    let source = table.source();
    let mut reader = source.open(&Projection::of_columns(&[0, 1]), None).unwrap();
    let mut read = Vec::new();
    let mut number = 0;
    while let SourceEvent::Frame(frame) = reader.next().await.unwrap() {
        read.extend(decode(&source, &frame));
        let reported = &positions[number / 2].1;
        reader.on_checkpoint_complete(reported).await.unwrap();
        reader.on_checkpoint_complete(reported).await.unwrap();
        number += 1;
    }
    assert_eq!(read, rows, "what is reported of checkpoints does not change what is read");
}

/// `next` is cancel-safe: a call that is dropped loses nothing.
async fn check_dropped_calls(table: &Table, rows: &[String]) {
    let source = table.source();
    let mut reader = source.open(&Projection::of_columns(&[0, 1]), None).unwrap();
    let mut read = Vec::new();
    loop {
        let event = tokio::select! {
            biased;
            () = std::future::ready(()) , if read.len() % 2 == 1 => None,
            event = reader.next() => Some(event),
        };
        // A call that was begun and dropped, then one that is waited for.
        let event = match event {
            Some(event) => event,
            None => {
                let _ = tokio::time::timeout(Duration::ZERO, reader.next()).await.map(|event| {
                    if let Ok(SourceEvent::Frame(frame)) = &event {
                        read.extend(decode(&source, frame));
                    }
                });
                reader.next().await
            }
        };
        match event.unwrap() {
            SourceEvent::Frame(frame) => read.extend(decode(&source, &frame)),
            SourceEvent::EndOfInput => break,
            event => panic!("{event:?} of a table that is read by itself"),
        }
    }
    assert_eq!(read, rows, "calls that are dropped lose nothing");
}

#[tokio::test]
async fn files_are_read_on_from_any_position() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(40_000);
    for file in 0..3 {
        let text: String = (0..28).map(|row| format!("{row},{long}\n")).collect();
        fs::write(folder.path().join(format!("part-{file}.csv")), text).unwrap();
    }
    let path = folder.path().to_str().unwrap();
    check(&Table::new("filesystem", &[("path", path), ("format", "csv")]), 84, 3).await;
}

#[tokio::test]
async fn generated_rows_go_on_where_they_stopped() {
    let entries = [
        ("number-of-rows", "20000"),
        ("rows-per-second", "1000000"),
        ("fields.id.kind", "sequence"),
        ("fields.id.start", "1"),
        ("fields.id.end", "20000"),
        ("fields.name.kind", "sequence"),
        ("fields.name.start", "7"),
        ("fields.name.end", "30000"),
    ];
    check(&Table::new("datagen", &entries), 20_000, 1).await;
}

#[tokio::test]
async fn rows_of_options_go_on_where_they_stopped() {
    let rows: Vec<String> = (0..9).map(|id| format!("[\"+I\",{id},\"n\"],[\"-D\",{id},\"n\"]")).collect();
    let rows = format!("[{}]", rows.join(","));
    let entries = [("rows", rows.as_str()), ("changelog-mode", "I,UB,UA,D")];
    check(&Table::new("values", &entries), 18, 0).await;
}
