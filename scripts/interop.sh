#!/usr/bin/env bash
# The whole matrix against a live Linux peer; the table goes into docs/interop.md. Called by `make interop`, which builds the programs
# and the guest first.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! reason=$(scripts/interop/guest.sh possible); then
    echo "no Linux guest can be made here: $reason" >&2
    exit 2
fi
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "taps and namespaces need root: run this as root" >&2; exit 2; }
    exec sudo RH_BIN="${RH_BIN:-}" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-}" ROCKHOPPER_CACHE="$(scripts/interop/guest.sh cache)" "$PWD/scripts/interop.sh"
fi
export RH_BIN=${RH_BIN:-${CARGO_TARGET_DIR:-$PWD/target}/release}
exec scripts/interop/matrix.py --write docs/interop.md
