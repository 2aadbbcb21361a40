//! How often a commit is tried again, and how long it waits in between: the table's `commit.retry.*` properties.

use std::str::FromStr;
use std::time::{Duration, Instant};

use iceberg::spec::TableMetadata;
use rand::Rng;

use crate::error::{Error, Result};

/// Flink differs: Iceberg's default is 4 retries from 100 ms on, which two busy jobs on one table use up.
const RETRIES: u32 = 50;
const MIN_WAIT_MS: u64 = 50;
const MAX_WAIT_MS: u64 = 5_000;
const TOTAL_TIMEOUT_MS: u64 = 30 * 60 * 1_000;

/// Bounds of trying again.
#[derive(Debug, Clone)]
pub(super) struct RetryPolicy {
    retries: u32,
    min_wait: Duration,
    max_wait: Duration,
    total: Duration,
}

impl RetryPolicy {
    /// Reads the properties of a table.
    ///
    /// # Errors
    /// One of them is no number.
    pub(super) fn of(metadata: &TableMetadata) -> Result<RetryPolicy> {
        let millis = |key, default| number(metadata, key, default).map(Duration::from_millis);
        Ok(RetryPolicy {
            retries: number(metadata, "commit.retry.num-retries", RETRIES)?,
            min_wait: millis("commit.retry.min-wait-ms", MIN_WAIT_MS)?,
            max_wait: millis("commit.retry.max-wait-ms", MAX_WAIT_MS)?,
            total: millis("commit.retry.total-timeout-ms", TOTAL_TIMEOUT_MS)?,
        })
    }

    /// Returns how long to wait before the next attempt, after `failures` that began at `started`; none if that was the last one.
    ///
    /// Half of the wait is random, so that writers that collided do not collide again.
    pub(super) fn wait(&self, failures: u32, started: Instant) -> Option<Duration> {
        if failures > self.retries || started.elapsed() >= self.total {
            return None;
        }
        let doubled = self.min_wait.saturating_mul(1 << failures.saturating_sub(1).min(16));
        let longest = doubled.min(self.max_wait);
        Some(longest.mul_f64(rand::rng().random_range(0.5..=1.0)))
    }
}

/// Returns a table property that is a number.
///
/// # Errors
/// It is none.
pub(super) fn number<T: FromStr>(metadata: &TableMetadata, key: &str, default: T) -> Result<T> {
    let Some(text) = metadata.properties().get(key) else { return Ok(default) };
    text.trim().parse().map_err(|_| {
        Error::validation(format!("table property '{key}' is '{text}', which is no number"))
            .hint(format!("Set it with ALTER TABLE … SET ('{key}' = '…'), or remove it with RESET."))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_longest_and_end_with_the_retries() {
        let millis = Duration::from_millis;
        let policy =
            RetryPolicy { retries: 12, min_wait: millis(10), max_wait: millis(80), total: millis(60_000) };
        let started = Instant::now();
        for (failures, longest) in [(1, 10), (2, 20), (3, 40), (4, 80), (5, 80), (12, 80)] {
            let wait = policy.wait(failures, started).unwrap();
            assert!(wait >= millis(longest / 2) && wait <= millis(longest), "{failures}: {wait:?}");
        }
        assert_eq!(policy.wait(13, started), None);
    }

    #[test]
    fn no_wait_begins_after_the_total_time() {
        let policy = RetryPolicy {
            retries: 100,
            min_wait: Duration::ZERO,
            max_wait: Duration::ZERO,
            total: Duration::ZERO,
        };
        assert_eq!(policy.wait(1, Instant::now()), None);
    }
}
