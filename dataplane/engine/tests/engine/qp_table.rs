//! The engine's table of QPs: created, full, taken, moved to another engine, gone.

use crate::support::*;
use engine::engine::AddQpError;
use engine::{CompletionQueue, QpPlace, RecvQueue};
use engine::{Counter, DropReason, Engine, EngineConfig, EventQueue, Payload, QpState, QpType, RxPacket};
use std::sync::Arc;
use wire::{Bth, ExtHeaders, Frame, HeaderTemplate, Opcode, Operation, Position, Psn, Qpn, Service};

fn engine(max_qps: usize) -> (Engine<NoMemory>, Arc<CompletionQueue>) {
    let config = EngineConfig { max_qps, max_mrs: 1, ..EngineConfig::default() };
    let cq = Arc::new(CompletionQueue::new(1, 16, || {}));
    (Engine::new(config, NoMemory, Arc::new(EventQueue::new(4))), cq)
}

/// An empty SEND.
fn packet(to: Qpn) -> Vec<u8> {
    let template = HeaderTemplate::new(&path()).unwrap();
    let opcode = Opcode::of(Service::Rc, Operation::Send, Position::Only).unwrap();
    let mut bytes = Vec::new();
    wire::build_frame(&template, &Bth::new(opcode, to, Psn::new(1)), &ExtHeaders::EMPTY, 0, b"", &mut bytes);
    bytes
}

fn add(engine: &mut Engine<NoMemory>, cq: &Arc<CompletionQueue>, qpn: u32) -> Result<(), AddQpError> {
    engine.create_qp(qp_init(Qpn::new(qpn), QpType::Rc, Arc::new(RecvQueue::new(4, 1)), cq))
}

#[test]
fn a_table_of_two() {
    let (mut engine, cq) = engine(2);
    assert_eq!(add(&mut engine, &cq, 5), Ok(()));
    assert_eq!(add(&mut engine, &cq, 5), Err(AddQpError::Exists(Qpn::new(5))));
    assert_eq!(add(&mut engine, &cq, 6), Ok(()));
    assert_eq!(add(&mut engine, &cq, 7), Err(AddQpError::Full(2)));
    assert_eq!(engine.qps().count(), 2);
    assert!(engine.has_qp(Qpn::new(6)) && !engine.has_qp(Qpn::new(7)));
    assert!(engine.destroy_qp(Qpn::new(5)));
    assert!(engine.qp(Qpn::new(5)).is_none());
    assert_eq!(add(&mut engine, &cq, 7), Ok(()), "a place is free again");
    assert!(engine.is_idle());
    assert_eq!(engine.next_timeout(), None);
}

#[test]
fn a_qp_moves_with_its_state_and_attributes() {
    let mut one = One::in_state(QpType::Rc, QpState::Rts);
    let (mut other, _) = engine(1);
    let qp = one.engine.detach_qp(QPN).expect("it was here");
    assert!(!one.engine.has_qp(QPN) && one.engine.detach_qp(QPN).is_none());
    assert!(other.attach_qp(0, qp).is_ok());
    let moved = other.qp(QPN).expect("it is here");
    assert_eq!(
        (moved.state(), moved.attr().dest_qpn, one.shared.state()),
        (QpState::Rts, PEER, QpState::Rts)
    );
}

#[test]
fn the_timer_moves_along() {
    let mut one = One::in_state(QpType::Rc, QpState::Rts);
    one.shared.post_send(send(1)).unwrap();
    one.engine.on_doorbell(0, QPN);
    one.engine.poll_transmit(0, &mut Swallow);
    let deadline = one.engine.next_timeout().expect("something is unacknowledged");
    let (mut other, _) = engine(1);
    let qp = one.engine.detach_qp(QPN).unwrap();
    assert!(one.engine.next_timeout().is_none());
    assert!(other.attach_qp(0, qp).is_ok());
    assert_eq!(other.next_timeout(), Some(deadline));
    other.on_timeout(deadline);
    assert!(!other.is_idle(), "it is sent again from here");
}

#[test]
fn a_qp_that_finds_no_place_is_given_back() {
    let mut one = One::in_state(QpType::Rc, QpState::Rts);
    let (mut full, cq) = engine(1);
    add(&mut full, &cq, 5).unwrap();
    let qp = one.engine.detach_qp(QPN).unwrap();
    let (qp, why) = full.attach_qp(0, qp).expect_err("no place");
    assert_eq!((qp.qpn(), why), (QPN, AddQpError::Full(1)));
    assert!(one.engine.attach_qp(0, qp).is_ok(), "and can go home");
    assert_eq!(one.state(), QpState::Rts);
}

#[test]
fn what_was_posted_in_error_during_a_move_is_flushed_on_arrival() {
    let mut one = One::in_state(QpType::Rc, QpState::Err);
    let qp = one.engine.detach_qp(QPN).unwrap();
    assert_eq!(one.shared.post_recv(recv(9)), Ok(true));
    // The doorbell finds nobody at the old home.
    one.shared.answer();
    one.engine.on_doorbell(0, QPN);
    assert_eq!(one.cq.poll(), None);
    let (mut other, _) = engine(1);
    assert!(other.attach_qp(0, qp).is_ok());
    assert_eq!(one.cq.poll().map(|cqe| cqe.wr_id), Some(9));
}

/// More of them than are taken to be in the cache: what is asked for ahead changes nothing.
#[test]
fn hundreds_of_qps_hear_their_bells_and_take_turns() {
    const QPS: u32 = 300;
    let config = EngineConfig { max_qps: QPS as usize, max_mrs: 1, ..EngineConfig::default() };
    let mut engine = Engine::new(config, NoMemory, Arc::new(EventQueue::new(4)));
    let cq = Arc::new(CompletionQueue::new(1, 2 * QPS as usize, || {}));
    let qps: Vec<_> = (1..=QPS)
        .map(|qpn| {
            let init = qp_init(Qpn::new(qpn), QpType::Uc, Arc::new(RecvQueue::new(1, 1)), &cq);
            let shared = init.shared.clone();
            engine.create_qp(init).unwrap();
            for to in [QpState::Init, QpState::Rtr, QpState::Rts] {
                let required = engine::qp::rule(QpType::Uc, shared.state(), to).unwrap().required;
                let mask = required | engine::QpAttrMask::STATE;
                engine.modify_qp(0, shared.qpn(), &engine::QpAttr { state: to, ..good() }, mask).unwrap();
            }
            shared
        })
        .collect();
    assert!(engine.has_many_qps());
    for round in 0..2 {
        for qp in &qps {
            for number in 0..2 {
                let wr_id = u64::from(2 * qp.qpn().value() + number);
                assert_eq!(qp.post_send(send(wr_id)), Ok(number == 0));
            }
        }
        // Among them the bell of one that has gone.
        let rung: Vec<Qpn> = qps.iter().map(|qp| qp.qpn()).chain([Qpn::new(QPS + 1)]).collect();
        for some in rung.chunks(64) {
            engine.on_doorbells(0, some);
        }
        engine.poll_transmit(0, &mut Swallow);
        assert!(engine.is_idle() && engine.has_qp(Qpn::new(QPS)) && !engine.has_qp(Qpn::new(QPS + 1)));
        let mut ids: Vec<u64> = std::iter::from_fn(|| cq.poll()).map(|cqe| cqe.wr_id).collect();
        ids.sort_unstable();
        assert!(ids.into_iter().eq(2..2 * u64::from(QPS) + 2), "round {round}: each once");
    }
}

/// Whatever has become of the place where a packet's QP was found: the packet comes to that QP, or is counted.
#[test]
fn a_packet_goes_to_its_qp_and_not_to_another_in_its_place() {
    let (mut engine, cq) = engine(2);
    let (first, second) = (Qpn::new(5), Qpn::new(6));
    let info = Opcode::of(Service::Rc, Operation::Send, Position::Only).and_then(Opcode::info).unwrap();
    let dropped = |engine: &Engine<NoMemory>, qpn| {
        engine.qp(qpn).map(|qp| qp.counters().dropped(DropReason::WrongState))
    };
    add(&mut engine, &cq, 5).unwrap();
    add(&mut engine, &cq, 6).unwrap();
    let (place, other) = (engine.place_of(first, info).unwrap(), engine.place_of(second, info).unwrap());
    assert_ne!(place, other);
    let deliver = |engine: &mut Engine<NoMemory>, place| {
        let bytes = packet(first);
        let frame = Frame::parse(&bytes, bytes.len()).unwrap();
        let packet = RxPacket { frame: &frame, head: &bytes, payload: Payload::contiguous(&[]) };
        engine.deliver_at(0, place, first, &packet);
    };
    for (count, place) in [place, other, QpPlace::NOWHERE].into_iter().enumerate() {
        deliver(&mut engine, place);
        assert_eq!(dropped(&engine, first), Some(count as u64 + 1));
    }
    assert!(engine.destroy_qp(first));
    deliver(&mut engine, place);
    add(&mut engine, &cq, 7).unwrap();
    assert_eq!(engine.place_of(Qpn::new(7), info), Some(place), "another has it now");
    deliver(&mut engine, place);
    assert_eq!(engine.counters().dropped(DropReason::UnknownQp), 2);
    assert_eq!((dropped(&engine, second), dropped(&engine, Qpn::new(7))), (Some(0), Some(0)));
}

/// Of a packet that takes a receive, and of one that takes none; with receives of the QP's own, and shared ones.
#[test]
fn what_packets_to_hundreds_of_qps_have_asked_for_changes_nothing() {
    const QPS: u32 = 300;
    let (mut engine, cq) = engine(QPS as usize);
    let shared = Arc::new(RecvQueue::shared(1, engine::PdId(1), 4, 1));
    for qpn in 1..=QPS {
        let receives = if qpn % 2 == 0 { Arc::clone(&shared) } else { Arc::new(RecvQueue::new(4, 1)) };
        engine.create_qp(qp_init(Qpn::new(qpn), QpType::Rc, receives, &cq)).unwrap();
    }
    assert!(engine.has_many_qps());
    let infos = [Operation::Send, Operation::Acknowledge]
        .map(|operation| Opcode::of(Service::Rc, operation, Position::Only).and_then(Opcode::info).unwrap());
    for qpn in (1..=QPS).map(Qpn::new) {
        let places = infos.map(|info| engine.place_of(qpn, info).unwrap());
        infos.iter().zip(places).for_each(|(info, place)| engine.fetch_for(place, info, 1));
        let bytes = packet(qpn);
        let frame = Frame::parse(&bytes, bytes.len()).unwrap();
        let packet = RxPacket { frame: &frame, head: &bytes, payload: Payload::contiguous(&[]) };
        engine.deliver_at(0, places[0], qpn, &packet);
        let counted = engine.qp(qpn).map(|qp| qp.counters().dropped(DropReason::WrongState));
        assert_eq!((places[0], counted), (places[1], Some(1)));
    }
    assert_eq!(engine.place_of(Qpn::new(QPS + 1), infos[0]), None);
    engine.fetch_for(QpPlace::NOWHERE, infos[0], 2);
}

#[test]
fn packets_for_nobody_are_counted() {
    let (mut engine, _) = engine(1);
    let bytes = packet(QPN);
    let frame = Frame::parse(&bytes, bytes.len()).unwrap();
    engine.on_packet(0, &RxPacket { frame: &frame, head: &bytes, payload: Payload::contiguous(&[]) });
    let counters = engine.counters();
    assert_eq!(counters.dropped(DropReason::UnknownQp), 1);
    assert_eq!(counters.get(Counter::RxPackets), 0, "it reached no QP");
}
