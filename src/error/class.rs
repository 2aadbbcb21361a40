//! The exception names of Flink that users search for in their logs.

use super::ErrorKind;

/// The class that Flink names in front of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlinkClass(&'static str);

/// Declares the classes as constants; the text is what the client prints.
macro_rules! classes {
    ($($name:ident = $text:literal;)*) => {
        impl FlinkClass {
            $(#[doc = concat!("`", $text, "`.")] pub const $name: FlinkClass = FlinkClass($text);)*
        }
    };
}

classes! {
    PARSE = "org.apache.flink.sql.parser.impl.ParseException";
    PARSER_VALIDATE = "org.apache.flink.sql.parser.error.SqlValidateException";
    CALCITE = "org.apache.calcite.runtime.CalciteException";
    SQL_VALIDATOR = "org.apache.calcite.sql.validate.SqlValidatorException";
    VALIDATION = "org.apache.flink.table.api.ValidationException";
    TABLE = "org.apache.flink.table.api.TableException";
    TABLE_RUNTIME = "org.apache.flink.table.api.TableRuntimeException";
    CODE_GEN = "org.apache.flink.table.planner.codegen.CodeGenException";
    ENFORCER = "org.apache.flink.table.runtime.operators.sink.constraint.EnforcerException";
    CATALOG = "org.apache.flink.table.catalog.exceptions.CatalogException";
    TABLE_ALREADY_EXIST = "org.apache.flink.table.catalog.exceptions.TableAlreadyExistException";
    TABLE_NOT_EXIST = "org.apache.flink.table.catalog.exceptions.TableNotExistException";
    DATABASE_ALREADY_EXIST = "org.apache.flink.table.catalog.exceptions.DatabaseAlreadyExistException";
    DATABASE_NOT_EXIST = "org.apache.flink.table.catalog.exceptions.DatabaseNotExistException";
    DATABASE_NOT_EMPTY = "org.apache.flink.table.catalog.exceptions.DatabaseNotEmptyException";
    TABLE_NOT_PARTITIONED = "org.apache.flink.table.catalog.exceptions.TableNotPartitionedException";
    FUNCTION_ALREADY_EXIST = "org.apache.flink.table.catalog.exceptions.FunctionAlreadyExistException";
    FUNCTION_NOT_EXIST = "org.apache.flink.table.catalog.exceptions.FunctionNotExistException";
    CLIENT_EXECUTION = "org.apache.flink.table.client.gateway.SqlExecutionException";
    GATEWAY_EXECUTION = "org.apache.flink.table.gateway.service.utils.SqlExecutionException";
    JOB_NOT_FOUND = "org.apache.flink.runtime.messages.FlinkJobNotFoundException";
    ICEBERG_ALREADY_EXISTS = "org.apache.iceberg.exceptions.AlreadyExistsException";
    ICEBERG_COMMIT_FAILED = "org.apache.iceberg.exceptions.CommitFailedException";
    ICEBERG_COMMIT_STATE_UNKNOWN = "org.apache.iceberg.exceptions.CommitStateUnknownException";
    ICEBERG_NAMESPACE_NOT_EMPTY = "org.apache.iceberg.exceptions.NamespaceNotEmptyException";
    ICEBERG_NO_SUCH_NAMESPACE = "org.apache.iceberg.exceptions.NoSuchNamespaceException";
    ICEBERG_NO_SUCH_TABLE = "org.apache.iceberg.exceptions.NoSuchTableException";
    ICEBERG_NOT_FOUND = "org.apache.iceberg.exceptions.NotFoundException";
    ICEBERG_VALIDATION = "org.apache.iceberg.exceptions.ValidationException";
    UNSUPPORTED_OPERATION = "java.lang.UnsupportedOperationException";
    UNSUPPORTED_TEMPORAL = "java.time.temporal.UnsupportedTemporalTypeException";
    ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException";
    NUMBER_FORMAT = "java.lang.NumberFormatException";
    ILLEGAL_STATE = "java.lang.IllegalStateException";
    ARITHMETIC = "java.lang.ArithmeticException";
    DATE_TIME = "java.time.DateTimeException";
    DATE_TIME_PARSE = "java.time.format.DateTimeParseException";
    FILE_NOT_FOUND = "java.io.FileNotFoundException";
    UNKNOWN_HOST = "java.net.UnknownHostException";
    IO = "java.io.IOException";
    NO_SUCH_METHOD = "java.lang.NoSuchMethodException";
    CLASS_NOT_FOUND = "java.lang.ClassNotFoundException";
    INTERRUPTED = "java.lang.InterruptedException";
    RUNTIME = "java.lang.RuntimeException";
}

impl FlinkClass {
    /// Returns the class for an error that names none.
    pub(super) const fn of_kind(kind: ErrorKind) -> FlinkClass {
        match kind {
            ErrorKind::Syntax => FlinkClass::PARSE,
            ErrorKind::Validation | ErrorKind::NotFound | ErrorKind::AlreadyExists => FlinkClass::VALIDATION,
            ErrorKind::Unsupported => FlinkClass::UNSUPPORTED_OPERATION,
            ErrorKind::Unavailable | ErrorKind::Rejected | ErrorKind::Data => FlinkClass::IO,
            ErrorKind::Interrupted => FlinkClass::INTERRUPTED,
            ErrorKind::State | ErrorKind::Internal => FlinkClass::RUNTIME,
        }
    }

    /// Returns the class name.
    pub const fn name(self) -> &'static str {
        self.0
    }
}
