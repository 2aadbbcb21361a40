//! Expressions of every kind.

use super::text::Text;

impl Text {
    pub(super) fn literal(&mut self) -> &mut Self {
        match self.pick(3) {
            0 => self.text(),
            1 => self
                .one_of(&["1", "1.5", "1E10", ".5", "1.5e-3", "NULL", "TRUE", "false", "UNKNOWN", "X'0aff'"]),
            _ => self.one_of(&[
                "DATE '2026-01-02'",
                "TIME '03:04:05'",
                "TIMESTAMP '2026-01-02 03:04:05'",
                "TIMESTAMP WITH LOCAL TIME ZONE '2026-01-02 03:04:05'",
                "TIMESTAMP_LTZ '2026-01-02 03:04:05'",
                "INTERVAL '1' DAYS",
                "INTERVAL -'1-2' YEAR(4) TO MONTH",
                "INTERVAL '1.5' SECOND(2, 3)",
                "INTERVAL '1 02:03:04' DAY TO SECOND(3)",
                "INTERVAL '1' QUARTER",
            ]),
        }
    }

    /// Adds an expression in brackets or without, of every kind.
    pub(super) fn expr(&mut self) -> &mut Self {
        self.deeper(4, "a", |text| match text.pick(16) {
            0..3 => {
                text.name();
            }
            3 => {
                text.object();
            }
            4 | 5 => {
                text.literal();
            }
            6 => {
                text.expr()
                    .one_of(&["+", "-", "*", "/", "%", "||", "=", "<>", "!=", "<", ">=", "AND", "OR"])
                    .expr();
            }
            7 => {
                text.one_of(&["-", "+", "NOT", "- -"]).expr();
            }
            8 => {
                text.push("(").expr().push(")");
            }
            9 => text.predicate(),
            10 | 11 => text.call(),
            12 => text.call_with_words(),
            13 => text.constructor(),
            14 => {
                text.push("CASE");
                if text.flag() {
                    text.expr();
                }
                text.push("WHEN").expr().push("THEN").expr();
                if text.flag() {
                    text.push("ELSE").expr();
                }
                text.push("END");
            }
            _ => text.subquery(),
        })
    }

    pub(super) fn predicate(&mut self) {
        self.push("(").expr().push(")");
        match self.pick(6) {
            0 => {
                self.push("IS").maybe("NOT").one_of(&[
                    "NULL",
                    "TRUE",
                    "FALSE",
                    "UNKNOWN",
                    "JSON",
                    "JSON OBJECT",
                    "JSON SCALAR",
                ]);
            }
            1 => {
                self.push("IS").maybe("NOT").push("DISTINCT FROM").expr();
            }
            2 => {
                self.maybe("NOT").push("IN").brackets(|text| {
                    text.expr();
                });
            }
            3 => {
                self.maybe("NOT").push("BETWEEN").one_of(&["", "SYMMETRIC", "ASYMMETRIC"]);
                self.push("(").expr().push(") AND (").expr().push(")");
            }
            4 => {
                self.maybe("NOT").one_of(&["LIKE", "SIMILAR TO", "ILIKE"]).text();
                self.maybe("ESCAPE '!'");
            }
            _ => {
                self.one_of(&["= ANY", "<> ALL", "> SOME"]).push("(").query().push(")");
            }
        }
    }

    pub(super) fn call(&mut self) {
        self.one_of(&[
            "f",
            "COUNT",
            "LEFT",
            "cat.db.f",
            "`my f`",
            "IF",
            "TIMESTAMPADD",
            "coalesce",
            "CURRENT_DATABASE",
        ]);
        match self.pick(6) {
            0 => {
                self.push("( )");
            }
            1 => {
                self.push("(*)");
            }
            2 => {
                self.push("(").one_of(&["DISTINCT", "ALL", ""]).expr().push(")");
            }
            3 => {
                self.brackets(|text| {
                    text.name().push("=>").expr();
                });
            }
            _ => {
                self.brackets(|text| {
                    text.expr();
                });
            }
        }
        match self.pick(8) {
            0 => {
                self.push("FILTER (WHERE").expr().push(")");
            }
            1 => {
                self.push("OVER w");
            }
            2 => {
                self.push("OVER").window();
            }
            3 => {
                self.push("IGNORE NULLS OVER").window();
            }
            4 => {
                self.push("WITHIN GROUP (ORDER BY").list(Self::order).push(")");
            }
            _ => {}
        }
    }

    pub(super) fn window(&mut self) {
        self.push("(").one_of(&["", "w2"]);
        if self.flag() {
            self.push("PARTITION BY").list(|text| {
                text.expr();
            });
        }
        if self.flag() {
            self.push("ORDER BY").list(Self::order);
        }
        self.one_of(&[
            "",
            "",
            "ROWS 2 PRECEDING",
            "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
            "RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND UNBOUNDED FOLLOWING",
        ]);
        self.push(")");
    }

    pub(super) fn order(&mut self) {
        self.expr().one_of(&["", "ASC", "DESC"]).one_of(&["", "NULLS FIRST", "NULLS LAST"]);
    }

    pub(super) fn call_with_words(&mut self) {
        match self.pick(9) {
            0 => {
                self.one_of(&["CAST(", "TRY_CAST("]).expr().push("AS");
                if self.flag() {
                    self.data_type();
                } else {
                    self.one_of(&[
                        "INTERVAL DAY(3) TO SECOND(3)",
                        "INTERVAL YEAR TO MONTH",
                        "INTERVAL SECOND(2)",
                        "INTERVAL HOUR",
                    ]);
                }
                self.push(")");
            }
            1 => {
                self.push("EXTRACT(")
                    .one_of(&["YEAR", "DOW", "EPOCH", "MILLISECOND"])
                    .push("FROM")
                    .expr()
                    .push(")");
            }
            2 => {
                // Without the inner brackets an interval would take `TO DAY` for its own.
                self.one_of(&["FLOOR((", "CEIL((", "CEILING(("])
                    .expr()
                    .one_of(&[")", ") TO DAY", ") TO WEEK"])
                    .push(")");
            }
            3 => {
                self.push("POSITION('a' IN").expr().push(")");
            }
            4 => {
                self.push("SUBSTRING(").expr().one_of(&[", 2", "FROM 2", "FROM 2 FOR 3"]).push(")");
            }
            5 => {
                self.push("TRIM(")
                    .one_of(&["", "BOTH FROM", "LEADING 'x' FROM", "'x' FROM"])
                    .expr()
                    .push(")");
            }
            6 => {
                self.push("OVERLAY(").expr().push("PLACING 'x' FROM 1").one_of(&["", "FOR 2"]).push(")");
            }
            7 => {
                self.one_of(&["JSON_VALUE(", "JSON_QUERY("]);
                let is_value = self.out.ends_with("VALUE(");
                self.expr().push(", '$.a'");
                if is_value {
                    self.one_of(&["", "RETURNING INT"]).one_of(&[
                        "",
                        "DEFAULT 1 + 1 ON EMPTY",
                        "ERROR ON ERROR",
                    ]);
                } else {
                    self.one_of(&["", "WITH WRAPPER", "WITHOUT ARRAY WRAPPER"])
                        .one_of(&["", "EMPTY OBJECT ON ERROR"]);
                }
                self.push(")");
            }
            _ => {
                self.one_of(&["JSON_OBJECT(KEY 'a' VALUE", "JSON_ARRAY(", "JSON_OBJECT('a' :"]).expr();
                self.one_of(&["", "NULL ON NULL", "ABSENT ON NULL"]).push(")");
            }
        }
    }

    pub(super) fn constructor(&mut self) {
        match self.pick(5) {
            0 => {
                self.push("ARRAY [").list(|text| {
                    text.expr();
                });
                self.push("]");
            }
            1 => {
                self.push("MAP['k',").expr().push("]");
            }
            2 => {
                self.push("ROW").brackets(|text| {
                    text.expr();
                });
            }
            3 => {
                self.brackets(|text| {
                    text.expr();
                });
            }
            _ => {
                self.push("(").expr().push(")").one_of(&[".f", "[1]", "['k'].`g h`", ".f[2].h"]);
            }
        }
    }

    pub(super) fn subquery(&mut self) {
        match self.pick(3) {
            0 => {
                self.push("(").query().push(")");
            }
            1 => {
                self.push("EXISTS (").query().push(")");
            }
            _ => {
                self.push("a").maybe("NOT").push("IN (").query().push(")");
            }
        }
    }
}
