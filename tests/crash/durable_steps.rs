//! A job that dies at any one of the steps that make something last, and is started again, has the result of one that never did.
//!
//! The test runs itself once more as the process that dies: it listens to the steps as they are told, and aborts at one.

use std::env;
use std::fmt::Debug;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, abort};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lakehead::session::StatementResult;
use tracing::field::Field;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use super::{Written, files, has_checkpoint, is_hidden};
use crate::support::session::run_script;

/// The variable with the folder of the job that dies.
const ROOT: &str = "LAKEHEAD_STEPS_ROOT";

/// The variable with the number of the step at which it dies.
const LAST: &str = "LAKEHEAD_STEPS_LAST";

/// What precedes a step on standard error.
const MARK: &str = "durable step: ";

/// The most steps that a run may take: the test is to be quick.
const STEPS_MAX: u64 = 600;

/// About how many steps a job takes from its restart to the end of its next checkpoint.
const STEPS_OF_A_RESTART: u64 = 60;

/// A small job with a few checkpoints: two sources, an aggregate of changes, a join.
const JOB: &str = "
SET 'execution.checkpointing.interval' = '1 ms';
SET 'execution.checkpointing.dir' = '{root}/checkpoints';
SET 'pipeline.name' = 'crash';
SET 'parallelism.default' = '1';
SET 'lakehead.epoch.max-rows' = '1';
SET 'lakehead.state.delta-size' = '0';
SET 'table.dml-sync' = 'true';
CREATE TABLE orders (id INT, customer INT, amount INT, PRIMARY KEY (id) NOT ENFORCED)
  WITH ('connector' = 'values', 'changelog-mode' = 'I,UB,UA,D', 'rows-per-frame' = '1', 'rows' = '{orders}');
CREATE TABLE customers (customer INT, name STRING)
  WITH ('connector' = 'values', 'rows' = '[[0,\"a\"],[1,\"b\"],[2,\"c\"]]');
CREATE TABLE visits (n INT, customer INT)
  WITH ('connector' = 'values', 'rows-per-frame' = '1', 'rows' = '{visits}');
CREATE TABLE totals (customer INT, orders BIGINT, amounts BIGINT, largest INT)
  WITH ('connector' = 'filesystem', 'path' = '{root}/out/totals', 'format' = 'debezium-json');
CREATE TABLE names (n INT, name STRING)
  WITH ('connector' = 'filesystem', 'path' = '{root}/out/names', 'format' = 'csv');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO totals SELECT customer, COUNT(*), COUNT(DISTINCT amount), MAX(amount) FROM orders GROUP BY customer;
  INSERT INTO names SELECT v.n, c.name FROM visits AS v JOIN customers AS c ON v.customer = c.customer;
END;
";

fn job(root: &Path) -> String {
    let mut orders = Vec::new();
    for id in 0..10 {
        let (customer, amount) = (id % 3, id * 7 % 5);
        orders.push(format!("[\"+I\",{id},{customer},{amount}]"));
        if id % 2 == 0 {
            orders
                .push(format!("[\"-U\",{id},{customer},{amount}],[\"+U\",{id},{customer},{}]", amount + 10));
        }
        if id % 5 == 1 {
            orders.push(format!("[\"-D\",{id},{customer},{amount}]"));
        }
    }
    let visits: Vec<String> = (0..24).map(|n| format!("[{n},{}]", n % 4)).collect();
    let list = |rows: &[String]| format!("[{}]", rows.join(","));
    let job = JOB.replace("{root}", root.to_str().unwrap());
    let job = job.replace("{orders}", &list(&orders)).replace("{visits}", &list(&visits));
    // The first time the job is to remove its checkpoints at its end.
    if has_checkpoint(root) { format!("SET 'lakehead.job.resume' = 'latest';\n{job}") } else { job }
}

/// Runs the job to its end in this process.
fn run(root: &Path) {
    let result = run_script(&job(root)).unwrap();
    assert!(matches!(result, StatementResult::JobFinished(_)), "{result:?}");
}

/// What stops the job with a savepoint, once another job has run meanwhile.
const STOP: &str = "
CREATE TABLE one (n INT) WITH ('connector' = 'values', 'rows' = '[[1]]');
CREATE TABLE nothing (n INT) WITH ('connector' = 'blackhole');
SET 'table.dml-sync' = 'true';
INSERT INTO nothing SELECT n FROM one;
SET 'execution.checkpointing.savepoint-dir' = '{root}/savepoints';
STOP JOB '{job}' WITH SAVEPOINT;
";

/// Starts the job with sources that stay open and without checkpoints, and stops it with a savepoint.
fn stop(root: &Path) {
    let open = job(root)
        .replace("SET 'execution.checkpointing.interval' = '1 ms';", "")
        .replace("SET 'table.dml-sync' = 'true';", "")
        .replace("'connector' = 'values'", "'connector' = 'values', 'bounded' = 'false'");
    run_script(&(open + &STOP.replace("{root}", root.to_str().unwrap()))).unwrap();
}

fn written(root: &Path) -> Written {
    Written::read(root, &["totals"], "names")
}

/// Tells the steps, and dies at one.
struct DieAt {
    last: u64,
    count: AtomicU64,
}

impl<S: tracing::Subscriber> Layer<S> for DieAt {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() != "lakehead::durable_step" {
            return;
        }
        let mut fields = Vec::new();
        event.record(&mut |_: &Field, value: &dyn Debug| {
            fields.push(format!("{value:?}").trim_matches('"').to_owned());
        });
        let text = format!("{MARK}{}\n", fields.join(" "));
        std::io::stderr().write_all(text.as_bytes()).unwrap();
        if self.count.fetch_add(1, Ordering::SeqCst) + 1 == self.last {
            abort();
        }
    }
}

/// Runs a test of this file as a process that dies at a step; returns the steps that it told, and whether it ended before.
pub(super) fn run_until(test: &str, root: &Path, last: u64) -> (Vec<String>, bool) {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    let output = command.env(ROOT, root).env(LAST, last.to_string()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    let steps: Vec<String> =
        text.lines().filter_map(|line| line.split_once(MARK)).map(|(_, step)| step.to_owned()).collect();
    let has_ended = output.status.success();
    assert!(has_ended || steps.len() as u64 >= last, "it died of something else: {text}");
    (steps, has_ended)
}

/// The names of the tests below.
const TEST: &str =
    "crash::durable_steps::a_job_that_dies_at_any_durable_step_has_the_result_of_one_that_never_did";
const STOP_TEST: &str =
    "crash::durable_steps::a_job_that_dies_while_it_stops_with_a_savepoint_goes_on_from_what_is_there";

/// In the process that dies: listens, and returns the folder of the job. None in the process of the test.
pub(super) fn dying() -> Option<PathBuf> {
    let (root, last) = (env::var_os(ROOT)?, env::var(LAST).ok()?);
    let die = DieAt { last: last.parse().unwrap(), count: AtomicU64::new(0) };
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(die)).unwrap();
    Some(root.into())
}

/// Lets a job die at a step, and once more while it goes on; returns false if it ended before the step.
fn check(last: u64, expected: &Written) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let mut place = String::new();
    let mut has_begun = false;
    for (death, last) in [last, last * 7 % STEPS_OF_A_RESTART + 1].into_iter().enumerate() {
        let (steps, has_ended) = run_until(TEST, root, last);
        let found = written(root);
        if has_ended {
            assert_eq!(&found, expected, "{place}");
            return death > 0;
        }
        place.push_str(&format!("death at step {last}, {}; ", steps[last as usize - 1]));
        found.assert_part_of(expected);
        if !has_checkpoint(root) && !found.is_empty() {
            assert_eq!(
                &found, expected,
                "{place}a job without checkpoints has written nothing, or has ended"
            );
            return true;
        }
        has_begun |= death == 0 && has_checkpoint(root);
    }
    run(root);
    assert_eq!(&written(root), expected, "{place}");
    let left: Vec<_> = files(&root.join("out")).into_iter().filter(|path| is_hidden(path)).collect();
    assert!(left.is_empty() || !has_begun, "{place}: {left:?}");
    true
}

/// Fails unless steps of every kind are among those that a run has told.
fn assert_every_kind(steps: &[String]) {
    let kinds = [
        r"^write .*\.seg$",
        r"^sync .*\.seg$",
        r"^sync .*/shared$",
        r"^rename .*/_metadata$",
        r"^remove .*/_metadata$",
        r"^remove .*\.seg$",
        r"^write .*\.inprogress$",
        r"^sync .*\.inprogress$",
        r"^rename .*/totals/part-[^/]*$",
        r"^sync .*/totals$",
    ];
    assert_kinds(&kinds, steps);
}

/// Fails unless each of these patterns is that of a step.
pub(super) fn assert_kinds(kinds: &[&str], steps: &[String]) {
    for kind in kinds {
        let pattern = regex::Regex::new(kind).unwrap();
        assert!(steps.iter().any(|step| pattern.is_match(step)), "no step is {kind}: {steps:#?}");
    }
}

/// Returns whether a step is about a segment of several checkpoints: `rows-2-5-….seg`.
fn is_merged(step: &str) -> bool {
    let numbers = step.split_once("/rows-").map(|(_, name)| name.split('-').collect::<Vec<_>>());
    numbers.is_some_and(|numbers| numbers[0] != numbers[1])
}

#[test]
fn a_job_that_dies_at_any_durable_step_has_the_result_of_one_that_never_did() {
    if let Some(root) = dying() {
        return run(&root);
    }
    // How many checkpoints a run makes depends on the machine; one with enough of them to merge segments shows every kind of step.
    let (unbroken, steps) = (0..20)
        .map(|_| {
            let folder = tempfile::tempdir().unwrap();
            let (steps, has_ended) = run_until(TEST, folder.path(), u64::MAX);
            assert!(has_ended);
            (folder, steps)
        })
        .find(|(_, steps)| steps.iter().any(|step| is_merged(step)))
        .expect("no segments are merged");
    assert_every_kind(&steps);
    let expected = written(unbroken.path());
    assert_eq!((expected.changes[0].len(), expected.lines.len()), (3, 18));
    assert!(at_every_step(|last| check(last, &expected)) > 60);
}

/// Runs a check for one step after the other, until it returns false because there are no more; returns how many there were.
pub(super) fn at_every_step(check: impl Fn(u64) -> bool + Sync) -> u64 {
    let (next, is_over) = (AtomicU64::new(1), AtomicBool::new(false));
    let work = || {
        while !is_over.load(Ordering::SeqCst) {
            let last = next.fetch_add(1, Ordering::SeqCst);
            assert!(last < STEPS_MAX, "the job does not end");
            if !check(last) {
                is_over.store(true, Ordering::SeqCst);
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    next.into_inner()
}

/// Returns the savepoint that is complete.
fn savepoint(root: &Path) -> Option<PathBuf> {
    files(&root.join("savepoints")).into_iter().find(|path| path.ends_with("_metadata"))
}

#[test]
fn a_job_that_dies_while_it_stops_with_a_savepoint_goes_on_from_what_is_there() {
    if let Some(root) = dying() {
        return stop(&root);
    }
    let unbroken = tempfile::tempdir().unwrap();
    run(unbroken.path());
    let expected = written(unbroken.path());
    let written_before = AtomicU64::new(0);
    let steps = at_every_step(|last| {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let (steps, has_ended) = run_until(STOP_TEST, root, last);
        let place = format!("death at step {last}, {:?}", steps.last());
        let found = written(root);
        found.assert_part_of(&expected);
        written_before.fetch_add(found.lines.len() as u64, Ordering::SeqCst);
        match savepoint(root) {
            // A checkpoint of the job would be there as long as the savepoint is not complete.
            Some(path) if !has_checkpoint(root) => {
                let from = format!("SET 'execution.state-recovery.path' = '{}';\n", path.display());
                run_script(&(from + &job(root))).unwrap();
            }
            None if !has_checkpoint(root) => {
                assert!(found.is_empty() && !has_ended, "{place}: nothing says what was written");
                run(root);
            }
            _ => run(root),
        }
        assert_eq!(written(root), expected, "{place}");
        !has_ended
    });
    assert!(steps > 20, "only {steps} steps");
    assert!(written_before.into_inner() > 0, "no job had read anything when it was stopped");
}
