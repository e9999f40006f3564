//! VLAN sub-ports: GIDs of their own in one device, and nothing that gets from one VLAN into another.

use crate::support::{Pair, bytes, devices, end, pattern};
use rockhopper::net::WrongGid;
use rockhopper::{
    AhAttr, ConnectOptions, Device, EventKind, EventSource, QKey, QpError, QpInfo, QpState, QpType, RecvWr,
    ResolveError, RingPair, SendWr, WcStatus,
};
use std::net::IpAddr;
use std::time::Duration;

/// Two ports, untagged and in VLANs 5 and 600.
fn trunk() -> (Device, Device) {
    devices(&RingPair { vlans: vec![5, 600], ..RingPair::default() })
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn of(index: usize) -> ConnectOptions {
    ConnectOptions { sgid_index: Some(index), ..ConnectOptions::default() }
}

#[test]
fn every_vlan_has_gids_of_its_own_in_one_table() {
    let (device, _other) = trunk();
    let port = device.query_port().unwrap();
    let table: Vec<String> = port.gids.iter().map(|(index, entry)| format!("{index} {entry}")).collect();
    let own = port.gids[0].1.address;
    let expected = [
        format!("0 {own}"),
        "1 10.82.72.1".into(),
        "2 fd52:48::1".into(),
        format!("3 {own} in VLAN 5"),
        "4 10.64.5.1 in VLAN 5".into(),
        "5 fd52:48:0:5::1 in VLAN 5".into(),
        format!("6 {own} in VLAN 600"),
        "7 10.66.88.1 in VLAN 600".into(),
        "8 fd52:48:0:258::1 in VLAN 600".into(),
    ];
    assert_eq!(table, expected);
    assert_eq!(device.default_gid_index(), 1);
    assert_eq!(
        device.stats().gid_vlans,
        [3, 4, 5].map(|n| (n, 5)).into_iter().chain([6, 7, 8].map(|n| (n, 600))).collect()
    );
}

#[test]
fn connected_queue_pairs_talk_in_every_vlan_and_family() {
    let (a, b) = trunk();
    for index in 3..9 {
        for qp_type in [QpType::Rc, QpType::Uc] {
            let pair = Pair::of(&a, &b, qp_type, &of(index));
            let path = pair.a.qp.query().unwrap().attr.path.unwrap();
            assert_eq!(path.vlan.map(|tag| tag.vid), a.gid(index).unwrap().vlan);
            let data = pattern(index as u8, 30_000);
            pair.a.mr.write(0, &data).unwrap();
            pair.b.qp.post_recv(RecvWr::new(1).sge(pair.b.mr.sge(0..30_000))).unwrap();
            pair.a.qp.post_send(SendWr::send(2).sge(pair.a.mr.sge(0..30_000))).unwrap();
            assert!(pair.at_a().is_success());
            assert!(pair.at_b().is_success());
            assert_eq!(bytes(&pair.b.mr, 0, 30_000), data);
        }
    }
    let (ours, theirs) = (a.stats(), b.stats());
    assert_eq!((ours.roce["drop_other_vlan"], theirs.roce["drop_other_vlan"]), (0, 0));
}

/// Whoever is told of first is chosen by default; the other end chooses by the way to that.
#[test]
fn the_gid_is_chosen_by_the_peer_where_none_is_named() {
    let (a, b) = trunk();
    let none = ConnectOptions::default();
    for peer in ["10.82.72.2", "10.64.5.2", "fd52:48:0:5::2", "10.66.88.2", "fd52:48:0:258::2"] {
        let (left, right) = (end(&a, QpType::Rc), end(&b, QpType::Rc));
        let told = left.qp.info_towards(ip(peer), &none).unwrap();
        right.qp.connect(&told, &none).unwrap();
        let answer = right.qp.info(&none);
        assert_eq!(answer.gid, ip(peer), "the address that is on the link of the first");
        left.qp.connect(&answer, &none).unwrap();
        let pair = Pair { a: left, b: right };
        pair.a.qp.post_send(SendWr::write(1, pair.b.mr.remote().at(0)).inline(b"auto")).unwrap();
        assert!(pair.at_a().is_success());
    }
    // Address handles, by route and by scope.
    let pd = a.alloc_pd();
    let far = b.gid(0).unwrap().address;
    let vlan = |attr: &AhAttr, to: IpAddr| pd.create_ah_with(to, attr).map(|ah| ah.dgid().ip());
    assert_eq!(vlan(&AhAttr::default(), ip("10.64.5.2")).unwrap(), ip("10.64.5.2"));
    let request = |to: &str| rockhopper::PathRequest::to(to.parse::<rockhopper::Destination>().unwrap());
    for (scope, vid) in [("ring1", None), ("ring1.5", Some(5)), ("ring1.600", Some(600))] {
        let path = a.find_path(&request(&format!("{far}%{scope}"))).unwrap();
        assert_eq!(path.addressing.vlan.map(|tag| tag.vid), vid);
        assert_eq!(a.gid(path.gid_index).unwrap().vlan, vid);
        assert_eq!(path.addressing.dmac, b.query_port().unwrap().mac);
    }
    let unknown = a.find_path(&request(&format!("{far}%ring1.7"))).unwrap_err().to_string();
    assert!(unknown.contains("name one of ring1, ring1.5, ring1.600"), "{unknown}");
}

#[test]
fn a_wrong_gid_is_refused_with_the_right_one() {
    let (a, b) = trunk();
    let pair = Pair::of(&a, &b, QpType::Rc, &of(4));
    let info: QpInfo = pair.b.qp.info(&of(4));
    let other = end(&a, QpType::Rc);
    let refused = other.qp.connect(&info, &of(1)).unwrap_err();
    assert!(matches!(refused, QpError::Resolve(ResolveError::Gid(WrongGid::OtherLink { .. }))));
    let words = refused.to_string();
    assert!(words.contains("use index 4 (10.64.5.1 in VLAN 5), which is on the same link"), "{words}");
    let wrong = a.alloc_pd().create_ah(ip("10.64.5.2"), Some(7)).unwrap_err().to_string();
    assert!(
        wrong.contains("GID index 7 is 10.66.88.1 in VLAN 600") && wrong.contains("use index 4"),
        "{wrong}"
    );
    // What was told without knowledge of the peer, and does not fit, is not changed behind the peer's back.
    let told = end(&a, QpType::Rc);
    assert_eq!(told.qp.info(&ConnectOptions::default()).gid, ip("10.82.72.1"));
    let words = told.qp.connect(&info, &ConnectOptions::default()).unwrap_err().to_string();
    assert!(words.contains("GID index 1 is 10.82.72.1") && words.contains("use index 4"), "{words}");
}

#[test]
fn datagrams_are_answered_in_the_vlan_that_they_came_in() {
    let (a, b) = trunk();
    // The link-local address is the same in every VLAN.
    for index in [0, 3, 4, 6] {
        let pair = Pair::of(&a, &b, QpType::Ud, &of(index));
        let key = QKey::new(0x1111_1111);
        pair.b.qp.post_recv(RecvWr::new(1).sge(pair.b.mr.sge(0..100))).unwrap();
        pair.a.qp.post_recv(RecvWr::new(2).sge(pair.a.mr.sge(0..100))).unwrap();
        let ah = pair.a.pd.create_ah(pair.b.qp.info(&of(index)).gid, Some(index)).unwrap();
        pair.a.qp.post_send(SendWr::ud_send(3, &ah, pair.b.qp.qpn(), key, None).inline(b"ask")).unwrap();
        assert!(pair.at_a().is_success());
        let came = pair.at_b();
        assert_eq!(came.vlan, a.gid(index).unwrap().vlan);
        let grh = bytes(&pair.b.mr, 0, 40).try_into().unwrap();
        let back = pair.b.pd.create_ah_from_wc(&came, &grh).unwrap();
        let answer = SendWr::ud_send(4, &back, came.src_qp, key, None).inline(b"answer");
        pair.b.qp.post_send(answer).unwrap();
        assert!(pair.at_b().is_success());
        assert_eq!(pair.at_a().vlan, a.gid(index).unwrap().vlan);
        assert_eq!(bytes(&pair.a.mr, 40, 6), b"answer");
    }
}

#[test]
fn groups_of_a_vlan_hear_only_what_is_sent_there() {
    let (a, b) = trunk();
    let group = ip("239.9.9.9");
    let key = QKey::new(0x1111_1111);
    let members: Vec<_> = [None, Some(5)]
        .into_iter()
        .map(|vlan| {
            let member = end(&b, QpType::Ud);
            member.qp.activate(&ConnectOptions::default()).unwrap();
            member.qp.attach_mcast_on(vlan, group).unwrap();
            (0..4).for_each(|n| member.qp.post_recv(RecvWr::new(n).sge(member.mr.sge(0..100))).unwrap());
            member
        })
        .collect();
    let sender = end(&a, QpType::Ud);
    sender.qp.activate(&ConnectOptions::default()).unwrap();
    for (index, expected) in [(4, 1), (1, 0)] {
        let ah = sender.pd.create_ah(group, Some(index)).unwrap();
        let to_all = SendWr::ud_send(1, &ah, rockhopper::Qpn::MULTICAST, key, None).inline(b"all");
        sender.qp.post_send(to_all).unwrap();
        let heard = members[expected].cq.wait(crate::support::SOON).unwrap();
        assert_eq!(heard.vlan, a.gid(index).unwrap().vlan);
        assert!(members[1 - expected].cq.poll_one().is_none());
    }
    members[1].qp.detach_mcast_on(Some(5), group).unwrap();
    assert!(matches!(members[1].qp.detach_mcast(group, 0), Err(QpError::NotAttached(_))));
    assert!(matches!(members[1].qp.attach_mcast_on(Some(9), group), Err(QpError::NoLink(_))));
}

#[test]
fn a_port_talks_to_itself_in_each_vlan_and_never_across() {
    let (device, _other) = trunk();
    // From one address to another, of one link.
    let later = device.add_address_on(Some(5), "10.64.5.77/24".parse().unwrap()).unwrap();
    for (near, far) in [(4, 4), (4, later), (3, 3), (1, 1), (8, 8)] {
        for qp_type in [QpType::Rc, QpType::Uc] {
            let (left, right) = (end(&device, qp_type), end(&device, qp_type));
            right.qp.connect(&left.qp.info(&of(near)), &of(far)).unwrap();
            left.qp.connect(&right.qp.info(&of(far)), &of(near)).unwrap();
            let pair = Pair { a: left, b: right };
            pair.b.qp.post_recv(RecvWr::new(1).sge(pair.b.mr.sge(0..10))).unwrap();
            pair.a.qp.post_send(SendWr::send(2).inline(b"to myself!")).unwrap();
            assert!(pair.at_a().is_success() && pair.at_b().is_success());
            assert_eq!(bytes(&pair.b.mr, 0, 10), b"to myself!");
        }
    }
    assert!(device.stats().roce["looped_frames"] > 0);
    let wrong = device.resolve(ip("10.64.5.1"), Some(1)).unwrap_err().to_string();
    assert!(wrong.contains("use index 4 (10.64.5.1 in VLAN 5), which is that address itself"), "{wrong}");
}

#[test]
fn what_uses_a_removed_address_ends_and_is_told() {
    let (a, b) = trunk();
    let own = pairs_from(&a, &b, &[1, 4, 7]);
    let ud = Pair::of(&a, &b, QpType::Ud, &of(4));
    let ah = ud.a.pd.create_ah(ip("10.64.5.2"), None).unwrap();
    while a.next_event(Duration::from_millis(50)).is_some() {}
    for pair in &own {
        pair.a.qp.post_recv(RecvWr::new(7).sge(pair.a.mr.sge(0..8))).unwrap();
    }
    assert!(a.remove_address_on(Some(5), ip("10.64.5.1")).unwrap());
    assert!(!a.remove_address_on(Some(5), ip("10.64.5.1")).unwrap());
    let states: Vec<QpState> = own.iter().map(|pair| pair.a.qp.state()).collect();
    assert_eq!(states, [QpState::Rts, QpState::Err, QpState::Rts]);
    let flushed = own[1].at_a();
    assert_eq!((flushed.wr_id, flushed.status), (7, WcStatus::WrFlushErr));
    let mut events = Vec::new();
    while let Some(event) = a.next_event(Duration::from_millis(100)) {
        events.push((event.kind, event.source));
    }
    assert!(events.contains(&(EventKind::GidChange, EventSource::Gid { port: 1, index: 4 })), "{events:?}");
    assert!(events.contains(&(EventKind::QpFatal, EventSource::Qp(own[1].a.qp.qpn()))), "{events:?}");
    assert_eq!(events.len(), 2, "{events:?}");
    // The peer's packets are dropped by name.
    own[1].b.qp.post_send(SendWr::write(1, own[1].a.mr.remote().at(0)).inline(b"late")).unwrap();
    let end = std::time::Instant::now() + crate::support::SOON;
    while a.stats().roce["drop_not_our_address"] == 0 {
        assert!(std::time::Instant::now() < end);
        b.drive();
        a.drive();
    }
    // So is what a datagram would say from there.
    let send = SendWr::ud_send(1, &ah, ud.b.qp.qpn(), QKey::new(0x1111_1111), None).inline(b"late");
    ud.a.qp.post_send(send).unwrap();
    assert_eq!(ud.at_a().status, WcStatus::LocQpOpErr);
    // The others go on, the index is free, and the address may come back.
    for pair in [&own[0], &own[2]] {
        pair.a.qp.post_send(SendWr::write(1, pair.b.mr.remote().at(0)).inline(b"still here")).unwrap();
        assert!(pair.at_a().is_success());
    }
    assert_eq!(a.gid(4), None);
    assert_eq!(a.add_address_on(Some(5), "10.64.5.1/24".parse().unwrap()).unwrap(), 4);
    let again = Pair::of(&a, &b, QpType::Rc, &of(4));
    again.a.qp.post_send(SendWr::write(1, again.b.mr.remote().at(0)).inline(b"back")).unwrap();
    assert!(again.at_a().is_success());
}

fn pairs_from(a: &Device, b: &Device, indices: &[usize]) -> Vec<Pair> {
    indices.iter().map(|&index| Pair::of(a, b, QpType::Rc, &of(index))).collect()
}
