//! What the server is, how it is set up, and what the role may do on it.

use tokio_postgres::Client;

use crate::connector::postgres::connection::PgServer;
use crate::connector::postgres::settings::StreamSettings;
use crate::error::{Error, ErrorKind, Result};

/// The first version whose output plugin has all that is asked of it.
const VERSION_MIN: i32 = 140_000;
/// The first version whose slots standbys keep.
const VERSION_OF_FAILOVER: i32 = 170_000;
/// The first version that publishes generated columns.
const VERSION_OF_GENERATED: i32 = 180_000;

/// The server's state.
#[derive(Debug)]
pub(super) struct ServerState {
    version: i32,
    version_text: String,
    is_standby: bool,
    wal_level: String,
    slots_max: i32,
    /// Slots that are there, and those of them that nobody reads.
    slots: i64,
    idle_slots: Vec<String>,
    senders_max: i32,
    senders: i64,
    pub(super) is_superuser: bool,
    /// Whether the role may read changes.
    pub(super) may_replicate: bool,
    /// Whether the role may make publications in the database.
    pub(super) may_create: bool,
}

impl ServerState {
    pub(super) async fn read(server: &PgServer, client: &Client) -> Result<ServerState> {
        // Amazon's servers grant replication as a role.
        const QUERY: &str = "SELECT current_setting('server_version_num')::int4, split_part(current_setting('server_version'), ' ', 1), pg_is_in_recovery(), \
             current_setting('wal_level'), current_setting('max_replication_slots')::int4, (SELECT count(*) FROM pg_replication_slots), \
             coalesce((SELECT array_agg(slot_name::text ORDER BY slot_name) FROM pg_replication_slots WHERE NOT active), '{}'), \
             current_setting('max_wal_senders')::int4, (SELECT count(*) FROM pg_stat_replication), r.rolsuper, \
             r.rolsuper OR r.rolreplication OR EXISTS (SELECT FROM pg_roles g WHERE g.rolname = 'rds_replication' AND pg_has_role(r.oid, g.oid, 'USAGE')), \
             has_database_privilege(current_database(), 'CREATE') FROM pg_roles r WHERE r.rolname = current_user";
        let failed = |error| server.sql_error("reading its settings", error);
        let row = client.query_one(QUERY, &[]).await.map_err(failed)?;
        let read = || -> Result<ServerState, tokio_postgres::Error> {
            Ok(ServerState {
                version: row.try_get(0)?,
                version_text: row.try_get(1)?,
                is_standby: row.try_get(2)?,
                wal_level: row.try_get(3)?,
                slots_max: row.try_get(4)?,
                slots: row.try_get(5)?,
                idle_slots: row.try_get(6)?,
                senders_max: row.try_get(7)?,
                senders: row.try_get(8)?,
                is_superuser: row.try_get(9)?,
                may_replicate: row.try_get(10)?,
                may_create: row.try_get(11)?,
            })
        };
        read().map_err(failed)
    }

    pub(super) fn publishes_generated_columns(&self) -> bool {
        self.version >= VERSION_OF_GENERATED
    }

    pub(super) fn check_version(&self, server: &PgServer) -> Result<()> {
        if self.version >= VERSION_MIN {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "Postgres '{}' has version {}, and tables are read from version 14 on",
            server.name(),
            self.version_text
        ))
        .hint("Upgrade the server."))
    }

    /// Fails if the server's log cannot be decoded.
    pub(super) fn check_decodes(&self, server: &PgServer) -> Result<()> {
        if self.is_standby {
            return Err(rejected(server, "it is a standby, on which no publication can be made")
                .hint("Set 'hostname' and 'port' to the primary server."));
        }
        if self.wal_level == "logical" {
            return Ok(());
        }
        Err(rejected(server, &format!("wal_level is '{}', and changes are read at 'logical'", self.wal_level)).hint(
            "Run as a superuser: ALTER SYSTEM SET wal_level = 'logical'; and restart the server. (Amazon RDS: set rds.logical_replication = 1; Google Cloud SQL: cloudsql.logical_decoding = on.)",
        ))
    }

    pub(super) fn check_free_slot(&self, server: &PgServer) -> Result<()> {
        if self.slots < i64::from(self.slots_max) {
            return Ok(());
        }
        let error = rejected(server, &format!("all {} replication slots are in use", self.slots_max));
        let raise = format!(
            "raise the limit and restart the server: ALTER SYSTEM SET max_replication_slots = {};",
            self.slots_max + 10
        );
        Err(match self.idle_slots.as_slice() {
            [] => error.hint(format!("Run as a superuser, to {raise}")),
            [name, ..] => error.hint(format!(
                "Nobody reads {}. Drop what is not needed, such as: SELECT pg_drop_replication_slot('{name}'); or, as a superuser, {raise}",
                self.idle_slots.join(", ")
            )),
        })
    }

    pub(super) fn check_free_sender(&self, server: &PgServer) -> Result<()> {
        if self.senders < i64::from(self.senders_max) {
            return Ok(());
        }
        Err(Error::unavailable(format!(
            "Postgres '{}': all {} processes that send changes are in use",
            server.name(),
            self.senders_max
        ))
        .hint(format!(
            "SELECT pid, application_name FROM pg_stat_replication; shows for whom. To raise the limit, run as a superuser: ALTER SYSTEM SET max_wal_senders = {}; and restart the server.",
            self.senders_max + 10
        )))
    }

    pub(super) fn check_failover(&self, server: &PgServer, stream: &StreamSettings) -> Result<()> {
        if !stream.failover || self.version >= VERSION_OF_FAILOVER {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "Postgres '{}' has version {}, and standbys keep slots from version 17 on",
            server.name(),
            self.version_text
        ))
        .hint("Leave 'debezium.slot.failover' out."))
    }
}

fn rejected(server: &PgServer, what: &str) -> Error {
    Error::new(ErrorKind::Rejected, format!("Postgres '{}': {what}", server.name()))
}
