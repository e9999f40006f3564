//! What is counted, and asynchronous events.

use crate::support::Pair;
use rockhopper::{EventKind, QpType, SendWr, WcStatus};
use std::time::Duration;

#[test]
fn traffic_shows_in_the_counters_of_port_worker_device_and_queue_pair() {
    let pair = Pair::new(QpType::Rc);
    pair.a.qp.post_send(SendWr::write(1, pair.b.mr.remote().at(0)).sge(pair.a.mr.sge(0..10_000))).unwrap();
    assert!(pair.at_a().is_success());
    let (sender, receiver) = (pair.a.device.stats(), pair.b.device.stats());
    assert_eq!(sender.roce["tx_roce_payload_bytes"], 10_000);
    assert_eq!(receiver.roce["rx_write_requests"], 1);
    assert_eq!(receiver.roce["rx_roce_payload_bytes"], 10_000);
    assert!(receiver.workers[0]["rx_frames"] >= 3 && receiver.device["rx_packets"] >= 3);
    assert_eq!(sender.qps.len(), 1);
    assert_eq!(
        (sender.qps[0].qpn, &*sender.qps[0].qp_type, &*sender.qps[0].state),
        (pair.a.qp.qpn().value(), "Rc", "Rts")
    );
    assert_eq!(sender.qps[0].counters["tx_roce_payload_bytes"], 10_000);
    let json = serde_json::to_string(&sender).unwrap();
    assert_eq!(serde_json::from_str::<rockhopper::stats::PortStats>(&json).unwrap(), sender);
}

#[test]
fn an_access_violation_is_told_to_the_responder_by_an_event() {
    let pair = Pair::new(QpType::Rc);
    pair.a.qp.post_send(SendWr::write(1, pair.b.mr.remote().at(1 << 20)).inline(b"x")).unwrap();
    assert_eq!(pair.at_a().status, WcStatus::RemAccessErr);
    let mut kinds = Vec::new();
    while let Some(event) = pair.b.device.next_event(Duration::from_millis(300)) {
        kinds.push(event.kind);
    }
    assert!(kinds.contains(&EventKind::QpAccessErr), "{kinds:?}");
    assert_eq!(pair.b.device.stats().roce["resp_remote_access_errors"], 1);
}
