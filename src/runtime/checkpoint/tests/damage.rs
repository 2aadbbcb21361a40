//! Damaged files are found, whichever bit it is, and named; an older checkpoint is never taken in place of a damaged one.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::segment::Segment;
use super::*;
use crate::error::ErrorKind;

/// Makes a job with a base, a delta and two tables, and a savepoint; returns both folders.
fn job(folder: &Path) -> (PathBuf, PathBuf) {
    let mut store = open(folder, 1, 1);
    let total = StateTable {
        name: "total",
        schema: schema(&[("n", DataType::Int64)]),
        key_count: 0,
        derived_from: None,
    };
    for (from, to) in [(0, 3_000), (1_000, 1_500)] {
        let rows: Vec<_> = (from..to).map(|key| (key, Some(format!("value of {key}")))).collect();
        let deletes: Vec<i64> = (from / 100..to / 100).collect();
        let n: ArrayRef = Arc::new(Int64Array::from(vec![to]));
        let one = RecordBatch::try_new(Arc::clone(&total.schema), vec![n]).unwrap();
        let one = split(&total, &one, &one.project(&[]).unwrap().slice(0, 0), 1);
        let groups = operator("agg", groups(), changes(&rows, &deletes, 2));
        write(&mut store, vec![groups, operator("global", total.clone(), one)]).unwrap();
    }
    (store.latest().unwrap(), store.write_savepoint(folder).unwrap().path)
}

#[test]
fn every_flipped_bit_is_found_and_its_file_named() {
    let folder = tempfile::tempdir().unwrap();
    let (checkpoint, savepoint) = job(folder.path());
    let shared = checkpoint.parent().unwrap().join("shared");
    let mut targets: Vec<(PathBuf, &Path)> = vec![(checkpoint.join("_metadata"), &checkpoint)];
    targets.extend(files(&shared).into_iter().map(|file| (file, checkpoint.as_path())));
    targets.extend(files(&savepoint).into_iter().map(|file| (file, savepoint.as_path())));
    assert_eq!(targets.len(), 5, "two manifests, a base, a delta, the savepoint's segment");
    let mut random = StdRng::seed_from_u64(1_000);
    for flip in 0..1_000 {
        let (file, start) = &targets[flip % targets.len()];
        let bytes = fs::read(file).unwrap();
        let mut flipped = bytes.clone();
        let bit = random.random_range(0..bytes.len() * 8);
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(file, &flipped).unwrap();
        let error = Restore::open(start).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::State);
        let name = file.display().to_string();
        assert!(error.message().contains(&name), "bit {bit} of {name}: {error}");
        fs::write(file, &bytes).unwrap();
    }
    Restore::open(&checkpoint).unwrap();
    Restore::open(&savepoint).unwrap();
}

#[test]
fn a_segment_finds_every_flipped_bit_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (_, savepoint) = job(folder.path());
    let entry = Restore::open(&savepoint).unwrap().manifest().segments[0].clone();
    let file = savepoint.join(&entry.file);
    let bytes = fs::read(&file).unwrap();
    let read = || -> Result<()> {
        let segment = Segment::open(&savepoint, &entry)?;
        let mut file = segment.file()?;
        for table in [segment.table("agg", "groups"), segment.table("global", "total")] {
            let Some(table) = table else { continue };
            for block in table.upserts.iter().chain(&table.deletes) {
                segment.read_block(&mut file, block)?;
            }
        }
        Ok(())
    };
    read().unwrap();
    let mut random = StdRng::seed_from_u64(7);
    let ends = (0..400).chain(bytes.len() * 8 - 4_000..bytes.len() * 8);
    let middle = (0..600).map(|_| random.random_range(0..bytes.len() * 8));
    for bit in ends.step_by(3).chain(middle) {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(&file, &flipped).unwrap();
        assert!(read().is_err(), "bit {bit} of {}", bytes.len() * 8);
    }
}

#[test]
fn a_file_that_is_too_short_too_long_or_gone_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (checkpoint, _) = job(folder.path());
    let shared = checkpoint.parent().unwrap().join("shared");
    for file in files(&shared).into_iter().chain([checkpoint.join("_metadata")]) {
        let bytes = fs::read(&file).unwrap();
        let check = |content: &[u8]| {
            fs::write(&file, content).unwrap();
            let error = Restore::open(&checkpoint).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::State);
            assert!(error.message().contains(&file.display().to_string()), "{error}");
        };
        [0, 1, 15, bytes.len() / 2, bytes.len() - 1].iter().for_each(|length| check(&bytes[..*length]));
        check(&[bytes.as_slice(), &[0]].concat());
        if file.starts_with(&shared) {
            fs::remove_file(&file).unwrap();
            let error = Restore::open(&checkpoint).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::State);
            assert!(error.message().contains(&file.display().to_string()), "{error}");
        }
        fs::write(&file, &bytes).unwrap();
    }
}

#[test]
fn a_segment_of_a_newer_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (_, savepoint) = job(folder.path());
    let entry = Restore::open(&savepoint).unwrap().manifest().segments[0].clone();
    let file = savepoint.join(&entry.file);
    let mut bytes = fs::read(&file).unwrap();
    bytes[8] += 1;
    let crc = crc32fast::hash(&bytes[..segment::HEADER_BYTES - 4]);
    bytes[segment::HEADER_BYTES - 4..segment::HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    fs::write(&file, &bytes).unwrap();
    let error = Segment::open(&savepoint, &entry).unwrap_err();
    assert!(error.message().ends_with("has state format 2, this version reads up to 1"), "{error}");
}

#[test]
fn the_newest_checkpoint_is_found_and_no_older_one_stands_in_for_it() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(job_folder::newest_run(&folder.path().join("job")).unwrap(), None);
    let mut paths = Vec::new();
    for id in [1, 2] {
        let mut store = open(folder.path(), id, 2);
        for _ in 0..3 {
            let number = store.next_number();
            let data = CheckpointData {
                number,
                time_ms: (id * 100 + u128::from(number)) as i64,
                operators: vec![operator("agg", groups(), changes(&[(number as i64, None)], &[], 1))],
                ..CheckpointData::default()
            };
            paths.push(store.write_checkpoint(data).unwrap().path);
        }
    }
    let newest = job_folder::newest_run(&folder.path().join("job")).unwrap().unwrap();
    assert_eq!((&newest.path, newest.job_id, newest.number), (&paths[5], 2, 3));
    let job = paths[5].parent().unwrap();
    assert_eq!(Restore::open(job).unwrap().path(), paths[5]);
    assert_eq!(Restore::open(job.parent().unwrap()).unwrap().path(), paths[5]);
    fs::write(paths[5].join("_metadata"), "x").unwrap();
    assert_eq!(job_folder::newest_run(&folder.path().join("job")).unwrap().unwrap().path, paths[5]);
    for path in [job, &paths[5]] {
        let error = Restore::open(path).unwrap_err();
        assert!(error.message().contains("chk-3/_metadata' is damaged"), "{error}");
        let older = format!("SET 'execution.state-recovery.path' = '{}'.", paths[4].display());
        assert!(error.hint_text().unwrap().ends_with(&older), "{error:?}");
    }
    Restore::open(&paths[4]).unwrap();
}

#[test]
fn a_place_without_a_checkpoint_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "x").unwrap();
    for path in [folder.path().to_owned(), folder.path().join("chk-1"), folder.path().join("file")] {
        let error = Restore::open(&path).unwrap_err();
        assert_eq!(error.message(), format!("there is no checkpoint in '{}'", path.display()));
        assert_eq!(error.kind(), ErrorKind::State);
    }
}

#[test]
fn a_checkpoint_that_would_build_on_removed_files_fails_and_names_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), 1, 1);
    let rows = |from: i64| operator("agg", groups(), changes(&[(from, Some("a".to_owned()))], &[], 1));
    write(&mut store, vec![rows(1)]).unwrap();
    let latest = store.latest().unwrap();
    let shared = latest.parent().unwrap().join("shared");
    let removed = files(&shared).remove(0);
    fs::remove_dir_all(&shared).unwrap();
    let error = write(&mut store, vec![rows(2)]).unwrap_err();
    assert!(error.message().contains(&removed.display().to_string()), "{error}");
    assert_eq!(store.latest().unwrap(), latest, "no checkpoint that cannot be restored");
}
