//! What may change between the job that wrote a checkpoint and the one that goes on from it.
//!
//! A table that stands for what can be found again elsewhere begins anew where it has changed. Of others, columns are matched by name.
//! Further columns that may be NULL are all that is allowed: their old rows have NULL. Everything else would make an operator go on
//! from values that mean something else. A new aggregate is another kind of state (see `Blueprint::state_kind`): NULL is not what it
//! would have made of the rows that have passed.

use arrow::datatypes::{Field, Schema};

use super::manifest::{OperatorState, TableState};
use super::restore::OperatorClaim;
use crate::state::StateTable;

/// Returns what keeps an operator from going on with a state, one sentence each.
pub(super) fn changes(stored: &OperatorState, now: &OperatorClaim) -> Vec<String> {
    let mut changes = Vec::new();
    if stored.kind != now.kind {
        changes.push(format!("it was {}", stored.kind));
    }
    for table in &stored.tables {
        match now.tables.iter().find(|other| other.name == table.name) {
            Some(other) if goes_on(table, other) => table_changes(table, other, &mut changes),
            Some(_) => {}
            None => changes.push(format!("it no longer keeps the table '{}'", table.name)),
        }
    }
    for table in &now.tables {
        if !stored.tables.iter().any(|other| other.name == table.name) {
            changes.push(format!("it keeps a new table '{}'", table.name));
        }
    }
    changes
}

/// Returns whether the rows of a table are gone on from: what can be found again is not where it stands for something else.
pub(super) fn goes_on(stored: &TableState, now: &StateTable) -> bool {
    now.derived_from.is_none() || stored.derived_from == now.derived_from
}

fn table_changes(stored: &TableState, now: &StateTable, changes: &mut Vec<String>) {
    let table = &stored.name;
    let (old_key, new_key) = (key(&stored.schema, stored.key_count), key(now.schema.as_ref(), now.key_count));
    if old_key != new_key {
        changes.push(format!("the key of table '{table}' was ({old_key}) and is ({new_key})"));
    }
    for old in stored.schema.fields() {
        let name = old.name();
        let Some(new) = find(&now.schema, name) else {
            changes.push(format!("table '{table}' no longer has the column '{name}' ({})", old.data_type()));
            continue;
        };
        if old.data_type() != new.data_type() {
            let (old, new) = (old.data_type(), new.data_type());
            changes.push(format!("column '{name}' of table '{table}' was {old} and is {new}"));
        }
        if old.is_nullable() && !new.is_nullable() {
            changes.push(format!("column '{name}' of table '{table}' has become NOT NULL"));
        }
    }
    for new in now.schema.fields() {
        if find(&stored.schema, new.name()).is_none() && !new.is_nullable() {
            let (name, data_type) = (new.name(), new.data_type());
            changes.push(format!("table '{table}' has a new column '{name}' ({data_type} NOT NULL)"));
        }
    }
}

fn key(schema: &Schema, key_count: usize) -> String {
    let names: Vec<&str> =
        schema.fields().iter().take(key_count).map(|field| field.name().as_str()).collect();
    names.join(", ")
}

fn find<'a>(schema: &'a Schema, name: &str) -> Option<&'a Field> {
    schema.column_with_name(name).map(|(_, field)| field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::DataType::{self, Int32, Int64, Utf8};
    use std::sync::Arc;

    fn check(
        old: &[(&str, DataType, bool)],
        new: &[(&str, DataType, bool)],
        keys: (usize, usize),
        expect: &[&str],
    ) {
        let schema = |columns: &[(&str, DataType, bool)]| {
            let field = |(name, data_type, is_nullable): &(&str, DataType, bool)| {
                Field::new(*name, data_type.clone(), *is_nullable)
            };
            Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
        };
        let stored = OperatorState {
            uid: "u".to_owned(),
            kind: "Join".to_owned(),
            tables: vec![TableState {
                name: "left".to_owned(),
                schema: schema(old),
                key_count: keys.0,
                since: 1,
                derived_from: None,
            }],
        };
        let now = OperatorClaim {
            uid: "u".to_owned(),
            kind: "Join".to_owned(),
            tables: vec![StateTable {
                name: "left",
                schema: schema(new),
                key_count: keys.1,
                derived_from: None,
            }],
        };
        assert_eq!(changes(&stored, &now), expect);
    }

    #[test]
    fn further_columns_that_may_be_null_and_another_order_are_allowed() {
        let old = [("k", Int64, true), ("a", Utf8, true), ("b", Utf8, false)];
        check(&old, &old, (1, 1), &[]);
        let new = [("k", Int64, true), ("b", Utf8, true), ("new", Int32, true), ("a", Utf8, true)];
        check(&old, &new, (1, 1), &[]);
    }

    #[test]
    fn everything_else_is_named() {
        let old = [("k", Int64, true), ("a", Utf8, true)];
        check(&old, &old[..1], (1, 1), &["table 'left' no longer has the column 'a' (Utf8)"]);
        check(
            &old,
            &[("k", Int64, true), ("a", Int32, false)],
            (1, 1),
            &[
                "column 'a' of table 'left' was Utf8 and is Int32",
                "column 'a' of table 'left' has become NOT NULL",
            ],
        );
        check(&old, &old, (1, 2), &["the key of table 'left' was (k) and is (k, a)"]);
        check(
            &old,
            &[old[0].clone(), old[1].clone(), ("n", Int32, false)],
            (1, 1),
            &["table 'left' has a new column 'n' (Int32 NOT NULL)"],
        );
    }

    #[test]
    fn tables_and_operators_that_have_changed_are_named() {
        let table = |name: &str| TableState {
            name: name.to_owned(),
            schema: Arc::new(Schema::empty()),
            key_count: 0,
            since: 1,
            derived_from: None,
        };
        let stored = OperatorState {
            uid: "u".to_owned(),
            kind: "Join".to_owned(),
            tables: vec![table("left"), table("right")],
        };
        let now = OperatorClaim {
            uid: "u".to_owned(),
            kind: "Rank".to_owned(),
            tables: vec![
                StateTable {
                    name: "left",
                    schema: Arc::new(Schema::empty()),
                    key_count: 0,
                    derived_from: None,
                },
                StateTable {
                    name: "rows",
                    schema: Arc::new(Schema::empty()),
                    key_count: 0,
                    derived_from: None,
                },
            ],
        };
        assert_eq!(
            changes(&stored, &now),
            ["it was Join", "it no longer keeps the table 'right'", "it keeps a new table 'rows'"]
        );
    }
}
