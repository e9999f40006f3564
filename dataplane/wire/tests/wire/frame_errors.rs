//! Every reason to refuse a frame: a right frame, one thing wrong, exactly that reason. The first wrong thing is told.

use crate::support::{addressing_v4, addressing_v6, addressings, frame_with};
use std::collections::HashSet;
use wire::*;

fn write_only(addressing: &Addressing, payload: &[u8]) -> Vec<u8> {
    frame_with(addressing, Opcode(0x0A).info().expect("WRITE Only"), payload)
}

fn verdict(bytes: &[u8]) -> Result<(), FrameError> {
    let frame = Frame::parse(bytes, bytes.len())?;
    frame.verify_udp_checksum([bytes])?;
    frame.verify_icrc(bytes, [bytes])
}

/// Sets bytes and mends the IPv4 header checksum.
fn with(frame: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    if frame[12..14] == [8, 0] {
        frame[24..26].fill(0);
        let mut sum = OnesComplement::default();
        sum.bytes(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.checksum().to_be_bytes());
    }
    frame
}

/// (what is wrong, the frame, the reason)
fn cases() -> Vec<(&'static str, Vec<u8>, FrameError)> {
    use FrameError::*;
    let v4 = write_only(&addressing_v4(), &[7; 13]);
    let v6 = write_only(&addressing_v6(), &[7; 13]);
    let v1 = write_only(&Addressing { version: RoceVersion::V1, ..addressing_v6() }, &[7; 13]);
    // Offsets: IPv4 header 14, UDP 34, BTH 42; IPv6 header 14, UDP 54, BTH 62; GRH 14, BTH 54.
    let mut options = with(&v4, 14, &[0x46]);
    options.splice(34..34, [1; 4]);
    let mut checksum = v4.clone();
    checksum[24] ^= 1;
    vec![
        ("v4: ethertype", with(&v4, 12, &[0x08, 0x06]), EtherType),
        ("v4: TCP", with(&v4, 23, &[6]), NotUdp),
        ("v6: hop-by-hop options", with(&v6, 20, &[0]), NotUdp),
        ("v4: port", with(&v4, 36, &[0x12, 0xB8]), OtherPort),
        ("v6: port", with(&v6, 56, &[0x12, 0xB8]), OtherPort),
        ("v4: cut", v4[..v4.len() - 1].to_vec(), Truncated),
        ("v6: cut", v6[..v6.len() - 1].to_vec(), Truncated),
        ("v1: cut", v1[..v1.len() - 1].to_vec(), Truncated),
        ("v4: total length above the frame", with(&v4, 16, &[0x05, 0xDC]), Truncated),
        ("v4: version", with(&v4, 14, &[0x55]), IpHeader),
        ("v4: header length 16", with(&v4, 14, &[0x44]), IpHeader),
        ("v6: version", with(&v6, 14, &[0x40]), IpHeader),
        ("v1: version", with(&v1, 14, &[0x40]), IpHeader),
        ("v4: options", options, IpOptions),
        ("v4: more fragments", with(&v4, 20, &[0x20, 0]), Fragment),
        ("v4: a later fragment", with(&v4, 20, &[0, 1]), Fragment),
        ("v4: header checksum", checksum, IpChecksum),
        ("v4: total length 19", with(&v4, 16, &[0, 19]), IpLength),
        ("v4: UDP longer than IP", with(&v4, 38, &[0, 57]), UdpLength),
        ("v4: UDP shorter than IP", with(&v4, 38, &[0, 55]), UdpLength),
        ("v6: UDP shorter than IP", with(&v6, 58, &[0, 52]), UdpLength),
        ("v4: both lengths below a UDP header", with(&with(&v4, 16, &[0, 27]), 38, &[0, 7]), UdpLength),
        ("v6: jumbogram", with(&with(&v6, 18, &[0, 0]), 58, &[0, 0]), UdpLength),
        ("v4: UDP checksum", with(&v4, 40, &[0x12, 0x34]), UdpChecksum),
        ("v1: next header", with(&v1, 20, &[17]), GrhNextHeader),
        ("v4: no room for BTH and iCRC", with(&with(&v4, 16, &[0, 43]), 38, &[0, 23]), TooShort),
        ("v6: no room for BTH and iCRC", with(&with(&v6, 18, &[0, 23]), 58, &[0, 23]), TooShort),
        ("v1: no room for BTH and iCRC", with(&v1, 18, &[0, 15]), TooShort),
        ("v4: reserved opcode", with(&v4, 42, &[0x1F]), UnknownOpcode),
        ("v6: UC SEND with invalidate", with(&v6, 62, &[0x37]), UnknownOpcode),
        ("v4: no room for RETH", with(&with(&v4, 16, &[0, 59]), 38, &[0, 39]), NegativePayload),
        ("v4: no room for pad", with(&with(&v4, 16, &[0, 62]), 38, &[0, 42]), NegativePayload),
        ("v4: transport version", with(&v4, 43, &[0x71]), TransportVersion),
        ("v4: QP 0", with(&v4, 47, &[0, 0, 0]), DestQpZero),
        ("v4: iCRC", with(&v4, v4.len() - 1, &[v4[v4.len() - 1] ^ 0x80]), BadIcrc),
        ("v6: payload", with(&v6, 90, &[8]), BadIcrc),
    ]
}

#[test]
fn each_fault_has_its_reason() {
    let mut seen = HashSet::new();
    for (what, bytes, reason) in cases() {
        assert_eq!(verdict(&bytes), Err(reason), "{what}");
        seen.insert(reason);
    }
    for reason in FrameError::ALL {
        assert!(seen.contains(reason), "no case for {reason:?}");
    }
}

#[test]
fn right_frames_are_taken() {
    for addressing in addressings() {
        assert_eq!(verdict(&write_only(&addressing, &[7; 13])), Ok(()), "{addressing:?}");
    }
}

#[test]
fn earlier_checks_win() {
    let (v4, wrong) = (write_only(&addressing_v4(), &[7; 13]), [0x1F, 0x71, 0xFF, 0xFF, 0, 0, 0, 0]);
    let all_wrong = with(&with(&v4, 42, &wrong), 38, &[0, 57]);
    assert_eq!(verdict(&all_wrong), Err(FrameError::UdpLength));
    let opcode_on = with(&v4, 42, &wrong);
    assert_eq!(verdict(&opcode_on), Err(FrameError::UnknownOpcode));
    let version_on = with(&v4, 43, &wrong[1..]);
    assert_eq!(verdict(&version_on), Err(FrameError::TransportVersion));
}

#[test]
fn names_are_distinct() {
    let names: HashSet<_> = FrameError::ALL.iter().map(|error| error.name()).collect();
    assert_eq!(names.len(), FrameError::ALL.len());
    for (number, error) in FrameError::ALL.iter().enumerate() {
        assert_eq!(*error as usize, number);
        assert_eq!(error.name().starts_with("drop_"), error.is_roce());
    }
}
