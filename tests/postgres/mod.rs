//! The connector `postgres-cdc` on real servers, from SQL to the lake. Without `LAKEHEAD_POSTGRES` these tests say so and pass.

mod changes;
mod claims;
mod connections;
mod consistency;
mod demo;
mod followed_tables;
mod patterns;
mod pipeline;
mod privileges;
mod reports;
mod schema_changes;
mod slots;
mod truncation;
mod truth;
mod tutorial;
mod values;
