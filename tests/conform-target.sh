#!/usr/bin/env bash
# `rockhopper conform --target` over a wire: the scripted peer on one end of a veth pair holds `rockhopper serve --agent` on the other to
# every rule, in real time. (The suite in this process, on a clock moved by hand, is a test of the workspace.)
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/tools/proof.sh

two_hosts_up
on a ip link add left mtu 9000 type veth peer name right mtu 9000
on a ip link set left up
on a ip link set right up
port_config "$scratch/left.toml" 1 'driver = "af_packet"' 'interface = "left"'
port_config "$scratch/right.toml" 2 'driver = "af_packet"' 'interface = "right"'
start_server a "$scratch/right.toml" --agent 127.0.0.1:18610

# Machines that do other things answer late: the scripts' times are stretched.
play() {
    on a timeout --kill-after=5 300 "$programs/rockhopper" conform --target 10.77.0.2 --agent 127.0.0.1:18610 \
        --config "$scratch/left.toml" --stretch 8 --json >"$scratch/rules.json"
}
check "every rule is played against the other end" play
check "every one of them holds, and none was skipped" tests/tools/check_conform.py "$scratch/rules.json"
check "the server ends well" stop "$server" INT
check "the kernel had nothing to say to our packets" quiet_kernel a
passed
