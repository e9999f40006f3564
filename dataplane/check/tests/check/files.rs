//! The same traffic in every kind of file says the same: byte orders, resolutions of time, several interfaces and sections, no times.

use crate::support::{Seen, assert_passes, capture};
use check::capture::each_frame;
use check::{Checker, Options, Report, Rule};
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::simple_packet::SimplePacketBlock;
use pcap_file::{DataLink, Endianness, TsResolution};
use std::time::Duration;

const ORDERS: [Endianness; 2] = [Endianness::Big, Endianness::Little];

/// What the checker says of a file, and the times that were read.
fn read(file: &[u8]) -> (Report, Vec<u64>) {
    let (mut checker, mut times) = (Checker::new(Options::default()), Vec::new());
    let done = each_frame(file, |time_ns, bytes, len| {
        times.push(time_ns);
        checker.on_cut_frame(time_ns, bytes, len);
    });
    done.expect("a whole file");
    (checker.finish(), times)
}

fn classic(frames: &[Seen], endianness: Endianness, ts_resolution: TsResolution) -> Vec<u8> {
    let header =
        PcapHeader { datalink: DataLink::ETHERNET, endianness, ts_resolution, ..PcapHeader::default() };
    let mut file = Vec::new();
    let mut writer = PcapWriter::with_header(&mut file, header).unwrap();
    for Seen { time_ns, bytes } in frames {
        let packet = PcapPacket::new(Duration::from_nanos(*time_ns), bytes.len() as u32, bytes);
        writer.write_packet(&packet).unwrap();
    }
    file
}

/// An interface for each direction, the second with nanoseconds, in a section of their own for every `section` frames.
fn two_interfaces(frames: &[Seen], endianness: Endianness, section: usize) -> Vec<u8> {
    let mut file = Vec::new();
    for frames in frames.chunks(section) {
        let mut writer = PcapNgWriter::with_endianness(&mut file, endianness).unwrap();
        let mut interface = InterfaceDescriptionBlock::new(DataLink::ETHERNET, 0);
        writer.write_pcapng_block(interface.clone()).unwrap();
        interface.options.push(InterfaceDescriptionOption::IfTsResol(9));
        writer.write_pcapng_block(interface).unwrap();
        for Seen { time_ns, bytes } in frames {
            let interface_id = u32::from(bytes[10] == 0x0A);
            // The library writes nanoseconds as the file's units.
            let units = if interface_id == 1 { *time_ns } else { time_ns / 1000 };
            let block = EnhancedPacketBlock {
                interface_id,
                timestamp: Duration::from_nanos(units),
                original_len: bytes.len() as u32,
                data: bytes.into(),
                options: vec![],
            };
            writer.write_pcapng_block(block).unwrap();
        }
    }
    file
}

#[test]
fn every_byte_order_and_resolution_says_the_same() {
    for name in ["rnr-rc-send-v4", "loss-rc-send-v4", "rc-read-5000-v6", "cm-udaddy-v4", "cm-rping-v6"] {
        let frames = capture(name);
        let times: Vec<_> = frames.iter().map(|frame| frame.time_ns).collect();
        let expected = crate::support::check(&frames, Options::default());
        for order in ORDERS {
            for file in [
                classic(&frames, order, TsResolution::MicroSecond),
                classic(&frames, order, TsResolution::NanoSecond),
                two_interfaces(&frames, order, usize::MAX),
                two_interfaces(&frames, order, 7),
            ] {
                let (report, read) = read(&file);
                assert_eq!((report, read), (expected.clone(), times.clone()), "{name}");
            }
        }
    }
}

/// Simple packet blocks have no time: nothing is held against it, and the rest is.
#[test]
fn without_times_what_needs_them_is_not_judged() {
    let file = |frames: &[Seen]| {
        let mut file = Vec::new();
        let mut writer = PcapNgWriter::new(&mut file).unwrap();
        writer.write_pcapng_block(InterfaceDescriptionBlock::new(DataLink::ETHERNET, 0)).unwrap();
        for Seen { bytes, .. } in frames {
            let block = SimplePacketBlock { original_len: bytes.len() as u32, data: bytes.into() };
            writer.write_pcapng_block(block).unwrap();
        }
        file
    };
    let mut frames = capture("rnr-rc-send-v4");
    let (report, times) = read(&file(&frames));
    assert_passes("without times", &report);
    assert_eq!((report.roce_frames, times), (134, vec![0; 134]));
    *frames[5].bytes.last_mut().unwrap() ^= 1;
    assert_eq!(read(&file(&frames)).0.violations_by_rule(Rule::Icrc), 1);
}
