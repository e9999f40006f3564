//! A port without workers: whole frames in and out, for a peer that is played by hand. It answers ARP, neighbour discovery
//! and ping for its addresses, and nothing else.

use super::Endpoint;
use super::bringup::{OpenedPort, make_devices, start_ports};
use super::ring::{ends, join};
use crate::config::Config;
use crate::endpoint::RingPair;
use crate::error::{ResolveError, StartError};
use crate::net::{Choice, NextHop, Resolution, Stack, Want};
use dpdk::tsc::{Clock, Hand};
use dpdk::{MbufBurst, Mempool, Port, RxQueue, TxQueue};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::Mac;

/// A port that sends and receives whole frames. One thread uses it.
///
/// ```no_run
/// use rockhopper::{Config, RawPort};
///
/// let mut port = RawPort::open(&Config::load("configs/af_packet.toml".as_ref())?)?;
/// let mut frames = Vec::new();
/// port.receive(&mut frames);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RawPort {
    // Queues go before their port.
    rx: RxQueue,
    tx: TxQueue,
    _port: Port,
    pool: Arc<Mempool>,
    stack: Stack,
    clock: Clock,
}

impl std::fmt::Debug for RawPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawPort").field("mac", &self.mac()).finish_non_exhaustive()
    }
}

/// What a raw port is put together from.
pub(super) struct RawParts {
    pub queues: (RxQueue, TxQueue),
    pub port: Port,
    pub pool: Arc<Mempool>,
    pub stack: Stack,
    pub clock: Clock,
}

/// How long a neighbour may take to answer.
const PATIENCE: Duration = Duration::from_millis(1500);

impl RawPort {
    /// Opens the first port of a configuration.
    ///
    /// Errors: those of [`Endpoint::start`].
    pub fn open(config: &Config) -> Result<RawPort, StartError> {
        let config = Config { ports: config.ports.iter().take(1).cloned().collect(), ..config.clone() };
        let Some(settings) = config.ports.first() else {
            return Err(StartError::Config {
                problem: "there is no port".into(),
                remedy: "add a [[port]] section; see the examples in configs/".into(),
            });
        };
        let pci = super::bringup::pci_address(&settings.device);
        let eal = crate::eal::get(&config.eal, &Vec::from_iter(pci))?;
        let ids = make_devices(&eal, &config.ports)?;
        let opened = OpenedPort::open(&eal, &config, settings, ids[0], 0, 1);
        if opened.is_err() {
            eal.remove_vdev(ids[0]);
        }
        opened?.into_raw(Clock::new(&eal))
    }

    /// A raw port and an endpoint, joined in memory as [`Endpoint::ring_pair`] joins two endpoints.
    ///
    /// Errors: those of [`Endpoint::ring_pair`].
    pub fn beside(settings: &RingPair) -> Result<(RawPort, Endpoint), StartError> {
        RawPort::joined(settings, Clock::new)
    }

    /// As [`beside`](Self::beside), in a time that is the caller's: both ends see what the hand is moved to, so nothing is late on a
    /// busy machine, and waiting takes no time. Poll the endpoint by [`Endpoint::poll_in_turn`] after each move.
    ///
    /// Errors: those of [`Endpoint::ring_pair`].
    pub fn beside_by_hand(settings: &RingPair) -> Result<(RawPort, Endpoint, Hand), StartError> {
        let hand = Hand::new();
        let (port, endpoint) = RawPort::joined(settings, |_| Clock::by_hand(hand))?;
        Ok((port, endpoint, hand))
    }

    fn joined(
        settings: &RingPair,
        clock: impl FnOnce(&dpdk::eal::Eal) -> Clock,
    ) -> Result<(RawPort, Endpoint), StartError> {
        let (eal, [first, second]) = join(settings)?;
        let [ours, theirs] = ends(settings)?;
        let clock = clock(&eal);
        let raw = OpenedPort::open(&eal, &ours, &ours.ports[0], first, 0, 1)?.into_raw(clock)?;
        Ok((raw, start_ports(&eal, &theirs, &[second], clock)?))
    }

    pub(super) fn new(parts: RawParts) -> RawPort {
        let RawParts { queues: (rx, tx), port, pool, stack, clock } = parts;
        RawPort { rx, tx, _port: port, pool, stack, clock }
    }

    /// Its Ethernet address.
    pub fn mac(&self) -> Mac {
        self.stack.own().mac()
    }

    /// The addresses of its own link, link-local ones among them.
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.stack.own().addresses().iter().map(|prefix| prefix.address()).collect()
    }

    /// Nanoseconds of the clock that its frames are timed by.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Sends a frame without FCS, as it is. False when the port does not take it.
    pub fn send(&mut self, frame: &[u8]) -> bool {
        let Some(mut mbuf) = self.pool.alloc() else { return false };
        let mut burst = MbufBurst::<1>::new();
        mbuf.extend_from_slice(frame) && burst.push(mbuf).is_ok() && self.tx.burst(&mut burst) == 1
    }

    /// Takes what has arrived. Frames of ARP, neighbour discovery and ICMP are answered here; all UDP is the caller's.
    pub fn receive(&mut self, frames: &mut Vec<Vec<u8>>) {
        self.take(|frame, is_ours| {
            if !is_ours {
                frames.push(frame);
            }
        });
    }

    /// As [`receive`](Self::receive), and gives what is answered here, too.
    pub fn receive_all(&mut self, frames: &mut Vec<Vec<u8>>) {
        self.take(|frame, _| frames.push(frame));
    }

    fn take(&mut self, mut each: impl FnMut(Vec<u8>, bool)) {
        let mut burst = MbufBurst::<32>::new();
        self.rx.burst(&mut burst);
        let now = self.clock.now_ns();
        for mbuf in burst.as_slice() {
            let mut bytes = vec![0; mbuf.pkt_len()];
            mbuf.copy_to(0, &mut bytes);
            let is_ours = matches!(wire::Frame::parse(&bytes, bytes.len()), Err(why) if !why.is_roce());
            if is_ours {
                self.stack.on_frame(now, &bytes, mbuf.stripped_vlan());
            }
            each(bytes, is_ours);
        }
        self.stack.on_timeout(now);
        while let Some(frame) = self.stack.poll_transmit() {
            self.send(&frame);
        }
    }

    /// The MAC that leads to an address, asked for on the link; `idle` is called meanwhile.
    ///
    /// Errors: there is no route, or nobody answers for 1.5 s.
    pub fn resolve(&mut self, destination: IpAddr, idle: impl Fn()) -> Result<Mac, ResolveError> {
        let want = Want { destination, scope: Default::default(), index: None, gid_type: None };
        let Choice { entry, next_hop, .. } = self.stack.choose(&want)?;
        if next_hop == NextHop::Local {
            return Ok(self.mac());
        }
        let end = Instant::now() + PATIENCE;
        loop {
            match self.stack.resolve(self.clock.now_ns(), entry.vlan, destination) {
                Resolution::Ready(mac) => return Ok(mac),
                Resolution::Failed => return Err(ResolveError::Unreachable(destination)),
                Resolution::Pending if Instant::now() >= end => {
                    return Err(ResolveError::Unreachable(destination));
                }
                // What else arrives now is of no use to anybody.
                Resolution::Pending => self.receive(&mut Vec::new()),
            }
            idle();
        }
    }
}
