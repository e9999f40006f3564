#!/usr/bin/env bash
# Two processes that share memory over net_memif: every operation verified over IPv4 and IPv6.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/tools/proof.sh

quick=yes
two_hosts_up
port_config "$scratch/left.toml" 1 'driver = "memif"' "socket = \"$scratch/link.sock\"" 'role = "client"' 'mac = "02:52:48:00:00:01"'
port_config "$scratch/right.toml" 2 'driver = "memif"' "socket = \"$scratch/link.sock\"" 'role = "server"' 'mac = "02:52:48:00:00:02"'

# DPDK's driver takes the shared memory away from under a polling thread when the other end leaves, which now and then
# kills the end that stays. So each client has a server of its own, and nobody minds how that one ends.
new_server() {
    [ -z "${server:-}" ] || stop "$server" TERM 2>/dev/null || true
    rm -f "$scratch/link.sock"
    start_server a "$scratch/right.toml"
}
before_each=new_server

for version in 4 6; do
    scripts/lib/result_row.py
    every_operation a 127.0.0.1 "$scratch/left.toml" $version || failures=$((failures + 1))
done
passed
