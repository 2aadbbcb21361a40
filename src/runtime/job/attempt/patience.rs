//! How long a job that is to stop waits for the rest of what it has begun to read. A server may be away in the middle of a transaction, and
//! a transaction may take hours; nobody who stops a job is to wait for either.

use std::time::Duration;

use tokio::time::Instant;

/// How long a source may give nothing.
const SILENCE_MAX: Duration = if cfg!(test) { Duration::from_millis(200) } else { Duration::from_secs(10) };

/// How long it may take to give the rest.
const REST_MAX: Duration = if cfg!(test) { Duration::from_secs(5) } else { Duration::from_secs(60) };

/// The patience of a job that is to stop.
#[derive(Debug, Default)]
pub(super) struct Patience {
    /// When it was to stop.
    began: Option<Instant>,
    /// Since when it has waited for a source, if nothing has come since.
    waiting_since: Option<Instant>,
}

impl Patience {
    /// Begins with the wish to stop.
    pub(super) fn from(now: Instant) -> Patience {
        Patience { began: Some(now), waiting_since: None }
    }

    /// Notes whether the job waits for a source, and for nothing else.
    pub(super) fn note(&mut self, is_waiting: bool, now: Instant) {
        self.waiting_since = is_waiting.then(|| self.waiting_since.unwrap_or(now));
    }

    /// Notes that a source has given something.
    pub(super) fn heard(&mut self) {
        self.waiting_since = None;
    }

    /// Returns when it is over, while the job waits for a source.
    pub(super) fn until(&self) -> Option<Instant> {
        let (began, since) = (self.began?, self.waiting_since?);
        Some((since + SILENCE_MAX).min(began + REST_MAX))
    }

    /// Returns whether it is over.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.until().is_some_and(|until| until <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_lost_by_silence_or_by_a_rest_without_an_end() {
        let start = Instant::now();
        let mut patience = Patience::from(start);
        assert_eq!(patience.until(), None, "nothing is waited for");
        patience.note(true, start);
        assert!(!patience.is_over(start) && patience.is_over(start + SILENCE_MAX));
        // Something comes again and again.
        let mut now = start;
        while now < start + REST_MAX {
            assert!(!patience.is_over(now));
            patience.heard();
            patience.note(true, now);
            now += SILENCE_MAX / 2;
        }
        assert!(patience.is_over(now));
        // As long as it is the job that is slow, no source is to blame.
        patience.note(false, now);
        assert!(!patience.is_over(now));
        assert_eq!(Patience::default().until(), None);
    }
}
