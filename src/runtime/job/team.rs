//! The threads of a job's workers, and how the driver talks to them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use tokio::sync::mpsc;

use super::epoch::{Epoch, EpochReport, WorkerReport};
use super::exchange::{Exchange, aborted};
use super::worker::Worker;
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::checkpoint::Restore;

/// The stack of a worker, of which only what is used takes memory: an expression may be a deep tree.
const STACK_BYTES: usize = 256 << 20;

/// What all workers are told to do next.
#[derive(Debug, Clone)]
pub(super) enum Order {
    /// Load the state of a checkpoint.
    Load(Arc<Restore>),
    /// Run an epoch.
    Run(Arc<Epoch>),
}

/// The workers of a job.
#[derive(Debug)]
pub(super) struct Team {
    orders: Vec<std::sync::mpsc::Sender<Order>>,
    reports: mpsc::Receiver<EpochReport>,
    exchange: Arc<Exchange>,
    threads: Vec<JoinHandle<()>>,
    /// What has come of the reports on the current order.
    arrived: Vec<EpochReport>,
}

impl Team {
    /// Starts a thread for each worker.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub(super) fn start(workers: Vec<Worker>, exchange: Arc<Exchange>, job: &str) -> Result<Team> {
        let (report, reports) = mpsc::channel(workers.len().max(1));
        let mut team =
            Team { orders: Vec::new(), reports, exchange, threads: Vec::new(), arrived: Vec::new() };
        for (number, worker) in workers.into_iter().enumerate() {
            let (order, orders) = std::sync::mpsc::channel();
            let (exchange, report) = (Arc::clone(&team.exchange), report.clone());
            let thread = Builder::new()
                .name(format!("{job}-{number}"))
                .stack_size(STACK_BYTES)
                .spawn(move || serve(number, worker, &orders, &exchange, &report))
                .map_err(|error| Error::internal("a worker cannot be started").caused_by(error))?;
            team.orders.push(order);
            team.threads.push(thread);
        }
        Ok(team)
    }

    /// Tells all workers what to do.
    pub(super) fn order(&self, order: &Order) {
        for worker in &self.orders {
            // A worker that is gone has said why.
            let _ = worker.send(order.clone());
        }
    }

    /// Waits until all workers have done what they were told, and returns their reports by number. A call that is dropped loses
    /// nothing.
    ///
    /// # Errors
    /// What made the first of them fail; `Interrupted` if it was none of them.
    pub(super) async fn reports(&mut self) -> Result<Vec<WorkerReport>> {
        while self.arrived.len() < self.orders.len() {
            match self.reports.recv().await {
                Some(report) => self.arrived.push(report),
                None => break,
            }
        }
        let mut arrived = std::mem::take(&mut self.arrived);
        arrived.sort_by_key(|report| report.worker);
        let mut done = Vec::with_capacity(arrived.len());
        let mut failure: Option<Error> = None;
        for report in arrived {
            match report.outcome {
                Ok(report) => done.push(report),
                Err(error) => {
                    let is_cause = error.kind() != ErrorKind::Interrupted;
                    let is_first =
                        failure.as_ref().is_none_or(|first| first.kind() == ErrorKind::Interrupted);
                    if failure.is_none() || (is_cause && is_first) {
                        failure = Some(error);
                    }
                }
            }
        }
        match failure {
            Some(failure) => Err(failure),
            None if done.len() < self.orders.len() => Err(aborted()),
            None => Ok(done),
        }
    }

    /// Stops all workers and waits until their state is gone.
    pub(super) async fn disband(mut self) {
        self.exchange.abort();
        self.orders.clear();
        self.reports.close();
        let threads = std::mem::take(&mut self.threads);
        let join = move || threads.into_iter().for_each(|thread| drop(thread.join()));
        // The threads have caught their panics, and their reports have told of them.
        let _ = tokio::task::spawn_blocking(join).await;
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.exchange.abort();
    }
}

/// Does what a worker is told, until it fails or nobody tells it any more.
fn serve(
    number: usize,
    mut worker: Worker,
    orders: &std::sync::mpsc::Receiver<Order>,
    exchange: &Exchange,
    report: &mpsc::Sender<EpochReport>,
) {
    while let Ok(order) = orders.recv() {
        let run = || match &order {
            Order::Load(restore) => worker.load(restore),
            Order::Run(epoch) => worker.run(epoch),
        };
        let outcome =
            catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(panicked(panic.as_ref())));
        let has_failed = outcome.is_err();
        if has_failed {
            exchange.abort();
        }
        if report.blocking_send(EpochReport { worker: number, outcome }).is_err() || has_failed {
            break;
        }
    }
}

/// Makes the error of a panic.
fn panicked(panic: &(dyn Any + Send)) -> Error {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Error::internal(format!("a worker panicked: {}", text.unwrap_or("without a message")))
}
