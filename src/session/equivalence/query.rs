//! Random queries as a small tree that can be written as SQL and made simpler. Every level names its columns `c0`, `c1`, ….

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use super::history::{Changes, Table, Type};

/// Which text is wanted: a global aggregate over no rows has a row in batch mode only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Batch,
    Streaming,
}

/// What is known of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnType {
    Plain(Type),
    /// A type that only aggregates have, such as DECIMAL(38, 2): good for counting, comparing and NULL tests.
    Other,
}

/// A query.
#[derive(Debug, Clone)]
pub(super) struct Query {
    relation: Relation,
}

#[derive(Debug, Clone)]
enum Relation {
    Table {
        name: String,
        types: Vec<Type>,
        is_insert_only: bool,
    },
    Select {
        input: Box<Relation>,
        items: Vec<String>,
        types: Vec<ColumnType>,
        condition: Option<String>,
    },
    Aggregate(Aggregate),
    Distinct(Box<Relation>),
    Join {
        left: Box<Relation>,
        right: Box<Relation>,
        kind: &'static str,
        condition: String,
    },
    Member {
        left: Box<Relation>,
        right: Box<Relation>,
        test: String,
    },
    Set {
        left: Box<Relation>,
        right: Box<Relation>,
        operator: &'static str,
    },
    TopN {
        input: Box<Relation>,
        partition: Vec<usize>,
        order: Vec<(usize, bool)>,
        rank: String,
        shows_rank: bool,
    },
    Limit {
        input: Box<Relation>,
        order: Vec<(usize, bool)>,
        fetch: usize,
    },
}

#[derive(Debug, Clone)]
struct Aggregate {
    input: Box<Relation>,
    groups: Vec<usize>,
    /// ROLLUP, CUBE or GROUPING SETS instead of plain groups.
    sets: Option<&'static str>,
    calls: Vec<(String, ColumnType)>,
    having: Option<String>,
}

impl Query {
    pub(super) fn draw(tables: &[Table], rng: &mut StdRng) -> Query {
        let depth = rng.random_range(1..=3);
        Query { relation: Relation::draw(tables, depth, rng) }
    }

    pub(super) fn sql(&self, mode: Mode) -> String {
        self.relation.sql(mode)
    }

    pub(super) fn reads(&self, table: &Table) -> bool {
        self.relation.reads(&table.name)
    }

    /// Returns queries with something left out.
    pub(super) fn simpler(&self) -> Vec<Query> {
        self.relation.simpler().into_iter().map(|relation| Query { relation }).collect()
    }
}

impl Relation {
    fn draw(tables: &[Table], depth: u32, rng: &mut StdRng) -> Relation {
        if depth == 0 {
            let table = tables.choose(rng).unwrap();
            return Relation::Table {
                name: table.name.clone(),
                types: table.types.clone(),
                is_insert_only: table.changes == Changes::InsertOnly,
            };
        }
        let input = |rng: &mut StdRng| {
            let below = if rng.random_ratio(1, 3) { depth - 1 } else { depth.saturating_sub(2) };
            Box::new(Relation::draw(tables, below, rng))
        };
        let first = Box::new(Relation::draw(tables, depth - 1, rng));
        match rng.random_range(0..14_u32) {
            0 | 1 => Relation::draw_select(first, rng),
            2..=4 => Relation::draw_aggregate(first, rng),
            5 => Relation::Distinct(Box::new(Relation::draw_narrow(first, rng))),
            6 | 7 => Relation::draw_join(first, input(rng), rng),
            8 => Relation::draw_star(first, [input(rng), input(rng)], rng),
            9 | 10 => Relation::draw_member(first, input(rng), rng),
            11 => Relation::draw_set(first, input(rng), rng),
            12 => Relation::draw_top_n(first, rng),
            _ => {
                let order = draw_order(first.types().len(), rng);
                Relation::Limit { input: first, order, fetch: rng.random_range(1..5) }
            }
        }
    }

    fn draw_select(input: Box<Relation>, rng: &mut StdRng) -> Relation {
        let types = input.types();
        let mut items = Vec::new();
        let mut out = Vec::new();
        for _ in 0..rng.random_range(1..=types.len()) {
            let (item, data_type) = draw_expression(&types, rng);
            items.push(item);
            out.push(data_type);
        }
        let condition = rng.random_ratio(2, 3).then(|| draw_condition("", &types, rng));
        Relation::Select { input, items, types: out, condition }
    }

    /// Keeps one or two columns, so that rows are equal.
    fn draw_narrow(input: Box<Relation>, rng: &mut StdRng) -> Relation {
        let types = input.types();
        let chosen: Vec<usize> =
            (0..rng.random_range(1..=2_u32)).map(|_| rng.random_range(0..types.len())).collect();
        Relation::Select {
            items: chosen.iter().map(|at| format!("c{at}")).collect(),
            types: chosen.iter().map(|at| types[*at]).collect(),
            condition: None,
            input,
        }
    }

    fn draw_aggregate(input: Box<Relation>, rng: &mut StdRng) -> Relation {
        let types = input.types();
        let mut groups: Vec<usize> = Vec::new();
        for _ in 0..rng.random_range(0..=2_u32) {
            let at = rng.random_range(0..types.len());
            if !groups.contains(&at) {
                groups.push(at);
            }
        }
        let sets = (!groups.is_empty() && rng.random_ratio(1, 6))
            .then(|| *["ROLLUP", "CUBE", "SETS"].choose(rng).unwrap());
        let keeps_order = input.keeps_order();
        let calls: Vec<(String, ColumnType)> =
            (0..rng.random_range(1..4_u32)).map(|_| draw_call(&types, keeps_order, rng)).collect();
        let having = rng.random_ratio(1, 4).then(|| {
            ["COUNT(*) > 1", "COUNT(*) < 3", "COUNT(c0) >= 1", "MIN(c0) IS NOT NULL"]
                .choose(rng)
                .unwrap()
                .to_string()
        });
        Relation::Aggregate(Aggregate { input, groups, sets, calls, having })
    }

    fn draw_join(left: Box<Relation>, right: Box<Relation>, rng: &mut StdRng) -> Relation {
        let kind = *["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"].choose(rng).unwrap();
        let (left_types, right_types) = (left.types(), right.types());
        let mut parts = Vec::new();
        for _ in 0..rng.random_range(1..=2_u32) {
            if let Some((l, r)) = draw_pair(&left_types, &right_types, rng) {
                let operator = if rng.random_ratio(1, 6) { "IS NOT DISTINCT FROM" } else { "=" };
                parts.push(format!("l.c{l} {operator} r.c{r}"));
            }
        }
        if parts.is_empty() {
            parts.push("l.c0 IS NULL AND r.c0 IS NOT NULL".to_owned());
        }
        if rng.random_ratio(1, 3) {
            let comparison = ["<", ">", "<>", "<="].choose(rng).unwrap();
            match draw_pair(&left_types, &right_types, rng) {
                Some((l, r)) if left_types[l] != ColumnType::Plain(Type::Boolean) => {
                    parts.push(format!("l.c{l} {comparison} r.c{r}"));
                }
                _ => parts.push(draw_condition("r.", &right_types, rng)),
            }
        }
        Relation::Join { left, right, kind, condition: parts.join(" AND ") }
    }

    /// Joins three inputs on one column. That of an input that a LEFT JOIN adds is not the one that all have.
    fn draw_star(first: Box<Relation>, [second, third]: [Box<Relation>; 2], rng: &mut StdRng) -> Relation {
        let Some((column, of_second)) = draw_pair(&first.types(), &second.types(), rng) else {
            return Relation::draw_join(first, second, rng);
        };
        let shared = [first.types()[column]];
        let Some((_, of_third)) = draw_pair(&shared, &third.types(), rng) else {
            return Relation::draw_join(first, second, rng);
        };
        let shape = rng.random_range(0..4_u32);
        let mut join = |left: Relation, l: usize, right: Relation, r: usize| {
            let kind = *["JOIN", "LEFT JOIN"].choose(rng).unwrap();
            let condition = format!("l.c{l} = r.c{r}");
            Relation::Join { left: Box::new(left), right: Box::new(right), kind, condition }
        };
        if shape == 0 {
            let right = join(*second, of_second, *third, of_third);
            return join(*first, column, right, of_second);
        }
        let shared = if shape == 1 { first.types().len() + of_second } else { column };
        let left = join(*first, column, *second, of_second);
        join(left, shared, *third, of_third)
    }

    fn draw_member(left: Box<Relation>, right: Box<Relation>, rng: &mut StdRng) -> Relation {
        let (left_types, right_types) = (left.types(), right.types());
        let Some((l, r)) = draw_pair(&left_types, &right_types, rng) else {
            return Relation::draw_select(left, rng);
        };
        let number = |types: &[ColumnType]| {
            types.iter().position(|data_type| *data_type == ColumnType::Plain(Type::Int))
        };
        let test = match rng.random_range(0..6_u32) {
            0 => format!("l.c{l} IN (SELECT r.c{r} FROM {{right}} AS r)"),
            1 => format!("l.c{l} NOT IN (SELECT r.c{r} FROM {{right}} AS r)"),
            2 => format!("EXISTS (SELECT 1 FROM {{right}} AS r WHERE r.c{r} = l.c{l})"),
            3 => format!("NOT EXISTS (SELECT 1 FROM {{right}} AS r WHERE r.c{r} = l.c{l})"),
            4 => format!(
                "NOT EXISTS (SELECT 1 FROM {{right}} AS r WHERE r.c{r} = l.c{l} AND r.c0 IS NOT NULL)"
            ),
            _ => match (number(&left_types), number(&right_types)) {
                (Some(l), Some(r)) => format!("l.c{l} >= (SELECT MIN(r.c{r}) FROM {{right}} AS r)"),
                _ => format!("l.c{l} IN (SELECT r.c{r} FROM {{right}} AS r WHERE r.c{r} IS NOT NULL)"),
            },
        };
        Relation::Member { left, right, test }
    }

    fn draw_set(left: Box<Relation>, right: Box<Relation>, rng: &mut StdRng) -> Relation {
        let (left_types, right_types) = (left.types(), right.types());
        let pairs: Vec<(usize, usize)> =
            (0..2).filter_map(|_| draw_pair(&left_types, &right_types, rng)).collect();
        if pairs.is_empty() {
            return Relation::draw_select(left, rng);
        }
        let side = |input: Box<Relation>, types: &[ColumnType], chosen: Vec<usize>| {
            Box::new(Relation::Select {
                items: chosen.iter().map(|at| format!("c{at}")).collect(),
                types: chosen.iter().map(|at| types[*at]).collect(),
                condition: None,
                input,
            })
        };
        let operators = ["UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"];
        Relation::Set {
            left: side(left, &left_types, pairs.iter().map(|pair| pair.0).collect()),
            right: side(right, &right_types, pairs.iter().map(|pair| pair.1).collect()),
            operator: operators.choose(rng).unwrap(),
        }
    }

    fn draw_top_n(input: Box<Relation>, rng: &mut StdRng) -> Relation {
        let width = input.types().len();
        let partition = if rng.random_ratio(2, 3) { vec![rng.random_range(0..width)] } else { Vec::new() };
        let rank = ["rn <= 1", "rn <= 2", "rn < 4", "rn = 1", "rn BETWEEN 2 AND 3"].choose(rng).unwrap();
        let order = draw_order(width, rng);
        Relation::TopN { input, partition, order, rank: (*rank).to_owned(), shows_rank: rng.random() }
    }

    fn types(&self) -> Vec<ColumnType> {
        match self {
            Relation::Table { types, .. } => {
                types.iter().map(|data_type| ColumnType::Plain(*data_type)).collect()
            }
            Relation::Select { types, .. } => types.clone(),
            Relation::Aggregate(aggregate) => {
                let below = aggregate.input.types();
                let groups = aggregate.groups.iter().map(|at| below[*at]);
                groups.chain(aggregate.calls.iter().map(|(_, data_type)| *data_type)).collect()
            }
            Relation::Distinct(input) | Relation::Limit { input, .. } => input.types(),
            Relation::Join { left, right, .. } => [left.types(), right.types()].concat(),
            Relation::Member { left, .. } | Relation::Set { left, .. } => left.types(),
            Relation::TopN { input, shows_rank, .. } => {
                let mut types = input.types();
                types.extend(shows_rank.then_some(ColumnType::Plain(Type::BigInt)));
                types
            }
        }
    }

    /// Returns whether rows stand in an order that batch and streaming agree on.
    fn keeps_order(&self) -> bool {
        match self {
            // Of equal values, one that is taken back is the first to Flink and may be any to batch.
            Relation::Table { is_insert_only, .. } => *is_insert_only,
            Relation::Select { input, .. } => input.keeps_order(),
            _ => false,
        }
    }

    fn reads(&self, table: &str) -> bool {
        match self {
            Relation::Table { name, .. } => name == table,
            _ => self.inputs().iter().any(|input| input.reads(table)),
        }
    }

    fn inputs(&self) -> Vec<&Relation> {
        match self {
            Relation::Table { .. } => Vec::new(),
            Relation::Select { input, .. }
            | Relation::Distinct(input)
            | Relation::Limit { input, .. }
            | Relation::TopN { input, .. } => vec![input],
            Relation::Aggregate(aggregate) => vec![&aggregate.input],
            Relation::Join { left, right, .. }
            | Relation::Member { left, right, .. }
            | Relation::Set { left, right, .. } => vec![left, right],
        }
    }

    fn sql(&self, mode: Mode) -> String {
        let from = |relation: &Relation| match relation {
            Relation::Table { name, .. } => name.clone(),
            other => format!("({})", other.sql(mode)),
        };
        let names = |prefix: &str, count: usize, first: usize| {
            let name = |at: usize| format!("{prefix}c{at} AS c{}", first + at);
            (0..count).map(name).collect::<Vec<_>>().join(", ")
        };
        match self {
            Relation::Table { name, types, .. } => {
                format!("SELECT {} FROM {name}", names("", types.len(), 0))
            }
            Relation::Select { input, items, condition, .. } => {
                let items: Vec<String> =
                    items.iter().enumerate().map(|(at, item)| format!("{item} AS c{at}")).collect();
                let condition = condition.as_ref().map_or(String::new(), |text| format!(" WHERE {text}"));
                format!("SELECT {} FROM {} AS q{condition}", items.join(", "), from(input))
            }
            Relation::Aggregate(aggregate) => aggregate.sql(&from(&aggregate.input), mode),
            Relation::Distinct(input) => {
                format!("SELECT DISTINCT {} FROM {} AS q", names("", input.types().len(), 0), from(input))
            }
            Relation::Join { left, right, kind, condition } => {
                let (left_count, right_count) = (left.types().len(), right.types().len());
                format!(
                    "SELECT {}, {} FROM {} AS l {kind} {} AS r ON {condition}",
                    names("l.", left_count, 0),
                    names("r.", right_count, left_count),
                    from(left),
                    from(right)
                )
            }
            Relation::Member { left, right, test } => {
                let test = test.replace("{right}", &from(right));
                format!("SELECT {} FROM {} AS l WHERE {test}", names("l.", left.types().len(), 0), from(left))
            }
            Relation::Set { left, right, operator } => {
                format!("(SELECT * FROM {} AS l) {operator} (SELECT * FROM {} AS r)", from(left), from(right))
            }
            Relation::TopN { input, partition, order, rank, shows_rank } => {
                let width = input.types().len();
                let partition = partition.iter().map(|at| format!("PARTITION BY c{at} ")).collect::<String>();
                let shown = if *shows_rank { format!(", rn AS c{width}") } else { String::new() };
                format!(
                    "SELECT {}{shown} FROM (SELECT *, ROW_NUMBER() OVER ({partition}ORDER BY {}) AS rn FROM {} AS q) AS q WHERE {rank}",
                    names("", width, 0),
                    order_text(order),
                    from(input)
                )
            }
            Relation::Limit { input, order, fetch } => format!(
                "SELECT {} FROM {} AS q ORDER BY {} LIMIT {fetch}",
                names("", input.types().len(), 0),
                from(input),
                order_text(order)
            ),
        }
    }

    /// Returns the inputs themselves, and this relation over simpler inputs or with less to do.
    fn simpler(&self) -> Vec<Relation> {
        let mut simpler: Vec<Relation> = self.inputs().into_iter().cloned().collect();
        let wrap = |inputs: Vec<Relation>, make: &dyn Fn(Box<Relation>) -> Relation| {
            inputs.into_iter().map(|input| make(Box::new(input))).collect::<Vec<_>>()
        };
        match self {
            Relation::Table { .. } => {}
            Relation::Select { input, items, types, condition } => {
                if condition.is_some() {
                    simpler.push(Relation::Select {
                        input: input.clone(),
                        items: items.clone(),
                        types: types.clone(),
                        condition: None,
                    });
                }
                simpler.extend(wrap(input.same_types(), &|input| Relation::Select {
                    input,
                    items: items.clone(),
                    types: types.clone(),
                    condition: condition.clone(),
                }));
            }
            Relation::Aggregate(aggregate) => simpler.extend(aggregate.simpler()),
            Relation::Distinct(input) => simpler.extend(wrap(input.same_types(), &Relation::Distinct)),
            Relation::Join { left, right, kind, condition } => {
                let join = |left: Box<Relation>, right: Box<Relation>, condition: &str| Relation::Join {
                    left,
                    right,
                    kind,
                    condition: condition.to_owned(),
                };
                if let Some((first, _)) = condition.split_once(" AND ") {
                    simpler.push(join(left.clone(), right.clone(), first));
                }
                simpler.extend(wrap(left.same_types(), &|left| join(left, right.clone(), condition)));
                simpler.extend(wrap(right.same_types(), &|right| join(left.clone(), right, condition)));
            }
            Relation::Member { left, right, test } => {
                let member = |left: Box<Relation>, right: Box<Relation>| Relation::Member {
                    left,
                    right,
                    test: test.clone(),
                };
                simpler.extend(wrap(left.same_types(), &|left| member(left, right.clone())));
                simpler.extend(wrap(right.same_types(), &|right| member(left.clone(), right)));
            }
            Relation::Set { left, right, operator } => {
                let set = |left: Box<Relation>, right: Box<Relation>| Relation::Set { left, right, operator };
                simpler.extend(wrap(left.same_types(), &|left| set(left, right.clone())));
                simpler.extend(wrap(right.same_types(), &|right| set(left.clone(), right)));
            }
            Relation::TopN { input, partition, order, rank, shows_rank } => {
                let top = |input: Box<Relation>, partition: &[usize]| Relation::TopN {
                    input,
                    partition: partition.to_vec(),
                    order: order.clone(),
                    rank: rank.clone(),
                    shows_rank: *shows_rank,
                };
                if !partition.is_empty() {
                    simpler.push(top(input.clone(), &[]));
                }
                simpler.extend(wrap(input.same_types(), &|input| top(input, partition)));
            }
            Relation::Limit { input, order, fetch } => {
                let limit = |input| Relation::Limit { input, order: order.clone(), fetch: *fetch };
                simpler.extend(wrap(input.same_types(), &limit));
            }
        }
        simpler
    }

    /// Returns simpler relations with the same columns.
    fn same_types(&self) -> Vec<Relation> {
        let types = self.types();
        self.simpler().into_iter().filter(|relation| relation.types() == types).collect()
    }
}

impl Aggregate {
    fn sql(&self, from: &str, mode: Mode) -> String {
        let mut items: Vec<String> = self.groups.iter().map(|at| format!("c{at}")).collect();
        items.extend(self.calls.iter().map(|(call, _)| call.clone()));
        let items: Vec<String> =
            items.iter().enumerate().map(|(at, item)| format!("{item} AS c{at}")).collect();
        let groups: Vec<String> = self.groups.iter().map(|at| format!("c{at}")).collect();
        let groups = groups.join(", ");
        let group = match self.sets {
            _ if self.groups.is_empty() => String::new(),
            None => format!(" GROUP BY {groups}"),
            Some("SETS") => format!(" GROUP BY GROUPING SETS (({groups}), ({}))", self.groups_but_last()),
            Some(sets) => format!(" GROUP BY {sets} ({groups})"),
        };
        // Over no rows a global aggregate, and the set without groups, has a row in batch mode and none in a stream.
        let guard = (mode == Mode::Batch && self.has_global_group()).then(|| "COUNT(*) > 0".to_owned());
        let having: Vec<String> = self.having.iter().cloned().chain(guard).collect();
        let having =
            if having.is_empty() { String::new() } else { format!(" HAVING {}", having.join(" AND ")) };
        format!("SELECT {} FROM {from} AS q{group}{having}", items.join(", "))
    }

    fn groups_but_last(&self) -> String {
        let kept = &self.groups[..self.groups.len() - 1];
        kept.iter().map(|at| format!("c{at}")).collect::<Vec<_>>().join(", ")
    }

    fn has_global_group(&self) -> bool {
        self.groups.is_empty() || self.sets.is_some()
    }

    fn simpler(&self) -> Vec<Relation> {
        let mut simpler = Vec::new();
        if self.having.is_some() {
            simpler.push(Aggregate { having: None, ..self.clone() });
        }
        if self.sets.is_some() {
            simpler.push(Aggregate { sets: None, ..self.clone() });
        }
        if self.calls.len() > 1 {
            for at in 0..self.calls.len() {
                let mut calls = self.calls.clone();
                calls.remove(at);
                simpler.push(Aggregate { calls, ..self.clone() });
            }
        }
        simpler.extend(
            self.input
                .same_types()
                .into_iter()
                .map(|input| Aggregate { input: Box::new(input), ..self.clone() }),
        );
        simpler.into_iter().map(Relation::Aggregate).collect()
    }
}

fn order_text(order: &[(usize, bool)]) -> String {
    let keys: Vec<String> = order
        .iter()
        .map(|(at, ascending)| format!("c{at}{}", if *ascending { "" } else { " DESC" }))
        .collect();
    keys.join(", ")
}

/// Draws an order over all columns: rows that tie are equal, so that it does not matter which of them is kept.
fn draw_order(width: usize, rng: &mut StdRng) -> Vec<(usize, bool)> {
    let mut columns: Vec<usize> = (0..width).collect();
    for at in 0..width {
        columns.swap(at, rng.random_range(at..width));
    }
    columns.into_iter().map(|at| (at, rng.random())).collect()
}

/// Draws two columns of one plain type.
fn draw_pair(left: &[ColumnType], right: &[ColumnType], rng: &mut StdRng) -> Option<(usize, usize)> {
    let pairs: Vec<(usize, usize)> = left
        .iter()
        .enumerate()
        .flat_map(|(l, left)| right.iter().enumerate().map(move |(r, right)| (l, left, r, right)))
        .filter(|(_, left, _, right)| left == right && **left != ColumnType::Other)
        .map(|(l, _, r, _)| (l, r))
        .collect();
    pairs.choose(rng).copied()
}

/// Draws an item of a select list.
fn draw_expression(types: &[ColumnType], rng: &mut StdRng) -> (String, ColumnType) {
    let at = rng.random_range(0..types.len());
    let plain = (format!("c{at}"), types[at]);
    let ColumnType::Plain(data_type) = types[at] else { return plain };
    match (data_type, rng.random_range(0..3_u32)) {
        (Type::Int, 0) => (format!("c{at} + 1"), types[at]),
        (Type::Int, 1) => (format!("CASE WHEN c{at} > 1 THEN c{at} END"), types[at]),
        (Type::Text, 0) => (format!("UPPER(c{at})"), types[at]),
        (Type::Double, 0) => (format!("c{at} * 2"), types[at]),
        (Type::Boolean, 0) => (format!("NOT c{at}"), types[at]),
        _ => plain,
    }
}

/// Draws a condition over columns with a prefix.
fn draw_condition(prefix: &str, types: &[ColumnType], rng: &mut StdRng) -> String {
    let at = rng.random_range(0..types.len());
    let column = format!("{prefix}c{at}");
    match types[at] {
        ColumnType::Plain(data_type) if rng.random_ratio(5, 6) => match data_type {
            Type::Int | Type::Decimal | Type::Double => {
                format!(
                    "{column} {} {}",
                    ["<", ">", "=", "<>"].choose(rng).unwrap(),
                    rng.random_range(-1..3_i32)
                )
            }
            Type::BigInt => format!("{column} > 0"),
            Type::Text => format!("{column} {} 'a'", ["<", ">=", "=", "<>"].choose(rng).unwrap()),
            Type::Timestamp => format!("{column} > TIMESTAMP '2024-03-02 10:00:00'"),
            Type::Boolean => column,
        },
        _ => format!("{column} IS {}NULL", if rng.random() { "NOT " } else { "" }),
    }
}

/// Draws an aggregate call.
fn draw_call(types: &[ColumnType], keeps_order: bool, rng: &mut StdRng) -> (String, ColumnType) {
    let at = rng.random_range(0..types.len());
    let filter = if rng.random_ratio(1, 5) {
        format!(" FILTER (WHERE {})", draw_condition("", types, rng))
    } else {
        String::new()
    };
    let distinct = if rng.random_ratio(1, 4) { "DISTINCT " } else { "" };
    let count = (format!("COUNT({distinct}c{at}){filter}"), ColumnType::Plain(Type::BigInt));
    let ColumnType::Plain(data_type) = types[at] else { return count };
    let same = types[at];
    let call = |name: &str, result: ColumnType| (format!("{name}({distinct}c{at}){filter}"), result);
    let widened = if data_type == Type::Decimal { ColumnType::Other } else { same };
    match rng.random_range(0..10_u32) {
        0 => (format!("COUNT(*){filter}"), ColumnType::Plain(Type::BigInt)),
        1 | 2 if data_type.is_number() => call("SUM", widened),
        3 if data_type.is_number() => call("AVG", widened),
        4 if data_type != Type::Boolean => call("MIN", same),
        5 if data_type != Type::Boolean => call("MAX", same),
        6 if matches!(data_type, Type::Int | Type::Double) => {
            let name = ["STDDEV_POP", "VAR_SAMP", "VAR_POP"].choose(rng).unwrap();
            (format!("{name}(c{at}){filter}"), ColumnType::Other)
        }
        7 if keeps_order => (format!("FIRST_VALUE(c{at}){filter}"), same),
        8 if keeps_order => (format!("LAST_VALUE(c{at}){filter}"), same),
        9 if keeps_order && data_type == Type::Text => (format!("LISTAGG(c{at}){filter}"), same),
        _ => count,
    }
}
