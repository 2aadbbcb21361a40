//! The README's generated tables are what the code says, and the statements in them do what the table says.
//! `BLESS=1 cargo test reference` writes them anew.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use lakehead::session::reference::{
    STATEMENT_FAMILIES, Support, catalog_table, connector_table, function_list, option_table, statement_table,
};
use lakehead::session::{OutputPort, OutputStream, Session, SessionSettings, StatementResult};

/// Returns the README with a section between its markers replaced.
fn with_section(readme: &str, name: &str, text: &str) -> String {
    let (start, end) = (format!("<!-- generated: {name} -->\n"), "<!-- end -->");
    let from =
        readme.find(&start).unwrap_or_else(|| panic!("the README has no section {name}")) + start.len();
    let to = from + readme[from..].find(end).expect("the section has an end");
    format!("{}{text}{}", &readme[..from], &readme[to..])
}

#[test]
fn the_readme_shows_what_the_code_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let mut expected = readme.clone();
    for (name, text) in [
        ("statements", statement_table()),
        ("options", option_table()),
        ("connectors", connector_table()),
        ("catalogs", catalog_table()),
        ("functions", function_list()),
    ] {
        expected = with_section(&expected, name, &text);
    }
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &expected).unwrap();
        return;
    }
    assert!(readme == expected, "the README's tables are old: run BLESS=1 cargo test reference");
}

/// Drops what connectors print.
#[derive(Debug)]
struct NoOutput;

impl OutputPort for NoOutput {
    fn print(&self, _: OutputStream, _: &str) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_do_what_the_table_says() {
    for family in STATEMENT_FAMILIES {
        let settings = SessionSettings {
            defaults: std::collections::BTreeMap::default(),
            output: Arc::new(NoOutput),
            session_id: "reference".to_owned(),
        };
        let mut session = Session::new(settings).unwrap();
        for (at, text) in family.examples.iter().enumerate() {
            let statement =
                lakehead::sql::parse_statement(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let result = session.execute(&statement, text).await;
            let is_last = at + 1 == family.examples.len();
            match family.support {
                Support::Refused(words) if is_last => {
                    let error = result.err().unwrap_or_else(|| panic!("{text} was not refused"));
                    assert!(error.message().contains(words), "{text}: {error}");
                    assert!(error.hint_text().is_some(), "{text}: no hint");
                }
                _ => {
                    let result = result.unwrap_or_else(|error| panic!("{text}: {error}"));
                    if let StatementResult::Query(query) = result {
                        use futures::TryStreamExt;
                        query
                            .stream
                            .try_collect::<Vec<_>>()
                            .await
                            .unwrap_or_else(|error| panic!("{text}: {error}"));
                    }
                }
            }
        }
    }
}
