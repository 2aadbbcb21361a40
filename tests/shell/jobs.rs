//! Jobs as a user has them: started, described, stopped, gone on with, and refused where that cannot be.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::run::Lakehead;
use crate::support::running::Running;

/// A source that counts for ever, a sink of files, and one that shows what was read.
const TABLES: &str = "
CREATE TABLE numbers (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '200',
  'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '1000000000');
CREATE TABLE files (id BIGINT) WITH ('connector' = 'filesystem', 'path' = '{root}/out', 'format' = 'json');
CREATE TABLE shown (id BIGINT) WITH ('connector' = 'print');
";

const CHECKPOINTED: &str = "
SET 'execution.checkpointing.interval' = '50 ms';
SET 'execution.checkpointing.dir' = '{root}/checkpoints';
SET 'pipeline.name' = 'numbers';
";

const INSERTS: &str = "
EXECUTE STATEMENT SET BEGIN
  INSERT INTO files SELECT id FROM numbers;
  INSERT INTO shown SELECT id FROM numbers;
END;
";

fn script(root: &Path, parts: &[&str]) -> String {
    parts.concat().replace("{root}", root.to_str().unwrap())
}

/// Starts a script file and leaves it running.
fn start(root: &Path, parts: &[&str]) -> Running {
    let lakehead = Lakehead::new();
    let file = lakehead.file("job.sql", script(root, parts));
    Running::start(lakehead.and(&["-f", &file]))
}

/// Starts a shell that reads statements from a pipe.
fn piped(root: &Path, parts: &[&str]) -> Running {
    let mut running = Running::start(Lakehead::new());
    running.write(&script(root, parts));
    running
}

/// Runs a script to its end.
fn finish(root: &Path, parts: &[&str]) -> crate::support::run::Finished {
    let lakehead = Lakehead::new();
    let file = lakehead.file("job.sql", script(root, parts));
    lakehead.and(&["-f", &file]).run()
}

/// Returns how often each number stands in the visible files.
fn written(root: &Path) -> BTreeMap<u64, usize> {
    let mut numbers = BTreeMap::new();
    for entry in fs::read_dir(root.join("out")).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with('.') {
            continue;
        }
        for line in fs::read_to_string(&path).unwrap().lines() {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            *numbers.entry(row["id"].as_u64().unwrap()).or_default() += 1;
        }
    }
    numbers
}

/// Fails the test unless all numbers up to some one are written, each once, and returns that one.
#[track_caller]
fn written_without_gaps(root: &Path) -> u64 {
    let numbers = written(root);
    let last = *numbers.keys().last().expect("something is written");
    assert_eq!(numbers.len() as u64, last, "there are gaps");
    assert!(numbers.values().all(|count| *count == 1), "something is written twice");
    last
}

/// Returns the statement that lets a job go on, as the shell says it.
#[track_caller]
fn resume_statement(stderr: &str) -> String {
    let start = stderr.find("SET 'execution.state-recovery.path'").unwrap_or_else(|| panic!("{stderr}"));
    let end = start + stderr[start..].find(';').unwrap() + 1;
    stderr[start..end].to_owned()
}

#[test]
fn control_c_stops_the_jobs_of_a_script_and_says_how_to_go_on() {
    let root = tempfile::tempdir().unwrap();
    let mut running = start(root.path(), &[TABLES, CHECKPOINTED, INSERTS]);
    running.wait_out("+I[50]");
    running.signal("INT");
    let stopped = running.end();
    assert_eq!(stopped.code, 0, "{}", stopped.stderr);
    assert!(
        stopped.stderr.contains("[INFO] Job 'numbers' is stopped. To go on from here: SET "),
        "{}",
        stopped.stderr
    );
    let first = written_without_gaps(root.path());
    assert!(first >= 50);

    let resume = resume_statement(&stopped.stderr);
    let mut running = start(root.path(), &[TABLES, CHECKPOINTED, &resume, INSERTS]);
    running.wait_err("[INFO] Job 'numbers' goes on from ");
    running.wait_out(&format!("+I[{}]", first + 20));
    running.signal("TERM");
    let stopped = running.end();
    assert_eq!(stopped.code, 0, "{}", stopped.stderr);
    assert!(!stopped.stdout.contains(&format!("+I[{first}]")), "{}", stopped.stdout);
    assert!(written_without_gaps(root.path()) >= first + 20);
}

#[test]
fn latest_goes_on_from_the_newest_checkpoint_and_none_says_that_there_is_one() {
    let root = tempfile::tempdir().unwrap();
    let latest = "SET 'lakehead.job.resume' = 'latest';";
    let mut running = start(root.path(), &[TABLES, CHECKPOINTED, latest, INSERTS]);
    running.wait_err("[INFO] Job 'numbers' starts anew: there is no checkpoint of a job of that name");
    running.wait_out("+I[30]");
    running.signal("INT");
    running.end();
    let first = written_without_gaps(root.path());

    let mut running = start(root.path(), &[TABLES, CHECKPOINTED, latest, INSERTS]);
    running.wait_err("[INFO] Job 'numbers' goes on from ");
    running.wait_out(&format!("+I[{}]", first + 5));
    running.signal("INT");
    running.end();
    written_without_gaps(root.path());

    let mut running = start(root.path(), &[TABLES, CHECKPOINTED, INSERTS]);
    running.wait_err("[INFO] Job 'numbers' starts anew. An earlier one has left a checkpoint; to go on from it: SET 'lakehead.job.resume' = 'latest'; or SET 'execution.state-recovery.path' = '");
    running.wait_out("+I[1]");
    running.signal("INT");
    assert_eq!(running.end().code, 0);
}

#[test]
fn a_script_that_has_finished_repeats_nothing_where_it_goes_on_from_the_latest() {
    let root = tempfile::tempdir().unwrap();
    let bounded = TABLES.replace("1000000000", "40").replace("'200'", "'100000'");
    let latest = "SET 'lakehead.job.resume' = 'latest';";
    for _ in 0..2 {
        let finished = finish(root.path(), &[&bounded, CHECKPOINTED, latest, INSERTS]).ok();
        assert_eq!(written_without_gaps(root.path()), 40, "{}", finished.stderr);
    }
    let other = tempfile::tempdir().unwrap();
    finish(other.path(), &[&bounded, CHECKPOINTED, INSERTS]).ok();
    let left = fs::read_dir(other.path().join("checkpoints")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "a job that has finished leaves no checkpoint");
}

#[test]
fn a_second_job_of_a_name_gets_a_number_and_another_process_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let mut running = piped(root.path(), &[TABLES, CHECKPOINTED, INSERTS, INSERTS, "SHOW JOBS;\n"]);
    let shown = running.wait_out("2 rows in set");
    assert!(
        shown.contains("|   numbers | RUNNING |") && shown.contains("| numbers-2 | RUNNING |"),
        "{shown}"
    );
    let refused = finish(root.path(), &[TABLES, CHECKPOINTED, INSERTS]);
    assert_eq!(refused.code, 1);
    let expected = format!("the job 'numbers' is running already: process {} on host ", running.id());
    assert!(refused.stdout.contains(&expected), "{}", refused.stdout);
    running.signal("INT");
    running.end();
}

#[test]
fn a_savepoint_is_answered_with_its_path_also_without_checkpoints() {
    let root = tempfile::tempdir().unwrap();
    let mut running = piped(root.path(), &[TABLES, INSERTS]);
    let warning = running.wait_err("[WARNING]");
    assert!(
        warning.contains("'execution.checkpointing.interval' is not set: what it writes to 'default_catalog.default_database.files' is not visible before the job ends or is stopped."),
        "{warning}"
    );
    running.wait_out("+I[20]");
    let id = running.job_id();
    running.write(&format!("STOP JOB '{id}' WITH SAVEPOINT;\n"));
    running.wait_out("java.lang.IllegalStateException: No savepoint directory configured.");
    let folder = root.path().join("savepoints");
    running.write(&format!(
        "SET 'state.savepoints.dir' = 'file://{}';\nSTOP JOB '{id}' WITH SAVEPOINT;\nDESCRIBE JOB '{id}';\n",
        folder.display()
    ));
    let shown = running.wait_out("1 row in set");
    assert!(shown.contains("savepoint path |"), "{shown}");
    running.wait_out("| FINISHED |");
    assert_eq!(running.end().code, 1, "a statement has failed");
    let first = written_without_gaps(root.path());

    let entries: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert!(shown.contains(entries[0].to_str().unwrap()), "{shown}");
    let resume = format!("SET 'execution.savepoint.path' = '{}';", entries[0].display());
    let mut running = piped(root.path(), &[TABLES, &resume, INSERTS]);
    running.wait_out(&format!("+I[{}]", first + 5));
    let id = running.job_id();
    running.write(&format!("STOP JOB '{id}';\n"));
    assert_eq!(running.end().code, 0);
    assert!(written_without_gaps(root.path()) >= first + 5);
}

#[test]
fn a_job_is_described_with_its_operators_and_its_last_checkpoint() {
    let root = tempfile::tempdir().unwrap();
    let mut running = piped(root.path(), &[TABLES, CHECKPOINTED, INSERTS]);
    running.wait_out("+I[30]");
    let id = running.job_id();
    running.write(&format!("DESCRIBE JOB '{id}';\n"));
    let shown = running.wait_out("4 rows in set");
    for part in [
        "| restarts | checkpoint |",
        "rows in |",
        "state bytes |",
        "Source: default_catalog.default_database.numbers |",
        "Sink: default_catalog.default_database.shown |",
    ] {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    running.signal("INT");
    running.end();
}

#[test]
fn what_cannot_be_gone_on_with_is_named() {
    let root = tempfile::tempdir().unwrap();
    let grouped = "CREATE TABLE counts (n BIGINT) WITH ('connector' = 'blackhole');
        SET 'execution.checkpointing.externalized-checkpoint-retention' = 'RETAIN_ON_CANCELLATION';";
    let count = "INSERT INTO counts SELECT COUNT(*) FROM numbers GROUP BY id; INSERT INTO shown SELECT id FROM numbers;";
    let mut running = start(root.path(), &[TABLES, CHECKPOINTED, grouped, count]);
    running.wait_out("+I[30]");
    running.signal("INT");
    let resume = resume_statement(&running.end().stderr);

    for changed in ["MAX(id) FROM numbers GROUP BY id", "COUNT(*) FROM numbers GROUP BY MOD(id, 2)"] {
        let changed = format!("INSERT INTO counts SELECT {changed};");
        let refused = finish(root.path(), &[TABLES, CHECKPOINTED, grouped, &resume, &changed]);
        assert_eq!(refused.code, 1, "{}", refused.stderr);
        let is_named = refused.stdout.contains("GroupAggregate(COUNT(*))")
            || refused.stdout.contains("the key of table");
        assert!(is_named && refused.stdout.contains("hint: "), "{}", refused.stdout);
    }

    let path = PathBuf::from(resume.rsplit('\'').nth(1).unwrap()).join("_metadata");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(&path, bytes).unwrap();
    for resume in [resume.as_str(), "SET 'lakehead.job.resume' = 'latest';"] {
        let refused = finish(root.path(), &[TABLES, CHECKPOINTED, grouped, resume, count]);
        assert_eq!(refused.code, 1, "{}", refused.stderr);
        assert!(refused.stdout.contains(path.to_str().unwrap()), "{}", refused.stdout);
    }

    let missing = "SET 'execution.state-recovery.path' = '{root}/nowhere';";
    let refused = finish(root.path(), &[TABLES, CHECKPOINTED, missing, count]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(refused.stdout.contains("nowhere"), "{}", refused.stdout);
}

#[test]
fn a_folder_of_checkpoints_that_cannot_be_written_is_named() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("checkpoints"), "a file").unwrap();
    let refused = finish(root.path(), &[TABLES, CHECKPOINTED, INSERTS]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(refused.stdout.contains(&format!("{}/checkpoints", root.path().display())), "{}", refused.stdout);
}

#[test]
fn the_default_folder_of_checkpoints_is_said_once() {
    let root = tempfile::tempdir().unwrap();
    let checkpointed = "SET 'execution.checkpointing.interval' = '1 s';";
    let mut running = piped(root.path(), &[TABLES, checkpointed, INSERTS, INSERTS, "SHOW JOBS;\n"]);
    running.wait_out("2 rows in set");
    running.signal("INT");
    let home = running.home().join(".local/state/lakehead/checkpoints");
    let stopped = running.end();
    let line = format!("[INFO] Checkpoints are written to {}\n", home.display());
    assert_eq!(stopped.stderr.matches(&line).count(), 1, "{}", stopped.stderr);
}

#[test]
fn a_job_that_fails_says_why_and_where_and_the_script_ends_with_1() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("in")).unwrap();
    fs::write(root.path().join("in/bad.json"), "{\"id\": 1}\n{\"id\": \"x\"}\n").unwrap();
    let table = "CREATE TABLE bad (id BIGINT) WITH ('connector' = 'filesystem', 'path' = '{root}/in', 'format' = 'json');
        INSERT INTO shown SELECT id FROM bad;";
    let failed = finish(root.path(), &[TABLES, table]);
    assert_eq!(failed.code, 1);
    let error =
        &failed.stderr[failed.stderr.find("[ERROR] Job ").unwrap_or_else(|| panic!("{}", failed.stderr))..];
    assert!(
        error.contains("(insert-into_default_catalog.default_database.shown) failed. Reason:\n"),
        "{error}"
    );
    assert!(error.contains("bad.json") && error.contains("id"), "{error}");
    assert!(failed.stdout.contains("Job ID: "), "{}", failed.stdout);
}

#[test]
fn a_limit_ends_a_query_of_an_endless_table() {
    let root = tempfile::tempdir().unwrap();
    let shown = finish(root.path(), &[TABLES, "SELECT id FROM numbers LIMIT 3;"]).ok();
    assert!(shown.stdout.contains("| +I |                    3 |\n"), "{}", shown.stdout);
    assert!(shown.stdout.contains("Received a total of 3 rows"), "{}", shown.stdout);
}

#[test]
fn a_script_says_how_far_its_jobs_are() {
    let root = tempfile::tempdir().unwrap();
    let mut running = start(root.path(), &[TABLES, CHECKPOINTED, INSERTS]);
    let line = running.wait_err("[INFO] numbers RUNNING: ");
    assert!(line.contains(" rows, ") && line.contains("/s, checkpoint "), "{line}");
    running.signal("INT");
    assert_eq!(running.end().code, 0);
}

#[test]
fn a_query_of_a_table_that_a_job_has_still_to_finish_says_so() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("out")).unwrap();
    let slow = "CREATE TABLE slow (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1', 'number-of-rows' = '100000');
        INSERT INTO files SELECT id FROM slow;";
    let select = "SELECT COUNT(*) FROM files;";
    let stop = "STOP JOB 'insert-into_default_catalog.default_database.files';";
    for mode in ["batch", "streaming"] {
        let mode = format!("SET 'execution.runtime-mode' = '{mode}';");
        let asked = finish(root.path(), &[&mode, TABLES, slow, select, stop, select]).ok();
        let note = "[INFO] Job 'insert-into_default_catalog.default_database.files' still writes to 'default_catalog.default_database.files'";
        assert_eq!(asked.stderr.matches(note).count(), 1, "while the job runs: {}", asked.stderr);
    }
    // Nobody waits for the end of a job that has none.
    let endless = ["INSERT INTO files SELECT id FROM numbers;", select, stop];
    let asked = finish(root.path(), &[TABLES, &endless.concat()]).ok();
    assert!(!asked.stderr.contains("still writes"), "{}", asked.stderr);
}
