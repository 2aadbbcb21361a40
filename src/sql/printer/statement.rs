//! Every statement but tables and queries.

use super::super::{
    AlterOptions, AlterView, Analyze, CompilePlan, CreateFunction, Describe, DescribeWhat, Explain,
    ExplainDetail, Insert, LikePattern, ObjectName, OnConflict, PartitionSpec, SetCommand, Show, ShowWhat,
    Spanned, Statement, Unexecuted,
};
use super::Printer;

impl<'a> Printer<'a> {
    /// Appends a statement without `;`.
    pub(super) fn statement(&mut self, statement: &'a Statement) {
        match statement {
            Statement::Help => self.push("HELP"),
            Statement::Quit => self.push("QUIT"),
            Statement::Clear => self.push("CLEAR"),
            Statement::Set(command) => self.set(command),
            Statement::Reset(None) => self.push("RESET"),
            Statement::Reset(Some(key)) => self.words_and_text("RESET ", key),
            Statement::Query(query) => self.spanned_query(query),
            Statement::Insert(insert) => self.insert(insert),
            Statement::BeginStatementSet => self.push("BEGIN STATEMENT SET"),
            Statement::EndStatementSet => self.push("END"),
            Statement::StatementSet(statements) => {
                self.push("EXECUTE ");
                self.statement_set(statements);
            }
            Statement::Update(_) | Statement::Delete(_) | Statement::Truncate(_) => self.change(statement),
            Statement::Explain(explain) => self.explain(explain),
            Statement::CreateTable(table) => self.create_table(table),
            Statement::AlterTable(table) => self.alter_table(table),
            Statement::Show(show) => self.show(show),
            Statement::Describe(describe) => self.describe(describe),
            Statement::Analyze(analyze) => self.analyze(analyze),
            Statement::CompilePlan(plan) => self.compile_plan(plan),
            Statement::ExecutePlan(file) => self.words_and_text("EXECUTE PLAN ", file),
            Statement::MaterializedTable(held) | Statement::Model(held) => self.unexecuted(held),
            Statement::AddJar(path) => self.words_and_text("ADD JAR ", path),
            Statement::RemoveJar(path) => self.words_and_text("REMOVE JAR ", path),
            Statement::StopJob { job, with_savepoint, with_drain } => {
                self.words_and_text("STOP JOB ", job);
                self.push_if(*with_savepoint, " WITH SAVEPOINT");
                self.push_if(*with_drain, " WITH DRAIN");
            }
            _ => self.object_statement(statement),
        }
    }

    /// Appends statements that make, change or use an object other than a table.
    fn object_statement(&mut self, statement: &'a Statement) {
        match statement {
            Statement::CreateCatalog(catalog) => {
                self.push("CREATE CATALOG ");
                self.push_if(catalog.if_not_exists, "IF NOT EXISTS ");
                self.name(&catalog.name.value);
                self.comment(catalog.comment.as_ref());
                self.with_options(&catalog.options);
            }
            Statement::AlterCatalog { name, change } => {
                self.push("ALTER CATALOG ");
                self.name(&name.value);
                self.alter_options(change);
            }
            Statement::UseCatalog(name) => {
                self.push("USE CATALOG ");
                self.name(&name.value);
            }
            Statement::CreateDatabase(database) => {
                self.push("CREATE DATABASE ");
                self.push_if(database.if_not_exists, "IF NOT EXISTS ");
                self.object(&database.name);
                self.comment(database.comment.as_ref());
                self.with_options(&database.options);
            }
            Statement::AlterDatabase { name, options } => {
                self.push("ALTER DATABASE ");
                self.object(name);
                self.push(" SET ");
                self.options(options);
            }
            // A database whose name is a keyword of USE gets its back-ticks.
            Statement::UseDatabase(name) => {
                self.push("USE ");
                self.list(&name.parts, ".", |printer, part| printer.push(&super::back_tick(part)));
            }
            _ => self.view_or_function(statement),
        }
    }

    /// Appends statements that make or change a view, a function or a module, or call a procedure.
    fn view_or_function(&mut self, statement: &'a Statement) {
        match statement {
            Statement::CreateView(view) => {
                self.push("CREATE ");
                self.push_if(view.temporary, "TEMPORARY ");
                self.push("VIEW ");
                self.push_if(view.if_not_exists, "IF NOT EXISTS ");
                self.object(&view.name);
                if !view.columns.is_empty() {
                    self.push(" ");
                    self.names(&view.columns);
                }
                self.comment(view.comment.as_ref());
                // The text of a view is a part of it: it is printed as it was written.
                self.push(" AS ");
                self.push(&view.query_text);
            }
            Statement::AlterView { name, change } => {
                self.push("ALTER VIEW ");
                self.object(name);
                match change {
                    AlterView::Rename(to) => {
                        self.push(" RENAME TO ");
                        self.object(to);
                    }
                    AlterView::Query(_, text) => {
                        self.push(" AS ");
                        self.push(text);
                    }
                }
            }
            Statement::CreateFunction(function) => self.function("CREATE ", " IF NOT EXISTS", function),
            Statement::AlterFunction(function) => self.function("ALTER ", " IF EXISTS", function),
            Statement::LoadModule { name, options } => {
                self.push("LOAD MODULE ");
                self.name(&name.value);
                self.with_options(options);
            }
            Statement::UnloadModule(name) => {
                self.push("UNLOAD MODULE ");
                self.name(&name.value);
            }
            Statement::UseModules(names) => {
                self.push("USE MODULES ");
                self.list(names, ", ", |printer, name| printer.name(&name.value));
            }
            Statement::Call(call) => {
                self.push("CALL ");
                self.object(&call.name);
                self.push("(");
                for (index, (name, value)) in call.arguments.iter().enumerate() {
                    self.push_if(index > 0, ", ");
                    if let Some(name) = name {
                        self.name(&name.value);
                        self.push(" => ");
                    }
                    self.expression(value);
                }
                self.push(")");
            }
            _ => self.drop(statement),
        }
    }

    fn drop(&mut self, statement: &Statement) {
        match statement {
            Statement::DropCatalog { name, if_exists } => {
                self.push("DROP CATALOG ");
                self.push_if(*if_exists, "IF EXISTS ");
                self.name(&name.value);
            }
            Statement::DropDatabase { name, if_exists, cascade } => {
                self.drop_object("DROP DATABASE ", name, *if_exists);
                self.push_if(*cascade, " CASCADE");
            }
            Statement::DropTable { name, if_exists, temporary } => {
                self.drop_object(
                    if *temporary { "DROP TEMPORARY TABLE " } else { "DROP TABLE " },
                    name,
                    *if_exists,
                );
            }
            Statement::DropView { name, if_exists, temporary } => {
                self.drop_object(
                    if *temporary { "DROP TEMPORARY VIEW " } else { "DROP VIEW " },
                    name,
                    *if_exists,
                );
            }
            Statement::DropFunction { name, if_exists, temporary, system } => {
                let words = match (temporary, system) {
                    (_, true) => "DROP TEMPORARY SYSTEM FUNCTION ",
                    (true, false) => "DROP TEMPORARY FUNCTION ",
                    (false, false) => "DROP FUNCTION ",
                };
                self.drop_object(words, name, *if_exists);
            }
            // `statement` and `object_statement` print all others.
            _ => {}
        }
    }

    fn drop_object(&mut self, words: &str, name: &ObjectName, if_exists: bool) {
        self.push(words);
        self.push_if(if_exists, "IF EXISTS ");
        self.object(name);
    }

    fn words_and_text(&mut self, words: &str, text: &Spanned<String>) {
        self.push(words);
        self.text(&text.value);
    }

    fn set(&mut self, command: &SetCommand) {
        match command {
            SetCommand::List => self.push("SET"),
            SetCommand::ListAll => self.push("SET ALL"),
            SetCommand::Assign(option) => {
                self.words_and_text("SET ", &option.key);
                self.words_and_text(" = ", &option.value);
            }
        }
    }

    fn alter_options(&mut self, change: &AlterOptions) {
        match change {
            AlterOptions::Set(options) => {
                self.push(" SET ");
                self.options(options);
            }
            AlterOptions::Reset(keys) => {
                self.push(" RESET ");
                self.keys(keys);
            }
            AlterOptions::Comment(comment) => {
                self.push(" COMMENT ");
                self.text(comment);
            }
        }
    }

    /// Appends `('key', …)`.
    pub(super) fn keys(&mut self, keys: &[Spanned<String>]) {
        self.brackets(keys, |printer, key| printer.text(&key.value));
    }

    fn function(&mut self, verb: &str, exists: &str, function: &CreateFunction) {
        self.push(verb);
        self.push_if(function.temporary, "TEMPORARY ");
        self.push_if(function.system, "SYSTEM ");
        self.push("FUNCTION");
        self.push_if(function.if_exists_clause, exists);
        self.push(" ");
        self.object(&function.name);
        self.push(" AS ");
        self.text(&function.class_name);
        if let Some(language) = &function.language {
            self.push(" LANGUAGE ");
            self.push(language);
        }
        if !function.resources.is_empty() {
            self.push(" USING ");
            self.list(&function.resources, ", ", |printer, (kind, path)| {
                printer.push(kind);
                printer.push(" ");
                printer.text(path);
            });
        }
        self.with_options(&function.options);
    }

    fn insert(&mut self, insert: &'a Insert) {
        self.push(if insert.overwrite { "INSERT OVERWRITE " } else { "INSERT INTO " });
        self.object(&insert.target);
        self.hints(&insert.hints.iter().collect::<Vec<_>>());
        if !insert.partition.is_empty() {
            self.push(" PARTITION (");
            for (index, (key, value)) in insert.partition.iter().enumerate() {
                self.push_if(index > 0, ", ");
                self.name(&key.value);
                self.push(" = ");
                self.expression(value);
            }
            self.push(")");
        }
        if let Some(columns) = &insert.columns {
            self.push(" ");
            self.names(columns);
        }
        self.push(" ");
        self.spanned_query(&insert.source);
        match insert.on_conflict {
            Some(OnConflict::Error) => self.push(" ON CONFLICT DO ERROR"),
            Some(OnConflict::Nothing) => self.push(" ON CONFLICT DO NOTHING"),
            Some(OnConflict::Deduplicate) => self.push(" ON CONFLICT DO DEDUPLICATE"),
            None => {}
        }
    }

    fn statement_set(&mut self, statements: &'a [Statement]) {
        self.push("STATEMENT SET BEGIN ");
        for statement in statements {
            self.statement(statement);
            self.push("; ");
        }
        self.push("END");
    }

    fn change(&mut self, statement: &'a Statement) {
        let condition = match statement {
            Statement::Update(update) => {
                self.push("UPDATE ");
                self.object(&update.target);
                self.push(" SET ");
                for (index, (column, value)) in update.assignments.iter().enumerate() {
                    self.push_if(index > 0, ", ");
                    self.name(&column.value);
                    self.push(" = ");
                    self.expression(value);
                }
                &update.condition
            }
            Statement::Delete(delete) => {
                self.push("DELETE FROM ");
                self.object(&delete.target);
                &delete.condition
            }
            Statement::Truncate(table) => {
                self.push("TRUNCATE TABLE ");
                self.object(table);
                &None
            }
            _ => &None,
        };
        if let Some(condition) = condition {
            self.push(" WHERE ");
            self.expression(condition);
        }
    }

    fn explain(&mut self, explain: &'a Explain) {
        self.push("EXPLAIN ");
        self.list(&explain.details, ", ", |printer, detail| {
            printer.push(match detail {
                ExplainDetail::EstimatedCost => "ESTIMATED_COST",
                ExplainDetail::ChangelogMode => "CHANGELOG_MODE",
                ExplainDetail::JsonExecutionPlan => "JSON_EXECUTION_PLAN",
                ExplainDetail::PlanAdvice => "PLAN_ADVICE",
            });
        });
        self.push_if(!explain.details.is_empty(), " ");
        self.statement_or_set(&explain.statement);
    }

    /// Appends a statement behind EXPLAIN or COMPILE PLAN, where a statement set has no EXECUTE.
    fn statement_or_set(&mut self, statement: &'a Statement) {
        match statement {
            Statement::StatementSet(statements) => self.statement_set(statements),
            other => self.statement(other),
        }
    }

    fn compile_plan(&mut self, plan: &'a CompilePlan) {
        self.push(if plan.execute { "COMPILE AND EXECUTE PLAN " } else { "COMPILE PLAN " });
        self.text(&plan.file);
        self.push_if(plan.if_not_exists, " IF NOT EXISTS");
        self.push(" FOR ");
        self.statement_or_set(&plan.statement);
    }

    fn unexecuted(&mut self, held: &Unexecuted) {
        self.push(&held.keywords);
        self.push(" ");
        self.object(&held.name);
        self.push_if(!held.rest.is_empty(), " ");
        self.push(&held.rest);
    }

    fn show(&mut self, show: &'a Show) {
        self.push("SHOW ");
        let database = match &show.what {
            ShowWhat::Catalogs => self.words("CATALOGS"),
            ShowWhat::CurrentCatalog => self.words("CURRENT CATALOG"),
            ShowWhat::CurrentDatabase => self.words("CURRENT DATABASE"),
            ShowWhat::Databases { catalog } => {
                self.push("DATABASES");
                if let Some(catalog) = catalog {
                    self.push(" FROM ");
                    self.name(&catalog.value);
                }
                &None
            }
            ShowWhat::Tables { database } => self.words_of("TABLES", database),
            ShowWhat::Views { database } => self.words_of("VIEWS", database),
            ShowWhat::MaterializedTables { database } => self.words_of("MATERIALIZED TABLES", database),
            ShowWhat::Functions { user_only, database } => {
                self.words_of(if *user_only { "USER FUNCTIONS" } else { "FUNCTIONS" }, database)
            }
            ShowWhat::Procedures { database } => self.words_of("PROCEDURES", database),
            ShowWhat::Models { database } => self.words_of("MODELS", database),
            ShowWhat::Connections { database } => self.words_of("CONNECTIONS", database),
            ShowWhat::Modules { full } => self.words(if *full { "FULL MODULES" } else { "MODULES" }),
            ShowWhat::Jars => self.words("JARS"),
            ShowWhat::Jobs => self.words("JOBS"),
            ShowWhat::Columns(table) => self.words_and_object("COLUMNS FROM ", table),
            ShowWhat::Partitions { table, partition } => {
                self.words_and_object("PARTITIONS ", table);
                self.partition(partition);
                &None
            }
            ShowWhat::CreateTable(name) => self.words_and_object("CREATE TABLE ", name),
            ShowWhat::CreateView(name) => self.words_and_object("CREATE VIEW ", name),
            ShowWhat::CreateCatalog(name) => {
                self.push("CREATE CATALOG ");
                self.name(&name.value);
                &None
            }
            ShowWhat::CreateMaterializedTable(name) => {
                self.words_and_object("CREATE MATERIALIZED TABLE ", name)
            }
            ShowWhat::CreateModel(name) => self.words_and_object("CREATE MODEL ", name),
        };
        if let Some(database) = database {
            self.push(" FROM ");
            self.object(database);
        }
        self.like_pattern(show.like.as_ref());
    }

    fn words(&mut self, words: &str) -> &'static Option<ObjectName> {
        self.push(words);
        &None
    }

    fn words_of<'s>(&mut self, words: &str, database: &'s Option<ObjectName>) -> &'s Option<ObjectName> {
        self.push(words);
        database
    }

    fn words_and_object(&mut self, words: &str, name: &ObjectName) -> &'static Option<ObjectName> {
        self.push(words);
        self.object(name);
        &None
    }

    fn like_pattern(&mut self, like: Option<&LikePattern>) {
        let Some(like) = like else { return };
        self.push_if(like.negated, " NOT");
        self.push(if like.ignore_case { " ILIKE " } else { " LIKE " });
        self.text(&like.pattern);
    }

    /// Appends ` PARTITION (k = v, …)` unless there is none.
    fn partition(&mut self, partition: &'a PartitionSpec) {
        if !partition.is_empty() {
            self.push(" PARTITION ");
            self.partition_spec(partition);
        }
    }

    /// Appends `(k = v, k2)`.
    pub(super) fn partition_spec(&mut self, partition: &'a PartitionSpec) {
        self.push("(");
        for (index, (key, value)) in partition.iter().enumerate() {
            self.push_if(index > 0, ", ");
            self.name(&key.value);
            if let Some(value) = value {
                self.push(" = ");
                self.expression(value);
            }
        }
        self.push(")");
    }

    fn describe(&mut self, describe: &Describe) {
        self.push("DESCRIBE ");
        let extended = if describe.extended { "EXTENDED " } else { "" };
        match &describe.what {
            DescribeWhat::Table(name) => {
                self.push(extended);
                // A table may be called like one of the kinds: back-ticks tell them apart.
                self.list(&name.parts, ".", |printer, part| printer.push(&super::back_tick(part)));
            }
            DescribeWhat::Catalog(name) => {
                self.push("CATALOG ");
                self.push(extended);
                self.push(&super::back_tick(&name.value));
            }
            DescribeWhat::Database(name) => self.described("DATABASE ", extended, name),
            DescribeWhat::Function(name) => self.described("FUNCTION ", extended, name),
            DescribeWhat::Model(name) => self.described("MODEL ", extended, name),
            DescribeWhat::Job(job) => self.words_and_text("JOB ", job),
        }
    }

    fn described(&mut self, kind: &str, extended: &str, name: &ObjectName) {
        self.push(kind);
        self.push(extended);
        self.list(&name.parts, ".", |printer, part| printer.push(&super::back_tick(part)));
    }

    fn analyze(&mut self, analyze: &'a Analyze) {
        self.push("ANALYZE TABLE ");
        self.object(&analyze.table);
        self.partition(&analyze.partition);
        self.push(" COMPUTE STATISTICS");
        match &analyze.columns {
            None => {}
            Some(columns) if columns.is_empty() => self.push(" FOR ALL COLUMNS"),
            Some(columns) => {
                self.push(" FOR COLUMNS ");
                self.list(columns, ", ", |printer, column| printer.name(&column.value));
            }
        }
    }
}
