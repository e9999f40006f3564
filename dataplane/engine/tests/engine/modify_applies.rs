//! What an accepted modify changes.

use crate::support::*;
use engine::queue::RecvQueue;
use engine::{AsyncEvent, EventKind, PdId, QpAttr, QpAttrMask as M, QpState, QpType};
use std::sync::Arc;

#[test]
fn every_move_of_the_table_is_made_with_what_it_requires() {
    use QpState::*;
    for qp_type in [QpType::Rc, QpType::Uc, QpType::Ud] {
        for from in [Reset, Init, Rtr, Rts, Sqd, Err] {
            for to in QpState::ALL {
                let mut one = One::in_state(qp_type, from);
                let exists = engine::qp::rule(qp_type, from, to).is_some();
                assert_eq!(one.go(to).ok(), exists.then_some(to), "{qp_type:?} {from:?} -> {to:?}");
                let state = if exists { to } else { from };
                assert_eq!((one.state(), one.shared.state()), (state, state), "both sides see it");
            }
        }
    }
}

#[test]
fn attributes_are_those_that_the_mask_named() {
    let mut one = One::in_state(QpType::Rc, QpState::Rtr);
    let attr =
        QpAttr { state: QpState::Rts, timeout: 3, sq_psn: wire::Psn::new(77), min_rnr_timer: 31, ..good() };
    let mask = M::STATE | M::TIMEOUT | M::RETRY_CNT | M::RNR_RETRY | M::SQ_PSN | M::MAX_RD_ATOMIC;
    one.modify(&attr, mask).unwrap();
    let now = one.attr();
    assert_eq!((now.timeout, now.sq_psn.value(), now.retry_cnt, now.rnr_retry), (3, 77, 5, 6));
    assert_eq!(now.min_rnr_timer, 10, "set at RTR, not named now");
    assert_eq!((now.max_dest_rd_atomic, now.dest_qpn, now.rq_psn.value()), (8, PEER, 100), "as set at RTR");
    assert_eq!((now.state, now.cur_state), (QpState::Rts, QpState::Rts));
}

#[test]
fn a_modify_without_a_state_stays_where_it_is() {
    let mut one = One::in_state(QpType::Rc, QpState::Rts);
    let access = engine::Access::REMOTE_READ;
    assert_eq!(one.modify(&QpAttr { access, ..good() }, M::ACCESS), Ok(QpState::Rts));
    assert_eq!(one.attr().access, access);
}

#[test]
fn reset_throws_posted_work_away_without_completions() {
    let mut one = One::in_state(QpType::Rc, QpState::Rts);
    for wr_id in 0..8 {
        one.shared.post_send(send(wr_id)).unwrap();
        one.shared.post_recv(recv(wr_id)).unwrap();
    }
    one.go(QpState::Reset).unwrap();
    assert_eq!(one.cq.poll(), None);
    assert_eq!((one.shared.sq().outstanding(), one.shared.sq().waiting(), one.shared.rq().len()), (0, 0, 0));
    let fresh = one.attr();
    assert!(fresh.path.is_none());
    assert_eq!((fresh.dest_qpn.value(), fresh.timeout), (0, QpAttr::default().timeout));

    // And the whole depth is there again for a second life.
    one.raise_to(QpState::Rts);
    for wr_id in 0..8 {
        assert!(one.shared.post_send(send(wr_id)).is_ok());
    }
}

#[test]
fn reset_and_destroy_leave_a_shared_receive_queue_alone() {
    let srq = Arc::new(RecvQueue::shared(5, PdId(1), 16, 4));
    srq.post(recv(1)).unwrap();
    let mut one = One::with_rq(QpType::Rc, srq.clone());
    one.raise_to(QpState::Rts);
    one.go(QpState::Reset).unwrap();
    assert!(one.engine.destroy_qp(QPN));
    assert_eq!(srq.len(), 1);
}

#[test]
fn destroying_a_qp_throws_its_work_away() {
    let mut one = One::in_state(QpType::Rc, QpState::Rts);
    one.shared.post_send(send(1)).unwrap();
    one.shared.post_recv(recv(2)).unwrap();
    assert!(one.engine.destroy_qp(QPN));
    assert_eq!((one.shared.state(), one.shared.sq().outstanding()), (QpState::Reset, 0));
    assert_eq!((one.shared.rq().len(), one.cq.poll()), (0, None));
    assert!(one.shared.post_send(send(3)).is_err());
    assert!(!one.engine.destroy_qp(QPN), "it is gone");
}

#[test]
fn an_idle_send_queue_has_drained_at_once_and_says_so_if_asked() {
    for (notify, expected) in [(true, 1), (false, 0)] {
        let mut one = One::in_state(QpType::Rc, QpState::Rts);
        let attr = QpAttr { state: QpState::Sqd, notify_drained: notify, ..good() };
        one.modify(&attr, M::STATE | M::EN_SQD_ASYNC_NOTIFY).unwrap();
        let events: Vec<AsyncEvent> = std::iter::from_fn(|| one.events.poll()).collect();
        assert_eq!(events.len(), expected);
        assert!(events.iter().all(|event| event.kind == EventKind::SqDrained));
    }
}

#[test]
fn asking_for_the_drained_event_holds_for_one_drain() {
    let mut one = One::in_state(QpType::Rc, QpState::Rts);
    let attr = QpAttr { state: QpState::Sqd, notify_drained: true, ..good() };
    one.modify(&attr, M::STATE | M::EN_SQD_ASYNC_NOTIFY).unwrap();
    assert!(one.events.poll().is_some());
    one.go(QpState::Rts).unwrap();
    one.go(QpState::Sqd).unwrap();
    assert_eq!(one.events.poll(), None);
}
