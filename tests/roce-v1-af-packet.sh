#!/usr/bin/env bash
# RoCE v1 between two processes over net_af_packet on the ends of a veth pair: every operation is verified, what went over the wire has
# EtherType 0x8915 and satisfies zlib and tshark, and an end that speaks v2 only is refused with a sentence.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/tools/proof.sh

quick=yes
two_hosts_up
on a ip link add left mtu 9000 type veth peer name right mtu 9000
on a ip link set left up
on a ip link set right up
port_config "$scratch/left.toml" 1 'driver = "af_packet"' 'interface = "left"' 'mtu = 4200' 'gid_types = ["v1"]'
port_config "$scratch/right.toml" 2 'driver = "af_packet"' 'interface = "right"' 'mtu = 4200' 'gid_types = ["v1"]'
sed 's/"v1"/"v2"/' "$scratch/left.toml" >"$scratch/v2.toml"
capture a left
capture a right
start_server a "$scratch/right.toml"
for version in 4 6; do
    scripts/lib/result_row.py
    every_operation a 127.0.0.1 "$scratch/left.toml" $version || failures=$((failures + 1))
done
refused() {
    local status=0 words
    words=$(on a timeout --kill-after=5 30 "$programs/rockhopper-perf" write-bw 127.0.0.1 -c "$scratch/v2.toml" --iters 1 2>&1) || status=$?
    echo "$words"
    [ $status -ne 0 ] && grep -q "is of type RoCE v2, but the peer's is of type RoCE v1" <<<"$words"
}
check "an end that speaks v2 is refused with a sentence" refused
check "the server ends well" stop "$server" INT

check "the captures are complete" end_captures
check "zlib agrees with every iCRC, and RoCE v1 was spoken" \
    tests/tools/check_icrc.py --need v1,send,write,read,atomic,ack,uc,ud "$scratch/left.pcap" "$scratch/right.pcap"
check "tshark dissects every packet" tests/tools/check_dissection.py "$scratch/left.pcap" "$scratch/right.pcap"
check "no rule of the protocol is broken" "$programs/rockhopper" check "$scratch/left.pcap"
check "no rule of the protocol is broken the other way" "$programs/rockhopper" check "$scratch/right.pcap"
check "the kernel had nothing to say to our packets" quiet_kernel a
passed
