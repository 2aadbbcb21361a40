//! Looks for calls in the syntax of an expression, but not in its subqueries: those are queries of their own.

use std::ops::ControlFlow;

use sqlparser::ast;

/// Returns whether an expression holds a call that is wanted.
pub(super) fn holds_call(node: &ast::Expr, is_wanted: impl Fn(&ast::Function) -> bool) -> bool {
    ast::Visit::visit(node, &mut CallSearch { depth: 0, is_wanted }).is_break()
}

struct CallSearch<F> {
    /// How many subqueries are around.
    depth: usize,
    is_wanted: F,
}

impl<F: Fn(&ast::Function) -> bool> ast::Visitor for CallSearch<F> {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &ast::Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &ast::Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<()> {
        match expr {
            ast::Expr::Function(call) if self.depth == 0 && (self.is_wanted)(call) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}
