//! Which aggregate function a call of a logical plan is, with Flink's types: what the changelog engine builds its own
//! accumulators from. COUNT, MIN, MAX and ARRAY_AGG are DataFusion's in a plan, so their types come from the columns.

use datafusion::common::DFSchema;
use datafusion::logical_expr::{Expr, ExprSchemable, expr};

use super::udaf::FlinkAggregate;
use crate::error::{Error, Result};
use crate::schema::{DataType, TypeRoot};

/// The aggregate functions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum AggregateFunction {
    /// Rows whose arguments are not NULL.
    Count,
    /// As Flink: integers wrap, decimals overflow to NULL.
    Sum,
    /// As Flink: cut for integers.
    Average,
    /// The smallest; NULLs do not count.
    Min,
    /// The largest; NULLs do not count.
    Max,
    /// The variance of all values.
    VariancePopulation,
    /// The variance of a sample.
    VarianceSample,
    /// The standard deviation of all values.
    DeviationPopulation,
    /// The standard deviation of a sample.
    DeviationSample,
    /// The first to arrive that is not NULL.
    FirstValue,
    /// The last to arrive that is not NULL.
    LastValue,
    /// The only one; a second is an error.
    SingleValue,
    /// Texts in order of arrival, with the separator.
    ListAgg(String),
    /// A multiset.
    Collect,
    /// An array, in order of arrival.
    ArrayAgg,
}

impl AggregateFunction {
    /// Returns Flink's name.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            AggregateFunction::Sum => "SUM",
            AggregateFunction::Average => "AVG",
            AggregateFunction::VariancePopulation => "VAR_POP",
            AggregateFunction::VarianceSample => "VAR_SAMP",
            AggregateFunction::DeviationPopulation => "STDDEV_POP",
            AggregateFunction::DeviationSample => "STDDEV_SAMP",
            AggregateFunction::FirstValue => "FIRST_VALUE",
            AggregateFunction::LastValue => "LAST_VALUE",
            AggregateFunction::SingleValue => "SINGLE_VALUE",
            AggregateFunction::ListAgg(_) => "LISTAGG",
            AggregateFunction::Collect => "COLLECT",
            AggregateFunction::Count => "COUNT",
            AggregateFunction::Min => "MIN",
            AggregateFunction::Max => "MAX",
            AggregateFunction::ArrayAgg => "ARRAY_AGG",
        }
    }
}

/// An aggregate call of a logical plan in Flink's terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AggregateDescription {
    /// The function.
    pub(crate) function: AggregateFunction,
    /// The type of the first argument, after Flink's casts; None for a COUNT of rows, whose arguments are constants.
    pub(crate) argument_type: Option<DataType>,
    /// The result.
    pub(crate) result_type: DataType,
}

/// Describes an aggregate call over `input`. DISTINCT, FILTER and the arguments are in the call itself.
///
/// # Errors
/// The call is none that `aggregate` makes.
pub(crate) fn describe_aggregate(
    call: &expr::AggregateFunction,
    input: &DFSchema,
) -> Result<AggregateDescription> {
    if let Some(own) = call.func.inner().as_any().downcast_ref::<FlinkAggregate>() {
        return Ok(AggregateDescription {
            function: own.function().clone(),
            argument_type: Some(own.argument().clone()),
            result_type: own.result().clone(),
        });
    }
    let argument = || {
        let first = call.params.args.first().ok_or_else(|| unknown(call))?;
        let data_type = first.get_type(input)?;
        DataType::from_arrow(&data_type)
            .ok_or_else(|| Error::internal(format!("no type of ours lies in Arrow as {data_type}")))
    };
    let is_constant = |argument: &Expr| matches!(argument, Expr::Literal(value, _) if !value.is_null());
    match call.func.name() {
        "count" if call.params.args.iter().all(is_constant) && !call.params.distinct => {
            Ok(AggregateDescription {
                function: AggregateFunction::Count,
                argument_type: None,
                result_type: TypeRoot::BigInt.not_null(),
            })
        }
        "count" => Ok(AggregateDescription {
            function: AggregateFunction::Count,
            argument_type: Some(argument()?),
            result_type: TypeRoot::BigInt.not_null(),
        }),
        name @ ("min" | "max") => {
            let argument = argument()?;
            Ok(AggregateDescription {
                function: if name == "min" { AggregateFunction::Min } else { AggregateFunction::Max },
                result_type: argument.clone(),
                argument_type: Some(argument),
            })
        }
        "array_agg" => {
            let argument = argument()?;
            Ok(AggregateDescription {
                function: AggregateFunction::ArrayAgg,
                result_type: TypeRoot::Array(Box::new(argument.clone())).nullable(),
                argument_type: Some(argument),
            })
        }
        _ => Err(unknown(call)),
    }
}

fn unknown(call: &expr::AggregateFunction) -> Error {
    Error::internal(format!("{} is no aggregate function of ours", call.func.name()))
}

#[cfg(test)]
mod tests {
    use super::super::super::Argument;
    use super::super::aggregate;
    use super::*;
    use arrow::datatypes::Schema;
    use datafusion::logical_expr::{col, lit};

    /// Describes a call of a function on column `a`, or of COUNT(*).
    fn described(name: &str, argument: Option<TypeRoot>, distinct: bool) -> AggregateDescription {
        let data_type = argument.map(TypeRoot::nullable);
        let arguments: Vec<Argument<'_>> =
            data_type.iter().map(|data_type| Argument { data_type, literal: None }).collect();
        let bound = aggregate(name, &arguments, distinct).unwrap().unwrap();
        let columns = bound.arguments.iter().map(|data_type| data_type.to_field("a"));
        let schema = DFSchema::try_from(Schema::new(columns.collect::<Vec<_>>())).unwrap();
        let args = if data_type.is_some() { vec![col("a")] } else { vec![lit(1_i64)] };
        let call =
            expr::AggregateFunction::new_udf(bound.accumulator, args, bound.distinct, None, Vec::new(), None);
        describe_aggregate(&call, &schema).unwrap()
    }

    #[test]
    fn every_aggregate_of_a_plan_is_told_with_its_types() {
        let text = |name: &str, argument: Option<TypeRoot>| {
            let described = described(name, argument, false);
            let argument = described.argument_type.map_or("rows".to_owned(), |argument| argument.to_string());
            format!("{:?} of {argument}: {}", described.function, described.result_type)
        };
        assert_eq!(text("COUNT", None), "Count of rows: BIGINT");
        assert_eq!(text("COUNT", Some(TypeRoot::Int)), "Count of INT: BIGINT");
        assert_eq!(text("SUM", Some(TypeRoot::Int)), "Sum of BIGINT: INT");
        assert_eq!(text("AVG", Some(TypeRoot::Decimal(10, 2))), "Average of DECIMAL(38, 2): DECIMAL(38, 6)");
        assert_eq!(text("MIN", Some(TypeRoot::Timestamp(3))), "Min of TIMESTAMP(3): TIMESTAMP(3)");
        assert_eq!(text("MAX", Some(TypeRoot::Char(3))), "Max of STRING: STRING");
        assert_eq!(text("ARRAY_AGG", Some(TypeRoot::Int)), "ArrayAgg of INT: ARRAY<INT>");
        assert_eq!(text("COLLECT", Some(TypeRoot::Int)), "Collect of INT: MULTISET<INT>");
        assert_eq!(text("LISTAGG", Some(TypeRoot::STRING)), "ListAgg(\",\") of STRING: STRING");
    }

    #[test]
    fn counting_distinct_values_has_an_argument() {
        assert_eq!(
            described("COUNT", Some(TypeRoot::Int), true).argument_type,
            Some(TypeRoot::Int.nullable())
        );
        let approximate = described("APPROX_COUNT_DISTINCT", Some(TypeRoot::Int), false);
        assert_eq!(approximate.argument_type, Some(TypeRoot::Int.nullable()));
    }
}
