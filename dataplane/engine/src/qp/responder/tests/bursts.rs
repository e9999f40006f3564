//! Completions of a burst: told together when it ends, in order, and with an end for who finds no room.

use super::help::*;

/// Packets of a burst, which does not end.
fn burst(rig: &mut Rig, count: u32) {
    for n in 0..count {
        rig.deliver_in_burst(&rig.packet(Send, Only, FIRST + n, b"x").ack_req());
    }
}

fn rig(receives: u64, cqes: usize) -> Rig {
    let mut rig = Rig::with_capacities(QpType::Rc, QpState::Rts, attributes(), 64, cqes);
    let buffer = rig.region(64, Access::LOCAL_WRITE);
    (1..=receives).for_each(|wr_id| rig.post_recv(wr_id, &[buffer.sge(0, 64)]));
    rig
}

fn ids(rig: &Rig) -> Vec<(u64, WcStatus)> {
    rig.recv_cqes().iter().map(|cqe| (cqe.wr_id, cqe.status)).collect()
}

#[test]
fn completions_are_seen_when_the_burst_ends() {
    let mut rig = rig(3, 256);
    burst(&mut rig, 3);
    assert_eq!(ids(&rig), []);
    rig.end_burst();
    assert_eq!(ids(&rig), [1, 2, 3].map(|wr_id| (wr_id, WcStatus::Success)));
}

#[test]
fn a_burst_of_any_length_keeps_the_order() {
    let mut rig = rig(60, 256);
    burst(&mut rig, 60);
    rig.end_burst();
    let expected: Vec<_> = (1..=60).map(|wr_id| (wr_id, WcStatus::Success)).collect();
    assert_eq!(ids(&rig), expected);
}

/// What went to ERROR in the burst flushes behind what was completed before.
#[test]
fn an_error_comes_behind_what_was_completed_before_it() {
    let mut rig = rig(4, 256);
    burst(&mut rig, 2);
    let too_long = rig.packet(Send, Only, FIRST + 2, &[0; 65]);
    rig.deliver_in_burst(&too_long);
    rig.end_burst();
    rig.sent();
    let (done, rest) = (WcStatus::Success, WcStatus::WrFlushErr);
    assert_eq!(ids(&rig), [(1, done), (2, done), (3, WcStatus::LocLenErr), (4, rest)]);
}

#[test]
fn a_burst_beyond_the_queues_room_takes_the_qp_to_error_with_one_event() {
    let mut rig = rig(8, 2);
    burst(&mut rig, 5);
    assert_eq!((rig.state(), rig.raised()), (QpState::Rts, vec![]), "nobody has looked for room");
    rig.end_burst();
    assert_eq!(rig.state(), QpState::Err);
    assert_eq!(rig.raised(), [AsyncEvent { kind: EventKind::CqErr, source: EventSource::Cq(2) }]);
    assert_eq!(ids(&rig), [1, 2].map(|wr_id| (wr_id, WcStatus::Success)));
    // Three successes and three flushes.
    assert_eq!(rig.count(Counter::CqOverflow), 6);
}

/// More than can be staged: some are refused while the burst goes on.
#[test]
fn the_same_holds_for_a_long_burst() {
    let mut rig = rig(64, 3);
    burst(&mut rig, 50);
    assert_eq!(rig.raised().len(), 1);
    rig.end_burst();
    assert_eq!((rig.state(), rig.raised()), (QpState::Err, vec![]));
    assert_eq!(ids(&rig), [1, 2, 3].map(|wr_id| (wr_id, WcStatus::Success)));
    assert_eq!(rig.count(Counter::CqOverflow), 61, "of 64");
}
