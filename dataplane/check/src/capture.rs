//! Captures: pcap and pcapng, of every link type that the checker knows. Any bytes are read without a panic: what cannot be
//! followed further ends the reading.

use crate::link::{LinkType, ethernet};
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgReader};
use std::io::{Cursor, Read};
use std::time::Duration;

/// Why a capture was not read to its end; each a sentence that says what to do, behind the name of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// It begins like neither format.
    #[error("is no capture: give a pcap or pcapng file, as tcpdump -w writes it")]
    NoCapture,
    /// It cannot be followed behind so many frames.
    #[error("ends or is damaged behind frame {0}: capture it again, or cut it there with editcap")]
    Cut(u64),
    /// It was taken on a link of another type.
    #[error("has link type {0}: capture on Ethernet (1), raw IP (101) or Linux cooked (113, 276)")]
    LinkType(u32),
}

use CaptureError::{Cut, NoCapture};

/// The first bytes of a pcapng file.
const PCAPNG: [u8; 4] = [0x0A, 0x0D, 0x0D, 0x0A];

/// Microseconds, where an interface does not say.
const DEFAULT_RESOLUTION: u8 = 6;

/// Calls `with` for every frame: its time in nanoseconds (0 where the file has none), its bytes as Ethernet, its length on the wire.
pub fn each_frame(mut file: impl Read, with: impl FnMut(u64, &[u8], usize)) -> Result<(), CaptureError> {
    let mut magic = [0; 4];
    file.read_exact(&mut magic).map_err(|_| NoCapture)?;
    let file = Cursor::new(magic).chain(file);
    if magic == PCAPNG { pcapng(file, with) } else { pcap(file, with) }
}

fn link_type(number: u32) -> Result<LinkType, CaptureError> {
    LinkType::from_number(number).ok_or(CaptureError::LinkType(number))
}

fn pcap(file: impl Read, mut with: impl FnMut(u64, &[u8], usize)) -> Result<(), CaptureError> {
    let mut reader = PcapReader::new(file).map_err(|_| NoCapture)?;
    let number = u32::from(reader.header().datalink) & 0xFFFF;
    let link = link_type(number)?;
    let (mut scratch, mut frames) = (Vec::new(), 0);
    while let Some(packet) = reader.next_packet() {
        let packet = packet.map_err(|_| Cut(frames))?;
        frames += 1;
        one(link, packet.timestamp, &packet.data, packet.orig_len, &mut scratch, &mut with);
    }
    Ok(())
}

fn pcapng(file: impl Read, mut with: impl FnMut(u64, &[u8], usize)) -> Result<(), CaptureError> {
    let mut reader = PcapNgReader::new(file).map_err(|_| NoCapture)?;
    let mut interfaces: Vec<(u32, u8)> = Vec::new();
    let (mut scratch, mut frames) = (Vec::new(), 0);
    while let Some(block) = reader.next_block() {
        let block = block.map_err(|_| Cut(frames))?;
        match block {
            Block::SectionHeader(_) => interfaces.clear(),
            Block::InterfaceDescription(interface) => interfaces.push(described(&interface)),
            Block::EnhancedPacket(packet) => {
                frames += 1;
                let interface = interfaces.get(packet.interface_id as usize);
                let &(number, resolution) = interface.ok_or(Cut(frames - 1))?;
                let link = link_type(number)?;
                // The library gives the file's units as nanoseconds.
                let time = in_ns(packet.timestamp.as_nanos(), resolution);
                one(link, time, &packet.data, packet.original_len, &mut scratch, &mut with);
            }
            Block::SimplePacket(packet) => {
                frames += 1;
                let &(number, _) = interfaces.first().ok_or(Cut(frames - 1))?;
                let link = link_type(number)?;
                one(link, Duration::ZERO, &packet.data, packet.original_len, &mut scratch, &mut with);
            }
            _ => {}
        }
    }
    Ok(())
}

fn described(interface: &InterfaceDescriptionBlock<'_>) -> (u32, u8) {
    let resolution = interface.options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfTsResol(resolution) => Some(*resolution),
        _ => None,
    });
    (u32::from(interface.linktype), resolution.unwrap_or(DEFAULT_RESOLUTION))
}

/// A time in units of 10^-n seconds, or 2^-n with the top bit set.
fn in_ns(units: u128, resolution: u8) -> Duration {
    let exponent = u32::from(resolution & 0x7F);
    let per_second =
        if resolution & 0x80 != 0 { 1u128.checked_shl(exponent) } else { 10u128.checked_pow(exponent) };
    let per_second = per_second.unwrap_or(u128::MAX).max(1);
    let ns = units.saturating_mul(1_000_000_000) / per_second;
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

fn one(
    link: LinkType,
    time: Duration,
    bytes: &[u8],
    len: u32,
    scratch: &mut Vec<u8>,
    with: &mut impl FnMut(u64, &[u8], usize),
) {
    let len = (len as usize).max(bytes.len());
    let (frame, longer) = ethernet(link, bytes, scratch);
    with(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), frame, len.saturating_add_signed(longer));
}
