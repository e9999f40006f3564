#!/usr/bin/env python3
"""A device agent for `rockhopper conform` on any verbs device: carries out calls, one line of JSON each, by pyverbs.

    conform-agent.py DEVICE [PORT]      waits for one client after the other; see docs/conformance.md

What pyverbs cannot do is answered as unsupported, and the rules that need it are skipped.
"""
import ipaddress
import json
import socket
import sys

import pyverbs.enums as e
from pyverbs.addr import AH, GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
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
        self.pds, self.regions, self.qps = {}, {}, {}

    def call(self, call, /, **arguments):
        return getattr(self, "do_" + call)(**arguments)

    def do_hello(self):
        mtu = 128 << self.context.query_port(1).active_mtu
        offers = ["rc", "uc", "ud", "ipv6", "deregister"]
        return {"device": {"name": f"{self.name} by pyverbs", "addresses": list(self.gids), "mtu": mtu, "offers": offers}}

    def do_reset(self):
        for qp, send_cq, recv_cq, *_ in self.qps.values():
            for thing in (qp, send_cq, recv_cq):
                thing.close()
        for thing in [*self.regions.values(), *self.pds.values()]:
            thing.close()
        self.pds, self.regions, self.qps = {}, {}, {}
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

    def do_qp(self, name, service, pd, srq):
        if srq or service not in TYPES:
            raise Unsupported(srq or service)
        send_cq, recv_cq = CQ(self.context, 512), CQ(self.context, 512)
        cap = QPCap(max_send_wr=128, max_recv_wr=128, max_send_sge=4, max_recv_sge=4)
        attr = QPInitAttr(qp_type=TYPES[service], scq=send_cq, rcq=recv_cq, cap=cap, sq_sig_all=0)
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
        if work["op"] not in OPS:
            raise Unsupported(work["op"])
        flags = 0 if work["unsignaled"] else e.IBV_SEND_SIGNALED
        flags |= (e.IBV_SEND_FENCE if work["fence"] else 0) | (e.IBV_SEND_SOLICITED if work["solicited"] else 0)
        sges = self.sges(work["pieces"])
        # The key to invalidate shares its place with the immediate, which is in network order.
        extra = work["key"] if work["op"] == "send_inv" else socket.htonl(work["imm"])
        wr = SendWR(wr_id=work["id"], opcode=OPS[work["op"]], num_sge=len(sges), sg=sges, send_flags=flags,
                    imm_data=extra)
        if service == "ud":
            wr.set_wr_ud(AH(self.pd(pd), attr=self.address(work["remote_ip"])), work["remote_qpn"], work["qkey"])
        elif work["op"] == "fetch_add":
            wr.set_wr_atomic(work["key"], work["at"], work["swap"], 0)
        elif work["op"] == "cmp_swap":
            wr.set_wr_atomic(work["key"], work["at"], work["compare"], work["swap"])
        elif not work["op"].startswith("send"):
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
        self.regions.pop(region).close()
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
