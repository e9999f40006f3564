#!/usr/bin/env bash
# Every operation of every service over RoCE v2 and v1, with IPv4 and IPv6 GIDs, between two taps of one process, of which one
# loses one frame in a hundred each way: all bytes are verified, no rule of the protocol is broken by what went over the wire,
# every kind of packet was there, and tshark dissects all that it knows.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/tools/proof.sh

two_hosts_up
port() { # NUMBER KEY=VALUE...
    echo '[[port]]'
    echo "addresses = [\"10.77.0.$1/24\", \"fd77::$1/64\"]"
    printf 'name = "port%s"\ndriver = "tap"\ninterface = "tap-%s"\nmac = "02:52:48:00:00:0%s"\nmtu = 1500\n' "$1" "$1" "$1"
    echo 'gid_types = ["v2", "v1"]'
    printf '%s\n' "${@:2}"
}
{
    port 1
    port 2 'impair = "drop 1%; seed 9"'
    printf '[workers]\npoll = "adaptive"\n[control]\nsocket = "%s/demo.sock"\n' "$scratch"
} >"$scratch/demo.toml"

# The bridge shows each frame that it forwards once.
capture a br0
verified() {
    on a timeout --kill-after=5 120 "$programs/rockhopper" demo -c "$scratch/demo.toml" --no-speed --json >"$scratch/demo.json" || {
        cat "$scratch/demo.json"
        return 1
    }
    python3 - "$scratch/demo.json" <<'EOF'
import json, sys
report = json.load(open(sys.argv[1]))
ways = {(one["transport"], one["network"]) for one in report["operations"]}
print(len(report["operations"]), sorted(ways), report["impaired"])
sys.exit(len(ways) != 12 or report["impaired"]["impair_dropped"] == 0)
EOF
}
check "every operation is verified under loss" verified
check "the capture is complete" end_captures
kinds=v1,v2,send,write,read,ack,atomic,uc,ud,invalidate,flush,atomic-write,xrc
check "zlib agrees with every iCRC, and every kind of packet is there" \
    tests/tools/check_icrc.py --need $kinds "$scratch/br0.pcap"
check "tshark dissects every packet that it knows" tests/tools/check_dissection.py "$scratch/br0.pcap"
check "no rule of the protocol is broken" "$programs/rockhopper" check "$scratch/br0.pcap"
passed
