//! Which row kinds a node may produce, or a sink takes.

use std::fmt;

use super::RowKind;

/// A set of row kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChangelogMode(u8);

impl ChangelogMode {
    /// Only `+I`.
    pub const INSERT_ONLY: ChangelogMode = ChangelogMode(0b0001);
    /// `+I`, `+U` and `-D`: updates without their earlier version.
    pub const UPSERT: ChangelogMode = ChangelogMode(0b1101);
    /// All four kinds.
    pub const ALL: ChangelogMode = ChangelogMode(0b1111);

    /// Returns the set of the given kinds.
    pub fn of(kinds: &[RowKind]) -> ChangelogMode {
        ChangelogMode(kinds.iter().fold(0, |set, kind| set | 1 << *kind as u8))
    }

    /// Returns whether a kind is in the set.
    pub fn contains(self, kind: RowKind) -> bool {
        self.0 & 1 << kind as u8 != 0
    }

    /// Returns whether all kinds of this set are in the other.
    pub fn is_subset_of(self, other: ChangelogMode) -> bool {
        self.0 & !other.0 == 0
    }

    /// Returns the set without a kind.
    #[must_use]
    pub fn without(self, kind: RowKind) -> ChangelogMode {
        ChangelogMode(self.0 & !(1 << kind as u8))
    }

    /// Returns the kinds of both.
    #[must_use]
    pub fn union(self, other: ChangelogMode) -> ChangelogMode {
        ChangelogMode(self.0 | other.0)
    }
}

/// Prints as EXPLAIN does: `[I,UB,UA,D]`.
impl fmt::Display for ChangelogMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (RowKind::Insert, "I"),
            (RowKind::UpdateBefore, "UB"),
            (RowKind::UpdateAfter, "UA"),
            (RowKind::Delete, "D"),
        ];
        let present: Vec<&str> =
            names.iter().filter(|(kind, _)| self.contains(*kind)).map(|(_, name)| *name).collect();
        write!(f, "[{}]", present.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_sets_and_print_as_explain_does() {
        assert_eq!(ChangelogMode::ALL.to_string(), "[I,UB,UA,D]");
        assert_eq!(ChangelogMode::UPSERT.to_string(), "[I,UA,D]");
        assert!(ChangelogMode::INSERT_ONLY.is_subset_of(ChangelogMode::UPSERT));
        assert!(!ChangelogMode::ALL.is_subset_of(ChangelogMode::UPSERT));
        assert_eq!(ChangelogMode::ALL.without(RowKind::UpdateBefore), ChangelogMode::UPSERT);
    }
}
