#!/usr/bin/env bash
# Breaks the engine on purpose, one patch of dataplane/sim/mutants after the other, and tells what notices: the simulator's
# seeds, or, where they do not, the tests of the engine and of the simulator. Prints a table; fails if a mutant survives.
#
#   scripts/mutants.sh [SEEDS] [NAME…]     SEEDS: how many seeds at most (2000); NAMEs: these mutants only
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

seeds=${1:-2000}
shift || true
patches=("$root"/dataplane/sim/mutants/*.patch)
if [ $# -gt 0 ]; then
    patches=()
    for name in "$@"; do patches+=("$root/dataplane/sim/mutants/$name.patch"); done
fi

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
# The copy has build results of its own, which the first mutant pays for.
export CARGO_TARGET_DIR=${MUTANTS_TARGET_DIR:-$copy/target}
git ls-files -z | xargs -0 cp --parents -t "$copy"

survived=0
printf '| mutant | what it does | caught by |\n| --- | --- | --- |\n'
for patch in "${patches[@]}"; do
    name=$(basename "$patch" .patch)
    words=$(head -n 1 "$patch")
    (cd "$copy" && patch --quiet --no-backup-if-mismatch -p1 <"$patch")
    caught=
    if ! (cd "$copy" && "$root/scripts/cargo.sh" build --quiet -p rockhopper-sim --example seeds 2>"$copy/errors"); then
        caught="does not build: $(head -n 1 "$copy/errors")"
        survived=$((survived + 1))
    elif found=$(timeout 600 "$CARGO_TARGET_DIR/debug/examples/seeds" "$seeds"); then
        # The seeds found nothing: a test of the engine has to.
        test=$(cd "$copy" && "$root/scripts/cargo.sh" nextest run -p rockhopper-engine -p rockhopper-sim 2>&1 |
            sed -nE 's/^ +FAIL \[.*\] +([^(]*)?(\([^)]*\) )?//p' | head -n 1) || true
        if [ -n "$test" ]; then caught="$test"; else
            caught="NOBODY"
            survived=$((survived + 1))
        fi
    elif [ -n "$found" ]; then
        caught="$found"
    else
        caught="the engine does not return (time limit)"
    fi
    printf '| %s | %s | %s |\n' "${name//_/ }" "$words" "$caught"
    (cd "$copy" && patch --quiet --no-backup-if-mismatch -R -p1 <"$patch")
done
[ "$survived" -eq 0 ]
