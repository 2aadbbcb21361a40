//! The tables of the truth test: every kind of key and identity that is read in a way of its own, and what is compared of them.

use crate::postgres::pipeline::Pipeline;
use crate::support::content::TableContent;

/// A table, and its copy in the lake.
pub(super) struct MirroredTable {
    pub(super) name: &'static str,
    /// How Postgres makes it, before its first rows.
    pub(super) create: &'static str,
    /// How its first rows come.
    pub(super) fill: &'static str,
    /// The columns as Flink has them.
    columns: &'static str,
    /// What is compared: the columns, and how Postgres writes them as we do.
    compared: &'static [(&'static str, &'static str)],
    /// `changelog-mode`.
    mode: &'static str,
    /// Rows of a chunk of the snapshot.
    chunk: &'static str,
}

/// How Postgres writes a timestamp as we do.
const CHANGED: (&str, &str) = ("changed", "to_char(changed, 'YYYY-MM-DD HH24:MI:SS.US')");

/// Values that columns of some tables are filled with, from `i`.
macro_rules! values {
    () => {
        "(random() * 1000)::int, CASE WHEN random() < 0.05 THEN NULL ELSE (random() * 1e9 - 1e6)::numeric(12, 2) END,
         CASE WHEN random() < 0.1 THEN NULL ELSE repeat('näme ' || i || E' \\\\ \\'\" ', 1 + (random() * 3)::int) END,
         random() < 0.5, timestamp '2024-01-01' + random() * interval '365 days'"
    };
}

/// The values of a new or changed row as an expression of SQL in which `i` is a number.
pub(super) const VALUES: &str = values!();

/// A random text of 20 kB.
pub(super) const BODY: &str =
    "(SELECT string_agg(md5(random()::text || i || part), '') FROM generate_series(1, 625) part)";

/// All tables.
pub(super) const TABLES: &[MirroredTable] = &[
    // (a) Chunks by key, each with its own snapshot; updates say the whole old row.
    MirroredTable {
        name: "accounts",
        create: "CREATE TABLE accounts (id bigint PRIMARY KEY, n int, amount numeric(12, 2), name text, paid boolean, changed timestamp);
                 ALTER TABLE accounts REPLICA IDENTITY FULL",
        fill: concat!("INSERT INTO accounts SELECT i * 3, ", values!(), " FROM generate_series(1, 20000) i"),
        columns: "id BIGINT, n INT, amount DECIMAL(12, 2), name STRING, paid BOOLEAN, changed TIMESTAMP(6), PRIMARY KEY (id) NOT ENFORCED",
        compared: &[("id", "id"), ("n", "n"), ("amount", "amount"), ("name", "name"), ("paid", "upper(paid::text)"), CHANGED],
        mode: "all",
        chunk: "1000",
    },
    // (b) Updates say neither the old row nor a large value that they leave alone.
    MirroredTable {
        name: "documents",
        create: "CREATE TABLE documents (id bigint PRIMARY KEY, n int, body text);
                 ALTER TABLE documents ALTER body SET STORAGE EXTERNAL",
        fill: "INSERT INTO documents SELECT i, 0, (SELECT string_agg(md5(random()::text || i || part), '') FROM generate_series(1, 625) part)
               FROM generate_series(1, 300) i",
        columns: "id BIGINT, n INT, body STRING, PRIMARY KEY (id) NOT ENFORCED",
        compared: &[("id", "id"), ("n", "n"), ("body", "body")],
        mode: "upsert",
        chunk: "40",
    },
    // (c) Keys whose order is the database's own, which is not that of their bytes.
    MirroredTable {
        name: "words",
        create: "CREATE TABLE words (word text {collation} PRIMARY KEY, n int, changed timestamp);
                 ALTER TABLE words REPLICA IDENTITY FULL",
        fill: "INSERT INTO words SELECT word || i, i, timestamp '2024-01-01' + random() * interval '365 days'
               FROM unnest(ARRAY['a', 'B', 'c', 'É', 'e', 'ß', 'ss', 'Z', 'Å', 'z', '-', ' x']) word, generate_series(1, 400) i",
        columns: "word STRING, n INT, changed TIMESTAMP(6), PRIMARY KEY (word) NOT ENFORCED",
        compared: &[("word", "word"), ("n", "n"), CHANGED],
        mode: "all",
        chunk: "500",
    },
    // (d) A key of two columns.
    MirroredTable {
        name: "lines",
        create: "CREATE TABLE lines (order_id int, line_no int, n int, amount numeric(12, 2), name text, paid boolean, changed timestamp,
                 PRIMARY KEY (order_id, line_no))",
        fill: concat!("INSERT INTO lines SELECT i / 5, i % 5, ", values!(), " FROM generate_series(1, 10000) i"),
        columns: "order_id INT, line_no INT, n INT, amount DECIMAL(12, 2), name STRING, paid BOOLEAN, changed TIMESTAMP(6),
                  PRIMARY KEY (order_id, line_no) NOT ENFORCED",
        compared: &[("order_id", "order_id"), ("line_no", "line_no"), ("n", "n"), ("amount", "amount"), ("name", "name"),
                    ("paid", "upper(paid::text)"), CHANGED],
        mode: "upsert",
        chunk: "1000",
    },
    // (e) No key, and rows that are equal: what is read twice stays twice.
    MirroredTable {
        name: "events",
        create: "CREATE TABLE events (kind int, note text); ALTER TABLE events REPLICA IDENTITY FULL",
        fill: "INSERT INTO events SELECT i % 500, 'note ' || i % 50 FROM generate_series(1, 10000) i",
        columns: "kind INT, note STRING",
        compared: &[("kind", "kind"), ("note", "note")],
        mode: "all",
        chunk: "1000",
    },
];

impl MirroredTable {
    /// Returns the statements that declare the table and its copy.
    pub(super) fn declare(&self, pipeline: &Pipeline) -> String {
        let MirroredTable { name, columns, .. } = self;
        let options = [
            ("changelog-mode", self.mode),
            ("scan.incremental.snapshot.enabled", "true"),
            ("scan.incremental.snapshot.chunk.size", self.chunk),
            // As a user has it.
            ("scan.lsn-commit.checkpoints-num-delay", "3"),
            // A server that is starting again may refuse a job that is, too.
            ("connect.max-retries", "30"),
        ];
        format!(
            "{}CREATE TABLE IF NOT EXISTS lake.db.{name} ({columns});\n",
            pipeline.source(name, columns, &options)
        )
    }

    /// Returns what Postgres holds.
    pub(super) fn source_content(&self, pipeline: &Pipeline) -> TableContent {
        let expressions: Vec<&str> = self.compared.iter().map(|(_, expression)| *expression).collect();
        let query = format!("SELECT {} FROM {}", expressions.join(", "), self.name);
        TableContent::new(&self.names(), pipeline.postgres.rows(&query))
    }

    /// Returns what the lake holds.
    pub(super) fn lake_content(&self, pipeline: &Pipeline) -> Result<TableContent, String> {
        pipeline.lake_content(self.name, &self.names())
    }

    fn names(&self) -> Vec<&'static str> {
        self.compared.iter().map(|(name, _)| *name).collect()
    }
}
