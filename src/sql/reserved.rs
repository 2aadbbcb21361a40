//! Words that Flink reserves, and the few of them that we cannot accept as names either.
//!
//! Flink wants back-ticks around 458 words. We accept most of them bare, since a script of an older version may use a word
//! that was reserved later; only the words that hold statements together stay closed.

/// Returns whether Flink 2.3 reserves a word; error texts depend on it.
pub fn is_reserved(word: &str) -> bool {
    contains(RESERVED, word)
}

/// Returns whether a bare word can never be a name, because it would be taken for a part of the statement.
pub(super) fn is_structural(word: &str) -> bool {
    contains(STRUCTURAL, word)
}

/// Looks a word up without regard to case.
fn contains(words: &[&str], word: &str) -> bool {
    // The longest reserved word has 32 letters; a longer one need not be copied to be looked up.
    word.len() <= 40 && words.binary_search(&word.to_ascii_uppercase().as_str()).is_ok()
}

/// The reserved words, sorted.
#[rustfmt::skip]
static RESERVED: &[&str] = &[
    "ABS", "ALL", "ALLOCATE", "ALLOW", "ALTER", "AND", "ANY", "ARE", "ARRAY", "ARRAY_AGG",
    "ARRAY_CONCAT_AGG", "ARRAY_MAX_CARDINALITY", "ARTIFACT", "AS", "ASENSITIVE", "ASOF", "ASYMMETRIC", "AT",
    "ATOMIC", "AUTHORIZATION", "AVG", "BEGIN", "BEGIN_FRAME", "BEGIN_PARTITION", "BETWEEN", "BIGINT",
    "BINARY", "BIT", "BITMAP", "BLOB", "BOOLEAN", "BOTH", "BUCKETS", "BY", "BYTES", "CALL", "CALLED",
    "CARDINALITY", "CASCADED", "CASE", "CAST", "CATALOGS", "CEIL", "CEILING", "CHAR", "CHARACTER",
    "CHARACTER_LENGTH", "CHAR_LENGTH", "CHECK", "CLASSIFIER", "CLOB", "CLOSE", "COALESCE", "COLLATE",
    "COLLECT", "COLUMN", "COMMENT", "COMMIT", "COMPILE", "CONDITION", "CONNECT", "CONNECTIONS",
    "CONSTRAINT", "CONTAINS", "CONTAINS_SUBSTR", "CONTINUOUS", "CONVERT", "CORR", "CORRESPONDING", "COUNT",
    "COVAR_POP", "COVAR_SAMP", "CREATE", "CROSS", "CUBE", "CUME_DIST", "CURRENT", "CURRENT_CATALOG",
    "CURRENT_DATE", "CURRENT_DEFAULT_TRANSFORM_GROUP", "CURRENT_PATH", "CURRENT_ROLE", "CURRENT_ROW",
    "CURRENT_SCHEMA", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_TRANSFORM_GROUP_FOR_TYPE",
    "CURRENT_USER", "CURSOR", "CYCLE", "DATABASES", "DATE", "DATETIME", "DATETIME_DIFF", "DATETIME_TRUNC",
    "DATE_DIFF", "DATE_TRUNC", "DAY", "DAYOFWEEK", "DAYOFYEAR", "DEALLOCATE", "DEC", "DECIMAL", "DECLARE",
    "DEFAULT", "DEFINE", "DELETE", "DENSE_RANK", "DEREF", "DESCRIBE", "DETERMINISTIC", "DISALLOW",
    "DISCONNECT", "DISTINCT", "DISTRIBUTED", "DISTRIBUTION", "DOT", "DOUBLE", "DRAIN", "DROP", "DYNAMIC",
    "E", "EACH", "ELEMENT", "ELSE", "EMPTY", "END", "END_FRAME", "END_PARTITION", "EQUALS", "ESCAPE",
    "EVERY", "EXCEPT", "EXEC", "EXECUTE", "EXISTS", "EXP", "EXPLAIN", "EXTEND", "EXTENDED", "EXTERNAL",
    "EXTRACT", "FALSE", "FETCH", "FILTER", "FIRST_VALUE", "FLOAT", "FLOOR", "FOR", "FOREIGN", "FRAME_ROW",
    "FREE", "FRESHNESS", "FRIDAY", "FROM", "FROM_BEGINNING", "FROM_NOW", "FROM_TIMESTAMP", "FULL",
    "FUNCTION", "FUNCTIONS", "FUSION", "GET", "GLOBAL", "GRANT", "GROUP", "GROUPING", "GROUPS",
    "GROUP_CONCAT", "HASH", "HAVING", "HOLD", "HOUR", "IDENTITY", "ILIKE", "IMPORT", "IN", "INCLUDE",
    "INDICATOR", "INITIAL", "INNER", "INOUT", "INSENSITIVE", "INSERT", "INT", "INTEGER", "INTERSECT",
    "INTERSECTION", "INTERVAL", "INTO", "IS", "JAR", "JARS", "JOB", "JOBS", "JOIN", "JSON_ARRAY",
    "JSON_ARRAYAGG", "JSON_EXISTS", "JSON_OBJECT", "JSON_OBJECTAGG", "JSON_QUERY", "JSON_SCOPE",
    "JSON_VALUE", "LAG", "LANGUAGE", "LARGE", "LAST_VALUE", "LATERAL", "LEAD", "LEADING", "LEFT", "LIKE",
    "LIKE_REGEX", "LIMIT", "LN", "LOAD", "LOCAL", "LOCALTIME", "LOCALTIMESTAMP", "LOWER", "MATCH",
    "MATCHES", "MATCH_CONDITION", "MATCH_NUMBER", "MATCH_RECOGNIZE", "MATERIALIZED", "MAX", "MEASURE",
    "MEASURES", "MEMBER", "MERGE", "METHOD", "MIN", "MINUS", "MINUTE", "MOD", "MODELS", "MODIFIES",
    "MODIFY", "MODULE", "MODULES", "MONDAY", "MONTH", "MULTISET", "NATIONAL", "NATURAL", "NCHAR", "NCLOB",
    "NEW", "NEXT", "NO", "NONE", "NORMALIZE", "NOT", "NTH_VALUE", "NTILE", "NULL", "NULLIF", "NUMERIC",
    "OCCURRENCES_REGEX", "OCTET_LENGTH", "OF", "OFFSET", "OLD", "OMIT", "ON", "ONE", "ONLY", "OPEN", "OR",
    "ORDER", "ORDINAL", "OUT", "OUTER", "OVER", "OVERLAPS", "OVERLAY", "PARAMETER", "PARTITION", "PATTERN",
    "PER", "PERCENT", "PERCENTILE_CONT", "PERCENTILE_DISC", "PERCENT_RANK", "PERIOD", "PERMUTE", "PIVOT",
    "PORTION", "POSITION", "POSITION_REGEX", "POWER", "PRECEDES", "PRECISION", "PREPARE", "PREV", "PRIMARY",
    "PROCEDURE", "PROCEDURES", "PYTHON", "QUALIFY", "RANGE", "RANK", "RAW", "READS", "REAL", "RECURSIVE",
    "REF", "REFERENCES", "REFERENCING", "REFRESH", "REFRESH_MODE", "REGR_AVGX", "REGR_AVGY", "REGR_COUNT",
    "REGR_INTERCEPT", "REGR_SLOPE", "REGR_SXX", "REGR_SXY", "REGR_SYY", "RELEASE", "REMOVE", "RENAME",
    "RESET", "RESULT", "RESUME", "RESUME_OR_FROM_BEGINNING", "RESUME_OR_FROM_NOW",
    "RESUME_OR_FROM_TIMESTAMP", "RETURN", "RETURNS", "REVOKE", "RIGHT", "RLIKE", "ROLLBACK", "ROLLUP",
    "ROW", "ROWS", "ROW_NUMBER", "RUNNING", "SAFE_CAST", "SAFE_OFFSET", "SAFE_ORDINAL", "SATURDAY",
    "SAVEPOINT", "SCALA", "SCOPE", "SCROLL", "SEARCH", "SECOND", "SEEK", "SELECT", "SENSITIVE", "SEPARATOR",
    "SESSION_USER", "SET", "SHOW", "SIMILAR", "SKIP", "SMALLINT", "SOME", "SPECIFIC", "SPECIFICTYPE", "SQL",
    "SQLEXCEPTION", "SQLSTATE", "SQLWARNING", "SQRT", "START", "START_MODE", "STATIC", "STDDEV_POP",
    "STDDEV_SAMP", "STOP", "STREAM", "STRING", "STRING_AGG", "STRUCTURED", "SUBMULTISET", "SUBSET",
    "SUBSTRING", "SUBSTRING_REGEX", "SUCCEEDS", "SUM", "SUNDAY", "SUSPEND", "SYMMETRIC", "SYSTEM",
    "SYSTEM_TIME", "SYSTEM_USER", "TABLE", "TABLES", "TABLESAMPLE", "THEN", "THURSDAY", "TIME", "TIMESTAMP",
    "TIMESTAMP_DIFF", "TIMESTAMP_LTZ", "TIMESTAMP_TRUNC", "TIMEZONE_HOUR", "TIMEZONE_MINUTE", "TIME_DIFF",
    "TIME_TRUNC", "TINYINT", "TO", "TRAILING", "TRANSLATE", "TRANSLATE_REGEX", "TRANSLATION", "TREAT",
    "TRIGGER", "TRIM", "TRIM_ARRAY", "TRUE", "TRUNCATE", "TRY_CAST", "TUESDAY", "U", "UESCAPE", "UNION",
    "UNIQUE", "UNKNOWN", "UNLOAD", "UNNEST", "UNPIVOT", "UNSIGNED", "UPDATE", "UPPER", "UPSERT", "USE",
    "USER", "USING", "VALUE", "VALUES", "VALUE_OF", "VARBINARY", "VARCHAR", "VARIANT", "VARYING", "VAR_POP",
    "VAR_SAMP", "VERSIONING", "VIEWS", "WATERMARK", "WATERMARKS", "WEDNESDAY", "WHEN", "WHENEVER", "WHERE",
    "WIDTH_BUCKET", "WINDOW", "WITH", "WITHIN", "WITHOUT", "YEAR",
];

/// The words that no name can be without back-ticks, sorted.
#[rustfmt::skip]
static STRUCTURAL: &[&str] = &[
    "ALL", "AND", "AS", "ASOF", "ASYMMETRIC", "BETWEEN", "BY", "CASE", "CREATE", "CROSS", "DISTINCT",
    "DROP", "ELSE", "END", "EXCEPT", "EXISTS", "FALSE", "FETCH", "FOR", "FROM", "FULL", "GROUP", "HAVING",
    "ILIKE", "IN", "INNER", "INSERT", "INTERSECT", "INTO", "IS", "JOIN", "LATERAL", "LEFT", "LIKE", "LIMIT",
    "MATCH_RECOGNIZE", "MINUS", "NATURAL", "NOT", "NULL", "OFFSET", "ON", "OR", "ORDER", "OUTER", "OVER",
    "PIVOT", "QUALIFY", "RIGHT", "RLIKE", "SELECT", "SET", "SIMILAR", "SYMMETRIC", "TABLE", "TABLESAMPLE",
    "THEN", "TRUE", "UNION", "UNNEST", "UNPIVOT", "USING", "VALUES", "WHEN", "WHERE", "WINDOW", "WITH",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_and_looked_up_in_any_case() {
        assert!(RESERVED.is_sorted() && STRUCTURAL.is_sorted());
        assert!(is_reserved("value") && is_reserved("TIMESTAMP_LTZ") && !is_reserved("name"));
        assert!(is_structural("from") && !is_structural("value"));
    }
}
