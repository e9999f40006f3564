//! Captures as frames.

use pcap_file::pcap::PcapReader;
use std::fs::File;
use std::path::{Path, PathBuf};
use wire::{ExtHeader, Frame, Mtu};

/// A RoCE frame of a capture.
#[derive(Clone)]
pub struct Seen {
    /// Nanoseconds since the first frame.
    pub at: u64,
    pub bytes: Vec<u8>,
    pub frame: Frame,
}

impl Seen {
    pub fn payload(&self) -> &[u8] {
        &self.bytes[self.frame.payload_offset()..][..self.frame.payload_len()]
    }

    pub fn ext<H: ExtHeader>(&self) -> Option<H> {
        self.frame.ext(&self.bytes)
    }

    pub fn psn(&self) -> wire::Psn {
        self.frame.bth().psn
    }
}

/// One file.
pub struct Capture {
    /// Its name without `.pcap`.
    pub name: String,
    pub frames: Vec<Seen>,
    /// Frames that are no RoCE (IGMP).
    pub others: usize,
}

impl Capture {
    /// The path MTU, which the captures' names tell where it is not 1024.
    pub fn mtu(&self) -> Mtu {
        match self.name.split('-').next() {
            Some("mtu256") => Mtu::Mtu256,
            Some("mtu4096") => Mtu::Mtu4096,
            _ => Mtu::Mtu1024,
        }
    }

    /// Frames that B sent were dropped on their way to A, before the place of capture.
    pub fn is_lossy(&self) -> bool {
        self.name.starts_with("loss-")
    }
}

/// Every capture, by name.
pub fn all() -> Vec<Capture> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/data/captures");
    let entries = std::fs::read_dir(&directory).expect("the wire crate's captures");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "pcap"));
    files.sort();
    assert!(!files.is_empty(), "no captures in {}", directory.display());
    files.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Capture {
    let mut reader = PcapReader::new(File::open(path).expect("a capture")).expect("a pcap file");
    let (mut frames, mut others, mut begin) = (Vec::new(), 0, None);
    while let Some(packet) = reader.next_packet() {
        let packet = packet.expect("a packet");
        let at = packet.timestamp.as_nanos() as u64;
        let at = at - *begin.get_or_insert(at);
        let bytes = packet.data.into_owned();
        match Frame::parse(&bytes, bytes.len()) {
            Ok(frame) => frames.push(Seen { at, bytes, frame }),
            Err(error) => {
                assert!(!error.is_roce(), "{}: {error}", path.display());
                others += 1;
            }
        }
    }
    let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
    Capture { name, frames, others }
}
