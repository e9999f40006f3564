//! Routers that say that our packets do not fit: ICMP "fragmentation needed" and ICMPv6 "packet too big".
//!
//! What they say is kept for people (`rockhopper stats`) and changes nothing: a path MTU belongs to both ends of a connection, which
//! agree on it when they connect, and such a message is easily forged. So it has to quote a packet that we can have sent, and the
//! table of what was said is small. unverified RFC 792, 1191, 4443, 8201.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::{Qpn, ROCE_PORT};

/// Destinations that are remembered; the one that was named longest ago makes room for a new one.
const REMEMBERED: usize = 16;
/// unverified RFC 791: every router passes so many bytes on. 0 says that it does not know a number.
const LEAST_V4: u32 = 68;
/// unverified RFC 8200 5: as above, for IPv6.
const LEAST_V6: u32 = 1280;

/// What routers have said of one destination, or of one queue pair there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBig {
    /// Who said so last.
    pub reporter: IpAddr,
    /// The own address that the packet came from.
    pub source: IpAddr,
    /// Where it was to go.
    pub destination: IpAddr,
    /// Its destination queue pair, if so much of it was quoted.
    pub dest_qpn: Option<Qpn>,
    /// The longest IP packet that passes there, bytes; `None` when the router does not say.
    pub mtu: Option<u16>,
    /// How often.
    pub count: u64,
    /// When last.
    pub at_ns: u64,
}

/// A message that keeps the rules of its protocol. What it quotes is not yet compared with our addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub reporter: IpAddr,
    /// Whom it was sent to.
    pub to: IpAddr,
    pub mtu: u32,
    pub quoted: Quoted,
}

/// The beginning of a RoCEv2 packet, as a router quotes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quoted {
    pub source: IpAddr,
    pub destination: IpAddr,
    /// Of its IP packet, bytes.
    pub len: u32,
    pub dest_qpn: Option<Qpn>,
}

/// What was said, by destination.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard(Vec<TooBig>);

impl Heard {
    /// Remembers a message. False when no packet of that length can have been too long there.
    pub fn take(&mut self, now: u64, message: &Message) -> bool {
        let Message { reporter, mtu, quoted, .. } = *message;
        let least = if quoted.destination.is_ipv4() { LEAST_V4 } else { LEAST_V6 };
        let unsaid = mtu == 0 && quoted.destination.is_ipv4();
        if !unsaid && !(least..quoted.len).contains(&mtu) {
            return false;
        }
        let mtu = u16::try_from(mtu).ok().filter(|_| !unsaid);
        let Quoted { source, destination, dest_qpn, .. } = quoted;
        let name = |known: &TooBig| (known.source, known.destination, known.dest_qpn);
        match self.0.iter_mut().find(|known| name(known) == (source, destination, dest_qpn)) {
            Some(known) => *known = TooBig { reporter, mtu, count: known.count + 1, at_ns: now, ..*known },
            None => {
                if self.0.len() == REMEMBERED {
                    let oldest = self.0.iter().zip(0..).min_by_key(|(known, _)| known.at_ns);
                    if let Some((_, at)) = oldest {
                        self.0.remove(at);
                    }
                }
                self.0.push(TooBig { reporter, source, destination, dest_qpn, mtu, count: 1, at_ns: now });
            }
        }
        true
    }

    pub fn all(&self) -> &[TooBig] {
        &self.0
    }
}

/// Reads the beginning of an IPv4 packet. `None` unless it is one that we can have sent: RoCEv2, without options, not to be
/// fragmented.
pub(super) fn quoted_v4(bytes: &[u8]) -> Option<Quoted> {
    const UDP: u8 = 17;
    let header: &[u8; 20] = bytes.first_chunk()?;
    let fragment = u16::from_be_bytes([header[6], header[7]]);
    // Don't fragment, and nothing else.
    if header[0] != 0x45 || header[9] != UDP || fragment != 0x4000 {
        return None;
    }
    let address = |at: usize| Some(IpAddr::V4(Ipv4Addr::from(*header[at..].first_chunk::<4>()?)));
    let len = u32::from(u16::from_be_bytes([header[2], header[3]]));
    let dest_qpn = dest_qpn(&bytes[20..])?;
    Some(Quoted { source: address(12)?, destination: address(16)?, len, dest_qpn })
}

/// As [`quoted_v4`], of an IPv6 packet.
pub(super) fn quoted_v6(bytes: &[u8]) -> Option<Quoted> {
    const UDP: u8 = 17;
    let header: &[u8; 40] = bytes.first_chunk()?;
    if header[0] >> 4 != 6 || header[6] != UDP {
        return None;
    }
    let address = |at: usize| Some(IpAddr::V6(Ipv6Addr::from(*header[at..].first_chunk::<16>()?)));
    let len = 40 + u32::from(u16::from_be_bytes([header[4], header[5]]));
    let dest_qpn = dest_qpn(&bytes[40..])?;
    Some(Quoted { source: address(8)?, destination: address(24)?, len, dest_qpn })
}

/// The destination queue pair behind a UDP header that is RoCEv2's. The outer `None`: it is not, or not quoted at all.
fn dest_qpn(udp: &[u8]) -> Option<Option<Qpn>> {
    let [_, _, high, low] = *udp.first_chunk()?;
    // rocev2 facts, wire 5: the last three bytes of the BTH's second word.
    let qpn = udp.get(8..).and_then(|bth| bth.first_chunk::<8>());
    let qpn = qpn.map(|bth| Qpn::new(u32::from_be_bytes([0, bth[5], bth[6], bth[7]])));
    (u16::from_be_bytes([high, low]) == ROCE_PORT).then_some(qpn)
}
