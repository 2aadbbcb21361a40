//! Functions that choose among their arguments. Those that need not look at all of them become CASE, so that `IF(x = 0, 0, 1 / x)`
//! does not divide by zero.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::kernels::cmp::{gt, lt};
use arrow::compute::kernels::zip::zip;
use arrow::compute::nullif;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::Case;

use super::super::cast::cast_expr;
use super::super::definition::Definition;
use super::super::operand::{Operand, validity};
use super::super::operator::{ComparisonOp, comparison, comparison_type};
use super::super::typing::{Parameter, common_type};
use super::super::{Argument, Call, EvalContext, Inferred};
use crate::error::Result;
use crate::schema::{DataType, TypeRoot};

pub(super) static IF: Definition = Definition {
    name: "IF",
    doc: "Returns the second argument where the first is TRUE, else the third.",
    signatures: &["IF(<BOOLEAN>, <ANY>, <ANY>)"],
    examples: &[("IF(1 > 2, 'x', 'longer')", "longer"), ("IF(CAST(NULL AS BOOLEAN), 1, 2)", "2")],
    infer: |arguments| {
        let [condition, then, other] = arguments else { return None };
        let condition = Parameter::Boolean.accept(condition.data_type)?;
        let common = common_type(&[then.data_type.clone(), other.data_type.clone()])?;
        let result = common.clone().with_nullable(common.nullable || condition.nullable);
        Some(Inferred { arguments: vec![condition, common.clone(), common], result })
    },
    rewrite: |arguments, _, _| {
        let [condition, then, other] = arguments else { return None };
        Some(case(vec![(condition.clone(), then.clone())], other.clone()))
    },
    ..Definition::DEFAULT
};

pub(super) static IFNULL: Definition = Definition {
    name: "IFNULL",
    doc: "Returns the first argument unless it is NULL, else the second.",
    signatures: &["IFNULL(<COMMON>, <COMMON>)"],
    examples: &[("IFNULL(CAST(NULL AS STRING), 'd')", "d")],
    infer: |arguments| if arguments.len() == 2 { first_present(arguments) } else { None },
    rewrite: |arguments, _, _| choose_first_present(arguments),
    ..Definition::DEFAULT
};

pub(super) static COALESCE: Definition = Definition {
    name: "COALESCE",
    doc: "Returns the first argument that is not NULL.",
    signatures: &["COALESCE(<COMMON>...)"],
    examples: &[("COALESCE(NULL, 1)", "1")],
    infer: first_present,
    rewrite: |arguments, _, _| choose_first_present(arguments),
    ..Definition::DEFAULT
};

pub(super) static NULLIF: Definition = Definition {
    name: "NULLIF",
    doc: "Returns NULL if both arguments are equal, else the first.",
    signatures: &["NULLIF(<COMPARABLE_TYPE>, <COMPARABLE_TYPE>)"],
    examples: &[("NULLIF(1, 1)", "<NULL>"), ("NULLIF(1.5, 2)", "1.5")],
    infer: |arguments| {
        let [left, right] = arguments else { return None };
        comparison_type(ComparisonOp::Eq, left.data_type, right.data_type).ok()?;
        let result = left.data_type.clone().with_nullable(true);
        Some(Inferred { arguments: vec![left.data_type.clone(), right.data_type.clone()], result })
    },
    rewrite: null_if,
    ..Definition::DEFAULT
};

pub(super) static GREATEST: Definition = Definition {
    name: "GREATEST",
    doc: "Returns the largest argument; NULL if one of them is NULL.",
    signatures: &["GREATEST(<COMPARABLE_TYPE>...)"],
    examples: &[("GREATEST(1, 2.5, 2)", "2.5"), ("GREATEST(1, CAST(NULL AS INT))", "<NULL>")],
    infer: all_common,
    invoke: |call, operands| extreme(call, operands, true),
    ..Definition::DEFAULT
};

pub(super) static LEAST: Definition = Definition {
    name: "LEAST",
    doc: "Returns the smallest argument; NULL if one of them is NULL.",
    signatures: &["LEAST(<COMPARABLE_TYPE>...)"],
    examples: &[("LEAST('b', 'a')", "a")],
    infer: all_common,
    invoke: |call, operands| extreme(call, operands, false),
    ..Definition::DEFAULT
};

/// Builds CASE WHEN … THEN … ELSE … END.
fn case(branches: Vec<(Expr, Expr)>, otherwise: Expr) -> Expr {
    let branches = branches.into_iter().map(|(when, then)| (Box::new(when), Box::new(then))).collect();
    Expr::Case(Case::new(None, branches, Some(Box::new(otherwise))))
}

fn all_common(arguments: &[Argument<'_>]) -> Option<Inferred> {
    let types: Vec<DataType> = arguments.iter().map(|argument| argument.data_type.clone()).collect();
    let common = common_type(&types)?;
    let is_comparable = !matches!(
        common.root,
        TypeRoot::Array(_) | TypeRoot::Map(..) | TypeRoot::Multiset(_) | TypeRoot::Row(_)
    );
    is_comparable.then(|| Inferred { arguments: vec![common.clone(); types.len()], result: common })
}

/// The result is NULL only where all arguments may be.
fn first_present(arguments: &[Argument<'_>]) -> Option<Inferred> {
    let types: Vec<DataType> = arguments.iter().map(|argument| argument.data_type.clone()).collect();
    let common = common_type(&types)?;
    let nullable = types.iter().all(|data_type| data_type.nullable || data_type.root == TypeRoot::Null);
    let result = common.clone().with_nullable(nullable);
    let arguments = types.iter().map(|data_type| common.clone().with_nullable(data_type.nullable)).collect();
    Some(Inferred { arguments, result })
}

fn choose_first_present(arguments: &[Expr]) -> Option<Expr> {
    let (last, others) = arguments.split_last()?;
    if others.is_empty() {
        return Some(last.clone());
    }
    let branches =
        others.iter().map(|argument| (Expr::IsNotNull(Box::new(argument.clone())), argument.clone()));
    Some(case(branches.collect(), last.clone()))
}

fn null_if(arguments: &[Expr], inferred: &Inferred, context: &Arc<EvalContext>) -> Option<Expr> {
    let ([left, right], [left_type, right_type]) = (arguments, inferred.arguments.as_slice()) else {
        return None;
    };
    let (equal, _) =
        comparison(ComparisonOp::Eq, (left.clone(), left_type), (right.clone(), right_type), context).ok()?;
    let null = cast_expr(
        Expr::Literal(ScalarValue::Null, None),
        &TypeRoot::Null.nullable(),
        &inferred.result,
        false,
        context,
    );
    Some(case(vec![(equal, null)], left.clone()))
}

fn extreme(call: &Call<'_>, operands: &[Operand], greatest: bool) -> Result<ArrayRef> {
    let mut best = operands[0].to_column(call.row_count)?;
    for operand in &operands[1..] {
        let candidate = operand.to_column(call.row_count)?;
        let is_better = if greatest { gt(&candidate, &best)? } else { lt(&candidate, &best)? };
        best = zip(&is_better, &candidate, &best)?;
    }
    let Some(valid) = validity(operands, call.row_count) else { return Ok(best) };
    let is_missing = arrow::array::BooleanArray::new(!valid.inner(), None);
    Ok(nullif(&best, &is_missing)?)
}
