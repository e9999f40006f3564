//! A worker's part of one port: queues, pool, engine, and what is under way between them.

use crate::address::AddressSet;
use crate::config::{LaneConfig, SetupError};
use crate::counters::LaneCounters;
use crate::flows::Flows;
use crate::group::Groups;
use crate::handoff::Moves;
use crate::impaired::Impaired;
use crate::lend::{LENDING_ROOM, Lending};
use crate::link::PortLink;
use crate::mad::Gate;
use crate::rx::Received;
use crate::tx::Outgoing;
use crate::waker::Waker;
use dpdk::{RxQueue, TxQueue};
use engine::engine::EngineConfig;
use engine::{Engine, Nanos};
use memory::HostMemory;
use std::sync::Arc;
use wire::{MAX_OVERHEAD, Mtu};

#[derive(Debug)]
pub(crate) struct Lane {
    pub link: Arc<PortLink>,
    /// This worker's number on the port.
    pub index: usize,
    pub rx: RxQueue,
    pub tx: TxQueue,
    pub engine: Engine<HostMemory>,
    pub config: EngineConfig,
    pub max_mtu: Mtu,
    /// Change it by [`set_addresses`](Self::set_addresses).
    pub addresses: AddressSet,
    pub flows: Flows,
    pub groups: Groups,
    pub gate: Gate,
    pub received: Option<Box<Received>>,
    pub outgoing: Outgoing,
    pub moves: Moves,
    pub counters: LaneCounters,
    pub impaired: Option<Box<Impaired>>,
}

impl Lane {
    pub fn new(config: LaneConfig, waker: &Arc<Waker>) -> Result<Lane, SetupError> {
        let needed = MAX_OVERHEAD + config.max_mtu.bytes() as usize;
        let room = usize::from(config.pool.data_room());
        if needed > room {
            return Err(SetupError::SmallBuffers { mtu: config.max_mtu.bytes(), needed, room });
        }
        config.link.enter(config.index, waker)?;
        // Impairments change bytes of frames, which would be those of the application.
        let lending =
            config.lending.filter(|pool| config.impair.is_none() && pool.data_room() >= LENDING_ROOM);
        let (in_one, stay) = (config.tx.passes_on(), config.link.config().workers == 1);
        let lending = lending.map(|pool| Lending::new(pool, &config.memory, in_one, stay));
        Ok(Lane {
            moves: Moves::new(config.link.config()),
            link: config.link,
            index: config.index,
            rx: config.rx,
            tx: config.tx,
            impaired: config.impair.map(|stage| Box::new(Impaired::new(stage, Arc::clone(&config.pool)))),
            outgoing: Outgoing::new(config.pool, config.memory.clone(), lending),
            engine: Engine::new(config.engine, config.memory, config.events),
            config: config.engine,
            max_mtu: config.max_mtu,
            addresses: AddressSet::default(),
            flows: Flows::default(),
            groups: Groups::default(),
            gate: Gate::default(),
            received: Some(Box::default()),
            counters: LaneCounters::default(),
        })
    }

    /// Replaces the addresses that frames are admitted for.
    pub fn set_addresses(&mut self, addresses: AddressSet) {
        self.addresses = addresses;
        // They were admitted by the ones before.
        self.flows = Flows::default();
    }

    /// No copy is under way: withdrawn memory may go.
    #[inline]
    pub fn quiesce(&mut self) {
        self.engine.memory_mut().quiesce();
        self.outgoing.memory.quiesce();
        if let Some(lending) = &mut self.outgoing.lending {
            lending.quiesce();
        }
    }

    /// Nothing waits to be sent or to be looked at (frames in the receive queue cannot be seen from here).
    pub fn is_quiet(&self) -> bool {
        self.outgoing.is_empty()
            && self.engine.is_idle()
            // Nobody wakes us when they come back.
            && !self.outgoing.lending.as_ref().is_some_and(Lending::has_loans)
            && self.link.is_quiet(self.index)
            && self.impaired.as_ref().is_none_or(|impaired| impaired.is_quiet())
    }

    /// When the engine, a move or a held frame wants to be looked at.
    pub fn next_timeout(&self) -> Option<Nanos> {
        let held = self.impaired.as_ref().and_then(|impaired| impaired.next_due());
        self.engine.next_timeout().into_iter().chain(self.moves.next_timeout()).chain(held).min()
    }

    pub fn snapshot(&self) -> LaneCounters {
        let mut counters = self.counters.clone();
        counters.engine = self.engine.counters();
        counters.impair = self.impaired.as_ref().map(|impaired| *impaired.counters()).unwrap_or_default();
        counters
    }
}
