//! The end of objects: in any order, with work under way.

use crate::support::{Pair, SOON, bytes, devices, end, family};
use rockhopper::{QpType, RingPair, SendWr, WcStatus};
use std::time::{Duration, Instant};

#[test]
fn a_deregistered_region_is_out_of_reach() {
    let pair = Pair::new(QpType::Rc);
    let (remote, gone) = (pair.b.mr.remote(), pair.b.pd.reg_mr(4096, crate::support::ALL).unwrap());
    let key = gone.remote();
    pair.a.qp.post_send(SendWr::write(1, key.at(0)).inline(b"alive")).unwrap();
    assert!(pair.at_a().is_success());
    drop(gone);
    pair.a.qp.post_send(SendWr::write(2, key.at(0)).inline(b"dead")).unwrap();
    assert_eq!(pair.at_a().status, WcStatus::RemAccessErr);
    assert_eq!(bytes(&pair.b.mr, 0, 4), [0; 4]);
    assert_ne!(remote.rkey, key.rkey);
}

#[test]
fn a_local_region_that_goes_with_requests_posted_ends_them_in_error() {
    let pair = Pair::new(QpType::Rc);
    let source = pair.a.pd.reg_mr(4096, crate::support::ALL).unwrap();
    let sge = source.sge(0..4096);
    drop(source);
    pair.a.qp.post_send(SendWr::write(1, pair.b.mr.remote().at(0)).sge(sge)).unwrap();
    assert_eq!(pair.at_a().status, WcStatus::LocProtErr);
}

#[test]
fn handles_keep_what_they_need_in_any_order_of_dropping() {
    let (a, b) = devices(&RingPair::default());
    let pair = Pair::of(&a, &b, QpType::Rc, &family(false));
    drop((a, b));
    let crate::support::Pair { a, b } = pair;
    drop((a.pd, a.device, b.pd, b.device));
    let remote = b.mr.remote();
    a.qp.post_send(SendWr::write(1, remote.at(0)).inline(b"still")).unwrap();
    assert!(a.cq.wait(SOON).unwrap().is_success());
    drop(a.cq);
    drop(b.qp);
    a.qp.post_send(SendWr::write(2, remote.at(0)).inline(b"nobody")).unwrap();
    drop(a.qp);
    assert_eq!(bytes(&b.mr, 0, 5), b"still");
}

#[test]
fn endpoints_can_follow_each_other_and_give_everything_back() {
    for _ in 0..5 {
        let (a, b) = devices(&RingPair::default());
        let begin = Instant::now();
        drop((end(&a, QpType::Rc), end(&b, QpType::Uc)));
        assert_eq!((a.stats().qps.len(), b.stats().qps.len()), (0, 0));
        drop((a, b));
        assert!(begin.elapsed() < Duration::from_secs(2));
    }
    rockhopper::shutdown();
}

#[test]
fn a_destroyed_queue_pair_takes_no_packets_and_its_place_is_free_again() {
    let pair = Pair::new(QpType::Rc);
    let remote = pair.b.mr.remote();
    let crate::support::Pair { a, b } = pair;
    drop(b.qp);
    a.qp.post_send(SendWr::write(1, remote.at(0)).inline(b"nobody")).unwrap();
    let end = Instant::now() + SOON;
    while b.device.stats().roce["drop_unknown_qp"] == 0 {
        assert!(Instant::now() < end, "the packet found a queue pair");
        a.device.drive();
    }
    assert_eq!(bytes(&b.mr, 0, 6), [0; 6]);
    for _ in 0..b.device.attributes().max_qp + 10 {
        b.pd.create_qp(&rockhopper::QpOptions::new(QpType::Rc, &b.cq)).unwrap();
    }
}
