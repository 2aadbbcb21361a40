//! From the command line to an exit code: sets up the session, then runs scripts or the prompt.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use clap::CommandFactory;

use super::args::Args;
use super::engine::Engine;
use super::interrupt::Interrupts;
use super::panics;
use super::print::OutputFormat;
use super::print::console::Console;
use super::repl;
use super::runner::{Outcome, Runner, RunnerSettings};
use super::script::{self, ScriptEnd, ScriptSettings};
use crate::error::{Result, SourceText};
use crate::options::{ConfigSources, SessionConfig, load_defaults};
use crate::session::{JobProgress, Session, SessionSettings, StatementResult, StoppedJob};
use crate::sql::Statement;

// Limit: virtual, and used only as deep as expressions are nested. Workers evaluate what this thread has planned.
const WORKER_STACK_BYTES: usize = 256 * 1024 * 1024;

/// What the user sees of an end by Ctrl-C, as shells count it.
const INTERRUPTED: u8 = 130;

/// Runs the shell; the calling thread executes the statements, so its stack must be large.
pub fn run(args: &Args) -> ExitCode {
    if let Some(shell) = args.completions {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Args::command(), "lakehead", &mut script);
        Console::of_process(false).write(&String::from_utf8_lossy(&script));
        return ExitCode::SUCCESS;
    }
    panics::install_hook();
    let is_interactive = args.files.is_empty()
        && args.commands.is_empty()
        && std::io::stdin().is_terminal()
        && std::io::stdout().is_terminal();
    let console = Arc::new(Console::of_process(args.output != OutputFormat::Tableau));
    match start(args, &console, is_interactive) {
        Ok(mut runner) => {
            let code = run_all(args, &mut runner, is_interactive);
            runner.shut_down();
            ExitCode::from(code)
        }
        Err(error) => {
            console.error(&error, None, false);
            ExitCode::FAILURE
        }
    }
}

/// Creates session and runtime.
fn start(args: &Args, console: &Arc<Console>, is_interactive: bool) -> Result<Runner> {
    let properties = args.checked_properties()?;
    let defaults = load_defaults(&ConfigSources {
        file: args.config.clone(),
        legacy_environment: args.defaults.clone(),
        properties,
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("worker")
        .thread_stack_size(WORKER_STACK_BYTES)
        .enable_all()
        .build()?;
    let output = Arc::clone(console);
    let session = {
        let _guard = runtime.enter();
        Session::new(SessionSettings { defaults, output, session_id: args.session.clone() })?
    };
    let interrupts = Interrupts::listen(&runtime, !is_interactive)?;
    let settings = RunnerSettings { output: args.output, is_interactive, is_init: false };
    Ok(Runner::new(Box::new(session), runtime, Arc::clone(console), interrupts, settings))
}

/// Runs the init script, then what the flags say, and returns the exit code.
fn run_all(args: &Args, runner: &mut Runner, is_interactive: bool) -> u8 {
    let failed = if args.flink_exit_code { 0 } else { 1 };
    for uri in &args.inits {
        if let Some(code) = run_init(args, runner, uri, is_interactive) {
            return code;
        }
    }
    let end = if is_interactive {
        return match repl::run(runner, args.history.clone()) {
            Ok(Outcome::Failed) => failed,
            Ok(_) => 0,
            Err(error) => {
                runner.report(error, None);
                1
            }
        };
    } else if args.files.is_empty() && args.commands.is_empty() {
        script::run_stdin(runner, ScriptSettings { echo: args.echo, stop_on_error: args.stop_on_error })
    } else {
        match run_scripts(args, runner) {
            Ok(end) => end,
            // What cannot even be read is no failed statement: Flink's client fails here, too.
            Err(error) => {
                runner.report(error, None);
                return 1;
            }
        }
    };
    match end {
        ScriptEnd::Failed if args.stop_on_error || !args.files.is_empty() || !args.commands.is_empty() => {
            runner.stop_jobs();
            failed
        }
        ScriptEnd::Interrupted => {
            runner.stop_jobs();
            INTERRUPTED
        }
        ScriptEnd::Done | ScriptEnd::Exit | ScriptEnd::Failed => match runner.wait_for_jobs() {
            Outcome::Interrupted => INTERRUPTED,
            Outcome::Failed => failed,
            Outcome::Done | Outcome::Exit if end == ScriptEnd::Failed => failed,
            Outcome::Done | Outcome::Exit => 0,
        },
    }
}

/// Runs the files, then the commands, until one of them ends the shell.
fn run_scripts(args: &Args, runner: &mut Runner) -> Result<ScriptEnd> {
    let settings = ScriptSettings { echo: args.echo, stop_on_error: true };
    let mut sources = Vec::new();
    for uri in &args.files {
        sources.push(script::read_file(uri)?);
    }
    sources.extend(args.commands.iter().map(|sql| SourceText::new("<command>", sql.as_str())));
    for source in &sources {
        let end = script::run(runner, source, settings);
        if end != ScriptEnd::Done {
            return Ok(end);
        }
    }
    Ok(ScriptEnd::Done)
}

/// Runs the init script; returns an exit code if the shell ends here.
fn run_init(args: &Args, runner: &mut Runner, uri: &str, is_interactive: bool) -> Option<u8> {
    let settings = RunnerSettings { output: args.output, is_interactive: false, is_init: true };
    runner.set_settings(settings);
    let end = script::read_file(uri)
        .map(|source| script::run(runner, &source, ScriptSettings { echo: false, stop_on_error: true }));
    runner.set_settings(RunnerSettings { is_interactive, is_init: false, ..settings });
    match end {
        Ok(ScriptEnd::Done | ScriptEnd::Exit) => {
            if is_interactive {
                runner.console().write_message(&format!("Successfully initialized from sql script: {uri}\n"));
            }
            return None;
        }
        Ok(ScriptEnd::Interrupted) => return Some(INTERRUPTED),
        Ok(ScriptEnd::Failed) => {}
        Err(error) => runner.report(error, None),
    }
    runner.console().write_message(&format!("Failed to initialize from sql script: {uri}.\n"));
    Some(if args.flink_exit_code { 0 } else { 1 })
}

#[async_trait]
impl Engine for Session {
    async fn execute(&mut self, statement: &Statement, text: &str) -> Result<StatementResult> {
        Session::execute(self, statement, text).await
    }

    fn config(&self) -> &SessionConfig {
        Session::config(self)
    }

    fn catalog_names(&self) -> Vec<String> {
        Session::catalog_names(self)
    }

    async fn database_names(&self, catalog: Option<&str>) -> Vec<String> {
        Session::database_names(self, catalog).await
    }

    async fn table_names(&self, database: &[String]) -> Vec<String> {
        Session::table_names(self, database).await
    }

    async fn column_names(&self, table: &[String]) -> Vec<String> {
        Session::column_names(self, table).await
    }

    fn function_names(&self) -> Vec<String> {
        Session::function_names(self)
    }

    async fn wait_for_jobs(&mut self) -> Result<()> {
        self.finish_jobs().await
    }

    fn running_jobs(&self) -> Vec<JobProgress> {
        self.jobs().progress()
    }

    async fn stop_jobs(&mut self) -> Vec<StoppedJob> {
        Session::stop_jobs(self).await
    }

    fn cancel_jobs(&mut self) {
        Session::cancel_jobs(self);
    }
}
