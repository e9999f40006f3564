//! Queries of routers, in all versions.

use super::Version;
use super::frames::pseudo_header;
use crate::net::{Counter, SECOND_NS};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::OnesComplement;

/// A router asks who belongs to which group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::net) struct Query {
    pub v6: bool,
    pub version: Version,
    /// The group asked for; `None` for all.
    pub group: Option<IpAddr>,
    /// Within how long hosts are to answer.
    pub max_delay_ns: u64,
}

const MEMBERSHIP_QUERY: u8 = 0x11;
const LISTENER_QUERY: u8 = 130;
/// unverified RFC 2236 4: the delay of a version that does not say one.
const V1_DELAY_NS: u64 = 10 * SECOND_NS;

/// Reads an IGMP message. What other hosts report is none of our business.
pub(in crate::net) fn igmp(message: &[u8]) -> Result<Query, Counter> {
    let Some(&[kind, code, _, _, a, b, c, d]) = message.first_chunk() else { return Err(Counter::Malformed) };
    let mut sum = OnesComplement::default();
    sum.bytes(message);
    if sum.folded() != 0xFFFF {
        return Err(Counter::BadChecksum);
    }
    if kind != MEMBERSHIP_QUERY {
        return Err(Counter::UnknownProtocol);
    }
    let group = Ipv4Addr::new(a, b, c, d);
    if !group.is_unspecified() && !group.is_multicast() {
        return Err(Counter::Malformed);
    }
    // unverified RFC 3376 7.1: the length tells the third version, the missing delay the first.
    let tenths = |count: u64| count * SECOND_NS / 10;
    let (version, max_delay_ns) = match (message.len(), code) {
        (12.., _) => (Version::Third, tenths(floating(code.into(), 4, 128))),
        (8, 0) => (Version::First, V1_DELAY_NS),
        (8, _) => (Version::Second, tenths(code.into())),
        _ => return Err(Counter::Malformed),
    };
    let group = (!group.is_unspecified()).then_some(IpAddr::V4(group));
    Ok(Query { v6: false, version, group, max_delay_ns })
}

/// Reads an ICMPv6 message that came with a Router Alert.
pub(in crate::net) fn mld(source: Ipv6Addr, destination: Ipv6Addr, message: &[u8]) -> Result<Query, Counter> {
    let mut sum = pseudo_header(source, destination, message.len());
    sum.bytes(message);
    if sum.folded() != 0xFFFF {
        return Err(Counter::BadChecksum);
    }
    if message.first() != Some(&LISTENER_QUERY) {
        return Err(Counter::UnknownProtocol);
    }
    let (Some(code), Some(group)) =
        (message.get(4..6), message.get(8..).and_then(|rest| rest.first_chunk::<16>()))
    else {
        return Err(Counter::Malformed);
    };
    let code = u64::from(code[0]) << 8 | u64::from(code[1]);
    let millis = |count: u64| count * SECOND_NS / 1000;
    // unverified RFC 3810 8.1: as with IGMP, by the length.
    let (version, max_delay_ns) = match message.len() {
        24 => (Version::Second, millis(code)),
        28.. => (Version::Third, millis(floating(code, 12, 32_768))),
        _ => return Err(Counter::Malformed),
    };
    let group = Ipv6Addr::from(*group);
    // unverified RFC 3810 5.1.14: asked by a neighbour.
    if !source.is_unicast_link_local() || (!group.is_unspecified() && !group.is_multicast()) {
        return Err(Counter::BadSource);
    }
    let group = (!group.is_unspecified()).then_some(IpAddr::V6(group));
    Ok(Query { v6: true, version, group, max_delay_ns })
}

/// unverified RFC 3376 4.1.1, RFC 3810 5.1.3: from `limit` on, three bits of exponent and so many of mantissa.
fn floating(code: u64, mantissa_bits: u32, limit: u64) -> u64 {
    if code < limit {
        return code;
    }
    let mantissa = code & ((1 << mantissa_bits) - 1) | 1 << mantissa_bits;
    mantissa << ((code >> mantissa_bits & 7) + 3)
}
