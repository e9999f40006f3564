#!/usr/bin/env bash
# The first-speed measurements, both ends in one process over net_ring, and good traffic under a flood of junk.
# Extra arguments go to each of them (--json).
set -euo pipefail
cd "$(dirname "$0")/.."

perf() {
    echo "\$ rockhopper-perf $*"
    target/release/rockhopper-perf "$@"
    echo
}

perf write-bw --loopback ring --size 65536 --qps 1 --duration 3s "$@"
perf write-bw --loopback ring --size 64 --qps 1 --duration 3s "$@"
perf write-lat --loopback ring --size 64 --duration 3s "$@"

# What a flood of junk leaves of good traffic.
echo "\$ junk_flood $*"
scripts/cargo.sh run --release --quiet -p rockhopper-worker --example junk_flood -- "$@" ||
    echo "some kinds of junk leave less than 90 %"
