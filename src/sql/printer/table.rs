//! CREATE TABLE and ALTER TABLE.

use super::super::parser::{like_option_words, retention_text};
use super::super::{
    AlterTable, ColumnDefinition, ColumnDefinitionKind, ColumnPosition, CreateRef, CreateTable,
    DistributionClause, PartitionField, RefKind, Replace, SchemaElement, TableChange, TableConstraint,
    TableElement, WriteOrder,
};
use super::Printer;

impl<'a> Printer<'a> {
    pub(super) fn create_table(&mut self, table: &'a CreateTable) {
        self.push(match table.replace {
            None => "CREATE ",
            Some(Replace::OrCreate) => "CREATE OR REPLACE ",
            Some(Replace::MustExist) => "REPLACE ",
        });
        self.push_if(table.temporary, "TEMPORARY ");
        self.push("TABLE ");
        self.push_if(table.if_not_exists, "IF NOT EXISTS ");
        self.object(&table.name);
        if !table.elements.is_empty() {
            self.push(" (");
            for (index, element) in table.elements.iter().enumerate() {
                self.push_if(index > 0, ", ");
                self.element(element);
            }
            self.push(")");
        }
        if let Some(names) = &table.column_names {
            self.push(" ");
            self.names(names);
        }
        self.comment(table.comment.as_ref());
        if let Some(distribution) = &table.distribution {
            self.push(" DISTRIBUTED");
            self.distribution(distribution);
        }
        if !table.partitioned_by.is_empty() {
            self.push(" PARTITIONED BY ");
            self.brackets(&table.partitioned_by, Self::partition_field);
        }
        self.with_options(&table.options);
        if let Some(like) = &table.like {
            self.push(" LIKE ");
            self.object(&like.base);
            if !like.options.is_empty() {
                self.push(" (");
                self.list(&like.options, " ", |printer, option| {
                    let (strategy, feature) = like_option_words(*option);
                    printer.push(strategy);
                    printer.push(" ");
                    printer.push(feature);
                });
                self.push(")");
            }
        }
        if let Some(query) = &table.query {
            self.push(" AS ");
            self.spanned_query(query);
        }
    }

    fn element(&mut self, element: &'a TableElement) {
        match element {
            TableElement::Column(column) => self.column(column),
            TableElement::Constraint(constraint) => self.constraint(constraint),
            TableElement::Watermark(watermark) => {
                self.push("WATERMARK FOR ");
                self.object(&watermark.column);
                self.push(" AS ");
                self.expression(&watermark.expression);
            }
        }
    }

    fn column(&mut self, column: &'a ColumnDefinition) {
        self.name(&column.name.value);
        self.push(" ");
        match &column.kind {
            ColumnDefinitionKind::Physical { data_type, constraint } => {
                self.push(&data_type.serialized());
                if let Some(constraint) = constraint {
                    self.push(" ");
                    self.constraint(constraint);
                }
            }
            ColumnDefinitionKind::Metadata { data_type, key, is_virtual } => {
                self.push(&data_type.serialized());
                self.push(" METADATA");
                if let Some(key) = key {
                    self.push(" FROM ");
                    self.text(key);
                }
                self.push_if(*is_virtual, " VIRTUAL");
            }
            ColumnDefinitionKind::Computed(expression) => {
                self.push("AS ");
                self.expression(expression);
            }
        }
        self.comment(column.comment.as_ref());
    }

    fn constraint(&mut self, constraint: &TableConstraint) {
        if let Some(name) = &constraint.name {
            self.push("CONSTRAINT ");
            self.name(name);
            self.push(" ");
        }
        self.push(if constraint.unique { "UNIQUE" } else { "PRIMARY KEY" });
        if !constraint.columns.is_empty() {
            self.push(" ");
            self.names(&constraint.columns);
        }
        match constraint.enforced {
            Some(true) => self.push(" ENFORCED"),
            Some(false) => self.push(" NOT ENFORCED"),
            None => {}
        }
    }

    fn distribution(&mut self, clause: &DistributionClause) {
        if !clause.columns.is_empty() {
            self.push(" BY ");
            if let Some(kind) = &clause.kind {
                self.push(kind);
                self.push(" ");
            }
            self.names(&clause.columns);
        }
        if let Some(buckets) = clause.buckets {
            self.push(&format!(" INTO {buckets} BUCKETS"));
        }
    }

    fn partition_field(&mut self, field: &PartitionField) {
        if let Some(transform) = &field.transform {
            self.push(transform);
            self.push("(");
            if let Some(parameter) = field.parameter {
                self.push(&format!("{parameter}, "));
            }
            self.name(&field.column.value);
            self.push(")");
        } else {
            self.name(&field.column.value);
        }
        if let Some(alias) = &field.alias {
            self.push(" AS ");
            self.name(alias);
        }
    }

    pub(super) fn alter_table(&mut self, table: &'a AlterTable) {
        self.push("ALTER TABLE ");
        self.push_if(table.if_exists, "IF EXISTS ");
        self.object(&table.name);
        self.push(" ");
        match &table.change {
            TableChange::RenameTable(name) => {
                self.push("RENAME TO ");
                self.object(name);
            }
            TableChange::RenameColumn { from, to } => {
                // With the word a column may be called `to`.
                self.push("RENAME COLUMN ");
                self.list(&from.parts, ".", |printer, part| printer.push(&super::back_tick(part)));
                self.push(" TO ");
                self.name(&to.value);
            }
            TableChange::SetOptions(options) => {
                self.push("SET ");
                self.options(options);
            }
            TableChange::ResetOptions(keys) => {
                self.push("RESET ");
                self.keys(keys);
            }
            TableChange::Add(elements) => self.schema_elements("ADD ", elements),
            TableChange::Modify(elements) => self.schema_elements("MODIFY ", elements),
            TableChange::AddDistribution(clause) => {
                self.push("ADD DISTRIBUTION");
                self.distribution(clause);
            }
            TableChange::ModifyDistribution(clause) => {
                self.push("MODIFY DISTRIBUTION");
                self.distribution(clause);
            }
            TableChange::AddPartitions { if_not_exists, partitions } => {
                self.push("ADD");
                self.push_if(*if_not_exists, " IF NOT EXISTS");
                for (partition, options) in partitions {
                    self.push(" PARTITION ");
                    self.partition_spec(partition);
                    self.with_options(options);
                }
            }
            change => self.drop_or_ref(change),
        }
    }

    fn drop_or_ref(&mut self, change: &'a TableChange) {
        match change {
            TableChange::DropColumns(columns) => {
                self.push("DROP ");
                self.brackets(columns, Self::object);
            }
            TableChange::DropPrimaryKey => self.push("DROP PRIMARY KEY"),
            TableChange::DropConstraint(name) => {
                self.push("DROP CONSTRAINT ");
                self.name(&name.value);
            }
            TableChange::DropWatermark => self.push("DROP WATERMARK"),
            TableChange::DropDistribution => self.push("DROP DISTRIBUTION"),
            TableChange::DropPartitions { if_exists, partitions } => {
                self.push("DROP ");
                self.push_if(*if_exists, "IF EXISTS ");
                for (index, partition) in partitions.iter().enumerate() {
                    self.push_if(index > 0, ", ");
                    self.push("PARTITION ");
                    self.partition_spec(partition);
                }
            }
            TableChange::AddPartitionField(field) => {
                self.push("ADD PARTITION FIELD ");
                self.partition_field(field);
            }
            TableChange::DropPartitionField(field) => {
                self.push("DROP PARTITION FIELD ");
                self.partition_field(field);
            }
            TableChange::ReplacePartitionField { from, to } => {
                self.push("REPLACE PARTITION FIELD ");
                self.partition_field(from);
                self.push(" WITH ");
                self.partition_field(to);
            }
            TableChange::WriteOrderedBy(order) if order.is_empty() => self.push("WRITE UNORDERED"),
            TableChange::WriteOrderedBy(order) => {
                self.push("WRITE ORDERED BY ");
                self.list(order, ", ", Self::write_order);
            }
            TableChange::CreateRef(reference) => self.create_ref(reference),
            TableChange::DropRef { kind, name, if_exists } => {
                self.push("DROP ");
                self.push(ref_word(*kind));
                self.push_if(*if_exists, " IF EXISTS");
                self.push(" ");
                self.name(&name.value);
            }
            // `alter_table` prints all others.
            _ => {}
        }
    }

    fn schema_elements(&mut self, verb: &str, elements: &'a [SchemaElement]) {
        self.push(verb);
        self.push("(");
        for (index, element) in elements.iter().enumerate() {
            self.push_if(index > 0, ", ");
            self.element(&element.element);
            match &element.position {
                None => {}
                Some(ColumnPosition::First) => self.push(" FIRST"),
                Some(ColumnPosition::After(column)) => {
                    self.push(" AFTER ");
                    self.name(&column.value);
                }
            }
        }
        self.push(")");
    }

    fn write_order(&mut self, order: &WriteOrder) {
        self.partition_field(&order.field);
        self.push_if(order.descending, " DESC");
        match order.nulls_first {
            Some(true) => self.push(" NULLS FIRST"),
            Some(false) => self.push(" NULLS LAST"),
            None => {}
        }
    }

    fn create_ref(&mut self, reference: &CreateRef) {
        self.push(match reference.replace {
            None => "CREATE ",
            Some(Replace::OrCreate) => "CREATE OR REPLACE ",
            Some(Replace::MustExist) => "REPLACE ",
        });
        self.push(ref_word(reference.kind));
        self.push_if(reference.if_not_exists, " IF NOT EXISTS");
        self.push(" ");
        self.name(&reference.name.value);
        if let Some(snapshot) = reference.snapshot {
            self.push(&format!(" AS OF VERSION {snapshot}"));
        }
        if let Some(retain) = reference.retain_ms {
            self.push(&format!(" RETAIN {}", retention_text(retain)));
        }
        if reference.min_snapshots.is_some() || reference.snapshot_age_ms.is_some() {
            self.push(" WITH SNAPSHOT RETENTION");
        }
        if let Some(snapshots) = reference.min_snapshots {
            self.push(&format!(" {snapshots} SNAPSHOTS"));
        }
        if let Some(age) = reference.snapshot_age_ms {
            self.push(&format!(" {}", retention_text(age)));
        }
    }
}

/// Returns the keyword of a branch or tag.
fn ref_word(kind: RefKind) -> &'static str {
    match kind {
        RefKind::Branch => "BRANCH",
        RefKind::Tag => "TAG",
    }
}
