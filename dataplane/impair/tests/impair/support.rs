//! Frames, and a stage that they go through.

use impair::{Direction, Plan, Stage, Verdict};
use wire::{Addressing, Bth, ExtHeaders, Frame, HeaderTemplate, Opcode, Psn, Qpn, RoceVersion, build_frame};

pub const SEND_ONLY: Opcode = Opcode(0x04);

/// A right RC SEND Only over IPv4 (or IPv6).
pub fn frame_over(version: RoceVersion, addresses: [&str; 2], qpn: u32, psn: u32) -> Vec<u8> {
    let way = Addressing {
        version,
        smac: "02:00:00:00:00:0a".parse().unwrap(),
        dmac: "02:00:00:00:00:0b".parse().unwrap(),
        vlan: None,
        src: addresses[0].parse().unwrap(),
        dst: addresses[1].parse().unwrap(),
        traffic_class: 0x48,
        flow_label: 0xF_FFFF,
        hop_limit: 64,
        udp_sport: 0xC123,
    };
    let template = HeaderTemplate::new(&way).unwrap();
    let bth = Bth::new(SEND_ONLY, Qpn::new(qpn), Psn::new(psn));
    let mut frame = Vec::new();
    build_frame(&template, &bth, &ExtHeaders::EMPTY, 7, &[0x5A; 100], &mut frame);
    frame
}

pub fn frame(qpn: u32, psn: u32) -> Vec<u8> {
    frame_over(RoceVersion::V2, ["192.0.2.1", "192.0.2.2"], qpn, psn)
}

pub fn arp() -> Vec<u8> {
    let mut frame = vec![0xFF; 12];
    frame.extend([8, 6]);
    frame.resize(60, 0);
    frame
}

/// The frame is a right RoCE packet.
pub fn is_right(frame: &[u8]) -> bool {
    Frame::parse(frame, frame.len()).is_ok_and(|parsed| {
        parsed.verify_udp_checksum([frame]).is_ok() && parsed.verify_icrc(frame, [frame]).is_ok()
    })
}

pub fn stage(plan: &str) -> Stage {
    Stage::new(&Plan::parse(plan).unwrap_or_else(|error| panic!("{error}")), 0)
}

pub fn tx(stage: &mut Stage, frame: &[u8]) -> Verdict {
    stage.decide(0, Direction::Tx, frame, frame.len())
}

/// The numbers (from 1) of those of `count` alike frames that are dropped.
pub fn dropped(stage: &mut Stage, count: usize) -> Vec<usize> {
    (1..=count).filter(|_| tx(stage, &frame(0x11, 5)).is_dropped()).collect()
}
