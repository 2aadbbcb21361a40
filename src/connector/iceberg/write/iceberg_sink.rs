//! The sink of a table: which writer its rows need, and what is refused before anything is written.

use std::sync::Arc;

use arrow::datatypes::{Schema as ArrowSchema, SchemaRef};
use async_trait::async_trait;
use iceberg::spec::{PartitionSpec, Transform};

use super::append_writer::AppendWriter;
use super::file_schema::WrittenColumns;
use super::iceberg_committer::IcebergCommitter;
use super::prepared_files::Replaced;
use super::upsert::{RowIdentity, UpsertWriter, state_tables};
use super::write_options::{ChangesWithoutKey, DistributionMode, WriteOptions};
use super::write_settings::WriteSettings;
use crate::changelog::{ChangelogMode, RowKind};
use crate::connector::iceberg::catalog::check_partition_keys;
use crate::connector::iceberg::commit::{check_row_deletes, lineage_of, newest_commit, reload_same};
use crate::connector::iceberg::snapshot_history::head;
use crate::connector::iceberg::table::IcebergTable;
use crate::connector::{
    CheckpointId, Committer, DynamicTableSink, FactoryContext, SinkWriter, WriterContext,
};
use crate::error::{Error, FlinkClass, Result};
use crate::state::StateTable;

/// A table to write.
#[derive(Debug)]
pub(super) struct IcebergSink {
    table: Arc<IcebergTable>,
    columns: WrittenColumns,
    /// The columns of the key, as positions among those that are written.
    key: Vec<usize>,
    options: WriteOptions,
}

/// How rows become files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteKind {
    /// Every row is appended, whatever its kind.
    Append,
    /// Rows are appended; of those of one key in one INSERT the last stays.
    LastOfKey,
    /// Rows replace and delete those of the same key.
    Upsert,
    /// Without key: a retraction takes one equal row away.
    Mirror,
}

impl IcebergSink {
    /// Makes the sink of a table.
    ///
    /// # Errors
    /// The options or the table's format do not fit.
    pub(super) fn new(table: &Arc<IcebergTable>, ctx: &FactoryContext<'_>) -> Result<IcebergSink> {
        let metadata = table.metadata();
        let options = WriteOptions::new(ctx, metadata)?;
        check_partition_keys(ctx, metadata)?;
        let fields: Vec<_> =
            ctx.schema.sink_columns().map(|column| column.data_type.to_field(&column.name)).collect();
        let rows: SchemaRef = Arc::new(ArrowSchema::new(fields));
        let columns = WrittenColumns::resolve(rows, metadata.current_schema(), &table.ident().to_string())?;
        let position = |name: &String| columns.rows().index_of(name).ok();
        let key = ctx.schema.primary_key.as_ref();
        let key = key.and_then(|key| key.columns.iter().map(position).collect()).unwrap_or_default();
        let sink = IcebergSink { table: Arc::clone(table), columns, key, options };
        // Whatever the properties ask for that cannot be done is said now.
        WriteSettings::new(&sink.options.properties(metadata), metadata)?;
        sink.check_upsert()?;
        if sink.options.is_overwrite && !sink.options.is_batch {
            return Err(unbounded_overwrite());
        }
        Ok(sink)
    }

    /// Refuses what `write.upsert.enabled` cannot go with, in Flink's words.
    fn check_upsert(&self) -> Result<()> {
        if !self.options.is_upsert {
            return Ok(());
        }
        let refused = |message: &str, class| Err(Error::validation(message).class(class));
        if self.key.is_empty() {
            return refused(
                "Equality field columns shouldn't be empty when configuring to use UPSERT data stream.",
                FlinkClass::ILLEGAL_STATE,
            );
        }
        let metadata = self.table.metadata();
        check_row_deletes(metadata, self.table.ident())?;
        let key_ids: Vec<i32> = self.key.iter().map(|at| self.columns.ids()[*at]).collect();
        let mut fields = metadata.default_partition_spec().fields().iter();
        if let Some(field) = fields.find(|field| !key_ids.contains(&field.source_id)) {
            let source = metadata.current_schema().name_by_field_id(field.source_id).unwrap_or_default();
            let (id, name, transform) = (field.field_id, &field.name, field.transform);
            let message = format!(
                "In UPSERT mode, source column '{source}' of partition field '{id}: {name}: {transform}({})', should be included in equality fields: '[]'",
                field.source_id
            );
            let rows = self.columns.rows();
            let key: Vec<&str> = self.key.iter().map(|at| rows.field(*at).name().as_str()).collect();
            let hint = format!(
                "The primary key is ({}). Without 'write.upsert.enabled', changes find the rows of their key in whatever partition they are; or let the key have '{source}'.",
                key.join(", ")
            );
            return refused(&message, FlinkClass::ILLEGAL_STATE).map_err(|error: Error| error.hint(hint));
        }
        Ok(())
    }

    /// Returns how rows of these kinds are written.
    pub(super) fn kind(&self, mode: ChangelogMode) -> WriteKind {
        let only_inserts = mode == ChangelogMode::INSERT_ONLY;
        match self.key.is_empty() {
            false if self.options.is_upsert || !only_inserts => WriteKind::Upsert,
            // Of a stream every row stays: what was appended before a checkpoint is no more than what came after it.
            false if self.options.is_batch => WriteKind::LastOfKey,
            true if !only_inserts && self.options.changes_without_key == ChangesWithoutKey::Mirror => {
                WriteKind::Mirror
            }
            _ => WriteKind::Append,
        }
    }

    /// Returns what tells rows apart, if rows of these kinds replace others.
    fn identity(&self, mode: ChangelogMode) -> Result<Option<RowIdentity>> {
        let schema = self.table.metadata().current_schema();
        match self.kind(mode) {
            WriteKind::Append | WriteKind::LastOfKey => Ok(None),
            WriteKind::Upsert => {
                let distribution = self.distribution(&self.key, mode);
                RowIdentity::of_key(&self.columns, schema, &self.key, &distribution).map(Some)
            }
            WriteKind::Mirror => RowIdentity::of_row(&self.columns, schema).map(Some),
        }
    }

    /// Refuses changes in tables that cannot hold deletes.
    fn check_changes(&self, table: &IcebergTable, replaced: Replaced) -> Result<()> {
        let name = table.ident();
        if replaced == Replaced::TouchedPartitions {
            return Err(Error::validation(format!(
                "table '{name}' cannot be overwritten by a query with updates and deletes"
            ))
            .hint("Run the query in batch mode, where it has none."));
        }
        check_row_deletes(table.metadata(), name)
    }

    fn check_overwrite(&self, ctx: &WriterContext) -> Result<bool> {
        let is_overwrite = ctx.overwrite || self.options.is_overwrite;
        if is_overwrite && self.options.is_upsert {
            return Err(Error::validation(
                "OVERWRITE mode shouldn't be enable when configuring to use UPSERT data stream.",
            )
            .class(FlinkClass::ILLEGAL_STATE)
            .hint(format!(
                "INSERT INTO replaces rows of table '{}' by their key; OVERWRITE needs 'upsert-enabled' = 'false'.",
                self.table.ident()
            )));
        }
        if is_overwrite && !self.options.is_batch {
            return Err(unbounded_overwrite());
        }
        Ok(is_overwrite)
    }

    /// Tells what was asked for and is done in another way.
    fn tell_differences(&self, ctx: &WriterContext) {
        if ctx.writer == 0 && self.options.distribution == DistributionMode::Range {
            ctx.output.tell(&format!(
                "Rows for '{}' are distributed by hash: the distribution mode 'range' is not known.",
                self.table.ident()
            ));
        }
    }

    /// Returns the columns that say which partition a row is in by their values alone.
    fn partition_columns(&self, spec: &PartitionSpec) -> Vec<usize> {
        let identities = spec.fields().iter().filter(|field| field.transform == Transform::Identity);
        identities
            .filter_map(|field| self.columns.ids().iter().position(|id| *id == field.source_id))
            .collect()
    }
}

fn unbounded_overwrite() -> Error {
    Error::validation("Unbounded data stream doesn't support overwrite operation.")
        .class(FlinkClass::ILLEGAL_STATE)
        .hint("SET 'execution.runtime-mode' = 'batch';")
}

#[async_trait]
impl DynamicTableSink for IcebergSink {
    fn summary(&self) -> String {
        "Iceberg".to_owned()
    }

    fn finds_rows_by_value(&self) -> bool {
        self.kind(ChangelogMode::ALL) == WriteKind::Mirror
    }

    fn changelog_mode(&self, requested: ChangelogMode) -> ChangelogMode {
        match self.kind(requested) {
            // Rows of one key come in order, or the planner puts them in order: what a row was before is not asked for.
            WriteKind::Upsert => requested.without(RowKind::UpdateBefore),
            WriteKind::Append | WriteKind::LastOfKey | WriteKind::Mirror => requested,
        }
    }

    fn streaming_overwrite_error(&self) -> Error {
        unbounded_overwrite()
    }

    fn supports_overwrite(&self) -> bool {
        true
    }

    fn can_replace_content(&self) -> bool {
        true
    }

    fn holds_rows(&self) -> Option<bool> {
        let metadata = self.table.metadata();
        let head = head(metadata, self.options.branch.as_deref());
        let Some(head) = head else { return Some(false) };
        head.summary().additional_properties.get("total-records").map(|records| records != "0")
    }

    fn newest_commit(&self, sink_id: &str) -> Option<CheckpointId> {
        newest_commit(self.table.metadata(), &lineage_of(sink_id))
    }

    fn has_single_writer(&self) -> bool {
        self.options.has_single_writer
    }

    fn commits_with_checkpoints(&self) -> bool {
        true
    }

    fn distribution(&self, keys: &[usize], mode: ChangelogMode) -> Vec<usize> {
        let partition = match self.options.distribution {
            DistributionMode::None => Vec::new(),
            _ => self.partition_columns(self.table.metadata().default_partition_spec()),
        };
        match self.kind(mode) {
            WriteKind::Append => partition,
            // Equal rows must meet.
            WriteKind::Mirror => (0..self.columns.ids().len()).collect(),
            // Rows of one key must meet; those of one partition may, where the key says the partition.
            _ if !partition.is_empty() && partition.iter().all(|column| keys.contains(column)) => partition,
            _ => keys.to_vec(),
        }
    }

    fn state_tables(&self, mode: ChangelogMode) -> Vec<StateTable> {
        // What cannot be told apart is refused when a writer is opened.
        self.identity(mode).ok().flatten().map_or_else(Vec::new, |identity| state_tables(&identity))
    }

    async fn open_writer(&self, ctx: WriterContext) -> Result<Box<dyn SinkWriter>> {
        let replaced = match self.check_overwrite(&ctx)? {
            _ if ctx.replaces_content => Replaced::Everything,
            true => Replaced::TouchedPartitions,
            false => Replaced::Nothing,
        };
        let table = reload_same(&self.table).await?;
        self.tell_differences(&ctx);
        let metadata = table.metadata();
        let settings = WriteSettings::new(&self.options.properties(metadata), metadata)?;
        let settings = settings.of_one_in(ctx.writer_count);
        if let Some(identity) = self.identity(ctx.mode)? {
            self.check_changes(&table, replaced)?;
            let (columns, options) = (self.columns.clone(), self.options.clone());
            return Ok(Box::new(UpsertWriter::new(table, columns, options, Arc::new(identity), &ctx)?));
        }
        let unique_key: &[usize] = match self.kind(ctx.mode) {
            WriteKind::LastOfKey => &self.key,
            _ => &[],
        };
        let sink = (ctx.sink_id.as_ref(), ctx.writer);
        let columns = self.columns.clone();
        Ok(Box::new(AppendWriter::new(table, columns, settings, sink, unique_key, replaced)?))
    }

    async fn open_committer(&self, ctx: WriterContext) -> Result<Box<dyn Committer>> {
        let identity = self.identity(ctx.mode)?.map(Arc::new);
        let table = reload_same(&self.table).await?;
        let (columns, options) = (self.columns.clone(), self.options.clone());
        Ok(Box::new(IcebergCommitter::new(table, columns, options, identity, &ctx.sink_id)))
    }
}
