//! Jobs that stop with a savepoint and go on in another way: with other workers, from another folder, with other columns; and what
//! is refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;

use super::{JobId, OutputPort, OutputStream, Session, SessionSettings, StatementResult};
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::{JobHandle, StopMode};
use crate::sql::{parse_statement, split};

#[derive(Debug)]
struct Nowhere;

impl OutputPort for Nowhere {
    fn print(&self, _: OutputStream, _: &str) {}
}

/// A folder with the tables of a job, its checkpoints and savepoints.
pub(super) struct Place(tempfile::TempDir);

impl Place {
    pub(super) fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns what the changes in a table come to.
    fn fold(&self, table: &str) -> BTreeMap<String, i64> {
        let mut rows = BTreeMap::new();
        for line in self.lines(table) {
            let change: Value = serde_json::from_str(&line).unwrap();
            let (side, sign) = if change["op"] == "d" { ("before", -1) } else { ("after", 1) };
            *rows.entry(change[side].to_string()).or_default() += sign;
        }
        rows.retain(|_, count| *count != 0);
        rows
    }

    /// Returns the lines of a table's visible files, also of those that were taken away.
    fn lines(&self, table: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for path in ["out", "taken-0", "taken-1"].iter().flat_map(|out| files(&self.path(out).join(table))) {
            if !path.file_name().unwrap().to_string_lossy().starts_with('.') {
                lines.extend(fs::read_to_string(path).unwrap().lines().map(str::to_owned));
            }
        }
        lines.sort();
        lines
    }

    /// Returns the files with an ending in a folder and below, sorted.
    pub(super) fn files_below(&self, folder: &str, ending: &str) -> Vec<PathBuf> {
        let (mut found, mut folders) = (Vec::new(), vec![self.path(folder)]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                match path.is_dir() {
                    true => folders.push(path),
                    false if path.extension().is_some_and(|of| of == ending) => found.push(path),
                    false => {}
                }
            }
        }
        found.sort();
        found
    }

    /// Writes a file.
    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Makes a session whose jobs have checkpoints here.
    pub(super) fn session(&self, settings: &str) -> Recovering {
        let defaults =
            [("execution.checkpointing.dir".to_owned(), self.path("checkpoints").display().to_string())];
        let settings = SessionSettings {
            defaults: defaults.into(),
            output: Arc::new(Nowhere),
            session_id: settings.to_owned(),
        };
        Recovering { session: Session::new(settings).unwrap(), root: self.0.path().to_owned() }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// A session whose jobs stop and go on.
pub(super) struct Recovering {
    pub(super) session: Session,
    root: PathBuf,
}

impl Recovering {
    /// Runs a script; `{root}` stands for the folder. Returns the job that the last statement has started.
    pub(super) async fn run(&mut self, script: &str) -> Result<Option<JobId>> {
        let mut started = None;
        for piece in split(&script.replace("{root}", self.root.to_str().unwrap())) {
            let result = self.session.execute(&parse_statement(&piece.text)?, &piece.text).await?;
            started = match result {
                StatementResult::JobSubmitted(id) | StatementResult::JobFinished(id) => Some(id),
                _ => None,
            };
        }
        Ok(started)
    }

    /// Starts a job.
    pub(super) async fn start(&mut self, script: &str) -> JobHandle {
        let id = self.run(script).await.unwrap().unwrap();
        self.session.jobs.handle(id).unwrap()
    }

    /// Starts a job, and stops it with a savepoint once its sources have read some rows; returns the savepoint.
    pub(super) async fn save(&mut self, script: &str, rows: u64) -> PathBuf {
        let job = self.start(script).await;
        wait_for_rows(&job, rows).await;
        let folder = self.root.join("savepoints");
        job.stop(StopMode::Savepoint { folder, drain: false }).await.unwrap().unwrap()
    }

    /// Runs a job that goes on from a savepoint to its end.
    async fn finish_from(&mut self, savepoint: &Path, script: &str) -> Result<()> {
        self.run(&from(savepoint)).await?;
        let id = self.run(script).await?.unwrap();
        let job = self.session.jobs.handle(id).unwrap();
        job.finished().await.map(drop)
    }
}

pub(super) fn from(savepoint: &Path) -> String {
    format!("SET 'execution.state-recovery.path' = '{}';", savepoint.display())
}

/// Waits until the sources of a job have given so many rows.
async fn wait_for_rows(job: &JobHandle, rows: u64) {
    let has_read = || {
        let operators = job.metrics().operators;
        let sources = operators.iter().filter(|operator| operator.name.starts_with("Source"));
        sources.map(|source| source.rows_out).sum::<u64>() >= rows
    };
    for _ in 0..60_000 {
        if has_read() {
            return;
        }
        assert!(!job.status().is_final(), "the job has ended");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("the job does not read: {:?}", job.metrics());
}

/// Runs a test on several threads, and lets it fail rather than hang.
pub(super) fn block_on<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let done = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(120), test).await });
    runtime.shutdown_background();
    done.expect("the job hangs")
}

/// A history of orders as the option `rows`: `[kind, id, customer, amount, channel]`.
pub(super) fn orders(count: i64) -> String {
    let mut rows = Vec::new();
    for id in 0..count {
        let (customer, amount, channel) = (id * 5 % 13, id * 37 % 101, id % 4);
        rows.push(format!("[\"+I\",{id},{customer},{amount},\"c{channel}\"]"));
        if id % 3 == 2 {
            let old = id - 2;
            let (customer, amount, channel) = (old * 5 % 13, old * 37 % 101, old % 4);
            rows.push(format!("[\"-U\",{old},{customer},{amount},\"c{channel}\"]"));
            rows.push(format!("[\"+U\",{old},{customer},{},\"c{}\"]", amount + 1, (channel + 1) % 4));
        }
        if id % 7 == 6 {
            let old = id - 1;
            let (customer, amount, channel) = (old * 5 % 13, old * 37 % 101, old % 4);
            if old % 3 != 0 || old + 2 > id {
                rows.push(format!("[\"-D\",{old},{customer},{amount},\"c{channel}\"]"));
            }
        }
    }
    format!("[{}]", rows.join(","))
}

/// Visits as the option `rows`: `[n, customer, page]`.
fn visits(count: i64) -> String {
    let rows: Vec<String> = (0..count).map(|n| format!("[{n},{},{}]", n * 7 % 13, n * n % 6)).collect();
    format!("[{}]", rows.join(","))
}

/// The sources of the jobs, of which the first rows have come.
pub(super) fn sources(order_count: i64, is_bounded: bool) -> String {
    format!(
        "DROP TABLE IF EXISTS orders; DROP TABLE IF EXISTS visits;
         CREATE TABLE orders (id INT, customer INT, amount INT, channel STRING, PRIMARY KEY (id) NOT ENFORCED)
           WITH ('connector' = 'values', 'changelog-mode' = 'I,UB,UA,D', 'bounded' = '{is_bounded}',
             'rows-per-frame' = '5', 'rows' = '{}');
         CREATE TABLE visits (n INT, customer INT, page INT)
           WITH ('connector' = 'values', 'bounded' = '{is_bounded}', 'rows-per-frame' = '3', 'rows' = '{}');",
        orders(order_count),
        visits(order_count / 2),
    )
}

/// Makes sinks of changes: `name (columns)`.
fn sinks(tables: &[(&str, &str)]) -> String {
    let sink = |(name, columns): &(&str, &str)| {
        format!(
            "CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'path' = '{{root}}/out/{name}', \
             'format' = 'debezium-json');\n"
        )
    };
    tables.iter().map(sink).collect()
}

/// Tables and queries with state of every kind.
const EVERYTHING: &[(&str, &str, &str)] = &[
    (
        "totals",
        "customer INT, n BIGINT, amount INT, pages BIGINT",
        "SELECT o.customer, COUNT(*), SUM(o.amount), MAX(v.pages) FROM orders AS o JOIN
           (SELECT customer, COUNT(DISTINCT page) AS pages FROM visits GROUP BY customer) AS v
           ON o.customer = v.customer GROUP BY o.customer",
    ),
    (
        "extremes",
        "channel STRING, least INT, most INT, mean INT, kinds BIGINT",
        "SELECT channel, MIN(amount), MAX(amount), AVG(amount), COUNT(DISTINCT customer) FROM orders GROUP BY channel",
    ),
    (
        "best",
        "channel STRING, id INT, amount INT, place BIGINT",
        "SELECT channel, id, amount, place FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY channel
           ORDER BY amount DESC, id) AS place FROM orders) WHERE place <= 3",
    ),
    ("largest", "id INT, amount INT", "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 4"),
    (
        "pairs",
        "id INT, page INT",
        "SELECT o.id, v.page FROM orders AS o LEFT JOIN visits AS v ON o.customer = v.customer AND v.page > 2",
    ),
    (
        "idle",
        "id INT, customer INT",
        "SELECT id, customer FROM orders WHERE customer NOT IN (SELECT customer FROM visits WHERE page = 1)",
    ),
    (
        "both",
        "customer INT",
        "SELECT customer FROM orders INTERSECT SELECT customer FROM visits WHERE page <> 4",
    ),
    ("either", "a INT", "SELECT customer FROM orders UNION SELECT page FROM visits"),
    ("whole", "n BIGINT, amount INT", "SELECT COUNT(*), SUM(amount) FROM orders"),
];

fn everything() -> (String, String) {
    let tables: Vec<(&str, &str)> = EVERYTHING.iter().map(|(name, columns, _)| (*name, *columns)).collect();
    let inserts: Vec<String> =
        EVERYTHING.iter().map(|(name, _, query)| format!("INSERT INTO {name} {query};\n")).collect();
    let job = format!("EXECUTE STATEMENT SET BEGIN\n{}END;", inserts.concat());
    (sinks(&tables), job)
}

#[test]
fn a_savepoint_that_was_moved_goes_on_with_any_number_of_workers() {
    let (sinks, job) = everything();
    let unbroken = Place::new();
    block_on(async {
        let mut session = unbroken.session("unbroken");
        session.run("SET 'parallelism.default' = '1'; SET 'table.dml-sync' = 'true';").await.unwrap();
        session.run(&(sinks.clone() + &sources(60, true))).await.unwrap();
        session.run(&job).await.unwrap();
    });
    for (seed, workers) in [(1, [1, 2, 3]), (2, [3, 1, 2])] {
        let mut rng = StdRng::seed_from_u64(seed);
        let place = Place::new();
        block_on(async {
            let mut savepoint: Option<PathBuf> = None;
            for (number, workers) in workers.iter().enumerate() {
                let mut session = place.session("cut");
                session.run(&format!("SET 'parallelism.default' = '{workers}';{sinks}")).await.unwrap();
                let is_last = number == 2;
                session.run(&sources([20, 40, 60][number], is_last)).await.unwrap();
                if let Some(savepoint) = &savepoint {
                    session.run(&from(savepoint)).await.unwrap();
                }
                if is_last {
                    let finished = session.start(&job).await.finished().await;
                    finished.unwrap();
                    break;
                }
                let saved = session.save(&job, rng.random_range(1..20)).await;
                // A savepoint stands for itself: it needs nothing of the job's folder, which is gone, nor what the job has written,
                // and may lie anywhere.
                assert!(files(&place.path("checkpoints")).is_empty());
                let moved = place.path(&format!("elsewhere-{number}"));
                fs::rename(saved, &moved).unwrap();
                fs::rename(place.path("out"), place.path(&format!("taken-{number}"))).unwrap();
                savepoint = Some(moved);
            }
        });
        for (table, ..) in EVERYTHING {
            let expected = unbroken.fold(table);
            assert!(!expected.is_empty(), "{table}");
            assert_eq!(place.fold(table), expected, "{table} with {workers:?} workers");
        }
    }
}

#[test]
fn a_state_of_the_same_columns_that_was_made_for_something_else_is_refused() {
    let place = Place::new();
    let sinks = sinks(&[("s", "customer INT, n BIGINT, most INT")]);
    let job =
        |rest: &str| format!("INSERT INTO s SELECT customer, CAST(id AS BIGINT), amount FROM orders {rest};");
    block_on(async {
        for (name, before, after) in [
            ("Rank", "ORDER BY amount DESC LIMIT 3", "ORDER BY amount LIMIT 3"),
            ("Rank", "ORDER BY amount DESC LIMIT 3", "ORDER BY amount DESC LIMIT 5"),
            ("Limit", "LIMIT 30", "LIMIT 4"),
            (
                "SetOperation",
                "INTERSECT SELECT 7, CAST(1 AS BIGINT), 8",
                "EXCEPT SELECT 7, CAST(1 AS BIGINT), 8",
            ),
            (
                "Join",
                "WHERE EXISTS (SELECT 1 FROM visits AS v WHERE v.customer = orders.customer)",
                "WHERE NOT EXISTS (SELECT 1 FROM visits AS v WHERE v.customer = orders.customer)",
            ),
        ] {
            let mut session = place.session("changed");
            session.run(&(sinks.clone() + &sources(20, false))).await.unwrap();
            let savepoint = session.save(&job(before), 10).await;
            session.run(&sources(40, true)).await.unwrap();
            let error = session.finish_from(&savepoint, &job(after)).await.unwrap_err();
            let text = error.message();
            let told = text.contains("does not fit the job") && text.contains(&format!("{name}("));
            assert!(told, "{after}: {text}");
        }
    });
}

#[test]
fn a_query_that_has_changed_is_refused_with_what_has_changed() {
    let place = Place::new();
    let sinks = sinks(&[("s", "customer INT, n BIGINT, most INT")]);
    let job = |calls: &str| format!("INSERT INTO s SELECT customer, {calls} FROM orders GROUP BY customer;");
    block_on(async {
        let mut session = place.session("changed");
        session.run(&(sinks + &sources(20, false))).await.unwrap();
        let savepoint = session.save(&job("COUNT(*), MAX(amount)"), 10).await;
        session.run(&sources(40, true)).await.unwrap();
        let before = place.lines("s");
        for calls in ["COUNT(DISTINCT amount), MAX(amount)", "COUNT(*), SUM(amount)"] {
            let error = session.finish_from(&savepoint, &job(calls)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::State);
            let text = error.message();
            assert!(text.contains(&savepoint.display().to_string()), "{text}");
            assert!(text.contains("does not fit the job") && text.contains("GroupAggregate"), "{text}");
        }
        let other = "INSERT INTO s SELECT id, CAST(1 AS BIGINT), amount FROM orders;";
        let error = session.finish_from(&savepoint, other).await.unwrap_err();
        assert!(error.message().contains("holds what nothing in the job claims"), "{error}");
        assert!(error.hint_text().unwrap().contains("ignore-unclaimed-state"), "{error:?}");
        assert_eq!(place.lines("s"), before, "a job that was refused writes nothing");
        session.finish_from(&savepoint, &job("COUNT(*), MAX(amount)")).await.unwrap();
        assert_eq!(place.fold("s").len(), 13);
    });
}

#[test]
fn rows_that_stand_in_a_statement_are_never_taken_for_those_of_another() {
    let place = Place::new();
    let settings = "SET 'lakehead.job.resume' = 'latest'; SET 'table.dml-sync' = 'true'; SET 'execution.checkpointing.interval' = '1 h';";
    let prepared = settings.to_owned() + &sinks(&[("s", "id INT")]);
    block_on(async {
        let mut session = place.session("first");
        session.run(&prepared).await.unwrap();
        session
            .run("INSERT INTO s VALUES (1), (2); INSERT INTO s VALUES (3); INSERT INTO s SELECT 4;")
            .await
            .unwrap();
        assert_eq!(
            place.fold("s").len(),
            4,
            "a job that has ended is not gone on from by the next of the session"
        );
        let mut session = place.session("second");
        session.run(&prepared).await.unwrap();
        session.run("INSERT INTO s VALUES (1), (2);").await.unwrap();
        assert_eq!(place.lines("s").len(), 4, "a script that runs again has nothing left to do");
        let error = session.run("INSERT INTO s VALUES (5);").await.unwrap_err();
        assert!(error.message().contains("s/Values"), "{error}");
        let error = session.run("INSERT INTO s VALUES (3); INSERT INTO s SELECT 5;").await.unwrap_err();
        assert!(error.message().contains("s/Values"), "{error}");
        session.run("SET 'lakehead.job.resume' = 'none'; INSERT INTO s VALUES (5);").await.unwrap();
        assert_eq!(place.lines("s").len(), 5);
    });
}

#[test]
fn a_nullable_column_that_was_added_is_null_in_the_rows_from_before() {
    let place = Place::new();
    let pages = |rows: &str, is_bounded: bool| {
        format!("ALTER TABLE pages SET ('rows' = '[{rows}]', 'bounded' = '{is_bounded}');")
    };
    let first = "{\"page\":1,\"title\":\"a\"},{\"page\":2,\"title\":\"b\"}";
    let join = "SELECT p.*, v.n FROM pages AS p JOIN visits AS v ON p.page = v.page";
    block_on(async {
        let mut session = place.session("added");
        session.run(&sources(20, false)).await.unwrap();
        session
            .run(
                &("CREATE TABLE pages (page INT, title STRING) WITH ('connector' = 'values', 'rows' = '[]');"
                    .to_owned() + &sinks(&[("s", "page INT, title STRING, n INT")])),
            )
            .await
            .unwrap();
        session.run(&pages(first, false)).await.unwrap();
        let savepoint = session.save(&format!("INSERT INTO s {join};"), 12).await;
        let second = format!("{first},{{\"page\":3,\"title\":\"c\",\"note\":\"new\"}}");
        session.run("ALTER TABLE pages ADD note STRING; DROP TABLE s;").await.unwrap();
        session.run(&sinks(&[("s", "page INT, title STRING, note STRING, n INT")])).await.unwrap();
        session.run(&sources(40, true)).await.unwrap();
        session.run(&pages(&second, true)).await.unwrap();
        session.finish_from(&savepoint, &format!("INSERT INTO s {join};")).await.unwrap();
    });
    let lines = place.lines("s");
    let has = |text: &str| lines.iter().any(|line| line.contains(text));
    assert!(has("\"title\":\"a\",\"note\":null,\"n\":19"), "{lines:#?}");
    assert!(has("\"title\":\"c\",\"note\":\"new\""), "{lines:#?}");
    assert_eq!(lines.len(), (0..20).filter(|n| [1, 2, 3].contains(&(n * n % 6))).count());
}

#[test]
fn state_beyond_its_budget_fails_the_job_and_says_what_to_set() {
    let place = Place::new();
    block_on(async {
        let mut session = place.session("budget");
        session.run(&(sinks(&[("s", "id INT, page INT")]) + &sources(200, true))).await.unwrap();
        session
            .run("SET 'lakehead.state.memory-budget' = '1 kb'; SET 'table.dml-sync' = 'true';")
            .await
            .unwrap();
        let job =
            "INSERT INTO s SELECT o.id, v.page FROM orders AS o JOIN visits AS v ON o.customer = v.customer;";
        let error = session.run(job).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::State);
        assert!(error.message().contains("Join has "), "{error}");
        assert!(error.hint_text().unwrap().contains("lakehead.state.memory-budget"));
        assert!(place.lines("s").is_empty(), "what was not committed is not visible");
    });
}

#[test]
fn a_bad_record_fails_the_job_at_once_and_is_named() {
    let place = Place::new();
    fs::create_dir_all(place.path("in")).unwrap();
    fs::write(place.path("in").join("part-0"), "{\"id\":1}\n{\"id\":2}\n{\"id\":\"two\"}\n").unwrap();
    block_on(async {
        let mut session = place.session("bad");
        session
            .run(
                "SET 'restart-strategy.type' = 'fixed-delay';
                 SET 'restart-strategy.fixed-delay.attempts' = '100';
                 SET 'restart-strategy.fixed-delay.delay' = '1 h';
                 SET 'execution.checkpointing.interval' = '1 s';
                 CREATE TABLE t (id INT) WITH ('connector' = 'filesystem', 'path' = '{root}/in', 'format' = 'json');
                 CREATE TABLE s (id INT) WITH ('connector' = 'filesystem', 'path' = '{root}/out/s', 'format' = 'csv');",
            )
            .await
            .unwrap();
        let job = session.start("INSERT INTO s SELECT id FROM t;").await;
        let error = job.finished().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        let hint = error.hint_text().unwrap();
        for part in ["part-0", "line 3", "field 'id'"] {
            assert!(hint.contains(part), "{hint}");
        }
        assert_eq!(job.metrics().restart_count, 0);
        assert!(place.lines("s").is_empty());
    });
}

/// Returns the files of a checkpoint or savepoint, with where to start from.
fn state_files(start: &Path) -> Vec<(PathBuf, PathBuf)> {
    files(start).into_iter().map(|file| (file, start.to_owned())).collect()
}

#[test]
fn a_bit_flipped_in_any_file_of_state_is_found_and_the_file_named() {
    let place = Place::new();
    let job = "EXECUTE STATEMENT SET BEGIN
      INSERT INTO s SELECT o.customer, COUNT(DISTINCT v.page), MAX(o.amount) FROM orders AS o
        JOIN visits AS v ON o.customer = v.customer GROUP BY o.customer;
      INSERT INTO best SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 4;
    END;";
    let prepare = "SET 'pipeline.name' = 'flip'; SET 'execution.checkpointing.interval' = '1 ms';".to_owned()
        + &sinks(&[("s", "customer INT, pages BIGINT, most INT"), ("best", "id INT, amount INT")]);
    block_on(async {
        let mut session = place.session("flip");
        session.run(&(prepare + &sources(60, false))).await.unwrap();
        let savepoint = session.save(job, 80).await;
        let running = session.start(job).await;
        wait_for_rows(&running, 80).await;
        let checkpoint = running.stop(StopMode::Finish).await.unwrap().unwrap();
        let mut targets = state_files(&savepoint);
        targets.extend(state_files(&checkpoint));
        let shared = checkpoint.parent().unwrap().join("shared");
        targets.extend(files(&shared).into_iter().map(|file| (file, checkpoint.clone())));
        assert!(targets.len() >= 4, "two manifests and their segments: {targets:?}");
        let before: Vec<_> = ["s", "best"].map(|table| place.lines(table)).into();
        let mut rng = StdRng::seed_from_u64(4);
        for flip in 0..200 {
            let (file, start) = &targets[flip % targets.len()];
            let bytes = fs::read(file).unwrap();
            let mut flipped = bytes.clone();
            let bit = rng.random_range(0..bytes.len() * 8);
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(file, &flipped).unwrap();
            let error = refused(&mut session, start, job).await;
            assert_eq!(error.kind(), ErrorKind::State, "{error}");
            let name = file.display().to_string();
            assert!(error.message().contains(&name), "bit {bit} of {name}: {error}");
            fs::write(file, &bytes).unwrap();
        }
        let after: Vec<_> = ["s", "best"].map(|table| place.lines(table)).into();
        assert_eq!(after, before, "a job that was refused writes nothing");
        session.run(&sources(60, true)).await.unwrap();
        session.finish_from(&savepoint, job).await.unwrap();
    });
}

/// Returns why a job cannot start from a checkpoint.
async fn refused(session: &mut Recovering, start: &Path, job: &str) -> Error {
    session.run(&from(start)).await.unwrap();
    session.run(job).await.unwrap_err()
}
