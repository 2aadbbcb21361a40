//! Foreign errors become ours: which kind they are, and our own error found again inside DataFusion's wrapping.

use arrow::error::ArrowError;
use datafusion::error::DataFusionError;

use super::{Error, ErrorKind, FlinkClass};

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Error {
        match error {
            DataFusionError::External(inner) => match inner.downcast::<Error>() {
                Ok(own) => *own,
                Err(inner) => match inner.downcast::<DataFusionError>() {
                    Ok(nested) => Error::from(*nested),
                    Err(inner) => Error::internal(inner.to_string()).caused_by(inner),
                },
            },
            DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => Error::from(*inner),
            DataFusionError::Shared(inner) => shared(&inner),
            DataFusionError::ArrowError(inner, _) => Error::from(*inner),
            DataFusionError::IoError(inner) => Error::from(inner),
            DataFusionError::ResourcesExhausted(message) => Error::new(ErrorKind::Unavailable, message)
                .hint("The query needs more memory than it may use."),
            DataFusionError::NotImplemented(message) => Error::unsupported(message).class(FlinkClass::TABLE),
            other => Error::internal(other.strip_backtrace()).caused_by(other),
        }
    }
}

/// Makes an error of one that several consumers share and that therefore cannot be taken apart.
fn shared(error: &DataFusionError) -> Error {
    if let Some(own) = Error::below(error) {
        return own;
    }
    let unbuilt = chain(error).find_map(|cause| match cause.downcast_ref::<ArrowError>() {
        Some(ArrowError::NotYetImplemented(message)) => Some(message),
        _ => None,
    });
    unbuilt.map_or_else(|| Error::internal(error.strip_backtrace()), |message| not_yet(message))
}

/// Returns an error and its causes.
fn chain<'e>(
    error: &'e (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'e (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| error.source())
}

impl Error {
    /// Returns a copy of the error of ours that others' stand above, if there is one.
    pub(crate) fn below(error: &(dyn std::error::Error + 'static)) -> Option<Error> {
        chain(error).find_map(|cause| cause.downcast_ref::<Error>()).map(Error::duplicate)
    }

    /// Copies all but the cause, which only the original can own.
    pub(crate) fn duplicate(&self) -> Error {
        let mut copy = Error::new(self.kind(), self.message()).class(self.flink_class());
        copy.0.span = self.span();
        copy.0.hint = self.hint_text().map(str::to_owned);
        copy
    }
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Error {
        match error {
            ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
                Ok(own) => *own,
                Err(inner) => match inner.downcast::<DataFusionError>() {
                    Ok(nested) => Error::from(*nested),
                    Err(inner) => Error::internal(inner.to_string()).caused_by(inner),
                },
            },
            ArrowError::DivideByZero => Error::data("/ by zero").class(FlinkClass::ARITHMETIC),
            ArrowError::ArithmeticOverflow(message) => Error::data(message).class(FlinkClass::ARITHMETIC),
            ArrowError::CastError(message)
            | ArrowError::ParseError(message)
            | ArrowError::ComputeError(message) => Error::data(message),
            ArrowError::IoError(message, inner) => {
                Error::new(ErrorKind::Unavailable, message).caused_by(inner)
            }
            ArrowError::NotYetImplemented(message) => not_yet(&message),
            other => Error::internal(other.to_string()).caused_by(other),
        }
    }
}

/// Words what Arrow does not do; of comparing maps it tells with a dump of its types.
fn not_yet(message: &str) -> Error {
    if message.starts_with("Row format support") {
        return Error::unsupported(
            "grouping, sorting or comparing rows by a MAP in batch mode is not supported yet",
        )
        .hint("Take single values of it, such as m['key'], or run the query in streaming mode.");
    }
    Error::unsupported(message)
}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> DataFusionError {
        DataFusionError::External(Box::new(error))
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        let (kind, class) = match error.kind() {
            std::io::ErrorKind::NotFound => (ErrorKind::NotFound, FlinkClass::FILE_NOT_FOUND),
            std::io::ErrorKind::PermissionDenied => (ErrorKind::Rejected, FlinkClass::IO),
            std::io::ErrorKind::Interrupted => (ErrorKind::Interrupted, FlinkClass::INTERRUPTED),
            _ => (ErrorKind::Unavailable, FlinkClass::IO),
        };
        Error::new(kind, error.to_string()).class(class).caused_by(error)
    }
}
