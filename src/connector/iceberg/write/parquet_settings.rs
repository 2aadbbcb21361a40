//! The properties `write.parquet.*` as the Parquet crate has them.

use std::collections::BTreeMap;

use iceberg::spec::Schema;
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::{ColumnPath, SchemaDescriptor};

use super::write_settings::{Properties, refused};
use crate::error::{Error, Result};

const CODEC: &str = "write.parquet.compression-codec";
const LEVEL: &str = "write.parquet.compression-level";
const ROW_GROUP_BYTES: &str = "write.parquet.row-group-size-bytes";
const PAGE_BYTES: &str = "write.parquet.page-size-bytes";
const PAGE_ROWS: &str = "write.parquet.page-row-limit";
const DICTIONARY_BYTES: &str = "write.parquet.dict-size-bytes";
const PAGE_VERSION: &str = "write.parquet.page-version";
const BLOOM_BYTES_MAX: &str = "write.parquet.bloom-filter-max-bytes";
const BLOOM_PREFIX: &str = "write.parquet.bloom-filter-enabled.column.";
const BLOOM_RATE_PREFIX: &str = "write.parquet.bloom-filter-fpp.column.";
const STATISTICS_PREFIX: &str = "write.parquet.stats-enabled.column.";

/// The rate of false positives of a bloom filter that no property gives.
const BLOOM_RATE: f64 = 0.01;

/// How many rows a row group has at most, however small they are: a group is held in memory until it is whole, by each writer.
const ROW_GROUP_ROWS: usize = 1 << 19;

/// About how many bytes are in the row groups of all writers of a table together, and in one at least, where no property says how large
/// they are. What a group has is in memory twice while it is written out.
const ROW_GROUPS_BYTES: usize = 32 << 20;
const ROW_GROUP_BYTES_MIN: usize = 8 << 20;

/// How many bytes a page has where no property says it: fewer than Java's usual million, so that what is encoded and packed is still
/// in the cache of a core, and a reader that looks for a key reads less.
const PAGE_BYTES_USUAL: usize = 256 << 10;

/// How many bytes of a text row groups keep at least as a bound: enough for the 16 characters that manifests keep of it.
const STATISTICS_BYTES_MIN: usize = 64;

/// How Parquet files are encoded.
#[derive(Debug, Clone)]
pub(super) struct ParquetSettings {
    compression: Compression,
    /// If a property says so.
    row_group_bytes: Option<usize>,
    writer_count: usize,
    page_bytes: usize,
    page_rows: usize,
    dictionary_bytes: usize,
    version: WriterVersion,
    bloom_bytes_max: usize,
    /// Columns by name: whether they have a bloom filter.
    bloom: BTreeMap<String, bool>,
    bloom_rates: BTreeMap<String, f64>,
    without_statistics: Vec<String>,
}

impl ParquetSettings {
    /// Reads the properties.
    ///
    /// # Errors
    /// A value does not parse, or asks for what is not supported.
    pub(super) fn new(properties: &Properties) -> Result<ParquetSettings> {
        let column = |prefix: &str, key: &str| key.strip_prefix(prefix).unwrap_or(key).to_owned();
        let is_true = |text: &str| text.trim().eq_ignore_ascii_case("true");
        let bloom = properties.with_prefix(BLOOM_PREFIX);
        let rate = |(key, text): (&str, &str)| {
            let rate = text.trim().parse().ok().filter(|rate| *rate > 0.0 && *rate < 1.0);
            let rate = rate.ok_or_else(|| refused(key, text, "a number between 0 and 1"))?;
            Ok((column(BLOOM_RATE_PREFIX, key), rate))
        };
        let statistics = properties.with_prefix(STATISTICS_PREFIX);
        let version = match properties.get(PAGE_VERSION).map(str::to_ascii_lowercase).as_deref() {
            None | Some("v1") => WriterVersion::PARQUET_1_0,
            Some("v2") => WriterVersion::PARQUET_2_0,
            Some(text) => return Err(refused(PAGE_VERSION, text, "v1 or v2")),
        };
        Ok(ParquetSettings {
            compression: compression(properties)?,
            row_group_bytes: match properties.number(ROW_GROUP_BYTES, 0)? {
                0 => None,
                bytes => Some(bytes),
            },
            writer_count: 1,
            page_bytes: properties.number(PAGE_BYTES, PAGE_BYTES_USUAL)?.max(1),
            page_rows: properties.number(PAGE_ROWS, 20_000)?.max(1),
            dictionary_bytes: properties.number(DICTIONARY_BYTES, 2 << 20)?,
            version,
            bloom_bytes_max: properties.number(BLOOM_BYTES_MAX, 1 << 20)?,
            bloom: bloom.map(|(key, text)| (column(BLOOM_PREFIX, key), is_true(text))).collect(),
            bloom_rates: properties.with_prefix(BLOOM_RATE_PREFIX).map(rate).collect::<Result<_>>()?,
            without_statistics: statistics
                .filter(|(_, text)| !is_true(text))
                .map(|(key, _)| column(STATISTICS_PREFIX, key))
                .collect(),
        })
    }

    /// Says how many writers a table has.
    pub(super) fn share(&mut self, writer_count: usize) {
        self.writer_count = writer_count.max(1);
    }

    /// Returns how many bytes a row group has at most.
    fn row_group_bytes(&self) -> usize {
        let share = (ROW_GROUPS_BYTES / self.writer_count).max(ROW_GROUP_BYTES_MIN);
        self.row_group_bytes.unwrap_or(share)
    }

    /// Returns about how many bytes a page has.
    pub(super) fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Returns the properties of files with these columns. `bloom_columns` have a bloom filter unless a property says otherwise, for
    /// `rows_max` values if it is known that files have no more; `statistics_bytes` is how many bytes of a value bounds need, None for
    /// all.
    pub(super) fn writer_properties(
        &self,
        schema: &Schema,
        columns: &SchemaDescriptor,
        bloom_columns: &[String],
        rows_max: Option<u64>,
        statistics_bytes: Option<usize>,
    ) -> WriterProperties {
        let mut builder = WriterProperties::builder()
            .set_created_by(concat!("lakehead version ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_writer_version(self.version)
            .set_compression(self.compression)
            .set_max_row_group_bytes(Some(self.row_group_bytes()))
            .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
            .set_data_page_size_limit(self.page_bytes)
            .set_data_page_row_count_limit(self.page_rows)
            .set_dictionary_page_size_limit(self.dictionary_bytes)
            .set_statistics_truncate_length(statistics_bytes.map(|bytes| bytes.max(STATISTICS_BYTES_MIN)));
        let path = |name: &str| column_path(schema, columns, name);
        let asked = bloom_columns.iter().map(|name| (name, true));
        let blooms: BTreeMap<&String, bool> =
            asked.chain(self.bloom.iter().map(|(name, is_on)| (name, *is_on))).collect();
        for (name, _) in blooms.into_iter().filter(|(_, is_on)| *is_on) {
            let Some(path) = path(name) else { continue };
            let rate = self.bloom_rates.get(name).copied().unwrap_or(BLOOM_RATE);
            let values = values_in(self.bloom_bytes_max, rate).min(rows_max.unwrap_or(u64::MAX)).max(1);
            builder = builder
                .set_column_bloom_filter_enabled(path.clone(), true)
                .set_column_bloom_filter_fpp(path.clone(), rate)
                .set_column_bloom_filter_ndv(path, values);
        }
        // A dictionary of a key's values is as long as the column, and nobody needs it to look for one.
        if let [key] = bloom_columns
            && let Some(path) = path(key)
        {
            builder = builder.set_column_dictionary_enabled(path, false);
        }
        for path in self.without_statistics.iter().filter_map(|name| path(name)) {
            builder = builder.set_column_statistics_enabled(path, EnabledStatistics::None);
        }
        builder.build()
    }
}

/// Returns the path of a column in a file, by its name in the table.
fn column_path(schema: &Schema, columns: &SchemaDescriptor, name: &str) -> Option<ColumnPath> {
    let id = schema.field_by_name(name)?.id;
    let mut columns = columns.columns().iter();
    let column = columns.find(|column| {
        let info = column.self_type().get_basic_info();
        info.has_id() && info.id() == id
    });
    column.map(|column| column.path().clone())
}

/// Returns how many values a bloom filter of a size holds at a rate of false positives.
fn values_in(bytes: usize, rate: f64) -> u64 {
    let bits = (bytes * 8) as f64;
    ((-bits * (1.0 - rate.powf(1.0 / 8.0)).ln() / 8.0) as u64).max(1)
}

fn compression(properties: &Properties) -> Result<Compression> {
    let codec = properties.get(CODEC).unwrap_or("zstd");
    let level = properties.get(LEVEL);
    let level = level.map(|text| {
        let number = text.trim().parse::<i32>();
        number.map_err(|_| refused(LEVEL, text, "a whole number"))
    });
    let level = level.transpose()?;
    let out_of_range = |takes: &str| refused(LEVEL, &level.unwrap_or_default().to_string(), takes);
    Ok(match codec.to_ascii_lowercase().as_str() {
        // Level 1 packs these files nearly as well as 3, Java's usual one, in half the time.
        "zstd" => Compression::ZSTD(
            ZstdLevel::try_new(level.unwrap_or(1)).map_err(|_| out_of_range("1 to 22 for zstd"))?,
        ),
        "gzip" => {
            let level =
                u32::try_from(level.unwrap_or(6)).ok().and_then(|level| GzipLevel::try_new(level).ok());
            Compression::GZIP(level.ok_or_else(|| out_of_range("0 to 9 for gzip"))?)
        }
        "snappy" => Compression::SNAPPY,
        "lz4" | "lz4_raw" => Compression::LZ4_RAW,
        "uncompressed" | "none" => Compression::UNCOMPRESSED,
        "brotli" | "lzo" => {
            return Err(Error::unsupported(format!("Parquet files cannot be written with codec '{codec}'"))
                .hint("Use zstd, gzip, snappy, lz4 or uncompressed."));
        }
        _ => return Err(refused(CODEC, codec, "zstd, gzip, snappy, lz4 or uncompressed")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iceberg::arrow::schema_to_arrow_schema;
    use iceberg::spec::{ListType, NestedField, PrimitiveType, Type};
    use parquet::arrow::ArrowSchemaConverter;
    use std::sync::Arc;

    fn writer_properties(entries: &[(&str, &str)], bloom: &[&str]) -> WriterProperties {
        let int = || Type::Primitive(PrimitiveType::Int);
        let list = ListType { element_field: Arc::new(NestedField::list_element(4, int(), true)) };
        let fields = [
            NestedField::optional(1, "a", int()),
            NestedField::optional(2, "b", int()),
            NestedField::optional(3, "l", Type::List(list)),
        ];
        let schema = Schema::builder().with_fields(fields.map(Arc::new)).build().unwrap();
        let arrow = schema_to_arrow_schema(&schema).unwrap();
        let columns = ArrowSchemaConverter::new().convert(&arrow).unwrap();
        let bloom: Vec<String> = bloom.iter().map(|name| (*name).to_owned()).collect();
        let settings = ParquetSettings::new(&Properties::of(entries)).unwrap();
        settings.writer_properties(&schema, &columns, &bloom, None, Some(16))
    }

    fn path(parts: &[&str]) -> ColumnPath {
        ColumnPath::new(parts.iter().map(|part| (*part).to_owned()).collect())
    }

    #[test]
    fn properties_become_those_of_parquet() {
        let properties = writer_properties(
            &[
                ("write.parquet.row-group-size-bytes", "1000"),
                ("write.parquet.page-size-bytes", "100"),
                ("write.parquet.page-row-limit", "10"),
                ("write.parquet.dict-size-bytes", "7"),
                ("write.parquet.page-version", "V2"),
                ("write.parquet.compression-codec", "GZIP"),
                ("write.parquet.compression-level", "9"),
                ("write.parquet.stats-enabled.column.b", "false"),
            ],
            &[],
        );
        assert_eq!(properties.max_row_group_bytes(), Some(1000));
        assert_eq!(properties.data_page_size_limit(), 100);
        assert_eq!(properties.data_page_row_count_limit(), 10);
        assert_eq!(properties.dictionary_page_size_limit(), 7);
        assert_eq!(properties.writer_version(), WriterVersion::PARQUET_2_0);
        assert_eq!(properties.compression(&path(&["a"])), Compression::GZIP(GzipLevel::try_new(9).unwrap()));
        assert_eq!(properties.statistics_enabled(&path(&["a"])), EnabledStatistics::Page);
        assert_eq!(properties.statistics_enabled(&path(&["b"])), EnabledStatistics::None);
        assert_eq!(properties.statistics_truncate_length(), Some(64));
    }

    #[test]
    fn writers_share_the_memory_of_row_groups_that_no_property_sizes() {
        let bytes = |entries: &[(&str, &str)], writers: usize| {
            let mut settings = ParquetSettings::new(&Properties::of(entries)).unwrap();
            settings.share(writers);
            settings.row_group_bytes()
        };
        assert_eq!([1, 2, 4, 64].map(|writers| bytes(&[], writers) >> 20), [32, 16, 8, 8]);
        assert_eq!(bytes(&[(ROW_GROUP_BYTES, "134217728")], 64) >> 20, 128);
    }

    #[test]
    fn bloom_filters_are_of_the_columns_asked_for_and_properties_have_the_last_word() {
        let has_filter = |properties: &WriterProperties, parts: &[&str]| {
            properties.bloom_filter_properties(&path(parts)).is_some()
        };
        let on = "write.parquet.bloom-filter-enabled.column.";
        let properties =
            writer_properties(&[(&format!("{on}b"), "true"), (&format!("{on}l.element"), "true")], &[]);
        assert!(has_filter(&properties, &["b"]) && !has_filter(&properties, &["a"]));
        assert!(has_filter(&properties, &["l", "list", "element"]));
        let properties = writer_properties(&[(&format!("{on}a"), "false")], &["a", "b"]);
        assert!(has_filter(&properties, &["b"]) && !has_filter(&properties, &["a"]));
        assert!(properties.dictionary_enabled(&path(&["a"])));
        let properties = writer_properties(&[], &["a"]);
        assert!(
            !properties.dictionary_enabled(&path(&["a"])) && properties.dictionary_enabled(&path(&["b"]))
        );
    }

    #[test]
    fn what_cannot_be_done_is_refused_by_name() {
        let refusal = |entries: &[(&str, &str)]| {
            ParquetSettings::new(&Properties::of(entries)).unwrap_err().message().to_owned()
        };
        assert_eq!(refusal(&[(CODEC, "brotli")]), "Parquet files cannot be written with codec 'brotli'");
        assert_eq!(
            refusal(&[(CODEC, "zip")]),
            "'zip' is no value of the table property 'write.parquet.compression-codec'"
        );
        assert_eq!(
            refusal(&[(LEVEL, "99")]),
            "'99' is no value of the table property 'write.parquet.compression-level'"
        );
        assert_eq!(
            refusal(&[("write.parquet.bloom-filter-fpp.column.a", "1.5")]),
            "'1.5' is no value of the table property 'write.parquet.bloom-filter-fpp.column.a'"
        );
    }

    #[test]
    fn a_filter_of_the_largest_size_holds_its_values() {
        // A byte a value is a rate of about one in a hundred and fifty.
        let values = values_in(1 << 20, 0.01);
        assert!((800_000..1_200_000).contains(&values), "{values}");
    }
}
