//! What sqlparser's tokenizer must know of Flink's lexical rules.
//!
//! Only the tokenizer reads this: the grammar itself is ours (see `parser`), so none of the grammar switches is set.

use sqlparser::dialect::Dialect;

/// Flink's default dialect: back-ticks quote, words keep their case, a backslash is an ordinary character.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FlinkDialect;

impl Dialect for FlinkDialect {
    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '`'
    }

    // A double quote and a dollar sign start no identifier in Flink. They are words for sqlparser, since it would look for
    // the end of a string otherwise; `tokens` turns them into single characters, which no rule accepts.
    fn is_identifier_start(&self, ch: char) -> bool {
        ch.is_alphabetic() || matches!(ch, '_' | '"' | '$')
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        ch.is_alphanumeric() || matches!(ch, '_' | '$')
    }

    fn supports_unicode_string_literal(&self) -> bool {
        true
    }
}
