//! What is asked of us: ARP, neighbour discovery, echo, conflicts.

use super::vectors::*;
use super::*;

#[track_caller]
fn answers_with(interface: &mut Interface, question: Frame, answer: Frame, counter: Counter) {
    let before = interface.counters().get(counter);
    assert_eq!(answers(interface, 0, question), [answer.bytes()]);
    assert_eq!(interface.counters().get(counter), before + 1);
}

#[track_caller]
fn ignores(interface: &mut Interface, frame: Frame, counter: Counter) {
    let (before, total) = (interface.counters().get(counter), interface.counters().total());
    assert_eq!(answers(interface, 0, frame), Vec::<Vec<u8>>::new());
    assert_eq!(interface.counters().get(counter), before + 1);
    assert_eq!(interface.counters().total(), total + 1, "counted once");
    assert_eq!(interface.next_timeout(), None, "nothing learned");
}

#[test]
fn arp_is_answered_and_its_sender_learned() {
    let mut interface = interface();
    answers_with(&mut interface, ARP_REQUEST, ARP_REPLY, Counter::ArpAnswered);
    assert_eq!(interface.resolve(0, ip("192.0.2.2")), Resolution::Ready(PEER));
    assert!(sent(&mut interface).is_empty());
}

#[test]
fn an_arp_probe_is_answered_without_learning() {
    let mut interface = interface();
    answers_with(&mut interface, ARP_PROBE, ARP_PROBE_REPLY, Counter::ArpAnswered);
    assert_eq!(interface.next_timeout(), None);
}

#[test]
fn foreign_arp_is_ignored() {
    ignores(&mut interface(), ARP_OTHERS, Counter::NotOurAddress);
    ignores(&mut interface(), ARP_OFF_LINK, Counter::BadSource);
}

#[test]
fn the_tag_is_carried_through() {
    let tagged = || Interface::new(Config { vlan: Some(100), ..config() }).unwrap();
    answers_with(&mut tagged(), ARP_REQUEST_TAGGED, ARP_REPLY_TAGGED, Counter::ArpAnswered);
    answers_with(&mut tagged(), PING6_TAGGED, PONG6_TAGGED, Counter::EchoAnswered);
    ignores(&mut tagged(), ARP_REQUEST, Counter::OtherVlan);
    ignores(&mut tagged(), ARP_REQUEST_PRIORITY, Counter::OtherVlan);
    ignores(&mut interface(), ARP_REQUEST_TAGGED, Counter::OtherVlan);
    answers_with(&mut interface(), ARP_REQUEST_PRIORITY, ARP_REPLY_PRIORITY, Counter::ArpAnswered);
    let mut asking = tagged();
    asking.resolve(0, ip("192.0.2.2"));
    assert_eq!(sent(&mut asking), [ARP_ASK_TAGGED.bytes()]);
}

#[test]
fn solicitations_are_answered_and_their_sender_learned() {
    let mut interface = interface();
    answers_with(&mut interface, NS, NA, Counter::NdAnswered);
    assert_eq!(interface.resolve(0, ip("2001:db8::2")), Resolution::Ready(PEER));
}

#[test]
fn a_solicitation_without_mac_is_answered_to_the_frame_sender() {
    let mut interface = interface();
    answers_with(&mut interface, NS_BARE, NA, Counter::NdAnswered);
    assert_eq!(interface.next_timeout(), None, "nothing to learn from");
}

/// unverified RFC 4861 7.1.1, 7.1.2: each rule broken by one frame.
#[test]
fn invalid_neighbour_discovery_is_ignored() {
    ignores(&mut interface(), NS_FROM_AFAR, Counter::NdHopLimit);
    for frame in [NS_DAD_WITH_MAC, NS_DAD_UNICAST, NS_FOR_GROUP, NS_OPTION_OF_NO_LENGTH, NS_OPTION_TOO_LONG] {
        ignores(&mut interface(), frame, Counter::NdInvalid);
    }
    ignores(&mut interface(), NA_TO_ALL_BUT_SOLICITED, Counter::NdInvalid);
    ignores(&mut interface(), NS_CODE, Counter::Malformed);
}

#[test]
fn another_station_that_probes_our_address_is_told_and_reported() {
    let mut interface = interface();
    answers_with(&mut interface, NS_DAD, NA_DAD, Counter::NdAnswered);
    assert_eq!(events(&mut interface), [LinkEvent::Conflict { address: ip("2001:db8::1"), mac: PEER }]);
}

#[test]
fn a_conflict_is_reported_and_defended_once_in_ten_seconds() {
    for (frame, defence, address) in
        [(ARP_CONFLICT, ARP_ANNOUNCE, "192.0.2.1"), (NA_CONFLICT, NA_ANNOUNCE, "2001:db8::1")]
    {
        let mut interface = interface();
        let conflict = [LinkEvent::Conflict { address: ip(address), mac: OTHER }];
        assert_eq!(answers(&mut interface, 5, frame), [defence.bytes()]);
        assert_eq!(events(&mut interface), conflict);
        assert!(answers(&mut interface, 4 + 10 * SECOND_NS, frame).is_empty());
        assert!(events(&mut interface).is_empty());
        assert_eq!(answers(&mut interface, 5 + 10 * SECOND_NS, frame), [defence.bytes()]);
        assert_eq!(events(&mut interface), conflict);
        assert_eq!(interface.counters().get(Counter::Conflict), 3);
    }
}

#[test]
fn echo_is_answered() {
    answers_with(&mut interface(), PING4, PONG4, Counter::EchoAnswered);
    answers_with(&mut interface(), PING6, PONG6, Counter::EchoAnswered);
    answers_with(&mut interface(), PING6_ALL_NODES, PONG6_LINK_LOCAL, Counter::EchoAnswered);
}

#[test]
fn echo_replies_stop_at_the_mtu() {
    for (fits, exceeds) in [(PING4_1500, PING4_1501), (PING6_1500, PING6_1501)] {
        let mut interface = interface();
        let reply = answers(&mut interface, 0, fits);
        assert_eq!(reply.iter().map(Vec::len).collect::<Vec<_>>(), [1514]);
        ignores(&mut interface, exceeds, Counter::EchoTooBig);
    }
}

#[test]
fn fragments_forged_sources_and_broadcasts_draw_no_echo() {
    ignores(&mut interface(), PING4_FRAGMENT, Counter::Fragment);
    ignores(&mut interface(), PING6_FRAGMENT, Counter::Fragment);
    ignores(&mut interface(), PING4_FROM_US, Counter::BadSource);
    ignores(&mut interface(), PING4_FROM_BROADCAST, Counter::BadSource);
    ignores(&mut interface(), PING4_TO_BROADCAST, Counter::NotOurAddress);
}

#[test]
fn frames_for_other_stations_and_our_own_are_ignored() {
    ignores(&mut interface(), ARP_REPLY, Counter::BadSource);
    ignores(&mut Interface::new(Config::new(OTHER, Vec::new())).unwrap(), PING4, Counter::NotOurMac);
    ignores(&mut Interface::new(Config::new(US, Vec::new())).unwrap(), PING4, Counter::NotOurAddress);
}

#[test]
fn an_ipv4_header_shorter_than_itself_is_malformed() {
    ignores(&mut interface(), PING4_SHORT_HEADER, Counter::Malformed);
}

#[test]
fn nobody_gives_our_mac_to_another() {
    for frame in [ARP_WITH_OUR_MAC, ARP_ANSWER_WITH_OUR_MAC, NS_WITH_OUR_MAC, NA_WITH_OUR_MAC] {
        ignores(&mut interface(), frame, Counter::BadSource);
    }
}

#[test]
fn answers_are_bounded_per_second() {
    let mut interface = Interface::new(Config { answers_per_second: 2, ..config() }).unwrap();
    for (question, answer) in [(ARP_REQUEST, Counter::ArpAnswered), (PING4, Counter::EchoAnswered)] {
        let limited = interface.counters().get(Counter::RateLimited);
        for _ in 0..5 {
            interface.on_frame(0, &question.bytes());
        }
        assert_eq!(interface.counters().get(answer), 2);
        assert_eq!(interface.counters().get(Counter::RateLimited), limited + 3);
        interface.on_frame(SECOND_NS / 2, &question.bytes());
        assert_eq!(interface.counters().get(answer), 3);
    }
}

#[test]
fn a_full_transmit_queue_takes_no_more() {
    let mut interface = interface();
    for _ in 0..2000 {
        interface.on_frame(0, &PING4.bytes());
    }
    assert_eq!(sent(&mut interface).len(), 1024);
    assert_eq!(interface.counters().get(Counter::RateLimited), 2000 - 1024);
}

#[test]
fn all_addresses_are_announced() {
    let mut interface = interface();
    interface.announce();
    let expected = [NA_ANNOUNCE_LINK_LOCAL, ARP_ANNOUNCE, NA_ANNOUNCE].map(Frame::bytes);
    assert_eq!(sent(&mut interface), expected);
    assert_eq!(interface.counters().get(Counter::Announced), 3);
}

#[test]
fn addresses_come_and_go() {
    let mut interface = Interface::new(Config::new(US, vec!["2001:db8::1/64".parse().unwrap()])).unwrap();
    assert!(interface.add_address("192.0.2.1/24".parse().unwrap()));
    assert!(!interface.add_address("192.0.2.1/24".parse().unwrap()), "once");
    assert_eq!(sent(&mut interface), [ARP_ANNOUNCE.bytes()]);
    answers_with(&mut interface, ARP_PROBE, ARP_PROBE_REPLY, Counter::ArpAnswered);
    assert!(interface.remove_address(ip("192.0.2.1")));
    assert!(!interface.remove_address(ip("192.0.2.1")));
    assert!(!interface.remove_address(ip("fe80::ff:fe00:1")), "stays");
    ignores(&mut interface, ARP_REQUEST, Counter::NotOurAddress);
    ignores(&mut interface, PING4, Counter::NotOurAddress);
}

#[test]
fn conflicts_are_kept_for_people_until_the_address_goes() {
    let mut interface = interface();
    for n in 0..3 {
        interface.on_frame(n * SECOND_NS, &ARP_CONFLICT.bytes());
    }
    let kept: Vec<_> = interface.conflicts().collect();
    let (address, conflict) = kept[0];
    assert_eq!((kept.len(), address, conflict.mac), (1, ip("192.0.2.1"), OTHER));
    assert_eq!((conflict.count, conflict.heard_ns), (3, 2 * SECOND_NS));
    interface.remove_address(ip("192.0.2.1"));
    assert_eq!(interface.conflicts().count(), 0);
}
