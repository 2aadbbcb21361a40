//! Joins by their rules: Flink's rows in Flink's order for single rows, and a naive model for everything else.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::{DFSchema, ToDFSchema};
use datafusion::logical_expr::{Expr, col};

use super::super::testing::{
    Harness, Multiset, Random, TestInput, batch, check, check_rules, fold, lines, parse, schema,
};
use super::super::{Operator, Output};
use super::{JoinOperator, MultiJoinOperator};
use crate::changelog::{ChangelogBatch, ChangelogMode, RowKind};
use crate::plan::{GraphNode, JoinKey, JoinKind, JoinSide, JoinSpec, JoinUniqueness, OperatorSpec};

const KINDS: [JoinKind; 6] =
    [JoinKind::Inner, JoinKind::Left, JoinKind::Right, JoinKind::Full, JoinKind::Semi, JoinKind::Anti];

/// A join of `l(k, lid, lv)` and `r(k, rid, rv)` and how it is to be fed.
struct Case {
    spec: JoinSpec,
    inputs: [SchemaRef; 2],
    output: SchemaRef,
}

fn case(kind: JoinKind, key_type: &DataType) -> Case {
    let columns = |side: &str| {
        let names = [format!("{side}k"), format!("{side}id"), format!("{side}v")];
        let types = [key_type.clone(), DataType::Int32, DataType::Utf8];
        schema(&names.iter().map(String::as_str).zip(types).collect::<Vec<_>>())
    };
    let inputs = [columns("l"), columns("r")];
    let pair: Vec<_> = inputs.iter().flat_map(|input| input.fields().iter().cloned()).collect();
    let pair = Arc::new(arrow::datatypes::Schema::new(pair));
    let is_membership = matches!(kind, JoinKind::Semi | JoinKind::Anti);
    let side = JoinSide { uniqueness: JoinUniqueness::None, is_insert_only: false };
    let spec = JoinSpec {
        kind,
        keys: vec![JoinKey { left: 0, right: 0, is_null_safe: false }],
        residual: None,
        pair_schema: Arc::new(DFSchema::try_from(Arc::clone(&pair)).unwrap()),
        is_null_aware: false,
        sides: [side.clone(), side],
    };
    let output = if is_membership { Arc::clone(&inputs[0]) } else { pair };
    Case { spec, inputs, output }
}

impl Case {
    fn make(&self) -> JoinOperator {
        self.make_with([ChangelogMode::ALL; 2])
    }

    fn make_with(&self, modes: [ChangelogMode; 2]) -> JoinOperator {
        let [left, right] = [0, 1].map(|input| node(&self.inputs[input], modes[input], &[]));
        JoinOperator::new(&self.spec, &[&left, &right], &self.output).unwrap()
    }

    /// The inputs as they are distributed.
    fn test_inputs(&self) -> Vec<TestInput> {
        let keyed = !self.spec.is_null_aware && !self.spec.keys.is_empty();
        self.inputs.iter().map(|input| TestInput::new(input, if keyed { &[0] } else { &[] })).collect()
    }

    fn check(&self, lines: &[&str], expected: &[&str]) {
        check(|| self.make(), &self.test_inputs(), lines, expected);
    }
}

/// A node that sends rows of this schema.
fn node(schema: &SchemaRef, mode: ChangelogMode, unique_keys: &[Vec<usize>]) -> GraphNode {
    GraphNode {
        spec: OperatorSpec::Union,
        inputs: Vec::new(),
        schema: Arc::new(DFSchema::try_from(Arc::clone(schema)).unwrap()),
        mode,
        unique_keys: unique_keys.to_vec(),
        uid: String::new(),
    }
}

/// `lid < rid`, the residual of these tests.
fn residual() -> Expr {
    col("lid").lt(col("rid"))
}

/// Whether a pair joins, as SQL has it.
fn joins(spec: &JoinSpec, left: &str, right: &str) -> bool {
    let (left, right): (Vec<&str>, Vec<&str>) = (left.split(' ').collect(), right.split(' ').collect());
    let has_null = left[0] == "NULL" || right[0] == "NULL";
    let keys_fit = match spec.keys.first() {
        None => true,
        Some(_) if spec.is_null_aware => has_null || left[0] == right[0],
        Some(key) => left[0] == right[0] && (key.is_null_safe || left[0] != "NULL"),
    };
    let number = |text: &str| text.parse::<i64>().ok();
    let fits = match (number(left[1]), number(right[1])) {
        (Some(left), Some(right)) => left < right,
        _ => false,
    };
    keys_fit && (spec.residual.is_none() || fits)
}

/// Joins two multisets by looking at every pair.
fn model(spec: &JoinSpec, inputs: &[Multiset; 2]) -> Multiset {
    let nulls = "NULL NULL NULL";
    let mut rows = Multiset::new();
    let mut add = |row: String, count: i64| *rows.entry(row).or_default() += count;
    let has_partner = |row: &str, of: usize| {
        inputs[1 - of]
            .keys()
            .any(|other| if of == 0 { joins(spec, row, other) } else { joins(spec, other, row) })
    };
    for (left, left_count) in &inputs[0] {
        let is_alone = !has_partner(left, 0);
        match spec.kind {
            JoinKind::Semi if !is_alone => add(left.clone(), *left_count),
            JoinKind::Anti if is_alone => add(left.clone(), *left_count),
            JoinKind::Left | JoinKind::Full if is_alone => add(format!("{left} {nulls}"), *left_count),
            JoinKind::Semi | JoinKind::Anti => {}
            _ => {
                for (right, right_count) in inputs[1].iter().filter(|(right, _)| joins(spec, left, right)) {
                    add(format!("{left} {right}"), left_count * right_count);
                }
            }
        }
    }
    if matches!(spec.kind, JoinKind::Right | JoinKind::Full) {
        for (right, count) in inputs[1].iter().filter(|(right, _)| !has_partner(right, 1)) {
            add(format!("{nulls} {right}"), *count);
        }
    }
    rows
}

/// What each input holds after a changelog.
fn folded_inputs(changelog: &[String]) -> [Multiset; 2] {
    [0, 1].map(|input| {
        let lines = changelog.iter().filter(|line| parse(line).0 == input);
        fold(&lines.map(|line| line.split_once(": ").unwrap().1).collect::<Vec<_>>())
    })
}

#[test]
fn an_inner_join_passes_the_kinds_of_its_input_on() {
    case(JoinKind::Inner, &DataType::Int32).check(
        &[
            "0: +I 1 10 a",
            "1: +I 1 20 x",
            "0: -U 1 10 a",
            "0: +U 1 10 b",
            "1: -U 1 20 x",
            "1: +U 2 20 x",
            "0: +U 2 1 c",
            "0: -D 2 1 c",
        ],
        &[
            "+I 1 10 a 1 20 x",
            "-U 1 10 a 1 20 x",
            "+U 1 10 b 1 20 x",
            "-U 1 10 b 1 20 x",
            "+U 2 1 c 2 20 x",
            "-D 2 1 c 2 20 x",
        ],
    );
}

#[test]
fn a_left_join_takes_the_padded_row_back_before_it_joins_and_pads_again_after_the_last_partner() {
    let lines = [
        "0: +I 1 10 a",
        "1: +I 1 20 x",
        "1: +I 1 21 y",
        "1: -D 1 20 x",
        "1: -U 1 21 y",
        "0: -U 1 10 a",
        "0: +U NULL 10 a",
    ];
    let expected = [
        "+I 1 10 a NULL NULL NULL",
        "-D 1 10 a NULL NULL NULL",
        "+I 1 10 a 1 20 x",
        "+I 1 10 a 1 21 y",
        "-D 1 10 a 1 20 x",
        "-U 1 10 a 1 21 y",
        "+I 1 10 a NULL NULL NULL",
        "-D 1 10 a NULL NULL NULL",
        "+I NULL 10 a NULL NULL NULL",
    ];
    let mut case = case(JoinKind::Left, &DataType::Int32);
    case.check(&lines, &expected);
    case.spec.residual = Some(residual());
    case.check(&lines, &expected);
}

#[test]
fn a_full_join_pads_both_sides() {
    case(JoinKind::Full, &DataType::Utf8).check(
        &["1: +I c 1 C1", "0: +I a 1 p", "1: +U a 2 A1", "1: +I a 3 A2", "0: -U a 1 p"],
        &[
            "+I NULL NULL NULL c 1 C1",
            "+I a 1 p NULL NULL NULL",
            "-D a 1 p NULL NULL NULL",
            "+I a 1 p a 2 A1",
            "+I a 1 p a 3 A2",
            "-D a 1 p a 2 A1",
            "-D a 1 p a 3 A2",
            "+I NULL NULL NULL a 2 A1",
            "+I NULL NULL NULL a 3 A2",
        ],
    );
}

#[test]
fn semi_and_anti_joins_show_left_rows_by_the_first_and_the_last_partner() {
    let lines = [
        "0: +I 1 10 a",
        "1: +U 1 20 x",
        "1: +I 1 21 y",
        "1: -D 1 20 x",
        "0: +U 1 11 b",
        "1: -U 1 21 y",
        "0: -D 1 10 a",
    ];
    let semi = ["+U 1 10 a", "+U 1 11 b", "-U 1 10 a", "-U 1 11 b"];
    let anti = ["+I 1 10 a", "-D 1 10 a", "+I 1 10 a", "+I 1 11 b", "-D 1 10 a"];
    for residual in [None, Some(residual())] {
        for (kind, expected) in [(JoinKind::Semi, &semi[..]), (JoinKind::Anti, &anti[..])] {
            let mut case = case(kind, &DataType::Int32);
            case.spec.residual.clone_from(&residual);
            case.check(&lines, expected);
        }
    }
}

#[test]
fn not_in_is_unknown_where_either_side_is_null() {
    let mut case = case(JoinKind::Anti, &DataType::Int32);
    case.spec.is_null_aware = true;
    case.check(
        &[
            "0: +I 1 1 a",
            "0: +I NULL 2 b",
            "1: +I 7 1 x",
            "1: +I NULL 2 y",
            "0: +I 3 3 c",
            "1: -D NULL 2 y",
            "1: -D 7 1 x",
            "0: -D NULL 2 b",
        ],
        &[
            "+I 1 1 a",
            "+I NULL 2 b",
            "-D NULL 2 b",
            "-D 1 1 a",
            "+I 1 1 a",
            "+I 3 3 c",
            "+I NULL 2 b",
            "-D NULL 2 b",
        ],
    );
}

#[test]
fn nan_joins_nan_and_the_two_zeros_do_not_meet() {
    case(JoinKind::Inner, &DataType::Float64).check(
        &["0: +I NaN 1 a", "0: +I 0.0 2 b", "1: +I NaN 3 x", "1: +I -0.0 4 y"],
        &["+I NaN 1 a NaN 3 x"],
    );
}

#[test]
fn an_update_of_columns_that_the_join_does_not_see_says_nothing_within_an_epoch() {
    let case = case(JoinKind::Left, &DataType::Int32);
    let mut harness = Harness::new(|| case.make(), &case.test_inputs());
    harness.epoch(&["0: +I 1 10 a"]);
    harness.epoch(&["1: +I 1 20 x"]);
    assert_eq!(harness.epoch(&["1: -U 1 20 x", "1: +U 1 20 x"]), [""; 0]);
    let changed = harness.epoch(&["1: -U 1 20 x", "1: +U 1 20 y"]);
    assert_eq!(changed, ["-U 1 10 a 1 20 x", "+I 1 10 a 1 20 y"], "no padded row in between");
    assert_eq!(harness.epoch(&["0: -U 1 10 a"]), ["-D 1 10 a 1 20 y"]);
    assert_eq!(harness.epoch(&["0: +U 1 10 a"]), ["+I 1 10 a 1 20 y"]);
}

#[test]
fn an_input_of_upserts_replaces_rows_by_key() {
    let mut case = case(JoinKind::Inner, &DataType::Int32);
    case.spec.sides[0].uniqueness = JoinUniqueness::Key(vec![0, 1]);
    let make = || case.make_with([ChangelogMode::UPSERT, ChangelogMode::ALL]);
    check(
        make,
        &case.test_inputs(),
        &["0: +I 1 10 a", "0: +U 1 10 b", "1: +I 1 20 x", "0: -D 1 10 NULL", "1: +I 1 21 y"],
        &["+I 1 10 b 1 20 x", "-D 1 10 NULL 1 20 x"],
    );
}

#[test]
fn a_new_version_may_come_before_the_old_one_is_taken_back() {
    let mut case = case(JoinKind::Inner, &DataType::Int32);
    for uniqueness in [JoinUniqueness::JoinKey, JoinUniqueness::Key(vec![1]), JoinUniqueness::None] {
        case.spec.sides[0].uniqueness = uniqueness;
        case.check(&["0: +I 1 10 a", "0: +U 1 10 b", "0: -U 1 10 a", "1: +I 1 20 x"], &["+I 1 10 b 1 20 x"]);
    }
}

#[test]
fn a_row_that_is_not_there_is_taken_back_without_harm() {
    for kind in KINDS {
        let case = case(kind, &DataType::Int32);
        let mut harness = Harness::new(|| case.make(), &case.test_inputs());
        harness.per_record(&["0: -D 1 10 a", "1: -U 1 20 x", "0: -D NULL 1 a"]);
        harness.checkpoint();
        assert_eq!((harness.saved(0), harness.saved(1)), (vec![], vec![]));
    }
}

#[test]
fn joins_agree_with_a_look_at_every_pair() {
    let mut random = Random::new(11);
    let types = [DataType::Int32, DataType::Utf8, DataType::Float64];
    let mut sizes = BTreeMap::new();
    for round in 0..180 {
        let kind = KINDS[round % KINDS.len()];
        let mut case = case(kind, &types[random.below(3)]);
        case.spec.keys[0].is_null_safe = random.chance(30);
        if random.chance(40) {
            case.spec.residual = Some(residual());
        }
        if kind == JoinKind::Anti && random.chance(50) {
            case.spec.is_null_aware = true;
            case.spec.keys[0].is_null_safe = false;
        } else if random.chance(12) {
            case.spec.keys.clear();
        }
        let changelogs = [0, 1].map(|input| {
            let side = &mut case.spec.sides[input];
            let schema = &case.inputs[input];
            let unique: &[usize] = match random.below(4) {
                0 if !case.spec.keys.is_empty() => &[0],
                1 => &[1],
                _ => &[],
            };
            side.uniqueness = match unique {
                [] => JoinUniqueness::None,
                [0] => JoinUniqueness::JoinKey,
                key => JoinUniqueness::Key(key.to_vec()),
            };
            random.changelog(schema, unique, 70)
        });
        let changelog = random.merge(&changelogs);
        let sum = check_rules(|| case.make(), &case.test_inputs(), &changelog, &mut random);
        assert_eq!(sum, model(&case.spec, &folded_inputs(&changelog)), "{:?} of {changelog:#?}", case.spec);
        *sizes.entry(format!("{kind:?}")).or_insert(0) += sum.len();
    }
    assert!(sizes.values().all(|size| *size > 20), "the joins have rows: {sizes:?}");
}

#[test]
fn insert_only_sides_agree_with_a_look_at_every_pair() {
    let mut random = Random::new(5);
    for round in 0..36 {
        let mut case = case(KINDS[round % KINDS.len()], &DataType::Int32);
        case.spec.residual = random.chance(50).then(residual);
        case.spec.sides.iter_mut().for_each(|side| side.is_insert_only = true);
        let changelogs = [0, 1].map(|input| random.inserts(&case.inputs[input], 60));
        let changelog = random.merge(&changelogs);
        let mut harness = Harness::new(|| case.make(), &case.test_inputs());
        let mut shown = Vec::new();
        for part in random.split(&changelog) {
            shown.extend(harness.epoch(part));
            if random.chance(20) {
                harness.restart(1 + random.below(3));
            }
        }
        assert_eq!(fold(&shown), model(&case.spec, &folded_inputs(&changelog)), "{:?}", case.spec);
    }
}

#[test]
fn nested_and_binary_columns_come_back_as_they_were() {
    use arrow::array::{
        ArrayRef, BinaryArray, BooleanArray, Int8Array, Int32Builder, ListArray, MapBuilder, RecordBatch,
        StringBuilder,
    };
    use arrow::datatypes::{Field, Int32Type, Schema};
    let list =
        ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None, Some(vec![])]);
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    map.keys().append_value("a");
    map.values().append_value(1);
    map.append(true).unwrap();
    map.append(false).unwrap();
    map.append(true).unwrap();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int8Array::from(vec![1, 2, 3])),
        Arc::new(list),
        Arc::new(BinaryArray::from(vec![Some(&b"\xff"[..]), None, Some(b"")])),
        Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
        Arc::new(map.finish()),
    ];
    let fields = columns.iter().enumerate();
    let fields = fields.map(|(at, column)| Field::new(format!("c{at}"), column.data_type().clone(), true));
    let left = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let right = schema(&[("k", DataType::Int8)]);
    let mut spec = case(JoinKind::Full, &DataType::Int8).spec;
    let pair: Vec<_> = left.fields().iter().chain(right.fields()).cloned().collect();
    let pair = Arc::new(Schema::new(pair));
    spec.pair_schema = Arc::clone(&pair).to_dfschema_ref().unwrap();
    let nodes = [&left, &right].map(|schema| node(schema, ChangelogMode::ALL, &[]));
    let mut join = JoinOperator::new(&spec, &[&nodes[0], &nodes[1]], &pair).unwrap();
    let rows = ChangelogBatch::inserts(RecordBatch::try_new(left, columns).unwrap());
    let mut output = Output::default();
    join.process(0, rows.clone(), &mut output).unwrap();
    output.drain().for_each(drop);
    join.process(1, batch(&right, &["+I 3", "+I 2", "+I 1", "+I 4"]), &mut output).unwrap();
    let shown: Vec<String> = output.drain().flat_map(|batch| lines(&batch)).collect();
    assert_eq!(
        shown.iter().filter(|line| line.starts_with("+I")).collect::<Vec<_>>(),
        [
            "+I 3 [] '' false {} 3",
            "+I 2 NULL NULL NULL NULL 2",
            "+I 1 [1,NULL] ff true {a:1} 1",
            "+I NULL NULL NULL NULL NULL 4"
        ]
    );
    join.process(0, ChangelogBatch::with_kinds(rows.rows().clone(), [RowKind::Delete; 3]), &mut output)
        .unwrap();
    assert_eq!(join.sides[0].row_count(), 0, "they are found again");
}

#[test]
fn a_key_with_very_many_rows_takes_each_of_them_back_at_once() {
    let case = case(JoinKind::Inner, &DataType::Int32);
    let mut join = case.make();
    let mut output = Output::default();
    let rows = |sign: &str| (0..100_000).map(|id| format!("{sign} 1 {id} v")).collect::<Vec<_>>();
    let (added, taken) = (rows("+I"), rows("-D"));
    for (lines, is_added) in [(added, true), (taken, false)] {
        for part in lines.chunks(8192) {
            join.process(0, batch(&case.inputs[0], part), &mut output).unwrap();
        }
        assert_eq!(join.sides[0].row_count(), if is_added { 100_000 } else { 0 });
    }
    assert_eq!(output.drain().count(), 0);
}

#[test]
fn one_row_with_very_many_partners_leaves_in_batches() {
    let case = case(JoinKind::Left, &DataType::Int32);
    let mut join = case.make();
    let mut output = Output::default();
    let rows: Vec<String> = (0..20_000).map(|id| format!("+I 1 {id} v")).collect();
    join.process(1, batch(&case.inputs[1], &rows), &mut output).unwrap();
    join.process(0, batch(&case.inputs[0], &["+I 1 1 a"]), &mut output).unwrap();
    let sizes: Vec<usize> = output.drain().map(|batch| batch.row_count()).collect();
    assert_eq!(sizes, [8192, 8192, 3616]);
}

#[test]
fn keys_are_never_doubled_within_an_epoch() {
    let mut random = Random::new(3);
    for round in 0..40 {
        let mut case = case([JoinKind::Left, JoinKind::Inner][round % 2], &DataType::Int32);
        case.spec.residual = random.chance(50).then(residual);
        case.spec.sides[0].uniqueness = JoinUniqueness::Key(vec![1]);
        case.spec.sides[1].uniqueness = JoinUniqueness::JoinKey;
        let changelogs = [&[1][..], &[0]]
            .into_iter()
            .zip(&case.inputs)
            .map(|(key, input)| random.changelog(input, key, 80));
        let changelogs: Vec<_> = changelogs.collect();
        let changelog = random.merge(&changelogs);
        let mut harness = Harness::new(|| case.make(), &case.test_inputs());
        let mut live: BTreeMap<String, String> = BTreeMap::new();
        for part in random.split(&changelog) {
            for line in harness.epoch(part) {
                let (_, kind, values) = parse(&line);
                let (key, row) = (values[1].to_owned(), values.join(" "));
                if kind.is_retraction() {
                    assert_eq!(live.remove(&key), Some(row), "{line} takes back what is there");
                } else {
                    assert_eq!(live.insert(key, row), None, "{line} comes after the one before has gone");
                }
            }
        }
    }
}

#[test]
fn memory_of_rows_that_have_gone_is_given_back() {
    let mut case = case(JoinKind::Full, &DataType::Int32);
    case.spec.residual = Some(residual());
    let mut harness = Harness::new(|| case.make(), &case.test_inputs());
    let rows = |sign: &str, ids: std::ops::Range<usize>| {
        ids.map(|id| format!("0: {sign} {} {id} value-{id}", id % 7)).collect::<Vec<_>>()
    };
    harness.epoch(&rows("+I", 0..20_000));
    let full = harness.state_bytes();
    harness.checkpoint();
    harness.epoch(&rows("-D", 500..20_000));
    harness.checkpoint();
    assert!(harness.state_bytes() < full / 8, "{} of {full} bytes are left", harness.state_bytes());
    let joined = harness.epoch(&["1: +I 3 100000 x"]);
    assert_eq!(joined.len(), 2 * rows("+I", 0..500).iter().filter(|row| row.starts_with("0: +I 3 ")).count());
    assert_eq!(joined[1], "-D 3 10 value-10 NULL NULL NULL");
    harness.restart(2);
    assert_eq!(harness.saved(0).len(), 500);
    assert_eq!(harness.epoch(&rows("-D", 0..500)).len(), 501, "the right row is alone again");
}

/// A join of three inputs and how it is fed.
struct MultiCase {
    inputs: Vec<SchemaRef>,
    is_optional: Vec<bool>,
    unique_keys: Vec<Vec<Vec<usize>>>,
    mode: ChangelogMode,
}

impl MultiCase {
    fn new(is_optional: &[bool]) -> MultiCase {
        let columns = [("k", DataType::Int32), ("v", DataType::Utf8)];
        let inputs = (0..is_optional.len()).map(|_| schema(&columns)).collect();
        let unique_keys = vec![Vec::new(); is_optional.len()];
        MultiCase { inputs, is_optional: is_optional.to_vec(), unique_keys, mode: ChangelogMode::ALL }
    }

    fn make(&self) -> MultiJoinOperator {
        let nodes: Vec<GraphNode> = self
            .inputs
            .iter()
            .zip(&self.unique_keys)
            .map(|(schema, keys)| node(schema, self.mode, keys))
            .collect();
        let columns: Vec<(String, DataType)> = (0..self.inputs.len())
            .flat_map(|input| [(format!("k{input}"), DataType::Int32), (format!("v{input}"), DataType::Utf8)])
            .collect();
        let columns: Vec<(&str, DataType)> =
            columns.iter().map(|(name, data_type)| (name.as_str(), data_type.clone())).collect();
        let keys = vec![vec![0]; self.inputs.len()];
        let nodes: Vec<&GraphNode> = nodes.iter().collect();
        MultiJoinOperator::new(&keys, &self.is_optional, &nodes, &schema(&columns)).unwrap()
    }

    fn test_inputs(&self) -> Vec<TestInput> {
        self.inputs.iter().map(|input| TestInput::new(input, &[0])).collect()
    }

    /// Joins one input after the other by looking at every pair; required inputs come first.
    fn model(&self, inputs: &[Multiset]) -> Multiset {
        let mut joined = inputs[0].clone();
        for (input, is_optional) in inputs.iter().zip(&self.is_optional).skip(1) {
            let mut next = Multiset::new();
            for (row, count) in &joined {
                let key = row.split(' ').next().unwrap();
                let fits = |other: &str| key != "NULL" && other.split(' ').next() == Some(key);
                let partners: Vec<_> = input.iter().filter(|(other, _)| fits(other)).collect();
                for (other, other_count) in &partners {
                    *next.entry(format!("{row} {other}")).or_default() += count * **other_count;
                }
                if partners.is_empty() && *is_optional {
                    *next.entry(format!("{row} NULL NULL")).or_default() += count;
                }
            }
            joined = next;
        }
        joined
    }
}

#[test]
fn a_multi_join_combines_a_row_with_those_of_all_inputs() {
    let case = MultiCase::new(&[false, false, false]);
    check(
        || case.make(),
        &case.test_inputs(),
        &["0: +I 1 a", "2: +I 1 x", "1: +U 1 p", "1: +I 1 q", "0: -U 1 a", "0: +I NULL b"],
        &["+U 1 a 1 p 1 x", "+I 1 a 1 q 1 x", "-U 1 a 1 p 1 x", "-U 1 a 1 q 1 x"],
    );
}

#[test]
fn an_optional_input_of_a_multi_join_stands_in_with_nulls() {
    let case = MultiCase::new(&[false, true, true]);
    check(
        || case.make(),
        &case.test_inputs(),
        &["0: +I 1 a", "1: +I 1 p", "2: +I 1 x", "1: -D 1 p", "0: -U 1 a", "0: +U NULL b"],
        &[
            "+I 1 a NULL NULL NULL NULL",
            "-D 1 a NULL NULL NULL NULL",
            "+I 1 a 1 p NULL NULL",
            "-D 1 a 1 p NULL NULL",
            "+I 1 a 1 p 1 x",
            "-D 1 a 1 p 1 x",
            "+I 1 a NULL NULL 1 x",
            "-D 1 a NULL NULL 1 x",
            "+I NULL b NULL NULL NULL NULL",
        ],
    );
    let mut harness = Harness::new(|| case.make(), &case.test_inputs());
    harness.epoch(&["0: +I 1 a"]);
    harness.epoch(&["1: +I 1 p"]);
    assert_eq!(
        harness.epoch(&["1: -U 1 p", "1: +U 1 q"]),
        ["-U 1 a 1 p NULL NULL", "+I 1 a 1 q NULL NULL"],
        "no padded row in between"
    );
}

#[test]
fn inputs_of_upserts_of_a_multi_join_replace_rows_by_key() {
    let mut case = MultiCase::new(&[false, false, true]);
    case.unique_keys = vec![vec![vec![0]]; 3];
    case.mode = ChangelogMode::UPSERT;
    check(
        || case.make(),
        &case.test_inputs(),
        &["0: +I 1 a", "1: +U 1 p", "2: +U 1 x", "0: +U 1 b", "2: -D 1 NULL", "1: -D 1 NULL"],
        &[
            "+I 1 a 1 p NULL NULL",
            "-D 1 a 1 p NULL NULL",
            "+I 1 a 1 p 1 x",
            "+I 1 b 1 p 1 x",
            "-D 1 b 1 p 1 NULL",
            "+I 1 b 1 p NULL NULL",
            "-D 1 b 1 NULL NULL NULL",
        ],
    );
}

#[test]
fn multi_joins_agree_with_one_join_after_the_other() {
    let mut random = Random::new(23);
    let shapes: [&[bool]; 5] = [
        &[false, false],
        &[false, false, false],
        &[false, true, true],
        &[false, false, true],
        &[false, false, true, true],
    ];
    let mut size = 0;
    for round in 0..60 {
        let mut case = MultiCase::new(shapes[round % shapes.len()]);
        let mut changelogs = Vec::new();
        for input in 0..case.inputs.len() {
            let unique: &[usize] = [&[0][..], &[1], &[]][random.below(3)];
            case.unique_keys[input].extend((!unique.is_empty()).then(|| unique.to_vec()));
            changelogs.push(random.changelog(&case.inputs[input], unique, 40));
        }
        let changelog = random.merge(&changelogs);
        let sum = check_rules(|| case.make(), &case.test_inputs(), &changelog, &mut random);
        let inputs: Vec<Multiset> = changelogs.iter().map(|changelog| fold(changelog)).collect();
        assert_eq!(sum, case.model(&inputs), "{:?} of {changelog:#?}", case.is_optional);
        size += sum.len();
    }
    assert!(size > 100, "the joins have rows: {size}");
}
