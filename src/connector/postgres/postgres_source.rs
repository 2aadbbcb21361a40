//! A declared table of `postgres-cdc`: what it reads and how, as the planner and the reader ask for it.

use super::options::{ChangelogMode as DeclaredMode, SCAN_STARTUP_MODE, StartupMode, TruncatePolicy};
use super::reader::{PostgresReader, ReadPlan};
use super::row_shape::{Changes, Metadata, RowShape};
use super::settings::{ServerSettings, StreamSettings, TableSettings};
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::changelog::ChangelogMode;
use crate::connector::rows_decoder::RowsDecoder;
use crate::connector::{
    Boundedness, DynamicTableSource, FrameDecoder, MetadataColumn, Projection, ReaderContext, SourcePosition,
    SourceReader, TableRead,
};
use crate::error::{Error, Result};
use crate::options::OptionDef;
use crate::schema::Column;

/// A declared table.
#[derive(Debug)]
pub(super) struct PostgresSource {
    /// `catalog.database.table`.
    pub(super) table: String,
    /// The physical columns.
    pub(super) columns: Vec<Column>,
    /// The columns of the primary key; none if there is none.
    pub(super) key: Vec<String>,
    pub(super) changelog_mode: DeclaredMode,
    /// Whether every change is a row of its own.
    pub(super) is_append_only: bool,
    pub(super) server: ServerSettings,
    pub(super) stream: StreamSettings,
    pub(super) settings: TableSettings,
    /// What the user is told when a job starts.
    pub(super) notes: Vec<String>,
}

impl PostgresSource {
    /// Returns the rows that a projection asks for.
    ///
    /// # Errors
    /// It asks for what the table does not have.
    pub(super) fn shape(&self, projection: &Projection, wants_update_before: bool) -> Result<RowShape> {
        let unknown =
            || Error::internal(format!("a projection names columns that '{}' does not have", self.table));
        let physical =
            projection.physical.iter().map(|at| self.columns.get(*at).cloned().ok_or_else(unknown));
        let metadata = projection
            .metadata
            .iter()
            .map(|key| Metadata::ALL.into_iter().find(|metadata| metadata.key() == key).ok_or_else(unknown));
        let changes = match self.changelog_mode {
            _ if self.is_append_only => Changes::AppendOnly,
            DeclaredMode::All => Changes::All,
            DeclaredMode::Upsert => Changes::Upsert,
        };
        // Rows that are appended are all read; which there are is up to the mode.
        let wants_update_before = match changes {
            Changes::AppendOnly => self.changelog_mode == DeclaredMode::All,
            Changes::All => wants_update_before,
            Changes::Upsert => false,
        };
        let physical = physical.collect::<Result<Vec<_>>>()?;
        let place = |name: &String| physical.iter().position(|column: &Column| column.name == *name);
        Ok(RowShape {
            table: self.table.clone(),
            key: self.key.iter().map(place).collect::<Option<_>>().unwrap_or_default(),
            physical,
            metadata: metadata.collect::<Result<_>>()?,
            changes,
            wants_update_before,
            unrepresentable: self.settings.unrepresentable,
        })
    }
}

impl DynamicTableSource for PostgresSource {
    fn summary(&self) -> String {
        "PostgreSQL-CDC".to_owned()
    }

    fn changelog_mode(&self) -> ChangelogMode {
        match self.changelog_mode {
            // What a table holds does not change.
            _ if self.is_append_only || self.stream.startup == StartupMode::Snapshot => {
                ChangelogMode::INSERT_ONLY
            }
            DeclaredMode::All => ChangelogMode::ALL,
            DeclaredMode::Upsert => ChangelogMode::UPSERT,
        }
    }

    fn may_be_cleared(&self) -> bool {
        self.settings.truncate == TruncatePolicy::Delete
            && !self.is_append_only
            && self.stream.startup != StartupMode::Snapshot
    }

    fn boundedness(&self) -> Boundedness {
        match self.stream.startup {
            StartupMode::Snapshot => Boundedness::Bounded,
            _ => Boundedness::Unbounded,
        }
    }

    fn bounding_option(&self) -> Option<(&'static str, &'static str)> {
        Some((SCAN_STARTUP_MODE.key(), "snapshot"))
    }

    fn metadata_columns(&self) -> Vec<MetadataColumn> {
        let column = |metadata: Metadata| MetadataColumn {
            key: metadata.key(),
            data_type: metadata.data_type(),
            is_of_change: metadata.is_of_change(),
        };
        Metadata::ALL.into_iter().map(column).collect()
    }

    fn open(&self, _: &Projection, _: Option<&SourcePosition>) -> Result<Box<dyn SourceReader>> {
        Err(Error::internal(format!("'{}' is opened with all tables of its slot", self.table)))
    }

    fn group(&self) -> Option<String> {
        let slot = self.stream.slot.as_deref().unwrap_or_default();
        Some(format!("postgres-cdc {} {slot}", self.server.name()))
    }

    fn open_group(
        &self,
        tables: &[TableRead<'_>],
        context: &ReaderContext,
        start: Option<&SourcePosition>,
    ) -> Result<Box<dyn SourceReader>> {
        Ok(Box::new(PostgresReader::new(ReadPlan::new(tables, context)?, start)?))
    }

    fn forget_job<'a>(
        &'a self,
        tables: &'a [TableRead<'a>],
        context: &'a ReaderContext,
    ) -> BoxFuture<'a, Result<()>> {
        async move {
            if !self.stream.drops_slot_on_stop || !context.is_insert {
                return Ok(());
            }
            ReadPlan::new(tables, context)?.drop_slot().await
        }
        .boxed()
    }

    fn decoder(&self, _: &Projection) -> Result<Box<dyn FrameDecoder>> {
        Ok(Box::new(RowsDecoder))
    }
}
