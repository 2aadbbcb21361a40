//! SHOW PARTITIONS.

use sqlparser::ast;

use crate::catalog::{CatalogObject, PartitionName};
use crate::error::{Error, FlinkClass, Result};
use crate::session::result_table::text_table;
use crate::session::{Session, StatementResult};
use crate::sql::encoding::{text_value, time_literal};
use crate::sql::{Expression, ObjectName, PartitionSpec};

/// How a partition value that is NULL is written.
const NULL: &str = "null";

impl Session {
    /// Lists the partitions of a table, or those that have the values of a PARTITION clause.
    pub(in crate::session) async fn show_partitions(
        &self,
        table: &ObjectName,
        wanted: &PartitionSpec,
    ) -> Result<StatementResult> {
        let identifier = self.resolve(table)?;
        let Some(found) = self.catalogs.object(&identifier).await? else {
            let message = format!("Table {} doesn't exist.", identifier.quoted());
            return Err(Error::not_found(message).at(table.span));
        };
        let definition = match found.object.as_ref() {
            CatalogObject::Table(definition) if !definition.partition_keys.is_empty() => definition,
            _ => {
                let catalog = &identifier.catalog;
                let message = format!("Table {} in catalog {catalog} is not partitioned.", identifier.path);
                return Err(Error::validation(message)
                    .class(FlinkClass::TABLE_NOT_PARTITIONED)
                    .at(table.span));
            }
        };
        let mut partitions = match self.catalogs.catalog(&identifier.catalog).await? {
            Some(catalog) => catalog.list_partitions(definition).await?,
            None => Vec::new(),
        };
        for (key, value) in wanted {
            let Some(value) = value else {
                return Err(
                    Error::validation(format!("partition key '{}' has no value", key.value)).at(key.span)
                );
            };
            let text = literal_text(value)?;
            if let Some(partition) = partitions.first()
                && !partition.iter().any(|(name, _)| *name == key.value)
            {
                let names: Vec<&str> = partition.iter().map(|(name, _)| name.as_str()).collect();
                return Err(Error::validation(format!(
                    "table '{identifier}' has no partition key '{}'",
                    key.value
                ))
                .at(key.span)
                .hint(format!("Its partition keys are {}.", names.join(", "))));
            }
            partitions.retain(|partition| partition.contains(&(key.value.clone(), text.clone())));
        }
        text_table("partition name", partitions.iter().map(path_of))
    }
}

/// Writes a partition as folders would be named.
fn path_of(partition: &PartitionName) -> String {
    partition.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join("/")
}

/// Returns the text that a constant has as the value of a partition.
fn literal_text(value: &Expression) -> Result<String> {
    let text = match &value.body {
        ast::Expr::Value(literal) => match &literal.value {
            ast::Value::Number(digits, _) => Some(digits.as_str()),
            ast::Value::Boolean(true) => Some("true"),
            ast::Value::Boolean(false) => Some("false"),
            ast::Value::Null => Some(NULL),
            other => text_value(other),
        },
        ast::Expr::TypedString(typed) => time_literal(typed).map(|(_, text)| text),
        _ => None,
    };
    text.map(str::to_owned).ok_or_else(|| {
        Error::validation("the value of a partition must be a constant")
            .at(value.span)
            .hint("Write it as the partitions are listed, in quotes.")
    })
}
