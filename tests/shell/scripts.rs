//! Scripts, flags and exit codes.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc;
use std::time::Duration;

use crate::support::run::{Lakehead, masked};

const DONE: &str = "[INFO] Execute statement succeeded.\n";
const ONE: &str = "+----+-------------+\n| op |      EXPR$0 |\n+----+-------------+\n| +I |           1 |\n+----+-------------+\nReceived a total of 1 row (<time> seconds)\n";

#[test]
fn a_file_runs_without_banner_prompt_or_echo() {
    let lakehead = Lakehead::new();
    let file = lakehead.file("a.sql", "SET 'execution.runtime-mode' = 'batch';\nSELECT 1 AS x");
    let finished = lakehead.and(&["-f", &file]).run().ok();
    assert_eq!(
        masked(&finished.stdout, None),
        format!("{DONE}+---+\n| x |\n+---+\n| 1 |\n+---+\n1 row in set (<time> seconds)\n")
    );
    assert_eq!(finished.stderr, "");
}

#[test]
fn a_file_stops_at_its_first_error_and_names_the_place() {
    let lakehead = Lakehead::new();
    let file = lakehead.file("a.sql", "SELECT 1;\n\nSELECT *\nFROM missing;\nSELECT 'not reached';\n");
    let finished = lakehead.and(&["-f", &file]).run();
    assert_eq!(finished.code, 1);
    let stdout = masked(&finished.stdout, None);
    assert!(stdout.starts_with(ONE), "{stdout}");
    assert!(
        stdout.contains(
            "[ERROR] Could not execute SQL statement. Reason:\n\
             org.apache.calcite.sql.validate.SqlValidatorException: Object 'missing' not found\n"
        ),
        "{stdout}"
    );
    assert!(stdout.contains(&format!("--> {file}:4:6\n")), "{stdout}");
    assert!(!stdout.contains("not reached"), "{stdout}");
}

#[test]
fn standard_input_goes_on_after_an_error_unless_told_otherwise() {
    let script = "SELECT * FROM missing;\nSHOW CURRENT CATALOG;\n";
    let finished = Lakehead::new().input(script).run();
    assert_eq!(finished.code, 1);
    assert!(finished.stdout.contains("default_catalog"), "{}", finished.stdout);
    let finished = Lakehead::with(&["--stop-on-error"]).input(script).run();
    assert_eq!(finished.code, 1);
    assert!(!finished.stdout.contains("default_catalog"), "{}", finished.stdout);
    let finished = Lakehead::with(&["--flink-exit-code"]).input(script).run();
    assert_eq!(finished.code, 0);
}

#[test]
fn commands_run_in_order_and_the_last_statement_needs_no_semicolon() {
    let finished =
        Lakehead::with(&["-c", "SELECT 1; SHOW CURRENT CATALOG", "-c", "SHOW CURRENT DATABASE"]).run().ok();
    let stdout = masked(&finished.stdout, None);
    assert!(stdout.starts_with(ONE), "{stdout}");
    assert!(stdout.find("default_catalog") < stdout.find("default_database"), "{stdout}");
    assert!(stdout.contains("1 row in set\n"), "{stdout}");
}

#[test]
fn an_option_without_effect_is_set_and_named_beside_the_answer() {
    let lakehead = Lakehead::new();
    let file =
        lakehead.file("set.sql", "SET 'jobmanager.rpc.port' = '6123'; SET 'parallelism.default' = '1'; SET;");
    let set = lakehead.and(&["-f", &file]).run().ok();
    assert_eq!(set.stderr.matches("[WARNING] Lakehead has no option").count(), 1, "{}", set.stderr);
    assert!(set.stderr.contains("'jobmanager.rpc.port'"), "{}", set.stderr);
    assert!(set.stdout.contains("jobmanager.rpc.port"), "{}", set.stdout);
}

#[test]
fn files_and_init_scripts_run_one_after_the_other() {
    let lakehead = Lakehead::new();
    let files = ["SET 'first.key' = '1';", "SET 'second.key' = '2';", "SET;", "SELECT 1;"];
    let names: Vec<String> =
        files.iter().enumerate().map(|(at, text)| lakehead.file(&format!("{at}.sql"), text)).collect();
    let words = ["-i", &names[0], "-i", &names[1], "-f", &names[2], "-f", &names[3]];
    let stdout = lakehead.and(&words).run().ok().stdout;
    let places: Vec<usize> =
        ["first.key", "second.key", "EXPR$0"].iter().map(|text| stdout.find(text).unwrap()).collect();
    assert!(places.is_sorted(), "{stdout}");
    let word = Lakehead::with(&["a.sql"]).run();
    assert!(word.code != 0 && word.stderr.contains("a.sql"), "{}", word.stderr);
}

#[test]
fn what_a_session_starts_with_is_checked_as_set_does() {
    for (property, hint) in [
        ("lakehead.job.resum=latest", "lakehead.job.resume"),
        ("execution.runtime-mode=btach", "STREAMING, BATCH"),
    ] {
        let refused = Lakehead::with(&["-D", property, "-c", "SELECT 1"]).run();
        let said = refused.stdout + &refused.stderr;
        assert!(refused.code == 1 && said.contains(hint) && !said.contains("EXPR$0"), "{said}");
    }
}

#[test]
fn quit_ends_a_script() {
    let finished = Lakehead::new().input("SELECT 1; QUIT; SELECT 2;").run().ok();
    assert_eq!(masked(&finished.stdout, None), format!("{ONE}[INFO] Exiting Lakehead SQL CLI Client...\n"));
}

#[test]
fn the_echo_makes_a_transcript() {
    let finished = Lakehead::with(&["--echo"]).input("SELECT\n  1;\nSHOW JARS;").run().ok();
    assert_eq!(
        masked(&finished.stdout, None),
        format!("Lakehead SQL> SELECT\n>   1;\n{ONE}\nLakehead SQL> SHOW JARS;\nEmpty set\n\n")
    );
}

#[test]
fn other_formats_leave_standard_output_to_rows() {
    let script = "SET 'execution.runtime-mode' = 'batch'; SELECT 1 AS a, 'x,y' AS b;";
    let run = |format: &str| Lakehead::with(&["--output", format, "-c", script]).run().ok();
    let csv = run("csv");
    assert_eq!(csv.stdout, "a,b\n1,\"x,y\"\n");
    assert_eq!(masked(&csv.stderr, None), format!("{DONE}1 row in set (<time> seconds)\n"));
    assert_eq!(run("jsonl").stdout, "{\"a\":1,\"b\":\"x,y\"}\n");
    assert_eq!(run("json").stdout, "[\n {\"a\":1,\"b\":\"x,y\"}\n]\n");
    assert_eq!(run("markdown").stdout, "| a | b   |\n|---|-----|\n| 1 | x,y |\n");
    let changes = Lakehead::with(&["--output", "jsonl", "-c", "SELECT 1 AS a"]).run().ok();
    assert_eq!(changes.stdout, "{\"op\":\"+I\",\"a\":1}\n");
}

#[test]
fn an_init_script_prepares_the_session_and_may_not_query() {
    let lakehead = Lakehead::new();
    let init =
        lakehead.file("init.sql", "CREATE VIEW v AS SELECT 1 AS a;\nSET 'execution.runtime-mode' = 'batch';");
    let finished = lakehead.and(&["-i", &init, "-c", "SELECT * FROM v"]).run().ok();
    assert!(finished.stdout.starts_with("+---+\n| a |\n"), "{}", finished.stdout);

    let lakehead = Lakehead::new();
    let init = lakehead.file("init.sql", "SELECT 1;");
    let finished = lakehead.and(&["-i", &init, "-c", "SELECT 2"]).run();
    assert_eq!(finished.code, 1);
    assert!(
        finished.stdout.contains(
            "java.lang.UnsupportedOperationException: Unsupported statement for configuring session: SELECT 1\n"
        ),
        "{}",
        finished.stdout
    );
    assert!(
        finished.stdout.contains(&format!("Failed to initialize from sql script: {init}.")),
        "{}",
        finished.stdout
    );
}

#[test]
fn what_is_no_script_is_named() {
    let lakehead = Lakehead::new();
    let home = lakehead.home().display().to_string();
    let finished = lakehead.and(&["-f", "missing.sql"]).run();
    assert_eq!(finished.code, 1);
    assert!(finished.stdout.contains("script 'missing.sql' cannot be read"), "{}", finished.stdout);
    let finished = Lakehead::with(&["-f", &home]).run();
    assert_eq!(finished.code, 1);
    let finished = Lakehead::new().input(&b"SELECT 1;\nSELECT '\xff';"[..]).run();
    assert_eq!(finished.code, 1);
    assert!(finished.stdout.contains("<stdin>:2: byte 18 is not UTF-8"), "{}", finished.stdout);
}

#[test]
fn what_is_unfinished_at_the_end_is_an_error_with_its_place() {
    for (script, what, place) in [
        ("SELECT 1;\nSELECT 'abc", "unfinished string literal", "<stdin>:2:8"),
        ("SELECT `a", "unfinished quoted identifier", "<stdin>:1:8"),
        ("/* never closed", "unfinished comment", "<stdin>:1:1"),
    ] {
        let finished = Lakehead::new().input(script).run();
        assert_eq!(finished.code, 1, "{script}");
        assert!(finished.stdout.contains(what), "{}", finished.stdout);
        assert!(finished.stdout.contains(place), "{}", finished.stdout);
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let lakehead = Lakehead::with(&["-c", "SELECT 1; SELECT 2; SELECT 3;"]);
    let mut child = lakehead.spawn();
    drop(child.stdout.take());
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_program_may_wait_for_an_answer_before_it_writes_on() {
    let lakehead = Lakehead::with(&["--output", "csv"]);
    let mut child = lakehead.spawn();
    let mut stdin = child.stdin.take().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (sender, answers) = mpsc::channel();
    std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let answer = || answers.recv_timeout(Duration::from_secs(60)).unwrap();
    for number in ["1", "2"] {
        writeln!(stdin, "SELECT {number} AS a;").unwrap();
        assert_eq!(answer(), "op,a");
        assert_eq!(answer(), format!("+I,{number}"));
    }
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn deep_and_long_statements_do_not_overflow() {
    const BATCH: &str = "SET 'execution.runtime-mode' = 'batch';";
    let brackets = format!("SELECT {}1{} AS a;", "(".repeat(20_000), ")".repeat(20_000));
    let finished = Lakehead::new().input(brackets).run();
    assert_eq!(finished.code, 1);
    assert!(finished.stdout.contains("nested too deeply"), "{}", finished.stdout);
    let and = format!("SELECT a FROM (VALUES (1)) AS t (a) WHERE {}a = 1;", "a = 1 AND ".repeat(9_999));
    let text = "x".repeat(10_000_000);
    for (statement, answer) in [(and, "1"), (format!("SELECT '{text}' AS a;"), text.as_str())] {
        let finished = Lakehead::with(&["--output", "csv"]).input(format!("{BATCH}{statement}")).run();
        let shown: String = finished.stderr.chars().take(500).collect();
        assert!(finished.code == 0 && finished.stdout == format!("a\n{answer}\n"), "{shown}");
    }
}

#[test]
fn ten_thousand_statements_run() {
    let finished = Lakehead::new().input("SET 'a.b' = 'c';\n".repeat(10_000)).run().ok();
    assert_eq!(finished.stdout, DONE.repeat(10_000));
}

#[test]
fn flags_are_checked_and_help_is_printed() {
    let finished = Lakehead::with(&["-s", "a b", "-c", "SELECT 1"]).run();
    assert_eq!(finished.code, 1);
    assert!(
        finished.stdout.contains("Session identifier must only consists of 'a-zA-Z0-9_-.'."),
        "{}",
        finished.stdout
    );
    let help = Lakehead::with(&["--help"]).run().ok().stdout;
    assert!(help.contains("--stop-on-error") && help.contains("-D <KEY=VALUE>"), "{help}");
    let script = Lakehead::with(&["--completions", "bash"]).run().ok().stdout;
    assert!(script.contains("_lakehead"), "{script}");
    assert_eq!(Lakehead::with(&["--no-such-flag"]).run().code, 2);
}

#[test]
fn options_come_from_flags_files_and_the_environment() {
    let show = "SET;";
    let finished = Lakehead::with(&["-D", "a.b=flag", "-c", show]).run().ok();
    assert!(finished.stdout.contains("| a.b |  flag |"), "{}", finished.stdout);
    let lakehead = Lakehead::new();
    let config = lakehead.file("config.yaml", "execution:\n  runtime-mode: batch\n");
    let finished = lakehead.and(&["--config", &config, "-c", "SELECT 1 AS a"]).run().ok();
    assert!(finished.stdout.contains("1 row in set"), "{}", finished.stdout);
    let finished = Lakehead::with(&["-c", "SELECT 1"])
        .variable("FLINK_PROPERTIES", "execution.runtime-mode: batch")
        .run()
        .ok();
    assert!(finished.stdout.contains("1 row in set"), "{}", finished.stdout);
}

#[cfg(unix)]
#[test]
fn control_c_stops_a_script_with_130() {
    let create = "CREATE TABLE endless (id INT) WITH ('connector' = 'datagen', 'rows-per-second' = '100');";
    let lakehead = Lakehead::with(&["-c", &format!("{create} SELECT * FROM endless; SELECT 'not reached';")]);
    let mut child = lakehead.spawn();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut printed = String::new();
    while !printed.contains("| +I |") {
        assert_ne!(output.read_line(&mut printed).unwrap(), 0, "{printed}");
    }
    let interrupted = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupted.unwrap().success());
    output.read_to_string(&mut printed).unwrap();
    assert!(printed.contains("\nQuery terminated, received a total of "), "{printed}");
    assert!(!printed.contains("not reached"), "{printed}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
