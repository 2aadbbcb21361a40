//! COPY in binary form to columns. The server sends a row at a time; rows are gathered until there are enough of them to read column by
//! column, so that what a column's type asks for is decided once per some hundred rows.

use bytes::Bytes;

use super::column_binding::{ColumnBinding, ServerColumn, bind, qualified, text_expression};
use super::pg_types::PgTypes;
use super::row_builder::{RowBuilder, RowOrigin};
use super::row_shape::RowShape;
use super::table::PgTable;
use super::values::Cells;
use crate::changelog::{ChangelogBatch, RowKind};
use crate::error::{Error, Result};

/// How the rows of one table are copied into those of a declared table.
#[derive(Debug, Clone)]
pub(super) struct CopyPlan {
    shape: RowShape,
    columns: Vec<ColumnBinding>,
    select_list: String,
    database: String,
    schema: String,
    table: String,
}

impl CopyPlan {
    /// Plans the copying of a table of a database.
    ///
    /// # Errors
    /// A declared column is not there, or cannot be read.
    pub(super) fn new(
        shape: &RowShape,
        table: &PgTable,
        types: &PgTypes,
        database: &str,
    ) -> Result<CopyPlan> {
        let server: Vec<ServerColumn<'_>> = table.columns.iter().map(ServerColumn::from).collect();
        let columns = bind(shape, &table.label(), &server, types)?;
        let selected = columns.iter().map(|binding| {
            let column = qualified(server[binding.position].name);
            let Some(form) = binding.reader.binary() else {
                return Ok(text_expression(types, &binding.source, &column));
            };
            // The type that is planned for, also when somebody changes it between two chunks.
            Ok(form.expression(&format!("{column}::{}", readable_type(types, binding.source.oid)?)))
        });
        let selected = selected.collect::<Result<Vec<String>>>()?;
        Ok(CopyPlan {
            shape: shape.clone(),
            columns,
            select_list: selected.join(", "),
            database: database.to_owned(),
            schema: table.schema.clone(),
            table: table.name.clone(),
        })
    }

    /// Returns what is selected of the table, which must have the alias `t`, for `COPY (SELECT … FROM … t) TO STDOUT (FORMAT binary)`.
    /// Empty where no column is read, as SELECT allows it.
    pub(super) fn select_list(&self) -> &str {
        &self.select_list
    }
}

/// Returns the type as which values are copied that have a type below all domains, for everybody: who may read a table need not have the
/// right to name the types of its columns. Those of extensions that are copied in binary form are texts below.
fn readable_type(types: &PgTypes, oid: u32) -> Result<String> {
    match types.get(oid) {
        Some(known) if known.schema != "pg_catalog" => Ok("pg_catalog.text".to_owned()),
        _ => types.sql(oid),
    }
}

/// What begins a stream.
const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";
/// Rows are read when there are so many of them,
const BLOCK_ROWS: usize = 512;
/// or so many bytes: both fit into the caches of a core.
const BLOCK_BYTES: usize = 128 * 1024;

/// Where a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Header,
    Rows,
    End,
}

/// Decodes one COPY.
#[derive(Debug)]
pub(super) struct CopyDecoder {
    plan: CopyPlan,
    rows: RowBuilder,
    phase: Phase,
    /// What has come and is not in columns yet.
    buffer: Vec<u8>,
    /// Where the first row that is not whole begins in it.
    scanned: usize,
    /// Where the values of whole rows are in it, row by row.
    fields: Vec<(u32, i32)>,
    /// How many whole rows there are in it.
    waiting_rows: usize,
    /// How many bytes the rows since the last batch took.
    byte_size: usize,
}

impl CopyDecoder {
    pub(super) fn new(plan: &CopyPlan) -> CopyDecoder {
        CopyDecoder {
            rows: RowBuilder::new(&plan.shape),
            plan: plan.clone(),
            phase: Phase::Header,
            buffer: Vec::new(),
            scanned: 0,
            fields: Vec::new(),
            waiting_rows: 0,
            byte_size: 0,
        }
    }

    /// Takes the next bytes of the stream, cut anywhere.
    ///
    /// # Errors
    /// It is no COPY in binary form, or a value cannot be read. The decoder is of no use then.
    pub(super) fn push(&mut self, bytes: &Bytes) -> Result<()> {
        self.byte_size += bytes.len();
        self.buffer.extend_from_slice(bytes);
        self.scan()?;
        if self.waiting_rows >= BLOCK_ROWS || self.scanned >= BLOCK_BYTES {
            self.read_block()?;
        }
        Ok(())
    }

    /// Returns how many whole rows have come since the last batch.
    pub(super) fn row_count(&self) -> usize {
        self.rows.row_count() + self.waiting_rows
    }

    /// Returns how many bytes have come since the last batch.
    pub(super) fn byte_size(&self) -> usize {
        self.byte_size
    }

    /// Returns the whole rows that have come since the last batch.
    ///
    /// # Errors
    /// A value cannot be read.
    pub(super) fn take(&mut self) -> Result<ChangelogBatch> {
        self.read_block()?;
        self.byte_size = 0;
        self.rows.finish(|_| Ok(()))
    }

    /// Checks that the stream has come to its end.
    ///
    /// # Errors
    /// It broke off.
    pub(super) fn expect_end(&self) -> Result<()> {
        if self.phase == Phase::End { Ok(()) } else { Err(self.malformed("its end is missing")) }
    }

    /// Finds the values of the rows that are whole.
    fn scan(&mut self) -> Result<()> {
        if self.phase == Phase::Header && !self.scan_header()? {
            return Ok(());
        }
        let width = self.plan.columns.len();
        while self.phase == Phase::Rows {
            let Some((count, mut rest)) = self.buffer[self.scanned..].split_first_chunk() else { break };
            let count = i16::from_be_bytes(*count);
            if count == -1 {
                self.phase = Phase::End;
                self.scanned += 2;
                break;
            }
            if usize::try_from(count) != Ok(width) {
                return Err(self.malformed(&format!("a row has {count} columns instead of {width}")));
            }
            let known = self.fields.len();
            while self.fields.len() < known + width {
                let Some((length, behind)) = rest.split_first_chunk() else { break };
                let length = i32::from_be_bytes(*length);
                let Some(behind) = behind.get(length.max(0) as usize..) else { break };
                // A row has less than 1 GB, so offsets within some rows fit.
                let start = self.buffer.len() - behind.len() - length.max(0) as usize;
                self.fields.push((start as u32, length));
                rest = behind;
            }
            if self.fields.len() < known + width {
                self.fields.truncate(known);
                break;
            }
            self.scanned = self.buffer.len() - rest.len();
            self.waiting_rows += 1;
        }
        if self.phase == Phase::End && self.scanned != self.buffer.len() {
            return Err(self.malformed("something follows its end"));
        }
        Ok(())
    }

    /// Takes the header; returns whether it is whole.
    fn scan_header(&mut self) -> Result<bool> {
        const LENGTH: usize = SIGNATURE.len() + 8;
        let Some(header) = self.buffer.get(..LENGTH) else { return Ok(false) };
        let (signature, numbers) = header.split_at(SIGNATURE.len());
        let number =
            |at: usize| numbers[at..at + 4].iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
        // The upper flags change what a row looks like.
        if signature != SIGNATURE || number(0) >> 16 != 0 {
            return Err(self.malformed("it begins in another way"));
        }
        let end = LENGTH + number(4) as usize;
        if self.buffer.len() < end {
            return Ok(false);
        }
        (self.phase, self.scanned) = (Phase::Rows, end);
        Ok(true)
    }

    /// Reads the whole rows into the columns.
    fn read_block(&mut self) -> Result<()> {
        let width = self.plan.columns.len();
        let cells = Cells { bytes: &self.buffer, fields: &self.fields, width: width.max(1), position: 0 };
        for (position, binding) in self.plan.columns.iter_mut().enumerate() {
            let cells = Cells { position, ..cells };
            let is_binary = binding.reader.binary().is_some();
            let pushed = binding.reader.push_block(cells, is_binary, &mut self.rows.columns[position]);
            if let Err((row, fault)) = pushed {
                let value = cells.values().nth(row).flatten().unwrap_or_default();
                let shown = binding.reader.shown(value, is_binary);
                let place = format!("{}.{}", self.plan.schema, self.plan.table);
                let column = &self.plan.shape.physical[position];
                return Err(fault.to_error(&place, column, &binding.source.name, &shown));
            }
        }
        let plan = &self.plan;
        // Flink gives rows of a snapshot no time.
        let origin =
            RowOrigin { commit_time: 0, database: &plan.database, schema: &plan.schema, table: &plan.table };
        self.rows.end_rows(self.waiting_rows, RowKind::Insert, origin);
        self.buffer.drain(..self.scanned);
        (self.scanned, self.waiting_rows) = (0, 0);
        self.fields.clear();
        Ok(())
    }

    fn malformed(&self, why: &str) -> Error {
        let (schema, table) = (&self.plan.schema, &self.plan.table);
        Error::data(format!("the copy of table {schema}.{table} cannot be read: {why}")).hint(
            "The connection has damaged it or broken off, or the server's COPY has a form that is not known.",
        )
    }
}

#[cfg(test)]
mod tests;
