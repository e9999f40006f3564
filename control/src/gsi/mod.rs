//! Queue pair 1 of a port, the general services interface: management datagrams in and out (rocev2 facts, CM 1 and 2).
//!
//! Workers bring what came for it ([`worker::Datagram`]); whoever visits the port ([`PortCore::visit_gsi`]) checks Q_Key,
//! P_Key, version and class, and hands on: connection management to [`crate::cm`], questions for counters to `perf.rs`.
//! What is sent goes out as the control thread's frames do; what goes to an address of this port is delivered without a wire.
//!
//! Left out: other classes, and RMPP (messages of several datagrams). They are counted and not answered.

mod counters;
mod perf;
mod send;

pub(crate) use counters::Counter;

use crate::endpoint::PortCore;
use counters::Counters;
use std::collections::VecDeque;
use std::sync::atomic::AtomicU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use wire::mad::{MadHeader, class, method};
use wire::{Addressing, Network, PKey, QKey, Qpn, RoceVersion, Vlan};
use worker::{Datagram, MAD_LEN};

/// A management datagram.
pub(crate) type Mad = [u8; MAD_LEN];

/// A datagram that passed the checks of queue pair 1.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub mad: Mad,
    /// The way back: from the address that it was sent to, to the station that it came from (rocev2 facts, CM 1).
    pub back: Addressing,
}

/// Datagrams taken per visit: then ARP, timers and whoever waits for a lock have their turn.
const PER_VISIT: usize = 256;
/// Datagrams to ourselves that may wait.
const LOOPED: usize = 1024;

/// Queue pair 1 of a port.
#[derive(Debug)]
pub(crate) struct Gsi {
    pub counters: Counters,
    /// Of its packets; nobody checks them.
    psn: AtomicU32,
    looped: Mutex<VecDeque<Received>>,
    performance: Mutex<perf::Cache>,
}

impl Gsi {
    pub fn new() -> Self {
        Gsi {
            counters: Counters::default(),
            psn: AtomicU32::new(crate::endpoint::starting_psn().value()),
            looped: Mutex::default(),
            performance: Mutex::default(),
        }
    }

    fn looped(&self) -> MutexGuard<'_, VecDeque<Received>> {
        self.looped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing that this port sent to itself waits.
    fn loop_is_empty(&self) -> bool {
        self.looped().is_empty()
    }
}

impl PortCore {
    /// Takes what came for queue pair 1, at most so much as a visit takes; messages of
    /// connection management are added to `messages`, questions are answered. True when there was something.
    pub fn visit_gsi(&self, messages: &mut Vec<Received>) -> bool {
        let mut count = 0;
        while count < PER_VISIT {
            let Some(datagram) = self.link.take_mad() else { break };
            count += 1;
            self.gsi.counters.count(Counter::Received);
            match self.check(&datagram) {
                Ok(received) => self.dispatch(received, messages),
                Err(reason) => self.gsi.counters.count(reason),
            }
        }
        while count < PER_VISIT {
            let Some(received) = self.gsi.looped().pop_front() else { break };
            count += 1;
            self.gsi.counters.count(Counter::Received);
            self.dispatch(received, messages);
        }
        count > 0
    }

    /// True when nothing waits for [`visit_gsi`](Self::visit_gsi).
    pub fn gsi_is_quiet(&self) -> bool {
        self.link.mads_is_empty() && self.gsi.loop_is_empty()
    }

    /// rocev2 facts, CM 1: every message is sent with this Q_Key and P_Key, from queue pair 1 to queue pair 1.
    fn check(&self, datagram: &Datagram) -> Result<Received, Counter> {
        let Datagram { frame, deth, vlan, mad } = datagram;
        match () {
            _ if deth.qkey != QKey::GSI => Err(Counter::QKey),
            _ if !PKey::DEFAULT.matches(frame.bth().pkey) => Err(Counter::PKey),
            _ if deth.src_qpn != Qpn::GSI => Err(Counter::SourceQp),
            _ => {
                let version = if frame.network == Network::V1 { RoceVersion::V1 } else { RoceVersion::V2 };
                let vlan = vlan.filter(|tag| tag.vid != 0).map(|tag| Vlan::new(tag.pcp, tag.vid));
                let back = Addressing {
                    version,
                    smac: self.facts.mac,
                    dmac: frame.smac,
                    vlan,
                    src: frame.dst,
                    dst: frame.src,
                    traffic_class: frame.traffic_class,
                    flow_label: frame.flow_label,
                    hop_limit: self.hop_limit(version),
                    udp_sport: wire::udp_sport_of_qpn(Qpn::GSI),
                };
                Ok(Received { mad: *mad, back })
            }
        }
    }

    fn dispatch(&self, received: Received, messages: &mut Vec<Received>) {
        match self.class_of(&received.mad) {
            Ok(class::CONNECTION) => {
                self.gsi.counters.count(Counter::Cm);
                messages.push(received);
            }
            Ok(_) => self.answer_performance(&received),
            Err(reason) => self.gsi.counters.count(reason),
        }
    }

    /// The class, when it is one that is served here, with a method that asks for something.
    fn class_of(&self, mad: &Mad) -> Result<u8, Counter> {
        let header = MadHeader::parse(mad).ok_or(Counter::Version)?;
        if header.base_version != 1 {
            return Err(Counter::Version);
        }
        match (header.class, header.method) {
            (class::CONNECTION, method::SEND) => match header.class_version {
                2 if wire::mad::MessageKind::from_attribute(header.attribute_id).is_none() => {
                    Err(Counter::Attribute)
                }
                2 => Ok(header.class),
                _ => Err(Counter::Version),
            },
            (class::PERFORMANCE, method::GET | method::SET) => Ok(header.class),
            (class::CONNECTION | class::PERFORMANCE, _) => Err(Counter::Method),
            _ => Err(Counter::Class),
        }
    }
}
