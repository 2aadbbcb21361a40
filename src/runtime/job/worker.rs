//! A worker: one thread with an instance of every operator, for its key groups.
//!
//! Rows go through the graph depth first: what an operator emits is taken by all its readers before it gets the next batch, and
//! nothing is queued but rows for other workers. See `layout` for phases and `exchange` for the order of rows.

use std::sync::Arc;
use std::time::Instant;

use super::epoch::{Epoch, NodeCounters, SourceFrame, WorkerReport};
use super::exchange::{Chunk, ChunkOrder, Exchange, Splitter};
use super::layout::{Layout, Way};
use super::outbox::Outbox;
use super::source_task::frame_bytes;
use super::stage::Stage;
use crate::changelog::ChangelogBatch;
use crate::connector::Frame;
use crate::error::{Error, Result};
use crate::plan::NodeId;
use crate::runtime::checkpoint::Restore;
use crate::runtime::operator::{
    EpochEnd, GroupAggregateOperator, LocalGroupAggregate, NO_WATERMARK, Operator, Output,
};

/// Chunks below this number of rows are put together before an operator gets them.
const SMALL_CHUNK_ROWS: usize = 512;

/// The most rows that are put together.
const TOGETHER_ROWS_MAX: usize = 8_192;

/// One of the workers of a job.
pub(super) struct Worker {
    number: usize,
    layout: Arc<Layout>,
    exchange: Arc<Exchange>,
    /// What each node is on this worker.
    stages: Vec<Stage>,
    /// What groups rows for a node before they are handed to other workers.
    local_aggregates: Vec<Option<LocalGroupAggregate>>,
    /// The uids of the nodes.
    uids: Arc<Vec<String>>,
    /// Whether each row is an epoch.
    is_per_record: bool,
    /// The number of the last epoch.
    epoch_number: u64,
    /// How the epoch of the row at hand ends, where each row is an epoch.
    record_end: EpochEnd,
    /// The number of meetings so far.
    turn: u64,
    /// Where the rows at hand stand.
    order: ChunkOrder,
    /// Rows for each worker.
    outgoing: Vec<Vec<Chunk>>,
    splitter: Splitter,
    counters: Vec<NodeCounters>,
    /// Outputs that are not in use, kept for their memory.
    outputs: Vec<Output>,
}

impl Worker {
    /// Creates a worker.
    pub(super) fn new(
        number: usize,
        layout: Arc<Layout>,
        exchange: Arc<Exchange>,
        stages: Vec<Stage>,
        local_aggregates: Vec<Option<LocalGroupAggregate>>,
        uids: Arc<Vec<String>>,
        is_per_record: bool,
    ) -> Worker {
        let workers = layout.workers;
        Worker {
            number,
            exchange,
            uids,
            is_per_record,
            epoch_number: 0,
            record_end: EpochEnd { number: 0, time_ms: 0, watermark: NO_WATERMARK, is_last: false },
            turn: 0,
            order: ChunkOrder { frame: 0, chunk: 0, worker: number as u32, part: 0 },
            outgoing: (0..workers).map(|_| Vec::new()).collect(),
            splitter: Splitter::new(workers),
            counters: vec![NodeCounters::default(); stages.len()],
            outputs: Vec::new(),
            stages,
            local_aggregates,
            layout,
        }
    }

    /// Puts back the state of this worker's key groups.
    ///
    /// # Errors
    /// The checkpoint cannot be read, or its rows do not fit.
    pub(super) fn load(&mut self, restore: &Restore) -> Result<WorkerReport> {
        let (number, layout) = (self.number, Arc::clone(&self.layout));
        for (node, stage) in self.stages.iter_mut().enumerate() {
            let Stage::Operator(operator) = stage else { continue };
            let owns = |group: u8| layout.owns(node, number, group);
            for (at, table) in operator.state_tables().iter().enumerate() {
                restore.read(&self.uids[node], table, &owns, &mut |rows| operator.load(at, rows))?;
            }
            operator.finish_load()?;
        }
        Ok(self.report())
    }

    /// Runs an epoch. Rows for readers and writers have all been handed over when this returns.
    ///
    /// # Errors
    /// An operator or decoder fails, or another worker does.
    pub(super) fn run(&mut self, epoch: &Epoch) -> Result<WorkerReport> {
        let layout = Arc::clone(&self.layout);
        let done = if self.is_per_record {
            self.run_records(&layout, epoch)
        } else {
            self.run_phases(&layout, epoch)
        };
        // What came before a bad row is shown.
        let flushed = self.outboxes().try_for_each(Outbox::flush);
        done?;
        flushed?;
        let mut report = self.report();
        for (node, stage) in self.stages.iter_mut().enumerate() {
            match stage {
                Stage::Operator(operator) if epoch.takes_state && !operator.state_tables().is_empty() => {
                    report.changes.push((node, operator.take_changes()?));
                }
                Stage::Sink(outbox) => {
                    if let Some(checkpoint) = epoch.checkpoint {
                        let prepared = outbox.prepare(checkpoint, epoch.takes_state)?;
                        report.prepared.extend(prepared.map(|prepared| (node, prepared)));
                    }
                }
                _ => {}
            }
        }
        Ok(report)
    }

    fn outboxes(&mut self) -> impl Iterator<Item = &mut Outbox> {
        self.stages.iter_mut().filter_map(|stage| match stage {
            Stage::Sink(outbox) => Some(outbox),
            _ => None,
        })
    }

    /// Runs all frames as one epoch.
    fn run_phases(&mut self, layout: &Layout, epoch: &Epoch) -> Result<()> {
        let end = self.next_end(epoch, epoch.is_last);
        self.order.part = 0;
        // Rows that were there before are on all workers, and no epoch has any before their table is cleared.
        for frame in epoch.frames.iter().filter(|frame| frame.is_cleared()) {
            self.clear(layout, frame.source)?;
        }
        for phase in 0..layout.phase_count {
            if phase == 0 {
                while let Some((number, frame)) = epoch.claim() {
                    if frame.is_cleared() {
                        continue;
                    }
                    self.order = ChunkOrder { frame: number, chunk: 0, ..self.order };
                    for batch in self.decode(frame)? {
                        self.push(layout, frame.source, batch)?;
                        self.order.chunk += 1;
                    }
                }
            } else {
                self.send_groups(layout, phase)?;
                let chunks = self.exchange.meet(self.number, self.turn, &mut self.outgoing)?;
                self.turn += 1;
                self.receive(layout, chunks)?;
            }
            self.order = ChunkOrder { frame: ChunkOrder::END, chunk: phase as u32, ..self.order };
            self.end_nodes(layout, Some(phase), &end)?;
        }
        Ok(())
    }

    /// Runs each row as an epoch. Every operator takes every row by itself, also those that operators emit together: a reader of
    /// `-U` and `+U` says what each of them changes, as Flink's do.
    fn run_records(&mut self, layout: &Layout, epoch: &Epoch) -> Result<()> {
        let mut has_run = false;
        while let Some((_, frame)) = epoch.claim() {
            if self.unneeded_sources(layout).contains(&frame.source) {
                continue;
            }
            if frame.is_cleared() {
                self.record_end = self.next_end(epoch, false);
                let end = self.record_end;
                self.clear(layout, frame.source)?;
                for keeper in &layout.nodes[frame.source].keepers {
                    self.operate(layout, *keeper, |operator, output| operator.end_epoch(&end, output))?;
                }
                has_run = true;
                continue;
            }
            for batch in self.decode(frame)? {
                for row in 0..batch.row_count() {
                    self.record_end = self.next_end(epoch, false);
                    self.push(layout, frame.source, batch.slice(row, 1))?;
                }
            }
            has_run = true;
        }
        if epoch.is_last || !has_run {
            self.record_end = self.next_end(epoch, epoch.is_last);
            let end = self.record_end;
            self.end_nodes(layout, None, &end)?;
        }
        Ok(())
    }

    /// Lets those who remember the rows of a source take them back.
    fn clear(&mut self, layout: &Layout, source: NodeId) -> Result<()> {
        for keeper in &layout.nodes[source].keepers {
            match &mut self.stages[*keeper] {
                Stage::Operator(operator) => operator.clear()?,
                Stage::Absent => {}
                _ => return Err(Error::internal("a table is cleared whose rows have left the job")),
            }
        }
        Ok(())
    }

    /// Begins the next epoch.
    fn next_end(&mut self, epoch: &Epoch, is_last: bool) -> EpochEnd {
        self.epoch_number += 1;
        let watermark = if is_last { i64::MAX } else { epoch.watermark };
        EpochEnd { number: self.epoch_number, time_ms: epoch.time_ms, watermark, is_last }
    }

    fn decode(&mut self, frame: &SourceFrame) -> Result<Vec<ChangelogBatch>> {
        let began = Instant::now();
        let batches = match (&mut self.stages[frame.source], &frame.frame) {
            (Stage::Source(source), frame) => source.decode(frame)?,
            (Stage::Values, Frame::Rows(rows)) => vec![rows.clone()],
            _ => return Err(Error::internal("a frame came to a node that is no source")),
        };
        let counters = &mut self.counters[frame.source];
        counters.busy += began.elapsed();
        counters.bytes_in += frame_bytes(&frame.frame) as u64;
        counters.rows_in += batches.iter().map(|batch| batch.row_count() as u64).sum::<u64>();
        Ok(batches)
    }

    /// Gives what a node has emitted to all that read it.
    fn push(&mut self, layout: &Layout, from: NodeId, batch: ChangelogBatch) -> Result<()> {
        if self.is_per_record && batch.row_count() > 1 {
            return (0..batch.row_count()).try_for_each(|row| self.push(layout, from, batch.slice(row, 1)));
        }
        if cfg!(debug_assertions) {
            self.check_kinds(layout, from, &batch)?;
        }
        self.counters[from].rows_out += batch.row_count() as u64;
        let Some((last, others)) = layout.nodes[from].readers.split_last() else { return Ok(()) };
        for route in others {
            self.send(layout, route.node, route.input, &route.way, batch.clone())?;
        }
        self.send(layout, last.node, last.input, &last.way, batch)
    }

    /// Checks that rows have only the kinds that the plan says; readers rely on it.
    fn check_kinds(&self, layout: &Layout, from: NodeId, batch: &ChangelogBatch) -> Result<()> {
        let mode = layout.nodes[from].mode;
        match (0..batch.row_count()).map(|row| batch.kind(row)).find(|kind| !mode.contains(*kind)) {
            Some(kind) => {
                let place = &self.uids[from];
                Err(Error::internal(format!("'{place}' emits {kind:?}, which is not among its kinds {mode}")))
            }
            None => Ok(()),
        }
    }

    /// Gives rows to an input, here or on other workers.
    fn send(
        &mut self,
        layout: &Layout,
        node: NodeId,
        input: usize,
        way: &Way,
        batch: ChangelogBatch,
    ) -> Result<()> {
        if input == GroupAggregateOperator::ROWS
            && let Some(local) = &mut self.local_aggregates[node]
        {
            let began = Instant::now();
            if local.take(&batch)? {
                self.counters[node].busy += began.elapsed();
                return Ok(());
            }
        }
        let order = self.order;
        match way {
            Way::Stay => return self.process(layout, node, input, batch),
            Way::First => self.outgoing[0].push(Chunk { node, input, order, batch }),
            Way::Owner(columns) => {
                let outgoing = &mut self.outgoing;
                self.splitter.split(&batch, columns, |worker, batch| {
                    outgoing[worker].push(Chunk { node, input, order, batch });
                })?;
            }
        }
        self.order.part += 1;
        Ok(())
    }

    /// Hands over the groups that have been made of rows for the nodes of a phase.
    fn send_groups(&mut self, layout: &Layout, phase: usize) -> Result<()> {
        for (node, place) in layout.nodes.iter().enumerate() {
            let Some(local) = self.local_aggregates[node].as_mut().filter(|_| place.phase == phase) else {
                continue;
            };
            let keys: Vec<usize> = (0..local.key_count()).collect();
            if let Some(groups) = local.take_groups()? {
                let way = if keys.is_empty() { Way::First } else { Way::Owner(keys) };
                self.send(layout, node, GroupAggregateOperator::GROUPS, &way, groups)?;
            }
        }
        Ok(())
    }

    /// Lets a node take rows, and passes on what it emits.
    fn process(&mut self, layout: &Layout, node: NodeId, input: usize, batch: ChangelogBatch) -> Result<()> {
        self.counters[node].rows_in += batch.row_count() as u64;
        match &mut self.stages[node] {
            Stage::Sink(outbox) => outbox.push(batch),
            Stage::Operator(_) => {
                self.operate(layout, node, |operator, output| operator.process(input, batch, output))?;
                if self.is_per_record {
                    let end = self.record_end;
                    self.operate(layout, node, |operator, output| operator.end_epoch(&end, output))?;
                }
                Ok(())
            }
            Stage::Source(_) | Stage::Values | Stage::Absent => {
                Err(Error::internal("rows came to a node that takes none"))
            }
        }
    }

    /// Calls an operator and passes on what it emits.
    fn operate(
        &mut self,
        layout: &Layout,
        node: NodeId,
        call: impl FnOnce(&mut dyn Operator, &mut Output) -> Result<()>,
    ) -> Result<()> {
        let Stage::Operator(operator) = &mut self.stages[node] else { return Ok(()) };
        let mut output = self.outputs.pop().unwrap_or_default();
        // A look at the clock for every row would cost more than many an operator.
        let began = (!self.is_per_record).then(Instant::now);
        call(operator.as_mut(), &mut output)?;
        if let Some(began) = began {
            self.counters[node].busy += began.elapsed();
        }
        for batch in output.drain() {
            self.push(layout, node, batch)?;
        }
        self.outputs.push(output);
        Ok(())
    }

    /// Gives what other workers have sent to those who read it, in order; small chunks together.
    fn receive(&mut self, layout: &Layout, chunks: Vec<Chunk>) -> Result<()> {
        let mut chunks = chunks.into_iter().peekable();
        while let Some(Chunk { node, input, order, mut batch }) = chunks.next() {
            if batch.row_count() < SMALL_CHUNK_ROWS {
                let mut row_count = batch.row_count();
                let mut together = vec![batch];
                while let Some(next) = chunks.next_if(|next| {
                    (next.node, next.input) == (node, input)
                        && row_count + next.batch.row_count() <= TOGETHER_ROWS_MAX
                }) {
                    row_count += next.batch.row_count();
                    together.push(next.batch);
                }
                let Some(all) = ChangelogBatch::concat(&together)? else { continue };
                batch = all;
            }
            // Several chunks may stand at the same place (those of two inputs): what comes of them stays in the order of `part`.
            self.order = ChunkOrder { part: self.order.part, worker: self.number as u32, ..order };
            self.process(layout, node, input, batch)?;
        }
        Ok(())
    }

    /// Ends the epoch for all nodes of a phase (or all), inputs before those who read them.
    fn end_nodes(&mut self, layout: &Layout, phase: Option<usize>, end: &EpochEnd) -> Result<()> {
        for (node, place) in layout.nodes.iter().enumerate() {
            if phase.is_none_or(|phase| phase == place.phase) {
                self.operate(layout, node, |operator, output| operator.end_epoch(end, output))?;
            }
        }
        Ok(())
    }

    /// Returns the sources whose rows nobody needs any more: all ways from them end at operators that have had enough.
    fn unneeded_sources(&self, layout: &Layout) -> Vec<NodeId> {
        let is_exhausted =
            |stage: &Stage| matches!(stage, Stage::Operator(operator) if operator.is_exhausted());
        if self.number != 0 || !self.stages.iter().any(is_exhausted) {
            return Vec::new();
        }
        let mut is_closed = vec![false; self.stages.len()];
        let mut unneeded = Vec::new();
        for (node, place) in layout.nodes.iter().enumerate().rev() {
            let readers = &place.readers;
            is_closed[node] = is_exhausted(&self.stages[node])
                || (!readers.is_empty() && readers.iter().all(|route| is_closed[route.node]));
            if is_closed[node] && matches!(self.stages[node], Stage::Source(_)) {
                unneeded.push(node);
            }
        }
        unneeded
    }

    /// Makes the report on what was done since the last one.
    fn report(&mut self) -> WorkerReport {
        let mut next_timer: Option<i64> = None;
        for (counters, stage) in self.counters.iter_mut().zip(&mut self.stages) {
            match stage {
                Stage::Operator(operator) => {
                    counters.state_bytes = operator.state_bytes();
                    if let Some(timer) = operator.next_timer() {
                        next_timer = Some(next_timer.map_or(timer, |first| first.min(timer)));
                    }
                }
                Stage::Sink(outbox) => counters.back_pressured = outbox.take_blocked(),
                Stage::Source(_) | Stage::Values | Stage::Absent => {}
            }
        }
        let counters =
            std::mem::replace(&mut self.counters, vec![NodeCounters::default(); self.stages.len()]);
        let unneeded_sources = self.unneeded_sources(&Arc::clone(&self.layout));
        WorkerReport { counters, next_timer, unneeded_sources, ..WorkerReport::default() }
    }
}
