//! What a QP answers (transport facts 2, 3, 4, 6 to 9 and 11), held against the requests of the other direction.

use crate::packet::Packet;
use crate::record::{At, Record, psn_at};
use crate::requests::{Awaited, MOST_RESTARTS, Requests, RnrWait, Side};
use crate::{Note, Rule};
use wire::{Aeth, AtomicAckEth, Msn, Mtu, NakCode, Operation, Position, Syndrome, rnr_timer_ns};

/// What is remembered of a responder.
#[derive(Debug, Default)]
pub struct Answers {
    /// The refusal that ended the connection: where, and its syndrome.
    pub fatal: Option<(At, u8)>,
    /// The requester cannot but take it for that: it lacked no answer to anything before.
    pub refused: bool,
    /// The READ response that comes next.
    run: At,
    /// The last sequence NAK, until its packet arrives.
    pub asked_for: Option<At>,
}

/// A response that is judged.
#[derive(Clone, Copy)]
struct Response {
    /// What it answers.
    at: At,
    /// That of the requests.
    side: Side,
    /// The responder's frames are seen as it sends them.
    ordered: bool,
}

impl Answers {
    /// Judges a response against the requests. `side` is that of the requests; `ordered` says that the responder's frames are
    /// seen as it sends them.
    pub fn on_response(
        &mut self,
        packet: &mut Packet<'_>,
        requests: &mut Requests,
        side: Side,
        ordered: bool,
        ack_limit_ns: u64,
    ) {
        // The path MTU may have become known meanwhile.
        requests.advance(side.mtu);
        let at = requests.place(packet.psn());
        if at < requests.oldest() {
            return;
        }
        let aeth: Option<Aeth> = packet.ext();
        let undefined = |aeth: Aeth| {
            matches!(aeth.syndrome, Syndrome::Reserved(_) | Syndrome::Nak(NakCode::InvalidRdRequest))
        };
        if aeth.is_some_and(undefined) {
            return;
        }
        let nak = matches!(aeth, Some(Aeth { syndrome: Syndrome::Nak(NakCode::PsnSequence), .. }));
        // The next PSN may be asked for when nothing was lost but something ahead was.
        if at >= requests.end(side.mtu) {
            let info = packet.frame.info;
            let rule =
                if nak && at == requests.end(side.mtu) { Rule::SequenceNak } else { Rule::GhostResponse };
            return packet.broken(rule, format_args!("{info} for PSN {}, which was not sent", psn_at(at)));
        }
        if let Some((fatal, syndrome)) = self.fatal {
            let same = at == fatal && aeth.is_some_and(|aeth| aeth.syndrome.to_byte() == syndrome);
            // Far from the responder, what it said before it refused may come behind the refusal.
            let asked_before = matches!(
                aeth.map(|aeth| aeth.syndrome),
                Some(Syndrome::Nak(NakCode::PsnSequence) | Syndrome::RnrNak { .. })
            );
            if at == fatal && asked_before && !ordered {
                return;
            }
            if at >= fatal && !same {
                let info = packet.frame.info;
                packet.broken(
                    Rule::AfterFatalNak,
                    format_args!("{info} after PSN {} was refused for good", psn_at(fatal)),
                );
                return;
            }
        }
        let response = Response { at, side, ordered };
        if let Some(aeth) = aeth {
            held_back(packet, requests, at, ack_limit_ns);
            gap(packet, requests, response, aeth);
            message_number(packet, requests, at, aeth, side.mtu);
        }
        match (packet.frame.info.operation, aeth.map(|aeth| aeth.syndrome)) {
            (Operation::ReadResponse, _) => self.read_response(packet, requests, response),
            (Operation::AtomicAcknowledge, _) => atomic(packet, requests, at, side.mtu),
            (_, Some(Syndrome::Nak(code))) => self.nak(packet, requests, response, code),
            (_, Some(Syndrome::RnrNak { timer })) => rnr_nak(packet, requests, response, timer),
            _ => {
                overtaking(packet, requests, response);
                requests.acknowledge(at + 1, side.mtu);
            }
        }
    }

    fn read_response(&mut self, packet: &mut Packet<'_>, requests: &mut Requests, response: Response) {
        let Response { at, side, ordered } = response;
        let Some(index) = requests.holder(at, side.mtu) else { return };
        let record = &requests.records[index];
        let (info, len) = (packet.frame.info, packet.len());
        if record.info.operation != Operation::ReadRequest && !record.draws_empty_response() {
            return packet.broken(Rule::ResponseKind, format_args!("{info} answers {}", record.info));
        }
        let Some(span) = record.span(side.mtu) else { return };
        let offset = (at - record.at) as u32;
        let last = offset + 1 == span;
        let starts =
            offset == 0 || record.restarts.contains(&offset) || record.restarts.len() > MOST_RESTARTS;
        let allowed = |begins| info.position == Position::of(begins, last);
        if !(starts && allowed(true)
            || (offset > 0 || requests.may_be_rest(index, side.mtu)) && allowed(false))
        {
            packet.broken(Rule::ReadResponse, format_args!("{info} as response {} of {span}", offset + 1));
        }
        let before = u64::from(offset) * u64::from(side.mtu.map_or(0, Mtu::bytes));
        let rest = u64::from(record.read_len()).saturating_sub(before);
        let due = if last { rest } else { u64::from(side.mtu.map_or(len, Mtu::bytes)) };
        if u64::from(len) != due {
            packet.broken(
                Rule::ReadLength,
                format_args!("{len} bytes in response {} of {span}, {due} are due", offset + 1),
            );
        }
        // Those of an earlier READ, asked for again, may come between: then it goes on where it stopped.
        let goes_on = at == self.run || at > self.run && offset == record.run;
        if ordered && !starts && !goes_on && self.run != 0 {
            packet.broken(
                Rule::ResponseOrder,
                format_args!("response {} of {span} comes out of order", offset + 1),
            );
        }
        if offset == 0 {
            overtaking(packet, requests, response);
        }
        let record = &mut requests.records[index];
        if offset <= record.answered {
            record.answered = record.answered.max(offset + 1);
        }
        record.run = offset + 1;
        self.run = at + 1;
        requests.answered(at, side.mtu);
    }

    fn nak(&mut self, packet: &mut Packet<'_>, requests: &mut Requests, response: Response, code: NakCode) {
        let Response { at, side, .. } = response;
        if code == NakCode::PsnSequence {
            packet.note(Note::SequenceNak);
            return self.sequence_nak(packet, requests, response);
        }
        packet.note(Note::FatalNak);
        if at < requests.acked {
            packet.broken(Rule::NakAcknowledged, format_args!("PSN {} was acknowledged before", psn_at(at)));
        }
        let record = requests.holder(at, side.mtu).map(|index| &requests.records[index]);
        if let Some(info) = record.filter(|record| !record.names_memory()).map(|record| record.info)
            && code == NakCode::RemoteAccess
        {
            packet.broken(Rule::AccessNak, format_args!("{info} names no memory that can be refused"));
        }
        if code == NakCode::RemoteOperational
            && record.is_some_and(|record| record.info.operation.base() == Operation::Send)
        {
            packet.note(Note::ErrorIsOperational);
        }
        requests.acknowledge(at, side.mtu);
        self.refused |= requests.settled >= at;
        self.fatal = Some((at, Syndrome::Nak(code).to_byte()));
        requests.awaiting.clear();
    }

    fn sequence_nak(&mut self, packet: &mut Packet<'_>, requests: &mut Requests, response: Response) {
        let Response { at, side, ordered } = response;
        let acknowledged = ordered && at < requests.acked;
        let exact = side.sees_arriving && ordered && requests.told;
        let Awaited { psn, ahead } = requests.awaited;
        // What is asked for may itself have come ahead of its turn, and been dropped, before that which was missing then.
        let right = if exact { at == psn && at < ahead } else { requests.may_be_missing(at) };
        if !right || acknowledged {
            let asked = psn_at(at);
            packet.broken(
                Rule::SequenceNak,
                format_args!("PSN {asked}: it can be missing {right}, acknowledged {acknowledged}"),
            );
        }
        if self.asked_for == Some(at) && side.sees_arriving && ordered {
            packet.broken(Rule::NakOnce, format_args!("PSN {} was asked for already", psn_at(at)));
        }
        self.asked_for = Some(at);
        requests.repeats.begin(at);
        requests.awaiting.retain(|&(asked, _)| asked < at);
        requests.acknowledge(at, side.mtu);
    }
}

/// Acknowledged, or asked for, is only what follows without a gap.
fn gap(packet: &mut Packet<'_>, requests: &mut Requests, response: Response, aeth: Aeth) {
    let Response { at, side, ordered } = response;
    // A NAK acknowledges what comes before it.
    let refused = !matches!(aeth.syndrome, Syndrome::Ack { .. });
    let covered = if refused { at } else { at + 1 };
    if covered <= requests.front || requests.holder(requests.front, side.mtu).is_some() {
        return;
    }
    if side.sees_sending || side.sees_arriving && ordered {
        let front = psn_at(requests.front);
        packet.broken(Rule::AckGap, format_args!("PSN {front} is acknowledged and was not there"));
    }
    packet.note(Note::Missing);
    let holder = requests.holder(at, side.mtu).map(|index| requests.records[index].at);
    requests.skip_to(if refused { at } else { holder.unwrap_or(at) }, side.mtu);
}

fn rnr_nak(packet: &mut Packet<'_>, requests: &mut Requests, response: Response, timer: u8) {
    let Response { at, side, ordered } = response;
    packet.note(Note::RnrNak);
    let record = requests.holder(at, side.mtu).map(|index| &requests.records[index]);
    let takes = record.is_none_or(|record| record.info.takes_receive_wqe());
    let times = record.map_or(0, |record| record.times);
    if let Some(info) = record.filter(|_| !takes).map(|record| record.info) {
        packet.broken(Rule::RnrNak, format_args!("{info} needs no receive"));
    } else if ordered && at < requests.acked {
        packet.broken(Rule::RnrNak, format_args!("PSN {} was acknowledged before", psn_at(at)));
    }
    requests.awaiting.retain(|&(asked, _)| asked < at);
    requests.acknowledge(at, side.mtu);
    requests.awaited.refused(at);
    // The network may double the NAK, and bring it late: a requester that waits, or has gone on, heeds it no more.
    let known = requests.rnr.is_some_and(|rnr| rnr.at == at) || at < requests.settled;
    if known && side.sees_sending && side.sees_answers {
        return;
    }
    requests.rnr =
        Some(RnrWait { at, from_ns: packet.time_ns, delay_ns: rnr_timer_ns(timer), may_cross: times > 1 });
}

fn atomic(packet: &mut Packet<'_>, requests: &mut Requests, at: At, mtu: Option<Mtu>) {
    let Some(index) = requests.holder(at, mtu) else { return };
    let record = &mut requests.records[index];
    if !record.is_atomic() {
        let (info, asked) = (packet.frame.info, record.info);
        return packet.broken(Rule::ResponseKind, format_args!("{info} answers {asked}"));
    }
    let now = packet.ext::<AtomicAckEth>().map(|ack| ack.original);
    if let (Some(now), Some(then)) = (now, record.original)
        && now != then
    {
        packet.broken(Rule::AtomicReplay, format_args!("the value is {now:#x}, it was {then:#x}"));
    }
    record.original = record.original.or(now);
    record.answered = 1;
    requests.answered(at, mtu);
}

/// An answer must not overtake what earlier READs and atomics draw.
fn overtaking(packet: &mut Packet<'_>, requests: &Requests, response: Response) {
    let Response { at, side, ordered } = response;
    if !ordered {
        return;
    }
    let from = requests.records.partition_point(|record| record.at < requests.acked.saturating_sub(1));
    let unanswered = |record: &&Record| {
        record.has_own_answer()
            && record.at < at
            && record.span(side.mtu).is_some_and(|span| record.answered < span)
    };
    let earlier = from.saturating_sub(1);
    if let Some(read) = requests.records.range(earlier..).take_while(|record| record.at < at).find(unanswered)
    {
        let (info, asked, psn) = (packet.frame.info, read.info, psn_at(read.at));
        packet
            .broken(Rule::ResponseOrder, format_args!("{info} before the {asked} at PSN {psn} is answered"));
    }
}

/// The MSN (transport facts 2). An ACK or NAK says how many messages end up to its PSN; data and replays may carry a later
/// count, for it is taken when they leave. So may the NAK of a READ: accepted, which counts it, and what came behind it too, it
/// can still fail when its data is to leave.
fn message_number(packet: &mut Packet<'_>, requests: &mut Requests, at: At, aeth: Aeth, mtu: Option<Mtu>) {
    let refused = !matches!(aeth.syndrome, Syndrome::Ack { .. });
    let Some(least) = ended_at(requests, at, refused, mtu) else { return };
    let read = refused.then(|| requests.read_at(at, mtu)).flatten();
    let data = packet.frame.info.operation != Operation::Acknowledge;
    let most = if data || read.is_some() { requests.ended.max(least) } else { least };
    let msn = aeth.msn.value();
    let Some(base) = requests.msn_base else {
        if least == most {
            requests.msn_base = Some(msn.wrapping_sub(least as u32));
        }
        return;
    };
    let count = |ended: u64| Msn::new(base.wrapping_add(ended as u32));
    // Who counts a READ when its data has left does not count one that fails half-way.
    let lowest = if read.is_some_and(|read| read < at) { least.saturating_sub(1) } else { least };
    if last_is_refused_invalidate(requests, at, mtu) && aeth.msn == count(least.saturating_sub(1)) {
        return packet.note(Note::RefusedInvalidate);
    }
    if aeth.msn.is_before(count(lowest)) || count(most).is_before(aeth.msn) {
        let info = packet.frame.info;
        packet.broken(Rule::Msn, format_args!("{info} says {}, complete are {}", aeth.msn, count(least)));
    }
}

fn last_is_refused_invalidate(requests: &Requests, at: At, mtu: Option<Mtu>) -> bool {
    let record = requests.holder(at, mtu).map(|index| &requests.records[index]);
    record.is_some_and(|record| record.info.operation == Operation::SendInv)
}

/// Messages that ended with this PSN, or before it if it is refused.
fn ended_at(requests: &Requests, at: At, refused: bool, mtu: Option<Mtu>) -> Option<u64> {
    if refused && at == requests.first && requests.told {
        return Some(0);
    }
    let last = if refused { at.checked_sub(1)? } else { at };
    requests.records[requests.holder(last, mtu)?].ended
}

fn held_back(packet: &mut Packet<'_>, requests: &mut Requests, at: At, limit_ns: u64) {
    while requests.awaiting.front().is_some_and(|&(asked, _)| asked <= at) {
        requests.awaiting.pop_front();
    }
    if let Some(&(asked, since)) = requests.awaiting.front() {
        let waited = packet.time_ns.saturating_sub(since);
        if waited > limit_ns {
            packet.broken(
                Rule::AckHeld,
                format_args!("PSN {} has waited {} ms", psn_at(asked), waited / 1_000_000),
            );
            requests.awaiting.pop_front();
        }
    }
}
