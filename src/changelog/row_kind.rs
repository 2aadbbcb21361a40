//! What a row in a changelog says. The byte is Flink's `RowKind.toByteValue`; its low bit is the sign.

use std::fmt;

/// What a row does to the table that a changelog describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RowKind {
    /// Adds a row: `+I`.
    Insert = 0,
    /// Takes back the earlier version of a row: `-U`.
    UpdateBefore = 1,
    /// Adds the later version of a row: `+U`.
    UpdateAfter = 2,
    /// Takes a row away: `-D`.
    Delete = 3,
}

impl RowKind {
    /// Returns the kind of a byte.
    ///
    /// Bytes above 3 do not occur: every writer of kinds goes through this type.
    pub fn from_byte(byte: u8) -> RowKind {
        match byte & 3 {
            0 => RowKind::Insert,
            1 => RowKind::UpdateBefore,
            2 => RowKind::UpdateAfter,
            _ => RowKind::Delete,
        }
    }

    /// Returns `+I`, `-U`, `+U` or `-D`.
    pub fn short_string(self) -> &'static str {
        match self {
            RowKind::Insert => "+I",
            RowKind::UpdateBefore => "-U",
            RowKind::UpdateAfter => "+U",
            RowKind::Delete => "-D",
        }
    }

    /// Returns whether the row takes something away.
    pub fn is_retraction(self) -> bool {
        self as u8 & 1 == 1
    }
}

impl fmt::Display for RowKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.short_string())
    }
}
