//! Ctrl-C, and a script's SIGTERM: a counter that a listener raises and that whoever works at the moment looks at.

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::error::Result;

/// Tells that Ctrl-C was pressed since the last statement began.
#[derive(Debug, Clone)]
pub(crate) struct Interrupts {
    presses: watch::Receiver<u64>,
}

impl Interrupts {
    /// Starts to listen. From now on Ctrl-C no longer ends the process, nor, if `hears_term`, does SIGTERM.
    ///
    /// The handler is in place when this returns, not when a worker comes to it: the line editor keeps the handler that it finds
    /// and puts it back, and one that came later would be lost.
    ///
    /// # Errors
    /// The system takes no handler.
    pub(crate) fn listen(runtime: &Runtime, hears_term: bool) -> Result<Interrupts> {
        let _guard = runtime.enter();
        let mut signals = vec![signal(SignalKind::interrupt())?];
        if hears_term {
            signals.push(signal(SignalKind::terminate())?);
        }
        let (sender, presses) = watch::channel(0);
        for mut signal in signals {
            let sender = sender.clone();
            runtime.spawn(async move {
                while signal.recv().await.is_some() {
                    sender.send_modify(|presses| *presses += 1);
                }
            });
        }
        Ok(Interrupts { presses })
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
