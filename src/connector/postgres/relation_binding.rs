//! What a stream's relation is to a declared table: which of its columns are read, and how its rows are told apart.

use super::column_binding::{ServerColumn, bind, qualified, text_expression};
use super::pg_types::{PgTypes, TypeKind};
use super::pgoutput::{OldTuple, Relation, ReplicaIdentity, Tuple, TupleValue};
use super::row_shape::{Changes, RowShape};
use super::slot::WAYS_ON;
use super::table::{PgTable, quoted};
use super::values::{Fault, SourceType, ValueReader, not_utf8_hint};
use crate::error::{Error, Result};
use crate::schema::TypeRoot;

/// A table as the stream describes it.
#[derive(Debug)]
pub(super) struct RelationBinding {
    pub(super) schema: String,
    pub(super) table: String,
    /// Its columns, in the order of tuples.
    pub(super) columns: Vec<BoundColumn>,
    /// How many of them a look at the key needs: up to the last one that is part of it.
    key_span: usize,
}

/// A column of such a table.
#[derive(Debug)]
pub(super) struct BoundColumn {
    name: String,
    source: SourceType,
    /// Whether rows are told apart by it: part of the replica identity, or of a primary key if that is FULL.
    is_key: bool,
    /// How it is compared with a text; None where the type is not known.
    comparison: Option<Comparison>,
    /// What reads it; None if nobody does.
    pub(super) target: Option<Target>,
}

/// Where the values of a column go.
#[derive(Debug)]
pub(super) struct Target {
    /// The position among the declared columns that are read.
    pub(super) column: usize,
    pub(super) reader: ValueReader,
    /// What is selected to read a value again.
    pub(super) expression: String,
}

/// How values of a type are compared with texts of them.
#[derive(Debug)]
pub(super) struct Comparison {
    /// The schema of the operator: that of the type, where it is an extension's.
    operator_schema: String,
    /// What a text is cast to.
    type_name: String,
}

impl Comparison {
    fn new(types: &PgTypes, oid: u32) -> Option<Comparison> {
        // Of a domain, its values need no more than the type below it, and the role no right to use the domain.
        let (oid, _) = types.below_domains(oid, -1);
        let below = types.get(oid)?;
        let schema = if below.kind == TypeKind::Base { below.schema.as_str() } else { "pg_catalog" };
        Some(Comparison { operator_schema: quoted(schema), type_name: types.sql(oid).ok()? })
    }

    /// Returns the condition that a column has the value of a text.
    pub(super) fn with(&self, column: &str, text: &str) -> String {
        format!("{column} OPERATOR({}.=) {text}::{}", self.operator_schema, self.type_name)
    }
}

impl RelationBinding {
    /// Binds a relation. Its table is asked for no more than its primary key: what the catalog says may be newer than the stream.
    pub(super) fn new(
        shape: &RowShape,
        relation: &Relation<'_>,
        table: &PgTable,
        types: &PgTypes,
    ) -> Result<RelationBinding> {
        let server: Vec<ServerColumn<'_>> = relation.columns.iter().map(ServerColumn::from).collect();
        let schema = if relation.schema.is_empty() { "pg_catalog" } else { relation.schema };
        let bindings = bind(shape, &format!("{schema}.{}", relation.table), &server, types)?;
        let is_full = relation.identity == ReplicaIdentity::Full;
        let is_key = |position: usize, name: &str, is_identity: bool| {
            if !is_full {
                return is_identity;
            }
            let declared = shape.key.iter().any(|key| bindings[*key].position == position);
            declared || table.key.iter().any(|key| table.columns[*key].name == name)
        };
        let columns: Vec<BoundColumn> = relation
            .columns
            .iter()
            .enumerate()
            .map(|(position, column)| BoundColumn {
                name: column.name.to_owned(),
                source: SourceType::new(types, column.type_oid, column.type_modifier),
                is_key: is_key(position, column.name, column.is_key),
                comparison: Comparison::new(types, column.type_oid).filter(|_| column.is_key),
                target: bindings.iter().position(|binding| binding.position == position).map(|at| Target {
                    column: at,
                    reader: bindings[at].reader.clone(),
                    expression: text_expression(types, &bindings[at].source, &qualified(column.name)),
                }),
            })
            .collect();
        let key_span = columns.iter().rposition(|column| column.is_key).map_or(0, |last| last + 1);
        let bound = RelationBinding {
            schema: schema.to_owned(),
            table: relation.table.to_owned(),
            columns,
            key_span,
        };
        if !is_full && shape.changes == Changes::Upsert {
            bound.expect_declared_key(shape)?;
        }
        Ok(bound)
    }

    /// Checks that what the server sends of rows that go is enough to find them by the declared key. A table without any identity is
    /// taken: it can only grow.
    fn expect_declared_key(&self, shape: &RowShape) -> Result<()> {
        let identity: Vec<&str> =
            self.columns.iter().filter(|column| column.is_key).map(|column| column.name.as_str()).collect();
        let names = shape.key.iter().map(|key| shape.physical[*key].name.as_str());
        let lacking: Vec<&str> = names.filter(|name| !identity.contains(name)).collect();
        if identity.is_empty() || lacking.is_empty() {
            return Ok(());
        }
        Err(Error::validation(format!(
            "the server tells rows of table {} apart by ({}), which lacks columns of the primary key that {} declares: {}",
            self.label(),
            identity.join(", "),
            shape.table,
            lacking.join(", ")
        ))
        .hint(format!(
            "Declare PRIMARY KEY ({}) NOT ENFORCED, or run ALTER TABLE {} REPLICA IDENTITY FULL.",
            identity.join(", "),
            self.sql()
        )))
    }

    /// Returns what the user should know of a table's new description, `before` being the last one. At the first one, what is new is
    /// not in the table as it was when the job started.
    pub(super) fn notices(
        &self,
        before: Option<&RelationBinding>,
        at_start: &PgTable,
        shape: &RowShape,
    ) -> Vec<String> {
        let mut notices = Vec::new();
        let table = self.label();
        let was_there = |name: &str| match before {
            Some(before) => before.columns.iter().any(|known| known.name == name),
            None => at_start.columns.iter().any(|known| known.name == name),
        };
        for column in &self.columns {
            let name = &column.name;
            let known = before.map(|before| before.columns.iter().find(|known| known.name == *name));
            match (&column.target, known) {
                (None, _) if !was_there(name) => {
                    notices.push(format!(
                        "column '{name}' of table {table} is new and {} does not declare it: it is not read",
                        shape.table
                    ));
                }
                (Some(target), Some(Some(known))) if known.source != column.source => {
                    let declared = &shape.physical[target.column].data_type;
                    let (old, new) = column.source.told_from(&known.source);
                    notices.push(format!(
                        "column '{name}' of table {table} was {old} and is {new} now: it is read as {declared} while its values are such. Rows that were written before keep their old form, also where joins and groups match them with new ones: to read all of them anew, SET 'lakehead.job.resume' = 'resnapshot' and start the job again"
                    ));
                }
                (Some(target), None) => {
                    let declared = &shape.physical[target.column].data_type;
                    if let (TypeRoot::Decimal(_, scale), Some((_, has))) =
                        (&declared.root, column.source.precision_and_scale())
                        && has > i32::from(*scale)
                    {
                        notices.push(format!(
                            "column '{name}' of table {table} has {has} digits behind the point and is declared as {declared}: the last ones are rounded away"
                        ));
                    }
                }
                _ => {}
            }
        }
        notices
    }

    /// Returns schema and name as messages show them.
    pub(super) fn label(&self) -> String {
        format!("{}.{}", self.schema, self.table)
    }

    /// Returns schema and name as SQL takes them.
    pub(super) fn sql(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.table))
    }

    /// Returns the position of a column.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// Returns whether two versions of a row have different keys. A value that was left out has not changed.
    #[inline]
    pub(super) fn changes_key(&self, old: &Tuple<'_>, new: &Tuple<'_>) -> bool {
        let columns = self.columns[..self.key_span].iter();
        columns.zip(old.values().zip(new.values())).any(|(column, (old, new))| {
            column.is_key && new != TupleValue::Unchanged && old != TupleValue::Unchanged && old != new
        })
    }

    /// Returns the columns by which a row is found again, each with how it is compared with a text.
    ///
    /// # Errors
    /// The type of one is not known.
    pub(super) fn key_columns(&self) -> Result<Vec<(&str, &Comparison)>> {
        let keys = self.columns.iter().filter(|column| column.is_key);
        keys.map(|column| match &column.comparison {
            Some(comparison) => Ok((column.name.as_str(), comparison)),
            None => Err(Error::unsupported(format!(
                "rows of table {} cannot be read again by column '{}', whose type is not known",
                self.label(),
                column.name
            ))),
        })
        .collect()
    }

    /// Returns the texts of the key of a row, in the order of `key_columns`.
    ///
    /// # Errors
    /// The table has no key, or the stream left it out.
    pub(super) fn key_texts(&self, row: &Tuple<'_>, before: Option<OldTuple<'_>>) -> Result<Vec<String>> {
        let mut key = Vec::new();
        for (position, column) in self.columns.iter().enumerate().filter(|(_, column)| column.is_key) {
            let known = match row.value(position) {
                Some(TupleValue::Unchanged) => match before {
                    Some(OldTuple::Key(before) | OldTuple::Row(before)) => before.value(position),
                    None => None,
                },
                value => value,
            };
            let Some(TupleValue::Text(text)) = known else { return Err(self.no_key(&column.name)) };
            key.push(String::from_utf8(text.to_vec()).map_err(|_| self.key_not_utf8(&column.name))?);
        }
        if key.is_empty() { Err(self.no_key("")) } else { Ok(key) }
    }

    #[cold]
    fn no_key(&self, column: &str) -> Error {
        let table = self.label();
        let why = match column {
            "" => "it has no key".to_owned(),
            _ => format!("its key column '{column}' was not sent"),
        };
        Error::data(format!(
            "a row of table {table} was updated without a large value that did not change, and cannot be read again: {why}"
        ))
        .hint(format!("Run ALTER TABLE {} REPLICA IDENTITY FULL.", self.sql()))
    }

    /// The error of a row that is found more than once.
    #[cold]
    pub(super) fn not_unique(&self) -> Error {
        let key = self.columns.iter().filter(|column| column.is_key).map(|column| column.name.as_str());
        Error::data(format!(
            "a row of table {} was updated without a large value that did not change, and cannot be read again: ({}) is no key of the table any more",
            self.label(),
            key.collect::<Vec<_>>().join(", ")
        ))
        .hint(WAYS_ON)
    }

    #[cold]
    fn key_not_utf8(&self, column: &str) -> Error {
        Error::data(format!(
            "a row of table {} was updated without a large value that did not change, and cannot be read again: the text of its key column '{column}' is not UTF-8",
            self.label()
        ))
        .hint(not_utf8_hint(&self.label(), column))
    }

    /// The error of a row that lacks values in a log, where it cannot be put right later.
    #[cold]
    pub(super) fn lacks_values(&self) -> Error {
        Error::data(format!(
            "a row of table {} was updated without a large value that did not change, which the server did not send",
            self.label()
        ))
        .hint(format!(
            "Run ALTER TABLE {} REPLICA IDENTITY FULL: with 'scan.read-changelog-as-append-only.enabled' every row has to be whole at once.",
            self.sql()
        ))
    }

    /// The error of a row that has not the columns that were described.
    #[cold]
    pub(super) fn mismatch(&self, count: usize) -> Error {
        Error::data(format!(
            "a row of table {} has {count} columns, of which {} were described",
            self.label(),
            self.columns.len()
        ))
        .hint("The server speaks a protocol that is not known, or the connection has damaged it.")
    }

    /// The error about a value that cannot be read.
    #[cold]
    pub(super) fn value_error(
        &self,
        position: usize,
        value: TupleValue<'_>,
        fault: Fault,
        shape: &RowShape,
    ) -> Error {
        let column = &self.columns[position];
        let Some(target) = &column.target else {
            return Error::internal("a column is wrong that nobody reads");
        };
        let shown = match value {
            TupleValue::Text(text) => text.to_vec(),
            TupleValue::Binary(bytes) => target.reader.shown(bytes, true),
            TupleValue::Null | TupleValue::Unchanged => Vec::new(),
        };
        fault.to_error(&self.label(), &shape.physical[target.column], &column.source.name, &shown)
    }
}
