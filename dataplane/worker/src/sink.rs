//! Sealing: the engine's packets become frames in buffers.

use crate::counters::Traffic;
use crate::group::{self, Groups};
use crate::lend::{LEND_FROM, Parts};
use crate::seal::{SEALED_LATER, seal};
use crate::tx::Outgoing;
use dpdk::Mbuf;
use engine::{Followers, Gather, Memory, PacketSink, RegionGone, SinkError, Span, TxPacket, TxRun};
use memory::HostMemory;
use wire::{HeaderTemplate, ICRC_LEN, Icrc, MAX_HEADERS_LEN, Reach, Service, TxHeaders, write_headers};

/// Where a packet goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Wire,
    Own,
    Both,
}

/// Fills a lane's burst to send.
pub(crate) struct BurstSink<'a> {
    pub outgoing: &'a mut Outgoing,
    pub traffic: &'a mut Traffic,
    pub groups: &'a Groups,
}

impl PacketSink for BurstSink<'_> {
    #[inline]
    fn emit(&mut self, packet: &TxPacket<'_>) -> Result<(), SinkError> {
        let way = self.way(packet.template);
        let blocked = (way != Way::Own && self.outgoing.burst.is_full())
            || (way != Way::Wire && self.outgoing.looped.is_full());
        if blocked {
            return Err(SinkError::Full);
        }
        self.outgoing.ip_id = self.outgoing.ip_id.wrapping_add(1);
        if way == Way::Wire
            && let Some((service, span)) = self.worth_lending(packet)
            && let Some(mbuf) = self.seal_lent(packet, service, span)?
        {
            self.outgoing.push(mbuf);
            return Ok(());
        }
        let lengths = Lengths::of(packet);
        let Some(mut mbuf) = self.fresh_buffer(lengths.frame()) else { return Err(SinkError::Full) };
        // The buffer goes home by its drop when this fails, which ends a request, so it is rare.
        let Outgoing { ip_id, memory, .. } = &*self.outgoing;
        let Written { begin, icrc } = write(packet, &lengths, *ip_id, memory, &mut mbuf)?;
        if way == Way::Wire && mbuf.pkt_len() <= SEALED_LATER {
            self.outgoing.push_unsealed(mbuf, begin, icrc);
        } else {
            seal(&mut mbuf, begin, icrc);
            self.send(way, mbuf);
        }
        Ok(())
    }

    #[inline]
    fn emit_run(&mut self, run: &TxRun<'_>, followers: &mut impl Followers) -> Result<(), SinkError> {
        self.write_run(run, followers)
    }

    #[inline]
    fn take_loan(&mut self) -> Option<u64> {
        self.outgoing.lending.as_mut()?.loans()?.take_news()
    }
}

impl BurstSink<'_> {
    /// A frame around a payload that stays where it is (see `lend.rs`). `None` where the port takes no such packets, or has
    /// no buffers for one now.
    #[inline]
    fn seal_lent(
        &mut self,
        packet: &TxPacket<'_>,
        service: Service,
        span: Span,
    ) -> Result<Option<Mbuf>, RegionGone> {
        let Outgoing { lending, memory, ip_id, .. } = &mut *self.outgoing;
        let Some(lending) = lending else { return Ok(None) };
        let (len, headers, pad) = (span.len() as usize, packet.headers_len(), packet.pad_len());
        let Some(Parts { mut head, mut rest }) = lending.parts(headers + pad + ICRC_LEN) else {
            return Ok(None);
        };
        let out = head.append_roomy(headers, MAX_HEADERS_LEN).ok_or(RegionGone)?;
        let TxHeaders { bth_offset, mut icrc, .. } =
            write_headers(packet.template, &packet.bth, &packet.ext, *ip_id, len, out);
        icrc.update(&out[bth_offset..headers]);
        let mut icrc = Icrc::after(memory.sum(span, icrc.value())?);
        let last = rest.as_mut().map_or(&mut head, |(_, tail)| tail);
        let end = last.append(pad + ICRC_LEN).ok_or(RegionGone)?;
        let (pad, seal) = end.split_at_mut(pad);
        // Mostly there is none.
        if !pad.is_empty() {
            pad.fill(0);
            icrc.update(pad);
        }
        seal.copy_from_slice(&icrc.to_wire());
        let Some((body, tail)) = rest else { return lending.lend(service, span, head, headers).map(Some) };
        let body = lending.lend(service, span, body, 0)?;
        let frame = head.chain(body).and_then(|frame| frame.chain(tail));
        frame.map(Some).map_err(|_| RegionGone)
    }

    /// The payload, if it is worth not being copied: long, in one piece, and not sent before; and if it stays as it is until the peer
    /// has it (see `lend.rs`).
    #[inline]
    fn worth_lending(&self, packet: &TxPacket<'_>) -> Option<(Service, Span)> {
        if packet.payload.len() < LEND_FROM || packet.again {
            return None;
        }
        let service = packet.opcode().info()?.service;
        if !self.outgoing.lends(service) {
            return None;
        }
        let mut spans = packet.payload.spans();
        spans.next().filter(|_| spans.next().is_none()).map(|span| (service, span))
    }

    #[inline]
    pub(crate) fn way(&self, template: &HeaderTemplate) -> Way {
        match template.reach() {
            Reach::Own => Way::Own,
            Reach::Group if self.groups.has(template.vid(), template.dst()) => Way::Both,
            Reach::Wire | Reach::Group => Way::Wire,
        }
    }

    /// There is room, as seen before. Members of this port lose a packet to their group when no buffer can be had for it, as
    /// members elsewhere would.
    #[inline]
    fn send(&mut self, way: Way, mbuf: Mbuf) {
        if way == Way::Own {
            return self.outgoing.looped.push(mbuf);
        }
        if way == Way::Both {
            match group::copy(&mbuf, &self.outgoing.pool) {
                Some(copy) => self.outgoing.looped.push(copy),
                None => self.traffic.no_buffer += 1,
            }
        }
        self.outgoing.push(mbuf);
    }

    /// An empty buffer for a frame of `len` bytes, or `None` (counted) when the pool has none: the packet is offered again at the next poll.
    #[inline]
    pub(crate) fn fresh_buffer(&mut self, len: usize) -> Option<Mbuf> {
        let buffer = self.outgoing.fresh.take(len);
        self.traffic.no_buffer += u64::from(buffer.is_none());
        buffer
    }
}

/// How long a frame's parts are.
struct Lengths {
    headers: usize,
    payload: usize,
    pad: usize,
}

impl Lengths {
    #[inline(always)]
    fn of(packet: &TxPacket<'_>) -> Lengths {
        Lengths { headers: packet.headers_len(), payload: packet.payload.len(), pad: packet.pad_len() }
    }

    /// Where the iCRC goes.
    #[inline(always)]
    fn end(&self) -> usize {
        self.headers + self.payload + self.pad
    }

    #[inline(always)]
    fn frame(&self) -> usize {
        self.end() + ICRC_LEN
    }
}

/// A frame that lacks its iCRC.
struct Written {
    /// Where the bytes begin that are to be summed, up to the room for the iCRC at the end.
    begin: usize,
    /// The iCRC before them.
    icrc: Icrc,
}

/// Writes a frame into an empty buffer, with room for its iCRC. [`RegionGone`] also when the buffer is too small, which the worker's
/// setup and its check of path MTUs exclude.
#[inline]
fn write(
    packet: &TxPacket<'_>,
    lengths: &Lengths,
    ip_id: u16,
    memory: &HostMemory,
    mbuf: &mut Mbuf,
) -> Result<Written, RegionGone> {
    let out = mbuf.append_roomy(lengths.frame(), MAX_HEADERS_LEN).ok_or(RegionGone)?;
    let TxHeaders { len: begin, bth_offset, icrc } =
        write_headers(packet.template, &packet.bth, &packet.ext, ip_id, lengths.payload, out);
    place_payload(&packet.payload, memory, &mut out[begin..lengths.end()])?;
    Ok(Written { begin: bth_offset, icrc })
}

/// A payload of one piece, padded with zeros to the end of `out`.
#[inline]
pub(crate) fn place_piece(span: Span, memory: &HostMemory, out: &mut [u8]) -> Result<(), RegionGone> {
    let (payload, pad) = out.split_at_mut(span.len() as usize);
    if !pad.is_empty() {
        pad.fill(0);
    }
    memory.read(span, payload)
}

/// The payload, padded with zeros to the end of `out`.
#[inline]
fn place_payload(payload: &Gather<'_>, memory: &HostMemory, out: &mut [u8]) -> Result<(), RegionGone> {
    // One pass for copy and CRC would be slower with long payloads: the string instruction of the copy takes lines of the buffer that
    // another core had without reading them first. Short ones have it in runs (`run.rs`).
    let mut at = 0;
    match payload {
        Gather::Bytes(bytes) => {
            out[..bytes.len()].copy_from_slice(bytes);
            at = bytes.len();
        }
        Gather::Piece(span) => return place_piece(**span, memory, out),
        Gather::Spans { .. } => {
            for span in payload.spans() {
                let end = at + span.len() as usize;
                memory.read(span, &mut out[at..end])?;
                at = end;
            }
        }
    }
    debug_assert_eq!(at, payload.len(), "the spans hold what the packet promises");
    if at < out.len() {
        out[at..].fill(0);
    }
    Ok(())
}
