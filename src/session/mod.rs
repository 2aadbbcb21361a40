//! One session: configuration, catalogs, and what statements do with them.
//!
//! `Session::execute` is the only way in; its match over all statements is in `execute`, and each family of statements has a
//! file in `statements`.

mod execute;
mod job_notes;
mod job_settings;
mod jobs;
mod like_pattern;
mod lookup;
mod modules;
pub mod reference;
mod result;
mod result_table;
mod schema_change;
mod statements;
mod table_definition;
mod table_like;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use crate::connector::{OutputPort, OutputStream, TABLE_FACTORIES, TableFactory};
pub use crate::format::{FORMAT_FACTORIES, FormatFactory};
pub use crate::runtime::JobStatus;
pub use jobs::{JobEnd, JobProgress, JobRegistry, JobSummary, StoppedJob};
pub use result::{
    JobId, ProgressProbe, QueryProgress, QueryResult, ResultColumn, ResultTable, StatementResult,
};

use modules::Modules;

use crate::catalog::{CatalogManager, CatalogStore, FileCatalogStore, ManagerSettings, MemoryCatalogStore};
use crate::connector::CATALOG_FACTORIES;
use crate::error::{Error, Result};
use crate::options::{
    BUILTIN_CATALOG_NAME, BUILTIN_DATABASE_NAME, CATALOG_STORE_KIND, CATALOG_STORE_PATH, OptionDef,
    SessionConfig,
};
use crate::sql;

/// What a session starts with.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    /// The configuration from files, the environment and flags; RESET goes back to it.
    pub defaults: BTreeMap<String, String>,
    /// Where connectors print lines for the user.
    pub output: Arc<dyn OutputPort>,
    /// The session's name in logs.
    pub session_id: String,
}

/// Reads what the catalogs start with.
fn manager_settings(config: &SessionConfig) -> Result<ManagerSettings> {
    let kind = config.get(&CATALOG_STORE_KIND)?;
    let store: Box<dyn CatalogStore> = match kind.as_str() {
        "generic_in_memory" => Box::new(MemoryCatalogStore::default()),
        "file" => {
            let path = config.get_optional(&CATALOG_STORE_PATH)?.filter(|path| !path.trim().is_empty());
            Box::new(FileCatalogStore::new(&path.ok_or_else(|| {
                Error::validation(format!(
                    "One or more required options are missing.\n\nMissing required options are:\n\n{}",
                    CATALOG_STORE_PATH.key()
                ))
                .hint("A catalog store of kind 'file' keeps its definitions in a directory.")
            })?))
        }
        other => {
            return Err(Error::validation(format!(
                "Could not find any factory for identifier '{other}' that implements 'org.apache.flink.table.factories.CatalogStoreFactory' in the classpath.\n\nAvailable factory identifiers are:\n\nfile\ngeneric_in_memory"
            ))
            .hint(format!("This is the value of option '{}'.", CATALOG_STORE_KIND.key())));
        }
    };
    Ok(ManagerSettings {
        builtin_catalog: config.get(&BUILTIN_CATALOG_NAME)?,
        builtin_database: config.get(&BUILTIN_DATABASE_NAME)?,
        store,
    })
}

/// One user's session.
#[derive(Debug)]
pub struct Session {
    id: String,
    output: Arc<dyn OutputPort>,
    config: SessionConfig,
    catalogs: CatalogManager,
    modules: Modules,
    jars: Vec<String>,
    jobs: Arc<JobRegistry>,
    /// The jobs that were started in the background.
    running: Vec<(JobId, tokio::task::JoinHandle<Result<()>>)>,
    /// How the first of them failed that did since `finish_jobs` last answered.
    failure: Option<Error>,
    /// Whether the user knows where checkpoints go that have no folder set.
    knows_checkpoint_folder: bool,
    /// The statements since BEGIN STATEMENT SET, each with its text.
    statement_set: Option<Vec<(sql::Statement, String)>>,
}

impl Session {
    /// Starts a session. Nothing is opened or read but the settings.
    ///
    /// # Errors
    /// A setting that is read at the start does not fit.
    pub fn new(settings: SessionSettings) -> Result<Session> {
        let SessionSettings { defaults, output, session_id } = settings;
        for (key, value) in &defaults {
            statements::check_default(key, value)?;
        }
        let config = SessionConfig::new(defaults);
        let catalogs = CatalogManager::new(CATALOG_FACTORIES, manager_settings(&config)?);
        Ok(Session {
            id: session_id,
            output,
            config,
            catalogs,
            modules: Modules::default(),
            jars: Vec::new(),
            jobs: Arc::default(),
            running: Vec::new(),
            failure: None,
            knows_checkpoint_folder: false,
            statement_set: None,
        })
    }

    /// Returns the session's name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns where connectors print lines for the user.
    pub fn output(&self) -> &Arc<dyn OutputPort> {
        &self.output
    }

    /// Returns the configuration.
    pub fn config(&self) -> &SessionConfig {
        &self.config
    }

    /// Returns the catalogs.
    pub fn catalogs(&self) -> &CatalogManager {
        &self.catalogs
    }

    /// Returns the jobs that the session has started.
    pub fn jobs(&self) -> &Arc<JobRegistry> {
        &self.jobs
    }

    /// Returns whether statements are being collected since BEGIN STATEMENT SET.
    pub fn is_in_statement_set(&self) -> bool {
        self.statement_set.is_some()
    }
}

/// Jobs end with their session.
impl Drop for Session {
    fn drop(&mut self) {
        self.cancel_jobs();
    }
}

#[cfg(test)]
mod equivalence;
#[cfg(test)]
mod graph_tests;
#[cfg(test)]
mod iceberg_recovery_tests;
#[cfg(test)]
mod recovery_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unfinished_files_tests;
