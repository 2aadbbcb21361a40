//! What can go wrong, and where in the text: one `Error` for the whole crate.
//!
//! An error has a kind (what the caller may do about it), a message, and optionally a place, a hint and a cause. Because
//! users of Flink search their logs for exception names, an error also knows the class that Flink would have thrown; it
//! is printed in front of the message and nothing in this crate decides anything by it.

mod class;
mod classify;
mod redact;
mod render;
mod span;

pub use class::FlinkClass;
pub use redact::{REDACTED, is_sensitive_key, redact_statement, redact_value};
pub use render::{RenderedError, render};
pub use span::{SourceText, Span};

use std::fmt;

/// The result of everything that can fail in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure this is, which decides retries and exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The text is not SQL as Flink reads it.
    Syntax,
    /// Well-formed but wrong: an unknown column, a bad option value.
    Validation,
    /// Valid Flink SQL that Lakehead does not execute; the hint says what to do instead.
    Unsupported,
    /// A named object does not exist.
    NotFound,
    /// A named object exists already.
    AlreadyExists,
    /// An outside system cannot be reached now; jobs retry.
    Unavailable,
    /// An outside system refuses; retrying does not help.
    Rejected,
    /// A record cannot be decoded or a value cannot be cast.
    Data,
    /// A checkpoint or state cannot be read.
    State,
    /// The user stopped it.
    Interrupted,
    /// A bug of ours.
    Internal,
}

/// A failure with its kind, message, place, hint and cause. Eight bytes wide.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    class: Option<FlinkClass>,
    span: Option<Span>,
    hint: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Creates an error of the given kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Box::new(Inner {
            kind,
            message: message.into(),
            class: None,
            span: None,
            hint: None,
            source: None,
        }))
    }

    /// The text does not parse.
    pub fn syntax(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Syntax, message)
    }

    /// The statement is well-formed but wrong.
    pub fn validation(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Validation, message)
    }

    /// Valid Flink SQL that is not executed here.
    pub fn unsupported(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Unsupported, message)
    }

    /// A named object does not exist.
    pub fn not_found(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::NotFound, message)
    }

    /// A named object exists already.
    pub fn already_exists(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::AlreadyExists, message)
    }

    /// A record or value is not what its type says.
    pub fn data(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Data, message)
    }

    /// An outside system cannot be reached.
    pub fn unavailable(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Unavailable, message)
    }

    /// An outside system refuses.
    pub fn rejected(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Rejected, message)
    }

    /// The user stopped it.
    pub fn interrupted(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Interrupted, message)
    }

    /// A bug of ours.
    pub fn internal(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Internal, message)
    }

    /// Sets the place, unless a more exact one is known already.
    #[must_use]
    pub fn at(mut self, span: Span) -> Error {
        self.0.span.get_or_insert(span);
        self
    }

    /// Moves the place by `offset` bytes: from a statement's text into the script that holds it.
    #[must_use]
    pub fn shifted(mut self, offset: usize) -> Error {
        if let Some(span) = &mut self.0.span {
            *span = span.shifted(offset);
        }
        self
    }

    /// Takes the place away: it points into a text that the user did not write now, such as a view's query.
    #[must_use]
    pub fn without_span(mut self) -> Error {
        self.0.span = None;
        self
    }

    /// Adds a sentence that tells the user what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.0.hint.get_or_insert(hint.into());
        self
    }

    /// Keeps the failure that led to this one.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        self.0.source = Some(source.into());
        self
    }

    /// Names the exception that Flink throws here.
    #[must_use]
    pub fn class(mut self, class: FlinkClass) -> Error {
        self.0.class = Some(class);
        self
    }

    /// Returns the kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the message alone, without class, place or hint. It may have several lines.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the place in the text, if one is known.
    pub fn span(&self) -> Option<Span> {
        self.0.span
    }

    /// Returns the hint, if there is one.
    pub fn hint_text(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Returns the class that Flink would name, by kind if none was set.
    pub fn flink_class(&self) -> FlinkClass {
        self.0.class.unwrap_or_else(|| FlinkClass::of_kind(self.0.kind))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("span", &self.0.span)
            .field("hint", &self.0.hint)
            .field("source", &self.0.source)
            .finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}
