#!/usr/bin/env bash
# What a machine or a user can get wrong before anything runs: one sentence that says what to do, and exit status 2.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/tools/proof.sh

two_hosts_up
# Readable for everybody, so that a program without privileges fails for the right reason.
chmod 755 "$scratch"
mkdir "$scratch/bin"
cp "$programs/rockhopper" "$programs/rockhopper-perf" "$scratch/bin"

# WHAT PATTERN COMMAND...: the command ends with 2 and one line on stderr that has the pattern in it.
refused() {
    local what=$1 pattern=$2
    shift 2
    check "$what" says "$pattern" "$@"
}

says() {
    local pattern=$1 status=0 lines
    shift
    on a timeout --kill-after=5 30 "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || status=$?
    cat "$scratch/err"
    lines=$(wc -l <"$scratch/err")
    [ $status -eq 2 ] || { echo "exit status $status, not 2"; return 1; }
    [ "$lines" -eq 1 ] || { echo "$lines lines, not one"; return 1; }
    ! grep -qE 'panicked|RUST_BACKTRACE|Os \{' "$scratch/err" || { echo "that is for programmers"; return 1; }
    grep -qE "^rockhopper(-perf)?: .*($pattern)" "$scratch/err" || { echo "does not say /$pattern/"; return 1; }
}

nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --)
serve=("$scratch/bin/rockhopper" serve -c)
perf=("$scratch/bin/rockhopper-perf")

port_config "$scratch/tap.toml" 1 'driver = "tap"' 'interface = "tap-x"'
port_config "$scratch/af-packet.toml" 1 'driver = "af_packet"' 'interface = "joint"'
port_config "$scratch/missing.toml" 1 'driver = "af_packet"' 'interface = "no-such-if"'
port_config "$scratch/pcap.toml" 1 'driver = "pcap"' 'interface = "no-such-if"'
port_config "$scratch/absent.toml" 1 'driver = "pci"' 'address = "0000:ff:1f.7"'
port_config "$scratch/garbled.toml" 1 'driver = "pci"' 'address = "not-a-pci-address"'
port_config "$scratch/unknown.toml" 1 'driver = "vdev"' 'device = "net_nonsense_0"'
port_config "$scratch/memif.toml" 1 'driver = "memif"' 'role = "server"' "socket = \"$scratch/no/such/dir/m.sock\""
port_config "$scratch/typo.toml" 1 'driver = "tap"' 'interfaec = "tap-x"'
port_config "$scratch/null.toml" 1 'driver = "vdev"' 'device = "net_null_0"'
{ printf '[eal]\nmemory = "hugepages"\n'; cat "$scratch/tap.toml"; } >"$scratch/huge.toml"
chmod 644 "$scratch"/*.toml

refused "serve without a configuration file" 'no-such-file.toml.*(path|configs/)' "${serve[@]}" "$scratch/no-such-file.toml"
refused "a mistyped key" 'typo.toml:5: .*did you mean interface' "${serve[@]}" "$scratch/typo.toml"
refused "perf without a port" 'FILE|--vdev|--loopback' "${perf[@]}" write-bw
refused "a tap without permission" 'root|CAP_NET_ADMIN' "${nobody[@]}" "${serve[@]}" "$scratch/tap.toml"
refused "a tap without permission, for perf" 'root|CAP_NET_ADMIN' "${nobody[@]}" "${perf[@]}" send-bw -c "$scratch/tap.toml"
refused "a packet socket without permission" 'root|CAP_NET_RAW' "${nobody[@]}" "${serve[@]}" "$scratch/af-packet.toml"
refused "no /dev/net/tun" '/dev/net/tun|modprobe tun|tun' \
    unshare --mount sh -c 'mount -t tmpfs none /dev/net && exec "$@"' sh "${serve[@]}" "$scratch/tap.toml"
refused "an interface that is not there" 'no interface no-such-if; .*ip link' "${serve[@]}" "$scratch/missing.toml"
refused "an interface that is not there, for pcap" 'no interface no-such-if; .*ip link' "${serve[@]}" "$scratch/pcap.toml"
refused "a PCI address where there is no NIC" '0000:ff:1f.7.*(devbind|check)' "${serve[@]}" "$scratch/absent.toml"
refused "what is no PCI address" 'garbled.toml:5: .*is no PCI address; .*devbind' "${serve[@]}" "$scratch/garbled.toml"
refused "a driver that DPDK does not have" 'net_nonsense_0.*(driver|check)' "${serve[@]}" "$scratch/unknown.toml"
refused "a memif socket in no directory" 'm.sock.*(exist|check)' "${serve[@]}" "$scratch/memif.toml"
if [ "$(awk '/HugePages_Free/ { print $2 }' /proc/meminfo)" = 0 ]; then
    refused "hugepages where there are none" 'hugepages.*(nr_hugepages|no-huge)' "${serve[@]}" "$scratch/huge.toml"
fi

start a listener python3 -c '
import socket, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", 18591)); s.listen(); time.sleep(600)'
wait_for 10 server_listens a
refused "a TCP port in use" '18591.*--listen' "${serve[@]}" "$scratch/null.toml"
refused "a TCP port in use, for perf" '18591.*--port' "${perf[@]}" send-bw -c "$scratch/null.toml"
refused "a server that is not there" '18599.*(serve|start)' "${perf[@]}" send-bw 127.0.0.1 --port 18599 -c "$scratch/null.toml"
refused "stats of an endpoint that does not run" 'null.sock.*(serve|running|start)' "$scratch/bin/rockhopper" stats -c "$scratch/null.toml"
refused "a size that is no path MTU" '1500.*4096' "${perf[@]}" send-bw --loopback ring --mtu 1500

# What needs no privileges works without them.
check "nobody runs the demo" on a timeout 60 "${nobody[@]}" "$scratch/bin/rockhopper" demo --no-speed
passed
