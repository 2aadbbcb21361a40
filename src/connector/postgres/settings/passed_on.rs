//! The options that Flink passes on to Debezium (`debezium.*`) and to JDBC (`jdbc.properties.*`). Neither is here, so each property is
//! honoured, or means nothing here and a note says so, or is refused by name: none is dropped in silence.

use std::path::PathBuf;
use std::time::Duration;

use super::Autocreate;
use crate::connector::postgres::options::StartupMode;
use crate::connector::postgres_tls::{TlsMode, TlsSettings};
use crate::error::{Error, Result};
use crate::options::{OptionValue, TableOptions, nearest};

const DEBEZIUM: &str = "debezium.";
const JDBC: &str = "jdbc.properties.";
const PUBLICATION_DEFAULT: &str = "dbz_publication";

/// Properties that tune threads, queues and formats that do not exist here.
const WITHOUT_EFFECT: &[&str] = &[
    "binary.handling.mode",
    "connector.class",
    "database.tcpKeepAlive",
    "decimal.handling.mode",
    "flush.lsn.source",
    "heartbeat.interval.ms",
    "hstore.handling.mode",
    "include.unknown.datatypes",
    "interval.handling.mode",
    "lsn.flush.mode",
    "lsn.flush.timeout.ms",
    "max.batch.size",
    "max.queue.size",
    "max.queue.size.in.bytes",
    "money.fraction.digits",
    "poll.interval.ms",
    "schema.refresh.mode",
    "slot.max.retries",
    "slot.retry.delay.ms",
    "snapshot.fetch.size",
    "snapshot.max.threads",
    "status.update.interval.ms",
    "time.precision.mode",
    "xmin.fetch.interval.ms",
];

/// Properties that mean something else than what is done here, and why they cannot be had.
const REFUSED: &[(&str, &str)] = &[
    (
        "heartbeat.action.query",
        "Leave it out: the server's keep-alives move the slot, so nothing need be written.",
    ),
    (
        "unavailable.value.placeholder",
        "Leave it out: a value that the server did not send is read from the table, and no placeholder is ever written.",
    ),
    ("toasted.value.placeholder", "Leave it out: no placeholder is ever written."),
    ("slot.name", "Set 'slot.name' instead."),
    ("table.include.list", "Set 'schema-name' and 'table-name' instead."),
    ("schema.include.list", "Set 'schema-name' instead."),
    ("column.include.list", "Declare only the columns that you need."),
    ("column.exclude.list", "Declare only the columns that you need."),
    ("message.key.columns", "Declare PRIMARY KEY (…) NOT ENFORCED instead."),
    ("database.hostname", "Set 'hostname' instead."),
    ("database.port", "Set 'port' instead."),
    ("database.user", "Set 'username' instead."),
    ("database.password", "Set 'password' instead."),
    ("database.dbname", "Set 'database-name' instead."),
    (
        "skipped.operations",
        "Leave it out, and filter by the metadata column 'row_kind'; TRUNCATE is up to 'lakehead.postgres.truncate'.",
    ),
    ("slot.seek.to.known.offset.on.start", "Leave it out: a slot that is ahead of the job always fails it."),
];

/// What the properties say.
#[derive(Debug, Clone)]
pub(in crate::connector::postgres) struct PassedOn {
    pub(super) publication: String,
    pub(super) autocreate: Autocreate,
    pub(super) startup: Option<StartupMode>,
    pub(super) drops_slot_on_stop: bool,
    pub(super) failover: bool,
    pub(super) tls: TlsSettings,
    pub(super) connect_timeout: Option<Duration>,
    /// What the user is told when a job starts.
    pub(in crate::connector::postgres) notes: Vec<String>,
}

impl PassedOn {
    /// Reads the properties.
    ///
    /// # Errors
    /// One is unknown, cannot be had, or has a wrong value.
    pub(in crate::connector::postgres) fn read(options: &TableOptions) -> Result<PassedOn> {
        let mut passed_on = PassedOn {
            publication: PUBLICATION_DEFAULT.to_owned(),
            autocreate: Autocreate::Filtered,
            startup: None,
            drops_slot_on_stop: false,
            failover: false,
            tls: TlsSettings { mode: TlsMode::Prefer, root_certificate: None },
            connect_timeout: None,
            notes: Vec::new(),
        };
        let mut tls = TlsProperties::default();
        for (name, value) in options.with_prefix(JDBC) {
            passed_on.set_jdbc(&Property { prefix: JDBC, name: &name, value: &value }, &mut tls)?;
        }
        for (name, value) in options.with_prefix(DEBEZIUM) {
            passed_on.set_debezium(&Property { prefix: DEBEZIUM, name: &name, value: &value }, &mut tls)?;
        }
        passed_on.tls = tls.settings();
        Ok(passed_on)
    }

    fn set_debezium(&mut self, property: &Property<'_>, tls: &mut TlsProperties) -> Result<()> {
        match property.name {
            "publication.name" if property.value.is_empty() => return Err(property.wrong("a name")),
            "publication.name" => self.publication = property.value.to_owned(),
            "publication.autocreate.mode" => {
                self.autocreate = match property.value {
                    "disabled" => Autocreate::Disabled,
                    "filtered" => Autocreate::Filtered,
                    "all_tables" => Autocreate::AllTables,
                    "no_tables" => Autocreate::NoTables,
                    _ => return Err(property.wrong("disabled, filtered, all_tables or no_tables")),
                };
            }
            "slot.drop.on.stop" => self.drops_slot_on_stop = property.boolean()?,
            "slot.failover" => self.failover = property.boolean()?,
            "snapshot.mode" => self.startup = Some(startup_mode(property)?),
            "plugin.name" if property.value != "pgoutput" => self.note(&format!(
                "'{}' = '{}': pgoutput is used, which is part of Postgres",
                property.key(),
                property.value
            )),
            "plugin.name" => {}
            "database.sslmode" => tls.set_mode(property)?,
            "database.sslrootcert" => tls.set_root_certificate(property)?,
            name => return self.set_other(property, name),
        }
        Ok(())
    }

    fn set_other(&mut self, property: &Property<'_>, name: &str) -> Result<()> {
        if WITHOUT_EFFECT.contains(&name) {
            self.note(&format!("'{}' has no effect here", property.key()));
            return Ok(());
        }
        let refused = Error::unsupported(format!("option '{}' is not supported", property.key()));
        if let Some((_, instead)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
            return Err(refused.hint(*instead));
        }
        const HONOURED: [&str; 8] = [
            "publication.name",
            "publication.autocreate.mode",
            "slot.drop.on.stop",
            "slot.failover",
            "snapshot.mode",
            "plugin.name",
            "database.sslmode",
            "database.sslrootcert",
        ];
        let meant = nearest(name, HONOURED.iter().copied());
        Err(refused.hint(match meant {
            Some(meant) => format!("Did you mean '{DEBEZIUM}{meant}'?"),
            None => format!(
                "Leave it out: there is no Debezium here that it could be passed on to. Of its properties, {} are honoured.",
                HONOURED.join(", ")
            ),
        }))
    }

    fn set_jdbc(&mut self, property: &Property<'_>, tls: &mut TlsProperties) -> Result<()> {
        match property.name {
            "sslmode" => tls.set_mode(property),
            "sslrootcert" => tls.set_root_certificate(property),
            // JDBC's way to say verify-full.
            "ssl" if property.value.is_empty() || property.boolean()? => {
                tls.mode = Some(TlsMode::VerifyFull);
                Ok(())
            }
            "ssl" => Ok(()),
            "connectTimeout" | "loginTimeout" => {
                let seconds =
                    property.value.parse().map_err(|_| property.wrong("a number of seconds"))?;
                // JDBC takes 0 for no limit.
                self.connect_timeout = (seconds > 0).then(|| Duration::from_secs(seconds));
                Ok(())
            }
            "tcpKeepAlive" | "ApplicationName" | "socketTimeout" => {
                self.note(&format!("'{}' has no effect here", property.key()));
                Ok(())
            }
            _ => Err(Error::unsupported(format!("option '{}' is not supported", property.key())).hint(
                "Leave it out: there is no JDBC here. Of its properties, sslmode, sslrootcert, ssl, connectTimeout and loginTimeout are honoured.",
            )),
        }
    }

    fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }
}

/// One of the properties.
struct Property<'a> {
    prefix: &'static str,
    name: &'a str,
    value: &'a str,
}

impl Property<'_> {
    fn key(&self) -> String {
        format!("{}{}", self.prefix, self.name)
    }

    fn wrong(&self, expected: &str) -> Error {
        Error::validation(format!("option '{}' cannot be '{}'", self.key(), self.value))
            .hint(format!("It is {expected}."))
    }

    fn boolean(&self) -> Result<bool> {
        bool::parse(self.value).map_err(|_| self.wrong("true or false"))
    }
}

/// Debezium's modes as what is done here. Some take a slot or a snapshot anew at each start, which no restored job can mean.
fn startup_mode(property: &Property<'_>) -> Result<StartupMode> {
    match property.value {
        "initial" | "exported" => Ok(StartupMode::Initial),
        "initial_only" => Ok(StartupMode::Snapshot),
        "never" | "no_data" => Ok(StartupMode::LatestOffset),
        "always" | "when_needed" | "configuration_based" | "custom" => {
            let key = property.key();
            Err(Error::unsupported(format!("option '{key}' cannot be '{}'", property.value)).hint(
                "Use 'scan.startup.mode'. To read tables again although a job has read them: SET 'lakehead.job.resume' = 'resnapshot' before it starts.",
            ))
        }
        _ => Err(property.wrong("initial, initial_only, no_data or never")),
    }
}

/// What properties of both kinds say of TLS.
#[derive(Default)]
struct TlsProperties {
    mode: Option<TlsMode>,
    root_certificate: Option<PathBuf>,
}

impl TlsProperties {
    fn set_mode(&mut self, property: &Property<'_>) -> Result<()> {
        let mode = TlsMode::parse(property.value).ok_or_else(|| property.wrong(TlsMode::CHOICES))?;
        if self.mode.is_some_and(|other| other != mode) {
            return Err(property.contradicts("jdbc.properties.sslmode"));
        }
        self.mode = Some(mode);
        Ok(())
    }

    fn set_root_certificate(&mut self, property: &Property<'_>) -> Result<()> {
        let path = PathBuf::from(property.value);
        if self.root_certificate.as_ref().is_some_and(|other| *other != path) {
            return Err(property.contradicts("jdbc.properties.sslrootcert"));
        }
        // Postgres's own word for the certificates of the system.
        self.root_certificate = (property.value != "system").then_some(path);
        Ok(())
    }

    fn settings(self) -> TlsSettings {
        TlsSettings { mode: self.mode.unwrap_or(TlsMode::Prefer), root_certificate: self.root_certificate }
    }
}

impl Property<'_> {
    fn contradicts(&self, other: &str) -> Error {
        Error::validation(format!("options '{}' and '{other}' contradict each other", self.key()))
            .hint("Leave one of them out.")
    }
}
