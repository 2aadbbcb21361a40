//! Random histories of a table give what a map gives, however they are cut, merged, restored and moved.

use std::fs;

use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;

/// A checkpoint, and what comes after it.
#[derive(Debug, Clone)]
struct Step {
    /// Key and new value, or None where the key goes; then whether it goes and comes back at once.
    writes: Vec<(i64, Option<Option<u8>>, bool)>,
    workers: usize,
    compacts: bool,
    restarts: bool,
    saves: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let write = (0..24_i64, proptest::option::weighted(0.7, proptest::option::of(0..4_u8)), any::<bool>());
    (
        prop::collection::vec(write, 0..12),
        1..4_usize,
        any::<bool>(),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.2),
    )
        .prop_map(|(writes, workers, compacts, restarts, saves)| Step {
            writes,
            workers,
            compacts,
            restarts,
            saves,
        })
}

/// Applies writes to the model; returns the upserts and the deletes that an operator would name.
fn apply(rows: &mut Rows, step: &Step) -> (Upserts, Vec<i64>) {
    let before = rows.clone();
    let (mut touched, mut returned) = (BTreeMap::new(), Vec::new());
    for (key, value, goes_first) in &step.writes {
        match value {
            Some(value) => {
                if *goes_first && before.contains_key(key) {
                    returned.push(*key);
                }
                let value = value.map(|value| "v".repeat(value as usize));
                rows.insert(*key, value.clone());
                touched.insert(*key, Some(value));
            }
            None => {
                rows.remove(key);
                touched.insert(*key, None);
            }
        }
    }
    let upserts = touched.iter().filter_map(|(key, value)| Some((*key, value.clone()?))).collect();
    let mut deletes: Vec<i64> = touched
        .iter()
        .filter(|(key, value)| value.is_none() && before.contains_key(*key))
        .map(|(key, _)| *key)
        .collect();
    returned.retain(|key| !deletes.contains(key));
    returned.dedup();
    deletes.extend(returned);
    (upserts, deletes)
}

fn check(steps: &[Step], retained: usize, delta_bytes_min: u64) {
    let open = |folder: &Path, id, retained| open(folder, id, retained).with_delta_bytes_min(delta_bytes_min);
    let folder = tempfile::tempdir().unwrap();
    let mut rows = Rows::new();
    let mut id = 1;
    let mut store = open(folder.path(), id, retained);
    for (number, step) in steps.iter().enumerate() {
        let (upserts, deletes) = apply(&mut rows, step);
        let written =
            write(&mut store, vec![operator("agg", groups(), changes(&upserts, &deletes, step.workers))])
                .unwrap();
        let restore = Restore::open(&written.path).unwrap();
        assert_eq!(read_groups(&restore, "agg", 1 + number % 3), rows);
        if step.compacts {
            store.compact().unwrap();
        }
        if step.saves {
            let saved = store.write_savepoint(folder.path()).unwrap().path;
            let moved = folder.path().join(format!("moved {number}"));
            fs::rename(saved, &moved).unwrap();
            assert_eq!(read_groups(&Restore::open(&moved.join("_metadata")).unwrap(), "agg", 2), rows);
        }
        if step.restarts {
            let latest = store.latest().unwrap();
            drop(store);
            // Every other time as another run, with a folder of its own.
            id += (number % 2) as u128;
            store = open(folder.path(), id, retained);
            store.continue_from(&Restore::open(&latest).unwrap()).unwrap();
        }
    }
    // What was merged last is of no use before the next checkpoint.
    write(&mut store, vec![operator("agg", groups(), changes(&[], &[], 1))]).unwrap();
    assert_nothing_is_left_over(store.folder().path());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_restored_table_is_the_map_of_what_was_written(
        steps in prop::collection::vec(step(), 1..14),
        retained in 1..4_usize,
        delta_bytes_min in prop::sample::select(vec![0, u64::MAX]),
    ) {
        check(&steps, retained, delta_bytes_min);
    }
}

#[test]
fn many_small_changes_of_a_large_table_are_few_files_and_few_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = StdRng::seed_from_u64(4);
    let mut store = open(folder.path(), 1, 1);
    let mut rows: Rows =
        (0..20_000).map(|key| (key, Some(format!("value {:x}", random.random::<u64>())))).collect();
    let all: Vec<_> = rows.clone().into_iter().collect();
    let first = write(&mut store, vec![operator("agg", groups(), changes(&all, &[], 2))]).unwrap();
    let mut written = 0;
    for _ in 0..60 {
        let deletes: Vec<i64> =
            (0..5).map(|_| random.random_range(0..20_000)).filter(|key| rows.remove(key).is_some()).collect();
        let upserts: Vec<_> = (0..5)
            .map(|_| random.random_range(0..20_010))
            .filter(|key| !deletes.contains(key))
            .map(|key| (key, Some(format!("{key}"))))
            .collect();
        rows.extend(upserts.iter().cloned());
        let upserts: Vec<_> = upserts.into_iter().collect::<Rows>().into_iter().collect();
        written +=
            write(&mut store, vec![operator("agg", groups(), changes(&upserts, &deletes, 2))]).unwrap().bytes;
        store.compact().unwrap();
        assert!(files(&store.folder().path().join("shared")).len() <= 18);
    }
    assert!(written < first.bytes, "{written} bytes for 600 rows, {} for 20 000", first.bytes);
    let restore = Restore::open(&store.latest().unwrap()).unwrap();
    assert_eq!(read_groups(&restore, "agg", 3), rows);
    assert!(restore.manifest().segments.len() > 2, "the base has not been rewritten");
}

#[test]
fn a_table_of_many_blocks_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), 1, 1);
    let keys = 0..150_000_i64;
    let rows: Rows = keys.clone().map(|key| (key, Some(format!("{}", key * 7)))).collect();
    let all: Vec<_> = rows.clone().into_iter().collect();
    write(&mut store, vec![operator("agg", groups(), changes(&all, &[], 2))]).unwrap();
    let changed: Vec<_> = keys.clone().map(|key| (key, None)).filter(|(key, _)| key % 3 == 0).collect();
    let gone: Vec<i64> = keys.filter(|key| key % 3 == 1).collect();
    let path = write(&mut store, vec![operator("agg", groups(), changes(&changed, &gone, 2))]).unwrap().path;
    let expected: Rows = rows
        .into_iter()
        .filter(|(key, _)| key % 3 != 1)
        .map(|(key, value)| (key, value.filter(|_| key % 3 != 0)))
        .collect();
    assert_eq!(read_groups(&Restore::open(&path).unwrap(), "agg", 3), expected);
    while !store.compact().unwrap() {
        write(&mut store, vec![operator("agg", groups(), changes(&changed, &[], 2))]).unwrap();
    }
    let path = write(&mut store, vec![operator("agg", groups(), changes(&[], &[], 1))]).unwrap().path;
    let restore = Restore::open(&path).unwrap();
    assert_eq!(restore.manifest().segments.len(), 1);
    assert_eq!(read_groups(&restore, "agg", 2), expected);
}
