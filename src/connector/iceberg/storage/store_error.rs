//! Errors of object stores as ours: named by location, and of the kind of what lies below.

use std::io;

use crate::error::{Error, ErrorKind, FlinkClass};

/// Converts the error of an action, as `read`, on a location.
pub(in crate::connector::iceberg) fn store_error(
    action: &str,
    location: &str,
    error: object_store::Error,
) -> Error {
    if matches!(error, object_store::Error::NotFound { .. }) {
        let missing = Error::not_found(format!("cannot {action} '{location}': it does not exist"));
        return missing.class(FlinkClass::ICEBERG_NOT_FOUND).caused_by(error);
    }
    let system = system_error(&error);
    let kind = match (&error, system.map(io::Error::kind)) {
        (object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. }, _)
        | (_, Some(io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)) => {
            ErrorKind::Rejected
        }
        (object_store::Error::AlreadyExists { .. }, _) => ErrorKind::AlreadyExists,
        (object_store::Error::NotSupported { .. } | object_store::Error::NotImplemented { .. }, _) => {
            ErrorKind::Unsupported
        }
        (object_store::Error::InvalidPath { .. }, _) => ErrorKind::Validation,
        _ => ErrorKind::Unavailable,
    };
    let reason = system.map_or_else(|| error.to_string(), io::Error::to_string);
    let failed = Error::new(kind, format!("cannot {action} '{location}': {reason}")).class(FlinkClass::IO);
    let failed = match system.map(io::Error::kind) {
        Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
            failed.hint("Make room there; a job goes on from its last checkpoint.")
        }
        Some(io::ErrorKind::PermissionDenied) => {
            failed.hint("Give the user who runs this the right to read and write there.")
        }
        _ => failed,
    };
    failed.caused_by(error)
}

/// Returns the operating system's error behind an error: the innermost, as writers wrap one in another.
fn system_error(error: &object_store::Error) -> Option<&io::Error> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut found = None;
    while let Some(error) = cause {
        found = error.downcast_ref::<io::Error>().or(found);
        cause = error.source();
    }
    found
}
