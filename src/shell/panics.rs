//! Bugs of ours: a panic becomes an error that asks for a report, and the shell goes on.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, PoisonError};

use futures::FutureExt;

use crate::error::{Error, Result};

/// Where the last panic happened; the payload that unwinding carries, often to another thread, does not say.
static PLACE: Mutex<Option<String>> = Mutex::new(None);

/// Makes panics silent: they are logged, and whoever catches one prints it.
pub(crate) fn install_hook() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string);
        tracing::error!("{info}");
        tracing::debug!("{}", std::backtrace::Backtrace::force_capture());
        *PLACE.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }));
}

/// Runs a synchronous piece of work; a panic in it is an internal error.
pub(crate) fn catch<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| Err(to_error(payload.as_ref())))
}

/// Awaits a future; a panic in it is an internal error.
pub(crate) async fn catch_async<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|payload| Err(to_error(payload.as_ref())))
}

/// Makes an error of what a panic carries.
pub(crate) fn to_error(payload: &(dyn Any + Send)) -> Error {
    let message = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned());
    let place = PLACE.lock().unwrap_or_else(PoisonError::into_inner).take();
    let place = place.map_or(String::new(), |place| format!(" ({place})"));
    Error::internal(format!("internal error: {message}{place}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_panic_becomes_an_internal_error() {
        let error = catch::<()>(|| panic!("index 3 is out of range")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(error.message().starts_with("internal error: index 3 is out of range"));
        let error = futures::executor::block_on(catch_async::<()>(async { panic!("x") })).unwrap_err();
        assert!(error.message().starts_with("internal error: x"));
    }
}
