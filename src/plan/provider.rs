//! A connector's source as a table of DataFusion: what its scan reads, and how frames are decoded by several workers at once
//! without losing their order.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Statistics;
use datafusion::common::runtime::SpawnedTask;
use datafusion::datasource::{TableType, provider_as_source};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableSource};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness as PlanBoundedness, EmissionType};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use futures::{Stream, StreamExt, TryStreamExt, stream};

use super::scan_progress::BYTES_SCANNED;
use super::tables::BoundTable;
use crate::catalog::CatalogTable;
use crate::changelog::ChangelogBatch;
use crate::connector::{
    Boundedness, DynamicTableSource, Frame, FrameDecoder, MetadataColumn, Projection, ReaderContext,
    SourceEvent, TableRead,
};
use crate::error::{Error, Result};
use crate::schema::{ColumnKind, DataType};

/// A source with the columns that a table declares on it: physical ones, then metadata.
#[derive(Debug, Clone)]
pub(crate) struct SourceTable {
    /// The table's name in full.
    pub(crate) name: String,
    /// The source.
    pub(crate) source: Arc<dyn DynamicTableSource>,
    /// The table's definition, hints merged into the options: what two scans of one table have in common.
    pub(crate) definition: Arc<CatalogTable>,
    /// The columns as they are read.
    schema: SchemaRef,
    /// How many of them are physical.
    physical_count: usize,
    /// The metadata columns' connector types and keys, by column name.
    metadata: HashMap<String, (DataType, String)>,
    /// The metadata keys, in the order of the schema.
    metadata_keys: Vec<String>,
    /// Which of them tell of changes and not of rows.
    of_change: Vec<bool>,
}

impl SourceTable {
    /// Makes the source of a table.
    ///
    /// # Errors
    /// The options do not fit, or a metadata column names what the connector does not offer.
    pub(crate) fn create(table: &BoundTable) -> Result<SourceTable> {
        let (factory, options) = table.factory()?;
        let name = table.identifier.to_string();
        let source = factory.create_source(&table.context(&name, &options))?;
        let mut fields: Vec<_> = table
            .table
            .schema
            .physical_columns()
            .map(|column| column.data_type.to_field(&column.name))
            .collect();
        let physical_count = fields.len();
        let offered = source.metadata_columns();
        let (mut metadata, mut metadata_keys, mut of_change) = (HashMap::new(), Vec::new(), Vec::new());
        for column in &table.table.schema.columns {
            let ColumnKind::Metadata { key, .. } = &column.kind else { continue };
            let key = key.as_ref().unwrap_or(&column.name);
            let found = offered
                .iter()
                .find(|offered| offered.key == key)
                .ok_or_else(|| invalid_metadata_key(key, &column.name, &name, &offered))?;
            fields.push(found.data_type.to_field(&column.name));
            metadata.insert(column.name.clone(), (found.data_type.clone(), key.clone()));
            metadata_keys.push(key.clone());
            of_change.push(found.is_of_change);
        }
        Ok(SourceTable {
            name,
            source,
            definition: Arc::clone(&table.table),
            schema: Arc::new(Schema::new(fields)),
            physical_count,
            metadata,
            metadata_keys,
            of_change,
        })
    }

    /// Makes the source of a table `t` of physical columns, for graphs that tests build by hand.
    #[cfg(test)]
    pub(crate) fn of_source(source: Arc<dyn DynamicTableSource>, schema: SchemaRef) -> SourceTable {
        let definition = CatalogTable {
            schema: crate::schema::TableSchema::of_columns(Vec::new()),
            comment: None,
            partition_keys: Vec::new(),
            distribution: None,
            options: Default::default(),
            handle: Default::default(),
        };
        SourceTable {
            name: "t".to_owned(),
            source,
            definition: Arc::new(definition),
            physical_count: schema.fields().len(),
            schema,
            metadata: HashMap::new(),
            metadata_keys: Vec::new(),
            of_change: Vec::new(),
        }
    }

    /// Returns the columns as they are read: physical ones, then metadata.
    pub(crate) fn read_schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the primary key, as positions among the columns that are read.
    pub(crate) fn key_columns(&self) -> Option<Vec<usize>> {
        let key = self.definition.schema.primary_key.as_ref()?;
        key.columns.iter().map(|column| self.schema.index_of(column).ok()).collect()
    }

    /// Returns which of the columns tell of changes and not of rows, by their positions in the schema.
    pub(crate) fn columns_of_change(&self, columns: &[usize]) -> Vec<usize> {
        let is_of_change = |column: &usize| {
            column.checked_sub(self.physical_count).is_some_and(|metadata| self.of_change[metadata])
        };
        columns.iter().copied().filter(is_of_change).collect()
    }

    /// Returns whether metadata columns are declared.
    pub(crate) fn has_metadata(&self) -> bool {
        !self.metadata.is_empty()
    }

    /// Returns the connector's type of a metadata column.
    pub(crate) fn metadata_type(&self, column: &str) -> Option<DataType> {
        self.metadata.get(column).map(|(data_type, _)| data_type.clone())
    }

    /// Returns the table as DataFusion's planner wants it.
    pub(crate) fn as_table_source(&self) -> Arc<dyn TableSource> {
        provider_as_source(Arc::new(self.clone()))
    }

    /// Returns the projection of a decoder for columns of the schema; metadata columns must stand behind physical ones.
    pub(crate) fn projection(&self, columns: &[usize]) -> Projection {
        let (physical, metadata): (Vec<usize>, Vec<usize>) =
            columns.iter().partition(|column| **column < self.physical_count);
        let metadata =
            metadata.iter().map(|column| self.metadata_keys[*column - self.physical_count].clone()).collect();
        Projection { physical, metadata }
    }

    /// Reads the given columns: opens a reader and decodes up to `workers` frames at a time, in order. Counts the bytes of frames.
    fn read(
        &self,
        columns: &[usize],
        workers: usize,
        bytes: Count,
    ) -> Result<impl Stream<Item = Result<ChangelogBatch>> + Send + use<>> {
        let projection = self.projection(columns);
        let table = TableRead {
            name: &self.name,
            source: self.source.as_ref(),
            projection: projection.clone(),
            wants_update_before: true,
        };
        let reader = self.source.open_group(&[table], &ReaderContext::batch(workers), None)?;
        let decoder = self.source.decoder(&projection)?;
        let decoders = Arc::new(DecoderPool {
            source: Arc::clone(&self.source),
            projection,
            idle: Mutex::new(vec![decoder]),
        });
        let frames = stream::try_unfold(reader, |mut reader| async move {
            loop {
                match reader.next().await? {
                    SourceEvent::Frame(frame) | SourceEvent::Part { frame, .. } => {
                        return Ok(Some((frame, reader)));
                    }
                    SourceEvent::Boundary => {}
                    SourceEvent::EndOfInput => return Ok(None),
                }
            }
        });
        let decoded = frames
            .map(move |frame: Result<Frame>| {
                if let Ok(Frame::Bytes { data, .. }) = &frame {
                    bytes.add(data.len());
                }
                let decoders = Arc::clone(&decoders);
                async move {
                    let frame = frame?;
                    if workers == 1 {
                        return decoders.decode(&frame);
                    }
                    let task = SpawnedTask::spawn(async move { decoders.decode(&frame) });
                    task.join_unwind()
                        .await
                        .map_err(|error| Error::internal("a decoder stopped").caused_by(error))?
                }
            })
            .buffered(workers);
        Ok(decoded.map_ok(|batches| stream::iter(batches.into_iter().map(Ok))).try_flatten())
    }
}

/// Makes Flink's error for a metadata column without a source.
fn invalid_metadata_key(key: &str, column: &str, table: &str, offered: &[MetadataColumn]) -> Error {
    let keys: Vec<&str> = offered.iter().map(|column| column.key).collect();
    Error::validation(format!(
        "Invalid metadata key '{key}' in column '{column}' of table '{table}'. The table source supports the following metadata keys for reading:\n{}",
        keys.join("\n")
    ))
}

/// Decoders that no worker uses now.
struct DecoderPool {
    source: Arc<dyn DynamicTableSource>,
    projection: Projection,
    idle: Mutex<Vec<Box<dyn FrameDecoder>>>,
}

impl DecoderPool {
    /// Decodes a frame with an idle decoder, or a new one.
    fn decode(&self, frame: &Frame) -> Result<Vec<ChangelogBatch>> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut decoder = match idle {
            Some(decoder) => decoder,
            None => self.source.decoder(&self.projection)?,
        };
        let decoded = decoder.decode(frame);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(decoder);
        decoded
    }
}

#[async_trait]
impl TableProvider for SourceTable {
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
    ) -> datafusion::error::Result<Vec<TableProviderFilterPushDown>> {
        match self.source.table_provider() {
            Some(provider) => provider.supports_filters_pushdown(filters),
            None => Ok(vec![TableProviderFilterPushDown::Unsupported; filters.len()]),
        }
    }

    fn statistics(&self) -> Option<Statistics> {
        self.source.table_provider()?.statistics()
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> datafusion::error::Result<Arc<dyn ExecutionPlan>> {
        if let Some(provider) = self.source.table_provider() {
            return provider.scan(state, projection, filters, limit).await;
        }
        let columns = projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        Ok(Arc::new(ScanExec::new(self.clone(), columns)))
    }
}

/// The scan of a source: one partition, decoded by all cores.
#[derive(Debug)]
struct ScanExec {
    table: SourceTable,
    columns: Vec<usize>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// Returns about how many bytes a scan of ours reads; None for other plans, and where it is not known.
pub(super) fn scan_bytes(plan: &dyn ExecutionPlan) -> Option<u64> {
    plan.as_any().downcast_ref::<ScanExec>()?.table.source.estimated_bytes()
}

impl ScanExec {
    /// Makes a scan of the given columns.
    fn new(table: SourceTable, columns: Vec<usize>) -> ScanExec {
        let schema = Arc::new(Schema::new(
            columns.iter().map(|column| Arc::clone(&table.schema.fields()[*column])).collect::<Vec<_>>(),
        ));
        let boundedness = match table.source.boundedness() {
            Boundedness::Bounded => PlanBoundedness::Bounded,
            Boundedness::Unbounded => PlanBoundedness::Unbounded { requires_infinite_memory: false },
        };
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            boundedness,
        ));
        ScanExec { table, columns, schema, properties, metrics: ExecutionPlanMetricsSet::new() }
    }
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableSourceScan: table={}", self.table.name)
    }
}

impl ExecutionPlan for ScanExec {
    fn name(&self) -> &'static str {
        "TableSourceScan"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> datafusion::error::Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> datafusion::error::Result<SendableRecordBatchStream> {
        // The columns that a decoder yields are physical ones first; the plan may want another order.
        let mut ordered = self.columns.clone();
        ordered.sort_by_key(|column| *column >= self.table.physical_count);
        let order: Vec<usize> = self
            .columns
            .iter()
            .filter_map(|column| ordered.iter().position(|other| other == column))
            .collect();
        let is_ordered = order.iter().enumerate().all(|(at, from)| at == *from);
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let schema = Arc::clone(&self.schema);
        let bytes = MetricBuilder::new(&self.metrics).counter(BYTES_SCANNED, 0);
        let row_count = MetricBuilder::new(&self.metrics).output_rows(0);
        let rows = self.table.read(&ordered, workers, bytes)?.map(move |batch| {
            let (rows, kinds) = batch?.into_parts();
            row_count.add(rows.num_rows());
            if kinds.is_some() {
                return Err(
                    Error::unsupported("a table whose rows change cannot be read in batch mode yet").into()
                );
            }
            let rows: RecordBatch = if is_ordered { rows } else { rows.project(&order)? };
            // Decoders name and mark their columns as they like; the plan's schema counts.
            Ok(rebuild(&schema, &rows)?)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows)))
    }
}

/// Puts columns under another schema of the same types.
fn rebuild(schema: &SchemaRef, rows: &RecordBatch) -> Result<RecordBatch, arrow::error::ArrowError> {
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), rows.columns().to_vec(), &options)
}
