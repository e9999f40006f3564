#!/usr/bin/env bash
# A Linux Soft-RoCE (rdma_rxe) host on the other end of a cable whose near end is a tap: a peer to test against.
#
#   guest.sh possible                   exit status 1 and a reason where no guest can be made
#   guest.sh cache                      where the big files are: for ROCKHOPPER_CACHE of another user
#   guest.sh build                      makes kernel and root file system, if they are not there (minutes, once)
#   guest.sh start NAME [OPTIONS]       boots a guest; returns once it takes commands (a second)
#       --mtu BYTES (1500)                of its RDMA NIC: 1500 carries a path MTU of 1024, 9000 one of 4096
#       --share DIRECTORY                 of the host, at /mnt/host in the guest
#       --life SECONDS (3600)             it ends by itself after so long
#   guest.sh exec NAME [-t SECONDS] SCRIPT   runs a shell script in it (60 s at most); `-`: from standard input
#   guest.sh in NAME COMMAND...         runs a command on the near side, in the guest's network namespace
#   guest.sh config NAME                prints a configuration for a Rockhopper port on the near end
#   guest.sh pid NAME                   the process that is its kernel
#   guest.sh versions                   what it is made of
#   guest.sh stop NAME...               ends guests and removes all that belongs to them
#
# Each guest has a network namespace of its own, `rh-NAME`, with two taps:
#
#   tap     near end                                 guest
#   rdma0   a port: 10.78.0.2/24, fd78::2/64         eth0 with rxe0: 10.78.0.1/24, fd78::1/64
#           in VLAN 5: 10.90.0.2/24, fd90::2/64      in VLAN 5, where a test makes eth0.5: 10.90.0.1/24, fd90::1/64
#   line0   the kernel: 10.79.0.2/24                 eth1: 10.79.0.1/24, for commands and TCP exchanges
#
# rxe0's GIDs: 0 is link-local, 1 the IPv4 address, 2 fd78::1. In scripts: see guest/lib.sh (listens, background, ended,
# end, memory). A guest that ran into trouble leaves its console in $state/NAME/console.
#
#   scripts/interop/guest.sh start mine --mtu 9000
#   scripts/interop/guest.sh config mine >mine.toml
#   scripts/interop/guest.sh exec mine 'background srv ib_write_bw -d rxe0 -x 1 -F -n 100; listens 18515'
#   scripts/interop/guest.sh in mine target/release/rockhopper-perf write-bw 10.79.0.1 --peer perftest -c mine.toml -n 100
#   scripts/interop/guest.sh stop mine
set -euo pipefail
tool=guest.sh
. "$(dirname "$0")/lib.sh"
state=${ROCKHOPPER_GUESTS:-${TMPDIR:-/tmp}/rockhopper-guests.$(id -u)}

directory_of() {
    case ${1:-} in
    '' | -* | *[!A-Za-z0-9_-]*) die "'${1:-}' is no name for a guest: letters, digits, - and _" ;;
    esac
    echo "$state/$1"
}

# A process that has ended may still be there for its exit status to be asked for.
runs() {
    case "$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null)" in
    '' | Z) return 1 ;;
    esac
}
is_up() { [ -s "$1/pid" ] && runs "$(cat "$1/pid")"; }

# The kernel's source, and the RDMA programs with it, are Debian 12's.
possible() {
    local release
    release=$(. /etc/os-release && echo "${ID:-} ${VERSION_ID:-}")
    [ "$release" = 'debian 12' ] || { echo "it is made from the packages of Debian 12, and this is '$release'"; return 1; }
    [ "$(uname -m)" = x86_64 ] || { echo "it is made for x86-64, and this is $(uname -m)"; return 1; }
}

build() {
    "$interop/kernel.sh"
    "$interop/image.sh"
}

start() {
    local name=$1 mtu=1500 share= life=3600 directory
    shift
    directory=$(directory_of "$name")
    while [ $# -gt 0 ]; do
        case $1 in
        --mtu) mtu=$2 ;;
        --share) share=$2 ;;
        --life) life=$2 ;;
        *) die "unknown option '$1'; see the head of $0" ;;
        esac
        shift 2
    done
    [ "$(id -u)" -eq 0 ] || die "taps and namespaces need root: run this as root"
    is_up "$directory" && die "the guest $name runs already"
    build
    stop "$name"
    mkdir -p "$directory"
    near_side "$name" "$mtu"
    boot "$name" "$directory" "$mtu" "$share" "$life"
    wait_until_ready "$name" "$directory"
}

near_side() {
    local ns=rh-$1 mtu=$2
    ip netns add "$ns"
    # The kernel must have nothing to say on the port's side.
    ip netns exec "$ns" sh -c 'cd /proc/sys/net/ipv6/conf && echo 1 >all/disable_ipv6 && echo 1 >default/disable_ipv6'
    ip -n "$ns" link set lo up
    ip -n "$ns" tuntap add rdma0 mode tap
    ip -n "$ns" tuntap add line0 mode tap
    ip -n "$ns" link set rdma0 mtu "$mtu" up
    ip -n "$ns" link set line0 up
    ip -n "$ns" address add 10.79.0.2/24 dev line0
}

boot() {
    local name=$1 directory=$2 mtu=$3 share=$4 life=$5 mac
    mac=02:$(printf %s "$name" | md5sum | sed 's/\(..\)\(..\)\(..\)\(..\).*/\1:\2:\3:\4/')
    local words=(
        "$cache/linux" mem=512M "initrd=$cache/root.cpio" "umid=$name" "uml_dir=$directory" quiet con=null con0=null,fd:1
        "vec0:transport=tap,ifname=rdma0,depth=64,gro=0,mtu=$mtu"
        "vec1:transport=tap,ifname=line0,depth=64,gro=0,mtu=1500"
        "rh.name=$name" "rh.mtu=$mtu" "rh.mac=$mac" "rh.rxe=eth0" "rh.life=$life"
        "rh.ip=eth0,10.78.0.1/24,fd78::1/64" "rh.ip=eth1,10.79.0.1/24"
        "rh.mhz=$(awk '/^cpu MHz/ { print $4; exit }' /proc/cpuinfo)"
    )
    [ -z "$share" ] || words+=("rh.share=$(realpath "$share")")
    # A process group of its own: the guest's processes are processes here, and outlive a kernel that is killed. Its clock goes on
    # while it waits for a processor, so on a busy machine it comes before others.
    TMPDIR=/dev/shm setsid sh -c 'echo -5 >/proc/self/autogroup; exec nice -n -5 "$@"' sh \
        ip netns exec "rh-$name" "${words[@]}" </dev/null >"$directory/console" 2>&1 9>&- &
    echo $! >"$directory/pid"
}

wait_until_ready() {
    local name=$1 directory=$2 tries=100
    until echo true | in_guest "$name" 5 2>/dev/null; do
        tries=$((tries - 1))
        if [ $tries -eq 0 ] || ! is_up "$directory"; then
            tail -20 "$directory/console" >&2
            stop "$name"
            die "the guest $name did not come up; the end of its console is above"
        fi
        sleep 0.1
    done
}

in_guest() {
    ip netns exec "rh-$1" python3 "$interop/channel.py" 10.79.0.1 "$2"
}

execute() {
    local name=$1 seconds=60
    shift
    if [ "${1:-}" = -t ]; then
        seconds=$2
        shift 2
    fi
    is_up "$(directory_of "$name")" || die "the guest $name does not run; start it with '$0 start $name'"
    if [ "${1:--}" = - ]; then in_guest "$name" "$seconds"; else printf '%s\n' "$1" | in_guest "$name" "$seconds"; fi
}

stop() {
    local directory pid tries=60
    directory=$(directory_of "$1")
    if is_up "$directory"; then
        pid=$(cat "$directory/pid")
        kill -TERM "$pid" 2>/dev/null || true
        while runs "$pid" && [ $tries -gt 0 ]; do
            sleep 0.05
            tries=$((tries - 1))
        done
        kill -KILL -- "-$pid" 2>/dev/null || true
    fi
    ip netns delete "rh-$1" 2>/dev/null || true
    rm -rf "$directory"
    rmdir "$state" 2>/dev/null || true
}

config() {
    local directory
    directory=$(directory_of "$1")
    cat <<END
[[port]]
name = "rdma0"
driver = "af_packet"
interface = "rdma0"
addresses = ["10.78.0.2/24", "fd78::2/64"]
mtu = $(ip -n "rh-$1" link show dev rdma0 | sed -n 's/.* mtu \([0-9]*\) .*/\1/p')
[[port.vlans]]
id = 5
addresses = ["10.90.0.2/24", "fd90::2/64"]
[workers]
poll = "adaptive"
[control]
socket = "$directory/admin"
listen = "0.0.0.0:18591"
END
}

versions() {
    echo "$kernel_source $(cat "$cache/linux.version")"
    cat "$cache/root.versions"
}

command=${1:-}
[ $# -eq 0 ] || shift
case $command in
possible) possible ;;
cache) dirname "$cache" ;;
build) build ;;
start) start "${@:?a name}" ;;
exec) execute "${@:?a name}" ;;
in)
    name=${1:?a name}
    shift
    exec ip netns exec "rh-$name" "$@"
    ;;
config) config "${1:?a name}" ;;
pid) cat "$(directory_of "${1:?a name}")/pid" ;;
versions) versions ;;
stop) for name in "$@"; do stop "$name"; done ;;
*)
    sed -n '2,/^set -e/{/^set -e/d; s/^# \{0,1\}//; p}' "$0"
    exit 2
    ;;
esac
