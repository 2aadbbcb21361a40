//! Scripts: files, `-c` and standard input, statement by statement.
//!
//! A file or `-c` stops at its first error. Standard input goes on after one, as Flink's client does, and is read while its
//! statements run, so that a program may wait for an answer before it writes the next statement.

use std::io::Read;
use std::path::Path;

use tokio::sync::mpsc;

use super::print::messages::{CONTINUATION_PROMPT, PROMPT};
use super::runner::{Outcome, Runner};
use crate::error::{Error, FlinkClass, Result, SourceText, redact_statement};
use crate::sql::{Piece, Splitter};

/// How a script is run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScriptSettings {
    /// Whether prompt and statement are printed before each result.
    pub(crate) echo: bool,
    /// Whether the first error ends the script.
    pub(crate) stop_on_error: bool,
}

/// What became of a whole script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScriptEnd {
    /// All statements ran.
    Done,
    /// QUIT ended it.
    Exit,
    /// A statement failed.
    Failed,
    /// The user stopped it.
    Interrupted,
}

/// Reads a script file: a path or a `file:` URI.
///
/// # Errors
/// There is no such file, it is a directory, it is somewhere that cannot be read from, or it is not UTF-8.
pub(crate) fn read_file(uri: &str) -> Result<SourceText> {
    let path = match uri.split_once("://") {
        Some(("file", path)) => path,
        Some((scheme, _)) => {
            return Err(Error::unsupported(format!(
                "script '{uri}': scripts of scheme '{scheme}' cannot be read"
            ))
            .hint("Download the script and give its path."));
        }
        None => uri.strip_prefix("file:").unwrap_or(uri),
    };
    if Path::new(path).is_dir() {
        return Err(Error::validation(format!("script '{uri}' is a directory")).class(FlinkClass::IO));
    }
    let bytes = std::fs::read(path).map_err(|error| {
        let error = Error::from(error);
        Error::new(error.kind(), format!("script '{uri}' cannot be read: {}", error.message()))
            .class(error.flink_class())
    })?;
    let text = String::from_utf8(bytes)
        .map_err(|error| not_utf8(uri, error.as_bytes(), error.utf8_error().valid_up_to()))?;
    Ok(SourceText::new(uri, text))
}

/// Words the error of a text that is not UTF-8 from `offset` on.
fn not_utf8(name: &str, bytes: &[u8], offset: usize) -> Error {
    let line = bytes[..offset].iter().filter(|byte| **byte == b'\n').count() + 1;
    Error::validation(format!("{name}:{line}: byte {offset} is not UTF-8"))
        .class(FlinkClass::IO)
        .hint("Save the script as UTF-8.")
}

/// Runs a whole script.
pub(crate) fn run(runner: &mut Runner, source: &SourceText, settings: ScriptSettings) -> ScriptEnd {
    let mut splitter = Splitter::new();
    splitter.push(&source.text);
    let mut progress = Progress::new(settings);
    while let Some(piece) = splitter.next_piece() {
        if let Some(end) = progress.run(runner, &piece, source) {
            return end;
        }
    }
    if let Some(piece) = splitter.finish()
        && let Some(end) = progress.run(runner, &piece, source)
    {
        return end;
    }
    progress.end()
}

/// Runs standard input while it is being read.
pub(crate) fn run_stdin(runner: &mut Runner, settings: ScriptSettings) -> ScriptEnd {
    const NAME: &str = "<stdin>";
    let mut chunks = spawn_reader(std::io::stdin());
    let mut splitter = Splitter::new();
    let mut progress = Progress::new(settings);
    let mut source = SourceText::new(NAME, String::new());
    let mut tail = Vec::new();
    loop {
        let chunk = match next_chunk(runner, &mut chunks) {
            Some(Ok(chunk)) => chunk,
            Some(Err(error)) => {
                runner.report(Error::from(error), None);
                return ScriptEnd::Failed;
            }
            None if runner.interrupts().is_raised() => return ScriptEnd::Interrupted,
            None => break,
        };
        tail.extend_from_slice(&chunk);
        let valid = match std::str::from_utf8(&tail) {
            Ok(text) => text.len(),
            // A character that is cut in two at the end goes on in the next chunk.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(error) => {
                let read = [source.text.as_bytes(), &tail].concat();
                runner.report(not_utf8(NAME, &read, source.text.len() + error.valid_up_to()), None);
                return ScriptEnd::Failed;
            }
        };
        let text = String::from_utf8_lossy(&tail[..valid]).into_owned();
        tail.drain(..valid);
        source.text.push_str(&text);
        splitter.push(&text);
        while let Some(piece) = splitter.next_piece() {
            if let Some(end) = progress.run(runner, &piece, &source) {
                return end;
            }
        }
    }
    if !tail.is_empty() {
        let offset = source.text.len();
        runner.report(not_utf8(NAME, &[source.text.as_bytes(), &tail].concat(), offset), None);
        return ScriptEnd::Failed;
    }
    // Flink differs: its client drops a last statement without `;` on standard input; here it runs everywhere.
    if let Some(piece) = splitter.finish()
        && let Some(end) = progress.run(runner, &piece, &source)
    {
        return end;
    }
    progress.end()
}

/// A part of the input, or why there is none.
type Chunk = std::io::Result<Vec<u8>>;

/// Reads on a thread of its own, because a read cannot be interrupted.
fn spawn_reader(mut input: impl Read + Send + 'static) -> mpsc::Receiver<Chunk> {
    // Limit: input is read ahead by so many chunks while a statement runs.
    const CHUNKS_AHEAD: usize = 4;
    let (sender, receiver) = mpsc::channel(CHUNKS_AHEAD);
    std::thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let chunk = match input.read(&mut buffer) {
                Ok(0) => return,
                Ok(length) => Ok(buffer[..length].to_vec()),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let is_last = chunk.is_err();
            if sender.blocking_send(chunk).is_err() || is_last {
                return;
            }
        }
    });
    receiver
}

/// Waits for the next part of the input; None at its end and after Ctrl-C.
fn next_chunk(runner: &mut Runner, chunks: &mut mpsc::Receiver<Chunk>) -> Option<Chunk> {
    let mut interrupts = runner.interrupts().clone();
    runner.runtime().block_on(async {
        tokio::select! {
            chunk = chunks.recv() => chunk,
            () = interrupts.raised() => None,
        }
    })
}

/// Remembers whether anything failed.
struct Progress {
    settings: ScriptSettings,
    has_failed: bool,
}

impl Progress {
    fn new(settings: ScriptSettings) -> Progress {
        Progress { settings, has_failed: false }
    }

    /// Runs a statement; returns how the script ends if it does so here.
    fn run(&mut self, runner: &mut Runner, piece: &Piece, source: &SourceText) -> Option<ScriptEnd> {
        if self.settings.echo {
            runner.console().write_message(&echo_of(piece));
        }
        let outcome = runner.run_piece(piece, source);
        if self.settings.echo {
            runner.console().write_message("\n");
        }
        if runner.console().is_broken() {
            // Nobody reads any more, which is how `| head` ends a program.
            return Some(ScriptEnd::Done);
        }
        match outcome {
            Outcome::Done => None,
            Outcome::Exit => Some(if self.has_failed { ScriptEnd::Failed } else { ScriptEnd::Exit }),
            Outcome::Interrupted => Some(ScriptEnd::Interrupted),
            Outcome::Failed => {
                self.has_failed = true;
                self.settings.stop_on_error.then_some(ScriptEnd::Failed)
            }
        }
    }

    /// Returns how a script ends that ran to its end.
    fn end(&self) -> ScriptEnd {
        if self.has_failed { ScriptEnd::Failed } else { ScriptEnd::Done }
    }
}

/// Returns the statement behind its prompts, as it would stand on the screen; a transcript shows no secrets.
fn echo_of(piece: &Piece) -> String {
    let text = redact_statement(&piece.text);
    let mut echo = String::with_capacity(text.len() + PROMPT.len() + 1);
    for (index, line) in text.lines().enumerate() {
        echo.push_str(if index == 0 { PROMPT } else { CONTINUATION_PROMPT });
        echo.push_str(line.trim_end());
        echo.push('\n');
    }
    echo
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_echo_is_a_transcript() {
        let piece = crate::sql::split("CREATE TABLE t (\r\n  id INT\r\n);").remove(0);
        assert_eq!(echo_of(&piece), "Lakehead SQL> CREATE TABLE t (\n>   id INT\n> );\n");
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("missing.sql");
        let message = |path: &Path| read_file(&path.display().to_string()).unwrap_err().message().to_owned();
        assert!(message(&missing).contains("missing.sql' cannot be read"));
        assert!(message(dir.path()).ends_with("is a directory"));
        let latin = dir.path().join("latin.sql");
        std::fs::write(&latin, b"SELECT 1;\nSELECT '\xe9';\n").unwrap();
        assert!(message(&latin).ends_with("latin.sql:2: byte 18 is not UTF-8"));
        assert_eq!(
            read_file("s3://b/a.sql").unwrap_err().message(),
            "script 's3://b/a.sql': scripts of scheme 's3' cannot be read"
        );
    }
}
