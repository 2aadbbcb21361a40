//! A session without a shell, which runs scripts.

use std::collections::BTreeMap;
use std::sync::Arc;

use lakehead::error::Result;
use lakehead::session::{OutputPort, OutputStream, Session, SessionSettings, StatementResult};
use lakehead::sql::{parse_statement, split};

/// Drops what connectors print.
#[derive(Debug)]
struct Nowhere;

impl OutputPort for Nowhere {
    fn print(&self, _: OutputStream, _: &str) {}
}

/// Runs the statements of a script in a session of their own, up to the first that fails; returns what the last one answers.
pub(crate) fn run_script(script: &str) -> Result<StatementResult> {
    with_session(script, |result| async { Ok(result) })
}

/// Runs a script, in which `{job}` stands for the job that it has started last, and, while its session lives, something with what its last statement answers.
pub(crate) fn with_session<T, F: Future<Output = Result<T>>>(
    script: &str,
    use_result: impl FnOnce(StatementResult) -> F,
) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let settings = SessionSettings {
            defaults: BTreeMap::new(),
            output: Arc::new(Nowhere),
            session_id: "test".to_owned(),
        };
        let mut session = Session::new(settings)?;
        let mut result = StatementResult::Done;
        let mut job = String::new();
        for piece in split(script) {
            let text = piece.text.replace("{job}", &job);
            result = session.execute(&parse_statement(&text)?, &text).await?;
            if let StatementResult::JobSubmitted(id) = &result {
                job = id.to_string();
            }
        }
        use_result(result).await
    })
}
