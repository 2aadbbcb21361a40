//! A value is the same cell whether its row was copied or came in the stream: every value that the recordings have, and types of
//! extensions, as every type that it can be declared as.

use std::fs;

use arrow::array::ArrayRef;
use futures::TryStreamExt;
use tokio_postgres::Client;

use super::*;
use crate::connector::postgres::change_decoder::{ChangeDecoder, Transaction};
use crate::connector::postgres::pgoutput::{Message, Parser};
use crate::connector::postgres::row_shape::RowShape;
use crate::connector::postgres::settings::TableSelection;
use crate::connector::postgres::tables::{GeneratedColumns, load_tables};
use crate::connector::postgres::testing::{Recording, TestDatabase};
use crate::connector::postgres::values::{SourceType, ValueReader};
use crate::schema::TypeRoot::{Array, Boolean, Date, Decimal, Map, SmallInt, Time, TimestampLtz, TinyInt};

/// Types that the recordings do not have: those of extensions, rows of tables, domains of all sorts, arrays of texts that are cut or
/// quoted in their own way.
const MORE_TYPES: &str = "CREATE EXTENSION citext;
  CREATE DOMAIN ids AS int[]; CREATE DOMAIN mail AS citext; CREATE DOMAIN pairs AS pair; CREATE DOMAIN address AS inet;
  CREATE TABLE others (id int PRIMARY KEY, ci citext, em mail, whole numbers, rows numbers[], list ids, couple pairs, ip address,
    ips inet[], flags bool[], words char(3)[], sums money[], xs xml[], bit1 bit(1), span tstzrange, days daterange[], moods mood[],
    maps hstore[], ints int[][], big numeric[], secret bytea[], at timestamptz[], tid tid, class regclass, oids oidvector, x xid, x8 xid8, f4 float4, f8 float8);
  ALTER PUBLICATION fixture OWNER TO CURRENT_USER";
const MORE_ROWS: &str = "INSERT INTO others VALUES
  (1, 'A b', 'x@Y.z', ROW(1, true, 2, 3, 4, 5, 6, 7, 8, 9, 100, 11, 12), ARRAY[ROW(1, NULL, 2, 3, 4, 5, 6, 7, 8, 9, 100, 11, 12)::numbers], '{1,2}', ROW(NULL, NULL),
   '10.0.0.1', '{10.0.0.1,::1/64}', '{t,f,NULL}', '{a,NULL,ab}', '{1.50,NULL}', ARRAY['<?xml version=\"1.0\"?><a/>'::xml], B'1',
   '[2024-01-01,2025-01-01)', '{\"[2024-01-01,2024-02-01)\",empty}', '{ok,NULL}', ARRAY['a=>1,b=>NULL'::hstore], '{{1,2},{3,NULL}}',
   '{1.5,NaN,123456789012345678901234567890.5}', '{\"\\\\x00ff\",NULL}', '{2024-01-01 00:00:00+05:30,infinity}', '(3,4)', 'numbers', '1 2', '4294967295', '18446744073709551615',
   'Infinity'::float4 * 0, 'Infinity'::float8 - 'Infinity'),
  (2, '', 'a@b.c', NULL, '{}', '{}', ROW(1, 'x'), '::1', '{}', '{}', '{}', '{}', '{}', B'0', 'empty', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '(0,0)', '0', '', '3', '3',
   'NaN', 'NaN');
  INSERT INTO others (id) VALUES (3)";

/// Every type that something can be declared as.
fn declarable() -> Vec<TypeRoot> {
    let array = |item: TypeRoot| Array(Box::new(item.nullable()));
    let mut types =
        vec![Boolean, TinyInt, SmallInt, Int, BigInt, Float, Double, Date, TypeRoot::STRING, TypeRoot::BYTES];
    types.extend([TypeRoot::Char(5), TypeRoot::Varchar(3), TypeRoot::Binary(2)]);
    types.extend(
        [(1, 0), (5, 2), (10, 2), (38, 0), (38, 18), (38, 38)]
            .map(|(precision, scale)| Decimal(precision, scale)),
    );
    types.extend([0, 3].map(Time));
    types.extend([0, 3, 6, 9].map(Timestamp));
    types.extend([0, 3, 6, 9].map(TimestampLtz));
    types.extend(
        [TypeRoot::STRING, Int, BigInt, Boolean, Decimal(38, 18), TypeRoot::BYTES, TimestampLtz(6)]
            .map(array),
    );
    types.extend([TypeRoot::STRING, Int].map(|item| array(array(item))));
    let map = || Map(Box::new(TypeRoot::STRING.nullable()), Box::new(TypeRoot::STRING.nullable()));
    types.extend([map(), array(map())]);
    types
}

/// Returns the rows of a table by copying them, in the order of their ids.
pub(super) async fn copied(
    client: &Client,
    shape: &RowShape,
    table: &PgTable,
    types: &PgTypes,
) -> Result<ArrayRef> {
    let plan = CopyPlan::new(shape, table, types, "app")?;
    let sql = format!(
        "COPY (SELECT {} FROM {} AS t ORDER BY id) TO STDOUT (FORMAT binary)",
        plan.select_list(),
        table.sql()
    );
    let mut stream = Box::pin(client.copy_out(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}")));
    let mut decoder = CopyDecoder::new(&plan);
    while let Some(bytes) = stream.try_next().await.unwrap() {
        decoder.push(&bytes)?;
    }
    decoder.expect_end()?;
    Ok(ArrayRef::clone(decoder.take()?.rows().column(0)))
}

/// Returns the rows of a table as the stream brings them.
pub(super) fn streamed(
    messages: &[Vec<u8>],
    shape: &RowShape,
    table: &PgTable,
    types: &PgTypes,
) -> Result<ArrayRef> {
    let mut decoder = ChangeDecoder::new(shape.clone(), "app");
    let mut parser = Parser::default();
    for message in messages {
        match parser.parse(message)? {
            Message::Relation { relation, .. } if relation.oid == table.oid => {
                decoder.define(&relation, table, types)?;
            }
            Message::Insert { oid, new, .. } if oid == table.oid => {
                decoder.insert(oid, new, Transaction { xid: 1, commit_time: 0 })?;
            }
            _ => {}
        }
    }
    Ok(ArrayRef::clone(decoder.finish()?.unwrap().rows().column(0)))
}

/// Makes the tables and fills them; returns what a slot that was there before says of it.
async fn recorded(database: &TestDatabase, client: &Client) -> Vec<Vec<u8>> {
    let script = fs::read_to_string(Recording::folder().join("types.sql")).unwrap();
    let mut script = script.replace("-- options", "-- ");
    if database.version().await < 150_000 {
        // Scales below 0 came with version 15, and hours of more than 32 bits.
        script =
            script.replace("numeric(3,-2)", "numeric(5,0)").replace("2562047788:00:54", "2147483647:00:54");
    }
    let (tables, rows) = script.split_once("-- capture").unwrap();
    database.run(tables).await;
    database.run(MORE_TYPES).await;
    let slot = &database.name;
    database.run(&format!("SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')")).await;
    database.run(rows).await;
    database.run(MORE_ROWS).await;
    let changes = format!(
        "SELECT data FROM pg_logical_slot_get_binary_changes('{slot}', NULL, NULL, 'proto_version', '1', 'publication_names', 'fixture')"
    );
    client.query(&changes, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn copied_and_streamed_values_are_the_same_cells_in_every_type() {
    TestDatabase::with(async |database| {
        let client = database.server.connect().await.unwrap();
        let messages = recorded(database, &client).await;
        let types = PgTypes::load(&client).await.unwrap();
        let selection = TableSelection::new("public".to_owned(), ".*".to_owned(), false).unwrap();
        let tables =
            load_tables(&database.server, &client, &selection, GeneratedColumns::Selected).await.unwrap();
        assert_eq!(tables.len(), 5);
        let (mut pairs, mut failures, mut texts) = (0, 0, 0);
        for table in &tables {
            for column in &table.columns {
                let mut types = types.clone();
                let missing = types.unknown([column.type_oid]);
                types.add(&client, &missing).await.unwrap();
                let source = SourceType::new(&types, column.type_oid, column.type_modifier);
                for root in declarable() {
                    let mut shape = shape(&[(&column.name, root.clone())], &[], Changes::All);
                    shape.unrepresentable = Unrepresentable::Null;
                    let declared = &shape.physical[0].data_type;
                    let Some(reader) = ValueReader::new(&source, declared, shape.unrepresentable) else {
                        continue;
                    };
                    let copied = copied(&client, &shape, table, &types).await;
                    let streamed = streamed(&messages, &shape, table, &types);
                    let what = format!("{}.{} {} as {declared}", table.name, column.name, source.name);
                    match (copied, streamed) {
                        (Ok(copied), Ok(streamed)) => assert_eq!(&copied, &streamed, "{what}"),
                        (Err(copied), Err(streamed)) => {
                            assert_eq!(copied.message(), streamed.message(), "{what}");
                            // Only a text may be none of the values that it is read as.
                            assert!(source.suggestion().contains("STRING"), "{what}: {copied}");
                            failures += 1;
                        }
                        (copied, streamed) => panic!("{what}: copied {copied:?}, streamed {streamed:?}"),
                    }
                    pairs += 1;
                    texts += usize::from(reader.binary().is_none());
                }
            }
        }
        assert!(
            pairs > 600 && texts > 500 && failures < 200,
            "{pairs} pairs, {texts} as texts, {failures} failed"
        );
    })
    .await;
}
