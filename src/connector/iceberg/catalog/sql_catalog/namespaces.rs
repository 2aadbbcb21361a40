//! Namespaces of a SQL catalog: rows of properties, or no more than the tables in them.

use std::collections::{BTreeSet, HashMap};

use iceberg::{Namespace, NamespaceIdent, TableIdent};

use super::SqlCatalog;
use super::catalog_tables::{EXISTS, joined};
use super::database::{Row, WriteError};
use crate::connector::iceberg::catalog::metadata_commit::no_namespace;
use crate::connector::iceberg::error::from_iceberg;
use crate::error::{Error, FlinkClass, Result};

impl SqlCatalog {
    /// Returns all namespaces, as they stand in the database.
    pub(super) async fn all_namespaces(&self) -> Result<BTreeSet<String>> {
        let rows = self.database.read(self.tables.select_namespaces()).await?;
        Ok(rows.into_iter().flatten().flatten().collect())
    }

    /// Returns whether a namespace, or one below it, is there.
    pub(super) async fn has_namespace(&self, namespace: &NamespaceIdent) -> Result<bool> {
        let name = joined(namespace);
        let below = format!("{name}.");
        Ok(self.all_namespaces().await?.iter().any(|found| *found == name || found.starts_with(&below)))
    }

    pub(super) async fn require_namespace(&self, namespace: &NamespaceIdent) -> Result<()> {
        if self.has_namespace(namespace).await? { Ok(()) } else { Err(no_namespace(&namespace.to_string())) }
    }

    pub(super) async fn namespaces(&self, parent: Option<&NamespaceIdent>) -> Result<Vec<NamespaceIdent>> {
        let all = self.all_namespaces().await?;
        let Some(parent) = parent else {
            let names: BTreeSet<&str> = all.iter().filter_map(|name| name.split('.').next()).collect();
            return Ok(names.into_iter().map(|name| NamespaceIdent::new(name.to_owned())).collect());
        };
        self.require_namespace(parent).await?;
        let above = format!("{}.", joined(parent));
        let children = all.iter().filter_map(|name| name.strip_prefix(&above)?.split('.').next());
        let child = |name: &str| {
            let mut levels = parent.clone().inner();
            levels.push(name.to_owned());
            NamespaceIdent::from_vec(levels).map_err(from_iceberg)
        };
        children.collect::<BTreeSet<_>>().into_iter().map(child).collect()
    }

    /// Returns the properties that a namespace was given.
    pub(super) async fn properties(&self, namespace: &NamespaceIdent) -> Result<HashMap<String, String>> {
        let rows = self.database.read(self.tables.select_properties(namespace)).await?;
        let property = |row: Row| match <[Option<String>; 2]>::try_from(row) {
            Ok([Some(key), value]) => Some((key, value.unwrap_or_default())),
            _ => None,
        };
        Ok(rows.into_iter().filter_map(property).filter(|(key, _)| key != EXISTS).collect())
    }

    pub(super) async fn make_namespace(
        &self,
        namespace: &NamespaceIdent,
        properties: HashMap<String, String>,
    ) -> Result<Namespace> {
        let exists = || {
            Error::already_exists(format!("Namespace already exists: {namespace}"))
                .class(FlinkClass::ICEBERG_ALREADY_EXISTS)
        };
        if self.has_namespace(namespace).await? {
            return Err(exists());
        }
        match self.database.write(self.tables.insert_namespace(namespace, &properties)).await {
            Ok(_) => Ok(Namespace::with_properties(namespace.clone(), properties)),
            Err(WriteError::Exists(error)) => Err(exists().caused_by(error)),
            Err(error) => Err(error.into_error()),
        }
    }

    pub(super) async fn replace_properties(
        &self,
        namespace: &NamespaceIdent,
        properties: &HashMap<String, String>,
    ) -> Result<()> {
        self.require_namespace(namespace).await?;
        let mut statements = vec![self.tables.delete_namespace(namespace)];
        statements.extend(self.tables.insert_namespace(namespace, properties));
        self.database.write(statements).await.map(drop).map_err(WriteError::into_error)
    }

    pub(super) async fn remove_namespace(&self, namespace: &NamespaceIdent) -> Result<()> {
        self.require_namespace(namespace).await?;
        let not_empty = |content: String| {
            Err(Error::validation(format!("Namespace {namespace} is not empty. {content} exist."))
                .class(FlinkClass::ICEBERG_NAMESPACE_NOT_EMPTY))
        };
        let tables = self.database.read(self.tables.select_tables(namespace)).await?;
        if !tables.is_empty() {
            return not_empty(format!("{} tables", tables.len()));
        }
        let below = self.namespaces(Some(namespace)).await?;
        if !below.is_empty() {
            return not_empty(format!("{} namespaces", below.len()));
        }
        let removed = self.database.write(vec![self.tables.delete_namespace(namespace)]).await;
        removed.map(drop).map_err(WriteError::into_error)
    }

    pub(super) async fn tables_of(&self, namespace: &NamespaceIdent) -> Result<Vec<TableIdent>> {
        self.require_namespace(namespace).await?;
        let rows = self.database.read(self.tables.select_tables(namespace)).await?;
        let names = rows.into_iter().flatten().flatten();
        Ok(names.map(|name| TableIdent::new(namespace.clone(), name)).collect())
    }
}
