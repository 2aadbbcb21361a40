//! Which column of a server's table is which declared column: found by name, read by the two types.

use super::pg_types::PgTypes;
use super::pgoutput::RelationColumn;
use super::row_shape::RowShape;
use super::table::{PgColumn, quoted};
use super::values::{SourceType, ValueReader};
use crate::error::{Error, Result};

/// A column as some table of the server has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerColumn<'a> {
    pub(super) name: &'a str,
    pub(super) type_oid: u32,
    pub(super) type_modifier: i32,
}

impl<'a> From<&'a PgColumn> for ServerColumn<'a> {
    fn from(column: &'a PgColumn) -> ServerColumn<'a> {
        let PgColumn { name, type_oid, type_modifier } = column;
        ServerColumn { name, type_oid: *type_oid, type_modifier: *type_modifier }
    }
}

impl<'a> From<&RelationColumn<'a>> for ServerColumn<'a> {
    fn from(column: &RelationColumn<'a>) -> ServerColumn<'a> {
        let RelationColumn { name, type_oid, type_modifier, .. } = *column;
        ServerColumn { name, type_oid, type_modifier }
    }
}

/// Where a declared column comes from.
#[derive(Debug, Clone)]
pub(super) struct ColumnBinding {
    /// The position in the server's table.
    pub(super) position: usize,
    /// The type that it has there.
    pub(super) source: SourceType,
    /// What reads its values.
    pub(super) reader: ValueReader,
}

/// Finds the declared columns among those of a table, in the order of the declaration.
///
/// # Errors
/// Some are not there, or have types that cannot be read as those declared: all of them are named.
pub(super) fn bind(
    shape: &RowShape,
    place: &str,
    columns: &[ServerColumn<'_>],
    types: &PgTypes,
) -> Result<Vec<ColumnBinding>> {
    let mut bindings = Vec::with_capacity(shape.physical.len());
    let (mut missing, mut unfit, mut suggestions) = (Vec::new(), Vec::new(), Vec::new());
    for declared in &shape.physical {
        let Some(position) = columns.iter().position(|column| column.name == declared.name) else {
            missing.push(format!("'{}'", declared.name));
            continue;
        };
        let found = columns[position];
        let source = SourceType::new(types, found.type_oid, found.type_modifier);
        match ValueReader::new(&source, &declared.data_type, shape.unrepresentable) {
            Some(reader) => bindings.push(ColumnBinding { position, source, reader }),
            None => {
                let (name, data_type) = (&declared.name, &declared.data_type);
                unfit.push(format!("'{name}' has type {} and is declared as {data_type}", source.name));
                suggestions.push(format!("'{name}' as {}", source.suggestion()));
            }
        }
    }
    if !missing.is_empty() {
        let there: Vec<&str> = columns.iter().map(|column| column.name).collect();
        return Err(Error::validation(format!(
            "table {place} of the server lacks columns that {} declares: {}",
            shape.table,
            missing.join(", ")
        ))
        .hint(format!(
            "They were dropped or renamed there, or the publication leaves them out. It has: {}. Declare the table with columns that are there.",
            there.join(", ")
        )));
    }
    if !unfit.is_empty() {
        return Err(Error::validation(format!(
            "columns of table {place} cannot be read as {} declares them: {}",
            shape.table,
            unfit.join("; ")
        ))
        .hint(format!("Declare {}.", suggestions.join(", "))));
    }
    Ok(bindings)
}

/// Returns what is selected to get a column as the text that its type's output function writes, which streams carry as well. Where a
/// type's cast to text is a function of its own, it may write something else: `10.0.0.1/32` for the address `10.0.0.1`.
pub(super) fn text_expression(types: &PgTypes, source: &SourceType, column: &str) -> String {
    match types.get(source.oid) {
        Some(known) if known.has_text_cast => {
            format!("CASE WHEN {column} IS NOT NULL THEN pg_catalog.format('%s', {column}) END")
        }
        _ => format!("{column}::pg_catalog.text"),
    }
}

/// Returns a column of the table `t` as SQL takes it.
pub(super) fn qualified(column: &str) -> String {
    format!("t.{}", quoted(column))
}
