//! In VLANs: connections, datagram services and groups stay on the link of the address that they were begun from (rocev2 facts,
//! wire 2 and 13).

use crate::support::{End, SOON, at, pair_over};
use rockhopper::cm::{CmAddr, CmEventKind, ConnParam, PortSpace, UdParam};
use rockhopper::{Ah, Destination, Device, RawPort, RecvWr, RingPair, SendWr};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};
use wire::{EthernetHeader, Qpn};

/// Ports that are untagged and in VLANs 5 and 600, with 10.64.5.0/24 and fd52:48:0:5::/64 in the first.
fn trunk() -> RingPair {
    RingPair { vlans: vec![5, 600], ..RingPair::default() }
}

/// The address that a device has in every VLAN.
fn link_local(device: &Device) -> IpAddr {
    device.gid(0).unwrap().address
}

fn vlan(end: &End) -> Option<u16> {
    end.id.path().unwrap().addressing.link_vlan()
}

/// Destinations of the second end in VLAN `vid`, as the first names them.
fn destinations(server: &Device, vid: u16) -> [CmAddr; 3] {
    let [high, low] = vid.to_be_bytes();
    let scoped = Destination { address: link_local(server), scope: Some(format!("ring1.{vid}")) };
    [
        at(&format!("10.{}.{low}.2", 64 + high), 7471).into(),
        at(&format!("fd52:48:0:{vid:x}::2"), 7471).into(),
        (scoped, 7471).into(),
    ]
}

#[test]
fn connections_are_made_used_and_ended_in_each() {
    let (client, server) = pair_over(&trunk());
    let listener = End::listening(&server, PortSpace::Tcp, at("::", 7471));
    let (own, peer) = (client.device(0).unwrap(), server.device(0).unwrap());
    for vid in [5, 600] {
        for to in destinations(&peer, vid) {
            let address = to.destination.address;
            let active = End::towards(&client, PortSpace::Tcp, None, to);
            let passive = active.establish_with(&listener);
            assert_eq!(passive.id.local_addr(), Some(SocketAddr::new(address, 7471)));
            assert_eq!(passive.id.peer_addr(), active.id.local_addr());
            for end in [&active, &passive] {
                assert_eq!(vlan(end), Some(vid), "{address}");
                let path = end.qp().query().unwrap().attr.path.unwrap();
                assert_eq!(path.link_vlan(), Some(vid), "{address}");
            }
            active.transfer_to(&passive, b"there");
            passive.transfer_to(&active, b"and back");
            active.id.disconnect().unwrap();
            assert!(matches!(passive.next(), CmEventKind::Disconnected));
            assert!(matches!(active.next(), CmEventKind::Disconnected));
        }
    }
    for stats in [own.stats(), peer.stats()] {
        assert_eq!(stats.roce["drop_other_vlan"], 0);
    }
}

/// A listener at an address of a VLAN hears nobody who asks for that port elsewhere.
#[test]
fn a_listener_hears_its_own_link_only() {
    let (client, server) = pair_over(&trunk());
    let _listener = End::listening(&server, PortSpace::Tcp, at("10.64.5.2", 7471));
    let active = End::towards(&client, PortSpace::Tcp, None, at("10.66.88.2", 7471));
    active.id.connect(&ConnParam::default()).unwrap();
    let CmEventKind::Rejected { reason, .. } = active.next() else { panic!("a refusal") };
    assert_eq!(reason, wire::mad::RejectReason::INVALID_SERVICE_ID);
}

/// From the link-local address, which is the same one on each link: the scope of the destination says which is meant.
#[test]
fn the_scope_chooses_the_link_of_an_address_that_is_on_several() {
    let (client, server) = pair_over(&trunk());
    let (own, peer) = (client.device(0).unwrap(), server.device(0).unwrap());
    for (scope, vid) in [("ring1", None), ("ring1.5", Some(5)), ("ring1.600", Some(600))] {
        let to = Destination { address: link_local(&peer), scope: Some(scope.into()) };
        let active = End::towards(&client, PortSpace::Tcp, Some(link_local(&own)), (to, 7471));
        assert_eq!(vlan(&active), vid);
        assert_eq!(active.id.local_addr().unwrap().ip(), link_local(&own));
    }
}

#[track_caller]
fn told(active: &End, listener: &End) -> (UdParam, End) {
    active.id.connect(&ConnParam::default()).unwrap();
    let (passive, _) = End::requested(listener);
    passive.qp().post_recv(RecvWr::new(2).sge(passive.mr().sge(0..128))).unwrap();
    passive.id.accept(&ConnParam::default()).unwrap();
    match active.next() {
        CmEventKind::Established { ud: Some(ud), .. } => (ud, passive),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn send(from: &End, to: &UdParam, text: &[u8]) {
    let ah = Ah::new(from.pd.as_ref().unwrap(), to.addressing).unwrap();
    from.qp().post_send(SendWr::ud_send(1, &ah, to.qpn, to.qkey, None).inline(text)).unwrap();
}

/// Of the peer's, and of the endpoint's own: those stay off the wire.
#[test]
fn datagram_services_are_found_and_used_in_each() {
    let (client, server) = pair_over(&trunk());
    let (own, peer) = (client.device(0).unwrap(), server.device(0).unwrap());
    for (endpoint, device, is_own) in [(&server, &peer, false), (&client, &own, true)] {
        let listener = End::listening(endpoint, PortSpace::Udp, at("::", 7471));
        for to in destinations(device, 5) {
            let to = if is_own { to_ourselves(to) } else { to };
            let address = to.destination.address;
            let active = End::towards(&client, PortSpace::Udp, None, to);
            let sent = client.stats().ports[0].management["mad_sent"];
            let (ud, passive) = told(&active, &listener);
            assert_eq!((vlan(&active), ud.addressing.link_vlan()), (Some(5), Some(5)), "{address}");
            send(&active, &ud, b"hello");
            let came = passive.cq().wait(SOON).unwrap();
            assert_eq!((came.is_success(), came.vlan, came.byte_len), (true, Some(5), 45), "{address}");
            assert_eq!(came.src_qp, active.qp().qpn());
            let by_wire = client.stats().ports[0].management["mad_sent"] - sent;
            assert_eq!(by_wire == 0, is_own, "{by_wire} by wire to {address}");
        }
    }
}

/// The same link, our own address on it.
fn to_ourselves(to: CmAddr) -> CmAddr {
    let address = match to.destination.address {
        IpAddr::V4(v4) => [&v4.octets()[..3], &[1]].concat().try_into().map(|v4: [u8; 4]| v4.into()),
        IpAddr::V6(v6) if v6.is_unicast_link_local() => Ok(v6.into()),
        IpAddr::V6(v6) => [&v6.octets()[..15], &[1]].concat().try_into().map(|v6: [u8; 16]| v6.into()),
    };
    let destination = Destination { address: address.unwrap(), ..to.destination };
    CmAddr { destination, ..to }
}

/// A word about a group: the VLAN of its frame, and the record's type (unverified RFC 3376 4.2.12, RFC 3810 5.2.12).
type Report = (Option<u16>, u8);
const JOINED: u8 = 4;
const LEFT: u8 = 3;

/// What the port has said of a group. The record is behind the IP header with the router alert and 8 bytes of the report.
fn reports(port: &mut RawPort, group: &IpAddr) -> Vec<Report> {
    let mut frames = Vec::new();
    port.receive_all(&mut frames);
    let of_group = |frame: &Vec<u8>| {
        let header = EthernetHeader::parse(frame)?;
        let (protocol, record, octets) = match group {
            IpAddr::V4(v4) => ((9, 2), 24 + 8, v4.octets().to_vec()),
            IpAddr::V6(v6) => ((40, 58), 48 + 8, v6.octets().to_vec()),
        };
        let packet = &frame[header.len()..];
        let named = packet.get(record + 4..)?.starts_with(&octets) && packet[protocol.0] == protocol.1;
        named.then(|| (header.vlan.map(|tag| tag.vid), packet[record]))
    };
    frames.iter().filter_map(of_group).collect()
}

/// Waits for a word about a group. What was said before is said once more a second later; `never` is said not at all.
#[track_caller]
fn expect_report(router: &mut RawPort, group: &IpAddr, wanted: Report, never: Option<Report>) {
    let end = Instant::now() + SOON;
    loop {
        let heard = reports(router, group);
        assert!(!heard.iter().any(|one| Some(*one) == never), "{heard:?} of {group}");
        if heard.contains(&wanted) {
            return;
        }
        assert!(Instant::now() < end, "no report of {group}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// rocev2 facts, wire 12 and 13: the link of a group is that of the source address. Joined, heard, and left there.
#[test]
fn groups_are_joined_on_the_link_of_the_bound_address() {
    let (mut router, endpoint) = RawPort::beside(&trunk()).unwrap();
    let device = endpoint.device(0).unwrap();
    let other_family = |group: &IpAddr| if group.is_ipv4() { "fd52:48:0:5::2" } else { "10.64.5.2" };
    for group in ["239.77.1.5", "ff15::77:5"] {
        let group: IpAddr = group.parse().unwrap();
        let same_family = if group.is_ipv4() { "10.64.5.2" } else { "fd52:48:0:5::2" };
        let bound = |own: &str| {
            let mut end = End::new(&endpoint, PortSpace::Udp);
            end.id.bind(at(own, 0)).unwrap();
            end.equip();
            end
        };
        let by_resolving =
            |own: &str| End::towards(&endpoint, PortSpace::Udp, Some(own.parse().unwrap()), (group, 0));
        let in_vlan: Vec<End> =
            vec![bound(same_family), by_resolving(same_family), bound(other_family(&group))];
        // One of the port's own link hears nothing of it.
        let outside = bound(if group.is_ipv4() { "10.82.72.2" } else { "fd52:48::2" });
        let join = |end: &End| {
            end.qp().post_recv(RecvWr::new(2).sge(end.mr().sge(0..128))).unwrap();
            end.id.join_multicast(group).unwrap();
            match end.next() {
                CmEventKind::MulticastJoin { ud, .. } => ud,
                other => panic!("{other:?}"),
            }
        };
        let uds: Vec<UdParam> = in_vlan.iter().map(join).collect();
        for ud in &uds {
            assert_eq!((ud.addressing.link_vlan(), ud.qpn), (Some(5), Qpn::MULTICAST));
            assert!(device.gid_index_on(ud.addressing.src, ud.addressing.version, Some(5)).is_some());
        }
        expect_report(&mut router, &group, (Some(5), JOINED), Some((None, JOINED)));
        assert_eq!(join(&outside).addressing.link_vlan(), None);
        expect_report(&mut router, &group, (None, JOINED), None);

        send(&in_vlan[0], &uds[0], b"all");
        for end in &in_vlan {
            let done: Vec<_> =
                (0..1 + usize::from(end.id == in_vlan[0].id)).map(|_| end.cq().wait(SOON).unwrap()).collect();
            let copy = done.iter().find(|done| done.wr_id == 2).expect("a local copy");
            assert_eq!((copy.vlan, copy.byte_len), (Some(5), 43));
        }
        assert!(outside.cq().poll_one().is_none());

        // Left where they were joined; the last one, by its end.
        let [one, two, last] = <[End; 3]>::try_from(in_vlan).ok().unwrap();
        one.id.leave_multicast(group).unwrap();
        two.id.leave_multicast(group).unwrap();
        assert!(!reports(&mut router, &group).iter().any(|(_, said)| *said == LEFT), "{group}");
        drop(last);
        expect_report(&mut router, &group, (Some(5), LEFT), Some((None, LEFT)));
    }
}
