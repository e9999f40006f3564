//! Ethernet with an optional 802.1Q tag.

use crate::types::Mac;

/// Ethertypes that we know.
pub mod ethertype {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// IPv6.
    pub const IPV6: u16 = 0x86DD;
    /// An 802.1Q tag.
    pub const VLAN: u16 = 0x8100;
    /// RoCE v1.
    pub const ROCE_V1: u16 = 0x8915;
}

/// An 802.1Q tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vlan {
    /// Priority, 3 bits.
    pub pcp: u8,
    /// Drop eligible.
    pub dei: bool,
    /// VLAN, 12 bits. 0 carries a priority only.
    pub vid: u16,
}

impl Vlan {
    /// A tag that is not drop eligible.
    pub const fn new(pcp: u8, vid: u16) -> Self {
        Vlan { pcp: pcp & 7, dei: false, vid: vid & 0x0FFF }
    }

    /// From the tag control information.
    pub const fn from_tci(tci: u16) -> Self {
        Vlan { pcp: (tci >> 13) as u8, dei: tci & 0x1000 != 0, vid: tci & 0x0FFF }
    }

    /// The tag control information.
    pub const fn tci(self) -> u16 {
        (self.pcp as u16 & 7) << 13 | (self.dei as u16) << 12 | self.vid & 0x0FFF
    }
}

/// An Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EthernetHeader {
    /// Destination.
    pub dmac: Mac,
    /// Source.
    pub smac: Mac,
    /// The tag, if there is one.
    pub vlan: Option<Vlan>,
    /// What follows, behind the tag.
    pub ethertype: u16,
}

impl EthernetHeader {
    /// Bytes with a tag.
    pub const MAX_LEN: usize = 18;

    /// Bytes of this header: 14, or 18 with a tag.
    #[expect(clippy::len_without_is_empty, reason = "a header is never empty")]
    pub const fn len(&self) -> usize {
        if self.vlan.is_some() { 18 } else { 14 }
    }

    /// Reads it from the beginning of a frame; `None` when that is too short.
    #[inline]
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1] = *frame.first_chunk::<14>()?;
        let outer = u16::from_be_bytes([t0, t1]);
        let (vlan, ethertype) = if outer == ethertype::VLAN {
            let [c0, c1, t0, t1] = *frame[14..].first_chunk::<4>()?;
            (Some(Vlan::from_tci(u16::from_be_bytes([c0, c1]))), u16::from_be_bytes([t0, t1]))
        } else {
            (None, outer)
        };
        let (dmac, smac) = (Mac([d0, d1, d2, d3, d4, d5]), Mac([s0, s1, s2, s3, s4, s5]));
        Some(EthernetHeader { dmac, smac, vlan, ethertype })
    }

    /// Writes it to the beginning of `out` and gives its length; `None` when there is no room.
    pub fn emit(&self, out: &mut [u8]) -> Option<usize> {
        let len = self.len();
        let out = out.get_mut(..len)?;
        out[..6].copy_from_slice(&self.dmac.0);
        out[6..12].copy_from_slice(&self.smac.0);
        if let Some(vlan) = self.vlan {
            out[12..14].copy_from_slice(&ethertype::VLAN.to_be_bytes());
            out[14..16].copy_from_slice(&vlan.tci().to_be_bytes());
        }
        out[len - 2..].copy_from_slice(&self.ethertype.to_be_bytes());
        Some(len)
    }
}
