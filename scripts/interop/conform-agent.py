#!/usr/bin/env python3
"""A device agent for `rockhopper conform` on any verbs device: carries out calls, one line of JSON each, by pyverbs.

    conform-agent.py DEVICE [PORT]      waits for one client after the other; see docs/conformance.md

What pyverbs, or the device behind it, cannot do is not among its offers, or answered as unsupported; rules that need it are
skipped: XRC (rdma_rxe has none), fast registration (verbs of the kernel), posting FLUSH and ATOMIC WRITE (not in pyverbs 44), the
key byte of a window of type 2 (pyverbs takes the next one), zero-based windows.
"""
import ipaddress
import json
import socket
import sys

import pyverbs.enums as e
from pyverbs.addr import AH, GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR, MW, MWBind, MWBindInfo
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

RIGHTS = {
    "local_write": e.IBV_ACCESS_LOCAL_WRITE, "remote_write": e.IBV_ACCESS_REMOTE_WRITE,
    "remote_read": e.IBV_ACCESS_REMOTE_READ, "remote_atomic": e.IBV_ACCESS_REMOTE_ATOMIC,
    "mw_bind": e.IBV_ACCESS_MW_BIND,
}
TYPES = {"rc": e.IBV_QPT_RC, "uc": e.IBV_QPT_UC, "ud": e.IBV_QPT_UD}
STATES = ["reset", "init", "rtr", "rts", "sqd", "sqe", "error"]
STATUSES = {
    0: "success", 1: "loc_len_err", 2: "loc_qp_op_err", 4: "loc_prot_err", 5: "wr_flush_err", 6: "mw_bind_err",
    7: "bad_resp_err", 8: "loc_access_err", 9: "rem_inv_req_err", 10: "rem_access_err", 11: "rem_op_err",
    12: "retry_exc_err", 13: "rnr_retry_exc_err", 16: "rem_abort_err", 19: "fatal_err", 21: "general_err",
}
OPS = {
    "send": e.IBV_WR_SEND, "send_imm": e.IBV_WR_SEND_WITH_IMM, "send_inv": e.IBV_WR_SEND_WITH_INV,
    "write": e.IBV_WR_RDMA_WRITE, "write_imm": e.IBV_WR_RDMA_WRITE_WITH_IMM, "read": e.IBV_WR_RDMA_READ,
    "cmp_swap": e.IBV_WR_ATOMIC_CMP_AND_SWP, "fetch_add": e.IBV_WR_ATOMIC_FETCH_AND_ADD,
    "local_invalidate": e.IBV_WR_LOCAL_INV,
}
# Attributes of each move, after ibv_modify_qp.
STATE, PORT = e.IBV_QP_STATE, e.IBV_QP_PKEY_INDEX | e.IBV_QP_PORT
CONNECTED = e.IBV_QP_AV | e.IBV_QP_PATH_MTU | e.IBV_QP_DEST_QPN | e.IBV_QP_RQ_PSN
MASKS = {
    ("init", "ud"): PORT | e.IBV_QP_QKEY, ("init", "uc"): PORT | e.IBV_QP_ACCESS_FLAGS,
    ("init", "rc"): PORT | e.IBV_QP_ACCESS_FLAGS,
    ("rtr", "ud"): 0, ("rtr", "uc"): CONNECTED,
    ("rtr", "rc"): CONNECTED | e.IBV_QP_MAX_DEST_RD_ATOMIC | e.IBV_QP_MIN_RNR_TIMER,
    ("rts", "ud"): e.IBV_QP_SQ_PSN, ("rts", "uc"): e.IBV_QP_SQ_PSN,
    ("rts", "rc"): e.IBV_QP_SQ_PSN | e.IBV_QP_TIMEOUT | e.IBV_QP_RETRY_CNT | e.IBV_QP_RNR_RETRY
    | e.IBV_QP_MAX_QP_RD_ATOMIC,
}


class Unsupported(Exception):
    """The device, or pyverbs, has no such thing."""


def as_gid(address):
    """An IP address as pyverbs writes GIDs."""
    ip = ipaddress.ip_address(address)
    return str((ipaddress.IPv6Address(f"::ffff:{ip}") if ip.version == 4 else ip).exploded)


def rights(names):
    """Access flags by their names."""
    unknown = [name for name in names if name not in RIGHTS]
    if unknown:
        raise Unsupported(unknown[0])
    return sum(RIGHTS[name] for name in names)


class Agent:
    """One device and what a rule made on it."""

    def __init__(self, device):
        self.name, self.context = device, Context(name=device)
        self.gids = {}
        for index in range(16):
            gid = ipaddress.IPv6Address(self.context.query_gid(1, index).gid)
            if int(gid):
                self.gids[str(gid.ipv4_mapped or gid)] = index
        self.pds, self.regions, self.windows, self.srqs, self.qps = {}, {}, {}, {}, {}
        # Of windows of type 2 that were bound.
        self.keys = {}

    def call(self, call, /, **arguments):
        return getattr(self, "do_" + call)(**arguments)

    def do_hello(self):
        mtu = 128 << self.context.query_port(1).active_mtu
        offers = ["rc", "uc", "ud", "ipv6", "deregister", "srq", "srq_limit", "window_1", "window_2"]
        return {"device": {"name": f"{self.name} by pyverbs", "addresses": list(self.gids), "mtu": mtu, "offers": offers}}

    def do_reset(self):
        # Windows before their regions, and before their queue pairs: rdma_rxe waits long for what a bound window holds.
        pairs = {(name, at): thing for name, pair in self.qps.items() for at, thing in enumerate(pair[:3])}
        for things in (self.windows, pairs, self.srqs, self.regions, self.pds):
            for thing in things.values():
                thing.close()
            things.clear()
        self.qps, self.keys = {}, {}
        return "done"

    def pd(self, number):
        if number not in self.pds:
            self.pds[number] = PD(self.context)
        return self.pds[number]

    def do_region(self, name, len, access, pd, fast):
        if fast:
            raise Unsupported("fast")
        region = self.regions[name] = MR(self.pd(pd), len, rights(access))
        region.write(bytes(len), len)
        return {"region": {"addr": region.buf, "rkey": region.rkey}}

    def do_srq(self, name, depth, pd, domain):
        if domain is not None:
            raise Unsupported("xrc")
        self.srqs[name] = SRQ(self.pd(pd), SrqInitAttr(SrqAttr(max_wr=depth, max_sge=4)))
        return {"srq": {"srqn": 0}}

    def do_receive_shared(self, srq, id, pieces):
        sges = self.sges(pieces)
        self.srqs[srq].post_recv(RecvWR(wr_id=id, num_sge=len(sges), sg=sges))
        return "done"

    def do_arm(self, srq, limit):
        self.srqs[srq].modify(SrqAttr(srq_limit=limit), e.IBV_SRQ_LIMIT)
        return "done"

    def do_limit(self, srq):
        return {"limit": self.srqs[srq].query().srq_limit}

    def do_window(self, name, kind, pd):
        window = self.windows[name] = MW(self.pd(pd), e.IBV_MW_TYPE_1 if kind == 1 else e.IBV_MW_TYPE_2)
        return {"window": {"addr": 0, "rkey": window.rkey}}

    def bind(self, qp, work):
        window, piece = self.windows[work["window"]], (work["pieces"] or [None])[0]
        # Also a bind to nothing names a region.
        region = self.regions[piece["region"]] if piece else next(iter(self.regions.values()))
        at, size = (region.buf + piece["offset"], piece["len"]) if piece else (0, 0)
        info = MWBindInfo(region, at, size, rights(work["access"]) if piece else 0)
        if window.type == e.IBV_MW_TYPE_1:
            qp.bind_mw(window, MWBind(info, e.IBV_SEND_SIGNALED, work["id"]))
        else:
            wr = SendWR(wr_id=work["id"], opcode=e.IBV_WR_BIND_MW, num_sge=1, sg=[SGE(0, 0, 0)],
                        send_flags=e.IBV_SEND_SIGNALED)
            # A request without pieces cannot be made, and one with pieces binds nothing.
            wr.num_sge = 0
            wr.set_bind_wr(window, info)
            qp.post_send(wr)
            # So set_bind_wr chooses it; the window does not tell.
            self.keys[window] = window.rkey & ~0xFF | window.rkey + 1 & 0xFF
        return {"window": {"addr": at, "rkey": self.keys.get(window, window.rkey)}}

    def do_qp(self, name, service, pd, srq, domain):
        if service not in TYPES:
            raise Unsupported(service)
        send_cq, recv_cq = CQ(self.context, 512), CQ(self.context, 512)
        cap = QPCap(max_send_wr=128, max_recv_wr=128, max_send_sge=4, max_recv_sge=4)
        attr = QPInitAttr(qp_type=TYPES[service], scq=send_cq, rcq=recv_cq, cap=cap, sq_sig_all=0,
                          srq=self.srqs[srq] if srq else None)
        qp = QP(self.pd(pd), attr)
        self.qps[name] = (qp, send_cq, recv_cq, service, pd)
        return {"qp": {"qpn": qp.qp_num}}

    def address(self, peer):
        mine = [i for a, i in self.gids.items() if ("." in a) == ("." in peer) and not a.startswith("fe80")]
        route = GlobalRoute(dgid=GID(as_gid(peer)), sgid_index=mine[0], hop_limit=64)
        return AHAttr(port_num=1, is_global=1, gr=route)

    def do_modify(self, qp, state, attributes):
        pair, _, _, service, _ = self.qps[qp]
        up = STATES[1:4]
        now = pair.query(STATE)[0].qp_state
        steps = up[: up.index(state) + 1] if state in up and now == 0 else [state]
        for step in steps:
            attr = QPAttr(qp_state=STATES.index(step), port_num=1)
            attr.pkey_index, attr.qkey = 0, attributes["qkey"]
            attr.path_mtu = (attributes["mtu"] // 128).bit_length() - 1
            attr.dest_qp_num, attr.rq_psn, attr.sq_psn = (attributes[k] for k in ("peer_qpn", "peer_psn", "device_psn"))
            attr.qp_access_flags = rights(attributes["access"])
            attr.max_dest_rd_atomic, attr.max_rd_atomic = attributes["slots"], attributes["reads"]
            attr.min_rnr_timer, attr.timeout = attributes["rnr_timer"], attributes["timeout"]
            attr.retry_cnt, attr.rnr_retry = attributes["retry"], attributes["rnr_retry"]
            attr.ah_attr = self.address(attributes["peer_ip"])
            pair.modify(attr, STATE | MASKS.get((step, service), 0) if len(steps) > 1 or step in up else STATE)
        return "done"

    def sges(self, pieces):
        regions = [(self.regions[p["region"]], p) for p in pieces]
        # pyverbs wants a piece in every request: one of no bytes does no harm.
        return [SGE(0, 0, 0)] if not pieces else [SGE(region.buf + p["offset"], p["len"], region.lkey) for region, p in regions]

    def do_receive(self, qp, id, pieces):
        sges = self.sges(pieces)
        self.qps[qp][0].post_recv(RecvWR(wr_id=id, num_sge=len(sges), sg=sges))
        return "done"

    def do_post(self, qp, work):
        pair, _, _, service, pd = self.qps[qp]
        if work["op"] == "bind":
            return self.bind(pair, work)
        if work["op"] not in OPS or work["region"]:
            raise Unsupported(work["op"])
        flags = 0 if work["unsignaled"] else e.IBV_SEND_SIGNALED
        flags |= (e.IBV_SEND_FENCE if work["fence"] else 0) | (e.IBV_SEND_SOLICITED if work["solicited"] else 0)
        sges = self.sges(work["pieces"])
        # The key to invalidate shares its place with the immediate, which is in network order.
        extra = work["key"] if work["op"] == "send_inv" else socket.htonl(work["imm"])
        if work["op"] == "local_invalidate":
            window = self.windows.get(work["window"])
            extra = self.keys.get(window, window.rkey) if window else work["key"]
        wr = SendWR(wr_id=work["id"], opcode=OPS[work["op"]], num_sge=len(sges), sg=sges, send_flags=flags,
                    imm_data=extra)
        if service == "ud":
            wr.set_wr_ud(AH(self.pd(pd), attr=self.address(work["remote_ip"])), work["remote_qpn"], work["qkey"])
        elif work["op"] == "fetch_add":
            wr.set_wr_atomic(work["key"], work["at"], work["swap"], 0)
        elif work["op"] == "cmp_swap":
            wr.set_wr_atomic(work["key"], work["at"], work["compare"], work["swap"])
        elif work["op"] != "local_invalidate" and not work["op"].startswith("send"):
            wr.set_wr_rdma(work["key"], work["at"])
        pair.post_send(wr)
        return "done"

    def do_poll(self, qp, side):
        found = self.qps[qp][1 if side == "send" else 2].poll(64)[1]
        return {"completions": [self.completion(wc) for wc in found]}

    @staticmethod
    def completion(wc):
        imm = socket.ntohl(wc.imm_data) if wc.wc_flags & e.IBV_WC_WITH_IMM else None
        key = wc.imm_data if wc.wc_flags & e.IBV_WC_WITH_INV else None
        return {"id": wc.wr_id, "status": STATUSES.get(wc.status, "general_err"), "len": wc.byte_len, "imm": imm,
                "invalidated": key, "src_qp": wc.src_qp}

    def do_read(self, region, offset, len):
        return {"bytes": self.regions[region].read(len, offset).hex()}

    def do_write(self, region, offset, bytes):
        data = bytearray.fromhex(bytes)
        self.regions[region].write(memoryview(data).tobytes(), len(data), offset)
        return "done"

    def do_deregister(self, region):
        self.regions[region].close()
        del self.regions[region]
        return "done"

    def do_state(self, qp):
        return {"state": STATES[self.qps[qp][0].query(STATE)[0].qp_state]}


def answer(agent, line):
    """The answer to one line."""
    call = json.loads(line)
    try:
        return {"Ok": agent.call(call.pop("call"), **call)}
    except (Unsupported, AttributeError) as why:
        return {"Err": {"unsupported": str(why)}}
    except (PyverbsError, KeyError, ValueError, TypeError) as why:
        return {"Err": {"refused": f"{type(why).__name__}: {why}"}}


def main():
    agent = Agent(sys.argv[1])
    listener = socket.create_server(("0.0.0.0", int(sys.argv[2]) if len(sys.argv) > 2 else 18610))
    while True:
        client = listener.accept()[0]
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with client, client.makefile("rwb") as stream:
            for line in stream:
                stream.write(json.dumps(answer(agent, line)).encode() + b"\n")
                stream.flush()
        agent.do_reset()


if __name__ == "__main__":
    main()
