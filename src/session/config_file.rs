//! Where a session's defaults come from: configuration files, environment variables and flags, each above the one before.
//!
//! `config.yaml` is YAML in which nested and dotted keys mean the same; `flink-conf.yaml` and FLINK_PROPERTIES are lines of
//! `key: value`. The defaults file of old clients (`-d`) is YAML whose `execution` and `configuration` sections count.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_yaml_ng::Value;

use crate::error::{Error, Result};

/// What the command line and the environment say about configuration.
#[derive(Debug, Clone, Default)]
pub struct ConfigSources {
    /// `--config`: a file, instead of the one in `conf_dir`.
    pub config: Option<PathBuf>,
    /// FLINK_CONF_DIR: a directory with `config.yaml` or `flink-conf.yaml`.
    pub conf_dir: Option<PathBuf>,
    /// FLINK_PROPERTIES.
    pub properties: Option<String>,
    /// `-d`: the defaults file of old clients.
    pub defaults: Option<PathBuf>,
    /// `-D key=value`, in order.
    pub dynamic: Vec<(String, String)>,
}

impl ConfigSources {
    /// Reads the two environment variables.
    #[must_use]
    pub fn with_environment(mut self) -> ConfigSources {
        let text = |name| std::env::var(name).ok().filter(|text: &String| !text.is_empty());
        self.conf_dir = self.conf_dir.or_else(|| text("FLINK_CONF_DIR").map(PathBuf::from));
        self.properties = self.properties.or_else(|| text("FLINK_PROPERTIES"));
        self
    }

    /// Reads all sources.
    ///
    /// # Errors
    /// A file that was named cannot be read, or a source does not have the form it must have.
    pub fn load(&self) -> Result<BTreeMap<String, String>> {
        let mut entries = match (&self.config, &self.conf_dir) {
            (Some(file), _) => load_file(file)?,
            (None, Some(directory)) => load_directory(directory)?,
            (None, None) => BTreeMap::new(),
        };
        if let Some(properties) = &self.properties {
            entries.extend(parse_properties(properties, "FLINK_PROPERTIES")?);
        }
        if let Some(file) = &self.defaults {
            entries.extend(load_client_defaults(file)?);
        }
        entries.extend(self.dynamic.iter().cloned());
        Ok(entries)
    }
}

/// Reads the configuration in a directory; one without a file in it has none.
fn load_directory(directory: &Path) -> Result<BTreeMap<String, String>> {
    for name in ["config.yaml", "flink-conf.yaml"] {
        let file = directory.join(name);
        if file.exists() {
            return load_file(&file);
        }
    }
    Ok(BTreeMap::new())
}

/// Reads a configuration file, by its name in one of the two forms.
fn load_file(file: &Path) -> Result<BTreeMap<String, String>> {
    let text = read(file)?;
    if file.file_name().is_some_and(|name| name == "flink-conf.yaml") {
        return parse_properties(&text, &file.display().to_string());
    }
    parse_yaml(&text, file)
}

/// Reads a file as text.
fn read(file: &Path) -> Result<String> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        Error::validation(format!("configuration file '{}' cannot be read", file.display())).caused_by(error)
    })?;
    Ok(text.strip_prefix('\u{feff}').map_or(text.clone(), str::to_owned))
}

/// Reads YAML and flattens it.
fn parse_yaml(text: &str, file: &Path) -> Result<BTreeMap<String, String>> {
    let malformed =
        |reason: &str| Error::validation(format!("configuration file '{}' {reason}", file.display()));
    let root: Value =
        serde_yaml_ng::from_str(text).map_err(|error| malformed("is not valid YAML").caused_by(error))?;
    let mut entries = BTreeMap::new();
    match root {
        Value::Null => {}
        Value::Mapping(_) => flatten("", &root, &mut entries).map_err(|reason| malformed(&reason))?,
        _ => return Err(malformed("must hold keys and values")),
    }
    Ok(entries)
}

/// Adds a value and all below it, keys joined by dots. The recursion is as deep as the YAML, which the parser bounds.
fn flatten(prefix: &str, value: &Value, entries: &mut BTreeMap<String, String>) -> Result<(), String> {
    match value {
        Value::Mapping(mapping) => {
            for (key, value) in mapping {
                let key = scalar(key).ok_or_else(|| format!("has a key below '{prefix}' that is no text"))?;
                let full = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
                flatten(&full, value, entries)?;
            }
            Ok(())
        }
        Value::Sequence(items) => {
            let items = items.iter().map(scalar).collect::<Option<Vec<String>>>();
            let items = items.ok_or_else(|| format!("has a list at '{prefix}' whose items are not texts"))?;
            entries.insert(prefix.to_owned(), items.join(";"));
            Ok(())
        }
        Value::Tagged(tagged) => flatten(prefix, &tagged.value, entries),
        other => {
            let text = scalar(other).ok_or_else(|| format!("has no text at '{prefix}'"))?;
            entries.insert(prefix.to_owned(), text);
            Ok(())
        }
    }
}

/// Returns a scalar as text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        _ => None,
    }
}

/// Reads lines of `key: value`; `#` starts a comment.
fn parse_properties(text: &str, source: &str) -> Result<BTreeMap<String, String>> {
    let mut entries = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        // As in Flink, a '#' counts anywhere in a line.
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let entry = line.split_once(": ").or_else(|| Some((line.strip_suffix(':')?, "")));
        let Some((key, value)) =
            entry.map(|(key, value)| (key.trim(), value.trim())).filter(|(key, _)| !key.is_empty())
        else {
            return Err(Error::validation(format!(
                "line {} of {source} is not of the form 'key: value'",
                index + 1
            )));
        };
        entries.insert(key.to_owned(), unquoted(value).to_owned());
    }
    Ok(entries)
}

/// Takes away quotes around a value.
fn unquoted(value: &str) -> &str {
    let inner = |quote: char| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}

/// Reads the defaults file of clients before 1.14. Its tables, functions, catalogs and modules have been statements since.
fn load_client_defaults(file: &Path) -> Result<BTreeMap<String, String>> {
    const KEYS: &[(&str, &str)] = &[
        ("type", "execution.runtime-mode"),
        ("periodic-watermarks-interval", "pipeline.auto-watermark-interval"),
        ("min-idle-state-retention", "table.exec.state.ttl"),
        ("parallelism", "parallelism.default"),
        ("max-parallelism", "pipeline.max-parallelism"),
        ("result-mode", "sql-client.execution.result-mode"),
        ("max-table-result-rows", "sql-client.execution.max-table-result.rows"),
        ("restart-strategy.type", "restart-strategy.type"),
        ("restart-strategy.delay", "restart-strategy.fixed-delay.delay"),
        ("restart-strategy.attempts", "restart-strategy.fixed-delay.attempts"),
        ("restart-strategy.failure-rate-interval", "restart-strategy.failure-rate.failure-rate-interval"),
        (
            "restart-strategy.max-failures-per-interval",
            "restart-strategy.failure-rate.max-failures-per-interval",
        ),
    ];
    const STATEMENTS: &[&str] = &["catalogs", "functions", "modules", "tables", "views"];
    let malformed =
        |reason: &str| Error::validation(format!("configuration file '{}' {reason}", file.display()));
    let root: Value = serde_yaml_ng::from_str(&read(file)?)
        .map_err(|error| malformed("is not valid YAML").caused_by(error))?;
    let Some(sections) = root.as_mapping() else {
        return if root.is_null() {
            Ok(BTreeMap::new())
        } else {
            Err(malformed("must hold keys and values"))
        };
    };
    let mut entries = BTreeMap::new();
    for (section, value) in sections {
        match section.as_str() {
            Some("execution") => {
                let mut section = BTreeMap::new();
                flatten("", value, &mut section).map_err(|reason| malformed(&reason))?;
                for (key, value) in section {
                    // Keys that mean nothing any more, such as the planner, are left out as later clients did.
                    if let Some((_, new)) = KEYS.iter().find(|(old, _)| *old == key) {
                        entries.insert((*new).to_owned(), value);
                    }
                }
            }
            Some("configuration") if !value.is_null() => {
                flatten("", value, &mut entries).map_err(|reason| malformed(&reason))?;
            }
            Some(name)
                if STATEMENTS.contains(&name)
                    && value.as_sequence().is_some_and(|items| !items.is_empty()) =>
            {
                return Err(Error::unsupported(format!(
                    "section '{name}' of '{}' is not supported",
                    file.display()
                ))
                .hint("Write its entries as CREATE statements into a file and run it with -i."));
            }
            _ => {}
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(name: &str, text: &str) -> Result<BTreeMap<String, String>> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(name), text).unwrap();
        let sources = match name {
            "defaults.yaml" => {
                ConfigSources { defaults: Some(directory.path().join(name)), ..ConfigSources::default() }
            }
            _ => ConfigSources { conf_dir: Some(directory.path().to_owned()), ..ConfigSources::default() },
        };
        sources.load()
    }

    #[test]
    fn nested_and_dotted_keys_mean_the_same() {
        let entries = load(
            "config.yaml",
            "execution:\n  checkpointing:\n    interval: 3s\nparallelism.default: 2\nrest: {port: 8081}\npipeline.jars: [a, b]\n",
        )
        .unwrap();
        let text: Vec<String> = entries.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(
            text,
            [
                "execution.checkpointing.interval=3s",
                "parallelism.default=2",
                "pipeline.jars=a;b",
                "rest.port=8081"
            ]
        );
    }

    #[test]
    fn the_old_form_is_lines_with_comments() {
        let entries = load("flink-conf.yaml", "# c\nstate.dir: s3://a:1/b # d\nempty:\n\nq: 'x'\n").unwrap();
        assert_eq!(entries["state.dir"], "s3://a:1/b");
        assert_eq!((entries["empty"].as_str(), entries["q"].as_str()), ("", "x"));
        let error = load("flink-conf.yaml", "a: 1\nnonsense\n").unwrap_err();
        assert!(error.message().starts_with("line 2 of "), "{}", error.message());
    }

    #[test]
    fn flags_are_above_the_environment_and_that_above_files() {
        let sources = ConfigSources {
            properties: Some("a: 1\nb: 1\nexecution.checkpointing.interval: 10000".to_owned()),
            dynamic: vec![("b".to_owned(), "2".to_owned())],
            ..ConfigSources::default()
        };
        let entries = sources.load().unwrap();
        assert_eq!((entries["a"].as_str(), entries["b"].as_str()), ("1", "2"));
    }

    #[test]
    fn the_old_clients_defaults_are_translated() {
        let entries = load(
            "defaults.yaml",
            "execution:\n  type: batch\n  result-mode: tableau\n  planner: blink\n  restart-strategy:\n    type: fallback\nconfiguration:\n  table.exec.x: 1\ntables: []\n",
        )
        .unwrap();
        assert_eq!(entries["execution.runtime-mode"], "batch");
        assert_eq!(entries["sql-client.execution.result-mode"], "tableau");
        assert_eq!(entries["table.exec.x"], "1");
        assert_eq!(entries.len(), 4);
        assert!(load("defaults.yaml", "tables:\n- name: t\n").is_err());
    }

    #[test]
    fn malformed_files_are_named() {
        for text in ["a: [", "- a", "a: [[b]]"] {
            assert!(
                load("config.yaml", text).unwrap_err().message().starts_with("configuration file '"),
                "{text}"
            );
        }
        let missing =
            ConfigSources { config: Some(PathBuf::from("/no/such/file.yaml")), ..ConfigSources::default() };
        assert!(missing.load().unwrap_err().message().contains("cannot be read"));
    }
}
