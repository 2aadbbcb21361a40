//! ARRAY_*: arrays made of the elements of other arrays.
//!
//! All elements that a call may use are put behind each other once; a row's result is then a list of their positions.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, DynComparator, ListArray, UInt32Array, make_comparator};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::{SortOptions, concat, take};
use arrow::datatypes::{DataType as ArrowType, Int32Type};

use super::super::definition::Definition;
use super::super::operand::{Operand, map_text, try_map_values, validity};
use super::super::typing::{Parameter, common_type, typed};
use super::super::{Argument, Call, Inferred};
use crate::error::{Error, Result};
use crate::schema::{DataType, TypeRoot};

/// Declares functions that return an array of the elements of their arguments.
macro_rules! array_functions {
    ($($symbol:ident, $name:literal, $form:literal, $doc:literal, $call:literal => $value:literal, $infer:expr, $choose:expr;)*) => {
        $(pub(super) static $symbol: Definition = Definition {
            name: $name,
            doc: $doc,
            signatures: &[$form],
            examples: &[($call, $value)],
            infer: $infer,
            invoke: |call, operands| build(call, operands, $choose),
            ..Definition::DEFAULT
        };)*
    };
}

array_functions! {
    ARRAY_DISTINCT, "ARRAY_DISTINCT", "ARRAY_DISTINCT(<ARRAY>)", "Returns the array with each element once.",
        "ARRAY_DISTINCT(ARRAY[1, 2, 1])" => "[1, 2]", |arguments| arrays(arguments, 1, 0), |all, row, chosen| {
            all.list(0, row).for_each(|element| all.push_new(element, chosen));
        };
    ARRAY_REVERSE, "ARRAY_REVERSE", "ARRAY_REVERSE(<ARRAY>)", "Returns the array turned round.",
        "ARRAY_REVERSE(ARRAY[1, 2])" => "[2, 1]", |arguments| arrays(arguments, 1, 0), |all, row, chosen| {
            chosen.extend(all.list(0, row).rev());
        };
    ARRAY_UNION, "ARRAY_UNION", "ARRAY_UNION(<COMMON>, <COMMON>)", "Returns the elements of both arrays, each once.",
        "ARRAY_UNION(ARRAY[1, 2], ARRAY[2, 3])" => "[1, 2, 3]", |arguments| arrays(arguments, 2, 0), |all, row, chosen| {
            all.list(0, row).chain(all.list(1, row)).for_each(|element| all.push_new(element, chosen));
        };
    ARRAY_EXCEPT, "ARRAY_EXCEPT", "ARRAY_EXCEPT(<COMMON>, <COMMON>)", "Returns the elements of the first array that the second lacks, each once.",
        "ARRAY_EXCEPT(ARRAY[1, 2], ARRAY[2])" => "[1]", |arguments| arrays(arguments, 2, 0), |all, row, chosen| {
            let others = all.list(1, row);
            all.list(0, row).filter(|element| !all.contains(others.clone(), *element)).for_each(|element| all.push_new(element, chosen));
        };
    ARRAY_INTERSECT, "ARRAY_INTERSECT", "ARRAY_INTERSECT(<COMMON>, <COMMON>)", "Returns the elements that both arrays have, each once.",
        "ARRAY_INTERSECT(ARRAY[1, 2], ARRAY[2, 3])" => "[2]", |arguments| arrays(arguments, 2, 0), |all, row, chosen| {
            let others = all.list(1, row);
            all.list(0, row).filter(|element| all.contains(others.clone(), *element)).for_each(|element| all.push_new(element, chosen));
        };
    ARRAY_CONCAT, "ARRAY_CONCAT", "ARRAY_CONCAT(<COMMON>, ...)", "Returns the elements of all arrays behind each other.",
        "ARRAY_CONCAT(ARRAY[1], ARRAY[2])" => "[1, 2]", |arguments| arrays(arguments, arguments.len().max(1), 0), |all, row, chosen| {
            (0..all.parts.len()).for_each(|part| chosen.extend(all.list(part, row)));
        };
    ARRAY_APPEND, "ARRAY_APPEND", "ARRAY_APPEND(<ARRAY>, <ELEMENT>)", "Returns the array with an element added at the end.",
        "ARRAY_APPEND(ARRAY[1], 2)" => "[1, 2]", |arguments| arrays(arguments, 1, 1), |all, row, chosen| {
            chosen.extend(all.list(0, row).chain([all.single(1, row)]));
        };
    ARRAY_PREPEND, "ARRAY_PREPEND", "ARRAY_PREPEND(<ARRAY>, <ELEMENT>)", "Returns the array with an element added at the start.",
        "ARRAY_PREPEND(ARRAY[1], 2)" => "[2, 1]", |arguments| arrays(arguments, 1, 1), |all, row, chosen| {
            chosen.extend([all.single(1, row)].into_iter().chain(all.list(0, row)));
        };
    ARRAY_REMOVE, "ARRAY_REMOVE", "ARRAY_REMOVE(<ARRAY>, <ELEMENT>)", "Returns the array without the elements that are equal to a value.",
        "ARRAY_REMOVE(ARRAY[1, 2, 1], 1)" => "[2]", |arguments| arrays(arguments, 1, 1), |all, row, chosen| {
            let unwanted = all.single(1, row);
            chosen.extend(all.list(0, row).filter(|element| !all.is_equal(*element, unwanted)));
        };
}

pub(super) static ARRAY_SORT: Definition = Definition {
    name: "ARRAY_SORT",
    doc: "Returns the array sorted, upwards unless the second argument is FALSE; NULLs come first upwards and last downwards.",
    signatures: &[
        "ARRAY_SORT(<ARRAY>)",
        "ARRAY_SORT(<ARRAY>, <BOOLEAN>)",
        "ARRAY_SORT(<ARRAY>, <BOOLEAN>, <BOOLEAN>)",
    ],
    examples: &[
        ("ARRAY_SORT(ARRAY[3, 1, 2])", "[1, 2, 3]"),
        ("ARRAY_SORT(ARRAY[3, 1, 2], FALSE)", "[3, 2, 1]"),
    ],
    infer: |arguments| with_extra(arguments, Parameter::Boolean, 0, 2),
    invoke: |call, operands| {
        let flag = |index: usize, row: usize, default: bool| {
            operands
                .get(index)
                .and_then(|operand| Some(operand.array().as_boolean_opt()?.value(operand.index(row))))
                .unwrap_or(default)
        };
        build_from(call, operands, &operands[..1], |all, row, chosen| {
            let is_ascending = flag(1, row, true);
            let nulls_first = flag(2, row, is_ascending);
            chosen.extend(all.list(0, row));
            chosen.sort_by(|left, right| match (all.is_null(*left), all.is_null(*right)) {
                (false, false) if is_ascending => all.compare(*left, *right),
                (false, false) => all.compare(*right, *left),
                (left, right) if nulls_first => right.cmp(&left),
                (left, right) => left.cmp(&right),
            });
        })
    },
    ..Definition::DEFAULT
};

pub(super) static ARRAY_SLICE: Definition = Definition {
    name: "ARRAY_SLICE",
    doc: "Returns the elements from one position to another or to the end; negative ones count from the end.",
    signatures: &["ARRAY_SLICE(<ARRAY>, <INTEGER>)", "ARRAY_SLICE(<ARRAY>, <INTEGER>, <INTEGER>)"],
    examples: &[
        ("ARRAY_SLICE(ARRAY[1, 2, 3, 4], 2, 3)", "[2, 3]"),
        ("ARRAY_SLICE(ARRAY[1, 2, 3, 4], -2)", "[3, 4]"),
    ],
    infer: |arguments| with_extra(arguments, Parameter::Int, 1, 2),
    invoke: |call, operands| {
        let starts = operands[1].values::<Int32Type>()?;
        let ends = operands.get(2).map(Operand::values::<Int32Type>).transpose()?;
        build_from(call, operands, &operands[..1], |all, row, chosen| {
            let list = all.list(0, row);
            let length = list.len() as i64;
            let position = |value: i32| match i64::from(value) {
                0 => 1,
                value if value < 0 => (length + 1 + value).max(1),
                value => value,
            };
            let end = ends.map_or(length, |ends| match i64::from(ends.get(row)) {
                value if value < 0 => length + 1 + value,
                0 => 1,
                value => value.min(length),
            });
            let start = position(starts.get(row));
            if start <= end {
                chosen.extend(list.skip(start as usize - 1).take((end - start + 1) as usize));
            }
        })
    },
    ..Definition::DEFAULT
};

pub(super) static ARRAY_POSITION: Definition = Definition {
    name: "ARRAY_POSITION",
    doc: "Returns where a value first stands in an array, counted from 1, or 0.",
    signatures: &["ARRAY_POSITION(<ARRAY>, <ELEMENT>)"],
    examples: &[("ARRAY_POSITION(ARRAY[1, 2], 5)", "0"), ("ARRAY_POSITION(ARRAY[1, 2], 2)", "2")],
    infer: |arguments| arrays(arguments, 1, 1).map(|inferred| inferred.returning(TypeRoot::Int)),
    invoke: |call, operands| {
        let all = Elements::new(operands)?;
        try_map_values::<Int32Type>(call, operands, |row| {
            let wanted = all.single(1, row);
            let place = all.list(0, row).position(|element| all.is_equal(element, wanted));
            Ok(Some(place.map_or(0, |place| place as i32 + 1)))
        })
    },
    ..Definition::DEFAULT
};

pub(super) static ARRAY_MAX: Definition = Definition {
    name: "ARRAY_MAX",
    doc: "Returns the largest element; NULLs do not count.",
    signatures: &["ARRAY_MAX(<ARRAY>)"],
    examples: &[("ARRAY_MAX(ARRAY[1, 5, 2])", "5")],
    infer: element,
    invoke: |call, operands| extreme(call, operands, Ordering::Greater),
    ..Definition::DEFAULT
};

pub(super) static ARRAY_MIN: Definition = Definition {
    name: "ARRAY_MIN",
    doc: "Returns the smallest element; NULLs do not count.",
    signatures: &["ARRAY_MIN(<ARRAY>)"],
    examples: &[("ARRAY_MIN(ARRAY[3, 1, 2])", "1")],
    infer: element,
    invoke: |call, operands| extreme(call, operands, Ordering::Less),
    ..Definition::DEFAULT
};

pub(super) static ARRAY_JOIN: Definition = Definition {
    name: "ARRAY_JOIN",
    doc: "Puts the texts of an array together with a separator between them; NULLs are left out or replaced.",
    signatures: &["ARRAY_JOIN(<ARRAY>, <CHARACTER>)", "ARRAY_JOIN(<ARRAY>, <CHARACTER>, <CHARACTER>)"],
    examples: &[("ARRAY_JOIN(ARRAY['a', CAST(NULL AS STRING), 'b'], '-', '?')", "a-?-b")],
    infer: |arguments| {
        let inferred = with_extra(arguments, Parameter::Text, 1, 2)?;
        let TypeRoot::Array(element) = &inferred.arguments[0].root else { return None };
        element.root.is_character().then(|| inferred.clone().returning(TypeRoot::STRING))
    },
    invoke: |call, operands| {
        let all = Elements::new(&operands[..1])?;
        let texts = Operand::column(Arc::clone(&all.values));
        let texts = texts.texts()?;
        let separators = operands[1].texts()?;
        let replacements = operands.get(2).map(Operand::texts).transpose()?;
        map_text(call, operands, |row, out| {
            let mut is_first = true;
            for element in all.list(0, row) {
                let text = match (all.is_null(element), replacements) {
                    (false, _) => texts.get(element as usize),
                    (true, Some(replacements)) => replacements.get(row),
                    (true, None) => continue,
                };
                if !is_first {
                    out.push_str(separators.get(row));
                }
                out.push_str(text);
                is_first = false;
            }
            Ok(true)
        })
    },
    ..Definition::DEFAULT
};

/// Types a call with arrays and elements of one type; the result is such an array.
fn arrays(arguments: &[Argument<'_>], array_count: usize, element_count: usize) -> Option<Inferred> {
    if arguments.len() != array_count + element_count {
        return None;
    }
    let mut elements = Vec::with_capacity(arguments.len());
    for argument in &arguments[..array_count] {
        let TypeRoot::Array(element) = &argument.data_type.root else { return None };
        elements.push(element.as_ref().clone());
    }
    elements.extend(arguments[array_count..].iter().map(|argument| argument.data_type.clone()));
    let common = common_type(&elements)?;
    let array = TypeRoot::Array(Box::new(common.clone()));
    let nullable = arguments[..array_count].iter().any(|argument| argument.data_type.nullable);
    let types = arguments.iter().enumerate().map(|(index, argument)| {
        let root = if index < array_count { array.clone() } else { common.root.clone() };
        DataType { root, nullable: argument.data_type.nullable }
    });
    Some(Inferred { arguments: types.collect(), result: DataType { root: array.clone(), nullable } })
}

/// Types a call with an array and between `least` and `most` further arguments of one kind.
fn with_extra(
    arguments: &[Argument<'_>],
    parameter: Parameter,
    least: usize,
    most: usize,
) -> Option<Inferred> {
    let extra = arguments.len().checked_sub(1)?;
    if !(least..=most).contains(&extra) || !matches!(arguments[0].data_type.root, TypeRoot::Array(_)) {
        return None;
    }
    let mut parameters = vec![Parameter::Any];
    parameters.extend(std::iter::repeat_n(parameter, extra));
    typed(arguments, &parameters, arguments[0].data_type.root.clone())
}

fn element(arguments: &[Argument<'_>]) -> Option<Inferred> {
    let inferred = arrays(arguments, 1, 0)?;
    let TypeRoot::Array(element) = &inferred.result.root else { return None };
    let root = element.root.clone();
    Some(inferred.returning(root).or_null())
}

/// All elements that a call may use, behind each other, and where those of each operand are.
struct Elements<'a> {
    values: ArrayRef,
    comparator: DynComparator,
    parts: Vec<Part<'a>>,
}

struct Part<'a> {
    operand: &'a Operand,
    /// The offsets of a list; None for an operand whose values are elements.
    offsets: Option<&'a [i32]>,
    base: u32,
}

impl<'a> Elements<'a> {
    fn new(operands: &'a [Operand]) -> Result<Elements<'a>> {
        let mut parts = Vec::with_capacity(operands.len());
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(operands.len());
        let mut base = 0;
        let element_type = operands
            .first()
            .and_then(|operand| operand.array().as_list_opt::<i32>())
            .map(ListArray::value_type);
        for operand in operands {
            // An element may itself be an array: it is one if it has the type of the first operand's elements.
            let list = match &element_type {
                Some(element_type) if operand.array().data_type() == element_type => None,
                _ => operand.array().as_list_opt::<i32>(),
            };
            parts.push(Part { operand, offsets: list.map(ListArray::value_offsets), base });
            let values = list.map_or_else(|| Arc::clone(operand.array()), |list| Arc::clone(list.values()));
            base += u32::try_from(values.len()).map_err(|_| Error::data("a batch of arrays is too large"))?;
            arrays.push(values);
        }
        let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
        let values = concat(&arrays)?;
        let comparator = make_comparator(values.as_ref(), values.as_ref(), SortOptions::default())?;
        Ok(Elements { values, comparator, parts })
    }

    /// Returns the positions of the elements of a row's array; none for NULL.
    fn list(&self, part: usize, row: usize) -> Range<u32> {
        let part = &self.parts[part];
        let row = part.operand.index(row);
        match part.offsets {
            Some(offsets) if part.operand.array().is_valid(row) => {
                part.base + offsets[row] as u32..part.base + offsets[row + 1] as u32
            }
            _ => 0..0,
        }
    }

    /// Returns the position of a row's element.
    fn single(&self, part: usize, row: usize) -> u32 {
        self.parts[part].base + self.parts[part].operand.index(row) as u32
    }

    fn is_null(&self, element: u32) -> bool {
        self.values.is_null(element as usize)
    }

    fn compare(&self, left: u32, right: u32) -> Ordering {
        (self.comparator)(left as usize, right as usize)
    }

    fn is_equal(&self, left: u32, right: u32) -> bool {
        self.compare(left, right).is_eq()
    }

    fn contains(&self, mut list: Range<u32>, element: u32) -> bool {
        list.any(|other| self.is_equal(other, element))
    }

    /// Appends an element unless an equal one is there.
    fn push_new(&self, element: u32, chosen: &mut Vec<u32>) {
        if !chosen.iter().any(|other| self.is_equal(*other, element)) {
            chosen.push(element);
        }
    }
}

fn build(
    call: &Call<'_>,
    operands: &[Operand],
    choose: impl Fn(&Elements<'_>, usize, &mut Vec<u32>),
) -> Result<ArrayRef> {
    // An element that is NULL is an element like any other: only NULL arrays make the result NULL.
    let is_array = |index: &usize| call.arguments[*index].root == call.arguments[0].root;
    let arrays: Vec<Operand> =
        (0..operands.len()).filter(is_array).map(|index| operands[index].clone()).collect();
    build_from(call, &arrays, operands, choose)
}

/// Builds the arrays of the elements that `choose` lists; `deciding` are the operands whose NULL makes a NULL.
fn build_from(
    call: &Call<'_>,
    deciding: &[Operand],
    operands: &[Operand],
    choose: impl Fn(&Elements<'_>, usize, &mut Vec<u32>),
) -> Result<ArrayRef> {
    let ArrowType::List(field) = call.result.to_arrow() else {
        return Err(Error::internal("a kernel for arrays has another result"));
    };
    let all = Elements::new(operands)?;
    let valid: Option<NullBuffer> = validity(deciding, call.row_count);
    let mut positions = Vec::new();
    let mut row_positions = Vec::new();
    let mut offsets = vec![0_i32];
    for row in 0..call.row_count {
        if valid.as_ref().is_none_or(|valid| valid.is_valid(row)) {
            row_positions.clear();
            choose(&all, row, &mut row_positions);
            positions.extend_from_slice(&row_positions);
        }
        offsets
            .push(i32::try_from(positions.len()).map_err(|_| Error::data("a batch of arrays is too large"))?);
    }
    let values = take(&all.values, &UInt32Array::from(positions), None)?;
    Ok(Arc::new(ListArray::try_new(field, OffsetBuffer::new(ScalarBuffer::from(offsets)), values, valid)?))
}

fn extreme(call: &Call<'_>, operands: &[Operand], wanted: Ordering) -> Result<ArrayRef> {
    let all = Elements::new(operands)?;
    let best = (0..call.row_count).map(|row| {
        let present = all.list(0, row).filter(|element| !all.is_null(*element));
        present.reduce(|best, element| if all.compare(element, best) == wanted { element } else { best })
    });
    Ok(take(&all.values, &best.collect::<UInt32Array>(), None)?)
}
