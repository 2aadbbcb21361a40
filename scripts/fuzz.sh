#!/usr/bin/env bash
# Fuzzes splitter and parser, each for the given number of seconds (600). Needs a nightly toolchain and cargo-fuzz. All code is
# safe Rust, so no sanitizer is built in; overflow checks and assertions are.
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
seconds=${1:-600}
# The product parses on a thread with a large stack, so that 500 levels of nesting fit; so must the fuzzer.
ulimit -s 1048576
has cargo-fuzz || cargo install --quiet --locked cargo-fuzz
for target in split parse; do
  step "fuzz $target for $seconds s"
  corpus="$CARGO_TARGET_DIR/fuzz-corpus/$target"
  mkdir -p "$corpus"
  cargo +nightly fuzz run --sanitizer none --fuzz-dir tests/fuzz --target-dir "$CARGO_TARGET_DIR/fuzz" "$target" \
    "$corpus" "tests/fuzz/corpus/$target" -- -max_total_time="$seconds" -timeout=20 -max_len=65536
done
