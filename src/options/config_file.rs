//! Where a session's defaults come from: configuration files, the environment and flags, the later ones winning.
//!
//! `config.yaml` is YAML, nested or with dots; `flink-conf.yaml` looks like it but is lines of `key: value`, whose values may
//! hold anything.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_yaml_ng::Value;

use crate::error::{Error, Result};

/// The places to read, besides the environment.
#[derive(Debug, Clone, Default)]
pub struct ConfigSources {
    /// A file that the user names.
    pub file: Option<PathBuf>,
    /// The environment file of Flink 1.13's client.
    pub legacy_environment: Option<PathBuf>,
    /// Keys and values from the command line.
    pub properties: Vec<(String, String)>,
}

/// Keys and values.
type Entries = BTreeMap<String, String>;

/// Keys that changed their place between the environment file and today, apart from what options know of their old names.
const RENAMED: &[(&str, &str)] = &[
    ("execution.restart-strategy.type", "restart-strategy.type"),
    ("execution.restart-strategy.delay", "restart-strategy.fixed-delay.delay"),
    ("execution.restart-strategy.attempts", "restart-strategy.fixed-delay.attempts"),
    (
        "execution.restart-strategy.failure-rate-interval",
        "restart-strategy.failure-rate.failure-rate-interval",
    ),
    (
        "execution.restart-strategy.max-failures-per-interval",
        "restart-strategy.failure-rate.max-failures-per-interval",
    ),
];

/// Collects the defaults of a session: the file in `FLINK_CONF_DIR` (or `FLINK_HOME/conf`), the given file,
/// `FLINK_PROPERTIES`, the environment file, then the given properties.
///
/// # Errors
/// A file that was named cannot be read or is not what its name says.
pub fn load_defaults(sources: &ConfigSources) -> Result<Entries> {
    load_defaults_with(sources, |name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

/// Collects the defaults with a given environment.
fn load_defaults_with(sources: &ConfigSources, variable: impl Fn(&str) -> Option<String>) -> Result<Entries> {
    let mut entries = Entries::new();
    let directory = variable("FLINK_CONF_DIR")
        .map(PathBuf::from)
        .or_else(|| variable("FLINK_HOME").map(|home| Path::new(&home).join("conf")));
    let in_directory =
        directory.into_iter().flat_map(|dir| ["config.yaml", "flink-conf.yaml"].map(|name| dir.join(name)));
    if let Some(file) = in_directory.into_iter().find(|file| file.is_file()) {
        entries.extend(read_config_file(&file)?);
    }
    if let Some(file) = &sources.file {
        entries.extend(read_config_file(file)?);
    }
    if let Some(text) = variable("FLINK_PROPERTIES") {
        entries.extend(parse_lines(&text, "FLINK_PROPERTIES")?);
    }
    if let Some(file) = &sources.legacy_environment {
        entries.extend(read_legacy_environment(file)?);
    }
    entries.extend(sources.properties.iter().cloned());
    Ok(entries)
}

/// Reads a configuration file of either kind.
fn read_config_file(file: &Path) -> Result<Entries> {
    let text = read_text(file)?;
    let name = file.display().to_string();
    if file.file_name().is_some_and(|name| name == "flink-conf.yaml") {
        return parse_lines(&text, &name);
    }
    let mut entries = Entries::new();
    flatten("", &parse_yaml(&text, &name)?, &mut entries);
    Ok(entries)
}

/// Reads the parts of an environment file that are configuration.
fn read_legacy_environment(file: &Path) -> Result<Entries> {
    let root = parse_yaml(&read_text(file)?, &file.display().to_string())?;
    let mut entries = Entries::new();
    if let Some(execution) = root.get("execution") {
        flatten("execution", execution, &mut entries);
    }
    for (old, new) in RENAMED {
        if let Some(value) = entries.remove(*old) {
            entries.insert((*new).to_owned(), value);
        }
    }
    if let Some(configuration) = root.get("configuration") {
        flatten("", configuration, &mut entries);
    }
    for part in ["tables", "functions", "catalogs"] {
        let is_empty = root.get(part).is_none_or(|value| match value {
            Value::Null => true,
            Value::Sequence(items) => items.is_empty(),
            _ => false,
        });
        if !is_empty {
            return Err(Error::unsupported(format!(
                "file '{}' defines {part}, which is not supported",
                file.display()
            ))
            .hint("Write CREATE statements into an init script and give it with -i."));
        }
    }
    Ok(entries)
}

/// Reads a file; the error names it.
fn read_text(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).map_err(|error| {
        Error::validation(format!("configuration file '{}' cannot be read", file.display())).caused_by(error)
    })
}

/// Parses YAML; the error names the file, and its cause the line.
fn parse_yaml(text: &str, name: &str) -> Result<Value> {
    serde_yaml_ng::from_str(text).map_err(|error| {
        Error::validation(format!("configuration file '{name}' is not YAML")).caused_by(error)
    })
}

/// Collects the leaves of a YAML tree under keys with dots between their parts. Lists become `a;b`.
fn flatten(prefix: &str, value: &Value, entries: &mut Entries) {
    match value {
        Value::Mapping(mapping) => {
            for (key, value) in mapping {
                let key = scalar(key);
                let key = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
                flatten(&key, value, entries);
            }
        }
        Value::Sequence(items) => {
            let items: Vec<String> = items.iter().map(scalar).collect();
            entries.insert(prefix.to_owned(), items.join(";"));
        }
        Value::Null => {}
        scalar_value if !prefix.is_empty() => {
            entries.insert(prefix.to_owned(), scalar(scalar_value));
        }
        _ => {}
    }
}

/// Returns the text of a YAML scalar.
fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Tagged(tagged) => scalar(&tagged.value),
        Value::Null => String::new(),
        nested => serde_yaml_ng::to_string(nested).unwrap_or_default().trim().to_owned(),
    }
}

/// Parses lines of `key: value`; `#` begins a comment.
fn parse_lines(text: &str, name: &str) -> Result<Entries> {
    let mut entries = Entries::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let Some((key, value)) =
            line.split_once(": ").or_else(|| line.strip_suffix(':').map(|key| (key, "")))
        else {
            return Err(Error::validation(format!(
                "{name}:{}: line is not of the form 'key: value'",
                index + 1
            )));
        };
        let value = value.trim();
        let unquoted = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
        entries.insert(key.trim().to_owned(), unquoted.unwrap_or(value).to_owned());
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        (dir, path)
    }

    fn load(sources: &ConfigSources, environment: &[(&str, &str)]) -> Result<Entries> {
        load_defaults_with(sources, |name| {
            environment.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn nested_and_dotted_keys_are_the_same() {
        let (_dir, path) = file(
            "config.yaml",
            "execution:\n  checkpointing:\n    interval: 3s\nparallelism.default: 2\npipeline.jars: [a, b]\n",
        );
        let entries = load(&ConfigSources { file: Some(path), ..ConfigSources::default() }, &[]).unwrap();
        assert_eq!(entries["execution.checkpointing.interval"], "3s");
        assert_eq!(entries["parallelism.default"], "2");
        assert_eq!(entries["pipeline.jars"], "a;b");
    }

    #[test]
    fn the_old_file_is_lines_and_later_sources_win() {
        let (dir, _) = file("flink-conf.yaml", "# c\nenv.java.opts: -Da=b: c # d\nparallelism.default: 1\n");
        let directory = dir.path().display().to_string();
        let environment = [
            ("FLINK_CONF_DIR", directory.as_str()),
            ("FLINK_PROPERTIES", "parallelism.default: 4\nrest.port: 1\n"),
        ];
        let sources = ConfigSources {
            properties: vec![("rest.port".to_owned(), "2".to_owned())],
            ..ConfigSources::default()
        };
        let entries = load(&sources, &environment).unwrap();
        assert_eq!(entries["env.java.opts"], "-Da=b: c");
        assert_eq!(entries["parallelism.default"], "4");
        assert_eq!(entries["rest.port"], "2");
    }

    #[test]
    fn the_environment_file_gives_execution_and_configuration() {
        let text = "tables: []\nexecution:\n  type: streaming\n  restart-strategy:\n    type: fallback\nconfiguration:\n  table.exec.state.ttl: 1 h\ndeployment:\n  response-timeout: 5000\n";
        let (_dir, path) = file("sql-client-conf.yaml", text);
        let sources = ConfigSources { legacy_environment: Some(path), ..ConfigSources::default() };
        let entries = load(&sources, &[]).unwrap();
        assert_eq!(entries["execution.type"], "streaming");
        assert_eq!(entries["restart-strategy.type"], "fallback");
        assert_eq!(entries["table.exec.state.ttl"], "1 h");
        assert_eq!(entries.len(), 3);
    }

    #[test]
    fn a_bad_file_is_named() {
        let sources =
            ConfigSources { file: Some(PathBuf::from("/no/such/file")), ..ConfigSources::default() };
        assert!(load(&sources, &[]).unwrap_err().message().contains("/no/such/file"));
        let (_dir, path) = file("config.yaml", "a: [");
        let sources = ConfigSources { file: Some(path), ..ConfigSources::default() };
        assert!(load(&sources, &[]).unwrap_err().message().ends_with("is not YAML"));
        assert!(parse_lines("no colon", "f").is_err());
    }
}
