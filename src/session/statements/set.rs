//! SET and RESET.

use crate::error::{Error, FlinkClass, Result, redact_value};
use crate::options::{OptionDef, SESSION_OPTIONS, nearest, nearest_within, session_option};
use crate::session::result_table::{AnswerColumn, answer};
use crate::session::{Session, StatementResult};
use crate::sql::{SetCommand, Spanned, SqlOption};

/// Keys of Flink's first client, which it translated with a warning. The other old names are read where the new one is missing.
const TRANSLATED: &[(&str, &str)] = &[
    ("execution.type", "execution.runtime-mode"),
    ("execution.planner", "table.planner"),
    ("execution.periodic-watermarks-interval", "pipeline.auto-watermark-interval"),
    ("execution.min-idle-state-retention", "table.exec.state.ttl"),
    ("execution.parallelism", "parallelism.default"),
    ("execution.max-parallelism", "pipeline.max-parallelism"),
    ("execution.result-mode", "sql-client.execution.result-mode"),
    ("execution.max-table-result-rows", "sql-client.execution.max-table-result.rows"),
    ("execution.restart-strategy.type", "restart-strategy.type"),
    ("execution.restart-strategy.delay", "restart-strategy.fixed-delay.delay"),
    ("execution.restart-strategy.attempts", "restart-strategy.fixed-delay.attempts"),
    (
        "execution.restart-strategy.failure-rate-interval",
        "restart-strategy.failure-rate.failure-rate-interval",
    ),
    (
        "execution.restart-strategy.max-failures-per-interval",
        "restart-strategy.failure-rate.max-failures-per-interval",
    ),
];

/// Keys of Flink's first client that mean nothing any more.
const REMOVED: &[&str] = &[
    "execution.time-characteristic",
    "execution.max-idle-state-retention",
    "execution.current-catalog",
    "execution.current-database",
];

/// Returns the key that a key of Flink's first client stands for today.
fn translated(key: &str) -> Option<&'static str> {
    TRANSLATED.iter().find(|(old, _)| *old == key).map(|(_, new)| *new)
}

/// What the keys begin with that Flink does not know: all of them are ours.
const OWN_PREFIX: &str = "lakehead.";

/// Returns whether a value is checked by SET itself. Flink checks what its executor reads at once and leaves the rest to the
/// statement that uses it; scripts rely on both.
fn is_checked_at_once(key: &str) -> bool {
    let prefixes = ["execution.", "pipeline.", OWN_PREFIX];
    key == "parallelism.default" || prefixes.iter().any(|prefix| key.starts_with(prefix))
}

/// Refuses a key of ours that there is not: an error of typing would change nothing, and nobody would hear of it.
fn check_key(key: &str) -> Result<()> {
    if !key.starts_with(OWN_PREFIX) || session_option(key).is_some() {
        return Ok(());
    }
    let keys = || SESSION_OPTIONS.iter().map(|option| option.key()).filter(|key| key.starts_with(OWN_PREFIX));
    let error = Error::validation(format!("There is no option '{key}'"));
    Err(match nearest(key, keys()) {
        Some(near) => error.hint(format!("Did you mean '{near}'?")),
        None => error.hint(format!("Those of Lakehead are {}.", keys().collect::<Vec<_>>().join(", "))),
    })
}

/// Checks what a session starts with as SET would.
///
/// # Errors
/// There is no such option of ours, or a value does not fit.
pub(in crate::session) fn check_default(key: &str, value: &str) -> Result<()> {
    check_key(key)?;
    session_option(key).map_or(Ok(()), |known| check(known, value))
}

/// How many typing errors a key may have for us to say which one may be meant.
const TYPING_ERRORS_MAX: usize = 3;

/// Says that there is no such option. Flink takes every key, and scripts have some that only its cluster knows.
fn without_effect(key: &str) -> String {
    let keys = SESSION_OPTIONS.iter().map(|option| option.key());
    let near = nearest_within(TYPING_ERRORS_MAX, key, keys);
    let near = near.map_or(String::new(), |near| format!(" Did you mean '{near}'?"));
    format!("Lakehead has no option '{key}': it is kept without effect.{near}")
}

/// Checks a value as SET does.
fn check(option: &dyn OptionDef, value: &str) -> Result<()> {
    match option.key() {
        "table.sql-dialect" if !value.eq_ignore_ascii_case("default") => Err(Error::validation(
            "Could not find any factories that implement 'org.apache.flink.table.delegation.ParserFactory' in the classpath.",
        )
        .hint("There is one dialect, 'default'.")),
        "execution.runtime-mode" if value.trim().eq_ignore_ascii_case("automatic") => Err(Error::validation(
            "Unsupported mode 'AUTOMATIC' for 'execution.runtime-mode'. Only an explicit BATCH or STREAMING mode is supported in Table API.",
        )
        .class(FlinkClass::TABLE)),
        key if is_checked_at_once(key) => option.check(value),
        _ => Ok(()),
    }
}

impl Session {
    /// Sets an option or lists the options.
    pub(in crate::session) fn execute_set(&mut self, command: &SetCommand) -> Result<StatementResult> {
        match command {
            SetCommand::List => {
                let entries = self.config.entries();
                answer(vec![
                    AnswerColumn::texts("key", entries.keys().map(|key| Some(*key))),
                    AnswerColumn::texts(
                        "value",
                        entries.iter().map(|(key, value)| Some(redact_value(key, value))),
                    ),
                ])
            }
            SetCommand::ListAll => self.list_all_options(),
            SetCommand::Assign(option) => self.set_option(option),
        }
    }

    /// Sets one option; a value that is refused leaves the old one.
    fn set_option(&mut self, option: &SqlOption) -> Result<StatementResult> {
        let (written, value) = (option.key.value.as_str(), option.value.value.as_str());
        if REMOVED.contains(&written) {
            let note = format!("The specified key '{written}' is not supported anymore.");
            return Ok(StatementResult::DoneWithNote(note));
        }
        let key = translated(written).unwrap_or(written);
        check_key(key).map_err(|error| error.at(option.key.span))?;
        match session_option(key) {
            Some(known) => check(known, value).map_err(|error| error.at(option.value.span))?,
            None => self.warn(&without_effect(key)),
        }
        self.config.set(key, value);
        if key == written {
            return Ok(StatementResult::Done);
        }
        Ok(StatementResult::DoneWithNote(format!(
            "The specified key '{written}' is deprecated. Please use '{key}' instead."
        )))
    }

    /// Lists every declared option, and below them the keys that are set without being declared.
    fn list_all_options(&self) -> Result<StatementResult> {
        let mut rows: Vec<(String, Option<String>, Option<&str>, &str)> = SESSION_OPTIONS
            .iter()
            .map(|option| {
                let key = option.key();
                let given =
                    std::iter::once(&key).chain(option.old_keys()).find_map(|key| self.config.raw(key));
                let value = given.or(option.default_text()).map(|value| redact_value(key, value).to_owned());
                (key.to_owned(), value, option.default_text(), option.doc())
            })
            .collect();
        for (key, value) in self.config.entries() {
            if session_option(key).is_none() {
                rows.push((key.to_owned(), Some(redact_value(key, value).to_owned()), None, ""));
            }
        }
        rows.sort_unstable_by(|left, right| left.0.cmp(&right.0));
        answer(vec![
            AnswerColumn::texts("key", rows.iter().map(|row| Some(&row.0))),
            AnswerColumn::texts("value", rows.iter().map(|row| row.1.as_ref())),
            AnswerColumn::texts("default", rows.iter().map(|row| row.2)),
            AnswerColumn::texts("description", rows.iter().map(|row| Some(row.3))),
        ])
    }

    /// Takes one option or all of them back to what the session started with.
    pub(in crate::session) fn execute_reset(
        &mut self,
        key: Option<&Spanned<String>>,
    ) -> Result<StatementResult> {
        match key {
            Some(key) => self.config.reset(translated(&key.value).unwrap_or(&key.value)),
            None => self.config.reset_all(),
        }
        Ok(StatementResult::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn translated_keys_are_old_names_of_declared_options() {
        for (_, new) in TRANSLATED {
            assert!(session_option(new).is_some(), "{new}");
        }
    }

    #[test]
    fn a_key_of_ours_that_there_is_not_is_refused() {
        assert!(check_key("lakehead.job.resume").is_ok());
        assert!(check_key("my.own.key").is_ok());
        let error = check_key("lakehead.job.resum").unwrap_err();
        assert_eq!(error.hint_text(), Some("Did you mean 'lakehead.job.resume'?"));
        let error = check_key("lakehead.x").unwrap_err();
        assert!(error.hint_text().unwrap().contains("lakehead.state.memory-budget"));
    }

    #[test]
    fn a_key_that_changes_nothing_is_named_with_what_may_be_meant() {
        let near = "Lakehead has no option 'parallelism.defualt': it is kept without effect. Did you mean 'parallelism.default'?";
        assert_eq!(without_effect("parallelism.defualt"), near);
        let far = "Lakehead has no option 'jobmanager.rpc.port': it is kept without effect.";
        assert_eq!(without_effect("jobmanager.rpc.port"), far);
    }

    #[test]
    fn only_what_flinks_executor_reads_is_checked_at_once() {
        let checked = |key: &str, value: &str| {
            check(session_option(key).unwrap(), value).map_err(|e| e.message().to_owned())
        };
        assert_eq!(checked("table.exec.state.ttl", "x"), Ok(()));
        assert_eq!(checked("sql-client.execution.result-mode", "wrong"), Ok(()));
        assert_eq!(checked("table.local-time-zone", "Nowhere/City"), Ok(()));
        assert_eq!(checked("parallelism.default", "abc"), Err("For input string: \"abc\"".to_owned()));
        assert!(
            checked("execution.runtime-mode", "automatic")
                .unwrap_err()
                .starts_with("Unsupported mode 'AUTOMATIC'")
        );
        assert!(
            checked("execution.runtime-mode", "sideways")
                .unwrap_err()
                .contains("[[STREAMING, BATCH, AUTOMATIC]]")
        );
        assert!(checked("lakehead.job.resume", "lastest").is_err());
        assert!(checked("table.sql-dialect", "hive").is_err());
        assert_eq!(checked("table.sql-dialect", "DEFAULT"), Ok(()));
    }
}
