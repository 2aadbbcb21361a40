//! Text to statements. One splitter cuts scripts, one parser reads Flink's dialect, one printer writes it back.
//!
//! Queries and expressions are sqlparser's AST, read by its parser with `FlinkDialect`; the statements around them are ours.

mod positions;
mod statement;

pub use positions::Positions;
pub use statement::*;
