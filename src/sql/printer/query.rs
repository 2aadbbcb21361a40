//! Queries, in every form that the parser makes.

use sqlparser::ast::{
    self, AfterMatchSkip, Distinct, GroupByExpr, Join, JoinConstraint, JoinOperator, LimitClause,
    MatchRecognizePattern, MatchRecognizeSymbol, NamedWindowExpr, OrderByKind, RepetitionQuantifier, Select,
    SelectItem, SelectItemQualifiedWildcardKind, SetExpr, SetQuantifier, TableAlias, TableFactor,
    TableVersion, TableWithJoins,
};

use super::Printer;

impl Printer<'_> {
    /// Appends a query.
    pub(super) fn query(&mut self, query: &ast::Query) {
        if let Some(with) = &query.with {
            self.push("WITH ");
            self.list(&with.cte_tables, ", ", |printer, table| {
                printer.alias(&table.alias);
                printer.push(" AS (");
                printer.query(&table.query);
                printer.push(")");
            });
            self.push(" ");
        }
        self.set_expr(&query.body);
        if let Some(ast::OrderBy { kind: OrderByKind::Expressions(items), .. }) = &query.order_by {
            self.push(" ORDER BY ");
            self.list(items, ", ", Self::order_item);
        }
        match &query.limit_clause {
            Some(LimitClause::LimitOffset { limit, offset, .. }) => {
                self.push(" LIMIT ");
                match limit {
                    Some(limit) => self.expr(limit),
                    None => self.push("ALL"),
                }
                if let Some(offset) = offset {
                    self.push(" OFFSET ");
                    self.expr(&offset.value);
                }
            }
            // The parser makes no `LIMIT offset, limit`.
            Some(other) => self.push(&other.to_string()),
            None => {}
        }
        if let Some(fetch) = &query.fetch {
            self.push(" FETCH NEXT ");
            if let Some(quantity) = &fetch.quantity {
                self.expr(quantity);
                self.push(" ");
            }
            self.push("ROWS ONLY");
        }
    }

    /// Appends set operations; they lean to the left, which is a loop.
    fn set_expr(&mut self, body: &SetExpr) {
        let mut chain = Vec::new();
        let mut first = body;
        while let SetExpr::SetOperation { op, set_quantifier, left, right } = first {
            chain.push((op, set_quantifier, right));
            first = left;
        }
        self.set_operand(first);
        for (op, quantifier, right) in chain.into_iter().rev() {
            self.push(&format!(" {op} "));
            match quantifier {
                SetQuantifier::All => self.push("ALL "),
                SetQuantifier::Distinct => self.push("DISTINCT "),
                _ => {}
            }
            self.set_expr(right);
        }
    }

    fn set_operand(&mut self, body: &SetExpr) {
        match body {
            SetExpr::Select(select) => self.select(select),
            SetExpr::Query(query) => {
                self.push("(");
                self.query(query);
                self.push(")");
            }
            SetExpr::Values(values) => {
                self.push("VALUES ");
                self.list(&values.rows, ", ", |printer, row| {
                    // Without ROW, brackets around one value would be its own: `((1, 2))` is a row of two.
                    printer.push("ROW");
                    printer.brackets(row, Self::expr);
                });
            }
            // The parser makes no other.
            other => self.push(&other.to_string()),
        }
    }

    fn select(&mut self, select: &Select) {
        self.push("SELECT");
        self.hints_behind(select.select_token.0.span);
        self.push(" ");
        self.push_if(matches!(select.distinct, Some(Distinct::Distinct)), "DISTINCT ");
        self.list(&select.projection, ", ", Self::select_item);
        if !select.from.is_empty() {
            self.push(" FROM ");
            self.list(&select.from, ", ", Self::table_with_joins);
        }
        if let Some(condition) = &select.selection {
            self.push(" WHERE ");
            self.expr(condition);
        }
        if let GroupByExpr::Expressions(items, _) = &select.group_by
            && !items.is_empty()
        {
            self.push(" GROUP BY ");
            self.list(items, ", ", Self::expr);
        }
        if let Some(condition) = &select.having {
            self.push(" HAVING ");
            self.expr(condition);
        }
        if !select.named_window.is_empty() {
            self.push(" WINDOW ");
            self.list(&select.named_window, ", ", |printer, window| {
                printer.ident(&window.0);
                printer.push(" AS ");
                match &window.1 {
                    NamedWindowExpr::WindowSpec(spec) => printer.window_spec(spec),
                    NamedWindowExpr::NamedWindow(name) => printer.ident(name),
                }
            });
        }
        if let Some(condition) = &select.qualify {
            self.push(" QUALIFY ");
            self.expr(condition);
        }
    }

    fn select_item(&mut self, item: &SelectItem) {
        match item {
            SelectItem::Wildcard(_) => self.push("*"),
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                self.object_name(name);
                self.push(".*");
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(expr), _) => {
                self.expr(expr);
                self.push(".*");
            }
            SelectItem::UnnamedExpr(expr) => self.expr(expr),
            SelectItem::ExprWithAlias { expr, alias } => {
                self.expr(expr);
                self.push(" AS ");
                self.ident(alias);
            }
        }
    }

    /// Appends a name with the quotes it had.
    fn object_name(&mut self, name: &ast::ObjectName) {
        self.list(&name.0, ".", |printer, part| match part.as_ident() {
            Some(ident) => printer.ident(ident),
            None => printer.push(&part.to_string()),
        });
    }

    fn table_with_joins(&mut self, table: &TableWithJoins) {
        self.table_factor(&table.relation);
        for join in &table.joins {
            self.join(join);
        }
    }

    fn join(&mut self, join: &Join) {
        let (word, constraint) = match &join.join_operator {
            JoinOperator::Inner(constraint) => ("JOIN ", constraint),
            JoinOperator::LeftOuter(constraint) => ("LEFT JOIN ", constraint),
            JoinOperator::RightOuter(constraint) => ("RIGHT JOIN ", constraint),
            JoinOperator::FullOuter(constraint) => ("FULL JOIN ", constraint),
            JoinOperator::CrossJoin(constraint) => ("CROSS JOIN ", constraint),
            // The parser makes no other.
            _ => return self.push(&join.to_string()),
        };
        self.push(" ");
        self.push_if(matches!(constraint, JoinConstraint::Natural), "NATURAL ");
        self.push(word);
        self.table_factor(&join.relation);
        match constraint {
            JoinConstraint::On(condition) => {
                self.push(" ON ");
                self.expr(condition);
            }
            JoinConstraint::Using(columns) => {
                self.push(" USING ");
                self.brackets(columns, Self::object_name);
            }
            JoinConstraint::Natural | JoinConstraint::None => {}
        }
    }

    fn table_factor(&mut self, factor: &TableFactor) {
        let alias = match factor {
            TableFactor::Table { name, alias, version, .. } => {
                self.object_name(name);
                if let Some(last) = name.0.last().and_then(|part| part.as_ident()) {
                    self.hints_behind(last.span);
                }
                if let Some(TableVersion::ForSystemTimeAsOf(time)) = version {
                    self.push(" FOR SYSTEM_TIME AS OF ");
                    self.expr(time);
                }
                alias
            }
            TableFactor::Derived { lateral, subquery, alias, .. } => {
                self.push(if *lateral { "LATERAL (" } else { "(" });
                self.query(subquery);
                self.push(")");
                alias
            }
            TableFactor::Function { lateral, name, args, alias } => {
                self.push(if *lateral { "LATERAL TABLE(" } else { "TABLE(" });
                self.object_name(name);
                self.brackets(args, Self::argument);
                self.push(")");
                alias
            }
            TableFactor::UNNEST { alias, array_exprs, with_ordinality, .. } => {
                self.push("UNNEST");
                self.brackets(array_exprs, Self::expr);
                self.push_if(*with_ordinality, " WITH ORDINALITY");
                alias
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                self.push("(");
                self.table_with_joins(table_with_joins);
                self.push(")");
                alias
            }
            TableFactor::MatchRecognize { alias, .. } => {
                self.match_recognize(factor);
                alias
            }
            // The parser makes no other.
            other => return self.push(&other.to_string()),
        };
        if let Some(alias) = alias {
            self.push(" AS ");
            self.alias(alias);
        }
    }

    fn alias(&mut self, alias: &TableAlias) {
        self.ident(&alias.name);
        if !alias.columns.is_empty() {
            self.push(" ");
            self.brackets(&alias.columns, |printer, column| printer.ident(&column.name));
        }
    }

    fn match_recognize(&mut self, factor: &TableFactor) {
        let TableFactor::MatchRecognize {
            table,
            partition_by,
            order_by,
            measures,
            rows_per_match,
            after_match_skip,
            pattern,
            symbols,
            ..
        } = factor
        else {
            return;
        };
        self.table_factor(table);
        self.push(" MATCH_RECOGNIZE (");
        if !partition_by.is_empty() {
            self.push("PARTITION BY ");
            self.list(partition_by, ", ", Self::expr);
            self.push(" ");
        }
        if !order_by.is_empty() {
            self.push("ORDER BY ");
            self.list(order_by, ", ", Self::order_item);
            self.push(" ");
        }
        if !measures.is_empty() {
            self.push("MEASURES ");
            self.list(measures, ", ", |printer, measure| {
                printer.expr(&measure.expr);
                printer.push(" AS ");
                printer.ident(&measure.alias);
            });
            self.push(" ");
        }
        self.push_if(rows_per_match.is_some(), "ONE ROW PER MATCH ");
        if let Some(skip) = after_match_skip {
            self.push("AFTER MATCH SKIP ");
            match skip {
                AfterMatchSkip::PastLastRow => self.push("PAST LAST ROW "),
                AfterMatchSkip::ToNextRow => self.push("TO NEXT ROW "),
                AfterMatchSkip::ToFirst(symbol) | AfterMatchSkip::ToLast(symbol) => {
                    self.push(if matches!(skip, AfterMatchSkip::ToFirst(_)) {
                        "TO FIRST "
                    } else {
                        "TO LAST "
                    });
                    self.ident(symbol);
                    self.push(" ");
                }
            }
        }
        self.push("PATTERN (");
        self.pattern(pattern);
        self.push(") DEFINE ");
        self.list(symbols, ", ", |printer, symbol| {
            printer.ident(&symbol.symbol);
            printer.push(" AS ");
            printer.expr(&symbol.definition);
        });
        self.push(")");
    }

    fn pattern(&mut self, pattern: &MatchRecognizePattern) {
        match pattern {
            MatchRecognizePattern::Symbol(MatchRecognizeSymbol::Named(name)) => self.ident(name),
            MatchRecognizePattern::Concat(parts) => self.list(parts, " ", Self::pattern),
            MatchRecognizePattern::Repetition(symbol, quantifier) => {
                self.pattern(symbol);
                let text = match quantifier {
                    RepetitionQuantifier::ZeroOrMore => "*".to_owned(),
                    RepetitionQuantifier::OneOrMore => "+".to_owned(),
                    RepetitionQuantifier::AtMostOne => "?".to_owned(),
                    RepetitionQuantifier::Exactly(times) => format!("{{{times}}}"),
                    RepetitionQuantifier::AtLeast(least) => format!("{{{least},}}"),
                    RepetitionQuantifier::AtMost(most) => format!("{{,{most}}}"),
                    RepetitionQuantifier::Range(least, most) => format!("{{{least},{most}}}"),
                };
                self.push(&text);
            }
            // The parser makes no other.
            other => self.push(&other.to_string()),
        }
    }
}
