//! Payload lengths by opcode (rocev2 facts, wire 7 and 8).

use wire::*;

#[test]
fn payload_rules_follow_the_position() {
    for info in OpcodeInfo::all() {
        let expected = match (info.operation, info.position) {
            (Operation::AtomicWrite, _) => PayloadRule::Exactly(8),
            (Operation::Cnp, _) => PayloadRule::Exactly(16),
            (
                Operation::ReadRequest
                | Operation::Acknowledge
                | Operation::AtomicAcknowledge
                | Operation::CompareSwap
                | Operation::FetchAdd
                | Operation::Resync
                | Operation::Flush,
                _,
            ) => PayloadRule::Nothing,
            (_, Position::First | Position::Middle) => PayloadRule::FullMtu,
            (_, Position::Last) => PayloadRule::OneToMtu,
            (_, Position::Only) => PayloadRule::UpToMtu,
        };
        assert_eq!(info.payload, expected, "{info}");
    }
}

#[test]
fn rules_have_exact_edges() {
    for mtu in Mtu::ALL {
        let edges = [0, 1, 8, 16, mtu.bytes() - 1, mtu.bytes(), mtu.bytes() + 1];
        let allowed = |rule: PayloadRule| edges.map(|len| u8::from(rule.allows(len, mtu)));
        assert_eq!(allowed(PayloadRule::FullMtu), [0, 0, 0, 0, 0, 1, 0]);
        assert_eq!(allowed(PayloadRule::OneToMtu), [0, 1, 1, 1, 1, 1, 0]);
        assert_eq!(allowed(PayloadRule::UpToMtu), [1, 1, 1, 1, 1, 1, 0]);
        assert_eq!(allowed(PayloadRule::Nothing), [1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(allowed(PayloadRule::Exactly(8)), [0, 0, 1, 0, 0, 0, 0]);
        for (info, len) in OpcodeInfo::all().flat_map(|info| edges.map(|len| (info, len))) {
            assert_eq!(info.allows_payload(len, mtu), info.payload.allows(len, mtu), "{info}: {len} bytes");
        }
    }
}

/// The full-size frames of the facts, wire 1.
#[test]
fn full_size_frames_have_the_listed_lengths() {
    use crate::support::{addressing_v4, addressing_v6, frame_with};
    for (opcode, v4, v6) in [(0x01, 4154, 4174), (0x0B, 4174, 4194), (0xAB, 4178, 4198)] {
        let info = Opcode(opcode).info().expect("a defined opcode");
        assert_eq!(frame_with(&addressing_v4(), info, &[0; 4096]).len(), v4, "{info}");
        assert_eq!(frame_with(&addressing_v6(), info, &[0; 4096]).len(), v6, "{info}");
    }
    let ack = Opcode(0x11).info().expect("Acknowledge");
    assert_eq!(frame_with(&addressing_v4(), ack, &[]).len(), 62);
    let cnp = Opcode::CNP.info().expect("CNP");
    assert_eq!(frame_with(&addressing_v4(), cnp, &CNP_BODY).len(), 74);
}

#[test]
fn pad_reaches_the_next_multiple_of_four() {
    let pads: Vec<u8> = [0, 1, 2, 3, 4, 13, 4095, 4096].into_iter().map(Bth::pad_for).collect();
    assert_eq!(pads, [0, 3, 2, 1, 0, 3, 1, 0]);
}
