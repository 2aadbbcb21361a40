//! The only statement splitter: the shell, scripts and standard input all cut their text here.
//!
//! Text may come in parts of any size, and every byte is looked at once, so a pasted statement of many megabytes costs no
//! more than it must. The prompts of a pasted session are blanked out byte by byte, so that places in a statement's text
//! stay places in the script.

use crate::error::{Error, Span};

/// One statement of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The text, from its first comment or word to its `;` inclusive; pasted prompts are blanks.
    pub text: String,
    /// The place of the text in the script.
    pub span: Span,
    /// Whether a `;` ends it. Only the last piece of a script can lack it.
    pub complete: bool,
    /// What is still open at the end, with its place in `text`.
    pub unfinished: Option<Unfinished>,
}

impl Piece {
    /// Returns the error that something in this piece is not closed, with its place in the script.
    pub fn unfinished_error(&self) -> Option<Error> {
        self.unfinished.map(|open| open.error().shifted(self.span.start))
    }
}

/// Something that was opened and not closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfinished {
    /// What.
    pub kind: UnfinishedKind,
    /// Where it was opened.
    pub start: usize,
}

/// What can stay open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is what its name says")]
pub enum UnfinishedKind {
    String,
    QuotedIdentifier,
    BlockComment,
    StatementSet,
}

impl Unfinished {
    /// Words it as an error at the place where it was opened.
    pub fn error(self) -> Error {
        let (what, hint, width) = match self.kind {
            UnfinishedKind::String => {
                ("string literal", "Close it with a single quote; a quote inside is written twice.", 1)
            }
            UnfinishedKind::QuotedIdentifier => ("quoted identifier", "Close it with a back-tick.", 1),
            UnfinishedKind::BlockComment => ("comment", "Close it with */.", 2),
            UnfinishedKind::StatementSet => ("statement set", "Close it with END;.", 1),
        };
        Error::syntax(format!("unfinished {what}")).at(Span::new(self.start, self.start + width)).hint(hint)
    }
}

/// Cuts a whole script into statements. Empty statements and comments without a statement are left out.
pub fn split(script: &str) -> Vec<Piece> {
    let mut splitter = Splitter::new();
    splitter.push(script);
    let mut pieces: Vec<Piece> = std::iter::from_fn(|| splitter.next_piece()).collect();
    pieces.extend(splitter.finish());
    pieces
}

/// The prompts that people paste together with their statements.
const PROMPTS: [&str; 2] = ["Flink SQL>", "Lakehead SQL>"];

/// What is open at the current byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Default,
    String { start: usize },
    Identifier { start: usize },
    LineComment,
    BlockComment { start: usize },
}

/// How far a statement set block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    /// Not in one; the last words were `STATEMENT`, `STATEMENT SET` or neither.
    Outside(u8),
    /// Between BEGIN, which stood at `start`, and END.
    Inside { start: usize },
}

/// Cuts text that comes in parts into statements.
#[derive(Debug)]
pub struct Splitter {
    /// Text that belongs to no returned piece yet, with some of what does in front of it.
    buffer: String,
    /// Offset of the buffer in the script.
    base: usize,
    /// Start of the current piece in the buffer: its first byte that is not white space.
    start: Option<usize>,
    /// The next byte to look at.
    position: usize,
    state: State,
    block: Block,
    /// Whether a word or a sign has been seen in this piece.
    significant: bool,
    /// Whether the piece's first word is one that can open a block.
    may_open_block: bool,
    /// Whether the next word is the first of the piece, or of a statement of the block.
    at_statement_start: bool,
    /// Whether only white space has been seen on this line.
    at_line_start: bool,
    /// Whether this piece came with a prompt, so that its other lines may have one too.
    prompted: bool,
    /// Prompts inside the current piece.
    blanks: Vec<Span>,
    /// Whether no more text comes.
    finished: bool,
}

impl Default for Splitter {
    fn default() -> Self {
        Self::new()
    }
}

impl Splitter {
    /// Starts a script.
    pub fn new() -> Splitter {
        Splitter {
            buffer: String::new(),
            base: 0,
            start: None,
            position: 0,
            state: State::Default,
            block: Block::Outside(0),
            significant: false,
            may_open_block: false,
            at_statement_start: true,
            at_line_start: true,
            prompted: false,
            blanks: Vec::new(),
            finished: false,
        }
    }

    /// Appends text of the script.
    pub fn push(&mut self, text: &str) {
        let text = if self.base == 0 && self.buffer.is_empty() {
            // A byte order mark is no part of the first statement.
            let rest = text.strip_prefix('\u{feff}').unwrap_or(text);
            self.base = text.len() - rest.len();
            rest
        } else {
            text
        };
        self.buffer.push_str(text);
    }

    /// Returns the next statement that is complete in what has been pushed.
    pub fn next_piece(&mut self) -> Option<Piece> {
        while self.position < self.buffer.len() {
            let found = match self.state {
                State::Default => self.step_default(),
                State::LineComment => self.skip_past(b"\n", State::Default),
                State::String { .. } => self.skip_past(b"'", State::Default),
                State::Identifier { .. } => self.skip_past(b"`", State::Default),
                State::BlockComment { .. } => self.skip_past(b"*/", State::Default),
            };
            match found {
                Step::Went => {}
                Step::Ended => {
                    if let Some(piece) = self.take(true) {
                        return Some(piece);
                    }
                }
                Step::NeedsMore => break,
            }
        }
        self.compact();
        None
    }

    /// Returns the last statement, which no `;` ends; None if only white space and finished comments are left.
    pub fn finish(&mut self) -> Option<Piece> {
        self.finished = true;
        self.next_piece().or_else(|| self.take(false))
    }

    /// Returns what would be open if the text ended here, with its place in the script; for the continuation prompt.
    pub fn unfinished(&self) -> Option<Unfinished> {
        self.open().map(|open| Unfinished { start: open.start + self.base, ..open })
    }

    /// Returns whether some of a statement or an open comment has been read since the last one ended.
    pub fn is_inside_statement(&self) -> bool {
        self.significant || self.open().is_some()
    }

    /// Looks at one token outside strings and comments.
    fn step_default(&mut self) -> Step {
        let bytes = self.buffer.as_bytes();
        let byte = bytes[self.position];
        let next = bytes.get(self.position + 1).copied();
        if self.at_line_start && !byte.is_ascii_whitespace() {
            match self.skip_prompt() {
                Step::Went => self.at_line_start = false,
                Step::Ended => return Step::Went,
                Step::NeedsMore => return Step::NeedsMore,
            }
        }
        match byte {
            b'\n' => {
                self.at_line_start = true;
                self.position += 1;
            }
            byte if byte.is_ascii_whitespace() => self.position += 1,
            b';' => return self.semicolon(),
            b'-' | b'/' if next.is_none() && !self.finished => return Step::NeedsMore,
            b'-' if next == Some(b'-') => self.open_comment(State::LineComment),
            b'/' if next == Some(b'*') => self.open_comment(State::BlockComment { start: self.position }),
            b'\'' => self.open_quote(State::String { start: self.position }),
            b'`' => self.open_quote(State::Identifier { start: self.position }),
            byte if byte.is_ascii_alphabetic() || byte == b'_' => return self.word(),
            _ => {
                // A non-breaking blank or the like between statements starts none.
                let character = self.buffer[self.position..].chars().next().unwrap_or(' ');
                if !character.is_whitespace() {
                    self.token();
                }
                self.position += character.len_utf8();
            }
        }
        Step::Went
    }

    /// Marks that a token that is no word stands here.
    fn token(&mut self) {
        self.start.get_or_insert(self.position);
        self.significant = true;
        self.at_statement_start = false;
        if let Block::Outside(_) = self.block {
            self.block = Block::Outside(0);
        }
    }

    fn open_quote(&mut self, state: State) {
        self.token();
        self.state = state;
        self.position += 1;
    }

    fn open_comment(&mut self, state: State) {
        self.start.get_or_insert(self.position);
        self.state = state;
        self.position += 2;
    }

    /// Skips to behind a delimiter, blanking prompts on the way; `''` leaves a string and enters it again.
    fn skip_past(&mut self, delimiter: &[u8], then: State) -> Step {
        let bytes = self.buffer.as_bytes();
        let line_end = memchr::memchr(b'\n', &bytes[self.position..]).map(|offset| self.position + offset);
        if self.at_line_start && delimiter != b"\n" && self.prompted {
            match self.skip_prompt() {
                Step::NeedsMore => return Step::NeedsMore,
                Step::Ended => return Step::Went,
                Step::Went => {}
            }
            self.at_line_start = false;
        }
        let bytes = self.buffer.as_bytes();
        let stop = line_end.map_or(bytes.len(), |newline| newline + 1);
        match memchr::memmem::find(&bytes[self.position..stop], delimiter) {
            Some(offset) => {
                self.position += offset + delimiter.len();
                self.state = then;
                self.at_line_start = delimiter == b"\n";
                Step::Went
            }
            None if line_end.is_some() => {
                self.position = stop;
                self.at_line_start = true;
                Step::Went
            }
            None => {
                // Half a delimiter may stand at the end.
                let keep = delimiter.len() - 1;
                let end = bytes.len();
                self.position = if self.finished { end } else { self.position.max(end.saturating_sub(keep)) };
                while !self.buffer.is_char_boundary(self.position) {
                    self.position -= 1;
                }
                if self.finished { Step::Went } else { Step::NeedsMore }
            }
        }
    }

    /// Reads a word and follows the statement set blocks.
    fn word(&mut self) -> Step {
        let bytes = self.buffer.as_bytes();
        let rest = &bytes[self.position..];
        let length = rest
            .iter()
            .position(|byte| {
                !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || !byte.is_ascii())
            })
            .unwrap_or(rest.len());
        if length == rest.len() && !self.finished {
            return Step::NeedsMore;
        }
        let word = &rest[..length];
        let is = |keyword: &str| word.eq_ignore_ascii_case(keyword.as_bytes());
        if !self.significant {
            self.may_open_block = is("EXECUTE") || is("EXPLAIN") || is("COMPILE");
        }
        let starts_statement = self.at_statement_start;
        self.at_statement_start = false;
        self.block = match self.block {
            Block::Inside { .. } if starts_statement && is("END") => {
                self.may_open_block = false;
                Block::Outside(0)
            }
            Block::Inside { start } => Block::Inside { start },
            Block::Outside(_) if self.may_open_block && is("STATEMENT") => Block::Outside(1),
            Block::Outside(1) if is("SET") => Block::Outside(2),
            Block::Outside(2) if is("BEGIN") => {
                self.at_statement_start = true;
                Block::Inside { start: self.position }
            }
            Block::Outside(_) => Block::Outside(0),
        };
        self.start.get_or_insert(self.position);
        self.significant = true;
        self.position += length;
        Step::Went
    }

    /// Ends the piece, or a statement of its block.
    fn semicolon(&mut self) -> Step {
        self.start.get_or_insert(self.position);
        self.position += 1;
        if let Block::Inside { .. } = self.block {
            self.at_statement_start = true;
            return Step::Went;
        }
        Step::Ended
    }

    /// Blanks out a prompt at the start of a line. `Ended` means that there was one.
    fn skip_prompt(&mut self) -> Step {
        let rest = &self.buffer[self.position..];
        let skipped = if !self.significant {
            if !self.finished
                && PROMPTS.iter().any(|prompt| prompt.starts_with(rest) && rest.len() < prompt.len())
            {
                return Step::NeedsMore;
            }
            // Several statements may follow one prompt, but a statement on a new line needs its own.
            self.prompted = false;
            PROMPTS.iter().find(|prompt| rest.starts_with(**prompt)).map(|prompt| prompt.len())
        } else if self.prompted {
            let indent = rest.len() - rest.trim_start_matches([' ', '\t']).len();
            if !self.finished && matches!(&rest[indent..], "" | ">") {
                return Step::NeedsMore;
            }
            rest[indent..].starts_with("> ").then_some(indent + 2)
        } else {
            None
        };
        let Some(length) = skipped else { return Step::Went };
        self.prompted = true;
        self.at_line_start = false;
        self.blanks.push(Span::new(self.position, self.position + length));
        self.position += length;
        Step::Ended
    }

    /// Returns what is open here, with its place in the buffer.
    fn open(&self) -> Option<Unfinished> {
        match (self.state, self.block) {
            (State::String { start }, _) => Some(Unfinished { kind: UnfinishedKind::String, start }),
            (State::Identifier { start }, _) => {
                Some(Unfinished { kind: UnfinishedKind::QuotedIdentifier, start })
            }
            (State::BlockComment { start }, _) => {
                Some(Unfinished { kind: UnfinishedKind::BlockComment, start })
            }
            (_, Block::Inside { start }) => Some(Unfinished { kind: UnfinishedKind::StatementSet, start }),
            _ => None,
        }
    }

    /// Takes the piece that ends here, unless nothing is in it.
    fn take(&mut self, complete: bool) -> Option<Piece> {
        let unfinished = self.open();
        let piece = match self.start {
            Some(start) if self.significant || unfinished.is_some() => {
                let mut text = self.buffer[start..self.position].to_owned();
                for blank in self.blanks.iter().filter(|blank| blank.start >= start) {
                    let range = blank.start - start..blank.end - start;
                    text.replace_range(range.clone(), &" ".repeat(range.len()));
                }
                Some(Piece {
                    text: if complete { text } else { text.trim_end().to_owned() },
                    span: Span::new(start + self.base, self.position + self.base),
                    complete,
                    unfinished: unfinished.map(|open| Unfinished { start: open.start - start, ..open }),
                })
            }
            _ => None,
        };
        self.start = None;
        self.state = State::Default;
        self.block = Block::Outside(0);
        self.significant = false;
        self.at_statement_start = true;
        self.blanks.clear();
        piece.map(|mut piece| {
            piece.span.end = piece.span.start + piece.text.len();
            piece
        })
    }

    /// Forgets text of returned pieces, now and then, so that the buffer stays as large as the open piece.
    fn compact(&mut self) {
        let keep = self.start.unwrap_or(self.position);
        if keep > self.buffer.len() / 2 && keep > 0 {
            self.buffer.drain(..keep);
            self.base += keep;
            self.position -= keep;
            self.start = self.start.map(|start| start - keep);
            self.blanks.retain(|blank| blank.start >= keep);
            for blank in &mut self.blanks {
                *blank = Span::new(blank.start - keep, blank.end - keep);
            }
            match &mut self.state {
                State::String { start } | State::Identifier { start } | State::BlockComment { start } => {
                    *start -= keep;
                }
                State::Default | State::LineComment => {}
            }
            if let Block::Inside { start } = &mut self.block {
                *start -= keep;
            }
        }
    }
}

/// What looking at a token led to.
enum Step {
    /// Something was read.
    Went,
    /// A `;` that ends the piece was read (for prompts: a prompt was read).
    Ended,
    /// It cannot be told before more text comes.
    NeedsMore,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(script: &str) -> Vec<String> {
        split(script).into_iter().map(|piece| piece.text).collect()
    }

    #[test]
    fn several_statements_on_a_line_and_empty_ones() {
        assert_eq!(
            texts("SELECT 1; SELECT 2;;\n;-- c;\n/* d; */; SELECT 3"),
            ["SELECT 1;", "SELECT 2;", "SELECT 3"]
        );
    }

    #[test]
    fn semicolons_in_strings_identifiers_and_comments_do_not_count() {
        let script = "SELECT ';' , `;` -- ;\n /* ; */ /*+ OPTIONS('a'=';') */ , 'it''s;';";
        assert_eq!(texts(script), [script]);
    }

    #[test]
    fn a_piece_starts_with_its_comments_and_spans_are_bytes_of_the_script() {
        let script = "\u{feff}-- é\nSELECT 'ü';\r\n\r\nSELECT 2 ;";
        let pieces = split(script);
        assert_eq!(pieces.len(), 2);
        for piece in &pieces {
            assert_eq!(&script[piece.span.start..piece.span.end], piece.text);
        }
        assert!(pieces[0].text.starts_with("-- é"));
    }

    #[test]
    fn statement_set_blocks_are_one_piece() {
        for script in [
            "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT CASE WHEN x THEN 1 END FROM t; INSERT INTO b SELECT 1; END;",
            "EXPLAIN CHANGELOG_MODE STATEMENT SET BEGIN INSERT INTO a SELECT 1; END;",
            "COMPILE PLAN 'f' FOR STATEMENT SET BEGIN INSERT INTO a SELECT 1; END;",
            "execute /* c */ statement\nset begin insert into a select 1; end;",
        ] {
            assert_eq!(texts(script), [script]);
        }
        assert_eq!(texts("BEGIN STATEMENT SET; INSERT INTO a SELECT 1; END;").len(), 3);
        assert_eq!(texts("EXECUTE INSERT INTO a SELECT 1; SELECT 2;").len(), 2);
    }

    #[test]
    fn what_is_open_at_the_end_is_known_with_its_place() {
        let open = |script: &str| split(script).pop().unwrap().unfinished.unwrap();
        assert_eq!(open("SELECT 'a;"), Unfinished { kind: UnfinishedKind::String, start: 7 });
        assert_eq!(
            open("SELECT 1;\nSELECT `a"),
            Unfinished { kind: UnfinishedKind::QuotedIdentifier, start: 7 }
        );
        assert_eq!(open("/* a"), Unfinished { kind: UnfinishedKind::BlockComment, start: 0 });
        let set = open("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1;");
        assert_eq!(set.kind, UnfinishedKind::StatementSet);
        assert!(split("SELECT 1").pop().unwrap().unfinished.is_none());
    }

    #[test]
    fn pasted_prompts_become_blanks() {
        let script =
            "Flink SQL> SELECT a,\n> 'x\n>  y'\n> FROM t;\nFlink SQL> SELECT 1\n  > 2;\nSELECT 3\n> 2;";
        let pieces = split(script);
        assert_eq!(pieces[0].text, "SELECT a,\n  'x\n   y'\n  FROM t;");
        assert_eq!(pieces[1].text, "SELECT 1\n    2;");
        assert_eq!(pieces[2].text, "SELECT 3\n> 2;");
        assert_eq!(pieces[0].span, Span::new(11, 11 + pieces[0].text.len()));
        assert_eq!(texts("Lakehead SQL> SELECT 1;"), ["SELECT 1;"]);
        let commented = "-- Flink SQL\nFlink SQL> SET a = 1;\n/* b */\n  Flink SQL> SELECT 1,\n> 2;";
        let blank = |length: usize| " ".repeat(length);
        let expected = [
            format!("-- Flink SQL\n{} SET a = 1;", blank(10)),
            format!("/* b */\n  {} SELECT 1,\n  2;", blank(10)),
        ];
        assert_eq!(texts(commented), expected);
    }

    #[test]
    fn text_may_come_in_parts_of_any_size() {
        let script = "-- ü\nSELECT '/*', `--` - 1 /* x *//**/ -- y\n;\nFlink SQL> EXECUTE STATEMENT SET BEGIN\n> INSERT INTO é SELECT 1;\n> END;\nSELECT '";
        let whole = split(script);
        for size in 1..9 {
            let mut splitter = Splitter::new();
            let mut pieces = Vec::new();
            let characters: Vec<char> = script.chars().collect();
            for part in characters.chunks(size) {
                splitter.push(&part.iter().collect::<String>());
                pieces.extend(std::iter::from_fn(|| splitter.next_piece()));
            }
            pieces.extend(splitter.finish());
            assert_eq!(pieces, whole, "parts of {size}");
        }
    }

    #[test]
    fn many_statements_and_long_ones_take_linear_time() {
        let many = "INSERT INTO t VALUES (1, 'a;b'); -- c\n".repeat(100_000);
        assert_eq!(split(&many).len(), 100_000);
        let long = format!("SELECT '{}';", "line\n".repeat(400_000));
        let mut splitter = Splitter::new();
        for line in long.split_inclusive('\n') {
            splitter.push(line);
            splitter.next_piece();
        }
        assert!(!splitter.is_inside_statement());
    }
}
