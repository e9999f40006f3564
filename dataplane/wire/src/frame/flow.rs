//! Frames like one before: most come from a peer that has sent others, and differ from them in a few fields below the BTH.
//!
//! What has been checked of one frame need not be checked of the next that has the same bytes there. So a flow is nothing but
//! those bytes and what they were parsed to. It decides nothing: a frame that is odd in anything is left to [`Frame::parse`].

use super::{Frame, Network, Transport};
use crate::net::{EthernetHeader, Ipv4Header, UdpHeader};

/// Where the network header begins: flows have no tag.
const L3: usize = 14;
const L4: usize = L3 + Ipv4Header::LEN;
const BTH: usize = L4 + UdpHeader::LEN;

/// Bytes that the frames of a flow share: all of Ethernet, IPv4 and UDP but IPv4's length, identification and checksum, and
/// UDP's source port, length and checksum. One of them is in two pieces.
const SHARED: [u128; 3] = [
    u128::MAX,
    u128::from_ne_bytes([0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 255, 255, 255, 255, 255, 255]),
    u128::from_ne_bytes([255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 255, 255, 0, 0, 0, 0]),
];
/// Where those pieces begin.
const PIECES: [usize; 3] = [0, 16, BTH - 16];

/// RoCEv2 over IPv4 without a tag between two addresses, from any source port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    shared: [u128; 3],
    /// The frame that it was made of.
    frame: Frame,
}

impl Flow {
    /// The flow of a frame, which was parsed from `head`; `None` for what has a tag, or is not RoCEv2 over IPv4.
    pub fn of(frame: &Frame, head: &[u8]) -> Option<Flow> {
        let flows = frame.network == Network::V4 && frame.vlan.is_none() && frame.l3_offset() == L3;
        let shared = shared(head.first_chunk::<BTH>()?);
        flows.then_some(Flow { shared, frame: *frame })
    }

    /// Parses a frame of the flow into `place`, exactly as [`Frame::parse`] would. False for a frame that is not of the flow, or
    /// has an error; what `place` holds then means nothing.
    #[inline(always)]
    pub fn parse(&self, head: &[u8], frame_len: usize, place: &mut Option<Frame>) -> bool {
        let Some(lower) = head.first_chunk::<BTH>() else { return false };
        // In registers: to compare arrays, a function would be called that reads them from memory.
        let ([a, b, c], [known_a, known_b, known_c]) = (shared(lower), self.shared);
        if (a ^ known_a) | (b ^ known_b) | (c ^ known_c) != 0 {
            return false;
        }
        let Some(ip) = lower[L3..].first_chunk::<{ Ipv4Header::LEN }>() else { return false };
        let word = |at: usize| u16::from_be_bytes([lower[at], lower[at + 1]]);
        let (total_len, udp_len) = (usize::from(word(L3 + 2)), usize::from(word(L4 + 4)));
        // UDP fills the IP packet, and that lies in the frame.
        let lengths_fit = total_len == udp_len + Ipv4Header::LEN && L3 + total_len <= frame_len;
        if !lengths_fit || udp_len < UdpHeader::LEN || !Ipv4Header::checksum_ok(ip) {
            return false;
        }
        match Transport::parse(head, BTH, udp_len - UdpHeader::LEN) {
            Ok(Transport { bth, info, payload_len }) => {
                let (udp_sport, udp_checksum) = (word(L4), word(L4 + 6));
                *place = Some(Frame { udp_sport, udp_checksum, bth, info, payload_len, ..self.frame });
                true
            }
            Err(_) => false,
        }
    }
}

#[inline(always)]
fn shared(lower: &[u8; BTH]) -> [u128; 3] {
    const { assert!(EthernetHeader::MAX_LEN - 4 == L3 && BTH == 42, "the masks are for these headers") };
    let mut shared = [0; 3];
    for ((to, at), mask) in shared.iter_mut().zip(PIECES).zip(SHARED) {
        let mut piece = [0; 16];
        piece.copy_from_slice(&lower[at..at + 16]);
        *to = u128::from_ne_bytes(piece) & mask;
    }
    shared
}
