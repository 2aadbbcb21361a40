//! The one match over all statements.

use super::{Session, StatementResult};
use crate::error::Result;
use crate::sql::Statement;

impl Session {
    /// Executes a statement. `text` is what it was parsed from; places in errors point into it.
    ///
    /// # Errors
    /// What the statement asks for cannot be done; the session goes on.
    #[allow(
        clippy::too_many_lines,
        reason = "one line per statement; splitting the match would hide a missing one"
    )]
    pub async fn execute(&mut self, statement: &Statement, text: &str) -> Result<StatementResult> {
        if let Some(result) = self.collect_in_statement_set(statement, text).await? {
            return Ok(result);
        }
        match statement {
            Statement::Help => Ok(StatementResult::Help),
            Statement::Quit => Ok(StatementResult::Exit),
            Statement::Clear => Ok(StatementResult::Clear),
            Statement::Set(command) => self.execute_set(command),
            Statement::Reset(key) => self.execute_reset(key.as_ref()),

            Statement::Query(query) => self.execute_query(query).await,
            Statement::Insert(insert) => self.execute_insert(insert).await,
            Statement::BeginStatementSet => self.begin_statement_set(),
            Statement::EndStatementSet => self.end_statement_set().await,
            Statement::StatementSet(statements) => self.execute_statement_set(statements).await,
            Statement::Update(update) => self.change_rows("UPDATE", &update.target).await,
            Statement::Delete(delete) => self.change_rows("DELETE", &delete.target).await,
            Statement::Truncate(table) => self.truncate(table).await,
            Statement::Explain(explain) => self.execute_explain(explain).await,

            Statement::CreateCatalog(create) => self.create_catalog(create).await,
            Statement::DropCatalog { name, if_exists } => self.drop_catalog(name, *if_exists).await,
            Statement::AlterCatalog { name, change } => self.alter_catalog(name, change).await,
            Statement::UseCatalog(name) => self.use_catalog(name).await,

            Statement::CreateDatabase(create) => self.create_database(create).await,
            Statement::DropDatabase { name, if_exists, cascade } => {
                self.drop_database(name, *if_exists, *cascade).await
            }
            Statement::AlterDatabase { name, options } => self.alter_database(name, options).await,
            Statement::UseDatabase(name) => self.use_database(name).await,

            Statement::CreateTable(create) => self.create_table(create, text).await,
            Statement::DropTable { name, if_exists, temporary } => {
                self.drop_object(name, false, *if_exists, *temporary).await
            }
            Statement::AlterTable(alter) => self.alter_table(alter, text).await,

            Statement::CreateView(create) => self.create_view(create).await,
            Statement::DropView { name, if_exists, temporary } => {
                self.drop_object(name, true, *if_exists, *temporary).await
            }
            Statement::AlterView { name, change } => self.alter_view(name, change).await,

            Statement::CreateFunction(create) => self.create_function(create),
            Statement::DropFunction { name, if_exists, temporary, system } => {
                self.drop_function(name, *if_exists, *temporary, *system)
            }
            Statement::AlterFunction(alter) => self.alter_function(alter),
            Statement::LoadModule { name, options } => self.load_module(name, options),
            Statement::UnloadModule(name) => self.unload_module(name),
            Statement::UseModules(names) => self.use_modules(names),
            Statement::Call(call) => self.call(call).await,

            Statement::AddJar(path) => self.add_jar(path),
            Statement::RemoveJar(path) => self.remove_jar(path),
            Statement::StopJob { job, with_savepoint, with_drain } => {
                self.stop_job(job, *with_savepoint, *with_drain).await
            }

            Statement::Show(show) => self.show(show).await,
            Statement::Describe(describe) => self.describe(describe).await,
            Statement::Analyze(analyze) => self.analyze(&analyze.table).await,

            Statement::CompilePlan(compile) => self.compile_plan(compile),
            Statement::ExecutePlan(file) => self.execute_plan(file),
            Statement::MaterializedTable(statement) => self.materialized_table(statement),
            Statement::Model(statement) => self.model(statement),
        }
    }
}
