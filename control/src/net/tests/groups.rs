//! Groups are reported as Linux does (frames of a capture), and in the ways of older queriers (frames of scapy).

use super::*;

const V2_REPORT: &str =
    "01005e4d0101020000000001080046c0002000004000010231c8c0000201ef4d0101940400001600f9b0ef4d0101";
const V2_LEAVE: &str =
    "01005e000002020000000001080046c000200000400001024214c0000201e0000002940400001700f8b0ef4d0101";
const V1_REPORT: &str =
    "01005e4d0101020000000001080046c0002000004000010231c8c0000201ef4d0101940400001200fdb0ef4d0101";
const V3_QUERY: &str =
    "01005e000001020000000002080046c000240000400001024210c0000202e0000001940400001164ee9b0000000000000000";
const V3_QUERY_GROUP: &str =
    "01005e4d0101020000000002080046c0002400004000010231c3c0000202ef4d010194040000110afea6ef4d010100000000";
const V3_QUERY_OTHER: &str =
    "01005e090909020000000002080046c0002400004000010229ffc0000202ef09090994040000110af6e2ef09090900000000";
const V3_QUERY_LONG: &str =
    "01005e000001020000000002080046c000240000400001024210c0000202e0000001940400001193ee6c0000000000000000";
const V2_QUERY: &str =
    "01005e000001020000000002080046c000200000400001024214c0000202e0000001940400001164ee9b00000000";
const V1_QUERY: &str =
    "01005e000001020000000002080046c000200000400001024214c0000202e0000001940400001100eeff00000000";
const MLD2_JOIN: &str = "33330000001602000000000186dd6000000000240001fe80000000000000000000fffe000001ff0200000000000000000000000000163a000502000001008f0070f60000000104000000ff0e0000000000000000000000070001";
const MLD2_LEFT: &str = "33330000001602000000000186dd6000000000240001fe80000000000000000000fffe000001ff0200000000000000000000000000163a000502000001008f0071f60000000103000000ff0e0000000000000000000000070001";
const MLD2_IS: &str = "33330000001602000000000186dd6000000000240001fe80000000000000000000fffe000001ff0200000000000000000000000000163a000502000001008f0072f60000000102000000ff0e0000000000000000000000070001";
const MLD1_REPORT: &str = "33330007000102000000000186dd6000000000200001fe80000000000000000000fffe000001ff0e00000000000000000000000700013a00050200000100830080fd00000000ff0e0000000000000000000000070001";
const MLD1_DONE: &str = "33330000000202000000000186dd6000000000200001fe80000000000000000000fffe000001ff0200000000000000000000000000023a000502000001008400800f00000000ff0e0000000000000000000000070001";
const MLD2_QUERY: &str = "33330000000102000000000286dd6000000000240001fe80000000000000000000fffe000002ff0200000000000000000000000000013a0005020000010082005a12271000000000000000000000000000000000000000000000";
const MLD1_QUERY: &str = "33330000000102000000000286dd6000000000200001fe80000000000000000000fffe000002ff0200000000000000000000000000013a0005020000010082005a162710000000000000000000000000000000000000";
const MLD2_QUERY_FAR: &str = "33330000000102000000000286dd6000000000240040fe80000000000000000000fffe000002ff0200000000000000000000000000013a0005020000010082005a12271000000000000000000000000000000000000000000000";
const MLD2_QUERY_GLOBAL: &str = "33330000000102000000000286dd600000000024000120010db8000000000000000000000002ff0200000000000000000000000000013a00050200000100820029da271000000000000000000000000000000000000000000000";

/// What mckey's kernel sent when it joined 239.77.1.1, and when it left.
const LINUX_JOINED: &str = "01005e00001602000000\
    0a00080046c00028000040000102f9ab0a4d0001e00000169404000\
    02200e9af000000010400\
    0000ef4d0101";
const LINUX_LEFT: &str = "01005e00001602000000\
    0a00080046c00028000040000102f9ab0a4d0001e00000169404000\
    02200eaaf000000010300\
    0000ef4d0101";

const V4: &str = "239.77.1.1";
const V6: &str = "ff0e::7:1";

fn hex(frame: &[u8]) -> String {
    frame.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Everything that is sent up to a time, in hexadecimal.
fn until(interface: &mut Interface, now: u64) -> Vec<String> {
    interface.on_timeout(now);
    sent(interface).iter().map(|frame| hex(frame)).collect()
}

fn hear(interface: &mut Interface, now: u64, frame: &'static str) {
    interface.on_frame(now, &Frame(frame, 0).bytes());
}

#[test]
fn joining_and_leaving_are_told_twice_as_linux_tells_it() {
    let mac = Mac([2, 0, 0, 0, 0x0A, 0]);
    let mut linux = Interface::new(Config::new(mac, vec!["10.77.0.1/24".parse().unwrap()])).unwrap();
    linux.join_group(5, ip(V4));
    assert_eq!(until(&mut linux, 5), [LINUX_JOINED]);
    assert_eq!(linux.next_timeout(), Some(5 + SECOND_NS));
    assert_eq!(until(&mut linux, 5 + SECOND_NS), [LINUX_JOINED]);
    assert_eq!((linux.next_timeout(), linux.groups()), (None, vec![ip(V4)]));
    let at = 10 * SECOND_NS;
    linux.leave_group(at, ip(V4));
    assert_eq!(until(&mut linux, at), [LINUX_LEFT]);
    assert_eq!(until(&mut linux, at + SECOND_NS), [LINUX_LEFT]);
    assert_eq!((until(&mut linux, 2 * at).len(), linux.groups().len()), (0, 0));
    linux.leave_group(3 * at, ip(V4));
    assert!(until(&mut linux, 3 * at).is_empty(), "it had left before");
    assert_eq!(linux.counters().get(Counter::GroupReported), 4);
}

#[test]
fn ipv6_groups_are_told_by_mld() {
    let mut interface = interface();
    interface.join_group(0, ip(V6));
    assert_eq!(until(&mut interface, SECOND_NS), [MLD2_JOIN, MLD2_JOIN]);
    interface.leave_group(SECOND_NS, ip(V6));
    assert_eq!(until(&mut interface, 2 * SECOND_NS), [MLD2_LEFT, MLD2_LEFT]);
    interface.join_group(0, ip("ff02::1"));
    interface.join_group(0, ip("ff01::5"));
    interface.join_group(0, ip("224.0.0.1"));
    assert!(until(&mut interface, 9 * SECOND_NS).is_empty(), "nobody has to be told of these");
    interface.leave_group(0, ip("ff02::1"));
    assert_eq!(interface.groups().len(), 2);
}

#[test]
fn queries_are_answered_once_within_their_time() {
    let mut interface = interface();
    interface.join_group(0, ip(V4));
    interface.join_group(0, ip(V6));
    assert_eq!(until(&mut interface, SECOND_NS).len(), 4);
    let start = 100 * SECOND_NS;
    for (frame, family, within) in [
        (V3_QUERY, V4, 10 * SECOND_NS),
        (V3_QUERY_GROUP, V4, SECOND_NS),
        (MLD2_QUERY, V6, 10 * SECOND_NS),
        // Exponent 1, mantissa 3: (16 + 3) << 4 tenths of a second.
        (V3_QUERY_LONG, V4, 304 * SECOND_NS / 10),
    ] {
        hear(&mut interface, start, frame);
        hear(&mut interface, start, frame);
        let due = interface.next_timeout().unwrap();
        assert!(due > start && due < start + within, "{due} for {within}");
        assert!(until(&mut interface, due - 1).is_empty());
        let answers = until(&mut interface, due);
        assert_eq!(answers.len(), 1, "asked twice, answered once");
        if family == V6 {
            assert_eq!(answers[0], MLD2_IS);
        } else {
            assert_eq!(answers[0].len(), LINUX_JOINED.len());
            assert!(answers[0].contains("2200ebaf0000000102000000ef4d0101"), "{}", answers[0]);
        }
        assert_eq!(interface.next_timeout(), None);
    }
    hear(&mut interface, start, V3_QUERY_OTHER);
    assert_eq!(interface.next_timeout(), None, "not for our group");
    assert_eq!(interface.counters().get(Counter::GroupQuery), 9);
}

/// When the answer to these queries, heard at once, is due.
fn due(queries: &[&'static str]) -> Option<u64> {
    let mut interface = interface();
    interface.join_group(0, ip(V4));
    until(&mut interface, SECOND_NS);
    for query in queries {
        hear(&mut interface, 2 * SECOND_NS, query);
    }
    interface.next_timeout()
}

#[test]
fn of_two_queries_the_one_in_a_hurry_counts() {
    let (soon, late) = (due(&[V3_QUERY_GROUP]), due(&[V3_QUERY]));
    assert_ne!(soon, late);
    for both in [[V3_QUERY_GROUP, V3_QUERY], [V3_QUERY, V3_QUERY_GROUP]] {
        assert_eq!(due(&both), soon.min(late));
    }
}

#[test]
fn a_group_that_was_left_and_one_that_nobody_is_told_of_are_not_answered_for() {
    let mut interface = interface();
    interface.join_group(0, ip(V4));
    interface.join_group(0, ip("224.0.0.1"));
    until(&mut interface, SECOND_NS);
    interface.leave_group(2 * SECOND_NS, ip(V4));
    assert_eq!(until(&mut interface, 2 * SECOND_NS).len(), 1);
    // The leaving is to be told once more when a router asks.
    hear(&mut interface, 2 * SECOND_NS, V3_QUERY);
    hear(&mut interface, 2 * SECOND_NS, V3_QUERY_GROUP);
    assert!(until(&mut interface, 3 * SECOND_NS - 1).is_empty(), "an answer would be due within the second");
    let told = until(&mut interface, 20 * SECOND_NS);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].ends_with("0000000103000000ef4d0101"), "{told:?}");
}

/// unverified RFC 3376 4.1.1, RFC 3810 5.1.3: long delays are said as exponent and mantissa.
#[test]
fn long_delays_are_read() {
    let igmp = membership::igmp(&Frame(V3_QUERY_LONG, 0).bytes()[38..]).unwrap();
    assert_eq!(igmp.max_delay_ns, 304 * SECOND_NS / 10);
    let (source, group) = ("fe80::2".parse::<std::net::Ipv6Addr>().unwrap(), "ff02::1".parse().unwrap());
    for (code, millis) in
        [(0x7FFFu16, 0x7FFF), (0x8000, 0x8000), (0x9003, 0x1003 << 4), (0xFFFF, 0x1FFF << 10)]
    {
        let mut message = vec![0; 28];
        message[0] = 130;
        message[4..6].copy_from_slice(&code.to_be_bytes());
        let mut sum = wire::OnesComplement::default();
        sum.bytes(&source.octets());
        sum.bytes(&std::net::Ipv6Addr::octets(&group));
        sum.word(28);
        sum.word(58);
        sum.bytes(&message);
        message[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
        let query = membership::mld(source, group, &message).unwrap();
        assert_eq!(query.max_delay_ns, millis * SECOND_NS / 1000, "{code:#x}");
    }
}

#[test]
fn older_queriers_are_answered_in_their_way_while_they_are_there() {
    let mut interface = interface();
    interface.join_group(0, ip(V4));
    interface.join_group(0, ip(V6));
    until(&mut interface, SECOND_NS);
    let later = |seconds: u64| seconds * SECOND_NS;
    for (at, frame, answer) in
        [(100, V2_QUERY, V2_REPORT), (200, V1_QUERY, V1_REPORT), (300, MLD1_QUERY, MLD1_REPORT)]
    {
        hear(&mut interface, later(at), frame);
        assert_eq!(until(&mut interface, later(at + 11)), [answer]);
    }
    interface.leave_group(later(320), ip(V4));
    assert!(until(&mut interface, later(321)).is_empty(), "IGMPv1 has no word for it");
    interface.leave_group(later(320), ip(V6));
    assert_eq!(until(&mut interface, later(321)), [MLD1_DONE, MLD1_DONE]);
    interface.join_group(later(330), ip(V4));
    hear(&mut interface, later(330), V2_QUERY);
    assert_eq!(until(&mut interface, later(345)), [V1_REPORT, V2_REPORT, V2_REPORT]);
    interface.leave_group(later(346), ip(V4));
    assert_eq!(until(&mut interface, later(347)), [V2_LEAVE, V2_LEAVE]);
    interface.join_group(later(330 + 260), ip(V4));
    assert!(until(&mut interface, later(600))[0].contains("e0000016"), "the old one is gone");
}

#[test]
fn the_link_is_told_again_when_it_comes_up() {
    let mut interface = interface();
    interface.join_group(0, ip(V6));
    until(&mut interface, SECOND_NS);
    interface.report_groups(5 * SECOND_NS);
    assert_eq!(until(&mut interface, 6 * SECOND_NS), [MLD2_JOIN, MLD2_JOIN]);
}

#[test]
fn queries_that_break_a_rule_are_counted() {
    let mut interface = interface();
    interface.join_group(0, ip(V4));
    interface.join_group(0, ip(V6));
    until(&mut interface, SECOND_NS);
    let mut expect = |bytes: Vec<u8>, counter| {
        let before = interface.counters().get(counter);
        interface.on_frame(SECOND_NS, &bytes);
        assert_eq!(interface.counters().get(counter), before + 1, "{}", hex(&bytes));
        assert_eq!(interface.next_timeout(), None);
    };
    expect(Frame(MLD2_QUERY_FAR, 0).bytes(), Counter::BadSource);
    expect(Frame(MLD2_QUERY_GLOBAL, 0).bytes(), Counter::BadSource);
    expect(
        Frame(V2_REPORT, 0).bytes().iter().enumerate().map(|(at, &b)| if at == 11 { 2 } else { b }).collect(),
        Counter::UnknownProtocol,
    );
    for frame in [V3_QUERY, MLD2_QUERY] {
        let mut bent = Frame(frame, 0).bytes();
        *bent.last_mut().unwrap() ^= 1;
        expect(bent, Counter::BadChecksum);
    }
    // Cut to nothing, with lengths that say so.
    let mut short = Frame(V3_QUERY, 0).bytes();
    short[16..18].copy_from_slice(&[0, 28]);
    short[24..26].fill(0);
    let mut sum = wire::OnesComplement::default();
    sum.bytes(&short[14..38]);
    short[24..26].copy_from_slice(&sum.checksum().to_be_bytes());
    short.truncate(42);
    expect(short, Counter::Malformed);
}
