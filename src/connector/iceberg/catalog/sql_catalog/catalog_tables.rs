//! The two tables in which Java's JdbcCatalog and PyIceberg's SqlCatalog keep tables and namespaces, and the statements on them.
//!
//! V1 has a column more, `iceberg_type`, by which views are told from tables; in a database made by either version a table may lack
//! it or have NULL there.

use std::collections::HashMap;

use iceberg::{NamespaceIdent, TableIdent};

use super::database::{Database, Statement};
use crate::error::{Error, Result};

/// The table of tables.
pub(super) const TABLES: &str = "iceberg_tables";
/// The table of namespaces.
pub(super) const NAMESPACES: &str = "iceberg_namespace_properties";
/// The column that V1 adds.
const TYPE_COLUMN: &str = "iceberg_type";
/// The property by which a namespace without properties is there.
pub(super) const EXISTS: &str = "exists";

/// The layout of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::connector::iceberg) enum SchemaVersion {
    /// Tables only.
    V0,
    /// Views too.
    V1,
}

/// Statements for one catalog in a database.
#[derive(Debug, Clone)]
pub(super) struct CatalogTables {
    catalog: String,
    version: SchemaVersion,
}

impl CatalogTables {
    /// Finds the tables in a database; makes or widens them.
    ///
    /// # Errors
    /// The database cannot be used, or a table is missing and must not be made.
    pub(super) async fn open(
        database: &dyn Database,
        catalog: &str,
        wanted: SchemaVersion,
        make_tables: bool,
    ) -> Result<CatalogTables> {
        let mut columns = columns_of(database, TABLES).await?;
        if columns.is_empty() {
            make_table(database, TABLES, &tables_sql(wanted), make_tables).await?;
            columns = columns_of(database, TABLES).await?;
        }
        if columns_of(database, NAMESPACES).await?.is_empty() {
            make_table(database, NAMESPACES, NAMESPACES_SQL, make_tables).await?;
        }
        let mut has_type = columns.iter().any(|column| column == TYPE_COLUMN);
        if !has_type && wanted == SchemaVersion::V1 {
            let widen = format!("ALTER TABLE {TABLES} ADD COLUMN {TYPE_COLUMN} VARCHAR(5)");
            let widened = database.write(vec![Statement::new(widen, [])]).await;
            // Somebody else may have done it meanwhile.
            has_type = columns_of(database, TABLES).await?.iter().any(|column| column == TYPE_COLUMN);
            if let Err(error) = widened
                && !has_type
            {
                return Err(error.into_error());
            }
        }
        let version = if has_type { SchemaVersion::V1 } else { SchemaVersion::V0 };
        Ok(CatalogTables { catalog: catalog.to_owned(), version })
    }

    /// Returns the catalog's name.
    pub(super) fn catalog(&self) -> &str {
        &self.catalog
    }

    /// Returns the version that the database has.
    #[cfg(test)]
    pub(super) fn version(&self) -> SchemaVersion {
        self.version
    }

    /// The condition that a row is a table.
    fn is_table(&self) -> &'static str {
        match self.version {
            SchemaVersion::V0 => "",
            SchemaVersion::V1 => " AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)",
        }
    }

    /// Selects where a table's metadata is.
    pub(super) fn select_table(&self, ident: &TableIdent) -> Statement {
        let sql = format!(
            "SELECT metadata_location FROM {TABLES} WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3{}",
            self.is_table()
        );
        Statement::new(sql, [self.catalog.as_str(), &joined(ident.namespace()), ident.name()])
    }

    /// Selects the names of a namespace's tables.
    pub(super) fn select_tables(&self, namespace: &NamespaceIdent) -> Statement {
        let sql = format!(
            "SELECT table_name FROM {TABLES} WHERE catalog_name = $1 AND table_namespace = $2{} ORDER BY table_name",
            self.is_table()
        );
        Statement::new(sql, [self.catalog.as_str(), &joined(namespace)])
    }

    /// Adds a table.
    pub(super) fn insert_table(&self, ident: &TableIdent, location: &str) -> Statement {
        let (column, value) = match self.version {
            SchemaVersion::V0 => ("", ""),
            SchemaVersion::V1 => (", iceberg_type", ", 'TABLE'"),
        };
        let sql = format!(
            "INSERT INTO {TABLES} (catalog_name, table_namespace, table_name, metadata_location, previous_metadata_location{column}) VALUES ($1, $2, $3, $4, NULL{value})"
        );
        Statement::new(sql, [self.catalog.as_str(), &joined(ident.namespace()), ident.name(), location])
    }

    /// Replaces a table's metadata if it is still the one that the new one was made from.
    pub(super) fn replace_metadata(&self, ident: &TableIdent, base: &str, location: &str) -> Statement {
        let typed = match self.version {
            SchemaVersion::V0 => "",
            SchemaVersion::V1 => ", iceberg_type = 'TABLE'",
        };
        let sql = format!(
            "UPDATE {TABLES} SET metadata_location = $1, previous_metadata_location = $2{typed} WHERE catalog_name = $3 AND table_namespace = $4 AND table_name = $5 AND metadata_location = $6{}",
            self.is_table()
        );
        let namespace = joined(ident.namespace());
        Statement::new(sql, [location, base, &self.catalog, &namespace, ident.name(), base])
    }

    /// Gives a table another name.
    pub(super) fn rename_table(&self, from: &TableIdent, to: &TableIdent) -> Statement {
        let sql = format!(
            "UPDATE {TABLES} SET table_namespace = $1, table_name = $2 WHERE catalog_name = $3 AND table_namespace = $4 AND table_name = $5{}",
            self.is_table()
        );
        let (to_namespace, from_namespace) = (joined(to.namespace()), joined(from.namespace()));
        Statement::new(sql, [to_namespace.as_str(), to.name(), &self.catalog, &from_namespace, from.name()])
    }

    /// Removes a table.
    pub(super) fn delete_table(&self, ident: &TableIdent) -> Statement {
        let sql = format!(
            "DELETE FROM {TABLES} WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3{}",
            self.is_table()
        );
        Statement::new(sql, [self.catalog.as_str(), &joined(ident.namespace()), ident.name()])
    }

    /// Selects all namespaces, those too that are there only by their tables.
    pub(super) fn select_namespaces(&self) -> Statement {
        let sql = format!(
            "SELECT table_namespace FROM {TABLES} WHERE catalog_name = $1 UNION SELECT namespace FROM {NAMESPACES} WHERE catalog_name = $2"
        );
        Statement::new(sql, [self.catalog.as_str(), &self.catalog])
    }

    /// Selects the properties of a namespace.
    pub(super) fn select_properties(&self, namespace: &NamespaceIdent) -> Statement {
        let sql = format!(
            "SELECT property_key, property_value FROM {NAMESPACES} WHERE catalog_name = $1 AND namespace = $2"
        );
        Statement::new(sql, [self.catalog.as_str(), &joined(namespace)])
    }

    /// Adds a namespace.
    pub(super) fn insert_namespace(
        &self,
        namespace: &NamespaceIdent,
        properties: &HashMap<String, String>,
    ) -> Vec<Statement> {
        let sql = format!(
            "INSERT INTO {NAMESPACES} (catalog_name, namespace, property_key, property_value) VALUES ($1, $2, $3, $4)"
        );
        let namespace = joined(namespace);
        let insert = |key: &str, value: &str| {
            Statement::new(sql.clone(), [self.catalog.as_str(), &namespace, key, value])
        };
        let rest = properties.iter().filter(|(key, _)| *key != EXISTS);
        std::iter::once(insert(EXISTS, "true")).chain(rest.map(|(key, value)| insert(key, value))).collect()
    }

    /// Removes a namespace; its tables stay.
    pub(super) fn delete_namespace(&self, namespace: &NamespaceIdent) -> Statement {
        let sql = format!("DELETE FROM {NAMESPACES} WHERE catalog_name = $1 AND namespace = $2");
        Statement::new(sql, [self.catalog.as_str(), &joined(namespace)])
    }
}

/// Returns a namespace as it stands in the tables.
pub(super) fn joined(namespace: &NamespaceIdent) -> String {
    namespace.join(".")
}

/// The words with which Java makes the table of namespaces.
const NAMESPACES_SQL: &str = "CREATE TABLE iceberg_namespace_properties(catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, property_key VARCHAR(255), property_value VARCHAR(1000), PRIMARY KEY (catalog_name, namespace, property_key))";

/// Returns the words with which the table of tables is made; those of V0 are Java's.
fn tables_sql(version: SchemaVersion) -> String {
    let typed = match version {
        SchemaVersion::V0 => "",
        SchemaVersion::V1 => " iceberg_type VARCHAR(5),",
    };
    format!(
        "CREATE TABLE iceberg_tables(catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000),{typed} PRIMARY KEY (catalog_name, table_namespace, table_name))"
    )
}

async fn columns_of(database: &dyn Database, table: &str) -> Result<Vec<String>> {
    let rows = database.read(Statement::new(database.columns_query(), [table])).await?;
    Ok(rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect())
}

async fn make_table(database: &dyn Database, name: &str, sql: &str, may_make: bool) -> Result<()> {
    if !may_make {
        return Err(Error::not_found(format!("table '{name}' of the catalog is not in the database"))
            .hint("Let it be made: 'jdbc.init-catalog-tables' = 'true'."));
    }
    match database.write(vec![Statement::new(sql, [])]).await {
        Ok(_) => Ok(()),
        // Somebody else may have made it meanwhile.
        Err(error) if columns_of(database, name).await?.is_empty() => Err(error.into_error()),
        Err(_) => Ok(()),
    }
}
