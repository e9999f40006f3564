//! Plays rules one after the other over a raw port.

use super::report;
use conform::{Action, CallError, DeviceCall, Peer, Player, Reply, Rule, RuleReport, Settings, Verdict};
use rockhopper::RawPort;
use std::time::Duration;
use wire::{Gid, Mac, Qpn};

/// The device under test, as far as it is not packets.
pub trait Target {
    /// Has its agent do something; `idle` is called while that takes time.
    fn call(&mut self, call: &DeviceCall, idle: &mut dyn FnMut()) -> Result<Reply, CallError>;
    /// Moves the device's packets, if that is this program's business; whether there was something to do.
    fn drive(&mut self) -> bool;
    /// What it can do, by the names that rules need.
    fn offers(&self) -> &[String];
    /// Lets time pass, `most` at most: nothing happens.
    fn rest(&mut self, most: Duration) {
        std::thread::sleep(REST.min(most));
    }
}

/// Where both ends are.
pub struct Place {
    pub device_mac: Mac,
    pub v4: Option<(Gid, Gid)>,
    pub v6: Option<(Gid, Gid)>,
}

/// How long to rest when nothing happens: shorter than any time that a rule is about.
pub const REST: Duration = Duration::from_micros(20);
/// Longer pauses than this, of a busy machine, keep the peer from playing its part: no rule asks for an answer so soon.
const HELD_UP: Duration = Duration::from_millis(4);
/// How often a rule is played again that failed for want of time.
const AGAIN: u32 = 3;
/// The peer's queue pairs: numbers that a device is not likely to give.
pub const FIRST_QPN: u32 = 0xC0_0000;
/// Queue pairs that a rule may have.
const QPNS_PER_RULE: u32 = 16;

/// Plays rules against a target.
pub struct Runner<'a, T: Target> {
    pub port: &'a mut RawPort,
    pub target: &'a mut T,
    pub place: Place,
    pub settings: Settings,
    /// The longest time of the last rule in which the port was not looked at.
    pub held_up_ns: u64,
}

impl<T: Target> Runner<'_, T> {
    /// Plays a rule; `index` keeps its queue pairs apart from those of others. What failed by its times only, or while this program
    /// was held up and so did not play its part, is played again.
    pub fn play(&mut self, rule: &Rule, index: usize) -> RuleReport {
        let mut again = 0;
        loop {
            let report = self.play_once(rule, index);
            let excuse = report.by_time || self.held_up_ns > HELD_UP.as_nanos() as u64;
            if report.verdict != Verdict::Failed || !excuse || again == AGAIN {
                return report;
            }
            again += 1;
        }
    }

    fn play_once(&mut self, rule: &Rule, index: usize) -> RuleReport {
        self.play_as(rule, Qpn::new(FIRST_QPN + index as u32 * QPNS_PER_RULE), 0)
    }

    /// Plays a rule once as a peer with this queue pair, to a device that has counted so many messages before.
    pub fn play_as(&mut self, rule: &Rule, first_qpn: Qpn, first_msn: u32) -> RuleReport {
        self.held_up_ns = 0;
        if let Some(missing) = rule.needs.iter().find(|need| !self.target.offers().contains(need)) {
            let why = format!("the device does not offer {missing}");
            return report::empty(rule, Verdict::Skipped, why);
        }
        if let Err(why) = self.call(&DeviceCall::Reset, &mut Vec::new()) {
            return report::empty(
                rule,
                Verdict::Failed,
                format!("the device could not be set back: {why:?}"),
            );
        }
        let peer = Peer {
            mac: self.port.mac(),
            device_mac: self.place.device_mac,
            v4: self.place.v4,
            v6: self.place.v6,
            first_qpn,
            first_msn,
        };
        let mut player = Player::new(rule, &peer, self.settings);
        let mut frames = Vec::new();
        // When the port was looked at last: what is found was not there then.
        let mut looked_ns = self.port.now_ns();
        loop {
            match player.poll(self.port.now_ns()) {
                Action::Done => return player.report(),
                Action::Transmit(frame) => {
                    self.transmit(&frame);
                }
                Action::Call(call) => {
                    let reply = self.call(&call, &mut frames);
                    self.hand_over(&mut player, &mut frames, looked_ns);
                    player.on_reply(reply);
                }
                Action::Wait(until) => {
                    let busy = self.target.drive();
                    let before = self.port.now_ns();
                    self.port.receive(&mut frames);
                    self.held_up_ns = self.held_up_ns.max(before.saturating_sub(looked_ns));
                    let idle = frames.is_empty() && !busy;
                    let now = self.hand_over(&mut player, &mut frames, looked_ns);
                    looked_ns = before;
                    if idle && now < until {
                        self.target.rest(Duration::from_nanos(until - now));
                    }
                }
            }
        }
    }

    /// Gives the player what has arrived since the port was looked at before; the time it is now.
    fn hand_over(&self, player: &mut Player, frames: &mut Vec<Vec<u8>>, since_ns: u64) -> u64 {
        let now = self.port.now_ns();
        frames.drain(..).for_each(|frame| player.on_packet(since_ns, now, &frame));
        now
    }

    /// Meanwhile the port is looked after: the device may have to ask for the peer's MAC before it can answer.
    fn call(&mut self, call: &DeviceCall, frames: &mut Vec<Vec<u8>>) -> Result<Reply, CallError> {
        let port = &mut *self.port;
        self.target.call(call, &mut || {
            port.receive(frames);
            std::thread::sleep(REST);
        })
    }

    /// A full ring is emptied by the device; a frame that still does not go is lost, as on any link.
    fn transmit(&mut self, frame: &[u8]) {
        for _ in 0..1000 {
            if self.port.send(frame) {
                return;
            }
            self.target.drive();
            self.target.rest(REST);
        }
    }
}
