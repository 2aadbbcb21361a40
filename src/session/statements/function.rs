//! CREATE, ALTER and DROP of functions. They are stored and listed; JVM classes cannot be loaded, so calling one fails.

use crate::catalog::CatalogFunction;
use crate::error::{Error, FlinkClass, Result};
use crate::session::{Session, StatementResult};
use crate::sql::{CreateFunction, ObjectName};

/// The base classes of Flink's functions, which are abstract.
const BASE_CLASSES: &[&str] = &[
    "AggregateFunction",
    "AsyncScalarFunction",
    "AsyncTableFunction",
    "FunctionDefinition",
    "ProcessTableFunction",
    "ScalarFunction",
    "TableAggregateFunction",
    "TableFunction",
    "UserDefinedFunction",
];

/// Builds the error for a class that cannot be loaded because there is no JVM.
fn class_not_found(class: &str) -> Error {
    let base =
        class.strip_prefix("org.apache.flink.table.functions.").filter(|name| BASE_CLASSES.contains(name));
    let error = match base {
        Some(_) => Error::validation(format!(
            "Function class '{class}' is not a proper class. It is either abstract, an interface, or a primitive type."
        )),
        None => Error::unsupported(class).class(FlinkClass::CLASS_NOT_FOUND),
    };
    error.hint("Functions of the JVM cannot be run here; use the built-in functions or a view.")
}

/// Reads the definition of a function.
fn definition(create: &CreateFunction) -> CatalogFunction {
    CatalogFunction {
        class_name: create.class_name.clone(),
        language: create.language.clone().unwrap_or_else(|| "JAVA".to_owned()),
        resources: create.resources.iter().map(|(_, path)| path.clone()).collect(),
    }
}

impl Session {
    /// Creates a function. Flink loads the class of a temporary one at once, and so it fails at once here too.
    pub(in crate::session) fn create_function(&mut self, create: &CreateFunction) -> Result<StatementResult> {
        if create.temporary {
            return Err(class_not_found(&create.class_name).at(create.name.span));
        }
        let identifier = self.resolve(&create.name)?;
        let created =
            self.catalogs.functions_mut().create(&identifier, definition(create), create.if_exists_clause);
        created.map_err(|error| error.at(create.name.span))?;
        Ok(StatementResult::Done)
    }

    /// Replaces a function.
    pub(in crate::session) fn alter_function(&mut self, alter: &CreateFunction) -> Result<StatementResult> {
        if alter.temporary {
            let kind = if alter.system {
                "Alter temporary system function is not supported"
            } else {
                "Alter temporary catalog function is not supported"
            };
            return Err(Error::validation(kind).at(alter.name.span));
        }
        let identifier = self.resolve(&alter.name)?;
        let altered =
            self.catalogs.functions_mut().alter(&identifier, definition(alter), alter.if_exists_clause);
        altered.map_err(|error| error.at(alter.name.span))?;
        Ok(StatementResult::Done)
    }

    /// Drops a function.
    pub(in crate::session) fn drop_function(
        &mut self,
        name: &ObjectName,
        if_exists: bool,
        temporary: bool,
        system: bool,
    ) -> Result<StatementResult> {
        let dropped = if system {
            let [function] = name.parts.as_slice() else {
                return Err(Error::validation("a system function has a name of one part").at(name.span));
            };
            self.catalogs.functions_mut().drop_system(function, if_exists)
        } else {
            let identifier = self.resolve(name)?;
            if temporary {
                self.catalogs.functions_mut().drop_temporary(&identifier, if_exists)
            } else {
                self.catalogs.functions_mut().drop(&identifier, if_exists)
            }
        };
        dropped.map_err(|error| error.at(name.span))?;
        Ok(StatementResult::Done)
    }
}
