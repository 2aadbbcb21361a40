//! Our accumulators as DataFusion's aggregate functions.

use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field as ArrowField, FieldRef};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility};

use super::collect::Collected;
use super::distinct::Distinct;
use super::groups::{Groups, ManyGroups, OneGroup};
use super::list_agg::ListAgg;
use super::moments;
use super::value::Values;
use crate::error::Result;
use crate::schema::DataType;

/// What is computed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Sum,
    Average,
    VariancePopulation,
    VarianceSample,
    DeviationPopulation,
    DeviationSample,
    FirstValue,
    LastValue,
    SingleValue,
    /// With the separator.
    ListAgg(String),
    Collect,
}

/// An aggregate function with settled types.
#[derive(Debug)]
pub(super) struct FlinkAggregate {
    kind: Kind,
    argument: DataType,
    result: DataType,
    signature: Signature,
}

impl FlinkAggregate {
    pub(super) fn new(kind: Kind, argument: DataType, result: DataType) -> FlinkAggregate {
        FlinkAggregate { kind, argument, result, signature: Signature::any(1, Volatility::Immutable) }
    }

    fn groups(&self) -> Result<Box<dyn Groups>> {
        Ok(match &self.kind {
            Kind::FirstValue => Box::new(Values::first(self.result.to_arrow())),
            Kind::LastValue => Box::new(Values::last(self.result.to_arrow())),
            Kind::SingleValue => Box::new(Values::single(self.result.to_arrow())),
            Kind::ListAgg(separator) => Box::new(ListAgg::new(separator.clone())),
            Kind::Collect => Box::new(Collected::new(&self.argument)?),
            _ => moments::accumulator(&self.kind, &self.argument, &self.result),
        })
    }

    fn state_types(&self) -> Vec<ArrowType> {
        match &self.kind {
            Kind::FirstValue | Kind::LastValue | Kind::ListAgg(_) | Kind::Collect => {
                vec![self.result.to_arrow()]
            }
            Kind::SingleValue => vec![self.result.to_arrow(), ArrowType::Int64],
            kind => moments::state_types(kind, &self.argument),
        }
    }
}

impl PartialEq for FlinkAggregate {
    fn eq(&self, other: &FlinkAggregate) -> bool {
        (&self.kind, &self.argument, &self.result) == (&other.kind, &other.argument, &other.result)
    }
}

impl Eq for FlinkAggregate {}

impl Hash for FlinkAggregate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
        self.argument.hash(state);
        self.result.hash(state);
    }
}

impl AggregateUDFImpl for FlinkAggregate {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> &str {
        match &self.kind {
            Kind::Sum => "SUM",
            Kind::Average => "AVG",
            Kind::VariancePopulation => "VAR_POP",
            Kind::VarianceSample => "VAR_SAMP",
            Kind::DeviationPopulation => "STDDEV_POP",
            Kind::DeviationSample => "STDDEV_SAMP",
            Kind::FirstValue => "FIRST_VALUE",
            Kind::LastValue => "LAST_VALUE",
            Kind::SingleValue => "SINGLE_VALUE",
            Kind::ListAgg(_) => "LISTAGG",
            Kind::Collect => "COLLECT",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> DataFusionResult<ArrowType> {
        Ok(self.result.to_arrow())
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> DataFusionResult<Box<dyn Accumulator>> {
        let inner = OneGroup::new(self.groups()?);
        if arguments.is_distinct {
            return Ok(Box::new(Distinct::new(self.argument.to_arrow(), Box::new(inner))?));
        }
        Ok(Box::new(inner))
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> DataFusionResult<Vec<FieldRef>> {
        let types = if arguments.is_distinct {
            vec![ArrowType::new_list(self.argument.to_arrow(), true)]
        } else {
            self.state_types()
        };
        let field = |(index, data_type): (usize, ArrowType)| {
            let name = format_state_name(arguments.name, &index.to_string());
            Arc::new(ArrowField::new(name, data_type, true))
        };
        Ok(types.into_iter().enumerate().map(field).collect())
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        !arguments.is_distinct
    }

    fn create_groups_accumulator(
        &self,
        _: AccumulatorArgs<'_>,
    ) -> DataFusionResult<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(ManyGroups(self.groups()?)))
    }
}
