//! What a stream does not tell of the tables that are followed: that they were dropped and made again, renamed, moved, given or left by
//! partitions, or not published for a while. Positions keep what the server has said last, so that it is noticed, too, when it happened
//! while the job was down.

mod catalog;
mod comparison;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio_postgres::Client;

use self::catalog::{had_rows, labels_of, look_up, named};
use self::comparison::{Comparison, Joined, Parted};
use super::producer::Producer;
use super::read_plan::{DeclaredRead, ReadPlan};
use crate::connector::postgres::slot::WAYS_ON;
use crate::error::{Error, Result};
use crate::options::JobResume;

/// A table whose changes are followed, as the server has shown it last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FollowedTable {
    schema: String,
    name: String,
    #[serde(default, skip_serializing_if = "Presence::is_there")]
    presence: Presence,
    /// The entries of the publication that let its changes come.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    entries: Vec<u32>,
    /// The partitions that its rows are in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    partitions: Vec<u32>,
    /// Those that were detached and are tables of their own: what they hold was read with this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    former_partitions: Vec<u32>,
}

/// Whether a table is where it was. Where it is not, its name is the one under which it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Presence {
    /// It is, or has another name that is read as well.
    #[default]
    There,
    /// It has a name that is not read.
    Renamed,
    Dropped,
}

impl Presence {
    fn is_there(&self) -> bool {
        *self == Presence::There
    }
}

impl FollowedTable {
    #[cfg(test)]
    pub(super) fn new(schema: &str, name: &str) -> FollowedTable {
        FollowedTable {
            schema: schema.to_owned(),
            name: name.to_owned(),
            presence: Presence::There,
            entries: Vec::new(),
            partitions: Vec::new(),
            former_partitions: Vec::new(),
        }
    }

    fn label(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    /// Returns whether it is there under a name that is read.
    pub(super) fn is_there(&self) -> bool {
        self.presence.is_there()
    }

    /// Returns whether a table is or was a partition of this one.
    pub(super) fn has_had_partition(&self, oid: u32) -> bool {
        self.partitions.contains(&oid) || self.former_partitions.contains(&oid)
    }
}

/// Asks the server what has become of the tables that are followed, and tells the user what he should know. Returns whether anything is
/// not as it was.
///
/// # Errors
/// Something was lost, so that what is written would not be what the tables hold; or the server cannot be asked.
pub(super) async fn check_followed(producer: &mut Producer, client: &Client) -> Result<bool> {
    let plan = Arc::clone(&producer.plan);
    let known = &producer.position.followed;
    let oids: BTreeSet<u32> =
        producer.position.tables.keys().map(|key| key.oid).chain(known.keys().copied()).collect();
    let oids: Vec<u32> = oids.into_iter().collect();
    let seen = look_up(&plan.server, client, &plan.stream.publication, &oids).await?;
    let readers = readers_by_table(producer, &plan);
    let mut comparison = Comparison::new(known, &seen, &readers, &plan.stream.publication);
    ask_of_partitions(&plan, client, &mut comparison).await?;
    ask_of_names(&plan, client, &mut comparison).await?;
    for notice in &comparison.notices {
        producer.warn(notice);
    }
    let goes_on = plan.context.resume == JobResume::Skip && producer.is_resuming();
    for loss in &comparison.losses {
        let text = format!("Postgres '{}': {loss}", plan.server.name());
        if !goes_on {
            return Err(Error::rejected(text).hint(WAYS_ON));
        }
        producer.warn(&format!("{text}. The job goes on from now without"));
    }
    let has_changed = producer.position.followed != comparison.now;
    producer.position.followed = comparison.now;
    Ok(has_changed)
}

/// Returns the declared tables that read a table, by its number.
fn readers_by_table<'a>(producer: &Producer, plan: &'a ReadPlan) -> BTreeMap<u32, Vec<&'a DeclaredRead>> {
    let mut readers: BTreeMap<u32, Vec<&DeclaredRead>> = BTreeMap::new();
    for key in producer.position.tables.keys() {
        let declared = plan.tables.iter().filter(|declared| declared.name == key.reader);
        readers.entry(key.oid).or_default().extend(declared);
    }
    readers
}

/// Finds out whether partitions had rows before they were attached, and what those are called that have gone.
async fn ask_of_partitions(plan: &ReadPlan, client: &Client, comparison: &mut Comparison) -> Result<()> {
    for Joined { oid, table, partition } in std::mem::take(&mut comparison.joined) {
        let Some((label, had_rows)) = had_rows(&plan.server, client, partition, oid).await? else {
            continue;
        };
        match had_rows {
            Some(false) => {}
            Some(true) => comparison.losses.push(format!(
                "partition {label} had rows already when it was attached to table {table}: no change tells of them"
            )),
            None => comparison.notices.push(format!(
                "Partition {label} was attached to table {table}, and user '{}' may not look into it: if it had rows before, they are missing. To read them: SET 'lakehead.job.resume' = 'resnapshot' and start the job again",
                plan.server.settings().user
            )),
        }
    }
    for Parted { oid, table, partitions } in std::mem::take(&mut comparison.parted) {
        let detached = labels_of(&plan.server, client, &partitions).await?;
        let labels: Vec<&str> = detached.iter().map(|(_, label)| label.as_str()).collect();
        let named = if labels.is_empty() { String::new() } else { format!(" ({})", labels.join(", ")) };
        comparison.notices.push(format!(
            "Table {table} has lost {} of its partitions{named}: what was written of them stays. To take it away: SET 'lakehead.job.resume' = 'resnapshot' and start the job again",
            partitions.len()
        ));
        if let Some(now) = comparison.now.get_mut(&oid) {
            now.former_partitions.extend(detached.iter().map(|(oid, _)| *oid));
        }
    }
    Ok(())
}

/// Finds out whether other tables have the names now under which tables were read that are not there any more.
async fn ask_of_names(plan: &ReadPlan, client: &Client, comparison: &mut Comparison) -> Result<()> {
    let gone: Vec<(u32, String, String)> = comparison
        .now
        .iter()
        .filter(|(_, table)| !table.is_there())
        .map(|(oid, table)| (*oid, table.schema.clone(), table.name.clone()))
        .collect();
    if gone.is_empty() {
        return Ok(());
    }
    let taken = named(&plan.server, client, &gone).await?;
    for (oid, schema, name) in gone {
        let is_taken = taken.iter().any(|other| {
            (&other.schema, &other.name) == (&schema, &name)
                // One that is followed keeps its own rows.
                && !comparison.now.get(&other.oid).is_some_and(FollowedTable::is_there)
        });
        if is_taken {
            comparison.now.remove(&oid);
            comparison.losses.push(format!(
                "table {schema}.{name} is another one than the job has read: what was written of the earlier one would stay, and what this one holds was not read"
            ));
        }
    }
    Ok(())
}
