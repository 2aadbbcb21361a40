//! From the elements of CREATE TABLE and ALTER TABLE to columns, key and watermark, with the checks and texts of Flink.

use crate::catalog::Distribution;
use crate::error::{Error, FlinkClass, Result, SourceText, Span};
use crate::options::SessionConfig;
use crate::plan::{BoundExpressionText, bind_column_expression};
use crate::schema::{Column, ColumnKind, DataType, PrimaryKey, TableSchema, TypeRoot, Watermark};
use crate::sql::{
    ColumnDefinition, ColumnDefinitionKind, DistributionClause, PartitionField, SqlOption, TableConstraint,
    TableElement, WatermarkDefinition, parse_expression,
};

use super::table_like::Merging;

const ENFORCED_TEXT: &str = "Flink doesn't support ENFORCED mode for PRIMARY KEY constraint. ENFORCED/NOT ENFORCED controls if the constraint checks are performed on the incoming/outgoing data. Flink does not own the data therefore the only supported mode is the NOT ENFORCED mode";

/// What definitions are read with.
#[derive(Debug, Clone, Copy)]
pub(super) struct DefinitionReader<'a> {
    /// The session's configuration.
    pub(super) config: &'a SessionConfig,
    /// The statement's text, for the places in Flink's messages.
    pub(super) text: &'a str,
}

/// Turns the entries of WITH into a map.
///
/// # Errors
/// An option is there twice.
pub(super) fn option_map(options: &[SqlOption]) -> Result<std::collections::BTreeMap<String, String>> {
    let mut map = std::collections::BTreeMap::new();
    for SqlOption { key, value, .. } in options {
        // Flink differs: it takes the last one in silence.
        if map.insert(key.value.clone(), value.value.clone()).is_some() {
            return Err(Error::validation(format!("The option '{}' is given twice.", key.value))
                .at(key.span)
                .hint("Leave one of them out."));
        }
    }
    Ok(map)
}

impl DefinitionReader<'_> {
    /// Returns a place as Flink writes it.
    fn place(&self, span: Span) -> String {
        let (line, column) = SourceText::new("", self.text).line_column(span.start);
        format!("line {line}, column {column}")
    }

    /// Reads all elements on top of what LIKE gives.
    pub(super) fn schema(
        &self,
        elements: &[TableElement],
        base: Option<(&TableSchema, &Merging)>,
    ) -> Result<TableSchema> {
        let constraint = single_key(elements)?;
        let mut schema = base.map_or_else(TableSchema::default, |(base, merging)| merging.base_schema(base));
        let merging = base.map(|(_, merging)| merging);
        self.add_columns(&mut schema, elements, merging)?;
        if let Some((constraint, columns)) = constraint {
            if schema.primary_key.is_some() {
                return Err(Error::validation(
                    "The base table already has a primary key. You might want to specify EXCLUDING CONSTRAINTS.",
                ));
            }
            self.set_primary_key(&mut schema, constraint, &columns)?;
        }
        let mut watermarks = elements.iter().filter_map(|element| match element {
            TableElement::Watermark(watermark) => Some(watermark),
            _ => None,
        });
        if let Some(definition) = watermarks.next() {
            let path = definition.column.parts.join(".");
            if schema.watermark.as_ref().is_some_and(|base| base.column == definition.column.parts)
                && let Some(merging) = merging
            {
                merging.check_watermark(&path)?;
            }
            schema.watermark = Some(self.watermark(definition, &schema.columns)?);
        }
        if let Some(second) = watermarks.next() {
            return Err(Error::validation("Multiple WATERMARK statements is not supported yet.")
                .class(FlinkClass::PARSE)
                .at(second.column.span));
        }
        Ok(schema)
    }

    /// Adds the columns among the elements. Expressions see all physical and metadata columns, also those behind them.
    fn add_columns(
        &self,
        schema: &mut TableSchema,
        elements: &[TableElement],
        merging: Option<&Merging>,
    ) -> Result<()> {
        let definitions = || {
            elements.iter().filter_map(|element| match element {
                TableElement::Column(column) => Some(column),
                _ => None,
            })
        };
        let base_count = schema.columns.len();
        let mut own: Vec<Column> = Vec::new();
        for definition in definitions().filter(|definition| is_physical(definition)) {
            let name = &definition.name.value;
            if schema.column(name).is_some() {
                let message = format!("A column named '{name}' already exists in the base table.");
                return Err(Error::validation(message).at(definition.name.span));
            }
            if own.iter().any(|column| column.name == *name) {
                let message = format!("A regular Column named '{name}' already exists in the table.");
                return Err(Error::validation(message).at(definition.name.span));
            }
            own.push(self.column(definition, &[])?);
        }
        let metadata =
            definitions().filter(|definition| !is_computed(definition) && !is_physical(definition));
        let mut visible: Vec<Column> = schema
            .columns
            .iter()
            .filter(|column| !matches!(column.kind, ColumnKind::Computed { .. }))
            .cloned()
            .collect();
        visible.extend(own.iter().cloned());
        for definition in metadata {
            visible.push(self.column(definition, &[])?);
        }
        for definition in definitions() {
            let column = self.column(definition, &visible)?;
            if is_physical(definition) {
                schema.columns.push(column);
                continue;
            }
            let name = &column.name;
            if own.iter().any(|physical| physical.name == *name) {
                let kind = if is_computed(definition) { "compute" } else { "metadata" };
                let message = format!(
                    "A column named '{name}' already exists in the table. Duplicate columns exist in the {kind} column and regular column. "
                );
                return Err(Error::validation(message).at(definition.name.span));
            }
            let existing = schema.columns.iter().position(|existing| existing.name == *name);
            match existing {
                None => schema.columns.push(column),
                Some(index) => {
                    let merging = merging.filter(|_| index < base_count).copied();
                    let merging = merging.map_or_else(|| Merging::of(&[]), Ok)?;
                    let checked = merging.check_column(&schema.columns[index], &column.kind);
                    checked.map_err(|error| error.at(definition.name.span))?;
                    schema.columns[index] = column;
                }
            }
        }
        Ok(())
    }

    /// Reads one column. `visible` are the columns that its expression may name.
    pub(super) fn column(&self, definition: &ColumnDefinition, visible: &[Column]) -> Result<Column> {
        let (data_type, kind) = match &definition.kind {
            ColumnDefinitionKind::Physical { data_type, .. } => (data_type.clone(), ColumnKind::Physical),
            ColumnDefinitionKind::Metadata { data_type, key, is_virtual } => {
                (data_type.clone(), ColumnKind::Metadata { key: key.clone(), is_virtual: *is_virtual })
            }
            ColumnDefinitionKind::Computed(expression) => {
                let bound = bind_column_expression(expression, visible, self.config)?;
                (bound.data_type, ColumnKind::Computed { expression: bound.text })
            }
        };
        Ok(Column {
            name: definition.name.value.clone(),
            data_type,
            kind,
            comment: definition.comment.clone(),
        })
    }

    /// Binds an expression that is kept in expanded text once more. Places in it are not in the statement at hand.
    pub(super) fn rebind(&self, expression: &str, visible: &[Column]) -> Result<BoundExpressionText> {
        let parsed = parse_expression(expression)?;
        bind_column_expression(&parsed, visible, self.config).map_err(Error::without_span)
    }

    /// Makes the columns the primary key, which also makes them NOT NULL.
    pub(super) fn set_primary_key(
        &self,
        schema: &mut TableSchema,
        constraint: &TableConstraint,
        columns: &[(&str, Span)],
    ) -> Result<()> {
        let names: Vec<String> = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        let constraint_name = constraint.name.clone().unwrap_or_else(|| format!("PK_{}", names.join("_")));
        for (index, (name, span)) in columns.iter().enumerate() {
            let place = || self.place(*span);
            let Some(column) = schema.columns.iter_mut().find(|column| column.name == *name) else {
                let message =
                    format!("Primary key column '{name}' is not defined in the schema at {}", place());
                return Err(Error::validation(message).at(*span));
            };
            if !column.is_physical() {
                return Err(Error::validation(format!(
                    "Could not create a PRIMARY KEY with column '{name}' at {}.\nA PRIMARY KEY constraint must be declared on physical columns.",
                    place()
                ))
                .at(*span));
            }
            if names[..index].iter().any(|earlier| earlier == name) {
                return Err(Error::validation(format!(
                    "Invalid primary key '{constraint_name}'. A primary key must not contain duplicate columns. Found: [{name}]"
                ))
                .at(*span));
            }
            column.data_type.nullable = false;
        }
        schema.primary_key = Some(PrimaryKey { name: constraint_name, columns: names });
        Ok(())
    }

    /// Reads a watermark over the given columns.
    pub(super) fn watermark(
        &self,
        definition: &WatermarkDefinition,
        columns: &[Column],
    ) -> Result<Watermark> {
        let path = &definition.column.parts;
        let time_type = self.rowtime_type(definition, columns)?;
        if columns
            .iter()
            .any(|column| [&column.name] == path.iter().collect::<Vec<_>>()[..] && is_proctime(column))
        {
            return Err(Error::validation("A watermark can not be defined for a processing-time attribute.")
                .at(definition.column.span));
        }
        if !is_time_attribute(&time_type) {
            return Err(Error::validation(format!(
                "Invalid data type of time field for watermark definition. The field must be of type TIMESTAMP(p) or TIMESTAMP_LTZ(p), the supported precision 'p' is from 0 to 3, but the time field type is {}",
                time_type.summary()
            ))
            .at(definition.column.span));
        }
        let bound = bind_column_expression(&definition.expression, columns, self.config)?;
        if !is_time_attribute(&bound.data_type) {
            return Err(Error::validation(format!(
                "Invalid data type of expression for watermark definition. The field must be of type TIMESTAMP(p) or TIMESTAMP_LTZ(p), the supported precision 'p' is from 0 to 3, but the watermark expression type is {}",
                bound.data_type.summary()
            ))
            .at(definition.expression.span));
        }
        Ok(Watermark { column: path.clone(), expression: bound.text, data_type: bound.data_type })
    }

    /// Returns the type of the column, or of the nested field, that a watermark is for.
    fn rowtime_type(&self, definition: &WatermarkDefinition, columns: &[Column]) -> Result<DataType> {
        let path = &definition.column.parts;
        let (root, fields) =
            path.split_first().ok_or_else(|| Error::internal("a watermark without a column"))?;
        let place = self.place(definition.column.span);
        let Some(column) = columns.iter().find(|column| column.name == *root) else {
            let available: Vec<String> = columns.iter().map(|column| format!("'{}'", column.name)).collect();
            return Err(Error::validation(format!(
                "The rowtime attribute field '{}' is not defined in the table schema, at {place}\nAvailable fields: [{}]",
                path.join("."),
                available.join(", ")
            ))
            .at(definition.column.span));
        };
        let mut data_type = &column.data_type;
        for field in fields {
            let nested = match &data_type.root {
                TypeRoot::Row(nested) => nested.iter().find(|nested| nested.name == *field),
                _ => None,
            };
            let nested = nested.ok_or_else(|| {
                Error::validation(format!(
                    "The rowtime attribute field '{}' is not defined in the table schema, at {place}\nNested field '{field}' was not found in a composite type: {}.",
                    path.join("."),
                    data_type.summary()
                ))
                .at(definition.column.span)
            })?;
            data_type = &nested.data_type;
        }
        Ok(data_type.clone())
    }

    /// Reads PARTITIONED BY. Transforms are for catalogs that know them.
    pub(super) fn partition_keys(
        &self,
        fields: &[PartitionField],
        columns: &[Column],
        transforms: bool,
    ) -> Result<Vec<String>> {
        let mut keys: Vec<String> = Vec::with_capacity(fields.len());
        for field in fields {
            let name = &field.column.value;
            if !columns.iter().any(|column| column.name == *name) {
                let available: Vec<String> =
                    columns.iter().map(|column| format!("'{}'", column.name)).collect();
                return Err(Error::validation(format!(
                    "Partition column '{name}' not defined in the table schema. Available columns: [{}]",
                    available.join(", ")
                ))
                .at(field.column.span));
            }
            if field.transform.is_some() && !transforms {
                return Err(Error::unsupported("this catalog cannot partition tables by transforms")
                    .class(FlinkClass::VALIDATION)
                    .at(field.column.span)
                    .hint("Name columns alone, or create the table in an Iceberg catalog."));
            }
            let key = partition_text(field);
            if keys.contains(&key) {
                return Err(Error::validation(format!("Partition column '{key}' appears more than once"))
                    .at(field.column.span));
            }
            keys.push(key);
        }
        Ok(keys)
    }

    /// Reads DISTRIBUTED.
    pub(super) fn distribution(
        &self,
        clause: &DistributionClause,
        columns: &[Column],
    ) -> Result<Distribution> {
        for bucket_key in &clause.columns {
            if !columns.iter().any(|column| column.name == bucket_key.value && column.is_physical()) {
                let physical =
                    columns.iter().filter(|column| column.is_physical()).map(|column| column.name.as_str());
                return Err(Error::validation(format!(
                    "Invalid bucket key '{}'. A bucket key for a distribution must reference a physical column in the schema. Available columns are: [{}]",
                    bucket_key.value,
                    physical.collect::<Vec<_>>().join(", ")
                ))
                .at(bucket_key.span));
            }
        }
        if clause.buckets == Some(0) {
            return Err(Error::validation(
                "Invalid bucket count '0'. The number of buckets for a distributed table must be at least 1.",
            ));
        }
        Ok(Distribution {
            kind: clause.kind.clone(),
            columns: clause.columns.iter().map(|column| column.value.clone()).collect(),
            buckets: clause.buckets,
        })
    }
}

/// Returns whether a column is stored in the table.
pub(super) fn is_physical(definition: &ColumnDefinition) -> bool {
    matches!(definition.kind, ColumnDefinitionKind::Physical { .. })
}

/// Returns whether a column is computed.
pub(super) fn is_computed(definition: &ColumnDefinition) -> bool {
    matches!(definition.kind, ColumnDefinitionKind::Computed(_))
}

/// Returns whether a column is `AS PROCTIME()`.
pub(super) fn is_proctime(column: &Column) -> bool {
    matches!(&column.kind, ColumnKind::Computed { expression } if expression == "PROCTIME()")
}

/// Returns whether a type can be a row time.
fn is_time_attribute(data_type: &DataType) -> bool {
    matches!(data_type.root, TypeRoot::Timestamp(0..=3) | TypeRoot::TimestampLtz(0..=3))
}

/// Returns a partition field as it is kept: the column, or the transform with its parameter.
pub(super) fn partition_text(field: &PartitionField) -> String {
    let column = &field.column.value;
    match (&field.transform, field.parameter) {
        (None, _) => column.clone(),
        (Some(transform), None) => format!("{transform}({column})"),
        (Some(transform), Some(parameter)) => format!("{transform}({parameter}, {column})"),
    }
}

/// A primary key as written: the constraint, and its columns with their places.
pub(super) type WrittenKey<'a> = (&'a TableConstraint, Vec<(&'a str, Span)>);

/// Checks all constraints among the elements and returns the primary key.
pub(super) fn single_key<'a>(
    elements: impl IntoIterator<Item = &'a TableElement>,
) -> Result<Option<WrittenKey<'a>>> {
    let mut key: Option<WrittenKey<'a>> = None;
    for element in elements {
        let (constraint, columns) = match element {
            TableElement::Column(ColumnDefinition {
                name,
                kind: ColumnDefinitionKind::Physical { constraint: Some(constraint), .. },
                ..
            }) => (constraint, vec![(name.value.as_str(), name.span)]),
            TableElement::Constraint(constraint) => (
                constraint,
                constraint.columns.iter().map(|column| (column.value.as_str(), column.span)).collect(),
            ),
            _ => continue,
        };
        let refuse = |message: &str| {
            Err(Error::validation(message).class(FlinkClass::PARSER_VALIDATE).at(constraint.span.span))
        };
        if constraint.unique {
            return refuse("UNIQUE constraint is not supported yet");
        }
        if constraint.enforced != Some(false) {
            return refuse(ENFORCED_TEXT)
                .map_err(|error: Error| error.hint("Write NOT ENFORCED behind the constraint."));
        }
        if key.is_some() {
            return refuse("Duplicate primary key definition");
        }
        key = Some((constraint, columns));
    }
    Ok(key)
}
