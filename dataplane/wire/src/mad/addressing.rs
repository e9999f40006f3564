//! The IP addressing header: the first 36 bytes of private data in a REQ or SIDR_REQ of rdma_cm (rocev2 facts, CM 5).

use super::fields::{array_at, put, u16_at};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Who asks, from which port, for which address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpAddressing {
    /// Port of the active side.
    pub source_port: u16,
    /// Address of the active side.
    pub source: IpAddr,
    /// Address that was asked for; of the same family as `source`.
    pub destination: IpAddr,
}

/// What is wrong with an addressing header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressingError {
    /// Fewer than 36 bytes.
    Short,
    /// Version of the header other than 0; it is in the value.
    Version(u8),
    /// IP version other than 4 and 6; it is in the value.
    IpVersion(u8),
}

const V4: u8 = 4;
const V6: u8 = 6;

impl IpAddressing {
    /// Bytes on the wire.
    pub const LEN: usize = 36;

    /// Reads it from the beginning of private data. The twelve bytes in front of an IPv4 address are not looked at.
    pub fn parse(private_data: &[u8]) -> Result<Self, AddressingError> {
        let bytes: &[u8; Self::LEN] = private_data.first_chunk().ok_or(AddressingError::Short)?;
        if bytes[0] != 0 {
            return Err(AddressingError::Version(bytes[0]));
        }
        let address: fn(&[u8], usize) -> IpAddr = match bytes[1] >> 4 {
            V4 => |bytes, at| IpAddr::V4(Ipv4Addr::from(array_at::<4>(bytes, at + 12))),
            V6 => |bytes, at| IpAddr::V6(Ipv6Addr::from(array_at::<16>(bytes, at))),
            other => return Err(AddressingError::IpVersion(other)),
        };
        Ok(IpAddressing {
            source_port: u16_at(bytes, 2),
            source: address(bytes, 4),
            destination: address(bytes, 20),
        })
    }

    /// Its bytes; `None` when the addresses are of two families.
    pub fn to_bytes(&self) -> Option<[u8; Self::LEN]> {
        let mut bytes = [0; Self::LEN];
        bytes[2..4].copy_from_slice(&self.source_port.to_be_bytes());
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                bytes[1] = V4 << 4;
                put(&mut bytes, 16, &source.octets());
                put(&mut bytes, 32, &destination.octets());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                bytes[1] = V6 << 4;
                put(&mut bytes, 4, &source.octets());
                put(&mut bytes, 20, &destination.octets());
            }
            _ => return None,
        }
        Some(bytes)
    }
}

impl fmt::Display for AddressingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressingError::Short => {
                write!(f, "no room for an IP addressing header of {} bytes", IpAddressing::LEN)
            }
            AddressingError::Version(version) => {
                write!(f, "IP addressing header of version {version:#04x}, not 0")
            }
            AddressingError::IpVersion(version) => write!(f, "IP version {version} in the addressing header"),
        }
    }
}

impl std::error::Error for AddressingError {}
