//! Tables whose rows come, change and go: random histories that are valid, with few different values, so that keys meet.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

/// A type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Int,
    BigInt,
    Decimal,
    Double,
    Text,
    Timestamp,
    Boolean,
}

/// How a table says what changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Changes {
    InsertOnly,
    /// `+I`, `-U`, `+U`, `-D`.
    Retract,
    /// `+I`, `+U` and `-D` with nothing but the key.
    Upsert,
}

/// A table with its history.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) name: String,
    /// The columns are `c0`, `c1`, …; where there is a key it is `c0`.
    pub(super) types: Vec<Type>,
    pub(super) has_key: bool,
    pub(super) changes: Changes,
    pub(super) events: Vec<Event>,
}

/// One change: its kind and the row's values as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) kind: &'static str,
    pub(super) row: Vec<String>,
}

impl Type {
    pub(super) const ALL: [Type; 7] =
        [Type::Int, Type::BigInt, Type::Decimal, Type::Double, Type::Text, Type::Timestamp, Type::Boolean];

    pub(super) fn sql(self) -> &'static str {
        match self {
            Type::Int => "INT",
            Type::BigInt => "BIGINT",
            Type::Decimal => "DECIMAL(10, 2)",
            Type::Double => "DOUBLE",
            Type::Text => "STRING",
            Type::Timestamp => "TIMESTAMP(3)",
            Type::Boolean => "BOOLEAN",
        }
    }

    pub(super) fn is_number(self) -> bool {
        matches!(self, Type::Int | Type::BigInt | Type::Decimal | Type::Double)
    }

    /// Draws a value as JSON. Sums of these doubles are exact.
    fn draw(self, rng: &mut StdRng) -> String {
        if rng.random_ratio(1, 7) {
            return "null".to_owned();
        }
        match self {
            Type::Int => rng.random_range(-2..5_i32).to_string(),
            Type::BigInt => (rng.random_range(0..4_i64) * 3_000_000_000).to_string(),
            Type::Decimal => {
                format!("{}.{:02}", rng.random_range(-2..3_i32), rng.random_range(0..2_u32) * 25)
            }
            Type::Double => (f64::from(rng.random_range(-3..5_i32)) / 2.0).to_string(),
            Type::Text => format!("\"{}\"", ["a", "b", "ab", "", "ä"].choose(rng).unwrap()),
            Type::Timestamp => format!("\"2024-03-0{} 10:00:00.000\"", rng.random_range(1..5_u32)),
            Type::Boolean => rng.random::<bool>().to_string(),
        }
    }
}

impl Table {
    pub(super) fn draw(number: usize, rng: &mut StdRng) -> Table {
        let has_key = rng.random_ratio(3, 5);
        let changes = match rng.random_range(0..6_u32) {
            0 | 1 => Changes::InsertOnly,
            2 if has_key => Changes::Upsert,
            _ => Changes::Retract,
        };
        let mut types = vec![Type::Int];
        types.extend((0..rng.random_range(1..4_u32)).map(|_| *Type::ALL.choose(rng).unwrap()));
        let mut table = Table { name: format!("t{number}"), types, has_key, changes, events: Vec::new() };
        table.draw_events(rng);
        table
    }

    fn draw_row(&self, key: usize, rng: &mut StdRng) -> Vec<String> {
        let mut row: Vec<String> = self.types.iter().map(|data_type| data_type.draw(rng)).collect();
        if self.has_key {
            row[0] = key.to_string();
        }
        row
    }

    fn draw_events(&mut self, rng: &mut StdRng) {
        let count = *[0, 3, 12, 40].choose(rng).unwrap();
        let mut live: Vec<Vec<String>> = Vec::new();
        let mut next_key = 0;
        while self.events.len() < count {
            let step = if self.changes == Changes::InsertOnly { 0 } else { rng.random_range(0..5_u32) };
            let chosen = (!live.is_empty()).then(|| rng.random_range(0..live.len()));
            match (step, chosen) {
                (3, Some(at)) => {
                    let old = live.remove(at);
                    self.push("-D", old);
                }
                (4, Some(at)) => {
                    let old = live.remove(at);
                    let key = old[0].parse().unwrap_or_default();
                    let new = self.draw_row(key, rng);
                    if new == old {
                        // Whether a change of nothing makes a row arrive anew is nobody's business.
                        live.insert(at, old);
                        continue;
                    }
                    self.push("-U", old);
                    self.push("+U", new.clone());
                    live.push(new);
                }
                _ => {
                    // A key that was deleted may come again.
                    let is_free = |key: usize| !live.iter().any(|row| row[0] == key.to_string());
                    let key = (0..next_key).find(|key| is_free(*key) && rng.random()).unwrap_or(next_key);
                    next_key = next_key.max(key + 1);
                    let row = self.draw_row(key, rng);
                    self.push("+I", row.clone());
                    live.push(row);
                }
            }
        }
    }

    fn push(&mut self, kind: &'static str, mut row: Vec<String>) {
        if self.changes == Changes::Upsert {
            match kind {
                "-U" => return,
                "-D" => row[1..].iter_mut().for_each(|value| *value = "null".to_owned()),
                _ => {}
            }
        }
        self.events.push(Event { kind, row });
    }

    /// Returns the rows that are there after the first `count` changes, in the order of their arrival. What `+U` brings arrives
    /// anew, and what is taken away is the first equal row.
    pub(super) fn rows_after(&self, count: usize) -> Vec<Vec<String>> {
        let mut live: Vec<Vec<String>> = Vec::new();
        for event in &self.events[..count] {
            let by_key = self.changes == Changes::Upsert;
            let place =
                live.iter().position(|row| if by_key { row[0] == event.row[0] } else { *row == event.row });
            match (event.kind, place) {
                ("-U" | "-D", Some(at)) => {
                    live.remove(at);
                }
                ("-U" | "-D", None) => {}
                (_, Some(at)) if by_key => {
                    live.remove(at);
                    live.push(event.row.clone());
                }
                _ => live.push(event.row.clone()),
            }
        }
        live
    }

    /// Returns CREATE TABLE with the whole history.
    pub(super) fn changing_table(&self) -> String {
        let row = |event: &Event| format!("[\"{}\",{}]", event.kind, event.row.join(","));
        let rows: Vec<String> = match self.changes {
            Changes::InsertOnly => {
                self.events.iter().map(|event| format!("[{}]", event.row.join(","))).collect()
            }
            _ => self.events.iter().map(row).collect(),
        };
        let mode = match self.changes {
            Changes::InsertOnly => "",
            Changes::Retract => ", 'changelog-mode' = 'I,UB,UA,D'",
            Changes::Upsert => ", 'changelog-mode' = 'I,UA,D'",
        };
        self.create(&rows, mode)
    }

    /// Returns CREATE TABLE with the rows that are there after the first `count` changes.
    pub(super) fn table_after(&self, count: usize) -> String {
        let rows: Vec<String> =
            self.rows_after(count).iter().map(|row| format!("[{}]", row.join(","))).collect();
        self.create(&rows, "")
    }

    fn create(&self, rows: &[String], mode: &str) -> String {
        let columns: Vec<String> = self
            .types
            .iter()
            .enumerate()
            .map(|(at, data_type)| format!("c{at} {}", data_type.sql()))
            .collect();
        let key = if self.has_key { ", PRIMARY KEY (c0) NOT ENFORCED" } else { "" };
        format!(
            "CREATE TABLE {} ({}{key}) WITH ('connector' = 'values', 'rows' = '[{}]'{mode})",
            self.name,
            columns.join(", "),
            rows.join(",")
        )
    }

    pub(super) fn describe(&self) -> String {
        self.changing_table()
    }

    /// Returns tables with fewer changes: without a half, or without a row's whole life.
    pub(super) fn smaller(&self) -> Vec<Table> {
        let with = |events: Vec<Event>| Table { events, ..self.clone() };
        let mut smaller = Vec::new();
        if self.events.len() > 1 {
            smaller.push(with(Vec::new()));
            smaller.push(with(self.events[..self.events.len() / 2].to_vec()));
        }
        if self.events.last().is_some_and(|event| event.kind != "+U") {
            smaller.push(with(self.events[..self.events.len() - 1].to_vec()));
        }
        for at in 0..self.events.len() {
            let mut events = self.events.clone();
            let gone = events.remove(at);
            if gone.kind == "-U" {
                continue;
            }
            // What takes the row back goes with it; a chain of updates stays, with its first link cut.
            if gone.kind.starts_with('+') {
                let Some(end) = events[at..]
                    .iter()
                    .position(|event| event.kind.starts_with('-') && event.row == gone.row)
                else {
                    if gone.kind == "+I" {
                        smaller.push(with(events));
                    }
                    continue;
                };
                let end = at + end;
                if events[end].kind == "-U" {
                    events.remove(end);
                    if let Some(next) = events.get_mut(end) {
                        next.kind = gone.kind;
                    }
                } else if gone.kind == "+I" {
                    events.remove(end);
                } else {
                    continue;
                }
                smaller.push(with(events));
            }
        }
        smaller
    }
}
