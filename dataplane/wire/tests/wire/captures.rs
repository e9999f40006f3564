//! Captures of Linux's software RoCE: every frame is read, its iCRC is right, what it holds is what tshark counted, and the
//! same frame comes out of our own builder.

use pcap_file::pcap::PcapReader;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use wire::*;

#[test]
fn captures_hold_what_tshark_counted() {
    let contents = std::fs::read_to_string(directory().join("contents.txt")).expect("the list of contents");
    let mut files = 0;
    for line in contents.lines().filter(|line| !line.starts_with('#')) {
        let [file, packets, kinds] = line.splitn(3, ": ").collect::<Vec<_>>()[..] else { panic!("{line}") };
        let frames = frames(&directory().join(file));
        assert_eq!(frames.len().to_string(), packets, "{file}");
        let mut counts = BTreeMap::new();
        for frame in &frames {
            *counts.entry(kind(frame)).or_insert(0) += 1;
        }
        let counted: Vec<_> = counts.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        assert_eq!(counted.join(", "), kinds, "{file}");
        files += 1;
    }
    assert_eq!(files, 62);
}

#[test]
fn captured_frames_can_be_built_again() {
    let mut roce = 0;
    for file in
        std::fs::read_dir(directory()).expect("the captures").map(|entry| entry.expect("a file").path())
    {
        if file.extension().is_none_or(|extension| extension != "pcap") {
            continue;
        }
        for bytes in frames(&file) {
            let Ok(frame) = Frame::parse(&bytes, bytes.len()) else { continue };
            assert_eq!(rebuilt(&bytes, &frame), bytes, "{}", file.display());
            roce += 1;
        }
    }
    assert_eq!(roce, 1486);
}

pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/captures")
}

pub fn frames(path: &Path) -> Vec<Vec<u8>> {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut reader = PcapReader::new(file).expect("a capture");
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.expect("a packet");
        assert_eq!(packet.data.len() as u32, packet.orig_len, "captured whole");
        frames.push(packet.data.into_owned());
    }
    frames
}

/// What a frame is, in the words of the list of contents.
fn kind(bytes: &[u8]) -> String {
    let frame = match Frame::parse(bytes, bytes.len()) {
        Ok(frame) => frame,
        Err(error) => {
            assert!(!error.is_roce(), "{error}");
            return "other IP".into();
        }
    };
    assert_eq!(frame.verify_icrc(bytes, [bytes]), Ok(()));
    assert_eq!(frame.verify_udp_checksum([bytes]), Ok(()));
    if frame.bth().dest_qpn == Qpn::GSI {
        let payload = &bytes[frame.payload_offset()..][..frame.payload_len()];
        return format!("CM {}", management(u16::from_be_bytes([payload[16], payload[17]])));
    }
    let operation = match frame.ext::<Aeth>(bytes).map(|aeth| aeth.syndrome) {
        Some(Syndrome::Nak(NakCode::PsnSequence)) => "NAK PSN_SEQ_ERR",
        Some(Syndrome::Nak(NakCode::RemoteAccess)) => "NAK REM_ACCESS",
        Some(Syndrome::Nak(NakCode::RemoteOperational)) => "NAK REM_OP",
        Some(Syndrome::RnrNak { .. }) => "RNR_NAK",
        _ => short_name(frame.info),
    };
    format!("{} {operation}", frame.info.service.name())
}

fn management(attribute: u16) -> &'static str {
    match attribute {
        0x10 => "ConnectRequest",
        0x12 => "ConnectReject",
        0x13 => "ConnectReply",
        0x14 => "ReadyToUse",
        0x15 => "DisconnectRequest",
        0x16 => "DisconnectReply",
        0x17 => "SIDRReq",
        0x18 => "SIDRRep",
        other => panic!("attribute {other:#x}"),
    }
}

fn short_name(info: &OpcodeInfo) -> &'static str {
    match info.opcode.0 & 0x1F {
        0x00 => "SEND_FIRST",
        0x01 => "SEND_MIDDLE",
        0x02 => "SEND_LAST",
        0x04 => "SEND_ONLY",
        0x05 => "SEND_ONLY_IMM",
        0x06 => "WRITE_FIRST",
        0x07 => "WRITE_MIDDLE",
        0x08 => "WRITE_LAST",
        0x09 => "WRITE_LAST_IMM",
        0x0A => "WRITE_ONLY",
        0x0B => "WRITE_ONLY_IMM",
        0x0C => "READ_REQUEST",
        0x0D => "READ_RESP_FIRST",
        0x0E => "READ_RESP_MIDDLE",
        0x0F => "READ_RESP_LAST",
        0x10 => "READ_RESP_ONLY",
        0x11 => "ACK",
        0x12 => "ATOMIC_ACK",
        0x13 => "CMP_SWAP",
        0x14 => "FETCH_ADD",
        0x17 => "SEND_ONLY_INV",
        _ => panic!("{info}"),
    }
}

/// The frame from its parsed values.
fn rebuilt(bytes: &[u8], frame: &Frame) -> Vec<u8> {
    let addressing = Addressing {
        version: RoceVersion::V2,
        smac: frame.smac,
        dmac: frame.dmac,
        vlan: frame.vlan,
        src: frame.src,
        dst: frame.dst,
        traffic_class: frame.traffic_class,
        flow_label: frame.flow_label,
        hop_limit: frame.hop_limit,
        udp_sport: frame.udp_sport,
    };
    let ip_id = match frame.network {
        Network::V4 => {
            Ipv4Header::from_bytes(frame.network_header(bytes).first_chunk().expect("an IPv4 header")).id
        }
        _ => 0,
    };
    let mut ext = ExtHeaders::EMPTY;
    push::<Deth>(&mut ext, frame, bytes);
    push::<Reth>(&mut ext, frame, bytes);
    push::<AtomicEth>(&mut ext, frame, bytes);
    push::<Aeth>(&mut ext, frame, bytes);
    push::<AtomicAckEth>(&mut ext, frame, bytes);
    push::<ImmDt>(&mut ext, frame, bytes);
    push::<Ieth>(&mut ext, frame, bytes);
    let payload = &bytes[frame.payload_offset()..][..frame.payload_len()];
    let template = HeaderTemplate::new(&addressing).expect("GIDs of one family");
    let mut out = Vec::new();
    build_frame(&template, &frame.bth(), &ext, ip_id, payload, &mut out);
    out
}

fn push<H: ExtHeader>(ext: &mut ExtHeaders, frame: &Frame, bytes: &[u8]) {
    if let Some(header) = frame.ext::<H>(bytes) {
        *ext = ext.with(header);
    }
}
