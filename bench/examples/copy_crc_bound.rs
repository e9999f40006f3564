//! The bound that no software endpoint with an iCRC can pass: one copy and one CRC-32 a payload byte on each side.
//!
//! Prints one line a size, on one thread with everything in its caches; `rockhopper-perf suite` measures the same beside
//! Rockhopper. `cargo run --release -p rockhopper-perf --example copy_crc_bound`.
#![forbid(unsafe_code)]

use rockhopper_perf::limits::{HOT_BYTES, Work, bytes_per_second};
use std::time::Duration;

const FOR: Duration = Duration::from_millis(500);

fn main() {
    for size in [64, 1024, 4096] {
        let bytes = bytes_per_second(Work::CopyCrc, size, HOT_BYTES, FOR);
        println!("{size:>6} bytes {:>8.1} ns {:>8.1} Gb/s", size as f64 * 1e9 / bytes, bytes * 8.0 / 1e9);
    }
}
