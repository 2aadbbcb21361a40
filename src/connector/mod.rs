//! The outside world: what a connector must offer, and the one list of those there are.
//!
//! To add a connector, write its file (options as constants, a unit struct that implements `TableFactory`) and add one line
//! to `TABLE_FACTORIES`.

mod blackhole;
mod datagen;
mod factory;
mod filesystem;
mod print;
mod sink;
mod source;
#[cfg(test)]
pub(crate) mod testing;

pub use factory::{FactoryContext, TableFactory};
pub(crate) use sink::NoCommitter;
pub use sink::{
    CheckpointId, Committable, Committer, DynamicTableSink, OutputPort, OutputStream, SinkWriter,
    WriterContext,
};
pub use source::{
    Boundedness, DynamicTableSource, Frame, FrameDecoder, MetadataColumn, Projection, SourceEvent,
    SourcePosition, SourceReader,
};

use crate::error::{Error, Result};
use crate::options::nearest;

/// Every connector, in the order of the reference.
pub static TABLE_FACTORIES: &[&dyn TableFactory] =
    &[&filesystem::Filesystem, &datagen::Datagen, &print::Print, &blackhole::Blackhole];

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
        match nearest(identifier, available.iter().copied()) {
            Some(near) => error.hint(format!("Did you mean '{near}'?")),
            None => error,
        }
    })
}
