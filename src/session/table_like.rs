//! `CREATE TABLE … LIKE`: what is taken over from the base table, what may be said again, and Flink's errors for both.

use std::collections::BTreeMap;

use crate::catalog::{CatalogTable, Distribution};
use crate::error::{Error, FlinkClass, Result};
use crate::schema::{Column, ColumnKind, TableSchema};
use crate::sql::{LikeFeature, MergingStrategy};

/// What is done with each part of the base table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Merging {
    constraints: MergingStrategy,
    distribution: MergingStrategy,
    generated: MergingStrategy,
    metadata: MergingStrategy,
    options: MergingStrategy,
    partitions: MergingStrategy,
    watermarks: MergingStrategy,
}

impl Merging {
    /// Reads the brackets behind LIKE. Without any, everything is included and options may be said again.
    pub(super) fn of(like: &[(MergingStrategy, LikeFeature)]) -> Result<Merging> {
        for (index, (strategy, feature)) in like.iter().enumerate() {
            let is_free = matches!(
                feature,
                LikeFeature::Generated
                    | LikeFeature::Metadata
                    | LikeFeature::Options
                    | LikeFeature::Watermarks
            );
            if *strategy == MergingStrategy::Overwriting && !is_free {
                let name = format!("{feature:?}").to_uppercase();
                return Err(refused(format!("Illegal merging strategy 'OVERWRITING' for '{name}' option.")));
            }
            if like[..index].iter().any(|(_, earlier)| earlier == feature) {
                return Err(refused("Each like option feature can be declared only once.".to_owned()));
            }
        }
        let said = |feature| like.iter().find(|(_, other)| *other == feature).map(|(strategy, _)| *strategy);
        let all = said(LikeFeature::All);
        let strategy = |feature| said(feature).or(all).unwrap_or(MergingStrategy::Including);
        Ok(Merging {
            constraints: strategy(LikeFeature::Constraints),
            distribution: strategy(LikeFeature::Distribution),
            generated: strategy(LikeFeature::Generated),
            metadata: strategy(LikeFeature::Metadata),
            options: said(LikeFeature::Options).or(all).unwrap_or(MergingStrategy::Overwriting),
            partitions: strategy(LikeFeature::Partitions),
            watermarks: strategy(LikeFeature::Watermarks),
        })
    }

    /// Returns what the new table has of the base table's schema before its own elements come.
    pub(super) fn base_schema(&self, base: &TableSchema) -> TableSchema {
        let is_kept = |column: &&Column| match column.kind {
            ColumnKind::Physical => true,
            ColumnKind::Metadata { .. } => self.metadata != MergingStrategy::Excluding,
            ColumnKind::Computed { .. } => self.generated != MergingStrategy::Excluding,
        };
        let keeps = |strategy: MergingStrategy| strategy != MergingStrategy::Excluding;
        TableSchema {
            columns: base.columns.iter().filter(is_kept).cloned().collect(),
            primary_key: base.primary_key.clone().filter(|_| keeps(self.constraints)),
            watermark: base.watermark.clone().filter(|_| keeps(self.watermarks)),
        }
    }

    /// Checks that a generated or metadata column of the base table may be said again.
    pub(super) fn check_column(&self, base: &Column, new: &ColumnKind) -> Result<()> {
        let name = &base.name;
        let (strategy, kind, feature) = match (&base.kind, new) {
            (ColumnKind::Computed { .. }, ColumnKind::Computed { .. }) => {
                (self.generated, "generated", "GENERATED")
            }
            (ColumnKind::Metadata { .. }, ColumnKind::Metadata { .. }) => {
                (self.metadata, "metadata", "METADATA")
            }
            _ => {
                return Err(Error::validation(format!(
                    "A column named '{name}' already exists in the base table."
                )));
            }
        };
        if strategy == MergingStrategy::Overwriting {
            return Ok(());
        }
        Err(Error::validation(format!(
            "A {kind} column named '{name}' already exists in the base table. You might want to specify EXCLUDING {feature} or OVERWRITING {feature}."
        )))
    }

    /// Checks that the watermark of the base table may be said again.
    pub(super) fn check_watermark(&self, column: &str) -> Result<()> {
        if self.watermarks == MergingStrategy::Overwriting {
            return Ok(());
        }
        Err(Error::validation(format!(
            "There already exists a watermark spec for column '{column}' in the base table. You might want to specify EXCLUDING WATERMARKS or OVERWRITING WATERMARKS."
        )))
    }

    /// Merges the options.
    pub(super) fn options(
        &self,
        base: &CatalogTable,
        new: BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>> {
        if self.options == MergingStrategy::Excluding {
            return Ok(new);
        }
        let mut merged = base.options.clone();
        for (key, value) in new {
            if self.options != MergingStrategy::Overwriting && merged.contains_key(&key) {
                let shown = crate::error::redact_value(&key, &value);
                return Err(Error::validation(format!(
                    "There already exists an option ['{key}' -> '{shown}']  in the base table. You might want to specify EXCLUDING OPTIONS or OVERWRITING OPTIONS."
                )));
            }
            merged.insert(key, value);
        }
        Ok(merged)
    }

    /// Merges PARTITIONED BY.
    pub(super) fn partition_keys(&self, base: &CatalogTable, new: Vec<String>) -> Result<Vec<String>> {
        if self.partitions == MergingStrategy::Excluding || base.partition_keys.is_empty() {
            return Ok(new);
        }
        if new.is_empty() {
            return Ok(base.partition_keys.clone());
        }
        Err(Error::validation(
            "The base table already has partitions defined. You might want to specify EXCLUDING PARTITIONS.",
        ))
    }

    /// Merges DISTRIBUTED.
    pub(super) fn distribution(
        &self,
        base: &CatalogTable,
        new: Option<Distribution>,
    ) -> Result<Option<Distribution>> {
        match (&base.distribution, new) {
            (Some(_), Some(_)) if self.distribution != MergingStrategy::Excluding => Err(Error::validation(
                "The base table already has a distribution defined. You might want to specify EXCLUDING DISTRIBUTION.",
            )),
            (Some(base), None) if self.distribution != MergingStrategy::Excluding => Ok(Some(base.clone())),
            (_, new) => Ok(new),
        }
    }
}

/// Builds the error for brackets that contradict themselves.
fn refused(message: String) -> Error {
    Error::validation(message).class(FlinkClass::PARSER_VALIDATE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use MergingStrategy::{Excluding, Including, Overwriting};

    #[test]
    fn all_sets_the_base_and_others_refine_it() {
        let merging =
            Merging::of(&[(Excluding, LikeFeature::All), (Including, LikeFeature::Constraints)]).unwrap();
        assert_eq!(
            (merging.constraints, merging.options, merging.watermarks),
            (Including, Excluding, Excluding)
        );
        let merging = Merging::of(&[]).unwrap();
        assert_eq!((merging.options, merging.generated), (Overwriting, Including));
    }

    #[test]
    fn contradictions_are_refused() {
        let error = Merging::of(&[(Overwriting, LikeFeature::Constraints)]).unwrap_err();
        assert_eq!(error.message(), "Illegal merging strategy 'OVERWRITING' for 'CONSTRAINTS' option.");
        assert!(
            Merging::of(&[(Including, LikeFeature::Options), (Excluding, LikeFeature::Options)]).is_err()
        );
    }
}
