//! Finds where fields and records end, 64 bytes at a time.
//!
//! Per block, comparisons give one bit per byte for delimiters, line breaks and quotes; a running exclusive-or over the quote
//! bits says which bytes lie inside quotes. That is right as long as every quote that opens stands at the start of a field.
//! A block in which one does not, and every block of the rarer dialects, goes byte by byte through the exact automaton.

use wide::u8x16;

/// What ends fields and records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// The byte between two fields; None where a line is one field.
    pub delimiter: Option<u8>,
    /// The byte around fields that hold delimiters or line breaks.
    pub quote: Option<u8>,
    /// The byte that takes its meaning from the next one.
    pub escape: Option<u8>,
    /// Whether lines that start with `#` are no records; they still end in a line break.
    pub has_comments: bool,
    /// Whether blanks may stand in front of a quote that opens.
    pub trims: bool,
}

impl Dialect {
    /// Plain lines.
    pub const LINES: Dialect =
        Dialect { delimiter: None, quote: None, escape: None, has_comments: false, trims: false };

    fn is_simple(&self) -> bool {
        self.escape.is_none() && !self.has_comments && !self.trims
    }
}

/// Where the scanner stands within a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    RecordStart,
    FieldStart,
    Unquoted,
    Quoted,
    /// Behind a quote within quotes: it closed the field unless another quote follows.
    QuoteSeen,
    UnquotedEscape,
    QuotedEscape,
    Comment,
}

/// The ends found in a block of up to 64 bytes, one bit per byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ends {
    /// Delimiters outside quotes.
    pub(crate) fields: u64,
    /// Line breaks outside quotes.
    pub(crate) records: u64,
}

/// Scans blocks one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Scanner {
    dialect: Dialect,
    state: State,
}

/// How many bytes a block has.
pub(crate) const BLOCK: usize = 64;

impl Scanner {
    /// Creates a scanner that stands at the start of a record.
    pub(crate) fn new(dialect: Dialect) -> Scanner {
        Scanner { dialect, state: State::RecordStart }
    }

    /// Returns whether the bytes so far end within quotes.
    pub(crate) fn is_inside_quotes(&self) -> bool {
        matches!(self.state, State::Quoted | State::QuotedEscape)
    }

    /// Scans the next block, which is shorter than 64 bytes at the end of the data.
    #[inline]
    pub(crate) fn scan(&mut self, data: &[u8]) -> Ends {
        match data.first_chunk::<BLOCK>() {
            Some(block) if self.dialect.is_simple() => self.scan_block(block),
            _ => self.scan_exactly(&data[..data.len().min(BLOCK)]),
        }
    }

    #[inline]
    fn scan_block(&mut self, block: &[u8; BLOCK]) -> Ends {
        let breaks = matches(block, b'\n');
        let delimiters = self.dialect.delimiter.map_or(0, |byte| matches(block, byte));
        let quotes = self.dialect.quote.map_or(0, |byte| matches(block, byte));
        let mut inside = if self.state == State::Quoted { u64::MAX } else { 0 };
        if quotes != 0 {
            inside ^= running_xor(quotes);
        }
        let ends = Ends { fields: delimiters & !inside, records: breaks & !inside };
        let structural = ends.fields | ends.records;
        if quotes != 0 {
            let at_start = matches!(self.state, State::FieldStart | State::RecordStart);
            let behind_end = structural << 1 | u64::from(at_start);
            let behind_quote = quotes << 1 | u64::from(self.state == State::QuoteSeen);
            if quotes & inside & !(behind_end | behind_quote) != 0 {
                return self.scan_exactly(block);
            }
        }
        const LAST: u64 = 1 << (BLOCK - 1);
        self.state = if inside & LAST != 0 {
            State::Quoted
        } else if quotes & LAST != 0 {
            State::QuoteSeen
        } else if ends.records & LAST != 0 {
            State::RecordStart
        } else if structural & LAST != 0 {
            State::FieldStart
        } else {
            State::Unquoted
        };
        ends
    }

    /// The automaton that defines what the fast path computes.
    fn scan_exactly(&mut self, block: &[u8]) -> Ends {
        let mut ends = Ends { fields: 0, records: 0 };
        for (at, byte) in block.iter().enumerate() {
            self.state = self.step(*byte);
            match self.state {
                State::RecordStart => ends.records |= 1 << at,
                State::FieldStart if Some(*byte) == self.dialect.delimiter => ends.fields |= 1 << at,
                _ => {}
            }
        }
        ends
    }

    fn step(&self, byte: u8) -> State {
        let dialect = &self.dialect;
        match self.state {
            State::RecordStart if dialect.has_comments && byte == b'#' => State::Comment,
            State::Comment => {
                if byte == b'\n' {
                    State::RecordStart
                } else {
                    State::Comment
                }
            }
            State::Quoted if Some(byte) == dialect.escape => State::QuotedEscape,
            State::Quoted if Some(byte) == dialect.quote => State::QuoteSeen,
            State::Quoted | State::QuotedEscape => State::Quoted,
            State::QuoteSeen if Some(byte) == dialect.quote => State::Quoted,
            State::UnquotedEscape => State::Unquoted,
            _ if byte == b'\n' => State::RecordStart,
            _ if Some(byte) == dialect.delimiter => State::FieldStart,
            State::RecordStart | State::FieldStart if Some(byte) == dialect.quote => State::Quoted,
            State::RecordStart | State::FieldStart if dialect.trims && byte == b' ' => State::FieldStart,
            _ if Some(byte) == dialect.escape => State::UnquotedEscape,
            _ => State::Unquoted,
        }
    }
}

/// Finds the last record end in data that arrives in pieces.
#[derive(Debug, Clone)]
pub(crate) struct RecordCutter {
    scanner: Scanner,
}

impl RecordCutter {
    /// Creates a cutter that stands at the start of a record.
    pub(crate) fn new(dialect: Dialect) -> RecordCutter {
        RecordCutter { scanner: Scanner::new(dialect) }
    }

    /// Takes the next piece and returns the offset in it just behind the last record that ends there.
    pub(crate) fn advance(&mut self, data: &[u8]) -> Option<usize> {
        if self.scanner.dialect.quote.is_none() && self.scanner.dialect.is_simple() {
            return memchr::memrchr(b'\n', data).map(|at| at + 1);
        }
        let mut last = None;
        for (number, block) in data.chunks(BLOCK).enumerate() {
            let ends = self.scanner.scan(block);
            if ends.records != 0 {
                last = Some(number * BLOCK + BLOCK - ends.records.leading_zeros() as usize);
            }
        }
        last
    }
}

/// Returns one bit per byte that equals `byte`.
#[inline]
fn matches(block: &[u8; BLOCK], byte: u8) -> u64 {
    let wanted = u8x16::splat(byte);
    let (parts, _) = block.as_chunks::<16>();
    parts.iter().enumerate().fold(0, |bits, (number, part)| {
        bits | u64::from(u8x16::new(*part).simd_eq(wanted).to_bitmask()) << (16 * number)
    })
}

/// Returns the bits whose count of set bits at and below them is odd.
#[inline]
fn running_xor(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CSV: Dialect =
        Dialect { delimiter: Some(b','), quote: Some(b'"'), escape: None, has_comments: false, trims: false };

    /// All ends of a text, with the exact automaton or with the fast path.
    fn ends(text: &[u8], is_exact: bool) -> (Vec<usize>, Vec<usize>, bool) {
        let mut scanner = Scanner::new(CSV);
        let (mut fields, mut records) = (Vec::new(), Vec::new());
        for (number, block) in text.chunks(BLOCK).enumerate() {
            let ends = if is_exact { scanner.scan_exactly(block) } else { scanner.scan(block) };
            let positions = |bits: u64| {
                (0..BLOCK).filter(move |at| bits >> at & 1 == 1).map(move |at| number * BLOCK + at)
            };
            fields.extend(positions(ends.fields));
            records.extend(positions(ends.records));
        }
        (fields, records, scanner.is_inside_quotes())
    }

    #[test]
    fn a_quote_opens_only_at_the_start_of_a_field() {
        let (fields, records, _) = ends(b"5\" pipe,\"a,\"\"\nb\",c\n", true);
        assert_eq!((fields, records), (vec![7, 16], vec![18]));
    }

    #[test]
    fn comments_and_escapes_hide_quotes() {
        let dialect = Dialect { escape: Some(b'\\'), has_comments: true, ..CSV };
        let mut cutter = RecordCutter::new(dialect);
        assert_eq!(cutter.advance(b"# it's \"\n\"a\\\"\n\",b\n\"open\n"), Some(18));
        assert!(cutter.scanner.is_inside_quotes());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn the_fast_path_equals_the_automaton(picks in prop::collection::vec(0_usize..10, 0..500)) {
            let text: Vec<u8> = picks.iter().map(|pick| b"\"\",\nab\"c\rd"[*pick]).collect();
            prop_assert_eq!(ends(&text, false), ends(&text, true));
        }

        #[test]
        fn pieces_do_not_change_where_records_end(
            picks in prop::collection::vec(0_usize..8, 0..400),
            cut in 0_usize..400,
        ) {
            let text: Vec<u8> = picks.iter().map(|pick| b"\"\",\nabc\r"[*pick]).collect();
            let cut = cut.min(text.len());
            let whole = RecordCutter::new(CSV).advance(&text);
            let mut cutter = RecordCutter::new(CSV);
            let first = cutter.advance(&text[..cut]);
            let second = cutter.advance(&text[cut..]).map(|at| cut + at);
            prop_assert_eq!(second.or(first), whole);
        }
    }
}
