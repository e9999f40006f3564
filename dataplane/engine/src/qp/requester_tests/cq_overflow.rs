//! A CQ without room: one event, and the QP goes to ERROR.

use super::*;
use crate::counters::Counter;
use crate::event::{AsyncEvent, EventKind, EventSource};

const CQ_ERR: AsyncEvent = AsyncEvent { kind: EventKind::CqErr, source: EventSource::Cq(1) };

#[test]
fn a_full_send_cq_takes_the_qp_to_error_with_one_event() {
    let mut rig = Rig::with_capacities(QpType::Rc, QpState::Rts, attributes(), 8, 2);
    for id in 1..=5 {
        rig.post_send(wr(id, SendOp::Send, &[]));
    }
    rig.sent();
    ack(&mut rig, 0x102);
    assert_eq!(rig.state(), QpState::Err);
    assert_eq!(rig.raised(), [CQ_ERR]);
    completes(&rig, &[(1, WcStatus::Success), (2, WcStatus::Success)]);
    // The third success and both flushes.
    assert_eq!(rig.count(Counter::CqOverflow), 3);
    assert_eq!(rig.shared.sq().outstanding(), 0);
}

#[test]
fn a_full_cq_takes_uc_to_error_and_not_to_sqe() {
    let mut rig = Rig::with_capacities(QpType::Uc, QpState::Rts, attributes(), 8, 1);
    let region = rig.region(64, Access::empty());
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.sent();
    rig.post_send(wr(2, SendOp::Send, &[region.sge(64, 1)]));
    rig.sent();
    assert_eq!(rig.state(), QpState::Err);
}
