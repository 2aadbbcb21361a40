//! Any text splits without a panic; pieces are where they say, and text that comes in parts splits the same.

#![no_main]

use lakehead::sql::{Splitter, split};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &str| {
    let pieces = split(script);
    let mut end = 0;
    for piece in &pieces {
        assert!(piece.span.start >= end && piece.span.end >= piece.span.start);
        assert_eq!(piece.text.len(), piece.span.end - piece.span.start);
        end = piece.span.end;
        if !script.contains("SQL>") {
            assert_eq!(piece.text, script[piece.span.start..piece.span.end]);
        }
    }
    let mut splitter = Splitter::new();
    let mut parts = Vec::new();
    for character in script.chars() {
        splitter.push(character.encode_utf8(&mut [0; 4]));
        parts.extend(std::iter::from_fn(|| splitter.next_piece()));
    }
    parts.extend(splitter.finish());
    assert_eq!(parts, pieces);
});
