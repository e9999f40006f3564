#!/usr/bin/env bash
# Builds both programs as they are used: profile-guided optimisation. A first build counts how often each branch is taken while it runs
# operations of `rockhopper-perf`, a second each, and the demonstration; the second is laid out by these counts. It runs on any
# processor, as a plain build does.
#
#   target/pgo/release/rockhopper, target/pgo/release/rockhopper-perf
#   target/pgo/rockhopper.profdata    for programs of your own: RUSTFLAGS=-Cprofile-use=$PWD/target/pgo/rockhopper.profdata
#
# The counts are taken again when the sources have changed. Needs llvm-profdata of the compiler's LLVM: `make setup-pgo`.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/profdata.sh

out=$PWD/target/pgo
counts=$out/counts
counting=$out/counting/release
profile=$out/rockhopper.profdata

say() { echo "pgo: $*" >&2; }

case $PWD in
*[[:space:]]*)
    # The compiler's flags are divided at spaces.
    say "the path of this directory has a space in it: build in one without"
    exit 2
    ;;
esac

if ! profdata=$(find_profdata); then
    say "no llvm-profdata of LLVM $(llvm_version): run 'make setup-pgo'"
    exit 2
fi

build() { # FLAG DIRECTORY
    RUSTFLAGS="${RUSTFLAGS:-} $1" scripts/cargo.sh build --release -p rockhopper -p rockhopper-perf --target-dir "$2"
}

# What is run: short and long messages of each kind, one queue pair and many, rates and latencies.
runs() {
    local size
    for operation in write send read; do
        for size in 64 256 4096 65536; do
            echo "$operation-bw -s $size"
        done
        echo "$operation-bw -s 64 -q 256 -t 16"
        echo "$operation-lat -s 8"
    done
    echo "write-bw -s 64 -q 4096 -t 4"
    echo "send-bw -s 64 -C UD"
    echo "write-bw -s 64 -C UC"
    echo "atomic-bw"
}

count() {
    # Programs that the build itself runs have counted, too.
    rm -rf "$counts"
    local run
    while read -r run; do
        say "counting: $run"
        # shellcheck disable=SC2086 # several arguments
        "$counting/rockhopper-perf" $run --loopback ring --duration 1s --json </dev/null >/dev/null
    done < <(runs)
    say "counting: the demonstration"
    "$counting/rockhopper" demo </dev/null >/dev/null
    "$profdata" merge -o "$profile.new" "$counts"
    mv "$profile.new" "$profile"
    rm -rf "$counts"
}

say "a build that counts"
build "-Cprofile-generate=$counts" "$out/counting"
if [ ! "$profile" -nt "$counting/rockhopper-perf" ] || [ ! "$profile" -nt "$counting/rockhopper" ]; then
    count
fi
say "the build that is made by the counts"
build "-Cprofile-use=$profile" "$out"
