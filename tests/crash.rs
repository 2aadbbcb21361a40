//! A job that is killed at random and started again has the result of one that never was: join, aggregates, DISTINCT and Top-N
//! into files of changes, and a join into plain files, all in one statement set.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;

use crate::support::run::Lakehead;

/// How often jobs are killed, unless `LAKEHEAD_CRASH_KILLS` says otherwise.
const KILLS: usize = 20;

/// How often one job is killed before it may finish.
const KILLS_PER_JOB: usize = 4;

/// The tables that hold changes.
const CHANGE_SINKS: &[&str] = &["totals", "channels", "best"];

/// The job. Epochs are short and checkpoints follow each other, so that a kill may hit any step.
const JOB: &str = "
SET 'execution.checkpointing.interval' = '5 ms';
SET 'execution.checkpointing.dir' = '{root}/checkpoints';
SET 'lakehead.job.resume' = 'latest';
SET 'lakehead.epoch.max-rows' = '50';
SET 'pipeline.name' = 'crash';
CREATE TABLE orders (id INT, customer INT, amount INT, channel STRING, PRIMARY KEY (id) NOT ENFORCED)
  WITH ('connector' = 'filesystem', 'path' = '{root}/in/orders', 'format' = 'debezium-json');
CREATE TABLE visits (customer INT, page INT)
  WITH ('connector' = 'filesystem', 'path' = '{root}/in/visits', 'format' = 'json');
CREATE TABLE pages (page INT, title STRING)
  WITH ('connector' = 'filesystem', 'path' = '{root}/in/pages', 'format' = 'json');
CREATE TABLE totals (customer INT, orders BIGINT, amount INT, pages BIGINT)
  WITH ('connector' = 'filesystem', 'path' = '{root}/out/totals', 'format' = 'debezium-json');
CREATE TABLE channels (channel STRING, customers BIGINT, largest INT)
  WITH ('connector' = 'filesystem', 'path' = '{root}/out/channels', 'format' = 'debezium-json');
CREATE TABLE best (channel STRING, id INT, amount INT, place BIGINT)
  WITH ('connector' = 'filesystem', 'path' = '{root}/out/best', 'format' = 'debezium-json');
CREATE TABLE titles (customer INT, title STRING)
  WITH ('connector' = 'filesystem', 'path' = '{root}/out/titles', 'format' = 'csv');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO totals SELECT o.customer, COUNT(*), SUM(o.amount), MAX(v.n)
    FROM orders AS o JOIN (SELECT customer, COUNT(DISTINCT page) AS n FROM visits GROUP BY customer) AS v
      ON o.customer = v.customer GROUP BY o.customer;
  INSERT INTO channels SELECT channel, COUNT(DISTINCT customer), MAX(amount) FROM orders GROUP BY channel;
  INSERT INTO best SELECT channel, id, amount, place FROM
    (SELECT *, ROW_NUMBER() OVER (PARTITION BY channel ORDER BY amount DESC, id) AS place FROM orders) WHERE place <= 3;
  INSERT INTO titles SELECT v.customer, p.title FROM visits AS v JOIN pages AS p ON v.page = p.page;
END;
";

/// Writes the inputs: a history of orders in several files, visits, and a few pages.
fn write_inputs(root: &Path, rng: &mut StdRng) {
    let mut orders: Vec<[i64; 3]> = Vec::new();
    let order = |row: &[i64; 3], id: usize| {
        format!("{{\"id\":{id},\"customer\":{},\"amount\":{},\"channel\":\"c{}\"}}", row[0], row[1], row[2])
    };
    let mut deleted = std::collections::BTreeSet::new();
    for file in 0..6 {
        let mut text = String::new();
        for _ in 0..250 {
            let new = [rng.random_range(0..40), rng.random_range(1..500), rng.random_range(0..6)];
            let known = (!orders.is_empty())
                .then(|| rng.random_range(0..orders.len()))
                .filter(|id| !deleted.contains(id));
            match (rng.random_range(0..4_u32), known) {
                (0, Some(id)) => {
                    let old = order(&orders[id], id);
                    orders[id] = new;
                    let _ = writeln!(text, "{{\"before\":{old},\"after\":{},\"op\":\"u\"}}", order(&new, id));
                }
                (1, Some(id)) => {
                    deleted.insert(id);
                    let _ = writeln!(
                        text,
                        "{{\"before\":{},\"after\":null,\"op\":\"d\"}}",
                        order(&orders[id], id)
                    );
                }
                _ => {
                    orders.push(new);
                    let id = orders.len() - 1;
                    let _ = writeln!(text, "{{\"before\":null,\"after\":{},\"op\":\"c\"}}", order(&new, id));
                }
            }
        }
        write_file(root, &format!("in/orders/part-{file}"), &text);
        let visit = |rng: &mut StdRng| {
            format!("{{\"customer\":{},\"page\":{}}}\n", rng.random_range(0..40), rng.random_range(0..9))
        };
        let visits: String = (0..100).map(|_| visit(rng)).collect();
        write_file(root, &format!("in/visits/part-{file}"), &visits);
    }
    let pages: String = (0..8).map(|page| format!("{{\"page\":{page},\"title\":\"t{page}\"}}\n")).collect();
    write_file(root, "in/pages/part-0", &pages);
}

fn write_file(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Reads the lines of all visible files of a table. A line that is cut, or a visible file in progress, would be seen here.
fn lines(root: &Path, table: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(root.join("out").join(table)).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        assert!(!name.contains("inprogress"), "{name} is visible");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'), "{name} ends within a line");
        lines.extend(text.lines().map(str::to_owned));
    }
    lines.sort();
    lines
}

/// What the changes of a table come to.
fn fold(root: &Path, table: &str) -> BTreeMap<String, i64> {
    let mut rows: BTreeMap<String, i64> = BTreeMap::new();
    for line in lines(root, table) {
        let change: Value = serde_json::from_str(&line).unwrap();
        let (side, sign) = if change["op"] == "d" { ("before", -1) } else { ("after", 1) };
        *rows.entry(change[side].to_string()).or_default() += sign;
    }
    rows.retain(|_, count| *count != 0);
    rows
}

/// The result of a job: what each table comes to.
fn result(root: &Path) -> (Vec<BTreeMap<String, i64>>, Vec<String>) {
    (CHANGE_SINKS.iter().map(|table| fold(root, table)).collect(), lines(root, "titles"))
}

/// Runs the job until it ends or the time is over, when it is killed; returns whether it ended.
fn run(root: &Path, kill_after: Option<Duration>) -> bool {
    let lakehead = Lakehead::new();
    let script = lakehead.file("job.sql", JOB.replace("{root}", root.to_str().unwrap()));
    let lakehead = lakehead.and(&["-f", &script]);
    let Some(kill_after) = kill_after else {
        let finished = lakehead.run();
        assert_eq!(finished.code, 0, "{}\n{}", finished.stdout, finished.stderr);
        return true;
    };
    let mut child = lakehead.spawn();
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (sender, ended) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = std::io::Read::read_to_string(&mut stdout, &mut text);
        let _ = std::io::Read::read_to_string(&mut stderr, &mut text);
        let _ = sender.send(());
        text
    });
    let has_ended = ended.recv_timeout(kill_after).is_ok();
    child.kill().unwrap();
    let status = child.wait().unwrap();
    let text = reader.join().unwrap();
    assert!(!has_ended || status.success(), "{text}");
    has_ended
}

fn number_from_environment(key: &str, default: u64) -> u64 {
    std::env::var(key).ok().map_or(default, |text| text.parse().unwrap())
}

#[test]
fn a_job_that_is_killed_has_the_result_of_one_that_never_was() {
    let kills = number_from_environment("LAKEHEAD_CRASH_KILLS", KILLS as u64) as usize;
    let seed = number_from_environment("LAKEHEAD_CRASH_SEED", 7);
    let mut rng = StdRng::seed_from_u64(seed);
    let unbroken = tempfile::tempdir().unwrap();
    write_inputs(unbroken.path(), &mut StdRng::seed_from_u64(seed));
    run(unbroken.path(), None);
    let expected = result(unbroken.path());
    assert!(expected.0.iter().all(|rows| !rows.is_empty() && rows.values().all(|count| *count == 1)));
    assert!(expected.1.len() > 100);
    let mut killed = 0;
    while killed < kills {
        let root = tempfile::tempdir().unwrap();
        write_inputs(root.path(), &mut StdRng::seed_from_u64(seed));
        let mut has_ended = false;
        for _ in 0..KILLS_PER_JOB {
            if has_ended {
                break;
            }
            has_ended = run(root.path(), Some(Duration::from_millis(rng.random_range(30..900))));
            killed += usize::from(!has_ended);
            // Whatever is visible is whole.
            result(root.path());
        }
        if !has_ended {
            run(root.path(), None);
        }
        assert_eq!(result(root.path()), expected, "seed {seed}, after {killed} kills");
    }
}
