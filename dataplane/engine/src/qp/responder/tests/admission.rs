//! Admission (rocev2 facts, wire section 15): who is looked at, and what nobody ever hears of.

use super::help::*;
use wire::{Gid, HeaderTemplate, Opcode, RoceVersion, Service};

/// An empty WRITE, which needs nothing but to be admitted.
fn write(rig: &Rig) -> Packet {
    let nowhere = Reth { va: 0, rkey: RKey::new(0), dma_len: 0 };
    rig.packet(Write, Only, FIRST, &[]).with(nowhere).ack_req()
}

#[test]
fn a_packet_of_the_peer_is_admitted_and_counted() {
    let mut rig = Rig::new(QpType::Rc);
    let target = rig.region(64, ALL);
    let packet = rig.packet(Write, Only, FIRST, &bytes(10)).with(reth(&target, 0, 10)).ack_req();
    assert_eq!(rig.answer(&packet).len(), 1);
    assert_eq!((rig.count(Counter::RxPackets), rig.count(Counter::RxPayloadBytes)), (1, 10));
    assert_eq!(rig.count(Counter::TxPackets), 1);
}

#[test]
fn packets_of_other_services_are_dropped() {
    for qp_type in [QpType::Rc, QpType::Uc, QpType::Ud] {
        let mut rig = Rig::new(qp_type);
        let mut dropped = 0;
        for service in [Service::Rc, Service::Uc, Service::Rd, Service::Ud, Service::Xrc] {
            let Some(opcode) = Opcode::of(service, Send, Only).filter(|_| service != qp_type.service())
            else {
                continue;
            };
            let mut packet = write(&Rig::new(QpType::Rc));
            packet.bth.opcode = opcode;
            rig.deliver(&packet);
            dropped += 1;
            assert_eq!(rig.dropped(DropReason::WrongService), dropped, "{service:?} on {qp_type:?}");
        }
        assert_eq!(dropped, 4);
        assert_untouched(&mut rig, QpState::Rts);
    }
}

#[test]
fn a_congestion_notification_is_counted_and_ignored() {
    for qp_type in [QpType::Rc, QpType::Uc, QpType::Ud] {
        let mut rig = Rig::new(qp_type);
        let packet = Packet {
            bth: Bth::cnp(QPN),
            ext: wire::ExtHeaders::EMPTY,
            payload: wire::CNP_BODY.to_vec(),
            again: false,
        };
        rig.deliver(&packet);
        assert_eq!(rig.dropped(DropReason::Cnp), 1);
        assert_eq!(rig.count(Counter::RxPackets), 0);
        assert_untouched(&mut rig, QpState::Rts);
    }
}

/// rocev2 facts, transport 13: requests from RTR on, responses from RTS on, nothing in ERROR.
#[test]
fn the_state_says_what_is_taken() {
    let cases = [
        (QpState::Reset, false, false),
        (QpState::Init, false, false),
        (QpState::Rtr, true, false),
        (QpState::Rts, true, true),
        (QpState::Sqd, true, true),
        (QpState::Err, false, false),
    ];
    for (state, requests, responses) in cases {
        let mut rig = Rig::with(QpType::Rc, state, attributes());
        rig.deliver(&write(&rig));
        assert_eq!(rig.dropped(DropReason::WrongState) == 0, requests, "{state:?}");
        let mut rig = Rig::with(QpType::Rc, state, attributes());
        let ack = Aeth { syndrome: Syndrome::ACK, msn: Msn::new(0) };
        rig.deliver(&rig.packet(Acknowledge, Only, FIRST, &[]).with(ack));
        assert_eq!(rig.dropped(DropReason::WrongState) == 0, responses, "{state:?}");
    }
}

/// A connected QP hears its peer only, at its own address, in the version and the VLAN of its path.
#[test]
fn packets_of_strangers_are_dropped() {
    let stranger = Gid::from_v4([192, 0, 2, 99]);
    let v6 = |last| Gid([0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    let tagged = |vid| wire::Addressing { vlan: Some(wire::Vlan::new(3, vid)), ..addressing(PEER, LOCAL) };
    let v1 = wire::Addressing { version: RoceVersion::V1, ..addressing(PEER, LOCAL) };
    let ways = [
        addressing(stranger, LOCAL),
        addressing(PEER, stranger),
        addressing(LOCAL, PEER),
        addressing(v6(1), v6(2)),
        v1,
        tagged(7),
    ];
    for way in ways {
        for qp_type in [QpType::Rc, QpType::Uc] {
            let mut rig = Rig::new(qp_type);
            rig.from_peer = HeaderTemplate::new(&way).unwrap();
            rig.deliver(&write(&rig));
            assert_eq!(rig.dropped(DropReason::WrongAddress), 1, "{way:?}");
            assert_untouched(&mut rig, QpState::Rts);
        }
    }
    // Any source port is welcome, and a tag that carries a priority only.
    let port = wire::Addressing { udp_sport: 0, ..addressing(PEER, LOCAL) };
    for way in [port, tagged(0)] {
        let mut rig = Rig::new(QpType::Rc);
        rig.from_peer = HeaderTemplate::new(&way).unwrap();
        assert_eq!(rig.answer(&write(&rig)).len(), 1);
    }
}

/// rocev2 facts, wire 5: a limited member of our partition is heard, another partition is not.
#[test]
fn the_partition_must_match() {
    for (pkey, taken) in [(0xFFFF, true), (0x7FFF, true), (0xFFFE, false), (0x8000, false), (0, false)] {
        let mut rig = Rig::new(QpType::Rc);
        let mut packet = write(&rig);
        packet.bth.pkey = PKey(pkey);
        rig.deliver(&packet);
        assert_eq!(rig.dropped(DropReason::PKey) == 0, taken, "{pkey:#x}");
    }
}

#[test]
fn a_datagram_needs_the_queue_key() {
    for (qkey, taken) in [(0x1234, true), (0x1235, false), (0x8001_0000, false)] {
        let mut rig = Rig::new(QpType::Ud);
        let buffer = rig.region(64, ALL);
        rig.post_recv(1, &[buffer.sge(0, 64)]);
        let deth = Deth { qkey: QKey::new(qkey), src_qpn: PEER_QPN };
        rig.deliver(&rig.packet(Send, Only, 0, &[]).with(deth));
        assert_eq!(rig.dropped(DropReason::QKey), u64::from(!taken), "{qkey:#x}");
        assert_eq!(rig.recv_cqes().len(), usize::from(taken));
    }
}

/// Its key is fixed, whatever the attributes say.
#[test]
fn qp_1_has_the_well_known_queue_key() {
    for (qkey, taken) in [(QKey::GSI, true), (QKey::new(0x1234), false)] {
        let mut rig = Rig::numbered(Qpn::GSI, QpType::Ud, QpState::Rts, attributes());
        let buffer = rig.region(64, ALL);
        rig.post_recv(1, &[buffer.sge(0, 64)]);
        rig.deliver(&rig.packet(Send, Only, 0, &[]).with(Deth { qkey, src_qpn: PEER_QPN }));
        assert_eq!(rig.recv_cqes().len(), usize::from(taken), "{qkey:?}");
    }
}

/// rocev2 facts, transport 6: once, in RTR.
#[test]
fn the_first_valid_packet_in_rtr_establishes_the_connection() {
    let mut rig = Rig::with(QpType::Rc, QpState::Rtr, attributes());
    let mut stranger = write(&rig);
    stranger.bth.pkey = PKey(1);
    rig.deliver(&stranger);
    assert_eq!(rig.raised(), []);
    rig.deliver(&write(&rig));
    rig.deliver(&write(&rig));
    assert_eq!(rig.raised(), [AsyncEvent { kind: EventKind::CommEst, source: EventSource::Qp(QPN) }]);
    let mut rig = Rig::new(QpType::Rc);
    rig.deliver(&write(&rig));
    assert_eq!(rig.raised(), [], "in RTS the program knows");
}

/// rocev2 facts, CM 11: a passive QP is in RTS before its peer knows, and the peer's first data establishes. Once.
#[test]
fn an_awaited_first_packet_establishes_the_connection_in_rts() {
    let mut rig = Rig::new(QpType::Rc);
    rig.shared.await_first_packet();
    rig.deliver(&write(&rig));
    rig.deliver(&write(&rig));
    assert_eq!(rig.raised(), [AsyncEvent { kind: EventKind::CommEst, source: EventSource::Qp(QPN) }]);
}
