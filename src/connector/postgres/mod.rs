//! `postgres-cdc`: tables of PostgreSQL, read as they change.

mod change_decoder;
mod column_binding;
mod connection;
mod copy_decoder;
mod factory;
mod mutation;
mod options;
mod pg_types;
mod pgoutput;
mod postgres_source;
mod preflight;
mod publication;
mod reader;
mod relation_binding;
mod row_builder;
mod row_shape;
mod settings;
mod slot;
mod snapshot;
mod table;
mod tables;
#[cfg(test)]
mod testing;
mod toast;
mod values;
mod wal_stream;

pub(crate) use factory::PostgresCdc;
