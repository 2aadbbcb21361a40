//! The role that a job connects as: the few grants that it needs, what is said of each that is missing, and passwords of any kind.

use super::pipeline::{Pipeline, advised, failure};
use crate::support::running::Running;
use crate::support::waiting::wait_until;

const COLUMNS: &str = "id BIGINT, n INT, PRIMARY KEY (id) NOT ENFORCED";

/// A password with everything that breaks URLs, quotes and shells.
const PASSWORD: &str = "S3NT!nel'\"&%:/@?#é\\ ${x}";

/// A role of the test, which goes with the test's database.
struct Role {
    pipeline: Pipeline,
    name: String,
}

impl Role {
    /// Creates a table in a schema of its own and a role that may do just what reading it takes.
    fn create() -> Option<Role> {
        let mut pipeline = Pipeline::create()?;
        let name = format!("Cdc \"{}\"", pipeline.slot());
        let role = Role::quoted(&name);
        let database = pipeline.slot();
        pipeline.postgres.run(&format!(
            "CREATE SCHEMA shop; CREATE TABLE shop.t (id bigint PRIMARY KEY, n int); ALTER TABLE shop.t REPLICA IDENTITY FULL;
             INSERT INTO shop.t VALUES (1, 1), (2, 2);
             REVOKE ALL ON SCHEMA shop FROM PUBLIC; REVOKE CONNECT ON DATABASE {database} FROM PUBLIC;
             CREATE ROLE {role} LOGIN REPLICATION PASSWORD '{}';
             GRANT CONNECT ON DATABASE {database} TO {role};
             GRANT USAGE ON SCHEMA shop TO {role};
             GRANT SELECT ON TABLE shop.t TO {role};
             CREATE PUBLICATION dbz_publication FOR TABLE shop.t",
            PASSWORD.replace('\'', "''")
        ));
        pipeline.connect_as(&name, PASSWORD);
        Some(Role { pipeline, name })
    }

    fn quoted(name: &str) -> String {
        format!("\"{}\"", name.replace('"', "\"\""))
    }

    fn mirror(&self) -> String {
        let mirror =
            self.pipeline.mirror("t", COLUMNS, &[("schema-name", "shop"), ("connect.max-retries", "0")]);
        format!("SET 'lakehead.job.resume' = 'none';\n{mirror}")
    }

    /// Starts a job; returns it if it runs, and else what it says.
    fn start(&self) -> Result<Running, String> {
        // What another attempt has written would look like a success.
        self.pipeline.ask("DROP TABLE IF EXISTS lake.db.t");
        let mut running = self.pipeline.start(&self.mirror());
        let runs = wait_until("the job runs or fails", || {
            let shown = running.shown();
            if shown.contains("[ERROR]") {
                return Ok(false);
            }
            let answer = self.pipeline.ask("SELECT id, n FROM lake.db.t ORDER BY id");
            if answer == "1|1\n2|2" { Ok(true) } else { Err(format!("{answer}\n{shown}")) }
        });
        if runs { Ok(running) } else { Err(failure(&mut running)) }
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let role = Role::quoted(&self.name);
        let _ = self.pipeline.postgres.try_run(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
    }
}

#[test]
fn a_role_with_the_least_grants_reads_and_makes_its_slot() {
    let Some(role) = Role::create() else { return };
    let mut running = role.start().unwrap_or_else(|said| panic!("{said}"));
    let pipeline = &role.pipeline;
    pipeline.postgres.run("UPDATE shop.t SET n = 5 WHERE id = 1; DELETE FROM shop.t WHERE id = 2");
    pipeline.wait_table(&mut running, "t", "id, n", "1|5");
    pipeline.postgres.wait_acknowledged(pipeline.slot());
    let may = pipeline.postgres.lines(&format!(
        "SELECT rolsuper, rolcreatedb, rolcreaterole, rolbypassrls FROM pg_roles WHERE rolname = '{}'",
        role.name
    ));
    assert_eq!(may, "f|f|f|f");
}

#[test]
fn each_missing_grant_is_told_with_the_statement_to_run() {
    let Some(role) = Role::create() else { return };
    let (pipeline, name) = (&role.pipeline, Role::quoted(&role.name));
    let database = pipeline.slot();
    let cases = [
        (format!("ALTER ROLE {name} NOREPLICATION"), "ALTER ROLE"),
        (format!("REVOKE CONNECT ON DATABASE {database} FROM {name}"), "GRANT CONNECT"),
        (format!("REVOKE USAGE ON SCHEMA shop FROM {name}"), "GRANT USAGE"),
        (format!("REVOKE SELECT ON TABLE shop.t FROM {name}"), "GRANT SELECT"),
        ("DROP PUBLICATION dbz_publication".to_owned(), "CREATE PUBLICATION"),
        ("ALTER PUBLICATION dbz_publication DROP TABLE shop.t".to_owned(), "ALTER PUBLICATION"),
    ];
    for (taken, beginning) in cases {
        pipeline.postgres.run(&taken);
        let Err(said) = role.start() else { panic!("{taken}: the job runs") };
        let statements = advised(&said, beginning);
        assert_eq!(statements.len(), 1, "{taken}: {said}");
        assert!(!said.contains("S3NT"), "{said}");
        let slots = "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()";
        assert_eq!(pipeline.postgres.value(slots), "0", "{taken}: nothing is made before all is there");
        pipeline.postgres.run(&statements[0]);
        let mut running = role.start().unwrap_or_else(|said| panic!("{}: {said}", statements[0]));
        running.kill();
        pipeline.postgres.wait(slots, |count| count != "0");
        let (slot, active) = (
            pipeline.slot(),
            "SELECT count(*) FROM pg_replication_slots WHERE database = current_database() AND active",
        );
        pipeline.postgres.wait(active, |count| count == "0");
        pipeline.postgres.run(&format!("SELECT pg_drop_replication_slot('{slot}')"));
    }
}

#[test]
fn all_grants_that_are_missing_are_told_at_once() {
    let Some(role) = Role::create() else { return };
    let (pipeline, name) = (&role.pipeline, Role::quoted(&role.name));
    pipeline.postgres.run(&format!(
        "CREATE TABLE shop.u (id bigint PRIMARY KEY, n int);
         ALTER ROLE {name} NOREPLICATION; REVOKE SELECT ON TABLE shop.t FROM {name}"
    ));
    let options = [("schema-name", "shop"), ("table-name", "[tu]"), ("connect.max-retries", "0")];
    let statements = format!(
        "{}{}CREATE TABLE lake.db.t ({COLUMNS});\nINSERT INTO lake.db.t SELECT * FROM t;\n",
        pipeline.source("t", COLUMNS, &options),
        pipeline.lake()
    );
    let said = pipeline.fail(&statements);
    // Each is a statement of its own.
    for beginning in ["ALTER ROLE", "GRANT SELECT"] {
        for statement in advised(&said, beginning) {
            pipeline.postgres.run(&statement);
        }
    }
    for part in ["REPLICATION", "shop.t", "shop.u"] {
        assert!(said.replace('"', "").contains(part), "{part} in\n{said}");
    }
    // Then what the tables lack.
    let said = pipeline.fail(&statements);
    assert_eq!(advised(&said, "ALTER TABLE").len(), 1, "{said}");
    assert!(!said.contains("GRANT"), "{said}");
}

#[test]
fn no_password_is_said_or_kept() {
    let Some(role) = Role::create() else { return };
    let pipeline = &role.pipeline;
    let mut texts = Vec::new();
    // What goes wrong, with all there is to say, and what goes well.
    for (taken, given) in [
        ("ALTER TABLE shop.t REPLICA IDENTITY DEFAULT", "ALTER TABLE shop.t REPLICA IDENTITY FULL"),
        ("ALTER TABLE shop.t RENAME COLUMN n TO m", "ALTER TABLE shop.t RENAME COLUMN m TO n"),
    ] {
        pipeline.postgres.run(taken);
        texts.push(role.start().err().unwrap_or_else(|| panic!("{taken}: the job runs")));
        pipeline.postgres.run(given);
    }
    let mut wrong = Pipeline::create().unwrap();
    wrong.connect_as(&role.name, &format!("{PASSWORD}no"));
    wrong.variable("RUST_LOG", "debug");
    texts.push(wrong.fail(&wrong.mirror("t", COLUMNS, &[("connect.max-retries", "0")])));
    assert!(
        texts[2].contains("28P01") || texts[2].contains("password authentication failed"),
        "{}",
        texts[2]
    );

    let mut running = role.start().unwrap_or_else(|said| panic!("{said}"));
    running.write("SHOW CREATE TABLE t;\nEXPLAIN SELECT * FROM t;\nSHOW JOBS;\n");
    let id = running.job_id();
    running.write(&format!("DESCRIBE JOB '{id}';\nSTOP JOB '{id}' WITH SAVEPOINT;\n"));
    running.wait_out("savepoint path");
    let ended = running.end();
    assert!(ended.stdout.contains("'password' = '******'"), "{}", ended.stdout);
    texts.extend([ended.stdout, ended.stderr]);
    for file in pipeline.files("") {
        texts.push(String::from_utf8_lossy(&std::fs::read(&file).unwrap_or_default()).into_owned());
    }
    assert!(texts.len() > 10, "the files of checkpoints and tables are among them");
    // The statements that the test has written itself are not among what is printed: nothing echoes them.
    let said: Vec<&String> = texts.iter().filter(|text| text.contains("S3NT")).collect();
    assert!(said.is_empty(), "{said:?}");
}
