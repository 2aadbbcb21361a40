//! The operator against Flink's answers, against a model that keeps all rows and computes anew, and against its own rules.
//!
//! The files of `tests/golden/group_aggregate` are what Flink 2.3 answered, row by row; the entries of multisets are sorted there.

use std::collections::BTreeMap;

use arrow::datatypes::{DataType as ArrowType, SchemaRef};

use super::super::testing::{
    Harness, Multiset, Random, TestInput, batch, check, check_rules, fold, lines, parse, schema,
};
use super::super::{EpochEnd, NO_WATERMARK, Operator, Output};
use super::{GroupAggregateOperator, LocalGroupAggregate};
use crate::options::AggregatePhaseStrategy;
use crate::plan::{AggregateCall, AggregateFunction, GroupAggregateSpec};
use crate::schema::{DataType, TypeRoot};

/// A call over columns of a schema, with the types that the binder gives.
fn call(input: &SchemaRef, function: AggregateFunction, argument: Option<usize>) -> AggregateCall {
    let own = argument.map(|argument| DataType::from_arrow(input.field(argument).data_type()).unwrap());
    let result_type = match (&function, &own) {
        (AggregateFunction::Count, _) | (_, None) => TypeRoot::BigInt.not_null(),
        (AggregateFunction::Collect, Some(own)) => TypeRoot::Multiset(Box::new(own.clone())).nullable(),
        (AggregateFunction::ArrayAgg, Some(own)) => TypeRoot::Array(Box::new(own.clone())).nullable(),
        (_, Some(own)) => own.clone(),
    };
    let argument_type = own.map(|own| if own.root.is_integer() { TypeRoot::BigInt.nullable() } else { own });
    AggregateCall {
        function,
        arguments: argument.into_iter().collect(),
        argument_type,
        filter: None,
        is_distinct: false,
        result_type,
    }
}

fn distinct(call: AggregateCall) -> AggregateCall {
    AggregateCall { is_distinct: true, ..call }
}

fn filtered(call: AggregateCall, filter: usize) -> AggregateCall {
    AggregateCall { filter: Some(filter), ..call }
}

/// Builds an operator whose `-U` are wanted.
fn operator(
    input: &SchemaRef,
    keys: &[usize],
    calls: &[AggregateCall],
    retracts: bool,
) -> GroupAggregateOperator {
    let output = output(input, keys, calls);
    GroupAggregateOperator::new(&spec(keys, calls, retracts), &[SchemaRef::clone(input)], &output).unwrap()
}

fn spec(keys: &[usize], calls: &[AggregateCall], retracts: bool) -> GroupAggregateSpec {
    GroupAggregateSpec {
        keys: keys.to_vec(),
        calls: calls.to_vec(),
        input_retracts: retracts,
        emits_update_before: true,
        phase_strategy: AggregatePhaseStrategy::TwoPhase,
    }
}

fn output(input: &SchemaRef, keys: &[usize], calls: &[AggregateCall]) -> SchemaRef {
    let mut columns: Vec<(String, ArrowType)> = keys
        .iter()
        .map(|key| (input.field(*key).name().clone(), input.field(*key).data_type().clone()))
        .collect();
    columns
        .extend(calls.iter().enumerate().map(|(n, call)| (format!("c{n}#7"), call.result_type.to_arrow())));
    let columns: Vec<(&str, ArrowType)> =
        columns.iter().map(|(name, data_type)| (name.as_str(), data_type.clone())).collect();
    schema(&columns)
}

mod goldens {
    use super::*;
    use AggregateFunction::*;

    const CDC: &str = include_str!("../../../../tests/golden/group_aggregate/cdc.in");
    const EV: &str = include_str!("../../../../tests/golden/group_aggregate/ev.in");

    fn cdc() -> SchemaRef {
        schema(&[
            ("id", ArrowType::Int32),
            ("grp", ArrowType::Utf8),
            ("amt", ArrowType::Int32),
            ("price", ArrowType::Float64),
            ("large", ArrowType::Boolean),
            ("small", ArrowType::Boolean),
        ])
    }

    fn ev() -> SchemaRef {
        schema(&[
            ("id", ArrowType::Int32),
            ("k", ArrowType::Utf8),
            ("v", ArrowType::Int32),
            ("large", ArrowType::Boolean),
            ("small", ArrowType::Boolean),
        ])
    }

    /// Checks rows and kinds of single records, and the sum of larger epochs.
    fn agrees(input: &SchemaRef, text: &str, calls: &[AggregateCall], expected: &str) {
        let lines: Vec<&str> = text.lines().collect();
        let retracts = lines.iter().any(|line| !line.starts_with("+I"));
        let expected: Vec<&str> = expected.lines().collect();
        let inputs = [TestInput::new(input, &[1])];
        let make = || operator(input, &[1], calls, retracts);
        check(make, &inputs, &lines, &expected);
        for size in [2, 7, 64, 1000] {
            let out = Harness::new(make, &inputs).in_epochs(&lines, size);
            assert_eq!(fold(&out), fold(&expected), "epochs of {size}");
        }
    }

    #[test]
    fn numbers_over_a_changelog() {
        let input = cdc();
        let of = |function| call(&input, function, Some(2));
        let calls = [call(&input, Count, None), of(Count), of(Sum), of(Average), of(Min), of(Max)];
        agrees(&input, CDC, &calls, include_str!("../../../../tests/golden/group_aggregate/numbers.out"));
    }

    #[test]
    fn distinct_over_a_changelog_and_over_inserts() {
        let calls = |input: &SchemaRef| [Count, Sum].map(|function| distinct(call(input, function, Some(2))));
        let expected = include_str!("../../../../tests/golden/group_aggregate/distinct.out");
        agrees(&cdc(), CDC, &calls(&cdc()), expected);
        let expected = include_str!("../../../../tests/golden/group_aggregate/distinct_inserts.out");
        agrees(&ev(), EV, &calls(&ev()), expected);
    }

    #[test]
    fn filter_over_a_changelog_and_over_inserts() {
        let calls = |input: &SchemaRef, large| {
            [filtered(call(input, Count, None), large), filtered(call(input, Max, Some(2)), large + 1)]
        };
        let expected = include_str!("../../../../tests/golden/group_aggregate/filter.out");
        agrees(&cdc(), CDC, &calls(&cdc(), 4), expected);
        let expected = include_str!("../../../../tests/golden/group_aggregate/filter_inserts.out");
        agrees(&ev(), EV, &calls(&ev(), 3), expected);
    }

    #[test]
    fn first_and_last_value_over_a_changelog() {
        let input = cdc();
        let calls = [call(&input, FirstValue, Some(3)), call(&input, LastValue, Some(3))];
        agrees(&input, CDC, &calls, include_str!("../../../../tests/golden/group_aggregate/first_last.out"));
    }

    #[test]
    fn collections_over_a_changelog() {
        let input = cdc();
        let calls = [call(&input, Collect, Some(2))];
        agrees(&input, CDC, &calls, include_str!("../../../../tests/golden/group_aggregate/collect.out"));
        let calls = [call(&input, ArrayAgg, Some(0))];
        agrees(&input, CDC, &calls, include_str!("../../../../tests/golden/group_aggregate/array_agg.out"));
    }

    #[test]
    fn deviation_and_variance_of_integers_are_integers() {
        let input = ev();
        let calls = [call(&input, DeviationPopulation, Some(2)), call(&input, VarianceSample, Some(2))];
        let expected = include_str!("../../../../tests/golden/group_aggregate/deviation.out");
        // The variance of 17, 15, 8 and 74 is 935. Flink adds up doubles value by value, comes to a little less, and cuts it; ours
        // is exact, whatever the order of the rows.
        agrees(&input, EV, &calls, &expected.replace("black 26 934", "black 26 935"));
    }

    const SMALL: [&str; 10] = [
        "+I 1 a 10",
        "+I 2 a 20",
        "-U 1 a 10",
        "+U 1 b 11",
        "-U 2 a 20",
        "+U 2 a 20",
        "-D 2 a 20",
        "-D 9 z 1",
        "+I 1 b 11",
        "+I 3 NULL NULL",
    ];

    fn small() -> SchemaRef {
        schema(&[("id", ArrowType::Int32), ("k", ArrowType::Utf8), ("v", ArrowType::Utf8)])
    }

    #[test]
    fn lists_are_joined_again_when_a_value_goes() {
        let input = small();
        let calls = [call(&input, Count, None), call(&input, ListAgg(",".to_owned()), Some(2))];
        check(
            || operator(&input, &[1], &calls, true),
            &[TestInput::new(&input, &[1])],
            &SMALL,
            &[
                "+I a 1 10",
                "-U a 1 10",
                "+U a 2 10,20",
                "-U a 2 10,20",
                "+U a 1 20",
                "+I b 1 11",
                "-D a 1 20",
                "+I a 1 20",
                "-D a 1 20",
                "-U b 1 11",
                "+U b 2 11,11",
                "+I NULL 1 NULL",
            ],
        );
    }

    #[test]
    fn a_stray_retraction_can_end_a_global_group_and_leaves_nothing_behind() {
        let input = schema(&[("id", ArrowType::Int32), ("k", ArrowType::Utf8), ("v", ArrowType::Int32)]);
        let calls = [call(&input, Count, None), call(&input, Sum, Some(2)), call(&input, Max, Some(2))];
        let make = || operator(&input, &[], &calls, true);
        let inputs = [TestInput::new(&input, &[])];
        let expected = [
            "+I 1 10 10",
            "-U 1 10 10",
            "+U 2 30 20",
            "-U 2 30 20",
            "+U 1 20 20",
            "-U 1 20 20",
            "+U 2 31 20",
            "-U 2 31 20",
            "+U 1 11 11",
            "-U 1 11 11",
            "+U 2 31 20",
            "-U 2 31 20",
            "+U 1 11 11",
            "-D 1 11 11",
            "+I 1 11 11",
            "-U 1 11 11",
            "+U 2 11 11",
        ];
        check(make, &inputs, &SMALL, &expected);
        for size in [2, 3, 10] {
            assert_eq!(fold(&Harness::new(make, &inputs).in_epochs(&SMALL, size)), fold(&expected));
        }
        assert!(Harness::new(make, &inputs).epoch(&["-D 1 a 10"]).is_empty(), "nothing to take back from");
    }

    #[test]
    fn distinct_counts_and_first_values_of_a_global_group() {
        let input = schema(&[("id", ArrowType::Int32), ("k", ArrowType::Utf8), ("v", ArrowType::Int32)]);
        let of = |function| call(&input, function, Some(2));
        let calls = [distinct(call(&input, Count, Some(1))), of(FirstValue), of(LastValue)];
        check(
            || operator(&input, &[], &calls, true),
            &[TestInput::new(&input, &[])],
            &SMALL,
            &[
                "+I 1 10 10",
                "-U 1 10 10",
                "+U 1 10 20",
                "-U 1 10 20",
                "+U 1 20 20",
                "-U 1 20 20",
                "+U 2 20 11",
                "-U 2 20 11",
                "+U 1 11 11",
                "-U 1 11 11",
                "+U 2 11 20",
                "-U 2 11 20",
                "+U 1 11 11",
                "-D 1 11 11",
                "+I 1 11 11",
            ],
        );
    }

    #[test]
    fn distinct_rows_are_groups_without_aggregates() {
        let input = small();
        check(
            || operator(&input, &[1], &[], true),
            &[TestInput::new(&input, &[1])],
            &SMALL,
            &["+I a", "+I b", "-D a", "+I a", "-D a", "+I NULL"],
        );
    }
}

/// A row of the model: group, number, text, double, whether it counts.
fn model_schema() -> SchemaRef {
    schema(&[
        ("k", ArrowType::Int32),
        ("n", ArrowType::Int32),
        ("t", ArrowType::Utf8),
        ("d", ArrowType::Float64),
        ("f", ArrowType::Boolean),
    ])
}

/// Groups with the values that each call has accumulated, in order, all as text.
struct Model {
    calls: Vec<AggregateCall>,
    groups: BTreeMap<String, (usize, Vec<Vec<String>>)>,
    /// For DISTINCT how often a value is there.
    counts: BTreeMap<(String, usize, String), usize>,
}

impl Model {
    fn apply(&mut self, line: &str) {
        let (_, kind, values) = parse(line);
        let key = values[0].to_owned();
        let group = self.groups.entry(key.clone()).or_insert_with(|| (0, vec![Vec::new(); self.calls.len()]));
        if kind.is_retraction() {
            group.0 -= 1;
        } else {
            group.0 += 1;
        }
        for (number, call) in self.calls.iter().enumerate() {
            if call.filter.is_some_and(|filter| values[filter] != "true") {
                continue;
            }
            let value = call.arguments.first().map_or("*", |argument| values[*argument]);
            let list = &mut group.1[number];
            if call.is_distinct {
                let count = self.counts.entry((key.clone(), number, value.to_owned())).or_default();
                if kind.is_retraction() {
                    *count -= 1;
                } else {
                    *count += 1;
                }
                if *count != usize::from(!kind.is_retraction()) {
                    continue;
                }
            }
            if kind.is_retraction() {
                list.remove(list.iter().position(|held| held == value).unwrap());
            } else {
                list.push(value.to_owned());
            }
        }
        if group.0 == 0 {
            self.groups.remove(&key);
        }
    }

    fn rows(&self) -> Multiset {
        let row = |(key, (_, lists)): (&String, &(usize, Vec<Vec<String>>))| {
            let results = self.calls.iter().zip(lists).map(|(call, list)| result(call, list));
            (std::iter::once(key.clone()).chain(results).collect::<Vec<_>>().join(" "), 1)
        };
        self.groups.iter().map(row).collect()
    }
}

/// Computes an aggregate from its values.
fn result(call: &AggregateCall, list: &[String]) -> String {
    use AggregateFunction as Function;
    let present: Vec<&String> = list.iter().filter(|value| *value != "NULL").collect();
    match &call.function {
        Function::Count => return present.len().to_string(),
        Function::ArrayAgg if list.is_empty() => return "NULL".to_owned(),
        Function::ArrayAgg => {
            let shown: Vec<&str> = list.iter().map(|value| if value == "''" { "" } else { value }).collect();
            return format!("[{}]", shown.join(","));
        }
        Function::Collect => {
            let mut counts: BTreeMap<Comparable, usize> = BTreeMap::new();
            for value in present {
                *counts.entry(Comparable::of(call, value)).or_default() += 1;
            }
            let entries: Vec<String> =
                counts.iter().map(|(value, count)| format!("{}:{count}", value.text)).collect();
            return format!("{{{}}}", entries.join(","));
        }
        _ if present.is_empty() => return "NULL".to_owned(),
        Function::FirstValue => return present[0].clone(),
        Function::LastValue => return present[present.len() - 1].clone(),
        Function::ListAgg(separator) => {
            let texts: Vec<&str> =
                present.iter().map(|value| if *value == "''" { "" } else { value.as_str() }).collect();
            let joined = texts.join(separator);
            return if joined.is_empty() { "''".to_owned() } else { joined };
        }
        Function::Min | Function::Max => {
            let mut values: Vec<Comparable> =
                present.into_iter().map(|value| Comparable::of(call, value)).collect();
            values.sort();
            let at = if call.function == Function::Min { 0 } else { values.len() - 1 };
            return if values[at].text.is_empty() { "''".to_owned() } else { values[at].text.clone() };
        }
        _ => {}
    }
    if call.arguments == [3] {
        let sum: f64 = present.iter().map(|value| value.parse::<f64>().unwrap()).fold(0.0, |sum, v| sum + v);
        let value = if call.function == Function::Sum { sum } else { sum / present.len() as f64 };
        return format!("{value:?}");
    }
    let numbers: Vec<i64> = present.iter().map(|value| value.parse().unwrap()).collect();
    let (sum, count) = (numbers.iter().sum::<i64>(), numbers.len() as i64);
    let mean = sum as f64 / count as f64;
    let square_sum: f64 = numbers.iter().map(|n| (*n as f64 - mean).powi(2)).sum();
    // What rounding makes a little less than a whole number is that number.
    let cut = |value: f64| ((value + 1e-9) as i64).to_string();
    match &call.function {
        Function::Sum => sum.to_string(),
        Function::Average => (sum / count).to_string(),
        Function::VariancePopulation => cut(square_sum / count as f64),
        Function::DeviationPopulation => cut((square_sum / count as f64).sqrt()),
        _ if count == 1 => "NULL".to_owned(),
        Function::VarianceSample => cut(square_sum / (count - 1) as f64),
        Function::DeviationSample => cut((square_sum / (count - 1) as f64).sqrt()),
        other => panic!("{other:?} has no model"),
    }
}

/// A value in the order of its type.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Comparable {
    bits: i64,
    text: String,
}

impl Comparable {
    fn of(call: &AggregateCall, value: &str) -> Comparable {
        let bits = match call.arguments[0] {
            1 => value.parse().unwrap(),
            3 => {
                let bits = value.parse::<f64>().unwrap().to_bits() as i64;
                bits ^ (((bits >> 63) as u64) >> 1) as i64
            }
            _ => 0,
        };
        let text = if value == "''" { String::new() } else { value.to_owned() };
        Comparable { bits, text }
    }
}

/// Every function over the columns that it takes.
fn every_call() -> Vec<AggregateCall> {
    use AggregateFunction::*;
    let input = model_schema();
    let mut calls = vec![call(&input, Count, None)];
    for column in [1, 2, 3] {
        for function in [Count, Min, Max, FirstValue, LastValue, Collect, ArrayAgg] {
            calls.push(call(&input, function, Some(column)));
        }
    }
    for function in [Sum, Average] {
        calls.extend([1, 3].map(|column| call(&input, function.clone(), Some(column))));
    }
    for function in [VariancePopulation, VarianceSample, DeviationPopulation, DeviationSample] {
        calls.push(call(&input, function, Some(1)));
    }
    calls.push(call(&input, ListAgg("-".to_owned()), Some(2)));
    calls
}

/// Checks calls against the model after every epoch, and against the rules of all operators.
fn agrees_with_model(calls: &[AggregateCall], retracts: bool, seed: u64) {
    let input = model_schema();
    let mut random = Random::new(seed);
    let lines = if retracts { random.changelog(&input, &[], 90) } else { random.inserts(&input, 60) };
    let inputs = [TestInput::new(&input, &[0])];
    let make = || operator(&input, &[0], calls, retracts);
    let mut model = Model { calls: calls.to_vec(), groups: BTreeMap::new(), counts: BTreeMap::new() };
    let mut harness = Harness::new(make, &inputs);
    let mut out = Vec::new();
    for part in random.split(&lines) {
        part.iter().for_each(|line| model.apply(line));
        out.extend(harness.epoch(part));
        assert_eq!(fold(&out), model.rows(), "{calls:?}\n{}", lines.join("\n"));
        if random.chance(15) {
            harness.restart(1 + random.below(3));
        }
    }
    if retracts {
        check_rules(make, &inputs, &lines, &mut random);
    }
}

#[test]
fn every_function_agrees_with_a_model_distinct_filtered_and_retracted() {
    let mut seed = 0;
    for plain in every_call() {
        for is_distinct in [false, true] {
            for filter in [None, Some(4)] {
                let call = AggregateCall { filter, is_distinct, ..plain.clone() };
                if is_distinct && call.arguments.is_empty() {
                    continue;
                }
                for retracts in [false, true] {
                    seed += 1;
                    agrees_with_model(std::slice::from_ref(&call), retracts, seed);
                }
            }
        }
    }
}

#[test]
fn many_calls_share_their_tables() {
    let all = every_call().into_iter().flat_map(|call| {
        let with_filter = filtered(call.clone(), 4);
        let mut calls = vec![call.clone(), with_filter.clone()];
        if !call.arguments.is_empty() {
            calls.extend([distinct(call), distinct(with_filter)]);
        }
        calls
    });
    let all: Vec<AggregateCall> = all.collect();
    let mut random = Random::new(11);
    for seed in 0..12 {
        let calls: Vec<AggregateCall> = (0..12).map(|_| all[random.below(all.len())].clone()).collect();
        agrees_with_model(&calls, seed % 3 != 0, 1000 + seed);
    }
}

/// Runs one epoch of several batches.
fn epoch_of(operator: &mut GroupAggregateOperator, input: &SchemaRef, batches: &[&[String]]) -> Vec<String> {
    let mut output = Output::default();
    for lines in batches {
        operator.process(0, super::super::testing::batch(input, lines), &mut output).unwrap();
    }
    let end = EpochEnd { number: 1, time_ms: 0, watermark: NO_WATERMARK, is_last: false };
    operator.end_epoch(&end, &mut output).unwrap();
    let batches: Vec<_> = output.drain().collect();
    assert!(batches.iter().all(|batch| batch.row_count() <= 8192));
    batches.iter().flat_map(super::super::testing::lines).collect()
}

#[test]
fn an_epoch_of_several_batches_adds_up_to_its_rows() {
    let input = model_schema();
    let all = every_call();
    for seed in 0..30 {
        let mut random = Random::new(500 + seed);
        let calls: Vec<AggregateCall> = (0..6)
            .map(|_| {
                let call = all[random.below(all.len())].clone();
                let is_distinct = random.chance(40) && !call.arguments.is_empty();
                AggregateCall { is_distinct, filter: random.chance(30).then_some(4), ..call }
            })
            .collect();
        let lines = random.changelog(&input, &[], 80);
        let mut operator = operator(&input, &[0], &calls, true);
        let mut model = Model { calls, groups: BTreeMap::new(), counts: BTreeMap::new() };
        let mut out = Vec::new();
        for epoch in random.split(&lines) {
            epoch.iter().for_each(|line| model.apply(line));
            out.extend(epoch_of(&mut operator, &input, &random.split(epoch)));
            assert_eq!(fold(&out), model.rows(), "{:?}\n{}", model.calls, lines.join("\n"));
        }
        let retractions = super::super::testing::retractions(&lines);
        out.extend(epoch_of(&mut operator, &input, &random.split(&retractions)));
        assert_eq!(fold(&out), Multiset::new());
    }
}

#[test]
fn many_groups_leave_in_batches_and_in_the_order_of_their_first_row() {
    let input = schema(&[("k", ArrowType::Int32), ("v", ArrowType::Int32)]);
    let calls = [call(&input, AggregateFunction::Sum, Some(1))];
    let mut operator = operator(&input, &[0], &calls, true);
    let keys: Vec<usize> = (0..9000).map(|n| n * 7 % 9000 + n / 9000).collect();
    let inserts: Vec<String> = keys.iter().map(|key| format!("+I {key} 1")).collect();
    assert_eq!(epoch_of(&mut operator, &input, &[&inserts]), inserts);
    let updates = epoch_of(&mut operator, &input, &[&inserts[..4000], &inserts[4000..]]);
    let expected: Vec<String> =
        keys.iter().flat_map(|key| [format!("-U {key} 1"), format!("+U {key} 2")]).collect();
    assert_eq!(updates, expected);
}

#[test]
fn a_large_group_finds_its_next_extreme_each_time() {
    use AggregateFunction::{Max, Min};
    let input = schema(&[("v", ArrowType::Int32)]);
    let calls = [call(&input, Min, Some(0)), call(&input, Max, Some(0))];
    let make = || operator(&input, &[], &calls, true);
    let mut harness = Harness::new(make, &[TestInput::new(&input, &[])]);
    let numbers: Vec<usize> = (0..400).map(|n| n * 263 % 400).collect();
    let lines: Vec<String> = numbers.iter().map(|n| format!("+I {n}")).collect();
    assert_eq!(harness.epoch(&lines), ["+I 0 399"]);
    // The largest go, one by one, while smaller ones go and come back.
    for n in (200..400).rev() {
        let out = harness.epoch(&[format!("-D {n}"), format!("-D {}", n - 150), format!("+I {}", n - 150)]);
        assert_eq!(out, [format!("-U 0 {n}"), format!("+U 0 {}", n - 1)]);
        if n % 50 == 0 {
            harness.checkpoint();
        }
    }
    harness.restart(1);
    assert_eq!(harness.epoch(&["-D 0", "-D 199"]), ["-U 0 199", "+U 1 198"]);
    let rest: Vec<String> = (1..199).map(|n| format!("-D {n}")).collect();
    assert_eq!(harness.epoch(&rest), ["-D 1 198"]);
    harness.checkpoint();
    assert!(harness.saved(0).is_empty() && harness.saved(1).is_empty());
}

#[test]
fn a_single_value_gives_way_to_the_next_but_not_to_a_second() {
    let input = schema(&[("v", ArrowType::Int32)]);
    let calls = [call(&input, AggregateFunction::SingleValue, Some(0))];
    let make = || operator(&input, &[], &calls, true);
    check(
        make,
        &[TestInput::new(&input, &[])],
        &["+I 7", "-U 7", "+U NULL", "-D NULL"],
        &["+I 7", "-D 7", "+I NULL", "-D NULL"],
    );
    let mut operator = make();
    let mut output = Output::default();
    let batch = batch(&input, &["+I 7", "+I 7"]);
    operator.process(0, batch, &mut output).unwrap();
    let end = EpochEnd { number: 1, time_ms: 0, watermark: NO_WATERMARK, is_last: false };
    let error = operator.end_epoch(&end, &mut output).unwrap_err();
    assert_eq!(error.message(), "SingleValueAggFunction received more than one element.");
}

/// Ends an epoch and returns its changes, sorted.
fn end_epoch(operator: &mut GroupAggregateOperator, number: u64) -> Vec<String> {
    let mut output = Output::default();
    let end = EpochEnd { number, time_ms: 0, watermark: NO_WATERMARK, is_last: false };
    operator.end_epoch(&end, &mut output).unwrap();
    let mut changes: Vec<String> = output.drain().flat_map(|batch| lines(&batch)).collect();
    changes.sort_unstable();
    changes
}

#[test]
fn groups_that_workers_have_made_of_rows_add_up_to_those_of_all_rows() {
    use AggregateFunction::*;
    let input = schema(&[
        ("k", ArrowType::Utf8),
        ("i", ArrowType::Int64),
        ("d", ArrowType::Float64),
        ("m", ArrowType::Decimal128(38, 0)),
        ("b", ArrowType::Boolean),
    ]);
    let mut calls = vec![call(&input, Count, None), call(&input, Count, Some(4))];
    calls.extend(
        [Sum, Average, Min, Max]
            .iter()
            .flat_map(|function| [1, 2, 3].map(|column| call(&input, function.clone(), Some(column)))),
    );
    calls.extend([call(&input, Max, Some(0)), call(&input, VariancePopulation, Some(1))]);
    calls.push(filtered(call(&input, Sum, Some(1)), 4));
    let mut random = Random::new(31);
    let of = |random: &mut Random, values: &[&'static str]| values[random.below(values.len())];
    for keys in [&[0][..], &[0, 4], &[]] {
        let make = || operator(&input, keys, &calls, false);
        let local =
            || LocalGroupAggregate::new(&spec(keys, &calls, false), &input, &output(&input, keys, &calls));
        let (mut one_phase, mut two_phases) = (make(), make());
        let mut locals = [local().unwrap().unwrap(), local().unwrap().unwrap()];
        for number in 0..20 {
            for _ in 0..random.below(8) {
                let rows: Vec<String> = (0..random.below(9))
                    .map(|_| {
                        format!(
                            "+I {} {} {} {} {}",
                            of(&mut random, &["a", "b", "NULL"]),
                            of(&mut random, &["9223372036854775807", "-3", "2", "NULL"]),
                            of(&mut random, &["NaN", "inf", "-inf", "1.5", "-0.25", "0.5", "2.0", "NULL"]),
                            of(&mut random, &["99999999999999999999999999999999999999", "-7", "NULL"]),
                            of(&mut random, &["true", "false"]),
                        )
                    })
                    .collect();
                let rows = batch(&input, &rows);
                let mut nothing = Output::default();
                one_phase.process(GroupAggregateOperator::ROWS, rows.clone(), &mut nothing).unwrap();
                match locals.get_mut(random.below(3)) {
                    Some(local) => assert!(local.take(&rows).unwrap()),
                    None => two_phases.process(GroupAggregateOperator::ROWS, rows, &mut nothing).unwrap(),
                }
            }
            for local in &mut locals {
                if let Some(groups) = local.take_groups().unwrap() {
                    let mut nothing = Output::default();
                    two_phases.process(GroupAggregateOperator::GROUPS, groups, &mut nothing).unwrap();
                }
                assert!(local.take_groups().unwrap().is_none(), "nothing is handed over twice");
            }
            let expected = end_epoch(&mut one_phase, number);
            assert_eq!(end_epoch(&mut two_phases, number), expected, "{keys:?}, epoch {number}");
        }
    }
}

#[test]
fn what_depends_on_the_order_of_rows_or_is_taken_back_has_one_phase() {
    use AggregateFunction::*;
    let input = schema(&[("k", ArrowType::Int32), ("v", ArrowType::Int32)]);
    let has_two = |call: AggregateCall, retracts: bool| {
        let calls = [call];
        let output = output(&input, &[0], &calls);
        LocalGroupAggregate::new(&spec(&[0], &calls, retracts), &input, &output).unwrap().is_some()
    };
    assert!(has_two(call(&input, Sum, Some(1)), false));
    assert!(has_two(distinct(call(&input, Max, Some(1))), false));
    assert!(!has_two(call(&input, Sum, Some(1)), true));
    assert!(!has_two(distinct(call(&input, Sum, Some(1))), false));
    assert!(!has_two(call(&input, FirstValue, Some(1)), false));
}

#[test]
fn update_before_is_left_out_where_nobody_wants_it() {
    let input = schema(&[("k", ArrowType::Int32), ("v", ArrowType::Int32)]);
    let calls = [call(&input, AggregateFunction::Sum, Some(1))];
    let spec = GroupAggregateSpec {
        keys: vec![0],
        calls: calls.to_vec(),
        input_retracts: true,
        emits_update_before: false,
        phase_strategy: AggregatePhaseStrategy::Auto,
    };
    let output = schema(&[("k", ArrowType::Int32), ("s", ArrowType::Int32)]);
    check(
        || GroupAggregateOperator::new(&spec, &[SchemaRef::clone(&input)], &output).unwrap(),
        &[TestInput::new(&input, &[0])],
        &["+I 1 2147483647", "+I 1 1", "-D 1 2147483647", "+I 1 0", "-D 1 1", "-D 1 0"],
        &["+I 1 2147483647", "+U 1 -2147483648", "+U 1 1", "+U 1 0", "-D 1 0"],
    );
}

#[test]
fn a_decimal_that_overflows_for_a_while_comes_back() {
    let input = schema(&[("d", ArrowType::Decimal128(38, 0))]);
    let decimal = TypeRoot::Decimal(38, 0).nullable();
    let sum = AggregateCall {
        argument_type: Some(decimal.clone()),
        result_type: decimal,
        ..call(&input, AggregateFunction::Sum, Some(0))
    };
    let large = "99999999999999999999999999999999999999";
    check(
        || operator(&input, &[], std::slice::from_ref(&sum), true),
        &[TestInput::new(&input, &[])],
        &[&format!("+I {large}"), "+I 1", &format!("+I {large}"), "-D 1", &format!("-D {large}")],
        &[&format!("+I {large}"), &format!("-U {large}"), "+U NULL", "-U NULL", &format!("+U {large}")],
    );
}

#[test]
fn nan_is_the_largest_whatever_its_sign() {
    use arrow::array::{Float64Array, RecordBatch};
    let input = schema(&[("d", ArrowType::Float64)]);
    let calls =
        [AggregateFunction::Min, AggregateFunction::Max].map(|function| call(&input, function, Some(0)));
    for retracts in [false, true] {
        let mut operator = operator(&input, &[], &calls, retracts);
        let values = Float64Array::from(vec![1.0, -f64::NAN, f64::NEG_INFINITY]);
        let batch =
            RecordBatch::try_new(SchemaRef::clone(&input), vec![std::sync::Arc::new(values)]).unwrap();
        let mut output = Output::default();
        operator.process(0, crate::changelog::ChangelogBatch::inserts(batch), &mut output).unwrap();
        let end = EpochEnd { number: 1, time_ms: 0, watermark: NO_WATERMARK, is_last: false };
        operator.end_epoch(&end, &mut output).unwrap();
        let lines: Vec<String> =
            output.drain().flat_map(|batch| super::super::testing::lines(&batch)).collect();
        assert_eq!(lines, ["+I -inf NaN"]);
    }
}

#[test]
fn state_grows_with_groups_and_not_with_rows() {
    let input = schema(&[("k", ArrowType::Int32), ("v", ArrowType::Int32)]);
    let calls = [call(&input, AggregateFunction::Sum, Some(1))];
    let make = || operator(&input, &[0], &calls, true);
    let mut harness = Harness::new(make, &[TestInput::new(&input, &[0])]);
    let lines: Vec<String> = (0..1000).map(|n| format!("+I {} {n}", n % 10)).collect();
    harness.epoch(&lines);
    let few = harness.state_bytes();
    harness.epoch(&lines);
    assert_eq!(harness.state_bytes(), few);
    let lines: Vec<String> = (0..1000).map(|n| format!("+I {n} {n}")).collect();
    harness.epoch(&lines);
    assert!(harness.state_bytes() > few + 990 * 40, "{} after {few}", harness.state_bytes());
}
