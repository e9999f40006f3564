//! One request packet: what it looks like, and what its leaving changes (rocev2 facts, transport sections 5, 7, 8 and 20).

use super::flight::offset;
use super::outstanding::{Cursor, Requester};
use super::{Qp, QpType, retry};
use crate::Nanos;
use crate::counters::Counter;
use crate::limits::ACK_REQ_EVERY;
use crate::packet::{Gather, PacketSink, SinkError, TxPacket};
use crate::placement::to_feth;
use crate::queue::Wqe;
use crate::wr::{Remote, SendOp};
use wire::{
    AtomicEth, Bth, Deth, ExtHeaders, Ieth, ImmDt, Mtu, Opcode, Operation, Position, Psn, Reth, XrcEth,
};

/// What left.
pub(super) struct Emitted {
    pub bytes: usize,
    pub ack_req: bool,
    pub again: bool,
}

/// Offers the packet under the cursor. The QP does not change.
pub(super) fn emit(qp: &Qp, sink: &mut impl PacketSink) -> Result<Emitted, SinkError> {
    let Cursor { seq, packet } = qp.req.cursor;
    let wqe = qp.req.flight.get(seq);
    let mtu = if qp.qp_type == QpType::Ud { qp.port_mtu } else { qp.attr.path_mtu };
    let position = position(wqe, packet);
    let psn = wqe.first_psn.add(packet);
    let own;
    let (template, dest_qpn) = match (&wqe.op, &qp.path) {
        (SendOp::UdSend { ah, remote_qpn, .. }, _) => {
            own = ah.headers_of(qp.qpn);
            (own.as_ref().unwrap_or(&ah.template), *remote_qpn)
        }
        (_, Some(path)) => (&path.template, qp.attr.dest_qpn),
        // A connected QP in RTS has a path, and what it has no opcode for was refused: these two never happen, and would
        // end the request.
        (_, None) => return Err(SinkError::RegionGone),
    };
    let opcode =
        Opcode::of(qp.qp_type.service(), operation(&wqe.op), position).ok_or(SinkError::RegionGone)?;
    let payload = payload(wqe, packet, mtu);
    let bth = Bth {
        solicited: wqe.flags.contains(crate::SendFlags::SOLICITED) && position.ends() && rouses(&wqe.op),
        ack_req: qp.qp_type.is_reliable() && (position.ends() || AckReqs::of(&qp.req, psn).asks()),
        pad_count: Bth::pad_for(payload.len()),
        ..Bth::new(opcode, dest_qpn, psn)
    };
    let again = offset(psn, qp.req.una) < offset(qp.req.sent_end, qp.req.una);
    let mut tx = TxPacket { template, bth: bth.to_bytes(), ext: ExtHeaders::EMPTY, payload, again };
    add_headers(&mut tx.ext, qp, wqe, packet, position, mtu);
    sink.emit(&tx)?;
    Ok(Emitted { bytes: payload.len(), ack_req: bth.ack_req, again })
}

/// Notes that the packet under the cursor left, and moves on.
pub(super) fn sent(qp: &mut Qp, now: Nanos, packet_sent: &Emitted) {
    let Cursor { seq, packet } = qp.req.cursor;
    if qp.req.deadline.is_none() {
        qp.req.deadline = retry::ack_deadline(qp, now);
    }
    let req = &mut qp.req;
    let wqe = req.flight.get_mut(seq);
    let returns_data = wqe.op.returns_data();
    let last = returns_data || packet + 1 == wqe.packets;
    let end = if last { wqe.first_psn.add(wqe.packets) } else { wqe.first_psn.add(packet + 1) };
    if !wqe.started {
        wqe.started = true;
        req.rd_atomic += u32::from(wqe.op.awaits_response());
    }
    wqe.read_from = packet;
    if offset(end, req.una) > offset(req.sent_end, req.una) {
        req.sent_end = end;
    }
    req.cursor = match last {
        true => Cursor { seq: seq.wrapping_add(1), packet: 0 },
        false => Cursor { seq, packet: packet + 1 },
    };
    req.since_ack_req = if packet_sent.ack_req { 0 } else { req.since_ack_req + 1 };
    qp.counters.count(Counter::TxPackets);
    qp.counters.add(Counter::TxPayloadBytes, packet_sent.bytes as u64);
    if packet_sent.again {
        qp.counters.count(Counter::Retransmitted);
    }
}

/// A READ or atomic request is one packet, wherever in the message it begins.
fn position(wqe: &Wqe, packet: u32) -> Position {
    match wqe.op.returns_data() {
        true => Position::Only,
        false => Position::of(packet == 0, packet + 1 == wqe.packets),
    }
}

pub(super) fn operation(op: &SendOp) -> Operation {
    match op {
        SendOp::SendImm(_) | SendOp::UdSend { imm: Some(_), .. } => Operation::SendImm,
        SendOp::SendInv(_) => Operation::SendInv,
        SendOp::Write(_) => Operation::Write,
        SendOp::WriteImm(..) => Operation::WriteImm,
        SendOp::Read(_) => Operation::ReadRequest,
        SendOp::CompareSwap { .. } => Operation::CompareSwap,
        SendOp::FetchAdd { .. } => Operation::FetchAdd,
        SendOp::AtomicWrite(_) => Operation::AtomicWrite,
        SendOp::Flush { .. } => Operation::Flush,
        // The last three never become packets.
        SendOp::Send | SendOp::UdSend { .. } | SendOp::LocalInv(_) | SendOp::RegMr(_) | SendOp::BindMw(_) => {
            Operation::Send
        }
    }
}

/// rocev2 facts, wire 5: SE is set on the end of a SEND, and of a WRITE with Immediate.
pub(super) fn rouses(op: &SendOp) -> bool {
    !op.awaits_response() && !matches!(op, SendOp::Write(_))
}

/// Which packets of a message ask for an acknowledgement before its last one, which always does: every so many, and the last that the
/// window lets out: without that a long message would stop there for good.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckReqs {
    /// Packets since the last one that asked.
    pub since: u32,
    every: u32,
    /// PSNs that the window lets out.
    pub room: u32,
}

impl AckReqs {
    /// From the packet with this PSN on.
    #[inline]
    pub fn of(req: &Requester, psn: Psn) -> AckReqs {
        let window = req.window.size();
        let room = window.saturating_sub(offset(psn, req.una));
        AckReqs { since: req.since_ack_req, every: ACK_REQ_EVERY.min(window / 2), room }
    }

    /// Whether the packet asks.
    #[inline]
    pub fn asks(&self) -> bool {
        self.since + 1 >= self.every || self.room <= 1
    }

    /// Whether the packet asks; it leaves, and the next one is looked at.
    #[inline]
    pub fn next(&mut self) -> bool {
        let asks = self.asks();
        self.since = if asks { 0 } else { self.since + 1 };
        self.room = self.room.saturating_sub(1);
        asks
    }
}

/// RETH in the first packet, immediate or key in the last.
#[inline]
fn add_headers(ext: &mut ExtHeaders, qp: &Qp, wqe: &Wqe, packet: u32, position: Position, mtu: Mtu) {
    if qp.qp_type == QpType::XrcIni {
        // rocev2 facts, wire 7: XRC requests carry it first, all of them.
        ext.push(XrcEth { srqn: wqe.srqn.value() });
    }
    let reth = |remote: &Remote, skip: u32| reth(wqe, remote, skip);
    match &wqe.op {
        SendOp::Write(remote) | SendOp::WriteImm(remote, _) if position.begins() => ext.push(reth(remote, 0)),
        // rocev2 facts, transport 9: a READ may start again in the middle, with address and length moved on.
        SendOp::Read(remote) => ext.push(reth(remote, packet * mtu.bytes())),
        SendOp::CompareSwap { remote, compare, swap } => {
            let (va, rkey) = (remote.addr, remote.rkey);
            ext.push(AtomicEth { va, rkey, swap_or_add: *swap, compare: *compare });
        }
        SendOp::FetchAdd { remote, add } => {
            let (va, rkey) = (remote.addr, remote.rkey);
            ext.push(AtomicEth { va, rkey, swap_or_add: *add, compare: 0 });
        }
        SendOp::AtomicWrite(remote) => ext.push(reth(remote, 0)),
        SendOp::Flush { remote, len, placement, level } => {
            let (va, rkey) = (remote.addr, remote.rkey);
            ext.push(to_feth(*placement, *level));
            ext.push(Reth { va, rkey, dma_len: *len });
        }
        SendOp::UdSend { qkey, .. } => {
            // rocev2 facts, transport 20 (IBTA 10.2.5): a key with the top bit stands for the QP's own.
            let qkey = if qkey.is_privileged() { qp.attr.qkey } else { *qkey };
            ext.push(Deth { qkey, src_qpn: qp.qpn });
        }
        _ => {}
    }
    match &wqe.op {
        SendOp::SendImm(imm) | SendOp::WriteImm(_, imm) | SendOp::UdSend { imm: Some(imm), .. }
            if position.ends() =>
        {
            ext.push(ImmDt(*imm))
        }
        SendOp::SendInv(rkey) if position.ends() => ext.push(Ieth { rkey: *rkey }),
        _ => {}
    }
}

/// For what of a message is behind its first `skip` bytes.
#[inline]
pub(super) fn reth(wqe: &Wqe, remote: &Remote, skip: u32) -> Reth {
    Reth { va: remote.addr.wrapping_add(u64::from(skip)), rkey: remote.rkey, dma_len: wqe.len() - skip }
}

fn payload(wqe: &Wqe, packet: u32, mtu: Mtu) -> Gather<'_> {
    if wqe.op.returns_data() || wqe.len() == 0 {
        return Gather::EMPTY;
    }
    // Below 2^31: the packet is one of the message's.
    let offset = packet * mtu.bytes();
    let len = mtu.bytes().min(wqe.len() - offset);
    if wqe.is_inline() {
        return Gather::Bytes(&wqe.inline()[offset as usize..(offset + len) as usize]);
    }
    Gather::Spans { spans: wqe.spans(), offset, len }
}
