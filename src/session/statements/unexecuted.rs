//! Statements that are read and then refused by name, with what to do instead.

use crate::error::{Error, Result};
use crate::session::{Session, StatementResult};
use crate::sql::{Call, CompilePlan, Spanned, Unexecuted};

impl Session {
    /// CALL.
    pub(in crate::session) async fn call(&self, call: &Call) -> Result<StatementResult> {
        let identifier = self.resolve(&call.name)?;
        let catalog = self.catalogs.catalog(&identifier.catalog).await?;
        let catalog = catalog
            .ok_or_else(|| Error::not_found(format!("Catalog {} does not exist.", identifier.catalog)))?;
        if catalog.procedures().is_err() {
            let message = format!("getProcedure is not implemented for {}.", catalog.class_name());
            return Err(Error::unsupported(message).at(call.name.span));
        }
        Err(Error::unsupported(format!("procedure '{identifier}' cannot be called yet")).at(call.name.span))
    }

    /// COMPILE PLAN.
    pub(in crate::session) fn compile_plan(&self, _compile: &CompilePlan) -> Result<StatementResult> {
        Err(Error::unsupported("COMPILE PLAN is not supported").hint(
            "Plans are not stored: run the INSERT itself, its state is found again by its checkpoints.",
        ))
    }

    /// EXECUTE PLAN.
    pub(in crate::session) fn execute_plan(&self, file: &Spanned<String>) -> Result<StatementResult> {
        Err(Error::unsupported("EXECUTE PLAN is not supported")
            .at(file.span)
            .hint("A compiled plan is a plan of Flink's operators: run the INSERT that it was made from."))
    }

    /// Materialized tables.
    pub(in crate::session) fn materialized_table(&self, statement: &Unexecuted) -> Result<StatementResult> {
        Err(Error::unsupported(format!("{} is not supported", statement.keywords)).at(statement.name.span).hint(
            "Create a table and fill it with a continuous INSERT INTO … SELECT, which keeps it fresh all the time.",
        ))
    }

    /// Models and connections.
    pub(in crate::session) fn model(&self, statement: &Unexecuted) -> Result<StatementResult> {
        Err(Error::unsupported(format!("{} is not supported", statement.keywords))
            .at(statement.name.span)
            .hint("Models and connections cannot be created here."))
    }
}
