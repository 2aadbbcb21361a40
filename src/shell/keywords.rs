//! The words that completion offers and highlighting marks: those of Flink's statements, and a few of Spark's for Iceberg.

use crate::sql::is_reserved;

/// Keywords, sorted.
#[rustfmt::skip]
pub(crate) static KEYWORDS: &[&str] = &[
    "ADD", "AFTER", "ALL", "ALTER", "ANALYZE", "AND", "ARRAY", "AS", "ASC", "BEGIN", "BETWEEN", "BIGINT", "BOOLEAN",
    "BRANCH", "BY", "BYTES", "CALL", "CASCADE", "CASE", "CAST", "CATALOG", "CATALOGS", "CHANGELOG_MODE", "CHAR", "CLEAR",
    "COLUMN", "COLUMNS", "COMMENT", "COMPILE", "COMPUTE", "CONSTRAINT", "COUNT", "CREATE", "CROSS", "CUMULATE",
    "CURRENT", "CURRENT_DATE", "CURRENT_TIMESTAMP", "DATABASE", "DATABASES", "DATE", "DAY", "DECIMAL", "DELETE", "DESC",
    "DESCRIBE", "DESCRIPTOR", "DISTINCT", "DISTRIBUTED", "DOUBLE", "DROP", "ELSE", "END", "ENFORCED", "ESTIMATED_COST",
    "EXCEPT", "EXCLUDING", "EXECUTE", "EXISTS", "EXIT", "EXPLAIN", "EXTENDED", "EXTRACT", "FALSE", "FETCH", "FIRST",
    "FLOAT", "FOR", "FROM", "FULL", "FUNCTION", "FUNCTIONS", "GROUP", "GROUPING", "HAVING", "HELP", "HOP", "HOUR", "IF",
    "ILIKE", "IN", "INCLUDING", "INNER", "INSERT", "INT", "INTERSECT", "INTERVAL", "INTO", "IS", "JAR", "JARS", "JOB",
    "JOBS", "JOIN", "JSON_EXECUTION_PLAN", "KEY", "LATERAL", "LEFT", "LIKE", "LIMIT", "LOAD", "MAP", "MATCH_RECOGNIZE",
    "METADATA", "MINUTE", "MODIFY", "MODULE", "MODULES", "MONTH", "MULTISET", "NATURAL", "NOT", "NULL", "OF", "OFFSET",
    "ON", "OPTIONS", "OR", "ORDER", "OUTER", "OVER", "OVERWRITE", "OVERWRITING", "PARTITION", "PARTITIONED",
    "PARTITIONS", "PLAN", "PLAN_ADVICE", "PRIMARY", "PROCEDURES", "QUIT", "REMOVE", "RENAME", "REPLACE", "RESET",
    "RIGHT", "ROLLUP", "ROW", "ROWS", "ROW_NUMBER", "SAVEPOINT", "SECOND", "SELECT", "SEMI", "SESSION", "SET", "SHOW",
    "SMALLINT", "STATEMENT", "STATISTICS", "STOP", "STRING", "SYSTEM", "SYSTEM_TIME", "TABLE", "TABLES", "TAG",
    "TEMPORARY", "THEN", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TINYINT", "TO", "TRUE", "TRUNCATE", "TRY_CAST",
    "TUMBLE", "UNION", "UNIQUE", "UNLOAD", "UNNEST", "UPDATE", "USE", "USING", "VALUES", "VARCHAR", "VIEW", "VIEWS",
    "VIRTUAL", "WATERMARK", "WHEN", "WHERE", "WINDOW", "WITH", "YEAR",
];

/// Returns whether a word is a keyword, in any case.
pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.binary_search(&word.to_ascii_uppercase().as_str()).is_ok() || is_reserved(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_sorted() {
        assert!(KEYWORDS.is_sorted());
        assert!(is_keyword("select") && is_keyword("WATERMARK") && !is_keyword("orders"));
    }
}
