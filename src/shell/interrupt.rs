//! Ctrl-C: a counter that a listener raises and that whoever works at the moment looks at.

use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Tells that Ctrl-C was pressed since the last statement began.
#[derive(Debug, Clone)]
pub(crate) struct Interrupts {
    presses: watch::Receiver<u64>,
}

impl Interrupts {
    /// Starts to listen. From now on Ctrl-C no longer ends the process.
    pub(crate) fn listen(runtime: &Runtime) -> Interrupts {
        let (sender, presses) = watch::channel(0);
        runtime.spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                sender.send_modify(|presses| *presses += 1);
            }
        });
        Interrupts { presses }
    }

    /// Returns interrupts that tests raise through the sender.
    #[cfg(test)]
    pub(crate) fn of_test() -> (watch::Sender<u64>, Interrupts) {
        let (sender, presses) = watch::channel(0);
        (sender, Interrupts { presses })
    }

    /// Forgets what was pressed so far.
    pub(crate) fn reset(&mut self) {
        self.presses.mark_unchanged();
    }

    /// Returns whether Ctrl-C was pressed since the last reset.
    pub(crate) fn is_raised(&self) -> bool {
        self.presses.has_changed().unwrap_or(false)
    }

    /// Waits for Ctrl-C; returns at once if it was pressed since the last reset. Cancel-safe.
    pub(crate) async fn raised(&mut self) {
        if self.presses.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
