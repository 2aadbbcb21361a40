//! Random sequences of changes against a model: after each of them the live files, their sequence numbers and row ids are those of
//! the model, whatever was merged and copied in between; and so are those of all snapshots before.

use std::collections::{BTreeMap, BTreeSet};

use iceberg::TableUpdate;
use iceberg::spec::{
    DataContentType, FormatVersion, Literal, NestedField, PrimitiveType, Schema, Struct, Transform, Type,
    UnboundPartitionSpec,
};
use proptest::prelude::*;
use proptest::test_runner::Config;

use super::testing::{
    TestCatalog, append, commit, committed, data_in, deletes_in, live, live_of, manifests, partition,
};
use super::{FileRemoval, MetadataChange, SnapshotChange, commit_updates};
use crate::connector::iceberg::manifest::{PartitionKey, TableFile};
use crate::connector::iceberg::table::IcebergTable;
use crate::connector::testing::block_on;

/// A step, with numbers that choose among what is there.
#[derive(Debug, Clone)]
enum Step {
    Append(Vec<(u8, u8)>),
    Delete { target: u8, is_scoped: bool },
    Remove { picks: Vec<u8>, adds: bool },
    ReplacePartition { spec: u8, d: u8 },
    ReplaceEverything { adds: bool },
    Rewrite { picks: Vec<u8> },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let picks = || prop::collection::vec(any::<u8>(), 0..4);
    let step = prop_oneof![
        5 => prop::collection::vec((any::<u8>(), any::<u8>()), 1..4).prop_map(Step::Append),
        4 => (any::<u8>(), any::<bool>()).prop_map(|(target, is_scoped)| Step::Delete { target, is_scoped }),
        2 => (picks(), any::<bool>()).prop_map(|(picks, adds)| Step::Remove { picks, adds }),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(spec, d)| Step::ReplacePartition { spec, d }),
        1 => any::<bool>().prop_map(|adds| Step::ReplaceEverything { adds }),
        2 => picks().prop_map(|picks| Step::Rewrite { picks }),
    ];
    prop::collection::vec(step, 1..16)
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    spec_id: i32,
    partition: Struct,
    sequence_number: i64,
    is_data: bool,
    about: Option<String>,
}

type Files = BTreeMap<String, Known>;

struct Model {
    version: FormatVersion,
    specs: u8,
    files: Files,
    sequence_number: i64,
    names: u32,
    rows: u64,
    first_row_ids: BTreeMap<String, u64>,
}

impl Model {
    fn new(version: FormatVersion, specs: u8) -> Model {
        let (files, first_row_ids) = (Files::new(), BTreeMap::new());
        Model { version, specs, files, sequence_number: 0, names: 0, rows: 0, first_row_ids }
    }

    fn new_file(&mut self, spec: u8, d: u8) -> TableFile {
        self.names += 1;
        let (spec_id, partition) = self.partition(spec, d);
        data_in(spec_id, &format!("f{:03}", self.names), partition, u64::from(self.names % 5 + 1))
    }

    fn partition(&self, spec: u8, d: u8) -> (i32, Struct) {
        let (spec_id, d) = (i32::from(spec % self.specs), d % 3);
        let partition = match spec_id {
            0 => partition(&format!("d{d}")),
            1 => Struct::empty(),
            _ => Struct::from_iter([Some(Literal::int(i32::from(d)))]),
        };
        (spec_id, partition)
    }

    fn data(&self, n: u8) -> Option<(&String, &Known)> {
        let data: Vec<_> = self.files.iter().filter(|(_, file)| file.is_data).collect();
        (!data.is_empty()).then(|| data[usize::from(n) % data.len()])
    }

    fn change(&mut self, step: &Step) -> SnapshotChange {
        let mut change = SnapshotChange::default();
        match step {
            Step::Append(files) => {
                change.data = files.iter().map(|(spec, d)| self.new_file(*spec, *d)).collect();
            }
            Step::Delete { target, is_scoped } => {
                let Some((path, known)) = self.data(*target) else { return change };
                if self.version != FormatVersion::V2 {
                    return change;
                }
                let referenced = is_scoped.then_some(path.as_str());
                let name = format!("x{:03}", self.names);
                change.deletes =
                    vec![deletes_in(known.spec_id, &name, known.partition.clone(), 1, referenced)];
                self.names += 1;
            }
            Step::Remove { picks, adds } => {
                let all: Vec<&String> = self.files.keys().collect();
                let picked = picks
                    .iter()
                    .filter(|_| !all.is_empty())
                    .map(|n| all[usize::from(*n) % all.len()].clone());
                change.removal = FileRemoval::Paths(picked.collect());
                change.data.extend(adds.then(|| self.new_file(0, 0)));
            }
            Step::ReplacePartition { spec, d } => {
                let (spec_id, partition) = self.partition(*spec, *d);
                change.removal = FileRemoval::Partitions([PartitionKey::of(spec_id, &partition)].into());
                change.data = vec![self.new_file(*spec, *d)];
            }
            Step::ReplaceEverything { adds } => {
                change.removal = FileRemoval::Everything;
                change.data.extend(adds.then(|| self.new_file(1, 1)));
            }
            Step::Rewrite { picks } => {
                let picked: BTreeSet<String> =
                    picks.iter().filter_map(|n| self.data(*n)).map(|(path, _)| path.clone()).collect();
                if !picked.is_empty() {
                    change.rewritten_at = Some(self.sequence_number);
                    change.removal = FileRemoval::Paths(picked);
                    change.data = vec![self.new_file(0, 2)];
                }
            }
        }
        change
    }

    /// Applies a change, and returns whether there is any.
    fn apply(&mut self, change: &SnapshotChange) -> bool {
        let names = |path: &String, known: &Known| match &change.removal {
            FileRemoval::Nothing => false,
            FileRemoval::Everything => true,
            FileRemoval::Partitions(partitions) => {
                partitions.contains(&PartitionKey::of(known.spec_id, &known.partition))
            }
            FileRemoval::Paths(paths) => paths.contains(path),
        };
        let removes = change.removal != FileRemoval::Nothing;
        let (gone, kept): (Files, Files) =
            self.files.clone().into_iter().partition(|(path, known)| names(path, known));
        let oldest = kept.values().filter(|file| file.is_data).map(|file| file.sequence_number);
        let oldest = oldest.chain(change.rewritten_at).min().unwrap_or(i64::MAX);
        let applies = |known: &Known| {
            known.is_data
                || (known.sequence_number >= oldest
                    && !known.about.as_ref().is_some_and(|path| gone.contains_key(path)))
        };
        let after: Files = kept.into_iter().filter(|(_, known)| !removes || applies(known)).collect();
        let changes = after.len() < self.files.len() || !change.data.is_empty() || !change.deletes.is_empty();
        self.files = after;
        if changes {
            self.sequence_number += i64::from(self.version != FormatVersion::V1);
        }
        for added in change.data.iter().chain(&change.deletes) {
            let is_data = added.file.content_type() == DataContentType::Data;
            let known = Known {
                spec_id: added.spec_id,
                partition: added.file.partition().clone(),
                sequence_number: change.rewritten_at.unwrap_or(self.sequence_number),
                is_data,
                about: added.file.referenced_data_file(),
            };
            self.rows += if is_data { added.file.record_count() } else { 0 };
            self.files.insert(added.file.file_path().to_owned(), known);
        }
        changes
    }

    async fn check(&mut self, table: &IcebergTable) {
        let live = live(table).await;
        let found: Files = live
            .iter()
            .map(|(path, live)| {
                let known = Known {
                    spec_id: live.spec_id,
                    partition: live.file.partition().clone(),
                    sequence_number: live.sequence_number,
                    is_data: live.file.content_type() == DataContentType::Data,
                    about: live.file.referenced_data_file(),
                };
                (path.clone(), known)
            })
            .collect();
        assert_eq!(found, self.files);
        if self.version != FormatVersion::V3 {
            return;
        }
        // No row id is given twice, none is left out, and a file keeps its own.
        assert_eq!(table.metadata().next_row_id(), self.rows);
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for (path, live) in &live {
            let first = live.first_row_id.unwrap();
            assert_eq!(*self.first_row_ids.entry(path.clone()).or_insert(first), first, "{path}");
            ranges.push((first, first + live.file.record_count()));
        }
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{ranges:?}");
        assert!(ranges.last().is_none_or(|(_, end)| *end <= self.rows));
    }
}

async fn with_specs(table: IcebergTable, specs: u8) -> IcebergTable {
    let mut table = table;
    let bucket =
        UnboundPartitionSpec::builder().add_partition_field(1, "b", Transform::Bucket(4)).unwrap().build();
    for spec in [UnboundPartitionSpec::builder().build(), bucket].into_iter().take(usize::from(specs) - 1) {
        let mut add = |_: &IcebergTable| {
            let updates = vec![
                TableUpdate::AddSpec { spec: spec.clone() },
                TableUpdate::SetDefaultSpec { spec_id: -1 },
            ];
            Ok(Some(MetadataChange { updates, ..MetadataChange::default() }))
        };
        table = commit_updates(&table, &mut add).await.unwrap();
    }
    table
}

async fn check_steps(version: FormatVersion, specs: u8, steps: &[Step]) {
    let often = [("commit.manifest.min-count-to-merge", "3")];
    let table = TestCatalog::new().table_with(version, true, &often).await;
    let mut table = with_specs(table, specs).await;
    let mut model = Model::new(version, specs);
    let mut history: Vec<(i64, Vec<String>)> = Vec::new();
    for step in steps {
        let change = model.change(step);
        let changes = model.apply(&change);
        table = commit(&table, change).await.unwrap();
        model.check(&table).await;
        if changes {
            let id = table.metadata().current_snapshot_id().unwrap();
            history.push((id, model.files.keys().cloned().collect()));
        }
        assert_eq!(table.metadata().snapshots().len(), history.len());
    }
    for (id, paths) in history {
        let snapshot = table.metadata().snapshot_by_id(id).unwrap();
        assert_eq!(live_of(&table, snapshot).await.into_keys().collect::<Vec<_>>(), paths);
    }
}

proptest! {
    #![proptest_config(Config { cases: 12, failure_persistence: None, ..Config::default() })]

    #[test]
    fn tables_of_version_2_hold_what_the_model_holds(specs in 1..=3_u8, steps in steps()) {
        block_on(check_steps(FormatVersion::V2, specs, &steps));
    }

    #[test]
    fn tables_of_version_3_hold_what_the_model_holds(specs in 1..=3_u8, steps in steps()) {
        block_on(check_steps(FormatVersion::V3, specs, &steps));
    }

    #[test]
    fn tables_of_version_1_hold_what_the_model_holds(steps in steps()) {
        block_on(check_steps(FormatVersion::V1, 1, &steps));
    }
}

async fn upgraded(table: &IcebergTable, format_version: FormatVersion) -> IcebergTable {
    let mut upgrade = |_: &IcebergTable| {
        let updates = vec![TableUpdate::UpgradeFormatVersion { format_version }];
        Ok(Some(MetadataChange { updates, ..MetadataChange::default() }))
    };
    commit_updates(table, &mut upgrade).await.unwrap()
}

#[test]
fn a_table_that_is_upgraded_keeps_its_files_and_gets_row_ids() {
    block_on(async {
        let often = [("commit.manifest.min-count-to-merge", "4")];
        let mut table = TestCatalog::new().table_with(FormatVersion::V1, false, &often).await;
        for (version, path) in [(FormatVersion::V1, "a"), (FormatVersion::V2, "b"), (FormatVersion::V3, "c")]
        {
            table = upgraded(&table, version).await;
            for n in 0..3 {
                table = committed(&table, append(&[(&format!("{path}{n}"), 10)])).await;
            }
        }
        let live = live(&table).await;
        assert_eq!(live.len(), 9);
        let numbers: Vec<i64> = live.values().map(|live| live.sequence_number).collect();
        assert_eq!(numbers, [0, 0, 0, 1, 2, 3, 4, 5, 6]);
        let firsts: BTreeSet<u64> = live.values().map(|live| live.first_row_id.unwrap()).collect();
        assert_eq!(firsts, (0..9).map(|n| n * 10).collect());
        assert_eq!(table.metadata().next_row_id(), 90);
    });
}

#[test]
fn manifests_of_a_column_that_took_a_wider_type_are_merged() {
    block_on(async {
        let often = [("commit.manifest.min-count-to-merge", "3")];
        let table = TestCatalog::new().table_with(FormatVersion::V2, false, &often).await;
        let schema = |k: PrimitiveType| {
            let fields = vec![
                NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long)).into(),
                NestedField::optional(9, "k", Type::Primitive(k)).into(),
            ];
            Schema::builder().with_schema_id(1).with_fields(fields).build().unwrap()
        };
        let with = async |table: &IcebergTable, k: PrimitiveType| {
            let mut add = |_: &IcebergTable| {
                let schema = schema(k.clone());
                let updates =
                    vec![TableUpdate::AddSchema { schema }, TableUpdate::SetCurrentSchema { schema_id: -1 }];
                Ok(Some(MetadataChange { updates, ..MetadataChange::default() }))
            };
            commit_updates(table, &mut add).await.unwrap()
        };
        let table = with(&table, PrimitiveType::Int).await;
        let mut by_k = |_: &IcebergTable| {
            let spec = UnboundPartitionSpec::builder()
                .add_partition_field(9, "k", Transform::Identity)
                .unwrap()
                .build();
            let updates = vec![TableUpdate::AddSpec { spec }, TableUpdate::SetDefaultSpec { spec_id: -1 }];
            Ok(Some(MetadataChange { updates, ..MetadataChange::default() }))
        };
        let mut table = commit_updates(&table, &mut by_k).await.unwrap();
        let k = |value: Literal| Struct::from_iter([Some(value)]);
        let add = |path: &str, k: Struct| SnapshotChange {
            data: vec![data_in(1, path, k, 1)],
            ..SnapshotChange::default()
        };
        table = committed(&table, add("a", k(Literal::int(5)))).await;
        table = committed(&table, add("b", k(Literal::int(6)))).await;
        table = with(&table, PrimitiveType::Long).await;
        table = committed(&table, add("c", k(Literal::long(5)))).await;
        table = committed(&table, add("d", k(Literal::long(7)))).await;
        assert_eq!(manifests(&table, table.metadata().current_snapshot().unwrap()).await.len(), 2);
        assert_eq!(live(&table).await["a"].file.partition(), &k(Literal::long(5)));
        // A partition is the same before and after.
        table = committed(&table, add("e", k(Literal::int(6)))).await;
        let removal = FileRemoval::Partitions([PartitionKey::of(1, &k(Literal::long(6)))].into());
        table = committed(&table, SnapshotChange { removal, ..add("f", k(Literal::long(6))) }).await;
        assert_eq!(live(&table).await.into_keys().collect::<Vec<_>>(), ["a", "c", "d", "f"]);
    });
}
