//! CREATE, DROP, ALTER and USE of catalogs.

use std::collections::BTreeMap;

use crate::catalog::CatalogDescriptor;
use crate::error::{Error, Result};
use crate::session::table_definition::option_map;
use crate::session::{Session, StatementResult};
use crate::sql::{AlterOptions, CreateCatalog, Spanned};

impl Session {
    /// Creates and opens a catalog.
    pub(in crate::session) async fn create_catalog(
        &mut self,
        create: &CreateCatalog,
    ) -> Result<StatementResult> {
        let descriptor =
            CatalogDescriptor { options: option_map(&create.options)?, comment: create.comment.clone() };
        let name = &create.name;
        let created = self.catalogs.create_catalog(&name.value, descriptor, create.if_not_exists).await;
        created.map_err(|error| error.at(name.span))?;
        Ok(StatementResult::Done)
    }

    /// Forgets a catalog.
    pub(in crate::session) async fn drop_catalog(
        &mut self,
        name: &Spanned<String>,
        if_exists: bool,
    ) -> Result<StatementResult> {
        self.catalogs.drop_catalog(&name.value, if_exists).await.map_err(|error| error.at(name.span))?;
        Ok(StatementResult::Done)
    }

    /// Changes a catalog's options or comment.
    pub(in crate::session) async fn alter_catalog(
        &mut self,
        name: &Spanned<String>,
        change: &AlterOptions,
    ) -> Result<StatementResult> {
        if let AlterOptions::Reset(keys) = change {
            if keys.is_empty() {
                return Err(Error::validation("ALTER CATALOG RESET does not support empty key"));
            }
            if let Some(key) = keys.iter().find(|key| key.value == "type") {
                let message = "ALTER CATALOG RESET does not support changing 'type'";
                return Err(Error::validation(message).at(key.span));
            }
        }
        let mut added = match change {
            AlterOptions::Set(options) => option_map(options)?,
            AlterOptions::Reset(_) | AlterOptions::Comment(_) => BTreeMap::new(),
        };
        let altered = self.catalogs.alter_catalog(&name.value, |descriptor| match change {
            AlterOptions::Set(_) => descriptor.options.append(&mut added),
            AlterOptions::Reset(keys) => {
                descriptor.options.retain(|key, _| !keys.iter().any(|reset| reset.value == *key));
            }
            AlterOptions::Comment(comment) => descriptor.comment = Some(comment.clone()),
        });
        altered.await.map_err(|error| error.at(name.span))?;
        Ok(StatementResult::Done)
    }

    /// Makes a catalog the current one.
    pub(in crate::session) async fn use_catalog(
        &mut self,
        name: &Spanned<String>,
    ) -> Result<StatementResult> {
        self.catalogs.use_catalog(&name.value).await.map_err(|error| error.at(name.span))?;
        Ok(StatementResult::Done)
    }
}
