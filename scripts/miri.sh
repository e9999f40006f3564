#!/usr/bin/env bash
# `make miri`: the ring of posted requests, registered memory, and of wire and the engine what goes through bytes, queues, key tables and between threads, under
# Miri, which finds undefined behaviour where tests pass by luck. An argument names one crate. Miri is a thousand times slower than
# the machine: tests that do one thing many times do it less often (`cfg!(miri)`), properties run with few cases, and what maps files is
# left out. `rest` runs what is left of wire and the engine (captures and vectors of packets, dialogues of whole QPs): many hours.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! rustup +nightly component list --installed 2>/dev/null | grep -q '^miri'; then
    rustup toolchain install nightly --profile minimal --component miri,rust-src
fi
export PROPTEST_CASES=${PROPTEST_CASES:-2}
# Tests read vectors from files. Registered memory is accessed as words and as bytes, which Miri's weak memory does not take.
export MIRIFLAGS="${MIRIFLAGS:-} -Zmiri-disable-isolation -Zmiri-disable-weak-memory-emulation"
miri() { cargo +nightly miri test --quiet "$@"; }

ring() { miri -p rockhopper-ring --tests; }
memory() { miri -p rockhopper-memory --tests; }
wire() {
    miri -p rockhopper-wire --lib
    miri -p rockhopper-wire --test wire -- frame_errors:: missing_segments segments_may_be_cut opcode_lengths:: types::
}
engine() {
    miri -p rockhopper-engine --test engine -- completion_queue:: events:: keys:: keys_fast_register:: keys_race:: posting:: \
        qp_table:: srq_limit::
}
rest() {
    miri -p rockhopper-wire --test wire
    miri -p rockhopper-engine --tests
}

case ${1:-all} in
    ring | memory | wire | engine | rest) "$1" ;;
    all) ring && memory && wire && engine ;;
    *) echo "usage: scripts/miri.sh [ring|memory|wire|engine|rest]" >&2 && exit 2 ;;
esac
