//! Datagrams, connection management's among them: those that Linux sent, to our UD QP, and ours in their place.

use crate::capture::{self, Capture, Seen};
use crate::flows::End;
use crate::requester::Request;
use crate::side::{IN, OUT, Side, Spec, addressing, local};
use engine::wr::AddressHandle;
use engine::{Access, PdId, QpType, SendFlags, SendOp, SendWr, WcOpcode, WcStatus, WrData};
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::{Deth, Gid, HeaderTemplate, ImmDt, Mtu, Psn, Qpn, Service};

/// Datagrams of one QP: sent by it, or to it.
type ByQp<'a> = BTreeMap<(Gid, Qpn), Vec<&'a Seen>>;

/// The datagrams of a capture.
pub fn datagrams(capture: &Capture) -> impl Iterator<Item = &Seen> {
    capture.frames.iter().filter(|seen| seen.frame.info.service == Service::Ud)
}

/// Room of one receive: the area in front, and a management datagram or a packet.
const ROOM: u32 = 0x1000;
/// The area in front of the payload.
const AREA: u32 = wire::GRH_AREA_LEN as u32;

#[test]
fn our_ud_qp_receives_what_linux_sent() {
    let mut received = 0;
    for capture in capture::all() {
        let mut by_qp = ByQp::new();
        for seen in datagrams(&capture) {
            by_qp.entry((seen.frame.dst, seen.frame.bth().dest_qpn)).or_default().push(seen);
        }
        for sent_to_it in by_qp.values() {
            receive(&capture, sent_to_it);
            received += sent_to_it.len();
        }
    }
    assert_eq!(received, 171);
}

fn receive(capture: &Capture, datagrams: &[&Seen]) {
    let first = datagrams[0];
    // What is for a group goes to a member, which has a number of its own.
    let to = first.frame.bth().dest_qpn;
    let qpn = if to == Qpn::MULTICAST { Qpn::new(0x3F) } else { to };
    let own = End { gid: first.frame.dst, mac: first.frame.dmac, qpn };
    let mut side = Side::new(&spec(own, first));
    let inbox = side.register(IN, 0, vec![0; datagrams.len() * ROOM as usize], Access::LOCAL_WRITE);
    for (number, seen) in datagrams.iter().enumerate() {
        side.post_recv(number as u64, local(IN, number as u64 * u64::from(ROOM), ROOM));
        side.deliver(seen);
    }
    assert!(side.emitted().is_empty(), "a datagram is not answered");
    let (cqes, inbox) = (side.received(), side.memory.content(inbox));
    assert_eq!(cqes.len(), datagrams.len(), "{}", capture.name);
    for ((cqe, seen), bytes) in cqes.iter().zip(datagrams).zip(inbox.chunks(ROOM as usize)) {
        assert_eq!((cqe.status, cqe.opcode, cqe.has_grh), (WcStatus::Success, WcOpcode::Recv, true));
        assert_eq!(cqe.byte_len as usize, AREA as usize + seen.payload().len());
        assert_eq!(Some(cqe.src_qp), seen.ext::<Deth>().map(|deth| deth.src_qpn));
        assert_eq!(cqe.imm, seen.ext::<ImmDt>().map(|imm| imm.0));
        let (area, rest) = bytes.split_at(AREA as usize);
        assert!(rest.starts_with(seen.payload()));
        // IPv4: twenty zeros, then the header; IPv6: the header.
        let header = &seen.bytes[14..seen.frame.bth_offset() - 8];
        assert_eq!(&area[AREA as usize - header.len()..], header);
        assert!(area[..AREA as usize - header.len()].iter().all(|&byte| byte == 0));
    }
}

#[test]
fn our_ud_qp_sends_what_linux_sent() {
    let mut sent = 0;
    for capture in capture::all() {
        let mut by_qp = ByQp::new();
        for seen in datagrams(&capture) {
            let source = seen.ext::<Deth>().expect("a datagram has a DETH").src_qpn;
            by_qp.entry((seen.frame.src, source)).or_default().push(seen);
        }
        for ((_, source), sent_by_it) in &by_qp {
            send(&capture, *source, sent_by_it);
            sent += sent_by_it.len();
        }
    }
    assert_eq!(sent, 171);
}

fn send(capture: &Capture, source: Qpn, datagrams: &[&Seen]) {
    let first = datagrams[0];
    let own = End { gid: first.frame.src, mac: first.frame.smac, qpn: source };
    let mut side = Side::new(&spec(own, first));
    let content: Vec<u8> = datagrams.iter().flat_map(|seen| seen.payload()).copied().collect();
    side.register(OUT, 0, content, Access::empty());
    let mut offset = 0;
    for (number, seen) in datagrams.iter().enumerate() {
        side.post_send(work_request(number as u64, seen, &own, offset));
        offset += seen.payload().len() as u64;
    }
    let ours: Vec<Seen> = side.emitted();
    assert_eq!(ours.len(), datagrams.len(), "{}", capture.name);
    for (our, linux) in ours.iter().zip(datagrams) {
        assert_eq!(Request::new(our, QpType::Ud), Request::new(linux, QpType::Ud), "{}", capture.name);
        assert_eq!(our.ext::<Deth>(), linux.ext::<Deth>());
        assert_eq!((our.frame.dst, our.frame.dmac), (linux.frame.dst, linux.frame.dmac));
    }
    assert!(side.completed().iter().all(|cqe| cqe.status == WcStatus::Success));
}

fn work_request(wr_id: u64, seen: &Seen, own: &End, offset: u64) -> SendWr {
    let to = End { gid: seen.frame.dst, mac: seen.frame.dmac, qpn: seen.frame.bth().dest_qpn };
    let template = HeaderTemplate::new(&addressing(own, &to)).expect("one family");
    let op = SendOp::UdSend {
        ah: Arc::new(AddressHandle::new(PdId(1), to.gid, template)),
        remote_qpn: to.qpn,
        qkey: seen.ext::<Deth>().expect("a DETH").qkey,
        imm: seen.ext::<ImmDt>().map(|imm| imm.0),
    };
    let mut flags = SendFlags::SIGNALED;
    flags.set(SendFlags::SOLICITED, seen.frame.bth().solicited);
    let sge = local(OUT, offset, seen.payload().len() as u32);
    SendWr { wr_id, op, data: WrData::Sges([sge].into_iter().collect()), flags }
}

/// A UD QP with the Q_Key of the first datagram, which goes on with its PSN.
fn spec(own: End, first: &Seen) -> Spec {
    Spec {
        qp_type: QpType::Ud,
        own,
        peer: own,
        mtu: Mtu::Mtu1024,
        rq_psn: Psn::new(0),
        sq_psn: first.psn(),
        qkey: first.ext::<Deth>().expect("a DETH").qkey,
    }
}
