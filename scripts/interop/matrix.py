#!/usr/bin/env python3
"""Rockhopper against stock Linux programs in a guest.

  matrix.py [--short] [--only TEXT] [--write FILE]

Prints a line per row and a table; --write puts the table into FILE between its markers. Exit status 1 when a row failed,
2 when it could not begin.

A row passes when both programs end well and the data is right. Data is compared where it can be seen:

  here         every byte that arrives here, with what the peer's program is known to send
  at the peer  the bytes in the memory of the peer's process, with what Rockhopper sent or received
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import channel
import report
import rows
import special
from guest import ADDRESS, NEAR, Guest, listens, programs, wait_for

# How long one row may take.
SECONDS = 60


class Failed(Exception):
    """A row did not pass."""


class Ours:
    """A running rockhopper-perf."""

    def __init__(self, config, arguments):
        self.errors = tempfile.TemporaryFile()
        command = [str(programs() / "rockhopper-perf"), *arguments, "-c", config, "--json"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.errors.close()

    def said(self):
        """The next line, as JSON; None when there is none."""
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self):
        """Waits for its end: exit status and what it complained of."""
        status = self.process.wait(SECONDS)
        self.errors.seek(0)
        return status, self.errors.read().decode(errors="replace").strip()


def start(guest, config, row, extra=()):
    """Starts both programs, in the order that their roles want. Ours."""
    flags = [*row.ours(), *extra]
    if row.role == "client":
        guest.must(f"background peer {row.theirs()}; listens {rows.PERFTEST_PORT} peer || {{ cat /tmp/peer.log; exit 1; }}")
        return Ours(config, [flags[0], ADDRESS, *flags[1:]])
    ours = Ours(config, [*flags, "--once"])
    if not wait_for(lambda: listens(rows.PERFTEST_PORT) or ours.process.poll() is not None, 20):
        raise Failed("rockhopper-perf does not listen")
    guest.must(f"background peer {row.theirs(NEAR)}")
    return ours


def compare(guest, pieces):
    """The peer's memory with what it has to hold."""
    for piece in pieces:
        found = guest.memory("peer", piece["addr"], piece["len"])
        if len(found) != piece["len"]:
            raise Failed(f"of the peer's memory {len(found)} bytes can be read at {piece['addr']:#x}, not {piece['len']}")
        if zlib.crc32(found) != piece["crc32"]:
            raise Failed(f"the {piece['len']} bytes at {piece['addr']:#x} of the peer are not those of Rockhopper")
    return len(pieces)


def run(guest, config, row):
    """Runs a row: what was compared here, and how many pieces at the peer."""
    holds = not row.pingpong
    looked = 0
    with start(guest, config, row, ["--hold"] if holds else []) as ours:
        watchdog = time.monotonic() + SECONDS
        said = ours.said()
        if said and "hold" in said:
            looked = compare(guest, said["hold"])
            ours.go_on()
            said = ours.said()
        status, complaint = ours.end()
        left = max(1, int(watchdog - time.monotonic()))
        theirs, log = guest.run(f"ended peer {min(10, left)}", 15)
        if status:
            raise Failed(complaint.splitlines()[-1] if complaint else f"rockhopper-perf ended with {status}")
        if theirs:
            last = log.decode(errors="replace").strip().splitlines()[-1:] or [""]
            raise Failed(f"{row.program} ended with {theirs}: {last[0]}")
    compared = said["verify"]["compared"]
    if not compared and not looked:
        raise Failed("nothing was compared")
    return {"here": compared, "there": looked, "retransmitted": said["retransmitted_packets"]}


def leave(guest):
    """Ends what a failed row left in the guest, if that still answers."""
    try:
        guest.run("end peer; ended peer 2 >/dev/null", 10)
    except channel.Silent as why:
        print(f"      {why}", flush=True)


def attempt(guest, config, row):
    """Runs a row to a result that can be told."""
    begin = time.monotonic()
    result = {"row": row, "ok": False, "here": 0, "there": 0, "why": ""}
    try:
        result.update(run(guest, config, row), ok=True)
    except (Failed, RuntimeError, subprocess.TimeoutExpired, OSError, json.JSONDecodeError) as why:
        result["why"] = str(why)
        leave(guest)
    result["seconds"] = time.monotonic() - begin
    seen = ", ".join(words for words in (
        f"{result['here']} compared here" if result["here"] else "",
        f"{result['there']} at the peer" if result["there"] else "") if words)
    print(f"{'ok  ' if result['ok'] else 'FAIL'} {result['seconds']:5.1f}s  {row.name()}: {seen if result['ok'] else result['why']}", flush=True)
    return result


def planned(arguments):
    """The rows by the guest's MTU."""
    if arguments.short:
        return {1500: rows.short() + rows.impaired()[-5:]}
    wanted = {mtu: rows.clean(False, mtu) + rows.clean(True, mtu) for mtu in rows.PATH_MTU}
    wanted[1500] += rows.impaired()
    return wanted


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="each program once in each role")
    parser.add_argument("--only", default="", help="rows whose name has this text")
    parser.add_argument("--write", help="the document to put the table into")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        print("matrix.py: taps and namespaces need root: run this as root", file=sys.stderr)
        return 2
    if not (programs() / "rockhopper-perf").exists():
        print(f"matrix.py: there is no {programs()}/rockhopper-perf: run 'make build', or set RH_BIN", file=sys.stderr)
        return 2
    # Guests end also when somebody ends this program.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    begin = time.monotonic()
    results, specials = [], []
    with tempfile.TemporaryDirectory(prefix="rockhopper-interop.") as scratch:
        for mtu, wanted in planned(arguments).items():
            wanted = [row for row in wanted if arguments.only in row.name()]
            with Guest(f"interop-{os.getpid()}-{mtu}", mtu) as guest:
                config = str(Path(scratch) / f"{mtu}.toml")
                Path(config).write_text(guest.config())
                for row in wanted:
                    results.append(attempt(guest, config, row))
                if mtu == 1500 and not arguments.short and arguments.only in "event":
                    specials += special.all_of(
                        guest,
                        lambda row: run(guest, config, row),
                        lambda row, extra=(): start(guest, config, row, extra),
                    )
    table = report.table(results, specials, time.monotonic() - begin, arguments.short)
    print(table)
    if arguments.write:
        report.write(arguments.write, table)
    failed = [result for result in results + specials if not result["ok"]]
    print(f"{len(results) + len(specials) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
