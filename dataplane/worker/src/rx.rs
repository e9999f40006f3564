//! Receive: a burst is parsed and executed in groups, of all its frames if they are short.
//!
//! The first pass over a group looks only at frames and asks for their QPs, so that the lines of many are on their way from
//! memory before the second pass needs the first. It reads every byte for the iCRC, and the second pass copies them: so a
//! group is no longer than what the first cache keeps in between. Lent payloads are read in the second pass only (`lend.rs`), but they,
//! too, drive out of the first cache what the first pass has seen of the frames behind them: so of those that follow one another in a run
//! each is parsed when the one before was copied.

use crate::counters::Drop;
use crate::lane::Lane;
use crate::lend::LentRun;
use crate::mad::is_for_gsi;
use arrayvec::ArrayVec;
use dpdk::mbuf::Checksum;
use dpdk::{Mbuf, MbufBurst};
use engine::qp::runs;
use engine::{Nanos, Payload, QpPlace, RxPacket};
use wire::{Frame, FrameError, HEAD_LEN, Icrc, Qpn, Run, Vlan};

/// Frames of one receive burst.
pub(crate) const RX_BURST: usize = 32;

/// Segments that one packet may come in: a frame of 9000 bytes in buffers of 256.
const MAX_SEGMENTS: usize = 36;

/// Frames whose lines are on their way to the cache while one is parsed. They come from the device, or from the core that wrote them,
/// and no more of them than a core can wait for at once: with more frames ahead those of 256 bytes take a fifth longer on Zen 3.
pub(crate) const AHEAD: usize = 3;

/// The same of short frames, two or three lines each: a Xeon, whose cores are far from each other, takes a seventh less for each with 8 of
/// them ahead.
const SHORT_AHEAD: usize = 8;

/// The first frames, whose data is asked for before their descriptions are there: nothing else is to be done meanwhile.
const UNREAD: usize = 2;

/// A frame of no more bytes is short.
const SHORT: usize = 192;

/// Bytes of a group; the frame that reaches them is its last.
const GROUP_BYTES: usize = 12 << 10;

/// Where a frame comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The port.
    Wire,
    /// This worker sent it to the port's own address.
    Own,
}

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Discarded, and counted.
    Dropped,
    /// For the engine here (which counts QPs it does not know), and where its QP is.
    Local(QpPlace),
    /// It follows the frame before it in a run, and has its fate. Nothing else is known of it.
    Follows,
    /// As [`Local`](Self::Local), and its payload is lent: it stays where it is until it is placed. With the iCRC after its headers.
    Lent(QpPlace, Icrc),
    /// It followed a lent frame in a run, and was executed with it.
    Executed,
    /// For the members of a group.
    Group,
    /// For queue pair 1.
    Mad,
    /// Its QP is not here: another worker's, or on its way.
    Away,
    /// Not RoCE for us.
    Slow,
}

impl Fate {
    /// That of a frame whose QP was found.
    #[inline(always)]
    fn at(self, place: QpPlace) -> Fate {
        match self {
            Fate::Lent(_, icrc) => Fate::Lent(place, icrc),
            _ => Fate::Local(place),
        }
    }
}

/// A burst and what becomes of each frame; empty between polls.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub burst: MbufBurst<RX_BURST>,
    pub fates: ArrayVec<Fate, RX_BURST>,
    /// What the frames were parsed to, where they are RoCE for us and do not follow others. Each is written in its place, since it is large.
    pub frames: [Option<Frame>; RX_BURST],
}

impl Lane {
    /// Takes a burst from the port and executes it. True when there was one.
    #[inline]
    pub(crate) fn receive(&mut self, now: Nanos) -> bool {
        // Taken out and put back by its pointer, so that the lane can be used meanwhile.
        let mut received = self.received.take().unwrap_or_default();
        let count = match &mut self.impaired {
            None => self.rx.burst_as_sent(&mut received.burst),
            Some(impaired) => impaired.receive(now, &mut self.rx, &mut received.burst),
        };
        self.counters.traffic.no_buffer += self.rx.take_lost();
        if !received.burst.is_empty() {
            self.counters.traffic.rx_frames += received.burst.len() as u64;
            self.take_burst(now, &mut received, Origin::Wire);
        }
        self.received = Some(received);
        count != 0
    }

    /// Parses and executes a burst, which is empty afterwards.
    pub(crate) fn take_burst(&mut self, now: Nanos, received: &mut Received, origin: Origin) {
        let burst = received.burst.as_slice();
        burst.iter().for_each(Mbuf::prefetch);
        burst.iter().take(UNREAD).for_each(Mbuf::prefetch_unread);
        let mut leaving = false;
        let (mut begin, mut asked) = (0, 0);
        while begin < received.burst.len() {
            let lent = self.parse_group(received, origin, &mut asked);
            self.find_qps(received, begin);
            leaving |= self.execute_group(now, received, begin);
            if let Some(run) = lent {
                self.execute_lent_followers(now, received, run);
            }
            begin = received.fates.len();
        }
        if leaving {
            self.send_leaving(now, received);
        } else {
            received.burst.clear();
            received.fates.clear();
        }
        self.engine.end_burst(now);
    }

    /// First pass: parse, iCRC and addresses, for the next frames that have no fate. A lent frame that is followed by others in a run, which
    /// is given back, is the last of its group: they are parsed when it was executed, and each is executed at once. The lines of the first
    /// `asked` frames were asked for.
    fn parse_group(&mut self, received: &mut Received, origin: Origin, asked: &mut usize) -> Option<LentRun> {
        let Received { burst, fates, frames } = received;
        let burst = burst.as_mut_slice();
        let (mut bytes, mut run) = (0, None::<Run>);
        while fates.len() < burst.len() && bytes < GROUP_BYTES {
            let index = fates.len();
            *asked = ask_ahead(burst, index, *asked);
            let followers = run.as_mut().map_or(0, |run| followers(&burst[index..], run));
            let len = burst[index].pkt_len() * followers.max(1);
            bytes += len;
            if origin == Origin::Wire {
                self.counters.traffic.rx_bytes += len as u64;
            }
            if followers > 0 {
                // As long as each other.
                (0..followers).for_each(|_| fates.push(Fate::Follows));
                continue;
            }
            let (mbuf, place) = (&mut burst[index], &mut frames[index]);
            let is_lent = mbuf.is_lent();
            let fate =
                if is_lent { self.lent_fate(mbuf, place) } else { self.whole_fate(mbuf, place, origin) };
            // By the time that it is looked up it is at hand.
            if let Some(frame) = place {
                self.engine.expect_qp(frame.bth().dest_qpn);
            }
            run = begin_run(mbuf, place, fate, origin);
            fates.push(fate);
            if is_lent && let Some(lent) = LentRun::begin(&burst[index..], place, fate) {
                return Some(lent);
            }
        }
        None
    }

    /// The end of the first pass: where the QPs are. Looked up in a row, what several of them need is on its way at the same time.
    fn find_qps(&mut self, received: &mut Received, begin: usize) {
        let Received { fates, frames, .. } = received;
        let mut leaves = false;
        for (fate, frame) in fates.iter_mut().zip(frames.iter()).skip(begin) {
            if let (Fate::Local(_) | Fate::Lent(..), Some(frame)) = (*fate, frame) {
                let place = self.place_of(frame);
                leaves |= place.is_none();
                *fate = place.map_or(Fate::Away, |place| fate.at(place));
            }
        }
        if leaves {
            self.leave_one_by_one(received, begin);
        }
        let Received { fates, frames, .. } = received;
        let mut next = if self.engine.has_many_qps() { begin } else { fates.len() };
        while let (Some(fate), Some(frame)) = (fates.get(next), frames.get(next)) {
            let packets = 1 + behind(&fates[next + 1..]);
            if let (Fate::Local(place) | Fate::Lent(place, _), Some(frame)) = (*fate, frame) {
                self.engine.fetch_for(place, frame.info, packets);
            }
            next += packets;
        }
    }

    /// What follows a frame whose QP is not here leaves as if it followed none, and with its payload.
    #[cold]
    fn leave_one_by_one(&mut self, received: &mut Received, begin: usize) {
        let Received { burst, fates, frames } = received;
        let mut leaving = None::<Frame>;
        for ((mbuf, fate), frame) in burst.as_mut_slice().iter_mut().zip(fates).zip(frames).skip(begin) {
            match (*fate, leaving) {
                (Fate::Follows, Some(first)) => {
                    *frame = Some(first.following(mbuf.data()));
                    *fate = Fate::Away;
                }
                (Fate::Follows, None) => {}
                _ => leaving = frame.filter(|_| *fate == Fate::Away),
            }
            if let (Fate::Away, Some(frame), true) = (*fate, frame, mbuf.is_lent()) {
                *fate = self.take_in(mbuf, frame, Fate::Away);
            }
        }
    }

    /// A frame that is all there.
    #[inline(always)]
    fn whole_fate(&mut self, mbuf: &Mbuf, place: &mut Option<Frame>, origin: Origin) -> Fate {
        match only_segment(mbuf) {
            Some(bytes) => self.fate_by(bytes, mbuf, place, origin),
            None => self.segmented_fate(mbuf, place, origin),
        }
    }

    #[inline(never)]
    fn segmented_fate(&mut self, mbuf: &Mbuf, place: &mut Option<Frame>, origin: Origin) -> Fate {
        self.fate_by(head(mbuf, &mut [0; HEAD_LEN]), mbuf, place, origin)
    }

    /// A frame by its beginning. Whether its QP is here, is [looked up](Self::find_qps) later.
    #[inline(always)]
    fn fate_by(&mut self, head: &[u8], mbuf: &Mbuf, place: &mut Option<Frame>, origin: Origin) -> Fate {
        if origin == Origin::Wire
            && mbuf.stripped_vlan().is_none()
            && let Some(icrc) = self.flows.parse(head, mbuf.pkt_len(), place)
            && let Some(frame) = place
        {
            // Of its flow a frame was admitted before.
            return match check(mbuf, frame, icrc) {
                Ok(()) => whose(frame),
                Err(reason) => self.bad(reason),
            };
        }
        match Frame::parse(head, mbuf.pkt_len()) {
            Ok(frame) => self.new_fate(mbuf, head, place.insert(with_tag(mbuf, frame)), origin),
            Err(reason) => self.bad(reason),
        }
    }

    /// The same for one of which nothing is known but what was parsed.
    #[inline(never)]
    fn new_fate(&mut self, mbuf: &Mbuf, head: &[u8], frame: &Frame, origin: Origin) -> Fate {
        let before = Icrc::before(frame.network, head.get(frame.l3_offset()..).unwrap_or_default());
        if let Err(reason) = check(mbuf, frame, before) {
            return self.bad(reason);
        }
        let fate = self.fate(frame, origin);
        if origin == Origin::Wire && matches!(fate, Fate::Local(_) | Fate::Mad) {
            self.flows.note(frame, head);
        }
        fate
    }

    /// A frame that does not parse, or is not as it was sent.
    pub(crate) fn bad(&mut self, reason: FrameError) -> Fate {
        self.counters.count_frame_error(reason);
        if reason.is_roce() { Fate::Dropped } else { Fate::Slow }
    }

    /// A good frame, of which nothing is known. Its QP is taken to be here.
    pub(crate) fn fate(&mut self, frame: &Frame, origin: Origin) -> Fate {
        match self.admit(frame, origin) {
            Err(reason) => {
                self.counters.count_drop(reason);
                Fate::Dropped
            }
            Ok(()) if frame.dst.is_multicast() => Fate::Group,
            Ok(()) => whose(frame),
        }
    }

    /// Whether a good frame is for us.
    #[inline]
    fn admit(&self, frame: &Frame, origin: Origin) -> Result<(), Drop> {
        let link =
            if frame.dst.is_multicast() { self.admit_group(frame)? } else { self.addresses.admits(frame)? };
        // Nobody on the wire has our addresses, so that what a QP hears from a QP of this port really comes from there.
        if origin == Origin::Wire && link.has(frame.src, frame.network) {
            return Err(Drop::OwnSource);
        }
        Ok(())
    }

    /// Where a frame's QP is, if it is here. One that lives nowhere is the engine's to count; one that is awaited has frames waiting before
    /// this one.
    #[inline]
    fn place_of(&self, frame: &Frame) -> Option<QpPlace> {
        let qpn = frame.bth().dest_qpn;
        let nowhere = || self.link.home(qpn).is_none().then_some(QpPlace::NOWHERE);
        self.engine.place_of(qpn, frame.info).or_else(nowhere)
    }

    /// Second pass: what is ours goes to the engine, in order. True when a frame is for somebody else.
    fn execute_group(&mut self, now: Nanos, received: &Received, begin: usize) -> bool {
        let Received { burst, fates, frames } = received;
        let mut leaving = false;
        let burst = burst.as_slice();
        let mut next = begin;
        while let (Some(mbuf), Some(fate), Some(frame)) = (burst.get(next), fates.get(next), frames.get(next))
        {
            next += 1;
            match (fate, frame) {
                (Fate::Local(place), Some(frame)) => {
                    self.execute_at(now, mbuf, frame, *place);
                    let followers = behind(&fates[next..]);
                    if followers > 0 {
                        let behind = &burst[next..next + followers];
                        self.engine.deliver_followers(now, *place, frame, behind, Mbuf::data);
                        next += followers;
                    }
                }
                (Fate::Lent(place, icrc), Some(frame)) => self.execute_lent(now, mbuf, frame, *place, *icrc),
                (Fate::Group, Some(frame)) => self.deliver_group(now, mbuf, frame),
                (Fate::Mad, Some(frame)) => self.give_mad(now, mbuf, frame),
                (Fate::Away | Fate::Slow, _) => leaving = true,
                // What has another fate has a frame, too.
                (Fate::Dropped | Fate::Follows | Fate::Executed, _) | (_, None) => {}
            }
        }
        leaving
    }

    /// What is not ours leaves.
    fn send_leaving(&mut self, now: Nanos, received: &mut Received) {
        let Received { burst, fates, frames } = received;
        for ((mbuf, fate), frame) in burst.drain().zip(fates.drain(..)).zip(frames) {
            match (fate, frame) {
                (Fate::Away, Some(frame)) => self.send_away(now, mbuf, frame),
                (Fate::Slow, _) => self.give_to_control(mbuf),
                _ => {}
            }
        }
    }

    /// Admission, responder or completer, copy: the engine's. Where the QP is, was looked up.
    #[inline]
    fn execute_at(&mut self, now: Nanos, mbuf: &Mbuf, frame: &Frame, place: QpPlace) {
        match only_segment(mbuf) {
            Some(head) => {
                let packet = RxPacket { frame, head, payload: payload(head, frame) };
                self.engine.deliver_at(now, place, frame.bth().dest_qpn, &packet);
            }
            None => self.execute(now, mbuf, frame),
        }
    }

    /// The same with the lookup.
    pub(crate) fn execute(&mut self, now: Nanos, mbuf: &Mbuf, frame: &Frame) {
        self.execute_for(now, mbuf, frame, frame.bth().dest_qpn);
    }

    /// [`execute`](Self::execute) for a QP of which the frame does not speak: a member of its group.
    pub(crate) fn execute_for(&mut self, now: Nanos, mbuf: &Mbuf, frame: &Frame, qpn: Qpn) {
        if let Some(head) = only_segment(mbuf) {
            return self.engine.deliver(now, qpn, &RxPacket { frame, head, payload: payload(head, frame) });
        }
        let mut scratch = [0; HEAD_LEN];
        let head = head(mbuf, &mut scratch);
        let (begin, len) = (frame.payload_offset(), frame.payload_len());
        let mut pieces = ArrayVec::<&[u8], MAX_SEGMENTS>::new();
        if !gather(mbuf, begin, len, &mut pieces) {
            return self.counters.count_drop(Drop::TooManySegments);
        }
        let (first, rest) = pieces.split_first().map_or((&[][..], &[][..]), |(first, rest)| (*first, rest));
        self.engine.deliver(now, qpn, &RxPacket { frame, head, payload: Payload::segmented(first, rest) });
    }
}

/// Asks for the lines of a frame and those behind it, as far ahead as its length has it; those of the first `asked` were asked for. Gives
/// how many were then.
#[inline(always)]
fn ask_ahead(burst: &[Mbuf], index: usize, asked: usize) -> usize {
    let ahead = if burst[index].pkt_len() <= SHORT { SHORT_AHEAD } else { AHEAD };
    let end = burst.len().min(index + 1 + ahead);
    // Some may have been executed without a look from here.
    burst.get(asked.max(index)..end).unwrap_or_default().iter().for_each(Mbuf::prefetch_data);
    end.max(asked)
}

/// How many of these frames follow the one before them in a run.
#[inline(always)]
fn behind(fates: &[Fate]) -> usize {
    fates.iter().take_while(|fate| **fate == Fate::Follows).count()
}

/// The run that a frame may begin: one for a QP here, of a kind that is executed in runs.
#[inline(always)]
fn begin_run(mbuf: &Mbuf, frame: &Option<Frame>, fate: Fate, origin: Origin) -> Option<Run> {
    let (Fate::Local(_), Some(frame), Origin::Wire) = (fate, frame, origin) else { return None };
    if !runs(frame.info) || mbuf.stripped_vlan().is_some() {
        return None;
    }
    Run::of(frame, only_segment(mbuf)?)
}

/// How many of the next two frames come next in a run, and are right.
#[inline(always)]
fn followers(mbufs: &[Mbuf], run: &mut Run) -> usize {
    let mut bytes = mbufs.iter().map_while(untagged);
    match (bytes.next(), bytes.next()) {
        (Some(first), Some(second)) => run.take_two(first, second),
        (Some(only), None) => usize::from(run.take(only)),
        (None, _) => 0,
    }
}

/// The same if nobody has taken a tag from the frame.
#[inline(always)]
fn untagged(mbuf: &Mbuf) -> Option<&[u8]> {
    mbuf.plain_data().or_else(|| only_segment(mbuf).filter(|_| mbuf.stripped_vlan().is_none()))
}

/// The bytes of a frame in one segment.
#[inline(always)]
fn only_segment(mbuf: &Mbuf) -> Option<&[u8]> {
    (mbuf.nb_segs() == 1).then(|| mbuf.data())
}

/// The payload of a frame in one segment.
#[inline(always)]
fn payload<'a>(bytes: &'a [u8], frame: &Frame) -> Payload<'a> {
    let (begin, len) = (frame.payload_offset(), frame.payload_len());
    // The parser has seen that the frame is as long as its headers say.
    Payload::contiguous(bytes.get(begin..begin + len).unwrap_or_default())
}

/// A frame to one GID that was admitted.
#[inline]
pub(crate) fn whose(frame: &Frame) -> Fate {
    if is_for_gsi(frame) { Fate::Mad } else { Fate::Local(QpPlace::NOWHERE) }
}

/// UDP checksum, iCRC: `icrc` is what that is before the network header.
#[inline(always)]
fn check(mbuf: &Mbuf, frame: &Frame, icrc: Icrc) -> Result<(), FrameError> {
    // Nobody sends a checksum.
    if frame.udp_checksum != 0 && mbuf.l4_checksum() != Checksum::Good {
        frame.verify_udp_checksum(mbuf.segments())?;
    }
    match only_segment(mbuf) {
        Some(bytes) => frame.verify_icrc_from(icrc, [bytes]),
        None => frame.verify_icrc_from(icrc, mbuf.segments()),
    }
}

/// Parses a frame that another worker has checked.
pub(crate) fn parse_again(mbuf: &Mbuf) -> Result<Frame, FrameError> {
    let mut scratch = [0; HEAD_LEN];
    Frame::parse(head(mbuf, &mut scratch), mbuf.pkt_len()).map(|frame| with_tag(mbuf, frame))
}

/// A tag that the NIC took off is one that the frame has.
#[inline]
fn with_tag(mbuf: &Mbuf, mut frame: Frame) -> Frame {
    if frame.vlan.is_none()
        && let Some(tci) = mbuf.stripped_vlan()
    {
        frame.vlan = Some(Vlan::from_tci(tci));
    }
    frame
}

/// The frame's beginning in one piece: where it lies, or in `scratch` when its first segment is too short.
#[inline]
pub(crate) fn head<'a>(mbuf: &'a Mbuf, scratch: &'a mut [u8; HEAD_LEN]) -> &'a [u8] {
    let first = mbuf.data();
    if first.len() >= HEAD_LEN || mbuf.nb_segs() == 1 {
        return first;
    }
    let len = mbuf.copy_to(0, scratch);
    &scratch[..len]
}

/// The non-empty pieces of `len` bytes from `begin`; false when there are too many.
fn gather<'a, const N: usize>(
    mbuf: &'a Mbuf,
    mut begin: usize,
    mut len: usize,
    pieces: &mut ArrayVec<&'a [u8], N>,
) -> bool {
    for segment in mbuf.segments() {
        let skip = begin.min(segment.len());
        begin -= skip;
        let take = len.min(segment.len() - skip);
        len -= take;
        if take != 0 && pieces.try_push(&segment[skip..skip + take]).is_err() {
            return false;
        }
    }
    true
}
