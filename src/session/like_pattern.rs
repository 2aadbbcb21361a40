//! `[NOT] LIKE|ILIKE 'pattern'` of SHOW.

use crate::sql::LikePattern;

/// Returns whether a name passes the filter.
pub(super) fn matches(like: Option<&LikePattern>, name: &str) -> bool {
    let Some(like) = like else { return true };
    let found = if like.ignore_case {
        is_like(&name.to_lowercase(), &like.pattern.to_lowercase())
    } else {
        is_like(name, &like.pattern)
    };
    found != like.negated
}

/// One piece of a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Piece {
    AnyText,
    AnyCharacter,
    Character(char),
}

/// Matches `%` and `_`, with `\` before what is meant as it is. Takes time of at most text times pattern.
fn is_like(text: &str, pattern: &str) -> bool {
    let mut pieces = Vec::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        pieces.push(match character {
            '%' => Piece::AnyText,
            '_' => Piece::AnyCharacter,
            '\\' => Piece::Character(characters.next().unwrap_or('\\')),
            other => Piece::Character(other),
        });
    }
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut piece) = (0, 0);
    // Where the last `%` stands and how much text it has taken: on a mismatch it takes one character more.
    let mut retry: Option<(usize, usize)> = None;
    while at < text.len() {
        match pieces.get(piece) {
            Some(Piece::AnyText) => {
                retry = Some((piece, at));
                piece += 1;
            }
            Some(Piece::AnyCharacter) => (at, piece) = (at + 1, piece + 1),
            Some(Piece::Character(character)) if *character == text[at] => (at, piece) = (at + 1, piece + 1),
            _ => {
                let Some((any, taken)) = retry else { return false };
                retry = Some((any, taken + 1));
                (at, piece) = (taken + 1, any + 1);
            }
        }
    }
    pieces[piece..].iter().all(|piece| *piece == Piece::AnyText)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_is_any_text_and_underscore_one_character() {
        for (text, pattern, expected) in [
            ("orders", "ord%", true),
            ("orders", "%d_rs", true),
            ("orders", "o%x%", false),
            ("orders", "", false),
            ("", "%", true),
            ("a_b", "a\\_b", true),
            ("axb", "a\\_b", false),
            ("ünï", "ü_ï", true),
            ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "%a%a%a%a%a%a%a%c", false),
        ] {
            assert_eq!(is_like(text, pattern), expected, "{text} LIKE {pattern}");
        }
    }

    #[test]
    fn not_and_case_are_of_the_filter() {
        let like = |negated, ignore_case| LikePattern { negated, ignore_case, pattern: "A%".to_owned() };
        assert!(!matches(Some(&like(false, false)), "abc"));
        assert!(matches(Some(&like(false, true)), "abc"));
        assert!(matches(Some(&like(true, false)), "abc"));
        assert!(matches(None, "abc"));
    }
}
