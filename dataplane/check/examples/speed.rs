//! How many frames a second the checker judges on one core: `cargo run --release -p rockhopper-check --example speed`.
//!
//! One connection's WRITEs and their ACKs, from a Linux capture, with PSNs that go on; every iCRC is verified.

use check::{Checker, Options};
use pcap_file::pcap::PcapReader;
use std::fs::File;
use std::path::Path;
use std::time::Instant;

/// Frames that are made ready, and how often they go by: with the next PSNs each time, but outside of the measured time.
const MESSAGES: u32 = 2000;
const ROUNDS: u32 = 100;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for (capture, message) in [("rc-write-1-v4", 1), ("rc-write-1024-v4", 1), ("rc-write-5000-v4", 5)] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../wire/tests/data/captures")
            .join(capture)
            .with_extension("pcap");
        let mut reader = PcapReader::new(File::open(path)?)?;
        let mut model = Vec::new();
        while let Some(packet) = reader.next_packet() {
            model.push(packet?.data.into_owned());
        }
        // The first message's packets, and the first ACK.
        let ack = model.iter().find(|frame| frame[BTH] == ACK).ok_or("no ACK")?.clone();
        model.truncate(message);
        let mut checker = Checker::new(Options::default());
        let (mut spent, mut bytes) = (std::time::Duration::ZERO, 0);
        for round in 0..ROUNDS {
            let first = round * MESSAGES;
            let frames: Vec<_> = (first..first + MESSAGES).flat_map(|n| numbered(&model, &ack, n)).collect();
            let begin = Instant::now();
            frames.iter().for_each(|frame| checker.on_frame(0, frame));
            spent += begin.elapsed();
            bytes += frames.iter().map(Vec::len).sum::<usize>();
        }
        let report = checker.finish();
        if !report.passed() || report.connections != 1 {
            return Err(format!("{:?}", report.violations.first()).into());
        }
        let seconds = spent.as_secs_f64();
        println!(
            "{capture}: {:.2} million frames a second, {:.0} MB/s",
            report.frames as f64 / seconds / 1e6,
            bytes as f64 / seconds / 1e6
        );
    }
    Ok(())
}

/// Where the BTH begins over IPv4 without a tag.
const BTH: usize = 42;
const ACK: u8 = 0x11;

/// The packets of a message and its ACK, with the PSNs and the MSN of the `n`-th one.
fn numbered(model: &[Vec<u8>], ack: &[u8], n: u32) -> Vec<Vec<u8>> {
    let first = 0xFF_0000 + n * model.len() as u32;
    let mut frames = model.to_vec();
    frames.push(ack.to_vec());
    for (at, frame) in frames.iter_mut().enumerate() {
        let last = at == model.len();
        let psn = first + at as u32 - u32::from(last);
        frame[BTH + 9..BTH + 12].copy_from_slice(&psn.to_be_bytes()[1..]);
        if last {
            frame[BTH + 13..BTH + 16].copy_from_slice(&(n + 1).to_be_bytes()[1..]);
        }
        let end = frame.len() - 4;
        let icrc = wire::compute_icrc(frame).expect("a RoCE frame");
        frame[end..].copy_from_slice(&icrc.to_le_bytes());
    }
    frames
}
