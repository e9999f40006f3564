//! Packets to a multicast group: a copy for every attached QP of every worker, from the wire and from ourselves.

mod common;

use common::qp::{TestMr, TestQp, poll_all, sges};
use common::raw::{SEND_ONLY, UD_SEND_ONLY, roce, way};
use common::{Driven, Endpoint, Shape, Side, done, drive, settle, sides};
use engine::wr::AddressHandle;
use engine::{DropReason, PdId, QpType, SendOp};
use std::sync::Arc;
use wire::{Addressing, Bth, Deth, ExtHeaders, Frame, Gid, HeaderTemplate, Mac, Opcode, Psn, QKey, Qpn};
use worker::{Command, Drop, LinkConfig};

const GROUP: Gid = Gid::from_v4([239, 77, 1, 1]);
const QKEY: QKey = QKey::new(0x0123_4567);
const STRANGER: Qpn = Qpn::new(0x99);

fn rig(name: &str, handoff: usize) -> (Side, Driven) {
    let link = LinkConfig { handoff, ..LinkConfig::default() };
    let shape = Shape { queues: 2, link, ..Shape::default() };
    let (peer, side) = sides(name, &shape);
    (peer, Endpoint::new(side, &shape).driven())
}

fn command(driven: &Driven, make: impl Fn() -> Command) {
    driven.end.handles.iter().for_each(|handle| done(handle.call(make())));
}

fn attach(driven: &Driven, qpn: Qpn) {
    command(driven, || Command::AttachMcast { lane: 0, vid: 0, group: GROUP, qpn });
}

/// The number of the n-th QP.
fn numbered(n: u32) -> Qpn {
    Qpn::new(0x100 + n)
}

/// The n-th QP, UD, on a worker, with a receive of 200 bytes at 200 n.
fn member(driven: &Driven, mr: &TestMr, home: usize, n: u32, qkey: QKey) -> TestQp {
    let qp = driven.end.create_qp(home, numbered(n), QpType::Ud);
    driven.end.activate_ud(&qp, qkey);
    qp.post_recv(u64::from(n), mr.sge(200 * n as usize, 200));
    qp
}

/// The way to the group.
fn to_group(peer: &Side) -> Addressing {
    let mac = GROUP.multicast_mac().unwrap();
    Addressing { dst: GROUP, dmac: mac, ..way(peer.at, peer.peer) }
}

fn datagram(way: &Addressing, opcode: Opcode, to: Qpn) -> Vec<u8> {
    let deth = Deth { qkey: QKEY, src_qpn: STRANGER };
    let ext = if opcode == UD_SEND_ONLY { ExtHeaders::EMPTY.with(deth) } else { ExtHeaders::EMPTY };
    roce(way, &Bth::new(opcode, to, Psn::new(1)), &ext, b"to all")
}

#[test]
fn a_packet_from_the_wire_reaches_every_member_once() {
    let (mut peer, driven) = rig("members", 64);
    let mr = driven.end.register(0x10, 4096);
    let members: Vec<TestQp> = (1..=5).map(|n| member(&driven, &mr, n as usize % 2, n, QKEY)).collect();
    let outsider = member(&driven, &mr, 0, 6, QKEY);
    let other_key = member(&driven, &mr, 1, 7, QKey::new(1));
    members.iter().chain([&other_key]).for_each(|qp| attach(&driven, qp.shared.qpn()));
    // Attached twice, it gets one copy all the same, though it has room for two.
    attach(&driven, members[0].shared.qpn());
    members[0].post_recv(9, mr.sge(2000, 200));
    let frame = datagram(&to_group(&peer), UD_SEND_ONLY, Qpn::MULTICAST);
    peer.send(1, &[frame]);
    settle(&[&driven]);
    for (n, qp) in members.iter().enumerate() {
        let cqes = poll_all(&qp.receives);
        assert_eq!(cqes.len(), 1, "member {n}: {}", driven.end.account());
        assert_eq!((cqes[0].byte_len, cqes[0].src_qp, cqes[0].has_grh), (46, STRANGER, true));
        assert_eq!(mr.bytes(200 * (n + 1) + 40, 6), b"to all");
    }
    assert!(outsider.receives.is_empty() && other_key.receives.is_empty());
    let counters = driven.end.query(1, numbered(7)).counters;
    assert_eq!(counters.dropped(DropReason::QKey), 1);
    assert_eq!(driven.end.counters(1).traffic.handed_over, 1, "one copy for a worker, not one for a QP");
}

#[test]
fn what_we_send_to_a_group_reaches_the_wire_and_our_own_members() {
    let (mut peer, driven) = rig("ours", 64);
    let mr = driven.end.register(0x10, 4096);
    let members: Vec<TestQp> = (1..=3).map(|n| member(&driven, &mr, n as usize % 2, n, QKEY)).collect();
    let own = Addressing { src: peer.peer.gid, smac: peer.peer.mac, udp_sport: 0, ..to_group(&peer) };
    let template = HeaderTemplate::new(&own).unwrap();
    let ah = Arc::new(AddressHandle::new(PdId(1), GROUP, template));
    mr.buffer.write(0, b"to all").unwrap();
    let send = |wr_id| {
        let op = SendOp::UdSend { ah: Arc::clone(&ah), remote_qpn: Qpn::MULTICAST, qkey: QKEY, imm: None };
        driven.end.post(&members[0], wr_id, op, sges(&[mr.sge(0, 6)]));
        drive(&[&driven], || !members[0].sends.is_empty());
        poll_all(&members[0].sends);
        settle(&[&driven]);
    };
    send(1);
    assert_eq!(peer.receive(1).len(), 1, "nobody here belongs to the group");
    assert_eq!(driven.end.counters(1).traffic.looped, 0);
    members.iter().for_each(|qp| attach(&driven, qp.shared.qpn()));
    send(2);
    let sent = peer.receive(1);
    assert_eq!(sent.len(), 1);
    // The handle leaves the source port to the QP; the iCRC, which covers it, is right.
    let frame = Frame::parse(&sent[0], sent[0].len()).unwrap();
    assert_eq!(frame.verify_icrc(&sent[0], [&sent[0][..]]), Ok(()));
    assert_eq!(frame.udp_sport, wire::udp_sport_of_qpn(numbered(1)));
    for qp in &members {
        assert_eq!(poll_all(&qp.receives).len(), 1, "the sender's own QP is a member as well");
    }
    // A switch that sends it back gives nobody a second copy.
    peer.send(0, &sent);
    settle(&[&driven]);
    assert_eq!(driven.end.counters(0).dropped(Drop::OwnSource), 1);
    let detach = |qpn| command(&driven, || Command::DetachMcast { lane: 0, vid: 0, group: GROUP, qpn });
    members.iter().for_each(|qp| detach(qp.shared.qpn()));
    send(3);
    assert_eq!((driven.end.counters(1).traffic.looped, peer.receive(1).len()), (1, 1), "none is left");
}

#[test]
fn what_is_wrong_with_a_packet_to_a_group_is_counted() {
    let (mut peer, driven) = rig("wrong", 64);
    let mr = driven.end.register(0x10, 4096);
    let qp = member(&driven, &mr, 0, 1, QKEY);
    let good = to_group(&peer);
    let count = |reason| driven.end.counters(0).dropped(reason);
    let mut send = |way: &Addressing, opcode, to| {
        peer.send(0, &[datagram(way, opcode, to)]);
        settle(&[&driven]);
    };
    send(&good, UD_SEND_ONLY, Qpn::MULTICAST);
    assert_eq!(count(Drop::GroupNotAttached), 1);
    attach(&driven, numbered(1));
    send(&good, UD_SEND_ONLY, numbered(1));
    assert_eq!(count(Drop::GroupQpn), 1);
    send(&Addressing { dmac: Mac([2, 0, 0, 0, 0, 9]), ..good }, UD_SEND_ONLY, Qpn::MULTICAST);
    assert_eq!(count(Drop::NotOurAddress), 1);
    let v1 = Addressing { version: wire::RoceVersion::V1, ..good };
    send(&v1, UD_SEND_ONLY, Qpn::MULTICAST);
    assert_eq!(count(Drop::NotOurAddress), 2, "there is no GID of that type");
    send(&Addressing { vlan: Some(wire::Vlan::new(0, 5)), ..good }, UD_SEND_ONLY, Qpn::MULTICAST);
    assert_eq!(count(Drop::OtherVlan), 1);
    send(&good, SEND_ONLY, Qpn::MULTICAST);
    assert_eq!(driven.end.query(0, numbered(1)).counters.dropped(DropReason::WrongService), 1);
    let unicast = way(driven.end.peer, driven.end.at);
    send(&unicast, UD_SEND_ONLY, Qpn::MULTICAST);
    assert_eq!(driven.end.counters(0).engine.dropped(DropReason::UnknownQp), 1);
    assert!(qp.receives.is_empty());
    attach(&driven, Qpn::new(0x777));
    send(&good, UD_SEND_ONLY, Qpn::MULTICAST);
    assert_eq!(driven.end.counters(0).engine.dropped(DropReason::UnknownQp), 2, "a member that is gone");
    assert_eq!(qp.receives.len(), 1);
}

#[test]
fn members_on_a_busy_worker_lose_packets_by_name() {
    let (mut peer, driven) = rig("busy", 2);
    let mr = driven.end.register(0x10, 4096);
    let _qp = member(&driven, &mr, 0, 1, QKEY);
    attach(&driven, numbered(1));
    let frame = datagram(&to_group(&peer), UD_SEND_ONLY, Qpn::MULTICAST);
    peer.send(1, &vec![frame.clone(); 5]);
    driven.workers[1].poll_once();
    assert_eq!(driven.end.counters(1).dropped(Drop::HandoffFull), 3);
    settle(&[&driven]);
    // The pool has nothing left for copies.
    let mut taken: Vec<_> = std::iter::from_fn(|| driven.end.pool.alloc()).collect();
    peer.send(1, &[frame]);
    driven.workers[1].poll_once();
    assert_eq!(driven.end.counters(1).dropped(Drop::GroupNoBuffer), 1, "{}", driven.end.account());
    taken.clear();
}
