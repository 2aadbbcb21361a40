# What every script needs first: the repository's root as the working folder, a compiler, and a build folder outside of it.
# Sourced, not run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/lakehead/target}"
mkdir -p "$CARGO_TARGET_DIR"
# One compiler for all, so that lints and formatting mean the same everywhere.
toolchain=1.95.0
if [[ -z ${RUSTUP_TOOLCHAIN:-} ]] && command -v rustup >/dev/null 2>&1; then
  if rustup toolchain list | grep -q "^$toolchain" || rustup toolchain install "$toolchain" --profile minimal -c clippy -c rustfmt; then
    export RUSTUP_TOOLCHAIN=$toolchain
  else
    echo "note: toolchain $toolchain is not there; going on with $(rustc --version)" >&2
  fi
fi

# Says what is going on, above what it prints.
step() { printf '\n== %s\n' "$*"; }

# Whether a command is there.
has() { command -v "$1" >/dev/null 2>&1; }

# Installs Debian packages that are missing; a machine without apt must bring the commands itself.
need_packages() {
  local missing=() package
  for package in "$@"; do dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package"); done
  [[ ${#missing[@]} -eq 0 ]] && return
  has apt-get || { echo "missing: ${missing[*]}; install them and try again" >&2; return 1; }
  local sudo=""
  [[ $(id -u) -eq 0 ]] || sudo=sudo
  $sudo apt-get update -qq && $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}"
}
