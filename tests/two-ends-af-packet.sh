#!/usr/bin/env bash
# Two processes over net_af_packet on the ends of a veth pair with jumbo frames: path MTU 4096. The kernel sees all of
# these packets as well, and must keep out of it. One port has its interface's MAC, the other one of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/tools/proof.sh

quick=yes
two_hosts_up
# Both ends on one host, without addresses of the kernel's; the clients' TCP goes through lo.
on a ip link add left mtu 9000 type veth peer name right mtu 9000
on a ip link set left up
on a ip link set right up
port_config "$scratch/left.toml" 1 'driver = "af_packet"' 'interface = "left"' 'mtu = 4200'
port_config "$scratch/right.toml" 2 'driver = "af_packet"' 'interface = "right"' 'mac = "02:52:48:00:00:02"' 'mtu = 4200'
# A packet socket's own frames do not show on its side: each end shows what the other sent.
capture a left
capture a right
start_server a "$scratch/right.toml"
for version in 4 6; do
    scripts/lib/result_row.py
    every_operation a 127.0.0.1 "$scratch/left.toml" $version || failures=$((failures + 1))
done
check "the server ends well" stop "$server" INT

check "the captures are complete" end_captures
check "zlib agrees with every iCRC" \
    tests/tools/check_icrc.py --need send,write,read,atomic,ack,uc,ud "$scratch/left.pcap" "$scratch/right.pcap"
check "tshark dissects every packet" tests/tools/check_dissection.py "$scratch/left.pcap" "$scratch/right.pcap"
check "packets carry 4096 bytes" longest_is "$scratch/left.pcap" 4096
# INTERFACE: frames to others' addresses that its kernel dropped at once.
others_frames() { on a ip -s -s -j link show "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["stats64"]["rx"].get("otherhost", 0))'; }
own_mac() {
    local left right
    left=$(others_frames left) right=$(others_frames right)
    echo "left $left, right $right"
    [ "$left" -eq 0 ] && [ "$right" -gt 100 ]
}
check "frames to a port with a MAC of its own are not the kernel's" own_mac
check "the kernel had nothing to say to our packets" quiet_kernel a
passed
