//! Plays one rule: sends its packets, makes its calls, judges what comes back. Sans IO, in the caller's time.
//!
//! The caller asks [`Player::poll`] what to do, does it, and tells what arrived: [`Player::on_packet`],
//! [`Player::on_reply`]. Times are nanoseconds of any clock that never goes back.

mod calls;
mod packets;

use crate::device::{CallError, Completion, DeviceCall, QpAttributes, Reply, Side};
use crate::packet::Context;
use crate::script::{Rule, Step, StepKind};
use crate::verdict::{Direction, LoggedPacket, RuleReport, Verdict};
use std::collections::{BTreeMap, VecDeque};
use wire::{Gid, Mac, Qpn};

/// Where the scripted peer and the device are.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The peer's MAC.
    pub mac: Mac,
    /// The MAC that leads to the device.
    pub device_mac: Mac,
    /// The peer's and the device's IPv4 addresses, as GIDs.
    pub v4: Option<(Gid, Gid)>,
    /// The same for IPv6.
    pub v6: Option<(Gid, Gid)>,
    /// Number of the peer's first queue pair; further ones follow. Give each rule numbers of its own, so that what a device
    /// still sends for an earlier rule is not taken for this one's.
    pub first_qpn: Qpn,
    /// Messages that the device's queue pair had counted before: MSNs of scripts are counted from here. 0 for a new one.
    pub first_msn: u32,
}

/// How patient a player is.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How long it waits for a packet, a completion or a state unless the script says how long: nanoseconds.
    pub patience_ns: u64,
    /// How long it listens for more packets at the end of a rule: nanoseconds.
    pub tail_ns: u64,
    /// Silences of scripts are stretched by this, for devices that are slow to err.
    pub stretch: u32,
    /// How often a device is asked again for completions, states and memory: nanoseconds.
    pub ask_ns: u64,
}

impl Default for Settings {
    /// For a device in the same process.
    fn default() -> Self {
        Settings { patience_ns: 1_000_000_000, tail_ns: 2_000_000, stretch: 1, ask_ns: 200_000 }
    }
}

/// What the caller is to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send this frame to the device.
    Transmit(Vec<u8>),
    /// Have the device agent do this, and tell [`Player::on_reply`].
    Call(DeviceCall),
    /// Nothing, until a packet arrives or this time has come.
    Wait(u64),
    /// It is over: ask for the [`report`](Player::report).
    Done,
}

/// What a step came to.
enum Progress {
    /// The next one.
    Next,
    /// The same again, now or at the time that the step has set.
    Again,
    /// First this.
    Act(Action),
    /// These instead.
    Branch(Vec<Step>),
    /// The device does not have it.
    Skip(String),
    /// The rule has failed.
    Fail(String),
}

/// A player of one rule.
pub struct Player {
    rule: Rule,
    peer: Peer,
    settings: Settings,
    context: Context,
    /// Steps to come.
    steps: VecDeque<Step>,
    /// What the present step has done already.
    now: Present,
    inbox: VecDeque<Arrival>,
    completions: BTreeMap<(String, Side), VecDeque<Completion>>,
    attributes: BTreeMap<String, QpAttributes>,
    reply: Option<Result<Reply, CallError>>,
    calling: bool,
    began_ns: Option<u64>,
    /// When the last packet was sent, or the last that was taken came at the earliest: what `after` counts from.
    last_event_ns: u64,
    chosen: Option<String>,
    verdict: Option<(Verdict, String)>,
    by_time: bool,
    log: Vec<LoggedPacket>,
}

/// A packet of the device, and when it came: after the one time, by the other.
#[derive(Clone)]
struct Arrival {
    since_ns: u64,
    at_ns: u64,
    bytes: Vec<u8>,
}

/// How far the present step is.
#[derive(Default)]
struct Present {
    /// When it began; `None` before its first poll.
    began_ns: Option<u64>,
    /// Packets sent or taken, calls made.
    count: u32,
    /// When to ask the device again.
    ask_ns: u64,
    /// Its time is over, and the port was to be looked at once more.
    last_look: bool,
}

impl Player {
    /// A player at the beginning of a rule.
    pub fn new(rule: &Rule, peer: &Peer, settings: Settings) -> Player {
        let mut steps: VecDeque<Step> = rule.steps.iter().cloned().collect();
        let line = steps.back().map_or(rule.place.1, |step| step.line);
        let qps = steps.iter().filter_map(|step| match &step.kind {
            StepKind::Qp(setup) => Some(setup.name.clone()),
            // An XRC SRQ has a completion queue of its own.
            StepKind::Srq(setup) if setup.domain.is_some() => Some(setup.name.clone()),
            _ => None,
        });
        let drains: Vec<Step> = qps.map(|qp| Step { line, kind: StepKind::Drain { qp } }).collect();
        // Every rule ends in silence: what a device says without being asked is a fault of its own.
        steps.push_back(Step {
            line,
            kind: StepKind::Silence(settings.tail_ns / u64::from(settings.stretch.max(1))),
        });
        steps.extend(drains);
        Player {
            rule: rule.clone(),
            peer: peer.clone(),
            settings,
            context: Context {
                device_mac: peer.device_mac,
                peer_mac: peer.mac,
                regions: BTreeMap::new(),
                windows: BTreeMap::new(),
                srqs: BTreeMap::new(),
                qps: BTreeMap::new(),
            },
            steps,
            now: Present::default(),
            inbox: VecDeque::new(),
            completions: BTreeMap::new(),
            attributes: BTreeMap::new(),
            reply: None,
            calling: false,
            began_ns: None,
            last_event_ns: 0,
            chosen: None,
            verdict: None,
            by_time: false,
            log: Vec::new(),
        }
    }

    /// Takes in a frame that arrived after `since_ns`, when the port was looked at last, and by `now_ns`: where a time is judged,
    /// the device has the benefit of the doubt. Frames for others are ignored.
    pub fn on_packet(&mut self, since_ns: u64, now_ns: u64, frame: &[u8]) {
        let Some(qp) = self.addressee(frame) else { return };
        let words = self.words(frame, true, &qp);
        self.log(now_ns, Direction::FromDevice, frame, words);
        self.count_message(frame, &qp);
        self.inbox.push_back(Arrival { since_ns, at_ns: now_ns, bytes: frame.to_vec() });
    }

    /// Takes in the agent's answer to the last [`Action::Call`].
    pub fn on_reply(&mut self, reply: Result<Reply, CallError>) {
        self.reply = Some(reply);
        self.calling = false;
    }

    /// What to do now.
    pub fn poll(&mut self, now_ns: u64) -> Action {
        self.began_ns.get_or_insert(now_ns);
        while self.verdict.is_none() {
            let Some(step) = self.steps.front().cloned() else {
                self.end();
                break;
            };
            if self.calling {
                // The answer is on its way; look again soon.
                return Action::Wait(now_ns + self.settings.ask_ns);
            }
            self.now.began_ns.get_or_insert(now_ns);
            match self.step(now_ns, &step) {
                Progress::Next => self.advance(Vec::new()),
                Progress::Branch(steps) => self.advance(steps),
                Progress::Again => {}
                Progress::Act(action) => {
                    self.calling = matches!(action, Action::Call(_));
                    if let Action::Transmit(frame) = &action {
                        self.last_event_ns = now_ns;
                        self.log_sent(now_ns, &step, frame);
                    }
                    return action;
                }
                Progress::Skip(what) => {
                    self.verdict =
                        Some((Verdict::Skipped, format!("the device does not offer this: {what}")));
                }
                Progress::Fail(why) => {
                    let why = format!("line {}: {why}", step.line);
                    self.verdict = Some((Verdict::Failed, why));
                }
            }
        }
        Action::Done
    }

    /// Goes on to the next step: the first of `steps` if there are any.
    fn advance(&mut self, steps: Vec<Step>) {
        self.now = Present::default();
        self.steps.pop_front();
        for step in steps.into_iter().rev() {
            self.steps.push_front(step);
        }
    }

    /// The account, once [`poll`](Self::poll) said [`Action::Done`]. Before that, the rule counts as failed.
    pub fn report(self) -> RuleReport {
        let (verdict, why) = self.verdict.unwrap_or((Verdict::Failed, "it did not come to its end".into()));
        RuleReport {
            id: self.rule.id,
            title: self.rule.title,
            fact: self.rule.fact,
            verdict,
            why,
            by_time: self.by_time,
            packets: self.log,
        }
    }

    fn step(&mut self, now: u64, step: &Step) -> Progress {
        match &step.kind {
            StepKind::Send(spec) => self.send(spec),
            StepKind::Expect(spec) => self.expect(now, spec),
            StepKind::Silence(length) => self.silence(now, *length),
            StepKind::Wait(length) => self.wait(now, *length),
            StepKind::Either(branches) => self.choose(now, branches),
            other => self.call(now, other),
        }
    }

    /// All steps are done.
    fn end(&mut self) {
        let left =
            self.completions.iter().flat_map(|((qp, side), queue)| queue.iter().map(move |c| (qp, side, c)));
        // What an error ends is told without being asked for, and devices differ in its status (transport 11).
        if let Some((qp, side, left)) = left.clone().find(|(.., left)| left.status == "success") {
            let why = format!("a completion that nobody asked for on the {side:?} side of {qp}: {left:?}");
            self.verdict = Some((Verdict::Failed, why));
            return;
        }
        let chosen = self.chosen.clone().unwrap_or_default();
        self.verdict = Some(match (&self.rule.open, chosen.is_empty()) {
            (Some(open), false) => (Verdict::Open, format!("{chosen}; {open}")),
            (Some(open), true) => (Verdict::Open, open.clone()),
            (None, _) => (Verdict::Passed, chosen),
        });
    }

    fn log(&mut self, now_ns: u64, direction: Direction, frame: &[u8], words: String) {
        let at_ns = now_ns - self.began_ns.unwrap_or(now_ns);
        self.log.push(LoggedPacket { at_ns, direction, frame: frame.to_vec(), words });
    }
}
