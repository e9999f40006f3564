# Every operation of rockhopper-perf against a running `rockhopper serve`, one client each, as a table. Sourced after
# two-hosts.sh.
#
#   find_programs                        sets $programs: $RH_BIN, or target/release
#   port_config FILE NUMBER KEY=VALUE..  a configuration with one port: addresses 10.77.0.NUMBER, fd77::NUMBER
#   start_server HOST CONFIG [FLAG...]   starts `rockhopper serve`; its id in $server
#   every_operation HOST SERVER CONFIG 4|6
#                                        runs all from HOST; false when one failed
#
# `quick=yes` leaves out what differs by a flag only; `before_each` may name a command to run before each client.

find_programs() {
    local program
    programs=${RH_BIN:-$PWD/target/release}
    for program in rockhopper rockhopper-perf; do
        [ -x "$programs/$program" ] || { echo "there is no $programs/$program: run 'make build', or set RH_BIN" >&2; exit 2; }
    done
}

port_config() {
    local file=$1 number=$2 line
    shift 2
    {
        echo '[[port]]'
        echo "name = \"port$number\""
        echo "addresses = [\"10.77.0.$number/24\", \"fd77::$number/64\"]"
        for line in "$@"; do echo "$line"; done
        # Two cores have to do for both ends, the kernel and a capture.
        printf '[workers]\npoll = "adaptive"\n[control]\nsocket = "%s"\nlisten = "0.0.0.0:18591"\n' "${file%.toml}.sock"
    } >"$file"
}

start_server() {
    start "$1" server "$programs/rockhopper" serve -c "$2" "${@:3}"
    server=$started
    wait_for 20 server_listens "$1" || {
        echo "the server did not come up within 20 s:" >&2
        cat "$scratch/server.err" >&2
        return 1
    }
}

server_listens() {
    on "$1" ss -Hltn 'sport = :18591' | grep -q .
}

# Messages of several packets and of one; counted, so that a capture stays small. What is not resent when lost (UC, UD) is
# sent no faster than receives are posted: the depth is at least the count.
every_operation() {
    local host=$1 server_address=$2 config=$3 version=$4 failed=0 flags=()
    [ "$version" = 6 ] && flags=(--ipv6)
    run_all() {
        one --connection RC send-bw --size 20000 --iters 100
        one --connection RC write-bw --size 65536 --iters 100
        one --connection RC read-bw --size 65536 --iters 100
        one --connection RC atomic-bw --iters 1000
        one --connection RC write-bw --size 20000 --iters 100 --qps 4 --imm --bidirectional
        one --connection RC write-lat --size 64 --iters 500
        one --connection UC send-bw --size 20000 --iters 50 --depth 64
        one --connection UC write-bw --size 20000 --iters 50 --depth 64
        one --connection UD send-bw --size 1000 --iters 100 --depth 128
        [ -n "${quick:-}" ] && return
        one --connection RC send-bw --size 20000 --iters 100 --imm
        one --connection RC send-lat --size 64 --iters 500
        one --connection RC read-lat --size 64 --iters 500
        one --connection RC atomic-lat --iters 500
        one --connection UC send-lat --size 64 --iters 500
        one --connection UD send-bw --size 1000 --iters 100 --depth 128 --imm
        one --connection UD send-lat --size 64 --iters 500
    }
    one() {
        local service=$2 operation=$3
        shift 3
        local result="$scratch/result.json" errors="$scratch/client.err" status=0
        if [ -n "${before_each:-}" ]; then $before_each; fi
        on "$host" timeout --kill-after=5 30 "$programs/rockhopper-perf" "$operation" "$server_address" \
            -c "$config" --connection "$service" "${flags[@]}" "$@" --verify --json >"$result" 2>"$errors" || status=$?
        if ! scripts/lib/result_row.py "IPv$version" "$service" "$operation" "$status" "$result"; then
            failed=$((failed + 1))
            sed 's/^/    client: /' "$errors"
            tail -qn 3 "$scratch/server.out" "$scratch/server.err" | sed 's/^/    server: /'
        fi
    }
    run_all
    [ $failed -eq 0 ]
}
