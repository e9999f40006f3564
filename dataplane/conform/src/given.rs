//! A queue pair that is there already, set up by somebody else: no agent makes objects or looks at them, so only rules can be played
//! that send requests and judge what comes back.

use crate::script::{OpcodeSpec, QpSetup, Rule, Step, StepKind};
use wire::{Position, Qpn, Service};

/// A connected RC queue pair of the device, in RTR or RTS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenQp {
    /// Its number.
    pub qpn: Qpn,
    /// The number that it was given for its peer: ours.
    pub peer_qpn: Qpn,
    /// The PSN that it expects next, 24 bits.
    pub psn: u32,
    /// Messages that it has counted, 24 bits.
    pub msn: u32,
    /// Its path MTU in bytes.
    pub mtu: u32,
    /// True when it is connected over IPv6.
    pub v6: bool,
    /// Its RNR timer code, if that is known.
    pub rnr_timer: Option<u8>,
    /// READs and atomics that it serves at a time, if that is known.
    pub slots: Option<u8>,
    /// Memory that its peer may write and read, and use for atomics.
    pub memory: Option<GivenMemory>,
}

/// Memory that was registered by somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenMemory {
    /// Address of its first byte.
    pub addr: u64,
    /// Its key for peers.
    pub rkey: u32,
    /// Bytes.
    pub len: u64,
}

/// A rule for a queue pair that is there: with what packets can show only.
#[derive(Clone, Debug)]
pub struct GivenRule {
    /// What is left of it.
    pub rule: Rule,
    /// It says whether the queue pair works on at its end, or is in ERROR and silent: to be found out by asking it.
    pub works_on: Option<bool>,
    /// It also looks whether memory is untouched, which nobody does here.
    pub unseen: bool,
}

impl Rule {
    /// This rule for a queue pair that is there. Its memory is taken to be zeros.
    ///
    /// Errors: why it cannot be played on that, in words behind "it".
    pub fn on(&self, given: &GivenQp) -> Result<GivenRule, String> {
        let mut rule = self.clone();
        let (mut works_on, mut unseen) = (None, false);
        rule.steps.retain(|step| match &step.kind {
            StepKind::State { states, .. } if states.len() == 1 => match states[0].as_str() {
                "error" => {
                    works_on = Some(false);
                    false
                }
                "rts" => {
                    works_on = Some(true);
                    false
                }
                _ => true,
            },
            // That nothing was written is the smaller half of a refusal; that something was is the whole of another rule.
            StepKind::Memory { data, .. } if data.bytes().iter().all(|&byte| byte == 0) => {
                unseen = true;
                false
            }
            _ => true,
        });
        let cut = any(&self.steps, &is_cut);
        let mut qps = 0;
        for step in &mut rule.steps {
            if let StepKind::Qp(setup) = &mut step.kind {
                qps += 1;
                if qps > 1 {
                    return Err("needs two queue pairs".into());
                }
                fits(setup, given, cut)?;
                setup.attributes.peer_psn = given.psn;
                setup.attributes.mtu = given.mtu;
                setup.v6 = given.v6;
            }
        }
        match obstacle(&rule.steps, given) {
            Some(what) => Err(what),
            None if rule.needs.iter().any(|need| need == "flush" || need == "atomic_write") => {
                Err("needs what only an agent can tell of the device".into())
            }
            None => {
                rule.needs.clear();
                Ok(GivenRule { rule, works_on, unseen })
            }
        }
    }
}

/// Whether a queue pair is what a rule asks for.
fn fits(setup: &QpSetup, given: &GivenQp, cut: bool) -> Result<(), String> {
    if setup.service != Service::Rc {
        return Err("needs a queue pair of another service".into());
    }
    let wishes = &setup.attributes;
    for name in &setup.given {
        let (fits, what) = match name.as_str() {
            // Of the half that asks.
            "device_psn" | "reads" | "timeout" | "retry" | "rnr_retry" => (true, ""),
            "mtu" => (wishes.mtu == given.mtu, "needs another path MTU"),
            "slots" => {
                (given.slots == Some(wishes.slots), "needs another number of slots: say it by --slots")
            }
            "rnr_timer" => {
                (given.rnr_timer == Some(wishes.rnr_timer), "needs another RNR timer: say it by --rnr-timer")
            }
            "ip" => (setup.v6 == given.v6, "needs the other version of IP"),
            "peer_psn" => (false, "begins at a PSN of its own choice"),
            _ => (false, "needs a queue pair that is made for it"),
        };
        if !fits {
            return Err(what.into());
        }
    }
    // The lengths of what is cut follow from the path MTU, also where the rule leaves it to the default.
    if (cut || given.mtu < wishes.mtu) && wishes.mtu != given.mtu {
        return Err("needs another path MTU".into());
    }
    Ok(())
}

/// The first step that takes more than packets.
fn obstacle(steps: &[Step], given: &GivenQp) -> Option<String> {
    steps.iter().find_map(|step| {
        let what = match &step.kind {
            StepKind::Qp(_) | StepKind::Send(_) | StepKind::Expect(_) => return None,
            StepKind::Silence(_) | StepKind::Wait(_) => return None,
            StepKind::Either(branches) => {
                return branches.iter().find_map(|branch| obstacle(&branch.steps, given));
            }
            StepKind::Region(region, fill) => match given.memory {
                None => "needs memory: give some by --va, --rkey and --len",
                // A packet of zeros is all that is spent on its cleaning.
                Some(memory) if memory.len.min(given.mtu.into()) < region.len => {
                    "needs more memory than there is, or than one packet cleans"
                }
                Some(_) if region.fast || region.pd != 0 || fill.is_some() || !is_open(&region.access) => {
                    "needs memory that is made for it"
                }
                Some(_) => return None,
            },
            StepKind::Receive { .. } => "needs a receive, which only an agent can post",
            StepKind::Post { .. } => "has the device ask, which only an agent can make it do",
            StepKind::State { .. } | StepKind::Complete(_) | StepKind::NoCompletion { .. } => {
                "looks at the device's side, which only an agent can"
            }
            StepKind::Memory { .. } => "looks at the device's memory, which only an agent can",
            _ => "needs an agent beside the device",
        };
        Some(what.to_owned())
    })
}

/// All rights of peers.
fn is_open(access: &[String]) -> bool {
    ["remote_write", "remote_read", "remote_atomic"]
        .iter()
        .all(|right| access.iter().any(|known| known == right))
}

fn any(steps: &[Step], holds: &dyn Fn(&StepKind) -> bool) -> bool {
    steps.iter().any(|step| match &step.kind {
        StepKind::Either(branches) => branches.iter().any(|branch| any(&branch.steps, holds)),
        kind => holds(kind),
    })
}

/// A packet of a message that is cut at the path MTU.
fn is_cut(kind: &StepKind) -> bool {
    let opcode = match kind {
        StepKind::Send(spec) => spec.opcode,
        StepKind::Expect(spec) => spec.opcode,
        _ => return false,
    };
    matches!(opcode, OpcodeSpec::Own(_, position) if position != Position::Only)
}
