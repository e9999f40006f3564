//! The engine's table of QPs: created, full, taken, moved to another engine, gone.

use crate::support::*;
use engine::engine::AddQpError;
use engine::{CompletionQueue, RecvQueue};
use engine::{Counter, DropReason, Engine, EngineConfig, EventQueue, Payload, QpState, QpType, RxPacket};
use std::sync::Arc;
use wire::{Bth, ExtHeaders, Frame, HeaderTemplate, Opcode, Operation, Position, Psn, Qpn, Service};

fn engine(max_qps: usize) -> (Engine<NoMemory>, Arc<CompletionQueue>) {
    let config = EngineConfig { max_qps, max_mrs: 1 };
    let cq = Arc::new(CompletionQueue::new(1, 16, || {}));
    (Engine::new(config, NoMemory, Arc::new(EventQueue::new(4))), cq)
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

#[test]
fn packets_for_nobody_are_counted() {
    let (mut engine, _) = engine(1);
    let template = HeaderTemplate::new(&path()).unwrap();
    let opcode = Opcode::of(Service::Rc, Operation::Send, Position::Only).unwrap();
    let mut bytes = Vec::new();
    wire::build_frame(&template, &Bth::new(opcode, QPN, Psn::new(1)), &ExtHeaders::EMPTY, 0, b"", &mut bytes);
    let frame = Frame::parse(&bytes, bytes.len()).unwrap();
    engine.on_packet(0, &RxPacket { frame: &frame, head: &bytes, payload: Payload::contiguous(&[]) });
    let counters = engine.counters();
    assert_eq!(counters.dropped(DropReason::UnknownQp), 1);
    assert_eq!(counters.get(Counter::RxPackets), 0, "it reached no QP");
}
