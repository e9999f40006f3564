//! Multicast: UD queue pairs attached to groups.

use crate::support::{End, Pair, bytes, devices, end, family};
use rockhopper::{ConnectOptions, Device, QKey, QpError, QpType, Qpn, RecvWr, RingPair, SendWr};
use std::net::IpAddr;
use std::time::{Duration, Instant};

const QKEY: QKey = QKey::new(0x1111_1111);
const GROUP: Qpn = Qpn::new(0xFF_FFFF);

fn member(device: &Device) -> End {
    let member = end(device, QpType::Ud);
    member.qp.activate(&ConnectOptions::default()).unwrap();
    member.qp.post_recv(RecvWr::new(1).sge(member.mr.sge(0..100))).unwrap();
    member
}

fn settle(devices: [&Device; 2]) {
    let end = Instant::now() + Duration::from_millis(30);
    while Instant::now() < end {
        devices.iter().for_each(|device| {
            device.drive();
        });
    }
}

#[test]
fn groups_of_both_families_reach_members_here_and_there() {
    let (a, b) = devices(&RingPair::default());
    for group in ["239.77.1.1", "ff0e::7:1"] {
        let group: IpAddr = group.parse().unwrap();
        let pair = Pair::of(&a, &b, QpType::Ud, &family(group.is_ipv6()));
        let (here, there, outside) = (member(&a), member(&b), member(&b));
        for qp in [&here.qp, &there.qp, &pair.a.qp] {
            qp.attach_mcast(group, 0).unwrap();
        }
        pair.a.qp.post_recv(RecvWr::new(1).sge(pair.a.mr.sge(0..100))).unwrap();
        let ah = pair.a.pd.create_ah(group, None).unwrap();
        pair.a
            .qp
            .post_send(SendWr::ud_send(2, &ah, GROUP, QKEY, Some([1, 2, 3, 4])).inline(b"to all"))
            .unwrap();
        settle([&a, &b]);
        for end in [&here, &there] {
            let cqe = end.cq.poll_one().expect("a copy");
            assert_eq!((cqe.byte_len, cqe.src_qp, cqe.imm), (46, pair.a.qp.qpn(), Some([1, 2, 3, 4])));
            assert_eq!(bytes(&end.mr, 40, 6), b"to all");
        }
        assert_eq!(pair.a.cq.len(), 2, "the sender's completion, and its own copy");
        assert!(outside.cq.is_empty());

        there.qp.detach_mcast(group, 0).unwrap();
        there.qp.post_recv(RecvWr::new(2).sge(there.mr.sge(0..100))).unwrap();
        pair.a.qp.post_send(SendWr::ud_send(3, &ah, GROUP, QKEY, None).inline(b"again")).unwrap();
        settle([&a, &b]);
        assert!(there.cq.is_empty());
        assert!(b.stats().roce["drop_group_not_attached"] >= 1);
    }
}

#[test]
fn the_port_joins_with_its_first_member_and_leaves_with_its_last() {
    let (a, b) = devices(&RingPair::default());
    let group: IpAddr = "239.77.1.9".parse().unwrap();
    let reported = || a.stats().network["group_reported"];
    let (one, two) = (member(&a), member(&a));
    one.qp.attach_mcast(group, 0).unwrap();
    assert_eq!(reported(), 1);
    two.qp.attach_mcast(group, 0).unwrap();
    two.qp.attach_mcast(group, 0).unwrap();
    one.qp.detach_mcast(group, 0).unwrap();
    assert_eq!(reported(), 1, "the repetition comes in a second");
    // The last member is destroyed while attached.
    drop(two);
    assert_eq!(reported(), 2);
    let end = Instant::now() + Duration::from_secs(5);
    while reported() < 3 && Instant::now() < end {
        settle([&a, &b]);
    }
    assert_eq!(reported(), 3, "the leaving is told twice");
}

#[test]
fn what_cannot_be_attached_is_refused_with_a_sentence() {
    let (a, _b) = devices(&RingPair::default());
    let ud = end(&a, QpType::Ud);
    let group: IpAddr = "239.77.1.1".parse().unwrap();
    assert!(matches!(ud.qp.attach_mcast("10.0.0.1".parse().unwrap(), 0), Err(QpError::NoGroup(_))));
    assert!(matches!(ud.qp.attach_mcast("fe80::1".parse().unwrap(), 0), Err(QpError::NoGroup(_))));
    assert!(matches!(end(&a, QpType::Rc).qp.attach_mcast(group, 0), Err(QpError::GroupType(QpType::Rc))));
    assert!(matches!(ud.qp.detach_mcast(group, 0), Err(QpError::NotAttached(_))));
    let most = a.attributes().max_mcast_grp;
    let numbered = |n: usize| IpAddr::from([239, 1, (n >> 8) as u8, n as u8]);
    (0..most).for_each(|n| ud.qp.attach_mcast(numbered(n), 0).unwrap());
    assert!(matches!(ud.qp.attach_mcast(group, 0), Err(QpError::TooMany { .. })));
    ud.qp.detach_mcast(numbered(0), 0).unwrap();
    ud.qp.attach_mcast(group, 0).unwrap();
    let others: Vec<_> = (1..a.attributes().max_mcast_qp_attach).map(|_| another(&ud)).collect();
    others.iter().for_each(|qp| qp.attach_mcast(group, 0).unwrap());
    assert!(matches!(another(&ud).attach_mcast(group, 0), Err(QpError::TooMany { .. })));
}

fn another(of: &End) -> rockhopper::Qp {
    of.pd.create_qp(&rockhopper::QpOptions::new(QpType::Ud, &of.cq)).unwrap()
}
