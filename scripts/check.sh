#!/usr/bin/env bash
# Formatting, lints, documentation and unused dependencies: what must hold before anything is run.
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
step "formatting"
cargo fmt --check
step "lints"
cargo clippy --all-targets --locked -- -D warnings
step "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --document-private-items --locked --quiet
if has cargo-machete; then
  step "unused dependencies"
  cargo machete
fi
