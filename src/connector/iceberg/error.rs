//! The crate's errors as ours: what is missing or there already, what is damaged, what cannot be reached.

use crate::error::{Error, ErrorKind};

/// Converts an error of the crate `iceberg`.
pub(super) fn from_iceberg(error: iceberg::Error) -> Error {
    let kind = match error.kind() {
        iceberg::ErrorKind::TableNotFound | iceberg::ErrorKind::NamespaceNotFound => ErrorKind::NotFound,
        iceberg::ErrorKind::TableAlreadyExists | iceberg::ErrorKind::NamespaceAlreadyExists => {
            ErrorKind::AlreadyExists
        }
        iceberg::ErrorKind::FeatureUnsupported => ErrorKind::Unsupported,
        iceberg::ErrorKind::DataInvalid => ErrorKind::Data,
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, error.message().to_owned()).caused_by(error)
}
