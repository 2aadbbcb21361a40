//! The values of each group in the order in which they came: what FIRST_VALUE, LAST_VALUE, LISTAGG, ARRAY_AGG and SINGLE_VALUE
//! answer from. A value that is taken back is the oldest equal one.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray, StringArray, UInt32Array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::take;
use arrow::datatypes::{DataType as ArrowType, Int64Type};

use super::chains::Chains;
use super::rows::Rows;
use super::tables::Saved;
use super::value_store::{SlotValue, ValueStore};
use crate::error::{Error, FlinkClass, Result};
use crate::state::{ABSENT, KeyIndex, SlotTracker, hash_rows};

/// The values of groups in order.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// Whether NULL is a value.
    keeps_nulls: bool,
    values: ValueStore,
    /// The elements by number.
    elements: Vec<SlotValue>,
    /// When each came.
    sequence: Vec<i64>,
    free: Vec<u32>,
    next_sequence: i64,
    chains: Chains,
    counts: Vec<u32>,
    tracker: SlotTracker,
    /// What finds the oldest of equal values; none where nothing is taken back.
    queues: Option<Queues>,
    batch: Batch,
    /// Saved elements, until all are there.
    loaded: Vec<(i64, SlotValue)>,
}

/// Equal values of a group, oldest first.
#[derive(Debug)]
struct Queues {
    index: KeyIndex,
    /// The oldest and the newest element of each.
    ends: Vec<[u32; 2]>,
    /// For each element the next younger equal one.
    next: Vec<u32>,
    /// Queues that may be empty.
    idle: Vec<u32>,
}

/// The batch at hand.
#[derive(Debug, Default)]
struct Batch {
    /// Rows that may count, and their values and queues.
    rows: Vec<u32>,
    values: Vec<SlotValue>,
    queues: Vec<u32>,
    /// How many of them are done.
    done: usize,
}

/// The ends of a queue without number.
const FREE: [u32; 2] = [ABSENT - 1; 2];

impl Queues {
    /// Finds the queue of each value; new ones are empty.
    fn intern(&mut self, values: &[SlotValue]) -> Result<Vec<u32>> {
        let columns = [SlotValue::column(values)];
        let (mut hashes, mut queues) = (Vec::new(), Vec::new());
        hash_rows(&columns, values.len(), &mut hashes)?;
        self.index.intern(&columns, &hashes, &mut queues)?;
        self.ends.resize(self.index.slot_count(), FREE);
        for queue in &queues {
            let ends = &mut self.ends[*queue as usize];
            if *ends == FREE {
                *ends = [ABSENT; 2];
                self.idle.push(*queue);
            }
        }
        Ok(queues)
    }

    fn push(&mut self, queue: u32, element: u32) {
        if self.next.len() <= element as usize {
            self.next.resize(element as usize + 1, ABSENT);
        }
        self.next[element as usize] = ABSENT;
        let ends = &mut self.ends[queue as usize];
        if ends[0] == ABSENT {
            *ends = [element; 2];
        } else {
            self.next[ends[1] as usize] = element;
            ends[1] = element;
        }
    }

    fn pop(&mut self, queue: u32) -> u32 {
        let ends = &mut self.ends[queue as usize];
        let oldest = ends[0];
        if oldest != ABSENT {
            ends[0] = self.next[oldest as usize];
            if ends[0] == ABSENT {
                self.idle.push(queue);
            }
        }
        oldest
    }

    fn sweep(&mut self) {
        for queue in std::mem::take(&mut self.idle) {
            if self.ends[queue as usize][0] == ABSENT {
                self.ends[queue as usize] = FREE;
                self.index.remove(queue);
            }
        }
    }
}

impl Arrivals {
    /// Makes the values of no groups.
    ///
    /// # Errors
    /// The values cannot be compared.
    pub(super) fn new(data_type: &ArrowType, keeps_nulls: bool, retracts: bool) -> Result<Arrivals> {
        let queues = || -> Result<Queues> {
            Ok(Queues { index: SlotValue::index()?, ends: Vec::new(), next: Vec::new(), idle: Vec::new() })
        };
        Ok(Arrivals {
            keeps_nulls,
            values: ValueStore::new(data_type)?,
            elements: Vec::new(),
            sequence: Vec::new(),
            free: Vec::new(),
            next_sequence: 0,
            chains: Chains::default(),
            counts: Vec::new(),
            tracker: SlotTracker::default(),
            queues: if retracts { Some(queues()?) } else { None },
            batch: Batch::default(),
            loaded: Vec::new(),
        })
    }

    /// Makes room for slots.
    pub(super) fn grow(&mut self, slot_count: usize) {
        self.chains.grow(slot_count);
        if self.counts.len() < slot_count {
            self.counts.resize(slot_count, 0);
        }
    }

    /// Finds the values of all rows of a batch.
    ///
    /// # Errors
    /// The column has another type.
    pub(super) fn begin_batch(&mut self, column: &ArrayRef, rows: &Rows<'_>) -> Result<()> {
        let nulls = column.logical_nulls().filter(|_| !self.keeps_nulls);
        let Batch { rows: selected, done, .. } = &mut self.batch;
        selected.clear();
        *done = 0;
        rows.for_each(nulls.as_ref(), |row, _, _| selected.push(row as u32));
        let slots: Vec<u32> = selected.iter().map(|row| rows.slots[*row as usize]).collect();
        let column = if selected.len() == column.len() {
            Arc::clone(column)
        } else {
            take(column, &UInt32Array::from(selected.clone()), None)?
        };
        self.batch.values = self.values.encode(&column, &slots)?;
        if let Some(queues) = &mut self.queues {
            self.batch.queues = queues.intern(&self.batch.values)?;
        }
        Ok(())
    }

    /// Adds and takes back rows; of one batch they come in order.
    pub(super) fn apply(&mut self, rows: &Rows<'_>) {
        rows.for_each(None, |row, slot, is_retraction| {
            let batch = &mut self.batch;
            while batch.rows.get(batch.done).is_some_and(|selected| (*selected as usize) < row) {
                batch.done += 1;
            }
            // A row that is not selected is NULL.
            if batch.rows.get(batch.done) != Some(&(row as u32)) {
                return;
            }
            let at = batch.done;
            if is_retraction {
                let oldest = match &mut self.queues {
                    Some(queues) => queues.pop(self.batch.queues[at]),
                    None => ABSENT,
                };
                if oldest != ABSENT {
                    self.remove(slot as u32, oldest);
                }
            } else {
                let queue = self.batch.queues.get(at).copied();
                let element = self.push(self.batch.values[at], self.next_sequence, queue);
                self.tracker.change(element);
            }
        });
    }

    /// Adds an element behind all others.
    fn push(&mut self, value: SlotValue, sequence: i64, queue: Option<u32>) -> u32 {
        self.next_sequence = sequence + 1;
        self.values.retain(value);
        let element = match self.free.pop() {
            Some(element) => {
                self.elements[element as usize] = value;
                self.sequence[element as usize] = sequence;
                element
            }
            None => {
                self.elements.push(value);
                self.sequence.push(sequence);
                self.elements.len() as u32 - 1
            }
        };
        self.chains.push(value.slot(), element);
        self.counts[value.slot() as usize] += 1;
        if let (Some(queues), Some(queue)) = (&mut self.queues, queue) {
            queues.push(queue, element);
        }
        element
    }

    fn remove(&mut self, slot: u32, element: u32) {
        self.chains.remove(slot, element);
        self.counts[slot as usize] -= 1;
        if self.tracker.release(element) {
            self.discard(element);
        }
    }

    fn discard(&mut self, element: u32) {
        self.values.release(self.elements[element as usize]);
        self.free.push(element);
    }

    /// Forgets all values of a group.
    ///
    /// # Errors
    /// The values cannot be found.
    pub(super) fn clear(&mut self, slot: u32) -> Result<()> {
        let elements: Vec<u32> = self.chains.iter(slot).collect();
        if elements.is_empty() {
            return Ok(());
        }
        if let Some(queues) = &mut self.queues {
            let values: Vec<SlotValue> =
                elements.iter().map(|element| self.elements[*element as usize]).collect();
            for queue in queues.intern(&values)? {
                queues.ends[queue as usize] = [ABSENT; 2];
                queues.idle.push(queue);
            }
        }
        elements.into_iter().for_each(|element| self.remove(slot, element));
        Ok(())
    }

    /// Ends a batch, or a round of `clear`.
    pub(super) fn sweep(&mut self) {
        if let Some(queues) = &mut self.queues {
            queues.sweep();
        }
        self.values.sweep();
    }

    /// Returns the oldest values of groups.
    ///
    /// # Errors
    /// The column cannot be built.
    pub(super) fn firsts(&self, slots: &[u32]) -> Result<ArrayRef> {
        self.decode_ends(slots, |slot| self.chains.first(slot))
    }

    /// Returns the newest values of groups.
    ///
    /// # Errors
    /// The column cannot be built.
    pub(super) fn lasts(&self, slots: &[u32]) -> Result<ArrayRef> {
        self.decode_ends(slots, |slot| self.chains.last(slot))
    }

    /// Returns the only values of groups.
    ///
    /// # Errors
    /// A group has two.
    pub(super) fn singles(&self, slots: &[u32]) -> Result<ArrayRef> {
        if slots.iter().any(|slot| self.counts[*slot as usize] > 1) {
            return Err(Error::data("SingleValueAggFunction received more than one element.")
                .class(FlinkClass::TABLE_RUNTIME));
        }
        self.firsts(slots)
    }

    fn decode_ends(&self, slots: &[u32], end: impl Fn(u32) -> u32) -> Result<ArrayRef> {
        let value = |slot: &u32| {
            let element = end(*slot);
            (element != ABSENT).then(|| self.elements[element as usize])
        };
        self.values.decode(&slots.iter().map(value).collect::<Vec<_>>())
    }

    /// Returns all values of groups behind each other, and how many each has.
    fn decode_all(&self, slots: &[u32]) -> Result<(ArrayRef, Vec<usize>)> {
        let elements = slots.iter().flat_map(|slot| self.chains.iter(*slot));
        let values: Vec<_> = elements.map(|element| Some(self.elements[element as usize])).collect();
        Ok((
            self.values.decode(&values)?,
            slots.iter().map(|slot| self.counts[*slot as usize] as usize).collect(),
        ))
    }

    /// Returns the values of groups as arrays; NULL where there are none.
    ///
    /// # Errors
    /// The column cannot be built.
    pub(super) fn arrays(&self, list_type: &ArrowType, slots: &[u32]) -> Result<ArrayRef> {
        let ArrowType::List(field) = list_type else {
            return Err(Error::internal("an array lies in Arrow as a list"));
        };
        let (values, lengths) = self.decode_all(slots)?;
        let nulls: NullBuffer = lengths.iter().map(|length| *length > 0).collect();
        let offsets = OffsetBuffer::from_lengths(lengths);
        let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
        Ok(Arc::new(ListArray::try_new(Arc::clone(field), offsets, values, nulls)?))
    }

    /// Returns the texts of groups with a separator between them; NULL where there are none.
    ///
    /// # Errors
    /// The values are no texts.
    pub(super) fn joined(&self, separator: &str, slots: &[u32]) -> Result<ArrayRef> {
        let (values, lengths) = self.decode_all(slots)?;
        let texts = values.as_string_opt::<i32>().ok_or_else(|| Error::internal("LISTAGG takes text"))?;
        let mut joined: Vec<Option<String>> = Vec::with_capacity(slots.len());
        let mut next = 0;
        for length in lengths {
            let mut text = String::new();
            for row in next..next + length {
                if row > next {
                    text.push_str(separator);
                }
                text.push_str(texts.value(row));
            }
            next += length;
            joined.push((length > 0).then_some(text));
        }
        Ok(Arc::new(joined.into_iter().collect::<StringArray>()))
    }

    /// Takes what a checkpoint has to write: the slots, numbers and values of elements, and the slots and numbers of those that
    /// have gone.
    ///
    /// # Errors
    /// Columns cannot be built.
    pub(super) fn take_changes(&mut self) -> Result<(Saved, Saved)> {
        let chains = &self.chains;
        let changed = self.tracker.take_changed(|element| chains.contains(element));
        let saved = |elements: &[u32], with_values: bool| -> Result<Saved> {
            let of = |element: &u32| self.elements[*element as usize];
            let sequence = elements.iter().map(|element| self.sequence[*element as usize]);
            let mut columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from_iter_values(sequence))];
            if with_values {
                columns.push(self.values.decode(&elements.iter().map(|e| Some(of(e))).collect::<Vec<_>>())?);
            }
            Ok(Saved { slots: elements.iter().map(|element| of(element).slot()).collect(), columns })
        };
        let taken = (saved(&changed.upserts, true)?, saved(&changed.deletes, false)?);
        changed.deletes.into_iter().for_each(|element| self.discard(element));
        self.values.sweep();
        Ok(taken)
    }

    /// Takes saved numbers and values; `finish_load` puts them in order.
    ///
    /// # Errors
    /// The columns are others.
    pub(super) fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let [sequence, values] = columns else {
            return Err(Error::internal("a value is saved with its number"));
        };
        let sequence = sequence
            .as_primitive_opt::<Int64Type>()
            .ok_or_else(|| Error::internal("the number of a value is a BIGINT"))?;
        let values = self.values.encode(values, slots)?;
        for value in &values {
            self.values.retain(*value);
        }
        self.loaded.extend(sequence.values().iter().copied().zip(values));
        Ok(())
    }

    /// Puts what was loaded in the order in which it came.
    ///
    /// # Errors
    /// There are too many.
    pub(super) fn finish_load(&mut self) -> Result<()> {
        let mut loaded = std::mem::take(&mut self.loaded);
        loaded.sort_unstable_by_key(|(sequence, _)| *sequence);
        let values: Vec<SlotValue> = loaded.iter().map(|(_, value)| *value).collect();
        let found = match &mut self.queues {
            Some(queues) => queues.intern(&values)?,
            None => Vec::new(),
        };
        for (row, (sequence, value)) in loaded.into_iter().enumerate() {
            let element = self.push(value, sequence, found.get(row).copied());
            self.values.release(value);
            self.tracker.load(element);
        }
        self.sweep();
        Ok(())
    }

    /// Returns how many bytes are allocated.
    pub(super) fn bytes(&self) -> usize {
        let queues = self.queues.as_ref().map_or(0, |queues| {
            queues.index.bytes()
                + queues.ends.capacity() * size_of::<[u32; 2]>()
                + (queues.next.capacity() + queues.idle.capacity()) * size_of::<u32>()
        });
        let numbers = self.free.capacity()
            + self.counts.capacity()
            + self.batch.rows.capacity()
            + self.batch.queues.capacity();
        self.values.bytes()
            + (self.elements.capacity() + self.batch.values.capacity()) * size_of::<SlotValue>()
            + self.sequence.capacity() * size_of::<i64>()
            + self.chains.bytes()
            + self.tracker.bytes()
            + queues
            + numbers * size_of::<u32>()
    }
}
