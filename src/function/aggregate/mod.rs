//! Aggregate functions of batch queries: typed as in Flink, computed by DataFusion where that is exact and by accumulators of
//! ours elsewhere (SUM of an INT is an INT that wraps, AVG of an INT is cut).

mod aggregate_function;
mod collect;
mod distinct;
mod float_extremum;
mod groups;
mod list_agg;
mod moments;
mod running_sum;
mod udaf;
mod value;

use std::sync::Arc;

use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::AggregateUDF;

use super::Argument;
use super::typing::{calcite_name, type_list_error};
use crate::error::{Error, FlinkClass, Result};
use crate::schema::{DataType, TypeRoot};
use float_extremum::FloatExtremum;
use udaf::FlinkAggregate;

pub(crate) use aggregate_function::{AggregateFunction, describe_aggregate};
pub(crate) use moments::Moments;
pub(crate) use running_sum::{DecimalSum, FloatSum, IntegerSum, RunningSum};

/// An aggregate call whose types are settled.
#[derive(Debug, Clone)]
pub struct BoundAggregate {
    /// What the arguments are cast to. There may be fewer than were given: a constant separator is part of the accumulator.
    pub arguments: Vec<DataType>,
    /// What the aggregate returns. It is nullable because a group may be empty; where rows are grouped and there is no FILTER, the
    /// binder may take the argument's nullability instead, but for STDDEV_SAMP and VAR_SAMP.
    pub result: DataType,
    /// The accumulator, which returns the Arrow form of `result`.
    pub accumulator: Arc<AggregateUDF>,
    /// Whether only distinct arguments count.
    pub distinct: bool,
}

/// Names, parameters and what errors say they take.
const AGGREGATES: &[(&str, &[&str])] = &[
    ("COUNT", &["COUNT([ALL | DISTINCT] <ANY>...)"]),
    ("SUM", &["SUM(<NUMERIC>)"]),
    ("AVG", &["AVG(<NUMERIC>)"]),
    ("MIN", &["MIN(<COMPARABLE_TYPE>)"]),
    ("MAX", &["MAX(<COMPARABLE_TYPE>)"]),
    ("STDDEV_POP", &["STDDEV_POP(<NUMERIC>)"]),
    ("STDDEV_SAMP", &["STDDEV_SAMP(<NUMERIC>)"]),
    ("STDDEV", &["STDDEV(<NUMERIC>)"]),
    ("VAR_POP", &["VAR_POP(<NUMERIC>)"]),
    ("VAR_SAMP", &["VAR_SAMP(<NUMERIC>)"]),
    ("VARIANCE", &["VARIANCE(<NUMERIC>)"]),
    ("FIRST_VALUE", &["FIRST_VALUE(<ANY>)"]),
    ("LAST_VALUE", &["LAST_VALUE(<ANY>)"]),
    ("LISTAGG", &["LISTAGG(<CHARACTER>)", "LISTAGG(<CHARACTER>, <CHARACTER>)"]),
    ("ARRAY_AGG", &["ARRAY_AGG(<ANY>)"]),
    ("COLLECT", &["COLLECT(<ANY>)"]),
    ("APPROX_COUNT_DISTINCT", &["APPROX_COUNT_DISTINCT(<ANY>)"]),
    ("SINGLE_VALUE", &["SINGLE_VALUE(<ANY>)"]),
];

/// Returns whether a name is that of an aggregate function.
pub fn is_aggregate(name: &str) -> bool {
    AGGREGATES.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
}

/// Returns the names of all aggregate functions that users know of.
pub fn aggregate_names() -> impl Iterator<Item = &'static str> {
    AGGREGATES.iter().map(|(name, _)| *name).filter(|name| *name != "SINGLE_VALUE")
}

/// Returns the forms that an aggregate function takes; None if there is no such function.
pub fn aggregate_signatures(name: &str) -> Option<&'static [&'static str]> {
    AGGREGATES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, signatures)| *signatures)
}

/// Types an aggregate call; None if there is no such aggregate function. COUNT(*) has no arguments.
pub fn aggregate(name: &str, arguments: &[Argument<'_>], distinct: bool) -> Option<Result<BoundAggregate>> {
    let (name, signatures) = AGGREGATES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    if *name == "COUNT" {
        return Some(count(arguments, distinct));
    }
    Some(bind(name, arguments, distinct).ok_or_else(|| {
        let types: Vec<String> =
            arguments.iter().map(|argument| format!("<{}>", calcite_name(argument.data_type))).collect();
        type_list_error(name, &format!("{name}({})", types.join(", ")), signatures)
    }))
}

fn count(arguments: &[Argument<'_>], distinct: bool) -> Result<BoundAggregate> {
    if distinct && arguments.len() > 1 {
        return Err(Error::validation("We now only support the count of one field.").class(FlinkClass::TABLE));
    }
    Ok(BoundAggregate {
        arguments: arguments.iter().map(|argument| argument.data_type.clone()).collect(),
        result: TypeRoot::BigInt.not_null(),
        accumulator: count_udaf(),
        distinct,
    })
}

fn bind(name: &str, arguments: &[Argument<'_>], distinct: bool) -> Option<BoundAggregate> {
    let (first, rest) = arguments.split_first()?;
    let argument = first.data_type.clone();
    if !rest.is_empty() && name != "LISTAGG" {
        return None;
    }
    let plain = |result: TypeRoot, accumulator: Arc<AggregateUDF>| {
        Some(BoundAggregate {
            arguments: vec![argument.clone()],
            result: result.nullable(),
            accumulator,
            distinct,
        })
    };
    let own = |function: AggregateFunction, argument: DataType, result: TypeRoot| {
        let result = result.nullable();
        let aggregate = FlinkAggregate::new(function, argument.clone(), result.clone());
        let accumulator = Arc::new(AggregateUDF::new_from_impl(aggregate));
        Some(BoundAggregate { arguments: vec![argument], result, accumulator, distinct })
    };
    match name {
        // NULLs and duplicates do not change the smallest and the largest.
        "MIN" | "MAX" if is_ordered(&argument.root) => {
            let accumulator = if name == "MIN" { min_udaf() } else { max_udaf() };
            let accumulator = match argument.root.is_approximate() {
                true => Arc::new(AggregateUDF::new_from_impl(FloatExtremum::new(&accumulator))),
                false => accumulator,
            };
            let bound = plain(argument.root.clone(), accumulator)?;
            Some(BoundAggregate { distinct: false, ..bound })
        }
        "ARRAY_AGG" => plain(TypeRoot::Array(Box::new(argument.clone())), array_agg_udaf()),
        "COLLECT" => {
            own(AggregateFunction::Collect, argument.clone(), TypeRoot::Multiset(Box::new(argument)))
        }
        "FIRST_VALUE" => own(AggregateFunction::FirstValue, argument.clone(), argument.root),
        "LAST_VALUE" => own(AggregateFunction::LastValue, argument.clone(), argument.root),
        "SINGLE_VALUE" => own(AggregateFunction::SingleValue, argument.clone(), argument.root),
        "APPROX_COUNT_DISTINCT" => Some(BoundAggregate {
            arguments: vec![argument],
            result: TypeRoot::BigInt.not_null(),
            // Limit: exact, which is the best approximation; a sketch would need less memory.
            accumulator: count_udaf(),
            distinct: true,
        }),
        "LISTAGG" if argument.root.is_character() && rest.len() <= 1 => {
            let separator = match rest {
                [] => ",".to_owned(),
                [separator] => separator.literal?.try_as_str()??.to_owned(),
                _ => return None,
            };
            own(AggregateFunction::ListAgg(separator), argument, TypeRoot::STRING)
        }
        _ if argument.root.is_numeric() => {
            let (kind, argument, result) = moments::typed(name, &argument)?;
            own(kind, argument, result)
        }
        _ => None,
    }
}

fn is_ordered(root: &TypeRoot) -> bool {
    !matches!(
        root,
        TypeRoot::Array(_) | TypeRoot::Map(..) | TypeRoot::Multiset(_) | TypeRoot::Row(_) | TypeRoot::Null
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::common::ScalarValue;

    fn result(name: &str, root: TypeRoot) -> String {
        let data_type = root.not_null();
        match aggregate(name, &[Argument { data_type: &data_type, literal: None }], false) {
            None => "unknown".to_owned(),
            Some(Ok(bound)) => bound.result.summary(),
            Some(Err(error)) => error.message().to_owned(),
        }
    }

    #[test]
    fn results_keep_the_arguments_type() {
        assert_eq!(result("sum", TypeRoot::TinyInt), "TINYINT");
        assert_eq!(result("AVG", TypeRoot::Int), "INT");
        assert_eq!(result("SUM", TypeRoot::Decimal(10, 2)), "DECIMAL(38, 2)");
        assert_eq!(result("AVG", TypeRoot::Decimal(10, 2)), "DECIMAL(38, 6)");
        assert_eq!(result("AVG", TypeRoot::Float), "FLOAT");
        assert_eq!(result("VAR_SAMP", TypeRoot::Int), "INT");
        assert_eq!(result("COUNT", TypeRoot::Int), "BIGINT NOT NULL");
        assert_eq!(result("MAX", TypeRoot::STRING), "STRING");
        assert_eq!(result("COLLECT", TypeRoot::Int), "MULTISET<INT NOT NULL>");
    }

    #[test]
    fn refusals_have_flinks_words() {
        assert_eq!(
            result("SUM", TypeRoot::Char(1)),
            "Cannot apply 'SUM' to arguments of type 'SUM(<CHAR(1)>)'. Supported form(s): 'SUM(<NUMERIC>)'"
        );
        let int = TypeRoot::Int.not_null();
        let argument = Argument { data_type: &int, literal: None };
        let error = aggregate("COUNT", &[argument, argument], true).unwrap().unwrap_err();
        assert_eq!(error.message(), "We now only support the count of one field.");
        assert!(aggregate("UPPER", &[argument], false).is_none());
    }

    #[test]
    fn a_separator_must_be_a_constant() {
        let text = TypeRoot::STRING.nullable();
        let value = Argument { data_type: &text, literal: None };
        let dash = ScalarValue::from("-");
        let separator = Argument { data_type: &text, literal: Some(&dash) };
        assert_eq!(aggregate("LISTAGG", &[value, separator], false).unwrap().unwrap().arguments.len(), 1);
        assert!(aggregate("LISTAGG", &[value, value], false).unwrap().is_err());
    }
}
