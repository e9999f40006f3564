//! What a payload byte costs at the least on one side: a copy and a CRC-32.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// An area of payloads that stays in caches.
pub const HOT_BYTES: usize = 1 << 20;
/// The area that does not stay in the caches of a core.
pub const COLD_BYTES: usize = 1 << 30;
/// Packet buffers that take turns: as many as a port's pool has in use, a few hundred.
const BUFFERS: usize = 256;
/// Payload of a packet at most: longer messages are several.
const PACKET: usize = 4096;

/// What is done with each payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Copied into a packet buffer.
    Copy,
    /// Read for its CRC-32.
    Crc,
    /// Both, one after the other.
    CopyCrc,
}

impl Work {
    /// All of them.
    pub const ALL: [Work; 3] = [Work::Copy, Work::Crc, Work::CopyCrc];

    /// Its name on command lines and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Work::Copy => "copy",
            Work::Crc => "crc",
            Work::CopyCrc => "copy-crc",
        }
    }
}

/// Payload bytes a second: payloads of `size` bytes, one after the other out of an area of `area` bytes, on this thread.
///
/// `size` has to be 1 or more and at most `area`.
pub fn bytes_per_second(work: Work, size: usize, area: usize, time: Duration) -> f64 {
    let size = size.clamp(1, area.max(1));
    // Not zeros: every page is to be there.
    let area = vec![0xa5u8; area.max(1)];
    let stride = size.min(PACKET);
    let mut buffers = vec![0u8; BUFFERS * stride];
    let mut bytes = 0usize;
    let mut turn = 0;
    // Looked at every so often only: the clock costs as much as a short payload.
    let each = ((1 << 16) / size).max(1);
    let mut payloads = area.chunks_exact(size).cycle();
    let begin = Instant::now();
    while begin.elapsed() < time {
        for payload in payloads.by_ref().take(each) {
            for part in payload.chunks(stride) {
                let buffer = &mut buffers[turn * stride..][..part.len()];
                turn = (turn + 1) % BUFFERS;
                match work {
                    Work::Copy => buffer.copy_from_slice(part),
                    Work::Crc => {
                        black_box(crc32fast::hash(part));
                    }
                    Work::CopyCrc => {
                        buffer.copy_from_slice(part);
                        black_box(crc32fast::hash(buffer));
                    }
                }
                black_box(&mut *buffer);
            }
            bytes += size;
        }
    }
    bytes as f64 / begin.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_work_gets_done() {
        for work in Work::ALL {
            for size in [1, 64, 4096, 1 << 16] {
                let rate = bytes_per_second(work, size, 1 << 16, Duration::from_millis(2));
                assert!(rate.is_finite() && rate > 0.0, "{work:?} {size}: {rate}");
            }
        }
    }
}
