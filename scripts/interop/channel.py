#!/usr/bin/env python3
"""Runs a shell script in a guest: channel.py IP SECONDS <script. Exit status: the script's; 124 when it took too long,
125 when the guest does not answer. Its output is passed on as it comes."""
import os
import socket
import sys
import time

PORT = 7


class Silent(OSError):
    """The guest does not answer."""


def run(address, seconds, script, said):
    """Runs a script (bytes); calls `said` with what it prints as it comes; its exit status."""
    mark = os.urandom(8).hex().encode()
    end = time.monotonic() + seconds + 5
    try:
        with socket.create_connection((address, PORT), timeout=20) as line:
            line.sendall(b"%s %d\n" % (mark, seconds) + script)
            line.shutdown(socket.SHUT_WR)
            return pass_on(line, b"\n" + mark + b" ", end, said)
    except OSError as why:
        raise Silent(f"the guest does not answer: {why}") from why


def pass_on(line, trailer, end, said):
    """Passes on what comes, up to the trailer. What might be its beginning waits for what follows."""
    held = b""
    while True:
        line.settimeout(max(0.1, end - time.monotonic()))
        data = line.recv(1 << 16)
        if not data:
            said(held)
            raise OSError("it closed the connection")
        held += data
        at = held.find(trailer)
        if at < 0:
            keep = len(trailer)
            said(held[:-keep])
            held = held[-keep:]
        elif held.endswith(b"\n") and held.count(b"\n", at + 1):
            said(held[:at])
            return int(held[at + len(trailer):].split(b"\n")[0])


def main():
    def said(data):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    try:
        return run(sys.argv[1], int(sys.argv[2]), sys.stdin.buffer.read(), said)
    except Silent as why:
        print(f"channel.py: {why}", file=sys.stderr)
        return 125


if __name__ == "__main__":
    sys.exit(main())
