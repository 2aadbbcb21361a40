//! Queries and what stands behind FROM.

use super::text::Text;

impl Text {
    pub(super) fn query(&mut self) -> &mut Self {
        self.deeper(3, "SELECT 1", |text| {
            if text.pick(6) == 5 {
                text.push("WITH q AS (").query().push("),").name().names().push("AS (").query().push(")");
            }
            text.query_body();
            for _ in 0..text.pick(3).saturating_sub(1) {
                text.one_of(&["UNION ALL", "UNION", "INTERSECT", "EXCEPT DISTINCT"]).query_body();
            }
            if text.pick(4) == 3 {
                text.push("ORDER BY").list(Self::order);
            }
            text.one_of(&[
                "",
                "",
                "",
                "LIMIT 5",
                "LIMIT ALL",
                "OFFSET 2 ROWS",
                "LIMIT 1 OFFSET 2",
                "FETCH FIRST ROW ONLY",
                "OFFSET 1 FETCH NEXT 3 ROWS ONLY",
            ]);
        })
    }

    pub(super) fn query_body(&mut self) {
        match self.pick(8) {
            0 => {
                self.push("VALUES").list(|text| match text.pick(3) {
                    0 => {
                        text.expr();
                    }
                    1 => {
                        text.push("ROW").brackets(|text| {
                            text.expr();
                        });
                    }
                    _ => {
                        text.brackets(|text| {
                            text.expr();
                        });
                    }
                });
            }
            1 => {
                self.push("(").query().push(")");
            }
            2 => {
                self.push("TABLE").object();
            }
            _ => self.select(),
        }
    }

    pub(super) fn select(&mut self) {
        self.push("SELECT")
            .one_of(&["", "", "/*+ BROADCAST(a, b), STATE_TTL('a' = '1 d') */"])
            .one_of(&["", "DISTINCT", "ALL"]);
        self.list(|text| match text.pick(6) {
            0 => {
                text.push("*");
            }
            1 => {
                text.object().push(".*");
            }
            2 => {
                text.expr().push("AS").name();
            }
            _ => {
                text.expr();
            }
        });
        if self.flag() {
            return;
        }
        self.push("FROM").list(|text| {
            text.table();
        });
        if self.flag() {
            self.push("WHERE").expr();
        }
        match self.pick(6) {
            0 => {
                self.push("GROUP BY").list(|text| {
                    text.expr();
                });
            }
            1 => {
                self.push("GROUP BY").one_of(&["CUBE", "ROLLUP", "GROUPING SETS"]).brackets(
                    |text| match text.pick(3) {
                        0 => {
                            text.push("( )");
                        }
                        1 => {
                            text.names();
                        }
                        _ => {
                            text.name();
                        }
                    },
                );
            }
            _ => {}
        }
        if self.pick(4) == 3 {
            self.push("HAVING").expr();
        }
        if self.pick(6) == 5 {
            self.push("WINDOW w AS").window();
        }
        if self.pick(6) == 5 {
            self.push("QUALIFY").expr();
        }
    }

    pub(super) fn table(&mut self) -> &mut Self {
        self.table_factor();
        for _ in 0..self.pick(3).saturating_sub(1) {
            match self.pick(4) {
                0 => {
                    self.push("CROSS JOIN").table_factor();
                }
                1 => {
                    self.push("NATURAL").one_of(&["", "LEFT"]).push("JOIN").table_factor();
                }
                2 => {
                    self.one_of(&["", "INNER", "LEFT OUTER"]).push("JOIN").table_factor();
                    self.push("USING").names();
                }
                _ => {
                    self.one_of(&["", "LEFT", "RIGHT OUTER", "FULL"]).push("JOIN").table_factor();
                    self.push("ON").expr();
                }
            }
        }
        self
    }

    pub(super) fn table_factor(&mut self) {
        match self.pick(8) {
            0 => {
                self.one_of(&["", "LATERAL"]).push("(").query().push(")");
            }
            1 => {
                self.one_of(&["TABLE(TUMBLE(", "LATERAL TABLE(split("]);
                self.one_of(&["TABLE", "DATA => TABLE"]).object();
                self.one_of(&["", "PARTITION BY a", "PARTITION BY (a, b) ORDER BY (c DESC)"]);
                self.push(", DESCRIPTOR(ts), INTERVAL '1' MINUTE))");
            }
            2 => {
                self.push("f").brackets(|text| {
                    text.expr();
                });
            }
            3 => {
                self.push("UNNEST(").expr().push(")").maybe("WITH ORDINALITY");
            }
            4 => {
                self.deeper(3, "t", |text| {
                    text.push("(").table().push(")");
                });
            }
            5 => {
                self.object().push("FOR SYSTEM_TIME AS OF a.proc");
            }
            6 => {
                self.object().push(
                    "MATCH_RECOGNIZE (PARTITION BY a ORDER BY ts MEASURES A.x AS n ONE ROW PER MATCH \
                     AFTER MATCH SKIP PAST LAST ROW PATTERN (A B+ C{2,3} D?) DEFINE A AS A.x > 1)",
                );
            }
            _ => {
                self.object().maybe("/*+ OPTIONS('k' = 'it''s') */");
            }
        }
        match self.pick(3) {
            0 => {
                self.push("AS").name();
            }
            1 => {
                self.push("t9").names();
            }
            _ => {}
        }
    }
}
