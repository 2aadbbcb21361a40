//! Runs the binary to its end and keeps what it printed.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use tempfile::TempDir;

/// No statement of a test takes nearly as long, so a binary that does hangs.
const DEADLINE: Duration = Duration::from_secs(120);

/// The binary with its arguments, its input, and a home of its own.
pub(crate) struct Lakehead {
    home: TempDir,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    input: Vec<u8>,
    folder: Option<PathBuf>,
}

/// What a run printed and how it ended.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
    /// The exit code.
    pub(crate) code: i32,
}

impl Lakehead {
    /// Prepares a run.
    pub(crate) fn new() -> Lakehead {
        Lakehead {
            home: tempfile::tempdir().unwrap(),
            arguments: Vec::new(),
            variables: Vec::new(),
            input: Vec::new(),
            folder: None,
        }
    }

    /// Prepares a run with arguments.
    pub(crate) fn with(arguments: &[&str]) -> Lakehead {
        let mut lakehead = Lakehead::new();
        lakehead.arguments.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        lakehead
    }

    /// Sets what standard input holds.
    pub(crate) fn input(mut self, text: impl Into<Vec<u8>>) -> Lakehead {
        self.input = text.into();
        self
    }

    /// Sets the working folder, which is the home otherwise.
    pub(crate) fn folder(mut self, folder: &Path) -> Lakehead {
        self.folder = Some(folder.to_owned());
        self
    }

    /// Sets a variable of the environment, which holds nothing else.
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Lakehead {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Returns the home of the run.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Writes a file into the home and returns its path.
    pub(crate) fn file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.home.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// Adds arguments.
    pub(crate) fn and(mut self, arguments: &[&str]) -> Lakehead {
        self.arguments.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    /// Starts the binary with pipes and leaves it to the caller.
    pub(crate) fn spawn(&self) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lakehead"));
        command.args(&self.arguments).env_clear().env("HOME", self.home.path()).env("TZ", "UTC");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.current_dir(self.folder.as_deref().unwrap_or(self.home.path()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs the binary to its end.
    pub(crate) fn run(&self) -> Finished {
        let mut child = self.spawn();
        let mut stdin = child.stdin.take().unwrap();
        let input = self.input.clone();
        // A binary that stops early closes its input, which is not the test's concern.
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let stdout = read_all(child.stdout.take().unwrap());
        let stderr = read_all(child.stderr.take().unwrap());
        let Ok(stdout) = stdout.recv_timeout(DEADLINE) else {
            child.kill().unwrap();
            panic!("lakehead {:?} did not end", self.arguments);
        };
        let code = child.wait().unwrap().code().unwrap_or(-1);
        writer.join().unwrap();
        Finished { stdout, stderr: stderr.recv_timeout(DEADLINE).unwrap(), code }
    }
}

/// Reads a stream to its end on a thread of its own.
fn read_all(mut stream: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let _ = sender.send(String::from_utf8(bytes).unwrap());
    });
    receiver
}

impl Finished {
    /// Fails the test unless the run ended well.
    #[track_caller]
    pub(crate) fn ok(self) -> Finished {
        assert_eq!(self.code, 0, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

/// Replaces what differs from run to run: times, job ids, and the given directory.
pub(crate) fn masked(text: &str, home: Option<&Path>) -> String {
    let text = home.map_or(text.to_owned(), |home| text.replace(&home.display().to_string(), "<home>"));
    mask_job_ids(&mask_times(&text))
}

/// Replaces `(0.01 seconds)`.
fn mask_times(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(end) = rest.find(" seconds)") {
        let start = rest[..end].rfind('(').filter(|start| {
            let number = &rest[start + 1..end];
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        });
        match start {
            Some(start) => {
                masked.push_str(&rest[..start]);
                masked.push_str("(<time> seconds)");
            }
            None => masked.push_str(&rest[..end + " seconds)".len()]),
        }
        rest = &rest[end + " seconds)".len()..];
    }
    masked + rest
}

/// Replaces words of 32 hex digits. In a cell they keep their width.
fn mask_job_ids(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    for piece in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let word = piece.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_id = word.len() == 32
            && word.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        masked.push_str(if is_id { "<job-id>" } else { word });
        masked.push_str(&piece[word.len()..]);
    }
    masked
}

#[test]
fn times_and_job_ids_are_masked() {
    let text =
        "1 row in set (0.12 seconds)\nJob ID: 6f922fe5cba87406ff23ae4a7bb79044\n(x seconds) (3 seconds)";
    assert_eq!(
        masked(text, None),
        "1 row in set (<time> seconds)\nJob ID: <job-id>\n(x seconds) (<time> seconds)"
    );
}
