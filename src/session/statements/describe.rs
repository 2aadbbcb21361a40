//! DESCRIBE, and SHOW COLUMNS, which answers with the same columns.

use crate::catalog::CatalogObject;
use crate::error::{Error, Result, redact_value};
use crate::function::{Determinism, aggregate_signatures};
use crate::schema::{Column, ColumnKind, TableSchema};
use crate::session::like_pattern::matches;
use crate::session::result_table::{AnswerColumn, answer, info};
use crate::session::table_definition::is_proctime;
use crate::session::{Session, StatementResult};
use crate::sql::{Describe, DescribeWhat, LikePattern, ObjectName, Spanned};

impl Session {
    /// Describes a table, catalog, database, function or job.
    pub(in crate::session) async fn describe(&self, describe: &Describe) -> Result<StatementResult> {
        match &describe.what {
            DescribeWhat::Table(name) => self.show_columns(name, None).await,
            DescribeWhat::Catalog(name) => self.describe_catalog(name, describe.extended),
            DescribeWhat::Database(name) => self.describe_database(name, describe.extended).await,
            DescribeWhat::Function(name) => self.describe_function(name, describe.extended),
            DescribeWhat::Job(job) => self.describe_job(job),
            DescribeWhat::Model(name) => Err(Error::unsupported("models are not supported").at(name.span)),
        }
    }

    /// Shows the columns of a table or view.
    pub(in crate::session) async fn show_columns(
        &self,
        name: &ObjectName,
        like: Option<&LikePattern>,
    ) -> Result<StatementResult> {
        let identifier = self.resolve(name)?;
        let found = self.catalogs.object(&identifier).await?.ok_or_else(|| {
            let message = format!("Tables or views with the identifier '{identifier}' doesn't exist.");
            Error::not_found(message).at(name.span)
        })?;
        match found.object.as_ref() {
            CatalogObject::Table(table) => column_table(&table.schema, like),
            CatalogObject::View(view) => column_table(&TableSchema::of_columns(view.columns.clone()), like),
        }
    }

    /// Shows how a catalog was made.
    fn describe_catalog(&self, name: &Spanned<String>, extended: bool) -> Result<StatementResult> {
        let descriptor = self.catalogs.descriptor(&name.value)?.ok_or_else(|| {
            Error::not_found(format!("Cannot obtain metadata information from Catalog {}.", name.value))
                .at(name.span)
        })?;
        let row = |name: &str, value: Option<&String>| (name.to_owned(), value.cloned().unwrap_or_default());
        let mut rows = vec![
            row("name", Some(&name.value)),
            row("type", descriptor.options.get("type")),
            row("comment", descriptor.comment.as_ref()),
        ];
        if extended {
            let others = descriptor.options.iter().filter(|(key, _)| *key != "type");
            rows.extend(
                others.map(|(key, value)| (format!("option:{key}"), redact_value(key, value).to_owned())),
            );
        }
        info(rows)
    }

    /// Shows a database. Flink's grammar has this statement, but its client fails at it.
    async fn describe_database(&self, name: &ObjectName, extended: bool) -> Result<StatementResult> {
        let (catalog, database) = self.resolve_database(name)?;
        let found = self.catalogs.database(&catalog, &database).await?.ok_or_else(|| {
            Error::not_found(format!("Database '{catalog}'.'{database}' doesn't exist.")).at(name.span)
        })?;
        let mut rows = vec![
            ("name".to_owned(), database),
            ("catalog".to_owned(), catalog),
            ("comment".to_owned(), found.comment.unwrap_or_default()),
        ];
        if extended {
            let properties = found.properties.iter();
            rows.extend(
                properties.map(|(key, value)| (format!("option:{key}"), redact_value(key, value).to_owned())),
            );
        }
        info(rows)
    }

    /// Shows what is known of a function.
    fn describe_function(&self, name: &ObjectName, extended: bool) -> Result<StatementResult> {
        let identifier = self.resolve(name)?;
        let system_name = match name.parts.as_slice() {
            [function] => Some(function.as_str()),
            _ => None,
        };
        let row = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        if let Some(stored) = self.catalogs.functions().find(system_name, &identifier) {
            return info(vec![
                row("is system function", &stored.is_system.to_string()),
                row("is temporary", &stored.is_temporary.to_string()),
                row("class name", &stored.function.class_name),
                row("function language", &stored.function.language),
                row("resource uris", &format!("[{}]", stored.function.resources.join(", "))),
            ]);
        }
        let described = system_name.and_then(|name| match crate::function::find(name) {
            Some(function) => {
                let is_deterministic = function.determinism() == Determinism::Deterministic;
                Some(("SCALAR", is_deterministic, function.signatures()))
            }
            None => aggregate_signatures(name).map(|signatures| ("AGGREGATE", true, signatures)),
        });
        let (kind, is_deterministic, signatures) = described.ok_or_else(|| {
            let parts: Vec<String> =
                name.parts.iter().map(|part| format!("`{}`", part.replace('`', "``"))).collect();
            Error::not_found(format!("Function with the identifier '{}' doesn't exist.", parts.join(".")))
                .at(name.span)
        })?;
        let mut rows = vec![row("is system function", "true"), row("is temporary", "false")];
        if extended {
            rows.push(row("kind", kind));
            rows.push(row("requirements", "[]"));
            rows.push(row("is deterministic", &is_deterministic.to_string()));
            rows.push(row("supports constant folding", &is_deterministic.to_string()));
            // Flink writes the name in small letters here and the family in full.
            let signatures = signatures.iter().map(|signature| {
                let (name, arguments) = signature.split_at(signature.find('(').unwrap_or(signature.len()));
                format!("{}{}", name.to_lowercase(), arguments.replace("<CHARACTER>", "<CHARACTER_STRING>"))
            });
            rows.push(row("signature", &signatures.collect::<Vec<_>>().join("\n")));
        }
        info(rows)
    }
}

/// Makes the six or seven columns of DESCRIBE; the seventh is there if any column of the table has a comment.
fn column_table(schema: &TableSchema, like: Option<&LikePattern>) -> Result<StatementResult> {
    let columns: Vec<&Column> = schema.columns.iter().filter(|column| matches(like, &column.name)).collect();
    let rowtime = schema.watermark.as_ref().and_then(|watermark| match watermark.column.as_slice() {
        [column] => Some((column, &watermark.expression)),
        _ => None,
    });
    let is_rowtime = |column: &Column| rowtime.is_some_and(|(name, _)| *name == column.name);
    let types = columns.iter().map(|column| {
        let marker = if is_rowtime(column) {
            " *ROWTIME*"
        } else if is_proctime(column) {
            " *PROCTIME*"
        } else {
            ""
        };
        Some(format!("{}{marker}", column.data_type))
    });
    let keys = columns.iter().map(|column| {
        let key = schema.primary_key.as_ref().filter(|key| key.columns.contains(&column.name))?;
        Some(format!("PRI({})", key.columns.join(", ")))
    });
    let watermarks =
        columns.iter().map(|column| rowtime.filter(|_| is_rowtime(column)).map(|(_, expression)| expression));
    let mut answer_columns = vec![
        AnswerColumn::texts("name", columns.iter().map(|column| Some(&column.name))),
        AnswerColumn::texts("type", types),
        AnswerColumn::booleans("null", columns.iter().map(|column| column.data_type.nullable)),
        AnswerColumn::texts("key", keys),
        AnswerColumn::texts("extras", columns.iter().map(|column| extras(column))),
        AnswerColumn::texts("watermark", watermarks),
    ];
    if schema.columns.iter().any(|column| column.comment.is_some()) {
        answer_columns
            .push(AnswerColumn::texts("comment", columns.iter().map(|column| column.comment.as_ref())));
    }
    answer(answer_columns)
}

/// Returns where the values of a column come from, if not from the table.
fn extras(column: &Column) -> Option<String> {
    match &column.kind {
        ColumnKind::Physical => None,
        ColumnKind::Computed { expression } => Some(format!("AS {expression}")),
        ColumnKind::Metadata { key, is_virtual } => {
            let from =
                key.as_ref().map_or(String::new(), |key| format!(" FROM '{}'", key.replace('\'', "''")));
            let is_virtual = if *is_virtual { " VIRTUAL" } else { "" };
            Some(format!("METADATA{from}{is_virtual}"))
        }
    }
}
