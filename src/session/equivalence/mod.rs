//! The oracle of the changelog engine: what a stream of changes folds to is what the same query answers in batch mode over the
//! rows that are there.
//!
//! A case is a seed. It gives tables, valid histories of their rows, a query over them, and points at which the stream is
//! compared. Each case runs plainly and in two drawn variations of epoch size, workers, and cuts at which the state is saved and
//! loaded into fresh operators. A case that fails is made smaller before it is shown.

mod history;
mod oracle;
mod query;
mod stream;

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use history::Table;
use query::Query;

/// How many queries a run has unless `LAKEHEAD_EQUIVALENCE_QUERIES` says otherwise.
const QUERY_COUNT: u64 = 1_500;

/// The seed unless `LAKEHEAD_EQUIVALENCE_SEED` gives another.
const SEED: u64 = 20_261_130;

/// A query over tables, with the numbers of changes after which the stream is compared; the last one is the end.
#[derive(Debug, Clone)]
struct Case {
    tables: Vec<Table>,
    query: Query,
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

impl Variation {
    const PLAIN: Variation = Variation { epoch: Some(1), workers: 1, is_cut: false };

    fn draw(rng: &mut StdRng) -> Variation {
        Variation {
            epoch: *[Some(1), Some(2), Some(7), Some(64), None].choose(rng).unwrap(),
            workers: rng.random_range(1..=3),
            is_cut: rng.random(),
        }
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
        Case { tables, query, checks }
    }

    /// Runs the case in a variation; None if all is well, or what is wrong. A query that is refused counts as well run if
    /// `refused` is told so.
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
    equal: u64,
    refused: std::collections::BTreeMap<String, u64>,
    pairs: std::collections::BTreeMap<(Variation, Variation), u64>,
    failures: Vec<String>,
}

fn run_seeds(seeds: impl Iterator<Item = u64>) -> Report {
    let mut report = Report::default();
    for seed in seeds {
        let mut rng = StdRng::seed_from_u64(seed ^ 0x5eed);
        let case = Case::draw(seed);
        let mut variations = vec![Variation::PLAIN, Variation::draw(&mut rng), Variation::draw(&mut rng)];
        variations[1..].sort();
        *report.pairs.entry((variations[1], variations[2])).or_default() += 1;
        for variation in variations {
            match case.run(variation) {
                Outcome::Equal => report.equal += 1,
                Outcome::Refused(reason) => {
                    *report.refused.entry(reason).or_default() += 1;
                    break;
                }
                Outcome::Wrong(reason) => {
                    let (small, reason) = case.clone().shrink(variation, reason);
                    report
                        .failures
                        .push(format!("seed {seed}, {variation:?}\n{}\n{reason}\n", small.describe()));
                    break;
                }
            }
        }
        if report.failures.len() >= 5 {
            break;
        }
    }
    report
}

impl Case {
    fn describe(&self) -> String {
        let tables: Vec<String> =
            self.tables.iter().filter(|t| self.query.reads(t)).map(Table::describe).collect();
        format!("{}\n{}", tables.join("\n"), self.query.sql(query::Mode::Streaming))
    }
}

#[test]
fn a_stream_folds_to_the_batch_answer() {
    let first = number_from_environment("LAKEHEAD_EQUIVALENCE_SEED", SEED);
    let count = number_from_environment("LAKEHEAD_EQUIVALENCE_QUERIES", QUERY_COUNT);
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let handles: Vec<_> = (0..threads)
        .map(|thread| {
            std::thread::Builder::new()
                .stack_size(64 << 20)
                .spawn(move || {
                    run_seeds((first..first + count).skip(thread as usize).step_by(threads as usize))
                })
                .unwrap()
        })
        .collect();
    let mut refused = std::collections::BTreeMap::new();
    let (mut equal, mut failures) = (0, Vec::new());
    for handle in handles {
        let report = handle.join().unwrap();
        equal += report.equal;
        failures.extend(report.failures);
        for (reason, times) in report.refused {
            *refused.entry(reason).or_insert(0) += times;
        }
    }
    let refusals: u64 = refused.values().sum();
    println!("seeds from {first}: {equal} runs equal, {refusals} queries refused: {refused:#?}");
    assert!(failures.is_empty(), "{} cases differ\n\n{}", failures.len(), failures.join("\n"));
    // A generator whose queries are refused tests nothing.
    assert!(refusals * 20 <= count, "too many queries are refused: {refused:#?}");
}
