//! Waiting for what another process does: asking again until the answer is the expected one, up to a deadline.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// How long anything may take that a test waits for.
pub(crate) const DEADLINE: Duration = Duration::from_secs(90);

/// How long after an answer the next question is asked.
const PAUSE: Duration = Duration::from_millis(20);

/// Asks until there is an answer. What stands in its place so far is told when the deadline passes.
///
/// # Panics
/// There is none in time.
#[track_caller]
pub(crate) fn wait_until<T>(what: impl Display, ask: impl FnMut() -> Result<T, String>) -> T {
    wait_until_within(DEADLINE, ask).unwrap_or_else(|last| panic!("waited in vain until {what}: {last}"))
}

/// Asks until there is an answer, or gives back what stood in its place at last.
pub(crate) fn wait_until_within<T>(
    time: Duration,
    mut ask: impl FnMut() -> Result<T, String>,
) -> Result<T, String> {
    let deadline = Instant::now() + time;
    loop {
        match ask() {
            Err(_) if Instant::now() < deadline => std::thread::park_timeout(PAUSE),
            answer => return answer,
        }
    }
}
