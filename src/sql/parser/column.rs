//! What stands between the brackets of CREATE TABLE: columns, keys, watermarks.

use sqlparser::tokenizer::Token;

use super::super::{
    ColumnDefinition, ColumnDefinitionKind, Spanned, TableConstraint, TableElement, WatermarkDefinition,
};
use super::cursor::Parser;
use crate::error::{Error, FlinkClass, Result};

/// What Flink says about keys that it would have to check.
const ENFORCED: &str = "Flink doesn't support ENFORCED mode for PRIMARY KEY constraint. ENFORCED/NOT ENFORCED controls if \
                        the constraint checks are performed on the incoming/outgoing data. Flink does not own the data \
                        therefore the only supported mode is the NOT ENFORCED mode";

impl Parser<'_> {
    /// Takes one element.
    pub(super) fn table_element(&mut self) -> Result<TableElement> {
        if self.at_constraint() {
            return Ok(TableElement::Constraint(self.table_constraint()?));
        }
        if self.at_watermark() {
            self.advance();
            self.expect("FOR")?;
            let column = self.dotted_name()?;
            self.expect("AS")?;
            return Ok(TableElement::Watermark(WatermarkDefinition {
                column,
                expression: self.spanned_expression()?,
            }));
        }
        Ok(TableElement::Column(self.column()?))
    }

    /// Returns whether a key is next and no column of such a name.
    fn at_constraint(&self) -> bool {
        self.at_all(&["PRIMARY", "KEY"]) && self.peek_at(2) == Some(&Token::LParen)
            || self.at("UNIQUE") && self.peek_at(1) == Some(&Token::LParen)
            || self.at("CONSTRAINT") && (self.at_ahead(2, "PRIMARY") || self.at_ahead(2, "UNIQUE"))
    }

    /// Returns whether a watermark is next and no column of such a name.
    fn at_watermark(&self) -> bool {
        self.at("WATERMARK") && self.at_ahead(1, "FOR")
    }

    fn column(&mut self) -> Result<ColumnDefinition> {
        let name = self.name()?;
        let kind = if self.accept("AS") {
            ColumnDefinitionKind::Computed(self.spanned_expression()?)
        } else {
            let data_type = self.data_type()?;
            if self.accept("METADATA") {
                let key = if self.accept("FROM") { Some(self.text()?.value) } else { None };
                ColumnDefinitionKind::Metadata { data_type, key, is_virtual: self.accept("VIRTUAL") }
            } else {
                let constraint = if self.at_any(&["CONSTRAINT", "PRIMARY", "UNIQUE"]) {
                    Some(self.constraint(false)?)
                } else {
                    None
                };
                ColumnDefinitionKind::Physical { data_type, constraint }
            }
        };
        Ok(ColumnDefinition { name, kind, comment: self.comment()? })
    }

    /// Takes `[CONSTRAINT name] {PRIMARY KEY | UNIQUE} (column, …) [NOT ENFORCED]`.
    pub(super) fn table_constraint(&mut self) -> Result<TableConstraint> {
        self.constraint(true)
    }

    fn constraint(&mut self, with_columns: bool) -> Result<TableConstraint> {
        let start = self.span();
        let name = if self.accept("CONSTRAINT") { Some(self.name()?.value) } else { None };
        let unique = self.expect_any(&["PRIMARY", "UNIQUE"])? == 1;
        if !unique {
            self.expect("KEY")?;
        }
        let columns = if with_columns { self.bracketed_names()? } else { Vec::new() };
        let enforced = if self.accept_all(&["NOT", "ENFORCED"]) {
            Some(false)
        } else if self.accept("ENFORCED") {
            Some(true)
        } else {
            None
        };
        let span = self.span_from(start);
        if unique {
            return Err(Error::validation("UNIQUE constraint is not supported yet")
                .class(FlinkClass::PARSER_VALIDATE)
                .at(span)
                .hint("Use PRIMARY KEY (…) NOT ENFORCED."));
        }
        if enforced != Some(false) {
            return Err(Error::validation(ENFORCED)
                .class(FlinkClass::PARSER_VALIDATE)
                .at(span)
                .hint("Write NOT ENFORCED behind the key."));
        }
        Ok(TableConstraint { name, unique, columns, enforced, span: Spanned { value: (), span } })
    }

    /// Checks that a table has at most one key and one watermark.
    pub(super) fn check_elements<'e>(&self, elements: impl Iterator<Item = &'e TableElement>) -> Result<()> {
        let (mut keys, mut watermarks) = (0, 0);
        for element in elements {
            let key = match element {
                TableElement::Constraint(constraint) => Some(constraint),
                TableElement::Column(ColumnDefinition {
                    kind: ColumnDefinitionKind::Physical { constraint, .. },
                    ..
                }) => constraint.as_ref(),
                TableElement::Watermark(watermark) => {
                    watermarks += 1;
                    if watermarks > 1 {
                        return Err(Error::syntax("Multiple WATERMARK declarations are not supported yet.")
                            .class(FlinkClass::PARSE)
                            .at(watermark.column.span));
                    }
                    None
                }
                TableElement::Column(_) => None,
            };
            if let Some(key) = key {
                keys += 1;
                if keys > 1 {
                    return Err(Error::validation("Duplicate primary key definition")
                        .class(FlinkClass::PARSER_VALIDATE)
                        .at(key.span.span));
                }
            }
        }
        Ok(())
    }
}
