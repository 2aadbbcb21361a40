//! What ALTER TABLE does to columns, key and watermark. Every refusal starts with Flink's sentence and names the reason.

use crate::catalog::{self, CatalogTable, ChangeKind, TableChange, partition_column};
use crate::error::{Error, Result, Span};
use crate::schema::{Column, ColumnKind, TypeRoot};
use crate::sql::{
    ColumnDefinition, ColumnPosition, DistributionClause, ObjectName, SchemaElement, Spanned, TableElement,
    WatermarkDefinition, parse_expression,
};

use super::table_definition::{DefinitionReader, is_computed, single_key};

/// Builds a refusal.
pub(super) fn failed(reason: impl std::fmt::Display) -> Error {
    Error::validation(format!("Failed to execute ALTER TABLE statement.\n{reason}"))
}

/// Puts a name in back-ticks.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Lists names in back-ticks.
fn quoted_list(names: &[String]) -> String {
    names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
}

/// A table that is being changed.
pub(super) struct SchemaChange<'a> {
    /// How definitions are read.
    pub(super) reader: DefinitionReader<'a>,
    /// The table, changed in place.
    pub(super) table: CatalogTable,
    /// The steps that were made.
    pub(super) steps: Vec<TableChange>,
}

impl SchemaChange<'_> {
    /// ADD: columns that are new, a key or a watermark where there is none.
    pub(super) fn add(&mut self, elements: &[SchemaElement]) -> Result<()> {
        if let Some((constraint, columns)) = single_key(elements.iter().map(|element| &element.element))? {
            if let Some(key) = &self.table.schema.primary_key {
                return Err(failed(format!(
                    "The current table has already defined the primary key constraint [{}]. You might want to drop it before adding a new one.",
                    quoted_list(&key.columns)
                ))
                .at(constraint.span.span));
            }
            self.add_columns(elements)?;
            return self.set_key_and_watermark(constraint, &columns, elements, false);
        }
        self.add_columns(elements)?;
        self.set_watermark(elements, false)
    }

    /// MODIFY: columns, a key or a watermark that are there.
    pub(super) fn modify(&mut self, elements: &[SchemaElement]) -> Result<()> {
        let key = single_key(elements.iter().map(|element| &element.element))?;
        if let Some((constraint, _)) = &key
            && self.table.schema.primary_key.is_none()
        {
            let reason =
                "The base table does not define any primary key constraint. You might want to add a new one.";
            return Err(failed(reason).at(constraint.span.span));
        }
        self.modify_columns(elements)?;
        match key {
            Some((constraint, columns)) => self.set_key_and_watermark(constraint, &columns, elements, true),
            None => self.set_watermark(elements, true),
        }
    }

    fn set_key_and_watermark(
        &mut self,
        constraint: &crate::sql::TableConstraint,
        columns: &[(&str, Span)],
        elements: &[SchemaElement],
        replace: bool,
    ) -> Result<()> {
        let name = constraint.name.clone().unwrap_or_else(|| {
            format!("PK_{}", columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join("_"))
        });
        for (column, span) in columns {
            let reason = match self.table.schema.column(column) {
                None => format!("Invalid primary key '{name}'. Column '{column}' does not exist."),
                Some(found) if !found.is_physical() => {
                    format!("Invalid primary key '{name}'. Column '{column}' is not a physical column.")
                }
                Some(_) => continue,
            };
            return Err(failed(reason).at(*span));
        }
        self.table.schema.primary_key = None;
        self.reader.set_primary_key(&mut self.table.schema, constraint, columns)?;
        let step = if replace { TableChange::ModifyPrimaryKey } else { TableChange::AddPrimaryKey };
        self.steps.extend(self.table.schema.primary_key.clone().map(step));
        self.set_watermark(elements, replace)
    }

    /// Sets the watermark among the elements, if there is one.
    fn set_watermark(&mut self, elements: &[SchemaElement], replace: bool) -> Result<()> {
        let mut definitions = elements.iter().filter_map(|element| match &element.element {
            TableElement::Watermark(definition) => Some(definition),
            _ => None,
        });
        let Some(definition) = definitions.next() else { return Ok(()) };
        if let Some(second) = definitions.next() {
            return Err(failed("Multiple WATERMARK statements is not supported yet.").at(second.column.span));
        }
        match (&self.table.schema.watermark, replace) {
            (Some(watermark), false) => {
                let path: Vec<String> = watermark.column.iter().map(|part| quoted(part)).collect();
                Err(failed(format!(
                    "The base table has already defined the watermark strategy {} AS {}. You might want to drop it before adding a new one.",
                    path.join("."),
                    watermark.expression
                ))
                .at(definition.column.span))
            }
            (None, true) => {
                let reason = "The base table does not define any watermark. You might want to add a new one.";
                Err(failed(reason).at(definition.column.span))
            }
            _ => {
                self.table.schema.watermark =
                    Some(self.reader.watermark(definition, &self.table.schema.columns)?);
                let kind = if replace { ChangeKind::Modify } else { ChangeKind::Add };
                self.steps.push(TableChange::Watermark(kind));
                Ok(())
            }
        }
    }

    fn add_columns(&mut self, elements: &[SchemaElement]) -> Result<()> {
        let mut added: Vec<&ColumnDefinition> = Vec::new();
        for (definition, position) in columns_of(elements) {
            let name = &definition.name.value;
            if added.iter().any(|other| other.name == definition.name) {
                return Err(
                    failed(format!("Encounter duplicate column {}.", quoted(name))).at(definition.name.span)
                );
            }
            if self.table.schema.column(name).is_some() {
                let reason = format!("Column {} already exists in the table.", quoted(name));
                return Err(failed(reason).at(definition.name.span));
            }
            let column = self.placeholder_or_column(definition)?;
            let index = self.insertion_index(position)?.unwrap_or(self.table.schema.columns.len());
            self.table.schema.columns.insert(index, column);
            added.push(definition);
        }
        self.bind_computed(&added)?;
        for (definition, position) in columns_of(elements) {
            if let Some(column) = self.table.schema.column(&definition.name.value).cloned() {
                self.steps.push(TableChange::AddColumn { column, position: position_of(position) });
            }
        }
        Ok(())
    }

    fn modify_columns(&mut self, elements: &[SchemaElement]) -> Result<()> {
        let mut modified: Vec<&ColumnDefinition> = Vec::new();
        for (definition, position) in columns_of(elements) {
            let name = &definition.name.value;
            if modified.iter().any(|other| other.name == definition.name) {
                return Err(
                    failed(format!("Encounter duplicate column {}.", quoted(name))).at(definition.name.span)
                );
            }
            let Some(index) = self.column_index(name) else {
                let reason =
                    format!("Try to modify a column {} which does not exist in the table.", quoted(name));
                return Err(failed(reason).at(definition.name.span));
            };
            let mut column = self.placeholder_or_column(definition)?;
            let before = &self.table.schema.columns[index];
            column.comment = column.comment.or_else(|| before.comment.clone());
            if self.table.schema.primary_key.as_ref().is_some_and(|key| key.columns.contains(name)) {
                column.data_type.nullable = false;
            }
            self.table.schema.columns[index] = column;
            if let Some(target) = self.insertion_index(position)? {
                let column = self.table.schema.columns.remove(index);
                // Taking the column out has moved all behind it.
                let target = if target > index { target - 1 } else { target };
                self.table.schema.columns.insert(target, column);
            }
            modified.push(definition);
        }
        self.bind_computed(&modified)?;
        for (definition, position) in columns_of(elements) {
            if let Some(column) = self.table.schema.column(&definition.name.value).cloned() {
                self.steps.push(TableChange::ModifyColumn { column, position: position_of(position) });
            }
        }
        self.rebind(&modified)
    }

    /// Reads a column; a computed one is bound once all others are in place.
    fn placeholder_or_column(&self, definition: &ColumnDefinition) -> Result<Column> {
        if !is_computed(definition) {
            return self.reader.column(definition, &[]);
        }
        Ok(Column {
            name: definition.name.value.clone(),
            data_type: TypeRoot::Null.nullable(),
            kind: ColumnKind::Computed { expression: String::new() },
            comment: definition.comment.clone(),
        })
    }

    /// Binds the computed columns among the definitions.
    fn bind_computed(&mut self, definitions: &[&ColumnDefinition]) -> Result<()> {
        let is_visible = |column: &&Column| !matches!(column.kind, ColumnKind::Computed { .. });
        let visible: Vec<Column> = self.table.schema.columns.iter().filter(is_visible).cloned().collect();
        for definition in definitions.iter().filter(|definition| is_computed(definition)) {
            let bound = self.reader.column(definition, &visible)?;
            if let Some(column) =
                self.table.schema.columns.iter_mut().find(|column| column.name == bound.name)
            {
                let comment = bound.comment.clone().or_else(|| column.comment.take());
                *column = Column { comment, ..bound };
            }
        }
        Ok(())
    }

    fn column_index(&self, name: &str) -> Option<usize> {
        self.table.schema.columns.iter().position(|column| column.name == name)
    }

    /// Returns where FIRST or AFTER puts a column.
    fn insertion_index(&self, position: Option<&ColumnPosition>) -> Result<Option<usize>> {
        match position {
            None => Ok(None),
            Some(ColumnPosition::First) => Ok(Some(0)),
            Some(ColumnPosition::After(column)) => {
                let index = self.column_index(&column.value).ok_or_else(|| {
                    let name = quoted(&column.value);
                    failed(format!("Referenced column {name} by 'AFTER' does not exist in the table."))
                        .at(column.span)
                })?;
                Ok(Some(index + 1))
            }
        }
    }

    /// DROP of columns.
    pub(super) fn drop_columns(&mut self, names: &[ObjectName]) -> Result<()> {
        let mut dropped: Vec<String> = Vec::new();
        for name in names {
            let column = self.single_part(name)?;
            if dropped.contains(column) {
                return Err(failed(format!("Duplicate column {}.", quoted(column))).at(name.span));
            }
            if self.column_index(column).is_none() {
                let reason = format!("The column {} does not exist in the base table.", quoted(column));
                return Err(failed(reason).at(name.span));
            }
            dropped.push(column.clone());
        }
        // A computed column that goes too does not hold back the columns that it reads.
        for (name, object_name) in dropped.iter().zip(names) {
            self.check_references(name, &dropped, object_name.span)?;
            if self.table.schema.primary_key.as_ref().is_some_and(|key| key.columns.contains(name)) {
                let reason = format!("The column {} is used as the primary key.", quoted(name));
                return Err(failed(reason).at(object_name.span));
            }
        }
        if dropped.len() == self.table.schema.columns.len() {
            return Err(failed("A table must keep at least one column.").at(names[0].span));
        }
        self.table.schema.columns.retain(|column| !dropped.contains(&column.name));
        self.steps.extend(dropped.into_iter().map(TableChange::DropColumn));
        Ok(())
    }

    /// RENAME of a column.
    pub(super) fn rename_column(&mut self, from: &ObjectName, to: &Spanned<String>) -> Result<()> {
        let old = self.single_part(from)?.clone();
        let Some(index) = self.column_index(&old) else {
            let reason = format!("The column {} does not exist in the base table.", quoted(&old));
            return Err(failed(reason).at(from.span));
        };
        if self.column_index(&to.value).is_some() {
            let reason = format!("The column {} already existed in table schema.", quoted(&to.value));
            return Err(failed(reason).at(to.span));
        }
        self.check_references(&old, &[], from.span)?;
        let schema = &mut self.table.schema;
        // A metadata column without a key reads the key that is its name.
        if let ColumnKind::Metadata { key: key @ None, .. } = &mut schema.columns[index].kind {
            *key = Some(old.clone());
        }
        schema.columns[index].name.clone_from(&to.value);
        for column in
            schema.primary_key.iter_mut().flat_map(|key| &mut key.columns).filter(|column| **column == old)
        {
            column.clone_from(&to.value);
        }
        self.steps.push(TableChange::RenameColumn { from: old, to: to.value.clone() });
        Ok(())
    }

    /// DROP PRIMARY KEY, or of the constraint of a name.
    pub(super) fn drop_primary_key(&mut self, constraint: Option<&Spanned<String>>) -> Result<()> {
        let Some(key) = self.table.schema.primary_key.take() else {
            return Err(failed("The base table does not define any primary key."));
        };
        match constraint {
            Some(constraint) if constraint.value != key.name => Err(failed(format!(
                "The base table does not define a primary key constraint named '{}'. Available constraint name: ['{}'].",
                constraint.value, key.name
            ))
            .at(constraint.span)),
            _ => {
                self.steps.push(TableChange::DropPrimaryKey);
                Ok(())
            }
        }
    }

    /// ADD or MODIFY DISTRIBUTION.
    pub(super) fn set_distribution(&mut self, clause: &DistributionClause, kind: ChangeKind) -> Result<()> {
        self.table.distribution = Some(self.reader.distribution(clause, &self.table.schema.columns)?);
        self.steps.push(TableChange::Distribution(kind));
        Ok(())
    }

    /// DROP WATERMARK.
    pub(super) fn drop_watermark(&mut self) -> Result<()> {
        if self.table.schema.watermark.take().is_none() {
            return Err(failed("The base table does not define any watermark strategy."));
        }
        self.steps.push(TableChange::Watermark(ChangeKind::Drop));
        Ok(())
    }

    /// Returns a column's name; fields of rows cannot be changed.
    fn single_part<'n>(&self, name: &'n ObjectName) -> Result<&'n String> {
        match name.parts.as_slice() {
            [column] => Ok(column),
            parts => {
                let path: Vec<String> = parts.iter().map(|part| quoted(part)).collect();
                let reason = format!("Altering the nested row type {} is not supported yet.", path.join("."));
                Err(failed(reason).at(name.span))
            }
        }
    }

    /// Fails if anything but the primary key needs a column. Computed columns in `ignored` do not count.
    fn check_references(&self, name: &str, ignored: &[String], span: Span) -> Result<()> {
        let mut readers: Vec<String> =
            self.readers_of(name).filter(|reader| !ignored.contains(reader)).collect();
        readers.sort_unstable();
        let shown = quoted(name);
        let in_distribution = |name: &str| {
            self.table.distribution.as_ref().is_some_and(|by| by.columns.iter().any(|column| column == name))
        };
        let reason = if !readers.is_empty() {
            format!("The column {shown} is referenced by computed column {}.", quoted_list(&readers))
        } else if self.table.partition_keys.iter().any(|key| partition_column(key) == name) {
            format!("The column {shown} is used as the partition keys.")
        } else if in_distribution(name) {
            format!("The column {shown} is used as a distribution key.")
        } else if self.is_read_by_watermark(name) {
            format!("The column {shown} is referenced by watermark expression.")
        } else {
            return Ok(());
        };
        Err(failed(reason).at(span))
    }

    /// Binds anew what is computed from changed columns: its type may change with theirs.
    fn rebind(&mut self, changed: &[&ColumnDefinition]) -> Result<()> {
        let reads_changed =
            |expression: &str| changed.iter().any(|column| names_column(expression, &column.name.value));
        let is_visible = |column: &&Column| !matches!(column.kind, ColumnKind::Computed { .. });
        let visible: Vec<Column> = self.table.schema.columns.iter().filter(is_visible).cloned().collect();
        for column in &mut self.table.schema.columns {
            let ColumnKind::Computed { expression } = &mut column.kind else { continue };
            if reads_changed(expression)
                && !changed.iter().any(|definition| definition.name.value == column.name)
            {
                let bound = self.reader.rebind(expression, &visible)?;
                (*expression, column.data_type) = (bound.text, bound.data_type);
            }
        }
        if let Some(watermark) = &self.table.schema.watermark
            && (reads_changed(&watermark.expression)
                || changed.iter().any(|column| column.name.value == watermark.column[0]))
        {
            let definition = WatermarkDefinition {
                column: ObjectName { parts: watermark.column.clone(), span: changed[0].name.span },
                expression: parse_expression(&watermark.expression)?,
            };
            let rebound = self.reader.watermark(&definition, &self.table.schema.columns);
            self.table.schema.watermark =
                Some(rebound.map_err(|error| error.without_span().at(changed[0].name.span))?);
        }
        Ok(())
    }

    /// Returns the computed columns that read a column.
    fn readers_of(&self, name: &str) -> impl Iterator<Item = String> {
        self.table.schema.columns.iter().filter_map(move |column| match &column.kind {
            ColumnKind::Computed { expression } if names_column(expression, name) => {
                Some(column.name.clone())
            }
            _ => None,
        })
    }

    fn is_read_by_watermark(&self, name: &str) -> bool {
        let watermark = self.table.schema.watermark.as_ref();
        watermark
            .is_some_and(|watermark| watermark.column[0] == name || names_column(&watermark.expression, name))
    }
}

/// Returns where a column is to stand, as catalogs are told.
fn position_of(position: Option<&ColumnPosition>) -> Option<catalog::ColumnPosition> {
    position.map(|position| match position {
        ColumnPosition::First => catalog::ColumnPosition::First,
        ColumnPosition::After(column) => catalog::ColumnPosition::After(column.value.clone()),
    })
}

/// Returns the column definitions among the elements.
fn columns_of(
    elements: &[SchemaElement],
) -> impl Iterator<Item = (&ColumnDefinition, Option<&ColumnPosition>)> {
    elements.iter().filter_map(|element| match &element.element {
        TableElement::Column(definition) => Some((definition, element.position.as_ref())),
        _ => None,
    })
}

/// Returns whether an expanded expression names a column: in back-ticks, outside literals, and not as a field behind a dot.
fn names_column(expression: &str, name: &str) -> bool {
    let mut rest = expression;
    let mut is_field = false;
    while let Some(character) = rest.chars().next() {
        if character != '`' && character != '\'' {
            is_field = character == '.';
            rest = &rest[character.len_utf8()..];
            continue;
        }
        let (inner, behind) = quoted_token(rest, character);
        if character == '`' && !is_field && inner.replace("``", "`") == name {
            return true;
        }
        is_field = false;
        rest = behind;
    }
    false
}

/// Splits a text that starts with a quote behind the token; a doubled quote is part of it.
fn quoted_token(text: &str, quote: char) -> (&str, &str) {
    let mut at = 1;
    loop {
        let Some(found) = text[at..].find(quote) else { return (&text[1..], "") };
        let end = at + found;
        if !text[end + 1..].starts_with(quote) {
            return (&text[1..end], &text[end + 1..]);
        }
        at = end + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_in_back_ticks_only() {
        assert!(names_column("`price` * 2", "price"));
        assert!(names_column("UPPER('it''s `x`') || `a``b`", "a`b"));
        assert!(!names_column("'`price`'", "price"));
        assert!(!names_column("`row`.`price`", "price"));
        assert!(!names_column("`price", "pric"));
    }
}
