//! QPs of one port that are connected to each other, or to themselves: their packets turn round in the worker.

mod common;

use common::qp::{TestQp, poll_all, sges};
use common::raw::{UD_SEND_ONLY, roce, way};
use common::{Driven, Endpoint, Shape, Side, drive, settle, sides};
use engine::wr::AddressHandle;
use engine::{PdId, QpType, SendOp, WcStatus};
use std::sync::Arc;
use wire::{Bth, Deth, ExtHeaders, HeaderTemplate, Mtu, Psn, QKey, Qpn};
use worker::Drop;

const A: Qpn = Qpn::new(0x11);
const B: Qpn = Qpn::new(0x22);
const QKEY: QKey = QKey::new(0x1111_1111);

/// An endpoint of two workers, and the peer on its wire, which is to hear nothing.
fn rig(name: &str) -> (Side, Driven) {
    let shape = Shape { queues: 2, buffers: 2047, ..Shape::default() };
    let (peer, side) = sides(name, &shape);
    (peer, Endpoint::new(side, &shape).driven())
}

fn connected(driven: &Driven, qp_type: QpType, homes: [usize; 2]) -> (TestQp, TestQp) {
    let end = &driven.end;
    let own = way(end.at, end.at);
    let (a, b) = (end.create_qp(homes[0], A, qp_type), end.create_qp(homes[1], B, qp_type));
    end.connect_by(&own, &a, B, Mtu::Mtu1024);
    end.connect_by(&own, &b, A, Mtu::Mtu1024);
    (a, b)
}

#[track_caller]
fn nothing_left_the_port(peer: &mut Side, driven: &Driven) {
    assert!(peer.receive(0).is_empty() && peer.receive(1).is_empty());
    let traffic = [driven.end.counters(0).traffic, driven.end.counters(1).traffic];
    assert!(
        traffic.iter().all(|traffic| (traffic.tx_frames, traffic.rx_frames, traffic.rx_bytes) == (0, 0, 0))
    );
    assert!(traffic.iter().map(|traffic| traffic.looped).sum::<u64>() > 0);
}

#[test]
fn connected_qps_of_any_two_workers_talk() {
    let data: Vec<u8> = (0..400_000u32).map(|at| ((at * 7) >> 3) as u8).collect();
    for (n, homes) in [[0, 0], [0, 1], [1, 0], [1, 1]].into_iter().enumerate() {
        for qp_type in [QpType::Rc, QpType::Uc] {
            let (mut peer, driven) = rig(&format!("own{n}{qp_type:?}"));
            let (a, b) = connected(&driven, qp_type, homes);
            let (from, to) = (driven.end.register(0x10, data.len()), driven.end.register(0x20, data.len()));
            from.buffer.write(0, &data).unwrap();
            // More packets than the ring of looped ones holds, so it fills; UC loses nothing by that.
            let len = if qp_type == QpType::Rc { data.len() } else { 300_000 };
            b.post_recv(5, to.sge(0, len as u32));
            driven.end.post(&a, 1, SendOp::SendImm([1, 2, 3, 4]), sges(&[from.sge(0, len as u32)]));
            drive(&[&driven], || !b.receives.is_empty() && !a.sends.is_empty());
            let (sent, received) = (poll_all(&a.sends), poll_all(&b.receives));
            assert_eq!((sent[0].wr_id, sent[0].status), (1, WcStatus::Success), "{}", driven.end.account());
            assert_eq!((received[0].wr_id, received[0].byte_len), (5, len as u32));
            assert_eq!(to.bytes(0, len), data[..len]);
            nothing_left_the_port(&mut peer, &driven);
            assert_eq!((driven.end.link.home(A), driven.end.link.home(B)), (Some(homes[0]), Some(homes[1])));
            let counters = driven.end.query(homes[0], A).counters;
            assert_eq!(counters.get(engine::Counter::Retransmitted), 0, "in order, and nothing lost");
        }
    }
}

#[test]
fn a_qp_that_is_connected_to_itself_answers_itself() {
    let (mut peer, driven) = rig("self");
    let qp = driven.end.create_qp(0, A, QpType::Rc);
    driven.end.connect_by(&way(driven.end.at, driven.end.at), &qp, A, Mtu::Mtu256);
    let mr = driven.end.register(0x10, 8192);
    mr.buffer.write(0, &[7; 3000]).unwrap();
    driven.end.post(&qp, 1, SendOp::Write(mr.remote(4000)), sges(&[mr.sge(0, 3000)]));
    driven.end.post(&qp, 2, SendOp::FetchAdd { remote: mr.remote(0), add: 1 }, sges(&[mr.sge(8000, 8)]));
    driven.end.post(&qp, 3, SendOp::Read(mr.remote(4000)), sges(&[mr.sge(1000, 2000)]));
    drive(&[&driven], || qp.sends.len() == 3);
    assert!(poll_all(&qp.sends).iter().all(|cqe| cqe.status == WcStatus::Success));
    assert_eq!((mr.bytes(4000, 3000), mr.bytes(8000, 8)), (vec![7; 3000], vec![7; 8]));
    nothing_left_the_port(&mut peer, &driven);
}

#[test]
fn datagrams_to_our_own_gid_arrive() {
    for homes in [[0, 0], [0, 1]] {
        let (mut peer, driven) = rig(&format!("ud{}", homes[1]));
        let (a, b) =
            (driven.end.create_qp(homes[0], A, QpType::Ud), driven.end.create_qp(homes[1], B, QpType::Ud));
        driven.end.activate_ud(&a, QKEY);
        driven.end.activate_ud(&b, QKEY);
        let mr = driven.end.register(0x10, 4096);
        mr.buffer.write(0, b"to ourselves").unwrap();
        b.post_recv(5, mr.sge(100, 200));
        let own = way(driven.end.at, driven.end.at);
        let template = HeaderTemplate::new(&own).unwrap();
        let ah = Arc::new(AddressHandle::new(PdId(1), own.dst, template));
        let op = SendOp::UdSend { ah, remote_qpn: B, qkey: QKEY, imm: None };
        driven.end.post(&a, 1, op, sges(&[mr.sge(0, 12)]));
        drive(&[&driven], || !b.receives.is_empty());
        assert_eq!((poll_all(&b.receives)[0].src_qp, mr.bytes(140, 12)), (A, b"to ourselves".to_vec()));
        nothing_left_the_port(&mut peer, &driven);
    }
}

/// Nobody on the wire has our address: who says so is not let in, whichever QP it knows.
#[test]
fn a_frame_from_the_wire_with_our_own_source_is_dropped() {
    let (mut peer, driven) = rig("forged");
    let qp = driven.end.create_qp(0, A, QpType::Ud);
    driven.end.activate_ud(&qp, QKEY);
    let mr = driven.end.register(0x10, 4096);
    qp.post_recv(1, mr.sge(0, 200));
    let deth = Deth { qkey: QKEY, src_qpn: B };
    let datagram =
        |way| roce(&way, &Bth::new(UD_SEND_ONLY, A, Psn::new(1)), &ExtHeaders::EMPTY.with(deth), b"x");
    let mut forged = way(peer.peer, peer.peer);
    forged.smac = peer.at.mac;
    peer.send(0, &[datagram(forged)]);
    settle(&[&driven]);
    assert_eq!(driven.end.counters(0).dropped(Drop::OwnSource), 1);
    assert!(qp.receives.is_empty());
    peer.send(0, &[datagram(way(peer.at, peer.peer))]);
    settle(&[&driven]);
    assert_eq!(qp.receives.len(), 1);
}

/// Nor is it let in behind a packet of our own that was like it.
#[test]
fn our_own_packets_open_the_way_to_none_from_the_wire() {
    let (mut peer, driven) = rig("like");
    let qp = driven.end.create_qp(0, A, QpType::Ud);
    driven.end.activate_ud(&qp, QKEY);
    let mr = driven.end.register(0x10, 4096);
    qp.post_recv(1, mr.sge(100, 100));
    qp.post_recv(2, mr.sge(200, 100));
    let own = way(driven.end.at, driven.end.at);
    let ah = Arc::new(AddressHandle::new(PdId(1), own.dst, HeaderTemplate::new(&own).unwrap()));
    let op = SendOp::UdSend { ah, remote_qpn: A, qkey: QKEY, imm: None };
    driven.end.post(&qp, 1, op, sges(&[mr.sge(0, 12)]));
    drive(&[&driven], || qp.receives.len() == 1);
    let deth = Deth { qkey: QKEY, src_qpn: A };
    let forged = roce(&own, &Bth::new(UD_SEND_ONLY, A, Psn::new(1)), &ExtHeaders::EMPTY.with(deth), b"x");
    peer.send(0, &[forged]);
    settle(&[&driven]);
    assert_eq!(driven.end.counters(0).dropped(Drop::OwnSource), 1);
    assert_eq!(qp.receives.len(), 1);
}

/// A long message does not take the pool's buffers: what is not turned round yet waits in the send queue.
#[test]
fn the_ring_of_looped_packets_is_bounded() {
    let (_peer, driven) = rig("bounded");
    let (a, _b) = connected(&driven, QpType::Uc, [0, 0]);
    let mr = driven.end.register(0x10, 1 << 20);
    driven.end.post(&a, 1, SendOp::Write(mr.remote(0)), sges(&[mr.sge(0, 1 << 20)]));
    let mut before = 0;
    while before < 1024 {
        driven.workers[0].poll_once();
        let looped = driven.end.counters(0).traffic.looped;
        assert!(looped - before <= 128 * 2, "the call for the counters polled too");
        before = looped;
    }
}
