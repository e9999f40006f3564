//! What a link does to frames, decided by the world's random numbers.

use engine::Nanos;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

/// How often something happens, in parts of a million frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Rate(pub u32);

impl Rate {
    /// So many of a hundred.
    pub const fn percent(percent: u32) -> Rate {
        Rate(percent * 10_000)
    }

    fn strikes(self, rng: &mut ChaCha8Rng) -> bool {
        // A rate of nothing costs no random number, so that clean runs differ by nothing but their seeds' data.
        self.0 > 0 && rng.random_range(0..1_000_000) < self.0
    }
}

/// What links do to frames. All links of a world are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faults {
    /// Frames that vanish.
    pub loss: Rate,
    /// Frames that arrive twice.
    pub duplication: Rate,
    /// Frames that arrive later than those behind them.
    pub reordering: Rate,
    /// Frames in which one to three bits behind the Ethernet header change.
    pub corruption: Rate,
    /// Nothing arrives at all.
    pub dead: bool,
    /// The way from one end to the other, at least.
    pub delay_ns: Nanos,
    /// How much later a reordered frame arrives, at most.
    pub reorder_by_ns: Nanos,
    /// Bits per second on the wire, each way.
    pub bits_per_second: u64,
}

impl Default for Faults {
    /// A clean link of 100 Gb/s and 1 µs.
    fn default() -> Self {
        Faults {
            loss: Rate(0),
            duplication: Rate(0),
            reordering: Rate(0),
            corruption: Rate(0),
            dead: false,
            delay_ns: 1_000,
            reorder_by_ns: 20_000,
            bits_per_second: 100_000_000_000,
        }
    }
}

/// Preamble, frame check sequence and gap: bytes on the wire besides the frame.
const WIRE_OVERHEAD: u64 = 24;

impl Faults {
    /// Time that a frame occupies the wire.
    pub(crate) fn wire_time(&self, frame_len: usize) -> Nanos {
        (frame_len as u64 + WIRE_OVERHEAD) * 8 * 1_000_000_000 / self.bits_per_second
    }

    /// What arrives of a frame that left at `now`, and when.
    pub(crate) fn carry(&self, rng: &mut ChaCha8Rng, now: Nanos, frame: Vec<u8>) -> Vec<(Nanos, Vec<u8>)> {
        if self.dead || self.loss.strikes(rng) {
            return Vec::new();
        }
        let copies = if self.duplication.strikes(rng) { 2 } else { 1 };
        (0..copies)
            .map(|copy| {
                let mut frame = frame.clone();
                if self.corruption.strikes(rng) {
                    corrupt(rng, &mut frame);
                }
                let late =
                    if self.reordering.strikes(rng) { rng.random_range(1..=self.reorder_by_ns) } else { 0 };
                (now + self.delay_ns + late + copy, frame)
            })
            .collect()
    }
}

/// Up to three bits: what the CRC is sure to find in frames of this length. The Ethernet header is spared, as a NIC's own
/// checksum takes care of it.
fn corrupt(rng: &mut ChaCha8Rng, frame: &mut [u8]) {
    const ETHERNET: usize = 14;
    for _ in 0..rng.random_range(1..=3) {
        let at = rng.random_range(ETHERNET..frame.len());
        frame[at] ^= 1 << rng.random_range(0..8);
    }
}
