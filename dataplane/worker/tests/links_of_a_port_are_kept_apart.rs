//! VLANs of one port: a frame is for a GID only with the GID's tag, on the wire and between our own QPs; groups are per VLAN.
//! And what becomes of QPs when their GID goes, or their next hop moves.

mod common;

use common::qp::{TestQp, poll_all, sges};
use common::raw::{UD_SEND_ONLY, WRITE_ONLY, roce, way};
use common::{Driven, Endpoint, Shape, Side, done, drive, settle, sides};
use engine::event::EventSource;
use engine::wr::AddressHandle;
use engine::{DropReason, EventKind, PdId, QpState, QpType, SendOp, WcStatus};
use std::sync::Arc;
use wire::{
    Addressing, Bth, Deth, ExtHeaders, Frame, Gid, HeaderTemplate, Mac, Mtu, Psn, QKey, Qpn, Reth, Vlan,
};
use worker::{AddressSet, CallError, Command, Drop, Hop, LinkAddresses, Reply, Whom};

const A: Qpn = Qpn::new(0x11);
const B: Qpn = Qpn::new(0x22);
const QKEY: QKey = QKey::new(0x1111_1111);
const IN_5: Gid = Gid::from_v4([10, 0, 5, 1]);
const PEER_IN_5: Gid = Gid::from_v4([10, 0, 5, 2]);
const GROUP: Gid = Gid::from_v4([239, 77, 1, 1]);

/// Two workers; the port has its usual GID untagged, and `IN_5` as well as the usual one in VLAN 5.
fn rig(name: &str) -> (Side, Driven) {
    let shape = Shape { queues: 2, buffers: 2047, ..Shape::default() };
    let (peer, side) = sides(name, &shape);
    let driven = Endpoint::new(side, &shape).driven();
    publish(&driven, &[driven.end.at.gid], &[IN_5, driven.end.at.gid]);
    (peer, driven)
}

fn publish(driven: &Driven, untagged: &[Gid], in_5: &[Gid]) {
    let mut addresses = AddressSet::new(&[driven.end.at.mac], untagged).unwrap();
    let gids = in_5.iter().copied().collect();
    addresses.others.push(LinkAddresses { vlan: 5, gids, ..LinkAddresses::default() });
    for handle in &driven.end.handles {
        done(handle.call(Command::SetAddresses { lane: 0, addresses: Box::new(addresses.clone()) }));
    }
}

fn tagged(vid: u16, way: Addressing) -> Addressing {
    Addressing { vlan: Some(Vlan::new(3, vid)), ..way }
}

fn datagram(way: &Addressing) -> Vec<u8> {
    let deth = Deth { qkey: QKEY, src_qpn: B };
    roce(way, &Bth::new(UD_SEND_ONLY, A, Psn::new(1)), &ExtHeaders::EMPTY.with(deth), b"hello")
}

fn count(driven: &Driven, counted: impl Fn(&worker::LaneCounters) -> u64) -> u64 {
    (0..2).map(|worker| counted(&driven.end.counters(worker))).sum()
}

fn ask(driven: &Driven, worker: usize, command: Command) -> usize {
    match driven.end.handles[worker].call(command) {
        Ok(Reply::Count(count)) => count,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_frame_is_taken_only_with_the_tag_of_its_destination() {
    let (mut peer, driven) = rig("tags");
    let qp = driven.end.create_qp(0, A, QpType::Ud);
    driven.end.activate_ud(&qp, QKEY);
    let mr = driven.end.register(0x10, 8192);
    (0..20).for_each(|n| qp.post_recv(n, mr.sge(200 * n as usize, 200)));
    let untagged = way(peer.at, peer.peer);
    let to_5 = Addressing { src: PEER_IN_5, dst: IN_5, ..untagged };
    let nobody = Addressing { dst: Gid::from_v4([10, 0, 6, 6]), ..untagged };
    let cases = [
        (untagged, None, Ok(None)),
        (tagged(0, untagged), None, Ok(None)),
        (tagged(5, untagged), None, Ok(Some(5))),
        (tagged(5, to_5), None, Ok(Some(5))),
        // The NIC took the tag off.
        (to_5, Some(0x6005), Ok(Some(5))),
        (to_5, None, Err(Drop::OtherVlan)),
        (to_5, Some(0x6006), Err(Drop::OtherVlan)),
        // Its bytes are those of one that was taken.
        (untagged, Some(0x6006), Err(Drop::OtherVlan)),
        (untagged, Some(0x6005), Ok(Some(5))),
        (tagged(0, to_5), None, Err(Drop::OtherVlan)),
        (tagged(6, to_5), None, Err(Drop::OtherVlan)),
        (tagged(6, untagged), None, Err(Drop::OtherVlan)),
        (tagged(5, nobody), None, Err(Drop::NotOurAddress)),
        (tagged(6, nobody), None, Err(Drop::NotOurAddress)),
        (tagged(5, Addressing { dmac: Mac([2, 0, 0, 0, 0, 9]), ..to_5 }), None, Err(Drop::NotOurAddress)),
        // Whose source is ours on that link is forged; on another link it is somebody's.
        (tagged(5, Addressing { src: IN_5, ..to_5 }), None, Err(Drop::OwnSource)),
        (Addressing { src: IN_5, ..untagged }, None, Ok(None)),
    ];
    for (n, (way, stripped, fate)) in cases.into_iter().enumerate() {
        let before = fate.err().map(|reason| count(&driven, |counters| counters.dropped(reason)));
        peer.send_stripped(0, &datagram(&way), stripped);
        settle(&[&driven]);
        let came: Vec<_> = poll_all(&qp.receives).iter().map(|cqe| cqe.vlan).collect();
        match fate {
            Ok(vlan) => assert_eq!(came, [vlan], "case {n}: {}", driven.end.account()),
            Err(reason) => {
                assert!(came.is_empty(), "case {n}");
                assert_eq!(Some(count(&driven, |counters| counters.dropped(reason)) - 1), before, "case {n}");
            }
        }
    }
}

/// The same addresses, another VLAN, another peer: a connected QP hears only the one that it is connected to.
#[test]
fn a_connected_qp_hears_its_own_vlan() {
    let (mut peer, driven) = rig("connected");
    let qp = driven.end.create_qp(0, A, QpType::Rc);
    driven.end.connect_by(&tagged(5, way(driven.end.at, driven.end.peer)), &qp, B, Mtu::Mtu1024);
    let mr = driven.end.register(0x10, 64);
    let write = |way: &Addressing| {
        let remote = mr.remote(0);
        let reth = Reth { va: remote.addr, rkey: remote.rkey, dma_len: 5 };
        let bth = Bth { ack_req: true, ..Bth::new(WRITE_ONLY, A, Psn::new(common::qp::PSN)) };
        roce(way, &bth, &ExtHeaders::EMPTY.with(reth), b"hello")
    };
    let untagged = way(peer.at, peer.peer);
    peer.send(0, &[write(&untagged), write(&tagged(0, untagged))]);
    settle(&[&driven]);
    assert_eq!(driven.end.query(0, A).counters.dropped(DropReason::WrongAddress), 2);
    assert_eq!(mr.bytes(0, 5), [0; 5]);
    peer.send(0, &[write(&tagged(5, untagged))]);
    settle(&[&driven]);
    assert_eq!(mr.bytes(0, 5), b"hello");
    let answers = peer.receive(0);
    assert_eq!(answers.len(), 1);
    let answer = Frame::parse(&answers[0], answers[0].len()).unwrap();
    assert_eq!(answer.vlan.map(|tag| tag.vid), Some(5));
}

/// What turns round in the port is checked as what comes from the wire: nothing gets from one VLAN into another.
#[test]
fn our_own_packets_stay_in_their_vlan() {
    let (mut peer, driven) = rig("looped");
    let a = driven.end.create_qp(0, A, QpType::Ud);
    let b = driven.end.create_qp(1, B, QpType::Ud);
    driven.end.activate_ud(&a, QKEY);
    driven.end.activate_ud(&b, QKEY);
    let mr = driven.end.register(0x10, 4096);
    (0..4).for_each(|n| b.post_recv(n, mr.sge(200 * n as usize, 200)));
    let own = way(driven.end.at, driven.end.at);
    let send = |way: Addressing| {
        let template = HeaderTemplate::new(&way).unwrap();
        let ah = Arc::new(AddressHandle::new(PdId(1), way.dst, template));
        let op = SendOp::UdSend { ah, remote_qpn: B, qkey: QKEY, imm: None };
        driven.end.post(&a, 1, op, sges(&[mr.sge(0, 12)]));
        drive(&[&driven], || !a.sends.is_empty());
        poll_all(&a.sends);
        settle(&[&driven]);
        poll_all(&b.receives).iter().map(|cqe| cqe.vlan).collect::<Vec<_>>()
    };
    assert_eq!(send(tagged(5, Addressing { src: IN_5, dst: IN_5, ..own })), [Some(5)]);
    assert_eq!(send(tagged(5, own)), [Some(5)], "the address that both have");
    assert_eq!(send(own), [None]);
    assert!(send(Addressing { dst: IN_5, ..own }).is_empty());
    assert_eq!(count(&driven, |counters| counters.dropped(Drop::OtherVlan)), 1);
    assert!(peer.receive(0).is_empty() && peer.receive(1).is_empty(), "no port saw them");
}

#[test]
fn groups_of_two_vlans_are_two_groups() {
    let (mut peer, driven) = rig("groups");
    let members: Vec<TestQp> = [A, B].map(|qpn| driven.end.create_qp(0, qpn, QpType::Ud)).into();
    let mr = driven.end.register(0x10, 4096);
    for (n, qp) in members.iter().enumerate() {
        driven.end.activate_ud(qp, QKEY);
        (0..4).for_each(|m| qp.post_recv(m, mr.sge(1000 * n + 200 * m as usize, 200)));
    }
    for handle in &driven.end.handles {
        for (vid, qpn) in [(0, A), (5, B)] {
            done(handle.call(Command::AttachMcast { lane: 0, vid, group: GROUP, qpn }));
        }
    }
    let dmac = GROUP.multicast_mac().unwrap();
    let to_group = |from: Gid, way: Addressing| Addressing { src: from, dst: GROUP, dmac, ..way };
    let frame = |way: &Addressing| {
        let deth = Deth { qkey: QKEY, src_qpn: B };
        let bth = Bth::new(UD_SEND_ONLY, Qpn::MULTICAST, Psn::new(1));
        roce(way, &bth, &ExtHeaders::EMPTY.with(deth), b"all")
    };
    let from_peer = to_group(peer.at.gid, way(peer.at, peer.peer));
    let came = || members.iter().map(|qp| poll_all(&qp.receives).len()).collect::<Vec<_>>();
    peer.send(0, &[frame(&from_peer)]);
    settle(&[&driven]);
    assert_eq!(came(), [1, 0]);
    peer.send(0, &[frame(&tagged(5, from_peer))]);
    settle(&[&driven]);
    assert_eq!(came(), [0, 1]);
    peer.send(0, &[frame(&tagged(6, from_peer))]);
    settle(&[&driven]);
    assert_eq!((came(), count(&driven, |counters| counters.dropped(Drop::OtherVlan))), (vec![0, 0], 1));
    // Our own copies go to the members in the sender's VLAN.
    let own = tagged(5, to_group(IN_5, way(driven.end.at, driven.end.peer)));
    let template = HeaderTemplate::new(&own).unwrap();
    let ah = Arc::new(AddressHandle::new(PdId(1), GROUP, template));
    let op = SendOp::UdSend { ah, remote_qpn: Qpn::MULTICAST, qkey: QKEY, imm: None };
    driven.end.post(&members[0], 1, op, sges(&[mr.sge(0, 3)]));
    drive(&[&driven], || !members[0].sends.is_empty());
    settle(&[&driven]);
    assert_eq!(came(), [0, 1]);
    let sent = peer.receive(0);
    assert_eq!((sent.len(), &sent[0][12..16]), (1, &[0x81, 0, 0x60, 5][..]));
}

#[test]
fn qps_whose_gid_is_gone_end_and_others_go_on() {
    let (mut peer, driven) = rig("strays");
    let end = &driven.end;
    let to_5 = tagged(5, Addressing { src: IN_5, dst: PEER_IN_5, ..way(end.at, end.peer) });
    let gone: Vec<TestQp> =
        (0..5).map(|n| end.create_qp(n % 2, Qpn::new(0x100 + n as u32), QpType::Rc)).collect();
    gone.iter().for_each(|qp| end.connect_by(&to_5, qp, B, Mtu::Mtu1024));
    let stays = end.create_qp(0, A, QpType::Rc);
    end.connect_by(&way(end.at, end.peer), &stays, B, Mtu::Mtu1024);
    let mr = end.register(0x10, 4096);
    for qp in gone.iter().chain([&stays]) {
        qp.post_recv(7, mr.sge(0, 8));
        end.post(qp, 8, SendOp::Write(mr.remote(0)), sges(&[mr.sge(0, 8)]));
    }
    settle(&[&driven]);
    peer.receive(0);
    peer.receive(1);
    publish(&driven, &[end.at.gid], &[end.at.gid]);
    let frame = datagram(&tagged(5, Addressing { src: PEER_IN_5, dst: IN_5, ..way(peer.at, peer.peer) }));
    peer.send(0, &[frame]);
    settle(&[&driven]);
    assert_eq!(count(&driven, |counters| counters.dropped(Drop::NotOurAddress)), 1);
    // Some at a time.
    let strays = |worker, most| ask(&driven, worker, Command::BreakStrays { lane: 0, most });
    assert_eq!([strays(0, 2), strays(0, 2), strays(0, 2)], [2, 1, 0]);
    assert_eq!([strays(1, 2), strays(1, 2)], [2, 0]);
    for (n, qp) in gone.iter().enumerate() {
        assert_eq!(end.query(n % 2, qp.shared.qpn()).attr.state, QpState::Err);
        let (sent, received) = (poll_all(&qp.sends), poll_all(&qp.receives));
        assert_eq!((sent[0].wr_id, sent[0].status), (8, WcStatus::WrFlushErr));
        assert_eq!((received[0].wr_id, received[0].status), (7, WcStatus::WrFlushErr));
        // What is posted later is flushed, too.
        end.post(qp, 9, SendOp::Write(mr.remote(0)), sges(&[mr.sge(0, 8)]));
        drive(&[&driven], || !qp.sends.is_empty());
        assert_eq!(poll_all(&qp.sends)[0].status, WcStatus::WrFlushErr);
    }
    let events: Vec<_> =
        std::iter::from_fn(|| end.events.poll()).map(|event| (event.kind, event.source)).collect();
    let mut named: Vec<_> =
        gone.iter().map(|qp| (EventKind::QpFatal, EventSource::Qp(qp.shared.qpn()))).collect();
    assert_eq!(events.len(), 5, "{events:?}");
    named.retain(|event| !events.contains(event));
    assert!(named.is_empty(), "{events:?}");
    assert_eq!(end.query(0, A).attr.state, QpState::Rts);
    assert!(stays.sends.is_empty() && stays.receives.is_empty());
    // Nobody is connected from it any more.
    let late = end.create_qp(0, B, QpType::Rc);
    let refused = end.try_connect_by(&to_5, &late, B, Mtu::Mtu1024);
    assert_eq!(refused, Err(CallError::NotOurGid { gid: IN_5.ip(), vid: 5 }));
}

/// Nobody looks for a QP while it is on its way between workers: its new home does.
#[test]
fn a_qp_that_moves_while_its_gid_goes_ends_where_it_arrives() {
    let (_peer, driven) = rig("mover");
    let end = &driven.end;
    let to_5 = tagged(5, Addressing { src: IN_5, dst: PEER_IN_5, ..way(end.at, end.peer) });
    let qp = end.create_qp(0, A, QpType::Rc);
    end.connect_by(&to_5, &qp, B, Mtu::Mtu1024);
    publish(&driven, &[end.at.gid], &[]);
    done(end.handles[0].call(Command::MoveQp { lane: 0, qpn: A, to: 1 }));
    settle(&[&driven]);
    assert_eq!(end.link.home(A), Some(1));
    assert_eq!(end.query(1, A).attr.state, QpState::Err);
}

#[test]
fn connected_qps_follow_their_next_hop_to_another_mac() {
    let (mut peer, driven) = rig("moved");
    let end = &driven.end;
    let (old, own) = (end.peer.mac, end.at.mac);
    let new = Mac([2, 0, 0, 0, 0, 0x77]);
    let beyond = Gid::from_v4([203, 0, 113, 9]);
    let paths = [
        way(end.at, end.peer),
        Addressing { dst: beyond, ..way(end.at, end.peer) },
        tagged(5, way(end.at, end.peer)),
        way(end.at, end.at),
    ];
    let qps: Vec<TestQp> = (0..4).map(|n| end.create_qp(0, Qpn::new(0x100 + n), QpType::Rc)).collect();
    for (qp, path) in qps.iter().zip(&paths) {
        end.connect_by(path, qp, B, Mtu::Mtu1024);
    }
    let macs = || -> Vec<Mac> {
        let path = |qp: &TestQp| end.query(0, qp.shared.qpn()).attr.path.unwrap();
        qps.iter().map(|qp| path(qp).dmac).collect()
    };
    let redirect = |vid, hop: &Hop| {
        let whom = Box::new(Whom { vid, hop: hop.clone() });
        ask(&driven, 0, Command::Redirect { lane: 0, whom, from: old, to: new, most: 8 })
    };
    let host = Hop::Host(end.peer.gid);
    assert_eq!((redirect(0, &host), redirect(0, &host)), (1, 0), "once");
    assert_eq!(macs(), [new, old, old, own]);
    let gateway = |v4| Hop::Gateway { v4, except: vec![(end.peer.gid, 96 + 24)] };
    assert_eq!((redirect(0, &gateway(false)), redirect(0, &gateway(true))), (0, 1));
    assert_eq!(macs(), [new, new, old, own]);
    assert_eq!(redirect(5, &host), 1);
    assert_eq!(redirect(0, &Hop::Host(end.at.gid)), 0, "what we send to ourselves has no hop");
    assert_eq!(macs(), [new, new, new, own]);
    // The next packet goes there, and is right in every checksum.
    let mr = end.register(0x10, 64);
    end.post(&qps[0], 1, SendOp::Write(mr.remote(0)), sges(&[mr.sge(0, 8)]));
    settle(&[&driven]);
    let sent = peer.receive(0);
    let frame = Frame::parse(&sent[0], sent[0].len()).unwrap();
    assert_eq!((frame.dmac, frame.verify_icrc(&sent[0], [&sent[0][..]])), (new, Ok(())));
}
