"""One row of the matrix: starts both programs, sees them end, compares the data.

A row passes when both programs end well and the data is right. Data is compared where it can be seen:

  here         every byte that arrives here, with what the peer's program is known to send
  at the peer  the bytes in the memory of the peer's process, with what Rockhopper sent or received
"""
import json
import subprocess
import tempfile
import time
import zlib

import channel
import rows
from guest import ADDRESS, NEAR, listens, programs, wait_for

# How long one row may take.
SECONDS = 60
# How long the last packets of a service without acknowledgements may be under way.
UNDER_WAY = 5
# A guest that waits so long for a processor while a row runs lets retries and timers run out: what failed then says nothing, and is
# run again, so often at most.
STARVED = 1.0
TRIES = 3


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


def holds(guest, piece):
    """Whether the peer's memory holds what it has to."""
    found = guest.memory("peer", piece["addr"], piece["len"])
    if len(found) != piece["len"]:
        raise Failed(f"of the peer's memory {len(found)} bytes can be read at {piece['addr']:#x}, not {piece['len']}")
    return zlib.crc32(found) == piece["crc32"]


def compare(guest, pieces, row):
    """The peer's memory with what it has to hold; how many pieces there were."""
    # Of an acknowledged message the peer has all.
    patience = 0 if row.service == "RC" else UNDER_WAY
    for piece in pieces:
        if not wait_for(lambda: holds(guest, piece), patience):
            raise Failed(f"the {piece['len']} bytes at {piece['addr']:#x} of the peer are not those of Rockhopper")
    return len(pieces)


def noticed_here(said):
    """What our QPs have counted of faults: packets that came too late, too early or again, what was sent again, and timeouts."""
    counters = said["client"]["counters"] | said["server"]["counters"]
    names = ("duplicate_request", "out_of_sequence", "retransmitted_packets", "local_ack_timeout_err")
    return sum(count for name, count in counters.items() if name in names or name.startswith("drop_"))


def noticed_there(guest):
    """What the peer's rxe has counted of faults: duplicates, gaps, retries."""
    names = "duplicate_request out_of_seq_request rcvd_seq_err completer_retry_err"
    said = guest.must(f"cd /sys/class/infiniband/rxe0/ports/1/hw_counters && cat {names}")
    return sum(int(number) for number in said.split())


def run(guest, config, row):
    """Runs a row: what was compared here, how many pieces at the peer, and which faults of the line each end saw."""
    before = noticed_there(guest) if row.impair else 0
    looked = 0
    with start(guest, config, row, [] if row.pingpong else ["--hold"]) as ours:
        watchdog = time.monotonic() + SECONDS
        said = ours.said()
        if said and "hold" in said:
            looked = compare(guest, said["hold"], row)
            ours.go_on()
            said = ours.said()
        status, complaint = ours.end()
        left = max(1, int(watchdog - time.monotonic()))
        theirs, log = guest.run(f"ended peer {min(10, left)}", 15)
        if status or theirs:
            last = log.decode(errors="replace").strip().splitlines()[-1:] or [""]
            ours_said = complaint.splitlines()[-1] if complaint else f"rockhopper-perf ended with {status}"
            theirs_said = f"{row.program} ended with {theirs}: {last[0]}"
            raise Failed("; ".join(said for said, ended in ((ours_said, status), (theirs_said, theirs)) if ended))
    compared = said["verify"]["compared"]
    if not compared and not looked:
        raise Failed("nothing was compared")
    noticed = (noticed_here(said), noticed_there(guest) - before) if row.impair else (0, 0)
    return {"here": compared, "there": looked, "noticed": noticed}


def leave(guest):
    """Ends what a failed row left in the guest, if that still answers."""
    try:
        guest.run("end peer; ended peer 2 >/dev/null", 10)
    except channel.Silent as why:
        print(f"      {why}", flush=True)


def attempt(guest, config, row, how=run):
    """Runs a row to a result that can be told. `how` runs it once: what was compared, or counted."""
    for again in range(TRIES):
        waited = guest.waited()
        result = attempt_once(guest, config, row, how)
        waited = guest.waited() - waited
        result["again"] = again
        if result["ok"] or waited < STARVED:
            break
        print(f"      meanwhile the guest waited {waited:.1f} s for a processor", flush=True)
    return result


def attempt_once(guest, config, row, how):
    begin = time.monotonic()
    result = {"row": row, "ok": False, "here": 0, "there": 0, "why": ""}
    try:
        result.update(how(guest, config, row), ok=True)
    except (Failed, RuntimeError, subprocess.TimeoutExpired, OSError, json.JSONDecodeError) as why:
        result["why"] = str(why)
        leave(guest)
    result["seconds"] = time.monotonic() - begin
    seen = ", ".join(words for words in (
        f"{result['here']} compared here" if result["here"] else "",
        f"{result['there']} at the peer" if result["there"] else "") if words)
    print(f"{'ok  ' if result['ok'] else 'FAIL'} {result['seconds']:5.1f}s  {row.name()}: {seen if result['ok'] else result['why']}", flush=True)
    return result
