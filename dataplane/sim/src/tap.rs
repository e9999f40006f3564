//! What is seen on the links of a world: the trace, what was harmed, and signs that a retry path was taken.

use crate::endpoint::EndpointId;
use check::{Checker, Damage, End, Options, Rule, Vantage};
use engine::Nanos;
use std::collections::BTreeMap;
use wire::{Frame, Mac, Mtu, Operation, Psn, Qpn, Reth};

/// A frame at one moment of its way.
#[derive(Clone, Debug)]
pub struct Seen {
    /// When.
    pub at: Nanos,
    /// Where.
    pub endpoint: EndpointId,
    /// It arrived there; otherwise it left.
    pub arrived: bool,
    /// What the impairment stage there did to it, empty for nothing.
    pub fate: &'static str,
    /// The bytes: as they left, or as they arrived.
    pub frame: Vec<u8>,
}

/// Signs that something was repeated, as only the wire shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// READ requests that begin in the middle of an earlier one.
    pub read_restarts: u64,
    /// Atomic acknowledgements that went out before.
    pub atomic_replays: u64,
    /// Acknowledgements with a NAK code, by everybody.
    pub naks: u64,
}

/// Everything that looks at frames.
#[derive(Default)]
pub(crate) struct Taps {
    /// The trace, when somebody wants it.
    pub trace: Option<Vec<Seen>>,
    /// Frames to a QP that a link did not carry once, whole and in time.
    harmed: BTreeMap<u32, u32>,
    pub signs: Signs,
    /// READs by destination QP: first PSN and length of the latest.
    reads: BTreeMap<u32, Vec<(Psn, Reth)>>,
    atomics: BTreeMap<(u32, u32), ()>,
    path_mtu: BTreeMap<u32, u32>,
    /// Checkers of the protocol, each at the port of one endpoint: it sees what leaves there and what arrives there.
    checkers: Vec<(EndpointId, Checker)>,
    /// Rules that are broken on purpose.
    left_out: Vec<Rule>,
}

/// So many frames make a trace that nobody reads.
const TRACE_MOST: usize = 20_000;

impl Taps {
    /// From now on the checker of the protocol looks at every frame that leaves this endpoint, and at every one that reaches
    /// it. Broken ones count as lost: links may do that.
    pub fn check(&mut self, endpoint: EndpointId, mac: Mac) {
        let vantage = Vantage::Endpoint(mac);
        let options = Options { vantage, damage: Damage::IsLoss, ..Options::default() };
        self.checkers.push((endpoint, Checker::new(options)));
    }

    /// This rule is going to be broken on purpose.
    pub fn leave_out(&mut self, rule: Rule) {
        self.left_out.push(rule);
    }

    /// Two QPs are connected, anew perhaps.
    pub fn connect(&mut self, one: (EndpointId, End), other: (EndpointId, End), mtu: Mtu) {
        for (at, checker) in &mut self.checkers {
            if *at == one.0 || *at == other.0 {
                checker.connect(one.1, other.1, Some(mtu));
            }
        }
    }

    /// An endpoint sends a frame, or takes one off the wire.
    pub fn passes(&mut self, endpoint: EndpointId, now: Nanos, frame: &[u8]) {
        if let Some((_, checker)) = self.checkers.iter_mut().find(|(at, _)| *at == endpoint) {
            checker.on_frame(now, frame);
        }
    }

    /// The first rule that was broken, in words.
    pub fn broken_rule(&mut self) -> Option<String> {
        let Taps { checkers, left_out, .. } = self;
        let broken = checkers.iter_mut().find_map(|(at, checker)| {
            let violations = checker.take_violations();
            Some((*at, violations.into_iter().find(|broken| !left_out.contains(&broken.rule))?))
        });
        let (EndpointId(host), violation) = broken?;
        Some(format!("a rule of the protocol was broken, as host {host} sees it: {violation}"))
    }

    /// What was seen before a QP was connected anew does not count for it any more.
    pub fn forget(&mut self, qpn: Qpn, mtu: u32) {
        self.harmed.remove(&qpn.value());
        self.reads.remove(&qpn.value());
        self.atomics.retain(|&(qp, _), ()| qp != qpn.value());
        self.path_mtu.insert(qpn.value(), mtu);
    }

    pub fn harmed(&self, qpn: Qpn) -> u32 {
        self.harmed.get(&qpn.value()).copied().unwrap_or(0)
    }

    /// A frame was harmed that was to go to its QP whole.
    pub fn harm(&mut self, frame: &[u8]) {
        if let Ok(parsed) = Frame::parse(frame, frame.len()) {
            *self.harmed.entry(parsed.bth().dest_qpn.value()).or_default() += 1;
        }
    }

    /// A frame leaves or arrives, as it is and with what the stage there did to it.
    pub fn see(&mut self, seen: Seen) {
        if !seen.arrived {
            self.look(&seen.frame);
        }
        if let Some(trace) = &mut self.trace
            && trace.len() < TRACE_MOST
        {
            trace.push(seen);
        }
    }

    fn look(&mut self, bytes: &[u8]) {
        let Ok(frame) = Frame::parse(bytes, bytes.len()) else { return };
        let (qp, psn) = (frame.bth().dest_qpn.value(), frame.bth().psn);
        match frame.info.operation {
            Operation::ReadRequest => {
                let Some(reth) = frame.ext::<Reth>(bytes) else { return };
                let mtu = u64::from(self.path_mtu.get(&qp).copied().unwrap_or(1024));
                let reads = self.reads.entry(qp).or_default();
                let inside = reads.iter().any(|(first, read)| {
                    let skipped = i64::from(psn.distance_from(*first));
                    skipped > 0
                        && reth.va == read.va + skipped as u64 * mtu
                        && reth.rkey == read.rkey
                        && u64::from(reth.dma_len) + skipped as u64 * mtu == u64::from(read.dma_len)
                });
                self.signs.read_restarts += u64::from(inside);
                if !inside {
                    reads.push((psn, reth));
                }
            }
            Operation::AtomicAcknowledge => {
                let again = self.atomics.insert((qp, psn.value()), ()).is_some();
                self.signs.atomic_replays += u64::from(again);
            }
            Operation::Acknowledge => {
                let aeth = frame.ext::<wire::Aeth>(bytes);
                let nak = aeth.is_some_and(|aeth| matches!(aeth.syndrome, wire::Syndrome::Nak(_)));
                self.signs.naks += u64::from(nak);
            }
            _ => {}
        }
    }
}
