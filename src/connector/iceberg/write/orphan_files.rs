//! Removes what a sink that was killed has left: files with its mark that no snapshot knows and no checkpoint is to commit.

use std::collections::{HashMap, HashSet};
use std::future::ready;
use std::sync::Arc;

use futures::TryStreamExt;
use iceberg::spec::ManifestFile;
use object_store::ObjectStore;
use object_store::path::Path;
use tracing::{info, warn};

use super::file_names::SinkFiles;
use crate::connector::iceberg::manifest::ManifestReader;
use crate::connector::iceberg::storage::store_error;
use crate::connector::iceberg::table::IcebergTable;
use crate::error::Result;

/// Removes the unfinished files of a sink, save those that are kept. Whoever calls this knows that the sink does not run.
///
/// # Errors
/// The folder cannot be listed, or a file cannot be removed.
pub(super) async fn remove_orphans(
    table: &IcebergTable,
    data_folder: &str,
    sink_id: &str,
    kept: &[&str],
) -> Result<()> {
    let of_sink = Arc::new(SinkFiles::of(sink_id));
    let unfinished = {
        let of_sink = Arc::clone(&of_sink);
        table.files().remove_unfinished(data_folder, move |name| of_sink.hold(name)).await?
    };
    if unfinished > 0 {
        info!(table = %table.ident(), files = unfinished, "files that a killed job has begun are removed");
    }
    let (store, folder) = table.files().resolve(data_folder)?;
    let is_ours = |path: &Path| path.filename().is_some_and(|name| of_sink.hold(name));
    let listed = list(store.as_ref(), &folder, is_ours).await;
    let mut found: HashMap<Path, String> = HashMap::new();
    for path in listed.map_err(|error| store_error("list", data_folder, error))? {
        let below = path.as_ref().strip_prefix(folder.as_ref()).unwrap_or(path.as_ref());
        let location = format!("{data_folder}/{}", below.trim_start_matches('/'));
        found.insert(path, location);
    }
    for location in kept {
        found.remove(&table.files().resolve(location)?.1);
    }
    if found.is_empty() {
        return Ok(());
    }
    if let Err(error) = keep_known(table, &mut found).await {
        // A file too many does no harm; one that is missed would.
        warn!(table = %table.ident(), %error, "files that a killed job has left stay, as the table's snapshots cannot be read");
        return Ok(());
    }
    info!(table = %table.ident(), files = found.len(), "files that a killed job has left are removed");
    table.files().delete_all(found.into_values()).await
}

/// Lists files that are wanted: of a large table only few are, and no others are kept.
async fn list(
    store: &dyn ObjectStore,
    folder: &Path,
    is_wanted: impl Fn(&Path) -> bool,
) -> object_store::Result<Vec<Path>> {
    let files = store.list(Some(folder)).map_ok(|file| file.location);
    let listed: Result<Vec<Path>, object_store::Error> =
        files.try_filter(|path| ready(is_wanted(path))).try_collect().await;
    match listed {
        Err(object_store::Error::NotFound { .. }) => Ok(Vec::new()),
        listed => listed,
    }
}

/// Takes files out that any snapshot knows.
async fn keep_known(table: &IcebergTable, found: &mut HashMap<Path, String>) -> Result<()> {
    let reader = ManifestReader::new(table, None);
    let mut seen = HashSet::new();
    for snapshot in table.metadata().snapshots() {
        let manifests = reader.list(snapshot).await?;
        let new: Vec<&ManifestFile> =
            manifests.iter().filter(|of| seen.insert(of.manifest_path.clone())).collect();
        let mut keep = |location: &str| {
            found.remove(&table.files().resolve(location)?.1);
            Ok(())
        };
        reader.for_each_location(&new, &mut keep).await?;
        if found.is_empty() {
            break;
        }
    }
    Ok(())
}
