#!/usr/bin/python3
"""An independent look at RoCE captures: recomputes the iCRC of every packet with zlib, which shares no code with us.

    check_icrc.py FILE...         one line a file: packets, opcodes; exit status 1 when an iCRC is wrong
    check_icrc.py --need send,write,read,atomic,ack FILE...
                                  fails too when a kind of packet is missing from all files together

Reads classic pcap (both byte orders) with Ethernet frames, with and without 802.1Q: RoCEv2 over IPv4 and IPv6, and RoCE v1.
"""

import argparse
import collections
import struct
import sys
import zlib

ROCE_PORT = 4791
KINDS = {
    "send": {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x16, 0x17},
    "write": set(range(0x06, 0x0C)),
    "read": set(range(0x0C, 0x11)),
    "ack": {0x11},
    "atomic": {0x12, 0x13, 0x14},
    "uc": set(range(0x20, 0x2C)),
    "ud": {0x64, 0x65},
    "invalidate": {0x16, 0x17},
    "flush": {0x1C},
    "atomic-write": {0x1D},
    "xrc": set(range(0xA0, 0xB5)),
}


def frames(path):
    """The frames of a pcap file."""
    with open(path, "rb") as file:
        data = file.read()
    order = {b"\xd4\xc3\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">", b"\x4d\x3c\xb2\xa1": "<", b"\xa1\xb2\x3c\x4d": ">"}
    if data[:4] not in order:
        sys.exit(f"{path}: not a classic pcap file")
    endian = order[data[:4]]
    at = 24
    while at + 16 <= len(data):
        kept, whole = struct.unpack_from(endian + "II", data, at + 8)
        at += 16
        if kept != whole:
            sys.exit(f"{path}: frames were cut on capture: capture with a larger snap length")
        yield data[at : at + kept]
        at += kept


def roce(frame):
    """(offsets of network header, of UDP if there is one, of the BTH, and of the end) of a RoCE frame, else None."""
    l3 = 14
    ethertype = struct.unpack_from(">H", frame, 12)[0]
    if ethertype == 0x8100:
        l3 = 18
        ethertype = struct.unpack_from(">H", frame, 16)[0]
    if ethertype == 0x8915 and frame[l3 + 6] == 0x1B:
        return l3, None, l3 + 40, l3 + 40 + struct.unpack_from(">H", frame, l3 + 4)[0]
    if ethertype == 0x0800 and frame[l3] == 0x45 and frame[l3 + 9] == 17:
        header, end = 20, l3 + struct.unpack_from(">H", frame, l3 + 2)[0]
    elif ethertype == 0x86DD and frame[l3 + 6] == 17:
        header, end = 40, l3 + 40 + struct.unpack_from(">H", frame, l3 + 4)[0]
    else:
        return None
    if struct.unpack_from(">H", frame, l3 + header + 2)[0] != ROCE_PORT:
        return None
    return l3, l3 + header, l3 + header + 8, end


def icrc(frame, l3, udp, bth, end):
    """The iCRC that the packet should carry, as on the wire."""
    covered = bytearray(b"\xff" * 8) + frame[l3 : end - 4]
    ip = 8
    if frame[l3] >> 4 == 4:
        covered[ip + 1] = covered[ip + 8] = covered[ip + 10] = covered[ip + 11] = 0xFF
    else:
        covered[ip] |= 0x0F
        covered[ip + 1 : ip + 4] = b"\xff\xff\xff"
        covered[ip + 7] = 0xFF
    if udp is not None:
        covered[8 + udp - l3 + 6] = covered[8 + udp - l3 + 7] = 0xFF
    covered[8 + bth - l3 + 4] = 0xFF
    return struct.pack("<I", zlib.crc32(covered))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--need", default="", help="kinds that must occur, with commas: v1,v2," + ",".join(KINDS))
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()

    seen = collections.Counter()
    wrong = 0
    for path in options.files:
        opcodes = collections.Counter()
        for number, frame in enumerate(frames(path), 1):
            place = roce(frame)
            if place is None:
                continue
            l3, udp, bth, end = place
            opcodes[frame[bth]] += 1
            seen["v2" if udp else "v1"] += 1
            if icrc(frame, l3, udp, bth, end) != frame[end - 4 : end]:
                wrong += 1
                print(f"{path}: frame {number}: wrong iCRC")
        listed = ", ".join(f"0x{opcode:02x} x {count}" for opcode, count in sorted(opcodes.items()))
        print(f"{path}: {sum(opcodes.values())} RoCE packets: {listed}")
        seen += opcodes
    missing = [k for k in options.need.split(",") if k and not any(seen[kind] for kind in KINDS.get(k, {k}))]
    if not seen:
        print("no RoCE packet at all")
    if missing:
        print("no packet of: " + ", ".join(missing))
    sys.exit(1 if wrong or missing or not seen else 0)


main()
