//! A snapshot of a table as DataFusion reads it.

use std::any::Any;
use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::config::TableParquetOptions;
use datafusion::datasource::TableType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::{ProjectionExpr, ProjectionExprs};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::GlobalLimitExec;
use object_store::ObjectMeta;

use super::columns::{ReadColumn, name_mapping};
use super::deletes::{EqualityDeletes, PositionDeletes, key_columns};
use super::file_groups::deal;
use super::iceberg_file_source::{IcebergFileSource, ScanState};
use super::live_files::{LiveFile, PlannedFiles};
use super::parquet_files::ParquetFiles;
use super::prune::{Condition, Pruning, leave_most, statistics};
use super::scan_file::ScanFile;
use super::scan_target::ScanTarget;
use crate::connector::iceberg::manifest::ReadContext;
use crate::connector::iceberg::read_target::ReadTarget;
use crate::connector::iceberg::table::IcebergTable;
use crate::error::{Error, Result};

/// A snapshot of a table.
#[derive(Debug)]
pub(super) struct IcebergTableProvider {
    table: Arc<IcebergTable>,
    target: ScanTarget,
    /// The columns that can be asked for.
    columns: Vec<ReadColumn>,
    schema: SchemaRef,
    /// How many rows are read at most.
    limit: Option<usize>,
}

impl IcebergTableProvider {
    /// Reads the declared columns of a table, found by name.
    ///
    /// # Errors
    /// The Iceberg table has no such column, or it cannot be read as the declared type.
    pub(super) fn new(
        table: Arc<IcebergTable>,
        target: ScanTarget,
        declared: Vec<Field>,
    ) -> Result<IcebergTableProvider> {
        let column = |field: &Field| {
            let fields = target.schema.as_struct();
            let found = fields.field_by_name(field.name()).or_else(|| {
                fields.fields().iter().find(|other| other.name.eq_ignore_ascii_case(field.name()))
            });
            match found {
                Some(found) => ReadColumn::with_type(found, Arc::new(field.clone())),
                None => Err(Error::validation(format!(
                    "Iceberg table '{}' has no column '{}'",
                    table.ident(),
                    field.name()
                ))),
            }
        };
        let columns = declared.iter().map(column).collect::<Result<Vec<_>>>()?;
        let schema = Arc::new(Schema::new(declared));
        Ok(IcebergTableProvider { schema, table, target, columns, limit: None })
    }

    /// Reads no more rows than a limit, whatever becomes of them: conditions are evaluated behind it.
    pub(super) fn with_limit(self, limit: Option<usize>) -> IcebergTableProvider {
        IcebergTableProvider { limit, ..self }
    }

    /// Finds the files that may hold rows which fulfil the conditions.
    ///
    /// # Errors
    /// Metadata is missing or damaged.
    pub(super) async fn plan(&self, filters: &[Expr]) -> Result<PlannedFiles> {
        let condition = Condition::of_filters(filters, &self.columns);
        let pruning = Pruning::new(condition, self.table.metadata());
        self.target.plan(&self.table, Some(&pruning)).await
    }

    /// Returns the table.
    pub(super) fn table(&self) -> &IcebergTable {
        &self.table
    }

    /// Returns which rows are read.
    pub(super) fn rows(&self) -> &ReadTarget {
        &self.target.rows
    }

    /// Returns the same columns of other rows.
    pub(super) fn with_rows(&self, rows: ReadTarget) -> IcebergTableProvider {
        IcebergTableProvider {
            table: Arc::clone(&self.table),
            target: ScanTarget { rows, schema: Arc::clone(&self.target.schema) },
            columns: self.columns.clone(),
            schema: Arc::clone(&self.schema),
            limit: self.limit,
        }
    }

    /// Prepares to read some columns of files, one file after the other: what is read of delete files is kept for all of them.
    ///
    /// # Errors
    /// A column that equality deletes look at cannot be read.
    pub(super) fn prepare(&self, files: &[LiveFile], projection: &[usize]) -> Result<PreparedScan> {
        let columns: Arc<[ReadColumn]> = self.columns_of_scan(files)?.into();
        let state = self.scan_state(columns, ReadContext::new(&self.table, self.target.snapshot_id()))?;
        Ok(PreparedScan { state, projection: projection.to_vec() })
    }

    /// Reads a file in the order of its rows.
    ///
    /// # Errors
    /// Its format is not read, or the metadata does not fit it.
    pub(super) fn read_file(&self, scan: &PreparedScan, file: LiveFile) -> Result<SendableRecordBatchStream> {
        let (columns, context) = (&scan.state.columns, scan.state.files.context());
        let files = self.partitioned_files(vec![file], columns, &vec![false; columns.len()], context)?;
        let source = source(Arc::clone(&scan.state), &scan.projection, true, false);
        let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source))
            .with_file_groups(vec![FileGroup::new(files)])
            .build();
        Ok(DataSourceExec::from_data_source(config).execute(0, Arc::new(TaskContext::default()))?)
    }

    /// Makes the plan of a scan.
    async fn make_scan(
        &self,
        partitions: usize,
        projection: &[usize],
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planned = self.plan(filters).await?;
        let context = ReadContext::new(&self.table, self.target.snapshot_id());
        let columns: Arc<[ReadColumn]> = self.columns_of_scan(&planned.files)?.into();
        let wanted = self.wanted(&columns, projection, filters);
        let statistics = statistics::of_scan(&planned.files, &columns, &wanted);
        // Without conditions of its own a query may still have such that become known while it runs.
        let leaves_most = !filters.is_empty() && leave_most(filters, &columns, &statistics);
        let filters_rows = !leaves_most && !self.may_not_fit(filters);
        let files = self.partitioned_files(planned.files, &columns, &wanted, &context)?;
        let row_groups = |file: &PartitionedFile| {
            let extensions = file.extensions.as_ref()?;
            let file = extensions.downcast_ref::<ScanFile>()?;
            Some(file.live.data.file.split_offsets()?.to_vec())
        };
        let groups = deal(files, row_groups, partitions);
        let source = source(self.scan_state(columns, context)?, projection, filters_rows, leaves_most);
        // Files are opened through the table's own store; DataFusion only wants to know one.
        let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source))
            .with_file_groups(groups)
            .with_limit(limit)
            .with_statistics(statistics)
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    /// Returns whether conditions look at a column whose stored values may be too large for what it is declared as. DataFusion's reader
    /// makes text of an error that comes from evaluating a condition, so that its kind and its hint are lost.
    fn may_not_fit(&self, filters: &[Expr]) -> bool {
        let is_narrow = |name: &str| {
            let field = self.schema.field_with_name(name);
            field.is_ok_and(|field| matches!(field.data_type(), ArrowType::Int8 | ArrowType::Int16))
        };
        filters.iter().flat_map(Expr::column_refs).any(|column| is_narrow(&column.name))
    }

    /// Returns the table's columns, and behind them those that only equality deletes look at: keys are compared as Iceberg has them,
    /// whatever the column is read as.
    fn columns_of_scan(&self, files: &[LiveFile]) -> Result<Vec<ReadColumn>> {
        let mut columns = self.columns.clone();
        let groups = files.iter().flat_map(|live| &live.deletes.equality);
        for key in key_columns(&self.table, &self.target.schema, groups)? {
            let is_key = |column: &ReadColumn| {
                column.id == key.id && column.field.data_type() == key.field.data_type()
            };
            if !columns.iter().any(is_key) {
                columns.push(key);
            }
        }
        Ok(columns)
    }

    /// Says of which columns statistics are wanted.
    fn wanted(&self, columns: &[ReadColumn], projection: &[usize], filters: &[Expr]) -> Vec<bool> {
        let mut wanted = vec![false; columns.len()];
        projection.iter().for_each(|index| wanted[*index] = true);
        for column in filters.iter().flat_map(Expr::column_refs) {
            if let Ok(index) = self.schema.index_of(&column.name) {
                wanted[index] = true;
            }
        }
        wanted
    }

    fn partitioned_files(
        &self,
        files: Vec<LiveFile>,
        columns: &[ReadColumn],
        wanted: &[bool],
        context: &ReadContext,
    ) -> Result<Vec<PartitionedFile>> {
        let file = |live: LiveFile| {
            let (_, location) = self.table.files().resolve(live.data.file.file_path())?;
            let meta = ObjectMeta {
                location,
                last_modified: Default::default(),
                size: live.data.file.file_size_in_bytes(),
                e_tag: None,
                version: None,
            };
            let mut file = PartitionedFile::new_from_meta(meta);
            file.statistics = Some(Arc::new(statistics::of_file(&live, columns, wanted)));
            let scan_file = ScanFile::new(live, self.table.metadata(), columns, context)?;
            Ok(file.with_extensions(Arc::new(scan_file)))
        };
        files.into_iter().map(file).collect()
    }

    /// Makes what all files of a scan share.
    fn scan_state(&self, columns: Arc<[ReadColumn]>, context: ReadContext) -> Result<Arc<ScanState>> {
        let files = ParquetFiles::new(self.table.files().clone(), context);
        let mapping = name_mapping(&self.table)?;
        let by_id = columns.iter().map(|column| (column.id, column.clone())).collect();
        Ok(Arc::new(ScanState {
            columns,
            mapping: mapping.clone(),
            positions: PositionDeletes::new(files.clone()),
            equality: EqualityDeletes::new(files.clone(), mapping, by_id),
            files,
        }))
    }
}

/// What the files of a scan share that are read one by one.
#[derive(Debug)]
pub(super) struct PreparedScan {
    state: Arc<ScanState>,
    projection: Vec<usize>,
}

/// Makes DataFusion's source of some columns of a scan. With `filters_rows` it evaluates conditions row by row; files, row groups and
/// pages are ruled out in any case. `leaves_most` says that the conditions are hardly worth it.
fn source(
    scan: Arc<ScanState>,
    projection: &[usize],
    filters_rows: bool,
    leaves_most: bool,
) -> IcebergFileSource {
    let columns = &scan.columns;
    let fields: Vec<Field> = columns
        .iter()
        .enumerate()
        .map(|(place, column)| column.field.as_ref().clone().with_name(internal_name(place, column.id)))
        .collect();
    let expr = |index: &usize| ProjectionExpr {
        expr: Arc::new(Column::new(fields[*index].name(), *index)),
        alias: columns[*index].field.name().clone(),
    };
    let exprs = ProjectionExprs::new(projection.iter().map(expr));
    let parquet = ParquetSource::new(Arc::new(Schema::new(fields)))
        .with_table_parquet_options(parquet_options(filters_rows));
    IcebergFileSource::new(parquet, exprs, scan, leaves_most)
}

/// A name that no column of a file has.
fn internal_name(place: usize, id: i32) -> String {
    format!("\u{1}{place}.{id}")
}

/// How DataFusion reads Parquet.
fn parquet_options(filters_rows: bool) -> TableParquetOptions {
    let mut options = TableParquetOptions::default();
    options.global.pushdown_filters = filters_rows;
    options.global.reorder_filters = false;
    options.global.enable_page_index = true;
    options.global.bloom_filter_on_read = true;
    // Spark's old timestamps.
    options.global.coerce_int96 = Some("us".to_owned());
    options
}

#[async_trait]
impl TableProvider for IcebergTableProvider {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> DataFusionResult<Vec<TableProviderFilterPushDown>> {
        // Files are ruled out by them here; which of them the reader evaluates is settled with the physical plan.
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let projection = projection.unwrap_or(&all);
        let Some(most) = self.limit else {
            return Ok(self
                .make_scan(state.config().target_partitions(), projection, filters, limit)
                .await?);
        };
        // One partition, so that the rows are always the same ones.
        let most = limit.map_or(most, |limit| limit.min(most));
        let scan = self.make_scan(1, projection, &[], Some(most)).await?;
        Ok(Arc::new(GlobalLimitExec::new(scan, 0, Some(most))))
    }
}
