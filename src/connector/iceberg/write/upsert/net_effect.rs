//! What rows come to between two checkpoints: per key the last image, or that it is gone; of rows without a key, how many more or
//! fewer of each there are.
//!
//! Keys are slots of an index that belongs to whoever uses this: a key is hashed and looked up once, when its row comes, and its slot
//! then says both what becomes of it and where its earlier rows lie. Rows stay where they came, and only their numbers are noted;
//! when they take too much memory, those that have been replaced are dropped, and if that is not enough, all go to a file.

use std::borrow::Cow;

use arrow::datatypes::SchemaRef;

use super::row_buffer::{MemoryRows, Part, RowBuffer};
use crate::changelog::ChangelogBatch;
use crate::error::Result;
use crate::state::PagedVec;

/// The note of a slot that nothing has happened to.
const UNTOUCHED: u32 = 0;

/// The note of a slot without an image.
const NO_IMAGE: u32 = 1;

/// What is added to the number of an image's row to make the note.
const FIRST_ROW: u32 = 2;

/// Slots are sorted by their notes where they are more than one of so many: a note is looked at in a fraction of the time that a slot
/// takes to be sorted.
const SORTED_BY_NOTES: usize = 16;

/// What has happened to each slot.
#[derive(Debug)]
pub(super) struct NetEffect {
    rows: RowBuffer,
    /// By slot: a note.
    notes: PagedVec<u32>,
    /// By slot, where rows have no key: how many more of a row there are, or fewer.
    counts: Option<PagedVec<i32>>,
    /// Slots whose note is not `UNTOUCHED`, in the order of their first row.
    touched: Vec<u32>,
    bytes_max: usize,
}

/// What all rows came to.
#[derive(Debug)]
pub(super) struct NetChange {
    /// Every slot that a row came for: of keys in the order of slots, of rows without keys in that of their first row.
    pub(super) touched: Vec<u32>,
    /// The new images, part by part.
    pub(super) images: Vec<Images>,
    /// The slots of keys that are gone.
    pub(super) deleted: Vec<u32>,
    /// Where rows have no key: of which slots how many rows are to go.
    pub(super) retractions: Vec<(u32, u32)>,
    rows: RowBuffer,
}

/// Images that are written together.
#[derive(Debug)]
pub(super) struct Images {
    part: Part,
    /// The slot of every image; one that stands here twice is written twice.
    pub(super) slots: Vec<u32>,
    /// The number of every image's row.
    numbers: Vec<u32>,
}

impl NetEffect {
    /// Makes the net effect of rows with keys, which keeps about `bytes_max` bytes of them in memory.
    pub(super) fn of_keys(schema: SchemaRef, bytes_max: usize) -> NetEffect {
        NetEffect {
            rows: RowBuffer::new(schema),
            notes: PagedVec::default(),
            counts: None,
            touched: Vec::new(),
            bytes_max,
        }
    }

    /// Makes the net effect of rows without keys, where a slot stands for all equal rows.
    pub(super) fn of_rows(schema: SchemaRef, bytes_max: usize) -> NetEffect {
        NetEffect { counts: Some(PagedVec::default()), ..NetEffect::of_keys(schema, bytes_max) }
    }

    /// Returns whether no row came.
    pub(super) fn is_empty(&self) -> bool {
        self.touched.is_empty()
    }

    /// Returns how many bytes are allocated beside the rows, of which there are never more than may be.
    pub(super) fn bytes(&self) -> usize {
        let counts = self.counts.as_ref().map_or(0, PagedVec::bytes);
        self.notes.bytes() + counts + self.touched.capacity() * size_of::<u32>()
    }

    /// Takes rows, each with its slot. `slot_count` is how many slots there are.
    ///
    /// # Errors
    /// There are 4 billion rows.
    pub(super) fn add(&mut self, slots: &[u32], slot_count: usize, batch: ChangelogBatch) -> Result<()> {
        let (rows, kinds) = batch.into_parts();
        let first = self.rows.push(rows)? + FIRST_ROW;
        self.notes.grow(slot_count, UNTOUCHED);
        if let Some(counts) = &mut self.counts {
            counts.grow(slot_count, 0);
            for (row, slot) in slots.iter().enumerate() {
                counts[*slot as usize] += if is_retraction(kinds.as_deref(), row) { -1 } else { 1 };
            }
        }
        // Which rows are the first of their slot cannot be foretold, so each is listed, and the next one takes the place of another.
        let mut touched = self.touched.len();
        self.touched.resize(touched + slots.len(), 0);
        let keeps_image = self.counts.is_some();
        for (row, slot) in slots.iter().enumerate() {
            let note = &mut self.notes[*slot as usize];
            self.touched[touched] = *slot;
            touched += usize::from(*note == UNTOUCHED);
            let without = if keeps_image && *note != UNTOUCHED { *note } else { NO_IMAGE };
            *note = if is_retraction(kinds.as_deref(), row) { without } else { first + row as u32 };
        }
        self.touched.truncate(touched);
        Ok(())
    }

    /// Makes room if rows take too much memory.
    ///
    /// # Errors
    /// Temporary files cannot be written.
    pub(super) async fn make_room(&mut self) -> Result<()> {
        if self.rows.bytes() <= self.bytes_max {
            return Ok(());
        }
        let first = self.rows.spilled_count() as u32;
        let kept = self.images(|number| number >= first);
        self.rows.retain_in_memory(&numbers(&kept))?;
        self.renumber(&kept, first);
        // Half of the room is to be free, or there would soon be none again.
        if self.rows.bytes() <= self.bytes_max / 2 {
            return Ok(());
        }
        self.rows.spill().await?;
        let live = self.images(|_| true);
        if live.len() * 2 < self.rows.spilled_count() {
            self.rewrite(&live).await?;
        }
        Ok(())
    }

    /// Takes out what has happened.
    pub(super) fn take(&mut self) -> NetChange {
        let rows = RowBuffer::new(self.rows.schema());
        let rows = std::mem::replace(&mut self.rows, rows);
        let mut touched = std::mem::take(&mut self.touched);
        if self.counts.is_none() {
            // Rows with keys are written in another order than they came in, and what lies by slot is looked at again and again.
            self.sort(&mut touched);
        }
        let parts = rows.parts();
        let mut images: Vec<Images> = Vec::with_capacity(parts.len());
        images.extend(parts.into_iter().map(|part| Images { part, slots: Vec::new(), numbers: Vec::new() }));
        let (mut deleted, mut retractions) = (Vec::new(), Vec::new());
        for slot in &touched {
            let note = std::mem::replace(&mut self.notes[*slot as usize], UNTOUCHED);
            let count = match &mut self.counts {
                Some(counts) => std::mem::take(&mut counts[*slot as usize]),
                None => i32::from(note >= FIRST_ROW),
            };
            if count < 0 {
                retractions.push((*slot, count.unsigned_abs()));
                continue;
            }
            if count == 0 && self.counts.is_none() {
                deleted.push(*slot);
                continue;
            }
            let number = note.wrapping_sub(FIRST_ROW);
            // There are few parts, and mostly one.
            if let Some(images) = images.iter_mut().find(|images| images.part.holds(number)) {
                images.slots.extend(std::iter::repeat_n(*slot, count as usize));
                images.numbers.extend(std::iter::repeat_n(number, count as usize));
            }
        }
        images.retain(|images| !images.slots.is_empty());
        NetChange { touched, images, deleted, retractions, rows }
    }

    /// Sorts the slots that rows came for. Where they are many of all, to look at each slot is less work than to compare them.
    fn sort(&self, touched: &mut [u32]) {
        if touched.len() < self.notes.len() / SORTED_BY_NOTES {
            touched.sort_unstable();
            return;
        }
        let noted = self.notes.iter().zip(0..).filter(|(note, _)| *note != UNTOUCHED);
        touched.iter_mut().zip(noted).for_each(|(touched, (_, slot))| *touched = slot);
    }

    /// Returns the rows that are images, by number, and their slots.
    fn images(&self, is_wanted: impl Fn(u32) -> bool) -> Vec<(u32, u32)> {
        let is_live = |slot: u32| self.counts.as_ref().is_none_or(|counts| counts[slot as usize] > 0);
        let image = |slot: &u32| {
            let note = self.notes[*slot as usize];
            (note >= FIRST_ROW && is_live(*slot)).then(|| (note - FIRST_ROW, *slot))
        };
        let images = self.touched.iter().filter_map(image);
        let mut images: Vec<(u32, u32)> = images.filter(|(number, _)| is_wanted(*number)).collect();
        images.sort_unstable();
        images
    }

    /// Gives rows the numbers from `first` on.
    fn renumber(&mut self, images: &[(u32, u32)], first: u32) {
        for ((_, slot), number) in images.iter().zip(first..) {
            self.notes[*slot as usize] = FIRST_ROW + number;
        }
    }

    /// Writes what is left of the files anew.
    async fn rewrite(&mut self, live: &[(u32, u32)]) -> Result<()> {
        let before = self.rows.take_spilled();
        for part in before.parts() {
            let kept: Vec<(u32, u32)> =
                live.iter().copied().filter(|(number, _)| part.holds(*number)).collect();
            let first = self.rows.row_count() as u32;
            for piece in before.part(part).await?.pieces(&numbers(&kept)) {
                self.rows.push(piece?)?;
            }
            self.renumber(&kept, first);
            if self.rows.bytes() > self.bytes_max / 2 {
                self.rows.spill().await?;
            }
        }
        Ok(())
    }
}

impl NetChange {
    /// Returns the rows among which images are.
    ///
    /// # Errors
    /// A temporary file cannot be read.
    pub(super) async fn rows_of(&self, images: &Images) -> Result<Cow<'_, MemoryRows>> {
        self.rows.part(images.part).await
    }
}

impl Images {
    /// Returns the numbers of the images' rows in an order: positions in `slots`.
    pub(super) fn numbers(&self, order: &[u32]) -> Vec<u32> {
        order.iter().map(|at| self.numbers[*at as usize]).collect()
    }
}

/// Returns the numbers of images.
fn numbers(images: &[(u32, u32)]) -> Vec<u32> {
    images.iter().map(|(number, _)| *number).collect()
}

/// Returns whether a row takes something away: the low bit of its kind says so.
#[inline]
fn is_retraction(kinds: Option<&[u8]>, row: usize) -> bool {
    kinds.is_some_and(|kinds| kinds[row] & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changelog::RowKind;
    use crate::connector::testing::block_on;
    use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
    use arrow::datatypes::Int64Type;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    /// Rows `(kind, slot, value)`; the slot is in a column, too.
    fn batch(rows: &[(RowKind, u32, i64)]) -> ChangelogBatch {
        let slots = Int64Array::from_iter_values(rows.iter().map(|(_, slot, _)| i64::from(*slot)));
        let values = Int64Array::from_iter_values(rows.iter().map(|(.., value)| *value));
        let texts: StringArray = rows.iter().map(|(.., value)| Some(value.to_string())).collect();
        let columns: [(&str, ArrayRef); 3] =
            [("slot", Arc::new(slots)), ("value", Arc::new(values)), ("text", Arc::new(texts))];
        let rows_of = RecordBatch::try_from_iter(columns).unwrap();
        ChangelogBatch::with_kinds(rows_of, rows.iter().map(|(kind, ..)| *kind))
    }

    fn add(net: &mut NetEffect, rows: &[(RowKind, u32, i64)]) {
        let slots: Vec<u32> = rows.iter().map(|(_, slot, _)| *slot).collect();
        net.add(&slots, 100, batch(rows)).unwrap();
    }

    /// Returns the images as `(slot, value)`, in the order of slots, and checks that rows are those of their slots.
    fn images(change: &NetChange) -> Vec<(u32, i64)> {
        let mut found = Vec::new();
        for images in &change.images {
            let order: Vec<u32> = (0..images.slots.len() as u32).rev().collect();
            let rows = block_on(change.rows_of(images)).unwrap();
            let rows: Vec<RecordBatch> = rows.pieces(&images.numbers(&order)).map(Result::unwrap).collect();
            let values = |column: usize| {
                let values = |rows: &RecordBatch| rows.column(column).as_primitive::<Int64Type>().clone();
                rows.iter().flat_map(|rows| values(rows).values().to_vec()).collect::<Vec<i64>>()
            };
            let (slots, images_of) = (values(0), values(1));
            let expected: Vec<i64> = order.iter().map(|at| i64::from(images.slots[*at as usize])).collect();
            assert_eq!(slots, expected);
            assert!(rows.iter().all(|rows| rows.column(2).null_count() == 0));
            found.extend(slots.into_iter().map(|slot| slot as u32).zip(images_of));
        }
        found.sort_unstable();
        found
    }

    fn net(is_keyed: bool, bytes_max: usize) -> NetEffect {
        let schema = batch(&[]).rows().schema();
        if is_keyed { NetEffect::of_keys(schema, bytes_max) } else { NetEffect::of_rows(schema, bytes_max) }
    }

    #[test]
    fn the_last_image_of_a_key_counts() {
        use RowKind::{Delete, Insert, UpdateAfter, UpdateBefore};
        let mut net = net(true, 1 << 20);
        assert!(net.is_empty());
        add(&mut net, &[(Insert, 1, 10), (Insert, 2, 20), (UpdateBefore, 1, 10), (UpdateAfter, 1, 11)]);
        add(&mut net, &[(Delete, 2, 20), (Delete, 3, 30), (Delete, 4, 40), (Insert, 4, 41)]);
        let change = net.take();
        assert_eq!(change.touched, [1, 2, 3, 4]);
        assert_eq!(images(&change), [(1, 11), (4, 41)]);
        assert_eq!(change.deleted, [2, 3]);
        assert!(net.is_empty());
        add(&mut net, &[(UpdateAfter, 2, 21)]);
        let change = net.take();
        assert_eq!((change.touched.clone(), images(&change)), (vec![2], vec![(2, 21)]));
    }

    #[test]
    fn rows_without_a_key_are_counted() {
        use RowKind::{Delete, Insert};
        let mut net = net(false, 1 << 20);
        add(&mut net, &[(Insert, 1, 10), (Insert, 1, 10), (Insert, 2, 20), (Delete, 3, 30), (Delete, 3, 30)]);
        add(&mut net, &[(Delete, 2, 20), (Delete, 1, 10), (Insert, 1, 10), (Delete, 4, 4), (Insert, 4, 4)]);
        let change = net.take();
        assert_eq!(images(&change), [(1, 10), (1, 10)]);
        assert_eq!(change.retractions, [(3, 2)]);
    }

    #[test]
    fn what_was_replaced_takes_no_room() {
        let mut net = net(true, 4_000);
        for value in 0..200 {
            add(&mut net, &[(RowKind::Insert, 1, value), (RowKind::Insert, 2, -value)]);
            block_on(net.make_room()).unwrap();
            assert!(net.rows.bytes() <= 4_000 && net.rows.spilled_count() == 0);
        }
        assert_eq!(images(&net.take()), [(1, 199), (2, -199)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn however_little_memory_there_is_the_effect_is_the_same(
            steps in prop::collection::vec(prop::collection::vec((0_u8..4, 0_u32..60, 0_i64..3), 0..40), 1..30),
            bytes_max in 100_usize..3_000,
            is_keyed: bool,
        ) {
            let mut net = net(is_keyed, bytes_max);
            let mut images_of: BTreeMap<u32, Option<i64>> = BTreeMap::new();
            let mut counts: BTreeMap<u32, i64> = BTreeMap::new();
            for step in &steps {
                // Where there is no key, equal slots are equal rows.
                let value = |slot: u32, value: i64| if is_keyed { value } else { i64::from(slot) };
                let rows: Vec<(RowKind, u32, i64)> = step.iter()
                    .map(|(kind, slot, of)| (RowKind::from_byte(*kind), *slot, value(*slot, *of)))
                    .collect();
                for (kind, slot, value) in &rows {
                    images_of.insert(*slot, (!kind.is_retraction()).then_some(*value));
                    *counts.entry(*slot).or_default() += if kind.is_retraction() { -1 } else { 1 };
                }
                add(&mut net, &rows);
                block_on(net.make_room()).unwrap();
            }
            let change = net.take();
            let mut touched = change.touched.clone();
            touched.sort_unstable();
            prop_assert_eq!(touched, images_of.keys().copied().collect::<Vec<_>>());
            let expected: Vec<(u32, i64)> = if is_keyed {
                images_of.iter().filter_map(|(slot, value)| Some((*slot, (*value)?))).collect()
            } else {
                let repeat = |(slot, count): (&u32, &i64)| vec![(*slot, i64::from(*slot)); (*count).max(0) as usize];
                counts.iter().flat_map(repeat).collect()
            };
            prop_assert_eq!(images(&change), expected);
            if !is_keyed {
                let mut retractions = change.retractions.clone();
                retractions.sort_unstable();
                let gone = counts.iter().filter(|(_, count)| **count < 0);
                prop_assert_eq!(retractions, gone.map(|(slot, count)| (*slot, -*count as u32)).collect::<Vec<_>>());
            }
        }
    }
}
