//! Prefixes, next hops, source addresses, GIDs, configuration.

use super::*;
use wire::RoceVersion;

fn router(addresses: &[&str], gateway_v4: Option<&str>, gateway_v6: Option<&str>) -> Router {
    Router {
        addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
        gateway_v4: gateway_v4.map(|text| text.parse().unwrap()),
        gateway_v6: gateway_v6.map(|text| text.parse().unwrap()),
    }
}

fn way(source: &str, next_hop: &str) -> Result<Route, RouteError> {
    Ok(Route { source: ip(source), next_hop: NextHop::Neighbour(ip(next_hop)) })
}

#[test]
fn the_longest_prefix_gives_the_source() {
    let router = router(&["10.0.0.1/8", "10.1.0.1/16", "10.1.0.2/16"], None, None);
    assert_eq!(router.route(ip("10.2.0.9")), way("10.0.0.1", "10.2.0.9"));
    assert_eq!(router.route(ip("10.1.0.9")), way("10.1.0.1", "10.1.0.9"), "the earlier of equals");
    assert_eq!(router.route(ip("11.0.0.9")), Err(RouteError::NoGateway));
    assert_eq!(router.route(ip("2001:db8::9")), Err(RouteError::NoGateway));
}

#[test]
fn beyond_the_link_goes_to_the_gateway_from_a_global_address() {
    let router = router(
        &["fe80::ff:fe00:1/64", "192.0.2.1/24", "198.51.100.1/24", "2001:db8::1/64"],
        Some("198.51.100.254"),
        Some("fe80::fe"),
    );
    assert_eq!(router.route(ip("203.0.113.9")), way("198.51.100.1", "198.51.100.254"));
    assert_eq!(router.route(ip("2001:db8:1::9")), way("2001:db8::1", "fe80::fe"));
    assert_eq!(router.route(ip("fe80::9")), way("fe80::ff:fe00:1", "fe80::9"));
}

#[test]
fn a_link_local_address_alone_does_not_reach_beyond_the_link() {
    let router = router(&["fe80::ff:fe00:1/64"], None, Some("fe80::fe"));
    assert_eq!(router.route(ip("2001:db8:1::9")), Err(RouteError::NoSource));
}

#[test]
fn groups_are_sent_from_an_address_of_their_scope() {
    let router = router(&["fe80::ff:fe00:1/64", "192.0.2.1/24", "2001:db8::1/64"], None, None);
    let source = |group| router.route(ip(group)).map(|route| route.source);
    assert_eq!(source("ff02::5"), Ok(ip("fe80::ff:fe00:1")));
    assert_eq!(source("ff0e::5"), Ok(ip("2001:db8::1")));
    assert_eq!(source("::ffff:239.0.0.5"), Ok(ip("192.0.2.1")));
}

#[test]
fn broadcast_and_nonsense_are_refused() {
    let router = router(&["192.0.2.1/24", "198.51.100.0/31"], Some("192.0.2.254"), None);
    for text in ["192.0.2.255", "192.0.2.0", "255.255.255.255", "0.0.0.0", "127.0.0.1", "::", "::1"] {
        assert_eq!(router.route(ip(text)), Err(RouteError::BadDestination), "{text}");
    }
    assert_eq!(
        router.route(ip("198.51.100.1")),
        way("198.51.100.0", "198.51.100.1"),
        "a /31 has no broadcast"
    );
}

#[test]
fn prefixes_are_read_and_refused() {
    let parse = |text: &str| text.parse::<Prefix>();
    assert_eq!(parse("192.0.2.1/24").map(|prefix| prefix.to_string()), Ok("192.0.2.1/24".to_owned()));
    assert_eq!(parse("192.0.2.1"), Err(PrefixError::Syntax));
    assert_eq!(parse("192.0.2/24"), Err(PrefixError::Syntax));
    assert_eq!(parse("192.0.2.1/33"), Err(PrefixError::TooLong));
    assert_eq!(parse("2001:db8::1/129"), Err(PrefixError::TooLong));
    for text in
        ["224.0.0.1/4", "0.0.0.0/0", "127.0.0.1/8", "255.255.255.255/32", "ff02::1/64", "::ffff:1.2.3.4/96"]
    {
        assert_eq!(parse(text), Err(PrefixError::NotUnicast), "{text}");
    }
    assert!(parse("192.0.2.1/0").unwrap().contains(ip("8.8.8.8")));
    assert!(parse("2001:db8::1/0").unwrap().contains(ip("fe80::1")));
    assert!(!parse("2001:db8::1/128").unwrap().contains(ip("2001:db8::2")));
}

#[test]
fn gids_keep_their_index() {
    let mut gids = GidTable::new(Mac([0x0c, 0x42, 0xa1, 0x10, 0x20, 0x30]), None, &[RoceVersion::V2]);
    assert_eq!(gids.get(0).map(|entry| entry.address), Some(ip("fe80::e42:a1ff:fe10:2030")));
    assert_eq!(gids.add(ip("192.0.2.1"), None), [1]);
    assert_eq!(gids.add(ip("2001:db8::1"), None), [2]);
    assert_eq!(gids.add(ip("::ffff:192.0.2.1"), None), [1], "the same GID");
    let mapped = Gid([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1]);
    assert_eq!(
        gids.get(1),
        Some(GidEntry { gid: mapped, address: ip("192.0.2.1"), gid_type: RoceVersion::V2, vlan: None })
    );
    assert_eq!(gids.index_of(mapped), Some(1));
    assert_eq!(gids.remove(ip("192.0.2.1"), None), [1]);
    assert_eq!(gids.get(1), None);
    assert_eq!(gids.index_of_address(ip("2001:db8::1")), Some(2), "stays where it was");
    assert_eq!(gids.add(ip("192.0.2.7"), None), [1], "the hole");
    assert_eq!(gids.remove(ip("fe80::e42:a1ff:fe10:2030"), None), [0usize; 0], "the default stays");
    assert_eq!(gids.iter().map(|(index, _)| index).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(gids.get(3), None);
}

#[test]
fn a_configuration_that_cannot_work_is_refused() {
    let refused = |config| Interface::new(config).err();
    assert_eq!(refused(Config { mac: Mac([1, 0, 0, 0, 0, 1]), ..config() }), Some(ConfigError::Mac));
    assert_eq!(refused(Config { mac: Mac([0; 6]), ..config() }), Some(ConfigError::Mac));
    assert_eq!(refused(Config { vlan: Some(4095), ..config() }), Some(ConfigError::Vlan(4095)));
    assert_eq!(refused(Config { vlan: Some(0), ..config() }), Some(ConfigError::Vlan(0)));
    assert_eq!(refused(Config { mtu: 1279, ..config() }), Some(ConfigError::Mtu(1279)));
    let v4 = |text: &str| Config { gateway_v4: Some(text.parse().unwrap()), ..config() };
    assert_eq!(refused(v4("192.0.2.1")), Some(ConfigError::Gateway(ip("192.0.2.1"))));
    assert_eq!(refused(v4("203.0.113.1")), Some(ConfigError::GatewayOffLink(ip("203.0.113.1"))));
    let gateway_v6 = Some("fe80::fe".parse().unwrap());
    assert_eq!(refused(Config { gateway_v6, ..config() }), None);
}

/// As a ConnectX has it: every GID twice, v1 then v2.
#[test]
fn a_port_that_speaks_both_has_every_gid_twice() {
    let mac = Mac([0x0c, 0x42, 0xa1, 0x10, 0x20, 0x30]);
    let mut gids = GidTable::new(mac, None, &[RoceVersion::V2, RoceVersion::V1]);
    assert_eq!(gids.add(ip("192.0.2.1"), None), [2, 3], "v2 last");
    let types: Vec<_> = gids.iter().map(|(_, entry)| (entry.address.is_ipv4(), entry.gid_type)).collect();
    let (v1, v2) = (RoceVersion::V1, RoceVersion::V2);
    assert_eq!(types, [(false, v1), (false, v2), (true, v1), (true, v2)]);
    assert_eq!(gids.index_of(ip("192.0.2.1").into()), Some(3));
    assert_eq!(gids.index_of_type(ip("192.0.2.1").into(), v1), Some(2));
    assert_eq!(gids.remove(ip("192.0.2.1"), None), [2, 3]);
    assert!(gids.remove(link_local(mac).into(), None).is_empty(), "both defaults stay");
    let only = GidTable::new(mac, None, &[v1]);
    assert_eq!((only.default_type(), only.iter().count()), (v1, 1));
}
