//! The bound that no software endpoint with an iCRC can pass: one copy and one CRC-32 a payload byte on each side.
//!
//! Copies payloads out of 1 MiB (the area that `rockhopper-perf` uses without `--verify`) into a buffer and computes their
//! CRC-32, on one thread with everything in its caches. Prints one line a size. Compare in one sitting with
//! `rockhopper-perf write-bw --loopback ring`: `cargo run --release -p rockhopper-perf --example copy_crc_bound`.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::time::{Duration, Instant};

const AREA: usize = 1 << 20;
const FOR: Duration = Duration::from_millis(500);

fn main() {
    let area: Vec<u8> = (0..AREA).map(|i| (i * 31 + i / 251) as u8).collect();
    for size in [64, 1024, 4096] {
        let mut packet = vec![0; size];
        let mut count = 0u64;
        let start = Instant::now();
        while start.elapsed() < FOR {
            for payload in area.chunks_exact(size) {
                packet.copy_from_slice(payload);
                black_box(crc32fast::hash(&packet));
                count += 1;
            }
        }
        let ns = start.elapsed().as_nanos() as f64 / count as f64;
        println!("{size:>6} bytes {ns:>8.1} ns {:>8.1} Gb/s", size as f64 * 8.0 / ns);
    }
}
