//! A statement's text that grows by choices: blanks, names, texts, lists and types.

/// A statement's text that grows by choices.
pub(super) struct Text {
    pub(super) choices: Vec<u8>,
    pub(super) next: usize,
    pub(super) depth: u32,
    pub(super) out: String,
}

impl Text {
    /// Chooses one of `count`; the first when nothing is left to choose with.
    pub(super) fn pick(&mut self, count: usize) -> usize {
        let choice = self.choices.get(self.next).copied().unwrap_or(0);
        self.next += 1;
        usize::from(choice) % count
    }

    pub(super) fn flag(&mut self) -> bool {
        self.pick(2) == 1
    }

    /// Adds words with a blank, a line break or a comment in front.
    pub(super) fn push(&mut self, words: &str) -> &mut Self {
        let blank = match self.out.len() % 29 {
            3 => "\n",
            11 => " /* c; ' */ ",
            17 => " -- c `\n",
            _ => " ",
        };
        self.out.push_str(blank);
        self.out.push_str(words);
        self
    }

    /// Adds words or nothing.
    pub(super) fn maybe(&mut self, words: &str) -> &mut Self {
        if self.flag() {
            self.push(words);
        }
        self
    }

    /// Adds one of these.
    pub(super) fn one_of(&mut self, words: &[&str]) -> &mut Self {
        let index = self.pick(words.len());
        self.push(words[index])
    }

    /// Adds one to three items with commas.
    pub(super) fn list(&mut self, mut item: impl FnMut(&mut Self)) -> &mut Self {
        item(self);
        for _ in 0..self.pick(3) {
            self.push(",");
            item(self);
        }
        self
    }

    pub(super) fn brackets(&mut self, item: impl FnMut(&mut Self)) -> &mut Self {
        self.push("(").list(item).push(")")
    }

    pub(super) fn name(&mut self) -> &mut Self {
        self.one_of(&[
            "a",
            "Orders_1",
            "`b c`",
            "`x``y`",
            "é",
            "`日本`",
            "`$rowtime`",
            "value",
            "`order`",
            "`a.b`",
            "c$d",
            "timestamp",
        ])
    }

    pub(super) fn object(&mut self) -> &mut Self {
        self.name();
        for _ in 0..self.pick(3) {
            self.push(".").name();
        }
        self
    }

    pub(super) fn text(&mut self) -> &mut Self {
        self.one_of(&[
            "'a'",
            "''",
            "'it''s'",
            "'''x'''",
            "'a\nb'",
            "'é;--'",
            r"'\'",
            "U&'\\00e9'",
            "'/* */'",
            "'`'",
        ])
    }

    /// Adds a key, which may stand only once in a list, and its value.
    pub(super) fn option(&mut self) {
        let key = self.next;
        let form = ["'k", "'it''s ", "U&'\\00e9", "'a\nb"][self.pick(4)];
        self.push(&format!("{form}{key}'")).push("=").text();
    }

    pub(super) fn options(&mut self) -> &mut Self {
        if self.pick(8) == 7 { self.push("( )") } else { self.brackets(Self::option) }
    }

    pub(super) fn with(&mut self) -> &mut Self {
        if self.flag() {
            self.push("WITH").options();
        }
        self
    }

    pub(super) fn comment(&mut self) -> &mut Self {
        if self.flag() {
            self.push("COMMENT").text();
        }
        self
    }

    pub(super) fn names(&mut self) -> &mut Self {
        self.brackets(|text| {
            text.name();
        })
    }

    /// Runs something one level deeper, or adds the short form when it is deep enough.
    pub(super) fn deeper(&mut self, limit: u32, short: &str, item: impl FnOnce(&mut Self)) -> &mut Self {
        if self.depth >= limit {
            return self.push(short);
        }
        self.depth += 1;
        item(self);
        self.depth -= 1;
        self
    }

    pub(super) fn data_type(&mut self) -> &mut Self {
        self.deeper(3, "INT", |text| {
            match text.pick(8) {
                0..4 => {
                    text.one_of(&[
                        "INT",
                        "INTEGER",
                        "BIGINT",
                        "smallint",
                        "TINYINT",
                        "FLOAT",
                        "REAL",
                        "DOUBLE PRECISION",
                        "BOOLEAN",
                        "STRING",
                        "BYTES",
                        "CHAR(3)",
                        "CHARACTER VARYING(4)",
                        "VARCHAR",
                        "BINARY(2)",
                        "VARBINARY(5)",
                        "DEC",
                        "DECIMAL(10)",
                        "NUMERIC(10, 2)",
                        "DATE",
                        "TIME(3)",
                        "TIMESTAMP",
                        "TIMESTAMP(10)",
                        "TIMESTAMP_LTZ(3)",
                        "TIMESTAMP(3) WITH LOCAL TIME ZONE",
                        "TIMESTAMP WITHOUT TIME ZONE",
                        "INT ARRAY",
                        "STRING MULTISET",
                    ]);
                }
                4 => {
                    text.push("ARRAY<").data_type().push(">");
                }
                5 => {
                    text.push("MAP<").data_type().push(",").data_type().push(">");
                }
                6 => {
                    text.push("MULTISET<").data_type().push(">");
                }
                _ => {
                    let (open, close) = if text.flag() { ("ROW<", ">") } else { ("ROW(", ")") };
                    text.push(open).list(|text| {
                        text.name().data_type();
                        if text.pick(4) == 3 {
                            text.push("'note'");
                        }
                    });
                    text.push(close);
                }
            }
            text.one_of(&["", "", "NULL", "NOT NULL"]);
        })
    }
}
