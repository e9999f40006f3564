"""Rows over rdma_cm: Linux' programs that connect by it, with `rockhopper serve`, `rockhopper ping` or `rockhopper-perf --cm` at
the other end.

As server, one `rockhopper serve` is there for all rows of a guest; it tells how each connection ended, and a row passes when the Linux
program ends well and the server counted what it has to. As client, a row passes when both programs end well and say that all came.
"""
import json
import queue
import re
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass

import rows
from guest import programs
from runner import Failed

THEIRS_V4, THEIRS_V6 = "10.78.0.1", "fd78::1"
OURS_V4, OURS_V6 = "10.78.0.2", "fd78::2"
# A VLAN of both over the same NICs; guest.sh gives our port the other addresses.
VLAN = 5
VLAN_THEIRS_V4, VLAN_THEIRS_V6 = "10.90.0.1", "fd90::1"
VLAN_OURS_V4, VLAN_OURS_V6 = "10.90.0.2", "fd90::2"
PORT = "rdma0"
NIC = "eth0"
# Groups, and whom they are for.
GROUPS = {"IPv4": "239.77.1.1"}
# How long one row may take, and how long a server may take to tell of a connection that has ended.
SECONDS = 30
TELL = 5


@dataclass(frozen=True)
class Row:
    """One run of one Linux program with Rockhopper at the other end."""

    program: str          # rping, ib_send_bw ...
    role: str             # Rockhopper's: client or server
    over: str             # IPv4, IPv6, link-local, VLAN IPv4, VLAN IPv6
    theirs: str           # the Linux program's arguments; {to} is where to connect to
    ours: tuple = ()      # as client: our program's arguments; {to} likewise
    counts: tuple = ()    # as server: what the connections have to have counted, in any order
    mtu: int = 1500
    qps: int = 1
    times: int = 1        # as server: runs of the Linux program, one after the other

    impair = ""

    def name(self):
        return f"{self.program} over rdma_cm, {self.over}, MTU {rows.PATH_MTU[self.mtu]}, we are the {self.role}: " \
            f"{self.theirs.strip()}{f', {self.times} times' if self.times > 1 else ''}"


def near(over, link_local):
    """Our address, as the guest names it."""
    return {
        "IPv4": OURS_V4, "IPv6": OURS_V6, "link-local": f"{link_local}%{NIC}", "VLAN IPv4": VLAN_OURS_V4, "VLAN IPv6": VLAN_OURS_V6,
    }[over]


def far(over, link_local):
    """The guest's address, as we name it."""
    return {
        "IPv4": THEIRS_V4, "IPv6": THEIRS_V6, "link-local": f"{link_local}%{PORT}",
        "VLAN IPv4": VLAN_THEIRS_V4, "VLAN IPv6": VLAN_THEIRS_V6,
    }[over]


class Server:
    """A running `rockhopper serve`."""

    def __init__(self, config):
        self.errors = tempfile.TemporaryFile()
        command = [str(programs() / "rockhopper"), "serve", "-c", config, "--json", "--verbose", "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        up = self.next(30)
        if not up or up.get("event") != "up":
            self.end()
            self.errors.seek(0)
            raise Failed(f"rockhopper serve does not come up: {self.errors.read().decode(errors='replace')[-200:]}")
        self.link_local = next((gid for gid in up["gids"] if gid.startswith("fe80")), "")

    def read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))

    def next(self, seconds):
        try:
            return self.lines.get(timeout=seconds)
        except queue.Empty:
            return None

    def forget(self):
        """Drops what was said so far."""
        while self.next(0.01):
            pass

    def served(self, count):
        """What is told of the next so many connections."""
        told, end = [], time.monotonic() + TELL
        while len(told) < count and time.monotonic() < end:
            said = self.next(0.2)
            if said and said.get("event") == "served":
                told.append(said)
        return told

    def runs(self):
        return self.process.poll() is None

    def end(self):
        if self.runs():
            self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        return self.process.returncode


class Ends:
    """What the rows of one guest share: our server, which is there while rows want it."""

    def __init__(self, guest, config):
        self.guest, self.config, self.server = guest, config, None
        join_vlan(guest)
        self.their_link_local = guest.must(f"ip -6 address show dev {NIC} scope link | sed -n 's/.*inet6 \\(fe80[^/]*\\).*/\\1/p'").strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.leave()

    def leave(self):
        """Ends the server."""
        server, self.server = self.server, None
        return server.end() if server else 0

    def serving(self):
        if not self.server or not self.server.runs():
            self.leave()
            self.server = Server(self.config)
        return self.server

    def run(self, guest, config, row):
        # A row that brings a command of ours is one command against another, whoever of them is the server.
        return self.as_client(row) if row.ours else self.as_server(row)

    def as_server(self, row):
        server = self.serving()
        server.forget()
        command = f"timeout {SECONDS} {row.program} {row.theirs.format(to=near(row.over, server.link_local))}"
        if row.times > 1:
            command = f"for time in $(seq {row.times}); do {command} || exit $?; done"
        status, log = self.guest.run(command, SECONDS + 5)
        if status:
            raise Failed(f"{row.program} ended with {status}: {last_line(log)}")
        told = server.served(len(row.counts))
        broken = [said["broken"] for said in told if said["broken"]]
        if broken:
            raise Failed(f"a connection broke: {broken[0]}")
        counts = sorted(said["count"] for said in told)
        if counts != sorted(row.counts):
            raise Failed(f"the server counted {counts}, not {sorted(row.counts)}")
        if not server.runs():
            raise Failed("rockhopper serve ended")
        return {"here": sum(counts) or len(counts), "there": 0, "noticed": (0, 0)}

    def as_client(self, row):
        self.leave()
        self.guest.must(f"background peer {row.program} {row.theirs.format(to=far(row.over, self.their_link_local))}")
        try:
            return self.ask(row)
        finally:
            self.guest.run("end peer; ended peer 5 >/dev/null")

    def ask(self, row):
        if row.program != "mckey":
            self.wait_until_it_listens(row)
        command = [word.format(to=far(row.over, self.their_link_local)) for word in row.ours]
        done = subprocess.run(
            [str(programs() / command[0]), *command[1:], "-c", self.config, "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=SECONDS, check=False)
        # cmtime's server goes on for the next client.
        theirs, log = (0, b"") if row.program == "cmtime" else self.guest.run("ended peer 10", 15)
        if done.returncode or theirs:
            ours = (done.stderr.strip().splitlines() or [f"{command[0]} ended with {done.returncode}"])[-1]
            raise Failed(f"{ours}; {row.program} ended with {theirs}: {last_line(log)}" if theirs else ours)
        said = json.loads(done.stdout.strip().splitlines()[-1])
        compared = said.get("answered", said.get("messages", 0)) if command[0] == "rockhopper" else said["messages"]
        return {"here": compared or said.get("connections", 0), "there": 0, "noticed": (0, 0)}

    def wait_until_it_listens(self, row):
        """Nothing tells from outside that a program listens at rdma_cm, but that its identifier is in the kernel's list."""
        for _ in range(100):
            status, said = self.guest.run("rdma resource show cm_id; [ ! -s /tmp/peer.status ]")
            if status:
                raise Failed(f"{row.program} ended at once: {last_line(self.guest.run('cat /tmp/peer.log')[1])}")
            if re.search(r"LISTEN", said.decode(errors="replace")):
                return
            time.sleep(0.05)
        raise Failed(f"{row.program} does not listen")


def last_line(log):
    return (log.decode(errors="replace").strip().splitlines() or [""])[-1]


def join_vlan(guest):
    """Puts the guest into the VLAN, too."""
    nic = f"{NIC}.{VLAN}"
    guest.must(
        f"ip link add link {NIC} name {nic} type vlan id {VLAN}; echo 0 >/proc/sys/net/ipv6/conf/{nic}/accept_dad; "
        f"ip address add {VLAN_THEIRS_V4}/24 dev {nic}; ip address add {VLAN_THEIRS_V6}/64 dev {nic} nodad; ip link set {nic} up")


PING = ("rockhopper", "ping", "{to}", "-i", "0")
PLACES = ("IPv4", "IPv6", "link-local")
VLANS = ("VLAN IPv4", "VLAN IPv6")


def servers(mtu):
    """Linux' clients against `rockhopper serve`."""
    some = []
    for over in PLACES + VLANS:
        some.append(Row("rping", "server", over, "-c -a {to} -C 100 -V", counts=(100,)))
        some.append(Row("rping", "server", over, "-c -a {to} -C 20 -V -S 60000", counts=(20,)))
    for over in PLACES + VLANS:
        some.append(Row("ucmatose", "server", over, "-s {to} -c 5", counts=(10,) * 5))
        some.append(Row("udaddy", "server", over, "-s {to} -c 4 -C 10 -S 100"))
    for over in PLACES:
        some.append(Row("cmtime", "server", over, "-s {to} -p 7472 -c 20", counts=(0,) * 20))
    some.append(Row("cmtime", "server", "IPv4", "-s {to} -p 7472 -c 50", counts=(0,) * 1000, times=20))
    large = rows.PATH_MTU[mtu]
    # perftest 4.5 with -R knows IPv4 alone.
    for over in ("IPv4",):
        for program, size, count, qps in (("ib_send_bw", 3000, 100, 1), ("ib_send_bw", 20000, 50, 4), ("ib_write_bw", 65536, 50, 1),
                                          ("ib_write_bw", 3000, 100, 4), ("ib_read_bw", 3000, 50, 1)):
            flags = f"-R -d rxe0 -x 1 -F -n {count} -s {size} -m {large}" + (f" -q {qps}" if qps > 1 else "")
            arrived = count if program == "ib_send_bw" else 0
            some.append(Row(program, "server", over, f"{flags} {{to}}", counts=(arrived,) * qps + (words(program, qps),), qps=qps))
    return [with_mtu(row, mtu) for row in some]


def words(program, qps):
    """What perftest says over its first connection: version, sizes, MTU, empty records, those of the QPs twice, the first one ..."""
    both = 4 + 2 + 2 * qps + 1 + 1
    return both + 1 if program == "ib_send_bw" else both + 5 + 1


def with_mtu(row, mtu):
    return Row(**{**row.__dict__, "mtu": mtu})


def clients(mtu):
    """Ours against Linux' servers."""
    some = []
    for over in PLACES + VLANS:
        bind = "0.0.0.0" if over.endswith("IPv4") else "::0"
        some.append(Row("rping", "client", over, f"-s -a {bind} -C 100 -V", ours=(*PING, "-n", "100")))
        some.append(Row("rping", "client", over, f"-s -a {bind} -C 20 -V -S 60000", ours=(*PING, "-n", "20", "-s", "60000")))
    for over in PLACES + VLANS:
        bind = "" if over.endswith("IPv4") else "-b ::0"
        some.append(Row("ucmatose", "client", over, f"{bind} -c 5", ours=(*PING, "--peer", "ucmatose", "-n", "10", "-s", "100", "--connections", "5")))
        some.append(Row("udaddy", "client", over, f"{bind} -c 4 -C 10 -S 100",
                        ours=(*PING, "--peer", "udaddy", "-n", "10", "-s", "100", "--connections", "4")))
        some.append(Row("cmtime", "client", over, f"{bind} -c 20", ours=(*PING, "--peer", "cmtime", "-p", "7471", "--connections", "20")))
    # Who receives joins first: as sender ours waits half a second, mckey three.
    for over, group in GROUPS.items():
        ours = ("rockhopper", "ping", group, "--peer", "mckey", "-n", "10", "-s", "100", "-I", OURS_V4)
        theirs = f"-m {group} -b {THEIRS_V4} -C 10 -S 100"
        some.append(Row("mckey", "client", over, theirs, ours=ours))
        some.append(Row("mckey", "server", over, f"{theirs} -s", ours=(*ours, "--receive", "-W", "15000")))
    large = rows.PATH_MTU[mtu]
    for over in ("IPv4",):
        for program, size, count, qps in (("ib_send_bw", 3000, 100, 1), ("ib_send_bw", 20000, 50, 4), ("ib_write_bw", 65536, 50, 1),
                                          ("ib_write_bw", 3000, 100, 4), ("ib_read_bw", 3000, 50, 1)):
            flags = f"-R -d rxe0 -x 1 -F -n {count} -s {size} -m {large}" + (f" -q {qps}" if qps > 1 else "")
            operation = program[len("ib_"):].replace("_", "-")
            ours = ("rockhopper-perf", operation, "{to}", "--peer", "perftest", "--cm", "-n", str(count), "-s", str(size), "-q", str(qps),
                    "-m", str(large))
            some.append(Row(program, "client", over, flags, ours=ours, qps=qps))
    return [with_mtu(row, mtu) for row in some]


def whole(mtu):
    """All rows over one MTU."""
    return servers(mtu) + clients(mtu)


def short(mtu):
    """What `make test` runs: each program once in each role."""
    if mtu != 1500:
        return []
    places = {"rping": ("IPv4", "VLAN IPv6"), "ucmatose": ("IPv6",), "udaddy": ("link-local",), "cmtime": ("IPv6",)}
    wanted, seen = [], set()
    for row in whole(mtu):
        kind = (row.program, row.role, row.over)
        if kind not in seen and row.over in places.get(row.program, ("IPv4",)):
            seen.add(kind)
            wanted.append(row)
    return wanted
