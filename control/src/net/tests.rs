//! Tests of the slow path as a whole: frames in, frames and events out. The golden frames are scapy's.

mod answers;
mod groups;
mod junk;
mod resolve;
mod routes;
mod stack;
mod too_big;
#[rustfmt::skip] // as the generator wrote it
mod vectors;

use std::net::IpAddr;

use wire::{Gid, Mac};

use super::*;

pub const US: Mac = Mac([2, 0, 0, 0, 0, 1]);
pub const PEER: Mac = Mac([2, 0, 0, 0, 0, 2]);
pub const OTHER: Mac = Mac([2, 0, 0, 0, 0, 3]);

/// Hexadecimal text and the number of zero bytes that follow it.
#[derive(Clone, Copy, Debug)]
pub struct Frame(&'static str, usize);

impl Frame {
    pub fn bytes(self) -> Vec<u8> {
        let digits = self.0.as_bytes().chunks(2);
        let bytes = digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap());
        bytes.chain(std::iter::repeat_n(0, self.1)).collect()
    }
}

pub fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub fn config() -> Config {
    Config::new(US, vec!["192.0.2.1/24".parse().unwrap(), "2001:db8::1/64".parse().unwrap()])
}

/// The interface of most tests: 192.0.2.1/24, 2001:db8::1/64, untagged, MTU 1500.
pub fn interface() -> Interface {
    Interface::new(config()).unwrap()
}

/// All frames that wait to be sent.
pub fn sent(interface: &mut Interface) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| interface.poll_transmit()).collect()
}

pub fn events(interface: &mut Interface) -> Vec<LinkEvent> {
    std::iter::from_fn(|| interface.poll_event()).collect()
}

/// Feeds a frame and returns what it draws.
pub fn answers(interface: &mut Interface, now: u64, frame: Frame) -> Vec<Vec<u8>> {
    interface.on_frame(now, &frame.bytes());
    sent(interface)
}
