//! Widths and padding of Flink's tableau: every cell and header is right-aligned.
//!
//! A text is as wide as it has UTF-16 units, plus one for each wide character; so an emoji counts three.

use unicode_width::UnicodeWidthChar;

use crate::schema::{DataType, TypeRoot};

/// What NULL looks like in the result of a query.
pub(crate) const NULL_TEXT: &str = "<NULL>";

/// What stands at the end of a cell that was cut.
const ELLIPSIS: &str = "...";

/// Returns the width of a text as Flink's client counts it.
pub(crate) fn display_width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char_width).sum() }
}

/// Returns what one character adds to the width of a text.
fn char_width(character: char) -> usize {
    character.len_utf16() + usize::from(character.width() == Some(2))
}

/// Appends a text right-aligned in `width` columns; a wider one is cut and ends with three dots.
pub(crate) fn push_cell(out: &mut String, text: &str, width: usize) {
    let text_width = display_width(text);
    if text_width <= width {
        push_blanks(out, width - text_width);
        out.push_str(text);
        return;
    }
    let room = width.saturating_sub(ELLIPSIS.len());
    let (kept, kept_width) = prefix_within(text, room);
    push_blanks(out, room - kept_width);
    out.push_str(kept);
    out.push_str(&ELLIPSIS[..ELLIPSIS.len().min(width)]);
}

/// Returns the longest beginning of a text that is at most `room` wide, and its width.
pub(crate) fn prefix_within(text: &str, room: usize) -> (&str, usize) {
    let mut width = 0;
    for (index, character) in text.char_indices() {
        let next = width + char_width(character);
        if next > room {
            return (&text[..index], width);
        }
        width = next;
    }
    (text, width)
}

/// Appends blanks.
pub(crate) fn push_blanks(out: &mut String, count: usize) {
    const BLANKS: &str = "                                                                ";
    let mut left = count;
    while left > 0 {
        let piece = left.min(BLANKS.len());
        out.push_str(&BLANKS[..piece]);
        left -= piece;
    }
}

/// Returns the width of a column whose rows are printed before the next ones are known: by name and type.
pub(crate) fn streaming_width(name: &str, data_type: &DataType, max_column_width: usize) -> usize {
    let by_type = match &data_type.root {
        TypeRoot::TinyInt => 4,
        TypeRoot::SmallInt => 6,
        TypeRoot::Int => 11,
        TypeRoot::BigInt => 20,
        TypeRoot::Decimal(precision, _) => usize::from(*precision) + 2,
        TypeRoot::Boolean => 5,
        TypeRoot::Date => 10,
        TypeRoot::Time(0) => 8,
        TypeRoot::Time(precision) => usize::from(*precision) + 9,
        TypeRoot::Timestamp(precision) | TypeRoot::TimestampLtz(precision) => match precision {
            0 => 19,
            1..=3 => 23,
            4..=6 => 26,
            _ => 29,
        },
        _ => max_column_width,
    };
    by_type.max(display_width(name)).max(NULL_TEXT.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(text: &str, width: usize) -> String {
        let mut out = String::new();
        push_cell(&mut out, text, width);
        out
    }

    #[test]
    fn width_counts_utf16_units_and_wide_characters() {
        assert_eq!(display_width("naïve"), 5);
        assert_eq!(display_width("日本語"), 6);
        assert_eq!(display_width("🚀"), 3);
        assert_eq!(display_width("two\nlines"), 9);
    }

    #[test]
    fn cells_are_right_aligned() {
        assert_eq!(cell("one", 6), "   one");
        assert_eq!(cell("🚀", 5), "  🚀");
        assert_eq!(cell("", 3), "   ");
    }

    #[test]
    fn a_cell_that_is_too_wide_is_cut_to_the_exact_width() {
        assert_eq!(cell("a string that is much longer than thirty", 30), "a string that is much longe...");
        let cut = cell("これは日本語をテストするための文です", 30);
        assert_eq!(cut, " これは日本語をテストするた...");
        assert_eq!(display_width(&cut), 30);
        assert_eq!(cell("abcdef", 2), "..");
    }

    #[test]
    fn streaming_widths_come_from_types_names_and_null() {
        let width = |root: TypeRoot, name: &str| streaming_width(name, &root.nullable(), 30);
        assert_eq!(width(TypeRoot::TinyInt, "ti"), 6);
        assert_eq!(width(TypeRoot::Int, "EXPR$0"), 11);
        assert_eq!(width(TypeRoot::Boolean, "isHappy"), 7);
        assert_eq!(width(TypeRoot::Decimal(5, 3), "dc"), 7);
        assert_eq!(width(TypeRoot::Timestamp(6), "ts6"), 26);
        assert_eq!(width(TypeRoot::TimestampLtz(3), "ltz"), 23);
        assert_eq!(width(TypeRoot::Time(3), "t"), 12);
        assert_eq!(width(TypeRoot::STRING, "s"), 30);
        assert_eq!(streaming_width("s", &TypeRoot::STRING.nullable(), 3), 6);
    }
}
