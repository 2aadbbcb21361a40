//! Jobs that keep an Iceberg table by upserts, and are killed: the table then is what the source says, every snapshot on the way shows
//! what the source said at some moment, and nothing is there twice.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;

use super::durable_steps::{assert_kinds, at_every_step, dying, run_until};
use super::random_kills::{Kill, number_from_environment, run_script_until, write_file};
use super::{files, has_checkpoint};
use crate::support::session::{Conversation, run_script};

/// How often jobs are killed, unless `LAKEHEAD_UPSERT_KILLS` says otherwise.
const KILLS: u64 = 30;

/// How many keys the source has, unless `LAKEHEAD_UPSERT_KEYS` says otherwise.
const KEYS: u64 = 20_000;

/// How often one job is killed before it may finish.
const KILLS_PER_JOB: u64 = 5;

/// The most steps that are waited for before a kill.
const STEPS_MAX: usize = 400;

/// How many files the source has: each is at least one epoch.
const FILES: u64 = 24;

const JOB: &str = "
SET 'execution.checkpointing.interval' = '5 ms';
SET 'execution.checkpointing.dir' = '{root}/checkpoints';
SET 'parallelism.default' = '{workers}';
SET 'pipeline.name' = 'upserts';
SET 'lakehead.job.resume' = 'latest';
SET 'lakehead.epoch.max-rows' = '1';
SET 'table.dml-sync' = 'true';
CREATE TABLE changes (id BIGINT, n BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED)
  WITH ('connector' = 'filesystem', 'path' = '{root}/in', 'format' = 'debezium-json');
{insert}";

/// How the jobs keep the table `lake.db.t`.
const INSERT: &str = "
CREATE CATALOG lake WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = 'file://{root}/warehouse');
CREATE DATABASE IF NOT EXISTS lake.db;
CREATE TABLE IF NOT EXISTS lake.db.t (id BIGINT, n BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED);
INSERT INTO lake.db.t SELECT id, n, name FROM changes;
";

/// What a table shows: how many rows, how many keys, and the sum of what tells the versions of rows apart.
type Shown = (u64, u64, u64);

/// A source, and what a table must show after each of its messages.
struct Source {
    files: Vec<String>,
    /// What is shown, and after how many messages that is so for the first time.
    moments: HashMap<Shown, usize>,
    last: Shown,
}

impl Source {
    fn draw(keys: u64, rng: &mut StdRng) -> Source {
        let mut live: BTreeMap<u64, u64> = BTreeMap::new();
        let (mut files, mut moments, mut sum) = (Vec::new(), HashMap::from([((0, 0, 0), 0)]), 0);
        let messages = keys * 5 / 2;
        for file in 0..FILES {
            let mut text = String::new();
            for n in file * messages / FILES + 1..=(file + 1) * messages / FILES {
                let id = rng.random_range(0..keys);
                let row =
                    |n: u64| format!("{{\"id\":{id},\"n\":{n},\"name\":\"name {}\"}}", id * 7919 % 10_007);
                let is_delete = rng.random_range(0..5_u32) == 0;
                let (before, after, op) = match live.get(&id).copied() {
                    Some(old) if is_delete => {
                        live.remove(&id);
                        sum -= old;
                        (row(old), "null".to_owned(), "d")
                    }
                    Some(old) => {
                        live.insert(id, n);
                        sum += n - old;
                        (row(old), row(n), "u")
                    }
                    None => {
                        live.insert(id, n);
                        sum += n;
                        ("null".to_owned(), row(n), "c")
                    }
                };
                let _ = writeln!(text, "{{\"before\":{before},\"after\":{after},\"op\":\"{op}\"}}");
                moments.entry((live.len() as u64, live.len() as u64, sum)).or_insert(n as usize);
            }
            files.push(text);
        }
        Source { files, moments, last: (live.len() as u64, live.len() as u64, sum) }
    }

    fn write(&self, root: &Path) {
        for (at, text) in self.files.iter().enumerate() {
            write_file(root, &format!("in/part-{at:03}"), text);
        }
    }
}

/// Returns the ids of the table's snapshots, oldest first, and the current one; none if there is no table yet.
fn history(root: &Path) -> Vec<i64> {
    let is_metadata = |path: &std::path::PathBuf| path.to_string_lossy().ends_with(".metadata.json");
    let version = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.trim_start_matches('v').split('.').next().unwrap().parse::<u64>().ok()
    };
    let metadata = files(&root.join("warehouse")).into_iter().filter(is_metadata);
    let Some(newest) = metadata.filter(|path| version(path).is_some()).max_by_key(version) else {
        return Vec::new();
    };
    let metadata: Value = serde_json::from_slice(&fs::read(newest).unwrap()).unwrap();
    let parents: HashMap<i64, Option<i64>> = metadata["snapshots"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|snapshot| (snapshot["snapshot-id"].as_i64().unwrap(), snapshot["parent-snapshot-id"].as_i64()))
        .collect();
    let mut history = Vec::new();
    let mut next = metadata["current-snapshot-id"].as_i64().filter(|id| *id != -1);
    while let Some(id) = next {
        history.push(id);
        next = parents[&id];
    }
    history.reverse();
    history
}

/// A session that looks at the table.
struct Reader {
    session: Conversation,
}

impl Reader {
    fn new(root: &Path) -> Reader {
        let mut session = Conversation::new();
        let catalog = format!(
            "CREATE CATALOG lake WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = 'file://{}/warehouse')",
            root.display()
        );
        session.expect(&[("SET 'execution.runtime-mode' = 'batch'", "ok"), (catalog.as_str(), "ok")]);
        Reader { session }
    }

    fn shown(&mut self, snapshot: i64) -> Shown {
        let query = format!(
            "SELECT COUNT(*), COUNT(DISTINCT id), COALESCE(SUM(n), 0) FROM lake.db.t /*+ OPTIONS('snapshot-id' = '{snapshot}') */"
        );
        let answer = self.session.answer(&query);
        let numbers: Vec<u64> = answer
            .split('|')
            .map(|cell| cell.parse().unwrap_or_else(|_| panic!("snapshot {snapshot}: {answer}")))
            .collect();
        (numbers[0], numbers[1], numbers[2])
    }

    /// Checks every snapshot from the nth on: it shows what the source said at a moment, and they come in the order of the source.
    fn check_history(&mut self, history: &[i64], from: usize, source: &Source) -> Shown {
        let (mut shown, mut moment) = ((0, 0, 0), 0);
        for snapshot in &history[from.min(history.len())..] {
            shown = self.shown(*snapshot);
            let of = source.moments.get(&shown);
            let of =
                *of.unwrap_or_else(|| panic!("no moment of the source shows {shown:?}, as {snapshot} does"));
            assert!(of >= moment, "snapshot {snapshot} goes back to an earlier moment");
            moment = of;
        }
        shown
    }
}

fn run(root: &Path, workers: u64, kill: Option<Kill>) -> bool {
    let workers = workers.to_string();
    let script = JOB
        .replace("{insert}", INSERT)
        .replace("{root}", root.to_str().unwrap())
        .replace("{workers}", &workers);
    run_script_until(&script, kill).has_ended
}

#[test]
fn a_table_that_killed_jobs_have_kept_is_what_the_source_says() {
    let kills = number_from_environment("LAKEHEAD_UPSERT_KILLS", KILLS);
    let keys = number_from_environment("LAKEHEAD_UPSERT_KEYS", KEYS);
    let seed = number_from_environment("LAKEHEAD_CRASH_SEED", 7);
    let mut rng = StdRng::seed_from_u64(seed);
    let source = Source::draw(keys, &mut rng);
    let (mut killed, mut with_snapshots) = (0, 0);
    while killed < kills {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        source.write(root);
        let mut checked = 0;
        let mut has_ended = false;
        for _ in 0..KILLS_PER_JOB.min(kills - killed) {
            has_ended = run(root, rng.random_range(1..=3), Some(Kill::draw_below(STEPS_MAX, &mut rng)));
            let history = history(root);
            if !history.is_empty() {
                Reader::new(root).check_history(&history, checked, &source);
            }
            checked = history.len();
            if has_ended {
                break;
            }
            killed += 1;
            with_snapshots += u64::from(!history.is_empty());
        }
        if !has_ended {
            assert!(run(root, 2, None));
        }
        let history = history(root);
        let shown = Reader::new(root).check_history(&history, checked.saturating_sub(1), &source);
        assert_eq!(shown, source.last, "seed {seed}, after {killed} kills");
    }
    // How many do depends on how fast the machine commits.
    assert!(with_snapshots > 0, "none of {kills} kills hit a job after a commit");
}

/// A small job, each of whose steps is to be the last.
const SMALL_JOB: &str = "
SET 'execution.checkpointing.interval' = '1 ms';
SET 'execution.checkpointing.dir' = '{root}/checkpoints';
SET 'pipeline.name' = 'upserts';
SET 'parallelism.default' = '1';
SET 'lakehead.epoch.max-rows' = '1';
SET 'table.dml-sync' = 'true';
CREATE TABLE changes (id BIGINT, n BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED)
  WITH ('connector' = 'values', 'changelog-mode' = 'I,UB,UA,D', 'rows-per-frame' = '4', 'waits-for-checkpoints' = 'true', 'rows' = '{rows}');
{insert}";

/// The changes of the small job: kind, id, n. A frame has four.
const CHANGES: &[(&str, u64, u64)] = &[
    ("+I", 1, 1),
    ("+I", 2, 2),
    ("+I", 3, 3),
    ("+I", 4, 4),
    ("-U", 1, 1),
    ("+U", 1, 5),
    ("-D", 2, 2),
    ("+I", 5, 6),
    ("-U", 1, 5),
    ("+U", 1, 7),
    ("+I", 2, 8),
    ("-D", 5, 6),
    ("-U", 3, 3),
    ("+U", 3, 9),
    ("-D", 4, 4),
    ("+I", 4, 10),
];

fn run_small(root: &Path) {
    let rows: Vec<String> =
        CHANGES.iter().map(|(kind, id, n)| format!("[\"{kind}\",{id},{n},\"name {id}\"]")).collect();
    let job = SMALL_JOB.replace("{insert}", INSERT).replace("{root}", root.to_str().unwrap());
    let job = job.replace("{rows}", &format!("[{}]", rows.join(",")));
    // The first time the job is to remove its checkpoints at its end.
    let resume = if has_checkpoint(root) { "SET 'lakehead.job.resume' = 'latest';" } else { "" };
    run_script(&format!("{resume}{job}")).unwrap();
}

/// Returns what the source says after each frame.
fn small_moments() -> Vec<Shown> {
    let mut live: BTreeMap<u64, u64> = BTreeMap::new();
    let mut moments = vec![(0, 0, 0)];
    for frame in CHANGES.chunks(4) {
        for (kind, id, n) in frame {
            match *kind {
                "+I" | "+U" => drop(live.insert(*id, *n)),
                _ => drop(live.remove(id)),
            }
        }
        moments.push((live.len() as u64, live.len() as u64, live.values().sum()));
    }
    moments
}

/// Fails unless every snapshot shows a moment of the source; returns what the last one shows.
fn check_small(root: &Path, place: &str) -> Shown {
    let mut shown = (0, 0, 0);
    let history = history(root);
    if history.is_empty() {
        return shown;
    }
    let mut reader = Reader::new(root);
    for snapshot in history {
        shown = reader.shown(snapshot);
        assert!(small_moments().contains(&shown), "{place}: a snapshot shows {shown:?}");
    }
    shown
}

const STEP_TEST: &str =
    "crash::iceberg_upserts::a_table_whose_job_dies_at_any_durable_step_is_what_the_source_says";

#[test]
fn a_table_whose_job_dies_at_any_durable_step_is_what_the_source_says() {
    if let Some(root) = dying() {
        return run_small(&root);
    }
    let last = small_moments()[CHANGES.len() / 4];
    let unbroken = tempfile::tempdir().unwrap();
    let (steps, has_ended) = run_until(STEP_TEST, unbroken.path(), u64::MAX);
    assert!(has_ended);
    assert_eq!(check_small(unbroken.path(), "unbroken"), last);
    let kinds = [
        r"^(rename|link) .*/data/[^/]*\.parquet$",
        r"^(rename|link) .*/data/[^/]*-deletes\.parquet$",
        r"^(rename|link) .*/metadata/[^/]*\.avro$",
        r"^(rename|link) .*/metadata/v[0-9]*\.metadata\.json$",
        r"^rename .*/_metadata$",
    ];
    assert_kinds(&kinds, &steps);
    assert!(
        at_every_step(|step| {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path();
            let (steps, has_ended) = run_until(STEP_TEST, root, step);
            let place = format!("death at step {step}, {:?}", steps.last());
            check_small(root, &place);
            if has_ended {
                return false;
            }
            // Once more while it goes on.
            run_until(STEP_TEST, root, step * 7 % 40 + 1);
            check_small(root, &place);
            run_small(root);
            assert_eq!(check_small(root, &place), last, "{place}");
            true
        }) > 60
    );
}
