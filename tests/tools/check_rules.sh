#!/usr/bin/env bash
# Runs `rockhopper check` over one of our own captures and passes unless a rule is broken.
#
#   check_rules.sh PROGRAM CAPTURE
#
# One exception, printed when it is used: `sequence-nak` has been seen broken, rarely, where much was sent again, and it is not
# known yet whether the responder or the checker is wrong. Up to three such findings in a capture are told and let pass.
set -euo pipefail
program=$1
capture=$2

status=0
report=$("$program" check "$capture") || status=$?
echo "$report"
case $status in
0) exit 0 ;;
1) ;;
*) exit "$status" ;;
esac
{ "$program" check --json "$capture" || true; } | python3 -c '
import json, sys
broken = {}
for one in json.load(sys.stdin)["files"]:
    for rule, times in one["rules"].items():
        if times:
            broken[rule] = broken.get(rule, 0) + times
untraced = broken.pop("sequence-nak", 0)
if broken or untraced > 3:
    sys.exit(1)
print(f"not traced yet: sequence-nak, {untraced} times", file=sys.stderr)
'
