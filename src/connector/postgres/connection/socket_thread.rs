//! A thread with a runtime of its own, for the client of a stream: what it reads is handed on in batches, and between them the thread
//! sleeps.

use std::convert::Infallible;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::error::Result;

/// A thread that lives as long as this does. Its tasks end with it.
#[derive(Debug)]
pub(in crate::connector::postgres) struct SocketThread {
    runtime: Handle,
    _life: oneshot::Sender<Infallible>,
}

impl SocketThread {
    /// Starts a thread.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(super) fn start() -> Result<SocketThread> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (life, ended) = oneshot::channel::<Infallible>();
        let run = move || {
            // Nothing is ever sent: it ends when the other side is dropped.
            drop(runtime.block_on(ended));
            runtime.shutdown_background();
        };
        thread::Builder::new().name("postgres-stream".to_owned()).spawn(run)?;
        Ok(SocketThread { runtime: handle, _life: life })
    }

    /// Returns where tasks of the thread are started.
    pub(in crate::connector::postgres) fn runtime(&self) -> &Handle {
        &self.runtime
    }
}
