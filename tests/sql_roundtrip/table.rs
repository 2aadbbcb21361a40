//! The parts of statements about tables, and INSERT.

use super::text::Text;

impl Text {
    pub(super) fn partition_field(&mut self) {
        match self.pick(4) {
            0 => {
                self.push("bucket(16,").name().push(")");
            }
            1 => {
                self.push("truncate(").name().push(", 4)");
            }
            2 => {
                self.one_of(&["days(", "year(", "HOURS("]).name().push(")");
            }
            _ => {
                self.name();
            }
        }
    }

    pub(super) fn key(&mut self) {
        if self.flag() {
            self.push("CONSTRAINT").name();
        }
        self.push("PRIMARY KEY");
    }

    pub(super) fn column(&mut self) {
        self.name();
        match self.pick(4) {
            0 => {
                self.push("AS").expr();
            }
            1 => {
                self.data_type().push("METADATA").one_of(&["", "FROM 'timestamp'"]).maybe("VIRTUAL");
            }
            _ => {
                self.data_type();
            }
        }
        self.comment();
    }

    pub(super) fn table_elements(&mut self) {
        self.push("(").list(Self::column);
        if self.flag() {
            self.push(", WATERMARK FOR").name().push("AS").expr();
        }
        match self.pick(3) {
            0 => {
                self.push(",").key();
                self.names().push("NOT ENFORCED");
            }
            1 => {
                self.push(",").name().push("INT").key();
                self.push("NOT ENFORCED").comment();
            }
            _ => {}
        }
        self.push(")");
    }

    pub(super) fn table_clauses(&mut self) {
        self.comment();
        match self.pick(3) {
            0 => {
                self.push("DISTRIBUTED BY")
                    .one_of(&["", "HASH", "RANGE"])
                    .names()
                    .one_of(&["", "INTO 4 BUCKETS"]);
            }
            1 => {
                self.push("DISTRIBUTED INTO 4 BUCKETS");
            }
            _ => {}
        }
        if self.flag() {
            self.push("PARTITIONED BY").brackets(Self::partition_field);
        }
        self.with();
    }

    pub(super) fn like(&mut self) {
        if self.flag() {
            self.maybe("NOT").one_of(&["LIKE", "ILIKE"]).text();
        }
    }

    pub(super) fn partition(&mut self) -> &mut Self {
        self.push("PARTITION").brackets(|text| {
            text.name();
            if text.flag() {
                text.push("=").literal();
            }
        })
    }

    pub(super) fn insert(&mut self) {
        self.push("INSERT").one_of(&["INTO", "OVERWRITE"]).object().maybe("/*+ OPTIONS('k' = 'v') */");
        if self.flag() {
            self.push("PARTITION").brackets(|text| {
                text.name().push("=").literal();
            });
        }
        if self.flag() {
            self.names();
        }
        self.query().one_of(&[
            "",
            "",
            "ON CONFLICT DO ERROR",
            "ON CONFLICT DO NOTHING",
            "ON CONFLICT DO DEDUPLICATE",
        ]);
    }
}
