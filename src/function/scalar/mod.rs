//! The functions with a call syntax, by group.

mod array;
mod case;
mod clock;
mod collection;
mod concat;
mod conditional;
mod encode;
mod extract;
mod floor_time;
mod format;
mod map;
mod math;
mod round;
mod search;
mod substring;
mod system;
mod timestamp;

use super::ScalarFunction;

/// Every scalar function with a call syntax, in the order of the reference.
pub static FUNCTIONS: &[&dyn ScalarFunction] = &[
    // arithmetic
    &math::POWER,
    &math::SQRT,
    &math::LN,
    &math::LOG10,
    &math::LOG2,
    &math::EXP,
    &math::LOG,
    &round::ABS,
    &round::CEIL,
    &round::FLOOR,
    &round::ROUND,
    &round::TRUNCATE,
    &round::SIGN,
    &math::SIN,
    &math::COS,
    &math::TAN,
    &math::COT,
    &math::ASIN,
    &math::ACOS,
    &math::ATAN,
    &math::ATAN2,
    &math::SINH,
    &math::COSH,
    &math::TANH,
    &math::DEGREES,
    &math::RADIANS,
    &math::PI,
    &math::E,
    &math::MOD,
    &math::BIN,
    &system::RAND,
    &system::RAND_INTEGER,
    &system::UUID,
    // text
    &concat::CONCAT_OPERATOR,
    &search::CHAR_LENGTH,
    &case::UPPER,
    &case::LOWER,
    &case::INITCAP,
    &search::POSITION,
    &search::INSTR,
    &search::LOCATE,
    &case::TRIM,
    &case::LTRIM,
    &case::RTRIM,
    &concat::REPEAT,
    &concat::REPLACE,
    &concat::TRANSLATE,
    &substring::OVERLAY,
    &substring::SUBSTRING,
    &substring::LEFT,
    &substring::RIGHT,
    &concat::LPAD,
    &concat::RPAD,
    &concat::REVERSE,
    &search::ASCII,
    &search::CHR,
    &concat::CONCAT,
    &concat::CONCAT_WS,
    &concat::ELT,
    &substring::SPLIT_INDEX,
    &search::STARTSWITH,
    &search::ENDSWITH,
    &search::IS_ALPHA,
    &search::IS_DIGIT,
    &search::IS_DECIMAL,
    &encode::HEX,
    &encode::TO_BASE64,
    &encode::FROM_BASE64,
    &encode::URL_ENCODE,
    &encode::URL_DECODE,
    &encode::ENCODE,
    &encode::DECODE,
    // dates and times
    &clock::CURRENT_DATE,
    &clock::CURRENT_TIME,
    &clock::CURRENT_TIMESTAMP,
    &clock::LOCALTIME,
    &clock::LOCALTIMESTAMP,
    &clock::NOW,
    &clock::CURRENT_ROW_TIMESTAMP,
    &clock::PROCTIME,
    &extract::EXTRACT,
    &extract::YEAR,
    &extract::QUARTER,
    &extract::MONTH,
    &extract::WEEK,
    &extract::DAYOFYEAR,
    &extract::DAYOFMONTH,
    &extract::DAYOFWEEK,
    &extract::HOUR,
    &extract::MINUTE,
    &extract::SECOND,
    &timestamp::TIMESTAMPADD,
    &timestamp::TIMESTAMPDIFF,
    &format::DATE_FORMAT,
    &format::TO_DATE,
    &format::TO_TIMESTAMP,
    &format::TO_TIMESTAMP_LTZ,
    &format::UNIX_TIMESTAMP,
    &format::FROM_UNIXTIME,
    &format::CONVERT_TZ,
    // conditions and the query itself
    &conditional::IF,
    &conditional::IFNULL,
    &conditional::NULLIF,
    &conditional::COALESCE,
    &conditional::GREATEST,
    &conditional::LEAST,
    &system::TYPEOF,
    &system::CURRENT_DATABASE,
    // collections
    &collection::ARRAY,
    &collection::MAP,
    &collection::ROW,
    &collection::ITEM,
    &collection::CARDINALITY,
    &collection::ELEMENT,
    &collection::ARRAY_CONTAINS,
    &array::ARRAY_APPEND,
    &array::ARRAY_CONCAT,
    &array::ARRAY_DISTINCT,
    &array::ARRAY_EXCEPT,
    &array::ARRAY_INTERSECT,
    &array::ARRAY_JOIN,
    &array::ARRAY_MAX,
    &array::ARRAY_MIN,
    &array::ARRAY_POSITION,
    &array::ARRAY_PREPEND,
    &array::ARRAY_REMOVE,
    &array::ARRAY_REVERSE,
    &array::ARRAY_SLICE,
    &array::ARRAY_SORT,
    &array::ARRAY_UNION,
    &map::MAP_KEYS,
    &map::MAP_VALUES,
    &map::MAP_ENTRIES,
    &map::MAP_UNION,
    &map::MAP_FROM_ARRAYS,
    &map::SPLIT,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_everything_is_documented() {
        let mut names = std::collections::BTreeSet::new();
        for function in FUNCTIONS {
            assert!(names.insert(function.name()), "{} stands twice", function.name());
            for alias in function.aliases() {
                assert!(names.insert(alias), "{alias} stands twice");
            }
            assert!(function.doc().ends_with('.'), "the doc of {} is no sentence", function.name());
            assert!(!function.signatures().is_empty(), "{} has no form", function.name());
        }
    }
}
