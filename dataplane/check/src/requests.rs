//! The requests of one QP (transport facts 1, 5 and 19): which PSN they take, in which order opcodes come, what they add up to,
//! and what may be sent again. Everything is judged by PSN, not by arrival, because a network may lose, double and swap.

use crate::packet::Packet;
use crate::record::{At, BEGIN, Record, memory_of, psn_at, unwrap};
use crate::repeats::Repeats;
use crate::{Note, Rule};
use std::collections::VecDeque;
use wire::{Mtu, Operation, Position, Psn, Reth, Service, packets};

/// Most PSNs that may be outstanding.
const MOST_OUTSTANDING: u64 = 1 << 23;

/// A PSN so far from all that was seen belongs to another life of the QP.
const EPOCH: u64 = 1 << 16;

/// Acknowledged requests that are kept, to know their duplicates.
const KEPT: usize = 4096;

/// Requests that are kept in all.
const MOST_KEPT: usize = 32_768;

/// Restarts of one READ that are kept; with more every packet may be one.
pub const MOST_RESTARTS: usize = 32;

/// A request that was refused because no receive was posted.
#[derive(Clone, Copy, Debug)]
pub struct RnrWait {
    pub at: At,
    pub from_ns: u64,
    pub delay_ns: u64,
    /// The request was under way more than once: a second copy may have crossed the NAK.
    pub may_cross: bool,
}

/// The requests of one QP.
#[derive(Debug, Default)]
pub struct Requests {
    /// By PSN.
    pub records: VecDeque<Record>,
    pub started: bool,
    /// The first PSN of all, from connection management or `connect`.
    pub told: bool,
    pub first: At,
    /// Behind the last that was seen.
    pub next: At,
    /// Before it nothing is missing, from the first on.
    pub front: At,
    /// Messages that ended before `front`.
    pub ended: u64,
    /// Behind the last that was acknowledged.
    pub acked: At,
    /// Where every answer is seen as it arrives: before it the requester has all that it waits for. An ACK beyond a READ or
    /// atomic without its response does not count for what follows it (transport facts 5).
    pub settled: At,
    /// What its responder expects.
    pub awaited: Awaited,
    /// MSN when no message had ended, once it is known.
    pub msn_base: Option<u32>,
    pub rnr: Option<RnrWait>,
    pub repeats: Repeats,
    /// Requests that asked for an ACK and have none, with their arrival; kept where arrivals are seen.
    pub awaiting: VecDeque<(At, u64)>,
}

/// What a responder expects whose arrivals are all seen: it takes requests in their order only, and drops what is ahead
/// (transport facts 6).
#[derive(Clone, Copy, Debug, Default)]
pub struct Awaited {
    /// Its ePSN.
    pub psn: At,
    /// Behind the last that came ahead of its turn.
    pub ahead: At,
}

impl Awaited {
    fn arrives(&mut self, at: At, span: u32) {
        if at == self.psn {
            self.psn += u64::from(span);
        } else if at > self.psn {
            self.ahead = self.ahead.max(at + 1);
        }
    }

    /// What came at `at` was not taken, and so nothing behind it.
    pub fn refused(&mut self, at: At) {
        if self.psn > at + 1 {
            self.ahead = self.ahead.max(self.psn);
        }
        self.psn = self.psn.min(at);
    }
}

/// What the direction knows about itself while a request is judged.
#[derive(Clone, Copy)]
pub struct Side {
    pub mtu: Option<Mtu>,
    /// All that was sent is seen, in its order.
    pub sees_sending: bool,
    /// All that arrives is seen.
    pub sees_arriving: bool,
    /// Acknowledgements are seen as they reach the requester.
    pub sees_answers: bool,
}

impl Requests {
    /// Begins at a PSN that is known from elsewhere, with no message complete.
    pub fn begin(&mut self, psn: Psn) {
        *self = Requests::default();
        self.start(psn);
        self.told = true;
        self.msn_base = Some(0);
    }

    fn start(&mut self, psn: Psn) {
        let at = unwrap(psn, BEGIN);
        self.started = true;
        (self.first, self.next, self.front, self.acked, self.settled) = (at, at, at, at, at);
        self.awaited = Awaited { psn: at, ahead: at };
    }

    /// Judges a request packet.
    pub fn on_request(&mut self, packet: &mut Packet<'_>, side: Side) {
        if !self.started {
            self.start(packet.psn());
        }
        let at = unwrap(packet.psn(), self.next);
        if self.is_another_life(at, side.mtu) {
            if side.sees_sending {
                packet.broken(Rule::PsnOrder, format_args!("PSN {} was next", psn_at(self.next)));
            }
            packet.note(Note::NewEpoch);
            *self = Requests::default();
            return self.on_request(packet, side);
        }
        match self.holder(at, side.mtu) {
            Some(index) if self.records[index].at == at => self.again(packet, index, side),
            Some(index) => self.inside(packet, index, at, side),
            None if at < self.oldest() => packet.note(Note::Retransmission),
            None => self.new_request(packet, at, side),
        }
        if let Some(index) = self.holder(at, side.mtu)
            && self.records[index].at == at
        {
            self.awaited.arrives(at, self.records[index].span(side.mtu).unwrap_or(1));
        }
    }

    /// Everything before `end` is acknowledged.
    pub fn acknowledge(&mut self, end: At, mtu: Option<Mtu>) {
        self.acked = self.acked.max(end);
        if self.rnr.is_some_and(|rnr| rnr.at < end) {
            self.rnr = None;
        }
        while self.settled < end {
            let Some(index) = self.holder(self.settled, mtu) else { return self.settled = end };
            let record = &self.records[index];
            if record.has_own_answer() {
                return;
            }
            self.settled = record.at + 1;
        }
    }

    /// The response at `at` arrives: the requester takes it if nothing before it is missing.
    pub fn answered(&mut self, at: At, mtu: Option<Mtu>) {
        self.acknowledge(at, mtu);
        if self.settled == at {
            self.settled = at + 1;
        }
        self.acknowledge(at + 1, mtu);
    }

    /// The place of an answer's PSN.
    pub fn place(&self, psn: Psn) -> At {
        unwrap(psn, self.next)
    }

    /// The record whose PSNs hold this one.
    pub fn holder(&self, at: At, mtu: Option<Mtu>) -> Option<usize> {
        let index = self.before(at)?;
        let record = &self.records[index];
        (at < record.at + u64::from(record.longest_span(mtu))).then_some(index)
    }

    /// Where the READ begins whose PSNs hold this one.
    pub fn read_at(&self, at: At, mtu: Option<Mtu>) -> Option<At> {
        let record = &self.records[self.holder(at, mtu)?];
        (record.info.operation == Operation::ReadRequest).then_some(record.at)
    }

    /// This request may be missing at its responder: something behind it was sent, or it came itself when something before it
    /// was missing, and was dropped.
    pub fn may_be_missing(&self, at: At) -> bool {
        self.records.back().is_some_and(|last| last.at > at || last.at == at && !last.alone)
    }

    /// The last record at or before this place.
    fn before(&self, at: At) -> Option<usize> {
        match self.records.back() {
            Some(last) if last.at <= at => Some(self.records.len() - 1),
            _ => self.records.partition_point(|record| record.at <= at).checked_sub(1),
        }
    }

    /// Below it nothing is known.
    pub fn oldest(&self) -> At {
        match self.records.front() {
            Some(record) if !self.told || record.at > self.first + MOST_KEPT as u64 => {
                record.at.min(self.next)
            }
            _ => self.first,
        }
    }

    /// Behind everything that can have been sent.
    pub fn end(&self, mtu: Option<Mtu>) -> At {
        let last = self.records.back().map(|last| last.at + u64::from(last.longest_span(mtu)));
        last.map_or(self.next, |last| last.max(self.next))
    }

    /// A READ before which something is missing may itself be the rest of one that is.
    pub fn may_be_rest(&self, index: usize, mtu: Option<Mtu>) -> bool {
        let at = self.records[index].at;
        let before = index.checked_sub(1).map(|before| &self.records[before]);
        let end = before.and_then(|before| Some(before.at + u64::from(before.span(mtu)?)));
        end != Some(at) && !(self.told && at == self.first)
    }

    fn is_another_life(&self, at: At, mtu: Option<Mtu>) -> bool {
        let far = at > self.end(mtu) + EPOCH || at + EPOCH < self.oldest();
        far && self.holder(at, mtu).is_none()
    }

    fn new_request(&mut self, packet: &mut Packet<'_>, at: At, side: Side) {
        let info = packet.frame.info;
        let exact = self.records.back().is_none_or(|last| last.span(side.mtu).is_some());
        let early = self.told && at < self.first;
        if early || side.sees_sending && exact && at != self.next {
            let next = psn_at(self.next);
            packet.broken(Rule::PsnOrder, format_args!("{info}, but PSN {next} was next"));
        }
        if early {
            return;
        }
        if self.rnr.is_some_and(|rnr| at > rnr.at) {
            packet.note(Note::SentIntoRnrWait);
        }
        let record = Record {
            at,
            info,
            len: packet.len(),
            reth: memory_of(packet.ext(), packet.ext()),
            digest: packet.digest(),
            icrc: packet.icrc(),
            seen_ns: packet.time_ns,
            times: 1,
            alone: self.acked >= at,
            head: (info.operation == Operation::Write && info.position == Position::First).then_some(at),
            ended: None,
            restarts: Vec::new(),
            original: None,
            answered: 0,
            run: 0,
        };
        if at >= self.next {
            self.repeats.over();
        }
        let index = self.before(at).map_or(0, |index| index + 1);
        self.records.insert(index, record);
        self.follows(packet, index, side);
        self.messages_from(packet, index, side.mtu);
        self.advance(side.mtu);
        self.next = self.next.max(at + u64::from(self.records[index].span(side.mtu).unwrap_or(1)));
        let oldest = self.acked.max(self.oldest());
        if self.next.saturating_sub(oldest) > MOST_OUTSTANDING {
            packet.broken(Rule::Window, format_args!("{} PSNs are outstanding", self.next - oldest));
        }
        if side.sees_arriving && packet.frame.bth().ack_req && self.front > at {
            self.awaiting.push_back((at, packet.time_ns));
            if self.awaiting.len() > KEPT {
                self.awaiting.pop_front();
            }
        }
        self.forget();
    }

    /// The order of opcodes, against both neighbours.
    fn follows(&self, packet: &mut Packet<'_>, index: usize, side: Side) {
        let record = &self.records[index];
        let previous = index.checked_sub(1).map(|before| &self.records[before]);
        if let Some(previous) = previous {
            let adjacent =
                previous.span(side.mtu).is_some_and(|span| previous.at + u64::from(span) == record.at);
            if adjacent && !record.info.may_follow(Some(previous.info)) {
                packet.broken(Rule::OpcodeOrder, format_args!("{} follows {}", record.info, previous.info));
            }
        } else if self.told && record.at == self.first && !record.info.position.begins() {
            packet.broken(Rule::OpcodeOrder, format_args!("{} begins a connection", record.info));
        }
        if let (Some(next), Some(span)) = (self.records.get(index + 1), record.span(side.mtu)) {
            let end = record.at + u64::from(span);
            if end == next.at && !next.info.may_follow(Some(record.info)) {
                packet.broken(Rule::OpcodeOrder, format_args!("{} comes before {}", record.info, next.info));
            } else if end > next.at {
                let (info, next) = (record.info, psn_at(next.at));
                packet
                    .broken(Rule::ReadSpan, format_args!("{info} reaches over the request with PSN {next}"));
            }
        }
    }

    /// Payloads of a WRITE against its RETH: this packet's place in its message, and that of what is behind it, if this one
    /// was what was missing.
    fn messages_from(&mut self, packet: &mut Packet<'_>, mut index: usize, mtu: Option<Mtu>) {
        let Some(mtu) = mtu else { return };
        loop {
            if !self.records[index].info.position.begins() {
                self.records[index].head = self.head_for(index, mtu);
            }
            let record = &self.records[index];
            let head = record.head.and_then(|head| self.holder(head, Some(mtu)));
            if let Some(Reth { dma_len, .. }) = head.and_then(|head| self.records[head].reth) {
                let before = (record.at - record.head.unwrap_or(record.at)) * u64::from(mtu.bytes());
                let sum = before + u64::from(record.len);
                let right = match record.info.position {
                    Position::Last | Position::Only => sum == u64::from(dma_len),
                    Position::First | Position::Middle => sum < u64::from(dma_len),
                };
                if !right {
                    let info = record.info;
                    packet.broken(Rule::WriteLength, format_args!("{info}: {sum} of {dma_len} bytes"));
                }
            }
            let at = record.at;
            match self.records.get(index + 1) {
                Some(next) if next.at == at + 1 && !next.info.position.begins() && next.head.is_none() => {
                    index += 1
                }
                _ => return,
            }
        }
    }

    /// The First of the WRITE that a Middle or Last belongs to. Where packets are missing, its RETH tells how far it reaches.
    fn head_for(&self, index: usize, mtu: Mtu) -> Option<At> {
        let record = &self.records[index];
        let previous = &self.records[index.checked_sub(1)?];
        if record.info.operation.base() != Operation::Write || previous.info.position.ends() {
            return None;
        }
        let head = previous.head?;
        let reth = self.records[self.holder(head, Some(mtu))?].reth?;
        (record.at < head + u64::from(packets(reth.dma_len, mtu))).then_some(head)
    }

    /// Moves `front` over what is there, counting messages.
    pub fn advance(&mut self, mtu: Option<Mtu>) {
        while let Some(index) = self.before(self.front) {
            let record = &mut self.records[index];
            let Some(span) = record.span(mtu) else { return };
            let end = record.at + u64::from(span);
            if end <= self.front {
                return;
            }
            self.ended += u64::from(record.info.position.ends());
            record.ended = Some(self.ended);
            self.front = end;
        }
    }

    /// Takes what is missing before `at` as lost to the capture: from there on messages are counted anew.
    pub fn skip_to(&mut self, at: At, mtu: Option<Mtu>) {
        self.msn_base = None;
        self.front = at;
        self.advance(mtu);
    }

    /// A request that was seen before.
    fn again(&mut self, packet: &mut Packet<'_>, index: usize, side: Side) {
        if self.is_doubled(packet, index, side) {
            return packet.note(Note::Duplicate);
        }
        packet.note(Note::Retransmission);
        let record = &mut self.records[index];
        record.seen_ns = packet.time_ns;
        self.repeats.begin(record.at + u64::from(record.span(side.mtu).unwrap_or(1)));
        self.waited(packet, index, side);
        let settled = self.settled;
        let record = &mut self.records[index];
        record.times = record.times.saturating_add(1);
        let (info, was) = (packet.frame.info, record.info);
        if info.service == Service::Uc {
            packet
                .broken(Rule::Retransmission, format_args!("UC sends nothing again, but {was} came before"));
        } else if info.opcode != was.opcode {
            packet.broken(Rule::Retransmission, format_args!("{info} was {was} before"));
        } else if record.info.operation == Operation::ReadRequest {
            let reth: Option<Reth> = packet.ext();
            if reth != record.reth {
                packet.broken(
                    Rule::Retransmission,
                    format_args!("the READ asks for another range than before"),
                );
            }
            remember_restart(record, 0);
        } else if let (Some(now), Some(then)) = (packet.digest(), record.digest)
            && now != then
        {
            packet.broken(Rule::Retransmission, format_args!("{info} differs from the one before"));
        }
        let done = record.span(side.mtu).is_some_and(|span| record.at + u64::from(span) <= settled);
        if side.sees_sending && side.sees_answers && done {
            let answered = if record.has_own_answer() { "answered" } else { "acknowledged" };
            packet.broken(Rule::PsnOrder, format_args!("{info} is sent again, but it was {answered}"));
        }
    }

    /// The network doubled it.
    fn is_doubled(&self, packet: &Packet<'_>, index: usize, side: Side) -> bool {
        let record = &self.records[index];
        let icrc = packet.icrc();
        if side.sees_sending || icrc.is_none() || icrc != record.icrc {
            return false;
        }
        let since_ns = packet.time_ns.saturating_sub(record.seen_ns);
        let again = match self.rnr.filter(|rnr| rnr.at == record.at) {
            Some(rnr) => packet.time_ns.saturating_sub(rnr.from_ns) >= rnr.delay_ns,
            None => self.repeats.has(record.at, since_ns),
        };
        !again || packet.frame.info.service == Service::Uc
    }

    /// A PSN that belongs to the responses of a READ.
    fn inside(&mut self, packet: &mut Packet<'_>, index: usize, at: At, side: Side) {
        let Some(span) = self.records[index].span(side.mtu) else {
            // How many responses the READ has cannot be told yet.
            if packet.frame.info.operation == Operation::ReadRequest && self.is_rest_of(packet, index) {
                return packet.note(Note::Retransmission);
            }
            return self.new_request(packet, at, side);
        };
        let record = &mut self.records[index];
        let (info, offset) = (packet.frame.info, (at - record.at) as u32);
        debug_assert!(offset < span);
        if info.operation != Operation::ReadRequest {
            let read = psn_at(record.at);
            return packet.broken(
                Rule::ReadSpan,
                format_args!("{info} has the PSN of response {} to the READ at {read}", offset + 1),
            );
        }
        packet.note(Note::Retransmission);
        let mtu = side.mtu.map_or(0, Mtu::bytes);
        let (Some(now), Some(then)) = (packet.ext::<Reth>(), record.reth) else { return };
        let skipped = u64::from(offset) * u64::from(mtu);
        let rest = u64::from(then.dma_len) - skipped;
        if now.rkey != then.rkey || now.va != then.va.wrapping_add(skipped) || u64::from(now.dma_len) != rest
        {
            packet.broken(
                Rule::ReadRestart,
                format_args!(
                    "{} bytes at {:#x} are not the rest of a READ of {} at {:#x}",
                    now.dma_len, now.va, then.dma_len, then.va
                ),
            );
        }
        remember_restart(record, offset);
    }

    fn is_rest_of(&self, packet: &Packet<'_>, index: usize) -> bool {
        let (Some(now), Some(then)) = (packet.ext::<Reth>(), self.records[index].reth) else { return false };
        let end = |reth: Reth| reth.va.wrapping_add(u64::from(reth.dma_len));
        now.rkey == then.rkey && end(now) == end(then) && now.dma_len < then.dma_len
    }

    /// The RNR timer (transport facts 4): a minimum.
    fn waited(&mut self, packet: &mut Packet<'_>, index: usize, side: Side) {
        let Some(rnr) = self.rnr else { return };
        // Without a time there is nothing to judge.
        if self.records[index].at != rnr.at || packet.time_ns == 0 {
            return;
        }
        let waited = packet.time_ns.saturating_sub(rnr.from_ns);
        // Linux rounds one code's time to 61.41 ms, and captures have microseconds: 0.1 % and 2 µs are no fault.
        let least = rnr.delay_ns - rnr.delay_ns / 1000;
        let crossed = side.sees_arriving || rnr.may_cross && !(side.sees_sending && side.sees_answers);
        if waited + 2_000 < least && !crossed {
            packet.broken(
                Rule::RnrDelay,
                format_args!(
                    "sent again after {} µs, told to wait {} µs",
                    waited / 1000,
                    rnr.delay_ns / 1000
                ),
            );
        }
        if waited + 2_000 >= least {
            self.rnr = None;
        }
    }

    fn forget(&mut self) {
        let done =
            |records: &VecDeque<Record>, acked: At| records.get(KEPT).is_some_and(|record| record.at < acked);
        while done(&self.records, self.acked) || self.records.len() > MOST_KEPT {
            self.records.pop_front();
        }
    }
}

fn remember_restart(record: &mut Record, offset: u32) {
    if record.restarts.len() <= MOST_RESTARTS && !record.restarts.contains(&offset) {
        record.restarts.push(offset);
    }
}
