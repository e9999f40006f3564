"""A guest of guest.sh, for programs: started, spoken to, looked into, ended."""
import ctypes
import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import channel

HERE = Path(__file__).resolve().parent
SCRIPT = str(HERE / "guest.sh")
ADDRESS = "10.79.0.1"
NEAR = "10.79.0.2"
# Where nobody listens, and how often to send there.
DISCARD = 9
BEAT = 0.02
CLONE_NEWNET = 0x40000000


class Guest:
    """A guest with an MTU. `with` ends it, whatever happens."""

    def __init__(self, name, mtu):
        self.name, self.mtu = name, mtu
        self.over = threading.Event()
        self.beat = threading.Thread(target=self.keep_awake, daemon=True)

    def __enter__(self):
        subprocess.run([SCRIPT, "start", self.name, "--mtu", str(self.mtu)], check=True)
        self.pid = int(subprocess.run([SCRIPT, "pid", self.name], check=True, stdout=subprocess.PIPE, text=True).stdout)
        self.enter()
        # Threads begin in the namespace of the one that starts them.
        self.beat.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.beat.join()
        # Who wants this program to end may say so twice; a guest half ended would stay.
        handlers = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
        subprocess.run([SCRIPT, "stop", self.name], check=False)
        for number, handler in handlers.items():
            signal.signal(number, handler)

    def enter(self):
        """From now on this process, and what it starts, is on the near side of this guest's cable."""
        with open(f"/run/netns/rh-{self.name}") as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), f"the namespace rh-{self.name} cannot be entered")

    def keep_awake(self):
        """Sends the guest something now and then. User Mode Linux at times misses the interrupt of a packet and finds it at the
        next one, of either NIC; where nothing is ever sent again (UC, UD) that would be never."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
            while not self.over.wait(BEAT):
                try:
                    line.sendto(b"", (ADDRESS, DISCARD))
                except OSError:
                    pass  # what the last one brought back: nobody listens there

    def config(self):
        """A configuration for a port on the near end."""
        return subprocess.run([SCRIPT, "config", self.name], check=True, stdout=subprocess.PIPE, text=True).stdout

    def run(self, script, seconds=30):
        """Runs a shell script in the guest: its exit status and what it printed."""
        said = bytearray()
        status = channel.run(ADDRESS, seconds, script.encode(), said.extend)
        return status, bytes(said)

    def must(self, script, seconds=30):
        """Runs a script that has to succeed."""
        status, said = self.run(script, seconds)
        if status:
            raise RuntimeError(f"in the guest, {script!r} ended with {status}: {said.decode(errors='replace')[-300:]}")
        return said.decode(errors="replace")

    def answers(self):
        """Whether it still does something."""
        try:
            return self.run("true", 5)[0] == 0
        except channel.Silent:
            return False

    def waited(self):
        """Seconds that its kernel, a process here, could run and got no processor; 0 where this machine does not count them."""
        try:
            return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[1]) / 1e9
        except (OSError, IndexError):
            return 0.0

    def memory(self, program, address, length):
        """Bytes in the memory of a program that `background` started."""
        return self.run(f"memory {program} {address} {length}")[1]


def versions():
    """What the guests are made of, by name."""
    lines = subprocess.run([SCRIPT, "versions"], check=True, stdout=subprocess.PIPE, text=True).stdout.split("\n")
    return dict(line.split() for line in lines if line)


def wait_for(what, seconds):
    """Tries until it is true."""
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def listens(port):
    """Whether a program of this namespace listens on a TCP port."""
    wanted = f"{port:04X}"
    for name in ("tcp", "tcp6"):
        # The thread's own view: a process that changed its namespace still sees the first one elsewhere.
        for line in Path(f"/proc/thread-self/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[1].endswith(":" + wanted) and fields[3] == "0A":
                return True
    return False


def programs():
    """Where our programs are."""
    named = os.environ.get("RH_BIN")
    return Path(named) if named else HERE.parent.parent / "target" / "release"
