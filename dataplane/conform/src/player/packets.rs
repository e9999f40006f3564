//! The steps that are about packets.

use super::{Action, Arrival, Player, Progress};
use crate::packet::matcher::{self, Arrived};
use crate::packet::{QpContext, build, describe};
use crate::script::{Branch, ExpectSpec, SendSpec, Step, StepKind};
use crate::verdict::Direction;
use wire::Frame;

impl Player {
    pub(super) fn send(&mut self, spec: &SendSpec) -> Progress {
        if self.now.count == spec.times {
            return Progress::Next;
        }
        let Some(qp) = self.context.qps.get(&spec.qp) else { return no_qp(&spec.qp) };
        let frame = build::frame(spec, &self.context, qp, self.now.count);
        self.now.count += 1;
        Progress::Act(Action::Transmit(frame))
    }

    pub(super) fn expect(&mut self, now: u64, spec: &ExpectSpec) -> Progress {
        let Some(qp) = self.context.qps.get(&spec.qp).cloned() else { return no_qp(&spec.qp) };
        while self.now.count < spec.times {
            let Some(arrival) = self.inbox.front().cloned() else {
                let deadline = self.deadline(spec.within_ns);
                if let Some(look) = self.look(now, deadline) {
                    return look;
                }
                let waited = (deadline - self.now.began_ns.unwrap_or(deadline)) / 1_000_000;
                return Progress::Fail(format!(
                    "{} was expected, and nothing came for {waited} ms",
                    self.wanted(spec, &qp)
                ));
            };
            // What lies in the inbox was parsed when it came.
            let bytes = &arrival.bytes;
            let Some(arrived) = Arrived::parse(bytes) else {
                return Progress::Fail("a packet went bad".into());
            };
            if let Some(what) = matcher::unlawful(&arrived, &self.context, &qp) {
                return Progress::Fail(format!("{}: {what}", self.words(bytes, true, &qp)));
            }
            if spec.coalesced && matcher::is_earlier_ack(&arrived, spec, &self.context, &qp) {
                self.inbox.pop_front();
                continue;
            }
            if let Some(what) = matcher::mismatch(&arrived, spec, self.now.count, &self.context, &qp) {
                let words = self.words(bytes, true, &qp);
                return Progress::Fail(format!(
                    "{} was expected, but {words} came: {what}",
                    self.wanted(spec, &qp)
                ));
            }
            if let Some(why) = self.too_soon_or_late(&arrival, spec) {
                self.by_time = true;
                return Progress::Fail(format!("{} came {why}", self.words(bytes, true, &qp)));
            }
            self.inbox.pop_front();
            self.last_event_ns = self.last_event_ns.max(arrival.since_ns);
            self.now.count += 1;
        }
        Progress::Next
    }

    /// Waits for a time; when it has come, looks for packets once more: nobody may have looked shortly before. Then `None`.
    fn look(&mut self, now: u64, end: u64) -> Option<Progress> {
        if now >= end && std::mem::replace(&mut self.now.last_look, true) {
            return None;
        }
        Some(Progress::Act(Action::Wait(end.max(now))))
    }

    /// Whatever the exact time was at which it came: nobody knows it better than between two looks at the port.
    fn too_soon_or_late(&self, arrival: &Arrival, spec: &ExpectSpec) -> Option<String> {
        let (earliest, latest) = (arrival.since_ns, arrival.at_ns);
        let began = self.now.began_ns.unwrap_or(latest);
        let since = latest.saturating_sub(self.last_event_ns);
        if since < spec.after_ns {
            return Some(format!(
                "{} µs after the last packet, not before {}",
                since / 1000,
                spec.after_ns / 1000
            ));
        }
        let late = spec
            .within_ns
            .map(|within| within * u64::from(self.settings.stretch))
            .filter(|&within| earliest.saturating_sub(began) > within)?;
        Some(format!("{} µs late: {} µs were allowed", (earliest - began - late) / 1000, late / 1000))
    }

    pub(super) fn deadline(&self, within_ns: Option<u64>) -> u64 {
        let patience = match within_ns {
            Some(within) => within * u64::from(self.settings.stretch),
            None => self.settings.patience_ns,
        };
        self.now.began_ns.unwrap_or(0) + patience
    }

    pub(super) fn silence(&mut self, now: u64, length: u64) -> Progress {
        let end = self.end_of(now, length);
        // What came when it was over, or may have, is the next step's.
        if let Some(Arrival { bytes, .. }) = self.inbox.front().filter(|arrival| arrival.at_ns < end) {
            let words = describe::describe(bytes);
            let words = match self.addressee(bytes) {
                Some(qp) => self.words(bytes, true, &qp),
                None => words,
            };
            return Progress::Fail(format!("silence was expected, but {words} came"));
        }
        self.look(now, end).unwrap_or(Progress::Next)
    }

    pub(super) fn wait(&mut self, now: u64, length: u64) -> Progress {
        let end = self.end_of(now, length);
        self.inbox.retain(|arrival| arrival.at_ns >= end);
        self.look(now, end).unwrap_or(Progress::Next)
    }

    fn end_of(&self, now: u64, length: u64) -> u64 {
        self.now.began_ns.unwrap_or(now) + length * u64::from(self.settings.stretch)
    }

    /// Takes the branch that the next packet fits, or one that begins with silence when none comes.
    pub(super) fn choose(&mut self, now: u64, branches: &[Branch]) -> Progress {
        let fits = |branch: &&Branch| match (branch.steps.first().map(|step| &step.kind), self.inbox.front())
        {
            (Some(StepKind::Expect(spec)), Some(Arrival { bytes, .. })) => {
                let qp = self.context.qps.get(&spec.qp);
                let arrived = Arrived::parse(bytes);
                qp.zip(arrived).is_some_and(|(qp, arrived)| {
                    matcher::mismatch(&arrived, spec, 0, &self.context, qp).is_none()
                })
            }
            _ => false,
        };
        let silent = branches.iter().find_map(|branch| match branch.steps.first()?.kind {
            StepKind::Silence(length) => Some((branch, length * u64::from(self.settings.stretch))),
            _ => None,
        });
        let began = self.now.began_ns.unwrap_or(now);
        let deadline = began + silent.map_or(self.settings.patience_ns, |(_, length)| length);
        let chosen = match branches.iter().find(fits) {
            Some(branch) => branch,
            None if self.inbox.is_empty() && !self.now.last_look => {
                self.now.last_look = now >= deadline;
                return Progress::Act(Action::Wait(deadline.max(now)));
            }
            None => match silent {
                Some((branch, _)) if self.inbox.iter().all(|arrival| arrival.at_ns >= deadline) => branch,
                _ => return Progress::Fail(self.none_fits(branches)),
            },
        };
        let name = &chosen.name;
        self.chosen =
            Some(self.chosen.take().map_or(name.clone(), |before| format!("{before}, then {name}")));
        Progress::Branch(chosen.steps.clone())
    }

    fn none_fits(&self, branches: &[Branch]) -> String {
        let names: Vec<&str> = branches.iter().map(|branch| branch.name.as_str()).collect();
        let came = self.inbox.front().map_or("nothing".into(), |Arrival { bytes, .. }| {
            match self.addressee(bytes) {
                Some(qp) => self.words(bytes, true, &qp),
                None => describe::describe(bytes),
            }
        });
        format!("one of these was expected: {}; but {came} came", names.join("; "))
    }

    /// The queue pair that a frame of the device is for.
    pub(super) fn addressee(&self, bytes: &[u8]) -> Option<QpContext> {
        let frame = Frame::parse(bytes, bytes.len()).ok()?;
        self.context.qps.values().find(|qp| qp.peer_qpn == frame.bth().dest_qpn).cloned()
    }

    pub(super) fn words(&self, bytes: &[u8], from_device: bool, qp: &QpContext) -> String {
        describe::words(bytes, describe::first_of(bytes, from_device, qp))
    }

    fn wanted(&self, spec: &ExpectSpec, qp: &QpContext) -> String {
        let mut words = match spec.opcode {
            crate::script::OpcodeSpec::Any => "a packet".to_owned(),
            opcode => build::opcode(opcode, qp.service).to_string(),
        };
        for (field, cond) in &spec.fields {
            let first = if self.is_response(spec, qp) { qp.peer_psn } else { qp.device_psn };
            words += &format!(" {} {}", field.name(), self.context.words(*field, cond, first));
        }
        if spec.times > 1 {
            words += &format!(" (number {} of {})", self.now.count + 1, spec.times);
        }
        words
    }

    fn is_response(&self, spec: &ExpectSpec, qp: &QpContext) -> bool {
        build::opcode(spec.opcode, qp.service).info().is_some_and(|info| info.is_response())
    }

    pub(super) fn log_sent(&mut self, now: u64, step: &Step, frame: &[u8]) {
        let StepKind::Send(spec) = &step.kind else { return };
        let words = match self.context.qps.get(&spec.qp) {
            Some(qp) => self.words(frame, false, qp),
            None => describe::describe(frame),
        };
        self.log(now, Direction::ToDevice, frame, words);
    }

    /// Counts the messages of the device that have been seen whole.
    pub(super) fn count_message(&mut self, bytes: &[u8], qp: &QpContext) {
        let Ok(frame) = Frame::parse(bytes, bytes.len()) else { return };
        let newer = qp.newest.is_none_or(|newest| newest.is_before(frame.bth().psn));
        if !frame.info.is_request() || !newer {
            return;
        }
        if let Some(known) = self.context.qps.values_mut().find(|known| known.peer_qpn == qp.peer_qpn) {
            known.newest = Some(frame.bth().psn);
            known.msn += u32::from(frame.info.position.ends());
        }
    }
}

fn no_qp(name: &str) -> Progress {
    Progress::Fail(format!("the queue pair {name} could not be made"))
}
