//! Counts failures and says whether and when a job starts again.

use std::collections::VecDeque;
use std::time::Duration;

use rand::Rng;
use tokio::time::Instant;

use super::settings::RestartStrategy;

/// The failures of a job so far.
#[derive(Debug)]
pub(super) struct Restarts {
    strategy: RestartStrategy,
    failures: VecDeque<Instant>,
    /// How many since the delay was last reset.
    count: u32,
}

impl Restarts {
    /// Starts counting.
    pub(super) fn new(strategy: RestartStrategy) -> Restarts {
        Restarts { strategy, failures: VecDeque::new(), count: 0 }
    }

    /// Takes a failure; returns after which delay the job starts again, or None if it does not.
    pub(super) fn next_delay(&mut self, now: Instant) -> Option<Duration> {
        let since_last = self.failures.back().map(|last| now.duration_since(*last));
        self.count += 1;
        let delay = match &self.strategy {
            RestartStrategy::None => None,
            RestartStrategy::FixedDelay { attempts, delay } => (self.count <= *attempts).then_some(*delay),
            RestartStrategy::FailureRate { failures_max, interval, delay } => {
                while self.failures.front().is_some_and(|first| now.duration_since(*first) > *interval) {
                    self.failures.pop_front();
                }
                (self.failures.len() < *failures_max as usize).then_some(*delay)
            }
            RestartStrategy::ExponentialDelay { initial, max, multiplier, reset_after, jitter, attempts } => {
                if since_last.is_some_and(|since| since > *reset_after) {
                    self.count = 1;
                    self.failures.clear();
                }
                let exponent = i32::try_from(self.count - 1).unwrap_or(i32::MAX);
                let delay = (initial.as_secs_f64() * multiplier.powi(exponent)).min(max.as_secs_f64());
                let jittered = delay * (1.0 + jitter * rand::rng().random_range(-1.0..=1.0));
                attempts
                    .is_none_or(|attempts| self.count <= attempts)
                    .then(|| Duration::from_secs_f64(jittered.clamp(0.0, max.as_secs_f64())))
            }
        };
        self.failures.push_back(now);
        if !matches!(self.strategy, RestartStrategy::FailureRate { .. }) {
            self.failures.truncate(0);
            self.failures.push_back(now);
        }
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(strategy: RestartStrategy, seconds: &[u64]) -> Vec<Option<u64>> {
        let mut restarts = Restarts::new(strategy);
        let start = Instant::now();
        let delay = |at: &u64| restarts.next_delay(start + Duration::from_secs(*at));
        seconds.iter().map(delay).map(|delay| delay.map(|delay| delay.as_secs())).collect()
    }

    #[test]
    fn a_fixed_delay_comes_a_number_of_times() {
        assert_eq!(delays(RestartStrategy::None, &[0]), [None]);
        let strategy = RestartStrategy::FixedDelay { attempts: 2, delay: Duration::from_secs(3) };
        assert_eq!(delays(strategy, &[0, 1, 2]), [Some(3), Some(3), None]);
    }

    #[test]
    fn a_failure_rate_forgets_what_is_older_than_its_interval() {
        let strategy = RestartStrategy::FailureRate {
            failures_max: 2,
            interval: Duration::from_secs(10),
            delay: Duration::from_secs(1),
        };
        assert_eq!(delays(strategy.clone(), &[0, 5, 12, 30]), [Some(1), Some(1), Some(1), Some(1)]);
        assert_eq!(delays(strategy, &[0, 5, 9]), [Some(1), Some(1), None]);
    }

    #[test]
    fn an_exponential_delay_grows_to_its_maximum_and_is_reset_after_a_quiet_time() {
        let strategy = RestartStrategy::ExponentialDelay {
            initial: Duration::from_secs(1),
            max: Duration::from_secs(8),
            multiplier: 2.0,
            reset_after: Duration::from_secs(100),
            jitter: 0.0,
            attempts: None,
        };
        let expected = [Some(1), Some(2), Some(4), Some(8), Some(8), Some(1)];
        assert_eq!(delays(strategy, &[0, 1, 2, 3, 4, 200]), expected);
    }
}
