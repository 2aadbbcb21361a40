//! CREATE TABLE without AS, and DROP TABLE.

use std::sync::Arc;

use crate::catalog::{CatalogObject, CatalogTable, ObjectIdentifier, TableHandle};
use crate::error::{Error, Result, SourceText};
use crate::session::table_definition::{DefinitionReader, option_map};
use crate::session::table_like::Merging;
use crate::session::{Session, StatementResult};
use crate::sql::{CreateTable, LikeClause, ObjectName};

impl Session {
    /// Returns the object that a name means, whether it exists or not.
    pub(in crate::session) fn resolve(&self, name: &ObjectName) -> Result<ObjectIdentifier> {
        self.catalogs.resolve(&name.parts).map_err(|error| error.at(name.span))
    }

    /// Creates a table.
    pub(in crate::session) async fn create_table(
        &mut self,
        create: &CreateTable,
        text: &str,
    ) -> Result<StatementResult> {
        if create.query.is_some() {
            return self.execute_create_table_as(create, text).await;
        }
        if create.replace.is_some() {
            return Err(Error::unsupported("REPLACE TABLE without AS is not supported")
                .at(create.name.span)
                .hint("Write REPLACE TABLE … AS SELECT …, or drop the table and create it."));
        }
        let identifier = self.resolve(&create.name)?;
        let table = self.define_table(create, &identifier, text).await?;
        let mut caution = match create.temporary {
            true => None,
            false => self.caution(&identifier, &table).await?,
        };
        if caution.is_some()
            && create.if_not_exists
            && self.catalogs.permanent_object(&identifier).await?.is_some()
        {
            caution = None;
        }
        let table = CatalogObject::Table(table);
        let created = if create.temporary {
            self.catalogs.create_temporary(&identifier, table, create.if_not_exists)
        } else {
            self.catalogs.create_object(&identifier, table, create.if_not_exists).await
        };
        created.map_err(|error| error.at(create.name.span))?;
        Ok(caution.map_or(StatementResult::Done, StatementResult::DoneWithNote))
    }

    /// Returns what the catalog of a table has to say of its definition.
    pub(in crate::session) async fn caution(
        &self,
        identifier: &ObjectIdentifier,
        table: &CatalogTable,
    ) -> Result<Option<String>> {
        let catalog = self.catalogs.catalog(&identifier.catalog).await?;
        Ok(catalog.and_then(|catalog| catalog.caution(table)))
    }

    /// Reads the definition that CREATE TABLE gives; AS is left to the caller.
    pub(in crate::session) async fn define_table(
        &self,
        create: &CreateTable,
        identifier: &ObjectIdentifier,
        text: &str,
    ) -> Result<CatalogTable> {
        let reader = DefinitionReader { config: &self.config, text };
        let base = match &create.like {
            Some(like) => {
                let target = (!create.temporary).then_some(identifier.catalog.as_str());
                Some((self.like_source(like, target, text).await?, Merging::of(&like.options)?))
            }
            None => None,
        };
        let base_schema = base.as_ref().map(|(table, merging)| (&table.schema, merging));
        let schema = reader.schema(&create.elements, base_schema)?;
        let transforms = match self.catalogs.catalog(&identifier.catalog).await? {
            Some(catalog) if !create.temporary => catalog.supports_partition_transforms(),
            _ => false,
        };
        let mut table = CatalogTable {
            partition_keys: reader.partition_keys(&create.partitioned_by, &schema.columns, transforms)?,
            distribution: create
                .distribution
                .as_ref()
                .map(|clause| reader.distribution(clause, &schema.columns))
                .transpose()?,
            options: option_map(&create.options)?,
            comment: create.comment.clone(),
            schema,
            handle: TableHandle::default(),
        };
        if let Some((base, merging)) = base {
            table.partition_keys = merging.partition_keys(&base, table.partition_keys)?;
            table.distribution = merging.distribution(&base, table.distribution)?;
            table.options = merging.options(&base, table.options)?;
        }
        Ok(table)
    }

    /// Finds the base table of LIKE. `target` is the catalog that the new table is for, None for a temporary table.
    async fn like_source(&self, like: &LikeClause, target: Option<&str>, text: &str) -> Result<CatalogTable> {
        let identifier = self.resolve(&like.base)?;
        let (line, column) = SourceText::new("", text).line_column(like.base.span.start);
        let refuse = |what: &str| {
            let name = identifier.quoted();
            Error::validation(format!(
                "Source table '{name}' of the LIKE clause {what}, at line {line}, column {column}"
            ))
            .at(like.base.span)
        };
        let Some(found) = self.catalogs.object(&identifier).await? else {
            return Err(refuse("not found in the catalog"));
        };
        let CatalogObject::Table(table) = found.object.as_ref() else {
            return Err(refuse("can not be a VIEW"));
        };
        let mut table = CatalogTable { handle: TableHandle::default(), ..table.clone() };
        if !found.is_temporary {
            self.move_definition(&mut table, &identifier, target).await?;
        }
        Ok(table)
    }

    /// Makes of a definition one for another catalog, where its own catalog gives the connector: a catalog of the same kind makes a
    /// table like it, any other one refers to it.
    async fn move_definition(
        &self,
        table: &mut CatalogTable,
        base: &ObjectIdentifier,
        target: Option<&str>,
    ) -> Result<()> {
        let Some(catalog) = self.catalogs.catalog(&base.catalog).await? else { return Ok(()) };
        let Some(connector) = catalog.connector() else { return Ok(()) };
        let target = match target {
            Some(target) => self.catalogs.catalog(target).await?,
            None => None,
        };
        if target.is_some_and(|target| target.connector() == Some(connector)) {
            table.options.remove("connector");
        } else {
            table.options.extend(catalog.options_elsewhere(&base.path));
            let schema = &table.schema;
            table.partition_keys.retain(|key| schema.column(key).is_some());
        }
        Ok(())
    }

    /// Drops a table or a view.
    pub(in crate::session) async fn drop_object(
        &mut self,
        name: &ObjectName,
        is_view: bool,
        if_exists: bool,
        temporary: bool,
    ) -> Result<StatementResult> {
        let identifier = self.resolve(name)?;
        let dropped = if temporary {
            self.catalogs.drop_temporary(&identifier, is_view, if_exists)
        } else {
            self.catalogs.drop_object(&identifier, is_view, if_exists).await
        };
        dropped.map_err(|error| error.at(name.span))?;
        Ok(StatementResult::Done)
    }

    /// Returns a permanent object that ALTER may change, or None where IF EXISTS lets it be missing.
    pub(in crate::session) async fn alterable(
        &self,
        name: &ObjectName,
        identifier: &ObjectIdentifier,
        kind: &str,
        if_exists: bool,
    ) -> Result<Option<Arc<CatalogObject>>> {
        let found = self.catalogs.object(identifier).await?.filter(|found| !found.is_temporary);
        match found {
            Some(found) => Ok(Some(found.object)),
            None if if_exists => Ok(None),
            None => {
                let small = kind.to_lowercase();
                let message =
                    format!("{kind} {} doesn't exist or is a temporary {small}.", identifier.quoted());
                Err(Error::not_found(message).at(name.span))
            }
        }
    }
}
