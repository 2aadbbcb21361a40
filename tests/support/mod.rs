//! What several tests need: running the real binary, with its own home and nothing of the machine's environment; a session
//! without it; a Postgres server and what stands between it and its clients.

pub(crate) mod content;
pub(crate) mod postgres;
pub(crate) mod proxy;
pub(crate) mod run;
pub(crate) mod running;
pub(crate) mod session;
pub(crate) mod terminal;
pub(crate) mod transcript;
pub(crate) mod waiting;
