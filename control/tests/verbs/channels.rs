//! Waiting for completions: channels, file descriptors, solicited events.

use crate::support::{ALL, SOON, devices};
use rockhopper::{ConnectOptions, QpOptions, QpType, RecvWr, RingPair, SendWr};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

#[test]
fn an_armed_queue_reports_once_and_solicited_only_reports_what_is_marked() {
    let (a, b) = devices(&RingPair::default());
    let channel = b.create_comp_channel().unwrap();
    assert!(channel.next(Duration::from_millis(1)).is_none());
    let cq_a = a.create_cq(16).unwrap();
    let cq_b = b.create_cq_on(16, &channel).unwrap();
    let (pd_a, pd_b) = (a.alloc_pd(), b.alloc_pd());
    let qp_a = pd_a.create_qp(&QpOptions::new(QpType::Rc, &cq_a)).unwrap();
    let qp_b = pd_b.create_qp(&QpOptions::new(QpType::Rc, &cq_b)).unwrap();
    let mr = pd_b.reg_mr(64, ALL).unwrap();
    let options = ConnectOptions::default();
    qp_b.connect(&qp_a.info(&options), &options).unwrap();
    qp_a.connect(&qp_b.info(&options), &options).unwrap();
    for id in 0..8 {
        qp_b.post_recv(RecvWr::new(id).sge(mr.sge(0..64))).unwrap();
    }
    let send = |wr: SendWr| {
        qp_a.post_send(wr.inline(b"x")).unwrap();
        assert!(cq_a.wait(SOON).unwrap().is_success());
    };
    cq_b.arm(false);
    send(SendWr::send(1));
    send(SendWr::send(2));
    assert_eq!(channel.next(SOON), Some(cq_b.id()));
    assert!(channel.next(Duration::from_millis(20)).is_none(), "one report for one arming");
    cq_b.arm(true);
    send(SendWr::send(3));
    assert!(channel.next(Duration::from_millis(20)).is_none(), "not marked");
    send(SendWr::send(4).solicited());
    assert_eq!(channel.next(SOON), Some(cq_b.id()));
    assert!(channel.fd().as_fd().try_clone_to_owned().is_ok());
    let mut received = Vec::new();
    assert_eq!(cq_b.poll(&mut received, 3), 3);
    assert_eq!(cq_b.poll(&mut received, 3), 1);
    assert_eq!(received.iter().map(|cqe| cqe.wr_id).collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn a_wait_ends_at_its_time() {
    let (a, _b) = devices(&RingPair::default());
    let cq = a.create_cq(4).unwrap();
    let begin = Instant::now();
    assert!(cq.wait(Duration::from_millis(30)).is_none());
    assert!((30..2000).contains(&begin.elapsed().as_millis()));
}
