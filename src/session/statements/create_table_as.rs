//! CREATE TABLE … AS and REPLACE TABLE … AS: the query gives the columns, then fills the table.

use crate::catalog::{CatalogObject, ObjectIdentifier};
use crate::error::{Error, FlinkClass, Result, Span};
use crate::plan::Planner;
use crate::schema::DataType;
use crate::session::{Session, StatementResult};
use crate::sql::{
    ColumnDefinition, ColumnDefinitionKind, CreateTable, Insert, Query, Replace, Spanned, TableElement,
};

impl Session {
    /// Creates a table as its query says, and fills it.
    pub(in crate::session) async fn execute_create_table_as(
        &mut self,
        create: &CreateTable,
        text: &str,
    ) -> Result<StatementResult> {
        let Some(query) = &create.query else {
            return Err(Error::internal("CREATE TABLE AS without a query"));
        };
        if create.temporary {
            return Err(Error::unsupported(
                "CREATE TABLE AS SELECT syntax does not support to create temporary table yet.",
            )
            .class(FlinkClass::PARSER_VALIDATE)
            .at(create.name.span)
            .hint("Create the temporary table first, then INSERT INTO it."));
        }
        let identifier = self.resolve(&create.name)?;
        let exists = self.catalogs.permanent_object(&identifier).await?.is_some();
        if exists && create.if_not_exists {
            return Ok(StatementResult::Done);
        }
        if !exists && create.replace == Some(Replace::MustExist) {
            return Err(Error::not_found(format!("The table {} to be replaced doesn't exist. You can try to use CREATE TABLE AS statement or CREATE OR REPLACE TABLE AS statement.", identifier.quoted()))
                .class(FlinkClass::TABLE)
                .at(create.name.span));
        }
        if create.replace.is_some() && self.gives_connector(&identifier).await? {
            return Err(Error::unsupported(format!(
                "REPLACE TABLE is not supported for table '{identifier}'"
            ))
            .at(create.name.span)
            .hint(
                "Write INSERT OVERWRITE, which keeps the table's history, or DROP TABLE and CREATE TABLE AS.",
            ));
        }
        let planned = Planner::new(&self.catalogs, &self.config)?.query(query).await?;
        let columns: Vec<(String, DataType)> =
            planned.columns().map(|(name, data_type)| (name.to_owned(), data_type.clone())).collect();
        let mut definition = create.clone();
        definition.query = None;
        definition.elements = merged_elements(create, &columns)?;
        let table = self.define_table(&definition, &identifier, text).await?;
        let insert = insert_of(create, query, &columns);
        if self.gives_connector(&identifier).await? {
            let caution = self.caution(&identifier, &table).await?;
            // What the sink needs is loaded from a table that exists. Where filling it fails, it stays, as in Flink.
            self.catalogs
                .create_object(&identifier, CatalogObject::Table(table), false)
                .await
                .map_err(|error| error.at(create.name.span))?;
            if let Some(caution) = caution {
                self.warn(&caution);
            }
            return self.execute_insert(&insert).await;
        }
        let planner = Planner::new(&self.catalogs, &self.config)?;
        let bound = planner.table(identifier.clone(), table.clone()).load().await;
        let planned =
            planner.insert_into(&insert, bound.map_err(|error| error.at(create.name.span))?).await?;
        if exists && create.replace.is_some() {
            self.catalogs
                .drop_object(&identifier, false, true)
                .await
                .map_err(|error| error.at(create.name.span))?;
        }
        let created = self.catalogs.create_object(&identifier, CatalogObject::Table(table), false).await;
        created.map_err(|error| error.at(create.name.span))?;
        self.submit(vec![planned]).await
    }

    /// Returns whether the catalog of an object gives its tables their connector.
    pub(in crate::session) async fn gives_connector(&self, identifier: &ObjectIdentifier) -> Result<bool> {
        let catalog = self.catalogs.catalog(&identifier.catalog).await?;
        Ok(catalog.is_some_and(|catalog| catalog.connector().is_some()))
    }
}

/// Returns declared columns and the query's: declared ones first, but one that the query has too keeps the query's place
/// and takes the declared type.
fn merged_elements(create: &CreateTable, columns: &[(String, DataType)]) -> Result<Vec<TableElement>> {
    let declared = |name: &str| {
        create
            .elements
            .iter()
            .find(|element| matches!(element, TableElement::Column(column) if column.name.value == name))
    };
    let from_query = |(name, data_type): &(String, DataType)| {
        declared(name).cloned().unwrap_or_else(|| {
            TableElement::Column(ColumnDefinition {
                name: Spanned { value: name.clone(), span: create.name.span },
                kind: ColumnDefinitionKind::Physical { data_type: data_type.clone(), constraint: None },
                comment: None,
            })
        })
    };
    let in_query = |element: &TableElement| matches!(element, TableElement::Column(column) if columns.iter().any(|(name, _)| *name == column.name.value));
    let mut elements: Vec<TableElement> =
        create.elements.iter().filter(|element| !in_query(element)).cloned().collect();
    match &create.column_names {
        None => elements.extend(columns.iter().map(from_query)),
        Some(names) => {
            if names.len() != columns.len() {
                return Err(order_error(
                    "The number of columns in the column list must match the number of columns in the source schema.",
                    create.name.span,
                ));
            }
            for name in names {
                let column = columns.iter().find(|(known, _)| *known == name.value).ok_or_else(|| {
                    order_error(
                        &format!("Column '{}' not found in the source schema.", name.value),
                        name.span,
                    )
                })?;
                elements.push(from_query(column));
            }
        }
    }
    Ok(elements)
}

/// Makes the error for a column list that does not fit the query.
fn order_error(message: &str, span: Span) -> Error {
    Error::validation(message).at(span)
}

/// Makes the INSERT that fills the table: by name, so that the order of the declaration does not matter.
fn insert_of(create: &CreateTable, query: &Query, columns: &[(String, DataType)]) -> Insert {
    Insert {
        target: create.name.clone(),
        hints: Vec::new(),
        overwrite: false,
        partition: Vec::new(),
        columns: Some(
            columns.iter().map(|(name, _)| Spanned { value: name.clone(), span: create.name.span }).collect(),
        ),
        source: query.clone(),
        on_conflict: None,
    }
}
