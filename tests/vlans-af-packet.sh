#!/usr/bin/env bash
# VLANs of a port: a station that scapy plays at the other end of a veth pair resolves and pings ours, two processes of ours talk in
# VLANs, every packet carries its tag, and addresses that come and go disturb nobody else.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/tools/proof.sh

two_hosts_up
on a ip link add left mtu 9000 type veth peer name right mtu 9000 netns "$hosts-b"
on a ip link set left up
on b ip link set right up

# FILE NUMBER INTERFACE: a port that is untagged and in VLANs 5 and 6.
trunk() {
    port_config "$1" "$2" 'driver = "af_packet"' "interface = \"$3\"" 'mtu = 4200' \
        '[[port.vlans]]' 'id = 5' "addresses = [\"10.5.0.$2/24\", \"fd05::$2/64\"]" \
        '[[port.vlans]]' 'id = 6' "addresses = [\"10.6.0.$2/24\"]"
}
trunk "$scratch/left.toml" 1 left
trunk "$scratch/right.toml" 2 right

capture a left
capture b right
start_server a "$scratch/left.toml"

address() { on a "$programs/rockhopper" address "$@" -c "$scratch/left.toml"; }
# VLAN OWN WHAT...: a station that scapy plays on the right.
station() { on b tests/tools/vlan_station.py right "$@"; }
link_local() { address show --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["links"][1]["addresses"][0]["prefix"].split("/")[0])'; }

check "a station in VLAN 5 finds and pings our IPv4 address" station 5 10.5.0.102 ping 10.5.0.1
check "and our IPv6 address" station 5 fd05::102 ping fd05::1
check "and our link-local address" station 5 fe80::102 ping "$(link_local)"
check "a full frame comes back" station 5 10.5.0.102 ping 10.5.0.1 4172
not() { ! "$@"; }
check "the same address is not there in VLAN 6" not station 6 10.5.0.102 ping 10.5.0.1

# The client names its GID in a VLAN; the server finds its own by it.
client() { on b timeout --kill-after=5 60 "$programs/rockhopper-perf" "$@" -c "$scratch/right.toml" --verify --json; }
for index in 4 5 7; do
    check "RC WRITE by GID $index" client write-bw 10.77.0.101 -x $index -s 20000 -n 200
    check "RC READ by GID $index" client read-bw 10.77.0.101 -x $index -s 20000 -n 200
    check "UD SEND by GID $index" client send-bw 10.77.0.101 -C UD -x $index -s 1000 -n 100 -t 128
done

check "the captures are complete" end_captures
# FILTER: how many packets of both captures.
packets() { for end in left right; do tshark -n -r "$scratch/$end.pcap" -Y "$1" -T fields -e frame.number 2>/dev/null; done | wc -l; }
tagged() {
    local five six none
    five=$(packets 'infiniband && vlan.id == 5') six=$(packets 'infiniband && vlan.id == 6')
    none=$(packets 'infiniband && !vlan')
    echo "VLAN 5: $five, VLAN 6: $six, untagged: $none"
    [ "$five" -gt 500 ] && [ "$six" -gt 200 ] && [ "$none" = 0 ]
}
check "every packet carries the tag of its VLAN" tagged
check "zlib agrees with every iCRC" tests/tools/check_icrc.py --need write,read,ack,ud "$scratch/left.pcap" "$scratch/right.pcap"

# Another address comes and goes meanwhile.
flap() {
    local n
    for n in $(seq 40); do
        address add 10.5.0.50/24 --link port1.5 && address remove 10.5.0.50 || return 1
    done
}
start b flapped timeout 60 "$programs/rockhopper-perf" write-bw 10.77.0.101 -c "$scratch/right.toml" -x 4 -s 20000 -D 5 --verify --json
running=$started
check "addresses come and go while packets flow" flap
check "and the traffic saw nothing of it" stop "$running" 0

# The address in use goes: its connection ends, soon. When it is back, so is the service.
start b cut timeout 60 "$programs/rockhopper-perf" write-bw 10.77.0.101 -c "$scratch/right.toml" -x 4 -s 20000 -D 30 --json
running=$started
sleep 3
ends_with() { local status=0; stop "$2" 0 || status=$?; [ "$status" = "$1" ] || { echo "status $status"; return 1; }; }
check "the address in use is removed" address remove 10.5.0.1
check "what used it ends with status 1" ends_with 1 "$running"
check "the station does not find it any more" not station 5 10.5.0.102 ping 10.5.0.1
check "it is added again" address add 10.5.0.1/24 --link port1.5
check "the station finds it" station 5 10.5.0.102 ping 10.5.0.1
check "and so do our own" client write-bw 10.77.0.101 -x 4 -s 20000 -n 200
# Then somebody else has it, too, and says so.
station 5 10.5.0.1 claim
conflict_noted() { on a "$programs/rockhopper" stats -c "$scratch/left.toml" | grep "note: .* uses 10.5.0.1, an address of port1.5, too"; }
check "a conflict is told of" wait_for 5 conflict_noted

check "the server ends well" stop "$server" INT
passed
