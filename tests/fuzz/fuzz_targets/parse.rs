//! Any text parses or is refused without a panic, with a place inside the text; what parses prints and parses back.

#![no_main]

use lakehead::sql::parse_statement;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match parse_statement(text) {
        Err(error) => {
            assert!(!error.message().is_empty());
            if let Some(span) = error.span() {
                assert!(span.start <= span.end && span.end <= text.len(), "{span:?} of {}: {error}", text.len());
                assert!(text.is_char_boundary(span.start) && text.is_char_boundary(span.end), "{error}");
            }
        }
        Ok(statement) => {
            let printed = statement.to_string();
            match parse_statement(&printed) {
                Ok(again) => assert_eq!(again, statement, "{printed}"),
                Err(error) => panic!("{printed}: {error}"),
            }
        }
    }
});
