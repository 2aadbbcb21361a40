//! Errors of the crate `iceberg` as ours, and ours on their way through it.

use std::fmt;
use std::sync::Mutex;

use crate::error::{Error, ErrorKind, FlinkClass};

/// An error of ours inside one of the crate's: whoever gets that back takes it out whole, with hint, class and cause.
#[derive(Debug)]
struct Carried {
    message: String,
    error: Mutex<Option<Error>>,
}

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Carried {}

/// Wraps an error of ours, because the crate's traits ask for one of theirs.
pub(super) fn into_iceberg(error: Error) -> iceberg::Error {
    let class = error.flink_class();
    let kind = match error.kind() {
        _ if class == FlinkClass::ICEBERG_COMMIT_FAILED => iceberg::ErrorKind::CatalogCommitConflicts,
        ErrorKind::NotFound if class == FlinkClass::ICEBERG_NO_SUCH_NAMESPACE => {
            iceberg::ErrorKind::NamespaceNotFound
        }
        ErrorKind::NotFound if class == FlinkClass::ICEBERG_NO_SUCH_TABLE => {
            iceberg::ErrorKind::TableNotFound
        }
        ErrorKind::AlreadyExists => iceberg::ErrorKind::TableAlreadyExists,
        ErrorKind::Unsupported => iceberg::ErrorKind::FeatureUnsupported,
        ErrorKind::Validation => iceberg::ErrorKind::PreconditionFailed,
        ErrorKind::Data => iceberg::ErrorKind::DataInvalid,
        _ => iceberg::ErrorKind::Unexpected,
    };
    let message = error.message().to_owned();
    let carried = Carried { message: message.clone(), error: Mutex::new(Some(error)) };
    iceberg::Error::new(kind, message)
        .with_retryable(kind == iceberg::ErrorKind::CatalogCommitConflicts)
        .with_source(carried)
}

/// Converts an error of the crate; one that `into_iceberg` has made becomes again what it was.
pub(super) fn from_iceberg(error: iceberg::Error) -> Error {
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        let carried = inner.downcast_ref::<Carried>();
        if let Some(own) = carried.and_then(|carried| carried.error.lock().ok()?.take()) {
            return own;
        }
        cause = inner.source();
    }
    let kind = match error.kind() {
        iceberg::ErrorKind::TableNotFound | iceberg::ErrorKind::NamespaceNotFound => ErrorKind::NotFound,
        iceberg::ErrorKind::TableAlreadyExists | iceberg::ErrorKind::NamespaceAlreadyExists => {
            ErrorKind::AlreadyExists
        }
        iceberg::ErrorKind::FeatureUnsupported => ErrorKind::Unsupported,
        iceberg::ErrorKind::DataInvalid => ErrorKind::Data,
        iceberg::ErrorKind::PreconditionFailed => ErrorKind::Validation,
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, error.message().to_owned()).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_ours_comes_back_whole_through_the_crate() {
        let error =
            Error::rejected("no").hint("Ask.").class(FlinkClass::IO).caused_by(std::io::Error::other("x"));
        let wrapped =
            iceberg::Error::new(iceberg::ErrorKind::DataInvalid, "outer").with_source(into_iceberg(error));
        let back = from_iceberg(wrapped);
        assert_eq!(
            (back.kind(), back.message(), back.hint_text()),
            (ErrorKind::Rejected, "no", Some("Ask."))
        );
        assert!(std::error::Error::source(&back).is_some());
    }
}
