//! The outside world: what a connector must offer, and the one list of those there are.
//!
//! To add a connector, write its file (options as constants, a unit struct that implements `TableFactory`) and add one line
//! to `TABLE_FACTORIES`.

mod blackhole;
mod datagen;
mod durable_step;
mod factory;
mod filesystem;
mod iceberg;
mod operator_status;
mod postgres;
mod postgres_tls;
mod print;
mod rows_decoder;
mod sink;
mod source;
#[cfg(test)]
pub(crate) mod testing;
mod values;

pub(crate) use durable_step::durable_step;
pub use factory::{FactoryContext, TableFactory};
pub use operator_status::{LAG_BYTES, OperatorStatus};
pub use sink::{
    CheckpointId, Committable, Committer, CompletedCheckpoint, DynamicTableSink, OutputPort, OutputStream,
    SinkWriter, WriterContext,
};
pub(crate) use sink::{NoCommitter, may_have_landed};
pub use source::{
    Boundedness, DynamicTableSource, Frame, FrameDecoder, MetadataColumn, Projection, ReaderContext,
    SourceEvent, SourcePosition, SourceReader, TableRead,
};

use crate::catalog::{CatalogFactory, GenericInMemory, JDBC};
use crate::error::{Error, Result};
use crate::options::nearest;

/// Every connector, in the order of the reference.
pub static TABLE_FACTORIES: &[&dyn TableFactory] = &[
    &filesystem::Filesystem,
    &iceberg::Iceberg,
    &postgres::PostgresCdc,
    &datagen::Datagen,
    &print::Print,
    &blackhole::Blackhole,
    &values::Values,
];

/// Connectors that tutorials name and that are not here: nobody is to look for a file that is missing.
const NOT_BUILT: &[&str] = &[
    "db2-cdc",
    "doris",
    "dynamodb",
    "elasticsearch-6",
    "elasticsearch-7",
    "elasticsearch-8",
    "firehose",
    "hbase-2.2",
    "hbase-2.6",
    "hudi",
    "jdbc",
    "kafka",
    "kinesis",
    "mongodb",
    "mongodb-cdc",
    "mysql-cdc",
    "opensearch",
    "oracle-cdc",
    "paimon",
    "pulsar",
    "sqlserver-cdc",
    "starrocks",
    "tidb-cdc",
    "upsert-kafka",
];

/// Every catalog type, in the order of the reference.
pub static CATALOG_FACTORIES: &[&dyn CatalogFactory] = &[&GenericInMemory, &JDBC, &iceberg::IcebergCatalogs];

/// Returns the connector that an identifier names.
///
/// # Errors
/// There is none; Flink's text with all identifiers, and the nearest one as a hint.
pub fn table_factory(identifier: &str) -> Result<&'static dyn TableFactory> {
    TABLE_FACTORIES.iter().copied().find(|factory| factory.identifier() == identifier).ok_or_else(|| {
        let mut available: Vec<&str> = TABLE_FACTORIES.iter().map(|factory| factory.identifier()).collect();
        available.sort_unstable();
        let error = Error::validation(format!(
            "Could not find any factory for identifier '{identifier}' that implements 'org.apache.flink.table.factories.DynamicTableFactory' in the classpath.\n\nAvailable factory identifiers are:\n\n{}",
            available.join("\n")
        ));
        if NOT_BUILT.contains(&identifier) {
            return error.hint(format!("Connector '{identifier}' is not supported yet."));
        }
        match nearest(identifier, available.iter().copied()) {
            Some(near) => error.hint(format!("Did you mean '{near}'?")),
            None => error,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::FORMAT_FACTORIES;
    use crate::options::OptionDef;

    /// Every connector and format with its sentence and its options.
    fn all() -> Vec<(&'static str, &'static str, &'static [&'static dyn OptionDef])> {
        let connectors =
            TABLE_FACTORIES.iter().map(|factory| (factory.identifier(), factory.doc(), factory.options()));
        let formats =
            FORMAT_FACTORIES.iter().map(|factory| (factory.identifier(), factory.doc(), factory.options()));
        connectors.chain(formats).collect()
    }

    #[test]
    fn what_is_there_is_not_called_missing() {
        let is_there = |name: &&&str| all().iter().any(|(known, ..)| *known == **name);
        assert_eq!(NOT_BUILT.iter().find(is_there), None);
        assert_eq!(crate::format::NOT_BUILT.iter().find(is_there), None);
        assert!(NOT_BUILT.is_sorted() && crate::format::NOT_BUILT.is_sorted());
        let error = table_factory("upsert-kafka").map(drop).unwrap_err();
        assert_eq!(error.hint_text(), Some("Connector 'upsert-kafka' is not supported yet."));
    }

    #[test]
    fn identifiers_are_unique_and_in_kebab_case() {
        let mut names: Vec<&str> = all().iter().map(|(name, ..)| *name).collect();
        for name in &names {
            assert!(name.split('-').all(|part| !part.is_empty()), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{name}");
        }
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn everything_is_documented_with_a_sentence() {
        for (name, doc, options) in all() {
            assert!(doc.len() > 10 && doc.ends_with('.'), "{name}");
            for option in options {
                let doc = option.doc();
                assert!(doc.len() > 10 && doc.ends_with('.'), "{}", option.key());
                assert!(doc.starts_with(char::is_uppercase), "{}", option.key());
            }
        }
    }

    #[test]
    fn keys_are_unique_and_defaults_parse() {
        for (name, _, options) in all() {
            let mut keys: Vec<&str> = options.iter().map(|option| option.key()).collect();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), options.len(), "{name}");
            for option in options {
                assert!(!(option.is_required() && option.default_text().is_some()), "{}", option.key());
                if let Some(text) = option.default_text() {
                    option.check(text).unwrap();
                }
                for value in option.known_values() {
                    option.check(value).unwrap();
                }
            }
        }
    }

    #[test]
    fn options_of_a_format_start_with_its_name() {
        for factory in FORMAT_FACTORIES {
            let prefix = format!("{}.", factory.identifier());
            assert!(factory.options().iter().all(|option| option.key().starts_with(&prefix)), "{prefix}");
        }
    }

    #[test]
    fn an_unknown_connector_is_answered_with_all_there_are() {
        let error = table_factory("datgen").err().unwrap();
        assert!(error.message().ends_with(
            "Available factory identifiers are:\n\nblackhole\ndatagen\nfilesystem\niceberg\npostgres-cdc\nprint\nvalues"
        ));
        assert_eq!(error.hint_text(), Some("Did you mean 'datagen'?"));
        assert_eq!(table_factory("print").ok().unwrap().identifier(), "print");
    }

    #[test]
    fn sinks_and_sources_used_the_wrong_way_are_refused() {
        let table = testing::Table::new("blackhole", Vec::new(), &[]);
        let factory = table_factory("blackhole").ok().unwrap();
        assert_eq!(
            factory.create_source(&table.context()).unwrap_err().message(),
            "Connector 'blackhole' can only be used as a sink. It cannot be used as a source."
        );
        let factory = table_factory("datagen").ok().unwrap();
        assert_eq!(
            factory.create_sink(&table.context()).unwrap_err().message(),
            "Connector 'datagen' can only be used as a source. It cannot be used as a sink."
        );
    }
}
