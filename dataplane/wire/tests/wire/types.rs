//! Numbers, keys and addresses: ranges, text, and the rules that go with them.

use std::net::IpAddr;
use wire::*;

fn gid(text: &str) -> Gid {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn numbers_print_as_the_field_writes_them() {
    assert_eq!(
        (Psn::new(0x123).to_string(), format!("{:?}", Psn::new(0x123))),
        ("0x000123".into(), "Psn(0x000123)".into())
    );
    assert_eq!(format!("{} {:?}", Qpn::MULTICAST, Qpn::GSI), "0xffffff Qpn(0x000001)");
    assert_eq!(format!("{} {:?}", RKey::new(0x1A2B), LKey::new(1)), "0x00001a2b LKey(0x00000001)");
    assert_eq!(format!("{} {:?} {}", PKey(0xFFFF), PKey(1), QKey::GSI), "0xffff PKey(0x0001) 0x80010000");
    assert_eq!(Mtu::Mtu4096.to_string(), "4096");
    assert_eq!(format!("{:?}", Opcode(0x0A)), "Opcode(0x0a)");
}

#[test]
fn numbers_keep_to_24_bits() {
    assert_eq!(Qpn::new(0x0100_0001), Qpn::GSI);
    assert_eq!(Qpn::try_from(0x00FF_FFFF), Ok(Qpn::MULTICAST));
    assert_eq!(Qpn::try_from(0x0100_0000), Err(OutOfRange(0x0100_0000)));
    assert_eq!(Msn::from_bytes([1, 2, 3]).value(), 0x01_0203);
}

/// rocev2 facts, wire 5: low 15 bits equal, and one side at least a full member.
#[test]
fn partitions_match() {
    for (ours, theirs, matches) in [
        (0xFFFF, 0xFFFF, true),
        (0xFFFF, 0x7FFF, true),
        (0x7FFF, 0xFFFF, true),
        (0x7FFF, 0x7FFF, false),
        (0xFFFF, 0x1234, false),
        (0xFFFF, 0xFFFE, false),
    ] {
        assert_eq!(PKey(ours).matches(PKey(theirs)), matches, "{ours:#x} {theirs:#x}");
    }
}

#[test]
fn privileged_queue_keys_have_the_top_bit() {
    assert!(QKey::GSI.is_privileged() && !QKey::new(0x7FFF_FFFF).is_privileged());
}

#[test]
fn macs_read_and_print() {
    let mac = Mac([0x02, 0, 0, 0, 0x0B, 0xFF]);
    assert_eq!(mac.to_string(), "02:00:00:00:0b:ff");
    assert_eq!("02:0:00:00:0B:ff".parse(), Ok(mac));
    for wrong in [
        "",
        "02:00:00:00:00",
        "02:00:00:00:00:00:00",
        "02:00:00:00:00:+1",
        "02:00:00:00:00:1ff",
        "x",
        "é:1:1:1:1:1",
    ] {
        assert_eq!(wrong.parse::<Mac>(), Err(ParseMacError), "{wrong}");
    }
    assert!(
        Mac::BROADCAST.is_multicast() && Mac([1, 0, 0x5E, 0, 0, 1]).is_multicast() && !mac.is_multicast()
    );
}

#[test]
fn gids_are_addresses() {
    for text in ["192.0.2.10", "2001:db8::a", "fe80::1", "ff0e::1:2:3"] {
        let address: IpAddr = text.parse().expect("an address");
        assert_eq!(gid(text), Gid::from(address));
        assert_eq!(IpAddr::from(gid(text)), address);
    }
    assert_eq!(gid("::ffff:192.0.2.10"), Gid::from_v4([192, 0, 2, 10]));
    assert_eq!(gid("192.0.2.10").to_string(), "::ffff:192.0.2.10");
    assert!(gid("192.0.2.10").is_v4() && !gid("::192.0.2.10").is_v4());
    assert!(gid("::").is_unspecified() && !gid("::1").is_unspecified());
    assert_eq!("eth0".parse::<Gid>(), Err(ParseGidError));
}

/// rocev2 facts, wire 13.
#[test]
fn default_gids_come_from_the_mac() {
    let mac = Mac([0x02, 0, 0, 0, 0, 0x0A]);
    assert_eq!(Gid::link_local(mac), gid("fe80::ff:fe00:a"));
    assert_eq!(gid("fe80::ff:fe00:a").link_local_mac(), Some(mac));
    assert_eq!(Gid::link_local(Mac([0x7C, 0xFE, 0x90, 0x64, 0x3B, 0x32])), gid("fe80::7efe:90ff:fe64:3b32"));
    assert_eq!(gid("fe80::1").link_local_mac(), None);
    assert_eq!(gid("2001:db8::ff:fe00:a").link_local_mac(), None);
}

/// rocev2 facts, wire 12.
#[test]
fn groups_have_their_macs() {
    let mac = |text: &str| gid(text).multicast_mac().map(|mac| mac.to_string());
    assert_eq!(mac("239.205.1.2").as_deref(), Some("01:00:5e:4d:01:02"));
    assert_eq!(mac("ff0e::1:2:3").as_deref(), Some("33:33:00:02:00:03"));
    assert_eq!(mac("192.0.2.1"), None);
    assert_eq!(mac("2001:db8::1"), None);
    assert!(
        gid("224.0.0.1").is_multicast()
            && gid("239.255.255.255").is_multicast()
            && !gid("240.0.0.1").is_multicast()
    );
}

/// rocev2 facts, wire 1: Linux takes 96 bytes off.
#[test]
fn path_mtus_fit_the_interface() {
    for (ip_mtu, expected) in [
        (0, None),
        (351, None),
        (352, Some(Mtu::Mtu256)),
        (1500, Some(Mtu::Mtu1024)),
        (4191, Some(Mtu::Mtu2048)),
        (4192, Some(Mtu::Mtu4096)),
        (9000, Some(Mtu::Mtu4096)),
    ] {
        assert_eq!(Mtu::from_ip_mtu(ip_mtu), expected, "{ip_mtu}");
    }
}

#[test]
fn path_mtus_have_codes() {
    assert_eq!(Mtu::ALL.map(Mtu::bytes), [256, 512, 1024, 2048, 4096]);
    for mtu in Mtu::ALL {
        assert_eq!(Mtu::from_code(mtu.code()), Some(mtu));
        assert_eq!(Mtu::from_bytes(mtu.bytes()), Some(mtu));
    }
    assert_eq!((Mtu::from_code(0), Mtu::from_code(6), Mtu::from_bytes(1000)), (None, None, None));
}

/// rocev2 facts, transport 7: max(1, ceil(length / PMTU)).
#[test]
fn messages_span_packets() {
    for (len, expected) in [(0, 1), (1, 1), (256, 1), (257, 2), (600, 3), (1 << 31, 1 << 23)] {
        assert_eq!(packets(len, Mtu::Mtu256), expected, "{len}");
    }
    assert_eq!(packets(u32::MAX, Mtu::Mtu4096), 1 << 20);
}
