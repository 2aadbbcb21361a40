//! The real binary: scripts, flags and exit codes, and the shell in a pseudo-terminal.

mod interactive;
mod jobs;
mod scripts;
