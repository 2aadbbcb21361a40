//! The scan of data files: DataFusion's Parquet source, told per file which columns are where and which rows are deleted.
//!
//! The columns of its schema have names that no file uses, because DataFusion matches some things by name before it asks us; the
//! projection gives them their own. Delete files are read when the first file that they apply to is opened, not while planning.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::{and, filter_record_batch};
use datafusion::common::config::ConfigOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::RowGroupAccessPlanFilter;
use datafusion::datasource::physical_plan::{
    FileOpenFuture, FileOpener, FileScanConfig, FileSource, ParquetSource,
};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::physical_expr::projection::{ProjectionExpr, ProjectionExprs};
use datafusion::physical_expr::{PhysicalExpr, expressions::Column};
use datafusion::physical_expr_common::physical_expr::is_dynamic_physical_expr;
use datafusion::physical_plan::DisplayFormatType;
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPropagation, PushedDown};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use iceberg::spec::NameMapping;
use object_store::ObjectStore;
use roaring::RoaringTreemap;
use tokio::sync::OnceCell;

use super::columns::{ColumnAdapterFactory, ReadColumn};
use super::deletes::{
    DeletedKeys, EqualityDeletes, EqualityGroup, LONG_RUN, LiveRows, PositionDeletes, access_plan, key_ids,
};
use super::parquet_files::{DataFileReaders, ParquetFiles};
use super::pushdown::for_reader;
use super::scan_file::ScanFile;
use crate::connector::iceberg::manifest::FileRole;
use crate::error::Error;

/// What all files of a scan share.
#[derive(Debug)]
pub(super) struct ScanState {
    /// The columns of the source's schema: those of the table, then those that only equality deletes look at.
    pub(super) columns: Arc<[ReadColumn]>,
    /// The table's name mapping.
    pub(super) mapping: Option<Arc<NameMapping>>,
    /// Opens files.
    pub(super) files: ParquetFiles,
    /// Reads position deletes.
    pub(super) positions: PositionDeletes,
    /// Reads equality deletes.
    pub(super) equality: EqualityDeletes,
}

/// A Parquet source whose files are an Iceberg table's.
#[derive(Clone)]
pub(super) struct IcebergFileSource {
    /// Conditions and settings; its own projection is the whole schema.
    parquet: ParquetSource,
    projection: ProjectionExprs,
    scan: Arc<ScanState>,
    /// Whether nearly all rows pass the conditions that are known before the query runs.
    leaves_most: bool,
}

impl fmt::Debug for IcebergFileSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IcebergFileSource").finish_non_exhaustive()
    }
}

impl IcebergFileSource {
    /// Wraps a Parquet source whose schema is that of the scan.
    pub(super) fn new(
        parquet: ParquetSource,
        projection: ProjectionExprs,
        scan: Arc<ScanState>,
        leaves_most: bool,
    ) -> IcebergFileSource {
        IcebergFileSource { parquet, projection, scan, leaves_most }
    }

    /// Returns the source that was made of a Parquet source of the same kind.
    fn with_parquet(&self, source: &Arc<dyn FileSource>) -> DataFusionResult<Arc<dyn FileSource>> {
        let parquet =
            source.as_any().downcast_ref::<ParquetSource>().cloned().ok_or_else(|| {
                DataFusionError::Internal("a Parquet source has become another one".to_owned())
            })?;
        Ok(Arc::new(IcebergFileSource { parquet, ..self.clone() }))
    }
}

impl FileSource for IcebergFileSource {
    fn create_file_opener(
        &self,
        object_store: Arc<dyn ObjectStore>,
        base_config: &FileScanConfig,
        partition: usize,
    ) -> DataFusionResult<Arc<dyn FileOpener>> {
        // The opener makes one of DataFusion's per file; it needs no list of files for that.
        let mut config = base_config.clone();
        config.file_groups = Vec::new();
        Ok(Arc::new(IcebergFileOpener(Arc::new(OpenerState {
            source: self.clone(),
            object_store,
            config,
            partition,
        }))))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn table_schema(&self) -> &TableSchema {
        self.parquet.table_schema()
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        let sized = self.parquet.with_batch_size(batch_size);
        self.with_parquet(&sized).unwrap_or_else(|_| Arc::new(self.clone()))
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.parquet.filter()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection)
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.parquet.metrics()
    }

    fn file_type(&self) -> &str {
        "iceberg"
    }

    fn fmt_extra(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parquet.fmt_extra(t, f)
    }

    /// The scan has dealt its files out already.
    fn repartitioned(
        &self,
        _: usize,
        _: usize,
        _: Option<datafusion::physical_expr::LexOrdering>,
        _: &FileScanConfig,
    ) -> DataFusionResult<Option<FileScanConfig>> {
        Ok(None)
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> DataFusionResult<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let schema = self.table_schema().table_schema();
        let taken =
            filters.iter().map(|filter| for_reader(filter, schema)).collect::<DataFusionResult<Vec<_>>>()?;
        let offered: Vec<_> = taken.iter().flatten().cloned().collect();
        let mut outcome = self.parquet.try_pushdown_filters(offered, config)?;
        let mut answers = outcome.filters.into_iter();
        outcome.filters = taken
            .iter()
            .map(|filter| filter.as_ref().and_then(|_| answers.next()).unwrap_or(PushedDown::No))
            .collect();
        let updated = outcome.updated_node.map(|source| self.with_parquet(&source)).transpose()?;
        Ok(FilterPushdownPropagation { filters: outcome.filters, updated_node: updated })
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> DataFusionResult<Option<Arc<dyn FileSource>>> {
        let projection = self.projection.try_merge(projection)?;
        Ok(Some(Arc::new(IcebergFileSource { projection, ..self.clone() })))
    }
}

/// Opens files of one partition.
struct IcebergFileOpener(Arc<OpenerState>);

struct OpenerState {
    source: IcebergFileSource,
    object_store: Arc<dyn ObjectStore>,
    config: FileScanConfig,
    partition: usize,
}

/// What the reader of one file must know.
struct Reading<'a> {
    has_deleted_rows: bool,
    /// Whether all rows of its plan are to be returned, whatever the conditions.
    returns_all_rows: bool,
    equality: Option<&'a EqualityFilter>,
}

/// Equality deletes that apply to a file.
struct EqualityFilter {
    /// Each group's keys, and where in a batch its columns are.
    groups: Vec<(Arc<OnceCell<DeletedKeys>>, Vec<usize>)>,
    /// How many columns of a batch are the scan's own.
    kept: usize,
    sequence_number: i64,
}

impl FileOpener for IcebergFileOpener {
    fn open(&self, file: PartitionedFile) -> DataFusionResult<FileOpenFuture> {
        let state = Arc::clone(&self.0);
        let scan_file = file
            .extensions
            .clone()
            .and_then(|extensions| extensions.downcast::<ScanFile>().ok())
            .ok_or_else(|| DataFusionError::Internal("a file is not of an Iceberg scan".to_owned()))?;
        Ok(async move { state.open(file, scan_file).await }.boxed())
    }
}

impl OpenerState {
    async fn open(
        &self,
        mut file: PartitionedFile,
        scan_file: Arc<ScanFile>,
    ) -> DataFusionResult<BoxStream<'static, DataFusionResult<RecordBatch>>> {
        let scan = &self.source.scan;
        let (live, location) = (&scan_file.live, Arc::clone(&scan_file.location));
        file.extensions = None;
        let mut live_rows = None;
        if live.deletes.has_positions() {
            let deleted = scan.positions.of_file(&location, &live.deletes).await?;
            if !deleted.is_empty() {
                live_rows = self.leave_out(&mut file, &location, deleted).await?;
            }
        }
        let equality = self.equality_filter(&scan_file).await?;
        let reading = Reading {
            has_deleted_rows: file.extensions.is_some(),
            returns_all_rows: live_rows.is_some(),
            equality: equality.as_ref(),
        };
        let opener = self.parquet_opener(&scan_file, &reading)?;
        let stream = opener.open(file)?.await.map_err(|error| self.named(&location, error))?;
        let scan = Arc::clone(&self.source.scan);
        let stream = stream.map(move |batch| {
            let mut batch =
                batch.map_err(|error| scan.files.error_of(FileRole::DataFile, &location, error))?;
            if let Some(live_rows) = &mut live_rows {
                batch = live_rows.of(batch)?;
            }
            match &equality {
                Some(equality) => Ok(equality.apply(&batch)?),
                None => Ok(batch),
            }
        });
        Ok(stream.boxed())
    }

    /// Tells the reader which rows of a file it need not read; what it cannot be told well is taken out of its batches.
    async fn leave_out(
        &self,
        file: &mut PartitionedFile,
        location: &str,
        deleted: RoaringTreemap,
    ) -> DataFusionResult<Option<LiveRows>> {
        let files = &self.source.scan.files;
        let mut reader = files.open(FileRole::DataFile, location, file.object_meta.size)?;
        let footer = reader.footer().await.map_err(|error| self.named(location, error.into()))?;
        let row_groups = footer.row_groups();
        if !self.may_return_all_rows() {
            file.extensions = Some(Arc::new(access_plan(row_groups, &deleted, 1)));
            return Ok(None);
        }
        let mut plan = RowGroupAccessPlanFilter::new(access_plan(row_groups, &deleted, LONG_RUN));
        if let Some(range) = &file.range {
            plan.prune_by_range(row_groups, range);
        }
        let plan = plan.build();
        let live_rows = LiveRows::new(&plan, row_groups, deleted);
        file.extensions = Some(Arc::new(plan));
        Ok(Some(live_rows))
    }

    /// Returns whether the reader may be kept from looking at conditions: they are evaluated above it, leave most rows and will not
    /// become narrower while the query runs.
    fn may_return_all_rows(&self) -> bool {
        let IcebergFileSource { parquet, leaves_most, .. } = &self.source;
        parquet.filter().is_none_or(|filter| *leaves_most && !is_dynamic_physical_expr(&filter))
    }

    fn named(&self, location: &str, error: DataFusionError) -> Error {
        self.source.scan.files.error_of(FileRole::DataFile, location, error)
    }

    /// Makes DataFusion's opener for one file.
    fn parquet_opener(
        &self,
        file: &ScanFile,
        reading: &Reading<'_>,
    ) -> DataFusionResult<Arc<dyn FileOpener>> {
        let scan = &self.source.scan;
        let readers = DataFileReaders { files: scan.files.clone(), location: Arc::clone(&file.location) };
        let mut parquet = self.source.parquet.clone().with_parquet_file_reader_factory(Arc::new(readers));
        if reading.returns_all_rows {
            let mut options = parquet.table_parquet_options().clone();
            options.global.pruning = false;
            options.global.enable_page_index = false;
            options.global.bloom_filter_on_read = false;
            parquet = parquet.with_table_parquet_options(options);
        }
        let mut config = self.config.clone();
        config.expr_adapter_factory = Some(Arc::new(ColumnAdapterFactory {
            columns: Arc::clone(&scan.columns),
            constants: Arc::clone(&file.constants),
            mapping: scan.mapping.clone(),
        }));
        // DataFusion reads only as many row groups as the limit needs, and counts rows for that which conditions and deletes take
        // away. The stream of files stops at the limit in any case.
        if reading.has_deleted_rows || reading.equality.is_some() || parquet.filter().is_some() {
            config.limit = None;
        }
        let projection = match reading.equality {
            Some(_) => &self.with_key_columns(&file.live.deletes.equality)?,
            None => &self.source.projection,
        };
        match parquet.try_pushdown_projection(projection)? {
            Some(source) => {
                source.create_file_opener(Arc::clone(&self.object_store), &config, self.partition)
            }
            None => Err(DataFusionError::Internal("a Parquet source takes no projection".to_owned())),
        }
    }

    /// Returns the projection with the columns of equality deletes behind the scan's own.
    fn with_key_columns(&self, groups: &[Arc<EqualityGroup>]) -> DataFusionResult<ProjectionExprs> {
        let mut exprs: Vec<ProjectionExpr> = self.source.projection.iter().cloned().collect();
        for id in key_ids(groups) {
            let index = self.source.scan.key_index(id)?;
            let name = self.source.table_schema().table_schema().field(index).name();
            let expr = Arc::new(Column::new(name, index));
            exprs.push(ProjectionExpr { expr, alias: format!("{name} of key") });
        }
        Ok(ProjectionExprs::new(exprs))
    }

    async fn equality_filter(&self, file: &ScanFile) -> DataFusionResult<Option<EqualityFilter>> {
        let applying = &file.live.deletes.equality;
        if applying.is_empty() {
            return Ok(None);
        }
        let kept = self.source.projection.iter().count();
        let ids = key_ids(applying);
        let mut groups = Vec::with_capacity(applying.len());
        for group in applying {
            let keys = self.source.scan.equality.keys_of(group).await?;
            let places = group.field_ids.iter().filter_map(|id| ids.iter().position(|other| other == id));
            groups.push((keys, places.map(|place| kept + place).collect()));
        }
        Ok(Some(EqualityFilter { groups, kept, sequence_number: file.live.data_sequence_number }))
    }
}

impl ScanState {
    /// Returns where the key that a field is in equality deletes is among the columns: behind those that are read as declared.
    fn key_index(&self, id: i32) -> DataFusionResult<usize> {
        let position = self.columns.iter().rposition(|column| column.id == id);
        position.ok_or_else(|| DataFusionError::Internal(format!("field {id} is not read")))
    }
}

impl EqualityFilter {
    /// Takes deleted rows out, and the columns that told them.
    fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch, Error> {
        let mut left = None;
        for (keys, places) in &self.groups {
            let Some(keys) = keys.get() else {
                return Err(Error::internal("equality deletes are not there"));
            };
            let columns: Vec<ArrayRef> =
                places.iter().map(|place| Arc::clone(batch.column(*place))).collect();
            let of_group = keys.left(&columns, self.sequence_number)?;
            left = Some(match left {
                Some(left) => and(&left, &of_group)?,
                None => of_group,
            });
        }
        let own = batch.project(&(0..self.kept).collect::<Vec<_>>())?;
        match left {
            Some(left) if left.has_false() => Ok(filter_record_batch(&own, &left)?),
            _ => Ok(own),
        }
    }
}
