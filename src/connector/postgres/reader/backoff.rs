//! How long to wait before the next attempt at something that has failed and may not fail again.

use std::time::Duration;

use rand::Rng;

/// The first wait, and the longest.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// By what part of itself a wait varies, so that jobs which lost a server together do not come back together.
const JITTER: f64 = 0.2;

/// Waits that double.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
    count: u32,
}

impl Backoff {
    pub(super) fn new() -> Backoff {
        Backoff { next: WAITS.0, count: 0 }
    }

    /// Returns how often it has failed since the last success.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Notes a failure; returns how long to wait.
    pub(super) fn failed(&mut self) -> Duration {
        self.count += 1;
        let wait = self.next.mul_f64(1.0 + JITTER * rand::rng().random_range(-1.0..=1.0));
        self.next = (self.next * 2).min(WAITS.1);
        wait
    }

    /// Notes a success.
    pub(super) fn succeeded(&mut self) {
        *self = Backoff::new();
    }
}
