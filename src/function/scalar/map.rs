//! MAP_* and SPLIT: maps taken apart and put together, and texts made arrays.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, DynComparator, ListArray, ListBuilder, MapArray, StringBuilder, StructArray,
    UInt32Array, make_comparator,
};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::compute::{SortOptions, concat, take};
use arrow::datatypes::DataType as ArrowType;

use super::super::definition::Definition;
use super::super::operand::{Operand, validity};
use super::super::typing::{Parameter, common_type, typed};
use super::super::{Argument, Call, Inferred};
use crate::error::{Error, Result};
use crate::schema::{DataType, Field, TypeRoot};

pub(super) static MAP_KEYS: Definition = Definition {
    name: "MAP_KEYS",
    doc: "Returns the keys of a map.",
    signatures: &["MAP_KEYS(<MAP>)"],
    examples: &[("MAP_KEYS(MAP['a', 1, 'b', 2])", "[a, b]")],
    infer: |arguments| part_of_map(arguments, |key, _| key.clone()),
    invoke: |call, operands| entries(call, operands, |map| Ok(Arc::clone(map.keys()))),
    ..Definition::DEFAULT
};

pub(super) static MAP_VALUES: Definition = Definition {
    name: "MAP_VALUES",
    doc: "Returns the values of a map.",
    signatures: &["MAP_VALUES(<MAP>)"],
    examples: &[("MAP_VALUES(MAP['a', 1, 'b', 2])", "[1, 2]")],
    infer: |arguments| part_of_map(arguments, |_, value| value.clone()),
    invoke: |call, operands| entries(call, operands, |map| Ok(Arc::clone(map.values()))),
    ..Definition::DEFAULT
};

pub(super) static MAP_ENTRIES: Definition = Definition {
    name: "MAP_ENTRIES",
    doc: "Returns the entries of a map as rows of key and value.",
    signatures: &["MAP_ENTRIES(<MAP>)"],
    examples: &[("MAP_ENTRIES(MAP['a', 1])", "[(a, 1)]")],
    infer: |arguments| {
        part_of_map(arguments, |key, value| {
            TypeRoot::Row(vec![Field::new("key", key.clone()), Field::new("value", value.clone())]).not_null()
        })
    },
    invoke: |call, operands| {
        let ArrowType::List(field) = call.result.to_arrow() else { return Err(mismatch()) };
        let ArrowType::Struct(fields) = field.data_type().clone() else { return Err(mismatch()) };
        entries(call, operands, |map| {
            let columns = vec![Arc::clone(map.keys()), Arc::clone(map.values())];
            Ok(Arc::new(StructArray::try_new(fields.clone(), columns, None)?))
        })
    },
    ..Definition::DEFAULT
};

pub(super) static MAP_UNION: Definition = Definition {
    name: "MAP_UNION",
    doc: "Puts maps together; of equal keys the last one counts.",
    signatures: &["MAP_UNION(<COMMON>, ...)"],
    examples: &[("MAP_UNION(MAP['a', 1], MAP['a', 2])", "{a=2}")],
    infer: |arguments| {
        let types: Vec<DataType> = arguments.iter().map(|argument| argument.data_type.clone()).collect();
        let common = common_type(&types)?;
        let arguments =
            types.iter().map(|data_type| common.clone().with_nullable(data_type.nullable)).collect();
        matches!(common.root, TypeRoot::Map(..)).then(|| Inferred { arguments, result: common })
    },
    invoke: map_union,
    ..Definition::DEFAULT
};

pub(super) static MAP_FROM_ARRAYS: Definition = Definition {
    name: "MAP_FROM_ARRAYS",
    doc: "Makes a map of an array of keys and one of values, which must be equally long.",
    signatures: &["MAP_FROM_ARRAYS(<ARRAY>, <ARRAY>)"],
    examples: &[("MAP_FROM_ARRAYS(ARRAY['a', 'b'], ARRAY[1, 2])", "{a=1, b=2}")],
    infer: |arguments| {
        let inferred = typed(arguments, &[Parameter::Any, Parameter::Any], TypeRoot::Null)?;
        let [TypeRoot::Array(key), TypeRoot::Array(value)] =
            [&inferred.arguments[0].root, &inferred.arguments[1].root]
        else {
            return None;
        };
        let root = TypeRoot::Map(key.clone(), value.clone());
        Some(inferred.returning(root))
    },
    invoke: map_from_arrays,
    ..Definition::DEFAULT
};

pub(super) static SPLIT: Definition = Definition {
    name: "SPLIT",
    doc: "Splits a text at a separator, or into its characters if that is empty.",
    signatures: &["SPLIT(<CHARACTER>, <CHARACTER>)"],
    examples: &[("SPLIT('a b  c', ' ')", "[a, b, , c]"), ("SPLIT('abc', '')", "[a, b, c]")],
    infer: |arguments| {
        let element = TypeRoot::STRING.nullable();
        typed(arguments, &[Parameter::Text, Parameter::Text], TypeRoot::Array(Box::new(element)))
    },
    invoke: |call, operands| {
        let (texts, separators) = (operands[0].texts()?, operands[1].texts()?);
        let valid = validity(operands, call.row_count);
        let mut builder = ListBuilder::new(StringBuilder::new());
        for row in 0..call.row_count {
            let is_valid = valid.as_ref().is_none_or(|valid| valid.is_valid(row));
            if is_valid && separators.get(row).is_empty() {
                let mut buffer = [0; 4];
                texts.get(row).chars().for_each(|character| {
                    builder.values().append_value(character.encode_utf8(&mut buffer));
                });
            } else if is_valid {
                texts
                    .get(row)
                    .split(separators.get(row))
                    .for_each(|part| builder.values().append_value(part));
            }
            builder.append(is_valid);
        }
        Ok(Arc::new(builder.finish()))
    },
    ..Definition::DEFAULT
};

fn mismatch() -> Error {
    Error::internal("a kernel for maps got another type")
}

fn part_of_map(arguments: &[Argument<'_>], part: fn(&DataType, &DataType) -> DataType) -> Option<Inferred> {
    let inferred = typed(arguments, &[Parameter::Any], TypeRoot::Null)?;
    let TypeRoot::Map(key, value) = &inferred.arguments[0].root else { return None };
    let root = TypeRoot::Array(Box::new(part(key, value)));
    Some(inferred.returning(root))
}

/// Returns something of each entry of a map as an array.
fn entries(
    call: &Call<'_>,
    operands: &[Operand],
    part: impl Fn(&MapArray) -> Result<ArrayRef>,
) -> Result<ArrayRef> {
    let ArrowType::List(field) = call.result.to_arrow() else { return Err(mismatch()) };
    let column = operands[0].to_column(call.row_count)?;
    let map = column.as_map_opt().ok_or_else(mismatch)?;
    Ok(Arc::new(ListArray::try_new(field, map.offsets().clone(), part(map)?, map.nulls().cloned())?))
}

fn map_union(call: &Call<'_>, operands: &[Operand]) -> Result<ArrayRef> {
    let ArrowType::Map(field, is_sorted) = call.result.to_arrow() else { return Err(mismatch()) };
    let ArrowType::Struct(fields) = field.data_type() else { return Err(mismatch()) };
    let maps = operands
        .iter()
        .map(|operand| operand.array().as_map_opt().ok_or_else(mismatch))
        .collect::<Result<Vec<_>>>()?;
    let together = |part: fn(&MapArray) -> &ArrayRef| {
        concat(&maps.iter().map(|map| part(map).as_ref()).collect::<Vec<&dyn Array>>())
    };
    let (keys, values) = (together(MapArray::keys)?, together(MapArray::values)?);
    let compare: DynComparator = make_comparator(keys.as_ref(), keys.as_ref(), SortOptions::default())?;
    let valid = validity(operands, call.row_count);
    let (mut positions, mut offsets) = (Vec::<u32>::new(), vec![0_i32]);
    for row in 0..call.row_count {
        let start = positions.len();
        let mut base = 0;
        for (operand, map) in operands.iter().zip(&maps) {
            let (row, limits) = (operand.index(row), map.value_offsets());
            if valid.as_ref().is_none_or(|valid| valid.is_valid(row)) {
                for entry in limits[row]..limits[row + 1] {
                    let entry = base + entry as usize;
                    match positions[start..].iter_mut().find(|known| compare(**known as usize, entry).is_eq())
                    {
                        Some(known) => *known = entry as u32,
                        None => positions.push(entry as u32),
                    }
                }
            }
            base += map.keys().len();
        }
        offsets
            .push(i32::try_from(positions.len()).map_err(|_| Error::data("a batch of maps is too large"))?);
    }
    let positions = UInt32Array::from(positions);
    let columns = vec![take(&keys, &positions, None)?, take(&values, &positions, None)?];
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    let entries = StructArray::try_new(fields.clone(), columns, None)?;
    Ok(Arc::new(MapArray::try_new(Arc::clone(&field), offsets, entries, valid, is_sorted)?))
}

fn map_from_arrays(call: &Call<'_>, operands: &[Operand]) -> Result<ArrayRef> {
    let ArrowType::Map(field, is_sorted) = call.result.to_arrow() else { return Err(mismatch()) };
    let ArrowType::Struct(fields) = field.data_type() else { return Err(mismatch()) };
    let lists = operands
        .iter()
        .map(|operand| operand.array().as_list_opt::<i32>().ok_or_else(mismatch))
        .collect::<Result<Vec<_>>>()?;
    let valid = validity(operands, call.row_count);
    let mut positions = [Vec::<u32>::new(), Vec::<u32>::new()];
    let mut offsets = vec![0_i32];
    for row in 0..call.row_count {
        if valid.as_ref().is_none_or(|valid| valid.is_valid(row)) {
            for (positions, (operand, list)) in positions.iter_mut().zip(operands.iter().zip(&lists)) {
                let row = operand.index(row);
                positions.extend(list.value_offsets()[row] as u32..list.value_offsets()[row + 1] as u32);
            }
        }
        if positions[0].len() != positions[1].len() {
            return Err(Error::data(
                "Invalid function MAP_FROM_ARRAYS call:\nThe length of the keys array and the values array must be equal",
            ));
        }
        offsets.push(
            i32::try_from(positions[0].len()).map_err(|_| Error::data("a batch of maps is too large"))?,
        );
    }
    let [keys, values] = positions.map(UInt32Array::from);
    let columns = vec![take(lists[0].values(), &keys, None)?, take(lists[1].values(), &values, None)?];
    let entries = StructArray::try_new(fields.clone(), columns, None)?;
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    Ok(Arc::new(MapArray::try_new(Arc::clone(&field), offsets, entries, valid, is_sorted)?))
}
