//! Databases.

use super::super::{CreateDatabase, Statement};
use super::cursor::Parser;
use crate::error::Result;

impl Parser<'_> {
    /// Takes `DATABASE [IF NOT EXISTS] [catalog.]name [COMMENT 'c'] [WITH (…)]`.
    pub(super) fn create_database(&mut self) -> Result<Statement> {
        self.expect("DATABASE")?;
        let if_not_exists = self.if_not_exists();
        let name = self.object_name()?;
        let comment = self.comment()?;
        let options = self.with_options()?;
        Ok(Statement::CreateDatabase(CreateDatabase { name, if_not_exists, comment, options }))
    }

    /// Takes `[IF EXISTS] [catalog.]name [RESTRICT | CASCADE]`.
    pub(super) fn drop_database(&mut self) -> Result<Statement> {
        let if_exists = self.if_exists();
        let name = self.object_name()?;
        let cascade = self.accept_any(&["RESTRICT", "CASCADE"]) == Some(1);
        Ok(Statement::DropDatabase { name, if_exists, cascade })
    }

    /// Takes `[catalog.]name SET (…)`.
    pub(super) fn alter_database(&mut self) -> Result<Statement> {
        let name = self.object_name()?;
        self.expect("SET")?;
        Ok(Statement::AlterDatabase { name, options: self.options()? })
    }
}
