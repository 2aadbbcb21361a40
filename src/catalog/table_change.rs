//! What ALTER TABLE does, step by step: a catalog that knows columns by more than their names cannot tell a renamed column from a
//! dropped and an added one by looking at the definitions before and after.

use crate::schema::{Column, PrimaryKey};

/// Where ADD or MODIFY puts a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnPosition {
    /// In front of all others.
    First,
    /// Behind the column of this name.
    After(String),
}

/// One step. Those of one statement follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableChange {
    /// A new column, at the end where no position is given.
    AddColumn {
        /// The column.
        column: Column,
        /// Where it comes.
        position: Option<ColumnPosition>,
    },
    /// Another type, comment or place for the column of that name.
    ModifyColumn {
        /// What it becomes.
        column: Column,
        /// Where it goes; None leaves it where it is.
        position: Option<ColumnPosition>,
    },
    /// Another name for a column.
    RenameColumn {
        /// The old name.
        from: String,
        /// The new name.
        to: String,
    },
    /// A column goes.
    DropColumn(String),
    /// A key where there was none.
    AddPrimaryKey(PrimaryKey),
    /// Another key.
    ModifyPrimaryKey(PrimaryKey),
    /// The key goes; its columns stay.
    DropPrimaryKey,
    /// A watermark comes, changes or goes.
    Watermark(ChangeKind),
    /// A distribution comes, changes or goes.
    Distribution(ChangeKind),
    /// An option gets a value.
    SetOption {
        /// The key.
        key: String,
        /// The value.
        value: String,
    },
    /// An option goes.
    ResetOption(String),
}

/// What happens to something that a table has at most once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It comes.
    Add,
    /// It changes.
    Modify,
    /// It goes.
    Drop,
}

impl TableChange {
    /// Returns what Flink calls the step in messages.
    pub fn flink_name(&self) -> &'static str {
        match self {
            TableChange::AddColumn { .. } => "AddColumn",
            TableChange::ModifyColumn { .. } => "ModifyColumn",
            TableChange::RenameColumn { .. } => "ModifyColumnName",
            TableChange::DropColumn(_) => "DropColumn",
            TableChange::AddPrimaryKey(_) => "AddUniqueConstraint",
            TableChange::ModifyPrimaryKey(_) => "ModifyUniqueConstraint",
            TableChange::DropPrimaryKey => "DropConstraint",
            TableChange::Watermark(ChangeKind::Add) => "AddWatermark",
            TableChange::Watermark(ChangeKind::Modify) => "ModifyWatermark",
            TableChange::Watermark(ChangeKind::Drop) => "DropWatermark",
            TableChange::Distribution(ChangeKind::Add) => "AddDistribution",
            TableChange::Distribution(ChangeKind::Modify) => "ModifyDistribution",
            TableChange::Distribution(ChangeKind::Drop) => "DropDistribution",
            TableChange::SetOption { .. } => "SetOption",
            TableChange::ResetOption(_) => "ResetOption",
        }
    }
}
