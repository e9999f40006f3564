#!/usr/bin/env bash
# Ctrl-C in the middle of a run: what was measured so far is printed, the exit status says so, and nothing is left behind:
# no tap, no file of DPDK's, no socket.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/tools/proof.sh

two_hosts_up

# PID STATUS: interrupts what runs, which has to end with the status, and without files of DPDK's.
interrupt() {
    local status=0
    stop "$1" INT || status=$?
    [ "$status" = "$2" ] || { echo "exit status $status, not $2"; return 1; }
    [ ! -e "/var/run/dpdk/rockhopper-$1" ] || { echo "/var/run/dpdk/rockhopper-$1 is still there"; return 1; }
}

# NAME: the JSON object in $scratch/NAME.out is of an interrupted run that got somewhere.
is_partial() {
    python3 - "$scratch/$1.out" <<'PYTHON'
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    result = json.load(file)
print(result)
sys.exit(not (result["interrupted"] and result["messages"] > 0 and result["verify"]["faults"] == 0))
PYTHON
}

tap_gone() {
    ! on "$1" ip link show dev "$2" 2>/dev/null
}

packets_flow() {
    local before after
    before=$(on a cat /sys/class/net/tap-a/statistics/rx_packets 2>/dev/null) || return 1
    sleep 0.1
    after=$(on a cat /sys/class/net/tap-a/statistics/rx_packets 2>/dev/null) || return 1
    [ $((after - before)) -gt 10 ]
}

# PID: it has used a second and a half of processor time, far more than it takes to begin.
worked() {
    local fields
    read -ra fields < <(sed 's/.*) //' "/proc/$1/stat")
    [ $((fields[11] + fields[12])) -gt $(($(getconf CLK_TCK) * 3 / 2)) ]
}

# Both ends in one process.
start a ring "$programs/rockhopper-perf" write-bw --loopback ring --size 65536 --duration 60s --verify --json
wait_for 60 worked "$started"
check "an interrupted loopback run ends with 130" interrupt "$started" 130
check "and its JSON object tells what was measured" is_partial ring
start a text "$programs/rockhopper-perf" send-bw --loopback ring --size 4096 --duration 60s
wait_for 60 worked "$started"
check "an interrupted run with a table ends with 130" interrupt "$started" 130
check "and its table ends with the row so far" grep -q '^ *4096 *[1-9]' "$scratch/text.out"
check "and says so" grep -q '^interrupted' "$scratch/text.out"
start a demo "$programs/rockhopper" demo
sleep 0.5
check "an interrupted demo ends with 130" interrupt "$started" 130

# Client and server over taps.
for port in a,1 b,2; do
    port_config "$scratch/${port%,*}.toml" "${port#*,}" 'driver = "tap"' "interface = \"tap-${port%,*}\"" \
        "mac = \"02:52:48:00:00:0${port#*,}\"" 'mtu = 1500'
done
start_server b "$scratch/b.toml"
client() {
    start a client "$programs/rockhopper-perf" write-bw 10.77.0.102 -c "$scratch/a.toml" \
        --size 20000 --duration 60s --verify --json
    client=$started
    wait_for 20 packets_flow || { cat "$scratch/client.err"; return 1; }
}
check "a client writes over a tap" client
check "the interrupted client ends with 130" interrupt "$client" 130
check "and its JSON object tells what was measured" is_partial client
check "its tap is gone" tap_gone a tap-a
check "the server serves the next client" client
check "the interrupted server ends with 0 although a client is at work" interrupt "$server" 0
check "its tap is gone" tap_gone b tap-b
check "its admin socket is gone" test ! -e "$scratch/b.sock"
check "it tells what it served" grep -q 'up for .* runs' "$scratch/server.out"
client_notices() {
    wait_for 20 gone "$client" || { echo "the client is still there"; return 1; }
    local status=0
    wait "$client" || status=$?
    cat "$scratch/client.err"
    [ $status -eq 1 ] && grep -q '^rockhopper-perf: ' "$scratch/client.err"
}
check "its client notices, says so and ends with 1" client_notices
check "the client's tap is gone" tap_gone a tap-a
passed
