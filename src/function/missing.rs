//! Functions that Flink has and we do not have yet. A call of one is refused by its name, not taken for a mistake of the user's.

/// The names, in order.
#[rustfmt::skip]
const MISSING: &[&str] = &[
    "BITMAP_AND", "BITMAP_ANDNOT", "BITMAP_AND_AGG",
    "BITMAP_AND_CARDINALITY_AGG", "BITMAP_BUILD", "BITMAP_BUILD_AGG", "BITMAP_BUILD_CARDINALITY_AGG",
    "BITMAP_CARDINALITY", "BITMAP_FROM_BYTES", "BITMAP_OR", "BITMAP_OR_AGG", "BITMAP_OR_CARDINALITY_AGG",
    "BITMAP_TO_ARRAY", "BITMAP_TO_BYTES", "BITMAP_TO_STRING", "BITMAP_XOR", "BITMAP_XOR_AGG",
    "BITMAP_XOR_CARDINALITY_AGG", "CUME_DIST", "CUMULATE", "CURRENT_WATERMARK", "DENSE_RANK",
    "GROUPING", "GROUPING_ID", "GROUP_ID", "HOP", "HOP_END", "HOP_PROCTIME", "HOP_ROWTIME", "HOP_START",
    "INET_ATON", "INET_NTOA", "JSON", "JSON_ARRAY", "JSON_ARRAYAGG", "JSON_EXISTS", "JSON_OBJECT", "JSON_OBJECTAGG",
    "JSON_QUERY", "JSON_QUOTE", "JSON_STRING", "JSON_UNQUOTE", "JSON_VALUE", "LAG", "LEAD", "MATCH_PROCTIME",
    "MATCH_ROWTIME", "MD5", "ML_PREDICT", "NTH_VALUE", "NTILE", "OBJECT_OF", "OBJECT_UPDATE", "PARSE_JSON",
    "PARSE_URL", "PERCENTILE", "PERCENT_RANK", "PRINTF", "RANK", "REGEXP", "REGEXP_COUNT", "REGEXP_EXTRACT",
    "REGEXP_EXTRACT_ALL", "REGEXP_INSTR", "REGEXP_REPLACE", "REGEXP_SUBSTR", "ROW_NUMBER", "SESSION", "SESSION_END",
    "SESSION_PROCTIME", "SESSION_ROWTIME", "SESSION_START", "SHA1", "SHA2", "SHA224", "SHA256", "SHA384", "SHA512",
    "SOURCE_WATERMARK", "STR_TO_MAP", "TRY_PARSE_JSON", "TUMBLE", "TUMBLE_END", "TUMBLE_PROCTIME", "TUMBLE_ROWTIME",
    "TUMBLE_START", "UNHEX",
];

/// Returns whether Flink has a function of this name, in any case, that is missing here.
pub fn is_missing(name: &str) -> bool {
    MISSING.iter().any(|missing| missing.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::MISSING;

    #[test]
    fn what_is_there_is_not_called_missing() {
        for name in MISSING {
            let is_there = super::super::find(name).is_some() || super::super::is_aggregate(name);
            assert!(!is_there, "{name} is there: take it off the list");
        }
    }

    #[test]
    fn names_stand_in_order_and_once() {
        assert!(MISSING.is_sorted_by(|left, right| left < right), "{MISSING:?}");
    }
}
