# Two "hosts" on one machine: two network namespaces, each with a bridge, joined by a veth pair. A DPDK port's tap joins
# the bridge of its namespace. Sourced by scripts; needs root. Nothing outside the two namespaces is touched.
#
#   two_hosts_up NAME      makes NAME-a and NAME-b, and removes them at exit, whatever happens
#   join_tap HOST TAP      waits for TAP in HOST (a or b) and joins it to the bridge
#   on HOST COMMAND...     runs a command in a host
#
# Kernel addresses on the bridges (for ping): 10.77.0.101, fd77::101 on a; 10.77.0.102, fd77::102 on b.

two_hosts_up() {
    hosts=$1
    [ "$(id -u)" -eq 0 ] || { echo "network namespaces need root: run this as root or with sudo" >&2; exit 2; }
    trap two_hosts_down EXIT
    trap 'exit 130' INT TERM
    local host index=101
    for host in a b; do
        ip netns add "$hosts-$host"
        # Before the first interface comes up: no duplicate address detection, no router solicitations in captures.
        on $host sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0 \
            net.ipv6.conf.default.router_solicitations=0
        on $host ip link set lo up
        on $host ip link add br0 type bridge mcast_snooping 0
    done
    on a ip link add joint mtu 9000 type veth peer name joint netns "$hosts-b"
    for host in a b; do
        on $host ip link set joint mtu 9000 master br0 up
        on $host ip address add 10.77.0.$index/24 dev br0
        on $host ip -6 address add fd77::$index/64 dev br0 nodad
        on $host ip link set br0 mtu 9000 up
        index=$((index + 1))
    done
}

two_hosts_down() {
    local pid host
    for pid in ${host_pids:-}; do kill "$pid" 2>/dev/null || true; done
    for pid in ${host_pids:-}; do wait "$pid" 2>/dev/null || true; done
    for host in a b; do ip netns delete "$hosts-$host" 2>/dev/null || true; done
}

on() {
    local host=$1
    shift
    ip netns exec "$hosts-$host" "$@"
}

join_tap() {
    local host=$1 tap=$2 tries=100
    until on "$host" ip link show dev "$tap" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || { echo "no interface $tap appeared on host $host within 10 s" >&2; return 1; }
        sleep 0.1
    done
    # The tap's kernel side has the port's own MAC at first; a bridge would take frames for the port as its own.
    on "$host" ip link set dev "$tap" address "$(printf '02:00:00:00:fe:%02x' $((RANDOM % 256)))"
    on "$host" ip link set dev "$tap" master br0 up
}
