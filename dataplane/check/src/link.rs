//! Captures of other links, as Ethernet frames: what lies in front of the network header is replaced.

/// Link types as capture files number them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// Ethernet.
    Ethernet,
    /// An IP header comes first.
    RawIp,
    /// Linux "cooked": 16 bytes, the ethertype last.
    LinuxSll,
    /// Linux "cooked" version 2: 20 bytes, the ethertype first.
    LinuxSll2,
}

impl LinkType {
    /// By its number (1, 101, 113, 276, and 228 and 229 for IP of one version); `None` for one that is not known.
    pub const fn from_number(number: u32) -> Option<LinkType> {
        Some(match number {
            1 => LinkType::Ethernet,
            12 | 101 | 228 | 229 => LinkType::RawIp,
            113 => LinkType::LinuxSll,
            276 => LinkType::LinuxSll2,
            _ => return None,
        })
    }
}

const MACS: usize = 12;

/// The frame as Ethernet, in `scratch` where it has to be built, and how many bytes it is longer than before (negative:
/// shorter). VLAN tags but the innermost are taken off. Frames too short for their link are given as they are: they are no
/// RoCE.
pub fn ethernet<'a>(link: LinkType, bytes: &'a [u8], scratch: &'a mut Vec<u8>) -> (&'a [u8], isize) {
    let (skip, ethertype) = match (link, bytes) {
        (LinkType::Ethernet, _) => return outer_tags(bytes, scratch),
        (LinkType::RawIp, [first, ..]) => (0, if first >> 4 == 6 { [0x86, 0xDD] } else { [0x08, 0x00] }),
        (LinkType::LinuxSll, [_, _, _, _, _, _, _, _, _, _, _, _, _, _, high, low, ..]) => {
            (16, [*high, *low])
        }
        (LinkType::LinuxSll2, [high, low, ..]) if bytes.len() >= 20 => (20, [*high, *low]),
        _ => return (&[], 0),
    };
    scratch.clear();
    scratch.extend_from_slice(&[0; MACS]);
    scratch.extend_from_slice(&ethertype);
    scratch.extend_from_slice(&bytes[skip..]);
    (scratch, MACS as isize + 2 - skip as isize)
}

/// Takes off service tags (0x88A8) and outer 802.1Q tags.
fn outer_tags<'a>(bytes: &'a [u8], scratch: &'a mut Vec<u8>) -> (&'a [u8], isize) {
    let tagged = |at: usize| matches!(bytes.get(at..at + 2), Some([0x81, 0x00] | [0x88, 0xA8]));
    let mut skip = 0;
    while tagged(MACS + skip) && (tagged(MACS + skip + 4) || bytes[MACS + skip] == 0x88) {
        skip += 4;
    }
    if skip == 0 {
        return (bytes, 0);
    }
    scratch.clear();
    scratch.extend_from_slice(&bytes[..MACS]);
    scratch.extend_from_slice(bytes.get(MACS + skip..).unwrap_or_default());
    (scratch, -(skip as isize))
}
