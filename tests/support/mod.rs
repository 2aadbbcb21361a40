//! What several tests need: running the real binary, with its own home and nothing of the machine's environment; and a session
//! without it.

pub(crate) mod run;
pub(crate) mod running;
pub(crate) mod session;
pub(crate) mod terminal;
pub(crate) mod transcript;
