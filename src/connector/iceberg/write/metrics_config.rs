//! Which figures of a column the manifests hold: the properties `write.metadata.metrics.*`.

use std::collections::BTreeMap;

use iceberg::spec::{Schema, SortOrder};

use super::write_settings::Properties;
use crate::error::{Error, Result};

const DEFAULT: &str = "write.metadata.metrics.default";
const COLUMN_PREFIX: &str = "write.metadata.metrics.column.";
const MAX_INFERRED: &str = "write.metadata.metrics.max-inferred-column-defaults";

/// How much is kept of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetricsMode {
    /// Its size only.
    Nothing,
    /// Counts of values, NULLs and NaNs.
    Counts,
    /// Counts, and bounds of at most this many characters or bytes.
    Truncate(usize),
    /// Counts and whole bounds.
    Full,
}

impl MetricsMode {
    /// What columns have unless a property says otherwise.
    const USUAL: MetricsMode = MetricsMode::Truncate(16);

    fn parse(key: &str, text: &str) -> Result<MetricsMode> {
        let word = text.trim().to_ascii_lowercase();
        let length = word.strip_prefix("truncate(").and_then(|rest| rest.strip_suffix(')'));
        match (word.as_str(), length.map(|length| length.trim().parse::<usize>())) {
            ("none", _) => Ok(MetricsMode::Nothing),
            ("counts", _) => Ok(MetricsMode::Counts),
            ("full", _) => Ok(MetricsMode::Full),
            (_, Some(Ok(length))) if length > 0 => Ok(MetricsMode::Truncate(length)),
            _ => Err(Error::validation(format!("'{text}' is no value of the table property '{key}'"))
                .hint("It takes none, counts, truncate(n) or full.")),
        }
    }
}

/// The modes of a table's columns.
#[derive(Debug, Clone)]
pub(super) struct MetricsConfig {
    given_default: Option<MetricsMode>,
    columns: BTreeMap<String, MetricsMode>,
    inferred_max: usize,
}

impl MetricsConfig {
    /// Reads the properties.
    ///
    /// # Errors
    /// A value is no mode.
    pub(super) fn new(properties: &Properties) -> Result<MetricsConfig> {
        let given = properties.get(DEFAULT);
        let given_default = given.map(|text| MetricsMode::parse(DEFAULT, text)).transpose()?;
        let mode = |(key, text): (&str, &str)| {
            let name = key.strip_prefix(COLUMN_PREFIX).unwrap_or(key).to_owned();
            Ok((name, MetricsMode::parse(key, text)?))
        };
        let columns = properties.with_prefix(COLUMN_PREFIX).map(mode).collect::<Result<_>>()?;
        Ok(MetricsConfig { given_default, columns, inferred_max: properties.number(MAX_INFERRED, 100)? })
    }

    /// Returns the mode of a column: the nth of the table, by its full name.
    pub(super) fn mode(&self, schema: &Schema, order: &SortOrder, id: i32, nth: usize) -> MetricsMode {
        let name = schema.name_by_field_id(id).unwrap_or_default();
        if let Some(mode) = self.columns.get(name) {
            return *mode;
        }
        let usual = match self.given_default {
            Some(mode) => mode,
            // Limit: a table of very many columns would have manifests larger than its files.
            None if nth >= self.inferred_max => MetricsMode::Nothing,
            None => MetricsMode::USUAL,
        };
        let is_sorted_by = order.fields.iter().any(|field| field.source_id == id);
        match usual {
            MetricsMode::Nothing | MetricsMode::Counts if is_sorted_by => MetricsMode::USUAL,
            mode => mode,
        }
    }

    /// Returns the mode that keeps whole bounds of every column.
    pub(super) fn full() -> MetricsConfig {
        MetricsConfig {
            given_default: Some(MetricsMode::Full),
            columns: BTreeMap::new(),
            inferred_max: usize::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iceberg::spec::{NestedField, NullOrder, PrimitiveType, SortDirection, SortField, Transform, Type};
    use std::sync::Arc;

    fn schema() -> Schema {
        let field = |id, name: &str| NestedField::optional(id, name, Type::Primitive(PrimitiveType::Int));
        let fields = [field(1, "a"), field(2, "b"), field(3, "c")];
        Schema::builder().with_fields(fields.map(Arc::new)).build().unwrap()
    }

    fn modes(properties: &[(&str, &str)]) -> Vec<MetricsMode> {
        let config = MetricsConfig::new(&Properties::of(properties)).unwrap();
        let by_c = SortField::builder()
            .source_id(3)
            .transform(Transform::Identity)
            .direction(SortDirection::Ascending)
            .null_order(NullOrder::First);
        let order = SortOrder::builder().with_sort_field(by_c.build()).build_unbound().unwrap();
        (1..=3).map(|id| config.mode(&schema(), &order, id, id as usize - 1)).collect()
    }

    #[test]
    fn columns_have_their_own_mode_or_the_default() {
        use MetricsMode::{Counts, Full, Nothing, Truncate};
        assert_eq!(modes(&[]), [Truncate(16); 3]);
        assert_eq!(modes(&[(DEFAULT, "Full")]), [Full; 3]);
        assert_eq!(
            modes(&[
                ("write.metadata.metrics.column.a", "none"),
                ("write.metadata.metrics.column.b", "truncate( 7 )")
            ]),
            [Nothing, Truncate(7), Truncate(16)]
        );
        assert_eq!(modes(&[(DEFAULT, "counts")]), [Counts, Counts, Truncate(16)], "sorted by c");
        assert_eq!(modes(&[(MAX_INFERRED, "1")]), [Truncate(16), Nothing, Truncate(16)]);
    }

    #[test]
    fn what_is_no_mode_is_refused_by_name() {
        for text in ["", "some", "truncate(0)", "truncate(x)"] {
            let error = MetricsConfig::new(&Properties::of(&[(DEFAULT, text)])).unwrap_err();
            assert_eq!(
                error.message(),
                format!("'{text}' is no value of the table property 'write.metadata.metrics.default'")
            );
        }
    }
}
