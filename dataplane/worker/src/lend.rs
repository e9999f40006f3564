//! Long payloads leave without being copied: a packet of three segments, whose middle one is registered memory. Where a ring's other
//! end is all that reads it, one buffer is all three.
//!
//! | segment | holds |
//! | --- | --- |
//! | first | headers |
//! | second | nothing: it points to the payload, which is lent until the port has sent the packet |
//! | third | pad and iCRC |
//!
//! The iCRC is of the bytes as they are when the packet is made. A program that writes to a buffer under way spoils its
//! packets, which the peer drops for their iCRC; what is sent again is copied, so that it gets through whatever the
//! program does (`sink.rs`). Requests of UD are complete once they were sent, and the program may write then: they are
//! copied. So are those of UC, unless they can be complete when their packets have come back (`loans.rs`).
//!
//! At a ring's other end the payload is copied straight to where it belongs. Its iCRC is known after that only: so its last bytes are
//! kept until then, and a wrong one leaves the state of the QP as it was.
//!
//! Memory that was withdrawn is let go when everything that was lent before has come back. Under load something is always
//! lent, so there are two lenders: when memory is awaited the other one goes on lending, and the first settles once it has
//! nothing out.

use crate::lane::Lane;
use crate::loans::Loans;
use crate::rx::{AHEAD, Fate, Origin, Received, whose};
use dpdk::lend::{LEND_ROOM, LentParts, Returns};
use dpdk::{Mbuf, Mempool, Reserve};
use engine::qp::middles_run;
use engine::{Nanos, Payload, QpPlace, RegionGone, RxPacket, Span};
use memory::{HostMemory, Lender};
use std::mem::ManuallyDrop;
use std::sync::Arc;
use wire::{Bth, ExtKind, Frame, FrameError, Icrc, Operation, Run, Service};

/// Bytes that a buffer of [`Lending`] holds at least: all headers of a frame.
pub const LENDING_ROOM: u16 = wire::MAX_OVERHEAD as u16;

const _: () = assert!(LENDING_ROOM >= LEND_ROOM, "a buffer can stand for lent bytes");

/// From here on up to three buffers cost less than a copy.
pub(crate) const LEND_FROM: usize = 1024;

/// What packets without a copy are made of.
#[derive(Debug)]
pub(crate) struct Lending {
    fresh: Reserve,
    lenders: [Account; 2],
    /// The one that lends.
    current: usize,
    /// The port's other end gets the packets as they are.
    in_one: bool,
    /// What is lent of requests that nobody acknowledges, where they are.
    loans: Option<Loans>,
}

/// A lender and what it has out.
#[derive(Debug)]
pub(crate) struct Account {
    lender: Lender,
    lent: u64,
    /// Behind a pointer, since packets point to it.
    returns: ManuallyDrop<Arc<Returns>>,
}

/// Empty buffers for a packet.
pub(crate) struct Parts {
    pub head: Mbuf,
    /// Body and tail, where the head is not all.
    pub rest: Option<(Mbuf, Mbuf)>,
}

impl Lending {
    /// Buffers of `pool` have [`LENDING_ROOM`] bytes.
    /// `in_one` is for ports that [pass packets on](dpdk::TxQueue::passes_on). QPs of a port with one worker `stay` there: it can tell them
    /// what has come back. Drivers that copy may keep a packet until the next, so that nobody could tell when.
    pub fn new(pool: Arc<Mempool>, memory: &HostMemory, in_one: bool, stay: bool) -> Lending {
        let lenders = [Account::new(memory), Account::new(memory)];
        let fresh = if in_one { Reserve::beginning_at(pool, LEND_ROOM) } else { Reserve::new(pool) };
        let loans = (in_one && stay).then(|| Loans::new(memory));
        Lending { fresh, lenders, current: 0, in_one, loans }
    }

    /// Whether payloads of such a service are lent.
    #[inline(always)]
    pub fn lends(&self, service: Service) -> bool {
        match service {
            Service::Rc | Service::Xrc => true,
            Service::Uc => self.loans.is_some(),
            _ => false,
        }
    }

    /// What is lent of requests that nobody acknowledges.
    #[inline]
    pub fn loans(&mut self) -> Option<&mut Loans> {
        self.loans.as_mut()
    }

    /// Requests wait for what is lent.
    pub fn has_loans(&self) -> bool {
        self.loans.as_ref().is_some_and(Loans::is_out)
    }

    /// Buffers for a packet, of which `own` bytes go into them; `None` when the pool has not so many.
    #[inline]
    pub fn parts(&mut self, own: usize) -> Option<Parts> {
        let head = self.buffer(own)?;
        let rest = if self.in_one { None } else { Some((self.buffer(own)?, self.buffer(own)?)) };
        Some(Parts { head, rest })
    }

    /// The port's other end gets packets as they are: one buffer is all of one.
    #[inline]
    pub fn is_in_one(&self) -> bool {
        self.in_one
    }

    /// A buffer for a packet that is all in one, with its own bytes to be written; `None` when the pool has none for so many.
    #[inline]
    pub fn whole(&mut self, own: usize) -> Option<Mbuf> {
        self.fresh.take_whole(own)
    }

    /// An empty buffer for such a packet, of which so many bytes go into it; `None` when the pool has none.
    #[inline]
    pub fn buffer(&mut self, own: usize) -> Option<Mbuf> {
        self.fresh.take(own)
    }

    /// Makes a buffer stand for its first `head` bytes, those of a span, and what it has behind: an empty one for the bytes of the
    /// span alone. The packet it is, or becomes part of, is not read but by a port, or the other end of one that passes it on.
    #[inline]
    pub fn lend(
        &mut self,
        service: Service,
        span: Span,
        body: Mbuf,
        head: usize,
    ) -> Result<Mbuf, RegionGone> {
        let account = match &mut self.loans {
            Some(loans) if service == Service::Uc => loans.add(),
            _ => &mut self.lenders[self.current],
        };
        let start = account.lender.lend(span)?;
        let len = u16::try_from(span.len()).map_err(|_| RegionGone)?;
        let head = u16::try_from(head).map_err(|_| RegionGone)?;
        // SAFETY: the bytes stay readable until the account is settled, which is when as many came back as it has lent, this
        // one among them, or for good. `returns` stays as long (`Drop`). The packet goes to the port's transmit queue as it
        // is: lanes that look into what they send (impairments, loop-back, groups) do not lend.
        let body = unsafe {
            if self.in_one {
                body.lend_around(head, start, len, &account.returns)
            } else {
                body.lend(start, len, &account.returns)
            }
        };
        let body = body.ok_or(RegionGone)?;
        account.lent += 1;
        Ok(body)
    }

    /// Lets go of withdrawn memory that nobody has borrowed any more. Costs a load or two when none waits.
    #[inline]
    pub fn quiesce(&mut self) {
        let loans_awaited = self.loans.as_ref().is_some_and(Loans::is_awaited);
        if loans_awaited || self.lenders.iter().any(|account| account.lender.is_awaited()) {
            self.settle();
        }
    }

    #[cold]
    fn settle(&mut self) {
        let other = 1 - self.current;
        let free = self.lenders[other].try_settle();
        if !self.lenders[self.current].try_settle() && free {
            self.current = other;
        }
        if let Some(loans) = &mut self.loans {
            loans.settle();
        }
    }
}

/// Whether a frame whose payload is lent can be executed from where that is: nothing of it has to be in a buffer, or to be known as
/// right before it is placed.
#[inline]
pub(crate) fn can_stay(parts: &LentParts<'_>, frame: &Frame) -> bool {
    let placed =
        matches!(frame.info.operation.base(), Operation::Send | Operation::Write | Operation::ReadResponse);
    let whole = (parts.head.len(), parts.len) == (frame.payload_offset(), frame.payload_len());
    // A SEND that takes a key away does so before it is placed. A UDP checksum, which nobody makes, is of the payload, too.
    placed && whole && !frame.info.has(ExtKind::Ieth) && frame.udp_checksum == 0
}

impl Lane {
    /// A frame whose payload is where its sender has it. One that cannot be executed from there becomes a packet like any other.
    #[inline]
    pub(crate) fn lent_fate(&mut self, mbuf: &mut Mbuf, place: &mut Option<Frame>) -> Fate {
        let parts = mbuf.lent_parts();
        let head = parts.map_or(&[][..], |parts| parts.head);
        let (icrc, fate) = match self.flows.parse(head, mbuf.pkt_len(), place) {
            // Of its flow a frame was admitted before.
            Some(icrc) => (icrc, place.as_ref().map_or(Fate::Dropped, whose)),
            None => match Frame::parse(head, mbuf.pkt_len()) {
                Ok(frame) => self.new_lent_fate(head, place.insert(frame)),
                // Nobody could read it.
                Err(reason) => {
                    self.bad(reason);
                    return Fate::Dropped;
                }
            },
        };
        let Some(frame) = place else { return Fate::Dropped };
        match (fate, parts) {
            (Fate::Dropped, _) => fate,
            (Fate::Local(place), Some(parts)) if can_stay(&parts, frame) => {
                Fate::Lent(place, after_headers(icrc, frame, parts.head))
            }
            _ => self.take_in(mbuf, frame, fate),
        }
    }

    /// One of which nothing is known but what was parsed, and its iCRC before the network header.
    #[inline(never)]
    fn new_lent_fate(&mut self, head: &[u8], frame: &Frame) -> (Icrc, Fate) {
        let fate = self.fate(frame, Origin::Wire);
        if matches!(fate, Fate::Local(_)) {
            self.flows.note(frame, head);
        }
        (before_headers(frame, head), fate)
    }

    /// Makes a copy of a frame whose payload is lent, if its iCRC is right.
    #[cold]
    pub(crate) fn take_in(&mut self, mbuf: &mut Mbuf, frame: &Frame, fate: Fate) -> Fate {
        let Some(mut copy) = self.outgoing.pool.alloc() else {
            self.counters.traffic.no_buffer += 1;
            return Fate::Dropped;
        };
        if let Err(reason) = take_in(mbuf, frame, &mut copy) {
            self.counters.count_frame_error(reason);
            return Fate::Dropped;
        }
        *mbuf = copy;
        fate
    }

    /// Admission, responder or completer: the engine's; and one pass over the payload, which copies it from where its
    /// sender has it to where it belongs, with its iCRC, which is `icrc` after the headers. A payload that is not right is as if it had
    /// not come (`HostMemory::hold`). Out of the way of frames that are all there.
    #[inline(never)]
    pub(crate) fn execute_lent(
        &mut self,
        now: Nanos,
        mbuf: &Mbuf,
        frame: &Frame,
        place: QpPlace,
        icrc: Icrc,
    ) {
        let Some(LentParts { head, start, len, tail }) = mbuf.lent_parts() else { return };
        // SAFETY: the packet's bytes are lent as long as it is borrowed (`Mbuf::lent_parts`), and let go before that ends: only
        // `Lending::lend` makes such packets, and its accounts settle after they are freed.
        unsafe { self.engine.memory().hold(start, len, icrc, tail) };
        let packet = RxPacket { frame, head, payload: Payload::held(len as u32) };
        self.engine.deliver_at(now, place, frame.bth().dest_qpn, &packet);
        self.engine.memory().let_go();
    }

    /// The same for frames that follow the last one with a fate, which was executed, in a run: as many as are executed with it have a fate
    /// then, and nothing is known of the others. Each is looked at when its turn comes. The payloads between two would drive out of the
    /// first cache what was seen of the second.
    #[inline(never)]
    pub(crate) fn execute_lent_followers(
        &mut self,
        now: Nanos,
        received: &mut Received,
        LentRun { first, mut headers, len, next }: LentRun,
    ) {
        let Received { burst, fates, .. } = received;
        // Its QP may be elsewhere.
        let Some(Fate::Lent(place, _)) = fates.last().copied() else { return };
        let followers = &burst.as_slice()[fates.len()..];
        let (mut index, last) = (0, first.bth_offset() + Bth::LEN - 4);
        let mut next = Some(next);
        let executed = self.engine.deliver_middles(now, place, &first, |memory| {
            let mbuf = followers.get(index)?;
            if let Some(later) = followers.get(index + AHEAD) {
                later.prefetch_data();
            }
            index += 1;
            let parts = mbuf.lent_parts()?;
            let icrc = next.take().or_else(|| follows(&mut headers, len, mbuf, &parts))?;
            // SAFETY: as above; this one is let go by what is held next, or below.
            unsafe { memory.hold(parts.start, parts.len, icrc, parts.tail) };
            parts.head.get(last..)?.first_chunk().copied()
        });
        self.engine.memory().let_go();
        let frame_len = burst.as_slice().get(fates.len()).map_or(0, Mbuf::pkt_len);
        self.counters.traffic.rx_bytes += u64::from(executed) * frame_len as u64;
        fates.extend((0..executed).map(|_| Fate::Executed));
    }
}

/// Frames whose payloads are lent, equally long, that follow one in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LentRun {
    /// The frame before them, or what that would be as one of them.
    first: Frame,
    headers: Run,
    len: usize,
    /// The iCRC after the headers of the one that comes next.
    next: Icrc,
}

impl LentRun {
    /// The run that follows the first of these frames: of a kind that is executed in runs, and there is one at least.
    #[inline(always)]
    pub fn begin(mbufs: &[Mbuf], frame: &Option<Frame>, fate: Fate) -> Option<LentRun> {
        let (Fate::Lent(..), Some(frame), [mbuf, next, ..]) = (fate, frame, mbufs) else { return None };
        let position = frame.info.position;
        if position.ends() || !next.is_lent() {
            return None;
        }
        let LentParts { head, len, .. } = mbuf.lent_parts()?;
        let (first, mut headers) = if position.begins() {
            Run::of_middles(frame, head, mbuf.pkt_len())?
        } else {
            (*frame, Run::of_headers(frame, head, mbuf.pkt_len())?)
        };
        if !middles_run(first.info) {
            return None;
        }
        let next = follows(&mut headers, len, next, &next.lent_parts()?)?;
        Some(LentRun { first, headers, len, next })
    }
}

/// The iCRC after the headers of a frame whose payload is lent, if it comes next.
#[inline(always)]
fn follows(headers: &mut Run, len: usize, mbuf: &Mbuf, parts: &LentParts<'_>) -> Option<Icrc> {
    if parts.len != len {
        return None;
    }
    headers.take_headers(parts.head, mbuf.pkt_len())
}

/// Copies a frame whose payload is lent to the end of an empty buffer, as a NIC would, and checks it on the way: what was summed is
/// what arrived, whatever happens to the memory meanwhile.
pub(crate) fn take_in(mbuf: &Mbuf, frame: &Frame, to: &mut Mbuf) -> Result<(), FrameError> {
    let LentParts { head, start, len, tail } = mbuf.lent_parts().ok_or(FrameError::Truncated)?;
    let room = to.append(head.len() + len + tail.len()).ok_or(FrameError::Truncated)?;
    let (to_head, rest) = room.split_at_mut(head.len());
    let (body, to_tail) = rest.split_at_mut(len);
    to_head.copy_from_slice(head);
    to_tail.copy_from_slice(tail);
    let before = after_headers(before_headers(frame, head), frame, head);
    // SAFETY: the packet's bytes are lent as long as it is borrowed, as above.
    let mut icrc = Icrc::after(unsafe { memory::copy_lent(start, body, before.value()) });
    icrc.update(to_tail);
    if !icrc.is_right() {
        return Err(FrameError::BadIcrc);
    }
    frame.verify_udp_checksum(to.segments())
}

/// The iCRC before the network header.
fn before_headers(frame: &Frame, head: &[u8]) -> Icrc {
    Icrc::before(frame.network, head.get(frame.l3_offset()..).unwrap_or_default())
}

/// The iCRC after the headers, given that before the network header.
#[inline]
fn after_headers(mut icrc: Icrc, frame: &Frame, head: &[u8]) -> Icrc {
    icrc.update(head.get(frame.l3_offset()..).unwrap_or_default());
    icrc
}

impl Account {
    pub fn new(memory: &HostMemory) -> Account {
        Account { lender: Lender::new(memory), lent: 0, returns: ManuallyDrop::new(Arc::default()) }
    }

    /// All that was lent has come back.
    pub fn is_home(&self) -> bool {
        self.returns.count() == self.lent
    }

    /// Whether it is not awaited any more.
    pub fn try_settle(&mut self) -> bool {
        if self.is_home() {
            // SAFETY: as many pieces came back as were ever lent.
            unsafe { self.lender.settle() };
        }
        !self.lender.is_awaited()
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if self.is_home() {
            self.try_settle();
            // SAFETY: no packet points to it, and it is not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.returns) };
        }
    }
}
