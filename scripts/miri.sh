#!/usr/bin/env bash
# `make miri`: wire, the engine and registered memory under Miri, which finds undefined behaviour where tests pass by luck. An
# argument names one crate. It is a thousand times slower than the machine: tests that do one thing many times do it less often
# (`cfg!(miri)`), properties run with few cases, and what reads captures or maps files is left out. Of the engine `engine` runs what
# goes through its queues, key tables and timers; `engine-dialogues` besides runs the dialogues of whole QPs, which takes hours.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! rustup +nightly component list --installed 2>/dev/null | grep -q '^miri'; then
    rustup toolchain install nightly --profile minimal --component miri,rust-src
fi
export PROPTEST_CASES=${PROPTEST_CASES:-2}
# Tests read vectors from files. Registered memory is accessed as words and as bytes, which Miri's weak memory does not take.
export MIRIFLAGS="${MIRIFLAGS:-} -Zmiri-disable-isolation -Zmiri-disable-weak-memory-emulation"
miri() { cargo +nightly miri test --quiet "$@"; }

memory() { miri -p rockhopper-memory --tests; }
wire() { miri -p rockhopper-wire --tests -- --skip captures --skip vectors_icrc --skip frame_bits; }
engine() { miri -p rockhopper-engine --test engine; }
dialogues() { miri -p rockhopper-engine --lib -- --skip huge --skip any_packet --skip segmentation; }

case ${1:-all} in
    memory | wire | engine) "$1" ;;
    engine-dialogues) dialogues ;;
    all) memory && wire && engine ;;
    *) echo "usage: scripts/miri.sh [memory|wire|engine|engine-dialogues]" >&2 && exit 2 ;;
esac
