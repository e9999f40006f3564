//! Sealing: the engine's packets become frames in buffers.

use crate::counters::Traffic;
use crate::tx::{Outgoing, TX_BURST};
use dpdk::Mbuf;
use engine::{Gather, Memory, PacketSink, RegionGone, SinkError, TxPacket};
use memory::HostMemory;
use wire::{Bth, ICRC_LEN, Icrc, TxHeaders, write_headers};

/// Fills a lane's burst to send.
pub(crate) struct BurstSink<'a> {
    pub outgoing: &'a mut Outgoing,
    pub traffic: &'a mut Traffic,
}

impl PacketSink for BurstSink<'_> {
    #[inline]
    fn emit(&mut self, packet: &TxPacket<'_>) -> Result<(), SinkError> {
        if self.outgoing.burst.is_full() {
            return Err(SinkError::Full);
        }
        let Some(mut mbuf) = self.fresh_buffer() else { return Err(SinkError::Full) };
        self.outgoing.ip_id = self.outgoing.ip_id.wrapping_add(1);
        match seal(packet, self.outgoing.ip_id, &self.outgoing.memory, &mut mbuf) {
            Ok(()) => {
                // There is room, as seen above.
                let _ = self.outgoing.burst.push(mbuf);
                Ok(())
            }
            // The buffer goes home by its drop: this ends a request, so it is rare.
            Err(RegionGone) => Err(SinkError::RegionGone),
        }
    }
}

impl BurstSink<'_> {
    /// An empty buffer, or `None` (counted) when the pool has none: the packet is offered again at the next poll.
    #[inline]
    fn fresh_buffer(&mut self) -> Option<Mbuf> {
        let Outgoing { fresh, pool, .. } = &mut *self.outgoing;
        if fresh.is_empty() && !pool.alloc_bulk(fresh, TX_BURST) {
            // Bulk is all or nothing; the pool's last buffers come one by one.
            let last = pool.alloc();
            self.traffic.no_buffer += u64::from(last.is_none());
            return last;
        }
        fresh.pop()
    }
}

/// Writes a whole frame into an empty buffer. [`RegionGone`] also when the buffer is too small, which the worker's setup
/// and its check of path MTUs exclude.
#[inline]
fn seal(packet: &TxPacket<'_>, ip_id: u16, memory: &HostMemory, mbuf: &mut Mbuf) -> Result<(), RegionGone> {
    let len = packet.payload.len();
    let pad = usize::from(packet.bth.pad_count);
    let headers = packet.template.len() + Bth::LEN + packet.ext.len();
    let out = mbuf.append(headers + len + pad + ICRC_LEN).ok_or(RegionGone)?;
    let TxHeaders { len: begin, icrc, .. } =
        write_headers(packet.template, &packet.bth, &packet.ext, ip_id, len, out);
    let (payload, trailer) = out[begin..].split_at_mut(len);
    let icrc = place_payload(&packet.payload, memory, payload, icrc)?;
    close(icrc, pad, trailer);
    Ok(())
}

/// Copy and CRC of the payload, in one place.
#[inline]
fn place_payload(
    payload: &Gather<'_>,
    memory: &HostMemory,
    out: &mut [u8],
    mut icrc: Icrc,
) -> Result<Icrc, RegionGone> {
    if let Gather::Bytes(bytes) = payload {
        out.copy_from_slice(bytes);
    } else {
        let mut at = 0;
        for span in payload.spans() {
            let end = at + span.len() as usize;
            memory.read(span, &mut out[at..end])?;
            at = end;
        }
        debug_assert_eq!(at, out.len(), "the spans hold what the packet promises");
    }
    // What goes on the wire is covered, even if the application changes its memory meanwhile: the CRC is of the copy.
    icrc.update(out);
    Ok(icrc)
}

/// Pad and iCRC.
#[inline]
fn close(mut icrc: Icrc, pad: usize, trailer: &mut [u8]) {
    let (padding, seal) = trailer.split_at_mut(pad);
    padding.fill(0);
    icrc.update(padding);
    seal.copy_from_slice(&icrc.to_wire());
}
