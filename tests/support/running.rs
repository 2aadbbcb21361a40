//! A binary that runs while a test reads its lines and writes into it.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::run::{Finished, Lakehead};

/// How long a line may take that a test waits for.
const DEADLINE: Duration = Duration::from_secs(60);

/// A running binary.
pub(crate) struct Running {
    lakehead: Lakehead,
    child: Child,
    stdin: Option<ChildStdin>,
    out: Lines,
    err: Lines,
}

/// The lines of a stream, and those that were read so far.
struct Lines {
    receiver: Receiver<String>,
    text: String,
}

impl Lines {
    fn new(stream: impl Read + Send + 'static) -> Lines {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stream);
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|length| length > 0) {
                if sender.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        Lines { receiver, text: String::new() }
    }

    /// Reads until a text was read, and returns all that was read by then, or what was if it does not come.
    fn wait(&mut self, text: &str) -> Result<String, String> {
        let deadline = Instant::now() + DEADLINE;
        while !self.text.contains(text) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.receiver.recv_timeout(left) {
                Ok(line) => self.text.push_str(&line),
                Err(_) => return Err(format!("no '{text}' in\n{}", self.text)),
            }
        }
        Ok(self.text.clone())
    }

    /// Returns what was read by now.
    fn now(&mut self) -> &str {
        while let Ok(line) = self.receiver.try_recv() {
            self.text.push_str(&line);
        }
        &self.text
    }

    /// Reads to the end.
    fn rest(&mut self) -> String {
        let deadline = Instant::now() + DEADLINE;
        loop {
            match self.receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.text.push_str(&line),
                Err(RecvTimeoutError::Disconnected) => return std::mem::take(&mut self.text),
                Err(RecvTimeoutError::Timeout) => panic!("still running:\n{}", self.text),
            }
        }
    }
}

impl Running {
    /// Starts the binary.
    pub(crate) fn start(lakehead: Lakehead) -> Running {
        let mut child = lakehead.spawn();
        let (out, err) = (Lines::new(child.stdout.take().unwrap()), Lines::new(child.stderr.take().unwrap()));
        let stdin = child.stdin.take();
        Running { lakehead, child, stdin, out, err }
    }

    /// Returns the number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the home of the process.
    pub(crate) fn home(&self) -> &Path {
        self.lakehead.home()
    }

    /// Writes to standard input.
    pub(crate) fn write(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    /// Waits until standard output has shown a text, and returns what it has shown so far.
    #[track_caller]
    pub(crate) fn wait_out(&mut self, text: &str) -> String {
        self.out.wait(text).unwrap_or_else(|shown| panic!("{shown}\n{}", self.err.wait("").unwrap()))
    }

    /// Waits until standard error has shown a text, and returns what it has shown so far.
    #[track_caller]
    pub(crate) fn wait_err(&mut self, text: &str) -> String {
        self.err.wait(text).unwrap_or_else(|shown| panic!("{shown}\n{}", self.out.wait("").unwrap()))
    }

    /// Returns all that both streams have shown by now.
    pub(crate) fn shown(&mut self) -> String {
        format!("{}{}", self.out.now(), self.err.now())
    }

    /// Returns what standard output has shown by now.
    pub(crate) fn shown_out(&mut self) -> String {
        self.out.now().to_owned()
    }

    /// Returns whether the process has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Ends the process as a crash would, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }

    /// Returns the number of the first job that was started.
    #[track_caller]
    pub(crate) fn job_id(&mut self) -> String {
        let shown = self.wait_out("Job ID: ");
        let start = shown.find("Job ID: ").unwrap() + "Job ID: ".len();
        shown[start..start + 32].to_owned()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        let sent = std::process::Command::new("kill")
            .args([&format!("-{name}"), &self.child.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Closes standard input and waits for the end.
    #[track_caller]
    pub(crate) fn end(&mut self) -> Finished {
        drop(self.stdin.take());
        let stdout = self.out.rest();
        let stderr = self.err.rest();
        Finished { stdout, stderr, code: self.child.wait().unwrap().code().unwrap_or(-1) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already in most tests.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
