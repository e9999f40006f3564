//! ERROR: one status for the failing request, flushes in queue order for everything else.

use super::*;
use crate::event::{AsyncEvent, EventKind, EventSource};
use crate::testkit::HeapMemory;

fn receives(rig: &Rig) -> Vec<(u64, WcStatus)> {
    rig.recv_cqes().iter().map(|cqe| (cqe.wr_id, cqe.status)).collect()
}

#[test]
fn a_modify_to_error_flushes_what_is_in_flight_posted_and_to_be_received() {
    let (mut rig, region) = rc();
    rig.post_recv(11, &[]);
    rig.post_recv(12, &[]);
    rig.post_send(with_flags(wr(1, SendOp::Send, &[region.sge(0, 600)]), SendFlags::empty()));
    assert_eq!(rig.sent_into(2).len(), 2);
    rig.post_send(wr(2, SendOp::Send, &[]));
    rig.modify(QpState::Err);
    completes(&rig, &[(1, WcStatus::WrFlushErr), (2, WcStatus::WrFlushErr)]);
    assert_eq!(receives(&rig), [(11, WcStatus::WrFlushErr), (12, WcStatus::WrFlushErr)]);
    assert_eq!(rig.shared.sq().outstanding(), 0);
    sends(&mut rig, &[]);
}

#[test]
fn later_posts_are_flushed_too() {
    let (mut rig, _) = rc();
    rig.modify(QpState::Err);
    rig.post_send(with_flags(wr(1, SendOp::Send, &[]), SendFlags::empty()));
    rig.post_recv(2, &[]);
    completes(&rig, &[(1, WcStatus::WrFlushErr)]);
    assert_eq!(receives(&rig), [(2, WcStatus::WrFlushErr)]);
}

#[test]
fn a_post_is_flushed_by_its_doorbell_whatever_comes_before() {
    let (mut rig, _) = rc();
    rig.modify(QpState::Err);
    assert_eq!(rig.shared.post_send(wr(1, SendOp::Send, &[])), Ok(true));
    ack(&mut rig, 0x100);
    sends(&mut rig, &[]);
    rig.engine.on_doorbell(rig.now, QPN);
    completes(&rig, &[(1, WcStatus::WrFlushErr)]);
}

#[test]
fn the_receive_of_a_message_in_progress_is_flushed_first() {
    let (mut rig, region) = rc();
    rig.post_recv(11, &[region.sge(0, 1000)]);
    rig.post_recv(12, &[]);
    let first = rig.packet(Operation::Send, Position::First, 0x100, &[1; 256]);
    rig.deliver(&first);
    rig.modify(QpState::Err);
    assert_eq!(receives(&rig), [(11, WcStatus::WrFlushErr), (12, WcStatus::WrFlushErr)]);
}

#[test]
fn no_timer_runs_in_error() {
    let (mut rig, _) = rc();
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.sent();
    rig.modify(QpState::Err);
    rig.send_cqes();
    rig.advance(10_000_000_000);
    completes(&rig, &[]);
}

#[test]
fn receives_of_an_srq_stay_and_an_event_tells_the_end() {
    let srq = Arc::new(RecvQueue::shared(7, PD, 8, 1));
    srq.post(crate::RecvWr { wr_id: 1, sges: Default::default() }).unwrap();
    let mut own = Own::new(HeapMemory::default(), false, Arc::clone(&srq));
    own.modify(&attributes(), QpState::Init);
    own.modify(&attributes(), QpState::Err);
    assert_eq!((own.cq.len(), srq.len()), (0, 1));
    let expected = AsyncEvent { kind: EventKind::QpLastWqeReached, source: EventSource::Qp(QPN) };
    assert_eq!((own.events.poll(), own.events.poll()), (Some(expected), None));
    own.modify(&attributes(), QpState::Err);
    assert_eq!(own.events.poll(), None);
}
