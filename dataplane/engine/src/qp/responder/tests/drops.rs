//! Every reason to discard a packet, provoked: the packet is counted under that name and leaves nothing
//! behind.

use super::help::*;
use wire::{Feth, HeaderTemplate};

const NOWHERE: Reth = Reth { va: 0, rkey: RKey::new(0), dma_len: 0 };

/// A QP and a packet that it drops for this reason.
fn provoke(reason: DropReason) -> (Rig, Packet) {
    let rig = Rig::new(QpType::Rc);
    let write = rig.packet(Write, Only, FIRST, &[]).with(NOWHERE);
    let response = |rig: &Rig, syndrome| {
        rig.packet(Acknowledge, Only, FIRST, &[]).with(Aeth { syndrome, msn: Msn::new(0) })
    };
    let with_qp = |qp_type, make: fn(&mut Rig) -> Packet| {
        let mut rig = Rig::new(qp_type);
        let packet = make(&mut rig);
        (rig, packet)
    };
    match reason {
        DropReason::UnknownQp => {
            let mut packet = write;
            packet.bth.dest_qpn = Qpn::new(0x999);
            (rig, packet)
        }
        DropReason::WrongService => {
            with_qp(QpType::Uc, |_| Rig::new(QpType::Rc).packet(Send, Only, FIRST, &[]))
        }
        DropReason::WrongState => (Rig::with(QpType::Rc, QpState::Init, attributes()), write),
        DropReason::WrongAddress => with_qp(QpType::Rc, |rig| {
            rig.from_peer = HeaderTemplate::new(&addressing(LOCAL, LOCAL)).unwrap();
            rig.packet(Write, Only, FIRST, &[]).with(NOWHERE)
        }),
        DropReason::PKey => {
            let mut packet = write;
            packet.bth.pkey = PKey(0x1234);
            (rig, packet)
        }
        DropReason::QKey => with_qp(QpType::Ud, |rig| {
            rig.packet(Send, Only, 0, &[]).with(Deth { qkey: QKey::new(0), src_qpn: PEER_QPN })
        }),
        DropReason::GhostResponse => {
            let packet = response(&rig, Syndrome::ACK);
            (rig, packet)
        }
        DropReason::StaleResponse => {
            let aeth = Aeth { syndrome: Syndrome::ACK, msn: Msn::new(0) };
            let packet = rig.packet(ReadResponse, Only, FIRST - 1, &[]).with(aeth);
            (rig, packet)
        }
        DropReason::ReservedSyndrome => {
            // Something is in flight, so that the response is looked at.
            let mut rig = rig;
            rig.post_send(crate::SendWr {
                wr_id: 1,
                op: crate::SendOp::Send,
                data: crate::WrData::Inline(Default::default()),
                flags: crate::SendFlags::empty(),
            });
            rig.sent();
            let packet = response(&rig, Syndrome::Reserved(0x40));
            (rig, packet)
        }
        DropReason::AheadOfSequence => {
            let packet = rig.packet(Write, Only, FIRST + 1, &[]).with(NOWHERE);
            (rig, packet)
        }
        DropReason::UnknownDuplicate => {
            let packet = rig.packet(ReadRequest, Only, FIRST - 1, &[]).with(NOWHERE);
            (rig, packet)
        }
        DropReason::UcBroken => with_qp(QpType::Uc, |rig| rig.packet(Send, Last, FIRST, &[1])),
        DropReason::NoReceive => with_qp(QpType::Uc, |rig| rig.packet(Send, Only, FIRST, &[1])),
        DropReason::ReceiveUnusable => with_qp(QpType::Uc, |rig| {
            rig.post_recv(1, &[]);
            rig.packet(Send, Only, FIRST, &[1])
        }),
        DropReason::InvalidRequest => with_qp(QpType::Uc, |rig| {
            rig.post_recv(1, &[]);
            rig.packet(Send, First, FIRST, &[])
        }),
        DropReason::UcAccess => with_qp(QpType::Uc, |rig| {
            rig.packet(Write, Only, FIRST, &[1]).with(Reth { dma_len: 1, ..NOWHERE })
        }),
        DropReason::Refused => {
            let feth = Feth { plt: 1, sel: 0 };
            let packet = rig.packet(Flush, Only, FIRST, &[]).with(feth).with(NOWHERE);
            (rig, packet)
        }
        DropReason::ReceiverNotReady => {
            let packet = rig.packet(Send, Only, FIRST, &[]);
            (rig, packet)
        }
        DropReason::Spoilt => with_qp(QpType::Rc, |rig| {
            let target = rig.region(64, ALL);
            rig.packet(Write, Only, FIRST, &[1]).with(reth(&target, 0, 1))
        }),
        DropReason::Cnp => {
            let bth = Bth::cnp(QPN);
            (
                rig,
                Packet { bth, ext: wire::ExtHeaders::EMPTY, payload: wire::CNP_BODY.to_vec(), again: false },
            )
        }
    }
}

#[test]
fn every_reason_to_drop_a_packet_is_counted_by_its_name() {
    for &reason in DropReason::ALL {
        let (mut rig, packet) = provoke(reason);
        let before = rig.memory.snapshot();
        match reason {
            DropReason::Spoilt => rig.deliver_held(&packet, true),
            _ => rig.deliver(&packet),
        }
        for &other in DropReason::ALL {
            assert_eq!(rig.dropped(other), u64::from(other == reason), "{reason:?}: {other:?}");
        }
        assert_eq!(rig.memory.snapshot(), before);
        assert_eq!(rig.recv_cqes(), []);
        assert_eq!(rig.send_cqes(), []);
    }
}
