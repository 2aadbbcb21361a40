//! A job that is killed at random moments and started again has the result of one that never was: joins, aggregates, DISTINCT and
//! Top-N into files of changes, and a join into plain files, all in one statement set.
//!
//! The job tells its durable steps on standard error. That is how the test knows how far it is: it waits for a number of steps, and
//! then some moment longer.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Child;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::Written;
use crate::support::run::Lakehead;

/// How often jobs are killed, unless `LAKEHEAD_CRASH_KILLS` says otherwise.
const KILLS: u64 = 20;

/// How often one job is killed before it may finish.
const KILLS_PER_JOB: u64 = 4;

/// The most steps that are waited for before a kill.
const STEPS_MAX: usize = 500;

/// The tables that hold changes.
const CHANGE_SINKS: &[&str] = &["totals", "channels", "best"];

/// The job, which goes on with another number of workers each time. Rows come for about a second, and checkpoints follow each other as fast as they can, so that a kill may hit any step.
const JOB: &str = "
SET 'execution.checkpointing.interval' = '5 ms';
SET 'execution.checkpointing.dir' = '{root}/checkpoints';
SET 'parallelism.default' = '{workers}';
SET 'pipeline.name' = 'crash';
SET 'lakehead.job.resume' = 'latest';
CREATE TABLE orders (id INT, customer INT, amount INT, channel STRING, PRIMARY KEY (id) NOT ENFORCED)
  WITH ('connector' = 'filesystem', 'path' = '{root}/in/orders', 'format' = 'debezium-json');
CREATE TABLE ticks (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000',
  'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '1000');
CREATE TEMPORARY VIEW visits AS
  SELECT n, CAST(MOD(n * 7, 41) AS INT) AS customer, CAST(MOD(n * n, 9) AS INT) AS page FROM ticks;
CREATE TABLE pages (page INT, title STRING)
  WITH ('connector' = 'filesystem', 'path' = '{root}/in/pages', 'format' = 'json');
CREATE TABLE totals (customer INT, orders BIGINT, amount INT, pages BIGINT)
  WITH ('connector' = 'filesystem', 'path' = '{root}/out/totals', 'format' = 'debezium-json');
CREATE TABLE channels (channel STRING, pages BIGINT, visitors BIGINT, largest INT)
  WITH ('connector' = 'filesystem', 'path' = '{root}/out/channels', 'format' = 'debezium-json');
CREATE TABLE best (page INT, customer INT, visits BIGINT, place BIGINT)
  WITH ('connector' = 'filesystem', 'path' = '{root}/out/best', 'format' = 'debezium-json');
CREATE TABLE titles (n BIGINT, title STRING)
  WITH ('connector' = 'filesystem', 'path' = '{root}/out/titles', 'format' = 'csv');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO totals SELECT o.customer, COUNT(*), SUM(o.amount), MAX(v.n)
    FROM orders AS o JOIN (SELECT customer, COUNT(DISTINCT page) AS n FROM visits GROUP BY customer) AS v
      ON o.customer = v.customer GROUP BY o.customer;
  INSERT INTO channels SELECT o.channel, COUNT(DISTINCT v.page), COUNT(DISTINCT v.customer), MAX(o.amount)
    FROM orders AS o JOIN visits AS v ON o.customer = v.customer GROUP BY o.channel;
  INSERT INTO best SELECT page, customer, visits, place FROM
    (SELECT *, ROW_NUMBER() OVER (PARTITION BY page ORDER BY visits DESC, customer) AS place
      FROM (SELECT page, customer, COUNT(*) AS visits FROM visits GROUP BY page, customer)) WHERE place <= 3;
  INSERT INTO titles SELECT v.n, p.title FROM visits AS v JOIN pages AS p ON v.page = p.page;
END;
";

/// Writes the inputs: a history of orders in several files, and a few pages.
fn write_inputs(root: &Path, rng: &mut StdRng) {
    let mut orders: Vec<[i64; 3]> = Vec::new();
    let mut deleted = BTreeSet::new();
    let order = |row: &[i64; 3], id: usize| {
        format!("{{\"id\":{id},\"customer\":{},\"amount\":{},\"channel\":\"c{}\"}}", row[0], row[1], row[2])
    };
    for file in 0..6 {
        let mut text = String::new();
        for _ in 0..60 {
            let new = [rng.random_range(0..41), rng.random_range(1..500), rng.random_range(0..6)];
            let known = (!orders.is_empty())
                .then(|| rng.random_range(0..orders.len()))
                .filter(|id| !deleted.contains(id));
            let (before, after, op) = match (rng.random_range(0..4_u32), known) {
                (0, Some(id)) => {
                    let old = order(&orders[id], id);
                    orders[id] = new;
                    (old, order(&new, id), "u")
                }
                (1, Some(id)) => {
                    deleted.insert(id);
                    (order(&orders[id], id), "null".to_owned(), "d")
                }
                _ => {
                    orders.push(new);
                    ("null".to_owned(), order(&new, orders.len() - 1), "c")
                }
            };
            let _ = writeln!(text, "{{\"before\":{before},\"after\":{after},\"op\":\"{op}\"}}");
        }
        write_file(root, &format!("in/orders/part-{file}"), &text);
    }
    let pages: String = (0..8).map(|page| format!("{{\"page\":{page},\"title\":\"t{page}\"}}\n")).collect();
    write_file(root, "in/pages/part-0", &pages);
}

/// Writes a file and the folders above it.
pub(super) fn write_file(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn written(root: &Path) -> Written {
    Written::read(root, CHANGE_SINKS, "titles")
}

/// When a process is killed: after a number of steps and a moment more.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kill {
    steps: usize,
    moment: Duration,
}

impl Kill {
    /// Draws a moment after less than so many steps.
    pub(super) fn draw_below(steps_max: usize, rng: &mut StdRng) -> Kill {
        Kill {
            steps: rng.random_range(0..steps_max),
            moment: Duration::from_micros(rng.random_range(0..20_000)),
        }
    }
}

/// How a run went.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) has_ended: bool,
    /// The checkpoints that were durable.
    checkpoints: usize,
}

/// Runs the job with some workers until it ends or is killed.
fn run(root: &Path, workers: u64, kill: Option<Kill>) -> Run {
    let workers = workers.to_string();
    run_script_until(&JOB.replace("{root}", root.to_str().unwrap()).replace("{workers}", &workers), kill)
}

/// Runs a script until it ends or is killed.
pub(super) fn run_script_until(script: &str, kill: Option<Kill>) -> Run {
    let lakehead = Lakehead::new().variable("RUST_LOG", "lakehead::durable_step=trace");
    let script = lakehead.file("job.sql", script);
    let lakehead = lakehead.and(&["-f", &script]);
    let mut child = lakehead.spawn();
    let (steps, text) = listen(&mut child);
    let mut run = Run::default();
    let mut take =
        |line: &str| run.checkpoints += usize::from(line.contains("rename") && line.contains("_metadata"));
    let until_killed = kill.map_or(usize::MAX, |kill| kill.steps);
    let mut has_ended = steps.iter().take(until_killed).map(|line| take(&line)).count() < until_killed;
    if let Some(Kill { moment, .. }) = kill.filter(|_| !has_ended) {
        let until = Instant::now() + moment;
        loop {
            match steps.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => take(&line),
                Err(error) => {
                    has_ended = error == mpsc::RecvTimeoutError::Disconnected;
                    break;
                }
            }
        }
        child.kill().unwrap();
    }
    let status = child.wait().unwrap();
    run.has_ended = has_ended || status.success();
    let text = text.join().unwrap();
    assert!(!run.has_ended || status.success(), "{text}");
    run
}

/// Listens to what a process prints: its durable steps as they come, and everything else once it has ended.
fn listen(child: &mut Child) -> (mpsc::Receiver<String>, std::thread::JoinHandle<String>) {
    let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (sender, steps) = mpsc::channel();
    let text = std::thread::spawn(move || {
        let mut text = String::new();
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if line.contains("durable_step") {
                // Once the process is killed nobody listens.
                let _ = sender.send(line);
            } else {
                text.push_str(&line);
            }
        }
        text + &std::io::read_to_string(stdout).unwrap_or_default()
    });
    (steps, text)
}

/// Returns a number from the environment.
pub(super) fn number_from_environment(key: &str, default: u64) -> u64 {
    std::env::var(key).ok().map_or(default, |text| text.parse().unwrap())
}

#[test]
fn a_job_that_is_killed_has_the_result_of_one_that_never_was() {
    let kills = number_from_environment("LAKEHEAD_CRASH_KILLS", KILLS);
    let seed = number_from_environment("LAKEHEAD_CRASH_SEED", 7);
    let mut rng = StdRng::seed_from_u64(seed);
    let unbroken = tempfile::tempdir().unwrap();
    write_inputs(unbroken.path(), &mut StdRng::seed_from_u64(seed));
    assert!(run(unbroken.path(), 2, None).has_ended);
    let expected = written(unbroken.path());
    assert!(expected.changes.iter().all(|rows| !rows.is_empty() && rows.values().all(|count| *count == 1)));
    assert!(expected.lines.len() > 500);
    let (mut killed, mut in_the_middle) = (0, 0);
    while killed < kills {
        let root = tempfile::tempdir().unwrap();
        write_inputs(root.path(), &mut StdRng::seed_from_u64(seed));
        let mut has_ended = false;
        for _ in 0..KILLS_PER_JOB.min(kills - killed) {
            let kill = Kill::draw_below(STEPS_MAX, &mut rng);
            let run = run(root.path(), rng.random_range(1..=3), Some(kill));
            written(root.path()).assert_part_of(&expected);
            has_ended = run.has_ended;
            if has_ended {
                break;
            }
            killed += 1;
            in_the_middle += u64::from(run.checkpoints > 0);
        }
        if !has_ended {
            assert!(run(root.path(), 2, None).has_ended);
        }
        assert_eq!(written(root.path()), expected, "seed {seed}, after {killed} kills");
        if killed == kills {
            assert!(run(root.path(), 2, None).has_ended);
            assert_eq!(written(root.path()), expected, "a job that has ended has nothing to add");
        }
    }
    assert!(in_the_middle * 3 >= kills, "only {in_the_middle} of {kills} kills hit a job after a checkpoint");
}
