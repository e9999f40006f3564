//! What we ask: resolution, retries, expiry, moves, bounds.

use super::vectors::*;
use super::*;

const MS: u64 = 1_000_000;

fn resolved(address: &str, mac: Mac) -> LinkEvent {
    LinkEvent::Neighbour(NeighbourEvent::Resolved { address: ip(address), mac })
}

fn failed(address: &str) -> LinkEvent {
    LinkEvent::Neighbour(NeighbourEvent::Failed { address: ip(address) })
}

/// Runs the timers until `end`; returns each frame sent with its time.
fn run(interface: &mut Interface, end: u64) -> Vec<(u64, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some(now) = interface.next_timeout().filter(|due| *due <= end) {
        interface.on_timeout(now);
        frames.extend(sent(interface).into_iter().map(|frame| (now, frame)));
    }
    frames
}

#[test]
fn a_neighbour_is_asked_for_and_resolved() {
    for (address, ask, answer) in [("192.0.2.2", ARP_ASK, ARP_ANSWER), ("2001:db8::2", NS_ASK, NA_ANSWER)] {
        let mut interface = interface();
        assert_eq!(interface.resolve(7, ip(address)), Resolution::Pending);
        assert_eq!(interface.resolve(8, ip(address)), Resolution::Pending);
        assert_eq!(sent(&mut interface), [ask.bytes()], "asked once");
        assert!(answers(&mut interface, 9, answer).is_empty());
        assert_eq!(events(&mut interface), [resolved(address, PEER)]);
        assert_eq!(interface.resolve(10, ip(address)), Resolution::Ready(PEER));
        assert_eq!(interface.counters().get(Counter::NeighbourLearned), 1);
    }
}

#[test]
fn a_mapped_address_resolves_as_ipv4() {
    let mut interface = interface();
    assert_eq!(interface.resolve(7, ip("::ffff:192.0.2.2")), Resolution::Pending);
    assert_eq!(sent(&mut interface), [ARP_ASK.bytes()]);
}

#[test]
fn a_dead_neighbour_fails_within_a_second_and_is_asked_again_later() {
    let mut interface = interface();
    assert_eq!(interface.resolve(0, ip("192.0.2.2")), Resolution::Pending);
    let first = sent(&mut interface);
    let repeated = run(&mut interface, 1000 * MS);
    assert_eq!(first.len() + repeated.len(), 3);
    assert!(repeated.iter().all(|(_, frame)| *frame == ARP_ASK.bytes()));
    assert_eq!(events(&mut interface), [failed("192.0.2.2")]);
    assert_eq!(interface.resolve(1000 * MS, ip("192.0.2.2")), Resolution::Failed);
    assert!(sent(&mut interface).is_empty());
    assert_eq!(interface.resolve(4000 * MS, ip("192.0.2.2")), Resolution::Pending);
    assert_eq!(sent(&mut interface), [ARP_ASK.bytes()]);
}

#[test]
fn a_failed_neighbour_that_asks_us_is_back() {
    let mut interface = interface();
    interface.resolve(0, ip("192.0.2.2"));
    run(&mut interface, 1000 * MS);
    events(&mut interface);
    answers(&mut interface, 1200 * MS, ARP_REQUEST);
    assert_eq!(events(&mut interface), [resolved("192.0.2.2", PEER)]);
    assert_eq!(interface.resolve(1200 * MS, ip("192.0.2.2")), Resolution::Ready(PEER));
}

/// Resolves the peer at time 0 and drains what that drew.
fn with_peer(address: &str, answer: Frame) -> Interface {
    let mut interface = interface();
    interface.resolve(0, ip(address));
    interface.on_frame(0, &answer.bytes());
    sent(&mut interface);
    events(&mut interface);
    interface
}

#[test]
fn an_entry_in_use_is_probed_by_unicast_then_by_group_and_reported_when_dead() {
    for (address, answer, unicast, group) in [
        ("192.0.2.2", ARP_ANSWER, ARP_ASK_UNICAST, ARP_ASK),
        ("2001:db8::2", NA_ANSWER, NS_ASK_UNICAST, NS_ASK),
    ] {
        let mut interface = with_peer(address, answer);
        assert_eq!(interface.resolve(30 * SECOND_NS - 1, ip(address)), Resolution::Ready(PEER));
        assert!(sent(&mut interface).is_empty(), "still fresh");
        assert_eq!(interface.resolve(30 * SECOND_NS, ip(address)), Resolution::Ready(PEER));
        assert_eq!(sent(&mut interface), [unicast.bytes()]);
        let later: Vec<_> = run(&mut interface, 31 * SECOND_NS).into_iter().map(|(_, frame)| frame).collect();
        assert_eq!(later, [unicast.bytes(), group.bytes()]);
        assert_eq!(events(&mut interface), [failed(address)]);
    }
}

#[test]
fn an_answered_probe_keeps_the_entry_quietly() {
    let mut interface = with_peer("192.0.2.2", ARP_ANSWER);
    interface.resolve(40 * SECOND_NS, ip("192.0.2.2"));
    sent(&mut interface);
    answers(&mut interface, 40 * SECOND_NS + 1, ARP_ANSWER);
    assert!(run(&mut interface, 99 * SECOND_NS).is_empty());
    assert!(events(&mut interface).is_empty());
    assert_eq!(interface.resolve(99 * SECOND_NS, ip("192.0.2.2")), Resolution::Ready(PEER));
}

#[test]
fn an_unused_entry_is_forgotten() {
    let mut interface = with_peer("192.0.2.2", ARP_ANSWER);
    assert_eq!(interface.next_timeout(), Some(60 * SECOND_NS));
    assert!(run(&mut interface, 60 * SECOND_NS).is_empty());
    assert_eq!(interface.next_timeout(), None);
    assert!(events(&mut interface).is_empty());
    assert_eq!(interface.resolve(61 * SECOND_NS, ip("192.0.2.2")), Resolution::Pending);
}

#[test]
fn a_move_is_taken_in_after_the_entry_settled() {
    for (address, answer, moved) in
        [("192.0.2.2", ARP_ANSWER, ARP_MOVED), ("2001:db8::2", NA_ANSWER, NA_MOVED)]
    {
        let mut interface = with_peer(address, answer);
        answers(&mut interface, SECOND_NS - 1, moved);
        assert!(events(&mut interface).is_empty(), "the first answer counts");
        assert_eq!(interface.counters().get(Counter::NeighbourIgnored), 1);
        answers(&mut interface, SECOND_NS, moved);
        let changed = NeighbourEvent::Changed { address: ip(address), old: PEER, new: OTHER };
        assert_eq!(events(&mut interface), [LinkEvent::Neighbour(changed)]);
        assert_eq!(interface.resolve(SECOND_NS, ip(address)), Resolution::Ready(OTHER));
    }
}

#[test]
fn a_station_that_asks_us_is_believed_at_once() {
    let mut interface = with_peer("192.0.2.2", ARP_ANSWER);
    let mut request = ARP_REQUEST.bytes();
    // The sender's MAC in the Ethernet and in the ARP header.
    request[6..12].copy_from_slice(&OTHER.0);
    request[22..28].copy_from_slice(&OTHER.0);
    interface.on_frame(1, &request);
    let changed = NeighbourEvent::Changed { address: ip("192.0.2.2"), old: PEER, new: OTHER };
    assert_eq!(events(&mut interface), [LinkEvent::Neighbour(changed)]);
    assert_eq!(interface.resolve(2, ip("192.0.2.2")), Resolution::Ready(OTHER));
}

#[test]
fn an_advertisement_without_override_moves_nothing() {
    let mut interface = with_peer("2001:db8::2", NA_ANSWER);
    answers(&mut interface, 2 * SECOND_NS, NA_MOVED_POLITELY);
    assert!(events(&mut interface).is_empty());
    assert_eq!(interface.resolve(2 * SECOND_NS, ip("2001:db8::2")), Resolution::Ready(PEER));
}

#[test]
fn an_advertisement_without_mac_resolves_nothing() {
    let mut interface = interface();
    interface.resolve(0, ip("2001:db8::2"));
    answers(&mut interface, 1, NA_ANSWER_BARE);
    assert_eq!(interface.resolve(2, ip("2001:db8::2")), Resolution::Pending);
    assert_eq!(interface.counters().get(Counter::NeighbourIgnored), 1);
}

/// Connections ask each second: the neighbour is asked for until it is back, and told of if it is elsewhere then.
#[test]
fn a_neighbour_in_use_that_fell_silent_is_followed_to_where_it_comes_back() {
    let mut interface = with_peer("192.0.2.2", ARP_ANSWER);
    let mut asked = Vec::new();
    for second in 1..100 {
        interface.look_after(second * SECOND_NS, ip("192.0.2.2"));
        asked.extend(sent(&mut interface));
        asked.extend(run(&mut interface, (second + 1) * SECOND_NS).into_iter().map(|(_, frame)| frame));
    }
    assert!(asked.len() > 30, "{} questions in a minute: it gave up", asked.len());
    assert!(asked.len() < 70, "{} questions in a minute", asked.len());
    let told = events(&mut interface);
    assert!(told.len() > 10 && told.iter().all(|event| *event == failed("192.0.2.2")), "{told:?}");
    interface.on_frame(100 * SECOND_NS, &ARP_MOVED.bytes());
    let changed = NeighbourEvent::Changed { address: ip("192.0.2.2"), old: PEER, new: OTHER };
    assert_eq!(events(&mut interface), [resolved("192.0.2.2", OTHER), LinkEvent::Neighbour(changed)]);
    assert_eq!(interface.known_mac(ip("192.0.2.2")), Some(OTHER));
}

#[test]
fn what_nobody_uses_any_more_is_not_asked_for_without_end() {
    let mut interface = with_peer("192.0.2.2", ARP_ANSWER);
    interface.look_after(31 * SECOND_NS, ip("192.0.2.2"));
    let asked = run(&mut interface, 200 * SECOND_NS);
    let (last, _) = asked.last().unwrap();
    assert!((85 * SECOND_NS..100 * SECOND_NS).contains(last), "a minute after the last use: {last}");
    assert_eq!(interface.next_timeout(), None);
}

#[test]
fn looking_after_neighbours_pushes_nobody_out() {
    let cache = CacheLimits { capacity: 2, ..CacheLimits::default() };
    let mut interface = Interface::new(Config { cache, ..config() }).unwrap();
    interface.resolve(0, ip("192.0.2.2"));
    interface.on_frame(0, &ARP_ANSWER.bytes());
    for host in 3..6 {
        interface.look_after(1, ip(&format!("192.0.2.{host}")));
    }
    assert_eq!(sent(&mut interface).len(), 2, "the first, and one more for whom there was room");
    assert_eq!(interface.known_mac(ip("192.0.2.2")), Some(PEER));
}

#[test]
fn the_time_until_a_neighbour_is_dead_can_be_chosen() {
    for ms in [100, 900, 5000] {
        let cache = CacheLimits::giving_up_after(ms * MS);
        let mut interface = Interface::new(Config { cache, ..config() }).unwrap();
        interface.resolve(0, ip("192.0.2.2"));
        run(&mut interface, ms * MS - 1);
        assert!(events(&mut interface).is_empty());
        // Whole nanoseconds between questions: some are rounded up.
        run(&mut interface, ms * MS + 10);
        assert_eq!(events(&mut interface), [failed("192.0.2.2")]);
    }
}

#[test]
fn nobody_fills_the_cache_by_telling_what_was_not_asked() {
    for frame in [ARP_ANSWER, ARP_MOVED, NA_ANSWER, NA_MOVED] {
        let mut interface = interface();
        answers(&mut interface, 0, frame);
        assert_eq!(interface.next_timeout(), None);
        assert_eq!(interface.counters().get(Counter::NeighbourIgnored), 1);
    }
}

#[test]
fn the_gateway_is_resolved_for_what_is_beyond_the_link() {
    let gateway_v4 = Some("192.0.2.2".parse().unwrap());
    let mut interface = Interface::new(Config { gateway_v4, ..config() }).unwrap();
    assert_eq!(interface.resolve(0, ip("203.0.113.9")), Resolution::Pending);
    assert_eq!(sent(&mut interface), [ARP_ASK.bytes()]);
    assert_eq!(interface.resolve(0, ip("2001:db8:1::9")), Resolution::Failed, "no gateway for IPv6");
}

/// When it moves, everything beyond it does.
#[test]
fn a_gateway_is_known_as_one() {
    let gateway_v4 = Some("192.0.2.2".parse().unwrap());
    let gateway_v6 = Some("2001:db8::2".parse().unwrap());
    let both = Interface::new(Config { gateway_v4, gateway_v6, ..config() }).unwrap();
    let only = Interface::new(Config { gateway_v4, ..config() }).unwrap();
    for (neighbour, of_both, of_one) in [
        ("192.0.2.2", true, true),
        ("2001:db8::2", true, false),
        ("192.0.2.3", false, false),
        ("2001:db8::3", false, false),
    ] {
        let neighbour = ip(neighbour);
        assert_eq!(
            (both.is_gateway(neighbour), only.is_gateway(neighbour)),
            (of_both, of_one),
            "{neighbour}"
        );
        assert!(!interface().is_gateway(neighbour));
    }
}

#[test]
fn own_addresses_and_groups_need_no_resolution() {
    let mut interface = interface();
    assert_eq!(interface.resolve(0, ip("192.0.2.1")), Resolution::Ready(US));
    assert_eq!(interface.resolve(0, ip("239.129.2.3")), Resolution::Ready(Mac([1, 0, 0x5e, 1, 2, 3])));
    assert_eq!(
        interface.resolve(0, ip("ff02::1:ff00:2")),
        Resolution::Ready(Mac([0x33, 0x33, 0xff, 0, 0, 2]))
    );
    assert!(sent(&mut interface).is_empty());
}

#[test]
fn the_cache_is_bounded_and_strangers_push_out_strangers_only() {
    let cache = CacheLimits { capacity: 3, ..CacheLimits::default() };
    let mut interface = Interface::new(Config { cache, ..config() }).unwrap();
    interface.resolve(0, ip("192.0.2.2"));
    interface.on_frame(0, &ARP_ANSWER.bytes());
    // 200 strangers ask for us; each is answered, the last ones are in the cache.
    for host in 10..210 {
        let mut request = ARP_REQUEST.bytes();
        request[31] = host;
        interface.on_frame(u64::from(host), &request);
    }
    assert_eq!(interface.counters().get(Counter::ArpAnswered), 200);
    sent(&mut interface);
    assert_eq!(interface.resolve(500, ip("192.0.2.2")), Resolution::Ready(PEER), "in use: kept");
    assert_eq!(interface.resolve(500, ip("192.0.2.209")), Resolution::Ready(PEER), "the newest: kept");
    assert_eq!(interface.resolve(500, ip("192.0.2.10")), Resolution::Pending, "the oldest: pushed out");
    assert_eq!(interface.resolve(501, ip("192.0.2.2")), Resolution::Ready(PEER), "the unused one made room");
    assert_eq!(interface.resolve(501, ip("192.0.2.209")), Resolution::Ready(PEER));
    // All three are in use now: one more stranger is answered but not remembered.
    let mut request = ARP_REQUEST.bytes();
    request[31] = 220;
    interface.on_frame(502, &request);
    assert_eq!(sent(&mut interface).len(), 2, "our question and the answer");
    assert_eq!(interface.resolve(503, ip("192.0.2.2")), Resolution::Ready(PEER));
    assert_eq!(interface.resolve(503, ip("192.0.2.209")), Resolution::Ready(PEER));
    // What we need pushes out what we used longest ago, but never a pending question.
    assert_eq!(interface.resolve(600, ip("192.0.2.211")), Resolution::Pending);
    assert_eq!(interface.resolve(600, ip("192.0.2.212")), Resolution::Pending);
    assert_eq!(interface.resolve(600, ip("192.0.2.213")), Resolution::Failed, "three are pending");
}
