#!/usr/bin/env bash
# What a message costs in instructions, counted under valgrind, case by case (dataplane/memory/examples/message_cost.rs), against the
# budgets in bench/instructions.txt: a case that costs 3 % more than its budget fails. Valgrind shows programs a processor without
# AVX-512, so counts are the same on every machine; compilers differ, so budgets hold for the rustc that they name.
#
#   scripts/instructions.sh            measure and compare; 77 where the rustc is another one
#   scripts/instructions.sh --write    measure and write the budgets anew: say in the commit why they rose
set -euo pipefail
cd "$(dirname "$0")/.."
budgets=bench/instructions.txt
rustc=$("$(scripts/find-rust.sh)"/rustc --version | awk '{ print $2 }')
command -v valgrind >/dev/null || { echo "valgrind is missing: run 'make setup-test'" >&2; exit 2; }

scripts/cargo.sh build --release --quiet -p rockhopper-memory --example message_cost
program=${CARGO_TARGET_DIR:-target}/release/examples/message_cost

# Instructions of so many messages.
count() {
    valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null "$program" "$1" "$2" 2>&1 |
        awk '/I *refs:/ { gsub(",", ""); print $NF; found = 1 } END { exit !found }'
}

# Setting up costs the same however many messages follow.
each() {
    local few many
    few=$(count "$1" 3200)
    many=$(count "$1" 9600)
    echo $(((many - few) / 6400))
}

if [ "${1:-}" = --write ]; then
    {
        echo "# Instructions a message, both ends and the frames between them: scripts/instructions.sh --write"
        echo "rustc $rustc"
        "$program" | while read -r case; do echo "$case $(each "$case")"; done
    } >"$budgets.new"
    mv "$budgets.new" "$budgets"
    cat "$budgets"
    exit 0
fi

known=$(awk '$1 == "rustc" { print $2 }' "$budgets")
if [ "$known" != "$rustc" ]; then
    echo "the budgets are those of rustc $known, this is $rustc: nothing to compare with"
    exit 77
fi
over=0
while read -r case; do
    budget=$(awk -v case="$case" '$1 == case { print $2 }' "$budgets")
    now=$(each "$case")
    if [ -z "$budget" ]; then
        echo "$case: $now instructions a message, and no budget: run scripts/instructions.sh --write"
        over=1
    elif [ $((now * 100)) -gt $((budget * 103)) ]; then
        echo "$case: $now instructions a message, more than 3 % over the budget of $budget"
        over=1
    else
        echo "$case: $now instructions a message, budget $budget"
    fi
done < <("$program")
exit $over
