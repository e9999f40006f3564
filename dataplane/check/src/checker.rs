//! The checker: frames in, to each rule what it judges, a report out.

use crate::cm::Cm;
use crate::half::{Half, Key};
use crate::packet::{Packet, unreadable};
use crate::pairs::Halves;
use crate::requests::Side;
use crate::{Damage, Note, Options, Report, Rule, Violation, single};
use wire::{Frame, Gid, HEAD_LEN, Mtu, Operation, PayloadRule, Psn, Qpn, Service};

/// One end of a connection: its address, its QP and the first PSN of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Address.
    pub gid: Gid,
    /// QP number.
    pub qpn: Qpn,
    /// First PSN that it sends.
    pub psn: Psn,
}

/// Checks frames in the order of their capture.
pub struct Checker {
    options: Options,
    halves: Halves,
    cm: Cm,
    /// Frames were cut inside their headers: there are requests that were not seen, so no answer can be held against them.
    lacks_headers: bool,
    report: Report,
}

/// A frame of RoCEv2, and when it was seen.
#[derive(Clone, Copy)]
struct Seen<'a> {
    time_ns: u64,
    bytes: &'a [u8],
    frame: &'a Frame,
}

impl<'a> Seen<'a> {
    /// The frame as it is judged: `report` has counted it.
    fn packet(self, report: &'a mut Report) -> Packet<'a> {
        let Seen { time_ns, bytes, frame } = self;
        Packet { frame, bytes, number: report.frames, time_ns, report }
    }
}

impl Checker {
    /// A checker that has seen nothing.
    pub fn new(options: Options) -> Checker {
        let report = Report::new(options.max_violations);
        Checker { options, halves: Halves::default(), cm: Cm::default(), lacks_headers: false, report }
    }

    /// Tells of a connection, made or made again: the numbers of its QPs, their first PSNs and the path MTU. What was known of
    /// these QPs is forgotten. It need not be told: most is learned from the traffic.
    pub fn connect(&mut self, one: End, other: End, mtu: Option<Mtu>) {
        let to_other = self.direction(Key { src: one.gid, dst: other.gid, dest: other.qpn }, None);
        let to_one = self.direction(Key { src: other.gid, dst: one.gid, dest: one.qpn }, None);
        let (Some(to_other), Some(to_one)) = (to_other, to_one) else { return };
        for (index, psn) in [(to_other, one.psn), (to_one, other.psn)] {
            let half = &mut self.halves.all[index];
            if let Some(old) = half.peer {
                self.halves.all[old].peer = None;
            }
            let half = &mut self.halves.all[index];
            half.restart();
            half.mtu = mtu;
            half.requests.begin(psn);
        }
        self.halves.join(to_other, to_one);
    }

    /// The next frame: its time in nanoseconds (0 where it is not known), and all of its bytes from the destination MAC on, without FCS.
    pub fn on_frame(&mut self, time_ns: u64, bytes: &[u8]) {
        self.on_cut_frame(time_ns, bytes, bytes.len());
    }

    /// The next frame, of which a capture may hold the beginning only; `len` is its length on the wire. What is missing is not
    /// judged.
    pub fn on_cut_frame(&mut self, time_ns: u64, bytes: &[u8], len: usize) {
        self.report.frames += 1;
        let whole = bytes.len() >= len;
        match Frame::parse(bytes, len) {
            Ok(frame) => {
                self.report.roce_frames += 1;
                self.report.cut_frames += u64::from(!whole);
                self.on_roce(Seen { time_ns, bytes, frame: &frame }, whole);
            }
            Err(error) => {
                let Some(rule) = single::rule_of(error) else { return };
                self.report.roce_frames += 1;
                if !whole && bytes.len() < HEAD_LEN {
                    self.report.cut_frames += 1;
                    self.lacks_headers = true;
                } else {
                    self.damaged(rule, time_ns, &error.to_string());
                }
            }
        }
    }

    /// What was found so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Broken rules that were found since the last call, the oldest first; they leave the report's list, not its counts.
    pub fn take_violations(&mut self) -> Vec<Violation> {
        std::mem::take(&mut self.report.violations)
    }

    /// What was found. The capture is over: what was not answered yet is no fault.
    pub fn finish(&mut self) -> Report {
        self.report.directions = self.halves.all.len() as u64;
        self.report.connections = self.halves.joined();
        self.report.clone()
    }

    fn damaged(&mut self, rule: Rule, time_ns: u64, words: &str) {
        let number = self.report.frames;
        match self.options.damage {
            Damage::Breaks => unreadable(&mut self.report, rule, number, time_ns, words),
            Damage::IsLoss => self.report.note(Note::Damaged),
        }
    }

    fn on_roce(&mut self, seen: Seen<'_>, whole: bool) {
        let Seen { bytes, frame, .. } = seen;
        if whole {
            let checks = frame.verify_udp_checksum([bytes]).and_then(|()| frame.verify_icrc(bytes, [bytes]));
            if let Some(rule) = checks.err().and_then(single::rule_of) {
                if self.options.damage == Damage::IsLoss {
                    return self.report.note(Note::Damaged);
                }
                let words = format_args!("{} in {}", rule.words(), frame.info).to_string();
                seen.packet(&mut self.report).broken(rule, format_args!("not so: {words}"));
                return;
            }
        }
        let Options { damage, vantage, .. } = self.options;
        let as_sent = damage == Damage::Breaks || vantage.sees_sending(frame.smac);
        single::judge(&mut seen.packet(&mut self.report), as_sent);
        match frame.info.service {
            Service::Rc | Service::Uc | Service::Xrc => self.on_connected(seen),
            Service::Ud if frame.bth().dest_qpn == Qpn::GSI => self.on_management(bytes, frame),
            _ => {}
        }
    }

    fn on_management(&mut self, bytes: &[u8], frame: &Frame) {
        let mad = bytes.get(frame.payload_offset()..).unwrap_or_default();
        if let Some(made) = self.cm.on_mad(frame.src, frame.dst, mad) {
            let end = |(gid, qpn, psn)| End { gid, qpn, psn };
            self.connect(end(made.active), end(made.passive), made.mtu);
        }
    }

    fn direction(&mut self, key: Key, frame: Option<&Frame>) -> Option<usize> {
        let vantage = self.options.vantage;
        let sees = |half: &mut Half| {
            if let Some(frame) = frame {
                half.sees_sending = vantage.sees_sending(frame.smac);
                half.sees_arriving = vantage.sees_arriving(frame.dmac);
            }
        };
        if let Some(index) = self.halves.find(&key) {
            sees(&mut self.halves.all[index]);
            return Some(index);
        }
        if self.halves.all.len() >= self.options.max_directions {
            self.report.note(Note::TooMany);
            return None;
        }
        let mut half = Half::new(key, false, false);
        sees(&mut half);
        Some(self.halves.insert(half))
    }

    fn on_connected(&mut self, seen: Seen<'_>) {
        let frame = seen.frame;
        let key = Key { src: frame.src, dst: frame.dst, dest: frame.bth().dest_qpn };
        let Some(index) = self.direction(key, Some(frame)) else { return };
        let half = &mut self.halves.all[index];
        half.sport = frame.udp_sport;
        let peer = match frame.info.is_response() {
            true => self.halves.asked_by(index, frame.bth().psn, frame.info.service),
            false => half.peer,
        };
        self.service(index, peer, seen);
        self.path_mtu(index, peer, seen);
        if frame.info.is_response() {
            match peer {
                Some(_) if self.lacks_headers => {}
                Some(peer) => self.on_response(index, peer, seen),
                None => self.report.note(Note::Unpaired),
            }
        } else if frame.info.operation != Operation::Cnp {
            self.on_request(index, peer, seen);
        }
    }

    fn service(&mut self, index: usize, peer: Option<usize>, seen: Seen<'_>) {
        let frame = seen.frame;
        let service = frame.info.service;
        let mut known = self.halves.all[index].service;
        if frame.info.is_response() {
            known = known.or(peer.and_then(|peer| self.halves.all[peer].service));
        }
        if known.is_some_and(|known| known != service) {
            let (info, known) = (frame.info, known.map_or("", Service::name));
            seen.packet(&mut self.report)
                .broken(Rule::Service, format_args!("{info} on a {known} connection"));
        }
        self.halves.all[index].service = known.or(Some(service));
    }

    /// Full packets tell the path MTU; every other one is held against it.
    fn path_mtu(&mut self, index: usize, peer: Option<usize>, seen: Seen<'_>) {
        let frame = seen.frame;
        let len = frame.payload_len() as u32;
        let full = frame.info.payload == PayloadRule::FullMtu;
        match self.mtu(index, peer) {
            Some(mtu) if !frame.info.payload.allows(len, mtu) => {
                // What is wrong at every MTU was told already.
                let told =
                    if full { Mtu::from_bytes(len).is_none() } else { len <= mtu.bytes() || len > 4096 };
                if told {
                    return;
                }
                let words = format_args!("{} with {len} bytes on a path MTU of {mtu}", frame.info);
                seen.packet(&mut self.report).broken(Rule::PayloadLength, words);
            }
            Some(_) => {}
            None if full => {
                let mtu = Mtu::from_bytes(len);
                for index in [Some(index), peer].into_iter().flatten() {
                    let half = &mut self.halves.all[index];
                    half.mtu = mtu;
                    half.requests.advance(mtu);
                }
            }
            None => {}
        }
    }

    fn mtu(&self, index: usize, peer: Option<usize>) -> Option<Mtu> {
        self.halves.all[index].mtu.or(peer.and_then(|peer| self.halves.all[peer].mtu))
    }

    /// What is known of the requests of direction `asking`, whose answers go the way of `answering`.
    fn side(&self, asking: usize, answering: Option<usize>) -> Side {
        let half = &self.halves.all[asking];
        Side {
            mtu: self.mtu(asking, answering),
            sees_sending: half.sees_sending,
            sees_arriving: half.sees_arriving,
            sees_answers: answering.is_some_and(|answering| self.halves.all[answering].sees_arriving),
        }
    }

    fn on_request(&mut self, index: usize, peer: Option<usize>, seen: Seen<'_>) {
        let frame = seen.frame;
        let side = self.side(index, peer);
        let mut packet = seen.packet(&mut self.report);
        let half = &mut self.halves.all[index];
        half.requests.on_request(&mut packet, side);
        if half.answers.fatal.is_some() && side.sees_sending {
            packet.broken(Rule::AfterFatalNak, format_args!("{} from a QP that has failed", frame.info));
        }
        let restarted = half.requests.records.len() == 1 && !half.requests.told;
        if let Some(peer) = peer {
            let answers = &mut self.halves.all[peer].answers;
            if restarted {
                *answers = Default::default();
            }
            if answers.asked_for.is_some_and(|asked| wire::Psn::new(asked as u32) == frame.bth().psn) {
                answers.asked_for = None;
            }
            if answers.refused && side.sees_sending && side.sees_answers {
                packet.broken(Rule::AfterFatalNak, format_args!("{} from a QP that was refused", frame.info));
            }
        }
    }

    fn on_response(&mut self, index: usize, peer: usize, seen: Seen<'_>) {
        let side = self.side(peer, Some(index));
        let ordered = self.halves.all[index].sees_sending;
        let limit = self.options.ack_limit_ns;
        let mut answers = std::mem::take(&mut self.halves.all[index].answers);
        let mut packet = seen.packet(&mut self.report);
        let requests = &mut self.halves.all[peer].requests;
        answers.on_response(&mut packet, requests, side, ordered, limit);
        self.halves.all[index].answers = answers;
    }
}
