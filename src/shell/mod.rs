//! Everything a user touches: the command line, the prompt, scripts, and how results look.
//!
//! The shell owns the terminal and one session. Statements run on the thread that `run` is called on, which must have a large
//! stack; the line editor has a thread of its own, and jobs run on the runtime.

mod args;
mod client_options;
mod complete;
mod editor;
mod engine;
mod highlight;
mod history;
mod interrupt;
mod keywords;
mod panics;
mod print;
mod progress;
mod query_painter;
mod repl;
mod runner;
mod script;
mod startup;
mod token;
mod view;

pub use args::{Args, PythonArgs};
pub use print::OutputFormat;
pub use startup::run;
