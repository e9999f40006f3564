//! `rockhopper check`: exit status, words and JSON, over the kinds of files that people have.

use super::support::{program, run, text};
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapReader, PcapWriter};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock;
use pcap_file::{DataLink, TsResolution};
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

type Frames = Vec<(Duration, Vec<u8>)>;

fn capture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataplane/wire/tests/data/captures").join(name)
}

fn frames(name: &str) -> Frames {
    let mut reader = PcapReader::new(File::open(capture(name)).unwrap()).unwrap();
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.unwrap();
        frames.push((packet.timestamp, packet.data.into_owned()));
    }
    frames
}

/// A pcap file; frames are cut at `snaplen`.
fn pcap(path: &Path, link: DataLink, snaplen: usize, frames: &Frames) {
    let header =
        PcapHeader { datalink: link, ts_resolution: TsResolution::MicroSecond, ..PcapHeader::default() };
    let mut writer = PcapWriter::with_header(File::create(path).unwrap(), header).unwrap();
    for (time, bytes) in frames {
        let kept = &bytes[..bytes.len().min(snaplen)];
        writer.write_packet(&PcapPacket::new(*time, bytes.len() as u32, kept)).unwrap();
    }
}

fn checked(path: &Path) -> (Option<i32>, Value) {
    let output = run(&["check", "--json", path.to_str().unwrap()]);
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn linux_captures_pass() {
    let mut files: Vec<_> =
        std::fs::read_dir(capture("")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "pcap"));
    let output = program(&["check", "--json"]).args(&files).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &report["passed"]), (Some(0), &Value::from(true)));
    assert_eq!((report["roce_frames"].as_u64(), report["violations"].as_u64()), (Some(1486), Some(0)));
}

#[test]
fn a_broken_rule_is_named_with_its_frame() {
    let dir = tempfile::tempdir().unwrap();
    let (good, bad) = (frames("rc-send-v4.pcap"), dir.path().join("bad.pcap"));
    let mut frames = good;
    *frames[4].1.last_mut().unwrap() ^= 1;
    pcap(&bad, DataLink::ETHERNET, 65535, &frames);
    let (status, report) = checked(&bad);
    assert_eq!((status, &report["passed"]), (Some(1), &Value::from(false)));
    let violation = &report["files"][0]["violations"][0];
    assert_eq!((&violation["rule"], &violation["frame"]), (&Value::from("icrc"), &Value::from(5)));
    assert!(
        violation["qp"].as_u64() > Some(0)
            && violation["psn"].is_u64()
            && violation["time_ns"].as_u64() > Some(0)
    );
    assert_eq!(report["files"][0]["rules"]["icrc"], 1);

    let output = run(&["check", bad.to_str().unwrap()]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), String::new()));
    assert!(text(&output.stdout).contains("frame 5: icrc: "), "{}", text(&output.stdout));
}

#[test]
fn every_kind_of_file_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let original = frames("rnr-rc-send-v4.pcap");
    let with_front = |front: &[u8], skip: usize| -> Frames {
        original.iter().map(|(time, bytes)| (*time, [front, &bytes[skip..]].concat())).collect()
    };
    let cooked: Vec<u8> = [vec![0; 14], vec![0x08, 0x00]].concat();
    let cooked2: Vec<u8> = [vec![0x08, 0x00], vec![0; 18]].concat();
    let two_tags: Vec<u8> = [vec![2; 12], vec![0x88, 0xA8, 0, 5, 0x81, 0, 0, 7]].concat();
    for (link, frames) in [
        (DataLink::RAW, with_front(&[], 14)),
        (DataLink::LINUX_SLL, with_front(&cooked, 14)),
        (DataLink::LINUX_SLL2, with_front(&cooked2, 14)),
        (DataLink::ETHERNET, with_front(&two_tags, 12)),
    ] {
        pcap(&path, link, 65535, &frames);
        let (status, report) = checked(&path);
        assert_eq!((status, report["roce_frames"].as_u64()), (Some(0), Some(134)), "{link:?}: {report}");
    }

    // Times in the file are in microseconds, and the RNR timer needs them.
    let mut writer = PcapNgWriter::new(File::create(&path).unwrap()).unwrap();
    writer.write_pcapng_block(InterfaceDescriptionBlock::new(DataLink::ETHERNET, 0)).unwrap();
    for (time, bytes) in &original {
        let timestamp = Duration::from_nanos(time.as_micros() as u64);
        let (interface_id, original_len) = (0, bytes.len() as u32);
        let block = EnhancedPacketBlock {
            interface_id,
            timestamp,
            original_len,
            data: bytes.into(),
            options: vec![],
        };
        writer.write_pcapng_block(block).unwrap();
    }
    let (status, report) = checked(&path);
    assert_eq!((status, report["roce_frames"].as_u64()), (Some(0), Some(134)), "{report}");
}

#[test]
fn frames_cut_by_the_capture_are_judged_by_their_headers() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cut.pcap");
    pcap(&path, DataLink::ETHERNET, 128, &frames("rc-write-5000-v4.pcap"));
    let (status, report) = checked(&path);
    assert_eq!((status, report["files"][0]["cut_frames"].as_u64()), (Some(0), Some(25)), "{report}");
    assert_eq!(report["files"][0]["connections"], 1);
}

#[test]
fn files_that_are_no_captures() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let whole = std::fs::read(capture("rc-send-v4.pcap")).unwrap();
    let mut other_link = whole.clone();
    other_link[20] = 127;
    for (bytes, part) in [
        (&b""[..], "is no capture"),
        (b"not a capture at all, but text", "is no capture"),
        (&whole[..whole.len() - 7], "ends or is damaged behind frame 31"),
        (&other_link, "link type 127"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let output = run(&["check", path.to_str().unwrap()]);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.starts_with("rockhopper: ") && said.contains(part), "{said}");
    }
    assert_eq!(run(&["check", "/nonexistent.pcap"]).status.code(), Some(2));
}
