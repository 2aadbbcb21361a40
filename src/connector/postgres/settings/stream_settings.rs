//! What all tables that share a slot must agree on.

use super::PassedOn;
use crate::connector::postgres::options::{LSN_COMMIT_DELAY, SCAN_STARTUP_MODE, SLOT_NAME, StartupMode};
use crate::error::{Error, Result};
use crate::options::{OptionDef, TableOptions};

/// How long the name of a slot may be.
const SLOT_NAME_BYTES_MAX: usize = 63;

/// Which publications the connector may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::connector::postgres) enum Autocreate {
    /// None: it must be there.
    Disabled,
    /// One with the tables that are read.
    Filtered,
    /// One with all tables of the database.
    AllTables,
    /// One without tables, to which the user adds them.
    NoTables,
}

/// The slot, the publication, and how both are used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::connector::postgres) struct StreamSettings {
    /// The slot; one named after the job if None.
    pub(in crate::connector::postgres) slot: Option<String>,
    pub(in crate::connector::postgres) publication: String,
    pub(in crate::connector::postgres) autocreate: Autocreate,
    pub(in crate::connector::postgres) startup: StartupMode,
    /// How many checkpoints behind the newest one the server may forget what it has sent.
    pub(in crate::connector::postgres) checkpoints_delay: u64,
    /// Whether the slot goes when the job is stopped.
    pub(in crate::connector::postgres) drops_slot_on_stop: bool,
    /// Whether a new slot is kept by standbys as well.
    pub(in crate::connector::postgres) failover: bool,
}

impl StreamSettings {
    /// Reads the settings.
    ///
    /// # Errors
    /// An option is wrong, or two contradict each other.
    pub(in crate::connector::postgres) fn read(
        options: &TableOptions,
        passed_on: &PassedOn,
    ) -> Result<StreamSettings> {
        let slot = options.get_optional(&SLOT_NAME)?;
        if let Some(slot) = &slot {
            check_slot_name(slot)?;
        }
        let given = options.raw(SCAN_STARTUP_MODE.key()).is_some();
        let startup = match passed_on.startup {
            Some(startup) if !given => startup,
            Some(startup) if startup != options.get(&SCAN_STARTUP_MODE)? => {
                return Err(Error::validation(
                    "options 'scan.startup.mode' and 'debezium.snapshot.mode' contradict each other",
                )
                .hint("Leave 'debezium.snapshot.mode' out."));
            }
            _ => options.get(&SCAN_STARTUP_MODE)?,
        };
        Ok(StreamSettings {
            slot,
            publication: passed_on.publication.clone(),
            autocreate: passed_on.autocreate,
            startup,
            checkpoints_delay: options.get(&LSN_COMMIT_DELAY)?,
            drops_slot_on_stop: passed_on.drops_slot_on_stop,
            failover: passed_on.failover,
        })
    }

    /// Returns the first option that is not the same in both.
    pub(in crate::connector::postgres) fn first_difference(
        &self,
        other: &StreamSettings,
    ) -> Option<&'static str> {
        let StreamSettings {
            slot,
            publication,
            autocreate,
            startup,
            checkpoints_delay,
            drops_slot_on_stop,
            failover,
        } = self;
        let differences = [
            ("slot.name", *slot != other.slot),
            ("debezium.publication.name", *publication != other.publication),
            ("debezium.publication.autocreate.mode", *autocreate != other.autocreate),
            ("scan.startup.mode", *startup != other.startup),
            ("scan.lsn-commit.checkpoints-num-delay", *checkpoints_delay != other.checkpoints_delay),
            ("debezium.slot.drop.on.stop", *drops_slot_on_stop != other.drops_slot_on_stop),
            ("debezium.slot.failover", *failover != other.failover),
        ];
        differences.iter().find(|(_, differs)| *differs).map(|(key, _)| *key)
    }
}

/// Returns the slot of a job whose tables name none: `lakehead_<job>` in the characters that slots may have.
pub(in crate::connector::postgres) fn default_slot_name(job: &str) -> String {
    let plain = job.chars().map(|character| match character.to_ascii_lowercase() {
        character @ ('a'..='z' | '0'..='9') => character,
        _ => '_',
    });
    let mut name: String = "lakehead_".chars().chain(plain).collect();
    if name.len() > SLOT_NAME_BYTES_MAX {
        // What is cut off may be all that tells two jobs apart.
        let hash = format!("_{:08x}", xxhash_rust::xxh3::xxh3_64(job.as_bytes()) & 0xffff_ffff);
        name.truncate(SLOT_NAME_BYTES_MAX - hash.len());
        name.push_str(&hash);
    }
    name
}

/// Fails if the server would not take a name for a slot.
fn check_slot_name(name: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if (1..=SLOT_NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(Error::validation(format!("option '{}' is no name of a replication slot: '{name}'", SLOT_NAME.key()))
        .hint(format!(
            "It has up to {SLOT_NAME_BYTES_MAX} small letters, digits and underscores, such as '{}'.",
            default_slot_name(name).trim_start_matches("lakehead_")
        )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_named_after_its_job_in_characters_that_slots_may_have() {
        assert_eq!(default_slot_name("Orders-to.lake"), "lakehead_orders_to_lake");
        assert_eq!(default_slot_name("é"), "lakehead__");
        let long = "x".repeat(80);
        let names = [default_slot_name(&format!("{long}a")), default_slot_name(&format!("{long}b"))];
        assert_ne!(names[0], names[1]);
        assert!(names.iter().all(|name| name.len() == SLOT_NAME_BYTES_MAX && check_slot_name(name).is_ok()));
    }

    #[test]
    fn a_name_that_no_slot_can_have_is_refused_with_one_that_it_can() {
        let error = check_slot_name("My-Slot").unwrap_err();
        assert_eq!(error.message(), "option 'slot.name' is no name of a replication slot: 'My-Slot'");
        assert!(error.hint_text().unwrap().ends_with("such as 'my_slot'."));
        for name in ["", &"a".repeat(64), "a b", "ä", "A"] {
            assert!(check_slot_name(name).is_err(), "{name}");
        }
    }
}
