//! A port that talks to itself.

use crate::support::{ALL, Pair, bytes, devices, end, family, pattern};
use rockhopper::config::Drive;
use rockhopper::{ConnectOptions, Endpoint, QKey, QpOptions, QpType, RecvWr, RingPair, SendWr, WcOpcode};

#[test]
fn two_queue_pairs_of_one_port_talk_over_every_service_and_family() {
    let (device, other) = devices(&RingPair::default());
    for v6 in [false, true] {
        for qp_type in [QpType::Rc, QpType::Uc] {
            let pair = Pair::of(&device, &device, qp_type, &family(v6));
            let data = pattern(3, 300_000);
            pair.a.mr.write(0, &data).unwrap();
            pair.b.qp.post_recv(RecvWr::new(1).sge(pair.b.mr.sge(0..300_000))).unwrap();
            pair.a.qp.post_send(SendWr::send(2).sge(pair.a.mr.sge(0..300_000))).unwrap();
            assert!(pair.at_a().is_success());
            assert_eq!(pair.at_b().byte_len, 300_000);
            assert_eq!(bytes(&pair.b.mr, 0, 300_000), data);
        }
        let pair = Pair::of(&device, &device, QpType::Ud, &family(v6));
        let to = pair.b.qp.info(&family(v6));
        let ah = pair.a.pd.create_ah(to.gid, None).unwrap();
        pair.b.qp.post_recv(RecvWr::new(1).sge(pair.b.mr.sge(0..100))).unwrap();
        let send = SendWr::ud_send(1, &ah, pair.b.qp.qpn(), QKey::new(0x1111_1111), None).inline(b"here");
        pair.a.qp.post_send(send).unwrap();
        assert_eq!(pair.at_b().src_qp, pair.a.qp.qpn());
        assert_eq!(bytes(&pair.b.mr, 40, 4), b"here");
    }
    let (ours, theirs) = (device.stats(), other.stats().roce);
    assert!(ours.roce["looped_frames"] > 0);
    let announced = ours.network["address_announced"];
    assert_eq!((ours.roce["tx_frames"], theirs["rx_roce_packets"]), (announced, 0), "nothing else left");
}

#[test]
fn a_queue_pair_may_be_connected_to_itself() {
    let (device, _other) = devices(&RingPair::default());
    let one = end(&device, QpType::Rc);
    let options = ConnectOptions { access: ALL, ..family(false) };
    one.qp.connect(&one.qp.info(&options), &options).unwrap();
    one.mr.write(0, b"round").unwrap();
    one.qp.post_send(SendWr::write(1, one.mr.remote().at(100)).sge(one.mr.sge(0..5))).unwrap();
    one.qp.post_send(SendWr::read(2, one.mr.remote().at(100)).sge(one.mr.sge(200..205))).unwrap();
    for opcode in [WcOpcode::RdmaWrite, WcOpcode::RdmaRead] {
        let cqe = one.cq.wait(crate::support::SOON).unwrap();
        assert!(cqe.is_success() && cqe.opcode == opcode, "{cqe:?}");
    }
    assert_eq!(bytes(&one.mr, 200, 5), b"round");
}

/// The same on worker threads that sleep when idle: what is looped wakes nobody, so it must not be slept through.
#[test]
fn a_sleeping_worker_does_not_sleep_through_what_it_sends_itself() {
    let settings = RingPair { drive: Drive::Threads, ..RingPair::default() };
    let (a, _b) = Endpoint::ring_pair(&settings).unwrap();
    let device = a.device(0).unwrap();
    let pd = device.alloc_pd();
    let (cq, mr) = (device.create_cq(16).unwrap(), pd.reg_mr(4096, ALL).unwrap());
    let make = || pd.create_qp(&QpOptions::new(QpType::Rc, &cq)).unwrap();
    let (one, two) = (make(), make());
    let options = ConnectOptions::default();
    one.connect(&two.info(&options), &options).unwrap();
    two.connect(&one.info(&options), &options).unwrap();
    let mut slowest = std::time::Duration::ZERO;
    for round in 0..20 {
        std::thread::sleep(std::time::Duration::from_millis(5));
        let begin = std::time::Instant::now();
        one.post_send(SendWr::write(round, mr.remote().at(8)).sge(mr.sge(0..8))).unwrap();
        assert!(cq.wait(crate::support::SOON).unwrap().is_success());
        slowest = slowest.max(begin.elapsed());
    }
    assert!(slowest < std::time::Duration::from_secs(1), "{slowest:?}");
}
