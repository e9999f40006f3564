//! Captures as lists of frames.

use check::{Checker, Options, Report};
use pcap_file::pcap::PcapReader;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A frame and its time.
#[derive(Clone)]
pub struct Seen {
    pub time_ns: u64,
    pub bytes: Vec<u8>,
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/data/captures")
}

/// The names of all captures.
pub fn names() -> Vec<String> {
    let entries = std::fs::read_dir(directory()).expect("the wire crate's captures");
    let paths = entries.map(|entry| entry.expect("a file").path());
    let mut names: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "pcap"))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// A capture.
pub fn capture(name: &str) -> Vec<Seen> {
    let path = directory().join(name).with_extension("pcap");
    let mut reader = PcapReader::new(File::open(&path).expect("a capture")).expect("a pcap file");
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.expect("a packet");
        frames.push(Seen { time_ns: packet.timestamp.as_nanos() as u64, bytes: packet.data.into_owned() });
    }
    frames
}

/// What the checker finds.
pub fn check(frames: &[Seen], options: Options) -> Report {
    let mut checker = Checker::new(options);
    for frame in frames {
        checker.on_frame(frame.time_ns, &frame.bytes);
    }
    checker.finish()
}

/// Asserts that no rule is broken.
pub fn assert_passes(name: &str, report: &Report) {
    let lines: Vec<_> = report.violations.iter().map(ToString::to_string).collect();
    assert!(report.passed(), "{name}:\n{}", lines.join("\n"));
}
