//! A function written down as data: the form in which nearly all are declared.

use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion::logical_expr::Expr;

use super::operand::Operand;
use super::{Argument, Call, Determinism, EvalContext, Inferred, ScalarFunction};
use crate::error::Result;

/// A function as a value: see `ScalarFunction` for what each part means.
pub(super) struct Definition {
    pub(super) name: &'static str,
    pub(super) aliases: &'static [&'static str],
    pub(super) doc: &'static str,
    pub(super) signatures: &'static [&'static str],
    pub(super) examples: &'static [(&'static str, &'static str)],
    pub(super) determinism: Determinism,
    pub(super) infer: fn(&[Argument<'_>]) -> Option<Inferred>,
    pub(super) rewrite: fn(&[Expr], &Inferred, &Arc<EvalContext>) -> Option<Expr>,
    pub(super) invoke: fn(&Call<'_>, &[Operand]) -> Result<ArrayRef>,
}

impl Definition {
    /// What most functions have: no other name, deterministic, computed by a kernel.
    pub(super) const DEFAULT: Definition = Definition {
        name: "",
        aliases: &[],
        doc: "",
        signatures: &[],
        examples: &[],
        determinism: Determinism::Deterministic,
        infer: |_| None,
        rewrite: |_, _, _| None,
        invoke: |call, _| Ok(arrow::array::new_null_array(&call.result.to_arrow(), call.row_count)),
    };
}

impl ScalarFunction for Definition {
    fn name(&self) -> &'static str {
        self.name
    }

    fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }

    fn doc(&self) -> &'static str {
        self.doc
    }

    fn signatures(&self) -> &'static [&'static str] {
        self.signatures
    }

    fn examples(&self) -> &'static [(&'static str, &'static str)] {
        self.examples
    }

    fn determinism(&self) -> Determinism {
        self.determinism
    }

    fn infer(&self, arguments: &[Argument<'_>]) -> Option<Inferred> {
        (self.infer)(arguments)
    }

    fn rewrite(&self, arguments: &[Expr], inferred: &Inferred, context: &Arc<EvalContext>) -> Option<Expr> {
        (self.rewrite)(arguments, inferred, context)
    }

    fn invoke(&self, call: &Call<'_>, arguments: &[Operand]) -> Result<ArrayRef> {
        (self.invoke)(call, arguments)
    }
}
