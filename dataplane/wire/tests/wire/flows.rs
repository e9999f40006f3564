//! A frame that is parsed as one of a flow is parsed as it would be by itself, or is not taken for one of the flow.

use crate::support::valid_vectors;
use proptest::prelude::*;
use wire::*;

/// Where IPv4 and UDP begin in a frame without a tag.
const IP: usize = 14;
const UDP: usize = 34;

fn untagged_v4() -> Vec<(&'static str, Vec<u8>, Flow)> {
    let flows = valid_vectors().into_iter().filter_map(|vector| {
        let flow = Flow::of(&vector.parse(), &vector.frame)?;
        Some((vector.name, vector.frame, flow))
    });
    flows.collect()
}

/// Makes the IPv4 checksum right.
fn right_checksum(bytes: &mut [u8]) {
    bytes[IP + 10..IP + 12].fill(0);
    let mut sum = OnesComplement::default();
    sum.bytes(&bytes[IP..IP + 20]);
    let checksum = !sum.folded();
    bytes[IP + 10..IP + 12].copy_from_slice(&checksum.to_be_bytes());
}

/// Whether the flow takes the frame; if it does, it has to say the same as the parser.
fn takes(flow: &Flow, bytes: &[u8]) -> bool {
    let mut place = None;
    let taken = flow.parse(bytes, bytes.len(), &mut place);
    if let Some(icrc) = taken {
        assert_eq!(place, Frame::parse(bytes, bytes.len()).ok(), "{}", hex::encode(bytes));
        assert_eq!(icrc, Icrc::before(Network::V4, &bytes[IP..]), "{}", hex::encode(bytes));
    }
    taken.is_some()
}

#[test]
fn only_untagged_v4_has_flows() {
    for vector in valid_vectors() {
        let frame = vector.parse();
        let flows = frame.network == Network::V4 && frame.vlan.is_none();
        assert_eq!(Flow::of(&frame, &vector.frame).is_some(), flows, "{}", vector.name);
    }
    assert!(untagged_v4().len() > 20);
}

#[test]
fn a_flow_takes_what_differs_in_what_every_packet_may_have_of_its_own() {
    for (name, frame, flow) in untagged_v4() {
        assert!(takes(&flow, &frame), "{name}");
        for at in [IP + 4, IP + 5, UDP, UDP + 1, UDP + 6, UDP + 7] {
            let mut other = frame.clone();
            other[at] ^= 0x5A;
            right_checksum(&mut other);
            assert!(takes(&flow, &other), "{name}: byte {at}");
        }
        let mut padded = frame.clone();
        padded.extend([0; 9]);
        assert!(takes(&flow, &padded), "{name}: as Ethernet pads it");
        assert!(!takes(&flow, &frame[..frame.len() - 1]), "{name}: cut");
    }
}

#[test]
fn frames_of_one_flow_are_taken_whatever_they_carry() {
    let flows = untagged_v4();
    let mut longer = 0;
    for (_, frame, flow) in &flows {
        for (_, other, _) in &flows {
            let of_flow = other[..12] == frame[..12] && other[IP + 1] == frame[IP + 1];
            longer += usize::from(takes(flow, other) && of_flow && other.len() != frame.len());
        }
    }
    assert!(longer > 0, "two vectors of one flow have different lengths");
}

/// With the checksum made right or left alone, so that each check has to notice by itself.
#[test]
fn a_flipped_bit_is_noticed_as_the_parser_notices_it() {
    for (name, frame, flow) in untagged_v4() {
        let head = Frame::parse(&frame, frame.len()).unwrap().payload_offset();
        for bit in 0..head * 8 {
            for redone in [false, true] {
                let mut bent = frame.clone();
                bent[bit / 8] ^= 1 << (bit % 8);
                if redone {
                    right_checksum(&mut bent);
                }
                let free = matches!(bit / 8, 16..=19 | 24..=25 | 34..=35 | 38..);
                assert!(!takes(&flow, &bent) || free, "{name}: bit {bit}");
            }
        }
    }
}

proptest! {
    /// Whatever else is in the frame.
    #[test]
    fn never_takes_what_the_parser_refuses(
        index in 0usize..1000,
        changes in proptest::collection::vec((0usize..64, any::<u8>()), 0..4),
        end in 0usize..200,
        redone: bool,
    ) {
        let flows = untagged_v4();
        let (_, frame, flow) = &flows[index % flows.len()];
        let mut bent = frame.clone();
        for (at, value) in changes {
            if let Some(byte) = bent.get_mut(at) {
                *byte = value;
            }
        }
        if redone {
            right_checksum(&mut bent);
        }
        bent.truncate(end.max(20));
        takes(flow, &bent);
    }
}
