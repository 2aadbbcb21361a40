//! SHOW of everything that is a list. The texts of SHOW CREATE are in `show_create`.

use crate::error::{Error, Result};
use crate::function::{FUNCTIONS, aggregate_names};
use crate::session::like_pattern::matches;
use crate::session::result_table::{AnswerColumn, answer, text_table};
use crate::session::{Session, StatementResult};
use crate::sql::{LikePattern, ObjectName, Show, ShowWhat, Spanned};

/// Makes a sorted, filtered list.
fn filtered(column: &str, mut names: Vec<String>, like: Option<&LikePattern>) -> Result<StatementResult> {
    names.retain(|name| matches(like, name));
    names.sort_unstable();
    names.dedup();
    text_table(column, names)
}

impl Session {
    /// Shows a list or a definition.
    pub(in crate::session) async fn show(&self, show: &Show) -> Result<StatementResult> {
        let like = show.like.as_ref();
        match &show.what {
            ShowWhat::Catalogs => filtered("catalog name", self.catalogs.catalog_names()?, like),
            ShowWhat::CurrentCatalog => text_table("current catalog name", [self.catalogs.current_catalog()]),
            ShowWhat::CurrentDatabase => {
                text_table("current database name", [self.catalogs.current_database()])
            }
            ShowWhat::Databases { catalog } => self.show_databases(catalog.as_ref(), like).await,
            ShowWhat::Tables { database } => {
                let (catalog, database) = self.shown_database(database.as_ref()).await?;
                filtered("table name", self.catalogs.table_names(&catalog, &database).await?, like)
            }
            ShowWhat::Views { database } => {
                let (catalog, database) = self.shown_database(database.as_ref()).await?;
                filtered("view name", self.catalogs.view_names(&catalog, &database).await?, like)
            }
            ShowWhat::MaterializedTables { database } => {
                self.show_nothing("materialized table name", database.as_ref()).await
            }
            ShowWhat::Models { database } => self.show_nothing("model name", database.as_ref()).await,
            ShowWhat::Connections { database } => {
                self.show_nothing("connection name", database.as_ref()).await
            }
            ShowWhat::Functions { user_only, database } => {
                self.show_functions(*user_only, database.as_ref(), like).await
            }
            ShowWhat::Procedures { database } => self.show_procedures(database.as_ref(), like).await,
            ShowWhat::Modules { full: false } => text_table("module name", self.modules.used()),
            ShowWhat::Modules { full: true } => {
                let modules = self.modules.all();
                answer(vec![
                    AnswerColumn::texts("module name", modules.iter().map(|(name, _)| Some(*name))),
                    AnswerColumn::booleans("used", modules.iter().map(|(_, used)| *used)),
                ])
            }
            ShowWhat::Jars => text_table("jars", &self.jars),
            ShowWhat::Jobs => self.show_jobs(),
            ShowWhat::Columns(table) => self.show_columns(table, like).await,
            ShowWhat::Partitions { table, partition } => self.show_partitions(table, partition).await,
            ShowWhat::CreateTable(table) => self.show_create_table(table).await,
            ShowWhat::CreateView(view) => self.show_create_view(view).await,
            ShowWhat::CreateCatalog(catalog) => self.show_create_catalog(catalog),
            ShowWhat::CreateMaterializedTable(table) => Err(refused("materialized tables", table)),
            ShowWhat::CreateModel(model) => Err(refused("models", model)),
        }
    }

    /// Lists the databases of a catalog.
    async fn show_databases(
        &self,
        catalog: Option<&Spanned<String>>,
        like: Option<&LikePattern>,
    ) -> Result<StatementResult> {
        let name = catalog.map_or(self.catalogs.current_catalog(), |catalog| catalog.value.as_str());
        let names = self.catalogs.database_names(name).await;
        let names = names.map_err(|error| match catalog {
            Some(catalog) => error.at(catalog.span),
            None => error,
        })?;
        filtered("database name", names, like)
    }

    /// Returns the database that FROM names, which must exist, or the current one.
    async fn shown_database(&self, database: Option<&ObjectName>) -> Result<(String, String)> {
        let Some(name) = database else {
            return Ok((
                self.catalogs.current_catalog().to_owned(),
                self.catalogs.current_database().to_owned(),
            ));
        };
        let (catalog, database) = self.resolve_database(name)?;
        if self.catalogs.database(&catalog, &database).await?.is_none() {
            return Err(
                Error::not_found(format!("Database '{catalog}'.'{database}' doesn't exist.")).at(name.span)
            );
        }
        Ok((catalog, database))
    }

    /// Lists what there never is any of.
    async fn show_nothing(&self, column: &str, database: Option<&ObjectName>) -> Result<StatementResult> {
        self.shown_database(database).await?;
        text_table(column, Vec::<String>::new())
    }

    /// Lists the functions, built-in ones in small letters as the user's are.
    async fn show_functions(
        &self,
        user_only: bool,
        database: Option<&ObjectName>,
        like: Option<&LikePattern>,
    ) -> Result<StatementResult> {
        let (catalog, database) = self.shown_database(database).await?;
        let mut names = self.catalogs.functions().names(&catalog, &database);
        if !user_only && self.modules.used().iter().any(|module| module == "core") {
            names.extend(aggregate_names().map(str::to_lowercase));
            for function in FUNCTIONS {
                names.push(function.name().to_lowercase());
                names.extend(function.aliases().iter().map(|alias| alias.to_lowercase()));
            }
        }
        filtered("function name", names, like)
    }

    /// Lists the procedures of a catalog.
    async fn show_procedures(
        &self,
        database: Option<&ObjectName>,
        like: Option<&LikePattern>,
    ) -> Result<StatementResult> {
        let (catalog, _) = self.shown_database(database).await?;
        let Some(catalog) = self.catalogs.catalog(&catalog).await? else {
            return Err(Error::not_found(format!("Catalog {catalog} does not exist.")));
        };
        let names = catalog.procedures()?.into_iter().map(|procedure| procedure.name).collect();
        filtered("procedure name", names, like)
    }
}

/// Builds the error for a definition of something that cannot be created.
fn refused(what: &str, name: &ObjectName) -> Error {
    Error::unsupported(format!("{what} are not supported"))
        .at(name.span)
        .hint(format!("There is no '{}': nothing of this kind can be created.", name.parts.join(".")))
}
