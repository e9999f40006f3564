#!/usr/bin/env bash
# A live Linux peer: every stock program of perftest and the pingpongs once in each role, against rdma_rxe in a guest, and some through
# our impairment stage. The whole matrix is `make interop`.
# limit: 600 s (a minute or two on an idle machine)
set -euo pipefail
cd "$(dirname "$0")/.."

if ! reason=$(scripts/interop/guest.sh possible); then
    echo "no Linux guest can be made here: $reason" >&2
    exit 77
fi
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "taps and namespaces need root: run this as root" >&2; exit 2; }
    exec sudo RH_BIN="${RH_BIN:-}" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-}" ROCKHOPPER_CACHE="$(scripts/interop/guest.sh cache)" "$PWD/tests/interop-short.sh"
fi
# The program as the other tests use it, unless RH_BIN names another.
if [ -z "${RH_BIN:-}" ]; then
    scripts/cargo.sh build --quiet -p rockhopper-perf
    export RH_BIN=${CARGO_TARGET_DIR:-$PWD/target}/debug
fi
exec scripts/interop/matrix.py --short
