//! The command line, declared once: `--help` and shell completions come from here.
//!
//! Flink's client has long options with one dash (`-hist`, `-pyexec`), which no parser of today reads; they get their second
//! dash before parsing.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Parser};
use clap_complete::Shell;

use super::print::OutputFormat;
use crate::error::{Error, Result};

/// Flink SQL in one binary.
#[derive(Debug, Parser)]
#[command(
    name = "lakehead",
    version,
    about,
    after_help = "Without -f, -c or piped input, an interactive shell starts.",
    override_usage = "lakehead [embedded] [OPTIONS]",
    args_override_self = true
)]
pub struct Args {
    /// Runs the statements of a file and exits; may be repeated.
    #[arg(id = "scripts", short = 'f', long = "file", value_name = "FILE", action = ArgAction::Append)]
    pub files: Vec<String>,

    /// Runs the given statements and exits; may be repeated.
    #[arg(short = 'c', long = "command", value_name = "SQL", action = ArgAction::Append)]
    pub commands: Vec<String>,

    /// Runs a file before anything else: SET, CREATE, USE and the like; may be repeated.
    #[arg(short = 'i', long = "init", value_name = "FILE", action = ArgAction::Append)]
    pub inits: Vec<String>,

    /// How rows are printed.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub output: OutputFormat,

    /// Prints the prompt and each statement before its result.
    #[arg(long)]
    pub echo: bool,

    /// Stops at the first error where the statements come from standard input, too.
    #[arg(long)]
    pub stop_on_error: bool,

    /// Exits with 0 after a failed statement, as Flink's client does.
    #[arg(long)]
    pub flink_exit_code: bool,

    /// Sets a session option; may be repeated.
    #[arg(short = 'D', value_name = "KEY=VALUE", action = ArgAction::Append)]
    pub properties: Vec<String>,

    /// Reads session options from a YAML file, nested or with dots.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Keeps the history in this file instead of ~/.lakehead-sql-history.
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,

    /// Names the session.
    #[arg(short = 's', long, value_name = "ID", default_value = "default")]
    pub session: String,

    /// Logs from this level on: error, warn, info, debug, trace, or a filter such as lakehead=debug.
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<String>,

    /// Prints the completions of a shell and exits.
    #[arg(long, value_enum, value_name = "SHELL")]
    pub completions: Option<Shell>,

    /// Reads session options from Flink 1.13's environment file.
    #[arg(short = 'd', long, value_name = "FILE")]
    pub defaults: Option<PathBuf>,

    /// Adds a jar; Lakehead needs none.
    #[arg(short = 'j', long = "jar", value_name = "FILE", action = ArgAction::Append)]
    pub jars: Vec<String>,

    /// Adds a directory of jars; Lakehead needs none.
    #[arg(short = 'l', long = "library", value_name = "DIR", action = ArgAction::Append)]
    pub libraries: Vec<String>,

    /// The address of a SQL Gateway; not supported yet.
    #[arg(short = 'e', long, value_name = "ADDRESS")]
    pub endpoint: Option<String>,

    /// Flink's options for Python functions.
    #[command(flatten)]
    pub python: PythonArgs,

    /// Whether the first word was `gateway`.
    #[arg(skip)]
    pub is_gateway: bool,
}

/// Accepted for scripts that give them, and ignored: there are no Python functions.
#[derive(Debug, clap::Args)]
#[allow(missing_docs, reason = "Flink's words, never read")]
pub struct PythonArgs {
    #[arg(long = "pyArchives", hide = true)]
    pub archives: Option<String>,
    #[arg(long = "pyClientExecutable", hide = true)]
    pub client_executable: Option<String>,
    #[arg(long = "pyExecutable", hide = true)]
    pub executable: Option<String>,
    #[arg(long = "pyFiles", hide = true)]
    pub files: Option<String>,
    #[arg(long = "pyPythonPath", hide = true)]
    pub python_path: Option<String>,
    #[arg(long = "pyRequirements", hide = true)]
    pub requirements: Option<String>,
}

/// Flink's options with one dash and several letters, and their long names.
const ONE_DASH: &[(&str, &str)] = &[
    ("-hist", "--history"),
    ("-pyarch", "--pyArchives"),
    ("-pyclientexec", "--pyClientExecutable"),
    ("-pyexec", "--pyExecutable"),
    ("-pyfs", "--pyFiles"),
    ("-pypath", "--pyPythonPath"),
    ("-pyreq", "--pyRequirements"),
];

impl Args {
    /// Parses the command line, program name first. The answer to `--help` and `--version` comes as an error of clap's.
    ///
    /// # Errors
    /// An option is unknown or lacks its value.
    pub fn parse_line(line: impl IntoIterator<Item = OsString>) -> Result<Args, clap::Error> {
        let mut words: Vec<OsString> = line.into_iter().collect();
        let mut is_gateway = false;
        // Any other first word is refused: Flink's client prints its help, and a script whose -f is missing seems to have run.
        if let Some(mode @ ("embedded" | "gateway")) = words.get(1).and_then(|word| word.to_str()) {
            is_gateway = mode == "gateway";
            words.remove(1);
        }
        let words = words.into_iter().map(with_two_dashes);
        let args = Args::try_parse_from(words)?;
        Ok(Args { is_gateway, ..args })
    }

    /// Checks what clap cannot, and splits `-D`.
    ///
    /// # Errors
    /// The session's name has other characters than Flink allows, a `-D` has no `=`, or a gateway is asked for.
    pub(super) fn checked_properties(&self) -> Result<Vec<(String, String)>> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if self.session.is_empty() || !self.session.chars().all(is_name) {
            return Err(Error::validation("Session identifier must only consists of 'a-zA-Z0-9_-.'."));
        }
        if self.is_gateway && self.endpoint.is_none() {
            return Err(Error::validation(
                "Please specify the address of the SQL Gateway with command line option '-e,--endpoint <SQL Gateway address>' in the gateway mode.",
            ));
        }
        if self.is_gateway || self.endpoint.is_some() {
            return Err(Error::unsupported("the gateway mode is not supported")
                .hint("Leave out 'gateway' and '-e': statements run in this process."));
        }
        self.properties.iter().map(|property| split_property(property)).collect()
    }
}

/// Splits `key=value`; the value may hold further `=`.
fn split_property(property: &str) -> Result<(String, String)> {
    match property.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err(Error::validation(format!("option '-D {property}' is not of the form key=value"))),
    }
}

/// Gives Flink's options of several letters their second dash: `-hist x` and `-hist=x`.
fn with_two_dashes(word: OsString) -> OsString {
    let Some(text) = word.to_str() else { return word };
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    match (ONE_DASH.iter().find(|(short, _)| *short == name), value) {
        (Some((_, long)), Some(value)) => format!("{long}={value}").into(),
        (Some((_, long)), None) => (*long).into(),
        (None, _) => word,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(words: &[&str]) -> Args {
        let line = std::iter::once("lakehead").chain(words.iter().copied()).map(OsString::from);
        Args::parse_line(line).unwrap()
    }

    #[test]
    fn the_declaration_holds_together() {
        Args::command().debug_assert();
    }

    #[test]
    fn flags_of_flink_are_taken() {
        let args = parse(&[
            "embedded",
            "-i",
            "a.sql",
            "-f",
            "b.sql",
            "-hist",
            "h",
            "-Da.b=c=d",
            "-D",
            "k=v",
            "-j",
            "x.jar",
            "-l",
            "lib",
            "-pyexec",
            "python3",
            "-pyfs=a.py",
            "-s",
            "my-session_1.0",
            "-d",
            "conf.yaml",
        ]);
        assert_eq!(args.history, Some(PathBuf::from("h")));
        assert_eq!(args.python.files.as_deref(), Some("a.py"));
        let properties = args.checked_properties().unwrap();
        assert_eq!(properties, [("a.b".to_owned(), "c=d".to_owned()), ("k".to_owned(), "v".to_owned())]);
    }

    #[test]
    fn a_session_name_takes_the_characters_of_flink() {
        let error = parse(&["-s", "a b"]).checked_properties().unwrap_err();
        assert_eq!(error.message(), "Session identifier must only consists of 'a-zA-Z0-9_-.'.");
    }

    #[test]
    fn a_gateway_is_refused() {
        assert!(
            parse(&["gateway"]).checked_properties().unwrap_err().message().starts_with("Please specify")
        );
        let error = parse(&["gateway", "-e", "localhost:8083"]).checked_properties().unwrap_err();
        assert_eq!(error.message(), "the gateway mode is not supported");
    }

    #[test]
    fn another_first_word_is_refused() {
        for word in ["a.sql", "remote"] {
            let line = ["lakehead", word].map(OsString::from);
            let error = Args::parse_line(line).unwrap_err();
            assert_eq!(error.kind(), clap::error::ErrorKind::UnknownArgument);
            assert!(error.to_string().contains(word), "{error}");
        }
    }

    #[test]
    fn a_property_needs_a_key() {
        assert!(parse(&["-D", "=v"]).checked_properties().is_err());
        assert!(parse(&["-D", "novalue"]).checked_properties().is_err());
    }
}
