//! Every fault of the table, provoked on RC, and what follows from it.

use super::help::*;
use crate::fault::Answer;
use wire::{Feth, XrcEth};

/// A packet that has this fault and no earlier one; what it needs is posted and registered before.
fn provoke(rig: &mut Rig, fault: Fault) -> Packet {
    let target = rig.region(1024, ALL);
    let atomic = AtomicEth { va: target.addr, rkey: target.rkey(), swap_or_add: 1, compare: 0 };
    match fault {
        Fault::PsnAhead => rig.packet(Write, Only, FIRST + 1, &[]).with(reth(&target, 0, 0)),
        Fault::NoReceive => rig.packet(Send, Only, FIRST, &[]),
        Fault::OpcodeSequence => rig.packet(Send, Middle, FIRST, &bytes(MTU)),
        Fault::OpcodeUnsupported => {
            let nowhere = Feth { plt: 0, sel: 0 };
            rig.packet(Flush, Only, FIRST, &[]).with(nowhere).with(reth(&target, 0, 8))
        }
        Fault::OperationNotEnabled => {
            let qp_without_atomics = ALL - Access::REMOTE_ATOMIC;
            *rig = Rig::with(QpType::Rc, QpState::Rts, QpAttr { access: qp_without_atomics, ..attributes() });
            let target = rig.region(1024, ALL);
            let atomic = AtomicEth { va: target.addr, rkey: target.rkey(), ..atomic };
            rig.packet(FetchAdd, Only, FIRST, &[]).with(atomic)
        }
        Fault::PacketLength => rig.packet(Write, First, FIRST, &bytes(MTU + 4)).with(reth(&target, 0, 1024)),
        Fault::RethLength => rig.packet(Write, Only, FIRST, &bytes(4)).with(reth(&target, 0, 8)),
        Fault::RethTooLong => rig.packet(ReadRequest, Only, FIRST, &[]).with(reth(&target, 0, u32::MAX)),
        Fault::ReceiveTooShort => {
            rig.post_recv(1, &[target.sge(0, 3)]);
            rig.packet(Send, Only, FIRST, &bytes(4))
        }
        Fault::TooManyRdAtomic => {
            *rig = Rig::with(QpType::Rc, QpState::Rts, QpAttr { max_dest_rd_atomic: 0, ..attributes() });
            rig.packet(FetchAdd, Only, FIRST, &[]).with(atomic)
        }
        Fault::AtomicMisaligned => {
            rig.packet(FetchAdd, Only, FIRST, &[]).with(AtomicEth { va: target.addr + 4, ..atomic })
        }
        Fault::RemoteAccess => rig.packet(Write, Only, FIRST, &bytes(4)).with(reth(&target, 1021, 4)),
        Fault::ReceiveUnusable => {
            rig.post_recv(1, &[target.sge(0, 1025)]);
            rig.packet(Send, Only, FIRST, &[])
        }
        Fault::InvalidateRefused => {
            rig.post_recv(1, &[]);
            rig.packet(SendInv, Only, FIRST, &[]).with(Ieth { rkey: target.rkey() })
        }
        Fault::XrcSrq => {
            *rig = Rig::xrc_target(attributes()).0;
            rig.packet(Write, Only, FIRST, &[]).with(XrcEth { srqn: 0xBAD }).with(reth(&target, 0, 0))
        }
        Fault::Spoilt => rig.packet(Write, Only, FIRST, &bytes(1)).with(reth(&target, 0, 1)),
        Fault::FlushFailed => {
            let target = rig.region(1024, Access::FLUSH_PERSISTENT);
            rig.memory.make_durable(target.id);
            rig.memory.fail_storage(true);
            let persistent = Feth { plt: 2, sel: 0 };
            rig.packet(Flush, Only, FIRST, &[]).with(persistent).with(reth(&target, 0, 8))
        }
    }
}

#[test]
fn every_fault_is_answered_completed_and_counted_as_its_row_says() {
    for fault in Fault::ALL {
        let mut rig = Rig::new(QpType::Rc);
        let packet = provoke(&mut rig, fault);
        let row = fault.row(QpType::Rc);
        let (before, had_receive) = (rig.memory.snapshot(), !rig.shared.rq().is_empty());
        match fault {
            Fault::Spoilt => rig.deliver_held(&packet, true),
            _ => rig.deliver(&packet),
        }
        let sent = rig.sent();
        let syndrome = match row.answer {
            Answer::Nak(code) => Some(Syndrome::Nak(code)),
            Answer::Rnr => Some(Syndrome::RnrNak { timer: 12 }),
            Answer::Silence => None,
        };
        assert_eq!(syndrome.is_none(), fault == Fault::Spoilt, "RC answers every other fault: {fault:?}");
        let answers: Vec<_> = syndrome.into_iter().map(|syndrome| (FIRST, syndrome, 0)).collect();
        assert_eq!(acks(&sent), answers, "{fault:?}");
        assert_eq!(rig.count(row.counter), 1, "{fault:?}");
        assert_eq!(rig.dropped(row.drop), 1, "{fault:?}");
        assert_eq!(rig.memory.snapshot(), before, "{fault:?}");

        let told: Vec<_> =
            rig.recv_cqes().iter().map(|cqe| (cqe.wr_id, cqe.status, cqe.vendor_err)).collect();
        // That an XRC target has ended is told behind it.
        let events = rig.raised().into_iter().map(|event| event.kind);
        let raised: Vec<_> = events.filter(|&kind| kind != EventKind::QpLastWqeReached).collect();
        match (row.fatal, had_receive) {
            (true, true) => {
                assert_eq!(
                    (told, raised),
                    (vec![(1, row.receive_status, fault as u32)], vec![]),
                    "{fault:?}"
                );
            }
            (true, false) => assert_eq!((told, raised), (vec![], vec![row.event]), "{fault:?}"),
            (false, _) => assert_eq!((told, raised), (vec![], vec![]), "{fault:?}"),
        }
        assert_eq!(rig.state(), if row.fatal { QpState::Err } else { QpState::Rts }, "{fault:?}");
        assert!(rig.sent().is_empty(), "{fault:?}");
    }
}

/// A fault in the middle of a SEND is told by the receive that it fills.
#[test]
fn a_receive_under_way_tells_the_fault() {
    let mut rig = Rig::new(QpType::Rc);
    let buffer = rig.region(1024, ALL);
    rig.post_recv(1, &[buffer.sge(0, 1024)]);
    rig.post_recv(2, &[]);
    rig.deliver(&rig.packet(Send, First, FIRST, &bytes(MTU)));
    let sent = rig.answer(&rig.packet(Send, Only, FIRST + 1, &[]));
    assert_eq!(acks(&sent), [nak(NakCode::InvalidRequest, FIRST + 1, 0)]);
    let ends: Vec<_> = rig.recv_cqes().iter().map(|cqe| (cqe.wr_id, cqe.status, cqe.vendor_err)).collect();
    let expected = [(1, WcStatus::RemInvReqErr, Fault::OpcodeSequence as u32), (2, WcStatus::WrFlushErr, 0)];
    assert_eq!(ends, expected);
    assert_eq!(rig.raised(), []);
}

/// rocev2 facts, wire 7 and 8: every position has its payload lengths, and the pad is what the length asks
/// for.
#[test]
fn payload_and_pad_are_those_of_the_position() {
    let right = |at: Position, len: usize| match at {
        First | Middle => len == MTU,
        Last => (1..=MTU).contains(&len),
        Only => len <= MTU,
    };
    for at in [First, Middle, Last, Only] {
        for len in [0, 1, 4, MTU - 4, MTU - 1, MTU, MTU + 1, MTU + 4] {
            for wrong_pad in [false, true] {
                let mut rig = Rig::new(QpType::Rc);
                let buffer = rig.region(2048, ALL);
                rig.post_recv(1, &[buffer.sge(0, 2048)]);
                let mut psn = FIRST;
                if !at.begins() {
                    rig.deliver(&rig.packet(Send, First, psn, &bytes(MTU)));
                    psn += 1;
                }
                let mut packet = rig.packet(Send, at, psn, &bytes(len)).ack_req();
                if wrong_pad {
                    packet.bth.pad_count = (packet.bth.pad_count + 1) % 4;
                }
                let sent = rig.answer(&packet);
                let refused = sent[0].syndrome() == Some(Syndrome::Nak(NakCode::InvalidRequest));
                assert_eq!(refused, wrong_pad || !right(at, len), "{at:?} {len} {wrong_pad}");
            }
        }
    }
}

/// rocev2 facts, transport 6: a right that the QP does not give is an invalid request, and asked for before
/// the key.
#[test]
fn each_operation_has_its_own_right() {
    let operations = [
        (Write, Access::REMOTE_WRITE),
        (ReadRequest, Access::REMOTE_READ),
        (CompareSwap, Access::REMOTE_ATOMIC),
        (AtomicWrite, Access::REMOTE_WRITE),
        (Flush, Access::FLUSH_GLOBAL),
    ];
    for (op, right) in operations {
        let all = ALL | Access::FLUSH_GLOBAL;
        for access in [all, right, all - right, Access::empty()] {
            let mut rig = Rig::with(QpType::Rc, QpState::Rts, QpAttr { access, ..attributes() });
            let packet = rig.packet(op, Only, FIRST, if op == AtomicWrite { &[0; 8] } else { &[] });
            let packet = match op {
                CompareSwap => {
                    packet.with(AtomicEth { va: 0, rkey: RKey::new(1), swap_or_add: 0, compare: 0 })
                }
                Flush => {
                    packet.with(Feth { plt: 1, sel: 0 }).with(Reth { va: 0, rkey: RKey::new(1), dma_len: 0 })
                }
                AtomicWrite => packet.with(Reth { va: 0, rkey: RKey::new(1), dma_len: 8 }),
                _ => packet.with(Reth { va: 0, rkey: RKey::new(1), dma_len: 0 }),
            };
            let sent = rig.answer(&packet.ack_req());
            let refused = sent[0].syndrome() == Some(Syndrome::Nak(NakCode::InvalidRequest));
            assert_eq!(refused, !access.contains(right), "{op:?} with {access:?}");
        }
    }
}
