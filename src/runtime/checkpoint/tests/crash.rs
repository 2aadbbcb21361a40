//! The disk dies at every step; what is found afterwards is the last complete checkpoint, and nothing else stays.

use super::*;

/// Returns the changes that checkpoint `number` writes, and the rows after it.
fn history(number: i64) -> (Upserts, Vec<i64>, Rows) {
    let upserts = |number: i64| (0..20).map(move |key| (key * number % 31, Some(format!("{number}"))));
    let deletes = |number: i64| (0..31).filter(move |key| key % 5 == number % 5);
    let mut rows = Rows::new();
    for number in 1..=number {
        deletes(number).for_each(|key| drop(rows.remove(&key)));
        rows.extend(upserts(number));
    }
    let written: Rows = upserts(number).collect();
    (written.into_iter().collect(), deletes(number).collect(), rows)
}

/// Writes checkpoints until the disk dies; returns the number of the last one that was acknowledged.
fn run(store: &mut CheckpointStore, numbers: std::ops::Range<i64>, savepoints: &Path) -> (i64, Result<()>) {
    let mut acknowledged = numbers.start - 1;
    for number in numbers {
        let (upserts, deletes, _) = history(number);
        let changes = changes(&upserts, &deletes, 2);
        let result = write_as(store, number as u64, vec![operator("agg", groups(), changes)]);
        if let Err(error) = result {
            return (acknowledged, Err(error));
        }
        acknowledged = number;
        let after = store.compact().and_then(|_| store.write_savepoint(savepoints));
        if let Err(error) = after {
            return (acknowledged, Err(error));
        }
    }
    (acknowledged, Ok(()))
}

/// Opens the job again as after a crash; returns the number of the checkpoint that it goes on from.
fn recover(folder: &Path, id: u128, retained: usize) -> (CheckpointStore, i64) {
    let mut store = open(folder, id, retained);
    assert_nothing_is_left_over(store.folder().path());
    let Some(latest) = store.latest() else { return (store, 0) };
    let restore = Restore::open(&latest).unwrap();
    let number = restore.manifest().number as i64;
    assert_eq!(read_groups(&restore, "agg", 2), history(number).2, "checkpoint {number}");
    store.continue_from(&restore).unwrap();
    (store, number)
}

#[test]
fn a_crash_at_any_step_leaves_the_old_or_the_new_checkpoint() {
    for retained in [1, 2] {
        let mut steps = 0;
        loop {
            let folder = tempfile::tempdir().unwrap();
            let disk = Disk::dying_after(steps);
            let mut store = open_on(disk.clone(), folder.path(), 1, retained);
            let (acknowledged, _) = run(&mut store, 1..4, folder.path());
            drop(store);
            let (mut store, found) = recover(folder.path(), 1, retained);
            assert!(found == acknowledged || found == acknowledged + 1, "{found} after {acknowledged}");
            run(&mut store, found + 1..found + 2, folder.path()).1.unwrap();
            drop(store);
            assert_eq!(recover(folder.path(), 1, retained).1, found + 1);
            if !disk.is_dead() {
                break;
            }
            steps += 1;
        }
        assert!(steps > 60, "only {steps} steps");
    }
}

#[test]
fn a_crash_while_a_job_takes_over_a_savepoint_leaves_the_savepoint() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), 1, 1);
    run(&mut store, 1..3, folder.path()).1.unwrap();
    let savepoint = store.write_savepoint(&folder.path().join("saved")).unwrap().path;
    store.discard().unwrap();
    let mut steps = 0;
    loop {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::dying_after(steps);
        let mut store = open_on(disk.clone(), folder.path(), 2, 1);
        let restore = Restore::open(&savepoint).unwrap();
        let result = store.continue_from(&restore).and_then(|()| run(&mut store, 3..5, folder.path()).1);
        drop(store);
        let (_, found) = recover(folder.path(), 2, 1);
        assert_eq!(read_groups(&Restore::open(&savepoint).unwrap(), "agg", 1), history(2).2);
        if result.is_ok() && !disk.is_dead() {
            assert_eq!(found, 4);
            break;
        }
        assert!(found == 0 || found >= 3);
        steps += 1;
    }
    assert!(steps > 20, "only {steps} steps");
}

#[test]
fn changes_of_a_failed_checkpoint_are_in_the_next_one() {
    let mut steps = 0;
    loop {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::dying_after(steps);
        let mut store = open_on(disk.clone(), folder.path(), 1, 1);
        let write = |store: &mut CheckpointStore, number| {
            let (upserts, deletes, _) = history(number);
            write(store, vec![operator("agg", groups(), changes(&upserts, &deletes, 1))])
        };
        let first = write(&mut store, 1);
        let second = write(&mut store, 2);
        disk.die_after(i64::MAX);
        let third = write(&mut store, 3).unwrap();
        assert_eq!(third.number, 3);
        let restore = Restore::open(&third.path).unwrap();
        assert_eq!(read_groups(&restore, "agg", 1), history(3).2);
        let job = store.folder().path().to_owned();
        drop(store);
        drop(open(folder.path(), 1, 1));
        assert_nothing_is_left_over(&job);
        if first.is_ok() && second.is_ok() {
            break;
        }
        steps += 1;
    }
}

#[test]
fn a_restart_within_the_process_forgets_what_came_after_the_checkpoint() {
    let mut steps = 0;
    loop {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::dying_after(i64::MAX);
        let mut store = open_on(disk.clone(), folder.path(), 1, 1);
        let write = |store: &mut CheckpointStore, key, gone: &[i64]| {
            write(store, vec![operator("agg", groups(), changes(&[(key, None)], gone, 1))])
        };
        write(&mut store, 99, &[]).unwrap();
        disk.die_after(steps);
        let is_written = write(&mut store, 7, &[99]).is_ok();
        disk.die_after(i64::MAX);
        if is_written {
            break;
        }
        store.continue_from(&Restore::open(&store.latest().unwrap()).unwrap()).unwrap();
        let path = write(&mut store, 8, &[]).unwrap().path;
        let rows = read_groups(&Restore::open(&path).unwrap(), "agg", 1);
        // The last step makes the name of the checkpoint last, which it may have before.
        assert_eq!(rows, Rows::from([(8, None), (99, None)]), "step {steps}");
        steps += 1;
    }
    assert!(steps > 8, "only {steps} steps");
}

#[test]
fn files_that_the_store_does_not_know_stay() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), 1, 1);
    run(&mut store, 1..3, &folder.path().join("saved")).1.unwrap();
    let job = store.folder().path().to_owned();
    let mine = [job.join("shared/notes.txt"), job.join("chk-2/notes.txt"), job.join("shared/rows-1-2.seg")];
    mine.iter().for_each(|path| fs::write(path, "mine").unwrap());
    drop(store);
    let mut store = open(folder.path(), 1, 1);
    store.continue_from(&Restore::open(&job).unwrap()).unwrap();
    run(&mut store, 3..5, &folder.path().join("saved")).1.unwrap();
    store.discard().unwrap();
    let mut expected = mine.to_vec();
    expected.sort();
    assert_eq!(files(&job), expected);
}

#[test]
fn segments_stay_while_a_manifest_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), 1, 3);
    run(&mut store, 1..4, &folder.path().join("saved")).1.unwrap();
    let job = store.folder().path().to_owned();
    drop(store);
    fs::write(job.join("chk-3/_metadata"), "x").unwrap();
    let before = files(&job);
    let mut store = open(folder.path(), 1, 1);
    assert_eq!(files(&job), before);
    assert_eq!(store.next_number(), 4);
}

#[test]
fn num_retained_checkpoints_are_kept_and_each_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), 1, 3);
    run(&mut store, 1..8, &folder.path().join("saved")).1.unwrap();
    let kept = job_folder::complete_checkpoints(store.folder().path()).unwrap();
    assert_eq!(kept.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [5, 6, 7]);
    for (number, path) in kept {
        let restore = Restore::open(&path).unwrap();
        assert_eq!(read_groups(&restore, "agg", 3), history(number as i64).2);
    }
    let job = store.folder().path().parent().unwrap().to_owned();
    store.discard().unwrap();
    assert!(!job.exists());
}
