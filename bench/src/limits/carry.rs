//! What a message costs without a transport: a frame is made around it on one core, and checked and emptied on another.
//!
//! Headers are there, but nobody composes or reads them; nothing is looked up, acknowledged or completed. Whatever a transport does
//! comes on top.

use dpdk::{Mbuf, MbufBurst, Mempool, Reserve};
use std::sync::Arc;

/// Ethernet, IPv4 and UDP, which the sum's constant part stands for.
const LOWER: usize = 14 + 20 + 8;
/// The same with BTH and RETH: a WRITE's headers.
const HEADERS: usize = LOWER + 12 + 16;
/// The iCRC.
const SUM: usize = 4;
/// The shortest frame that carries something.
pub const SHORTEST: usize = HEADERS + SUM + 1;

/// Where payloads come from, and where they go: what the first caches hold part of, as memory of many messages is.
const AREA: usize = 64 << 10;
/// Frames that are asked for before they are looked into.
const AHEAD: usize = 3;

/// Makes frames around payloads.
pub struct Maker {
    reserve: Reserve,
    headers: [u8; HEADERS],
    payloads: Vec<u8>,
    at: usize,
    payload: usize,
}

impl Maker {
    /// Of frames of so many bytes, [`SHORTEST`] or more, that begin like that.
    pub fn new(pool: &Arc<Mempool>, ethernet: &[u8; 14], frame_bytes: usize) -> Maker {
        let mut headers = [0x5a; HEADERS];
        headers[..ethernet.len()].copy_from_slice(ethernet);
        let payload = frame_bytes.saturating_sub(HEADERS + SUM);
        Maker { reserve: Reserve::new(pool.clone()), headers, payloads: vec![0xa5; AREA], at: 0, payload }
    }

    /// Fills the burst, as far as there are buffers.
    pub fn fill<const N: usize>(&mut self, burst: &mut MbufBurst<N>) {
        let frame_bytes = HEADERS + self.payload + SUM;
        while !burst.is_full() {
            let Some(mut mbuf) = self.reserve.take_whole(frame_bytes) else { return };
            self.write(mbuf.data_mut());
            if burst.push(mbuf).is_err() {
                return;
            }
        }
    }

    #[inline(always)]
    fn write(&mut self, frame: &mut [u8]) {
        if self.at + self.payload > self.payloads.len() {
            self.at = 0;
        }
        let (own, sum) = frame.split_at_mut(HEADERS + self.payload);
        own[..HEADERS].copy_from_slice(&self.headers);
        own[HEADERS..].copy_from_slice(&self.payloads[self.at..][..self.payload]);
        sum.copy_from_slice(&crc::update(0, &own[LOWER..]).to_le_bytes());
        self.at += self.payload;
    }
}

/// Takes payloads out of frames.
pub struct Taker {
    payloads: Vec<u8>,
    at: usize,
}

impl Taker {
    /// One that has not taken anything.
    pub fn new() -> Taker {
        Taker { payloads: vec![0; AREA], at: 0 }
    }

    /// Copies the payloads of those frames whose sum is right, and tells how many they are.
    pub fn take(&mut self, frames: &[Mbuf]) -> usize {
        frames.iter().for_each(Mbuf::prefetch);
        frames.iter().take(AHEAD).for_each(Mbuf::prefetch_data);
        let mut right = 0;
        for (index, frame) in frames.iter().enumerate() {
            if let Some(later) = frames.get(index + AHEAD) {
                later.prefetch_data();
            }
            right += usize::from(self.read(frame.data()));
        }
        right
    }

    #[inline(always)]
    fn read(&mut self, frame: &[u8]) -> bool {
        let Some((own, sum)) = frame.split_last_chunk::<SUM>() else { return false };
        let Some((_, payload)) = own.split_at_checked(HEADERS) else { return false };
        if crc::update(0, &own[LOWER..]).to_le_bytes() != *sum {
            return false;
        }
        if self.at + payload.len() > self.payloads.len() {
            self.at = 0;
        }
        self.payloads[self.at..][..payload.len()].copy_from_slice(payload);
        self.at += payload.len();
        true
    }
}
