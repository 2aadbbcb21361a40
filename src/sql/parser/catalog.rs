//! Catalogs, and the modules and jars that stand beside them.

use super::super::{AlterOptions, CreateCatalog, Statement};
use super::cursor::Parser;
use crate::error::{Error, Result};

impl Parser<'_> {
    /// Takes `CATALOG [IF NOT EXISTS] name [COMMENT 'c'] [WITH (…)]`.
    pub(super) fn create_catalog(&mut self) -> Result<Statement> {
        self.expect("CATALOG")?;
        let if_not_exists = self.if_not_exists();
        let name = self.name()?;
        let comment = self.comment()?;
        let options = self.with_options()?;
        Ok(Statement::CreateCatalog(CreateCatalog { name, if_not_exists, comment, options }))
    }

    /// Takes `[IF EXISTS] name` of a catalog.
    pub(super) fn drop_catalog(&mut self) -> Result<Statement> {
        let if_exists = self.if_exists();
        Ok(Statement::DropCatalog { name: self.name()?, if_exists })
    }

    /// Takes `name {SET (…) | RESET (…) | COMMENT 'c'}`.
    pub(super) fn alter_catalog(&mut self) -> Result<Statement> {
        let name = self.name()?;
        let change = match self.expect_any(&["SET", "RESET", "COMMENT"])? {
            0 => AlterOptions::Set(self.options()?),
            1 => AlterOptions::Reset(self.keys()?),
            _ => AlterOptions::Comment(self.text()?.value),
        };
        Ok(Statement::AlterCatalog { name, change })
    }

    /// Takes `LOAD MODULE name [WITH (…)]`.
    pub(super) fn load_module(&mut self) -> Result<Statement> {
        self.expect_all(&["LOAD", "MODULE"])?;
        let name = self.name()?;
        Ok(Statement::LoadModule { name, options: self.with_options()? })
    }

    /// Takes `UNLOAD MODULE name`.
    pub(super) fn unload_module(&mut self) -> Result<Statement> {
        self.expect_all(&["UNLOAD", "MODULE"])?;
        Ok(Statement::UnloadModule(self.name()?))
    }

    /// Takes `ADD JAR 'path'`.
    pub(super) fn add_jar(&mut self) -> Result<Statement> {
        self.expect_all(&["ADD", "JAR"])?;
        Ok(Statement::AddJar(self.text()?))
    }

    /// Takes `REMOVE JAR 'path'`.
    pub(super) fn remove_jar(&mut self) -> Result<Statement> {
        self.expect_all(&["REMOVE", "JAR"])?;
        Ok(Statement::RemoveJar(self.text()?))
    }

    /// Takes `STOP JOB 'id' [WITH SAVEPOINT] [WITH DRAIN]`.
    pub(super) fn stop_job(&mut self) -> Result<Statement> {
        self.expect_all(&["STOP", "JOB"])?;
        let job = self.text()?;
        let with_savepoint = self.accept_all(&["WITH", "SAVEPOINT"]);
        let start = self.span();
        let with_drain = self.accept_all(&["WITH", "DRAIN"]);
        if with_drain && !with_savepoint {
            return Err(Error::syntax("WITH DRAIN could only be used after WITH SAVEPOINT.")
                .at(self.span_from(start)));
        }
        Ok(Statement::StopJob { job, with_savepoint, with_drain })
    }
}
