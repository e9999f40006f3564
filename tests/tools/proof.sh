# What the proofs (tests/*.sh) begin with: programs, hosts, captures, and what they check. Sourced from the project's root.
#
#   check WHAT COMMAND...       runs a command; prints what was checked, and its output when it fails
#   capture HOST INTERFACE      starts a capture of whole frames into $scratch/INTERFACE.pcap
#   end_captures                ends them; false when the kernel had to drop frames, which nothing could then prove
#   quiet_kernel HOST           no datagram reached the kernel of a host for which it had no receiver
#   passed                      ends the proof: exit status 1 if a check failed

. scripts/lib/two-hosts.sh
. scripts/lib/every-operation.sh

# The programs as the other tests use them, unless RH_BIN names others.
if [ -z "${RH_BIN:-}" ]; then
    scripts/cargo.sh build --quiet -p rockhopper -p rockhopper-perf
    RH_BIN=${CARGO_TARGET_DIR:-$PWD/target}/debug
fi
find_programs

failures=0
captures=()

check() {
    local what=$1
    shift
    # Not in a subshell: that could not wait for what this one started.
    if "$@" >"$scratch/said" 2>&1; then
        echo "ok    $what"
    else
        echo "FAIL  $what"
        head -n 20 "$scratch/said" | sed 's/^/      /'
        failures=$((failures + 1))
    fi
}

capture() {
    start "$1" "capture-$2" tcpdump -n -i "$2" -s 65535 -B 65536 -Z root -U -w "$scratch/$2.pcap"
    captures+=("$started" "$2")
    wait_for 10 grep -q 'listening on' "$scratch/capture-$2.err" || {
        cat "$scratch/capture-$2.err" >&2
        return 1
    }
}

end_captures() {
    local pid interface dropped=0
    # The kernel hands frames over in blocks, the last one after a pause.
    sleep 1
    set -- "${captures[@]}"
    while [ $# -gt 0 ]; do
        pid=$1 interface=$2
        shift 2
        stop "$pid" INT
        cat "$scratch/capture-$interface.err"
        grep -q '^0 packets dropped by kernel' "$scratch/capture-$interface.err" || dropped=1
    done
    return $dropped
}

quiet_kernel() {
    local counters='^(UdpNoPorts|IcmpOutDestUnreachs|Udp6NoPorts|Icmp6OutDestUnreachs) '
    on "$1" nstat -asz | grep -E "$counters" | awk '$2 != 0 { print; bad = 1 } END { exit bad || NR != 4 }'
}

# FILE BYTES: the middle packets of READ responses, which have no header but the BTH, carry as many bytes.
longest_is() {
    local longest
    longest=$(tshark -n -r "$1" -Y 'infiniband.bth.opcode == 14' -T fields -e udp.length | sort -n | tail -n 1)
    [ "$longest" = $(($2 + 12 + 8 + 4)) ] || { echo "the longest UDP length is ${longest:-nothing}"; return 1; }
}

passed() {
    [ $failures -eq 0 ] || { echo "$failures checks failed"; exit 1; }
    exit 0
}
