//! What to say when the first rows of a partition have changed.
//!
//! With a rank, or with rows left out at the front, Flink compares the lists place by place; else only rows that enter and leave
//! count. Over a single input row that is also the order in which Flink speaks, and it tells equal rows apart; over more rows equal
//! ones cancel, and everything is taken back before anything is added.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::ranking::Ranked;
use crate::changelog::RowKind;

/// How two lists are compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Comparison {
    /// Place by place.
    pub(super) is_positional: bool,
    /// How many places at the front do not count.
    pub(super) skip: usize,
    /// The list has changed by one input row.
    pub(super) is_exact: bool,
    /// Whether `-U` is wanted.
    pub(super) emits_update_before: bool,
    /// Which rows that leave and enter belong together.
    pub(super) pairing: Pairing,
}

/// Which rows belong together of those that leave and enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pairing {
    /// None: what enters is never what has left.
    Nothing,
    /// Equal ones, of which there is nothing to say.
    EqualRows,
    /// Versions of one row, which are an update.
    Versions,
}

/// What is known of rows by their numbers.
pub(super) trait Rows {
    /// Compares the places of two rows of a partition.
    fn order(&self, a: Ranked, b: Ranked) -> Ordering;
    /// Returns a row's bytes.
    fn row(&self, number: u32) -> &[u8];
    /// Returns whether one row is a newer version of the other.
    fn is_update(&self, before: u32, now: u32) -> bool;
}

/// A list of changes: kind, row, rank.
pub(super) type Changes = Vec<(RowKind, u32, u64)>;

impl Comparison {
    /// Adds what has changed between two lists, which hold the rows up to the last rank.
    pub(super) fn compare(&self, rows: &impl Rows, before: &[Ranked], now: &[Ranked], changes: &mut Changes) {
        let start = changes.len();
        if self.is_positional {
            self.compare_places(rows, before, now, changes);
        } else {
            self.compare_rows(rows, before, now, changes);
        }
        if !self.is_exact {
            changes[start..].sort_by_key(|(kind, ..)| !kind.is_retraction());
        }
    }

    fn update(&self, rows: &impl Rows, before: Ranked, now: Ranked, rank: u64, changes: &mut Changes) {
        let (is_moved, before, now) = (before.prefix != now.prefix, before.number, now.number);
        if !self.is_exact && !is_moved && rows.row(before) == rows.row(now) {
            return;
        }
        if self.emits_update_before {
            changes.push((RowKind::UpdateBefore, before, rank));
        }
        changes.push((RowKind::UpdateAfter, now, rank));
    }

    fn compare_places(&self, rows: &impl Rows, before: &[Ranked], now: &[Ranked], changes: &mut Changes) {
        for place in self.skip..before.len().max(now.len()) {
            let rank = place as u64 + 1;
            match (before.get(place), now.get(place)) {
                (Some(before), Some(now)) if before == now => {}
                (Some(before), Some(now)) => self.update(rows, *before, *now, rank, changes),
                (None, Some(now)) => changes.push((RowKind::Insert, now.number, rank)),
                (Some(before), None) => changes.push((RowKind::Delete, before.number, rank)),
                (None, None) => {}
            }
        }
    }

    fn compare_rows(&self, rows: &impl Rows, before: &[Ranked], now: &[Ranked], changes: &mut Changes) {
        let (mut left, mut entered) = self.unmatched(rows, before, now);
        match self.pairing {
            Pairing::Nothing => {}
            Pairing::EqualRows if self.is_exact => {}
            Pairing::EqualRows => cancel_equal(rows, &mut left, &mut entered),
            Pairing::Versions => entered.retain(|now| {
                let version = left.iter().position(|before| rows.is_update(before.number, now.number));
                if let Some(at) = version {
                    self.update(rows, left.remove(at), *now, 0, changes);
                }
                version.is_none()
            }),
        }
        changes.extend(left.into_iter().map(|row| (RowKind::Delete, row.number, 0)));
        changes.extend(entered.into_iter().map(|row| (RowKind::Insert, row.number, 0)));
    }

    /// Returns the rows that are in one list only, by walking along both, which have the same order.
    fn unmatched(&self, rows: &impl Rows, before: &[Ranked], now: &[Ranked]) -> (Vec<Ranked>, Vec<Ranked>) {
        let mut before = before.get(self.skip..).unwrap_or_default().iter().copied().peekable();
        let mut now = now.get(self.skip..).unwrap_or_default().iter().copied().peekable();
        let (mut left, mut entered) = (Vec::new(), Vec::new());
        while let (Some(a), Some(b)) = (before.peek(), now.peek()) {
            if a == b {
                before.next();
                now.next();
                continue;
            }
            let order = rows.order(*a, *b);
            if order.is_le() {
                left.extend(before.next());
            }
            if order.is_ge() {
                entered.extend(now.next());
            }
        }
        left.extend(before);
        entered.extend(now);
        (left, entered)
    }
}

/// Takes out pairs of equal rows.
fn cancel_equal(rows: &impl Rows, left: &mut Vec<Ranked>, entered: &mut Vec<Ranked>) {
    if left.is_empty() || entered.is_empty() {
        return;
    }
    let mut counts: HashMap<&[u8], usize> = HashMap::new();
    left.iter().for_each(|row| *counts.entry(rows.row(row.number)).or_default() += 1);
    let mut cancelled: HashMap<&[u8], usize> = HashMap::new();
    entered.retain(|row| match counts.get_mut(rows.row(row.number)) {
        Some(count) if *count > 0 => {
            *count -= 1;
            *cancelled.entry(rows.row(row.number)).or_default() += 1;
            false
        }
        _ => true,
    });
    left.retain(|row| match cancelled.get_mut(rows.row(row.number)) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    });
}
