//! Expressions, in every form that the parser makes.

use sqlparser::ast::{
    self, AccessExpr, BinaryOperator, CeilFloorKind, DateTimeField, DuplicateTreatment, Expr, FunctionArg,
    FunctionArgExpr, FunctionArgOperator, FunctionArgumentClause, FunctionArguments, JsonNullClause,
    NullTreatment, OrderByExpr, Subscript, UnaryOperator, Value, WindowFrameBound, WindowFrameUnits,
    WindowType,
};

use super::super::encoding::{
    JsonKind, Relation, bare_name, is_json, relation_argument, symmetric_low, text_value, time_literal,
    type_text,
};
use super::super::parser::unit_word;
use super::Printer;

impl Printer<'_> {
    /// Appends an expression. A chain of operators is as deep as it is long on its left, so that side is a loop.
    pub(super) fn expr(&mut self, expr: &Expr) {
        let mut chain = Vec::new();
        let mut first = expr;
        while let Some(left) = left_operand(first) {
            chain.push(first);
            first = left;
        }
        self.operand(first);
        for expr in chain.into_iter().rev() {
            self.behind_operand(expr);
        }
    }

    /// Appends what an operator says behind its left operand.
    fn behind_operand(&mut self, expr: &Expr) {
        match expr {
            Expr::BinaryOp { op, right, .. } => {
                self.operator(op);
                self.expr(right);
            }
            Expr::AnyOp { compare_op, right, is_some, .. } => {
                self.operator(compare_op);
                self.push(if *is_some { "SOME " } else { "ANY " });
                self.bracketed(right);
            }
            Expr::AllOp { compare_op, right, .. } => {
                self.operator(compare_op);
                self.push("ALL ");
                self.bracketed(right);
            }
            Expr::InList { list, negated, .. } => {
                self.push(if *negated { " NOT IN (" } else { " IN (" });
                self.list(list, ", ", Self::expr);
                self.push(")");
            }
            Expr::InSubquery { subquery, negated, .. } => {
                self.push(if *negated { " NOT IN (" } else { " IN (" });
                self.query(subquery);
                self.push(")");
            }
            Expr::Between { negated, low, high, .. } => {
                self.push(if *negated { " NOT BETWEEN " } else { " BETWEEN " });
                match symmetric_low(low) {
                    Some(low) => {
                        self.push("SYMMETRIC ");
                        self.expr(low);
                    }
                    None => self.expr(low),
                }
                self.push(" AND ");
                self.expr(high);
            }
            Expr::Like { negated, pattern, escape_char, .. } => {
                self.like("LIKE", *negated, pattern, escape_char.as_ref());
            }
            Expr::ILike { negated, pattern, escape_char, .. } => {
                self.like("ILIKE", *negated, pattern, escape_char.as_ref());
            }
            Expr::SimilarTo { negated, pattern, escape_char, .. } => {
                self.like("SIMILAR TO", *negated, pattern, escape_char.as_ref());
            }
            Expr::RLike { negated, pattern, .. } => self.like("RLIKE", *negated, pattern, None),
            Expr::CompoundFieldAccess { access_chain, .. } => {
                for access in access_chain {
                    self.access(access);
                }
            }
            other => self.is_form(other),
        }
    }

    /// Appends `IS …` behind its operand.
    fn is_form(&mut self, expr: &Expr) {
        match expr {
            Expr::IsNull(_) => self.push(" IS NULL"),
            Expr::IsNotNull(_) => self.push(" IS NOT NULL"),
            Expr::IsTrue(_) => self.push(" IS TRUE"),
            Expr::IsNotTrue(_) => self.push(" IS NOT TRUE"),
            Expr::IsFalse(_) => self.push(" IS FALSE"),
            Expr::IsNotFalse(_) => self.push(" IS NOT FALSE"),
            Expr::IsUnknown(_) => self.push(" IS UNKNOWN"),
            Expr::IsNotUnknown(_) => self.push(" IS NOT UNKNOWN"),
            Expr::IsDistinctFrom(_, right) => {
                self.push(" IS DISTINCT FROM ");
                self.expr(right);
            }
            Expr::IsNotDistinctFrom(_, right) => {
                self.push(" IS NOT DISTINCT FROM ");
                self.expr(right);
            }
            Expr::Function(function) => {
                if let Some((_, kind, negated)) = is_json(function) {
                    self.push(if negated { " IS NOT JSON" } else { " IS JSON" });
                    self.push(match kind {
                        JsonKind::Value => " VALUE",
                        JsonKind::Object => " OBJECT",
                        JsonKind::Array => " ARRAY",
                        JsonKind::Scalar => " SCALAR",
                    });
                }
            }
            // `left_operand` has no other.
            _ => {}
        }
    }

    fn operator(&mut self, op: &BinaryOperator) {
        self.push(" ");
        self.push(&op.to_string());
        self.push(" ");
    }

    fn like(&mut self, operator: &str, negated: bool, pattern: &Expr, escape: Option<&Value>) {
        self.push_if(negated, " NOT");
        self.push(" ");
        self.push(operator);
        self.push(" ");
        self.expr(pattern);
        if let Some(escape) = escape.and_then(text_value) {
            self.push(" ESCAPE ");
            self.text(escape);
        }
    }

    fn access(&mut self, access: &AccessExpr) {
        match access {
            AccessExpr::Dot(field) => {
                self.push(".");
                self.expr(field);
            }
            AccessExpr::Subscript(Subscript::Index { index }) => {
                self.push("[");
                self.expr(index);
                self.push("]");
            }
            // The parser makes no slices.
            AccessExpr::Subscript(slice) => self.push(&format!("[{slice}]")),
        }
    }

    /// Appends a query or a list in brackets.
    fn bracketed(&mut self, expr: &Expr) {
        match expr {
            Expr::Subquery(query) => {
                self.push("(");
                self.query(query);
                self.push(")");
            }
            Expr::Tuple(list) => self.brackets(list, Self::expr),
            other => self.expr(other),
        }
    }

    /// Appends an expression that starts with no operand of another.
    fn operand(&mut self, expr: &Expr) {
        match expr {
            Expr::Identifier(ident) => self.ident(ident),
            Expr::CompoundIdentifier(parts) => self.list(parts, ".", Self::ident),
            Expr::Value(value) => self.value(&value.value),
            Expr::TypedString(typed) => match time_literal(typed) {
                Some((kind, text)) => {
                    self.push(kind.keywords());
                    self.push(" ");
                    self.text(text);
                }
                None => self.push(&typed.to_string()),
            },
            Expr::Interval(interval) => self.interval(interval),
            Expr::Nested(inner) => {
                self.push("(");
                self.expr(inner);
                self.push(")");
            }
            Expr::Tuple(fields) => self.brackets(fields, Self::expr),
            Expr::Subquery(_) => self.bracketed(expr),
            Expr::Exists { subquery, negated } => {
                self.push(if *negated { "NOT EXISTS (" } else { "EXISTS (" });
                self.query(subquery);
                self.push(")");
            }
            Expr::UnaryOp { op, expr } => self.unary(*op, expr),
            Expr::Array(array) => {
                self.push("ARRAY[");
                self.list(&array.elem, ", ", Self::expr);
                self.push("]");
            }
            Expr::Map(map) => {
                self.push("MAP[");
                self.list(&map.entries, ", ", |printer, entry| {
                    printer.expr(&entry.key);
                    printer.push(", ");
                    printer.expr(&entry.value);
                });
                self.push("]");
            }
            Expr::Function(function) => self.function_call(function),
            Expr::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref());
            }
            Expr::GroupingSets(sets) => self.grouping("GROUPING SETS ", sets),
            Expr::Cube(sets) => self.grouping("CUBE ", sets),
            Expr::Rollup(sets) => self.grouping("ROLLUP ", sets),
            Expr::Prefixed { prefix, value } => self.prefixed(expr, prefix, value),
            other => self.call_with_words(other),
        }
    }

    /// Appends a table, query or model that is an argument, or another word in front of a value.
    fn prefixed(&mut self, expr: &Expr, prefix: &ast::Ident, value: &Expr) {
        let Some(argument) = relation_argument(expr) else {
            self.push(&prefix.value);
            self.push(" ");
            return self.expr(value);
        };
        match argument.relation {
            Relation::Table(name) => self.relation("TABLE ", name),
            Relation::Model(name) => self.relation("MODEL ", name),
            Relation::Query(query) => {
                self.push("TABLE (");
                self.query(query);
                self.push(")");
            }
        }
        if !argument.partition_by.is_empty() {
            self.push(" PARTITION BY ");
            self.brackets(argument.partition_by, Self::expr);
        }
        if !argument.order_by.is_empty() {
            self.push(" ORDER BY ");
            self.brackets(argument.order_by, Self::order_item);
        }
    }

    fn relation(&mut self, keyword: &str, name: &[ast::Ident]) {
        self.push(keyword);
        self.list(name, ".", Self::ident);
        if let Some(last) = name.last() {
            self.hints_behind(last.span);
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Number(digits, _) => self.push(digits),
            Value::SingleQuotedString(text) => self.text(text),
            Value::HexStringLiteral(digits) => {
                self.push("X");
                self.text(digits);
            }
            Value::Boolean(true) => self.push("TRUE"),
            Value::Boolean(false) => self.push("FALSE"),
            Value::Null => self.push("NULL"),
            other => self.push(&other.to_string()),
        }
    }

    fn unary(&mut self, op: UnaryOperator, expr: &Expr) {
        match op {
            UnaryOperator::Not => self.push("NOT "),
            UnaryOperator::Minus => self.push("-"),
            _ => self.push("+"),
        }
        let start = self.out.len();
        self.expr(expr);
        // Two minus signs would start a comment.
        if self.out[start..].starts_with('-') {
            self.out.insert(start, ' ');
        }
    }

    fn interval(&mut self, interval: &ast::Interval) {
        self.push_if(!matches!(&*interval.value, Expr::Nested(_)), "INTERVAL ");
        self.expr(&interval.value);
        if let Some(field) = &interval.leading_field {
            self.push(" ");
            self.push(unit_word(field));
        }
        let is_second = interval.leading_field == Some(DateTimeField::Second);
        match (interval.leading_precision, interval.fractional_seconds_precision) {
            (Some(leading), Some(fraction)) if is_second => self.push(&format!("({leading}, {fraction})")),
            (Some(leading), _) => self.push(&format!("({leading})")),
            (None, _) => {}
        }
        if let Some(field) = &interval.last_field {
            self.push(" TO ");
            self.push(unit_word(field));
            if let Some(fraction) = interval.fractional_seconds_precision {
                self.push(&format!("({fraction})"));
            }
        }
    }

    fn case(&mut self, operand: Option<&Expr>, conditions: &[ast::CaseWhen], else_result: Option<&Expr>) {
        self.push("CASE");
        if let Some(operand) = operand {
            self.push(" ");
            self.expr(operand);
        }
        for branch in conditions {
            self.push(" WHEN ");
            self.expr(&branch.condition);
            self.push(" THEN ");
            self.expr(&branch.result);
        }
        if let Some(result) = else_result {
            self.push(" ELSE ");
            self.expr(result);
        }
        self.push(" END");
    }

    fn grouping(&mut self, words: &str, sets: &[Vec<Expr>]) {
        self.push(words);
        self.brackets(sets, |printer, set| match set.as_slice() {
            [inner @ (Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_))] => printer.expr(inner),
            items => printer.brackets(items, Self::expr),
        });
    }

    /// Appends the calls that have words between their arguments.
    fn call_with_words(&mut self, expr: &Expr) {
        match expr {
            Expr::Cast { kind, expr, data_type, .. } => {
                self.push(if *kind == ast::CastKind::TryCast { "TRY_CAST(" } else { "CAST(" });
                self.expr(expr);
                self.push(" AS ");
                self.push(&type_text(data_type));
                self.push(")");
            }
            Expr::Extract { field, expr, .. } => {
                self.push("EXTRACT(");
                self.push(unit_word(field));
                self.push(" FROM ");
                self.expr(expr);
                self.push(")");
            }
            Expr::Ceil { expr, field } => self.rounded("CEIL(", expr, field),
            Expr::Floor { expr, field } => self.rounded("FLOOR(", expr, field),
            Expr::Position { expr, r#in } => {
                self.push("POSITION(");
                self.expr(expr);
                self.push(" IN ");
                self.expr(r#in);
                self.push(")");
            }
            Expr::Substring { expr, substring_from, substring_for, .. } => {
                self.push("SUBSTRING(");
                self.expr(expr);
                self.word_and_expr(" FROM ", substring_from.as_deref());
                self.word_and_expr(" FOR ", substring_for.as_deref());
                self.push(")");
            }
            Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                self.push("OVERLAY(");
                self.expr(expr);
                self.word_and_expr(" PLACING ", Some(overlay_what));
                self.word_and_expr(" FROM ", Some(overlay_from));
                self.word_and_expr(" FOR ", overlay_for.as_deref());
                self.push(")");
            }
            Expr::Trim { expr, trim_where, trim_what, .. } => {
                self.push("TRIM(");
                if let Some(side) = trim_where {
                    self.push(&side.to_string());
                    self.push(" ");
                }
                if let Some(what) = trim_what {
                    self.expr(what);
                    self.push(" ");
                }
                self.push("FROM ");
                self.expr(expr);
                self.push(")");
            }
            // The parser makes no other.
            other => self.push(&other.to_string()),
        }
    }

    fn word_and_expr(&mut self, word: &str, expr: Option<&Expr>) {
        if let Some(expr) = expr {
            self.push(word);
            self.expr(expr);
        }
    }

    fn rounded(&mut self, call: &str, expr: &Expr, field: &CeilFloorKind) {
        self.push(call);
        self.expr(expr);
        if let CeilFloorKind::DateTimeField(field) = field {
            self.push(" TO ");
            self.push(unit_word(field));
        }
        self.push(")");
    }

    fn function_call(&mut self, function: &ast::Function) {
        match bare_name(function) {
            Some(name) if self.expands => self.push(&name.to_uppercase()),
            _ => self.list(&function.name.0, ".", |printer, part| match part.as_ident() {
                Some(ident) => printer.ident(ident),
                None => printer.push(&part.to_string()),
            }),
        }
        if let FunctionArguments::List(list) = &function.args {
            self.push("(");
            match list.duplicate_treatment {
                Some(DuplicateTreatment::Distinct) => self.push("DISTINCT "),
                Some(DuplicateTreatment::All) => self.push("ALL "),
                None => {}
            }
            let mut before = list.args.len();
            // Clauses of JSON functions follow RETURNING, which is no argument.
            while before > 0 && json_clause_name(&list.args[before - 1]).is_some() {
                before -= 1;
            }
            self.list(&list.args[..before], ", ", Self::argument);
            self.clauses(&list.clauses, before > 0);
            for clause in &list.args[before..] {
                self.json_clause(clause);
            }
            self.push(")");
        }
        self.call_suffix(function);
    }

    /// Appends one argument.
    pub(super) fn argument(&mut self, argument: &FunctionArg) {
        match argument {
            FunctionArg::Unnamed(value) => self.argument_value(value),
            FunctionArg::Named { name, arg, .. } => {
                self.ident(name);
                self.push(" => ");
                self.argument_value(arg);
            }
            FunctionArg::ExprNamed { name, arg, .. } => {
                self.push("KEY ");
                self.expr(name);
                self.push(" VALUE ");
                self.argument_value(arg);
            }
        }
    }

    fn argument_value(&mut self, value: &FunctionArgExpr) {
        match value {
            FunctionArgExpr::Expr(expr) => self.expr(expr),
            FunctionArgExpr::Wildcard => self.push("*"),
            FunctionArgExpr::QualifiedWildcard(name) => self.push(&format!("{name}.*")),
        }
    }

    fn json_clause(&mut self, clause: &FunctionArg) {
        if let FunctionArg::Named { name, arg: FunctionArgExpr::Expr(behavior), .. } = clause {
            self.push(" ");
            match behavior {
                Expr::Identifier(words) => self.push(&words.value),
                other => self.expr(other),
            }
            self.push(" ");
            self.push(&name.value);
        }
    }

    fn clauses(&mut self, clauses: &[FunctionArgumentClause], has_arguments: bool) {
        for (index, clause) in clauses.iter().enumerate() {
            self.push_if(index > 0 || has_arguments, " ");
            match clause {
                FunctionArgumentClause::OrderBy(items) => {
                    self.push("ORDER BY ");
                    self.list(items, ", ", Self::order_item);
                }
                FunctionArgumentClause::IgnoreOrRespectNulls(treatment) => {
                    self.push(null_treatment(*treatment));
                }
                FunctionArgumentClause::JsonNullClause(JsonNullClause::NullOnNull) => {
                    self.push("NULL ON NULL");
                }
                FunctionArgumentClause::JsonNullClause(JsonNullClause::AbsentOnNull) => {
                    self.push("ABSENT ON NULL");
                }
                FunctionArgumentClause::JsonReturningClause(returning) => {
                    self.push("RETURNING ");
                    self.push(&type_text(&returning.data_type));
                }
                // The parser makes no other.
                other => self.push(&other.to_string()),
            }
        }
    }

    fn call_suffix(&mut self, function: &ast::Function) {
        if let Some(treatment) = function.null_treatment {
            self.push(" ");
            self.push(null_treatment(treatment));
        }
        if !function.within_group.is_empty() {
            self.push(" WITHIN GROUP (ORDER BY ");
            self.list(&function.within_group, ", ", Self::order_item);
            self.push(")");
        }
        if let Some(condition) = &function.filter {
            self.push(" FILTER (WHERE ");
            self.expr(condition);
            self.push(")");
        }
        match &function.over {
            Some(WindowType::NamedWindow(name)) => {
                self.push(" OVER ");
                self.ident(name);
            }
            Some(WindowType::WindowSpec(spec)) => {
                self.push(" OVER ");
                self.window_spec(spec);
            }
            None => {}
        }
    }

    /// Appends `(window PARTITION BY … ORDER BY … frame)`.
    pub(super) fn window_spec(&mut self, spec: &ast::WindowSpec) {
        self.push("(");
        let start = self.out.len();
        let blank = |printer: &mut Self| printer.push_if(printer.out.len() > start, " ");
        if let Some(name) = &spec.window_name {
            self.ident(name);
        }
        if !spec.partition_by.is_empty() {
            blank(self);
            self.push("PARTITION BY ");
            self.list(&spec.partition_by, ", ", Self::expr);
        }
        if !spec.order_by.is_empty() {
            blank(self);
            self.push("ORDER BY ");
            self.list(&spec.order_by, ", ", Self::order_item);
        }
        if let Some(frame) = &spec.window_frame {
            blank(self);
            self.push(if frame.units == WindowFrameUnits::Rows { "ROWS " } else { "RANGE " });
            self.push_if(frame.end_bound.is_some(), "BETWEEN ");
            self.window_bound(&frame.start_bound);
            if let Some(end) = &frame.end_bound {
                self.push(" AND ");
                self.window_bound(end);
            }
        }
        self.push(")");
    }

    fn window_bound(&mut self, bound: &WindowFrameBound) {
        let (distance, word) = match bound {
            WindowFrameBound::CurrentRow => return self.push("CURRENT ROW"),
            WindowFrameBound::Preceding(distance) => (distance, " PRECEDING"),
            WindowFrameBound::Following(distance) => (distance, " FOLLOWING"),
        };
        match distance {
            Some(distance) => self.expr(distance),
            None => self.push("UNBOUNDED"),
        }
        self.push(word);
    }

    /// Appends an expression with its direction.
    pub(super) fn order_item(&mut self, item: &OrderByExpr) {
        self.expr(&item.expr);
        match item.options.asc {
            Some(true) => self.push(" ASC"),
            Some(false) => self.push(" DESC"),
            None => {}
        }
        match item.options.nulls_first {
            Some(true) => self.push(" NULLS FIRST"),
            Some(false) => self.push(" NULLS LAST"),
            None => {}
        }
    }
}

/// Returns the operand that an expression starts with, if it goes on behind it.
fn left_operand(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::BinaryOp { left, .. } | Expr::AnyOp { left, .. } | Expr::AllOp { left, .. } => Some(left),
        Expr::IsNull(left)
        | Expr::IsNotNull(left)
        | Expr::IsTrue(left)
        | Expr::IsNotTrue(left)
        | Expr::IsFalse(left)
        | Expr::IsNotFalse(left)
        | Expr::IsUnknown(left)
        | Expr::IsNotUnknown(left)
        | Expr::IsDistinctFrom(left, _)
        | Expr::IsNotDistinctFrom(left, _) => Some(left),
        Expr::InList { expr, .. }
        | Expr::InSubquery { expr, .. }
        | Expr::Between { expr, .. }
        | Expr::Like { expr, .. }
        | Expr::ILike { expr, .. }
        | Expr::SimilarTo { expr, .. }
        | Expr::RLike { expr, .. } => Some(expr),
        Expr::CompoundFieldAccess { root, .. } => Some(root),
        Expr::Function(function) => is_json(function).map(|(left, _, _)| left),
        _ => None,
    }
}

/// Returns the clause that a named argument of a JSON function is.
fn json_clause_name(argument: &FunctionArg) -> Option<&str> {
    match argument {
        FunctionArg::Named { name, operator: FunctionArgOperator::Colon, .. } => Some(&name.value),
        _ => None,
    }
}

fn null_treatment(treatment: NullTreatment) -> &'static str {
    match treatment {
        NullTreatment::IgnoreNulls => "IGNORE NULLS",
        NullTreatment::RespectNulls => "RESPECT NULLS",
    }
}
