//! Values and types that a real Flink 2.3 printed (batch, Europe/Berlin), for kernels that the binder does not reach yet.

use super::evaluation::{
    array, compared, converted, decimal, double, from_text, function, int, null, operation, text,
};
use super::{ArithmeticOp, ComparisonOp};
use crate::schema::TypeRoot;

fn timestamp(value: &str, precision: u8) -> super::evaluation::Value {
    from_text(value, TypeRoot::Timestamp(precision))
}

#[test]
fn texts_cast_to_numbers_and_fail_in_flinks_words() {
    let cast = |value: &str, root: TypeRoot| converted(&text(value), root, false);
    assert_eq!(cast(" 12 ", TypeRoot::Int), "12 :: INT NOT NULL");
    assert_eq!(cast("12.7", TypeRoot::Int), "12 :: INT NOT NULL");
    assert_eq!(
        cast("12x", TypeRoot::Int),
        "java.lang.NumberFormatException: For input string: '12x'. Invalid character found."
    );
    assert_eq!(
        cast("300", TypeRoot::TinyInt),
        "java.lang.NumberFormatException: For input string: '300'. Overflow."
    );
    assert_eq!(
        cast("on", TypeRoot::Boolean),
        "org.apache.flink.table.api.TableException: Cannot parse 'on' as BOOLEAN."
    );
    assert_eq!(cast("T", TypeRoot::Boolean), "TRUE :: BOOLEAN NOT NULL");
    assert_eq!(
        cast("2024-13-01", TypeRoot::Date),
        "java.time.DateTimeException: For input string: '2024-13-01'."
    );
    assert_eq!(
        cast("2024-01-01 25:00:00", TypeRoot::Timestamp(6)),
        "java.time.DateTimeException: Invalid value for HourOfDay (valid values 0 - 23): 25"
    );
    assert_eq!(
        cast("2024-01-01T10:00:00", TypeRoot::Timestamp(6)),
        "java.time.format.DateTimeParseException: Text '2024-01-01T10:00:00' could not be parsed, unparsed text found at index 10"
    );
    assert_eq!(
        converted(&text("1e3"), TypeRoot::Decimal(38, 10), true),
        "1000.0000000000 :: DECIMAL(38, 10)"
    );
    assert_eq!(converted(&text("1e3"), TypeRoot::Decimal(5, 2), true), "<NULL> :: DECIMAL(5, 2)");
    assert_eq!(converted(&text(""), TypeRoot::Binary(2), true), "x'0000' :: BINARY(2)");
    assert_eq!(converted(&text("+5"), TypeRoot::Time(0), true), "<NULL> :: TIME(0)");
}

#[test]
fn numbers_wrap_saturate_and_overflow_as_in_java() {
    let cast = |value: &super::evaluation::Value, root: TypeRoot| converted(value, root, true);
    assert_eq!(cast(&int(300), TypeRoot::TinyInt), "44 :: TINYINT");
    assert_eq!(cast(&double(1e38), TypeRoot::TinyInt), "-1 :: TINYINT");
    assert_eq!(cast(&double(1e38), TypeRoot::Int), "2147483647 :: INT");
    assert_eq!(cast(&double(1e38), TypeRoot::Decimal(38, 10)), "<NULL> :: DECIMAL(38, 10)");
    assert_eq!(cast(&double(f64::NAN), TypeRoot::Int), "0 :: INT");
    assert_eq!(
        cast(&double(f64::NAN), TypeRoot::Decimal(38, 10)),
        "java.lang.NumberFormatException: Character N is neither a decimal digit number, decimal point, nor \"e\" notation exponential mark."
    );
    assert_eq!(cast(&decimal(-123_455, 6, 3), TypeRoot::Decimal(5, 2)), "-123.46 :: DECIMAL(5, 2)");
    assert_eq!(cast(&decimal(12_345, 5, 1), TypeRoot::Decimal(5, 2)), "<NULL> :: DECIMAL(5, 2)");
    assert_eq!(cast(&decimal(123_450_000_000, 20, 10), TypeRoot::Varchar(5)), "12.34 :: VARCHAR(5)");
    assert_eq!(cast(&double(1e38), TypeRoot::Varchar(5)), "1.0E3 :: VARCHAR(5)");
    assert_eq!(cast(&text("abc"), TypeRoot::Char(5)), "abc   :: CHAR(5)");
    assert_eq!(cast(&text("abcdef"), TypeRoot::Char(3)), "abc :: CHAR(3)");
}

#[test]
fn timestamps_move_between_wall_and_instant() {
    let gap = timestamp("2024-03-31 02:30:00", 0);
    assert_eq!(
        converted(&gap, TypeRoot::TimestampLtz(3), true),
        "2024-03-31 03:30:00.000 :: TIMESTAMP_LTZ(3)"
    );
    assert_eq!(
        converted(&gap, TypeRoot::Timestamp(9), true),
        "2024-03-31 02:30:00.000000000 :: TIMESTAMP(9)"
    );
    let instant = from_text("2024-10-27 02:30:00.5", TypeRoot::TimestampLtz(3));
    assert_eq!(converted(&instant, TypeRoot::STRING, true), "2024-10-27 02:30:00.500 :: STRING");
    assert_eq!(converted(&instant, TypeRoot::Time(0), true), "02:30:00 :: TIME(0)");
    assert_eq!(converted(&instant, TypeRoot::Timestamp(0), true), "2024-10-27 02:30:00 :: TIMESTAMP(0)");
    assert_eq!(converted(&instant, TypeRoot::Date, true), "2024-10-27 :: DATE");
    assert_eq!(
        converted(&from_text("2024-10-27", TypeRoot::Date), TypeRoot::Timestamp(3), true),
        "2024-10-27 00:00:00.000 :: TIMESTAMP(3)"
    );
}

#[test]
fn arithmetic_has_flinks_types_and_values() {
    let op = operation;
    let large = decimal(1_100_000_000_000_000_000, 38, 18);
    let small = decimal(33_333, 10, 4);
    assert_eq!(op(ArithmeticOp::Divide, &int(7), &int(-2)), "-3 :: INT NOT NULL");
    assert_eq!(op(ArithmeticOp::Plus, &int(i32::MAX), &int(1)), "-2147483648 :: INT NOT NULL");
    assert_eq!(op(ArithmeticOp::Divide, &int(i32::MIN), &int(-1)), "-2147483648 :: INT NOT NULL");
    assert_eq!(op(ArithmeticOp::Modulo, &int(-7), &int(3)), "-1 :: INT NOT NULL");
    assert_eq!(op(ArithmeticOp::Modulo, &int(5), &int(0)), "java.lang.ArithmeticException: / by zero");
    assert_eq!(op(ArithmeticOp::Divide, &int(5), &int(0)), "java.lang.ArithmeticException: Division by zero");
    assert_eq!(
        op(ArithmeticOp::Divide, &decimal(10, 2, 1), &int(0)),
        "java.lang.ArithmeticException: Division by zero"
    );
    assert_eq!(op(ArithmeticOp::Divide, &int(1), &small), "0.30000300003 :: DECIMAL(25, 11) NOT NULL");
    assert_eq!(op(ArithmeticOp::Multiply, &large, &int(1)), "1.1000000 :: DECIMAL(38, 7) NOT NULL");
    assert_eq!(op(ArithmeticOp::Divide, &int(1), &large), "0.9090909091 :: DECIMAL(38, 10) NOT NULL");
    assert_eq!(op(ArithmeticOp::Multiply, &large, &large), "1.210000 :: DECIMAL(38, 6) NOT NULL");
    assert_eq!(op(ArithmeticOp::Modulo, &large, &int(1)), "0.100000000000000000 :: DECIMAL(28, 18) NOT NULL");
    assert_eq!(op(ArithmeticOp::Minus, &int(1), &large), "-0.10000000000000000 :: DECIMAL(38, 17) NOT NULL");
    assert_eq!(op(ArithmeticOp::Plus, &large, &double(3.0)), "4.1 :: DOUBLE NOT NULL");
    assert_eq!(op(ArithmeticOp::Plus, &int(1), &null(TypeRoot::Int)), "<NULL> :: INT");
    assert_eq!(
        op(ArithmeticOp::Plus, &text("a"), &int(1)),
        "org.apache.calcite.sql.validate.SqlValidatorException: Cannot apply '+' to arguments of type '<CHAR(1)> + <INTEGER>'. \
         Supported form(s): '<NUMERIC> + <NUMERIC>'\n'<DATETIME_INTERVAL> + <DATETIME_INTERVAL>'\n'<DATETIME> + <DATETIME_INTERVAL>'\n\
         '<DATETIME_INTERVAL> + <DATETIME>'"
    );
}

#[test]
fn comparisons_of_doubles_follow_ieee() {
    let nan = double(f64::NAN);
    assert_eq!(compared(ComparisonOp::Gt, &nan, &int(2)), "FALSE :: BOOLEAN NOT NULL");
    assert_eq!(compared(ComparisonOp::NotEq, &nan, &nan), "TRUE :: BOOLEAN NOT NULL");
    assert_eq!(compared(ComparisonOp::Eq, &double(-0.0), &double(0.0)), "TRUE :: BOOLEAN NOT NULL");
    assert_eq!(compared(ComparisonOp::Gt, &text("10"), &int(9)), "TRUE :: BOOLEAN NOT NULL");
    assert_eq!(
        compared(ComparisonOp::Gt, &timestamp("2024-05-02", 3), &text("2024-05-01")),
        "TRUE :: BOOLEAN NOT NULL"
    );
    assert_eq!(
        compared(ComparisonOp::IsDistinctFrom, &double(1.0), &null(TypeRoot::Double)),
        "TRUE :: BOOLEAN NOT NULL"
    );
    assert_eq!(compared(ComparisonOp::Eq, &text("abc "), &text("abc")), "FALSE :: BOOLEAN NOT NULL");
}

#[test]
fn texts_are_cut_padded_and_searched() {
    let call = function;
    let unknown = null(TypeRoot::STRING);
    assert_eq!(call("UPPER", &[text("straße")]), "STRASSE :: CHAR(6) NOT NULL");
    assert_eq!(call("INITCAP", &[text("heLLo wORLD-x")]), "Hello World-X :: CHAR(13) NOT NULL");
    assert_eq!(call("SUBSTRING", &[text("abcdef"), int(0), int(3)]), "abc :: VARCHAR(6)");
    assert_eq!(call("SUBSTR", &[text("abcdef"), int(-3), int(2)]), "de :: VARCHAR(6)");
    assert_eq!(call("SUBSTRING", &[text("abcdef"), int(-9)]), " :: VARCHAR(6)");
    assert_eq!(call("SUBSTRING", &[text("日本語"), int(2)]), "本語 :: VARCHAR(3)");
    assert_eq!(call("SUBSTRING", &[text("abcdef"), int(2), int(-1)]), "<NULL> :: VARCHAR(6)");
    assert_eq!(call("LEFT", &[text("abc"), int(-1)]), " :: VARCHAR(3)");
    assert_eq!(call("RIGHT", &[text("abc"), int(2)]), "bc :: VARCHAR(3)");
    assert_eq!(call("TRIM", &[text("  a ")]), "a :: VARCHAR(4) NOT NULL");
    assert_eq!(call("RTRIM", &[text("hello"), text("lo")]), "he :: VARCHAR(5) NOT NULL");
    assert_eq!(call("||", &[text("["), text("abc")]), "[abc :: CHAR(4) NOT NULL");
    assert_eq!(call("CONCAT", &[text("a"), unknown.clone()]), "<NULL> :: STRING");
    assert_eq!(call("CONCAT_WS", &[text("-"), text("a"), unknown.clone(), text("b")]), "a-b :: STRING");
    assert_eq!(call("CONCAT_WS", &[unknown.clone(), text("a")]), "<NULL> :: STRING");
    assert_eq!(call("LPAD", &[text("hello"), int(7), text("*-")]), "*-hello :: STRING NOT NULL");
    assert_eq!(call("RPAD", &[text("a b  c"), int(2), text("x")]), "a  :: STRING NOT NULL");
    assert_eq!(call("LPAD", &[text("hi"), int(4), text("")]), "<NULL> :: STRING NOT NULL");
    assert_eq!(call("SPLIT_INDEX", &[text("héllo wörld"), text(" "), int(1)]), "wörld :: STRING");
    assert_eq!(call("SPLIT_INDEX", &[text("a"), text(","), int(-1)]), "<NULL> :: STRING");
    assert_eq!(call("LOCATE", &[text("l"), text("héllo wörld"), int(4)]), "4 :: INT NOT NULL");
    assert_eq!(call("POSITION", &[text(""), text("abc")]), "1 :: INT NOT NULL");
    assert_eq!(call("INSTR", &[text("abcb"), text("b")]), "2 :: INT NOT NULL");
    assert_eq!(call("OVERLAY", &[text("héllo wörld"), text("ZZ"), int(9)]), "héllo wöZZd :: STRING NOT NULL");
    assert_eq!(
        call("TRANSLATE", &[text("héllo wörld"), text("lo"), text("xy")]),
        "héxxy wörxd :: STRING NOT NULL"
    );
    assert_eq!(call("IS_ALPHA", &[unknown]), "FALSE :: BOOLEAN NOT NULL");
    assert_eq!(call("IS_ALPHA", &[text("日本語")]), "TRUE :: BOOLEAN NOT NULL");
    assert_eq!(call("CHR", &[int(353)]), "a :: STRING");
    assert_eq!(call("HEX", &[text("héllo")]), "68C3A96C6C6F :: STRING NOT NULL");
    assert_eq!(call("URL_DECODE", &[text("a%20b+c")]), "a b c :: STRING");
    assert_eq!(call("TO_BASE64", &[text("😀x")]), "8J+YgHg= :: STRING NOT NULL");
    assert_eq!(call("ELT", &[int(2), text("a"), text("b")]), "b :: STRING");
    assert_eq!(
        call("UPPER", &[int(1)]),
        "org.apache.calcite.sql.validate.SqlValidatorException: Cannot apply 'UPPER' to arguments of type 'UPPER(<INTEGER>)'. \
         Supported form(s): 'UPPER(<CHARACTER>)'"
    );
}

#[test]
fn numbers_are_rounded_in_their_type() {
    let call = function;
    assert_eq!(call("ROUND", &[decimal(25, 2, 1)]), "3 :: DECIMAL(2, 0) NOT NULL");
    assert_eq!(call("ROUND", &[decimal(-25, 2, 1), int(-1)]), "0 :: DECIMAL(2, 0) NOT NULL");
    assert_eq!(call("ROUND", &[decimal(12_345, 5, 3), int(2)]), "12.35 :: DECIMAL(5, 2) NOT NULL");
    assert_eq!(call("TRUNCATE", &[decimal(-12_345, 5, 3), int(1)]), "-12.3 :: DECIMAL(4, 1) NOT NULL");
    assert_eq!(call("ROUND", &[double(-2.5), int(-1)]), "0.0 :: DOUBLE NOT NULL");
    assert_eq!(call("ROUND", &[int(1234), int(-2)]), "1200 :: INT NOT NULL");
    assert_eq!(call("CEIL", &[decimal(12, 2, 1)]), "2 :: DECIMAL(2, 0) NOT NULL");
    assert_eq!(call("FLOOR", &[decimal(-12, 2, 1)]), "-2 :: DECIMAL(2, 0) NOT NULL");
    assert_eq!(call("CEIL", &[double(-2.5)]), "-2.0 :: DOUBLE NOT NULL");
    assert_eq!(call("SIGN", &[decimal(-25, 2, 1)]), "-1.0 :: DECIMAL(2, 1) NOT NULL");
    assert_eq!(call("ABS", &[int(i32::MIN)]), "-2147483648 :: INT NOT NULL");
    assert_eq!(call("MOD", &[decimal(75, 2, 1), int(2)]), "1.5 :: DECIMAL(2, 1) NOT NULL");
    assert_eq!(call("LOG2", &[decimal(25, 2, 1)]), "1.3219280948873624 :: DOUBLE NOT NULL");
    assert_eq!(call("LOG", &[int(2), int(8)]), "3.0 :: DOUBLE NOT NULL");
    assert_eq!(call("LN", &[int(0)]), "-Infinity :: DOUBLE NOT NULL");
    assert_eq!(call("SQRT", &[int(-1)]), "NaN :: DOUBLE NOT NULL");
    assert_eq!(call("POWER", &[int(0), int(0)]), "1.0 :: DOUBLE NOT NULL");
    assert_eq!(call("COT", &[int(1)]), "0.6420926159343306 :: DOUBLE NOT NULL");
    assert_eq!(call("EXP", &[double(-2.5)]), "0.0820849986238988 :: DOUBLE NOT NULL");
}

#[test]
fn dates_and_times_are_taken_apart_and_rounded() {
    let call = function;
    let (late, old) = (timestamp("2024-02-29 23:59:59.999", 3), timestamp("1969-12-31 23:59:59.5", 1));
    let date = from_text("2024-12-30", TypeRoot::Date);
    let instant = from_text("2024-03-31 01:30:00", TypeRoot::TimestampLtz(3));
    let extract =
        |unit: &str, value: &super::evaluation::Value| call("EXTRACT", &[text(unit), value.clone()]);
    assert_eq!(extract("DOW", &late), "5 :: BIGINT NOT NULL");
    assert_eq!(extract("MILLISECOND", &date), "87 :: BIGINT NOT NULL");
    assert_eq!(extract("SECOND", &date), "20 :: BIGINT NOT NULL");
    assert_eq!(extract("EPOCH", &date), "1735516800 :: BIGINT NOT NULL");
    assert_eq!(extract("WEEK", &instant), "13 :: BIGINT NOT NULL");
    assert_eq!(extract("DOY", &instant), "91 :: BIGINT NOT NULL");
    let floor = |unit: &str, value: &super::evaluation::Value| call("FLOOR", &[value.clone(), text(unit)]);
    let ceil = |unit: &str, value: &super::evaluation::Value| call("CEIL", &[value.clone(), text(unit)]);
    assert_eq!(ceil("SECOND", &late), "2024-03-01 00:00:00.000 :: TIMESTAMP(3) NOT NULL");
    assert_eq!(floor("QUARTER", &old), "1970-01-01 00:00:00.0 :: TIMESTAMP(1) NOT NULL");
    assert_eq!(floor("WEEK", &old), "1969-12-28 00:00:00.0 :: TIMESTAMP(1) NOT NULL");
    assert_eq!(ceil("YEAR", &date), "2025-01-01 :: DATE NOT NULL");
    assert_eq!(ceil("DAY", &instant), "2024-04-01 01:00:00.000 :: TIMESTAMP_LTZ(3) NOT NULL");
    assert_eq!(ceil("HOUR", &instant), "2024-03-31 03:00:00.000 :: TIMESTAMP_LTZ(3) NOT NULL");
    assert_eq!(ceil("WEEK", &instant), "2024-03-31 00:00:00.000 :: TIMESTAMP_LTZ(3) NOT NULL");
}

#[test]
fn dates_and_times_are_moved_and_measured() {
    let call = function;
    let late = timestamp("2024-02-29 23:59:59.999", 3);
    let end = timestamp("2025-01-31 00:00:00", 0);
    let date = from_text("2024-12-30", TypeRoot::Date);
    let add = |unit: &str, value: &super::evaluation::Value| {
        call("TIMESTAMPADD", &[text(unit), int(-13), value.clone()])
    };
    let diff = |unit: &str, from: &super::evaluation::Value| {
        call("TIMESTAMPDIFF", &[text(unit), from.clone(), end.clone()])
    };
    assert_eq!(add("MONTH", &late), "2023-01-29 23:59:59.999 :: TIMESTAMP(3) NOT NULL");
    assert_eq!(add("QUARTER", &late), "2020-11-29 23:59:59.999 :: TIMESTAMP(3) NOT NULL");
    assert_eq!(add("SECOND", &date), "2024-12-29 23:59:47.000000 :: TIMESTAMP(6) NOT NULL");
    assert_eq!(add("WEEK", &date), "2024-09-30 :: DATE NOT NULL");
    assert_eq!(diff("SECOND", &late), "29030400 :: INT NOT NULL");
    assert_eq!(diff("MONTH", &late), "11 :: INT NOT NULL");
    assert_eq!(diff("WEEK", &date), "4 :: INT NOT NULL");
    let instant = from_text("2024-03-31 01:30:00", TypeRoot::TimestampLtz(3));
    let months = super::evaluation::Value {
        data_type: TypeRoot::IntervalYearMonth(super::YEAR_MONTH).not_null(),
        scalar: datafusion::common::ScalarValue::IntervalYearMonth(Some(27)),
    };
    assert_eq!(
        operation(ArithmeticOp::Plus, &instant, &months),
        "2026-06-30 02:30:00.000 :: TIMESTAMP_LTZ(3) NOT NULL"
    );
    let millis = super::evaluation::Value {
        data_type: TypeRoot::IntervalDayTime(super::DAY_TIME).not_null(),
        scalar: datafusion::common::ScalarValue::DurationMillisecond(Some(93_784_500)),
    };
    let early = from_text("2021-01-03", TypeRoot::Date);
    assert_eq!(operation(ArithmeticOp::Minus, &early, &millis), "2021-01-02 :: DATE NOT NULL");
    assert_eq!(
        operation(ArithmeticOp::Multiply, &int(2), &millis),
        "+2 04:06:09.000 :: INTERVAL SECOND(3) NOT NULL"
    );
}

#[test]
fn dates_and_times_are_written_and_read() {
    let call = function;
    let late = timestamp("2024-02-29 23:59:59.999", 3);
    let instant = from_text("2024-03-31 01:30:00", TypeRoot::TimestampLtz(3));
    assert_eq!(call("DATE_FORMAT", &[late, text("yyyyMMdd'T'HHmmss")]), "20240229T235959 :: STRING NOT NULL");
    assert_eq!(
        call("DATE_FORMAT", &[instant.clone(), text("EEE, d MMM yy")]),
        "Sun, 31 Mar 24 :: STRING NOT NULL"
    );
    assert_eq!(
        call("DATE_FORMAT", &[instant, text("QQQ DDD hh:mm a")]),
        "Q1 091 01:30 AM :: STRING NOT NULL"
    );
    assert_eq!(
        call("DATE_FORMAT", &[text("2024-03-10 01:30:00"), text("yyyyMMdd")]),
        "20240310 :: STRING NOT NULL"
    );
    assert_eq!(
        call("DATE_FORMAT", &[from_text("2024-12-30", TypeRoot::Date), text("DDD")]),
        "org.apache.calcite.sql.validate.SqlValidatorException: Cannot apply 'DATE_FORMAT' to arguments of type \
         'DATE_FORMAT(<DATE>, <CHAR(3)>)'. Supported form(s): 'DATE_FORMAT(<TIMESTAMP>, <CHARACTER>)'\n\
         'DATE_FORMAT(<CHARACTER>, <CHARACTER>)'"
    );
    assert_eq!(
        call("TO_TIMESTAMP", &[text("2024-02-29 12:00:00.123456")]),
        "2024-02-29 12:00:00.123 :: TIMESTAMP(3)"
    );
    assert_eq!(
        call("TO_TIMESTAMP", &[text("01/02/2024"), text("dd/MM/yyyy")]),
        "2024-02-01 00:00:00.000 :: TIMESTAMP(3)"
    );
    assert_eq!(call("TO_TIMESTAMP", &[text("2024-01-01T10:00:00Z")]), "<NULL> :: TIMESTAMP(3)");
    assert_eq!(call("TO_DATE", &[text("2024-2-3")]), "2024-02-03 :: DATE");
    assert_eq!(call("TO_TIMESTAMP_LTZ", &[int(1000), int(3)]), "1970-01-01 01:00:01.000 :: TIMESTAMP_LTZ(3)");
    assert_eq!(call("FROM_UNIXTIME", &[int(0)]), "1970-01-01 01:00:00 :: STRING");
    assert_eq!(call("UNIX_TIMESTAMP", &[text("1970-01-01 01:00:00")]), "0 :: BIGINT NOT NULL");
    assert_eq!(call("UNIX_TIMESTAMP", &[text("x")]), "-9223372036854775808 :: BIGINT NOT NULL");
    assert_eq!(
        call("CONVERT_TZ", &[text("1970-01-01 00:00:00"), text("UTC"), text("America/Los_Angeles")]),
        "1969-12-31 16:00:00 :: STRING"
    );
    assert_eq!(call("LOCALTIMESTAMP", &[]), "2024-03-01 00:59:59.999 :: TIMESTAMP(3) NOT NULL");
    assert_eq!(call("CURRENT_DATE", &[]), "2024-03-01 :: DATE NOT NULL");
    assert_eq!(call("CURRENT_TIME", &[]), "00:59:59 :: TIME(0) NOT NULL");
    assert_eq!(call("NOW", &[]), "2024-03-01 00:59:59.999 :: TIMESTAMP_LTZ(3) NOT NULL");
}

#[test]
fn conditions_choose_and_keep_the_common_type() {
    let call = function;
    let unknown = null(TypeRoot::Int);
    assert_eq!(call("IF", &[null(TypeRoot::Boolean), int(1), int(2)]), "2 :: INT");
    assert_eq!(call("IFNULL", &[null(TypeRoot::STRING), text("d")]), "d :: STRING NOT NULL");
    assert_eq!(call("COALESCE", &[null(TypeRoot::Null), int(1)]), "1 :: INT NOT NULL");
    assert_eq!(call("NULLIF", &[int(1), int(1)]), "<NULL> :: INT");
    assert_eq!(call("NULLIF", &[decimal(15, 2, 1), int(2)]), "1.5 :: DECIMAL(2, 1)");
    assert_eq!(call("GREATEST", &[int(1), decimal(25, 2, 1), int(2)]), "2.5 :: DECIMAL(11, 1) NOT NULL");
    assert_eq!(call("LEAST", &[int(1), unknown]), "<NULL> :: INT");
    assert_eq!(call("LEAST", &[double(f64::NAN), double(2.0)]), "2.0 :: DOUBLE NOT NULL");
    assert_eq!(call("TYPEOF", &[text("abc")]), "CHAR(3) NOT NULL :: STRING NOT NULL");
    assert_eq!(call("CURRENT_DATABASE", &[]), "db :: STRING NOT NULL");
}

#[test]
fn collections_are_made_and_read() {
    let call = function;
    assert_eq!(
        call("ARRAY", &[int(1), decimal(25, 2, 1)]),
        "[1.0, 2.5] :: ARRAY<DECIMAL(11, 1) NOT NULL> NOT NULL"
    );
    assert_eq!(
        call("MAP", &[text("k"), int(1), text("l"), int(2)]),
        "{k=1, l=2} :: MAP<CHAR(1) NOT NULL, INT NOT NULL> NOT NULL"
    );
    assert_eq!(
        call("ROW", &[int(1), text("a"), null(TypeRoot::Int)]),
        "(1, a, NULL) :: ROW<`EXPR$0` INT NOT NULL, `EXPR$1` CHAR(1) NOT NULL, `EXPR$2` INT> NOT NULL"
    );
}

#[test]
fn elements_of_arrays_are_chosen() {
    let call = function;
    let ints = |values: &[i32]| array(&values.iter().map(|value| int(*value)).collect::<Vec<_>>());
    let result = "ARRAY<INT NOT NULL> NOT NULL";
    assert_eq!(call("ARRAY_DISTINCT", &[ints(&[1, 2, 1])]), format!("[1, 2] :: {result}"));
    assert_eq!(call("ARRAY_SORT", &[ints(&[3, 1, 2])]), format!("[1, 2, 3] :: {result}"));
    assert_eq!(call("ARRAY_SLICE", &[ints(&[1, 2, 3, 4]), int(2), int(3)]), format!("[2, 3] :: {result}"));
    assert_eq!(call("ARRAY_SLICE", &[ints(&[1, 2, 3, 4]), int(-2)]), format!("[3, 4] :: {result}"));
    assert_eq!(call("ARRAY_UNION", &[ints(&[1, 2]), ints(&[2, 3])]), format!("[1, 2, 3] :: {result}"));
    assert_eq!(call("ARRAY_EXCEPT", &[ints(&[1, 2]), ints(&[2])]), format!("[1] :: {result}"));
    assert_eq!(call("ARRAY_INTERSECT", &[ints(&[1, 2]), ints(&[2, 3])]), format!("[2] :: {result}"));
    assert_eq!(call("ARRAY_REMOVE", &[ints(&[1, 2, 1]), int(1)]), format!("[2] :: {result}"));
    assert_eq!(call("ARRAY_REVERSE", &[ints(&[1, 2])]), format!("[2, 1] :: {result}"));
    assert_eq!(call("ARRAY_CONCAT", &[ints(&[1]), ints(&[2])]), format!("[1, 2] :: {result}"));
    assert_eq!(call("ARRAY_APPEND", &[ints(&[1]), int(2)]), format!("[1, 2] :: {result}"));
    assert_eq!(call("ARRAY_APPEND", &[ints(&[1]), null(TypeRoot::Int)]), "[1, NULL] :: ARRAY<INT> NOT NULL");
    assert_eq!(call("ARRAY_PREPEND", &[ints(&[1]), int(2)]), format!("[2, 1] :: {result}"));
    assert_eq!(call("ARRAY_MAX", &[ints(&[1, 5, 2])]), "5 :: INT");
    assert_eq!(call("ARRAY_MIN", &[ints(&[3, 1, 2])]), "1 :: INT");
    assert_eq!(call("ARRAY_POSITION", &[ints(&[1, 2]), int(5)]), "0 :: INT NOT NULL");
    assert_eq!(call("ARRAY_CONTAINS", &[ints(&[1, 2]), int(2)]), "TRUE :: BOOLEAN NOT NULL");
    assert_eq!(call("CARDINALITY", &[ints(&[1, 2])]), "2 :: INT NOT NULL");
    assert_eq!(call("ELEMENT", &[ints(&[7])]), "7 :: INT NOT NULL");
    assert_eq!(call("ITEM", &[ints(&[7, 8]), int(2)]), "8 :: INT");
    assert_eq!(call("ITEM", &[ints(&[7, 8]), int(5)]), "<NULL> :: INT");
    assert!(
        call("ITEM", &[ints(&[7]), int(0)])
            .ends_with("Array element access needs an index starting at 1 but was 0.")
    );
    let texts = array(&[text("a"), null(TypeRoot::Char(1)), text("b")]);
    assert_eq!(call("ARRAY_JOIN", &[texts.clone(), text("-"), text("?")]), "a-?-b :: STRING NOT NULL");
    assert_eq!(call("ARRAY_JOIN", &[texts, text("-")]), "a-b :: STRING NOT NULL");
    assert_eq!(call("SPLIT", &[text("a b  c"), text(" ")]), "[a, b, , c] :: ARRAY<STRING> NOT NULL");
}
