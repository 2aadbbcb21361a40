//! The types of a database, by number: what the catalog knows of them. Numbers of built-in types never change; those of enums,
//! domains and extensions are another in every database.

use hashbrown::HashMap;
use tokio_postgres::Client;

use super::table::quoted;
use crate::error::{Error, Result};

/// The types that are known so far.
#[derive(Debug, Clone, Default)]
pub(super) struct PgTypes {
    types: HashMap<u32, PgType>,
}

/// A type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PgType {
    /// The schema that it is in.
    pub(super) schema: String,
    /// Its name: `int4`, `_int4` for an array of those.
    pub(super) name: String,
    /// What it is made of.
    pub(super) kind: TypeKind,
    /// Whether its cast to text is a function of its own, which may write something else than the type's output.
    pub(super) has_text_cast: bool,
}

/// What a type is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TypeKind {
    /// Nothing that could be looked into.
    Base,
    /// Labels, to which some may be added at any time.
    Enum,
    /// Fields: a row.
    Composite,
    /// A range, or several.
    Range,
    /// Another type with conditions.
    Domain {
        /// The number of that type, which may be a domain itself.
        base: u32,
        /// What that type is declared with; -1 if nothing.
        type_modifier: i32,
    },
    /// Values of one type, in any number of dimensions.
    Array {
        /// The number of that type.
        element: u32,
        /// What stands between two values in texts.
        delimiter: u8,
    },
}

/// Reads types. Arrays are those that some type names as its array: what else has elements writes them in its own way.
const TYPES: &str = "SELECT t.oid, n.nspname, t.typname, t.typtype, t.typbasetype, t.typtypmod, e.oid, e.typdelim, c.oid IS NOT NULL
  FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
  LEFT JOIN pg_catalog.pg_type e ON e.typarray = t.oid
  LEFT JOIN pg_catalog.pg_cast c ON c.castsource = t.oid AND c.casttarget = 'pg_catalog.text'::pg_catalog.regtype";

/// Leaves out the rows of tables, of which there may be many thousands, and arrays of them.
const ALL_BUT_ROWS: &str = "WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_class r
  WHERE r.oid IN (t.typrelid, e.typrelid) AND r.relkind <> 'c')";

impl PgTypes {
    /// Reads all types of a database, but for those of its tables' rows.
    pub(super) async fn load(client: &Client) -> Result<PgTypes, tokio_postgres::Error> {
        let mut types = PgTypes::default();
        types.read(client, &format!("{TYPES} {ALL_BUT_ROWS}"), &[]).await?;
        Ok(types)
    }

    /// Reads types that have been made since, or have not been read, with all that they are made of.
    pub(super) async fn add(&mut self, client: &Client, oids: &[u32]) -> Result<(), tokio_postgres::Error> {
        let mut missing = oids.to_vec();
        while !missing.is_empty() {
            self.read(client, &format!("{TYPES} WHERE t.oid = ANY($1)"), &[&missing]).await?;
            let parts = missing.iter().filter_map(|oid| self.get(*oid)?.kind.part());
            missing = parts.filter(|part| self.get(*part).is_none()).collect();
        }
        Ok(())
    }

    async fn read(
        &mut self,
        client: &Client,
        sql: &str,
        parameters: &[&(dyn tokio_postgres::types::ToSql + Sync)],
    ) -> Result<(), tokio_postgres::Error> {
        for row in client.query(sql, parameters).await? {
            let kind = match row.try_get::<_, i8>(3)?.cast_unsigned() {
                b'e' => TypeKind::Enum,
                b'c' => TypeKind::Composite,
                b'r' | b'm' => TypeKind::Range,
                b'd' => TypeKind::Domain { base: row.try_get(4)?, type_modifier: row.try_get(5)? },
                _ => match row.try_get::<_, Option<u32>>(6)? {
                    Some(element) => {
                        TypeKind::Array { element, delimiter: row.try_get::<_, i8>(7)?.cast_unsigned() }
                    }
                    None => TypeKind::Base,
                },
            };
            let (schema, name, has_text_cast) = (row.try_get(1)?, row.try_get(2)?, row.try_get(8)?);
            self.types.insert(row.try_get(0)?, PgType { schema, name, kind, has_text_cast });
        }
        Ok(())
    }

    /// Returns a type; None if it is not known.
    pub(super) fn get(&self, oid: u32) -> Option<&PgType> {
        self.types.get(&oid)
    }

    /// Returns those of the given types that are not known, for `add`.
    pub(super) fn unknown(&self, oids: impl IntoIterator<Item = u32>) -> Vec<u32> {
        oids.into_iter().filter(|oid| self.get(*oid).is_none()).collect()
    }

    /// Returns what lies below domains: number and modifier of the type that values have.
    pub(super) fn below_domains(&self, oid: u32, type_modifier: i32) -> (u32, i32) {
        let mut found = (oid, type_modifier);
        while let Some(TypeKind::Domain { base, type_modifier }) = self.get(found.0).map(|of| of.kind) {
            found = (base, type_modifier);
        }
        found
    }

    /// Returns a type's name for messages.
    pub(super) fn name(&self, oid: u32) -> String {
        match self.get(oid) {
            Some(PgType { kind: TypeKind::Array { element, .. }, .. }) => {
                format!("{}[]", self.name(*element))
            }
            Some(known) => known.name.clone(),
            None => format!("number {oid}"),
        }
    }

    /// Returns a type's name as SQL takes it.
    ///
    /// # Errors
    /// The type is not known.
    pub(super) fn sql(&self, oid: u32) -> Result<String> {
        let known = self.get(oid);
        let named = known.map(|known| format!("{}.{}", quoted(&known.schema), quoted(&known.name)));
        named.ok_or_else(|| Error::internal(format!("the type of number {oid} has not been read")))
    }

    #[cfg(test)]
    pub(super) fn insert(&mut self, oid: u32, found: PgType) {
        self.types.insert(oid, found);
    }
}

impl TypeKind {
    /// Returns the type that it is made of, if there is one.
    fn part(self) -> Option<u32> {
        match self {
            TypeKind::Domain { base, .. } => Some(base),
            TypeKind::Array { element, .. } => Some(element),
            _ => None,
        }
    }
}
