//! Random histories against a model: rows, checkpoints that succeed, fail or are cut off by a crash, restarts with other numbers of
//! writers, and another engine that adds, moves and deletes rows or sets the table back, at any moment. After every commit the table
//! shows what the model has.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::testing::{Job, Layout, OtherEngine, Row, Warehouse, row, rows_at};
use crate::changelog::RowKind;

/// What happens.
#[derive(Debug, Clone)]
enum Step {
    /// Rows come: kind, key, partition.
    Write(Vec<(u8, i32, i32)>),
    /// A checkpoint, in which another engine commits between the two phases.
    Checkpoint(Vec<Other>),
    /// A checkpoint that is prepared and cannot be written.
    FailedCheckpoint,
    /// A crash after the checkpoint is written and before it is committed; a restart with so many writers.
    CrashBeforeCommit(usize, Vec<Other>),
    /// A crash at another moment.
    Crash(usize),
    /// A restart by another job that goes on from the last checkpoint.
    OtherJob(usize),
    /// Another engine commits.
    Other(Other),
}

/// What another engine does.
#[derive(Debug, Clone)]
enum Other {
    /// Adds rows: key, partition.
    Append(Vec<(i32, i32)>),
    Rewrite(bool),
    /// Deletes the rows of a key; without keys one row, the first or the last of those that are equal.
    Delete(i32, bool),
    /// Sets the table back by so many snapshots.
    RollBack(usize),
}

fn other() -> impl Strategy<Value = Other> {
    prop_oneof![
        3 => prop::collection::vec((0..10_i32, 0..3_i32), 1..4).prop_map(Other::Append),
        3 => any::<bool>().prop_map(Other::Rewrite),
        2 => (0..10_i32, any::<bool>()).prop_map(|(id, is_last)| Other::Delete(id, is_last)),
        1 => (1..4_usize).prop_map(Other::RollBack),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let others = || prop::collection::vec(other(), 0..3);
    prop_oneof![
        8 => prop::collection::vec((0..4_u8, 0..10_i32, 0..3_i32), 1..8).prop_map(Step::Write),
        5 => others().prop_map(Step::Checkpoint),
        2 => Just(Step::FailedCheckpoint),
        2 => (1..4_usize, others()).prop_map(|(writers, others)| Step::CrashBeforeCommit(writers, others)),
        1 => (1..4_usize).prop_map(Step::Crash),
        1 => (1..4_usize).prop_map(Step::OtherJob),
        4 => other().prop_map(Step::Other),
    ]
}

/// What a checkpoint does to the table.
#[derive(Debug, Clone, Default)]
struct Effect {
    /// With a key: the new row of each, or none.
    images: BTreeMap<i32, Option<Row>>,
    /// Without: how many more of a row.
    counts: BTreeMap<Row, i64>,
    /// Whether it changed nothing when it was prepared. A job that goes on takes it for committed.
    is_nothing: bool,
    /// With a key: the rows that the table had of these keys when it was prepared.
    replaced: BTreeSet<Row>,
}

/// A history as it should be.
struct Model {
    is_keyed: bool,
    rows: BTreeMap<Row, i64>,
    /// The rows of each snapshot.
    snapshots: BTreeMap<i64, BTreeMap<Row, i64>>,
    written: Effect,
    /// What was prepared and not saved, and what was saved and not committed.
    prepared: Vec<Effect>,
    /// Without a key: what the job has added, now and at the last checkpoint.
    own: (BTreeMap<Row, i64>, BTreeMap<Row, i64>),
    next_value: usize,
}

fn change(rows: &mut BTreeMap<Row, i64>, row: &Row, by: i64) {
    *rows.entry(row.clone()).or_default() += by;
    rows.retain(|_, count| *count != 0);
}

impl Model {
    /// Chooses rows, and notes what they do.
    fn write(&mut self, drawn: &[(u8, i32, i32)]) -> Vec<(RowKind, Row)> {
        let mut rows = Vec::new();
        for (kind, id, p) in drawn {
            let kind = RowKind::from_byte(*kind);
            if self.is_keyed {
                self.next_value += 1;
                let row = row(*id, &format!("v{}", self.next_value), *p);
                self.written.images.insert(*id, (!kind.is_retraction()).then(|| row.clone()));
                rows.push((kind, row));
                continue;
            }
            // Only what the job has added is taken back.
            let own = self.own.0.keys().filter(|row| row.0 == *id).nth(0).cloned();
            let (row, by) = match own.filter(|_| kind.is_retraction()) {
                Some(row) => (row, -1),
                None if kind.is_retraction() => continue,
                None => ((*id, (*p > 0).then(|| format!("w{p}")), *p), 1),
            };
            change(&mut self.own.0, &row, by);
            change(&mut self.written.counts, &row, by);
            rows.push((kind, row));
        }
        rows
    }

    /// What is taken back and is not there, because others have deleted it, is not taken later either.
    fn prepare(&mut self) {
        let mut effect = std::mem::take(&mut self.written);
        for (row, by) in &mut effect.counts {
            let earlier = self.prepared.iter().filter_map(|effect| effect.counts.get(row)).sum::<i64>();
            *by = (*by).max(-(earlier + self.rows.get(row).copied().unwrap_or_default()));
        }
        let is_there = |id: &i32| {
            let earlier = self.prepared.iter().rev().find_map(|effect| effect.images.get(id));
            let is_replaced = |row: &Row| self.prepared.iter().any(|effect| effect.replaced.contains(row));
            earlier.is_some_and(Option::is_some)
                || self.rows.keys().any(|row| row.0 == *id && !is_replaced(row))
        };
        effect.is_nothing = effect.images.iter().all(|(id, image)| image.is_none() && !is_there(id));
        let of_keys = self.rows.keys().filter(|row| effect.images.contains_key(&row.0));
        effect.replaced = of_keys.cloned().collect();
        self.prepared.push(effect);
    }

    /// Returns what the table shows after each of the commits.
    fn commit(&mut self, is_recovery: bool) -> Vec<BTreeMap<Row, i64>> {
        let mut states = Vec::new();
        for effect in std::mem::take(&mut self.prepared) {
            if is_recovery && self.is_keyed && effect.is_nothing {
                continue;
            }
            self.rows.retain(|row, _| !effect.images.contains_key(&row.0));
            for row in effect.images.values().flatten() {
                change(&mut self.rows, row, 1);
            }
            for (row, by) in &effect.counts {
                change(&mut self.rows, row, *by);
            }
            states.push(self.rows.clone());
        }
        states
    }

    fn lose(&mut self) {
        self.written = Effect::default();
        self.prepared.clear();
        self.own.0.clone_from(&self.own.1);
    }
}

struct History {
    warehouse: Warehouse,
    job: Option<Job>,
    model: Model,
    runs: usize,
}

impl History {
    async fn new(is_keyed: bool, is_partitioned: bool) -> History {
        let warehouse = Warehouse::new(&Layout { is_partitioned, ..Layout::default() }).await;
        let model = Model {
            is_keyed,
            rows: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            written: Effect::default(),
            prepared: Vec::new(),
            own: Default::default(),
            next_value: 0,
        };
        let job = Job::start(&warehouse, is_keyed, 1, "0/sink", None).await.unwrap();
        History { warehouse, job: Some(job), model, runs: 0 }
    }

    fn job(&mut self) -> &mut Job {
        self.job.as_mut().unwrap()
    }

    async fn restart(&mut self, writers: usize, is_other_job: bool) {
        let before = self.job.take().unwrap();
        let saved = (before.saved.number > 0).then_some(before.saved);
        self.runs += usize::from(is_other_job || saved.is_none());
        // Without a checkpoint to go on from, a run begins a new lineage unless it is an automatic restart.
        let sink_id = if is_other_job { format!("{}/sink", self.runs) } else { before.sink_id };
        let is_keyed = self.model.is_keyed;
        self.job = Some(Job::start(&self.warehouse, is_keyed, writers, &sink_id, saved).await.unwrap());
    }

    async fn other(&mut self, other: &Other) {
        let engine = OtherEngine(&self.warehouse);
        match other {
            Other::Append(drawn) => {
                let (is_keyed, value) = (self.model.is_keyed, self.model.next_value);
                let rows: Vec<Row> = drawn
                    .iter()
                    .map(|(id, p)| match is_keyed {
                        true => row(*id, &format!("other{value}"), *p),
                        // Some are equal to rows of the job.
                        false => (*id, (*p > 0).then(|| format!("w{p}")), *p),
                    })
                    .collect();
                self.model.next_value += 1;
                engine.append(&rows).await;
                rows.iter().for_each(|row| change(&mut self.model.rows, row, 1));
            }
            Other::Rewrite(keeps_sequence_number) => engine.rewrite(*keeps_sequence_number).await,
            Other::Delete(id, _) if self.model.is_keyed => {
                engine.delete(|row| row.0 == *id).await;
                self.model.rows.retain(|row, _| row.0 != *id);
            }
            Other::RollBack(count) if self.model.is_keyed => {
                let table = self.warehouse.table().await;
                let mut at = table.metadata().current_snapshot().cloned();
                for _ in 0..*count {
                    let parent = at.as_ref().and_then(|at| at.parent_snapshot_id());
                    at = parent.and_then(|parent| table.metadata().snapshot_by_id(parent).cloned()).or(at);
                }
                if let Some(at) = at {
                    engine.roll_back(at.snapshot_id()).await;
                    self.model.rows = self.model.snapshots[&at.snapshot_id()].clone();
                    // What was replaced is to be looked up again.
                    self.model.prepared.iter_mut().for_each(|effect| effect.replaced.clear());
                }
            }
            // Which of equal rows a commit takes away is settled when it is prepared.
            Other::Delete(id, is_last) if self.model.prepared.is_empty() => {
                let row = self.model.rows.keys().find(|row| row.0 == *id).cloned();
                if let Some(row) = row {
                    engine.delete_one(&row, *is_last).await;
                    change(&mut self.model.rows, &row, -1);
                }
            }
            Other::Delete(..) | Other::RollBack(_) => {}
        }
        self.note().await;
    }

    /// Notes what the current snapshot should show.
    async fn note(&mut self) {
        let table = self.warehouse.table().await;
        if let Some(current) = table.metadata().current_snapshot() {
            self.model.snapshots.entry(current.snapshot_id()).or_insert_with(|| self.model.rows.clone());
        }
    }

    /// Compares what the table shows, also in the snapshots that came with the commits before the last.
    async fn check(&mut self, states: Vec<BTreeMap<Row, i64>>) -> Result<(), TestCaseError> {
        let table = self.warehouse.table().await;
        let mut next = table.metadata().current_snapshot().cloned();
        let mut expected = self.model.rows.clone();
        let mut earlier = states.into_iter().rev().skip(1);
        while let Some(snapshot) = next.filter(|of| !self.model.snapshots.contains_key(&of.snapshot_id())) {
            let id = snapshot.snapshot_id();
            let mut found = BTreeMap::new();
            rows_at(&table, Some(id)).await.iter().for_each(|row| change(&mut found, row, 1));
            // A checkpoint that changes nothing has no snapshot.
            while found != expected
                && id != table.metadata().current_snapshot_id().unwrap()
                && let Some(state) = earlier.next()
            {
                expected = state;
            }
            prop_assert_eq!(&found, &expected);
            self.model.snapshots.insert(id, found);
            next = snapshot.parent_snapshot_id().and_then(|id| table.metadata().snapshot_by_id(id).cloned());
        }
        let mut found = BTreeMap::new();
        self.warehouse.rows().await.iter().for_each(|row| change(&mut found, row, 1));
        prop_assert_eq!(&found, &self.model.rows);
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Write(drawn) => {
                let rows = self.model.write(drawn);
                if !rows.is_empty() {
                    self.job().write(&rows).await.unwrap();
                }
            }
            Step::Checkpoint(others) => {
                self.job().prepare().await.unwrap();
                self.job().save();
                self.model.prepare();
                self.model.own.1 = self.model.own.0.clone();
                for other in others {
                    self.other(other).await;
                }
                self.job().commit().await.unwrap();
                let states = self.model.commit(false);
                self.check(states).await?;
            }
            Step::FailedCheckpoint => {
                self.job().prepare().await.unwrap();
                self.model.prepare();
            }
            Step::CrashBeforeCommit(writers, others) => {
                self.job().prepare().await.unwrap();
                self.job().save();
                self.model.prepare();
                self.model.own.1 = self.model.own.0.clone();
                for other in others {
                    self.other(other).await;
                }
                self.restart(*writers, false).await;
                let states = self.model.commit(true);
                self.check(states).await?;
            }
            Step::Crash(writers) => {
                self.restart(*writers, false).await;
                self.model.lose();
                self.check(Vec::new()).await?;
            }
            Step::OtherJob(writers) => {
                self.restart(*writers, true).await;
                self.model.lose();
                self.check(Vec::new()).await?;
            }
            Step::Other(other) => self.other(other).await,
        }
        Ok(())
    }
}

fn run(is_keyed: bool, is_partitioned: bool, steps: &[Step]) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut history = History::new(is_keyed, is_partitioned).await;
        for step in steps {
            history.step(step).await?;
        }
        history.step(&Step::Checkpoint(Vec::new())).await
    })
}

/// Few by default, as every commit is made durable.
fn cases() -> u32 {
    std::env::var("LAKEHEAD_UPSERT_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(10)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_table_shows_the_last_row_of_every_key(
        steps in prop::collection::vec(step(), 1..24),
        is_partitioned: bool,
    ) {
        run(true, is_partitioned, &steps)?;
    }

    #[test]
    fn whatever_happens_a_table_without_key_mirrors_the_changes(
        steps in prop::collection::vec(step(), 1..24),
        is_partitioned: bool,
    ) {
        run(false, is_partitioned, &steps)?;
    }
}
