//! Our accumulators as DataFusion's aggregate functions.

use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field as ArrowField, FieldRef};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility};

use super::aggregate_function::AggregateFunction;
use super::collect::Collected;
use super::distinct::Distinct;
use super::groups::{Groups, ManyGroups, OneGroup};
use super::list_agg::ListAgg;
use super::moments;
use super::value::Values;
use crate::error::Result;
use crate::schema::DataType;

/// An aggregate function with settled types.
#[derive(Debug)]
pub(super) struct FlinkAggregate {
    function: AggregateFunction,
    argument: DataType,
    result: DataType,
    signature: Signature,
}

impl FlinkAggregate {
    pub(super) fn new(function: AggregateFunction, argument: DataType, result: DataType) -> FlinkAggregate {
        FlinkAggregate { function, argument, result, signature: Signature::any(1, Volatility::Immutable) }
    }

    /// Returns what is computed.
    pub(super) fn function(&self) -> &AggregateFunction {
        &self.function
    }

    /// Returns what the argument was cast to.
    pub(super) fn argument(&self) -> &DataType {
        &self.argument
    }

    /// Returns the type of the result.
    pub(super) fn result(&self) -> &DataType {
        &self.result
    }

    fn groups(&self) -> Result<Box<dyn Groups>> {
        Ok(match &self.function {
            AggregateFunction::FirstValue => Box::new(Values::first(self.result.to_arrow())),
            AggregateFunction::LastValue => Box::new(Values::last(self.result.to_arrow())),
            AggregateFunction::SingleValue => Box::new(Values::single(self.result.to_arrow())),
            AggregateFunction::ListAgg(separator) => Box::new(ListAgg::new(separator.clone())),
            AggregateFunction::Collect => Box::new(Collected::new(&self.argument)?),
            _ => moments::accumulator(&self.function, &self.argument, &self.result),
        })
    }

    fn state_types(&self) -> Vec<ArrowType> {
        match &self.function {
            AggregateFunction::FirstValue
            | AggregateFunction::LastValue
            | AggregateFunction::ListAgg(_)
            | AggregateFunction::Collect => {
                vec![self.result.to_arrow()]
            }
            AggregateFunction::SingleValue => vec![self.result.to_arrow(), ArrowType::Int64],
            function => moments::state_types(function, &self.argument),
        }
    }
}

impl PartialEq for FlinkAggregate {
    fn eq(&self, other: &FlinkAggregate) -> bool {
        (&self.function, &self.argument, &self.result) == (&other.function, &other.argument, &other.result)
    }
}

impl Eq for FlinkAggregate {}

impl Hash for FlinkAggregate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.hash(state);
        self.argument.hash(state);
        self.result.hash(state);
    }
}

impl AggregateUDFImpl for FlinkAggregate {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> &str {
        self.function.name()
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

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, StringArray};
    use datafusion::logical_expr::EmitTo;

    use crate::schema::{TypeRoot, format_cell};

    fn aggregate(function: AggregateFunction, argument: TypeRoot, result: TypeRoot) -> FlinkAggregate {
        FlinkAggregate::new(function, argument.nullable(), result.nullable())
    }

    fn cells(data_type: &DataType, array: &ArrayRef) -> Vec<String> {
        (0..array.len())
            .map(|row| {
                format_cell(data_type, array.as_ref(), row, chrono_tz::Tz::UTC).unwrap_or("<NULL>".to_owned())
            })
            .collect()
    }

    /// Accumulates rows of two groups in two parts that are merged by their states, and checks that one group alone agrees.
    fn run(aggregate: &FlinkAggregate, values: ArrayRef, groups: &[usize]) -> Vec<String> {
        let half = values.len() / 2;
        let parts = [values.slice(0, half), values.slice(half, values.len() - half)];
        let mut merged = ManyGroups(aggregate.groups().unwrap());
        for (part, groups) in parts.iter().zip([&groups[..half], &groups[half..]]) {
            let mut partial = ManyGroups(aggregate.groups().unwrap());
            partial.update_batch(std::slice::from_ref(part), groups, None, 2).unwrap();
            let states = partial.state(EmitTo::All).unwrap();
            let types: Vec<ArrowType> = states.iter().map(|state| state.data_type().clone()).collect();
            assert_eq!(types, aggregate.state_types());
            merged.merge_batch(&states, &[0, 1], None, 2).unwrap();
        }
        let first = merged.evaluate(EmitTo::First(1)).unwrap();
        let second = merged.evaluate(EmitTo::All).unwrap();
        assert_eq!(first.data_type(), &aggregate.result.to_arrow());
        let mut alone = OneGroup::new(aggregate.groups().unwrap());
        let filter: BooleanArray = groups.iter().map(|group| Some(*group == 0)).collect();
        alone.update_batch(&[arrow::compute::filter(&values, &filter).unwrap()]).unwrap();
        let array = alone.evaluate().unwrap().to_array().unwrap();
        assert_eq!(cells(&aggregate.result, &array), cells(&aggregate.result, &first));
        cells(&aggregate.result, &first).into_iter().chain(cells(&aggregate.result, &second)).collect()
    }

    #[test]
    fn integers_wrap_and_are_cut() {
        let values: ArrayRef =
            Arc::new(Int64Array::from(vec![Some(100), None, Some(100), Some(1), Some(2), Some(4), None]));
        let groups = [0, 0, 0, 1, 1, 1, 1];
        let of =
            |kind| run(&aggregate(kind, TypeRoot::BigInt, TypeRoot::TinyInt), Arc::clone(&values), &groups);
        assert_eq!(of(AggregateFunction::Sum), ["-56", "7"]);
        assert_eq!(of(AggregateFunction::Average), ["100", "2"]);
        assert_eq!(of(AggregateFunction::VariancePopulation), ["0", "1"]);
        assert_eq!(of(AggregateFunction::VarianceSample), ["0", "2"]);
        assert_eq!(of(AggregateFunction::DeviationSample), ["0", "1"]);
    }

    #[test]
    fn doubles_and_decimals_have_their_own_arithmetic() {
        let doubles: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0, 4.0, 5.0]));
        let groups = [0, 0, 0, 0, 1];
        let deviation = aggregate(AggregateFunction::DeviationSample, TypeRoot::Double, TypeRoot::Double);
        assert_eq!(run(&deviation, doubles, &groups), ["1.2909944487358056", "<NULL>"]);
        let decimals =
            arrow::array::Decimal128Array::from(vec![110, 225]).with_precision_and_scale(38, 2).unwrap();
        let average =
            aggregate(AggregateFunction::Average, TypeRoot::Decimal(38, 2), TypeRoot::Decimal(38, 6));
        assert_eq!(run(&average, Arc::new(decimals), &[0, 0]), ["1.675000", "<NULL>"]);
        let large =
            arrow::array::Decimal128Array::from(vec![super::super::super::decimal::POWERS_OF_TEN[38] - 1, 1])
                .with_precision_and_scale(38, 0)
                .unwrap();
        let sum = aggregate(AggregateFunction::Sum, TypeRoot::Decimal(38, 0), TypeRoot::Decimal(38, 0));
        assert_eq!(run(&sum, Arc::new(large), &[0, 0]), ["<NULL>", "<NULL>"]);
    }

    #[test]
    fn values_and_texts_follow_the_order_of_arrival() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![None, Some("a"), Some("b"), Some("a"), None]));
        let groups = [0, 0, 0, 0, 1];
        let of = |kind, result| run(&aggregate(kind, TypeRoot::STRING, result), Arc::clone(&texts), &groups);
        assert_eq!(of(AggregateFunction::FirstValue, TypeRoot::STRING), ["a", "<NULL>"]);
        assert_eq!(of(AggregateFunction::LastValue, TypeRoot::STRING), ["a", "<NULL>"]);
        assert_eq!(of(AggregateFunction::ListAgg("-".to_owned()), TypeRoot::STRING), ["a-b-a", "<NULL>"]);
        let multiset = TypeRoot::Multiset(Box::new(TypeRoot::STRING.nullable()));
        assert_eq!(of(AggregateFunction::Collect, multiset), ["{a=2, b=1}", "{}"]);
    }

    #[test]
    fn a_second_row_of_a_scalar_subquery_is_refused() {
        let single = aggregate(AggregateFunction::SingleValue, TypeRoot::Int, TypeRoot::Int);
        let mut one = OneGroup::new(single.groups().unwrap());
        one.update_batch(&[Arc::new(Int32Array::from(vec![7]))]).unwrap();
        assert_eq!(one.evaluate().unwrap(), datafusion::common::ScalarValue::Int32(Some(7)));
        assert!(one.update_batch(&[Arc::new(Int32Array::from(vec![None]))]).is_err());
    }

    #[test]
    fn distinct_passes_each_value_once_also_after_a_merge() {
        let sum = aggregate(AggregateFunction::Sum, TypeRoot::BigInt, TypeRoot::BigInt);
        let accumulator = || {
            let inner = Box::new(OneGroup::new(sum.groups().unwrap()));
            Distinct::new(ArrowType::Int64, inner).unwrap()
        };
        let mut part = accumulator();
        part.update_batch(&[Arc::new(Int64Array::from(vec![Some(1), Some(2), Some(1), None]))]).unwrap();
        let state = part.state().unwrap().remove(0).to_array().unwrap();
        let mut whole = accumulator();
        whole.update_batch(&[Arc::new(Int64Array::from(vec![2, 3]))]).unwrap();
        whole.merge_batch(&[state]).unwrap();
        assert_eq!(whole.evaluate().unwrap(), datafusion::common::ScalarValue::Int64(Some(6)));
    }
}
