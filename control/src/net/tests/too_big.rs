//! Routers that say that our packets do not fit.

use super::vectors::*;
use super::*;
use wire::Qpn;

const SOON: u64 = 7;

fn heard(interface: &mut Interface, frame: Frame) -> Vec<TooBig> {
    assert!(answers(interface, SOON, frame).is_empty(), "nothing is answered");
    interface.too_big().to_vec()
}

#[test]
fn what_a_router_says_is_remembered_with_the_packet_that_it_quotes() {
    let said = TooBig {
        reporter: ip("192.0.2.254"),
        source: ip("192.0.2.1"),
        destination: ip("192.0.2.2"),
        dest_qpn: Some(Qpn::new(0x12)),
        mtu: Some(1400),
        count: 1,
        at_ns: SOON,
    };
    let mut interface = interface();
    assert_eq!(heard(&mut interface, TOO_BIG4), [said]);
    // Again, later, by another router and without a number: one entry that counts.
    assert!(answers(&mut interface, SOON + 1, TOO_BIG4_UNSAID).is_empty());
    let again = TooBig { reporter: ip("192.0.2.253"), count: 2, mtu: None, at_ns: SOON + 1, ..said };
    assert_eq!(interface.too_big(), [again]);
    // No more than the eight bytes behind the IP header that have to be quoted: not told which queue pair.
    let all = heard(&mut interface, TOO_BIG4_SHORT);
    assert_eq!(all[1], TooBig { dest_qpn: None, ..said });
    let all = heard(&mut interface, TOO_BIG6);
    let (reporter, source, destination) = (ip("2001:db8::fe"), ip("2001:db8::1"), ip("2001:db8::2"));
    let said = TooBig { reporter, source, destination, ..said };
    assert_eq!(all[2], said);
    // From another address of ours: not the same.
    let all = heard(&mut interface, TOO_BIG6_FROM_LL);
    assert_eq!(all[2..], [said, TooBig { source: ip("fe80::ff:fe00:1"), ..said }]);
    assert_eq!(interface.counters().get(Counter::PacketTooBig), 5);
    assert_eq!(
        (interface.next_timeout(), events(&mut interface)),
        (None, vec![]),
        "and nothing else happens"
    );
}

/// Each rule broken by one frame. None of them leaves anything behind but its counter.
#[test]
fn what_quotes_no_packet_of_ours_changes_nothing() {
    let not_ours = [
        TOO_BIG4_OF_OTHERS,
        TOO_BIG4_TO_OTHERS,
        TOO_BIG4_TO_NOWHERE,
        TOO_BIG4_MAY_FRAGMENT,
        TOO_BIG4_TCP,
        TOO_BIG4_OPTIONS,
        TOO_BIG4_OTHER_PORT,
        TOO_BIG4_CUT,
        TOO_BIG4_FITS,
        TOO_BIG4_TINY,
        TOO_BIG6_TINY,
        TOO_BIG6_UNSAID,
        TOO_BIG6_OTHER_VERSION,
        TOO_BIG6_TCP,
        TOO_BIG6_OF_OTHERS,
        TOO_BIG6_OTHER_PORT,
    ];
    let cases = not_ours.map(|frame| (frame, Counter::TooBigNotOurs)).into_iter().chain([
        (TOO_BIG4_FROM_US, Counter::BadSource),
        (TOO_BIG4_FROM_NO_HOST, Counter::BadSource),
        (UNREACHABLE4, Counter::UnknownProtocol),
    ]);
    for (frame, counter) in cases {
        let mut interface = interface();
        assert_eq!(heard(&mut interface, frame), [], "{frame:02x?}");
        assert_eq!((interface.counters().get(counter), interface.counters().total()), (1, 1), "{frame:02x?}");
        assert_eq!((interface.next_timeout(), events(&mut interface)), (None, vec![]));
    }
}

/// Whoever makes up destinations fills a table of a fixed size: the latest stay.
#[test]
fn the_table_is_bounded_and_keeps_the_latest() {
    let mut interface = interface();
    for last in 2..=99 {
        let mut bytes = TOO_BIG4.bytes();
        // The quoted destination, and the message's checksum with it.
        bytes[61] = last;
        let sum = !u16::from_be_bytes([bytes[36], bytes[37]]);
        let sum = u32::from(sum) + u32::from(last) - 2;
        let sum = !((sum & 0xFFFF) as u16 + (sum >> 16) as u16);
        bytes[36..38].copy_from_slice(&sum.to_be_bytes());
        interface.on_frame(last.into(), &bytes);
    }
    let all = interface.too_big();
    let (oldest, latest) = (all.iter().map(|said| said.at_ns).min(), all.iter().map(|said| said.at_ns).max());
    assert_eq!((all.len(), oldest, latest), (16, Some(84), Some(99)));
}
