#!/usr/bin/env bash
# The conformance suite against Linux' rdma_rxe: boots a guest, starts the device agent of pyverbs in it, plays the rules.
# Arguments go to `rockhopper conform`, whose exit status this has: rdma_rxe does not pass all, see docs/interop.md.
#
#   scripts/interop/conform.sh --only psn- --verbose
set -euo pipefail
tool=conform.sh
. "$(dirname "$0")/lib.sh"
program=$(realpath "${ROCKHOPPER:-$interop/../../target/release/rockhopper}")
[ -x "$program" ] || die "there is no $program: run 'make build'"
name=conform$$
work=$(mktemp -d)
trap '"$interop/guest.sh" stop "$name"; rm -rf "$work"' EXIT

# Python with pyverbs and what they need, from this Debian's packages: the guest runs them from here.
stage=$work/stage
mkdir -p "$stage"/{bin,lib,usr/lib}
fetch_package python3-pyverbs "$stage"
dpkg-deb -x "$stage"/python3-pyverbs_*.deb "$stage"
cp -L /usr/bin/python3 "$stage/bin/"
cp -r /usr/lib/python3.11 "$stage/usr/lib/"
find "$stage/bin/python3" "$stage/usr" \( -name '*.so' -o -name python3 \) -type f -exec ldd {} + 2>/dev/null |
    sed -n 's/.*=> \(\/[^ ]*\).*/\1/p' | sort -u | xargs cp -L -t "$stage/lib"
cp -L /lib64/ld-linux-x86-64.so.2 "$stage/lib/"
cp "$interop/conform-agent.py" "$stage/"

"$interop/guest.sh" start "$name" --mtu 9000 --share "$stage"
"$interop/guest.sh" config "$name" >"$work/port.toml"
"$interop/guest.sh" exec "$name" - <<'END'
cd /mnt/host
export LD_LIBRARY_PATH=/mnt/host/lib PYTHONHOME=/mnt/host/usr PYTHONPATH=/mnt/host/usr/lib/python3/dist-packages
lib/ld-linux-x86-64.so.2 bin/python3 conform-agent.py rxe0 18610 >/tmp/agent.log 2>&1 </dev/null &
sleep 3
cat /tmp/agent.log
END
"$interop/guest.sh" in "$name" "$program" conform --target 10.78.0.1 --agent 10.79.0.1:18610 --config "$work/port.toml" --stretch 2 "$@"
