//! Partitions: their keys and values, the transforms of Iceberg, and Iceberg's branches and tags.

use sqlparser::tokenizer::Token;

use super::super::{CreateRef, PartitionField, PartitionSpec, RefKind, Replace, WriteOrder};
use super::cursor::Parser;
use crate::error::{Error, Result};

/// The transforms without a number, each in the plural that Iceberg's tables show.
const TIME_TRANSFORMS: [(&str, &str); 10] = [
    ("YEARS", "years"),
    ("YEAR", "years"),
    ("MONTHS", "months"),
    ("MONTH", "months"),
    ("DAYS", "days"),
    ("DAY", "days"),
    ("DATE", "days"),
    ("HOURS", "hours"),
    ("HOUR", "hours"),
    ("DATE_HOUR", "hours"),
];

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

impl Parser<'_> {
    /// Takes `(key = value, key, …)`.
    pub(super) fn partition_spec(&mut self) -> Result<PartitionSpec> {
        self.bracketed_list(|parser| {
            let key = parser.name()?;
            let value =
                if parser.accept_sign(&Token::Eq) { Some(parser.spanned_expression()?) } else { None };
            Ok((key, value))
        })
    }

    /// Takes a column or a transform of one.
    pub(super) fn partition_field(&mut self) -> Result<PartitionField> {
        if self.peek_at(1) != Some(&Token::LParen) {
            return Ok(PartitionField {
                transform: None,
                parameter: None,
                column: self.name()?,
                alias: None,
            });
        }
        if let Some(number) = ["BUCKET", "TRUNCATE"].iter().position(|transform| self.at(transform)) {
            self.advance();
            self.expect_sign(&Token::LParen)?;
            // Spark writes bucket(16, id), and takes truncate(s, 4) as well.
            let (parameter, column) = if matches!(self.peek(), Some(Token::Number(..))) {
                let parameter = self.unsigned()?;
                self.expect_sign(&Token::Comma)?;
                (parameter, self.name()?)
            } else {
                let column = self.name()?;
                self.expect_sign(&Token::Comma)?;
                (self.unsigned()?, column)
            };
            self.expect_sign(&Token::RParen)?;
            let transform = Some(["bucket", "truncate"][number].to_owned());
            return Ok(PartitionField { transform, parameter: Some(parameter), column, alias: None });
        }
        let Some((_, transform)) = TIME_TRANSFORMS.iter().find(|(word, _)| self.at(word)) else {
            let known =
                "Transforms are bucket(n, c), truncate(n, c), years(c), months(c), days(c) and hours(c).";
            return Err(self.unexpected().hint(known));
        };
        self.advance();
        self.expect_sign(&Token::LParen)?;
        let column = self.name()?;
        self.expect_sign(&Token::RParen)?;
        Ok(PartitionField { transform: Some((*transform).to_owned()), parameter: None, column, alias: None })
    }

    /// Takes a partition field that may have a name.
    pub(super) fn named_partition_field(&mut self) -> Result<PartitionField> {
        let mut field = self.partition_field()?;
        if self.accept("AS") {
            field.alias = Some(self.name()?.value);
        }
        Ok(field)
    }

    /// Takes one column of `WRITE ORDERED BY`.
    pub(super) fn write_order(&mut self) -> Result<WriteOrder> {
        let field = self.partition_field()?;
        let descending = self.accept_any(&["ASC", "DESC"]) == Some(1);
        let nulls_first =
            if self.accept("NULLS") { Some(self.expect_any(&["FIRST", "LAST"])? == 0) } else { None };
        Ok(WriteOrder { field, descending, nulls_first })
    }

    /// Returns whether a branch or a tag is next.
    pub(super) fn at_ref(&self, ahead: usize) -> bool {
        self.at_ahead(ahead, "BRANCH") || self.at_ahead(ahead, "TAG")
    }

    /// Takes BRANCH or TAG.
    pub(super) fn ref_kind(&mut self) -> Result<RefKind> {
        Ok(if self.expect_any(&["BRANCH", "TAG"])? == 0 { RefKind::Branch } else { RefKind::Tag })
    }

    /// Takes what follows CREATE, CREATE OR REPLACE or REPLACE for a branch or tag.
    pub(super) fn create_ref(&mut self, replace: Option<Replace>) -> Result<CreateRef> {
        let kind = self.ref_kind()?;
        let if_not_exists = self.if_not_exists();
        let name = self.name()?;
        let snapshot = if self.accept_all(&["AS", "OF"]) {
            self.expect("VERSION")?;
            Some(self.unsigned()?)
        } else {
            None
        };
        let retain_ms = if self.accept("RETAIN") { Some(self.retention()?) } else { None };
        let (mut min_snapshots, mut snapshot_age_ms) = (None, None);
        if kind == RefKind::Branch && self.accept("WITH") {
            self.expect_all(&["SNAPSHOT", "RETENTION"])?;
            if self.at_ahead(1, "SNAPSHOTS") {
                min_snapshots = Some(self.unsigned()?);
                self.expect("SNAPSHOTS")?;
            }
            if min_snapshots.is_none() || matches!(self.peek(), Some(Token::Number(..))) {
                snapshot_age_ms = Some(self.retention()?);
            }
        }
        Ok(CreateRef {
            kind,
            name,
            if_not_exists,
            replace,
            snapshot,
            retain_ms,
            min_snapshots,
            snapshot_age_ms,
        })
    }

    /// Takes `n {DAYS | HOURS | MINUTES}` as milliseconds.
    fn retention(&mut self) -> Result<i64> {
        let start = self.span();
        let number: i64 = self.unsigned()?;
        let unit = self.expect_any(&["DAYS", "HOURS", "MINUTES", "DAY", "HOUR", "MINUTE"])?;
        number
            .checked_mul([DAY_MS, HOUR_MS, MINUTE_MS][unit % 3])
            .ok_or_else(|| Error::validation("the time to retain is too long").at(self.span_from(start)))
    }
}

/// Returns the text of a time that `retention` took.
pub(in super::super) fn retention_text(milliseconds: i64) -> String {
    if milliseconds % DAY_MS == 0 {
        format!("{} DAYS", milliseconds / DAY_MS)
    } else if milliseconds % HOUR_MS == 0 {
        format!("{} HOURS", milliseconds / HOUR_MS)
    } else {
        format!("{} MINUTES", milliseconds / MINUTE_MS)
    }
}
