//! Frames that are no RoCE are told apart from broken RoCE: somebody else may want them.

use crate::support::{addressing_v4, addressing_v6, frame_with, vector};
use wire::{Frame, FrameError, Opcode};

fn error(bytes: &[u8]) -> FrameError {
    Frame::parse(bytes, bytes.len()).expect_err("no RoCE")
}

#[test]
fn priority_flow_control_is_not_roce() {
    for name in ["pfc_pause_prio3", "pfc_resume_prio3"] {
        assert_eq!(error(&vector(name).frame), FrameError::EtherType);
    }
}

#[test]
fn arp_icmp_and_other_ports_are_not_roce() {
    let info = Opcode(0x04).info().expect("SEND Only");
    for (addressing, protocol) in [(addressing_v4(), 14 + 9), (addressing_v6(), 14 + 6)] {
        let port = if protocol == 23 { 36 } else { 56 };
        let frame = frame_with(&addressing, info, &[1; 64]);
        let with = |at: usize, byte: u8| {
            let mut frame = frame.clone();
            frame[at] = byte;
            frame
        };
        assert_eq!(error(&with(13, 0x06)), FrameError::EtherType, "ARP");
        assert_eq!(error(&with(protocol, 1)), FrameError::NotUdp, "ICMP");
        assert_eq!(error(&with(protocol, 58)), FrameError::NotUdp, "ICMPv6");
        assert_eq!(error(&with(port, 0x11)), FrameError::OtherPort);
    }
}

#[test]
fn three_reasons_mean_not_roce() {
    let not_roce: Vec<_> = FrameError::ALL.iter().filter(|error| !error.is_roce()).collect();
    assert_eq!(not_roce, [&FrameError::EtherType, &FrameError::NotUdp, &FrameError::OtherPort]);
}
