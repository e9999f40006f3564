//! The links of a port: whose frame is whose, which GID leads where, and what is said of a wrong one.

use super::vectors::*;
use super::*;
use wire::RoceVersion;

/// Untagged 192.0.2.1/24 and 2001:db8::1/64, and VLAN 100 with the same addresses and `more`.
fn stack(more: &[&str], types: &[RoceVersion]) -> Stack {
    let mut tagged = Config { vlan: Some(100), ..config() };
    tagged.addresses.extend(more.iter().map(|text| text.parse::<Prefix>().unwrap()));
    Stack::new(types, config(), vec![tagged]).unwrap()
}

fn drawn(stack: &mut Stack, frame: Frame, stripped: Option<u16>) -> Vec<Vec<u8>> {
    stack.on_frame(0, &frame.bytes(), stripped);
    std::iter::from_fn(|| stack.poll_transmit()).collect()
}

fn happened(stack: &mut Stack) -> Vec<Event> {
    std::iter::from_fn(|| stack.poll_event()).collect()
}

fn want(destination: &str) -> Want {
    Want { destination: ip(destination), scope: Scope::Any, index: None, gid_type: None }
}

#[test]
fn a_frame_is_the_business_of_the_link_that_its_tag_names() {
    let mut stack = stack(&[], &[]);
    assert_eq!(drawn(&mut stack, ARP_REQUEST, None), [ARP_REPLY.bytes()]);
    assert_eq!(drawn(&mut stack, ARP_REQUEST_TAGGED, None), [ARP_REPLY_TAGGED.bytes()]);
    assert_eq!(drawn(&mut stack, ARP_REQUEST_PRIORITY, None), [ARP_REPLY_PRIORITY.bytes()]);
    assert_eq!(drawn(&mut stack, PING6_TAGGED, None), [PONG6_TAGGED.bytes()]);
    // The NIC took the tag off: the same link, and the answer is tagged all the same.
    assert_eq!(drawn(&mut stack, ARP_REQUEST, Some(0xA064)), [ARP_REPLY_TAGGED.bytes()]);
    assert!(drawn(&mut stack, ARP_REQUEST, Some(101)).is_empty());
    assert_eq!(stack.count_of(Counter::OtherVlan), 1);
    // What one link has learned, another does not know.
    assert_eq!(stack.link(Some(100)).unwrap().counters().get(Counter::ArpAnswered), 2);
    assert_eq!(stack.own().counters().get(Counter::ArpAnswered), 2);
}

#[test]
fn links_resolve_and_announce_each_for_itself() {
    let mut stack = stack(&[], &[]);
    stack.announce(0);
    let sent: Vec<_> = std::iter::from_fn(|| stack.poll_transmit()).collect();
    assert_eq!(sent.iter().filter(|frame| frame[12..14] == [0x81, 0]).count(), 3, "three addresses each");
    assert_eq!(sent.len(), 6);
    assert_eq!(stack.resolve(0, Some(100), ip("192.0.2.2")), Resolution::Pending);
    assert_eq!(stack.poll_transmit(), Some(ARP_ASK_TAGGED.bytes()));
    assert_eq!(stack.resolve(0, None, ip("192.0.2.2")), Resolution::Pending);
    assert_eq!(stack.poll_transmit(), Some(ARP_ASK.bytes()));
    // The answer is untagged.
    stack.on_frame(1, &ARP_ANSWER.bytes(), None);
    assert_eq!(stack.resolve(2, None, ip("192.0.2.2")), Resolution::Ready(PEER));
    assert_eq!(stack.resolve(2, Some(100), ip("192.0.2.2")), Resolution::Pending);
    assert_eq!(stack.resolve(2, Some(7), ip("192.0.2.2")), Resolution::Failed, "no such link");
    let event = NeighbourEvent::Resolved { address: ip("192.0.2.2"), mac: PEER };
    assert_eq!(happened(&mut stack), [Event::Neighbour { vlan: None, event }]);
    stack.on_frame(3, &ARP_ANSWER.bytes(), Some(100));
    assert_eq!(happened(&mut stack), [Event::Neighbour { vlan: Some(100), event }]);
}

/// Who is told of a station with our address has to know on which link it is.
#[test]
fn a_conflict_is_of_a_link() {
    let mut stack = stack(&[], &[]);
    for vlan in [Some(100), None] {
        stack.on_frame(0, &ARP_CONFLICT.bytes(), vlan);
        let address = ip("192.0.2.1");
        assert_eq!(happened(&mut stack), [Event::Conflict { vlan, address, mac: OTHER }]);
        assert_eq!(stack.link(vlan).unwrap().conflicts().count(), 1);
    }
}

#[test]
fn every_link_has_its_gids_and_an_index_stays_with_its_address() {
    let mut stack = stack(&["10.0.5.1/24"], &[]);
    let table = |stack: &Stack| -> Vec<String> {
        stack.gids().iter().map(|(index, entry)| format!("{index} {entry}")).collect()
    };
    let all = [
        "0 fe80::ff:fe00:1",
        "1 192.0.2.1",
        "2 2001:db8::1",
        "3 fe80::ff:fe00:1 in VLAN 100",
        "4 192.0.2.1 in VLAN 100",
        "5 2001:db8::1 in VLAN 100",
        "6 10.0.5.1 in VLAN 100",
    ];
    assert_eq!(table(&stack), all);
    assert_eq!(stack.remove_address(Some(100), ip("192.0.2.1")), Ok(true));
    assert_eq!(stack.remove_address(Some(100), ip("192.0.2.1")), Ok(false));
    assert_eq!(happened(&mut stack), [Event::GidChange { index: 4 }]);
    assert_eq!(table(&stack), [&all[..4], &all[5..]].concat());
    assert!(drawn(&mut stack, ARP_REQUEST_TAGGED, None).is_empty());
    assert_eq!(drawn(&mut stack, ARP_REQUEST, None), [ARP_REPLY.bytes()], "the other link has it still");
    assert_eq!(stack.add_address(None, "10.9.9.9/8".parse().unwrap()), Ok(4), "the hole");
    assert_eq!(stack.add_address(None, "10.9.9.9/16".parse().unwrap()), Ok(4));
    assert_eq!(happened(&mut stack), [Event::GidChange { index: 4 }], "another prefix is no other GID");
    assert!(stack.route(ip("10.8.0.1")).is_err(), "the prefix is the new one");
    let default = ip("fe80::ff:fe00:1");
    assert_eq!(stack.remove_address(Some(100), default), Err(AddressRefused::Default(default)));
    let nowhere = stack.add_address(Some(9), "10.9.9.9/8".parse().unwrap());
    assert_eq!(nowhere, Err(AddressRefused::NoLink(Some(9))));
}

#[test]
fn both_types_of_a_gid_come_and_go_together() {
    let mut stack = stack(&[], &[RoceVersion::V1, RoceVersion::V2]);
    assert_eq!(stack.add_address(Some(100), "10.0.5.1/24".parse().unwrap()), Ok(13), "that of v2");
    let changes = [Event::GidChange { index: 12 }, Event::GidChange { index: 13 }];
    assert_eq!(happened(&mut stack), changes);
    assert_eq!(stack.remove_address(Some(100), ip("10.0.5.1")), Ok(true));
    assert_eq!(happened(&mut stack), changes);
}

#[test]
fn a_link_takes_so_many_addresses() {
    let mut stack = stack(&[], &[]);
    let numbered = |n: usize| format!("10.3.0.{n}/24").parse::<Prefix>().unwrap();
    for n in 3..MAX_ADDRESSES {
        stack.add_address(None, numbered(n)).unwrap();
    }
    assert_eq!(stack.add_address(None, numbered(100)), Err(AddressRefused::Full));
    assert_eq!(stack.own().addresses().len(), MAX_ADDRESSES);
    stack.add_address(Some(100), numbered(100)).unwrap();
    let many = (1..=MAX_ADDRESSES).map(numbered).collect();
    assert_eq!(Interface::new(Config::new(US, many)).err(), Some(ConfigError::Addresses));
    let twice = Config { vlan: Some(100), ..config() };
    let refused = Stack::new(&[], config(), vec![twice.clone(), twice]).err();
    assert_eq!(refused, Some(ConfigError::SameVlan(100)));
}

#[test]
fn the_gid_is_chosen_by_the_way_to_the_destination() {
    let mut stack = stack(&["10.0.5.1/24", "10.0.0.1/8"], &[RoceVersion::V1, RoceVersion::V2]);
    let chosen = |stack: &Stack, want: Want| {
        let choice = stack.choose(&want).unwrap();
        assert_eq!(stack.gids().get(choice.index), Some(choice.entry));
        format!("{} {:?}", choice.entry, choice.entry.gid_type)
    };
    for (destination, entry) in [
        ("192.0.2.9", "192.0.2.1 V2"),
        ("::ffff:192.0.2.9", "192.0.2.1 V2"),
        ("2001:db8::9", "2001:db8::1 V2"),
        ("10.0.5.9", "10.0.5.1 in VLAN 100 V2"),
        ("10.0.6.9", "10.0.0.1 in VLAN 100 V2"),
        ("10.0.0.1", "10.0.0.1 in VLAN 100 V2"),
        ("fe80::9", "fe80::ff:fe00:1 V2"),
    ] {
        assert_eq!(chosen(&stack, want(destination)), entry, "{destination}");
    }
    let v1 = Want { gid_type: Some(RoceVersion::V1), ..want("10.0.5.9") };
    assert_eq!(chosen(&stack, v1), "10.0.5.1 in VLAN 100 V1");
    let scoped = Want { scope: Scope::Link(Some(100)), ..want("fe80::9") };
    assert_eq!(chosen(&stack, scoped), "fe80::ff:fe00:1 in VLAN 100 V2");
    // A longer prefix elsewhere takes over, and gives back.
    stack.add_address(None, "10.0.6.1/24".parse().unwrap()).unwrap();
    assert_eq!(chosen(&stack, want("10.0.6.9")), "10.0.6.1 V2");
    stack.remove_address(None, ip("10.0.6.1")).unwrap();
    assert_eq!(chosen(&stack, want("10.0.6.9")), "10.0.0.1 in VLAN 100 V2");
    // The port's own link goes first where it fits as well, and by its longest prefix only.
    stack.add_address(None, "10.0.7.1/16".parse().unwrap()).unwrap();
    assert_eq!(chosen(&stack, want("10.0.5.9")), "10.0.5.1 in VLAN 100 V2", "24 bits, and 8 bits besides");
    assert_eq!(chosen(&stack, want("10.0.6.9")), "10.0.7.1 V2", "16 bits, and 8 there");
}

#[test]
fn a_wrong_choice_is_told_with_the_right_one() {
    let gateway = Some("10.0.5.254".parse().unwrap());
    let tagged = Config {
        vlan: Some(5),
        gateway_v4: gateway,
        ..Config::new(US, vec!["10.0.5.1/24".parse().unwrap()])
    };
    let stack = Stack::new(&[], config(), vec![tagged]).unwrap();
    let words = |destination, index| {
        stack.choose(&Want { index: Some(index), ..want(destination) }).unwrap_err().to_string()
    };
    for (destination, index, expected) in [
        (
            "192.0.2.9",
            9,
            "the port has no GID with index 9; use index 1 (192.0.2.1), which is on the same link",
        ),
        (
            "192.0.2.9",
            2,
            "GID index 2 is 2001:db8::1, which cannot send to 192.0.2.9: one is IPv4, the other IPv6; \
             use index 1 (192.0.2.1), which is on the same link",
        ),
        (
            "10.0.5.9",
            1,
            "GID index 1 is 192.0.2.1, from where 10.0.5.9 is not reached (not on the link, and no gateway is \
             configured); use index 4 (10.0.5.1 in VLAN 5), which is on the same link",
        ),
        (
            "203.0.113.9",
            1,
            "GID index 1 is 192.0.2.1, from where 203.0.113.9 is not reached (not on the link, and no gateway is \
             configured); use index 4 (10.0.5.1 in VLAN 5), which reaches it by the gateway 10.0.5.254",
        ),
        (
            "10.0.5.1",
            1,
            "GID index 1 is 192.0.2.1, from where 10.0.5.1 is not reached (not on the link, and no gateway is \
             configured); use index 4 (10.0.5.1 in VLAN 5), which is that address itself",
        ),
        (
            "2001:db9::1",
            1,
            "GID index 1 is 192.0.2.1, which cannot send to 2001:db9::1: one is IPv4, the other IPv6; \
             no GID of the port leads to 2001:db9::1",
        ),
    ] {
        assert_eq!(words(destination, index), expected);
    }
    let scoped = Want { scope: Scope::Link(Some(5)), index: Some(0), ..want("fe80::9") };
    let refused = stack.choose(&scoped).unwrap_err().to_string();
    assert!(
        refused.contains("the address names the VLAN 5); use index 3 (fe80::ff:fe00:1 in VLAN 5)"),
        "{refused}"
    );
    let other_type = Want { gid_type: Some(RoceVersion::V1), ..want("192.0.2.9") };
    let refused = stack.choose(&other_type).unwrap_err();
    assert_eq!(refused, WrongGid::Type(RoceVersion::V1));
    assert!(
        refused.to_string().starts_with("the port does not speak RoCE v1; name it in gid_types"),
        "{refused}"
    );
    // No router passes on what comes from a link-local address.
    let gateway_v6 = Some("fe80::fe".parse().unwrap());
    let stack = Stack::new(&[], Config { gateway_v6, ..config() }, Vec::new()).unwrap();
    let refused = stack.choose(&Want { index: Some(0), ..want("2001:db9::1") }).unwrap_err().to_string();
    assert!(
        refused.contains("use index 2 (2001:db8::1), which reaches it by the gateway fe80::fe"),
        "{refused}"
    );
}

/// A gateway leads everywhere, but what is on a link of ours needs none.
#[test]
fn a_link_that_has_the_destination_goes_before_one_with_a_gateway() {
    let own = Config { gateway_v4: Some("192.0.2.254".parse().unwrap()), ..config() };
    let tagged = Config { vlan: Some(5), ..Config::new(US, vec!["10.0.5.1/24".parse().unwrap()]) };
    let stack = Stack::new(&[], own, vec![tagged]).unwrap();
    let way = |destination| {
        let choice = stack.choose(&want(destination)).unwrap();
        (choice.entry.to_string(), choice.next_hop)
    };
    let on_link = NextHop::Neighbour(ip("10.0.5.9"));
    assert_eq!(way("10.0.5.9"), ("10.0.5.1 in VLAN 5".into(), on_link));
    assert_eq!(way("10.0.6.9"), ("192.0.2.1".into(), NextHop::Neighbour(ip("192.0.2.254"))));
}

/// unverified RFC 3376, 3810: groups are joined on a link, and told there.
#[test]
fn groups_are_joined_on_one_link() {
    let mut stack = stack(&[], &[]);
    stack.join_group(0, Some(100), ip("239.1.1.1"));
    let report = stack.poll_transmit().unwrap();
    assert_eq!(report[12..16], [0x81, 0, 0, 100]);
    assert_eq!(stack.poll_transmit(), None);
    assert!(stack.own().groups().is_empty());
    assert_eq!(stack.link(Some(100)).unwrap().groups(), [ip("239.1.1.1")]);
    stack.leave_group(1, None, ip("239.1.1.1"));
    assert_eq!(stack.link(Some(100)).unwrap().groups(), [ip("239.1.1.1")]);
    stack.leave_group(1, Some(100), ip("239.1.1.1"));
    assert!(stack.link(Some(100)).unwrap().groups().is_empty());
}

#[test]
fn neighbours_may_ask_at_the_group_of_every_address_of_ours() {
    let mut stack = stack(&[], &[]);
    let groups = |stack: &Stack| -> std::collections::BTreeSet<Gid> { stack.solicited_groups().collect() };
    let of = |text: &str| Gid::from(ip(text));
    assert_eq!(groups(&stack), [of("ff02::1:ff00:1")].into());
    stack.add_address(Some(100), "2001:db8::abcd:1234/64".parse().unwrap()).unwrap();
    assert_eq!(groups(&stack), [of("ff02::1:ff00:1"), of("ff02::1:ffcd:1234")].into());
}
