#!/usr/bin/env bash
# `make fuzz TARGET=live_engine RUNS=1000000`: one fuzz target, with LLVM's coverage on the stable compiler. Findings are written to
# fuzz/artifacts; put one into fuzz/corpus/TARGET once it is mended. `cargo fuzz run TARGET` works too, where it is installed.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1:?usage: scripts/fuzz.sh TARGET [RUNS]}
runs=${2:-1000000}
shift $(($# > 2 ? 2 : $#))
triple=$(scripts/cargo.sh -vV | sed -n 's/^host: //p')
# Release code with every assertion on. A target named by --target keeps build scripts free of the coverage.
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table -Ccodegen-units=1 -Cdebug-assertions=on -Coverflow-checks=on -Clto=off --cfg fuzzing"
export CARGO_PROFILE_RELEASE_LTO=off
built=${CARGO_TARGET_DIR:-target}/fuzz
scripts/cargo.sh build --release --quiet -p rockhopper-fuzz --features libfuzzer --bin "$target" --target "$triple" --target-dir "$built"
mkdir -p "$built/corpus/$target" fuzz/artifacts
# The reader of captures takes a buffer of megabytes: zeros fresh from the system cost less than zeros written over what was freed.
export MALLOC_MMAP_THRESHOLD_=1048576
# What it learns stays out of the tree; the checked-in corpus is where it begins.
# Speed is worth more than clever weights of the inputs here (-entropic=0), and nobody else writes to the corpus (-reload=0: else it is
# read again every second, which costs half of the time).
exec "$built/$triple/release/$target" -runs="$runs" -max_len=512 -entropic=0 -reload=0 -artifact_prefix=fuzz/artifacts/"$target"- -print_final_stats=1 "$@" \
    "$built/corpus/$target" "fuzz/corpus/$target"
