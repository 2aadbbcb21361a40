//! What is in an Iceberg table, read by the crate `iceberg` instead of our own scan.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use futures::TryStreamExt;
use iceberg::TableIdent;
use iceberg::io::{FileIOBuilder, LocalFsStorageFactory};
use iceberg::table::StaticTable;

/// Loads the newest version of a table in Hadoop's layout.
async fn load(folder: &Path) -> StaticTable {
    let version = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        name.strip_prefix('v')?.strip_suffix(".metadata.json")?.parse::<u64>().ok()
    };
    let entries = fs::read_dir(folder.join("metadata")).unwrap();
    let newest = entries.filter_map(|entry| version(entry.unwrap())).max().unwrap();
    let location = format!("file:{}/metadata/v{newest}.metadata.json", folder.display());
    let file_io = FileIOBuilder::new(Arc::new(LocalFsStorageFactory)).build();
    let ident = TableIdent::from_strs(["db", "t"]).unwrap();
    StaticTable::from_metadata_file(&location, ident, file_io).await.unwrap()
}

/// Returns the rows of a table `(id BIGINT, name STRING)`, sorted, each as `id,name`.
pub(super) async fn rows(folder: PathBuf) -> Vec<String> {
    let table = load(&folder).await;
    let scan = table.scan().build().unwrap();
    let batches: Vec<RecordBatch> = scan.to_arrow().await.unwrap().try_collect().await.unwrap();
    let mut rows = Vec::new();
    for batch in batches {
        let ids = batch.column(0).as_primitive::<Int64Type>().iter();
        let names = batch.column(1).as_string::<i32>().iter();
        rows.extend(ids.zip(names).map(|(id, name)| format!("{},{}", id.unwrap(), name.unwrap())));
    }
    rows.sort();
    rows
}

/// Returns how many data files lie in a table's folder and are not in the table.
pub(super) async fn unseen_files(folder: PathBuf) -> usize {
    let table = load(&folder).await;
    let tasks: Vec<_> =
        table.scan().build().unwrap().plan_files().await.unwrap().try_collect().await.unwrap();
    let name = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    let seen: BTreeSet<String> = tasks.iter().map(|task| name(task.data_file_path())).collect();
    let files = fs::read_dir(folder.join("data")).into_iter().flatten();
    let names = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".parquet") && !seen.contains(name)).count()
}
