//! SHOW CREATE: definitions as text that creates the same thing again. Only secrets are not what they were.

use std::collections::BTreeMap;

use crate::catalog::{
    CatalogObject, CatalogTable, CatalogView, Distribution, ObjectIdentifier, partition_column,
};
use crate::error::{Error, FlinkClass, Result, redact_value};
use crate::schema::{Column, ColumnKind};
use crate::session::result_table::text_table;
use crate::session::{Session, StatementResult};
use crate::sql::{ObjectName, Spanned};

impl Session {
    /// Shows how a table can be created.
    pub(in crate::session) async fn show_create_table(&self, name: &ObjectName) -> Result<StatementResult> {
        let identifier = self.resolve(name)?;
        let found = self
            .catalogs
            .object(&identifier)
            .await?
            .ok_or_else(|| missing("TABLE", "Table", &identifier, name))?;
        match found.object.as_ref() {
            CatalogObject::Table(table) => {
                text_table("result", [table_text(&identifier, table, found.is_temporary)])
            }
            CatalogObject::View(_) => Err(wrong_kind("TABLE", &identifier, "VIEW").at(name.span)),
        }
    }

    /// Shows how a view can be created.
    pub(in crate::session) async fn show_create_view(&self, name: &ObjectName) -> Result<StatementResult> {
        let identifier = self.resolve(name)?;
        let found = self
            .catalogs
            .object(&identifier)
            .await?
            .ok_or_else(|| missing("VIEW", "View", &identifier, name))?;
        match found.object.as_ref() {
            CatalogObject::View(view) => {
                text_table("result", [view_text(&identifier, view, found.is_temporary)])
            }
            CatalogObject::Table(_) => Err(wrong_kind("VIEW", &identifier, "TABLE").at(name.span)),
        }
    }

    /// Shows how a catalog can be created.
    pub(in crate::session) fn show_create_catalog(&self, name: &Spanned<String>) -> Result<StatementResult> {
        let descriptor = self.catalogs.descriptor(&name.value)?.ok_or_else(|| {
            Error::not_found(format!("Cannot obtain metadata information from Catalog {}.", name.value))
                .at(name.span)
        })?;
        let mut text = format!("CREATE CATALOG {}\n", quoted(&name.value));
        push_comment(&mut text, descriptor.comment.as_deref());
        push_options(&mut text, &descriptor.options);
        text_table("result", [text])
    }
}

/// Builds Flink's error for a name that is none.
fn missing(keyword: &str, kind: &str, identifier: &ObjectIdentifier, name: &ObjectName) -> Error {
    let quoted = identifier.quoted();
    Error::not_found(format!(
        "Could not execute SHOW CREATE {keyword}. {kind} with identifier {quoted} does not exist."
    ))
    .at(name.span)
}

/// Builds Flink's error for a table that was called a view, or the other way round.
fn wrong_kind(keyword: &str, identifier: &ObjectIdentifier, actual: &str) -> Error {
    let (wanted, found) = (keyword.to_lowercase(), actual.to_lowercase());
    Error::validation(format!(
        "SHOW CREATE {keyword} is only supported for {wanted}s, but {} is a {found}. Please use SHOW CREATE {actual} instead.",
        identifier.quoted()
    ))
    .class(FlinkClass::TABLE)
}

/// Puts a name in back-ticks.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Puts a text in quotes.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Lists names in back-ticks.
fn quoted_list(names: &[String]) -> String {
    names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
}

/// Writes the definition of a table.
fn table_text(identifier: &ObjectIdentifier, table: &CatalogTable, is_temporary: bool) -> String {
    let temporary = if is_temporary { "TEMPORARY " } else { "" };
    let mut text = format!("CREATE {temporary}TABLE {} (\n", identifier.quoted());
    let mut elements: Vec<String> = table.schema.columns.iter().map(column_text).collect();
    if let Some(watermark) = &table.schema.watermark {
        let path: Vec<String> = watermark.column.iter().map(|part| quoted(part)).collect();
        elements.push(format!("WATERMARK FOR {} AS {}", path.join("."), watermark.expression));
    }
    if let Some(key) = &table.schema.primary_key {
        let columns = quoted_list(&key.columns);
        elements.push(format!("CONSTRAINT {} PRIMARY KEY ({columns}) NOT ENFORCED", quoted(&key.name)));
    }
    let elements: Vec<String> = elements.iter().map(|element| format!("  {element}")).collect();
    text.push_str(&elements.join(",\n"));
    text.push_str("\n)\n");
    push_comment(&mut text, table.comment.as_deref());
    if let Some(distribution) = &table.distribution {
        text.push_str(&distribution_text(distribution));
    }
    if !table.partition_keys.is_empty() {
        let keys = table.partition_keys.iter().map(|key| partition_text(table, key));
        text.push_str(&format!("PARTITIONED BY ({})\n", keys.collect::<Vec<_>>().join(", ")));
    }
    push_options(&mut text, &table.options);
    text
}

/// Writes one entry of PARTITIONED BY: a column, or a transform of one.
fn partition_text(table: &CatalogTable, key: &str) -> String {
    let column = partition_column(key);
    match key.strip_suffix(')').and_then(|front| front.strip_suffix(column)) {
        Some(front) if table.schema.column(key).is_none() => format!("{front}{})", quoted(column)),
        _ => quoted(key),
    }
}

/// Writes one column.
fn column_text(column: &Column) -> String {
    let mut text = quoted(&column.name);
    match &column.kind {
        ColumnKind::Physical => text.push_str(&format!(" {}", column.data_type.serialized())),
        ColumnKind::Computed { expression } => text.push_str(&format!(" AS {expression}")),
        ColumnKind::Metadata { key, is_virtual } => {
            text.push_str(&format!(" {} METADATA", column.data_type.serialized()));
            if let Some(key) = key {
                text.push_str(&format!(" FROM {}", literal(key)));
            }
            if *is_virtual {
                text.push_str(" VIRTUAL");
            }
        }
    }
    if let Some(comment) = column.comment.as_deref().filter(|comment| !comment.is_empty()) {
        text.push_str(&format!(" COMMENT {}", literal(comment)));
    }
    text
}

/// Writes DISTRIBUTED.
fn distribution_text(distribution: &Distribution) -> String {
    let mut text = "DISTRIBUTED".to_owned();
    if !distribution.columns.is_empty() {
        let kind = distribution.kind.as_deref().unwrap_or_default();
        text.push_str(&format!(" BY {kind}({})", quoted_list(&distribution.columns)));
    }
    if let Some(buckets) = distribution.buckets {
        text.push_str(&format!(" INTO {buckets} BUCKETS"));
    }
    text.push('\n');
    text
}

/// Writes the definition of a view.
fn view_text(identifier: &ObjectIdentifier, view: &CatalogView, is_temporary: bool) -> String {
    let temporary = if is_temporary { "TEMPORARY " } else { "" };
    let columns: Vec<String> =
        view.columns.iter().map(|column| format!("  {}", quoted(&column.name))).collect();
    let mut text = format!("CREATE {temporary}VIEW {} (\n{}\n)\n", identifier.quoted(), columns.join(",\n"));
    push_comment(&mut text, view.comment.as_deref());
    text.push_str(&format!("AS {}\n", view.expanded_query));
    text
}

/// Writes COMMENT, where there is one.
fn push_comment(text: &mut String, comment: Option<&str>) {
    if let Some(comment) = comment.filter(|comment| !comment.is_empty()) {
        text.push_str(&format!("COMMENT {}\n", literal(comment)));
    }
}

/// Writes WITH, where there are options; secrets as stars.
fn push_options(text: &mut String, options: &BTreeMap<String, String>) {
    if options.is_empty() {
        return;
    }
    let entries = options
        .iter()
        .map(|(key, value)| format!("  {} = {}", literal(key), literal(redact_value(key, value))));
    text.push_str(&format!("WITH (\n{}\n)\n", entries.collect::<Vec<_>>().join(",\n")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{PrimaryKey, TableSchema, TypeRoot};

    #[test]
    fn every_clause_has_its_line_and_secrets_are_stars() {
        let mut id = Column::physical("id", TypeRoot::BigInt.not_null());
        id.comment = Some("it's".to_owned());
        let time = Column {
            name: "t".to_owned(),
            data_type: TypeRoot::TimestampLtz(3).nullable(),
            kind: ColumnKind::Metadata { key: Some("timestamp".to_owned()), is_virtual: true },
            comment: None,
        };
        let mut schema = TableSchema::of_columns(vec![id, time]);
        schema.primary_key = Some(PrimaryKey { name: "PK_id".to_owned(), columns: vec!["id".to_owned()] });
        let options =
            [("connector", "jdbc"), ("password", "p")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let table = CatalogTable {
            schema,
            comment: None,
            partition_keys: vec!["id".to_owned(), "bucket(4, id)".to_owned(), "days(t)".to_owned()],
            distribution: Some(Distribution {
                kind: Some("HASH".to_owned()),
                columns: vec!["id".to_owned()],
                buckets: Some(4),
            }),
            options: options.into(),
            handle: Default::default(),
        };
        assert_eq!(
            table_text(&ObjectIdentifier::new("c", "d", "t"), &table, false),
            "CREATE TABLE `c`.`d`.`t` (
  `id` BIGINT NOT NULL COMMENT 'it''s',
  `t` TIMESTAMP(3) WITH LOCAL TIME ZONE METADATA FROM 'timestamp' VIRTUAL,
  CONSTRAINT `PK_id` PRIMARY KEY (`id`) NOT ENFORCED
)
DISTRIBUTED BY HASH(`id`) INTO 4 BUCKETS
PARTITIONED BY (`id`, bucket(4, `id`), days(`t`))
WITH (
  'connector' = 'jdbc',
  'password' = '******'
)
"
        );
    }
}
