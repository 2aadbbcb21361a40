//! MATCH_RECOGNIZE: read in full, so that it can be refused or planned by name.

use sqlparser::ast::{
    self, AfterMatchSkip, MatchRecognizePattern, MatchRecognizeSymbol, RepetitionQuantifier, RowsPerMatch,
    TableFactor,
};
use sqlparser::tokenizer::Token;

use super::cursor::Parser;
use crate::error::{Error, Result};

impl Parser<'_> {
    /// Takes `MATCH_RECOGNIZE (…)` behind a table.
    pub(super) fn match_recognize(&mut self, table: TableFactor) -> Result<TableFactor> {
        self.expect("MATCH_RECOGNIZE")?;
        self.expect_sign(&Token::LParen)?;
        let partition_by =
            if self.accept_all(&["PARTITION", "BY"]) { self.list(Self::expression)? } else { Vec::new() };
        let order_by =
            if self.accept_all(&["ORDER", "BY"]) { self.list(Self::order_item)? } else { Vec::new() };
        let measures = if self.accept("MEASURES") {
            self.list(|parser| {
                let expr = parser.expression()?;
                parser.expect("AS")?;
                Ok(ast::Measure { expr, alias: parser.ident()? })
            })?
        } else {
            Vec::new()
        };
        let rows_per_match = if self.accept_all(&["ONE", "ROW"]) {
            self.expect_all(&["PER", "MATCH"])?;
            Some(RowsPerMatch::OneRow)
        } else if self.at_all(&["ALL", "ROWS"]) {
            return Err(Error::unsupported("ALL ROWS PER MATCH is not supported").at(self.span()));
        } else {
            None
        };
        let after_match_skip =
            if self.accept_all(&["AFTER", "MATCH"]) { Some(self.after_match_skip()?) } else { None };
        self.expect("PATTERN")?;
        self.expect_sign(&Token::LParen)?;
        let pattern = self.pattern()?;
        self.expect_sign(&Token::RParen)?;
        if self.at("WITHIN") {
            return Err(Error::unsupported("WITHIN of MATCH_RECOGNIZE is not supported").at(self.span()));
        }
        self.expect("DEFINE")?;
        let symbols = self.list(|parser| {
            let symbol = parser.ident()?;
            parser.expect("AS")?;
            Ok(ast::SymbolDefinition { symbol, definition: parser.expression()? })
        })?;
        self.expect_sign(&Token::RParen)?;
        Ok(TableFactor::MatchRecognize {
            table: Box::new(table),
            partition_by,
            order_by,
            measures,
            rows_per_match,
            after_match_skip,
            pattern,
            symbols,
            alias: None,
        })
    }

    fn after_match_skip(&mut self) -> Result<AfterMatchSkip> {
        self.expect("SKIP")?;
        if self.accept("PAST") {
            self.expect_all(&["LAST", "ROW"])?;
            return Ok(AfterMatchSkip::PastLastRow);
        }
        self.expect("TO")?;
        if self.accept_all(&["NEXT", "ROW"]) {
            return Ok(AfterMatchSkip::ToNextRow);
        }
        let first = self.accept("FIRST");
        if !first {
            self.accept("LAST");
        }
        let symbol = self.ident()?;
        Ok(if first { AfterMatchSkip::ToFirst(symbol) } else { AfterMatchSkip::ToLast(symbol) })
    }

    /// Takes the variables of a pattern with their quantifiers; Flink has no groups and no alternatives.
    fn pattern(&mut self) -> Result<MatchRecognizePattern> {
        let mut parts = Vec::new();
        while !self.at_sign(&Token::RParen) {
            let symbol = MatchRecognizePattern::Symbol(MatchRecognizeSymbol::Named(self.ident()?));
            parts.push(match self.quantifier()? {
                Some(quantifier) => MatchRecognizePattern::Repetition(Box::new(symbol), quantifier),
                None => symbol,
            });
        }
        if parts.is_empty() {
            self.expecting("a pattern variable");
            return Err(self.unexpected());
        }
        Ok(if parts.len() == 1 { parts.swap_remove(0) } else { MatchRecognizePattern::Concat(parts) })
    }

    fn quantifier(&mut self) -> Result<Option<RepetitionQuantifier>> {
        let quantifier = if self.accept_sign(&Token::Mul) {
            RepetitionQuantifier::ZeroOrMore
        } else if self.accept_sign(&Token::Plus) {
            RepetitionQuantifier::OneOrMore
        } else if self.at_question() {
            self.advance();
            RepetitionQuantifier::AtMostOne
        } else if self.accept_sign(&Token::LBrace) {
            self.repetitions()?
        } else {
            return Ok(None);
        };
        if self.at_question() {
            return Err(Error::unsupported("reluctant quantifiers are not supported").at(self.span()));
        }
        Ok(Some(quantifier))
    }

    fn at_question(&self) -> bool {
        matches!(self.peek(), Some(Token::Question))
            || matches!(self.peek(), Some(Token::Placeholder(text)) if text == "?")
    }

    /// Takes `n}`, `n,}`, `,m}` or `n,m}`.
    fn repetitions(&mut self) -> Result<RepetitionQuantifier> {
        let least = if self.at_sign(&Token::Comma) { None } else { Some(self.unsigned()?) };
        let quantifier = if self.accept_sign(&Token::Comma) {
            let most = if self.at_sign(&Token::RBrace) { None } else { Some(self.unsigned()?) };
            match (least, most) {
                (Some(least), Some(most)) => RepetitionQuantifier::Range(least, most),
                (Some(least), None) => RepetitionQuantifier::AtLeast(least),
                (None, Some(most)) => RepetitionQuantifier::AtMost(most),
                (None, None) => return Err(self.unexpected()),
            }
        } else {
            RepetitionQuantifier::Exactly(least.unwrap_or_default())
        };
        self.expect_sign(&Token::RBrace)?;
        Ok(quantifier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_clauses() {
        let text = "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY a ORDER BY ts MEASURES A.x AS n, LAST(B.x) AS m \
                    ONE ROW PER MATCH AFTER MATCH SKIP TO FIRST B PATTERN (A B+ C? D{2,3} E*) \
                    DEFINE A AS A.x > 1, B AS B.x < 2) AS m";
        let mut parser = Parser::new(text).unwrap();
        parser.query().unwrap();
        parser.finish().unwrap();
    }

    #[test]
    fn what_flink_refuses_is_refused() {
        for pattern in ["(A B)", "A | B", "A*?", "PERMUTE(A, B)"] {
            let text =
                format!("SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts PATTERN ({pattern}) DEFINE A AS TRUE)");
            assert!(Parser::new(&text).unwrap().query().is_err(), "{pattern}");
        }
    }
}
