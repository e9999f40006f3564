//! The invariant CRC (rocev2 facts, wire 9): over all that no router changes, with ones in place of what one may change.
//!
//! Nothing is copied to be masked. What ones in a field's place change in the CRC can be put into the state before the first
//! byte (see `crc.rs`), and then the packet's bytes go through as they are, in one piece if they lie in one.

use crate::crc::{self, Change, change_before};
use crate::frame::{Frame, FrameError, Network};
use crate::net::{Ipv4Header, Ipv6Header, UdpHeader};

/// The CRC of the eight bytes of ones that stand for the LRH.
const START: u32 = 0x2144_DF1C;

/// The CRC of anything followed by its own CRC, as on the wire: the residue.
const RESIDUE: u32 = 0x2144_DF1C;

/// Bytes of the iCRC itself.
pub const ICRC_LEN: usize = 4;

/// An iCRC being computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icrc(u32);

impl Icrc {
    /// Before a packet that begins, at its network header, with these bytes (to the end of the BTH at least). All of the
    /// packet's bytes from the network header on are to follow, unchanged; fields that are not covered are accounted for
    /// here.
    #[inline]
    pub fn before(network: Network, headers: &[u8]) -> Icrc {
        match network {
            Network::V4 => account(headers, &MASKED_V4),
            Network::V6 => account(headers, &MASKED_V6),
            Network::V1 => account(headers, &MASKED_V1),
        }
    }

    /// After these bytes.
    #[inline]
    pub fn update(&mut self, bytes: &[u8]) {
        self.0 = crc::update(self.0, bytes);
    }

    /// Two at once, each after bytes of its own. It takes less time than one after the other where they are short and of the same length.
    #[inline(always)]
    pub(crate) fn update_both(both: &mut [Icrc; 2], bytes: [&[u8]; 2]) {
        let [Icrc(first), Icrc(second)] = both;
        (*first, *second) = ::crc::update_pair((*first, bytes[0]), (*second, bytes[1]));
    }

    /// The CRC-32 number.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// After a whole packet with its iCRC: whether that is right.
    #[inline]
    pub const fn is_right(self) -> bool {
        self.0 == RESIDUE
    }

    /// What goes on the wire: least significant byte first, unlike every other field.
    pub const fn to_wire(self) -> [u8; ICRC_LEN] {
        self.0.to_le_bytes()
    }

    /// After nothing but the LRH's ones.
    pub(crate) const fn start() -> Icrc {
        Icrc(START)
    }

    /// After anything that has this CRC, the LRH's ones included: for who sums bytes while copying them.
    pub const fn after(crc: u32) -> Icrc {
        Icrc(crc)
    }

    /// The same after other bytes, which make this difference.
    #[inline(always)]
    pub(crate) const fn changed(self, by: u32) -> Icrc {
        Icrc(self.0 ^ by)
    }

    /// Accounts for the byte of the BTH that is not covered, when the BTH comes next.
    #[inline]
    pub(crate) fn before_bth(self, congestion: u8) -> Icrc {
        Icrc(self.0 ^ MASKED_BTH.change[usize::from(!congestion)])
    }
}

/// Ones where the iCRC does not cover, from the network header to the end of the masked part of the BTH.
const MASK_V4: [u8; 33] = {
    let mut mask = [0; 33];
    mask[1] = 0xFF; // TOS
    mask[8] = 0xFF; // TTL
    mask[10] = 0xFF; // header checksum
    mask[11] = 0xFF;
    let mask = mask_udp(mask, Ipv4Header::LEN);
    mask_bth(mask, Ipv4Header::LEN + UdpHeader::LEN)
};

const MASK_V6: [u8; 53] =
    mask_bth(mask_udp(mask_ipv6([0; 53]), Ipv6Header::LEN), Ipv6Header::LEN + UdpHeader::LEN);

const MASK_V1: [u8; 45] = mask_bth(mask_ipv6([0; 45]), Ipv6Header::LEN);

const fn mask_ipv6<const N: usize>(mut mask: [u8; N]) -> [u8; N] {
    mask[0] = 0x0F; // traffic class and flow label
    mask[1] = 0xFF;
    mask[2] = 0xFF;
    mask[3] = 0xFF;
    mask[7] = 0xFF; // hop limit
    mask
}

const fn mask_udp<const N: usize>(mut mask: [u8; N], at: usize) -> [u8; N] {
    mask[at + 6] = 0xFF; // checksum
    mask[at + 7] = 0xFF;
    mask
}

const fn mask_bth<const N: usize>(mut mask: [u8; N], at: usize) -> [u8; N] {
    mask[at + 4] = 0xFF; // FECN, BECN, reserved
    mask
}

/// Sets the bits of headers that the iCRC does not cover, as the CRC sees them. `headers` begin at the network header and
/// may end anywhere. For looking at the CRC's input; [`Icrc::before`] does not need it.
pub fn mask_headers(network: Network, headers: &mut [u8]) {
    let mask = match network {
        Network::V4 => &MASK_V4[..],
        Network::V6 => &MASK_V6[..],
        Network::V1 => &MASK_V1[..],
    };
    for (byte, mask) in headers.iter_mut().zip(mask) {
        *byte |= mask;
    }
}

/// A byte that is not covered, or not wholly, and what its ones change in the CRC's state before the packet.
struct Masked {
    offset: usize,
    mask: u8,
    change: Change,
}

static MASKED_V4: [Masked; 7] = masked(&MASK_V4);
static MASKED_V6: [Masked; 8] = masked(&MASK_V6);
static MASKED_V1: [Masked; 6] = masked(&MASK_V1);
static MASKED_BTH: Masked = {
    let [masked] = masked(&mask_bth([0; 5], 0));
    masked
};

/// The masked bytes of a mask; `COUNT` must be their number.
const fn masked<const COUNT: usize, const N: usize>(mask: &[u8; N]) -> [Masked; COUNT] {
    let mut masked = [const { Masked { offset: 0, mask: 0, change: [0; 256] } }; COUNT];
    let (mut count, mut offset) = (0, 0);
    while offset < N {
        if mask[offset] != 0 {
            masked[count] = Masked { offset, mask: mask[offset], change: change_before(offset) };
            count += 1;
        }
        offset += 1;
    }
    assert!(count == COUNT, "every masked byte has its place");
    masked
}

/// The state before the packet that begins with `headers`. Bytes that are not there change nothing.
#[inline]
fn account<const COUNT: usize>(headers: &[u8], masked: &[Masked; COUNT]) -> Icrc {
    Icrc(masked.iter().fold(START, |crc, byte| match headers.get(byte.offset) {
        Some(value) => crc ^ byte.change[usize::from(!value & byte.mask)],
        None => crc,
    }))
}

/// The iCRC before packets over IPv4 that have the same of what it does not cover, but for three fields that often are zero or
/// differ from packet to packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unmasked(Icrc);

impl Unmasked {
    /// Of packets with this type of service and time to live.
    pub fn of_v4(tos: u8, ttl: u8) -> Unmasked {
        let mut headers = [0; MASK_V4.len()];
        (headers[1], headers[8]) = (tos, ttl);
        Unmasked(account(&headers, &MASKED_V4))
    }

    /// What [`Icrc::before`] says of a packet with these: the header's checksum, UDP's, and the BTH's byte that routers may write.
    #[inline(always)]
    pub fn before(self, [a, b]: [u8; 2], [c, d]: [u8; 2], congestion: u8) -> Icrc {
        let [_, _, checksum_a, checksum_b, udp_a, udp_b, bth] = &MASKED_V4;
        // Until here they were zeros. Changes add up, so what a byte changes is told by how it differs.
        let differs = |byte: &'static Masked, value: u8| byte.change[usize::from(value)];
        let mut icrc = self.0.0 ^ differs(checksum_a, a) ^ differs(checksum_b, b);
        if c | d | congestion != 0 {
            icrc ^= differs(udp_a, c) ^ differs(udp_b, d) ^ differs(bth, congestion);
        }
        Icrc(icrc)
    }
}

/// The iCRC that a frame should have, from all of its bytes. Errors are those of [`Frame::parse`].
pub fn compute(frame: &[u8]) -> Result<u32, FrameError> {
    let parsed = Frame::parse(frame, frame.len())?;
    let covered = &frame[parsed.l3_offset()..parsed.icrc_offset()];
    let mut icrc = Icrc::before(parsed.network, covered);
    icrc.update(covered);
    Ok(icrc.value())
}

impl Frame {
    /// Whether the iCRC is right. `head` is what the frame was parsed from, `segments` are all bytes of the frame in order
    /// (the head among them), cut anywhere.
    ///
    /// Errors: [`FrameError::BadIcrc`], or [`FrameError::Truncated`] when the segments end before the packet does.
    #[inline]
    pub fn verify_icrc<'a>(
        &self,
        head: &[u8],
        segments: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(), FrameError> {
        let icrc = Icrc::before(self.network, head.get(self.l3_offset()..).unwrap_or_default());
        self.verify_icrc_from(icrc, segments)
    }

    /// The same, with the iCRC before the network header.
    #[inline]
    pub fn verify_icrc_from<'a>(
        &self,
        mut icrc: Icrc,
        segments: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(), FrameError> {
        self.each_piece(segments, self.l3_offset(), |piece| icrc.update(piece))?;
        if icrc.is_right() { Ok(()) } else { Err(FrameError::BadIcrc) }
    }
}
