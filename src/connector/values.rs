//! `values`: a table of rows that stand in its options. For tests only: it is how they get changelogs, and sources that stay
//! open, without any service.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::rows_decoder::RowsDecoder;
use super::{
    Boundedness, CheckpointId, Committable, Committer, DynamicTableSink, DynamicTableSource, FactoryContext,
    Frame, FrameDecoder, NoCommitter, Projection, SinkWriter, SourceEvent, SourcePosition, SourceReader,
    TableFactory, WriterContext,
};
use crate::changelog::{ChangelogBatch, ChangelogMode, RowKind};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{FormatContext, FrameOrigin, format_factory};
use crate::options::{ConfigOption, OptionDef, OptionValue, TableOptions, time_zone};
use crate::schema::Column;

const ROWS: ConfigOption<String> = ConfigOption::with_default(
    "rows",
    "[]",
    "The rows as a JSON array of arrays or objects; with 'changelog-mode' an array begins with its kind, such as \"+I\".",
);
const CHANGELOG_MODE: ConfigOption<Mode> =
    ConfigOption::optional("changelog-mode", "Which kinds of rows there are: I, I,UA,D or I,UB,UA,D.");
const BOUNDED: ConfigOption<bool> = ConfigOption::with_default(
    "bounded",
    "true",
    "Whether the table ends after its last row, or stays open.",
);
const ROWS_PER_FRAME: ConfigOption<u32> = ConfigOption::optional(
    "rows-per-frame",
    "How many rows are read at once, so that checkpoints can come between them; by default all.",
);
const WAITS_FOR_CHECKPOINTS: ConfigOption<bool> = ConfigOption::with_default(
    "waits-for-checkpoints",
    "false",
    "Whether rows come only once a checkpoint covers those read before, so that there is one for each 'rows-per-frame'.",
);
const LOOKUP: ConfigOption<bool> =
    ConfigOption::with_default("lookup", "false", "Whether the table can be looked up in by key.");

/// The option `changelog-mode`.
struct Mode(ChangelogMode);

impl OptionValue for Mode {
    fn parse(text: &str) -> Result<Self> {
        let mut kinds = Vec::new();
        for name in text.split(',') {
            kinds.push(match name.trim() {
                "I" => RowKind::Insert,
                "UB" => RowKind::UpdateBefore,
                "UA" => RowKind::UpdateAfter,
                "D" => RowKind::Delete,
                other => {
                    return Err(Error::validation(format!(
                        "'{other}' is no row kind; there are I, UB, UA and D"
                    )));
                }
            });
        }
        Ok(Mode(ChangelogMode::of(&kinds)))
    }

    fn describe() -> String {
        "kinds of rows such as 'I,UB,UA,D'".to_owned()
    }

    fn known_values() -> Vec<&'static str> {
        vec!["I", "I,UA,D", "I,UB,UA,D"]
    }
}

/// The connector `values`.
pub(crate) struct Values;

impl TableFactory for Values {
    fn identifier(&self) -> &'static str {
        "values"
    }

    fn doc(&self) -> &'static str {
        "Rows that stand in the options themselves, for tests."
    }

    fn options(&self) -> &'static [&'static dyn OptionDef] {
        &[&ROWS, &CHANGELOG_MODE, &BOUNDED, &ROWS_PER_FRAME, &WAITS_FOR_CHECKPOINTS, &LOOKUP]
    }

    /// The sink takes the kinds that 'changelog-mode' names and forgets the rows: what is planned for it can be looked at.
    fn create_sink(&self, ctx: &FactoryContext<'_>) -> Result<Arc<dyn DynamicTableSink>> {
        ctx.require(self)?;
        let mode = ctx.options.get_optional(&CHANGELOG_MODE)?.map(|mode| mode.0);
        ctx.accept(self.options())?;
        ctx.options.reject_unknown()?;
        Ok(Arc::new(ValuesSink { mode: mode.unwrap_or(ChangelogMode::INSERT_ONLY) }))
    }

    fn create_source(&self, ctx: &FactoryContext<'_>) -> Result<Arc<dyn DynamicTableSource>> {
        ctx.require(self)?;
        let rows = ctx.options.get(&ROWS)?;
        let mode = ctx.options.get_optional(&CHANGELOG_MODE)?.map(|mode| mode.0);
        let is_bounded = ctx.options.get(&BOUNDED)?;
        let frame_rows = ctx.options.get_optional(&ROWS_PER_FRAME)?.map_or(usize::MAX, |rows| rows as usize);
        if frame_rows == 0 {
            return Err(Error::validation(format!(
                "option '{}' must be greater than 0",
                ROWS_PER_FRAME.key()
            )));
        }
        let waits_for_checkpoints = ctx.options.get(&WAITS_FOR_CHECKPOINTS)?;
        ctx.accept(&[&LOOKUP])?;
        ctx.options.reject_unknown()?;
        let columns: Vec<Column> = ctx.schema.physical_columns().cloned().collect();
        let batch = read_rows(&rows, &columns, mode, time_zone(ctx.config)?)?;
        let mode = mode.unwrap_or(ChangelogMode::INSERT_ONLY);
        Ok(Arc::new(ValuesSource { batch, mode, is_bounded, frame_rows, waits_for_checkpoints }))
    }
}

#[derive(Debug, Clone)]
struct ValuesSink {
    mode: ChangelogMode,
}

#[async_trait]
impl DynamicTableSink for ValuesSink {
    fn summary(&self) -> String {
        "Values".to_owned()
    }

    fn changelog_mode(&self, requested: ChangelogMode) -> ChangelogMode {
        if requested == ChangelogMode::INSERT_ONLY { requested } else { self.mode }
    }

    async fn open_writer(&self, _ctx: WriterContext) -> Result<Box<dyn SinkWriter>> {
        Ok(Box::new(self.clone()))
    }

    async fn open_committer(&self, _ctx: WriterContext) -> Result<Box<dyn Committer>> {
        Ok(Box::new(NoCommitter))
    }
}

#[async_trait]
impl SinkWriter for ValuesSink {
    async fn write(&mut self, _batch: ChangelogBatch) -> Result<()> {
        Ok(())
    }

    async fn prepare_commit(&mut self, _checkpoint: CheckpointId) -> Result<Vec<Committable>> {
        Ok(Vec::new())
    }
}

/// Reads the option `rows`, by way of the format `json`, whose conversions tests know.
fn read_rows(
    text: &str,
    columns: &[Column],
    mode: Option<ChangelogMode>,
    zone: chrono_tz::Tz,
) -> Result<ChangelogBatch> {
    let wrong = |what: &str| Error::validation(format!("option '{}' {what}", ROWS.key()));
    let rows: Vec<Value> =
        serde_json::from_str(text).map_err(|error| wrong("is not a JSON array").hint(error.to_string()))?;
    let mut kinds = Vec::with_capacity(rows.len());
    let mut lines = Vec::new();
    for (number, row) in rows.into_iter().enumerate() {
        let object = match row {
            Value::Object(object) => {
                kinds.push(RowKind::Insert);
                object
            }
            Value::Array(mut values) => {
                let kind = if mode.is_some() && !values.is_empty() {
                    read_kind(&values.remove(0))
                } else {
                    Some(RowKind::Insert)
                };
                let kind = kind.ok_or_else(|| wrong(&format!("has no row kind in row {}", number + 1)))?;
                if mode.is_some_and(|mode| !mode.contains(kind)) {
                    return Err(wrong(&format!(
                        "has a row of kind {kind}, which '{}' does not name",
                        CHANGELOG_MODE.key()
                    )));
                }
                if values.len() != columns.len() {
                    return Err(wrong(&format!(
                        "has {} values in row {} for {} columns",
                        values.len(),
                        number + 1,
                        columns.len()
                    )));
                }
                kinds.push(kind);
                columns.iter().map(|column| column.name.clone()).zip(values).collect()
            }
            _ => return Err(wrong("has a row that is neither an array nor an object")),
        };
        lines.extend_from_slice(Value::Object(object).to_string().as_bytes());
        lines.push(b'\n');
    }
    let format = format_factory("json", "DeserializationFormatFactory")?;
    let options = TableOptions::new("values", std::collections::BTreeMap::new());
    let format = format.decoding(&FormatContext { columns, options: &options, prefix: "json.", zone })?;
    let all: Vec<usize> = (0..columns.len()).collect();
    let origin = FrameOrigin { name: ROWS.key(), offset: 0, lines_before: &|| Some(0) };
    let batch = format.decoder(&all, &[]).decode(&lines, origin)?;
    Ok(ChangelogBatch::with_kinds(batch.rows().clone(), kinds))
}

fn read_kind(value: &Value) -> Option<RowKind> {
    let kinds = [RowKind::Insert, RowKind::UpdateBefore, RowKind::UpdateAfter, RowKind::Delete];
    kinds.into_iter().find(|kind| value.as_str() == Some(kind.short_string()))
}

#[derive(Debug)]
struct ValuesSource {
    batch: ChangelogBatch,
    mode: ChangelogMode,
    is_bounded: bool,
    frame_rows: usize,
    waits_for_checkpoints: bool,
}

impl DynamicTableSource for ValuesSource {
    fn summary(&self) -> String {
        "Values".to_owned()
    }

    fn changelog_mode(&self) -> ChangelogMode {
        self.mode
    }

    fn boundedness(&self) -> Boundedness {
        if self.is_bounded { Boundedness::Bounded } else { Boundedness::Unbounded }
    }

    fn open(&self, projection: &Projection, start: Option<&SourcePosition>) -> Result<Box<dyn SourceReader>> {
        if !projection.metadata.is_empty() {
            return Err(Error::internal("tables of values have no metadata"));
        }
        let next = match start.and_then(|position| position.get(SPLIT)) {
            None => 0,
            Some(text) => text.parse().map_err(|error| {
                Error::new(ErrorKind::State, format!("'{text}' is no position of a table of values"))
                    .caused_by(error)
            })?,
        };
        Ok(Box::new(ValuesReader {
            batch: self.batch.project(&projection.physical)?,
            next,
            is_bounded: self.is_bounded,
            frame_rows: self.frame_rows,
            covered: self.waits_for_checkpoints.then_some(next),
        }))
    }

    fn decoder(&self, _: &Projection) -> Result<Box<dyn FrameDecoder>> {
        Ok(Box::new(RowsDecoder))
    }
}

/// The name of the only split.
const SPLIT: &str = "0";

struct ValuesReader {
    batch: ChangelogBatch,
    /// The number of the next row.
    next: usize,
    is_bounded: bool,
    frame_rows: usize,
    /// Up to where a checkpoint covers the rows, if the next ones wait for that.
    covered: Option<usize>,
}

#[async_trait]
impl SourceReader for ValuesReader {
    async fn next(&mut self) -> Result<SourceEvent> {
        let count = self.batch.row_count();
        if self.next < count {
            if self.covered.is_some_and(|covered| covered < self.next) {
                // Asked again after the checkpoint.
                std::future::pending::<()>().await;
            }
            let rows = self.batch.slice(self.next, self.frame_rows.min(count - self.next));
            self.next += rows.row_count();
            return Ok(SourceEvent::Frame(Frame::Rows(rows)));
        }
        if !self.is_bounded {
            std::future::pending::<()>().await;
        }
        Ok(SourceEvent::EndOfInput)
    }

    fn position(&self) -> SourcePosition {
        SourcePosition::from([(SPLIT.to_owned(), self.next.to_string())])
    }

    async fn on_checkpoint_complete(&mut self, position: &SourcePosition) -> Result<()> {
        if self.covered.is_some() {
            self.covered = position.get(SPLIT).and_then(|text| text.parse().ok());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connector::testing::{self, block_on};
    use crate::format::testing::cells;
    use crate::schema::TypeRoot;

    fn source(entries: &[(&str, &str)]) -> Result<Arc<dyn DynamicTableSource>> {
        let columns = vec![
            Column::physical("a", TypeRoot::Int.nullable()),
            Column::physical("b", TypeRoot::STRING.nullable()),
        ];
        Values.create_source(&testing::Table::new("values", columns, entries).context())
    }

    fn first(source: &dyn DynamicTableSource, physical: &[usize]) -> ChangelogBatch {
        let projection = Projection::of_columns(physical);
        let mut reader = source.open(&projection, None).unwrap();
        let SourceEvent::Frame(frame) = block_on(reader.next()).unwrap() else { panic!("no frame") };
        source.decoder(&projection).unwrap().decode(&frame).unwrap().remove(0)
    }

    #[test]
    fn rows_are_arrays_or_objects() {
        let source = source(&[("rows", "[[1,\"x\"],{\"b\":\"y\"}]")]).unwrap();
        assert_eq!(cells(&first(&*source, &[0, 1])), ["1|x", "NULL|y"]);
        assert_eq!(cells(&first(&*source, &[1])), ["x", "y"]);
        assert_eq!(first(&*source, &[]).row_count(), 2);
    }

    #[test]
    fn a_changelog_has_kinds() {
        let rows = ("rows", "[[\"+I\",1,\"a\"],[\"-U\",1,\"a\"],[\"+U\",1,\"b\"],[\"-D\",1,\"b\"]]");
        let source_ = source(&[rows, ("changelog-mode", "I,UB,UA,D")]).unwrap();
        let batch = first(&*source_, &[1]);
        let kinds: Vec<&str> = (0..4).map(|row| batch.kind(row).short_string()).collect();
        assert_eq!(kinds, ["+I", "-U", "+U", "-D"]);
        assert_eq!(source_.changelog_mode(), ChangelogMode::ALL);
        assert!(source(&[rows, ("changelog-mode", "I,UA,D")]).unwrap_err().message().contains("-U"));
    }

    #[test]
    fn an_upsert_changelog_has_updates_without_what_was_before() {
        let rows = ("rows", "[[\"+I\",1,\"a\"],[\"+U\",1,\"b\"],[\"-D\",1,null]]");
        let source_ = source(&[rows, ("changelog-mode", "I,UA,D")]).unwrap();
        assert_eq!(source_.changelog_mode(), ChangelogMode::UPSERT);
        assert_eq!(first(&*source_, &[0]).kind_bytes(), Some(&[0_u8, 2, 3][..]));
    }

    #[test]
    fn frames_have_the_size_of_their_option_and_positions_go_on_behind_them() {
        let rows = ("rows", "[[1,\"a\"],[2,\"b\"],[3,\"c\"],[4,\"d\"],[5,\"e\"]]");
        let source_ = source(&[rows, ("rows-per-frame", "2")]).unwrap();
        let mut sizes = Vec::new();
        let mut position = None;
        block_on(async {
            loop {
                let mut reader = source_.open(&Projection::of_columns(&[0, 1]), position.as_ref()).unwrap();
                let SourceEvent::Frame(Frame::Rows(rows)) = reader.next().await.unwrap() else { break };
                sizes.push((cells(&rows)[0].clone(), rows.row_count()));
                position = Some(reader.position());
            }
        });
        assert_eq!(sizes, [("1|a".to_owned(), 2), ("3|c".to_owned(), 2), ("5|e".to_owned(), 1)]);
        let error = source(&[rows, ("rows-per-frame", "0")]).unwrap_err();
        assert!(error.message().contains("greater than 0"));
    }

    #[test]
    fn a_table_ends_or_stays_open() {
        let source_ = source(&[("rows", "[]")]).unwrap();
        block_on(async {
            let all = Projection::of_columns(&[0, 1]);
            let mut reader = source_.open(&all, None).unwrap();
            assert!(matches!(reader.next().await.unwrap(), SourceEvent::EndOfInput));
            let open = source(&[("rows", "[]"), ("bounded", "false")]).unwrap();
            assert_eq!(open.boundedness(), Boundedness::Unbounded);
            let mut reader = open.open(&all, None).unwrap();
            let waited = tokio::time::timeout(std::time::Duration::from_millis(1), reader.next()).await;
            assert!(waited.is_err());
        });
    }

    #[test]
    fn broken_rows_are_refused() {
        for rows in ["x", "[1]", "[[1]]", "[[\"a\",2,3]]"] {
            assert!(source(&[("rows", rows)]).is_err(), "{rows}");
        }
        let error = source(&[("rows", "[[\"x\",\"y\"]]")]).unwrap_err();
        assert!(error.hint_text().unwrap().starts_with("rows, line 1, field 'a' (INT)"));
        assert!(source(&[("changelog-mode", "X")]).unwrap_err().message().contains("row kind"));
    }
}
