//! The line editor on its own thread: it reads statements, and asks the shell for completions, while jobs go on printing.
//!
//! A statement is read line by line, each behind its own prompt, as Flink's client shows it; rustyline cannot put prompts
//! inside one text. Up on a further line opens all lines so far as one text, and so does a statement from the history.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use rustyline::completion::{Completer, Pair};
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{
    Cmd, CompletionType, ConditionalEventHandler, Config, Context, Editor, Event, EventContext, EventHandler,
    ExternalPrinter, Helper, KeyCode, KeyEvent, Modifiers, RepeatCount,
};

use super::complete::Completion;
use super::highlight::Scheme;
use super::history::{ENTRIES_MAX, HistoryFile};
use super::print::messages::{CONTINUATION_PROMPT, PROMPT};
use crate::error::{Error, Result};
use crate::sql::Splitter;

/// How the next statement is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadSettings {
    /// The colours.
    pub(crate) scheme: Scheme,
    /// Whether prompts of further lines show their number.
    pub(crate) shows_line_numbers: bool,
}

/// What the shell wants of the editor.
enum Order {
    /// The next statement.
    Statement(ReadSettings),
    /// A line in answer to a question.
    Answer(String),
}

/// What the editor wants of the shell.
pub(crate) enum Request {
    /// One or more whole statements were typed, or the answer to a question.
    Input(String),
    /// The input was given up with Ctrl-C.
    Abandoned,
    /// Ctrl-D, or the terminal is gone.
    End,
    /// Tab: what may stand at the end of this text?
    Complete { text: String, answer: SyncSender<(usize, Vec<Completion>)> },
    /// The history file failed; it is not written any more.
    HistoryFailed(Error),
}

/// The shell's side of the editor.
pub(crate) struct EditorHandle {
    /// Tells the editor to read; dropped, it ends.
    orders: Sender<Order>,
    /// What the editor wants.
    pub(crate) requests: Receiver<Request>,
    /// Takes lines of jobs, which appear above the prompt.
    pub(crate) lines: Option<SyncSender<String>>,
}

impl EditorHandle {
    /// Starts the editor's thread.
    ///
    /// # Errors
    /// The terminal cannot be used.
    pub(crate) fn start(
        history: Option<(HistoryFile, Vec<String>)>,
        has_colors: bool,
    ) -> Result<EditorHandle> {
        let (orders, order_receiver) = channel();
        let (sender, requests) = channel();
        let mut editor = new_editor(sender.clone(), has_colors)?;
        let (file, entries) = history.map_or((None, Vec::new()), |(file, entries)| (Some(file), entries));
        for entry in entries {
            // An entry that the editor does not take (a repetition) is no loss.
            let _ = editor.add_history_entry(entry);
        }
        let lines = editor.create_external_printer().ok().map(spawn_printer);
        let edits_whole = Arc::new(AtomicBool::new(false));
        let is_continued = Arc::new(AtomicBool::new(false));
        bind_up(&mut editor, &edits_whole, &is_continued);
        let reader = StatementReader { editor, file, requests: sender, edits_whole, is_continued };
        std::thread::Builder::new().name("editor".to_owned()).spawn(move || reader.serve(&order_receiver))?;
        Ok(EditorHandle { orders, requests, lines })
    }

    /// Asks for the next statement; it comes as a request. Returns whether the editor is still there.
    pub(crate) fn read(&self, settings: ReadSettings) -> bool {
        self.orders.send(Order::Statement(settings)).is_ok()
    }

    /// Asks the user a question; the answer comes as a request. Returns whether the editor is still there.
    pub(crate) fn ask(&self, question: &str) -> bool {
        self.orders.send(Order::Answer(question.to_owned())).is_ok()
    }
}

/// Returns the history file's default place, if there is a home.
pub(crate) fn default_history_path() -> Option<PathBuf> {
    std::env::home_dir()
        .filter(|home| !home.as_os_str().is_empty())
        .map(|home| home.join(".lakehead-sql-history"))
}

/// Returns whether a text holds whole statements only.
pub(crate) fn is_complete(text: &str) -> bool {
    let mut splitter = Splitter::new();
    splitter.push(text);
    splitter.push("\n");
    while splitter.next_piece().is_some() {}
    !splitter.is_inside_statement()
}

/// Returns whether a text holds no statement at all: blanks, comments and bare semicolons.
pub(crate) fn is_empty(text: &str) -> bool {
    crate::sql::split(text).is_empty()
}

type LineEditor = Editor<StatementHelper, MemHistory>;

/// Sets up rustyline.
fn new_editor(requests: Sender<Request>, has_colors: bool) -> Result<LineEditor> {
    let config = Config::builder()
        .max_history_size(ENTRIES_MAX)
        .and_then(|config| config.history_ignore_dups(true))
        .map_err(terminal_error)?
        .completion_type(CompletionType::List)
        .completion_show_all_if_ambiguous(true)
        .build();
    let history = MemHistory::with_config(&config);
    let mut editor = Editor::with_history(config, history).map_err(terminal_error)?;
    editor.set_auto_add_history(false);
    let helper =
        StatementHelper { requests, before: String::new(), scheme: Scheme::named("default"), has_colors };
    editor.set_helper(Some(helper));
    Ok(editor)
}

/// Words an error of the line editor.
fn terminal_error(error: ReadlineError) -> Error {
    Error::unavailable("the terminal cannot be used").caused_by(error)
}

/// Prints lines of jobs above the prompt, on a thread of its own: the editor may be busy for a moment, and a job must not wait
/// for it.
fn spawn_printer(mut printer: impl ExternalPrinter + Send + 'static) -> SyncSender<String> {
    // Limit: a job that prints faster than the terminal shows it waits, instead of filling memory.
    const LINES_WAITING_MAX: usize = 1_024;
    let (sender, receiver) = sync_channel::<String>(LINES_WAITING_MAX);
    std::thread::spawn(move || {
        for lines in receiver {
            if printer.print(lines).is_err() {
                return;
            }
        }
    });
    sender
}

/// Lets Up on a further line open the whole statement.
fn bind_up(editor: &mut LineEditor, edits_whole: &Arc<AtomicBool>, is_continued: &Arc<AtomicBool>) {
    for key in [KeyEvent(KeyCode::Up, Modifiers::NONE), KeyEvent::ctrl('P')] {
        let handler =
            OpenWhole { edits_whole: Arc::clone(edits_whole), is_continued: Arc::clone(is_continued) };
        editor.bind_sequence(key, EventHandler::Conditional(Box::new(handler)));
    }
}

/// Leaves a further line upwards.
struct OpenWhole {
    edits_whole: Arc<AtomicBool>,
    is_continued: Arc<AtomicBool>,
}

impl ConditionalEventHandler for OpenWhole {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, ctx: &EventContext) -> Option<Cmd> {
        let is_first_row = !ctx.line()[..ctx.pos()].contains('\n');
        if !self.is_continued.load(Ordering::Relaxed) || !is_first_row {
            return None;
        }
        self.edits_whole.store(true, Ordering::Relaxed);
        Some(Cmd::AcceptLine)
    }
}

/// Reads statements line by line.
struct StatementReader {
    editor: LineEditor,
    file: Option<HistoryFile>,
    requests: Sender<Request>,
    edits_whole: Arc<AtomicBool>,
    is_continued: Arc<AtomicBool>,
}

impl StatementReader {
    /// Reads a statement for every order, until there are no more orders.
    fn serve(mut self, orders: &Receiver<Order>) {
        for order in orders {
            let request = match order {
                Order::Statement(settings) => self.read_statement(settings),
                Order::Answer(question) => self.read_answer(&question),
            };
            if self.requests.send(request).is_err() {
                return;
            }
        }
    }

    /// Reads the answer to a question. It is no part of the history.
    fn read_answer(&mut self, question: &str) -> Request {
        self.is_continued.store(false, Ordering::Relaxed);
        if let Some(helper) = self.editor.helper_mut() {
            helper.before.clear();
        }
        loop {
            match self.editor.readline(question) {
                Ok(line) => return Request::Input(line),
                Err(ReadlineError::Signal(_)) => {}
                Err(ReadlineError::Interrupted) => return Request::Abandoned,
                Err(_) => return Request::End,
            }
        }
    }

    /// Reads lines until they are whole statements.
    fn read_statement(&mut self, settings: ReadSettings) -> Request {
        let mut text = String::new();
        let mut reopened = false;
        loop {
            let line = self.read_line(&text, reopened, settings);
            match line {
                Ok(line) if self.edits_whole.swap(false, Ordering::Relaxed) => {
                    text.push_str(&line);
                    reopened = true;
                    continue;
                }
                Ok(line) if reopened => text = line,
                Ok(line) => text.push_str(&line),
                Err(ReadlineError::Interrupted) => return Request::Abandoned,
                // The window has another size: the line is shown anew.
                Err(ReadlineError::Signal(_)) => continue,
                Err(_) => return Request::End,
            }
            reopened = false;
            if is_complete(&text) {
                if !is_empty(&text) {
                    self.remember(text.trim());
                    return Request::Input(text);
                }
                text.clear();
            } else {
                text.push('\n');
            }
        }
    }

    /// Reads one line behind its prompt; `reopened` shows all lines so far for editing.
    fn read_line(
        &mut self,
        before: &str,
        reopened: bool,
        settings: ReadSettings,
    ) -> Result<String, ReadlineError> {
        let is_first = before.is_empty() || reopened;
        let prompt = match (is_first, settings.shows_line_numbers) {
            (true, _) => PROMPT.to_owned(),
            (false, false) => CONTINUATION_PROMPT.to_owned(),
            (false, true) => format!("{:>2}{CONTINUATION_PROMPT}", before.matches('\n').count() + 1),
        };
        self.is_continued.store(!is_first, Ordering::Relaxed);
        if let Some(helper) = self.editor.helper_mut() {
            helper.scheme = settings.scheme;
            if reopened { helper.before.clear() } else { before.clone_into(&mut helper.before) }
        }
        if reopened {
            self.editor.readline_with_initial(&prompt, (before, ""))
        } else {
            self.editor.readline(&prompt)
        }
    }

    /// Adds an entry to the history and to its file.
    fn remember(&mut self, entry: &str) {
        let is_new = self.editor.add_history_entry(entry).unwrap_or(false);
        if !is_new {
            return;
        }
        if let Some(Err(error)) = self.file.as_mut().map(|file| file.append(entry)) {
            self.file = None;
            // The shell is gone only when the editor ends, too.
            let _ = self.requests.send(Request::HistoryFailed(error));
        }
    }
}

/// What rustyline asks while a line is edited.
struct StatementHelper {
    requests: Sender<Request>,
    /// The lines of the statement before this one.
    before: String,
    scheme: Scheme,
    has_colors: bool,
}

impl Helper for StatementHelper {}

impl Hinter for StatementHelper {
    type Hint = String;
}

impl Completer for StatementHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let text = format!("{}{}", self.before, &line[..pos]);
        let (answer, found) = sync_channel(1);
        if self.requests.send(Request::Complete { text, answer }).is_err() {
            return Ok((pos, Vec::new()));
        }
        let (start, completions) = found.recv().unwrap_or_default();
        // A word that began on an earlier line cannot be replaced any more.
        let Some(start) = start.checked_sub(self.before.len()) else { return Ok((pos, Vec::new())) };
        let pairs = completions.into_iter().map(|c| Pair { display: c.display, replacement: c.replacement });
        Ok((start, pairs.collect()))
    }
}

impl Highlighter for StatementHelper {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        if !self.has_colors || self.scheme.is_plain() {
            return Cow::Borrowed(line);
        }
        Cow::Owned(self.scheme.highlight_behind(&self.before, line))
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        match prompt.strip_suffix(CONTINUATION_PROMPT) {
            Some(name) if self.has_colors && !name.trim().is_empty() => {
                Cow::Owned(format!("\x1b[32m{name}\x1b[0m{CONTINUATION_PROMPT}"))
            }
            _ => Cow::Borrowed(prompt),
        }
    }

    fn highlight_char(&self, _: &str, _: usize, kind: CmdKind) -> bool {
        self.has_colors && !self.scheme.is_plain() && kind != CmdKind::MoveCursor
    }
}

impl Validator for StatementHelper {
    fn validate(&self, ctx: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let input = ctx.input();
        // One line is always taken, and the next one has a prompt of its own; a text of several lines stays in the editor.
        let is_taken = !input.contains('\n') || is_complete(&format!("{}{input}", self.before));
        Ok(if is_taken { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_complete_at_its_semicolon() {
        assert!(is_complete("SELECT 1;"));
        assert!(is_complete("SELECT 1; -- done"));
        assert!(!is_complete("SELECT ';"));
        assert!(!is_complete("SELECT 1; SELECT 2"));
        assert!(!is_complete("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1;"));
        assert!(is_complete("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; END;"));
    }

    #[test]
    fn comments_and_semicolons_are_no_statement() {
        assert!(is_empty(" ; -- only a comment;\n"));
        assert!(is_complete(""));
        assert!(!is_empty("SELECT 1;"));
    }
}
