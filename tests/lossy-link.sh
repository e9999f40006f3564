#!/usr/bin/env bash
# Two processes on two hosts over net_tap, where the server's port loses one frame in a hundred each way: every RC operation is
# verified over IPv4 and IPv6, and no rule of the protocol is broken by what went over the wire, which tshark dissects.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/tools/proof.sh

two_hosts_up
port_config "$scratch/a.toml" 1 'driver = "tap"' 'interface = "tap-a"' 'mac = "02:52:48:00:00:01"' 'mtu = 1500'
port_config "$scratch/b.toml" 2 'driver = "tap"' 'interface = "tap-b"' 'mac = "02:52:48:00:00:02"' 'mtu = 1500' \
    'impair = "drop 1%; seed 5"'
capture a joint
start_server b "$scratch/b.toml"

operation() {
    local flags=()
    [ "$1" = 6 ] && flags=(--ipv6)
    shift
    on a timeout --kill-after=5 60 "$programs/rockhopper-perf" "$1" 10.77.0.102 -c "$scratch/a.toml" --connection RC \
        "${flags[@]}" "${@:2}" --verify --json
}
for version in 4 6; do
    check "IPv$version SEND under loss" operation $version send-bw --size 20000 --iters 100
    check "IPv$version WRITE under loss" operation $version write-bw --size 65536 --iters 100
    check "IPv$version WRITE with immediate both ways under loss" \
        operation $version write-bw --size 20000 --iters 50 --qps 4 --imm --bidirectional
    check "IPv$version READ under loss" operation $version read-bw --size 65536 --iters 100
    check "IPv$version atomics under loss" operation $version atomic-bw --iters 1000
done
check "the server ends well" stop "$server" INT

check "the capture is complete" end_captures
check "tshark dissects every packet" tests/tools/check_dissection.py "$scratch/joint.pcap"
check "no rule of the protocol is broken" "$programs/rockhopper" check "$scratch/joint.pcap"
resent() {
    { "$programs/rockhopper" check --json "$scratch/joint.pcap" || true; } |
        python3 -c 'import json, sys; notes = json.load(sys.stdin)["files"][0]["notes"]; print(notes); sys.exit(notes["retransmission"] == 0)'
}
check "something was lost and sent again" resent
passed
