//! What a reader does before it reads.

use super::read_plan::DeclaredRead;
use super::*;
use crate::connector::ReaderContext;
use crate::connector::postgres::options::{StartupMode, TruncatePolicy, Unrepresentable};
use crate::connector::postgres::row_shape::Changes;
use crate::connector::postgres::settings::{
    Autocreate, ChunkSettings, StreamSettings, TableSelection, TableSettings,
};
use crate::connector::postgres::testing::{TestDatabase, shape};
use crate::schema::TypeRoot::Int;

/// Plans the reading of the table `t` of a database.
fn plan(database: &TestDatabase) -> ReadPlan {
    ReadPlan {
        server: database.server.clone(),
        stream: StreamSettings {
            slot: None,
            publication: "published".to_owned(),
            autocreate: Autocreate::Filtered,
            startup: StartupMode::Initial,
            checkpoints_delay: 0,
            drops_slot_on_stop: false,
            failover: false,
        },
        slot: database.name.clone(),
        tables: vec![DeclaredRead {
            name: "c.d.declared".to_owned(),
            shape: shape(&[("id", Int)], &[0], Changes::Upsert),
            key: vec!["id".to_owned()],
            settings: TableSettings {
                selection: TableSelection::new("public".to_owned(), "t".to_owned(), true).unwrap(),
                chunks: ChunkSettings { rows: None, key_column: None, even_between: (0.05, 1000.0) },
                truncate: TruncatePolicy::Fail,
                unrepresentable: Unrepresentable::Fail,
                reads_new_tables: false,
            },
        }],
        context: ReaderContext::batch(1),
        notes: Vec::new(),
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_not_waited_for_for_ever() {
    TestDatabase::with(async |database| {
        database.run("CREATE TABLE t (id int PRIMARY KEY)").await;
        // Connections are made, and how large the table is does not come.
        database.run("BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE").await;
        let mut reader = PostgresReader::new(plan(database), None).unwrap();
        let error = reader.next().await.err().unwrap();
        assert!(error.message().ends_with(": looking at its tables: no answer in 2 s"), "{error}");
        database.run("ROLLBACK").await;
        let mut reader = PostgresReader::new(plan(database), None).unwrap();
        assert!(matches!(reader.next().await.unwrap(), SourceEvent::Boundary));
    })
    .await;
}
