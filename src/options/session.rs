//! Every key that SET knows, declared once; completion, SET ALL and the README's reference come from the list.

use super::{ConfigOption, EnumValue, OptionDef};

/// Values of `execution.runtime-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "Flink's words")]
pub enum RuntimeMode {
    Streaming,
    Batch,
    Automatic,
}

impl EnumValue for RuntimeMode {
    const CLASS: &'static str = "class org.apache.flink.api.common.RuntimeExecutionMode";
    const VALUES: &'static [(&'static str, Self)] = &[
        ("STREAMING", RuntimeMode::Streaming),
        ("BATCH", RuntimeMode::Batch),
        ("AUTOMATIC", RuntimeMode::Automatic),
    ];
}

/// Streaming shows changes as they come; batch shows the answer.
pub const EXECUTION_RUNTIME_MODE: ConfigOption<RuntimeMode> = ConfigOption::with_default(
    "execution.runtime-mode",
    "STREAMING",
    "Streaming shows changes as they come, batch answers once.",
)
.old_keys(&["execution.type"]);

/// The session time zone.
pub const TABLE_LOCAL_TIME_ZONE: ConfigOption<String> = ConfigOption::with_default(
    "table.local-time-zone",
    "default",
    "The time zone of TIMESTAMP_LTZ texts and of CURRENT_* functions: a TZDB name or GMT+08:00.",
);

/// Every session option, in the order of the reference.
pub static SESSION_OPTIONS: &[&dyn OptionDef] = &[&EXECUTION_RUNTIME_MODE, &TABLE_LOCAL_TIME_ZONE];
