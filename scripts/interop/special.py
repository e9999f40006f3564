"""Events in the midst of a transfer: the peer's rxe goes away, addresses go and come, on either side."""
import time

from rows import Row

# A transfer long enough for something to happen in it; it takes some seconds by itself.
LONG = Row("ib_write_bw", "RC", "client", 65536, 10000)
# And one to see that all is well afterwards.
AFTER = Row("ib_write_bw", "RC", "client", 4096, 100)
# The retries of our QP, 8 times 268 ms, and some for a busy machine.
PATIENCE = 10


def under_way(guest):
    """Waits until packets of the transfer arrive."""
    def packets():
        return int(guest.must("cat /sys/class/net/eth0/statistics/rx_packets"))
    begin = packets()
    while packets() < begin + 500:
        time.sleep(0.02)


def breaks(guest, run, start, happen, mend):
    """What happens breaks the connection at the peer, in silence: our QP must end with RETRY_EXC, soon, and once it is mended a new
    connection must work."""
    with start(LONG) as ours:
        under_way(guest)
        begin = time.monotonic()
        guest.must(happen)
        status, complaint = ours.end()
        seconds = time.monotonic() - begin
    guest.run("end peer; ended peer 5")
    guest.must(mend)
    if status != 1 or "RetryExcErr" not in complaint:
        return f"ended with {status}: {complaint}"
    if seconds > PATIENCE:
        return f"took {seconds:.1f} s to notice"
    run(AFTER)
    return ""


def rxe_restarts(guest, run, start):
    # A program that uses a device keeps it: it has to go first.
    gone = "kill -KILL $(cat /tmp/peer.pid); rdma link delete rxe0"
    return breaks(guest, run, start, gone, "rdma link add rxe0 type rxe netdev eth0")


def their_address_flaps(guest, run, start):
    # Linux takes the GID from its table with the address, and its QP stays mute when the address is back. While that QP is there, the
    # address gets a GID with another index; afterwards the first one is free again.
    gone = "ip address del 10.78.0.1/24 dev eth0; usleep 300000; ip address add 10.78.0.1/24 dev eth0"
    return breaks(guest, run, start, gone, "ip address del 10.78.0.1/24 dev eth0; ip address add 10.78.0.1/24 dev eth0")


def our_address_goes(guest, run, start):
    """Our QP must go to ERROR with its GID, at once, and a new connection work when the address is back."""
    with start(LONG, ["--flap", "700ms"]) as ours:
        status, complaint = ours.end()
    guest.run("end peer; ended peer 5")
    if status != 1 or "WrFlushErr" not in complaint:
        return f"ended with {status}: {complaint}"
    run(AFTER)
    return ""


EVENTS = (
    ("the guest's program is killed, its rxe deleted and made anew", "our QP ends with RETRY_EXC within 10 s; a new connection works", rxe_restarts),
    ("the guest's address is removed and added again", "Linux gives the connection up: our QP ends with RETRY_EXC within 10 s; a new connection works", their_address_flaps),
    ("our address is removed for 0.7 s", "our QP goes to ERROR with its GID: WR_FLUSH_ERR; a new connection works", our_address_goes),
)


def all_of(guest, run, start):
    """Every event, as rows of the table. `run` runs a row to its end, `start` begins one."""
    results = []
    for event, wanted, happen in EVENTS:
        begin = time.monotonic()
        try:
            why = happen(guest, run, start)
        except Exception as problem:  # whatever went wrong, the others are worth a try
            why = f"{type(problem).__name__}: {problem}"
            guest.run("end peer; ended peer 5; rdma link | grep -q rxe0 || rdma link add rxe0 type rxe netdev eth0")
        print(f"{'FAIL' if why else 'ok  '} {time.monotonic() - begin:5.1f}s  {event}: {why or wanted}", flush=True)
        results.append({"event": event, "wanted": wanted, "ok": not why, "why": why})
    return results
