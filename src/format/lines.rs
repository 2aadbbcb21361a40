//! Cuts a frame into lines. What stands behind the last line break is a line, too, unless it is empty.

/// Returns the lines without their line breaks, each with the offset at which it begins.
#[inline]
pub(super) fn lines(data: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = data.get(start..).filter(|rest| !rest.is_empty())?;
        let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let line = (start, &rest[..length]);
        start += length + 1;
        Some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn a_line_break_ends_a_line_and_begins_none() {
        let cut = |text: &'static str| -> Vec<(usize, &str)> {
            lines(text.as_bytes()).map(|(at, line)| (at, std::str::from_utf8(line).unwrap())).collect()
        };
        assert_eq!(cut(""), []);
        assert_eq!(cut("\n"), [(0, "")]);
        assert_eq!(cut("ab\n\nc"), [(0, "ab"), (3, ""), (4, "c")]);
        assert_eq!(cut("ab\n"), [(0, "ab")]);
    }
}
