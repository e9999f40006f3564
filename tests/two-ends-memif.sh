#!/usr/bin/env bash
# Two processes that share memory over net_memif: every operation verified over IPv4 and IPv6.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/tools/proof.sh

quick=yes
two_hosts_up
port_config "$scratch/left.toml" 1 'driver = "memif"' "socket = \"$scratch/link.sock\"" 'role = "client"' 'mac = "02:52:48:00:00:01"'
port_config "$scratch/right.toml" 2 'driver = "memif"' "socket = \"$scratch/link.sock\"" 'role = "server"' 'mac = "02:52:48:00:00:02"'
start_server a "$scratch/right.toml"
for version in 4 6; do
    scripts/lib/result_row.py
    every_operation a 127.0.0.1 "$scratch/left.toml" $version || failures=$((failures + 1))
done
check "the server ends well" stop "$server" INT
passed
