//! LISTAGG: texts in the order of arrival with a separator between them; NULLs are left out.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};

use super::groups::{Groups, Rows};
use crate::error::{Error, Result};

/// The joined texts of groups; None before the first.
#[derive(Debug)]
pub(super) struct ListAgg {
    separator: String,
    texts: Vec<Option<String>>,
}

impl ListAgg {
    pub(super) fn new(separator: String) -> ListAgg {
        ListAgg { separator, texts: Vec::new() }
    }
}

impl Groups for ListAgg {
    fn grow(&mut self, group_count: usize) {
        self.texts.resize(group_count.max(self.texts.len()), None);
    }

    fn count(&self) -> usize {
        self.texts.len()
    }

    fn update(&mut self, values: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        let texts = values
            .first()
            .and_then(|column| column.as_string_opt::<i32>())
            .ok_or_else(|| Error::internal("LISTAGG takes text"))?;
        for (row, group) in rows.iter() {
            if texts.is_null(row) {
                continue;
            }
            match &mut self.texts[group] {
                Some(joined) => {
                    joined.push_str(&self.separator);
                    joined.push_str(texts.value(row));
                }
                empty => *empty = Some(texts.value(row).to_owned()),
            }
        }
        Ok(())
    }

    fn merge(&mut self, states: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        self.update(states, rows)
    }

    fn results(&self, groups: Range<usize>) -> Result<ArrayRef> {
        Ok(Arc::new(self.texts[groups].iter().map(Option::as_deref).collect::<StringArray>()))
    }

    fn states(&self, groups: Range<usize>) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.results(groups)?])
    }

    fn drop_first(&mut self, group_count: usize) {
        self.texts.drain(..group_count);
    }

    fn size(&self) -> usize {
        self.texts
            .iter()
            .map(|text| text.as_ref().map_or(0, String::capacity) + size_of::<Option<String>>())
            .sum()
    }
}
