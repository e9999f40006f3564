//! Plays rules one after the other over a raw port.

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
}

/// Where both ends are.
pub struct Place {
    pub device_mac: Mac,
    pub v4: Option<(Gid, Gid)>,
    pub v6: Option<(Gid, Gid)>,
}

/// How long to rest when nothing happens: shorter than any time that a rule is about.
const REST: Duration = Duration::from_micros(20);
/// The peer's queue pairs: numbers that a device is not likely to give.
const FIRST_QPN: u32 = 0xC0_0000;
/// Queue pairs that a rule may have.
const QPNS_PER_RULE: u32 = 16;

/// Plays rules against a target.
pub struct Runner<'a, T: Target> {
    pub port: &'a mut RawPort,
    pub target: &'a mut T,
    pub place: Place,
    pub settings: Settings,
}

impl<T: Target> Runner<'_, T> {
    /// Plays a rule; `index` keeps its queue pairs apart from those of others.
    pub fn play(&mut self, rule: &Rule, index: usize) -> RuleReport {
        if let Some(missing) = rule.needs.iter().find(|need| !self.target.offers().contains(need)) {
            let why = format!("the device does not offer {missing}");
            return report(rule, Verdict::Skipped, why);
        }
        if let Err(why) = self.call(&DeviceCall::Reset, &mut Vec::new()) {
            return report(rule, Verdict::Failed, format!("the device could not be set back: {why:?}"));
        }
        let peer = Peer {
            mac: self.port.mac(),
            device_mac: self.place.device_mac,
            v4: self.place.v4,
            v6: self.place.v6,
            first_qpn: Qpn::new(FIRST_QPN + index as u32 * QPNS_PER_RULE),
        };
        let mut player = Player::new(rule, &peer, self.settings);
        let mut frames = Vec::new();
        loop {
            match player.poll(self.port.now_ns()) {
                Action::Done => return player.report(),
                Action::Transmit(frame) => {
                    self.transmit(&frame);
                }
                Action::Call(call) => {
                    let reply = self.call(&call, &mut frames);
                    let now = self.port.now_ns();
                    frames.drain(..).for_each(|frame| player.on_packet(now, &frame));
                    player.on_reply(reply);
                }
                Action::Wait(until) => {
                    let busy = self.target.drive();
                    self.port.receive(&mut frames);
                    let now = self.port.now_ns();
                    if frames.is_empty() && !busy && now < until {
                        std::thread::sleep(REST.min(Duration::from_nanos(until - now)));
                    }
                    frames.drain(..).for_each(|frame| player.on_packet(now, &frame));
                }
            }
        }
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
            std::thread::sleep(REST);
        }
    }
}

fn report(rule: &Rule, verdict: Verdict, why: String) -> RuleReport {
    RuleReport {
        id: rule.id.clone(),
        title: rule.title.clone(),
        fact: rule.fact.clone(),
        verdict,
        why,
        packets: Vec::new(),
    }
}
