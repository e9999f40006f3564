//! The layers below the BTH of an arriving frame, checked.

use super::{FrameError, Network};
use crate::net::{Ipv4Header, Ipv6Header, ROCE_PORT, UdpHeader, ethertype, protocol};
use std::net::Ipv4Addr;

/// What the network and UDP headers say.
pub(super) struct Lower {
    pub network: Network,
    /// Source GID. As a number it goes through registers, sixteen bytes would go one by one.
    pub src: u128,
    pub dst: u128,
    pub traffic_class: u8,
    pub flow_label: u32,
    pub hop_limit: u8,
    pub udp_sport: u16,
    pub udp_checksum: u16,
    /// Bytes from the BTH to the iCRC, both included. They lie within the frame.
    pub transport_len: usize,
}

impl Lower {
    /// Parses what follows the Ethernet header of `l3` bytes.
    #[inline]
    pub fn parse(head: &[u8], l3: usize, ethertype: u16, frame_len: usize) -> Result<Lower, FrameError> {
        match ethertype {
            ethertype::IPV4 => ipv4(head, l3, frame_len),
            ethertype::IPV6 => ipv6(head, l3, frame_len),
            ethertype::ROCE_V1 => grh(head, l3, frame_len),
            _ => Err(FrameError::EtherType),
        }
    }
}

#[inline(always)]
fn ipv4(head: &[u8], l3: usize, frame_len: usize) -> Result<Lower, FrameError> {
    let bytes = chunk::<{ Ipv4Header::LEN }>(head, l3)?;
    let ip = Ipv4Header::from_bytes(bytes);
    let header_len = usize::from(bytes[0] & 0x0F) * 4;
    if bytes[0] >> 4 != 4 || header_len < Ipv4Header::LEN {
        return Err(FrameError::IpHeader);
    }
    if ip.protocol != protocol::UDP {
        return Err(FrameError::NotUdp);
    }
    if ip.fragment_offset != 0 {
        // Where a UDP header would be there is data: whose it is cannot be told.
        return Err(FrameError::Fragment);
    }
    let udp = roce_udp(head, l3 + header_len)?;
    if header_len != Ipv4Header::LEN {
        return Err(FrameError::IpOptions);
    }
    if ip.mf {
        return Err(FrameError::Fragment);
    }
    if !Ipv4Header::checksum_ok(bytes) {
        return Err(FrameError::IpChecksum);
    }
    let ip_payload_len =
        usize::from(ip.total_len).checked_sub(Ipv4Header::LEN).ok_or(FrameError::IpLength)?;
    Ok(Lower {
        network: Network::V4,
        src: v4_mapped(ip.src),
        dst: v4_mapped(ip.dst),
        traffic_class: ip.tos,
        flow_label: 0,
        hop_limit: ip.ttl,
        udp_sport: udp.sport,
        udp_checksum: udp.checksum,
        transport_len: transport_len(&udp, ip_payload_len, frame_len, l3 + Ipv4Header::LEN)?,
    })
}

/// The GID of an IPv4 address, as a number.
#[inline]
fn v4_mapped(address: Ipv4Addr) -> u128 {
    0xFFFF << 32 | u128::from(address.to_bits())
}

fn ipv6(head: &[u8], l3: usize, frame_len: usize) -> Result<Lower, FrameError> {
    let ip = ipv6_header(head, l3)?;
    // Extension headers are not looked behind: no RoCE sender writes any.
    if ip.next_header != protocol::UDP {
        return Err(FrameError::NotUdp);
    }
    let udp = roce_udp(head, l3 + Ipv6Header::LEN)?;
    let transport_len = transport_len(&udp, usize::from(ip.payload_len), frame_len, l3 + Ipv6Header::LEN)?;
    Ok(Lower {
        udp_sport: udp.sport,
        udp_checksum: udp.checksum,
        ..ipv6_like(Network::V6, &ip, transport_len)
    })
}

fn grh(head: &[u8], l3: usize, frame_len: usize) -> Result<Lower, FrameError> {
    let grh = ipv6_header(head, l3)?;
    if grh.next_header != protocol::BTH {
        return Err(FrameError::GrhNextHeader);
    }
    let transport_len = usize::from(grh.payload_len);
    if l3 + Ipv6Header::LEN + transport_len > frame_len {
        return Err(FrameError::Truncated);
    }
    Ok(ipv6_like(Network::V1, &grh, transport_len))
}

fn ipv6_header(head: &[u8], l3: usize) -> Result<Ipv6Header, FrameError> {
    let bytes = chunk::<{ Ipv6Header::LEN }>(head, l3)?;
    if bytes[0] >> 4 != 6 {
        return Err(FrameError::IpHeader);
    }
    Ok(Ipv6Header::from_bytes(bytes))
}

fn ipv6_like(network: Network, header: &Ipv6Header, transport_len: usize) -> Lower {
    Lower {
        network,
        src: header.src.to_bits(),
        dst: header.dst.to_bits(),
        traffic_class: header.traffic_class,
        flow_label: header.flow_label,
        hop_limit: header.hop_limit,
        udp_sport: 0,
        udp_checksum: 0,
        transport_len,
    }
}

/// The UDP header at `at`, if it is for RoCE. Any source port will do: a ConnectX sends CNPs from port 0.
fn roce_udp(head: &[u8], at: usize) -> Result<UdpHeader, FrameError> {
    let udp = UdpHeader::from_bytes(chunk(head, at)?);
    if udp.dport == ROCE_PORT { Ok(udp) } else { Err(FrameError::OtherPort) }
}

/// Bytes after the UDP header that begins at `at`: UDP must fill the IP packet, and that must lie in the frame.
fn transport_len(
    udp: &UdpHeader,
    ip_payload_len: usize,
    frame_len: usize,
    at: usize,
) -> Result<usize, FrameError> {
    if at + ip_payload_len > frame_len {
        return Err(FrameError::Truncated);
    }
    if usize::from(udp.len) != ip_payload_len {
        return Err(FrameError::UdpLength);
    }
    ip_payload_len.checked_sub(UdpHeader::LEN).ok_or(FrameError::UdpLength)
}

fn chunk<const N: usize>(head: &[u8], at: usize) -> Result<&[u8; N], FrameError> {
    head.get(at..).and_then(|rest| rest.first_chunk()).ok_or(FrameError::Truncated)
}
