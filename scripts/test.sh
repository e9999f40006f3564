#!/usr/bin/env bash
# Every test, cheapest first. Called by `make test`, which installs what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/check-style.sh
scripts/cargo.sh test --workspace --doc --quiet
scripts/cargo.sh nextest run --workspace

# Proofs that need other programs than Rust's: each executable tests/*.sh, from the project's root, exit status 0 passes.
shopt -s nullglob
proofs=(tests/*.sh)
[ ${#proofs[@]} -eq 0 ] && exit 0
passed=0
failed=()
for proof in "${proofs[@]}"; do
    echo "== $proof"
    # Four minutes, as for a Rust test: a wedged process must not hang the run.
    if timeout --kill-after=10 240 "$proof" </dev/null; then
        passed=$((passed + 1))
    else
        echo "$proof failed" >&2
        failed+=("$proof")
    fi
done
echo "proofs: $passed passed, ${#failed[@]} failed"
[ ${#failed[@]} -eq 0 ]
