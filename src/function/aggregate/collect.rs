//! COLLECT: the multiset of a group's values, which lies in Arrow as a map from value to count.
//!
//! The entries are sorted by value, so that equal multisets are equal columns, whatever the order of arrival.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, MapArray, StructArray};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType as ArrowType, Int32Type};
use arrow::row::{OwnedRow, RowConverter, SortField};

use super::groups::{Groups, Rows};
use crate::error::{Error, Result};
use crate::schema::{DataType, TypeRoot};

/// The values of one group in the order of first arrival.
#[derive(Debug, Default)]
struct Group {
    positions: HashMap<OwnedRow, usize>,
    values: Vec<(OwnedRow, i32)>,
}

/// The multisets of groups.
#[derive(Debug)]
pub(super) struct Collected {
    map_type: ArrowType,
    converter: RowConverter,
    groups: Vec<Group>,
}

impl Collected {
    pub(super) fn new(argument: &DataType) -> Result<Collected> {
        let map_type = TypeRoot::Multiset(Box::new(argument.clone())).nullable().to_arrow();
        let converter = RowConverter::new(vec![SortField::new(argument.to_arrow())])?;
        Ok(Collected { map_type, converter, groups: Vec::new() })
    }

    fn add(&mut self, group: usize, value: OwnedRow, count: i32) {
        let group = &mut self.groups[group];
        match group.positions.get(&value) {
            Some(position) => group.values[*position].1 += count,
            None => {
                group.positions.insert(value.clone(), group.values.len());
                group.values.push((value, count));
            }
        }
    }
}

impl Groups for Collected {
    fn grow(&mut self, group_count: usize) {
        self.groups.resize_with(group_count.max(self.groups.len()), Group::default);
    }

    fn count(&self) -> usize {
        self.groups.len()
    }

    fn update(&mut self, values: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        let converted = self.converter.convert_columns(&values[..1])?;
        for (row, group) in rows.iter() {
            if values[0].is_valid(row) {
                self.add(group, converted.row(row).owned(), 1);
            }
        }
        Ok(())
    }

    fn merge(&mut self, states: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        let mismatch = || Error::internal("the state of COLLECT is a map");
        let maps = states.first().and_then(|state| state.as_map_opt()).ok_or_else(mismatch)?.clone();
        let converted = self.converter.convert_columns(std::slice::from_ref(maps.keys()))?;
        let counts = maps.values().as_primitive_opt::<Int32Type>().ok_or_else(mismatch)?;
        for (row, group) in rows.iter() {
            if maps.is_valid(row) {
                for entry in maps.value_offsets()[row]..maps.value_offsets()[row + 1] {
                    self.add(group, converted.row(entry as usize).owned(), counts.value(entry as usize));
                }
            }
        }
        Ok(())
    }

    fn results(&self, groups: Range<usize>) -> Result<ArrayRef> {
        let ArrowType::Map(entries, is_sorted) = &self.map_type else {
            return Err(Error::internal("a multiset lies in Arrow as a map"));
        };
        let ArrowType::Struct(fields) = entries.data_type() else {
            return Err(Error::internal("the entries of a map are a struct"));
        };
        let groups = &self.groups[groups];
        let mut offsets = vec![0_i32];
        for group in groups {
            offsets.push(offsets[offsets.len() - 1] + group.values.len() as i32);
        }
        let mut values: Vec<&(OwnedRow, i32)> = Vec::new();
        for group in groups {
            let start = values.len();
            values.extend(&group.values);
            values[start..].sort_unstable_by(|left, right| left.0.cmp(&right.0));
        }
        let values = values.into_iter();
        let keys = self.converter.convert_rows(values.clone().map(|(value, _)| value.row()))?.swap_remove(0);
        let counts: Int32Array = values.map(|(_, count)| Some(*count)).collect();
        let columns = StructArray::try_new(fields.clone(), vec![keys, Arc::new(counts)], None)?;
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        Ok(Arc::new(MapArray::try_new(Arc::clone(entries), offsets, columns, None, *is_sorted)?))
    }

    fn states(&self, groups: Range<usize>) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.results(groups)?])
    }

    fn drop_first(&mut self, group_count: usize) {
        self.groups.drain(..group_count);
    }

    fn size(&self) -> usize {
        // A value is kept twice: as a key of the positions and in order.
        let value = |(row, _): &(OwnedRow, i32)| 2 * (row.row().as_ref().len() + size_of::<OwnedRow>());
        self.groups.iter().map(|group| group.values.iter().map(value).sum::<usize>()).sum()
    }
}
