//! Dialogues with a QP whose attributes change while it lives.

use crate::access::Access;
use crate::counters::Counter;
use crate::qp::{ModifyError, QpAttr, QpAttrMask, QpState, QpType};
use crate::testkit::{PEER, PEER_QPN, Packet, QPN, Rig, attributes};
use crate::wr::{Remote, SendFlags, SendOp, SendWr, WrData};
use wire::Operation::{Acknowledge, CompareSwap, FetchAdd, ReadRequest};
use wire::Position::Only;
use wire::{Aeth, AtomicEth, Gid, Msn, RKey, Reth, Syndrome};

fn modify(rig: &mut Rig, attr: QpAttr, mask: QpAttrMask) -> Result<QpState, ModifyError> {
    rig.engine.modify_qp(rig.now, QPN, &attr, mask)
}

fn send(rig: &mut Rig, wr_id: u64) {
    let data = WrData::Inline(Default::default());
    rig.post_send(SendWr { wr_id, op: SendOp::Send, data, flags: SendFlags::SIGNALED });
}

fn ack(rig: &mut Rig, psn: u32) {
    let packet = rig.packet(Acknowledge, Only, psn, &[]);
    rig.deliver(&packet.with(Aeth { syndrome: Syndrome::ACK, msn: Msn::new(0) }));
}

/// Six atomics on two slots; then the slots become more, or less. Duplicates of what is kept are answered.
#[test]
fn the_slots_keep_the_newest_when_their_number_changes() {
    for (before, now, answered) in [(2, 8, 2), (8, 2, 2), (8, 8, 6), (8, 1, 1), (8, 0, 0)] {
        let attr = QpAttr { max_dest_rd_atomic: before, ..attributes() };
        let mut rig = Rig::with(QpType::Rc, QpState::Rts, attr);
        let cells = rig.region(64, Access::LOCAL_WRITE | Access::REMOTE_ATOMIC);
        let atomics: Vec<Packet> = (0..6)
            .map(|i| {
                let header = AtomicEth { va: cells.addr, rkey: cells.rkey(), swap_or_add: 1, compare: 0 };
                rig.packet(FetchAdd, Only, 0x100 + i, &[]).with(header)
            })
            .collect();
        let first: Vec<_> = atomics.iter().flat_map(|packet| rig.answer(packet)).collect();
        assert_eq!(first.len(), 6);
        rig.modify(QpState::Sqd);
        let attr = QpAttr { max_dest_rd_atomic: now, ..attributes() };
        modify(&mut rig, attr, QpAttrMask::MAX_DEST_RD_ATOMIC).unwrap();
        let again: Vec<_> = atomics.iter().flat_map(|packet| rig.answer(packet)).collect();
        let originals = |packets: &[Packet]| packets.iter().map(Packet::original).collect::<Vec<_>>();
        assert_eq!(originals(&again), originals(&first[6 - answered..]), "{before} slots, then {now}");
        // A new one has its place, if there is any.
        let header = AtomicEth { va: cells.addr, rkey: cells.rkey(), swap_or_add: 1, compare: 0 };
        let next = rig.packet(CompareSwap, Only, 0x106, &[]).with(header);
        assert_eq!(rig.answer(&next)[0].original().is_some(), now > 0);
    }
}

#[test]
fn answers_under_way_survive_a_change_of_slots() {
    let mut rig = Rig::new(QpType::Rc);
    let source = rig.region(1024, Access::REMOTE_READ);
    let reth = Reth { va: source.addr, rkey: source.rkey(), dma_len: 1024 };
    let request = rig.packet(ReadRequest, Only, 0x100, &[]).with(reth);
    rig.deliver(&request);
    assert_eq!(rig.sent_into(1).len(), 1);
    rig.modify(QpState::Sqd);
    modify(&mut rig, QpAttr { max_dest_rd_atomic: 16, ..attributes() }, QpAttrMask::MAX_DEST_RD_ATOMIC)
        .unwrap();
    let rest: Vec<u32> = rig.sent().iter().map(|packet| packet.bth.psn.value()).collect();
    assert_eq!(rest, [0x101, 0x102, 0x103]);
}

/// rocev2 facts: attributes change, and the queue goes on, only when all that was started is acknowledged.
#[test]
fn nothing_but_reset_and_error_interrupts_a_drain() {
    let mut rig = Rig::new(QpType::Rc);
    send(&mut rig, 1);
    assert_eq!(rig.sent().len(), 1);
    rig.modify(QpState::Sqd);
    let rts = QpAttr { state: QpState::Rts, ..attributes() };
    assert_eq!(modify(&mut rig, rts.clone(), QpAttrMask::STATE), Err(ModifyError::Draining));
    let attr = QpAttr { timeout: 3, ..attributes() };
    assert_eq!(modify(&mut rig, attr.clone(), QpAttrMask::TIMEOUT), Err(ModifyError::Draining));
    ack(&mut rig, 0x100);
    assert_eq!(modify(&mut rig, attr, QpAttrMask::TIMEOUT), Ok(QpState::Sqd));
    assert_eq!(modify(&mut rig, rts, QpAttrMask::STATE), Ok(QpState::Rts));

    for to in [QpState::Reset, QpState::Err] {
        let mut rig = Rig::new(QpType::Rc);
        send(&mut rig, 1);
        rig.sent();
        rig.modify(QpState::Sqd);
        assert_eq!(modify(&mut rig, QpAttr { state: to, ..attributes() }, QpAttrMask::STATE), Ok(to));
    }
}

#[test]
fn a_new_path_is_used_from_the_next_packet_on() {
    let mut rig = Rig::new(QpType::Rc);
    rig.modify(QpState::Sqd);
    let elsewhere = Gid::from_v4([192, 0, 2, 99]);
    let mut path = attributes().path.unwrap();
    path.src = elsewhere;
    modify(&mut rig, QpAttr { path: Some(path), ..attributes() }, QpAttrMask::AV).unwrap();
    // Packets to the old address are not ours any more.
    let qp = rig.engine.qp(QPN).unwrap();
    assert_eq!(qp.path.as_ref().map(|path| (path.local, path.remote)), Some((elsewhere, PEER)));
}

#[test]
fn the_source_port_follows_from_both_qpns_unless_given() {
    for (given, flow_label) in [(0, 0), (0, 0x12345), (0xC0DE, 0)] {
        let mut path = attributes().path.unwrap();
        (path.udp_sport, path.flow_label) = (given, flow_label);
        let rig = Rig::with(QpType::Rc, QpState::Rts, QpAttr { path: Some(path), ..attributes() });
        let mut head = [0; 128];
        let template = rig.engine.qp(QPN).unwrap().path.as_ref().unwrap().template;
        template.emit(&mut head, 0, 16);
        let sport = u16::from_be_bytes([head[34], head[35]]);
        let expected = if given == 0 { wire::udp_sport(flow_label, QPN, PEER_QPN) } else { given };
        assert_eq!(sport, expected);
    }
}

/// A QP that was reset in the middle of everything lives again like a new one.
#[test]
fn reset_in_flight_leaves_nothing_behind() {
    let mut rig = Rig::new(QpType::Rc);
    let region = rig.region(2048, Access::LOCAL_WRITE | Access::REMOTE_READ);
    let remote = Remote { addr: 0x7000, rkey: RKey::new(7) };
    for wr_id in 0..4 {
        let data = WrData::Sges([region.sge(0, 600)].into_iter().collect());
        let op = if wr_id == 1 { SendOp::Read(remote) } else { SendOp::Write(remote) };
        rig.post_send(SendWr { wr_id, op, data, flags: SendFlags::SIGNALED });
    }
    let reth = Reth { va: region.addr, rkey: region.rkey(), dma_len: 2048 };
    let request = rig.packet(ReadRequest, Only, 0x100, &[]).with(reth);
    rig.deliver(&request);
    // Eight responses, and some of the requests.
    assert_eq!(rig.sent_into(10).len(), 10);
    rig.modify(QpState::Reset);
    assert_eq!(rig.sent().len(), 0);
    assert_eq!((rig.send_cqes(), rig.recv_cqes()), (vec![], vec![]));
    assert_eq!(rig.shared.sq().outstanding(), 0);
    rig.advance(10_000_000_000);
    assert_eq!(rig.sent().len(), 0);
    assert_eq!(rig.count(Counter::LocalAckTimeoutErr), 0, "no timer of its old life");

    for to in [QpState::Init, QpState::Rtr, QpState::Rts] {
        rig.modify(to);
    }
    for wr_id in 0..64 {
        send(&mut rig, wr_id);
    }
    assert_eq!(rig.sent()[0].bth.psn.value(), 0x100);
    ack(&mut rig, 0x13F);
    assert_eq!(rig.send_cqes().len(), 64, "the whole depth is there");
}
