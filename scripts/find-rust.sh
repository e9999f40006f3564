#!/usr/bin/env bash
# Prints the directory of a cargo that can build this workspace, or fails. Looks at PATH, at rustup's directory and at
# the versioned packages of Ubuntu (/usr/lib/rust-1.NN/bin), and asks each for its version.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/Cargo.toml")

new_enough() { # CARGO
    local have
    # From / so that no toolchain file or override of another directory answers.
    have=$(cd / && "$1" --version 2>/dev/null | awk '{ print $2 }') || return 1
    [ -n "$have" ] && [ "$(printf '%s\n' "$needed" "$have" | sort -V | sed -n 1p)" = "$needed" ]
}

for cargo in "$(command -v cargo || true)" "${CARGO_HOME:-${HOME:-/root}/.cargo}/bin/cargo" /usr/lib/rust-1.*/bin/cargo; do
    if [ -x "$cargo" ] && new_enough "$cargo"; then
        dirname "$cargo"
        exit 0
    fi
done
exit 1
