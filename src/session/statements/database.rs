//! CREATE, DROP, ALTER and USE of databases.

use crate::catalog::CatalogDatabase;
use crate::error::Result;
use crate::session::table_definition::option_map;
use crate::session::{Session, StatementResult};
use crate::sql::{CreateDatabase, ObjectName, SqlOption};

impl Session {
    /// Returns catalog and database that a name means.
    pub(in crate::session) fn resolve_database(&self, name: &ObjectName) -> Result<(String, String)> {
        self.catalogs.resolve_database(&name.parts).map_err(|error| error.at(name.span))
    }

    /// Creates a database.
    pub(in crate::session) async fn create_database(
        &mut self,
        create: &CreateDatabase,
    ) -> Result<StatementResult> {
        let (catalog, name) = self.resolve_database(&create.name)?;
        let database =
            CatalogDatabase { comment: create.comment.clone(), properties: option_map(&create.options)? };
        let created = self.catalogs.create_database(&catalog, &name, database, create.if_not_exists).await;
        created.map_err(|error| error.at(create.name.span))?;
        Ok(StatementResult::Done)
    }

    /// Drops a database.
    pub(in crate::session) async fn drop_database(
        &mut self,
        name: &ObjectName,
        if_exists: bool,
        cascade: bool,
    ) -> Result<StatementResult> {
        let (catalog, database) = self.resolve_database(name)?;
        let dropped = self.catalogs.drop_database(&catalog, &database, if_exists, cascade).await;
        dropped.map_err(|error| error.at(name.span))?;
        Ok(StatementResult::Done)
    }

    /// Adds to a database's properties.
    pub(in crate::session) async fn alter_database(
        &mut self,
        name: &ObjectName,
        options: &[SqlOption],
    ) -> Result<StatementResult> {
        let (catalog, database) = self.resolve_database(name)?;
        let altered = self.catalogs.alter_database(&catalog, &database, option_map(options)?).await;
        altered.map_err(|error| error.at(name.span))?;
        Ok(StatementResult::Done)
    }

    /// Makes a database, and its catalog, the current ones.
    pub(in crate::session) async fn use_database(&mut self, name: &ObjectName) -> Result<StatementResult> {
        let (catalog, database) = self.resolve_database(name)?;
        self.catalogs.use_database(&catalog, &database).await.map_err(|error| error.at(name.span))?;
        Ok(StatementResult::Done)
    }
}
