//! Which job of this process reads which slot. The server lets one reader in at a time, and takes no interest in whose slot it is: the
//! second job of a session would be the one that reads whenever it is the faster one.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::connector::postgres::connection::{ONE_READER, PgServer};
use crate::error::{Error, Result};

/// The slots that are read, once for each reader: a job that is started again may have two for a moment.
static CLAIMS: Mutex<Vec<Claim>> = Mutex::new(Vec::new());

#[derive(Debug, Clone, PartialEq, Eq)]
struct Claim {
    host: String,
    port: u16,
    slot: String,
    job: String,
}

/// Keeps other jobs of this process away from a slot until it is dropped.
#[derive(Debug)]
pub(in crate::connector::postgres) struct SlotClaim(Claim);

impl SlotClaim {
    /// Claims a slot for a job.
    ///
    /// # Errors
    /// Another job reads it.
    pub(in crate::connector::postgres) fn new(server: &PgServer, slot: &str, job: &str) -> Result<SlotClaim> {
        let settings = server.settings();
        let (host, port) = (settings.host.clone(), settings.port);
        let claim = Claim { host, port, slot: slot.to_owned(), job: job.to_owned() };
        let mut claims = claims();
        let is_same_slot =
            |other: &&Claim| (&other.host, other.port, &other.slot) == (&claim.host, claim.port, &claim.slot);
        if let Some(other) = claims.iter().filter(is_same_slot).find(|other| other.job != claim.job) {
            return Err(Error::rejected(format!(
                "Postgres '{}': replication slot {slot} is read by job '{}' already",
                server.name(),
                other.job
            ))
            .hint(ONE_READER));
        }
        claims.push(claim.clone());
        Ok(SlotClaim(claim))
    }
}

impl Drop for SlotClaim {
    fn drop(&mut self) {
        let mut claims = claims();
        if let Some(at) = claims.iter().position(|claim| *claim == self.0) {
            claims.swap_remove(at);
        }
    }
}

fn claims() -> MutexGuard<'static, Vec<Claim>> {
    CLAIMS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connector::postgres::testing::server_settings;

    #[test]
    fn a_slot_is_read_by_one_job_at_a_time() {
        let server = PgServer::new(server_settings());
        let first = SlotClaim::new(&server, "claimed", "one").unwrap();
        let again = SlotClaim::new(&server, "claimed", "one").unwrap();
        drop(SlotClaim::new(&server, "other", "two").unwrap());
        drop(first);
        let error = SlotClaim::new(&server, "claimed", "two").unwrap_err();
        assert!(
            error.message().ends_with("replication slot claimed is read by job 'one' already"),
            "{error}"
        );
        assert_eq!(error.hint_text(), Some(ONE_READER));
        drop(again);
        SlotClaim::new(&server, "claimed", "two").unwrap();
    }
}
