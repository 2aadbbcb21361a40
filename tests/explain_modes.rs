//! EXPLAIN CHANGELOG_MODE against Flink's: for each query the same operators with the same kinds of rows, from the sink down.
//!
//! `golden/flink/explain` is what Flink's client printed. Its Kafka tables are stood in for by tables of `values` that make, or take,
//! the same kinds. A Calc is left out of the comparison: it passes on what it gets, and stands elsewhere where a source reads only
//! the columns that are wanted.

use std::fs;
use std::path::Path;

use lakehead::sql::split;

use crate::support::run::Lakehead;

/// Queries whose operators differ: the number of the statement in the script, and what we say instead.
const EXCEPTIONS: &[(usize, &str)] = &[(13, "a table function is not supported yet")];

/// Where Flink exchanges rows that lie right already, and we do not: the number of the statement, and the place in its operators.
const SPARED: &[(usize, usize)] = &[(11, 3)];

/// The connectors of the tables, by name, in the terms of `values`.
const STAND_INS: &[(&str, &str)] = &[("o", "I,UB,UA,D"), ("a", "I"), ("c", "UA,D"), ("sink", "I,UA,D")];

/// An operator and its kinds.
type Operator = (String, String);

/// Reads the operators of the physical plan, without what a Calc is.
fn operators(explained: &str) -> Vec<Operator> {
    let plan = explained.split("== Optimized Physical Plan ==\n").nth(1).unwrap_or_default();
    let lines = plan.lines().take_while(|line| !line.trim().is_empty());
    let operators = lines.map(|line| {
        let line = line.trim_start_matches([' ', ':', '+', '-', '|']);
        let name = line.split('(').next().unwrap_or_default();
        let mode = line.split("changelogMode=").nth(1).unwrap_or_default().trim_end_matches(')');
        (name.to_owned(), mode.to_owned())
    });
    operators.filter(|(name, _)| name != "Calc").collect()
}

/// Makes a table of `values` of Flink's table.
fn stand_in(statement: &str) -> String {
    let (columns, _) = statement.split_once(" WITH (").unwrap();
    let name = columns.split_whitespace().nth(2).unwrap();
    let (_, kinds) = STAND_INS.iter().find(|(table, _)| *table == name).unwrap();
    format!("{columns} WITH ('connector' = 'values', 'changelog-mode' = '{kinds}');\n")
}

#[test]
fn operators_make_the_kinds_of_rows_that_flinks_make() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/flink/explain");
    let script = fs::read_to_string(folder.join("explain.sql")).unwrap();
    let printed = fs::read_to_string(folder.join("explain.out")).unwrap();
    let statements: Vec<String> = split(&script).into_iter().map(|piece| piece.text).collect();
    let answers: Vec<&str> = printed.split("\nFlink SQL> ").skip(1).collect();
    let tables: String = statements
        .iter()
        .filter(|text| text.contains("'kafka'") || text.contains("'upsert-kafka'"))
        .map(|text| stand_in(text))
        .collect();
    let (mut compared, mut wrong) = (0, Vec::new());
    for (number, (statement, answer)) in statements.iter().zip(&answers).enumerate() {
        if !statement.starts_with("EXPLAIN CHANGELOG_MODE") {
            continue;
        }
        let ours = Lakehead::new().input(format!("{tables}{statement};\n")).run();
        if let Some((_, refusal)) = EXCEPTIONS.iter().find(|(exception, _)| *exception == number) {
            assert!(ours.stdout.contains(refusal), "{statement}\n{}", ours.stdout);
            continue;
        }
        compared += 1;
        let (mut flinks, ours_read) = (operators(answer), operators(&ours.stdout));
        assert!(!flinks.is_empty(), "{statement}\n{answer}");
        if let Some((_, place)) = SPARED.iter().find(|(spared, _)| *spared == number) {
            assert_eq!(flinks.remove(*place).0, "Exchange");
        }
        if flinks != ours_read {
            wrong.push(format!(
                "{number}: {statement}\n--- Flink\n{flinks:?}\n--- ours\n{ours_read:?}\n{}",
                ours.stdout
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert_eq!(compared, 15);
}
