//! What a source or sink says of itself while it runs.

use std::fmt;
use std::sync::Arc;

/// Under which name a source says how many bytes of its server's log it has not read.
pub const LAG_BYTES: &str = "lag bytes";

/// Takes what a source or sink says of itself while it runs, for DESCRIBE JOB: names and values, in the order in which they are shown.
#[derive(Clone)]
pub struct OperatorStatus(Arc<dyn Fn(StatusValues) + Send + Sync>);

/// Names and values.
type StatusValues = Vec<(String, String)>;

impl OperatorStatus {
    /// Hands what is said to a function.
    pub fn new(take: impl Fn(StatusValues) + Send + Sync + 'static) -> OperatorStatus {
        OperatorStatus(Arc::new(take))
    }

    /// Says something new in the place of all that was said before.
    pub fn set(&self, values: StatusValues) {
        (self.0)(values);
    }
}

impl Default for OperatorStatus {
    /// Returns one that nobody listens to.
    fn default() -> OperatorStatus {
        OperatorStatus::new(|_| {})
    }
}

impl fmt::Debug for OperatorStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OperatorStatus")
    }
}
