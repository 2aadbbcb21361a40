//! Integration tests: one binary, so that they link once.
#![allow(clippy::unwrap_used, reason = "tests panic")]

mod shell;
mod support;
