#!/usr/bin/python3
"""Lets tshark dissect captures and fails unless it reads every RoCEv2 packet to its iCRC without a complaint.

    check_dissection.py FILE...

One complaint of tshark is excused: a UDP checksum of 0 over IPv6, which RoCEv2 sends on purpose. Another is avoided: a
SEND of less than 16 bytes looks to it like a cut RPC-over-RDMA header, so runs to be captured send longer ones.
"""

import collections
import subprocess
import sys

FIELDS = [
    "frame.number",
    "frame.protocols",
    "udp.dstport",
    "udp.length",
    "infiniband.bth.opcode",
    "infiniband.invariant.crc",
    "_ws.malformed",
    "_ws.expert.severity",
    "_ws.expert.message",
    "icmp.type",
    "icmpv6.type",
]
ERROR = 0x00800000  # PI_ERROR of tshark's expert severities


def packets(path):
    """Every frame as a dictionary of lists: a field may occur several times."""
    command = ["tshark", "-n", "-r", path, "-T", "fields", "-E", "separator=/t", "-E", "aggregator=|"]
    for field in FIELDS:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{path}: tshark failed: {done.stderr.strip()}")
    for line in done.stdout.splitlines():
        values = [value.split("|") if value else [] for value in line.split("\t")]
        yield dict(zip(FIELDS, values))


def complaints(packet):
    """What tshark holds against a RoCEv2 packet."""
    found = []
    over_ipv6 = "ipv6" in packet["frame.protocols"][0].split(":")
    for severity, message in zip(packet["_ws.expert.severity"], packet["_ws.expert.message"]):
        if int(severity, 0) < ERROR or (over_ipv6 and message == "Illegal checksum value (0)"):
            continue
        found.append(message)
    if "infiniband" not in packet["frame.protocols"][0].split(":"):
        found.append("not dissected as RoCEv2")
    elif not packet["infiniband.invariant.crc"]:
        found.append("not dissected as far as its iCRC")
    return found + packet["_ws.malformed"]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    faults = 0
    for path in sys.argv[1:]:
        opcodes = collections.Counter()
        for packet in packets(path):
            number = packet["frame.number"][0]
            told = []
            if "4791" in packet["udp.dstport"]:
                opcodes.update(packet["infiniband.bth.opcode"])
                told += complaints(packet)
            if "3" in packet["icmp.type"] or "1" in packet["icmpv6.type"]:
                told.append("somebody says that a destination is unreachable")
            for what in told:
                print(f"{path}: frame {number}: {what}")
            faults += bool(told)
        listed = ", ".join(f"{int(code, 0):#04x} x {count}" for code, count in sorted(opcodes.items(), key=lambda o: int(o[0], 0)))
        print(f"{path}: tshark dissected {sum(opcodes.values())} RoCEv2 packets: {listed}")
        faults += not opcodes
    sys.exit(1 if faults else 0)


main()
