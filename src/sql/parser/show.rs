//! SHOW.

use super::super::{LikePattern, ObjectName, Show, ShowWhat, Statement};
use super::cursor::Parser;
use crate::error::Result;

/// The words that may follow SHOW; Flink puts the error on SHOW itself if none does.
const WORDS: [&str; 19] = [
    "CATALOGS",
    "CURRENT",
    "DATABASES",
    "TABLES",
    "VIEWS",
    "MATERIALIZED",
    "FUNCTIONS",
    "USER",
    "PROCEDURES",
    "MODELS",
    "CONNECTIONS",
    "MODULES",
    "FULL",
    "JARS",
    "JOBS",
    "COLUMNS",
    "PARTITIONS",
    "CREATE",
    "MODEL",
];

impl Parser<'_> {
    /// Takes `SHOW what [FROM …] [[NOT] LIKE 'pattern']`.
    pub(super) fn show(&mut self) -> Result<Statement> {
        let show = self.index();
        self.expect("SHOW")?;
        let Some(word) = self.accept_any(&WORDS) else {
            return Err(self.unexpected_at(show).hint(format!("SHOW knows {}.", WORDS[..18].join(", "))));
        };
        let what = match WORDS[word] {
            "CATALOGS" => ShowWhat::Catalogs,
            "CURRENT" => match self.expect_any(&["CATALOG", "DATABASE"])? {
                0 => ShowWhat::CurrentCatalog,
                _ => ShowWhat::CurrentDatabase,
            },
            "DATABASES" => {
                let catalog =
                    if self.accept_any(&["FROM", "IN"]).is_some() { Some(self.name()?) } else { None };
                ShowWhat::Databases { catalog }
            }
            "TABLES" => ShowWhat::Tables { database: self.containing_database()? },
            "VIEWS" => ShowWhat::Views { database: self.containing_database()? },
            "MATERIALIZED" => {
                self.expect("TABLES")?;
                ShowWhat::MaterializedTables { database: self.containing_database()? }
            }
            "FUNCTIONS" => ShowWhat::Functions { user_only: false, database: self.containing_database()? },
            "USER" => {
                self.expect("FUNCTIONS")?;
                ShowWhat::Functions { user_only: true, database: self.containing_database()? }
            }
            "PROCEDURES" => ShowWhat::Procedures { database: self.containing_database()? },
            "MODELS" => ShowWhat::Models { database: self.containing_database()? },
            "CONNECTIONS" => ShowWhat::Connections { database: self.containing_database()? },
            "MODULES" => ShowWhat::Modules { full: false },
            "FULL" => {
                self.expect("MODULES")?;
                ShowWhat::Modules { full: true }
            }
            "JARS" => ShowWhat::Jars,
            "JOBS" => ShowWhat::Jobs,
            "COLUMNS" => {
                self.expect_any(&["FROM", "IN"])?;
                ShowWhat::Columns(self.object_name()?)
            }
            "PARTITIONS" => {
                let table = self.object_name()?;
                let partition = if self.accept("PARTITION") { self.partition_spec()? } else { Vec::new() };
                ShowWhat::Partitions { table, partition }
            }
            "CREATE" => self.show_create()?,
            _ => return Err(self.unexpected_at(show)),
        };
        let like = self.like_pattern(&what)?;
        Ok(Statement::Show(Show { what, like }))
    }

    fn show_create(&mut self) -> Result<ShowWhat> {
        if self.accept_all(&["OR", "ALTER"]) {
            self.expect_all(&["MATERIALIZED", "TABLE"])?;
            return Ok(ShowWhat::CreateMaterializedTable(self.object_name()?));
        }
        Ok(match self.expect_any(&["TABLE", "VIEW", "CATALOG", "MATERIALIZED", "MODEL"])? {
            0 => ShowWhat::CreateTable(self.object_name()?),
            1 => ShowWhat::CreateView(self.object_name()?),
            2 => ShowWhat::CreateCatalog(self.name()?),
            3 => {
                self.expect("TABLE")?;
                ShowWhat::CreateMaterializedTable(self.object_name()?)
            }
            _ => ShowWhat::CreateModel(self.object_name()?),
        })
    }

    /// Takes `{FROM | IN} [catalog.]database` if it is next.
    fn containing_database(&mut self) -> Result<Option<ObjectName>> {
        if self.accept_any(&["FROM", "IN"]).is_some() { Ok(Some(self.object_name()?)) } else { Ok(None) }
    }

    /// Takes `[NOT] {LIKE | ILIKE} 'pattern'` where a list is shown.
    fn like_pattern(&mut self, what: &ShowWhat) -> Result<Option<LikePattern>> {
        let is_list = matches!(
            what,
            ShowWhat::Catalogs
                | ShowWhat::Databases { .. }
                | ShowWhat::Tables { .. }
                | ShowWhat::Views { .. }
                | ShowWhat::MaterializedTables { .. }
                | ShowWhat::Functions { .. }
                | ShowWhat::Procedures { .. }
                | ShowWhat::Models { .. }
                | ShowWhat::Connections { .. }
                | ShowWhat::Columns(_)
        );
        if !is_list {
            return Ok(None);
        }
        let negated = self.accept("NOT");
        let Some(which) = self.accept_any(&["LIKE", "ILIKE"]) else {
            return if negated { Err(self.unexpected()) } else { Ok(None) };
        };
        Ok(Some(LikePattern { negated, ignore_case: which == 1, pattern: self.text()?.value }))
    }
}
