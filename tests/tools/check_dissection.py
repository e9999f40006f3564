#!/usr/bin/python3
"""Lets tshark dissect captures and fails unless it reads every RoCE packet to its iCRC without a complaint.

    check_dissection.py FILE...

One complaint of tshark is excused: a UDP checksum of 0 over IPv6, which RoCEv2 sends on purpose. Protocols that it guesses
from payload are off: it takes a SEND of less than 16 bytes for a cut RPC-over-RDMA header, and a datagram that begins like one
for Ethernet over InfiniBand. Some opcodes it does not know (4.0 shows "Opcode: Unknown" and the rest as unknown headers, without
the iCRC): FLUSH, ATOMIC WRITE and all of XRC. Of them, and of nothing else, the iCRC is not asked for; a complaint still counts.
"""

import collections
import subprocess
import sys

FIELDS = [
    "frame.number",
    "frame.protocols",
    "eth.type",
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
ROCE_V1 = "0x8915"
UNKNOWN = {0x1C: "FLUSH", 0x1D: "ATOMIC WRITE"} | {opcode: "XRC" for opcode in range(0xA0, 0xBE)}
GUESSED = ["rpcordma", "infiniband.eoib"]
ERROR = 0x00800000  # PI_ERROR of tshark's expert severities


def packets(path):
    """Every frame as a dictionary of lists: a field may occur several times."""
    command = ["tshark", "-n", "-r", path, "-T", "fields", "-E", "separator=/t", "-E", "aggregator=|"]
    for protocol in GUESSED:
        command += ["--disable-protocol", protocol]
    for field in FIELDS:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{path}: tshark failed: {done.stderr.strip()}")
    for line in done.stdout.splitlines():
        values = [value.split("|") if value else [] for value in line.split("\t")]
        yield dict(zip(FIELDS, values))


def opcode(packet):
    return int(packet["infiniband.bth.opcode"][0], 0)


def complaints(packet):
    """What tshark holds against a RoCE packet."""
    found = []
    over_ipv6 = "ipv6" in packet["frame.protocols"][0].split(":")
    for severity, message in zip(packet["_ws.expert.severity"], packet["_ws.expert.message"]):
        if int(severity, 0) < ERROR or (over_ipv6 and message == "Illegal checksum value (0)"):
            continue
        found.append(message)
    if "infiniband" not in packet["frame.protocols"][0].split(":"):
        found.append("not dissected as RoCE")
    elif not packet["infiniband.invariant.crc"] and opcode(packet) not in UNKNOWN:
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
            if "4791" in packet["udp.dstport"] or ROCE_V1 in packet["eth.type"]:
                opcodes.update(packet["infiniband.bth.opcode"])
                told += complaints(packet)
            if "3" in packet["icmp.type"] or "1" in packet["icmpv6.type"]:
                told.append("somebody says that a destination is unreachable")
            for what in told:
                print(f"{path}: frame {number}: {what}")
            faults += bool(told)
        listed = ", ".join(f"{int(code, 0):#04x} x {count}" for code, count in sorted(opcodes.items(), key=lambda o: int(o[0], 0)))
        print(f"{path}: tshark dissected {sum(opcodes.values())} RoCE packets: {listed}")
        unknown = {UNKNOWN[int(code, 0)] for code in opcodes if int(code, 0) in UNKNOWN}
        if unknown:
            print(f"{path}: without their iCRC, because tshark does not know them: {', '.join(sorted(unknown))}")
        faults += not opcodes
    sys.exit(1 if faults else 0)


main()
