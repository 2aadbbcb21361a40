//! Tests of Top-N: Flink's rows and kinds for single input rows, and a model that ranks all live rows anew for everything else.

use arrow::datatypes::DataType::{Float64, Int32, Int64, Utf8};
use arrow::datatypes::{Field, Schema, SchemaRef};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::testing::{Harness, Multiset, Random, TestInput, check, check_rules, fold, parse, schema};
use super::*;
use crate::plan::SortKey;

/// A small Top-N over `(k, v, x)`.
#[derive(Clone)]
struct Case {
    columns: SchemaRef,
    spec: TopNSpec,
}

impl Case {
    /// Orders by `v` from large to small, without partitions.
    fn new(strategy: TopNStrategy, last: u64) -> Case {
        let order = vec![SortKey { column: 1, is_ascending: false, nulls_first: false }];
        let spec = TopNSpec {
            partition: Vec::new(),
            order,
            first: 1,
            last,
            with_rank: false,
            strategy,
            emits_update_before: true,
        };
        Case { columns: schema(&[("k", Utf8), ("v", Int32), ("x", Float64)]), spec }
    }

    fn with(mut self, change: impl FnOnce(&mut TopNSpec)) -> Case {
        change(&mut self.spec);
        self
    }

    fn make(&self) -> TopN {
        let mut fields: Vec<Field> =
            self.columns.fields().iter().map(|field| field.as_ref().clone()).collect();
        if self.spec.with_rank {
            fields.push(Field::new("rn", Int64, false));
        }
        TopN::new(&self.spec, &self.columns, &Arc::new(Schema::new(fields))).unwrap()
    }

    fn input(&self) -> [TestInput; 1] {
        [TestInput::new(&self.columns, &self.spec.partition)]
    }

    fn check(&self, lines: &[&str], expected: &[&str]) {
        check(|| self.make(), &self.input(), lines, expected);
    }
}

fn append(last: u64) -> Case {
    Case::new(TopNStrategy::AppendFast, last)
}

fn update(last: u64) -> Case {
    Case::new(TopNStrategy::UpdateFast(vec![0]), last)
}

fn retract(last: u64) -> Case {
    Case::new(TopNStrategy::Retract, last)
}

#[test]
fn without_rank_a_row_that_enters_follows_the_one_that_leaves() {
    append(2).check(
        &["+I a 10 0.0", "+I b 20 0.0", "+I c 30 0.0", "+I d 5 0.0", "+I e 20 0.0"],
        &["+I a 10 0.0", "+I b 20 0.0", "-D a 10 0.0", "+I c 30 0.0"],
    );
}

#[test]
fn with_rank_every_rank_that_changes_is_updated() {
    append(2).with(|spec| spec.with_rank = true).check(
        &["+I a 10 0.0", "+I b 20 0.0", "+I c 30 0.0"],
        &[
            "+I a 10 0.0 1",
            "-U a 10 0.0 1",
            "+U b 20 0.0 1",
            "+I a 10 0.0 2",
            "-U b 20 0.0 1",
            "+U c 30 0.0 1",
            "-U a 10 0.0 2",
            "+U b 20 0.0 2",
        ],
    );
}

#[test]
fn the_first_row_alone_is_updated() {
    append(1).check(
        &["+I a 10 0.0", "+I b 5 0.0", "+I c 10 0.0", "+I d 30 0.0"],
        &["+I a 10 0.0", "-U a 10 0.0", "+U d 30 0.0"],
    );
    retract(1).check(&["+I a 10 0.0", "+I d 30 0.0"], &["+I a 10 0.0", "-D a 10 0.0", "+I d 30 0.0"]);
}

#[test]
fn a_row_that_is_taken_back_is_replaced_by_the_next() {
    retract(2).check(
        &["+I a 1 0.0", "+I b 2 0.0", "+I c 3 0.0", "-U c 3 0.0", "+U c 0 0.0", "-D b 2 0.0", "-D z 2 0.0"],
        &[
            "+I a 1 0.0",
            "+I b 2 0.0",
            "-D a 1 0.0",
            "+I c 3 0.0",
            "-D c 3 0.0",
            "+I a 1 0.0",
            "-D b 2 0.0",
            "+I c 0 0.0",
        ],
    );
    retract(2).with(|spec| spec.with_rank = true).check(
        &["+I a 1 0.0", "+I b 2 0.0", "+I c 3 0.0", "-D c 3 0.0", "-D b 2 0.0"],
        &[
            "+I a 1 0.0 1",
            "-U a 1 0.0 1",
            "+U b 2 0.0 1",
            "+I a 1 0.0 2",
            "-U b 2 0.0 1",
            "+U c 3 0.0 1",
            "-U a 1 0.0 2",
            "+U b 2 0.0 2",
            "-U c 3 0.0 1",
            "+U b 2 0.0 1",
            "-U b 2 0.0 2",
            "+U a 1 0.0 2",
            "-U b 2 0.0 1",
            "+U a 1 0.0 1",
            "-D a 1 0.0 2",
        ],
    );
}

#[test]
fn rows_that_are_left_out_at_the_front_push_the_others_along() {
    retract(3).with(|spec| spec.first = 2).check(
        &["+I a 1 0.0", "+I b 2 0.0", "+I c 3 0.0", "-D b 2 0.0"],
        &["+I a 1 0.0", "-U a 1 0.0", "+U b 2 0.0", "+I a 1 0.0", "-U b 2 0.0", "+U a 1 0.0", "-D a 1 0.0"],
    );
}

#[test]
fn a_newer_version_of_a_row_is_an_update() {
    update(2).check(
        &["+I a 1 0.0", "+I b 2 0.0", "-U a 1 0.0", "+U a 3 0.0", "+U a 3 1.5", "+I c 5 0.0", "+U b 4 0.0"],
        &[
            "+I a 1 0.0",
            "+I b 2 0.0",
            "-U a 1 0.0",
            "+U a 3 0.0",
            "-U a 3 0.0",
            "+U a 3 1.5",
            "-D b 2 0.0",
            "+I c 5 0.0",
            "-D a 3 1.5",
            "+I b 4 0.0",
        ],
    );
}

#[test]
fn no_earlier_version_is_named_where_nobody_wants_it() {
    update(2).with(|spec| spec.emits_update_before = false).check(
        &["+I a 1 0.0", "+I b 2 0.0", "+U a 3 0.0", "+I c 5 0.0"],
        &["+I a 1 0.0", "+I b 2 0.0", "+U a 3 0.0", "-D b 2 0.0", "+I c 5 0.0"],
    );
}

#[test]
fn an_epoch_takes_back_before_it_adds_and_says_nothing_of_what_is_as_it_was() {
    let case = retract(2).with(|spec| spec.with_rank = true);
    let mut operator = Harness::new(|| case.make(), &case.input());
    assert_eq!(operator.epoch(&["+I a 1 0.0", "+I b 2 0.0", "+I c 3 0.0"]), ["+I c 3 0.0 1", "+I b 2 0.0 2"]);
    assert_eq!(operator.epoch(&["-U c 3 0.0", "+U c 3 0.0"]), [""; 0]);
    assert_eq!(
        operator.epoch(&["-D c 3 0.0", "+I d 2 0.0"]),
        ["-U c 3 0.0 1", "-U b 2 0.0 2", "+U b 2 0.0 1", "+U d 2 0.0 2"]
    );
}

#[test]
fn nan_is_the_largest_and_null_stands_where_the_order_puts_it() {
    let by_x = |is_ascending, nulls_first| {
        append(6).with(|spec| spec.order = vec![SortKey { column: 2, is_ascending, nulls_first }])
    };
    let lines = ["+I a 1 NaN", "+I a 1 inf", "+I a 1 0.0", "+I a 1 NULL", "+I a 1 -0.0", "+I a 1 -inf"];
    let order = |case: Case| {
        let case = case.with(|spec| spec.with_rank = true);
        let shown = Harness::new(|| case.make(), &case.input()).epoch(&lines);
        shown.iter().map(|line| parse(line).2[2].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(order(by_x(true, true)), ["NULL", "-inf", "-0.0", "0.0", "inf", "NaN"]);
    assert_eq!(order(by_x(false, false)), ["NaN", "inf", "0.0", "-0.0", "-inf", "NULL"]);
}

#[test]
fn memory_is_given_back() {
    let case = retract(2).with(|spec| spec.partition = vec![0]);
    let mut operator = Harness::new(|| case.make(), &case.input());
    let rows: Vec<String> = (0..3_000).map(|v| format!("k{} {v} 0.5", v % 7)).collect();
    let lines = |kind| rows.iter().map(|row| format!("{kind} {row}")).collect::<Vec<_>>();
    operator.epoch(&lines("+I"));
    let full = operator.state_bytes();
    operator.epoch(&lines("-D"));
    let empty = operator.state_bytes();
    for _ in 0..5 {
        operator.epoch(&lines("+I"));
        operator.epoch(&lines("-D"));
    }
    assert!(empty < full && operator.state_bytes() <= empty * 2, "{empty} of {full}");
}

/// Ranks the live rows of every partition anew.
fn model(case: &Case, lines: &[String]) -> Multiset {
    let mut live: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    for line in lines {
        let (_, kind, values) = parse(line);
        let row: Vec<String> = values.into_iter().map(str::to_owned).collect();
        let key =
            case.spec.partition.iter().map(|column| row[*column].as_str()).collect::<Vec<_>>().join(" ");
        let rows = live.entry(key).or_default();
        match kind.is_retraction() {
            true => drop(rows.remove(rows.iter().position(|other| *other == row).unwrap())),
            false => rows.push(row),
        }
    }
    let mut result = Multiset::new();
    for rows in live.values_mut() {
        rows.sort_by(|a, b| compare(case, a, b));
        let (first, last) = (case.spec.first as usize, case.spec.last as usize);
        for rank in first..=last.min(rows.len()) {
            let mut row = rows[rank - 1].join(" ");
            if case.spec.with_rank {
                row += &format!(" {rank}");
            }
            *result.entry(row).or_default() += 1;
        }
    }
    result
}

fn compare(case: &Case, a: &[String], b: &[String]) -> Ordering {
    let by_key = |key: &SortKey| {
        let (a, b) = (a[key.column].as_str(), b[key.column].as_str());
        let by_value = || match case.columns.field(key.column).data_type() {
            Utf8 => a.trim_matches('\'').cmp(b.trim_matches('\'')),
            _ => a.parse::<f64>().unwrap().total_cmp(&b.parse().unwrap()),
        };
        match (a == "NULL", b == "NULL") {
            (true, true) => Ordering::Equal,
            (true, false) if key.nulls_first => Ordering::Less,
            (false, true) if !key.nulls_first => Ordering::Less,
            (true, false) | (false, true) => Ordering::Greater,
            _ if key.is_ascending => by_value(),
            _ => by_value().reverse(),
        }
    };
    case.spec.order.iter().map(by_key).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Draws an order, partitions, ranks and what comes out.
fn random_case(random: &mut Random, strategy: TopNStrategy) -> Case {
    let last = [1, 2, 3, 40][random.below(4)];
    Case::new(strategy, last).with(|spec| {
        spec.first = if random.chance(30) { 1 + random.below(last as usize) as u64 } else { 1 };
        spec.with_rank = random.chance(50);
        spec.partition = [vec![], vec![0], vec![0, 1]][random.below(3)].clone();
        spec.order = (0..1 + random.below(2))
            .map(|_| SortKey {
                column: random.below(3),
                is_ascending: random.chance(50),
                nulls_first: random.chance(50),
            })
            .collect();
    })
}

#[test]
fn the_result_is_that_of_ranking_all_live_rows() {
    let mut random = Random::new(13);
    for _ in 0..50 {
        let case = random_case(&mut random, TopNStrategy::Retract);
        let lines = random.changelog(&case.columns, &[], 150);
        let sum = check_rules(|| case.make(), &case.input(), &lines, &mut random);
        assert_eq!(sum, model(&case, &lines), "{:?} over {lines:#?}", case.spec);
    }
}

/// Runs epochs and restarts over an input that takes nothing back.
fn check_fast(case: &Case, lines: &[String], expected: &Multiset, random: &mut Random) {
    assert_eq!(
        fold(&Harness::new(|| case.make(), &case.input()).per_record(lines)),
        *expected,
        "{:?}",
        case.spec
    );
    let mut operator = Harness::new(|| case.make(), &case.input());
    let mut shown = Vec::new();
    for part in random.split(lines) {
        shown.extend(operator.epoch(part));
        if random.chance(30) {
            operator.restart(1 + random.below(3));
        }
    }
    assert_eq!(fold(&shown), *expected, "{:?} over {lines:#?}", case.spec);
    let ranked = case.clone().with(|spec| (spec.first, spec.with_rank) = (1, false));
    operator.checkpoint();
    assert_eq!(
        operator.saved(0).len() as i64,
        model(&ranked, lines).values().sum::<i64>(),
        "only ranked rows"
    );
}

#[test]
fn over_rows_that_are_only_added_the_best_are_enough() {
    let mut random = Random::new(17);
    for _ in 0..50 {
        let case = random_case(&mut random, TopNStrategy::AppendFast);
        let lines = random.inserts(&case.columns, 150);
        check_fast(&case, &lines, &model(&case, &lines), &mut random);
    }
}

#[test]
fn over_rows_that_only_move_forward_the_best_are_enough() {
    let mut random = Random::new(19);
    for _ in 0..50 {
        let case = random_case(&mut random, TopNStrategy::UpdateFast(vec![0])).with(|spec| {
            spec.partition = Vec::new();
            spec.order = vec![SortKey { column: 1, is_ascending: false, nulls_first: false }];
        });
        let (mut best, mut lines) = (BTreeMap::new(), Vec::new());
        for step in 0..150 {
            let key = format!("key{}", random.below(12));
            // A value that no other row has; it grows with every version of a key.
            let value = step * 3 + random.below(3);
            let now = format!("{key} {value} {}", random.value(&Float64));
            match best.insert(key, now.clone()) {
                None => lines.push(format!("+I {now}")),
                Some(before) => lines.extend([format!("-U {before}"), format!("+U {now}")]),
            }
        }
        check_fast(&case, &lines, &model(&case, &lines), &mut random);
    }
}
