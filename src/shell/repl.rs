//! The interactive shell: prompt, statement, result, and again.

use std::path::PathBuf;
use std::time::Duration;

use super::client_options;
use super::complete::{Completion, Names, complete};
use super::editor::{EditorHandle, ReadSettings, Request, default_history_path};
use super::highlight::Scheme;
use super::history::HistoryFile;
use super::print::messages;
use super::runner::{Outcome, Runner};
use crate::error::{Result, SourceText};
use crate::sql::split;

/// The name of what was typed, in the places of errors.
const SOURCE: &str = "<shell>";

/// Reads and runs statements until the user leaves.
///
/// # Errors
/// The terminal cannot be used.
pub(crate) fn run(runner: &mut Runner, history: Option<PathBuf>) -> Result<Outcome> {
    let console = std::sync::Arc::clone(runner.console());
    console.write(&format!("\n{}\n{}\n\n", messages::banner(), messages::WELCOME));
    let history = open_history(runner, history);
    let editor = EditorHandle::start(history, console.has_colors())?;
    console.set_prompt_port(editor.lines.clone());
    let mut is_left = false;
    while !is_left && !console.is_broken() {
        console.write("\n");
        is_left = !editor.read(read_settings(runner)) || !serve(runner, &editor);
    }
    let end = leave(runner, &editor);
    console.set_prompt_port(None);
    console.write(messages::SHUTDOWN);
    Ok(end)
}

/// Stops the jobs that still run, with a last checkpoint unless the user does not want one.
fn leave(runner: &mut Runner, editor: &EditorHandle) -> Outcome {
    let count = runner.engine().running_jobs().len();
    if count == 0 || runner.console().is_broken() {
        return Outcome::Done;
    }
    let jobs = if count == 1 { "1 job is".to_owned() } else { format!("{count} jobs are") };
    let question = format!("{jobs} running: stop with a final checkpoint? [Y/n] ");
    let is_refused = editor.ask(&question) && is_no(editor);
    // Lines of jobs go out directly from here on: there is no prompt any more that they could come above.
    runner.console().set_prompt_port(None);
    if is_refused {
        runner.cancel_jobs();
        return Outcome::Done;
    }
    runner.stop_jobs()
}

/// Waits for the answer to a question; returns whether it is no.
fn is_no(editor: &EditorHandle) -> bool {
    loop {
        match editor.requests.recv() {
            Ok(Request::Input(text)) => return text.trim().to_ascii_lowercase().starts_with('n'),
            Ok(Request::Complete { text, answer }) => {
                // There is nothing to complete in an answer.
                let _ = answer.send((text.len(), Vec::new()));
            }
            Ok(Request::HistoryFailed(_)) => {}
            Ok(Request::Abandoned | Request::End) | Err(_) => return false,
        }
    }
}

/// Opens the history file and says where it is; without one, the shell says so and goes on.
fn open_history(runner: &Runner, given: Option<PathBuf>) -> Option<(HistoryFile, Vec<String>)> {
    let console = runner.console();
    let Some(path) = given.or_else(default_history_path) else {
        console.warning("There is no home directory, so no history is kept.");
        return None;
    };
    match HistoryFile::open(&path) {
        Ok(opened) => {
            console.write(&format!("Command history file path: {}\n", path.display()));
            Some(opened)
        }
        Err(error) => {
            console.warning(&format!(
                "Unable to create history file: {} ({})",
                path.display(),
                error.message()
            ));
            None
        }
    }
}

/// Returns what the editor must know of the session.
fn read_settings(runner: &Runner) -> ReadSettings {
    let config = runner.engine().config();
    ReadSettings {
        scheme: Scheme::named(&client_options::color_schema(config)),
        shows_line_numbers: client_options::shows_line_numbers(config),
    }
}

/// Answers the editor until it has read something; returns whether the shell goes on.
fn serve(runner: &mut Runner, editor: &EditorHandle) -> bool {
    loop {
        match editor.requests.recv() {
            Ok(Request::Complete { text, answer }) => {
                let found = complete_guarded(&text, runner);
                // The editor waits for the answer; it is gone only together with the terminal.
                let _ = answer.send(found);
            }
            Ok(Request::HistoryFailed(error)) => {
                runner.console().warning(&format!("The history is not kept any more: {}", error.message()));
            }
            Ok(Request::Input(text)) => return run_input(runner, text),
            Ok(Request::Abandoned) => return true,
            Ok(Request::End) | Err(_) => return false,
        }
    }
}

/// Runs the statements of an input; returns whether the shell goes on.
fn run_input(runner: &mut Runner, text: String) -> bool {
    let source = SourceText::new(SOURCE, text);
    for piece in split(&source.text) {
        match runner.run_piece(&piece, &source) {
            Outcome::Done | Outcome::Failed => {}
            // What was typed behind it on the same line is given up, too.
            Outcome::Interrupted => return true,
            Outcome::Exit => return false,
        }
    }
    true
}

/// Looks for completions. A bug in it costs the completions, not the shell.
fn complete_guarded(text: &str, runner: &Runner) -> (usize, Vec<Completion>) {
    super::panics::catch(|| Ok(complete(text, runner))).unwrap_or_else(|_| (text.len(), Vec::new()))
}

impl Runner {
    /// Asks the engine for names. A catalog that does not answer soon offers nothing: the user waits at the prompt.
    fn names<T: Default>(&self, names: impl Future<Output = T>) -> T {
        const WAIT_MAX: Duration = Duration::from_secs(2);
        self.runtime().block_on(async { tokio::time::timeout(WAIT_MAX, names).await.unwrap_or_default() })
    }
}

impl Names for Runner {
    fn catalogs(&self) -> Vec<String> {
        self.engine().catalog_names()
    }

    fn databases(&self, catalog: Option<&str>) -> Vec<String> {
        self.names(self.engine().database_names(catalog))
    }

    fn tables(&self, database: &[String]) -> Vec<String> {
        self.names(self.engine().table_names(database))
    }

    fn columns(&self, table: &[String]) -> Vec<String> {
        self.names(self.engine().column_names(table))
    }

    fn functions(&self) -> Vec<String> {
        self.engine().function_names()
    }
}
