//! Frames like one before: most come from a peer that has sent others, and differ from them in a few fields below the BTH.
//!
//! What has been checked of one frame need not be checked of the next that has the same bytes there. So a flow is nothing but
//! those bytes and what they were parsed to. It decides nothing: a frame that is odd in anything is left to [`Frame::parse`].

use super::{Frame, Network, Transport};
use crate::icrc::{Icrc, Unmasked};
use crate::net::{EthernetHeader, Ipv4Header, UdpHeader};

/// Where the network header begins: flows have no tag.
pub(super) const L3: usize = 14;
const L4: usize = L3 + Ipv4Header::LEN;
pub(super) const BTH: usize = L4 + UdpHeader::LEN;

/// The bytes below the BTH in words of eight, the first byte lowest, but for the last two: UDP's checksum. In registers: to compare
/// arrays, a function would be called that reads them from memory.
type Words = [u64; 5];

/// Bits that the frames of a flow share: all of Ethernet, IPv4 and UDP but IPv4's length, identification and checksum, and
/// UDP's source port, length and checksum.
const SHARED: Words = {
    const { assert!(EthernetHeader::MAX_LEN - 4 == L3 && BTH == 42, "the masks are for these headers") };
    [u64::MAX, u64::MAX, !0xFFFF_FFFF, !0xFFFF, 0x0000_FFFF_0000_FFFF]
};

/// RoCEv2 over IPv4 without a tag between two addresses, from any source port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    shared: Words,
    /// The sum of what is shared of the IPv4 header, by two bytes.
    ip_sum: u32,
    /// The iCRC before the fields that it does not cover and that are not shared.
    icrc: Unmasked,
    /// The frame that it was made of.
    frame: Frame,
}

impl Flow {
    /// The flow of a frame, which was parsed from `head`; `None` for what has a tag, or is not RoCEv2 over IPv4.
    pub fn of(frame: &Frame, head: &[u8]) -> Option<Flow> {
        let lower = head.first_chunk::<BTH>()?;
        let flows = frame.network == Network::V4 && frame.vlan.is_none() && frame.l3_offset() == L3;
        let (words, mut shared) = (words(lower), SHARED);
        shared.iter_mut().zip(words).for_each(|(shared, word)| *shared &= word);
        let [_, begin, middle, end, last] = shared;
        let halves = [begin >> 48, middle >> 32, middle >> 48, end >> 16, end >> 32, end >> 48, last];
        let ip_sum = halves.iter().map(|half| *half as u32 & 0xFFFF).sum();
        let icrc = Unmasked::of_v4(frame.traffic_class, frame.hop_limit);
        flows.then_some(Flow { shared, ip_sum, icrc, frame: *frame })
    }

    /// Parses a frame of the flow into `place`, exactly as [`Frame::parse`] would, and gives its iCRC before the network header.
    /// `None` for a frame that is not of the flow, or has an error; what `place` holds then means nothing.
    #[inline(always)]
    pub fn parse(&self, head: &[u8], frame_len: usize, place: &mut Option<Frame>) -> Option<Icrc> {
        let lower = head.first_chunk::<BTH>()?;
        let words = words(lower);
        let differs = |at: usize| (words[at] & SHARED[at]) ^ self.shared[at];
        if differs(0) | differs(1) | differs(2) | differs(3) | differs(4) != 0 {
            return None;
        }
        let [_, _, middle, end, last] = words;
        let number = |low: u64| (low as u16).swap_bytes();
        let (total_len, udp_len) = (usize::from(number(middle)), usize::from(number(last >> 48)));
        // UDP fills the IP packet, and that lies in the frame.
        let lengths_fit = total_len == udp_len + Ipv4Header::LEN && L3 + total_len <= frame_len;
        let half = |word: u64| word as u32 & 0xFFFF;
        let ip_sum = self.ip_sum + half(middle) + half(middle >> 16) + half(end);
        if !lengths_fit || udp_len < UdpHeader::LEN || !Ipv4Header::sum_ok(ip_sum) {
            return None;
        }
        let Transport { bth, info, payload_len } =
            Transport::parse(head, BTH, udp_len - UdpHeader::LEN).ok()?;
        let udp_checksum = [lower[BTH - 2], lower[BTH - 1]];
        // Where it is: a copy of what was written in pieces waits for them.
        let frame = place.insert(self.frame);
        frame.udp_sport = number(last >> 16);
        frame.udp_checksum = u16::from_be_bytes(udp_checksum);
        frame.bth = bth;
        frame.info = info;
        frame.payload_offset = (BTH + info.header_len()) as u8;
        frame.payload_len = payload_len;
        let congestion = head.get(BTH + 4).copied().unwrap_or_default();
        Some(self.icrc.before([end as u8, (end >> 8) as u8], udp_checksum, congestion))
    }
}

#[inline(always)]
fn words(lower: &[u8; BTH]) -> Words {
    let mut words = [0; 5];
    let (eights, _) = lower.as_chunks::<8>();
    for (word, eight) in words.iter_mut().zip(eights) {
        *word = u64::from_le_bytes(*eight);
    }
    words
}
