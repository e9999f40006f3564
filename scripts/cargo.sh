#!/usr/bin/env bash
# Runs the cargo that find-rust.sh finds, with what `cargo install` installed on PATH.
set -euo pipefail

if ! bin=$("$(dirname "$0")/find-rust.sh"); then
    echo "no recent enough Rust found: run 'make setup'" >&2
    exit 2
fi
export PATH="$bin:$PATH:${CARGO_HOME:-${HOME:-/root}/.cargo}/bin"
exec cargo "$@"
