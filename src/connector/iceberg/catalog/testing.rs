//! What tests of all catalogs need: a small table, small commits, many writers.

use std::collections::HashMap;
use std::sync::Arc;

use iceberg::spec::{
    DataContentType, DataFileBuilder, DataFileFormat, NestedField, PrimitiveType, Schema, Struct, Type,
};
use iceberg::table::Table;
use iceberg::transaction::{ApplyTransactionAction, Transaction};
use iceberg::{Catalog, TableCreation, TableIdent, TableUpdate};

use super::commit_catalog::{CommitCatalog, CommitError};

/// The table that tests use.
pub(super) fn ident() -> TableIdent {
    TableIdent::from_strs(["db", "t"]).unwrap()
}

/// A table of one column.
pub(super) fn creation(name: &str, properties: &[(&str, &str)]) -> TableCreation {
    let id = NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long));
    let schema = Schema::builder().with_fields([Arc::new(id)]).build().unwrap();
    let properties = properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    TableCreation::builder().name(name.to_owned()).schema(schema).properties(properties).build()
}

/// The smallest commit.
pub(super) fn set(key: &str, value: &str) -> Vec<TableUpdate> {
    vec![TableUpdate::SetProperties { updates: HashMap::from([(key.to_owned(), value.to_owned())]) }]
}

/// Has each catalog make five commits to the table, all at once; each tries again after a conflict.
pub(super) async fn commit_concurrently<C: CommitCatalog + 'static>(catalogs: Vec<C>) {
    let writers = catalogs.into_iter().enumerate().map(|(writer, catalog)| {
        tokio::spawn(async move {
            for commit in 0..5 {
                let key = format!("{writer}.{commit}");
                loop {
                    match catalog.commit_table(&ident(), Vec::new(), set(&key, "x")).await {
                        Ok(_) => break,
                        Err(CommitError::Conflict(_)) => tokio::task::yield_now().await,
                        Err(other) => panic!("{other:?}"),
                    }
                }
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
}

/// Adds a snapshot with one data file, whose content nobody will read, through the crate's own transaction.
pub(super) async fn append(catalog: &dyn Catalog, table: &Table, data_file: &str) -> Table {
    let path = data_file.strip_prefix("file:").unwrap_or(data_file);
    std::fs::create_dir_all(std::path::Path::new(path).parent().unwrap()).unwrap();
    std::fs::write(path, "rows").unwrap();
    let file = DataFileBuilder::default()
        .content(DataContentType::Data)
        .file_path(data_file.to_owned())
        .file_format(DataFileFormat::Parquet)
        .partition(Struct::empty())
        .partition_spec_id(0)
        .record_count(1)
        .file_size_in_bytes(4)
        .build()
        .unwrap();
    let transaction = Transaction::new(table);
    let append = transaction.fast_append().add_data_files([file]);
    append.apply(transaction).unwrap().commit(catalog).await.unwrap()
}
