//! rping: the client offers memory, the server reads it, and writes it back to other memory of the client.
//!
//! | client | server |
//! | --- | --- |
//! | SEND: an [`Advert`] of the data | |
//! | | READ of the data |
//! | | SEND of 16 bytes, which mean nothing: go on |
//! | SEND: an [`Advert`] of where it shall come back | |
//! | | WRITE of the data |
//! | | SEND of 16 bytes: done |
//!
//! And again, until the client disconnects. One READ at a time; each end has a receive posted before the other can send.

use super::ProgramError;

mod client;
mod server;
#[cfg(test)]
mod tests;

pub(super) use client::Client;
pub(super) use client::Round;
pub(super) use server::Server;

/// Port of RDMA_PS_TCP, unless told otherwise.
pub const PORT: u16 = 7174;

/// Bytes of every SEND.
const MESSAGE: usize = 16;
/// Longest data that our server reads and writes back. rping's own limit is lower.
pub(super) const MAX_SIZE: u32 = 1 << 20;
/// What rping's data begins with.
const PREFIX: &str = "rdma-ping-";

/// Memory of the client: address, key and length, in network order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Advert {
    addr: u64,
    rkey: u32,
    len: u32,
}

impl Advert {
    fn emit(self) -> [u8; MESSAGE] {
        let mut bytes = [0; MESSAGE];
        bytes[..8].copy_from_slice(&self.addr.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.rkey.to_be_bytes());
        bytes[12..].copy_from_slice(&self.len.to_be_bytes());
        bytes
    }

    fn parse(bytes: &[u8; MESSAGE]) -> Advert {
        let [addr @ .., a, b, c, d, e, f, g, h] = *bytes;
        Advert {
            addr: u64::from_be_bytes(addr),
            rkey: u32::from_be_bytes([a, b, c, d]),
            len: u32::from_be_bytes([e, f, g, h]),
        }
    }
}

/// The data of round `number`, as rping makes it: a text that begins with the number, then the letters and what lies between them
/// in ASCII, from a later one in each round; a NUL at the end.
pub(super) fn content(number: u64, size: usize) -> Vec<u8> {
    let letters = || b'A'..=b'z';
    let start = (number % letters().len() as u64) as usize;
    let rest = letters().cycle().skip(start);
    let mut bytes: Vec<u8> = format!("{PREFIX}{number}: ").bytes().chain(rest).take(size).collect();
    if let Some(last) = bytes.last_mut() {
        *last = 0;
    }
    bytes
}
