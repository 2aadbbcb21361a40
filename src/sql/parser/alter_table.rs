//! ALTER TABLE: Flink's changes, and Spark's for Iceberg tables.

use sqlparser::tokenizer::Token;

use super::super::{
    AlterTable, ColumnPosition, PartitionSpec, Replace, SchemaElement, Statement, TableChange, TableElement,
};
use super::cursor::Parser;
use crate::error::Result;

impl Parser<'_> {
    /// Takes `[IF EXISTS] name change`.
    pub(super) fn alter_table(&mut self) -> Result<Statement> {
        let if_exists = self.if_exists();
        let name = self.object_name()?;
        let change = self.table_change()?;
        Ok(Statement::AlterTable(Box::new(AlterTable { name, if_exists, change })))
    }

    fn table_change(&mut self) -> Result<TableChange> {
        match self
            .expect_any(&["RENAME", "SET", "RESET", "ADD", "MODIFY", "DROP", "REPLACE", "WRITE", "CREATE"])?
        {
            0 => self.rename(),
            1 => Ok(TableChange::SetOptions(self.options()?)),
            2 => Ok(TableChange::ResetOptions(self.keys()?)),
            3 => self.add(),
            4 => self.modify(),
            5 => self.drop_part(),
            6 => self.replace_part(),
            7 => self.write_order_by(),
            _ => {
                let replace =
                    if self.accept_all(&["OR", "REPLACE"]) { Some(Replace::OrCreate) } else { None };
                Ok(TableChange::CreateRef(self.create_ref(replace)?))
            }
        }
    }

    fn rename(&mut self) -> Result<TableChange> {
        // `RENAME to TO x` renames a column whose name is `to`.
        if self.at("TO") && !self.at_ahead(1, "TO") {
            self.advance();
            return Ok(TableChange::RenameTable(self.object_name()?));
        }
        self.optional_column_word();
        let from = self.dotted_name()?;
        self.expect("TO")?;
        Ok(TableChange::RenameColumn { from, to: self.name()? })
    }

    /// Takes COLUMN, which Flink does not know but most people write, unless it is a column's name.
    fn optional_column_word(&mut self) {
        if self.at("COLUMN")
            && matches!(self.peek_at(1), Some(Token::Word(_) | Token::LParen))
            && !self.at_ahead(1, "TO")
        {
            self.advance();
        }
    }

    fn add(&mut self) -> Result<TableChange> {
        if self.at_all(&["PARTITION", "FIELD"]) {
            self.expect_all(&["PARTITION", "FIELD"])?;
            return Ok(TableChange::AddPartitionField(self.named_partition_field()?));
        }
        let if_not_exists = self.at_all(&["IF", "NOT", "EXISTS", "PARTITION"]) && self.if_not_exists();
        if if_not_exists || self.at("PARTITION") && self.peek_at(1) == Some(&Token::LParen) {
            let mut partitions = Vec::new();
            while partitions.is_empty() || self.at("PARTITION") {
                self.expect("PARTITION")?;
                let spec = self.partition_spec()?;
                partitions.push((spec, self.with_options()?));
            }
            return Ok(TableChange::AddPartitions { if_not_exists, partitions });
        }
        if self.at_distribution() {
            self.advance();
            return Ok(TableChange::AddDistribution(self.distribution()?));
        }
        Ok(TableChange::Add(self.schema_elements()?))
    }

    fn modify(&mut self) -> Result<TableChange> {
        if self.at_distribution() {
            self.advance();
            return Ok(TableChange::ModifyDistribution(self.distribution()?));
        }
        Ok(TableChange::Modify(self.schema_elements()?))
    }

    fn at_distribution(&self) -> bool {
        self.at("DISTRIBUTION") && (self.at_ahead(1, "BY") || self.at_ahead(1, "INTO"))
    }

    /// Takes one element, or several in brackets.
    fn schema_elements(&mut self) -> Result<Vec<SchemaElement>> {
        self.optional_column_word();
        let elements = if self.at_sign(&Token::LParen) {
            self.bracketed_list(Self::schema_element)?
        } else {
            vec![self.schema_element()?]
        };
        self.check_elements(elements.iter().map(|element| &element.element))?;
        Ok(elements)
    }

    fn schema_element(&mut self) -> Result<SchemaElement> {
        let element = self.table_element()?;
        let position = match element {
            TableElement::Column(_) if self.accept("FIRST") => Some(ColumnPosition::First),
            TableElement::Column(_) if self.accept("AFTER") => Some(ColumnPosition::After(self.name()?)),
            _ => None,
        };
        Ok(SchemaElement { element, position })
    }

    fn drop_part(&mut self) -> Result<TableChange> {
        if self.accept_all(&["PRIMARY", "KEY"]) {
            return Ok(TableChange::DropPrimaryKey);
        }
        if self.at_all(&["PARTITION", "FIELD"]) {
            self.expect_all(&["PARTITION", "FIELD"])?;
            return Ok(TableChange::DropPartitionField(self.partition_field()?));
        }
        let is_named = matches!(self.peek_at(1), Some(Token::Word(_)));
        if self.at("CONSTRAINT") && is_named {
            self.advance();
            return Ok(TableChange::DropConstraint(self.name()?));
        }
        if self.at_ref(0) && is_named {
            let kind = self.ref_kind()?;
            let if_exists = self.if_exists();
            return Ok(TableChange::DropRef { kind, name: self.name()?, if_exists });
        }
        let if_exists = self.at_all(&["IF", "EXISTS", "PARTITION"]) && self.if_exists();
        if if_exists || self.at("PARTITION") && self.peek_at(1) == Some(&Token::LParen) {
            let partitions = self.list(|parser| -> Result<PartitionSpec> {
                parser.expect("PARTITION")?;
                parser.partition_spec()
            })?;
            return Ok(TableChange::DropPartitions { if_exists, partitions });
        }
        // A column of this name needs back-ticks, as in Flink.
        if self.accept("WATERMARK") {
            return Ok(TableChange::DropWatermark);
        }
        if self.accept("DISTRIBUTION") {
            return Ok(TableChange::DropDistribution);
        }
        self.optional_column_word();
        if self.at_sign(&Token::LParen) {
            return Ok(TableChange::DropColumns(self.bracketed_list(Self::dotted_name)?));
        }
        Ok(TableChange::DropColumns(vec![self.dotted_name()?]))
    }

    fn replace_part(&mut self) -> Result<TableChange> {
        if self.at_ref(0) {
            return Ok(TableChange::CreateRef(self.create_ref(Some(Replace::MustExist))?));
        }
        self.expect_all(&["PARTITION", "FIELD"])?;
        let from = self.partition_field()?;
        self.expect("WITH")?;
        Ok(TableChange::ReplacePartitionField { from, to: self.named_partition_field()? })
    }

    fn write_order_by(&mut self) -> Result<TableChange> {
        if self.accept("UNORDERED") {
            return Ok(TableChange::WriteOrderedBy(Vec::new()));
        }
        self.expect_all(&["ORDERED", "BY"])?;
        Ok(TableChange::WriteOrderedBy(self.list(Self::write_order)?))
    }
}
