//! Which snapshot a table shows: an older one again (`current-snapshot-id`), or the rows of one beside its history as well
//! (`cherry-pick-snapshot-id`).

use std::collections::BTreeMap;

use async_trait::async_trait;
use iceberg::spec::{MAIN_BRANCH, Operation, SnapshotReference, SnapshotRetention, TableMetadata};
use iceberg::{TableRequirement, TableUpdate};

use crate::connector::iceberg::commit::{
    MetadataChange, SnapshotChange, SnapshotPlan, commit_snapshot, commit_updates,
};
use crate::connector::iceberg::manifest::TableFile;
use crate::connector::iceberg::scan::live_files;
use crate::connector::iceberg::snapshot_history::ancestors;
use crate::connector::iceberg::snapshot_refs::snapshot_refs;
use crate::connector::iceberg::table::IcebergTable;
use crate::error::{Error, FlinkClass, Result};

/// What the summary of a snapshot says of the one whose rows it has taken over.
const SOURCE_SNAPSHOT: &str = "source-snapshot-id";

/// Reads the id of a snapshot.
///
/// # Errors
/// It is no number.
fn snapshot_id(text: &str) -> Result<i64> {
    text.trim().parse().map_err(|error| {
        Error::validation(format!("For input string: \"{text}\""))
            .class(FlinkClass::NUMBER_FORMAT)
            .caused_by(error)
            .hint("This is the id of a snapshot, as in the metadata table '$snapshots'.")
    })
}

/// Returns the update by which a table shows a snapshot again; None if it does.
///
/// # Errors
/// There is no such snapshot.
pub(super) fn roll_back(metadata: &TableMetadata, text: &str) -> Result<Option<TableUpdate>> {
    let id = snapshot_id(text)?;
    if metadata.snapshot_by_id(id).is_none() {
        return Err(unknown(format!("Cannot roll back to unknown snapshot id: {id}")));
    }
    if metadata.current_snapshot_id() == Some(id) {
        return Ok(None);
    }
    show(metadata, id).map(Some)
}

/// Adds what a snapshot beside the table's history has added.
///
/// # Errors
/// There is no such snapshot, its rows are in the table already, or it did more than add rows.
pub(super) async fn pick(table: &IcebergTable, text: &str) -> Result<()> {
    let id = snapshot_id(text)?;
    if follows_current(table.metadata(), id)? {
        let mut plan = |table: &IcebergTable| {
            let metadata = table.metadata();
            if !follows_current(metadata, id)? {
                return Err(Error::unavailable(format!(
                    "table '{}' has changed while snapshot {id} was picked",
                    table.ident()
                ))
                .hint("Repeat the statement."));
            }
            let requirements = vec![current_is_unchanged(metadata)];
            Ok(Some(MetadataChange { requirements, updates: vec![show(metadata, id)?] }))
        };
        return commit_updates(table, &mut plan).await.map(drop);
    }
    commit_snapshot(table, &mut Pick { id }).await.map(drop)
}

/// Returns whether a snapshot comes right behind the current one, so that showing it is all there is to do.
fn follows_current(metadata: &TableMetadata, id: i64) -> Result<bool> {
    let Some(snapshot) = metadata.snapshot_by_id(id) else {
        return Err(unknown(format!("Cannot cherry-pick unknown snapshot ID: {id}")));
    };
    let refuse = |reason: String| {
        let message = format!("Cannot cherrypick snapshot {id}: {reason}");
        Err(Error::validation(message).class(FlinkClass::ICEBERG_VALIDATION))
    };
    for present in ancestors(metadata, metadata.current_snapshot()) {
        if present.snapshot_id() == id {
            return refuse("already an ancestor".to_owned());
        }
        let source = present.summary().additional_properties.get(SOURCE_SNAPSHOT);
        if source.is_some_and(|source| *source == id.to_string()) {
            return refuse(format!("already picked to create ancestor {}", present.snapshot_id()));
        }
    }
    let follows = snapshot.parent_snapshot_id() == metadata.current_snapshot_id();
    if !follows && snapshot.summary().operation != Operation::Append {
        return refuse("not append, dynamic overwrite, or fast-forward".to_owned());
    }
    Ok(follows)
}

/// Adds the files of a snapshot anew.
struct Pick {
    id: i64,
}

#[async_trait]
impl SnapshotPlan for Pick {
    async fn plan(&mut self, table: &IcebergTable) -> Result<Option<SnapshotChange>> {
        follows_current(table.metadata(), self.id)?;
        let files = live_files(table, Some(self.id)).await?;
        let added = files.into_iter().filter(|file| file.snapshot_id == self.id);
        Ok(Some(SnapshotChange {
            data: added.map(|file| TableFile::clone(&file.data)).collect(),
            summary: BTreeMap::from([(SOURCE_SNAPSHOT.to_owned(), self.id.to_string())]),
            ..SnapshotChange::default()
        }))
    }
}

/// Returns the update by which the main branch shows a snapshot; how long its snapshots are kept does not change.
fn show(metadata: &TableMetadata, snapshot_id: i64) -> Result<TableUpdate> {
    let present = snapshot_refs(metadata)?.remove(MAIN_BRANCH);
    let none = SnapshotRetention::branch(None, None, None);
    let retention = present.map_or(none, |reference| reference.retention);
    let reference = SnapshotReference { snapshot_id, retention };
    Ok(TableUpdate::SetSnapshotRef { ref_name: MAIN_BRANCH.to_owned(), reference })
}

/// Returns the requirement that nobody has committed to the main branch meanwhile.
pub(super) fn current_is_unchanged(metadata: &TableMetadata) -> TableRequirement {
    TableRequirement::RefSnapshotIdMatch {
        r#ref: MAIN_BRANCH.to_owned(),
        snapshot_id: metadata.current_snapshot_id(),
    }
}

fn unknown(message: String) -> Error {
    Error::not_found(message)
        .class(FlinkClass::ICEBERG_VALIDATION)
        .hint("The metadata table '$snapshots' lists those there are.")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use iceberg::table::Table;

    use super::super::HadoopCatalog;
    use super::super::flink_catalog::FlinkCatalog;
    use super::super::testing::append;
    use super::*;
    use crate::catalog::{Catalog, CatalogObject, CatalogTable, ObjectPath, TableChange};
    use crate::connector::iceberg::storage::FileStore;
    use crate::schema::{Column, TableSchema, TypeRoot};

    /// A table with three snapshots, the second and the third both behind the first; the third is current.
    struct Fork {
        catalog: FlinkCatalog,
        folder: tempfile::TempDir,
        snapshots: Vec<i64>,
    }

    impl Fork {
        async fn new() -> Fork {
            let folder = tempfile::tempdir().unwrap();
            let warehouse = folder.path().to_str().unwrap();
            let catalog = FlinkCatalog {
                name: "ice".to_owned(),
                tables: Arc::new(HadoopCatalog::new(warehouse, FileStore::local()).unwrap()),
                default_database: "db".to_owned(),
                base_namespace: Vec::new(),
                options: BTreeMap::new(),
            };
            let id = Column::physical("id", TypeRoot::BigInt.not_null());
            let table = CatalogTable { schema: TableSchema::of_columns(vec![id]), ..CatalogTable::default() };
            catalog.create_object(&ObjectPath::new("db", "t"), CatalogObject::Table(table)).await.unwrap();
            let mut fork = Fork { catalog, folder, snapshots: Vec::new() };
            fork.append("a").await;
            fork.append("b").await;
            fork.alter("current-snapshot-id", fork.snapshots[0]).await.unwrap();
            fork.append("c").await;
            fork
        }

        async fn table(&self) -> IcebergTable {
            Arc::unwrap_or_clone(self.catalog.load("db", "t").await.unwrap().unwrap())
        }

        async fn append(&mut self, file: &str) {
            let table = self.table().await;
            let path = format!("file:{}/db/t/data/{file}.parquet", self.folder.path().display());
            let after: Table = append(table.catalog().as_ref(), table.table(), &path).await;
            self.snapshots.push(after.metadata().current_snapshot_id().unwrap());
        }

        async fn alter(&self, key: &str, snapshot: i64) -> Result<()> {
            let change = TableChange::SetOption { key: key.to_owned(), value: snapshot.to_string() };
            let path = ObjectPath::new("db", "t");
            self.catalog.alter_table(&path, CatalogTable::default(), &[change]).await
        }

        async fn files(&self) -> Vec<String> {
            let files = live_files(&self.table().await, None).await.unwrap();
            let name = |path: &str| path.rsplit('/').next().unwrap_or_default().replace(".parquet", "");
            let mut names: Vec<String> = files.iter().map(|file| name(file.data.file.file_path())).collect();
            names.sort();
            names
        }
    }

    #[tokio::test]
    async fn an_older_snapshot_is_shown_again_and_history_goes_on_from_it() {
        let fork = Fork::new().await;
        assert_eq!(fork.files().await, ["a", "c"]);
        fork.alter("current-snapshot-id", fork.snapshots[1]).await.unwrap();
        assert_eq!(fork.files().await, ["a", "b"]);
        let location = fork.table().await.table().metadata_location().map(str::to_owned);
        fork.alter("current-snapshot-id", fork.snapshots[1]).await.unwrap();
        assert_eq!(fork.table().await.table().metadata_location().map(str::to_owned), location);
        let error = fork.alter("current-snapshot-id", 7).await.unwrap_err();
        assert_eq!(error.message(), "Cannot roll back to unknown snapshot id: 7");
    }

    #[tokio::test]
    async fn a_snapshot_beside_the_history_is_taken_over_once() {
        let fork = Fork::new().await;
        let [first, second, third] = fork.snapshots[..] else { panic!("{:?}", fork.snapshots) };
        let pick = |snapshot| fork.alter("cherry-pick-snapshot-id", snapshot);
        pick(second).await.unwrap();
        assert_eq!(fork.files().await, ["a", "b", "c"]);
        let table = fork.table().await;
        let current = table.metadata().current_snapshot().unwrap();
        assert_eq!(current.parent_snapshot_id(), Some(third));
        assert_eq!(current.summary().additional_properties[SOURCE_SNAPSHOT], second.to_string());
        let refusal = async |snapshot| pick(snapshot).await.unwrap_err().message().to_owned();
        let created = current.snapshot_id();
        assert_eq!(
            refusal(second).await,
            format!("Cannot cherrypick snapshot {second}: already picked to create ancestor {created}")
        );
        assert_eq!(refusal(first).await, format!("Cannot cherrypick snapshot {first}: already an ancestor"));
        assert_eq!(refusal(7).await, "Cannot cherry-pick unknown snapshot ID: 7");
    }

    #[tokio::test]
    async fn a_snapshot_right_behind_the_current_one_is_only_shown() {
        let fork = Fork::new().await;
        fork.alter("current-snapshot-id", fork.snapshots[0]).await.unwrap();
        fork.alter("cherry-pick-snapshot-id", fork.snapshots[2]).await.unwrap();
        assert_eq!(fork.table().await.metadata().current_snapshot_id(), Some(fork.snapshots[2]));
    }
}
