#!/usr/bin/env bash
# Two processes on two hosts over net_tap: the kernel's ping is answered, every operation is verified over IPv4 and IPv6,
# and what went over the wire satisfies programs that are not ours: zlib's CRC, tshark, the kernels that looked on, and the rules of the protocol.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/tools/proof.sh

quick=yes
two_hosts_up
for port in a,1 b,2; do
    port_config "$scratch/${port%,*}.toml" "${port#*,}" 'driver = "tap"' "interface = \"tap-${port%,*}\"" \
        "mac = \"02:52:48:00:00:0${port#*,}\"" 'mtu = 1500'
done
capture a joint
start_server b "$scratch/b.toml"

for host in a b; do
    for target in '10.77.0.2 56' '10.77.0.2 1472' 'fd77::2 56' 'fd77::2 1452'; do
        read -r address bytes <<<"$target"
        check "the kernel of host $host pings $address with $bytes bytes" \
            on $host ping -n -c 3 -i 0.2 -W 2 -M "do" -s "$bytes" "$address"
    done
done
for version in 4 6; do
    scripts/lib/result_row.py
    every_operation a 10.77.0.102 "$scratch/a.toml" $version || failures=$((failures + 1))
done
check "the server ends well" stop "$server" INT

check "the capture is complete" end_captures
check "zlib agrees with every iCRC" \
    tests/tools/check_icrc.py --need send,write,read,atomic,ack,uc,ud "$scratch/joint.pcap"
check "tshark dissects every packet" tests/tools/check_dissection.py "$scratch/joint.pcap"
check "no rule of the protocol is broken" "$programs/rockhopper" check "$scratch/joint.pcap"
for host in a b; do
    check "the kernel of host $host had nothing to say to our packets" quiet_kernel $host
done
passed
