//! `datagen`: makes rows up, at a rate. The reader only counts; whoever decodes a frame draws its values, so that several
//! workers share that work.

mod generator;
mod options;
mod reader;

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::Schema;

use super::{
    Boundedness, DynamicTableSource, FactoryContext, Frame, FrameDecoder, Projection, SourcePosition,
    SourceReader, TableFactory,
};
use crate::changelog::ChangelogBatch;
use crate::error::{Error, Result};
use crate::options::{ConfigOption, OptionDef, time_zone};
use crate::schema::Column;
use generator::ColumnGenerator;
use options::FieldSpec;
use reader::RateReader;

const ROWS_PER_SECOND: ConfigOption<u64> =
    ConfigOption::with_default("rows-per-second", "10000", "How many rows are made in a second.");
const NUMBER_OF_ROWS: ConfigOption<u64> = ConfigOption::optional(
    "number-of-rows",
    "How many rows are made at all; without it the table has no end.",
);
const SCAN_PARALLELISM: ConfigOption<u32> = ConfigOption::optional(
    "scan.parallelism",
    "How many readers the table has, by default as many as the query.",
);

/// The connector `datagen`.
pub(crate) struct Datagen;

impl TableFactory for Datagen {
    fn identifier(&self) -> &'static str {
        "datagen"
    }

    fn doc(&self) -> &'static str {
        "Makes up rows, random or in sequence, for tests and first steps."
    }

    fn options(&self) -> &'static [&'static dyn OptionDef] {
        &[&ROWS_PER_SECOND, &NUMBER_OF_ROWS, &SCAN_PARALLELISM]
    }

    fn key_patterns(&self) -> &'static [&'static str] {
        options::KEY_PATTERNS
    }

    fn create_source(&self, ctx: &FactoryContext<'_>) -> Result<Arc<dyn DynamicTableSource>> {
        ctx.require(self)?;
        let rate = ctx.options.get(&ROWS_PER_SECOND)?;
        let row_count = ctx.options.get_optional(&NUMBER_OF_ROWS)?;
        ctx.accept(&[&SCAN_PARALLELISM])?;
        if rate == 0 {
            return Err(Error::validation(format!(
                "option '{}' must be greater than 0",
                ROWS_PER_SECOND.key()
            )));
        }
        let columns: Vec<Column> = ctx.schema.physical_columns().cloned().collect();
        let fields =
            columns.iter().map(|column| FieldSpec::read(ctx.options, &column.name, &column.data_type));
        let fields = fields.collect::<Result<Vec<_>>>()?;
        ctx.options.reject_unknown()?;
        let sequence_end = fields.iter().filter_map(FieldSpec::sequence_length).min();
        let zone = time_zone(ctx.config)?;
        Ok(Arc::new(DatagenSource { columns, fields, rate, row_count, sequence_end, zone }))
    }
}

#[derive(Debug)]
struct DatagenSource {
    columns: Vec<Column>,
    fields: Vec<FieldSpec>,
    rate: u64,
    row_count: Option<u64>,
    /// How many values the shortest sequence has.
    sequence_end: Option<u64>,
    zone: chrono_tz::Tz,
}

impl DynamicTableSource for DatagenSource {
    fn summary(&self) -> String {
        "DataGenTableSource".to_owned()
    }

    fn boundedness(&self) -> Boundedness {
        if self.row_count.is_some() { Boundedness::Bounded } else { Boundedness::Unbounded }
    }

    fn ends_by_itself(&self) -> bool {
        self.row_count.is_some() || self.sequence_end.is_some()
    }

    fn open(&self, projection: &Projection, start: Option<&SourcePosition>) -> Result<Box<dyn SourceReader>> {
        let end = self.row_count.into_iter().chain(self.sequence_end).min();
        let fields = projection.physical.iter().filter_map(|at| self.fields.get(*at));
        Ok(Box::new(RateReader::new(self.rate, end, FieldSpec::row_bytes(fields), start)?))
    }

    fn decoder(&self, projection: &Projection) -> Result<Box<dyn FrameDecoder>> {
        let picked: Vec<(&Column, &FieldSpec)> = projection
            .physical
            .iter()
            .filter_map(|at| self.columns.get(*at).zip(self.fields.get(*at)))
            .collect();
        if picked.len() != projection.physical.len() || !projection.metadata.is_empty() {
            return Err(Error::internal("a projection names columns that the table does not have"));
        }
        let fields: Vec<_> =
            picked.iter().map(|(column, _)| column.data_type.to_field(&column.name)).collect();
        let columns =
            picked.iter().map(|(column, spec)| ColumnGenerator::new(&column.data_type, spec, self.zone));
        Ok(Box::new(DatagenDecoder { schema: Arc::new(Schema::new(fields)), columns: columns.collect() }))
    }
}

struct DatagenDecoder {
    schema: arrow::datatypes::SchemaRef,
    columns: Vec<ColumnGenerator>,
}

impl FrameDecoder for DatagenDecoder {
    fn decode(&mut self, frame: &Frame) -> Result<Vec<ChangelogBatch>> {
        let Frame::Generate { first, count, .. } = frame else {
            return Err(Error::internal("a frame of another source came to the decoder of datagen"));
        };
        let columns = self.columns.iter_mut().map(|column| column.generate(*first, *count));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(*count));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        Ok(vec![ChangelogBatch::inserts(rows)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connector::SourceEvent;
    use crate::connector::testing::{self, block_on, read_all};
    use crate::format::testing::cells;
    use crate::schema::{DataType, Field, TypeRoot};
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::{Float64Type, Int32Type, Int64Type};

    fn source(columns: &[(&str, DataType)], entries: &[(&str, &str)]) -> Result<Arc<dyn DynamicTableSource>> {
        let columns =
            columns.iter().map(|(name, data_type)| Column::physical(*name, data_type.clone())).collect();
        Datagen.create_source(&testing::Table::new("datagen", columns, entries).context())
    }

    fn batch(columns: &[(&str, DataType)], entries: &[(&str, &str)]) -> ChangelogBatch {
        let source = source(columns, entries).unwrap();
        let physical = (0..columns.len()).collect();
        let mut decoder = source.decoder(&Projection { physical, metadata: Vec::new() }).unwrap();
        decoder.decode(&Frame::Generate { first: 0, count: 200, row_bytes: 1 }).unwrap().remove(0)
    }

    fn error(columns: &[(&str, DataType)], entries: &[(&str, &str)]) -> String {
        source(columns, entries).unwrap_err().message().to_owned()
    }

    #[test]
    fn the_shortest_sequence_or_the_row_count_ends_it() {
        let columns = [("a", TypeRoot::Int.nullable()), ("b", TypeRoot::STRING.nullable())];
        let sequence = [
            ("fields.a.kind", "sequence"),
            ("fields.a.start", "5"),
            ("fields.a.end", "7"),
            ("fields.b.length", "4"),
        ];
        let read = |source: &dyn DynamicTableSource| {
            let frames = block_on(async {
                read_all(&mut *source.open(&Projection::default(), None).unwrap()).await.unwrap()
            });
            let mut decoder =
                source.decoder(&Projection { physical: vec![0], metadata: Vec::new() }).unwrap();
            frames
                .iter()
                .flat_map(|frame| decoder.decode(frame).unwrap())
                .flat_map(|batch| cells(&batch))
                .collect::<Vec<_>>()
        };
        let source_ = source(&columns, &sequence).unwrap();
        assert_eq!((source_.boundedness(), source_.ends_by_itself()), (Boundedness::Unbounded, true));
        assert_eq!(read(&*source_), ["5", "6", "7"]);
        for (rows, expected) in [("2", 2), ("9", 3)] {
            let source = source(&columns, &[&sequence[..], &[("number-of-rows", rows)]].concat()).unwrap();
            assert_eq!((source.boundedness(), read(&*source).len()), (Boundedness::Bounded, expected));
        }
    }

    #[test]
    fn a_sequence_goes_on_where_the_position_says() {
        let columns = [("a", TypeRoot::BigInt.nullable())];
        let entries = [
            ("fields.a.kind", "sequence"),
            ("fields.a.start", "100"),
            ("fields.a.end", "20099"),
            ("rows-per-second", "100000000"),
        ];
        let source = source(&columns, &entries).unwrap();
        let projection = Projection { physical: vec![0], metadata: Vec::new() };
        let mut values = Vec::new();
        block_on(async {
            let mut position = None;
            // Every frame comes from a reader of its own, as if the job had crashed behind each.
            loop {
                let mut reader = source.open(&projection, position.as_ref()).unwrap();
                let SourceEvent::Frame(frame) = reader.next().await.unwrap() else { break };
                position = Some(reader.position());
                for batch in source.decoder(&projection).unwrap().decode(&frame).unwrap() {
                    values.extend_from_slice(batch.rows().column(0).as_primitive::<Int64Type>().values());
                }
            }
        });
        assert_eq!(values, (100..20_100).collect::<Vec<i64>>());
    }

    #[test]
    fn random_values_keep_to_their_options() {
        let columns = [
            ("i", TypeRoot::Int.nullable()),
            ("d", TypeRoot::Double.nullable()),
            ("s", TypeRoot::STRING.nullable()),
            ("n", TypeRoot::TinyInt.nullable()),
        ];
        let entries = [
            ("fields.i.min", "3"),
            ("fields.i.max", "5"),
            ("fields.d.min", "-1"),
            ("fields.d.max", "1"),
            ("fields.s.length", "7"),
            ("fields.n.null-rate", "1"),
        ];
        let batch = batch(&columns, &entries);
        let rows = batch.rows();
        assert!(
            rows.column(0).as_primitive::<Int32Type>().values().iter().all(|value| (3..=5).contains(value))
        );
        assert!(
            rows.column(1)
                .as_primitive::<Float64Type>()
                .values()
                .iter()
                .all(|value| (-1.0..=1.0).contains(value))
        );
        let hex = |text: &str| text.len() == 7 && text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
        assert!(rows.column(2).as_string::<i32>().iter().flatten().all(hex));
        assert_eq!(rows.column(3).null_count(), 200);
    }

    #[test]
    fn a_frame_of_large_rows_has_few_of_them() {
        let array = TypeRoot::Array(Box::new(TypeRoot::STRING.nullable())).nullable();
        let (int, text) = (TypeRoot::Int.nullable(), TypeRoot::STRING.nullable());
        let columns = [("i", int), ("s", text), ("a", array.clone()), ("n", array.clone()), ("m", array)];
        let entries = [
            ("rows-per-second", "1000000"),
            ("number-of-rows", "10000"),
            ("fields.s.length", "20000"),
            ("fields.a.element.length", "1000"),
            ("fields.a.length", "50000"),
            ("fields.n.length", "9000000000000000000"),
            ("fields.n.element.length", "2000000000"),
            ("fields.n.null-rate", "1"),
            ("fields.m.length", "9000000000000000000"),
        ];
        let source = source(&columns, &entries).unwrap();
        for (columns, expected) in [
            (vec![0], (8_192, 8)),
            (vec![0, 1], (209, 20_008)),
            (vec![2], (1, 50_000_000)),
            (vec![3], (8_192, 0)),
            (vec![4], (1, 1 << 40)),
        ] {
            let mut reader = source.open(&Projection::of_columns(&columns), None).unwrap();
            let SourceEvent::Frame(Frame::Generate { count, row_bytes, .. }) =
                block_on(reader.next()).unwrap()
            else {
                panic!()
            };
            assert_eq!((count, row_bytes), expected, "{columns:?}");
        }
    }

    #[test]
    fn nested_fields_have_options_of_their_own() {
        let row = TypeRoot::Row(vec![Field::new("f", TypeRoot::Int.nullable())]).nullable();
        let array = TypeRoot::Array(Box::new(TypeRoot::Int.nullable())).nullable();
        let map = TypeRoot::Map(Box::new(TypeRoot::STRING.nullable()), Box::new(TypeRoot::BigInt.nullable()))
            .nullable();
        let multiset = TypeRoot::Multiset(Box::new(TypeRoot::STRING.nullable())).nullable();
        let columns = [("r", row), ("a", array), ("m", map), ("u", multiset)];
        let entries = [
            ("fields.r.f.min", "1"),
            ("fields.r.f.max", "1"),
            ("fields.a.element.min", "2"),
            ("fields.a.element.max", "2"),
            ("fields.a.length", "2"),
            ("fields.m.key.length", "1"),
            ("fields.m.value.min", "0"),
            ("fields.u.element.length", "5"),
        ];
        let batch = batch(&columns, &entries);
        let first = cells(&batch).remove(0);
        assert!(first.starts_with("(1)|[2, 2]|{"), "{first}");
    }

    #[test]
    fn every_type_can_be_made_up() {
        let mut roots = crate::format::testing::scalar_types();
        roots.extend([
            TypeRoot::Char(3),
            TypeRoot::Varchar(9),
            TypeRoot::Binary(2),
            TypeRoot::Decimal(38, 0),
        ]);
        let names: Vec<String> = (0..roots.len()).map(|number| format!("c{number}")).collect();
        let columns: Vec<(&str, DataType)> =
            names.iter().map(String::as_str).zip(roots.into_iter().map(TypeRoot::not_null)).collect();
        let batch = batch(&columns, &[]);
        assert!(batch.rows().columns().iter().all(|column| column.null_count() == 0 && column.len() == 200));
    }

    #[test]
    fn errors_have_flinks_words() {
        let id = [("id", TypeRoot::Int.nullable())];
        let map =
            TypeRoot::Map(Box::new(TypeRoot::Int.nullable()), Box::new(TypeRoot::Int.nullable())).nullable();
        assert_eq!(
            error(&[("a", map.clone())], &[("fields.a.kind", "sequence")]),
            "Could not find required property 'fields.a.start' for sequence generator."
        );
        let sequence = [("fields.a.kind", "sequence"), ("fields.a.start", "1"), ("fields.a.end", "2")];
        assert_eq!(error(&[("a", map)], &sequence), "Unsupported type: MAP<INT, INT>");
        assert_eq!(error(&id, &[("number-of-rows", "many")]), "For input string: \"many\"");
        assert_eq!(
            error(&id, &[("fields.nope.min", "1")]),
            "Unsupported options found for 'datagen'.\n\nUnsupported options:\n\nfields.nope.min\n\nSupported options:\n\n\
             connector\nfields.id.kind\nfields.id.max\nfields.id.min\nfields.id.null-rate\nnumber-of-rows\n\
             rows-per-second\nscan.parallelism"
        );
        assert_eq!(
            error(&[("s", TypeRoot::Varchar(5).nullable())], &[("fields.s.length", "6")]),
            "Custom length '6' for variable-length type (VARCHAR/STRING/VARBINARY/BYTES) field 's' should be shorter than '5' defined in the schema."
        );
        assert!(error(&id, &[("fields.id.min", "9"), ("fields.id.max", "1")]).contains("greater than"));
        assert!(error(&id, &[("fields.id.kind", "odd")]).contains("Unsupported generator kind: odd"));
        assert!(error(&id, &[("fields.id.max", "2147483648")]).contains("For input string"));
        assert!(error(&id, &[("rows-per-second", "0")]).contains("greater than 0"));
    }
}
