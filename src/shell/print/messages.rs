//! Every fixed text of the client. Users compare them with Flink's, so they are Flink's where Flink has them.

use std::time::Duration;

/// The name in prompts and farewells.
pub(crate) const PRODUCT: &str = "Lakehead";
/// The prompt before a statement.
pub(crate) const PROMPT: &str = "Lakehead SQL> ";
/// The prompt before its further lines.
pub(crate) const CONTINUATION_PROMPT: &str = "> ";

/// After a statement without a result.
pub(crate) const EXECUTED: &str = "Execute statement succeeded.";
/// Before a job is started.
pub(crate) const SUBMITTING: &str = "Submitting SQL update statement to the cluster...";
/// After a job was started; its number follows.
pub(crate) const SUBMITTED: &str = "SQL update statement has been successfully submitted to the cluster:";
/// After a job that was waited for.
pub(crate) const COMPLETED: &str = "Complete execution of the SQL update statement.";
/// After the table or changelog view was left.
pub(crate) const RETRIEVAL_CANCELLED: &str = "Result retrieval cancelled.";
/// After QUIT.
pub(crate) const EXITING: &str = "Exiting Lakehead SQL CLI Client...";
/// The first line of every error.
pub(crate) const ERROR: &str = "Could not execute SQL statement. Reason:";
/// At the end of an interactive session.
pub(crate) const SHUTDOWN: &str = "\nShutting down the session...\ndone.\n";
/// The sentence below the banner.
pub(crate) const WELCOME: &str =
    "        Welcome! Enter 'HELP;' to list all available commands. 'QUIT;' to exit.";
/// What the changelog view says to a batch query.
pub(crate) const BATCH_CHANGELOG: &str =
    "Results of batch queries can only be served in table or tableau mode.";

/// The commands that HELP lists, in Flink's order and words.
const COMMANDS: &[(&str, &str)] = &[
    ("HELP", "Shows this list."),
    ("QUIT/EXIT", "Leaves the shell."),
    ("CLEAR", "Empties the screen."),
    (
        "SET",
        "SET 'key' = 'value'; changes an option, SET; lists what was changed, SET ALL; everything there is.",
    ),
    ("RESET", "RESET 'key'; takes one change back, RESET; all of them."),
    ("INSERT INTO", "Adds the rows of a query to a table, as a job."),
    ("INSERT OVERWRITE", "Puts the rows of a query in place of what the table holds."),
    ("SELECT", "Runs a query and shows its rows, or its changes as they come."),
    ("EXPLAIN", "Shows how a query or an INSERT would run, without running it."),
    ("BEGIN STATEMENT SET", "Collects the INSERTs that follow ..."),
    ("END", "... and runs them as one job."),
    ("ADD JAR", "Is noted; nothing here needs a JAR."),
    ("REMOVE JAR", "Takes a noted JAR off the list."),
    ("SHOW JARS", "Lists the noted JARs."),
];

/// Returns the text of HELP.
pub(crate) fn help() -> String {
    let mut text = "The following commands are available:\n\n".to_owned();
    for (command, does) in COMMANDS {
        text.push_str(&format!("{command:<19}\t\t{does}\n"));
    }
    text.push_str("\nEvery statement ends with ';' and may have several lines. All of Flink SQL is understood; what is not\nexecuted yet says so and what to do instead. Tab completes, Ctrl-C stops a query.\n");
    text
}

/// Returns the first line of the shell.
pub(crate) fn banner() -> String {
    format!("{PRODUCT} {} - Flink SQL in one binary", env!("CARGO_PKG_VERSION"))
}

/// Returns the line below a table of a query in streaming mode. Flink says `0 row`.
pub(crate) fn received(rows: u64) -> String {
    format!("Received a total of {rows} {}", if rows > 1 { "rows" } else { "row" })
}

/// Returns the line that follows Ctrl-C in a query.
pub(crate) fn terminated(rows: u64) -> String {
    format!("Query terminated, received a total of {rows} {}", if rows > 1 { "rows" } else { "row" })
}

/// Returns the line below a finished table.
pub(crate) fn in_set(rows: u64) -> String {
    match rows {
        0 => "Empty set".to_owned(),
        1 => "1 row in set".to_owned(),
        _ => format!("{rows} rows in set"),
    }
}

/// Returns what stands behind a footer, or nothing if times are not wanted.
pub(crate) fn time_cost(elapsed: Option<Duration>) -> String {
    elapsed.map_or(String::new(), |elapsed| format!(" ({:.2} seconds)", elapsed.as_secs_f64()))
}

/// Returns the error text of a statement that an init script must not hold.
pub(crate) fn unsupported_in_init_script(statement: &str) -> String {
    format!(
        "Unsupported statement for configuring session: {statement}\n\
         The configureSession API only supports executing statements of type CREATE TABLE, DROP TABLE, ALTER TABLE, \
         CREATE DATABASE, DROP DATABASE, ALTER DATABASE, CREATE FUNCTION, DROP FUNCTION, ALTER FUNCTION, \
         CREATE CATALOG, DROP CATALOG, USE CATALOG, USE [CATALOG.]DATABASE, CREATE VIEW, DROP VIEW, \
         LOAD MODULE, UNLOAD MODULE, USE MODULE, ADD JAR, SET, RESET."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn footers_count_as_flink_does() {
        assert_eq!(received(0), "Received a total of 0 row");
        assert_eq!(received(2), "Received a total of 2 rows");
        assert_eq!(in_set(0), "Empty set");
        assert_eq!(in_set(1), "1 row in set");
        assert_eq!(in_set(3), "3 rows in set");
        assert_eq!(time_cost(Some(Duration::from_millis(1_234))), " (1.23 seconds)");
        assert_eq!(time_cost(None), "");
    }

    #[test]
    fn help_lines_have_the_layout_of_flink() {
        assert!(help().contains("\nHELP               \t\tShows this list.\n"));
        assert!(help().contains("\nBEGIN STATEMENT SET\t\t"));
    }
}
