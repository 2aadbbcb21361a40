//! UNNEST in batch queries.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::take_record_batch;
use arrow::datatypes::{DataType as ArrowType, SchemaRef};
use async_trait::async_trait;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use futures::{StreamExt, TryStreamExt, stream};

use super::Unnest;
use crate::error::{Error, Result};
use crate::function;

/// Rows of the input that are taken apart together, so that what comes out stays small.
const INPUT_ROWS: usize = 1024;

/// Plans the nodes of `extension` that are run as they are.
#[derive(Debug)]
pub(crate) struct UnnestPlanner;

#[async_trait]
impl ExtensionPlanner for UnnestPlanner {
    async fn plan_extension(
        &self,
        _: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        _: &SessionState,
    ) -> DataFusionResult<Option<Arc<dyn ExecutionPlan>>> {
        let (Some(unnest), [input]) = (node.as_any().downcast_ref::<Unnest>(), inputs) else {
            return Ok(None);
        };
        let call = UnnestCall {
            column: unnest.position()?,
            is_outer: unnest.is_outer,
            with_ordinality: unnest.with_ordinality,
            schema: Arc::clone(node.schema().inner()),
        };
        Ok(Some(Arc::new(UnnestExec::new(Arc::clone(input), call))))
    }
}

/// What is taken apart.
#[derive(Debug, Clone)]
struct UnnestCall {
    column: usize,
    is_outer: bool,
    with_ordinality: bool,
    /// The input's columns, then those that are added.
    schema: SchemaRef,
}

impl UnnestCall {
    /// Adds the elements to the rows of a batch.
    fn evaluate(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let added = &self.schema.fields()[batch.num_columns()..];
        let elements = &added[..added.len() - usize::from(self.with_ordinality)];
        let types: Vec<ArrowType> = elements.iter().map(|field| field.data_type().clone()).collect();
        let unnested =
            function::unnest(batch.column(self.column), &types, self.is_outer, self.with_ordinality)?;
        let rows = take_record_batch(batch, &unnested.rows)?;
        let mut columns = rows.columns().to_vec();
        columns.extend(unnested.columns);
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

/// UNNEST as DataFusion runs it.
#[derive(Debug)]
struct UnnestExec {
    input: Arc<dyn ExecutionPlan>,
    call: UnnestCall,
    properties: Arc<PlanProperties>,
}

impl UnnestExec {
    fn new(input: Arc<dyn ExecutionPlan>, call: UnnestCall) -> UnnestExec {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&call.schema)),
            // The input's columns stay where they were.
            input.properties().output_partitioning().clone(),
            input.properties().emission_type,
            input.properties().boundedness,
        );
        UnnestExec { input, call, properties: Arc::new(properties) }
    }
}

impl DisplayAs for UnnestExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unnest: column={}, outer={}", self.call.column, self.call.is_outer)
    }
}

impl ExecutionPlan for UnnestExec {
    fn name(&self) -> &'static str {
        "Unnest"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let input = children.pop().ok_or_else(|| Error::internal("UNNEST has one input"))?;
        Ok(Arc::new(UnnestExec::new(input, self.call.clone())))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> DataFusionResult<SendableRecordBatchStream> {
        let call = self.call.clone();
        let rows = self.input.execute(partition, context)?;
        let parts = rows.map_ok(|batch| {
            let starts = (0..batch.num_rows()).step_by(INPUT_ROWS);
            let parts = starts.map(move |start| {
                let length = INPUT_ROWS.min(batch.num_rows() - start);
                Ok::<_, DataFusionError>(batch.slice(start, length))
            });
            stream::iter(parts)
        });
        let unnested = parts
            .try_flatten()
            .map(move |batch: DataFusionResult<_>| -> DataFusionResult<_> { Ok(call.evaluate(&batch?)?) });
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.call.schema), unnested)))
    }
}
