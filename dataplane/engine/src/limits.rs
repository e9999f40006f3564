//! Sizes that the engine is built with. Everything bounded is bounded here.

/// Scatter/gather entries of one work request.
pub const MAX_SGE: usize = 8;
/// Bytes of payload that a work request can carry in itself (inline).
pub const MAX_INLINE: usize = 128;
/// Most QPs of a device, all of which may live on one of its workers. Tables of QPs grow as QPs come, so the limit costs nothing.
pub const MAX_QPS: usize = 65_536;
/// Largest message: RC and UC, bytes. The wire allows 2^31; a completion's byte count and a RETH length of exactly
/// 2^31 are accepted from peers.
pub const MAX_MESSAGE: u32 = 1 << 31;
/// Most READs and atomics that one QP keeps per direction.
pub const MAX_RD_ATOMIC: u8 = 128;
/// Largest ACK timeout code.
pub const MAX_ACK_TIMEOUT: u8 = 31;
/// Largest retry counter, of timeouts and of RNR NAKs.
pub const MAX_RETRIES: u8 = 7;
/// Largest RNR timer code.
pub const MAX_RNR_TIMER: u8 = 31;
/// Most shared receive queues of a device.
pub const MAX_SRQ: usize = 65_536;
/// Deepest send or receive queue, shared ones among them.
pub const MAX_QP_WR: u32 = 32_768;
/// Deepest completion queue.
pub const MAX_CQE: u32 = 1 << 22;
/// Requester window when a QP starts, in packets.
pub const WINDOW_START: u32 = 128;
/// The window never shrinks below this, in packets.
pub const WINDOW_MIN: u32 = 16;
/// The window never grows above this, in packets. Far below 2^23 (half the PSN space).
pub const WINDOW_MAX: u32 = 4096;
/// An AckReq is set at least once in so many packets of a long message.
pub const ACK_REQ_EVERY: u32 = 32;
/// Bytes that a QP may send in its turn before the next QP has its own (deficit round robin).
pub const QUANTUM_BYTES: u32 = 16 * 1024;
/// Bytes before the payload in a UD receive buffer (the GRH area).
pub const UD_GRH_BYTES: u32 = 40;
