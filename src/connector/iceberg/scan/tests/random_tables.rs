//! Random tables (columns that come, go, and change; all kinds of deletes; changing specs) under random queries: what a scan answers
//! is what a plain list of rows answers.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::cast as cast_array;
use arrow::datatypes::{DataType as ArrowType, Schema as ArrowSchema, TimeUnit};
use datafusion::catalog::TableProvider;
use datafusion::common::ScalarValue;
use datafusion::datasource::MemTable;
use datafusion::functions_aggregate::expr_fn::{count, max, min};
use datafusion::logical_expr::{Expr, not};
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext, cast, col, lit};
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::spec::{
    FormatVersion, Literal, NestedField, PrimitiveType, Struct, Transform, Type, UnboundPartitionSpec,
};
use iceberg::transform::create_transform_function;
use parquet::file::properties::WriterProperties;
use rand::rngs::StdRng;
use rand::seq::{IndexedMutRandom, IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};

use super::ieee::{self, Comparison};
use super::test_table::{DataOptions, TestTable, lines, schema, sorted};
use crate::connector::iceberg::manifest::TableFile;

/// How many tables are tried.
const TABLES: u64 = 8;

/// How many things happen to a table.
const STEPS: usize = 10;

/// How many queries are asked of a table.
const QUERIES: usize = 12;

/// A column of the table as it is now.
#[derive(Debug, Clone)]
struct Column {
    id: i32,
    name: String,
    primitive: PrimitiveType,
    default: Option<ScalarValue>,
}

/// A data file and what should be left of it.
struct File {
    file: TableFile,
    sequence_number: i64,
    rows: Vec<HashMap<i32, ScalarValue>>,
    alive: Vec<bool>,
    /// What deletion vectors have deleted.
    vector: HashSet<u64>,
}

struct World {
    random: StdRng,
    table: TestTable,
    version: FormatVersion,
    columns: Vec<Column>,
    /// All columns there ever were, as they were last.
    all_columns: HashMap<i32, Column>,
    files: Vec<File>,
    sequence_number: i64,
    last_id: i32,
    /// The current spec: source and transform.
    spec: Option<(i32, Transform)>,
}

fn arrow_type(primitive: &PrimitiveType) -> ArrowType {
    match primitive {
        PrimitiveType::Int => ArrowType::Int32,
        PrimitiveType::Long => ArrowType::Int64,
        PrimitiveType::Float => ArrowType::Float32,
        PrimitiveType::Double => ArrowType::Float64,
        PrimitiveType::String => ArrowType::Utf8,
        PrimitiveType::Date => ArrowType::Date32,
        PrimitiveType::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, None),
        PrimitiveType::Boolean => ArrowType::Boolean,
        PrimitiveType::Decimal { precision, scale } => ArrowType::Decimal128(*precision as u8, *scale as i8),
        other => panic!("{other}"),
    }
}

fn convert(value: &ScalarValue, to: &ArrowType) -> ScalarValue {
    let array = cast_array(&value.to_array().unwrap(), to).unwrap();
    ScalarValue::try_from_array(&array, 0).unwrap()
}

fn decimal(precision: u32) -> PrimitiveType {
    PrimitiveType::Decimal { precision, scale: 2 }
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = StdRng::seed_from_u64(seed);
        let version = if random.random_bool(0.5) { FormatVersion::V2 } else { FormatVersion::V3 };
        let kinds = [
            ("i", PrimitiveType::Int),
            ("l", PrimitiveType::Long),
            ("f", PrimitiveType::Float),
            ("x", PrimitiveType::Double),
            ("s", PrimitiveType::String),
            ("d", PrimitiveType::Date),
            ("ts", PrimitiveType::Timestamp),
            ("n", decimal(5)),
            ("b", PrimitiveType::Boolean),
        ];
        let columns: Vec<Column> = kinds
            .iter()
            .zip(1..)
            .map(|((name, primitive), id)| Column {
                id,
                name: (*name).to_owned(),
                primitive: primitive.clone(),
                default: None,
            })
            .collect();
        let mut world = World {
            table: TestTable::new(version, schema(&kinds)),
            random,
            version,
            all_columns: columns.iter().map(|column| (column.id, column.clone())).collect(),
            last_id: columns.len() as i32,
            columns,
            files: Vec::new(),
            sequence_number: 0,
            spec: None,
        };
        for _ in 0..STEPS {
            world.step();
        }
        world
    }

    fn step(&mut self) {
        match self.random.random_range(0..10) {
            0..4 => self.append(),
            4 => self.delete_positions(),
            5..7 => self.delete_keys(),
            7..9 => self.evolve(),
            _ => self.repartition(),
        }
    }

    /// Draws a value; few are possible, so that many are equal.
    fn value(&mut self, primitive: &PrimitiveType) -> ScalarValue {
        let number = self.random.random_range(-3..5);
        let float = *[f64::NAN, -0.0, 0.0, 1.5, -2.5, f64::INFINITY, f64::NEG_INFINITY, 7.0]
            .choose(&mut self.random)
            .unwrap();
        let text = ["", "a", "ab", "abc", "b", "bcd and much more than sixteen letters", "ä"]
            .choose(&mut self.random)
            .unwrap();
        match primitive {
            PrimitiveType::Int => ScalarValue::Int32(Some(number)),
            PrimitiveType::Long => ScalarValue::Int64(Some(i64::from(number) * 1_000_000_000_000)),
            PrimitiveType::Float => ScalarValue::Float32(Some(float as f32)),
            PrimitiveType::Double => ScalarValue::Float64(Some(float)),
            PrimitiveType::String => ScalarValue::Utf8(Some((*text).to_owned())),
            PrimitiveType::Date => ScalarValue::Date32(Some(number * 20)),
            PrimitiveType::Timestamp => {
                ScalarValue::TimestampMicrosecond(Some(i64::from(number) * 25_200_000_000 + 1), None)
            }
            PrimitiveType::Boolean => ScalarValue::Boolean(Some(number > 0)),
            PrimitiveType::Decimal { precision, scale } => {
                ScalarValue::Decimal128(Some(i128::from(number) * 55), *precision as u8, *scale as i8)
            }
            other => panic!("{other}"),
        }
    }

    fn value_or_null(&mut self, primitive: &PrimitiveType) -> ScalarValue {
        if self.random.random_bool(0.2) {
            return ScalarValue::try_new_null(&arrow_type(primitive)).unwrap();
        }
        self.value(primitive)
    }

    /// Makes columns of values, in the types that files have.
    fn batch(columns: &[Column], rows: &[HashMap<i32, ScalarValue>], arrow: ArrowSchema) -> RecordBatch {
        let column = |column: &Column| -> ArrayRef {
            ScalarValue::iter_to_array(rows.iter().map(|row| row[&column.id].clone())).unwrap()
        };
        RecordBatch::try_new(Arc::new(arrow), columns.iter().map(column).collect()).unwrap()
    }

    fn append(&mut self) {
        let columns = self.columns.clone();
        let mut groups: BTreeMap<String, (Struct, Vec<HashMap<i32, ScalarValue>>)> = BTreeMap::new();
        for _ in 0..self.random.random_range(1..25) {
            let row: HashMap<i32, ScalarValue> =
                columns.iter().map(|column| (column.id, self.value_or_null(&column.primitive))).collect();
            let partition = self.partition(&row);
            groups.entry(format!("{partition:?}")).or_insert((partition, Vec::new())).1.push(row);
        }
        self.sequence_number += 1;
        let mut added = Vec::new();
        for (partition, rows) in groups.into_values() {
            let properties =
                WriterProperties::builder().set_max_row_group_row_count(Some(self.random.random_range(1..8)));
            // The column of an identity partition need not be in its files.
            let without = match &self.spec {
                Some((id, Transform::Identity)) if self.random.random_bool(0.5) => {
                    let name = &self.all_columns[id].name;
                    vec![*NAMES.iter().find(|other| *other == name).unwrap_or(&"-")]
                }
                _ => Vec::new(),
            };
            let options =
                DataOptions { properties, partition, without, bound_length: 3, ..DataOptions::default() };
            let arrow = schema_to_arrow_schema(self.table.metadata().current_schema()).unwrap();
            let file = self.table.data_of(&World::batch(&columns, &rows, arrow), &options);
            added.push(file.clone());
            self.files.push(File {
                file,
                sequence_number: self.sequence_number,
                alive: vec![true; rows.len()],
                rows,
                vector: HashSet::new(),
            });
        }
        block_on(self.table.commit(added, Vec::new()));
    }

    fn partition(&self, row: &HashMap<i32, ScalarValue>) -> Struct {
        let Some((source, transform)) = &self.spec else { return Struct::empty() };
        let value = row[source].to_array().unwrap();
        let transformed = create_transform_function(transform).unwrap().transform(value).unwrap();
        Struct::from_iter([literal(&ScalarValue::try_from_array(&transformed, 0).unwrap())])
    }

    fn delete_positions(&mut self) {
        let Some(place) = (0..self.files.len()).collect::<Vec<_>>().choose(&mut self.random).copied() else {
            return;
        };
        let same_partition: Vec<usize> = (0..self.files.len())
            .filter(|other| {
                let (one, other) = (&self.files[place].file, &self.files[*other].file);
                one.spec_id == other.spec_id && one.file.partition() == other.file.partition()
            })
            .collect();
        let is_scoped = self.random.random_bool(0.5);
        let chosen =
            if is_scoped || self.version == FormatVersion::V3 { vec![place] } else { same_partition };
        let mut deleted = Vec::new();
        for place in chosen {
            let share = *[0.1, 0.5, 1.0].choose(&mut self.random).unwrap();
            let positions: Vec<u64> =
                (0..self.files[place].rows.len() as u64).filter(|_| self.random.random_bool(share)).collect();
            for position in &positions {
                self.files[place].alive[*position as usize] = false;
            }
            self.files[place].vector.extend(&positions);
            deleted.push((place, positions));
        }
        deleted.retain(|(_, positions)| !positions.is_empty());
        if deleted.is_empty() {
            return;
        }
        self.sequence_number += 1;
        let file = if self.version == FormatVersion::V3 {
            let file = &self.files[deleted[0].0];
            let mut positions: Vec<u64> = file.vector.iter().copied().collect();
            positions.sort_unstable();
            self.table.deletion_vector(&file.file, &positions)
        } else {
            let named: Vec<(&TableFile, &[u64])> = deleted
                .iter()
                .map(|(place, positions)| (&self.files[*place].file, positions.as_slice()))
                .collect();
            self.table.position_deletes(&named, is_scoped)
        };
        block_on(self.table.commit(Vec::new(), vec![file]));
    }

    fn delete_keys(&mut self) {
        let mut chosen = self.columns.clone();
        chosen.shuffle(&mut self.random);
        chosen.truncate(self.random.random_range(1..3));
        let is_global = self.spec.is_none();
        let scope = match self.files.choose(&mut self.random) {
            Some(file)
                if !is_global && file.file.spec_id == self.table.metadata().default_partition_spec_id() =>
            {
                Some(file.file.clone())
            }
            _ if is_global => None,
            _ => return,
        };
        let keys: Vec<HashMap<i32, ScalarValue>> = (0..self.random.random_range(1..4))
            .map(|_| chosen.iter().map(|column| (column.id, self.value_or_null(&column.primitive))).collect())
            .collect();
        self.sequence_number += 1;
        let names: Vec<&str> = chosen.iter().map(|column| column.name.as_str()).collect();
        let file = self
            .table
            .equality_deletes_of(&names, scope.as_ref(), |arrow| World::batch(&chosen, &keys, arrow));
        for other in &mut self.files {
            let applies = scope.as_ref().is_none_or(|scope| {
                scope.spec_id == other.file.spec_id && scope.file.partition() == other.file.file.partition()
            });
            if !applies || other.sequence_number >= self.sequence_number {
                continue;
            }
            for (row, alive) in other.rows.iter().zip(&mut other.alive) {
                let is_deleted = keys.iter().any(|key| {
                    key.iter().all(|(id, value)| is_same(&value_of(row, &self.all_columns[id]), value))
                });
                *alive &= !is_deleted;
            }
        }
        block_on(self.table.commit(Vec::new(), vec![file]));
    }

    fn evolve(&mut self) {
        let used = self.spec.map(|(id, _)| id);
        match self.random.random_range(0..4) {
            0 => {
                self.last_id += 1;
                let primitive =
                    [PrimitiveType::Int, PrimitiveType::String, PrimitiveType::Double, decimal(5)]
                        .choose(&mut self.random)
                        .unwrap()
                        .clone();
                let has_default = self.version == FormatVersion::V3 && self.random.random_bool(0.5);
                let default = has_default.then(|| self.value(&primitive));
                let name = self.free_name();
                self.columns.push(Column { id: self.last_id, name, primitive, default });
            }
            1 if self.columns.len() > 3 => {
                let place = self.random.random_range(0..self.columns.len());
                if Some(self.columns[place].id) != used {
                    self.columns.remove(place);
                }
            }
            2 => {
                let name = self.free_name();
                self.columns.choose_mut(&mut self.random).unwrap().name = name;
                self.columns.shuffle(&mut self.random);
            }
            _ => {
                for column in &mut self.columns {
                    column.primitive = match &column.primitive {
                        PrimitiveType::Int => PrimitiveType::Long,
                        PrimitiveType::Float => PrimitiveType::Double,
                        PrimitiveType::Decimal { .. } => decimal(9),
                        other => other.clone(),
                    };
                    let arrow = arrow_type(&column.primitive);
                    column.default = column.default.as_ref().map(|default| convert(default, &arrow));
                }
            }
        }
        for column in &self.columns {
            self.all_columns.insert(column.id, column.clone());
        }
        let fields = self.columns.iter().map(|column| {
            let field =
                NestedField::optional(column.id, &column.name, Type::Primitive(column.primitive.clone()));
            match column.default.as_ref().and_then(literal) {
                Some(default) => field.with_initial_default(default),
                None => field,
            }
        });
        self.table.evolve(fields.collect());
    }

    fn free_name(&mut self) -> String {
        let free: Vec<&&str> =
            NAMES.iter().filter(|name| self.columns.iter().all(|column| column.name != **name)).collect();
        (**free.choose(&mut self.random).unwrap()).to_owned()
    }

    fn repartition(&mut self) {
        let column = self.columns.choose(&mut self.random).unwrap().clone();
        let transforms: &[Transform] = match &column.primitive {
            PrimitiveType::Int | PrimitiveType::Long => {
                &[Transform::Identity, Transform::Bucket(3), Transform::Truncate(2)]
            }
            PrimitiveType::String => &[Transform::Identity, Transform::Bucket(3), Transform::Truncate(1)],
            PrimitiveType::Date => &[Transform::Identity, Transform::Month, Transform::Year],
            PrimitiveType::Timestamp => &[Transform::Day, Transform::Hour, Transform::Identity],
            PrimitiveType::Decimal { .. } => &[Transform::Bucket(3), Transform::Truncate(100)],
            PrimitiveType::Double | PrimitiveType::Boolean => &[Transform::Identity],
            _ => return,
        };
        let transform = *transforms.choose(&mut self.random).unwrap();
        let is_none = self.random.random_bool(0.2);
        let mut spec = UnboundPartitionSpec::builder();
        if !is_none {
            let name = format!("part_{}_{}", column.id, self.random.random_range(0..1000));
            spec = spec.add_partition_field(column.id, name, transform).unwrap();
        }
        let spec = spec.build();
        self.table.change(|builder| builder.add_default_partition_spec(spec));
        self.spec = (!is_none).then_some((column.id, transform));
    }

    /// Returns the rows that should be there.
    fn expected(&self) -> RecordBatch {
        let rows: Vec<&HashMap<i32, ScalarValue>> = self
            .files
            .iter()
            .flat_map(|file| {
                file.rows.iter().zip(&file.alive).filter(|(_, alive)| **alive).map(|(row, _)| row)
            })
            .collect();
        let schema = TableProvider::schema(self.table.provider().as_ref());
        let column = |column: &Column| -> ArrayRef {
            let values: Vec<ScalarValue> = rows.iter().map(|row| value_of(row, column)).collect();
            if values.is_empty() {
                return arrow::array::new_empty_array(&arrow_type(&column.primitive));
            }
            ScalarValue::iter_to_array(values).unwrap()
        };
        RecordBatch::try_new(schema, self.columns.iter().map(column).collect()).unwrap()
    }

    /// Draws a condition.
    fn condition(&mut self, depth: usize) -> Expr {
        match self.random.random_range(0..8) {
            0 | 1 if depth > 0 => self.condition(depth - 1).and(self.condition(depth - 1)),
            2 if depth > 0 => self.condition(depth - 1).or(self.condition(depth - 1)),
            3 if depth > 0 => not(self.condition(depth - 1)),
            _ => self.test(),
        }
    }

    fn test(&mut self) -> Expr {
        let column = self.columns.choose(&mut self.random).unwrap().clone();
        let (operand, value) = (col(&column.name), self.value(&column.primitive));
        let comparison = *[
            Comparison::Eq,
            Comparison::NotEq,
            Comparison::Lt,
            Comparison::LtEq,
            Comparison::Gt,
            Comparison::GtEq,
        ]
        .choose(&mut self.random)
        .unwrap();
        match self.random.random_range(0..8) {
            0 => operand.is_null(),
            1 => operand.is_not_null(),
            2 => {
                let mut list = vec![lit(value)];
                for _ in 0..self.random.random_range(0..3) {
                    list.push(lit(self.value_or_null(&column.primitive)));
                }
                operand.in_list(list, self.random.random_bool(0.3))
            }
            _ if arrow_type(&column.primitive).is_floating() => {
                let constant = lit(convert(&value, &ArrowType::Float64));
                let operand = if column.primitive == PrimitiveType::Float {
                    cast(operand, ArrowType::Float64)
                } else {
                    operand
                };
                if self.random.random_bool(0.3) {
                    return ieee::compare(comparison, constant, operand);
                }
                ieee::compare(comparison, operand, constant)
            }
            3 if column.primitive == PrimitiveType::Boolean => operand,
            _ => match comparison {
                Comparison::Eq => operand.eq(lit(value)),
                Comparison::NotEq => operand.not_eq(lit(value)),
                Comparison::Lt => operand.lt(lit(value)),
                Comparison::LtEq => operand.lt_eq(lit(value)),
                Comparison::Gt => operand.gt(lit(value)),
                Comparison::GtEq => operand.gt_eq(lit(value)),
            },
        }
    }
}

/// The names that columns can have.
const NAMES: [&str; 16] = ["i", "l", "f", "x", "s", "d", "ts", "n", "b", "p", "q", "r", "t", "u", "v", "w"];

/// Returns what a row has in a column, in the column's type.
fn value_of(row: &HashMap<i32, ScalarValue>, column: &Column) -> ScalarValue {
    let arrow = arrow_type(&column.primitive);
    match (row.get(&column.id), &column.default) {
        (Some(value), _) => convert(value, &arrow),
        (None, Some(default)) => default.clone(),
        (None, None) => ScalarValue::try_new_null(&arrow).unwrap(),
    }
}

/// Returns whether two values are equal for an equality delete: by bits, all NaN alike; `ScalarValue` compares floats so.
fn is_same(left: &ScalarValue, right: &ScalarValue) -> bool {
    convert(right, &left.data_type()) == *left
}

fn literal(value: &ScalarValue) -> Option<Literal> {
    Some(match value {
        ScalarValue::Int32(Some(value)) => Literal::int(*value),
        ScalarValue::Int64(Some(value)) => Literal::long(*value),
        ScalarValue::Float64(Some(value)) => Literal::double(*value),
        ScalarValue::Utf8(Some(value)) => Literal::string(value),
        ScalarValue::Date32(Some(value)) => Literal::date(*value),
        ScalarValue::TimestampMicrosecond(Some(value), _) => Literal::timestamp(*value),
        ScalarValue::Boolean(Some(value)) => Literal::bool(*value),
        ScalarValue::Decimal128(Some(value), ..) => Literal::decimal(*value),
        value if value.is_null() => return None,
        other => panic!("{other:?}"),
    })
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    futures::executor::block_on(future)
}

/// Returns the model's rows as DataFusion queries them.
fn model(rows: &RecordBatch) -> DataFrame {
    let table = MemTable::try_new(rows.schema(), vec![vec![rows.clone()]]).unwrap();
    let config = SessionConfig::new().with_target_partitions(1);
    SessionContext::new_with_config(config).read_table(Arc::new(table)).unwrap()
}

async fn check(seed: u64) {
    let mut world = World::new(seed);
    let expected = world.expected();
    let all = sorted(std::slice::from_ref(&expected));
    assert_eq!(sorted(&world.table.frame(1).collect().await.unwrap()), all, "table {seed}");
    assert_eq!(world.table.rows().await, all, "table {seed}");
    for query in 0..QUERIES {
        let condition = world.condition(2);
        let answer = model(&expected).filter(condition.clone()).unwrap().collect().await.unwrap();
        let (place, scanned) =
            (format!("table {seed}, query {query}: {condition}"), world.table.rows_where(condition).await);
        assert_eq!(scanned, sorted(&answer), "{place}");
    }
    for column in &world.columns.clone() {
        let name = col(&column.name);
        let calls = vec![count(lit(1_i64)), count(name.clone()), min(name.clone()), max(name.clone())];
        let ask = |frame: DataFrame| {
            let calls = calls.clone();
            async move { lines(&frame.aggregate(Vec::new(), calls).unwrap().collect().await.unwrap()) }
        };
        let place = format!("table {seed}, aggregates of {}", column.name);
        assert_eq!(ask(world.table.frame(2)).await, ask(model(&expected)).await, "{place}");
        let ascending = world.random.random_bool(0.5);
        let limit = world.random.random_range(1..6);
        let first = |frame: DataFrame| {
            let sort = vec![name.clone().sort(ascending, !ascending)];
            let frame =
                frame.select(vec![name.clone()]).unwrap().sort(sort).unwrap().limit(0, Some(limit)).unwrap();
            async move { lines(&frame.collect().await.unwrap()) }
        };
        let place = format!("table {seed}, first {limit} by {} ({ascending})", column.name);
        assert_eq!(first(world.table.frame(2)).await, first(model(&expected)).await, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scans_answer_as_lists_of_rows_do() {
    for seed in 0..TABLES {
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(check(seed)));
    }
}
