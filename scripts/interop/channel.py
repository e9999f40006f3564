#!/usr/bin/env python3
"""Runs a shell script in a guest: channel.py IP SECONDS <script. Exit status: the script's; 124 when it took too long,
125 when the guest does not answer. Its output is passed on as it comes."""
import os
import socket
import sys
import time


def main():
    address, seconds = sys.argv[1], int(sys.argv[2])
    script = sys.stdin.buffer.read()
    mark = os.urandom(8).hex().encode()
    end = time.monotonic() + seconds + 5
    try:
        line = socket.create_connection((address, 7), timeout=5)
        line.sendall(b"%s %d\n" % (mark, seconds) + script)
        line.shutdown(socket.SHUT_WR)
        return pass_on(line, mark, end)
    except OSError as why:
        print(f"channel.py: the guest does not answer: {why}", file=sys.stderr)
        return 125


def pass_on(line, mark, end):
    """Prints what comes until the mark. What might be its beginning waits for what follows."""
    trailer = b"\n" + mark + b" "
    held = b""
    while True:
        line.settimeout(max(0.1, end - time.monotonic()))
        data = line.recv(1 << 16)
        if not data:
            sys.stdout.buffer.write(held)
            raise OSError("it closed the connection")
        held += data
        at = held.find(trailer)
        if at >= 0 and held.endswith(b"\n") and held.count(b"\n", at + 1):
            sys.stdout.buffer.write(held[:at])
            sys.stdout.buffer.flush()
            return int(held[at + len(trailer):].split(b"\n")[0])
        if at < 0 and len(held) > len(trailer):
            sys.stdout.buffer.write(held[:-len(trailer)])
            sys.stdout.buffer.flush()
            held = held[-len(trailer):]


sys.exit(main())
