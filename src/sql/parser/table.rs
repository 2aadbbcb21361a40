//! CREATE TABLE in all its forms, and DROP TABLE.

use sqlparser::tokenizer::Token;

use super::super::{
    CreateTable, DistributionClause, LikeClause, LikeFeature, MergingStrategy, Replace, Spanned, Statement,
    TableElement,
};
use super::cursor::Parser;
use crate::error::{Error, FlinkClass, Result};

/// The strategies of LIKE in the order of their enum.
const STRATEGIES: [(&str, MergingStrategy); 3] = [
    ("INCLUDING", MergingStrategy::Including),
    ("EXCLUDING", MergingStrategy::Excluding),
    ("OVERWRITING", MergingStrategy::Overwriting),
];

/// The parts of LIKE in the order of their enum.
const FEATURES: [(&str, LikeFeature); 8] = [
    ("ALL", LikeFeature::All),
    ("CONSTRAINTS", LikeFeature::Constraints),
    ("DISTRIBUTION", LikeFeature::Distribution),
    ("GENERATED", LikeFeature::Generated),
    ("METADATA", LikeFeature::Metadata),
    ("OPTIONS", LikeFeature::Options),
    ("PARTITIONS", LikeFeature::Partitions),
    ("WATERMARKS", LikeFeature::Watermarks),
];

impl Parser<'_> {
    /// Takes `REPLACE TABLE …`.
    pub(super) fn replace_table(&mut self) -> Result<Statement> {
        self.expect("REPLACE")?;
        self.create_table(Some(Replace::MustExist))
    }

    /// Takes `[TEMPORARY] TABLE [IF NOT EXISTS] name …`.
    pub(super) fn create_table(&mut self, replace: Option<Replace>) -> Result<Statement> {
        let temporary = self.accept("TEMPORARY");
        self.expect("TABLE")?;
        let if_not_exists = self.if_not_exists();
        let name = self.object_name()?;
        let (elements, column_names) = self.table_elements()?;
        self.check_elements(elements.iter())?;
        let comment = self.comment()?;
        let distribution = if self.accept("DISTRIBUTED") { Some(self.distribution()?) } else { None };
        let partitioned_by = if self.accept_all(&["PARTITIONED", "BY"]) {
            self.bracketed_list(Self::partition_field)?
        } else {
            Vec::new()
        };
        let options = self.with_options()?;
        let like = if self.accept("LIKE") { Some(self.like_clause()?) } else { None };
        let query = if like.is_none() && self.accept("AS") { Some(self.spanned_query()?) } else { None };
        if column_names.is_some() && query.is_none() {
            self.expect("AS")?;
        }
        Ok(Statement::CreateTable(Box::new(CreateTable {
            name,
            temporary,
            if_not_exists,
            replace,
            elements,
            column_names,
            comment,
            distribution,
            partitioned_by,
            options,
            like,
            query,
        })))
    }

    /// Takes the brackets of a table: definitions, or names alone for the query to come.
    #[allow(clippy::type_complexity, reason = "the two halves are fields of one struct")]
    fn table_elements(&mut self) -> Result<(Vec<TableElement>, Option<Vec<Spanned<String>>>)> {
        if !self.at_sign(&Token::LParen) {
            self.expecting("'('");
            return Ok((Vec::new(), None));
        }
        let names_only = matches!(self.peek_at(1), Some(Token::Word(_)))
            && matches!(self.peek_at(2), Some(Token::Comma | Token::RParen));
        if names_only {
            return Ok((Vec::new(), Some(self.bracketed_names()?)));
        }
        Ok((self.bracketed_list(Self::table_element)?, None))
    }

    /// Takes `{BY [HASH | RANGE] (column, …) [INTO n BUCKETS] | INTO n BUCKETS}`.
    pub(super) fn distribution(&mut self) -> Result<DistributionClause> {
        let mut clause = DistributionClause { kind: None, columns: Vec::new(), buckets: None };
        if self.accept("BY") {
            const KINDS: [&str; 2] = ["HASH", "RANGE"];
            clause.kind = self.accept_any(&KINDS).map(|kind| KINDS[kind].to_owned());
            clause.columns = self.bracketed_names()?;
            if !self.accept("INTO") {
                return Ok(clause);
            }
        } else {
            self.expect("INTO")?;
        }
        clause.buckets = Some(self.unsigned()?);
        self.expect("BUCKETS")?;
        Ok(clause)
    }

    fn like_clause(&mut self) -> Result<LikeClause> {
        let base = self.object_name()?;
        let mut options: Vec<(MergingStrategy, LikeFeature)> = Vec::new();
        if self.accept_sign(&Token::LParen) {
            while !self.accept_sign(&Token::RParen) {
                let start = self.span();
                let strategy = STRATEGIES[self.expect_any(&STRATEGIES.map(|(word, _)| word))?].1;
                let feature = FEATURES[self.expect_any(&FEATURES.map(|(word, _)| word))?].1;
                let invalid = match strategy {
                    MergingStrategy::Overwriting => {
                        matches!(
                            feature,
                            LikeFeature::All
                                | LikeFeature::Constraints
                                | LikeFeature::Distribution
                                | LikeFeature::Partitions
                        )
                    }
                    _ => false,
                };
                let problem = if options.iter().any(|(_, other)| *other == feature) {
                    Some("Each like option feature can only be declared once.".to_owned())
                } else if invalid {
                    let feature =
                        FEATURES.iter().find(|(_, known)| *known == feature).map_or("", |(word, _)| word);
                    Some(format!("Illegal merging strategy 'OVERWRITING' for '{feature}' option."))
                } else {
                    None
                };
                if let Some(problem) = problem {
                    return Err(Error::validation(problem)
                        .class(FlinkClass::PARSER_VALIDATE)
                        .at(self.span_from(start)));
                }
                options.push((strategy, feature));
            }
        }
        Ok(LikeClause { base, options })
    }

    /// Takes `[IF EXISTS] name` of a table.
    pub(super) fn drop_table(&mut self, temporary: bool) -> Result<Statement> {
        let if_exists = self.if_exists();
        Ok(Statement::DropTable { name: self.object_name()?, if_exists, temporary })
    }
}

/// Returns the words of one option of LIKE.
pub(in super::super) fn like_option_words(
    option: (MergingStrategy, LikeFeature),
) -> (&'static str, &'static str) {
    let strategy = STRATEGIES.iter().find(|(_, known)| *known == option.0).map_or("", |(word, _)| word);
    let feature = FEATURES.iter().find(|(_, known)| *known == option.1).map_or("", |(word, _)| word);
    (strategy, feature)
}
