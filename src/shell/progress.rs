//! A line for every job that runs: how fast it reads, and when it was last checkpointed.

use std::collections::HashMap;
use std::time::Instant;

use chrono::Utc;

use crate::session::{JobId, JobProgress};

/// Remembers how far jobs were when they were last shown.
#[derive(Debug)]
pub(crate) struct ProgressLines {
    since: Instant,
    rows: HashMap<JobId, u64>,
}

impl ProgressLines {
    /// Starts to measure.
    pub(crate) fn new(jobs: &[JobProgress], now: Instant) -> ProgressLines {
        ProgressLines { since: now, rows: jobs.iter().map(|job| (job.id, job.rows)).collect() }
    }

    /// Returns a line for each job.
    pub(crate) fn lines(&mut self, jobs: &[JobProgress], now: Instant) -> Vec<String> {
        let seconds = now.duration_since(self.since).as_secs_f64().max(0.001);
        self.since = now;
        jobs.iter().map(|job| self.line(job, seconds)).collect()
    }

    fn line(&mut self, job: &JobProgress, seconds: f64) -> String {
        let before = self.rows.insert(job.id, job.rows).unwrap_or(0);
        let rate = job.rows.saturating_sub(before) as f64 / seconds;
        let checkpoint = match job.last_checkpoint {
            Some((number, time)) => {
                format!("checkpoint {number} {} s ago", (Utc::now() - time).num_seconds().max(0))
            }
            None => "no checkpoint yet".to_owned(),
        };
        // A server writes a little all the time.
        let lag = job.lag_bytes.map(|bytes| bytes >> 20).filter(|mebibytes| *mebibytes > 0);
        let lag = lag.map(|lag| format!(", lags by {} MiB of log", grouped(lag))).unwrap_or_default();
        format!(
            "{} {}: {} rows, {}/s, {checkpoint}{lag}",
            job.name,
            job.status,
            grouped(job.rows),
            grouped(rate.round() as u64)
        )
    }
}

/// Writes a number with a blank between thousands.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::session::JobStatus;

    #[test]
    fn a_line_has_the_rate_since_the_last_one() {
        let start = Instant::now();
        let mut job = JobProgress {
            id: JobId(1),
            name: "insert-into_c.d.t".to_owned(),
            status: JobStatus::Running,
            rows: 1_000,
            last_checkpoint: None,
            lag_bytes: Some(56),
        };
        let mut lines = ProgressLines::new(std::slice::from_ref(&job), start);
        job.rows = 1_500;
        let first = lines.lines(std::slice::from_ref(&job), start + Duration::from_secs(1));
        assert_eq!(first, ["insert-into_c.d.t RUNNING: 1 500 rows, 500/s, no checkpoint yet"]);
        job.rows = 25_500;
        job.last_checkpoint = Some((3, Utc::now()));
        let second = lines.lines(std::slice::from_ref(&job), start + Duration::from_secs(3));
        assert_eq!(second, ["insert-into_c.d.t RUNNING: 25 500 rows, 12 000/s, checkpoint 3 0 s ago"]);
    }

    #[test]
    fn a_line_says_that_a_job_lags() {
        let job = JobProgress {
            id: JobId(1),
            name: "cdc".to_owned(),
            status: JobStatus::Running,
            rows: 85,
            last_checkpoint: None,
            lag_bytes: Some(1_152_426_064),
        };
        let start = Instant::now();
        let mut lines = ProgressLines::new(std::slice::from_ref(&job), start);
        let said = lines.lines(&[job], start + Duration::from_secs(10));
        assert_eq!(said, ["cdc RUNNING: 85 rows, 0/s, no checkpoint yet, lags by 1 099 MiB of log"]);
    }

    #[test]
    fn thousands_are_apart() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1 234 567");
    }
}
