//! The truth test: whatever happens to the job, its server and the connections between them while tables change in every way, during
//! the snapshot and after it, the lake says what Postgres says at the end.
//!
//! `LAKEHEAD_TRUTH_SEEDS` says how many histories are tried (1), `LAKEHEAD_TRUTH_SEED` which is the first. A binary that was built with
//! the feature `mutations` leaves a rule out if `LAKEHEAD_MUTATION` names one: with that variable the test passes only if it notices.

mod faults;
mod load;
mod tables;

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use self::faults::{Fault, draw_faults};
use self::load::Load;
use self::tables::{MirroredTable, TABLES};
use super::pipeline::Pipeline;
use crate::support::content::TableContent;
use crate::support::postgres::{Lsn, PostgresServer};
use crate::support::proxy::Proxy;
use crate::support::running::Running;
use crate::support::waiting::{DEADLINE, wait_until, wait_until_within};

/// Names the rule that the binary leaves out.
const MUTATION: &str = "LAKEHEAD_MUTATION";

/// How many histories a mutation may go unnoticed in.
const MUTATED_SEEDS: u64 = 3;

/// How many checkpoints may pass until the server learns what is in the lake. Three are kept by default; and of what others have written
/// behind the last commit, such as an autovacuum, the server tells when half of `wal_sender_timeout` is over, which is ten checkpoints.
const CHECKPOINTS_MAX: u64 = 5 + 10;

/// What the job says besides its tables.
const SETTINGS: &str = "SET 'execution.checkpointing.interval' = '500 ms';\n";

/// A history: the job, what it reads, and what befalls both.
struct History {
    server: Arc<PostgresServer>,
    proxy: Proxy,
    pipeline: Pipeline,
    statements: String,
    job: Running,
}

impl History {
    /// Makes the tables and starts load and job; the connections are slow enough that transactions come between its steps.
    fn start(server: &Arc<PostgresServer>, seed: u64) -> (History, Load) {
        let proxy = Proxy::start(server.port());
        let has_icu_databases = server.version() >= 15;
        let clauses =
            if has_icu_databases { "TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'de-DE'" } else { "" };
        let mut pipeline = Pipeline::on(server, clauses);
        pipeline.through(&proxy);
        if let Ok(rule) = std::env::var(MUTATION) {
            pipeline.variable(MUTATION, &rule);
        }
        for table in TABLES {
            let collation = if has_icu_databases { "" } else { "COLLATE \"de-x-icu\"" };
            pipeline.postgres.run(&table.create.replace("{collation}", collation));
            pipeline.postgres.run(table.fill);
        }
        pipeline.postgres.run("ANALYZE");
        let load = Load::start(&pipeline.database().address(), seed);
        proxy.delay(Duration::from_millis(15));
        proxy.slow_down(3_000_000);
        let inserts = TABLES
            .iter()
            .map(|table| format!("INSERT INTO lake.db.{0} SELECT * FROM {0};\n", table.name))
            .collect::<String>();
        let tables = TABLES.iter().map(|table| table.declare(&pipeline)).collect::<String>();
        let statements =
            format!("{SETTINGS}{}{tables}EXECUTE STATEMENT SET BEGIN\n{inserts}END;\n", pipeline.lake());
        let job = pipeline.start(&statements);
        let server = Arc::clone(server);
        (History { server, proxy, pipeline, statements, job }, load)
    }

    /// Says what is wrong with the job if it has failed.
    fn check_job(&mut self) -> Result<(), String> {
        let shown = self.job.shown();
        if shown.contains("[ERROR]") || self.job.has_ended() {
            return Err(format!("the job has failed:\n{shown}"));
        }
        Ok(())
    }

    fn restart_job(&mut self) {
        self.job.kill();
        self.job = self.pipeline.start(&self.statements);
    }

    fn befall(&mut self, fault: Fault) {
        let pass = |time| drop(wait_until_within(time, || Err::<(), _>(String::new())));
        match fault {
            Fault::Kill => self.restart_job(),
            Fault::RestartServer(how) => {
                self.server.restart(how);
                self.pipeline.reconnect();
            }
            Fault::Cut => self.proxy.cut(),
            Fault::Refuse(time) => {
                self.proxy.refuse();
                pass(time);
                self.proxy.calm();
            }
            Fault::Delay(time) => self.proxy.delay(time),
            Fault::Stall(time) => {
                self.proxy.stall();
                pass(time);
                self.proxy.calm();
            }
        }
    }

    /// Returns whether the job has a slot from whose position on everything will be read.
    fn has_slot(&self) -> bool {
        self.pipeline.postgres.confirmed(self.pipeline.slot()).is_some()
    }

    fn wait_for_slot(&mut self) -> Result<(), String> {
        wait_until_within(DEADLINE, || {
            if let Err(failure) = self.check_job() {
                return Ok(Err(failure));
            }
            if self.has_slot() { Ok(Ok(())) } else { Err(format!("there is no slot: {}", self.job.shown())) }
        })?
    }

    /// Waits until the lake says what Postgres does.
    fn wait_equal(&mut self, sources: &[TableContent]) -> Result<(), String> {
        let mut next = 0;
        let answer = wait_until_within(DEADLINE, || {
            if let Err(failure) = self.check_job() {
                return Ok(Err(failure));
            }
            while let Some((table, source)) = TABLES.get(next).zip(sources.get(next)) {
                let count = self.pipeline.ask(&format!("SELECT COUNT(*) FROM lake.db.{}", table.name));
                let rows = source.row_count().to_string();
                if count != rows {
                    return Err(format!("{} has {count} rows instead of {rows}", table.name));
                }
                compare(table, source, &self.pipeline)?;
                next += 1;
            }
            Ok(Ok(()))
        });
        let wrong = match answer {
            Ok(answer) => return answer,
            Err(wrong) => wrong,
        };
        // The count alone does not say which rows.
        let details: Vec<String> = TABLES
            .iter()
            .zip(sources)
            .filter_map(|(table, source)| compare(table, source, &self.pipeline).err())
            .collect();
        Err(format!("{wrong}\n{}\n{}", details.join("\n"), self.job.shown()))
    }

    /// Waits until the server knows that all up to a position is in the lake, and until what others write does not stay.
    fn wait_released(&mut self, end: Lsn) -> Result<(), String> {
        let slot = self.pipeline.slot().to_owned();
        let first = self.pipeline.checkpoint();
        wait_until_within(DEADLINE, || {
            let confirmed = self.pipeline.postgres.confirmed(&slot);
            let wrong = || format!("'{slot}' is acknowledged up to {confirmed:?} and not {end:?}");
            if confirmed >= Some(end) { Ok(()) } else { Err(wrong()) }
        })?;
        let passed = self.pipeline.checkpoint().saturating_sub(first);
        if passed > CHECKPOINTS_MAX {
            return Err(format!("{passed} checkpoints passed before the server learnt of them"));
        }
        let before = self.pipeline.postgres.lsn();
        let other = self.server.create_database("");
        other.connect().run(
            "CREATE TABLE filler AS SELECT repeat(md5(i::text), 32) AS text FROM generate_series(1, 50000) i",
        );
        wait_until("the slot holds nothing that other databases write", || {
            self.pipeline.postgres.run("CHECKPOINT");
            let restart = self
                .pipeline
                .postgres
                .value(&format!("SELECT restart_lsn FROM pg_replication_slots WHERE slot_name = '{slot}'"));
            if Lsn::parse(&restart) > Some(before) { Ok(()) } else { Err(restart) }
        });
        Ok(())
    }
}

/// Compares a table with its copy.
fn compare(table: &MirroredTable, source: &TableContent, pipeline: &Pipeline) -> Result<(), String> {
    let copy = table.lake_content(pipeline)?;
    source.difference(&copy).map_or(Ok(()), |wrong| Err(format!("{}: {wrong}", table.name)))
}

/// Lives through one history, and says what is wrong at its end.
fn live_through(server: &Arc<PostgresServer>, seed: u64) -> Result<(), String> {
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut history, mut load) = History::start(server, seed);
    let address = history.pipeline.database().address();
    let (mut holds, mut is_large) = (false, false);
    let large_after = rng.random_range(0..6);
    let faults = draw_faults(&mut rng);
    let last = faults.len() - 1;
    for (number, (after, fault)) in faults.into_iter().enumerate() {
        if number == last {
            // Kills in a row may have kept it from its slot so far.
            history.wait_for_slot()?;
        }
        load.wait_for_more(after);
        history.check_job()?;
        // A transaction that is open when the slot is made only lets it wait.
        if !holds && history.has_slot() {
            load.hold(&address, seed);
            holds = true;
        }
        if number == large_after {
            load.write_large_one(&address, seed);
            is_large = true;
        }
        history.befall(fault);
    }
    assert!(is_large && holds);
    history.proxy.calm();
    load.finish();
    let end = history.pipeline.postgres.lsn();
    let sources: Vec<TableContent> =
        TABLES.iter().map(|table| table.source_content(&history.pipeline)).collect();
    history.wait_equal(&sources)?;
    history.wait_released(end)?;
    // Once more from the last checkpoint: nothing is there twice.
    let checkpoint = history.pipeline.checkpoint();
    history.restart_job();
    wait_until_within(DEADLINE, || {
        if let Err(failure) = history.check_job() {
            return Ok(Err(failure));
        }
        let now = history.pipeline.checkpoint();
        if now > checkpoint { Ok(Ok(())) } else { Err(format!("no checkpoint after {checkpoint}")) }
    })??;
    history.wait_equal(&sources)
}

/// Returns what shows that a rule is left out, and not something else: one of these.
fn signs(rule: &str) -> &'static [&'static str] {
    match rule {
        "visibility" => &["checksums differ"],
        "toast" => &["documents: "],
        // The server has been told to forget what the checkpoint does not have, which is noticed unless it is sent nevertheless.
        "acknowledgement" => &["has gone on to", "checksums differ"],
        _ => panic!("'{rule}' is no rule"),
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[test]
fn the_lake_says_what_postgres_says_whatever_happens() {
    // Each connection of a dead process is given up soon.
    let options = ["wal_sender_timeout=10s", "max_wal_size=4GB"];
    let Some(server) = PostgresServer::start(&options) else { return };
    let first = number("LAKEHEAD_TRUTH_SEED", 1);
    if let Ok(rule) = std::env::var(MUTATION) {
        let mut wrong = (first..first + MUTATED_SEEDS).filter_map(|seed| live_through(&server, seed).err());
        let noticed = wrong.find(|wrong| signs(&rule).iter().any(|sign| wrong.contains(sign)));
        let noticed = noticed.unwrap_or_else(|| panic!("nobody notices that the rule '{rule}' is left out"));
        eprintln!("without the rule '{rule}': {noticed}");
        return;
    }
    for seed in first..first + number("LAKEHEAD_TRUTH_SEEDS", 1) {
        let begun = Instant::now();
        let faults = draw_faults(&mut StdRng::seed_from_u64(seed));
        live_through(&server, seed)
            .unwrap_or_else(|wrong| panic!("LAKEHEAD_TRUTH_SEED={seed}, {faults:?}: {wrong}"));
        eprintln!("seed {seed}: equal after {:.0} s", begun.elapsed().as_secs_f64());
    }
}
