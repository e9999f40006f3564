#!/usr/bin/env bash
# `make miri`: the pure crates and registered memory under Miri, which finds undefined behaviour. A subset that ends in minutes:
# fewer cases of each property, and none of the tests that move gigabytes or map files.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! rustup +nightly component list --installed 2>/dev/null | grep -q '^miri'; then
    rustup toolchain install nightly --profile minimal --component miri,rust-src
fi
export PROPTEST_CASES=${PROPTEST_CASES:-2}
# Tests read vectors from files; the emulation of weak memory reports fences of crossbeam-queue that are sound.
export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-disable-weak-memory-emulation"
miri() { cargo +nightly miri test --quiet "$@"; }
miri -p rockhopper-wire --test wire -- --skip captures --skip vectors_icrc --skip frame_bits
miri -p rockhopper-memory --tests
miri -p rockhopper-engine --lib -- --skip huge --skip any_packet --skip segmentation
miri -p rockhopper-engine --test engine
