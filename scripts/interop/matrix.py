#!/usr/bin/env python3
"""Rockhopper against stock Linux programs in a guest.

  matrix.py [--short] [--only TEXT] [--write FILE]

Prints a line per row and a table; --write puts the table into FILE between its markers. Exit status 1 when a row failed,
2 when it could not begin. There is a guest for each MTU, and they run side by side.
"""
import argparse
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import cm
import report
import rows
import special
from guest import Guest, programs
from runner import attempt, run, start


def end_on_signal(number, _):
    """Guests end also when somebody ends this program."""
    sys.exit(128 + number)


class Part:
    """What one guest after the other is good for: the rows of an MTU, and the events. A process of its own."""

    def __init__(self, mtu, wanted, events):
        self.mtu, self.wanted, self.events, self.results = mtu, wanted, events, []
        self.end, theirs = multiprocessing.Pipe(duplex=False)
        self.process = multiprocessing.get_context("fork").Process(target=self.work, args=(theirs,))
        self.process.start()
        theirs.close()

    def work(self, end):
        signal.signal(signal.SIGINT, end_on_signal)
        signal.signal(signal.SIGTERM, end_on_signal)
        left, events = list(self.wanted), self.events
        while left or events:
            with Guest(f"interop-{os.getpid()}-{self.mtu}", self.mtu) as guest, tempfile.NamedTemporaryFile("w", suffix=".toml") as config:
                config.write(guest.config())
                config.flush()
                with cm.Ends(guest, config.name) as ends:
                    while left:
                        row = left.pop(0)
                        # Who is alone with the port: a server of the rows over rdma_cm goes when one of the others comes.
                        if not isinstance(row, cm.Row):
                            ends.leave()
                        end.send(attempt(guest, config.name, row, ends.run if isinstance(row, cm.Row) else run))
                        if not guest.answers():
                            break
                if not left and events:
                    events = False
                    for result in special.all_of(
                        guest,
                        lambda row: run(guest, config.name, row),
                        lambda row, extra=(): start(guest, config.name, row, extra),
                    ):
                        end.send(result)

    def missing(self):
        """What its guests did not get to, as failed."""
        self.process.join()
        why = f"did not run: the process with the guest ended with {self.process.exitcode}"
        done = {result["row"] for result in self.results if "row" in result}
        for row in self.wanted:
            if row not in done:
                yield {"row": row, "ok": False, "here": 0, "there": 0, "why": why, "again": 0, "seconds": 0}
        if self.events and not any("event" in result for result in self.results):
            yield {"event": "all events", "wanted": "", "ok": False, "why": why}


def collect(parts):
    """Waits for the results of all parts."""
    under_way = {part.end: part for part in parts}
    while under_way:
        for end in multiprocessing.connection.wait(under_way):
            try:
                under_way[end].results.append(end.recv())
            except EOFError:
                del under_way[end]
    return [result for part in parts for result in [*part.results, *part.missing()]]


def planned(arguments):
    """The rows by the guest's MTU."""
    if arguments.short:
        return {mtu: rows.short(mtu) + cm.short(mtu) for mtu in rows.PATH_MTU}
    return {
        mtu: rows.clean(False, mtu) + rows.clean(True, mtu) + rows.impaired(mtu) + cm.whole(mtu) for mtu in rows.PATH_MTU
    }


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
    begin = time.monotonic()
    parts = []
    signal.signal(signal.SIGINT, end_on_signal)
    signal.signal(signal.SIGTERM, end_on_signal)
    try:
        for mtu, wanted in planned(arguments).items():
            wanted = [row for row in wanted if arguments.only in row.name()]
            events = mtu == 1500 and not arguments.short and arguments.only in "event"
            if wanted or events:
                parts.append(Part(mtu, wanted, events))
        told = collect(parts)
    finally:
        for part in parts:
            part.process.terminate()
            part.process.join()
    results = [result for result in told if "row" in result]
    specials = [result for result in told if "event" in result]
    table = report.table(results, specials, time.monotonic() - begin, arguments.short)
    print(table)
    if arguments.write:
        report.write(arguments.write, table)
    failed = [result for result in told if not result["ok"]]
    print(f"{len(told) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
