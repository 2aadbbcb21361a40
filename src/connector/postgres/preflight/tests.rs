//! The preflight against a real server: each thing that is missing is named with what puts it right, and that does.

use super::*;
use crate::connector::postgres::options::{StartupMode, Unrepresentable};
use crate::connector::postgres::publication::prepare_publication;
use crate::connector::postgres::settings::{Autocreate, TableSelection};
use crate::connector::postgres::tables::{GeneratedColumns, load_tables};
use crate::connector::postgres::testing::TestDatabase;
use crate::schema::{Column, TypeRoot};

const PUBLICATION: &str = "Pub \"1\"";

/// What a test wants of the server.
struct Job {
    server: PgServer,
    client: Client,
    stream: StreamSettings,
    selection: TableSelection,
    shape: RowShape,
    key: Vec<String>,
    truncate: TruncatePolicy,
    followed: Vec<u32>,
}

impl Job {
    /// A job of the superuser that reads `table` with the columns `id` and `n` in the mode `upsert`.
    async fn new(database: &TestDatabase, table: &str) -> Job {
        Job::of(&database.server, table).await
    }

    async fn of(server: &PgServer, table: &str) -> Job {
        let column = |name: &str| Column::physical(name, TypeRoot::Int.nullable());
        Job {
            server: server.clone(),
            client: server.connect().await.unwrap(),
            stream: StreamSettings {
                slot: None,
                publication: PUBLICATION.to_owned(),
                autocreate: Autocreate::Filtered,
                startup: StartupMode::Initial,
                checkpoints_delay: 3,
                drops_slot_on_stop: false,
                failover: false,
            },
            selection: TableSelection::new(".*".to_owned(), table.to_owned(), false).unwrap(),
            shape: RowShape {
                table: "default_catalog.default_database.t".to_owned(),
                physical: vec![column("id"), column("n")],
                key: vec![0],
                metadata: Vec::new(),
                changes: Changes::Upsert,
                wants_update_before: false,
                unrepresentable: Unrepresentable::Fail,
            },
            key: vec!["id".to_owned()],
            truncate: TruncatePolicy::Fail,
            followed: Vec::new(),
        }
    }

    fn all(mut self) -> Job {
        self.shape.changes = Changes::All;
        self
    }

    async fn tables(&self) -> Result<Vec<PgTable>> {
        let generated = GeneratedColumns::PublishedBy(&self.stream.publication);
        load_tables(&self.server, &self.client, &self.selection, generated).await
    }

    fn declared<'a>(&'a self, tables: &'a [PgTable]) -> DeclaredTable<'a> {
        DeclaredTable {
            shape: &self.shape,
            key: &self.key,
            truncate: self.truncate,
            tables,
            followed: &self.followed,
        }
    }

    async fn check_slot(&self, slot: SlotUse<'_>) -> Result<Preflight> {
        let tables = self.tables().await?;
        check(&self.server, &self.client, &self.stream, slot, &[self.declared(&tables)]).await
    }

    async fn check(&self) -> Result<Preflight> {
        self.check_slot(SlotUse::Temporary).await
    }

    /// Checks and does what is to be done then.
    async fn prepare(&self) {
        let preflight = self.check().await.unwrap();
        prepare_publication(&self.server, &self.client, &self.stream.publication, &preflight.publication)
            .await
            .unwrap();
        assert_eq!(self.check().await.unwrap().publication, PublicationStep::Ready);
    }

    /// Returns message and hint of what is wrong, without the server's name.
    async fn wrong(&self) -> (String, String) {
        told(&self.server, self.check().await)
    }
}

fn told(server: &PgServer, checked: Result<Preflight>) -> (String, String) {
    let error = checked.expect_err("it is refused");
    let prefix = format!("Postgres '{}': ", server.name());
    let message = error.message();
    (
        message.strip_prefix(&prefix).unwrap_or(message).to_owned(),
        error.hint_text().unwrap_or_default().to_owned(),
    )
}

/// Returns the statement that a hint ends with.
fn statement(hint: &str) -> &str {
    hint.split_once(": ").map(|(_, statement)| statement).unwrap_or_default()
}

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, n int)";

#[tokio::test]
async fn the_publication_is_made_extended_and_found() {
    TestDatabase::with(async |database| {
        database.run("CREATE SCHEMA \"S.1\"; CREATE TABLE \"S.1\".\"T\"\"x\" (id int PRIMARY KEY, n int)").await;
        database.run(TABLE).await;
        let job = Job::new(database, "t").await;
        job.prepare().await;
        let published = format!(
            "SELECT string_agg(schemaname || '/' || tablename, ',' ORDER BY tablename) FROM pg_publication_tables WHERE pubname = '{PUBLICATION}'"
        );
        assert_eq!(database.value(&published).await, "public/t");
        // Nothing is touched by a check.
        let more = Job::new(database, "t|T\"x").await;
        more.check().await.unwrap();
        assert_eq!(database.value(&published).await, "public/t");
        more.prepare().await;
        assert_eq!(database.value(&published).await, "S.1/T\"x,public/t");
        job.prepare().await;
        assert_eq!(database.value(&published).await, "S.1/T\"x,public/t");
        let all = Job {
            stream: StreamSettings {
                publication: "all".to_owned(),
                autocreate: Autocreate::AllTables,
                ..job.stream.clone()
            },
            ..Job::new(database, "t").await
        };
        all.prepare().await;
        assert_eq!(database.value("SELECT puballtables FROM pg_publication WHERE pubname = 'all'").await, "true");
    })
    .await;
}

#[tokio::test]
async fn a_publication_of_somebody_else_is_never_changed() {
    TestDatabase::with(async |database| {
        database.run(TABLE).await;
        database.run("CREATE TABLE other (id int PRIMARY KEY, n int); CREATE PUBLICATION \"Pub \"\"1\"\"\" FOR TABLE other").await;
        let job = Job::new(database, "t").await;
        let (message, hint) = job.wrong().await;
        assert_eq!(message, "publication Pub \"1\", which is not ours to change, does not have public.t");
        assert_eq!(
            hint,
            "Run as the owner of both: ALTER PUBLICATION \"Pub \"\"1\"\"\" ADD TABLE ONLY \"public\".\"t\";"
        );
        let tables = "SELECT count(*) FROM pg_publication_tables";
        assert_eq!(database.value(tables).await, "1");
        database.run(statement(&hint)).await;
        assert_eq!(job.check().await.unwrap().publication, PublicationStep::Ready);
    })
    .await;
}

#[tokio::test]
async fn a_publication_that_is_missing_is_told_where_it_may_not_be_made() {
    TestDatabase::with(async |database| {
        database.run(TABLE).await;
        let mut job = Job::new(database, "t").await;
        let create = "CREATE PUBLICATION \"Pub \"\"1\"\"\" FOR TABLE ONLY \"public\".\"t\";";
        job.stream.autocreate = Autocreate::Disabled;
        let (message, hint) = job.wrong().await;
        assert_eq!(
            message,
            "publication Pub \"1\" does not exist. Publication autocreation is disabled, please create one and restart the connector."
        );
        assert_eq!(hint, format!("Run as the tables' owner: {create}"));
        job.stream.autocreate = Autocreate::NoTables;
        assert_eq!(job.wrong().await, ("publication Pub \"1\" does not exist".to_owned(), hint.clone()));
        // Neither who may make none in the database, nor who does not own the table.
        let role = database.role("REPLICATION", "x").await;
        let user = &role.settings().user;
        database.run(&format!("GRANT SELECT ON t TO {user}")).await;
        let mut job = Job::of(&role, "t").await;
        assert_eq!(
            job.wrong().await,
            (
                format!("publication Pub \"1\" does not exist, and user '{user}' may make none in the database"),
                hint.clone()
            )
        );
        database.run(&format!("GRANT CREATE ON DATABASE {} TO {user}", database.name)).await;
        assert_eq!(
            job.wrong().await,
            (
                format!("publication Pub \"1\" does not exist, and user '{user}' may make none, since it does not own table public.t"),
                hint.clone()
            )
        );
        job.stream.autocreate = Autocreate::AllTables;
        let (message, hint) = job.wrong().await;
        assert!(message.ends_with(&format!("user '{user}', which is no superuser, may not make one of all tables")));
        assert_eq!(statement(&hint), "CREATE PUBLICATION \"Pub \"\"1\"\"\" FOR ALL TABLES;");
        database.run(create).await;
        job.check().await.unwrap();
        database.run(&format!("REVOKE ALL ON DATABASE {} FROM {user}", database.name)).await;
    })
    .await;
}

#[tokio::test]
async fn a_truncate_that_deletes_needs_one_table() {
    TestDatabase::with(async |database| {
        database
            .run("CREATE TABLE a1 (id int PRIMARY KEY, n int); CREATE TABLE a2 (id int PRIMARY KEY, n int)")
            .await;
        let mut job = Job::new(database, "a.").await;
        for policy in [TruncatePolicy::Fail, TruncatePolicy::Ignore] {
            job.truncate = policy;
            job.check().await.unwrap();
        }
        job.truncate = TruncatePolicy::Delete;
        let (message, hint) = job.wrong().await;
        assert!(message.starts_with("'lakehead.postgres.truncate' = 'delete' needs"), "{message}");
        assert!(
            message.ends_with("'default_catalog.default_database.t' reads 2: public.a1, public.a2"),
            "{message}"
        );
        assert!(hint.contains("UNION ALL"), "{hint}");
        // Where nothing but the tables is read, nothing is truncated.
        job.check_slot(SlotUse::None).await.unwrap();
        database.run("DROP TABLE a2").await;
        job.check().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_publication_that_leaves_something_out_is_refused() {
    TestDatabase::with(async |database| {
        database.run("CREATE TABLE t (id int PRIMARY KEY, n int, m int)").await;
        let mut job = Job::new(database, "t").await;
        job.stream.publication = "p".to_owned();
        for (clause, message, fails_by_truncate_only) in [
            (
                "FOR TABLE t WITH (publish = 'insert, truncate')",
                "publication p leaves out update, delete",
                false,
            ),
            (
                "FOR TABLE t WITH (publish = 'insert, update, delete')",
                "publication p leaves out truncate",
                true,
            ),
            (
                "FOR TABLE t WHERE (id > 1)",
                "publication p has table public.t with the row filter (id > 1)",
                false,
            ),
            ("FOR TABLE t (id, m)", "publication p has table public.t without column n", false),
        ] {
            // Filters and lists came with version 15.
            if database.version().await < 150_000 && !clause.contains("publish") {
                continue;
            }
            database.run(&format!("CREATE PUBLICATION p {clause}")).await;
            let (told, hint) = job.wrong().await;
            assert_eq!(told, message);
            job.truncate = TruncatePolicy::Ignore;
            assert_eq!(job.check().await.is_ok(), fails_by_truncate_only, "{clause}");
            job.truncate = TruncatePolicy::Fail;
            let statements = statement(&hint).rsplit_once(';').unwrap().0;
            database.run(statements).await;
            assert_eq!(job.check().await.unwrap().publication, PublicationStep::Ready, "{statements}");
            database.run("DROP PUBLICATION p").await;
        }
        if database.version().await < 150_000 {
            return;
        }
        // A list that has all columns that are read leaves nothing out.
        database.run("CREATE PUBLICATION p FOR TABLE t (id, n)").await;
        job.check().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn partitions_come_under_the_name_that_is_read() {
    TestDatabase::with(async |database| {
        database
            .run(
                "CREATE TABLE t (id int PRIMARY KEY, n int) PARTITION BY RANGE (id);
                 CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (0) TO (10);
                 CREATE TABLE t_2 PARTITION OF t FOR VALUES FROM (10) TO (20) PARTITION BY LIST (id);
                 CREATE TABLE t_2_1 PARTITION OF t_2 FOR VALUES IN (10, 11);
                 CREATE PUBLICATION p FOR TABLE t",
            )
            .await;
        let mut job = Job::new(database, "t.*").await;
        job.stream.publication = "p".to_owned();
        let names = async |job: &Job| {
            let generated = GeneratedColumns::Selected;
            let tables = load_tables(&job.server, &job.client, &job.selection, generated).await.unwrap();
            tables.iter().map(|table| table.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&job).await, ["t_1", "t_2_1"]);
        job.check().await.unwrap();
        let mut whole = Job::new(database, "t.*").await;
        whole.stream.publication = "p".to_owned();
        whole.selection.includes_partitioned = true;
        assert_eq!(names(&whole).await, ["t"]);
        let (message, hint) = whole.wrong().await;
        assert_eq!(message, "publication p has changes of table public.t under the names of its partitions");
        assert_eq!(hint, "Run as its owner: ALTER PUBLICATION \"p\" SET (publish_via_partition_root = true);");
        database.run(statement(&hint)).await;
        whole.check().await.unwrap();
        let (message, hint) = job.wrong().await;
        assert_eq!(
            message,
            "publication p has changes of partition public.t_1 under the name of the table above it; publication p has changes of partition public.t_2_1 under the name of the table above it"
        );
        assert!(hint.starts_with("Read that table, with 'scan.include-partitioned-tables.enabled' = 'true'"), "{hint}");
        // Ours is made as it is needed, and the identities of the partitions count.
        whole.stream.publication = "ours".to_owned();
        whole.prepare().await;
        let (message, hint) = whole.all().wrong().await;
        assert_eq!(
            message,
            "'changelog-mode' = 'all' needs the earlier version of each row: table public.t_1 has REPLICA IDENTITY DEFAULT; table public.t_2_1 has REPLICA IDENTITY DEFAULT"
        );
        assert!(hint.contains("ALTER TABLE \"public\".\"t_2_1\" REPLICA IDENTITY FULL;"), "{hint}");
        // A partitioned table alone is none that is read.
        let job = Job::new(database, "t").await;
        let (message, hint) = job.wrong().await;
        assert_eq!(message, "no table matches '.*.t'");
        assert!(hint.contains("'scan.include-partitioned-tables.enabled' = 'true'"), "{hint}");
    })
    .await;
}

#[tokio::test]
async fn the_identity_must_fit_the_mode() {
    TestDatabase::with(async |database| {
        database.run(TABLE).await;
        let all = Job::new(database, "t").await.all();
        let (message, hint) = all.wrong().await;
        assert_eq!(
            message,
            "'changelog-mode' = 'all' needs the earlier version of each row: table public.t has REPLICA IDENTITY DEFAULT"
        );
        assert_eq!(
            hint,
            "Run as the owner: ALTER TABLE \"public\".\"t\" REPLICA IDENTITY FULL; Or, where the primary key is enough, declare the table with 'changelog-mode' = 'upsert'."
        );
        let mut upsert = Job::new(database, "t").await;
        upsert.check().await.unwrap();
        upsert.key = vec!["n".to_owned()];
        let (message, hint) = upsert.wrong().await;
        assert_eq!(
            message,
            "updates and deletes would not say which row they mean: table public.t has REPLICA IDENTITY DEFAULT, which lacks column 'n' of the declared primary key"
        );
        database.run("CREATE UNIQUE INDEX i ON t (n); ALTER TABLE t ALTER n SET NOT NULL; ALTER TABLE t REPLICA IDENTITY USING INDEX i").await;
        let notes = upsert.check().await.unwrap().notes;
        assert_eq!(
            notes,
            ["The declared primary key of 'default_catalog.default_database.t' is not that of table public.t: rows with the same (n) are taken for one"]
        );
        database.run("ALTER TABLE t REPLICA IDENTITY NOTHING").await;
        let (message, _) = upsert.wrong().await;
        assert!(message.ends_with("table public.t has REPLICA IDENTITY NOTHING and no key that it could use"));
        database.run(statement(&hint)).await;
        upsert.check().await.unwrap();
        assert!(all.check().await.is_ok());
        // Rows that are appended need what the mode behind them says; without a key, the server would refuse updates.
        database.run("CREATE TABLE k (id int, n int)").await;
        let mut appended = Job::new(database, "k").await;
        appended.key = Vec::new();
        appended.shape.changes = Changes::AppendOnly;
        let (message, _) = appended.wrong().await;
        assert!(message.contains("REPLICA IDENTITY DEFAULT and no key"), "{message}");
        appended.shape.wants_update_before = true;
        let (message, hint) = appended.wrong().await;
        assert!(message.contains("'changelog-mode' = 'all'"), "{message}");
        assert!(!hint.contains("upsert"), "{hint}");
    })
    .await;
}

#[tokio::test]
async fn the_least_rights_are_enough_and_each_that_is_missing_is_named() {
    TestDatabase::with(async |database| {
        database
            .run("CREATE SCHEMA \"Shop\"; CREATE TABLE \"Shop\".t (id int PRIMARY KEY, n int); CREATE PUBLICATION p FOR TABLE \"Shop\".t")
            .await;
        let role = database.role("", "x").await;
        let user = &role.settings().user;
        let mut job = Job::of(&role, "t").await;
        job.stream.publication = "p".to_owned();
        let (message, hint) = job.wrong().await;
        assert_eq!(
            message,
            format!("user '{user}' lacks the attribute REPLICATION; USAGE of schema Shop; SELECT of table Shop.t")
        );
        let all = [
            format!("ALTER ROLE \"{user}\" REPLICATION;"),
            format!("GRANT USAGE ON SCHEMA \"Shop\" TO \"{user}\";"),
            format!("GRANT SELECT ON TABLE \"Shop\".\"t\" TO \"{user}\";"),
        ];
        assert_eq!(hint, format!("Run as a superuser or as the owner: {}", all.join(" ")));
        database.run(statement(&hint)).await;
        job.check().await.unwrap();
        for (taken, given) in [
            (format!("ALTER ROLE {user} NOREPLICATION"), &all[0]),
            (format!("REVOKE USAGE ON SCHEMA \"Shop\" FROM {user}"), &all[1]),
            (format!("REVOKE SELECT ON \"Shop\".t FROM {user}"), &all[2]),
        ] {
            database.run(&taken).await;
            let (_, hint) = job.wrong().await;
            assert_eq!(statement(&hint), given);
            database.run(given).await;
            job.check().await.unwrap();
        }
        // Who only reads the tables needs no REPLICATION.
        database.run(&format!("ALTER ROLE {user} NOREPLICATION")).await;
        job.check_slot(SlotUse::None).await.unwrap();
        // Policies would hide rows without a word.
        database.run("ALTER TABLE \"Shop\".t ENABLE ROW LEVEL SECURITY").await;
        let (message, hint) = told(&role, job.check_slot(SlotUse::None).await);
        assert!(message.ends_with("the attribute BYPASSRLS, without which policies hide rows of table Shop.t"));
        database.run(statement(&hint)).await;
        job.check_slot(SlotUse::None).await.unwrap();
        database.run(&format!("DROP OWNED BY {user}")).await;
    })
    .await;
}

#[tokio::test]
async fn everything_that_is_wrong_is_told_at_once() {
    TestDatabase::with(async |database| {
        database.run(&format!("{TABLE}; CREATE UNLOGGED TABLE u (id int PRIMARY KEY, m int)")).await;
        let role = database.role("", "x").await;
        let user = &role.settings().user;
        let job = Job::of(&role, "[tu]").await.all();
        let (message, hint) = job.wrong().await;
        assert_eq!(
            message,
            [
                &format!("Postgres '{}' is not ready for the job:", role.name()),
                &format!("  - user '{user}' lacks the attribute REPLICATION; SELECT of table public.t; SELECT of table public.u"),
                "  - table public.u has no column 'n', which 'default_catalog.default_database.t' declares",
                "  - changes are not in the log: table public.u is unlogged",
                "  - 'changelog-mode' = 'all' needs the earlier version of each row: table public.t has REPLICA IDENTITY DEFAULT; table public.u has REPLICA IDENTITY DEFAULT",
                &format!("  - publication Pub \"1\" does not exist, and user '{user}' may make none in the database"),
            ]
            .join("\n")
        );
        assert_eq!(hint.lines().count(), 5);
        assert!(hint.contains("ALTER TABLE \"public\".\"u\" SET LOGGED;"), "{hint}");
    })
    .await;
}

#[tokio::test]
async fn columns_are_found_by_their_names_and_generated_ones_are_told() {
    TestDatabase::with(async |database| {
        database
            .run("CREATE TABLE t (\"ID\" int PRIMARY KEY, n int, g int GENERATED ALWAYS AS (n * 2) STORED)")
            .await;
        let mut job = Job::new(database, "t").await;
        job.key = vec!["ID".to_owned()];
        let (message, hint) = job.wrong().await;
        assert_eq!(
            message,
            "table public.t has no column 'id', which 'default_catalog.default_database.t' declares"
        );
        assert!(hint.starts_with("Did you mean 'ID'?"), "{hint}");
        job.shape.physical = vec![Column::physical("g", TypeRoot::Int.nullable())];
        let (_, hint) = job.wrong().await;
        let told = match database.version().await >= 180_000 {
            true => "The column is generated, and publication Pub \"1\" leaves those out. Run as its owner: ALTER PUBLICATION",
            false => "The column is generated, and changes do not have it.",
        };
        assert!(hint.starts_with(told), "{hint}");
        let selected =
            load_tables(&job.server, &job.client, &job.selection, GeneratedColumns::Selected).await.unwrap();
        let names =
            |table: &PgTable| table.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&selected[0]), ["ID", "n", "g"]);
        assert_eq!(selected[0].key, [0]);
        let generated = GeneratedColumns::PublishedBy(PUBLICATION);
        let published = load_tables(&job.server, &job.client, &job.selection, generated).await.unwrap();
        assert_eq!(names(&published[0]), ["ID", "n"]);
        // Nothing matches, and what may have been meant is named.
        let job = Job {
            selection: TableSelection::new("public".to_owned(), "T".to_owned(), false).unwrap(),
            ..job
        };
        let (message, hint) = job.wrong().await;
        assert_eq!(message, "no table matches 'public.T'");
        assert!(hint.starts_with("Did you mean public.t?"), "{hint}");
    })
    .await;
}

#[tokio::test]
async fn changes_that_a_job_has_followed_are_never_taken_for_new_ones() {
    TestDatabase::with(async |database| {
        database.run(&format!("{TABLE}; CREATE TABLE u (id int PRIMARY KEY, n int)")).await;
        let mut job = Job::new(database, "[tu]").await;
        job.stream.publication = "p".to_owned();
        job.prepare().await;
        let tables = job.tables().await.unwrap();
        let still = async || {
            check_still_published(&job.server, &job.client, "p", &[job.declared(&tables)]).await
        };
        still().await.unwrap();
        database.run("ALTER PUBLICATION p DROP TABLE t").await;
        let told_by = |error: Error| (error.kind(), error.message().to_owned(), error.hint_text().unwrap().to_owned());
        let expected = (
            ErrorKind::Rejected,
            format!("Postgres '{}': publication p does not have all tables any more: changes of public.t since the job's last checkpoint may be lost", job.server.name()),
            format!("Run as the tables' owner: ALTER PUBLICATION \"p\" ADD TABLE ONLY \"public\".\"t\"; {}", crate::connector::postgres::slot::WAYS_ON),
        );
        assert_eq!(told_by(still().await.unwrap_err()), expected);
        // A job that begins adds it; one that goes on must not, without a word.
        assert!(matches!(job.check().await.unwrap().publication, PublicationStep::Run(_)));
        let followed = tables.iter().map(|table| table.oid).collect();
        let goes_on = Job { followed, ..Job::new(database, "[tu]").await };
        let goes_on = Job { stream: job.stream.clone(), ..goes_on };
        assert_eq!(told_by(goes_on.check().await.unwrap_err()), expected);
        database.run("DROP PUBLICATION p").await;
        for error in [still().await.unwrap_err(), goes_on.check().await.unwrap_err()] {
            let (_, message, hint) = told_by(error);
            assert!(message.contains("publication p does not exist any more: changes of public.t, public.u"), "{message}");
            assert!(hint.contains("CREATE PUBLICATION \"p\" FOR TABLE ONLY \"public\".\"t\", ONLY \"public\".\"u\"; "), "{hint}");
        }
        job.prepare().await;
        still().await.unwrap();
        database.run("ALTER PUBLICATION p SET (publish = 'insert')").await;
        assert!(still().await.unwrap_err().message().ends_with("publication p leaves out update, delete, truncate"));
        // What is dropped has no changes.
        database.run("ALTER PUBLICATION p SET (publish = 'insert, update, delete, truncate'); DROP TABLE u").await;
        still().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn the_slot_is_looked_at_as_it_is_used() {
    TestDatabase::with(async |database| {
        database.run(TABLE).await;
        let job = Job::new(database, "t").await;
        job.prepare().await;
        let name = &database.name;
        assert!(job.check_slot(SlotUse::Permanent(name)).await.unwrap().slot.is_none());
        let (message, hint) = told(&job.server, job.check_slot(SlotUse::Existing(name)).await);
        assert!(message.starts_with(&format!("replication slot {name} does not exist")), "{message}");
        let (message, _) = told(&job.server, job.check_slot(SlotUse::Restored(name)).await);
        assert!(message.ends_with("changes since the job's last checkpoint are gone"), "{message}");
        let make = statement(&hint).split_once(';').unwrap().0;
        database.run(make).await;
        for slot in [SlotUse::Permanent(name), SlotUse::Existing(name), SlotUse::Restored(name)] {
            let found = job.check_slot(slot).await.unwrap().slot.unwrap();
            assert_eq!(found.name, *name);
        }
        // All that is wrong goes before what may pass by itself.
        database.run("ALTER TABLE t REPLICA IDENTITY NOTHING").await;
        let error = job.check_slot(SlotUse::Restored("no_such_slot")).await.unwrap_err();
        assert!(error.message().contains("is not ready for the job"), "{error}");
    })
    .await;
}
