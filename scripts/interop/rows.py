"""The rows of the matrix: what runs, on which side, over what."""
from dataclasses import dataclass, replace

PERFTEST_PORT = 18515
# The path MTU that a guest's MTU carries.
PATH_MTU = {1500: 1024, 9000: 4096}


@dataclass(frozen=True)
class Row:
    """One run of one Linux program with Rockhopper at the other end."""

    program: str          # ib_write_bw, ibv_rc_pingpong ...
    service: str          # RC, UC, UD
    role: str             # Rockhopper's: client or server
    size: int
    iters: int
    qps: int = 1
    v6: bool = False
    mtu: int = 1500       # of the guest's NIC
    depth: int = 0        # messages under way, where it matters
    impair: str = ""      # our impairment stage's plan

    @property
    def pingpong(self):
        return self.program.startswith("ibv_")

    @property
    def path_mtu(self):
        return PATH_MTU[self.mtu]

    @property
    def operation(self):
        """Of rockhopper-perf."""
        if self.pingpong:
            return "send-lat"
        return self.program[len("ib_"):].replace("_", "-")

    def name(self):
        words = [self.program, self.service, f"{self.size} B"]
        if self.qps > 1:
            words.append(f"{self.qps} QPs")
        words += ["IPv6" if self.v6 else "IPv4", f"MTU {self.path_mtu}", f"we are the {self.role}"]
        if self.impair:
            words.append(f"[{self.impair}]")
        return ", ".join(words)

    def ours(self):
        """The arguments of rockhopper-perf but for configuration and host."""
        words = [self.operation, "--peer", "pingpong" if self.pingpong else "perftest", "-C", self.service,
                 "-n", self.iters, "-q", self.qps, "-m", self.path_mtu]
        if not self.program.startswith("ib_atomic"):
            words += ["-s", self.size]
        if self.depth:
            words += ["-t", self.depth]
        if self.v6:
            words += ["-6"]
        if self.impair:
            words += ["--impair", self.impair]
        return [str(word) for word in words]

    def theirs(self, host=None):
        """The Linux program's command line."""
        gid = 2 if self.v6 else 1
        if self.pingpong:
            words = [self.program, "-d", "rxe0", "-g", gid, "-n", self.iters, "-s", self.size, "-m", self.path_mtu]
            # The one for datagrams has no path MTU, and that with a shared queue takes a number of QPs.
            if self.service == "UD":
                words = words[:-2]
            if self.program == "ibv_srq_pingpong":
                words += ["-q", self.qps]
        else:
            words = [self.program, "-d", "rxe0", "-x", gid, "-F", "-n", self.iters, "-m", self.path_mtu]
            if not self.program.startswith("ib_atomic"):
                words += ["-s", self.size]
            if self.service != "RC":
                words += ["-c", self.service]
            if self.qps > 1:
                words += ["-q", self.qps]
            if self.depth and self.program.endswith("_bw"):
                words += ["-t", self.depth]
        return " ".join(str(word) for word in words + ([host] if host else []))


def clean(v6, mtu):
    """Every program in both roles over one IP version and MTU, without faults."""
    large = PATH_MTU[mtu]

    def few(size):
        """Messages enough to go round in every buffer, and not more than a second's worth."""
        return max(5, min(200, (8 << 20) // size))

    rows = []
    for verb in ("send", "write", "read"):
        for size in (1, 1000, 65536, 1 << 20, 8 << 20):
            rows.append(Row(f"ib_{verb}_bw", "RC", "client", size, few(size)))
        rows.append(Row(f"ib_{verb}_bw", "RC", "client", 20000, 50, qps=4))
        for size in (2, 3 * large + 5):
            rows.append(Row(f"ib_{verb}_lat", "RC", "client", size, 200))
    rows.append(Row("ib_atomic_bw", "RC", "client", 8, 200))
    rows.append(Row("ib_atomic_bw", "RC", "client", 8, 100, qps=4))
    rows.append(Row("ib_atomic_lat", "RC", "client", 8, 200))
    # What is lost is lost here, and nothing waits for the other end: all packets of a row fit into the port's ring (512) and the
    # tap's (1000), whoever has to wait for a processor.
    rows.append(Row("ib_send_bw", "UC", "client", 64, 100, depth=8))
    rows.append(Row("ib_send_bw", "UC", "client", 20000, 20, depth=2))
    rows.append(Row("ib_write_bw", "UC", "client", 20000, 20, depth=2))
    rows.append(Row("ib_send_lat", "UC", "client", 64, 100))
    rows.append(Row("ib_write_lat", "UC", "client", 64, 100))
    rows.append(Row("ib_send_bw", "UD", "client", 64, 100, depth=8))
    rows.append(Row("ib_send_bw", "UD", "client", large, 100, depth=8))
    rows.append(Row("ib_send_lat", "UD", "client", 64, 100))
    for size in (1, 4096, 1 << 20):
        rows.append(Row("ibv_rc_pingpong", "RC", "client", size, 100 if size < 1 << 20 else 10))
    rows.append(Row("ibv_rc_pingpong", "RC", "client", 8 << 20, 5))
    rows.append(Row("ibv_uc_pingpong", "UC", "client", 1, 100))
    rows.append(Row("ibv_uc_pingpong", "UC", "client", 4096, 100))
    rows.append(Row("ibv_ud_pingpong", "UD", "client", 1, 100))
    rows.append(Row("ibv_ud_pingpong", "UD", "client", large, 100))
    rows.append(Row("ibv_srq_pingpong", "RC", "client", 100, 200, qps=4))
    rows.append(Row("ibv_srq_pingpong", "RC", "client", 20000, 100, qps=8))
    both = [replace(row, role=role) for row in rows for role in ("client", "server")]
    return [replace(row, v6=v6, mtu=mtu) for row in both]


# Each fault alone and all together, on what we send and on what we receive.
FAULTS = {
    "drop": "drop 1%",
    "duplicate": "duplicate 2%",
    "reorder": "reorder 3 every 50",
    "corrupt": "corrupt 1%",
    "delay": "delay 2ms 2%",
    "all": "drop 1%; duplicate 1%; reorder 3 every 100; corrupt 1%",
}


def plan(faults, direction):
    """A plan for one direction, with a seed so that it can be run again."""
    parts = [f"{part.strip()} {direction}" for part in faults.split(";")]
    return "; ".join(["seed 7"] + parts)


def impaired(mtu):
    """Reliable programs through our impairment stage, each fault on what we send and on what we receive. Roles alternate, and the
    other way round over the other MTU: with both, each program meets each fault in each direction and role."""
    programs = (
        ("ib_send_bw", 20000, 100, 1),
        ("ib_write_bw", 20000, 100, 2),
        ("ib_read_bw", 20000, 200, 1),
        ("ib_atomic_bw", 8, 500, 1),
        ("ibv_rc_pingpong", 5000, 100, 1),
    )
    other = mtu != 1500
    rows = []
    for faults in FAULTS.values():
        for first, direction in enumerate(("tx", "rx")):
            for number, (program, size, iters, qps) in enumerate(programs):
                role = ("client", "server")[(first + number + other) % 2]
                rows.append(Row(program, "RC", role, size, iters, qps=qps, v6=other, mtu=mtu, impair=plan(faults, direction)))
    return rows


def short(mtu):
    """What `make test` runs: each program once in each role, the variants spread over them; over the larger MTU a few."""
    wanted = {
        1500: {
            ("ib_send_bw", "RC", 65536), ("ib_send_bw", "UC", 64), ("ib_send_bw", "UD", 64), ("ib_write_bw", "RC", 1),
            ("ib_write_bw", "RC", 8 << 20), ("ib_read_bw", "RC", 1 << 20), ("ib_atomic_bw", "RC", 8), ("ib_send_lat", "RC", 2),
            ("ib_write_lat", "RC", 2), ("ib_read_lat", "RC", 2), ("ib_atomic_lat", "RC", 8), ("ibv_rc_pingpong", "RC", 4096),
            ("ibv_uc_pingpong", "UC", 4096), ("ibv_ud_pingpong", "UD", 1), ("ibv_srq_pingpong", "RC", 20000),
        },
        9000: {("ib_send_bw", "RC", 8 << 20), ("ib_read_bw", "RC", 65536), ("ibv_ud_pingpong", "UD", 4096)},
    }[mtu]
    some = [row for row in clean(False, mtu) if (row.program, row.service, row.size) in wanted]
    some = [replace(row, v6=(number + number // 2) % 2 == 1) for number, row in enumerate(some)]
    return some + impaired(mtu)[-5:] if mtu == 1500 else some
