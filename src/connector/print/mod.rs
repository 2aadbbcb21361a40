//! `print`: shows every row with its kind. Rows look as Java's `Row.toString` writes them, not as in the client's results.
//!
//! Lines are out at once and cannot be taken back: the sink is at-least-once, and a job that goes on from a checkpoint prints
//! again what it had printed since.

mod row_text;

use std::sync::Arc;

use async_trait::async_trait;

use super::{
    CheckpointId, Committable, Committer, DynamicTableSink, FactoryContext, NoCommitter, OutputPort,
    OutputStream, SinkWriter, TableFactory, WriterContext,
};
use crate::changelog::{ChangelogBatch, ChangelogMode};
use crate::error::Result;
use crate::options::{ConfigOption, OptionDef};
use crate::schema::DataType;
use row_text::RowText;

const PRINT_IDENTIFIER: ConfigOption<String> =
    ConfigOption::optional("print-identifier", "A text in front of every line.");
const STANDARD_ERROR: ConfigOption<bool> =
    ConfigOption::with_default("standard-error", "false", "Whether lines go to standard error.");
const SINK_PARALLELISM: ConfigOption<u32> = ConfigOption::optional(
    "sink.parallelism",
    "How many writers the sink has, by default as many as the query before it.",
);

/// The connector `print`.
pub(crate) struct Print;

impl TableFactory for Print {
    fn identifier(&self) -> &'static str {
        "print"
    }

    fn doc(&self) -> &'static str {
        "Shows every row with its kind as soon as it comes; rows may be shown again after a failure (at-least-once)."
    }

    fn options(&self) -> &'static [&'static dyn OptionDef] {
        &[&PRINT_IDENTIFIER, &STANDARD_ERROR, &SINK_PARALLELISM]
    }

    fn create_sink(&self, ctx: &FactoryContext<'_>) -> Result<Arc<dyn DynamicTableSink>> {
        ctx.require(self)?;
        let sink = PrintSink {
            types: ctx.schema.sink_columns().map(|column| column.data_type.clone()).collect(),
            identifier: ctx.options.get_optional(&PRINT_IDENTIFIER)?.unwrap_or_default(),
            stream: if ctx.options.get(&STANDARD_ERROR)? { OutputStream::Err } else { OutputStream::Out },
        };
        ctx.accept(&[&SINK_PARALLELISM])?;
        ctx.options.reject_unknown()?;
        Ok(Arc::new(sink))
    }
}

#[derive(Debug, Clone)]
struct PrintSink {
    types: Vec<DataType>,
    identifier: String,
    stream: OutputStream,
}

#[async_trait]
impl DynamicTableSink for PrintSink {
    fn summary(&self) -> String {
        match self.stream {
            OutputStream::Out => "Print to System.out".to_owned(),
            OutputStream::Err => "Print to System.err".to_owned(),
        }
    }

    fn changelog_mode(&self, requested: ChangelogMode) -> ChangelogMode {
        requested
    }

    fn has_single_writer(&self) -> bool {
        true
    }

    async fn open_writer(&self, ctx: WriterContext) -> Result<Box<dyn SinkWriter>> {
        let mut prefix = self.identifier.clone();
        if ctx.writer_count > 1 {
            if !prefix.is_empty() {
                prefix.push(':');
            }
            prefix.push_str(&(ctx.writer + 1).to_string());
        }
        if !prefix.is_empty() {
            prefix.push_str("> ");
        }
        Ok(Box::new(PrintWriter {
            types: self.types.clone(),
            prefix,
            stream: self.stream,
            output: ctx.output,
        }))
    }

    async fn open_committer(&self, _ctx: WriterContext) -> Result<Box<dyn Committer>> {
        Ok(Box::new(NoCommitter))
    }
}

struct PrintWriter {
    types: Vec<DataType>,
    prefix: String,
    stream: OutputStream,
    output: Arc<dyn OutputPort>,
}

#[async_trait]
impl SinkWriter for PrintWriter {
    async fn write(&mut self, batch: ChangelogBatch) -> Result<()> {
        let rows = batch.rows();
        let columns = self.types.iter().zip(rows.columns());
        let text = RowText::new(columns)?;
        let mut lines = Vec::new();
        for row in 0..batch.row_count() {
            lines.extend_from_slice(self.prefix.as_bytes());
            text.write(batch.kind(row), row, &mut lines);
            lines.push(b'\n');
        }
        if !lines.is_empty() {
            self.output.print(self.stream, &String::from_utf8_lossy(&lines));
        }
        Ok(())
    }

    async fn prepare_commit(&mut self, _checkpoint: CheckpointId) -> Result<Vec<Committable>> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changelog::RowKind;
    use crate::connector::testing::{self, Printed};
    use crate::schema::{Column, TypeRoot};
    use arrow::array::{Int32Array, RecordBatch, StringArray};

    fn print(entries: &[(&str, &str)], writer: usize, writer_count: usize) -> String {
        let columns = vec![
            Column::physical("a", TypeRoot::Int.nullable()),
            Column::physical("b", TypeRoot::STRING.nullable()),
        ];
        let table = testing::Table::new("print", columns, entries);
        let sink = Print.create_sink(&table.context()).unwrap();
        let rows = RecordBatch::try_new(
            table.schema.physical_arrow(),
            vec![
                Arc::new(Int32Array::from(vec![Some(1), None])),
                Arc::new(StringArray::from(vec!["abc", "x, y"])),
            ],
        )
        .unwrap();
        let batch = ChangelogBatch::with_kinds(rows, [RowKind::Insert, RowKind::Delete]);
        let printed = Arc::new(Printed::default());
        let output: Arc<dyn OutputPort> = Arc::<Printed>::clone(&printed);
        let ctx = WriterContext { writer, writer_count, output, ..testing::writer_context(false) };
        testing::block_on(async {
            let mut writer = sink.open_writer(ctx).await.unwrap();
            writer.write(batch).await.unwrap();
            assert!(writer.prepare_commit(1).await.unwrap().is_empty());
        });
        printed.text()
    }

    #[test]
    fn lines_have_the_kind_and_the_prefix() {
        assert_eq!(print(&[], 0, 1), "out: +I[1, abc]\n-D[null, x, y]\n");
        assert_eq!(print(&[("print-identifier", "p")], 0, 1), "out: p> +I[1, abc]\np> -D[null, x, y]\n");
        assert_eq!(print(&[("print-identifier", "p")], 1, 2), "out: p:2> +I[1, abc]\np:2> -D[null, x, y]\n");
        assert_eq!(print(&[("standard-error", "true")], 0, 3), "err: 1> +I[1, abc]\n1> -D[null, x, y]\n");
    }

    #[test]
    fn it_is_a_sink_only() {
        let table = testing::Table::new("print", Vec::new(), &[]);
        let error = Print.create_source(&table.context()).unwrap_err();
        assert_eq!(
            error.message(),
            "Connector 'print' can only be used as a sink. It cannot be used as a source."
        );
    }
}
