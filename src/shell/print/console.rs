//! The one place that writes to the terminal: rows, messages in their colours, and lines of running jobs.
//!
//! Text is written in whole pieces under a short lock, so lines of jobs never cut a row in two. A reader that goes away
//! (`| head`) is no error: the first failed write is remembered and ends the program quietly.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use ratatui::crossterm::terminal;

use super::messages;
use crate::error::{Error, SourceText, render};
use crate::session::{OutputPort, OutputStream};

const BOLD_BLUE: &str = "\x1b[34;1m";
const BOLD_YELLOW: &str = "\x1b[33;1m";
const BOLD_RED: &str = "\x1b[31;1m";
const PLAIN: &str = "\x1b[0m";

/// How many lines of jobs are kept while a full-screen view covers the terminal.
// Limit: a view may stay open for days, and its user can only read so much afterwards.
const HELD_LINES_MAX: usize = 1_000;

/// Where lines of jobs go at the moment.
enum JobLines {
    /// Straight to the streams.
    Direct,
    /// To the thread that prints above the prompt.
    AbovePrompt(SyncSender<String>),
}

/// Standard output and standard error.
pub(crate) struct Console {
    out: Mutex<Box<dyn Write + Send>>,
    err: Mutex<Box<dyn Write + Send>>,
    has_out_colors: bool,
    has_err_colors: bool,
    /// Messages go to standard error, so that standard output holds rows alone.
    messages_to_err: bool,
    is_broken: AtomicBool,
    /// Whether standard error is a terminal on which lines can be painted over.
    paints: bool,
    /// Lines that stay below everything that is written.
    painted: Mutex<Vec<String>>,
    job_lines: Mutex<JobLines>,
    held: Mutex<Option<Held>>,
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").field("messages_to_err", &self.messages_to_err).finish_non_exhaustive()
    }
}

impl OutputPort for Console {
    fn print(&self, stream: OutputStream, lines: &str) {
        if let Ok(mut held) = self.held.lock()
            && let Some(held) = held.as_mut()
        {
            if held.lines.len() == HELD_LINES_MAX {
                held.lines.remove(0);
                held.dropped += 1;
            }
            held.lines.push((stream, lines.to_owned()));
            return;
        }
        let port = self.job_lines.lock().ok().and_then(|job_lines| match &*job_lines {
            JobLines::Direct => None,
            JobLines::AbovePrompt(port) => Some(port.clone()),
        });
        // A prompt thread that has ended hands the lines back, and they go out directly.
        let left = match port {
            Some(port) => port.send(lines.to_owned()).err().map(|error| error.0),
            None => Some(lines.to_owned()),
        };
        if let Some(lines) = left {
            self.write_to(stream, &lines);
        }
    }
}

/// Lines that wait until a full-screen view is left.
#[derive(Default)]
struct Held {
    lines: Vec<(OutputStream, String)>,
    dropped: usize,
}

impl Console {
    /// Creates the console of the process.
    pub(crate) fn of_process(messages_to_err: bool) -> Console {
        let wants_colors = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Console {
            has_out_colors: wants_colors && io::stdout().is_terminal(),
            has_err_colors: wants_colors && io::stderr().is_terminal(),
            paints: io::stderr().is_terminal() && std::env::var_os("TERM").is_some_and(|term| term != "dumb"),
            ..Console::new(Box::new(io::stdout()), Box::new(io::stderr()), messages_to_err)
        }
    }

    /// Creates a console over any two streams, without colours.
    pub(crate) fn new(
        out: Box<dyn Write + Send>,
        err: Box<dyn Write + Send>,
        messages_to_err: bool,
    ) -> Console {
        Console {
            out: Mutex::new(out),
            err: Mutex::new(err),
            has_out_colors: false,
            has_err_colors: false,
            messages_to_err,
            is_broken: AtomicBool::new(false),
            paints: false,
            painted: Mutex::default(),
            job_lines: Mutex::new(JobLines::Direct),
            held: Mutex::new(None),
        }
    }

    /// Returns whether colours are wanted on standard output.
    pub(crate) fn has_colors(&self) -> bool {
        self.has_out_colors
    }

    /// Returns whether nobody reads standard output any more.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed)
    }

    /// Writes text to standard output.
    pub(crate) fn write(&self, text: &str) {
        self.write_to(OutputStream::Out, text);
    }

    /// Writes text to where messages go.
    pub(crate) fn write_message(&self, text: &str) {
        self.write_to(self.message_stream(), text);
    }

    /// Prints `[INFO] …`.
    pub(crate) fn info(&self, text: &str) {
        self.tagged(BOLD_BLUE, "[INFO]", text);
    }

    /// Prints `[WARNING] …`.
    pub(crate) fn warning(&self, text: &str) {
        self.tagged(BOLD_YELLOW, "[WARNING]", text);
    }

    /// Prints `[INFO] …` on standard error, whatever standard output is for.
    pub(crate) fn note(&self, text: &str) {
        let line = if self.has_err_colors {
            format!("{BOLD_BLUE}[INFO] {text}{PLAIN}\n")
        } else {
            format!("[INFO] {text}\n")
        };
        self.write_to(OutputStream::Err, &line);
    }

    /// Returns whether `paint` can be used.
    pub(crate) fn paints(&self) -> bool {
        self.paints
    }

    /// Shows lines below everything that is written, in place of those that were there; they are cut to the terminal's width.
    pub(crate) fn paint(&self, lines: Vec<String>) {
        let width = terminal::size().map_or(80, |(columns, _)| usize::from(columns)).saturating_sub(1);
        let Ok(mut painted) = self.painted.lock() else { return };
        let cut = |line: String| line.chars().take(width).collect();
        let old = std::mem::replace(&mut *painted, lines.into_iter().map(cut).collect());
        let text = format!("{}{}", erasing(&old), drawing(&painted));
        if !text.is_empty() {
            self.write_through(OutputStream::Err, &text);
        }
    }

    /// Prints the three lines of a job that was started, and Flink's empty line behind them.
    pub(crate) fn job_submitted(&self, job: &str) {
        self.info(messages::SUBMITTING);
        self.tagged(BOLD_BLUE, "[INFO]", &format!("{}\nJob ID: {job}\n", messages::SUBMITTED));
    }

    /// Prints an error with its place in `source`.
    pub(crate) fn error(&self, error: &Error, source: Option<&SourceText>, is_verbose: bool) {
        let rendered = render(error, source, is_verbose);
        let mut text = self.tag(BOLD_RED, "[ERROR]", &format!("{}\n{}", messages::ERROR, rendered.reason));
        if !rendered.details.is_empty() {
            text.push_str(&rendered.details);
            text.push('\n');
        }
        // In one piece, so that no line of a job comes between an error and its place.
        self.write_message(&text);
    }

    /// Holds back lines of jobs, because a full-screen view is shown.
    pub(crate) fn hold_job_lines(&self) {
        if let Ok(mut held) = self.held.lock() {
            held.get_or_insert_default();
        }
    }

    /// Prints the lines that were held back, and lets further ones through.
    pub(crate) fn release_job_lines(&self) {
        let held = self.held.lock().ok().and_then(|mut held| held.take());
        let Some(held) = held else { return };
        if held.dropped > 0 {
            self.warning(&format!("{} earlier lines of running jobs were dropped.", held.dropped));
        }
        for (stream, lines) in held.lines {
            self.write_to(stream, &lines);
        }
    }

    /// Sends lines of jobs to a thread that prints above the prompt, or back to the streams.
    pub(crate) fn set_prompt_port(&self, port: Option<SyncSender<String>>) {
        if let Ok(mut job_lines) = self.job_lines.lock() {
            *job_lines = port.map_or(JobLines::Direct, JobLines::AbovePrompt);
        }
    }

    /// Returns the stream of messages.
    fn message_stream(&self) -> OutputStream {
        if self.messages_to_err { OutputStream::Err } else { OutputStream::Out }
    }

    /// Prints a message behind its tag.
    fn tagged(&self, color: &str, tag: &str, text: &str) {
        self.write_message(&self.tag(color, tag, text));
    }

    /// Returns the lines of a message behind its tag, in colour where that is wanted.
    fn tag(&self, color: &str, tag: &str, text: &str) -> String {
        let is_out = self.message_stream() == OutputStream::Out;
        let has_colors = if is_out { self.has_out_colors } else { self.has_err_colors };
        if has_colors { format!("{color}{tag} {text}{PLAIN}\n") } else { format!("{tag} {text}\n") }
    }

    /// Writes above the painted lines.
    fn write_to(&self, stream: OutputStream, text: &str) {
        let painted = self.painted.lock().ok().filter(|painted| !painted.is_empty() && !text.is_empty());
        let Some(painted) = painted else { return self.write_through(stream, text) };
        self.write_through(OutputStream::Err, &erasing(&painted));
        self.write_through(stream, text);
        self.write_through(OutputStream::Err, &drawing(&painted));
    }

    /// Writes and flushes.
    fn write_through(&self, stream: OutputStream, text: &str) {
        let writer = if stream == OutputStream::Out { &self.out } else { &self.err };
        let Ok(mut writer) = writer.lock() else { return };
        let written = writer.write_all(text.as_bytes()).and_then(|()| writer.flush());
        if let Err(error) = written
            && stream == OutputStream::Out
        {
            tracing::debug!(error = %error, "standard output is closed");
            self.is_broken.store(true, Ordering::Relaxed);
        }
    }
}

/// Returns what takes painted lines off the screen.
fn erasing(lines: &[String]) -> String {
    if lines.is_empty() { String::new() } else { format!("\x1b[{}F\x1b[J", lines.len()) }
}

/// Returns what paints lines.
fn drawing(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use super::*;

    /// A stream that tests can read.
    #[derive(Clone, Default)]
    pub(crate) struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Captured {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A reader that went away.
    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    pub(crate) fn captured(messages_to_err: bool) -> (Console, Captured, Captured) {
        let (out, err) = (Captured::default(), Captured::default());
        (Console::new(Box::new(out.clone()), Box::new(err.clone()), messages_to_err), out, err)
    }

    #[test]
    fn errors_have_the_first_line_of_flink_and_our_place_below() {
        let (console, out, _) = captured(false);
        let source = SourceText::new("a.sql", "SELECT nope;");
        let error = Error::validation("Column 'nope' not found").at(crate::error::Span::new(7, 11));
        console.error(&error, Some(&source), false);
        assert_eq!(
            out.text(),
            "[ERROR] Could not execute SQL statement. Reason:\n\
             org.apache.flink.table.api.ValidationException: Column 'nope' not found\n \
             --> a.sql:1:8\n  |\n1 | SELECT nope;\n  |        ^^^^\n"
        );
    }

    #[test]
    fn messages_leave_standard_output_to_the_rows_where_asked() {
        let (console, out, err) = captured(true);
        console.info(messages::EXECUTED);
        console.write("1\n");
        assert_eq!(
            (out.text().as_str(), err.text().as_str()),
            ("1\n", "[INFO] Execute statement succeeded.\n")
        );
    }

    #[test]
    fn lines_of_jobs_wait_while_a_view_is_open() {
        let (console, out, _) = captured(false);
        console.hold_job_lines();
        (0..=HELD_LINES_MAX).for_each(|n| console.print(OutputStream::Out, &format!("+I[{n}]\n")));
        assert_eq!(out.text(), "");
        console.release_job_lines();
        assert!(out.text().starts_with("[WARNING] 1 earlier lines of running jobs were dropped.\n+I[1]\n"));
    }

    #[test]
    fn painted_lines_stay_below_what_is_written() {
        let (console, out, err) = captured(false);
        console.paint(vec!["a: 1".to_owned(), "b: 2".to_owned()]);
        console.print(OutputStream::Err, "[ERROR] lines\n");
        console.paint(Vec::new());
        console.note("end");
        assert_eq!(out.text(), "");
        assert_eq!(
            err.text(),
            "a: 1\nb: 2\n\x1b[2F\x1b[J[ERROR] lines\na: 1\nb: 2\n\x1b[2F\x1b[J[INFO] end\n"
        );
    }

    #[test]
    fn a_reader_that_went_away_is_remembered() {
        let console = Console::new(Box::new(Closed), Box::new(io::sink()), false);
        assert!(!console.is_broken());
        console.write("x\n");
        assert!(console.is_broken());
    }

    #[test]
    fn a_submitted_job_is_three_lines_and_an_empty_one() {
        let (console, out, _) = captured(false);
        console.job_submitted("6f922fe5cba87406ff23ae4a7bb79044");
        assert_eq!(
            out.text(),
            "[INFO] Submitting SQL update statement to the cluster...\n\
             [INFO] SQL update statement has been successfully submitted to the cluster:\n\
             Job ID: 6f922fe5cba87406ff23ae4a7bb79044\n\n"
        );
    }
}
