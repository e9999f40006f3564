#!/usr/bin/env bash
# Two processes on two "hosts" (network namespaces), each with a DPDK port on a tap, joined by bridges: the kernel pings
# both ports, then a client runs every operation against `rockhopper serve` with every byte verified, over IPv4 and over
# IPv6. Needs root; leaves nothing behind. Programs: target/release, or $RH_BIN.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/two-hosts.sh
. scripts/lib/every-operation.sh

failed=0

# HOST ADDRESS BYTES: the kernel of a host asks a port.
ping_port() {
    local said
    if said=$(on "$1" ping -n -c 3 -i 0.2 -W 2 -s "$3" -M "do" "$2" 2>&1); then
        echo "  kernel of host $1 -> port $2, $3 bytes: $(tail -n 1 <<<"$said")"
    else
        echo "  kernel of host $1 -> port $2, $3 bytes: FAILED"
        sed 's/^/    /' <<<"$said"
        failed=$((failed + 1))
    fi
}

find_programs
two_hosts_up
tap_config() { # HOST NUMBER
    port_config "$scratch/$1.toml" "$2" 'driver = "tap"' "interface = \"tap-$1\"" "mac = \"02:52:48:00:00:0$2\"" 'mtu = 1500'
}
tap_config a 1
tap_config b 2

echo "Host b: rockhopper serve on tap-b, 10.77.0.2 and fd77::2"
start_server b "$scratch/b.toml"

echo
echo "Ping from the kernel, small and as long as the MTU lets it:"
for host in a b; do
    ping_port $host 10.77.0.2 56
    ping_port $host 10.77.0.2 1472
    ping_port $host fd77::2 56
    ping_port $host fd77::2 1452
done

echo
echo "Host a: rockhopper-perf on tap-a, 10.77.0.1 and fd77::1, one process each"
scripts/lib/result_row.py
for version in 4 6; do
    every_operation a 10.77.0.102 "$scratch/a.toml" $version || failed=$((failed + 1))
done

echo
stop "$server" INT || {
    echo "rockhopper serve ended with exit status $?"
    failed=$((failed + 1))
}
if [ $failed -ne 0 ]; then
    echo "demo-tap: something failed, see above"
    exit 1
fi
echo "demo-tap: every operation verified over IPv4 and IPv6, every ping answered"
