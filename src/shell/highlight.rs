//! Colours of the statement being typed, in the schemes that `sql-client.display.color-schema` names.

use super::keywords::is_keyword;
use super::token::{TokenKind, tokens};

/// The colours of one scheme, each an SGR parameter list; an empty one leaves the text as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scheme {
    name: &'static str,
    keyword: &'static str,
    plain: &'static str,
    comment: &'static str,
    hint: &'static str,
    text: &'static str,
    quoted_name: &'static str,
}

/// All schemes by name. `default` colours nothing.
const SCHEMES: &[Scheme] = &[
    Scheme { name: "default", keyword: "", plain: "", comment: "", hint: "", text: "", quoted_name: "" },
    Scheme {
        name: "chester",
        keyword: "38;5;32",
        plain: "38;5;252",
        comment: "38;5;65",
        hint: "38;5;71",
        text: "38;5;166",
        quoted_name: "38;5;81",
    },
    Scheme {
        name: "dark",
        keyword: "38;5;75",
        plain: "38;5;255",
        comment: "38;5;244",
        hint: "38;5;150",
        text: "38;5;114",
        quoted_name: "38;5;180",
    },
    Scheme {
        name: "dracula",
        keyword: "38;5;212",
        plain: "38;5;231",
        comment: "38;5;61",
        hint: "38;5;84",
        text: "38;5;228",
        quoted_name: "38;5;117",
    },
    Scheme {
        name: "geshi",
        keyword: "38;5;26",
        plain: "38;5;238",
        comment: "38;5;102",
        hint: "38;5;130",
        text: "38;5;160",
        quoted_name: "38;5;30",
    },
    Scheme {
        name: "light",
        keyword: "38;5;19",
        plain: "38;5;235",
        comment: "38;5;245",
        hint: "38;5;94",
        text: "38;5;28",
        quoted_name: "38;5;90",
    },
    Scheme {
        name: "obsidian",
        keyword: "38;5;113",
        plain: "38;5;254",
        comment: "38;5;243",
        hint: "38;5;109",
        text: "38;5;208",
        quoted_name: "38;5;146",
    },
    Scheme {
        name: "solarized",
        keyword: "38;5;64",
        plain: "38;5;245",
        comment: "38;5;240",
        hint: "38;5;136",
        text: "38;5;37",
        quoted_name: "38;5;33",
    },
    Scheme {
        name: "vs2010",
        keyword: "38;5;21",
        plain: "38;5;234",
        comment: "38;5;22",
        hint: "38;5;65",
        text: "38;5;124",
        quoted_name: "38;5;24",
    },
];

impl Scheme {
    /// Returns the scheme of a name, in any case; an unknown name colours nothing.
    pub(crate) fn named(name: &str) -> Scheme {
        *SCHEMES.iter().find(|scheme| scheme.name.eq_ignore_ascii_case(name.trim())).unwrap_or(&SCHEMES[0])
    }

    /// Returns the names of all schemes.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        SCHEMES.iter().map(|scheme| scheme.name)
    }

    /// Returns whether the scheme colours anything.
    pub(crate) fn is_plain(&self) -> bool {
        self.keyword.is_empty()
    }

    /// Returns a line with its colours; `before` is the statement's text in front of it.
    pub(crate) fn highlight_behind(&self, before: &str, line: &str) -> String {
        let text = format!("{before}{line}");
        let mut out = String::with_capacity(line.len() * 2);
        for token in tokens(&text).into_iter().filter(|token| token.range.end > before.len()) {
            let piece = &text[token.range.start.max(before.len())..token.range.end];
            let (color, attribute) = match token.kind {
                TokenKind::Word if is_keyword(piece) => (self.keyword, "1;"),
                TokenKind::Word | TokenKind::Symbol => (self.plain, ""),
                TokenKind::Comment => (self.comment, "3;"),
                TokenKind::Hint => (self.hint, "1;"),
                TokenKind::Text => (self.text, ""),
                TokenKind::QuotedName => (self.quoted_name, ""),
                TokenKind::Blank => ("", ""),
            };
            if color.is_empty() {
                out.push_str(piece);
            } else {
                out.push_str(&format!("\x1b[{attribute}{color}m{piece}\x1b[0m"));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheme_of_flink_is_there_in_any_case() {
        for name in ["chester", "dark", "dracula", "geshi", "light", "obsidian", "solarized", "vs2010"] {
            assert!(!Scheme::named(&name.to_uppercase()).is_plain(), "{name}");
        }
        assert!(Scheme::named("nope").is_plain());
        assert_eq!(Scheme::named("default").highlight_behind("", "SELECT 1"), "SELECT 1");
    }

    #[test]
    fn keywords_are_bold_and_comments_italic() {
        let text = Scheme::named("dark").highlight_behind("", "select 'x' -- c");
        assert!(text.starts_with("\x1b[1;38;5;75mselect\x1b[0m \x1b[38;5;114m'x'\x1b[0m "));
        assert!(text.ends_with("\x1b[3;38;5;244m-- c\x1b[0m"));
    }

    #[test]
    fn a_text_that_began_on_an_earlier_line_goes_on() {
        assert_eq!(Scheme::named("dark").highlight_behind("SELECT 'a\n", "b'"), "\x1b[38;5;114mb'\x1b[0m");
    }
}
