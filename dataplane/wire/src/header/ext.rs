//! Extension headers but the AETH.

use super::slice_forms;
use crate::types::{QKey, Qpn, RKey};

/// Eight bytes at `at` as a big-endian number. Offsets are constants inside fixed arrays.
#[inline]
fn be64<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_be_bytes(eight)
}

/// Four bytes at `at` as a big-endian number.
#[inline]
fn be32<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(four)
}

/// RDMA: where a WRITE goes or a READ comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reth {
    /// Virtual address at the responder.
    pub va: u64,
    /// Key of the responder's region.
    pub rkey: RKey,
    /// Bytes of the whole message.
    pub dma_len: u32,
}

impl Reth {
    /// Bytes on the wire.
    pub const LEN: usize = 16;

    /// From its bytes.
    #[inline]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        Reth { va: be64(bytes, 0), rkey: RKey::new(be32(bytes, 8)), dma_len: be32(bytes, 12) }
    }

    /// Its bytes.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        // One number, so that it is written in eights.
        let low = u64::from(self.rkey.value()) << 32 | u64::from(self.dma_len);
        (u128::from(self.va) << 64 | u128::from(low)).to_be_bytes()
    }
}
slice_forms!(Reth, Reth);

/// Atomic request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicEth {
    /// Virtual address at the responder; must be a multiple of eight.
    pub va: u64,
    /// Key of the responder's region.
    pub rkey: RKey,
    /// The new value (compare and swap) or what to add (fetch and add).
    pub swap_or_add: u64,
    /// The value to compare with; 0 and ignored for fetch and add.
    pub compare: u64,
}

impl AtomicEth {
    /// Bytes on the wire.
    pub const LEN: usize = 28;

    /// From its bytes.
    #[inline]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        AtomicEth {
            va: be64(bytes, 0),
            rkey: RKey::new(be32(bytes, 8)),
            swap_or_add: be64(bytes, 12),
            compare: be64(bytes, 20),
        }
    }

    /// Its bytes.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..8].copy_from_slice(&self.va.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.rkey.value().to_be_bytes());
        bytes[12..20].copy_from_slice(&self.swap_or_add.to_be_bytes());
        bytes[20..].copy_from_slice(&self.compare.to_be_bytes());
        bytes
    }
}
slice_forms!(AtomicEth, AtomicEth);

/// Atomic response: the value before the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicAckEth {
    /// What was in memory before.
    pub original: u64,
}

impl AtomicAckEth {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// From its bytes.
    #[inline]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        AtomicAckEth { original: u64::from_be_bytes(*bytes) }
    }

    /// Its bytes.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        self.original.to_be_bytes()
    }
}
slice_forms!(AtomicAckEth, AtomicAckEth);

/// Immediate data: four bytes that pass through in network order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImmDt(pub [u8; 4]);

impl ImmDt {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    /// From its bytes.
    #[inline]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        ImmDt(*bytes)
    }

    /// Its bytes.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        self.0
    }
}
slice_forms!(ImmDt, ImmDt);

/// Invalidate: the key that a SEND takes away at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ieth {
    /// The key to invalidate.
    pub rkey: RKey,
}

impl Ieth {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    /// From its bytes.
    #[inline]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        Ieth { rkey: RKey::new(u32::from_be_bytes(*bytes)) }
    }

    /// Its bytes.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        self.rkey.value().to_be_bytes()
    }
}
slice_forms!(Ieth, Ieth);

/// Datagram: key and sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deth {
    /// Must equal the receiving QP's key.
    pub qkey: QKey,
    /// The QP that sent.
    pub src_qpn: Qpn,
}

impl Deth {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// From its bytes.
    #[inline]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        Deth { qkey: QKey::new(be32(bytes, 0)), src_qpn: Qpn::new(be32(bytes, 4)) }
    }

    /// Its bytes.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(&self.qkey.value().to_be_bytes());
        bytes[4..].copy_from_slice(&self.src_qpn.value().to_be_bytes());
        bytes
    }
}
slice_forms!(Deth, Deth);

/// Extended reliable connection: the receiver's SRQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XrcEth {
    /// XRC SRQ number, 24 bits.
    pub srqn: u32,
}

impl XrcEth {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    /// From its bytes.
    #[inline]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        XrcEth { srqn: u32::from_be_bytes(*bytes) & 0x00FF_FFFF }
    }

    /// Its bytes.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        (self.srqn & 0x00FF_FFFF).to_be_bytes()
    }
}
slice_forms!(XrcEth, XrcEth);

/// Reliable datagram: end-to-end context. Known for its length only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rdeth {
    /// End-to-end context, 24 bits.
    pub ee_context: u32,
}

impl Rdeth {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    /// From its bytes.
    #[inline]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        Rdeth { ee_context: u32::from_be_bytes(*bytes) & 0x00FF_FFFF }
    }

    /// Its bytes.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        (self.ee_context & 0x00FF_FFFF).to_be_bytes()
    }
}
slice_forms!(Rdeth, Rdeth);

/// FLUSH: how durable, and how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feth {
    /// Placement: bit 0 global visibility, bit 1 persistence. Four bits.
    pub plt: u8,
    /// Selectivity: 0 the range of the RETH, 1 the whole region. Two bits.
    pub sel: u8,
}

impl Feth {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    /// From its bytes.
    #[inline]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        Feth { plt: bytes[3] & 0x0F, sel: bytes[3] >> 4 & 3 }
    }

    /// Its bytes.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        [0, 0, 0, (self.sel & 3) << 4 | self.plt & 0x0F]
    }
}
slice_forms!(Feth, Feth);
