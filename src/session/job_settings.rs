//! What the configuration says of a job that is started: workers, epochs, checkpoints, restarts, and what it starts from.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{JobId, Session};
use crate::error::{Error, FlinkClass, Result};
use crate::options::{
    CHECKPOINTING_DIR, CHECKPOINTING_INTERVAL, CHECKPOINTING_MIN_PAUSE, CHECKPOINTING_NUM_RETAINED,
    CHECKPOINTING_RETENTION, CHECKPOINTING_TIMEOUT, CHECKPOINTING_TOLERABLE_FAILED, CheckpointRetention,
    EPOCH_ROWS, JOB_RESUME, JobResume, MINI_BATCH_ALLOW_LATENCY, MINI_BATCH_ENABLED, MINI_BATCH_SIZE,
    OptionDef, PARALLELISM_DEFAULT, RECOVERY_IGNORE_UNCLAIMED, RECOVERY_PATH, RESTART_BACKOFF_ATTEMPTS,
    RESTART_BACKOFF_INITIAL, RESTART_BACKOFF_JITTER, RESTART_BACKOFF_MAX, RESTART_BACKOFF_MULTIPLIER,
    RESTART_BACKOFF_RESET, RESTART_FIXED_ATTEMPTS, RESTART_FIXED_DELAY, RESTART_RATE_DELAY,
    RESTART_RATE_INTERVAL, RESTART_RATE_MAX_FAILURES, RESTART_STRATEGY_TYPE, SAVEPOINT_DIR,
    STATE_DELTA_BYTES, STATE_MEMORY_BUDGET, SessionConfig, TABLE_DEFAULT_PARALLELISM,
};
use crate::runtime::{CheckpointSettings, JobSettings, RestartStrategy, default_folder};
use crate::state::GROUP_COUNT;

impl Session {
    /// Returns what an INSERT or statement set is started with.
    ///
    /// # Errors
    /// A setting does not fit.
    pub(super) fn insert_settings(&self, id: JobId, name: String) -> Result<JobSettings> {
        let config = &self.config;
        let EpochSettings { workers, is_per_record, rows_max, wait } = insert_epochs(config)?;
        let restore = restore(config)?;
        let resume = config.get(&JOB_RESUME)?;
        check_start(resume, restore.as_deref())?;
        let default_folder = default_folder(|name| std::env::var_os(name));
        let checkpoints = checkpoints(config, default_folder.as_deref().unwrap_or(Path::new(".")))?;
        let has_interval = checkpoints.interval.is_some();
        let is_named = config.get_optional(&CHECKPOINTING_DIR)?.is_some();
        // Without an interval a job has no checkpoints, as in Flink, and then it needs no folder unless it goes on from one.
        let has_folder = has_interval || resume.goes_on() || restore.is_some() || is_named;
        if has_folder && !is_named && default_folder.is_none() {
            let message = "there is no folder for checkpoints: neither XDG_STATE_HOME nor HOME is set";
            let hint = format!("SET '{}' = 'file:///…';", CHECKPOINTING_DIR.key());
            return Err(Error::validation(message).hint(hint));
        }
        Ok(JobSettings {
            id: id.0,
            name,
            workers,
            is_per_record,
            epoch_rows_max: rows_max,
            epoch_wait: wait,
            checkpoints: has_folder.then_some(checkpoints),
            restore,
            ignores_unclaimed_state: config.get(&RECOVERY_IGNORE_UNCLAIMED)?,
            resume,
            restart: restarts(config, has_interval)?,
            memory_budget: memory_budget(config)?,
        })
    }

    /// Returns what a query is started with. It writes nothing, so it has no checkpoints.
    ///
    /// # Errors
    /// A setting does not fit.
    pub(super) fn query_settings(&self, id: JobId) -> Result<JobSettings> {
        let EpochSettings { workers, is_per_record, rows_max, wait } = query_epochs(&self.config)?;
        Ok(JobSettings {
            id: id.0,
            name: "collect".to_owned(),
            workers,
            is_per_record,
            epoch_rows_max: rows_max,
            epoch_wait: wait,
            checkpoints: None,
            restore: None,
            ignores_unclaimed_state: false,
            resume: JobResume::None,
            restart: RestartStrategy::None,
            memory_budget: memory_budget(&self.config)?,
        })
    }
}

/// How a job runs its epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EpochSettings {
    /// Workers.
    pub(super) workers: usize,
    /// Every row by itself.
    pub(super) is_per_record: bool,
    /// The most rows of an epoch.
    pub(super) rows_max: usize,
    /// How long an epoch waits for rows.
    pub(super) wait: Duration,
}

/// Returns how an INSERT runs: on all cores unless a number is set, in epochs, and with Flink's mini-batches where they are on.
///
/// # Errors
/// A setting does not fit.
pub(super) fn insert_epochs(config: &SessionConfig) -> Result<EpochSettings> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = match set_parallelism(config)? {
        Some(number) => number,
        None => cores.min(GROUP_COUNT),
    };
    let rows_max = usize::try_from(config.get(&EPOCH_ROWS)?).ok().filter(|rows| *rows > 0);
    let rows_max = rows_max.ok_or_else(|| wrong(EPOCH_ROWS.key(), "must be at least 1"))?;
    let epochs = EpochSettings { workers, is_per_record: false, rows_max, wait: Duration::ZERO };
    Ok(mini_batch(config)?.map_or(epochs, |(rows, wait)| EpochSettings { rows_max: rows, wait, ..epochs }))
}

/// Returns how a query runs whose changes are shown: row by row on one worker, so that they are Flink's one by one.
///
/// # Errors
/// A setting does not fit.
pub(super) fn query_epochs(config: &SessionConfig) -> Result<EpochSettings> {
    Ok(match mini_batch(config)? {
        Some((rows_max, wait)) => EpochSettings { workers: 1, is_per_record: false, rows_max, wait },
        None => EpochSettings { workers: 1, is_per_record: true, rows_max: 1, wait: Duration::ZERO },
    })
}

/// Returns the parallelism that the user has set; None where there is nothing but the default.
fn set_parallelism(config: &SessionConfig) -> Result<Option<usize>> {
    let of_tables = config.get(&TABLE_DEFAULT_PARALLELISM)?;
    if of_tables == 0 || of_tables < -1 {
        return Err(wrong(TABLE_DEFAULT_PARALLELISM.key(), "must be at least 1, or -1"));
    }
    let (key, number) = if of_tables > 0 {
        (TABLE_DEFAULT_PARALLELISM.key(), of_tables)
    } else if config.is_given(&PARALLELISM_DEFAULT) {
        (PARALLELISM_DEFAULT.key(), config.get(&PARALLELISM_DEFAULT)?)
    } else {
        return Ok(None);
    };
    match usize::try_from(number) {
        Ok(number) if (1..=GROUP_COUNT).contains(&number) => Ok(Some(number)),
        _ => Err(wrong(key, &format!("must be between 1 and {GROUP_COUNT}"))),
    }
}

/// Returns size and wait of Flink's mini-batches where they are on.
fn mini_batch(config: &SessionConfig) -> Result<Option<(usize, Duration)>> {
    if !config.get(&MINI_BATCH_ENABLED)? {
        return Ok(None);
    }
    let latency = config.get(&MINI_BATCH_ALLOW_LATENCY)?;
    let size = usize::try_from(config.get(&MINI_BATCH_SIZE)?).unwrap_or_default();
    if latency.is_zero() {
        return Err(illegal(format!("{} must be > 0.", MINI_BATCH_ALLOW_LATENCY.key())));
    }
    if size == 0 {
        return Err(illegal(format!("{} must be > 0.", MINI_BATCH_SIZE.key())));
    }
    Ok(Some((size, latency)))
}

/// Returns when and where a job is checkpointed. `default_folder` counts where no folder is set.
///
/// # Errors
/// A setting does not fit.
pub(super) fn checkpoints(config: &SessionConfig, default_folder: &Path) -> Result<CheckpointSettings> {
    let interval = config.get_optional(&CHECKPOINTING_INTERVAL)?.filter(|interval| !interval.is_zero());
    let count = |option: &crate::options::ConfigOption<i32>, least: i32| {
        let number = config.get(option)?;
        u32::try_from(number)
            .ok()
            .filter(|_| number >= least)
            .ok_or_else(|| wrong(option.key(), &format!("must be at least {least}")))
    };
    let folder = match config.get_optional(&CHECKPOINTING_DIR)? {
        Some(uri) => local_path(CHECKPOINTING_DIR.key(), &uri)?,
        None => default_folder.to_owned(),
    };
    Ok(CheckpointSettings {
        interval,
        min_pause: config.get(&CHECKPOINTING_MIN_PAUSE)?,
        timeout: config.get(&CHECKPOINTING_TIMEOUT)?,
        tolerable_failures: count(&CHECKPOINTING_TOLERABLE_FAILED, 0)?,
        folder,
        retained: count(&CHECKPOINTING_NUM_RETAINED, 1)? as usize,
        delta_bytes_min: config.get(&STATE_DELTA_BYTES)?.0,
        // Flink differs: it drops checkpoints by default. A job of the shell ends with the shell, and is to go on the next day.
        is_kept_on_cancel: config.get(&CHECKPOINTING_RETENTION)? == CheckpointRetention::RetainOnCancellation,
    })
}

/// Returns the checkpoint or savepoint that every job starts from until RESET.
///
/// # Errors
/// A setting does not fit.
pub(super) fn restore(config: &SessionConfig) -> Result<Option<PathBuf>> {
    let Some(uri) = config.get_optional(&RECOVERY_PATH)?.filter(|uri| !uri.trim().is_empty()) else {
        return Ok(None);
    };
    local_path(RECOVERY_PATH.key(), &uri).map(Some)
}

/// Fails if a job is to begin anew and to go on from a checkpoint.
///
/// # Errors
/// Both are set.
fn check_start(resume: JobResume, restore: Option<&Path>) -> Result<()> {
    match restore {
        Some(path) if resume == JobResume::Resnapshot => Err(Error::validation(format!(
            "'{}' = 'resnapshot' reads tables anew, and '{}' names '{}' to go on from",
            JOB_RESUME.key(),
            RECOVERY_PATH.key(),
            path.display()
        ))
        .class(FlinkClass::ILLEGAL_ARGUMENT)
        .hint(format!(
            "RESET '{}'; to read them anew, RESET '{}'; to go on.",
            RECOVERY_PATH.key(),
            JOB_RESUME.key()
        ))),
        _ => Ok(()),
    }
}

/// Returns the folder for savepoints.
///
/// # Errors
/// None is set; Flink's words.
pub(super) fn savepoint_folder(config: &SessionConfig) -> Result<PathBuf> {
    match config.get_optional(&SAVEPOINT_DIR)?.filter(|uri| !uri.trim().is_empty()) {
        Some(uri) => local_path(SAVEPOINT_DIR.key(), &uri),
        None => Err(Error::validation(format!(
            "No savepoint directory configured. You can either specify a directory while cancelling via -s :targetDirectory or configure a cluster-wide default via key '{}'.",
            SAVEPOINT_DIR.key()
        ))
        .class(FlinkClass::ILLEGAL_STATE)
        .hint(format!("SET '{}' = '…'; then STOP JOB again: the job goes on running.", SAVEPOINT_DIR.key()))),
    }
}

/// Returns the path that a `file:` URI or a plain path names.
///
/// # Errors
/// It is somewhere else than on this machine.
pub(super) fn local_path(key: &str, uri: &str) -> Result<PathBuf> {
    let path = match uri.split_once("://") {
        Some(("file", path)) => path,
        Some((scheme, _)) => {
            return Err(Error::unsupported(format!(
                "option '{key}': files of scheme '{scheme}' are not supported yet"
            ))
            .hint("Give a path on this machine, with or without 'file://'."));
        }
        None => uri.strip_prefix("file:").unwrap_or(uri),
    };
    if path.is_empty() {
        return Err(wrong(key, "must not be empty"));
    }
    Ok(std::path::absolute(path)?)
}

/// Returns how failures of outside systems are met. Without a setting a job with checkpoints is restarted for ever, ever more
/// slowly, and one without fails, as in Flink.
///
/// # Errors
/// A setting does not fit.
pub(super) fn restarts(config: &SessionConfig, has_checkpoints: bool) -> Result<RestartStrategy> {
    let attempts =
        |key: &str, number: i32| u32::try_from(number).map_err(|_| wrong(key, "must not be negative"));
    let kind = config.get_optional(&RESTART_STRATEGY_TYPE)?.map(|kind| kind.trim().to_ascii_lowercase());
    let kind = kind.as_deref().unwrap_or(if has_checkpoints { "exponential-delay" } else { "none" });
    match kind {
        "none" | "off" | "disable" => Ok(RestartStrategy::None),
        "fixed-delay" | "fixeddelay" => Ok(RestartStrategy::FixedDelay {
            attempts: attempts(RESTART_FIXED_ATTEMPTS.key(), config.get(&RESTART_FIXED_ATTEMPTS)?)?,
            delay: config.get(&RESTART_FIXED_DELAY)?,
        }),
        "failure-rate" | "failurerate" => Ok(RestartStrategy::FailureRate {
            failures_max: attempts(RESTART_RATE_MAX_FAILURES.key(), config.get(&RESTART_RATE_MAX_FAILURES)?)?,
            interval: config.get(&RESTART_RATE_INTERVAL)?,
            delay: config.get(&RESTART_RATE_DELAY)?,
        }),
        "exponential-delay" | "exponentialdelay" => exponential_delay(config),
        other => Err(Error::validation(format!("Unknown restart strategy {other}."))
            .class(FlinkClass::ILLEGAL_ARGUMENT)
            .hint("There are none, fixed-delay, failure-rate and exponential-delay.")),
    }
}

fn exponential_delay(config: &SessionConfig) -> Result<RestartStrategy> {
    let multiplier = config.get(&RESTART_BACKOFF_MULTIPLIER)?;
    if multiplier.is_nan() || multiplier <= 1.0 {
        return Err(wrong(RESTART_BACKOFF_MULTIPLIER.key(), "must be greater than 1"));
    }
    let jitter = config.get(&RESTART_BACKOFF_JITTER)?;
    if !(0.0..=1.0).contains(&jitter) {
        return Err(wrong(RESTART_BACKOFF_JITTER.key(), "must be between 0 and 1"));
    }
    let attempts = config.get(&RESTART_BACKOFF_ATTEMPTS)?;
    let attempts = match attempts.trim() {
        "infinite" => None,
        number => Some(number.parse().map_err(|_| {
            wrong(RESTART_BACKOFF_ATTEMPTS.key(), "must be 'infinite' or a number of attempts")
        })?),
    };
    Ok(RestartStrategy::ExponentialDelay {
        initial: config.get(&RESTART_BACKOFF_INITIAL)?,
        max: config.get(&RESTART_BACKOFF_MAX)?,
        multiplier,
        reset_after: config.get(&RESTART_BACKOFF_RESET)?,
        jitter,
        attempts,
    })
}

/// Returns how many bytes the state of a job may take: half of the machine's memory unless a size is set.
///
/// # Errors
/// The setting does not fit.
pub(super) fn memory_budget(config: &SessionConfig) -> Result<usize> {
    let bytes = match config.get_optional(&STATE_MEMORY_BUDGET)? {
        Some(size) => size.0,
        None => {
            let memory = sysinfo::MemoryRefreshKind::nothing().with_ram();
            let system =
                sysinfo::System::new_with_specifics(sysinfo::RefreshKind::nothing().with_memory(memory));
            system.total_memory() / 2
        }
    };
    Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
}

fn wrong(key: &str, what: &str) -> Error {
    Error::validation(format!("option '{key}' {what}")).class(FlinkClass::ILLEGAL_ARGUMENT)
}

fn illegal(message: String) -> Error {
    Error::validation(message).class(FlinkClass::ILLEGAL_ARGUMENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn config(entries: &[(&str, &str)]) -> SessionConfig {
        let entries = entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        SessionConfig::new(entries.collect::<BTreeMap<_, _>>())
    }

    #[test]
    fn a_shown_query_runs_row_by_row_unless_mini_batches_are_on() {
        assert!(query_epochs(&config(&[])).unwrap().is_per_record);
        let on = [
            ("table.exec.mini-batch.enabled", "true"),
            ("table.exec.mini-batch.allow-latency", "5 s"),
            ("table.exec.mini-batch.size", "100"),
        ];
        let epochs = query_epochs(&config(&on)).unwrap();
        assert_eq!(
            (epochs.is_per_record, epochs.rows_max, epochs.wait),
            (false, 100, Duration::from_secs(5))
        );
        assert!(
            query_epochs(&config(&on[..2])).unwrap_err().message().contains("mini-batch.size must be > 0")
        );
    }

    #[test]
    fn an_insert_takes_all_cores_unless_a_parallelism_is_set() {
        let workers = |entries: &[(&str, &str)]| insert_epochs(&config(entries)).unwrap().workers;
        assert_eq!(workers(&[]), std::thread::available_parallelism().unwrap().get().min(GROUP_COUNT));
        assert_eq!(workers(&[("parallelism.default", "3")]), 3);
        assert_eq!(workers(&[("execution.parallelism", "2")]), 2);
        assert_eq!(
            workers(&[("parallelism.default", "3"), ("table.exec.resource.default-parallelism", "5")]),
            5
        );
        for wrong in ["0", "-4", "129"] {
            assert!(insert_epochs(&config(&[("parallelism.default", wrong)])).is_err(), "{wrong}");
        }
    }

    #[test]
    fn restarts_follow_the_checkpoints_where_nothing_is_set() {
        assert_eq!(restarts(&config(&[]), false).unwrap(), RestartStrategy::None);
        assert!(matches!(
            restarts(&config(&[]), true).unwrap(),
            RestartStrategy::ExponentialDelay { attempts: None, .. }
        ));
        let fixed =
            config(&[("restart-strategy", "fixed-delay"), ("restart-strategy.fixed-delay.attempts", "4")]);
        assert_eq!(
            restarts(&fixed, true).unwrap(),
            RestartStrategy::FixedDelay { attempts: 4, delay: Duration::from_secs(1) }
        );
        assert_eq!(
            restarts(&config(&[("restart-strategy.type", "often")]), true).unwrap_err().message(),
            "Unknown restart strategy often."
        );
    }

    #[test]
    fn a_job_does_not_begin_anew_and_go_on_at_once() {
        let path = Path::new("/state/chk-7");
        let error = check_start(JobResume::Resnapshot, Some(path)).unwrap_err();
        assert_eq!(
            error.message(),
            "'lakehead.job.resume' = 'resnapshot' reads tables anew, and 'execution.state-recovery.path' names '/state/chk-7' to go on from"
        );
        assert!(error.hint_text().unwrap().contains("RESET 'execution.state-recovery.path';"));
        assert!(check_start(JobResume::Resnapshot, None).is_ok());
        for resume in [JobResume::None, JobResume::Latest, JobResume::Skip] {
            assert!(check_start(resume, Some(path)).is_ok());
        }
    }

    #[test]
    fn checkpoints_stay_on_cancellation_unless_the_user_says_otherwise() {
        let folder = Path::new("/state");
        let settings = checkpoints(&config(&[("execution.checkpointing.interval", "3s")]), folder).unwrap();
        assert_eq!((settings.interval, settings.is_kept_on_cancel), (Some(Duration::from_secs(3)), true));
        assert_eq!((settings.folder.as_path(), settings.retained), (folder, 1));
        let set = config(&[
            ("execution.checkpointing.externalized-checkpoint-retention", "DELETE_ON_CANCELLATION"),
            ("state.checkpoints.dir", "file:///tmp/chk"),
        ]);
        let settings = checkpoints(&set, folder).unwrap();
        assert_eq!((settings.is_kept_on_cancel, settings.folder.as_path()), (false, Path::new("/tmp/chk")));
        let remote = config(&[("state.checkpoints.dir", "s3://b/c")]);
        assert!(checkpoints(&remote, folder).unwrap_err().message().contains("scheme 's3'"));
    }
}
