#!/usr/bin/env bash
# Every test, cheapest first. Called by `make test`, which installs what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/check-style.sh
scripts/cargo.sh test --workspace --doc --quiet
scripts/cargo.sh nextest run --workspace

# Proofs that need other programs than Rust's: each executable tests/*.sh, from the project's root, exit status 0 passes.
# 77: this machine cannot run it, which the proof explains and the last line counts.
shopt -s nullglob
proofs=(tests/*.sh)
[ ${#proofs[@]} -eq 0 ] && exit 0
passed=0
skipped=0
failed=()
for proof in "${proofs[@]}"; do
    echo "== $proof"
    # Four minutes, as for a Rust test, unless the proof says otherwise: a wedged process must not hang the run.
    limit=$(sed -n 's/^# limit: \([0-9]*\) s.*/\1/p' "$proof")
    status=0
    timeout --kill-after=10 "${limit:-240}" "$proof" </dev/null || status=$?
    case $status in
    0) passed=$((passed + 1)) ;;
    77)
        echo "$proof was SKIPPED" >&2
        skipped=$((skipped + 1))
        ;;
    *)
        echo "$proof failed" >&2
        failed+=("$proof")
        ;;
    esac
done
echo "proofs: $passed passed, ${#failed[@]} failed, $skipped skipped"
[ ${#failed[@]} -eq 0 ]
