//! Lengths: of the packet, of the message so far, and of what the RETH says (rocev2 facts, wire section 8).

use super::operation;
use super::write::WriteProgress;
use crate::fault::Fault;
use crate::limits::MAX_MESSAGE;
use crate::packet::RxPacket;
use crate::placement::FlushLevel;
use crate::qp::load::ATOMIC_LEN;
use crate::qp::{Qp, other_mtu};
use wire::{AtomicEth, Bth, Frame, Mtu, Operation, Reth};

#[inline(always)]
pub(super) fn check(qp: &mut Qp, packet: &RxPacket<'_>, operation: Operation) -> Result<(), Fault> {
    let mtu = qp.attr.path_mtu;
    of_packet(qp, packet, mtu)?;
    match operation {
        Operation::Send => of_send(qp, packet),
        Operation::Write => of_write(qp, packet, mtu),
        Operation::ReadRequest => reth(packet).map(|_| ()),
        Operation::CompareSwap | Operation::FetchAdd => atomic(packet),
        Operation::AtomicWrite => atomic_write(packet),
        Operation::Flush => flush(packet),
        _ => Ok(()),
    }
}

/// First and Middle are full, Last has something, nothing is longer than the MTU; the pad is what the length
/// asks for.
#[inline(always)]
pub(super) fn of_packet(qp: &mut Qp, packet: &RxPacket<'_>, mtu: Mtu) -> Result<(), Fault> {
    if is_right(packet.frame, mtu) {
        return Ok(());
    }
    other_mtu::count(qp, packet, mtu);
    Err(Fault::PacketLength)
}

/// What [`of_packet`] asks for.
#[inline(always)]
pub(super) fn is_right(frame: &Frame, mtu: Mtu) -> bool {
    let len = frame.payload_len();
    frame.info.allows_payload(len as u32, mtu) && frame.bth().pad_count == Bth::pad_for(len)
}

#[inline(always)]
fn of_send(qp: &Qp, packet: &RxPacket<'_>) -> Result<(), Fault> {
    let fits = packet.frame.payload_len() as u32 <= qp.resp.receive.room();
    if fits { Ok(()) } else { Err(Fault::ReceiveTooShort) }
}

/// The payloads of a WRITE add up to the RETH length: a packet that goes on leaves something for the next,
/// the last one brings the rest.
#[inline(always)]
fn of_write(qp: &mut Qp, packet: &RxPacket<'_>, mtu: Mtu) -> Result<(), Fault> {
    let position = packet.frame.info.position;
    if position.begins() {
        qp.resp.write = WriteProgress::new(reth(packet)?);
    }
    let left = qp.resp.write.left();
    let right = if position.ends() { packet.frame.payload_len() as u32 == left } else { left > mtu.bytes() };
    if right { Ok(()) } else { Err(Fault::RethLength) }
}

/// The RETH, if its length is one that a message can have.
#[inline(always)]
fn reth(packet: &RxPacket<'_>) -> Result<Reth, Fault> {
    let reth = packet.frame.ext::<Reth>(packet.head).ok_or(Fault::PacketLength)?;
    // rocev2 facts, wire 8: 2^31 itself is a message.
    if reth.dma_len <= MAX_MESSAGE { Ok(reth) } else { Err(Fault::RethTooLong) }
}

/// rocev2 facts, transport 8: atomics work on aligned addresses.
fn atomic(packet: &RxPacket<'_>) -> Result<(), Fault> {
    aligned(packet.frame.ext::<AtomicEth>(packet.head).ok_or(Fault::PacketLength)?.va)
}

/// rocev2 facts, wire 6 and 7: eight bytes, by the RETH too, to an aligned address.
fn atomic_write(packet: &RxPacket<'_>) -> Result<(), Fault> {
    let reth = reth(packet)?;
    if reth.dma_len != ATOMIC_LEN {
        return Err(Fault::RethLength);
    }
    aligned(reth.va)
}

/// A FLUSH of a range is no longer than a message; that of a region says nothing with its length (rocev2 facts, wire 6).
fn flush(packet: &RxPacket<'_>) -> Result<(), Fault> {
    match operation::flush(packet)?.1 {
        FlushLevel::Range => reth(packet).map(|_| ()),
        FlushLevel::Region => Ok(()),
    }
}

fn aligned(va: u64) -> Result<(), Fault> {
    if va.is_multiple_of(8) { Ok(()) } else { Err(Fault::AtomicMisaligned) }
}
