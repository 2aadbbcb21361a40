//! Columns that changed after files were written.
