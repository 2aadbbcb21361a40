//! Every statement of Flink's dialect, as parsed. Nothing is resolved: names are what the user wrote.
//!
//! Spans are bytes in the statement's own text. Equality ignores them, so that a printed and re-parsed statement is equal.

use std::sync::Arc;

use sqlparser::ast;

use super::positions::Positions;
use crate::error::Span;
use crate::schema::DataType;

/// A value with its place in the text. Places do not count in comparisons.
#[derive(Debug, Clone)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// The place.
    pub span: Span,
}

impl<T: PartialEq> PartialEq for Spanned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// A name of one or more parts, as written.
#[derive(Debug, Clone)]
pub struct ObjectName {
    /// The parts without quotes.
    pub parts: Vec<String>,
    /// The place of the whole name.
    pub span: Span,
}

impl PartialEq for ObjectName {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}

/// A query with what is needed to bind it.
#[derive(Debug, Clone)]
pub struct Query {
    /// sqlparser's tree.
    pub body: Box<ast::Query>,
    /// Turns sqlparser's lines and columns into bytes, and finds hints.
    pub positions: Arc<Positions>,
    /// The place of the query in the statement.
    pub span: Span,
}

impl PartialEq for Query {
    fn eq(&self, other: &Self) -> bool {
        self.body == other.body && self.positions.hints() == other.positions.hints()
    }
}

/// A scalar expression with what is needed to bind it.
#[derive(Debug, Clone)]
pub struct Expression {
    /// sqlparser's tree.
    pub body: ast::Expr,
    /// Turns sqlparser's lines and columns into bytes.
    pub positions: Arc<Positions>,
    /// The place of the expression in the statement.
    pub span: Span,
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.body == other.body
    }
}

/// One `'key' = 'value'`.
#[derive(Debug, Clone, PartialEq)]
pub struct SqlOption {
    /// The key.
    pub key: Spanned<String>,
    /// The value as written, references unresolved.
    pub value: Spanned<String>,
}

/// `/*+ NAME(…) */`.
#[derive(Debug, Clone, PartialEq)]
pub struct Hint {
    /// The name in capitals.
    pub name: String,
    /// Arguments with a key: OPTIONS, LOOKUP, STATE_TTL.
    pub options: Vec<SqlOption>,
    /// Arguments without: BROADCAST(t).
    pub arguments: Vec<String>,
    /// The place of the hint.
    pub span: HintSpan,
}

/// The place of a hint, and where the token before it ends, which is how a hint finds its table.
#[derive(Debug, Clone, Copy)]
pub struct HintSpan {
    /// The place of the comment.
    pub span: Span,
    /// The end of the token before it.
    pub previous_end: usize,
}

impl PartialEq for HintSpan {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "variants are named after the statement they hold")]
pub enum Statement {
    // Client commands.
    Help,
    Quit,
    Clear,
    /// `SET`, `SET ALL` (ours) or `SET k = v`.
    Set(SetCommand),
    /// `RESET` or `RESET k`.
    Reset(Option<Spanned<String>>),
    // Queries and changes.
    Query(Query),
    Insert(Insert),
    /// `BEGIN STATEMENT SET`.
    BeginStatementSet,
    /// `END`.
    EndStatementSet,
    /// `EXECUTE STATEMENT SET BEGIN … END`.
    StatementSet(Vec<Statement>),
    Update(Update),
    Delete(Delete),
    Truncate(ObjectName),
    Explain(Explain),
    // Catalogs.
    CreateCatalog(CreateCatalog),
    DropCatalog {
        name: Spanned<String>,
        if_exists: bool,
    },
    AlterCatalog {
        name: Spanned<String>,
        change: AlterOptions,
    },
    UseCatalog(Spanned<String>),
    // Databases.
    CreateDatabase(CreateDatabase),
    DropDatabase {
        name: ObjectName,
        if_exists: bool,
        cascade: bool,
    },
    AlterDatabase {
        name: ObjectName,
        options: Vec<SqlOption>,
    },
    UseDatabase(ObjectName),
    // Tables.
    CreateTable(Box<CreateTable>),
    DropTable {
        name: ObjectName,
        if_exists: bool,
        temporary: bool,
    },
    AlterTable(Box<AlterTable>),
    // Views.
    CreateView(Box<CreateView>),
    DropView {
        name: ObjectName,
        if_exists: bool,
        temporary: bool,
    },
    AlterView {
        name: ObjectName,
        change: AlterView,
    },
    // Functions, modules, procedures.
    CreateFunction(CreateFunction),
    DropFunction {
        name: ObjectName,
        if_exists: bool,
        temporary: bool,
        system: bool,
    },
    AlterFunction(CreateFunction),
    LoadModule {
        name: Spanned<String>,
        options: Vec<SqlOption>,
    },
    UnloadModule(Spanned<String>),
    UseModules(Vec<Spanned<String>>),
    Call(Call),
    // Jars.
    AddJar(Spanned<String>),
    RemoveJar(Spanned<String>),
    // Jobs.
    StopJob {
        job: Spanned<String>,
        with_savepoint: bool,
        with_drain: bool,
    },
    // Looking.
    Show(Show),
    Describe(Describe),
    Analyze(Analyze),
    // Parsed, then refused with a hint.
    CompilePlan(CompilePlan),
    ExecutePlan(Spanned<String>),
    /// CREATE, ALTER, DROP MATERIALIZED TABLE; the text is all that is kept.
    MaterializedTable(Unexecuted),
    /// CREATE, ALTER, DROP MODEL and CONNECTION.
    Model(Unexecuted),
}

/// What SET says.
#[derive(Debug, Clone, PartialEq)]
pub enum SetCommand {
    /// `SET`: what was set.
    List,
    /// `SET ALL`: every option.
    ListAll,
    /// `SET k = v`.
    Assign(SqlOption),
}

/// `[EXECUTE] INSERT …`.
#[derive(Debug, Clone, PartialEq)]
pub struct Insert {
    /// The table.
    pub target: ObjectName,
    /// Hints behind the table's name.
    pub hints: Vec<Hint>,
    /// OVERWRITE instead of INTO.
    pub overwrite: bool,
    /// `PARTITION (k = literal, …)`: values as expressions.
    pub partition: Vec<(Spanned<String>, Expression)>,
    /// The column list.
    pub columns: Option<Vec<Spanned<String>>>,
    /// The rows.
    pub source: Query,
    /// `ON CONFLICT DO …`.
    pub on_conflict: Option<OnConflict>,
}

/// What an upsert sink does with rows of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "Flink's words")]
pub enum OnConflict {
    Error,
    Nothing,
    Deduplicate,
}

/// `UPDATE t SET c = e, … [WHERE e]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// The table.
    pub target: ObjectName,
    /// Columns and their new values.
    pub assignments: Vec<(Spanned<String>, Expression)>,
    /// The condition.
    pub condition: Option<Expression>,
}

/// `DELETE FROM t [WHERE e]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Delete {
    /// The table.
    pub target: ObjectName,
    /// The condition.
    pub condition: Option<Expression>,
}

/// `EXPLAIN [PLAN FOR | detail, …] statement`.
#[derive(Debug, Clone, PartialEq)]
pub struct Explain {
    /// What to add to the plan.
    pub details: Vec<ExplainDetail>,
    /// What to explain: a query, an insert, a statement set or CTAS.
    pub statement: Box<Statement>,
}

/// What EXPLAIN adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "Flink's words")]
pub enum ExplainDetail {
    EstimatedCost,
    ChangelogMode,
    JsonExecutionPlan,
    PlanAdvice,
}

/// `CREATE CATALOG`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateCatalog {
    /// The name.
    pub name: Spanned<String>,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// COMMENT.
    pub comment: Option<String>,
    /// WITH.
    pub options: Vec<SqlOption>,
}

/// `CREATE DATABASE`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateDatabase {
    /// `[catalog.]database`.
    pub name: ObjectName,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// COMMENT.
    pub comment: Option<String>,
    /// WITH.
    pub options: Vec<SqlOption>,
}

/// SET, RESET or COMMENT of a catalog.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "Flink's words")]
pub enum AlterOptions {
    Set(Vec<SqlOption>),
    Reset(Vec<Spanned<String>>),
    Comment(String),
}

/// `CREATE TABLE` in all its forms.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTable {
    /// The name.
    pub name: ObjectName,
    /// TEMPORARY.
    pub temporary: bool,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// REPLACE TABLE or CREATE OR REPLACE TABLE.
    pub replace: Option<Replace>,
    /// Columns, keys and watermark in the order written.
    pub elements: Vec<TableElement>,
    /// `(a, b)` without types, before AS: reorders the query's columns.
    pub column_names: Option<Vec<Spanned<String>>>,
    /// COMMENT.
    pub comment: Option<String>,
    /// DISTRIBUTED.
    pub distribution: Option<DistributionClause>,
    /// PARTITIONED BY.
    pub partitioned_by: Vec<PartitionField>,
    /// WITH.
    pub options: Vec<SqlOption>,
    /// LIKE.
    pub like: Option<LikeClause>,
    /// AS.
    pub query: Option<Query>,
}

/// How a table is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// REPLACE TABLE: it must exist.
    MustExist,
    /// CREATE OR REPLACE TABLE.
    OrCreate,
}

/// One entry between the brackets of CREATE TABLE.
#[derive(Debug, Clone, PartialEq)]
pub enum TableElement {
    /// A column.
    Column(ColumnDefinition),
    /// PRIMARY KEY or UNIQUE.
    Constraint(TableConstraint),
    /// WATERMARK FOR.
    Watermark(WatermarkDefinition),
}

/// A column with its type or expression.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDefinition {
    /// The name.
    pub name: Spanned<String>,
    /// What it is.
    pub kind: ColumnDefinitionKind,
    /// COMMENT.
    pub comment: Option<String>,
}

/// What a column is.
#[derive(Debug, Clone, PartialEq)]
#[allow(
    clippy::large_enum_variant,
    reason = "there are as many as a statement has columns, and they do not live long"
)]
pub enum ColumnDefinitionKind {
    /// `type [constraint]`.
    Physical {
        /// The type.
        data_type: DataType,
        /// `[CONSTRAINT c] PRIMARY KEY NOT ENFORCED` behind the type.
        constraint: Option<TableConstraint>,
    },
    /// `type METADATA [FROM 'key'] [VIRTUAL]`.
    Metadata {
        /// The type.
        data_type: DataType,
        /// FROM.
        key: Option<String>,
        /// VIRTUAL.
        is_virtual: bool,
    },
    /// `AS expression`.
    Computed(Expression),
}

/// PRIMARY KEY or UNIQUE.
#[derive(Debug, Clone, PartialEq)]
pub struct TableConstraint {
    /// CONSTRAINT name.
    pub name: Option<String>,
    /// UNIQUE instead of PRIMARY KEY.
    pub unique: bool,
    /// The columns; empty behind a column, which is then the key.
    pub columns: Vec<Spanned<String>>,
    /// ENFORCED, NOT ENFORCED, or nothing.
    pub enforced: Option<bool>,
    /// The place.
    pub span: Spanned<()>,
}

/// `WATERMARK FOR column AS expression`.
#[derive(Debug, Clone, PartialEq)]
pub struct WatermarkDefinition {
    /// The column, or the path to a nested field.
    pub column: ObjectName,
    /// The expression.
    pub expression: Expression,
}

/// `DISTRIBUTED [BY [HASH|RANGE] (c, …)] [INTO n BUCKETS]`.
#[derive(Debug, Clone, PartialEq)]
pub struct DistributionClause {
    /// HASH or RANGE.
    pub kind: Option<String>,
    /// The columns.
    pub columns: Vec<Spanned<String>>,
    /// The number of buckets.
    pub buckets: Option<u32>,
}

/// One field of PARTITIONED BY.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionField {
    /// None for a column alone; otherwise the transform in small letters: bucket, truncate, years, months, days, hours.
    pub transform: Option<String>,
    /// The number of `bucket(16, id)` or `truncate(4, s)`.
    pub parameter: Option<u32>,
    /// The column.
    pub column: Spanned<String>,
    /// `AS name` (Spark's ALTER TABLE).
    pub alias: Option<String>,
}

/// `LIKE t (INCLUDING …)`.
#[derive(Debug, Clone, PartialEq)]
pub struct LikeClause {
    /// The base table.
    pub base: ObjectName,
    /// What is done with which part.
    pub options: Vec<(MergingStrategy, LikeFeature)>,
}

/// What LIKE does with a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "Flink's words")]
pub enum MergingStrategy {
    Including,
    Excluding,
    Overwriting,
}

/// A part of a table for LIKE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "Flink's words")]
pub enum LikeFeature {
    All,
    Constraints,
    Distribution,
    Generated,
    Metadata,
    Options,
    Partitions,
    Watermarks,
}

/// `ALTER TABLE [IF EXISTS] t …`.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterTable {
    /// The table.
    pub name: ObjectName,
    /// IF EXISTS.
    pub if_exists: bool,
    /// The change.
    pub change: TableChange,
}

/// What ALTER TABLE changes.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "Flink's and Spark's words")]
pub enum TableChange {
    RenameTable(ObjectName),
    RenameColumn {
        from: ObjectName,
        to: Spanned<String>,
    },
    SetOptions(Vec<SqlOption>),
    ResetOptions(Vec<Spanned<String>>),
    Add(Vec<SchemaElement>),
    Modify(Vec<SchemaElement>),
    AddDistribution(DistributionClause),
    ModifyDistribution(DistributionClause),
    AddPartitions {
        if_not_exists: bool,
        partitions: Vec<(PartitionSpec, Vec<SqlOption>)>,
    },
    DropColumns(Vec<ObjectName>),
    DropPrimaryKey,
    DropConstraint(Spanned<String>),
    DropWatermark,
    DropDistribution,
    DropPartitions {
        if_exists: bool,
        partitions: Vec<PartitionSpec>,
    },
    /// Spark: `ADD PARTITION FIELD`.
    AddPartitionField(PartitionField),
    /// Spark: `DROP PARTITION FIELD`.
    DropPartitionField(PartitionField),
    /// Spark: `REPLACE PARTITION FIELD a WITH b`.
    ReplacePartitionField {
        from: PartitionField,
        to: PartitionField,
    },
    /// Spark: `WRITE ORDERED BY c [ASC|DESC], …`; empty for `WRITE UNORDERED`.
    WriteOrderedBy(Vec<WriteOrder>),
    /// Spark: `CREATE|REPLACE BRANCH|TAG`.
    CreateRef(CreateRef),
    /// Spark: `DROP BRANCH|TAG`.
    DropRef {
        kind: RefKind,
        name: Spanned<String>,
        if_exists: bool,
    },
}

/// A column, key or watermark of ALTER TABLE ADD or MODIFY.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaElement {
    /// The element.
    pub element: TableElement,
    /// Where a column goes.
    pub position: Option<ColumnPosition>,
}

/// Where a column goes.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnPosition {
    /// FIRST.
    First,
    /// AFTER column.
    After(Spanned<String>),
}

/// `PARTITION (k = v, k2)`: values as they would be printed; None where only the key is named.
pub type PartitionSpec = Vec<(Spanned<String>, Option<Expression>)>;

/// One column of WRITE ORDERED BY.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteOrder {
    /// The column or transform.
    pub field: PartitionField,
    /// DESC.
    pub descending: bool,
    /// NULLS FIRST or NULLS LAST.
    pub nulls_first: Option<bool>,
}

/// Branch or tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "Iceberg's words")]
pub enum RefKind {
    Branch,
    Tag,
}

/// `CREATE [OR REPLACE] | REPLACE BRANCH|TAG [IF NOT EXISTS] name [AS OF VERSION n] [RETAIN n unit] …`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateRef {
    /// Branch or tag.
    pub kind: RefKind,
    /// The name.
    pub name: Spanned<String>,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// REPLACE or CREATE OR REPLACE.
    pub replace: Option<Replace>,
    /// AS OF VERSION.
    pub snapshot: Option<i64>,
    /// RETAIN, in milliseconds.
    pub retain_ms: Option<i64>,
    /// WITH SNAPSHOT RETENTION n SNAPSHOTS.
    pub min_snapshots: Option<i32>,
    /// WITH SNAPSHOT RETENTION n unit, in milliseconds.
    pub snapshot_age_ms: Option<i64>,
}

/// `CREATE VIEW`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateView {
    /// The name.
    pub name: ObjectName,
    /// TEMPORARY.
    pub temporary: bool,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// The column names.
    pub columns: Vec<Spanned<String>>,
    /// COMMENT.
    pub comment: Option<String>,
    /// AS.
    pub query: Query,
    /// The query's text as written.
    pub query_text: String,
}

/// What ALTER VIEW changes.
#[derive(Debug, Clone, PartialEq)]
pub enum AlterView {
    /// RENAME TO.
    Rename(ObjectName),
    /// AS, with the query's text as written.
    Query(Query, String),
}

/// CREATE FUNCTION and ALTER FUNCTION.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateFunction {
    /// The name.
    pub name: ObjectName,
    /// TEMPORARY.
    pub temporary: bool,
    /// SYSTEM.
    pub system: bool,
    /// IF NOT EXISTS, or IF EXISTS of ALTER.
    pub if_exists_clause: bool,
    /// AS.
    pub class_name: String,
    /// LANGUAGE.
    pub language: Option<String>,
    /// USING JAR|ARTIFACT: keyword and path.
    pub resources: Vec<(String, String)>,
    /// WITH.
    pub options: Vec<SqlOption>,
}

/// `CALL procedure(…)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The name.
    pub name: ObjectName,
    /// Arguments, named or by position.
    pub arguments: Vec<(Option<Spanned<String>>, Expression)>,
}

/// `SHOW …`.
#[derive(Debug, Clone, PartialEq)]
pub struct Show {
    /// What to show.
    pub what: ShowWhat,
    /// `LIKE 'pattern'`.
    pub like: Option<LikePattern>,
}

/// What SHOW shows.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "Flink's words")]
pub enum ShowWhat {
    Catalogs,
    CurrentCatalog,
    CurrentDatabase,
    Databases { catalog: Option<Spanned<String>> },
    Tables { database: Option<ObjectName> },
    Views { database: Option<ObjectName> },
    MaterializedTables { database: Option<ObjectName> },
    Functions { user_only: bool, database: Option<ObjectName> },
    Procedures { database: Option<ObjectName> },
    Models { database: Option<ObjectName> },
    Connections { database: Option<ObjectName> },
    Modules { full: bool },
    Jars,
    Jobs,
    Columns(ObjectName),
    Partitions { table: ObjectName, partition: PartitionSpec },
    CreateTable(ObjectName),
    CreateView(ObjectName),
    CreateCatalog(Spanned<String>),
    CreateMaterializedTable(ObjectName),
    CreateModel(ObjectName),
}

/// `[NOT] LIKE|ILIKE 'pattern'`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LikePattern {
    /// NOT.
    pub negated: bool,
    /// ILIKE.
    pub ignore_case: bool,
    /// The pattern: `%`, `_`, escape `\`.
    pub pattern: String,
}

/// `DESCRIBE …`.
#[derive(Debug, Clone, PartialEq)]
pub struct Describe {
    /// What.
    pub what: DescribeWhat,
    /// EXTENDED.
    pub extended: bool,
}

/// What DESCRIBE describes.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "Flink's words")]
pub enum DescribeWhat {
    Table(ObjectName),
    Catalog(Spanned<String>),
    Database(ObjectName),
    Function(ObjectName),
    Job(Spanned<String>),
    Model(ObjectName),
}

/// `ANALYZE TABLE t … COMPUTE STATISTICS …`.
#[derive(Debug, Clone, PartialEq)]
pub struct Analyze {
    /// The table.
    pub table: ObjectName,
    /// PARTITION.
    pub partition: PartitionSpec,
    /// FOR COLUMNS; empty for FOR ALL COLUMNS; None without FOR.
    pub columns: Option<Vec<Spanned<String>>>,
}

/// `COMPILE [AND EXECUTE] PLAN 'file' [IF NOT EXISTS] FOR statement`.
#[derive(Debug, Clone, PartialEq)]
pub struct CompilePlan {
    /// The file.
    pub file: String,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// AND EXECUTE.
    pub execute: bool,
    /// The insert or statement set.
    pub statement: Box<Statement>,
}

/// A statement that is recognised but never executed.
#[derive(Debug, Clone, PartialEq)]
pub struct Unexecuted {
    /// Its keywords: `CREATE MATERIALIZED TABLE`.
    pub keywords: String,
    /// The object.
    pub name: ObjectName,
    /// The tokens behind the name, one blank between them.
    pub rest: String,
}
