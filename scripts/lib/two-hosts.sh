# Two "hosts" on one machine: two network namespaces, each with a bridge, joined by a veth pair. Taps that DPDK ports
# make in a namespace join its bridge by themselves. Sourced by scripts, which become root by sudo if need be. Nothing
# outside the two namespaces is touched, and all of it is gone when the script ends, whatever happens.
#
#   two_hosts_up                makes hosts a and b, and $scratch, a directory for files
#   on HOST COMMAND...          runs a command in a host
#   start HOST NAME COMMAND...  starts one, its output in $scratch/NAME.out and NAME.err, its id in $started
#   stop PID [SIGNAL]           ends what `start` started, and waits; its exit status
#   wait_for SECONDS COMMAND... tries a command until it succeeds
#
# Kernel addresses on the bridges: 10.77.0.101, fd77::101 on a; 10.77.0.102, fd77::102 on b. Ports have others.

# Names of this run only, so that two runs do not meet. Linux allows bridge ports names of 15 bytes.
hosts=rh-$$
host_pids=()
# Scripts change to the project's root before they source this.
this_script=$(cd "${OLDPWD:-.}" && realpath "$0")

two_hosts_up() {
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || { echo "network namespaces need root: run this as root" >&2; exit 2; }
        exec sudo RH_BIN="${programs:-}" "$this_script"
    fi
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/rockhopper.XXXXXX")
    trap two_hosts_down EXIT
    trap 'exit 130' INT TERM
    local host index
    for host in a b; do
        ip netns add "$hosts-$host"
        on $host ip link set lo up
        on $host ip link add br0 address 02:00:00:00:00:0$host type bridge mcast_snooping 0
        # Before an interface comes up: only br0 speaks IPv6, at once and without asking for routers.
        on $host sh -c 'cd /proc/sys/net/ipv6/conf &&
            echo 0 >br0/accept_dad && echo 0 >br0/router_solicitations && echo 1 >default/disable_ipv6'
    done
    on a ip link add joint mtu 9000 type veth peer name joint mtu 9000 netns "$hosts-b"
    index=101
    for host in a b; do
        on $host ip link set joint master br0 up
        on $host ip address add 10.77.0.$index/24 dev br0
        on $host ip -6 address add fd77::$index/64 dev br0 nodad
        on $host ip link set br0 up
        start $host join-$host bash -c "$(declare -f join_taps); join_taps"
        index=$((index + 1))
    done
    # Links take up to a second to come up.
    wait_for 10 on a ping -n -q -c 1 -W 1 10.77.0.102 >/dev/null
}

two_hosts_down() {
    local status=$? pid host
    trap '' INT TERM
    # The first started last: the taps' joiners outlive the taps.
    for pid in "${host_pids[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
    for pid in "${host_pids[@]}"; do
        wait_for 5 gone "$pid" || kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    for host in a b; do ip netns delete "$hosts-$host" 2>/dev/null || true; done
    rm -rf "$scratch"
    exit "$status"
}

on() {
    local host=$1
    shift
    ip netns exec "$hosts-$host" "$@"
}

start() {
    local host=$1 name=$2
    shift 2
    # exec, so that the id is the program's own and not that of a shell around it.
    (exec ip netns exec "$hosts-$host" "$@") >"$scratch/$name.out" 2>"$scratch/$name.err" </dev/null &
    started=$!
    host_pids+=("$started")
}

stop() {
    local pid=$1 status=0 other left=()
    kill -"${2:-TERM}" "$pid" 2>/dev/null || true
    wait_for 10 gone "$pid" || { echo "process $pid did not end within 10 s of a signal" >&2; return 1; }
    wait "$pid" || status=$?
    for other in "${host_pids[@]}"; do [ "$other" = "$pid" ] || left+=("$other"); done
    host_pids=("${left[@]}")
    return "$status"
}

# A process that has ended may still be there for its exit status to be asked for.
gone() {
    local state
    state=$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) || return 0
    [ "$state" = Z ]
}

wait_for() {
    local tries=$(($1 * 20))
    shift
    until "$@"; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || return 1
        sleep 0.05
    done
}

# Joins taps that appear to the bridge, for as long as the host is there. A tap's kernel side has the port's own MAC,
# and gets it again when the port starts; a bridge takes frames to the MAC of one of its interfaces as its own and the
# port would never see them. So it gets another one, whenever that happens.
join_taps() {
    local path tap mac
    while sleep 0.05; do
        for path in /sys/class/net/*/tun_flags; do
            tap=${path%/tun_flags} tap=${tap##*/}
            read -r mac 2>/dev/null <"/sys/class/net/$tap/address" || continue
            case $mac in
            02:00:00:00:fe:*) ;;
            *) ip link set dev "$tap" address "$(printf '02:00:00:00:fe:%02x' $((RANDOM % 256)))" ;;
            esac
            [ -e "/sys/class/net/$tap/master" ] || ip link set dev "$tap" master br0 up
        done
    done
}
