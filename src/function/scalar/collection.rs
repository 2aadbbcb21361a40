//! Arrays, maps and rows: how they are made and what is in them.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, MapArray, StructArray, UInt32Array, make_comparator,
};
use arrow::buffer::{BooleanBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::{SortOptions, interleave, take};
use arrow::datatypes::{DataType as ArrowType, Int32Type};

use super::super::definition::Definition;
use super::super::operand::{Operand, try_map_values};
use super::super::typing::{Parameter, common_type};
use super::super::{Call, Inferred};
use crate::error::{Error, Result};
use crate::schema::{DataType, Field, TypeRoot};

pub(super) static ARRAY: Definition = Definition {
    name: "ARRAY",
    doc: "Makes an array of values of one type.",
    signatures: &["ARRAY[<COMMON>...]"],
    examples: &[("ARRAY[1, 2, 3]", "[1, 2, 3]")],
    infer: |arguments| {
        let types: Vec<DataType> = arguments.iter().map(|argument| argument.data_type.clone()).collect();
        let element = common_type(&types)?;
        let arguments = vec![element.clone(); types.len()];
        Some(Inferred { arguments, result: TypeRoot::Array(Box::new(element)).not_null() })
    },
    invoke: make_array,
    ..Definition::DEFAULT
};

pub(super) static MAP: Definition = Definition {
    name: "MAP",
    doc: "Makes a map of keys and values that take turns.",
    signatures: &["MAP[<COMMON>, <COMMON>...]"],
    examples: &[("MAP['k', 1, 'l', 2]", "{k=1, l=2}")],
    infer: |arguments| {
        if arguments.is_empty() || arguments.len() % 2 == 1 {
            return None;
        }
        let every_other = |start: usize| {
            let types: Vec<DataType> =
                arguments.iter().skip(start).step_by(2).map(|argument| argument.data_type.clone()).collect();
            common_type(&types)
        };
        let (key, value) = (every_other(0)?, every_other(1)?);
        let types = [key.clone(), value.clone()].into_iter().cycle().take(arguments.len()).collect();
        Some(Inferred { arguments: types, result: TypeRoot::Map(Box::new(key), Box::new(value)).not_null() })
    },
    invoke: make_map,
    ..Definition::DEFAULT
};

pub(super) static ROW: Definition = Definition {
    name: "ROW",
    doc: "Makes a row of values.",
    signatures: &["ROW(<ANY>...)"],
    examples: &[("ROW(1, 'a', CAST(NULL AS INT))", "(1, a, NULL)")],
    infer: |arguments| {
        let types: Vec<DataType> = arguments.iter().map(|argument| argument.data_type.clone()).collect();
        let fields = types
            .iter()
            .enumerate()
            .map(|(index, data_type)| Field::new(format!("EXPR${index}"), data_type.clone()));
        Some(Inferred { result: TypeRoot::Row(fields.collect()).not_null(), arguments: types })
    },
    invoke: |call, operands| {
        let columns =
            operands.iter().map(|operand| operand.to_column(call.row_count)).collect::<Result<Vec<_>>>()?;
        let ArrowType::Struct(fields) = call.result.to_arrow() else { return Err(mismatch("a row")) };
        if columns.is_empty() {
            return Ok(Arc::new(StructArray::new_empty_fields(call.row_count, None)));
        }
        Ok(Arc::new(StructArray::try_new(fields, columns, None)?))
    },
    ..Definition::DEFAULT
};

pub(super) static ITEM: Definition = Definition {
    name: "ITEM",
    doc: "Returns the element of an array at an index, which counts from 1, or the value of a map's key; NULL where there is none.",
    signatures: &["<ARRAY>[<INTEGER>]", "<MAP>[<ANY>]"],
    examples: &[("ARRAY[1, 2, 3][2]", "2"), ("ARRAY[1, 2][5]", "<NULL>"), ("MAP['a', 1]['a']", "1")],
    infer: |arguments| {
        let [collection, index] = arguments else { return None };
        let (index, element) = match &collection.data_type.root {
            TypeRoot::Array(element) => (Parameter::Int.accept(index.data_type)?, element),
            TypeRoot::Map(key, value) => {
                common_type(&[key.as_ref().clone(), index.data_type.clone()])?;
                (key.as_ref().clone().with_nullable(index.data_type.nullable), value)
            }
            _ => return None,
        };
        let result = element.as_ref().clone().with_nullable(true);
        Some(Inferred { arguments: vec![collection.data_type.clone(), index], result })
    },
    invoke: |call, operands| match &call.arguments[0].root {
        TypeRoot::Array(_) => item_of_array(call, operands),
        _ => item_of_map(call, operands),
    },
    ..Definition::DEFAULT
};

pub(super) static CARDINALITY: Definition = Definition {
    name: "CARDINALITY",
    doc: "Returns how many elements an array, map or multiset has.",
    signatures: &["CARDINALITY(<MULTISET>)", "CARDINALITY(<ARRAY>)", "CARDINALITY(<MAP>)"],
    examples: &[("CARDINALITY(ARRAY[1, 2])", "2")],
    infer: |arguments| {
        let [collection] = arguments else { return None };
        let root = &collection.data_type.root;
        if !matches!(root, TypeRoot::Array(_) | TypeRoot::Map(..) | TypeRoot::Multiset(_)) {
            return None;
        }
        let result = DataType { root: TypeRoot::Int, nullable: collection.data_type.nullable };
        Some(Inferred { arguments: vec![collection.data_type.clone()], result })
    },
    invoke: |call, operands| {
        let offsets = offsets(&operands[0])?;
        try_map_values::<Int32Type>(call, operands, |row| {
            let row = operands[0].index(row);
            Ok(Some(offsets[row + 1] - offsets[row]))
        })
    },
    ..Definition::DEFAULT
};

pub(super) static ELEMENT: Definition = Definition {
    name: "ELEMENT",
    doc: "Returns the only element of an array, NULL if it is empty; more than one fail.",
    signatures: &["ELEMENT(<ARRAY>)"],
    examples: &[("ELEMENT(ARRAY[7])", "7")],
    infer: |arguments| {
        let [collection] = arguments else { return None };
        let TypeRoot::Array(element) = &collection.data_type.root else { return None };
        let nullable = element.nullable || collection.data_type.nullable;
        let result = element.as_ref().clone().with_nullable(nullable);
        Some(Inferred { arguments: vec![collection.data_type.clone()], result })
    },
    invoke: |call, operands| {
        let lists = list(&operands[0])?;
        let offsets = lists.value_offsets();
        let mut indices = Vec::with_capacity(call.row_count);
        for row in (0..call.row_count).map(|row| operands[0].index(row)) {
            let count = if lists.is_null(row) { 0 } else { offsets[row + 1] - offsets[row] };
            if count > 1 {
                return Err(Error::data("Array has more than one element."));
            }
            indices.push((count == 1).then(|| offsets[row] as u32));
        }
        Ok(take(lists.values(), &UInt32Array::from(indices), None)?)
    },
    ..Definition::DEFAULT
};

pub(super) static ARRAY_CONTAINS: Definition = Definition {
    name: "ARRAY_CONTAINS",
    doc: "Returns whether a value is among the elements of an array.",
    signatures: &["ARRAY_CONTAINS(<ARRAY>, <ANY>)"],
    examples: &[("ARRAY_CONTAINS(ARRAY[1, 2], 2)", "TRUE")],
    infer: |arguments| {
        let [collection, value] = arguments else { return None };
        let TypeRoot::Array(element) = &collection.data_type.root else { return None };
        let common = common_type(&[element.as_ref().clone(), value.data_type.clone()])?;
        let array = DataType {
            root: TypeRoot::Array(Box::new(common.clone())),
            nullable: collection.data_type.nullable,
        };
        let result = DataType { root: TypeRoot::Boolean, nullable: collection.data_type.nullable };
        Some(Inferred { arguments: vec![array, common], result })
    },
    invoke: |call, operands| {
        let lists = list(&operands[0])?;
        let is_equal =
            make_comparator(lists.values().as_ref(), operands[1].array().as_ref(), SortOptions::default())?;
        let mut found = Vec::with_capacity(call.row_count);
        for row in 0..call.row_count {
            let (list_row, value_row) = (operands[0].index(row), operands[1].index(row));
            let (start, end) =
                (lists.value_offsets()[list_row] as usize, lists.value_offsets()[list_row + 1] as usize);
            found.push((start..end).any(|index| is_equal(index, value_row).is_eq()));
        }
        let valid = (0..call.row_count).map(|row| !operands[0].is_null(row)).collect::<Vec<bool>>();
        Ok(Arc::new(BooleanArray::new(BooleanBuffer::from(found), Some(NullBuffer::from(valid)))))
    },
    ..Definition::DEFAULT
};

fn mismatch(wanted: &str) -> Error {
    Error::internal(format!("a kernel for collections got no {wanted}"))
}

fn list(operand: &Operand) -> Result<&ListArray> {
    operand.array().as_list_opt::<i32>().ok_or_else(|| mismatch("an array"))
}

fn offsets(operand: &Operand) -> Result<&[i32]> {
    match operand.array().as_map_opt() {
        Some(map) => Ok(map.value_offsets()),
        None => Ok(list(operand)?.value_offsets()),
    }
}

/// Interleaves columns row by row: the first row of each, the second row of each, and so on.
fn row_by_row(operands: &[&Operand], row_count: usize) -> Result<ArrayRef> {
    let arrays: Vec<&dyn Array> = operands.iter().map(|operand| operand.array().as_ref()).collect();
    if let [only] = operands {
        return only.to_column(row_count);
    }
    let mut indices = Vec::with_capacity(arrays.len() * row_count);
    for row in 0..row_count {
        indices.extend(operands.iter().enumerate().map(|(column, operand)| (column, operand.index(row))));
    }
    Ok(interleave(&arrays, &indices)?)
}

/// Returns the offsets of lists that all have the same length.
fn equal_offsets(row_count: usize, length: usize) -> Result<OffsetBuffer<i32>> {
    i32::try_from(row_count * length)
        .map_err(|_| Error::data("a batch of arrays has more than 2147483647 elements"))?;
    let offsets: Vec<i32> = (0..=row_count).map(|row| (row * length) as i32).collect();
    Ok(OffsetBuffer::new(ScalarBuffer::from(offsets)))
}

fn make_array(call: &Call<'_>, operands: &[Operand]) -> Result<ArrayRef> {
    let ArrowType::List(field) = call.result.to_arrow() else { return Err(mismatch("an array")) };
    let values = row_by_row(&operands.iter().collect::<Vec<_>>(), call.row_count)?;
    Ok(Arc::new(ListArray::try_new(field, equal_offsets(call.row_count, operands.len())?, values, None)?))
}

// Flink differs: of equal keys the last one stays there; here all stay and a look-up finds the last.
fn make_map(call: &Call<'_>, operands: &[Operand]) -> Result<ArrayRef> {
    let ArrowType::Map(entries, is_sorted) = call.result.to_arrow() else { return Err(mismatch("a map")) };
    let ArrowType::Struct(fields) = entries.data_type() else { return Err(mismatch("a map")) };
    let keys = row_by_row(&operands.iter().step_by(2).collect::<Vec<_>>(), call.row_count)?;
    let values = row_by_row(&operands.iter().skip(1).step_by(2).collect::<Vec<_>>(), call.row_count)?;
    let columns = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
    let offsets = equal_offsets(call.row_count, operands.len() / 2)?;
    Ok(Arc::new(MapArray::try_new(entries, offsets, columns, None, is_sorted)?))
}

fn item_of_array(call: &Call<'_>, operands: &[Operand]) -> Result<ArrayRef> {
    let lists = list(&operands[0])?;
    let positions = operands[1].values::<Int32Type>()?;
    let mut indices = Vec::with_capacity(call.row_count);
    for row in 0..call.row_count {
        let list_row = operands[0].index(row);
        if lists.is_null(list_row) || operands[1].is_null(row) {
            indices.push(None);
            continue;
        }
        let position = positions.get(row);
        if position < 1 {
            return Err(index_error(position));
        }
        let (start, end) = (lists.value_offsets()[list_row], lists.value_offsets()[list_row + 1]);
        indices.push((position <= end - start).then(|| (start + position - 1) as u32));
    }
    Ok(take(lists.values(), &UInt32Array::from(indices), None)?)
}

/// The error for an index below 1, which Flink raises while planning where it is a constant.
fn index_error(position: i32) -> Error {
    Error::validation(format!("Array element access needs an index starting at 1 but was {position}."))
}

fn item_of_map(call: &Call<'_>, operands: &[Operand]) -> Result<ArrayRef> {
    let map = operands[0].array().as_map_opt().ok_or_else(|| mismatch("a map"))?;
    let compare = make_comparator(map.keys().as_ref(), operands[1].array().as_ref(), SortOptions::default())?;
    let mut indices = Vec::with_capacity(call.row_count);
    for row in 0..call.row_count {
        let (map_row, key_row) = (operands[0].index(row), operands[1].index(row));
        let entries = map.value_offsets()[map_row] as usize..map.value_offsets()[map_row + 1] as usize;
        let found = if map.is_null(map_row) {
            None
        } else {
            entries.rev().find(|index| compare(*index, key_row).is_eq())
        };
        indices.push(found.map(|index| index as u32));
    }
    Ok(take(map.values(), &UInt32Array::from(indices), None)?)
}
