#!/usr/bin/env bash
# Holds the documentation to the tree: links lead somewhere, paths exist, cited tests are in the files that they are
# cited from, and the README's program is part of the example. Prints each breach as file:line and fails if there is one.
set -euo pipefail
cd "$(dirname "$0")/.."
shopt -s nullglob

breaches=0
breach() {
    echo "docs: $*" >&2
    breaches=$((breaches + 1))
}

documents=(README.md docs/*.md bench/README.md)
# Paths in prose may begin at the root or at one of these.
roots=(. dataplane ffi dataplane/engine/src)

# The lines of a document as `number:text`, what is fenced off by ``` left out.
prose() {
    awk '/^```/ { fenced = !fenced; next } !fenced { print NR ":" $0 }' "$1"
}

# The names by which headings can be linked to.
anchors() {
    prose "$1" | sed -nE 's/^[0-9]+:#+ +//p' | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'
}

# Every function as `file:name`: a cited test is one of them.
declare -A functions
while IFS=: read -r file name; do
    functions["$file:${name##* }"]=yes
done < <(grep -rHoE --include='*.rs' '\bfn [a-z0-9_]+' control bench dataplane ffi fuzz)

check_links() {
    local document=$1 directory number text target anchor path label link
    directory=$(dirname "$document")
    link='\[([^]]*)\]\(([^) ]+)\)'
    while IFS=: read -r number text; do
        while [[ $text =~ $link ]]; do
            label=${BASH_REMATCH[1]} target=${BASH_REMATCH[2]}
            text=${text#*"${BASH_REMATCH[0]}"}
            [[ $target == *://* ]] && continue
            path=${target%%#*} anchor=
            [[ $target == *'#'* ]] && anchor=${target#*#}
            # Plain paths from the root: every link goes up one directory at most.
            case $path in
            '') path=$document ;;
            ../*) path=${path#../} ;;
            *) path=${directory#.}/$path path=${path#/} ;;
            esac
            [ -e "$path" ] || { breach "$document:$number: there is no $path"; continue; }
            if [ -n "$anchor" ] && ! grep -qxF -- "$anchor" <<<"$(anchors "$path")"; then
                breach "$document:$number: $path has no heading #$anchor"
            fi
            # `name` linked to a Rust file: a test there.
            if [[ $path == *.rs && $label =~ ^\`([a-z0-9_]+)\`$ && -z ${functions["$path:${BASH_REMATCH[1]}"]:-} ]]; then
                breach "$document:$number: $path has no test ${BASH_REMATCH[1]}"
            fi
        done
    done < <(prose "$document")
}

# `a/b.rs` and the like: in backticks, with a slash, and either begun by a directory of ours or ended as our files are.
# `*` is a wildcard. Build results are not there.
check_paths() {
    local document=$1 number path root first found
    while IFS=: read -r number path; do
        path=${path//\`/}
        [[ $path == target/* || $path == /* ]] && continue
        first=${path%%/*} found=unknown
        [[ $path =~ \.(rs|sh|py|toml|md|txt)$ ]] && found=no
        for root in "${roots[@]}"; do
            [ -d "$root/$first" ] || continue
            [ "$found" = unknown ] && found=no
            # shellcheck disable=SC2086 # a wildcard is meant as one
            [ -n "$(compgen -G "$root/$path")" ] && found=yes
        done
        [ "$found" = no ] && breach "$document:$number: there is no $path"
    done < <(prose "$document" | grep -oE '^[0-9]+:|`[A-Za-z0-9_.*-]+/[A-Za-z0-9_./*-]*`' |
        awk '/^[0-9]+:$/ { number = $0; next } { print number $0 }')
    return 0
}

# Each line of the README's Rust code stands in the example.
check_example() {
    local example=control/examples/hello.rs line
    while IFS= read -r line; do
        grep -qxF -- "$line" <<<"$(sed 's/^ *//' $example)" || breach "README.md: not in $example: $line"
    done < <(awk '/^```rust/ { code = 1; next } /^```/ { code = 0 } code && NF { sub(/^ */, ""); print }' README.md)
}

for document in "${documents[@]}"; do
    check_links "$document"
    check_paths "$document"
done
check_example

if [ "$breaches" -ne 0 ]; then
    echo "docs: $breaches breaches" >&2
    exit 1
fi
echo "docs: ${#documents[@]} documents agree with the tree"
