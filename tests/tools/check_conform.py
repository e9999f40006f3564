#!/usr/bin/python3
"""Fails unless a report of `rockhopper conform --json` has every rule in it, and each one passed or is left open by the facts.

    check_conform.py FILE
"""

import json
import sys

LEAST = 390

with open(sys.argv[1]) as file:
    report = json.load(file)
print({name: report[name] for name in ("passed", "failed", "open", "skipped")})
for rule in report["rules"]:
    if rule["verdict"] not in ("passed", "open"):
        print(rule["id"], rule["verdict"], rule["why"])
complete = report["passed"] + report["open"] == len(report["rules"]) >= LEAST
sys.exit(0 if complete and not report["failed"] and not report["skipped"] else 1)
