//! Faults made in captured frames. Constants are for IPv4 without a tag; edits make checksum and iCRC right again unless they say
//! "raw".

use crate::support::Seen;

pub const IP: usize = 14;
pub const UDP: usize = IP + 20;
pub const BTH: usize = UDP + 8;
pub const EXT: usize = BTH + 12;

pub const MIDDLE: u8 = 0x01;
pub const WRITE_FIRST: u8 = 0x06;
pub const WRITE_MIDDLE: u8 = 0x07;
pub const WRITE_LAST: u8 = 0x08;
pub const WRITE_ONLY: u8 = 0x0A;
pub const READ: u8 = 0x0C;
pub const READ_FIRST: u8 = 0x0D;
pub const READ_MIDDLE: u8 = 0x0E;
pub const READ_LAST: u8 = 0x0F;
pub const READ_ONLY: u8 = 0x10;
pub const ACK: u8 = 0x11;
pub const ATOMIC_ACK: u8 = 0x12;
pub const FETCH_ADD: u8 = 0x14;
pub const UD_SEND: u8 = 0x64;

/// The places of all packets with an opcode.
pub fn all(frames: &[Seen], opcode: u8) -> Vec<usize> {
    (0..frames.len()).filter(|&at| frames[at].bytes[BTH] == opcode).collect()
}

pub fn nth(frames: &[Seen], opcode: u8, n: usize) -> usize {
    all(frames, opcode)[n]
}

pub fn last(frames: &[Seen], opcode: u8) -> usize {
    *all(frames, opcode).last().expect("such a packet")
}

/// Changes a frame and seals it.
pub fn edit(frame: &mut Seen, change: impl FnOnce(&mut Vec<u8>)) {
    change(&mut frame.bytes);
    seal(frame);
}

/// Changes a frame, and nothing but that.
pub fn raw(frame: &mut Seen, change: impl FnOnce(&mut Vec<u8>)) {
    change(&mut frame.bytes);
}

/// A copy behind all others, with another identification, changed.
pub fn append(frames: &mut Vec<Seen>, of: usize, change: impl FnOnce(&mut Vec<u8>)) {
    let mut copy = frames[of].clone();
    copy.time_ns = frames.last().expect("a frame").time_ns + 1_000_000_000;
    copy.bytes[IP + 4] ^= 0x55;
    edit(&mut copy, change);
    frames.push(copy);
}

pub fn psn(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([0, bytes[BTH + 9], bytes[BTH + 10], bytes[BTH + 11]])
}

pub fn set_psn(bytes: &mut [u8], psn: u32) {
    bytes[BTH + 9..EXT].copy_from_slice(&psn.to_be_bytes()[1..]);
}

pub fn add_psn(bytes: &mut [u8], by: u32) {
    set_psn(bytes, psn(bytes) + by);
}

/// Adds to the MSN of an AETH.
pub fn add_msn(bytes: &mut [u8], by: i32) {
    let msn = u32::from_be_bytes([0, bytes[EXT + 1], bytes[EXT + 2], bytes[EXT + 3]]);
    bytes[EXT + 1..EXT + 4].copy_from_slice(&msn.wrapping_add_signed(by).to_be_bytes()[1..]);
}

/// Turns an ACK into a NAK of the request that it acknowledges.
pub fn refuse(bytes: &mut [u8], syndrome: u8) {
    bytes[EXT] = syndrome;
    add_msn(bytes, -1);
}

/// Replaces all between the BTH and the iCRC.
pub fn set_body(bytes: &mut Vec<u8>, body: &[u8]) {
    bytes.truncate(EXT);
    bytes.extend_from_slice(body);
    bytes.extend_from_slice(&[0; 4]);
    let ip = (bytes.len() - IP) as u16;
    bytes[IP + 2..IP + 4].copy_from_slice(&ip.to_be_bytes());
    bytes[UDP + 4..UDP + 6].copy_from_slice(&(ip - 20).to_be_bytes());
}

/// Takes bytes off the end of what lies between the BTH and the iCRC.
pub fn shorten(bytes: &mut Vec<u8>, by: usize) {
    let body = bytes[EXT..bytes.len() - 4 - by].to_vec();
    set_body(bytes, &body);
}

/// Where the BTH of any frame begins: tagged or not, IPv4 or IPv6.
pub fn bth(frame: &Seen) -> usize {
    let ip = ip(&frame.bytes);
    ip + if frame.bytes[ip] >> 4 == 6 { 40 } else { 20 } + 8
}

/// Changes a frame from its BTH on, whatever lies before it, and seals it.
pub fn edit_at(frame: &mut Seen, change: impl FnOnce(&mut [u8])) {
    let bth = bth(frame);
    change(&mut frame.bytes[bth..]);
    seal(frame);
}

/// The places of packets with an opcode in any frames; those that are not RoCE have none.
pub fn with_opcode(frames: &[Seen], opcode: u8) -> Vec<usize> {
    let is = |at: &usize| {
        let frame = &frames[*at];
        wire::Frame::parse(&frame.bytes, frame.bytes.len())
            .is_ok_and(|parsed| parsed.bth().opcode.0 == opcode)
    };
    (0..frames.len()).filter(is).collect()
}

pub fn last_with(frames: &[Seen], opcode: u8) -> usize {
    *with_opcode(frames, opcode).last().expect("such a packet")
}

/// Puts a VLAN tag into a frame.
pub fn tag(frame: &mut Seen) {
    frame.bytes.splice(12..12, [0x81, 0x00, 0x60, 0x07]);
}

fn ip(bytes: &[u8]) -> usize {
    if bytes[12..14] == [0x81, 0x00] { IP + 4 } else { IP }
}

fn fix_ip_checksum(bytes: &mut [u8]) {
    let ip = ip(bytes);
    if bytes[ip] >> 4 != 4 {
        return;
    }
    bytes[ip + 10..ip + 12].copy_from_slice(&[0, 0]);
    let words = bytes[ip..ip + 20].chunks(2);
    let sum: u32 = words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    let folded = (folded & 0xFFFF) + (folded >> 16);
    bytes[ip + 10..ip + 12].copy_from_slice(&(!folded as u16).to_be_bytes());
}

/// Makes checksum and iCRC right.
pub fn seal(frame: &mut Seen) {
    fix_ip_checksum(&mut frame.bytes);
    // What cannot be parsed any more has no iCRC to be right.
    if let Ok(icrc) = wire::compute_icrc(&frame.bytes) {
        let end = frame.bytes.len();
        frame.bytes[end - 4..].copy_from_slice(&icrc.to_le_bytes());
    }
}
