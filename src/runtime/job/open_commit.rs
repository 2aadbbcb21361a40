//! Whether a commit is underway, or has failed and may have landed all the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::connector::may_have_landed;
use crate::error::Result;

/// Knows whether it is open what has become of a job's last commit. As long as it is, nothing may be removed that it names.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenCommit(Arc<AtomicBool>);

impl OpenCommit {
    /// Commits. A future that is dropped before it is done leaves its outcome open.
    ///
    /// # Errors
    /// Those of the commit.
    pub(super) async fn run(&self, commit: impl Future<Output = Result<()>> + Send) -> Result<()> {
        self.0.store(true, Ordering::Release);
        let outcome = commit.await;
        self.0.store(outcome.as_ref().is_err_and(may_have_landed), Ordering::Release);
        outcome
    }

    /// Returns whether it is open what has become of the last commit.
    pub(super) fn is_open(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connector::testing::block_on;
    use crate::error::{Error, FlinkClass};
    use futures::FutureExt;

    #[test]
    fn a_commit_is_open_until_its_outcome_is_known() {
        block_on(async {
            let commit = OpenCommit::default();
            assert!(!commit.is_open());
            assert!(commit.run(std::future::pending()).now_or_never().is_none());
            assert!(commit.is_open(), "it was dropped in the middle");
            commit.run(async { Ok(()) }).await.unwrap();
            assert!(!commit.is_open());
            let lost = Error::unavailable("no answer").class(FlinkClass::ICEBERG_COMMIT_STATE_UNKNOWN);
            commit.run(async { Err(lost) }).await.unwrap_err();
            assert!(commit.is_open());
            commit.run(async { Err(Error::unavailable("refused")) }).await.unwrap_err();
            assert!(!commit.is_open());
        });
    }
}
