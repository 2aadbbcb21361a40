//! The steps that make something last: each is told to `tracing` just before it is taken.
//!
//! A crash may come before any of them. A test that listens can end the process there, and see that what is found afterwards is
//! whole; nobody else listens.

use std::path::Path;

/// The target of the events that tell steps.
const DURABLE_STEP: &str = "lakehead::durable_step";

/// Tells a step on a file or folder: `create`, `write`, `sync`, `rename`, `link` or `remove`.
pub(crate) fn durable_step(step: &'static str, path: &Path) {
    tracing::trace!(target: DURABLE_STEP, step, path = %path.display());
}
