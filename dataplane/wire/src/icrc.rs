//! The invariant CRC (rocev2 facts, wire 9): over all that no router changes, with ones in place of what one may change.

use crate::crc;
use crate::frame::{Frame, FrameError, Network};
use crate::header::Bth;

/// The CRC of the eight bytes of ones that stand for the LRH.
const START: u32 = 0x2144_DF1C;

/// The CRC of anything followed by its own CRC, as on the wire: the residue.
const RESIDUE: u32 = 0x2144_DF1C;

/// Bytes of the iCRC itself.
pub const ICRC_LEN: usize = 4;

/// An iCRC being computed: header bytes masked, then payload and pad in any pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icrc(u32);

impl Icrc {
    /// After the headers of a packet, from the network header to the last extension header.
    #[inline]
    pub fn of_headers(network: Network, headers: &[u8]) -> Icrc {
        let masked = MaskedHeaders::new(network, headers);
        Icrc(START).with(masked.as_bytes()).with(&headers[masked.len..])
    }

    /// After these bytes, which are all covered as they are.
    #[inline]
    pub fn update(&mut self, bytes: &[u8]) {
        self.0 = crc::update(self.0, bytes);
    }

    /// The CRC-32 number.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// What goes on the wire: least significant byte first, unlike every other field.
    pub const fn to_wire(self) -> [u8; ICRC_LEN] {
        self.0.to_le_bytes()
    }

    #[inline]
    fn with(mut self, bytes: &[u8]) -> Icrc {
        self.update(bytes);
        self
    }

    /// From the CRC of what was covered so far, the LRH's ones included.
    pub(crate) const fn from_crc(crc: u32) -> Icrc {
        Icrc(crc)
    }

    /// After nothing but the LRH's ones.
    pub(crate) const fn start() -> Icrc {
        Icrc(START)
    }
}

/// Headers with ones in the fields that the iCRC does not cover.
#[derive(Clone, Copy, Debug)]
pub struct MaskedHeaders {
    bytes: [u8; Self::MAX],
    len: usize,
}

impl MaskedHeaders {
    /// Longest network header, UDP, BTH and extension headers together.
    const MAX: usize = 40 + 8 + Bth::LEN + crate::packet::ExtHeaders::MAX_LEN;

    /// Masks headers that begin at the network header. Bytes behind the longest possible headers are left out.
    #[inline]
    pub fn new(network: Network, headers: &[u8]) -> Self {
        let len = headers.len().min(Self::MAX);
        let mut bytes = [0; Self::MAX];
        bytes[..len].copy_from_slice(&headers[..len]);
        match network {
            Network::V4 => {
                bytes[1] = 0xFF; // TOS
                bytes[8] = 0xFF; // TTL
                bytes[10..12].fill(0xFF); // header checksum
            }
            Network::V6 | Network::V1 => {
                bytes[0] |= 0x0F; // traffic class and flow label
                bytes[1..4].fill(0xFF);
                bytes[7] = 0xFF; // hop limit
            }
        }
        let bth = network.header_len() + network.udp_len();
        if network.udp_len() != 0 {
            bytes[bth - 2..bth].fill(0xFF); // UDP checksum
        }
        bytes[bth + 4] = 0xFF; // FECN, BECN, reserved
        MaskedHeaders { bytes, len }
    }

    /// The masked bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The iCRC that a frame should have, from all of its bytes. Errors are those of [`Frame::parse`].
pub fn compute(frame: &[u8]) -> Result<u32, FrameError> {
    let parsed = Frame::parse(frame, frame.len())?;
    let mut icrc = parsed.icrc_of_headers(frame);
    icrc.update(&frame[parsed.payload_offset()..parsed.icrc_offset()]);
    Ok(icrc.value())
}

impl Frame {
    /// The iCRC after this frame's headers; payload and pad are to follow. `head` is what the frame was parsed from.
    #[inline]
    pub fn icrc_of_headers(&self, head: &[u8]) -> Icrc {
        Icrc::of_headers(self.network, head.get(self.l3_offset()..self.payload_offset()).unwrap_or_default())
    }

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
        let mut icrc = self.icrc_of_headers(head);
        self.each_piece(segments, self.payload_offset(), |piece| icrc.update(piece))?;
        if icrc.0 == RESIDUE { Ok(()) } else { Err(FrameError::BadIcrc) }
    }
}
