//! Numbers at fixed places of fixed arrays, big endian. Offsets are constants of the message layouts.

use crate::types::Gid;

/// Reads.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(array_at(bytes, at))
}

pub(super) fn u24_at(bytes: &[u8], at: usize) -> u32 {
    let [high, middle, low] = array_at(bytes, at);
    u32::from_be_bytes([0, high, middle, low])
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array_at(bytes, at))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(array_at(bytes, at))
}

pub(super) fn gid_at(bytes: &[u8], at: usize) -> Gid {
    Gid(array_at(bytes, at))
}

pub(super) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

/// Writes.
pub(super) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// The low 24 bits.
pub(super) fn put24(bytes: &mut [u8], at: usize, value: u32) {
    put(bytes, at, &value.to_be_bytes()[1..]);
}
