//! The oracle of the changelog engine: what a stream of changes folds to is what the same query answers in batch mode over the
//! rows that are there.
//!
//! A case is a seed. It gives tables, valid histories of their rows, a query over them, and points at which the stream is
//! compared. Each case runs plainly and in two drawn variations of epoch size, workers, and cuts at which the state is saved and
//! loaded into fresh operators. A case that fails is made smaller before it is shown.
//!
//! `LAKEHEAD_EQUIVALENCE_SECONDS` makes it a long run instead: every case in every variation, with new seeds until the time is
//! over (`scripts/overnight.sh`).

mod history;
mod oracle;
mod query;
mod stream;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use history::Table;
use query::Query;

/// How many queries a run has unless `LAKEHEAD_EQUIVALENCE_QUERIES` says otherwise.
const QUERY_COUNT: u64 = 1_500;

/// After so many failures a thread has found enough.
const FAILURES_MAX: usize = 3;

/// The seed unless `LAKEHEAD_EQUIVALENCE_SEED` gives another.
const SEED: u64 = 20_261_130;

/// A query over tables, with the numbers of changes after which the stream is compared; the last one is the end.
#[derive(Debug, Clone)]
struct Case {
    tables: Vec<Table>,
    query: Query,
    /// Whether joins on one key are merged.
    merges_joins: bool,
    /// Shares of the history, in thousandths.
    checks: Vec<usize>,
}

/// How a case is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Variation {
    /// Changes per epoch; None takes all up to the next comparison.
    epoch: Option<usize>,
    workers: usize,
    /// Whether the state is saved and restored at comparisons, by another number of workers.
    is_cut: bool,
}

const EPOCHS: [Option<usize>; 5] = [Some(1), Some(2), Some(7), Some(64), None];

const WORKERS_MAX: usize = 3;

impl Variation {
    const PLAIN: Variation = Variation { epoch: Some(1), workers: 1, is_cut: false };

    fn draw(rng: &mut StdRng) -> Variation {
        Variation {
            epoch: *EPOCHS.choose(rng).unwrap(),
            workers: rng.random_range(1..=WORKERS_MAX),
            is_cut: rng.random(),
        }
    }

    fn all() -> Vec<Variation> {
        let of_epoch = |epoch| {
            let of_workers = move |workers| [false, true].map(|is_cut| Variation { epoch, workers, is_cut });
            (1..=WORKERS_MAX).flat_map(of_workers)
        };
        EPOCHS.into_iter().flat_map(of_epoch).collect()
    }

    /// Returns the pairs of what the variation varies.
    fn pairs(self) -> [String; 3] {
        let Variation { epoch, workers, is_cut } = self;
        let epoch = epoch.map_or("all".to_owned(), |rows| rows.to_string());
        [
            format!("epoch {epoch}, workers {workers}"),
            format!("epoch {epoch}, cut {is_cut}"),
            format!("workers {workers}, cut {is_cut}"),
        ]
    }
}

impl Case {
    fn draw(seed: u64) -> Case {
        let mut rng = StdRng::seed_from_u64(seed);
        let tables: Vec<Table> = (0..3).map(|number| Table::draw(number, &mut rng)).collect();
        let query = Query::draw(&tables, &mut rng);
        let mut checks: Vec<usize> = (0..2).map(|_| rng.random_range(0..1_000)).collect();
        checks.sort_unstable();
        checks.push(1_000);
        Case { tables, query, merges_joins: seed.is_multiple_of(2), checks }
    }

    /// Runs the case in a variation.
    fn run(&self, variation: Variation) -> Outcome {
        stream::compare(self, variation)
    }

    /// Returns cases that are a little smaller.
    fn smaller(&self) -> Vec<Case> {
        let mut cases: Vec<Case> =
            self.query.simpler().into_iter().map(|query| Case { query, ..self.clone() }).collect();
        if self.checks.len() > 1 {
            cases.push(Case { checks: vec![1_000], ..self.clone() });
        }
        for (number, table) in self.tables.iter().enumerate() {
            for smaller in table.smaller() {
                let mut tables = self.tables.clone();
                tables[number] = smaller;
                cases.push(Case { tables, ..self.clone() });
            }
        }
        cases
    }

    /// Looks for a smaller case that fails too.
    fn shrink(mut self, variation: Variation, mut failure: String) -> (Case, String) {
        let until = Instant::now() + Duration::from_secs(20);
        'again: while Instant::now() < until {
            for smaller in self.smaller() {
                if let Outcome::Wrong(reason) = smaller.run(variation) {
                    (self, failure) = (smaller, reason);
                    continue 'again;
                }
                if Instant::now() > until {
                    break;
                }
            }
            break;
        }
        (self, failure)
    }
}

/// How a case went.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Equal,
    /// The query is refused, in both modes or in streaming mode by name.
    Refused(String),
    Wrong(String),
}

fn number_from_environment(key: &str, default: u64) -> u64 {
    #[allow(clippy::disallowed_methods, reason = "a test that is steered from outside")]
    std::env::var(key).ok().map_or(default, |text| text.parse().unwrap())
}

/// What a run of many cases came to.
#[derive(Debug, Default)]
struct Report {
    /// Cases.
    cases: u64,
    /// Runs of a case in a variation that were equal.
    equal: u64,
    /// Queries that are refused, by what is said.
    refused: BTreeMap<String, u64>,
    /// How often two values of what varies came together.
    pairs: BTreeMap<String, u64>,
    failures: Vec<String>,
}

impl Report {
    /// Runs the case of a seed.
    fn run(&mut self, seed: u64, is_long: bool) {
        let case = Case::draw(seed);
        let variations = if is_long {
            Variation::all()
        } else {
            let mut rng = StdRng::seed_from_u64(seed ^ 0x5eed);
            vec![Variation::PLAIN, Variation::draw(&mut rng), Variation::draw(&mut rng)]
        };
        self.cases += 1;
        for (number, variation) in variations.into_iter().enumerate() {
            match case.run(variation) {
                Outcome::Equal => self.equal += 1,
                Outcome::Refused(reason) => {
                    *self.refused.entry(reason).or_default() += 1;
                    break;
                }
                Outcome::Wrong(reason) => {
                    let (small, reason) = case.shrink(variation, reason);
                    self.failures
                        .push(format!("seed {seed}, {variation:?}\n{}\n{reason}\n", small.describe()));
                    break;
                }
            }
            if number > 0 {
                for pair in variation.pairs() {
                    *self.pairs.entry(pair).or_default() += 1;
                }
            }
        }
    }

    fn add(&mut self, other: Report) {
        self.cases += other.cases;
        self.equal += other.equal;
        self.failures.extend(other.failures);
        for (reason, count) in other.refused {
            *self.refused.entry(reason).or_default() += count;
        }
        for (pair, count) in other.pairs {
            *self.pairs.entry(pair).or_default() += count;
        }
    }
}

/// Runs seeds on all cores: so many, or as many as fit into a time.
fn run(first: u64, count: u64, time: Option<Duration>) -> Report {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let until = time.map(|time| Instant::now() + time);
    let next = Arc::new(AtomicU64::new(first));
    let handles: Vec<_> = (0..threads)
        .map(|_| {
            let next = Arc::clone(&next);
            let work = move || {
                let mut report = Report::default();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let is_over = until.map_or(seed >= first + count, |until| Instant::now() > until);
                    if is_over || report.failures.len() >= FAILURES_MAX {
                        return report;
                    }
                    report.run(seed, until.is_some());
                }
            };
            // Plans of nested queries are deep, and debug builds need room.
            std::thread::Builder::new().stack_size(64 << 20).spawn(work).unwrap()
        })
        .collect();
    let mut report = Report::default();
    handles.into_iter().for_each(|handle| report.add(handle.join().unwrap()));
    report
}

impl Case {
    fn describe(&self) -> String {
        let tables: Vec<String> =
            self.tables.iter().filter(|t| self.query.reads(t)).map(Table::describe).collect();
        let setting = if self.merges_joins { format!("{}\n", stream::MERGES_JOINS) } else { String::new() };
        format!("{setting}{}\n{}", tables.join("\n"), self.query.sql(query::Mode::Streaming))
    }
}

#[test]
fn a_stream_folds_to_the_batch_answer() {
    let first = number_from_environment("LAKEHEAD_EQUIVALENCE_SEED", SEED);
    let count = number_from_environment("LAKEHEAD_EQUIVALENCE_QUERIES", QUERY_COUNT);
    let seconds = number_from_environment("LAKEHEAD_EQUIVALENCE_SECONDS", 0);
    let time = (seconds > 0).then(|| Duration::from_secs(seconds));
    let Report { cases, equal, refused, pairs, failures } = run(first, count, time);
    println!("{cases} queries from seed {first}, {equal} runs equal; refused: {refused:#?}");
    assert!(failures.is_empty(), "{} cases differ\n\n{}", failures.len(), failures.join("\n"));
    // A generator whose queries are refused tests nothing.
    let refusals: u64 = refused.values().sum();
    assert!(refusals * 50 <= cases, "too many queries are refused: {refused:#?}");
    if cases >= QUERY_COUNT {
        let least = pairs.iter().min_by_key(|(_, count)| **count);
        assert!(pairs.len() == 31 && least.is_some_and(|(_, count)| *count >= 100), "{pairs:#?}");
    }
}
