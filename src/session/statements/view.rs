//! CREATE VIEW and ALTER VIEW. The query is bound when it is stored, so that the view's columns are known.

use crate::catalog::{CatalogObject, CatalogView};
use crate::error::{Error, Result};
use crate::plan::bind_view;
use crate::schema::Column;
use crate::session::{Session, StatementResult};
use crate::sql::{AlterView, CreateView, ObjectName, Query, Spanned};

impl Session {
    /// Creates a view.
    pub(in crate::session) async fn create_view(&mut self, create: &CreateView) -> Result<StatementResult> {
        let identifier = self.resolve(&create.name)?;
        let view = self
            .define_view(&create.query, &create.query_text, &create.columns, create.comment.clone())
            .await?;
        let view = CatalogObject::View(view);
        let created = if create.temporary {
            self.catalogs.create_temporary(&identifier, view, create.if_not_exists)
        } else {
            self.catalogs.create_object(&identifier, view, create.if_not_exists).await
        };
        created.map_err(|error| error.at(create.name.span))?;
        Ok(StatementResult::Done)
    }

    /// Binds a view's query.
    async fn define_view(
        &self,
        query: &Query,
        query_text: &str,
        names: &[Spanned<String>],
        comment: Option<String>,
    ) -> Result<CatalogView> {
        let bound = bind_view(query, &self.catalogs, &self.config).await?;
        let mut columns: Vec<Column> =
            bound.columns.into_iter().map(|(name, data_type)| Column::physical(name, data_type)).collect();
        if !names.is_empty() {
            if names.len() != columns.len() {
                let defined: Vec<&str> = names.iter().map(|name| name.value.as_str()).collect();
                let input: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
                return Err(Error::validation(format!(
                    "VIEW definition and input fields not match:\n\tDef fields: [{}].\n\tInput fields: [{}].",
                    defined.join(", "),
                    input.join(", ")
                ))
                .at(names[0].span));
            }
            for (column, name) in columns.iter_mut().zip(names) {
                column.name.clone_from(&name.value);
            }
        }
        for (index, column) in columns.iter().enumerate() {
            if columns[..index].iter().any(|earlier| earlier.name == column.name) {
                let error =
                    Error::validation(format!("A column named '{}' is there twice in the view", column.name));
                return Err(match names.get(index) {
                    Some(name) => error.at(name.span),
                    None => error.at(query.span).hint("Give the columns names of their own with AS."),
                });
            }
        }
        Ok(CatalogView {
            original_query: query_text.to_owned(),
            expanded_query: bound.expanded_query,
            columns,
            comment,
        })
    }

    /// Renames a view or gives it another query.
    pub(in crate::session) async fn alter_view(
        &mut self,
        name: &ObjectName,
        change: &AlterView,
    ) -> Result<StatementResult> {
        let identifier = self.resolve(name)?;
        let Some(object) = self.alterable(name, &identifier, "View", false).await? else {
            return Ok(StatementResult::Done);
        };
        let CatalogObject::View(view) = object.as_ref() else {
            return Err(Error::validation("ALTER VIEW for a table is not allowed").at(name.span));
        };
        match change {
            AlterView::Rename(new_name) => self.rename_object(&identifier, new_name).await?,
            AlterView::Query(query, text) => {
                let altered = self.define_view(query, text, &[], view.comment.clone()).await?;
                if altered.expanded_query.contains(&identifier.quoted()) {
                    return Err(Error::validation(format!("view '{identifier}' would read from itself"))
                        .at(query.span)
                        .hint("Create another view on top of it instead."));
                }
                self.catalogs.alter_view(&identifier, altered).await?;
            }
        }
        Ok(StatementResult::Done)
    }

    /// Renames a table or view; the new name may be written in full, but names the same database.
    pub(in crate::session) async fn rename_object(
        &mut self,
        identifier: &crate::catalog::ObjectIdentifier,
        new_name: &ObjectName,
    ) -> Result<()> {
        // A name of one part stays in the object's own database, whatever the current one is.
        let target = match new_name.parts.as_slice() {
            [object] => {
                crate::catalog::ObjectIdentifier::new(&identifier.catalog, &identifier.path.database, object)
            }
            _ => self.resolve(new_name)?,
        };
        if (&target.catalog, &target.path.database) != (&identifier.catalog, &identifier.path.database) {
            return Err(Error::unsupported(format!(
                "'{identifier}' cannot be renamed into another database"
            ))
            .at(new_name.span)
            .hint("Give the new name without a database."));
        }
        let renamed = self.catalogs.rename_object(identifier, &target.path.object).await;
        renamed.map_err(|error| error.at(new_name.span))
    }
}
