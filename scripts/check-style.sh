#!/usr/bin/env bash
# The style test: what neither the compiler nor clippy holds. Prints each breach as file:line and fails if there is one.
set -euo pipefail
cd "$(dirname "$0")/.."

max_lines=600
# Crates that have to stay free of unsafe code: each of their roots says so.
safe_crates=(dataplane/wire dataplane/impair dataplane/engine dataplane/sim dataplane/check dataplane/cm dataplane/conform control bench fuzz)

breaches=0
breach() {
    echo "style: $*" >&2
    breaches=$((breaches + 1))
}

# Runs a command that prints breaches one a line.
each_breach() {
    local line
    while IFS= read -r line; do breach "$line"; done < <("$@")
}

files() {
    find . \( -name .git -o -name target \) -prune -o -type f "$@" -print | sed 's|^\./||' | sort
}

rust_files=$(files -name '*.rs')

long_files() {
    local file lines
    for file in $rust_files; do
        lines=$(wc -l <"$file")
        [ "$lines" -le $max_lines ] || echo "$file: $lines lines, more than $max_lines: split it by role"
    done
}

# `unsafe` outside comments. Lint names (unsafe_code) are other words.
# No grep -q: it would end before sed does, and pipefail would call that a failure.
uses_unsafe() { sed 's|//.*||' "$1" | grep -w unsafe >/dev/null; }

unsafe_files() {
    local file allowed
    allowed=$(sed 's/#.*//; s/ *$//; /^$/d' scripts/unsafe-files.txt)
    for file in $rust_files; do
        if uses_unsafe "$file" && ! grep -qxF "$file" <<<"$allowed"; then
            echo "$file: unsafe code outside the files of scripts/unsafe-files.txt"
        fi
    done
    for file in $allowed; do
        if [ ! -f "$file" ] || ! uses_unsafe "$file"; then
            echo "scripts/unsafe-files.txt: $file holds no unsafe code: take it off the list"
        fi
    done
}

unguarded_roots() {
    local crate root
    for crate in "${safe_crates[@]}"; do
        for root in "$crate"/src/lib.rs "$crate"/src/main.rs "$crate"/src/bin/*.rs "$crate"/src/bin/*/main.rs; do
            [ -f "$root" ] || continue
            grep -q '^#!\[forbid(unsafe_code)\]' "$root" || echo "$root: #![forbid(unsafe_code)] is missing"
        done
    done
}

# Left-overs in code, then what has no place in any file: paths of one machine and hosts of package registries.
# The patterns are bracketed so that this file does not match itself.
left_overs() {
    local file
    for file in $rust_files; do
        grep -nHE '\b(todo|unimplemented)!|#\[ignore|\bdbg!' "$file" || true
    done | sed 's/$/  <- left over/'
    files ! -name Cargo.lock |
        while IFS= read -r file; do
            grep -nHIE '(^|[^A-Za-z0-9_.-])[/]work(/|\b)|\.\./[s]hared|crates[.]io|pypi[.]org|static[.]rust-lang' "$file" || true
        done | sed 's/$/  <- does not belong into the project/'
}

# A mutant whose place in the engine has changed tells nothing.
stale_mutants() {
    local patch
    for patch in dataplane/sim/mutants/*.patch; do
        git apply --check "$patch" 2>/dev/null || echo "$patch  <- does not apply any more"
    done
}

each_breach long_files
each_breach unsafe_files
each_breach unguarded_roots
each_breach left_overs
each_breach stale_mutants

if [ "$breaches" -ne 0 ]; then
    echo "style: $breaches breaches" >&2
    exit 1
fi
echo "style: $(wc -w <<<"$rust_files") Rust files are in order"
scripts/check-docs.sh
