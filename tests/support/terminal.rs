//! The binary in a pseudo-terminal: keys go in, and tests wait until the screen shows what they expect.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// How long a screen may take to become what a test expects.
const DEADLINE: Duration = Duration::from_secs(60);

const ROWS: u16 = 50;
const COLUMNS: u16 = 100;

/// What the terminal shows, and a signal for every change.
struct Screen {
    parser: Mutex<(vt100::Parser, bool)>,
    changed: Condvar,
}

/// A running shell.
pub(crate) struct Terminal {
    screen: Arc<Screen>,
    keys: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    _master: Box<dyn MasterPty + Send>,
}

impl Terminal {
    /// Starts the shell with a home of its own.
    pub(crate) fn start(home: &Path, arguments: &[&str]) -> Terminal {
        let size = PtySize { rows: ROWS, cols: COLUMNS, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_lakehead"));
        command.args(arguments);
        command.env_clear();
        command.env("HOME", home);
        command.env("TERM", "xterm-256color");
        command.env("TZ", "UTC");
        command.cwd(home);
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let screen = Arc::new(Screen {
            parser: Mutex::new((vt100::Parser::new(ROWS, COLUMNS, 1_000), false)),
            changed: Condvar::new(),
        });
        let mut output = pair.master.try_clone_reader().unwrap();
        let keys = pair.master.take_writer().unwrap();
        let shown = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                // The terminal of a process that has ended gives an error on some systems and no bytes on others.
                let length = output.read(&mut buffer).unwrap_or(0);
                let mut parser = shown.parser.lock().unwrap();
                parser.0.process(&buffer[..length]);
                parser.1 = length == 0;
                shown.changed.notify_all();
                if length == 0 {
                    return;
                }
            }
        });
        Terminal { screen, keys, child, _master: pair.master }
    }

    /// Types text and keys as they are.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Types a line.
    pub(crate) fn line(&mut self, line: &str) {
        self.keys(line);
        self.keys("\r");
    }

    /// Pastes text, as terminals do for programs that ask to be told.
    pub(crate) fn paste(&mut self, text: &str) {
        self.keys(&format!("\x1b[200~{text}\x1b[201~"));
    }

    /// Waits until the screen is as the test says, and returns it.
    #[track_caller]
    pub(crate) fn wait(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + DEADLINE;
        let mut parser = self.screen.parser.lock().unwrap();
        loop {
            let text = parser.0.screen().contents();
            if is_there(&text) {
                return text;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !parser.1, "no {what} on the screen:\n{text}");
            parser = self.screen.changed.wait_timeout(parser, left).unwrap().0;
        }
    }

    /// Waits until the screen shows a text.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) -> String {
        self.wait(&format!("'{text}'"), |screen| screen.contains(text))
    }

    /// Waits until the last line is an empty prompt.
    #[track_caller]
    pub(crate) fn wait_for_prompt(&self) -> String {
        self.wait("prompt", |screen| screen.trim_end().ends_with("\n\nLakehead SQL>"))
    }

    /// Waits until the program has ended, and returns its exit code.
    #[track_caller]
    pub(crate) fn wait_for_end(&mut self) -> u32 {
        let deadline = Instant::now() + DEADLINE;
        let mut parser = self.screen.parser.lock().unwrap();
        while !parser.1 {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "still running:\n{}", parser.0.screen().contents());
            parser = self.screen.changed.wait_timeout(parser, left).unwrap().0;
        }
        drop(parser);
        self.child.wait().unwrap().exit_code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It has ended already in most tests.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
