//! A person at the terminal.

use crate::support::terminal::Terminal;

const ENDLESS: &str = "CREATE TABLE endless (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '20', \
                       'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '1000000');";
const TABLEAU: &str = "SET 'sql-client.execution.result-mode' = 'tableau';";

/// Starts a shell and waits for its first prompt.
fn start(home: &std::path::Path) -> Terminal {
    let terminal = Terminal::start(home, &[]);
    terminal.wait_for_prompt();
    terminal
}

/// Runs a statement on an empty screen and waits for a text in its answer.
#[track_caller]
fn run(terminal: &mut Terminal, statement: &str, answer: &str) {
    clear(terminal);
    terminal.line(statement);
    terminal
        .wait(answer, |screen| screen.contains(answer) && screen.trim_end().ends_with("\n\nLakehead SQL>"));
}

/// Empties the screen.
#[track_caller]
fn clear(terminal: &mut Terminal) {
    terminal.line("CLEAR;");
    terminal.wait("empty screen", |screen| screen.trim() == "Lakehead SQL>");
}

#[test]
fn the_shell_greets_and_says_goodbye() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = start(home.path());
    let screen = terminal.wait_for_prompt();
    assert!(
        screen.contains("Welcome! Enter 'HELP;' to list all available commands. 'QUIT;' to exit."),
        "{screen}"
    );
    assert!(screen.contains(&format!("Command history file path: {}", home.path().display())), "{screen}");
    terminal.line("QUIT;");
    let screen = terminal.wait_for("done.");
    assert!(
        screen.contains(
            "QUIT;\n[INFO] Exiting Lakehead SQL CLI Client...\n\nShutting down the session...\ndone."
        ),
        "{screen}"
    );
    assert_eq!(terminal.wait_for_end(), 0);
}

#[test]
fn control_d_leaves() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = start(home.path());
    terminal.keys("\x04");
    terminal.wait_for("Shutting down the session...\ndone.");
    assert_eq!(terminal.wait_for_end(), 0);
}

#[test]
fn a_pasted_tutorial_block_loses_its_prompts() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = start(home.path());
    terminal.paste(
        "Flink SQL> SET 'sql-client.execution.result-mode' = 'tableau';\n\
         Flink SQL> SELECT a,\n>   b\n> FROM (VALUES (1, 'x')) AS t (a, b);\n",
    );
    terminal.keys("\r");
    let screen = terminal.wait_for("Received a total of 1 row");
    assert!(screen.contains("| +I |           1 |"), "{screen}");
    terminal.wait_for_prompt();
}

#[test]
fn further_lines_have_their_own_prompt_and_one_history_entry() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = start(home.path());
    run(&mut terminal, TABLEAU, "[INFO] Execute statement succeeded.");
    clear(&mut terminal);
    terminal.line("SELECT 40 +");
    terminal.wait("continuation prompt", |screen| screen.trim_end().ends_with("\n>"));
    terminal.line("2;");
    terminal.wait_for("|          42 |");
    terminal.wait_for_prompt();
    clear(&mut terminal);
    // Up past CLEAR is the whole statement.
    terminal.keys("\x1b[A\x1b[A");
    terminal.wait_for("Lakehead SQL> SELECT 40 +\n2;");
    terminal.keys("\r");
    terminal.wait_for("|          42 |");
    terminal.wait_for_prompt();
    terminal.line("QUIT;");
    terminal.wait_for_end();

    let file = home.path().join(".lakehead-sql-history");
    let history = std::fs::read_to_string(&file).unwrap();
    assert!(history.lines().any(|line| line.ends_with(":SELECT 40 +\\n2;")), "{history}");
    let mut again = start(home.path());
    again.keys("\x1b[A\x1b[A");
    again.wait_for("SELECT 40 +\n2;");
}

#[test]
fn up_on_a_further_line_opens_the_whole_statement() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = start(home.path());
    run(&mut terminal, TABLEAU, "[INFO] Execute statement succeeded.");
    terminal.line("SELECT 1 AS");
    terminal.line("wrong,");
    // Up opens both lines, and the first of them is mended.
    terminal.keys("\x1b[A");
    terminal.wait_for("Lakehead SQL> SELECT 1 AS\nwrong,");
    terminal.keys("\x17right, 2 AS other;\r");
    terminal.wait("other", |screen| screen.contains("other |"));
    terminal.wait_for_prompt();
}

#[test]
fn tab_completes_tables() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = start(home.path());
    run(&mut terminal, ENDLESS, "[INFO] Execute statement succeeded.");
    clear(&mut terminal);
    terminal.keys("SELECT id FROM endl\t");
    terminal.wait_for("Lakehead SQL> SELECT id FROM endless");
    terminal.keys("\x03");
    terminal.wait_for_prompt();
    terminal.keys("SET 'execution.runtime-m\t = 'ba\t");
    terminal.wait_for("SET 'execution.runtime-mode' = 'batch'");
}

#[test]
fn control_c_gives_up_input_and_stops_a_query() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = start(home.path());
    run(&mut terminal, ENDLESS, "[INFO] Execute statement succeeded.");
    run(&mut terminal, TABLEAU, "[INFO] Execute statement succeeded.");
    clear(&mut terminal);
    terminal.keys("SELECT something\x03");
    let screen = terminal.wait("new prompt", |screen| screen.matches("Lakehead SQL>").count() == 2);
    assert!(screen.contains("Lakehead SQL> SELECT something"), "{screen}");
    clear(&mut terminal);
    terminal.line("SELECT * FROM endless;");
    terminal.wait_for("| +I |                    3 |");
    terminal.keys("\x03");
    let screen = terminal.wait_for("Query terminated, received a total of ");
    assert!(screen.contains("^CQuery terminated"), "{screen}");
    terminal.wait_for_prompt();
    run(&mut terminal, "SELECT 7;", "Received a total of 1 row");
}

#[test]
fn table_mode_is_opened_paged_and_left() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = start(home.path());
    terminal.line(ENDLESS);
    terminal.wait_for("[INFO] Execute statement succeeded.");
    clear(&mut terminal);
    terminal.line("SELECT * FROM endless;");
    terminal.wait_for("SQL Query Result (Table)");
    terminal.wait_for("Page: Last of 2");
    terminal.keys("p");
    let screen = terminal.wait_for("Page: 1 of ");
    assert!(screen.contains("Q Quit             + Inc Refresh      G Goto Page"), "{screen}");
    terminal.keys("\x1b[Bo");
    terminal.wait_for("Row Summary");
    terminal.wait_for(" id (BIGINT):");
    terminal.keys("q");
    terminal.wait_for("SQL Query Result (Table)");
    terminal.keys("q");
    let screen = terminal.wait_for_prompt();
    assert!(
        screen.contains("SELECT * FROM endless;\n[INFO] Result retrieval cancelled.\n\nLakehead SQL>"),
        "{screen}"
    );
}

#[test]
fn changelog_mode_shows_kinds() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = start(home.path());
    run(
        &mut terminal,
        "SET 'sql-client.execution.result-mode' = 'changelog';",
        "[INFO] Execute statement succeeded.",
    );
    terminal.line("SELECT a FROM (VALUES (1), (2)) AS t (a);");
    terminal.wait_for("SQL Query Result (Changelog)");
    terminal.wait_for("Table program finished.");
    terminal.wait_for(" +I           2");
    terminal.keys("q");
    terminal.wait_for("[INFO] Result retrieval cancelled.");
    terminal.wait_for_prompt();
}

#[test]
fn an_error_leaves_the_shell_alive() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = start(home.path());
    run(&mut terminal, "SELECT * FROM missing;", "Object 'missing' not found");
    run(&mut terminal, "SHOW CURRENT CATALOG;", "1 row in set");
}

#[test]
fn a_history_that_cannot_be_written_is_a_warning() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".lakehead-sql-history")).unwrap();
    let mut terminal = start(home.path());
    terminal.wait_for("[WARNING] Unable to create history file: ");
    run(&mut terminal, "SHOW CURRENT CATALOG;", "1 row in set");
}

#[test]
fn lines_of_a_job_appear_above_what_is_being_typed() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = start(home.path());
    let done = "[INFO] Execute statement succeeded.";
    run(&mut terminal, "SET 'execution.runtime-mode' = 'batch';", done);
    run(
        &mut terminal,
        "CREATE TABLE slow (id INT) WITH ('connector' = 'datagen', 'number-of-rows' = '6', \
         'rows-per-second' = '2', 'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '6');",
        done,
    );
    run(&mut terminal, "CREATE TABLE p (id INT) WITH ('connector' = 'print');", done);
    clear(&mut terminal);
    terminal.line("INSERT INTO p SELECT id FROM slow;");
    terminal.wait("prompt behind the job", |screen| {
        screen.contains("Job ID: ") && screen.trim_end().ends_with("Lakehead SQL>")
    });
    terminal.keys("SELECT 'half");
    terminal.wait("the last row above the half statement", |screen| {
        let row = screen.find("+I[6]");
        row.is_some() && row < screen.rfind("Lakehead SQL> SELECT 'half")
    });
}

#[test]
fn further_lines_are_numbered_where_asked() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = start(home.path());
    let done = "[INFO] Execute statement succeeded.";
    run(&mut terminal, "SET 'sql-client.display.show-line-numbers' = 'true';", done);
    clear(&mut terminal);
    terminal.line("SELECT");
    terminal.line("1");
    terminal.wait_for("Lakehead SQL> SELECT\n 2> 1\n 3>");
}

/// Starts an endless job and asks to leave.
fn leave_with_a_job(home: &std::path::Path) -> Terminal {
    let mut terminal = start(home);
    let done = "[INFO] Execute statement succeeded.";
    run(&mut terminal, ENDLESS, done);
    run(&mut terminal, "CREATE TABLE hole (id BIGINT) WITH ('connector' = 'blackhole');", done);
    run(&mut terminal, "SET 'execution.checkpointing.interval' = '1 h';", done);
    clear(&mut terminal);
    terminal.line("INSERT INTO hole SELECT id FROM endless;");
    terminal.wait("prompt behind the job", |screen| {
        let is_told = screen.contains("Job ID: ") && screen.contains("Checkpoints are written to ");
        is_told && screen.trim_end().ends_with("Lakehead SQL>")
    });
    terminal.keys("\x04");
    terminal.wait_for("1 job is running: stop with a final checkpoint? [Y/n]");
    terminal
}

#[test]
fn leaving_stops_the_jobs_with_a_checkpoint() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = leave_with_a_job(home.path());
    terminal.keys("\r");
    let screen = terminal.wait_for("Shutting down the session...\ndone.");
    assert!(
        screen.contains("is stopped. To go on from here: SET 'execution.state-recovery.path'"),
        "{screen}"
    );
    assert_eq!(terminal.wait_for_end(), 0);
}

#[test]
fn leaving_cancels_the_jobs_where_no_checkpoint_is_wanted() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = leave_with_a_job(home.path());
    terminal.keys("n\r");
    let screen = terminal.wait_for("Shutting down the session...\ndone.");
    assert!(screen.contains("[INFO] The jobs are cancelled."), "{screen}");
    assert_eq!(terminal.wait_for_end(), 0);
}
