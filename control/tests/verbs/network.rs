//! Addresses and neighbours.

use crate::support::{Pair, devices, family};
use rockhopper::config::QosSettings;
use rockhopper::{
    Addressing, Ah, Config, ConnectOptions, Destination, EventKind, EventSource, Mac, PathRequest, QKey, Qp,
    QpInfo, QpState, QpType, Qpn, RawPort, ResolveError, RingPair, SendWr,
};
use std::net::IpAddr;
use std::time::{Duration, Instant};

#[test]
fn neighbours_are_found_by_arp_and_by_neighbour_discovery() {
    for vlan in [None, Some(7)] {
        let (a, b) = devices(&RingPair { vlan, ..RingPair::default() });
        let mac = b.query_port().unwrap().mac;
        for destination in ["10.82.72.2", "fd52:48::2"] {
            let path = a.resolve(destination.parse().unwrap(), None).unwrap();
            assert_eq!((path.dmac, path.vlan.map(|tag| tag.vid)), (mac, vlan));
            assert_eq!(path.dst.ip(), destination.parse::<IpAddr>().unwrap());
        }
        let network = b.stats().network;
        assert!(network["arp_answered"] >= 1 && network["nd_answered"] >= 1, "{network:?}");
    }
}

#[test]
fn a_dead_neighbour_is_reported_within_a_second() {
    let (a, _b) = devices(&RingPair::default());
    let dead: IpAddr = "10.82.72.9".parse().unwrap();
    // A busy machine may keep us waiting once.
    let mut shortest = Duration::MAX;
    for _ in 0..3 {
        let begin = Instant::now();
        assert_eq!(a.resolve(dead, None), Err(ResolveError::Unreachable(dead)));
        shortest = shortest.min(begin.elapsed());
        if shortest < Duration::from_secs(1) {
            break;
        }
        std::thread::sleep(Duration::from_millis(3100));
    }
    assert!(shortest < Duration::from_secs(1), "{shortest:?}");
}

#[test]
fn a_path_is_found_without_waiting_and_told_by_the_control_thread() {
    let (a, _b) = devices(&RingPair::default());
    let ask = |address: &str, timeout| {
        let (tell, told) = std::sync::mpsc::channel();
        let request = PathRequest { timeout, ..PathRequest::to(address.parse::<Destination>().unwrap()) };
        let begin = Instant::now();
        let known = a.find_path_then(request, move |found| tell.send(found).unwrap());
        (known, begin, told)
    };
    let (known, _, told) = ask("fd52:48::2", None);
    assert_eq!(known, None, "the link has to be asked");
    let path = told.recv_timeout(Duration::from_secs(10)).unwrap().unwrap();
    assert_eq!((path.gid_index, path.addressing.dst.ip()), (2, "fd52:48::2".parse().unwrap()));
    assert_eq!(path.path_mtu, a.path_mtu());
    let (known, ..) = ask("fd52:48::2%ring1", None);
    assert_eq!(known, Some(Ok(path)), "now it is known");
    let dead = "10.82.72.9".parse().unwrap();
    let (known, begin, told) = ask("10.82.72.9", Some(Duration::from_millis(50)));
    assert_eq!(known, None);
    assert_eq!(told.recv_timeout(Duration::from_secs(10)), Ok(Err(ResolveError::Unreachable(dead))));
    assert!(begin.elapsed() >= Duration::from_millis(50));
    let (known, ..) = ask("fe80::1%ring2", None);
    let other = ResolveError::Scope { scope: "ring2".into(), port: "ring1".into(), links: "ring1".into() };
    assert_eq!(known, Some(Err(other)));
}

#[test]
fn an_address_added_later_is_answered_and_carries_traffic() {
    let (a, b) = devices(&RingPair::default());
    let later = "10.82.72.77/24".parse().unwrap();
    let index = b.add_address(later).unwrap();
    assert_eq!(index, 3);
    let event = b.next_event(Duration::from_secs(1)).unwrap();
    let source = EventSource::Gid { port: 1, index: 3 };
    assert_eq!((event.kind, event.source), (EventKind::GidChange, source));
    a.resolve(later.address(), None).unwrap();
    let theirs = ConnectOptions { sgid_index: Some(index), ..ConnectOptions::default() };
    let (left, right) = (crate::support::end(&a, QpType::Rc), crate::support::end(&b, QpType::Rc));
    right.qp.connect(&left.qp.info(&family(false)), &theirs).unwrap();
    left.qp.connect(&right.qp.info(&theirs), &family(false)).unwrap();
    let pair = Pair { a: left, b: right };
    pair.a.qp.post_send(SendWr::write(1, pair.b.mr.remote().at(0)).inline(b"new")).unwrap();
    assert!(pair.at_a().is_success());
    assert!(b.remove_address(later.address()).unwrap());
    assert!(!b.remove_address(later.address()).unwrap());
    assert_eq!(b.gid(index), None);
}

#[test]
fn packets_carry_the_configured_marks_unless_a_connection_has_its_own() {
    let qos = QosSettings { dscp: 26, ecn: true, hop_limit: 9 };
    let base = Config { qos, ..Config::default() };
    let (a, b) = devices(&RingPair { base, ..RingPair::default() });
    let path = a.resolve("10.82.72.2".parse().unwrap(), None).unwrap();
    assert_eq!((path.traffic_class, path.hop_limit), (26 << 2 | 2, 9));
    let own = ConnectOptions { traffic_class: Some(0), ..ConnectOptions::default() };
    let pair = Pair::of(&a, &b, QpType::Rc, &own);
    assert_eq!(pair.a.qp.query().unwrap().attr.path.unwrap().traffic_class, 0);
    let pair = Pair::of(&a, &b, QpType::Rc, &ConnectOptions::default());
    assert_eq!(pair.a.qp.query().unwrap().attr.path.unwrap().traffic_class, 26 << 2 | 2);
}

#[test]
fn a_port_in_a_vlan_reaches_its_peer_there() {
    let settings = RingPair { vlan: Some(7), ..RingPair::default() };
    let pair = Pair::over(&settings, QpType::Rc, &ConnectOptions::default());
    pair.a.qp.post_send(SendWr::write(1, pair.b.mr.remote().at(0)).inline(b"tagged")).unwrap();
    assert!(pair.at_a().is_success());
    assert_eq!(crate::support::bytes(&pair.b.mr, 0, 6), b"tagged");
}

/// Frames of the peer that is played by hand: it announces 10.82.72.1 from a MAC.
fn announcement(from: Mac) -> Vec<u8> {
    let mut frame = vec![0xFF; 6];
    frame.extend(from.0);
    frame.extend([0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1]);
    frame.extend(from.0);
    frame.extend([10, 82, 72, 1]);
    frame.extend([0; 6]);
    frame.extend([10, 82, 72, 1]);
    frame
}

#[test]
fn connected_queue_pairs_and_address_handles_follow_a_peer_to_another_mac() {
    let (mut raw, endpoint, hand) = RawPort::beside_by_hand(&RingPair::default()).unwrap();
    let device = endpoint.device(0).unwrap();
    let mut serve = |until: &mut dyn FnMut() -> bool| {
        let end = Instant::now() + Duration::from_secs(10);
        let mut frames = Vec::new();
        while !until() {
            assert!(Instant::now() < end);
            endpoint.poll_in_turn();
            raw.receive(&mut frames);
            frames.clear();
        }
        raw.mac()
    };
    // The way has to be known before two queue pairs are connected in this thread.
    let peer: IpAddr = "10.82.72.1".parse().unwrap();
    let mut found = None;
    let old = serve(&mut || {
        found = found.take().or_else(|| device.find_path_then(PathRequest::to(peer), |_| ()));
        found.is_some()
    });
    let info = QpInfo { qpn: 0x77, psn: 1, gid: peer, gid_type: None, mtu: 1024, max_rd_atomic: 1, qkey: 0 };
    let (asked, named) = (crate::support::end(&device, QpType::Rc), crate::support::end(&device, QpType::Uc));
    asked.qp.connect(&info, &ConnectOptions::default()).unwrap();
    named.qp.connect(&info, &ConnectOptions::default()).unwrap();
    // Handles: one as asked for, one whose maker names the station itself.
    let ud = crate::support::end(&device, QpType::Ud);
    ud.qp.activate(&ConnectOptions::default()).unwrap();
    let asked_ah = ud.pd.create_ah(peer, None).unwrap();
    let way = asked.qp.query().unwrap().attr.path.unwrap();
    let fixed = Mac([2, 0, 0, 0, 0x77, 9]);
    let fixed_ah = Ah::new(&ud.pd, Addressing { dmac: fixed, ..way }).unwrap();
    let mac = |qp: &Qp| qp.query().unwrap().attr.path.unwrap().dmac;
    assert_eq!([mac(&asked.qp), mac(&named.qp)], [old, old]);
    let new = Mac([2, 0, 0, 0, 0x77, 1]);
    hand.advance(500_000_000);
    assert!(raw.send(&announcement(new)));
    std::thread::sleep(Duration::from_millis(50));
    endpoint.poll_in_turn();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(mac(&asked.qp), old, "too soon after the first answer: that one counts");
    hand.advance(600_000_000);
    assert!(raw.send(&announcement(new)));
    let end = Instant::now() + Duration::from_secs(10);
    while mac(&asked.qp) != new {
        assert!(Instant::now() < end, "it does not follow");
        endpoint.poll_in_turn();
    }
    assert_eq!(mac(&named.qp), new);
    assert_eq!(asked.qp.state(), QpState::Rts);
    for (ah, to) in [(&asked_ah, new), (&fixed_ah, fixed)] {
        let datagram = SendWr::ud_send(1, ah, Qpn::new(0x77), QKey::new(1), None).inline(b"there");
        ud.qp.post_send(datagram).unwrap();
        let mut frames = Vec::new();
        while frames.is_empty() {
            assert!(Instant::now() < end, "no datagram");
            endpoint.poll_in_turn();
            raw.receive(&mut frames);
        }
        assert_eq!(frames[0][..6], to.0);
    }
}
