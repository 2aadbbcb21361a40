//! Where workers meet and hand rows over.
//!
//! Rows for others are kept until the end of a phase, then left in the others' mailboxes; when all have done so, everybody takes
//! what was left for him. There are two mailboxes for each worker, used in turn: a fast worker may fill the next one before a slow
//! one has emptied the last.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use arrow::array::{ArrayRef, UInt32Array};
use tokio::sync::watch;

use crate::changelog::ChangelogBatch;
use crate::error::{Error, Result};
use crate::plan::NodeId;
use crate::state::{hash_rows, key_group, owner};

/// Where rows stand in the order of the input, which an exchange keeps whatever the number of workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ChunkOrder {
    /// The number of the frame within the epoch; `END` for what operators say at the end of an epoch.
    pub(super) frame: u32,
    /// The number of the chunk within the frame.
    pub(super) chunk: u32,
    /// The worker that sent it.
    pub(super) worker: u32,
    /// The number of what came of it there, counted over the whole epoch.
    pub(super) part: u32,
}

impl ChunkOrder {
    /// The frame of what operators say at the end of an epoch.
    pub(super) const END: u32 = u32::MAX;
}

/// Rows on their way to an input of a node.
#[derive(Debug)]
pub(super) struct Chunk {
    /// The reading node.
    pub(super) node: NodeId,
    /// Its input.
    pub(super) input: usize,
    /// Where they stand.
    pub(super) order: ChunkOrder,
    /// The rows.
    pub(super) batch: ChangelogBatch,
}

/// The meeting point of all workers of a job.
#[derive(Debug)]
pub(super) struct Exchange {
    barrier: Barrier,
    aborted: watch::Sender<bool>,
    mailboxes: [Vec<Mutex<Vec<Chunk>>>; 2],
}

impl Exchange {
    /// Creates the meeting point.
    pub(super) fn new(workers: usize) -> Exchange {
        let mailboxes = || (0..workers).map(|_| Mutex::default()).collect();
        Exchange {
            barrier: Barrier::new(workers),
            aborted: watch::Sender::new(false),
            mailboxes: [mailboxes(), mailboxes()],
        }
    }

    /// Leaves chunks for the others (one list per worker), waits for all, and returns, in order, what was left for `worker`.
    /// `turn` counts the meetings.
    ///
    /// # Errors
    /// The job is being aborted.
    pub(super) fn meet(&self, worker: usize, turn: u64, outgoing: &mut [Vec<Chunk>]) -> Result<Vec<Chunk>> {
        let mailboxes = &self.mailboxes[(turn % 2) as usize];
        for (mailbox, chunks) in mailboxes.iter().zip(outgoing) {
            if !chunks.is_empty() {
                lock(mailbox).append(chunks);
            }
        }
        self.barrier.wait()?;
        let mut chunks = std::mem::take(&mut *lock(&mailboxes[worker]));
        chunks.sort_unstable_by_key(|chunk| (chunk.order, chunk.node, chunk.input));
        Ok(chunks)
    }

    /// Lets nobody wait any longer, now and later.
    pub(super) fn abort(&self) {
        self.aborted.send_replace(true);
        self.barrier.abort();
    }

    /// Returns what becomes true with the abort, for those who wait for something else.
    pub(super) fn watch_abort(&self) -> watch::Receiver<bool> {
        self.aborted.subscribe()
    }
}

/// Locks what no panic can leave half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets workers wait for each other, until one of them gives up.
#[derive(Debug)]
struct Barrier {
    workers: usize,
    state: Mutex<BarrierState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct BarrierState {
    waiting: usize,
    round: u64,
    is_aborted: bool,
}

impl Barrier {
    fn new(workers: usize) -> Barrier {
        Barrier { workers, state: Mutex::default(), changed: Condvar::new() }
    }

    fn wait(&self) -> Result<()> {
        let mut state = lock(&self.state);
        let round = state.round;
        state.waiting += 1;
        if state.waiting == self.workers {
            state.waiting = 0;
            state.round += 1;
            self.changed.notify_all();
        }
        while state.round == round && !state.is_aborted {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_aborted { Err(aborted()) } else { Ok(()) }
    }

    fn abort(&self) {
        lock(&self.state).is_aborted = true;
        self.changed.notify_all();
    }
}

/// Makes the error of a worker that stops because another part of the job has.
pub(super) fn aborted() -> Error {
    Error::interrupted("the job is being stopped")
}

/// Splits batches by the owners of their rows' key groups.
#[derive(Debug)]
pub(super) struct Splitter {
    workers: usize,
    hashes: Vec<u64>,
    rows: Vec<Vec<u32>>,
}

impl Splitter {
    /// Creates a splitter for a number of workers.
    pub(super) fn new(workers: usize) -> Splitter {
        Splitter { workers, hashes: Vec::new(), rows: vec![Vec::new(); workers] }
    }

    /// Calls `send` with the rows of each worker that has any, in their order.
    ///
    /// # Errors
    /// A column's type cannot be a key.
    pub(super) fn split(
        &mut self,
        batch: &ChangelogBatch,
        columns: &[usize],
        mut send: impl FnMut(usize, ChangelogBatch),
    ) -> Result<()> {
        let keys: Vec<ArrayRef> =
            columns.iter().map(|column| ArrayRef::clone(batch.rows().column(*column))).collect();
        hash_rows(&keys, batch.row_count(), &mut self.hashes)?;
        self.rows.iter_mut().for_each(Vec::clear);
        for (row, hash) in self.hashes.iter().enumerate() {
            self.rows[owner(key_group(*hash), self.workers)].push(row as u32);
        }
        for (worker, rows) in self.rows.iter_mut().enumerate() {
            if rows.len() == batch.row_count() {
                send(worker, batch.clone());
            } else if !rows.is_empty() {
                let positions = UInt32Array::from(std::mem::take(rows));
                send(worker, batch.take(&positions)?);
                // The positions' memory is used again.
                if let Ok(values) = positions.into_parts().1.into_inner().into_vec() {
                    *rows = values;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn an_abort_wakes_those_who_wait_and_those_who_come_later() {
        let exchange = Arc::new(Exchange::new(3));
        let waiting: Vec<_> = (0..2)
            .map(|worker| {
                let exchange = Arc::clone(&exchange);
                thread::spawn(move || exchange.meet(worker, 0, &mut [Vec::new(), Vec::new(), Vec::new()]))
            })
            .collect();
        exchange.abort();
        for worker in waiting {
            assert!(worker.join().unwrap().is_err());
        }
        assert!(exchange.meet(2, 0, &mut [Vec::new(), Vec::new(), Vec::new()]).is_err());
    }

    #[test]
    fn everybody_gets_what_was_left_for_him_in_the_order_of_the_input() {
        use arrow::array::{Int32Array, RecordBatch};
        let exchange = Arc::new(Exchange::new(2));
        let chunk = |frame: u32, worker: u32, value: i32| {
            let column: ArrayRef = Arc::new(Int32Array::from(vec![value]));
            let rows = RecordBatch::try_from_iter([("a", column)]).unwrap();
            let order = ChunkOrder { frame, chunk: 0, worker, part: 0 };
            Chunk { node: 1, input: 0, order, batch: ChangelogBatch::inserts(rows) }
        };
        let workers: Vec<_> = (0..2_u32)
            .map(|worker| {
                let exchange = Arc::clone(&exchange);
                let frames = if worker == 0 { [3, 1] } else { [2, 0] };
                let chunks = frames.map(|frame| chunk(frame, worker, frame as i32)).into_iter().collect();
                thread::spawn(move || {
                    let mut seen = Vec::new();
                    let mut outgoing = vec![chunks, Vec::new()];
                    for turn in 0..50 {
                        let got = exchange.meet(worker as usize, turn, &mut outgoing).unwrap();
                        seen.push(got.iter().map(|chunk| chunk.order.frame).collect::<Vec<_>>());
                        // What came goes on to the other one.
                        outgoing = vec![Vec::new(), Vec::new()];
                        outgoing[(worker as usize + 1) % 2] = got;
                    }
                    seen
                })
            })
            .collect();
        let seen: Vec<_> = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
        for (turn, (first, second)) in seen[0].iter().zip(&seen[1]).enumerate() {
            let (holder, other) = if turn % 2 == 0 { (first, second) } else { (second, first) };
            assert_eq!(holder, &[0, 1, 2, 3]);
            assert!(other.is_empty());
        }
    }
}
